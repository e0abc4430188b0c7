"""Estimates to compare with: labelled so, and right on average where their model holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from thalweg.estimate.baselines.containment import containment
from thalweg.estimate.baselines.samples import bernoulli, correlated, hashed_fractions
from thalweg.estimate.figure import Figure, Kind
from thalweg.estimate.join_query import Attribute, JoinInput, JoinQuery
from thalweg.estimate.join_rows import JoinRows, from_tables


def chain(rng: np.random.Generator) -> JoinRows:
    """R(x, y) and T(y, z) of 4,000 rows over 200 keys each, joined with S(z)."""
    inputs = (
        JoinInput("r", "r", (("y", "y"),)),
        JoinInput("t", "t", (("y", "y"), ("z", "z"))),
        JoinInput("s", "s", (("z", "z"),)),
    )
    tables = {
        "r": pa.table({"y": rng.integers(0, 200, 4000)}),
        "t": pa.table({"y": rng.integers(0, 200, 4000), "z": rng.integers(0, 200, 4000)}),
        "s": pa.table({"z": rng.integers(0, 200, 400)}),
    }
    return JoinRows.of(JoinQuery(inputs, tuple(map(Attribute, "yz"))), from_tables(tables))


def size(figure: Figure) -> int:
    assert figure.kind is Kind.ESTIMATE
    assert figure.rows is not None
    return figure.rows


def test_containment() -> None:
    rows = chain(np.random.default_rng(1))
    assert size(containment(rows)) == pytest.approx(4000 * 4000 * 400 / 200**2, rel=0.05)
    assert size(containment(rows, 0b011)) == pytest.approx(4000 * 4000 / 200, rel=0.05)


@pytest.mark.parametrize("estimate", [bernoulli, correlated])
def test_samples_are_right_on_average(estimate) -> None:  # type: ignore[no-untyped-def]
    rows = chain(np.random.default_rng(2))
    truth = 4000 * 4000 * 400 / 200**2
    share = 0.3
    found = [size(estimate(rows, share, seed)) for seed in range(60)]
    assert np.mean(found) == pytest.approx(truth, rel=0.15)


def test_keeping_rows_with_any_key_needs_other_probabilities() -> None:
    """The source multiplies by a product of inclusion probabilities; but relations share hashes:
    for R(x, y) and T(y, z) a result is kept with p + (1 - p) p^2, not with (1 - (1 - p)^2)^2."""
    share, kept, every = 0.3, 0, 0
    inputs = tuple(
        JoinInput(n, n, tuple((a, a) for a in edge)) for n, edge in (("r", "xy"), ("t", "yz"))
    ) + tuple(JoinInput(n, n, ((n[0], n[0]),)) for n in ("xs", "zs"))
    rng = np.random.default_rng(3)
    tables = {
        "r": pa.table({a: rng.integers(0, 1 << 40, 3000) for a in "xy"}),
        "xs": pa.table({"x": [1]}),
        "zs": pa.table({"z": [1]}),
    }
    tables["t"] = pa.table({"y": tables["r"]["y"], "z": rng.integers(0, 1 << 40, 3000)})
    query = JoinQuery(inputs, tuple(map(Attribute, "xyz")))
    rows = JoinRows.of(query, from_tables(tables))
    for seed in range(10):
        fractions = {
            (i, a): hashed_fractions(rows, i, a, seed) < share
            for i, edge in enumerate(("xy", "yz"))
            for a in edge
        }
        both = (fractions[0, "x"] | fractions[0, "y"]) & (fractions[1, "y"] | fractions[1, "z"])
        kept += int(both.sum())
        every += len(both)
    assert kept / every == pytest.approx(share + (1 - share) * share**2, rel=0.05)
    assert kept / every != pytest.approx((1 - (1 - share) ** 2) ** 2, rel=0.2), "as the source has"
