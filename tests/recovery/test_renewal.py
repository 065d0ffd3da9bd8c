"""A lease that is kept alive beside the work, and a holder that stops by its own clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from labkit.recovery.renewal import TAKEN, UNRENEWED, Renewal, while_held
from tests.simulation.kit import virtually

LENGTH = 12.0


class Kept:
    """A lease of twelve seconds: what the store says at each time, and what was seen of it."""

    def __init__(self, ask: Callable[[float], Awaitable[bool | None]], since: float = 0.0) -> None:
        self.clock = asyncio.get_running_loop().time
        self.asked: list[float] = []
        self.told: list[tuple[str, float]] = []
        self._ask = ask
        self.renewal = Renewal(self._asks, length=LENGTH, since=since, observe=self._observe)

    async def _asks(self) -> bool | None:
        self.asked.append(round(self.clock(), 3))
        return await self._ask(self.clock())

    def _observe(self, kind: str, **details: Any) -> None:
        self.told.append((kind, round(self.clock(), 3)))

    async def held(self, seconds: float, **how: Any) -> asyncio.Task[str]:
        """Work of so many seconds, while it is held."""

        async def work() -> str:
            await asyncio.sleep(seconds)
            return "done"

        return await while_held(work(), self.renewal, name="work", **how)


async def yes(now: float) -> bool | None:
    return True


def gone(*cuts: tuple[float, float]) -> Callable[[float], Awaitable[bool | None]]:
    """A store that cannot be reached in each of `cuts`."""

    async def ask(now: float) -> bool | None:
        if any(start <= now < end for start, end in cuts):
            raise OSError("gone")
        return True

    return ask


def test_a_lease_is_renewed_at_a_third_of_it_while_the_work_lasts() -> None:
    async def program() -> tuple[str, list[float], float]:
        kept = Kept(yes)
        task = await kept.held(30.0)
        return task.result(), kept.asked, kept.clock()

    done, asked, ended = virtually(program())
    assert (done, ended) == ("done", 30.0)
    assert asked == [4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0]


def test_a_lease_counts_from_before_its_renewal_was_asked_for() -> None:
    async def slow(now: float) -> bool | None:
        await asyncio.sleep(3.0)
        return True

    async def program() -> list[float]:
        kept = Kept(slow)
        await kept.held(19.0)
        return kept.asked

    assert virtually(program()) == [4.0, 8.0, 12.0, 16.0]  # not four seconds after each answer


def test_a_claim_that_took_long_is_renewed_soon_but_not_without_a_pause() -> None:
    async def program() -> list[float]:
        kept = Kept(yes, since=-8.0)
        await kept.held(3.0)
        return kept.asked

    assert virtually(program()) == [1.0]


@pytest.mark.parametrize("end", [4.5, 5.5, 6.5, 7.5, 8.5])
def test_a_renewal_that_fails_for_a_while_costs_nothing(end: float) -> None:
    async def program() -> tuple[str, str, list[float]]:
        kept = Kept(gone((3.0, end)))
        task = await kept.held(14.0)
        return task.result(), kept.renewal.lost, kept.asked

    done, lost, asked = virtually(program())
    assert (done, lost) == ("done", "")
    assert asked[0] == 4.0
    assert {round(after - before, 3) for before, after in pairwise(asked)} <= {1.0, 4.0}


def test_whoever_is_cut_off_for_good_stops_by_its_own_clock_before_the_lease_ends() -> None:
    async def program() -> tuple[bool, str, list[float], float, list[str]]:
        kept = Kept(gone((3.0, 1e6)))
        task = await kept.held(100.0)
        kinds = [kind for kind, _ in kept.told]
        return task.cancelled(), kept.renewal.lost, kept.asked, kept.clock(), kinds

    cancelled, lost, asked, ended, kinds = virtually(program())
    assert (cancelled, lost, asked) == (True, UNRENEWED, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    assert ended == 9.0
    assert kinds == ["not_renewed"] * 6 + ["claim_lost"]


def test_a_renewal_that_hangs_is_given_up_when_four_fifths_are_over() -> None:
    async def hangs(now: float) -> bool | None:
        await asyncio.sleep(1e6)
        return True

    async def program() -> tuple[bool, str, float]:
        kept = Kept(hangs)
        task = await kept.held(100.0)
        return task.cancelled(), kept.renewal.lost, kept.clock()

    assert virtually(program()) == (True, UNRENEWED, 9.6)


def test_a_lease_that_another_has_ends_the_work_at_once() -> None:
    async def taken(now: float) -> bool | None:
        return False

    async def program() -> tuple[bool, str, float]:
        kept = Kept(taken)
        task = await kept.held(100.0)
        return task.cancelled(), kept.renewal.lost, kept.clock()

    assert virtually(program()) == (True, TAKEN, 4.0)


def test_a_lease_that_another_has_by_the_last_try_is_told_as_taken_and_not_as_unrenewed() -> None:
    async def taken(now: float) -> bool | None:
        if now < 8.5:
            raise OSError("gone")
        return False

    async def program() -> tuple[str, float]:
        kept = Kept(taken)
        await kept.held(100.0)
        return kept.renewal.lost, kept.clock()

    assert virtually(program()) == (TAKEN, 9.0)


def test_an_answer_that_says_neither_is_asked_for_again_soon() -> None:
    async def unsure(now: float) -> bool | None:
        return True if now > 6.0 else None

    async def program() -> tuple[str, list[float]]:
        kept = Kept(unsure)
        task = await kept.held(12.0)
        return task.result(), kept.asked

    assert virtually(program()) == ("done", [4.0, 5.0, 6.0, 7.0, 11.0])


def test_a_store_that_never_says_yes_or_no_is_as_good_as_gone() -> None:
    async def unsure(now: float) -> bool | None:
        return None

    async def program() -> tuple[bool, str, float]:
        kept = Kept(unsure)
        task = await kept.held(100.0)
        return task.cancelled(), kept.renewal.lost, kept.clock()

    assert virtually(program()) == (True, UNRENEWED, 9.0)


def test_work_that_blocks_the_loop_past_its_lease_is_ended_when_it_lets_go() -> None:
    async def answers(now: float) -> bool | None:
        await asyncio.sleep(0.01)
        return True

    async def program() -> tuple[bool, str]:
        kept = Kept(answers)
        loop: Any = asyncio.get_running_loop()

        async def blocks() -> None:
            await asyncio.sleep(1.0)
            loop._now += 20.0  # nothing else runs meanwhile
            await asyncio.sleep(0.5)
            raise AssertionError("it went on")

        task = await while_held(blocks(), kept.renewal, name="work")
        return task.cancelled(), kept.renewal.lost

    assert virtually(program()) == (True, UNRENEWED)


# --- before something is sent


def test_a_holder_that_was_renewed_just_now_need_not_ask() -> None:
    async def program() -> tuple[str, list[float]]:
        kept = Kept(yes)
        await asyncio.sleep(9.5)
        return await kept.renewal.lost_by_now(), kept.asked

    assert virtually(program()) == ("", [])


@pytest.mark.parametrize(("wait", "ask"), [(9.7, False), (0.0, True)])
@pytest.mark.parametrize(("answer", "lost"), [(True, ""), (False, TAKEN)])
def test_a_holder_whose_last_word_is_old_or_who_wants_to_asks_the_store(
    wait: float, ask: bool, answer: bool, lost: str
) -> None:
    async def program() -> tuple[str, int]:
        async def says(now: float) -> bool | None:
            return answer

        kept = Kept(says)
        await asyncio.sleep(wait)
        return await kept.renewal.lost_by_now(ask), len(kept.asked)

    assert virtually(program()) == (lost, 1)


def test_a_store_that_is_gone_for_a_moment_takes_no_lease_that_lasts() -> None:
    async def program() -> tuple[str, int]:
        kept = Kept(gone((0.0, 1e6)))
        await asyncio.sleep(2.0)
        return await kept.renewal.lost_by_now(ask=True), len(kept.asked)

    assert virtually(program()) == ("", 1)


def test_a_store_that_is_gone_when_a_holder_must_ask_is_no_leave_to_go_on() -> None:
    async def program() -> None:
        kept = Kept(gone((0.0, 1e6)))
        await asyncio.sleep(9.7)
        with pytest.raises(OSError, match="gone"):
            await kept.renewal.lost_by_now()

    virtually(program())


# --- the work and its end


def test_an_error_of_the_work_is_kept_in_its_task() -> None:
    async def program() -> str:
        async def fails() -> None:
            await asyncio.sleep(1.0)
            raise ValueError("no")

        task = await while_held(fails(), Kept(yes).renewal, name="work")
        return repr(task.exception())

    assert virtually(program()) == "ValueError('no')"


def test_a_cancel_is_passed_on_and_leaves_after_the_works_end() -> None:
    async def program() -> tuple[list[str], float]:
        seen = []

        async def tidies() -> None:
            try:
                await asyncio.sleep(100.0)
            finally:
                await asyncio.sleep(2.0)
                seen.append("tidied")

        kept = Kept(yes)
        task = asyncio.create_task(while_held(tidies(), kept.renewal, name="work"))
        await asyncio.sleep(1.0)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.1)
        await asyncio.wait([task])
        assert task.cancelled()
        return seen, round(kept.clock(), 3)

    assert virtually(program()) == (["tidied"], 3.0)


@pytest.mark.parametrize(("clean_up", "ends"), [(0.0, 4.0), (1.0, 5.0), (None, 20.0)])
def test_work_that_heeds_no_cancel_is_waited_for_as_long_as_is_said(
    clean_up: float | None, ends: float
) -> None:
    async def program() -> tuple[float, bool]:
        async def taken(now: float) -> bool | None:
            return False

        async def deaf() -> None:
            while kept.clock() < 20.0:
                try:
                    await asyncio.sleep(20.0 - kept.clock())
                except asyncio.CancelledError:
                    continue

        kept = Kept(taken)
        task = await while_held(deaf(), kept.renewal, name="work", clean_up=clean_up)
        ended = kept.clock(), task.done()
        await asyncio.wait([task])
        return ended

    assert virtually(program()) == (ends, clean_up is None)


def test_what_is_being_written_when_the_lease_is_lost_is_written_to_its_end() -> None:
    async def program() -> tuple[str, bool]:
        async def taken(now: float) -> bool | None:
            return False

        kept = Kept(taken)

        async def writes() -> str:
            kept.renewal.closing = True
            await asyncio.sleep(6.0)
            return "written"

        task = await while_held(writes(), kept.renewal, name="work")
        return task.result(), bool(kept.renewal.lost)

    assert virtually(program()) == ("written", True)


def test_nothing_is_renewed_after_the_works_end() -> None:
    async def program() -> list[float]:
        kept = Kept(yes)
        await kept.held(5.0)
        await asyncio.sleep(50.0)
        return kept.asked

    assert virtually(program()) == [4.0]
