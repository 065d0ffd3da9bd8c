"""Streams of events over real sockets, and the places of their readers."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from labkit.recovery.event_log import Entry
from labkit.runs.api import streams
from labkit.runs.api.streams import EventStream, Patient, Places, TooManyStreams
from labkit.runs.job import Ask, Done, Step
from labkit.stores.errors import StoreDown
from tests.runs.api.kit import ANN, BOB, TOKENS, code
from tests.runs.api.played import Played, reading, served, soon
from tests.simulation.kit import virtually

over_sockets = pytest.mark.socket
PLAN = [Step("proposer", {"text": "Plan v1 猫👩‍💻"}), Step("critic", {"text": "a\n\nid: 99\n"})]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Played]:
    """The service, whose streams are soon heard of when they are silent."""
    with served(tmp_path, heartbeat=0.05) as made:
        yield made


# --- what comes


@over_sockets
def test_each_event_comes_as_soon_as_it_is_there_and_the_end_ends_the_stream(
    service: Played,
) -> None:
    run = service.begun()
    with service.client() as client, reading(client, run) as reader:
        assert reader.answered.headers["content-type"].startswith("text/event-stream")
        assert reader.answered.headers["cache-control"] == "no-cache"
        assert reader.answered.headers["x-accel-buffering"] == "no"
        reader.until("run_started")
        for step in PLAN:
            service.plays(step)
            before = len(reader.told)
            while len(reader.told) == before:
                reader.beats(reader.raw.count(b": alive\n") + 1)
        service.plays(Done({"conclusion": "so be it"}, "consensus"))
        told = reader.until("end")
        assert [event.event for event in told] == [
            "run_created",
            "run_started",
            "node_finished",
            "node_finished",
            "run_completed",
            "end",
        ]
        assert [event.id for event in told] == ["1", "2", "3", "4", "5", "5"]
        with pytest.raises(StopIteration):
            reader.until("more")


@over_sockets
def test_a_silent_run_sends_comments_that_move_no_cursor(service: Played) -> None:
    run = service.begun()
    with service.client() as client, reading(client, run) as reader:
        reader.until("run_started")
        reader.beats(3)
        assert [event.id for event in reader.told] == ["1", "2"]


@over_sockets
def test_a_reader_that_comes_back_with_its_cursor_gets_each_event_once(service: Played) -> None:
    run = service.begun()
    with service.client() as client:
        with reading(client, run) as reader:
            first = list(reader.until("run_started"))
        service.plays(*PLAN, Ask("how much?", {"asks": []}))
        with reading(client, run, first[-1].id) as reader:
            second = list(reader.until("awaiting_input"))
        assert client.post(f"/runs/{run}/cancel").status_code == 200
        with reading(client, run, second[-1].id) as reader:
            third = reader.until("end")
    told = [*first, *second, *third[:-1]]
    assert [event.id for event in told] == [str(number + 1) for number in range(len(told))]
    assert told[-1].event == "run_cancelled"


# --- who leaves


def torn(service: Played, run: str) -> socket.socket:
    """A reader's connection that will end with a reset."""
    host, port = service.address.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=10)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    token = f"authorization: Bearer {TOKENS[ANN]}"
    made.sendall(f"GET /runs/{run}/events HTTP/1.1\r\nhost: x\r\n{token}\r\n\r\n".encode())
    return made


@over_sockets
def test_a_reader_that_leaves_ends_its_stream_and_no_run(service: Played) -> None:
    run = service.begun()
    with service.client() as client:
        with reading(client, run) as reader:
            reader.until("run_started")
            assert service.taken() == 1
        assert soon(lambda: service.taken() == 0)
        service.plays(*PLAN, Done("so be it"))
        assert soon(lambda: client.get(f"/runs/{run}").json()["status"] == "completed")


@over_sockets
@pytest.mark.parametrize("heard", [True, False])
def test_a_connection_that_is_torn_gives_its_place_back(heard: bool, service: Played) -> None:
    run = service.begun()
    connection = torn(service, run)
    if heard:
        assert b"200 OK" in connection.recv(100)
        assert service.taken() == 1
    connection.close()
    assert soon(lambda: service.taken() == 0)
    with service.client() as client, reading(client, run) as reader:
        assert reader.until("run_started")


def test_a_reader_that_has_left_before_the_first_byte_gives_its_place_back() -> None:
    class Silent:
        def cursor(self, sequence: int) -> str:
            return str(sequence)

        async def follow(
            self, cursor: str = "", *, idle: float | None = None
        ) -> AsyncGenerator[Entry | None, None]:
            await asyncio.sleep(1e6)
            yield None

    places = Places()
    sent: list[Any] = []

    async def left() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        await asyncio.sleep(1.0)
        sent.append(message)

    async def work() -> None:
        stream = EventStream(Silent(), "", ANN, places, heartbeat=15.0)
        await stream({"type": "http"}, left, send)

    virtually(work())
    assert places._taken.total() == 0
    assert sent == []


# --- how many


@over_sockets
def test_a_user_has_six_streams_and_others_have_theirs(service: Played) -> None:
    run, bobs = service.begun(), service.begun(BOB)
    with service.client() as client, service.client(BOB) as bob, ExitStack() as open_ones:
        readers = [open_ones.enter_context(reading(client, run)) for _ in range(6)]
        assert all(reader.until("run_created") for reader in readers)
        refused = client.get(f"/runs/{run}/events")
        assert code(refused) == (429, "TooManyStreams")
        assert int(refused.headers["retry-after"]) > 0
        with reading(bob, bobs) as reader:
            assert reader.until("run_created")
        open_ones.close()
        assert soon(lambda: service.taken() == 0)
        with reading(client, run) as reader:
            assert reader.until("run_created")


@over_sockets
def test_a_server_has_so_many_streams_whoever_reads_them(tmp_path: Path) -> None:
    with served(tmp_path, Places(per_server=2)) as service:
        run, bobs = service.begun(), service.begun(BOB)
        with service.client() as client, service.client(BOB) as bob:
            with reading(client, run), reading(bob, bobs) as reader:
                reader.until("run_created")
                assert client.get(f"/runs/{run}/events").status_code == 429
            assert soon(lambda: service.taken() == 0)
            with reading(client, run) as reader:
                assert reader.until("run_created")


def test_the_usual_limits_are_those_that_are_told() -> None:
    places = Places()
    with ExitStack() as taken:
        for _ in range(6):
            taken.enter_context(places.one(ANN))
        with pytest.raises(TooManyStreams), places.one(ANN):
            pass
        for number in range(194):
            owner = type(ANN)(user=f"user-{number}", tenant="lab")
            taken.enter_context(places.one(owner))
        with pytest.raises(TooManyStreams), places.one(BOB):
            pass
    assert places._taken == {}


# --- a store that is gone, and a service that ends


@over_sockets
def test_a_store_that_is_gone_for_a_while_costs_a_reader_nothing_but_time(
    service: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*given: Any, **more: Any) -> None:
        raise StoreDown("it is gone")

    monkeypatch.setattr(streams, "LOOK", 0.05)
    run = service.begun()
    with service.client() as client, reading(client, run) as reader:
        reader.until("run_started")
        with monkeypatch.context() as patched:
            patched.setattr(service.store, "get", gone)
            service.plays(*PLAN, Done("so be it"))
            beats = reader.raw.count(b": alive\n")
            reader.beats(beats + 5)
            assert client.get(f"/runs/{run}").status_code == 503
        told = reader.until("end")
        assert [event.id for event in told] == ["1", "2", "3", "4", "5", "5"]


@over_sockets
def test_a_bug_in_the_middle_of_a_stream_cuts_it_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*given: Any, **more: Any) -> None:
        raise ZeroDivisionError("password=hunter2")

    told: list[Any] = []
    with served(tmp_path, observe=lambda *kind, **more: told.append((kind, more))) as service:
        run = service.begun()
        with service.client() as client, reading(client, run) as reader:
            reader.until("run_started")
            monkeypatch.setattr(service.store, "get", breaks)
            service.plays(*PLAN)
            with pytest.raises(httpx.TransportError):
                reader.until("end")
        assert soon(lambda: told == [(("failed",), {"error": "ZeroDivisionError"})])
        assert soon(lambda: service.taken() == 0)


def test_ten_seconds_without_a_store_lose_no_event_and_double_none() -> None:
    class Gone:
        """Its store is gone between the second and the third event, for ten seconds."""

        def cursor(self, sequence: int) -> str:
            return str(sequence)

        async def follow(
            self, cursor: str = "", *, idle: float | None = None
        ) -> AsyncGenerator[Entry | None, None]:
            clock = asyncio.get_running_loop().time
            for number in range(int(cursor or 0) + 1, 5):
                if number == 3 and clock() < 10.0:
                    raise StoreDown("it is gone")
                yield Entry(number, "node_finished", "{}")

    async def work() -> list[int]:
        return [entry.sequence async for entry in Patient(Gone()).follow() if entry]

    assert virtually(work()) == [1, 2, 3, 4]


@over_sockets
def test_a_service_that_ends_waits_for_no_reader_and_hands_its_runs_back(tmp_path: Path) -> None:
    with ExitStack() as readers:
        with served(tmp_path) as service:
            run = service.begun()
            client = readers.enter_context(service.client())
            reader = readers.enter_context(reading(client, run))
            reader.until("run_started")
            ended = time.monotonic()
        assert time.monotonic() - ended < 10
        with pytest.raises(httpx.TransportError):  # no end that would say that all was told
            reader.until("end")
    with served(tmp_path) as service, service.client() as client:
        with reading(client, run, reader.told[-1].id) as again:
            assert again.until("run_started")[0].id == "3"
        service.plays(Done("so be it"))
        assert soon(lambda: client.get(f"/runs/{run}").json()["status"] == "completed")
