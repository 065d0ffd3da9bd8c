"""Each data file has its origin; golden captures are made anew and read by the real client."""

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from labkit.providers.sdk import SDKProvider
from labkit.recovery.errors import ProviderError

DATA = Path(__file__).parents[2] / "data"
GOLDEN = DATA / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text("utf-8"))
NAMES = sorted(path.name for path in GOLDEN.glob("*.sse"))


def events(name: str) -> list[tuple[str, Any]]:
    """Name and data of each event; `[DONE]` is left out."""
    found = []
    text = (GOLDEN / name).read_bytes().decode().replace("\r\n", "\n")
    for block in text.strip("\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        if fields["data"] != "[DONE]":
            found.append((fields.get("event", ""), json.loads(fields["data"])))
    return found


def rows() -> list[str]:
    """What the tables of the README name: files, and patterns of files."""
    lines = (DATA / "README.md").read_text("utf-8").splitlines()
    return [line.split("`")[1] for line in lines if line.startswith("| `")]


def test_every_data_file_has_a_row_that_tells_its_origin() -> None:
    told = {path for row in rows() for path in DATA.glob(row)}
    files = {path for path in DATA.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert files - told == {DATA / "README.md"}


def test_no_row_names_what_is_gone() -> None:
    assert [row for row in rows() if not list(DATA.glob(row))] == []


@pytest.mark.parametrize("path", sorted((DATA / "cases").glob("*.json")), ids=lambda p: p.stem)
def test_every_case_names_its_public_source(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    assert case["source"]
    assert case["title"]


def test_the_golden_captures_are_made_anew_to_the_byte(tmp_path: Path) -> None:
    runpy.run_path(str(GOLDEN / "make.py"))["main"](tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = [*GOLDEN.glob("*.sse"), GOLDEN / "expected.json"]
    assert made == {path.name: path.read_bytes() for path in kept}


def test_each_format_has_a_text_a_tool_call_and_an_error() -> None:
    assert set(EXPECTED) == set(NAMES)
    assert len(NAMES) == 4 * 3
    texts = {told["text"] for name, told in EXPECTED.items() if name.endswith("-text.sse")}
    assert len(texts) == 1
    for letters in ("退款", "👩‍💻", "תשובה"):
        assert letters in texts.copy().pop()


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("openai-")])
def test_openais_own_types_accept_every_event(name: str) -> None:
    response: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    for event, data in events(name):
        if name.startswith("openai-responses"):
            assert response.validate_python(data).type == event
        elif "error" not in data:
            assert ChatCompletionChunk.model_validate(data).id


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("openai-chat")])
def test_the_real_client_finds_in_a_capture_what_is_expected(name: str, size: int) -> None:
    assert found_by_the_sdk((GOLDEN / name).read_bytes(), size) == EXPECTED[name]


def found_by_the_sdk(capture: bytes, size: int) -> dict[str, Any]:
    """What the client reads from a capture that arrives in pieces of `size` bytes."""

    class Pieces(httpx2.AsyncByteStream):
        async def __aiter__(self) -> Any:
            for start in range(0, len(capture), size):
                yield capture[start : start + size]

    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(
        lambda request: httpx2.Response(200, headers=headers, stream=Pieces())
    )
    http = openai.DefaultAsyncHttpxClient(transport=transport)
    client = openai.AsyncOpenAI(api_key="k", base_url="http://x/v1", http_client=http)
    return asyncio.run(_read(SDKProvider(client)))


async def _read(provider: SDKProvider) -> dict[str, Any]:
    told: dict[str, Any] = {}
    try:
        async for delta in provider.stream():
            name = {"tool_call": "arguments"}.get(delta.kind, delta.kind)
            if delta.kind == "finish":
                told["finish"] = delta.reason
            elif delta.text and delta.kind != "role":
                told[name] = told.get(name, "") + delta.text
            if delta.name:
                told["tool"] = delta.name
    except ProviderError:
        told["error"] = True
    if "arguments" in told:
        told["arguments"] = json.loads(told["arguments"])
    return told
