"""Where output goes after its epoch is committed: files, a table, the console, a function.

A sink is given each epoch's output at least once, in order. One whose writing is idempotent by
epoch makes that exactly once.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from thalweg.columns.shown_values import shown_values
from thalweg.exec.relations.emit import SIGN
from thalweg.plan.bound_query import SinkSpec
from thalweg.runtime.results.current_answer import Answer
from thalweg.runtime.sinks.guarantees import CALLBACK, guarantee_of
from thalweg.store.file_names import file_name_of
from thalweg.store.packs import TIME


class Sink(Protocol):
    """`guarantee` says in words what holds across crashes."""

    guarantee: str

    def write(self, epoch: int, output: pa.Table) -> None: ...


@dataclass(slots=True)
class FunctionSink:
    """A callback in this process."""

    function: Callable[[pa.Table], object]
    guarantee: str = CALLBACK

    def write(self, epoch: int, output: pa.Table) -> None:
        self.function(output)


@dataclass(slots=True)
class ConsoleSink:
    """Rows as lines of text on standard output."""

    query: str
    guarantee: str = guarantee_of(SinkSpec("console"))

    def write(self, epoch: int, output: pa.Table) -> None:
        columns = [shown_values(c) for c in output.columns]
        for values in zip(*columns, strict=True):
            row = dict(zip(output.column_names, values, strict=True))
            signed = {1: "+ ", -1: "- "}.get(row.pop(SIGN, 0), "")
            time = row.pop(TIME)
            at = time if isinstance(time, str) else time.isoformat(sep=" ")
            shown = "  ".join(f"{name}={value}" for name, value in row.items())
            print(f"{self.query}  {at}  {signed}{shown}", flush=True)


@dataclass(slots=True)
class FilesSink:
    """One file per epoch with output, under a name that only this epoch of this engine has."""

    query: str
    spec: SinkSpec
    identity: str
    guarantee: str = guarantee_of(SinkSpec("files"))

    def write(self, epoch: int, output: pa.Table) -> None:
        name = f"{file_name_of(self.query)}-{self.identity}-{epoch:012d}"
        write_file(self.spec.target, name, str(self.spec.format), output)


@dataclass(slots=True)
class TableSink:
    """The current answer as one file, replaced after every epoch that changes it."""

    query: str
    spec: SinkSpec
    answer_before: Callable[[int], Answer]
    guarantee: str = guarantee_of(SinkSpec("table"))
    _answer: Answer | None = None
    _epoch: int = -1

    def write(self, epoch: int, output: pa.Table) -> None:
        if self._answer is None:
            self._answer = self.answer_before(epoch)
        if epoch > self._epoch:  # a second attempt has the changes already
            self._answer.apply(output)
            self._epoch = epoch
        name = file_name_of(self.query)
        write_file(self.spec.target, name, str(self.spec.format), self._answer.rows())


def write_file(folder: str, name: str, form: str, table: pa.Table) -> None:
    """A file that is there wholly or not at all; an older one of the name is replaced."""
    data = _WRITERS[form](table)
    fs, root = fsspec.core.url_to_fs(folder)
    fs.makedirs(root, exist_ok=True)
    target = f"{root}/{name}.{form}"
    if "file" not in fs.protocol:
        fs.pipe_file(target, data)  # object stores show a file when it is complete
        return
    draft = f"{root}/.{name}.{form}.draft"
    with open(draft, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, target)


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pa.parquet.write_table(table, out)
    return out.getvalue()


def _csv(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pa.csv.write_csv(_flat(table), out)
    return out.getvalue()


def _json(table: pa.Table) -> bytes:
    rows = _texts(table).to_pylist()
    return "".join(_dumped(r) + "\n" for r in rows).encode()


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _arrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


_WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
    "arrow": _arrow,
}


def _flat(table: pa.Table) -> pa.Table:
    """Lists as text, since CSV has no other way; bytes as in JSON, since they need not be text."""
    for i, column in enumerate(table.columns):
        if pa.types.is_binary(column.type):
            table = table.set_column(i, table.column_names[i], _hex(column))
        elif pa.types.is_list(column.type):
            texts = [None if v is None else _dumped(_finite(v)) for v in column.to_pylist()]
            table = table.set_column(i, table.column_names[i], pa.array(texts, pa.string()))
    return table


def _hex(values: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if v is None else v.hex() for v in values.to_pylist()], pa.string())


def _finite(values: list[object]) -> list[object]:
    """A list as JSON can hold it."""
    strange = (float("inf"), float("-inf"))
    return [None if v != v or v in strange else v for v in values]


def _texts(table: pa.Table) -> pa.Table:
    """Times, decimals and bytes as text, numbers that JSON does not know as NULL."""
    for i, column in enumerate(table.columns):
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_decimal(kind):
            table = table.set_column(i, table.column_names[i], column.cast(pa.string()))
        elif pa.types.is_binary(kind):
            table = table.set_column(i, table.column_names[i], _hex(column))
        elif pa.types.is_list(kind):
            lists = [None if v is None else _finite(v) for v in column.to_pylist()]
            table = table.set_column(i, table.column_names[i], pa.array(lists, kind))
        elif pa.types.is_duration(kind):
            table = table.set_column(i, table.column_names[i], column.cast(pa.int64()))
        elif pa.types.is_floating(kind):
            finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
            table = table.set_column(i, table.column_names[i], finite)
    return table
