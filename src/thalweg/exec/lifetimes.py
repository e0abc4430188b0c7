"""Lifetimes that later rows decide: of the last n rows, and of sessions.

Rows come sorted into runs (one partition, one instant each); `ts` are their times in that order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import AFTER_TIME, Ints
from thalweg.columns.runs import Runs
from thalweg.columns.sort_codes import lexical_order
from thalweg.columns.vector import arrow_vector


def in_stream_order(runs: Runs, table: pa.Table, tie: Sequence[str]) -> Ints:
    """The order of the runs, and among rows of one partition and instant that of the columns
    `tie`, which is looked at only there."""
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


def row_lifetimes(rows: int, runs: Runs, ts: Ints) -> tuple[Ints, Ints]:
    """A row ends when the n-th row after it in its partition comes."""
    partition = runs.group_of_run[runs.run]
    ends = np.full(len(ts), AFTER_TIME, np.int64)
    if len(ts) > rows:
        same = partition[rows:] == partition[:-rows]
        ends[:-rows][same] = ts[rows:][same]
    return ts, ends


def session_lifetimes(gap: int, runs: Runs, ts: Ints, until: int) -> tuple[Ints, Ints]:
    """All rows of a session are there for one instant, the first that no further row can reach."""
    partition = runs.group_of_run[runs.run]
    breaks = np.ones(len(ts), np.bool_)
    breaks[1:] = (partition[1:] != partition[:-1]) | (ts[1:] - ts[:-1] > gap)
    firsts = np.flatnonzero(breaks)
    last = ts[np.append(firsts[1:], len(ts)) - 1]
    closing = np.where(last + gap + 1 < until, last + gap + 1, AFTER_TIME)
    starts = closing[np.cumsum(breaks) - 1]
    return starts, starts + 1
