"""The exercises of turns and sessions: a typical wrong answer is told its case and what is wrong.

That each is open as handed out and solved by its solution stands in `test_exercises`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import labkit
from labkit.recovery.cancel import to_the_end

from .checking import is_told_its_case

Work = Callable[[], Awaitable[None]]


async def keeps_the_good_end_only(work: Work, keep: Work) -> None:
    await work()
    await keep()


async def keeps_after_errors_only(work: Work, keep: Work) -> None:
    try:
        await work()
    except Exception:
        await keep()
        raise
    await keep()


async def forgets_to_raise(work: Work, keep: Work) -> None:
    try:
        await work()
    except Exception:
        await keep()
        raise
    except BaseException:
        await keep()
    else:
        await keep()


async def awaits_it_bare(work: Work, keep: Work) -> None:
    try:
        await work()
    finally:
        await keep()


async def shields_and_leaves(work: Work, keep: Work) -> None:
    try:
        await work()
    finally:
        await asyncio.shield(keep())


async def survives_one_cancel(work: Work, keep: Work) -> None:
    try:
        await work()
    finally:
        keeping = asyncio.ensure_future(keep())
        try:
            await asyncio.shield(keeping)
        except asyncio.CancelledError:
            await keeping
            raise


async def tries_again(work: Work, keep: Work) -> None:
    try:
        await work()
    finally:
        try:
            await keep()
        except asyncio.CancelledError:
            await to_the_end(keep())  # type: ignore[arg-type]
            raise


async def names_the_error_again(work: Work, keep: Work) -> None:
    try:
        await work()
    except Exception as error:
        await keep()
        raise type(error)(str(error)) from error
    await keep()


async def leaves_a_task(work: Work, keep: Work) -> None:
    asyncio.create_task(asyncio.sleep(60))  # noqa: RUF006 - the flaw
    await labkits_own(work, keep)


async def labkits_own(work: Work, keep: Work) -> None:
    try:
        await work()
    finally:
        await to_the_end(keep())  # type: ignore[arg-type]


def in_two_heaps(calls: list[str], concurrent: list[str]) -> list[list[str]]:
    """Neighbours of one kind together, safe or not."""
    made: list[list[str]] = []
    for name in calls:
        if made and (name in concurrent) == (made[-1][0] in concurrent):
            made[-1].append(name)
        else:
            made.append([name])
    return made


def in_any_state(text: str, running: bool, line: int, room: int) -> str:
    if text.split()[0] in ("/stop", "/status"):
        return "at once"
    if not running and not line:
        return "turn"
    return "line" if line or text.startswith("/") else "mailbox"


def by_room(text: str, running: bool, line: int, room: int) -> str:
    """Right but for a line that waits although there is room: the message overtakes it."""
    if text.split()[0] in ("/stop", "/status"):
        return "at once"
    if not running:
        return "line" if line else "turn"
    return "line" if text.startswith("/") or not room else "mailbox"


def by_exact_words(text: str, running: bool, line: int, room: int) -> str:
    if text in ("/stop", "/status"):
        return "at once"
    if not running and not line:
        return "turn"
    return "line" if line or not room or text.startswith("/") else "mailbox"


def one_by_one(left: list[str], line: list[str]) -> list[str]:
    for text in left:
        line.insert(0, text)
    return line


ONE, TWO, ERROR = "one cancel", "two cancels", "work() ends in an error"
EARLIER = "work begins, keep begins, cancel, "


@pytest.mark.parametrize(
    ("name", "wrong", "case", "words"),
    [
        ("05.marks", lambda calls, results, running: ["done"] * 3, "[], 'running': []", "gives"),
        (
            "05.marks",
            lambda calls, results, running: [
                "done" if call in results else "unknown" for call in calls
            ],
            "'results': [], 'running': []",
            "It gives ['unknown', 'unknown', 'unknown']; ['not started', 'not started',",
        ),
        (
            "05.marks",
            lambda calls, results, running: (
                ["done" for _ in results]
                + ["unknown" for _ in running]
                + ["not started"] * (len(calls) - len(results) - len(running))
            ),
            "'results': ['b'], 'running': ['a', 'c']",
            "['unknown', 'done', 'unknown'] is expected",
        ),
        ("05.keep", keeps_the_good_end_only, ERROR, "Seen: work begins, then work()'s own error"),
        ("05.keep", keeps_after_errors_only, ONE, "Seen: work begins, cancel, then the cancel"),
        ("05.keep", forgets_to_raise, ONE, "keep ends, then it returns. Expected: keep begins"),
        ("05.keep", awaits_it_bare, ONE, f"{EARLIER}then the cancel leaves. Expected: keep"),
        ("05.keep", shields_and_leaves, ONE, "cancel, keep begins, then the cancel leaves."),
        ("05.keep", survives_one_cancel, TWO, "cancel, keep begins, cancel, "),
        ("05.keep", tries_again, ONE, f"{EARLIER}keep begins, keep ends, then the cancel"),
        (
            "05.keep",
            names_the_error_again,
            ERROR,
            "keep ends, then ProviderError('connection lost')",
        ),
        ("05.keep", leaves_a_task, "no cancel", "left_over_task at event"),
        ("05.late", lambda stored_version, session_version: True, "4, 'session_version': 3", "gi"),
        (
            "05.late",
            lambda stored_version, session_version: session_version in (0, stored_version),
            "9, 'session_version': 0",
            "It gives True; False is expected",
        ),
        ("06.batches", lambda calls, concurrent: [calls], "'add_note'],", "gives [['look_up', 're"),
        (
            "06.batches",
            lambda calls, concurrent: [[name] for name in calls],
            "['look_up', 'read_policy'], 'concurrent'",
            "It gives [['look_up'], ['read_policy']]; [['look_up', 'read_policy']] is expected",
        ),
        ("06.batches", in_two_heaps, "['add_note', 'add_note',", "gives [['add_note', 'add_note']"),
        ("06.way", in_any_state, "'room': 0", "gives 'mailbox'; 'line'"),
        ("06.way", by_room, "'line': 1, 'room': 5", "gives 'mailbox'; 'line'"),
        ("06.way", by_exact_words, "/stop all", "gives 'line'; 'at once'"),
        ("06.leftovers", lambda left, line: line, "['a2'], 'line': []", "gives []; ['a2']"),
        ("06.leftovers", one_by_one, "['a2', 'a3']", "gives ['a3', 'a2', '/help', 'a4']; ['a2',"),
    ],
)
def test_a_typical_wrong_answer_is_told_its_case(
    name: str, wrong: Any, case: str, words: str
) -> None:
    is_told_its_case(name, wrong, case, words)


def test_labkits_own_way_keeps_and_leaves() -> None:
    assert labkit.check("05.keep", labkits_own).solved


def test_the_cancelled_run_can_be_stepped_through_in_the_learners_own_function() -> None:
    run = labkit.check("05.keep", survives_one_cancel).run
    assert run is not None
    assert [fault.kind for fault in run.struck] == ["cancel", "cancel"]
    assert {place.function for place in run.recorded} == {"survives_one_cancel"}


def test_the_case_is_told_as_it_was_where_the_learners_code_changes_it() -> None:
    told = labkit.check("06.leftovers", one_by_one).text().splitlines()
    assert told[1:] == [
        "Case: {'left': ['a2', 'a3'], 'line': ['/help', 'a4']}",
        "It gives ['a3', 'a2', '/help', 'a4']; ['a2', 'a3', '/help', 'a4'] is expected.",
    ]


async def cancels_itself(work: Work, keep: Work) -> None:
    await labkits_own(work, keep)
    raise asyncio.CancelledError


async def loses_its_way(work: Work, keep: Work) -> None:
    try:
        await labkits_own(work, keep)
    except asyncio.CancelledError:
        await asyncio.Event().wait()


async def renames_the_error(work: Work, keep: Work) -> None:
    try:
        await labkits_own(work, keep)
    except Exception as error:
        raise RuntimeError("saved") from error


@pytest.mark.parametrize(
    ("wrong", "case", "words"),
    [
        (cancels_itself, "no cancel", "It raised CancelledError in line"),
        (renames_the_error, ERROR, "of renames_the_error: saved"),
        (loses_its_way, ONE, "It raised Deadlock: "),
        (lambda work, keep: None, "no cancel", "It raised TypeError: "),
    ],
)
def test_an_end_that_nobody_asked_for_is_told_in_words(wrong: Any, case: str, words: str) -> None:
    told = labkit.check("05.keep", wrong).text().splitlines()
    assert told[1] == f"Case: {case}"
    assert words in told[2]
