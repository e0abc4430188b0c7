"""Views, and queries over queries: as if their text stood in FROM."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError, DuplicateName, StillRead, UnknownName, WindowMisuse
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

TRADES = pa.table(
    {
        "sym": ["a", "b", "a", "c", "b", "a", "c", "a"],
        "price": [1.0, 5.0, 3.0, 2.0, 4.0, 2.0, 8.0, 9.0],
        "ts": pa.array([0, 1, 2, 2, 4, 6, 7, 9], pa.timestamp("s", "UTC")),
    }
)
TOP = "SELECT sym, max(price) AS top FROM trades [RANGE 3 SECONDS] GROUP BY sym"
RISES = "SELECT ISTREAM sym, max(price) AS top FROM trades [RANGE 3 SECONDS] GROUP BY sym"


def runner() -> Runner:
    made = Runner(epochs=3)
    made.stream("trades", TRADES)
    return made


def results(made: Runner, sql: str) -> Any:
    query = made.query(sql, "asked")
    made.run()
    return from_table(query.results())


@pytest.mark.parametrize(
    ("view", "asked"),
    [
        pytest.param(
            TOP,
            "SELECT t.sym FROM trades [NOW] t, {} v WHERE t.sym = v.sym AND t.price < v.top",
            id="relation",
        ),
        pytest.param(
            RISES,
            "SELECT ISTREAM r.sym, count(*) AS n FROM {} [RANGE 4 SECONDS] r GROUP BY r.sym",
            id="stream",
        ),
    ],
)
def test_a_view_stands_for_its_text(view: str, asked: str) -> None:
    made = runner()
    made.sql(f"CREATE VIEW v AS {view}")
    found = results(made, asked.format("v"))
    assert found
    assert difference(results(runner(), asked.format(f"({view})")), found) is None


def test_subqueries_in_subqueries_are_bound_once_each() -> None:
    """Bound twice at every level, forty levels would take for ever."""
    text = "trades"
    for _ in range(40):
        text = f"(SELECT sym, price FROM {text})"
    assert runner().query(f"SELECT sym FROM {text} WITH (unbounded = true)").schema[0].name == "sym"


def test_a_query_reads_another_and_a_view_another_view() -> None:
    made = runner()
    made.query(RISES, "rises")
    made.sql("CREATE VIEW few AS SELECT sym FROM rises [ROWS 2] WHERE top > 2")
    found = results(made, "SELECT DISTINCT few.sym FROM few")
    inner = f"SELECT q.sym FROM ({RISES}) [ROWS 2] q WHERE q.top > 2"
    assert found
    assert difference(results(runner(), f"SELECT DISTINCT f.sym FROM ({inner}) f"), found) is None


def test_refusals() -> None:
    made = runner()
    made.sql(f"CREATE VIEW tops AS {TOP}")
    made.sql(f"CREATE VIEW tops AS {TOP}")  # the same again is fine
    with pytest.raises(DuplicateName):
        made.sql(f"CREATE VIEW tops AS {RISES}")
    with pytest.raises(DuplicateName):
        made.sql(f"CREATE VIEW trades AS {TOP}")
    with pytest.raises(WindowMisuse, match="tops gives a relation"):
        made.query("SELECT sym FROM tops [NOW]")
    with pytest.raises(UnknownName, match="topz"):
        made.query("SELECT sym FROM topz")
    with pytest.raises(UnknownName, match="loop"):
        made.sql("CREATE VIEW loop AS SELECT * FROM loop")
    with pytest.raises(ConfigError, match="RETAIN keeps the stream"):
        made.sql("CREATE VIEW kept RETAIN 1 DAY AS SELECT sym FROM trades [NOW]")


# -- views that keep what they emit ------------------------------------------------------------

NUMBERS = 600


def numbers(since: int, until: int) -> pa.Table:
    times = list(range(since, until))
    return pa.table(
        {
            "k": pa.array([t * 7 % 5 for t in times], pa.int64()),
            "v": pa.array([t * 13 % 101 for t in times], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


EMITS = (
    "SELECT ISTREAM k, v FROM n WHERE v > 80",
    "SELECT ISTREAM k, count(*) AS v FROM n [RANGE 20 MICROSECONDS] WHERE v > 50 GROUP BY k",
    "SELECT DSTREAM k, v FROM n [RANGE 9 MICROSECONDS] WHERE v > 80",
    "SELECT RSTREAM k, max(v) AS v FROM n [RANGE 30 MICROSECONDS SLIDE 10 MICROSECONDS] GROUP BY k",
)
READERS = (
    "SELECT ISTREAM k, v FROM {}",
    "SELECT k, sum(v) AS total FROM {} [RANGE 50 MICROSECONDS] GROUP BY k",
    "SELECT ISTREAM a.v, b.v AS w FROM {} [RANGE 30 MICROSECONDS] a, n [NOW] b WHERE a.k = b.k",
)


@pytest.mark.parametrize("view", EMITS)
@pytest.mark.parametrize("reader", READERS)
def test_a_retained_view_gives_what_an_inlined_one_gives(view: str, reader: str) -> None:
    """priorart AU-5: the same content, however late somebody attaches; what is materialised need
    not be computed again."""
    whole = Runner()
    whole.stream("n", numbers(0, NUMBERS))
    whole.sql(f"CREATE VIEW v AS {view}")
    expected = whole.query(reader.format("v"), "q")
    whole.run()
    for restarts in ((), (2, 5)):
        made = Runner(epochs=6, restarts=restarts, slice_rows=90)
        made.stream("n", numbers(0, NUMBERS), retain="1 hour")
        made.sql(f"CREATE VIEW v RETAIN 1 HOUR AS {view}; CREATE VIEW inline AS {view}")

        def attach(number: int, made: Runner = made) -> None:
            if number == 4:
                made.query(reader.format("v"), "late")
                made.query(reader.format("inline"), "inlined")
                made.query("SELECT ISTREAM k FROM v WHERE v > 99", "gone")
            if number == 5:
                made.queries["gone"].drop()

        made.run(attach)
        for name in ("late", "inlined"):
            found = from_table(made.queries[name].results())
            problem = difference(from_table(expected.results()), found)
            assert problem is None, f"{name}, restarts {restarts}\n{problem}"
        counts = {n: made.core.state.queries[n].operators.counts for n in ("late", "inlined")}
        read = {n: sum(c for k, c in found.items() if k.startswith("evaluations:"))
                for n, found in counts.items()}  # fmt: skip
        assert read["late"] < read["inlined"] or "RSTREAM" in view
    with pytest.raises(StillRead):
        made.sql("DROP VIEW v")
    made.sql("DROP QUERY late; DROP VIEW v")
    assert "v" not in made.core.state.streams
    assert not [n for n in made.core.state.queries if n.startswith("__view")]


def test_another_retention_is_another_view() -> None:
    made = Runner()
    made.stream("n", numbers(0, 10), retain="1 hour")
    view = "AS SELECT ISTREAM k, v FROM n WHERE v > 3"
    made.sql(f"CREATE VIEW rv RETAIN 30 SECONDS {view}; CREATE VIEW rv RETAIN 30 SECONDS {view}")
    with pytest.raises(DuplicateName, match="for 30 s"):
        made.sql(f"CREATE VIEW rv RETAIN 60 SECONDS {view}")
