"""`python -m labkit serve`: discussions as a service on this machine, with a page for a browser.

It does the runs too: kill it, start it again, and they go on. Users and their tokens stand in
LABKIT_TOKENS, as in "ann:a-long-token acme/bob:another-long-token"; without it there is one user,
`demo`, whose token is made anew and printed once. Ctrl-C or SIGTERM hands every run back; a second
one leaves at once.
"""

import argparse
import asyncio
import os
import secrets
import sys
from contextlib import closing, nullcontext
from functools import partial
from socket import socket
from typing import Any, Final

from labkit.commands.environment import Missing
from labkit.commands.running import must_be_apart, signals
from labkit.providers.process import end_with_parent
from labkit.providers.server import hosting, listen
from labkit.recovery.cancel import CLEAN_UP
from labkit.recovery.errors import RecoveryError
from labkit.recovery.policy import is_amount
from labkit.runs.api.access import Access, users_of
from labkit.runs.api.app import application
from labkit.runs.discussion.models import Models
from labkit.runs.discussion.opening import open_discussion
from labkit.runs.manager import RunManager, RunPolicy, new_worker
from labkit.runs.opening import open_run_store
from labkit.runs.store import RunStore
from labkit.stores.errors import StoreError

TOKENS: Final = "LABKIT_TOKENS"


def main(arguments: list[str]) -> int:
    """Serve until a signal. Raises `Missing`."""
    asked = _parser().parse_args(arguments)
    if not is_amount(asked.pause) or asked.real_models < 0:
        raise Missing("--pause is a number of seconds, and --real-models one of calls, 0 or more")
    must_be_apart(asked.store, asked.ledger)
    if asked.with_parent:
        end_with_parent()
    try:
        policy = RunPolicy(lease=asked.lease, watchdog=asked.watchdog)
        users = os.environ.get(TOKENS)
        made = f"demo:{secrets.token_urlsafe(24)}" if users is None else ""
        access = Access(users_of(made or users or ""))
        listening, address = listen(asked.port)
        with closing(listening), closing(open_run_store(asked.store)) as store:
            told = [f"open {address} in a browser; Ctrl-C ends it"]
            if made:
                told.append(f"sign in with this token, which is shown once: {made[5:]}")
            asyncio.run(_serve(asked, store, policy, access, listening, told))
    except (RecoveryError, StoreError) as error:
        raise Missing(error) from error
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m labkit serve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, where, what in (
        ("store", "sqlite:///runs.db", "sqlite:///FILE or postgresql+psycopg://..."),
        ("ledger", "effects.db", "file with the effects of tools"),
    ):
        made.add_argument(f"--{name}", default=where, help=f"{what}: {where}")
    policy = RunPolicy()
    for name, kind, default, what in (
        ("port", int, 0, "0: any that is free"),
        ("lease", float, policy.lease, "seconds for which a run is held without a renewal"),
        ("watchdog", float, policy.watchdog, "seconds between two looks for runs"),
        ("real-models", int, 0, "calls of real models that may be made"),
        ("pause", float, 0.5, "seconds that a call of a demo model takes"),
    ):
        made.add_argument(f"--{name}", type=kind, default=default, help=f"{what}: {default:g}")
    how = "end with the process that has begun it, which holds its standard input: a pipe"
    made.add_argument("--with-parent", action="store_true", help=how)
    return made


async def _serve(
    asked: argparse.Namespace,
    store: RunStore,
    policy: RunPolicy,
    access: Access,
    listening: socket,
    told: list[str],
) -> None:
    worker = new_worker()
    async with open_discussion(
        asked.store,
        store,
        ledger=asked.ledger,
        worker=worker,
        lease=asked.lease,
        models=Models(real_calls=asked.real_models, pause=asked.pause),
    ) as discussion:
        jobs = {"discussion": discussion.job}
        manager = RunManager(store, jobs, worker=worker, policy=policy, observe=_say)
        server = hosting(application(manager, discussion, access, observe=_say))
        server.capture_signals = nullcontext  # type: ignore[assignment, method-assign]  # ours
        with signals(partial(setattr, server, "should_exit", True)):
            print(*told, sep="\n", flush=True)
            await server.serve(sockets=[listening])
            await _leave_what_hangs()


async def _leave_what_hangs() -> None:
    """End the process where a job heeds no cancel: its run goes on when its lease is over."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left and (await asyncio.wait(left, timeout=CLEAN_UP))[1]:
        os._exit(1)


def _say(kind: str, **details: Any) -> None:
    """What failed by a bug of ours, for the operator; how runs go stands in their events."""
    if kind in ("failed", "broken"):
        print(f"labkit: {kind}: {details['error']}", file=sys.stderr, flush=True)
