"""Sketches of inputs made by Spark: counts and exact degrees per bucket, in one job for a query.

All inputs of an attribute are hashed in one type by one function, so that their buckets agree. The
sketch of an unfiltered table stays as long as its version does; that of a filtered input is of one
query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from thalweg.estimate.batch.written_join import quoted
from thalweg.estimate.sketch.bound_sketch import BoundSketch, Shape
from thalweg.estimate.sketch.two_level import sketch_of_rows, sketch_sql, spark_bucket


@dataclass(frozen=True, slots=True)
class SketchInput:
    """An input to be sketched: its relation as Spark knows it, under an alias, with the texts of
    its filters; per attribute the column and the type in which it is hashed; and the shapes. NULL
    is a key of its own in `null_safe` attributes, and left out in others."""

    relation: str
    alias: str
    columns: tuple[tuple[str, str, str], ...]
    shapes: tuple[Shape, ...]
    filters: tuple[str, ...] = ()
    null_safe: frozenset[str] = frozenset()

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(a for a, _, _ in self.columns)

    def key(self, shape: Shape) -> tuple[object, ...]:
        """What a kept sketch is known by: equal columns in equal types and buckets."""
        hashed = tuple((c, t, a in self.null_safe) for a, c, t in self.columns)
        return self.relation, hashed, shape

    def sql(self, shape: Shape) -> str:
        """One row per (attribute, cell)."""
        keys = [f"k{i}" for i in range(len(self.columns))]
        cells = ", ".join(
            f"{_key(f'{self.alias}.{c}', t, a in self.null_safe)} AS {k}"
            for k, (a, c, t) in zip(keys, self.columns, strict=True)
        )
        where = f" WHERE {' AND '.join(self.filters)}" if self.filters else ""
        rows = f"(SELECT {cells} FROM {self.relation} AS {quoted(self.alias)}{where}) AS keyed"
        return sketch_sql(rows, keys, shape, spark_bucket(dict.fromkeys(keys, "BIGINT")))


def _key(column: str, wanted: str, null_safe: bool) -> str:
    """A key as a number: itself if it is whole, else its hash, which may only join more."""
    value = f"CAST({quoted(column)} AS {wanted})"
    if wanted not in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        zero = f" + CAST(0 AS {wanted})" if wanted in ("DOUBLE", "FLOAT") else ""
        found = f"if({quoted(column)} IS NULL, NULL, xxhash64({value}{zero}))"
    else:
        found = f"CAST({value} AS BIGINT)"
    return f"coalesce({found}, {_NULL})" if null_safe else found


_NULL = -6_148_914_691_236_517_206
"""The key of NULL where it joins NULL; a value that has it joins, too, which keeps bounds valid."""


@dataclass(slots=True)
class SparkSketches:
    """Makes sketches. `scanned` lists the inputs that were read."""

    spark: SparkSession
    scanned: list[SketchInput] = field(default_factory=list)
    jobs: int = 0
    _kept: dict[tuple[object, ...], BoundSketch] = field(default_factory=dict)

    def of(self, inputs: Sequence[SketchInput]) -> list[Mapping[Shape, BoundSketch]]:
        """The sketches of each input by their shapes; one job for all that are not kept."""
        missing = [
            (one, shape)
            for one in inputs
            for shape in one.shapes
            if one.filters or one.key(shape) not in self._kept
        ]
        fresh: dict[tuple[int, Shape], BoundSketch] = {}
        for (one, shape), found in zip(missing, self._made(missing), strict=True):
            if one.filters:
                fresh[id(one), shape] = found
            else:
                self._kept[one.key(shape)] = found
        return [
            {
                s: self._named(one, fresh.get((id(one), s)) or self._kept[one.key(s)])
                for s in one.shapes
            }
            for one in inputs
        ]

    def forget(self, relation: str) -> None:
        """A version of a relation that is read no more."""
        for key in [k for k in self._kept if k[0] == relation]:
            del self._kept[key]

    def _named(self, one: SketchInput, found: BoundSketch) -> BoundSketch:
        """A sketch under the attributes of this query."""
        return BoundSketch(one.attributes, found.shape, found.cells, found.counts, found.degrees)

    def _made(self, wanted: Sequence[tuple[SketchInput, Shape]]) -> list[BoundSketch]:
        if not wanted:
            return []
        self.jobs += 1
        self.scanned += dict.fromkeys(one for one, _ in wanted)
        most = max(len(one.columns) for one, _ in wanted)
        selects = []
        for number, (one, shape) in enumerate(wanted):
            own = len(one.columns)
            cells = [f"h{i}" if i < own else f"0 AS h{i}" for i in range(most)]
            names = ", ".join([f"{number} AS i", "attribute", *cells, "count", "degree"])
            selects.append(f"SELECT {names} FROM ({one.sql(shape)}) AS s{number}")
        rows = self.spark.sql(" UNION ALL ".join(selects)).toArrow()
        number_of = rows.column("i").to_numpy()
        return [
            sketch_of_rows(one.attributes, shape, rows.filter(pa.array(number_of == n)))
            for n, (one, shape) in enumerate(wanted)
        ]


def distinct_keys(sketches: Mapping[Shape, BoundSketch]) -> dict[str, float]:
    """At least how many keys of each attribute there are: rows over the largest degree, or buckets
    with rows, whichever is more. That is what the textbook's formula is given."""
    found: dict[str, float] = {}
    for shape, sketch in sketches.items():
        full = sketch.full()
        counts = full.dense(full.counts)
        for axis, name in enumerate(sketch.attributes):
            others = tuple(i for i in range(len(shape)) if i != axis)
            buckets = int(np.count_nonzero(counts.sum(axis=others) if others else counts))
            degree = float(full.degrees[axis].max(initial=0.0))
            rows = float(full.counts.sum())
            found[name] = max(found.get(name, 0.0), buckets, rows / degree if degree else 0.0)
    return found
