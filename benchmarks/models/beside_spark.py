"""MACD and following beside plain Spark's sliding windows: the same rows from the same files.

Spark's time is that of the whole second pass in a warm JVM, on both cores, reading included; ours
that of one core in this process, reading files, ingest and all epochs.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from child import command
from common.harness import Report
from common.peer_process import PeerResult, run_child
from models import following, macd
from models.timed_runs import WHOLE, Stream
from models.trades import trades
from thalweg.testing import Runner

QUICK_STEPS = 600
SLOW = "every tuple of 10 s"


def run(report: Report, quick: bool) -> None:
    tuples, window = (60_000, 60) if quick else (240_000, 600)
    tables = {
        "trades": Stream(trades(tuples, macd.TUPLES_A_SEGMENT, rate=2_000), ("symbol",)),
        "o": Stream(following.generated(QUICK_STEPS if quick else 1_800), ("id",)),
    }
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as place:
        folder = Path(place)
        files = {
            name: _write(folder / name, one.table, 2 if quick else 4)
            for name, one in tables.items()
        }
        job = {"folder": place, "queries": ["macd", "following"], "window": window}
        theirs = run_child(
            PeerResult("spark"), command("models.spark_windows"), job, budget_s=300,
            batch_budget_s=300, progress=report.progress, tolerant=True,
        )  # fmt: skip
        queries = {
            "macd": {
                "tuples": macd.text("trades"),
                "models": macd.text("trades", macd.AHEAD),
            },
            "following": {
                **{n: following.over_tuples(b, window) for n, b in following.BASES.items()},
                "models": following.over_models(following.BOUND, window, 60),
            },
        }
        for name, stream in (("macd", "trades"), ("following", "o")):
            case = f"{name} beside Spark, {tables[stream].table.num_rows:,} tuples"
            for side, sql in queries[name].items():
                report.progress(f"{name} over files: {side}")
                if quick and side == SLOW:
                    continue
                seconds = min(_ours(sql, stream, tables[stream].key, files[stream]) for _ in "12")
                rate = tables[stream].table.num_rows / seconds / 1e6
                report.row(case, f"thalweg, {side}", "tuples/s, files to results", "M/s", rate)
            done = theirs.detail.get("queries", {}).get(name)
            rate = tables[stream].table.num_rows / done["seconds"] / 1e6 if done else None
            report.row(case, "spark, both cores", "tuples/s, files to results", "M/s", rate)
            if done:
                report.row(case, "spark, both cores", "rows emitted", "", done["rows"])


def _write(folder: Path, table: pa.Table, files: int) -> list[Path]:
    folder.mkdir()
    found = []
    for i in range(files):
        low, high = table.num_rows * i // files, table.num_rows * (i + 1) // files
        found.append(folder / f"{i}.parquet")
        pq.write_table(table.slice(low, high - low), found[-1])
    return found


def _ours(sql: str, stream: str, key: tuple[str, ...], files: list[Path]) -> float:
    runner = Runner(epoch_rows=WHOLE)
    runner.stream(stream, pq.read_table(files[0]).slice(0, 0), key=list(key))
    runner.query(sql, name="q")
    begun = time.perf_counter()
    for file in files:
        runner.feed({stream: pq.read_table(file)})
    runner.close()
    return time.perf_counter() - begun
