"""Trades: prices that are straight lines with some noise, so many tuples to each line.

Every symbol trades at a steady rate, symbols one after another. A line begins with a jump that no
line before it can follow, so that a fitter finds about as many pieces as there are lines.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
START = 1_700_000_040 * SECOND
"""A whole minute."""
BOUND = 0.01
"""Half of it is the noise around a line; a line ends several of it away from the next."""
SYMBOLS = 10
RATE = 10_000
"""Tuples a second of event time, all symbols together."""


def trades(
    tuples: int, tuples_a_segment: int, symbols: int = SYMBOLS, rate: int = RATE, seed: int = 0
) -> pa.Table:
    """In the order of time: symbol, price, the slope of its line (per second), ts."""
    rng = np.random.default_rng(seed)
    steps = tuples // symbols
    step = np.arange(steps)
    lines = steps // tuples_a_segment + 2
    phase = rng.integers(0, tuples_a_segment, symbols)
    line = (step[:, np.newaxis] + phase) // tuples_a_segment
    since = (step[:, np.newaxis] + phase) % tuples_a_segment
    seconds = symbols / rate  # between two trades of a symbol
    span = tuples_a_segment * seconds
    slopes = rng.uniform(-0.1, 0.1, (lines, symbols))
    jumps = rng.choice([-1.0, 1.0], (lines, symbols)) * rng.uniform(6, 12, (lines, symbols))
    ends = np.cumsum(slopes * span + jumps * BOUND, axis=0) * 0.999
    base = rng.uniform(20, 130, symbols) + ends
    column = np.arange(symbols)
    slope = slopes[line, column]
    price = base[line, column] + slope * since * seconds
    price += rng.uniform(-BOUND / 2, BOUND / 2, price.shape)
    ts = START + (np.arange(tuples // symbols * symbols) * SECOND) // rate
    return pa.table(
        {
            "symbol": np.tile(column, steps),
            "price": price.ravel(),
            "slope": slope.ravel(),
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
        }
    )
