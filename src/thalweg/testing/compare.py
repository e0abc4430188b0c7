"""Values and bags of results, made comparable.

A result row is `(ts, sign, values)`. Two are equal where the language says so: NULL equals NULL,
NaN equals NaN, -0.0 equals 0.0. Within one `ts` results are a bag, so order never matters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from thalweg.plan.values import normal_row

ResultRow = tuple[int, int, tuple[Any, ...]]


def canonical(rows: Iterable[ResultRow]) -> Counter[ResultRow]:
    """The bag of result rows, equal ones counted together."""
    return Counter((ts, sign, normal_row(values)) for ts, sign, values in rows)


def difference(
    expected: Iterable[ResultRow], actual: Iterable[ResultRow], limit: int = 10
) -> str | None:
    """None if both are the same bag, otherwise what is missing and what is too much.

    Either side may be a list of rows or a bag that `canonical` made.
    """
    want, have = _bag(expected), _bag(actual)
    if want == have:
        return None
    heading = f"expected {want.total()} rows, got {have.total()}"
    return "\n".join(
        [heading, *_listing("missing", want - have, limit), *_listing("extra", have - want, limit)]
    )


def _bag(rows: Iterable[ResultRow]) -> Counter[ResultRow]:
    return canonical(rows.elements() if isinstance(rows, Counter) else rows)


def _listing(title: str, bag: Counter[ResultRow], limit: int) -> list[str]:
    rows = sorted(bag.items(), key=lambda item: (item[0][0], item[0][1], repr(item[0][2])))
    lines = [f"{title} {bag.total()}:"] if rows else []
    for (ts, sign, values), count in rows[:limit]:
        times = f"  ×{count}" if count > 1 else ""
        lines.append(f"  ts={ts} {sign:+d} {values!r}{times}")
    if len(rows) > limit:
        lines.append(f"  ... and {len(rows) - limit} more")
    return lines


def from_table(table: pa.Table) -> list[ResultRow]:
    """The rows of a result table: its columns, `__ts`, and `__sign` where there is one."""
    columns = [column_values(c) for c in table.columns]
    names = table.column_names
    stamps = columns[names.index("__ts")]
    signs = columns[names.index("__sign")] if "__sign" in names else [1] * table.num_rows
    data = [c for name, c in zip(names, columns, strict=True) if name not in ("__ts", "__sign")]
    return [
        (stamps[i], signs[i], tuple(column[i] for column in data)) for i in range(table.num_rows)
    ]


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """A table's rows as the reference evaluator takes them."""
    columns = [column_values(c) for c in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def column_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """A column as Python values: TIMESTAMP and INTERVAL as int µs, DATE as int days, an ARRAY as a
    tuple."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column_values(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_duration(kind):
        column = column.cast(pa.duration("us")).cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    if pa.types.is_list(kind):
        return [tuple(column_values(v.values)) if v.is_valid else None for v in column]
    values: list[Any] = column.to_pylist()
    return values
