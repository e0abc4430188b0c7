"""The part of a SELECT whose order is free: inner joins at the beginning of FROM.

Sources joined by commas, JOIN and CROSS JOIN may be joined in any order. What LEFT, SEMI and ANTI
joins add behind them stays behind them; of a FROM that holds other joins nothing is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from thalweg.estimate.equalities import IMPLIED, equated, join_query
from thalweg.estimate.join_query import JoinQuery
from thalweg.lang.binding.binder import inner_join
from thalweg.lang.binding.conditions import Conjunct
from thalweg.lang.binding.visible import Visible
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Column, Literal, Predicate, columns_of
from thalweg.plan.types import BOOLEAN

_INNER = ("INNER", "CROSS")
_BEHIND = ("LEFT", "SEMI", "LEFT SEMI", "ANTI", "LEFT ANTI")
_UNKNOWN = Predicate(Literal(BOOLEAN, False, True), 0)
"""A condition of which nothing is known: it may restrict every sub-join."""


@dataclass(frozen=True, slots=True)
class WrittenSource:
    """A source of FROM: its alias, the name of its relation (None: a subquery), and its text."""

    alias: str
    relation: str | None
    text: str


@dataclass(frozen=True, slots=True)
class WrittenJoin:
    """A SELECT and its free inner join.

    `query` is the join by aliases, where predicates of inputs are what restricts one input alone;
    `filters` has their texts. `equalities` are conjuncts that the join's attributes stand for.
    `behind` is the text of the joins that stay behind it.
    """

    text: str
    select: ast.Select
    sources: tuple[WrittenSource, ...]
    columns: Mapping[str, Column]
    query: JoinQuery
    filters: Mapping[str, tuple[str, ...]]
    conjuncts: tuple[Conjunct, ...]
    equalities: tuple[Conjunct, ...]
    behind: str

    def source(self, alias: str) -> WrittenSource:
        return next(s for s in self.sources if s.alias == alias)


def written_join(select: ast.Select, catalog: Catalog, text: str) -> WrittenJoin | None:
    """The free inner join of a SELECT; None if there are not at least three inputs to order, or
    their text cannot be taken apart."""
    found = _free(select, text)
    if found is None:
        return None
    items, behind = found
    if behind and any(isinstance(i, exp.Star) for i in select.items):
        return None
    sources = [s for item in items for s in ast.sources_of(item)]
    if len(sources) < 3 or any(s.window or s.clause for s in sources):
        return None
    visible, conjuncts = inner_join(select, items, catalog, text)
    if any(c.span is None for c in conjuncts):
        return None
    written = tuple(_written(s, v, text) for s, v in zip(sources, visible, strict=True))
    columns = {f.name: f.column() for v in visible for f in v.fields}
    equalities = tuple(c for c in conjuncts if _is_absorbed(c))
    bound = [Predicate(c.expr, i) for i, c in enumerate(conjuncts) if c.expr is not None]
    others = [_UNKNOWN for c in conjuncts if c.expr is None]
    query = join_query({s.alias: s.alias for s in written}, bound, others)
    return WrittenJoin(
        text, select, written, columns, _named(query, written), _filters(query, conjuncts, text),
        conjuncts, equalities, behind,
    )  # fmt: skip


def _free(select: ast.Select, text: str) -> tuple[tuple[ast.FromItem, ...], str] | None:
    items, behind = select.from_items, ""
    if len(items) == 1:
        item, at = items[0], 0
        while isinstance(item, ast.JoinRef) and item.kind in _BEHIND:
            item, at = item.left, item.at
        if at:
            before = text[select.places.from_at : at]
            if before.count("(") != before.count(")"):
                return None
            items, behind = (item,), text[at : select.places.from_end]
    return (items, behind) if all(map(_is_inner, items)) else None


def _is_inner(item: ast.FromItem) -> bool:
    if isinstance(item, ast.Source):
        return True
    return item.kind in _INNER and _is_inner(item.left) and _is_inner(item.right)


def _written(source: ast.Source, visible: Visible, text: str) -> WrittenSource:
    return WrittenSource(visible.alias, source.name, text[source.at : source.window_at[0]])


def _is_absorbed(conjunct: Conjunct) -> bool:
    return conjunct.expr is not None and _across(conjunct) and equated(conjunct.expr) is not None


def _across(conjunct: Conjunct) -> bool:
    assert conjunct.expr is not None
    return len({c.split(".", 1)[0] for c in columns_of(conjunct.expr)}) == 2


def _named(query: JoinQuery, written: tuple[WrittenSource, ...]) -> JoinQuery:
    """The join with the names of relations instead of aliases."""
    inputs = tuple(
        replace(r, relation=s.relation or f"({s.alias})")
        for r, s in zip(query.inputs, written, strict=True)
    )
    return replace(query, inputs=inputs)


def _filters(
    query: JoinQuery, conjuncts: tuple[Conjunct, ...], text: str
) -> dict[str, tuple[str, ...]]:
    """Per input the texts of its filters: as they are written, and equalities of two of its columns
    that are implied."""
    found: dict[str, tuple[str, ...]] = {}
    for one in query.inputs:
        texts: dict[str, None] = {}
        for p in one.predicates:
            pair, span = equated(p.expr), None
            if p.position != IMPLIED:
                span = conjuncts[p.position].span
            if span is not None:
                texts[f"({text[slice(*span)]})"] = None
            elif pair is not None:
                operator = getattr(p.expr, "function", "=")
                texts[f"{quoted(pair[0].name)} {operator} {quoted(pair[1].name)}"] = None
        found[one.alias] = tuple(texts)
    return found


def quoted(column: str) -> str:
    """`alias.column` as Spark SQL names it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in column.split(".", 1))
