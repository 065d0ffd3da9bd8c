"""Real workers of discussions that die, or sleep past their lease, at every step."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from labkit.recovery.run_states import COMPLETED
from labkit.runs.discussion.asking import asked
from labkit.runs.opening import open_run_store
from labkit.runs.record import RunEvent
from labkit.services.ledger import Ledger
from labkit.stores.errors import StoreDown
from tests.runs.conftest import every_database
from tests.runs.storing import OWNER
from tests.stores.postgres import hasty, server

from .killing import FRESH, QUESTION, SLEPT, Killing, Nursery

pytestmark = [pytest.mark.slow, pytest.mark.socket]
LIMIT = 100  # seconds


def told_of(events: list[RunEvent]) -> list[Any]:
    """What was said and done, by whom and in which order."""
    return [event.data for event in events if event.type == "node_finished"]


@pytest.mark.timeout(LIMIT + 20)
@every_database
def test_wherever_a_worker_dies_or_sleeps_too_long_a_discussion_ends_as_if_it_had_not(
    url: str, tmp_path: Path
) -> None:
    killing = Killing(url, tmp_path / "effects.db")
    told, woken, said = asyncio.run(asyncio.wait_for(killing.run(), LIMIT))
    calls: dict[str, Counter[str]] = {}
    for line in said:
        if line["kind"] in ("node", "model"):
            what = line.get("node") or line["role"]
            calls.setdefault(line["run"], Counter())[f"{line['kind']} {what}"] += 1
    fresh = told.runs[FRESH]
    assert {run.status for run in told.runs.values()} == {COMPLETED}
    for name, run in told.runs.items():
        events = told.events[name]
        assert [event.seq for event in events] == list(range(1, run.seq + 1)), name
        receipts = [data for data in told_of(events) if data["node"] == "tool"]
        assert len(receipts) == 2, name
        strip = [data for data in told_of(events) if data["node"] != "tool"]
        assert strip == [d for d in told_of(told.events[FRESH]) if d["node"] != "tool"], name
        assert run.end_reason == fresh.end_reason, name
        same = ("conclusion", "requests")  # tokens count the digits of a receipt, too
        assert [run.result[it] for it in same] == [fresh.result[it] for it in same], name
        assert [memory.text for memory in told.memories[name]] == ["The user's budget: approve"]
        workers = [e.data["worker"] for e in events if e.type == "run_started"]
        assert len(workers) == (4 if name == FRESH else 5), name
        assert name == FRESH or (workers[0] == name and workers[-1].startswith("finisher")), name
        # Only the step that was under way is done again.
        kind, node = name.split()[0].split(":") if name != FRESH else ("", "")
        again = calls[run.run_id] - calls[fresh.run_id]
        assert calls[fresh.run_id] <= calls[run.run_id]
        assert {what for what in again if what.startswith("node")} <= {f"node {node}"}, name
        waiting = name.startswith("row:tool")  # the other call is looked at again, and waits
        assert again.total() <= (waiting if kind == "row" else 2), (name, again)
    assert set(told.effects.values()) == {1}
    assert len(told.effects) == 2 * len(told.runs)
    assert woken == told
    ends = [line["ended"] for line in said if line["kind"] == "driven"]
    assert ends == ["lost"] * 2 * len(SLEPT)


@pytest.mark.timeout(90)
def test_a_server_that_is_gone_for_ten_seconds_costs_a_discussion_nothing(tmp_path: Path) -> None:
    async def program(made: Any) -> None:
        store = open_run_store(made.url)
        given = {"question": QUESTION.replace("[needs clarification]", ""), "rounds": 3}
        order: dict[str, Any] = {
            "url": made.url,
            "ledger": str(tmp_path / "effects.db"),
            "pause": 0.2,
        }
        async with Nursery() as nursery:
            runs = []
            for lease, own in ((60.0, True), (1.0, False)):
                run = await store.submit("discussion", given, owner=OWNER, model="fake")
                runs.append(run)
                order |= {"lease": lease, "run": run.run_id if own else None}
                await nursery.start(f"lease {lease:g}", **order)
                await nursery.says("node", f"lease {lease:g}")
            await asyncio.to_thread(made.stop)
            with pytest.raises(StoreDown):
                await store.left()
            await asyncio.sleep(10)
            await asyncio.to_thread(made.start)
            for run in runs:
                while (run := await store.get(run.run_id, OWNER)).status != COMPLETED:
                    if run.status == "awaiting_input":
                        ask = asked(run)[0]
                        word = {"ask": ask["id"], "answer": "approve", "digest": ask["digest"]}
                        await store.answer(run.run_id, OWNER, word, seq=run.seq)
                    await asyncio.sleep(0.05)
                events = await store.events(run.run_id, OWNER)
                assert [event.seq for event in events] == list(range(1, run.seq + 1))
                nodes = [data["node"] for data in told_of(events)]
                assert (nodes.count("critic"), nodes.count("tool"), len(nodes)) == (2, 2, 14)
                # Two answers, each with a claim of its own; a long lease outlasts it.
                assert run.fence == 3 if run.run_id == runs[0].run_id else run.fence >= 4
            effects = Counter(key for key, _ in Ledger(tmp_path / "effects.db").effects())
            assert (len(effects), set(effects.values())) == (4, {1})
        store.close()

    with server() as made:
        hasty(made.url)
        asyncio.run(asyncio.wait_for(program(made), 80))
