"""A browser's own EventSource and the lab's decoder read the same bytes alike.

The browser is the outside truth: it gets each stream over a real socket, in pieces.
"""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from labkit.recovery.sse import SSEDecoder, encode_comment, encode_event
from tests.cases.public import case
from tests.recovery.test_sse import made_up

pytestmark = pytest.mark.browser

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
WIRE_CASES = (1, 2, 3, 6, 7, 9)
MADE_UP = 200

READ_ALL = """async ([address, names]) => {
    const found = [];
    const source = new EventSource(address);
    await new Promise(done => {
        const note = told => found.push([told.type, told.data, told.lastEventId]);
        for (const name of names) source.addEventListener(name, note);
        source.onerror = () => { source.close(); done(); };
    });
    return found;
}"""
COME_BACK = """async address => {
    const texts = [];
    const source = new EventSource(address);
    await new Promise(done => {
        source.onmessage = told => texts.push(told.data);
        source.addEventListener("end", () => { source.close(); done(); });
    });
    return texts;
}"""


def streams() -> dict[str, list[bytes]]:
    """Every wire case, every capture, and the fixture of case 12, as pieces."""
    found: dict[str, list[bytes]] = {}
    for number in WIRE_CASES:
        for name, told in case(number)["input"].items():
            found[f"case {number} {name}"] = [bytes.fromhex(piece) for piece in told["chunks_hex"]]
    for path in sorted(GOLDEN.glob("*.sse")):
        whole = path.read_bytes()
        found[path.stem] = [whole[at : at + 97] for at in range(0, len(whole), 97)]
    random = Random(12)
    for number in range(MADE_UP):
        found[f"made up {number}"] = [made_up(random) for _ in range(3)]
    whole = bytes.fromhex(case(12)["input"]["bytes_hex"])
    found["case 12"] = [whole[at : at + 1] for at in range(len(whole))]
    return found


STREAMS = streams()
NAMES = sorted(STREAMS)
TOLD = [name for name in NAMES if not name.startswith("made up")]


class Handler(BaseHTTPRequestHandler):
    """Sends a stream's pieces; `/log` counts to 5, but breaks after each event."""

    asked_after: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.send_response(200)
        if self.path == "/":
            self.end_headers()
            return
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for piece in self._pieces():
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(0.001)  # so that pieces travel apart, mostly

    def _pieces(self) -> list[bytes]:
        if self.path != "/log":
            return STREAMS[NAMES[int(self.path.removeprefix("/"))]]
        after = self.headers.get("Last-Event-ID")
        self.asked_after.append(after)
        number = int(after or 0) + 1
        if number > 5:
            return [encode_event("", event="end")]
        half = encode_event("never whole", id="9")[:-1]
        return [encode_comment("alive"), encode_event(str(number), id=str(number), retry=20), half]

    def log_message(self, *args: Any) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Iterator[Any]:
    page = browser.new_page()
    page.goto(address)
    yield page
    page.close()


@pytest.mark.parametrize("name", TOLD)
def test_a_browser_reads_the_same_events_out_of_the_same_bytes(
    name: str, page: Any, address: str
) -> None:
    ours, theirs = both(name, page, address)
    assert theirs == ours


def test_a_browser_reads_the_same_events_out_of_made_up_bytes(page: Any, address: str) -> None:
    seen = 0
    for name in sorted(set(NAMES) - set(TOLD)):
        ours, theirs = both(name, page, address)
        assert theirs == ours, STREAMS[name]
        seen += len(ours)
    assert seen > MADE_UP  # else the streams say too little


def both(name: str, page: Any, address: str) -> tuple[list[Any], list[Any]]:
    """The events of a stream as our decoder and as the browser read them."""
    decoder = SSEDecoder()
    ours = [list(event) for piece in STREAMS[name] for event in decoder.feed(piece)]
    kinds = sorted({"message", *(kind for kind, *_ in ours)})
    return ours, page.evaluate(READ_ALL, [f"{address}/{NAMES.index(name)}", kinds])


def test_a_browser_that_reconnects_asks_with_our_ids_and_no_unfinished_one(
    page: Any, address: str
) -> None:
    Handler.asked_after.clear()
    assert page.evaluate(COME_BACK, f"{address}/log") == ["1", "2", "3", "4", "5"]
    assert Handler.asked_after == [None, "1", "2", "3", "4", "5"]
