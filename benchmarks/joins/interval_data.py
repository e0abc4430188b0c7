"""The rows of the join benchmarks: seeded, vectorised, written once and read by every system.

`batch_rows` counts the rows of ALL streams of a trigger together, split evenly: 200,000 rows per
batch of a two-way join are 100,000 of `a` and 100,000 of `b`; 300,000 of a three-way join are
100,000 each. Every batch is one Parquet file per stream, so one file per trigger and stream gives
each system the same triggers.

Event time advances at a fixed rate (`rate` rows a second and stream), so every batch covers the
same span and a data set of the same total has the same rows whatever its batch size. Inside
the stream rows are out of order by less than `jitter_ms`. Keys are uniform over `2 * window * rate`
values: about one partner per row. `x`, `y`, `z` are random doubles, so no two results are equal
and set or bag semantics give the same count. Times are whole milliseconds because Flink's rowtime
knows no finer ones; the files hold them as TIMESTAMP (microseconds, UTC).

    two-way    a(k, ts, x)  b(k, ts, y)               a.k = b.k
    three-way  a(k, ts, x)  b(k, m, ts, y)  c(m, ts, z)    a.k = b.k and b.m = c.m
    star       three to seven streams with one key, see `star_data.py`

A result is a combination in which any two times differ by at most the window (closed), which is
what `[RANGE w]` on every stream with ISTREAM says.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from joins.star_data import count_star, star_columns

BASE_MS = 1_704_067_200_000  # 2024-01-01 00:00:00 UTC
ROW_GROUPS = 4  # so that one file can be read by several tasks
FORMAT = 1

COLUMNS: dict[int, dict[str, tuple[str, ...]]] = {
    2: {"a": ("k", "ts", "x"), "b": ("k", "ts", "y")},
    3: {"a": ("k", "ts", "x"), "b": ("k", "m", "ts", "y"), "c": ("m", "ts", "z")},
}


@dataclass(frozen=True)
class Spec:
    """What to generate. Equal specs give equal bytes. The shape is `chain` or `star`."""

    ways: int = 2
    batch_rows: int = 200_000
    batches: int = 20
    window_s: int = 300
    rate: int = 1_000
    jitter_ms: int = 500
    seed: int = 20_240_101
    shape: str = "chain"

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each stream."""
        return star_columns(self.ways) if self.is_star else COLUMNS[self.ways]

    @property
    def is_star(self) -> bool:
        return self.shape == "star"

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def stream_batch_rows(self) -> int:
        """Rows of one stream in one batch."""
        return self.batch_rows // self.ways

    @property
    def stream_rows(self) -> int:
        return self.stream_batch_rows * self.batches

    @property
    def total_rows(self) -> int:
        return self.stream_rows * self.ways

    @property
    def window_ms(self) -> int:
        return self.window_s * 1_000

    @property
    def keys(self) -> int:
        """Size of each key's domain: one expected partner within plus or minus the window, in a
        star one in the window behind a row."""
        return (1 if self.is_star else 2) * self.window_s * self.rate


@dataclass(frozen=True)
class Dataset:
    """A generated directory: `<stream>/part-00000.parquet`, ... and `spec.json`."""

    path: Path
    spec: Spec

    def files(self, stream: str) -> list[Path]:
        return sorted((self.path / stream).glob("part-*.parquet"))

    def columns(self, stream: str) -> tuple[str, ...]:
        return self.spec.columns[stream]

    @cached_property
    def _expected(self) -> dict[int, int]:
        return {}

    def expected(self, batches: int | None = None) -> int:
        """The exact number of results once the first `batches` batches (default: all) are in."""
        count = self.spec.batches if batches is None else batches
        if count not in self._expected:
            self._expected[count] = self._count(count)
        return self._expected[count]

    def _count(self, batches: int) -> int:
        if batches == 0:
            return 0
        parts = [self._arrays(stream, batches) for stream in self.spec.streams]
        if self.spec.is_star:
            return count_star(parts, self.spec.window_ms)
        if self.spec.ways == 2:
            return count_pairs(parts[0], parts[1], self.spec.window_ms)
        return count_triples(parts[0], parts[1], parts[2], self.spec.window_ms)

    def _arrays(self, stream: str, batches: int) -> dict[str, np.ndarray]:
        names = [name for name in ("k", "m", "ts") if name in self.columns(stream)]
        files = self.files(stream)[:batches]
        table = pa.concat_tables(pq.read_table(f, columns=names) for f in files)
        out: dict[str, np.ndarray] = {n: table[n].to_numpy() for n in names if n != "ts"}
        out["ts"] = table["ts"].cast(pa.int64()).to_numpy() // 1_000 - BASE_MS
        return out

    def csv(self) -> Path:
        """The same rows as one `<stream>.csv` each, times as epoch milliseconds (for Flink)."""
        target = self.path / "csv"
        if not (target / "done").exists():
            target.mkdir(exist_ok=True)
            for stream in self.spec.streams:
                self._write_csv(stream, target / f"{stream}.csv")
            (target / "done").touch()
        return target

    def _write_csv(self, stream: str, target: Path) -> None:
        schema = _schema(self.columns(stream), ts=pa.int64())
        options = pa_csv.WriteOptions(include_header=False)
        with pa_csv.CSVWriter(target, schema, write_options=options) as writer:
            for file in self.files(stream):
                table = pq.read_table(file)
                millis = pa.array(table["ts"].cast(pa.int64()).to_numpy() // 1_000)
                place = table.schema.get_field_index("ts")
                writer.write_table(table.set_column(place, "ts", millis))


def ensure(root: Path, spec: Spec) -> Dataset:
    """The data set of `spec` below `root`, generated unless it is already there and complete."""
    kind = "star" if spec.is_star else "way"
    name = f"{spec.ways}{kind}-{spec.batch_rows}x{spec.batches}-w{spec.window_s}"
    path = root / name
    marker = path / "spec.json"
    wanted = json.dumps({"format": FORMAT, **asdict(spec)}, sort_keys=True)
    if not marker.exists() or marker.read_text() != wanted:
        shutil.rmtree(path, ignore_errors=True)
        for stream in spec.streams:
            _write_stream(path / stream, stream, spec)
        marker.write_text(wanted)
    return Dataset(path, spec)


def load(path: Path) -> Dataset:
    """The data set generated in `path`."""
    raw = json.loads((path / "spec.json").read_text())
    if raw.pop("format") != FORMAT:
        raise ValueError(f"{path} was written by another version of the generator; delete it")
    return Dataset(path, Spec(**raw))


def _schema(columns: tuple[str, ...], ts: pa.DataType) -> pa.Schema:
    types = {"k": pa.int64(), "m": pa.int64(), "ts": ts}
    return pa.schema([(name, types.get(name, pa.float64())) for name in columns])


def _write_stream(target: Path, stream: str, spec: Spec) -> None:
    target.mkdir(parents=True)
    table = _stream_table(stream, spec)
    step = spec.stream_batch_rows
    for batch in range(spec.batches):
        file = target / f"part-{batch:05d}.parquet"
        part = table.slice(batch * step, step)
        groups = -(-step // ROW_GROUPS)
        pq.write_table(part, file, row_group_size=groups, use_dictionary=False)
        # Spark's file source orders files by modification time: make that the batch order.
        moment = BASE_MS // 1_000 + 10 * batch
        os.utime(file, (moment, moment))


def _stream_table(stream: str, spec: Spec) -> pa.Table:
    rng = np.random.default_rng([spec.seed, ord(stream)])
    rows = spec.stream_rows
    base = np.arange(rows, dtype=np.int64) * 1_000 // spec.rate + BASE_MS
    ts = base + rng.integers(0, spec.jitter_ms, rows)
    makers = {
        "ts": lambda: pa.array(ts * 1_000, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "k": lambda: pa.array(rng.integers(0, spec.keys, rows)),
        "m": lambda: pa.array(rng.integers(0, spec.keys, rows)),
    }
    columns = spec.columns[stream]
    arrays = [makers[c]() if c in makers else pa.array(rng.random(rows)) for c in columns]
    return pa.Table.from_arrays(arrays, schema=_schema(columns, pa.timestamp("us", "UTC")))


def _codes(key: np.ndarray, ts: np.ndarray, bits: int) -> np.ndarray:
    codes: np.ndarray = (key << bits) | ts
    return codes


def _ranges(
    codes: np.ndarray, key: np.ndarray, low: np.ndarray, high: np.ndarray, bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where in the sorted `codes` the rows of `key` with low <= ts <= high start and end."""
    last = (1 << bits) - 1
    start = np.searchsorted(codes, _codes(key, np.clip(low, 0, last), bits), "left")
    end = np.searchsorted(codes, _codes(key, np.clip(high, 0, last), bits), "right")
    return start, np.maximum(start, end)


def _bits(*parts: dict[str, np.ndarray]) -> int:
    return int(max(int(p["ts"].max()) for p in parts)).bit_length() + 1


def count_pairs(a: dict[str, np.ndarray], b: dict[str, np.ndarray], window_ms: int) -> int:
    """Pairs with a.k = b.k and |a.ts - b.ts| <= window, exactly, by two binary searches a row."""
    bits = _bits(a, b)
    codes = np.sort(_codes(b["k"], b["ts"], bits))
    start, end = _ranges(codes, a["k"], a["ts"] - window_ms, a["ts"] + window_ms, bits)
    return int((end - start).sum())


def count_triples(
    a: dict[str, np.ndarray], b: dict[str, np.ndarray], c: dict[str, np.ndarray], window_ms: int
) -> int:
    """Triples with a.k = b.k, b.m = c.m and all three times within one window, exactly."""
    bits = _bits(a, b, c)
    order = np.argsort(_codes(a["k"], a["ts"], bits), kind="stable")
    a_ts = a["ts"][order]
    codes = _codes(a["k"], a["ts"], bits)[order]
    start, end = _ranges(codes, b["k"], b["ts"] - window_ms, b["ts"] + window_ms, bits)
    size = end - start
    left = np.repeat(np.arange(len(size)), size)
    offset = np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size)
    pair_a, pair_b, pair_m = a_ts[start[left] + offset], b["ts"][left], b["m"][left]
    low = np.maximum(pair_a, pair_b) - window_ms
    high = np.minimum(pair_a, pair_b) + window_ms
    start, end = _ranges(np.sort(_codes(c["m"], c["ts"], bits)), pair_m, low, high, bits)
    return int((end - start).sum())


def duckdb_expected(data: Dataset) -> int:
    """The same count from DuckDB, an independent oracle (tests and doubts; slower)."""
    import duckdb

    def scan(stream: str) -> str:
        return f"read_parquet('{data.path / stream}/*.parquet') {stream}"

    def near(left: str, right: str) -> str:
        return f"abs(epoch_ms({left}.ts) - epoch_ms({right}.ts)) <= {data.spec.window_ms}"

    sql = f"SELECT count(*) FROM {scan('a')}"
    streams = data.spec.streams
    for i, stream in enumerate(streams[1:], 1):
        key = "k" if "k" in data.columns(stream) else "m"
        close = " AND ".join(near(before, stream) for before in streams[:i])
        sql += f" JOIN {scan(stream)} ON {streams[i - 1]}.{key} = {stream}.{key} AND {close}"
    with duckdb.connect() as connection:
        return int(connection.execute(sql).fetchall()[0][0])
