"""Rows that are pushed or iterated over: none twice, and what is no row is a reject."""

from __future__ import annotations

import pyarrow as pa

from thalweg.plan.logical import Field
from thalweg.plan.types import BIGINT, STRING
from thalweg.runtime.sources.given_rows import as_records
from thalweg.runtime.sources.push import from_items


def test_feeding_goes_on_where_it_stopped() -> None:
    feed = from_items(i for i in range(12))
    first = feed(0)
    taken = [next(first) for _ in range(4)]
    next(first)  # handed over, but nobody took it in
    rest = list(feed(taken[-1][0]))
    assert [item for _, item in taken + rest] == list(range(12))


def test_items_that_are_no_rows_are_rejects() -> None:
    fields = (Field("k", BIGINT), Field("s", STRING))
    for item, count in ((pa.table({"k": [1, 2]}), 2), (5, 1)):
        found = as_records(item, fields)
        assert found.table.num_rows == count
        assert found.malformed is not None
        assert found.malformed.null_count == 0
