"""How fast bytes become events, beside two other decoders that get the same bytes; and readers."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import httpx
import httpx_sse
from openai._streaming import SSEDecoder as OpenAIDecoder

from labkit.recovery.sse import SSEDecoder, encode_event
from tests.recovery import readers

from .table import Measure, Row, best

EVENTS: Final = 4_000
CHUNK: Final = (
    '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1772452800,"model":"m",'
    '"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}'
)
STREAM: Final = b"".join(encode_event(CHUNK % f"слово {n} 🙂 ") for n in range(EVENTS))
SIZES: Final = {"one event at a time": 0, "reads of 16 KiB": 16_384, "reads of 100 bytes": 100}


def decoding() -> Iterator[Row]:
    """Events per second and megabytes per second, however the bytes are cut."""
    for how, size in SIZES.items():
        chunks = _cut(size)
        ours = best(partial(_checked, _ours, chunks))
        for peer, decode in (("httpx-sse", _httpx_sse), ("openai's decoder", _openai)):
            theirs = best(partial(_checked, decode, chunks))
            yield Row(
                what=f"events decoded, {how}",
                value=EVENTS / ours,
                unit="/s",
                peer=peer,
                beside=EVENTS / theirs,
                ratio=1.0,
            )
        megabytes = len(STREAM) / 1e6
        yield Row(what=f"bytes decoded, {how}", value=megabytes / ours, unit="MB/s")


def reading() -> Iterator[Row]:
    """500 readers of one log that drop and reconnect at random, until each has seen all."""
    seen, most = readers.measured()
    whole = list(range(readers.EVENTS))
    wrong = sum(numbers != whole for numbers in seen)
    yield Row(what="readers that lost or doubled an event, of 500", value=wrong, unit="", most=0.5)
    used = most / 2**20
    yield Row(what="memory of 500 readers that come and go", value=used, unit="MiB", most=64)


MEASURES: Final[tuple[Measure, ...]] = (decoding, reading)


def _cut(size: int) -> list[bytes]:
    if not size:
        return [event + b"\n\n" for event in STREAM.split(b"\n\n")[:-1]]
    return [STREAM[at : at + size] for at in range(0, len(STREAM), size)]


def _ours(chunks: list[bytes]) -> int:
    decoder = SSEDecoder()
    return sum(len(decoder.feed(chunk)) for chunk in chunks) + len(decoder.close())


def _openai(chunks: list[bytes]) -> int:
    return sum(1 for _ in OpenAIDecoder().iter_bytes(iter(chunks)))


def _httpx_sse(chunks: list[bytes]) -> int:
    """Over a response that has its bytes already."""
    response = httpx.Response(
        200, headers={"content-type": "text/event-stream"}, content=iter(chunks)
    )
    return sum(1 for _ in httpx_sse.EventSource(response).iter_sse())


def _checked(decode: Callable[[list[bytes]], int], chunks: list[bytes]) -> None:
    events = decode(chunks)
    if events != EVENTS:
        raise AssertionError(f"{events} events came out, and {EVENTS} went in")
