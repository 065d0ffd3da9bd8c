"""Breaks safeguards one at a time and sees that the named tests go red.

python -m tests.safeguards                 # all
python -m tests.safeguards masking judge   # those whose name or room has one of these words
"""

import importlib
import queue
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .copy import Copy, copies
from .kinds import Safeguard

AT_ONCE = 2


class Verdict(NamedTuple):
    """What came of one safeguard: "passed", "failed" or "skipped", and why."""

    safeguard: Safeguard
    outcome: str
    why: str
    seconds: float = 0.0


def listed() -> Iterator[tuple[str, Safeguard]]:
    """Room and safeguard, from every module here that has a list."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if not file.stem.startswith("__"):
            module = importlib.import_module(f"{__package__}.{file.stem}")
            for safeguard in getattr(module, "SAFEGUARDS", ()):
                yield file.stem, safeguard


def chosen(words: list[str]) -> list[Safeguard]:
    """Those whose name or room has one of the words; all of them without words."""
    known = list(listed())
    names = [safeguard.name for _, safeguard in known]
    if twice := {name for name in names if names.count(name) > 1}:
        raise SystemExit(f"two safeguards have the name {sorted(twice)[0]!r}")
    found = [
        s
        for room, s in known
        if not words or any(w in (room, s.name) or w in s.name for w in words)
    ]
    if not found:
        raise SystemExit("no safeguard has such a name; there are:\n" + "\n".join(names))
    return found


def before(copy: Copy, safeguards: list[Safeguard]) -> dict[str, str]:
    """How the named tests end while nothing is broken; each must be green."""
    nodes = sorted({node for safeguard in safeguards for node in safeguard.red})
    ended, said = copy.test(nodes)
    if set(ended.values()) == {"missing"}:
        raise SystemExit(f"no test ran at all:\n{said}")
    return ended


def tried(copy: Copy, safeguard: Safeguard, green: dict[str, str]) -> Verdict:
    """Break one safeguard and look at its tests."""
    started = time.monotonic()
    count = copy.count(safeguard)
    if count != 1:
        return Verdict(safeguard, "failed", f"its text stands {count} times in {safeguard.file}")
    if bad := [f"{node} {green[node]}" for node in safeguard.red if green[node] in _BAD]:
        return Verdict(safeguard, "failed", f"not green before the change: {', '.join(bad)}")
    if "skipped" in {green[node] for node in safeguard.red}:
        return Verdict(safeguard, "skipped", "a test that would notice is skipped here")
    with copy.broken(safeguard):
        after, said = copy.test(safeguard.red)
    spent = time.monotonic() - started
    if "missing" in after.values():
        return Verdict(safeguard, "failed", f"nothing ran any more: {said[-300:]}", spent)
    if still := [node for node, outcome in after.items() if outcome != "failed"]:
        return Verdict(safeguard, "failed", f"stayed green: {', '.join(still)}", spent)
    return Verdict(safeguard, "passed", f"{len(after)} red", spent)


_BAD = ("failed", "missing")


def main(words: list[str]) -> int:
    """Try them, two at a time; the exit code is 1 where one failed."""
    safeguards = chosen(words)
    started = time.monotonic()
    with copies(AT_ONCE) as made:
        for copy in made:
            if not copy.holds(copy.imported()):
                raise SystemExit(f"the copy is not what is imported: {copy.imported()}")
        green = before(made[0], safeguards)
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in made:
            free.put(copy)

        def one(safeguard: Safeguard) -> Verdict:
            copy = free.get()
            try:
                return tried(copy, safeguard, green)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            verdicts = [tell(verdict) for verdict in pool.map(one, safeguards)]
    count = {
        end: sum(v.outcome == end for v in verdicts) for end in ("passed", "failed", "skipped")
    }
    spent = time.monotonic() - started
    print(", ".join(f"{n} {end}" for end, n in count.items() if n or end != "skipped"), end="")
    print(f" in {spent:.0f} s")
    return 1 if count["failed"] else 0


def tell(verdict: Verdict) -> Verdict:
    """Print one row of the table."""
    mark = {"passed": "ok    ", "failed": "FAILED", "skipped": "skip  "}[verdict.outcome]
    row = f"{mark}  {verdict.seconds:5.1f} s  {verdict.safeguard.name:<66}  {verdict.why}"
    print(row, flush=True)
    return verdict


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
