"""The page of an answer in a real browser, through the browser's own EventSource."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from labkit.providers.script import script
from labkit.recovery.deltas import Delta
from labkit.recovery.event_log import ForeignCursor
from labkit.recovery.stream import RecoveryLimits
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.services import Cut, serve
from tests.browser.lab_page import expect, picture_folder
from tests.services.served import DROP, FINISH, Served, served

pytestmark = pytest.mark.browser

FIRST = ["The refund ", "was sent ", "on Monday, "]
REST = ["and it takes ", "three to five ", "working days."]
WHOLE = "".join(FIRST + REST)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 900, "height": 640})
    page = context.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    assert page.errors == []
    context.close()


def ask(page: Any, service: Served, question: str = "Where is my refund?") -> None:
    """Ask, and wait until the page watches: what the model says now comes as events."""
    page.goto(f"{service.address}/")
    page.get_by_label("Question").fill(question)
    page.get_by_label("Question").press("Enter")
    says(page, "Writing")


def says(page: Any, words: str) -> None:
    expect(page.get_by_role("status")).to_contain_text(words)


def segments(page: Any) -> list[str]:
    return page.locator(".segment").all_text_contents()


def shows(page: Any, text: str) -> None:
    expect(page.locator(".segment").last).to_have_text(text)


@pytest.mark.parametrize("kind", ["mid_frame", "between", "clean_end"])
def test_a_cut_connection_is_made_again_by_the_browser_and_the_text_is_there_once(
    kind: str, page: Any
) -> None:
    connections: list[str] = []
    page.on("request", lambda told: connections.append(told.resource_type))
    with served(cuts=[Cut(kind, after=3)], retry=50) as service:
        ask(page, service)
        service.model.says(*FIRST, *REST, FINISH)
        says(page, "Done")
        assert segments(page) == [WHOLE]
        assert connections.count("eventsource") == 2
        assert service.notes("reader_left") == 0  # the service has cut it, not the page


@pytest.mark.parametrize("kind", ["drip", "twice", "swapped"])
def test_frames_that_come_in_bytes_twice_or_in_another_order_give_the_text_once(
    kind: str, page: Any
) -> None:
    with served(cuts=[Cut(kind, after=2)], retry=50) as service:
        ask(page, service)
        service.model.says(*FIRST, *REST, FINISH)
        says(page, "Done")
        assert segments(page) == [WHOLE]


def test_a_reload_in_the_middle_goes_on_and_doubles_nothing(
    page: Any, tmp_path: pathlib.Path
) -> None:
    with served() as service:
        ask(page, service)
        service.model.says(*FIRST)
        shows(page, "".join(FIRST))
        page.screenshot(path=picture_folder(tmp_path) / "answer-generating.png")
        page.reload()
        shows(page, "".join(FIRST))
        service.model.says(*REST, FINISH)
        says(page, "Done")
        page.reload()
        says(page, "Done")
        assert segments(page) == [WHOLE]
        assert page.locator("h2").all_text_contents() == ["Where is my refund?"]


def test_the_page_works_under_any_path(page: Any) -> None:
    with served(under="/proxy/8080") as service:
        ask(page, service)
        service.model.says(*FIRST, *REST, FINISH)
        says(page, "Done")
        assert segments(page) == [WHOLE]


def test_stop_ends_the_model_and_the_text_stays(page: Any) -> None:
    with served() as service:
        ask(page, service)
        service.model.says(*FIRST)
        shows(page, "".join(FIRST))
        page.get_by_role("button", name="Stop").press("Enter")
        says(page, "Stopped")
        assert service.model.cancelled.wait(5)
        assert segments(page) == ["".join(FIRST)]
        expect(page.get_by_role("button", name="Stop")).to_be_disabled()
        expect(page.get_by_role("button", name="Continue")).to_be_disabled()


def test_a_failed_answer_offers_to_continue_and_goes_on_below(
    page: Any, tmp_path: pathlib.Path
) -> None:
    with served(services={"limits": RecoveryLimits(recoveries=0)}) as service:
        ask(page, service)
        service.model.says(*FIRST, DROP)
        says(page, "Failed")
        page.screenshot(path=picture_folder(tmp_path) / "answer-failed.png")
        page.locator(".segment").evaluate("there => { there.here = true; }")
        page.get_by_role("button", name="Continue").press("Enter")
        service.model.says(*FIRST, *REST, FINISH)
        says(page, "Done")
        assert segments(page) == ["".join(FIRST), WHOLE]
        assert page.locator(".segment").first.evaluate("there => there.here")  # never redrawn
        page.screenshot(path=picture_folder(tmp_path) / "answer-continued.png")


def test_a_failed_answer_says_so_and_loads_nothing_again(page: Any) -> None:
    loads: list[str] = []
    page.on("request", lambda told: loads.append(told.url.rpartition("/")[2]))
    with served(services={"limits": RecoveryLimits(recoveries=0)}) as service:
        ask(page, service)
        service.model.says(*FIRST, DROP)
        says(page, "Failed")
        run_id = page.evaluate("id")
        assert loads.count(run_id) == 1  # its error is an event, not a gap and no lost connection


def test_a_failed_answer_goes_on_in_the_same_segment_where_the_model_can_do_that(
    page: Any,
) -> None:
    services = {"limits": RecoveryLimits(recoveries=0), "can_continue": True}
    with served(services=services) as service:
        ask(page, service)
        service.model.says(*FIRST, DROP)
        says(page, "Failed")
        page.get_by_role("button", name="Continue").click()
        service.model.says(*REST, FINISH)
        says(page, "Done")
        assert segments(page) == [WHOLE]


def test_a_service_that_has_forgotten_the_events_is_asked_for_the_record(page: Any) -> None:
    refused: list[int] = []
    page.on("response", lambda told: refused.append(told.status) if told.status > 400 else None)
    with served(cuts=[Cut("between", after=3)], retry=50) as service:
        ask(page, service)
        [answer] = service.answers._answers.values()
        service.model.says(*FIRST[:2])
        shows(page, "".join(FIRST[:2]))
        log, known = answer.telling.log, answer.telling.log.after

        def refuse_once(cursor: str) -> int:
            log.after = known
            raise ForeignCursor(cursor)

        log.after = refuse_once
        service.model.says(*FIRST[2:], *REST, FINISH)
        says(page, "Done")
        assert segments(page) == [WHOLE]
        assert refused == [409]


DIES = [[{"say": "The refund "}, {"wait": 600, "say": "never"}]]
GOES_ON = [[{"say": "?"}], [{"say": "was sent."}, {"finish": "stop"}]]


def test_a_service_that_is_killed_and_started_again_goes_on_with_the_answer(
    page: Any, tmp_path: pathlib.Path
) -> None:
    url = f"sqlite:///{tmp_path / 'answers.db'}"
    with serve(script({"name": "dies", "attempts": DIES}), store=url) as service:
        address = service.address
        page.goto(address)
        page.get_by_role("button", name="Ask").click()
        shows(page, "The refund ")
    says(page, "The service cannot be reached")
    again = script({"name": "goes on", "attempts": GOES_ON})
    port = int(address.rpartition(":")[2])
    with serve(again, store=url, port=port, can_continue=True):
        says(page, "Interrupted")
        assert segments(page) == ["The refund "]
        page.get_by_role("button", name="Continue").click()
        says(page, "Done")
        assert segments(page) == ["The refund was sent."]


def test_what_was_said_before_a_tool_is_not_called_cut_off(page: Any) -> None:
    async def found(arguments: Any, key: str) -> str:
        return "sent on Monday"

    tools = ToolRegistry(Tool(name="look_up", run=found))
    call = Delta("tool_call", "{}", index=0, call_id="c1", name="look_up")
    with served(services={"tools": tools}) as service:
        ask(page, service)
        service.model.says("I will look. ", call, Delta("finish", reason="tool_calls"))
        service.model.says("It was sent.", FINISH)
        says(page, "Done")
        assert segments(page) == ["I will look. ", "It was sent."]
        expect(page.locator(".note")).to_have_text("It goes on here:")


HOSTILE = '<img src="x" onerror="document.title=1"><script>document.title=2</script>&amp;'


def test_hostile_text_stays_text(page: Any) -> None:
    with served() as service:
        ask(page, service, HOSTILE)
        service.model.says(HOSTILE, FINISH)
        says(page, "Done")
        assert segments(page) == [HOSTILE]
        assert page.locator("h2").text_content() == HOSTILE
        assert page.title() == "One answer, watched"
        page.reload()
        says(page, "Done")
        assert segments(page) == [HOSTILE]
        assert page.locator("article img, article script").count() == 0


def test_an_answer_that_is_no_longer_watched_says_so_and_back_brings_it_again(page: Any) -> None:
    with served() as service:
        ask(page, service, "One?")
        service.model.says("First ")
        shows(page, "First ")
        page.get_by_label("Question").fill("Two?")
        page.get_by_label("Question").press("Enter")
        expect(page.locator("h2").first).to_have_text("Two?")
        expect(page.locator("article").last).to_contain_text("This is still written")
        page.go_back()
        expect(page.locator("h2")).to_have_text(["One?"])
        shows(page, "First ")
        page.goto("about:blank")  # else the service waits for who still watches


@pytest.mark.parametrize("fragment", ["%", "../page/page.css?", "a/b"])
def test_an_address_that_names_no_answer_is_a_page_to_ask_on(fragment: str, page: Any) -> None:
    with served() as service:
        page.goto(f"{service.address}/#{fragment}")
        says(page, "Ask something")
        page.get_by_label("Question").fill("   ")
        page.get_by_label("Question").press("Enter")
        says(page, "Ask something")
        page.get_by_label("Question").fill("Why?")
        page.get_by_label("Question").press("Enter")
        says(page, "Writing")
        page.goto("about:blank")  # else the service waits for who still watches


def test_after_stop_the_state_has_the_focus(page: Any) -> None:
    with served() as service:
        ask(page, service)
        page.get_by_role("button", name="Stop").press("Enter")
        says(page, "Stopped")
        expect(page.get_by_role("status")).to_be_focused()
