"""The lab in a real browser: it opens, runs a notebook and shows a widget."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import Lab, LabPage

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def opened(lab: Lab, walk_page: LabPage) -> LabPage:
    slider = "import ipywidgets\nipywidgets.IntSlider(value=3, description='attempts')"
    walk_page.open(lab.add("slider.ipynb", "print('你好 🙂 שלום')", slider))
    return walk_page


def test_a_notebook_runs_and_shows_its_slider(opened: LabPage) -> None:
    opened.run_all()
    expect(opened.output(0)).to_contain_text("你好 🙂 שלום")
    expect(opened.output(1).get_by_role("slider")).to_be_visible()
    expect(opened.output(1)).to_contain_text("attempts")
    assert opened.picture("slider").stat().st_size > 10_000


def test_no_popup_asks_about_news(opened: LabPage) -> None:
    opened.page.wait_for_timeout(1500)
    expect(opened.page.locator(".Toastify__toast")).to_have_count(0)
    expect(opened.page.get_by_text(re.compile("news", re.I))).to_have_count(0)
