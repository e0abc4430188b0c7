"""Lifetimes that later rows decide: of the last n rows, and of sessions.

Rows are sorted into runs (one partition, one instant each); `ts` are their times in that order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from thalweg.columns.runs import Runs
from thalweg.columns.sort_codes import lexical_order
from thalweg.columns.vector import arrow_vector
from thalweg.instants import Ints


def in_stream_order(runs: Runs, table: pa.Table, tie: Sequence[str]) -> Ints:
    """Sort the runs, and rows of one partition and instant by the columns `tie`, which are read
    only for those."""
    order = runs.order
    same = np.zeros(len(order), np.bool_)
    same[1:] = runs.run[1:] == runs.run[:-1]
    same[:-1] |= same[1:]
    tied = np.flatnonzero(same)
    if not len(tied):
        return order
    rows = table.take(pa.array(order[tied]))
    inner = lexical_order([arrow_vector(rows, c) for c in tie], [runs.run[tied]])
    found = order.copy()
    found[tied] = order[tied][inner]
    return found
