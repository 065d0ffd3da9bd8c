"""The lab in a real browser: it opens, runs a notebook and shows a widget."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import Lab, LabPage

pytestmark = pytest.mark.browser


def test_a_notebook_runs_and_shows_its_slider(lab: Lab, lab_page: LabPage) -> None:
    slider = "import ipywidgets\nipywidgets.IntSlider(value=3, description='attempts')"
    lab_page.open(lab.add("slider.ipynb", "print('你好 🙂 שלום')", slider))
    lab_page.run_all()
    expect(lab_page.output(0)).to_contain_text("你好 🙂 שלום")
    expect(lab_page.output(1).get_by_role("slider")).to_be_visible()
    expect(lab_page.output(1)).to_contain_text("attempts")
    assert lab_page.picture("slider").stat().st_size > 10_000


def test_no_popup_asks_about_news(lab: Lab, lab_page: LabPage) -> None:
    lab_page.open(lab.add("quiet.ipynb", "1 + 1"))
    lab_page.page.wait_for_timeout(1500)
    expect(lab_page.page.locator(".Toastify__toast")).to_have_count(0)
    expect(lab_page.page.get_by_text(re.compile("news", re.I))).to_have_count(0)
