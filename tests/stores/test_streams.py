"""Records outlive their process, belong to their owner, and have one writer at a time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery.stream import Owner, StreamRequest, StreamRun
from labkit.recovery.stream.record import Executed, interrupt
from labkit.recovery.stream.store import StaleRecord, StreamExists, UnknownStream
from tests.recovery.stream.making import ANN, after, call, finish, record, say

from .conftest import KINDS

Open = Callable[[], Any]
pytestmark = pytest.mark.parametrize("url", KINDS, indirect=True)

FULL = replace(
    record(
        say("Это "),
        say('日本🙂 "</x>"\n'),
        call('{"a":', "c1", "add"),
        {"event_id": "e-9", **call("1}", "c1", "")},
        finish("tool_calls"),
        request=StreamRequest("q?", "v3", "m", ("add", "mul"), structured=True),
    ),
    executed=(Executed("k1", "c0", "mul", "4"),),
    attempt=2,
    recoveries=1,
    recovering_since=12.5,
)


def test_a_record_comes_back_as_it_was_saved_in_a_new_store(opened: Open) -> None:
    saved = opened().create(FULL)
    assert opened().load("run-1", ANN) == saved
    assert replace(saved, version=0, stored_chunks=0) == FULL


def test_a_record_is_durable_after_each_event(opened: Open) -> None:
    run = opened().create(record())
    for number, text in enumerate(["It ", "was ", "sent."]):
        run = opened().save(after(run, say(text)))
        again = opened().load("run-1", ANN)
        assert (again, again.next_sequence) == (run, number + 1)
    assert again.text == "It was sent."
    assert opened().save(interrupt(again, "disconnect")).status == "interrupted"


@pytest.mark.parametrize(
    ("run_id", "owner"),
    [
        ("run-1", Owner("bob", "acme")),
        ("run-1", Owner("ann", "other")),
        ("run-1", Owner("acme", "ann")),
        ("run-2", ANN),
        ("run-%", ANN),
        ("", ANN),
    ],
)
def test_a_wrong_owner_and_an_unknown_id_get_the_same_answer(
    opened: Open, run_id: str, owner: Owner
) -> None:
    opened().create(record())
    told = f"there is no stream {run_id!r} for this owner"
    with pytest.raises(UnknownStream, match=f"^{told}$"):
        opened().load(run_id, owner)
    with pytest.raises(UnknownStream, match=f"^{told}$"):
        opened().save(StreamRun(run_id, owner))


def test_a_foreign_writer_of_the_right_version_changes_nothing(opened: Open) -> None:
    saved = opened().create(record())
    theirs = replace(saved, owner=Owner("bob", "acme"), status="stopped")
    with pytest.raises(UnknownStream):
        opened().save(theirs)
    assert opened().load("run-1", ANN) == saved


def test_the_second_of_two_writers_is_refused_and_the_first_is_kept(opened: Open) -> None:
    one = two = opened().create(record())
    kept = opened().save(after(one, say("first")))
    with pytest.raises(StaleRecord, match=r"'run-1' is newer than version 1"):
        opened().save(after(two, say("second")))
    assert opened().load("run-1", ANN) == kept


def test_an_id_is_given_once(opened: Open) -> None:
    kept = opened().create(record(say("first")))
    with pytest.raises(StreamExists, match="run-1"):
        opened().create(record(say("second")))
    assert opened().load("run-1", ANN) == kept


@pytest.mark.parametrize("text", ["", "\0", "\ud83d", "\u2028\r\n", "x" * 100_000])
def test_text_of_any_kind_is_kept(opened: Open, text: str) -> None:
    opened().create(record(say("a"), say(text), say("b")))
    assert opened().load("run-1", ANN).text == f"a{text}b"


def test_of_eight_writers_at_once_one_wins_each_round_and_none_fails_otherwise(
    opened: Open,
) -> None:
    opened().create(record())
    store = opened()

    def write(_: int) -> bool:
        mine = after(base, say("x"))
        try:
            store.save(mine)
        except StaleRecord:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            base = store.load("run-1", ANN)
            assert sum(threads.map(write, range(8))) == 1
    assert store.load("run-1", ANN).text == "x" * 5
