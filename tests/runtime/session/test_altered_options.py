"""ALTER QUERY ... SET: every option takes effect with the next epoch, none only after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import NotAvailableYet
from thalweg.plan.bound_query import ALLOWED_OPTIONS, LIVE_OPTIONS
from thalweg.runtime.sharing.placement import Place
from thalweg.runtime.state.query_state import FAILED
from thalweg.testing.runner import Runner

JOIN = (
    "SELECT ISTREAM a.v FROM s [RANGE 9 MICROSECONDS] a "
    "JOIN t [RANGE 9 MICROSECONDS] b ON a.k = b.k JOIN u [RANGE 9 MICROSECONDS] c ON a.k = c.k"
)
FILTER = "SELECT ISTREAM v FROM s WHERE v > 2 AND k < 4"
WINDOW = "SELECT count(*) AS n FROM s [RANGE 30 MICROSECONDS] WITH (materialize = 'none')"


def rows(since: int, until: int) -> pa.Table:
    times = range(since, until)
    return pa.table(
        {
            "k": pa.array([t % 5 for t in times], pa.int64()),
            "v": pa.array([t % 10 for t in times], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def runner(text: str) -> Runner:
    made = Runner()
    for name in "stu":
        made.stream(name, rows(0, 0), retain="1 hour")
    made.query(text, "q")
    feed(made, 0)
    return made


def feed(made: Runner, since: int) -> None:
    made.feed({name: rows(since, since + 30) for name in "stu"})


def kinds(made: Runner) -> dict[str, int]:
    """How many watches of each kind the query has."""
    watched = made.core.adaptation.queries["q"]
    return {kind: len(watched.of(kind)) for kind in ("pipelines", "trees", "caches")}


def orderings(made: Runner) -> Any:
    return [found["ordering"] for found in made.queries["q"].stats()["adapt"]["filters"]]


def rates(made: Runner) -> Any:
    return [found["profile_rate"] for found in made.queries["q"].stats()["adapt"]["filters"]]


def status(made: Runner) -> str:
    return made.queries["q"].status


def place(made: Runner) -> Place:
    return made.core.placement.of("q")


def mode(made: Runner) -> str:
    known = made.core.state.known("q")
    assert known is not None
    return known.definition.mode


CASES: dict[str, tuple[str, str, Callable[[Runner], Any], Any]] = {
    "joins": (JOIN, "'xjoin'", kinds, {"pipelines": 0, "trees": 1, "caches": 0}),
    "filters": (FILTER, "'sweep'", orderings, ["sweep"]),
    "profile": (f"{FILTER} WITH (filters = 'a-greedy')", "0.25", rates, [0.25]),
    "state_limit": (JOIN, "1", status, FAILED),
    "share": (FILTER, "'on'", place, Place.MEMBER),
    "materialize": (WINDOW, "'c'", mode, "c"),
}


def test_every_option_that_can_be_set_is_tried_here() -> None:
    assert set(CASES) == set(LIVE_OPTIONS)
    assert set(LIVE_OPTIONS) <= set(ALLOWED_OPTIONS)


@pytest.mark.parametrize("option", CASES)
def test_an_option_takes_effect_at_the_next_epoch_and_stays(option: str) -> None:
    text, value, effect, wanted = CASES[option]
    made = runner(text)
    assert effect(made) != wanted
    made.sql(f"ALTER QUERY q SET ({option} = {value})")
    feed(made, 30)
    assert effect(made) == wanted
    made.restart()
    feed(made, 60)
    assert effect(made) == wanted


@pytest.mark.parametrize("option", [o for o in CASES if o not in ("state_limit", "materialize")])
def test_no_row_depends_on_an_option(option: str) -> None:
    """A limit of state may cost results; a mode puts none out."""
    text, value, _, _ = CASES[option]
    found = []
    for change in ("", f"ALTER QUERY q SET ({option} = {value})"):
        made = runner(text)
        if change:
            made.sql(change)
        feed(made, 30)
        made.close()
        found.append(sorted(map(str, made.queries["q"].results().to_pylist())))
    assert found[0] == found[1]


@pytest.mark.parametrize("value", ["mjoin", "cached", "xjoin"])
def test_each_kind_of_join_is_planned_anew(value: str) -> None:
    made = runner(f"{JOIN} WITH (joins = '{'mjoin' if value == 'xjoin' else 'xjoin'}')")
    before = kinds(made)
    made.sql(f"ALTER QUERY q SET (joins = '{value}')")
    feed(made, 30)
    assert kinds(made) != before


def test_what_cannot_be_planned_leaves_no_trace() -> None:
    made = runner(JOIN.replace(" ON a.k = c.k", " ON a.v > c.v"))
    with pytest.raises(NotAvailableYet, match="tree of joins"):
        made.sql("ALTER QUERY q SET (joins = 'xjoin')")
    known = made.core.state.known("q")
    assert known is not None
    assert known.definition.altered == {}
    feed(made, 30)
