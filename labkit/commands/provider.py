"""`python -m labkit provider SCRIPT [--port N] [--speed X]`: serve a script on this machine.

SCRIPT is a name in `data/scripts`, or the path of a script file (.json). Ctrl-C ends it.
"""

import argparse
import math
from contextlib import suppress

from labkit.commands.environment import Missing
from labkit.providers import server
from labkit.providers.process import ServerError
from labkit.providers.script import Script, ScriptError, load_script
from labkit.scenarios.scripts import load
from labkit.simulation import Unknown


def main(arguments: list[str]) -> int:
    """Serve until interrupted. Raises `Missing` for a script or a port that is no good."""
    asked = parser("provider", __doc__).parse_args(arguments)
    script = script_of(asked)
    try:
        listening, address = server.listen(asked.port)
    except ServerError as error:
        raise Missing(error) from error
    print(server.about(script, address), end="", flush=True)
    with suppress(KeyboardInterrupt):
        server.run(script, listening, speed=asked.speed)
    return 0


def parser(name: str, about: str | None) -> argparse.ArgumentParser:
    """What every command that serves a script takes."""
    made = argparse.ArgumentParser(prog=f"python -m labkit {name}", description=about)
    made.add_argument("script", metavar="SCRIPT", help="a name in data/scripts, or a path")
    made.add_argument("--port", type=int, default=0, help="0, the default: any that is free")
    made.add_argument("--speed", type=_speed, default=1.0, help="50: waits are 50 times shorter")
    return made


def script_of(asked: argparse.Namespace) -> Script:
    """The script that was asked for. Raises `Missing`."""
    read = load_script if asked.script.endswith(".json") else load
    try:
        return read(asked.script)
    except (ScriptError, Unknown) as error:
        raise Missing(error) from error


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 < speed < math.inf:
        raise argparse.ArgumentTypeError("the speed is a number above 0")
    return speed
