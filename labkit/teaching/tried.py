"""What the trial of an exercise in one case gives.

same(3, 4)      # ('It gives 3; 4 is expected.', None)
"""

from labkit.simulation import Run

Tried = tuple[str, Run | None]  # what is wrong, "" for nothing, and the run where there is one


def same(got: object, meant: object) -> Tried:
    """Right if what the learner's code gives equals what labkit's own gives."""
    return "" if got == meant else f"It gives {got!r}; {meant!r} is expected.", None
