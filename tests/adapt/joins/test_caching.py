"""Caches of a running join: chosen when they pay, dropped when they do not, never seen in rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cache_runs import MANY_PROBES, MANY_UPDATES, Rates, rows, run, watch_of

from thalweg.adapt.joins.caching import CacheWatch
from thalweg.adapt.joins.calibration import calibrated
from thalweg.adapt.joins.costs import benefit, upkeep
from thalweg.adapt.operation_costs import UNITS
from thalweg.plan.joins.join_caches import Span, with_spans
from thalweg.testing.runner import Runner


def test_a_cache_that_pays_is_used() -> None:
    """Chosen after a few epochs, with the same rows and fewer operations (streamon #28, #31)."""
    plain, _, without = run(MANY_PROBES, "mjoin")
    query, runner, operations = run(MANY_PROBES, "cached")
    assert rows(query) == rows(plain)
    assert len(rows(query)) > 1_000
    assert [s.subject for s in query.plan_log][-1] == "caches"
    assert [s.alias for s in query.plan.blocks[0].subresults] == ["s⋈t"]
    assert sum(operations[12:]) < 0.9 * sum(without[12:])
    watch = watch_of(runner)
    estimates = watch.estimates()
    assert estimates is not None
    (used,) = watch.states.used
    assert benefit(used, estimates) > upkeep(used, estimates)


def test_a_cache_that_makes_rows_slower_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was estimated: what rows take decides, and it is not tried again soon."""

    def slower(self: CacheWatch, seen: Any) -> Any:
        for one in seen:
            one.seconds = (3.0 if self.states.used else 1.0) * sum(one.rows.values())
            one.profiling = 0.0
        return [seen]

    monkeypatch.setattr(CacheWatch, "portions", slower)
    monkeypatch.setattr("thalweg.adapt.joins.caching.calibrated", lambda: UNITS)
    rates = {**MANY_PROBES, "r": lambda epoch: 50 if epoch < 8 else 2_000}
    plain, _, _ = run(rates, "mjoin", epochs=40)
    query, runner, _ = run(rates, "cached", epochs=40, costs=None)
    assert rows(query) == rows(plain)
    switches = [s for s in query.plan_log if s.subject == "caches"]
    assert [s.outcome for s in switches[-2:]] == ["reverted", "kept"]
    assert switches[-1].statistic == "measured cost per row"
    assert switches[-1].new == switches[-2].old
    assert not watch_of(runner).states.used


def test_a_cache_that_does_not_pay_is_not_used() -> None:
    """Where its updates by far outnumber its probes (streamon #31)."""
    query, _, _ = run(MANY_UPDATES, "cached", epochs=14)
    assert "s⋈t" not in [s.alias for s in query.plan.blocks[0].subresults]


@pytest.mark.parametrize("rates", [MANY_PROBES, MANY_UPDATES])
def test_the_sign_of_the_net_benefit_is_right(rates: Rates) -> None:
    """A forced cache changes the operations as its net benefit says (streamon #31)."""
    span = Span(0, 0, 1)
    _, _, without = run(rates, "mjoin", spans=[])
    _, _, forced = run(rates, "mjoin", spans=[span])
    _, runner, _ = run(rates, "cached")
    watch = watch_of(runner)
    estimates = watch.estimates()
    assert estimates is not None
    (mine,) = [s for s in estimates.caches if s.pipeline == 0 and s.leaves == {1, 2}]
    net = benefit(mine, estimates) - upkeep(mine, estimates)
    measured = np.mean(without[12:]) - np.mean(forced[12:])
    assert np.sign(net) == np.sign(measured)


def test_estimates_are_near_the_truth() -> None:
    """Rates and misses against what a run shows (streamon #30)."""
    query, runner, _ = run(MANY_PROBES, "cached")
    watch = watch_of(runner)
    estimates = watch.estimates()
    assert estimates is not None
    assert estimates.operators[0][0].rate == pytest.approx(MANY_PROBES["r"], rel=0.01)
    matches = 4 * MANY_PROBES["s"] / 200  # rows of s in the window, by key
    assert estimates.rate_after(0, 1) == pytest.approx(MANY_PROBES["r"] * matches, rel=0.2)
    (used,) = watch.states.used
    counts = query.stats()["counts"]
    measured = counts["fills:s⋈t"] / counts["lookups:s⋈t"]
    assert estimates.caches[used].miss_prob == pytest.approx(measured, abs=0.02)


def test_a_burst_brings_a_cache_and_no_stall() -> None:
    """Twenty times as many probes from the middle on: the surprise makes the join look again, a few
    epochs later and not after its interval, which is 64 by then; before and afterwards it is near
    the best plan that stays (streamon #37)."""
    burst, epochs = 40, 60
    rates: Rates = {"r": lambda epoch: 100 if epoch < burst else 2_000, "s": 100, "t": 100}
    plain, _, without = run(rates, "mjoin", epochs=epochs)
    query, _, operations = run(rates, "cached", epochs=epochs)
    _, _, whole = run(rates, "mjoin", epochs=epochs, spans=[Span(0, 0, 1, whole=True)])
    assert rows(query) == rows(plain)
    assert query.plan.blocks[0].subresults
    (switch,) = (s for s in query.plan_log if s.subject == "caches")
    assert burst < switch.epoch <= burst + 6
    (noticed,) = (c for c in query.stats()["adapt"]["considered"] if "rates" in c["why"])
    assert noticed["why"] == "caches rates went from 100 to 2e+03"
    for part in (slice(10, burst), slice(-10, epochs)):
        assert sum(operations[part]) < 1.1 * min(sum(without[part]), sum(whole[part]))
    assert sum(operations[-10:]) < 0.95 * sum(without[-10:])
    assert max(operations[burst:]) < 1.1 * max(without[burst:])


def test_no_memory_is_no_reason_to_fail() -> None:
    """With a pool of nothing all is computed anew, and right (streamon #35)."""
    plain, _, _ = run(MANY_PROBES, "mjoin", epochs=14)
    query, runner, _ = run(MANY_PROBES, "cached", epochs=14, memory=0)
    assert rows(query) == rows(plain)
    assert watch_of(runner).pool.pages == 0


def test_more_memory_means_fewer_operations() -> None:
    """From nothing to plenty; never more is held than may be (streamon #35)."""
    spent = []
    for pages in (0, 1, 2, 64):
        query, runner, operations = run(MANY_PROBES, "cached", memory=pages << 16)
        watch = watch_of(runner)
        held = sum({c["cache"]: c["bytes"] for c in query.stats()["adapt"]["caches"]}.values())
        assert held <= watch.pool.pages << 16
        spent.append(sum(operations[12:]))
    assert all(after <= 1.02 * before for before, after in pairwise(spent))
    assert spent[-1] < spent[0]


def test_explain_tells_candidates() -> None:
    """EXPLAIN ADAPT lists what could be cached, what it would bring, and what is."""
    query, _, _ = run(MANY_PROBES, "cached")
    text = query.explain(adapt=True)
    assert "s⋈t in Δr: used, saves" in text
    assert "cached s⋈t on s.a = r.a" in text
    assert any(c["state"] == "used" for c in query.stats()["adapt"]["caches"])


def test_costs_are_calibrated_once() -> None:
    """Every operation takes some time, and asking again costs nothing."""
    found = calibrated()
    assert min(found.probe, found.made, found.lookup, found.found, found.update) > 0
    assert calibrated() is found


def test_a_fault_in_adapting_stops_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning is a help: a query that cannot learn goes on as it is."""
    plain, _, _ = run(MANY_PROBES, "mjoin", epochs=6)

    def broken(self: CacheWatch, *_: object) -> bool:
        raise ZeroDivisionError("made up")

    monkeypatch.setattr(CacheWatch, "observe", broken)
    monkeypatch.setattr(Runner, "strict", False)
    query, _, _ = run(MANY_PROBES, "cached", epochs=6)
    assert rows(query) == rows(plain)
    assert query.status == "running"


def test_caches_are_put_in_again_when_a_pipeline_is_rebuilt_in_the_same_order() -> None:
    """Several orders of leaves give the same order of probes; rebuilding drops the subresults."""
    query, runner, _ = run(MANY_PROBES, "cached")
    (loop,) = (
        loop for kind, _, loop in runner.core.adaptation.queries["q"].loops if kind == "caches"
    )
    bare = with_spans(query.plan, 0, [])
    assert query.plan.blocks[0].subresults
    assert not bare.blocks[0].subresults
    again = loop.learn(bare, [], 99)
    assert again.blocks[0].subresults == query.plan.blocks[0].subresults
