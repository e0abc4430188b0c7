"""Nexmark events: persons, auctions and bids, read from files or drawn from a seed.

The streams are the three of the benchmark, and `closed`: the auctions again, at the moment they
expire. Rows come in the order of their arrival, not quite that of their times.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MILLISECOND = 1_000
START = 1_436_918_400_000  # of the drawn events, in milliseconds
STEP = 20  # drawn times are multiples of it: ties, and rows at the edges of windows
DISORDER = 160
LONGEST = 9_000  # the life of an auction
EVENT_TIME = {"closed": "expires"}  # elsewhere it is `ts`
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Bend", "Boise", "Kent", "Phoenix", "Portland")

Streams = dict[str, pa.Table]


def from_files(folder: Path) -> Streams:
    """All events of the files."""
    streams = {}
    for name in ("person", "auction", "bid"):
        table = pq.read_table(folder / f"{name}.parquet").sort_by("seq")
        streams[name] = _in_our_time(table.drop_columns(["seq", "wm"]))
    return with_closed(streams)


def drawn(seed: int, events: int) -> Streams:
    """About as many events as asked for: of fifty, one is a person, three are auctions.

    Prices are coarse, too, so that there are ties; some bids come before their auction, some after
    it has closed, some auctions have a seller nobody knows.
    """
    rng = np.random.default_rng(seed)
    stamps = START + np.cumsum(rng.integers(0, 12, events))
    stamps -= rng.integers(0, DISORDER + 1, events)  # arrival keeps the order before this
    stamps = stamps // STEP * STEP
    kind = rng.choice(3, events, p=[0.02, 0.06, 0.92])
    persons, auctions, bids = (np.flatnonzero(kind == k) for k in range(3))
    return with_closed(
        {
            "person": _persons(rng, stamps[persons]),
            "auction": _auctions(rng, stamps[auctions], known=np.searchsorted(persons, auctions)),
            "bid": _bids(rng, stamps[bids], known=np.searchsorted(auctions, bids)),
        }
    )


def with_closed(streams: Streams) -> Streams:
    return {**streams, "closed": streams["auction"]}


def _persons(rng: np.random.Generator, stamps: np.ndarray) -> pa.Table:
    n = len(stamps)
    return _in_our_time(
        pa.table(
            {
                "ts": stamps,
                "id": np.arange(n) + 1000,
                "name": [f"person {i}" for i in rng.integers(0, 40, n)],
                "city": rng.choice(CITIES, n).tolist(),
                "state": rng.choice(STATES, n).tolist(),
                "dateTime": stamps,
            }
        )
    )


def _auctions(rng: np.random.Generator, stamps: np.ndarray, known: np.ndarray) -> pa.Table:
    n = len(stamps)
    return _in_our_time(
        pa.table(
            {
                "ts": stamps,
                "id": np.arange(n) + 1000,
                "expires": stamps + rng.integers(0, LONGEST, n) // STEP * STEP,
                "seller": 1000 + _recent(rng, known, 6),
                "category": 10 + rng.integers(0, 5, n),
                "dateTime": stamps,
            }
        )
    )


def _bids(rng: np.random.Generator, stamps: np.ndarray, known: np.ndarray) -> pa.Table:
    n = len(stamps)
    return _in_our_time(
        pa.table(
            {
                "ts": stamps,
                "auction": 1000 + _recent(rng, known, 20),
                "bidder": 1000 + rng.integers(0, 100, n),
                "price": np.minimum(np.exp(rng.normal(6, 1.5, n)), 30_000).astype(np.int64) // 20,
                "dateTime": stamps,
                "extra": [f"{x:x}" for x in rng.integers(0, 1 << 30, n)],
            }
        )
    )


def _recent(rng: np.random.Generator, known: np.ndarray, spread: int) -> np.ndarray:
    """One of the latest numbers given out before, now and then one that is yet to come."""
    return np.maximum(known + 1 - rng.integers(0, spread, len(known)), 0)


def _in_our_time(table: pa.Table) -> pa.Table:
    """`ts` and `expires`, in milliseconds there, as timestamps."""
    for name in {"ts", "expires"} & set(table.column_names):
        micros = pc.multiply(table[name].cast(pa.int64()), MILLISECOND)
        where = table.schema.get_field_index(name)
        table = table.set_column(where, name, micros.cast(pa.timestamp("us", "UTC")))
    return table
