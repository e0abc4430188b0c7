"""The grid over edge values of every type: no answer depends on the cut, the plan or a restart.

`THALWEG_EDGES=4000` takes so many seeds; a good third of them are queries that are answered.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from thalweg.testing.edge_cases import MORE, edge_case
from thalweg.testing.grid import VARIANTS, check_case
from thalweg.testing.random_statements.rows import COLUMNS

COUNT = int(os.environ.get("THALWEG_EDGES", "600"))
AT_ONCE = 60
ALONE = [v for v in VARIANTS if not v.beside]
"""Variants without other queries, which would need columns of their own."""


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_edge_values_of_every_type(first: int) -> None:
    answered = 0
    for seed in range(first, first + AT_ONCE):
        case = edge_case(seed)
        if case is None:
            continue
        check_case(case, [ALONE[(seed + 5 * i) % len(ALONE)] for i in range(3)])
        answered += 1
    assert answered >= AT_ONCE // 4


def test_every_type_has_its_edges() -> None:
    """Nested values too; text that is no UTF-8 never gets past the entrance."""
    kinds = {str(dtype) for _, dtype, _ in COLUMNS.values()}
    assert {"float", "double", "string", "binary", "date32[day]", "list<item: int64>"} <= kinds
    cases = [c for c in map(edge_case, range(60)) if c is not None and "s" in c.streams]
    shown = "\n".join(str(c.streams["s"].table.to_pydict()) for c in cases)
    for value in (
        "nan",
        "inf",
        "-inf",
        "-0.0",
        "5e-324",
        "1.7976931348623157e+308",
        "b'\\xff",
        "''",
    ):
        assert value in shown, value
    assert "[None]" in shown
    assert set(MORE) <= set(COLUMNS)
    assert all(
        c.streams["s"].table.schema.field("wide").type == pa.decimal128(38, 10) for c in cases
    )
