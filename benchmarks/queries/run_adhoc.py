"""An ad-hoc query over a long past, beside live queries: in a process of its own.

A stream keeps some million rows. Small batches arrive at a steady pace, live queries follow them;
then a query comes that wants to see the whole past. How long until its first result, until it has
caught up, and what happens to the epochs of the others meanwhile?
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

SCHEMA = "dev BIGINT, x DOUBLE, ts TIMESTAMP"
CHUNK = 500_000
BATCH = 20_000
PAUSE_S = 0.15
SETTLE_S = 8.0
LEAST_REST_S = 0.5
LIVE = (
    "SELECT dev, count(*) AS n, avg(x) AS mean FROM s [RANGE 2 SECONDS] WHERE x > 0.9 GROUP BY dev",
    "SELECT ISTREAM dev, x FROM s WHERE x > 0.999",
)
ADHOC = {
    "filter": "SELECT ISTREAM dev, x FROM s WHERE x > 0.9999",
    "key": "SELECT ISTREAM x FROM s WHERE dev = 77",
    "groups": "SELECT dev, count(*) AS n FROM s [RANGE 1 HOUR] WHERE x > 0.99 GROUP BY dev",
}


def rows(since: int, many: int) -> pa.Table:
    rng = np.random.default_rng(since)
    return pa.table(
        {
            "dev": rng.integers(0, 10_000, many),
            "x": rng.random(many),
            "ts": pa.array(np.arange(since, since + many) * 10, pa.timestamp("us", "UTC")),
        }
    )


@dataclass(slots=True)
class Live:
    """The stream, and what is seen of its epochs once the past has been loaded."""

    past: int
    stop: threading.Event = field(default_factory=threading.Event)
    loaded: threading.Event = field(default_factory=threading.Event)
    arrived: deque[float] = field(default_factory=deque)
    epochs: list[tuple[float, float, float]] = field(default_factory=list)
    """When each was committed, how long it took, and how long its rows had been there."""

    def source(self) -> Iterator[pa.Table]:
        for at in range(0, self.past, CHUNK):
            yield rows(at, CHUNK)
        self.loaded.set()
        for at in count(self.past, BATCH):
            if self.stop.is_set():
                return
            batch = rows(at, BATCH)
            self.arrived.append(time.perf_counter())
            yield batch
            time.sleep(PAUSE_S)

    def listen(self, epoch: Any) -> None:
        now = time.perf_counter()
        batches = [self.arrived.popleft() for _ in range(epoch.rows_in % CHUNK // BATCH)]
        if batches:
            self.epochs.append((now, epoch.seconds, now - batches[0]))

    def since(self, begun: float) -> list[tuple[float, float, float]]:
        return [e for e in self.epochs if e[0] >= begun]


def measure(job: dict[str, Any]) -> dict[str, float]:
    import thalweg as tw

    live = Live(job["rows"])
    turns: dict[str, list[float]] = {}
    before, beside, between = [], [], []
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:  # noqa: SIM117
        with tw.Engine("local[2,4]", path=Path(folder) / "engine", parallelism=2) as engine:
            engine.feed("s", live.source, SCHEMA, "ts", key=("dev",), retain="1 day", idle=None)
            for sql in LIVE:
                engine.query(sql)
            engine.add_listener(live.listen)
            engine.start()
            live.loaded.wait()
            time.sleep(SETTLE_S)
            settled = time.perf_counter()
            while len(before) < job["epochs"]:
                time.sleep(0.1)
                before = live.since(settled)
            while min(len(beside), len(between)) < job["epochs"]:
                begun = time.perf_counter()
                for name, took in _one(engine, ADHOC[job["adhoc"]], f"adhoc{begun}").items():
                    turns.setdefault(name, []).append(took)
                ended = time.perf_counter()
                beside += live.since(begun)
                time.sleep(max(LEAST_REST_S, ended - begun))
                between += live.since(ended)
            live.stop.set()
            engine.stop()
    found = {"turns": len(turns["caught up"]), "epochs": len(beside)}
    seen = {"before": before, "beside": beside, "between": between, "without": before + between}
    for name, each in seen.items():
        for q in (50, 99):
            found[f"{name} p{q}"] = float(np.percentile([e[1] for e in each], q))
            found[f"{name} delay p{q}"] = float(np.percentile([e[2] for e in each], q))
    return found | {name: float(np.median(each)) for name, each in turns.items()}


def _one(engine: Any, sql: str, name: str) -> dict[str, float]:
    """Register a query, wait until it has caught up, drop it again."""
    begun = time.perf_counter()
    query = engine.query(sql, name)
    registered = time.perf_counter()
    while not query.results().num_rows:
        time.sleep(0.005)
    first = time.perf_counter()
    while engine.core.readiness.is_behind(name):
        time.sleep(0.005)
    caught_up = time.perf_counter()
    query.drop()
    return {
        "registered": registered - begun,
        "first result": first - begun,
        "caught up": caught_up - begun,
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
