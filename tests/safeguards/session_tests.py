"""What a change of one line in turns, their files, judges and facts must not pass unseen."""

from typing import Final

from .kinds import of_rows

_TURN: Final = "tests/recovery/test_turn.py::"
_DISPATCH: Final = "tests/recovery/test_dispatch.py::"
_FILES: Final = "tests/stores/test_session_files.py::"
_CASE: Final = "tests/scenarios/test_session_judges.py::test_a_judge_finds_this_and_nothing_else"
_FACTS: Final = "tests/scenarios/test_facts.py::"
_TRANSPORT: Final = "tests/services/test_transport.py::"
_JUDGE: Final = "labkit/scenarios/session_judges.py"
_FACT: Final = "labkit/scenarios/facts.py"
_STORE: Final = "labkit/stores/session_files.py"

# name, file, old, new, what goes red
_ROWS: Final = (
    (
        "of several cancels the first one leaves",
        "labkit/recovery/cancel.py",
        "cancelled = cancelled or first",
        "cancelled = first",
        "tests/recovery/test_cancel.py::test_of_several_cancels_the_first_one_leaves",
    ),
    (
        "each draft is told once",
        "labkit/recovery/checkpoint.py",
        "drafts = changed.drafts[len(self.session.drafts) :]",
        "drafts = changed.drafts",
        "tests/recovery/test_checkpoint.py::test_each_draft_is_told_once",
    ),
    (
        "arguments in another order are the same call",
        "labkit/recovery/tools.py",
        "sort_keys=True",
        "sort_keys=False",
        "tests/recovery/test_tools.py::"
        "test_the_order_in_which_arguments_are_written_makes_no_other_call",
    ),
    (
        "a turn asks its model eight times at most",
        "labkit/recovery/turn.py",
        "MOST_CALLS: Final = 8",
        "MOST_CALLS: Final = 9",
        f"{_TURN}test_a_turn_asks_its_model_eight_times_at_most",
    ),
    (
        "the id of a call may come after its first piece",
        "labkit/recovery/turn.py",
        "call_id=piece.call_id or call.call_id, name=name",
        "call_id=call.call_id, name=name",
        f"{_TURN}test_the_id_and_the_name_of_a_call_may_come_after_its_first_piece",
    ),
    (
        "the name of a call may come after its first piece",
        "labkit/recovery/turn.py",
        "name, arguments = piece.name or call.name,",
        "name, arguments = call.name,",
        f"{_TURN}test_the_id_and_the_name_of_a_call_may_come_after_its_first_piece",
    ),
    (
        "a turn reads dates by its own clock",
        "labkit/recovery/turn.py",
        "        now=services.now,\n",
        "",
        f"{_TURN}test_a_date_until_which_to_wait_is_read_by_the_turns_own_clock",
    ),
    (
        "a message that joins a turn keeps its spaces",
        "labkit/recovery/turn.py",
        "Message(USER, message.text)",
        "Message(USER, message.text.strip())",
        f"{_TURN}test_a_message_joins_the_turn_with_each_space_that_its_user_wrote",
    ),
    (
        "what is more than an error leaves a turn",
        "labkit/recovery/dispatch.py",
        'except Exception as error:\n            self._tell("turn_failed"',
        'except BaseException as error:\n            self._tell("turn_failed"',
        f"{_DISPATCH}test_what_is_more_than_an_error_leaves_a_turn_and_nobody_is_told_to_try_again",
    ),
    (
        "white space around a command is no part of it",
        "labkit/recovery/mailbox.py",
        "first = text.split()[:1]",
        'first = text.split(" ")[:1]',
        f"{_DISPATCH}test_a_command_is_one_whatever_white_space_is_around_it",
    ),
    (
        "a close counts the turns that ran",
        "labkit/recovery/dispatch.py",
        "running = sum(bool(lane.turn and lane.turn.begun) for lane in self.lanes.values())",
        "running = len(self.lanes)",
        f"{_DISPATCH}test_a_turn_that_waits_at_the_gate_is_none_that_a_close_has_stopped",
    ),
    (
        "a session is seen to the disk before it is put away",
        _STORE,
        "            self._flush(held)\n            self.release(session_id)",
        "            self.release(session_id)",
        f"{_FILES}test_a_session_is_seen_to_the_disk_before_it_is_put_away",
    ),
    (
        "many names that begin alike have each a file",
        _STORE,
        "hexdigest()[:32]",
        "hexdigest()[:4]",
        f"{_FILES}test_many_names_that_begin_alike_have_each_a_file_of_their_own",
    ),
    (
        "a torn file that was kept meanwhile is not written over",
        _STORE,
        '_free(path).open("xb")',
        '_free(path).open("wb")',
        f"{_FILES}test_a_torn_file_that_was_kept_meanwhile_is_not_written_over",
    ),
    (
        "a session in use is refused at once",
        _STORE,
        "timeout=0, isolation_level",
        "isolation_level",
        f"{_FILES}test_who_finds_a_session_in_use_is_told_so_at_once",
    ),
    (
        "an empty line too many is damage",
        "labkit/stores/session_lines.py",
        r'data.removesuffix(b"\n").split',
        r'data.rstrip(b"\n").split',
        f"{_FILES}test_whatever_the_damage_a_file_is_not_taken_for_whole",
    ),
    (
        "the end of one turn leaves another one running",
        _JUDGE,
        'running[event["session"]] -= 1',
        'running[event["session"]] = 0',
        "tests/scenarios/test_session_judges.py::"
        "test_the_end_of_one_of_two_turns_leaves_the_other_one_running",
    ),
    (
        "only a crash excuses a message that is gone",
        _JUDGE,
        'return any(event.get("fault") == "crash" for event in events)',
        'return any(event.get("fault") for event in events)',
        f"{_CASE}[gone at a fault that is no crash]",
    ),
    (
        "two effects need two results",
        _JUDGE,
        'if _effects(events) - known:\n            cure = "save',
        'if set(_effects(events)) - set(known):\n            cure = "save',
        f"{_CASE}[two effects and one result]",
    ),
    (
        "text is looked for to its end",
        _JUDGE,
        "if not any(shown in text for text in kept):",
        "if not any(shown[:4] in text for text in kept):",
        f"{_CASE}[text whose end is in none]",
    ),
    (
        "text is kept when it is said",
        _FACT,
        'if event.get("step") == "said"]',
        'if event.get("step") in ("said", "tool")]',
        f"{_FACTS}test_text_that_a_message_holds_was_kept_when_it_was_said",
    ),
    (
        "a turn after the first one is not beside it",
        _FACT,
        'turns[-1:] == ["turn_start"]',
        'turns[:1] == ["turn_start"]',
        f"{_FACTS}test_a_turn_that_starts_after_the_first_one_has_ended_is_not_beside_it",
    ),
    (
        "the first start of so many decides",
        _FACT,
        "running > int(most.answer)",
        "running >= int(most.answer)",
        f"{_FACTS}test_the_first_start_that_makes_it_so_many_decides",
    ),
    (
        "the last turn to end decides",
        _FACT,
        'Fact(ends[-1]["outcome"], ends[-1].index)',
        'Fact(ends[0]["outcome"], ends[0].index)',
        f"{_FACTS}test_of_several_turns_the_last_one_to_end_decides",
    ),
    (
        "a segment says what ended it",
        "labkit/scenarios/office.py",
        'reason="tools" if history[-1].role == TOOL else "next"',
        'reason="tools"',
        "tests/scenarios/test_sessions.py::"
        "test_a_segment_that_no_tool_has_ended_says_that_the_next_one_begins",
    ),
    (
        "a breakpoint has the time of its first pass",
        "labkit/teaching/chain.py",
        ".passed.setdefault(place.breakpoint, place.time)",
        ".passed[place.breakpoint] = place.time",
        "tests/teaching/test_chain.py::"
        "test_a_breakpoint_that_is_passed_often_has_the_time_of_the_first_pass",
    ),
    (
        "a zombie is not alive",
        "labkit/services/process_tree.py",
        "process.status() != psutil.STATUS_ZOMBIE",
        "True",
        "tests/services/test_process_tree.py::"
        "test_a_process_that_has_ended_and_was_not_reaped_is_not_alive",
    ),
    (
        "a call that has ended is forgotten",
        "labkit/services/transport.py",
        "del self._waiting[number]",
        "pass",
        f"{_TRANSPORT}test_a_call_that_has_ended_is_waited_for_no_more",
    ),
    (
        "a second answer to a call is no answer",
        "labkit/services/transport.py",
        "if answer and not answer.done():\n                    answer.set_result",
        "if answer:\n                    answer.set_result",
        f"{_TRANSPORT}test_a_second_answer_to_a_call_is_no_answer",
    ),
)

SAFEGUARDS: Final = of_rows(_ROWS)
