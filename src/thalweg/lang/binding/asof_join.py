"""ASOF joins: each row of a stream with the newest row of another one at its own time.

`t ASOF JOIN q ON t.sym = q.sym AND t.ts >= q.ts` is, at the instant of a row of t, the join with
the last row of q per key. The result then stays: if t has a longer window than [NOW], that window
is over the stream of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from thalweg.errors import BindError, ThalwegError, WindowMisuse
from thalweg.lang.binding.conditions import bound_predicates, conjuncts_of
from thalweg.lang.binding.scope import Scope
from thalweg.lang.binding.visible import Visible
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.places import place
from thalweg.lang.syntax import exp
from thalweg.plan import functions
from thalweg.plan.expr import Call, Column, Expr, Literal, Predicate
from thalweg.plan.logical import (
    Emit,
    EmitKind,
    Join,
    Named,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    Window,
)
from thalweg.plan.types import INTERVAL
from thalweg.windows.range import NOW, UNBOUNDED, RangeWindow
from thalweg.windows.rows import RowWindow

KINDS = ("ASOF", "ASOF LEFT", "LEFT ASOF")
_REMEDY = "write ON a.key = b.key AND a.time >= b.time"


@dataclass(slots=True)
class Side:
    """One side of the join: its only member and the source in view."""

    member: Node
    source: Visible


@dataclass(slots=True)
class AsOf:
    """Binds one ASOF join; `text` is what error places point into."""

    item: ast.JoinRef
    scope: Scope
    text: str

    def fail(self, error: ThalwegError) -> NoReturn:
        raise error.at(self.text, *place(self.text, self.item.at))

    def node(self, left: Side, right: Side) -> Node:
        if not isinstance(left.member, Window) or not isinstance(right.member, Window):
            self.fail(
                BindError("an ASOF join is between streams", remedy="join a table with JOIN ... ON")
            )
        window = left.member.window
        predicates, keys = self._condition(left.source, right.source)
        predicates += self._tolerance(left.source, right, right.member.window)
        rows = Window(left.member.input, NOW)
        newest = Window(right.member.input, RowWindow(1, keys))
        joined: Node = Join((rows, newest), predicates)
        if self.item.kind != "ASOF":
            joined = OuterJoin(OuterKind.LEFT, rows, newest, predicates)
        if window == NOW:
            return joined
        columns = tuple(Named(f.name, f.column()) for f in joined.schema)
        return Window(Emit(Project(joined, columns), EmitKind.ISTREAM), window)

    def _condition(
        self, left: Visible, right: Visible
    ) -> tuple[tuple[Predicate, ...], tuple[str, ...]]:
        """The equalities, and the right side's columns in them; the comparison of times only
        restates the join's rule."""
        assert self.item.condition is not None, "the parser wants ON"
        keys: list[str] = []
        equal: list[exp.Expr] = []
        for conjunct in conjuncts_of(self.item.condition):
            bound = self.scope.condition(conjunct)
            if self._is_time_order(bound, left, right):
                continue
            column = _right_key(bound, right)
            if column is None:
                error = BindError("an ASOF join takes equal columns and the time", remedy=_REMEDY)
                self.scope.fail(error, conjunct)
            keys.append(column)
            equal.append(conjunct)
        return bound_predicates(self.scope, tuple(equal)), tuple(dict.fromkeys(keys))

    def _is_time_order(self, bound: Expr, left: Visible, right: Visible) -> bool:
        if not isinstance(bound, Call) or bound.function not in (">=", "<=", ">", "<"):
            return False
        later, earlier = bound.args if bound.function in (">=", ">") else bound.args[::-1]
        if left.time is None or (later, earlier) != (left.time, right.time):
            self.fail(BindError("an ASOF join compares the event times", remedy=_REMEDY))
        if bound.function in (">", "<"):
            self.fail(
                BindError(
                    "an ASOF join takes the newest row up to and at the same time", remedy=_REMEDY
                )
            )
        return True

    def _tolerance(self, left: Visible, right: Side, window: object) -> tuple[Predicate, ...]:
        """`[RANGE d]` on the right: older rows are no partners."""
        if window == UNBOUNDED:
            return ()
        age = window.range if isinstance(window, RangeWindow) and window.slide is None else None
        if age is None or left.time is None or right.source.time is None:
            self.fail(
                WindowMisuse(
                    "the right side of an ASOF join has no window, or [RANGE d], its greatest age",
                    remedy="drop the window",
                )
            )
        oldest = functions.resolve("-", [left.time, Literal(INTERVAL, False, age)])
        test = functions.resolve(">=", [right.source.time, oldest])
        return (Predicate(test, 1000, f"{right.source.alias} {window}"),)


def _right_key(bound: Expr, right: Visible) -> str | None:
    """The right side's column in an equality of two columns."""
    if not isinstance(bound, Call) or bound.function != "=":
        return None
    names = {f.name for f in right.fields}
    columns = [a for a in map(_under_cast, bound.args) if a is not None]
    inside = [c.name for c in columns if c.name in names]
    return inside[0] if len(columns) == 2 and len(inside) == 1 else None


def _under_cast(expr: Expr) -> Column | None:
    while isinstance(expr, Call) and expr.function == "cast":
        expr = expr.args[0]
    return expr if isinstance(expr, Column) else None
