"""Scripts: what a fake provider does, attempt by attempt, read and checked.

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
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any, Final

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError, RecoveryError
from labkit.simulation.mask import MASK, secret

ENDS: Final = ("http_error", "error", "drop", "end")  # after these nothing comes any more
LAST: Final = (*ENDS, "stall", "forever")  # nothing can follow these in an attempt
MOST_WAIT: Final = 86_400.0  # seconds

# What each verb takes. A value stands for its type, and for a field that is left out.
VERBS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("say", "think", "role", "finish"), ""),
    "call": {"index": 0, "id": "", "name": "", "arguments": ""},
    "usage": {"in": 0, "out": 0},
    "error": {"code": "", "message": ""},
    "http_error": {"status": 0, "code": "", "message": "", "headers": {}},
    **dict.fromkeys(("stall", "drop", "end"), True),
    "forever": [],
}
_DELTAS: Final[Mapping[str, Callable[[Any], Delta]]] = {
    "say": lambda text: Delta("text", text),
    "think": lambda text: Delta("thinking", text),
    "role": lambda text: Delta("role", text),
    "finish": lambda reason: Delta("finish", reason=reason),
    "call": lambda of: Delta("tool_call", of["arguments"], of["index"], of["id"], of["name"]),
    "usage": lambda of: Delta("usage", tokens_in=of["in"], tokens_out=of["out"]),
}
_TYPES: Final = {str: "a text", int: "a count", bool: "true", dict: "an object", list: "a list"}
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e]*", re.ASCII)
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\n]')  # a text hides the marks in it


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
        said, told = self.delta, [str(self.status or ""), self.code, self.message]
        if said is not None:
            counted = f"{said.tokens_in} in, {said.tokens_out} out" if self.do == "usage" else ""
            told = [said.name, said.text, said.reason, counted]
        words = [repr(word) for word in told if word]
        headers = [f"{name}: {MASK if secret(name) else value}" for name, value in self.headers]
        return "  ".join([f"after {self.wait:g} s", self.do, *words, *headers])

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


class _Located(dict[str, Any]):
    """An object of a file that knows the line on which it begins, so that an error can name it."""

    line = 0


def load_script(path: str | Path) -> Script:
    """Read a script file; raises `ScriptError` that names the file and the line."""
    try:
        return script(_loads(Path(path).read_bytes().decode("utf-8-sig")))
    except json.JSONDecodeError as error:
        told = f"line {error.lineno}: not usable JSON: {error.msg}"
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        told = f"line {line}: not UTF-8 text: save it as UTF-8"
    except (OSError, ValueError, RecursionError) as error:
        told = getattr(error, "strerror", None) or str(error)
    raise ScriptError(f"{Path(path).name}, {told}")


def _loads(text: str) -> Any:
    lines = _lines(text)

    def located(pairs: list[tuple[str, Any]]) -> _Located:
        made = _Located(pairs)
        made.line = next(lines)
        if len(made) < len(pairs):
            raise _wrong(made, f"a name stands twice: {short([name for name, _ in pairs])}")
        return made

    return json.loads(text, object_pairs_hook=located)


def _lines(text: str) -> Iterator[int]:
    """The line on which each object begins, in the order in which they end, as JSON is read."""
    line, begun = 1, list[int]()
    for token in _TOKEN.finditer(text):
        if token[0] == "\n":
            line += 1
        elif token[0] == "{":
            begun.append(line)
        elif token[0] == "}":
            yield begun.pop()


def script(value: dict[str, Any]) -> Script:
    """A script from plain data; raises `ScriptError` that says what is wrong and where."""
    if not isinstance(value, dict):
        raise ScriptError("a script is an object with 'name' and 'attempts'")
    told = _fields(value, {"name": "", "about": "", "attempts": []})
    for name in ("name", "attempts"):
        if not told[name]:
            raise _wrong(value, f"{name!r} is missing or empty")
    numbered = enumerate(told["attempts"], start=1)
    attempts = [_attempt(steps, value, f"attempt {number}") for number, steps in numbered]
    return Script(told["name"], tuple(attempts), told["about"])


def _attempt(steps: Any, around: dict[str, Any], called: str) -> tuple[Step, ...]:
    if not isinstance(steps, list) or not steps:
        cure = '[{"end": true}] is an empty answer'
        raise _wrong(around, f"{called} must be a list of steps; {cure}")
    made: list[Step] = []
    for value in steps:
        if not isinstance(value, dict):
            raise _wrong(around, f"{called}: a step is an object, not {short(value)}")
        step = _step(value)
        if made and made[-1].do in LAST:
            raise _wrong(value, f"nothing can follow {made[-1].do!r}")
        if step.do == "http_error" and any(before.do != "wait" for before in made):
            raise _wrong(value, "'http_error' comes before anything is sent; later use 'error'")
        made.append(step)
    return tuple(made)


def _step(value: dict[str, Any]) -> Step:
    wait, verbs = value.get("wait", 0), [name for name in value if name != "wait"]
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= MOST_WAIT:
        raise _wrong(value, f"'wait' must be seconds from 0 to {MOST_WAIT:g}, not {short(wait)}")
    if value and not verbs:
        return Step("wait", float(wait))
    if len(verbs) != 1 or verbs[0] not in VERBS:
        raise _wrong(value, f"a step has one verb of {', '.join(VERBS)}; not {short(verbs)}")
    return Step(verbs[0], float(wait), **_details(value, verbs[0]))


def _details(value: dict[str, Any], do: str) -> dict[str, Any]:
    """What a verb's value gives the `Step`."""
    if do == "error" and isinstance(value[do], str):
        return {"message": _checked(value, do, ""), "plain": True}
    told = _checked(value, do, VERBS[do])
    if do in ("role", "finish") and not told:
        raise _wrong(value, f"{do!r} cannot be empty: leave the step out")
    if do in _DELTAS:
        return {"delta": _DELTAS[do](told)}
    if do == "forever":
        steps = _attempt(told, value, "'forever'")
        if steps[-1].do in LAST:
            raise _wrong(value, f"{steps[-1].do!r} cannot stand in 'forever', which never ends")
        return {"steps": steps}
    if do == "http_error":
        return {**told, "headers": _headers(value[do], told)}
    return {} if told is True else dict(told)


def _headers(value: dict[str, Any], told: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    if not 400 <= told["status"] <= 599:
        raise _wrong(value, f"'status' must be from 400 to 599, not {short(told['status'])}")
    for name, text in told["headers"].items():
        if not isinstance(text, str) or not _HEADER.fullmatch(f"{name}: {text}"):
            raise _wrong(value, f"header {short(name)}: a name and a text of ASCII in one line")
    return tuple(told["headers"].items())


def _fields(value: dict[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    for name in value:
        if name not in like:
            raise _wrong(value, f"unknown field {short(name)}; there is: {', '.join(like)}")
    return {name: _checked(value, name, like[name]) for name in like}


def _checked(value: dict[str, Any], name: str, like: Any) -> Any:
    told = value.get(name, like)
    fits = isinstance(told, type(like)) and isinstance(told, bool) == isinstance(like, bool)
    if not fits or (isinstance(like, int) and told < like):
        raise _wrong(value, f"{name!r} must be {_TYPES[type(like)]}, not {short(told)}")
    if isinstance(told, str) and any("\ud800" <= letter <= "\udfff" for letter in told):
        raise _wrong(value, f"{name!r} holds half of a surrogate pair: write both, or the letter")
    return _fields(told, like) if isinstance(like, dict) and like else told


def _wrong(value: dict[str, Any], message: str) -> ScriptError:
    return ScriptError(f"line {value.line}: {message}" if isinstance(value, _Located) else message)
