"""The mailbox of the turn that is running: what its user writes meanwhile.

It is not a queue for work that waits. It has little room, the turn looks into it between two steps,
and once the turn has its answer nothing more gets in: a message is in exactly one place.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

ROOM: Final = 20  # messages


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message of a user, and the channel on which it came."""

    session: str
    text: str
    channel: str = ""


def command_of(text: str) -> str:
    """The first word of a message where it is a command, such as "/stop", else ""."""
    first = text.split()[:1]
    return first[0] if first and first[0].startswith("/") else ""


class Mailbox:
    """Open until the turn has its answer; messages come out in the order in which they came in.

    What the turn has taken is remembered, so that all who write in a turn can be answered.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.closed = False
        self._joined: dict[str, Inbound] = {}
        self._room = room
        self._messages: deque[Inbound] = deque()

    def __len__(self) -> int:
        return len(self._messages)

    def offer(self, message: Inbound) -> bool:
        """Take the message in, if the mailbox is open and has room."""
        if self.closed or len(self._messages) >= self._room:  # breakpoint: mailbox full
            return False
        self._messages.append(message)
        return True

    def take(self) -> Inbound | None:
        """Take out the first message, if there is one."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        self._joined[message.channel] = message
        return message

    def writers(self, first: Inbound) -> list[Inbound]:
        """A message for each channel that has written in the turn which `first` began."""
        return list({first.channel: first, **self._joined}.values())

    def take_all(self) -> list[Inbound]:
        """Take out all that is in it."""
        taken = list(self._messages)
        self._messages.clear()
        return taken

    def finish(self, *, anyway: bool = False) -> bool:
        """Close it if nothing is in it, or `anyway`; whether it is closed now."""
        self.closed = anyway or not self._messages
        return self.closed

    def close(self) -> list[Inbound]:
        """Close it and take out all that is left."""
        self.closed = True
        return self.take_all()
