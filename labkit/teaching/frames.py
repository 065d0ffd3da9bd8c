"""Records as a table.

labkit.frame(run.events)
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd


def frame(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A `DataFrame` of flat records: columns as they first appear, `index` as the index.

    What a record does not have is an empty text, and a column with such gaps keeps the values as
    they were: a whole number does not turn into a float.
    """
    rows = list(records)
    names = list(dict.fromkeys(name for row in rows for name in row))
    values = {name: [row.get(name) for row in rows] for name in names}
    made = pd.DataFrame({name: _column(column) for name, column in values.items()})
    return made.set_index("index") if "index" in names else made


def _column(values: list[Any]) -> Any:
    if all(value is not None for value in values):
        return values
    return pd.Series(["" if value is None else value for value in values], dtype=object)
