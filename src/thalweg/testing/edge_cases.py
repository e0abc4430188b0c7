"""Cases for the grid with columns of every type and their edge values.

Random queries of the whole language over NaN, infinities, both zeros, subnormals, the largest and
smallest of every number, the first and last days, empty texts, bytes that are no text, arrays, and
NULL in every column.

Text that is no UTF-8 never gets past the entrance (`tests/runtime/sources`).
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from thalweg.errors import ThalwegError
from thalweg.testing.generators import Case, GeneratedStream
from thalweg.testing.random_statements import random_statement
from thalweg.testing.random_statements.rows import COLUMNS, STAMP, STREAMS, TABLES
from thalweg.testing.random_streams import arrival_order
from thalweg.testing.runner import Runner

SECOND = 1_000_000
_SUBNORMAL, _FLOAT_SUBNORMAL = 5e-324, 1e-45
MORE: dict[str, list[Any]] = {
    "f": [-math.inf, 3.4e38, _FLOAT_SUBNORMAL, 0.0],
    "d": [math.inf, -1e300, _SUBNORMAL, -_SUBNORMAL, 0.0, 2.0**53 + 2, 1.7976931348623157e308],
    "dec": [Decimal("99999999.99"), Decimal("-99999999.99"), None],
    "wide": [Decimal("-" + "9" * 28), Decimal("0.0000000001"), Decimal(0)],
    "txt": ["A", " ", "\x00", "1e400", "NaN", "x" * 70],
    "bin": [b"\x00", b"\xff\xfe", b"\xc3\x28"],
    "day": [dt.date.min, dt.date(1970, 1, 1)],
    "at": [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.UTC)],
    "gap": [dt.timedelta(microseconds=1), dt.timedelta(days=-1000)],
    "xs": [[0, None, 0], [-(2**63)]],
    "words": [["ä", ""], [None]],
}
"""Values beside those of the random statements."""


def edge_case(seed: int) -> Case | None:
    """The case of a seed; None where the statement is no query that is answered."""
    statement = random_statement(seed)
    if not statement.is_query or statement.plain is None or "FROM v" in statement.text:
        return None
    rng = Random(f"edges {seed}")
    streams = {"s": _stream(rng, 14), "q2": _like(rng, "q", 6)}
    sql = re.sub(r"\bq\b", "q2", statement.text)  # the grid calls its query q
    streams = {n: s for n, s in streams.items() if re.search(rf"\b{n}\b", sql)}
    case = Case(seed, "edges", streams, dict(TABLES), sql, statement.features)
    return case if _is_answered(case) else None


def _is_answered(case: Case) -> bool:
    runner = Runner()
    for name, stream in case.streams.items():
        runner.stream(name, stream.table, "ts", lateness=stream.lateness)
    for name, table in case.tables.items():
        runner.table(name, table)
    try:
        runner.query(case.sql, "x")
    except ThalwegError:
        return False
    return True


def _stream(rng: Random, rows: int) -> GeneratedStream:
    def drawn(name: str, values: list[Any]) -> list[Any]:
        return [rng.choice([*values, *MORE.get(name, []), None]) for _ in range(rows)]

    columns = {n: pa.array(drawn(n, v), t) for n, (_, t, v) in COLUMNS.items()}
    return _timed(rng, columns, rows)


def _like(rng: Random, name: str, rows: int) -> GeneratedStream:
    table = STREAMS[name].drop_columns(["ts"])
    chosen = [rng.randrange(table.num_rows) for _ in range(rows)]
    picked = table.take(pa.array(chosen))
    return _timed(rng, {n: picked[n] for n in picked.column_names}, rows)


def _timed(rng: Random, columns: dict[str, Any], rows: int) -> GeneratedStream:
    lateness = rng.choice((0, 3 * SECOND))
    stamps = sorted(rng.randint(0, 12) * SECOND for _ in range(rows))
    ts = pa.array(arrival_order(rng, stamps, lateness), STAMP)
    return GeneratedStream(pa.table({"ts": ts, **columns}), "ts", lateness)
