"""The safeguards of the services: answers, cuts, the two wires, the page and the process."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

ANSWERS: Final = "labkit/services/answers.py"
TELLING: Final = "labkit/services/telling.py"
APP: Final = "labkit/services/app.py"
ASKED: Final = "labkit/services/asked.py"
CHAT: Final = "labkit/services/chat.py"
CUTS: Final = "labkit/services/cuts.py"
PROCESS: Final = "labkit/services/process.py"
PAGE: Final = "labkit/services/page/page.js"

_ANSWERS: Final = "tests/services/test_answers.py::"
_APP: Final = "tests/services/test_app.py::"
_CHAT: Final = "tests/services/test_chat.py::"
_CUTS: Final = "tests/services/test_cuts.py::"
_PROCESS: Final = "tests/services/test_process.py::"
_PAGE: Final = "tests/browser/test_answer_page.py::"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "owner check of an answer in memory",
        ANSWERS,
        "if answer.owner != owner:",
        "if False:",
        (
            f"{_ANSWERS}test_a_wrong_owner_and_an_unknown_id_get_the_same_answer_everywhere",
            f"{_APP}test_a_wrong_owner_and_an_unknown_id_get_the_same_answer",
        ),
    ),
    (
        "a stop before the first step is kept",
        ANSWERS,
        "if last.status in (record.RUNNING, record.RETRYING):",
        "if False:",
        (f"{_ANSWERS}test_a_stop_before_the_first_step_is_a_stop",),
    ),
    (
        "a stop returns when it is kept",
        ANSWERS,
        "            await asyncio.wait([answer.ending])\n        if",
        "        if",
        (f"{_ANSWERS}test_a_stop_is_kept_and_told_and_leaves_the_model",),
    ),
    (
        "the end of the service is no stop",
        ANSWERS,
        "stopped=lambda: answer.stopping",
        "stopped=lambda: True",
        (
            f"{_ANSWERS}"
            "test_the_end_of_the_service_is_no_stop_and_the_answer_goes_on_in_the_next_one",
        ),
    ),
    (
        "nothing is received that cannot be kept",
        ANSWERS,
        "        answer.cancel()  # nothing is received that cannot be kept\n",
        "",
        (
            f"{_ANSWERS}"
            "test_an_answer_that_the_store_refuses_leaves_the_model_and_tells_only_what_is_kept",
        ),
    ),
    (
        "of two that continue one does",
        ANSWERS,
        "if self._answers.get(run_id) is before:",
        "if True:",
        (f"{_ANSWERS}test_a_continue_whose_record_has_changed_meanwhile_loads_it_again",),
    ),
    (
        "a stop is not overruled by a continue that was loading",
        ANSWERS,
        "if before and not before.telling.log.closed:",
        "if before and before.telling.log.closed and False:",
        (f"{_ANSWERS}test_a_continue_that_is_still_loading_does_not_overrule_a_stop",),
    ),
    (
        "what is done does not go on",
        ANSWERS,
        "if run.status in record.FINAL:",
        "if False:",
        (
            f"{_ANSWERS}test_a_stop_is_kept_and_told_and_leaves_the_model",
            f"{_APP}test_a_stop_is_final",
        ),
    ),
    (
        "a log that was made again has a name of its own",
        ANSWERS,
        'Telling(run, f"{run.run_id}.{self._name()}")',
        "Telling(run, run.run_id)",
        (
            f"{_ANSWERS}"
            "test_a_log_that_is_gone_is_made_from_the_record_and_its_old_cursors_are_foreign",
        ),
    ),
    (
        "logs of ended answers do not gather",
        ANSWERS,
        "for name in ended[: -self._ended]:",
        "for name in ended[:0]:",
        (
            f"{_ANSWERS}"
            "test_a_log_that_is_gone_is_made_from_the_record_and_its_old_cursors_are_foreign",
        ),
    ),
    (
        "answers at a time are limited",
        ANSWERS,
        "answer = self._remember(begun)  # it counts from now on",
        "answer = _Answer(owner, Telling(begun, begun.run_id))",
        (
            f"{_ANSWERS}"
            "test_more_answers_at_a_time_than_allowed_are_refused_also_when_they_come_together",
        ),
    ),
    (
        "a bug is noted without its message",
        ANSWERS,
        "error=type(error).__name__",
        "error=str(error)",
        (f"{_ANSWERS}test_a_bug_is_told_without_its_message_and_noted_by_its_name",),
    ),
    (
        "the store is called off the loop",
        ANSWERS,
        "call: Callable[..., Awaitable[Any]] = asyncio.to_thread,",
        "call: Callable[..., Awaitable[Any]] = inline,",
        (f"{_APP}test_the_store_is_never_called_on_the_event_loop",),
    ),
    (
        "the page hears of nothing that is not kept",
        TELLING,
        "        self._queue.put_nowait((kind, data))\n",
        "        self.tell(kind, **data)\n",
        (
            f"{_ANSWERS}test_nothing_is_told_before_it_is_kept_and_many_events_cost_one_call",
            f"{_ANSWERS}"
            "test_an_answer_that_the_store_refuses_leaves_the_model_and_tells_only_what_is_kept",
        ),
    ),
    (
        "a tool waits for the record",
        TELLING,
        "            await self._queue.join()\n",
        "",
        (f"{_ANSWERS}test_a_tool_runs_only_when_what_came_before_it_is_kept",),
    ),
    (
        "the cursor is honoured",
        APP,
        "cut(frames(log, cursor, heartbeat",
        'cut(frames(log, "", heartbeat',
        (f"{_APP}test_a_cursor_goes_in_the_header_or_in_the_address_and_the_header_counts",),
    ),
    (
        "a reconnecting browser's own cursor counts",
        APP,
        'request.headers.get("last-event-id") or given',
        'given or request.headers.get("last-event-id", "")',
        (f"{_APP}test_a_cursor_goes_in_the_header_or_in_the_address_and_the_header_counts",),
    ),
    (
        "a cursor is refused while there is a status to say so",
        APP,
        "        log.after(cursor)  # refuses",
        "        # refuses",
        (f"{_APP}test_a_cursor_that_cannot_be_honoured_is_refused_by_name_before_the_stream",),
    ),
    (
        "heartbeats and the end move no cursor of the service's either",
        "labkit/recovery/event_log.py",
        'yield encode_comment("alive")',
        'yield encode_event("", id=log.cursor(log.last + 1))',
        (f"{_APP}test_a_silent_answer_sends_comments_that_move_no_cursor",),
    ),
    (
        "no proxy gathers events",
        APP,
        '    "x-accel-buffering": "no",  # or',
        "    # or",
        (f"{_APP}test_the_answer_of_a_stream_of_events_says_that_nothing_may_keep_it_back",),
    ),
    (
        "a body has a bounded size",
        ASKED,
        "if len(body) > MOST_BYTES:",
        "if False:",
        (f"{_APP}test_a_bad_request_gets_a_clear_error_and_asks_no_model",),
    ),
    (
        "a secret is not too short to be one",
        ASKED,
        "if not 16 <= len(secret) <= 200:",
        "if not secret:",
        (f"{_APP}test_without_a_secret_nothing_is_served[headers1]",),
    ),
    (
        "no script reads the cookie",
        APP,
        "httponly=True",
        "httponly=False",
        (f"{_APP}test_the_page_gives_a_cookie_that_scripts_and_other_sites_do_not_get",),
    ),
    (
        "a cookie counts on the service's own page only",
        ASKED,
        '"none") not in ("same-origin", "none"):',
        '"none") == "":',
        (f"{_APP}test_a_cookie_does_not_count_on_a_strange_page",),
    ),
    (
        "an error of ours is told without its words",
        APP,
        'return _refusal(500, "it failed on our side; try again")',
        "return _refusal(500, str(error))",
        (f"{_APP}test_an_error_of_ours_is_told_without_its_words",),
    ),
    (
        "a client that leaves ends the model",
        "labkit/providers/server.py",
        "leaving.add_done_callback(lambda _: playing.cancel())",
        "leaving.add_done_callback(lambda _: None)",
        (f"{_APP}test_a_client_that_leaves_is_a_disconnect_and_ends_the_model",),
    ),
    (
        "who has heard the end has not left",
        "labkit/providers/server.py",
        "    if playing.cancelled():\n        left()",
        "    left()",
        (f"{_APP}test_a_client_that_has_heard_the_end_has_not_left",),
    ),
    (
        "an unfinished answer is no finished one",
        CHAT,
        "        yield _failed(error.kind, begun)\n",
        '        yield Step("finish", delta=Delta("finish", reason="stop"))\n',
        (
            f"{_CHAT}test_after_visible_text_a_failure_ends_it_as_unfinished",
            f"{_APP}test_an_unmodified_client_is_told_when_the_answer_is_unfinished",
        ),
    ),
    (
        "a bug does not end the stream as finished",
        CHAT,
        "    except Exception as error:\n",
        "    except ZeroDivisionError as error:\n",
        (f"{_CHAT}test_neither_a_providers_message_nor_a_bugs_leaves",),
    ),
    (
        "half a call is not sent before it may stay",
        CHAT,
        "begun = begun or piece.visible or piece.kind == ",
        'begun = begun or piece.kind == "tool_call" or piece.kind == ',
        (f"{_CHAT}test_before_visible_text_a_failure_is_tried_again_and_leaves_no_trace",),
    ),
    (
        "the provider's message does not leave",
        CHAT,
        'return Step("error", code=kind, message=UNFINISHED)',
        'return Step("error", code=kind, message="no funds, key=sk-123")',
        (f"{_CHAT}test_neither_a_providers_message_nor_a_bugs_leaves",),
    ),
    (
        "a cut in the middle of a frame is a reset",
        CUTS,
        "                raise Dropped\n",
        "                return\n",
        (
            f"{_CUTS}test_what_goes_out_is_what_the_fault_says",
            f"{_APP}test_a_reset_is_a_reset_and_not_a_clean_end",
        ),
    ),
    (
        "frames really change places",
        CUTS,
        '(b"", frame + held)',
        '(b"", held + frame)',
        (f"{_CUTS}test_each_fault_really_strikes[swapped-2-0-1]",),
    ),
    (
        "each connection gets the cut that is planned for it",
        APP,
        "next(self._cuts, Cut())",
        "Cut()",
        (
            f"{_PROCESS}test_a_connection_gets_the_cut_that_is_planned_for_it",
            f"{_APP}test_each_fault_on_the_socket_leaves_the_text_once_and_whole[between]",
        ),
    ),
    (
        "no service outlives a kernel that is killed",
        "labkit/providers/process.py",
        "    for watch in (_watch_the_pipe, partial(_watch_the_parent, os.getppid())):\n",
        "    for watch in ():\n",
        (f"{_PROCESS}test_a_kernel_that_is_killed_leaves_no_child",),
    ),
    (
        "a service that cannot be served says why",
        "labkit/providers/process.py",
        "    except Exception as error:\n",
        "    except ServerError as error:\n",
        (f"{_PROCESS}test_what_cannot_be_served_is_one_line_with_its_reason",),
    ),
    (
        "every answer plays the script from its first attempt",
        PROCESS,
        "attempts=(script.attempt(attempt),)",
        "attempts=script.attempts[-1:]",
        (f"{_PROCESS}test_every_answer_plays_the_script_from_its_first_attempt",),
    ),
    (
        "the page drops what is sent twice",
        PAGE,
        "if (number <= seen) return;",
        "if (false) return;",
        (
            f"{_PAGE}test_frames_that_come_in_bytes_twice_or_in_another_order_give_the_text_once"
            "[twice]",
        ),
    ),
    (
        "the page never goes on over a gap",
        PAGE,
        "if (number > seen + 1) return watch();",
        "if (false) return watch();",
        (
            f"{_PAGE}test_frames_that_come_in_bytes_twice_or_in_another_order_give_the_text_once"
            "[swapped]",
        ),
    ),
    (
        "the page adds only what it does not show yet",
        PAGE,
        "segment.appendData(text.slice(known));",
        "segment.appendData(text);",
        (f"{_PAGE}test_a_service_that_has_forgotten_the_events_is_asked_for_the_record",),
    ),
    (
        "the page comes back where the browser has given up",
        PAGE,
        "setTimeout(watch, PAUSE); // it has given up",
        "0;",
        (f"{_PAGE}test_a_service_that_has_forgotten_the_events_is_asked_for_the_record",),
    ),
    (
        "a lost connection is told from an error that is sent",
        PAGE,
        "(event instanceof MessageEvent ? take(event) : lost())",
        "lost()",
        (f"{_PAGE}test_a_failed_answer_says_so_and_loads_nothing_again",),
    ),
    (
        "text nodes only",
        PAGE,
        "segment.appendData(told.text);",
        "segment.parentNode.innerHTML += told.text;",
        (f"{_PAGE}test_hostile_text_stays_text",),
    ),
    (
        "a question is shown as text",
        PAGE,
        "made.textContent = text;",
        "made.innerHTML = text;",
        (f"{_PAGE}test_hostile_text_stays_text",),
    ),
    (
        "a reload knows which answer it shows",
        PAGE,
        'history.pushState(null, "", `#${id}`);',
        "0;",
        (f"{_PAGE}test_a_reload_in_the_middle_goes_on_and_doubles_nothing",),
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
