"""What is asked of a fit, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

MOST_DEGREE = 5
MID_RANGE, SWING, HULL, LEAST_SQUARES, STRAIGHT = range(5)
"""Ways to fit, as compiled code knows them; straight lines from tuple to tuple are those of bound
zero and need no name."""
METHODS = {"mid-range": (0, 0), "swing": (1, 1), "hull": (1, 1), "least squares": (0, MOST_DEGREE)}
"""The lowest and the highest degree of each."""
_CODES = dict(zip(METHODS, (MID_RANGE, SWING, HULL, LEAST_SQUARES), strict=True))


@dataclass(frozen=True, slots=True)
class Fit:
    """One attribute as polynomials of a degree, within a bound at every tuple: `within` itself, or
    where it is relative that many percent of the tuple's |value|."""

    degree: int
    within: float
    relative: bool = False
    method: str | None = None
    """A name of METHODS, or the usual one of the degree."""


def check(fit: Fit) -> None:
    """Refuse what cannot be fitted; the binder has done so before, with a place and a remedy."""
    if not 0 <= fit.degree <= MOST_DEGREE:
        raise ValueError(f"degree {fit.degree}: fitted polynomials have degree 0 to {MOST_DEGREE}")
    if not isfinite(fit.within) or fit.within < 0:
        raise ValueError(f"bound {fit.within}: must be zero or more, and finite")
    if fit.method is None:
        return
    if fit.method not in METHODS:
        raise ValueError(f"method {fit.method!r}: there are {', '.join(METHODS)}")
    least, most = METHODS[fit.method]
    if not least <= fit.degree <= most:
        degrees = f"degree {least}" if least == most else f"degree {least} to {most}"
        raise ValueError(f"{fit.method} fits {degrees}, not {fit.degree}")


def method_code(fit: Fit) -> int:
    """The way to fit. Within zero a tuple's value holds until the next, or lines lead there."""
    if fit.within == 0 and fit.degree < 2:
        return (MID_RANGE, STRAIGHT)[fit.degree]
    if fit.method is None:
        return (MID_RANGE, HULL, LEAST_SQUARES)[min(fit.degree, 2)]
    return _CODES[fit.method]
