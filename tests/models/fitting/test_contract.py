"""What cannot be fitted is refused in plain words."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.models.fitting.contract import (
    HULL,
    LEAST_SQUARES,
    MID_RANGE,
    STRAIGHT,
    SWING,
    Fit,
    check,
    method_code,
)
from thalweg.models.fitting.pieces import fitted


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (Fit(6, 1.0), "degree 6"),
        (Fit(-1, 1.0), "degree -1"),
        (Fit(1, -0.1), "bound -0.1"),
        (Fit(1, float("nan")), "bound nan"),
        (Fit(1, float("inf")), "bound inf"),
        (Fit(1, 1.0, False, "spline"), "there are mid-range, swing, hull, least squares"),
        (Fit(1, 1.0, False, "mid-range"), "mid-range fits degree 0, not 1"),
        (Fit(0, 1.0, False, "swing"), "swing fits degree 1, not 0"),
        (Fit(2, 1.0, False, "hull"), "hull fits degree 1, not 2"),
    ],
)
def test_refusals(fit: Fit, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(fit)
    with pytest.raises(ValueError, match=message):
        fitted(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, 1)), [fit], 1)


@pytest.mark.parametrize(
    ("fit", "code"),
    [
        (Fit(0, 1.0), MID_RANGE),
        (Fit(1, 1.0), HULL),
        (Fit(2, 1.0), LEAST_SQUARES),
        (Fit(5, 0.0), LEAST_SQUARES),
        (Fit(1, 1.0, False, "swing"), SWING),
        (Fit(0, 1.0, False, "least squares"), LEAST_SQUARES),
        (Fit(1, 0.0, False, "swing"), STRAIGHT),
        (Fit(0, 0.0, True), MID_RANGE),
    ],
)
def test_the_usual_methods(fit: Fit, code: int) -> None:
    check(fit)
    assert method_code(fit) == code


@pytest.mark.parametrize(
    ("every", "horizon", "columns", "continues"),
    [(0, 0, 1, 1), (1, -1, 1, 1), (1, 0, 2, 1), (1, 0, 1, 2)],
)
def test_batches_that_make_no_sense(every: int, horizon: int, columns: int, continues: int) -> None:
    zero = np.zeros(1, np.int64)
    with pytest.raises(ValueError):
        fitted(zero, zero, np.zeros((1, columns)), [Fit(0, 1.0)], every,
               np.zeros(continues, np.bool_), horizon)  # fmt: skip
