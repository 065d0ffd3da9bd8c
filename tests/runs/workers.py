"""Workers as processes: how a test starts them, hears what they say, and ends them.

async with workers(url, folder) as work:
    first = await work("a", lease=1.0)
    await first.says("kept", step="reserve")
    first.process.kill()
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ("-m", "labkit", "worker")
SLEEPY = ("-m", "tests.runs.storm_worker")
Said = tuple[str, dict[str, str]]  # a worker's line: what, and its details


async def start(*line: str, changes: str = "") -> Process:
    """A worker, as a program of Python; `changes` are those of `storm_worker`."""
    env = {**os.environ, "LABKIT_ENVIRONMENT": "current", "LABKIT_STORM": changes}
    return await asyncio.create_subprocess_exec(
        sys.executable, *line, stdin=PIPE, stdout=PIPE, cwd=ROOT, env=env
    )


async def said(process: Process) -> Said | None:
    """The next line of a worker, or None after its last one."""
    assert process.stdout is not None
    kind, *told = (await process.stdout.readline()).decode().split() or [""]
    pairs = (detail.partition("=") for detail in told)
    return (kind, {name: value for name, _, value in pairs}) if kind else None


def go_on(process: Process) -> None:
    """Let one go on that waits at a window."""
    assert process.stdin is not None
    process.stdin.write(b"go on\n")


async def end(process: Process) -> int:
    """Its exit code; one that still runs is killed."""
    if process.returncode is None:
        process.kill()
    return await process.wait()


class Worker:
    """One process, and what it has said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.told: list[Said] = []

    async def says(self, kind: str, **details: str) -> dict[str, str]:
        """Wait for such a line; its details."""
        while line := await said(self.process):
            self.told.append(line)
            if line[0] == kind and details.items() <= line[1].items():
                return line[1]
        raise AssertionError(f"it ended without {kind!r}: {self.told}")

    async def ends(self) -> int:
        """Hear it to its end; its exit code."""
        while line := await said(self.process):
            self.told.append(line)
        return await self.process.wait()


@asynccontextmanager
async def workers(url: str, folder: Path) -> AsyncIterator[Callable[..., Any]]:
    """A function that starts one; all have ended after the block."""
    async with AsyncExitStack() as ended:

        async def work(name: str, changes: str = "", **options: Any) -> Worker:
            given = {"lease": 1.0, "watchdog": 0.2, "pause": 0.05, **options}
            line = [word for key, value in given.items() for word in (f"--{key}", str(value))]
            line += ["--store", url, "--ledger", str(folder / "effects.db"), "--name", name]
            command = SLEEPY if changes else COMMAND
            process = await start(*command, *line, "--until-idle", changes=changes)
            ended.push_async_callback(end, process)
            return Worker(process)

        yield work
