"""The safeguards of the page of discussions: nothing lost, nothing sent twice, text is text."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

_PAGE: Final = "tests/browser/test_run_page.py::test_"
_REFUSED: Final = f"{_PAGE}a_stream_that_is_refused_has_the_page_say_why"
_LETTER: Final = f"{_PAGE}what_is_approved_is_shown_to_the_letter"
_ANOTHER: Final = f"{_PAGE}after_a_session_another_user_finds_nothing_of_the_first"
_UNREAD: Final = f"{_PAGE}a_run_that_cannot_be_read_now_is_marked_and_told_and_shown_later"
_SURELY: Final = f"{_PAGE}while_nothing_answers_it_is_told_what_is_surely_true_and_not_after_that"
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
        "what fills no place is shown before it is approved",
        "asks.js",
        r"|\p{Default_Ignorable_Code_Point}|",
        "|",
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
        "digest })) decided(card, said);",
        "digest })) card.remove();",
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
        f"{_PAGE}who_reads_too_many_streams_is_told_so_and_reads_on_when_there_is_room",
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
        "nothing of a user is seen after the session",
        "page.js",
        'find("main").hidden = find("#sign-out").hidden = true;',
        "",
        (_ENDS, _ANOTHER),
    ),
    (
        "another user finds nothing that was typed",
        "page.js",
        "if (isAnother(user)) return startAnew(user);",
        "",
        _ANOTHER,
    ),
    (
        "the list is read again by itself",
        "page.js",
        "  else run.look();\n  next(lookAgain, LOOK);\n",
        "  else run.look();\n",
        f"{_PAGE}what_changes_elsewhere_is_seen_in_the_list_without_a_click",
    ),
    (
        "a page that is hidden asks for nothing",
        "page.js",
        "    clearTimeout(later);\n  } else if (signedIn) begin();",
        "  } else if (signedIn) begin();",
        f"{_PAGE}a_page_that_is_hidden_reads_no_list_and_reads_it_when_it_is_back",
    ),
    (
        "a model that fails is not proposed again",
        "page.js",
        'find("#model").value = usual();',
        "",
        f"{_PAGE}a_model_that_fails_is_not_proposed_for_the_next_question",
    ),
    (
        "older runs stay when the list is read again",
        "runs.js",
        "last < 0 ? [] : runs.slice(last + 1)",
        "[]",
        f"{_PAGE}older_runs_are_found_and_stay_when_the_list_is_read_again",
    ),
    (
        "an older run that goes on is read again",
        "runs.js",
        "    if (at < 0) break;\n",
        "    break;\n",
        f"{_PAGE}an_older_run_that_has_not_ended_is_read_again_too",
    ),
    (
        "what has not changed in the list is not written anew",
        "runs.js",
        'tell(find(".words", line), wordsOf(told));',
        'find(".words", line).textContent = wordsOf(told);',
        f"{_PAGE}a_list_that_has_not_changed_is_not_written_anew",
    ),
    (
        "the mark goes to the run that was chosen",
        "page.js",
        "  mark(id);\n",
        "",
        _UNREAD,
    ),
    (
        "a run that cannot be read is no empty place",
        "run.js",
        "    if (this.article === null) this.tellInstead(UNREAD);\n",
        "",
        _UNREAD,
    ),
    (
        "that nothing answered is told no longer than that",
        "talk.js",
        "    answered(sent);\n",
        "",
        (_SURELY, f"{_PAGE}a_run_goes_on_after_the_service_was_stopped_and_started"),
    ),
    (
        "where nothing was typed nothing is said of it",
        "talk.js",
        'find(TYPES, form) && method !== "DELETE" ? TYPED : UNSURE',
        "TYPED",
        _SURELY,
    ),
    (
        "what another has answered is told",
        "asks.js",
        '    else if (said !== undefined) become(card, "elsewhere", ELSEWHERE);\n',
        "",
        f"{_PAGE}what_another_tab_has_answered_is_told_and_what_was_typed_stays",
    ),
    (
        "an answer of one's own that was lost is told as such",
        "asks.js",
        " && said === sent)",
        " && false)",
        f"{_PAGE}an_answer_that_was_taken_though_nobody_said_so_is_told_as_yours",
    ),
    (
        "an approval that is told later names its tool",
        "events.js",
        'if (type === "awaiting_input") this.asked(data);',
        "",
        f"{_PAGE}two_approvals_stand_side_by_side_and_each_is_told_by_its_id",
    ),
    (
        "a run that was tried again has that told",
        "events.js",
        'type === "run_started" && this.last === "run_failed"',
        "false",
        f"{_PAGE}a_run_that_failed_succeeds_with_another_model",
    ),
    (
        "in one column the open run comes first",
        "page.js",
        'find(narrow.matches ? "#place" : "#ask")',
        'find("#ask")',
        f"{_PAGE}in_one_column_the_open_run_and_what_it_asks_come_first",
    ),
    (
        "a correction that was kept is told",
        "memories.js",
        '  find(".saved", form).textContent = "Saved.";\n',
        "",
        f"{_PAGE}without_a_mouse_it_asks_is_answered_and_the_report_is_read",
    ),
    (
        "text of an event is text",
        "events.js",
        'find(".what", row).textContent = what;',
        'find(".what", row).innerHTML = what;',
        f"{_PAGE}html_in_a_question_and_in_a_models_words_stays_text",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST, under="labkit/runs/api/page/")
