"""The fake services: each cue does what it says, and the ledger knows the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from labkit.recovery.errors import ProviderError
from labkit.recovery.service import DONE, IN_FLIGHT, NOT_DONE, Known, Request
from labkit.services.effects import CUES, KINDS, LATE, WORK, EffectService
from labkit.simulation import Observer, Run, Scenario, Unknown, simulate

REQUEST = Request("acme/charge/order-7", {"order": "order-7", "amount": 5}, 1, 1)
Program = Callable[[EffectService], Coroutine[Any, Any, Any]]


def played(program: Program, kind: str = "payment", **how: Any) -> Run:
    """The program on a service of its own."""

    async def client(service: EffectService, policy: None, observe: Observer) -> Any:
        try:
            return await program(service)
        finally:
            await service.idle()

    def make(script: None, observe: Observer) -> EffectService:
        return EffectService(kind, observe, **how)

    scenario = Scenario(name="effects", claim="", script=None, make=make, client=client)
    return simulate(scenario)


async def heard(service: EffectService, *, patience: float = 5.0) -> str:
    """What a client hears that waits so long."""
    try:
        async with asyncio.timeout(patience):
            return await service.perform(REQUEST)
    except TimeoutError:
        return "nothing"
    except ProviderError as error:
        return error.kind


async def again(service: EffectService) -> list[str]:
    """The same request two times."""
    return [await heard(service), await heard(service)]


# cue -> what is heard, and how many effects there are
TOLD = {
    "ok": ("charge 1", 1),
    "refuse": ("connect", 0),
    "lose_request": ("nothing", 0),
    "fail_before": ("server", 0),
    "lose_answer": ("nothing", 1),
    "fail_after": ("server", 1),
    "late": ("nothing", 1),
    "twice": ("charge 1", 1),
}


@pytest.mark.parametrize("cue", CUES)
def test_a_cue_decides_what_is_heard_and_what_is_true(cue: str) -> None:
    run = played(heard, cues=[cue])
    assert (run.result, len(run.ledger)) == TOLD[cue]


@pytest.mark.parametrize("cue", CUES)
def test_the_words_of_a_cue_are_true(cue: str) -> None:
    run, words = played(heard, cues=[cue], kind="ticket"), CUES[cue]
    assert ("nothing happens" in words) == (not run.ledger)
    assert ("an error comes" in words) == (run.result in ("connect", "server"))
    assert ("no answer comes" in words) == (run.result == "nothing" and cue != "late")
    late = [effect.time for effect in run.ledger] == [LATE]
    assert words.startswith("it happens after 12 s") == late


def test_an_effect_is_real_before_its_answer_is_there() -> None:
    run = played(heard)
    assert run.ledger[0].time == WORK
    assert run.time == 2 * WORK
    assert run.effects[0] == {
        "time": WORK,
        "name": "charge",
        "event": run.ledger[0].event,
        "order": "order-7",
        "amount": 5,
    }


def test_a_client_that_gives_up_changes_nothing() -> None:
    run = played(heard, cues=["late"])
    assert run.ledger[0].time == LATE


def test_after_the_last_cue_all_goes_well() -> None:
    assert played(again, cues=["refuse"]).result == ["connect", "charge 1"]


# --- what each kind promises


@pytest.mark.parametrize(("kind", "effects"), [("payment", 1), ("ticket", 2), ("mail", 2)], ids=str)
@pytest.mark.parametrize("cue", ["ok", "lose_answer", "fail_after"])
def test_only_a_payment_keeps_repeats_apart(kind: str, effects: int, cue: str) -> None:
    run = played(again, kind, cues=[cue])
    assert len(run.ledger) == effects
    assert {effect.name for effect in run.ledger} == {KINDS[kind]}


@pytest.mark.parametrize(("kind", "effects"), [("payment", 1), ("ticket", 2), ("mail", 2)])
def test_two_requests_at_once_are_one_effect_only_where_the_service_keeps_them_apart(
    kind: str, effects: int
) -> None:
    async def beside(service: EffectService) -> set[str]:
        return set(await asyncio.gather(heard(service), heard(service)))

    run = played(beside, kind)
    assert (len(run.result), len(run.ledger)) == (effects, effects)


def test_a_payment_that_failed_before_its_effect_can_be_made_again() -> None:
    run = played(again, cues=["fail_before"])
    assert (run.result, len(run.ledger)) == (["server", "charge 1"], 1)


def test_a_key_is_one_within_its_tenant() -> None:
    async def by_two(service: EffectService) -> list[str]:
        other = REQUEST._replace(tenant="globex")
        return [await service.perform(REQUEST), await service.perform(other)]

    assert played(by_two).result == ["charge 1", "charge 2"]


@pytest.mark.parametrize(
    ("cue", "state"),
    [("ok", DONE), ("lose_answer", DONE), ("lose_request", NOT_DONE), ("late", IN_FLIGHT)],
)
def test_a_look_up_tells_the_truth(cue: str, state: str) -> None:
    async def asked(service: EffectService) -> str:
        await heard(service)
        return (await service.look_up(REQUEST)).state

    assert played(asked, cues=[cue]).result == state


def test_look_ups_have_cues_of_their_own() -> None:
    async def asked(service: EffectService) -> list[str]:
        await heard(service)
        told = []
        for _ in range(3):
            try:
                told.append((await service.look_up(REQUEST)).state)
            except ProviderError as error:
                told.append(error.kind)
        return told

    run = played(asked, look_ups=["down", "not yet"])
    assert run.result == ["overloaded", IN_FLIGHT, DONE]


def test_mail_cannot_be_asked_and_that_is_no_failure_that_passes() -> None:
    async def asked(service: EffectService) -> None:
        await service.look_up(REQUEST)

    run = played(asked, "mail")
    assert isinstance(run.error, ProviderError)
    assert run.error.kind == "bad_request"
    assert [e["answer"] for e in run.trace if e.kind == "look_up"] == ["it cannot be asked"]


@pytest.mark.parametrize(("patience", "state", "effects"), [(0.1, NOT_DONE, 0), (1.0, DONE, 1)])
def test_a_request_can_be_called_off_until_its_effect(
    patience: float, state: str, effects: int
) -> None:
    async def asked(service: EffectService) -> str:
        await heard(service, patience=patience)
        return (await service.call_off(REQUEST)).state

    cue = "late" if state == NOT_DONE else "lose_answer"
    run = played(asked, "ticket", cues=[cue])
    assert (run.result, len(run.ledger)) == (state, effects)


def test_what_is_called_off_too_late_still_gives_its_answer() -> None:
    async def too_late(service: EffectService) -> tuple[str, Known]:
        asked = asyncio.create_task(service.perform(REQUEST), name="asked")
        await asyncio.sleep(WORK / 2)  # its word comes after the effect, and before the answer
        known = await service.call_off(REQUEST)
        assert not asked.done()
        return await asked, known

    run = played(too_late, "ticket")
    assert run.result == ("open_ticket 1", Known(DONE, "open_ticket 1"))


def test_a_key_that_is_forgotten_is_a_new_one() -> None:
    async def later(service: EffectService) -> list[str]:
        first = await heard(service)
        await asyncio.sleep(5.0)
        return [first, (await service.look_up(REQUEST)).state, await heard(service)]

    run = played(later, forgets_after=5.0)
    assert (run.result, len(run.ledger)) == (["charge 1", NOT_DONE, "charge 2"], 2)


@pytest.mark.parametrize(("cue", "booked"), [("lose_answer", True), ("lose_request", False)])
def test_the_books_of_a_service_that_cannot_be_asked_know_the_truth(cue: str, booked: bool) -> None:
    async def looked(service: EffectService) -> bool:
        await heard(service)
        return service.booked(REQUEST.tenant, REQUEST.key)

    assert played(looked, "mail", cues=[cue]).result is booked


def test_the_second_copy_of_an_answer_stays_on_the_line() -> None:
    async def unread(service: EffectService) -> list[str]:
        await heard(service)
        return service.unread

    assert played(unread, cues=["twice"]).result == ["charge 1"]


@pytest.mark.parametrize(
    "how", [{"cues": ["explode"]}, {"look_ups": ["explode"]}, {"kind": "explode"}], ids=str
)
def test_a_word_that_is_no_cue_is_refused_with_those_there_are(how: dict[str, Any]) -> None:
    run = played(heard, **how)
    assert isinstance(run.error, Unknown)
    assert "explode" in str(run.error)
