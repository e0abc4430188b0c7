"""Roots of many polynomials at once, beside SciPy's PPoly, which has a form for many too.

Random polynomials of each degree on [0, 1), about half of which have a root there. Both sides give
all real roots within each range; PPoly's coefficients are what it wants (descending, by interval).
SciPy is no dependency: where it is not installed, only ours is measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from common.harness import Report
from models.timed_runs import REPEATS, spread_of
from thalweg.models.polynomials import Floats
from thalweg.models.roots import real_roots

DEGREES = (1, 2, 3, 4, 5, 8)
CLOSED_FORMS = 2


def goal(degree: int) -> str:
    return f"roots of degree {degree}, times scipy's PPoly"


def declare(report: Report) -> None:
    for degree in DEGREES:
        report.declare(goal(degree), at_least=3 if degree <= CLOSED_FORMS else 1)


def run(report: Report, quick: bool) -> None:
    theirs = _ppoly()
    for degree in DEGREES:
        count = 20_000 if quick else 200_000
        coefficients = polynomials(count, degree)
        low, high = np.zeros(count), np.ones(count)
        ours, spread = _seconds(lambda c=coefficients, a=low, b=high: real_roots(c, a, b))
        case = f"roots, degree {degree}"
        report.row(case, "thalweg", "polynomials/s per core", "M/s", count / ours / 1e6)
        report.row(case, "thalweg", "spread", "±%", spread)
        if theirs is None:
            report.measure(goal(degree), None, "scipy is not installed here")
            continue
        call = theirs(coefficients)
        agree(coefficients, call())
        seconds, spread = _seconds(call)
        report.row(case, "scipy PPoly", "polynomials/s per core", "M/s", count / seconds / 1e6)
        report.row(case, "scipy PPoly", "spread", "±%", spread)
        report.ratio(goal(degree), seconds, ours)


def polynomials(count: int, degree: int, seed: int = 0) -> Floats:
    """Ascending coefficients of a random offset and random slopes."""
    rng = np.random.default_rng((seed, degree))
    found = rng.normal(size=(count, degree + 1))
    found[:, 0] -= found[:, 1] / 2
    return found


def agree(coefficients: Floats, roots: Floats) -> None:
    """Refuse to compare what finds other roots: PPoly's count from 0 of the first range."""
    found, counts = real_roots(
        coefficients, np.zeros(len(coefficients)), np.ones(len(coefficients))
    )
    ours = np.concatenate(
        [row[:n] + i for i, (row, n) in enumerate(zip(found, counts, strict=True))]
    )
    if len(ours) != len(roots) or not np.allclose(np.sort(ours), np.sort(roots), atol=1e-9, rtol=0):
        raise AssertionError(f"{len(ours):,} roots, scipy has {len(roots):,}")


def _ppoly() -> Callable[[Floats], Callable[[], Floats]] | None:
    try:
        from scipy.interpolate import PPoly
    except ImportError:
        return None

    def prepared(coefficients: Floats) -> Callable[[], Floats]:
        pieces = PPoly(coefficients.T[::-1].copy(), np.arange(len(coefficients) + 1.0))
        return lambda: pieces.roots(discontinuity=False, extrapolate=False)

    return prepared


def _seconds(call: Callable[[], object]) -> tuple[float, float]:
    call()
    times = []
    for _ in range(REPEATS):
        begun = time.process_time()
        call()
        times.append(time.process_time() - begun)
    return statistics.median(times), spread_of(times)
