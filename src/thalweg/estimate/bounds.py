"""The size of a join and of all its connected sub-joins, as users see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from thalweg.estimate.figure import Figure
from thalweg.estimate.hypergraph import in_words

SCHEMA = pa.schema(
    [
        ("sources", pa.list_(pa.string())),
        ("rows", pa.decimal128(38, 0)),
        ("kind", pa.string()),
        ("basis", pa.string()),
        ("degrees", pa.string()),
        ("formula", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class SubJoin:
    """A connected sub-join and its size: how degrees were counted, and by which formula."""

    sources: tuple[str, ...]
    figure: Figure
    degrees: str
    formula: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """The sizes of all connected sub-joins, the whole join last. `basis` is `fresh` where rows were
    read now, `cached` where only statistics were. `advice` names in one line the sub-join that
    explodes, and what would help."""

    subjoins: tuple[SubJoin, ...]
    basis: str
    advice: str

    @property
    def whole(self) -> SubJoin:
        return self.subjoins[-1]

    @property
    def rows(self) -> int | None:
        """The size of the whole join; None if it is unknown."""
        return self.whole.figure.rows

    @property
    def kind(self) -> str:
        return self.whole.figure.kind.value

    @property
    def table(self) -> pa.Table:
        """One row per connected sub-join, the whole last."""
        return pa.table(
            [
                [list(s.sources) for s in self.subjoins],
                pa.array([s.figure.rows for s in self.subjoins], pa.decimal128(38, 0)),
                [s.figure.kind.value for s in self.subjoins],
                [self.basis] * len(self.subjoins),
                [s.degrees for s in self.subjoins],
                [s.formula for s in self.subjoins],
            ],
            schema=SCHEMA,
        )

    def figure(self, sources: Sequence[str]) -> Figure:
        """The size of the sub-join of some inputs, by their aliases."""
        wanted = set(sources)
        return next(s.figure for s in self.subjoins if set(s.sources) == wanted)

    def __str__(self) -> str:
        lines = [f"{in_words(s.sources)}: {s.figure}   {s.formula}" for s in self.subjoins]
        return "\n".join([*lines, self.advice])
