"""Reading what does not read: text files in which some records are malformed.

The strict readers are tried first; only a file they refuse comes here. Each record is judged by
itself: what fits the declared columns is a row, the rest is a reject with a reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv

from thalweg.columns.vector import from_arrow
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.plan import functions
from thalweg.plan.expr import Column
from thalweg.plan.logical import Field, Schema
from thalweg.plan.types import STRING, to_arrow

NULLS = ("", "NULL", "null", "NA")
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Records:
    """Rows in the declared types, and for each that is none the reason."""

    table: pa.Table
    malformed: pa.Array | None = None


def unreadable(fields: Schema, reason: str) -> Records:
    """A file of which nothing can be read: one reject."""
    table = pa.table({f.name: pa.nulls(1, to_arrow(f.type)) for f in fields})
    return Records(table, pa.array([reason], pa.string()))


def lenient_csv(path: str, fields: Schema) -> Records:
    """Every cell is read as text, then cast; lines of another length are rejects."""
    strays: list[str] = []

    def stray(row: Any) -> str:
        strays.append(f"malformed record: {row.actual_columns} columns instead of "
                      f"{row.expected_columns}: {str(row.text)[:_SHOWN]}")  # fmt: skip
        return "skip"

    names = [f.name for f in fields]
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=names,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=list(NULLS),
    )
    parse = pa.csv.ParseOptions(invalid_row_handler=stray)
    with fsspec.open(path, "rb", compression="infer") as file:
        texts = pa.csv.read_csv(file, parse_options=parse, convert_options=convert)
    rows = _from_texts(texts, fields)
    return _joined(rows, strays, fields)


def _from_texts(texts: pa.Table, fields: Schema) -> Records:
    columns, bad = {}, np.full(texts.num_rows, None, object)
    for field in fields:
        column = texts.column(field.name).combine_chunks()
        found = _cast(column, field)
        failed = np.flatnonzero(
            column.is_valid().to_numpy(zero_copy_only=False)
            & found.is_null().to_numpy(zero_copy_only=False)
        )
        for row in failed:
            text = str(column[row].as_py())[:_SHOWN]
            bad[row] = bad[row] or f"malformed record: {field.name} {text!r} is no {field.type}"
        columns[field.name] = found
    return Records(pa.table(columns), pa.array(bad, pa.string()))


def _cast(column: pa.Array, field: Field) -> pa.Array:
    if field.type == STRING:
        return column
    expr = functions.cast(Column(STRING, True, "text"), field.type, safe=True)
    found = evaluate(expr, {"text": from_arrow(column, STRING)}, len(column), {})
    return found.to_arrow().cast(to_arrow(field.type))


def lenient_json(path: str, fields: Schema) -> Records:
    """One object per line."""
    good: list[dict[str, Any]] = []
    strays: list[str] = []
    with fsspec.open(path, "rt", compression="infer", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip():
                _judge_line(line.strip(), fields, good, strays)
    columns = {f.name: [row.get(f.name) for row in good] for f in fields}
    texts = pa.table({n: pa.array([_text(v) for v in c], pa.string()) for n, c in columns.items()})
    return _joined(_from_texts(texts, fields), strays, fields)


def _judge_line(line: str, fields: Schema, good: list[dict[str, Any]], strays: list[str]) -> None:
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError("not an object")
        good.append(row)
    except RecursionError:
        strays.append(f"malformed record: nested too deeply: {line[:_SHOWN]}")
    except ValueError as error:
        strays.append(f"malformed record: {error}: {line[:_SHOWN]}")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _joined(rows: Records, strays: list[str], fields: Schema) -> Records:
    """Rows, and rejects that have no columns at all."""
    assert rows.malformed is not None
    if not strays:
        return rows
    empty = pa.table({f.name: pa.nulls(len(strays), to_arrow(f.type)) for f in fields})
    table = pa.concat_tables([rows.table, empty]).combine_chunks()
    return Records(table, pa.concat_arrays([rows.malformed, pa.array(strays, pa.string())]))


LENIENT: dict[str, Callable[[str, Schema], Records]] = {
    "csv": lenient_csv,
    "json": lenient_json,
}
