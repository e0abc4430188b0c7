"""What Python hands over: frames are tables, and a row that does not fit names the column."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from thalweg.errors import ConfigError
from thalweg.plan.logical import Field
from thalweg.plan.types import BIGINT, DOUBLE, STRING, TIMESTAMP
from thalweg.runtime.sources.given_rows import arrow_table, as_records
from thalweg.testing import Runner

NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
FIELDS = (
    Field("sym", STRING), Field("price", DOUBLE), Field("qty", BIGINT), Field("ts", TIMESTAMP),
)  # fmt: skip
GOOD = {"sym": "A", "price": 1.5, "qty": 2, "ts": NOON}


class PolarsLike:
    """What polars gives of a frame: a stream of Arrow with text of its own kinds."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def pandas_frame() -> pd.DataFrame:
    columns = {"k": [1, 2], "s": ["a", None], "ts": pd.to_datetime([NOON, NOON])}
    return pd.DataFrame(columns, index=[7, 8])


def polars_frame(text: pa.DataType) -> PolarsLike:
    stamps = pa.array([NOON, NOON], pa.timestamp("us", "UTC"))
    return PolarsLike(pa.table({"k": [1, 2], "s": pa.array(["a", None], text), "ts": stamps}))


FRAMES = {
    "pandas": pandas_frame(),
    "polars": polars_frame(pa.string_view()),
    "polars, large": polars_frame(pa.large_string()),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_are_streams_tables_and_feeds(frame: Any) -> None:
    runner = Runner()
    runner.stream("s", frame)
    runner.table("t", frame)
    query = runner.query("SELECT ISTREAM s.k, t.s FROM s [NOW], t WHERE s.k = t.k", "q")
    runner.run()
    runner.feed({"s": frame})
    found = [(r["k"], r["s"]) for r in query.results().to_pylist()]
    assert sorted(found) == [(1, "a"), (2, None)]
    assert runner.rejects("s").num_rows == 2, "the same time again is late"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("A", 1.5, 2, NOON), "a row is a dictionary of columns, not tuple"),
        ({**GOOD, "prize": 1.0}, "there is no column prize (did you mean price?)"),
        ({**GOOD, "ts": "2024-02-29 12:00"}, "ts = '2024-02-29 12:00' is no time"),
        ({**GOOD, "qty": 1.5}, "qty = 1.5 is no value of type int64"),
        ({**GOOD, "qty": float("nan")}, "qty = nan is no value of type int64"),
        ({**GOOD, "qty": 2**70}, f"qty = {2**70} is no value of type int64"),
        ({**GOOD, "sym": 5}, "sym = 5 is no value of type string"),
        ("A", "not str A"),
        (None, "not NoneType None"),
    ],
)
def test_a_row_that_does_not_fit_names_the_column(row: Any, words: str) -> None:
    found = as_records([GOOD, row, GOOD], FIELDS)
    assert found.malformed is not None
    before, why, after = found.malformed.to_pylist()
    assert before is after is None
    assert words in why
    assert found.table["price"].to_pylist() == [1.5, None, 1.5]


def test_a_frame_without_a_column_names_it() -> None:
    found = as_records(pd.DataFrame({"sym": ["A"], "prize": [1.0], "qty": [1]}), FIELDS)
    assert found.malformed is not None
    assert "there is no column price (did you mean prize?)" in found.malformed[0].as_py()


def test_rows_are_fed_to_a_runner() -> None:
    runner = Runner()
    runner.stream("s", pa.table({"k": [1], "ts": pa.array([0], pa.timestamp("us", "UTC"))}))
    query = runner.query("SELECT k FROM s", "q")
    runner.feed({"s": [{"k": 1, "ts": 5}, {"kk": 1, "ts": 6}, (1, 7)]})
    runner.close()
    assert query.results()["k"].to_pylist() == [1]
    assert runner.rejects("s").num_rows == 2


@pytest.mark.parametrize("given", [[{"k": 1}], {"k": [1]}, 5, None])
def test_what_is_no_table_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="expected a table, got"):
        arrow_table(given, "table t")
    with pytest.raises(ConfigError, match="table t"):
        Runner().table("t", given)


def test_a_frame_of_mixed_values_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        arrow_table(pd.DataFrame({"k": [1, "a", object()]}), "table t")
