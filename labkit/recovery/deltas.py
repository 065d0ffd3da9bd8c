"""The pieces in which an answer arrives, the same for every provider.

Two questions are asked of each piece. Has a reader now seen something (`visible`)? Has the model
moved on (`progress`)? They differ: thinking is progress that nobody sees.

    Delta("text", "Hel").visible         # True
    Delta("thinking", "hm").visible      # False
"""

from dataclasses import dataclass, fields
from typing import Final

KINDS: Final = ("role", "text", "thinking", "tool_call", "usage", "finish")


@dataclass(frozen=True, slots=True, repr=False)
class Delta:
    """One piece of an answer; which fields it fills depends on `kind`, one of `KINDS`.

    role, text, thinking: `text`. tool_call: `index`; `call_id` and `name` on a call's first piece;
    `text` is a piece of its arguments. usage: `tokens_in`, `tokens_out`. finish: `reason`.
    """

    kind: str
    text: str = ""
    index: int | None = None
    call_id: str = ""
    name: str = ""
    reason: str = ""
    tokens_in: int = 0
    tokens_out: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind!r}; there is: {', '.join(KINDS)}")

    @property
    def visible(self) -> bool:
        """Whether a reader has now seen something that cannot be taken back."""
        return self.kind == "text" and self.text != ""

    @property
    def progress(self) -> bool:
        """Whether the model has moved on; a role, an empty piece or a running count is no news."""
        if self.kind in ("role", "usage"):
            return False
        return self.kind == "finish" or (self.text + self.name + self.call_id) != ""

    def __repr__(self) -> str:
        given = [(field, getattr(self, field.name)) for field in fields(self)[1:]]
        told = [f"{field.name}={value!r}" for field, value in given if value != field.default]
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
