"""The learner's own area, `my/` beside the notebooks' copies: experiments never touch the package.

path = labkit.copy_script("error-after-text")    # now change the order of its steps
labkit.simulate(labkit.find("retry.guarded").but(script=labkit.load_script(path)))
"""

import os
from pathlib import Path

from labkit.scenarios.catalogue import SCRIPTS
from labkit.simulation import Unknown


def copy_script(name: str, to: str | Path | None = None) -> Path:
    """Copy the script of that name into the learner's area, or the folder `to`; its path.

    A copy that is there already is left as it is. Raises `Unknown` with the scripts there are, and
    `OSError` where nothing can be written.
    """
    known = sorted(path.stem for path in SCRIPTS.glob("*.json"))
    if name not in known:
        raise Unknown("script", name, known)
    target = (_area() if to is None else Path(to).expanduser()) / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("xb") as file:  # "x": never over a copy that is there
            file.write((SCRIPTS / target.name).read_bytes())
        state = "is yours to change"
    except FileExistsError:
        state = "was there already and is left as it is"
    print(f"{target.parent.name}/{target.name} {state}; labkit.load_script(path) reads it.")
    return target


def _area() -> Path:
    work = os.environ.get("LABKIT_WORK") or Path(__file__).parents[2] / "work"
    return Path(work).absolute() / "my"
