"""`python -m labkit gateway SCRIPT --folder F [--port N]`: a turn for each line, over TCP or here.

On TCP write `NAME: TEXT`, as with `nc 127.0.0.1 PORT`; NAME is the session, whose file is in the
folder. `/stop` ends the turn that is running. Ctrl-C or SIGTERM ends the gateway in order; a second
one waits for nothing but the sessions, and a third one leaves at once.
"""

import asyncio
import os
import sys
from functools import partial
from typing import Any

from labkit.commands.environment import Missing
from labkit.commands.provider import parser, script_of
from labkit.recovery.errors import RecoveryError
from labkit.recovery.shutdown import ABANDONED, DONE, StepEnd
from labkit.services.channels import TcpChannel, TerminalChannel
from labkit.services.gateway import serve
from labkit.services.turns import assemble
from labkit.stores.session_files import SessionFiles


def main(arguments: list[str]) -> int:
    """Run until a signal; 1 where a step of the shutdown was not done. Raises `Missing`."""
    taken = parser("gateway", __doc__)
    taken.add_argument("--folder", required=True, help="where the sessions are kept")
    asked = taken.parse_args(arguments)
    script = script_of(asked)
    try:
        files, tcp = SessionFiles(asked.folder), TcpChannel(asked.port)
    except (RecoveryError, OSError) as error:
        raise Missing(error) from error

    async def run() -> list[StepEnd]:
        gateway = assemble(
            script,
            files,
            [tcp, TerminalChannel()],
            observe=partial(_say, tcp.port),
            speed=asked.speed,
        )
        ended = await serve(gateway)
        if any(end.outcome == ABANDONED for end in ended):
            sys.stdout.flush()
            os._exit(1)  # what hangs would hold up the end of the loop, too
        return ended

    ended = asyncio.run(run())
    files.close()
    said = {end.name: end.said for end in ended}
    print(f"turns stopped: {said['stop turns']}, sessions flushed: {said['flush sessions']}")
    for failure in files.failures:
        print(f"labkit: {failure}", file=sys.stderr)
    return int(bool(files.failures) or any(end.outcome != DONE for end in ended))


def _say(port: int, kind: str, **details: Any) -> None:
    if kind == "running":  # from now on a signal ends it in order
        print(f"write NAME: TEXT to 127.0.0.1:{port}, or a line here; Ctrl-C ends it", flush=True)
    elif kind == "step":
        print("{name}: {outcome} after {seconds:.1f} s".format(**details), flush=True)
    elif kind == "failed":
        print("{part} failed with {error}".format(**details), file=sys.stderr, flush=True)
