"""`python -m labkit provider SCRIPT [--port N] [--speed X]`: serve a script on this machine.

SCRIPT is a name in `data/scripts`, or the path of a script file (.json). Ctrl-C ends it.
"""

import argparse
import math
from contextlib import suppress

from labkit.commands.environment import Missing
from labkit.providers import server
from labkit.providers.process import ServerError
from labkit.providers.script import ScriptError, load_script
from labkit.scenarios.catalogue import load
from labkit.simulation import Unknown


def main(arguments: list[str]) -> int:
    """Serve until interrupted. Raises `Missing` for a script or a port that is no good."""
    parser = argparse.ArgumentParser(prog="python -m labkit provider", description=__doc__)
    parser.add_argument("script", metavar="SCRIPT", help="a name in data/scripts, or a path")
    parser.add_argument("--port", type=int, default=0, help="0, the default: any that is free")
    parser.add_argument("--speed", type=float, default=1.0, help="50: waits are 50 times shorter")
    asked = parser.parse_args(arguments)
    if not 0 < asked.speed < math.inf:
        parser.error("the speed is a number above 0")
    read = load_script if asked.script.endswith(".json") else load
    try:
        script = read(asked.script)
        listening, address = server.listen(asked.port)
    except (ScriptError, ServerError, Unknown) as error:
        raise Missing(error) from error
    print(server.about(script, address), end="", flush=True)
    with suppress(KeyboardInterrupt):
        server.run(script, listening, speed=asked.speed)
    return 0
