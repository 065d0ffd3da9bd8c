"""The prediction table is graded from traces, and other policies and memories flip the answers."""

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest

import labkit
from labkit.recovery.checkpoint import Checkpointer
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.session import Session
from labkit.scenarios import facts, interruptions
from labkit.scenarios.catalogue import find, simulate
from labkit.scenarios.office import Office
from labkit.simulation import Fault, Run, SimulationError
from tests.simulation.kit import trace

TABLE = labkit.predict("interruptions")
COLUMNS = {name: getattr(facts, name) for name in TABLE.columns}
CHOICES = {name: tuple(column["choices"]) for name, column in TABLE.columns.items()}
YES, SEGMENT, NO = CHOICES["retried"]
NONE, PAGE, DRAFT, MESSAGE, ANSWER = CHOICES["text_kept"]
NOTHING, USER, TOOL, WHOLE = CHOICES["checkpoint_saved"]

# row -> the three answers, and the kind of event that decided each
KEY = {
    "interruption.rate_limit": [(YES, "decision"), (NONE, "http_error"), (USER, "checkpoint")],
    "interruption.error": [(NO, "decision"), (DRAFT, "draft"), (TOOL, "checkpoint")],
    "interruption.stop": [(NO, "cancel"), (DRAFT, "draft"), (TOOL, "checkpoint")],
}
FORGETFUL_KEY = {
    "interruption.rate_limit": KEY["interruption.rate_limit"],
    "interruption.error": [(NO, "decision"), (PAGE, "end"), (TOOL, "checkpoint")],
    "interruption.stop": [(NO, "cancel"), (PAGE, "end"), (TOOL, "checkpoint")],
}


def answers(run: Run) -> list[tuple[str, str]]:
    found = [fact(run.trace) for fact in COLUMNS.values()]
    return [(fact.answer, run.trace[fact.event].kind) for fact in found]


@pytest.mark.parametrize("row", TABLE.rows)
def test_labkit_retries_the_refusal_alone_and_keeps_text_and_steps(row: str) -> None:
    assert answers(simulate(row)) == KEY[row]


@pytest.mark.parametrize("row", TABLE.rows)
def test_the_forgetful_runtime_loses_the_text_of_two_rows(row: str) -> None:
    assert answers(simulate(f"{row}_forgetful")) == FORGETFUL_KEY[row]


def test_every_answer_is_one_of_the_columns_choices_wherever_a_cancel_strikes() -> None:
    for row, column in product(TABLE.rows, COLUMNS):
        for point in range(20):
            run = simulate(row, faults=[Fault("cancel", point, "turn")])
            assert COLUMNS[column](run.trace).answer in CHOICES[column]


def test_without_rate_limit_in_retry_on_the_first_answer_flips_with_its_event() -> None:
    row = "interruption.rate_limit"
    before = facts.retried(simulate(row).trace)
    policy = replace(find(row).policy, retry_on=TRANSIENT - {"rate_limit"})
    run = simulate(row, policy=policy)
    after = facts.retried(run.trace)
    assert (before.answer, after.answer) == (YES, NO)
    assert run.trace[after.event]["reason"] == "rate_limit is not in retry_on"
    assert simulate(row).trace[before.event]["action"] == "retry"


def with_memory(row: str, memory: type[Checkpointer]) -> Run:
    return simulate(find(row).but(make=partial(Office, memory=memory)))


class TakesDraftsForAnswers(Checkpointer):
    async def save(self, changed: Session, step: str = "") -> None:
        drafts = changed.drafts
        await super().save(replace(changed, drafts=()), "answer" if drafts else step)


class SavesAtTheEnd(Checkpointer):
    """Holds every step back until the turn is over."""

    async def save(self, changed: Session, step: str = "") -> None:
        self.session = changed
        if step in ("answer", "closed"):
            self.session = replace(changed, drafts=())
            await super().save(changed, step)


class SavesNoTools(Checkpointer):
    async def save(self, changed: Session, step: str = "") -> None:
        await super().save(changed, step if step != "tool" else "")


@pytest.mark.parametrize(
    ("memory", "text", "checkpoint"),
    [
        (Checkpointer, DRAFT, TOOL),
        (interruptions.Forgetful, PAGE, TOOL),
        (TakesDraftsForAnswers, ANSWER, TOOL),
        (SavesAtTheEnd, DRAFT, NOTHING),
        (SavesNoTools, DRAFT, USER),
    ],
)
@pytest.mark.parametrize("row", ["interruption.error", "interruption.stop"])
def test_another_memory_flips_the_answer_and_its_event(
    row: str, memory: Any, text: str, checkpoint: str
) -> None:
    run = with_memory(row, memory)
    told = [facts.text_kept(run.trace), facts.checkpoint_saved(run.trace)]
    assert [fact.answer for fact in told] == [text, checkpoint]
    usual = {"draft": DRAFT, "end": PAGE, "checkpoint": ANSWER}
    assert usual[run.trace[told[0].event].kind] == text
    if checkpoint == NOTHING:
        assert run.trace[told[1].event] == facts.interruption(run.trace)
    else:
        assert run.trace[told[1].event]["step"] == {TOOL: "tool", USER: "user"}[checkpoint]


def test_a_stall_with_segments_is_retried_in_a_new_segment() -> None:
    assert facts.retried(simulate("retry.stall").trace).answer == SEGMENT


def test_a_cancel_after_the_answer_finds_the_whole_turn_saved() -> None:
    run = simulate("interruption.rate_limit")
    late = [*run.trace[2:3], *run.trace[9:], replace(run.trace[-1], kind="cancel")]
    events = tuple(replace(event, index=index) for index, event in enumerate(late))
    assert facts.checkpoint_saved(events).answer == WHOLE


def test_text_of_an_attempt_that_was_made_again_is_not_the_answer_that_was_saved() -> None:
    events = trace(
        (0, "provider", "request"),
        (1, "page", "shown", {"text": "The "}),
        (2, "provider", "error"),
        (3, "provider", "request"),
        (4, "session", "checkpoint", {"step": "answer"}),
        (5, "lab", "end", {"task": "client", "outcome": "result"}),
    )
    assert facts.text_kept(events) == facts.Fact(PAGE, 5)


def test_a_run_that_nothing_interrupts_has_no_facts() -> None:
    with pytest.raises(SimulationError, match="nothing was interrupted"):
        facts.retried(simulate("retry.many_scripts").trace)


def test_text_that_a_message_holds_was_kept_when_it_was_said() -> None:
    row = ("assistant", "Let me look.", (), "", "")
    session = {"messages": (row,), "checkpoint": None, "drafts": (), "running": ()}
    events = trace(
        (0, "page", "shown", {"text": "Let me look."}),
        (1, "session", "checkpoint", {"step": "said"}),
        (2, "session", "checkpoint", {"step": "tool"}),
        (3, "user", "cancel"),
        (4, "lab", "left", {"ann": tuple(session.items())}),
    )
    assert facts.text_kept(events) == facts.Fact(MESSAGE, 1)


def test_of_several_turns_the_last_one_to_end_decides() -> None:
    ends = [(0, "lab", "end", {"task": "turn", "outcome": told}) for told in ("error", "result")]
    assert facts.outcome_of_turn(trace(*ends)) == facts.Fact("result", 1)


def test_a_turn_that_starts_after_the_first_one_has_ended_is_not_beside_it() -> None:
    first, second = ({"session": "ann", "message": text} for text in ("a1", "a2"))
    events = trace(
        *((0, "user", "sends", {"session": "ann", "text": text}) for text in ("a1", "a2")),
        (0, "dispatcher", "turn_start", first),
        (1, "dispatcher", "turn_end", first),
        (1, "dispatcher", "turn_start", second),
    )
    assert facts.second_message(events) == facts.Fact("a turn of its own, after the first one", 4)


def test_the_first_start_that_makes_it_so_many_decides() -> None:
    events = trace(*((0, "dispatcher", kind) for kind in ("turn_start", "turn_end") * 2))
    assert facts.at_a_time(events) == facts.Fact("1", 0)
