"""Breaks each safeguard in a scratch copy and sees its test go red: `python -m tests.safeguards`.

Each room lists its own in `tests/safeguards/<room>.py`, as a tuple named `SAFEGUARDS`.
"""
