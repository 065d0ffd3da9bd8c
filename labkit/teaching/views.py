"""The text forms of a run and of a place, and how a notebook comes to show them.

    run                      # as the last expression of a cell: what happened, in a few lines
    run.to("retry guard")    # the source around the place, its locals, what the user had seen
    labkit.show(run)         # the same in the middle of a cell

A text form holds no line number and no place number, since every edit of the source moves those;
the widget shows them.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from labkit.simulation import Run, Segment, View
from labkit.simulation.breakpoints import short

from .phrases import fault_words, printable, quoted, seconds

MOST_FINDINGS: Final = 5
RECENT: Final = 5  # events


def register() -> None:
    """Where IPython runs: let runs and views be shown in both forms; without it, nothing."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None:
        formatter = shell.display_formatter.mimebundle_formatter
        formatter.for_type(Run, lambda run: bundle(run_text(run), lambda: _run_widget(run)))
        formatter.for_type(View, lambda view: bundle(view_text(view), lambda: _view_widget(view)))


def bundle(text: str, widget: Callable[[], Any]) -> dict[str, Any]:
    """Both forms of one object, for the notebook."""
    return {**widget()._repr_mimebundle_(), "text/plain": text}


def show(*things: Any) -> None:
    """Show `things` here and now: runs, views, charts, tables, in the middle of a cell."""
    from IPython.display import display

    display(*things)  # type: ignore[no-untyped-call]


def run_text(run: Run) -> str:
    """What happened in `run`, in 5 to 15 lines."""
    scenario = run.scenario
    lines = [f"{scenario.name}: {printable(scenario.claim)}"]
    lines += _lines("outcome", [outcome(run), *_notes(run)])
    lines += _lines("requests", [_counted(run)])
    lines += _lines("page", _segments(run.segments))
    if run.ledger:
        lines += _lines("effects", [f"{e.name} at {seconds(e.time)}" for e in run.ledger])
    lines += _lines("findings", _findings(run))
    if run.faults:
        struck = [f"{fault_words(fault)}: struck" for fault in run.struck]
        missed = [f"{fault_words(f)}: did not strike, never reached" for f in run.missed]
        lines += _lines("faults", struck + missed)
    return "\n".join(lines)


def outcome(run: Run) -> str:
    """How `run` ended, and when."""
    if run.error is not None:
        how = f"{type(run.error).__name__} {printable(str(run.error))}".strip()
    elif run.result is None:
        how = "ended without an error"
    else:
        how = f"result {printable(repr(run.result))[:200]}"
    return f"{how}, at {seconds(run.time)}"


def view_text(view: View) -> str:
    """The place in words: source, locals and what the line changes, caller, events, page."""
    place = view.place
    title = f"{place.function} in {short(place.file)}, task {place.task}, at {seconds(place.time)}"
    lines = [f"'{place.breakpoint}': {title}" if place.breakpoint else title, ""]
    lines += _source(view)
    lines += ["", "locals before the line"]
    changed = view.changed
    for name, value in view.locals.items():
        if opaque(value) and name not in changed:
            continue
        after = f"  -> changed to {shown(changed[name][1])}" if name in changed else ""
        lines.append(f"  {name} = {shown(value)}{after}")
    new = [name for name in changed if name not in view.locals]
    lines += [f"  {name}: set by the line to {shown(changed[name][1])}" for name in new]
    if objects := [n for n, v in view.locals.items() if opaque(v) and n not in changed]:
        lines.append(f"  and objects: {', '.join(objects)}")
    if others := caller_locals(view):
        lines.append("locals of its caller")
        lines += [f"  {name} = {shown(value)}" for name, value in others.items()]
    lines += ["last events", *[f"  {event!r}" for event in view.events[-RECENT:]]]
    lines += ["seen by the user", *[f"  {told}" for told in _segments(view.segments)]]
    return "\n".join(lines)


def shown(value: Any, most: int = 100) -> str:
    """A frozen value on one line of at most so many characters."""
    told = printable(repr(value))
    return told if len(told) <= most else told[: most - 1] + "…"


def caller_locals(view: View) -> Mapping[str, Any]:
    """The caller's locals, but for functions and other objects, and for what is the same here."""
    own = view.locals
    return {
        name: value
        for name, value in view.caller.items()
        if not opaque(value) and (name not in own or own[name] != value)
    }


def opaque(value: Any) -> bool:
    """Whether only the class of it is shown: a function, a stream."""
    return repr(value).startswith("<")


def _source(view: View) -> Iterator[str]:
    around = view.source()
    texts = textwrap.dedent("\n".join(text for _, text in around)).split("\n")
    for (number, _), text in zip(around, texts, strict=True):
        arrow = "->" if number == view.place.line else "  "
        yield f"{arrow} {printable(text)}".rstrip()


def _lines(title: str, told: Iterable[str]) -> list[str]:
    return [f"{'' if n else title:<9} {line}" for n, line in enumerate(told)]


def _notes(run: Run) -> list[str]:
    return [printable(note) for note in getattr(run.error, "__notes__", ())]


def _counted(run: Run) -> str:
    requests = sum(event.kind == "request" for event in run.trace)
    waited = sum(event["seconds"] for event in run.trace if event.kind == "wait")
    return f"{requests}; the client asked to wait {seconds(waited)} in all"


def _segments(segments: Iterable[Segment]) -> list[str]:
    """One line a segment; nothing shown is said too."""
    told = []
    for number, segment in enumerate(segments, start=1):
        state = f"closed by {segment.reason}" if segment.reason else "open"
        told.append(f"segment {number}, {state}: {quoted(segment.text, 400)}")
    return told


def _findings(run: Run) -> list[str]:
    told = [
        f"{found.name} at event {found.event} ({seconds(run.trace[found.event].time)}):"
        f" {found.cure}"
        for found in run.findings
    ]
    if len(told) > MOST_FINDINGS:
        told[MOST_FINDINGS - 1 :] = [f"and {len(told) - MOST_FINDINGS + 1} more"]
    return told or ["none" if run.scenario.judges else "none: this scenario has no judges"]


def _run_widget(run: Run) -> Any:
    from .stepper import card

    return card(run)


def _view_widget(view: View) -> Any:
    from .stepper import stepper

    return stepper(view.run, at=view).widget
