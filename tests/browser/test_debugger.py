"""A named breakpoint in JupyterLab's own debugger, set and met as a learner would."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest
from playwright.sync_api import Locator, expect

import labkit
from tests.browser.lab_page import PATIENCE, Lab, LabPage

pytestmark = pytest.mark.browser

CELLS = [
    "import labkit\nfrom labkit.recovery.retry import decide",
    "run = labkit.simulate('retry.guarded')\nprint(len(run.trace), 'events')",
    "labkit.stepper(run)",
]
TRIES = 4
GUARD = next(mark for mark in labkit.breakpoints() if mark.name == "retry guard")


class Debugger:
    """The debugger's sidebar beside an open notebook."""

    def __init__(self, lab_page: LabPage) -> None:
        self.lab_page = lab_page
        self.page = lab_page.page
        self.frames = self.page.locator(".jp-DebuggerCallstackFrame")
        self.here = self.page.locator(".jp-DebuggerEditor-highlight")

    def switch_on(self) -> None:
        """The bug at the top right; it is on when the kernel's files are listed."""
        self.page.locator(".jp-DebuggerBugButton").click()
        expect(self._source(GUARD.file)).to_have_count(1, timeout=PATIENCE * 1000)

    def break_at(self, file: str, line: int) -> None:
        """Open the file from *Kernel Sources* and click beside the line."""
        self.page.locator(".jp-Debugger-KernelSources-Filter input").fill("labkit.recovery")
        self._source(file).dblclick()
        editor = self.page.locator(".jp-MainAreaWidget:not(.jp-NotebookPanel) .cm-gutters")
        height = self.lab_page.top(editor.get_by_text(str(line), exact=True))
        beside = editor.bounding_box()
        assert beside is not None
        self.page.mouse.click(beside["x"] + 8, height + 8)
        expect(self.page.locator(f".jp-DebuggerBreakpoint[title='{file}']")).to_contain_text(
            str(line)
        )

    def run_until_it_stops(self, lab_page: LabPage, number: int, function: str) -> None:
        """Run the cell; again where the kernel had not yet heard of the breakpoint.

        The page lists a breakpoint at once and tells the kernel over another channel than cells.
        Of two threads that stand still it shows the one that it was told of first, which may be the
        one that waits for the simulation: then it goes on, and the cell is run again.
        """
        for _ in range(TRIES):
            lab_page.run_cell(number)
            with suppress(AssertionError):
                expect(self.frames.first).to_be_visible(timeout=8_000)
                with suppress(AssertionError):
                    expect(self.frames.first).to_contain_text(function, timeout=3_000)
                    return
                self.go_on()
                lab_page.show(lab_page.name)
                lab_page.wait_until_idle()

    def local(self, name: str) -> Locator:
        """A row of the variables."""
        return self.page.get_by_role("treeitem", name=f"{name}:")

    def go_on(self) -> None:
        self.page.get_by_role("button", name="Continue (F9)").click()

    def _source(self, file: str) -> Locator:
        return self.page.locator(f".jp-DebuggerKernelSource-source[title='{file}']")


def test_a_named_breakpoint_stops_the_run_which_then_goes_on_unchanged(
    lab: Lab, lab_page: LabPage
) -> None:
    lab_page.open(lab.add("debugger.ipynb", *CELLS[:2]))
    lab_page.run_all()
    whole = lab_page.output(1).inner_text()
    assert "events" in whole
    debugger = Debugger(lab_page)
    debugger.switch_on()
    debugger.break_at(GUARD.file, GUARD.line)
    lab_page.show("debugger.ipynb")
    debugger.run_until_it_stops(lab_page, 1, GUARD.function)
    expect(debugger.frames.first).to_contain_text(GUARD.function)
    expect(debugger.here.first).to_contain_text("breakpoint: retry guard")
    debugger.local("visible").scroll_into_view_if_needed()
    expect(debugger.local("visible")).to_contain_text("True")
    lab_page.picture("debugger")
    debugger.go_on()
    lab_page.show("debugger.ipynb")
    lab_page.wait_until_idle()
    expect(debugger.frames).to_have_count(0)
    expect(lab_page.output(1)).to_have_text(whole)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="both work at once from Python 3.12 on")
def test_the_stepper_steps_aside_while_a_debugger_is_on(lab: Lab, lab_page: LabPage) -> None:
    lab_page.open(lab.add("aside.ipynb", *CELLS))
    lab_page.run_all()
    expect(lab_page.output(2).get_by_role("button", name="Next ▶")).to_be_visible()
    Debugger(lab_page).switch_on()
    lab_page.run_all()
    expect(lab_page.output(1)).to_contain_text("events")
    expect(lab_page.output(2)).to_contain_text("RecorderBusy: a debugger")
    lab_page.picture("stepper_aside")
