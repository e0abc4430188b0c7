"""Tuples a second through the engine, from packs to the committed epoch: reading, sorting by key,
fitting or holding against the model, writing segments and committing. Not parsing and writing
packs.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from common.harness import Report
from models.fit_rates import random_walk
from models.timed_runs import Stream, ran, turns
from models.trades import START

KEYS = 100
LONG, SHORT = 30.0, 3.0
QUERIES = {
    "fit hull": "SELECT k, x FROM walk MODEL (FIT x DEGREE 1 WITHIN {e})",
    "fit swing": "SELECT k, x FROM walk MODEL (FIT x DEGREE 1 WITHIN {e}) WITH (fit = 'swing')",
    "validate": "SELECT k, x FROM walk MODEL (x = x + v*t) ERROR x WITHIN {e}",
    "no bound": "SELECT k, x FROM walk MODEL (x = x + v*t)",
}


def walks(tuples: int, keys: int = KEYS) -> pa.Table:
    """Random walks of some keys, a tuple about every millisecond, in the order of time."""
    walk = random_walk(tuples)
    x = walk.values[:, 0].reshape(keys, -1).T.ravel()  # a stretch of the walk to each key
    return pa.table(
        {
            "k": np.tile(np.arange(keys), len(x) // keys),
            "x": x,
            "v": np.zeros(len(x)),
            "ts": pa.array(START + walk.ts, pa.timestamp("us", "UTC")),
        }
    )


def run(report: Report, quick: bool) -> None:
    tuples = 200_000 if quick else 2_000_000
    streams = {"walk": Stream(walks(tuples), ("k",))}
    for within, pieces in ((LONG, "long"), (SHORT, "short")):
        for name, sql in QUERIES.items():
            if name == "no bound" and (pieces == "short" or quick):
                continue
            report.progress(f"from packs to commit: {name}, {pieces} pieces")
            text = sql.format(e=within)
            size = tuples if name != "no bound" else tuples // 10
            data = streams
            if size != tuples:
                data = {"walk": Stream(streams["walk"].table.slice(0, size), ("k",))}
            found = turns({name: lambda t=text, d=data: ran(t, d, 2)}, 3 if quick else 5)[name]
            case = f"from packs to commit, {name}" + (f", {pieces} pieces" * (name != "no bound"))
            report.row(case, "thalweg", "tuples/s per core", "M/s", found.rate(size))
            report.row(case, "thalweg", "spread", "±%", found.spread)
            begun = found.counts.get("pieces fitted") or size - found.counts.get(
                "tuples absorbed", 0
            )
            report.row(case, "thalweg", "tuples per piece", "", size / begun)
