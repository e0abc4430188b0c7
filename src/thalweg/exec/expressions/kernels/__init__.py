"""The kernels behind the built-in functions, one module per family; importing registers them."""

from __future__ import annotations

from thalweg.exec.expressions.kernels import (
    arithmetic,
    casts,
    comparison,
    conditional,
    logic,
    maths,
    patterns,
    strings,
    times,
)
from thalweg.exec.expressions.kernels.registry import run

__all__ = ["FAMILIES", "run"]

FAMILIES = (arithmetic, casts, comparison, conditional, logic, maths, patterns, strings, times)
