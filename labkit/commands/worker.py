"""`python -m labkit worker --store URL`: does agent runs, as many workers on one store do.

Start as many as you like, on PostgreSQL on several machines. Kill one, and another goes on with its
runs when their leases are over; the effects are in a ledger, once each. Ctrl-C or SIGTERM hands
every run back and ends the worker; a second one leaves at once.

To have something to do: `--submit 3` asks for three orders before it begins.
"""

import argparse
import asyncio
from contextlib import closing, suppress
from functools import partial
from typing import Any, Final

from labkit.commands.environment import Missing
from labkit.commands.running import must_be_apart, signals
from labkit.recovery.errors import RecoveryError
from labkit.recovery.policy import is_amount
from labkit.recovery.stream.record import Owner
from labkit.runs.following import LOOK
from labkit.runs.jobs import Once, jobs
from labkit.runs.manager import RunManager, RunPolicy, new_worker
from labkit.runs.news import TO_DO
from labkit.runs.opening import open_run_store
from labkit.services.ledger import Ledger, LedgerService
from labkit.simulation.mask import scrub
from labkit.stores import open_key_store
from labkit.stores.errors import StoreDown, StoreError

OWNER: Final = Owner(user="demo", tenant="demo")  # of the orders that it asks for itself


def main(arguments: list[str]) -> int:
    """Do runs until a signal, or until there are none. Raises `Missing`."""
    asked = _parser().parse_args(arguments)
    if not is_amount(asked.pause):
        raise Missing(f"--pause {asked.pause} is no number of seconds")
    if not is_amount(asked.submit):
        raise Missing(f"--submit {asked.submit} is no number of orders")
    if not asked.name:
        raise Missing("--name is empty: give each worker a name that no other has, or none")
    must_be_apart(asked.store, asked.ledger)
    try:
        policy = RunPolicy(lease=asked.lease, watchdog=asked.watchdog, capacity=asked.capacity)
        service = LedgerService(Ledger(asked.ledger), asked.name)
        url = asked.store
        with closing(open_run_store(url)) as store, closing(open_key_store(url)) as keys:
            once = Once(keys, service, worker=asked.name, lease=asked.lease, observe=_say_of_a_key)
            doing = jobs(once, pause=asked.pause)
            manager = RunManager(store, doing, worker=asked.name, policy=policy, observe=_say)
            asyncio.run(_serve(manager, orders=asked.submit, until_idle=asked.until_idle))
    except (RecoveryError, StoreError) as error:
        raise Missing(error) from error
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m labkit worker",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--store", metavar="URL", required=True, help="sqlite:///FILE or postgresql+psycopg://..."
    )
    ledger = "effects.db"
    made.add_argument(
        "--ledger", metavar="FILE", default=ledger, help=f"where effects stand: {ledger}"
    )
    policy = RunPolicy()
    for name, kind, default, what in (
        ("lease", float, policy.lease, "seconds for which a run is held without a renewal"),
        ("watchdog", float, policy.watchdog, "seconds between two looks for runs"),
        ("capacity", int, policy.capacity, "runs at a time"),
        ("pause", float, 0.5, "seconds that a step takes"),
        ("submit", int, 0, "orders to ask for first"),
    ):
        made.add_argument(f"--{name}", type=kind, default=default, help=f"{what}: {default:g}")
    name = "one that no other worker has: the process and a part by chance"
    made.add_argument("--name", default=new_worker(), help=name)
    made.add_argument(
        "--until-idle", action="store_true", help="end when no run of its jobs is left"
    )
    return made


async def _serve(manager: RunManager, *, orders: int, until_idle: bool) -> None:
    """Ask for so many orders, and serve until a signal, which hands the runs back."""
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    with signals(partial(loop.call_soon_threadsafe, ending.set)):
        for number in range(1, orders + 1):
            run = await manager.submit("order", {"order": number}, owner=OWNER)
            _say("submitted", run=run.run_id)
        _say("serving", worker=manager.worker, jobs=",".join(manager.jobs))
        serving = asyncio.create_task(manager.serve(), name="serve")
        ends = [serving, asyncio.create_task(ending.wait(), name="signal")]
        if until_idle:
            ends.append(asyncio.create_task(_idle(manager), name="until idle"))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        await manager.shutdown()
        await serving
    _say("ended", worker=manager.worker)


async def _idle(manager: RunManager) -> None:
    """Return when no run of a job that is known here waits or is being done, by whomever."""
    while True:
        seen = manager.store.news.seen(TO_DO)
        with suppress(StoreDown):
            if not await manager.store.left(tuple(manager.jobs)) and not manager.at_work:
                if others := await manager.store.left():
                    _say("left_to_others", runs=others)  # they have jobs that are unknown here
                return
        await manager.store.news.after(TO_DO, seen, timeout=LOOK)


def _say(kind: str, **details: Any) -> None:
    """One line for whatever happens, without keys or line ends."""
    if kind == "driven":  # what was kept or lost has told how it ended
        return
    told = [f"{name}={' '.join(scrub(str(value)).split())}" for name, value in details.items()]
    with suppress(OSError):  # nobody reads it any more, which is no reason to let a run go
        print(kind, *told, flush=True)


def _say_of_a_key(kind: str, **details: Any) -> None:
    if kind == "clock_jumped":  # the rest is told with the step
        _say(kind, **details)
