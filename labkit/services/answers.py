"""Answers that live apart from their readers, without HTTP: it works in virtual time too.

Each answer is a task of its own, so a reader that leaves stops nothing; its owner's stop does, and
is final. The page hears of nothing that is not kept, and the store is never called on the loop.
A wrong owner and an unknown id get the same error.

    answers = Answers(store, partial(Services, ask=ask, policy=policy, random=random))
    run_id = await answers.start(owner, "Where is my refund?")
    log = await answers.log(run_id, owner)            # text_delta, segment_end, status, ...
    await answers.stop(run_id, owner)                 # `close` ends the service, and is no stop

Logs are kept in memory: of all answers that run, and of the newest that have ended. Where a log is
gone, as after a restart, another is made from the record. It has a name of its own, so that an old
cursor is refused as foreign and never taken for a number of the new log.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from labkit.recovery.event_log import EventLog
from labkit.recovery.retry import Observe
from labkit.recovery.stream import Owner, StreamRequest, StreamRun, record
from labkit.recovery.stream.client import recovering_answer
from labkit.recovery.stream.receiving import Services
from labkit.recovery.stream.store import StreamStore, unknown

from .telling import Telling

ENDED: Final = 64  # ended answers whose events are kept
AT_ONCE: Final = 64  # answers that are being written

# The record's status, in the page's words; any other that nobody works at is "interrupted".
_STATES: Final = {record.COMPLETED: "done", record.STOPPED: "stopped", record.FAILED: "failed"}


class NotNow(record.StreamError):
    """The answer is in no state for that: the message says in which it is."""


class TooMany(record.StreamError):
    """So many answers are being written that no other begins: try again in a while."""


async def inline(do: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the store at once: for virtual time, where the store is in memory."""
    return do(*arguments)


@dataclass
class _Answer:
    """One answer of this process; `ending` outlives `receiving`, and the log closes with it."""

    owner: Owner
    telling: Telling
    stopping: bool = False
    receiving: asyncio.Task[StreamRun] | None = None
    ending: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        if self.receiving is not None and not self.receiving.cancelling():
            self.receiving.cancel()  # once: a second one would disturb the cleaning up


class Answers:
    """Starts answers, keeps their events and stops them, each for its owner only.

    `services(save=, page=, stopped=)` makes what an answer works with: a `partial` of `Services`.
    `call(function, *arguments)` calls the store: in a thread, or `inline`. `name()` makes ids that
    nobody can guess. `ended`: how many ended answers keep their events; `at_once`: how many are
    written at a time. Every method raises `UnknownStream` for what is not there for this owner.
    """

    def __init__(
        self,
        store: StreamStore,
        services: Callable[..., Services],
        *,
        call: Callable[..., Awaitable[Any]] = asyncio.to_thread,
        name: Callable[[], str] = lambda: secrets.token_hex(8),
        ended: int = ENDED,
        at_once: int = AT_ONCE,
    ) -> None:
        if ended < 1 or at_once < 1:
            raise ValueError(f"ended is {ended!r}, at_once {at_once!r}: both are at least 1")
        self._store = store
        self.services = services
        self._call = call
        self._name = name
        self._ended = ended
        self._at_once = at_once
        self._answers: dict[str, _Answer] = {}  # the oldest first

    async def start(self, owner: Owner, question: str) -> str:
        """Begin to answer `question`; its id. Raises `TooMany`."""
        self._refuse_too_many()
        begun = StreamRun(self._name(), owner, StreamRequest(question))
        answer = self._remember(begun)  # it counts from now on
        try:
            self._begin(answer, await self._call(self._store.create, begun))
        except BaseException:
            del self._answers[begun.run_id]
            raise
        return begun.run_id

    async def log(self, run_id: str, owner: Owner) -> EventLog:
        """The events of the answer; it closes where the answer ends, also by a failure."""
        return (await self._find(run_id, owner)).telling.log

    async def load(self, run_id: str, owner: Owner) -> dict[str, Any]:
        """What the page may know by now: id, status, segments of text, error, and a cursor."""
        return (await self._find(run_id, owner)).telling.view()

    async def stop(self, run_id: str, owner: Owner) -> None:
        """The owner's stop; returns when it is kept. Raises `NotNow` for what has ended."""
        answer = await self._find(run_id, owner)
        if answer.ending is not None and not answer.ending.done():
            answer.stopping = True
            answer.cancel()
            await asyncio.wait([answer.ending])
        if answer.telling.status != "stopped":
            raise NotNow(f"the answer is {answer.telling.status}: there is nothing to stop")

    async def go_on(self, run_id: str, owner: Owner) -> None:
        """Continue by hand what failed or was interrupted. Raises `NotNow` and `TooMany`."""
        run = await self._at_rest(run_id, owner)
        if run.status in record.FINAL:
            raise NotNow(f"the answer is {_STATES[run.status]}: it does not go on")
        self._refuse_too_many()
        self._begin(self._remember(run), run)

    async def close(self) -> None:
        """The end of the service: what is being written is kept as interrupted."""
        open_ones = [a for a in self._answers.values() if not a.telling.log.closed]
        for answer in open_ones:
            answer.cancel()
        if tasks := [answer.ending for answer in open_ones if answer.ending]:
            await asyncio.wait(tasks)

    # --- which answers are in memory

    async def _at_rest(self, run_id: str, owner: Owner) -> StreamRun:
        """The record of an answer that nobody writes; loaded again where somebody did meanwhile."""
        while True:
            before = self._answers.get(run_id)
            run: StreamRun = await self._call(self._store.load, run_id, owner)
            if before and not before.telling.log.closed:
                raise NotNow("the answer is being written already")
            if self._answers.get(run_id) is before:
                return run

    async def _find(self, run_id: str, owner: Owner) -> _Answer:
        if run_id not in self._answers:
            run = await self._call(self._store.load, run_id, owner)
            if run_id not in self._answers:  # or another request was faster
                self._end(self._remember(run))
        answer = self._answers[run_id]
        if answer.owner != owner:
            raise unknown(run_id)
        return answer

    def _remember(self, run: StreamRun) -> _Answer:
        """Its log begins with what has been shown of the record, one event a segment."""
        answer = _Answer(run.owner, Telling(run, f"{run.run_id}.{self._name()}"))
        if draft := "".join(run.chunks[: run.answer_from]):
            answer.telling.tell("text_delta", text=draft)
            answer.telling.tell("segment_end", reason="")
        if run.text:
            answer.telling.tell("text_delta", text=run.text)
        self._answers.pop(run.run_id, None)
        self._answers[run.run_id] = answer  # as the newest
        return answer

    def _refuse_too_many(self) -> None:
        if sum(not there.telling.log.closed for there in self._answers.values()) >= self._at_once:
            raise TooMany(f"{self._at_once} answers are being written: try again in a while")

    # --- an answer's life

    def _begin(self, answer: _Answer, run: StreamRun) -> None:
        telling = answer.telling
        made = self.services(save=telling.save, page=telling.page, stopped=lambda: answer.stopping)
        services = replace(made, tools=telling.gated(made.tools))
        answer.receiving = asyncio.create_task(recovering_answer(run, services))
        writing = asyncio.create_task(telling.write(run, partial(self._call, self._store.save)))
        for task in (answer.receiving, writing):
            task.add_done_callback(partial(_note_an_error, made.observe))
        answer.ending = asyncio.create_task(self._finish(answer, answer.receiving, writing))

    async def _finish(
        self, answer: _Answer, receiving: asyncio.Task[StreamRun], writing: asyncio.Task[None]
    ) -> None:
        telling = answer.telling
        await asyncio.wait([receiving, writing], return_when=asyncio.FIRST_COMPLETED)
        answer.cancel()  # nothing is received that cannot be kept
        await asyncio.wait([receiving])
        last = telling.run
        if last.status in (record.RUNNING, record.RETRYING):  # cancelled before its first step
            stopped = record.stop(last) if answer.stopping else record.interrupt(last, "shutdown")
            telling.save(stopped)
        telling.end()
        await asyncio.wait([writing])
        if writing.exception() is not None:
            telling.tell("error", code="not_kept", next="continue")
            telling.tell("status", state="failed")
        self._end(answer)

    def _end(self, answer: _Answer) -> None:
        """Say how it ended, where nobody has, and close its log; old ones are forgotten."""
        if answer.telling.status not in _STATES.values():
            state = _STATES.get(answer.telling.run.status, "interrupted")
            answer.telling.tell("status", state=state)
        answer.telling.log.close()
        ended = [name for name, there in self._answers.items() if there.telling.log.closed]
        for name in ended[: -self._ended]:
            del self._answers[name]


def _note_an_error(observe: Observe, task: asyncio.Task[Any]) -> None:
    """Of a bug, or of a store that fails; the message may hold what is nobody's business."""
    if not task.cancelled() and (error := task.exception()):
        observe("failed", error=type(error).__name__)
