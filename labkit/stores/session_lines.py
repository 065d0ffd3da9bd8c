"""The lines of a session's file: what stands in them, and which of a damaged file are whole.

The first line is the head: format, id, version, drafts, the open turn, and how many messages
follow, one a line. Fields that say nothing are left out. Each line ends in a checksum, a message's
over all messages up to it, so that a line is known to be whole and to stand in its place.

    data = b"".join(encoded(session))
    session, damage = decoded(data, "telegram:42")       # damage: "" where it is whole
"""

import json
import zlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from labkit.recovery.session import Draft, Message, OpenTurn, Session, repaired
from labkit.recovery.stream.record import ToolCall

FORMAT: Final = 1


def encoded(session: Session) -> Iterator[bytes]:
    """The lines of its file."""
    kept = {name: value for name, value in _plain(session).items() if name != "messages"}
    count = len(session.messages)
    yield _signed({"format": FORMAT, "version": 0, **kept, "count": count}, 0)[0]
    checksum = _start(session.session_id)
    for message in session.messages:
        line, checksum = _signed(message, checksum)
        yield line


def decoded(data: bytes, session_id: str) -> tuple[Session, str]:
    """What is whole, and what is wrong with the rest, or ""."""
    first, *lines = data.removesuffix(b"\n").split(b"\n")
    head, _ = _checked(first, 0)
    if head is None:
        return Session(session_id), "its first line is damaged"
    if (head["format"], head["session_id"]) != (FORMAT, session_id):
        named = f"format {head['format']} of session {head['session_id']!r}"
        return Session(session_id), f"its first line names {named}"
    rows: list[dict[str, Any]] = []
    checksum = _start(session_id)
    for line in lines[: head["count"]]:
        row, checksum = _checked(line, checksum)
        if row is None:
            break
        rows.append(row)
    damage = ""
    if not len(rows) == len(lines) == head["count"]:
        damage = f"{len(rows)} of {head['count']} messages can be read"
    return _session(head, rows), damage


def _session(head: dict[str, Any], rows: list[dict[str, Any]]) -> Session:
    turn = head.get("turn")
    if turn:
        steps = tuple(map(_message, turn["steps"]))
        turn = OpenTurn(**{**turn, "steps": steps, "running": tuple(turn.get("running", ()))})
    drafts = tuple(Draft(**draft) for draft in head.get("drafts", ()))
    messages = repaired(map(_message, rows))
    return Session(head["session_id"], head["version"], messages, drafts, turn)


def _message(row: dict[str, Any]) -> Message:
    return Message(**{**row, "calls": tuple(ToolCall(**call) for call in row.get("calls", ()))})


def _plain(value: Any) -> dict[str, Any]:
    """The fields that say something."""
    told = {one.name: (getattr(value, one.name), one.default) for one in fields(value)}
    return {name: given for name, (given, usual) in told.items() if given != usual}


def _start(session_id: str) -> int:
    return zlib.crc32(session_id.encode("utf-8", "surrogatepass"))


def _signed(row: Any, before: int) -> tuple[bytes, int]:
    """The row as a line, and the checksum that goes on from that of the rows before it."""
    text = json.dumps(row, default=_plain).encode()
    checksum = zlib.crc32(text, before)
    return text[:-1] + _sum(checksum) + b"\n", checksum


def _checked(line: bytes, before: int) -> tuple[dict[str, Any] | None, int]:
    """The row of a line, or None unless it is whole and the one that comes next."""
    text = line[: -len(_sum(0))] + b"}"
    checksum = zlib.crc32(text, before)
    whole = line == text[:-1] + _sum(checksum)
    return (json.loads(text) if whole else None), checksum


def _sum(checksum: int) -> bytes:
    return b', "sum": "%08x"}' % checksum
