"""What a statement means once names, types and windows are settled."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from thalweg.errors import (
    BindError,
    ConfigError,
    DuplicateName,
    NotAvailableYet,
    ThalwegError,
    UnboundedState,
)
from thalweg.lang.binding.binder import bind
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.bound_query import BoundQuery, QueryOptions
from thalweg.plan.catalog import Catalog, StreamDef, TableDef
from thalweg.plan.logical import Aggregate, EmitKind, Field, Filter, Join, Window, walk
from thalweg.plan.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP
from thalweg.testing.runner import Runner
from thalweg.windows.protocol import TimeWindow
from thalweg.windows.range import NOW, UNBOUNDED, RangeWindow
from thalweg.windows.rows import RowWindow

SECOND = 1_000_000
TRADES = StreamDef(
    "trades",
    (
        Field("sym", STRING, True),
        Field("price", DOUBLE, True),
        Field("qty", BIGINT, True),
        Field("small", INT, True),
        Field("ts", TIMESTAMP, True),
    ),
    "ts",
)
QUOTES = replace(TRADES, name="quotes")
COMPANIES = TableDef("companies", (Field("sym", STRING, True), Field("sector", STRING, True)))
CATALOG = Catalog({"trades": TRADES, "quotes": QUOTES}, {"companies": COMPANIES})


def bound(text: str) -> BoundQuery:
    return bind(parse_query(text), CATALOG, text)


def schema(text: str) -> list[tuple[str, str]]:
    return [(f.name, str(f.type)) for f in bound(text).schema]


def windows(text: str) -> list[TimeWindow | RowWindow]:
    return [n.window for n in walk(bound(text).root) if isinstance(n, Window)]


# --- SELECT


@pytest.mark.parametrize(
    ("item", "name", "dtype"),
    [
        ("sym", "sym", STRING),
        ("t.price", "price", DOUBLE),
        ("T.PRICE", "PRICE", DOUBLE),
        ("price AS p", "p", DOUBLE),
        ("qty + 1 AS a", "a", BIGINT),
        ("small + 1 AS a", "a", INT),
        ("qty / 2 AS a", "a", DOUBLE),
        ("price > 1 AS a", "a", BOOLEAN),
        ("upper(sym) AS a", "a", STRING),
        ("CAST(qty AS STRING) AS a", "a", STRING),
        ("coalesce(small, qty) AS a", "a", BIGINT),
        ("CASE WHEN qty > 0 THEN small ELSE price END AS a", "a", DOUBLE),
        ("ts AS a", "a", TIMESTAMP),
        ("ts + INTERVAL 1 HOUR AS a", "a", TIMESTAMP),
    ],
)
def test_items_have_names_and_types(item: str, name: str, dtype: object) -> None:
    assert schema(f"SELECT {item} FROM trades t") == [(name, str(dtype))]


def test_star_is_every_column_of_every_source() -> None:
    assert [n for n, _ in schema("SELECT * FROM trades")] == ["sym", "price", "qty", "small", "ts"]
    joined = schema("SELECT c.*, t.price FROM trades [NOW] t, companies c WHERE t.sym = c.sym")
    assert [n for n, _ in joined] == ["sym", "sector", "price"]


def test_equal_output_names_are_told_apart() -> None:
    found = schema("SELECT t.sym, c.sym FROM trades [NOW] t, companies c WHERE t.sym = c.sym")
    assert len({n for n, _ in found}) == 2


def test_a_number_given_to_a_name_takes_nobody_elses() -> None:
    text = "SELECT qty AS a, qty + 1 AS A, qty + 2 AS a_2, qty + 3 AS a FROM trades"
    assert [n for n, _ in schema(text)] == ["a", "A_3", "a_2", "a_4"]


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        ("count(*)", BIGINT),
        ("count(sym)", BIGINT),
        ("sum(qty)", BIGINT),
        ("sum(small)", BIGINT),
        ("sum(price)", DOUBLE),
        ("avg(qty)", DOUBLE),
        ("avg(price)", DOUBLE),
        ("min(sym)", STRING),
        ("max(small)", INT),
        ("max(ts)", TIMESTAMP),
        ("COUNT(*) * 2 + Sum(qty)", BIGINT),
    ],
)
def test_aggregates_have_types(call: str, dtype: object) -> None:
    assert [t for _, t in schema(f"SELECT {call} FROM trades [NOW]")] == [str(dtype)]


# --- windows and emit kinds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", UNBOUNDED),
        ("[UNBOUNDED]", UNBOUNDED),
        ("[NOW]", NOW),
        ("[RANGE 0 SECONDS]", NOW),
        ("[RANGE 3 SECONDS]", RangeWindow(3 * SECOND)),
        ("[RANGE 3 SECONDS SLIDE 1 SECOND]", RangeWindow(3 * SECOND, SECOND)),
        ("[ROWS 4]", RowWindow(4)),
        ("[PARTITION BY sym, qty ROWS 4]", RowWindow(4, ("trades.sym", "trades.qty"))),
    ],
)
def test_windows(text: str, expected: TimeWindow | RowWindow) -> None:
    assert windows(f"SELECT ISTREAM sym FROM trades {text}") == [expected]


def test_partition_by_sees_its_own_stream_only() -> None:
    text = (
        "SELECT t.qty FROM trades [PARTITION BY sym ROWS 1] t, quotes [NOW] q WHERE t.sym = q.sym"
    )
    assert windows(text)[0] == RowWindow(1, ("t.sym",))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT sym FROM trades", EmitKind.ISTREAM),
        ("SELECT sym FROM trades WHERE price > 1", EmitKind.ISTREAM),
        ("SELECT sym FROM trades [UNBOUNDED]", EmitKind.RELATION),
        ("SELECT sym FROM trades [RANGE 1 HOUR]", EmitKind.RELATION),
        ("SELECT count(*) FROM trades", EmitKind.RELATION),
        ("SELECT t.sym FROM trades [NOW] t, companies c WHERE t.sym = c.sym", EmitKind.RELATION),
        ("SELECT DSTREAM sym FROM trades [NOW]", EmitKind.DSTREAM),
        ("SELECT RSTREAM sym FROM trades [NOW]", EmitKind.RSTREAM),
        ("SELECT ISTREAM count(*) FROM trades [NOW]", EmitKind.ISTREAM),
    ],
)
def test_emit_kinds(text: str, kind: EmitKind) -> None:
    assert bound(text).root.kind is kind


# --- WHERE, GROUP BY, HAVING


def test_conditions_are_conjuncts_in_text_order() -> None:
    text = (
        "SELECT sym FROM trades WHERE price > 1 AND (qty > 2 AND small > 3) "
        "AND (qty = 1 OR qty = 2)"
    )
    (node,) = (n for n in walk(bound(text).root) if isinstance(n, Filter))
    assert [p.position for p in node.predicates] == [0, 1, 2, 3]
    assert len(node.predicates) == 4


def test_join_conditions_come_before_where() -> None:
    text = (
        "SELECT t.sym FROM trades [NOW] t JOIN quotes [NOW] q ON t.sym = q.sym AND t.qty < q.qty "
        "WHERE t.price > 1"
    )
    (node,) = (n for n in walk(bound(text).root) if isinstance(n, Filter))
    assert [str(p) for p in node.predicates] == ["t.sym = q.sym", "t.qty < q.qty", "t.price > 1"]
    assert any(isinstance(n, Join) for n in walk(bound(text).root))


@pytest.mark.parametrize(
    "keys",
    ["sym, qty % 2", "1, 2", "sym, parity", "SYM, qty % 2", "trades.sym, 2", "sym, sym, qty % 2"],
)
def test_group_by_columns_positions_and_aliases(keys: str) -> None:
    text = f"SELECT sym, qty % 2 AS parity, count(*) FROM trades [NOW] GROUP BY {keys}"
    (node,) = (n for n in walk(bound(text).root) if isinstance(n, Aggregate))
    assert len(node.keys) == 2


def test_an_aggregate_is_computed_once() -> None:
    text = "SELECT count(*), count(*) + sum(qty) FROM trades [NOW] HAVING sum(qty) > count(*)"
    (node,) = (n for n in walk(bound(text).root) if isinstance(n, Aggregate))
    assert len(node.aggregates) == 2


def test_having_without_group_by_is_an_aggregate() -> None:
    text = "SELECT 1 AS one FROM trades [NOW] HAVING count(*) > 1"
    assert any(isinstance(n, Aggregate) for n in walk(bound(text).root))


def test_having_may_use_a_group_key() -> None:
    assert bound("SELECT count(*) FROM trades [NOW] GROUP BY sym HAVING sym > 'a' AND max(qty) > 1")


# --- options and bounded state


def test_options() -> None:
    found = bound(
        "SELECT sym FROM trades WITH (filters = 'A-Greedy', joins = mjoin, unbounded = true, "
        "state_limit = 10, history = 'none', materialize = 'p', constraints = 'exact')"
    ).options
    assert found == QueryOptions("a-greedy", "mjoin", "p", "exact", "none", True, 10)


@pytest.mark.parametrize("value", ["adaptive", "off"])
def test_an_option_that_would_change_nothing_is_refused(value: str) -> None:
    with pytest.raises(NotAvailableYet, match=f"constraints = '{value}'"):
        bound(f"SELECT sym FROM trades WITH (constraints = '{value}')")


ENDLESS = (
    "SELECT t.sym FROM trades t, quotes [RANGE 1 HOUR] q WHERE t.sym = q.sym",
    "SELECT t.sym FROM trades [UNBOUNDED] t, quotes q WHERE t.sym = q.sym",
    "SELECT sym, count(*) FROM trades GROUP BY sym",
    "SELECT RSTREAM sym FROM trades",
)
FINITE = (
    "SELECT sym FROM trades",
    "SELECT count(*), sum(qty) FROM trades",
    "SELECT sym, count(*) FROM trades [RANGE 1 HOUR] GROUP BY sym",
    "SELECT t.sym FROM trades [NOW] t, quotes [ROWS 5] q WHERE t.sym = q.sym",
    "SELECT t.sym FROM trades t, companies c WHERE t.sym = c.sym",
)


@pytest.mark.parametrize("text", ENDLESS)
def test_unbounded_state_is_refused_unless_wanted(text: str) -> None:
    with pytest.raises(UnboundedState, match="unbounded = true"):
        bound(text)
    assert bound(f"{text} WITH (unbounded = true)").options.unbounded


@pytest.mark.parametrize("text", FINITE)
def test_bounded_state_is_accepted(text: str) -> None:
    assert bound(text)


# --- the same name again


def test_the_same_definition_attaches_and_another_is_refused() -> None:
    runner = Runner()
    text = "CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts"
    assert runner.sql(text) == runner.sql(text)
    with pytest.raises(DuplicateName):
        runner.sql(text.replace("INT", "STRING"))
    runner.sql("CREATE QUERY q AS SELECT a FROM s")
    runner.sql("CREATE QUERY q AS SELECT   a FROM s")
    with pytest.raises(DuplicateName):
        runner.sql("CREATE QUERY q AS SELECT a + 1 AS b FROM s")
    assert list(runner.queries) == ["q"]


def test_names_ignore_case() -> None:
    runner = Runner()
    runner.sql("CREATE STREAM Trades (Sym STRING, ts TIMESTAMP) TIMESTAMP BY TS")
    query = runner.query("SELECT SYM FROM tRADES WHERE trades.sym = 'a'")
    runner.feed(
        {"Trades": pa.table({"Sym": ["a", "b"], "ts": pa.array([1, 2], pa.timestamp("us"))})}
    )
    runner.close()
    assert query.results().num_rows == 1


# --- what later versions bring

LATER_SELECTS = (
    "SELECT sym FROM trades QOS (LATENCY (0:1, 1:0))",
    "SELECT count(*) WITHIN (5%) FROM trades [NOW]",
    "SELECT sum(qty) WITHIN (8 BUCKETS) FROM trades [NOW]",
    "SELECT sym FROM trades [NOW] WHERE qty > 1 OR sym IN (SELECT sym FROM companies)",
    "SELECT sym FROM trades WHERE EXISTS (SELECT sym FROM companies)",
    "SELECT sym FROM trades WHERE qty = (SELECT max(qty) FROM quotes)",
    "SELECT sum(qty) OVER (PARTITION BY sym) FROM trades",
)


@pytest.mark.parametrize("text", LATER_SELECTS)
def test_later_clauses_are_refused_by_name(text: str) -> None:
    with pytest.raises(NotAvailableYet, match="not available yet") as refusal:
        bound(text)
    assert refusal.value.line == 1


LATER_STATEMENTS = (
    "CREATE ALERT x AS SELECT * FROM s, r WITHIN 1 MINUTE WHEN s.a > 1",
    "EXPLAIN ESTIMATE SELECT a FROM s",
)


@pytest.mark.parametrize("text", LATER_STATEMENTS)
def test_later_statements_are_refused_by_name(text: str) -> None:
    runner = Runner()
    runner.sql("CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts")
    runner.sql("CREATE QUERY q AS SELECT a FROM s")
    with pytest.raises(NotAvailableYet, match="not available yet"):
        runner.sql(text)


def test_what_was_learned_is_told_of_a_registered_query() -> None:
    """A text has learned nothing; that is no feature that is yet to come."""
    runner = Runner()
    runner.sql("CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts")
    with pytest.raises(ConfigError, match="has learned") as refusal:
        runner.sql("EXPLAIN ADAPT SELECT a FROM s")
    assert "give its name" in str(refusal.value.remedy)


def test_a_refused_query_leaves_nothing_behind() -> None:
    runner = Runner()
    runner.sql("CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts")
    with pytest.raises(ThalwegError):
        runner.sql("CREATE QUERY q AS SELECT nope FROM s")
    assert runner.queries == {}
    runner.sql("CREATE QUERY q AS SELECT a FROM s")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sym FROM trades WITH (unbounded = true) UNION SELECT sym FROM quotes",
        "SELECT x.sym FROM (SELECT DISTINCT sym FROM trades WITH (unbounded = true)) x",
        "SELECT sym FROM trades [NOW] WHERE sym IN (SELECT sym FROM quotes WITH (joins = xjoin))",
    ],
)
def test_options_of_a_part_are_not_ignored(text: str) -> None:
    with pytest.raises(BindError, match="WITH is about a whole query"):
        bound(text)


def test_space_inside_a_text_tells_queries_apart() -> None:
    runner = Runner()
    runner.sql("CREATE STREAM s (a STRING, ts TIMESTAMP) TIMESTAMP BY ts")
    runner.query("SELECT a FROM s WHERE a = 'x  y'", name="q")
    runner.query("SELECT a  FROM s\n  WHERE a = 'x  y' -- the same", name="q")
    with pytest.raises(DuplicateName):
        runner.query("SELECT a FROM s WHERE a = 'x y'", name="q")
