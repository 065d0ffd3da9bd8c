"""The safeguards of the session lessons: judges, facts, the office and the lanes."""

from typing import Final

from .kinds import of_rows

_DISPATCH: Final = "tests/recovery/test_dispatch.py::"
_TURNS: Final = "tests/services/test_turns.py::"
_JUDGES: Final = "tests/scenarios/test_session_judges.py::"
_CASE: Final = f"{_JUDGES}test_a_judge_finds_this_and_nothing_else"
_SESSIONS: Final = "tests/scenarios/test_sessions.py::"
_LANES: Final = "tests/teaching/test_lanes.py::"
_JUDGE: Final = "labkit/scenarios/session_judges.py"

# name, file, old, new, what goes red
_ROWS: Final = (
    (
        "a call with two results is found",
        _JUDGE,
        "if asked != answered:",
        "if set(asked) != set(answered):",
        (f"{_CASE}[a call with two]",),
    ),
    (
        "an effect counts once for each call",
        _JUDGE,
        'if _effects(events) - known:\n            cure = "mark',
        'if set(_effects(events)) - set(known):\n            cure = "mark',
        (f"{_CASE}[two effects of one call]",),
    ),
    (
        "a call that is marked as running may have run",
        _JUDGE,
        'status |= dict.fromkeys(session["running"], "unknown")',
        "pass",
        (f"{_CASE}[an effect of a call that runs]",),
    ),
    (
        "an open turn counts for what is known of a call",
        _JUDGE,
        'return (*session["messages"], *(session["checkpoint"] or ()))',
        'return tuple(session["messages"])',
        (f"{_CASE}[an effect of a call that runs]",),
    ),
    (
        "only a crash excuses a result that is not there",
        _JUDGE,
        """    if _crashed(events):
        return
    for event, sessions in left(events):
        known""",
        """    for event, sessions in left(events):
        known""",
        (f"{_CASE}[an effect of a call that is unknown]",),
    ),
    (
        "another session's text is not looked for",
        _JUDGE,
        'if _on_a_page(event) and event["session"] == session:',
        "if _on_a_page(event):",
        (f"{_JUDGES}test_each_session_keeps_the_text_of_its_own_page",),
    ),
    (
        "text is looked for answer by answer",
        _JUDGE,
        """            elif shown:
                yield shown, at
                shown = ""
""",
        "",
        (f"{_CASE}[two answers, each kept]",),
    ),
    (
        "what was dropped openly is not lost",
        _JUDGE,
        "- Counter(kept) - Counter(dropped), kept",
        "- Counter(kept), kept",
        (f"{_CASE}[dropped, and told so]",),
    ),
    (
        "the same words sent twice are two messages",
        _JUDGE,
        "if Counter(kept) - Counter(_sent(events)):",
        "if len(set(kept)) < len(kept):",
        (f"{_CASE}[the same words sent twice]",),
    ),
    (
        "messages of two sessions have no order",
        _JUDGE,
        "ordered = sorted(kept, key=lambda message: message[0])",
        "ordered = kept",
        (f"{_JUDGES}test_messages_of_two_sessions_have_no_order_among_them",),
    ),
    (
        "a gate of nothing is no gate",
        _JUDGE,
        "if limit > 0 and running > limit:",
        "if running > limit:",
        (f"{_CASE}[no gate]",),
    ),
    (
        "text before the tools is a segment of its own",
        "labkit/scenarios/office.py",
        "if session in self._showing:",
        "if False:",
        (f"{_SESSIONS}test_text_before_the_tools_and_the_answer_after_them_are_two_segments",),
    ),
    (
        "the level is told once for each moment",
        "labkit/teaching/lanes.py",
        "for event, number in levels(events)}",
        "for event, number in reversed(list(levels(events)))}",
        (f"{_LANES}test_the_level_is_that_of_the_end_of_each_moment",),
    ),
    (
        "a room that makes no sense is refused",
        "labkit/recovery/dispatch.py",
        "if type(self.room) is not int or self.room < 0:",
        "if False:",
        (
            f"{_DISPATCH}test_a_concurrency_that_makes_no_sense_names_its_field[room--1]",
            "tests/teaching/test_panel.py::"
            "test_a_room_that_makes_no_sense_is_refused_and_the_picture_stays",
        ),
    ),
    (
        "a run that died before any turn says of what",
        "labkit/teaching/lanes.py",
        "if run.error else",
        "if False else",
        (f"{_LANES}test_a_run_that_died_before_any_turn_says_of_what",),
    ),
    (
        "a tool that was cut is not told as done",
        "labkit/teaching/timeline.py",
        "end['status'] if end else 'cut'",
        "end['status'] if end else 'done'",
        ("tests/teaching/test_timeline.py::test_tool_calls_are_bars_and_one_that_was_cut_says_so",),
    ),
    (
        "a check that fails lets nothing through",
        "labkit/recovery/tools.py",
        'return f"it could not be checked: {type(error).__name__}"',
        "pass",
        (
            "tests/recovery/test_tools.py::"
            "test_a_check_that_fails_lets_nothing_through_and_ends_no_turn[check]",
            "tests/recovery/test_tools.py::"
            "test_a_check_that_fails_lets_nothing_through_and_ends_no_turn[allowed]",
        ),
    ),
    (
        "an answer that cannot be told stops nothing",
        "labkit/recovery/dispatch.py",
        'self._tell("not_told", message, error=type(error).__name__)',
        "raise",
        (f"{_DISPATCH}test_an_answer_that_cannot_be_told_stops_nothing",),
    ),
    (
        "a message that cannot be kept keeps no other from being kept",
        "labkit/recovery/dispatch.py",
        'self._tell("not_kept", message, error=type(error).__name__)',
        "raise",
        (f"{_DISPATCH}test_a_message_that_cannot_be_kept_keeps_no_other_from_being_kept",),
    ),
    (
        "a gateway lets idle sessions go",
        "labkit/services/turns.py",
        "if len(self._idle) > KEPT:",
        "if False:",
        (f"{_TURNS}test_of_many_sessions_those_that_were_idle_longest_are_put_away",),
    ),
    (
        "a session in use is not put away",
        "labkit/services/turns.py",
        "            self._idle.pop(session, None)\n",
        "",
        (f"{_TURNS}test_a_session_whose_turn_runs_is_not_put_away",),
    ),
    (
        "a session that cannot be put away stays",
        "labkit/services/turns.py",
        "except SessionError:",
        "except KeyError:",
        (f"{_TURNS}test_a_session_that_cannot_be_put_away_stays_and_its_turn_is_answered",),
    ),
    (
        "what starts others for ever is given up",
        "labkit/services/process_tree.py",
        "and (not known or time.monotonic() < until):",
        "and True:",
        (
            "tests/services/test_process_tree.py::"
            "test_what_starts_others_faster_than_it_is_found_is_given_up",
        ),
    ),
    (
        "a result that is there is saved, whatever comes",
        "labkit/recovery/calls.py",
        """            if finished:  # breakpoint: result check
                await self._ended(call, *task.result())
        if not finished:""",
        """            pass
        if finished:
            await self._ended(call, *task.result())
        else:""",
        (
            "tests/scenarios/test_sweeps.py::test_what_is_careful_holds_at_every_point[turn.reference]",
        ),
    ),
    (
        "a tool or a service that heeds no cancel holds up nobody at its limit",
        "labkit/recovery/cancel.py",
        "await to_the_end(asyncio.wait([task], timeout=CLEAN_UP))",
        "await to_the_end(asyncio.wait([task]))",
        (
            "tests/recovery/test_turn.py::"
            "test_a_tool_that_does_not_end_at_its_limit_holds_the_turn_for_a_bounded_time",
            "tests/recovery/test_attempts.py::"
            "test_a_service_that_heeds_no_cancel_is_left_to_itself",
        ),
    ),
    (
        "a shutdown goes on where nobody listens any more",
        "labkit/recovery/shutdown.py",
        "with suppress(Exception):  # whoever listens may be gone already",
        "if True:",
        (
            "tests/recovery/test_shutdown.py::"
            "test_a_listener_that_is_gone_and_a_step_that_cannot_begin_stop_nothing",
        ),
    ),
    (
        "a flush writes no session that was let go meanwhile",
        "labkit/stores/session_files.py",
        "if self._held.get(held.session.session_id) is held:  # else it was let go meanwhile",
        "if True:",
        (
            "tests/stores/test_session_files.py::"
            "test_a_flush_writes_nothing_over_a_session_that_was_let_go_meanwhile",
        ),
    ),
    (
        "a tuple's first item is told once",
        "labkit/simulation/freeze.py",
        "return tuple([plain(name, item) for item in value])",
        "return tuple([value[0] if item is name else plain(name, item) for item in value])",
        ("tests/simulation/test_freeze.py::test_an_item_that_is_named_like_its_tuple_stays",),
    ),
    (
        "one turn is stopped once",
        "labkit/recovery/dispatch.py",
        'return int(first and turn.outcome == "stopped")',
        'return int(turn.outcome == "stopped")',
        ("tests/recovery/test_dispatch.py::test_two_stops_of_one_turn_are_one",),
    ),
    (
        "a turn that never began is no end of one",
        "labkit/recovery/dispatch.py",
        "            if turn.begun:\n",
        "            if True:\n",
        ("tests/recovery/test_dispatch.py::test_a_turn_that_never_began_is_not_told_as_ended",),
    ),
    (
        "a call in flight when the server is left is told",
        "labkit/services/transport.py",
        "        finally:  # also where nobody listens any more\n",
        "        else:\n",
        (
            "tests/services/test_transport.py::"
            "test_a_call_in_flight_when_the_server_is_left_is_told",
        ),
    ),
    (
        "what is nested too deep is nonsense like any other",
        "labkit/services/transport.py",
        "told = strict_json(line.decode())",
        "told = json.loads(line)",
        (
            "tests/services/test_transport.py::"
            "test_a_call_to_a_server_that_goes_or_talks_nonsense_is_unknown",
        ),
    ),
    (
        "a pair of faults strikes two steps",
        "labkit/simulation/explore.py",
        "if point.event > after or (on_tasks and point.event == after) or after < 0:",
        "if point.event >= after:",
        ("tests/simulation/test_explore.py::test_a_pair_strikes_two_steps_and_not_one_step_twice",),
    ),
    (
        "a piece without an index belongs to the call before it",
        "labkit/recovery/turn.py",
        'return piece.call_id or next(reversed(list(calls)), "")',
        'return ""',
        (
            "tests/recovery/test_turn.py::"
            "test_pieces_without_an_index_belong_to_the_call_whose_id_came_last",
        ),
    ),
    (
        "a tool does not end the process",
        "labkit/recovery/calls.py",
        "except (Exception, SystemExit) as error:",
        "except Exception as error:",
        (
            "tests/recovery/test_calls.py::"
            "test_a_tool_that_would_end_the_process_or_cannot_say_why_is_a_result_too",
        ),
    ),
    (
        "an error without words is a result",
        "labkit/recovery/calls.py",
        "{type(error).__name__}: {_words(error)}",
        "{type(error).__name__}: {error}",
        (
            "tests/recovery/test_calls.py::"
            "test_a_tool_that_would_end_the_process_or_cannot_say_why_is_a_result_too",
        ),
    ),
    (
        "a session that is stuck keeps no other loaded",
        "labkit/services/turns.py",
        "                del self._idle[longest]\n                try:",
        "                try:",
        (f"{_TURNS}test_one_session_that_cannot_be_put_away_keeps_no_other_loaded",),
    ),
    (
        "what is left may have any name",
        "labkit/simulation/playing.py",
        "def _note(self, kind: str, /, **data: Any)",
        "def _note(self, kind: str, **data: Any)",
        ("tests/simulation/test_simulate.py::test_what_is_left_may_have_any_name",),
    ),
)

SAFEGUARDS: Final = of_rows(_ROWS)
