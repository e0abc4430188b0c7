"""The interface of a clause of a source to the binder, at one source of FROM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from thalweg.errors import ThalwegError
from thalweg.lang.binding.scope import Scope
from thalweg.lang.binding.visible import Visible
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.places import offset_of, place
from thalweg.lang.syntax import exp
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.plan.expr import Column, Expr
from thalweg.plan.logical import Aggregate, Emit, Filter, Node, Project, Scan, Schema, Window


@dataclass(frozen=True, slots=True)
class BoundSource:
    """A stream or table, before its clause is bound."""

    source: ast.Source
    stream: Scan | Emit
    visible: Visible
    catalog: Catalog
    text: str

    @property
    def alias(self) -> str:
        return self.visible.alias

    @property
    def fields(self) -> Schema:
        return self.visible.fields

    @property
    def key(self) -> tuple[str, ...]:
        """The KEY of the stream; of a subquery what shows it, or its GROUP BY."""
        return _key(self.stream, self.catalog)

    @property
    def time(self) -> str | None:
        return self.visible.time.name if isinstance(self.visible.time, Column) else None

    def scalar(self, written: exp.Expr) -> Expr:
        return Scope(self.catalog, (self.visible,), self.text).bind(written)

    def fail(self, error: ThalwegError, written: Any = None) -> NoReturn:
        at = offset_of(written) if isinstance(written, exp.Expr) else self.source.at
        raise error.at(self.text, *place(self.text, self.source.at if at is None else at))


def _key(node: Node, catalog: Catalog) -> tuple[str, ...]:
    """The columns of a relation that name the entity a row is about; none if some are not there."""
    if isinstance(node, Scan):
        found = catalog.relation(node.relation)
        key = found.key if isinstance(found, StreamDef) else ()
        return tuple(f"{node.alias}.{name}" for name in key)
    if isinstance(node, Aggregate):
        return tuple(k.name for k in node.keys)
    if isinstance(node, (Emit, Filter, Window)):
        return _key(node.input, catalog)
    if not isinstance(node, Project):
        return ()
    shown = {c.expr.name: c.name for c in node.columns if isinstance(c.expr, Column)}
    key = _key(node.input, catalog)
    return tuple(shown[name] for name in key) if set(key) <= set(shown) else ()
