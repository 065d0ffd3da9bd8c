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
from collections.abc import Mapping, Sequence
from pathlib import Path
from reprlib import repr as short
from typing import Any, Final

from labkit.recovery.deltas import Delta

from .lines import line_of, loads, read_text
from .steps import LAST, VERBS, Script, ScriptError, Step

__all__ = ["Script", "ScriptError", "Step", "load_script", "script"]

MOST_WAIT: Final = 86_400.0  # seconds
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e]*", re.ASCII)
_FRAMING: Final = ("content-length", "transfer-encoding", "connection")


def load_script(path: str | Path) -> Script:
    """Read a script file; raises `ScriptError` that names the file and the line."""
    name = Path(path).name
    try:
        return script(loads(read_text(Path(path))))
    except json.JSONDecodeError as error:
        raise ScriptError(f"{name}, line {error.lineno}: not usable JSON: {error.msg}") from error
    except (ScriptError, ValueError, OSError) as error:
        told = getattr(error, "strerror", None) or error
        raise ScriptError(f"{name}, {told}") from error


def script(value: Mapping[str, Any]) -> Script:
    """A script from plain data; raises `ScriptError` that says what is wrong and where."""
    if not isinstance(value, Mapping):
        raise _wrong(value, "a script is an object with 'name' and 'attempts'")
    _known(value, ("name", "about", "attempts"))
    name, about = _text(value, "name"), _text(value, "about")
    if not name:
        raise _wrong(value, "'name' must be a text")
    attempts = value.get("attempts")
    if not _is_list(attempts) or not attempts:
        raise _wrong(value, "'attempts' must be a list with at least one attempt")
    return Script(name, tuple(_attempt(steps, attempts) for steps in attempts), about)


def _attempt(steps: Any, inside: Any, *, forever: bool = False) -> tuple[Step, ...]:
    if not _is_list(steps) or not steps:
        where = steps if line_of(steps) else inside
        raise _wrong(where, 'an attempt is a list of steps; for an empty answer [{"end": true}]')
    made: list[Step] = []
    for value in steps:
        step = _step(value, steps)
        if made and made[-1].do in LAST:
            raise _wrong(value, f"nothing can follow {made[-1].do!r}")
        if forever and step.do in LAST:
            raise _wrong(value, f"{step.do!r} cannot stand inside 'forever', which never ends")
        if step.do == "http_error" and any(s.do != "wait" for s in made):
            raise _wrong(value, "'http_error' comes before anything is sent; later use 'error'")
        made.append(step)
    return tuple(made)


def _step(value: Any, inside: Any) -> Step:
    if not isinstance(value, Mapping):
        raise _wrong(inside, f"a step is an object with one verb, not {short(value)}")
    verbs = [name for name in value if name != "wait"]
    if len(verbs) > 1 or (verbs and verbs[0] not in VERBS) or not value:
        told = f"a step has one verb of {', '.join(VERBS)}; found {short(list(value))}"
        raise _wrong(value, told)
    wait = value.get("wait", 0)
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= MOST_WAIT:
        raise _wrong(value, f"'wait' must be seconds from 0 to {MOST_WAIT:g}, not {short(wait)}")
    if not verbs:
        return Step("wait", float(wait))
    return _MAKERS[verbs[0]](verbs[0], float(wait), value)


def _say(do: str, wait: float, value: Any) -> Step:
    told = _text(value, do)
    if do in ("role", "finish") and not told:
        raise _wrong(value, f"{do!r} cannot be empty: leave the step out")
    kind = {"say": "text", "think": "thinking"}.get(do, do)
    return Step(do, wait, Delta(kind, reason=told) if do == "finish" else Delta(kind, told))


def _call(do: str, wait: float, value: Any) -> Step:
    told = _object(value, do, ("index", "id", "name", "arguments"))
    arguments, call_id, name = (_text(told, field) for field in ("arguments", "id", "name"))
    return Step(do, wait, Delta("tool_call", arguments, _count(told, "index"), call_id, name))


def _usage(do: str, wait: float, value: Any) -> Step:
    told = _object(value, do, ("in", "out"))
    tokens_in, tokens_out = _count(told, "in"), _count(told, "out")
    return Step(do, wait, Delta("usage", tokens_in=tokens_in, tokens_out=tokens_out))


def _error(do: str, wait: float, value: Any) -> Step:
    if isinstance(value[do], str):
        return Step(do, wait, message=_text(value, do), plain=True)
    told = _object(value, do, ("message", "code"))
    return Step(do, wait, code=_text(told, "code"), message=_text(told, "message"))


def _http_error(do: str, wait: float, value: Any) -> Step:
    told = _object(value, do, ("status", "code", "message", "headers"))
    status = told.get("status")
    if isinstance(status, bool) or not isinstance(status, int) or not 400 <= status <= 599:
        raise _wrong(told, f"'status' must be from 400 to 599, not {short(status)}")
    headers = _headers(told)
    code, message = _text(told, "code"), _text(told, "message")
    return Step(do, wait, status=status, code=code, message=message, headers=headers)


def _headers(told: Any) -> tuple[tuple[str, str], ...]:
    headers = told.get("headers", {})
    if not isinstance(headers, Mapping):
        raise _wrong(told, "'headers' must be an object of texts")
    for name in headers:
        if not _HEADER.fullmatch(f"{name}: {_text(headers, name)}"):
            raise _wrong(told, f"header {short(name)}: a name and a value of plain ASCII, one line")
        if name.lower() in _FRAMING:
            raise _wrong(told, f"header {name!r} is the server's own: leave it out")
    return tuple(headers.items())


def _flag(do: str, wait: float, value: Any) -> Step:
    if value[do] is not True:
        raise _wrong(value, f"{do!r} takes true, not {short(value[do])}")
    return Step(do, wait)


def _forever(do: str, wait: float, value: Any) -> Step:
    return Step(do, wait, steps=_attempt(value[do], value, forever=True))


_MAKERS: Final = {
    **dict.fromkeys(("say", "think", "role", "finish"), _say),
    "call": _call,
    "usage": _usage,
    "error": _error,
    "http_error": _http_error,
    **dict.fromkeys(("stall", "drop", "end"), _flag),
    "forever": _forever,
}


def _object(value: Any, do: str, names: Sequence[str]) -> Any:
    told = value[do]
    if not isinstance(told, Mapping):
        raise _wrong(value, f"{do!r} takes an object with {', '.join(names)}, not {short(told)}")
    _known(told, names)
    return told


def _known(value: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in value:
        if name not in names:
            raise _wrong(value, f"unknown field {short(name)}; there is: {', '.join(names)}")


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name, "")
    if not isinstance(text, str):
        raise _wrong(value, f"{name!r} must be a text, not {short(text)}")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _wrong(value, f"{name!r} holds half of a surrogate pair: write both, or the letter")
    return text


def _count(value: Mapping[str, Any], name: str) -> int:
    number = value.get(name, 0)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise _wrong(value, f"{name!r} must be a whole number from 0, not {short(number)}")
    return number


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _wrong(value: Any, message: str) -> ScriptError:
    line = line_of(value)
    return ScriptError(f"line {line}: {message}" if line else message)
