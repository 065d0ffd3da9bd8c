"""Virtual time: a loop, a trace, a recorder, and the run that comes of them.

What stands here is what other rooms may use; `X as X` says that the name is meant to be handed on.
"""

from .breakpoints import Breakpoint as Breakpoint
from .breakpoints import breakpoints as breakpoints
from .errors import Deadlock as Deadlock
from .errors import Livelock as Livelock
from .errors import NotDeterministic as NotDeterministic
from .errors import Refused as Refused
from .errors import SimulationError as SimulationError
from .errors import Unknown as Unknown
from .explore import Exploration as Exploration
from .explore import Outcome as Outcome
from .explore import explore as explore
from .faults import Fault as Fault
from .faults import Point as Point
from .judge import STREAM_JUDGES as STREAM_JUDGES
from .judge import Finding as Finding
from .judge import Judge as Judge
from .page import Segment as Segment
from .places import Place as Place
from .places import View as View
from .processes import Process as Process
from .run import Run as Run
from .scenario import Scenario as Scenario
from .simulate import points as points
from .simulate import simulate as simulate
from .trace import Effect as Effect
from .trace import Event as Event
from .world import Observer as Observer
