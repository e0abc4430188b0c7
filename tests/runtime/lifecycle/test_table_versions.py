"""Tables with versions: a relation that changes at an instant, whatever the cut."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError, DuplicateName
from thalweg.lang.binding.binder import bind
from thalweg.lang.parsing.parser import parse_query
from thalweg.testing import Runner
from thalweg.testing.compare import difference, from_table, python_rows
from thalweg.testing.reference import ReferenceStream, evaluate_query
from trade_rows import SECOND, rows, runner_over, sectors, shown

UTC = pa.timestamp("us", "UTC")
QUERIES = (
    "SELECT s.k, s.x, t.w FROM s [RANGE 9 MICROSECONDS] s JOIN t ON s.k = t.k",
    "SELECT ISTREAM s.x FROM s [RANGE 9 MICROSECONDS] s JOIN t ON s.k = t.k",
    "SELECT ISTREAM s.k, s.x, t.w FROM s [NOW] s LEFT JOIN t ON s.k = t.k",
    "SELECT t.w, count(*) AS n, max(s.x) AS m FROM s [RANGE 5 MICROSECONDS] s, t "
    "WHERE s.k = t.k AND t.w > 0 GROUP BY t.w",
    "SELECT RSTREAM s.k, t.w FROM s [ROWS 4] s JOIN t ON s.k = t.k",
    "SELECT s.k FROM s [RANGE 9 MICROSECONDS] s WHERE s.k NOT IN (SELECT k FROM t)",
    "SELECT DSTREAM s.k, u.w FROM s [RANGE 6 MICROSECONDS] s, "
    "(SELECT k, max(w) AS w FROM t GROUP BY k) u WHERE s.k = u.k",
)


def _rows(rng: Random, rows: int) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([rng.choice((0, 1, 2, 3, None)) for _ in range(rows)], pa.int64()),
            "x": pa.array([rng.randint(0, 5) for _ in range(rows)], pa.int64()),
            "ts": pa.array(sorted(rng.randint(0, 50) for _ in range(rows)), UTC),
        }
    )


def _table(rng: Random) -> pa.Table:
    size = rng.randint(0, 6)
    return pa.table(
        {
            "k": pa.array([rng.randint(0, 3) for _ in range(size)], pa.int64()),
            "w": pa.array([rng.randint(-1, 3) for _ in range(size)], pa.int64()),
        }
    )


def _expected(text: str, stream: pa.Table, tables: list[tuple[int, pa.Table]]) -> list[Any]:
    runner = Runner()
    runner.stream("s", stream)
    runner.table("t", tables[0][1])
    root = bind(parse_query(text), runner.session.catalog, text).root
    versions = {"t": [(at, python_rows(t)) for at, t in tables[1:]]}
    streams = {"s": ReferenceStream.from_table(stream)}
    first = {"t": python_rows(tables[0][1])}
    return evaluate_query(root, streams, first, versions=versions).emitted


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("seed", range(40))
def test_versions_change_a_relation_at_their_instant(seed: int) -> None:
    rng = Random(seed)
    text = QUERIES[seed % len(QUERIES)]
    stream = _rows(rng, 40)
    instants = sorted(rng.sample(range(5, 48), 2))
    tables = [(0, _table(rng)), *((at, _table(rng)) for at in instants)]
    runner = Runner(epochs=rng.choice((1, 3, 9)), buckets=rng.choice((1, 3)),
                    restarts=(2,) if seed % 2 else ())  # fmt: skip
    runner.stream("s", stream)
    for at, table in tables:
        runner.table("t", table, at=None if at == 0 else at)
    query = runner.query(text)
    runner.run()
    found = difference(_expected(text, stream, tables), from_table(query.results()))
    assert found is None, f"{text}\n{found}"


@pytest.mark.parametrize("seed", range(12))
def test_a_version_given_between_epochs_holds_from_the_frontier_on(seed: int) -> None:
    """The running query goes on; what it has answered stays answered."""
    rng = Random(1000 + seed)
    text = QUERIES[seed % len(QUERIES)]
    stream = _rows(rng, 40)
    runner = Runner(buckets=2)
    runner.stream("s", stream)
    tables = [(0, _table(rng))]
    runner.table("t", tables[0][1])
    query = runner.query(text, name="q")
    for piece in (stream.slice(0, 15), stream.slice(15, 10)):
        runner.feed({"s": piece})
        frontier = query.stats()["frontier"]
        table = _table(rng)
        runner.table("t", table)
        tables.append((frontier, table))
        if seed % 3 == 0:
            runner.core.coordinator.save(0)
            runner.restart()
    runner.feed({"s": stream.slice(25)})
    runner.close()
    found = difference(_expected(text, stream, tables), from_table(query.results()))
    assert found is None, f"{text}\n{found}"


def test_rows_without_a_window_meet_the_table_as_it_is_when_they_come() -> None:
    runner = Runner(buckets=2)
    stream = pa.table({"k": [1, 1, 1], "ts": pa.array([1, 5, 9], UTC)})
    runner.stream("s", stream)
    runner.table("t", pa.table({"k": [1], "w": ["old"]}))
    query = runner.query("SELECT ISTREAM s.ts, t.w FROM s, t WHERE s.k = t.k")
    runner.table("t", pa.table({"k": [1], "w": ["new"]}), at=5)
    for i in range(3):
        runner.feed({"s": stream.slice(i, 1)})
    runner.close()
    assert query.results().column("w").to_pylist() == ["old", "new", "new"]


def test_versions_are_recorded_and_equal_content_is_no_version() -> None:
    runner = Runner()
    stream = pa.table({"k": [1, 2], "ts": pa.array([1, 2], UTC)})
    runner.stream("s", stream)
    rows = pa.table({"k": [1, 1, 2], "w": [1.0, 1.0, None]})
    runner.table("t", rows)
    runner.query("SELECT ISTREAM s.k FROM s [NOW] s JOIN t ON s.k = t.k")
    runner.feed({"s": stream})
    runner.table("t", rows.take([2, 0, 1]))
    state = runner.core.state
    assert len(state.versions["t"]) == 1
    runner.table("t", rows.slice(1))
    assert [at for at, _ in state.versions["t"]][1] == 2
    runner.core.coordinator.save(0)
    runner.restart()
    assert len(runner.core.state.versions["t"]) == 2
    with pytest.raises(DuplicateName, match="differently"):
        runner.table("t", pa.table({"k": [1]}))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT RSTREAM x FROM s [NOW] WHERE x IN (SELECT k FROM tb)",
        "SELECT RSTREAM x FROM s [NOW] WHERE x NOT IN (SELECT k FROM tb)",
        "SELECT RSTREAM x FROM s [NOW], (SELECT k FROM tb) t WHERE x = t.k",
    ],
)
def test_a_table_with_versions_does_not_depend_on_the_cut(sql: str) -> None:
    """Also where the first epoch ends before the query's first instant."""

    def instants(cuts: list[int]) -> list[int]:
        made = Runner(epochs={"s": cuts})
        made.stream("s", pa.table({"x": [1] * 8, "ts": stamps(range(8))}))
        made.table("tb", pa.table({"k": [1]}))
        query = made.query(sql)
        made.table("tb", pa.table({"k": [2]}), at=4)
        made.run()
        return query.results().column("__ts").cast(pa.int64()).to_pylist()

    whole = instants([])
    assert whole == ([4, 5, 6, 7] if "NOT" in sql else [0, 1, 2, 3])
    for cuts in ([1], [0, 3], [0, 2, 6], list(range(1, 8))):
        assert instants(cuts) == whole, cuts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT b.sym, b.n, c.sector FROM (SELECT sym, count(*) AS n FROM t "
            "[RANGE 1000 SECONDS] GROUP BY sym) b JOIN c ON b.sym = c.sym",
            {("A", 3, "y"), ("B", 1, "x")},
        ),
        (
            "SELECT b.sym, 0 AS n, '' AS sector FROM (SELECT DISTINCT sym FROM t "
            "[RANGE 1000 SECONDS]) b LEFT ANTI JOIN c ON b.sym = c.sym",
            {("Z", 0, "")},
        ),
    ],
)
def test_relations_meet_the_first_change_of_a_table(text: str, expected: set[Any]) -> None:
    runner = runner_over()
    query = runner.query(text)
    runner.feed({"t": rows((1, "A", 1, 1), (2, "A", 1, 1), (3, "B", 1, 1), (4, "Z", 1, 1))})
    runner.table("c", sectors(("A", "y"), ("B", "x")))
    runner.feed({"t": rows((10, "Z", 1, 1), (20, "A", 1, 1), (21, "Z", 1, 1))})
    runner.close()
    assert set(shown(query.invoke(), "sym", "n", "sector")) == expected


@pytest.mark.parametrize("kind", ["LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "JOIN"])
def test_streams_without_a_window_are_not_kept_for_a_table(kind: str) -> None:
    """They meet it as it is when they come, and nothing is remembered."""
    runner = runner_over()
    query = runner.query(f"SELECT ISTREAM t.qty FROM t {kind} c ON t.sym = c.sym")
    where = runner.query("SELECT ISTREAM qty FROM t WHERE sym IN (SELECT sym FROM c)")
    for i in range(40):
        if i == 20:
            runner.table("c", sectors(("B", "x")))
        runner.feed({"t": rows((i, "AB"[i % 2], 1, i), (i + 0.5, None, 1, 100 + i))})
    runner.close()
    met = [i for i in range(40) if ("A" if i < 20 else "B") == "AB"[i % 2]]
    alone = sorted(set(range(40)) - set(met)) + list(range(100, 140))
    wanted = {"LEFT JOIN": sorted(met + alone), "LEFT ANTI JOIN": sorted(alone)}.get(kind, met)
    assert sorted(query.results().column("qty").to_pylist()) == wanted
    assert where.results().column("qty").to_pylist() == met
    kept = sum(p.rows for p in runner.core.state.streams["t"].packs)
    assert kept <= 4
    assert query.stats()["scratch"] == 0


def test_versions_of_a_table_only_go_forward() -> None:
    runner = runner_over()
    runner.query("SELECT t.sym, c.sector FROM t [RANGE 100 SECONDS] t JOIN c ON t.sym = c.sym")
    runner.feed({"t": rows((1, "A", 1, 1), (20, "A", 1, 1))})
    with pytest.raises(ConfigError, match="an instant that is past"):
        runner.table("c", sectors(("A", "y")), at=5 * SECOND)
    runner.table("c", sectors(("A", "y")), at=100 * SECOND)
    with pytest.raises(ConfigError, match="a later version is known"):
        runner.table("c", sectors(("A", "x")), at=50 * SECOND)
