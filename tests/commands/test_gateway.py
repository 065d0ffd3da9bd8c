"""`python -m labkit gateway` as a process: real lines, real signals, and its files."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from labkit.commands import gateway
from labkit.commands.environment import Missing
from labkit.recovery.dispatch import LIMIT_VARIABLE
from labkit.recovery.session import Message
from labkit.services.channels import CLOSING
from labkit.stores.session_files import SessionFiles

pytestmark = [
    pytest.mark.socket,
    pytest.mark.skipif(os.name == "nt", reason="sends signals that Windows has not"),
]

STEPS = [
    "cancel tasks: done",
    "gather tasks: done",
    "stop turns: done",
    "stop channel tcp: done",
    "stop channel terminal: done",
    "close transport tools: done",
    "flush sessions: done",
    "restore signal handlers: done",
]
COMMAND = ["-m", "labkit", "gateway"]

# A tool, and then an answer that does not come to its end.
CALL = {"index": 0, "id": "c1", "name": "look_up", "arguments": "{}"}
STALLS = {
    "name": "stalls",
    "attempts": [[{"call": CALL}, {"finish": "tool_calls"}], [{"say": "It was "}, {"stall": True}]],
}

# The command, with a part that hangs.
HANGS = """
import asyncio, sys, time
from labkit.commands import gateway
from labkit.services.channels import TcpChannel
from labkit.stores.session_files import SessionFiles

async def hangs(channel):
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

async def blocks(channel):
    time.sleep(600)

{change}
raise SystemExit(gateway.main(sys.argv[1:]))
"""


class Running:
    """The gateway as a process, and a user's connection to it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.printed = process.stdout
        found = re.search(r"127\.0\.0\.1:(\d+)", self.printed.readline())
        assert found is not None
        self._talk = socket.create_connection(("127.0.0.1", int(found[1])), timeout=10)
        self.heard = self._talk.makefile()

    def writes(self, line: str) -> None:
        self._talk.sendall(f"{line}\n".encode())

    def until_printed(self, words: str) -> None:
        while words not in (line := self.printed.readline()):
            assert line, f"it ended without {words!r}"

    def ends(self) -> tuple[int, list[str]]:
        """Its exit code, and what it printed since."""
        rest = self.printed.read()
        return self.process.wait(10), [line.partition(" after")[0] for line in rest.splitlines()]

    def close(self) -> None:
        self._talk.close()
        self.heard.close()


@contextmanager
def running(folder: Path, *start: str, script: str = "") -> Iterator[Running]:
    """The process, which is gone after the block with all that it has started.

    What it tells its operator of errors is in the folder's file `errors`.
    """
    file = folder / "stalls.json"
    file.write_text(json.dumps(STALLS))
    script = script or str(file)
    with (
        (folder / "errors").open("w") as errors,
        subprocess.Popen(
            [sys.executable, *(start or COMMAND), script, "--folder", str(folder), "--speed", "5"],
            env={**os.environ, "LABKIT_ENVIRONMENT": "current"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            made = Running(process)
            children = psutil.Process(process.pid).children()
            yield made
            made.close()
        finally:
            process.kill()
            process.wait()
    until = time.monotonic() + 5
    while any(map(_runs, children)):
        assert time.monotonic() < until, "the tool server lives on"
        time.sleep(0.01)
    assert children


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def rows(folder: Path, session: str) -> list[dict[str, str]]:
    """The messages in a session's file."""
    (file,) = _files(folder, session)
    return [json.loads(line) for line in file.read_text().splitlines()[1:]]


def until_called(folder: Path, session: str) -> None:
    """Return when the tool has its result."""
    until = time.monotonic() + 10
    while not any("refund sent" in file.read_text() for file in _files(folder, session)):
        assert time.monotonic() < until
        time.sleep(0.01)


def _files(folder: Path, session: str) -> list[Path]:
    return list(folder.glob(f"{session}.*.jsonl"))


def test_lines_are_answered_with_the_help_of_the_tool_server(tmp_path: Path) -> None:
    with running(tmp_path, script="tool-then-answer") as made:
        made.writes("ann: Where is my refund?")
        made.writes("bob: And mine?")
        told = {made.heard.readline() for _ in range(2)}
        assert told == {f"{name}: The refund was sent on Monday.\n" for name in ("ann", "bob")}
    assert [row["role"] for row in rows(tmp_path, "bob")] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_stop_ends_the_turn_and_not_the_gateway(tmp_path: Path) -> None:
    with running(tmp_path) as made:
        made.writes("ann: Where is my refund?")
        until_called(tmp_path, "ann")
        made.writes("ann: /stop")
        assert made.heard.readline() == "ann: Stopped 1 turn.\n"
        assert rows(tmp_path, "ann")[-1]["content"].endswith("without an answer: stopped.")
        made.writes("ann: /status")
        assert made.heard.readline() == "ann: This session is idle.\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order_and_keeps_what_happened(
    number: signal.Signals, tmp_path: Path
) -> None:
    with running(tmp_path) as made:
        made.writes("ann: Where is my refund?")
        until_called(tmp_path, "ann")
        made.process.send_signal(number)
        code, printed = made.ends()
        assert (code, printed) == (0, [*STEPS, "turns stopped: 1, sessions flushed: 1"])
        assert [*made.heard] == [f"{CLOSING}\n"]
    assert [row["role"] for row in rows(tmp_path, "ann")] == ["user", "assistant", "tool", "note"]
    assert rows(tmp_path, "ann")[-1]["content"] == "This turn ended without an answer: shutdown."


def test_a_second_signal_skips_what_hangs_and_flushes_all_the_same(tmp_path: Path) -> None:
    change = "TcpChannel.stop = hangs"
    with running(tmp_path, "-c", HANGS.format(change=change)) as made:
        made.writes("ann: Where is my refund?")
        until_called(tmp_path, "ann")
        made.process.send_signal(signal.SIGTERM)
        made.until_printed("stop turns: done")
        made.process.send_signal(signal.SIGTERM)
        code, printed = made.ends()
        assert (code, printed) == (
            1,
            [
                "stop channel tcp: abandoned",
                "stop channel terminal: done",
                "close transport tools: abandoned",
                *STEPS[-2:],
            ],
        )
    assert rows(tmp_path, "ann")[-1]["role"] == "note"


@pytest.mark.parametrize(
    "change", ["TcpChannel.stop = blocks", "SessionFiles.flush_all = lambda files: time.sleep(600)"]
)
def test_a_third_signal_leaves_at_once_whatever_hangs(change: str, tmp_path: Path) -> None:
    with running(tmp_path, "-c", HANGS.format(change=change)) as made:
        made.process.send_signal(signal.SIGTERM)
        made.until_printed("stop turns: done")
        made.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 10
        while made.process.poll() is None:  # Python may see two as one, or late, when it is blocked
            assert time.monotonic() < until
            made.process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        assert made.ends()[0] in (128 + signal.SIGTERM, 128 + signal.SIGINT)


def test_a_session_that_cannot_be_flushed_is_named(tmp_path: Path) -> None:
    change = """
def refuses(files):
    files.failures = [OSError("no room")]
    return 0
SessionFiles.flush_all = refuses
"""
    with running(tmp_path, "-c", HANGS.format(change=change)) as made:
        made.process.send_signal(signal.SIGTERM)
        code, printed = made.ends()
        assert (code, printed[-1]) == (1, "turns stopped: 0, sessions flushed: 0")
        assert (tmp_path / "errors").read_text() == "labkit: no room\n"


# --- what fails, and a session that is torn


def torn(folder: Path) -> Path:
    """A session of ann's that has lost its last message."""
    files = SessionFiles(folder)
    rows = [Message("user", "hello"), Message("assistant", "Hello."), Message("user", "again")]
    asyncio.run(files.write(replace(files.load("ann"), messages=tuple(rows))))
    files.close()
    path = files.path("ann")
    path.write_bytes(path.read_bytes()[:-20])
    return path


def test_what_fails_is_told_whole_to_the_operator_and_shortly_to_the_user(tmp_path: Path) -> None:
    path = torn(tmp_path)
    with running(tmp_path, script="plain-answer") as made:
        made.writes("ann: Where is my refund?")
        assert made.heard.readline() == "ann: That went wrong (SessionTorn). Please try again.\n"
        (told,) = (tmp_path / "errors").read_text().splitlines()
        assert told.startswith("labkit: session 'ann': a turn failed: SessionTorn: ")
        assert path.name in told
        assert told.endswith("; the gateway's --recover ann does that")
        gateway.main(["plain-answer", "--folder", str(tmp_path), "--recover", "ann"])
        made.writes("ann: Where is my refund?")
        assert made.heard.readline() == "ann: The refund was sent on Monday.\n"


def test_a_session_that_another_process_has_is_told_to_the_operator(tmp_path: Path) -> None:
    files = SessionFiles(tmp_path)
    asyncio.run(files.write(files.load("ann")))
    with running(tmp_path, script="plain-answer") as made:
        made.writes("ann: Where is my refund?")
        assert made.heard.readline() == "ann: That went wrong (SessionInUse). Please try again.\n"
        (told,) = (tmp_path / "errors").read_text().splitlines()
        assert "SessionInUse: session 'ann' is in use by somebody else: end that one" in told
    with pytest.raises(Missing, match="'ann' is in use by somebody else"):
        recover(tmp_path, "ann")
    files.close()


def test_what_is_told_to_the_operator_is_one_line_without_keys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gateway._say(
        1, "turn_failed", session="a\nb", message="hello", error="E", told="key=sk-12\n\n34"
    )
    gateway._say(1, "not_kept", session="ann", message="hello", error="OSError")
    gateway._say(1, "not_told", session="ann", message="hello", error="BrokenPipeError")
    assert capsys.readouterr().err.splitlines() == [
        "labkit: session 'a\\nb': a turn failed: E: key=*** 34",
        "labkit: session 'ann': 'hello' was not kept: OSError",
        "labkit: session 'ann': 'hello' was not answered: BrokenPipeError",
    ]


def recover(folder: Path, session: str) -> None:
    assert gateway.main(["plain-answer", "--folder", str(folder), "--recover", session]) == 0


def test_a_torn_session_is_mended_and_it_is_said_what_was_kept_and_where_the_rest_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = torn(tmp_path)
    damaged = path.read_bytes()
    recover(tmp_path, "ann")
    aside = tmp_path / f"{path.stem}.torn-1"
    assert capsys.readouterr().out == (
        f"session 'ann' is mended: 2 messages and 0 drafts are kept; the damaged file is {aside}\n"
    )
    assert aside.read_bytes() == damaged
    recover(tmp_path, "ann")
    assert "'ann' was whole, and is as it was: 2 messages" in capsys.readouterr().out


def test_a_session_that_is_not_there_is_not_made_by_its_recovery(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="there is no session 'anne' in "):
        recover(tmp_path, "anne")
    assert [*tmp_path.iterdir()] == []


# --- how it is begun


def test_the_help_says_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gateway.main(["--help"])
    told = capsys.readouterr().out
    uses = ["nc 127.0.0.1 PORT", "NAME: TEXT", "`terminal`", LIMIT_VARIABLE, "Ctrl-C", "--recover"]
    for words in [*uses, "`/stop`", "`/stop all`", "`/status`", "`/help`"]:
        assert words in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "there is no script 'nope'"),
        (["tool-then-answer", "--port", "99999"], "port 99999 cannot be had"),
    ],
)
def test_a_script_or_a_port_that_is_no_good_is_named(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(Missing, match=words):
        gateway.main([*arguments, "--folder", str(tmp_path)])


@pytest.mark.parametrize("folder", ["", " ", "file"])
def test_a_folder_that_is_a_file_or_has_no_name_is_refused_in_a_clear_line(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    with pytest.raises(Missing, match=f"--folder '{folder}' is no folder: name one"):
        gateway.main(["tool-then-answer", "--folder", folder])


def test_a_limit_that_is_no_number_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "many")
    with pytest.raises(Missing, match=f"{LIMIT_VARIABLE} is 'many'"):
        gateway.main(["tool-then-answer", "--folder", str(tmp_path)])
