"""Turns with one tool, `charge`, which an executor runs and whose service a test brings.

desk = Desk(Told([OK]))
await desk.turn([charge("c1")], [say("done")])
desk.statuses, desk.service.effects
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.checkpoint import Checkpointer, MemorySessions
from labkit.recovery.deltas import Delta
from labkit.recovery.execution import Executor
from labkit.recovery.policy import ExecutionPolicy
from labkit.recovery.session import TOOL, Message
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.recovery.turn import TurnServices, run_turn
from labkit.stores.memory import MemoryKeyStore
from tests.recovery import executing
from tests.recovery.turns import OWNER, POLICY, asks, call
from tests.simulation.kit import virtually

ORDER_7 = '{"order": "order-7", "amount": 5}'
ORDER_8 = '{"order": "order-8", "amount": 5}'


def charge(call_id: str, arguments: str = ORDER_7, index: int = 0) -> Delta:
    return call(call_id, "charge", arguments, index)


class Desk:
    """Ann's turns with one tool, `charge`, whose service is `service`."""

    def __init__(
        self,
        service: Any,
        *,
        policy: ExecutionPolicy = executing.POLICY,
        limits: BudgetLimits = executing.LIMITS,
        **tool: Any,
    ) -> None:
        self.clock = asyncio.get_running_loop().time
        self.keys: Any = MemoryKeyStore(self.clock)
        self.service, self.policy, self.limits = service, policy, limits
        self.store = MemorySessions()
        self.told: list[tuple[str, dict[str, Any]]] = []
        given = {"resource": lambda arguments: arguments["order"], "service": service} | tool
        self.tools = ToolRegistry(Tool(name="charge", **given))
        self.budgets: list[Budget] = []

    async def turn(self, *answers: Sequence[Any], tenant: str = "acme") -> str:
        self.budgets.append(Budget(self.limits, clock=self.clock))
        services = TurnServices(
            ask=asks(*answers),
            show=lambda text: None,
            policy=POLICY,
            random=Random(0),
            observe=lambda kind, **details: self.told.append((kind, details)),
            tools=self.tools,
            owner=replace(OWNER, tenant=tenant),
            now=lambda: 0.0,
            budget=self.budgets[-1],
            executor=Executor(self.keys, owner="worker-1", policy=self.policy, random=Random(0)),
        )
        return await run_turn("Pay.", self.checkpoint(), services)

    def checkpoint(self) -> Checkpointer:
        return Checkpointer(self.store.load("ann"), self.store.write)

    @property
    def results(self) -> list[Message]:
        return [row for row in self.store.load("ann").history if row.role == TOOL]

    @property
    def statuses(self) -> dict[str, str]:
        return {row.call_id: row.status for row in self.results}


def played(service: Any, *turns: Sequence[Sequence[Any]], **options: Any) -> Desk:
    """A desk after these turns, each given as the model's answers."""

    async def work() -> Desk:
        desk = Desk(service, **options)
        for answers in turns:
            await desk.turn(*answers)
        return desk

    desk: Desk = virtually(work())
    return desk
