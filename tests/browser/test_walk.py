"""A learner's walk through the notebooks in a real browser, with pictures of what was seen.

LABKIT_PICTURES names the folder for the pictures; `lab.png` there is the one in the README, to be
copied to `data/pictures`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, LabPage

pytestmark = pytest.mark.browser

RIGHT, WRONG = (f"{row}. How many requests does the provider get?" for row in (1, 3))
FORM = 'labkit.predict("retry_boundary")'
STEPPER = 'labkit.stepper(guarded, at="retry guard")'
CHART = "labkit.timeline(naive, beside=guarded)"
PANEL = 'labkit.panel("retry.stall")'
GUARD = 'labkit.check("02.guard", may_retry)'
LAST = "labkit.progress()"
ANSWER = f"""def may_retry(error, visible):
    return {{}}


{GUARD}
"""
# ipywidgets gives a slider no name: ours stand beside a number with a name that does the same.
# A number to which nobody gives a name is called "null".
NAMELESS = re.compile(r'^\s*- (button|combobox|spinbutton|textbox)(?! "(?!null"))', re.M)

LOOK = """cell => {  // its text, and by how much anything shown goes over the right edge
    const right = part => part.getBoundingClientRect().right;
    const all = [...cell.querySelectorAll(".jp-Cell-outputArea *")];
    const shown = all.filter(part => part.getBoundingClientRect().width > 0);
    return [cell.textContent, Math.max(...shown.map(right), 0) - right(cell)];
}"""


@pytest.fixture(scope="module")
def walk(walk_page: LabPage) -> LabPage:
    """Notebook 02 with one right and one wrong prediction, and then run to its end."""
    walk_page.open("02_retry_boundary.ipynb")
    form = walk_page.code(FORM)
    walk_page.run_through(form)
    predict(walk_page, walk_page.output(form))
    walk_page.picture("walk_predict")
    walk_page.run_all()
    return walk_page


def predict(walk: LabPage, form: Locator) -> None:
    """By keyboard the right answer, by mouse a wrong one."""
    form.get_by_label(RIGHT).focus()
    for key in ("Space", "ArrowDown", "ArrowDown", "Enter"):  # a closed list leaves arrows to cells
        walk.page.keyboard.press(key)
    wrong = form.get_by_label(WRONG)
    wrong.click()
    wrong.select_option("2")
    walk.page.keyboard.press("Escape")  # closes the list
    expect(form.get_by_label(WRONG)).to_have_value("2")
    expect(form.get_by_label(RIGHT)).to_have_value("2")


def answered(form: Locator) -> dict[str, str]:
    """The choice of every list of the form that has one."""
    chosen = {}
    for number in range(form.get_by_role("combobox").count()):
        box = form.get_by_role("combobox").nth(number)
        label, choice = box.evaluate("e => [e.labels[0].textContent, e.selectedOptions[0].text]")
        chosen[label] = choice
    return {label: choice for label, choice in chosen.items() if choice != "choose..."}


def press(part: Locator, name: str) -> None:
    part.get_by_role("button", name=name, exact=True).click()


def state(stepper: Locator) -> dict[str, str]:
    """What a stepper shows: the clock, the line with the arrow, the locals, what was seen."""
    parts = {
        "clock": stepper.get_by_role("status"),
        "source": stepper.locator("[aria-current=step]"),
        "locals": stepper.get_by_role("table"),
    }  # no inner_text: it is empty until the page has drawn a cell that was scrolled to
    seen = {name: part.text_content() or "" for name, part in parts.items()}
    return seen | {"text": (stepper.text_content() or "").partition("seen by the user")[2]}


def changed(stepper: Locator, before: dict[str, str], act: Callable[[], object]) -> set[str]:
    """The parts that `act` changes, once the clock has moved."""
    act()
    expect(stepper.get_by_role("status")).not_to_have_text(before["clock"])
    now = state(stepper)
    return {part for part in now if now[part] != before[part]}


def comes_back(stepper: Locator, before: dict[str, str], act: Callable[[], object]) -> None:
    act()
    expect(stepper.get_by_role("status")).to_have_text(before["clock"])
    assert state(stepper) == before


def test_the_stepper_goes_back_and_comes_again(walk: LabPage) -> None:
    stepper, keyboard = walk.output(walk.code(STEPPER)), walk.page.keyboard
    guard = state(stepper)
    assert "at breakpoint: retry guard" in guard["clock"]
    expect(stepper.get_by_role("row", name=re.compile("^visible"))).to_contain_text("True")
    walk.picture("walk_guard")
    assert "source" in changed(stepper, guard, lambda: press(stepper, "◀ Back"))
    comes_back(stepper, guard, lambda: press(stepper, "Next ▶"))
    slider = stepper.get_by_role("slider")
    slider.focus()
    assert changed(stepper, guard, lambda: keyboard.press("Home")) == set(guard)
    walk.picture("walk_first_place")
    first = state(stepper)
    press(stepper, "Breakpoint ▶")
    expect(stepper.get_by_role("status")).to_contain_text("at breakpoint: has streamed")
    comes_back(stepper, guard, lambda: press(stepper, "Breakpoint ▶"))
    comes_back(stepper, first, lambda: press(stepper, "⏮ First"))
    slider.focus()
    assert changed(stepper, first, lambda: keyboard.press("End")) == set(guard)
    press(stepper, "◀ Breakpoint")
    expect(stepper.get_by_role("status")).to_have_text(guard["clock"])


def test_the_chart_is_an_image_and_is_kept_in_words_too(walk: LabPage) -> None:
    number = walk.code(CHART)
    picture = walk.output(number).get_by_role("img")
    picture.scroll_into_view_if_needed()
    assert "duplicate_text: do not retry" in (picture.get_attribute("alt") or "")
    width, natural = picture.evaluate("e => [e.clientWidth, e.naturalWidth]")
    assert 600 < width <= natural
    walk.picture("walk_chart")
    walk.menu("File", "Save Notebook")
    kept = walk.kept_outputs(number)
    assert "image/png" in kept
    words = "".join(kept["text/plain"])
    assert "retry.naive" in words
    assert "duplicate_text" in words


def test_an_exercise_names_the_case_that_fails_and_then_is_solved(walk: LabPage) -> None:
    number = walk.code(GUARD)
    expect(walk.output(number)).to_contain_text("02.guard: not solved yet")
    walk.edit(number, ANSWER.format("error.kind in TRANSIENT"))
    expect(walk.output(number)).to_contain_text("02.guard: not solved yet")
    expect(walk.output(number)).to_contain_text("Case:")
    walk.picture("walk_exercise_wrong")
    walk.edit(number, ANSWER.format("error.kind in TRANSIENT and not visible"))
    expect(walk.output(number)).to_contain_text("02.guard: solved")
    walk.picture("walk_exercise_solved")


def test_a_miss_leads_to_the_place_of_the_event_that_decided_it(walk: LabPage) -> None:
    form = walk.output(walk.code(FORM))
    press(form, "Grade my answers")
    steps = form.get_by_role("button", name=re.compile("^Step there: "))
    expect(steps).to_have_text([f"Step there: {WRONG}"])
    steps.scroll_into_view_if_needed()
    walk.picture("walk_graded")
    steps.click()
    stepper = form.get_by_role("status")
    expect(stepper).to_contain_text("task client")
    expect(form).to_contain_text("reason='visible output'")
    stepper.scroll_into_view_if_needed()
    walk.picture("walk_miss")


def test_the_panel_runs_again_and_its_token_opens_the_same_run(walk: LabPage) -> None:
    panel, keyboard = walk.output(walk.code(PANEL)), walk.page.keyboard
    token, picture = panel.get_by_label("token"), panel.get_by_role("img")
    seen = [picture.get_attribute("src"), token.input_value()]
    expect(panel).to_contain_text("nothing yet")
    for change in (
        lambda: press(panel, "disconnect"),
        lambda: panel.get_by_label("strikes at").fill("2"),
        lambda: panel.get_by_label("attempts").fill("2"),
    ):
        change()
        keyboard.press("Enter")
        expect(token).not_to_have_value(seen[-1])
        expect(picture).not_to_have_attribute("src", seen[-2])
        seen += [picture.get_attribute("src"), token.input_value()]
    expect(panel).not_to_contain_text("nothing yet")
    picture.scroll_into_view_if_needed()
    walk.picture("walk_panel")
    token.focus()
    keyboard.press("ControlOrMeta+a")
    keyboard.press("ControlOrMeta+c")
    number = walk.code(LAST)
    walk.editor(number).click()
    keyboard.press("ControlOrMeta+a")
    keyboard.insert_text("labkit.from_token('")
    keyboard.press("ControlOrMeta+v")
    keyboard.insert_text("')")
    keyboard.press("Shift+Enter")
    expect(walk.output(number)).to_contain_text("retry.stall: ")
    told = walk.output(number).text_content() or ""
    assert "disconnect" in told
    assert told[told.index("retry.stall") :].strip() in (panel.text_content() or "")
    walk.picture("walk_token")


def test_every_control_has_a_name_and_tab_goes_through_them_in_order(walk: LabPage) -> None:
    for source in (FORM, STEPPER, PANEL):
        told = walk.output(walk.code(source)).aria_snapshot()
        assert "button" in told
        assert not NAMELESS.findall(told), told
    stepper = walk.output(walk.code(STEPPER))
    controls = stepper.locator("button, input, select, [role=slider]")
    controls.first.focus()
    for number in range(controls.count()):
        expect(controls.nth(number)).to_be_focused()
        walk.page.keyboard.press("Tab")


def test_answers_outlive_a_restart_of_the_kernel(walk: LabPage) -> None:
    number = walk.code(FORM)
    before = answered(walk.output(number))
    assert before == {RIGHT: "2", WRONG: "2"}
    walk.restart()
    walk.run_through(number)
    expect(walk.output(number).get_by_label(RIGHT)).to_have_value("2")
    assert answered(walk.output(number)) == before


LATER = [
    "03_sse_on_the_wire",
    "04_resume_a_broken_stream",
    "05_stop_keeps_context",
    "06_sessions_and_tools",
    "07_timeouts_and_budgets",
    "08_idempotency",
    "09_leases",
]
BOOKS = [
    "00_start_here",
    "01_three_interruptions",
    *(pytest.param(name, marks=pytest.mark.slow) for name in LATER),
]


@pytest.mark.parametrize("name", BOOKS)
def test_a_notebook_runs_to_its_end_and_shows_every_widget(name: str, lab_page: LabPage) -> None:
    lab_page.open(f"{name}.ipynb")
    lab_page.run_all()
    expect(lab_page.notebook).not_to_contain_text("Loading widget")
    for number in range(lab_page.notebook.locator(".jp-CodeCell").count()):
        told, wide = lab_page.cell(number).evaluate(LOOK)
        assert not re.search("Traceback|Box\\(children|Error displaying", told), told
        assert wide <= 1, f"cell {number} goes {wide} pixels over the edge"
    for widget in ("Grade my answers", "Next ▶"):
        expect(lab_page.notebook.get_by_role("button", name=widget).first).to_be_visible()
    lab_page.picture(f"walk_{name}")


def test_the_picture_for_the_readme_shows_the_lab_in_one_look(lab: Lab, lab_page: LabPage) -> None:
    cells = ["import labkit\nrun = labkit.simulate('retry.stall')"]
    cells += ["labkit.stepper(run, at='new segment')", "labkit.timeline(run)"]
    lab_page.page.set_viewport_size({"width": 1180, "height": 1330})
    lab_page.open(lab.add("lab.ipynb", *cells))
    lab_page.run_all()
    lab_page.page.keyboard.press("ControlOrMeta+b")  # the file browser goes
    expect(lab_page.output(1)).to_contain_text("at breakpoint: new segment")
    expect(lab_page.output(2).get_by_role("img")).to_be_visible()
    lab_page.cell(0)
    path = lab_page.picture("lab")
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
    assert path.stat().st_size < 150_000
