"""Stepper and panel in a real browser: buttons, each control by keyboard, and hostile text."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, LabPage

pytestmark = pytest.mark.browser

EVIL = """import labkit
evil = "<script>document.title = 'taken'</script><img src=x onerror=\\"document.title='taken'\\">"
attempt = [{"say": evil}, {"say": "שלום 你好 \\x1b[31m"}, {"finish": "stop"}]
script = labkit.script({"name": "own", "about": evil, "attempts": [attempt]})
run = labkit.simulate(labkit.find("retry.guarded").but(script=script, claim=evil))
run"""


def press(cell: Locator, name: str) -> None:
    cell.get_by_role("button", name=name, exact=True).click()


STEPPER, PANEL = "labkit.stepper('interruption.error')", "labkit.panel('retry.stall')"
SHOWN = [EVIL, "labkit.stepper(run, at=-1)", "labkit.panel(run.scenario)", STEPPER, PANEL]


@pytest.fixture(scope="module")
def widgets(lab: Lab, walk_page: LabPage) -> LabPage:
    """One notebook with a cell for each widget, run."""
    walk_page.open(lab.add("widgets.ipynb", *SHOWN))
    walk_page.run_all()
    return walk_page


def test_the_stepper_goes_back_and_forth_by_button_and_by_keyboard(widgets: LabPage) -> None:
    cell, keyboard = widgets.output(SHOWN.index(STEPPER)), widgets.page.keyboard
    clock = cell.get_by_role("status")
    for button, place in [("Last ⏭", r"(\d+) of \1"), ("⏮ First", "0 of"), ("Next ▶", "1 of")]:
        press(cell, button)
        expect(clock).to_contain_text(re.compile(f"place {place}"))
    press(cell, "◀ Back")
    expect(clock).to_contain_text("place 0 of")
    press(cell, "Breakpoint ▶")
    expect(clock).to_contain_text("at breakpoint: version check")
    press(cell, "Event ▶")
    press(cell, "◀ Event")
    press(cell, "Last ⏭")
    for _ in range(5):
        press(cell, "◀ Breakpoint")
    expect(clock).to_contain_text("at breakpoint: retry guard")
    expect(clock).to_contain_text("virtual time 2.7 s")
    expect(cell).to_contain_text("segment 1, open: 'The refund was sent '")
    expect(cell.locator("[aria-current=step]")).to_contain_text("→")
    widgets.picture("stepper")
    cell.get_by_role("slider").focus()
    keyboard.press("Home")
    expect(clock).to_contain_text("place 0 of")
    keyboard.press("ArrowRight")
    expect(clock).to_contain_text("place 1 of")
    cell.get_by_label("place").fill("9")
    keyboard.press("Enter")
    expect(clock).to_contain_text("place 9 of")
    cell.get_by_role("button", name="turn", exact=True).focus()
    keyboard.press("Space")
    press(cell, "Last ⏭")
    expect(clock).to_contain_text("task turn")


def test_hostile_text_is_shown_as_text(widgets: LabPage) -> None:
    for number in range(3):
        expect(widgets.output(number)).to_contain_text("<script>document.title = 'taken'")
        expect(widgets.output(number).locator("img[src=x]")).to_have_count(0)
    expect(widgets.output(1)).to_contain_text(r"שלום 你好 \x1b[31m")
    widgets.picture("hostile")
    assert "taken" not in widgets.page.title()


def test_the_panel_runs_again_at_every_change(widgets: LabPage) -> None:
    cell = widgets.output(SHOWN.index(PANEL))
    picture = cell.locator("img").first
    token = cell.get_by_label("token")
    before = picture.get_attribute("src")
    press(cell, "stall")
    expect(token).to_have_value("retry.stall~stall@0")
    expect(picture).not_to_have_attribute("src", before or "")
    cell.get_by_label("strikes at").fill("1")
    widgets.page.keyboard.press("Enter")
    expect(token).to_have_value("retry.stall~stall@1")
    first_wait = cell.get_by_label("first_wait")
    first_wait.fill("99")
    first_wait.press("Enter")
    expect(cell.get_by_role("alert")).to_contain_text("PolicyError: max_wait")
    expect(token).to_have_value("retry.stall~stall@1")
    first_wait.fill("2")
    first_wait.press("Enter")
    expect(cell.get_by_role("alert")).to_have_count(0)
    widgets.picture("panel")
    token.fill("retry.down~attempts=2")
    token.press("Enter")
    expect(cell.get_by_label("scenario")).to_have_value("retry.down")
    expect(cell).to_contain_text("gave up after attempt 2 of 2: attempts")


def test_a_chart_has_its_text_form_also_in_a_saved_copy_without_its_kernel(
    lab: Lab, lab_page: LabPage
) -> None:
    cells = ["import labkit\nlabkit.timeline('retry.naive')", "labkit.chain('retry.guarded')"]
    name = lab.add("charts.ipynb", *cells)
    lab_page.open(name)
    lab_page.run_all()
    told = [re.compile("duplicate_text: do not retry"), re.compile("decide .* 'retry guard'")]
    for number, words in enumerate(told):
        expect(lab_page.output(number).get_by_role("img", name=words)).to_be_visible()
    lab_page.restart()
    lab_page.menu("File", "Save Notebook")
    assert "image/png" in lab_page.kept_outputs(0)
    lab.end_kernel(name)
    lab_page.open(name)
    for number, words in enumerate(told):
        expect(lab_page.output(number).get_by_role("img", name=words)).to_be_visible()
    lab_page.picture("charts")
