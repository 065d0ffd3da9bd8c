"""Answers without HTTP, in virtual time: who may, what ends one, what is kept, what is told."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any

import pytest

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError
from labkit.recovery.event_log import ForeignCursor
from labkit.recovery.stream import RecoveryLimits
from labkit.recovery.stream.store import UnknownStream
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.services.answers import NotNow, TooMany, inline

from .playing import ANN, BOB, DROP, FINISH, Bench, heard, play, states, text

CALL = Delta("tool_call", "{}", index=0, call_id="c1", name="look_up")
CALLED = Delta("finish", reason="tool_calls")
NO_LIMITS = RecoveryLimits(recoveries=0)


def test_an_answer_is_started_told_and_kept() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.ended("It was ", "sent.", FINISH)
        told = await heard(await bench.answers.log(run_id, ANN))
        assert (text(told), states(told)) == ("It was sent.", ["generating", "done"])
        assert bench.record(run_id).status == "completed"
        assert await bench.answers.load(run_id, ANN) == {
            "id": run_id,
            "question": "Why?",
            "status": "done",
            "segments": ["It was sent."],
            "error": "",
            "cursor": f"{run_id}.n2:4",
            "ended": True,
        }

    play(work)


def test_a_reader_that_leaves_stops_nothing_and_the_next_one_hears_all() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun("It was ")
        log = await bench.answers.log(run_id, ANN)
        async with aclosing(log.follow()) as entries:
            await anext(entries)
        bench.model.put("sent.", FINISH)
        assert text(await heard(log)) == "It was sent."
        assert (bench.model.left, bench.record(run_id).status) == (0, "completed")

    play(work)


def test_what_the_page_may_know_is_what_a_reader_of_the_log_has_heard_at_that_cursor() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun()
        for thing in ("It ", "was ", DROP, "It ", "was sent.", FINISH):
            bench.model.put(thing)
            await asyncio.sleep(5)
            view = await bench.answers.load(run_id, ANN)
            log = await bench.answers.log(run_id, ANN)
            told = [entry async for entry in upto(log, view["cursor"])]
            assert "|".join(view["segments"]) == text(told)
            assert view["status"] == states(told)[-1]
        assert view["segments"] == ["It was ", "It was sent."]

    async def upto(log: Any, cursor: str) -> Any:
        number = log.after(cursor)
        async with aclosing(log.follow()) as entries:
            async for entry in entries:
                yield entry.event, json.loads(entry.data)
                if entry.sequence == number:
                    return

    play(work)


# --- whose it is


def test_a_wrong_owner_and_an_unknown_id_get_the_same_answer_everywhere() -> None:
    async def work(bench: Bench) -> None:
        live, ended = await bench.begun("It was "), "n9"
        ways = [bench.answers.log, bench.answers.load, bench.answers.stop, bench.answers.go_on]
        said = set()
        for run_id in (live, ended):
            for way in ways:
                with pytest.raises(UnknownStream) as refused:
                    await way(run_id, BOB)
                said.add(str(refused.value).replace(run_id, "ID"))
        assert said == {"there is no stream 'ID' for this owner"}
        assert (await bench.answers.load(live, ANN))["status"] == "generating"

    play(work)


# --- how it ends


def test_a_stop_is_kept_and_told_and_leaves_the_model() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun("It was ")
        await bench.answers.stop(run_id, ANN)
        assert (bench.record(run_id).status, bench.record(run_id).text) == ("stopped", "It was ")
        assert bench.model.left == 1
        told = await heard(await bench.answers.log(run_id, ANN))
        assert (text(told), states(told)) == ("It was ", ["generating", "stopped"])
        await bench.answers.stop(run_id, ANN)  # a second one changes nothing
        with pytest.raises(NotNow, match="the answer is stopped: it does not go on"):
            await bench.answers.go_on(run_id, ANN)

    play(work)


def test_a_stop_before_the_first_step_is_a_stop() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.answers.start(ANN, "Why?")
        await bench.answers.stop(run_id, ANN)
        assert (bench.record(run_id).status, bench.model.requests) == ("stopped", [])
        assert states(await heard(await bench.answers.log(run_id, ANN))) == ["stopped"]

    play(work)


def test_a_stop_while_the_store_is_busy_loses_nothing() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun("It ")
        bench.gate.clear()
        bench.model.put("was ")
        await asyncio.sleep(1)  # the store is at work
        bench.model.put("sent ")
        await asyncio.sleep(1)
        stops = [asyncio.create_task(bench.answers.stop(run_id, ANN)) for _ in range(2)]
        await asyncio.sleep(1)
        bench.gate.set()
        await asyncio.gather(*stops)
        assert (bench.record(run_id).status, bench.record(run_id).text) == (
            "stopped",
            "It was sent ",
        )
        assert text(await heard(await bench.answers.log(run_id, ANN))) == "It was sent "

    play(work)


ENDS = {"stopped": "stopped", "done": "completed", "interrupted": "interrupted"}


@pytest.mark.parametrize("way", ["stop", "close"])
@pytest.mark.parametrize("turns", range(40))
def test_an_answer_that_is_ended_at_any_turn_of_the_loop_has_told_what_is_kept(
    turns: int, way: str
) -> None:
    async def work(bench: Bench) -> str:
        run_id = await bench.answers.start(ANN, "Why?")
        bench.model.put("It ", "was ", "sent.", FINISH)
        for _ in range(turns):
            await asyncio.sleep(0)
        if way == "close":
            await bench.answers.close()
        else:
            with suppress(NotNow):
                await bench.answers.stop(run_id, ANN)
        told = await heard(await bench.answers.log(run_id, ANN))
        record = bench.record(run_id)
        assert (text(told), ENDS[states(told)[-1]]) == (record.text, record.status)
        return record.text

    found = play(work)
    assert "It was sent.".startswith(found)
    assert turns < 35 or found == "It was sent."  # else the turns say too little


def test_a_stop_of_what_is_done_is_refused() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.ended("It was sent.", FINISH)
        with pytest.raises(NotNow, match="the answer is done: there is nothing to stop"):
            await bench.answers.stop(run_id, ANN)
        assert bench.record(run_id).status == "completed"

    play(work)


def test_the_end_of_the_service_is_no_stop_and_the_answer_goes_on_in_the_next_one() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun("It was ")
        log = await bench.answers.log(run_id, ANN)
        await bench.answers.close()
        assert states(await heard(log)) == ["generating", "interrupted"]
        assert (bench.record(run_id).status, bench.record(run_id).cause) == (
            "interrupted",
            "shutdown",
        )
        bench.answers = bench.service(can_continue=True)
        await bench.answers.go_on(run_id, ANN)
        bench.model.put("sent.", FINISH)
        told = await heard(await bench.answers.log(run_id, ANN))
        assert (text(told), bench.record(run_id).text) == ("It was sent.", "It was sent.")

    play(work)


def test_a_failed_answer_keeps_its_text_and_goes_on_by_hand() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.ended("It was ", DROP)
        view = await bench.answers.load(run_id, ANN)
        assert (view["status"], view["error"]) == ("failed", "disconnect")
        await bench.answers.go_on(run_id, ANN)
        with pytest.raises(NotNow, match="being written already"):
            await bench.answers.go_on(run_id, ANN)
        bench.model.put("It was sent.", FINISH)
        told = await heard(await bench.answers.log(run_id, ANN))
        assert text(told) == "It was |It was sent."
        with pytest.raises(ForeignCursor):
            (await bench.answers.log(run_id, ANN)).after(view["cursor"])

    play(work, limits=NO_LIMITS)


def test_of_two_that_continue_at_the_same_time_one_does() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.ended(DROP)
        both = [bench.answers.go_on(run_id, ANN) for _ in range(2)]
        ended = await asyncio.gather(*both, return_exceptions=True)
        assert [type(end) for end in ended] == [type(None), NotNow]

    play(work, limits=NO_LIMITS)


def test_a_bug_is_told_without_its_message_and_noted_by_its_name() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.ended("It was ", RuntimeError("key=sk-123"))
        told = await heard(await bench.answers.log(run_id, ANN))
        assert states(told) == ["generating", "failed"]
        assert "sk-123" not in str(told) + str(bench.noted)
        assert ("failed", {"error": "RuntimeError"}) in bench.noted

    play(work)


# --- what is kept


def test_nothing_is_told_before_it_is_kept_and_many_events_cost_one_call() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun("0 ")
        log = await bench.answers.log(run_id, ANN)
        bench.gate.clear()
        before, calls = log.last, len(bench.calls)
        bench.model.put("1 ")
        await asyncio.sleep(1)
        for number in range(2, 50):
            bench.model.put(f"{number} ")
        await asyncio.sleep(1)
        assert (log.last, len(bench.calls)) == (before, calls + 1)  # a save that has not returned
        bench.gate.set()
        await asyncio.sleep(1)
        assert (log.last, len(bench.calls)) == (before + 49, calls + 2)
        assert bench.record(run_id).text == "".join(f"{number} " for number in range(50))

    play(work)


def test_an_answer_that_the_store_refuses_leaves_the_model_and_tells_only_what_is_kept() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun("It was ")
        bench.store.save(bench.record(run_id))  # another process has taken it over
        bench.model.put("sent ")
        await asyncio.sleep(1)
        told = await heard(await bench.answers.log(run_id, ANN))
        assert (text(told), states(told)) == ("It was ", ["generating", "failed"])
        assert ("error", {"code": "not_kept", "next": "continue"}) in told
        assert ("failed", {"error": "StaleRecord"}) in bench.noted
        assert (bench.model.left, bench.record(run_id).text) == (1, "It was ")

    play(work)


def test_a_tool_runs_only_when_what_came_before_it_is_kept() -> None:
    ran: list[str] = []

    async def run(arguments: Mapping[str, Any], key: str) -> str:
        ran.append(bench_of[0].record("n1").calls[0].name)
        return "found"

    bench_of: list[Bench] = []

    async def work(bench: Bench) -> None:
        bench_of.append(bench)
        run_id = await bench.begun("I will look. ")
        bench.gate.clear()
        bench.model.put(CALL, CALLED, "Sent.", FINISH)
        await asyncio.sleep(1)
        assert ran == []
        bench.gate.set()
        await asyncio.sleep(1)
        assert ran == ["look_up"]
        told = await heard(await bench.answers.log(run_id, ANN))
        assert text(told) == "I will look. |Sent."
        assert ("tool_pending", {"tool": "look_up"}) in told

    play(work, tools=ToolRegistry(Tool(name="look_up", run=run)))


# --- what is in memory


def test_a_log_that_is_gone_is_made_from_the_record_and_its_old_cursors_are_foreign() -> None:
    async def work(bench: Bench) -> None:
        first = await bench.ended("It was ", DROP, "It was ", "sent.", FINISH)
        old = await bench.answers.load(first, ANN)
        second = await bench.ended("And ", "more.", FINISH)
        assert list(bench.answers._answers) == [second]
        log = await bench.answers.log(first, ANN)
        name, _, last = old["cursor"].rpartition(":")
        for number in range(1, int(last) + 1):
            with pytest.raises(ForeignCursor):
                log.after(f"{name}:{number}")
        told = await heard(log)
        assert (text(told), states(told)) == ("It was |It was sent.", ["done"])
        assert len(told) == 4
        new = await bench.answers.load(first, ANN)
        assert new["segments"] == old["segments"]

    play(work, ended=1)


def test_a_reader_of_a_log_that_is_dropped_reads_it_to_its_end() -> None:
    async def work(bench: Bench) -> None:
        first = await bench.ended("It was ", "sent.", FINISH)
        async with aclosing((await bench.answers.log(first, ANN)).follow()) as entries:
            await anext(entries)
            await bench.ended("And more.", FINISH)
            assert first not in bench.answers._answers
            assert [entry.sequence async for entry in entries if entry] == [2, 3, 4]

    play(work, ended=1)


def test_a_record_that_nobody_works_at_any_more_is_interrupted_and_can_be_continued() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun("It was ")
        after = bench.service(can_continue=True)  # as if the first process had died here
        assert bench.record(run_id).status == "running"
        assert (await after.load(run_id, ANN))["status"] == "interrupted"
        await after.go_on(run_id, ANN)
        await asyncio.sleep(1)
        assert (await after.load(run_id, ANN))["status"] == "recovering"
        await after.close()

    play(work)


def test_more_answers_at_a_time_than_allowed_are_refused_also_when_they_come_together() -> None:
    async def work(bench: Bench) -> None:
        starts = [bench.answers.start(ANN, "Why?") for _ in range(5)]
        ended = await asyncio.gather(*starts, return_exceptions=True)
        assert [type(end) for end in ended] == [str, str, TooMany, TooMany, TooMany]
        await bench.answers.stop(str(ended[0]), ANN)
        await bench.answers.start(ANN, "Why?")

    play(work, at_once=2)


def test_an_answer_whose_record_cannot_be_made_is_forgotten() -> None:
    async def work(bench: Bench) -> None:
        async def refuse(do: Any, *arguments: Any) -> Any:
            raise OSError("no space")

        bench.answers._call = refuse
        with pytest.raises(OSError, match="no space"):
            await bench.answers.start(ANN, "Why?")
        assert bench.answers._answers == {}

    play(work)


@pytest.mark.parametrize("wrong", [{"ended": 0}, {"at_once": 0}])
def test_senseless_limits_are_refused(wrong: dict[str, int]) -> None:
    async def work(bench: Bench) -> None:
        with pytest.raises(ValueError, match="at least 1"):
            bench.service(**wrong)

    play(work)


def test_a_store_in_memory_may_be_called_at_once() -> None:
    async def work(bench: Bench) -> None:
        assert await inline(divmod, 7, 2) == (3, 1)

    play(work)


def test_a_continue_that_is_still_loading_does_not_overrule_a_stop() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.begun("Because ")
        bench.gate.clear()  # the store is slow
        going_on = asyncio.create_task(bench.answers.go_on(run_id, ANN))
        await asyncio.sleep(0.001)
        stopping = asyncio.create_task(bench.answers.stop(run_id, ANN))
        await asyncio.sleep(0.001)
        bench.gate.set()
        await stopping
        with pytest.raises(NotNow):
            await going_on
        assert bench.record(run_id).status == "stopped"
        assert len(bench.model.requests) == 1

    play(work)


def test_a_continue_whose_record_has_changed_meanwhile_loads_it_again() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.ended("Because ", ProviderError("no", kind="auth"))
        bench.gate.clear()
        going_on = [asyncio.create_task(bench.answers.go_on(run_id, ANN)) for _ in range(2)]
        await asyncio.sleep(0.001)
        bench.model.put("of it.", FINISH)
        bench.gate.set()
        done = await asyncio.gather(*going_on, return_exceptions=True)
        assert [type(error) for error in done if error] == [NotNow]
        await asyncio.sleep(60)
        assert bench.record(run_id).status == "completed"

    play(work)


def test_going_on_by_hand_counts_among_the_answers_that_are_written_at_a_time() -> None:
    async def work(bench: Bench) -> None:
        failed = await bench.ended("It was ", DROP)
        await bench.answers.start(ANN, "Why?")
        with pytest.raises(TooMany):
            await bench.answers.go_on(failed, ANN)
        assert (await bench.answers.load(failed, ANN))["status"] == "failed"

    play(work, at_once=1, limits=NO_LIMITS)
