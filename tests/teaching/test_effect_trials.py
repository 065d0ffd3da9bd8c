"""The exercises of timeouts, budgets and keys: a typical wrong answer is told its case.

That each is open as handed out and solved by its solution stands in `test_exercises`.
"""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest

import labkit
from labkit.recovery.budget import BudgetExhausted
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.idempotency import KeyRecord, Operation, checked, enter
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import backoff
from labkit.teaching.exercises import exercises

from .checking import is_told_its_case

Left = dict[str, int]
Call = dict[str, Any]
Case = dict[str, Any]


async def counts_after_the_wait(left: Left, seconds: float, wait: float) -> bool:
    if wait >= seconds or min(left.values()) <= 0:
        return False
    await asyncio.sleep(wait)
    left["retries"] -= 1
    return True


async def looks_again_after_the_wait(left: Left, seconds: float, wait: float) -> bool:
    if wait >= seconds or min(left.values()) <= 0:
        return False
    await asyncio.sleep(wait)
    left["retries"] -= 1
    return left["retries"] >= 0


async def sleeps_past_the_deadline(left: Left, seconds: float, wait: float) -> bool:
    if min(left.values()) <= 0:
        return False
    left["retries"] -= 1
    await asyncio.sleep(wait)
    return True


async def cuts_the_wait(left: Left, seconds: float, wait: float) -> bool:
    return await sleeps_past_the_deadline(left, seconds, min(wait, seconds))


async def pays_what_it_refuses(left: Left, seconds: float, wait: float) -> bool:
    if min(left.values()) <= 0:
        return False
    left["retries"] -= 1
    if wait >= seconds:
        return False
    await asyncio.sleep(wait)
    return True


async def counts_requests_too(left: Left, seconds: float, wait: float) -> bool:
    may = wait < seconds and min(left.values()) > 0
    if may:
        left["requests"] -= 1
        left["retries"] -= 1
        await asyncio.sleep(wait)
    return may


async def never(left: Left, seconds: float, wait: float) -> bool:
    return False


async def a_limit_of_its_own(left: Left, seconds: float, wait: float) -> bool:
    return await sleeps_past_the_deadline(dict(left), seconds, wait) if wait < seconds else False


async def raises_it(left: Left, seconds: float, wait: float) -> bool:
    if left["retries"] <= 0:
        raise BudgetExhausted("retries")
    return await counts_after_the_wait(left, seconds, wait)


def longest(attempt: int) -> float:
    return min(30.0, 2.0 ** min(attempt - 1, 9))


def labkits_own(attempt: int, random: Random) -> float:
    policy = RetryPolicy(retry_on=TRANSIENT, max_wait=30.0)
    return backoff(attempt, policy=policy, random=random)


def joined(sign: str) -> Any:
    """A key of the right parts, joined by a sign."""
    return lambda tenant, operation, resource, **_: sign.join((tenant, operation, resource))


CHARGE = {"tenant": "acme", "name": "charge", "resource": "order-7"}


def own_key(call: Call) -> str:
    return json.dumps([call["tenant"], call["operation"], call["resource"]])


def trims_the_resource(**call: Any) -> str:
    return own_key({**call, "resource": call["resource"].strip()})


def written(value: Any, *, number: Any = int, order: Any = list) -> Any:
    """The payload with each whole float as an int, and numbers and lists as they are treated."""
    if isinstance(value, dict):
        return {name: written(v, number=number, order=order) for name, v in value.items()}
    if isinstance(value, list):
        return order([written(inner, number=number, order=order) for inner in value])
    whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    return number(value) if whole else value


def with_floats(payload: Any) -> str:
    return json.dumps(written(payload, number=float), sort_keys=True)


def sorts_lists_too(payload: Any) -> str:
    return json.dumps(written(payload, order=sorted), sort_keys=True)


def takes_true_for_one(payload: Any) -> str:
    numbers = {name: int(v) for name, v in payload.items() if isinstance(v, int)}
    wholes = {n: int(v) for n, v in payload.items() if isinstance(v, float) and v.is_integer()}
    return json.dumps({**payload, **numbers, **wholes}, sort_keys=True)


def at_the_top_only(payload: Any) -> str:
    wholes = {n: int(v) for n, v in payload.items() if isinstance(v, float) and v.is_integer()}
    return json.dumps({**payload, **wholes}, sort_keys=True)


def takes_a_dead_executor_for_nothing(record: KeyRecord, fingerprint: str, now: float) -> str:
    answer = enter(record, fingerprint, now=now)
    return "execute" if answer == "reconcile" and record.state == "pending" else answer


def compares_before_it_expires(record: KeyRecord, fingerprint: str, now: float) -> str:
    failed = record and record.state == "failed" and record.fingerprint != fingerprint
    return "conflict" if failed else enter(record, fingerprint, now=now)


def expires_everything(record: KeyRecord, fingerprint: str, now: float) -> str:
    if record and record.expires and now >= record.expires:
        return "execute"
    return enter(record, fingerprint, now=now)


def expires_nothing(record: KeyRecord, fingerprint: str, now: float) -> str:
    return enter(record, fingerprint, now=min(now, 59.0))


def compares_final_records_only(record: KeyRecord, fingerprint: str, now: float) -> str:
    running = record and record.state == "pending"
    return enter(record, record.fingerprint if running else fingerprint, now=now)


def reuses_a_failure(record: KeyRecord, fingerprint: str, now: float) -> str:
    answer = enter(record, fingerprint, now=now)
    return "reuse" if record and record.state == "failed" and answer == "execute" else answer


def asks_about_what_is_handed_over(record: KeyRecord, fingerprint: str, now: float) -> str:
    answer = enter(record, fingerprint, now=now)
    return "reconcile" if answer == "ask_person" else answer


def asks_always(definite: bool, known: str, atomic: bool) -> str:
    return careful(False, known, atomic)


def trusts_a_key_before_it_asks(definite: bool, known: str, atomic: bool) -> str:
    return "try again" if atomic and known != "done" else careful(definite, known, atomic)


def gives_up_at_once(definite: bool, known: str, atomic: bool) -> str:
    return "stop for a person" if known == "unsure" else careful(definite, known, atomic)


def hopes_for_the_best(definite: bool, known: str, atomic: bool) -> str:
    return "try again" if known == "unsure" else careful(definite, known, atomic)


def careful(definite: bool, known: str, atomic: bool) -> str:
    if definite:
        return "try again"
    again = known == "not done" or (known == "unsure" and atomic)
    told = {"": "ask", "done": "done"}
    return told.get(known, "try again" if again else "stop for a person")


RUNNING, KNOWN = "'state': 'pending'", "'definite': False, 'known': "


@pytest.mark.parametrize(
    ("name", "wrong", "case", "words"),
    [
        (
            "07.limit",
            lambda limit, deadline, hand_back, now: min(limit, deadline - now),
            "'hand_back': 1.0, 'now': 55.0",
            "It gives 5.0; 4.0 is expected",
        ),
        (
            "07.limit",
            lambda limit, deadline, hand_back, now: min(limit, deadline - hand_back - now),
            "'now': 59.5",
            "It gives -0.5; 0.0 is expected",
        ),
        (
            "07.limit",
            lambda limit, deadline, hand_back, now: max(0, min(limit, deadline - now) - hand_back),
            "'hand_back': 1.0, 'now': 0.0",
            "It gives 9.0; 10.0 is expected",
        ),
        ("07.may_retry", counts_after_the_wait, "[1.0, 1.0, 1.0]", "'True at 1 s']; ['True at 1"),
        (
            "07.may_retry",
            looks_again_after_the_wait,
            "[1.0, 1.0, 1.0]",
            "gives ['True at 1 s', 'True at 1 s', 'False at 1 s']; "
            "['True at 1 s', 'True at 1 s', 'False at 0 s'] is expected",
        ),
        ("07.may_retry", sleeps_past_the_deadline, "[8.0, 1.0]", "gives ['True at 8 s',"),
        ("07.may_retry", cuts_the_wait, "[8.0, 1.0]", "gives ['True at 5 s',"),
        (
            "07.may_retry",
            pays_what_it_refuses,
            "[8.0, 1.0, 1.0]",
            "It gives ['False at 0 s', 'False at 0 s', 'False at 0 s']; ['False at 0 s', 'True at",
        ),
        ("07.may_retry", counts_requests_too, "'requests': 1, ", "'False at 0 s']; ['True at 1 s'"),
        ("07.may_retry", never, "[1.0]", "It gives ['False at 0 s']; ['True at 1 s'] is expected"),
        ("07.may_retry", a_limit_of_its_own, "[1.0, 1.0, 1.0]", "'True at 1 s', 'True at 1 s']; ["),
        ("07.may_retry", raises_it, "'retries': 0", "It raised BudgetExhausted"),
        ("07.may_retry", lambda left, seconds, wait: True, "[1.0]", "It raised TypeError"),
        (
            "07.backoff",
            lambda attempt, random: 30.0 * random.random(),
            "'attempts': [1, 2",
            "Attempt 1: it waits 25.3",
        ),
        (
            "07.backoff",
            lambda attempt, random: longest(attempt) * random.uniform(0.9, 1.1),
            "'attempts': [1, 2",
            "s; 0 to 1 is expected.",
        ),
        (
            "07.backoff",
            lambda attempt, random: longest(attempt) * (1 - random.random() / 10),
            "'down': 5.0",
            "200 of 200 clients ask within one second when it is back; with labkit's own",
        ),
        (
            "07.backoff",
            lambda attempt, random: longest(attempt) * Random(attempt).random(),
            "'down': 5.0",
            "200 of 200 clients",
        ),
        ("07.backoff", lambda attempt, random: 0.0, "'down': 5.0", "200 of 200 clients ask"),
        (
            "08.key",
            lambda tenant, operation, resource, payload, **_: f"{tenant}{resource}{payload}",
            "'payload': {'amount': 6}",
            "they must be equal",
        ),
        ("08.key", lambda resource, **_: resource, "'operation': 'refund'", "they must differ"),
        ("08.key", lambda operation, resource, **_: operation + resource, "'bell'", "must differ"),
        ("08.key", lambda tenant, operation, **_: tenant + operation, "'order-8'", "must differ"),
        ("08.key", joined("/"), "'charge/order'", "and 'acme/charge/order/7'; they must differ."),
        ("08.key", joined(":"), "'charge:order'", "they must differ"),
        ("08.key", joined("|"), "'charge|'", "they must differ"),
        ("08.key", joined("-"), "'acme-charge'", "they must differ"),
        ("08.key", joined("_"), "'acme_x'", "they must differ"),
        ("08.key", lambda **call: own_key(call).lower(), "'Order-7'", "they must differ"),
        ("08.key", trims_the_resource, "'order-7 '", "they must differ"),
        ("08.key", lambda **call: f"{hash(own_key(call))}", "order-7", "in another process, as"),
        ("08.key", lambda **call: (call["tenant"], call["resource"]), "order-7", "are expected"),
        (
            "08.fingerprint",
            lambda payload: json.dumps(payload, sort_keys=True),
            "{'amount': 5.0}",
            "they must be equal",
        ),
        (
            "08.fingerprint",
            lambda payload: str(hash(checked(Operation(**CHARGE, payload=payload)))),
            "order-7",
            "in another process, as hash() does.",
        ),
        ("08.fingerprint", takes_true_for_one, "{'express': 1}", "they must differ"),
        ("08.fingerprint", at_the_top_only, "{'to': {'name': 'Ann',", "they must be equal"),
        ("08.fingerprint", sorts_lists_too, "[2, 1]", "they must differ"),
        ("08.fingerprint", with_floats, "9007199254740993", "they must differ"),
        ("08.fingerprint", lambda payload: "one", "{'order': 'order-7', 'amount': 6}", "differ"),
        (
            "08.fingerprint",
            lambda payload: ",".join(sorted(f"{n}{v}" for n, v in payload.items())).replace(
                ".0", ""
            ),
            "{'amount': '5'}",
            "It gives 'amount5' and 'amount5'; they must differ.",
        ),
        ("08.fingerprint", lambda payload: payload, "'amount': 5}", "texts are expected"),
        (
            "08.door",
            takes_a_dead_executor_for_nothing,
            "'until': 10.0, 'expires': 0.0, 'handed_over': False}, "
            "'fingerprint': 'f5', 'now': 10.0",
            "It gives 'execute'; 'reconcile' is expected",
        ),
        ("08.door", compares_before_it_expires, "'failed'", "'conflict'; 'execute' is expected"),
        ("08.door", expires_everything, "'now': 90.0", "'execute'; 'reconcile' is expected"),
        ("08.door", expires_nothing, "'now': 60.0", "'conflict'; 'execute' is expected"),
        ("08.door", compares_final_records_only, RUNNING, "'join'; 'conflict' is expected"),
        ("08.door", reuses_a_failure, "'failed'", "'reuse'; 'execute' is expected"),
        ("08.door", asks_about_what_is_handed_over, "handed_over", "'reconcile'; 'ask_person'"),
        ("08.after_error", asks_always, "'definite': True", "gives 'ask'; 'try again'"),
        (
            "08.after_error",
            trusts_a_key_before_it_asks,
            f"{KNOWN}'', 'atomic': True",
            "'try again'; 'ask'",
        ),
        (
            "08.after_error",
            gives_up_at_once,
            f"{KNOWN}'unsure', 'atomic': True",
            "It gives 'stop for a person'; 'try again' is expected",
        ),
        (
            "08.after_error",
            hopes_for_the_best,
            f"{KNOWN}'unsure', 'atomic': False",
            "It gives 'try again'; 'stop for a person' is expected",
        ),
    ],
)
def test_a_typical_wrong_answer_is_told_its_case(
    name: str, wrong: Any, case: str, words: str
) -> None:
    is_told_its_case(name, wrong, case, words)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("07.backoff", labkits_own),
        ("07.backoff", lambda attempt, random: longest(attempt) * random.uniform(0.5, 1.0)),
        ("07.backoff", lambda attempt, random: random.uniform(0, min(30, 2.0 ** (attempt - 1)))),
        (
            "08.key",
            lambda tenant, operation, resource, **_: json.dumps([tenant, operation, resource]),
        ),
        ("08.door", lambda record, fingerprint, now: enter(record, fingerprint, now=now)),
        ("08.after_error", careful),
    ],
)
def test_another_right_answer_is_as_good_as_the_solution(name: str, right: Any) -> None:
    assert labkit.check(name, right).text().startswith(f"{name}: solved, in all ")


@pytest.mark.parametrize("case", exercises()["08.door"]["cases"], ids=str)
def test_a_case_of_the_door_shows_every_field_that_decides(case: Case) -> None:
    shown = {"state", "fingerprint", "until", "expires", "handed_over"}
    assert set(case.get("record", shown)) == shown


def test_the_run_of_a_shared_budget_can_be_stepped_through_in_the_learners_own_function() -> None:
    run = labkit.check("07.may_retry", counts_after_the_wait).run
    assert run is not None
    assert {place.function for place in run.recorded} == {"counts_after_the_wait"}


def test_where_a_service_cannot_say_labkits_own_run_shows_that_it_could_not() -> None:
    run = labkit.check("08.after_error", gives_up_at_once).run
    assert run is not None
    assert {event["answer"] for event in run.trace if event.kind == "look_up"} == {"error"}


def test_after_an_error_labkits_own_run_shows_what_it_did_in_that_case() -> None:
    run = labkit.check("08.after_error", hopes_for_the_best).run
    assert run is not None
    assert run.result == {"c1": "manual intervention"}
    assert sum(event.kind == "request" for event in run.trace) == 1
