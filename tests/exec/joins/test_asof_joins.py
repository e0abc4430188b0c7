"""ASOF joins against a search through all rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ThalwegError
from thalweg.testing import Runner

UTC = pa.timestamp("us", "UTC")


def _stream(rng: Random, rows: int, value: str) -> pa.Table:
    stamps = sorted(rng.randint(0, 60) for _ in range(rows))
    return pa.table(
        {
            "sym": pa.array([rng.choice(("a", "b", None)) for _ in range(rows)], pa.string()),
            value: pa.array([rng.randint(0, 9) for _ in range(rows)], pa.int64()),
            "ts": pa.array(stamps, UTC),
        }
    )


def _micros(row: dict[str, Any], name: str = "ts") -> int:
    return int(row[name].timestamp() * 1_000_000)


def _newest(row: dict[str, Any], quotes: list[dict[str, Any]], age: int | None) -> int | None:
    """The bid of the last quote of the symbol up to the row's time, by definition."""
    found = [q for q in quotes if q["sym"] == row["sym"] is not None and q["ts"] <= row["ts"]]
    if not found:
        return None
    best = max(found, key=lambda q: (q["ts"], q["bid"]))
    stale = age is not None and _micros(row) - _micros(best) > age
    return None if stale else best["bid"]


def _runner(seed: int, trades: pa.Table, quotes: pa.Table) -> Runner:
    runner = Runner(epochs=1 + seed % 6, buckets=1 + seed % 3, restarts=(2,) if seed % 2 else ())
    runner.stream("trades", trades)
    runner.stream("quotes", quotes)
    return runner


@pytest.mark.parametrize("seed", range(24))
def test_each_row_meets_the_newest_up_to_its_time(seed: int) -> None:
    rng = Random(seed)
    trades, quotes = _stream(rng, 40, "price"), _stream(rng, 30, "bid")
    age = rng.choice((None, 0, 5))
    window = "" if age is None else f"[RANGE {age} MICROSECONDS]"
    kind = rng.choice(("ASOF", "LEFT ASOF", "ASOF LEFT"))
    runner = _runner(seed, trades, quotes)
    query = runner.query(
        f"SELECT ISTREAM t.sym, t.price, t.ts, q.bid FROM trades [NOW] t "
        f"{kind} JOIN quotes {window} q ON t.sym = q.sym AND t.ts >= q.ts"
    )
    runner.run()
    rows, others = trades.to_pylist(), quotes.to_pylist()
    expected = [(r["sym"], r["price"], _micros(r), _newest(r, others, age)) for r in rows]
    if kind == "ASOF":
        expected = [e for e in expected if e[3] is not None]
    got = [(r["sym"], r["price"], _micros(r), r["bid"]) for r in query.results().to_pylist()]
    assert sorted(map(repr, got)) == sorted(map(repr, expected))
    assert all(r["ts"] == r["__ts"] for r in query.results().to_pylist())


@pytest.mark.parametrize("seed", range(6))
def test_a_pair_stays_as_it_was_found_under_a_longer_window(seed: int) -> None:
    rng = Random(100 + seed)
    trades, quotes = _stream(rng, 30, "price"), _stream(rng, 30, "bid")
    runner = _runner(seed, trades, quotes)
    query = runner.query(
        "SELECT t.price, t.ts, q.bid FROM trades [RANGE 7 MICROSECONDS] t ASOF JOIN quotes q "
        "ON q.sym = t.sym"
    )
    runner.run()
    others = quotes.to_pylist()
    last = max(_micros(r) for r in (*trades.to_pylist(), *others))
    expected = []
    for row in trades.to_pylist():
        bid = _newest(row, others, None)
        if bid is not None:
            at = _micros(row)
            expected.append((at, 1, row["price"], at, bid))
            if at + 8 <= last:
                expected.append((at + 8, -1, row["price"], at, bid))
    got = [
        (_micros(r, "__ts"), r["__sign"], r["price"], _micros(r), r["bid"])
        for r in query.results().to_pylist()
    ]
    assert sorted(got) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trades [NOW] t ASOF JOIN quotes q ON t.sym = q.sym AND t.ts > q.ts", "at the same time"),
        ("trades [NOW] t ASOF JOIN quotes q ON t.sym = q.sym AND t.price > q.bid", "event times"),
        ("trades [NOW] t ASOF JOIN quotes q ON t.sym <> q.sym", "equal columns"),
        ("trades [NOW] t ASOF JOIN quotes [ROWS 3] q ON t.sym = q.sym", "no window"),
        ("trades [NOW] t ASOF JOIN names n ON t.sym = n.sym", "between streams"),
    ],
)
def test_what_is_no_asof_join_is_refused(text: str, message: str) -> None:
    rng = Random(1)
    runner = _runner(0, _stream(rng, 3, "price"), _stream(rng, 3, "bid"))
    runner.table("names", pa.table({"sym": ["a"]}))
    with pytest.raises(ThalwegError, match=message) as refusal:
        runner.query(f"SELECT ISTREAM t.price FROM {text}")
    assert refusal.value.remedy
