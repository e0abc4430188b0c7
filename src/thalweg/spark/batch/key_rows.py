"""Keys of inputs, brought to the driver: one Spark job for all inputs of a query.

The keys of an unfiltered table stay for as long as its version does; those of a filtered input are
of one query. Inputs with more rows than a driver should hold are not collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from thalweg.estimate.batch.written_join import quoted
from thalweg.estimate.keys.keyed_table import KeyedTable

MOST_ROWS = 2_000_000
"""Rows of an input that are collected: 16 MB a key column."""


@dataclass(frozen=True, slots=True)
class KeyInput:
    """Columns of an input whose keys are wanted: its relation as Spark SQL, under an alias, with
    the texts of its filters. `version` names the rows of the relation, None where nothing does."""

    relation: str
    alias: str
    columns: tuple[str, ...]
    filters: tuple[str, ...] = ()
    version: str | None = None

    @property
    def is_kept(self) -> bool:
        """Whether what is found holds for other queries, too."""
        return self.version is not None and not self.filters

    @property
    def unfiltered(self) -> KeyInput:
        return KeyInput(self.relation, self.alias, self.columns, (), self.version)

    def source(self) -> str:
        """FROM and WHERE."""
        where = f" WHERE {' AND '.join(self.filters)}" if self.filters else ""
        return f"FROM {self.relation} AS {quoted(self.alias)}{where}"


@dataclass(slots=True)
class KeyRows:
    """Collects keys. `scanned` lists the inputs that were read, in the order of jobs."""

    spark: SparkSession
    most: int = MOST_ROWS
    scanned: list[KeyInput] = field(default_factory=list)
    jobs: int = 0
    _kept: dict[tuple[str, str], KeyedTable] = field(default_factory=dict)
    _sizes: dict[tuple[str, str], int] = field(default_factory=dict)

    def sizes(self, inputs: Sequence[KeyInput]) -> list[int]:
        """How many rows inputs have; one job for those that are not known."""
        wanted = [i for i in dict.fromkeys(map(_sized, inputs)) if self._size(i) is None]
        fresh: dict[KeyInput, int] = {}
        if wanted:
            self.jobs += 1
            counts = " UNION ALL ".join(
                f"SELECT {n} AS i, count(*) AS n {one.source()}" for n, one in enumerate(wanted)
            )
            for i, n in self.spark.sql(counts).collect():
                fresh[wanted[i]] = n
                if wanted[i].is_kept:
                    self._sizes[_key(wanted[i])] = n
        found = []
        for one in map(_sized, inputs):
            known = self._size(one)
            found.append(fresh[one] if known is None else known)
        return found

    def _size(self, one: KeyInput) -> int | None:
        return self._sizes.get(_key(one)) if one.is_kept else None

    def of(self, inputs: Sequence[KeyInput]) -> list[KeyedTable]:
        """The keys of all inputs; those that are not kept are read in one job."""
        missing = [one for one in dict.fromkeys(self._wanted(inputs)) if not self._has(one)]
        fresh = dict(zip(missing, self._collected(missing), strict=True))
        for one, table in fresh.items():
            if one.is_kept:
                self._kept[_key(one)] = table
        return [self._kept[_key(i)] if i.is_kept else fresh[_anonymous(i)] for i in inputs]

    def _wanted(self, inputs: Sequence[KeyInput]) -> Iterable[KeyInput]:
        """What is to be read: of a table that is kept all columns that are asked for at once, and
        those that were before."""
        columns: dict[tuple[str, str], dict[str, None]] = {}
        for one in inputs:
            if one.is_kept:
                known = self._kept.get(_key(one))
                before = [] if known is None else known.table.column_names
                columns.setdefault(_key(one), dict.fromkeys(before)).update(
                    dict.fromkeys(one.columns)
                )
        for one in inputs:
            if one.is_kept:
                yield KeyInput(one.relation, "t", tuple(columns[_key(one)]), (), one.version)
            else:
                yield _anonymous(one)

    def _has(self, one: KeyInput) -> bool:
        known = self._kept.get(_key(one)) if one.is_kept else None
        return known is not None and set(one.columns) <= set(known.table.column_names)

    def _collected(self, inputs: Sequence[KeyInput]) -> list[KeyedTable]:
        if not inputs:
            return []
        self.jobs += 1
        self.scanned += inputs
        places = [(i, c) for i, one in enumerate(inputs) for c in one.columns]
        selects = []
        for i, one in enumerate(inputs):
            cells = [
                f"{quoted(f'{one.alias}.{c}')} AS c{n}" if j == i else f"NULL AS c{n}"
                for n, (j, c) in enumerate(places)
            ]
            selects.append(f"SELECT {', '.join([f'{i} AS i', *cells])} {one.source()}")
        rows = self.spark.sql(" UNION ALL ".join(selects)).toArrow()
        number = rows.column("i").to_numpy()
        found = []
        for i, one in enumerate(inputs):
            mine = rows.filter(pa.array(number == i)) if len(inputs) > 1 else rows
            chosen = [n for n, (j, _) in enumerate(places) if j == i]
            columns = {one.columns[k]: mine.column(f"c{n}") for k, n in enumerate(chosen)}
            if not columns:  # it joins nothing: only its rows count
                columns = {"": pa.array(np.zeros(len(mine), np.int8))}
            found.append(KeyedTable(pa.table(columns)))
        return found


def _key(one: KeyInput) -> tuple[str, str]:
    assert one.version is not None
    return one.relation, one.version


def _sized(one: KeyInput) -> KeyInput:
    return KeyInput(one.relation, one.alias, (), one.filters, one.version)


def _anonymous(one: KeyInput) -> KeyInput:
    return KeyInput(one.relation, one.alias, one.columns, one.filters, None)
