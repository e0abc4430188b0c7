"""Long and deep queries are answered, or refused with a remedy; no foreign exception."""

from __future__ import annotations

import pyarrow as pa
import pytest

from thalweg.errors import ThalwegError
from thalweg.testing import Runner


@pytest.fixture
def runner() -> Runner:
    made = Runner()
    stamps = pa.array([0, 1, 2], pa.timestamp("us", "UTC"))
    made.stream("s", pa.table({"a": [1, 2, 3], "ts": stamps}))
    return made


@pytest.mark.parametrize("count", [33, 250])
def test_long_chains_are_answered(runner: Runner, count: int) -> None:
    either = " OR ".join(f"a = {i}" for i in range(2, count + 2))
    both = " AND ".join(f"a <> {i}" for i in range(3, count + 3))
    some = runner.query(f"SELECT a FROM s WHERE {either}", "some")
    rest = runner.query(f"SELECT a FROM s WHERE {both} AND NOT ({either} OR a = 0)", "rest")
    runner.run()
    assert some.results()["a"].to_pylist() == [2, 3]
    assert rest.results()["a"].to_pylist() == [1]


def nested(depth: int) -> str:
    text = "SELECT a FROM s"
    for i in range(depth):
        text = f"SELECT a FROM ({text}) x{i}"
    return text


def joined(count: int) -> str:
    joins = " ".join(f"FULL JOIN s [NOW] x{i} ON x{i}.a = x0.a" for i in range(1, count))
    return f"SELECT x0.a FROM s [NOW] x0 {joins}"


DEEP = {
    "sums": f"SELECT {' + '.join(['a'] * 3_000)} AS t FROM s",
    "brackets": f"SELECT a FROM s WHERE {'(' * 900}a = 1{')' * 900}",
    "subqueries": nested(150),
    "outer joins": joined(100),
    "negations": f"SELECT a FROM s WHERE {'NOT ' * 1_500} a = 1",
    "calls": f"SELECT {'abs(' * 900}a{')' * 900} AS b FROM s",
}


@pytest.mark.parametrize("sql", DEEP.values(), ids=DEEP)
def test_what_is_too_deep_is_refused_with_a_remedy(runner: Runner, sql: str) -> None:
    with pytest.raises(ThalwegError, match="nested too deeply") as found:
        runner.query(sql, "q")
    assert found.value.remedy
