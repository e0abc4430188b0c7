"""A number of rows together with what it is: it cannot be printed without its label.

A guaranteed bound, an exact count, an estimate and a measurement are four things; sums and
comparisons between them are written out by those who know what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a number of rows is."""

    EXACT = "exact"
    BOUND = "bound"
    ESTIMATE = "estimate"
    MEASUREMENT = "measurement"
    DECLARED = "declared"
    UNKNOWN = "unknown"


_WORDS = {
    Kind.EXACT: "exactly {} rows",
    Kind.BOUND: "at most {} rows (guaranteed bound)",
    Kind.ESTIMATE: "about {} rows (estimate)",
    Kind.MEASUREMENT: "{} rows (measured)",
    Kind.DECLARED: "at most {} rows (declared)",
}
MOST = 10**38 - 1
"""The largest count that is written down, DECIMAL(38, 0); beyond it a figure is unknown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of rows and its kind; None rows are those of an unknown number."""

    rows: int | None
    kind: Kind

    def __post_init__(self) -> None:
        if (self.rows is None) != (self.kind is Kind.UNKNOWN):
            raise AssertionError("a figure without rows is unknown, and no other")

    def __str__(self) -> str:
        return "unknown" if self.rows is None else _WORDS[self.kind].format(f"{self.rows:,}")

    @staticmethod
    def of(rows: int, kind: Kind) -> Figure:
        return Figure(rows, kind) if rows <= MOST else UNKNOWN


UNKNOWN = Figure(None, Kind.UNKNOWN)
