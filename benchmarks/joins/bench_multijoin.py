"""Window joins of three, five and seven streams: Thalweg, Spark's chained joins, and both of
Flink's plans, on the same rows.

Streams share one key and there is about one result per row however many they are
(`star_data.py`), so what grows with the number of streams is the way to the results. A chain of
binary joins keeps and passes on all intermediate ones, and each of its joins waits a window longer
before it forgets. Flink's MultiJoin has no intermediate results but regular joins only, whose
state is not bounded by the window: it grows with the input (see `peers/flink_sql.py`). All systems
give exactly the number of results that is computed from the files.

Batches are compared where both systems finished them, warm ones if there are any: Spark may run
out of its budget or of its heap (8 GB, as all have) before the end. With Flink, which knows no
batches, run minus read is compared as in `join`. The same with our reading left in is shown
beside it: a difference of two short runs suffers from anything else that the machine does.

State is what each system can say of it, which is not of one kind: of Spark its own estimate of
the memory that the newest version of its state takes after the last batch (it holds an older one
besides), of Flink the largest checkpoint of a run (serialised: its heap holds more), of ours the
bytes of packs after the epoch with the most (see `thalweg_join.py`).

`--quick` has smaller batches and windows and leaves out seven streams.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from common.harness import Report
from common.peer_process import WARM_UP_BATCHES, PeerResult
from joins.interval_data import Dataset, Spec, ensure
from joins.thalweg_join import WHOLE_RUNS, net_s, run_thalweg_join, whole_runs
from peers.flink_join import run_flink_join
from peers.flink_sql import INTERVAL, MULTIJOIN
from peers.spark_join import run_spark_floor, run_spark_join

WAYS = (3, 5, 7)
SPARK, CHAIN, MULTI = "Spark's chained joins", "Flink's chained joins", "Flink's MultiJoin"
TIMES = {SPARK: 20, CHAIN: 5, MULTI: 5}  # promised for three streams
NO_CHECKPOINT = "no checkpoint was complete before the end"
NO_NET = "reading alone took longer than reading and joining: the machine was busy"


@dataclass(frozen=True)
class Scale:
    """How much is measured. The window spans as many batches at either scale."""

    ways: tuple[int, ...]
    batch_rows: int
    batches: int
    window_s: int
    budget_s: float
    batch_budget_s: float
    repeats: int

    def spec(self, ways: int) -> Spec:
        return Spec(
            ways=ways,
            shape="star",
            batch_rows=self.batch_rows,
            batches=self.batches,
            window_s=self.window_s,
        )


QUICK = Scale((3, 5), 150_000, 5, 45, budget_s=120, batch_budget_s=60, repeats=2)
FULL = Scale(WAYS, 1_000_000, 5, 300, budget_s=480, batch_budget_s=200, repeats=1)


@dataclass(frozen=True)
class Lead:
    """How many times a peer's time is ours, with a remark (why it is None), and our state as a part
    of its."""

    times: float | None
    state: float | None
    remark: str = ""


def run(quick: bool = False, json_path: str | None = None) -> int:
    """Measure, print, write; exit code 0 whatever the goals say (they are in the report)."""
    report = Report("multijoin", scale="quick" if quick else "full")
    _declare(report)
    root = Path(os.environ.get("THALWEG_BENCH_DATA", tempfile.gettempdir())) / "thalweg-bench-data"
    scale = QUICK if quick else FULL
    leads = {ways: _leads(report, ensure(root, scale.spec(ways)), scale) for ways in scale.ways}
    _settle(report, leads)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _declare(report: Report) -> None:
    for peer, bound in TIMES.items():
        report.declare(_times(peer), at_least=bound)
    for peer in (SPARK, CHAIN):
        for fewer, more in pairwise(WAYS):
            report.declare(_growth(peer, fewer, more), at_least=1)
    for ways in WAYS:
        for peer in TIMES:
            report.declare(_state(peer, ways), at_most=1)


def _times(peer: str) -> str:
    return f"3-way: times {peer}" + ("" if peer == SPARK else " (run minus read, both)")


def _growth(peer: str, fewer: int, more: int) -> str:
    return f"{more}-way: lead over {peer}, of that at {fewer}-way"


def _state(peer: str, ways: int) -> str:
    return f"{ways}-way: state, of {peer}"


def _settle(report: Report, leads: dict[int, dict[str, Lead]]) -> None:
    for peer in TIMES:
        report.measure(_times(peer), leads[3][peer].times, leads[3][peer].remark)
    for fewer, more in pairwise(leads):
        for peer in (SPARK, CHAIN):
            before, after = leads[fewer][peer], leads[more][peer]
            remark = after.remark or before.remark
            report.ratio(_growth(peer, fewer, more), after.times, before.times, remark)
    for ways, found in leads.items():
        for peer, lead in found.items():
            missing = (lead.remark or NO_CHECKPOINT) if lead.state is None else ""
            report.measure(_state(peer, ways), lead.state, missing)


def _leads(report: Report, data: Dataset, scale: Scale) -> dict[str, Lead]:
    """Everything that is measured of one number of streams."""
    case = f"{data.spec.ways}-way, {data.spec.batch_rows:,} rows per batch"
    ours = _shown(report, case, run_thalweg_join(data, progress=report.progress))
    floor = run_spark_floor(data, progress=report.progress)
    report.peer(case, floor)
    found = {
        SPARK: _over_spark(report, case, data, scale, ours),
        CHAIN: _over_flink(report, case, data, scale, ours, floor, CHAIN),
        MULTI: _over_flink(report, case, data, scale, ours, floor, MULTI),
    }
    for peer, lead in found.items():
        report.row(case, "thalweg", f"times {peer}", "x", lead.times)
    return found


def _over_spark(report: Report, case: str, data: Dataset, scale: Scale, ours: PeerResult) -> Lead:
    spark = run_spark_join(
        data,
        budget_s=scale.budget_s,
        batch_budget_s=scale.batch_budget_s,
        progress=report.progress,
        tolerant=True,
    )
    _shown(report, case, spark)
    finished = len(spark.batch_ms)
    if not finished:
        return Lead(None, None, "it did not finish a batch within its budget")
    is_warm = finished > WARM_UP_BATCHES
    both = slice(WARM_UP_BATCHES if is_warm else 0, finished)
    took, took_us = statistics.median(spark.batch_ms[both]), statistics.median(ours.batch_ms[both])
    if not is_warm:
        report.row(case, spark.label, "batch, not yet warm", "ms", took)
    remark = f"of the first {finished} batches" if spark.partial else ""
    return Lead(took / took_us, _share(ours, spark), remark)


def _over_flink(
    report: Report,
    case: str,
    data: Dataset,
    scale: Scale,
    ours: PeerResult,
    floor: PeerResult,
    peer: str,
) -> Lead:
    flink = run_flink_join(
        data,
        variant=INTERVAL if peer == CHAIN else MULTIJOIN,
        repeats=scale.repeats,
        budget_s=scale.budget_s,
        progress=report.progress,
    )
    _shown(report, case, flink)
    if flink.skipped or flink.net_s is None:
        return Lead(None, None, flink.skipped or "")
    report.row(case, "thalweg", f"{WHOLE_RUNS}: {peer}", "x", whole_runs(ours, flink))
    left_in = flink.net_s / (sum(ours.batch_ms) / 1e3)
    report.row(case, "thalweg", f"times {peer}, our reading left in", "x", left_in)
    net = net_s(ours, floor)
    if net is None or flink.net_s <= 0:
        return Lead(None, _share(ours, flink), NO_NET)
    return Lead(flink.net_s / net, _share(ours, flink))


def _share(ours: PeerResult, peer: PeerResult) -> float | None:
    kept = peer.detail.get("state_bytes")
    return ours.detail["state_bytes"] / kept if kept else None


def _shown(report: Report, case: str, result: PeerResult) -> PeerResult:
    report.peer(case, result)
    if not result.skipped:
        report.row(case, result.label, "state", "bytes", result.detail.get("state_bytes"))
    return result
