"""Dispatchers that each get one thing wrong, to be seen before the right one."""

from contextlib import nullcontext

from labkit.recovery.dispatch import Dispatcher, Lane, Turn
from labkit.recovery.mailbox import Inbound


class NoLock(Dispatcher):
    """A turn for every message, as it comes."""

    def take(self, message: Inbound) -> None:
        """Start a turn at once, whatever else runs in the session."""
        lane = Lane(lock=nullcontext())  # type: ignore[arg-type]  # the flaw
        self.lanes[f"{message.session} {message.text}"] = lane
        lane.line.append(message)
        self._start(lane, f"{message.session} {message.text}")


class DropsLeftovers(Dispatcher):
    """What the mailbox still holds at the end of a turn is thrown away."""

    def _republish(self, lane: Lane, turn: Turn) -> None:
        turn.mailbox.close()


class TailOfTheLine(Dispatcher):
    """Leftovers are published again behind what came later."""

    def _republish(self, lane: Lane, turn: Turn) -> None:
        for message in turn.mailbox.close():
            lane.line.append(message)
            self._start(lane, message.session)
