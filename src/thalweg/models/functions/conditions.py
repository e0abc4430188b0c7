"""Conditions over columns that are functions of time: when they hold, per row.

A condition is brought into comparisons of functions of time under AND and OR when it is bound; NOT
moves into the comparisons, so that NULL, which is never true, needs no care. Where there is ABS or
SQRT, a comparison is parted into cases without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from thalweg.columns.vector import Mask
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.models.comparisons import solved
from thalweg.models.functions.formulas import Known, NotSolvable, Rows, degrees, masked, varies
from thalweg.models.functions.time_functions import TimeFunctions
from thalweg.models.polynomials import multiplied
from thalweg.models.spans import Both, Either, Formula, Spans, combined, within
from thalweg.plan import functions
from thalweg.plan.expr import Call, Expr, Literal, transform, walk
from thalweg.plan.types import BOOLEAN, DOUBLE, TIMESTAMP

NEGATED = {"<": ">=", "<=": ">", "=": "<>", "<>": "=", ">=": "<", ">": "<="}
MIRRORED = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True)
class Compare:
    """`left` beside `right`, as numbers that change in time."""

    left: Expr
    operator: str
    right: Expr

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class Holds:
    """An ordinary condition: it holds all the time, or never."""

    expr: Expr
    negated: bool = False

    def __str__(self) -> str:
        return f"NOT {self.expr}" if self.negated else str(self.expr)


@dataclass(frozen=True, slots=True)
class Instant:
    """The instant itself beside a TIMESTAMP."""

    operator: str
    bound: Expr

    def __str__(self) -> str:
        return f"the instant {self.operator} {self.bound}"


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({p})" if isinstance(p, Some) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.parts))


Condition = Compare | Holds | Instant | Every | Some


def comparisons_in(condition: Condition) -> Iterator[Compare | Holds | Instant]:
    if isinstance(condition, (Every, Some)):
        for part in condition.parts:
            yield from comparisons_in(part)
    else:
        yield condition


# -- from expressions ------------------------------------------------------------------------------


Comparing = Callable[[Expr, str, Expr], Condition]
"""Makes a condition of a comparison."""


def condition_of(
    expr: Expr, curves: Known, negated: bool = False, compare: Comparing | None = None
) -> Condition:
    """The condition that a BOOLEAN expression, or its negation, is; raises `NotSolvable`.
    `compare` says what a comparison means."""
    if not varies(expr, curves):
        return Holds(expr, negated)
    if not isinstance(expr, Call):
        raise NotSolvable(f"{expr} is no comparison", "compare a modeled column with something")
    name = expr.function
    if name == "not":
        return condition_of(expr.args[0], curves, not negated, compare)
    if name in ("and", "or"):
        parts = tuple(condition_of(a, curves, negated, compare) for a in expr.args)
        return Every(parts) if (name == "and") != negated else Some(parts)
    if name in NEGATED and expr.args[0].type == BOOLEAN:
        raise NotSolvable(
            f"{expr} compares conditions over a modeled column", "write them with AND, OR and NOT"
        )
    if name in NEGATED:
        operator = NEGATED[name] if negated else name
        if compare is not None:
            return compare(expr.args[0], operator, expr.args[1])
        return compared(expr.args[0], operator, expr.args[1], curves)
    if name in ("is_null", "is_not_null"):
        return Holds(Literal(BOOLEAN, False, (name == "is_null") == negated))
    if name == "in":
        equal = tuple(
            condition_of(functions.resolve("=", [expr.args[0], a]), curves, negated, compare)
            for a in expr.args[1:]
        )
        return Every(equal) if negated else Some(equal)
    raise NotSolvable(
        f"a condition with {name.upper()} over a modeled column cannot be solved",
        "use comparisons with AND, OR and NOT, or ask it of samples",
    )


def compared(left: Expr, operator: str, right: Expr, curves: Known) -> Condition:
    """A comparison without ABS and SQRT of modeled columns."""
    for side, other, op in ((left, right, operator), (right, left, MIRRORED[operator])):
        if side.type == TIMESTAMP and varies(side, curves):
            return _instant(side, op, other, curves)
    for side in (left, right):
        found = first_call(side, ("abs",), curves)
        if found is not None:
            return _cases(left, operator, right, found, curves)
    return _without_roots(left, operator, right, curves)


def _instant(side: Expr, operator: str, other: Expr, curves: Known) -> Condition:
    if varies(other, curves) or isinstance(side, Call):
        raise NotSolvable(
            "the event time of a modeled source is the instant itself",
            "compare it with a TIMESTAMP",
        )
    return Instant(operator, functions.cast(other, TIMESTAMP))


def first_call(expr: Expr, names: tuple[str, ...], curves: Known) -> Call | None:
    """An innermost call of one of these functions that varies."""
    calls = (e for e in walk(expr) if isinstance(e, Call) and e.function in names)
    return next(
        (
            c
            for c in calls
            if varies(c, curves) and all(first_call(a, names, curves) is None for a in c.args)
        ),
        None,
    )


def replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    return transform(expr, lambda e: new if e == old else e)


def _cases(left: Expr, operator: str, right: Expr, call: Call, curves: Known) -> Condition:
    """The comparison where the argument of ABS is not below zero, and where it is."""
    (inner,) = call.args
    return Some(
        tuple(
            Every(
                (
                    compared(inner, sign, _ZERO, curves),
                    compared(
                        replaced(left, call, value), operator, replaced(right, call, value), curves
                    ),
                )
            )
            for sign, value in ((">=", inner), ("<", functions.resolve("neg", [inner])))
        )
    )


_ZERO = Literal(DOUBLE, False, 0.0)


def _without_roots(left: Expr, operator: str, right: Expr, curves: Known) -> Condition:
    roots = [first_call(side, ("sqrt",), curves) for side in (left, right)]
    if not any(roots):
        degrees(functions.resolve("-", [left, right]), curves)
        return Compare(left, operator, right)
    if roots == [left, right]:
        (a,), (b,) = (root.args for root in roots if root is not None)
        return Every(
            (
                compared(a, ">=", _ZERO, curves),
                compared(b, ">=", _ZERO, curves),
                compared(a, operator, b, curves),
            )
        )
    if roots[0] is None:
        left, operator, right, roots = right, MIRRORED[operator], left, roots[::-1]
    root = roots[0]
    assert root is not None
    while left != root:
        left, operator, right = _moved(left, operator, right, root, curves)
    if first_call(right, ("sqrt",), curves) is not None:
        raise NotSolvable(
            "a comparison with two square roots cannot be solved", "compare their squares"
        )
    return _squared(root.args[0], operator, right, curves)


def _moved(
    left: Expr, operator: str, right: Expr, root: Call, curves: Known
) -> tuple[Expr, str, Expr]:
    """One step of bringing a square root to stand alone on the left."""
    if isinstance(left, Call):
        name, args = left.function, left.args
        place = next((i for i, a in enumerate(args) if root in walk(a)), 0)
        other = args[1 - place] if len(args) == 2 else None
        if name == "cast":
            return args[0], operator, right
        if name == "neg":
            return args[0], MIRRORED[operator], functions.resolve("neg", [right])
        if name == "+" and other is not None:
            return args[place], operator, functions.resolve("-", [right, other])
        if name == "-" and other is not None:
            if place == 0:
                return args[0], operator, functions.resolve("+", [right, other])
            return args[1], MIRRORED[operator], functions.resolve("-", [other, right])
        scaled = name == "*" or (name == "/" and place == 0)
        if scaled and isinstance(other, Literal) and other.value:
            back = functions.resolve("/" if name == "*" else "*", [right, other])
            return args[place], operator if other.value > 0 else MIRRORED[operator], back
    raise NotSolvable(
        f"{left} cannot be solved for its square root",
        "let the root stand alone, such as sqrt(...) < 5",
    )


def _squared(inner: Expr, operator: str, right: Expr, curves: Known) -> Condition:
    """sqrt(inner) beside `right`, by squares; there is no root of what is below zero."""
    square = functions.resolve("*", [right, right])
    squares = compared(inner, operator, square, curves)
    defined = compared(inner, ">=", _ZERO, curves)
    if operator in ("<", "<=", "="):
        sign = ">" if operator == "<" else ">="
        return Every((defined, compared(right, sign, _ZERO, curves), squares))
    below = compared(right, "<", _ZERO, curves)
    return Every((defined, Some((below, squares))))


# -- per row ---------------------------------------------------------------------------------------


def holding(condition: Condition, rows: Rows, since: Ints) -> tuple[Spans, int]:
    """The instants from `since` on at which it holds, and how many equations were solved."""
    leaves = list(comparisons_in(condition))
    until = np.full(rows.length, AFTER_TIME, np.int64)
    universe = within(since, until)
    sets = [_set(leaf, rows, since, until) for leaf in leaves]
    numbers = {id(leaf): i for i, leaf in enumerate(leaves)}
    solves = sum(isinstance(leaf, Compare) for leaf in leaves) * rows.length
    return combined(_formula(condition, numbers), sets, universe), solves


def _formula(condition: Condition, numbers: dict[int, int]) -> Formula:
    if not isinstance(condition, (Every, Some)):
        return numbers[id(condition)]
    found, *rest = (_formula(p, numbers) for p in condition.parts)
    for part in rest:
        found = Both(found, part) if isinstance(condition, Every) else Either(found, part)
    return found


def _set(leaf: Compare | Holds | Instant, rows: Rows, since: Ints, until: Ints) -> Spans:
    if isinstance(leaf, Holds):
        return within(since, until, _true(leaf, rows))
    if isinstance(leaf, Instant):
        return _instants(leaf, rows, since, until)
    difference = rows.formula(leaf.left).minus(rows.formula(leaf.right))
    return _solved(difference, leaf.operator, since, until)


def _true(leaf: Holds, rows: Rows) -> Mask:
    found = rows.plain(leaf.expr)
    true: Mask = found.usable & (found.data != leaf.negated)
    return true


def _instants(leaf: Instant, rows: Rows, since: Ints, until: Ints) -> Spans:
    found = rows.plain(leaf.bound)
    at, usable = np.where(found.usable, found.data, 0), found.usable
    if leaf.operator == "<>":
        before = within(since, np.minimum(until, at), usable)
        after = within(np.maximum(since, at + 1), until, usable)
        row = np.concatenate([before.row, after.row])
        order = np.argsort(row, kind="stable")
        both = Spans(
            row,
            np.concatenate([before.start, after.start]),
            np.concatenate([before.end, after.end]),
        )
        return both.take(order)
    low = {">": at + 1, ">=": at, "=": at}.get(leaf.operator, since)
    high = {"<": at, "<=": at + 1, "=": at + 1}.get(leaf.operator, until)
    return within(np.maximum(since, low), np.minimum(until, high), usable)


def _solved(difference: TimeFunctions, operator: str, since: Ints, until: Ints) -> Spans:
    """When functions beside zero; the sign of a divisor counts, and where it is zero nothing
    does."""
    usable = masked(difference.valid, len(difference))
    start = np.where(difference.start == BEFORE_TIME, since, difference.start)
    top = difference.top
    if difference.bottom is not None:
        top = multiplied(top, difference.bottom)
    rows = np.flatnonzero(usable & np.isfinite(top).all(axis=1))
    found = solved(top[rows], start[rows], since[rows], until[rows], operator)
    return Spans(rows[found.row], found.start, found.end)
