"""The tools of a discussion: two that have an effect outside, so a person is asked first.

tools, schemas = toolbox(LedgerService(ledger, worker))
tools.names                            # ('create_ticket', 'send_mail')
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from labkit.recovery.service import Service
from labkit.recovery.tools import Tool, ToolRegistry

MOST: Final = 1000  # characters of an argument

# tool -> what a model is told of it, and its arguments, which are texts
_TOOLS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "create_ticket": ("Open a ticket for the team.", ("title",)),
    "send_mail": ("Send a mail.", ("to", "text")),
}


def toolbox(service: Service) -> tuple[ToolRegistry, tuple[dict[str, Any], ...]]:
    """The tools, whose effects `service` has, and their schemas."""
    tools = [
        Tool(name=name, service=service, check=partial(_wrong, arguments))
        for name, (_, arguments) in _TOOLS.items()
    ]
    return ToolRegistry(*tools), tuple(_schema(name) for name in _TOOLS)


def _wrong(names: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, or ""."""
    if set(arguments) != set(names):
        return f"the arguments are: {', '.join(names)}"
    texts = all(isinstance(text, str) and 0 < len(text) <= MOST for text in arguments.values())
    return "" if texts else f"each argument is a text of 1 to {MOST} characters"


def _schema(name: str) -> dict[str, Any]:
    told, arguments = _TOOLS[name]
    text = {"type": "string", "minLength": 1, "maxLength": MOST}
    parameters = {
        "type": "object",
        "properties": dict.fromkeys(arguments, text),
        "required": list(arguments),
    }
    function = {"name": name, "description": told, "parameters": parameters}
    return {"type": "function", "function": function}
