"""Estimates with their number of observations and error."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

_Z = 1.96  # of a 95 % interval


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated value, the observations behind it, and the half-width of its 95 % interval.

    >>> share(50, 100)
    Estimate(value=0.5, count=100, margin=0.098)
    """

    value: float
    count: int
    margin: float

    @property
    def percent(self) -> str:
        """A share and its margin.

        >>> share(50, 100).percent
        '50 % ± 9.8 %'
        """
        return f"{100 * self.value:.3g} % ± {100 * self.margin:.2g} %"

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.margin:.2g} ({self.count})"


def share(part: int, whole: int) -> Estimate:
    """The probability behind a count: `part` of `whole` independent trials."""
    if not whole:
        return Estimate(0.5, 0, 0.5)
    rate = part / whole
    return Estimate(rate, whole, round(_Z * sqrt(max(rate * (1 - rate), 0.25 / whole) / whole), 9))
