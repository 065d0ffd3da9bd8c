"""The safeguards of the three implementations: what keeps them quiet, whole and comparable."""

from .kinds import Safeguard

_FILE = "labkit/scenarios/frameworks.py"
_TESTS = "tests/scenarios/test_frameworks.py::"
_QUIET = _TESTS + "test_nothing_is_reported_to_anybody_even_where_the_environment_asks_for_it"

SAFEGUARDS = (
    Safeguard(
        name="LangGraph's tracing is off",
        file=_FILE,
        old="with tracing_context(enabled=False):",
        new="with tracing_context():",
        red=(_QUIET,),
    ),
    Safeguard(
        name="the agent SDK's tracing is off",
        file=_FILE,
        old="tracing_disabled=True",
        new="tracing_disabled=False",
        red=(_QUIET,),
    ),
    Safeguard(
        name="what an import asks of the machine is not the run's",
        file=_FILE,
        old="        with loading():\n            yield\n",
        new="        yield\n",
        red=(_QUIET,),
    ),
    Safeguard(
        name="a cut graph goes on from its checkpoint",
        file=_FILE,
        old="given = None if again else State(question=QUESTION.question)",
        new="given = State(question=QUESTION.question)",
        red=(_TESTS + "test_every_reader_has_the_whole_answer_in_the_end[frameworks.langgraph]",),
    ),
    Safeguard(
        name="the question is put into the session once",
        file=_FILE,
        old="given: Any = [] if again else QUESTION.question",
        new="given: Any = QUESTION.question",
        red=(_TESTS + "test_the_session_has_the_question_once_and_the_answer_whole_in_the_end",),
    ),
    Safeguard(
        name="the SDK's runner ends with its reader",
        file=_FILE,
        old="            running.cancel()  # it is a task of its own, and would outlive us\n"
        "            await asyncio.wait(filter(None, [running.run_loop_task]))\n",
        new="",
        red=(_TESTS + "test_whoever_leaves_the_sdks_stream_leaves_no_task_behind",),
    ),
    Safeguard(
        name="a framework's attempts are limited",
        file=_FILE,
        old="                if number == self.limits.recoveries:\n                    raise\n",
        new="",
        red=(
            _TESTS + "test_the_error_leaves_when_the_limit_allows_no_other_attempt[langgraph]",
            _TESTS + "test_the_error_leaves_when_the_limit_allows_no_other_attempt[agents]",
        ),
    ),
    Safeguard(
        name="a careful node counts its tries",
        file=_FILE,
        old='"interrupted" if tries <= self.limits.recoveries else "failed"',
        new='"interrupted"',
        red=(_TESTS + "test_the_careful_node_says_failed_when_the_limit_is_reached",),
    ),
)
