"""What the room offers."""

import labkit.simulation


def test_the_public_names_are_these() -> None:
    assert (
        labkit.simulation.__all__
        == (
            "STREAM_JUDGES Breakpoint Deadlock Effect Event Fault Finding Judge Livelock "
            "NotDeterministic Observer Place Point Refused Run Scenario Segment SimulationError "
            "Unknown View breakpoints points simulate"
        ).split()
    )
    assert all(hasattr(labkit.simulation, name) for name in labkit.simulation.__all__)
