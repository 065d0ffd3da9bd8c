"""Session files: whole or refused, owned by one process, and nothing is lost on a full disk."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.recovery.checkpoint import Checkpointer, MemorySessions, next_version
from labkit.recovery.session import (
    ASSISTANT,
    DONE,
    NOTE,
    TOOL,
    UNKNOWN,
    USER,
    Draft,
    Message,
    OpenTurn,
    Session,
    StaleSession,
    add_step,
    begin_turn,
    close_turn,
    finish_turn,
    repaired,
)
from labkit.recovery.stream.record import ToolCall
from labkit.stores import session_files
from labkit.stores.session_files import SessionFiles, SessionInUse, SessionNotSaved, SessionTorn
from labkit.stores.session_lines import decoded, encoded
from tests.recovery.turns import REFERENCE, broken, play_turn

CALLS = (ToolCall("a", "look_up", '{"order": 7}'), ToolCall("b", "refund"))
FULL = Session(
    "ann",
    version=7,
    messages=(
        Message(USER, "Wo ist es? 订单 \U0001f600 \ud83d \u2028"),
        Message(ASSISTANT, "Let me look.\n", calls=CALLS),
        Message(TOOL, "sent", call_id="a", status=DONE),
        Message(TOOL, "", call_id="b", status=DONE),
        Message(ASSISTANT, "It was sent."),
        Message(USER, "Thanks"),
        Message(NOTE, "This turn ended without an answer: stopped."),
    ),
    drafts=(Draft("You are", "stopped"),),
    turn=OpenTurn((Message(USER, "And now?"),), running=("c",), draft="It is"),
)
SAID = [row.content for row in FULL.messages]
NAMES = [
    *("telegram:../../etc", "telegram:..-..-etc", "CON", "con", "Con.", "nul.jsonl", "", ".", ".."),
    *("a/b", "a\\b", "a:b", "a\0b", "ann", "Ann", "ANN", "x" * 300, "x" * 301, "caf\u00e9"),
    *("cafe\u0301", "\ufb01", "fi", "\ud800", "-rf", "~", "%2e", "tab\tline\n", "\u202eabc"),
]


async def inline(do: Callable[..., Any], *arguments: Any) -> Any:
    """Calls it at once, and not in a thread."""
    return do(*arguments)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[SessionFiles]:
    with closing(SessionFiles(tmp_path, call=inline)) as made:
        yield made


def written(files: SessionFiles, session: Session) -> Path:
    """The file of that session, which is let go again."""
    files.load(session.session_id)
    path = files.path(session.session_id)
    path.write_bytes(b"".join(encoded(session)))
    files.release(session.session_id)
    return path


def saved(files: SessionFiles, session: Session) -> int:
    return asyncio.run(files.write(session))


def loaded(files: SessionFiles, session_id: str = "ann") -> Session:
    """What is in the file, whatever is in memory."""
    files.release(session_id)
    return files.load(session_id)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.suffix not in (".jsonl", ".lock")]


# --- what is written comes back


def test_a_session_comes_back_as_it_was(files: SessionFiles) -> None:
    written(files, FULL)
    assert files.load("ann") == FULL


def test_the_first_line_is_the_head_and_each_message_has_one(files: SessionFiles) -> None:
    rows = [json.loads(row) for row in written(files, FULL).read_text().splitlines()]
    head = {name: rows[0][name] for name in ("format", "session_id", "version", "count")}
    assert head == {"format": 1, "session_id": "ann", "version": 7, "count": 7}
    assert rows[0]["turn"]["running"] == ["c"]
    assert [row["role"] for row in rows[1:]] == [row.role for row in FULL.messages]


def test_a_session_that_was_never_written_is_new(files: SessionFiles) -> None:
    assert files.load("ann") == Session("ann")


def test_a_checkpointer_writes_one_version_after_another(files: SessionFiles) -> None:
    async def work() -> Session:
        keeper = Checkpointer(files.load("ann"), files.write)
        await keeper.save(begin_turn(keeper.session, "Where?"))
        await keeper.save(finish_turn(keeper.session, "There."))
        return keeper.session

    session = asyncio.run(work())
    assert session.version == 2
    assert loaded(files) == session


def test_writing_happens_in_a_thread_unless_it_is_to_be_inline(tmp_path: Path) -> None:
    async def where(files: SessionFiles) -> list[str]:
        names: list[str] = []
        session = files.load("ann")
        before = files._replace

        def replacing(*arguments: Any, **options: Any) -> None:
            names.append(threading.current_thread().name)
            before(*arguments, **options)

        files._replace = replacing  # type: ignore[method-assign]
        await files.write(session)
        return names

    main = threading.current_thread().name
    for folder, options, there in (("a", {}, False), ("b", {"call": inline}, True)):
        with closing(SessionFiles(tmp_path / folder, **options)) as files:  # type: ignore[arg-type]
            assert (asyncio.run(where(files)) == [main]) is there


def test_an_older_version_never_overwrites_a_newer_one(files: SessionFiles) -> None:
    old = files.load("ann")
    saved(files, begin_turn(old, "first"))
    with pytest.raises(StaleSession, match="load it again"):
        saved(files, begin_turn(old, "second"))
    assert loaded(files).history[0].content == "first"


def test_two_threads_that_write_the_same_version_have_one_winner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_there = threading.Barrier(2)

    def checks(session: Session, stored: Session) -> int:
        with suppress(threading.BrokenBarrierError):
            both_there.wait(timeout=0.1)  # both come here at once where nothing holds one back
        return next_version(session, stored)

    async def work(files: SessionFiles) -> list[Any]:
        both = [begin_turn(files.load("ann"), text) for text in ("one", "two")]
        return await asyncio.gather(*map(files.write, both), return_exceptions=True)

    monkeypatch.setattr(session_files, "next_version", checks)
    with closing(SessionFiles(tmp_path)) as files:
        came = asyncio.run(work(files))
        assert sorted(type(one).__name__ for one in came) == ["StaleSession", "int"]
        assert loaded(files).history[0].content == ("one", "two")[came.index(1)]


class Stored:
    """A store for `play_turn` on files."""

    def __init__(self, files: SessionFiles) -> None:
        self._files, self.write = files, files.write

    @property
    def kept(self) -> dict[str, Session]:
        return {"ann": loaded(self._files)}


def test_a_turn_that_is_cancelled_at_any_step_is_in_the_file_as_it_is_in_memory(
    files: SessionFiles,
) -> None:
    session, steps = files.load("ann"), play_turn(REFERENCE, store=MemorySessions()).steps
    for step in range(0, steps, 2):
        session = replace(files.load("ann"), messages=(), drafts=())
        world = play_turn(REFERENCE, session=session, store=Stored(files), strikes=[step])
        assert world.struck
        assert broken(world) == [], step
    assert session.version > steps


TEXT = st.text(st.characters(exclude_categories=())) | st.sampled_from(["\n", "\r\n", "\0", "}"])
ANY = st.builds(Message, st.sampled_from([USER, ASSISTANT]), TEXT)


@given(st.lists(ANY), st.lists(st.builds(Draft, TEXT, TEXT)), TEXT, st.integers(0))
def test_any_text_comes_back_as_it_was(
    rows: list[Message], drafts: list[Draft], name: str, version: int
) -> None:
    messages = repaired(rows)
    session = Session(name, version, messages, tuple(drafts), OpenTurn(messages, (name,), name))
    assert decoded(b"".join(encoded(session)), name) == (session, "")


# --- names


def test_no_name_leaves_the_folder_and_none_is_anothers(files: SessionFiles) -> None:
    paths = [files.path(name) for name in NAMES]
    assert {path.parent for path in paths} == {files._folder}
    assert len({path.name.casefold() for path in paths}) == len(NAMES)
    assert all(len(path.name) < 100 and path.name.isascii() for path in paths)
    stems = {path.name.partition(".")[0] for path in paths}
    assert all(set(stem) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and stem for stem in stems)


def test_many_names_that_begin_alike_have_each_a_file_of_their_own(files: SessionFiles) -> None:
    names = [f"{'x' * 40}{number}" for number in range(2_000)]
    assert len({files.path(name) for name in names}) == len(names)


def test_every_name_is_kept_apart_on_the_disk(files: SessionFiles) -> None:
    for name in NAMES:
        saved(files, begin_turn(files.load(name), name))
    for name in NAMES:
        assert loaded(files, name).history[0].content == name
    assert leftovers(files._folder) == []


def test_a_file_under_another_sessions_name_is_refused(files: SessionFiles) -> None:
    data = written(files, FULL).read_bytes()
    files.path("bob").write_bytes(data)
    with pytest.raises(SessionTorn, match="of session 'ann'"):
        files.load("bob")


# --- one owner


def test_a_second_owner_is_refused_until_the_first_lets_go(
    files: SessionFiles, tmp_path: Path
) -> None:
    files.load("ann")
    with closing(SessionFiles(tmp_path)) as second:
        with pytest.raises(SessionInUse, match=r"session 'ann' is in use.*end that one, or wait"):
            second.load("ann")
        second.load("bob")
        files.release("ann")
        assert second.load("ann") == Session("ann")


def test_who_finds_a_session_in_use_is_told_so_at_once(files: SessionFiles) -> None:
    files.load("ann")
    patience = files._held["ann"].lock.execute("PRAGMA busy_timeout").fetchone()
    assert patience == (0,)  # in milliseconds


def test_what_was_loaded_once_is_the_same_session_until_it_is_let_go(files: SessionFiles) -> None:
    session = begin_turn(files.load("ann"), "Where?")
    saved(files, session)
    assert files.load("ann") == replace(session, version=1)


def test_a_session_that_was_let_go_is_not_written_any_more(
    files: SessionFiles, tmp_path: Path
) -> None:
    session = files.load("ann")
    files.release("ann")
    with pytest.raises(StaleSession, match="load it again"):
        saved(files, begin_turn(session, "too late"))
    assert not files.path("ann").exists()


def test_a_write_that_waited_while_its_session_was_let_go_is_refused(files: SessionFiles) -> None:
    session = files.load("ann")

    class LetGoMeanwhile:
        def __enter__(self) -> None:
            files._held.pop("ann").lock.close()

        def __exit__(self, *error: object) -> None:
            pass

    files._held["ann"].writing = LetGoMeanwhile()  # type: ignore[assignment]
    with pytest.raises(StaleSession, match="load it again"):
        saved(files, begin_turn(session, "too late"))
    assert not files.path("ann").exists()


def test_to_let_go_waits_for_the_write_that_is_under_way(files: SessionFiles) -> None:
    files.load("ann")
    held = files._held["ann"]
    letting_go = threading.Thread(target=files.release, args=["ann"], daemon=True)
    with held.writing:
        letting_go.start()
        letting_go.join(timeout=0.05)
        assert letting_go.is_alive()
        assert "ann" in files._held
    letting_go.join(timeout=5)
    assert "ann" not in files._held


def test_a_session_that_was_never_loaded_can_be_let_go(files: SessionFiles) -> None:
    files.release("ann")
    assert files.load("ann") == Session("ann")


def test_closing_lets_go_of_every_session(files: SessionFiles, tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        files.load(name)
    files.close()
    with closing(SessionFiles(tmp_path)) as second:
        assert [second.load(name).session_id for name in ("ann", "bob")] == ["ann", "bob"]


def test_two_threads_that_load_a_session_at_once_have_the_same_one(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_there, before = threading.Barrier(2), files._lock

    def locks(session_id: str) -> Any:
        with suppress(threading.BrokenBarrierError):
            both_there.wait(timeout=0.1)  # both come here at once where nothing holds one back
        return before(session_id)

    monkeypatch.setattr(files, "_lock", locks)

    async def work() -> list[Session]:
        return await asyncio.gather(*[asyncio.to_thread(files.load, "ann") for _ in range(2)])

    assert asyncio.run(work()) == [Session("ann")] * 2


def test_a_session_that_cannot_be_loaded_is_owned_by_nobody(
    files: SessionFiles, tmp_path: Path
) -> None:
    written(files, FULL).write_bytes(b"")
    with pytest.raises(SessionTorn):
        files.load("ann")
    files.path("ann").write_bytes(b"".join(encoded(FULL)))
    with closing(SessionFiles(tmp_path)) as second:
        assert second.load("ann") == FULL


def test_a_lock_that_is_no_lock_is_told_by_its_path(files: SessionFiles) -> None:
    lock = files.path("ann").with_suffix(".lock")
    lock.write_bytes(b"no database, " * 500)
    with pytest.raises(session_files.SessionError, match=r"cannot be locked.*ann.*\.lock"):
        files.load("ann")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_no_torn_one(files: SessionFiles) -> None:
    path = written(files, FULL)
    path.chmod(0)
    with pytest.raises(PermissionError):
        files.load("ann")


def test_an_error_of_reading_is_not_taken_for_a_torn_file(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(files, FULL)

    def refuses(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "no")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuses)
        with pytest.raises(PermissionError):
            files.load("ann")
    assert files.load("ann") == FULL


# --- torn files


def damaged() -> Iterator[tuple[str, bytes]]:
    """A whole file in all the ways in which it is not whole."""
    whole = b"".join(encoded(FULL))
    lines = whole.splitlines(keepends=True)
    for cut in range(len(whole) - 1):
        yield f"cut at {cut}", whole[:cut]
    for at in range(0, len(whole), 7):
        yield f"bit at {at}", whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
    for gone in range(len(lines)):
        yield f"line {gone} is missing", b"".join(lines[:gone] + lines[gone + 1 :])
        yield f"line {gone} comes twice", b"".join(lines[: gone + 1] + lines[gone:])
    yield "two lines change places", b"".join([*lines[:2], lines[3], lines[2], *lines[4:]])
    yield "a line too many", whole + lines[-1]
    yield "an empty line too many", whole + b"\n"
    yield "zeros behind it", whole + bytes(512)
    yield "zeros in its place", bytes(len(whole))
    yield "no UTF-8", whole[:40] + b"\xff\xfe" + whole[42:]
    yield "other JSON", b'{"format": 1}\n'
    yield "deep JSON", b"[" * 100_000
    yield "windows line ends", whole.replace(b"\n", b"\r\n")
    yield "another format", _format_2()


def _format_2() -> bytes:
    from labkit.stores.session_lines import _signed

    return _signed({"format": 2, "session_id": "ann", "version": 9, "count": 0}, 0)[0]


def test_whatever_the_damage_a_file_is_not_taken_for_whole() -> None:
    whole = b"".join(encoded(FULL))
    assert decoded(whole, "ann") == (FULL, "")
    count = 0
    for what, data in damaged():
        session, damage = decoded(data, "ann")
        assert damage, what
        assert session != FULL or data.startswith(whole), what
        count += 1
    assert count > 1_000


def refused(files: SessionFiles, path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(SessionTorn, match=r"put a copy in its place, or call recover\('ann'\)"):
        files.load("ann")
    assert path.read_bytes() == data
    assert leftovers(path.parent) == []


def test_a_file_that_is_cut_at_any_byte_is_refused_and_left_as_it_is(files: SessionFiles) -> None:
    path = written(files, replace(FULL, messages=FULL.messages[4:], turn=None))
    whole = path.read_bytes()
    for cut in range(len(whole) - 1):
        refused(files, path, whole[:cut])


def test_a_damaged_file_is_refused_and_left_as_it_is(files: SessionFiles) -> None:
    path = written(files, FULL)
    for number, (what, data) in enumerate(damaged()):
        if number % 40 == 0 or not what.startswith(("cut", "bit")):
            refused(files, path, data)


def test_a_line_end_that_is_missing_at_the_end_loses_nothing(files: SessionFiles) -> None:
    path = written(files, FULL)
    path.write_bytes(path.read_bytes()[:-1])
    assert files.load("ann") == FULL


def test_recover_goes_on_with_the_lines_before_the_damage_and_keeps_the_file(
    tmp_path: Path,
) -> None:
    for number, (what, data) in enumerate(damaged()):
        if number % 20 and what.startswith(("cut", "bit")):
            continue
        with closing(SessionFiles(tmp_path / str(number), call=inline)) as files:
            path = written(files, FULL)
            path.write_bytes(data)
            session = files.recover("ann")
            torn = path.with_suffix(".torn-1")
            assert torn.read_bytes() == data, what
            kept = [row for row in session.messages if row.content in SAID]
            assert tuple(kept) == FULL.messages[: len(kept)], what
            closing_rows = session.messages[len(kept) :]
            assert all(row.status == UNKNOWN or row.role == NOTE for row in closing_rows), what
            assert loaded(files) == session, what  # and it was kept at once


def test_a_cut_after_a_question_is_recovered_with_each_call_answered(files: SessionFiles) -> None:
    path = written(files, FULL)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    session = files.recover("ann")
    ended = [(row.call_id, row.status) for row in session.messages if row.role == TOOL]
    assert ended == [("a", "done"), ("b", "unknown")]
    assert session.messages[-1].role == NOTE
    assert session.drafts == FULL.drafts
    assert session.turn == FULL.turn


def test_a_second_torn_file_does_not_take_the_place_of_the_first(files: SessionFiles) -> None:
    path = written(files, FULL)
    for data in (b"one", b"two"):
        path.write_bytes(data)
        files.recover("ann")
        files.release("ann")
    kept = [path.with_suffix(f".torn-{number}").read_bytes() for number in (1, 2)]
    assert kept == [b"one", b"two"]


def test_a_torn_file_that_was_kept_meanwhile_is_not_written_over(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(files, FULL)
    path.write_bytes(b"two")
    kept = path.with_suffix(".torn-1")
    kept.write_bytes(b"one")
    monkeypatch.setattr(session_files, "_free", lambda path: kept)  # it was free a moment ago
    with pytest.raises(FileExistsError):
        files.recover("ann")
    assert [kept.read_bytes(), path.read_bytes()] == [b"one", b"two"]


def test_recover_of_a_whole_file_is_a_load(files: SessionFiles) -> None:
    written(files, FULL)
    assert files.recover("ann") == FULL
    assert leftovers(files._folder) == []


def test_a_history_from_outside_is_repaired_when_it_is_loaded(files: SessionFiles) -> None:
    rows = (Message(USER, "Hi"), Message(ASSISTANT, "", calls=CALLS), Message(USER, "Hello?"))
    written(files, replace(FULL, messages=rows))
    roles = [row.role for row in files.load("ann").messages]
    assert roles == [USER, ASSISTANT, TOOL, TOOL, USER, NOTE]


# --- a disk that is full, and a crash


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file may grow past `size` bytes: a full disk, without a disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_at_any_byte_leaves_the_old_file_and_the_session_goes_on(
    files: SessionFiles,
) -> None:
    saved(files, replace(files.load("ann"), messages=FULL.messages))
    path = files.path("ann")
    old = path.read_bytes()
    for size in range(len(old)):
        longer = begin_turn(files.load("ann"), f"question {size}")
        with room(size), pytest.raises(SessionNotSaved, match=r"make room .* brings all") as left:
            saved(files, longer)
        assert isinstance(left.value.__cause__, OSError)
        assert path.read_bytes() == old
        assert leftovers(files._folder) == []
    last = add_step(files.load("ann"), Message(ASSISTANT, "there is room again"))
    assert saved(files, last) == 2
    assert loaded(files) == replace(last, version=2)


@pytest.mark.parametrize("where", ["open", "replace"])
def test_whatever_the_disk_refuses_the_old_file_stays_whole(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    saved(files, begin_turn(files.load("ann"), "first"))
    old = files.path("ann").read_bytes()

    def refuses(*arguments: Any, **options: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, where, refuses)
        with pytest.raises(SessionNotSaved, match="No space left on device"):
            saved(files, add_step(files.load("ann"), Message(ASSISTANT, "second")))
    assert files.path("ann").read_bytes() == old
    assert leftovers(files._folder) == []
    assert saved(files, files.load("ann")) == 2
    assert [row.content for row in loaded(files).history] == ["first", "second"]


def test_a_clean_up_that_fails_too_does_not_hide_what_the_disk_refused(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*arguments: Any, **options: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    session = begin_turn(files.load("ann"), "Hi")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuses)
        patch.setattr(Path, "unlink", refuses)
        with pytest.raises(SessionNotSaved, match="Input/output error"):
            saved(files, session)
    assert saved(files, session) == 1


def test_what_a_crash_left_of_a_write_is_ignored_and_written_over(files: SessionFiles) -> None:
    path = written(files, FULL)
    path.with_suffix(".new").write_bytes(b"half a fi")
    session = files.load("ann")
    assert session == FULL
    saved(files, close_turn(session, "crash"))
    assert leftovers(files._folder) == []


# --- flush


def syncs(monkeypatch: pytest.MonkeyPatch, folder_error: int = 0) -> list[str]:
    """What fsync is called for: "file" or "folder", whose sync may fail."""
    import stat

    called: list[str] = []

    def fsync(number: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(number).st_mode)
        called.append("folder" if is_folder else "file")
        assert is_folder or os.fstat(number).st_size > 0  # else nothing of it is there yet
        if is_folder and folder_error:
            raise OSError(folder_error, os.strerror(folder_error))

    monkeypatch.setattr(os, "fsync", fsync)
    return called


def test_a_write_does_not_wait_for_the_disk_and_a_flush_does(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = syncs(monkeypatch)
    for name in ("ann", "bob"):
        saved(files, begin_turn(files.load(name), "Hi"))
    assert called == []
    assert files.flush_all() == 2
    folder = [] if os.name == "nt" else ["folder"]
    assert called == ["file", *folder] * 2
    assert loaded(files).version == 1


def test_a_session_is_seen_to_the_disk_before_it_is_put_away(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(files, begin_turn(files.load("ann"), "Hi"))
    called = syncs(monkeypatch)
    files.put_away("ann")
    assert called[:1] == ["file"]
    assert files._held == {}


def test_a_flush_of_nothing_writes_nothing(files: SessionFiles) -> None:
    files.load("ann")
    files.release("ann")
    assert files.flush_all() == 0


def test_one_session_that_fails_does_not_keep_the_others_from_being_written(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bob", "eve"):
        saved(files, begin_turn(files.load(name), "Hi"))
        files.path(name).unlink()
    before = Path.replace

    def refuses(path: Path, target: Path) -> Any:
        if target == files.path("bob"):
            raise OSError(errno.EROFS, "Read-only file system")
        return before(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuses)
        assert files.flush_all() == 2
    assert ["'bob' was not saved" in str(error) for error in files.failures] == [True]
    assert [files.path(name).exists() for name in ("ann", "bob", "eve")] == [True, False, True]
    assert files.flush_all() == 3
    assert files.failures == []


def test_a_write_that_hangs_does_not_keep_the_others_from_being_flushed(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_files, "PATIENCE", 0.01)
    for name in ("ann", "bob"):
        files.load(name)
    flushed: list[int] = []
    flush = threading.Thread(target=lambda: flushed.append(files.flush_all()), daemon=True)
    with files._held["ann"].writing:  # as a write has it whose disk does not answer
        flush.start()
        flush.join(timeout=5)
        assert flushed == [1]
    assert "'ann' was not saved: a write of it has not ended" in str(files.failures[0])
    assert files.path("bob").exists()
    assert files.flush_all() == 2


def test_a_flush_brings_what_the_disk_has_refused_before(files: SessionFiles) -> None:
    session = begin_turn(files.load("ann"), "Hi")
    with room(10), pytest.raises(SessionNotSaved):
        saved(files, session)
    assert files.flush_all() == 1
    assert saved(files, finish_turn(files.load("ann"), "Hello.")) == 1
    assert [row.content for row in loaded(files).messages] == ["Hi", "Hello."]


def open_files() -> int:
    """How many files this process has open, where the system says so."""
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else 0


@pytest.mark.skipif(os.name == "nt", reason="Windows opens no folder")
@pytest.mark.parametrize(("error", "count"), [(errno.EINVAL, 1), (errno.EIO, 0)])
def test_a_folder_that_cannot_be_synced_is_no_error_and_one_that_fails_is(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch, error: int, count: int
) -> None:
    files.load("ann")
    syncs(monkeypatch, error)
    opened = open_files()
    assert files.flush_all() == count
    assert len(files.failures) == 1 - count
    assert open_files() == opened


@pytest.mark.parametrize(("refused", "count"), [(PermissionError, 1), (FileNotFoundError, 0)])
def test_a_folder_that_may_not_be_opened_is_no_error_and_one_that_is_gone_is(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch, refused: type[OSError], count: int
) -> None:
    files.load("ann")
    before = os.open

    def opens(path: Any, *arguments: Any, **options: Any) -> int:
        if path == files._folder:
            raise refused(errno.EACCES, "no")
        return before(path, *arguments, **options)

    monkeypatch.setattr(session_files.os, "open", opens)
    assert files.flush_all() == count


# --- nothing accumulates


def test_sessions_that_came_and_went_leave_nothing_in_memory(files: SessionFiles) -> None:
    def come_and_go(number: int) -> None:
        name = f"user {number}"
        saved_here = begin_turn(files.load(name), "x" * 1000)
        files._write(saved_here)
        files.release(name)

    def held() -> int:
        """Bytes, but for Python's own table of interned names, which may grow at any moment."""
        gc.collect()
        names = tracemalloc.Filter(False, "*pathlib*")
        traces = tracemalloc.take_snapshot().filter_traces([names])
        return sum(one.size for one in traces.statistics("filename"))

    come_and_go(0)
    tracemalloc.start()
    try:
        before = held()
        for number in range(1, 200):
            come_and_go(number)
        assert held() - before < 20_000
    finally:
        tracemalloc.stop()
    assert files._held == {}


# --- real processes


def program(what: str, folder: Path) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "tests.stores.session_writer", what, str(folder)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        line,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(what: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    with program(what, folder) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.socket
def test_another_process_is_refused_until_the_owner_dies(tmp_path: Path) -> None:
    with running("hold", tmp_path) as owner, closing(SessionFiles(tmp_path)) as files:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(SessionInUse, match="'written'"):
            files.load("written")
        owner.kill()
        owner.wait()
        assert files.load("written") == Session("written")


@pytest.mark.slow
@pytest.mark.socket
def test_a_process_that_is_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    random, reached = Random(0), 0
    for _ in range(30):
        with running("write", tmp_path) as writer:
            assert writer.stdout is not None
            told = [int(writer.stdout.readline()) for _ in range(random.randrange(1, 30))]
            spin = random.randrange(20_000)
            while spin:  # some part of a write, however fast the machine is
                spin -= 1
            writer.kill()
            rest = writer.stdout.read().rpartition("\n")[0]  # it may be cut in a line, too
            told += map(int, rest.split())
        with closing(SessionFiles(tmp_path, call=inline)) as files:
            session = files.load("written")
        assert session.version >= told[-1] > reached
        reached = told[-1]
    assert [path.suffix for path in tmp_path.iterdir() if path.suffix == ".torn-1"] == []


def test_a_flush_writes_nothing_over_a_session_that_was_let_go_meanwhile(
    files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bob"):
        saved(files, begin_turn(files.load(name), "Hi"))
    flush, newer = files._flush, finish_turn(files.load("bob"), "Hello.")

    def between(held: Any) -> None:
        flush(held)
        if held.session.session_id == "ann":  # bob is let go, loaded again and written
            files.release("bob")
            files.load("bob")
            saved(files, newer)

    monkeypatch.setattr(files, "_flush", between)
    files.flush_all()
    files.release("bob")
    assert [row.content for row in files.load("bob").messages] == ["Hi", "Hello."]
