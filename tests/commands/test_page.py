"""`python -m labkit page`: a script's answers on a page, and one line for what is no good."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from labkit.commands import page
from labkit.commands.environment import Missing

pytestmark = pytest.mark.socket


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the address that it says."""
    with subprocess.Popen(
        [sys.executable, "-m", "labkit", "page", *arguments],
        env={**os.environ, "LABKIT_ENVIRONMENT": "current"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert found is not None
            yield process, found[0]
        finally:
            process.kill()


def test_it_serves_the_page_of_a_script_and_ctrl_c_ends_it_quietly() -> None:
    with running("vpn-whole", "--cut", "mid_frame@2", "--speed", "50") as (process, address):
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert b"<title>" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "there is no script 'nope'"),
        (["vpn-whole", "--port", "99999"], "port 99999 cannot be had"),
    ],
)
def test_a_script_or_a_port_that_is_no_good_is_named(arguments: list[str], words: str) -> None:
    with pytest.raises(Missing, match=words):
        page.main(arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["vpn-whole", "--cut", "what@3"], "no cut 'what'; there is: whole, mid_frame"),
        (["vpn-whole", "--cut", "mid_frame@x"], "invalid literal"),
        (["vpn-whole", "--speed", "0"], "the speed is a number above 0"),
    ],
)
def test_a_cut_or_a_speed_that_is_no_good_says_what_there_is(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        page.main(arguments)
    assert words in capsys.readouterr().err
