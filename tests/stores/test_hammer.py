"""Eight programs hammer the same keys, and are killed and stopped: one effect a key remains."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from labkit.recovery.errors import ProviderError
from labkit.recovery.outcomes import STATUSES, SUCCEEDED
from labkit.recovery.service import DONE, NOT_DONE, Known, Request

from .conftest import KINDS
from .hammer import WINDOWS
from .hammer_ledger import ASKABLE, ATOMIC, MUTE, SERVICES, Ledger, LedgerService
from .hammering import PROGRAMS, STOPPED_AT, Hammering

LIMIT = 240  # seconds for one storm


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.timeout(LIMIT + 30)
@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("url", KINDS[1:], indirect=True)
def test_programs_that_are_killed_and_stopped_leave_one_effect_a_key_and_none_stuck(
    url: str, service: str, tmp_path: Path
) -> None:
    storm = Hammering(url, tmp_path / "ledger.db", service, seed=SERVICES.index(service))
    told = asyncio.run(asyncio.wait_for(storm.run(), LIMIT))
    every = {record.key for record in told.records}

    # The storm was one.
    assert told.killed == dict.fromkeys(WINDOWS, 5) | {"anywhere": 20}
    assert set(told.stopped) == set(STOPPED_AT)
    fences = {record.key: record.lease.fence for record in told.records}
    assert min(fences[key] for key in told.stopped.values()) >= 2  # another had taken it over
    assert len(told.outcomes) >= 2 * PROGRAMS * len(every)
    assert {said["status"] for said in told.outcomes} <= set(STATUSES)

    assert (told.duplicates, told.stuck) == (0, [])
    for key in every:
        mine = [said for said in told.outcomes if said["key"] == key]
        assert len({said["result"] for said in mine if said["result"]}) <= 1
        if service != ATOMIC:
            assert sum(said["status"] == SUCCEEDED for said in mine) <= 1
    if service != MUTE:
        assert (set(told.effects), told.handed_over) == (every, set())
        return
    # Nobody can say what became of these, so each waits for a person; the others had their effect.
    doubtful = told.struck["claimed"] | told.struck["done"] | told.struck["answered"]
    assert doubtful | set(told.stopped.values()) <= told.handed_over
    assert every - told.handed_over <= set(told.effects)
    assert told.struck["claimed"].isdisjoint(told.effects)
    assert told.struck["done"] | told.struck["answered"] <= set(told.effects)


# --- the referee and its services


async def _pass(window: str, key: str) -> None:
    """Let it go on."""


def performed(tmp_path: Path, kind: str, *fences: int) -> tuple[list[str], list[tuple[str, str]]]:
    """What each request is told, by its fence, and all effects."""
    ledger = Ledger(tmp_path / "ledger.db")
    answers = []
    for fence in fences:
        service = LedgerService(kind, ledger, f"owner-{fence}", _pass)
        try:
            answers.append(asyncio.run(service.perform(Request("k", {}, fence, 1))))
        except ProviderError as error:
            answers.append("refused" if error.definite else "in doubt")
    return answers, ledger.effects()


@pytest.mark.parametrize("kind", [ASKABLE, MUTE])
def test_an_effect_that_is_had_twice_stands_in_the_ledger_twice(tmp_path: Path, kind: str) -> None:
    answers, effects = performed(tmp_path, kind, 1, 2)
    assert answers == ["receipt 1", "receipt 1"]
    assert effects == [("k", "owner-1"), ("k", "owner-2")]


def test_an_atomic_service_keeps_repeats_apart(tmp_path: Path) -> None:
    assert performed(tmp_path, ATOMIC, 1, 2) == (["receipt 1"] * 2, [("k", "owner-1")])


def test_a_service_that_can_be_asked_refuses_a_claim_older_than_the_newest(tmp_path: Path) -> None:
    assert performed(tmp_path, ASKABLE, 2, 1) == (["receipt 1", "refused"], [("k", "owner-2")])


@pytest.mark.parametrize("late", [Request("k", {}, 1, 1), Request("k", {}, 2, 1)])
def test_its_not_done_is_a_promise_to_every_try_so_far(tmp_path: Path, late: Request) -> None:
    async def program() -> None:
        service = LedgerService(ASKABLE, Ledger(tmp_path / "ledger.db"), "owner", _pass)
        assert await service.look_up(Request("k", {}, 2, 1)) == Known(NOT_DONE)
        with pytest.raises(ProviderError):
            await service.perform(late)
        assert await service.perform(Request("k", {}, 2, 2)) == "receipt 1"
        assert await service.look_up(Request("k", {}, 2, 2)) == Known(DONE, "receipt 1")

    asyncio.run(program())
