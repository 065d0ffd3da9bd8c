"""Prints every place of many runs as JSON; a test runs it with each Python that is installed.

python tests/simulation/dump_places.py [settrace|monitoring]
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


def main(mechanism: str) -> None:
    """Dump the scenarios that need no SDK, and the client with much syntax."""
    if mechanism == "settrace":
        recorder._monitoring = recorder._settrace  # type: ignore[attr-defined]
    names = [name for name in labkit.names() if not name.startswith(("sdk.", "frameworks."))]
    dump = {name: dumped(labkit.simulate(name)) for name in names}
    dump["syntax"] = dumped(simulate(scenario(syntax.client)))
    json.dump(dump, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
