"""What windows hold at an instant, by definition: of rows that have arrived, in stream order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.plan.logical import SequenceColumn
from thalweg.plan.values import normal_row
from thalweg.windows.protocol import WindowSpec


@dataclass(frozen=True)
class Arrival:
    """A row of a stream: `id` tells it from equal ones."""

    id: tuple[str, int]
    ts: int
    columns: dict[str, Any]


def content(
    arrived: Sequence[Arrival], spec: WindowSpec, instant: int, named: Callable[[str], str]
) -> list[Arrival]:
    """What a window holds at an instant of the rows that have arrived, in stream order."""
    parts: dict[tuple[Any, ...], list[Arrival]] = {}
    for arrival in arrived:
        by = normal_row(arrival.columns[named(c)] for c in spec.partition_by)
        parts.setdefault(by, []).append(arrival)
    return [a for part in parts.values() for a in spec.content(part, instant)]


def looked_up(column: SequenceColumn, rows: Sequence[Arrival], place: int) -> Any:
    """A column over the order of rows, for the row at a place."""
    if column.function == "row_number":
        return place + 1
    at = place + (column.offset if column.function == "lead" else -column.offset)
    return rows[at].columns[column.column] if 0 <= at < len(rows) else column.default
