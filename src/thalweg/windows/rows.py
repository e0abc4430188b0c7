"""`[ROWS n]` and `[PARTITION BY c ROWS n]`: the last n rows of the stream, or of each partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from thalweg.errors import WindowMisuse
from thalweg.instants import AFTER_TIME, Ints
from thalweg.windows.protocol import (
    Expression,
    OrderedWindow,
    R,
    WindowBinder,
    WindowCursor,
    WindowKind,
    WindowWriter,
    named_partition,
    partition_text,
)


@dataclass(frozen=True, slots=True)
class RowWindow(OrderedWindow):
    """A row leaves when the n-th row after it in its partition arrives."""

    name = "rows"
    rows: int
    partition_by: tuple[str, ...] = ()

    @property
    def most_rows(self) -> int | None:
        return None if self.partition_by else self.rows

    def bound(self) -> str:
        per = f" per {', '.join(self.partition_by)}" if self.partition_by else ""
        return f"{self.rows} rows{per}"

    def lifetimes(self, partition: Ints, ts: Ints, until: int) -> tuple[Ints, Ints]:
        ends = np.full(len(ts), AFTER_TIME, np.int64)
        if len(ts) > self.rows:
            same = partition[self.rows :] == partition[: -self.rows]
            ends[: -self.rows][same] = ts[self.rows :][same]
        return ts, ends

    @property
    def reach(self) -> int:
        return self.rows

    def reaching(self, reach: int) -> RowWindow:
        return replace(self, rows=reach)

    def is_full(self, rows: int) -> bool:
        return not self.partition_by and rows >= self.rows

    def content(self, rows: Sequence[R], instant: int) -> list[R]:
        return list(rows[max(len(rows) - self.rows, 0) :])

    def changes(self, ts: int) -> Iterator[int]:
        yield ts

    def __str__(self) -> str:
        return f"[{named_partition(self.partition_by)}ROWS {self.rows}]"


@dataclass(frozen=True, slots=True)
class RowsClause:
    rows: int
    partition_by: tuple[Expression, ...] = ()

    def bind(self, binder: WindowBinder) -> RowWindow:
        if self.rows < 1:
            binder.fail(
                WindowMisuse(
                    "a row window holds at least one row", remedy="write [ROWS 1] or more, or [NOW]"
                )
            )
        return RowWindow(self.rows, binder.columns(self.partition_by))

    def text(self, writer: WindowWriter) -> str:
        return f"{partition_text(writer, self.partition_by)}ROWS {self.rows}"


def _rows(c: WindowCursor, by: tuple[Expression, ...]) -> RowsClause | None:
    return RowsClause(c.integer("a number of rows"), by) if c.word("ROWS") else None


KINDS = (
    WindowKind(
        "ROWS n", _rows, ("[ROWS 3]", "[PARTITION BY k ROWS 2]"), takes_partition=True,
    ),
)  # fmt: skip
