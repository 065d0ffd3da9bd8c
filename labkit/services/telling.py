"""What one answer's page is told: each change of the record is kept first.

The client that receives an answer hands over records and news as fast as they come and never waits
for the store. `write` takes what has gathered, keeps the newest record in one call, and only then
appends the news to the log. A slow store so costs one call for many events, and blocks nobody.

    telling = Telling(run, "answer-1.a")
    telling.page("text_delta", text="Hel")       # not told yet
    await telling.write(run, save)               # until `end` was called: keeps, then tells
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from labkit.recovery.event_log import EventLog
from labkit.recovery.stream.record import StreamRun
from labkit.recovery.tools import Arguments, Tool, ToolRegistry

Save = Callable[[StreamRun], Awaitable[StreamRun]]
News = tuple[str, Mapping[str, Any]]


class Telling:
    """One answer's log, and what it says so far: `status`, `segments` of text, `error`.

    `run` is the record as its client has it; it may be ahead of what is kept and told.
    """

    def __init__(self, run: StreamRun, name: str) -> None:
        self.run = run
        self.log = EventLog(name)
        self.status = ""
        self.segments = [""]
        self.error = ""
        self._queue: asyncio.Queue[StreamRun | News | None] = asyncio.Queue()

    def save(self, run: StreamRun) -> StreamRun:
        """Take a changed record, to be kept soon."""
        self.run = run
        self._queue.put_nowait(run)
        return run

    def page(self, kind: str, **data: Any) -> None:
        """Take a piece of news, to be told when what came before it is kept."""
        self._queue.put_nowait((kind, data))

    def end(self) -> None:
        """Nothing more comes: `write` returns when all is kept and told."""
        self._queue.put_nowait(None)

    async def write(self, kept: StreamRun, save: Save) -> None:
        """Keep and tell until the end; `kept` is what the store has.

        Raises what `save` raises: what came with that is not told.
        """
        taken: list[StreamRun | News | None] = []
        while None not in taken:
            taken = [await self._queue.get()]
            while not self._queue.empty():
                taken.append(self._queue.get_nowait())
            if records := [one for one in taken if isinstance(one, StreamRun)]:
                version, stored = kept.version, kept.stored_chunks
                kept = await save(replace(records[-1], version=version, stored_chunks=stored))
            for one in taken:
                if isinstance(one, tuple):
                    self.tell(one[0], **one[1])
                self._queue.task_done()

    def gated(self, tools: ToolRegistry) -> ToolRegistry:
        """The same tools, each run only when all that came before it is kept."""
        found = [tool for name in tools.names if (tool := tools.get(name))]
        return ToolRegistry(*[replace(tool, run=self._after_what_came(tool)) for tool in found])

    def _after_what_came(self, tool: Tool) -> Callable[[Arguments, str], Awaitable[str]]:
        async def run(arguments: Arguments, key: str) -> str:
            await self._queue.join()
            return await tool.run(arguments, key)

        return run

    def tell(self, kind: str, **data: Any) -> None:
        """Tell the page at once."""
        if kind == "text_delta":
            self.segments[-1] += data["text"]
        elif kind == "segment_end":
            self.segments.append("")
        elif kind == "status":
            self.status = data["state"]
        elif kind == "error":
            self.error = data["code"]
        self.log.append(json.dumps(data), event=kind)

    def view(self) -> dict[str, Any]:
        """What was told by `cursor`, from where `events` go on."""
        return {
            "id": self.run.run_id,
            "question": self.run.request.question,
            "status": self.status,
            "segments": list(self.segments),
            "error": self.error,
            "cursor": self.log.cursor(self.log.last),
            "ended": self.log.closed,
        }
