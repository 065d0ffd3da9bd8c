"""`python -m labkit provider SCRIPT [--port N] [--speed X]`: serve a script on this machine.

SCRIPT is a name in `data/scripts` or the path of a script file. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys

from labkit.commands import environment


def main(arguments: list[str]) -> int:
    """Serve until interrupted; 2 when the script, the port or an option is no good."""
    code = environment.enter("provider", arguments)
    if code is not None:
        return code
    options = _options(arguments)
    from labkit.providers import server
    from labkit.providers.script import ScriptError, load_script
    from labkit.scenarios.catalogue import load
    from labkit.simulation import Unknown

    name = options.script
    try:
        is_path = name.endswith(".json") or pathlib.Path(name).name != name
        script = load_script(name) if is_path else load(name)
        listening = server.listen(options.port)
    except (ScriptError, Unknown) as error:
        print(f"labkit: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"labkit: {server.taken(options.port, error)}", file=sys.stderr)
        return 2
    with listening:
        print(server.about(script, server.address_of(listening)), end="", flush=True)
        try:
            server.run(script, listening, speed=options.speed)
        except KeyboardInterrupt:
            print("\nended")
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m labkit provider", description=__doc__)
    parser.add_argument("script", metavar="SCRIPT", help="a name in data/scripts, or a path")
    parser.add_argument("--port", type=_port, default=0, help="0, the default: any that is free")
    parser.add_argument("--speed", type=_speed, default=1.0, help="50: waits are 50 times shorter")
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65_536):
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < math.inf:
        raise argparse.ArgumentTypeError("the speed is a number above 0, like 50")
    return speed
