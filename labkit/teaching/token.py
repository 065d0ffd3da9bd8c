"""A short token that brings anybody else to the same run.

    retry.stall~cancel@5w~attempts=2~seed=7

First the scenario's name, then in any order: faults, the numbers of the policy that differ from the
scenario's own, and the seed. A fault is `kind@point`; one that strikes a task says `w` (while it
waits) or `wake` (as it wakes) after the point, and `task.` before it where it is not the client.
Nothing in a token needs escaping in an address.

    labkit.from_token("retry.stall~stall@9").findings
"""

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final
from urllib.parse import quote, unquote

from labkit.scenarios import catalogue
from labkit.simulation import Fault, Run, SimulationError, Unknown
from labkit.simulation.faults import TASK_FAULTS

CLIENT: Final = Fault("cancel", 0).task
_PHASES: Final = {"w": "waiting", "wake": "waking", "": "waiting"}
_FAULT: Final = re.compile(
    r"(?P<kind>[a-z]+)@(?:(?P<task>[\w%.-]+)\.)?(?P<point>[0-9]{1,9})(?P<phase>w|wake|)", re.ASCII
)
_SHAPE: Final = (
    "a fault is like cancel@5w, cancel@5wake, timeout@task.5w, kill@task.5w, crash@5, stall@5, "
    "disconnect@5, cut@3"
)


class TokenError(SimulationError, ValueError):
    """The token is not one: its message names the part that is wrong and what there is."""


def from_token(token: str) -> Run:
    """The run that `token` stands for; raises `TokenError`."""
    return catalogue.simulate(**read(token))


def read(token: str) -> dict[str, Any]:
    """What `token` asks to simulate: scenario, policy, faults and seed; raises `TokenError`."""
    if not isinstance(token, str):
        raise TokenError(f"a token is a text, not {token!r}")
    faults: list[Fault] = []
    given: dict[str, Any] = {}
    for number, part in enumerate(token.strip().split("~"), start=1):
        try:
            if number == 1:
                scenario = catalogue.find(part)
            elif "=" in part:
                _read_number(part, {**numbers(scenario.policy), "seed": 0}, given)
            else:
                faults.append(_read_fault(part))
        except (ValueError, LookupError) as error:
            raise TokenError(f"part {number}, {part[:60]!r}: {error}") from None
    seed = given.pop("seed", 0)
    try:
        policy = replace(scenario.policy, **given) if given else scenario.policy
    except ValueError as error:
        raise TokenError(f"the policy contradicts itself: {error}") from None
    return {"scenario": scenario, "policy": policy, "faults": faults, "seed": seed}


def token_of(run: Run) -> str:
    """The token of `run`; empty where nobody else has its scenario, or more than numbers differ."""
    name, default = run.scenario.name, run.scenario.policy
    own = numbers(default)
    told = {name: v for name, v in numbers(run.policy).items() if v != own.get(name)}
    same = run.policy == (replace(default, **told) if told else default)
    if not same or catalogue.catalogue().get(name) is not run.scenario:
        return ""
    if run.seed:
        told["seed"] = run.seed
    parts = [f"{name}={repr(v).removesuffix('.0').replace('e+', 'e')}" for name, v in told.items()]
    return "~".join([name, *map(_fault, run.faults), *parts])


def numbers(policy: Any) -> dict[str, Any]:
    """The policy's numbers by name, whole ones as `int`; none where it is no record."""
    kinds = {f.name: f.type for f in fields(policy)} if is_dataclass(policy) else {}
    return {
        name: kind(getattr(policy, name)) for name, kind in kinds.items() if kind in (int, float)
    }


def _read_number(part: str, own: dict[str, Any], given: dict[str, Any]) -> None:
    name, _, value = part.partition("=")
    if name not in own:
        raise Unknown("number", name, own)
    if name in given:
        raise ValueError("given twice")
    whole = isinstance(own[name], int)
    try:
        given[name] = int(value) if whole else float(value)
    except ValueError:
        raise ValueError(f"a{' whole' if whole else ''} number is needed") from None


def _read_fault(part: str) -> Fault:
    found = _FAULT.fullmatch(part)
    if found is None or (found["kind"] in TASK_FAULTS) != bool(found["phase"]):
        raise ValueError(_SHAPE)
    task = unquote(found["task"] or CLIENT)
    return Fault(found["kind"], int(found["point"]), task, _PHASES[found["phase"]])


def _fault(fault: Fault) -> str:
    if fault.kind not in TASK_FAULTS:
        return f"{fault.kind}@{fault.point}"
    task = "" if fault.task == CLIENT else quote(fault.task, safe="").replace("~", "%7E") + "."
    phase = next(short for short, name in _PHASES.items() if name == fault.phase)
    return f"{fault.kind}@{task}{fault.point}{phase}"
