"""A common limit for the statistics of several tables, split among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from thalweg.estimate.cached.key_columns import MOST_BITS
from thalweg.estimate.cached.pair_sketch import pair_bytes
from thalweg.estimate.cached.row_sketch import wanted_bytes
from thalweg.estimate.cached.table_statistics import COARSE, FINE, ROW_SHARE, SourceColumns

_HALVINGS = 10
_STEPS = 4

BuildArguments = tuple[pa.Table, Sequence[str] | None, Sequence[str] | None]
"""Table, join columns and filter columns, as given to `TableStatistics.build`."""


def split_limit(tables: Mapping[str, BuildArguments], limit_bytes: int) -> dict[str, int]:
    """What each table gets.

    One bit more for a column halves its error and costs an eighth of a byte a row. The sum of all
    errors is therefore least where the error of each table is in proportion to its rows: small
    tables are kept nearly as they are, as that costs little. The errors are made as small as the
    limit allows; where not even coarse row sketches fit, tables get equal numbers of buckets in
    their pair sketches. As rows take whole bytes, some tables then have room for more, larger
    ones first; what is left is split in proportion.
    """
    sources = {n: SourceColumns.of(*arguments) for n, arguments in tables.items()}
    steps = list(_sizes(sources))
    fits = (i for i, sizes in enumerate(steps) if sum(sizes.values()) <= limit_bytes)
    at = next(fits, len(steps) - 1)
    found = dict(steps[at])
    for finer in reversed(steps[:at]):
        _refine(found, finer, limit_bytes)
    total = max(sum(found.values()), 1)
    return {n: limit_bytes * size // total for n, size in found.items()}


def _refine(found: dict[str, int], finer: Mapping[str, int], limit_bytes: int) -> None:
    """Gives tables the size of a finer step where there is room for it."""
    for name in sorted(found, key=lambda n: -found[n]):
        more = finer[name] - found[name]
        if 0 < more <= limit_bytes - sum(found.values()):
            found[name] = finer[name]


def _sizes(sources: Mapping[str, SourceColumns]) -> Iterator[dict[str, int]]:
    """From fine to coarse."""
    most = max((s.length for s in sources.values()), default=0) or 1
    error = FINE * 0.5**_HALVINGS
    while error <= COARSE:
        yield {n: _rows(s, error * s.length / most) for n, s in sources.items()}
        error *= 2.0 ** (1 / _STEPS)
    for bits in range(MOST_BITS, -1, -1):
        coarse = {n: _rows(s, COARSE * s.length / most) for n, s in sources.items()}
        yield {n: min(coarse[n], _pairs(s, bits)) for n, s in sources.items()}


def _rows(source: SourceColumns, error: float) -> int:
    size = wanted_bytes(source.keys, source.filters, source.length, error)
    return _header(source) + int(size if error <= FINE else size / ROW_SHARE)


def _pairs(source: SourceColumns, bits: int) -> int:
    return _header(source) + pair_bytes(source.keys, source.filters, bits)


def _header(source: SourceColumns) -> int:
    """About what the header takes."""
    columns = len(source.keys) + len(source.filters)
    return 400 + 200 * columns + 80 * len(source.keys) * len(source.filters)
