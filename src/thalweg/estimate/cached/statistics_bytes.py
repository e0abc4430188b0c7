"""The parts of table statistics to and from the header and arrays of an `array_file`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from thalweg.estimate.cached.array_file import ArrayReader, ArrayWriter
from thalweg.estimate.cached.ordered_values import Order
from thalweg.estimate.cached.pair_sketch import PairSketch, RoundedTable
from thalweg.estimate.cached.row_sketch import RowSketch, Widths
from thalweg.estimate.cached.value_codes import ValueCodes


def write_codes(codes: ValueCodes, to: ArrayWriter) -> dict[str, Any]:
    texts = isinstance(codes.edges, list)
    return {
        "order": codes.order.value,
        "edges": codes.edges if texts else to.put(np.asarray(codes.edges)),
        "least": codes.least,
        "most": to.put(codes.most),
        "rows": to.put(codes.rows),
        "has_null": codes.has_null,
    }


def read_codes(header: dict[str, Any], source: ArrayReader) -> ValueCodes:
    order = Order(header["order"])
    edges = header["edges"] if order is Order.TEXT else source.get(header["edges"])
    most, rows = source.get(header["most"]), source.get(header["rows"])
    return ValueCodes(order, edges, header["least"], most, rows, header["has_null"])


def write_rows(sketch: RowSketch, to: ArrayWriter) -> dict[str, Any]:
    return {
        "widths": asdict(sketch.widths),
        "codes": {n: write_codes(c, to) for n, c in sketch.codes.items()},
        "starts": to.put(sketch.starts),
        "full": to.put(sketch.full),
        "full_counts": to.put(sketch.full_counts),
        "words": [[to.put(p) for p in word] for word in sketch.words],
        "weights": None if sketch.weights is None else to.put(sketch.weights),
        "entries": sketch.entries,
    }


def read_rows(header: dict[str, Any], source: ArrayReader) -> RowSketch:
    widths = header["widths"]
    return RowSketch(
        widths=Widths(**{**widths, "nullable": tuple(widths["nullable"])}),
        codes={n: read_codes(c, source) for n, c in header["codes"].items()},
        starts=source.get(header["starts"]),
        full=source.get(header["full"]),
        full_counts=source.get(header["full_counts"]),
        words=[[source.get(p) for p in word] for word in header["words"]],
        weights=None if header["weights"] is None else source.get(header["weights"]),
        entries=header["entries"],
    )


def write_pairs(sketch: PairSketch, to: ArrayWriter) -> dict[str, Any]:
    return {
        "bits": sketch.bits,
        "codes": {n: write_codes(c, to) for n, c in sketch.codes.items()},
        "rows": _write_tables(sketch.rows, to),
        "degrees": _write_tables(sketch.degrees, to),
    }


def read_pairs(header: dict[str, Any], source: ArrayReader) -> PairSketch:
    codes = {n: read_codes(c, source) for n, c in header["codes"].items()}
    rows = _read_tables(header["rows"], source)
    return PairSketch(header["bits"], codes, rows, _read_tables(header["degrees"], source))


def _write_tables(tables: dict[tuple[str, str], RoundedTable], to: ArrayWriter) -> list[Any]:
    return [[key, code, t.most, to.put(t.cells)] for (key, code), t in tables.items()]


def _read_tables(found: list[Any], source: ArrayReader) -> dict[tuple[str, str], RoundedTable]:
    return {(k, c): RoundedTable(most, source.get(cells)) for k, c, most, cells in found}
