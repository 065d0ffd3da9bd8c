"""What a run with leases tells: who held which run, what each worker wrote, when it was away.

    told = story(simulate("leases.frozen"))
    told.leases[0].words      # 'holds run-1 with fence 1, renewed 1 time; over at 13.38 s'

Claims, renewals and writes are the store's word, since a worker may not know better. Picture and
text form of `labkit.leases` are made from this.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Final

from labkit.recovery.run_states import CANCELLED, QUEUED, RUNNING
from labkit.scenarios.lease_judges import zombie_write
from labkit.simulation import Event, Run, SimulationError

from .phrases import printable, seconds, span
from .timeline import Item

MOST: Final = 30  # lines of words about a lane
BELOW: Final = ("effects", "findings")
AWAY: Final = {  # what happens to a worker -> words, pattern of its lane
    "killed": ("killed", "xx"),
    "frozen": ("frozen", "\\\\"),
    "cut": ("cut off from the store", ".."),
}
MARKS: Final = {  # what a worker did, or what came of it
    "kept": "write kept",
    "refused": "write refused",
    "zombie": "write into another's run",
    "not_renewed": "no answer to a renewal",
    "not_written": "no answer to a write",
    "claim_lost": "stops: its lease is lost",
    "handed_back": "run handed back",
    "cancelled": "run cancelled by its owner",
}
SAID_TWICE: Final = ("kept", "handed_back")  # by the store, and by its worker
WRITES: Final = ("kept", "refused", "zombie")  # of which is said what was written


@dataclass(slots=True)
class Lease:
    """One claim; it ends when the last renewal does, or with the move to the state `how`."""

    lane: str
    worker: str
    run: str
    fence: int
    start: float
    end: float
    renewals: tuple[float, ...] = ()
    how: str = ""

    @property
    def words(self) -> str:
        """How it went, after its times."""
        times = len(self.renewals)
        renewed = f", renewed {times} {'time' if times == 1 else 'times'}" if times else ""
        how = f"the run is {self.how}" if self.how else f"over at {seconds(self.end)}"
        return f"holds {self.run} with fence {self.fence}{renewed}; {how}"


@dataclass(frozen=True, slots=True)
class Told:
    """What the picture and the text form of one run are made from."""

    name: str
    leases: Sequence[Lease]
    away: Sequence[Item]
    marks: Sequence[Item]
    below: Sequence[Item]
    end: float

    @property
    def lanes(self) -> list[str]:
        """Every worker, or worker and run, by number."""
        there = {one.lane for one in self.leases}
        there |= {item.lane for item in (*self.away, *self.marks)}
        return sorted(there, key=lambda lane: (len(lane), lane))

    @property
    def twice(self) -> list[tuple[str, float, float]]:
        """When two leases on one run lasted at once: run, from, to; each moment once."""
        pairs = [(a, b) for a, b in combinations(self.leases, 2) if a.run == b.run]
        both = [(a.run, max(a.start, b.start), min(a.end, b.end, self.end)) for a, b in pairs]
        found: list[tuple[str, float, float]] = []
        for run, start, end in sorted(each for each in both if each[1] < each[2]):
            if found and found[-1][0] == run and start <= found[-1][2]:
                _, start, before = found.pop()
                end = max(before, end)
            found.append((run, start, end))
        return found


def has_leases(run: Run) -> bool:
    """Whether a worker claimed something in `run`."""
    return any((event.actor, event.kind) == ("store", "claimed") for event in run.trace)


def story(run: Run, mark: str = "") -> Told:
    """All that is shown of a run, with `mark` before its name; raises `SimulationError`."""
    store = [event for event in run.trace if event.actor == "store"]
    states = {event["run"]: event["status"] for event in store if event.get("status")}
    several = len(states) > 1
    found = list(_leases(store, several))
    if not has_leases(run):
        raise SimulationError(f"this run of {run.scenario.name} has no leases: try 'leases.killed'")
    kept = [f"{one} is {state}" for one, state in states.items()]
    told = f"{len(kept)} runs" if several else kept[0]
    claims = f"{len(found)} claim{'s' if len(found) > 1 else ''}"
    name = f"{mark}{run.scenario.name}: {told} after {claims}; ends at {seconds(run.time)}"
    below = []
    for event in (event for event in run.trace if event.actor == "ledger"):
        words = f"{event['name']}, order {event['order']}" if several else event["name"]
        below.append(Item("effects", event.time, event.time, printable(words), "blue", sign="*"))
    for each in run.findings:
        at = run.trace[each.event].time
        below.append(Item("findings", at, at, each.name, "red", f": {each.cure}", sign="v"))
    workers = {one.lane: one.worker for one in found}
    away = [item for lane, worker in workers.items() for item in _away(run, lane, worker)]
    return Told(name, found, away, list(_marks(run.trace, several)), below, run.time)


def _lane(worker: str, run: str, several: bool) -> str:
    return printable(f"{worker}, {run}" if several else worker)


def _leases(store: Sequence[Event], several: bool) -> Iterator[Lease]:
    """Every claim, in the order of time; it is complete when the next one is asked for."""
    newest: dict[str, Lease] = {}
    latest: dict[str, Lease] = {}
    for event in store:
        run, now, until = event["run"], event.time, event.get("until")
        lease = newest.get(run)
        if event.kind == "claimed":
            lane = _lane(event["by"], run, several)
            if lane in latest:  # whoever claims it once more has no two leases
                latest[lane].end = min(latest[lane].end, now)
            newest[run] = Lease(lane, event["by"], run, event["fence"], now, until)
            latest[lane] = newest[run]
            yield newest[run]
        elif lease and event.kind == "renewed" and until:
            lease.end, lease.renewals = until, (*lease.renewals, now)
        elif lease and event.kind == "wrote" and event["status"] != RUNNING:
            lease.end, lease.how = min(lease.end, now), event["status"]
            del newest[run]


def _away(run: Run, lane: str, worker: str) -> Iterator[Item]:
    """When the worker of a lane was dead, frozen or cut off."""
    own = [event for event in run.trace if event.actor == worker]
    for event in own:
        if event.kind in AWAY:
            words, pattern = AWAY[event.kind]
            later = (e.time for e in own if e.kind == "thawed" and e.index > event.index)
            over = event.time + event.get("seconds", run.time)
            over = next(later, run.time) if event.kind == "frozen" else over
            yield Item(lane, event.time, min(over, run.time), words, "ink", pattern=pattern)


def _marks(events: Sequence[Event], several: bool) -> Iterator[Item]:
    """What each worker wrote, what was refused, and where it could not or would not go on."""
    zombies = {found.event for found in zombie_write(events)}
    holder: dict[str, str] = {}
    workers = {event["by"] for event in events if event.kind == "claimed" and event.get("by")}
    for event in events:
        kind, worker = event.kind, event.get("by", event.actor)
        if kind == "claimed":
            holder[event["run"]] = worker
        elif kind == "wrote" and event["status"] == CANCELLED:
            kind, worker = "cancelled", holder.get(event["run"], "")
        elif kind == "wrote" and worker in workers:
            own = "handed_back" if event["status"] == QUEUED else "kept"
            kind = "zombie" if event.index in zombies else own
        if kind in MARKS and worker and (event.actor == "store" or kind not in SAID_TWICE):
            told = event.get("event") or event.get("move")
            more = f" ({told})" if told and kind in WRITES else ""
            lane = _lane(worker, event["run"], several)
            yield Item(lane, event.time, event.time, MARKS[kind], "", more, kind)


def in_words(told: Told) -> str:
    """The lanes as lines under the name; what is alike and follows one another is one line."""
    held = [Item(one.lane, one.start, min(one.end, told.end), one.words, "") for one in told.leases]
    every = sorted([*held, *told.away, *told.marks, *told.below], key=lambda item: item.start)
    lanes, lines = [*told.lanes, *BELOW], [told.name]
    wide = max(map(len, lanes)) + 2
    for lane in lanes:
        own = [item for item in every if item.lane == lane]
        lines_of = [_line(*alike) for _, alike in groupby(own, lambda item: item.label + item.more)]
        if len(lines_of) > MOST:
            lines_of[MOST:] = [f"and {len(lines_of) - MOST} more of such lines"]
        lines += [f"  {'' if n else lane:<{wide}}{line}" for n, line in enumerate(lines_of)]
    if not any(item.lane == "findings" for item in told.below):
        lines.append(f"  {'findings':<{wide}}none")
    lines += [f"  two leases on {run} at once: {span(*when)}" for run, *when in told.twice]
    return "\n".join(lines)


def _line(first: Item, *more: Item) -> str:
    """One line for items that are alike and follow one another."""
    when = span(first.start, more[-1].end if more else first.end)
    return f"{when}: {f'{len(more) + 1} × ' if more else ''}{first.label}{first.more}"
