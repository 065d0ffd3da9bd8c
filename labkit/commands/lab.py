"""`python -m labkit lab`: JupyterLab on the learner's own copies.

It listens on 127.0.0.1 only, prints its address, and ends with Ctrl-C. Neither a missing browser
nor a taken port is a failure: the address serves any browser, and the next port is taken.
"""

import argparse
import os
import sys

from labkit.commands import copies, sandbox, system


def main(arguments: list[str]) -> int:
    """Make the copies and become JupyterLab. Raises `Missing` for an unknown notebook."""
    parser = argparse.ArgumentParser(prog="python -m labkit lab", description=__doc__)
    parser.add_argument("--fresh", metavar="NAME", help="a new copy; the old one is set aside")
    parser.add_argument("--port", type=int, default=8888, help="the next free one, if it is taken")
    parser.epilog = "Other options are JupyterLab's own, like --no-browser."
    chosen, options = parser.parse_known_args(arguments)
    if not 0 <= chosen.port <= 65_535:
        parser.error(f"a port is a number from 0 to 65535, not {chosen.port}")
    work = copies.work_folder()
    renewed = [copies.fresh(chosen.fresh, work)] if chosen.fresh else []
    for path in renewed + copies.make(work):
        print(f"labkit: {path.name} is new in {work.name}/")
    print("labkit: JupyterLab starts, and its address follows; open that where no browser opens.")
    print("labkit: Ctrl-C here ends it", flush=True)
    # Settings of the learner's other labs, a password say, and their tabs stay out of the way.
    os.environ.update(sandbox.LAB | {"JUPYTER_CONFIG_DIR": str(work / ".jupyter")})
    os.environ.pop("JUPYTER_TOKEN", None)  # JupyterLab prints its address with its own token only
    return system.hand_over(
        [*command((renewed or copies.tracked())[0].name, chosen.port), *options]
    )


def command(notebook: str, port: int) -> list[str]:
    """The line that starts JupyterLab on a copy; `commands/jupyter` holds the other settings."""
    settings = ["--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={copies.work_folder()}"]
    settings += [f"--ServerApp.port={port}", f"--LabApp.default_url=/lab/tree/{notebook}"]
    return [sys.executable, "-m", "jupyterlab", *settings]
