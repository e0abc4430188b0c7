"""What the benchmark of models generates, and how it comes to its figures."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from common.harness import Report
from models import bench_models, crossovers, following, macd, stored_sizes, sweeps, violations
from models.aircraft import ABSENT, positions, shared_data
from models.equations import counted
from models.fit_rates import random_walk
from models.moving_objects import BOUND as METRE
from models.moving_objects import SIDE, moving_objects
from models.timed_runs import Stream, ran, turns
from models.to_commit import walks
from models.trades import BOUND, SECOND, trades
from models.violations import walking_prices
from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import fitted


def ticks(table: pa.Table) -> np.ndarray:
    return np.asarray(table["ts"].cast(pa.int64()).to_numpy())


@pytest.mark.parametrize("count", [1, 10, 200])
def test_trades_have_about_so_many_to_a_line(count: int) -> None:
    table = trades(20_000, count, symbols=2, rate=1_000)
    assert table.num_rows == 20_000
    assert (np.diff(ticks(table)) > 0).all()
    one = np.flatnonzero(table["symbol"].to_numpy() == 1)
    pieces = fitted(
        np.zeros(len(one), np.int64), ticks(table)[one],
        table["price"].to_numpy()[one][:, np.newaxis], [Fit(1, BOUND, False, "hull")],
        3_600 * SECOND,
    )  # fmt: skip
    assert 0.6 * count <= len(one) / len(pieces) <= max(1.3 * count, 4)


def test_the_slope_of_a_trade_is_that_of_its_line() -> None:
    table = trades(2_000, 100, symbols=1, rate=1_000)
    price, slope = table["price"].to_numpy(), table["slope"].to_numpy()
    for line in np.unique(slope):
        own = np.flatnonzero(slope == line)
        left = price[own] - line * ticks(table)[own] / SECOND
        assert left.max() - left.min() <= BOUND


def test_objects_follow_their_lines_and_each_other() -> None:
    table = moving_objects(6, 500, SECOND, 50, following=2)
    assert (np.diff(ticks(table)) >= 0).all()
    x, vx = (table[n].to_numpy().reshape(500, 6) for n in ("x", "vx"))
    assert x.min() >= -METRE
    assert x.max() <= SIDE + 100 + METRE
    assert np.abs(x[:, 1] - x[:, 0] - 100).max() <= METRE
    stray = np.abs(np.diff(x, axis=0) - vx[:-1])
    turning = np.diff(vx, axis=0) != 0
    assert stray[~turning].max() <= METRE
    assert 0.01 < turning.mean() < 0.05


def test_walks_and_prices_are_in_the_order_of_time() -> None:
    for table in (walks(10_000, 10), walking_prices(2)):
        assert (np.diff(ticks(table)) >= 0).all()
        first = table.column_names[0]
        assert len(np.unique(table[first].to_numpy())) == 10
    walk = random_walk(1_000)
    assert (np.diff(walk.ts) > 0).all()


def test_aircraft_say_one_thing_at_an_instant() -> None:
    folder = shared_data()
    if folder is None:
        pytest.skip(ABSENT)
    table = positions(folder)
    said = np.stack([ticks(table), table["id"].to_numpy()])
    assert len(np.unique(said, axis=1).T) == table.num_rows
    assert (np.diff(ticks(table)) >= 0).all()


def test_where_models_get_ahead() -> None:
    assert crossovers.crossover([(1, 0.5), (10, 0.9), (100, 0.5)]) == math.inf
    assert crossovers.crossover([(1, 2.0), (10, 3.0)]) == 1.0
    assert crossovers.crossover([(1, 0.1), (100, 10.0)]) == pytest.approx(10.0)
    assert crossovers.crossover([(1, 2.0), (10, 0.5), (1_000, 2.0)]) == pytest.approx(100.0)


def test_the_knee_is_where_the_curve_bends() -> None:
    bounds = np.array([0.01, 0.1, 1.0, 10.0])
    assert violations.knee(bounds, np.array([1_000, 20, 10, 0])) == 0.1


def test_what_is_stored_is_read_back_within_the_bound() -> None:
    found = stored_sizes.generated(quick=True)
    for bound in (1e-4, 1e-3):
        table = stored_sizes.as_ends(found, bound, stored_sizes.HOUR)  # checks itself
        assert table.num_rows == len(stored_sizes.pieces_of(found, bound * (1 - 1 / 8) - 1e-12))
        assert stored_sizes.size(table) < stored_sizes.size(stored_sizes.rounded(found, bound))


def test_differences_begin_anew_with_each_key() -> None:
    key = np.array([0, 0, 1, 1, 1])
    found = stored_sizes.differences(np.array([5, 7, 100, 99, 99]), key)
    assert found.tolist() == [5, 2, 100, -1, 0]


def test_variants_of_a_sweep_differ() -> None:
    rows = [tuple(v.values()) for v in sweeps.variants(1_000)]
    assert len(set(rows)) == 1_000
    assert len({r[:2] for r in rows}) == sweeps.PAIRS


def test_models_and_tuples_answer_alike() -> None:
    """MACD over tuples, as they arrive and from what a view keeps; following by two joins."""
    trading = {"trades": Stream(trades(40_000, 100, rate=1_000), ("symbol",))}
    view = macd.VIEW
    found = {
        "tuples": ran(macd.text("trades"), trading, 2, results=True),
        "predictive": ran(macd.text("trades", macd.AHEAD), trading, 2, results=True),
        "historical": ran(macd.text("segments"), trading, 2, view=view, results=True),
    }
    sets = {
        name: {(r["symbol"], r["__ts"]) for r in one.results.to_pylist()}  # type: ignore[union-attr]
        for name, one in found.items()
    }
    assert sets["predictive"] == sets["historical"]
    assert len(sets["tuples"]) > 50
    assert len(sets["tuples"] ^ sets["predictive"]) < 0.15 * len(sets["tuples"])
    objects = {"o": Stream(following.generated(120), ("id",))}
    near = []
    for sql in (
        following.over_models(METRE, 60, 10),
        following.over_tuples(following.BASES["the newest of each"], 60),
    ):
        rows = ran(sql, objects, results=True).results.to_pylist()  # type: ignore[union-attr]
        near.append({(r["i"], r["j"]) for r in rows})
    assert near[0] >= {(0, 1), (2, 3), (4, 5), (6, 7)}
    assert near[1] >= {(0, 1), (2, 3), (4, 5), (6, 7)}


def test_equations_follow_changes_not_keys() -> None:
    few, many = (counted(n, epochs=2)[0] for n in (100, 2_000))
    assert few == many
    assert all(few)


def test_violations_fall_with_the_bound() -> None:
    table = walking_prices(2)
    for query, _ in violations.QUERIES.values():
        found = [violations.counted(table, query(b)).violations for b in (0.01, 0.1, 1.0)]
        assert found[0] > found[1] > found[2]
    many = violations.counted(table, violations.moving_averages(0.01)).violations
    assert many == violations.counted(table, violations.price_filter(0.01)).violations


def test_ways_take_turns_and_the_first_does_not_count() -> None:
    streams = {"trades": Stream(trades(2_000, 10), ("symbol",))}
    called = []

    def once(name: str):  # type: ignore[no-untyped-def]
        called.append(name)
        return ran("SELECT symbol FROM trades WHERE price > 0", streams)

    found = turns({"a": lambda: once("a"), "b": lambda: once("b")}, 2)
    assert called == ["a", "b"] * 3
    assert found["a"].rows == 2_000


def test_all_goals_of_the_step_are_declared() -> None:
    report = Report("models", scale="quick", console=Console(quiet=True))
    for module in bench_models.DECLARING:
        module.declare(report)
    promised = " ".join(g.name for g in report.goals)
    for word in ("validate", "swing", "hull", "roots", "MACD", "sweep", "following", "stored",
                 "order of crossovers", "violations", "equations"):  # fmt: skip
        assert word in promised
    assert all(g.holds is None for g in report.goals)
