"""The safeguards of the scenarios: what the clients do, and the facts that are read from runs."""

from .kinds import Safeguard

_CLIENTS = "tests/scenarios/test_clients.py::"
_FACTS = "tests/scenarios/test_facts.py::"
_INTERRUPTIONS = "tests/scenarios/test_interruptions.py::"

SAFEGUARDS = (
    Safeguard(
        name="a turn reads dates by the clock that it was given",
        file="labkit/recovery/turn.py",
        old="        now=services.now,\n",
        new="",
        red=(_INTERRUPTIONS + "test_a_date_in_retry_after_is_read_by_the_runs_own_clock",),
    ),
    Safeguard(
        name="text of an attempt that was made again is not the saved answer",
        file="labkit/scenarios/facts.py",
        old='if answer and _first(after, lambda event: event.kind == "request") is None:',
        new="if answer:",
        red=(
            _FACTS + "test_text_of_an_attempt_that_was_made_again_is_not_the_answer_that_was_saved",
        ),
    ),
    Safeguard(
        name="a task that failed is not noted as a result",
        file="labkit/scenarios/clients.py",
        old='return "error" if task.exception() is not None else "result"',
        new='return "result"',
        red=(_INTERRUPTIONS + "test_the_turns_end_is_noted_as_it_was_and_the_page_survives_it",),
    ),
    Safeguard(
        name="the careful client closes its pieces when the page fails",
        file="labkit/scenarios/clients.py",
        old="""    segment = 1
    async with aclosing(_pieces(provider, policy, observe, segments)) as pieces:
""",
        new="""    segment = 1
    pieces = _pieces(provider, policy, observe, segments)
    if True:
""",
        red=(
            _CLIENTS
            + "test_the_careful_client_leaves_the_provider_before_an_error_of_its_page_leaves",
        ),
    ),
    Safeguard(
        name="the loop that starts over raises its last error",
        file="labkit/scenarios/clients.py",
        old="            if attempt == policy.attempts:\n                raise\n",
        new="",
        red=(
            _CLIENTS
            + "test_the_loop_that_starts_over_ends_with_the_last_error_after_all_its_attempts",
        ),
    ),
    Safeguard(
        name="the client that hammers shows what it gets",
        file="labkit/scenarios/clients.py",
        old="""                if delta.visible:
                    page("shown", text=delta.text)
            return
        except ProviderError:
""",
        new="""                pass
            return
        except ProviderError:
""",
        red=(_CLIENTS + "test_the_client_that_hammers_shows_the_answer_that_it_got_at_last",),
    ),
)
