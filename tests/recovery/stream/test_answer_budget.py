"""An answer on a shared budget: what it draws, and how it ends when that is used up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from labkit.recovery.budget import Budget, BudgetExhausted, BudgetLimits, Spent
from labkit.recovery.stream import RecoveryLimits, StreamEvent, StreamRequest, StreamRun
from labkit.recovery.stream.continuation import Request
from labkit.recovery.tools import Tool

from .playing import CALLS, DROP, FINISH, Played, call, play, say

MANY = RecoveryLimits(recoveries=9, seconds=500.0)
CUT = [say("It was "), DROP]
WITH_TOOLS = StreamRequest("Open a ticket.", tools=("create_ticket",))


class Budgets:
    """Makes a budget at each call, and keeps them."""

    def __init__(self, **limits: Any) -> None:
        self.limits = BudgetLimits(**limits)
        self.made: list[Budget] = []

    def __call__(self) -> Budget:
        self.made.append(Budget(self.limits, clock=asyncio.get_running_loop().time))
        return self.made[-1]

    @property
    def used(self) -> Spent:
        return self.made[-1].used["run"]


def ends_failed(played: Played, text: str) -> None:
    """The text is kept, the state is failed, and the page offers to go on."""
    assert (played.record.status, played.record.text) == ("failed", text)
    assert played.states[-1] == "failed"
    assert played.told("error")[-1]["next"] == "continue"


def test_each_request_and_each_recovery_draws_on_the_budget() -> None:
    budgets = Budgets()
    attempts = [CUT, [say("sent "), DROP], [say("on Monday."), FINISH]]
    played = play(attempts, can_continue=True, limits=MANY, new_budget=budgets)
    assert (played.record.status, len(played.requests)) == ("completed", 3)
    assert budgets.used == Spent(requests=3, retries=2, waited=sum(played.waits))
    assert len(budgets.made) == 1


@pytest.mark.parametrize("limits", [{"requests": 2}, {"retries": 1}, {"seconds": 2.5}])
def test_at_its_end_the_text_is_kept_and_the_page_offers_to_go_on(limits: Any) -> None:
    budgets = Budgets(**limits)
    attempts = [CUT, [say("sent "), DROP], [say("on Monday."), FINISH]]
    played = play(attempts, can_continue=True, limits=MANY, new_budget=budgets)
    ends_failed(played, "It was sent ")
    assert (len(played.requests), budgets.used.requests) == (2, 2)
    assert played.waits == [1.0]  # the second one was not slept
    assert played.told("error") == [{"code": "disconnect", "next": "continue"}]


def test_an_answer_that_would_begin_again_keeps_its_text_where_no_request_is_left() -> None:
    budgets = Budgets(requests=1)
    played = play([CUT], limits=MANY, new_budget=budgets)
    ends_failed(played, "It was ")
    assert (played.shown, len(played.requests)) == ("It was ", 1)


def test_the_door_is_asked_before_the_record_begins_another_attempt() -> None:
    class OnlyTheDoorSaysNo(Budget):
        def request(self, cost: float = 0.0) -> None:
            if self.used.get("run", Spent()).requests:
                raise BudgetExhausted("requests")
            super().request(cost)

    def made() -> Budget:
        return OnlyTheDoorSaysNo(BudgetLimits(), clock=asyncio.get_running_loop().time)

    for can_continue in (False, True):
        played = play([CUT], can_continue=can_continue, limits=MANY, new_budget=made)
        ends_failed(played, "It was ")
        assert (played.record.attempt, played.shown) == (1, "It was ")


def test_going_on_by_hand_begins_with_a_fresh_budget() -> None:
    budgets = Budgets(requests=1)
    failed = play([CUT], can_continue=True, limits=MANY, new_budget=budgets)
    again = play(
        [[say("sent."), FINISH]],
        played=failed,
        by_hand=True,
        can_continue=True,
        limits=MANY,
        new_budget=budgets,
    )
    assert (again.record.status, again.record.text) == ("completed", "It was sent.")
    assert [budget.used["run"] for budget in budgets.made] == [Spent(requests=1)] * 2


def test_the_limits_of_recoveries_stay_beside_the_budget() -> None:
    budgets = Budgets(requests=100, retries=100)
    played = play(
        [CUT] * 9, can_continue=True, limits=RecoveryLimits(recoveries=1), new_budget=budgets
    )
    ends_failed(played, "It was ")
    assert budgets.used.retries == 1


def test_nothing_is_asked_where_the_budget_allows_no_request() -> None:
    played = play([CUT], new_budget=Budgets(requests=0))
    ends_failed(played, "")
    assert played.requests == []
    assert played.told("error") == [{"code": "limit", "next": "continue"}]


def test_an_answer_ends_at_the_budgets_deadline_where_that_is_the_nearer_one() -> None:
    slow = [[say("It ", 1.0), say("was ", 3.0), say("sent.", 3.0), FINISH]]
    played = play(slow, new_budget=Budgets(seconds=5.0))
    ends_failed(played, "It was ")
    assert played.run.time == 5.0
    assert play(slow, new_budget=Budgets(seconds=8.0)).record.status == "completed"


def test_the_question_after_a_tool_is_a_request_too() -> None:
    attempts = [[call('{"title":"VPN"}'), CALLS], [say("Done."), FINISH]]
    budgets = Budgets()
    assert play(attempts, request=WITH_TOOLS, new_budget=budgets).record.text == "Done."
    assert budgets.used == Spent(requests=2)
    ended = play(attempts, request=WITH_TOOLS, new_budget=Budgets(requests=1))
    ends_failed(ended, "")
    assert ended.effects == [{"title": "VPN"}]
    assert [done.name for done in ended.record.executed] == ["create_ticket"]


def test_a_tool_that_runs_out_of_the_budget_ends_the_answer_as_the_answer_itself_does() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        raise BudgetExhausted("per_tool")

    attempts = [[say("Wait. "), call('{"title":"VPN"}'), CALLS]]
    played = play(attempts, request=WITH_TOOLS, tool=Tool(name="create_ticket", run=run))
    ends_failed(played, "Wait. ")


def test_events_that_are_taken_up_draw_a_recovery_and_no_request_of_the_provider() -> None:
    budgets = Budgets()

    async def begin(request: Request) -> None:
        pass

    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        yield StreamEvent(run.next_sequence, text_delta="It ")
        if run.next_sequence:
            yield StreamEvent(run.next_sequence + 1, finish_reason="stop")

    played = play([[FINISH]], begin=begin, resume=resume, limits=MANY, new_budget=budgets)
    assert (played.record.status, played.record.text) == ("completed", "It It ")
    assert budgets.used == Spent(requests=1, retries=1, waited=1.0)


@pytest.mark.parametrize(("before", "end"), [([], 60.0), ([CUT], 10.0)])
def test_a_budget_that_lasts_longer_makes_neither_an_answer_nor_a_recovery_longer(
    before: list[Any], end: float
) -> None:
    attempts = [*before, [*[say(".", 4.0)] * 20, FINISH]]
    limits = RecoveryLimits(seconds=10.0)
    played = play(attempts, can_continue=True, limits=limits, new_budget=Budgets(seconds=500.0))
    assert played.record.status == "failed"
    assert played.run.time == pytest.approx(end)
