"""Runs the tool calls of one answer: batch after batch, each call to exactly one result.

A call is marked as running before it begins, and its result is saved before anything else happens,
so that an interruption in the middle leaves each finished result, one unknown call for each that
was running, and "not started" for the rest. What goes wrong in a tool is a result for the model;
a cancel is not: it leaves. A tool whose effect must happen once goes through the executor.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from . import outcomes
from .budget import Budget
from .cancel import wait_or_cancel
from .checkpoint import Checkpointer
from .errors import RecoveryError
from .execution import Executor
from .idempotency import Operation
from .retry import Observe
from .service import Service
from .session import DONE, FAILED, REFUSED, UNKNOWN, begin_call, end_call
from .stream.record import Owner, ToolCall, arguments_of
from .tools import Arguments, Tool, ToolRegistry, batches, call_key, permit

LONGEST: Final = 16_000  # characters of one result

# an outcome's status -> the call's status in the session
_STATUS: Final[Mapping[str, str]] = {
    **dict.fromkeys(outcomes.STATUSES, FAILED),
    **dict.fromkeys(outcomes.DONE, DONE),
    **dict.fromkeys(outcomes.OPEN, UNKNOWN),
    outcomes.REJECTED: REFUSED,
}

Work = Coroutine[Any, Any, tuple[str, str]]  # gives content and status


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What running calls needs: the session's checkpoint, the tools, and for whom they run.

    Raises `RecoveryError` where a tool has a service and `executor` or `budget` is missing.
    """

    checkpoint: Checkpointer
    tools: ToolRegistry
    owner: Owner
    observe: Observe
    executor: Executor | None = None
    budget: Budget | None = None

    def __post_init__(self) -> None:
        if self.tools.with_service and (self.executor is None or self.budget is None):
            names = ", ".join(self.tools.with_service)
            raise RecoveryError(f"{names}: such a tool needs the turn's executor and its budget")

    async def run(self, calls: Iterable[ToolCall]) -> None:
        """Run them all; a cancel ends those that run, waits for them, and leaves."""
        for batch in batches(calls, self.tools):
            tasks = [
                asyncio.create_task(self.one(call), name=f"call {call.call_id}") for call in batch
            ]
            try:
                await asyncio.wait(tasks)  # breakpoint: batch
            finally:
                for task in tasks:
                    if not task.cancel() and not task.cancelled():
                        task.exception()  # one that has ended: looked at, whoever leaves now
                if not all(task.done() for task in tasks):
                    await asyncio.gather(*tasks, return_exceptions=True)
            for task in tasks:
                task.result()

    async def one(self, call: ToolCall) -> None:
        """Run one call and save what came of it."""
        session = self.checkpoint.session
        arguments = arguments_of(call.arguments)
        tool = self.tools.get(call.name)
        if tool and tool.takes_nothing and not call.arguments.strip():
            arguments = {}
        permitted = permit(call.name, arguments, self.tools, self.owner)
        if isinstance(permitted, str):
            await self._save(call, f"Not run: {permitted}.", REFUSED)
            return
        if self._limit(permitted.tool) <= 0:
            await self._save(call, "Not run: the time for it is over.", REFUSED)
            return
        await self.checkpoint.save(begin_call(session, call.call_id), "running")
        self.observe("tool_start", call=call.call_id, name=call.name)
        if permitted.tool.service is None:
            key = call_key(self.owner, session.session_id, call.call_id, permitted.arguments)
            await self._finish(call, permitted.tool, _run(*permitted, key))
        else:
            work = self._executed(*permitted, permitted.tool.service)
            await self._finish(call, permitted.tool, work)

    async def _finish(self, call: ToolCall, tool: Tool, work: Work) -> None:
        """Wait for a call, so many seconds and a clean-up at most; a result that is there is saved.

        What a tool gives that was left to itself counts no more.
        """
        task, limit = asyncio.create_task(work, name=f"tool {call.call_id}"), self._limit(tool)
        try:
            await wait_or_cancel(task, limit)
        finally:
            finished = task.done() and not task.cancelled()
            if finished:  # breakpoint: result check
                await self._ended(call, *task.result())
        if not finished:
            late = f"No answer within {limit:g} s: it may have had its effect."
            await self._ended(call, late, UNKNOWN)

    def _limit(self, tool: Tool) -> float:
        """Seconds for a call: to the nearer of two ends; an executor keeps to the budget itself."""
        if self.budget is None or tool.service is not None:
            return tool.limit
        return min(tool.limit, self.budget.within(tool.name, tool=tool.name).remaining)

    async def _executed(
        self, tool: Tool, arguments: Arguments, service: Service
    ) -> tuple[str, str]:
        """What the call means, done once: a repeat under another id of the model's is answered."""
        executor, budget, tenant = self.executor, self.budget, self.owner.tenant
        assert executor is not None  # as checked at the beginning
        assert budget is not None
        try:
            resource = tool.resource(arguments)
        except Exception as error:
            return f"Not run: its resource cannot be told: {type(error).__name__}.", REFUSED
        operation = Operation(tenant=tenant, name=tool.name, resource=resource, payload=arguments)
        try:
            done = await executor.execute(operation, service, budget, tenant=tenant)
        except Exception as error:  # of the key store, so nobody knows how far it came
            told = "It may have been done: what is known of it could not be kept"
            return f"{told} ({type(error).__name__}).", UNKNOWN
        joined = done.status == outcomes.DEDUPLICATED and not done.how
        return shortened(done.told), DONE if joined else _STATUS[done.status]

    async def _ended(self, call: ToolCall, content: str, status: str) -> None:
        self.observe("tool_end", call=call.call_id, name=call.name, status=status)
        await self._save(call, content, status)

    async def _save(self, call: ToolCall, content: str, status: str) -> None:
        done = end_call(self.checkpoint.session, call.call_id, content, status)
        await self.checkpoint.save(done, "tool")


async def _run(tool: Tool, arguments: Arguments, key: str) -> tuple[str, str]:
    """What the tool gives, or how it failed; a cancel from within is a failure like any other."""
    try:
        return shortened(str(await tool.run(arguments, key))), DONE
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # breakpoint: cancel leaves the tool
        return "Failed: it was cancelled from within.", FAILED
    except (Exception, SystemExit) as error:
        return shortened(f"Failed: {type(error).__name__}: {_words(error)}"), FAILED


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "it cannot be told"


def shortened(text: str, most: int = LONGEST) -> str:
    """The text, or its two ends with a note of how many characters are left out between them."""
    if len(text) <= most:
        return text
    left_out = f"\n... {len(text) - most} characters left out ...\n"
    return text[: most - most // 2] + left_out + text[-(most // 2) :]


def named(calls: Iterable[ToolCall], taken: Iterable[str]) -> tuple[ToolCall, ...]:
    """The calls, each with an id that none before it has: a model may leave it out or repeat it."""
    used, made = list(taken), []
    for call in calls:
        call_id = call.call_id or "call"
        number = 1
        while call_id in used:
            number += 1
            call_id = f"{call.call_id or 'call'}-{number}"
        used.append(call_id)
        made.append(replace(call, call_id=call_id))
    return tuple(made)
