"""What windows hold at an instant, by definition: of rows that have arrived, in stream order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.plan.logical import SequenceColumn, SessionWindow, TimeWindow, WindowSpec
from thalweg.testing.clock import in_window
from thalweg.testing.compare import normal_row


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
    if isinstance(spec, TimeWindow):
        return [a for a in arrived if in_window(a.ts, spec, instant)]
    parts: dict[tuple[Any, ...], list[Arrival]] = {}
    for arrival in arrived:
        by = normal_row(arrival.columns[named(c)] for c in spec.partition_by)
        parts.setdefault(by, []).append(arrival)
    if isinstance(spec, SessionWindow):
        return [a for part in parts.values() for a in _closing_session(part, spec.gap, instant)]
    return [a for part in parts.values() for a in part[max(len(part) - spec.rows, 0) :]]


def _closing_session(arrived: Sequence[Arrival], gap: int, instant: int) -> list[Arrival]:
    """The session for which this is the first instant that no further row can reach."""
    arrived = [a for a in arrived if a.ts < instant]
    if not arrived or arrived[-1].ts + gap + 1 != instant:
        return []
    first = len(arrived) - 1
    while first > 0 and arrived[first].ts - arrived[first - 1].ts <= gap:
        first -= 1
    return list(arrived[first:])


def looked_up(column: SequenceColumn, rows: Sequence[Arrival], place: int) -> Any:
    """A column over the order of rows, for the row at a place."""
    if column.function == "row_number":
        return place + 1
    at = place + (column.offset if column.function == "lead" else -column.offset)
    return rows[at].columns[column.column] if 0 <= at < len(rows) else column.default
