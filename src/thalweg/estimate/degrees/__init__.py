"""How the largest degree of a key is counted: one method per file, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from thalweg.estimate.degrees.cm_safe import CountMin
from thalweg.estimate.degrees.exact import ExactDegrees
from thalweg.estimate.degrees.mg_raw import RawMisraGries
from thalweg.estimate.degrees.mg_safe import SafeMisraGries
from thalweg.estimate.degrees.protocol import Degrees
from thalweg.estimate.degrees.sum_of_max import SumOfMax

METHODS: Mapping[str, Callable[[int], Degrees]] = {
    "exact": ExactDegrees,
    "cm_safe": CountMin,
    "mg_safe": SafeMisraGries,
    "mg_raw": RawMisraGries,
    "sum_of_max": SumOfMax,
}
"""Methods by name, each made for a number of cells."""

ESTIMATES = frozenset({"mg_raw"})
"""Methods whose largest degree may be too low: what is made of them is an estimate."""

__all__ = ["ESTIMATES", "METHODS", "Degrees"]
