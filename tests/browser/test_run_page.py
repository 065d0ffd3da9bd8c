"""The page of discussions in a real browser: six walkthroughs, and what must not go wrong."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import httpx
import pytest

from tests.browser.lab_page import EXPECTED, expect, picture_folder
from tests.browser.run_service import HOSTILE, TOKENS, RunService

pytestmark = pytest.mark.browser

CLARIFY = "[needs clarification] Build us a website"
A_RUN = re.compile(r"/runs/\w+$")
THE_LIST = re.compile(r"/runs$")
APPROVE = "[needs approval] [needs approval] Tell the team"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunService]:
    with closing(RunService(tmp_path_factory.mktemp("runs"))) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """A page without JupyterLab needs less: ten seconds, as for what is pressed."""
    expect.set_options(timeout=10_000)
    yield
    expect.set_options(timeout=EXPECTED)


@pytest.fixture(scope="module")
def tokens() -> Iterator[str]:
    """Each test is a user of its own."""
    return iter(TOKENS)


class Reader:
    """Somebody at a page of their own, driven as a person would."""

    def __init__(self, context: Any, token: str, pictures: pathlib.Path) -> None:
        self.context = context
        self.token = token
        self.name = token.rpartition("-")[2]
        self.pictures = pictures
        self.sent: list[tuple[str, str, Any]] = []
        self.errors: list[str] = []
        self.turn_to(context.new_page())

    def turn_to(self, page: Any) -> None:
        """Look at this page from now on."""
        self.page = page
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._note)

    def _note(self, request: Any) -> None:
        if request.method != "GET":
            path = request.url.rpartition("/8000/")[2]
            self.sent.append((request.method, path, json.loads(request.post_data or "null")))

    def sent_to(self, end: str) -> list[Any]:
        """The bodies that were sent to paths with that end."""
        return [body for _, path, body in self.sent if path.endswith(end)]

    def opens(self, service: RunService, *, run: str = "") -> None:
        """Go to the page and sign in."""
        self.page.goto(f"{service.address}#{run}" if run else service.address)
        self.signs_in()

    def signs_in(self) -> None:
        self.page.get_by_label("Token").fill(self.token)
        self.page.get_by_label("Token").press("Enter")
        expect(self.page.get_by_label("Token")).to_be_hidden()

    def asks(self, question: str, *, model: str = "fake") -> None:
        self.page.get_by_label("Question").fill(question)
        self.page.get_by_label("Model", exact=True).fill(model)
        self.button("Ask").click()
        expect(self.page.locator("article h2")).to_have_text(question)

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def sees(self, words: str) -> None:
        """The run is in the state that these words tell."""
        expect(self.page.locator("article .words")).to_contain_text(words)

    def happened(self) -> list[str]:
        """Who stands in the rows of events."""
        return list(self.page.locator(".events .who").all_text_contents())

    def row(self, who: str) -> Any:
        return self.page.locator(".events li", has_text=re.compile(f"^\\s*{who}"))

    def looks_again(self) -> None:
        """Come back to the page from another tab."""
        self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    def hides(self, hidden: bool) -> None:
        """Turn to another tab of the browser, or come back."""
        told = json.dumps(hidden)
        self.page.evaluate(
            f"Object.defineProperty(document, 'hidden', {{value: {told}, configurable: true}})"
        )
        self.looks_again()

    def list_is_read(self) -> None:
        """Wait until the list has been read by itself, from the question to the answer."""
        for _ in range(2):  # the first may have been asked for before
            with self.page.expect_response(THE_LIST):
                pass

    def posts(self, service: RunService, path: str, **body: Any) -> Any:
        """Do something beside the page."""
        headers = {"authorization": f"Bearer {self.token}"}
        address = f"{service.address}{path}"
        answer = httpx.post(address, json=body, headers=headers, trust_env=False)
        assert answer.is_success, answer.text
        return answer.json()

    @contextmanager
    def streams(self, address: str) -> Iterator[None]:
        """Read events beside the page, for a while."""
        headers = {"authorization": f"Bearer {self.token}"}
        with httpx.stream("GET", address, headers=headers, trust_env=False) as answer:
            assert answer.status_code == 200
            yield

    def run(self) -> Any:
        """The open run as the service tells it."""
        return self.context.request.get(self.page.url.replace("#", "runs/")).json()

    def settles(self) -> list[str]:
        """Every event that there is stands on the page: who stands in their rows."""
        expect(self.page.locator(".events li")).to_have_count(self.run()["seq"])
        return self.happened()

    def picture(self, name: str) -> None:
        self.page.screenshot(path=self.pictures / f"runs-{name}.png")


@pytest.fixture
def reader(browser: Any, tokens: Iterator[str], tmp_path: pathlib.Path) -> Iterator[Reader]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(10_000)
    made = Reader(context, next(tokens), picture_folder(tmp_path))
    yield made
    made.page.unroute_all(behavior="ignoreErrors")
    assert made.errors == []
    context.close()


# --- the six walkthroughs


def test_a_run_is_watched_to_its_end_and_its_report_read(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(f"Which stack? [hold critic {reader.name}]")
    expect(reader.row("Proposer")).to_have_count(1)
    reader.sees("They are at work.")
    reader.picture("running")
    service.release(f"critic {reader.name}")
    reader.sees("Done: they agree.")
    expect(reader.page.locator(".conclusion")).to_contain_text("Take plan v2.")
    assert reader.settles().count("Critic") == 2
    expect(reader.page.locator("#runs li")).to_contain_text(["Done: they agree."])
    reader.page.get_by_text("Report").click()
    expect(reader.page.locator(".report pre")).to_contain_text("# Report of run")
    expect(reader.button("Cancel this run")).to_be_hidden()
    reader.picture("done")


def test_a_page_that_was_closed_and_is_opened_again_shows_each_event_once(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(f"Which stack? [hold critic {reader.name}]")
    expect(reader.row("Proposer")).to_have_count(1)
    address, before = reader.page.url, reader.happened()
    reader.page.close()
    service.release(f"critic {reader.name}")
    reader.turn_to(reader.context.new_page())
    reader.page.goto(address)  # the cookie is still there
    reader.sees("Done: they agree.")
    after = reader.settles()
    assert after[: len(before)] == before
    assert after.count("Worker") == 1


def test_a_run_goes_on_after_the_service_was_stopped_and_started(
    reader: Reader, tmp_path: pathlib.Path
) -> None:
    with closing(RunService(tmp_path)) as service:
        reader.opens(service)
        reader.asks("Which stack? [hold critic a]")
        expect(reader.row("Proposer")).to_have_count(1)
        service.stop()
        expect(reader.page.locator("#connection")).to_contain_text("lost")
        reader.page.get_by_label("Question").fill("And then?")
        reader.button("Ask").click()
        told = reader.page.locator("#ask .told")
        expect(told).to_contain_text("cannot be reached. What you typed is still here")
        reader.picture("unreachable")
        service.start()
        service.release("critic a")
        reader.sees("Done: they agree.")
        after = reader.settles()
        assert (after.count("Worker"), after.count("Proposer")) == (2, 2)
        expect(reader.page.locator("#connection")).to_be_empty()
        expect(told).to_be_empty()
        expect(reader.page.get_by_label("Question")).to_have_value("And then?")
        reader.page.goto("about:blank")  # else the service waits for who still watches


def test_without_a_mouse_it_asks_is_answered_and_the_report_is_read(
    reader: Reader, service: RunService
) -> None:
    keyboard, page = reader.page.keyboard, reader.page

    def focused(selector: str) -> None:
        expect(page.locator(f"{selector}:focus")).to_have_count(1)

    def tab_to(selector: str) -> None:
        for _ in range(40):
            keyboard.press("Tab")
            if page.locator(f"{selector}:focus").count():
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    page.goto(service.address)
    focused("#token")
    keyboard.type(reader.token)
    keyboard.press("Enter")
    focused("#question")
    keyboard.type(CLARIFY)
    keyboard.press("Control+Enter")
    focused(".asked textarea")  # by itself, since nothing else is being typed
    expect(page.get_by_label("What is the budget?")).to_be_focused()
    reader.picture("asks")
    keyboard.type("5,000")
    tab_to(".asked button")
    keyboard.press("Enter")
    focused(".words")
    reader.sees("Done: they agree.")
    expect(reader.row("You").nth(1)).to_contain_text("5,000")
    tab_to("summary")
    keyboard.press("Enter")
    expect(page.locator(".report pre")).to_contain_text("## Answers of a person")
    tab_to("#memories textarea")
    keyboard.press("End")
    keyboard.type(" in all")
    tab_to("#memories [value=correct]")
    keyboard.press("Enter")
    expect(page.locator("#memories [value=correct]")).to_be_hidden()
    expect(page.locator("#memories .saved")).to_have_text("Saved.")
    page.reload()
    expect(page.locator("#memories textarea")).to_have_value("The user's budget: 5,000 in all")


def test_a_run_that_failed_succeeds_with_another_model(reader: Reader, service: RunService) -> None:
    reader.opens(service)
    reader.asks("Which stack?", model="fake-broken")
    reader.sees("Failed.")
    expect(reader.page.locator(".retry .why")).to_contain_text("QUOTA_EXCEEDED")
    reader.picture("failed")
    before = reader.settles()
    reader.page.get_by_label("Go on with the model").fill("no-such-model")
    reader.button("Try again").click()
    expect(reader.page.locator(".retry .told")).to_contain_text("no such model")
    reader.page.get_by_label("Go on with the model").fill("fake")
    reader.button("Try again").click()
    reader.sees("Done: they agree.")
    after = reader.settles()
    assert after[: len(before)] == before
    assert after.count("Proposer") == 2  # the first one was kept
    expect(reader.row("You").last).to_contain_text("had it tried again.")


def test_a_second_run_uses_the_memory_which_is_gone_after_it_was_deleted(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(CLARIFY)
    reader.page.get_by_label("What is the budget?").fill("5,000")
    reader.button("Answer").click()
    reader.sees("Done")
    memory = reader.page.locator("#memories textarea")
    expect(memory).to_have_value("The user's budget: 5,000")
    reader.asks("Which stack?")
    expect(reader.row("Memory").first).to_contain_text("The user's budget: 5,000")
    expect(reader.page.locator(".conclusion")).to_contain_text("The remembered budget is kept to.")
    reader.picture("memory")
    reader.button("Delete").click()
    reader.button("No, leave it").click()
    expect(memory).to_have_count(1)
    reader.button("Delete").click()
    reader.button("Yes, delete it").click()
    expect(memory).to_have_count(0)
    reader.asks("Which one now?")
    expect(reader.row("Memory").first).to_contain_text("Nothing is known so far.")
    expect(reader.page.locator(".conclusion p")).to_have_text("Take plan v2.")


# --- text is text


def test_html_in_a_question_and_in_a_models_words_stays_text(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(f"[html] {HOSTILE}")
    reader.sees("Done")
    expect(reader.row("Proposer").first).to_contain_text(HOSTILE)
    expect(reader.page.locator("#runs .question")).to_have_text(f"[html] {HOSTILE}")
    reader.page.get_by_text("Report").click()
    expect(reader.page.locator(".report pre")).to_contain_text("img src=")
    assert reader.page.locator("main img, main script").count() == 0
    expect(reader.page).to_have_title(f"[html] {HOSTILE} · Discussions")


def test_what_is_approved_is_shown_to_the_letter(reader: Reader, service: RunService) -> None:
    arguments = '{"to": 12345678901234567890, "share": 1.0, "note": "\\u202eyes\\u200b <b>"}'
    unseen = ("a0", "2003", "fe0f", "e0101", "3164", "115f", "ffa0", "17b4", "180b", "34f", "2800")
    hidden = json.dumps("".join(chr(int(each, 16)) for each in unseen))
    arguments = f'{arguments[:-1]}, "hidden": {hidden}}}'

    def with_a_call(route: Any) -> None:
        run = route.fetch().json()
        ask = {"id": "ask-1", "kind": "approval", "question": "May pay run?", "tool": "pay"}
        run |= {"status": "awaiting_input", "asks": [{**ask, "digest": "0a1b", "until": 2e9}]}
        body = json.dumps(run).replace('"tool"', f'"arguments": {arguments}, "tool"')
        route.fulfill(body=body, content_type="application/json")

    reader.opens(service)
    reader.page.route(A_RUN, with_a_call)
    reader.asks("Which stack?")
    expect(reader.page.locator(".until")).to_contain_text("after that the tool does not run.")
    shown = reader.page.locator(".arguments")
    told = "".join(f"\\u{{{each}}}" for each in unseen)
    for text in ("12345678901234567890", "1.0", r"\u{202e}yes\u{200b} <b>", told):
        expect(shown).to_contain_text(text)


# --- what it asks


def test_two_approvals_stand_side_by_side_and_each_is_told_by_its_id(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(APPROVE)
    cards = reader.page.locator(".approval")
    expect(cards).to_have_count(2)
    tops = [card.bounding_box()["y"] for card in cards.all()]
    assert tops[0] == tops[1]
    reader.picture("two")
    reader.button("Reject send_mail, ask-2").click()
    expect(cards.nth(1)).to_contain_text("You rejected this.")
    reader.page.reload()
    expect(cards).to_have_count(1)
    reader.button("Approve create_ticket, ask-1").click()
    reader.sees("Done")
    answers = [(each["ask"], each["answer"]) for each in reader.sent_to("/input")]
    assert answers == [("ask-2", "reject"), ("ask-1", "approve")]
    report = reader.context.request.get(f"{reader.page.url.replace('#', 'runs/')}/report").text()
    assert "send_mail: not run" in report
    events = reader.page.locator(".events")
    expect(events).to_contain_text("approved create_ticket, ask-1.")
    expect(events).to_contain_text("rejected send_mail, ask-2.")
    reader.page.reload()  # then the events alone know the tools
    expect(events).to_contain_text("approved create_ticket, ask-1.")
    expect(events).to_contain_text("rejected send_mail, ask-2.")


def test_the_digest_that_is_sent_is_that_of_what_is_shown(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(APPROVE)
    approve = reader.button("Approve send_mail, ask-2")
    expect(approve).to_be_enabled()
    run = reader.run()
    approve.click()
    expect(reader.page.locator(".approval").nth(1)).to_contain_text("You approved this.")
    assert [each["digest"] for each in reader.sent_to("/input")] == [run["asks"][1]["digest"]]


def test_a_double_click_sends_once(reader: Reader, service: RunService) -> None:
    reader.opens(service)
    reader.page.get_by_label("Question").fill(APPROVE)
    reader.button("Ask").dblclick()
    expect(reader.page.locator(".approval")).to_have_count(2)
    reader.button("Approve create_ticket, ask-1").dblclick()
    expect(reader.page.locator(".approval").first).to_contain_text("You approved this.")
    expect(reader.button("Approve send_mail, ask-2")).to_be_enabled()
    reader.sees("It waits for you.")
    assert len(reader.sent_to("/input")) == len(reader.sent_to("runs")) == 1
    expect(reader.page.locator("#runs li")).to_have_count(1)


def test_a_question_takes_no_focus_from_who_is_typing(reader: Reader, service: RunService) -> None:
    reader.opens(service)
    reader.asks(f"{CLARIFY} [hold coordinator {reader.name}]")
    reader.sees("They are at work.")
    reader.page.get_by_label("Question").press_sequentially("And")
    service.release(f"coordinator {reader.name}")
    expect(reader.page.get_by_label("What is the budget?")).to_be_visible()
    reader.page.keyboard.type(" then?")
    expect(reader.page.get_by_label("Question")).to_have_value("And then?")


def test_what_another_tab_has_answered_is_told_and_what_was_typed_stays(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(f"{CLARIFY} [hold proposer {reader.name}]")
    mine = reader.page.get_by_label("What is the budget?")
    mine.fill("about 5,0")
    run = reader.page.url.rpartition("#")[2]
    reader.posts(service, f"runs/{run}/input", answer="7,000")
    told = reader.page.locator(".asked .told")
    expect(told).to_have_text("This was answered elsewhere.")
    service.release(f"proposer {reader.name}")
    reader.sees("Done")
    expect(told).to_have_text("This was answered elsewhere.")
    expect(mine).to_have_value("about 5,0")


def test_an_answer_that_was_taken_though_nobody_said_so_is_told_as_yours(
    reader: Reader, service: RunService
) -> None:
    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    reader.opens(service)
    reader.asks(f"{CLARIFY} [hold proposer {reader.name}]")
    reader.page.route("**/input", lose)
    reader.page.get_by_label("What is the budget?").fill("5,000")
    reader.button("Answer").click()
    expect(reader.page.locator(".asked .told")).to_have_text("You answered: 5,000")
    service.release(f"proposer {reader.name}")
    reader.sees("Done")


def test_to_cancel_takes_a_second_step(reader: Reader, service: RunService) -> None:
    reader.opens(service)
    reader.asks(f"Which stack? [hold critic {reader.name}]")
    reader.button("Cancel this run").dblclick()
    expect(reader.page.get_by_role("dialog")).to_be_visible()
    reader.page.keyboard.press("Escape")
    expect(reader.page.get_by_role("dialog")).to_be_hidden()
    assert reader.sent_to("/cancel") == []
    reader.button("Cancel this run").press("Enter")
    expect(reader.button("Yes, cancel it")).to_be_enabled()
    reader.button("Yes, cancel it").press("Enter")
    reader.sees("Cancelled.")
    assert len(reader.sent_to("/cancel")) == 1


# --- the list of runs


def test_what_changes_elsewhere_is_seen_in_the_list_without_a_click(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(f"{CLARIFY} [hold coordinator {reader.name}]")
    reader.asks("Which stack?")
    reader.sees("Done")
    reader.page.get_by_label("Question").press_sequentially("And")
    service.release(f"coordinator {reader.name}")
    lines = reader.page.locator("#runs li")
    expect(lines).to_contain_text(["Done: they agree.", "It waits for you."])
    reader.posts(service, "runs", question="From another tab?")
    expect(lines).to_contain_text(["From another tab?", "Which stack?", "Build us a website"])
    reader.page.keyboard.type(" then?")
    expect(reader.page.get_by_label("Question")).to_have_value("And then?")


def test_a_list_that_has_not_changed_is_not_written_anew(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks("Which stack?")
    reader.sees("Done")
    expect(reader.page.locator("#runs li")).to_contain_text(["Done: they agree."])
    reader.list_is_read()
    reader.page.evaluate("""() => {
        window.written = 0;
        const watch = { subtree: true, childList: true, characterData: true };
        new MutationObserver(() => window.written++).observe(document.querySelector("#runs"), watch)
    }""")
    reader.list_is_read()
    assert reader.page.evaluate("window.written") == 0


def test_a_page_that_is_hidden_reads_no_list_and_reads_it_when_it_is_back(
    reader: Reader, service: RunService
) -> None:
    read: list[str] = []
    reader.page.clock.install()
    reader.opens(service)
    expect(reader.page.locator("main")).to_be_visible()
    reader.list_is_read()
    reader.hides(True)
    reader.page.on("request", lambda request: read.append(request.url))
    reader.page.clock.run_for(60_000)
    assert read == []
    with reader.page.expect_response(THE_LIST):
        reader.hides(False)


@pytest.fixture
def filled(reader: Reader, tmp_path: pathlib.Path) -> Iterator[RunService]:
    """A service with 53 runs of the reader; the second oldest, Number 1, goes on to ask."""
    with closing(RunService(tmp_path)) as service:
        service.stop()
        questions = [f"Number {number}?" for number in range(53)]
        questions[1] += f" {CLARIFY} [hold coordinator a]"
        service.fill(f"user-{reader.name}", questions)
        service.start()
        yield service
        reader.page.goto("about:blank")  # else the service waits for who still watches


def test_older_runs_are_found_and_stay_when_the_list_is_read_again(
    reader: Reader, filled: RunService
) -> None:
    reader.opens(filled)
    lines = reader.page.locator("#runs li")
    expect(lines).to_have_count(50)
    expect(lines.last).to_contain_text("Number 3?")
    reader.button("Older runs").press("Enter")
    expect(lines).to_have_count(53)
    expect(lines.last).to_contain_text("Number 0?")
    expect(lines.nth(50).locator("a")).to_be_focused()
    expect(reader.button("Older runs")).to_be_hidden()
    reader.posts(filled, "runs", question="One more?")
    expect(lines.first).to_contain_text("One more?")
    expect(lines).to_have_count(54)
    title = reader.page.get_by_role("heading", name="What it remembers")
    assert title.bounding_box()["y"] < reader.page.viewport_size["height"]
    reader.picture("many")


def test_an_older_run_that_has_not_ended_is_read_again_too(
    reader: Reader, filled: RunService
) -> None:
    reader.opens(filled)
    reader.button("Older runs").click()
    lines = reader.page.locator("#runs li")
    expect(lines).to_have_count(53)
    filled.release("coordinator a")
    expect(lines.nth(51)).to_contain_text("It waits for you.")
    expect(lines).to_have_count(53)


def test_in_one_column_the_open_run_and_what_it_asks_come_first(
    reader: Reader, service: RunService
) -> None:
    reader.page.set_viewport_size({"width": 400, "height": 800})
    reader.opens(service)
    reader.asks(CLARIFY)
    asked = reader.page.get_by_label("What is the budget?")
    expect(asked).to_be_visible()
    question = reader.page.get_by_label("Question")
    assert asked.bounding_box()["y"] < question.bounding_box()["y"]
    order = "[...document.querySelectorAll('main textarea')].map((it) => it.id)"
    assert reader.page.evaluate(order)[1] == "question"  # for the keyboard as well
    reader.picture("narrow")
    reader.page.set_viewport_size({"width": 1200, "height": 800})
    expect(reader.page.locator("#ask + #place")).to_have_count(1)
    assert asked.bounding_box()["y"] > question.bounding_box()["y"]


# --- nothing is lost


STATES = [
    ("[hold critic {}]", "fake", "They are at work.", "Next is the critic"),
    (CLARIFY, "fake", "It waits for you.", "What is the budget?"),
    (APPROVE, "fake", "It waits for you.", "May send_mail run?"),
    ("Which stack?", "fake-broken", "Failed.", "QUOTA_EXCEEDED"),
    ("Which one?", "fake", "Done: they agree.", "The discussion is done."),
]


def test_a_reload_changes_nothing_in_any_state(reader: Reader, service: RunService) -> None:
    reader.opens(service)
    for question, model, words, last in STATES:
        reader.asks(question.format(reader.name), model=model)
        expect(reader.page.locator(".events li").last).to_contain_text(last)
        reader.sees(words)
        boxes = reader.page.locator(".asked")
        before, asked = reader.settles(), boxes.count()
        reader.page.reload()
        reader.sees(words)
        assert reader.settles() == before
        expect(boxes).to_have_count(asked)


def test_an_old_question_among_the_events_opens_no_box(reader: Reader, service: RunService) -> None:
    reader.opens(service)
    reader.asks(CLARIFY)
    reader.page.get_by_label("What is the budget?").fill("5,000")
    reader.button("Answer").click()
    reader.sees("Done")
    reader.page.reload()
    assert reader.settles().count("Question") == 1
    expect(reader.page.locator(".asked")).to_have_count(0)


def test_what_was_typed_is_there_after_a_reload(reader: Reader, service: RunService) -> None:
    reader.opens(service)
    reader.asks(CLARIFY)
    reader.page.get_by_label("What is the budget?").fill("about 5,0")
    reader.page.get_by_label("Question").fill("And then?")
    reader.page.reload()
    expect(reader.page.get_by_label("Question")).to_have_value("And then?")
    expect(reader.page.get_by_label("What is the budget?")).to_have_value("about 5,0")


def test_a_session_that_ends_in_the_middle_keeps_what_was_typed(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(CLARIFY)
    answer = reader.page.get_by_label("What is the budget?")
    answer.fill("5,000")
    reader.page.get_by_label("Question").fill("And then?")
    reader.context.clear_cookies()
    reader.button("Ask").click()
    expect(reader.page.get_by_label("Token")).to_be_focused()
    expect(reader.page.locator("main")).to_be_hidden()
    reader.picture("session-ended")
    reader.signs_in()
    expect(reader.page.get_by_label("Question")).to_have_value("And then?")
    expect(answer).to_have_value("5,000")
    reader.button("Answer").click()
    reader.sees("Done")


def test_a_question_whose_answer_was_lost_is_sent_again_as_the_same_run(
    reader: Reader, service: RunService
) -> None:
    def lose(route: Any) -> None:
        if route.request.method == "POST":
            route.fetch()
            route.abort()
        else:
            route.continue_()

    reader.opens(service)
    reader.page.route("**/runs", lose)
    reader.page.get_by_label("Question").fill("Which stack?")
    reader.button("Ask").click()
    expect(reader.page.locator("#ask .told")).to_contain_text("cannot be reached")
    reader.page.unroute("**/runs")
    reader.button("Ask").click()
    reader.sees("Done")
    expect(reader.page.locator("#runs li")).to_have_count(1)
    assert len(reader.sent_to("runs")) == 2


def test_a_text_that_is_too_long_or_blank_is_told_and_kept(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    question = reader.page.get_by_label("Question")
    for text in ("x" * 1001, "   "):
        question.fill(text)
        reader.button("Ask").click()
        expect(question).to_be_focused()
        expect(question).to_have_value(text)
        assert question.evaluate("field => field.validationMessage") != ""
    assert reader.sent_to("runs") == []


# --- what is read late, or cannot be read


def test_a_state_that_is_read_late_is_read_again(reader: Reader, service: RunService) -> None:
    late: list[tuple[Any, Any]] = []
    reader.opens(service)
    reader.asks(f"Which stack? [hold critic {reader.name}]")
    expect(reader.row("Proposer")).to_have_count(1)
    reader.page.evaluate("document.body.id = 'here'")
    reader.page.route(A_RUN, lambda route: late.append((route, route.fetch())), times=1)
    with reader.page.expect_request(A_RUN):
        reader.looks_again()
    service.release(f"critic {reader.name}")
    expect(reader.row("End")).to_have_count(1)
    [(route, before)] = late
    assert before.json()["status"] == "running"
    route.fulfill(response=before)
    reader.sees("Done: they agree.")
    expect(reader.page.locator("#here")).to_have_count(1)  # it was not loaded again


def test_an_event_that_is_sent_twice_is_shown_once(reader: Reader, service: RunService) -> None:
    def twice(route: Any) -> None:
        frames = route.fetch().text().rpartition("event: end")
        route.fulfill(
            body=frames[0] + frames[0] + "event: end\n\n", content_type="text/event-stream"
        )

    reader.opens(service)
    reader.asks("Which stack?")
    reader.sees("Done: they agree.")
    reader.page.route("**/events?*", twice)
    reader.page.reload()
    reader.sees("Done: they agree.")
    expect(reader.row("End")).to_have_count(1)
    assert reader.settles().count("Worker") == 1


def test_a_store_that_was_set_back_is_read_from_its_beginning(
    reader: Reader, service: RunService
) -> None:
    def set_back(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), "seq": 3})

    reader.opens(service)
    reader.asks("Which stack?")
    reader.sees("Done: they agree.")
    reader.settles()
    reader.page.evaluate("document.body.id = 'here'")
    reader.page.route(A_RUN, set_back, times=1)
    reader.looks_again()
    expect(reader.page.locator("#here")).to_have_count(0)  # it was loaded again
    reader.sees("Done: they agree.")
    reader.settles()


def test_a_stream_that_is_refused_has_the_page_say_why(reader: Reader, service: RunService) -> None:
    def refuse(route: Any) -> None:
        reader.context.clear_cookies()
        route.fulfill(status=401)

    reader.opens(service)
    reader.page.route("**/events?*", refuse, times=1)
    reader.asks(f"Which stack? [hold critic {reader.name}]")
    expect(reader.page.locator("#why")).to_contain_text("Your session has ended.")
    reader.signs_in()
    expect(reader.row("Proposer")).to_have_count(1)
    service.release(f"critic {reader.name}")
    reader.sees("Done: they agree.")


def test_who_reads_too_many_streams_is_told_so_and_reads_on_when_there_is_room(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(f"Which stack? [hold critic {reader.name}]")
    expect(reader.row("Proposer")).to_have_count(1)
    run = reader.page.url.rpartition("#")[2]
    reader.page.goto("about:blank")
    with ExitStack() as elsewhere:
        for _ in range(6):
            elsewhere.enter_context(reader.streams(f"{service.address}runs/{run}/events"))
        reader.page.goto(f"{service.address}#{run}")
        line = reader.page.locator("#connection")
        expect(line).to_contain_text("you read as many streams of events as you may")
        expect(reader.row("Proposer")).to_have_count(0)
    expect(reader.row("Proposer")).to_have_count(1)
    expect(line).to_be_empty()
    service.release(f"critic {reader.name}")
    reader.sees("Done: they agree.")


def test_while_nothing_answers_it_is_told_what_is_surely_true_and_not_after_that(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks(f"Which stack? [hold critic {reader.name}]")
    expect(reader.row("Proposer")).to_have_count(1)
    reader.context.set_offline(True)
    reader.button("Cancel this run").click()
    reader.button("Yes, cancel it").click()
    told = reader.page.locator(".cancel .told")
    expect(told).to_contain_text("This may not have been done")
    line = reader.page.locator("#connection")
    expect(line).to_contain_text("it goes on when a service is there")
    reader.context.set_offline(False)
    expect(told).to_be_empty()
    expect(line).to_be_empty()
    service.release(f"critic {reader.name}")
    reader.sees("Done")


def test_a_run_that_cannot_be_read_now_is_marked_and_told_and_shown_later(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.asks("Which stack?")
    reader.asks("Which one?")
    reader.sees("Done")
    reader.context.set_offline(True)
    link = reader.page.locator("#runs a", has_text="Which stack?")
    link.click()
    expect(reader.page.locator("#place")).to_contain_text("This run cannot be read now.")
    expect(reader.page.locator("#runs [aria-current]")).to_contain_text(["Which stack?"])
    reader.picture("unread")
    reader.context.set_offline(False)
    expect(reader.page.locator("article h2")).to_have_text("Which stack?")
    expect(reader.page.locator("article .words")).to_be_focused()


def test_a_model_that_fails_is_not_proposed_for_the_next_question(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    model = reader.page.get_by_label("Model", exact=True)
    expect(reader.page.locator("#known")).to_have_text("Models: fake, fake-slow, fake-broken.")
    reader.asks("Which stack?", model="fake-broken")
    reader.sees("Failed.")
    expect(model).to_have_value("fake")
    expect(reader.page.get_by_label("Go on with the model")).to_have_value("fake")
    reader.page.reload()
    expect(model).to_have_value("fake")


# --- whose it is


def test_after_a_session_another_user_finds_nothing_of_the_first(
    reader: Reader, service: RunService, tokens: Iterator[str]
) -> None:
    page = reader.page
    reader.opens(service)
    expect(page.locator("#who")).to_have_text(f"Signed in as user-{reader.name}")
    reader.asks("A secret plan?")
    reader.sees("Done")
    page.get_by_label("Question").fill("And then?")
    reader.context.clear_cookies()
    reader.looks_again()
    expect(page.get_by_label("Token")).to_be_focused()
    expect(page.get_by_text("secret plan")).to_have_count(2)  # it is there for its own user
    for place in page.get_by_text("secret plan").all():
        expect(place).to_be_hidden()
    expect(page).to_have_title("Discussions")
    reader.picture("signed-out")
    reader.token = next(tokens)
    reader.signs_in()
    expect(page.locator("#who")).to_have_text(f"Signed in as {reader.token[13:]}")
    expect(page.locator("main")).to_be_visible()
    expect(page.get_by_label("Question")).to_have_value("")
    expect(page.get_by_text("secret plan")).to_have_count(0)
    assert "#" not in page.url
    assert page.evaluate("Object.keys(sessionStorage)") == ["user"]


def test_a_tab_whose_browser_has_another_user_by_now_shows_nothing_of_the_first(
    reader: Reader, service: RunService, tokens: Iterator[str]
) -> None:
    reader.opens(service)
    reader.asks("A secret plan?")
    reader.sees("Done")
    first, reader.token = reader.page, next(tokens)
    reader.turn_to(reader.context.new_page())
    reader.context.clear_cookies()
    reader.opens(service)
    first.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(first.locator("#who")).to_have_text(f"Signed in as {reader.token[13:]}")
    expect(first.get_by_text("secret plan")).to_have_count(0)
    assert "#" not in first.url


def test_the_run_of_another_is_not_found(
    reader: Reader, service: RunService, browser: Any, tokens: Iterator[str], tmp_path: pathlib.Path
) -> None:
    reader.opens(service)
    reader.asks("A secret plan?")
    address = reader.page.url
    other = Reader(browser.new_context(), next(tokens), tmp_path)
    other.opens(service, run=address.rpartition("#")[2])
    expect(other.page.locator("#place")).to_contain_text("Not found")
    expect(other.page.locator("body")).not_to_contain_text("A secret plan?")
    other.context.close()


def test_the_token_is_kept_nowhere_and_to_sign_out_forgets_what_was_typed(
    reader: Reader, service: RunService
) -> None:
    reader.opens(service)
    reader.page.get_by_label("Question").fill("And then?")
    everything = "JSON.stringify([sessionStorage, localStorage, document.cookie])"
    kept = reader.page.evaluate(everything)
    assert reader.token not in kept + reader.page.content() + reader.page.url
    assert "And then?" in kept
    reader.button("Sign out").click()
    expect(reader.page.get_by_label("Token")).to_be_visible()
    assert reader.page.evaluate("sessionStorage.length") == 0
    reader.page.get_by_label("Token").fill("a-token-that-nobody-has")
    reader.button("Sign in").click()
    expect(reader.page.locator("#sign-in .told")).not_to_be_empty()
    expect(reader.page.get_by_label("Question")).to_be_hidden()
