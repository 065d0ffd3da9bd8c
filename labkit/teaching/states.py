"""The states of an agent run as a picture, drawn from the table of its moves.

    labkit.states()

A box is a state and an arrow a move, named with who makes it, which the line's style says too. A
state that no move leaves is final, and has two borders. Nothing is drawn that the table does not
hold; only the place of a box is chosen here, so that no two arrows cross.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from labkit.recovery.run_states import MOVES, OWNER, TIME, WORKER, Move
from labkit.simulation import SimulationError

from .chart import Chart
from .said import texts
from .timeline import WIDTH

Place = tuple[float, float]
BEGIN: Final = ""  # where a run comes from
PLACES: Final[Mapping[str, Place]] = {
    BEGIN: (-0.4, 2.0),
    "queued": (3.0, 2.0),
    "running": (9.0, 2.0),
    "awaiting_input": (6.0, -0.3),
    "failed": (6.0, 4.3),
    "completed": (13.1, 2.0),
    "cancelled": (6.0, -2.5),
}
LOOKS: Final[Mapping[str, tuple[str, Any, str]]] = {  # who moves it -> words, line, colour
    WORKER: ("a worker", "-", "blue"),
    OWNER: ("its owner", "--", "ink"),
    TIME: ("time alone", ":", "red"),
}
HALF: Final = (1.0, 0.34)  # of a box: its width, its height
LOOP: Final = -2.6  # how much an arrow to its own box is bent
APART: Final = 0.24  # by how much arrows between the same two boxes are bent apart
Arrow = tuple[str, str, str, Move]  # from, to, name


def states(moves: Mapping[str, Move] = MOVES) -> Chart:
    """The state machine of a run, from the table `moves`. Raises `SimulationError`."""
    if not isinstance(moves, Mapping) or not all(isinstance(m, Move) for m in moves.values()):
        raise SimulationError(f"give it a table of moves, as MOVES is one, not {moves!r:.40}")
    return Chart(lambda: _figure(moves), _text(moves), "states of a run")


def finals(moves: Mapping[str, Move]) -> list[str]:
    """The states that no move leaves, in the order of the table."""
    left = {source for move in moves.values() for source in move.sources}
    return [state for state in _states(moves) if state not in left]


def _states(moves: Mapping[str, Move]) -> list[str]:
    named = (state for move in moves.values() for state in (*move.sources, move.target))
    return list(dict.fromkeys(named))


def _arrows(moves: Mapping[str, Move]) -> list[Arrow]:
    return [
        (source, move.target, name, move)
        for name, move in moves.items()
        for source in move.sources or (BEGIN,)
    ]


def _look(move: Move) -> tuple[str, Any, str]:
    return LOOKS.get(move.by, (move.by, "-.", "ink"))


def _text(moves: Mapping[str, Move]) -> str:
    arrows, lines = _arrows(moves), ["the states of a run, and who moves it"]
    wide = max([11, *map(len, _states(moves))])
    for state in (BEGIN, *_states(moves)):
        own = [(to, name, move) for source, to, name, move in arrows if source == state]
        for number, (to, name, move) in enumerate(own):
            event = f"; event {move.event}" if move.event else ""
            goes = f"{name}, by {_look(move)[0]}: {to}{event}"
            lines.append(f"  {'' if number else state or 'nothing yet':<{wide}}  {goes}")
    return "\n".join([*lines, f"  final: {', '.join(finals(moves)) or 'none'}"])


def _figure(moves: Mapping[str, Move]) -> Figure:
    colours, places, final = texts("timeline")["colours"], _places(moves), finals(moves)
    bottom = min(y for _, y in places.values()) - 0.6
    made = Figure(figsize=(WIDTH, 0.65 * (6.0 - bottom)), layout="constrained")
    axes = made.subplots()
    axes.set(xlim=(-0.6, 14.3), ylim=(bottom, 4.8), aspect="equal")
    axes.set_axis_off()
    axes.set_title("the states of a run, and who moves it", loc="left", fontweight="bold")
    boxes = {state: _box(axes, state, place, state in final) for state, place in places.items()}
    every, done = Counter(frozenset(arrow[:2]) for arrow in _arrows(moves)), Counter[Any]()
    for source, target, name, move in _arrows(moves):
        pair = frozenset((source, target))
        apart = done[pair] - (every[pair] - 1) / 2
        path, label = _path(places[source], places[target], apart if source < target else -apart)
        if source != target:
            path |= {"patchA": boxes[source], "patchB": boxes[target]}
        _, line, colour = _look(move)
        path |= {"linestyle": line, "color": colours[colour], "linewidth": 1.4}
        axes.add_patch(FancyArrowPatch(arrowstyle="-|>", mutation_scale=13, **path))
        under: Any = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        words = f"{name}\n({move.by})"
        axes.text(*label, words, ha="center", va="center", fontsize=9, bbox=under)
        done[pair] += 1
    lines = [
        Line2D([], [], linestyle=line, color=colours[colour], label=f"made by {who}")
        for who, line, colour in LOOKS.values()
    ]
    made.legend(handles=lines, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return made


def _places(moves: Mapping[str, Move]) -> dict[str, Place]:
    """Where each state stands; one that has no place of its own comes below, on the right."""
    there = [BEGIN, *_states(moves)]
    known = {state: PLACES[state] for state in there if state in PLACES}
    new = (state for state in there if state not in PLACES)
    return known | {state: (13.1, -0.3 - 1.5 * number) for number, state in enumerate(new)}


def _box(axes: Axes, state: str, place: Place, final: bool) -> Any:
    """Draw a state; the patch at whose edge its arrows begin and end."""
    if state == BEGIN:
        return axes.add_patch(Circle(place, 0.13, color="#222222"))
    for more in (0.0, 0.09)[: 1 + final]:
        corner = place[0] - HALF[0] - more, place[1] - HALF[1] - more
        size = 2 * (HALF[0] + more), 2 * (HALF[1] + more)
        box = FancyBboxPatch(corner, *size, boxstyle="round,pad=0,rounding_size=0.15", fill=False)
        axes.add_patch(box)
    words = f"{state}\n(final)" if final else state
    axes.text(*place, words, ha="center", va="center", fontsize=10)
    return box


def _path(start: Place, end: Place, apart: float) -> tuple[dict[str, Any], Place]:
    """Where an arrow runs, and where its words stand; one to its own box is a loop above it.

    `apart`: how many arrows lie between it and the straight line.
    """
    (x, y), (to_x, to_y), bend = start, end, APART * apart
    if start == end:
        x, to_x, y, to_y = x - 0.4, to_x + 0.4, y + HALF[1], to_y + HALF[1]
        bend = LOOP * (1 + abs(apart))
    path = {"posA": (x, y), "posB": (to_x, to_y), "connectionstyle": f"arc3,rad={bend}"}
    middle = x + to_x + bend * (to_y - y), y + to_y - bend * (to_x - x)
    return path, (middle[0] / 2, middle[1] / 2)
