"""Worlds, grid, queue and storm in a real browser: each control is clicked or typed at."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, LabPage
from tests.browser.test_walk import NAMELESS, press

pytestmark = pytest.mark.browser

CELLS = (
    "import labkit\nlabkit.worlds()",
    "labkit.grid()",
    "labkit.queue()",
    "labkit.storm('budgets.storm', beside='budgets.storm_jitter')",
)


@pytest.fixture(scope="module")
def seen(lab: Lab, walk_page: LabPage) -> LabPage:
    """All four in one notebook."""
    walk_page.open(lab.add("effects.ipynb", *CELLS))
    walk_page.run_all()
    return walk_page


def look(seen: LabPage, thing: Locator, name: str) -> None:
    """A picture of it for people to look at."""
    seen.top(thing)
    seen.picture(name)


def test_both_worlds_are_drawn_again_for_another_way_or_service_and_open_their_runs(
    seen: LabPage,
) -> None:
    cell, keyboard = seen.output(0), seen.page.keyboard
    told, picture = cell.get_by_role("status").first, cell.get_by_role("img")
    expect(told).to_contain_text("hurts the world where it happened (effect_repeated)")
    expect(told).to_contain_text("Both callers have seen exactly the same until 11.4 s")
    look(seen, picture, "effects_worlds")
    before = picture.get_attribute("src")
    cell.get_by_label("way").select_option("hopes")
    expect(told).to_contain_text("hurts the world where it did not happen (effect_lost)")
    expect(picture).not_to_have_attribute("src", before or "")
    assert "effect_lost" in (picture.get_attribute("alt") or "")
    cell.get_by_label("service").focus()
    for key in ("Space", "ArrowDown", "ArrowDown", "Enter"):
        keyboard.press(key)
    expect(told).to_contain_text("hopes, mail: hurts")
    cell.get_by_label("way").select_option("key of the order")
    expect(told).to_contain_text("it stays open, and a person has to look")
    expect(picture).to_have_attribute("alt", re.compile("key of the order, mail"))
    look(seen, picture, "effects_worlds_open")
    for words in ("it did not happen", "it happened"):
        press(cell, f"Step: {words}")
        expect(cell).to_contain_text(f"key of the order, mail: {words}")
        press(cell, "Last ⏭")
        expect(cell.get_by_role("status").last).to_contain_text("virtual time 13.8 s")
    look(seen, cell.get_by_role("status").last, "effects_worlds_step")


def test_a_cell_of_the_grid_is_a_button_that_opens_its_run(seen: LabPage) -> None:
    cell = seen.output(1)
    place = cell.get_by_title("tries again, lose_answer: 2 duplicates; opens the run")
    expect(place).to_have_text("2")
    place.click()
    expect(cell.get_by_role("status").first).to_contain_text("tries again, lose_answer, payment")
    expect(cell.get_by_role("status").last).to_contain_text("virtual time 11.2 s")
    look(seen, cell, "effects_grid")
    cell.get_by_label("figure").select_option("open")
    cell.get_by_label("service").select_option("mail")
    place = cell.get_by_title("key of the order, fail_after: 2 open; opens the run")
    expect(place).to_have_text("2")
    expect(cell.get_by_role("status")).to_have_count(0)
    place.focus()
    seen.page.keyboard.press("Enter")
    expect(cell.get_by_role("status").first).to_contain_text("key of the order, fail_after, mail")
    cell.get_by_label("figure").select_option("waiting")
    expect(cell.get_by_title("key of the order, late: 14.2 waiting; opens the run")).to_be_visible()
    look(seen, cell, "effects_grid_waiting")


def test_a_person_asks_the_books_and_says_what_happened(seen: LabPage) -> None:
    cell = seen.output(2)
    told, books = cell.get_by_role("status").first, cell.get_by_role("status").last
    expect(told).to_contain_text("your word: none yet")
    expect(cell).not_to_contain_text("at 0.2 s")
    press(cell, "Ask the service's books")
    expect(books).to_contain_text("send_mail, order-7, 5, at 0.2 s")
    press(cell, "It did not happen")
    expect(told).to_contain_text("effect_repeated")
    look(seen, cell, "effects_queue_wrong")
    cell.get_by_role("button", name="It happened", exact=True).focus()
    seen.page.keyboard.press("Space")
    expect(told).to_contain_text("findings  none")
    look(seen, cell, "effects_queue")


def test_a_word_outlives_the_cell_and_the_kernel(seen: LabPage) -> None:
    press(seen.output(2), "It did not happen")
    expect(seen.output(2)).to_contain_text("your word: it did not happen")
    seen.restart()
    seen.run_through(3)
    expect(seen.output(2)).to_contain_text("your word: it did not happen")


def test_a_storm_is_a_picture_with_its_peak_in_words(seen: LabPage) -> None:
    picture = seen.output(3).get_by_role(
        "img", name=re.compile("at most 200 within any one second")
    )
    expect(picture).to_be_visible()
    look(seen, picture, "effects_storm")


def test_every_control_has_a_name_and_nothing_goes_over_the_edge(seen: LabPage) -> None:
    for number in range(3):
        told = seen.output(number).aria_snapshot()
        assert "button" in told
        assert not NAMELESS.findall(told), told
        wide = seen.cell(number).evaluate("cell => cell.scrollWidth - cell.clientWidth")
        assert wide <= 1
