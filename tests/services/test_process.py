"""The service in a process of its own: it answers, and it never outlives who started it."""

import http.client
import json
import os
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from labkit.providers.process import ServerError, running
from labkit.providers.script import script
from labkit.recovery.sse import SSEDecoder, SSEEvent
from labkit.recovery.stream import RecoveryLimits
from labkit.scenarios.scripts import load
from labkit.services import Cut, serve
from tests.services.served import ANN

pytestmark = pytest.mark.socket

ROOT = Path(__file__).parents[2]


def ask(address: str, method: str, path: str, body: Any = None) -> Any:
    talk = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    talk.request(method, path, json.dumps(body), {**ANN, "content-type": "application/json"})
    answered = talk.getresponse()
    told = answered.read()
    talk.close()
    return json.loads(told) if answered.headers["content-type"] == "application/json" else told


def watched(address: str, run_id: str) -> list[SSEEvent]:
    return SSEDecoder().feed(ask(address, "GET", f"/answers/{run_id}/events"))


def alive(pid: int) -> bool:
    """Whether the process is there, and no zombie that waits for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(pid)


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc")


def test_every_answer_plays_the_script_from_its_first_attempt() -> None:
    with serve(load("drop-after-text"), speed=50, can_continue=True) as service:
        for _ in range(2):
            run_id = ask(service.address, "POST", "/answers", {"question": "Why?"})["id"]
            told = watched(service.address, run_id)
            assert [json.loads(e.data)["state"] for e in told if e.event == "status"] == [
                "generating",
                "recovering",
                "done",
            ]
            view = ask(service.address, "GET", f"/answers/{run_id}")
            assert view["segments"] == ["The refund was sent on Monday."]


def test_a_connection_gets_the_cut_that_is_planned_for_it() -> None:
    with serve(load("plain-answer"), speed=50, cuts=[Cut("clean_end", 2)]) as service:
        run_id = ask(service.address, "POST", "/answers", {"question": "Why?"})["id"]
        first, second = (watched(service.address, run_id) for _ in range(2))
        assert (len(first), second[-1].event) == (2, "end")


def test_a_process_that_was_killed_leaves_a_record_that_can_be_continued(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'answers.db'}"
    waits = script({"name": "x", "attempts": [[{"say": "It was "}, {"wait": 600, "say": "never"}]]})
    goes_on = script({"name": "x", "attempts": [[{"say": "?"}], [{"say": "sent."}, DONE]]})
    with serve(waits, store=url) as service:
        run_id = ask(service.address, "POST", "/answers", {"question": "Why?"})["id"]
        until = time.monotonic() + 10
        while (view := ask(service.address, "GET", f"/answers/{run_id}"))["segments"] == [""]:
            assert time.monotonic() < until
        os.kill(service.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    limits = RecoveryLimits(recoveries=0)
    with serve(goes_on, store=url, can_continue=True, limits=limits) as service:
        view = ask(service.address, "GET", f"/answers/{run_id}")
        assert (view["status"], view["segments"]) == ("interrupted", ["It was "])
        ask(service.address, "POST", f"/answers/{run_id}/continue")
        assert watched(service.address, run_id)[-1].event == "end"
        assert ask(service.address, "GET", f"/answers/{run_id}")["segments"] == ["It was sent."]


DONE = {"finish": "stop"}


@needs_proc
def test_the_process_ends_with_the_block_also_in_the_middle_of_an_answer() -> None:
    with serve(load("stall-first")) as service:
        ask(service.address, "POST", "/answers", {"question": "Why?"})
        assert alive(service.pid)
    assert gone_within(service.pid, 2)


def test_what_cannot_be_served_is_one_line_with_its_reason() -> None:
    for never, says in (
        (running("labkit.no_such_module"), "No module named 'labkit.no_such_module'"),
        (serve(load("plain-answer"), store="mysql:///x"), r"no store on mysql.*; use memory:"),
        (serve(load("plain-answer"), port=70_000), "port 70000 cannot be had"),
    ):
        with pytest.raises(ServerError, match=says), never:
            pass


START = """
from labkit.scenarios.scripts import load
from labkit.services import serve
context = serve(load("stall-first"))
service = context.__enter__()
print(service.pid, service.address)
"""


@needs_proc
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_kernel_that_is_killed_leaves_no_child(tmp_path: Path) -> None:
    from jupyter_client.manager import KernelManager

    kernel = KernelManager()
    kernel.start_kernel(cwd=str(ROOT), env={**os.environ, "IPYTHONDIR": str(tmp_path)})
    client = kernel.client()
    client.start_channels()
    pid = 0
    try:
        client.wait_for_ready(timeout=60)
        said: list[dict[str, Any]] = []
        client.execute_interactive(START, timeout=60, output_hook=said.append)
        printed = [told["content"]["text"] for told in said if told["msg_type"] == "stream"]
        number, address = "".join(printed).split()
        pid = int(number)
        assert ask(address, "GET", "/answers/x")["error"]["message"].startswith("there is no")
        assert alive(pid)
        kernel.signal_kernel(signal.SIGKILL)
        assert gone_within(pid, 5)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
        if pid and alive(pid):
            os.kill(pid, signal.SIGKILL)
