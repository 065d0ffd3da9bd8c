"""What the service promises in numbers, and what it does at its edges: bodies, cookies, ends.

The numbers stand here as users are told them, and are not read from the code.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import pytest

from labkit.recovery.event_log import Entry
from labkit.runs.api.access import BadTokens, users_of
from labkit.runs.api.streams import EventStream, Places
from labkit.runs.job import Step, Work
from labkit.stores.errors import StoreDown
from tests.runs.api.kit import ANN, ASKED, TOKENS, Desk, Talk, code, in_memory
from tests.simulation.kit import virtually

JSON = {"content-type": "application/json"}
PLAIN = {"content-type": "text/plain"}
HALF = "\ud83d"  # of a pair, as a model may say it


def pieces(*texts: bytes) -> Iterator[bytes]:
    """A body that is sent in pieces, so that nobody says how long it is."""
    yield from texts


# --- what is sent


def test_a_body_has_at_most_64_kib(desk: Desk) -> None:
    body = b"[" + b" " * 65_534 + b"]"
    assert desk.ann.post("/runs", content=body, headers=JSON).status_code == 422
    refused = desk.ann.post("/runs", content=body + b" ", headers=JSON)
    assert code(refused) == (413, "TooLarge")
    assert "64 KiB" in refused.json()["error"]["message"]


def test_a_correction_must_be_json_and_say_so(desk: Desk) -> None:
    body = b'{"text": "A budget of 6,000"}'
    assert code(desk.ann.put("/memories/m-1", content=body, headers=PLAIN)) == (415, "NoJSON")
    assert desk.ann.put("/memories/m-1", content=body, headers=JSON).status_code == 200


def test_what_is_sent_in_pieces_must_be_json_and_say_so(desk: Desk) -> None:
    body = (b'{"question": ', b'"Which?"}')
    assert desk.ann.post("/runs", content=pieces(*body), headers=PLAIN).status_code == 415
    assert desk.ann.post("/runs", content=pieces(*body), headers=JSON).status_code == 201


@pytest.mark.parametrize("tenant", ["", "a b", "é"])
def test_a_tenant_that_is_named_has_a_name(tenant: str) -> None:
    with pytest.raises(BadTokens):
        users_of(f"{tenant}/ann:{TOKENS[ANN]}")


# --- what is answered


@pytest.mark.parametrize("path", ["/", "/page/page.html", "/runs"])
def test_only_a_page_of_this_machine_may_show_the_page_in_a_frame(path: str, desk: Desk) -> None:
    policy = desk.ann.get(path).headers["content-security-policy"].split("; ")
    assert "frame-ancestors 'self' http://127.0.0.1:*" in policy


def test_signing_out_takes_the_cookie_out_of_the_browser(desk: Desk) -> None:
    cookie = desk.ann.post("/sign-out").headers["set-cookie"]
    assert "Max-Age=0" in cookie.split("; ")


def test_a_store_that_is_gone_is_to_be_asked_again_in_two_seconds(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*given: Any, **more: Any) -> None:
        raise StoreDown("it is gone")

    monkeypatch.setattr(desk.store, "runs", gone)
    refused = desk.ann.get("/runs")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")


def test_a_stream_says_that_a_browser_comes_back_after_a_second(desk: Desk) -> None:
    run = desk.begun()
    desk.finishes(run)
    assert desk.ann.get(f"/runs/{run}/events").text.startswith("retry: 1000\n\n")


# --- reports


@pytest.mark.parametrize("path", ["", "/report", "/events"])
def test_a_run_of_another_kind_is_none_here(path: str, desk: Desk) -> None:
    run = asyncio.run(desk.store.submit("order", ASKED, owner=ANN))
    assert code(desk.ann.get(f"/runs/{run.run_id}{path}")) == (404, "UnknownRun")


def test_half_a_character_breaks_no_report(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def told(*given: Any) -> str:
        return f"Take {HALF} it."

    monkeypatch.setattr(desk.talk, "report", told)
    report = desk.ann.get(f"/runs/{desk.begun()}/report")
    assert (report.status_code, report.text) == (200, "Take ? it.")


def test_a_report_has_the_events_of_a_long_run(desk: Desk) -> None:
    run = desk.begun()
    for _ in range(7):
        desk.fails(run)
        asyncio.run(desk.store.retry(run, ANN))
    known = desk.get(run)
    assert known is not None
    assert known.seq > 14
    assert f"{known.seq} events" in desk.ann.get(f"/runs/{run}/report").text


# --- what ends


def test_a_cancel_ends_the_work_here_before_it_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def endless(self: Talk, work: Work) -> AsyncGenerator[Step, None]:
        try:
            begun.set()
            await asyncio.Event().wait()
            yield Step("never", {}, None)
        finally:
            ended.set()

    monkeypatch.setattr(Talk, "job", endless)
    with in_memory() as store, (desk := Desk(store)).ann as client:
        run = desk.begun()
        assert begun.wait(10.0)
        assert not ended.is_set()
        assert client.post(f"/runs/{run}/cancel").status_code == 200
        assert ended.is_set()


def test_the_service_ends_when_the_last_of_its_work_has_ended(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program() -> list[float]:
        closing, ended = asyncio.Event(), []

        async def serve() -> None:
            await closing.wait()
            await asyncio.sleep(5.0)
            ended.append(asyncio.get_running_loop().time())

        async def shutdown() -> None:
            closing.set()

        monkeypatch.setattr(desk.manager, "serve", serve)
        monkeypatch.setattr(desk.manager, "shutdown", shutdown)
        app: Any = desk.app.app
        async with app.router.lifespan_context(app):
            await asyncio.sleep(1.0)
        return list(ended)

    assert virtually(program()) == [6.0]


class Watched:
    """A log of one event, that notes when its reader has let go of it."""

    def __init__(self) -> None:
        self.left = False

    def cursor(self, sequence: int) -> str:
        return str(sequence)

    async def follow(
        self, cursor: str = "", *, idle: float | None = None
    ) -> AsyncGenerator[Entry | None, None]:
        try:
            yield Entry(1, "node_finished", "{}")
            await asyncio.Event().wait()
        finally:
            self.left = True


def after(seconds: float, message: Any = None) -> Callable[..., Any]:
    """Does nothing for so long."""

    async def wait(*given: Any) -> Any:
        await asyncio.sleep(seconds)
        return message

    return wait


def test_a_reader_that_leaves_while_it_is_sent_something_lets_go_of_the_log() -> None:
    log = Watched()

    async def program() -> bool:
        stream = EventStream(log, "", ANN, Places(), heartbeat=15.0)
        # The start and the first words take two seconds each; in the third it goes.
        await stream({"type": "http"}, after(5.0, {"type": "http.disconnect"}), after(2.0))
        return log.left

    assert virtually(program())
