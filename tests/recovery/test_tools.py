"""Which calls may run, and when two calls are the same one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery.stream import Owner, StreamRun
from labkit.recovery.stream.record import Refused
from labkit.recovery.tools import Admitted, Tool, ToolRegistry, admit, call_key

from .stream.making import call, finish, record

RUN = record(call(""), finish("tool_calls"))
ARGUMENTS = {"title": "VPN"}


async def done(arguments: Mapping[str, Any], key: str) -> str:
    return "done"


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (RUN, "close_ticket"),
        (replace(RUN, run_id="run-2"), "create_ticket"),
        (replace(RUN, owner=Owner("ann", "other")), "create_ticket"),
    ],
    ids=["tool", "answer", "tenant"],
)
def test_the_same_arguments_of_another_tool_answer_or_tenant_are_another_call(
    run: StreamRun, name: str
) -> None:
    one = call_key(RUN.owner, RUN.run_id, "create_ticket", ARGUMENTS)
    assert call_key(run.owner, run.run_id, name, ARGUMENTS) != one


def test_the_order_in_which_arguments_are_written_makes_no_other_call() -> None:
    keys = [
        call_key(RUN.owner, RUN.run_id, "create_ticket", arguments)
        for arguments in ({"title": "VPN", "floor": 2}, {"floor": 2, "title": "VPN"})
    ]
    assert keys[0] == keys[1]


@pytest.mark.parametrize("takes_nothing", [False, True])
def test_a_call_without_arguments_is_admitted_only_for_a_tool_that_takes_none(
    takes_nothing: bool,
) -> None:
    tools = ToolRegistry(Tool(name="create_ticket", run=done, takes_nothing=takes_nothing))
    admitted = admit(RUN, RUN.calls[0], tools)
    assert isinstance(admitted, Admitted if takes_nothing else Refused)


@pytest.mark.parametrize("name", ["check", "allowed"])
def test_a_check_that_fails_lets_nothing_through_and_ends_no_turn(name: str) -> None:
    def fails(given: object) -> Any:
        raise KeyError("title")

    run = record(call('{"title": "VPN"}'), finish("tool_calls"))
    tools = ToolRegistry(Tool(name="create_ticket", run=done, **{name: fails}))
    refused = admit(run, run.calls[0], tools)
    assert isinstance(refused, Refused)
    assert refused.reason == "it could not be checked: KeyError"
