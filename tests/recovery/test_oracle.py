"""Every script of up to four attempts, compared with a small model of the rules written apart.

Where the rules allow most scripts, those of up to three are played; those of four are slow.

The model knows no streams, tasks or timers: it adds up seconds. Scripts are grown attempt by
attempt as long as the model says that there is another attempt, and go on with answers that
succeed, so that a client which tries once too often is caught at the first place where it does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from labkit.recovery.policy import RetryPolicy
from labkit.scenarios.clients import careful, with_segments

from .playing import FINISH, PLAIN, calls, notes, play, told

STEP = 0.25  # seconds before each step of an attempt

# What an attempt is made of, and what a plain reading of the rules says about it:
# its steps, its kind of failure, whether text is shown first, and how many steps it takes.
ATTEMPTS: dict[str, tuple[list[dict[str, Any]], str | None, bool, int]] = {
    "ok": ([{"say": "x"}, FINISH], None, True, 2),
    "429": ([{"http_error": {"status": 429}}], "rate_limit", False, 1),
    "429 in 3": (
        [{"http_error": {"status": 429, "headers": {"retry-after": "3"}}}],
        "rate_limit",
        False,
        1,
    ),
    "503": ([{"http_error": {"status": 503}}], "overloaded", False, 1),
    "400": ([{"http_error": {"status": 400}}], "bad_request", False, 1),
    "error": ([{"say": "x"}, {"error": {"code": "server_error"}}], "server", True, 2),
    "stall after text": ([{"say": "x"}, {"stall": True}], "stall", True, 1),
    "stall": ([{"role": "assistant"}, {"stall": True}], "stall", False, 0),
    "cut": ([{"say": "x"}, {"end": True}], "cut_off", True, 2),
    "empty": ([{"role": "assistant"}, {"end": True}], "cut_off", False, 2),
}

POLICIES = {
    "plain": replace(PLAIN, attempts=3),
    "two attempts": replace(PLAIN, attempts=2),
    "only rate limits": replace(PLAIN, retry_on=frozenset({"rate_limit"})),
    "little time": replace(PLAIN, stall=2.0, total=6.0),
    "low cap": replace(PLAIN, attempts=3, retry_after_cap=2.0, max_wait=1.5),
}
FOUR = {f"{name}, four": replace(POLICIES[name], attempts=4) for name in ("plain", "low cap")}
NAMES = [*POLICIES, *(pytest.param(name, marks=pytest.mark.slow) for name in FOUR)]


@dataclass
class Told:
    """What an outsider sees of a run."""

    calls: int
    waits: list[float]
    segments: list[str]
    end: str | None
    time: float


def model(names: list[str], policy: RetryPolicy, segments: bool) -> tuple[Told, bool]:
    """What must be seen; and whether the script was too short to come to an end."""
    now, waits, pages = 0.0, list[float](), [""]
    for attempt, name in enumerate([*names, "ok"], start=1):
        _, kind, text, steps = ATTEMPTS[name]
        shown_at = now + STEP if text else None
        failed_at = now + steps * STEP + (policy.stall if kind == "stall" else 0)
        if failed_at >= policy.total:
            kind, failed_at = "deadline", policy.total
        if shown_at is not None and shown_at < policy.total:
            pages[-1] += "x"
        else:
            text = False
        told = Told(attempt, waits, [page for page in pages if page], kind, failed_at)
        if kind is None or kind == "deadline" or attempt == policy.attempts:
            return told, attempt > len(names)
        if kind not in policy.retry_on or (text and not (kind == "stall" and segments)):
            return told, attempt > len(names)
        wait = min(2.0 ** (attempt - 1), policy.max_wait)
        if name == "429 in 3":
            wait = 3.0
            if wait > policy.retry_after_cap:
                return told, attempt > len(names)
        if failed_at + wait >= policy.total:
            return told, attempt > len(names)
        waits.append(wait)
        now = failed_at + wait
        if text:
            pages.append("")
    raise AssertionError("a script that is grown too far")


def grown(policy: RetryPolicy, segments: bool) -> Iterator[tuple[list[str], Told]]:
    """Every script that the model plays to its last attempt, with what must be seen of it."""
    unfinished: list[list[str]] = [[]]
    while unfinished:
        names = unfinished.pop()
        for name in ATTEMPTS:
            longer = [*names, name]
            expected, too_short = model(longer, policy, segments)
            yield longer, expected
            if too_short and len(longer) < policy.attempts:
                unfinished.append(longer)


def seen(names: list[str], policy: RetryPolicy, segments: bool) -> Told:
    attempts = [[step | {"wait": STEP} for step in ATTEMPTS[name][0]] for name in [*names, "ok"]]
    run = play(attempts, with_segments if segments else careful, policy=policy)
    end = getattr(run.error, "kind", None)
    pages = [segment.text for segment in run.segments if segment.text]
    assert run.findings == (), (names, run.findings)
    if run.error is not None:
        assert notes(run)[0].startswith(f"gave up after attempt {calls(run)} of ")
    return Told(calls(run), told(run, "wait", "seconds"), pages, end, run.time)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_short_script_is_played_as_the_rules_say(name: str, segments: bool) -> None:
    policy, scripts = (POLICIES | FOUR)[name], 0
    for names, expected in grown(policy, segments):
        actual = seen(names, policy, segments)
        assert actual == expected, names
        scripts += 1
    assert scripts >= 30
