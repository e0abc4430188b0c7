"""The registry of kernels, and the conversion of their results to vectors.

A kernel is one of three kinds. `strict` kernels receive bare data, give NULL where an argument is
NULL and never read validity. `nullable` kernels receive vectors and decide about NULL themselves.
`lazy` kernels receive expressions and decide what is evaluated on which rows. For the first two
kinds, errors of arguments are propagated by the registry.

A vector inside an evaluation has either all rows or one, which then stands for all: constants cost
nothing, and NumPy broadcasts them by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.valid_text import not_utf8
from thalweg.columns.vector import BAD_TEXT, Codes, Mask, Vector, fit
from thalweg.plan.expr import Call, Expr
from thalweg.plan.types import STRING


@dataclass(slots=True)
class Outcome:
    """The result of a kernel: data, and on which rows it is NULL or failed."""

    data: Any
    errors: Codes | None = None
    valid: Mask | None = None


class Scope(Protocol):
    """The rows an expression is evaluated on."""

    @property
    def length(self) -> int: ...

    def evaluate(self, expr: Expr) -> Vector:
        """The value on every row; a vector of one row stands for all."""

    def subset(self, rows: Any) -> Scope:
        """The same columns on the rows at these positions."""


Strict = Callable[..., Any]
Nullable = Callable[..., Outcome]
Lazy = Callable[[Call, Scope], Vector]

STRICT: dict[str, Strict] = {}
NULLABLE: dict[str, Nullable] = {}
LAZY: dict[str, Lazy] = {}


def strict(*names: str) -> Callable[[Strict], Strict]:
    """Register `kernel(call, *data) -> data | Outcome`."""
    return lambda kernel: _register(STRICT, names, kernel)


def nullable(*names: str) -> Callable[[Nullable], Nullable]:
    """Register `kernel(call, *vectors) -> Outcome`."""
    return lambda kernel: _register(NULLABLE, names, kernel)


def lazy(*names: str) -> Callable[[Lazy], Lazy]:
    """Register `kernel(call, scope) -> Vector`."""
    return lambda kernel: _register(LAZY, names, kernel)


def _register(table: dict[str, Any], names: Sequence[str], kernel: Any) -> Any:
    table.update(dict.fromkeys(names, kernel))
    return kernel


def run(call: Call, scope: Scope) -> Vector:
    """Evaluate one call."""
    name = call.function
    if name in LAZY:
        return LAZY[name](call, scope)
    args = [scope.evaluate(a) for a in call.args]
    try:
        return _run(call, args)
    except (UnicodeDecodeError, pa.ArrowInvalid):
        found = _run_where_readable(call, args)
        if found is None:
            raise
        return found


def _run(call: Call, args: Sequence[Vector]) -> Vector:
    name = call.function
    if name in NULLABLE:
        outcome = NULLABLE[name](call, *args)
        return _finished(call, outcome, outcome.valid, args)
    found = STRICT[name](call, *_operands(args))
    outcome = found if isinstance(found, Outcome) else Outcome(found)
    return _finished(call, outcome, both([outcome.valid, *(a.valid for a in args)]), args)


def _run_where_readable(call: Call, args: Sequence[Vector]) -> Vector | None:
    """The same where text may be no UTF-8 (casts of bytes keep them, as Spark's do): functions of
    text fail on such rows, and on these alone. None if all text is readable."""
    bad: Mask | None = None
    readable = []
    for arg in args:
        unread = not_utf8(arg.data) if arg.type == STRING else None
        if unread is not None:
            bad = unread if bad is None else bad | unread
            kept = pc.if_else(pa.array(unread), pa.scalar(""), arg.data.view(pa.string()))
            arg = replace(arg, data=kept)
        readable.append(arg)
    if bad is None:
        return None
    found = _run(call, readable)
    if call.function == "try_cast":
        return found  # no text at all is NULL, too
    beside = both([a.valid for a in args]) if call.function in STRICT else None
    failed = bad if beside is None else bad & beside  # NULL beside it makes the result NULL
    codes = first_error([fit(failing(failed, BAD_TEXT), len(found.data)), found.errors])
    return replace(found, errors=codes)


def _operands(args: Sequence[Vector]) -> list[Any]:
    """Bare data; a one-row Arrow array beside longer ones becomes a scalar, as Arrow wants it."""
    alone = all(len(a) == 1 for a in args)
    return [
        a.data if alone or len(a) != 1 or isinstance(a.data, np.ndarray) else a.data[0]
        for a in args
    ]


def _finished(call: Call, outcome: Outcome, valid: Mask | None, args: Sequence[Vector]) -> Vector:
    length = len(outcome.data)
    own = outcome.errors
    if own is not None and valid is not None:
        own = np.where(valid, own, 0).astype(np.uint8)
    errors = first_error([*(a.errors for a in args), own])
    return Vector(call.type, outcome.data, fit(valid, length), fit(errors, length))


def both(masks: Sequence[Mask | None]) -> Mask | None:
    """Where all masks are true; a mask of None is true everywhere."""
    found: Mask | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found & mask
    return found


def first_error(codes: Sequence[Codes | None]) -> Codes | None:
    """Per row the first error code that is not zero."""
    found: Codes | None = None
    for code in codes:
        if code is not None:
            found = code if found is None else np.where(found != 0, found, code)
    return found


def failing(mask: Mask, code: int) -> Codes | None:
    """The error code where the mask is true; None if it is true nowhere."""
    return np.where(mask, code, 0).astype(np.uint8) if mask.any() else None


def choose(taken: Mask, x: Vector, y: Vector) -> Vector:
    """x where the mask is true, else y; neither has errors and y has every row."""
    valid = None
    if x.valid is not None or y.valid is not None:
        valid = np.broadcast_to(np.where(taken, _all(x.valid), _all(y.valid)), len(y))
    if isinstance(y.data, np.ndarray):
        return Vector(y.type, np.where(taken, x.data, y.data), valid)
    chosen = x.data if len(x) == len(y) else x.data[0]
    mask = pa.array(np.broadcast_to(taken, len(y)))
    return Vector(y.type, pc.if_else(mask, chosen, y.data), valid)


def _all(valid: Mask | None) -> Mask:
    return np.ones(1, np.bool_) if valid is None else valid


def truth(array: Any) -> Mask:
    """A boolean Arrow array as a NumPy array, NULL as false."""
    if isinstance(array, pa.Scalar):
        return np.array([bool(array.as_py())])
    filled = pc.fill_null(array, False) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.bool_)


def whole(array: Any, dtype: Any = np.int32) -> Any:
    """An integer Arrow array as a NumPy array, NULL as zero."""
    filled = pc.fill_null(array, 0) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
