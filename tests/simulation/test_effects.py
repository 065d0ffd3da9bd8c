"""The ledger of effects: numbered, timed, each with its event."""

import asyncio
from typing import Any

from labkit.simulation import Observer, simulate

from .kit import scenario


async def pays(provider: Any, policy: Any, observe: Observer) -> None:
    await asyncio.sleep(2)
    observe.effect("pay", amount=5)
    observe.effect("mail")


def test_an_effect_knows_its_number_its_time_and_its_event() -> None:
    run = simulate(scenario(pays))
    told = [(effect.number, effect.time, effect.name, effect.event) for effect in run.ledger]
    assert told == [(0, 2.0, "pay", 0), (1, 2.0, "mail", 1)]
    assert run.ledger[0].data == (("amount", 5),)
    assert run.trace[0]["name"] == "pay"
