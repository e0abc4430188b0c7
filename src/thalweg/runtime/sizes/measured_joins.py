"""How many rows joins have, by making them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from thalweg.aggregates.count import COUNT
from thalweg.estimate.join_query import JoinQuery
from thalweg.exec.expressions.constant_value import constant_value
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.plan import functions as resolved
from thalweg.plan.bound_query import BoundQuery, QueryOptions
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import AggregateCall, Column, Predicate, columns_of
from thalweg.plan.logical import (
    Aggregate,
    Emit,
    EmitKind,
    Filter,
    Join,
    NamedAggregate,
    Node,
    Scan,
)
from thalweg.plan.planner import plan_query
from thalweg.plan.rewrites import optimize
from thalweg.plan.types import BIGINT
from thalweg.runtime.invoke.row_fetch import RowFetch
from thalweg.store.storage import MemoryStorage

_COUNT = "n"


class MeasuredJoins:
    """Runs sub-joins of a query over given rows (`tables`, by alias) and counts."""

    def __init__(
        self,
        query: JoinQuery,
        scans: Mapping[str, Scan],
        tables: Mapping[str, pa.Table],
        functions: Mapping[str, UserFunction],
    ) -> None:
        self._query = query
        self._scans = scans
        self._tables = tables
        self._functions = functions
        self._fetch = RowFetch(MemoryStorage())

    def count(self, aliases: Sequence[str]) -> int:
        """The rows of the join of some inputs, with all conditions on them alone."""
        chosen = [r for r in self._query.inputs if r.alias in aliases]
        members = [self._member(r.alias, r.predicates) for r in chosen]
        joined = members[0] if len(members) == 1 else Join(tuple(members), self._across(aliases))
        call = AggregateCall(BIGINT, False, COUNT)
        root = Emit(Aggregate(joined, (), (NamedAggregate(_COUNT, call),)), EmitKind.RELATION)
        bound = optimize(BoundQuery(root, QueryOptions(unbounded=True), ""), constant_value)
        plan = plan_query(bound, Catalog())
        tables = [self._tables[leaf.alias] for leaf in plan.leaves]
        found = self._fetch.evaluate(plan, tables, self._functions)
        return 0 if found is None or not found.num_rows else int(found.column(0)[0].as_py())

    def _member(self, alias: str, predicates: tuple[Predicate, ...]) -> Node:
        scan = self._scans[alias]
        table = Scan(scan.relation, alias, scan.fields, is_table=True)
        return Filter(table, predicates) if predicates else table

    def _across(self, aliases: Sequence[str]) -> tuple[Predicate, ...]:
        """The equalities and other conditions between some inputs."""
        found: list[Predicate] = []
        for attribute in self._query.attributes:
            columns = [
                self._column(r.alias, r.column(attribute.name))
                for r in self._query.inputs
                if r.alias in aliases and attribute.name in r.attributes
            ]
            operator = "<=>" if attribute.null_safe else "="
            for other in columns[1:]:
                expr = resolved.resolve(operator, [columns[0], other])
                found.append(Predicate(expr, len(found), str(expr)))
        known = set(aliases)
        for predicate in self._query.residual:
            if {c.split(".", 1)[0] for c in columns_of(predicate.expr)} <= known:
                found.append(Predicate(predicate.expr, len(found), predicate.text))
        return tuple(found)

    def _column(self, alias: str, name: str) -> Column:
        fields = {f.name: f for f in self._scans[alias].fields}
        return fields[f"{alias}.{name}"].column()
