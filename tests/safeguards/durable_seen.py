"""The safeguards of what a learner sees of durable runs: judges, facts, layers, exercises."""

from typing import Final

from .kinds import of_rows

_JUDGES: Final = "tests/scenarios/test_durable_judges.py::test_"
_WRONG: Final = f"{_JUDGES}what_is_wrong_is_found_where_it_happens"
_RIGHT: Final = f"{_JUDGES}what_is_right_is_no_finding"
_FACTS: Final = "tests/scenarios/test_durable_facts.py::test_"
_SHOWN: Final = "tests/scenarios/test_durable.py::test_a_scenario_shows_what_it_claims"
_LAYERS: Final = "tests/teaching/test_layers.py::test_"
_STRUCK: Final = f"{_LAYERS}what_struck_a_worker_what_was_refused_and_effects_have_lines"
_VIEWS: Final = "tests/teaching/test_views.py::test_"
_TRIALS: Final = (
    "tests/teaching/test_durable_trials.py::test_a_typical_wrong_answer_is_told_its_case"
)

# name, file in labkit, old, new, what goes red
_ROWS: Final = (
    (
        "a step that was kept is not done again unseen",
        "scenarios/durable_judges.py",
        'event["step"] <= kept and',
        'event["step"] < kept and',
        f"{_WRONG}[one step back]",
    ),
    (
        "what a zombie puts is no step that is done again",
        "scenarios/durable_judges.py",
        'event["step"] <= kept and event["by"] == _holder(events[: event.index], _run(event)):',
        'event["step"] <= kept:',
        f"{_RIGHT}[put by who holds it no more]",
    ),
    (
        "a zombie's checkpoint in a thread of its own is no finding",
        "scenarios/durable_judges.py",
        ' and event["thread"] in theirs:',
        ":",
        f"{_RIGHT}[a thread of its own]",
    ),
    (
        "a thread is its holder's by the copy too",
        "scenarios/durable_judges.py",
        'if _is_put(e) and e["by"] == holder}',
        'if e.kind == "checkpoint" and e["by"] == holder}',
        f"{_WRONG}[into a thread that its holder has copied into]",
    ),
    (
        "an approval is for one tool",
        "scenarios/durable_judges.py",
        'e.kind == "approved" and e["name"] == event["name"] and _same(e, event)',
        'e.kind == "approved" and _same(e, event)',
        f"{_WRONG}[another tool]",
    ),
    (
        "an approval is for these arguments",
        "scenarios/durable_judges.py",
        ' and e["name"] == event["name"] and _same(e, event)',
        ' and e["name"] == event["name"]',
        f"{_WRONG}[other arguments]",
    ),
    (
        "an approval comes before the effect",
        "scenarios/durable_judges.py",
        "            for e in events[: event.index]\n",
        "            for e in events\n",
        f"{_WRONG}[too late]",
    ),
    (
        "a memory counts after its run was completed",
        "scenarios/durable_judges.py",
        'if event.actor == "store" and event.get("status") == COMPLETED:',
        'if event.actor == "store" and event.get("status"):',
        f"{_WRONG}[of one that was cancelled]",
    ),
    (
        "who begins is the last one that got the run",
        "scenarios/durable_facts.py",
        'if e["by"] == claim["by"])',
        "if True)",
        f"{_FACTS}what_the_one_before_still_puts_decides_nothing",
    ),
    (
        "a step that was passed over is told",
        "scenarios/durable_facts.py",
        'late = first["step"] > kept + 1',
        "late = False",
        f"{_FACTS}a_step_that_was_passed_over_is_seen",
    ),
    (
        "a step has its name beside its checkpoint",
        "teaching/layers.py",
        'return f"{steps[event.index]} kept"',
        'return "step kept"',
        f"{_LAYERS}who_takes_over_copies_what_the_row_names_and_each_step_has_its_name",
    ),
    (
        "a retry is told apart from a run that is handed back",
        "teaching/layers.py",
        '("retried" if event["by"] == "ann" else "handed back")',
        '"handed back"',
        f"{_LAYERS}a_move_is_said_in_a_word[durable.broken-words1]",
    ),
    (
        "a row says whose it is where there are several",
        "teaching/layers.py",
        "several=len(runs) > 1)",
        "several=len(runs) > 2)",
        f"{_LAYERS}of_two_runs_each_row_says_whose_it_is",
    ),
    (
        "an exercise on approvals has a call that has changed",
        "teaching/durable_trials.py",
        'digest(case["word"]["digest_of"])',
        "digest(call)",
        f"{_TRIALS}[-no_digest--]",
    ),
    (
        "what is None is shown in the case",
        "teaching/exercises.py",
        'dict.fromkeys(found["none"]) | case',
        "case | {}",
        f"{_TRIALS}[-one_thread--]",
    ),
    (
        "a row says which checkpoint it names",
        "scenarios/round_table.py",
        'step = self.steps[named["thread"], named["id"]]',
        "step = max(self.steps.values())",
        f"{_LAYERS}the_row_that_one_thread_writes_names_the_checkpoint_that_came_back",
    ),
    (
        "a write that is refused has a line",
        "teaching/layers.py",
        '("claimed", "wrote", "refused")',
        '("claimed", "wrote")',
        f"{_STRUCK}[renewed_with_steps-lines0]",
    ),
    (
        "what struck a worker has a line",
        "teaching/layers.py",
        "if event.kind in _STRUCK:",
        "if False:",
        f"{_STRUCK}[effect_then_killed-lines1]",
    ),
    (
        "an effect has a line",
        "teaching/layers.py",
        'if event.actor == "ledger":',
        "if False:",
        f"{_STRUCK}[without_keys-lines2]",
    ),
    (
        "the first request too many decides",
        "scenarios/durable_facts.py",
        "decided = _asked_again(events) or asked[-1]",
        "decided = asked[-1]",
        f"{_FACTS}the_first_request_that_is_made_again_decides_how_many_there_are[killed-5-critic]",
    ),
    (
        "a run of workers has no page and no requests of a page",
        "teaching/views.py",
        "    watched = has_page(run)\n",
        "    watched = True\n",
        f"{_VIEWS}a_run_of_workers_is_told_by_its_claims_and_requests_to_models_and_has_no_page",
    ),
    (
        "requests to models are counted",
        "teaching/views.py",
        'return [f"{asked} to models"]',
        "return []",
        f"{_VIEWS}a_run_of_workers_is_told_by_its_claims_and_requests_to_models_and_has_no_page",
    ),
    (
        "lists stand below their questions where there is no room",
        "teaching/prediction_form.py",
        'self.box.add_class("labkit-predict")',
        "pass",
        "tests/teaching/test_predictions.py::"
        "test_where_a_form_has_no_room_its_lists_stand_below_their_questions",
    ),
    (
        "a button for a fault shows all its words",
        "teaching/panel.py",
        'style["button_width"] = "auto"',
        "pass",
        "tests/teaching/test_panel.py::test_each_button_for_a_fault_is_as_wide_as_its_words",
    ),
    (
        "who takes over copies",
        "scenarios/naive_talks.py",
        '        """Begin anew."""\n',
        "        await super().take_over()\n",
        f"{_SHOWN}[starts_over]",
    ),
    (
        "the naive thread has no fence",
        "scenarios/naive_talks.py",
        "        self._thread = run_id\n",
        "",
        f"{_SHOWN}[one_thread]",
    ),
    (
        "the naive approval looks at no digest",
        "scenarios/naive_talks.py",
        'return "" if word.get("answer") == APPROVE else "a person said no"',
        "return super()._refused(call, word, now)",
        f"{_SHOWN}[approved_by_name]",
    ),
)

SAFEGUARDS: Final = of_rows(_ROWS, under="labkit/")
