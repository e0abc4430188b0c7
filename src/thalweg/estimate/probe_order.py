"""The order in which rows are looked up in the other inputs of a join before anything was seen.

A row without a partner in one input is in no result, so the input that most rows lack a partner in
is asked first: how large joins are does not matter before results are enumerated.
"""

from __future__ import annotations

import numpy as np

from thalweg.estimate.hypergraph import members
from thalweg.estimate.join_rows import JoinRows


def without_partner(rows: JoinRows, one: int, other: int) -> float:
    """The share of an input's rows that have no partner in another one, by the attribute that
    drops most of them; 0 where the two share none, or the first has no rows."""
    found = 0.0
    for attribute, holders in rows.graph.holders.items():
        if {one, other} <= set(members(holders)) and rows.size(one):
            mine, theirs = rows.codes(one, attribute), rows.codes(other, attribute)
            lost = ~np.isin(mine, theirs) | (mine == 0)
            found = max(found, float(lost.mean()))
    return found


def probe_orders(rows: JoinRows) -> dict[str, tuple[str, ...]]:
    """Per input the others, those in which most of its rows have no partner first; ties in the
    order of FROM."""
    names = rows.graph.names
    found = {}
    for i, name in enumerate(names):
        lacking = {j: without_partner(rows, i, j) for j in range(len(names)) if j != i}
        found[name] = tuple(
            names[j] for j in sorted(lacking, key=lacking.__getitem__, reverse=True)
        )
    return found
