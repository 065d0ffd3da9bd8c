"""The tools that a model may call, and what is asked before one runs.

That arguments can be parsed does not mean that the call may run. Five questions, in this order: is
it whole, is there such a tool, does its schema allow these arguments, may this user call it, and
has it been run already? The schema's check is handed in, so that any library can stand behind it.

    tools = ToolRegistry(Tool("look_up", run=look_up, check=schema_errors))
    admitted = admit(run, call, tools)       # Admitted, or Refused with the reason
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import RecoveryError
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: `run(arguments, key)` gives its result.

    `check(arguments)` says what is wrong with them, or "". `allowed(owner)`: whether this user may
    call it. `takes_nothing`: it has no arguments. The key is the same for the same call of the same
    answer, so that the service behind the tool can tell a repeat.
    """

    name: str
    run: Callable[[Arguments, str], Awaitable[str]]
    check: Callable[[Arguments], str] = _anything
    allowed: Callable[[Owner], bool] = _anybody
    takes_nothing: bool = False


class ToolRegistry:
    """The tools there are, by name."""

    def __init__(self, *tools: Tool) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise RecoveryError("two tools have the same name: give each its own")

    @property
    def names(self) -> tuple[str, ...]:
        """In the order in which they were given."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)


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
    if tool is None:
        return _refused(call, f"no such tool; there is: {', '.join(tools.names) or 'none'}")
    arguments = parse_complete_tool_call(run, call.call_id, takes_nothing=tool.takes_nothing)
    if arguments is None:
        return _refused(call, "the arguments are not one complete JSON object")
    if wrong := tool.check(arguments):
        return _refused(call, wrong)
    if not tool.allowed(run.owner):  # breakpoint: permission check
        return _refused(call, "this user may not call it")
    key = call_key(run, call.name, arguments)
    done = next((done for done in run.executed if done.key == key), None)
    return Admitted(tool, call, arguments, key, done)


def call_key(run: StreamRun, name: str, arguments: Arguments) -> str:
    """The same for the same call of the same answer, whatever id or order the model gave it."""
    told = [run.owner.tenant, run.run_id, name, arguments]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _refused(call: ToolCall, reason: str) -> Refused:
    return Refused(call.call_id, call.name, call.arguments, reason)
