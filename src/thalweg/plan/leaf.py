"""The leaves of a relation: a windowed stream, a table, or another relation of the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thalweg.plan.expr import Predicate
from thalweg.plan.logical import EmitKind, Field, Schema
from thalweg.plan.types import BIGINT
from thalweg.windows.protocol import OrderedWindow, TimeWindow, WindowSpec

REFERENCE, START, END = TRACKS = ("__reference", "__start", "__end")
"""Columns of rows that subresults refer to: where the row is, its first instant, and its last."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A windowed stream, a table (`window` None), or a relation of the plan (`source`): its rows as
    they are, or, with `emits`, the stream it emits under a window.

    `filters` decide finally. `hints` may raise: they drop rows on which they are false and are
    evaluated again above the join. `post_filters` stand above a row window. `stream_columns` is the
    whole content of the stream, the tie-break inside an instant, listed for row windows only.
    `changes` marks a table that has had several versions, `is_static` a relation of tables alone.
    `members` look rows under [NOW] up in other leaves, beside `filters`.
    """

    alias: str
    relation: str
    fields: Schema
    window: WindowSpec | None
    filters: tuple[Predicate, ...] = ()
    hints: tuple[Predicate, ...] = ()
    post_filters: tuple[Predicate, ...] = ()
    stream_columns: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    source: int | None = None
    emits: EmitKind | None = None
    changes: bool = False
    is_static: bool = False
    members: tuple[Predicate, ...] = ()

    @property
    def is_table(self) -> bool:
        return self.window is None and self.source is None

    @property
    def is_standing(self) -> bool:
        """Whether its rows are always valid."""
        return self.is_table and not self.changes

    @property
    def untracked(self) -> Schema:
        """The columns of the stream itself."""
        if self.fields and self.fields[-1].name == self.full(TRACKS[-1]):
            return self.fields[: -len(TRACKS)]
        return self.fields

    def tracked(self) -> Leaf:
        """The same with columns that identify a row and give its lifetime."""
        tracks = tuple(Field(self.full(t), BIGINT, False) for t in TRACKS)
        return replace(self, fields=self.untracked + tracks)

    @property
    def is_stored(self) -> bool:
        """Whether its rows are in packs of a stream or a table."""
        return self.source is None

    @property
    def keeps_rows(self) -> bool:
        """Whether the window's content is state of its own."""
        return self.window is not None and self.window.is_ordered

    @property
    def time_window(self) -> TimeWindow:
        assert isinstance(self.window, TimeWindow)
        return self.window

    @property
    def ordered_window(self) -> OrderedWindow:
        assert isinstance(self.window, OrderedWindow)
        return self.window

    def bare(self, name: str) -> str:
        """The stream's own name of one of its columns."""
        return name if self.source is not None else name[len(self.alias) + 1 :]

    def full(self, name: str) -> str:
        """The name in this query of a column of the stream."""
        return name if self.source is not None else f"{self.alias}.{name}"
