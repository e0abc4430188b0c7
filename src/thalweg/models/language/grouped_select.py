"""Aggregates over sources with MODEL: the relations of groups, and SELECT and HAVING over them.

Arguments are functions of time first; sums, integrals and extremes of a group are functions again,
by which conditions of HAVING are solved and columns are made as over any other modeled source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NoReturn

from thalweg.errors import BindError, ThalwegError
from thalweg.lang.binding.conditions import bound_predicates, written_condition
from thalweg.lang.binding.group_by import Item, Keys, Lift, aggregates_in
from thalweg.lang.binding.own_select import SelectParts
from thalweg.lang.binding.scope import Scope
from thalweg.lang.syntax import exp
from thalweg.models.functions.conditions import Condition, Every, condition_of
from thalweg.models.functions.curve import START, Curve, Curves
from thalweg.models.functions.error_bounds import (
    NO_ERROR,
    Errors,
    certain,
    error_of,
    number,
    possible,
)
from thalweg.models.functions.formulas import SAMPLED, NotSolvable, varies
from thalweg.models.functions.linear_factors import aggregate_factor
from thalweg.models.language.cases import mapped
from thalweg.models.language.contract import Contract
from thalweg.models.language.root_totals import form_of_argument, refuse_root
from thalweg.models.language.sample_clause import SampleClause
from thalweg.models.language.windows import windows_of
from thalweg.models.polynomials import MOST_DEGREE, SECOND
from thalweg.models.relations.combined import Combine
from thalweg.models.relations.delayed import Delay
from thalweg.models.relations.enveloped import Envelope
from thalweg.models.relations.fitted import FitModel
from thalweg.models.relations.modeled import Modeled
from thalweg.models.relations.solved import Solve
from thalweg.models.relations.summed import Sum, Total
from thalweg.models.relations.summed_roots import SumRoots
from thalweg.models.relations.windowed_extremes import WindowExtremes
from thalweg.plan import functions
from thalweg.plan.expr import AggregateCall, Column, Expr, Literal, Predicate
from thalweg.plan.logical import Filter, Named, Node
from thalweg.plan.logical import walk as walk_nodes
from thalweg.plan.types import DOUBLE
from thalweg.windows.range import RangeWindow

_ADDED = ("sum", "avg", "integral", "coverage")
_EXTREME = ("min", "max")


@dataclass(frozen=True, slots=True)
class Groups:
    """The rows of groups, the columns of SELECT over them, and which of theirs are modeled."""

    node: Node
    selected: list[Item]
    curves: Curves


@dataclass(slots=True)
class GroupedSelect:
    """A SELECT with aggregates over sources with the modeled columns `curves`."""

    parts: SelectParts
    scope: Scope
    curves: Curves
    selected: list[Item]
    contract: Contract | None = None
    calls: list[AggregateCall] = field(init=False, default_factory=list)

    @property
    def _known(self) -> dict[str, Curve]:
        return dict(self.curves)

    def fail(self, error: ThalwegError, node: exp.Expr | int | None = None) -> NoReturn:
        self.scope.fail(error, self.parts.query.at if node is None else node)

    def refuse(self, message: str, remedy: str = SAMPLED) -> NoReturn:
        self.fail(BindError(message, remedy=remedy))

    @property
    def applies(self) -> bool:
        query = self.parts.query
        aggregated = any(aggregates_in(e) for _, e, _ in self.selected)
        return bool(query.group_by) or query.having is not None or aggregated

    def read(self) -> Iterator[Expr]:
        """What is read beyond the columns of SELECT."""
        query = self.parts.query
        if not self.applies:
            return
        keys, _ = Keys(query, self.scope, self.selected).found()
        yield from keys
        if query.having is not None:
            for predicate in bound_predicates(self.scope, (query.having,), aggregates=True):
                yield predicate.expr

    # -- the relations -------------------------------------------------------------------------

    def groups(self, body: Node) -> Groups:
        query = self.parts.query
        self._refuse_filters()
        keys = self._keys()
        having = (
            bound_predicates(self.scope, (query.having,), aggregates=True) if query.having else ()
        )
        exprs = [*(e for _, e, _ in self.selected), *(p.expr for p in having)]
        self.calls = list(dict.fromkeys(c for e in exprs for c in aggregates_in(e)))
        if not self.calls:
            self.refuse(
                "GROUP BY without an aggregate",
                "add one to SELECT, such as avg(x), or leave GROUP BY out",
            )
        node, curves = self._aggregated(body, keys)
        lift = Lift(self.scope, keys, keys)
        plain: list[Predicate] = []
        solved: list[Predicate] = []
        for predicate in having:
            assert query.having is not None
            lifted = replace(predicate, expr=lift(predicate.expr, query.having))
            (solved if varies(lifted.expr, dict(curves)) else plain).append(lifted)
        node = Filter(node, tuple(plain)) if plain else node
        if solved:
            samples = any(isinstance(c, SampleClause) for c in query.clauses)
            node = self._solved(node, [p.expr for p in solved], curves, marks_points=samples)
        return Groups(node, [(n, lift(e, at), at) for n, e, at in self.selected], curves)

    @property
    def integral_factor(self) -> float | None:
        """How many times as much as its argument the integral of a group moves: as long as the
        window is, in seconds, if a group is about one key."""
        grouped = {str(k) for k in self._keys()}
        if not all(key.name in grouped for key in self._entities()):
            return None
        window = self._window()
        return 1.0 if window is None or window.range is None else window.range / SECOND

    def _solved(self, node: Node, exprs: list[Expr], curves: Curves, *, marks_points: bool) -> Node:
        if self.contract is None:
            whole = self._condition(exprs, curves, condition_of)
            return Solve(node, whole, curves, marks_points=marks_points, text=self._having())
        errors = self._errors(self.contract.errors)
        return Solve(
            node,
            self._condition(exprs, curves, lambda e, c: possible(e, c, errors)),
            curves,
            self._condition(exprs, curves, lambda e, c: certain(e, c, errors)),
            marks_points,
            text=self._having(),
        )

    def _having(self) -> str:
        """HAVING as it is written."""
        having = self.parts.query.having
        return "" if having is None else written_condition(having)

    def _errors(self, errors: Errors) -> dict[str, Expr]:
        """How far aggregates may be from those over the true values."""
        found: dict[str, Expr] = {}
        for call in self.calls:
            try:
                error = error_of(call.arguments[0], errors, self._known)
                factor = aggregate_factor(call, self.integral_factor) if error != NO_ERROR else 0.0
            except NotSolvable as problem:
                self.refuse(str(problem), problem.remedy)
            if factor and not isinstance(error, Literal):
                self.refuse(
                    f"{call} has no bound, for that of its argument moves with the values",
                    "state absolute bounds: ERROR x WITHIN 0.5",
                )
            if factor and isinstance(error, Literal):
                found[str(call)] = number(error.value * factor)
        return found

    def _condition(
        self,
        exprs: list[Expr],
        curves: Curves,
        meaning: Callable[[Expr, dict[str, Curve]], Condition],
    ) -> Condition:
        try:
            found = tuple(meaning(e, dict(curves)) for e in exprs)
        except NotSolvable as error:
            self.fail(BindError(str(error), remedy=error.remedy), self.parts.query.having)
        return found[0] if len(found) == 1 else Every(found)

    def _keys(self) -> list[Expr]:
        query = self.parts.query
        if query.grouping is not None:
            self.refuse(f"{query.grouping} is not available over models", "write several queries")
        keys, _ = Keys(query, self.scope, self.selected).found()
        for key, node in zip(keys, query.group_by, strict=False):
            if varies(key, self._known):
                self.fail(
                    BindError(
                        f"{key} changes all the time, and cannot be grouped by", remedy=SAMPLED
                    ),
                    node,
                )
        return keys

    def _refuse_filters(self) -> None:
        nodes = [node for _, _, node in self.selected]
        having = self.parts.query.having
        for node in nodes if having is None else [*nodes, having]:
            found = node.find(exp.Filter)
            if found is not None:
                self.fail(
                    BindError(
                        "FILTER is not solved over models",
                        remedy="put the condition into WHERE, of a subquery if need be",
                    ),
                    found,
                )

    # -- aggregates ----------------------------------------------------------------------------

    def _aggregated(self, body: Node, keys: list[Expr]) -> tuple[Node, Curves]:
        window = self._window()
        arguments: dict[AggregateCall, str] = {}
        columns = {str(k): Named(str(k), k) for k in keys}
        for call in self.calls:
            argument = self._argument(call, window)
            arguments[call] = str(argument)
            columns[str(argument)] = Named(str(argument), argument)
        entities = self._entities() if self._asks("coverage") else ()
        for key in entities:
            columns[key.name] = Named(key.name, key)
        made, found = mapped(body, tuple(columns.values()), self.curves)
        curves = dict(found)
        for name in arguments.values():
            curves.setdefault(name, Curve((name,), START))
        by = tuple(str(k) for k in keys)
        inner = tuple(curves.items())
        parts: list[tuple[Node, Curves]] = []
        added = [c for c in self.calls if c.kind.name in _ADDED]
        totals = [Total(str(c), _total(c, window), arguments[c]) for c in added]
        of_roots = tuple(t for t in totals if t.kind != "coverage" and curves[t.argument].is_root)
        others = tuple(t for t in totals if t not in of_roots)
        if others:
            total = Sum(made, by, inner, *_span(window), others, _names(entities))
            parts.append((total, total.made))
        if of_roots:
            roots = SumRoots(made, by, inner, *_span(window), of_roots)
            parts.append((roots, roots.made))
        for call in self.calls:
            if call.kind.name in _EXTREME:
                parts.append(_extreme(made, by, inner, window, call, arguments[call]))
        if len(parts) == 1:
            return parts[0]
        whole = Combine(tuple(n for n, _ in parts), by, tuple(c for _, c in parts))
        return whole, whole.made

    def _asks(self, name: str) -> bool:
        return any(c.kind.name == name for c in self.calls)

    def _argument(self, call: AggregateCall, window: RangeWindow | None) -> Expr:
        """What is aggregated, as DOUBLE."""
        name = call.kind.name
        if name not in (*_ADDED, *_EXTREME):
            self.refuse(
                f"{name} counts rows, of which a function of time has none"
                if name == "count"
                else f"{name} is not solved over models: it is about single values",
            )
        if call.distinct and name not in _EXTREME:
            self.refuse(f"{name}(DISTINCT ...) is not solved over models")
        if name in ("integral", "coverage") and window is None:
            self.refuse(
                f"{name} needs to know over how long",
                "give the source a window, such as s [RANGE 1 MINUTE] MODEL (...)",
            )
        (argument,) = call.arguments
        if not argument.type.is_numeric or call.type != DOUBLE:
            self.refuse(
                f"{call} is {call.type}, and over models aggregates are DOUBLE",
                f"write {name}(CAST(... AS DOUBLE))",
            )
        argument = functions.cast(argument, DOUBLE)
        self._refuse_unsolvable(name, argument, window)
        return argument

    def _refuse_unsolvable(self, name: str, argument: Expr, window: RangeWindow | None) -> None:
        """Extremes of a root are where those are of what it is taken of."""
        is_added = name not in _EXTREME and name != "coverage"
        try:
            form = form_of_argument(name, argument, self._known)
            if form.bottom >= 0:
                raise NotSolvable(
                    f"{argument} is a quotient of polynomials, which is not aggregated", SAMPLED
                )
            if is_added and form.is_root:
                refuse_root(name, argument, form.top, window)
        except NotSolvable as error:
            self.refuse(str(error), error.remedy)
        if window is not None and is_added and form.top >= MOST_DEGREE:
            self.refuse(
                f"the integral of {argument} has degree {form.top + 1}, {MOST_DEGREE} is the most",
                "use models of lower degree",
            )

    # -- windows -------------------------------------------------------------------------------

    def _window(self) -> RangeWindow | None:
        """The window of the sources, all of which have the same."""
        windows = windows_of(self.parts.items.sources, self.fail)
        ranges = {w.range for w in windows}
        if len(ranges) > 1:
            self.refuse(
                "the sources of aggregates have different windows",
                "aggregate each in a subquery of its own, and join these",
            )
        return windows[0] if windows else None

    # -- coverage ------------------------------------------------------------------------------

    def _entities(self) -> tuple[Column, ...]:
        """The keys of the sources, which tell their entities apart."""
        found: list[Column] = []
        for member in self.parts.items.members:
            if isinstance(member, (Modeled, FitModel)):
                columns = {f.name: f.column() for f in member.schema}
                found += [columns[k] for k in member.key]
            elif any(isinstance(n, (Modeled, FitModel)) for n in walk_nodes(member)):
                self.refuse(
                    "coverage() of a subquery does not know its keys",
                    "ask for it where the stream is: FROM s [RANGE 1 MINUTE] MODEL (...)",
                )
        return tuple(found)


def _total(call: AggregateCall, window: RangeWindow | None) -> str:
    """The kind of total that an aggregate is."""
    name = call.kind.name
    if window is None:
        return name
    return {"sum": "integral", "avg": "mean"}.get(name, name)


def _extreme(
    made: Node,
    by: tuple[str, ...],
    curves: Curves,
    window: RangeWindow | None,
    call: AggregateCall,
    argument: str,
) -> tuple[Node, Curves]:
    """The largest or smallest value at each instant, and of these that of the window. One that
    slides ends before its boundary: its last tick is the one before."""
    upper, name = call.kind.name == "max", str(call)
    found = Envelope(made, by, curves, *_span(window), name, argument, upper)
    if window is None or window.range is None:
        return found, found.made
    ends_before = 0 if window.slide is None else 1
    candidates = WindowExtremes(found, found.curve, window.range - ends_before, upper)
    whole = Envelope(candidates, by, found.made, *_span(window), name, name, upper)
    if not ends_before:
        return whole, whole.made
    return Delay(whole, whole.curve.start, ends_before), whole.made


def _span(window: RangeWindow | None) -> tuple[int | None, int | None]:
    return (None, None) if window is None else (window.range, window.slide)


def _names(columns: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(c.name for c in columns)
