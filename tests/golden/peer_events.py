"""Streams of the shapes that other engines' documentation uses, drawn from a seed.

Times are whole seconds and values coarse, so that there are ties; what follows another event does
so after full half minutes, now and then at the very edge of a window. Some keys and values are
NULL. Rows come in the order of their arrival, at most `DISORDER` behind the latest before.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
START = 1_767_225_600  # in seconds
SPAN = 2 * 3_600
DISORDER = 5
PRODUCTS = ("chair", "desk", "lamp", "shelf")
CAMPAIGNS = ("autumn", "spring", "summer", "winter")
CURRENCIES = ("CHF", "EUR", "GBP", "USD")
WORDS = ("and", "boat", "calm", "deep", "eddy", "flow", "ghat", "high")

Columns = dict[str, np.ndarray | pa.Array | list[str]]
Streams = dict[str, pa.Table]


def drawn(seed: int) -> Streams:
    """All streams: a few hundred to two thousand rows each, over two hours."""
    rng = np.random.default_rng(seed)
    orders = _stamps(rng, 1_500)
    shown = _stamps(rng, 600)
    return {
        "orders": _orders(rng, orders),
        "shipments": _followers(rng, orders, "order_id", within=5_400),
        "rates": _rates(rng, _stamps(rng, 200)),
        "impressions": _stream(
            rng, shown, {"ad": np.arange(600), "campaign": _campaigns(np.arange(600))}
        ),
        "clicks": _clicks(rng, shown),
        "words": _stream(rng, _stamps(rng, 2_000), {"word": _words(rng, 2_000)}),
        "payments": _payments(rng, _stamps(rng, 2_000)),
        "requests": _requests(rng, 900),
        "visits": _visits(rng, _stamps(rng, 1_200)),
        "readings": _readings(rng, _stamps(rng, 800)),
    }


def tables() -> Streams:
    """What does not change: there at every instant."""
    payees = [f"payee {i}" for i in range(0, 30, 4)]
    return {"suspects": pa.table({"payee": payees, "reason": [p[-1] for p in payees]})}


def _stamps(rng: np.random.Generator, rows: int) -> np.ndarray:
    return START + rng.integers(0, SPAN, rows)


def _stream(rng: np.random.Generator, stamps: np.ndarray, columns: Columns) -> pa.Table:
    """The rows in an order of arrival that is out of order within `DISORDER`."""
    times = pa.array(stamps * SECOND).cast(pa.timestamp("us", "UTC"))
    arrival = np.argsort(stamps + rng.integers(0, DISORDER + 1, len(stamps)), kind="stable")
    return pa.table({"ts": times, **columns}).take(arrival)


def _nullable(rng: np.random.Generator, values: np.ndarray | list[str]) -> pa.Array:
    return pa.array(values, mask=rng.random(len(values)) < 0.04)


def _amounts(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Quarters: their sums are exact in any order."""
    return rng.integers(4, 800, rows) / 4


def _orders(rng: np.random.Generator, stamps: np.ndarray) -> pa.Table:
    n = len(stamps)
    columns: Columns = {
        "id": np.arange(n),
        "customer": rng.integers(0, 25, n),
        "product": _nullable(rng, rng.choice(PRODUCTS, n).tolist()),
        "currency": _nullable(rng, rng.choice(CURRENCIES, n).tolist()),
        "amount": _amounts(rng, n),
    }
    return _stream(rng, stamps, columns)


def _followers(rng: np.random.Generator, stamps: np.ndarray, key: str, within: int) -> pa.Table:
    """For most rows, numbered as they are, a second event within so many seconds."""
    which = np.flatnonzero(rng.random(len(stamps)) < 0.7)
    later = stamps[which] + rng.integers(0, within, len(which)) // 30 * 30
    return _stream(rng, later, {key: which})


def _rates(rng: np.random.Generator, stamps: np.ndarray) -> pa.Table:
    n = len(stamps)
    known = rng.choice(CURRENCIES[:-1], n).tolist()
    return _stream(rng, stamps, {"currency": known, "rate": rng.integers(70, 140, n) / 100})


def _campaigns(ads: np.ndarray) -> list[str]:
    return [CAMPAIGNS[ad * ad % 7 % 4] for ad in ads]


def _clicks(rng: np.random.Generator, shown: np.ndarray) -> pa.Table:
    """Some ads are clicked twice, some late, some before anybody saw them."""
    which = rng.integers(0, len(shown), len(shown) * 2 // 3)
    stamps = shown[which] + rng.integers(-60, 3_000, len(which)) // 30 * 30
    return _stream(rng, stamps, {"ad": which, "campaign": _campaigns(which)})


def _words(rng: np.random.Generator, rows: int) -> list[str]:
    return [WORDS[i] for i in np.minimum(rng.geometric(0.35, rows) - 1, len(WORDS) - 1)]


def _payments(rng: np.random.Generator, stamps: np.ndarray) -> pa.Table:
    n = len(stamps)
    columns: Columns = {
        "id": np.arange(n),
        "card": rng.integers(0, 80, n),
        "payee": _nullable(rng, [f"payee {i}" for i in rng.integers(0, 30, n)]),
        "amount": _nullable(rng, _amounts(rng, n)),
    }
    return _stream(rng, stamps, columns)


def _requests(rng: np.random.Generator, rows: int) -> pa.Table:
    """Requests and their retries: an id comes several times, but not twice in a second."""
    pairs = np.unique(np.stack([rng.integers(0, 300, rows), _stamps(rng, rows)], axis=1), axis=0)
    bodies = [f"try {i}" for i in rng.integers(0, 3, len(pairs))]
    return _stream(rng, pairs[:, 1], {"id": pairs[:, 0], "body": bodies})


def _visits(rng: np.random.Generator, stamps: np.ndarray) -> pa.Table:
    n = len(stamps)
    visitors = _nullable(rng, rng.integers(0, 40, n))
    return _stream(rng, stamps, {"page": rng.integers(0, 6, n), "visitor": visitors})


def _readings(rng: np.random.Generator, stamps: np.ndarray) -> pa.Table:
    n = len(stamps)
    celsius = _nullable(rng, np.round(rng.normal(20, 5, n), 2))
    return _stream(rng, stamps, {"sensor": rng.integers(0, 12, n), "celsius": celsius})
