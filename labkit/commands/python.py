"""`python -m labkit python ...`: runs Python inside the environment, as `python FILE` would."""

from __future__ import annotations

import os
import sys

from labkit.commands import environment, system


def main(arguments: list[str]) -> int:
    """Hand over to the environment's Python with these arguments; its exit code."""
    code = environment.enter("python", arguments)
    if code is not None:
        return code
    return system.hand_over([sys.executable, *arguments], dict(os.environ))
