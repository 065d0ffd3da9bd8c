"""What the room offers."""

import inspect

import labkit.simulation


def test_the_public_names_are_these() -> None:
    offered = (
        "STREAM_JUDGES Breakpoint Deadlock Effect Event Exploration Fault Finding Judge Livelock "
        "NotDeterministic Observer Outcome Place Point Process Refused Run Scenario Segment "
        "SimulationError Unknown View breakpoints explore points simulate"
    ).split()
    modules = {name for name, value in vars(labkit.simulation).items() if inspect.ismodule(value)}
    public = {name for name in vars(labkit.simulation) if not name.startswith("_")}
    assert sorted(public - modules) == sorted(offered)
