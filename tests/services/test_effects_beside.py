"""The fake services while a request is still under way: a second one, and one called off."""

from __future__ import annotations

import asyncio

import pytest

from labkit.recovery.service import DONE, Known
from labkit.services.effects import WORK, EffectService

from .test_effects import REQUEST, heard, played


@pytest.mark.parametrize(("kind", "effects"), [("payment", 1), ("ticket", 2), ("mail", 2)])
def test_two_requests_at_once_are_one_effect_only_where_the_service_keeps_them_apart(
    kind: str, effects: int
) -> None:
    async def beside(service: EffectService) -> set[str]:
        return set(await asyncio.gather(heard(service), heard(service)))

    run = played(beside, kind)
    assert (len(run.result), len(run.ledger)) == (effects, effects)


def test_what_is_called_off_too_late_still_gives_its_answer() -> None:
    async def too_late(service: EffectService) -> tuple[str, Known]:
        asked = asyncio.create_task(service.perform(REQUEST), name="asked")
        await asyncio.sleep(WORK / 2)  # its word comes after the effect, and before the answer
        known = await service.call_off(REQUEST)
        assert not asked.done()
        return await asked, known

    run = played(too_late, "ticket")
    assert run.result == ("open_ticket 1", Known(DONE, "open_ticket 1"))
