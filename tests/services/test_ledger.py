"""The ledger of effects that all processes share, and its service."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from labkit.recovery.errors import ProviderError
from labkit.recovery.service import DONE, NOT_DONE, Known, Request
from labkit.services import ledger as ledgers
from labkit.services.ledger import Ledger, LedgerService, found
from labkit.stores.errors import StoreError


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """An empty one."""
    return Ledger(tmp_path / "effects.db")


def test_an_effect_that_is_had_twice_stands_there_twice(ledger: Ledger) -> None:
    for fence in (1, 2):
        service = LedgerService(ledger, f"owner-{fence}")
        assert asyncio.run(service.perform(Request("k", {}, fence, 1))) == "receipt 1"
    assert ledger.effects() == [("k", "owner-1"), ("k", "owner-2")]


def test_a_try_that_arrives_twice_is_entered_twice_since_the_ledger_hides_nothing(
    ledger: Ledger,
) -> None:
    service = LedgerService(ledger, "owner")
    for _ in range(2):
        asyncio.run(service.perform(Request("k", {}, 1, 1)))
    assert len(ledger.effects()) == 2


def test_two_never_look_at_once_before_they_write(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "BUSY", 0.0)
    with (
        ledger.alone(),
        pytest.raises(sqlite3.OperationalError, match="locked"),
        ledger.alone() as other,
    ):
        found(other, "k")


def test_what_comes_late_with_an_older_claim_is_refused_and_surely_not_done(
    ledger: Ledger,
) -> None:
    service = LedgerService(ledger, "owner")
    asyncio.run(service.perform(Request("k", {}, 2, 1)))
    with pytest.raises(ProviderError, match="an older claim") as told:
        asyncio.run(service.perform(Request("k", {}, 1, 1)))
    assert told.value.definite
    assert len(ledger.effects()) == 1


def test_its_not_done_holds_for_every_try_so_far_and_for_no_later_one(ledger: Ledger) -> None:
    service = LedgerService(ledger, "owner")
    assert asyncio.run(service.look_up(Request("k", {}, 2, 1))) == Known(NOT_DONE)
    for late in (Request("k", {}, 1, 9), Request("k", {}, 2, 1)):
        with pytest.raises(ProviderError):
            asyncio.run(service.perform(late))
    assert asyncio.run(service.perform(Request("k", {}, 2, 2))) == "receipt 1"
    assert asyncio.run(service.look_up(Request("k", {}, 3, 1))) == Known(DONE, "receipt 1")


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    file = tmp_path / "none" / "effects.db"
    with pytest.raises(StoreError, match=r"effects.db cannot be opened .*: name another file"):
        Ledger(file)


@pytest.mark.parametrize("file", [None, 7, "", ":memory:", Path()])
def test_what_is_no_file_that_processes_could_share_is_refused(file: Any) -> None:
    with pytest.raises(StoreError, match="ledger"):
        Ledger(file)
