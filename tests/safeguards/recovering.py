"""The safeguards of the lessons on broken streams: scenarios, judges, figures, exercises."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

CLIENT: Final = "labkit/recovery/stream/client.py"
RECEIVING: Final = "labkit/recovery/stream/receiving.py"
DESK: Final = "labkit/scenarios/desk.py"
JUDGES: Final = "labkit/scenarios/stream_judges.py"
FIGURES: Final = "labkit/scenarios/figures.py"
FACTS: Final = "labkit/scenarios/facts.py"
CURSORS: Final = "labkit/teaching/cursors.py"
TRIALS: Final = "labkit/teaching/trials.py"

_CLIENT: Final = "tests/recovery/stream/test_client.py::"
_STREAMS: Final = "tests/scenarios/test_streams.py::"
_FIGURES: Final = "tests/scenarios/test_figures.py::"
_CURSORS: Final = "tests/teaching/test_cursors.py::"
_EXERCISES: Final = "tests/teaching/test_exercises.py::"
_NAMED: Final = f"{_STREAMS}test_each_judge_names_its_naive_client"
_CLEAN: Final = f"{_STREAMS}test_a_scenario_of_broken_streams_shows_what_it_claims"
_WIRE: Final = f"{_STREAMS}test_no_accident_on_the_wire_loses_doubles_or_splices_text"
_WRONG: Final = f"{_EXERCISES}test_a_typical_wrong_answer_is_told_its_case"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "events that bring nothing new are not taken up again",
        RECEIVING,
        "live.can_resume = live.run.next_sequence > before",
        "live.can_resume = True",
        (f"{_CLIENT}test_events_that_end_without_a_finish_reason_are_not_taken_up_again",),
    ),
    (
        "numbers of our own are not taken for those of a service",
        CLIENT,
        "live.can_resume and run.attempt == 1",
        "live.can_resume",
        (
            f"{_CLIENT}"
            "test_events_of_another_request_are_never_taken_for_those_that_a_service_has_kept",
        ),
    ),
    (
        "a half call with an id that was used before is kept",
        "labkit/recovery/stream/record.py",
        "(no.call_id, no.arguments) == (call.call_id, call.arguments)",
        "no.call_id == call.call_id",
        (
            "tests/recovery/stream/test_record.py::"
            "test_a_half_call_is_kept_though_another_attempt_used_its_id",
        ),
    ),
    (
        "an end without a finish reason is asked about once more",
        RECEIVING,
        "live.can_resume = live.run.next_sequence > before",
        "live.can_resume = False",
        (f"{_WIRE}[5-lose]",),
    ),
    (
        "where a service keeps the events, the model is asked there",
        CLIENT,
        "if services.begin is None or services.resume is None:",
        "if True:",
        (f"{_CLIENT}test_an_answer_is_begun_at_the_service_that_keeps_its_events",),
    ),
    (
        "the record is saved under the page's feet and not after it",
        DESK,
        'self._observe.of("record")("saved", status=saved.status, **told)',
        "pass",
        (f"{_STREAMS}test_what_is_seen_was_saved_before",),
    ),
    (
        "a cut breaks the frame in its middle",
        DESK,
        "yield frame[: len(frame) // 2]",
        "yield frame",
        (f"{_CURSORS}test_the_chart_says_which_cursor_is_ahead_of_which_and_when",),
    ),
    (
        "a fault on the wire strikes once",
        DESK,
        "self._due.remove(fault)",
        "pass",
        (f"{_WIRE}[3-cut]", f"{_WIRE}[3-lose]"),
    ),
    (
        "a service of a scenario ends with its run",
        "labkit/simulation/playing.py",
        "await end()",
        "pass",
        (f"{_STREAMS}test_a_service_that_is_still_writing_ends_with_the_run",),
    ),
    (
        "a hole in the page's text is found",
        JUDGES,
        "rest in said[past + 1 :]",
        "False",
        (f"{_NAMED}[gap_spliced]",),
    ),
    (
        "a continuation without its repeat is no hole",
        JUDGES,
        "anywhere=bool(page)",
        "anywhere=False",
        (f"{_CLEAN}[cut]",),
    ),
    (
        "a cursor past what was shown is found",
        JUDGES,
        "if len(skipped) > len(shown):",
        "if False:",
        (f"{_NAMED}[cursor_overshoot]",),
    ),
    (
        "an effect of an unfinished call is found",
        JUDGES,
        'open_call = event.kind == "call"',
        "open_call = False",
        (f"{_NAMED}[half_call_run]",),
    ),
    (
        "an effect that took place twice is found",
        JUDGES,
        "if event.data in seen:",
        "if False:",
        (f"{_NAMED}[effect_repeated]",),
    ),
    (
        "a request after the stop is found",
        JUDGES,
        'if stopped and event.kind == "request":',
        "if False:",
        (f"{_NAMED}[stop_overruled]",),
    ),
    (
        "a page that clears its text is found",
        JUDGES,
        'if shown and event.actor == "page" and event.kind == "cleared":',
        "if False:",
        (f"{_NAMED}[text_cleared]",),
    ),
    (
        "a repeat that was left out is no lost tail",
        "labkit/simulation/judge.py",
        'there = not page or "".join(page).endswith(whole)',
        "there = not page",
        (f"{_CLEAN}[before_finish]",),
    ),
    (
        "what is asked is billed as well",
        FIGURES,
        "(asked + said + ",
        "(said + ",
        (f"{_FIGURES}test_tokens_are_those_of_requests_and_answers_four_characters_each",),
    ),
    (
        "what no reader got is counted as thrown away",
        FIGURES,
        "max(0, said - len(run.text))",
        "max(0, said - said)",
        (
            f"{_FIGURES}"
            "test_asking_again_throws_away_what_was_shown_and_continuing_costs_a_longer_request",
        ),
    ),
    (
        "an event that is sent again is not sent twice",
        FIGURES,
        'event["sequence"] > far',
        "True",
        (f"{_FIGURES}test_the_cursors_part_where_the_connection_is_cut_and_meet_at_the_end",),
    ),
    (
        "a gap between two cursors is told in both directions",
        CURSORS,
        "for ahead, behind in ((one, other), (other, one)):",
        "for ahead, behind in ((one, other),):",
        (f"{_CURSORS}test_text_that_is_seen_and_not_saved_is_a_gap_the_other_way_round",),
    ),
    (
        "a loss is noticed with the next event and not at once",
        FACTS,
        'return Fact("at once" if broke.time == at.time else "with the next event", broke.index)',
        'return Fact("at once", broke.index)',
        (
            "tests/scenarios/test_stream_facts.py::test_the_key_of_a_table_is_read_from_its_runs[wire]",
        ),
    ),
    (
        "a reader that an error leaves has not solved it",
        TRIALS,
        'if run.error is not None:\n        return f"{type(run.error).__name__} leaves it',
        'if False:\n        return f"{type(run.error).__name__} leaves it',
        (_WRONG,),
    ),
    (
        "a merge that cuts from one character on has not solved it",
        TRIALS,
        "same(merge(*case), merge_overlap(*case))",
        "same(merge(*case), merge_overlap(*case, min_overlap=1))",
        (f"{_EXERCISES}test_it_is_unsolved_as_handed_out[04.merge]",),
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
