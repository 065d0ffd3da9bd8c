"""Places: recorded moments in the source, and the view of one that a learner steps with.

view = run.to("retry guard")
view.locals["visible"]        # as it was before the line ran
view.previous()               # another view; this one stays as it is
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .breakpoints import short, source
from .errors import Unknown
from .page import Segment, segments
from .trace import Event

if TYPE_CHECKING:
    from .run import Run

Target = str | int | Callable[[Mapping[str, Any]], bool]

AROUND: Final = 4  # lines of source on either side
RECENT: Final = 5  # events


class Place(NamedTuple):
    """One moment before a line runs. `event` is the index of the last event, -1 before any.

    `frame` tells the calls of one function apart; `caller` is the frame of the caller, 0 where that
    is not watched. `names` are those that the function's locals may have, `values` those that are
    there. A named tuple, since a run makes thousands.
    """

    index: int  # type: ignore[assignment]  # in place of the tuple's method
    file: str
    line: int
    function: str
    task: str
    frame: int
    time: float
    event: int
    names: tuple[str, ...]
    values: Mapping[str, Any]
    caller: int = 0
    breakpoint: str = ""

    @property
    def locals(self) -> tuple[tuple[str, Any], ...]:
        """(name, value) of the locals: the parameters first, then the others by name."""
        values = self.values
        return tuple([(name, values[name]) for name in self.names if name in values])


class View:
    """One place of a run, to look at; moving gives another view.

    `index` is the number of the place in the run, from 0; `time` is in virtual seconds. `next`,
    `previous` stay in the place's own task; `run.at(k)` counts over all tasks. Each takes a target:
    a breakpoint's name, a line number, or a function of the locals.
    """

    def __init__(self, run: "Run", place: Place) -> None:
        self.run = run
        self.place = place
        self.index = place.index
        self.time = place.time

    @property
    def locals(self) -> Mapping[str, Any]:
        """The locals before the line ran: plain values, or the text that they rendered to."""
        return MappingProxyType(dict(self.place.locals))

    @property
    def caller(self) -> Mapping[str, Any]:
        """The caller's locals as it made the call; empty where the caller is not watched."""
        before = reversed(self.run.recorded[: self.index] if self.place.caller else ())
        made = next((place for place in before if place.frame == self.place.caller), None)
        return MappingProxyType(dict(made.locals) if made else {})

    @property
    def changed(self) -> Mapping[str, tuple[Any, Any]]:
        """What the line changed: name -> (before, after), read from the frame's next place."""
        after_it = self.run.recorded[self.index + 1 :]
        later = next((place for place in after_it if place.frame == self.place.frame), self.place)
        before, after = dict(self.place.locals), dict(later.locals)
        return {
            name: (before.get(name), value)
            for name, value in after.items()
            if name not in before or before[name] != value
        }

    @property
    def events(self) -> Sequence[Event]:
        """The trace so far."""
        return self.run.trace[: self.place.event + 1]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """What the user had seen by then."""
        return segments(self.run.trace, self.place.event)

    @property
    def text(self) -> str:
        """The text of the last segment by then."""
        return self.segments[-1].text

    def source(self, around: int = AROUND) -> list[tuple[int, str]]:
        """(line number, text) from `around` lines before the place to as many after."""
        lines = source(self.place.file)
        first = max(1, self.place.line - around)
        last = min(len(lines), self.place.line + around)
        return [(number, lines[number - 1]) for number in range(first, last + 1)]

    def next(self, target: Target | None = None) -> "View":
        """The task's next place, or its next one at `target`; at the end, this view."""
        return self._move([p for p in self._own() if p.index > self.index], target)

    def previous(self, target: Target | None = None) -> "View":
        """The task's place before, or its last one before at `target`; at the start, this view."""
        return self._move([p for p in reversed(self._own()) if p.index < self.index], target)

    def first(self) -> "View":
        """The task's first place."""
        return View(self.run, self._own()[0])

    def last(self) -> "View":
        """The task's last place."""
        return View(self.run, self._own()[-1])

    def _own(self) -> list[Place]:
        return [place for place in self.run.recorded if place.task == self.place.task]

    def _move(self, candidates: list[Place], target: Target | None) -> "View":
        if not candidates:
            return self
        if target is None:
            return View(self.run, candidates[0])
        return View(self.run, find(candidates, target))

    def __repr__(self) -> str:
        place = self.place
        named = f" [{place.breakpoint}]" if place.breakpoint else ""
        return (
            f"place {place.index} of {len(self.run.recorded)} in the run: {short(place.file)} "
            f"in {place.function}{named}, task {place.task}, t={place.time:g} s"
        )


def find(candidates: Sequence[Place], target: Target) -> Place:
    """The first of `candidates` at `target`; raises `Unknown` with what there is among them."""
    for place in candidates:
        if _hits(place, target):
            return place
    if callable(target):
        names = {name for place in candidates for name in place.values}
        called = getattr(target, "__name__", "condition")
        raise Unknown("place for the condition", called, sorted(names))
    if isinstance(target, int):
        raise Unknown("place at line", target, sorted({place.line for place in candidates}))
    raise Unknown("place at", target, sorted({place.breakpoint for place in candidates} - {""}))


def _hits(place: Place, target: Target) -> bool:
    if not callable(target):
        return bool(target) and target in (place.line, place.breakpoint)
    try:
        return bool(target(dict(place.locals)))
    except KeyError:  # a local that is not there yet
        return False


def files_of(*things: Any) -> frozenset[str]:
    """The source files of modules and of functions: also partial, wrapped, and callable objects.

    A text is such a file already: that of a module which is too heavy to be loaded for its lines.
    """
    return frozenset(
        each if isinstance(each, str) else inspect.getfile(_function(each)) for each in things
    )


def _function(thing: Any) -> Any:
    thing = inspect.unwrap(thing.func if isinstance(thing, partial) else thing)
    known = isinstance(thing, ModuleType | FunctionType | MethodType | type)
    return thing if known else thing.__call__
