"""The safeguards of the session lessons: judges, facts, the office and the lanes."""

from typing import Final

from .kinds import Safeguard

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
        "if Counter(asked) != Counter(answered):",
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
        """        session = dict(kept)
        rows = (*session["messages"], *(session["checkpoint"] or ()))""",
        """        session = dict(kept)
        rows = (*session["messages"],)""",
        (f"{_CASE}[an effect of a call that runs]",),
    ),
    (
        "only a crash excuses a result that is not there",
        _JUDGE,
        """    if any(event.get("fault") == "crash" for event in events):
        return
    for event, sessions in _left(events):
        known""",
        """    for event, sessions in _left(events):
        known""",
        (f"{_CASE}[an effect of a call that is unknown]",),
    ),
    (
        "another session's text is not looked for",
        _JUDGE,
        'if event.actor == "page" and event.get("session") == session:',
        'if event.actor == "page":',
        (f"{_CASE}[another session's text]",),
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
        "one[0] == two[0] and one[1] > two[1]",
        "one[1] > two[1]",
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
        "            level[event.time] = number\n",
        "            level.setdefault(event.time, number)\n",
        (f"{_LANES}test_the_level_is_that_of_the_end_of_each_moment",),
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
        "with suppress(SessionError):",
        "with suppress(KeyError):",
        (f"{_TURNS}test_a_session_that_cannot_be_put_away_stays_and_its_turn_is_answered",),
    ),
)

SAFEGUARDS: Final = tuple(
    Safeguard(name=name, file=file, old=old, new=new, red=red)
    for name, file, old, new, red in _ROWS
)
