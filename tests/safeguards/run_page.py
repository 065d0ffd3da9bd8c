"""The safeguards of the page of discussions: nothing lost, nothing sent twice, text is text."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

_PAGE: Final = "tests/browser/test_run_page.py::test_"
_REFUSED: Final = f"{_PAGE}a_stream_that_is_refused_has_the_page_say_why"
_LETTER: Final = f"{_PAGE}what_is_approved_is_shown_to_the_letter"
_ENDS: Final = f"{_PAGE}a_session_that_ends_in_the_middle_keeps_what_was_typed"

_LIST: Final[tuple[Row, ...]] = (
    (
        "only what the run asks now has a box",
        "asks.js",
        "of run.asks) {",
        'of [...run.asks, { id: "question-1", question: "?" }]) {',
        f"{_PAGE}an_old_question_among_the_events_opens_no_box",
    ),
    (
        "a number that is approved keeps its text",
        "asks.js",
        "JSON.rawJSON(context.source) : value",
        "value : value",
        _LETTER,
    ),
    (
        "what cannot be seen is shown before it is approved",
        "asks.js",
        "shown = visible(",
        "shown = String(",
        _LETTER,
    ),
    (
        "a yes carries the digest of what is shown",
        "asks.js",
        ", digest: ask.digest",
        "",
        f"{_PAGE}the_digest_that_is_sent_is_that_of_what_is_shown",
    ),
    (
        "no box slides under a finger",
        "asks.js",
        '    become(card, "decided", call ? DECIDED[said] : `You answered: ${said}`);',
        "    card.remove();",
        f"{_PAGE}two_approvals_stand_side_by_side_and_each_is_told_by_its_id",
    ),
    (
        "who types is not disturbed by a question",
        "asks.js",
        "if (!typing()) field.focus()",
        "field.focus()",
        f"{_PAGE}a_question_takes_no_focus_from_who_is_typing",
    ),
    (
        "what a person does is sent once",
        "talk.js",
        '  if (form.ariaBusy === "true") return undefined;\n',
        "",
        f"{_PAGE}a_double_click_sends_once",
    ),
    (
        "what was typed is kept over a reload",
        "talk.js",
        "sessionStorage.setItem(key, field.value);",
        "",
        f"{_PAGE}what_was_typed_is_there_after_a_reload",
    ),
    (
        "a session that has ended has the page say so",
        "talk.js",
        'document.dispatchEvent(new Event("signed-out"))',
        "undefined",
        (_ENDS, _REFUSED),
    ),
    (
        "what was typed stays when the session ends",
        "page.js",
        '  find("#sign-in").hidden = false;\n',
        '  find("#sign-in").hidden = false;\n  find("#question").value = "";\n',
        _ENDS,
    ),
    (
        "an event that is sent twice is shown once",
        "run.js",
        "    if (number <= this.seen) return; // sent twice\n",
        "",
        f"{_PAGE}an_event_that_is_sent_twice_is_shown_once",
    ),
    (
        "a stream that the browser has given up is followed again",
        "run.js",
        "      this.lost(why || LOST, later); // the run says why, or is followed again\n",
        "",
        _REFUSED,
    ),
    (
        "a stream that is refused is no lost connection",
        "run.js",
        "await whyNot(path);",
        '["", 1000];',
        f"{_PAGE}who_reads_too_many_streams_is_told_so_and_reads_on_when_there_is_room",
    ),
    (
        "a state that is older than an event is read again",
        "run.js",
        "    if (number > this.told.seq) this.look();\n",
        "",
        f"{_PAGE}a_question_takes_no_focus_from_who_is_typing",
    ),
    (
        "a state that is read late does not begin again",
        "run.js",
        "if (told.seq < seen)",
        "if (told.seq < this.seen)",
        f"{_PAGE}a_state_that_is_read_late_is_read_again",
    ),
    (
        "a store that was set back is noticed",
        "run.js",
        "if (told.seq < seen) return location.reload();",
        "",
        f"{_PAGE}a_store_that_was_set_back_is_read_from_its_beginning",
    ),
    (
        "a run is cancelled in two steps",
        "run.js",
        '    await sure("Cancel this run? It cannot go on after that.", "Yes, cancel it");\n',
        "",
        f"{_PAGE}to_cancel_takes_a_second_step",
    ),
    (
        "a question that is sent again is the same run",
        "page.js",
        "if (sent?.content === content) return sent.id;",
        "",
        f"{_PAGE}a_question_whose_answer_was_lost_is_sent_again_as_the_same_run",
    ),
    (
        "to sign out forgets what was typed",
        "page.js",
        "  sessionStorage.clear();\n",
        "",
        f"{_PAGE}the_token_is_kept_nowhere_and_to_sign_out_forgets_what_was_typed",
    ),
    (
        "text of an event is text",
        "events.js",
        '[find(".who", row).textContent, find(".what", row).textContent]',
        '[find(".who", row).textContent, find(".what", row).innerHTML]',
        f"{_PAGE}html_in_a_question_and_in_a_models_words_stays_text",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST, under="labkit/runs/api/page/")
