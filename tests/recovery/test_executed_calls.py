"""A tool whose effect must happen once: three kinds of repeat on real turns, and what is told."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from labkit.recovery.budget import Budget, BudgetLimits, Spent
from labkit.recovery.calls import Calls
from labkit.recovery.errors import ProviderError, RecoveryError
from labkit.recovery.execution import Executor
from labkit.recovery.session import DONE, FAILED, NOTE, REFUSED, TOOL, UNKNOWN, Message, Session
from labkit.recovery.tools import Tool
from labkit.stores.memory import MemoryKeyStore
from tests.simulation.kit import virtually

from . import executing
from .charging import ORDER_8, Desk, charge, played
from .executing import BAD_REQUEST, LIMITS, LOST_ANSWER, OK, Step, Told
from .executing import REFUSED as NOT_CONNECTED
from .turns import OWNER, say

ANSWER = [say("done")]


# --- three kinds of repeat


def test_the_same_call_sent_again_has_one_effect() -> None:
    refused = Step(ProviderError("down", status=503), effect=None)
    service = Told([refused, OK], atomic=True)
    desk = played(service, [[charge("c1")], ANSWER])
    assert (len(service.requests), len(service.effects)) == (2, 1)
    assert {request.key for request in service.requests} == {"acme/charge/order-7"}
    assert desk.statuses == {"c1": DONE}


@pytest.mark.parametrize(
    "turns",
    [
        [[[charge("c1"), charge("c2", index=1)], ANSWER]],
        [[[charge("c1")], [charge("c2")], ANSWER]],
        [[[charge("c1")], ANSWER], [[charge("c2")], ANSWER]],
        [[[charge("c1")], ANSWER], [[charge("c2", '{"amount": 5.0, "order": "order-7"}')], ANSWER]],
    ],
    ids=["same answer", "next model step", "next turn", "written another way"],
)
def test_the_model_making_it_again_under_a_new_id_has_one_effect(turns: Any) -> None:
    service = Told([OK])
    desk = played(service, *turns)
    assert (len(service.requests), len(service.effects)) == (1, 1)
    assert desk.statuses == {"c1": DONE, "c2": DONE}
    first, second = (row.content for row in desk.results)
    assert first == "Done. receipt"
    assert second == "This was done before, and not again; its result was: receipt"


def test_another_order_with_the_same_amount_has_an_effect_of_its_own() -> None:
    service = Told([OK])
    desk = played(service, [[charge("c1"), charge("c2", ORDER_8, index=1)], ANSWER])
    assert len(service.effects) == 2
    assert [request.key for request in service.requests] == [
        "acme/charge/order-7",
        "acme/charge/order-8",
    ]
    assert desk.statuses == {"c1": DONE, "c2": DONE}


def test_the_same_order_of_another_tenant_is_another_operation() -> None:
    service = Told([OK])

    async def work() -> None:
        desk = Desk(service)
        await desk.turn([charge("c1")], ANSWER)
        await desk.turn([charge("c2")], ANSWER, tenant="globex")

    virtually(work())
    assert [request.key for request in service.requests] == [
        "acme/charge/order-7",
        "globex/charge/order-7",
    ]


def test_two_calls_side_by_side_are_one_effect_and_the_second_joins_the_first() -> None:
    service = Told([OK])
    both = [[charge("c1"), charge("c2", index=1)], ANSWER]
    desk = played(service, both, concurrent=True, policy=replace(executing.POLICY, join=5.0))
    assert len(service.effects) == 1
    assert desk.statuses == {"c1": DONE, "c2": DONE}
    alone = played(Told([OK]), both, concurrent=True)
    assert alone.statuses == {"c1": DONE, "c2": UNKNOWN}  # it did not wait for the result


# --- what the session and the model are told


@pytest.mark.parametrize(
    ("service", "status", "told"),
    [
        (Told([LOST_ANSWER], known=[executing.Known("done", "receipt 7")]), DONE, "confirms it"),
        (
            Told([LOST_ANSWER], known=[executing.Known("in flight")]),
            UNKNOWN,
            "still be done",
        ),
        (Told([LOST_ANSWER], known=[executing.Known("unsure")]), UNKNOWN, "a person finds out"),
        (Told([BAD_REQUEST]), FAILED, "Not done."),
        (Told([NOT_CONNECTED]), FAILED, "no more tries are left"),
    ],
    ids=["reconciled", "in flight", "nobody knows", "refused by the service", "never connected"],
)
def test_a_status_says_whether_it_may_have_been_done(service: Told, status: str, told: str) -> None:
    desk = played(service, [[charge("c1")], ANSWER])
    assert desk.statuses == {"c1": status}
    assert told in desk.results[0].content


def test_another_payload_for_the_same_order_is_refused_and_not_sent() -> None:
    service = Told([OK])
    other = charge("c2", '{"order": "order-7", "amount": 6}')
    desk = played(service, [[charge("c1")], [other], ANSWER])
    assert len(service.requests) == 1
    assert desk.statuses == {"c1": DONE, "c2": REFUSED}
    assert "key_conflict" in desk.results[1].content


@pytest.mark.parametrize(
    ("resource", "told"),
    [
        (lambda arguments: "", "missing_idempotency_key"),
        (lambda arguments: arguments["invoice"], "KeyError"),
        (lambda arguments: "x" * 300, "key_too_long"),
    ],
)
def test_a_call_whose_resource_cannot_be_told_is_refused_and_not_sent(
    resource: Any, told: str
) -> None:
    service = Told([OK])
    desk = played(service, [[charge("c1")], ANSWER], resource=resource)
    assert (service.requests, desk.statuses) == ([], {"c1": REFUSED})
    assert told in desk.results[0].content


def test_a_key_store_that_fails_leaves_the_call_unknown() -> None:
    service = Told([OK])

    class Gone(MemoryKeyStore):
        async def swap(self, old: Any, new: Any) -> bool:
            if service.effects:
                raise OSError("the disk is full")
            return await super().swap(old, new)

    async def work() -> Desk:
        desk = Desk(service)
        desk.keys = Gone(desk.clock)
        await desk.turn([charge("c1")], ANSWER)
        return desk

    desk = virtually(work())
    assert (len(service.effects), desk.statuses) == (1, {"c1": UNKNOWN})
    assert "OSError" in desk.results[0].content
    assert "disk" not in desk.results[0].content


def test_permission_and_schema_are_asked_before_the_key_is_looked_up() -> None:
    service = Told([OK])
    desk = played(service, [[charge("c1")], ANSWER], allowed=lambda owner: False)
    assert (desk.statuses, desk.keys.kept, service.requests) == ({"c1": REFUSED}, {}, [])


# --- time, stops and the budget


def test_the_tools_limit_is_around_the_executors_own_and_the_key_says_unknown() -> None:
    service = Told([LOST_ANSWER], known=[executing.Known("in flight")])
    desk = played(service, [[charge("c1")], ANSWER], limit=2.0)
    assert desk.statuses == {"c1": UNKNOWN}
    assert desk.results[0].content.startswith("No answer within 2 s")
    (record,) = desk.keys.kept.values()
    assert record.state == "unknown"


def test_what_a_stopped_turn_left_unknown_is_asked_about_and_not_done_again() -> None:
    service = Told([LOST_ANSWER], known=[executing.Known("done", "receipt 7")])

    async def work() -> Desk:
        desk = Desk(service)
        turn = asyncio.create_task(desk.turn([charge("c1")], ANSWER))
        await asyncio.sleep(0.5)
        turn.cancel()
        await asyncio.wait([turn])
        assert turn.cancelled()
        await desk.turn([charge("c2")], ANSWER)
        return desk

    desk = virtually(work())
    assert (len(service.requests), len(service.effects)) == (1, 1)
    assert desk.statuses == {"c1": UNKNOWN, "c2": DONE}
    assert "receipt 7" in desk.results[1].content


def test_the_turns_budget_pays_for_the_model_and_for_the_tool() -> None:
    desk = played(Told([NOT_CONNECTED, OK]), [[charge("c1")], ANSWER])
    assert desk.budgets[0].used == {
        "run": Spent(requests=4, retries=1, waited=1.0),
        "run/model": Spent(requests=2),
        "run/charge": Spent(requests=2, retries=1, waited=1.0),
    }


def test_a_tool_that_finds_the_budget_used_up_was_not_done() -> None:
    limits = BudgetLimits(per_tool=2)
    desk = played(Told([NOT_CONNECTED]), [[charge("c1")], ANSWER], limits=limits)
    assert desk.budgets[0].used["run/charge"].requests == 2
    assert desk.statuses == {"c1": FAILED}
    assert "no more tries are left" in desk.results[0].content


def test_a_turn_whose_budget_is_used_up_ends_with_its_finished_steps_kept() -> None:
    async def work() -> Session:
        desk = Desk(Told([OK]), limits=BudgetLimits(requests=2))
        with pytest.raises(ProviderError, match="budget exhausted: requests"):
            await desk.turn([charge("c1")], ANSWER)
        return desk.store.load("ann")

    session = virtually(work())
    assert [row.status for row in session.messages if row.role == TOOL] == [DONE]
    assert session.messages[-1] == Message(NOTE, "This turn ended without an answer: limit.")


async def slow(arguments: Any, key: str) -> str:
    await asyncio.sleep(20.0)
    return "done"


@pytest.mark.parametrize(("seconds", "limit", "within"), [(9.0, 60.0, 8), (60.0, 5.0, 5)])
def test_a_tool_without_a_service_ends_at_the_nearer_of_its_limit_and_the_budgets_deadline(
    seconds: float, limit: float, within: int
) -> None:
    limits = BudgetLimits(seconds=seconds, hand_back=1.0)
    desk = played(None, [[charge("c1")], ANSWER], limits=limits, run=slow, limit=limit)
    assert desk.statuses == {"c1": UNKNOWN}
    assert desk.results[0].content.startswith(f"No answer within {within} s")
    assert desk.store.load("ann").messages[-1].content == "done"  # there was time to hand it back


def test_a_tool_is_not_begun_when_its_time_is_over() -> None:
    limits = BudgetLimits(seconds=9.0, hand_back=1.0)
    late = [4.5, say("Wait. "), 4.0, charge("c1")]
    desk = played(None, [late, ANSWER], limits=limits, run=slow)
    assert desk.statuses == {"c1": REFUSED}
    assert "tool_start" not in [kind for kind, _ in desk.told]


# --- what must be there


@pytest.mark.parametrize("missing", ["executor", "budget"])
def test_a_tool_with_a_service_needs_the_turns_executor_and_budget(missing: str) -> None:
    async def work() -> None:
        desk = Desk(Told([OK]))
        executor = Executor(desk.keys, owner="w", policy=desk.policy, random=Random(0))
        given: dict[str, Any] = {"executor": executor, "budget": Budget(LIMITS, clock=desk.clock)}
        checkpoint = desk.checkpoint()
        with pytest.raises(RecoveryError, match="charge: such a tool needs the turn's executor"):
            Calls(
                checkpoint=checkpoint,
                tools=desk.tools,
                owner=OWNER,
                observe=lambda kind, **details: None,
                **(given | {missing: None}),
            )

    virtually(work())


def test_a_tool_with_a_service_is_never_run_past_it() -> None:
    tool = Tool(name="charge", service=Told([OK]))
    with pytest.raises(RecoveryError, match="by an executor"):
        virtually(tool.run({}, "key"))  # type: ignore[arg-type]  # it is a coroutine


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [("order-7", DONE, "This was done before"), ("order-8", FAILED, "the time ran out")],
)
def test_when_the_time_for_a_tool_is_over_its_executor_still_knows_what_was_done(
    asked: str, status: str, told: str
) -> None:
    limits = replace(LIMITS, seconds=9.0, hand_back=1.0)
    late = [4.5, say("Wait. "), 4.0, charge("c2", f'{{"order": "{asked}", "amount": 5}}')]
    service = Told([OK])
    desk = played(service, [[charge("c1")], ANSWER], [late, ANSWER], limits=limits)
    assert (desk.statuses["c2"], len(service.effects)) == (status, 1)
    assert told in desk.results[1].content
