"""A lab and a page for the browser tests; without a Chromium they are a visible skip.

In CI a missing browser is a failure.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest

from labkit.commands import system


@pytest.fixture(scope="session")
def chromium() -> str:
    """The Chromium to drive."""
    path = system.find_chromium()
    if path:
        return path
    reason = "no Chromium was found: install one, or name it in LABKIT_CHROMIUM"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """One server for all browser tests, with a `work` of its own."""
    from tests.browser import lab_page

    with lab_page.running_lab(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[object]:
    """One Chromium for all browser tests."""
    from playwright.sync_api import sync_playwright

    from tests.browser import lab_page

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=chromium, headless=True, args=lab_page.CHROMIUM_FLAGS
        )
        yield running
        running.close()


@pytest.fixture
def lab_page(lab: object, browser: object, tmp_path: pathlib.Path) -> Iterator[object]:
    """A page of its own for one test; its kernels end with it."""
    yield from _page(lab, browser, tmp_path)


@pytest.fixture(scope="module")
def walk_page(
    lab: object, browser: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[object]:
    """One page for all tests of a module, which walk through one notebook."""
    yield from _page(lab, browser, tmp_path_factory.mktemp("pictures"))


def _page(lab: object, browser: object, pictures: pathlib.Path) -> Iterator[object]:
    from tests.browser import lab_page

    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield lab_page.LabPage(lab, context.new_page(), lab_page.picture_folder(pictures))
    context.close()
    lab.end_kernels()
