"""The streams all fluent tests are about."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from thalweg.fluent.streams import Stream
from thalweg.fluent.text import same
from thalweg.lang.parsing.parser import parse_query
from thalweg.testing.runner import Runner

SYMS = ("AAA", "BBB", "CCC", "AAA", "BBB", "AAA")


def shop(**options: Any) -> Runner:
    made = Runner(**options)
    n = len(SYMS)
    ts = pa.array([i * 4_000_000 for i in range(n)], pa.timestamp("us", "UTC"))
    trades = {"sym": list(SYMS), "price": [120.0, 90.0, 11.25, 101.5, 99.0, 300.0]}
    made.stream("trades", pa.table({**trades, "qty": [90, 5, 0, 40, 7, None], "ts": ts}))
    quotes = {"sym": list(SYMS), "bid": [1.0 * i for i in range(n)], "ts": ts}
    made.stream("quotes", pa.table(quotes))
    made.table("companies", pa.table({"sym": ["AAA", "BBB"], "sector": ["tech", "food"]}))
    cars = {"id": ["AAA", "BBB"] * 3, "x": [0.0, 120.0, 30.0, 130.0, 60.0, 140.0], "ts": ts}
    cars |= {"y": [0.0, 1.0] * 3, "v": [30.0, 20.0] * 3}
    made.stream("cars", pa.table(cars), key=["id"])
    made.sql("CREATE VIEW busy AS SELECT sym FROM trades [RANGE 1 MINUTE] GROUP BY sym "
             "HAVING count(*) > 2")  # fmt: skip
    odd = {"unit price": [1.0], "select": [2], "a`b": ["x"], "ts": ts[:1]}
    made.stream("odd stream", pa.table(odd))
    return made


def assert_round_trip(built: Stream) -> None:
    """The text of a built query is read as the very tree that was built."""
    assert same(parse_query(built.sql()), built.tree), built.sql()


def assert_means(home: Runner, built: Stream, text: str) -> None:
    """Built and written queries have the same logical plan, before and after rewriting."""
    assert_round_trip(built)
    found, expected = home.core.planner.bind(built.sql()), home.core.planner.bind(text)
    assert found.root == expected.root, f"{built.sql()}\n\n{text}"
    assert (found.options, found.sink) == (expected.options, expected.sink)
