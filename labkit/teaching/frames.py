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
    made = pd.DataFrame(list(records), dtype=object).fillna("").infer_objects()
    return made.set_index("index") if "index" in made else made
