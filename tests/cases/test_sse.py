"""Cases 1 to 3, 6 to 9 and 12: what is on the wire means what the standard says."""

from typing import Any

import pytest

from labkit.recovery.sse import SSEDecoder

from .public import case


def decode(chunks: list[bytes]) -> dict[str, Any]:
    decoder = SSEDecoder()
    events = [event._asdict() for chunk in chunks for event in decoder.feed(chunk)]
    events += [event._asdict() for event in decoder.close()]
    return {"events": events, "last_event_id": decoder.last_event_id, "retry": decoder.retry_ms}


WIRE = [(number, name) for number in (1, 2, 3, 6, 7, 9) for name in case(number)["input"]]


@pytest.mark.parametrize(("number", "name"), WIRE)
def test_the_chunks_of_a_wire_case_give_its_events(number: int, name: str) -> None:
    told = case(number)
    chunks = [bytes.fromhex(chunk) for chunk in told["input"][name]["chunks_hex"]]
    assert decode(chunks) == told["expect"][name]


RETRIES = case(8)


@pytest.mark.parametrize("value", RETRIES["input"]["values"])
def test_case_8_the_retry_field_takes_ascii_digits_only(value: str) -> None:
    earlier = RETRIES["input"]["earlier"]
    stream = f"retry: {earlier}\nretry:{value}\n\ndata: after\n\n".encode()
    found = decode([stream])
    assert found["retry"] == RETRIES["expect"]["retry_ms"][value]
    assert [event["data"] for event in found["events"]] == ["after"]


def test_case_12_chunking_does_not_matter() -> None:
    told = case(12)
    stream = bytes.fromhex(told["input"]["bytes_hex"])
    assert len(stream) == told["input"]["len"]
    expect = dict(told["expect"])
    assert expect.pop("splits_that_differ") == 0
    splits = [[stream], [stream[at : at + 1] for at in range(len(stream))]]
    for at in range(len(stream) + 1):
        splits += [[stream[:at], stream[at:]], [stream[:at], b"", stream[at:]]]
    for chunks in splits:
        assert decode(chunks) == expect
