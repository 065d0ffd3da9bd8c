"""The exercises of leases: a typical wrong answer is told its case.

That each is open as handed out and solved by its solution stands in `test_exercises`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import labkit
from labkit.recovery.renewal import Renewal
from labkit.teaching.exercises import exercises
from tests.simulation.kit import virtually

from .checking import is_told_its_case

OVER = "'running', 'worker': 'worker-2', 'fence': 1, 'until': 10.0}, 'me': 'worker-1', 'now': 10.0"
AGAIN = "'worker': 'worker-1', 'fence': 1, 'until': 10.0}, 'me': 'worker-1', 'now': 5.0"


def free(row: Any, now: float) -> bool:
    return bool(row.status == "queued" or (row.status == "running" and now >= row.until))


def after_the_end_only(row: Any, me: str, now: float) -> int | None:
    if row.status == "running" and now == row.until:
        return None
    return claims(row, me, now)


def claims(row: Any, me: str, now: float) -> int | None:
    mine = row.status == "running" and row.worker == me
    return row.fence + 1 if free(row, now) else row.fence if mine else None


def keeps_the_fence(row: Any, me: str, now: float) -> int | None:
    return (row.fence or 1) if free(row, now) else claims(row, me, now)


def starts_at_one(row: Any, me: str, now: float) -> int | None:
    return 1 if row.status == "queued" else claims(row, me, now)


def rises_for_the_holder(row: Any, me: str, now: float) -> int | None:
    return row.fence + 1 if claims(row, me, now) is not None else None


def shuts_the_holder_out(row: Any, me: str, now: float) -> int | None:
    return row.fence + 1 if free(row, now) else None


def holds_it_for_ever(row: Any, me: str, now: float) -> int | None:
    return row.fence if row.status == "running" and row.worker == me else claims(row, me, now)


def takes_whatever_nobody_holds(row: Any, me: str, now: float) -> int | None:
    return row.fence + 1 if row.worker is None else claims(row, me, now)


def retries_too(row: Any, me: str, now: float) -> int | None:
    return row.fence + 1 if row.status == "failed" else claims(row, me, now)


def writes(row: Any, me: str, fence: int, now: float) -> bool:
    mine = (row.worker, row.fence) == (me, fence)
    return bool(mine and row.status == "running" and now < row.until)


def never_asks_the_time(row: Any, me: str, fence: int, now: float) -> bool:
    return bool((row.worker, row.fence, row.status) == (me, fence, "running"))


def writes_at_the_very_end(row: Any, me: str, fence: int, now: float) -> bool:
    return never_asks_the_time(row, me, fence, now) and now <= row.until


def compares_the_fence_alone(row: Any, me: str, fence: int, now: float) -> bool:
    return bool(row.fence == fence and row.status == "running" and now < row.until)


def takes_a_newer_fence(row: Any, me: str, fence: int, now: float) -> bool:
    still = row.status == "running" and row.worker == me and now < row.until
    return bool(still and fence >= row.fence)


def lets_nobody_pass(row: Any, me: str, fence: int, now: float) -> bool:
    mine = row.worker in (None, me) and row.fence == fence
    return bool(mine and (row.until is None or now < row.until))


def asks_for_no_state(row: Any, me: str, fence: int, now: float) -> bool:
    return bool((row.worker, row.fence) == (me, fence) and now < row.until)


def renews(last: float, length: float, now: float) -> float | None:
    late = now + length / 12 >= last + 0.8 * length
    return None if late else max(last + length / 3 - now, length / 12)


def counts_from_now(last: float, length: float, now: float) -> float | None:
    return length / 3 if renews(last, length, now) else None


def does_not_stop(last: float, length: float, now: float) -> float | None:
    return max(last + length / 3 - now, length / 12)


def stops_at_the_end(last: float, length: float, now: float) -> float | None:
    return does_not_stop(last, length, now) if now < last + length else None


def waits_less_than_nothing(last: float, length: float, now: float) -> float | None:
    return last + length / 3 - now if renews(last, length, now) else None


def stops_after_one_failure(last: float, length: float, now: float) -> float | None:
    return renews(last, length, now) if now < last + length / 3 else None


@pytest.mark.parametrize(
    ("name", "wrong", "case", "words"),
    [
        ("09.claim", after_the_end_only, OVER, "It gives None; 2 is expected"),
        ("09.claim", keeps_the_fence, "'queued', 'fence': 2", "It gives 2; 3 is expected"),
        ("09.claim", starts_at_one, "'queued', 'fence': 2", "It gives 1; 3 is expected"),
        ("09.claim", rises_for_the_holder, AGAIN, "It gives 2; 1 is expected"),
        ("09.claim", shuts_the_holder_out, AGAIN, "It gives None; 1 is expected"),
        ("09.claim", holds_it_for_ever, "'now': 11.0", "It gives 1; 2 is expected"),
        ("09.claim", takes_whatever_nobody_holds, "awaiting_input", "gives 2; None is expected"),
        ("09.claim", retries_too, "failed", "It gives 2; None is expected"),
        ("09.claim", lambda row, me, now: now >= row.until, "queued", "It raised TypeError"),
        (
            "09.write",
            lambda row, me, fence, now: row.worker == me,
            "'worker': 'worker-1', 'fence': 3",
            "It gives True; False is expected",
        ),
        ("09.write", never_asks_the_time, "'now': 12.0", "It gives True; False is expected"),
        ("09.write", writes_at_the_very_end, "'now': 10.0", "It gives True; False is expected"),
        ("09.write", compares_the_fence_alone, "'worker': 'worker-2', 'fence': 1", "gives True"),
        ("09.write", takes_a_newer_fence, "'fence': 2, 'now': 5.0", "It gives True"),
        ("09.write", lets_nobody_pass, "'status': 'queued'", "It gives True; False is expected"),
        ("09.write", asks_for_no_state, "'status': 'completed'", "It gives True"),
        ("09.write", lambda row, me, fence, now: False, "'now': 5.0", "gives False; True"),
        ("09.renew", counts_from_now, "'now': 0.1", "It gives 4.0; 3.9 is expected"),
        ("09.renew", does_not_stop, "'now': 9.0", "It gives 1.0; None is expected"),
        ("09.renew", stops_at_the_end, "'now': 9.0", "It gives 1.0; None is expected"),
        ("09.renew", waits_less_than_nothing, "'now': 3.5", "It gives 0.5; 1.0 is expected"),
        ("09.renew", stops_after_one_failure, "'now': 4.5", "It gives None; 1.0 is expected"),
    ],
)
def test_a_typical_wrong_answer_is_told_its_case(
    name: str, wrong: Any, case: str, words: str
) -> None:
    is_told_its_case(name, wrong, case, words)


@pytest.mark.parametrize(
    ("name", "right"), [("09.claim", claims), ("09.write", writes), ("09.renew", renews)]
)
def test_another_right_answer_is_as_good_as_the_solution(name: str, right: Any) -> None:
    assert labkit.check(name, right).text().startswith(f"{name}: solved, in all ")


def test_a_row_names_nobody_where_nobody_holds_it() -> None:
    seen: list[Any] = []

    def looks(row: Any, me: str, now: float) -> None:
        seen.append((row.worker, row.until))

    labkit.check("09.claim", looks)
    assert seen == [(None, None)]


def test_the_rule_of_the_exercise_is_what_a_renewal_does_while_every_try_fails() -> None:
    """A lease of twelve seconds, last renewed at 0: the tries, and then it stops."""
    length, tried = 12.0, list[float]()

    async def program() -> float:
        clock = asyncio.get_running_loop().time

        async def fails() -> bool:
            tried.append(clock())
            raise OSError("gone")

        renewal = Renewal(fails, length=length, since=0.0, observe=lambda kind, **_: None)
        await renewal.until_lost()
        return clock()

    stopped, now, meant = virtually(program()), 0.0, list[float]()
    while (wait := renews(0.0, length, now)) is not None:
        now += wait
        meant.append(now)
    assert tried == pytest.approx(meant)
    assert stopped == pytest.approx(now)


def test_every_state_and_both_ends_of_a_lease_are_among_the_cases() -> None:
    known = exercises()
    states = {case["row"]["status"] for case in known["09.claim"]["cases"]}
    assert states == {"queued", "running", "awaiting_input", "failed", "completed", "cancelled"}
    for name in ("09.claim", "09.write"):
        ends = [case["now"] - case["row"].get("until", 99) for case in known[name]["cases"]]
        assert 0.0 in ends
