"""Prints every place of many runs as JSON; a test runs it with each Python that is installed.

python tests/simulation/dump_places.py settrace|monitoring STEP     # of so many scenarios, one
"""

import hashlib
import json
import sys
from typing import Any

import labkit
from labkit.simulation import recorder, simulate
from labkit.simulation.breakpoints import short
from tests.simulation import syntax
from tests.simulation.kit import scenario


def dumped(run: Any) -> dict[str, Any]:
    """Digest and rows of one run's places: all that is recorded of each."""
    rows = [
        [short(place.file), *place[2:8], place.caller, place.breakpoint, repr(place.locals)]
        for place in run.recorded
    ]
    text = json.dumps(rows)
    return {"digest": hashlib.sha256(text.encode()).hexdigest(), "hash": run.hash, "rows": rows}


# What needs a library, and the crowds of 200 clients with 60,000 places each.
LEFT_OUT = "sdk. frameworks. leases. durable. budgets.langgraph budgets.nested".split()
LEFT_OUT += ["budgets.storm"]


def main(mechanism: str, step: str) -> None:
    """Dump scenarios that need no library, one of `step`, and the client with much syntax."""
    if mechanism == "settrace":
        recorder._monitoring = recorder._settrace  # type: ignore[attr-defined]
    names = [name for name in labkit.names() if not name.startswith(tuple(LEFT_OUT))]
    dump = {name: dumped(labkit.simulate(name)) for name in names[:: int(step)]}
    dump["syntax"] = dumped(simulate(scenario(syntax.client)))
    json.dump(dump, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
