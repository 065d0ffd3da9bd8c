"""Turns live values into ones that cannot change or betray anything later.

Plain immutables are kept as they are; everything else is rendered to bounded text without
addresses. What stands under a name like `api_key` is masked, at any depth. No value's own `repr` is
called: it might do anything.
"""

import asyncio
import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import lru_cache
from inspect import CO_VARARGS, CO_VARKEYWORDS
from itertools import islice
from types import CodeType, FrameType
from typing import Any, Final

from .mask import MASK, hide, scrub, secret

MOST_TEXT: Final = 200  # characters
MOST_ITEMS: Final = 8
MOST_DEPTH: Final = 4
MOST_SORTED: Final = 1_000  # a larger set is shown by its size

Names = tuple[str, ...]

_PLAIN: Final = frozenset({type(None), bool, int, float})
_TELLING: Final = frozenset({"datetime", "decimal", "fractions", "uuid", "pathlib"})  # by their str


class Rendered(str):
    """Text that stands for a value which could have changed; its repr is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def freeze(name: str, value: Any) -> Any:
    """`value` as it is now: a plain immutable, or bounded text."""
    if secret(name) and value is not None:
        return MASK
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is str:
        return _text(value)
    try:
        return Rendered(_cut(scrub(_render(value, MOST_DEPTH))))
    except Exception:  # a look at a value never changes the run
        return Rendered(f"<{kind.__name__}>")


def plain(name: str, value: Any) -> Any:
    """`value` for the trace: text whole, tuples of plain values kept, the rest as in `freeze`."""
    kind = type(value)
    if kind is str and not secret(name):
        return hide(value) if name == "text" else scrub(value)  # prose may speak of a key
    if kind is tuple:
        if _is_secret(value):  # a pair: the name is told, the rest is masked
            return (value[0], *[plain(value[0], item) for item in value[1:]])
        return tuple([plain(name, item) for item in value])
    frozen = freeze(name, value)
    return str(frozen) if type(frozen) is Rendered else frozen


class Freezer:
    """Freezes the locals of frames, and renders what cannot change only once.

    It lives as long as one recording, and holds no value that could hold a frame alive.
    """

    def __init__(self) -> None:
        self._plans: dict[int, tuple[Names, list[str], CodeType]] = {}  # by the code's address
        self._classes: dict[type, Rendered] = {}
        self._named: dict[type, dict[str, Rendered]] = {}
        self._settled: dict[int, tuple[Any, Any]] = {}  # address -> value, which holds it, and text

    def locals(self, frame: FrameType) -> tuple[Names, dict[str, Any]]:
        """The names that the frame's locals may have, and those that it has, as they are now."""
        code = frame.f_code
        plan = self._plans.get(id(code)) or self._plans.setdefault(id(code), _plan(code))
        known, shown = self._classes, self._shown
        values = {
            name: value
            if (kind := type(value)) in _PLAIN
            else known.get(kind) or shown(kind, value)
            for name, value in frame.f_locals.items()
        }
        for name in plan[1]:
            if values.get(name) is not None:
                values[name] = MASK
        return plan[0], values

    def _shown(self, kind: type, value: Any) -> Any:
        texts = self._named.get(kind)
        if texts is not None:
            name = getattr(value, "__name__", "")
            return texts.get(name) or texts.setdefault(name, freeze("", value))
        if (known := self._settled.get(id(value))) is not None:
            return known[1]
        frozen = freeze("", value)
        if _is_settled(value):
            self._settled[id(value)] = (value, frozen)
        elif _is_opaque(kind) and hasattr(value, "__name__"):
            self._named[kind] = {value.__name__: frozen}
        elif _is_opaque(kind):
            self._classes[kind] = frozen
        return frozen


def _plan(code: CodeType) -> tuple[Names, list[str], CodeType]:
    """The names of a function's locals, those that are secret, and the code, to be held.

    Parameters come first, in their order, then the others by name: their order in the code differs
    between versions of Python, where comprehensions are compiled in different ways.
    """
    stars = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]
    others = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}.difference(given)
    names = (*given, *sorted(others))
    return names, list(filter(secret, names)), code


# What a value renders to

_SHOWN: Final = (
    str, bytes, range, complex, Enum, BaseException, Mapping, list, tuple, deque, AbstractSet,
    asyncio.Task,
)  # fmt: skip


def _is_opaque(kind: type) -> bool:
    """Whether nothing is shown of such values but their class, or class and name."""
    shown = issubclass(kind, _SHOWN) or dataclasses.is_dataclass(kind)
    return not (shown or _is_telling(kind))


def _is_telling(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _TELLING


def _is_settled(value: Any) -> bool:
    """Whether `value` and all in it can never change."""
    kind = type(value)
    if isinstance(value, tuple | frozenset):
        return all(_is_settled(item) for item in value)
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is not None:
        names = kind.__dataclass_fields__
        return parameters.frozen and all(_is_settled(getattr(value, name, 0)) for name in names)
    return kind in _PLAIN or isinstance(value, str | bytes | range | Enum) or _is_telling(kind)


def _render(value: Any, depth: int) -> str:
    kind = type(value)
    if isinstance(value, Enum):
        return f"{kind.__name__}.{value.name}"
    if isinstance(value, str):
        return repr(_text(value))
    if kind in _PLAIN or isinstance(value, range | complex):
        return repr(value)
    if isinstance(value, bytes):
        return _cut(repr(value[:MOST_TEXT]))
    if isinstance(value, BaseException):
        return f"{kind.__name__}({_text(str(value))!r})"
    if _is_telling(kind):
        return str(value)
    if isinstance(value, asyncio.Task):
        return f"<task {value.get_name()}>"
    if _is_opaque(kind):
        name = getattr(value, "__name__", None)
        return f"<{kind.__name__} {name}>" if isinstance(name, str) else f"<{kind.__name__}>"
    return _collection(value, depth - 1) if depth else "…"


def _collection(value: Any, depth: int) -> str:
    kind: Any = type(value)
    if isinstance(value, Mapping):
        return _items("{", _named(islice(value.items(), MOST_ITEMS + 1), ": ", depth), "}")
    if isinstance(value, AbstractSet):
        if len(value) > MOST_SORTED:
            return f"<{len(value)} items>"
        return _items("{", sorted(_render(item, depth) for item in value), "}")
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        return _items(f"{kind.__name__}(", _named(_fields(value), "=", depth), ")")
    if _is_secret(value):
        return f"({value[0]!r}, {MASK})"
    items = [_render(item, depth) for item in islice(value, MOST_ITEMS + 1)]
    if not isinstance(value, tuple):
        return _items("[", items, "]")
    return _items("(", items, ",)" if len(value) == 1 else ")")


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of a record's fields; of a dataclass those that say more than a default."""
    for name in getattr(value, "_fields", ()):
        yield name, getattr(value, name)
    kind: Any = type(value)
    for name, default in _shown_fields(kind):
        there = getattr(value, name, default)
        if there is not default and there != default:
            yield name, there


@lru_cache(maxsize=1_000)
def _shown_fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Name and default of the fields that are part of a dataclass's repr."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return tuple((field.name, field.default) for field in fields if field.repr)


def _named(pairs: Iterable[tuple[Any, Any]], joint: str, depth: int) -> list[str]:
    """What stands under names; a value is masked by its own name or by the one beside it."""
    pairs = list(pairs)
    beside = [name for key, name in pairs if key in ("name", "key")]  # {"name": .., "value": ..}
    told = []
    for key, value in pairs:
        names = [key, *beside] if key == "value" else [key]
        hidden = value is not None and any(secret(_name(name)) for name in names)
        label = key if joint == "=" else _render(key, 0)
        told.append(f"{label}{joint}{MASK if hidden else _render(value, depth)}")
    return told


def _is_secret(value: Any) -> bool:
    """Whether `value` is one header, say: a secret's name, perhaps a sign, and the secret."""
    return 2 <= len(value) <= 3 and secret(_name(value[0]))


def _name(name: object) -> str:
    """The name as text: raw headers have bytes."""
    if isinstance(name, bytes):
        return name.decode("latin-1")
    return str(name) if isinstance(name, str | Enum) else ""


def _items(opening: str, items: list[str], closing: str) -> str:
    shown = [*items[:MOST_ITEMS], "…"] if len(items) > MOST_ITEMS else items
    return opening + ", ".join(shown) + closing


def _text(text: str) -> str:
    return _cut(scrub(text[: 2 * MOST_TEXT]))  # hidden before it is cut: half a key is no key


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"
