"""A constant text where another type is wanted: read, or refused when bound."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from thalweg.errors import TypeMismatch
from thalweg.plan.functions.constant_texts import may_read
from thalweg.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, decimal
from thalweg.testing import Runner
from thalweg.testing.casts import RowError, cast

TEXTS = (
    "abc", "", " ", "1", " 12 ", "-1", "1.5", "1e3", ".5", "1.", "1.5d", "nan", "-Infinity", "0x1",
    "1_000", "true", "N", "yes!", "2024", "2024-02", "2024-02-29", "2024-13-01", "2024-02-40",
    "2024-02-29 12:00:00", "2024-02-29T12:00:00Z", "29.02.2024", "12:00", "today", "+12345-1-1",
)  # fmt: skip


@pytest.fixture
def runner() -> Runner:
    made = Runner()
    stamps = pa.array([0, 1], pa.timestamp("us", "UTC"))
    made.stream("s", pa.table({"n": [1, 2], "v": [1.0, 2.0], "b": [True, False], "ts": stamps}))
    return made


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("v > ^'abc'", "'abc' is no DOUBLE"),
        ("'abc' < v", "'abc' is no DOUBLE"),
        ("n = 'abc'", "'abc' is no BIGINT"),
        ("n = '1.5'", "'1.5' is no BIGINT"),
        ("n IN ('1', 'two')", "'two' is no BIGINT"),
        ("v BETWEEN '1' AND 'z'", "'z' is no DOUBLE"),
        ("ts > 'yesterday'", "'yesterday' is no TIMESTAMP"),
        ("n + 'one' > 1", "'one' is no BIGINT"),
        ("sqrt('abc') > 1", "'abc' is no DOUBLE"),
        ("coalesce(v, 'none') > 1", "'none' is no DOUBLE"),
        ("b = 'maybe'", "'maybe' is no BOOLEAN"),
        ("NOT 'maybe'", "'maybe' is no BOOLEAN"),
    ],
)
def test_what_no_row_could_read_is_refused(runner: Runner, condition: str, words: str) -> None:
    with pytest.raises(TypeMismatch) as found:
        runner.query(f"SELECT n FROM s WHERE {condition.replace('^', '')}", "q")
    assert words in str(found.value)
    assert found.value.remedy
    assert found.value.line == 1


@pytest.mark.parametrize("condition", ["v > '1.5'", "n = ' 1 '", "ts < '1970-01-02'", "b = 'true'"])
def test_what_reads_is_read(runner: Runner, condition: str) -> None:
    query = runner.query(f"SELECT n FROM s WHERE {condition}")
    runner.run()
    assert query.results().num_rows >= 1
    assert query.rejects().num_rows == 0


@pytest.mark.parametrize(
    "dtype", [BIGINT, DOUBLE, decimal(5, 2), BOOLEAN, DATE, TIMESTAMP], ids=str
)
def test_nothing_is_refused_that_a_row_could_read(runner: Runner, dtype: object) -> None:
    query_type = str(dtype)
    for text, wanted in product(TEXTS, [dtype]):
        if may_read(text, wanted):  # type: ignore[arg-type]
            continue
        with pytest.raises(RowError):
            cast(text, STRING, wanted)  # type: ignore[arg-type]
        made = runner.query(f"SELECT TRY_CAST('{text}' AS {query_type}) AS x FROM s")
        runner.run()
        assert set(made.results()["x"].to_pylist()) <= {None}
