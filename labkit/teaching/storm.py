"""Requests a second: how many a service gets while everybody tries again.

    labkit.storm("budgets.storm", beside="budgets.storm_jitter")      # both on the same axes

A bar is one second of the virtual clock: at its foot first tries, above them those that come after
a failure. The peak that is quoted is of the latter, within any one second. What counts is what
reaches a service or a provider, not what a client says of itself.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from matplotlib.figure import Figure

from labkit.scenarios.budgets import peak
from labkit.simulation import Run, Scenario, SimulationError

from .chart import Chart
from .said import as_run, texts
from .timeline import WIDTH

ASKED: Final = ("service", "provider")
LOOKS: Final = {"first tries": ("grey", "//"), "after a failure": ("sky", "")}  # colour, pattern
Rates = dict[str, list[int]]


def storm(
    run: Run | Scenario | str,
    beside: Run | Scenario | str | None = None,
    *,
    marks: Sequence[str] = ("", ""),
) -> Chart:
    """The chart of a run, of a scenario's or of a token's; `beside` below it.

    `marks` go before the two headings. Raises `SimulationError` for a run without requests.
    """
    runs = [as_run(each) for each in ([run] if beside is None else [run, beside])]
    found = [rates(each) for each in runs]
    names = [
        f"{mark}{each.scenario.name}: {sum(map(sum, own.values()))} requests;"
        f" after a failure at most {peak(each.trace)} within any one second"
        for mark, each, own in zip(marks, runs, found, strict=False)
    ]
    text = "\n\n".join(map(_text, names, found))
    return Chart(lambda: _figure(names, found), text, f"storm of {' and '.join(names)}")


def rates(run: Run) -> Rates:
    """The requests in each second from 0 on, by the words of `LOOKS`; raises `SimulationError`."""
    asked = [e for e in run.trace if e.kind == "request" and e.actor in ASKED]
    if not asked:
        raise SimulationError(f"this run of {run.scenario.name} sends no request")
    again = Counter((int(event.time), event.get("attempt", 1) > 1) for event in asked)
    every = range(int(asked[-1].time) + 1)
    return {name: [again[at, bool(n)] for at in every] for n, name in enumerate(LOOKS)}


def _text(name: str, found: Rates) -> str:
    lines = [name, "  bars: whole seconds"]
    for at, both in enumerate(zip(*found.values(), strict=True)):
        told = ", ".join(f"{n} {what}" for n, what in zip(both, found, strict=True) if n)
        lines += [f"  from {at} s: {told}"] if told else []
    return "\n".join(lines)


def _figure(names: Sequence[str], every: Sequence[Rates]) -> Figure:
    colours = texts("timeline")["colours"]
    made = Figure(figsize=(WIDTH, 2.5 * len(names)), layout="constrained")
    axes = made.subplots(len(names), squeeze=False, sharex=True).flat
    most = max(sum(both) for found in every for both in zip(*found.values(), strict=True))
    for each, name, found in zip(axes, names, every, strict=True):
        foot = [0] * len(found["first tries"])
        for what, numbers in found.items():
            colour, pattern = LOOKS[what]
            bars = each.bar(range(len(numbers)), numbers, 1, foot, align="edge", label=what)
            for bar in bars:
                bar.set(facecolor=colours[colour], hatch=pattern, edgecolor=colours["ink"])
            foot = numbers
        each.set_title(name, loc="left", fontsize=11, fontweight="bold")
        each.set_xlabel("virtual time (seconds)", fontsize=9)
        each.set_ylabel("requests a second", fontsize=9)
        each.tick_params(labelbottom=True)
        each.spines[["top", "right"]].set_visible(False)
        each.legend(loc="upper center", ncols=2, frameon=False, fontsize=9)
        each.set_ylim(top=1.3 * most)  # room for the legend
    return made
