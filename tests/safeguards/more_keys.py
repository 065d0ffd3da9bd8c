"""Smaller safeguards of budgets, keys, their stores, and of what the lessons on them show."""

from __future__ import annotations

from typing import Final

from .kinds import Safeguard

_GRID: Final = "labkit/teaching/grid.py"
_WORLDS: Final = "labkit/teaching/worlds.py"
_EFFECTS: Final = "labkit/services/effects.py"
_OPENING: Final = "labkit/stores/opening.py"
_SQL: Final = "labkit/stores/sql_keys.py"
_EDGE: Final = "tests/stores/test_keys_at_the_edge.py::"
_OPENED: Final = "tests/stores/test_opening.py::"
_CELLS: Final = "tests/teaching/test_cells.py::"
_BESIDE: Final = "tests/services/test_effects_beside.py::"
_SHOP: Final = "tests/scenarios/test_shop.py::"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[tuple[str, str, str, str, tuple[str, ...]], ...]] = (
    (
        "a lease that has ended is never made longer",
        "labkit/recovery/lease.py",
        "until=min(held.until, now + held.length)",
        "until=max(now, min(held.until, now + held.length))",
        (
            "tests/recovery/test_lease.py::"
            "test_a_lease_that_has_ended_is_not_made_longer_when_it_is_cut",
        ),
    ),
    (
        "what costs add up to is compared without the dust of floats",
        "labkit/recovery/budget.py",
        "> limits.cost + DUST:",
        "> limits.cost:",
        (
            "tests/recovery/test_budget.py::"
            "test_three_requests_of_a_tenth_fit_into_three_tenths_and_a_fourth_does_not",
        ),
    ),
    (
        "what was done is told without a reason",
        "labkit/recovery/outcomes.py",
        "if self.status in DONE or not self.how",
        "if not self.how",
        tuple(
            "tests/recovery/test_outcomes.py::"
            f"test_a_reason_is_told_for_all_that_was_not_done_and_for_nothing_else[{status}]"
            for status in ("succeeded", "reused", "reconciled")
        ),
    ),
    (
        "a retry in a new segment is paid for too",
        "labkit/recovery/retry.py",
        "if decision.action != GIVE_UP and (short",
        "if decision.action == RETRY and (short",
        (
            "tests/recovery/test_budget.py::"
            "test_whatever_a_retry_begins_with_it_is_paid_for[new_segment]",
        ),
    ),
    (
        "a budget makes no answer longer than its own limits",
        "labkit/recovery/stream/receiving.py",
        "else min(left, live.budget.remaining)",
        "else live.budget.remaining",
        tuple(
            "tests/recovery/stream/test_answer_budget.py::test_a_budget_that_lasts_longer"
            f"_makes_neither_an_answer_nor_a_recovery_longer[{case}]"
            for case in ("before0-60.0", "before1-10.0")
        ),
    ),
    (
        "an executor is asked when the time for its tool is over",
        "labkit/recovery/calls.py",
        "if self.budget is None or tool.service is not None:",
        "if self.budget is None:",
        tuple(
            "tests/recovery/test_executed_calls.py::test_when_the_time_for_a_tool_is_over"
            f"_its_executor_still_knows_what_was_done[{case}]"
            for case in (
                "order-7-done-This was done before",
                "order-8-failed-the time ran out",
            )
        ),
    ),
    # --- stores
    (
        "in memory a record is forgotten from the second of its end",
        "labkit/stores/memory.py",
        "kept.expires <= now]",
        "kept.expires < now]",
        (f"{_EDGE}test_a_record_is_forgotten_from_the_very_second_of_its_end[100.0-1-memory]",),
    ),
    (
        "in a database a record is forgotten from the second of its end",
        _SQL,
        "(KEYS.c.expires <= self._now)",
        "(KEYS.c.expires < self._now)",
        (f"{_EDGE}test_a_record_is_forgotten_from_the_very_second_of_its_end[100.0-1-sqlite]",),
    ),
    (
        "two may make the table of keys at once",
        _SQL,
        "with suppress(IntegrityError), engine.begin() as connection:",
        "with engine.begin() as connection:",
        (f"{_EDGE}test_a_table_that_another_process_makes_at_the_same_moment_is_taken_as_it_is",),
    ),
    (
        "a connection that has ended is made anew",
        _OPENING,
        "pool_pre_ping=True",
        "pool_pre_ping=False",
        (f"{_OPENED}test_a_connection_that_the_server_has_ended_meanwhile_is_made_anew",),
    ),
    (
        "a writer to SQLite waits as long as is said",
        _OPENING,
        'connect_args={"timeout": BUSY}',
        "connect_args={}",
        tuple(
            f"{_OPENED}test_each_connection_to_sqlite_waits_for_its_turn_as_long_as_is_said[{kind}]"
            for kind in ("open_stream_store", "open_key_store")
        ),
    ),
    (
        "a file that cannot change its journal now is opened all the same",
        _OPENING,
        "with suppress(sqlite3.OperationalError):",
        "with suppress():",
        tuple(
            f"{_OPENED}test_a_file_whose_readers_keep_it_from_its_other_journal_is_opened"
            f"_all_the_same[{kind}]"
            for kind in ("open_stream_store", "open_key_store")
        ),
    ),
    (
        "of a database's error only the first line is told",
        "labkit/stores/errors.py",
        '.partition("\\n")[0]',
        "",
        (
            "tests/stores/test_errors.py::"
            "test_only_the_first_line_of_what_a_database_said_is_told_since_the_rest_quotes_keys",
        ),
    ),
    # --- the lessons
    (
        "only a payment joins a request that is under way",
        _EFFECTS,
        "if not (self.atomic and running and not",
        "if not (running and not",
        tuple(
            f"{_BESIDE}test_two_requests_at_once_are_one_effect_only_where_the_service_keeps_them"
            f"_apart[{case}]"
            for case in ("ticket-2", "mail-2")
        ),
    ),
    (
        "what has happened is not called off",
        _EFFECTS,
        "if not self._known(_key(request)):\n            for work",
        "if True:\n            for work",
        (f"{_BESIDE}test_what_is_called_off_too_late_still_gives_its_answer",),
    ),
    (
        "a person who looks does not find what never happened",
        "labkit/scenarios/shop.py",
        "happened = self.service.booked(record.tenant, record.key)",
        "happened = True",
        (
            f"{_SHOP}test_a_person_who_looks_into_the_books_finds_out_whether_the_mail_went_out"
            "[lose_request-succeeded]",
        ),
    ),
    (
        "three effects are two duplicates",
        "labkit/scenarios/effect_judges.py",
        "count - 1 for count in real.values()",
        "count > 1 for count in real.values()",
        (
            "tests/scenarios/test_effect_figures.py::"
            "test_each_effect_beyond_the_first_of_one_thing_is_a_duplicate[3-2]",
        ),
    ),
    (
        "a cancelled client waits for its calls",
        "labkit/scenarios/effects.py",
        "        await stop(task)\n",
        "        task.cancel()\n",
        (f"{_SHOP}test_a_client_that_is_cancelled_waits_for_its_calls_to_end[reference]",),
    ),
    (
        "a cell opens the run of the service that is chosen",
        _GRID,
        "        run = self[place]\n",
        "        run = self._run(*place, KINDS[0])\n",
        tuple(
            f"{_CELLS}test_a_cell_opens_the_run_of_the_service_that_is_chosen[{kind}]"
            for kind in ("ticket", "mail")
        ),
    ),
    (
        "a row is clean in all its cells",
        _GRID,
        "if not any(values[way, cue] for cue in CUES)]",
        'if not values[way, "ok"]]',
        (f"{_CELLS}test_a_row_is_clean_only_if_the_figure_is_0_for_every_cue[late]",),
    ),
    (
        "a world is headed by all that was found",
        _WORLDS,
        'found = ", ".join(found.name for found in run.findings) or "nothing"',
        'found = ", ".join(found.name for found in run.findings[:1]) or "nothing"',
        (f"{_CELLS}test_a_world_is_headed_and_judged_by_all_that_was_found",),
    ),
    (
        "a world is judged by all that was found",
        _WORLDS,
        "({', '.join(found.name for found in run.findings)})",
        "({', '.join(found.name for found in run.findings[:1])})",
        (f"{_CELLS}test_a_world_is_headed_and_judged_by_all_that_was_found",),
    ),
)

SAFEGUARDS = tuple(
    Safeguard(name=name, file=file, old=old, new=new, red=red)
    for name, file, old, new, red in _LIST
)
