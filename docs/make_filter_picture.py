"""Draw docs/images/filters.svg: evaluations before and after selectivities are permuted.

Run `python docs/make_filter_picture.py`; the figures are those of `thalweg bench filters`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from common.line_chart import line_chart  # noqa: E402
from filters.data import Phase, drops_of, permuted, spread  # noqa: E402
from filters.run_ordering import ORDERINGS, run_counted  # noqa: E402

ROWS, SEEDS, PREDICATES = 200_000, 8, 8


def main() -> None:
    series = {}
    for name in ORDERINGS:
        runs = [_run(name, seed) for seed in range(SEEDS)]
        series[name] = (_grid(), np.mean(runs, axis=0))
    line_chart(
        ROOT / "docs" / "images" / "filters.svg",
        "Eight predicates, selectivities permuted after 200,000 rows (mean of eight inputs)",
        "rows",
        "evaluations per 2,000 rows",
        series,
    )


def _grid() -> np.ndarray:
    return np.arange(ROWS // 2, 2 * ROWS, 4_000, dtype=float)


def _run(name: str, seed: int) -> np.ndarray:
    first = permuted(spread(PREDICATES), seed)
    phases = [Phase(ROWS, first), Phase(ROWS, permuted(first, seed + 100))]
    drops = drops_of(phases, 2, seed)
    at, values = run_counted(name, drops, [1.0] * PREDICATES, seed=seed).series()
    smooth = np.convolve(values, np.ones(3) / 3, mode="same")
    return np.interp(_grid(), at, smooth)


if __name__ == "__main__":
    main()
