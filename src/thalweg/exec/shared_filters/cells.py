"""Column values as cells: the classes that comparisons with some constants can tell apart.

With the constants in order, a value is one of them or lies between two neighbours. These are the
cells, numbered from 0: `2 i + 1` is constant i, `2 i` what lies just before it. A comparison with a
constant then holds in one run of cells, and several comparisons of one column in one run too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.columns.vector import Mask

Cells = npt.NDArray[np.int32]
Values = npt.NDArray[Any]
OPERATORS = ("<", "<=", "=", ">=", ">")
NULL = np.int32(-1)
"""The cell of NULL: no comparison holds there."""
ANYWHERE = np.int32(-2)
"""The first cell of a run without a condition, which includes the cell of NULL."""


class CellsOf:
    """The cells of one column. NaN is the largest number and equal to itself, as in Spark."""

    def __init__(self, constants: Values) -> None:
        self.constants = np.unique(constants)

    @property
    def last(self) -> int:
        return 2 * len(self.constants)

    def runs(self, operator: str, constants: Values) -> tuple[Cells, Cells]:
        """The first and the last cell in which comparisons with some of the constants hold."""
        at = (2 * np.searchsorted(self.constants, constants) + 1).astype(np.int32)
        zero, last = np.zeros_like(at), np.full_like(at, self.last)
        return {
            "<": (zero, at - 1),
            "<=": (zero, at),
            "=": (at, at),
            ">=": (at, last),
            ">": (at + 1, last),
        }[operator]

    def of(self, values: Values, valid: Mask | None = None) -> Cells:
        """The cell of each value; without `valid` there is no NULL among them."""
        before = np.searchsorted(self.constants, values)
        cells = (2 * before).astype(np.int32)
        if len(self.constants):
            nearest = self.constants[np.minimum(before, len(self.constants) - 1)]
            same = nearest == values
            if self.constants.dtype.kind == "f":
                same |= np.isnan(nearest) & np.isnan(values)
            cells[same & (before < len(self.constants))] += 1
        if valid is not None:
            cells[~valid] = NULL
        return cells
