"""The value of an expression that depends on no row."""

from __future__ import annotations

from typing import Any

from thalweg.exec.expressions.evaluate import evaluate
from thalweg.plan.expr import Expr, Literal


def constant_value(expr: Expr) -> Literal | None:
    """The literal the expression equals; None if computing it raises."""
    found = evaluate(expr, {}, 1)
    if found.errors is not None and found.errors[0]:
        return None
    if found.valid is not None and not found.valid[0]:
        return Literal(expr.type, True, None)
    value: Any = found.data[0]
    value = value.as_py() if hasattr(value, "as_py") else value.item()
    return Literal(expr.type, False, value)
