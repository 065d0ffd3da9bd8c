"""What is promised of discussions and their service in numbers, and what holds at their edges."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

_TALKS: Final = "tests/runs/discussion/test_limits.py::test_"
_SERVICE: Final = "tests/runs/api/test_limits.py::test_"
_LOADED: Final = f"{_TALKS}the_newest_five_facts_are_loaded_and_fifty_are_listed"
_FRAME: Final = f"{_SERVICE}only_a_page_of_this_machine_may_show_the_page_in_a_frame"

# name, file in labkit/runs, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    (
        "each try of a discussion is paid for",
        "discussion/discussing.py",
        "pay=partial(services.models.pay, run.model),",
        "pay=lambda: None,",
        f"{_TALKS}a_discussion_asks_a_real_model_as_often_as_is_allowed_and_no_more",
    ),
    (
        "a discussion is told to no tracer",
        "discussion/discussing.py",
        "tracing_context(enabled=False)",
        "tracing_context()",
        f"{_TALKS}a_discussion_is_told_to_no_tracer_whatever_the_environment_says",
    ),
    (
        "what does not count is not corrected",
        "discussion/memory.py",
        'item.value["thread"] != last or ',
        "",
        (
            f"{_TALKS}a_fact_that_does_not_count_is_neither_corrected_nor_deleted[goes on]",
            f"{_TALKS}a_fact_that_does_not_count_is_neither_corrected_nor_deleted[cancelled]",
            f"{_TALKS}a_fact_that_does_not_count_is_neither_corrected_nor_deleted[another]",
        ),
    ),
    (
        "a second try with fewer facts takes those of the first away",
        "discussion/memory.py",
        "self._store.adelete(space, key)",
        "self._store.aget(space, key)",
        f"{_TALKS}a_second_try_with_fewer_facts_leaves_nothing_of_the_first",
    ),
    (
        "an answer that was cut takes no facts away",
        "discussion/nodes.py",
        "facts = facts_in(finish_of(message), object_in(message.text))",
        "facts = facts_in(finish_of(message), object_in(message.text)) or []",
        f"{_TALKS}a_second_try_whose_answer_was_cut_takes_nothing_from_the_first[tool_calls]",
    ),
    (
        "five facts are loaded",
        "discussion/memory.py",
        "LOADED: Final = 5 ",
        "LOADED: Final = 6 ",
        _LOADED,
    ),
    (
        "fifty facts are listed",
        "discussion/memory.py",
        "LISTED: Final = 50",
        "LISTED: Final = 5_000",
        _LOADED,
    ),
    (
        "a fact has 200 characters at most",
        "discussion/memory.py",
        "LONGEST: Final = 200 ",
        "LONGEST: Final = 201 ",
        f"{_TALKS}a_fact_has_at_most_200_characters_whoever_says_it",
    ),
    (
        "a later call has an id of its own",
        "discussion/nodes.py",
        'f"ask-{before + n}"',
        'f"ask-{n}"',
        f"{_TALKS}each_call_of_a_later_proposal_has_an_id_of_its_own",
    ),
    (
        "an approval is over after an hour",
        "discussion/approval.py",
        "VALID: Final = 3600.0",
        "VALID: Final = 36000.0",
        f"{_TALKS}an_approval_is_waited_for_an_hour",
    ),
    (
        "an argument of a tool has 1000 characters at most",
        "discussion/toolbox.py",
        "MOST: Final = 1000 ",
        "MOST: Final = 100_000 ",
        f"{_TALKS}an_argument_of_a_tool_has_at_most_1000_characters[1001]",
    ),
    (
        "a conclusion is kept without NUL",
        "discussion/nodes.py",
        "storable(message.text)",
        "message.text",
        f"{_TALKS}a_conclusion_is_kept_as_each_database_can_keep_it",
    ),
    (
        "whoever has made the tables lets others come",
        "discussion/opening.py",
        'await connection.execute(f"SELECT pg_advisory_unlock({SETUP})")',
        "pass",
        f"{_TALKS}while_one_service_is_open_another_may_be_opened[postgresql]",
    ),
    (
        "a body has 64 KiB at most",
        "api/door.py",
        "MOST_BYTES: Final = 64 * 1024",
        "MOST_BYTES: Final = 64 * 1024 * 1024",
        f"{_SERVICE}a_body_has_at_most_64_kib",
    ),
    (
        "what is put must be JSON, too",
        "api/door.py",
        'request.method in ("POST", "PUT") and',
        'request.method in ("POST",) and',
        f"{_SERVICE}a_correction_must_be_json_and_say_so",
    ),
    (
        "what is sent in pieces must be JSON, too",
        "api/door.py",
        'if length == "0" and "transfer-encoding" not in request.headers:',
        'if length == "0":',
        f"{_SERVICE}what_is_sent_in_pieces_must_be_json_and_say_so",
    ),
    (
        "only this machine shows the page in a frame",
        "api/door.py",
        "frame-ancestors 'self' http://127.0.0.1:*",
        "frame-ancestors *",
        (f"{_FRAME}[/]", f"{_FRAME}[/page/page.html]", f"{_FRAME}[/runs]"),
    ),
    (
        "a report is one of a discussion",
        "api/routes.py",
        "run = await here.run(run_id, mine)\n    found",
        "run = await here.manager.store.get(run_id, mine)\n    found",
        f"{_SERVICE}a_run_of_another_kind_is_none_here[/report]",
    ),
    (
        "a cancel over HTTP ends the work here",
        "api/routes.py",
        "here.manager.cancel(run_id, mine)",
        "here.manager.store.cancel(run_id, mine)",
        f"{_SERVICE}a_cancel_ends_the_work_here_before_it_is_answered",
    ),
    (
        "signing out takes the cookie out of the browser",
        "api/routes.py",
        "max_age=0, ",
        "",
        f"{_SERVICE}signing_out_takes_the_cookie_out_of_the_browser",
    ),
    (
        "half a character breaks no report",
        "api/routes.py",
        'text.encode(errors="replace")',
        "text.encode()",
        f"{_SERVICE}half_a_character_breaks_no_report",
    ),
    (
        "a report has the events of a long run",
        "api/routes.py",
        "MOST_EVENTS: Final = 10_000",
        "MOST_EVENTS: Final = 10",
        f"{_SERVICE}a_report_has_the_events_of_a_long_run",
    ),
    (
        "the service ends after the last of its work",
        "api/app.py",
        "await asyncio.wait([serving])",
        "pass",
        f"{_SERVICE}the_service_ends_when_the_last_of_its_work_has_ended",
    ),
    (
        "a reader that leaves lets go of the log",
        "api/streams.py",
        "async with aclosing(self._pieces):",
        "if True:",
        f"{_SERVICE}a_reader_that_leaves_while_it_is_sent_something_lets_go_of_the_log",
    ),
)

SAFEGUARDS: Final = of_rows(_LIST, under="labkit/runs/")
