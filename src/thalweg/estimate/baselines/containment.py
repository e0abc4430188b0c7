"""The textbook formula: keys of the smaller domain are contained in the larger one."""

from __future__ import annotations

import numpy as np

from thalweg.estimate.figure import Figure, Kind
from thalweg.estimate.hypergraph import members
from thalweg.estimate.join_rows import JoinRows


def containment(rows: JoinRows, inputs: int | None = None) -> Figure:
    """|R||S| / max(dv_R, dv_S), per attribute with all but the least number of distinct values as
    divisors. Distinct values are those of whole relations; filters count as independent of keys."""
    graph = rows.graph
    chosen = members(graph.whole if inputs is None else inputs)
    size = 1.0
    for i in chosen:
        size *= rows.size(i)
    for attribute, holders in graph.holders.items():
        distinct = sorted(
            max(len(rows.keys(i, attribute).distinct), 1) for i in members(holders) if i in chosen
        )
        size /= float(np.prod(np.array(distinct[1:], float)))
    return Figure.of(round(size), Kind.ESTIMATE)
