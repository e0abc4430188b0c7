"""Bounds, estimates and measurements of sub-joins, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from thalweg.estimate.bounds import Bounds
from thalweg.estimate.figure import Figure
from thalweg.estimate.hypergraph import in_words


@dataclass(frozen=True, slots=True)
class Compared:
    """One sub-join: how large it is at most (or exactly), by the textbook, and as made."""

    sources: tuple[str, ...]
    bound: Figure
    estimate: Figure
    measured: Figure


@dataclass(frozen=True, slots=True)
class SideBySide:
    """All connected sub-joins of a query, the whole last."""

    joins: tuple[Compared, ...]
    bounds: Bounds

    @property
    def table(self) -> pa.Table:
        """One row per connected sub-join; `kind` is that of `bound`."""
        rows, text = pa.decimal128(38, 0), pa.string()
        return pa.table(
            {
                "sources": pa.array([list(c.sources) for c in self.joins], pa.list_(text)),
                "bound": pa.array([c.bound.rows for c in self.joins], rows),
                "kind": pa.array([c.bound.kind.value for c in self.joins], text),
                "estimate": pa.array([c.estimate.rows for c in self.joins], rows),
                "measurement": pa.array([c.measured.rows for c in self.joins], rows),
            }
        )

    def __str__(self) -> str:
        heads = ("join", f"bound ({self.bounds.basis})", "estimate", "measurement")
        lines = [heads]
        for c in self.joins:
            measured = "not made" if c.measured.rows is None else f"{c.measured.rows:,} (measured)"
            lines.append((in_words(c.sources), _short(c.bound), _short(c.estimate), measured))
        widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
        padded = [map(str.ljust, line, widths) for line in lines]
        shown = ["  ".join(line).rstrip() for line in padded]
        return "\n".join([*shown, self.bounds.advice, *self._apart()])

    def _apart(self) -> list[str]:
        """Where estimate and measurement part most."""
        worst, by = None, 1.0
        for c in self.joins:
            if c.measured.rows is None or c.estimate.rows is None:
                continue
            made, said = max(c.measured.rows, 1), max(c.estimate.rows, 1)
            if max(made / said, said / made) > by:
                worst, by = c, max(made / said, said / made)
        if worst is None or by < 2:
            return []
        return [f"the estimate is {by:,.1f} times off for {in_words(worst.sources)}"]


def _short(figure: Figure) -> str:
    return "unknown" if figure.rows is None else f"{figure.rows:,} ({figure.kind.value})"
