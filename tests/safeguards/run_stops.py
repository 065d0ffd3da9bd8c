"""The safeguards of letting go: whose a cancel is, how long is waited, what a zombie sends."""

from typing import Final

from .kinds import of_rows

_DRIVING: Final = "tests/runs/test_driving.py::test_"
_MANAGER: Final = "tests/runs/test_manager.py::test_"
_FLOOR: Final = "tests/scenarios/test_lease_floor.py::test_"
_SELF: Final = f"{_DRIVING}a_job_that_cancels_itself_has_failed_and_is_not_done_again_and_again"
_DEADLINE: Final = (
    f"{_DRIVING}a_deadline_of_the_jobs_own_that_passes_while_a_step_is_kept_is_a_timeout"
)
_SOON: Final = (
    f"{_DRIVING}a_store_that_is_back_is_written_to_soon_however_long_the_lease_is[3600.0]"
)
_CLAIM: Final = f"{_MANAGER}a_claim_that_is_under_way_at_a_shutdown_is_handed_back"
_WAKES: Final = f"{_FLOOR}who_is_frozen_before_a_request_has_no_effect_when_it_wakes[ship]"
_MASK: Final = (
    "tests/simulation/test_mask.py::"
    "test_a_text_that_begins_like_a_credential_again_and_again_is_read_in_one_pass"
)

# name, file in labkit, old, new, what goes red
_ROWS: Final = (
    (
        "a cancel of the job's own doing is a failure",
        "runs/driving.py",
        "return self._ending() or bool(self._renewal.lost)",
        "return asyncio.current_task().cancelling() > 0 or bool(self._renewal.lost)",
        f"{_SELF}[waits]",
    ),
    (
        "a deadline that passes in a write is told to the job",
        "runs/driving.py",
        "step = await steps.athrow(cancel)  # a deadline of the job's own: it may say so",
        "raise",
        _DEADLINE,
    ),
    (
        "a write is asked for again soon",
        "runs/driving.py",
        "min(self.held.lease.length / RUSH, AGAIN)",
        "self.held.lease.length / RUSH",
        _SOON,
    ),
    (
        "a result is kept again soon",
        "recovery/claims.py",
        "min(length / SHARE, AGAIN)",
        "length / SHARE",
        "tests/recovery/test_claims.py::test_a_store_that_is_gone_too_long_ends_the_work",
    ),
    (
        "a run that is handed back without a step counts as started",
        "runs/store.py",
        'return await self._write(held, "hand back", {}, worker=None, until=None)',
        'return await self._write(held, "hand back", {}, **FREE)',
        f"{_DRIVING}a_run_whose_workers_are_always_ended_in_order_is_given_up_too",
    ),
    (
        "a shutdown waits for a claim",
        "runs/manager.py",
        "            async with asyncio.timeout(self.policy.clean_up), self._claiming:\n"
        "                pass\n",
        "            pass\n",
        f"{_CLAIM}[0.6]",
    ),
    (
        "a claim that comes after a shutdown is handed back",
        "runs/manager.py",
        "        if self._closing:\n            await self._hand_back(held)\n"
        "            return False\n",
        "",
        f"{_CLAIM}[3.0]",
    ),
    (
        "a shutdown waits for no claim that hangs",
        "runs/manager.py",
        "async with asyncio.timeout(self.policy.clean_up), self._claiming:",
        "async with self._claiming:",
        f"{_MANAGER}a_shutdown_does_not_wait_for_a_claim_that_hangs",
    ),
    (
        "a store that is gone for a moment takes no lease",
        "recovery/renewal.py",
        "                if self._clock() >= self._last + LAST_TRY * self._length:\n"
        "                    raise\n",
        "                raise\n",
        "tests/recovery/test_renewal.py::"
        "test_a_store_that_is_gone_for_a_moment_takes_no_lease_that_lasts",
    ),
    (
        "what an old claim still sends is refused by the warehouse",
        "scenarios/floor.py",
        "if (request.fence, request.attempt) <= self._closed.get(request.key, (0, 0)):",
        "if False:",
        _WAKES,
    ),
    (
        "the warehouse's no is a promise",
        "scenarios/floor.py",
        "        self._close(request.key, request.fence, request.attempt)\n        result",
        "        result",
        f"{_FLOOR}after_the_warehouse_has_said_no_an_earlier_try_is_not_done",
    ),
    (
        "who is frozen at the end is waited for",
        "scenarios/leases.py",
        "if not (_open(floor) or frozen) and",
        "if not _open(floor) and",
        _WAKES,
    ),
    (
        "a key is looked for so far and no farther",
        "simulation/mask.py",
        r"(?=[a-z0-9_-]{0,99}\d)",
        r"(?=\S*\d)",
        f"{_MASK}[sk-]",
    ),
)

SAFEGUARDS: Final = of_rows(_ROWS, under="labkit/")
