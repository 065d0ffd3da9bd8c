"""Turns live values into ones that cannot change or betray anything later.

Plain immutables are kept as they are; everything else is rendered to bounded text without
addresses. What stands under a name like `api_key` is masked, at any depth.
"""

import asyncio
import dataclasses
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Final

MASK: Final = "***"
MOST_TEXT: Final = 200  # characters
MOST_ITEMS: Final = 8
MOST_DEPTH: Final = 4

Locals = tuple[tuple[str, Any], ...]

_PLAIN: Final = frozenset({type(None), bool, int, float})
_SECRET_WORDS: Final = frozenset(
    "key apikey token secret authorization password passwd credential credentials cookie".split()
)
_CREDENTIAL: Final = re.compile(
    r"(?i)\b((?:bearer|basic)\s+)(?=\S*[\d=])[\w.~+/=-]{8,}|\bsk-(?=\S*\d)[a-z0-9_-]{6,}"
)
_NAMED: Final = re.compile(
    r"(?i)((?:key|token|secret|password|authorization)['\"]?\s*[:=]\s*['\"]?)[^\s'\",;)}\]]+"
)
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+|0x[0-9a-fA-F]{6,}")


class Rendered(str):
    """Text that stands for a value which could have changed; its repr is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@lru_cache(maxsize=1_000)
def secret(name: str) -> bool:
    """Whether a value of this name must be masked."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return not _SECRET_WORDS.isdisjoint(words)


def hide(text: str) -> str:
    """`text` without credentials: for prose, which may well speak of a token or a key."""
    return _CREDENTIAL.sub(lambda found: (found[1] or "") + MASK, text)


def scrub(text: str) -> str:
    """`text` without credentials, named secrets and addresses: for what a value renders to."""
    return _ADDRESS.sub("", _NAMED.sub(rf"\1{MASK}", hide(text)))


def freeze(name: str, value: Any) -> Any:
    """`value` as it is now: a plain immutable, or bounded text."""
    if secret(name) and value is not None:
        return MASK
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is str:
        return hide(_short(value))
    return Rendered(scrub(_short(_render(value, MOST_DEPTH))))


class Freezer:
    """Freezes the locals of frames, and renders what cannot change only once.

    It lives as long as one recording. A text, a frozen record and a function keep what they
    rendered to; of any other object that is no collection and no exception only the class is shown,
    so the class keeps it.
    """

    def __init__(self) -> None:
        self._plans: dict[CodeType, list[tuple[str, bool]]] = {}
        self._texts: dict[str, str] = {}
        self._records: dict[int, tuple[Any, Any]] = {}
        self._named: dict[tuple[type, str], Any] = {}
        self._classes: dict[type, Any] = {}

    def locals(self, frame: FrameType) -> Locals:
        """The frame's locals in the order of its code, as they are now."""
        live = frame.f_locals
        code = frame.f_code
        plan = self._plans.get(code)
        if plan is None:
            names = dict.fromkeys(code.co_varnames + code.co_cellvars + code.co_freevars)
            plan = self._plans[code] = [(name, secret(name)) for name in names]
        frozen: list[tuple[str, Any]] = []
        for name, hidden in plan:
            if name in live:
                value = live[name]
                if hidden:
                    frozen.append((name, freeze(name, value)))
                elif type(value) in _PLAIN:
                    frozen.append((name, value))
                else:
                    frozen.append((name, self._known(value)))
        return tuple(frozen)

    def _known(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            if value not in self._texts:
                self._texts[value] = freeze("", value)
            return self._texts[value]
        if kind in self._classes:
            return self._classes[kind]
        record = self._records.get(id(value))
        if record is not None and record[0] is value:
            return record[1]
        return self._render(kind, value)

    def _render(self, kind: type, value: Any) -> Any:
        if isinstance(value, _SHOWN_WHOLE):
            return freeze("", value)
        parameters = getattr(kind, "__dataclass_params__", None)
        if parameters is not None:
            frozen = freeze("", value)
            if parameters.frozen:
                self._records[id(value)] = (value, frozen)
            return frozen
        name = getattr(value, "__name__", None)
        if not isinstance(name, str):
            self._classes[kind] = freeze("", value)
            return self._classes[kind]
        if (kind, name) not in self._named:
            self._named[kind, name] = freeze("", value)
        return self._named[kind, name]


_SHOWN_WHOLE: Final = (bytes, BaseException, Mapping, list, tuple, AbstractSet, asyncio.Task)


def plain(name: str, value: Any) -> Any:
    """`value` for the trace: text whole, tuples of plain values kept, the rest as in `freeze`."""
    if type(value) is str and not secret(name):
        return hide(value)
    if type(value) is tuple:
        return tuple(plain(name, item) for item in value)
    frozen = freeze(name, value)
    return str(frozen) if isinstance(frozen, Rendered) else frozen


def _short(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _render(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return repr(_short(value))
    if type(value) in _PLAIN or isinstance(value, bytes):
        return _short(repr(value))
    if isinstance(value, BaseException):
        return f"{type(value).__name__}({_short(str(value))!r})"
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return _items("{", [_pair(repr(k), str(k), v, ": ", depth) for k, v in _some(value)], "}")
    if isinstance(value, list | tuple):
        ends = "[]" if isinstance(value, list) else "()"
        return _items(ends[0], [_render(item, depth - 1) for item in value[:9]], ends[1])
    if isinstance(value, AbstractSet):
        return _items("{", sorted(_render(item, depth - 1) for item in value), "}")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _record(value, depth)
    return _other(value)


def _some(mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return [pair for pair, _ in zip(mapping.items(), range(MOST_ITEMS + 1), strict=False)]


def _pair(label: str, name: str, value: Any, joint: str, depth: int) -> str:
    return f"{label}{joint}{MASK if secret(name) else _render(value, depth - 1)}"


def _items(opening: str, items: list[str], closing: str) -> str:
    shown = [*items[:MOST_ITEMS], "…"] if len(items) > MOST_ITEMS else items
    return opening + ", ".join(shown) + closing


def _record(value: Any, depth: int) -> str:
    fields = [field for field in dataclasses.fields(value) if field.repr]
    told = [f for f in fields if getattr(value, f.name, f.default) != f.default]
    pairs = [_pair(f.name, f.name, getattr(value, f.name, None), "=", depth) for f in told]
    return _items(f"{type(value).__name__}(", pairs, ")")


def _other(value: Any) -> str:
    if isinstance(value, asyncio.Task):
        return f"<task {value.get_name()}>"
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return f"<{type(value).__name__} {name}>"
    return f"<{type(value).__name__}>"
