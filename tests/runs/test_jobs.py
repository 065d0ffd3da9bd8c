"""The job that learners copy: three steps, each effect once, and nothing passed over in silence."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from labkit.recovery.errors import ProviderError
from labkit.recovery.execution import ClockJumped
from labkit.recovery.idempotency import KeyRecord, Operation, Seen, checked
from labkit.recovery.lease import Lease
from labkit.recovery.outcomes import REJECTED, Outcome
from labkit.recovery.policy import MOST as LONGEST
from labkit.recovery.run_states import COMPLETED, FAILED
from labkit.recovery.service import DONE, IN_FLIGHT, NOT_DONE, Known, Request
from labkit.runs.jobs import JUMPS, STEPS, Once, jobs
from labkit.runs.record import AgentRun
from labkit.stores.errors import StoreDown
from labkit.stores.memory import MemoryKeyStore

from .kit import COUNTED, POLICY, Floor, Line, Worker, on_floor

PAUSE = 1.0


class Shop:
    """Has an effect as soon as it is asked, and answers half a second later; it can be asked.

    `fails`: what it raises instead. `mute`: it cannot be asked. `in_flight`: for so many seconds it
    says of everything that it may still be done.
    """

    atomic = False
    cancels = False
    remembers = math.inf

    def __init__(
        self, fails: ProviderError | None = None, *, mute: bool = False, in_flight: float = 0.0
    ) -> None:
        self.effects: list[str] = []
        self._in_flight = in_flight
        self._fails = fails
        self._mute = mute

    async def perform(self, request: Request) -> str:
        """Do it."""
        if self._fails:
            raise self._fails
        self.effects.append(request.key)
        await asyncio.sleep(0.5)
        return f"receipt {len(self.effects)}"

    async def look_up(self, request: Request) -> Known:
        """What became of it."""
        if self._mute:
            raise ProviderError("it cannot be asked", status=501)
        if asyncio.get_running_loop().time() < self._in_flight:
            return Known(IN_FLIGHT)
        return Known(DONE, "found") if request.key in self.effects else Known(NOT_DONE)

    async def call_off(self, request: Request) -> Known:
        """It cannot."""
        raise NotImplementedError


class Keys(MemoryKeyStore):
    """A store of keys that is gone between two times, and whose clock may be set."""

    def __init__(self, floor: Floor, gone: tuple[float, float] = (0.0, 0.0)) -> None:
        super().__init__(floor.clock)
        self._gone = gone
        self._at = floor.clock

    def sets(self, floor: Floor, at: float, jump: float) -> None:
        """Set its clock, and that of the runs, by `jump` seconds at a time."""
        self._clock = lambda: floor.clock() + (jump if floor.clock() >= at else 0.0)
        floor.store._now = sa.bindparam("store_time", type_=sa.Double, callable_=self._clock)

    async def read(self, tenant: str, key: str) -> Seen:
        """The record, where the store is there."""
        if self._gone[0] <= self._at() < self._gone[1]:
            raise StoreDown("it is gone")
        return await super().read(tenant, key)


def works(
    floor: Floor, name: str, keys: MemoryKeyStore, shop: Shop, line: Line | None = None
) -> Worker:
    """A worker that does orders."""
    once = Once(keys, shop, worker=name, lease=POLICY.lease)
    return floor.worker(name, line, jobs=jobs(once, pause=PAUSE))


def held_by_the_dead(run: AgentRun, *, length: float) -> KeyRecord:
    """The key of its first step, whose lease lasts for so long."""
    given = {"step": "reserve", "given": run.given}
    operation = Operation(tenant="acme", name="reserve", resource=run.run_id, payload=given)
    return KeyRecord(
        tenant="acme",
        key=operation.sent,
        fingerprint=checked(operation),
        state="pending",
        lease=Lease("dead", 1, until=length, length=length),
        since=0.0,
    )


def keys_of(run: AgentRun) -> list[str]:
    """Those of its three effects."""
    return [f"acme/{step}/{run.run_id}" for step in STEPS]


async def receipts(floor: Floor, run: AgentRun) -> list[str]:
    """What was told of each step."""
    events = await floor.events(run)
    return [event.data["receipt"] for event in events if event.type == "node_finished"]


def test_an_order_is_three_steps_each_with_one_effect_after_its_pause() -> None:
    async def program(floor: Floor) -> None:
        shop = Shop()
        works(floor, "a", Keys(floor), shop)
        run = await floor.until(await floor.submit("order"))
        assert (run.status, run.result) == (COMPLETED, "shipped")
        assert shop.effects == keys_of(run)
        assert await floor.types(run) == COUNTED
        assert await receipts(floor, run) == ["receipt 1", "receipt 2", "receipt 3"]
        assert floor.clock() == pytest.approx(3 * (PAUSE + 0.5), abs=0.5)

    on_floor(program)


def test_two_orders_of_the_same_thing_are_two() -> None:
    async def program(floor: Floor) -> None:
        shop = Shop()
        works(floor, "a", Keys(floor), shop)
        runs = [await floor.submit("order", 7) for _ in range(2)]
        for run in runs:
            await floor.until(run)
        assert sorted(shop.effects) == sorted([*keys_of(runs[0]), *keys_of(runs[1])])

    on_floor(program)


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (0.5, ["receipt 1", "receipt 2", "receipt 3"]),  # before its first effect
        (1.3, ["found", "receipt 2", "receipt 3"]),  # after it, and before it heard of it
        (2.0, ["receipt 1", "receipt 2", "receipt 3"]),  # between two steps
        (2.8, ["receipt 1", "found", "receipt 3"]),
    ],
)
def test_wherever_a_worker_dies_each_effect_is_had_once_and_no_step_is_done_again(
    seconds: float, wanted: list[str]
) -> None:
    async def program(floor: Floor) -> None:
        keys, shop = Keys(floor), Shop()
        first = works(floor, "a", keys, shop)
        run = await floor.submit("order")
        await floor.at(seconds)
        first.process.kill()
        works(floor, "b", keys, shop)
        assert (await floor.until(run)).status == COMPLETED
        assert shop.effects == keys_of(run)
        assert await receipts(floor, run) == wanted

    on_floor(program)


def test_an_effect_whose_step_was_not_kept_is_known_after_weeks_without_a_worker() -> None:
    async def program(floor: Floor) -> None:
        keys, shop = Keys(floor), Shop()
        first = works(floor, "a", keys, shop, Line((1.3, 1e9)))
        run = await floor.submit("order")
        await floor.at(3.0)
        assert shop.effects == keys_of(run)[:1]
        first.process.kill()
        await floor.at(30 * 86_400.0)
        works(floor, "b", keys, shop)
        assert (await floor.until(run)).status == COMPLETED
        assert shop.effects == keys_of(run)

    on_floor(program)


def test_a_key_that_a_dead_worker_still_holds_is_waited_for_and_does_not_fail_the_run() -> None:
    async def program(floor: Floor) -> None:
        keys, shop = Keys(floor), Shop()
        run = await floor.submit("order")
        assert await keys.swap(None, held_by_the_dead(run, length=65.0))
        works(floor, "b", keys, shop)
        await floor.at(64.0)
        assert shop.effects == []
        assert (await floor.until(run)).status == COMPLETED
        assert shop.effects == keys_of(run)

    on_floor(program)


def test_what_no_program_can_settle_ends_the_run_and_says_what_a_person_has_to_do() -> None:
    async def program(floor: Floor) -> None:
        keys, shop = Keys(floor), Shop(mute=True)
        first = works(floor, "a", keys, shop)
        run = await floor.submit("order")
        await floor.at(1.3)
        first.process.kill()
        works(floor, "b", keys, shop)
        run = await floor.until(run)
        assert (run.status, run.error_code) == (FAILED, "Unsettled")
        (record,) = await keys.waiting("acme")
        said = run.error_message or ""
        assert said.startswith("reserve: ")
        assert f"note that under key {record.digest}, retry the run" in said
        assert run.run_id not in said
        assert shop.effects == keys_of(run)[:1]

    on_floor(program)


def test_what_may_still_be_done_is_asked_about_until_the_service_knows() -> None:
    async def program(floor: Floor) -> None:
        keys, shop = Keys(floor), Shop(in_flight=40.0)
        first = works(floor, "a", keys, shop)
        run = await floor.submit("order")
        await floor.at(1.3)
        first.process.kill()
        works(floor, "b", keys, shop)
        assert (await floor.until(run)).status == COMPLETED
        assert shop.effects == keys_of(run)
        assert (await receipts(floor, run))[0] == "found"

    on_floor(program)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProviderError("no such thing", status=400), "ProviderError"),
        (ProviderError("who are you", kind="auth"), "AUTH"),
        (ProviderError("slow down", status=429), "RATE_LIMITED"),
    ],
)
def test_what_was_surely_not_done_ends_the_run_with_the_services_own_error(
    error: ProviderError, code: str
) -> None:
    async def program(floor: Floor) -> None:
        shop = Shop(error)
        works(floor, "a", Keys(floor), shop)
        run = await floor.until(await floor.submit("order"))
        assert (run.status, run.error_code) == (FAILED, code)
        assert await receipts(floor, run) == []

    on_floor(program)


def test_a_tries_own_error_that_may_have_had_its_effect_asks_for_a_person() -> None:
    async def program(floor: Floor) -> None:
        keys, shop = Keys(floor), Shop(ProviderError("it broke", status=500), mute=True)
        works(floor, "a", keys, shop)
        run = await floor.until(await floor.submit("order"))
        assert (run.status, run.error_code) == (FAILED, "Unsettled")
        assert len(await keys.waiting("acme")) == 1

    on_floor(program)


def test_an_order_that_failed_goes_on_when_it_is_retried() -> None:
    async def program(floor: Floor) -> None:
        shop = Shop(ProviderError("no such thing", status=400))
        works(floor, "a", Keys(floor), shop)
        run = await floor.until(await floor.submit("order"))
        shop._fails = None
        await floor.store.retry(run.run_id, run.owner)
        assert (await floor.until(run)).status == COMPLETED
        assert shop.effects == keys_of(run)

    on_floor(program)


def test_a_store_of_keys_that_is_gone_for_a_while_is_asked_until_it_is_back() -> None:
    async def program(floor: Floor) -> None:
        shop = Shop()
        works(floor, "a", Keys(floor, gone=(0.5, 30.0)), shop)
        run = await floor.until(await floor.submit("order"))
        assert (run.status, run.fence) == (COMPLETED, 1)
        assert shop.effects == keys_of(run)
        assert floor.clock() == pytest.approx(34.5, abs=1.0)

    on_floor(program)


@pytest.mark.parametrize("jump", [60.0, -60.0, 9e8])
@pytest.mark.parametrize("seconds", [0.2, 1.3, 2.0, 100.0])
def test_a_clock_that_is_set_ends_no_run_and_repeats_no_effect(seconds: float, jump: float) -> None:
    async def program(floor: Floor) -> None:
        keys, shop = Keys(floor), Shop()
        keys.sets(floor, seconds, jump)
        for name in "ab":
            works(floor, name, keys, shop)
        runs = [await floor.submit("order") for _ in range(2)]
        await floor.at(101.0)
        runs.append(await floor.submit("order"))
        for run in runs:
            assert (await floor.until(run)).status == COMPLETED
        assert sorted(shop.effects) == sorted(key for run in runs for key in keys_of(run))

    on_floor(program)


@pytest.mark.parametrize("jump", [60.0, 200 * 86_400.0])
def test_what_a_dead_worker_did_is_known_after_the_clock_was_set_forward(jump: float) -> None:
    async def program(floor: Floor) -> None:
        keys, shop = Keys(floor), Shop()
        keys.sets(floor, 5.0, jump)
        first = works(floor, "a", keys, shop, Line((1.3, 1e9)))  # no step of its is kept
        run = await floor.submit("order")
        await floor.at(3.0)
        assert shop.effects == keys_of(run)[:1]
        first.process.kill()
        works(floor, "b", keys, shop)
        assert (await floor.until(run)).status == COMPLETED
        assert shop.effects == keys_of(run)

    on_floor(program)


def test_a_clock_that_jumps_at_every_look_ends_the_run_by_name_in_the_end() -> None:
    async def program(floor: Floor) -> None:
        told: list[str] = []
        once = Once(
            Keys(floor), Shop(), worker="w", lease=10.0, observe=lambda kind, **_: told.append(kind)
        )

        async def jumps(*given: Any, **named: Any) -> Outcome:
            return Outcome(status=REJECTED, error=ClockJumped("clock_jumped: by +60 s"))

        once._executor.execute = jumps  # type: ignore[method-assign]
        with pytest.raises(ClockJumped, match="60 s"):
            await once(await floor.submit("order"), "ship")
        assert told == ["clock_jumped"] * JUMPS

    on_floor(program)


def test_one_that_stays_away_ends_the_run_by_name_when_the_steps_time_is_over() -> None:
    async def program(floor: Floor) -> None:
        shop = Shop()
        works(floor, "a", Keys(floor, gone=(0.5, 1e6)), shop)
        run = await floor.until(await floor.submit("order"))
        assert (run.status, run.error_code) == (FAILED, "StoreDown")
        assert shop.effects == []
        assert floor.clock() == pytest.approx(71.0, abs=1.0)

    on_floor(program)


def test_an_order_is_done_under_the_longest_lease_that_a_policy_allows() -> None:
    async def program(floor: Floor) -> None:
        once = Once(Keys(floor), Shop(), worker="a", lease=LONGEST)
        policy = replace(POLICY, lease=LONGEST)
        floor.worker("a", jobs=jobs(once, pause=PAUSE), policy=policy)
        assert (await floor.until(await floor.submit("order"))).status == COMPLETED

    on_floor(program)
