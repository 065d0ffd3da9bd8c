"""The safeguards of what a learner sees of timeouts and repeats: worlds, grid, queue, storm."""

from typing import Final

from .kinds import of_rows

_WORLDS: Final = "tests/teaching/test_worlds.py::"
_GRID: Final = "tests/teaching/test_grid.py::"
_QUEUE: Final = "tests/teaching/test_queue.py::"
_STORM: Final = "tests/teaching/test_storm.py::"
_SAME: Final = f"{_WORLDS}test_what_is_marked_as_the_same_is_the_same"
_HURT: Final = f"{_WORLDS}test_it_says_which_world_a_way_hurts"
_OPENS: Final = f"{_GRID}test_a_cell_opens_its_run_and_another_choice_closes_it"
_MADE_ONCE: Final = f"{_GRID}test_a_cell_is_a_run_that_is_made_once"
_OWN_WORD: Final = (
    f"{_QUEUE}test_each_thing_has_a_word_of_its_own_and_the_run_goes_on_with_those_there_are"
)
_BOOKS: Final = f"{_QUEUE}test_the_truth_stands_in_the_books_alone_until_there_is_a_word"
_DECIDED: Final = (
    "tests/teaching/test_stepper.py::"
    "test_a_run_is_decided_ahead_of_its_finding_or_at_the_try_that_failed"
)
_JUDGES: Final = "tests/scenarios/test_effect_judges.py::"
_COUNTS: Final = (
    f"{_STORM}test_what_a_service_and_a_provider_get_counts_and_what_a_client_says_does_not"
)

# name, file in labkit, old, new, what goes red
_ROWS: Final = (
    (
        "two callers part also where only a detail differs",
        "teaching/worlds.py",
        "(event.time, event.actor, event.kind, event.data) for",
        "(event.time, event.actor, event.kind) for",
        (f"{_WORLDS}test_the_callers_part_at_the_first_thing_that_they_see_differently",),
    ),
    (
        "two callers part also where only the time differs",
        "teaching/worlds.py",
        "[(event.time, event.actor, event.kind, event.data) for event in own]",
        "[(0.0, event.actor, event.kind, event.data) for event in own]",
        (f"{_SAME}[tries again-payment]",),
    ),
    (
        "what the service does is not what a caller sees",
        "teaching/worlds.py",
        'in ("model", "worker"))',
        'in ("model", "worker", "service"))',
        (f"{_SAME}[tries again-payment]",),
    ),
    (
        "a finding hurts the world in which it was found",
        "teaching/worlds.py",
        "            if run.findings\n",
        "            if run.ledger\n",
        (f"{_HURT}[payment-key of the order-hurts neither world]",),
    ),
    (
        "a call that waits for a person is told as open",
        "teaching/worlds.py",
        '_told(run)["status"] in OPEN',
        '_told(run)["status"] == "unknown"',
        (f"{_WORLDS}test_what_stays_open_and_what_one_call_cannot_show_is_said",),
    ),
    (
        "a world is headed by all that was found",
        "teaching/worlds.py",
        'found = ", ".join(found.name for found in run.findings) or "nothing"',
        'found = ", ".join(found.name for found in run.findings[:1]) or "nothing"',
        (f"{_WORLDS}test_a_world_is_headed_and_judged_by_all_that_was_found",),
    ),
    (
        "a world is judged by all that was found",
        "teaching/worlds.py",
        "({', '.join(found.name for found in run.findings)})",
        "({', '.join(found.name for found in run.findings[:1])})",
        (f"{_WORLDS}test_a_world_is_headed_and_judged_by_all_that_was_found",),
    ),
    (
        "another choice of worlds closes the run of before",
        "teaching/worlds.py",
        "picture.value, opened.children = self.chart.html, ()",
        "picture.value = self.chart.html",
        (f"{_WORLDS}test_another_choice_draws_both_again_and_closes_the_stepper",),
    ),
    (
        "a world opens where it is decided",
        "teaching/worlds.py",
        "stepper(run, at=decided_at(run))",
        "stepper(run)",
        (f"{_WORLDS}test_a_button_opens_the_run_of_its_world",),
    ),
    (
        "a cell opens where it is decided",
        "teaching/grid.py",
        "stepper(run, at=decided_at(run))",
        "stepper(run)",
        (_OPENS,),
    ),
    (
        "a finding decides, whatever failed before",
        "teaching/stepper.py",
        "chain(found, failed)",
        "chain(failed, found)",
        (f"{_DECIDED}[wrong_person-event1-2]",),
    ),
    (
        "a call is open that is made after an answer to its key",
        "scenarios/effect_judges.py",
        "e.index > ends.get(key, -1))",
        "key not in ends)",
        (f"{_JUDGES}test_an_answer_before_settles_no_later_call",),
    ),
    (
        "a refusal settles no call before it",
        "scenarios/effect_judges.py",
        'e["status"] not in (*OPEN, REJECTED)}',
        'e["status"] not in OPEN}',
        (
            f"{_JUDGES}test_a_call_is_open_until_a_later_one_of_its_key_is_told_how_it_ended"
            "[later3-1-0]",
        ),
    ),
    (
        "only what was said between two effects has let the second happen",
        "scenarios/effect_judges.py",
        "e for e in events[first:second]",
        "e for e in events[:second]",
        (
            f"{_JUDGES}test_the_cure_of_a_repeat_is_for_what_was_said_between_the_two"
            "[before6-between6-one key for every repeat]",
        ),
    ),
    (
        "a number is no name of a way",
        "teaching/said.py",
        "if what in NUMBERED and given > 0",
        "if given > 0",
        ("tests/teaching/test_said.py::test_a_number_is_a_row_or_a_column_of_a_table_and_no_name",),
    ),
    (
        "a cell of another service is another run",
        "teaching/grid.py",
        "cell(way, cue, kind=kind))",
        "cell(way, cue))",
        (_MADE_ONCE,),
    ),
    (
        "a cell's run is made once",
        "teaching/grid.py",
        "cache(lambda way, cue, kind: cell(way, cue, kind=kind))",
        "lambda way, cue, kind: cell(way, cue, kind=kind)",
        (_MADE_ONCE,),
    ),
    (
        "a cell opens the run of the service that is chosen",
        "teaching/grid.py",
        "        run = self[place]\n",
        "        run = self._run(*place, KINDS[0])\n",
        tuple(
            f"{_GRID}test_a_cell_opens_the_run_of_the_service_that_is_chosen[{kind}]"
            for kind in ("ticket", "mail")
        ),
    ),
    (
        "the picture of the grid has its first way above",
        "teaching/grid.py",
        "axes.invert_yaxis()",
        "axes.set_ylabel('')",
        (f"{_GRID}test_every_figure_is_drawn_with_its_numbers_in_the_cells[open-mail]",),
    ),
    (
        "figures can be read on the darkest shade",
        "teaching/grid.py",
        '["colours"]["orange"]]',
        '["colours"]["blue"]]',
        (f"{_GRID}test_the_figures_are_easy_to_read_on_their_shade_and_more_is_darker[open]",),
    ),
    (
        "a button says of which cell its figure is",
        "teaching/grid.py",
        "f\"{', '.join(place)}: {each.description}",
        'f"{each.description}',
        (f"{_GRID}test_each_cell_is_a_button_with_the_figure_and_a_tooltip_that_names_it",),
    ),
    (
        "a row is clean in all its cells",
        "teaching/grid.py",
        "if not any(values[way, cue] for cue in CUES)]",
        'if not values[way, "ok"]]',
        (f"{_GRID}test_a_row_is_clean_only_if_the_figure_is_0_for_every_cue[late]",),
    ),
    (
        "another figure closes the run of before",
        "teaching/grid.py",
        'told.value, opened.children = f"<b>{markup(self.heading)}</b>", "", ()',
        'told.value = f"<b>{markup(self.heading)}</b>", ""',
        (_OPENS,),
    ),
    (
        "the truth is hidden until a person has found out",
        "teaching/queue.py",
        "if len(said) == len(self.items):",
        "if self.items:",
        (_BOOKS, _OWN_WORD),
    ),
    (
        "the books are asked about one thing",
        "teaching/queue.py",
        'e.actor == "ledger" and meant(e) == about]',
        'e.actor == "ledger"]',
        (_OWN_WORD,),
    ),
    (
        "a word is said of one thing",
        "teaching/queue.py",
        "            answers().put(self._question(each), WORDS[happened])\n",
        "            for each in self.items:\n"
        "                answers().put(self._question(each), WORDS[happened])\n",
        (_OWN_WORD,),
    ),
    (
        "a word is said of one scenario",
        "teaching/queue.py",
        'f"queue/{self.scenario.name}/{digest}"',
        'f"queue/{digest}"',
        (f"{_QUEUE}test_a_word_outlives_the_queue_and_the_kernel_and_can_be_changed",),
    ),
    (
        "a scenario in which nothing waits has no queue",
        "teaching/queue.py",
        "if not self.items:",
        "if self.items == 0:",
        (
            f"{_QUEUE}test_a_scenario_in_which_nothing_waits_is_refused_with_one_in_which"
            "_something_does",
        ),
    ),
    (
        "a person's word is for the thing that it names",
        "scenarios/shop.py",
        "said if isinstance(said, bool) else said.get(record.digest)",
        "said if isinstance(said, bool) else next(iter(said.values()), None)",
        (_OWN_WORD,),
    ),
    (
        "what a client says of itself is no request of the storm",
        "teaching/storm.py",
        "and e.actor in ASKED]",
        "]",
        (_COUNTS,),
    ),
    (
        "a try after a failure is told apart from a first one",
        "teaching/storm.py",
        'event.get("attempt", 1) > 1)',
        'event.get("attempt", 1) > 2)',
        (_COUNTS, f"{_STORM}test_requests_are_counted_by_the_second_and_the_peak_is_quoted"),
    ),
    (
        "two storms are drawn on one scale",
        "teaching/storm.py",
        "each.set_ylim(top=1.3 * most)",
        "each.set_ylim(top=1.3 * max(foot))",
        (f"{_STORM}test_two_storms_share_both_axes_and_have_their_marks",),
    ),
    (
        "one callback at a time",
        "teaching/controls.py",
        "        with ONE_AT_A_TIME:\n",
        "        if True:\n",
        (
            "tests/teaching/test_controls.py::"
            "test_a_button_that_is_pressed_while_a_picture_is_drawn_waits_for_it",
        ),
    ),
    (
        "a change that comes while the panel draws is not lost",
        "teaching/panel.py",
        "            with ONE_AT_A_TIME:",
        "            if not self._drawing:",
        (
            "tests/teaching/test_panel.py::"
            "test_a_change_that_comes_while_the_panel_draws_waits_for_its_turn",
        ),
    ),
    (
        "a small mark keeps its colour",
        "teaching/chart.py",
        "Image.Quantize.MAXCOVERAGE",
        "Image.Quantize.MEDIANCUT",
        (f"{_WORLDS}test_marks_keep_their_colour_in_the_picture_however_small_they_are",),
    ),
    (
        "a request to a service is no bar of a provider's",
        "teaching/timeline.py",
        'if (e.actor, e.kind) == ("provider", "request")]',
        'if e.kind == "request"]',
        (
            "tests/teaching/test_timeline.py::test_a_service_with_effects_is_told_in_lanes_of_its_own",
        ),
    ),
)

SAFEGUARDS: Final = of_rows(_ROWS, under="labkit/")
