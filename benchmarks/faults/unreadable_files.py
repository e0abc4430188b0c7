"""Input files that cannot be read: cut off, garbage, broken lines, no permission.

Two outcomes are right. Either ingest stops with an error that names the file, and goes on once it
is mended; or the bad records go to the rejects of the stream and the rest is read. In both no row
of a good file is lost, repeated or read half.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from faults.fault_process import attempt
from faults.ledger import Ledger

FAULT = "unreadable file"
FILES, ROWS, BAD = 4, 50, 2
NOBODY_READS = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to spoil a file of a format; `sound` is how many of its rows can still be read."""

    title: str
    form: str
    spoil: Callable[[Path], None]
    sound: int = 0


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _garble(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 20)


def _break_lines(path: Path) -> None:
    """Every fifth line loses its end."""
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{x[:9] if i % 5 == 0 else x}\n" for i, x in enumerate(lines)))


def _forbid(path: Path) -> None:
    path.chmod(NOBODY_READS)


KINDS = (
    Kind("a Parquet file that was cut off", "parquet", _cut),
    Kind("a CSV file of garbage", "csv", _garble),
    Kind("a JSON file with broken lines", "json", _break_lines, ROWS - ROWS // 5),
    Kind("a file without permission", "parquet", _forbid),
)


def run(root: Path, spark: Any, ledger: Ledger, quick: bool) -> None:
    for number, kind in enumerate(KINDS):
        _one(root / str(number), spark, ledger, kind)


def _one(root: Path, spark: Any, ledger: Ledger, kind: Kind) -> None:
    for number in range(FILES):
        _write(root, kind.form, number)
    bad = _path(root, kind.form, BAD)
    kind.spoil(bad)
    _aged(bad, BAD)  # it keeps its turn: read last, its rows would be late
    others = Counter(i for n in range(FILES) if n != BAD for i in _ids(n))
    found, reasons, error = _read(root, spark, kind.form)
    if error is None:
        rejected = len(reasons)
        ledger.notes.append(f"{kind.title}: its records go to the rejects")
        ledger.tell("".join(reasons[:1]), f"(?i){bad.name}|malformed|cannot|not ", False)
        inside = sum(n for i, n in found.items() if i not in others)
        ledger.check(f"{kind.title}: the other files are complete", found & others == others, found)
        ledger.check(
            f"{kind.title}: what is sound is read once, the rest is rejected",
            inside == kind.sound and rejected > 0 and max(found.values()) == 1,
            f"{inside} rows read, {rejected} rejected",
        )
        return
    ledger.notes.append(f"{kind.title}: it stops ingest")
    ledger.tell(f"{error}", bad.name)
    ledger.check(f"{kind.title}: ingest ends, it does not hang",
                 not isinstance(error, TimeoutError), error)  # fmt: skip
    ledger.check(f"{kind.title}: nothing of the file is half-read", not found - others, found)
    bad.chmod(0o644)
    _write(root, kind.form, BAD)
    found, _, error = _read(root, spark, kind.form)
    every = Counter(i for n in range(FILES) for i in _ids(n))
    ledger.check(f"{kind.title}: once mended all rows come, each once", found == every,
                 error or f"missing {every - found}, extra {found - every}")  # fmt: skip


def _read(
    root: Path, spark: Any, form: str
) -> tuple[Counter[int], list[str], BaseException | None]:
    """The ids a query has given so far, why rows were rejected, and what stopped the run."""
    import thalweg as tw

    with tw.Engine(spark, root / "path", parallelism=2) as engine:
        engine.sql(
            f"CREATE STREAM s (id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts FROM FILES '{root / 'in'}' "
            f"FORMAT {form} OPTIONS (max_files_per_trigger = 1)"
        )
        query = engine.query("SELECT id FROM s", "all_of_them")
        error = attempt(engine.run, 60)
        found = Counter(query.results().column("id").to_pylist())
        rejects = engine.rejects("s")
        reasons = rejects.column("__reason").to_pylist() if rejects.num_rows else []
        return found, reasons, error


def _ids(number: int) -> range:
    return range(number * ROWS, (number + 1) * ROWS)


def _path(root: Path, form: str, number: int) -> Path:
    return root / "in" / f"part-{number}.{form}"


def _write(root: Path, form: str, number: int) -> None:
    path = _path(root, form, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = list(_ids(number))
    times = pa.array([i * 1000 for i in ids], pa.timestamp("us"))
    table = pa.table({"id": pa.array(ids, pa.int64()), "ts": times})
    if form == "parquet":
        pq.write_table(table, path)
    elif form == "csv":
        pa.csv.write_csv(table, path)
    else:
        texts = [f'{{"id": {i}, "ts": "{t}"}}\n' for i, t in zip(ids, times, strict=True)]
        path.write_text("".join(texts))
    _aged(path, number)


def _aged(path: Path, number: int) -> None:
    """Spark takes files in the order of their times."""
    os.utime(path, (1_700_000_000 + number,) * 2)
