"""What a script is made of: steps, attempt by attempt. `script` reads and checks them.

    Step("say", wait=0.2, delta=Delta("text", "Hel"))
    Script("mine", ((Step("drop"),),)).attempt(1)
"""

from dataclasses import dataclass
from typing import Final

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError, RecoveryError

ENDS: Final = ("http_error", "error", "drop", "end")  # after these nothing comes any more
LAST: Final = (*ENDS, "stall", "forever")  # nothing can follow these in an attempt
VERBS: Final = ("say", "think", "role", "call", "usage", "finish", *LAST)


class ScriptError(RecoveryError, ValueError):
    """The script cannot be played: mend the line and field that the message names."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a provider does after `wait` seconds: `do` is a verb, or "wait" alone.

    `delta` is what a saying verb sends. `status`, `code`, `message`, `headers` describe a failure;
    a `plain` one is sent as a text instead of an object. `steps` are those of "forever".
    """

    do: str
    wait: float = 0.0
    delta: Delta | None = None
    status: int | None = None
    code: str = ""
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    plain: bool = False
    steps: tuple["Step", ...] = ()

    def __str__(self) -> str:
        said = [repr(text) for text in self._details() if text]
        named = [f"{name}: {value}" for name, value in self.headers]
        return "  ".join([f"after {self.wait:g} s", self.do, *said, *named])

    def _details(self) -> tuple[str, ...]:
        if self.delta is not None:
            delta = self.delta
            counted = f"{delta.tokens_in} in, {delta.tokens_out} out" if self.do == "usage" else ""
            return (delta.name, delta.text, delta.reason, counted)
        return (str(self.status or ""), self.code, self.message)

    @property
    def ends(self) -> bool:
        """Whether the stream is over with this step."""
        return self.do in ENDS

    def failure(self) -> ProviderError:
        """The error that this step stands for, new at each call."""
        if self.do == "drop":
            return ProviderError("the connection was reset", kind="disconnect")
        message = self.message or (f"HTTP {self.status}" if self.status else "the stream failed")
        return ProviderError(
            message, status=self.status, code=self.code or None, headers=dict(self.headers)
        )


@dataclass(frozen=True, slots=True)
class Script:
    """A checked script; `attempts` holds the steps of each request in turn."""

    name: str
    attempts: tuple[tuple[Step, ...], ...]
    about: str = ""

    def attempt(self, number: int) -> tuple[Step, ...]:
        """The steps of request `number`, from 1; past the last, the last again."""
        return self.attempts[min(number, len(self.attempts)) - 1]

    def __repr__(self) -> str:
        return f"<script {self.name}: {len(self.attempts)} attempts>"

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.about}".rstrip(": ")]
        for number, steps in enumerate(self.attempts, start=1):
            lines += [f"attempt {number}", *[f"  {step}" for step in steps]]
        return "\n".join(lines)
