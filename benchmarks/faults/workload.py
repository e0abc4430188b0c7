"""The work that every fault disturbs: two streams of files, five queries, and what they must emit.

A windowed join, groups with DISTINCT, sessions, a filter that goes INTO FILES, and a query over a
query. A folder of work holds the input (`a`, `b`), the engine's path (`path`), the files a sink
writes (`out`) and, at the end, the results.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from thalweg.runtime.state.open_path import load_state, sweep
from thalweg.runtime.upkeep import compaction
from thalweg.runtime.upkeep.inspection import inspect
from thalweg.store import manifest
from thalweg.store.storage import LocalStorage
from thalweg.testing.compare import canonical, difference, from_table
from thalweg.testing.runner import Runner

STREAMS = ("a", "b")
COLUMNS = "ts TIMESTAMP, k BIGINT, v BIGINT, x DOUBLE"
FILES, ROWS = 12, 15
SECOND = 1_000_000
FILED = "filed"
Bag = Counter[Any]
Bags = dict[str, Bag]


def queries(root: Path) -> dict[str, str]:
    """Names and texts; the one with a sink writes below the folder of work."""
    return {
        "joined": "SELECT a.k, a.v, b.v AS w FROM a [RANGE 2 SECONDS], b [RANGE 1 SECOND] "
        "WHERE a.k = b.k",
        "grouped": "SELECT k, count(DISTINCT v) AS d, sum(x) AS t, max(v) AS m "
        "FROM a [RANGE 3 SECONDS] GROUP BY k",
        "sessions": "SELECT k, count(*) AS n, sum(v) AS t FROM b [SESSION GAP 400 MILLISECONDS] "
        "GROUP BY k",
        FILED: f"SELECT k, v, x FROM a WHERE v > 1 INTO FILES '{root / 'out'}' FORMAT parquet",
        "over": "SELECT k, sum(d) AS s FROM grouped GROUP BY k",
    }


# -- input -------------------------------------------------------------------------------------


def rows_of(stream: str) -> pa.Table:
    """In order of time, a second a file; the times of two files never meet."""
    rng = random.Random(stream)
    spread = range(SECOND * 9 // 10)
    ts = [i * SECOND + t for i in range(FILES) for t in sorted(rng.sample(spread, ROWS))]
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "k": [rng.randrange(4) for _ in ts],
            "v": [rng.randrange(5) for _ in ts],
            "x": [rng.random() for _ in ts],
        }
    )


def piece(stream: str, number: int) -> pa.Table:
    return rows_of(stream).slice(number * ROWS, ROWS)


def input_file(root: Path, stream: str, number: int) -> Path:
    return root / stream / f"{number:03d}.parquet"


def write_input(root: Path, files: Iterable[int] = range(FILES)) -> None:
    for stream in STREAMS:
        (root / stream).mkdir(parents=True, exist_ok=True)
        for number in files:
            path = input_file(root, stream, number)
            draft = path.with_name(f".{path.name}")  # a source must not see half a file
            pq.write_table(piece(stream, number), draft)
            # Spark takes files in the order of their times
            os.utime(draft, (1_700_000_000 + number,) * 2)
            draft.rename(path)


def stream_statement(root: Path, stream: str, options: str = "IDLE NEVER") -> str:
    return (
        f"CREATE STREAM {stream} ({COLUMNS}) TIMESTAMP BY ts {options} "
        f"FROM FILES '{root / stream}' FORMAT parquet OPTIONS (max_files_per_trigger = 1)"
    )


# -- what comes out ----------------------------------------------------------------------------


def expected(texts: Mapping[str, str], skip: Mapping[str, set[int]] | None = None) -> Bags:
    """The output of an undisturbed run in one piece; `skip` leaves out files of a stream."""
    runner = Runner(epochs=1)
    for stream in STREAMS:
        left = [i for i in range(FILES) if i not in (skip or {}).get(stream, set())]
        runner.stream(stream, pa.concat_tables([piece(stream, i) for i in left]))
    for name, text in texts.items():
        runner.query(text.split(" INTO ")[0], name)
    runner.run()
    found = {name: bag(runner.queries[name].results()) for name in texts}
    if not all(found.values()):
        raise RuntimeError("a query without output proves nothing")
    return found


def bag(table: pa.Table) -> Bag:
    return canonical(from_table(table))


def save_results(root: Path, results: Mapping[str, pa.Table], late: int) -> None:
    """Written by a driver that got to the end."""
    folder = root / "results"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, table in results.items():
        pyarrow.feather.write_feather(table, folder / f"{name}.feather")
    (folder / "late").write_text(str(late))


def problems(root: Path, wanted: Bags) -> list[str]:
    """Everything wrong with a folder of work after a driver has got to the end."""
    found = []
    for name, want in wanted.items():
        path = root / "results" / f"{name}.feather"
        if not path.exists():
            found.append(f"{name}: there are no results")
            continue
        found += differences(name, want, pyarrow.feather.read_table(path))
    if FILED in wanted:
        found += sink_problems(root, wanted[FILED])
    late = (root / "results" / "late").read_text()
    return found + ([f"{late} rows were late"] if late != "0" else []) + left_behind(root)


def differences(name: str, want: Bag, table: pa.Table) -> list[str]:
    what = difference(want, bag(table), limit=3)
    return [] if what is None else [f"{name}: {what}"]


def sink_problems(root: Path, want: Bag) -> list[str]:
    """The sink's folder holds every row once and nothing else."""
    folder = root / "out"
    names = sorted(p.name for p in folder.iterdir()) if folder.exists() else []
    strays = [n for n in names if n.startswith(".") or not n.endswith(".parquet")]
    tables = [pq.read_table(folder / n) for n in names if n not in strays]
    found = [f"the sink left {n}" for n in strays]
    if not tables:
        return [*found, "the sink wrote no file"]
    return found + differences("files of the sink", want, pa.concat_tables(tables))


def left_behind(root: Path) -> list[str]:
    """Files on the engine's path, after one more opening, that nothing refers to; or lost ones."""
    path = root / "path"
    storage = LocalStorage(str(path))
    state = load_state(storage)
    sweep(storage, state)
    there = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    ours = {n for n in there if n.split("/")[0] not in ("manifests", "checkpoints")}
    waiting = {n for n in there if n.startswith("log/") and n.endswith(".json")}
    strays = ours - state.files() - {"format.json", "owner.lock"} - waiting
    totals = inspect(storage).totals
    found = [f"left behind: {n}" for n in sorted(strays)]
    found += [f"lost: {n}" for n in totals.missing]
    if totals.unreferenced.files and not strays:
        found.append(f"the inspection knows {totals.unreferenced.files} unreferenced files")
    return found


def busy_upkeep() -> None:
    """Whole manifests, merges and folds every few epochs, so that short runs have them all."""
    manifest.CHECKPOINT_EVERY = 5
    compaction.FAN_IN = 3
