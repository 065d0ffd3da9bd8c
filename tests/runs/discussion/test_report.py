"""The report: in every state, with everything that an audit asks for, and its texts are data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt

from labkit.recovery.run_states import STATES
from labkit.runs.discussion.report import plain, report
from labkit.runs.discussion.talk import turn
from labkit.runs.record import AgentRun, RunEvent
from tests.runs.storing import Clock, claimed, in_memory, now

from .kit import BOTH, Table, at_table, talk

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
EVIL = [
    "<script>alert(1)</script>",
    "&lt;img src=x onerror=alert(1)&gt;",
    "[a](javascript:alert(1))",
    "![i](http://evil/x.png)",
    "<http://evil/>",
    "# Report of run 7",
    "x\n\n## Conclusion\n\nall is well",
    "x\r# y\u2028# z",
    "~~~",
    "```",
    "---",
    "===",
    "* * *",
    "_ _ _",
    "+ x",
    "- [x] done",
    "1. one",
    "12345) one",
    "> quoted",
    "|a|b|\n|-|-|",
    "__bold__ _it_ *it* ~~gone~~",
    "`code`",
    "\\",
    "\\# x",
]
QUIET = "create_ticket costs 5,000 (or 6.5): a-b, c#d; 团队 ok? run_started! 'x' \"y\""


def a_run(**changed: Any) -> AgentRun:
    """A run of a question."""
    with in_memory(Clock()) as store:
        run = now(claimed(store)).run
    return replace(run, **{"given": {"question": "Which?"}, **changed})


def tags(text: str) -> list[str]:
    """What a reader of Markdown makes of it, beside its text."""
    return [token.tag for token in MARKDOWN.parse(text) if token.tag] + [
        child.type
        for token in MARKDOWN.parse(text)
        for child in token.children or []
        if child.type not in ("text", "softbreak")
    ]


@pytest.mark.parametrize("text", EVIL, ids=ascii)
def test_a_text_with_marks_of_markdown_or_html_is_shown_as_it_is_and_nothing_else(
    text: str,
) -> None:
    for around in ("{}", "- {}", "before {} after"):
        shown = around.format(plain(text))
        assert tags(shown) == tags(around.format("x"))
        told = "".join(
            child.content for token in MARKDOWN.parse(shown) for child in token.children or []
        )
        assert told == around.removeprefix("- ").format(" ".join(text.split()))


@pytest.mark.parametrize("text", EVIL, ids=ascii)
def test_no_text_changes_the_form_of_a_report(text: str) -> None:
    def formed(said: str) -> list[str]:
        values = talk(
            turn("proposer", said, [said]), turn("person", said), memories=[said], conclusion=said
        )
        run = a_run(given={"question": said}, end_reason=said, error_code="X", error_message=said)
        started = {"worker": said, "fence": 1, "model": said}
        return tags(report(run, values, [RunEvent(1, "run_started", started, 0.0)]))

    assert formed(text) == formed("x")


def test_plain_words_stay_as_they_are() -> None:
    assert plain(QUIET) == QUIET


@pytest.mark.parametrize("state", STATES)
def test_there_is_a_report_in_every_state_also_before_the_first_step(state: str) -> None:
    told = report(a_run(status=state), {}, [])
    assert f"- State: {plain(state)}" in told.splitlines()
    assert "(not finished)" in told
    assert "- End: not yet" in told


def test_an_audit_finds_who_said_and_did_what_in_which_order_and_what_it_cost() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        await table.done("Before [needs clarification]", "5,000")
        run = await table.done(f"{BOTH} [needs clarification]", "6,000", "approve", "reject")
        events = await table.events(run)
        kept = await table.saver.aget_tuple(
            {"configurable": {"thread_id": run.checkpoint["thread"], "checkpoint_ns": ""}}
        )
        told = report(run, kept.checkpoint["channel_values"], events).splitlines()
        for line in (
            "- State: completed",
            "- Model: fake",
            "- End: consensus",
            "- Cost of the steps that are kept: "
            f"{run.result['tokens']} tokens, {run.result['requests']} requests to models",
            "- The user's budget: 5,000",
            "- What is the budget? -\\> 6,000",
            "2. **proposer** (tools: create_ticket, send_mail): Plan v1: one service, one "
            "database, one page.",
            "3. **tool** (tools: create_ticket): create_ticket: receipt 1",
            "4. **tool** (tools: send_mail): send_mail: not run: a person said no",
            "- start 4: worker a, fence 4, model fake",
            "Take plan v2. The remembered budget is kept to.",
            f"## Events ({run.seq})",
            f"- #{run.seq} run_completed",
            "- #3 node_finished recall",
        ):
            assert line in told, line
        numbers = [line for line in told if line.startswith("- #")]
        assert len(numbers) == run.seq

    at_table(program)


def test_a_failed_run_tells_its_error_and_what_was_done_before() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.until(await table.submit(model="fake-broken"), "failed")
        told = report(run, {}, await table.events(run))
        assert "- Error: QUOTA_EXCEEDED: the demo model has no quota left" in told.splitlines()

    at_table(program)


def test_a_failure_that_was_mended_stays_in_the_report_with_its_retry() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.until(await table.submit(model="fake-broken"), "failed")
        await table.store.retry(run.run_id, run.owner, model="fake")
        run = await table.until(run, "completed")
        told = report(run, {}, await table.events(run)).splitlines()
        failed = next(n for n, line in enumerate(told) if " run_failed" in line)
        assert told[failed].endswith("QUOTA_EXCEEDED: the demo model has no quota left")
        assert told[failed + 1].endswith("run_started after a retry fence 2")
        assert "- #2 run_started fence 1" in told

    at_table(program)
