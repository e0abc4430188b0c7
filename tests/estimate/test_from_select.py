"""From SELECT to the joins that bound it, and their sizes against DuckDB."""

from __future__ import annotations

from random import Random

import duckdb
import pyarrow as pa
import pytest

from thalweg.errors import NotAvailableYet
from thalweg.estimate.bounds import Bounds
from thalweg.estimate.fresh import fresh_bound_of_select
from thalweg.estimate.from_select import SelectedJoins, joins_of
from thalweg.estimate.join_query import Attribute, Condition
from thalweg.lang.binding.binder import bind
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.catalog import Catalog, StreamDef, ViewDef
from thalweg.plan.logical import Field
from thalweg.plan.rewrites import optimize
from thalweg.plan.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP

UNBOUNDED = "[RANGE UNBOUNDED]"
COLUMNS = {"k": BIGINT, "m": INT, "d": DOUBLE, "s": STRING}
FIELDS = (Field("ts", TIMESTAMP, False), *(Field(n, t) for n, t in COLUMNS.items()))
CATALOG = Catalog(
    {n: StreamDef(n, FIELDS, "ts") for n in "abc"},
    views={"v": ViewDef("v", "SELECT k, m FROM a [RANGE UNBOUNDED] WHERE m > 1")},
)


def selected(sql: str, *, optimised: bool = False) -> SelectedJoins:
    text = f"{sql} WITH (unbounded = true)"
    bound = bind(parse_query(text), CATALOG, text)
    return joins_of((optimize(bound) if optimised else bound).root)


def tables(seed: int, rows: int = 30) -> dict[str, pa.Table]:
    rng = Random(seed)

    def some(value: object) -> object:
        return None if rng.random() < 0.1 else value

    def column(name: str) -> pa.Array:
        if name == "s":
            return pa.array([some(rng.choice("xyz")) for _ in range(rows)], pa.string())
        wanted = {"k": pa.int64(), "m": pa.int32(), "d": pa.float64()}[name]
        return pa.array([some(rng.randrange(6)) for _ in range(rows)], wanted)

    return {n: pa.table({c: column(c) for c in COLUMNS}) for n in "abc"}


def sizes(sql: str, seed: int, plain: str | None = None) -> tuple[Bounds, int]:
    """The bound, and the number of rows of the same (or the `plain`) SELECT in DuckDB."""
    data = tables(seed)
    connection = duckdb.connect()
    for name, table in data.items():
        connection.register(name, table)
    counted = connection.execute(
        f"SELECT count(*) FROM ({(plain or sql).replace(UNBOUNDED, '')})"
    ).fetchall()
    found = [fresh_bound_of_select(selected(sql, optimised=o), data) for o in (False, True)]
    assert found[0].rows == found[1].rows
    assert found[0].kind == found[1].kind
    return found[0], counted[0][0]


EXACT = [
    "SELECT a.k FROM a, b WHERE a.k = b.k",
    "SELECT a.k FROM a JOIN b ON a.k = b.m WHERE a.m > 2 AND b.s = 'x'",
    "SELECT a.k FROM a JOIN b ON a.k = b.d AND a.s = b.s",
    "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k AND a.k = c.k",
    "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m WHERE c.d < 4 OR c.d IS NULL",
    "SELECT x.k FROM (SELECT k, m FROM a [RANGE UNBOUNDED] WHERE m > 1) x, b, a"
    " WHERE x.k = b.k AND a.m = x.m",
    "SELECT a.k FROM a, b, c WHERE a.k = b.k",
    "SELECT a.k FROM a, b WHERE a.k = b.k AND a.m = b.k",
    "SELECT a.k FROM a WHERE a.m IN (1, 2)",
]
BOUNDED = [
    "SELECT a.k FROM a, b WHERE a.k = b.k AND a.m < b.m",
    "SELECT a.k FROM a, b WHERE a.k = b.k AND (a.m = 1 OR b.m = 1)",
    "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND a.m > 3 WHERE a.d < 4",
    "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL",
    "SELECT a.k FROM a FULL JOIN b ON a.k = b.k AND b.m = 2",
    "SELECT a.k FROM a RIGHT JOIN b ON a.k = b.k AND b.m = 2",
    "SELECT a.k FROM a, b LEFT JOIN c ON c.k = b.k WHERE a.m = c.m",
    "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.m = c.m",
    "SELECT a.k FROM a WHERE a.k IN (SELECT k FROM b WHERE m = 3)",
    "SELECT a.k FROM a JOIN c ON a.k = c.k WHERE a.k NOT IN (SELECT k FROM b WHERE m = 3)",
    "SELECT a.k FROM a SEMI JOIN b ON a.k = b.k",
    "SELECT a.k FROM a ANTI JOIN b ON a.k = b.k",
    "SELECT a.k FROM a, b, c WHERE a.k = b.k AND b.m = c.m AND c.k = a.m",
]


@pytest.mark.parametrize("sql", EXACT)
def test_inner_joins_by_equalities_are_exact(sql: str) -> None:
    for seed in range(4):
        found, truth = sizes(sql, seed)
        assert (found.rows, found.kind) == (truth, "exact")


@pytest.mark.parametrize("sql", BOUNDED)
def test_all_other_joins_are_bounded(sql: str) -> None:
    for seed in range(8):
        found, truth = sizes(sql, seed)
        assert found.rows is not None
        assert found.rows >= truth
        assert found.kind == "bound"


def test_a_null_safe_equality_joins_nulls() -> None:
    found, truth = sizes(
        "SELECT a.k FROM a, b WHERE a.k <=> b.k", 1,
        "SELECT a.k FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    )  # fmt: skip
    assert (found.rows, found.kind) == (truth, "exact")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT RSTREAM count(*) AS n FROM a, b WHERE a.k = b.k HAVING count(*) > 3",
        "SELECT a.k, count(*) AS n FROM a, b WHERE a.k = b.k GROUP BY a.k",
        "SELECT DISTINCT a.k FROM a, b WHERE a.k = b.k",
        "SELECT RSTREAM a.k FROM a, b WHERE a.k = b.k ORDER BY a.k LIMIT 2",
    ],
)
def test_the_size_is_that_of_the_join_below(sql: str) -> None:
    data = tables(3)
    below = fresh_bound_of_select(selected("SELECT a.k FROM a, b WHERE a.k = b.k"), data)
    assert fresh_bound_of_select(selected(sql), data).rows == below.rows


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT k FROM a UNION ALL SELECT k FROM b", "UNION"),
        ("SELECT k FROM a EXCEPT SELECT k FROM b", "EXCEPT"),
        ("SELECT x.k FROM (SELECT k, max(m) AS m FROM a GROUP BY k) x, b WHERE x.k = b.k", "GROUP"),
    ],
)
def test_what_has_no_formula_is_refused(sql: str, what: str) -> None:
    with pytest.raises(NotAvailableYet, match=what):
        selected(sql)


def test_equal_columns_are_one_attribute() -> None:
    (query,) = selected(
        "SELECT a.k FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND c.k = a.k AND a.m < b.m"
    ).joins
    assert query.attributes == (Attribute("a.k"),)
    assert [r.columns for r in query.inputs] == [(("a.k", "k"),)] * 3
    assert [str(p) for p in query.residual] == ["a.m < b.m"]


def test_null_safe_only_if_all_equalities_are() -> None:
    (both,) = selected("SELECT a.k FROM a, b, c WHERE a.k <=> b.k AND b.k <=> c.k").joins
    (mixed,) = selected("SELECT a.k FROM a, b, c WHERE a.k <=> b.k AND b.k = c.k").joins
    assert both.attributes[0].null_safe
    assert not mixed.attributes[0].null_safe


def test_conditions_with_constants() -> None:
    (query,) = selected(
        "SELECT a.k FROM a WHERE a.k BETWEEN 2 AND 5 AND 3 < a.m AND a.s IN ('x', 'y')"
        " AND a.k = 4 AND a.m + 1 > 2"
    ).joins
    assert set(query.inputs[0].conditions) == {
        Condition("k", low=2), Condition("k", high=5), Condition("m", low=3, low_included=False),
        Condition("s", values=("x", "y")), Condition("k", values=(4,)),
    }  # fmt: skip
    assert len(query.inputs[0].predicates) == 6


def test_views_and_subqueries_are_seen_through() -> None:
    found = selected("SELECT v.k FROM v, b WHERE v.k = b.k AND v.m = 3")
    assert [r.alias for r in found.joins[0].inputs] == ["a", "b"]
    assert list(found.sources) == ["a", "b"]
    assert len(found.joins[0].inputs[0].predicates) == 2
