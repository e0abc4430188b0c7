"""sqlglot parses more than the language has: what no rule reads is refused, never dropped."""

from __future__ import annotations

import pyarrow as pa
import pytest

from thalweg.errors import ParseError, ThalwegError
from thalweg.lang.binding import scope
from thalweg.lang.parsing.parser import parse_query
from thalweg.lang.parsing.understood import NAMES, PARTS, unread
from thalweg.lang.syntax import exp
from thalweg.testing import Runner

REFUSED = {
    "SELECT * EXCEPT (secret) FROM s": "EXCEPT",
    "SELECT * EXCLUDE (secret) FROM s": "EXCEPT",
    "SELECT s.* EXCEPT (secret) FROM s": "EXCEPT",
    "SELECT * REPLACE (1 AS v) FROM s": "REPLACE",
    "SELECT * RENAME (v AS w) FROM s": "RENAME",
    "SELECT v FROM s WHERE v BETWEEN SYMMETRIC 3 AND 1": "SYMMETRIC",
    "SELECT CAST(ts AS STRING FORMAT 'yyyy') AS t FROM s": "FORMAT",
    "SELECT TRY_CAST(v AS INT DEFAULT 0 ON CONVERSION ERROR) AS t FROM s": "DEFAULT",
    "SELECT secret:path FROM s": "a path behind a colon",
    "SELECT a.b.s.v FROM s": "a name of three parts",
    "SELECT INTERVAL '1' DAY TO SECOND AS d FROM s": "this unit of time",
    "SELECT v FROM s WHERE v > 1 AND v BETWEEN SYMMETRIC 3 AND 1 GROUP BY v": "SYMMETRIC",
    "SELECT count(*) AS n FROM s GROUP BY CAST(v AS STRING FORMAT 'x')": "FORMAT",
    "SELECT v FROM s HAVING v BETWEEN SYMMETRIC 3 AND 1": "SYMMETRIC",
    "SELECT v FROM s ORDER BY CAST(v AS STRING FORMAT 'x')": "FORMAT",
    "SELECT a.v FROM s [NOW] a JOIN s [NOW] b ON a.v BETWEEN SYMMETRIC b.v AND 1": "SYMMETRIC",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_a_part_without_a_meaning_is_refused_where_it_stands(sql: str) -> None:
    with pytest.raises(ParseError, match=f"{REFUSED[sql]}.* is not part of the language") as found:
        parse_query(sql)
    assert (found.value.line or 0) == 1
    assert (found.value.column or 0) > 1


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT BINARY 'v' AS b FROM s", "BINARY does not go before a text"),
        ("SELECT v FROM s [NOW] a CROSS JOIN s [NOW] b ON a.v = b.v", "no condition"),
        ("SELECT IF v > 1 THEN 2 END AS x FROM s", "expected FROM"),
        ("SELECT v FROM s FINAL", "found 'FINAL'"),
    ],
)
def test_words_of_other_dialects_are_refused(sql: str, words: str) -> None:
    runner = Runner()
    runner.stream("s", pa.table({"v": [4.0], "ts": pa.array([0], pa.timestamp("us", "UTC"))}))
    with pytest.raises(ThalwegError, match=words):
        runner.query(sql, "q")


def test_extract_takes_parts_of_times_and_no_function() -> None:
    runner = Runner()
    runner.stream("s", pa.table({"v": [4.0], "ts": pa.array([0], pa.timestamp("us", "UTC"))}))
    with pytest.raises(ThalwegError, match="sqrt is no part of a time"):
        runner.query("SELECT EXTRACT(sqrt FROM v) AS r FROM s", "r")
    query = runner.query("SELECT EXTRACT(YEAR FROM ts) AS y, EXTRACT(DAY FROM ts) AS d FROM s", "q")
    runner.run()
    assert query.results().select(["y", "d"]).to_pylist() == [{"y": 1970, "d": 1}]


def test_every_node_that_is_bound_says_what_is_read_of_it() -> None:
    bound = {*scope._RULES, *scope._BINARY, *scope._UNARY} - {exp.Subquery, exp.Exists}
    assert bound <= PARTS.keys()


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
def test_whatever_else_sqlglot_knows_of_a_node_is_unread(kind: type[exp.Expr]) -> None:
    for name in kind.arg_types:
        node = kind()
        node.set(name, exp.Placeholder(this="x"))
        is_read = name in PARTS[kind] and (kind, name) not in NAMES
        assert [part for _, part in unread(node)] == ([] if is_read else [name])


def test_if_is_a_function_of_two_or_three_arguments() -> None:
    runner = Runner()
    runner.stream("s", pa.table({"v": [4.0], "ts": pa.array([0], pa.timestamp("us", "UTC"))}))
    query = runner.query("SELECT IF(v > 5, 1) AS a, if(v > 1, 1, 2) AS b FROM s", "q")
    runner.run()
    assert query.results().select(["a", "b"]).to_pylist() == [{"a": None, "b": 1}]
