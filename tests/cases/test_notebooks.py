"""Cases 71 and 74 to 76: outputs that can be compared, loops that run, and debuggers.

What no cell may hold is searched by `tests/test_tree.py`; here the search is held against the
cases, and the kernel, nbval and a plain script are really run.
"""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labkit.commands import sandbox
from tests.test_tree import NOTEBOOKS, banned, book, code_cells

from .public import case

COMPARED, AWAITED, LOOPS, DEBUGGED = case(71), case(74), case(75), case(76)
EXERCISE = "02_retry_boundary"  # the notebook with the debugger exercise

# --- the searches -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forbidden",
    [
        *COMPARED["input"]["forbidden"],
        *LOOPS["input"]["forbidden"],
        *DEBUGGED["input"]["forbidden_in_executed_cells"],
    ],
)
def test_the_search_of_cells_knows_everything_that_the_cases_forbid(forbidden: str) -> None:
    cell = "run;" if forbidden.startswith("trailing ';'") else f"x = 1\n{forbidden}"
    assert banned(cell)


def serves(node: ast.With) -> bool:
    """Whether it is a service for the length of the block, which captures no output."""
    return all(ast.unparse(item.context_expr).startswith("serve(") for item in node.items)


def awaited(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Await) for inner in ast.walk(node))


def starts_and_leaves(source: str) -> list[str]:
    """What a cell leaves running behind its back, and captures that an await gets out of."""
    nodes = list(ast.walk(ast.parse(source)))
    awaits = awaited(ast.parse(source))
    found = []
    for node in nodes:
        if isinstance(node, ast.With) and not serves(node) and awaited(node):
            found.append("a capture over an await")
        called = node.func if isinstance(node, ast.Call) else None
        name = getattr(called, "attr", getattr(called, "id", ""))
        if name in ("create_task", "ensure_future", "call_later", "Thread") and not awaits:
            found.append("a task that its cell does not await")
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_case_74_a_cell_awaits_what_it_starts(path: Path) -> None:
    violations = {source: starts_and_leaves(source) for source, _ in code_cells(path)}
    assert {source: found for source, found in violations.items() if found} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("with out:\n    await run()", ["a capture over an await"]),
        ("task = asyncio.create_task(run())", ["a task that its cell does not await"]),
        ("asyncio.ensure_future(run())", ["a task that its cell does not await"]),
        ("task = asyncio.create_task(run())\nawait task", []),
        ("log = await run()\nwith out:\n    print(log)", []),
        ("async with lock:\n    await run()", []),
        ("with serve(script) as service:\n    await run(service)", []),
        ("with serve(script), out:\n    await run()", ["a capture over an await"]),
    ],
)
def test_case_74_the_search_finds_what_a_cell_leaves_running(source: str, found: list[str]) -> None:
    assert starts_and_leaves(source) == found


def prose(path: Path) -> str:
    cells = [cell for cell in book(path)["cells"] if cell["cell_type"] == "markdown"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def has_restart_note(text: str) -> bool:
    """Whether a paragraph says: after an interrupt, restart the kernel before you debug."""
    wanted = (r"\binterrupt", r"\brestart", r"\bdebug")
    paragraphs = re.split(r"\n\s*\n", text.lower())
    return any(all(re.search(word, part) for word in wanted) for part in paragraphs)


def test_case_76_the_debugger_exercise_says_to_restart_after_an_interrupt() -> None:
    found = [path for path in NOTEBOOKS if path.stem == EXERCISE]
    if not found:
        pytest.skip(f"{EXERCISE}.ipynb is not written yet")
    assert DEBUGGED["expect"]["restart_note_present"]
    assert has_restart_note(prose(found[0]))


def test_case_76_the_search_for_the_note_can_fail() -> None:
    note = "Restart the kernel after an interrupt, before you debug again."
    assert has_restart_note(f"# Debugger\n\n{note}\n\nNow go on.")
    assert not has_restart_note("# Debugger\n\nSet a breakpoint.\n\nRestart after an interrupt.")


# --- a made-up notebook, really run -----------------------------------------------------------

CELLS: list[tuple[str, str]] = [
    (
        "import asyncio, labkit\nasync def one():\n    return 1\nbefore = len(asyncio.all_tasks())",
        "",
    ),
    ("await one()", str(LOOPS["expect"]["cell_value"])),
    (
        "async def ticks(log):\n"
        f"    for i in range({AWAITED['input']['ticks']}):\n"
        "        log.append(i)\n"
        "        await asyncio.sleep(0.1)\n"
        "    return log\n"
        "await asyncio.create_task(ticks([]))",
        str(AWAITED["expect"]["log"]),
    ),
    ("run = labkit.simulate('retry.stall')\nlen(run.segments), run.time > 5", "(2, True)"),
    ("run.to('retry guard').locals['visible'], run.findings", "(True, ())"),
    ("run.last().index == len(run.places) - 1, run.at(3).previous().index", "(True, 2)"),
    (
        "async def inside():\n    return labkit.simulate('retry.stall').hash == run.hash\n"
        "await inside()",
        "True",
    ),
    ("len(labkit.points('retry.guarded')) > 3, len(labkit.breakpoints()) > 5", "(True, True)"),
    (
        "len(asyncio.all_tasks()) - before",
        str(AWAITED["expect"]["tasks_alive_after_cell"]),
    ),
]


def notebook(cells: list[tuple[str, str]]) -> dict[str, Any]:
    """A notebook whose code cells have these sources and stored results."""
    made = []
    for number, (source, result) in enumerate(cells, start=1):
        shown = {
            "output_type": "execute_result",
            "execution_count": number,
            "metadata": {},
            "data": {"text/plain": result},
        }
        made.append(
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "source": source,
                "execution_count": number,
                "outputs": [shown] if result else [],
            }
        )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def nbval(folder: Path, **notebooks: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Run notebooks under nbval; for each the outcome of every cell."""
    for name, cells in notebooks.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook(cells)), encoding="utf-8")
    line = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-v", "--color=no"]
    line += ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder)]
    done = subprocess.run(
        [*line, *(f"{name}.ipynb" for name in notebooks)],
        cwd=folder,
        env=sandbox.for_tests(folder / "sandbox") | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=110,
    )
    pattern = r"^(\w+)::ipynb::.* (PASSED|FAILED)\b"
    outcomes: dict[str, list[str]] = {name: [] for name in notebooks}
    for name, outcome in re.findall(pattern, done.stdout, re.M):
        outcomes[name].append(outcome)
    assert all(outcomes.values()), done.stdout + done.stderr
    return outcomes


@pytest.mark.socket
@pytest.mark.slow
def test_case_71_two_runs_pass_and_a_changed_output_fails(tmp_path: Path) -> None:
    changed = [*CELLS[:1], (CELLS[1][0], "2"), *CELLS[2:]]
    first = nbval(tmp_path, good=CELLS, changed=changed)
    again = nbval(tmp_path, good=CELLS)
    runs = ["pass" if set(run["good"]) == {"PASSED"} else "fail" for run in (first, again)]
    assert runs == COMPARED["expect"]["nbval_runs"], (first, again)
    assert first["changed"] == ["PASSED", "FAILED", *["PASSED"] * (len(CELLS) - 2)]
    assert COMPARED["expect"]["mutated_output"] == "fail"


SCRIPT = """
import asyncio, labkit
run = labkit.simulate("retry.stall")
async def inside():
    return labkit.simulate("retry.stall")
again = asyncio.run(inside())
view = run.to("retry guard")
print(run.hash == again.hash, view.locals["visible"], view.next().index - view.index)
"""


@pytest.mark.socket
def test_case_75_the_helpers_work_in_a_script_and_in_a_loop_that_runs() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("True True 1\n", "")
