"""From one inbound queue to turns: one at a time in each session, a few at a time in all.

A message takes one of four ways. Idle session: it starts a turn. Busy session: it goes to the
mailbox of the running turn, and what is left there when the turn ends comes first in the line of
its session. Full mailbox, a line that is waiting, or a command: it joins that line, and waits for
the session's lock. A priority command acts at once. So nothing overtakes, and nothing is lost.

    dispatcher = Dispatcher(handle, answer=answer)
    await dispatcher.run(inbound)        # until it is cancelled; then `await dispatcher.close()`
"""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

from .cancel import stop, to_the_end
from .errors import PolicyError, RecoveryError
from .mailbox import ROOM, Inbound, Mailbox, command_of

LIMIT: Final = 3  # turns at a time, in all sessions together
LIMIT_VARIABLE: Final = "LABKIT_MAX_CONCURRENT_REQUESTS"

STOP: Final = "/stop"
STATUS: Final = "/status"


Handle = Callable[[Inbound, Mailbox], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """How much at a time: turns in all sessions, messages in one mailbox.

    A limit of 0 or below is none. Raises `PolicyError` that names the field which is wrong.
    """

    limit: int = LIMIT
    room: int = ROOM

    def __post_init__(self) -> None:
        if type(self.limit) is not int:
            raise PolicyError(f"limit is {self.limit!r}, and must be a whole number; 0 is no limit")
        if type(self.room) is not int or self.room < 0:
            raise PolicyError(f"room is {self.room!r}, and must be a whole number from 0")


@dataclass(slots=True)
class Turn:
    """The turn that holds a session's lock; `outcome` is set at its end."""

    message: Inbound
    task: asyncio.Task[Any]
    mailbox: Mailbox
    begun: bool = False
    stopping: bool = False
    outcome: str = ""


@dataclass(slots=True)
class Lane:
    """A session that has something to do: its lock, its line, and the turn that is running.

    There is one task for each message in `line`, which waits for the lock. The lane goes when the
    last of them has ended.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    line: deque[Inbound] = field(default_factory=deque)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    turn: Turn | None = None

    @property
    def waiting(self) -> int:
        """How many messages wait, in the mailbox or in the line."""
        return len(self.line) + (len(self.turn.mailbox) if self.turn else 0)


class Dispatcher:
    """Hands each message to `handle(message, mailbox)`, in order within its session.

    `answer(message, text)` tells the user what came of a command or a failed turn.
    `unanswered(message)` keeps a message whose turn was cancelled before it began. `observe` is
    told which way each message went, of the start and end of turns, and what made one fail.
    """

    def __init__(
        self,
        handle: Handle,
        *,
        answer: Callable[[Inbound, str], object],
        unanswered: Callable[[Inbound], Coroutine[Any, Any, object]] | None = None,
        concurrency: Concurrency = Concurrency(),
        observe: Callable[..., object] | None = None,
    ) -> None:
        self.lanes: dict[str, Lane] = {}
        self._handle = handle
        self._answer = answer
        self._unanswered = unanswered
        self._room = concurrency.room
        self._observe = observe
        self._gate: AbstractAsyncContextManager[Any] = nullcontext()
        if concurrency.limit > 0:
            self._gate = asyncio.Semaphore(concurrency.limit)
        self._acting: set[asyncio.Task[None]] = set()
        self._closing = False
        self._left: list[Inbound] = []
        self._inbound: asyncio.Queue[Inbound] = asyncio.Queue()

    async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
        """Take messages from the queue, for ever; a cancel leaves, and the turns go on."""
        self._inbound = inbound
        while True:
            self.take(await inbound.get())

    def take(self, message: Inbound) -> None:
        """Send one message on its way; none waits for another session's."""
        command = command_of(message.text)
        if command in (STOP, STATUS):  # breakpoint: priority command
            self._at_once(message, command)
            return
        if self._closing and message.session not in self.lanes:
            self._left.append(message)  # nothing begins any more
            return
        lane = self.lanes.setdefault(message.session, Lane())
        if not command and not lane.line and lane.turn and lane.turn.mailbox.offer(message):
            self._tell("routed", message, way="mailbox")  # breakpoint: into the mailbox
            return
        self._tell("routed", message, way="line" if lane.tasks else "turn")
        lane.line.append(message)
        self._start(lane, message.session)

    def _start(self, lane: Lane, session: str) -> None:
        """One more task, which will take the first message of the line when it has the lock."""
        if not self._closing:
            task = asyncio.create_task(self._turn(lane), name=f"turn {session}")
            lane.tasks.append(task)
            task.add_done_callback(lambda task: self._ended(task, lane, session))

    def _ended(self, task: asyncio.Task[None], lane: Lane, session: str) -> None:
        """A task is over, also one that was cancelled before its first line."""
        lane.tasks.remove(task)
        if not lane.tasks:
            self._left += lane.line
            del self.lanes[session]

    async def _turn(self, lane: Lane) -> None:
        async with lane.lock:  # breakpoint: session lock
            if lane.line and (task := asyncio.current_task()):
                lane.turn = Turn(lane.line.popleft(), task, Mailbox(self._room))
                await self._one(lane, lane.turn)

    async def _one(self, lane: Lane, turn: Turn) -> None:
        """One turn, in its session's lock: through the gate, to whatever end."""
        message, turn.outcome = turn.message, "failed"
        try:
            async with self._gate:  # breakpoint: gate
                turn.begun = True
                self._tell("turn_start", message)
                await self._handle(message, turn.mailbox)
            turn.outcome = "done"
        except asyncio.CancelledError:  # with a mailbox that is closed the answer had been saved
            turn.outcome = "done" if turn.mailbox.closed else "stopped"
            raise  # breakpoint: cancel leaves the dispatcher
        except Exception as error:
            self._tell("turn_failed", message, error=type(error).__name__, told=str(error))
            for one in turn.mailbox.writers(message):
                self.say(one, f"That went wrong ({type(error).__name__}). Please try again.")
        finally:
            self._republish(lane, turn)
            lane.turn = None
            if turn.begun:
                self._tell("turn_end", message, outcome=turn.outcome)
            else:
                self._tell("unanswered", message)
                await to_the_end(self._keep(message))

    def _republish(self, lane: Lane, turn: Turn) -> None:
        """What is left in the mailbox goes to the head of the line, in order, as turns to come."""
        left = turn.mailbox.close()
        lane.line.extendleft(reversed(left))  # breakpoint: leftovers
        for message in left:
            self._tell("routed", message, way="leftover")
            self._start(lane, message.session)

    # --- commands and the end

    def _at_once(self, message: Inbound, command: str) -> None:
        """Drop what is to be dropped, which nothing is that comes later; the rest is a task."""
        self._tell("routed", message, way="at once")
        lane = self.lanes.get(message.session)
        everything = message.text.split() == [STOP, "all"]
        dropped = self._drop(lane) if lane and everything else 0
        acting = asyncio.create_task(
            self._act(message, command, dropped), name=f"command {command}"
        )
        self._acting.add(acting)
        acting.add_done_callback(self._acting.discard)

    async def _act(self, message: Inbound, command: str, dropped: int) -> None:
        lane = self.lanes.get(message.session)
        if command == STATUS:
            self.say(message, f"This session is {_state(lane)}.")
            return
        waiting = lane.waiting if lane else 0
        stopped = await self.stop(message.session)
        told = f"Stopped {stopped} turn." if stopped else "Nothing was stopped."
        told += f" Dropped {dropped} waiting." if dropped else ""
        told += f" {waiting} waiting." if waiting else ""
        self.say(message, told)

    def _drop(self, lane: Lane) -> int:
        """Forget what waits in a session, and tell of each; how many messages that was."""
        waiting = lane.turn.mailbox.take_all() if lane.turn else []
        waiting += lane.line
        lane.line.clear()
        for message in waiting:
            self._tell("dropped", message)
        return len(waiting)

    async def stop(self, session: str) -> int:
        """End the turn that holds a session's lock, if one does; how many were stopped.

        A turn whose answer was being saved is not stopped: it was over.
        """
        lane = self.lanes.get(session)
        if lane is None or lane.turn is None:
            return 0
        turn = lane.turn
        first, turn.stopping = not turn.stopping, True
        await stop(turn.task)  # breakpoint: stop
        return int(first and turn.outcome == "stopped")

    async def idle(self) -> None:
        """Wait until no session has anything to do."""
        while tasks := [task for lane in self.lanes.values() for task in lane.tasks]:
            await asyncio.wait(tasks)

    async def close(self) -> int:
        """Cancel every turn and wait for its end; how many were running.

        What still waits, also in the queue, is kept as unanswered. A dispatcher that is closed
        starts no turn.
        """
        self._closing = True
        running = sum(bool(lane.turn and lane.turn.begun) for lane in self.lanes.values())
        for task in [task for lane in self.lanes.values() for task in lane.tasks]:
            task.cancel()
        await self.idle()
        while not self._inbound.empty():
            self.take(self._inbound.get_nowait())
        if self._acting:
            await asyncio.wait(self._acting)
        while self._left:
            await self._keep(self._left.pop(0))
        return running

    def say(self, message: Inbound, text: str) -> None:
        """Answer it; where that fails, nothing else does, and the observer is told."""
        try:
            self._answer(message, text)
        except Exception as error:
            self._tell("not_told", message, error=type(error).__name__)

    async def _keep(self, message: Inbound) -> None:
        """Keep a message as unanswered; where that fails, the others are kept all the same."""
        try:
            if self._unanswered:
                await self._unanswered(message)
        except Exception as error:
            self._tell("not_kept", message, error=type(error).__name__)

    def _tell(self, kind: str, message: Inbound, **told: Any) -> None:
        if self._observe:
            self._observe(kind, session=message.session, message=message.text, **told)


def _state(lane: Lane | None) -> str:
    if lane is None:
        return "idle"
    begun = lane.turn is not None and lane.turn.begun
    return f"{'busy' if begun else 'waiting for its turn'}, {lane.waiting} waiting behind it"


def limit_from_environment() -> int:
    """The gate's limit that the environment names, else the default."""
    told = os.environ.get(LIMIT_VARIABLE, "").strip()
    try:
        return int(told or LIMIT)
    except ValueError:
        wrong = f"{LIMIT_VARIABLE} is {told!r}: give a whole number, 0 for no limit"
        raise RecoveryError(wrong) from None
