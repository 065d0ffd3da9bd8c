"""JupyterLab as a learner meets it: a server of `python -m labkit lab`, and a page on it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Locator, Page, expect

from labkit.commands import sandbox

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60.0  # seconds for anything that a busy machine may delay
EXPECTED = 20_000  # milliseconds: playwright's own 5 s are short for two busy cores
expect.set_options(timeout=EXPECTED)


@dataclasses.dataclass(frozen=True)
class Lab:
    """A running server: `url` ends with a slash, `work` holds the learner's copies."""

    url: str
    token: str
    work: pathlib.Path
    process: subprocess.Popen[str]

    def api(self, path: str, method: str = "GET") -> Any:
        """What the server's own API answers."""
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(f"{self.url}api/{path}", headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def wait_until_it_listens(self) -> None:
        """JupyterLab prints its address and then listens."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.api("status")
                return
            except urllib.error.URLError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def add(self, name: str, *sources: str) -> str:
        """Write a notebook of these code cells into `work`; its name."""
        cells = [
            {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "source": source}
            | {"outputs": [], "execution_count": None}
            for number, source in enumerate(sources)
        ]
        kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
        book = {"cells": cells, "metadata": {"kernelspec": kernel}}
        book |= {"nbformat": 4, "nbformat_minor": 5}
        (self.work / name).write_text(json.dumps(book), encoding="utf-8")
        return name

    def end_kernel(self, name: str) -> None:
        """End the kernel of a notebook.

        The server refuses while a kernel is on its way up or down, so it is asked until it is gone.
        """
        until = time.monotonic() + PATIENCE
        while sessions := [each for each in self.api("sessions") if each["path"] == name]:
            for session in sessions:
                try:
                    self.api(f"sessions/{session['id']}", "DELETE")
                except urllib.error.HTTPError as refusal:
                    if time.monotonic() > until:
                        raise
                    refusal.close()
                    time.sleep(0.2)


@contextlib.contextmanager
def running_lab(folder: pathlib.Path) -> Iterator[Lab]:
    """`python -m labkit lab` in a sandbox, on a port that the system chooses."""
    variables = {**sandbox.variables(folder), "LABKIT_ENVIRONMENT": "current"}
    process = subprocess.Popen(
        [sys.executable, "-m", "labkit", "lab", "--port", "0", "--no-browser"],
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"(http://127\.0\.0\.1:\d+/)\S*\?token=(\w+)", line)
            if found:
                lab = Lab(found[1], found[2], pathlib.Path(variables["LABKIT_WORK"]), process)
                lab.wait_until_it_listens()
                yield lab
                return
        raise RuntimeError(f"the lab ended with exit code {process.wait()}")
    finally:
        process.terminate()
        process.wait(PATIENCE)


class LabPage:
    """One page of the lab, driven as a person would: menus, cells, what can be seen."""

    def __init__(self, lab: Lab, page: Page, pictures: pathlib.Path) -> None:
        self.lab = lab
        self.page = page
        self.pictures = pictures
        self.name = ""

    def open(self, name: str) -> None:
        """Open a notebook of `work` and wait for its kernel."""
        self.name = name
        self.page.goto(f"{self.lab.url}lab/tree/{name}?token={self.lab.token}&reset")
        expect(self.notebook.first).to_be_visible(timeout=PATIENCE * 1000)
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        """Wait until the kernel is idle, this page is connected, and no cell waits to be run.

        It is this notebook's own kernel: another page of the same lab may have one too.
        """
        until = time.monotonic() + PATIENCE
        calm = 0
        while time.monotonic() < until:
            sessions = self.lab.api("sessions")
            kernels = [each["kernel"] for each in sessions if each["path"] == self.name]
            idle = kernels and all(
                kernel["execution_state"] == "idle" and kernel["connections"] > 0
                for kernel in kernels
            )
            calm = calm + 1 if idle and not self.waiting_cells() else 0
            if calm == 3:
                return
            self.page.wait_for_timeout(100)
        raise TimeoutError(f"the kernel is not idle after {PATIENCE:.0f} s: {sessions}")

    def run_all(self) -> None:
        """Run → Run All Cells, and wait for the last one; an error if not even the first ran."""
        prompt = self.notebook.locator(".jp-CodeCell .jp-InputPrompt").first
        before = prompt.text_content() or ""
        self.menu("Run", "Run All Cells")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"))
        expect(prompt).not_to_have_text(before)
        self.wait_until_idle()

    def run_cell(self, number: int) -> None:
        """Run code cell `number` by keyboard, without waiting for it."""
        self.editor(number).click()
        self.page.keyboard.press("Shift+Enter")

    def run_through(self, number: int) -> None:
        """From the first cell of all to code cell `number`, with Shift+Enter, as a reader does."""
        code = [n for n, cell in enumerate(self.saved()) if cell["cell_type"] == "code"]
        self.notebook.locator(".jp-Cell").first.click()
        for _ in range(code[number] + 1):
            self.page.keyboard.press("Shift+Enter")
        self.wait_until_idle()

    def edit(self, number: int, source: str) -> None:
        """Put `source` in place of what stands in code cell `number`, and run it."""
        self.editor(number).click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Shift+Enter")
        self.wait_until_idle()

    def restart(self) -> None:
        """Kernel → Restart Kernel…, and yes; then wait until the new kernel has answered.

        Until the server says so, the old kernel still looks idle.
        """
        self.menu("Kernel", "Restart Kernel…")
        yes = self.page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart")
        with self.page.expect_response(re.compile(r"/restart\b"), timeout=PATIENCE * 1000):
            yes.click()
        self.wait_until_idle()

    def menu(self, title: str, entry: str) -> None:
        """Choose an entry of the menu bar."""
        exactly = {name: re.compile(f"^{re.escape(name)}$") for name in (title, entry)}
        self.page.locator(".lm-MenuBar-item", has_text=exactly[title]).click()
        self.page.locator(".lm-Menu-itemLabel", has_text=exactly[entry]).click()

    def show(self, name: str) -> None:
        """Bring the tab of that name to the front."""
        self.page.locator(".lm-TabBar-tab", has_text=name).click()

    def top(self, thing: Locator) -> float:
        """Where it stands on the page once it is scrolled to and no longer moves."""
        before = -1.0
        for _ in range(100):
            thing.evaluate("part => part.scrollIntoView({block: 'center'})")  # no error if replaced
            box = thing.bounding_box()
            if box and box["y"] == before:
                return before
            before = box["y"] if box else -1.0
            self.page.wait_for_timeout(200)
        raise TimeoutError(f"{thing} does not come to rest")

    def waiting_cells(self) -> int:
        """How many cells show `[*]`."""
        return self.notebook.locator(".jp-InputPrompt", has_text="[*]").count()

    @property
    def notebook(self) -> Locator:
        """The notebook that is shown."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook")

    def cell(self, number: int) -> Locator:
        """Code cell `number`, counted from 0, scrolled to."""
        cell = self.notebook.locator(".jp-CodeCell").nth(number)
        cell.scroll_into_view_if_needed()
        return cell

    def code(self, fragment: str) -> int:
        """The number of the one code cell with `fragment` in its source."""
        sources = ["".join(c["source"]) for c in self.saved() if c["cell_type"] == "code"]
        [number] = [number for number, source in enumerate(sources) if fragment in source]
        return number

    def editor(self, number: int) -> Locator:
        """The place to type in of code cell `number`."""
        return self.cell(number).locator(".jp-InputArea-editor .cm-content")

    def output(self, number: int) -> Locator:
        """The output area of code cell `number`."""
        return self.cell(number).locator(".jp-Cell-outputArea")

    def saved(self) -> list[Any]:
        """The cells as the file has them; one that is being written is read again."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                text = (self.lab.work / self.name).read_text(encoding="utf-8")
                cells: list[Any] = json.loads(text)["cells"]
                return cells
            except ValueError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def kept_outputs(self, number: int) -> Any:
        """What the saved notebook holds for code cell `number`, by kind, once it is saved."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            cell = [cell for cell in self.saved() if cell["cell_type"] == "code"][number]
            if cell["outputs"]:
                return cell["outputs"][0]["data"]
            self.page.wait_for_timeout(100)
        raise TimeoutError(f"{self.name} was not saved")

    def picture(self, name: str) -> pathlib.Path:
        """Save what can be seen; the file."""
        self.pictures.mkdir(parents=True, exist_ok=True)
        path = self.pictures / f"{name}.png"
        self.page.screenshot(path=path)
        return path


def picture_folder(fallback: pathlib.Path) -> pathlib.Path:
    """Where pictures go: the folder that LABKIT_PICTURES names, or the test's own."""
    named = os.environ.get("LABKIT_PICTURES")
    return pathlib.Path(named) if named else fallback
