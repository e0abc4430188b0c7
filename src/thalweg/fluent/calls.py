"""Calls of functions, and CASE: expressions that can be said more about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from thalweg.errors import ConfigError
from thalweg.fluent.expressions import (
    Condition,
    Expression,
    Key,
    Operand,
    condition,
    listed,
    ordering,
    scalar,
)
from thalweg.lang.syntax import exp


class Call(Expression):
    """The call of a function. The methods are for aggregates, and `over` for functions that look
    at other rows."""

    __slots__ = ()

    def distinct(self) -> Call:
        """Each value once: `count(DISTINCT x)`."""
        call = self._plain("distinct()")
        call.set("expressions", [exp.Distinct(expressions=call.expressions)])
        return Call(call)

    def filter(self, where: Condition) -> Call:
        """Only the rows for which a condition holds."""
        return Call(exp.Filter(this=self.node.copy(), expression=exp.Where(this=condition(where))))

    def within_group(self, order_by: Key) -> Call:
        """The values in this order: `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`."""
        order = exp.Order(expressions=[ordering(order_by)])
        return Call(exp.WithinGroup(this=self._plain("within_group()"), expression=order))

    def over(
        self, partition_by: Key | Iterable[Key] = (), order_by: Key | Iterable[Key] = ()
    ) -> Expression:
        """For lag, lead and row_number: among the rows of the stream with equal `partition_by`.

        >>> from thalweg import col, fn
        >>> fn.lag(col("price")).over(partition_by="sym", order_by="ts")
        lag(price) OVER (PARTITION BY sym ORDER BY ts)
        """
        window = exp.Window(this=self._plain("over()"), over="OVER")
        by = [condition(cast(Condition, key)) for key in listed(partition_by)]
        keys = [ordering(key) for key in listed(order_by)]
        if by:
            window.set("partition_by", by)
        if keys:
            window.set("order", exp.Order(expressions=keys))
        return Expression(window)

    def _plain(self, method: str) -> exp.Anonymous:
        if not isinstance(self.node, exp.Anonymous):
            raise ConfigError(
                f"{self.sql()} cannot be followed by {method}",
                remedy=f"let {method} stand directly after the function",
            )
        return self.node.copy()


class Case(Expression):
    """CASE WHEN ... THEN ...; without `otherwise`, NULL where no condition holds."""

    __slots__ = ()

    def when(self, where: Condition, value: Operand) -> Case:
        """And where this holds (and nothing before), this value."""
        case = self.node.copy()
        branch = exp.If(this=condition(where), true=scalar(value))
        case.set("ifs", [*case.args.get("ifs", ()), branch])
        return Case(case)

    def otherwise(self, value: Operand) -> Expression:
        """And where no condition holds, this value."""
        case = self.node.copy()
        case.set("default", scalar(value))
        return Expression(case)


def when(where: Condition, value: Operand) -> Case:
    """The first branch of a CASE.

    >>> from thalweg import col, when
    >>> when(col("price") > 100, "high").when("price > 10", "middle").otherwise("low")
    CASE WHEN price > 100 THEN 'high' WHEN price > 10 THEN 'middle' ELSE 'low' END
    """
    return Case(exp.Case(ifs=[exp.If(this=condition(where), true=scalar(value))]))
