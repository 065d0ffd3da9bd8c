"""The learner's own area, `my/` beside the notebooks' copies: experiments never touch the package.

path = labkit.copy_script("error-after-text")    # now change the order of its steps
labkit.simulate(labkit.find("retry.guarded").but(script=labkit.load_script(path)))
"""

import os
import shutil
from pathlib import Path

from labkit.scenarios.scripts import SCRIPTS
from labkit.simulation import SimulationError, Unknown


def copy_script(name: str) -> Path:
    """Copy the script of that name into the learner's area; returns the path of the copy.

    A copy that is there already is left as it is. Raises `Unknown` with the scripts there are, and
    `OSError` where nothing can be written.
    """
    known = sorted(path.stem for path in SCRIPTS.glob("*.json"))
    if name not in known:
        raise Unknown("script", name, known)
    work = os.environ.get("LABKIT_WORK") or Path(__file__).parents[2] / "work"
    target = Path(work).absolute() / "my" / f"{name}.json"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        cure = "move the file of that name away, and copy again"
        raise SimulationError(f"{target.parent} is no folder: {cure}") from None
    if not target.exists():
        shutil.copyfile(SCRIPTS / target.name, target)
    print(f"my/{name}.json is yours to change; labkit.load_script(path) reads it.")
    return target
