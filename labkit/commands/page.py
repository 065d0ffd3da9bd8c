"""`python -m labkit page SCRIPT [--cut KIND@N ...]`: answers of a script on a page of this machine.

Each `--cut` is a fault of one connection of the page to the service, in their order: KIND after N
whole events, such as mid_frame@3, between@1, clean_end@2, drip@0, twice@2, swapped@2. Ctrl-C ends
it.
"""

import argparse
import threading
from contextlib import suppress

from labkit.commands.environment import Missing
from labkit.commands.provider import parser, script_of
from labkit.providers.process import ServerError
from labkit.services.cuts import Cut
from labkit.services.process import serve


def main(arguments: list[str]) -> int:
    """Serve until interrupted. Raises `Missing` for a script or a port that is no good."""
    taken = parser("page", __doc__)
    taken.add_argument("--cut", type=_cut, action="append", default=[], metavar="KIND@N")
    asked = taken.parse_args(arguments)
    served = serve(
        script_of(asked), port=asked.port, speed=asked.speed, cuts=asked.cut, can_continue=True
    )
    try:
        with served as service, suppress(KeyboardInterrupt):
            print(f"open {service.address} in a browser; Ctrl-C ends it", flush=True)
            threading.Event().wait()
    except ServerError as error:
        raise Missing(error) from error
    return 0


def _cut(text: str) -> Cut:
    kind, _, after = text.partition("@")
    try:
        return Cut(kind, int(after or 0))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
