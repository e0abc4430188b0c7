"""SELECT over sources with MODEL: the relations that it becomes.

Conditions without modeled columns join and filter segments as they do other rows; those with them
are solved for time. What is selected is either functions of time, or, with SAMPLE or beside a tuple
stream, their values at single instants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from thalweg.errors import BindError, NotAvailableYet, ThalwegError
from thalweg.lang.binding.bound_parts import Found, Items
from thalweg.lang.binding.conditions import conjuncts_of
from thalweg.lang.binding.group_by import Item
from thalweg.lang.binding.in_subqueries import filtered
from thalweg.lang.binding.own_select import SelectParts
from thalweg.lang.binding.query_options import query_options
from thalweg.lang.binding.scope import Scope
from thalweg.lang.binding.select_items import selected_items
from thalweg.lang.syntax import exp
from thalweg.models.functions.conditions import Condition, Every, condition_of
from thalweg.models.functions.curve import Curve, Curves
from thalweg.models.functions.error_bounds import certain, possible
from thalweg.models.functions.formulas import (
    SAMPLED,
    NotSolvable,
    degrees,
    derivatives_in,
    varies,
    without_root,
)
from thalweg.models.language.contract import Contract, contract_of
from thalweg.models.language.error_clause import ErrorClause
from thalweg.models.language.grouped_select import GroupedSelect
from thalweg.models.language.sample_clause import SampleClause
from thalweg.models.language.windows import slides_of, windows_of
from thalweg.models.relations.fitted import FitModel
from thalweg.models.relations.mapped import Map
from thalweg.models.relations.modeled import Modeled
from thalweg.models.relations.predicted import FROM, VALIDITY, Ending, Predict
from thalweg.models.relations.sampled import Evaluate, Sample
from thalweg.models.relations.shown import Show
from thalweg.models.relations.solved import MAYBE, Solve
from thalweg.plan import functions
from thalweg.plan.expr import Expr, Literal, columns_of
from thalweg.plan.logical import EmitKind, Named, Node, Project, Window, transform, walk
from thalweg.plan.types import BOOLEAN
from thalweg.windows.range import NOW


class ModelSelect:
    """Binds a SELECT in whose FROM there is a source with modeled columns."""

    def applies(self, items: Items) -> bool:
        return any(source.curves for source in items.sources)

    def found(self, parts: SelectParts) -> Found:
        return _Select(parts, Scope(parts.catalog, tuple(parts.items.sources), parts.text)).found()


@dataclass(slots=True)
class _Select:
    parts: SelectParts
    scope: Scope
    contract: Contract | None = None
    made: Curves | None = None
    """The modeled columns of groups, where there are any."""

    @property
    def curves(self) -> Curves:
        if self.made is not None:
            return self.made
        return tuple(c for source in self.parts.items.sources for c in source.curves)

    def fail(self, error: ThalwegError, node: exp.Expr | int | None = None) -> NoReturn:
        self.scope.fail(error, self.parts.query.at if node is None else node)

    def found(self) -> Found:
        self._refuse_others()
        selected = selected_items(self.parts.query, self.scope)
        grouped = GroupedSelect(self.parts, self.scope, self.curves, selected)
        if grouped.applies:
            self._refuse_beside_groups()
        clause = next((c for c in self.parts.query.clauses if isinstance(c, ErrorClause)), None)
        if clause is not None:
            self.contract = contract_of(clause, self.parts.items, self.scope, selected)
        plain, modeled = self._conditions()
        body = filtered(self.parts.items, self.scope, self.parts.bind, plain)
        options = query_options(self.parts.query, self.parts.text)
        if options.release == "eager":
            body = self._predicted(modeled, body)
        else:
            body = self._solved(
                modeled, body, marks_points=self._samples_rows and not grouped.applies
            )
        exprs = [e for _, e, _ in selected] + list(grouped.read())
        read = self._read(exprs, plain, body)
        body = transform(body, lambda n: self._narrowed(n, read))
        if grouped.applies:
            groups = grouped.groups(body)
            self.made, selected, body = groups.curves, groups.selected, groups.node
        return self._selected(selected, body)

    @property
    def _samples_rows(self) -> bool:
        return any(isinstance(c, SampleClause) for c in self.parts.query.clauses)

    def _solved(
        self, modeled: list[tuple[Expr, exp.Expr]], body: Node, *, marks_points: bool
    ) -> Node:
        if not modeled:
            return body
        if self.contract is None:
            whole = self._all(modeled, condition_of)
            return Solve(body, whole, self.curves, marks_points=marks_points)
        errors = self.contract.errors
        return Solve(
            body,
            self._all(modeled, lambda e, c: possible(e, c, errors)),
            self.curves,
            self._all(modeled, lambda e, c: certain(e, c, errors)),
            marks_points,
        )

    def _predicted(self, modeled: list[tuple[Expr, exp.Expr]], body: Node) -> Node:
        """The spans ahead in which the conditions hold."""
        sources = [n for n in walk(body) if isinstance(n, (Modeled, FitModel))]
        key = tuple(k for source in sources for k in source.key)
        endings = tuple(e for source in sources for e in _endings(source))
        condition = sure = None
        if modeled and self.contract is not None:
            errors = self.contract.errors
            condition = self._all(modeled, lambda e, c: possible(e, c, errors))
            sure = self._all(modeled, lambda e, c: certain(e, c, errors))
        elif modeled:
            condition = self._all(modeled, condition_of)
        return Predict(body, condition, self.curves, key, endings, sure)

    def _all(
        self,
        modeled: list[tuple[Expr, exp.Expr]],
        meaning: Callable[[Expr, dict[str, Curve]], Condition],
    ) -> Condition:
        found = []
        for bound, node in modeled:
            try:
                found.append(meaning(bound, self._known))
            except NotSolvable as error:
                self.fail(BindError(str(error), remedy=error.remedy), node)
        return found[0] if len(found) == 1 else Every(tuple(found))

    # -- WHERE ---------------------------------------------------------------------------------

    def _conditions(self) -> tuple[tuple[exp.Expr, ...], list[tuple[Expr, exp.Expr]]]:
        """Those without modeled columns as they are written; the others bound, to be solved."""
        items, query = self.parts.items, self.parts.query
        written = [c for node in (*items.conditions, *query.conditions) for c in conjuncts_of(node)]
        items.conditions.clear()
        plain: list[exp.Expr] = []
        solved: list[tuple[Expr, exp.Expr]] = []
        for node in written:
            if "query" in node.meta or any("query" in n.meta for n in node.walk()):
                plain.append(node)
                continue
            bound = self.scope.condition(node)
            if varies(bound, self._known):
                solved.append((bound, node))
            else:
                plain.append(node)
        return tuple(plain), solved

    @property
    def _known(self) -> dict[str, Curve]:
        return dict(self.curves)

    def _read(self, exprs: list[Expr], plain: tuple[exp.Expr, ...], body: Node) -> frozenset[str]:
        """The columns without a model that the query reads."""
        exprs = exprs + [self.scope.condition(n) for n in plain if "query" not in n.meta]
        names = {n for e in exprs for n in columns_of(e)}
        if isinstance(body, (Solve, Predict)):
            names |= set(body.reads())
        return frozenset(names)

    def _narrowed(self, node: Node, read: frozenset[str]) -> Node:
        """A modeled source without the columns that nothing reads, and with its bounds."""
        if not isinstance(node, (Modeled, FitModel)):
            return node
        plain = tuple(f for f in node.plain if f.name in read or f.name in node.key)
        if self.contract is not None and isinstance(node, Modeled):
            bounds = self.contract.bounds
            attributes = tuple(replace(a, bound=bounds.get(a.name)) for a in node.attributes)
            return replace(node, plain=plain, attributes=attributes)
        return replace(node, plain=plain)

    # -- SELECT --------------------------------------------------------------------------------

    def _selected(self, selected: list[Item], body: Node) -> Found:
        query, options = self.parts.query, query_options(self.parts.query, self.parts.text)
        columns = tuple(Named(name, expr) for name, expr, _ in selected) + self._maybe(body)
        if isinstance(body, Predict):
            return self._predictions(columns, body)
        for _, expr, node in selected:
            for call in derivatives_in(expr):
                self._refuse_unsolvable(call, node)
        sample = next((c for c in query.clauses if isinstance(c, SampleClause)), None)
        if sample is not None:
            return Found(
                self._samples(sample, columns, body), EmitKind.ISTREAM, options, into=query.into
            )
        kind = query.kind or EmitKind.RELATION
        if self._has_tuples():
            kind = EmitKind.ISTREAM if kind is EmitKind.RSTREAM else kind
            return Found(Evaluate(body, columns, self.curves), kind, options, into=query.into)
        if kind is EmitKind.RSTREAM:
            slides = slides_of(windows_of(self.parts.items.sources, self.fail), body)
            if slides:
                sampled = Evaluate(Sample(body, slides), columns, self.curves)
                return Found(sampled, EmitKind.ISTREAM, options, into=query.into)
            self.fail(
                BindError(
                    "RSTREAM over models needs instants to emit at",
                    remedy="add SAMPLE EVERY 1 SECOND, a window with SLIDE, or a tuple stream s "
                    "[NOW] that is joined",
                )
            )
        return self._functions(selected, columns, body, kind)

    def _predictions(self, columns: tuple[Named, ...], body: Predict) -> Found:
        query, options = self.parts.query, query_options(self.parts.query, self.parts.text)
        if query.kind not in (None, EmitKind.ISTREAM) or any(
            isinstance(c, SampleClause) for c in query.clauses
        ):
            self.fail(
                BindError(
                    "predictions are a stream of their own",
                    remedy="drop SAMPLE and the word before the columns, or release = 'eager'",
                )
            )
        validity = tuple(Named(f.name, f.column()) for f in VALIDITY)
        node = Evaluate(body, (*columns, *validity), self.curves, FROM)
        return Found(node, EmitKind.ISTREAM, options, into=query.into)

    def _maybe(self, body: Node) -> tuple[Named, ...]:
        """With ERROR, whether a row is not certain: decided here, or in subqueries."""
        known = [f.column() for f in body.schema if f.name.rsplit(".", 1)[-1] == MAYBE]
        if self.contract is None and not known:
            return ()
        found: Expr = Literal(BOOLEAN, False, False) if not known else known[0]
        for column in known[1:]:
            found = functions.resolve("or", [found, column])
        return (Named(MAYBE, found),)

    def _samples(self, sample: SampleClause, columns: tuple[Named, ...], body: Node) -> Node:
        if self.parts.query.kind not in (None, EmitKind.RSTREAM):
            self.fail(
                BindError(
                    f"SAMPLE gives RSTREAM, not {self.parts.query.kind.value}",
                    remedy="drop SAMPLE, or the word before the columns",
                )
            )
        try:
            return Evaluate(Sample(body, (sample.period(),)), columns, self.curves)
        except BindError as error:
            self.fail(error)

    def _has_tuples(self) -> bool:
        """Whether a stream of tuples says at which instants models are read."""
        members = self.parts.items.members
        return any(isinstance(m, Window) and m.window == NOW for m in members)

    def _functions(
        self, selected: list[Item], columns: tuple[Named, ...], body: Node, kind: EmitKind
    ) -> Found:
        query, options = self.parts.query, query_options(self.parts.query, self.parts.text)
        for _, expr, node in selected:
            self._refuse_unsolvable(expr, node)
        if not any(varies(c.expr, self._known) for c in columns):
            return Found(Project(body, columns), kind, options, into=query.into)
        made = Map(body, columns, self.curves)
        return Found(
            made, kind, options, into=query.into, curves=made.made,
            finish=lambda node: Show(node, made.made),
        )  # fmt: skip

    def _refuse_unsolvable(self, expr: Expr, node: exp.Expr) -> None:
        try:
            degrees(without_root(expr, self._known)[0], self._known)
        except NotSolvable as error:
            self.fail(BindError(str(error), remedy=error.remedy), node)

    # -- what does not go together with models ---------------------------------------------------

    def _refuse_beside_groups(self) -> None:
        if self.parts.query.clauses and any(
            isinstance(c, ErrorClause) for c in self.parts.query.clauses
        ):
            self.fail(
                NotAvailableYet(
                    "ERROR beside aggregates is not available yet",
                    remedy="leave ERROR out, or state it in a query without aggregates",
                )
            )
        if query_options(self.parts.query, self.parts.text).release == "eager":
            self.fail(
                NotAvailableYet(
                    "predictions of aggregates are not available yet",
                    remedy="leave release = 'eager' out, or predict without aggregates",
                )
            )
        maybe = [f for s in self.parts.items.sources for f in s.fields if f.name.endswith(MAYBE)]
        if maybe:
            self.fail(
                NotAvailableYet(
                    "aggregates over rows that may be are not available yet",
                    remedy="leave ERROR of the subquery out",
                )
            )
        if self._has_tuples():
            self.fail(
                BindError("tuples at single instants are not aggregated as models", remedy=SAMPLED)
            )

    def _refuse_others(self) -> None:
        query = self.parts.query
        windows_of(self.parts.items.sources, self.fail)
        for present, what in (
            (query.distinct, "DISTINCT"),
            (query.order_by, "ORDER BY"),
            (query.limit is not None, "LIMIT"),
        ):
            if present:
                self.fail(BindError(f"{what} is not solved over models", remedy=SAMPLED))
        for clause in query.clauses:
            if not isinstance(clause, (SampleClause, ErrorClause)):
                self.fail(BindError("this clause is not for models", remedy=SAMPLED))


def _endings(source: Modeled | FitModel) -> tuple[Ending, ...]:
    """When segments of a source end by themselves."""
    if isinstance(source, FitModel):
        return (Ending(source.start, source.horizon, source.every),)
    return () if source.horizon is None else (Ending(source.start, source.horizon),)
