"""`python -m labkit serve` and `demo` as processes: signals, a kill, whole discussions."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from labkit.commands import demo, environment, serve
from labkit.commands.environment import Missing
from labkit.recovery.sse import SSEDecoder, SSEEvent
from tests.stores.postgres import server

TOKEN = "0123456789abcdef" * 2  # the same in every process, since it stands in names of tests
USERS = {serve.TOKENS: f"ann:{TOKEN}"}
COMMAND = ["-m", "labkit", "serve"]
_WITHOUT = {name: value for name, value in os.environ.items() if name != serve.TOKENS}
ASKED = {"question": "Which database?", "rounds": 2}
processes = [
    pytest.mark.socket,
    pytest.mark.skipif(os.name == "nt", reason="sends signals that Windows has not"),
]

# The command, with a discussion that heeds no cancel.
HANGS = """
import asyncio, sys
from labkit.commands import serve
from labkit.runs.discussion import opening

async def hangs(services, work):
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass
    yield

opening.discuss = hangs
raise SystemExit(serve.main(sys.argv[1:]))
"""


class Service:
    """The command as a process, and a client of it."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self.process = process
        self.errors = errors
        assert process.stdout is not None
        self.said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", self.said)
        assert found is not None, errors.read_text()
        self.client = httpx.Client(
            base_url=found[0],
            headers={"authorization": f"Bearer {TOKEN}"},
            timeout=20,
            trust_env=False,
            verify=False,
        )

    def begun(self, **given: Any) -> str:
        """The id of a new run."""
        return str(self.client.post("/runs", json={**ASKED, **given}).json()["id"])

    def get(self, run: str) -> Any:
        """The run as it is."""
        return self.client.get(f"/runs/{run}").json()

    def until(self, run: str, status: str) -> Any:
        """The run once it is so."""
        assert soon(lambda: self.get(run)["status"] == status), self.get(run)
        return self.get(run)

    def events(self, run: str, after: int = 0, *, to: str = "end") -> list[SSEEvent]:
        """Those after a number, up to the first of a kind."""
        decoder, told = SSEDecoder(), list[SSEEvent]()
        with self.client.stream("GET", f"/runs/{run}/events?after={after}") as answered:
            for piece in answered.iter_raw():
                told += decoder.feed(piece)
                if any(event.event == to for event in told):
                    break
        return told


@contextmanager
def running(
    folder: Path, *options: str, start: Any = COMMAND, env: Any = USERS
) -> Iterator[Service]:
    """The process on the store of a folder, gone after the block."""
    store = ["--store", f"sqlite:///{folder / 'runs.db'}", "--ledger", str(folder / "effects.db")]
    errors = folder / "errors"
    with (
        errors.open("a") as told,
        subprocess.Popen(
            [sys.executable, *start, *store, *options],
            env={**_WITHOUT, **env, "LABKIT_ENVIRONMENT": "current"},
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
        ) as process,
    ):
        try:
            service = Service(process, errors)
            yield service
            service.client.close()
        finally:
            process.kill()


def soon(so: Callable[[], Any], seconds: float = 20.0) -> bool:
    """Whether it comes true within so many seconds."""
    end = time.monotonic() + seconds
    while not so() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(so())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all discussions, which never pauses."""
    with running(tmp_path_factory.mktemp("served"), "--pause", "0") as made:
        yield made
        assert made.errors.read_text() == ""


def lives(pid: int) -> bool:
    """Whether the process is there, and is more than a name that nobody has asked for yet."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class TestWhole:
    """A discussion over HTTP, as a person has it."""

    pytestmark = processes[0]

    def test_a_question_is_discussed_to_its_end(self, service: Service) -> None:
        run = service.begun()
        told = service.events(run)
        assert told[0].event == "run_created"
        assert [event.event for event in told[-2:]] == ["run_completed", "end"]
        shown = service.get(run)
        assert (shown["status"], shown["end_reason"]) == ("completed", "consensus")
        assert shown["result"]["conclusion"]
        assert "## Conclusion" in service.client.get(f"/runs/{run}/report").text

    def test_it_asks_goes_on_with_the_answer_and_remembers_until_that_is_deleted(
        self, service: Service
    ) -> None:
        run = service.begun(question="[needs clarification] A tool for five people?")
        service.events(run, to="awaiting_input")
        (ask,) = service.until(run, "awaiting_input")["asks"]
        answer = {"ask": ask["id"], "answer": "5,000"}
        assert service.client.post(f"/runs/{run}/input", json=answer).status_code == 200
        assert service.client.post(f"/runs/{run}/input", json=answer).status_code == 409
        assert service.until(run, "completed")["asks"] == []
        (fact,) = service.client.get("/memories").json()
        assert "5,000" in fact["text"]
        assert fact["run_id"] == run
        again = service.begun()
        service.until(again, "completed")
        assert "Memories used" in service.client.get(f"/runs/{again}/report").text
        assert service.client.delete(f"/memories/{fact['key']}").status_code == 204
        last = service.begun()
        service.until(last, "completed")
        assert "Memories used" not in service.client.get(f"/runs/{last}/report").text

    def test_two_approvals_are_given_one_after_the_other_each_by_its_digest(
        self, service: Service
    ) -> None:
        run = service.begun(question="[needs approval] [needs approval] Try it?")
        for left in (2, 1):
            asks = service.until(run, "awaiting_input")["asks"]
            assert len(asks) == left
            word = {"ask": asks[0]["id"], "answer": "approve", "digest": asks[0]["digest"]}
            wrong = {**word, "digest": "0"}
            assert service.client.post(f"/runs/{run}/input", json=wrong).status_code == 409
            seq = service.get(run)["seq"]
            assert service.client.post(f"/runs/{run}/input", json=word).status_code == 200
            assert soon(lambda seq=seq: service.get(run)["seq"] > seq + 1)
        service.until(run, "completed")

    def test_what_fails_with_one_model_goes_on_with_another(self, service: Service) -> None:
        run = service.begun(model="fake-broken")
        failed = service.until(run, "failed")
        assert failed["error_code"] == "QUOTA_EXCEEDED"
        assert service.events(run)[-1].event == "end"
        answered = service.client.post(f"/runs/{run}/retry", json={"model": "fake"})
        assert answered.json()["status"] in ("queued", "running")
        told = service.events(run, failed["seq"])
        assert [event.event for event in told[-2:]] == ["run_completed", "end"]


class TestProcess:
    """How it begins and ends."""

    pytestmark = processes

    def test_without_users_it_makes_one_token_and_shows_it_once(self, tmp_path: Path) -> None:
        with running(tmp_path, env={}) as service:
            assert service.process.stdout is not None
            token = service.process.stdout.readline().split()[-1]
            assert len(token) >= 32
            shown = {"authorization": f"Bearer {token}"}
            assert service.client.get("/runs", headers=shown).status_code == 200
            assert service.client.get("/runs").status_code == 401
            service.process.send_signal(signal.SIGTERM)
            rest, _ = service.process.communicate(timeout=20)
            assert token not in rest + service.errors.read_text()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_hands_the_run_back_waits_for_no_reader_and_says_no_token(
        self, number: signal.Signals, tmp_path: Path
    ) -> None:
        with running(tmp_path, "--pause", "600") as service:
            run = service.begun()
            with service.client.stream("GET", f"/runs/{run}/events") as answered:
                pieces = answered.iter_raw()
                while b"run_started" not in next(pieces):
                    pass
                service.process.send_signal(number)
                rest, _ = service.process.communicate(timeout=20)
                assert service.process.returncode == 0
            assert TOKEN not in service.said + rest
            assert service.errors.read_text() == ""
        with running(tmp_path, "--pause", "0", "--lease", "600") as service:
            service.until(run, "completed")  # at once, and not when a lease is over
            starts = [e for e in service.events(run) if e.event == "run_started"]
            assert len(starts) == 2

    def test_a_second_signal_leaves_at_once_whatever_hangs(self, tmp_path: Path) -> None:
        with running(tmp_path, start=["-c", HANGS]) as service:
            service.until(service.begun(), "running")
            service.process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                service.process.wait(0.3)
            service.process.send_signal(signal.SIGINT)
            assert service.process.wait(20) == 128 + signal.SIGINT

    @pytest.mark.slow
    def test_one_signal_is_enough_whatever_hangs(self, tmp_path: Path) -> None:
        with running(tmp_path, start=["-c", HANGS]) as service:
            service.until(service.begun(), "running")
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(40) == 1

    def test_what_a_killed_service_did_is_finished_by_the_next(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name, value in (("PAUSE", 0.1), ("WATCHDOG", 0.2)):
            monkeypatch.setattr(demo, name, value)
        assert demo.main(["--lease", "1"]) == 0
        said = capsys.readouterr().out
        assert said.count("run_started") == 2
        assert len(set(re.findall(r"worker (\S+), fence", said))) == 2
        assert "State: completed" in said
        assert re.search(r"Nobody worked on it for \d+\.\d s: .* the lease of 1 s was\nover", said)


@pytest.mark.socket
def test_a_demonstration_that_is_killed_leaves_no_service_behind() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "labkit", "demo"],
        env={**os.environ, "LABKIT_ENVIRONMENT": "current"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        found = re.search(r"process (\d+)", process.stdout.readline())
        process.kill()
    assert found is not None
    pid = int(found[1])
    try:
        assert soon(lambda: not lives(pid))
    finally:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)


@pytest.mark.socket
@pytest.mark.slow
def test_a_database_that_is_gone_for_ten_seconds_costs_no_run_and_its_reader_no_event(
    tmp_path: Path,
) -> None:
    with (
        server() as database,
        running(tmp_path, "--store", database.url, "--pause", "0.5", "--lease", "3") as service,
    ):
        run = service.begun()
        with service.client.stream("GET", f"/runs/{run}/events") as answered:
            pieces, decoder, told = answered.iter_raw(), SSEDecoder(), list[SSEEvent]()
            while not any(event.event == "node_finished" for event in told):
                told += decoder.feed(next(pieces))
            database.stop()
            refused = service.client.get(f"/runs/{run}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "StoreDown")
            assert service.client.get("/").status_code == 200
            time.sleep(10)
            database.start()
            for piece in pieces:  # the connection is the same all the time
                told += decoder.feed(piece)
        assert [event.id for event in told[:-1]] == [str(n) for n in range(1, len(told))]
        assert [event.event for event in told[-2:]] == ["run_completed", "end"]


def test_a_demonstration_that_does_not_work_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_show", lambda *_: demo._until(lambda: False, "the end", 0.0))
    assert demo.main([]) == 1
    assert "did not work: the end did not come within 0 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--lease", "0"], "lease is 0.0, and must be above 0"),
        (["--watchdog", "nan"], "watchdog is nan, and must be a number"),
        (["--pause", "-1"], "--pause is a number of seconds"),
        (["--real-models", "-1"], "--real-models one of calls, 0 or more"),
        (["--port", "99999"], "port 99999 cannot be had"),
        (["--port", "TAKEN"], "port [0-9]+ cannot be had"),
        (["--store", "sqlite:////no/such/folder/runs.db"], "/no/such/folder/runs.db cannot be"),
        (["--store", "postgresql+psycopg://ann:hunter2@127.0.0.1:1/x"], "ann:[*]{3}@127.0.0.1"),
        (
            ["--ledger", "./x/../runs.db", "--port", "TAKEN"],
            "is the file of --store: name another one",
        ),
        (["--ledger", "/no/such/folder/x.db"], "the ledger /no/such/folder/x.db cannot be opened"),
    ],
)
def test_what_is_no_good_is_one_line_without_a_secret_and_exit_2(
    line: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LABKIT_ENVIRONMENT", "current")
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = [port if word == "TAKEN" else word for word in line]
        assert environment.run("serve", given) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert "hunter2" not in told.err
    assert re.search(said, told.err)


@pytest.mark.parametrize("tokens", ["", "ann:short-hunter2", f"ann:{TOKEN} bob:{TOKEN}", TOKEN])
def test_users_that_are_no_good_are_named_without_a_token(
    tokens: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(serve.TOKENS, tokens)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Missing, match="tokens") as told:
        serve.main([])
    assert TOKEN not in str(told.value)
    assert "hunter2" not in str(told.value)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("lease", ["0", "nan"])
def test_a_lease_that_is_no_good_is_no_demonstration(lease: str) -> None:
    with pytest.raises(Missing, match="lease is"):
        demo.main(["--lease", lease])
