"""The demo's world: an online shop whose customers change their habits half way.

Orders are followed by payments and shipments. Most rows are delivered at once, some come out of
order, and a few so late that no engine could still count them. Files are written under a hidden
name and renamed, so that a reader never sees half a file.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Floats = npt.NDArray[np.float64]
Columns = dict[str, npt.NDArray[Any]]

STREAMS = ("orders", "payments", "shipments")
REGIONS = ("north", "east", "south", "west")
METHODS = ("card", "invoice", "voucher")
DEPOTS = ("harbour", "airport", "old town")

RATE = 4_000
TRICKLE = 0.02
TRICKLE_SECONDS = 2.0
TICK_SECONDS = 0.5
DISORDER = 0.08
DISORDER_SECONDS = 1.5
TOO_LATE = 0.0004
TOO_LATE_SECONDS = 7.0


@dataclass(frozen=True, slots=True)
class Habits:
    """What customers do in one half of the demo."""

    regions: tuple[float, ...]
    mean_amount: float
    methods: tuple[float, ...]


BEFORE = Habits(regions=(0.64, 0.18, 0.12, 0.06), mean_amount=60.0, methods=(0.55, 0.35, 0.10))
AFTER = Habits(regions=(0.10, 0.14, 0.16, 0.60), mean_amount=140.0, methods=(0.80, 0.05, 0.15))


@dataclass(slots=True)
class Shop:
    """Generates events; `due` hands out what has been delivered by a moment."""

    seed: int = 7
    rate: int = RATE
    _random: np.random.Generator = field(init=False)
    _next_id: int = 0
    _waiting: dict[str, list[Columns]] = field(default_factory=lambda: {s: [] for s in STREAMS})

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def trade(self, begin: float, end: float, habits: Habits, pace: float = 1.0) -> None:
        """All orders placed in [begin, end) and what will follow from them."""
        rng, n = self._random, int(pace * self.rate * (end - begin))
        ids = np.arange(self._next_id, self._next_id + n)
        self._next_id += n
        placed = rng.uniform(begin, end, n)
        amount = np.round(rng.exponential(habits.mean_amount, n) + 1.0, 2)
        region = rng.choice(REGIONS, n, p=habits.regions)
        self._send("orders", placed, {"id": ids, "region": region, "amount": amount})
        paid = rng.random(n) < 0.9
        paid_at = placed[paid] + rng.exponential(1.0, int(paid.sum()))
        method = rng.choice(METHODS, int(paid.sum()), p=habits.methods)
        self._send("payments", paid_at, {"order_id": ids[paid], "method": method})
        shipped = rng.random(len(paid_at)) < 0.85
        shipped_at = paid_at[shipped] + rng.exponential(4.0, int(shipped.sum()))
        depot = rng.choice(DEPOTS, len(shipped_at))
        self._send("shipments", shipped_at, {"order_id": ids[paid][shipped], "depot": depot})

    def _send(self, stream: str, happened: Floats, columns: Columns) -> None:
        rng, n = self._random, len(happened)
        delay = np.where(rng.random(n) < DISORDER, rng.uniform(0, DISORDER_SECONDS, n), 0.0)
        delay = np.where(rng.random(n) < TOO_LATE, TOO_LATE_SECONDS, delay)
        self._waiting[stream].append({**columns, "ts": happened, "delivered": happened + delay})

    def due(self, stream: str, now: float) -> pa.Table | None:
        """Rows delivered by `now`, in order of delivery; None if there are none."""
        parts = self._waiting[stream]
        if not parts:
            return None
        whole = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        ready = whole["delivered"] <= now
        self._waiting[stream] = [{name: column[~ready] for name, column in whole.items()}]
        order = np.argsort(whole["delivered"][ready], kind="stable")
        if not len(order):
            return None
        return _table({name: column[ready][order] for name, column in whole.items()})


def _table(columns: Columns) -> pa.Table:
    micros = (columns["ts"] * 1e6).astype(np.int64)
    kept = {n: pa.array(c) for n, c in columns.items() if n not in ("ts", "delivered")}
    return pa.table({**kept, "ts": pa.array(micros, pa.timestamp("us", "UTC"))})


class Feed:
    """Writes the shop's events as Parquet files, in the background and in real time."""

    def __init__(self, folder: Path, seconds: float, shop: Shop | None = None) -> None:
        self.folder = folder
        self.seconds = seconds
        self.shop = shop or Shop()
        self.rows = dict.fromkeys(STREAMS, 0)
        self.began: float | None = None
        self.failure: BaseException | None = None
        self._files = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-feed", daemon=True)
        self._ready: Callable[[], bool] = lambda: True
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True, exist_ok=True)

    def start(self, ready: Callable[[], bool]) -> None:
        """A trickle until `ready` says so, then `seconds` at full pace; all in real time."""
        self._ready = ready
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    @property
    def elapsed(self) -> float:
        return 0.0 if self.began is None else min(time.time() - self.began, self.seconds)

    @property
    def has_drifted(self) -> bool:
        return self.elapsed >= self.seconds / 2

    def _run(self) -> None:
        try:
            self._flow()
        except BaseException as error:
            self.failure = error

    def _flow(self) -> None:
        last = time.time() - TICK_SECONDS
        while not self._stop.is_set() and not self.is_done(last):
            now = time.time()
            pace = TRICKLE if self.began is None else 1.0
            self.shop.trade(last, now, AFTER if self.has_drifted else BEFORE, pace)
            self._write(now)
            last = now
            if self.began is None and self._ready():
                self.began = now
            self._pause()

    def _pause(self) -> None:
        if self.began is not None:
            self._stop.wait(TICK_SECONDS)
            return
        until = time.time() + TRICKLE_SECONDS
        while time.time() < until and not self._ready() and not self._stop.wait(0.1):
            pass

    def is_done(self, now: float) -> bool:
        return self.began is not None and now - self.began >= self.seconds

    def _write(self, now: float) -> None:
        for stream in STREAMS:
            rows = self.shop.due(stream, now)
            if rows is not None:
                write_file(rows, self.folder / stream, f"{self._files:05d}.parquet")
                self.rows[stream] += rows.num_rows
        self._files += 1


def write_file(rows: pa.Table, folder: Path, name: str) -> None:
    """A file appears whole or not at all."""
    hidden = folder / f".{name}"
    pq.write_table(rows, hidden)
    os.rename(hidden, folder / name)
