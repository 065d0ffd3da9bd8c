"""Records become a table whose text is the same everywhere."""

from __future__ import annotations

import labkit


def test_the_index_is_the_records_own_and_columns_come_as_they_first_appear() -> None:
    run = labkit.simulate("interruption.error")
    table = labkit.frame(run.events)
    assert table.index.name == "index"
    assert list(table.index) == [event.index for event in run.trace]
    assert list(table.columns[:3]) == ["time", "actor", "kind"]
    assert str(table) == str(labkit.frame(labkit.simulate("interruption.error").events))


def test_what_a_record_lacks_is_an_empty_text_and_numbers_stay_whole() -> None:
    table = labkit.frame([{"index": 0, "n": 1}, {"index": 1}, {"index": 2, "n": None, "b": True}])
    assert list(table["n"]) == [1, "", ""]
    assert type(table["n"][0]) is int
    assert "None" not in str(table)
    assert "NaN" not in str(table)


def test_whole_columns_keep_their_type_for_sums() -> None:
    run = labkit.simulate("retry.rate_limit")
    assert labkit.frame(run.events)["time"].max() == run.time


def test_effects_places_and_no_records_make_tables_too() -> None:
    run = labkit.simulate("interruption.error")
    assert list(labkit.frame(run.effects)["name"]) == ["look_up"]
    assert len(labkit.frame(run.places)) == len(run.recorded)
    assert labkit.frame([]).empty


def test_text_from_a_script_is_no_markup() -> None:
    run = labkit.simulate("retry.many_scripts")
    assert "<b>" not in labkit.frame(run.events).to_html()
