"""The pieces in which an answer arrives, the same for every provider.

    Delta("text", "Hel").visible         # True: somebody has read it
    Delta("thinking", "hm").visible      # False
"""

from dataclasses import dataclass, fields
from typing import Final

KINDS: Final = ("role", "text", "thinking", "tool_call", "usage", "finish")


@dataclass(frozen=True, slots=True, repr=False)
class Delta:
    """One piece of an answer; which fields it fills depends on `kind`.

    text, thinking: `text`. tool_call: `index`, and `call_id` and `name` on a call's first piece;
    `text` holds a piece of its arguments. usage: `tokens_in`, `tokens_out`. finish: `reason`.
    """

    kind: str
    text: str = ""
    index: int | None = None
    call_id: str = ""
    name: str = ""
    reason: str = ""
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def visible(self) -> bool:
        """Whether a reader has now seen something that cannot be taken back."""
        return self.kind == "text" and self.text != ""

    @property
    def progress(self) -> bool:
        """Whether the model has moved on; a role, an empty text or a running count is no news."""
        return self.text != "" or self.kind in ("tool_call", "finish")

    def __repr__(self) -> str:
        values = [(field.name, getattr(self, field.name)) for field in fields(self)[1:]]
        told = [f"{name}={value!r}" for name, value in values if value not in ("", None, 0)]
        if self.index == 0:
            told.insert(0, "index=0")
        return f"Delta({', '.join([repr(self.kind), *told])})"


@dataclass(frozen=True, slots=True)
class Boundary:
    """Stands between two attempts: half tool calls and thinking from before it are void.

    When `segment` has risen, the text shown so far stays, its segment is closed as interrupted for
    `reason`, and what follows is a new one, from the start.
    """

    attempt: int
    segment: int
    reason: str
