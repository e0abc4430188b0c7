"""From the text of a query to its plan. Names are looked up; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from thalweg.errors import BindError
from thalweg.exec.expressions.constant_value import constant_value
from thalweg.exec.relations.emit import SIGN
from thalweg.lang.binding.binder import bind, bind_relation, check
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import Catalog, NotedCatalog, Relation
from thalweg.plan.joins.join_order import Orders
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.plan.planner import plan_query
from thalweg.plan.rewrites import optimize
from thalweg.plan.sharing.shared_filter import StandingFilter, standing_filter
from thalweg.plan.sharing.shared_join import PAIRS, pairs_of
from thalweg.plan.types import to_arrow
from thalweg.store.packs import TIME

_NO_OPTIONS: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Planned:
    """A query that is bound and planned by the names as they stood (`reads`). `altered` are options
    that ALTER QUERY has set and that still hold; `script` is the text that places point into."""

    name: str
    text: str
    bound: BoundQuery
    plan: QueryPlan
    reads: Mapping[str, Relation]
    query: ast.Query
    script: str
    altered: Mapping[str, Any] = field(default_factory=lambda: _NO_OPTIONS)


@contextmanager
def _refusing_too_deep() -> Iterator[None]:
    """Plans are trees that are walked by recursion, and Python's has an end."""
    try:
        yield
    except RecursionError:
        raise BindError(
            "the query is nested too deeply", remedy="give parts of it names by CREATE VIEW"
        ) from None


class Planner:
    """Binds and plans by the names of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def bind(self, text: str) -> BoundQuery:
        """The optimised logical plan of a SELECT."""
        with _refusing_too_deep():
            return optimize(bind(parse_query(text), self.catalog, text), constant_value)

    def relation(self, text: str) -> BoundQuery:
        """The optimised logical plan of a SELECT that need not be able to run continuously."""
        with _refusing_too_deep():
            bound = bind_relation(parse_query(text), self.catalog, text)
            return optimize(bound, constant_value)

    def physical(self, bound: BoundQuery, orders: Orders | None = None) -> QueryPlan:
        with _refusing_too_deep():
            return plan_query(bound, self.catalog, orders)

    def plan(self, text: str) -> QueryPlan:
        return self.physical(self.bind(text))

    def planned(
        self,
        name: str,
        query: ast.Query,
        text: str,
        script: str,
        altered: Mapping[str, Any] = _NO_OPTIONS,
    ) -> Planned:
        """Bind and plan a query of this text, which stands in a script."""
        names = NotedCatalog.of(self.catalog)
        with _refusing_too_deep():
            bound = replace(optimize(bind(query, names, script), constant_value), text=text)
            if altered:
                bound = replace(bound, options=replace(bound.options, **altered))
            plan = plan_query(bound, names)
        return Planned(name, text, bound, plan, names.asked, query, script, altered)

    def planned_again(self, name: str, text: str, altered: Mapping[str, Any]) -> Planned:
        """The plan of a query that is known by its text; it does not read itself."""
        views = self.catalog.views
        own = views.pop(name, None)
        try:
            return self.planned(name, parse_query(text), text, text, altered)
        finally:
            if own is not None:
                views[name] = own

    def is_current(self, planned: Planned) -> bool:
        """Whether all names it was made from still stand for the same."""
        return all(self.catalog.relation(n) == r for n, r in planned.reads.items())

    def check(self, query: ast.Query, text: str) -> frozenset[str]:
        """Refuse a query that cannot be bound; the names it was made from."""
        names = NotedCatalog.of(self.catalog)
        check(query, names, text)
        return frozenset(names.asked)

    # -- queries that are run together -------------------------------------------------------

    def cohort_plan(self, about: str, text: str) -> QueryPlan:
        """The plan of a cohort, from what it is about and the text of a member."""
        if not about.startswith(PAIRS):
            return self.plan(f"SELECT ISTREAM * FROM {about}")
        found = pairs_of(self.bind(text), self.catalog)
        assert found is not None
        return found.plan

    def filter_of(self, text: str) -> StandingFilter | None:
        """What a query filters a stream by, if it does nothing else."""
        return standing_filter(self.plan(text))


def output_schema(bound: BoundQuery) -> pa.Schema:
    """The columns, `__ts`, and `__sign` for relations."""
    fields = [pa.field(f.name, to_arrow(f.type)) for f in bound.schema]
    fields.append(pa.field(TIME, pa.timestamp("us", "UTC")))
    if bound.root.kind is EmitKind.RELATION:
        fields.append(pa.field(SIGN, pa.int8()))
    return pa.schema(fields)
