"""`python -m labkit lab`, as a real process where it must be."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import webbrowser

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


def first_address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"open at (http://127\.0\.0\.1:\d+/lab\S*)", line)
        if found:
            return found[1]
    raise AssertionError("the lab printed no address")


@pytest.mark.socket
def test_a_taken_port_is_no_failure_and_ctrl_c_ends_everything(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = started(tmp_path, "--port", str(port), "--no-browser")
        try:
            address = first_address(process)
            assert f":{port}/" not in address
            assert urllib.request.urlopen(address, timeout=20).status == 200
            os.kill(process.pid, signal.SIGINT)
            process.communicate(timeout=20)
        finally:
            system.end(process)
    assert process.returncode == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)
    made = sorted(path.name for path in (tmp_path / "work").glob("*.ipynb"))
    assert made == NAMES
    if NAMES:
        assert f"/lab/tree/{NAMES[0]}?token=" in address


def test_a_missing_browser_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(lab, "command", lambda port: [sys.executable, "-c", ""])
    monkeypatch.setattr(lab, "address", lambda *_: "the address")
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert lab.serve("", tmp_path, 1, opens=True) == 0
    printed = capsys.readouterr().out
    assert "JupyterLab is open at the address" in printed
    assert "no browser was found here: open the address above" in printed


def test_a_jupyterlab_that_does_not_start_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(lab, "command", lambda port: [sys.executable, "-c", ""])
    assert lab.serve("", tmp_path, 1, opens=True) == 1
    assert "`python -m labkit doctor` says more" in capsys.readouterr().out


def test_a_notebook_that_does_not_exist_is_refused_with_those_there_are(
    tmp_path: pathlib.Path,
) -> None:
    said, _ = started(tmp_path, "--fresh", "99").communicate(timeout=30)
    assert "there is no notebook '99'; there are: " in said


def test_the_lab_listens_on_this_machine_only() -> None:
    assert "--ServerApp.ip=127.0.0.1" in lab.command(8888)
