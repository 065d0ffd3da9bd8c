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


@pytest.fixture(scope="package")
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


@pytest.fixture(scope="package")
def context(browser: object) -> Iterator[object]:
    """What all pages of the lab have in common: above all the copy of its programs."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def lab_page(lab: object, context: object, tmp_path: pathlib.Path) -> Iterator[object]:
    """A page of its own for one test; its kernel ends with it."""
    yield from _page(lab, context, tmp_path)


@pytest.fixture(scope="module")
def walk_page(
    lab: object, context: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[object]:
    """One page for all tests of a module, on one notebook."""
    yield from _page(lab, context, tmp_path_factory.mktemp("pictures"))


def _page(lab: object, context: object, pictures: pathlib.Path) -> Iterator[object]:
    from tests.browser import lab_page

    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    made = lab_page.LabPage(lab, page, lab_page.picture_folder(pictures))
    yield made
    page.close()
    lab.end_kernel(made.name)
