"""The order of a query that has seen no rows, by rows that are kept; and that no row depends on it,
whether sizes are known, unknown or wrong."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.plan.joins.join_trees import binary_trees
from thalweg.runtime.session import registration
from thalweg.runtime.sizes import initial_plan
from thalweg.testing import Runner

SECOND = 1_000_000
SQL = (
    "SELECT s.v AS s, t.v AS t, u.v AS u FROM s [RANGE 1 DAY] s, t [RANGE 1 DAY] t, "
    "u [RANGE 1 DAY] u WHERE s.k = t.k AND s.k = u.k"
)


def stream(seed: int, keys: range, n: int = 60) -> pa.Table:
    rng = random.Random(seed)
    stamps = pa.array([i * SECOND for i in range(n)], pa.timestamp("us", "UTC"))
    return pa.table({"k": [rng.choice(keys) for _ in range(n)], "v": list(range(n)), "ts": stamps})


def fed(**how: Any) -> Runner:
    """Streams that are kept: nearly no row of `s` has a partner in `u`, all have one in `t`."""
    runner = Runner(**how)
    for name, table in (
        ("s", stream(1, range(40))),
        ("t", stream(2, range(40), 400)),
        ("u", stream(3, range(38, 60))),
    ):
        runner.stream(name, table, retain="100 days")
    return runner


def pipeline(runner: Runner, query: str, alias: str) -> list[str]:
    """The order in which rows of a source are looked up in the others."""
    plan = runner.queries[query].plan
    block = plan.relations[-1]
    names = [leaf.alias for leaf in block.leaves]
    found = next(p for p in block.pipelines if names[p.leaf] == alias)
    return [names[probe.leaf] for probe in found.probes]


def test_rows_are_looked_up_first_where_most_have_no_partner() -> None:
    runner = fed()
    runner.query(SQL, name="early")
    assert pipeline(runner, "early", "s") == ["t", "u"]  # as in FROM: nothing is known yet
    runner.run()
    runner.query(SQL, name="late")
    assert pipeline(runner, "late", "s") == ["u", "t"]
    assert pipeline(runner, "late", "t") == ["u", "s"]


def test_python_functions_are_not_called_to_find_an_order() -> None:
    runner, called = fed(), []
    runner.run()
    runner.function("seen", lambda v: called.append(v) or True)
    runner.query(f"{SQL} AND seen(s.v)", name="late")
    assert not called
    assert pipeline(runner, "late", "s") == ["t", "u"]


def kept(runner: Runner, query: str) -> list[set[str]]:
    """The subresults that a query keeps whole."""
    block = runner.queries[query].plan.relations[-1]
    return [{block.leaves[i].alias for i in k.members} for k in block.subresults if k.whole]


def test_the_smallest_subresults_are_kept() -> None:
    runner = fed()
    runner.query(f"{SQL} WITH (joins = 'xjoin')", name="early")
    assert kept(runner, "early") == [{"s", "t"}]  # as in FROM: nothing is known yet
    runner.run()
    runner.query(f"{SQL} WITH (joins = 'xjoin')", name="late")
    sizes = {
        names: runner.bound(SQL).figure(names).rows
        for names in (("s", "t"), ("s", "u"), ("t", "u"))
    }
    assert kept(runner, "late") == [set(min(sizes, key=lambda n: sizes[n] or 0))] == [{"s", "u"}]


def shuffled(rng: random.Random) -> Any:
    def wrong(rows: Any) -> dict[str, tuple[str, ...]]:
        names = rows.graph.names
        return {n: tuple(rng.sample([m for m in names if m != n], len(names) - 1)) for n in names}

    return wrong


def results(
    monkeypatch: pytest.MonkeyPatch, sizes: str, joins: str, seed: int, **how: Any
) -> list[str]:
    """What a query over the past and new rows emits, that begins with an order by sizes."""
    with monkeypatch.context() as patch:
        if sizes == "off":
            patch.setattr(registration, "initial_plan", lambda sizes, bound, plan: plan)
        if sizes == "wrong":
            rng = random.Random(seed)
            patch.setattr(initial_plan, "probe_orders", shuffled(rng))
            patch.setattr(
                initial_plan, "smallest_tree", lambda b, _: rng.choice([*binary_trees(b)])
            )
        runner = fed(**how)

        def register(number: int) -> None:
            if number == min(2, runner.feedings):
                runner.query(f"{SQL} WITH (joins = '{joins}')", name="q")

        runner.run(register)
        return sorted(map(repr, runner.queries["q"].results().to_pylist()))


@pytest.mark.parametrize("seed", range(4))
def test_no_row_depends_on_sizes(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Bounds on, off and wrong give the same rows, however the input is cut and plans switch."""
    ways: list[dict[str, Any]] = [
        {"epochs": 4}, {"epochs": 7, "buckets": 4}, {"epochs": 5, "switches": seed},
        {"epochs": 6, "restarts": (3,), "buckets": 2},
    ]  # fmt: skip
    found = [
        results(monkeypatch, sizes, joins, seed, **how)
        for how in ways for sizes in ("on", "off", "wrong") for joins in ("auto", "xjoin")
    ]  # fmt: skip
    assert found[0]
    assert all(rows == found[0] for rows in found)
