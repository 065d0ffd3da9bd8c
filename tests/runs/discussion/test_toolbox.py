"""Two tools with an effect, whose arguments are texts, and short ones."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.recovery.tools import Permitted, permit
from labkit.runs.discussion.toolbox import MOST, toolbox
from tests.runs.kit import ANN

from .kit import Desk

TOOLS, SCHEMAS = toolbox(Desk())
RIGHT = {"to": "team", "text": "v1"}


def test_each_tool_has_a_service_and_a_schema_of_its_arguments() -> None:
    assert TOOLS.with_service == TOOLS.names == ("create_ticket", "send_mail")
    told = [schema["function"] for schema in SCHEMAS]
    assert [each["name"] for each in told] == [*TOOLS.names]
    assert told[1]["parameters"]["required"] == ["to", "text"]
    assert isinstance(permit("send_mail", RIGHT, TOOLS, ANN), Permitted)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"to": "team"},
        {**RIGHT, "cc": "all"},
        {**RIGHT, "text": ""},
        {**RIGHT, "text": "x" * (MOST + 1)},
        {**RIGHT, "text": 7},
        {**RIGHT, "text": ["x"]},
        {**RIGHT, "text": None},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_with_the_reason(arguments: Any) -> None:
    told = permit("send_mail", arguments, TOOLS, ANN)
    assert isinstance(told, str)
    assert "argument" in told
    assert permit("format_disk", RIGHT, TOOLS, ANN) == (
        "no such tool; there is: create_ticket, send_mail"
    )
