"""`python -m labkit gateway SCRIPT --folder F [--port N]`: a turn for each line, over TCP or here.

Over TCP (`nc 127.0.0.1 PORT`) write `NAME: TEXT`: NAME is the session, which is kept in the folder.
A line typed here belongs to the session `terminal`. `ann: /stop` or, here, `/stop` ends the turn
that is running; `/stop all` also drops what waits. `/status` and `/help` are the other commands.

LABKIT_MAX_CONCURRENT_REQUESTS is how many turns run at a time, in all sessions: 3 unless you set
it, 0 for no limit. Ctrl-C or SIGTERM ends the gateway in order; a second one waits for nothing but
the sessions, and a third one leaves at once.
"""

import argparse
import asyncio
import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

from labkit.commands.environment import Missing
from labkit.commands.provider import parser, script_of
from labkit.recovery.dispatch import limit_from_environment
from labkit.recovery.errors import RecoveryError
from labkit.recovery.shutdown import ABANDONED, DONE, StepEnd
from labkit.services.channels import TcpChannel, TerminalChannel
from labkit.services.gateway import serve
from labkit.services.turns import assemble
from labkit.simulation.mask import scrub
from labkit.stores.session_files import SessionFiles, SessionTorn


def main(arguments: list[str]) -> int:
    """Run until a signal; 1 where a step of the shutdown was not done. Raises `Missing`."""
    taken = parser("gateway", __doc__)
    taken.formatter_class = argparse.RawDescriptionHelpFormatter
    taken.add_argument("--folder", required=True, help="where the sessions are kept")
    taken.add_argument("--recover", metavar="NAME", help="mend the file of this session, and end")
    asked = taken.parse_args(arguments)
    script = script_of(asked)
    try:
        files = _files(asked.folder)
        if asked.recover is not None:
            print(_recovered(files, asked.recover))
            return 0
        limit_from_environment()  # an error here is one line
        tcp = TcpChannel(asked.port)
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
        _warn(str(failure))
    return int(bool(files.failures) or any(end.outcome != DONE for end in ended))


def _files(folder: str) -> SessionFiles:
    if not folder.strip() or (Path(folder).exists() and not Path(folder).is_dir()):
        raise Missing(f"--folder {folder!r} is no folder: name one, which may be a new one")
    return SessionFiles(folder)


def _recovered(files: SessionFiles, session: str) -> str:
    """Mend the session's file, and say what was kept, and where the damaged file is."""
    path = files.path(session)
    if not path.exists():
        raise Missing(f"there is no session {session!r} in {path.parent}: no file {path.name}")
    before = {*path.parent.glob(f"{path.stem}.torn-*")}
    kept = files.recover(session)
    files.close()
    aside = {*path.parent.glob(f"{path.stem}.torn-*")} - before
    if not aside:
        return f"session {session!r} was whole, and is as it was: {len(kept.messages)} messages"
    told = f"{len(kept.messages)} messages and {len(kept.drafts)} drafts are kept"
    return f"session {session!r} is mended: {told}; the damaged file is {aside.pop()}"


def _say(port: int, kind: str, **details: Any) -> None:
    if kind == "running":  # from now on a signal ends it in order
        print(
            f"listening on 127.0.0.1:{port}: connect with `nc 127.0.0.1 {port}` and write "
            "NAME: TEXT, or type a message here; /help lists the commands, Ctrl-C ends it",
            flush=True,
        )
    elif kind == "step":
        print("{name}: {outcome} after {seconds:.1f} s".format(**details), flush=True)
    elif kind == "failed":
        _warn("{part} failed with {error}".format(**details))
    elif kind == "turn_failed":
        session, error = details["session"], details["error"]
        torn, told = error == SessionTorn.__name__, " ".join(scrub(details["told"]).split())
        cure = f"; the gateway's --recover {shlex.quote(session)} does that" if torn else ""
        _warn(f"session {session!r}: a turn failed: {error}: {told}{cure}")
    elif kind in ("not_told", "not_kept"):
        way = "answered" if kind == "not_told" else "kept"
        _warn("session {session!r}: {message!r} was not {}: {error}".format(way, **details))


def _warn(line: str) -> None:
    print(f"labkit: {line}", file=sys.stderr, flush=True)
