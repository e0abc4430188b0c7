"""The demo's own auditor: the same three answers from the files, in NumPy, all at once.

Nothing of the engine is used. Only the rows the engine says came too late are left out, and they
are counted.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Row = tuple[Any, ...]
MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Audit:
    """One query's comparison: rows the engine gave, and how many are missing or unexpected."""

    query: str
    rows: int
    missing: int
    unexpected: int

    @property
    def equal(self) -> bool:
        return not self.missing and not self.unexpected


def audit(query: str, found: pa.Table, expected: Counter[Row]) -> Audit:
    """Compare as bags; a row counts with its instant."""
    given = Counter(rows_of(found))
    missing = sum((expected - given).values())
    unexpected = sum((given - expected).values())
    return Audit(query, found.num_rows, missing, unexpected)


def rows_of(table: pa.Table) -> list[Row]:
    """Rows as tuples, times as microseconds."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        columns.append(column.to_pylist())
    return list(zip(*columns, strict=True)) if columns else []


def accepted(folder: Path, key: str, rejects: pa.Table) -> pa.Table:
    """Every row of a stream's files except the rejected ones."""
    whole = pa.concat_tables([pq.read_table(p) for p in sorted(folder.glob("*.parquet"))])
    if not rejects.num_rows:
        return whole
    late = pc.is_in(whole.column(key), value_set=rejects.column(key).combine_chunks())
    return whole.filter(pc.invert(late))


def filtered(orders: pa.Table, above: float, region: str) -> Counter[Row]:
    """WHERE amount > above AND region = region."""
    keep = pc.and_(pc.greater(orders["amount"], above), pc.equal(orders["region"], region))
    return Counter(rows_of(orders.filter(keep).select(["id", "amount", "ts"])))


def joined(
    orders: pa.Table, payments: pa.Table, shipments: pa.Table, method: str, seconds: int
) -> Counter[Row]:
    """Orders with their payment by `method` and their shipment, all within `seconds`."""
    payments = payments.filter(pc.equal(payments["method"], method)).select(["order_id", "ts"])
    pairs = orders.join(
        payments.rename_columns(["id", "paid"]), "id", join_type="inner", use_threads=False
    ).join(
        shipments.rename_columns(["id", "depot", "shipped"]),
        "id",
        join_type="inner",
        use_threads=False,
    )
    times = np.stack([_micros(pairs[c]) for c in ("ts", "paid", "shipped")])
    together = times.max(axis=0) - times.min(axis=0) <= seconds * MICROS
    rows = pairs.select(["id", "region", "depot"]).append_column("at", pa.array(times.max(axis=0)))
    return Counter(rows_of(rows.filter(pa.array(together))))


def windowed(orders: pa.Table, seconds: int, slide: int) -> Counter[Row]:
    """Per boundary and region, until no row is left: count, sum and maximum of the amounts of the
    last `seconds`."""
    ts = _micros(orders["ts"])
    order = np.argsort(ts, kind="stable")
    ts, amount = ts[order], orders["amount"].to_numpy()[order]
    region = np.asarray(orders["region"].to_pylist(), object)[order]
    step = slide * MICROS
    found: Counter[Row] = Counter()
    first, last = int(ts[0]) // step + 1, (int(ts[-1]) + seconds * MICROS) // step
    for boundary in range(first * step, (last + 1) * step, step):
        low, high = np.searchsorted(ts, [boundary - seconds * MICROS, boundary])
        for name in sorted(set(region[low:high])):
            amounts = amount[low:high][region[low:high] == name]
            # fsum rounds the exact sum once, which is what the engine promises
            found[name, len(amounts), math.fsum(amounts), float(amounts.max()), boundary] += 1
    return found


def _micros(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return found
