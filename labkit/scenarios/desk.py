"""The service desk of the stream lessons: a provider, a record, tools and a page around one answer.

    desk = Desk(script, observe)
    await desk.answer(limits)        # labkit's recovering client on it; the record is in desk.store

The trace tells of four cursors: what the provider said, what a service sent, what the page showed,
what was saved. A `KeptDesk` has that service: it keeps the events, and a reader's connection to it
may be cut, or an event lost, doubled or out of order (faults cut, lose, duplicate and reorder).
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, Final

from labkit.providers.fake import FakeProvider
from labkit.providers.script import Script
from labkit.recovery.cancel import stop
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.event_log import EventLog, frames
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.sse import SSEDecoder, SSEEvent
from labkit.recovery.stream import Owner, RecoveryLimits, StreamEvent, StreamRequest, StreamRun
from labkit.recovery.stream.client import recovering_answer
from labkit.recovery.stream.continuation import Request
from labkit.recovery.stream.numbering import Numbering
from labkit.recovery.stream.receiving import Services
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.simulation import Observer
from labkit.simulation.faults import WIRE_FAULTS
from labkit.stores.memory import MemoryStreamStore

from .clients import as_task

ANN: Final = Owner("ann", "acme")
QUESTION: Final = StreamRequest("How do I get VPN access?", "service-desk-v3", "fake")
NOTHING_SAID: Final = Request(messages=())
POLICY: Final = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0, jitter=0)


class Desk:
    """One answer for Ann: its provider, its record `run-1` in `store`, and its one tool."""

    def __init__(self, script: Script, observe: Observer) -> None:
        self.provider = FakeProvider(script, observe)
        self.store = MemoryStreamStore()
        self.tools = ToolRegistry(Tool(name="create_ticket", run=self._create_ticket))
        self._observe = observe
        self._page = observe.of("page")

    async def answer(
        self,
        limits: RecoveryLimits,
        *,
        request: StreamRequest = QUESTION,
        stop_at: float | None = None,
        **services: Any,
    ) -> StreamRun:
        """Bring one answer to its end, stopped by its user after `stop_at` seconds; its record."""
        run = self.store.create(StreamRun("run-1", ANN, request))
        work = recovering_answer(run, self.services(limits, **services))
        task = await as_task(work, "answer", self._observe, stop_at=stop_at)
        return self.store.load(run.run_id, ANN) if task.cancelled() else task.result()

    def services(self, limits: RecoveryLimits, **more: Any) -> Services:
        """What the recovering client works with here; `more` adds to it, or changes it."""
        usual: dict[str, Any] = {
            "ask": self.ask,
            "save": self.save,
            "page": self.page,
            "policy": POLICY,
            "random": self._observe.random,
            "tools": self.tools,
            "limits": limits,
            "observe": self._observe.of("client"),
            "now": self._observe.now,
        }
        return Services(**(usual | more))

    def ask(self, request: Request, attempt: int) -> AsyncGenerator[Delta, None]:
        """Send a request; its length is noted, since the words of a request cost as well."""
        length = sum(len(message.content) for message in request.messages)
        self._observe.of("client")("asked", attempt=attempt, characters=length)
        return self.provider.stream(attempt)

    def save(self, run: StreamRun) -> StreamRun:
        """Keep the record."""
        saved = self.store.save(run)
        told = {"events": saved.next_sequence, "characters": sum(map(len, saved.chunks))}
        self._observe.of("record")("saved", status=saved.status, **told)
        return saved

    def page(self, kind: str, **told: Any) -> None:
        """Show it, in the page's own words for what the other lessons show too."""
        self._page("shown" if kind == "text_delta" else kind, **told)

    async def _create_ticket(self, arguments: Mapping[str, Any], key: str) -> str:
        await asyncio.sleep(0.5)
        self._observe.effect("create_ticket", arguments=json.dumps(arguments, sort_keys=True))
        return "ticket 1 is open"


class KeptDesk(Desk):
    """The same behind a service that keeps the events of the answer, numbered, for its readers."""

    def __init__(self, script: Script, observe: Observer) -> None:
        super().__init__(script, observe)
        self.log = EventLog("run-1")
        self._wire = observe.of("wire")
        self._due = list(observe.faults)
        self._writing: asyncio.Task[None] | None = None

    async def answer(self, limits: RecoveryLimits, **told: Any) -> StreamRun:
        """As a desk's, with events that can be resumed."""
        return await super().answer(limits, begin=self.begin, resume=self.resume, **told)

    async def end(self) -> None:
        """The run is over, and so is the service."""
        if self._writing:
            await stop(self._writing)

    async def begin(self, request: Request = NOTHING_SAID) -> None:
        """Have the answer written, whether anybody reads or not."""
        self._writing = asyncio.create_task(self._write(request), name="service")

    async def _write(self, request: Request) -> None:
        numbering = Numbering(StreamRun("run-1", ANN))
        try:
            async with aclosing(self.ask(request, 1)) as deltas:
                async for delta in deltas:
                    event = asdict(numbering.number(delta))
                    self.log.append(json.dumps({k: v for k, v in event.items() if v != ""}))
        except ProviderError as error:
            self._wire("broke", error=error.kind)
        self.log.close()

    async def resume(self, run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        """The events after the record's last one, over one connection."""
        cursor = self.log.cursor(run.next_sequence) if run.next_sequence else ""
        async with aclosing(self.connect(cursor)) as events:
            async for event in events:
                yield StreamEvent(**json.loads(event.data))

    async def connect(self, cursor: str) -> AsyncGenerator[SSEEvent, None]:
        """What one connection brings to a reader who has seen `cursor`: decoded frames."""
        self._wire("open", cursor=cursor)
        decoder = SSEDecoder()
        async with aclosing(self._sent(frames(self.log, cursor))) as pieces:
            async for piece in pieces:
                for event in decoder.feed(piece):
                    if event.event == "end":
                        return
                    yield event
        raise ProviderError("the connection ended before the answer", kind="cut_off")

    async def _sent(self, whole: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The frames of one connection, as faults let them pass."""
        late = b""
        async with aclosing(whole):
            async for frame in whole:
                fault = self._noted(frame)
                if fault == "cut":
                    yield frame[: len(frame) // 2]
                    raise ProviderError("the connection was reset", kind="disconnect")
                if fault == "lose":
                    continue
                if fault == "reorder":
                    late = frame
                    continue
                yield frame * 2 if fault == "duplicate" else frame
                yield late
                late = b""

    def _noted(self, frame: bytes) -> str:
        """Note what is sent, and say which fault strikes it; each strikes once."""
        for event in SSEDecoder().feed(frame):
            if event.event == "message":
                told = json.loads(event.data)
                number = told["sequence"]
                self._wire("sent", sequence=number, text=told.get("text_delta", ""))
                for fault in self._due:
                    if fault.point == number and fault.kind in WIRE_FAULTS:
                        self._due.remove(fault)
                        self._observe.strike(fault)
                        return fault.kind
        return ""
