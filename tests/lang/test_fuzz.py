"""Whatever the text, nothing but a `ThalwegError` leaves the parser or the binder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thalweg.errors import ThalwegError
from thalweg.lang.parsing.parser import parse_query, parse_window
from thalweg.statements import parse
from thalweg.testing.generators import random_case
from thalweg.testing.grid import load
from thalweg.testing.runner import Runner

MANY = settings(max_examples=250, derandomize=True, deadline=None)

WORDS = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT ISTREAM DSTREAM RSTREAM DISTINCT ALL AS ON JOIN "
    "LEFT RIGHT FULL INNER OUTER CROSS NATURAL SEMI ANTI UNION EXCEPT INTERSECT USING WITH INTO "
    "CREATE STREAM TABLE QUERY VIEW ALERT ALTER DROP PAUSE RESUME INVOKE SHOW EXPLAIN SET WINDOW "
    "TIMESTAMP ARRIVAL UNIT LATENESS IDLE NEVER AHEAD KEY UNIQUE RETAIN ROWS RANGE SLIDE NOW "
    "UNBOUNDED PARTITION SESSION GAP LANDMARK EVERY TO SIZE ADVANCE MODEL FIT DEGREE WITHIN ERROR "
    "SAMPLE RATE QOS LATENCY LOSS VALUE FILTER BUCKETS WHEN CLEAR BELOW DOMAIN AT STREAMS QUERIES "
    "PLANS STATE ESTIMATE BOUND ANALYZE ADAPT FILES FORMAT OPTIONS SPARK SENSOR CONSOLE CHANGELOG "
    "AND OR NOT IN IS NULL TRUE FALSE LIKE RLIKE BETWEEN CASE THEN ELSE END CAST TRY_CAST INTERVAL "
    "SECOND SECONDS MINUTES DAY MONTH DATE EXTRACT EXISTS OVER CUBE ROLLUP GROUPING SETS DIV"
).split()
NAMES = ("trades", "quotes", "companies", "sym", "price", "qty", "ts", "t", "q", "__ts", "`a b`")
CALLS = ("count", "sum", "avg", "min", "max", "upper", "abs", "coalesce", "nosuch", "substr")
MARKS = (
    "( ) [ ] , ; . * + - / % = <> < > <= >= <=> || & | ^ ~ : :: -> => ? ! @ # $ { } \\ ' \" ` -- /*"
).split()
VALUES = "0 1 5 1.5 1e400 99999999999999999999 'x' '' '2024-01-01' 0x1F".split()
TOKENS = st.sampled_from([*WORDS, *NAMES, *CALLS, *MARKS, *VALUES])

VALID = (
    "CREATE STREAM s (a STRING, b DECIMAL(10, 2), ts BIGINT NOT NULL) TIMESTAMP BY (ts UNIT ms) "
    "ORDER BY (a) LATENESS 1 SECOND IDLE NEVER AHEAD 1 HOUR KEY (a) UNIQUE (b) RETAIN 10 ROWS",
    "SELECT ISTREAM t.sym, t.price, avg(q.bid) AS m FROM trades [NOW] t, quotes [RANGE 5 MINUTES] "
    "q, companies c WHERE t.sym = q.sym AND t.sym = c.sym AND c.sector = 'tech' GROUP BY t.sym, "
    "t.price HAVING t.price > 1.05 * avg(q.bid) WITH (filters = 'a-greedy')",
    "SELECT sym, count(*), sum(qty) FROM trades [PARTITION BY sym ROWS 5] GROUP BY sym HAVING "
    "max(price) > 1",
    "SELECT CASE WHEN qty BETWEEN 1 AND 5 THEN upper(sym) ELSE 'x' END AS c FROM trades "
    "WHERE sym LIKE 'a%' AND price IS NOT NULL AND qty IN (1, 2) AND ts > TIMESTAMP '2024-01-01'",
    "SELECT sum(qty) WITHIN (5%) FROM trades [RANGE 1 HOUR SLIDE 1 MINUTE] ERROR qty WITHIN 1% "
    "SAMPLE EVERY 1 SECOND QOS (LATENCY (0:1, 1:0)) INTO FILES 'x' FORMAT csv",
    "CREATE ALERT a AS SELECT * FROM trades, quotes WITHIN 5 MINUTES DOMAIN r.x (0, 1) WHEN f > 1",
    "EXPLAIN SELECT sym FROM trades; SHOW QUERIES; DROP QUERY q; INVOKE q AT 5",
)  # fmt: skip


@pytest.fixture(scope="module")
def runner() -> Runner:
    runner = Runner()
    runner.sql(
        "CREATE STREAM trades (sym STRING, price DOUBLE, qty BIGINT, ts TIMESTAMP) TIMESTAMP BY ts;"
        "CREATE STREAM quotes (sym STRING, bid DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts"
    )
    runner.table("companies", pa.table({"sym": ["a"], "sector": ["tech"]}))
    return runner


def shown(act: Callable[[str], object], text: str) -> None:
    """Do it; a refusal must be printable, or that error comes out instead."""
    try:
        act(text)
    except ThalwegError as error:
        raise error if str(error) else AssertionError("a refusal without words") from None


def survives(runner: Runner, text: str) -> None:
    """Refused or accepted, never broken; what is refused can be shown."""
    for act in (parse, parse_query, parse_window, runner.query, runner.sql):
        with suppress(ThalwegError):
            shown(act, text)
    for name in [*runner.queries]:
        runner.core.queries.remove(name)
        runner.core.state.queries.pop(name, None)
        runner.core.plans.forget(name)


@MANY
@given(text=st.text(max_size=60))
@example(text="\x00")
@example(text="'")
@example(text="/*")
@example(text="`")
@example(text="SELECT \ud7ff FROM trades")
@example(text="(" * 3_000)
@example(text="SELECT " + "(" * 500 + "1" + ")" * 500 + " FROM trades")
@example(text="SELECT " + "-" * 2_000 + "1 FROM trades")
@example(text="SELECT " + "NOT " * 3_000 + "TRUE FROM trades")
@example(text="SELECT " + "1 + " * 5_000 + "1 AS x FROM trades")
@example(text="SELECT sym FROM trades WHERE " + "qty = 1 OR " * 3_000 + "qty = 2")
@example(text="SELECT sym FROM trades WHERE " + "qty = 1 AND " * 3_000 + "qty = 2")
@example(text="x" * 300_000)
def test_random_text(runner: Runner, text: str) -> None:
    survives(runner, text)


@MANY
@given(tokens=st.lists(TOKENS, max_size=25))
def test_token_soup(runner: Runner, tokens: list[str]) -> None:
    survives(runner, " ".join(tokens))


@MANY
@given(tokens=st.lists(TOKENS, max_size=12), place=st.integers(0, 3))
@example(tokens=["INTERVAL"], place=0)
@example(tokens=["INTERVAL", "1"], place=0)
@example(tokens=["CAST", "(", "1", "AS", "DECIMAL", "(", "99", ")", ")"], place=0)
@example(tokens=["1e400"], place=0)
@example(tokens=["CAST", "(", "'x'", "AS", "BIGINT", ")"], place=1)
@example(tokens=["1", "/", "0"], place=0)
@example(tokens=["0"], place=3)
def test_token_soup_inside_a_statement(runner: Runner, tokens: list[str], place: int) -> None:
    soup = " ".join(tokens)
    shapes = (
        "SELECT {} AS x FROM trades",
        "SELECT sym FROM trades t, quotes [NOW] q WHERE {}",
        "SELECT sym FROM trades [{}]",
        "SELECT count(*) FROM trades [NOW] GROUP BY {}",
    )
    survives(runner, shapes[place].format(soup))


@MANY
@given(
    text=st.sampled_from(VALID),
    edits=st.lists(
        st.tuples(st.sampled_from(("drop", "swap", "put", "cut")), st.integers(0, 100), TOKENS),
        min_size=1,
        max_size=4,
    ),
)
def test_mutated_statements(runner: Runner, text: str, edits: list[tuple[str, int, str]]) -> None:
    survives(runner, mutated(text, edits))


def mutated(text: str, edits: list[tuple[str, int, str]]) -> str:
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    for how, where, token in edits:
        i = where % len(words)
        if how == "drop":
            del words[i]
        elif how == "swap":
            words[i], words[i - 1] = words[i - 1], words[i]
        elif how == "put":
            words.insert(i, token)
        else:
            words = words[: i + 1]
        words = words or ["SELECT"]
    return " ".join(words)


@MANY
@given(text=st.sampled_from(VALID), where=st.integers(0, 400), what=st.characters())
def test_one_wrong_character(runner: Runner, text: str, where: int, what: str) -> None:
    i = where % len(text)
    survives(runner, text[:i] + what + text[i + 1 :])


@settings(MANY, max_examples=120)
@given(
    seed=st.integers(0, 10_000),
    edits=st.lists(
        st.tuples(st.sampled_from(("drop", "swap", "put")), st.integers(0, 100), TOKENS),
        min_size=1,
        max_size=3,
    ),
)
def test_mutated_random_queries(seed: int, edits: list[tuple[str, int, str]]) -> None:
    case = random_case(seed)
    survives(load(Runner(), case), mutated(case.sql, edits))


@pytest.mark.parametrize("text", VALID)
def test_every_prefix(runner: Runner, text: str) -> None:
    for end in range(0, len(text), 3):
        with suppress(ThalwegError):
            parse(text[:end])


@pytest.mark.parametrize("text", VALID)
def test_the_seeds_of_the_mutations_parse(text: str) -> None:
    assert parse(text)
