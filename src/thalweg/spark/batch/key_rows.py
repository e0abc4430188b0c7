"""Columns of tables on the driver, from which joins are counted: keys, and what filters read.

They are brought by one Spark job for all tables of a query, once for each version of a table; the
filters of a query are evaluated here, so that planning it needs no job. Tables with more rows than
a driver should hold are sketched by Spark instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from thalweg.estimate.batch.written_join import quoted
from thalweg.estimate.keys.keyed_table import KeyedTable
from thalweg.plan.types import DataType, to_arrow

MOST_ROWS = 2_000_000
"""Rows of a table that are brought: 16 MB a column."""


@dataclass(frozen=True, slots=True)
class KeptColumns:
    """Columns that are wanted of one version of a relation, known to Spark by a name."""

    view: str
    columns: tuple[tuple[str, DataType], ...]


@dataclass(slots=True)
class KeyRows:
    """Brings columns. `scanned` lists what was read, in the order of jobs."""

    spark: SparkSession
    most: int = MOST_ROWS
    scanned: list[KeptColumns] = field(default_factory=list)
    jobs: int = 0
    _kept: dict[str, KeyedTable] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def fits(self, views: Sequence[str]) -> bool:
        """Whether all relations are small enough; one job counts those that are not known."""
        return all(n <= self.most for n in self.sizes(views))

    def sizes(self, views: Sequence[str]) -> list[int]:
        """How many rows relations have."""
        wanted = [v for v in dict.fromkeys(views) if v not in self._sizes]
        if wanted:
            self.jobs += 1
            counts = " UNION ALL ".join(
                f"SELECT {n} AS i, count(*) AS n FROM {view}" for n, view in enumerate(wanted)
            )
            for i, n in self.spark.sql(counts).collect():
                self._sizes[wanted[i]] = n
        return [self._sizes[v] for v in views]

    def of(self, wanted: Sequence[KeptColumns]) -> list[KeyedTable]:
        """The columns of relations; what is not here yet is read in one job."""
        columns: dict[str, dict[str, DataType]] = {}
        for one in wanted:
            columns.setdefault(one.view, {}).update(one.columns)
        missing = []
        for view, some in columns.items():
            known = self._kept.get(view)
            here = () if known is None else known.table.column_names
            if known is None or not set(some) <= set(here):
                missing.append(
                    KeptColumns(view, tuple(c for c in some.items() if c[0] not in here))
                )
        for one, table in zip(missing, self._collected(missing), strict=True):
            before = self._kept.get(one.view)
            if before is not None:
                for name in before.table.column_names:
                    table = table.append_column(name, before.table.column(name))
            self._kept[one.view] = KeyedTable(table)
        return [self._kept[one.view] for one in wanted]

    def forget(self, view: str) -> None:
        """A version of a relation that is read no more."""
        self._kept.pop(view, None)
        self._sizes.pop(view, None)

    def _collected(self, wanted: Sequence[KeptColumns]) -> list[pa.Table]:
        if not wanted:
            return []
        self.jobs += 1
        self.scanned += wanted
        places = [(i, c, t) for i, one in enumerate(wanted) for c, t in one.columns]
        selects = []
        for i, one in enumerate(wanted):
            cells = [
                f"{quoted(c)} AS c{n}" if j == i else f"CAST(NULL AS {t}) AS c{n}"
                for n, (j, c, t) in enumerate(places)
            ]
            selects.append(f"SELECT {', '.join([f'{i} AS i', *cells])} FROM {one.view}")
        rows = self.spark.sql(" UNION ALL ".join(selects)).toArrow()
        number = rows.column("i").to_numpy()
        found = []
        for i in range(len(wanted)):
            mine = rows.filter(pa.array(number == i)) if len(wanted) > 1 else rows
            columns = {
                c: mine.column(f"c{n}").cast(to_arrow(t))
                for n, (j, c, t) in enumerate(places)
                if j == i
            }
            if not columns:  # it joins nothing: only its rows count
                columns = {"": pa.array(np.zeros(len(mine), np.int8))}
            found.append(pa.table(columns))
        return found
