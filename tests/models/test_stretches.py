"""Where a plain column of a fitted source changes, its tuples begin a new stretch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from thalweg.testing import Runner

NAN = float("nan")
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["a", "a", None, None, "", "b", "a"]),
        (pa.float64(), [0.0, -0.0, NAN, NAN, None, None, 1.0, 1.0]),
        (pa.int64(), [0, None, 0, 0, 1]),
        (pa.bool_(), [False, None, False, True, True]),
        (pa.list_(pa.int64()), [[1], [1], [], None, [1, 2]]),
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_a_piece_begins_where_a_plain_column_changes(
    kind: pa.DataType, values: list[Any], beside: bool
) -> None:
    """Equal are NULL and NULL, NaN and NaN, both zeros; other keys beside change nothing."""
    keys = [k for _ in values for k in ((0, 1) if beside else (0,))]
    plain = [v for v in values for _ in range(2 if beside else 1)]
    instants = [i for i in range(len(values)) for _ in range(2 if beside else 1)]
    table = pa.table(
        {
            "k": keys,
            "p": pa.array(plain, kind),
            "x": [1.0] * len(keys),
            "ts": pa.array([i * SECOND for i in instants], pa.timestamp("us", "UTC")),
        }
    )
    runner = Runner()
    runner.stream("s", table, key=["k"])
    query = runner.query("SELECT k, p, x FROM s MODEL (FIT x DEGREE 1 WITHIN 1)", "q")
    runner.run()
    changes = sum(not _alike(a, b) for a, b in pairwise(values))
    begun = [r for r in query.results().to_pylist() if r["__sign"] > 0 and r["k"] == 0]
    assert len(begun) == 1 + changes
    counts = runner.core.state.queries["q"].operators.counts
    assert counts["pieces fitted"] == (1 + changes) * (2 if beside else 1)


def _alike(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))
