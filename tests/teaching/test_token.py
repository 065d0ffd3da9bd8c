"""A token brings anybody to the same run, or says what is wrong with it."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
from labkit.recovery.policy import RetryPolicy
from labkit.simulation import Fault
from labkit.simulation.faults import KINDS, TASK_FAULTS
from labkit.teaching.token import TokenError, from_token, read, token_of


def test_a_token_stands_for_scenario_fault_policy_and_seed() -> None:
    run = from_token("retry.stall~cancel@5w~attempts=2~seed=7")
    assert run.scenario is labkit.find("retry.stall")
    assert run.policy.attempts == 2
    assert run.policy.stall == run.scenario.policy.stall
    assert run.faults == (Fault("cancel", 5),)
    assert run.seed == 7


def test_the_run_of_a_token_is_the_run_it_was_made_from() -> None:
    scenario = labkit.find("interruption.stop")
    policy = RetryPolicy(retry_on=scenario.policy.retry_on, attempts=2, stall=4.5, total=60)
    faults = [Fault("cancel", 3, task="turn", phase="waking"), Fault("stall", 2)]
    run = labkit.simulate(scenario, policy=policy, faults=faults, seed=3)
    token = token_of(run)
    assert token == "interruption.stop~cancel@turn.3wake~stall@2~attempts=2~stall=4.5~seed=3"
    assert from_token(token).hash == run.hash


@given(
    kind=st.sampled_from(KINDS),
    point=st.integers(0, 10**6),
    phase=st.sampled_from(["waiting", "waking"]),
    task=st.text("abc .~=@%\u4f60", min_size=1, max_size=8),
    attempts=st.integers(1, 9),
    jitter=st.floats(0, 1),
    seed=st.integers(-(10**17), 10**17),
)
@settings(max_examples=60, deadline=None)
def test_every_token_reads_back_and_needs_no_escape(
    kind: str, point: int, phase: str, task: str, attempts: int, jitter: float, seed: int
) -> None:
    fault = Fault(kind, point, task, phase) if kind in TASK_FAULTS else Fault(kind, point)
    scenario = labkit.find("retry.quota")
    policy = RetryPolicy(
        retry_on=scenario.policy.retry_on, stall=5, total=60, attempts=attempts, jitter=jitter
    )
    run = labkit.simulate(scenario, policy=policy, faults=[fault], seed=seed)
    token = token_of(run)
    again = from_token(token)
    assert (again.scenario, again.policy, again.faults) == (scenario, policy, (fault,))
    assert again.seed == seed
    assert quote(token, safe="~@=.-_%") == token


@pytest.mark.parametrize(
    ("token", "wrong", "there_is"),
    [
        ("", "part 1", "retry.guarded"),
        ("retry.stal~seed=1", "part 1, 'retry.stal'", "retry.stall"),
        ("retry.stall~attemps=2", "part 2, 'attemps=2'", "attempts, first_wait"),
        ("retry.stall~seed=1~seed=2", "part 3, 'seed=2'", "twice"),
        ("retry.stall~seed=1.5", "part 2", "whole number"),
        ("retry.stall~attempts=2.5", "part 2", "whole number"),
        ("retry.stall~jitter=nan", "the policy contradicts itself", "jitter"),
        ("retry.stall~jitter=", "part 2", "a number is needed"),
        ("retry.stall~explode@3", "part 2, 'explode@3'", "cancel, timeout, kill, freeze, crash"),
        ("retry.stall~cancel@3", "part 2", "cancel@5wake"),
        ("retry.stall~cancel@3x", "part 2", "cancel@5wake"),
        ("retry.stall~timeout@3", "part 2", "timeout@task.5w"),
        ("retry.stall~crash@3w", "part 2", "crash@5"),
        ("retry.stall~stall@3w", "part 2", "stall@5"),
        ("retry.stall~stall@-3", "part 2", "stall@5"),
        ("retry.stall~~", "part 2, ''", "a fault is like"),
        ("retry.stall~cancel@" + "9" * 5000 + "w", "part 2", "a fault is like"),
        ("retry.stall~seed=" + "9" * 5000, "part 2", "whole number"),
        ("retry.stall~first_wait=40", "the policy contradicts itself", "first_wait"),
        ("<script>", "part 1", "retry.guarded"),
    ],
)
def test_nonsense_is_refused_with_the_part_and_what_there_is(
    token: str, wrong: str, there_is: str
) -> None:
    with pytest.raises(TokenError) as caught:
        from_token(token)
    assert wrong in str(caught.value)
    assert there_is in str(caught.value)
    assert len(str(caught.value)) < 2_000


def test_a_scenario_of_ones_own_has_no_token() -> None:
    own = labkit.find("retry.stall").but(claim="mine")
    assert token_of(labkit.simulate(own)) == ""


def test_a_policy_that_differs_in_more_than_numbers_has_no_token() -> None:
    policy = RetryPolicy(retry_on={"stall"}, stall=5, total=60)
    assert token_of(labkit.simulate("retry.stall", policy=policy)) == ""


def test_in_a_notebook_an_error_of_a_token_is_one_line() -> None:
    with pytest.raises(TokenError) as caught:
        from_token("nope")
    (line,) = caught.value._render_traceback_()
    assert line.startswith("TokenError: part 1, 'nope': ")


def test_a_point_has_nine_digits_at_most() -> None:
    assert read("retry.stall~stall@" + "9" * 9)["faults"] == [Fault("stall", 10**9 - 1)]
    with pytest.raises(TokenError, match="a fault is like"):
        read("retry.stall~stall@" + "9" * 10)
