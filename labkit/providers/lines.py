"""JSON whose objects and lists know the line on which they begin, so that an error can name it.

Rules: a name that stands twice in one object is an error; so is a depth that no script needs.

    line_of(loads('{\n "a": [1]}')["a"])    # 2
"""

import json
from json import decoder, scanner
from pathlib import Path
from typing import Any, Final

MOST_DEPTH: Final = 30
MOST_BYTES: Final = 1_000_000


class Located(dict[str, Any]):
    """An object of the file; `line` counts from 1."""

    line = 0


class LocatedList(list[Any]):
    """A list of the file; `line` counts from 1."""

    line = 0


class _Decoder(json.JSONDecoder):
    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self.parse_object = self._object
        self.parse_array = self._array
        self.parse_int = _whole
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _object(self, text_and_end: tuple[str, int], *rest: Any) -> tuple[Located, int]:
        text, start = text_and_end
        self._enter(text, start)
        options = [*rest[:-2], list, rest[-1]]  # keeps the pairs: a dict would hide a repeated name
        pairs, end = decoder.JSONObject(text_and_end, *options)  # type: ignore[attr-defined]
        self._depth -= 1
        value = Located(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise json.JSONDecodeError(f"the name {twice[:40]!r} stands twice here", text, start)
        value.line = _line(text, start)
        return value, end

    def _array(self, text_and_end: tuple[str, int], *rest: Any) -> tuple[LocatedList, int]:
        self._enter(*text_and_end)
        items, end = decoder.JSONArray(text_and_end, *rest)  # type: ignore[attr-defined]
        self._depth -= 1
        value = LocatedList(items)
        value.line = _line(*text_and_end)
        return value, end

    def _enter(self, text: str, start: int) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise json.JSONDecodeError(f"more than {MOST_DEPTH} levels deep", text, start)


def loads(text: str) -> Any:
    """As `json.loads`, with objects and lists that know their line."""
    return _Decoder().decode(text)


def read_text(path: Path) -> str:
    """The text of a file, with or without a byte order mark.

    Raises `OSError`, or `ValueError` that names the line where that can be.
    """
    if path.exists() and not path.is_file():
        raise ValueError("not a file: give the path of a script")
    with path.open("rb") as file:
        read = file.read(MOST_BYTES + 1)
    if len(read) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES:,} bytes: shorten it")
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = read.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: not UTF-8 text: save it as UTF-8") from error


def line_of(value: Any) -> int:
    """The line of an object or list that `loads` made, else 0."""
    return value.line if isinstance(value, Located | LocatedList) else 0


def _line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1


def _whole(digits: str) -> int | float:
    """A number of thousands of digits is no count, and Python refuses to make one."""
    return int(digits) if len(digits) < 20 else float(digits)
