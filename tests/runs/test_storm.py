"""Fifty runs while their workers are killed a hundred times: each effect once, no event missed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .conftest import every_database
from .storm import Storm, keys_of
from .storm_worker import WINDOWS

pytestmark = [pytest.mark.slow, pytest.mark.socket]
LIMIT = 200  # seconds for one storm


@pytest.mark.timeout(LIMIT + 30)
@every_database
def test_runs_whose_workers_are_killed_and_stopped_all_end_with_each_effect_once(
    url: str, tmp_path: Path
) -> None:
    storm = Storm(url, tmp_path / "effects.db", seed=1)
    told = asyncio.run(asyncio.wait_for(storm.run(), LIMIT))
    print(told)

    # The storm was one.
    assert (len(told.runs), told.stopped) == (50, 6)
    assert told.killed >= 100
    assert told.taken_over >= 50
    assert max(run.fence for run in told.runs) >= 3
    assert told.dropped >= 100

    assert (told.orphans, told.duplicates) == (0, 0)
    assert set(told.effects) == keys_of(told.runs)
    assert told.refused == dict.fromkeys(WINDOWS, 3)  # whoever woke was late, each time
    for run in told.runs:
        numbers = list(range(1, run.seq + 1))
        assert [event.seq for event in told.events[run.run_id]] == numbers
        assert [entry.sequence for entry in told.seen[run.run_id]] == numbers
        assert told.seen[run.run_id][-1].event == "run_completed"
        kinds = [event.type for event in told.events[run.run_id]]
        assert kinds.count("node_finished") == 3
