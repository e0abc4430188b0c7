"""Three-valued logic, in which a deciding operand outweighs an error on the other side."""

from __future__ import annotations

import numpy as np

from thalweg.columns.vector import Mask, Vector, fit
from thalweg.exec.expressions.kernels.registry import (
    Lazy,
    Outcome,
    Scope,
    first_error,
    lazy,
    nullable,
    strict,
)
from thalweg.plan.expr import Call


def _connective(decisive: bool) -> Lazy:
    """AND is decided by one false side, OR by one true side."""

    def kernel(call: Call, scope: Scope) -> Vector:
        x, y = (scope.evaluate(a) for a in call.args)
        data = x.data | y.data if decisive else x.data & y.data
        plain = x.valid is None and y.valid is None and x.errors is None and y.errors is None
        if plain:
            return Vector(call.type, data)
        decided = _is(x, decisive) | _is(y, decisive)
        return _undecided(call, x, y, decided, decisive)

    return kernel


lazy("and")(_connective(False))
lazy("or")(_connective(True))


def _is(x: Vector, wanted: bool) -> Mask:
    holds = x.data if wanted else ~x.data
    return np.asarray(holds & x.usable)


def _undecided(call: Call, x: Vector, y: Vector, decided: Mask, decisive: bool) -> Vector:
    length = len(decided)
    errors = first_error([x.errors, y.errors])
    if errors is not None:
        errors = np.where(decided, 0, errors).astype(np.uint8)
        errors = fit(errors, length) if errors.any() else None
    valid = decided | (_known(x) & _known(y))
    data = decided if decisive else ~decided
    return Vector(call.type, data, None if valid.all() else fit(valid, length), errors)


def _known(x: Vector) -> Mask:
    return np.ones(1, np.bool_) if x.valid is None else x.valid


@strict("not")
def _not(call: Call, x: Mask) -> Mask:
    return ~x


@nullable("is_null")
def _is_null(call: Call, x: Vector) -> Outcome:
    return Outcome(np.zeros(len(x), np.bool_) if x.valid is None else ~x.valid)


@nullable("is_not_null")
def _is_not_null(call: Call, x: Vector) -> Outcome:
    return Outcome(np.ones(len(x), np.bool_) if x.valid is None else x.valid)
