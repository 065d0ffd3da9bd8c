"""Exercises: unsolved as handed out, solved with the solution, and wrong answers are named."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

import labkit
from labkit.recovery.errors import ProviderError
from labkit.scenarios import clients
from labkit.simulation import Unknown
from labkit.teaching.exercises import Exercise, every

HEADLESS = {"name": "x", "attempts": [[{"http_error": {"status": 400}}], [{"say": "x"}]]}
HOPELESS = {"name": "x", "attempts": [[{"say": "x"}, {"error": "y"}]]}


def made(exercise: Exercise, code: str) -> Any:
    """What the code of an exercise defines, as the learner's cell would."""
    space: dict[str, Any] = {}
    exec(compile(code, "<the learner's cell>", "exec"), space)
    return space[exercise.name]


@pytest.fixture(params=every(), ids=lambda exercise: exercise.id)
def exercise(request: pytest.FixtureRequest) -> Exercise:
    found: Exercise = request.param
    return found


def test_it_is_unsolved_as_handed_out(exercise: Exercise) -> None:
    checked = labkit.check(exercise.id, made(exercise, exercise.start))
    assert not checked.solved
    assert checked.text().startswith(f"{exercise.id}: not solved yet\nCase: ")
    assert f"open     exercise {exercise.id}" in labkit.progress().text()


def test_it_is_solved_with_the_solution_and_that_is_kept(exercise: Exercise) -> None:
    checked = labkit.check(exercise.id, made(exercise, exercise.solution))
    assert checked.text().startswith(f"{exercise.id}: solved, in all ")
    assert checked.solved
    assert f"done     exercise {exercise.id}" in labkit.progress().text()


def test_it_shows_its_task_and_start_and_its_solution(exercise: Exercise) -> None:
    assert exercise.start in labkit.exercise(exercise.id).text()
    assert labkit.solution(exercise.id).text() == exercise.solution


def test_it_gives_the_first_hint_and_then_the_second(exercise: Exercise) -> None:
    shown = [labkit.hint(exercise.id).text() for _ in range(3)]
    assert len(exercise.hints) == 2
    assert [hint.split(": ", 1)[1] for hint in shown] == [*exercise.hints, exercise.hints[1]]
    assert labkit.hint(exercise.id, 1).text() == shown[0]
    with pytest.raises(Unknown, match="1, 2"):
        labkit.hint(exercise.id, 3)


async def blind(provider: Any, policy: Any, observe: Any) -> None:
    """As `starts_over`, but waits as asked."""
    page = observe.of("page")
    for _ in range(3):
        try:
            async for delta in provider.stream():
                if delta.visible:
                    page("shown", text=delta.text)
            return
        except ProviderError:
            await asyncio.sleep(2)


async def buffers(provider: Any, policy: Any, observe: Any) -> None:
    while True:
        try:
            texts = [delta.text async for delta in provider.stream() if delta.visible]
        except ProviderError:
            await asyncio.sleep(2)
        else:
            observe.of("page")("shown", text="".join(texts))
            return


async def swallows(provider: Any, policy: Any, observe: Any) -> None:
    try:
        await labkit_client(provider, policy, observe)
    except ProviderError:
        return


labkit_client = clients.careful


@pytest.mark.parametrize(
    ("name", "wrong", "case", "words"),
    [
        ("02.guard", lambda e, v: e.kind in labkit.TRANSIENT, "half a sentence", "had seen 'The"),
        ("02.guard", lambda e, v: not v, "want of money", "no other try can help"),
        ("02.guard", lambda e, v: False, "asked to wait 2 seconds", "It gave up, though"),
        ("02.guard", lambda e, v: not v and e.status != 429, "asked to wait", "It gave up"),
        ("02.guard", lambda e, v: "timeout" in str(e), "asked to wait", "It gave up"),
        ("02.client", blind, "half a sentence", "duplicate_text at event"),
        ("02.client", buffers, "half a sentence", "the reader had seen ''"),
        ("02.client", swallows, "half a sentence", "truncation_accepted at event"),
        ("02.client", clients.starts_over, "asked to wait 2 seconds", "retry_after_ignored"),
        ("02.retry_after", lambda h: float(h.get("retry-after", 0)), "-ms': '1500'}", "gives 0.0"),
        ("02.script", HEADLESS, "labkit's own client", "before any text, for another reason"),
        ("02.script", HOPELESS, "whatever was shown", "does not work either"),
        ("02.script", {"name": "x"}, "the script is read", "'attempts' must be a list"),
    ],
)
def test_a_typical_wrong_answer_is_told_its_case(
    name: str, wrong: Any, case: str, words: str
) -> None:
    checked = labkit.check(name, wrong)
    assert not checked.solved
    told = checked.text().splitlines()
    assert told[1].startswith("Case: ")
    assert case in told[1]
    assert words in told[2]


def test_labkits_own_client_solves_the_client_exercise() -> None:
    assert labkit.check("02.client", clients.careful).solved
    assert labkit.check("02.client", clients.with_segments).solved


def raises(error: Any, visible: Any) -> bool:
    return bool(error.colour)


async def never_waits(provider: Any, policy: Any, observe: Any) -> None:
    while True:  # noqa: ASYNC110 - that is its flaw
        await asyncio.sleep(0)


async def waits_for_nothing(provider: Any, policy: Any, observe: Any) -> None:
    await asyncio.Event().wait()


async def asks_nobody(provider: Any, policy: Any, observe: Any) -> None:
    pass


async def tells_nonsense(provider: Any, policy: Any, observe: Any) -> None:
    observe.of("page")("shown")
    await labkit_client(provider, policy, observe)


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("02.guard", raises, r"It raised AttributeError in line \d+ of raises: .*colour"),
        ("02.guard", lambda error: True, "It raised TypeError: .*takes 1 positional argument"),
        ("02.guard", lambda error, visible: "yes", "returned 'yes': True or False is needed"),
        ("02.guard", "may_retry", "What is needed: may_retry"),
        ("02.guard", asks_nobody, "What is needed: may_retry"),
        ("02.client", lambda *_: None, "What is needed: my_client"),
        ("02.client", never_waits, "It never ends: .*never_waits"),
        ("02.client", waits_for_nothing, "It never ends: .*waits_for_nothing"),
        ("02.client", asks_nobody, "It never asked the provider"),
        ("02.client", tells_nonsense, "It raised KeyError"),
        ("02.retry_after", lambda headers: "2", "It gives '2', where 2.0 is meant"),
        ("02.retry_after", lambda headers: headers["x"], "It raised KeyError in line"),
        ("02.script", clients.careful, "What is needed: my_script"),
        ("02.script", 7, "It is no script yet"),
    ],
)
def test_strange_code_gets_an_answer_in_words(name: str, wrong: Any, words: str) -> None:
    checked = labkit.check(name, wrong)
    assert not checked.solved
    assert re.search(words, checked.text())


def spins(error: Any, visible: Any) -> bool:
    while True:
        pass


async def spins_in_a_run(provider: Any, policy: Any, observe: Any) -> None:
    while True:
        pass


@pytest.mark.parametrize(("name", "wrong"), [("02.guard", spins), ("02.client", spins_in_a_run)])
def test_code_that_spins_is_stopped_and_the_kernel_is_usable(
    name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labkit.teaching.exercises.SECONDS", 0.2)  # real: nothing else can end it
    before = set(threading.enumerate())
    assert "It did not end within 0.2 s" in labkit.check(name, wrong).text()
    assert set(threading.enumerate()) <= before
    assert labkit.simulate("retry.rate_limit").error is None


def test_the_failing_run_can_be_stepped_through_in_the_learners_own_function() -> None:
    checked = labkit.check("02.client", blind)
    assert checked.run is not None
    assert any(place.function == "blind" for place in checked.run.recorded)
    guard = labkit.check("02.guard", raises).run
    assert guard is not None
    assert any(place.function == "raises" for place in guard.recorded)


def test_an_unknown_exercise_lists_those_there_are() -> None:
    for call in (labkit.exercise, labkit.hint, labkit.solution):
        with pytest.raises(Unknown, match=r"02\.guard, 02\.client, 02\.retry_after, 02\.script"):
            call("02.gard")
    with pytest.raises(Unknown):
        labkit.check("02.gard", None)
