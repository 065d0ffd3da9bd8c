"""The lab's own scripts, by name.

load("error-after-text")
"""

from pathlib import Path
from typing import Final

from labkit.providers.script import Script, load_script
from labkit.simulation import Unknown

SCRIPTS: Final = Path(__file__).parents[2] / "data" / "scripts"


def load(name: str) -> Script:
    """The script of that name in `data/scripts`; raises `Unknown` with the names there are."""
    known = sorted(path.stem for path in SCRIPTS.glob("*.json"))
    if name not in known:
        raise Unknown("script", name, known)
    return load_script(SCRIPTS / f"{name}.json")
