"""The operators that are compared with Spark's own: data, our SQL, Spark's DataFrame, the answer.

Both systems read the same files with the same triggers. How many rows are right is computed by
DuckDB; Spark holds back what its watermark has not passed yet, so for it only what had to be out
by then is counted (`cutoff`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELAY_MS = 200
EVENTS = "k BIGINT, id BIGINT, v DOUBLE, ts TIMESTAMP"
QUOTES = "k BIGINT, w DOUBLE, ts TIMESTAMP"
SCHEMAS = {"e": EVENTS, "q": QUOTES}


@dataclass(frozen=True)
class Shape:
    """`batches` files of `rows` rows for each stream; a batch is `seconds` of event time."""

    rows: int
    batches: int
    keys: int = 20_000
    seconds: int = 10


def cutoff(folder: Path) -> float:
    """Spark's last watermark in seconds: of all batches but the last, minus the delay; it counts
    milliseconds."""
    files = sorted((folder / "e").glob("*.parquet"))[:-1]
    last = max(pq.read_table(f, columns=["ts"]).column("ts").cast("int64").to_numpy().max()
               for f in files)  # fmt: skip
    return (int(last) // 1000 - DELAY_MS) / 1e3


def ensure(root: Path, shape: Shape) -> Path:
    folder = root / f"operators-{shape.rows}-{shape.batches}-{shape.keys}-{shape.seconds}"
    if not (folder / "done").exists():
        _write(folder, shape)
        (folder / "done").touch()
    return folder


def _write(folder: Path, shape: Shape) -> None:
    rng = np.random.default_rng(7)
    for name in ("e", "q", "users"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for batch in range(shape.batches):
        for name in ("e", "q"):
            first, span = batch * shape.seconds * 1_000_000, shape.seconds * 1_000_000
            ts = np.sort(rng.integers(first, first + span, shape.rows))
            columns: dict[str, Any] = {"k": rng.integers(0, shape.keys, shape.rows)}
            if name == "e":
                columns["id"] = rng.integers(0, shape.rows * shape.batches // 2, shape.rows)
            columns["v" if name == "e" else "w"] = rng.random(shape.rows)
            columns["ts"] = pa.array(ts, pa.timestamp("us", "UTC"))
            pq.write_table(pa.table(columns), folder / name / f"{batch:05d}.parquet")
    users = {"k": np.arange(0, shape.keys, 2), "segment": np.arange(0, shape.keys, 2) % 7}
    pq.write_table(pa.table(users), folder / "users" / "users.parquet")


@dataclass(frozen=True)
class Case:
    """`answer` counts in DuckDB over views e, q, users, with {cutoff} in seconds; `counted` says
    which of our results it counts. `stateless` cases have another goal."""

    name: str
    sql: str
    spark: Callable[[SparkSession, Callable[[str], DataFrame], DataFrame], DataFrame]
    answer: str
    stateless: bool = False
    pairs_only: bool = False
    slow_in_spark: bool = False

    def expected(self, folder: Path, cutoff: float) -> int:
        connection = duckdb.connect()
        for name in ("e", "q", "users"):
            connection.execute(
                f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder / name}/*.parquet')"
            )
        return int(connection.execute(self.answer.format(cutoff=cutoff)).fetchall()[0][0])


def _marked(stream: DataFrame) -> DataFrame:
    return stream.withWatermark("ts", f"{DELAY_MS} milliseconds")


def _filter(spark: Any, stream: Any, users: Any) -> DataFrame:
    return stream("e").where("v > 0.5 AND id % 3 <> 0").selectExpr("k", "v * 2 AS d", "ts")


def _table(spark: Any, stream: Any, users: Any) -> DataFrame:
    from pyspark.sql.functions import broadcast

    return stream("e").join(broadcast(users), "k").select("k", "segment", "v")


def _windowed(spark: Any, stream: Any, users: Any) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    grouped = _marked(stream("e")).groupBy(F.window("ts", "5 seconds"), "k")
    return grouped.agg(F.count("*").alias("n"), F.sum("v").alias("total"))


def _distinct(spark: Any, stream: Any, users: Any) -> DataFrame:
    return stream("e").select("id").dropDuplicates(["id"])


def _sessions(spark: Any, stream: Any, users: Any) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    grouped = _marked(stream("e")).groupBy(F.session_window("ts", "500 milliseconds"), "k")
    return grouped.agg(F.count("*").alias("n"), F.sum("v").alias("total"))


def _outer(spark: Any, stream: Any, users: Any) -> DataFrame:
    from pyspark.sql.functions import expr

    left = _marked(stream("e").selectExpr("k", "v", "ts")).alias("a")
    right = stream("q").selectExpr("k AS qk", "w", "ts AS qts")
    right = right.withWatermark("qts", f"{DELAY_MS} milliseconds")
    near = "qts >= ts - INTERVAL 2 SECONDS AND qts <= ts + INTERVAL 2 SECONDS"
    return left.join(right, expr(f"k = qk AND {near}"), "leftOuter").select("k", "v", "w")


def _asof(spark: Any, stream: Any, users: Any) -> DataFrame:
    """Spark has no ASOF join of streams: the last quote per key is kept in a state of our own
    making, with pandas."""
    import pandas as pd
    from pyspark.sql.streaming.state import GroupStateTimeout

    both = (
        stream("e")
        .selectExpr("k", "ts", "v", "CAST(NULL AS DOUBLE) AS w")
        .union(stream("q").selectExpr("k", "ts", "CAST(NULL AS DOUBLE) AS v", "w"))
    )

    def last_quote(key: Any, frames: Any, state: Any) -> Any:
        rows = pd.concat(list(frames)).sort_values("ts", kind="stable")
        known = state.get[0] if state.exists else None
        rows["w"] = rows["w"].ffill() if known is None else rows["w"].ffill().fillna(known)
        if rows["w"].notna().any():
            state.update((float(rows["w"].iloc[-1]),))
        found = rows[rows["v"].notna() & rows["w"].notna()]
        yield found[["k", "v", "w"]]

    return both.groupBy("k").applyInPandasWithState(
        last_quote,
        "k BIGINT, v DOUBLE, w DOUBLE",
        "w DOUBLE",
        "append",
        GroupStateTimeout.NoTimeout,
    )


CASES = (
    Case(
        "filter and projection",
        "SELECT k, v * 2 AS d, ts FROM e WHERE v > 0.5 AND id % 3 <> 0",
        _filter,
        "SELECT count(*) FROM e WHERE v > 0.5 AND id % 3 <> 0",
        stateless=True,
    ),
    Case(
        "stream-table join",
        "SELECT ISTREAM e.k, u.segment, e.v FROM e, users u WHERE e.k = u.k",
        _table,
        "SELECT count(*) FROM e JOIN users USING (k)",
        stateless=True,
    ),
    Case(
        "windowed aggregation by key",
        "SELECT ISTREAM k, count(*) AS n, sum(v) AS total "
        "FROM e [RANGE 5 SECONDS SLIDE 5 SECONDS] GROUP BY k",
        _windowed,
        "SELECT count(*) FROM (SELECT DISTINCT k, epoch_us(ts) // 5000000 AS w FROM e) "
        "WHERE (w + 1) * 5 <= {cutoff}",
    ),
    Case(
        "distinct",
        "SELECT ISTREAM DISTINCT id FROM e WITH (unbounded = true)",
        _distinct,
        "SELECT count(DISTINCT id) FROM e",
    ),
    Case(
        "session windows",
        "SELECT ISTREAM k, count(*) AS n, sum(v) AS total "
        "FROM e [SESSION GAP 500 MILLISECONDS] GROUP BY k",
        _sessions,
        "SELECT count(*) FROM (SELECT ts, lead(ts) OVER (PARTITION BY k ORDER BY ts) AS next "
        "FROM e) WHERE (next IS NULL OR next > ts + INTERVAL 500 MILLISECONDS) "
        "AND epoch_us(ts) / 1e6 + 0.5 < {cutoff}",
    ),
    Case(
        "left outer join",
        "SELECT ISTREAM e.k, e.v, q.w FROM e [RANGE 2 SECONDS] LEFT JOIN q [RANGE 2 SECONDS] "
        "ON e.k = q.k",
        _outer,
        "SELECT count(*) FROM e JOIN q ON e.k = q.k "
        "AND q.ts BETWEEN e.ts - INTERVAL 2 SECONDS AND e.ts + INTERVAL 2 SECONDS",
        pairs_only=True,
    ),
    Case(
        "ASOF join",
        "SELECT ISTREAM e.k, e.v, q.w FROM e [NOW] ASOF JOIN q ON e.k = q.k AND e.ts >= q.ts",
        _asof,
        "SELECT count(*) FROM e ASOF JOIN q ON e.k = q.k AND e.ts >= q.ts",
        slow_in_spark=True,
    ),
)
