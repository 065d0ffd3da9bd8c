"""The tools that a model may call, and what is asked before one runs.

That arguments can be parsed does not mean that the call may run. Five questions, in this order: is
it whole, is there such a tool, does its schema allow these arguments, may this user call it, and
has it been run already? The schema's check is handed in, so that any library can stand behind it.

    tools = ToolRegistry(Tool("look_up", run=look_up, check=schema_errors))
    admitted = admit(run, call, tools)       # Admitted, or Refused with the reason
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .errors import RecoveryError
from .service import Service
from .stream.record import (
    Executed,
    Owner,
    Refused,
    StreamRun,
    ToolCall,
    parse_complete_tool_call,
)

Arguments = Mapping[str, Any]


def _anything(arguments: Arguments) -> str:
    return ""


def _anybody(owner: Owner) -> bool:
    return True


def _no_resource(arguments: Arguments) -> str:
    return ""


async def _by_its_service(arguments: Arguments, key: str) -> str:
    raise RecoveryError("this tool has effects: run it by an executor, which asks its service")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: `run(arguments, key)` gives its result.

    `check(arguments)` says what is wrong with them, or "". `allowed(owner)`: whether this user may
    call it. `takes_nothing`: it has no arguments. The key is the same for the same call of the same
    answer, so that the service behind the tool can tell a repeat. `concurrent`: it may run beside
    its neighbours; being `async` or reading only is no proof of that, so somebody must say so.
    `limit`: seconds after which it is given up, an executor's tries included.
    `service`: what has its effect, in the place of `run`, so that one operation has one effect
    whatever id the model gives its calls; `resource(arguments)`: the thing that it is done to, such
    as an order's number.
    """

    name: str
    run: Callable[[Arguments, str], Awaitable[str]] = _by_its_service
    service: Service | None = None
    resource: Callable[[Arguments], str] = _no_resource
    check: Callable[[Arguments], str] = _anything
    allowed: Callable[[Owner], bool] = _anybody
    takes_nothing: bool = False
    concurrent: bool = False
    limit: float = 60.0


class ToolRegistry:
    """The tools there are, by name; `with_service` names those that an executor runs."""

    def __init__(self, *tools: Tool) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.with_service = tuple(tool.name for tool in tools if tool.service is not None)
        if len(self._tools) < len(tools):
            raise RecoveryError("two tools have the same name: give each its own")

    @property
    def names(self) -> tuple[str, ...]:
        """In the order in which they were given."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)


class Permitted(NamedTuple):
    """A tool, and arguments with which this user may call it."""

    tool: Tool
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may run. `done`: it has run already, and this is what came of it."""

    tool: Tool
    call: ToolCall
    arguments: Arguments
    key: str
    done: Executed | None


def admit(run: StreamRun, call: ToolCall, tools: ToolRegistry) -> Admitted | Refused:
    """Whether `call` may run; the reason of a refusal is for the model, and names no secrets."""
    tool = tools.get(call.name)
    nothing = tool is not None and tool.takes_nothing
    arguments = parse_complete_tool_call(run, call.call_id, takes_nothing=nothing)
    permitted = permit(call.name, arguments, tools, run.owner)
    if isinstance(permitted, str):
        return Refused(call.call_id, call.name, call.arguments, permitted)
    key = call_key(run.owner, run.run_id, call.name, permitted.arguments)
    done = next((done for done in run.executed if done.key == key), None)
    return Admitted(permitted.tool, call, permitted.arguments, key, done)


def permit(
    name: str, arguments: Arguments | None, tools: ToolRegistry, owner: Owner
) -> Permitted | str:
    """The tool of that name with its arguments, or why not; None stands for no JSON object."""
    tool = tools.get(name)
    if tool is None:
        return f"no such tool; there is: {', '.join(tools.names) or 'none'}"
    if arguments is None:
        return "the arguments are not one complete JSON object"
    try:
        if wrong := tool.check(arguments):
            return wrong
        if not tool.allowed(owner):  # breakpoint: permission check
            return "this user may not call it"
    except Exception as error:  # a check that fails lets nothing through, and ends no turn
        return f"it could not be checked: {type(error).__name__}"
    return Permitted(tool, arguments)


def batches(calls: Iterable[ToolCall], tools: ToolRegistry) -> list[list[ToolCall]]:
    """What runs side by side: neighbours that are declared `concurrent`; the rest one by one.

    The batches run in their order, so that a call which is not safe is a barrier.
    """
    made: list[list[ToolCall]] = []
    before_is_safe = False
    for call in calls:
        tool = tools.get(call.name)
        safe = tool is not None and tool.concurrent
        if safe and before_is_safe:  # breakpoint: batch check
            made[-1].append(call)
        else:
            made.append([call])
        before_is_safe = safe
    return made


def call_key(owner: Owner, run_id: str, name: str, arguments: Arguments) -> str:
    """The same for the same call of the same answer, whatever id or order the model gave it."""
    told = [owner.tenant, run_id, name, arguments]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
