"""Rows between operators: named columns of equal length, and signed changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.columns.vector import Vector, concat, nulls
from thalweg.instants import Ints
from thalweg.plan.logical import Schema
from thalweg.plan.types import to_arrow

Signs = npt.NDArray[np.int8]


@dataclass(slots=True)
class Frame:
    """Columns by name; `length` counts rows even when there are no columns."""

    columns: dict[str, Vector]
    length: int

    def take(self, rows: Ints) -> Frame:
        return Frame({n: v.take(rows) for n, v in self.columns.items()}, len(rows))

    def slice(self, low: int, high: int) -> Frame:
        """The rows in [low, high), without copying."""
        return Frame({n: v.slice(low, high) for n, v in self.columns.items()}, high - low)

    def select(self, names: Sequence[str]) -> Frame:
        return Frame({n: self.columns[n] for n in names}, self.length)

    def merged(self, other: Mapping[str, Vector]) -> Frame:
        return Frame({**self.columns, **other}, self.length)


@dataclass(slots=True)
class Changes:
    """Rows that appear (+1) or vanish (-1) at their instants.

    `ends` holds, where they are known, the instants at which appearing rows will vanish again.
    """

    frame: Frame
    ts: Ints
    signs: Signs
    ends: Ints | None = None

    def __len__(self) -> int:
        return self.frame.length

    def take(self, rows: Ints) -> Changes:
        ends = None if self.ends is None else self.ends[rows]
        return Changes(self.frame.take(rows), self.ts[rows], self.signs[rows], ends)


def arrow_columns(frame: Frame, schema: Schema) -> dict[str, pa.Array]:
    """The columns of a schema as they are written."""
    return {f.name: frame.columns[f.name].to_arrow().cast(to_arrow(f.type)) for f in schema}


def empty_frame(schema: Schema) -> Frame:
    return Frame({f.name: nulls(f.type, 0) for f in schema}, 0)


def concat_frames(frames: Sequence[Frame], schema: Schema) -> Frame:
    """All rows one after another; `schema` names the columns even when there are no frames."""
    filled = [f for f in frames if f.length]
    if not filled:
        return empty_frame(schema)
    if len(filled) == 1:
        return filled[0]
    columns = {f.name: concat([g.columns[f.name] for g in filled]) for f in schema}
    return Frame(columns, sum(f.length for f in filled))


def concat_changes(parts: Sequence[Changes], schema: Schema) -> Changes:
    filled = [p for p in parts if len(p)]
    frame = concat_frames([p.frame for p in filled], schema)
    known = bool(filled) and all(p.ends is not None for p in filled)
    return Changes(
        frame,
        _joined([p.ts for p in filled], np.int64),
        _joined([p.signs for p in filled], np.int8),
        _joined([p.ends for p in filled if p.ends is not None], np.int64) if known else None,
    )


def _joined(arrays: Sequence[npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)
