"""The documentation is true: its SQL parses and runs, its lists are complete, its links exist."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from thalweg.plan.functions import function_names
from thalweg.statements import Show, parse
from thalweg.testing.runner import Runner

ROOT = Path(__file__).parents[1]
LANGUAGE = (ROOT / "docs" / "language.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text("utf-8")
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
TRADES = ("AAA", "BBB", "CCC", "AAA", "BBB", "AAA")


def blocks(text: str, info: str) -> list[str]:
    """The fenced blocks whose info string is exactly this."""
    return re.findall(rf"^```{info}\n(.*?)^```", text, re.M | re.S)


def statements(text: str, info: str) -> list[str]:
    return [s.strip() for b in blocks(text, info) for s in re.split(r";\s*\n", b) if s.strip()]


def runner() -> Runner:
    made = Runner(epochs=2, buckets=2)
    n = len(TRADES)
    ts = pa.array([i * 4_000_000 for i in range(n)], pa.timestamp("us", "UTC"))
    trades = {"sym": list(TRADES), "price": [120.0, 90.0, 11.25, 101.5, 99.0, 300.0]}
    made.stream("trades", pa.table({**trades, "qty": [90, 5, 0, 40, 7, None], "ts": ts}))
    quotes = {"sym": list(TRADES), "bid": [1.0 * i for i in range(n)], "ts": ts}
    made.stream("quotes", pa.table(quotes))
    cars = {"id": list(TRADES), "x": [36.0 * i for i in range(n)], "y": [0.0] * n, "v": [9.0] * n}
    made.stream("cars", pa.table({**cars, "ts": ts}), key=["id"])
    made.table("companies", pa.table({"sym": ["AAA", "BBB"], "sector": ["tech", "food"]}))
    for text in VIEWS:
        made.sql(text)
    return made


@pytest.mark.parametrize("text", blocks(LANGUAGE, "sql") + blocks(LANGUAGE, "sql run"))
def test_every_example_parses(text: str) -> None:
    assert parse(text)


EXAMPLES = statements(LANGUAGE, "sql run")
VIEWS = [text for text in EXAMPLES if text.startswith("CREATE VIEW")]


@pytest.mark.parametrize("text", [text for text in EXAMPLES if text not in VIEWS])
def test_marked_examples_run(text: str) -> None:
    made = runner()
    query = made.query(text)
    made.run()
    assert query.status == "running"
    assert query.results().num_rows > 0


def test_examples_of_errors_reject_rows() -> None:
    made = runner()
    query = made.query("SELECT sym, 100 / qty AS share FROM trades WHERE price > 0")
    made.run()
    assert query.stats()["rejected"] == 1


def test_every_word_of_stats_is_explained() -> None:
    """Of a query by itself, of a join, and of filters that run as one."""
    made = runner()
    join = "SELECT ISTREAM t.sym FROM trades [NOW] t, quotes [RANGE 1 MINUTE] q WHERE t.sym = q.sym"
    queries = [made.query(join)]
    shared = "SELECT sym FROM trades WHERE price > {} WITH (share = 'on')"
    queries += [made.query(shared.format(n)) for n in range(2)]
    queries.append(made.query("SELECT sym FROM trades WHERE price > 100 AND qty > 1"))
    made.run()
    stats = [q.stats() for q in queries]
    keys = {k for s in stats for k in s}
    keys |= {k for s in stats for one in s["streams"].values() for k in one}
    keys |= {
        k for s in stats for k in s.get("adapt", ()) if k in ("so_far", "considered", "switches")
    }
    assert {"shared", "bound"} <= keys
    told = GUIDE.split("## What a query keeps")[1].split("![evaluations")[0]
    assert keys - set(re.findall(r"`(\w+)`", told)) == set()
    counts = {k.partition(":")[0] for s in stats for k in s["counts"]}
    assert set(re.findall(r"`(\w+):\w`", told)) <= counts


def test_function_list_is_complete() -> None:
    listed = LANGUAGE.split("<!-- functions: begin -->")[1].split("<!-- functions: end -->")[0]
    assert sorted(re.findall(r"`(\w+)`", listed)) == function_names()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_what_is_refused_as_not_available_is_listed() -> None:
    """Each statement of the grammar is either described or listed as missing."""
    for verb in ("DROP STREAM", "CREATE ALERT", "EXPLAIN"):
        assert verb in LANGUAGE.split("## Not in this version")[1]
    assert isinstance(parse("SHOW STREAMS")[0], Show)
