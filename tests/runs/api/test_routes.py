"""The routes: what they do, for whom, and which code each refusal has."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from labkit.recovery.sse import SSEDecoder, SSEEvent
from labkit.stores.errors import StoreDown
from tests.runs.api.kit import ANN, APPROVAL, ASKED, BOB, QUESTION, SECOND, Desk, code

JSON = {"content-type": "application/json"}
HALF = "\ud83d"  # of a pair, as a model may say it


# --- create


def test_a_run_is_accepted_at_once_with_the_usual_rounds_and_model(desk: Desk) -> None:
    answered = desk.ann.post("/runs", json=ASKED)
    assert answered.status_code == 201
    assert answered.json()["status"] == "queued"
    run = desk.get(answered.json()["id"])
    assert run is not None
    assert (run.owner, run.job, run.model) == (ANN, "discussion", "fake")
    assert run.given == {"question": "Which database?", "rounds": 3}


@pytest.mark.parametrize("length", [1, 1_000])
@pytest.mark.parametrize("letter", ["x", "猫", "👩"])
def test_a_question_of_1_to_1000_characters_is_taken(length: int, letter: str, desk: Desk) -> None:
    run = desk.begun(question=letter * length, rounds=8)
    assert desk.ann.get(f"/runs/{run}").json()["question"] == letter * length


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "question"),
        ({"question": ""}, "question"),
        ({"question": " \t\n"}, "question"),
        ({"question": "x" * 1_001}, "question"),
        ({"question": "a\x00b"}, "question"),
        ({"question": HALF}, "question"),
        ({"question": 7}, "question"),
        ({**ASKED, "rounds": 0}, "rounds"),
        ({**ASKED, "rounds": 9}, "rounds"),
        ({**ASKED, "rounds": "3"}, "rounds"),
        ({**ASKED, "rounds": True}, "rounds"),
        ({**ASKED, "rounds": 1.5}, "rounds"),
        ({**ASKED, "rounds": 10**30}, "rounds"),
        ({**ASKED, "model": ""}, "model"),
        ({**ASKED, "model": "no such model"}, "model"),
        ({**ASKED, "id": "x" * 101}, "id"),
        ({**ASKED, "hunter2": 1}, "a field that is not known"),
        ([], "body"),
        ("hunter2", "body"),
        (None, "body"),
        ({"question": "\u200b\u2060"}, "question"),
    ],
)
def test_what_is_malformed_is_told_by_its_place_and_not_repeated(
    given: Any, field: str, desk: Desk
) -> None:
    body = json.dumps(given)
    answered = desk.ann.post("/runs", content=body, headers=JSON)
    assert code(answered) == (422, "Invalid")
    assert field in answered.json()["error"]["message"]
    assert "hunter2" not in answered.text
    assert desk.ann.get("/runs").json() == []


def test_a_blank_question_is_told_to_a_person_and_not_to_a_programmer(desk: Desk) -> None:
    message = desk.ann.post("/runs", json={"question": "  "}).json()["error"]["message"]
    assert message == "question: it is blank, or has a character that is not taken here"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 60_000, b"\xff\xfe", b'{"rounds": 1' + b"0" * 5_000 + b"}"]
)
def test_what_is_no_json_is_refused_whatever_it_is(body: bytes, desk: Desk) -> None:
    answered = desk.ann.post("/runs", content=body, headers=JSON)
    assert answered.status_code == (400 if body else 422)
    assert code(answered)[1] in ("BadRequest", "Invalid")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-1e999"])
def test_numbers_that_json_has_not_are_refused(text: str, desk: Desk) -> None:
    body = f'{{"question": "Which?", "rounds": {text}}}'
    assert desk.ann.post("/runs", content=body, headers=JSON).status_code == 422


def test_a_model_that_is_not_there_is_refused_before_anything_is_begun(desk: Desk) -> None:
    refused = desk.ann.post("/runs", json={**ASKED, "model": "gpt-hunter2"})
    assert code(refused) == (422, "UnknownModel")
    assert "hunter2" not in refused.text
    assert desk.ann.get("/runs").json() == []


def test_a_run_that_is_sent_again_after_a_lost_answer_is_the_same_run(desk: Desk) -> None:
    run = desk.begun(id="mine")
    again = desk.ann.post("/runs", json={**ASKED, "id": "mine", "rounds": 3, "model": "fake"})
    assert (again.status_code, again.json()) == (200, {"id": run, "status": "queued"})
    desk.fails(run)
    asyncio.run(desk.store.retry(run, ANN, model="fake-slow"))
    again = desk.ann.post("/runs", json={**ASKED, "id": "mine"})
    assert (again.status_code, again.json()["id"]) == (200, run)  # whatever became of it
    assert len(desk.ann.get("/runs").json()) == 1


@pytest.mark.parametrize("other", [{"question": "Why?"}, {"rounds": 4}, {"model": "fake-slow"}])
def test_another_run_under_the_same_id_is_refused(other: dict[str, Any], desk: Desk) -> None:
    desk.begun(id="mine")
    refused = desk.ann.post("/runs", json={**ASKED, "id": "mine", **other})
    assert code(refused) == (409, "RunExists")


def test_an_id_of_ones_own_is_neither_taken_nor_found_by_anybody_else(desk: Desk) -> None:
    run = desk.begun(id="mine")
    bobs = desk.bob.post("/runs", json={"question": "Why?", "id": "mine"})
    assert bobs.status_code == 201
    assert bobs.json()["id"] != run


# --- look


def test_a_run_is_shown_as_it_is(desk: Desk) -> None:
    run = desk.begun()
    desk.finishes(run)
    told = desk.ann.get(f"/runs/{run}").json()
    assert (told["status"], told["end_reason"], told["seq"]) == ("completed", "consensus", 3)
    assert told["result"] == {"conclusion": "Take plan v1."}
    assert (told["asks"], told["error_code"], told["model"]) == ([], None, "fake")
    assert told["created"] <= told["updated"]


def test_the_list_has_the_newest_runs_first_and_at_most_50(desk: Desk) -> None:
    runs = [desk.begun() for _ in range(52)]
    listed = [run["id"] for run in desk.ann.get("/runs").json()]
    assert listed == runs[:1:-1]
    assert desk.bob.get("/runs").json() == []


def test_the_runs_before_the_oldest_of_a_list_are_the_next_list(desk: Desk) -> None:
    runs = [desk.begun() for _ in range(52)]
    older = [run["id"] for run in desk.ann.get(f"/runs?before={runs[2]}").json()]
    assert older == runs[1::-1]
    assert desk.ann.get(f"/runs?before={runs[0]}").json() == []
    assert desk.bob.get(f"/runs?before={runs[2]}").status_code == 404
    for name, status in (("x", 404), ("x" * 101, 422), ("a%00", 422)):
        assert desk.ann.get(f"/runs?before={name}").status_code == status


def test_a_run_of_another_kind_is_no_discussion(desk: Desk) -> None:
    run = asyncio.run(desk.store.submit("order", 7, owner=ANN)).run_id
    assert desk.ann.get("/runs").json() == []
    assert desk.ann.get(f"/runs/{run}").status_code == 404
    assert desk.ann.post(f"/runs/{run}/cancel").status_code == 404


def test_runs_of_another_kind_hide_no_discussion(desk: Desk) -> None:
    run = desk.begun()
    for _ in range(50):
        asyncio.run(desk.store.submit("order", 7, owner=ANN))
    assert [each["id"] for each in desk.ann.get("/runs").json()] == [run]


def test_half_a_character_in_what_a_model_has_said_breaks_no_answer(desk: Desk) -> None:
    run = desk.begun()
    desk.finishes(run, conclusion=f"{HALF} <b>")
    for path in ("/runs", f"/runs/{run}", f"/runs/{run}/events"):
        assert desk.ann.get(path).status_code == 200
    assert desk.ann.get(f"/runs/{run}").json()["result"]["conclusion"] == f"{HALF} <b>"


def test_a_report_is_markdown_in_any_state(desk: Desk) -> None:
    run = desk.begun(question="<script>")
    answered = desk.ann.get(f"/runs/{run}/report")
    assert answered.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answered.text == "# Report\n\n<script>\n\n1 events\n"


# --- events


def events(desk: Desk, run: str, cursor: str = "", **headers: str) -> list[SSEEvent]:
    answered = desk.ann.get(f"/runs/{run}/events{cursor}", headers=headers)
    assert answered.status_code == 200
    return SSEDecoder().feed(answered.content)


def test_the_events_of_a_run_that_has_ended_come_in_order_and_then_the_end(desk: Desk) -> None:
    run = desk.begun()
    desk.finishes(run)
    told = events(desk, run)
    kinds = ["run_created", "run_started", "run_completed", "end"]
    assert [event.event for event in told] == kinds
    assert [event.id for event in told] == ["1", "2", "3", "3"]  # the end has brought none


def test_a_reader_goes_on_after_its_cursor_and_the_header_counts(desk: Desk) -> None:
    run = desk.begun()
    desk.finishes(run)
    assert [event.id for event in events(desk, run, "?after=2")] == ["3", "3"]
    header = {"last-event-id": "1"}
    assert [event.id for event in events(desk, run, "?after=3", **header)] == ["2", "3", "3"]
    assert [event.event for event in events(desk, run, "?after=3", **{"last-event-id": ""})] == [
        "end"
    ]


@pytest.mark.parametrize("cursor", ["4", "999999999", "9" * 30, "-1", "1.0", "x", "run:1", "%00"])
def test_a_cursor_that_the_run_never_gave_out_is_refused_before_the_stream(
    cursor: str, desk: Desk
) -> None:
    run = desk.begun()
    desk.finishes(run)
    assert code(desk.ann.get(f"/runs/{run}/events?after={cursor}")) == (409, "ForeignCursor")


# --- answer


def test_the_one_question_is_answered_without_its_name_and_once(desk: Desk) -> None:
    run = desk.begun()
    desk.asks(run, QUESTION)
    assert desk.ann.get(f"/runs/{run}").json()["asks"] == [QUESTION]
    answered = desk.ann.post(f"/runs/{run}/input", json={"answer": "5,000"})
    assert (answered.status_code, answered.json()["status"]) == (200, "queued")
    kept = desk.get(run)
    assert kept is not None
    assert kept.answer == {"ask": "question-1", "answer": "5,000"}
    second = desk.ann.post(f"/runs/{run}/input", json={"answer": "6,000"})
    assert code(second) == (409, "IllegalMove")
    assert "is queued" in second.json()["error"]["message"]


def test_an_answer_where_nothing_is_asked_is_refused_with_the_state(desk: Desk) -> None:
    run = desk.begun()
    desk.finishes(run)
    refused = desk.ann.post(f"/runs/{run}/input", json={"answer": "5,000"})
    assert code(refused) == (409, "IllegalMove")
    assert "is completed" in refused.json()["error"]["message"]


def test_an_approval_is_given_for_exactly_what_was_seen(desk: Desk) -> None:
    run = desk.begun()
    desk.asks(run, APPROVAL, SECOND)
    path = f"/runs/{run}/input"
    good = {"ask": "ask-2", "answer": "approve", "digest": "2c3d"}
    for changed in (
        {"ask": "ask-3"},
        {"ask": "ask-1"},
        {"ask": None},
        {"answer": "yes"},
        {"digest": "0a1b"},
        {"digest": None},
    ):
        assert code(desk.ann.post(path, json={**good, **changed})) == (409, "NotAsked")
    assert desk.ann.post(path, json=good).status_code == 200
    kept = desk.get(run)
    assert kept is not None
    assert kept.answer == good


def test_an_answer_without_a_name_is_refused_where_two_things_are_asked(desk: Desk) -> None:
    run = desk.begun()
    desk.asks(run, QUESTION, {**QUESTION, "id": "question-2"})
    refused = desk.ann.post(f"/runs/{run}/input", json={"answer": "5,000"})
    assert code(refused) == (409, "NotAsked")
    assert "question-1 and question-2" in refused.json()["error"]["message"]
    named = {"answer": "5,000", "ask": "question-2"}
    assert desk.ann.post(f"/runs/{run}/input", json=named).status_code == 200


@pytest.mark.parametrize("answer", ["", " ", "x" * 1_001, HALF])
def test_an_answer_has_1_to_1000_characters(answer: str, desk: Desk) -> None:
    run = desk.begun()
    desk.asks(run, QUESTION)
    sent = json.dumps({"answer": answer})
    assert desk.ann.post(f"/runs/{run}/input", content=sent, headers=JSON).status_code == 422
    assert desk.ann.post(f"/runs/{run}/input", json={"answer": "x" * 1_000}).status_code == 200


# --- retry and cancel


def test_what_has_failed_goes_on_with_another_model_or_the_same(desk: Desk) -> None:
    run = desk.begun()
    desk.fails(run)
    path = f"/runs/{run}/retry"
    assert code(desk.ann.post(path, json={"model": "gpt-9"})) == (422, "UnknownModel")
    answered = desk.ann.post(path, json={"model": "fake-slow"})
    assert (answered.json()["status"], answered.json()["model"]) == ("queued", "fake-slow")
    assert code(desk.ann.post(path)) == (409, "IllegalMove")
    desk.fails(run)
    assert desk.ann.post(path).json()["model"] == "fake-slow"


def test_a_cancelled_run_is_final(desk: Desk) -> None:
    run = desk.begun()
    assert desk.ann.post(f"/runs/{run}/cancel").json()["status"] == "cancelled"
    refused = desk.ann.post(f"/runs/{run}/cancel")
    assert code(refused) == (409, "IllegalMove")
    assert "is cancelled; possible is nothing any more" in refused.json()["error"]["message"]
    assert desk.ann.post(f"/runs/{run}/retry").status_code == 409


# --- memories and models


def test_memories_are_seen_corrected_and_deleted(desk: Desk) -> None:
    (fact,) = desk.ann.get("/memories").json()
    assert fact == {"key": "m-1", "text": "A budget of 5,000", "run_id": "run-1", "at": 1.0}
    better = desk.ann.put("/memories/m-1", json={"text": "A budget of 6,000"})
    assert better.json()["text"] == "A budget of 6,000"
    assert desk.ann.get("/memories").json() == [better.json()]
    gone = desk.ann.delete("/memories/m-1")
    assert (gone.status_code, gone.content) == (204, b"")
    assert desk.ann.get("/memories").json() == []
    assert code(desk.ann.delete("/memories/m-1")) == (404, "UnknownMemory")


@pytest.mark.parametrize("text", ["", " ", "x" * 201])
def test_a_memory_has_1_to_200_characters(text: str, desk: Desk) -> None:
    assert desk.ann.put("/memories/m-1", json={"text": text}).status_code == 422


def test_the_models_are_named(desk: Desk) -> None:
    names = ["fake", "fake-slow", "fake-broken"]
    assert desk.ann.get("/models").json() == {"default": "fake", "names": names}


# --- another's, and what is not there

EVERY = [
    ("GET", "/runs/{}", None),
    ("GET", "/runs/{}/events", None),
    ("GET", "/runs/{}/report", None),
    ("POST", "/runs/{}/input", {"answer": "5,000"}),
    ("POST", "/runs/{}/retry", {}),
    ("POST", "/runs/{}/cancel", None),
    ("PUT", "/memories/{}", {"text": "better"}),
    ("DELETE", "/memories/{}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), EVERY)
def test_what_is_anothers_is_answered_like_what_is_not_there(
    method: str, path: str, body: Any, desk: Desk
) -> None:
    run = desk.begun()
    desk.asks(run, QUESTION)
    before = desk.get(run), desk.talk.memories.facts
    key = "m-1" if "memories" in path else run
    foreign = desk.bob.request(method, path.format(key), json=body)
    unknown = desk.bob.request(method, path.format("nothing"), json=body)
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.json() == unknown.json()
    assert (desk.get(run), desk.talk.memories.facts) == before
    assert desk.get(run, BOB) is None


@pytest.mark.parametrize(("method", "path", "body"), EVERY)
@pytest.mark.parametrize("key", ["a%00b", "%ff", "x" * 101, "a%20b", "%ed%a0%80"])
def test_an_id_that_can_be_none_is_refused(
    method: str, path: str, body: Any, key: str, desk: Desk
) -> None:
    assert code(desk.ann.request(method, path.format(key), json=body)) == (422, "Invalid")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/runs", "GET, POST"),
        ("/runs/x", "GET"),
        ("/runs/x/cancel", "POST"),
        ("/memories/x", "DELETE, PUT"),
        ("/", "GET, HEAD"),
        ("/page/page.js", "GET, HEAD"),
    ],
)
@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PATCH", "NONSENSE"])
def test_another_method_is_told_which_there_are(
    method: str, path: str, allowed: str, desk: Desk
) -> None:
    answered = desk.ann.request(method, path)
    assert code(answered) == (405, "MethodNotAllowed")
    assert answered.headers["allow"] == allowed


def test_a_head_has_no_body_and_is_for_the_page_alone(desk: Desk) -> None:
    for path, status in (("/", 200), ("/runs", 405), ("/runs/x", 405), ("/nothing", 404)):
        assert desk.ann.head(path).status_code == status


@pytest.mark.parametrize("path", ["/nothing", "/runs/", "/runs/x/", "/runs/x/y"])
def test_an_address_that_is_none_is_not_found_and_leads_nowhere_else(path: str, desk: Desk) -> None:
    assert code(desk.ann.get(path)) == (404, "NotFound")


# --- a store that is gone


@pytest.mark.parametrize(("method", "path", "body"), [*EVERY[:6], ("GET", "/runs", None)])
def test_a_store_that_is_gone_is_said_without_its_words_and_comes_back(
    method: str, path: str, body: Any, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = desk.begun()

    async def gone(*given: Any, **more: Any) -> None:
        raise StoreDown("the run store failed (host db.internal)")

    with monkeypatch.context() as patched:
        for name in ("get", "runs"):
            patched.setattr(desk.store, name, gone)
        refused = desk.ann.request(method, path.format(run), json=body)
        assert code(refused) == (503, "StoreDown")
        assert int(refused.headers["retry-after"]) > 0
        assert "internal" not in refused.text
    assert desk.ann.get(f"/runs/{run}").json()["status"] == "queued"
    assert desk.failed == []
