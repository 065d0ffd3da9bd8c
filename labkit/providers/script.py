"""Scripts: what a fake provider does, attempt by attempt.

As a file it is JSON: {"name", "about", "attempts": [[step, ...], ...]}. A step is an object with
one verb and, beside it, an optional "wait" in seconds that comes first:

    {"wait": 0.2, "say": "Hel"}    {"think": "hm"}    {"role": "assistant"}
    {"call": {"index": 0, "id": "c1", "name": "look_up", "arguments": "{"}}
    {"usage": {"in": 5, "out": 1}} {"finish": "stop"} {"wait": 3}
    {"http_error": {"status": 429, "code": "", "message": "", "headers": {}}}
    {"error": {"message": "", "code": ""}}   {"error": "plain text"}
    {"stall": true}  {"drop": true}  {"end": true}  {"forever": [step, ...]}

`http_error` refuses the request, `error` breaks a stream that has begun. An attempt that runs out
ends cleanly. A request after the last attempt plays the last one again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError, RecoveryError

from .lines import line_of, loads

MOST_WAIT: Final = 86_400.0  # seconds
ENDS: Final = ("http_error", "error", "stall", "drop", "end", "forever")
VERBS: Final = ("say", "think", "role", "call", "usage", "finish", *ENDS)


class ScriptError(RecoveryError, ValueError):
    """The script cannot be played: mend the line and field that the message names."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a provider does after `wait` seconds: `do` is a verb, or "wait" alone.

    `delta` is what a saying verb sends. `status`, `code`, `message`, `headers` describe a failure.
    `steps` are those of "forever".
    """

    do: str
    wait: float = 0.0
    delta: Delta | None = None
    status: int | None = None
    code: str = ""
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    steps: tuple["Step", ...] = ()

    def failure(self) -> ProviderError:
        """The error that this step stands for, new at each call."""
        if self.do == "drop":
            return ProviderError("the connection was reset", kind="disconnect")
        message = self.message or f"HTTP {self.status}"
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


def load_script(path: str | Path) -> Script:
    """Read a script file; raises `ScriptError` that names the file and the line."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ScriptError(f"cannot read {Path(path).name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScriptError(f"{Path(path).name}: not UTF-8 text: save it as UTF-8") from error
    try:
        return script(loads(text))
    except json.JSONDecodeError as error:
        where = f"{Path(path).name}, line {error.lineno}"
        raise ScriptError(f"{where}: not JSON: {error.msg}") from error
    except ScriptError as error:
        raise ScriptError(f"{Path(path).name}{error}") from error


def script(value: Mapping[str, Any]) -> Script:
    """A script from plain data; raises `ScriptError` that says what is wrong and where."""
    if not isinstance(value, Mapping):
        raise _wrong(value, "a script is an object with 'name' and 'attempts'")
    _known(value, ("name", "about", "attempts"))
    name, about, attempts = value.get("name"), value.get("about", ""), value.get("attempts")
    if not isinstance(name, str) or not name:
        raise _wrong(value, "'name' must be a text")
    if not isinstance(about, str):
        raise _wrong(value, "'about' must be a text")
    if not _is_list(attempts) or not attempts:
        raise _wrong(value, "'attempts' must be a list with at least one attempt")
    return Script(name, tuple(_attempt(steps, value) for steps in attempts), about)


def _attempt(steps: Any, inside: Any, *, begun: bool = False) -> tuple[Step, ...]:
    if not _is_list(steps) or not steps:
        raise _wrong(inside, 'an attempt is a list of steps; for an empty answer [{"end": true}]')
    made: list[Step] = []
    for value in steps:
        step = _step(value, inside)
        if made and made[-1].do in ENDS:
            raise _wrong(value, f"nothing can follow {made[-1].do!r}")
        if step.do == "http_error" and (begun or any(s.do != "wait" for s in made)):
            raise _wrong(value, "'http_error' comes before anything is sent; later use 'error'")
        made.append(step)
    return tuple(made)


def _step(value: Any, inside: Any) -> Step:
    if not isinstance(value, Mapping):
        raise _wrong(inside, f"a step is an object with one verb, not {value!r}")
    verbs = [name for name in value if name != "wait"]
    if len(verbs) > 1 or (verbs and verbs[0] not in VERBS) or not value:
        raise _wrong(value, f"a step has one verb of {', '.join(VERBS)}; found {list(value)}")
    wait = value.get("wait", 0)
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= MOST_WAIT:
        raise _wrong(value, f"'wait' must be seconds from 0 to {MOST_WAIT:g}, not {wait!r}")
    if not verbs:
        return Step("wait", float(wait))
    return _MAKERS[verbs[0]](verbs[0], float(wait), value[verbs[0]], value)


def _say(do: str, wait: float, told: Any, value: Any) -> Step:
    if not isinstance(told, str):
        raise _wrong(value, f"{do!r} takes a text, not {told!r}")
    kind = {"say": "text", "think": "thinking"}.get(do, do)
    return Step(do, wait, Delta(kind, reason=told) if do == "finish" else Delta(kind, told))


def _call(do: str, wait: float, told: Any, value: Any) -> Step:
    if not isinstance(told, Mapping):
        raise _wrong(value, "'call' takes an object with index, id, name, arguments")
    _known(told, ("index", "id", "name", "arguments"))
    index = told.get("index", 0)
    texts = [told.get(name, "") for name in ("arguments", "id", "name")]
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise _wrong(told, f"'index' must be a whole number from 0, not {index!r}")
    if not all(isinstance(text, str) for text in texts):
        raise _wrong(told, "'id', 'name' and 'arguments' must be texts")
    return Step(do, wait, Delta("tool_call", texts[0], index, texts[1], texts[2]))


def _usage(do: str, wait: float, told: Any, value: Any) -> Step:
    if not isinstance(told, Mapping):
        raise _wrong(value, "'usage' takes an object with in and out")
    _known(told, ("in", "out"))
    numbers = [told.get("in", 0), told.get("out", 0)]
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in numbers):
        raise _wrong(told, "'in' and 'out' must be whole numbers from 0")
    return Step(do, wait, Delta("usage", tokens_in=numbers[0], tokens_out=numbers[1]))


def _failure(do: str, wait: float, told: Any, value: Any) -> Step:
    if isinstance(told, str) and do == "error":
        return Step(do, wait, message=told)
    if not isinstance(told, Mapping):
        raise _wrong(value, f"{do!r} takes an object with message and code")
    _known(told, ("status", "code", "message", "headers") if do == "http_error" else _TOLD)
    status, headers = told.get("status"), told.get("headers", {})
    if do == "http_error" and (not isinstance(status, int) or not 400 <= status <= 599):
        raise _wrong(told, f"'status' must be from 400 to 599, not {status!r}")
    texts = [told.get("code", ""), told.get("message", "")]
    if not isinstance(headers, Mapping) or not all(
        isinstance(text, str) for text in [*texts, *headers.values()]
    ):
        raise _wrong(told, "'code', 'message' and the values of 'headers' must be texts")
    return Step(do, wait, None, status, texts[0], texts[1], tuple(headers.items()))


def _flag(do: str, wait: float, told: Any, value: Any) -> Step:
    if told is not True:
        raise _wrong(value, f"{do!r} takes true, not {told!r}")
    return Step(do, wait)


def _forever(do: str, wait: float, told: Any, value: Any) -> Step:
    return Step(do, wait, steps=_attempt(told, value, begun=True))


_TOLD: Final = ("message", "code")
_MAKERS: Final = {
    **dict.fromkeys(("say", "think", "role", "finish"), _say),
    "call": _call,
    "usage": _usage,
    **dict.fromkeys(("http_error", "error"), _failure),
    **dict.fromkeys(("stall", "drop", "end"), _flag),
    "forever": _forever,
}


def _known(value: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in value:
        if name not in names:
            raise _wrong(value, f"unknown field {name!r}; there is: {', '.join(names)}")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _wrong(value: Any, message: str) -> ScriptError:
    line = line_of(value)
    return ScriptError(f", line {line}: {message}" if line else message)
