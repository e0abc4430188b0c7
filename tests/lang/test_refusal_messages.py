"""Refusals say what, where and what to do."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from thalweg.errors import (
    AggregateMisuse,
    AmbiguousName,
    BindError,
    ConfigError,
    DuplicateName,
    ParseError,
    ThalwegError,
    TypeMismatch,
    UnboundedState,
    UnknownName,
    WindowMisuse,
    did_you_mean,
    nearest,
)
from thalweg.testing.runner import Runner

STREAMS = """
CREATE STREAM trades (sym STRING, price DOUBLE, qty BIGINT, ts TIMESTAMP) TIMESTAMP BY ts;
CREATE STREAM quotes (sym STRING, bid DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts
"""


@pytest.fixture
def runner() -> Runner:
    runner = Runner()
    runner.sql(STREAMS)
    runner.table("companies", pa.table({"sym": ["a"], "sector": ["tech"]}))
    return runner


def refusal(runner: Runner, text: str) -> ThalwegError:
    with pytest.raises(ThalwegError) as caught:
        runner.query(text)
    return caught.value


def at(error: ThalwegError) -> tuple[int | None, int | None]:
    return error.line, error.column


# (kind, statement with ^ before the place, words the message must have)
PLACED = [
    (UnknownName, "SELECT ^pric FROM trades", "did you mean price?"),
    (UnknownName, "SELECT sym FROM trades t WHERE ^t.prize > 1", "did you mean price?"),
    (UnknownName, "SELECT sym FROM ^trade", "did you mean trades?"),
    (UnknownName, "SELECT sym FROM trades [NOW] t, ^quote [NOW] q", "did you mean quotes?"),
    (UnknownName, "SELECT ^x.sym FROM trades t", "unknown source x"),
    (UnknownName, "SELECT ^uper(sym) FROM trades", "did you mean upper?"),
    (UnknownName, "SELECT ^frobnicate(sym) FROM trades", "frobnicate"),
    (AmbiguousName, "SELECT ^sym FROM trades [NOW] t, quotes [NOW] q", "t.sym or q.sym"),
    (AmbiguousName, "SELECT bid FROM trades [NOW] t, quotes [NOW] q WHERE ^ts > t.ts", "ambiguous"),
    (TypeMismatch, "SELECT ^sym + INTERVAL 1 DAY AS a FROM trades", ""),
    (TypeMismatch, "SELECT sym FROM trades WHERE ^price", "BOOLEAN"),
    (TypeMismatch, "SELECT sym FROM trades WHERE ^qty + 1", "BOOLEAN"),
    (TypeMismatch, "SELECT ^sum(sym) FROM trades [NOW]", "needs a number"),
    (TypeMismatch, "SELECT ^NULL AS a FROM trades", "CAST(NULL AS type)"),
    (TypeMismatch, "SELECT ^CAST(qty AS DECIMAL(39, 2)) FROM trades", "unknown type"),
    (TypeMismatch, "SELECT ^CAST(qty AS DECIMAL(5, 6)) FROM trades", "unknown type"),
    (ParseError, "SELECT CAST(sym AS ^NOSUCHTYPE) FROM trades", "TYPE"),
    (AggregateMisuse, "SELECT sym FROM trades [NOW] WHERE ^count(*) > 1", "HAVING"),
    (AggregateMisuse, "SELECT sum(^avg(qty)) FROM trades [NOW]", "another aggregate"),
    (AggregateMisuse, "SELECT ^price, count(*) FROM trades [NOW]", "GROUP BY"),
    (AggregateMisuse, "SELECT ^price, count(*) FROM trades [NOW] GROUP BY sym", "GROUP BY"),
    (AggregateMisuse, "SELECT count(*) FROM trades [NOW] GROUP BY ^sum(qty)", "GROUP BY"),
    (AggregateMisuse, "SELECT count(*) AS c FROM trades [NOW] GROUP BY ^c", "GROUP BY"),
    (AggregateMisuse, "SELECT sym FROM trades [NOW] GROUP BY sym HAVING ^qty > 1", "GROUP BY"),
    (AggregateMisuse, "SELECT ^sum(*) FROM trades [NOW]", "count(*)"),
    (AggregateMisuse, "SELECT ^sum(qty, price) FROM trades [NOW]", "one argument"),
    (AggregateMisuse, "SELECT ^* FROM trades [NOW] GROUP BY sym", "GROUP BY"),
    (WindowMisuse, "SELECT t.sym FROM trades [NOW] t, ^companies [NOW] c", "only streams"),
    (WindowMisuse, "SELECT sym FROM ^trades [ROWS 0]", "at least one row"),
    (WindowMisuse, "SELECT sym FROM ^trades [PARTITION BY sym ROWS 0]", "at least one row"),
    (WindowMisuse, "SELECT sym FROM ^trades [RANGE 1 HOUR SLIDE 0 SECONDS]", "slide"),
    (WindowMisuse, "SELECT sym FROM ^trades [PARTITION BY qty + 1 ROWS 1]", "columns"),
    (UnknownName, "SELECT sym FROM trades [PARTITION BY ^symbol ROWS 1]", "did you mean sym?"),
    (DuplicateName, "SELECT sym FROM trades [NOW] t, ^quotes [NOW] t", "alias"),
    (DuplicateName, "SELECT sym FROM trades [NOW], ^trades [NOW]", "alias"),
    (DuplicateName, "SELECT sym FROM trades [NOW] t, ^quotes [NOW] T", "alias"),
    (UnknownName, "^SELECT sym FROM trades WITH (filter = 'auto')", "did you mean filters?"),
    (BindError, "^SELECT sym FROM trades WITH (filters = 'magic')", "a-greedy"),
    (BindError, "^SELECT sym FROM trades WITH (unbounded = 1)", "true or false"),
    (BindError, "^SELECT sym FROM trades WITH (state_limit = 'x')", "a whole number"),
    (BindError, "^SELECT sym FROM companies", "at least one stream"),
    (BindError, "SELECT sym FROM ^trades `a.b`", "dot"),
    (BindError, "SELECT ^sym AS __mine FROM trades", "reserved"),
    (BindError, "SELECT ^sym AS __ts FROM trades", "reserved"),
    (BindError, "SELECT count(*) FROM trades [NOW] GROUP BY ^7", "no such column"),
    (UnboundedState, "^SELECT t.sym FROM trades t, quotes q WHERE t.sym = q.sym", "[RANGE 1 HOUR]"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "marked", "words"), PLACED)
def test_refusals_have_a_place(
    runner: Runner, kind: type[ThalwegError], marked: str, words: str
) -> None:
    column = marked.index("^") + 1
    error = refusal(runner, marked.replace("^", "", 1))
    assert isinstance(error, kind), f"{type(error).__name__}: {error}"
    assert words in str(error)
    assert at(error) == (1, column), str(error)


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("SELECT sym trades^", "expected FROM"),
        ("SELECT ^FROM trades", "expected an expression"),
        ("^SELEC sym FROM trades", "expected CREATE, SELECT"),
        ("SELECT sym FROM trades [RANGE 5 ^BANANAS]", "unit of time"),
        ("SELECT sym FROM trades [^LAST 5]", "a window"),
        ("SELECT sym FROM trades [NOW^", "']'"),
        ("SELECT sym FROM trades WHERE^", "expression"),
        ("SELECT sym FROM trades GROUP BY^", "expression"),
        ("SELECT sym FROM trades WITH (filters ^'auto')", "'='"),
        ("SELECT sym FROM trades t JOIN quotes q ^USING (sym)", "ON"),
        ("SELECT sym FROM trades t JOIN quotes q^", "ON"),
        ("SELECT sym FROM trades [ROWS ^many]", "number of rows"),
        ("SELECT sym FROM ^'trades'", "a stream or table"),
        ("SELECT sym FROM trades ^) x", "end of the statement"),
        ("SELECT 1 FROM trades t ^INNER OUTER JOIN quotes q ON t.ts = q.ts", "no INNER OUTER JOIN"),
        ("SELECT 1 FROM trades t ^NATURAL LEFT JOIN quotes q", "LEFT ASOF JOIN"),
    ],
)
def test_parse_errors_have_a_place(runner: Runner, marked: str, words: str) -> None:
    column = marked.index("^") + 1
    error = refusal(runner, marked.replace("^", "", 1))
    assert isinstance(error, ParseError), f"{type(error).__name__}: {error}"
    assert words in str(error)
    assert at(error) == (1, column), str(error)


def test_the_caret_stands_under_the_place(runner: Runner) -> None:
    text = "SELECT sym,\n       pric * 2 AS double\nFROM trades"
    error = refusal(runner, text)
    assert at(error) == (2, 8)
    shown = str(error).splitlines()
    assert shown[0] == "unknown column pric (line 2, column 8)"
    assert shown[1].index("pric") == shown[2].index("^")
    assert "did you mean price?" in shown[3]


def test_a_script_shows_the_place_in_the_script(runner: Runner) -> None:
    script = "SHOW STREAMS;\nCREATE QUERY q AS\n  SELECT sym,\n    nope FROM trades"
    with pytest.raises(UnknownName) as caught:
        runner.sql(script)
    assert at(caught.value) == (4, 5), str(caught.value)


def test_a_named_query_shows_the_place_in_its_statement(runner: Runner) -> None:
    error = refusal(runner, "CREATE QUERY q AS SELECT nope FROM trades")
    assert at(error) == (1, 26), str(error)


@pytest.mark.parametrize(
    ("marked", "kind", "words"),
    [
        ("CREATE STREAM s (a INT, ^a INT, ts TIMESTAMP) TIMESTAMP BY ts", DuplicateName, "twice"),
        ("CREATE STREAM s (^a NOSUCH, ts TIMESTAMP) TIMESTAMP BY ts", TypeMismatch, "unknown type"),
        ("CREATE STREAM s (^a DECIMAL(40), ts TIMESTAMP) TIMESTAMP BY ts", TypeMismatch, "(40, 0)"),
        ("CREATE STREAM s (^__a INT, ts TIMESTAMP) TIMESTAMP BY ts", ConfigError, "reserved"),
        ("^CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY tz", ConfigError, "no column tz"),
        ("^CREATE STREAM s (a INT, ts STRING) TIMESTAMP BY ts", ConfigError, "not a time"),
        ("^CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts KEY (b)", ConfigError, "no column b"),
        ("CREATE STREAM s (a INT, ts TIMESTAMP) ^LATENESS 1 SECOND", ParseError, "TIMESTAMP BY"),
        ("CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts ^BANANA", ParseError, "a clause"),
        ("^CREATE STREAM s (ts BIGINT) TIMESTAMP BY ts", ConfigError, "what does it count"),
        ("CREATE STREAM s (ts BIGINT) TIMESTAMP BY ts UNIT ^parsecs", ParseError, "unit of time"),
        ("^CREATE STREAM s (t BIGINT) TIMESTAMP BY t FROM FILES 'x' FORMAT xl", ConfigError, "xl"),
    ],
)  # fmt: skip
def test_definitions_are_checked(
    runner: Runner, marked: str, kind: type[ThalwegError], words: str
) -> None:
    column = marked.index("^") + 1
    with pytest.raises(kind) as caught:
        runner.sql(marked.replace("^", "", 1))
    assert words in str(caught.value)
    assert at(caught.value) == (1, column), str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM __s (a INT, ts TIMESTAMP) TIMESTAMP BY ts",
        "CREATE QUERY __q AS SELECT sym FROM trades",
    ],
)
def test_reserved_names(runner: Runner, text: str) -> None:
    with pytest.raises(ThalwegError, match="reserved"):
        runner.sql(text)


def test_reserved_names_from_python(runner: Runner) -> None:
    table = pa.table({"ts": pa.array([1], pa.timestamp("us")), "__x": [1]})
    with pytest.raises(ConfigError, match="reserved"):
        runner.stream("s", table)
    with pytest.raises(ConfigError, match="reserved"):
        runner.stream("__s", table.drop_columns("__x"))
    with pytest.raises(ConfigError, match="reserved"):
        runner.query("SELECT sym FROM trades", name="__q")
    with pytest.raises(ThalwegError, match="reserved"):
        runner.table("__t", pa.table({"a": [1]}))


def test_query_takes_one_select(runner: Runner) -> None:
    for text in ("", "SHOW STREAMS", "SELECT sym FROM trades; SELECT sym FROM trades"):
        with pytest.raises(ConfigError):
            runner.query(text)


def test_unknown_stream_of_rejects(runner: Runner) -> None:
    with pytest.raises(UnknownName):
        runner.rejects("nope")


@pytest.mark.parametrize("text", ["SHOW PLANS spike", "EXPLAIN spike"])
def test_unknown_queries_are_named(runner: Runner, text: str) -> None:
    runner.query("SELECT sym FROM trades", name="spikes")
    with pytest.raises(UnknownName, match="did you mean spikes"):
        runner.sql(text)


def test_rejects_of_a_stream_that_has_seen_nothing(runner: Runner) -> None:
    assert runner.rejects("trades").num_rows == 0


def test_nearest_name() -> None:
    assert nearest("PRISE", ["price", "qty"]) == "price"
    assert nearest("zzz", ["price", "qty"]) is None
    assert did_you_mean("zzz", ["price", "qty"]) == "known: price, qty"
    assert did_you_mean("zzz", []) == "there is none yet"


def test_every_refusal_is_one_exception() -> None:
    from thalweg import errors

    found = [e for e in vars(errors).values() if isinstance(e, type)]
    assert all(issubclass(e, ThalwegError) for e in found if issubclass(e, Exception))


def test_no_refusal_can_be_made_without_a_remedy() -> None:
    with pytest.raises(TypeError):
        ThalwegError("no")  # type: ignore[call-arg]


def test_a_refusal_is_the_same_after_pickling() -> None:
    error = UnknownName("unknown column a", remedy="did you mean b?").at("SELECT a", 1, 8)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (UnknownName, str(error))


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("SHOW STREAMS; ^DROP QUERY nope", "unknown query nope"),
        ("SHOW STREAMS; ^EXPLAIN ESTIMATE nope", "not available yet"),
        ("SHOW STREAMS; ^REFRESH TABLE companies", "needs an Engine"),
        ("SHOW STREAMS; ^CREATE VIEW trades AS SELECT sym FROM quotes", "already defined"),
        ("SHOW STREAMS; ^CREATE QUERY __q AS SELECT sym FROM quotes", "reserved"),
        ("SELECT 'a' AS a FROM trades WHERE sym = ^'it", "is not closed"),
        ("SELECT sym FROM trades ^/* all of them", "is not closed"),
        ("SELECT '/*', \"--\" AS a, ^`b FROM trades", "is not closed"),
    ],
)  # fmt: skip
def test_every_statement_has_a_place(runner: Runner, marked: str, words: str) -> None:
    column = marked.index("^") + 1
    with pytest.raises(ThalwegError) as caught:
        runner.sql(marked.replace("^", "", 1))
    assert words in str(caught.value)
    assert at(caught.value) == (1, column), str(caught.value)


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("SELECT sym FROM trades WHERE qty BETWEEN 1^", "the expression is not complete"),
        ("SELECT CAST(sym ^INT) FROM trades", "expected AS after CAST, found 'INT'"),
        ("SELECT CASE WHEN TRUE THEN 1 ^FROM trades", "END after CASE"),
        ("SELECT abs(qty ^FROM trades", "expected ), found 'FROM'"),
        ("SELECT sym FROM trades WHERE qty > 1 ^OFFSET 2", "LIMIT n keeps"),
        ("SELECT sym FROM trades WHERE qty > 1 ^QUALIFY 1 = 1", "put the SELECT into FROM (...)"),
        ("SELECT sym FROM trades WHERE ^sym ILIKE 'a'", "sym ILIKE 'a' is not an expression"),
        ("SELECT ^CAST(qty AS VARCHAR(3)) FROM trades", "unknown type VARCHAR(3)"),
        ("SELECT ^CAST(qty AS INT8) FROM trades", "unknown type INT8"),
        ("SELECT ^CAST(ts AS TIMESTAMP WITH TIME ZONE) FROM trades", "unknown type TIMESTAMP WITH"),
        ("SELECT sym FROM trades INTO CONSOLE ^INTO CONSOLE", "INTO stands twice"),
        ("SELECT CAST(qty AS ^DECIMAL(-1)) FROM trades", "expected a TYPE after AS"),
        ("SELECT ^CAST(qty AS DECIMAL(5, 2, 1)) FROM trades", "unknown type DECIMAL(5, 2, 1)"),
        ("SELECT sym FROM trades WHERE ^qty  +  1", "qty + 1 is BIGINT"),
        ("SELECT RSTREAM sym FROM trades ORDER BY ^CASE WHEN TRUE THEN 1 END", "CASE WHEN TRUE"),
        ("^SELECT sym FROM trades WITH (share = true)", "option share cannot be true"),
        ("^SELECT sym FROM trades WITH (profile = 'x')", "not 'x'"),
    ],
)  # fmt: skip
def test_refusals_speak_of_the_text_and_not_of_the_parser(
    runner: Runner, marked: str, words: str
) -> None:
    column = marked.index("^") + 1
    error = refusal(runner, marked.replace("^", "", 1))
    assert words in str(error), str(error)
    assert at(error) == (1, column), str(error)
    assert "→" in str(error)
    assert not {"<class", "sqlglot", "Required keyword", "True", "None"} & set(str(error).split())


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("SELECT ^ifnull(qty) AS a FROM trades", "it takes ifnull(value, otherwise)"),
        ("SELECT ^nvl(qty, ts) AS a FROM trades", "nvl does not take (BIGINT, TIMESTAMP)"),
        ("SELECT ^iff(qty, 1, 2) AS a FROM trades", "iff does not take (BIGINT, INT, INT)"),
        ("SELECT ^date_diff(ts, ts, ts) AS a FROM trades", "it takes date_diff(DATE, DATE)"),
        ("SELECT ^EXTRACT(DAY FROM price) AS a FROM trades", "EXTRACT(DAY) does not take (DOUBLE)"),
        ("SELECT sym FROM trades WHERE ^qty BETWEEN ts AND 1", "BETWEEN does not take"),
        ("SELECT sym FROM trades WHERE ^qty IN (ts, 1)", "IN does not take"),
        ("SELECT ^CASE qty WHEN ts THEN 1 END AS a FROM trades", "CASE does not take"),
        ("SELECT ^-ts AS a FROM trades", "- does not take (TIMESTAMP)"),
        ("SELECT sym FROM trades WHERE ^ts IS TRUE", "IS does not take"),
        ("SELECT (^NOT ts) AS a FROM trades", "NOT does not take (TIMESTAMP)"),
    ],
)
def test_refusals_name_functions_as_they_are_written(
    runner: Runner, marked: str, words: str
) -> None:
    column = marked.index("^") + 1
    error = refusal(runner, marked.replace("^", "", 1))
    assert words in str(error), str(error)
    assert at(error) == (1, column), str(error)


def test_constants_are_told_as_sql_has_them(runner: Runner) -> None:
    with pytest.raises(ThalwegError) as refused:
        runner.query(
            "SELECT TRUE AS k, grouping(sym) AS g FROM trades [NOW] GROUP BY TRUE, 'None', NULL"
        )
    assert refused.value.remedy == "it takes one of TRUE, 'None', NULL"
