"""SAMPLE EVERY d, SAMPLE RATE r: rows of segments at the instants of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.errors import BindError
from thalweg.lang.parsing.select_clauses import ClauseBinder, ClauseKind
from thalweg.models.polynomials import SECOND
from thalweg.plan.logical import Node
from thalweg.windows.protocol import WindowWriter


@dataclass(frozen=True, slots=True)
class SampleClause:
    """Every so many microseconds, or so often in a second."""

    every: int | None = None
    rate: float | None = None

    def text(self, writer: WindowWriter) -> str:
        if self.every is not None:
            return f"SAMPLE EVERY {writer.duration(self.every)}"
        return f"SAMPLE RATE {self.rate!r}"

    def bind(self, binder: ClauseBinder, node: Node) -> Node:
        binder.refuse(
            BindError(
                "SAMPLE is for sources with MODEL: other rows are there at instants of their own",
                remedy="write FROM s MODEL (x = x), or leave SAMPLE out",
            )
        )

    def period(self) -> int:
        """The distance of samples in microseconds; raises `BindError`."""
        if self.every is not None:
            period, words = self.every, "SAMPLE EVERY"
        else:
            assert self.rate is not None
            period, words = self._of_rate(self.rate), "SAMPLE RATE"
        if period < 2:
            raise BindError(
                f"{words} asks for samples less than two microseconds apart",
                remedy="write SAMPLE EVERY 1 SECOND",
            )
        return period

    def _of_rate(self, rate: float) -> int:
        if rate <= 0 or SECOND % rate:
            raise BindError(
                f"SAMPLE RATE {rate:g} is no whole number of microseconds between samples",
                remedy="a rate is per second, such as SAMPLE RATE 10, or write SAMPLE EVERY d",
            )
        return int(SECOND // rate)


def _clause(c: Any) -> SampleClause:
    if c.word("EVERY"):
        return SampleClause(every=c.duration())
    c.need("RATE")
    return SampleClause(rate=c.number("a rate"))


SAMPLE = ClauseKind("SAMPLE", _clause, ())
