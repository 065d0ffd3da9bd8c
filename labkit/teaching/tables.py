"""The prediction tables: which scenarios are the rows, and which facts of a trace the columns.

No right answer stands here. A fact reads it from the run, together with the event that decided it.

    table("retry_boundary").columns[0].read(run.trace)    # Fact(answer='2', event=8)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from labkit.scenarios import facts
from labkit.scenarios.facts import Column, Fact
from labkit.simulation import Event, Unknown
from labkit.simulation.judge import duplicate_text
from labkit.simulation.page import segments

REQUESTS: Final = ("1", "2", "3", "4 or more")
DOUBLED: Final = ("yes", "no")
OUTCOMES: Final = ("a result", "an error", "a cancellation")
SEEN: Final = (
    "nothing",
    "a part of the answer",
    "the whole answer, once",
    "the beginning twice",
    "a part that is closed, then the whole answer",
)


@dataclass(frozen=True, slots=True)
class Table:
    """Questions of one kind: `rows` maps a scenario to its words; each column asks all of them."""

    name: str
    title: str
    rows: Mapping[str, str]
    columns: tuple[Column, ...]

    def question(self, row: str, column: str) -> str:
        """The id under which the answer is kept: it outlives a change of the words."""
        return f"{self.name}/{row}/{column}"

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)


def requests_made(events: Sequence[Event]) -> Fact:
    """How many requests reached the provider; giving up decides, else the last request."""
    made = [event.index for event in events if event.kind == "request"]
    gave_up = [event.index for event in events if event.get("action") == "give_up"]
    answer = str(len(made)) if len(made) < 4 else "4 or more"
    return Fact(answer, (gave_up or made)[-1])


def doubled(events: Sequence[Event]) -> Fact:
    """Whether the reader gets the same beginning twice in one segment."""
    found = next(duplicate_text(events), None)
    return Fact("no", len(events) - 1) if found is None else Fact("yes", found.event)


def outcome(events: Sequence[Event]) -> Fact:
    """What the caller is left with."""
    end = events[-1]
    ends = dict(zip(("result", "error", "cancelled"), OUTCOMES, strict=True))
    return Fact(ends[end["outcome"]], end.index)


def seen(events: Sequence[Event]) -> Fact:
    """What stands on the page at the end."""
    if (twice := doubled(events)).answer == "yes":
        return Fact("the beginning twice", twice.event)
    if not any(event.kind == "shown" for event in events):
        return Fact("nothing", len(events) - 1)
    said = [e for e in events if e.actor == "provider" and e.kind not in ("left", "usage")]
    if not any(event.kind == "finish" for event in said):
        return Fact("a part of the answer", said[-1].index)
    closed = len(segments(events)) > 1
    whole = "a part that is closed, then the whole answer" if closed else "the whole answer, once"
    return Fact(whole, next(event.index for event in said if event.kind == "finish"))


def table(name: str) -> Table:
    """The table of that name; raises `Unknown` with the names there are."""
    if name not in TABLES:
        raise Unknown("prediction table", name, TABLES)
    return TABLES[name]


_REQUESTS: Final = Column(
    "requests", "How many requests does the provider get?", REQUESTS, requests_made
)

TABLES: Final = {
    made.name: made
    for made in (
        Table(
            "first_stream",
            "a stream breaks after half a sentence",
            {
                "retry.naive": "a retry loop around the whole stream",
                "retry.guarded": "a client that minds what the reader has seen",
            },
            (
                _REQUESTS,
                Column("doubled", "Does the reader see the beginning twice?", DOUBLED, doubled),
                Column("outcome", "What does the caller get?", OUTCOMES, outcome),
            ),
        ),
        Table("interruptions", "three interruptions that look alike", facts.ROWS, facts.COLUMNS),
        Table(
            "retry_boundary",
            "what may be tried again",
            {
                "retry.rate_limit": "429 before the first delta",
                "retry.thinking": "an error after thinking, before any text",
                "retry.guarded": "an error after half a sentence",
                "retry.stall": "silence after half an answer, on a page with segments",
                "retry.quota": "429 for want of money",
                "retry.cut_off_guarded": "a clean end after half a sentence, no finish reason",
            },
            (
                _REQUESTS,
                Column("retried", "Is it tried again?", facts.RETRIED, facts.retried),
                Column("seen", "What has the reader seen at the end?", SEEN, seen),
            ),
        ),
    )
}
