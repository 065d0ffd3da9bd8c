"""What makes an exploration honest: what strikes, what counts, and how it is told."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

_STRIKING: Final = "labkit/simulation/striking.py"
_LOOP: Final = "labkit/simulation/faults.py"
_PLAYING: Final = "labkit/simulation/playing.py"
_EXPLORE: Final = "labkit/simulation/explore.py"
_JUDGES: Final = "labkit/simulation/judge.py"
_STREAMS: Final = "labkit/scenarios/stream_judges.py"
_STRIP: Final = "labkit/teaching/strip.py"
_FAULTS: Final = "tests/simulation/test_faults.py::"
_RUNS: Final = "tests/simulation/test_explore.py::"
_DRAWN: Final = "tests/teaching/test_strip.py::"

# name, file, old, new, and the test that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "a crash is final whatever the code catches",
        _PLAYING,
        "        self._loop.halt = Halt(error)\n        raise self._loop.halt",
        "        raise Halt(error)",
        f"{_FAULTS}test_nothing_counts_after_a_crash_whatever_the_client_catches",
    ),
    (
        "what a crash left is told before anything tidies up",
        _PLAYING,
        '        self._note_left()\n        self._note("end", task=CLIENT, outcome="crashed")',
        '        self._note("end", task=CLIENT, outcome="crashed")',
        f"{_FAULTS}test_what_a_crash_left_is_told_as_it_was_at_that_moment",
    ),
    (
        "what is left is told at any end",
        _PLAYING,
        '        self._note_left()\n        self._note("end", task=CLIENT, **end)',
        '        self._note("end", task=CLIENT, **end)',
        f"{_FAULTS}test_what_is_left_is_told_at_any_end",
    ),
    (
        "no line runs after a crash",
        _PLAYING,
        "del self.places[noted:]",
        "pass",
        f"{_FAULTS}test_no_line_is_recorded_after_a_crash",
    ),
    (
        "a kill strikes only where there is a process",
        _STRIKING,
        "            if owner(task) is not None:\n",
        "            if True:\n",
        f"{_FAULTS}test_a_kill_and_a_freeze_strike_where_a_task_of_a_process_suspends",
    ),
    (
        "a freeze strikes once, though the task comes to its wake-up again",
        _STRIKING,
        "if fault in self._world.struck or killed(task):",
        "if killed(task):",
        f"{_FAULTS}test_a_freeze_as_a_task_wakes_holds_that_wake_up_back",
    ),
    (
        "what was killed is not struck again",
        _STRIKING,
        "if fault in self._world.struck or killed(task):",
        "if fault in self._world.struck:",
        f"{_FAULTS}test_what_was_killed_is_not_struck_again",
    ),
    (
        "a process that is stopped as its task wakes does not wake",
        _LOOP,
        "        if self.processes.any and self.processes.keeps(handle):  # that",
        "        if False:  # that",
        f"{_FAULTS}test_a_freeze_as_a_task_wakes_holds_that_wake_up_back",
    ),
    (
        "the suspension of a task that was killed is no point",
        _LOOP,
        " or killed(task)):",
        "):",
        f"{_FAULTS}test_where_a_process_kills_itself_there_is_no_point",
    ),
    (
        "a tick of a kill opens where its own task stood",
        _STRIP,
        "if suspends or fault.kind in PROCESS_FAULTS:",
        "if suspends:",
        f"{_DRAWN}test_a_kill_and_a_freeze_of_a_process_have_rows_of_their_own",
    ),
    (
        "a timeout leaves as one",
        _STRIKING,
        "            if self.expired:\n",
        "            if False:\n",
        f"{_FAULTS}test_a_timeout_strikes_at_every_point_and_leaves_as_one",
    ),
    (
        "a stop beside a timeout is a stop",
        _STRIKING,
        "self.expired = left[-1:] == [0]",
        "self.expired = bool(left)",
        f"{_FAULTS}test_where_the_user_stops_it_too_a_timeout_is_a_cancel",
    ),
    (
        "a timeout cancels the client and no other task",
        _STRIKING,
        "            self._client.cancel()",
        "            task.cancel()",
        f"{_FAULTS}test_a_timeout_cancels_the_client_whatever_task_has_come_to_the_point",
    ),
    (
        "a swallowed timeout is found",
        _JUDGES,
        'event.get("fault") in ("cancel", "timeout")',
        'event.get("fault") == "cancel"',
        f"{_FAULTS}test_a_client_that_swallows_a_timeout_is_found",
    ),
    (
        "nothing strikes when the run is over",
        _STRIKING,
        "        if self.over is not None:\n            return\n",
        "",
        f"{_FAULTS}test_a_fault_does_not_strike_a_task_that_is_only_closed",
    ),
    (
        "only a fault that struck counts",
        _EXPLORE,
        "struck = len(played.world.struck) == len(faults)",
        "struck = True",
        f"{_RUNS}test_a_fault_that_does_not_strike_is_missed_and_does_not_count",
    ),
    (
        "both phases are struck",
        _EXPLORE,
        "for phase in PHASES if on_tasks else PHASES[:1]:",
        "for phase in PHASES[:1]:",
        f"{_RUNS}test_every_point_is_struck_in_both_phases",
    ),
    (
        "the second fault comes after the first",
        _EXPLORE,
        "if point.event > after or (on_tasks and point.event == after) or after < 0:",
        "if True:",
        f"{_RUNS}test_the_second_of_two_faults_strikes_after_the_first",
    ),
    (
        "what is found without a fault does not count",
        _EXPLORE,
        "if name not in self._usual)",
        ")",
        f"{_RUNS}test_a_finding_that_is_there_without_a_fault_does_not_count",
    ),
    (
        "what comes to no end is no break",
        _EXPLORE,
        '        if end == "error" and isinstance(played.error, SimulationError):\n'
        '            return "unresolved"\n',
        "",
        f"{_RUNS}test_what_comes_to_no_end_is_unresolved_whatever_was_found",
    ),
    (
        "only a named error is a refusal",
        _EXPLORE,
        'return "refused" if named & set(self._inputs.scenario.refusals) else "unresolved"',
        'return "refused"',
        f"{_RUNS}test_a_refusal_is_an_error_that_the_scenario_names_or_a_base_of_it",
    ),
    (
        "a scenario that fails by itself is not explored",
        _EXPLORE,
        "self._refuse_a_broken_one(usual)",
        "pass",
        f"{_RUNS}test_a_scenario_that_fails_without_a_fault_is_refused",
    ),
    (
        "an exploration lets its runs go",
        _EXPLORE,
        "gc.collect(0)",
        "pass",
        f"{_RUNS}test_what_a_run_held_is_let_go_while_others_are_played",
    ),
    (
        "an interrupt keeps what was found",
        _EXPLORE,
        "interrupt.exploration = sweep.found(complete=False)",
        "interrupt.exploration = None",
        f"{_RUNS}test_an_interrupt_leaves_at_once_with_what_was_found_by_then",
    ),
    (
        "an answer that broke off has no lost end",
        _JUDGES,
        "if finished and _succeeded(events)",
        "if _succeeded(events)",
        "tests/simulation/test_judge.py::test_an_end_that_was_not_lost_is_no_finding",
    ),
    (
        "a piece that is shown twice is found",
        _STREAMS,
        "said[:same].endswith(more)",
        "said[same:].endswith(more)",
        "tests/scenarios/test_stream_judges.py::"
        "test_a_piece_that_was_said_once_and_shown_twice_is_found",
    ),
    (
        "a verdict has a shape",
        _STRIP,
        "axes.plot([x for x, _ in own], [y for _, y in own], sign, label",
        'axes.plot([x for x, _ in own], [y for _, y in own], "o", label',
        f"{_DRAWN}test_each_verdict_has_a_shape_and_a_colour_of_its_own",
    ),
    (
        "a tick opens its own run where it was struck",
        _STRIP,
        "return run.at(before[-1].index if before else 0)",
        "return run.at(0)",
        f"{_DRAWN}test_a_tick_opens_the_run_at_the_place_where_its_fault_struck[stream.kept]",
    ),
    (
        "an outcome tells the time of its strike",
        _EXPLORE,
        "at = (point, strike.time, strike.index - 1)",
        "at = (point, point.time, point.event)",
        f"{_RUNS}test_an_outcome_tells_when_its_last_fault_struck",
    ),
    (
        "what strikes as a task wakes is opened there",
        _STRIP,
        'if fault.phase == "waking" and woken:',
        "if False:",
        f"{_DRAWN}test_a_tick_as_it_wakes_opens_where_the_task_woke",
    ),
    (
        "a crash opens at the last place of any task",
        _STRIP,
        "if suspends or fault.kind in PROCESS_FAULTS:",
        "if True:",
        f"{_DRAWN}test_a_crash_opens_at_the_last_place_of_any_task",
    ),
    (
        "ticks do not lie on one another",
        _STRIP,
        "top + APART * deep",
        "top",
        f"{_DRAWN}test_ticks_behind_one_event_do_not_lie_on_one_another",
    ),
    (
        "the widget says what did not count",
        _STRIP,
        'notes = html(pre("\\n".join([*_notes(model.found), *meant]), wrap=True))',
        "notes = html(str(list(meant))[:0])",
        f"{_DRAWN}test_the_widget_says_what_did_not_count_and_what_the_verdicts_mean",
    ),
    (
        "a keyword that is not there is refused",
        _EXPLORE,
        "    refuse_unknown(bounds, explore)\n",
        "",
        f"{_RUNS}test_a_keyword_that_is_not_there_is_refused_with_those_that_are[explore]",
    ),
    (
        "a script of another kind is refused",
        "labkit/simulation/scenario.py",
        "and not isinstance(script, usual)",
        "and False",
        "tests/simulation/test_scenario.py::test_a_value_that_cannot_be_one_is_refused[script]",
    ),
    (
        "what did not hold is told in words",
        _STRIP,
        ", *_bad(model.outcomes)])",
        "])",
        f"{_DRAWN}test_the_text_form_counts_and_names_what_did_not_hold",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
