"""The text forms of a run and of a place, and how a notebook comes to show them.

    run                      # as the last expression of a cell: what happened, in a few lines
    run.to("retry guard")    # the source around the place, its locals, what the user had seen
    labkit.show(run)         # the same in the middle of a cell

A text form holds no line number and no place number, since every edit of the source moves those;
the widget shows them.
"""

import textwrap
from typing import Any, Final

from labkit.simulation import Fault, Run, Segment, Unknown, View
from labkit.simulation.breakpoints import short
from labkit.simulation.faults import PROCESS_FAULTS, TASK_FAULTS

from .phrases import cut, printable, quoted, seconds

MOST_EFFECTS: Final = 6
MOST_FINDINGS: Final = 4
RECENT: Final = 5  # events


def register() -> None:
    """Where IPython runs: let runs and places show themselves; without it, nothing."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None:
        formatter = shell.display_formatter.mimebundle_formatter
        formatter.for_type(Run, lambda run: {"text/plain": run_text(run)})
        formatter.for_type(View, _place_forms)


def _place_forms(view: View) -> dict[str, Any]:
    from .stepper import stepper  # brings ipywidgets, so not before it is needed

    return stepper(view.run, at=view)._repr_mimebundle_()


def show(*things: Any) -> None:
    """Show runs, views, charts or tables in the middle of a cell."""
    from IPython.display import display

    display(*things)  # type: ignore[no-untyped-call]


def run_text(run: Run) -> str:
    """What happened in `run`, in 5 to 15 lines."""
    effects = [f"{effect.name} at {seconds(effect.time)}" for effect in run.ledger]
    findings = [repr(found) for found in run.findings] or ["none"]
    for told, most in ((effects, MOST_EFFECTS), (findings, MOST_FINDINGS)):
        if len(told) > most:
            told[most:] = [f"and {len(told) - most} more"]
    watched = has_page(run)
    sections = {
        "outcome": _outcome(run),
        "claims": _claims(run),
        "requests": _requests(run),
        "page": page(run.segments, "nothing") if watched else [],
        "effects": effects if effects or watched else ["none"],
        "findings": findings if run.scenario.judges else ["none: this scenario has no judges"],
        "faults": [_fault(fault, run) for fault in run.faults],
    }
    lines = [f"{run.scenario.name}: {printable(run.scenario.claim)}"]
    for title, told in sections.items():
        lines += [f"{'' if number else title:<9} {line}" for number, line in enumerate(told)]
    return "\n".join(lines)


def view_text(view: View) -> str:
    """The place in words: source, locals and what the line changes, last events, page."""
    place = view.place
    title = f"{place.function} in {short(place.file)}, task {place.task}, at {seconds(place.time)}"
    numbers, source = zip(*view.source(), strict=True)
    dedented = textwrap.dedent("\n".join(source)).split("\n")
    marks = ["->" if number == place.line else "  " for number in numbers]
    seen = ["seen by the user", *(f"  {told}" for told in page(view.segments))]
    rows = [(n, f"{value}  -> {new}" if new else value) for n, value, new in local_rows(view)]
    return "\n".join(
        [
            f"'{place.breakpoint}': {title}" if place.breakpoint else title,
            "",
            *(f"{m} {printable(line)}".rstrip() for m, line in zip(marks, dedented, strict=True)),
            "",
            "locals before the line",
            *(f"  {name} = {value}" for name, value in rows),
            "last events",
            *(f"  {event!r}" for event in view.events[-RECENT:]),
            *(seen if has_page(view.run) else []),
        ]
    )


def local_rows(view: View) -> list[tuple[str, str, str]]:
    """Each local: name, value before the line, and `changed to ...` where the line changes it.

    The caller's follow, but for those of the same name. Objects of which only the class was
    recorded, a function or a stream, are left out.
    """
    values = {name: _value(value) for name, value in view.locals.items()}
    after = {name: f"changed to {_value(new)}" for name, (_, new) in view.changed.items()}
    rows = {name: values.get(name, "(not there yet)") for name in {**values, **after}}
    rows |= {f"caller's {n}": _value(v) for n, v in view.caller.items() if n not in rows}
    return [(n, v, after.get(n, "")) for n, v in rows.items() if n in after or v[0] != "<"]


def page(segments: tuple[Segment, ...], nothing: str = "nothing yet") -> list[str]:
    """What the user has seen, one line a segment, or that there is `nothing`."""
    if not any(part.text or part.reason for part in segments):
        return [nothing]
    states = [f"closed by {part.reason}" if part.reason else "open" for part in segments]
    told = enumerate(zip(states, segments, strict=True), start=1)
    return [f"segment {n}, {state}: {quoted(part.text, 400)}" for n, (state, part) in told]


def has_page(run: Run) -> bool:
    """Whether a user looks on: where workers do the runs of a store, nobody does."""
    kinds = {(event.actor, event.kind) for event in run.trace}
    return ("store", "claimed") not in kinds or any(actor == "page" for actor, _ in kinds)


def _value(value: Any, most: int = 100) -> str:
    return cut(printable(repr(value)), most)


def _outcome(run: Run) -> list[str]:
    """How it ended, the notes on the error, and the tasks inside that ended without a result."""
    how = f"result {_value(run.result, 200)}"
    if run.error is not None:
        how = f"{type(run.error).__name__} {printable(str(run.error))}".rstrip()
    elif run.result is None:
        how = "ended without an error"
    notes = list(map(printable, getattr(run.error, "__notes__", ())))
    ends = [e for e in run.trace if (e.actor, e.kind) == ("lab", "end") and e["task"] != "client"]
    inner = [f"{end['task']}: {end['outcome']}" for end in ends if end["outcome"] != "result"]
    return [f"{how}, at {seconds(run.time)}", *notes, *map(printable, inner)]


def _claims(run: Run) -> list[str]:
    """How often workers have claimed runs of a store, where there is one."""
    claims = [e for e in run.trace if (e.actor, e.kind) == ("store", "claimed")]
    return [f"{len(claims)}, by {', '.join(sorted({e['by'] for e in claims}))}"] if claims else []


def _requests(run: Run) -> list[str]:
    """Those to models, or to the one provider that a page waits for; workers may have neither."""
    if asked := sum(event.kind == "asked" for event in run.trace):
        return [f"{asked} to models"]
    waited = sum(event["seconds"] for event in run.trace if event.kind == "wait")
    wait = f"; the client asked to wait {seconds(waited)} in all" if waited else ""
    made = sum(event.kind == "request" for event in run.trace)
    return [f"{made}{wait}"] if made or has_page(run) else []


def _fault(fault: Fault, run: Run) -> str:
    told = f"{fault.kind} at point {fault.point}"
    if fault.kind in TASK_FAULTS:
        when = {"waiting": "while waiting", "waking": "as it wakes"}[fault.phase]
        told = printable(f"{fault.kind} of {fault.task} at point {fault.point}, {when}")
        if fault.kind == "timeout":  # which is of whoever called the client
            told = printable(f"timeout at point {fault.point} of {fault.task}, {when}")
    why = "never reached"
    if fault.kind in TASK_FAULTS and fault.task not in run.tasks:
        why = printable(str(Unknown("task", fault.task, run.tasks)))
    elif fault.kind in PROCESS_FAULTS:
        why += " in a process"
    return f"{told}: {'struck' if fault in run.struck else f'did not strike, {why}'}"
