"""What the tests of exercises share: a typical wrong answer is told the case that it misses."""

from __future__ import annotations

from typing import Any

import labkit


def is_told_its_case(name: str, wrong: Any, case: str, words: str) -> None:
    """It is unsolved, and told `case` and, below it, `words`."""
    checked = labkit.check(name, wrong)
    assert not checked.solved
    told = checked.text().splitlines()
    assert told[1].startswith("Case: ")
    assert case in told[1]
    assert words in told[2]
