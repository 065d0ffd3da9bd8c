"""A short token that brings anybody else to the same run.

    retry.stall~cancel@5w~attempts=2~seed=7

First the scenario's name, then in any order: faults, the numbers of the policy that differ from the
scenario's own, and the seed. A fault is `kind@point`; a cancel says `w` (while it waits) or `wake`
(as it wakes) after the point, and `task.` before it where it is not the client. Nothing in a
token needs escaping in an address.

    labkit.from_token("retry.stall~stall@9").findings
"""

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final
from urllib.parse import quote, unquote

from labkit.scenarios import catalogue
from labkit.simulation import Fault, Run, Scenario, Unknown
from labkit.simulation.faults import STEP_FAULTS, TASK_FAULTS

_CLIENT: Final = Fault("cancel", 0).task
_PHASES: Final = {"w": "waiting", "wake": "waking"}
_FAULT: Final = re.compile(
    r"(?P<kind>[a-z]+)@(?:(?P<task>[\w%.-]+)\.)?(?P<point>[0-9]{1,9})(?P<phase>[a-z]*)", re.ASCII
)
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?(e-?[0-9]{1,3})?")
_SHAPE: Final = "kind@point, name=number or seed=number"


class TokenError(ValueError):
    """The token is not one: its message names the part that is wrong and what there is."""


def from_token(token: str) -> Run:
    """The run that `token` stands for; raises `TokenError`."""
    scenario, policy, faults, seed = inputs(token)
    return catalogue.simulate(scenario, policy=policy, faults=faults, seed=seed)


def inputs(token: str) -> tuple[Scenario, Any, tuple[Fault, ...], int]:
    """Scenario, policy, faults and seed of `token`; raises `TokenError`."""
    name, *parts = token.strip().split("~")
    try:
        scenario = catalogue.find(name)
    except Unknown as error:
        raise TokenError(_wrong(1, name, error)) from None
    faults: list[Fault] = []
    given: dict[str, Any] = {}
    for number, part in enumerate(parts, start=2):
        try:
            _read(part, scenario, faults, given)
        except (ValueError, LookupError) as error:
            raise TokenError(_wrong(number, part, error)) from None
    seed = given.pop("seed", 0)
    try:
        policy = replace(scenario.policy, **given) if given else scenario.policy
    except (ValueError, TypeError) as error:
        raise TokenError(f"the policy contradicts itself: {error}") from None
    return scenario, policy, tuple(faults), seed


def token_of(run: Run) -> str:
    """The token of `run`; raises `TokenError` where the scenario or policy is nobody else's."""
    scenario = run.scenario
    if catalogue.catalogue().get(scenario.name) is not scenario:
        raise TokenError(f"{scenario.name} is your own scenario: nobody else has it")
    parts = [scenario.name, *map(_fault, run.faults), *_numbers(scenario.policy, run.policy)]
    return "~".join(parts + ([f"seed={run.seed}"] if run.seed else []))


def numbers(policy: Any) -> dict[str, float]:
    """The policy's numbers by name; none where it is no record of such."""
    if not is_dataclass(policy):
        return {}
    values = {field.name: getattr(policy, field.name) for field in fields(policy)}
    return {name: v for name, v in values.items() if type(v) in (int, float)}


def _read(part: str, scenario: Scenario, faults: list[Fault], given: dict[str, Any]) -> None:
    name, equals, value = part.partition("=")
    if not equals:
        faults.append(_read_fault(part))
        return
    if name in given:
        raise ValueError("given twice")
    own = numbers(scenario.policy)
    if name == "seed":
        given[name] = _read_whole(value)
    elif name in own:
        whole = name in _wholes(scenario.policy)
        given[name] = _read_whole(value) if whole else _read_number(value)
    else:
        raise Unknown("number", name, ("seed", *own))


def _read_fault(part: str) -> Fault:
    found = _FAULT.fullmatch(part)
    if found is None:
        raise ValueError(f"a part is {_SHAPE}")
    kind, task, point, phase = found.group("kind", "task", "point", "phase")
    if kind not in TASK_FAULTS + STEP_FAULTS:
        raise Unknown("fault", kind, TASK_FAULTS + STEP_FAULTS)
    if kind in STEP_FAULTS:
        if phase or task:
            raise ValueError(f"a {kind} has neither phase nor task: {kind}@{point}")
        return Fault(kind, int(point))
    if phase not in _PHASES:
        raise Unknown("phase", phase, _PHASES)
    return Fault(kind, int(point), unquote(task) if task else _CLIENT, _PHASES[phase])


def _read_whole(value: str) -> int:
    if not _WHOLE.fullmatch(value):
        raise ValueError("a whole number is needed")
    return int(value)


def _read_number(value: str) -> float:
    if not _NUMBER.fullmatch(value):
        raise ValueError("a number is needed")
    return float(value)


def _wholes(policy: Any) -> set[str]:
    return {field.name for field in fields(policy) if field.type in (int, "int")}


def _fault(fault: Fault) -> str:
    if fault.kind in STEP_FAULTS:
        return f"{fault.kind}@{fault.point}"
    task = "" if fault.task == _CLIENT else quote(fault.task, safe="").replace("~", "%7E") + "."
    phase = next(letter for letter, name in _PHASES.items() if name == fault.phase)
    return f"{fault.kind}@{task}{fault.point}{phase}"


def _numbers(default: Any, policy: Any) -> list[str]:
    own, changed = numbers(default), numbers(policy)
    told = {name: v for name, v in changed.items() if name in own and v != own[name]}
    if policy != (replace(default, **told) if told else default):
        raise TokenError("the policy differs in more than its numbers: a token cannot say that")
    return [f"{name}={_short(value)}" for name, value in told.items()]


def _short(value: float) -> str:
    return repr(value).removesuffix(".0").replace("e+", "e")


def _wrong(number: int, part: str, error: Exception) -> str:
    return f"part {number}, {part[:60]!r}: {error}"
