"""Codes of filter columns: a condition never leaves out the code of a row that satisfies it."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import joins_by_hand
import numpy as np
import pyarrow as pa
import pytest

from thalweg.estimate.cached.ordered_values import Order, order_of
from thalweg.estimate.cached.value_codes import RankedColumn, ValueCodes
from thalweg.estimate.join_query import Condition


def coded(column: pa.Array, codes: int) -> tuple[ValueCodes, np.ndarray]:
    order = order_of(column.type)
    assert order is not None
    ranked = RankedColumn.of(column, order)
    found = ValueCodes.of(ranked, codes)
    return found, found.encode(ranked)


@pytest.mark.parametrize("name", joins_by_hand.FILTER_TYPES)
def test_rows_that_satisfy_a_condition_have_an_allowed_code(name: str) -> None:
    kept = total = 0
    for seed in range(150):
        random = Random(f"{name} {seed}")
        values = [
            None if random.random() < 0.1 else joins_by_hand.filter_value(name, random)
            for _ in range(random.choice([0, 1, 60]))
        ]
        column = pa.array(values, joins_by_hand.FILTER_TYPES[name])
        codes, encoded = coded(column, random.choice([2, 4, 16, 256]))
        condition = joins_by_hand.random_condition(name, random)
        allowed = codes.allowed([condition])
        true = [joins_by_hand.satisfies(v, condition) for v in column.to_pylist()]
        assert all(allowed[e] for e, t in zip(encoded, true, strict=True) if t), (seed, condition)
        most = codes.most_rows([condition])
        assert most is None or most >= sum(true), (seed, condition)
        kept += int(allowed[encoded].sum())
        total += len(values)
    assert kept < total  # conditions leave something out


def test_with_enough_codes_conditions_are_exact() -> None:
    column = pa.array([1, 2, 2, 5, None, 9])
    codes, encoded = coded(column, 8)
    for condition, rows in (
        (Condition("x", low=2, high=5), [1, 2, 3]),
        (Condition("x", low=2, low_included=False, high=9, high_included=False), [3]),
        (Condition("x", values=(9, 1)), [0, 5]),
        (Condition("x", low=2.5), [3, 5]),
        (Condition("x", low=Decimal("9.1")), []),
        (Condition("x", high=0), []),
        (Condition("x"), [0, 1, 2, 3, 5]),
    ):
        assert np.flatnonzero(codes.allowed([condition])[encoded]).tolist() == rows, condition


def test_frequent_values_stand_alone() -> None:
    column = pa.array([0] * 500 + list(range(1, 501)) + [7] * 300)
    codes, encoded = coded(column, 16)
    assert codes.size <= 16
    for value in (0, 7):
        taken = codes.allowed([Condition("x", values=(value,))])[encoded]
        assert set(column.to_numpy()[taken]) == {value}
    assert codes.most_rows([Condition("x", values=(300,))]) == 1


@pytest.mark.parametrize("codes", [1, 2, 3, 4, 7, 16, 64])
def test_there_are_no_more_codes_than_asked_for_and_they_share_the_rows(codes: int) -> None:
    rng = np.random.default_rng(codes)
    column = pa.array(rng.zipf(1.5, 5_000) % 1_000)
    found, encoded = coded(column, codes)
    assert max(codes // 2, 1) <= found.size <= codes
    assert encoded.max() < found.size
    assert found.rows.sum() == 5_000
    assert np.array_equal(np.bincount(encoded, minlength=found.size), found.rows)
    spread = found.rows[found.rows > found.most]  # those of several values
    assert codes < 4 or spread.max() <= 2 * 5_000 / codes + found.most.max()


def test_constants_that_may_be_rounded_in_a_comparison_say_nothing() -> None:
    column = pa.array([2**53, 2**53 + 1, 5])
    codes, _ = coded(column, 8)
    assert codes.allowed([Condition("x", high=float(2**53))]).all()
    assert codes.allowed([Condition("x", low=2**70)]).all()
    assert codes.allowed([Condition("x", low="text")]).all()
    doubles, _ = coded(pa.array([1.0, 2.0]), 8)
    assert doubles.allowed([Condition("x", low=Decimal("1.7"))]).all()
    assert order_of(pa.decimal128(5, 2)) is None
    assert order_of(pa.timestamp("ns")) is None
    assert order_of(pa.string()) is Order.TEXT


def test_nan_is_above_all_and_zeros_are_equal() -> None:
    column = pa.array([float("nan"), float("inf"), 0.0, -0.0, None])
    codes, encoded = coded(column, 8)
    above = codes.allowed([Condition("x", low=float("inf"), low_included=False)])[encoded]
    assert above.tolist() == [True, False, False, False, False]
    zeros = codes.allowed([Condition("x", values=(-0.0,))])[encoded]
    assert zeros.tolist() == [False, False, True, True, False]
