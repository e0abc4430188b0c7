"""The segments of a query: what its sources were taken to be, and since and until when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

import numpy as np
import pyarrow as pa

from thalweg.columns.sort_codes import row_codes
from thalweg.columns.vector import arrow_vector
from thalweg.exec.leaves.subrelation import WEIGHT
from thalweg.instants import Ints
from thalweg.models.functions.curve import curve_named
from thalweg.models.polynomials import Floats
from thalweg.models.relations.state import SEGMENTS
from thalweg.models.validation import Bound
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import Schema
from thalweg.plan.physical import QueryPlan
from thalweg.plan.state_slots import slot
from thalweg.store.packs import TIME

TIMESTAMP = pa.timestamp("us", "UTC")


class SegmentSource(Protocol):
    """A relation that makes segments of a stream."""

    @property
    def leaf(self) -> Leaf: ...
    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def attributes(self) -> Sequence[Modeled]: ...
    @property
    def schema(self) -> Schema: ...


class Modeled(Protocol):
    """A modeled column, and how far tuples may be from it."""

    @property
    def name(self) -> str: ...
    @property
    def bound(self) -> Bound | None: ...


def sources_of(plan: QueryPlan) -> list[tuple[int, SegmentSource]]:
    """The relations of a plan that make segments, with their numbers."""
    return [
        (number, cast(SegmentSource, relation))
        for number, relation in enumerate(plan.relations)
        if SEGMENTS in relation.slots
    ]


def segments_of(plan: QueryPlan, tables: Callable[[str], Sequence[pa.Table]]) -> pa.Table:
    """All segments of a query's sources that are kept, as rows: the source, its key columns,
    `start`, `end` (NULL while it lasts), an array of coefficients for each attribute (ascending, in
    seconds since `start`), and `bound`, an array with that of each attribute (NULL where every
    tuple counts). `tables` reads what is in a slot."""
    found = []
    for number, source in sources_of(plan):
        parts = [t for t in tables(slot(number, SEGMENTS)) if t.num_rows]
        if parts:
            found.append(_of_source(source, pa.concat_tables(parts).combine_chunks()))
    if not found:
        return pa.table({"source": pa.array([], pa.string())})
    rows = pa.concat_tables(found, promote_options="default")
    return rows.sort_by([("source", "ascending"), ("start", "ascending")])


def _of_source(source: SegmentSource, changes: pa.Table) -> pa.Table:
    """Each row that appeared, with the instant at which it vanished."""
    begins, ends = _paired(changes, [f.name for f in source.schema])
    alias = source.leaf.alias
    rows = changes.take(pa.array(begins))
    columns = {"source": pa.array([alias] * len(begins))}
    for name in source.key:
        columns[name.split(".", 1)[1]] = rows.column(name)
    columns["start"] = rows.column(source.schema[-1].name).cast(TIMESTAMP)
    columns["end"] = pa.array(ends, mask=ends < 0).cast(TIMESTAMP)
    bounds = []
    for attribute in source.attributes:
        bare = attribute.name.split(".", 1)[1]
        degree = sum(f.name.startswith(f"{attribute.name}^") for f in source.schema)
        names = curve_named(attribute.name, degree, "").coefficients
        columns[bare] = _arrays(rows, names)
        bounds.append(_bounds(attribute.bound, rows, names[0]))
    columns["bound"] = _listed(np.stack(bounds, axis=1))
    return pa.table(columns)


def _paired(changes: pa.Table, names: Sequence[str]) -> tuple[Ints, Ints]:
    """The rows that appear, in order, and the instant at which each vanishes (-1: it has not)."""
    codes = row_codes([arrow_vector(changes, n) for n in names], changes.num_rows)
    ts, sign = changes.column(TIME).to_numpy(), changes.column(WEIGHT).to_numpy()
    order = np.lexsort((ts, codes))
    begins = np.flatnonzero(sign[order] > 0)
    after = np.minimum(begins + 1, len(order) - 1)
    closed = (codes[order[after]] == codes[order[begins]]) & (sign[order[after]] < 0)
    return order[begins], np.where(closed, ts[order[after]], -1)


def _arrays(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    return _listed(np.stack([rows.column(n).to_numpy() for n in names], axis=1))


def _listed(values: Floats) -> pa.Array:
    offsets = np.arange(0, values.size + 1, values.shape[1], dtype=np.int32)
    flat = values.ravel()
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, mask=np.isnan(flat)))


def _bounds(bound: Bound | None, rows: pa.Table, name: str) -> Floats:
    """How far tuples may be from each segment: NaN where every tuple counts; of a relative bound
    its share of the value at the segment's start."""
    if bound is None or bound.within is None:
        return np.full(rows.num_rows, np.nan)
    if not bound.relative:
        return np.full(rows.num_rows, bound.within)
    found: Floats = np.abs(rows.column(name).to_numpy()) * bound.within / 100
    return found


def bounds_of(plan: QueryPlan) -> dict[str, float]:
    """The bounds in force, by modeled column: absolute, or in percent of each value."""
    return {
        f"{a.name} (%)" if a.bound.relative else a.name: a.bound.within
        for _, source in sources_of(plan)
        for a in source.attributes
        if a.bound is not None and a.bound.within is not None
    }
