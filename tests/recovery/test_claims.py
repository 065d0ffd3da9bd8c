"""What a claim is worth: how it is kept, how it is lost, and a store that fails meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery import outcomes
from labkit.recovery.errors import ProviderError
from labkit.recovery.idempotency import PENDING, KeyRecord, Seen, resolved
from labkit.stores.memory import MemoryKeyStore
from tests.simulation.kit import virtually

from .executing import (
    CHARGE,
    DOWN,
    LOST_ANSWER,
    NOT_THERE,
    OK,
    POLICY,
    REFUSED,
    RETRY,
    Shop,
    Step,
    Told,
)


def test_a_key_is_claimed_before_anything_is_sent() -> None:
    async def program() -> None:
        shop = Shop()

        class Looks(Told):
            async def perform(self, request: Any) -> str:
                assert shop.kept() == PENDING
                return await super().perform(request)

        assert (await shop.execute(Looks([OK]))).status == outcomes.SUCCEEDED

    virtually(program())


def test_a_claim_that_is_lost_ends_the_work_at_its_next_renewal() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([LOST_ANSWER])
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        taken = shop.claimed_by_another()
        outcome = await work
        assert (outcome.status, shop.clock()) == (outcomes.UNKNOWN, pytest.approx(10 / 3))
        assert shop.keys.kept[CHARGE.tenant, CHARGE.sent] == taken
        assert service.asked == []

    virtually(program())


def test_a_late_write_is_refused_and_seen() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([Step(seconds=2.0)])
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        taken = shop.claimed_by_another()
        assert (await work).status == outcomes.SUCCEEDED
        assert shop.keys.kept[CHARGE.tenant, CHARGE.sent] == taken
        assert "late_write" in [kind for kind, _ in shop.told]

    virtually(program())


def test_a_lost_claim_calls_nothing_off_since_another_works_on_it() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([LOST_ANSWER], [NOT_THERE], cancels=True)
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        shop.claimed_by_another()
        await work
        assert service.asked == []

    virtually(program())


def test_what_a_successor_may_have_done_is_never_told_as_not_done() -> None:
    async def program() -> str:
        shop = Shop()
        late = Step(ProviderError("an older claim", kind="permission"), seconds=2.0, effect=None)
        work = asyncio.create_task(shop.execute(Told([late])))
        await asyncio.sleep(1.0)
        shop.claimed_by_another()
        return (await work).status

    assert virtually(program()) == outcomes.UNKNOWN


def test_before_each_further_try_it_is_asked_whether_the_claim_lasts() -> None:
    async def program() -> tuple[str, int]:
        policy = replace(POLICY, retry=replace(RETRY, first_wait=2.0))
        shop, service = Shop(policy), Told([REFUSED, OK])
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        shop.claimed_by_another()
        return (await work).status, len(service.effects)

    assert virtually(program()) == (outcomes.UNKNOWN, 0)


@pytest.mark.parametrize(("reading", "writing"), [(0.0, 12.0), (9.0, 0.5)])
def test_a_claim_whose_writing_took_longer_than_it_lasts_is_asked_before_the_first_try(
    reading: float, writing: float
) -> None:
    async def program() -> tuple[str, int]:
        shop, service = Shop(), Told([OK], [NOT_THERE])

        class Slow(MemoryKeyStore):
            async def read(self, tenant: str, key: str) -> Seen:
                seen = await super().read(tenant, key)
                await asyncio.sleep(0.0 if self.kept else reading)
                return seen

            async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
                written = await super().swap(old, new)
                await asyncio.sleep(0.0 if old else writing)
                if old is None:
                    shop.claimed_by_another()
                return written

        shop.keys = Slow(shop.clock)
        first = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(20.0)
        return (await first).status, len(service.requests)

    assert virtually(program()) == (outcomes.UNKNOWN, 0)


def test_a_renewal_beside_another_write_is_asked_for_again_and_the_claim_lasts() -> None:
    async def program() -> tuple[str, bool]:
        shop = Shop()

        class Written(MemoryKeyStore):
            beside = False

            async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
                if old and not self.beside:  # the first renewal: somebody has cut its lease
                    self.beside = await super().swap(old, replace(old, version=old.version + 1))
                return await super().swap(old, new)

        shop.keys = store = Written(shop.clock)
        return (await shop.execute(Told([Step(seconds=8.0)]))).status, store.beside

    assert virtually(program()) == (outcomes.SUCCEEDED, True)


# --- a store that is gone, hangs or raises


class Gone(MemoryKeyStore):
    """A store that cannot be reached for a while."""

    until = 0.0

    async def read(self, tenant: str, key: str) -> Seen:
        """Read, or raise."""
        seen = await super().read(tenant, key)
        if seen.now < self.until and seen.record is not None:
            raise OSError("gone")
        return seen


def with_a_store_that_is_gone(until: float) -> tuple[str, float]:
    """How a call of a minute ends, and when."""

    async def program() -> tuple[str, float]:
        shop = Shop(replace(POLICY, limit=100.0))
        shop.keys = store = Gone(shop.clock)
        store.until = until
        try:
            told = (await shop.execute(Told([Step(seconds=60.0)]))).status
        except OSError as error:
            told = str(error)
        return told, round(shop.clock(), 3)

    found: tuple[str, float] = virtually(program())
    return found


def test_a_store_that_is_gone_for_a_moment_costs_no_claim() -> None:
    assert with_a_store_that_is_gone(5.0) == (outcomes.SUCCEEDED, 60.0)


def test_a_store_that_is_gone_too_long_ends_the_work() -> None:
    assert with_a_store_that_is_gone(1e6) == ("gone", 17.5)


class Hangs(MemoryKeyStore):
    """A store whose reads hang from the second on."""

    reads = 0

    async def read(self, tenant: str, key: str) -> Seen:
        """Read once."""
        self.reads += 1
        if self.reads > 1:
            await asyncio.sleep(40.0)
        return await super().read(tenant, key)


def test_a_renewal_that_hangs_loses_the_claim_before_its_lease_has_ended() -> None:
    async def program() -> tuple[str, float, int]:
        shop, service = Shop(replace(POLICY, limit=100.0)), Told([Step(seconds=60.0, effect=30.0)])
        shop.keys = Hangs(shop.clock)
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(11.0)
        ended = [kind for kind, _ in shop.told if kind in ("tried", "claim_lost")]
        outcome = await work
        return outcome.status, len(ended), len(service.requests)

    assert virtually(program()) == (outcomes.UNKNOWN, 2, 1)


def test_a_result_waits_for_a_store_that_is_gone_for_a_moment() -> None:
    async def program() -> tuple[str, str]:
        shop = Shop()
        shop.keys = store = Gone(shop.clock)
        store.until = 5.0
        outcome = await shop.execute(Told([OK]))
        return outcome.status, shop.kept()

    assert virtually(program()) == (outcomes.SUCCEEDED, "succeeded")


def test_an_error_of_the_store_says_what_is_known_of_the_operation() -> None:
    async def program() -> list[str]:
        shop = Shop()
        shop.keys = store = Gone(shop.clock)
        store.until = 1e6
        with pytest.raises(OSError, match="gone") as raised:
            await shop.execute(Told([OK]))
        return raised.value.__notes__

    assert virtually(program()) == ["of the operation itself is known: succeeded"]


def test_a_cancel_out_of_the_store_is_none_of_the_callers() -> None:
    async def program() -> str:
        shop = Shop()

        class Cancels(MemoryKeyStore):
            async def read(self, tenant: str, key: str) -> Seen:
                if asyncio.current_task().get_name().startswith("renew"):  # type: ignore[union-attr]
                    raise asyncio.CancelledError
                return await super().read(tenant, key)

        shop.keys = Cancels(shop.clock)
        return (await shop.execute(Told([Step(seconds=8.0)]))).status

    assert virtually(program()) == outcomes.UNKNOWN


def test_a_claim_that_was_written_and_raised_is_given_back() -> None:
    async def program() -> tuple[str, int]:
        shop, service = Shop(), Told([OK])

        class Raises(MemoryKeyStore):
            async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
                written = await super().swap(old, new)
                if old is None:
                    raise OSError("the answer was lost")
                return written

        shop.keys = Raises(shop.clock)
        with pytest.raises(OSError, match="lost"):
            await shop.execute(service)
        return shop.kept(), len(service.requests)

    assert virtually(program()) == ("failed", 0)


def test_a_persons_word_is_not_written_over() -> None:
    async def program() -> tuple[str, str]:
        shop = Shop()

        class LostAnswer(MemoryKeyStore):
            async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
                written = await super().swap(old, new)
                if new.handed_over:
                    said = resolved(new, True, "seen in the books", now=0.0, ttl=1e6)
                    assert await super().swap(new, said)
                    raise OSError("the answer was lost")
                return written

        shop.keys = LostAnswer(shop.clock)
        outcome = await shop.execute(Told([LOST_ANSWER], [DOWN]))
        return outcome.status, shop.kept()

    assert virtually(program()) == (outcomes.MANUAL, "succeeded")
