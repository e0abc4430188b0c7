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
from thalweg.lang.binding.conditions import conjuncts_of, written_condition
from thalweg.lang.binding.group_by import Item
from thalweg.lang.binding.in_subqueries import filtered
from thalweg.lang.binding.own_select import SelectParts
from thalweg.lang.binding.query_options import query_options
from thalweg.lang.binding.scope import Scope
from thalweg.lang.binding.select_items import selected_items
from thalweg.lang.syntax import exp
from thalweg.models.fitting.contract import METHODS
from thalweg.models.functions.conditions import Condition, Every, condition_of
from thalweg.models.functions.curve import Curve, Curves
from thalweg.models.functions.error_bounds import certain, possible
from thalweg.models.functions.formulas import (
    SAMPLED,
    NotSolvable,
    derivatives_in,
    form_of,
    varies,
)
from thalweg.models.language.cases import mapped
from thalweg.models.language.contract import Contract, contract_of
from thalweg.models.language.error_clause import ErrorClause
from thalweg.models.language.grouped_select import GroupedSelect
from thalweg.models.language.sample_clause import SampleClause
from thalweg.models.language.windows import slides_of, windows_of
from thalweg.models.relations.endings import Ending
from thalweg.models.relations.fitted import FitModel, FittedAttribute
from thalweg.models.relations.mapped import is_instant
from thalweg.models.relations.modeled import Modeled
from thalweg.models.relations.predicted import FROM, VALIDITY, Predict
from thalweg.models.relations.sampled import Evaluate, Sample
from thalweg.models.relations.shown import Show
from thalweg.models.relations.solved import MAYBE, Solve
from thalweg.models.relations.thinned import thinned
from thalweg.plan import functions
from thalweg.plan.expr import Expr, Literal, columns_of
from thalweg.plan.logical import EmitKind, Named, Node, Project, Window, walk
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
            integral = grouped.integral_factor if grouped.applies else None
            self.contract = contract_of(clause, self.parts.items, self.scope, selected, integral)
            grouped.contract = self.contract
        plain, modeled = self._conditions()
        if grouped.applies and clause is not None and modeled:
            self.fail(
                BindError(
                    "with ERROR it is not known which instants a condition leaves to aggregate",
                    remedy="leave ERROR out, or aggregate without a condition on modeled columns",
                ),
                modeled[0][1],
            )
        exprs = [e for _, e, _ in selected] + list(grouped.read()) + [e for e, _ in modeled]
        read = self._read(exprs, plain)
        members = self.parts.items.members
        members[:] = [self._narrowed(m, read) for m in members]
        body = filtered(self.parts.items, self.scope, self.parts.bind, plain)
        options = query_options(self.parts.query, self.parts.text)
        if options.release == "eager":
            body = self._predicted(modeled, body)
        else:
            body = self._solved(
                modeled, body, marks_points=self._samples_rows and not grouped.applies
            )
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
            return Solve(body, whole, self.curves, None, marks_points, _ends(body), _text(modeled))
        errors = self.contract.errors
        return Solve(
            body,
            self._all(modeled, lambda e, c: possible(e, c, errors)),
            self.curves,
            self._all(modeled, lambda e, c: certain(e, c, errors)),
            marks_points,
            _ends(body),
            _text(modeled),
        )

    def _predicted(self, modeled: list[tuple[Expr, exp.Expr]], body: Node) -> Node:
        """The spans ahead in which the conditions hold."""
        sources = [n for n in walk(body) if isinstance(n, (Modeled, FitModel))]
        if not all(any(s is m for m in self.parts.items.members) for s in sources):
            self.fail(
                NotAvailableYet(
                    "predictions over models of a subquery are not available yet",
                    remedy="write MODEL in the FROM of this SELECT, over the stream or over a view "
                    "without models",
                )
            )
        key = tuple(k for source in sources for k in source.key)
        if not key:
            self.fail(
                BindError(
                    "segments that a view keeps lie in the past: there is nothing to predict",
                    remedy="read the stream itself, with MODEL",
                )
            )
        endings = tuple(e for source in sources for e in _endings(source))
        condition = sure = None
        if modeled and self.contract is not None:
            errors = self.contract.errors
            condition = self._all(modeled, lambda e, c: possible(e, c, errors))
            sure = self._all(modeled, lambda e, c: certain(e, c, errors))
        elif modeled:
            condition = self._all(modeled, condition_of)
        return Predict(body, condition, self.curves, key, endings, sure, _text(modeled))

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
            if any("query" in n.meta for n in node.walk()):
                self._refuse_membership(node)
                plain.append(node)
                continue
            bound = self.scope.condition(node)
            if varies(bound, self._known):
                solved.append((bound, node))
            else:
                plain.append(node)
        return tuple(plain), solved

    def _refuse_membership(self, node: exp.Expr) -> None:
        for operand in _operands(node):
            if varies(self.scope.bind(operand), self._known):
                self.fail(
                    BindError("IN (SELECT ...) of a modeled column is not solved", remedy=SAMPLED),
                    node,
                )

    @property
    def _known(self) -> dict[str, Curve]:
        return dict(self.curves)

    def _read(self, exprs: list[Expr], plain: tuple[exp.Expr, ...]) -> frozenset[str]:
        """The columns that the query reads."""
        for node in plain:
            asked = _operands(node)
            exprs += [self.scope.bind(o) for o in asked] or [self.scope.condition(node)]
        return frozenset(name for e in exprs for name in columns_of(e))

    def _narrowed(self, node: Node, read: frozenset[str]) -> Node:
        """A modeled source without the columns that nothing reads, and with its bounds."""
        if not isinstance(node, (Modeled, FitModel)):
            return node
        plain = tuple(f for f in node.plain if f.name in read or f.name in node.key)
        if isinstance(node, FitModel):
            return replace(node, plain=plain, attributes=self._chosen_fits(node))
        if self.contract is not None:
            bounds = self.contract.bounds
            attributes = tuple(replace(a, bound=bounds.get(a.name)) for a in node.attributes)
            return replace(node, plain=plain, attributes=attributes)
        return replace(node, plain=plain)

    def _chosen_fits(self, node: FitModel) -> tuple[FittedAttribute, ...]:
        """Fitted in the way that `WITH (fit = ...)` says."""
        method = query_options(self.parts.query, self.parts.text).fit
        if method == "auto":
            return node.attributes
        least, most = METHODS[method]
        for attribute in node.attributes:
            if not least <= attribute.fit.degree <= most:
                degrees = f"{least}" if least == most else f"{least} to {most}"
                self.fail(
                    BindError(
                        f"fit = '{method}' is for DEGREE {degrees}, not {attribute.fit.degree}",
                        remedy="leave fit out: each degree has a way of its own",
                    )
                )
        return tuple(replace(a, fit=replace(a.fit, method=method)) for a in node.attributes)

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
            windows = windows_of(self.parts.items.sources, self.fail)
            slides = slides_of(windows, self.parts.items.members, body)
            if slides:
                sampled = Evaluate(Sample(thinned(body, slides), slides), columns, self.curves)
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
            every = (sample.period(),)
            return Evaluate(Sample(thinned(body, every), every), columns, self.curves)
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
            if not is_instant(expr, self._known):
                self._refuse_unsolvable(expr, node)
        if not any(varies(c.expr, self._known) for c in columns):
            return Found(Project(body, columns), kind, options, into=query.into)
        made, curves = mapped(body, columns, self.curves)
        return Found(
            made, kind, options, into=query.into, curves=curves,
            finish=lambda node: Show(node, curves),
        )  # fmt: skip

    def _refuse_unsolvable(self, expr: Expr, node: exp.Expr) -> None:
        try:
            form = form_of(expr, self._known)
            if form.is_root and form.top > 2:
                raise NotSolvable(
                    f"{expr} is the root of a polynomial of degree {form.top}", SAMPLED
                )
        except NotSolvable as error:
            self.fail(BindError(str(error), remedy=error.remedy), node)

    # -- what does not go together with models ---------------------------------------------------

    def _refuse_beside_groups(self) -> None:
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


def _text(modeled: list[tuple[Expr, exp.Expr]]) -> str:
    """Conditions as they are written."""
    return " AND ".join(written_condition(node) for _, node in modeled)


def _ends(body: Node) -> tuple[Ending, ...]:
    """When rows of joined sources end by themselves."""
    shown = {f.name for f in body.schema}
    sources = [n for n in walk(body) if isinstance(n, (Modeled, FitModel))]
    return tuple(e for s in sources for e in _endings(s) if e.start in shown)


def _endings(source: Modeled | FitModel) -> tuple[Ending, ...]:
    """When segments of a source end by themselves."""
    if isinstance(source, FitModel):
        return (Ending(source.start, source.horizon, source.every),)
    return () if source.horizon is None else (Ending(source.start, source.horizon),)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """What is looked for in subqueries."""
    return [n.this for n in node.walk() if "query" in n.meta]
