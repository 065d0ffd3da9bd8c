"""A script on a real socket: resets, clean ends, silence, hostile requests, and no process left."""

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from labkit.providers.process import Served, ServerError, serve
from labkit.providers.script import Script, script
from labkit.scenarios.scripts import load

pytestmark = pytest.mark.socket

ROOT = Path(__file__).parents[2]
ASKED: dict[str, Any] = {
    "model": "any",
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
}
LAST_CHUNK = b"0\r\n\r\n"


def attempts(*steps: Any) -> Script:
    return script({"name": "x", "attempts": list(steps)})


def connection(provider: Served) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(provider.address).netloc, timeout=5)


def ask(provider: Served, body: Any = None, **options: Any) -> http.client.HTTPResponse:
    sent = body if isinstance(body, bytes) else json.dumps(body or ASKED).encode()
    talk = connection(provider)
    method, path = options.get("method", "POST"), options.get("path", "/v1/chat/completions")
    talk.request(method, path, body=sent, headers={"content-type": "application/json"})
    return talk.getresponse()


@contextmanager
def raw(provider: Served) -> Iterator[socket.socket]:
    """A bare connection that has asked."""
    body = json.dumps(ASKED).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    where = urlsplit(provider.address)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=5) as talk:
        talk.sendall(head.encode() + body)
        yield talk


def read(talk: socket.socket, until: bytes = b"\0") -> bytes:
    """What comes until the end, or until `until` has come."""
    got = b""
    while until not in got and (piece := talk.recv(65_536)):
        got += piece
    return got


def noted(provider: Served, kind: str) -> list[dict[str, Any]]:
    return [event for event in provider.events() if event["kind"] == kind]


def soon(true: Callable[[], Any], seconds: float) -> bool:
    """Whether `true()` comes true within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return bool(true())


def listens(address: str) -> bool:
    where = urlsplit(address)
    try:
        socket.create_connection((where.hostname or "", where.port or 0), timeout=1).close()
    except OSError:
        return False
    return True


def test_a_drop_resets_the_connection_inside_the_body() -> None:
    with serve(load("drop-after-text"), speed=50) as provider, raw(provider) as talk:
        got = read(talk, b"was sent ")
        assert b"was sent " in got
        pieces = [got]
        with pytest.raises(ConnectionResetError):
            pieces.extend(iter(partial(talk.recv, 65_536), b""))
        assert LAST_CHUNK not in b"".join(pieces)


def test_a_clean_end_ends_the_body_and_keeps_the_connection() -> None:
    with serve(load("cut-off"), speed=50) as provider, raw(provider) as talk:
        got = read(talk, LAST_CHUNK)
        assert got.endswith(LAST_CHUNK)
        assert b'finish_reason": "' not in got
        assert b"[DONE]" not in got


def test_a_stall_keeps_the_stream_open_until_the_client_goes_and_that_is_noted() -> None:
    with serve(load("stall-after-text"), speed=50) as provider:
        with raw(provider) as talk:
            read(talk, b"Step 1 done. ")
            talk.settimeout(0.3)
            with pytest.raises(TimeoutError):
                talk.recv(1)
            assert noted(provider, "left") == []
        assert soon(lambda: noted(provider, "left"), 2)


def test_a_client_that_goes_before_the_answer_begins_is_noted() -> None:
    with serve(attempts([{"wait": 3600, "say": "a"}])) as provider:
        with raw(provider):
            assert soon(lambda: noted(provider, "request"), 2)
        assert soon(lambda: noted(provider, "left"), 2)


def test_an_endless_stream_ends_with_its_client() -> None:
    with serve(attempts([{"forever": [{"say": "x" * 1000}]}])) as provider:
        with raw(provider) as talk:
            read(talk, b"xxx")
        assert soon(lambda: noted(provider, "left"), 3)
        assert ask(provider, path="/", method="GET").status == 200


def test_each_request_plays_the_next_attempt() -> None:
    with serve(load("error-after-text"), speed=50) as provider:
        first, second = (ask(provider).read().decode() for _ in range(2))
    assert ("internal error" in first, "[DONE]" in first) == (True, False)
    assert ("internal error" in second, "[DONE]" in second) == (False, True)


def test_speed_divides_the_waits_and_times_are_told_in_the_scripts_seconds() -> None:
    start = time.monotonic()
    with serve(attempts([{"wait": 10, "say": "a"}]), speed=50) as provider:
        ask(provider).read()
        assert time.monotonic() - start < 5
        (asked,), (said,) = noted(provider, "request"), noted(provider, "say")
        assert 9.5 < said["time"] - asked["time"] < 40


def test_the_help_page_gives_a_line_that_works() -> None:
    with serve(load("plain-answer"), speed=50) as provider:
        told = ask(provider, path="/", method="GET").read().decode()
        words = shlex.split(next(line for line in told.splitlines() if line.startswith("curl")))
        assert words[2] == f"{provider.address}/v1/chat/completions"
        assert ask(provider, json.loads(words[words.index("-d") + 1])).status == 200


BAD = (
    b" ",
    b"{",
    b"[1]",
    b"\xff",
    b"[" * 100_000,
    b"{}",
    b'{"model": "m", "messages": [{}], "stream": "true"}',
)


def test_a_bad_request_gets_a_clear_error_and_plays_no_attempt() -> None:
    with serve(load("plain-answer"), speed=50) as provider:
        for body in BAD:
            answer = ask(provider, body)
            error = json.loads(answer.read())["error"]
            assert (answer.status, error["type"]) == (400, "invalid_request_error")
            assert '"stream": true' in error["message"]
        assert noted(provider, "request") == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/responses"),
        ("GET", "/%2e%2e/etc/passwd"),
        ("DELETE", "/"),
    ],
)
def test_an_unknown_route_says_what_there_is(method: str, path: str) -> None:
    with serve(load("plain-answer"), speed=50) as provider:
        answer = ask(provider, method=method, path=path)
        assert answer.status == 404
        assert "POST /v1/chat/completions" in json.loads(answer.read())["error"]["message"]


def test_it_is_reached_from_this_machine_only() -> None:
    with serve(load("plain-answer")) as provider:
        assert urlsplit(provider.address).hostname == "127.0.0.1"


def test_a_taken_port_is_one_line_with_the_cure() -> None:
    with serve(load("plain-answer")) as provider:
        port = urlsplit(provider.address).port
        again = serve(load("plain-answer"), port=port or 0)
        with pytest.raises(ServerError, match=f"port {port} cannot .*choose another, or 0"), again:
            pass


def test_a_process_that_dies_at_once_is_an_error_and_not_a_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    for text in ("short", "x" * 1_000_000):
        never = serve(attempts([{"say": text}]))
        with pytest.raises(ServerError, match="ended before it served anything"), never:
            pass


def test_the_process_ends_with_the_block_even_with_a_client_in_a_stall() -> None:
    with ExitStack() as later:
        with serve(load("stall-first")) as provider:
            later.enter_context(raw(provider))
            assert soon(lambda: noted(provider, "stall"), 2)
        assert not listens(provider.address)


PARENT = """
import sys, time
from labkit.providers.process import serve
from labkit.scenarios.scripts import load
with serve(load("stall-first")) as provider:
    print(provider.address, provider.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_nothing_outlives_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    address, pid = parent.stdout.readline().decode().split()
    parent.stdout.close()
    try:
        assert listens(address)
        parent.kill()
        parent.wait()
        assert soon(lambda: not listens(address), 2)
    finally:
        if listens(address):
            os.kill(int(pid), signal.SIGKILL)


PARENT_WITH_A_CHILD = PARENT.replace("time.sleep(60)", "os.fork(); time.sleep(8)")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_that_holds_the_pipe_keeps_no_provider_alive() -> None:
    line = [sys.executable, "-c", PARENT_WITH_A_CHILD.replace("import sys", "import os, sys")]
    parent = subprocess.Popen(line, stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    address, _ = parent.stdout.readline().decode().split()
    parent.stdout.close()
    time.sleep(0.3)  # the fork follows the line
    parent.kill()
    parent.wait()
    assert soon(lambda: not listens(address), 5)


# The command


def command(*words: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "labkit", "provider", *words],
        cwd=ROOT,
        env={**os.environ, "LABKIT_ENVIRONMENT": "current"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_the_command_serves_until_ctrl_c_and_ends_cleanly() -> None:
    with command("stall-first", "--speed", "50") as process:
        assert process.stdout is not None
        told = "".join(process.stdout.readline() for _ in range(4))
        found = re.search(r"http://127\.0\.0\.1:\d+", told)
        assert found is not None
        with raw(Served(found[0], process.pid)) as talk:
            read(talk, b"\r\n\r\n")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (0, "", "")
    assert f"curl -N {found[0]}/v1/chat/completions" in told
    assert not listens(found[0])


def test_the_command_takes_the_path_of_a_script(tmp_path: Path) -> None:
    path = tmp_path / "my.json"
    path.write_text('{"name": "mine", "attempts": [[{"wait": -1}]]}')
    with command(str(path)) as process:
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("labkit: my.json, line 1: 'wait' must be")
    assert err.count("\n") == 1


def test_the_command_refuses_what_it_cannot_serve_in_one_line() -> None:
    with serve(load("plain-answer")) as provider:
        taken = str(urlsplit(provider.address).port)
        for words, says in (
            (["no-such"], "there is no script 'no-such'; there is: cut-off"),
            (["no-such.json"], "no-such.json, No such file"),
            (["/"], "there is no script '/'"),
            (["plain-answer", "--port", taken], f"port {taken} cannot be had: "),
            (["plain-answer", "--port", "70000"], "port 70000 cannot be had: "),
        ):
            with command(*words) as process:
                out, err = process.communicate(timeout=20)
            assert (process.returncode, out) == (2, ""), words
            assert says in err
            assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [[], ["x", "--port", "a"], ["x", "--speed", "0"], ["x", "--speed", "nan"]], ids=str
)
def test_the_command_refuses_a_senseless_option(words: list[str]) -> None:
    with command(*words) as process:
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, "")
    assert "error:" in err
    assert "Traceback" not in err
