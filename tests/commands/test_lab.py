"""`python -m labkit lab`, as a real process where it must be."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from labkit.commands import copies, lab, sandbox, system

NAMES = [path.name for path in copies.tracked()]


def started(folder: pathlib.Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "labkit", "lab", *arguments],
        env={**sandbox.variables(folder), "LABKIT_ENVIRONMENT": "current"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def first_address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"(http://127\.0\.0\.1:\d+/lab\S*)", line)
        if found:
            return found[1]
    raise AssertionError("the lab printed no address")


def answers(address: str) -> bool:
    """Whether it answers, in the end: JupyterLab prints its address and then listens."""
    for _ in range(200):
        try:
            return urllib.request.urlopen(address, timeout=20).status == 200
        except urllib.error.URLError:
            time.sleep(0.1)
    return False


@pytest.mark.socket
def test_a_taken_port_is_no_failure_and_ctrl_c_ends_everything(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = started(tmp_path, "--port", str(port), "--no-browser")
        try:
            address = first_address(process)
            assert f":{port}/" not in address
            assert answers(address)
            os.kill(process.pid, signal.SIGINT)
            process.communicate(timeout=60)
        finally:
            end(process)
    assert process.returncode == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)
    made = sorted(path.name for path in (tmp_path / "labkit_work").glob("*.ipynb"))
    assert made == NAMES
    assert f"/lab/tree/{NAMES[0]}?token=" in address


@pytest.mark.socket
def test_a_missing_browser_and_a_token_of_the_learners_own_hide_no_address(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", "no-such-browser")
    monkeypatch.setenv("JUPYTER_TOKEN", "of-another-lab")
    process = started(tmp_path, "--port", "0")
    try:
        assert answers(first_address(process))
    finally:
        end(process)


def test_nothing_of_another_lab_is_taken_over(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"LABKIT_WORK": str(tmp_path), "JUPYTER_TOKEN": "t", "JUPYTER_CONFIG_DIR": "elsewhere"}
    monkeypatch.setattr(os, "environ", {**os.environ, **own})
    lines: list[list[str]] = []
    monkeypatch.setattr(system, "hand_over", lambda line: lines.append(line) or 0)
    assert lab.main(["--fresh", "00", "--port", "0"]) == 0
    assert lines == [lab.command(NAMES[0], 0)]
    assert "JUPYTER_TOKEN" not in os.environ
    assert os.environ["JUPYTER_CONFIG_DIR"] == str(tmp_path / ".jupyter")


def test_a_notebook_that_does_not_exist_is_refused_with_those_there_are(
    tmp_path: pathlib.Path,
) -> None:
    said, _ = started(tmp_path, "--fresh", "99").communicate(timeout=60)
    assert "there is no notebook '99'; there are: " in said


def test_the_lab_listens_on_this_machine_only() -> None:
    assert "--ServerApp.ip=127.0.0.1" in lab.command("00_start_here.ipynb", 0)


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_that_is_none_is_refused_before_anything_starts(port: str) -> None:
    with pytest.raises(SystemExit):
        lab.main([f"--port={port}"])
