"""The strip in a real browser: its ticks are chosen by button and by keyboard, and open the run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import Lab, LabPage

pytestmark = pytest.mark.browser

CELL = """import labkit
labkit.strip(labkit.explore("retry.hammer", faults=("cancel", "disconnect", "stall")))"""


def test_a_tick_is_chosen_by_button_and_by_keyboard_and_opens_its_run(
    lab: Lab, lab_page: LabPage
) -> None:
    lab_page.open(lab.add("strip.ipynb", CELL))
    lab_page.run_all()
    cell = lab_page.output(0)
    told = cell.get_by_role("status").first
    expect(told).to_contain_text("broken (retry_storm): disconnect, provider in role, 0.5 s")
    picture = cell.get_by_role("img", name=re.compile("36 runs, 22 held, 5 broken, 9 unresolved"))
    expect(picture).to_be_visible()
    before = picture.get_attribute("src")
    cell.get_by_role("button", name="Row ▶", exact=True).click()
    expect(told).to_contain_text("unresolved (Deadlock): stall, provider in http_error")
    expect(picture).not_to_have_attribute("src", before or "")
    expect(cell.get_by_role("status").last).to_contain_text("in hammers · task client")
    lab_page.picture("strip")
    number = cell.get_by_label("tick")
    number.fill("10")
    number.press("Enter")
    expect(told).to_contain_text("tick 10 of 36 · held: cancel as it wakes, client in hammers")
    number.focus()
    number.press("ArrowUp")
    expect(told).to_contain_text("tick 11 of 36")
    cell.get_by_role("button", name="Not held ▶", exact=True).focus()
    lab_page.page.keyboard.press("Space")
    expect(told).to_contain_text("broken (retry_storm)")
