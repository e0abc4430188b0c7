"""Helpers for text columns: character positions, slices, and calls once per distinct argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.exec.expressions.kernels.registry import truth


def text_rows(x: Any, length: int) -> pa.Array:
    """Text on every row, NULL as the empty string."""
    if isinstance(x, pa.Scalar):
        return pa.repeat(x.as_py() or "", length)
    if len(x) == 1 != length:
        return pa.repeat(x[0].as_py() or "", length)
    return x.fill_null("") if x.null_count else x


def rows_of(*data: Any) -> int:
    """The number of rows of a call's operands, some of which may be constant."""
    sizes = [len(x) for x in data if not isinstance(x, pa.Scalar)]
    return next((n for n in sizes if n != 1), 1)


def single(x: Any) -> Any:
    """The value of a constant operand; None if it is not constant (or NULL)."""
    if isinstance(x, pa.Scalar):
        return x.as_py()
    if len(x) != 1:
        return None
    return x[0].as_py() if isinstance(x, pa.Array) else x[0].item()


class Characters:
    """The start offset of every character of a column of UTF-8 text."""

    def __init__(self, texts: pa.Array) -> None:
        _, offsets, data = texts.buffers()
        self.count = len(texts)
        count = self.count + 1
        self.offsets = np.frombuffer(offsets, np.int32, count, texts.offset * 4).astype(np.int64)
        content = b"" if data is None else data
        self.bytes = np.frombuffer(content, np.uint8)[: self.offsets[-1]]
        leading = (self.bytes & 0xC0) != 0x80
        self.starts = np.append(np.flatnonzero(leading), self.offsets[-1])
        self.before = np.concatenate([[0], np.cumsum(leading)])
        self.first = self.before[self.offsets[:-1]]
        self.length = self.before[self.offsets[1:]] - self.first

    def slice(self, start: Any, stop: Any) -> pa.Array:
        """Characters start..stop-1 of each row, clipped to its length."""
        start = np.clip(start, 0, self.length)
        stop = np.clip(stop, start, self.length)
        begin, end = self.starts[self.first + start], self.starts[self.first + stop]
        size = end - begin
        offsets = np.concatenate([[0], np.cumsum(size)])
        picked = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], size)
        return _from_bytes(offsets, self.bytes[picked])

    def position(self, at: Any) -> Any:
        """The character index of a byte index within each row."""
        return self.before[self.offsets[:-1] + at] - self.first


def _from_bytes(offsets: Any, content: Any) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def replace_bytes(texts: pa.Array, change: Callable[[Any, Any], Any]) -> pa.Array:
    """Text with its bytes changed in place; `change(bytes, row offsets)` keeps their number."""
    chars = Characters(texts)
    begin = chars.offsets[0]
    return _from_bytes(chars.offsets - begin, change(chars.bytes[begin:], chars.offsets - begin))


def per_distinct(
    function: Callable[..., Any], texts: pa.Array, parameters: tuple[Any, ...], empty: Any
) -> Any:
    """`function(texts, *values)` called once per distinct combination of parameter values."""
    values = [single(p) for p in parameters]
    if all(isinstance(p, pa.Scalar) or len(p) == 1 for p in parameters):
        return empty if None in values else function(texts, *values)
    length = len(texts)
    columns = [p if not isinstance(p, pa.Scalar) else pa.repeat(p, length) for p in parameters]
    columns = [pa.repeat(c[0], length) if len(c) == 1 != length else c for c in columns]
    keys = pa.table(
        [pa.array(c) if isinstance(c, np.ndarray) else c for c in columns],
        names=[str(i) for i in range(len(columns))],
    )
    return _grouped(function, texts, keys, empty)


def _grouped(function: Callable[..., Any], texts: pa.Array, keys: pa.Table, empty: Any) -> Any:
    names = keys.column_names
    keyed = keys.append_column("row", pa.array(np.arange(len(texts))))
    groups = keyed.group_by(names, use_threads=False).aggregate([("row", "list")])
    parts, rows = [], []
    for group in groups.to_pylist():
        at = np.array(group["row_list"], np.int64)
        args = [group[n] for n in names]
        chosen = texts.take(pa.array(at))
        blank = empty.take(pa.array(at)) if isinstance(empty, pa.Array) else empty[at]
        parts.append(blank if None in args else function(chosen, *args))
        rows.append(at)
    if not parts:
        return empty
    order = np.argsort(np.concatenate(rows), kind="stable")
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)[order]
    return pa.concat_arrays(parts).take(pa.array(order))


def mapped(texts: pa.Array, fast: Callable[[Any], Any], slow: Callable[[str], str]) -> pa.Array:
    """`fast` on a column that is all ASCII; otherwise `slow` once per distinct non-ASCII text."""
    ascii_only = truth(pc.string_is_ascii(texts))
    if ascii_only.all():
        return fast(texts)
    rows = np.flatnonzero(~ascii_only)
    codes = texts.take(pa.array(rows)).dictionary_encode()
    changed = pa.array([slow(t) for t in codes.dictionary.to_pylist()], pa.string())
    order = np.arange(len(texts))
    order[rows] = len(texts) + np.arange(len(rows))
    plain = fast(pc.if_else(pa.array(ascii_only), texts, ""))
    return pa.concat_arrays([plain, changed.take(codes.indices)]).take(pa.array(order))
