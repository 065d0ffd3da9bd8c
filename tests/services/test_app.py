"""The service over real sockets, with real clients: httpx, and the unmodified openai client."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from labkit.providers.wire import Dropped, Head
from labkit.recovery.event_log import EventLog
from labkit.recovery.sse import SSEDecoder, SSEEvent
from labkit.recovery.stream import RecoveryLimits, StreamRun
from labkit.recovery.stream.receiving import Services
from labkit.services.answers import Answers
from labkit.services.app import Service
from labkit.services.asked import MOST_BYTES
from labkit.services.cuts import KINDS, Cut
from labkit.stores import open_stream_store
from labkit.stores.memory import MemoryStreamStore
from tests.services.reading import Reader
from tests.services.served import ANN, BOB, DROP, FINISH, SECRET, Served, served
from tests.simulation.kit import virtually

pytestmark = pytest.mark.socket

PIECES = ["It was ", "sent on ", "Monday. 猫👩‍💻"]
WHOLE = "".join(PIECES)
MODEL: dict[str, Any] = {"ask": None, "policy": None, "random": None}  # of no use to events
ASKED = {"model": "any", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


@contextmanager
def talking(service: Served, headers: dict[str, str] | None = None) -> Iterator[httpx.Client]:
    whose = ANN if headers is None else headers
    plain = {"trust_env": False, "verify": False}  # certificates take time to load
    with httpx.Client(base_url=service.address, headers=whose, timeout=10, **plain) as client:
        yield client


def begin(client: httpx.Client) -> str:
    answered = client.post("/answers", json={"question": "Why?"})
    assert answered.status_code == 201
    return str(answered.json()["id"])


def events(client: httpx.Client, run_id: str, cursor: str = "") -> list[SSEEvent]:
    """The events of one connection."""
    headers = {"last-event-id": cursor} if cursor else {}
    decoder = SSEDecoder()
    with client.stream("GET", f"/answers/{run_id}/events", headers=headers) as answered:
        assert answered.status_code == 200
        return [event for piece in answered.iter_raw() for event in decoder.feed(piece)]


def text(told: list[SSEEvent]) -> str:
    return "".join(json.loads(e.data)["text"] for e in told if e.event == "text_delta")


def soon(true: Callable[[], Any], seconds: float = 5.0) -> bool:
    """Whether `true()` comes true within so many seconds."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(true())


# --- the events


def test_an_answer_is_started_watched_and_loaded() -> None:
    with served() as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(*PIECES, FINISH)
        told = events(client, run_id)
        assert (text(told), told[-1].event) == (WHOLE, "end")
        view = client.get(f"/answers/{run_id}").json()
        assert (view["status"], view["segments"]) == ("done", [WHOLE])
        assert view["cursor"] == told[-2].id == told[-1].id  # the end has brought none


def test_the_answer_of_a_stream_of_events_says_that_nothing_may_keep_it_back() -> None:
    with served() as service, talking(service) as client:
        run_id = begin(client)
        with client.stream("GET", f"/answers/{run_id}/events") as answered:
            headers = answered.headers
            assert headers["content-type"].startswith("text/event-stream")
            assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-cache", "no")


@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_on_the_socket_leaves_the_text_once_and_whole(kind: str) -> None:
    plan = [Cut(kind, 2), Cut(kind, 1)]
    with served(cuts=plan) as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(*PIECES, FINISH)
        reader = read_all(service, run_id)
        assert (reader.record.text, reader.ended) == (WHOLE, True)
        strikes = {"whole": 1, "drip": 1, "twice": 1, "swapped": 3}
        assert reader.connections == strikes.get(kind, 3)


def read_all(service: Served, run_id: str) -> Reader:
    """The same reader as in virtual time, over httpx."""
    reader = Reader()

    async def work() -> None:
        async with httpx.AsyncClient(base_url=service.address, trust_env=False) as client:

            async def connect(cursor: str) -> AsyncGenerator[bytes, None]:
                headers = {**ANN, "last-event-id": cursor}
                path = f"/answers/{run_id}/events"
                async with client.stream("GET", path, headers=headers) as answered:
                    assert answered.status_code == 200
                    try:
                        async for piece in answered.aiter_raw():
                            yield piece
                    except httpx.TransportError:
                        raise Dropped from None

            await reader.read(connect)

    asyncio.run(work())
    return reader


def test_a_reset_is_a_reset_and_not_a_clean_end() -> None:
    with served(cuts=[Cut("mid_frame", 1)]) as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(*PIECES)
        with pytest.raises(httpx.ReadError):
            events(client, run_id)


def test_a_cursor_goes_in_the_header_or_in_the_address_and_the_header_counts() -> None:
    with served() as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(*PIECES, FINISH)
        told = events(client, run_id)
        assert text(events(client, run_id, told[1].id)) == "".join(PIECES[1:])
        path = f"/answers/{run_id}/events?after={told[1].id}"
        assert text(events_at(client, path, {})) == "".join(PIECES[1:])
        assert text(events_at(client, path, {"last-event-id": told[2].id})) == PIECES[2]


def events_at(client: httpx.Client, path: str, headers: dict[str, str]) -> list[SSEEvent]:
    return SSEDecoder().feed(client.get(path, headers=headers).content)


@pytest.mark.parametrize("cursor", ["other:1", "nonsense", "{log}:99", "{log}:-1"])
def test_a_cursor_that_cannot_be_honoured_is_refused_by_name_before_the_stream(cursor: str) -> None:
    with served() as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(*PIECES, FINISH)
        log = events(client, run_id)[0].id.rpartition(":")[0]
        refused = client.get(
            f"/answers/{run_id}/events", headers={"last-event-id": cursor.format(log=log)}
        )
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (409, "ForeignCursor")
        assert "load GET /answers/ID" in error["message"]


def test_a_reader_whose_next_event_is_gone_is_cut_off_without_an_end() -> None:
    async def work() -> list[bytes | Head]:
        log = EventLog("answer-1.a", keep=2)
        log.append("1")
        service = Service(Answers(MemoryStreamStore(), partial(Services, **MODEL)))
        pieces = service._events(log, "")
        read = [await anext(pieces) for _ in range(3)]
        for number in range(2, 6):
            log.append(str(number))
        log.close()
        return read + [piece async for piece in pieces]

    head, retry, first = virtually(work())
    assert (head.status, retry) == (200, b"retry: 1000\n\n")
    assert first.startswith(b"id: answer-1.a:1\n")


def test_a_silent_answer_sends_comments_that_move_no_cursor() -> None:
    with served(heartbeat=0.02) as service, talking(service) as client:
        run_id = begin(client)
        decoder, found = SSEDecoder(), b""
        with client.stream("GET", f"/answers/{run_id}/events") as answered:
            for piece in answered.iter_raw():
                found += piece
                decoder.feed(piece)
                if found.count(b"\n\n") >= 5:  # retry, status, and what comes of silence
                    break
        assert found.count(b": alive") >= 3
        assert decoder.last_event_id.endswith(":1")
        assert found.count(b"id: ") == 1


def test_a_reader_that_leaves_is_noted_and_stops_nothing() -> None:
    with served() as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(PIECES[0])
        with client.stream("GET", f"/answers/{run_id}/events") as answered:
            pieces = answered.iter_raw()
            next(pieces)
            assert service.notes("reader_left") == 0
        assert soon(lambda: service.notes("reader_left"))
        service.model.says(*PIECES[1:], FINISH)
        assert text(events(client, run_id)) == WHOLE
        assert not service.model.cancelled.is_set()


# --- stop and continue


def test_a_stop_is_final() -> None:
    with served() as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(PIECES[0])
        assert soon(lambda: client.get(f"/answers/{run_id}").json()["segments"] == [PIECES[0]])
        stopped = client.post(f"/answers/{run_id}/stop")
        assert (stopped.status_code, stopped.json()["status"]) == (200, "stopped")
        assert service.model.cancelled.is_set()
        assert service.notes("disconnect") == 0
        again = client.post(f"/answers/{run_id}/continue")
        assert (again.status_code, again.json()["error"]["message"]) == (
            409,
            "the answer is stopped: it does not go on",
        )


def test_a_failed_answer_is_continued_below_its_text() -> None:
    services = {"limits": RecoveryLimits(recoveries=0)}
    with served(services=services) as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(PIECES[0], DROP)
        assert events(client, run_id)[-2].data == '{"state": "failed"}'
        view = client.post(f"/answers/{run_id}/continue").json()
        service.model.says(*PIECES, FINISH)
        told = events(client, run_id, view["cursor"])
        assert text(told) == WHOLE
        assert client.get(f"/answers/{run_id}").json()["segments"] == [PIECES[0], WHOLE]
        assert client.post(f"/answers/{run_id}/continue").status_code == 409


# --- whose they are


def test_a_wrong_owner_and_an_unknown_id_get_the_same_answer() -> None:
    with served() as service, talking(service) as client, talking(service, BOB) as other:
        run_id = begin(client)
        for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/stop")):
            told = [other.request(method, f"/answers/{i}{path}") for i in (run_id, "x" * 16)]
            bodies = {one.text.replace(run_id, "x" * 16) for one in told}
            assert ({one.status_code for one in told}, len(bodies)) == ({404}, 1)
        assert client.get(f"/answers/{run_id}").json()["status"] == "generating"


def test_the_page_gives_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    with served() as service, talking(service, {}) as client:
        cookie = client.get("/").headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        run_id = begin(client)
        assert "set-cookie" not in client.get("/").headers
        with talking(service, {}) as other:
            other.get("/")
            assert other.get(f"/answers/{run_id}").status_code == 404


@pytest.mark.parametrize("site", ["cross-site", "same-site"])  # of another port too
def test_a_cookie_does_not_count_on_a_strange_page(site: str) -> None:
    with served() as service, talking(service, {}) as client:
        client.get("/")
        run_id = begin(client)
        refused = client.post(f"/answers/{run_id}/stop", headers={"sec-fetch-site": site})
        assert refused.status_code == 403
        assert client.get(f"/answers/{run_id}").json()["status"] == "generating"


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer short"}, {"cookie": "x=1"}])
def test_without_a_secret_nothing_is_served(headers: dict[str, str]) -> None:
    with served() as service, talking(service, headers) as client:
        for method, path in (("POST", "/answers"), ("GET", "/answers/x"), ("POST", CHAT)):
            refused = client.request(method, path, json=ASKED)
            assert refused.status_code == 401
            assert "Bearer SECRET` of 16" in refused.json()["error"]["message"]


def test_no_secret_and_no_trace_of_a_bug_leaves() -> None:
    with served() as service, talking(service) as client:
        run_id = begin(client)
        service.model.says("It ", RuntimeError("key=sk-123"))
        told = str(events(client, run_id)) + client.get(f"/answers/{run_id}").text
        assert "failed" in told
        assert not any(word in told for word in (SECRET, "sk-123", "Traceback", "RuntimeError"))
        assert SECRET not in str(service.noted) + run_id


# --- what is refused

CHAT = "/v1/chat/completions"
BAD: list[tuple[str, str, bytes, int, str]] = [
    ("POST", "/answers", b"", 400, "send a JSON object"),
    ("POST", "/answers", b"\xff{", 400, "send a JSON object"),
    ("POST", "/answers", b"[" * 60_000, 400, "send a JSON object"),
    ("POST", "/answers", b"{}", 400, "'question' must be a text"),
    ("POST", "/answers", b'{"question": " "}', 400, "'question' must be a text"),
    ("POST", "/answers", b'{"question": 7}', 400, "'question' must be a text"),
    ("POST", "/answers", b'{"question": "\\ud83d"}', 400, "'question' must be a text"),
    ("POST", "/answers", b" " * (MOST_BYTES + 1), 413, "at most 65,536 bytes"),
    ("POST", "/answers/nope/continue", b"", 404, "no stream 'nope' for this owner"),
    ("GET", "/answers/nope/events", b"", 404, "no stream 'nope' for this owner"),
    ("GET", "/nope", b"", 404, "there is GET /, POST /answers"),
    ("GET", "/page/../app.py", b"", 404, "there is GET /, POST /answers"),
    ("GET", "/page/%2e%2e/app.py", b"", 404, "there is GET /, POST /answers"),
    ("DELETE", "/answers", b"", 405, "there is GET /, POST /answers"),
    ("POST", CHAT, b'{"messages": [{}]}', 400, '"stream": true'),
    ("POST", CHAT, b'{"stream": true, "messages": []}', 400, '"stream": true'),
    ("POST", CHAT, b'{"stream": true, "messages": [7]}', 400, "'role' must be a text"),
]


def test_a_bad_request_gets_a_clear_error_and_asks_no_model() -> None:
    with served() as service, talking(service) as client:
        for method, path, body, status, says in BAD:
            refused = client.request(method, path, content=body)
            told = (refused.status_code, says in refused.json()["error"]["message"])
            assert told == (status, True), (path, body[:40], refused.text)
        assert service.model.requests == []


def test_more_answers_at_a_time_than_allowed_are_refused() -> None:
    with served(answers={"at_once": 1}) as service, talking(service) as client:
        begin(client)
        assert client.post("/answers", json={"question": "Why?"}).status_code == 429


class Broken(MemoryStreamStore):
    """A store that is down."""

    def load(self, *told: Any) -> StreamRun:
        raise OSError("disk on fire, password=secret")


def test_an_error_of_ours_is_told_without_its_words() -> None:
    with served(store=Broken()) as service, talking(service) as client:
        refused = client.get("/answers/x")
        assert (refused.status_code, "fire" in refused.text) == (500, False)
        assert service.noted == [("failed", {"error": "OSError"})]


# --- the store


class Watched(MemoryStreamStore):
    """Knows the threads that have called it."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def save(self, run: StreamRun) -> StreamRun:
        self.threads.add(threading.get_ident())
        return super().save(run)

    def load(self, *told: Any) -> StreamRun:
        self.threads.add(threading.get_ident())
        return super().load(*told)


def test_the_store_is_never_called_on_the_event_loop() -> None:
    store = Watched()
    with served(store=store) as service, talking(service) as client:
        run_id = begin(client)
        service.model.says(*PIECES, FINISH)
        assert text(events(client, run_id)) == WHOLE
        loops = threading.Event(), list[int]()

        def note() -> None:
            loops[1].append(threading.get_ident())
            loops[0].set()

        assert service.model.loop is not None
        service.model.loop.call_soon_threadsafe(note)
        assert loops[0].wait(5)
        assert store.threads
        assert loops[1][0] not in store.threads


def test_an_answer_outlives_its_service_and_its_old_cursor_is_refused_openly(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'answers.db'}"
    with (
        closing(open_stream_store(url)) as store,
        served(store=store) as service,
        talking(service) as client,
    ):
        run_id = begin(client)
        service.model.says(PIECES[0])
        assert soon(lambda: client.get(f"/answers/{run_id}").json()["segments"] == [PIECES[0]])
        cursor = client.get(f"/answers/{run_id}").json()["cursor"]
    options = {"services": {"can_continue": True}}
    with (
        closing(open_stream_store(url)) as store,
        served(store=store, **options) as service,
        talking(service) as client,
    ):
        refused = client.get(f"/answers/{run_id}/events", headers={"last-event-id": cursor})
        assert refused.json()["error"]["code"] == "ForeignCursor"
        view = client.get(f"/answers/{run_id}").json()
        assert (view["status"], view["segments"]) == ("interrupted", [PIECES[0]])
        view = client.post(f"/answers/{run_id}/continue").json()
        service.model.says(*PIECES[1:], FINISH)
        assert text(events(client, run_id, view["cursor"])) == "".join(PIECES[1:])
        assert client.get(f"/answers/{run_id}").json()["segments"] == [WHOLE]


# --- the OpenAI-shaped stream


def chat(service: Served) -> Any:
    """The stream of an unmodified client of the vendor's."""
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(
        base_url=f"{service.address}/v1", api_key=SECRET, max_retries=0, timeout=10
    )
    return client.chat.completions.create(**ASKED)


def test_an_unmodified_client_reads_a_whole_answer() -> None:
    with served() as service:
        service.model.says(*PIECES, FINISH)
        chunks = list(chat(service))
        assert "".join(c.choices[0].delta.content or "" for c in chunks) == WHOLE
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert [m.content for m in service.model.requests[0].messages] == ["hi"]


def test_an_unmodified_client_is_told_when_the_answer_is_unfinished() -> None:
    openai = pytest.importorskip("openai")
    with served() as service:
        service.model.says(PIECES[0], DROP)
        got = []
        with pytest.raises(openai.APIError, match="unfinished"):
            got.extend(chunk.choices[0] for chunk in chat(service))
        assert not any(choice.finish_reason for choice in got)


def test_an_unmodified_client_gets_an_http_error_where_nothing_was_sent() -> None:
    openai = pytest.importorskip("openai")
    with served() as service:
        service.model.says(*[DROP] * 4)
        with pytest.raises(openai.InternalServerError, match="no answer could be had"):
            chat(service)


def test_a_client_that_leaves_is_a_disconnect_and_ends_the_model() -> None:
    with served() as service, talking(service) as client:
        service.model.says(PIECES[0])
        with client.stream("POST", CHAT, json=ASKED) as answered:
            pieces = answered.iter_raw()  # whose end closes the connection
            assert b"It was" in next(pieces)
            assert service.notes("disconnect") == 0
        assert service.model.cancelled.wait(5)
        assert soon(lambda: service.notes("disconnect") == 1)


def test_a_client_that_has_heard_the_end_has_not_left() -> None:
    with served() as service, talking(service) as client:
        service.model.says(*PIECES, FINISH)
        assert client.post(CHAT, json=ASKED).text.endswith("data: [DONE]\n\n")
        assert client.get("/").status_code == 200
        assert service.notes("disconnect") == 0


def test_the_page_is_not_stored_and_no_base_is_put_under_its_addresses() -> None:
    with served() as service, talking(service, {}) as client:
        headers = client.get("/").headers
        assert headers["cache-control"] == "no-store"
        assert "base-uri 'none'" in headers["content-security-policy"]
