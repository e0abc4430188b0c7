"""What ERROR promises: bounds of the modeled columns of a query's sources, and with them of all
that is made of these.

A bound of a result is given to its inputs by static Lipschitz factors: `n` of them get an n-th
each, divided by how much the result moves with them. Of several bounds of a column the tightest
counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from thalweg.errors import BindError
from thalweg.lang.binding.bound_parts import Items
from thalweg.lang.binding.group_by import Item
from thalweg.lang.binding.scope import Scope
from thalweg.lang.syntax import exp
from thalweg.models.functions.curve import Curves
from thalweg.models.functions.error_bounds import number, share_of
from thalweg.models.functions.formulas import NotSolvable
from thalweg.models.functions.linear_factors import linear_factors
from thalweg.models.language.error_clause import ErrorBound, ErrorClause
from thalweg.models.relations.fitted import FitModel
from thalweg.models.relations.modeled import Modeled
from thalweg.models.validation import Bound
from thalweg.plan.expr import Column, Expr
from thalweg.plan.logical import Node
from thalweg.plan.logical import walk as walk_nodes
from thalweg.plan.types import DOUBLE


@dataclass(frozen=True, slots=True)
class Contract:
    """`bounds` are those within which sources absorb tuples, by column; `errors` how far columns
    may be from the true values (None: nothing is known of it)."""

    bounds: Mapping[str, Bound]
    errors: Mapping[str, Expr | None]


def contract_of(
    clause: ErrorClause,
    items: Items,
    scope: Scope,
    selected: Sequence[Item],
    integral: float | None = None,
) -> Contract:
    """The bounds of a query; an integral in it moves so many times as much as what it is of (None:
    nothing is known of it)."""
    binder = _Contract(items, scope, selected, integral)
    for bound in clause.bounds:
        binder.add(bound)
    return binder.made()


class _Contract:
    def __init__(
        self, items: Items, scope: Scope, selected: Sequence[Item], integral: float | None
    ) -> None:
        self._integral = integral
        self._scope = scope
        self._selected = selected
        self._sources = [n for m in items.members for n in _models(m)]
        self._curves: Curves = tuple(c for s in items.sources for c in s.curves)
        self._bounds: dict[str, Bound] = {}

    def add(self, bound: ErrorBound) -> None:
        if bound.within < 0:
            self._fail("a bound is not below zero", "write WITHIN 0.5, or WITHIN 0", bound)
        result = self._result(bound)
        if result is None or isinstance(result, Column):
            name = self._column(bound) if result is None else str(result)
            self._bound(name, Bound(bound.within, bound.relative), bound)
            return
        if bound.relative:
            self._fail(
                "the result may be zero, where a relative bound allows nothing",
                "write an absolute bound, or state relative ones of the columns it is made of",
                bound,
            )
        self._share(result, bound)

    def _result(self, bound: ErrorBound) -> Expr | None:
        """The column of SELECT of this name."""
        node = bound.attribute
        if not isinstance(node, exp.Column) or node.table:
            return None
        found = (e for name, e, _ in self._selected if name.lower() == node.name.lower())
        return next(found, None)

    def _column(self, bound: ErrorBound) -> str:
        found = self._scope.bind(bound.attribute)
        if isinstance(found, Column):
            return found.name
        self._fail("ERROR names a column", "name a modeled column, or one of SELECT", bound)

    def _share(self, result: Expr, bound: ErrorBound) -> None:
        """Give a bound of a result to the columns it is made of."""
        try:
            factors = linear_factors(result, dict(self._curves), self._integral)
        except NotSolvable as error:
            self._fail(str(error), error.remedy, bound)
        for name, factor in factors.items():
            if factor:
                self._bound(name, Bound(bound.within / (len(factors) * factor)), bound)

    def _bound(self, name: str, wanted: Bound, bound: ErrorBound) -> None:
        for source in self._sources:
            if name not in {a.name for a in source.attributes}:
                continue
            if isinstance(source, FitModel):
                self._check_fit(source, name, wanted, bound)
            elif name not in {f.name for f in source.input.schema}:
                self._fail(
                    f"{name} is no column of the stream, so that tuples cannot be held against it",
                    "model a column of the stream",
                    bound,
                )
            self._tighten(name, wanted, bound)
            return
        self._fail(
            f"{name} is no modeled column of a source here",
            "state the bound where MODEL stands, in the subquery",
            bound,
        )

    def _check_fit(self, source: FitModel, name: str, wanted: Bound, bound: ErrorBound) -> None:
        fit = next(a.fit for a in source.attributes if a.name == name)
        honoured = fit.relative == wanted.relative and fit.within <= (wanted.within or 0)
        if not honoured and fit.within:
            kept = f"{fit.within:g}{'%' if fit.relative else ''}"
            self._fail(
                f"{name} is fitted within {kept}, which cannot honour this bound",
                "fit it within a tighter bound, or allow more",
                bound,
            )

    def _tighten(self, name: str, wanted: Bound, bound: ErrorBound) -> None:
        known = self._bounds.get(name)
        if known is not None and known.relative != wanted.relative:
            self._fail(
                f"{name} has an absolute bound and a relative one", "keep one of them", bound
            )
        if known is None or (wanted.within or 0) < (known.within or 0):
            self._bounds[name] = wanted

    def _fail(self, what: str, remedy: str, bound: ErrorBound) -> NoReturn:
        self._scope.fail(BindError(what, remedy=remedy), bound.attribute)

    def made(self) -> Contract:
        errors: dict[str, Expr | None] = {}
        for source in self._sources:
            if isinstance(source, FitModel):
                errors |= {a.name: _error(a.name, a.bound) for a in source.attributes}
                continue
            names = [a.name for a in source.attributes]
            if any(n in self._bounds for n in names):
                for name in names:
                    bound = self._bounds.get(name)
                    errors[name] = None if bound is None else _error(name, bound)
        return Contract(self._bounds, errors)


def _models(node: Node) -> list[Modeled | FitModel]:
    return [n for n in walk_nodes(node) if isinstance(n, (Modeled, FitModel))]


def _error(name: str, bound: Bound) -> Expr:
    within = bound.within or 0.0
    if bound.relative and within:
        return share_of(within, Column(DOUBLE, False, name))
    return number(within)
