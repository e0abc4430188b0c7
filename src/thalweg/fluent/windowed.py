"""What a built query is made of, and its windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from thalweg.errors import WindowMisuse
from thalweg.fluent import building, windows
from thalweg.fluent.expressions import Condition, Subquery
from thalweg.fluent.home import Home
from thalweg.fluent.names import identifier
from thalweg.fluent.text import query_text
from thalweg.fluent.windows import Duration, Moment
from thalweg.lang.parsing import ast
from thalweg.windows.protocol import WindowClause
from thalweg.windows.range import NowClause, UnboundedClause


@dataclass(frozen=True, slots=True, repr=False)
class Windowed(Subquery):
    """A query that is being built, with the windows that may be put over it."""

    home: Home = field(compare=False)
    draft: ast.Query

    @property
    def tree(self) -> ast.Query:
        """The query as the parser would give it, but for places in a text."""
        return building.completed(self.draft)

    def sql(self) -> str:
        """The query as text of the language, one clause a line."""
        return query_text(self.tree)

    def __repr__(self) -> str:
        return self.sql()

    # -- windows and names -------------------------------------------------------------------

    def now(self) -> Self:
        """`[NOW]`: the rows of the present instant."""
        return self._window(NowClause())

    def range(self, span: Duration, slide: Duration | None = None) -> Self:
        """`[RANGE span SLIDE slide]`: the rows of the last `span`, moving on by `slide`."""
        return self._window(windows.range_window(span, slide))

    def rows(self, n: int, by: Condition | Iterable[Condition] = ()) -> Self:
        """`[PARTITION BY by ROWS n]`: the last n rows, or the last n for each value of `by`."""
        return self._window(windows.rows_window(n, by))

    def session(self, gap: Duration, by: Condition | Iterable[Condition] = ()) -> Self:
        """`[PARTITION BY by SESSION GAP gap]`: the rows since the last silence of `gap`."""
        return self._window(windows.session_window(gap, by))

    def landmark(self, at: Moment | None = None, *, every: Duration | None = None) -> Self:
        """`[LANDMARK at]`: all rows since then; or since the last multiple of `every`."""
        return self._window(windows.landmark_window(at, every))

    def between(self, start: Moment, end: Moment) -> Self:
        """`[FROM start TO end]`: the rows of a fixed span of time."""
        return self._window(windows.between_window(start, end))

    def unbounded(self) -> Self:
        """`[UNBOUNDED]`: all rows so far."""
        return self._window(UnboundedClause())

    def alias(self, name: str) -> Self:
        """The source under another name, for its columns: `col("t.price")`."""
        identifier(name)
        if not building.is_source(self.draft):
            return self._with(building.wrapped(self.draft, name))
        return self._source(alias=name)

    def _window(self, window: WindowClause) -> Self:
        if not building.is_source(self.draft):
            return self._with(building.wrapped(self.draft))._window(window)
        assert isinstance(self.draft, ast.Select)
        (source,) = self.draft.sources
        if source.window is not None:
            raise WindowMisuse(
                f"{building.name_of(self.draft) or 'the subquery'} has a window already",
                remedy="one is enough; for a window over what changes, say .istream() first",
            )
        return self._source(window=window)

    def _source(self, **changes: Any) -> Self:
        assert isinstance(self.draft, ast.Select)
        (source,) = self.draft.sources
        return self._with(replace(self.draft, from_items=(replace(source, **changes),)))

    def _with(self, query: ast.Query) -> Self:
        return replace(self, draft=query)
