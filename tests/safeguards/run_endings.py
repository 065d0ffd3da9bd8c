"""What holds where a run, its job or its listener ends in a way that nobody meant."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

_MANAGER: Final = "labkit/runs/manager.py"
_DRIVING: Final = "labkit/runs/driving.py"
_STORE: Final = "labkit/runs/store.py"
_FRONT: Final = "labkit/runs/front.py"
_RECORD: Final = "labkit/runs/record.py"
_TEACHING: Final = "labkit/teaching/"

_MANAGED: Final = "tests/runs/test_manager.py::test_"
_DRIVEN: Final = "tests/runs/test_driving.py::test_"
_STORED: Final = "tests/runs/test_store.py::test_"
_TAUGHT: Final = "tests/teaching/test_"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "what would end a worker fails its run",
        _DRIVING,
        "except BaseException as error:  # a job may raise anything",
        "except Exception as error:  # a job may raise anything",
        f"{_DRIVEN}what_would_end_the_worker_fails_the_run_and_the_worker_goes_on[error1]",
    ),
    (
        "another error that a job made of a cancel hands its run back",
        _DRIVING,
        "if self._stopped():  # and the job has made another error of it",
        "if False:  # and the job has made another error of it",
        f"{_DRIVEN}a_job_that_makes_another_error_of_a_cancel_is_handed_back",
    ),
    (
        "a job cannot say that its claim is lost",
        _DRIVING,
        "isinstance(error, LeaseLost) and (self._refused or bool(self._renewal.lost))",
        "isinstance(error, LeaseLost)",
        f"{_DRIVEN}a_job_that_says_wrongly_that_its_claim_is_lost_has_failed",
    ),
    (
        "a run is handed back whatever number its worker knows",
        _STORE,
        "        if event:\n            mine,",
        "        if True:\n            mine,",
        f"{_DRIVEN}a_run_is_handed_back_also_after_a_step_whose_answer_was_lost",
    ),
    (
        "who listens decides about no run",
        _MANAGER,
        "    with suppress(Exception):\n        observe(kind",
        "    if True:\n        observe(kind",
        f"{_DRIVEN}an_observer_that_fails_decides_about_no_run",
    ),
    (
        "a run that ends its workers is given up",
        _MANAGER,
        "if run.starts <= self.policy.starts else",
        "if True else",
        f"{_MANAGED}a_run_that_was_started_too_often_without_a_step_has_failed",
    ),
    (
        "starts are counted",
        _STORE,
        "starts=RUNS.c.starts + 1",
        "starts=1",
        f"{_MANAGED}a_run_that_was_started_too_often_without_a_step_has_failed",
    ),
    (
        "a step forgives the starts before it",
        _STORE,
        "answer=None, starts=0)",
        "answer=None)",
        f"{_MANAGED}a_step_that_is_done_forgives_the_starts_before_it",
    ),
    (
        "who retries a run begins to count anew",
        _FRONT,
        '"until": None, "starts": 0}',
        '"until": None}',
        f"{_MANAGED}a_run_that_was_started_too_often_without_a_step_has_failed",
    ),
    (
        "work that has not begun is handed back",
        _MANAGER,
        "for held in self._fresh.values():",
        "for held in ():",
        f"{_MANAGED}a_shutdown_before_the_work_has_begun_hands_it_back",
    ),
    (
        "a lease has a least length",
        _MANAGER,
        "if self.lease < LEAST:",
        "if False:",
        f"{_MANAGED}a_lease_that_is_over_before_it_is_heard_of_is_refused[0.001]",
    ),
    (
        "an answer may name its question",
        _FRONT,
        "asked = None if seq is None else RUNS.c.seq == seq",
        "asked = None",
        f"{_STORED}an_answer_that_names_its_question_is_never_one_to_the_next[sqlite]",
    ),
    (
        "names are looked at before anything is written",
        _RECORD,
        'if not isinstance(value, str) or len(value) > MOST or not (value or name == "model"):',
        "if False:",
        f"{_STORED}a_name_that_is_no_short_text_is_refused_before_anything_is_written"
        "[sqlite-None-job]",
    ),
    (
        "lengths are looked at before the first is tried",
        f"{_TEACHING}lease_lengths.py",
        "        replace(POLICY, lease=length)",
        "        float(length)",
        f"{_TAUGHT}lease_lengths.py::"
        "test_a_length_that_no_lease_has_is_refused_before_anything_is_told",
    ),
    (
        "what is no table of moves is drawn by nobody",
        f"{_TEACHING}states.py",
        "not isinstance(moves, Mapping) or not all(",
        "False and not all(",
        f"{_TAUGHT}states.py::test_what_is_no_table_of_moves_is_refused_by_name[x]",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
