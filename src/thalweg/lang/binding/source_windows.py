"""The interface of a window kind to the binder, at one source of FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from thalweg.errors import ThalwegError, WindowMisuse
from thalweg.lang.binding.instant_literals import moment
from thalweg.lang.binding.scope import Scope
from thalweg.lang.binding.visible import Visible
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.places import place
from thalweg.lang.syntax import exp
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Column
from thalweg.windows.protocol import WindowSpec
from thalweg.windows.range import UNBOUNDED


def bound_window(
    source: ast.Source, visible: Visible, query: ast.Select, catalog: Catalog, text: str
) -> WindowSpec:
    """The window of a source; none is [UNBOUNDED]."""
    if source.window is None:
        return UNBOUNDED
    return source.window.bind(SourceWindow(source, visible, query, catalog, text))


@dataclass(frozen=True, slots=True)
class SourceWindow:
    source: ast.Source
    visible: Visible
    query: ast.Select
    catalog: Catalog
    text: str

    def fail(self, error: ThalwegError) -> NoReturn:
        raise error.at(self.text, *place(self.text, self.source.at))

    def instant(self, written: exp.Expr) -> int:
        return moment(written, self.text)

    def columns(self, written: Sequence[exp.Expr]) -> tuple[str, ...]:
        own = Scope(self.catalog, (self.visible,), self.text)
        by = [own.bind(e) for e in written]
        if not all(isinstance(e, Column) for e in by):
            self.fail(
                WindowMisuse(
                    "PARTITION BY takes columns of the stream",
                    remedy="compute the key in a subquery, or name its columns",
                )
            )
        return tuple(e.name for e in by if isinstance(e, Column))

    def grouped(self) -> tuple[exp.Expr, ...]:
        names = {f.name.split(".", 1)[1].lower() for f in self.visible.fields}
        return tuple(
            node
            for node in map(self._meant, self.query.group_by)
            if isinstance(node, exp.Column)
            and node.name.lower() in names
            and node.table.lower() in ("", self.visible.alias.lower())
        )

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """The item of SELECT that a number or a name in GROUP BY refers to."""
        items = self.query.items
        if isinstance(node, exp.Literal) and node.name.isdigit() and int(node.name) <= len(items):
            node = items[int(node.name) - 1]
        named = [i for i in items if isinstance(i, exp.Alias)]
        node = next((i for i in named if i.alias.lower() == node.name.lower()), node)
        found: exp.Expr = node.this if isinstance(node, exp.Alias) else node
        return found
