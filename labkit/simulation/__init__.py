"""Virtual time: a loop, a trace, a recorder, and the run that comes of them."""

from .breakpoints import Breakpoint, breakpoints
from .effects import Effect
from .errors import (
    Deadlock,
    Livelock,
    NotDeterministic,
    Refused,
    SimulationError,
    Unknown,
)
from .faults import Fault, Point
from .judge import STREAM_JUDGES, Finding, Judge
from .page import Segment
from .places import Place, View
from .run import Run
from .scenario import Scenario
from .simulate import points, simulate
from .trace import Event
from .world import Observer

__all__ = [
    "STREAM_JUDGES",
    "Breakpoint",
    "Deadlock",
    "Effect",
    "Event",
    "Fault",
    "Finding",
    "Judge",
    "Livelock",
    "NotDeterministic",
    "Observer",
    "Place",
    "Point",
    "Refused",
    "Run",
    "Scenario",
    "Segment",
    "SimulationError",
    "Unknown",
    "View",
    "breakpoints",
    "points",
    "simulate",
]
