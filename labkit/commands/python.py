"""`python -m labkit python ...`: runs Python inside the environment, as `python FILE` would."""

import sys

from labkit.commands import system


def main(arguments: list[str]) -> int:
    """Become the environment's Python with these arguments; its exit code."""
    return system.hand_over([sys.executable, *arguments])
