"""`python -m labkit worker` as a process: real signals, and what it says."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from labkit.commands import environment, worker
from labkit.commands.environment import Missing
from labkit.recovery.run_states import COMPLETED, QUEUED
from labkit.recovery.stream.record import Owner
from labkit.runs.job import Done, Work
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.opening import open_run_store
from labkit.runs.record import AgentRun
from labkit.services.ledger import Ledger
from labkit.stores.errors import StoreDown, StoreError
from tests.runs.kit import Floor, Line, on_floor

OWNER = Owner(user="ann", tenant="acme")
COMMAND = ["-m", "labkit", "worker"]
processes = [
    pytest.mark.socket,
    pytest.mark.skipif(os.name == "nt", reason="sends signals that Windows has not"),
]

# The command, with a job that heeds no cancel.
HANGS = """
import asyncio, sys
from labkit.commands import worker

async def hangs(work):
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass
    yield

worker.jobs = lambda *given, **options: {"order": hangs}
raise SystemExit(worker.main(sys.argv[1:]))
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of an empty store."""
    return f"sqlite:///{tmp_path / 'runs.db'}"


def submitted(url: str, job: str = "order") -> str:
    """The id of a new run."""
    with closing(open_run_store(url)) as store:
        return asyncio.run(store.submit(job, 7, owner=OWNER)).run_id


def found(url: str, run: str) -> AgentRun:
    """The run as it is."""
    with closing(open_run_store(url)) as store:
        return asyncio.run(store.get(run, OWNER))


def line_of(url: str, tmp_path: Path) -> list[str]:
    """What each of these workers is given."""
    return ["--store", url, "--ledger", str(tmp_path / "effects.db"), "--name", "w"]


@contextmanager
def running(line: list[str], *start: str) -> Iterator[subprocess.Popen[str]]:
    """The process, which is gone after the block."""
    with subprocess.Popen(
        [sys.executable, *(start or COMMAND), *line],
        env={**os.environ, "LABKIT_ENVIRONMENT": "current"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until_said(process: subprocess.Popen[str], kind: str) -> None:
    """Return when it has said such a line."""
    assert process.stdout is not None
    while not (line := process.stdout.readline()).startswith(kind):
        assert line, f"it ended without {kind!r}"


def test_it_does_what_waits_says_each_step_and_ends_when_nothing_is_left(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, before = submitted(url), signal.getsignal(signal.SIGTERM)
    line = [*line_of(url, tmp_path), "--pause", "0", "--until-idle"]
    assert worker.main(line) == 0
    assert capsys.readouterr().out.splitlines() == [
        "serving worker=w jobs=order",
        f"claimed run={run} fence=1 seq=2",
        f"kept run={run} fence=1 status=running seq=3 step=reserve",
        f"kept run={run} fence=1 status=running seq=4 step=send_mail",
        f"kept run={run} fence=1 status=running seq=5 step=ship",
        f"kept run={run} fence=1 status=completed seq=6",
        "ended worker=w",
    ]
    assert (found(url, run).status, found(url, run).result) == (COMPLETED, "shipped")
    keys = [f"acme/{step}/{run}" for step in ("reserve", "send_mail", "ship")]
    assert Ledger(tmp_path / "effects.db").effects() == [(key, "w") for key in keys]
    assert signal.getsignal(signal.SIGTERM) == before


class TestSignals:
    """What it does with them."""

    pytestmark = processes

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_hands_the_run_back_and_ends_it(
        self, number: signal.Signals, url: str, tmp_path: Path
    ) -> None:
        run = submitted(url)
        with running([*line_of(url, tmp_path), "--pause", "600"]) as process:
            until_said(process, "claimed")
            process.send_signal(number)
            out, _ = process.communicate(timeout=20)
            handed_back, ended = out.splitlines()[-2:]
            assert handed_back.startswith(f"handed_back run={run} fence=")
            assert ended == "ended worker=w"
            assert process.returncode == 0
        assert (found(url, run).status, found(url, run).worker) == (QUEUED, None)

    def test_a_second_signal_leaves_at_once_whatever_hangs(self, url: str, tmp_path: Path) -> None:
        submitted(url)
        with running(line_of(url, tmp_path), "-c", HANGS) as process:
            until_said(process, "claimed")
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 128 + signal.SIGINT


def test_it_asks_first_for_so_many_orders(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [*line_of(url, tmp_path), "--submit", "2", "--pause", "0", "--until-idle"]
    assert worker.main(line) == 0
    said = capsys.readouterr().out.splitlines()
    runs = [one.removeprefix("submitted run=") for one in said[:2]]
    with closing(open_run_store(url)) as store:
        found = asyncio.run(store.runs(worker.OWNER))
    assert sorted(run.run_id for run in found) == sorted(runs)
    assert {run.status for run in found} == {COMPLETED}
    assert sorted(run.given["order"] for run in found) == [1, 2]


@pytest.mark.parametrize("name", ["runs.db", "./x/../runs.db", "link.db"])
def test_a_ledger_in_the_file_of_the_store_is_refused(name: str, url: str, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "runs.db")
    with pytest.raises(Missing, match="is the file of --store: name another one"):
        worker.main(["--store", url, "--ledger", f"{tmp_path}/{name}", "--until-idle"])
    assert not (tmp_path / "runs.db").exists()


def test_who_cannot_begin_gives_the_signals_back(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    async def gone(*given: Any, **told: Any) -> AgentRun:
        raise StoreDown("the store is gone")

    monkeypatch.setattr(RunManager, "submit", gone)
    with pytest.raises(Missing, match="the store is gone"):
        worker.main([*line_of(url, tmp_path), "--submit", "1"])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_its_help_tells_every_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        worker.main(["--help"])
    told = capsys.readouterr().out
    assert "where effects stand: effects.db" in told
    assert "no other worker has: the process and a part" in " ".join(told.split())


def test_who_waits_until_all_is_idle_waits_for_what_others_do(url: str) -> None:
    async def program() -> None:
        looked: asyncio.Queue[int] = asyncio.Queue()
        with closing(open_run_store(url)) as store:
            left = store.left

            async def look(jobs: Collection[str] | None = None) -> int:
                looked.put_nowait(found := await left(jobs))
                return found

            store.left = look  # type: ignore[method-assign]  # as it is, and told
            await store.submit("order", owner=OWNER)
            held = await store.claim("other", length=600.0)
            assert held is not None
            doing: dict[str, Any] = {"order": None}
            manager = RunManager(store, doing, worker="w", policy=RunPolicy())
            idle = asyncio.create_task(worker._idle(manager))
            assert await looked.get() == 1
            await store.finish(held, None)
            await idle
            assert 0 in [looked.get_nowait() for _ in range(looked.qsize())]

    asyncio.run(asyncio.wait_for(program(), 20))


@pytest.mark.timeout(20)
def test_runs_that_only_others_can_do_are_named_and_not_waited_for(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        submitted(url, "bill")
    run = submitted(url)
    assert worker.main([*line_of(url, tmp_path), "--pause", "0", "--until-idle"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["left_to_others runs=2", "ended worker=w"]
    assert found(url, run).status == COMPLETED


def test_both_stores_are_closed_at_the_end(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    def opened(name: str, make: Any, url: str) -> Any:
        store = make(url)
        close = store.close
        store.close = lambda: (closed.append(name), close())
        return store

    for name in ("open_run_store", "open_key_store"):
        monkeypatch.setattr(worker, name, partial(opened, name, getattr(worker, name)))
    assert worker.main([*line_of(url, tmp_path), "--until-idle"]) == 0
    assert closed == ["open_key_store", "open_run_store"]


@processes[0]
@pytest.mark.parametrize("heard", [0, 2])
def test_a_worker_whose_lines_nobody_reads_any_more_does_its_runs_and_ends_in_order(
    heard: int, url: str, tmp_path: Path
) -> None:
    runs = [submitted(url) for _ in range(3)]
    line = [*line_of(url, tmp_path), "--pause", "0", "--until-idle"]
    with (
        (tmp_path / "errors").open("w+") as errors,
        subprocess.Popen(
            [sys.executable, *COMMAND, *line],
            env={**os.environ, "LABKIT_ENVIRONMENT": "current"},
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        assert process.stdout is not None
        for _ in range(heard):
            process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 0
        errors.seek(0)
        assert errors.read() == ""
    assert {found(url, run).status for run in runs} == {COMPLETED}


def test_a_clock_that_was_set_is_told_and_the_other_words_of_a_key_are_not(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def jobs(once: Any, **options: Any) -> dict[str, Any]:
        once._executor.observe("entered", digest="d")
        once._executor.observe("clock_jumped", told="by +60 s")
        return {}

    monkeypatch.setattr(worker, "jobs", jobs)
    assert worker.main([*line_of(url, tmp_path), "--until-idle"]) == 0
    told = ["clock_jumped told=by +60 s", "serving worker=w jobs=", "ended worker=w"]
    assert capsys.readouterr().out.splitlines() == told


# --- what is no good


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--lease", "0"], "lease is 0.0, and must be above 0"),
        (["--lease", "nan"], "lease is nan, and must be a number"),
        (["--watchdog", "-1"], "watchdog is -1.0, and must be a number"),
        (["--capacity", "0"], "capacity is 0, and must be above 0"),
        (["--pause", "nan"], "--pause nan is no number of seconds"),
        (["--pause", "-1"], "--pause -1.0 is no number of seconds"),
        (["--name", ""], "--name is empty: give each worker a name that no other has"),
        (["--submit", "-1"], "--submit -1 is no number of orders"),
    ],
)
def test_a_number_that_is_no_good_is_named_in_one_line(
    line: list[str], said: str, url: str, tmp_path: Path
) -> None:
    with pytest.raises(Missing, match=said) as told:
        worker.main([*line_of(url, tmp_path), *line, "--until-idle"])
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--store", "sqlite:////no/such/folder/runs.db"], "/no/such/folder/runs.db cannot be"),
        (["--store", "nonsense"], "this URL cannot be opened"),
        (["--store", "memory:"], r"; use sqlite:///FILE or postgresql\S+$"),
        pytest.param(
            ["--store", "postgresql+psycopg://127.0.0.1:1/x?user=u&password=hunter2"],
            "[?&]password=[*]{3}[& ]",
            id="password in the query",
        ),
        pytest.param(
            ["--store", "postgresql+psycopg://127.0.0.1:1/x?SSLPassword=hunter2"],
            "[?]SSLPassword=[*]{3} ",
            id="another password in the query",
        ),
        (["--store", "mysql://u:hunter2@h/x?passwd=hunter2"], "passwd=[*]{3} cannot be opened"),
        (["--store", "postgresql+psycopg://ann:hunter2@127.0.0.1:1/x"], "ann:[*]{3}@127.0.0.1"),
        (["--ledger", "/no/such/folder/x.db"], "the ledger /no/such/folder/x.db cannot be opened"),
    ],
)
def test_what_cannot_be_opened_is_one_line_without_a_password_and_exit_2(
    line: list[str],
    said: str,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LABKIT_ENVIRONMENT", "current")
    monkeypatch.chdir(tmp_path)
    assert environment.run("worker", [*line_of(url, tmp_path), *line]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "hunter2" not in told
    assert re.search(said, told)


def test_what_it_says_is_one_line_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    worker._say("late_write", run="a\nb", told="api_key=sk-123456\n\nby another")
    assert capsys.readouterr().out == "late_write run=a b told=api_key=*** by another\n"


# --- until all is idle, and an end that nobody meant


def test_who_waits_until_all_is_idle_waits_for_the_clean_up_of_its_own_jobs() -> None:
    async def program(floor: Floor) -> None:
        async def job(work: Work) -> AsyncGenerator[Done, None]:
            try:
                yield Done()
            finally:
                await asyncio.sleep(3.0)
                floor.closed.append("whole")

        floor.jobs["job"] = job
        manager = floor.worker("a").manager
        await floor.submit("job")
        await worker._idle(manager)
        assert floor.closed == ["whole"]

    on_floor(program)


def test_who_waits_until_all_is_idle_outlasts_a_store_that_is_gone() -> None:
    async def program(floor: Floor) -> None:
        await worker._idle(floor.worker("a", Line((0.0, 5.0))).manager)
        assert 5.0 < floor.clock() < 10.0

    on_floor(program)


@pytest.fixture
def _signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals_as_before")
def test_what_ends_the_serving_is_told_and_is_no_end_in_order(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve(manager: RunManager) -> None:
        raise StoreError("it is odd")

    monkeypatch.setattr(RunManager, "serve", serve)
    with pytest.raises(Missing, match="it is odd"):
        worker.main(line_of(url, tmp_path))
    assert capsys.readouterr().out.splitlines() == ["serving worker=w jobs=order"]
