"""The safeguards of the service of runs: who comes in, what is told, streams, how it ends."""

from __future__ import annotations

from typing import Final

from .kinds import Row, of_rows

ACCESS: Final = "labkit/runs/api/access.py"
DOOR: Final = "labkit/runs/api/door.py"
ROUTES: Final = "labkit/runs/api/routes.py"
ANSWERING: Final = "labkit/runs/api/answering.py"
BODIES: Final = "labkit/runs/api/bodies.py"
REFUSALS: Final = "labkit/runs/api/refusals.py"
STREAMS: Final = "labkit/runs/api/streams.py"
APP: Final = "labkit/runs/api/app.py"
SERVE: Final = "labkit/commands/serve.py"

_ACCESS: Final = "tests/runs/api/test_access.py::test_"
_DOOR: Final = "tests/runs/api/test_door.py::test_"
_ROUTES: Final = "tests/runs/api/test_routes.py::test_"
_STREAMS: Final = "tests/runs/api/test_streams.py::test_"
_SERVE: Final = "tests/commands/test_serve.py::"
_PROCESS: Final = f"{_SERVE}TestProcess::test_"

_BAD: Final = f"{_ACCESS}an_entry_that_is_no_good_is_counted_and_never_shown"
_NOBODY: Final = f"{_DOOR}nothing_is_for_those_who_are_not_known"
_COOKIE: Final = (
    f"{_DOOR}signing_in_gives_a_cookie_that_scripts_cannot_read_and_other_sites_cannot_send"
)
_OWN: Final = f"{_DOOR}a_cookie_counts_for_the_services_own_page_only"
_PIECES: Final = f"{_DOOR}a_body_that_is_sent_in_pieces_has_the_same_limit"
_BUG: Final = f"{_DOOR}a_bug_is_told_by_its_name_alone"
_HARM: Final = f"{_DOOR}every_answer_keeps_a_browser_from_harm"
_MALFORMED: Final = f"{_ROUTES}what_is_malformed_is_told_by_its_place_and_not_repeated"
_AGAIN: Final = f"{_ROUTES}a_run_that_is_sent_again_after_a_lost_answer_is_the_same_run"
_OTHER: Final = f"{_ROUTES}another_run_under_the_same_id_is_refused"
_HALF: Final = f"{_ROUTES}half_a_character_in_what_a_model_has_said_breaks_no_answer"
_APPROVAL: Final = f"{_ROUTES}an_approval_is_given_for_exactly_what_was_seen"
_CURSOR: Final = f"{_ROUTES}a_cursor_that_the_run_never_gave_out_is_refused_before_the_stream"
_METHOD: Final = f"{_ROUTES}another_method_is_told_which_there_are"
_GONE: Final = f"{_ROUTES}a_store_that_is_gone_is_said_without_its_words_and_comes_back"
_SIX: Final = f"{_STREAMS}a_user_has_six_streams_and_others_have_theirs"
_LIMITS: Final = f"{_STREAMS}the_usual_limits_are_those_that_are_told"
_TEN: Final = f"{_STREAMS}ten_seconds_without_a_store_lose_no_event_and_double_none"
_EACH: Final = f"{_STREAMS}each_event_comes_as_soon_as_it_is_there_and_the_end_ends_the_stream"
_LINE: Final = f"{_SERVE}test_what_is_no_good_is_one_line_without_a_secret_and_exit_2"

# name, file, old, new, and the tests that must go red
_LIST: Final[tuple[Row, ...]] = (
    # --- tokens and cookies
    (
        "a short token is no token",
        ACCESS,
        "{{16,200}}",
        "{{1,200}}",
        f"{_BAD}[ann:sssssssssssssss-entry 1 of the tokens is no good]",
    ),
    (
        "a token is one user's",
        ACCESS,
        "if token in users:",
        "if False:",
        f"{_BAD}[ann:the-token-of-ann-1 bob:the-token-of-ann-1-entry 2 of the tokens has the token "
        "of another]",
    ),
    (
        "tokens are kept as digests",
        ACCESS,
        "self._tokens = [(_digest(token), owner)",
        "self._tokens = [(token.encode(), owner)",
        f"{_ACCESS}no_token_stands_in_what_is_kept",
    ),
    (
        "a cookie is not the token",
        ACCESS,
        'hmac.new(token.encode(), b"a cookie of labkit", "sha256").hexdigest()',
        "token",
        (f"{_ACCESS}a_cookie_is_its_users_and_is_not_the_token", _COOKIE),
    ),
    (
        "a cookie dies with its token",
        ACCESS,
        'hmac.new(token.encode(), b"a',
        'hmac.new(b"key", b"a',
        f"{_ACCESS}a_cookie_outlives_a_restart_and_dies_with_its_token",
    ),
    (
        "scripts cannot read the cookie",
        ROUTES,
        "COOKIE, here.access.cookie(token), path=None, httponly=True",
        "COOKIE, here.access.cookie(token), path=None, httponly=False",
        _COOKIE,
    ),
    (
        "a cookie is for the folder of its page",
        ROUTES,
        "here.access.cookie(token), path=None",
        'here.access.cookie(token), path="/"',
        _COOKIE,
    ),
    (
        "who signs in is known",
        ROUTES,
        "    if owner is None:\n        return refusal(401",
        "    if False:\n        return refusal(401",
        f"{_DOOR}a_wrong_token_signs_nobody_in",
    ),
    (
        "blanks around a token are none of it",
        ROUTES,
        "shown.token.strip()",
        "shown.token",
        f"{_DOOR}blanks_around_a_token_are_none_of_it",
    ),
    (
        "who has many runs finds the old ones",
        ROUTES,
        "before=before or None",
        "before=None",
        f"{_ROUTES}the_runs_before_the_oldest_of_a_list_are_the_next_list",
    ),
    (
        "no run is left out between two lists",
        "labkit/runs/front.py",
        "age = RUNS.c.created, RUNS.c.run_id",
        "age = (RUNS.c.created,)",
        "tests/runs/test_store.py::"
        "test_older_runs_are_listed_from_a_run_on_also_of_one_moment[sqlite]",
    ),
    (
        "who sends too much beside a stream is no bug",
        DOOR,
        "        if begun:\n",
        "        if False:\n",
        f"{_DOOR}who_sends_too_much_while_it_reads_a_stream_is_gone_and_that_is_no_bug",
    ),
    (
        "what is too large is refused by its header, too",
        DOOR,
        "if length.isdecimal() and int(length) > MOST_BYTES:",
        "if False:",
        f"{_DOOR}what_is_too_large_is_refused_also_where_nobody_reads_it",
    ),
    (
        "runs of another kind take no place in a list",
        ROUTES,
        "runs(mine, job=JOB, before",
        "runs(mine, before",
        f"{_ROUTES}runs_of_another_kind_hide_no_discussion",
    ),
    # --- the door
    (
        "who is not known does not come in",
        DOOR,
        'if owner is None and asks != ("POST", "/sign-in"):',
        "if False:",
        (f"{_NOBODY}[GET-/openapi.json]", f"{_NOBODY}[OPTIONS-/]"),
    ),
    (
        "only files of the page are for everybody",
        DOOR,
        'asks[1].startswith("/page/")',
        'asks[1].startswith("/")',
        f"{_NOBODY}[GET-/nothing]",
    ),
    (
        "a token counts as a bearer's only",
        DOOR,
        'if scheme.lower() == "bearer":',
        "if scheme:",
        f"{_DOOR}a_token_counts_in_its_form_only[Basic {{}}]",
    ),
    (
        "a cookie counts for the own page only",
        DOOR,
        'not in ("same-origin", "none"):',
        'not in ("same-origin", "none", "same-site"):',
        f"{_OWN}[same-site]",
    ),
    (
        "what is sent is json",
        DOOR,
        "and not _json(request) else None",
        "and False else None",
        f"{_DOOR}what_is_sent_must_be_json_and_say_so[text/plain]",
    ),
    ("a body has a limit", DOOR, "if size <= MOST_BYTES:", "if True:", _PIECES),
    (
        "every answer has the headers that keep a browser from harm",
        DOOR,
        "headers.setdefault(name, value)",
        "pass",
        (f"{_HARM}[/]", f"{_HARM}[/nothing]"),
    ),
    (
        "a bug is told to the operator",
        DOOR,
        'self._observe("failed", error=type(error).__name__)',
        "pass",
        _BUG,
    ),
    (
        "a bug is told by its name",
        REFUSALS,
        "return refusal(500)",
        "return refusal(500, message=str(error))",
        _BUG,
    ),
    # --- what is said
    (
        "a run of another kind is no discussion",
        ROUTES,
        "if run.job != JOB:",
        "if False:",
        f"{_ROUTES}a_run_of_another_kind_is_no_discussion",
    ),
    (
        "a model is looked at before a run is begun",
        ROUTES,
        "    models.check(model)\n",
        "",
        f"{_ROUTES}a_model_that_is_not_there_is_refused_before_anything_is_begun",
    ),
    (
        "the same run again is no error",
        ROUTES,
        "except RunExists:",
        "except ZeroDivisionError:",
        _AGAIN,
    ),
    (
        "the same run is the same whatever became of its model",
        ROUTES,
        'first.data["model"]',
        "run.model",
        _AGAIN,
    ),
    (
        "other content under the same id is refused",
        ROUTES,
        'if (run.given, first.data["model"]) != (given, model):',
        "if False:",
        (f"{_OTHER}[other0]", f"{_OTHER}[other2]"),
    ),
    (
        "an id of one's own is nobody else's",
        ROUTES,
        "json.dumps([owner.tenant, owner.user, name])",
        "json.dumps([name])",
        f"{_ROUTES}an_id_of_ones_own_is_neither_taken_nor_found_by_anybody_else",
    ),
    (
        "half a character breaks no answer",
        ROUTES,
        "Response(json.dumps(value), status",
        "Response(json.dumps(value, ensure_ascii=False), status",
        _HALF,
    ),
    (
        "a cursor ahead of the run is refused before the stream",
        ROUTES,
        "if number_of(cursor) > run.seq:",
        "if False:",
        f"{_CURSOR}[4]",
    ),
    (
        "what is malformed is not repeated",
        REFUSALS,
        'if first["type"] == "extra_forbidden":',
        "if False:",
        f"{_MALFORMED}[given16-a field that is not known]",
    ),
    (
        "a field that is not known is refused",
        BODIES,
        'strict=True, extra="forbid"',
        "strict=True",
        f"{_MALFORMED}[given16-a field that is not known]",
    ),
    (
        "a text is no number",
        BODIES,
        'strict=True, extra="forbid"',
        'extra="forbid"',
        f"{_MALFORMED}[given10-rounds]",
    ),
    (
        "blanks are no question",
        BODIES,
        r"[^\s\x00\u200b",
        r"[^\x00\u200b",
        f"{_MALFORMED}[given2-question]",
    ),
    (
        "what a store says is not passed on",
        REFUSALS,
        'StoreDown: (503, "the store does not answer at the moment: try again")',
        'StoreDown: (503, "")',
        f"{_GONE}[GET-/runs-None]",
    ),
    (
        "another method is told which there are",
        REFUSALS,
        "if error.status_code != 405:",
        "if True:",
        (f"{_METHOD}[OPTIONS-/runs-GET, POST]", f"{_METHOD}[PATCH-/memories/x-DELETE, PUT]"),
    ),
    # --- answers
    (
        "an answer names its question where there are two",
        ANSWERING,
        'next(iter(asks)) if len(asks) == 1 else ""',
        "next(iter(asks))",
        f"{_ROUTES}an_answer_without_a_name_is_refused_where_two_things_are_asked",
    ),
    (
        "an approval is for what was seen",
        ANSWERING,
        'if said.digest != ask["digest"]:',
        "if False:",
        _APPROVAL,
    ),
    (
        "an approval is a clear word",
        ANSWERING,
        "if said.answer not in (APPROVE, REJECT):",
        "if False:",
        _APPROVAL,
    ),
    (
        "an answer is to what was asked then",
        ROUTES,
        "answer(run_id, mine, word, seq=run.seq)",
        "answer(run_id, mine, word, seq=run.seq + 1)",
        f"{_ROUTES}the_one_question_is_answered_without_its_name_and_once",
    ),
    # --- streams
    (
        "a user has so many streams",
        STREAMS,
        "if self._taken[owner] >= self._per_user:",
        "if False:",
        (_SIX, _LIMITS),
    ),
    (
        "a server has so many streams",
        STREAMS,
        "if self._taken.total() >= self._per_server:",
        "if False:",
        (f"{_STREAMS}a_server_has_so_many_streams_whoever_reads_them", _LIMITS),
    ),
    (
        "who leaves gives the place back",
        STREAMS,
        "self._taken -= Counter([owner])",
        "pass",
        (
            f"{_STREAMS}a_connection_that_is_torn_gives_its_place_back[True]",
            f"{_STREAMS}a_reader_that_has_left_before_the_first_byte_gives_its_place_back",
        ),
    ),
    (
        "a store that is gone ends no stream",
        STREAMS,
        "except StoreDown:",
        "except ZeroDivisionError:",
        _TEN,
    ),
    (
        "after a store that was gone a reader goes on where it was",
        STREAMS,
        "cursor = self.cursor(entry.sequence) if entry else cursor",
        "pass",
        _TEN,
    ),
    (
        "no proxy gathers events of runs",
        STREAMS,
        '    "x-accel-buffering": "no",  # or a proxy may gather events\n',
        "",
        _EACH,
    ),
    (
        "a short heartbeat is kept to",
        ROUTES,
        "look=min(LOOK, here.heartbeat)",
        "look=1e6",
        f"{_STREAMS}a_silent_run_sends_comments_that_move_no_cursor",
    ),
    # --- the service as a whole
    (
        "a manager that breaks is told",
        APP,
        "serving.add_done_callback(partial(_told, observe))",
        "pass",
        f"{_DOOR}a_manager_that_breaks_is_told_and_the_service_goes_on",
    ),
    (
        "no address leads to where a proxy has nothing",
        APP,
        "redirect_slashes=False,",
        "redirect_slashes=True,",
        f"{_ROUTES}an_address_that_is_none_is_not_found_and_leads_nowhere_else[/runs/]",
    ),
    (
        "a demonstration that is killed leaves no service behind",
        SERVE,
        "    if asked.with_parent:\n",
        "    if False:\n",
        f"{_SERVE}test_a_demonstration_that_is_killed_leaves_no_service_behind",
    ),
    (
        "a service's trouble at its start is one line",
        SERVE,
        "except (RecoveryError, StoreError) as error:",
        "except ZeroDivisionError as error:",
        (
            f"{_LINE}[line0-lease is 0.0, and must be above 0]",
            f"{_LINE}[line6-/no/such/folder/runs.db cannot be]",
        ),
    ),
)

SAFEGUARDS: Final = of_rows(_LIST)
