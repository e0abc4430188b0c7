"""How many bytes latitudes take within an error, as segments and as rounded values.

Both are Parquet files with zstd, sorted by aircraft and time: aircraft, time, and what the latitude
is. Rounded: whole multiples of a step, as differences from the value before. A step as wide as the
bound errs by half of it at most (the baseline of the specification); one of twice the bound errs
by as much as segments do. Segments: how long after the last tuple of the one before it begins, how
long it lasts, and both ends of the line as whole multiples of a quarter of the bound, as
differences (of the first end from the last one before); the fit is so much narrower that every
tuple is within the bound of what is read back. Beside it segments with DOUBLE coefficients, as rows
of the engine have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common.harness import Report
from models.aircraft import ABSENT, positions, shared_data
from models.moving_objects import moving_objects
from models.trades import SECOND
from thalweg.instants import Ints
from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import Pieces, fitted
from thalweg.models.polynomials import Floats

BOUNDS = (1e-4, 1e-3, 1e-2)
GOALS = {1e-3: 0.8, 1e-2: 0.4}
HULL = "segments of hull, times swing's, at 0.001 degrees"
DAY, HOUR = 86_400 * SECOND, 3_600 * SECOND
"""EVERY: cells of a day cut least; those of an hour keep lines from going through long silences."""


@dataclass(frozen=True)
class Positions:
    """Latitudes by aircraft and time (µs)."""

    key: Ints
    ts: Ints
    value: Floats


def goal(bound: float) -> str:
    return f"stored segments, times the rounded file, at {bound:g} degrees"


def declare(report: Report) -> None:
    for bound, most in GOALS.items():
        report.declare(goal(bound), at_most=most)
    report.declare(HULL, at_most=0.87)


def run(report: Report, quick: bool) -> None:
    folder = shared_data()
    found = generated(quick) if folder is None else by_key(positions(folder))
    data = "generated" if folder is None else "ADS-B"
    raw = size(of_rows(found, pa.array(found.value)))
    report.progress(f"stored sizes of {len(found.ts):,} latitudes ({data})")
    report.row(f"{data} latitude", "parquet, zstd", "lossless file", "kB", raw / 1e3)
    for bound in BOUNDS:
        case = f"{data} latitude within {bound:g} degrees"
        counts = {}
        for method in ("swing", "hull"):
            counts[method] = len(pieces_of(found, bound, method))
            report.row(case, "thalweg", f"segments, {method}", "", counts[method])
        same, wide = (size(rounded(found, step)) for step in (bound, 2 * bound))
        report.row(case, "rounded to the bound", "file", "kB", same / 1e3)
        report.row(case, "rounded, erring as much", "file", "kB", wide / 1e3)
        ends, hourly = (size(as_ends(found, bound, every)) for every in (DAY, HOUR))
        report.row(case, "thalweg, whole ends", "file", "kB", ends / 1e3)
        report.row(case, "thalweg, whole ends, EVERY 1 HOUR", "file", "kB", hourly / 1e3)
        doubles = size(as_doubles(found, bound))
        report.row(case, "thalweg, doubles", "file", "kB", doubles / 1e3)
        hard = size(as_ends(found, bound, DAY), 9) / size(rounded(found, bound), 9)
        report.row(case, "thalweg, whole ends", "times rounded, zstd level 9", "x", hard)
        report.row(case, "thalweg, whole ends", "times rounded, erring as much", "x", ends / wide)
        if bound in GOALS:
            if folder is None:
                report.measure(goal(bound), None, ABSENT)
            else:
                report.measure(goal(bound), ends / same)
        if bound == 1e-3:
            absent = ABSENT if folder is None else None
            ratio = counts["hull"] / counts["swing"]
            report.measure(HULL, None if absent else ratio, absent)


def by_key(table: pa.Table) -> Positions:
    table = table.sort_by([("id", "ascending"), ("ts", "ascending")])
    ts = table["ts"].cast(pa.int64()).to_numpy()
    return Positions(table["id"].to_numpy(), ts, table["latitude"].to_numpy())


def generated(quick: bool) -> Positions:
    """As many degrees as metres are of 111 km."""
    table = moving_objects(100, 200 if quick else 1_000, 10 * SECOND, 30)
    table = table.append_column("latitude", pc.divide(table["y"], 111_195.0))
    return by_key(table)


def pieces_of(found: Positions, within: float, method: str = "hull", every: int = HOUR) -> Pieces:
    fit = Fit(1, within, False, method)
    return fitted(found.key, found.ts, found.value[:, np.newaxis], [fit], every)


# -- layouts ---------------------------------------------------------------------------------------


def rounded(found: Positions, step: float) -> pa.Table:
    whole = np.round(found.value / step).astype(np.int64)
    return of_rows(found, _narrow(differences(whole, found.key)))


def of_rows(found: Positions, value: pa.Array) -> pa.Table:
    return pa.table(
        {
            "id": _narrow(np.diff(found.key, prepend=0)),
            "ts": _narrow(differences(_ticks(found.ts), found.key)),
            "value": value,
        }
    )


def as_ends(found: Positions, bound: float, every: int) -> pa.Table:
    """Lines from end to end, whose ends are whole multiples of a quarter of the bound."""
    grid = bound / 4
    pieces = pieces_of(found, bound - grid / 2 - 1e-12, every=every)
    first, last = pieces.row, np.append(pieces.row[1:], len(found.ts)) - 1
    constant, slope = pieces.coefficients[0].T
    begin, end = found.ts[first], found.ts[last]
    left = constant + slope * ((begin - pieces.start) / SECOND)
    right = constant + slope * ((end - pieces.start) / SECOND)
    left, right = (np.round(v / grid).astype(np.int64) for v in (left, right))
    _check(found, bound, first, last, left * grid, right * grid)
    same = np.append(False, pieces.key[1:] == pieces.key[:-1])
    before = np.where(same, np.append(0, right[:-1]), 0)
    ticks = _ticks(found.ts)
    since = ticks[first] - np.where(same, np.append(0, ticks[last[:-1]]), 0)
    return pa.table(
        {
            "id": _narrow(np.diff(pieces.key, prepend=0)),
            "since": _narrow(since),
            "lasts": _narrow(ticks[last] - ticks[first]),
            "left": _narrow(left - before),
            "right": _narrow(right - left),
        }
    )


def as_doubles(found: Positions, bound: float) -> pa.Table:
    pieces = pieces_of(found, bound)
    constant, slope = pieces.coefficients[0].T
    return pa.table(
        {
            "id": _narrow(np.diff(pieces.key, prepend=0)),
            "ts": _narrow(differences(_ticks(pieces.start), pieces.key)),
            "c0": constant,
            "c1": slope,
        }
    )


def _check(
    found: Positions, bound: float, first: Ints, last: Ints, left: Floats, right: Floats
) -> None:
    """Every tuple is within the bound of what is read back."""
    piece = np.repeat(np.arange(len(first)), last - first + 1)
    begin, end = found.ts[first][piece], found.ts[last][piece]
    share = (found.ts - begin) / np.maximum(end - begin, 1)
    back = left[piece] + share * (right - left)[piece]
    worst = np.abs(back - found.value).max()
    if worst > bound * (1 + 1e-9):
        raise AssertionError(f"read back with an error of {worst}, the bound is {bound}")


def differences(values: Ints, key: Ints) -> Ints:
    """From the value before of the same key; the first of each from 0."""
    found = np.diff(values, prepend=0)
    fresh = np.append(True, key[1:] != key[:-1])
    found[fresh] = values[fresh]
    return found


def _ticks(ts: Ints) -> Ints:
    """Times in the widest unit that all are whole multiples of."""
    since = ts - ts.min()
    found: Ints = since // max(int(np.gcd.reduce(since)), 1)
    return found


def _narrow(values: Ints) -> pa.Array:
    most = int(np.abs(values).max(initial=0))
    kind = next(t for t in (np.int8, np.int16, np.int32, np.int64) if most <= np.iinfo(t).max)
    return pa.array(values.astype(kind))


def size(table: pa.Table, level: int | None = None) -> int:
    """Bytes of a file whose columns are encoded as is smallest for each, as any side may; at the
    level of compression that the engine writes with, or another."""
    table = table.cast(pa.schema([(f.name, _stored(f.type)) for f in table.schema]), safe=True)
    best = {}
    for name in table.column_names:
        kinds = _encodings(table[name].type)
        best[name] = min(kinds, key=lambda k, n=name: _written(table.select([n]), {n: k}, level))
    return _written(table, best, level)


def _stored(kind: pa.DataType) -> pa.DataType:
    """Parquet has no whole numbers below 32 bits."""
    return pa.int32() if pa.types.is_integer(kind) and kind.bit_width < 32 else kind


def _encodings(kind: pa.DataType) -> tuple[str, ...]:
    if pa.types.is_floating(kind):
        return ("DICTIONARY", "PLAIN", "BYTE_STREAM_SPLIT")
    return ("DICTIONARY", "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")


def _written(table: pa.Table, encodings: Mapping[str, str], level: int | None) -> int:
    sink = pa.BufferOutputStream()
    by_dictionary = [n for n, how in encodings.items() if how == "DICTIONARY"]
    others = {n: how for n, how in encodings.items() if how != "DICTIONARY"}
    pq.write_table(
        table, sink, compression="zstd", compression_level=level, use_dictionary=by_dictionary,
        column_encoding=others or None, write_statistics=False, store_schema=False,
    )  # fmt: skip
    return len(sink.getvalue())
