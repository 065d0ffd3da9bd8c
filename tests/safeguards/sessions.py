"""The safeguards of sessions: cancel, checkpoint, turn, calls, dispatch, and the session files."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

CANCEL: Final = "labkit/recovery/cancel.py"
SESSION: Final = "labkit/recovery/session.py"
CHECKPOINT: Final = "labkit/recovery/checkpoint.py"
MAILBOX: Final = "labkit/recovery/mailbox.py"
TOOLS: Final = "labkit/recovery/tools.py"
CALLS: Final = "labkit/recovery/calls.py"
TURN: Final = "labkit/recovery/turn.py"
DISPATCH: Final = "labkit/recovery/dispatch.py"
FILES: Final = "labkit/stores/session_files.py"
LINES: Final = "labkit/stores/session_lines.py"

_CANCEL: Final = "tests/recovery/test_cancel.py::test_"
_SESSION: Final = "tests/recovery/test_session.py::test_"
_CHECKPOINT: Final = "tests/recovery/test_checkpoint.py::test_"
_MAILBOX: Final = "tests/recovery/test_mailbox.py::test_"
_CALLS: Final = "tests/recovery/test_calls.py::test_"
_TURN: Final = "tests/recovery/test_turn.py::test_"
_DISPATCH: Final = "tests/recovery/test_dispatch.py::test_"
_FILES: Final = "tests/stores/test_session_files.py::test_"
_CASES: Final = "tests/cases/test_sessions.py::test_"

_SWEEP: Final = f"{_TURN}a_cancel_at_any_step_keeps_what_happened_marks_the_rest_and_leaves"
_PAIRS: Final = f"{_TURN}a_second_cancel_at_any_later_step_changes_nothing_of_that"
_ENDS: Final = f"{_CANCEL}work_that_must_end_ends_whatever_cancels_arrive_and_then_the_first_leaves"
_REPAIRED: Final = f"{_SESSION}a_repaired_history_has_one_result_for_each_call_and_is_repaired_once"
_FEW: Final = f"{_DISPATCH}every_message_of_any_few_is_handled_once_and_in_order"
_CLOSE: Final = f"{_DISPATCH}a_close_at_any_step_loses_nothing"
_DAMAGE: Final = f"{_FILES}whatever_the_damage_a_file_is_not_taken_for_whole"
_FULL: Final = (
    f"{_FILES}a_disk_that_is_full_at_any_byte_leaves_the_old_file_and_the_session_goes_on"
)

# name, file, old, new, and the tests that must go red
_RECOVERY: Final[tuple[Row, ...]] = (
    # --- cancel
    (
        "work that must end survives a second cancel",
        CANCEL,
        "while not task.done():",
        "if not task.done():",
        (f"{_ENDS}[times3]", _PAIRS),
    ),
    (
        "a cancel leaves after the work that must end",
        CANCEL,
        "if cancelled is not None:",
        "if False:",
        (f"{_ENDS}[times1]", _SWEEP),
    ),
    (
        "an error behind a cancel is its cause",
        CANCEL,
        "raise cancelled from failure",
        "raise cancelled from None",
        (f"{_CANCEL}an_error_of_that_work_leaves_and_behind_a_cancel_it_is_the_cause",),
    ),
    (
        "a stop waits for the clean-up",
        CANCEL,
        "    await _ended(task)\n    return task.cancelled()",
        "    await asyncio.sleep(0)\n    return task.cancelled()",
        (f"{_CANCEL}stop_waits_for_the_clean_up_and_says_whether_the_task_obeyed",),
    ),
    # --- session
    (
        "text that was shown becomes a draft",
        SESSION,
        "drafts = (*drafts, Draft(turn.draft, reason))",
        "pass",
        (f"{_TURN}an_error_after_text_leaves_a_draft_and_no_answer", _SWEEP),
    ),
    (
        "a call that was running is unknown",
        SESSION,
        "status = UNKNOWN if call_id in begun else NOT_STARTED",
        "status = NOT_STARTED",
        (_SWEEP, f"{_CASES}case_64_a_process_that_dies_between_two_tools_has_kept_the_first"),
    ),
    (
        "a call that never began is not unknown",
        SESSION,
        "status = UNKNOWN if call_id in begun else NOT_STARTED",
        "status = UNKNOWN",
        (_SWEEP, f"{_CASES}case_48_a_call_that_waits_for_its_batch_never_starts"),
    ),
    (
        "a turn that a crash left open is closed and not forgotten",
        SESSION,
        '    if session.turn:\n        session = close_turn(session, "crash")',
        '    if False:\n        session = close_turn(session, "crash")',
        (f"{_SESSION}a_turn_that_was_left_open_is_closed_before_the_next_begins",),
    ),
    (
        "results stand in the order of the calls",
        SESSION,
        "results = sorted(steps[asked + 1 :], key=lambda result: order.index(result.call_id))",
        "results = steps[asked + 1 :]",
        (
            f"{_SESSION}results_stand_in_the_order_of_the_calls_and_not_of_their_ends",
            f"{_TURN}a_write_that_is_refused_ends_the_turn_and_the_next_one_brings_all",
        ),
    ),
    (
        "a message that joins does not take the draft's place",
        SESSION,
        'draft = "" if step.role == ASSISTANT else turn.draft',
        'draft = ""',
        (f"{_SESSION}a_message_that_joins_the_turn_does_not_take_the_drafts_place",),
    ),
    (
        "a result that nobody asked for is left out",
        SESSION,
        "if message.role == TOOL and message.call_id not in waiting:",
        "if False:",
        (_REPAIRED,),
    ),
    (
        "a result that is missing is put where it belongs",
        SESSION,
        "        if message.role != TOOL:\n            kept = _answered(kept, waiting)",
        "        if False:\n            kept = _answered(kept, waiting)",
        (_REPAIRED,),
    ),
    (
        "a question at the very end gets a note",
        SESSION,
        "if kept and kept[-1].role in (USER, TOOL):",
        "if False:",
        (_REPAIRED,),
    ),
    (
        "a change of a turn that is not open is refused",
        SESSION,
        "    if session.turn is None:\n        raise SessionError",
        "    if False:\n        raise SessionError",
        (f"{_SESSION}a_change_of_a_turn_that_is_not_open_is_refused_with_the_sessions_name",),
    ),
    # --- checkpoint
    (
        "a write is not torn by a cancel",
        CHECKPOINT,
        "await to_the_end(self._save(step, drafts), name=f\"save {step or 'draft'}\")",
        "await self._save(step, drafts)",
        (
            f"{_CHECKPOINT}a_cancel_leaves_when_the_write_has_ended_and_a_second_one_too",
            _SWEEP,
        ),
    ),
    (
        "writes follow one another",
        CHECKPOINT,
        "async with self._writing:",
        "async with asyncio.Lock():",
        (f"{_CHECKPOINT}two_changes_at_once_are_written_one_after_the_other_and_both_are_kept",),
    ),
    (
        "a change counts at once",
        CHECKPOINT,
        "        self.session = changed\n        await to_the_end(",
        "        await asyncio.sleep(0)\n        self.session = changed\n        await to_the_end(",
        (_SWEEP,),
    ),
    (
        "a late old write never overwrites a newer one",
        CHECKPOINT,
        "if session.version != stored.version:",
        "if False:",
        (
            f"{_CHECKPOINT}a_late_write_of_an_older_turn_is_refused_and_changes_nothing",
            f"{_CASES}case_49_the_late_write_of_a_cancelled_run_is_refused",
            f"{_FILES}an_older_version_never_overwrites_a_newer_one",
        ),
    ),
    (
        "a step is told when it is saved",
        CHECKPOINT,
        "version = await self._write(self.session)",
        "version = self.session.version + 1",
        (f"{_CHECKPOINT}a_step_is_told_when_it_is_written_and_no_sooner",),
    ),
    # --- mailbox
    (
        "nothing gets into a mailbox that is closed",
        MAILBOX,
        "if self.closed or len(self._messages) >= self._room:",
        "if len(self._messages) >= self._room:",
        (
            f"{_MAILBOX}it_does_not_finish_while_a_message_is_in_it",
            f"{_TURN}nothing_gets_in_once_the_turn_has_its_answer",
        ),
    ),
    (
        "a mailbox takes what it has room for",
        MAILBOX,
        "if self.closed or len(self._messages) >= self._room:",
        "if self.closed:",
        (f"{_MAILBOX}it_takes_what_it_has_room_for_and_refuses_the_rest",),
    ),
    (
        "a mailbox with a message in it does not finish",
        MAILBOX,
        "self.closed = anyway or not self._messages",
        "self.closed = True",
        (
            f"{_MAILBOX}it_does_not_finish_while_a_message_is_in_it",
            f"{_TURN}an_answer_is_not_the_last_word_while_a_letter_is_unread",
        ),
    ),
    # --- tools
    (
        "only neighbours that are safe run side by side",
        TOOLS,
        "if safe and before_is_safe:",
        "if safe and made:",
        (
            f"{_CALLS}neighbours_that_are_safe_run_side_by_side_and_any_other_is_a_barrier",
            f"{_CALLS}no_call_that_is_not_safe_overlaps_with_another_and_batches_stay_in_order",
        ),
    ),
    (
        "a call that is not safe waits for those before it",
        TOOLS,
        "if safe and before_is_safe:",
        "if before_is_safe:",
        (
            f"{_CALLS}neighbours_that_are_safe_run_side_by_side_and_any_other_is_a_barrier",
            f"{_CALLS}no_call_that_is_not_safe_overlaps_with_another_and_batches_stay_in_order",
        ),
    ),
    # --- calls
    (
        "a turn waits for the tools that it has cancelled",
        CALLS,
        "await asyncio.gather(*tasks, return_exceptions=True)",
        "pass",
        (f"{_TURN}a_cancel_ends_the_tools_that_run_and_waits_for_their_clean_up", _SWEEP),
    ),
    (
        "a tool's clean-up survives a second cancel",
        "labkit/recovery/cancel.py",
        "await to_the_end(asyncio.wait([task], timeout=CLEAN_UP))",
        "await asyncio.wait([task], timeout=CLEAN_UP)",
        (_PAIRS,),
    ),
    (
        "a cancel ends the tools that run",
        CALLS,
        "if not task.cancel() and not task.cancelled():",
        "if task.done() and not task.cancelled():",
        (f"{_TURN}a_cancel_ends_the_tools_that_run_and_waits_for_their_clean_up",),
    ),
    (
        "a call is marked before it begins",
        CALLS,
        'await self.checkpoint.save(begin_call(session, call.call_id), "running")',
        "pass",
        (
            f"{_TURN}a_call_is_marked_before_it_begins_and_its_result_saved_before_the_next_one",
            _SWEEP,
        ),
    ),
    (
        "a cancel leaves the tool",
        CALLS,
        "if task is None or task.cancelling():",
        "if False:",
        (_SWEEP,),
    ),
    (
        "a tool that cancels itself does not end the turn",
        CALLS,
        "if task is None or task.cancelling():",
        "if True:",
        (f"{_CALLS}a_tool_that_cancels_itself_has_failed_and_does_not_end_the_turn",),
    ),
    (
        "a tool that hangs is given up",
        "labkit/recovery/cancel.py",
        "await asyncio.wait([task], timeout=seconds)",
        "await asyncio.wait([task])",
        (
            f"{_CALLS}a_tool_that_hangs_is_given_up_after_its_limit_and_its_end_is_unknown",
            f"{_CASES}case_48_a_call_that_is_given_up_is_unknown_and_is_not_begun_again",
        ),
    ),
    (
        "a long result is cut",
        CALLS,
        "return shortened(str(await tool.run(arguments, key))), DONE",
        "return str(await tool.run(arguments, key)), DONE",
        (f"{_CALLS}a_hundred_megabytes_are_cut_to_their_two_ends",),
    ),
    (
        "each call has an id of its own",
        CALLS,
        "while call_id in used:",
        "while False:",
        (
            f"{_CALLS}every_call_has_an_id_that_none_before_it_has",
            f"{_TURN}calls_without_an_id_of_their_own_are_each_answered",
        ),
    ),
    (
        "no arguments at all are no object",
        CALLS,
        "if tool and tool.takes_nothing and not call.arguments.strip():",
        "if not call.arguments.strip():",
        (
            f"{_CALLS}"
            "no_arguments_at_all_are_an_object_only_for_a_tool_that_takes_none[False-refused]",
        ),
    ),
    # --- turn
    (
        "a cancel of the turn leaves",
        TURN,
        "raise  # breakpoint: interruption leaves",
        'return ""  # breakpoint: interruption leaves',
        (_SWEEP, f"{_CANCEL}a_cancel_of_the_turn_leaves_and_what_was_shown_is_kept"),
    ),
    (
        "whatever interrupts, the turn is closed",
        TURN,
        "except BaseException as interruption:",
        "except Exception as interruption:",
        (_SWEEP,),
    ),
    (
        "the user's turn is saved before the model is asked",
        TURN,
        'await checkpoint.save(begin_turn(checkpoint.session, question), "user")',
        "checkpoint.session = begin_turn(checkpoint.session, question)",
        (f"{_TURN}the_users_message_is_saved_before_the_model_is_asked",),
    ),
    (
        "text is saved before it is shown",
        TURN,
        "                await checkpoint.save(show(checkpoint.session, piece.text))\n"
        "                services.show(piece.text)\n",
        "                services.show(piece.text)\n"
        "                await checkpoint.save(show(checkpoint.session, piece.text))\n",
        (f"{_TURN}text_is_in_the_store_before_it_is_shown",),
    ),
    (
        "half a call is dropped at a boundary",
        TURN,
        "calls.clear()",
        "pass",
        (f"{_TURN}half_a_call_of_an_attempt_that_failed_is_dropped",),
    ),
    (
        "calls side by side are kept apart",
        TURN,
        "place = _place(piece, calls)",
        "place = 0",
        (f"{_TURN}the_pieces_of_a_call_are_joined_and_calls_side_by_side_are_kept_apart",),
    ),
    (
        "what ran into its limit is neither answer nor call",
        TURN,
        'elif piece.reason == "length":',
        "elif False:",
        (
            f"{_TURN}an_answer_that_ran_into_its_limit_is_a_draft_and_no_answer",
            f"{_TURN}a_call_that_ran_into_the_limit_is_not_made",
        ),
    ),
    (
        "an error of the page closes the stream",
        TURN,
        "async with aclosing(pieces):",
        "async with asyncio.Lock():",
        (f"{_TURN}a_stream_is_closed_before_an_error_of_the_page_leaves",),
    ),
    (
        "a model that only calls tools is ended",
        TURN,
        "for number in range(MOST_CALLS):",
        "for number in range(100):",
        (f"{_TURN}a_model_that_only_calls_tools_is_ended_and_every_result_is_kept",),
    ),
    (
        "a turn ends though its user never stops writing",
        TURN,
        "letters.finish(anyway=number >= PATIENT)",
        "letters.finish()",
        (f"{_TURN}a_turn_ends_though_its_user_never_stops_writing",),
    ),
    (
        "only the letters that wait join the turn",
        TURN,
        "for _ in range(len(letters)):",
        "while len(letters):",
        (f"{_TURN}a_turn_ends_though_its_user_never_stops_writing",),
    ),
    (
        "a mailbox that is empty is the turn's mailbox too",
        TURN,
        "letters = Mailbox() if mailbox is None else mailbox",
        "letters = mailbox or Mailbox()",
        (f"{_TURN}nothing_gets_in_once_the_turn_has_its_answer",),
    ),
    (
        "a store that fails does not hide what ended the turn",
        TURN,
        "    except Exception as error:\n        interruption.add_note",
        "    except RecoveryError as error:\n        interruption.add_note",
        (f"{_TURN}a_store_that_refuses_everything_does_not_hide_its_error_and_memory_is_whole",),
    ),
    # --- dispatch
    (
        "a session has one turn at a time",
        DISPATCH,
        "async with lane.lock:",
        "async with nullcontext():",
        (_FEW, f"{_CASES}case_61_the_mailbox_is_the_running_turns_and_nothing_jumps_the_queue"),
    ),
    (
        "so many turns run at a time",
        DISPATCH,
        "async with self._gate:",
        "async with nullcontext():",
        (
            _FEW,
            f"{_CASES}case_62_a_lock_for_each_session_a_gate_for_all_and_state_for_each_turn",
        ),
    ),
    (
        "no message overtakes a line that waits",
        DISPATCH,
        "if not command and not lane.line and lane.turn",
        "if not command and lane.turn",
        (f"{_DISPATCH}a_message_never_overtakes_a_command_that_waits", _FEW),
    ),
    (
        "a command is never injected as text",
        DISPATCH,
        "        if not command and not lane.line and lane.turn",
        "        if not lane.line and lane.turn",
        (_FEW,),
    ),
    (
        "leftovers come first in the line",
        DISPATCH,
        "lane.line.extendleft(reversed(left))",
        "lane.line.extend(left)",
        (f"{_DISPATCH}what_is_left_in_the_mailbox_comes_before_what_waits_in_line",),
    ),
    (
        "leftovers keep their order",
        DISPATCH,
        "lane.line.extendleft(reversed(left))",
        "lane.line.extendleft(left)",
        (f"{_DISPATCH}what_is_left_in_the_mailbox_comes_before_what_waits_in_line",),
    ),
    (
        "a leftover starts a turn of its own",
        DISPATCH,
        'way="leftover")\n            self._start(lane, message.session)',
        'way="leftover")',
        (f"{_DISPATCH}a_leftover_starts_a_turn_of_its_own",),
    ),
    (
        "a message whose turn never began is kept",
        DISPATCH,
        "await to_the_end(self._keep(message))",
        "pass",
        (f"{_DISPATCH}a_stop_at_the_gate_keeps_the_message_as_unanswered", _CLOSE),
    ),
    (
        "a turn that was stopped is not stopped again",
        DISPATCH,
        "            lane.turn = None\n",
        "",
        (f"{_DISPATCH}a_turn_is_stopped_once",),
    ),
    (
        "a turn that was over is not counted as stopped",
        DISPATCH,
        'turn.outcome = "done" if turn.mailbox.closed else "stopped"',
        'turn.outcome = "stopped"',
        (f"{_DISPATCH}a_turn_whose_answer_was_being_saved_is_not_stopped",),
    ),
    (
        "a cancel leaves the dispatcher",
        DISPATCH,
        "raise  # breakpoint: cancel leaves the dispatcher",
        "pass",
        (f"{_DISPATCH}a_turn_that_was_stopped_ends_as_cancelled",),
    ),
    (
        "what is dropped is dropped",
        DISPATCH,
        "lane.line.clear()",
        "pass",
        (f"{_DISPATCH}stop_all_drops_what_waits_and_says_how_many", _FEW),
    ),
    (
        "a session that has nothing to do leaves no lane",
        DISPATCH,
        "del self.lanes[session]",
        "pass",
        (f"{_DISPATCH}many_sessions_and_commands_that_came_and_went_leave_nothing", _FEW),
    ),
    (
        "a command that is through leaves nothing",
        DISPATCH,
        "acting.add_done_callback(self._acting.discard)",
        "pass",
        (f"{_DISPATCH}many_sessions_and_commands_that_came_and_went_leave_nothing",),
    ),
    (
        "a close keeps what waits in line",
        DISPATCH,
        "self._left += lane.line",
        "pass",
        (_CLOSE,),
    ),
    (
        "a close keeps what is in the queue",
        DISPATCH,
        "while not self._inbound.empty():",
        "while False:",
        (f"{_DISPATCH}a_stop_that_is_still_in_the_queue_is_no_message_of_the_session",),
    ),
    (
        "a close waits for the turns",
        DISPATCH,
        "        await self.idle()\n        while not self._inbound",
        "        while not self._inbound",
        (_CLOSE,),
    ),
    (
        "a close waits for the commands",
        DISPATCH,
        "        if self._acting:\n",
        "        if False:\n",
        (f"{_DISPATCH}a_close_waits_for_the_commands",),
    ),
    (
        "a dispatcher that is closed starts no turn",
        DISPATCH,
        "        if not self._closing:\n",
        "        if True:\n",
        (_CLOSE,),
    ),
    (
        "a dispatcher that is closed keeps what comes",
        DISPATCH,
        "if self._closing and message.session not in self.lanes:",
        "if False:",
        (f"{_DISPATCH}a_dispatcher_that_is_closed_starts_nothing_and_keeps_what_comes",),
    ),
)

_STORE: Final[tuple[Row, ...]] = (
    (
        "a session's file is replaced in one step",
        FILES,
        'new = path.with_suffix(".new")',
        "new = path",
        (_FULL,),
    ),
    (
        "half a file is not left behind",
        FILES,
        "new.unlink(missing_ok=True)",
        "pass",
        (_FULL,),
    ),
    (
        "a flush goes through to the disk",
        FILES,
        "os.fsync(file.fileno())",
        "pass",
        (f"{_FILES}a_write_does_not_wait_for_the_disk_and_a_flush_does",),
    ),
    (
        "what is seen to the disk is all of the file",
        FILES,
        "                    file.flush()\n",
        "",
        (f"{_FILES}a_write_does_not_wait_for_the_disk_and_a_flush_does",),
    ),
    (
        "a clean-up that fails does not hide the error",
        FILES,
        "with suppress(OSError):",
        "with nullcontext():",
        (f"{_FILES}a_clean_up_that_fails_too_does_not_hide_what_the_disk_refused",),
    ),
    (
        "a flush sees the folder's entry to the disk",
        FILES,
        "_sync(self._folder)",
        "pass",
        (f"{_FILES}a_write_does_not_wait_for_the_disk_and_a_flush_does",),
    ),
    (
        "a folder that may not be opened is no error",
        FILES,
        "except PermissionError:",
        "except KeyError:",
        (f"{_FILES}a_folder_that_may_not_be_opened_is_no_error_and_one_that_is_gone_is",),
    ),
    (
        "a folder that cannot be synced is no error",
        FILES,
        "if error.errno != errno.EINVAL:",
        "if True:",
        (f"{_FILES}a_folder_that_cannot_be_synced_is_no_error_and_one_that_fails_is",),
    ),
    (
        "a sync of the folder that fails is an error",
        FILES,
        "if error.errno != errno.EINVAL:",
        "if False:",
        (f"{_FILES}a_folder_that_cannot_be_synced_is_no_error_and_one_that_fails_is",),
    ),
    (
        "a folder that was synced is closed",
        FILES,
        "os.close(opened)",
        "pass",
        (f"{_FILES}a_folder_that_cannot_be_synced_is_no_error_and_one_that_fails_is",),
    ),
    (
        "one session that fails does not keep the others from being written",
        FILES,
        "except Exception as error:  # the others",
        "except KeyError as error:  # the others",
        (f"{_FILES}one_session_that_fails_does_not_keep_the_others_from_being_written",),
    ),
    (
        "a write that hangs does not hold up a flush",
        FILES,
        "held.writing.acquire(timeout=PATIENCE)",
        "held.writing.acquire()",
        (f"{_FILES}a_write_that_hangs_does_not_keep_the_others_from_being_flushed",),
    ),
    (
        "a flush brings what the disk has refused before",
        FILES,
        "held.session = session  # a flush brings it where the disk refuses it now",
        "pass",
        (f"{_FILES}a_flush_brings_what_the_disk_has_refused_before", _FULL),
    ),
    (
        "a damaged file is refused",
        FILES,
        "if damage and not recover:",
        "if False:",
        (
            f"{_FILES}a_damaged_file_is_refused_and_left_as_it_is",
            f"{_FILES}a_file_that_is_cut_at_any_byte_is_refused_and_left_as_it_is",
        ),
    ),
    (
        "a damaged file is kept beside the one that goes on",
        FILES,
        "aside.write(data)",
        "pass",
        (f"{_FILES}recover_goes_on_with_the_lines_before_the_damage_and_keeps_the_file",),
    ),
    (
        "what was recovered is kept at once",
        FILES,
        "self._replace(session, durable=True)",
        "pass",
        (f"{_FILES}recover_goes_on_with_the_lines_before_the_damage_and_keeps_the_file",),
    ),
    (
        "a session has one owner",
        FILES,
        'lock.execute("BEGIN EXCLUSIVE")',
        'lock.execute("BEGIN")',
        (
            f"{_FILES}a_second_owner_is_refused_until_the_first_lets_go",
            f"{_FILES}another_process_is_refused_until_the_owner_dies",
        ),
    ),
    (
        "a lock leaves no other file",
        FILES,
        'lock.execute("PRAGMA journal_mode = OFF")',
        "pass",
        (f"{_FILES}every_name_is_kept_apart_on_the_disk",),
    ),
    (
        "a session that is let go is free",
        FILES,
        "                held.lock.close()\n",
        "",
        (f"{_FILES}a_second_owner_is_refused_until_the_first_lets_go",),
    ),
    (
        "a session that cannot be loaded is free",
        FILES,
        "                lock.close()\n                raise\n",
        "                raise\n",
        (f"{_FILES}a_session_that_cannot_be_loaded_is_owned_by_nobody",),
    ),
    (
        "a session that is let go leaves nothing in memory",
        FILES,
        "self._held.pop(session_id, None)",
        "pass",
        (f"{_FILES}sessions_that_came_and_went_leave_nothing_in_memory",),
    ),
    (
        "a session that was let go meanwhile is not written",
        FILES,
        "if held is None or self._held.get(session.session_id) is not held:",
        "if held is None:",
        (f"{_FILES}a_write_that_waited_while_its_session_was_let_go_is_refused",),
    ),
    (
        "to let go waits for a write that is under way",
        FILES,
        "            with held.writing:\n                self._held.pop",
        "            with nullcontext():\n                self._held.pop",
        (f"{_FILES}to_let_go_waits_for_the_write_that_is_under_way",),
    ),
    (
        "a close lets go of every session",
        FILES,
        "for session_id in list(self._held):",
        "for session_id in ():",
        (f"{_FILES}closing_lets_go_of_every_session",),
    ),
    (
        "two threads do not load one session at once",
        FILES,
        "with self._loading:",
        "with nullcontext():",
        (f"{_FILES}two_threads_that_load_a_session_at_once_have_the_same_one",),
    ),
    (
        "two threads do not write one session at once",
        FILES,
        "with held.writing if held else nullcontext():",
        "with nullcontext():",
        (f"{_FILES}two_threads_that_write_the_same_version_have_one_winner",),
    ),
    (
        "each session has a file of its own",
        FILES,
        'f"{readable}.{digest}.jsonl"',
        'f"{readable}.jsonl"',
        (
            f"{_FILES}no_name_leaves_the_folder_and_none_is_anothers",
            f"{_FILES}every_name_is_kept_apart_on_the_disk",
        ),
    ),
    (
        "a session's name does not leave the folder",
        FILES,
        're.sub("[^a-z0-9]+", "-", session_id.lower())',
        "session_id.lower()",
        (f"{_FILES}no_name_leaves_the_folder_and_none_is_anothers",),
    ),
    (
        "a file that cannot be read is no new session",
        FILES,
        "except FileNotFoundError:",
        "except OSError:",
        (f"{_FILES}an_error_of_reading_is_not_taken_for_a_torn_file",),
    ),
    (
        "a changed byte is noticed",
        LINES,
        "whole = line == text[:-1] + _sum(checksum)",
        'whole = line.endswith(b"}") and len(line) > 22',
        (_DAMAGE,),
    ),
    (
        "a line that is missing in the middle is noticed",
        LINES,
        "        row, checksum = _checked(line, checksum)\n",
        "        row, checksum = _checked(line, 0)\n",
        (f"{_FILES}a_session_comes_back_as_it_was", _DAMAGE),
    ),
    (
        "a line too many is noticed",
        LINES,
        'if not len(rows) == len(lines) == head["count"]:',
        'if len(rows) != head["count"]:',
        (_DAMAGE,),
    ),
    (
        "another session's file is refused",
        LINES,
        'if (head["format"], head["session_id"]) != (FORMAT, session_id):',
        'if head["format"] != FORMAT:',
        (f"{_FILES}a_file_under_another_sessions_name_is_refused",),
    ),
    (
        "another format is refused",
        LINES,
        'if (head["format"], head["session_id"]) != (FORMAT, session_id):',
        'if head["session_id"] != session_id:',
        (_DAMAGE,),
    ),
    (
        "a history that is loaded is repaired",
        LINES,
        "messages = repaired(map(_message, rows))",
        "messages = tuple(map(_message, rows))",
        (f"{_FILES}a_history_from_outside_is_repaired_when_it_is_loaded",),
    ),
)

SAFEGUARDS: Final = of_rows((*_RECOVERY, *_STORE))
