"""The safeguards of single words in the code of leases: what each stands for, and who notices."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

_STORE: Final = "labkit/runs/store.py"
_DRIVING: Final = "labkit/runs/driving.py"
_MANAGER: Final = "labkit/runs/manager.py"
_NEWS: Final = "labkit/runs/news.py"
_CONDITIONS: Final = "labkit/runs/conditions.py"
_DATABASE: Final = "labkit/runs/database.py"
_OPENING: Final = "labkit/stores/opening.py"
_WORKER: Final = "labkit/commands/worker.py"
_SCENARIOS: Final = "labkit/scenarios/leases.py"
_FLOOR: Final = "labkit/scenarios/floor.py"
_JUDGES: Final = "labkit/scenarios/lease_judges.py"
_STORY: Final = "labkit/teaching/lease_story.py"

_STORED: Final = "tests/runs/test_store.py::test_"
_DRIVEN: Final = "tests/runs/test_driving.py::test_"
_MANAGED: Final = "tests/runs/test_manager.py::test_"
_HEARD: Final = "tests/runs/test_news.py::test_"
_OPENED: Final = "tests/stores/test_opening.py::test_"
_COMMAND: Final = "tests/commands/test_worker.py::test_"
_ON_FLOOR: Final = "tests/scenarios/test_lease_floor.py::test_"
_JUDGED: Final = "tests/scenarios/test_lease_judges.py::test_"
_SHOWN: Final = "tests/teaching/test_leases.py::test_"
_UNSEEN: Final = f"{_DRIVEN}a_shutdown_leaves_no_error_behind_that_nobody_has_seen"
_LAST: Final = f"{_DRIVEN}a_write_that_was_refused_is_the_last_that_is_tried"
_RIGHT: Final = f"{_JUDGED}nothing_is_found_where_nothing_is_wrong"
_NOT_BEGUN: Final = (
    f"{_MANAGED}a_shutdown_ends_in_order_whatever_becomes_of_a_run_that_was_not_begun"
)
_LATE_ANSWER: Final = f"{_OPENED}an_answer_that_is_there_counts_however_late_it_is_looked_at"
_STANDS: Final = f"{_ON_FLOOR}a_worker_that_stands_still_is_not_asked_to_leave"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "a claim is a change of its run",
        _STORE,
        'status=MOVES["claim"].target,\n            updated=self._now,',
        'status=MOVES["claim"].target,',
        f"{_STORED}a_run_tells_when_it_was_made_and_when_it_was_changed_last",
    ),
    (
        "a start tells its model",
        _STORE,
        '"model": row.model}',
        '"model": ""}',
        f"{_STORED}each_start_tells_its_worker_its_fence_and_its_model",
    ),
    (
        "a run that was handed back waits where it was",
        _STORE,
        "first_of(queued & known, RUNS.c.created)",
        "first_of(queued & known, RUNS.c.updated)",
        f"{_STORED}a_run_that_was_handed_back_keeps_its_place_among_those_that_wait",
    ),
    (
        "of two that waited as long one is the first everywhere",
        _CONDITIONS,
        "order_by(by, RUNS.c.run_id)",
        "order_by(by)",
        f"{_STORED}of_runs_that_came_at_one_moment_the_first_by_name_is_claimed",
    ),
    (
        "a hand-back behind a lost answer is known again",
        _STORE,
        "(held.run.seq, held.run.seq + 1) if",
        "(held.run.seq,) if",
        f"{_STORED}"
        "a_run_is_handed_back_once_also_where_the_answers_of_a_step_and_of_that_were_lost",
    ),
    (
        "what the driver refuses is no trouble of the database",
        _DATABASE,
        "DataError | ProgrammingError",
        "ProgrammingError",
        "tests/runs/test_database.py::"
        "test_a_text_that_the_driver_refuses_can_never_be_kept[postgresql]",
    ),
    (
        "a refused write is followed by no other",
        _DRIVING,
        "(self._refused or bool(self._renewal.lost))",
        "bool(self._renewal.lost)",
        f"{_LAST}[False]",
    ),
    (
        "a run that has ended is not handed back",
        _DRIVING,
        "if self._renewal.lost or self.held.run.status != RUNNING:",
        "if self._renewal.lost:",
        f"{_DRIVEN}a_run_whose_end_was_just_being_written_is_not_handed_back",
    ),
    (
        "a hand-back that the store does not hear is no error",
        _DRIVING,
        "with suppress(LeaseLost, StoreDown):",
        "with suppress(LeaseLost):",
        f"{_UNSEEN}[the store is gone]",
    ),
    (
        "a hand-back of what is another's is no error",
        _DRIVING,
        "with suppress(LeaseLost, StoreDown):",
        "with suppress(StoreDown):",
        f"{_UNSEEN}[it was cancelled]",
    ),
    (
        "what a job made of a shutdown is a cancel again",
        _DRIVING,
        "raise asyncio.CancelledError from error",
        "raise error",
        f"{_UNSEEN}[its job raises]",
    ),
    (
        "a failure that is refused is a loss",
        _DRIVING,
        "        except LeaseLost:\n            return LOST",
        "        except ZeroDivisionError:\n            return LOST",
        f"{_LAST}[True]",
    ),
    (
        "Ctrl-C is no failure of a run",
        _DRIVING,
        "except (KeyboardInterrupt, GeneratorExit):",
        "except GeneratorExit:",
        f"{_DRIVEN}ctrl_c_in_the_middle_of_a_job_is_no_failure_of_its_run",
    ),
    (
        "what is told beside a question is short",
        _DRIVING,
        '"data": short(step.data), "checkpoint"',
        '"data": step.data, "checkpoint"',
        f"{_DRIVEN}the_texts_beside_a_question_are_cut",
    ),
    (
        "starts are whole",
        _MANAGER,
        'whole=("capacity", "starts")',
        'whole=("capacity",)',
        f"{_MANAGED}each_wrong_field_of_a_policy_is_named",
    ),
    (
        "the least lease is one",
        _MANAGER,
        "if self.lease < LEAST:",
        "if self.lease <= LEAST:",
        f"{_MANAGED}each_wrong_field_of_a_policy_is_named",
    ),
    (
        "whatever is no name of a job is unknown",
        _MANAGER,
        "if job not in tuple(self.jobs):",
        "if job not in self.jobs:",
        f"{_MANAGED}what_is_no_name_of_a_job_is_refused_as_an_unknown_one[job2]",
    ),
    (
        "a shutdown outlives a store that is gone",
        _MANAGER,
        "with suppress(LeaseLost, StoreDown):",
        "with suppress(LeaseLost):",
        f"{_NOT_BEGUN}[gone]",
    ),
    (
        "a shutdown outlives a run that is another's",
        _MANAGER,
        "with suppress(LeaseLost, StoreDown):",
        "with suppress(StoreDown):",
        f"{_NOT_BEGUN}[cancelled]",
    ),
    (
        "work that heeds no cancel is told as lost",
        _MANAGER,
        "LOST if not work.done() or work.cancelled() else",
        "LOST if work.cancelled() else",
        f"{_MANAGED}a_job_that_heeds_no_loss_of_its_claim_is_told_as_lost",
    ),
    (
        "a run may be started once at least",
        _MANAGER,
        '("lease", "watchdog", "capacity", "starts")',
        '("lease", "watchdog", "capacity")',
        f"{_MANAGED}a_policy_that_is_no_policy_is_told_by_name[starts-0]",
    ),
    (
        "a run that cannot be worked on is told",
        _MANAGER,
        'self._observe("broken", run=run_id, error=type(error).__name__)',
        "pass",
        f"{_MANAGED}a_run_that_cannot_be_worked_on_is_told_and_the_worker_goes_on",
    ),
    (
        "no run has a topic that there is not",
        _NEWS,
        "% (TOPICS - 1)",
        "% TOPICS",
        f"{_HEARD}runs_share_all_topics_but_that_of_who_looks_for_something_to_do",
    ),
    (
        "a run that has ended is nothing to do",
        _NEWS,
        "if run.status == QUEUED else",
        'if run.status != "running" else',
        f"{_HEARD}only_a_run_that_waits_for_a_worker_is_something_to_do[completed]",
    ),
    (
        "an answer counts also when whoever asked was asleep",
        _OPENING,
        "if not ready and monotonic() > end:",
        "if monotonic() > end:",
        f"{_LATE_ANSWER}[True]",
    ),
    (
        "a bound on a connection outlasts its first transaction",
        _OPENING,
        "ms'\")\n    connection.commit()",
        "ms'\")",
        f"{_OPENED}a_transaction_that_is_taken_back_leaves_the_bound_on_a_frozen_one",
    ),
    (
        "who waits until all is idle waits for its own work",
        _WORKER,
        " and not manager.at_work:",
        ":",
        f"{_COMMAND}who_waits_until_all_is_idle_waits_for_the_clean_up_of_its_own_jobs",
    ),
    (
        "who waits until all is idle asks again where the store is gone",
        _WORKER,
        "with suppress(StoreDown):\n            if not await",
        "with suppress():\n            if not await",
        f"{_COMMAND}who_waits_until_all_is_idle_outlasts_a_store_that_is_gone",
    ),
    (
        "what ends the serving is told",
        _WORKER,
        "    await serving\n",
        "",
        f"{_COMMAND}what_ends_the_serving_is_told_and_is_no_end_in_order",
    ),
    (
        "a run may go on longer than its work",
        _SCENARIOS,
        " and floor.clock() >= at_least",
        "",
        f"{_ON_FLOOR}a_renewal_that_is_refused_is_told_by_the_store_at_that_moment",
    ),
    (
        "who stands still is not asked to leave",
        _SCENARIOS,
        'if worker.process.state == "running":',
        "if worker.process.alive:",
        f"{_STANDS}[freeze-False]",
    ),
    (
        "the warehouse is no part of a worker",
        _FLOOR,
        'name="warehouse", context=Context()',
        'name="warehouse"',
        f"{_ON_FLOOR}what_the_warehouse_has_begun_is_done_also_when_its_worker_stands_still[kill]",
    ),
    (
        "who is refused is not back by that",
        _JUDGES,
        ' and event.kind != "refused":',
        ":",
        f"{_RIGHT}[taken over from who was refused]",
    ),
    (
        "who is back is told from who is not",
        _JUDGES,
        'event.actor == "store" and event["by"] == worker and',
        'event.actor == "store" and',
        f"{_RIGHT}[taken over from the dead while another is at work]",
    ),
    (
        "who is away is told from who is not",
        _JUDGES,
        "event.actor == worker and event.kind in AWAY",
        "event.kind in AWAY",
        f"{_JUDGED}a_flaw_is_found_at_the_event_that_shows_it[taken over while another was away]",
    ),
    (
        "who holds a run may claim it once more",
        _JUDGES,
        'before and before.worker != event["by"] and event.time',
        "before and event.time",
        f"{_RIGHT}[claimed once more by who holds it]",
    ),
    (
        "each run has its own times with two leases",
        _STORY,
        "if found and found[-1][0] == run and",
        "if found and",
        f"{_SHOWN}two_leases_at_once_are_told_for_each_run_and_no_longer_than_the_run_lasts",
    ),
    (
        "no time with two leases outlasts what was played",
        _STORY,
        "min(a.end, b.end, self.end)",
        "min(a.end, b.end)",
        f"{_SHOWN}two_leases_at_once_are_told_for_each_run_and_no_longer_than_the_run_lasts",
    ),
    (
        "two times that touch are one",
        _STORY,
        "start <= found[-1][2]",
        "start < found[-1][2]",
        f"{_SHOWN}two_times_with_two_leases_that_touch_are_told_as_one",
    ),
    (
        "a move after a lease does not lengthen it",
        _STORY,
        "lease.end, lease.how = min(lease.end, now)",
        "lease.end, lease.how = now",
        f"{_SHOWN}a_move_after_the_end_of_a_lease_does_not_lengthen_it",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
