"""Every production of the grammar, once at least, into its typed node."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from thalweg import statements
from thalweg.errors import ParseError
from thalweg.fluent.text import query_text
from thalweg.lang.durations import parse_duration
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.parser import parse_query, parse_window
from thalweg.models.language.error_clause import ErrorClause
from thalweg.models.language.model_clause import Fit, Formula, ModelClause
from thalweg.models.language.sample_clause import SampleClause
from thalweg.plan.logical import EmitKind
from thalweg.statements import parse
from thalweg.windows.landmark import FromToClause, LandmarkClause
from thalweg.windows.protocol import WindowClause
from thalweg.windows.range import NowClause, RangeClause, UnboundedClause
from thalweg.windows.rows import RowsClause
from thalweg.windows.session import SessionClause
from thalweg.windows.size import SizeClause

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def one(text: str) -> Any:
    (statement,) = parse(text)
    return statement


def select(text: str) -> ast.Select:
    query = parse_query(text)
    assert isinstance(query, ast.Select)
    return query


def source(text: str) -> ast.Source:
    (found,) = select(f"SELECT * FROM {text}").sources
    return found


# --- CREATE STREAM


FULL_STREAM = """
CREATE STREAM trades (sym STRING NOT NULL, price DOUBLE, amount DECIMAL(12, 2), ts BIGINT)
  TIMESTAMP BY (ts UNIT MILLISECONDS) ORDER BY (sym, price) LATENESS INTERVAL 1 SECOND
  IDLE 5 SECONDS AHEAD 1 HOUR KEY (sym) UNIQUE (sym, ts) RETAIN INTERVAL 1 DAY
  FROM FILES 'data/trades' FORMAT Parquet OPTIONS (header = true, 'max.files' = 10)
"""


def test_create_stream_with_every_clause() -> None:
    stream = one(FULL_STREAM)
    assert isinstance(stream, statements.CreateStream)
    assert (stream.name, stream.timestamp, stream.unit) == ("trades", "ts", "milliseconds")
    assert stream.order_by == ("sym", "price")
    assert (stream.lateness, stream.idle, stream.idle_never) == (SECOND, 5 * SECOND, False)
    assert (stream.ahead, stream.retain, stream.retain_rows) == (HOUR, DAY, None)
    assert (stream.key, stream.unique) == (("sym",), ("sym", "ts"))
    assert stream.source == ast.SourceClause(
        "FILES", "data/trades", "parquet", (("header", True), ("max.files", 10))
    )


def test_columns_have_types_and_nullability() -> None:
    columns = one(FULL_STREAM).columns
    assert [(c.name, c.type.upper(), c.nullable) for c in columns] == [
        ("sym", "STRING", False),
        ("price", "DOUBLE", True),
        ("amount", "DECIMAL", True),
        ("ts", "BIGINT", True),
    ]
    assert (columns[2].precision, columns[2].scale) == (12, 2)


def test_the_least_stream() -> None:
    stream = one("create stream s (a int, ts timestamp) timestamp by ts")
    assert stream.timestamp == "ts"
    assert (stream.unit, stream.lateness, stream.idle, stream.ahead) == (None, 0, None, None)
    assert (stream.order_by, stream.key, stream.unique, stream.source) == ((), (), (), None)


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("TIMESTAMP BY ARRIVAL", {"timestamp": None}),
        ("TIMESTAMP BY ts UNIT SECONDS", {"timestamp": "ts", "unit": "seconds"}),
        ("TIMESTAMP BY ts ORDER BY a", {"order_by": ("a",)}),
        ("TIMESTAMP BY ts ORDER BY a, b", {"order_by": ("a", "b")}),
        ("TIMESTAMP BY ts IDLE NEVER", {"idle_never": True, "idle": None}),
        ("TIMESTAMP BY ts RETAIN 100 ROWS", {"retain_rows": 100, "retain": None}),
        ("TIMESTAMP BY ts RETAIN 2 DAYS", {"retain": 2 * DAY}),
        ("TIMESTAMP BY ts KEY (a, b)", {"key": ("a", "b")}),
        ("TIMESTAMP BY ts LATENESS 500 ms", {"lateness": SECOND // 2}),
        ("TIMESTAMP BY ts AHEAD INTERVAL '10' MINUTES", {"ahead": 10 * MINUTE}),
    ],
)
def test_stream_clauses(clause: str, expected: dict[str, Any]) -> None:
    stream = one(f"CREATE STREAM s (a INT, b INT, ts TIMESTAMP) {clause}")
    assert {name: getattr(stream, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SPARK 'kafka'", ("SPARK", "kafka", None, ())),
        (
            "SPARK 'kafka' OPTIONS (subscribe = 'x', kafka.bootstrap.servers = 'h:9092')",
            ("SPARK", "kafka", None, (("subscribe", "x"), ("kafka.bootstrap.servers", "h:9092"))),
        ),
        ("SENSOR 'mqtt://broker/topic'", ("SENSOR", "mqtt://broker/topic", None, ())),
        ("FILES 'a b' FORMAT csv", ("FILES", "a b", "csv", ())),
    ],
)  # fmt: skip
def test_sources_of_streams(text: str, expected: tuple[Any, ...]) -> None:
    stream = one(f"CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts FROM {text}")
    assert stream.source == ast.SourceClause(*expected)


def test_create_table() -> None:
    table = one("CREATE TABLE companies FROM FILES 'data/companies' FORMAT csv")
    assert isinstance(table, statements.CreateTable)
    assert (table.name, table.columns) == ("companies", ())
    assert table.source == ast.SourceClause("FILES", "data/companies", "csv", ())


def test_create_table_with_columns() -> None:
    table = one("CREATE TABLE c (sym STRING, sector STRING) FROM FILES 'c'")
    assert [c.name for c in table.columns] == ["sym", "sector"]


# --- windows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[NOW]", NowClause()),
        ("[UNBOUNDED]", UnboundedClause()),
        ("[RANGE UNBOUNDED]", UnboundedClause()),
        ("[ROWS UNBOUNDED]", UnboundedClause()),
        ("[RANGE 5 MINUTES]", RangeClause(5 * MINUTE)),
        ("[RANGE 0 SECONDS]", RangeClause(0)),
        ("[RANGE 5 MINUTES SLIDE 1 MINUTE]", RangeClause(5 * MINUTE, MINUTE)),
        ("[ROWS 3]", RowsClause(3)),
        ("[SESSION GAP 30 SECONDS]", SessionClause(30 * SECOND)),
        ("[LANDMARK EVERY 1 DAY]", LandmarkClause(every=DAY)),
    ],
)
@pytest.mark.parametrize("change", [str, str.lower, str.title])
def test_windows_in_any_case(text: str, expected: WindowClause, change: Any) -> None:
    assert parse_window(change(text)) == expected


def test_partitioned_window() -> None:
    window = parse_window("[PARTITION BY sym, t.venue ROWS 10]")
    assert isinstance(window, RowsClause)
    assert window.rows == 10
    assert [c.sql() for c in window.partition_by] == ["sym", "t.venue"]


def test_windows_over_expressions_of_time() -> None:
    landmark = parse_window("[LANDMARK TIMESTAMP '2024-01-01 00:00:00']")
    assert isinstance(landmark, LandmarkClause)
    assert landmark.at is not None
    fixed = parse_window("[FROM TIMESTAMP '2024-01-01' TO TIMESTAMP '2024-02-01']")
    assert isinstance(fixed, FromToClause)
    size = parse_window("[SIZE 10 MINUTES ADVANCE 2 MINUTES]")
    assert isinstance(size, SizeClause)
    assert (size.size, size.advance) == (10 * MINUTE, 2 * MINUTE)


@pytest.mark.parametrize(
    "text",
    ["[]", "[RANGE]", "[RANGE 5]", "[ROWS]", "[ROWS -1]", "[ROWS 1.5]", "[LAST 5 ROWS]", "[NOW",
     "[RANGE 5 BANANAS]", "[RANGE 5 MONTHS]", "[PARTITION BY a]", "[NOW] [NOW]", "NOW", ""],
)  # fmt: skip
def test_no_windows(text: str) -> None:
    with pytest.raises(ParseError):
        parse_window(text)


# --- durations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 MINUTES", 5 * MINUTE),
        ("5 minute", 5 * MINUTE),
        ("INTERVAL 5 MINUTES", 5 * MINUTE),
        ("INTERVAL '5' MINUTES", 5 * MINUTE),
        ("INTERVAL '5 minutes'", 5 * MINUTE),
        ("interval 1 day", DAY),
        ("1.5 SECONDS", 1_500_000),
        ("250 MILLISECONDS", 250_000),
        ("250 ms", 250_000),
        ("7 MICROSECONDS", 7),
        ("7 us", 7),
        ("2 HOURS", 2 * HOUR),
        ("1 WEEK", 7 * DAY),
        ("90 s", 90 * SECOND),
        ("90 sec", 90 * SECOND),
        ("3 min", 3 * MINUTE),
        ("3 h", 3 * HOUR),
        ("3 d", 3 * DAY),
    ],
)
def test_durations_everywhere_the_same(text: str, expected: int) -> None:
    assert parse_window(f"[RANGE {text}]") == RangeClause(expected)
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["-5 SECONDS", "1 MONTH", "1 YEAR", "five SECONDS", "0.5 us"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ParseError):
        parse_window(f"[RANGE {text}]")
    with pytest.raises(ParseError):
        parse_duration(text)


# --- sources


@pytest.mark.parametrize(
    ("text", "name", "window", "alias"),
    [
        ("trades", "trades", None, None),
        ("trades t", "trades", None, "t"),
        ("trades AS t", "trades", None, "t"),
        ("trades [NOW]", "trades", NowClause(), None),
        ("trades [NOW] t", "trades", NowClause(), "t"),
        ("trades [NOW] AS t", "trades", NowClause(), "t"),
        ("trades.rejects r", "trades.rejects", None, "r"),
        ("`odd name` [ROWS 2] o", "odd name", RowsClause(2), "o"),
        ("SysStream", "SysStream", None, None),
    ],
)
def test_sources(text: str, name: str, window: WindowClause | None, alias: str | None) -> None:
    found = source(text)
    assert (found.name, found.window, found.alias, found.subquery) == (name, window, alias, None)


def test_a_subquery_is_a_source() -> None:
    found = source("(SELECT ISTREAM a FROM s [NOW] WHERE a > 1) [RANGE 1 HOUR] q")
    assert isinstance(found.subquery, ast.Select)
    assert found.subquery.kind is EmitKind.ISTREAM
    assert (found.window, found.alias) == (RangeClause(HOUR), "q")


def test_models() -> None:
    found = source(
        "cars c MODEL (x = x0 + v * t, FIT y DEGREE 2 WITHIN 0.5% EVERY 1 HOUR) FOR 1 DAY"
    )
    assert isinstance(found.clause, ModelClause)
    given, fitted = found.clause.models
    assert isinstance(given, Formula)
    assert (given.attribute, given.polynomial.sql()) == ("x", "x0 + v * t")
    assert fitted == Fit("y", 2, 0.5, True, HOUR)
    assert (found.alias, found.clause.horizon) == ("c", DAY)


def test_a_power_binds_tightest_in_a_model() -> None:
    clause = source("cars c MODEL (x = v*t + a*t^2)").clause
    assert isinstance(clause, ModelClause)
    (model,) = clause.models
    assert isinstance(model, Formula)
    assert model.polynomial.sql(dialect="spark").lower() == "v * t + a * pow(t, 2)"


# --- SELECT


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("ISTREAM", EmitKind.ISTREAM),
        ("DSTREAM", EmitKind.DSTREAM),
        ("RSTREAM", EmitKind.RSTREAM),
        ("Istream", EmitKind.ISTREAM),
        ("", None),
    ],
)
def test_emit_kinds(word: str, kind: EmitKind | None) -> None:
    assert select(f"SELECT {word} a, b FROM s").kind is kind


def test_an_emit_kind_can_still_be_a_column() -> None:
    query = select("SELECT istream, a FROM s")
    assert query.kind is None
    assert len(query.items) == 2


def test_every_clause_of_select() -> None:
    query = select(
        "SELECT RSTREAM sym, sum(qty) AS total FROM trades [RANGE 1 HOUR] t, companies c "
        "WHERE t.sym = c.sym AND price > 10 GROUP BY sym, price HAVING sum(qty) > 5 "
        "ORDER BY total DESC, sym LIMIT 10 "
        "ERROR total WITHIN 5%, price WITHIN 0.1 SAMPLE EVERY 10 SECONDS "
        "QOS (LATENCY (0:1, 5:0.5, 10:0), LOSS (0:0, 1:1), VALUE price (0:0, 100:1)) "
        "INTO FILES 'out' FORMAT parquet OPTIONS (compression = 'zstd') "
        "WITH (filters = 'a-greedy', unbounded = true, state_limit = 1000)"
    )
    assert [s.name for s in query.sources] == ["trades", "companies"]
    assert len(query.items) == 2
    assert len(query.conditions) == 1
    assert len(query.group_by) == 2
    assert query.having is not None
    assert len(query.order_by) == 2
    assert query.limit is not None
    error, sample = query.clauses
    assert isinstance(error, ErrorClause)
    assert [(e.within, e.relative) for e in error.bounds] == [(5.0, True), (0.1, False)]
    assert sample == SampleClause(every=10 * SECOND)
    assert query.qos == (
        ast.QosClause("LATENCY", None, ((0, 1), (5, 0.5), (10, 0))),
        ast.QosClause("LOSS", None, ((0, 0), (1, 1))),
        ast.QosClause("VALUE", "price", ((0, 0), (100, 1))),
    )
    assert query.into == ast.IntoClause("FILES", "out", "parquet", (("compression", "zstd"),))
    assert query.options == (
        ("filters", "a-greedy"), ("unbounded", True), ("state_limit", 1000),
    )  # fmt: skip


def test_lower_case_keywords_mean_the_same() -> None:
    text = (
        "SELECT ISTREAM sum(a) AS b FROM s [PARTITION BY k ROWS 3] x WHERE x.a BETWEEN 1 AND 2 "
        "GROUP BY x.k HAVING count(*) > 1 SAMPLE RATE 0.5 WITH (unbounded = TRUE)"
    )
    upper, lower = select(text), select(text.lower())
    assert upper.kind == lower.kind
    assert upper.clauses == lower.clauses == (SampleClause(rate=0.5),)
    assert upper.options == lower.options
    assert [w.alias for w in upper.sources] == [w.alias for w in lower.sources]
    assert len(lower.group_by) == 1
    assert lower.having is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CONSOLE", ("CONSOLE", "", None, ())),
        ("TABLE 't'", ("TABLE", "t", None, ())),
        ("CHANGELOG 'c' FORMAT CSV", ("CHANGELOG", "c", "csv", ())),
        ("SPARK 'kafka' OPTIONS (topic = 'x')", ("SPARK", "kafka", None, (("topic", "x"),))),
        ("FILES 'p'", ("FILES", "p", None, ())),
    ],
)
def test_into(text: str, expected: tuple[Any, ...]) -> None:
    assert select(f"SELECT a FROM s INTO {text}").into == ast.IntoClause(*expected)


def shape(item: ast.FromItem) -> str:
    if isinstance(item, ast.Source):
        return item.name or "(...)"
    on = "" if item.condition is None else f" ON {item.condition.sql()}"
    return f"({shape(item.left)} {item.kind} {shape(item.right)}{on})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a [NOW] JOIN b [NOW] ON a.x = b.x INNER JOIN c ON b.y = c.y",
            ["((a INNER b ON a.x = b.x) INNER c ON b.y = c.y)"],
        ),
        ("a CROSS JOIN b", ["(a CROSS b)"]),
        ("a, b LEFT JOIN c ON b.x = c.x, d", ["a", "(b LEFT c ON b.x = c.x)", "d"]),
        (
            "a LEFT JOIN (b JOIN c ON b.y = c.y) ON a.x = b.x",
            ["(a LEFT (b INNER c ON b.y = c.y) ON a.x = b.x)"],
        ),
        ("((a)) JOIN ((SELECT x FROM b)) s ON a.x = s.x", ["(a INNER (...) ON a.x = s.x)"]),
    ],
)
def test_from_is_a_tree(text: str, expected: list[str]) -> None:
    assert [shape(item) for item in select(f"SELECT * FROM {text}").from_items] == expected


@pytest.mark.parametrize(
    "kind", ["LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "LEFT OUTER", "FULL OUTER"]
)
def test_other_joins_are_remembered(kind: str) -> None:
    query = select(f"SELECT * FROM a {kind} JOIN b ON a.x = b.x")
    assert [getattr(i, "kind", None) for i in query.from_items] == [kind.removesuffix(" OUTER")]


def test_distinct_and_all() -> None:
    assert select("SELECT DISTINCT a FROM s").distinct
    assert not select("SELECT ALL a FROM s").distinct
    assert select("SELECT ISTREAM DISTINCT a FROM s").distinct


@pytest.mark.parametrize("word", ["CUBE", "ROLLUP", "GROUPING SETS"])
def test_groupings(word: str) -> None:
    assert select(f"SELECT a FROM s GROUP BY {word} (a, b)").grouping == word


@pytest.mark.parametrize("operator", ["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
def test_set_operations(operator: str) -> None:
    query = parse_query(f"SELECT a FROM s {operator} SELECT a FROM r")
    assert isinstance(query, ast.SetOperation)
    assert query.operator == operator
    nested = parse_query(f"(SELECT a FROM s) {operator} (SELECT a FROM r)")
    assert isinstance(nested, ast.SetOperation)


A, B, C = (f"SELECT a FROM {name}" for name in "abc")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (f"{A} UNION {B} INTERSECT {C}", f"{A} UNION ({B} INTERSECT {C})"),
        (f"{A} INTERSECT {B} UNION {C}", f"({A} INTERSECT {B}) UNION {C}"),
        (f"{A} EXCEPT {B} INTERSECT ALL {C}", f"{A} EXCEPT ({B} INTERSECT ALL {C})"),
        (f"{A} EXCEPT {B} UNION DISTINCT {C}", f"({A} EXCEPT {B}) UNION {C}"),
        (f"{A} INTERSECT {B} INTERSECT {C}", f"({A} INTERSECT {B}) INTERSECT {C}"),
    ],
)
def test_intersect_binds_tighter(text: str, meant: str) -> None:
    assert query_text(parse_query(text)) == query_text(parse_query(meant))
    plain = query_text(parse_query(f"({A} UNION {B}) INTERSECT {C}"))
    assert query_text(parse_query(text)) != plain
    assert query_text(parse_query(plain)) == plain


@pytest.mark.parametrize(
    ("text", "within"),
    [("sum(x) WITHIN (5%)", (5.0, "%")), ("count(*) within (8 buckets)", (8.0, "buckets"))],
)
def test_approximate_aggregates(text: str, within: tuple[float, str]) -> None:
    (item,) = select(f"SELECT {text} FROM s").items
    assert any(node.meta.get("within") == within for node in item.walk())


def test_filtered_aggregates() -> None:
    (item,) = select("SELECT count(*) FILTER (WHERE x > avg(x)) AS c FROM s").items
    assert item.find(exp.Filter) is not None


EXPRESSIONS = (
    "a + b * c - d / e % f", "a div b", "-a", "+a", "NOT a", "a AND b OR c", "a = b", "a == b",
    "a <> b", "a != b", "a <=> b", "a < b", "a <= b", "a > b", "a >= b", "a IS NULL",
    "a IS NOT NULL", "a IS TRUE", "a IN (1, 2)", "a NOT IN (1, 2)", "a BETWEEN 1 AND 2",
    "a NOT BETWEEN 1 AND 2", "s LIKE 'a%'", "s NOT LIKE '_'", "s RLIKE '^a'", "s || t",
    "CASE WHEN a THEN 1 ELSE 2 END", "CASE a WHEN 1 THEN 2 END", "CAST(a AS BIGINT)",
    "TRY_CAST(a AS DECIMAL(10, 2))", "if(a, 1, 2)", "coalesce(a, b)", "f(a, b)", "count(*)",
    "TIMESTAMP '2024-01-01 00:00:00'", "DATE '2024-01-01'", "INTERVAL 5 MINUTES",
    "ts - INTERVAL '1' HOUR", "extract(hour FROM ts)", "a & b | c ^ d", "~a", "1e-3", "0.5",
    "'it''s'", '"double quoted"', "NULL", "TRUE", "(a)", "t.a", "`odd name`",
)  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text: str) -> None:
    (item,) = select(f"SELECT {text} FROM s").items
    assert isinstance(item, exp.Expression)
    (aliased,) = select(f"SELECT {text} AS named FROM s").items
    assert aliased.alias == "named"
    assert len(select(f"SELECT a FROM s WHERE {text}").conditions) == 1


# --- statements about queries


def test_create_query_remembers_its_text() -> None:
    statement = one("CREATE QUERY spikes AS SELECT a FROM s WHERE a > 1;")
    assert isinstance(statement, statements.CreateQuery)
    assert (statement.name, statement.text) == ("spikes", "SELECT a FROM s WHERE a > 1")


def test_a_bare_select_is_a_statement() -> None:
    assert isinstance(one("SELECT a FROM s"), statements.SelectStatement)


def test_create_view() -> None:
    view = one("CREATE VIEW v RETAIN 1 HOUR AS SELECT a FROM s [NOW]")
    assert isinstance(view, statements.CreateView)
    assert (view.name, view.retain) == ("v", HOUR)


def test_create_alert() -> None:
    alert = one(
        "CREATE ALERT a AS SELECT r.x, s.y FROM r, s WITHIN 5 MINUTES WHERE r.k = s.k "
        "DOMAIN r.x (0, 100) WHEN r.x + s.y > 150 CLEAR BELOW 120"
    )
    assert isinstance(alert, statements.CreateAlert)
    assert alert.name == "a"
    assert alert.within == (("*", 5 * MINUTE),)
    assert len(alert.query.conditions) == 1
    assert len(alert.domains) == 1
    assert alert.clear_below is not None


def test_an_alert_with_windows_per_pair() -> None:
    alert = one(
        "CREATE ALERT a AS SELECT * FROM r, s, t WITHIN (r, s 5 MINUTES; s, t 1 HOUR) "
        "WHEN r.x + t.x > 1"
    )
    assert alert.within == (("r,s", 5 * MINUTE), ("s,t", HOUR))


def test_alter_query() -> None:
    window = one("ALTER QUERY q SET WINDOW trades [RANGE 10 MINUTES]")
    assert (window.window_source, window.window) == ("trades", RangeClause(10 * MINUTE))
    assert one("ALTER QUERY q SET (filters = 'sweep')").options == (("filters", "sweep"),)
    assert isinstance(one("ALTER QUERY q AS SELECT a FROM s").query, ast.Select)


@pytest.mark.parametrize("verb", ["PAUSE", "RESUME", "DROP"])
@pytest.mark.parametrize("kind", ["QUERY ", ""])
def test_manage(verb: str, kind: str) -> None:
    found = one(f"{verb} {kind}q")
    assert (found.verb, found.kind, found.name) == (verb, "QUERY", "q")


@pytest.mark.parametrize("kind", ["VIEW", "TABLE", "STREAM", "ALERT"])
def test_drop_anything(kind: str) -> None:
    assert one(f"DROP {kind} x").kind == kind


def test_invoke() -> None:
    assert one("INVOKE q").moment is None
    assert one("INVOKE q AT TIMESTAMP '2024-01-01 00:00:00'").moment is not None


@pytest.mark.parametrize("what", ["STREAMS", "QUERIES", "STATE"])
def test_show(what: str) -> None:
    assert one(f"SHOW {what}").what == what


def test_show_plans() -> None:
    found = one("SHOW PLANS q")
    assert (found.what, found.name) == ("PLANS", "q")


@pytest.mark.parametrize("mode", [None, "ESTIMATE", "BOUND", "ANALYZE", "ADAPT"])
def test_explain(mode: str | None) -> None:
    for inner in ("SELECT a FROM s", "CREATE QUERY q AS SELECT a FROM s"):
        found = one(f"EXPLAIN {mode or ''} {inner}")
        assert isinstance(found, statements.Explain)
        assert found.mode == mode
    assert one(f"EXPLAIN {mode or ''} q").statement == "q"


# --- scripts


def test_a_script_has_comments_and_semicolons() -> None:
    statements = parse(
        """
        -- the input
        CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts;
        /* a query */ CREATE QUERY q AS SELECT a FROM s;;
        SHOW QUERIES;
        """
    )
    assert [type(s).__name__ for s in statements] == ["CreateStream", "CreateQuery", "Show"]


@pytest.mark.parametrize("text", ["", "   ", ";;", "-- nothing"])
def test_an_empty_script_has_no_statements(text: str) -> None:
    assert parse(text) == ()


def test_a_semicolon_in_a_string_ends_nothing() -> None:
    assert len(parse("SELECT a FROM s WHERE b = 'x;y'")) == 1


def test_a_number_beyond_all_bounds_is_refused_where_it_stands() -> None:
    with pytest.raises(ParseError, match="1e999 is too large for a number"):
        parse_query("SELECT a FROM s WITH (profile = 1e999)")
