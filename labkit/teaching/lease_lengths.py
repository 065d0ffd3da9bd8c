"""How long should a lease be? What a dead worker costs, against what a slow one does.

    labkit.lease_lengths()
    labkit.lease_lengths([5, 30])

A longer lease makes whoever waits for a dead worker wait longer; a shorter one is taken from
workers that only stood still for a while. Each point is read from runs of `leases.kills` and
`leases.pauses`, so it takes its time, and says how far it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from matplotlib.figure import Figure

from labkit.scenarios.leases import POLICY, sweep
from labkit.simulation import SimulationError

from .chart import Chart
from .said import texts
from .timeline import WIDTH

LENGTHS: Final = (3, 5, 10, 15, 20, 30, 60)
DEFAULT: Final = type(POLICY)().lease  # of a manager that is told nothing else
BOUNDS: Final = 1.0, 240.0  # seconds: what is shorter drowns in the line to the store and in the
# looks of the workers; what is longer ends after the time for which anybody waits
PANELS: Final = {  # what `sweep` finds -> words, sign, colour
    "recovery": ("seconds from a kill\nuntil another goes on", "o", "blue"),
    "false": ("runs taken from a worker\nthat only stood still", "s", "red"),
}
Rows = Sequence[dict[str, float]]


def lease_lengths(lengths: Iterable[float] = LENGTHS) -> Chart:
    """The chart of both costs over these lengths of a lease, in seconds; says how far it is.

    Raises `SimulationError` for no length, and for one that cannot be measured here; `PolicyError`
    for one that no lease can have.
    """
    given: object = lengths
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SimulationError(f"give it a list of lengths in seconds, not {lengths!r:.40}")
    wanted, found = sorted({*lengths}), list[dict[str, float]]()
    if not wanted:
        raise SimulationError("give it at least one length, in seconds")
    for length in wanted:
        replace(POLICY, lease=length)  # refuses what no lease can have, before anything is told
        if not BOUNDS[0] <= length <= BOUNDS[1]:
            least, most = BOUNDS
            told = f"a lease from {least:g} to {most:g} s can be measured here"
            raise SimulationError(f"{told}, not one of {length:g} s")
    print("a second or two for each lease, in seconds:", end="", flush=True)
    for length in wanted:
        found += sweep([length])
        print(f" {length:g}", end="", flush=True)
    print()
    return Chart(lambda: _figure(found), _text(found), "lengths of a lease")


def _text(found: Rows) -> str:
    lines = [f"lengths of a lease; the default is {DEFAULT:g} s"]
    for row in found:
        false = f"{row['false']:g} runs are taken from a worker that only stood still"
        lines.append(f"  {row['lease']:>3g} s: recovery after {row['recovery']:>4.1f} s, {false}")
    return "\n".join(lines)


def _figure(found: Rows) -> Figure:
    colours, across = texts("timeline")["colours"], [row["lease"] for row in found]
    made = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    every = made.subplots(len(PANELS), sharex=True)
    for axes, (name, (words, sign, colour)) in zip(every, PANELS.items(), strict=True):
        up = [row[name] for row in found]
        axes.plot(across, up, f"{sign}-", color=colours[colour], markersize=8, clip_on=False)
        side, beside = ("left", 4) if up[-1] < up[0] else ("right", -4)  # off the line
        how: Any = {"ha": side, "fontsize": 9, "textcoords": "offset points"}
        for at in zip(across, up, strict=True):
            axes.annotate(f"{at[1]:g}", at, (beside, 6), **how)
        axes.axvline(DEFAULT, color=colours["ink"], linestyle=":", linewidth=1, zorder=1)
        axes.set_ylim(0, 1.25 * max(1, *up))
        axes.set_ylabel(words, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    every[0].annotate(f"default: {DEFAULT:g} s", (DEFAULT, 0.97), (4, 0), va="top", fontsize=9,
                      xycoords=("data", "axes fraction"), textcoords="offset points")  # fmt: skip
    every[0].set_title("how long a lease is, and what it costs", loc="left", fontweight="bold")
    every[-1].set_xlabel("length of the lease (seconds)", fontsize=9)
    every[-1].set_xlim(0, 1.05 * max(*across, DEFAULT))
    return made
