"""Programs for `test_session_files.py` that live in a process of their own.

python -m tests.stores.session_writer write FOLDER      # writes versions until it is killed
python -m tests.stores.session_writer hold FOLDER       # owns a session until its input ends
python -m tests.stores.session_writer work FOLDER       # a turn of tools that hangs in the second
"""

import asyncio
import sys
from random import Random

from labkit.recovery.checkpoint import Checkpointer
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.session import begin_turn, finish_turn
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.recovery.turn import TurnServices, run_turn
from labkit.stores.session_files import SessionFiles
from tests.recovery.turns import OWNER, asks, call

NAME = "written"


async def write(files: SessionFiles) -> None:
    """Turn after turn; a line says which version is in the file."""
    keeper = Checkpointer(files.load(NAME), files.write)
    while True:
        text = f"question {keeper.session.version} " + "x" * 3000
        await keeper.save(begin_turn(keeper.session, text))
        await keeper.save(finish_turn(keeper.session, "answer"))
        if len(keeper.session.messages) > 40:
            await keeper.save(type(keeper.session)(NAME, keeper.session.version))
        print(keeper.session.version, flush=True)


async def hold(files: SessionFiles) -> None:
    """Own it, say so, and wait."""
    files.load(NAME)
    print("held", flush=True)
    sys.stdin.read()


async def work(files: SessionFiles) -> None:
    """Three calls one after the other, each noted when it runs; the second never ends."""

    async def run(arguments: object, key: str) -> str:
        print(f"ran {arguments['name']}", flush=True)  # type: ignore[index]
        if arguments["name"] == "B":  # type: ignore[index]
            await asyncio.Event().wait()
        return f"result of {arguments['name']}"  # type: ignore[index]

    calls = [call(name, "do", f'{{"name": "{name}"}}', index=n) for n, name in enumerate("ABC")]
    services = TurnServices(
        ask=asks(calls),
        show=lambda text: None,
        policy=RetryPolicy(retry_on=TRANSIENT),
        random=Random(0),
        observe=lambda kind, **told: None,
        tools=ToolRegistry(Tool(name="do", run=run)),
        owner=OWNER,
    )
    await run_turn("Do it.", Checkpointer(files.load(NAME), files.write), services)


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](SessionFiles(sys.argv[2])))
