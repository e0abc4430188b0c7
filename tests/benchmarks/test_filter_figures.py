"""What the figures of filter orders promise holds, and does not where A-Greedy gains nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from common.harness import Report
from filters import figures
from filters.run_ordering import Outcome, run_counted

ROWS = 60_000


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Report:
    """One that takes no times and prints nothing."""
    monkeypatch.setattr(figures, "_timed", lambda *args, **options: None)
    return Report("filters", scale="quick", console=Console(quiet=True))


def as_independent(name: str, drops: np.ndarray, costs: Sequence[float], **how: Any) -> Outcome:
    """Any ordering, run as if predicates were independent: it saves nothing of that."""
    return run_counted("independent", drops, costs, **how)


FIGURES: dict[str, Callable[[Report, int], dict[str, float]]] = {
    "4.12": figures.figure_4_12,
    "4.13": figures.figure_4_13,
}


@pytest.mark.parametrize("figure", FIGURES)
def test_the_figure_holds(report: Report, figure: str) -> None:
    found = FIGURES[figure](report, ROWS)
    assert min(found.values()) >= figures.POINT, found


@pytest.mark.parametrize("figure", FIGURES)
def test_without_a_gain_it_does_not(
    report: Report, figure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "run_counted", as_independent)
    found = FIGURES[figure](report, ROWS)
    assert max(map(abs, found.values())) < figures.POINT, found
