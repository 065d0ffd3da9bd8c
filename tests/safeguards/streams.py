"""The safeguards of streams: decoder, log, record, recovering client and stores."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

SSE: Final = "labkit/recovery/sse.py"
LOG: Final = "labkit/recovery/event_log.py"
TOOLS: Final = "labkit/recovery/tools.py"
RECORD: Final = "labkit/recovery/stream/record.py"
ENDING: Final = "labkit/recovery/stream/ending.py"
FINISH: Final = "labkit/recovery/stream/finish.py"
NUMBERING: Final = "labkit/recovery/stream/numbering.py"
CONTINUATION: Final = "labkit/recovery/stream/continuation.py"
RECEIVING: Final = "labkit/recovery/stream/receiving.py"
CLIENT: Final = "labkit/recovery/stream/client.py"
SQL: Final = "labkit/stores/sql.py"
OPENING: Final = "labkit/stores/opening.py"
CHAT: Final = "labkit/providers/chat.py"

_SSE: Final = "tests/recovery/test_sse.py::"
_LOG: Final = "tests/recovery/test_event_log.py::"
_STREAM: Final = "tests/recovery/stream/"
_CASES: Final = "tests/cases/"
_STORES: Final = "tests/stores/test_streams.py::"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "only CR, LF and CRLF end a line",
        SSE,
        "lines = chunk.splitlines()",
        "lines = [line.encode() for line in chunk.decode('utf-8', 'replace').splitlines()]",
        (f"{_CASES}test_sse.py::test_the_chunks_of_a_wire_case_give_its_events[1-json]",),
    ),
    (
        "a CR and an LF cut apart are one line end",
        SSE,
        'self._after_cr = chunk.endswith(b"\\r")',
        "self._after_cr = False",
        (f"{_CASES}test_sse.py::test_case_12_chunking_does_not_matter",),
    ),
    (
        "a chunk without bytes ends no pair of CR and LF",
        SSE,
        "if self._after_cr and chunk:",
        "if self._after_cr:",
        (
            f"{_CASES}test_sse.py::"
            "test_the_chunks_of_a_wire_case_give_its_events[2-empty_chunk_between]",
        ),
    ),
    (
        "an unfinished block moves no id",
        SSE,
        "self._id = _text(value)",
        "self._id = self.last_event_id = _text(value)",
        (f"{_SSE}test_an_id_counts_when_its_block_ends_and_not_before",),
    ),
    (
        "an id with NUL is ignored",
        SSE,
        'elif name == b"id" and b"\\0" not in value:',
        'elif name == b"id":',
        (f"{_CASES}test_sse.py::test_the_chunks_of_a_wire_case_give_its_events[7-ids]",),
    ),
    (
        "a retry takes ASCII digits only",
        SSE,
        'elif name == b"retry" and value.isdigit():',
        'elif name == b"retry" and value.strip().isdigit():',
        (f"{_CASES}test_sse.py::test_case_8_the_retry_field_takes_ascii_digits_only",),
    ),
    (
        "one space after the colon is ignored, not all",
        SSE,
        "value = value[1:]",
        "value = value.lstrip()",
        (f"{_SSE}test_what_is_encoded_comes_out_again",),
    ),
    (
        "an event's type does not leak into the next block",
        SSE,
        '        self._event = ""\n        self._size = 0',
        "        self._size = 0",
        (
            f"{_CASES}test_sse.py::"
            "test_the_chunks_of_a_wire_case_give_its_events[6-no_data_no_dispatch]",
        ),
    ),
    (
        "an event has a bounded size",
        SSE,
        "if self._size + len(self._line) > self._limit:",
        "if False:",
        (f"{_SSE}test_a_line_that_never_ends_is_refused_as_soon_as_it_is_too_long",),
    ),
    (
        "invalid UTF-8 does not end a stream",
        SSE,
        'return value.decode("utf-8", "replace")',
        'return value.decode("utf-8")',
        (f"{_CASES}test_sse.py::test_the_chunks_of_a_wire_case_give_its_events",),
    ),
    (
        "no field is injected by a line end",
        SSE,
        'if "\\r" in text or "\\n" in text:',
        'if "\\n" in text:',
        (f"{_SSE}test_what_would_inject_a_field_is_refused",),
    ),
    (
        "a heartbeat carries no id",
        LOG,
        'yield encode_comment("alive")',
        'yield encode_event("", event="ping", id=log.cursor(log.last))',
        (
            f"{_LOG}test_an_idle_stream_sends_a_comment_every_15_seconds_and_it_carries_no_id",
            f"{_CASES}test_streams.py::test_case_15_our_heartbeats_carry_no_id_and_are_no_events",
        ),
    ),
    (
        "the end of a stream carries no id",
        LOG,
        'yield encode_event("", event="end")',
        'yield encode_event("", event="end", id=log.cursor(log.last + 1))',
        (f"{_LOG}test_events_carry_their_cursor_and_the_end_carries_none",),
    ),
    (
        "a cursor of another stream is refused",
        LOG,
        "name == self.name and digits",
        "digits",
        (f"{_LOG}test_a_cursor_that_this_stream_never_gave_out_is_refused_by_name",),
    ),
    (
        "a cursor ahead of the stream is refused",
        LOG,
        " and int(number) <= self.last",
        "",
        (f"{_LOG}test_a_cursor_that_this_stream_never_gave_out_is_refused_by_name",),
    ),
    (
        "a reader never jumps over events that are gone",
        LOG,
        "if seen < oldest - 1:",
        "if seen < oldest - 2:",
        (f"{_LOG}test_a_cursor_whose_next_event_is_gone_is_too_old",),
    ),
    (
        "a reader waits for the news that came after it looked",
        LOG,
        "        self._news.set()\n        self._news = asyncio.Event()",
        "        self._news = asyncio.Event()",
        (f"{_LOG}test_an_event_that_comes_at_any_step_of_a_reader_is_seen_once_and_in_order",),
    ),
    (
        "duplicate check",
        RECORD,
        "if event.sequence < run.next_sequence:",
        "if event.sequence < run.next_sequence - 1:",
        (
            f"{_STREAM}test_record.py::test_an_event_that_is_there_already_changes_nothing",
            f"{_STREAM}test_client.py::test_a_duplicate_event_is_shown_once",
        ),
    ),
    (
        "gap check",
        RECORD,
        "if event.sequence > run.next_sequence:",
        "if False:",
        (
            f"{_STREAM}test_record.py::"
            "test_a_gap_is_an_error_that_names_the_missing_events_and_leaves_the_record",
            f"{_STREAM}test_client.py::test_a_gap_is_asked_for_again_and_never_spliced",
        ),
    ),
    (
        "nothing is added to what is final",
        RECORD,
        '    if run.status in FINAL:\n        raise StreamEnded(f"the answer is {run.status}: ev',
        '    if False:\n        raise StreamEnded(f"the answer is {run.status}: ev',
        (f"{_STREAM}test_record.py::test_nothing_is_added_to_what_is_final",),
    ),
    (
        "complete-JSON check",
        RECORD,
        "return value if isinstance(value, dict) else None",
        "return value",
        (
            f"{_STREAM}test_record.py::test_anything_else_is_nothing_and_the_raw_text_stays",
            f"{_CASES}test_streams.py::"
            "test_case_30_half_arguments_are_never_run_and_their_raw_text_is_kept",
        ),
    ),
    (
        "no arguments stand for an empty object only after the calls have ended",
        RECORD,
        "return {} if takes_nothing and run.finish_reason == TOOL_CALLS else None",
        "return {} if takes_nothing else None",
        (
            f"{_STREAM}test_record.py::"
            "test_no_text_stands_for_no_arguments_only_after_the_calls_have_ended",
        ),
    ),
    (
        "half a call is not carried into the next attempt",
        RECORD,
        "        calls=(),\n        refused=",
        "        refused=",
        (
            f"{_STREAM}test_record.py::test_a_new_attempt_forgets_half_calls_and_keeps_the_text",
            f"{_CASES}test_streams.py::test_case_33_a_call_is_put_together_from_one_attempt_only",
        ),
    ),
    (
        "another id under the same index is another call",
        NUMBERING,
        "        if delta.call_id:\n            self._open[index] = delta.call_id\n        elif",
        "        if delta.call_id and index not in self._open:\n"
        "            self._open[index] = delta.call_id\n        elif",
        (f"{_CASES}test_streams.py::test_case_32_streamed_calls_are_put_together_by_id_and_index",),
    ),
    (
        "a provider's own word for the end is normalised",
        NUMBERING,
        '{"finish_reason": finish_reason(self._provider, delta.reason)}',
        '{"finish_reason": delta.reason}',
        (f"{_STREAM}test_record.py::test_a_providers_own_word_for_the_end_is_understood",),
    ),
    (
        "a finish word that nobody knows is no stop",
        FINISH,
        "_WORDS[provider].get(word, UNKNOWN)",
        "_WORDS[provider].get(word, STOP)",
        (f"{_STREAM}test_finish.py::test_a_word_that_is_not_known_is_no_stop_and_none_is_none",),
    ),
    (
        "stop is final",
        ENDING,
        "if run.status == STOPPED:",
        "if False:",
        (f"{_STREAM}test_ending.py::test_each_end_has_its_name_and_its_way_back",),
    ),
    (
        "a call needs its finish reason",
        ENDING,
        "whole = run.finish_reason in (STOP, TOOL_CALLS) and _all_complete(run)",
        "whole = _all_complete(run)",
        (f"{_STREAM}test_ending.py::test_each_end_has_its_name_and_its_way_back",),
    ),
    (
        "a structured answer is whole JSON or asked for again",
        ENDING,
        "if run.request.structured and not (run.finish_reason == STOP and _is_json(run.text)):",
        "if False:",
        (f"{_STREAM}test_ending.py::test_each_end_has_its_name_and_its_way_back",),
    ),
    (
        "no continuation while tools are offered and none has run",
        ENDING,
        "confirmed = not run.request.tools or bool(run.executed)",
        "confirmed = True",
        (
            f"{_CASES}test_streams.py::"
            "test_case_36_where_no_continuation_may_go_out_the_request_is_the_first_one",
        ),
    ),
    (
        "what no other try mends is not tried again",
        ENDING,
        "if run.cause in FINAL_CAUSES:",
        "if False:",
        (
            f"{_STREAM}test_client.py::"
            "test_what_no_other_try_mends_is_not_tried_again_and_can_be_gone_on_with_by_hand",
        ),
    ),
    (
        "the draft is no message of the assistant",
        CONTINUATION,
        'Message("user", _GO_ON',
        'Message("assistant", _GO_ON',
        (
            f"{_STREAM}test_continuation.py::"
            "test_the_draft_is_quoted_and_is_never_an_assistants_message",
        ),
    ),
    (
        "overlap minimum",
        CONTINUATION,
        "range(longest, min_overlap - 1, -1)",
        "range(longest, 0, -1)",
        (
            f"{_STREAM}test_continuation.py::test_a_minimum_of_one_loses_a_digit_and_four_does_not",
            f"{_CASES}test_streams.py::"
            "test_case_34_text_is_merged_only_where_the_end_meets_the_beginning",
        ),
    ),
    (
        "the joint waits as long as the draft's end may be repeated",
        CONTINUATION,
        'return "" if self._may_grow(self._held) else self._made()',
        "return self._made()",
        (
            f"{_STREAM}test_continuation.py::test_pieces_are_joined_like_the_whole_however_they_are_cut",
        ),
    ),
    (
        "permission check",
        TOOLS,
        "if not tool.allowed(owner):",
        "if False:",
        (f"{_STREAM}test_client.py::test_a_tool_runs_only_for_whom_it_is_allowed",),
    ),
    (
        "schema check",
        TOOLS,
        "if wrong := tool.check(arguments):",
        'if wrong := "":',
        (
            f"{_STREAM}test_client.py::"
            "test_an_unknown_tool_and_wrong_arguments_are_refused_and_the_model_is_told",
        ),
    ),
    (
        "an event is kept before the page hears of it",
        RECEIVING,
        "                live.change(after)\n                if event.text_delta:\n"
        '                    live.services.page("text_delta", text=event.text_delta)\n',
        "                if event.text_delta:\n"
        '                    live.services.page("text_delta", text=event.text_delta)\n'
        "                live.change(after)\n",
        (f"{_STREAM}test_client.py::test_an_event_is_kept_before_the_page_hears_of_it",),
    ),
    (
        "half of a repeat is not shown when the continuation breaks",
        "labkit/recovery/stream/continuation.py",
        'return "" if self._may_grow(self._held) else self._made()',
        "return self._made()",
        (f"{_STREAM}test_client.py::test_text_held_back_at_the_joint_is_dropped_when_it_breaks",),
    ),
    (
        "a continuation has a bounded length",
        RECEIVING,
        "if live.run.recoveries and live.run.continued > limit:",
        "if False:",
        (
            f"{_STREAM}test_client.py::"
            "test_more_characters_than_allowed_end_the_continuation_with_the_text_kept",
        ),
    ),
    (
        "recoveries are limited",
        CLIENT,
        "if not by_hand and not _may_recover(live):",
        "if False:",
        (f"{_STREAM}test_client.py::test_the_program_recovers_as_often_as_it_may_and_no_more",),
    ),
    (
        "time is limited",
        RECEIVING,
        "left = since + live.services.limits.seconds - live.services.now()",
        "left = live.services.policy.total",
        (
            f"{_STREAM}test_client.py::"
            "test_the_time_limit_counts_from_the_first_recovery_and_ends_a_slow_one",
        ),
    ),
    (
        "a cancel is kept as a stop before it leaves",
        CLIENT,
        'ended = stop(live.run) if live.services.stopped() else interrupt(live.run, "shutdown")',
        "ended = live.run",
        (
            f"{_STREAM}test_client.py::"
            "test_a_users_stop_is_final_and_nothing_goes_on_in_the_background",
            f"{_STREAM}test_client.py::test_a_shutdown_is_no_stop_and_can_be_gone_on_with",
        ),
    ),
    (
        "a call that was run is looked up first",
        CLIENT,
        "elif admitted.done is None:",
        "else:",
        (
            f"{_STREAM}test_client.py::"
            "test_a_tool_that_was_run_is_looked_up_when_the_answer_after_it_is_cut",
        ),
    ),
    (
        "the page is told the first error",
        CLIENT,
        "code = live.run.first_cause or classify_end(live.run)",
        "code = live.run.cause or classify_end(live.run)",
        (
            f"{_CASES}test_streams.py::"
            "test_case_36_the_first_error_is_shown_where_the_continuation_is_refused",
        ),
    ),
    (
        "rounds of tools are limited",
        CLIENT,
        "ROUNDS: Final = 8",
        "ROUNDS: Final = 19",
        (f"{_STREAM}test_client.py::test_a_model_that_calls_for_ever_is_ended_with_its_text_kept",),
    ),
    (
        "owner check when a record is loaded or written",
        SQL,
        "return (RUNS.c.run_id == run_id) & theirs",
        "return RUNS.c.run_id == run_id",
        (
            f"{_STORES}test_a_wrong_owner_and_an_unknown_id_get_the_same_answer[run-1-owner0-sqlite]",
            f"{_STORES}test_a_foreign_writer_of_the_right_version_changes_nothing[sqlite]",
        ),
    ),
    (
        "owner check in memory",
        "labkit/stores/memory.py",
        "if run is None or run.owner != owner:",
        "if run is None:",
        (
            f"{_STORES}test_a_wrong_owner_and_an_unknown_id_get_the_same_answer[run-1-owner0-memory]",
        ),
    ),
    (
        "of two writers one is refused",
        SQL,
        " & (RUNS.c.version == run.version)",
        "",
        (f"{_STORES}test_the_second_of_two_writers_is_refused_and_the_first_is_kept[sqlite]",),
    ),
    (
        "no password in an error about a URL",
        "labkit/stores/errors.py",
        "hidden.render_as_string(hide_password=True)",
        "hidden.render_as_string(hide_password=False)",
        (
            "tests/stores/test_opening.py::"
            "test_a_url_that_cannot_be_opened_is_refused_with_what_is_possible",
        ),
    ),
    (
        "an error object in a chunk is not passed over",
        CHAT,
        'if chunk.get("error") is not None:',
        "if False:",
        ("tests/providers/test_chat.py::test_a_capture_says_what_is_expected_of_it[error]",),
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
