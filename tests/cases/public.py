"""The public failure cases in `data/cases`, one file each: input, and what must come of it."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "data" / "cases"


def case(number: int) -> dict[str, Any]:
    """The case of that number: title, area, source, input, expect."""
    found: dict[str, Any] = json.loads((FOLDER / f"{number}.json").read_text(encoding="utf-8"))
    return found
