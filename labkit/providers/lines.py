"""JSON whose objects know the line on which they begin, so that an error can name it."""

import json
from json import decoder, scanner
from typing import Any


class Located(dict[str, Any]):
    """An object of the file; `line` counts from 1."""

    line = 0


class _Decoder(json.JSONDecoder):
    def __init__(self) -> None:
        super().__init__()
        self.parse_object = self._object
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _object(self, text_and_end: tuple[str, int], *rest: Any) -> tuple[Located, int]:
        text, start = text_and_end
        value, end = decoder.JSONObject(text_and_end, *rest)  # type: ignore[attr-defined]
        located = Located(value)
        located.line = text.count("\n", 0, start) + 1
        return located, end


def loads(text: str) -> Any:
    """As `json.loads`, with objects of the class `Located`."""
    return _Decoder().decode(text)


def line_of(value: Any) -> int:
    """The line of an object that `loads` made, else 0."""
    return value.line if isinstance(value, Located) else 0
