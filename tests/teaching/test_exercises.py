"""Exercises: unsolved as handed out, solved with the solution, and wrong answers are named."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import labkit
from labkit.recovery.errors import ProviderError
from labkit.scenarios import clients
from labkit.simulation import Unknown
from labkit.teaching.exercises import exercises

from .checking import is_told_its_case

HEADLESS = {"name": "x", "attempts": [[{"http_error": {"status": 400}}], [{"say": "x"}]]}
HOPELESS = {"name": "x", "attempts": [[{"say": "x"}, {"error": "y"}]]}


EXERCISES = exercises()


def made(name: str, code: str) -> Any:
    """What the code of an exercise defines, as the learner's cell would."""
    space: dict[str, Any] = {}
    exec(compile(code, "<the learner's cell>", "exec"), space)
    return space[EXERCISES[name]["name"]]


@pytest.mark.parametrize("name", EXERCISES)
def test_it_is_unsolved_as_handed_out(name: str) -> None:
    checked = labkit.check(name, made(name, EXERCISES[name]["start"]))
    assert not checked.solved
    assert checked.text().startswith(f"{name}: not solved yet\nCase: ")
    assert f"open     exercise {name}" in labkit.progress().text()


@pytest.mark.parametrize("name", EXERCISES)
def test_it_is_solved_with_the_solution_and_that_is_kept(name: str) -> None:
    checked = labkit.check(name, made(name, EXERCISES[name]["solution"]))
    assert checked.text().startswith(f"{name}: solved, in all ")
    assert checked.solved
    assert f"done     exercise {name}" in labkit.progress().text()


@pytest.mark.parametrize("name", EXERCISES)
def test_it_shows_its_task_and_start_its_two_hints_and_its_solution(name: str) -> None:
    told = EXERCISES[name]
    shown = labkit.exercise(name).text()
    assert told["task"] in shown
    assert told["start"] in shown
    assert labkit.solution(name).text() == told["solution"]
    hints = [labkit.hint(name).text(), labkit.hint(name, 2).text()]
    assert [hint.split(": ", 1)[1] for hint in hints] == told["hints"]
    with pytest.raises(Unknown, match="1, 2"):
        labkit.hint(name, 3)


async def asks_nobody(provider: Any, policy: Any, observe: Any) -> None:
    pass


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


def joined(chunks: list[bytes]) -> str:
    return b"".join(chunks).decode().rstrip()


def framed(name: str, data: str) -> bytes:
    return ("".join(f"{name}{line}\n" for line in data.split("\n")) + "\n").encode()


def by_text_lines(chunks: list[bytes]) -> list[str]:
    """Right but for the ends of lines: a text's splitlines knows ten of them."""
    found, data = [], list[str]()
    *lines, _ = (b"".join(chunks) + b"|").decode().splitlines()
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        if not line and data:
            found.append("\n".join(data))
            data = []
    return found


async def numbers_blind(desk: Any, limits: Any, observe: Any) -> None:
    await desk.begin()
    async for event in desk.connect(""):
        desk.page("text_delta", text=json.loads(event.data).get("text_delta", ""))


@pytest.mark.parametrize(
    ("name", "wrong", "case", "words"),
    [
        ("02.guard", lambda e, v: e.kind in labkit.TRANSIENT, "'visible': True", "gives True"),
        ("02.guard", lambda e, v: not v, "insufficient_quota", "gives True; False"),
        ("02.guard", lambda e, v: False, "429", "gives False; True"),
        ("02.guard", lambda e, v: not v and e.status != 429, "429", "gives False"),
        ("02.guard", lambda e, v: not v and "503" not in str(e), "insufficient", "gives True"),
        ("02.guard", lambda e, v: "yes", "429", "gives 'yes'; True is expected"),
        ("02.client", blind, "half a sentence", "duplicate_text at event"),
        ("02.client", buffers, "half a sentence", "The reader sees 'The refund was sent on"),
        ("02.client", swallows, "half a sentence", "truncation_accepted at event"),
        ("02.client", clients.starts_over, "asked to wait 2 seconds", "retry_after_ignored"),
        ("02.client", asks_nobody, "asked to wait 2 seconds", "The reader sees ''; with"),
        ("02.retry_after", lambda h: float(h.get("retry-after", 0)), "-ms': '1500'}", "gives 0.0"),
        ("02.retry_after", lambda headers: "2", "2", "It gives '2'; 2.0 is expected"),
        ("02.script", HEADLESS, "", "labkit gave up before any text"),
        ("02.script", HOPELESS, "", "does not work either"),
        (
            "03.decode",
            lambda chunks: joined(chunks).split("\n\n"),
            "data: one",
            "gives ['data: one",
        ),
        ("03.decode", by_text_lines, "\\u2028line", "gives"),
        ("03.frame", lambda data: f"data: {data}\n\n".encode(), "two\\nlines", "gives ['two'"),
        ("03.frame", lambda data: framed("data:", data), "begins with", "gives ['begins"),
        ("03.reader", numbers_blind, "cut@1", "ProviderError leaves it"),
        ("04.owner", lambda run, user, tenant: user == "ann", "other", "gives True; False"),
        ("04.owner", lambda run, user, tenant: tenant == "acme", "bob", "gives True; False"),
        ("04.goes_on", lambda run: not run.finish_reason, "stopped", "gives True; False"),
        ("04.goes_on", lambda run: run.status != "stopped", "stop", "gives True; False"),
        ("04.merge", lambda draft, more: draft + more, "your manager", "is expected"),
        ("04.call", lambda raw: json.loads(raw or "{}"), "VP", "It raised JSONDecodeError in line"),
    ],
)
def test_a_typical_wrong_answer_is_told_its_case(
    name: str, wrong: Any, case: str, words: str
) -> None:
    is_told_its_case(name, wrong, case, words)


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


async def cancels_itself(provider: Any, policy: Any, observe: Any) -> None:
    await labkit_client(provider, policy, observe)
    raise asyncio.CancelledError


async def tells_nonsense(provider: Any, policy: Any, observe: Any) -> None:
    observe.of("page")("shown")
    await labkit_client(provider, policy, observe)


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("02.guard", raises, r"It raised AttributeError in line \d+ of raises: .*colour"),
        ("02.guard", lambda error: True, "It raised TypeError.*takes 1 positional argument"),
        ("02.guard", "may_retry", "^02.guard: give it a function: may_retry$"),
        ("02.client", lambda *_: None, "It raised SimulationError.*a client is an async function"),
        ("02.client", never_waits, "It raised Livelock: .*never_waits"),
        ("02.client", waits_for_nothing, "It raised Deadlock: .*waits_for_nothing"),
        ("02.client", cancels_itself, r"It raised CancelledError in line \d+ of cancels_itself"),
        ("02.client", tells_nonsense, "It raised KeyError"),
        ("02.retry_after", lambda headers: headers["x"], "It raised KeyError in line"),
        ("02.script", {"name": "x"}, "It raised ScriptError: 'attempts' is missing or empty"),
        ("02.script", clients.careful, "It raised ScriptError"),
        ("02.script", 7, "It raised ScriptError"),
    ],
)
def test_strange_code_gets_an_answer_in_words(name: str, wrong: Any, words: str) -> None:
    checked = labkit.check(name, wrong)
    assert not checked.solved
    assert re.search(words, checked.text())


def test_the_failing_run_can_be_stepped_through_in_the_learners_own_function() -> None:
    run = labkit.check("02.client", blind).run
    assert run is not None
    assert any(place.function == "blind" for place in run.recorded)


def test_an_unknown_exercise_lists_those_there_are() -> None:
    for call in (labkit.exercise, labkit.hint, labkit.solution):
        with pytest.raises(Unknown, match=r"'02\.guard', '02\.client', '02\.retry_after'"):
            call("02.gard")
    with pytest.raises(Unknown):
        labkit.check("02.gard", None)


def cells_of(name: str) -> list[str]:
    """The source of every code cell of the exercise's lesson."""
    books = (Path(__file__).parents[2] / "notebooks").glob(f"{name[:2]}*.ipynb")
    every = [cell for b in books for cell in json.loads(b.read_text(encoding="utf-8"))["cells"]]
    return ["".join(cell["source"]) for cell in every if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", EXERCISES)
def test_its_function_hides_nothing_that_its_notebook_has_imported(name: str) -> None:
    nodes = [node for source in cells_of(name) for node in ast.walk(ast.parse(source))]
    imports = (node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    names = {alias.asname or alias.name for node in imports for alias in node.names}
    assert "labkit" in names
    assert EXERCISES[name]["name"] not in names


@pytest.mark.parametrize("name", sorted(EXERCISES))
def test_the_notebook_hands_out_the_code_that_the_exercise_starts_from(name: str) -> None:
    handed = [source for source in cells_of(name) if f'check("{name}"' in source]
    start = EXERCISES[name]["start"].strip().split("\n\n")[-1]
    assert any(start in source for source in handed)
