"""What keeps the predictions, exercises and diagnoses of effects honest."""

from typing import Final

from .kinds import of_rows

_TRIALS: Final = "labkit/teaching/effect_trials.py"
_FACT: Final = "labkit/scenarios/effect_facts.py"
_DIAGNOSIS: Final = "labkit/teaching/diagnosis.py"
_DATA: Final = "data/exercises/"
_WRONG: Final = "tests/teaching/test_effect_trials.py::test_a_typical_wrong_answer_is_told_its_case"
_GOOD: Final = (
    "tests/teaching/test_effect_trials.py::test_another_right_answer_is_as_good_as_the_solution"
)
_SOLVED: Final = (
    "tests/teaching/test_exercises.py::test_it_is_solved_with_the_solution_and_that_is_kept"
)
_OPEN: Final = "tests/teaching/test_exercises.py::test_it_is_unsolved_as_handed_out"
_FACTS: Final = "tests/scenarios/test_effect_facts.py::"
_KNOWN: Final = f"{_FACTS}test_what_a_caller_can_know_is_decided_when_its_first_try_is_over"
_SHOWN: Final = (
    "tests/teaching/test_diagnosis.py::test_a_run_shows_its_symptom_and_the_event_to_look_at_first"
)
# name, file, old, new, what goes red
_ROWS: Final = (
    (
        "the time of a try ends before the run's own",
        _TRIALS,
        'hand_back=case["hand_back"]',
        "hand_back=0.0",
        f"{_SOLVED}[07.limit]",
    ),
    (
        "a retry is counted before its wait, and an exercise sees it",
        _TRIALS,
        "may = not budget.retry(wait)\n    await asyncio.sleep(wait if may else 0.0)\n",
        "await asyncio.sleep(wait)\n    may = not budget.retry(wait)\n",
        f"{_SOLVED}[07.may_retry]",
    ),
    (
        "an exercise tells when it was answered",
        _TRIALS,
        'f"{may} at {asyncio.get_running_loop().time():g} s"',
        'f"{may}"',
        _WRONG,
    ),
    (
        "an error of a budget is no right answer",
        _TRIALS,
        'f"It raised {run.error!r}."',
        '""',
        _WRONG,
    ),
    (
        "a wait may not leave its range",
        _TRIALS,
        "if not 0 <= (wait := learners(attempt, Random(seed))) <= most:",
        "if not 0 <= (wait := learners(attempt, Random(seed))):",
        _WRONG,
    ),
    (
        "a crowd that comes back together is no solution",
        _TRIALS,
        "if now >= down:\n",
        "if now >= 0:\n",
        _WRONG,
    ),
    (
        "a peak may be a little higher than labkit's own",
        _TRIALS,
        "SPREAD: Final = 1.5",
        "SPREAD: Final = 0.5",
        f"{_GOOD}[07.backoff-labkits_own]",
    ),
    (
        "only texts are keys and fingerprints",
        _TRIALS,
        "if not (isinstance(one, str) and isinstance(other, str)):",
        "if False:",
        _WRONG,
    ),
    (
        "what is meant to differ may not be equal",
        _TRIALS,
        "if (one == other) != meant:",
        "if (one == other) < meant:",
        _WRONG,
    ),
    (
        "what is another text in another process is no key",
        _TRIALS,
        'lambda value: _HASH((value, "in another process"))',
        "_HASH",
        _WRONG,
    ),
    (
        "a key keeps upper case",
        f"{_DATA}effects.toml",
        'resource = "Order-7"',
        'resource = "order-8"',
        _WRONG,
    ),
    (
        "a key that is joined by a sign is tried with that sign",
        f"{_DATA}effects.toml",
        'operation = "charge:order", resource = "7"',
        'operation = "charge", resource = "7"',
        _WRONG,
    ),
    (
        "numbers that a float cannot tell apart are tried",
        f"{_DATA}effects.toml",
        "amount = 9007199254740993",
        "amount = 9007199254740992",
        _WRONG,
    ),
    (
        "the door of the exercise knows the lease",
        _TRIALS,
        'told.pop("until", 0.0)',
        'told.pop("until", 0.0) + 60',
        _WRONG,
    ),
    (
        "a service that cannot say is tried",
        _TRIALS,
        '["down"] * 9 if known == UNSURE else ()',
        "()",
        "tests/teaching/test_effect_trials.py::"
        "test_where_a_service_cannot_say_labkits_own_run_shows_that_it_could_not",
    ),
    (
        "asking comes first where nobody has asked",
        _TRIALS,
        'if not known or step != "ask"]',
        'if step != "ask"]',
        f"{_SOLVED}[08.after_error]",
    ),
    (
        "the last effect of a call decides",
        _FACT,
        "(real or events)[-1]",
        "(real or events)[0]",
        f"{_FACTS}test_effects_are_counted_in_the_ledger",
    ),
    (
        "an answer that comes too late is none that the caller had",
        _FACT,
        "for event in after if event.index < over.index)",
        "for event in after)",
        f"{_KNOWN}[late]",
    ),
    (
        "a refusal says that nothing was done",
        _FACT,
        'over.get("sent") is False',
        'over.get("sent") is None',
        f"{_KNOWN}[refused]",
    ),
    (
        "a second try ends what can be known of the first",
        _FACT,
        '("tried", "attempt", "told")',
        '("tried", "told")',
        f"{_KNOWN}[tried again]",
    ),
    (
        "a call is told by its own answer",
        _FACT,
        'e.kind == "told" and e["call"] == calls[number - 1]',
        'e.kind == "told"',
        f"{_FACTS}test_a_call_is_told_by_its_own_answer_in_whatever_order_they_come",
    ),
    (
        "two charges after one timeout are a symptom",
        _DIAGNOSIS,
        "in wanted]",
        "not in wanted]",
        f"{_SHOWN}[effects.tries_again-charged_twice-effect]",
    ),
    (
        "a tool that no shop has called charges nobody twice",
        _DIAGNOSIS,
        " if meant(events[i]) in wanted]",
        "]",
        "tests/teaching/test_diagnosis.py::"
        "test_two_calls_of_one_tool_that_no_call_of_a_shop_has_made_are_no_double_charge",
    ),
    (
        "clients that come back in step are a symptom",
        _DIAGNOSIS,
        '"request_storm": _at(retries_in_step, events)',
        '"request_storm": []',
        f"{_SHOWN}[budgets.storm-request_storm-request]",
    ),
    (
        "an answer that is late is a symptom",
        _DIAGNOSIS,
        '"silent_minutes": _at(deadline_overrun, events)',
        '"silent_minutes": []',
        f"{_SHOWN}[budgets.per_call-silent_minutes-shown]",
    ),
    (
        "a crowd is counted within one second",
        "labkit/scenarios/budget_judges.py",
        "bisect_left(times, at + 1) -",
        "bisect_left(times, at + 1.001) -",
        f"{_FACTS}test_a_crowd_is_counted_in_any_one_second_from_its_first_retry",
    ),
    (
        "who is served is decided by the last answer",
        _FACT,
        "(shown or events)[-1]",
        "(shown or events)[0]",
        f"{_FACTS}test_who_is_served_is_decided_by_the_last_answer",
    ),
    (
        "a page shows its end at the last thing that it shows",
        _FACT,
        "(page or events)[-1]",
        "(page or events)[0]",
        f"{_FACTS}test_a_page_shows_its_end_at_the_last_thing_that_it_shows",
    ),
    (
        "a chain with an effect is noted as one",
        "labkit/teaching/progress.py",
        "'repeat' if 'entered' in kinds else 'budget'",
        "'budget'",
        "tests/teaching/test_progress.py::test_a_chain_that_is_drawn_is_done",
    ),
)

SAFEGUARDS: Final = of_rows(_ROWS)
