"""Lesson 09 in a real browser: its form, its pictures, each control, and two real processes."""

from __future__ import annotations

import re

import psutil
import pytest
from playwright.sync_api import Locator, expect

import labkit
from labkit.teaching.floor import SLIDERS
from tests.browser.lab_page import Lab, LabPage
from tests.browser.test_walk import LOOK, NAMELESS, answered, changed, comes_back, press, state

pytestmark = pytest.mark.browser

FORM = 'labkit.predict("leases")'
RIGHT, WRONG = "2. Who finishes the run?", "4. What becomes of worker-1's next write?"
GIVEN = {RIGHT: "worker-2, with fence 2", WRONG: "it is kept"}
LATE = 'labkit.stepper(frozen, at="late write")'
STRIP = "labkit.strip(labkit.explore("
LENGTHS = "labkit.lease_lengths("
FLOOR = 'labkit.floor("frozen")'
LEASE, AT, SECONDS = (words for words, *_ in SLIDERS.values())
PICTURES = {
    "labkit.states()": labkit.states,
    "labkit.leases(killed)": lambda: labkit.leases("leases.killed"),
    "labkit.leases(naive)": lambda: labkit.leases("leases.read_then_write"),
    "labkit.leases(frozen)": lambda: labkit.leases("leases.frozen"),
    "labkit.leases(cut)": lambda: labkit.leases("leases.cut_off"),
}
SHORTER = {  # the same widget from a few runs: its own cells take over ten seconds
    f'{STRIP}\\"leases.reference\\"': f'{STRIP}\\"leases.cancelled\\"',
    f"{LENGTHS})": f"{LENGTHS}[10, 30])",
}


@pytest.fixture(scope="module")
def lesson(lab: Lab, walk_page: LabPage) -> LabPage:
    """The lesson with one right and one wrong prediction, and then run to its end."""
    source = (lab.work / "09_leases.ipynb").read_text(encoding="utf-8")
    for long, short in SHORTER.items():
        assert source.count(long) == 1
        source = source.replace(long, short)
    (lab.work / "leases.ipynb").write_text(source, encoding="utf-8")
    walk_page.open("leases.ipynb")
    number = walk_page.code(FORM)
    walk_page.run_through(number)
    predict(walk_page, walk_page.output(number))
    look(walk_page, walk_page.output(number).get_by_label(RIGHT), "leases_form")
    walk_page.run_all()
    return walk_page


def predict(lesson: LabPage, form: Locator) -> None:
    """By keyboard the right answer, by mouse a wrong one."""
    form.get_by_label(RIGHT).focus()
    for key in ("Space", *["ArrowDown"] * 5, "Enter"):
        lesson.page.keyboard.press(key)
    wrong = form.get_by_label(WRONG)
    wrong.click()
    wrong.select_option(GIVEN[WRONG])
    lesson.page.keyboard.press("Escape")  # closes the list
    assert given(form) == GIVEN


def given(form: Locator) -> dict[str, str]:
    """The answers, with the blanks that a list of choices has."""
    every = answered(form).items()  # and the list of tasks of a stepper, once one is open
    return {asked: choice.replace("\xa0", " ") for asked, choice in every if asked != "task"}


def look(lesson: LabPage, thing: Locator, name: str) -> None:
    """A picture of it for people to look at."""
    lesson.top(thing)
    lesson.picture(name)


def test_a_wrong_answer_leads_to_the_write_that_was_refused(lesson: LabPage) -> None:
    form = lesson.output(lesson.code(FORM))
    press(form, "Grade my answers")
    steps = form.get_by_role("button", name=re.compile("^Step there: "))
    expect(steps).to_have_text([f"Step there: {WRONG}"])
    steps.click()
    expect(form.get_by_role("status")).to_contain_text("virtual time 18.55 s")
    expect(form).to_contain_text("store refused run='run-1' by='worker-1' fence=1")


def test_a_picture_is_said_in_words_and_shown_as_wide_as_it_is(lesson: LabPage) -> None:
    for source, chart in PICTURES.items():
        lesson.cell(lesson.code(source))
        picture = lesson.output(lesson.code(source)).get_by_role("img")
        expect(picture).to_have_attribute("alt", chart().text())
        width, natural = picture.evaluate("e => [e.clientWidth, e.naturalWidth]")
        assert 600 < width <= natural
        lesson.picture(f"leases_{re.sub('[^a-z]+', '_', source)}")


def test_both_costs_of_a_lease_are_said_in_words(lesson: LabPage) -> None:
    words = re.compile("10 s: recovery after .* 30 s: recovery after ", re.S)
    picture = lesson.output(lesson.code(LENGTHS)).get_by_role("img", name=words)
    expect(picture).to_be_visible()
    look(lesson, picture, "leases_lengths")


def test_the_stepper_at_the_late_write_goes_on_and_comes_back(lesson: LabPage) -> None:
    stepper, keyboard = lesson.output(lesson.code(LATE)), lesson.page.keyboard
    late = state(stepper)
    assert "at breakpoint: late write" in late["clock"]
    assert "held by worker-2 with fence 2" in late["locals"]
    look(lesson, stepper.get_by_role("status"), "leases_late_write")
    assert "source" in changed(stepper, late, lambda: press(stepper, "Next ▶"))
    comes_back(stepper, late, lambda: press(stepper, "◀ Back"))
    changed(stepper, late, lambda: press(stepper, "◀ Event"))
    place = stepper.get_by_label("place")
    place.fill(re.findall(r"place (\d+)", late["clock"])[0])
    comes_back(stepper, late, lambda: keyboard.press("Enter"))


def test_a_tick_of_the_strip_opens_its_run_where_the_kill_struck(lesson: LabPage) -> None:
    cell = lesson.output(lesson.code(STRIP))
    told, picture = cell.get_by_role("status").first, cell.get_by_role("img")
    expect(told).to_contain_text(re.compile(r"tick 1 of \d+ · held: process killed"))
    opens_where_it_struck(cell)
    before = picture.get_attribute("src") or ""
    cell.get_by_label("tick").fill("40")
    cell.get_by_label("tick").press("Enter")
    expect(told).to_contain_text(re.compile(r"tick 40 of \d+ · held: process killed"))
    expect(picture).not_to_have_attribute("src", before)
    opens_where_it_struck(cell)
    look(lesson, told, "leases_strip")


def opens_where_it_struck(cell: Locator) -> None:
    """The stepper below stands in the task and the function that the tick names."""
    told = cell.get_by_role("status").first.text_content() or ""
    [(task, function)] = re.findall(r": process killed .*?, (.+) in (\w+)", told)
    expect(cell.get_by_role("status").last).to_contain_text(f"in {function} · task {task}")


def plays(cell: Locator, happens: str = "frozen", **chosen: float) -> str:
    """Wait for the answers and the picture of what is chosen; the picture."""
    floor, picture = labkit.floor(happens, **chosen), cell.get_by_role("img")
    expect(cell.get_by_role("status").first).to_have_text(floor.answers)
    expect(picture).to_have_attribute("alt", floor.chart.text())
    return picture.get_attribute("src") or ""


def test_each_control_of_the_floor_plays_and_draws_the_run_again_by_keyboard(
    lesson: LabPage,
) -> None:
    cell, keyboard = lesson.output(lesson.code(FLOOR)), lesson.page.keyboard
    told = cell.get_by_role("status").first
    lease, at, seconds = (cell.get_by_role("slider").nth(number) for number in range(3))
    seen = [plays(cell)]
    expect(told).to_contain_text(re.compile("worker-2, with fence 2.*is over.*it is refused", re.S))
    look(lesson, cell, "leases_floor")
    lease.focus()
    keyboard.press("End")
    seen.append(plays(cell, lease=60.0))
    expect(told).to_contain_text(re.compile("worker-1, with fence 1.*never.*it is kept", re.S))
    expect(cell.get_by_label(LEASE)).to_have_value("60")
    seconds.focus()
    keyboard.press("End")
    seen.append(plays(cell, lease=60.0, seconds=60.0))
    at.focus()
    keyboard.press("ArrowRight")
    seen.append(plays(cell, lease=60.0, seconds=60.0, at=4.0))
    cell.get_by_label(LEASE).fill("12")
    keyboard.press("Enter")
    seen.append(plays(cell, lease=12.0, seconds=60.0, at=4.0))
    expect(cell.get_by_label(AT)).to_have_value("4")
    cell.get_by_label("worker-1 is").focus()
    for key in ("Space", "ArrowDown", "ArrowDown", "Enter"):
        keyboard.press(key)
    seen.append(plays(cell, "shut down", lease=12.0, at=4.0))
    expect(cell.get_by_label(SECONDS)).to_be_disabled()
    assert len(set(seen)) == len(seen)
    look(lesson, cell, "leases_floor_shut_down")
    press(cell, "Step")
    expect(cell.get_by_role("status").last).to_contain_text("virtual time")


def test_the_real_processes_do_the_run_and_leave_none_behind(lesson: LabPage) -> None:
    done = lesson.output(lesson.code('"is done"'))
    expect(done).to_have_text(re.compile("reserve is done.*send_mail is done.*ship is done", re.S))
    expect(lesson.output(lesson.code("starts, [key"))).to_contain_text("[(1, True), (2, False)]")
    own = set(psutil.Process(lesson.lab.process.pid).children(recursive=True))
    there = [each.info for each in psutil.process_iter(["cmdline", "status"]) if each in own]
    kernels = [info for info in there if "ipykernel_launcher" in (info["cmdline"] or ())]
    assert kernels
    assert not [info for info in there if "worker" in (info["cmdline"] or ())]
    assert not [info for info in there if info["status"] == psutil.STATUS_ZOMBIE]


def test_every_control_has_a_name_and_nothing_goes_over_the_edge(lesson: LabPage) -> None:
    for source in (FORM, LATE, STRIP, FLOOR):
        told = lesson.output(lesson.code(source)).aria_snapshot()
        assert "button" in told
        assert not NAMELESS.findall(told), told
    for source in (FORM, LATE, STRIP, FLOOR, LENGTHS, *PICTURES):
        told, wide = lesson.cell(lesson.code(source)).evaluate(LOOK)
        assert not re.search("Traceback|Box\\(children|Error displaying", told), told
        assert wide <= 1, f"{source} goes {wide} pixels over the edge"


def test_answers_outlive_a_restart_of_the_kernel(lesson: LabPage) -> None:
    number = lesson.code(FORM)
    assert given(lesson.output(number)) == GIVEN
    lesson.restart()
    lesson.run_through(number)
    expect(lesson.output(number).get_by_label(RIGHT)).to_have_value(re.compile("."))
    assert given(lesson.output(number)) == GIVEN
