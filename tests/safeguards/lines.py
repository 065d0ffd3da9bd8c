"""Single lines that an attacker changed and that no test had missed."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

TOOLS: Final = "labkit/recovery/tools.py"
RECEIVING: Final = "labkit/recovery/stream/receiving.py"
CLIENT: Final = "labkit/recovery/stream/client.py"
RECORD: Final = "labkit/recovery/stream/record.py"
CONTINUATION: Final = "labkit/recovery/stream/continuation.py"
LOG: Final = "labkit/recovery/event_log.py"
ASKED: Final = "labkit/services/asked.py"
ANSWERS: Final = "labkit/services/answers.py"
TELLING: Final = "labkit/services/telling.py"
PROCESS: Final = "labkit/services/process.py"
APP: Final = "labkit/services/app.py"
JUDGES: Final = "labkit/scenarios/stream_judges.py"
FIGURES: Final = "labkit/scenarios/figures.py"
FACTS: Final = "labkit/scenarios/facts.py"
DESK: Final = "labkit/scenarios/desk.py"
CURSORS: Final = "labkit/teaching/cursors.py"
TOKEN: Final = "labkit/teaching/token.py"

_TOOLS: Final = "tests/recovery/test_tools.py::"
_KEY: Final = f"{_TOOLS}test_the_same_arguments_of_another_tool_answer_or_tenant_are_another_call"
_RECEIVING: Final = "tests/recovery/stream/test_receiving.py::"
_BY_HAND: Final = "tests/recovery/stream/test_by_hand.py::"
_LOG: Final = "tests/recovery/test_event_log.py::"
_ASKED: Final = "tests/services/test_asked.py::"
_TELLING: Final = "tests/services/test_telling.py::"
_PAGE: Final = (
    "tests/services/test_app.py::test_the_page_is_not_stored_and_no_base_is_put_under_its_addresses"
)
_JUDGES: Final = "tests/scenarios/test_stream_judges.py::"
_FACTS: Final = "tests/scenarios/test_stream_facts.py::"
_DECIDES: Final = f"{_FACTS}test_the_last_effect_and_the_last_connection_decide_or_the_end"
_DESK: Final = "tests/scenarios/test_desk.py::"
_CURSORS: Final = "tests/teaching/test_cursors.py::"

# name, file, old, new, and the test that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "a call's key holds the tool",
        TOOLS,
        "[owner.tenant, run_id, name, arguments]",
        "[owner.tenant, run_id, arguments]",
        f"{_KEY}[tool]",
    ),
    (
        "a call's key holds the answer",
        TOOLS,
        "[owner.tenant, run_id, name, arguments]",
        "[owner.tenant, name, arguments]",
        f"{_KEY}[answer]",
    ),
    (
        "a call's key holds the tenant",
        TOOLS,
        "[owner.tenant, run_id, name",
        "[run_id, name",
        f"{_KEY}[tenant]",
    ),
    (
        "only a tool that takes nothing may be given nothing",
        TOOLS,
        "nothing = tool is not None and tool.takes_nothing",
        "nothing = True",
        f"{_TOOLS}test_a_call_without_arguments_is_admitted_only_for_a_tool_that_takes_none[False]",
    ),
    (
        "a finish lets out what was held back",
        RECEIVING,
        'yield Delta("text", joint.end())\n            yield replace',
        "pass\n            yield replace",
        f"{_RECEIVING}test_text_held_back_at_the_joint_comes_out_at_the_finish",
    ),
    (
        "continued characters add up",
        RECEIVING,
        "after.continued + len(event.text_delta)",
        "len(event.text_delta)",
        f"{_RECEIVING}test_the_limit_of_characters_counts_all_pieces_of_a_continuation",
    ),
    (
        "the limit of characters itself is allowed",
        RECEIVING,
        "live.run.continued > limit",
        "live.run.continued >= limit",
        f"{_RECEIVING}test_as_many_characters_as_the_limit_says_are_allowed",
    ),
    (
        "resumed events have the time that is left",
        RECEIVING,
        "deadline = clock() + time_left(live)",
        "deadline = clock() + live.services.policy.total",
        f"{_RECEIVING}test_the_time_limit_ends_events_that_are_resumed_too",
    ),
    (
        "by hand, the first cause is forgotten",
        CLIENT,
        'first_cause="", recoveries=0',
        "recoveries=0",
        f"{_BY_HAND}test_the_page_is_told_what_broke_now_and_not_what_broke_before",
    ),
    (
        "by hand, continued characters are forgotten",
        CLIENT,
        "recoveries=0, continued=0",
        "recoveries=0",
        f"{_BY_HAND}test_characters_that_were_continued_before_do_not_count",
    ),
    (
        "by hand, the time that was spent is forgotten",
        CLIENT,
        "continued=0, recovering_since=None",
        "continued=0",
        f"{_BY_HAND}test_the_time_before_does_not_count",
    ),
    (
        "the joint is with the segment's own text",
        CLIENT,
        "Joint(run.text)",
        'Joint("".join(run.chunks))',
        f"{_RECEIVING}test_text_of_an_earlier_segment_is_no_part_of_the_draft_that_is_joined",
    ),
    (
        "an empty segment is not closed",
        CLIENT,
        "if before.text:",
        "if before.chunks:",
        f"{_RECEIVING}test_a_segment_into_which_no_text_came_is_not_closed",
    ),
    (
        "an owner is a digest",
        ASKED,
        "hashlib.sha256(secret.encode()).hexdigest()",
        "secret",
        f"{_ASKED}test_an_owner_holds_no_secret_and_is_the_same_for_the_same_secret",
    ),
    (
        "a secret has a greatest length",
        ASKED,
        "16 <= len(secret) <= 200",
        "16 <= len(secret)",
        f"{_ASKED}test_a_shorter_and_a_longer_secret_are_refused[201]",
    ),
    (
        "only true is a stream",
        ASKED,
        'asked.get("stream") is not True',
        'not asked.get("stream")',
        f"{_ASKED}test_only_true_asks_for_a_stream[1]",
    ),
    (
        "going on counts among the answers at a time",
        ANSWERS,
        "        self._refuse_too_many()\n        self._begin(",
        "        self._begin(",
        "tests/services/test_answers.py::"
        "test_going_on_by_hand_counts_among_the_answers_that_are_written_at_a_time",
    ),
    (
        "what is stored is told by the store",
        TELLING,
        "kept.version, kept.stored_chunks",
        "kept.version, records[-1].stored_chunks",
        f"{_TELLING}test_each_save_says_how_many_pieces_are_stored_already",
    ),
    (
        "a view is a copy",
        TELLING,
        "list(self.segments)",
        "self.segments",
        f"{_TELLING}test_a_view_does_not_change_with_what_is_told_later",
    ),
    (
        "a service plays its script at its speed",
        PROCESS,
        "FakeProvider(played, observe, speed=speed)",
        "FakeProvider(played, observe)",
        "tests/services/test_asking.py::"
        "test_the_speed_of_a_service_divides_the_waits_of_its_script",
    ),
    (
        "the page is not stored",
        APP,
        '    "cache-control": "no-store",\n    "x-content',
        '    "x-content',
        _PAGE,
    ),
    (
        "the page has no base",
        APP,
        "base-uri 'none'; ",
        "",
        _PAGE,
    ),
    (
        "four characters behind a hole are enough",
        JUDGES,
        "HOLE: Final = 4",
        "HOLE: Final = 12",
        f"{_JUDGES}test_four_characters_behind_a_hole_are_no_coincidence[ijkl-found1]",
    ),
    (
        "the first text under a number counts",
        JUDGES,
        'sent.setdefault(event["sequence"], event["text"])',
        'sent[event["sequence"]] = event["text"]',
        f"{_JUDGES}test_a_number_that_is_sent_again_counts_as_it_was_sent_first",
    ),
    (
        "calls cost tokens",
        FIGURES,
        ' + _length(events, "call")',
        "",
        "tests/scenarios/test_figures.py::"
        "test_the_arguments_of_a_tool_call_are_counted_as_tokens_too",
    ),
    (
        "the end of a segment decides that it is asked again",
        FACTS,
        "(new or [back])[-1].index",
        "back.index",
        f"{_FACTS}test_an_answer_that_is_asked_again_is_decided_by_the_end_of_its_segment",
    ),
    (
        "the last effect decides",
        FACTS,
        "(real or events)[-1]",
        "(real or events)[0]",
        _DECIDES,
    ),
    (
        "the last connection decides",
        FACTS,
        "(made or events)[-1]",
        "(made or events)[0]",
        _DECIDES,
    ),
    (
        "a gap is looked for at the end of the run too",
        CURSORS,
        " | {end}",
        "",
        f"{_CURSORS}test_a_gap_that_is_there_at_the_last_step_lasts_to_the_end_of_the_run",
    ),
    (
        "a gap is as wide as it ever was",
        CURSORS,
        "max(most, more)",
        "more",
        f"{_CURSORS}test_a_gap_that_shrinks_is_told_by_its_widest",
    ),
    (
        "the user's stop stands in the chart",
        CURSORS,
        'event.actor == "user" and event.kind == "cancel"',
        "False",
        f"{_CURSORS}test_the_chart_says_when_the_user_stops",
    ),
    (
        "a stop has no cause",
        RECORD,
        'status=STOPPED, cause=""',
        "status=STOPPED",
        "tests/recovery/stream/test_record.py::test_a_stop_takes_away_what_broke_before_it",
    ),
    (
        "a short repeat holds nothing back",
        CONTINUATION,
        "max(len(held) + 1, self._min_overlap)",
        "len(held) + 1",
        "tests/recovery/stream/test_continuation.py::"
        "test_nothing_is_held_back_for_a_repeat_that_would_be_too_short_to_be_cut",
    ),
    (
        "the end of a log wakes its readers",
        LOG,
        "self.closed = True\n        self._wake()",
        "self.closed = True",
        f"{_LOG}test_a_reader_that_waits_is_woken_by_the_end_of_the_stream",
    ),
    (
        "an old cursor is refused at once",
        LOG,
        "        self._refuse_a_jump(sequence)\n",
        "",
        f"{_LOG}test_a_cursor_before_what_is_kept_is_refused_before_anything_is_read",
    ),
    (
        "a cut lets half a frame through",
        DESK,
        "                    yield frame[: len(frame) // 2]\n",
        "",
        f"{_DESK}test_a_connection_that_is_cut_brings_the_first_half_of_a_frame",
    ),
    (
        "a late frame comes once",
        DESK,
        '                yield late\n                late = b""\n',
        "                yield late\n",
        f"{_DESK}test_an_event_that_is_late_comes_once_behind_the_next",
    ),
    (
        "a doubled frame is sent twice",
        DESK,
        'frame * 2 if fault == "duplicate" else frame',
        "frame",
        f"{_DESK}test_an_event_that_is_doubled_comes_twice",
    ),
    (
        "a point has nine digits at most",
        TOKEN,
        "{1,9}",
        "{1,99}",
        "tests/teaching/test_token.py::test_a_point_has_nine_digits_at_most",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
