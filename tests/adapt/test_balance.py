"""What EXPLAIN ADAPT and stats() say of adapting: one sentence, times with units, plain words."""

from __future__ import annotations

import doctest
import importlib
import re

import numpy as np
import pyarrow as pa
import pytest

from thalweg.adapt.balance import UNKNOWN, sentence
from thalweg.adapt.constants import HINDSIGHT_EPOCHS
from thalweg.adapt.filters.guards import free
from thalweg.adapt.filters.hindsight import Memory
from thalweg.adapt.planlog import EPOCH_SECONDS, KEPT, Considered, Switch
from thalweg.exec.tactics import DROPPED, PASSED, Observation
from thalweg.testing.runner import Runner

ROWS = 100


def balance(saved: float, work: str = "filter time", seconds: float = 0.059) -> dict[str, object]:
    return {"balance": {"work": work, "seconds": seconds, "saved": saved}}


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        (0.041, "adapting saved 41 % of filter time (59 ms measured; "
                "in the order of the text 100 ms by estimate)"),
        (-0.009, "adapting has not paid in filter time (59 ms measured; "
                 "in the order of the text 50 ms by estimate)"),
        (0.0001, "adapting has made no difference to filter time (59 ms measured; "
                 "in the order of the text 59.1 ms by estimate)"),
    ],
)  # fmt: skip
def test_the_sentence_says_what_adapting_brought(saved: float, said: str) -> None:
    assert sentence([balance(saved), {"balance": None}, {"cache": "s⋈t"}]) == said


def test_balances_of_a_kind_are_added_up() -> None:
    joins = balance(0.5, "the look-up time of joins", 0.5)
    said = sentence([balance(0.02), joins, balance(0.021, seconds=0.0)])
    assert said.startswith("adapting saved 41 % of filter time (59 ms")
    assert "; adapting saved 50 % of the look-up time of joins (500 ms" in said
    assert sentence([{"balance": None}]) == UNKNOWN


# -- what the sentence is made of --------------------------------------------------------------


def slice_of(drops: list[list[int]], order: tuple[int, int]) -> Observation:
    """A hundred rows in an order, wholly profiled; each evaluation takes a second."""
    profile = np.array(drops, np.int8)
    first = int((profile[:, order[0]] != DROPPED).sum())
    evaluated = np.zeros(2, np.int64)
    evaluated[list(order)] = len(drops), first
    return Observation(
        order, len(drops), evaluated, np.zeros(2, np.int64), evaluated.astype(float),
        np.zeros(2), np.zeros(2), np.zeros(2, np.int64), profile,
    )  # fmt: skip


SECOND_DROPS = [[PASSED, DROPPED]] * ROWS
ALIKE = np.ones(2)


def test_hindsight_knows_the_order_of_the_text() -> None:
    """The second predicate drops all rows: two evaluations a row in the order of the text."""
    memory = Memory(2)
    memory.add(slice_of(SECOND_DROPS, (1, 0)))
    memory.end_epoch(booked=3.0)
    found = memory.judged(ALIKE, free(2))
    assert found is not None
    assert (found.text, found.static, found.adaptive, found.rows) == (2.0, 1.0, 1.0, ROWS)
    assert (memory.seconds, memory.bookkeeping) == (ROWS, 3.0)
    guarded = memory.judged(ALIKE, (frozenset({1}), frozenset()))
    assert guarded is not None
    assert guarded.text == 1.0  # the text's order as far as guards allow


def test_what_is_compared_is_of_the_same_epochs() -> None:
    """Samples are kept of the last epochs: what was evaluated before them is forgotten, too."""
    memory = Memory(2)
    for _ in range(3):  # as slow as can be, long ago
        memory.add(slice_of(SECOND_DROPS, (0, 1)))
        memory.end_epoch(booked=9.0)
    for _ in range(HINDSIGHT_EPOCHS):
        memory.add(slice_of(SECOND_DROPS, (1, 0)))
        memory.end_epoch(booked=9.0)
    found = memory.judged(ALIKE, free(2))
    assert found is not None
    assert (found.adaptive, found.rows) == (1.0, ROWS * HINDSIGHT_EPOCHS)
    assert (memory.seconds, memory.bookkeeping) == (ROWS * HINDSIGHT_EPOCHS, 0.0)


# -- words and units ---------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["instants", "adapt.planlog", "adapt.estimates"])
def test_examples_of_amounts_run(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"thalweg.{module}"))
    assert tried
    assert not failed


def test_the_log_gives_times_units() -> None:
    why = ("drops per cost", "a", "b", 2.0, 8.0, 1500)
    switch = Switch(
        3, "a AND b", ("a", "b"), ("b", "a"), *why, before=2e-6, after=4.5e-9, outcome=KEPT
    )
    assert str(switch) == (
        "epoch 3: b → a instead of a → b; drops per cost: b 4 times as many as a "
        "(estimate from 1,500 profiled rows); measured 2 µs a row before, 4.5 ns a row after; kept"
    )
    plans = ((("none",), 0.25), (("s⋈t in Δr",), None))
    found = Considered(3, "caches", "rates", plans, "nothing proposed", EPOCH_SECONDS)
    assert str(found) == (
        "epoch 3, caches: rates; none at 250 ms an epoch | s⋈t in Δr (estimate): nothing proposed"
    )


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (("a guard was found", "a", "b", 0.0, 0.0, 1), "a guard was found"),
        (("measured cost per row", "a", "b", 3e-6, 1e-6, 0),
         "measured cost per row: b 1 µs a row, a 3 µs a row"),
        (("drops per cost", "a", "b", 0.0, 5.0, 80),
         "drops per cost: b some, a none (estimate from 80 profiled rows)"),
    ],
)  # fmt: skip
def test_reasons_are_told_in_words(why: tuple[str, str, str, float, float, int], said: str) -> None:
    assert Switch(1, "a AND b", ("a", "b"), ("b", "a"), *why).why == said


def test_explain_adapt_and_stats_tell_the_same_sentence() -> None:
    rng = np.random.default_rng(5)
    rows = 20_000
    table = {n: rng.integers(0, 10, rows) for n in ("a", "b")}
    runner = Runner(epochs=4)
    ts = pa.array(np.arange(rows), pa.timestamp("us", "UTC"))
    runner.stream("s", pa.table({**table, "ts": ts}))
    query = runner.query("SELECT a FROM s WHERE a < 9 AND b = 1", "q")
    runner.run()
    adapt = query.stats()["adapt"]
    taken = adapt["filters"][0]["balance"]["seconds"]
    assert taken >= adapt["filters"][0]["seconds"] > 0
    assert re.match(r"adapting (saved|has not paid|has made)", adapt["so_far"])
    lines = query.explain(adapt=True).splitlines()
    assert f"so far: {adapt['so_far']}" in lines
    words = lines[lines.index("words:") :]
    assert any("profiled rows" in w for w in words)
    assert not any("⋈" in w for w in words)  # no join, no word about joins


def test_a_dear_predicate_that_moves_back_is_a_saving() -> None:
    """It passes nearly everything and costs a thousand times as much as the one behind it."""
    rows = 6_000
    numbers = np.arange(rows) % 10
    runner = Runner(epochs=3)
    runner.stream("s", pa.table({"a": numbers, "ts": pa.array(range(rows), pa.timestamp("us"))}))
    runner.function("dear", lambda a: sum(range(2_000)) > a, "BOOLEAN", arguments=["BIGINT"])
    query = runner.query("SELECT a FROM s WHERE dear(a) AND a = 1", "q")
    runner.run()
    adapt = query.stats()["adapt"]
    assert adapt["so_far"].startswith("adapting saved ")


def test_injected_costs_are_no_times() -> None:
    runner = Runner(epochs=2, costs={"a < 9": 1.0, "b = 1": 2.0})
    ts = pa.array(np.arange(6000), pa.timestamp("us", "UTC"))
    numbers = np.arange(6000) % 10
    runner.stream("s", pa.table({"a": numbers, "b": numbers, "ts": ts}))
    query = runner.query("SELECT a FROM s WHERE a < 9 AND b = 1", "q")
    runner.run()
    text = query.explain(adapt=True)
    assert "units a row" in text
    assert not re.search(r"\d [nµm]?s a row", text)
    assert f"so far: {UNKNOWN}" in text
