"""The provider's process stands apart from the one that started it."""

import os

import pytest

from labkit.providers.process import serve
from labkit.scenarios.scripts import load

pytestmark = pytest.mark.socket


def test_an_interrupt_of_the_kernels_group_does_not_reach_the_provider() -> None:
    with serve(load("plain-answer")) as provider:
        assert os.getsid(provider.pid) == provider.pid


def test_events_are_asked_for_past_every_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody listens there
    with serve(load("plain-answer")) as provider:
        assert provider.events() == []
