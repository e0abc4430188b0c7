"""Functions on text; positions and lengths count characters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.vector import BAD_INDEX, TOO_LONG, Codes, Mask, Vector
from thalweg.exec.expressions.kernels.registry import Outcome, failing, nullable, strict, whole
from thalweg.exec.expressions.kernels.text import (
    Characters,
    mapped,
    per_distinct,
    replace_bytes,
    rows_of,
    single,
    text_rows,
)
from thalweg.plan.expr import Call
from thalweg.plan.types import BINARY, LONGEST_TEXT

_ENDLESS = 1 << 40


@strict("upper")
def _upper(call: Call, x: Any) -> Any:
    return mapped(text_rows(x, len(x)), pc.ascii_upper, str.upper)


@strict("lower")
def _lower(call: Call, x: Any) -> Any:
    return mapped(text_rows(x, len(x)), pc.ascii_lower, str.lower)


@strict("initcap")
def _initcap(call: Call, x: Any) -> Any:
    return mapped(text_rows(x, len(x)), _ascii_initcap, _any_initcap)


def _ascii_initcap(texts: pa.Array) -> pa.Array:
    def change(content: Any, offsets: Any) -> Any:
        if not len(content):
            return content
        head = np.concatenate([[True], content[:-1] == ord(" ")])
        head[offsets[:-1][offsets[:-1] < len(content)]] = True
        letter = (content >= ord("a")) & (content <= ord("z"))
        return np.where(head & letter, content - 32, content)

    return replace_bytes(pc.ascii_lower(texts), change)


def _any_initcap(text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


@strict("length")
def _length(call: Call, x: Any) -> Any:
    count = pc.binary_length if call.args[0].type == BINARY else pc.utf8_length
    return whole(count(x))


@strict("reverse")
def _reverse(call: Call, x: Any) -> Any:
    return pc.utf8_reverse(x)


@strict("ascii")
def _ascii(call: Call, x: Any) -> Any:
    heads = pc.utf8_slice_codeunits(text_rows(x, len(x)), 0, 1)
    return np.asarray(heads.to_numpy(zero_copy_only=False), "U1").view(np.uint32).astype(np.int32)


_TRIMS = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}


@strict("trim", "ltrim", "rtrim")
def _trim(call: Call, x: Any, characters: Any = None) -> Any:
    trim = _TRIMS[call.function]
    if characters is None:
        return trim(x, " ")
    texts = text_rows(x, rows_of(x, characters))
    return per_distinct(lambda t, c: trim(t, c) if c else t, texts, (characters,), texts)


@strict("substring")
def _substring(call: Call, x: Any, position: Any, size: Any = None) -> Any:
    at, count = single(position), _ENDLESS if size is None else single(size)
    if at is not None and count is not None and at >= 0 and isinstance(x, pa.Array):
        start = max(at - 1, 0)
        return pc.utf8_slice_codeunits(x, start, max(start + count, start))
    texts = text_rows(x, rows_of(x, position) if size is None else rows_of(x, position, size))
    chars = Characters(texts)
    position = position.astype(np.int64)
    start = np.where(position > 0, position - 1, np.where(position < 0, chars.length + position, 0))
    return chars.slice(start, start + (_ENDLESS if size is None else size))


@strict("left")
def _left(call: Call, x: Any, count: Any) -> Any:
    chars = Characters(text_rows(x, rows_of(x, count)))
    return chars.slice(0, np.broadcast_to(count, chars.count))


@strict("right")
def _right(call: Call, x: Any, count: Any) -> Any:
    chars = Characters(text_rows(x, rows_of(x, count)))
    return chars.slice(chars.length - np.maximum(count, 0).astype(np.int64), _ENDLESS)


@strict("concat")
def _concat(call: Call, *args: Any) -> Any:
    if all(isinstance(a, pa.Scalar) for a in args):
        return pa.array([], pa.string())
    return args[0] if len(args) == 1 else _join(args, "emit_null", _separator(args[0]))


def _separator(x: Any) -> pa.Scalar:
    return pa.scalar("" if x.type == pa.string() else b"", x.type)


def _join(parts: Any, when_null: str, separator: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator, null_handling=when_null)


@nullable("concat_ws")
def _concat_ws(call: Call, separator: Vector, *args: Vector) -> Outcome:
    length = rows_of(separator.data, *(a.data for a in args))
    between = text_rows(separator.data, length)
    parts = [a.stretch(length).to_arrow() for a in args]
    if not parts:
        return Outcome(pa.repeat("", length), valid=separator.valid)
    if all(p.null_count == 0 for p in parts):
        return Outcome(_join(parts, "emit_null", between), valid=separator.valid)
    # Arrow's own "skip" loses rows on which all parts are NULL.
    led = [pc.fill_null(_join([between, p], "emit_null", ""), "") for p in parts]
    joined = led[0] if len(led) == 1 else _join(led, "emit_null", "")
    return Outcome(
        Characters(joined).slice(Characters(between).length, _ENDLESS), valid=separator.valid
    )


@strict("replace")
def _replace(call: Call, x: Any, search: Any, other: Any = None) -> Any:
    parameters = (search, pa.scalar("") if other is None else other)
    texts = text_rows(x, rows_of(x, *parameters))

    def change(rows: pa.Array, old: str, new: str) -> pa.Array:
        return pc.replace_substring(rows, old, new) if old else rows

    return per_distinct(change, texts, parameters, texts)


@strict("repeat")
def _repeat(call: Call, x: Any, times: Any) -> Any:
    texts = text_rows(x, rows_of(x, times))
    counts = np.broadcast_to(np.maximum(times, 0).astype(np.int64), len(texts))
    long = whole(pc.utf8_length(texts), np.int64) * counts > LONGEST_TEXT
    return Outcome(pc.binary_repeat(texts, pa.array(np.where(long, 0, counts))), _too_long(long))


def _too_long(rows: Mask) -> Codes | None:
    return failing(rows, TOO_LONG)


@strict("lpad", "rpad")
def _pad(call: Call, x: Any, width: Any, pad: Any = None) -> Any:
    pads = pa.scalar(" ") if pad is None else pad
    length = rows_of(x, width, pads)
    chars = Characters(text_rows(x, length))
    fill = Characters(text_rows(pads, length))
    wanted = np.maximum(np.broadcast_to(width, length).astype(np.int64), 0)
    long = (wanted > LONGEST_TEXT) & (fill.length > 0) & (wanted > chars.length)
    wanted = np.where(long, 0, wanted)
    missing = np.maximum(wanted - chars.length, 0)
    times = np.where(fill.length > 0, -(-missing // np.maximum(fill.length, 1)), 0)
    repeated = pc.binary_repeat(text_rows(pads, length), pa.array(times))
    padding = Characters(repeated).slice(0, missing)
    kept = chars.slice(0, wanted)
    parts = (padding, kept) if call.function == "lpad" else (kept, padding)
    return Outcome(_join(parts, "emit_null", ""), _too_long(long))


@strict("instr")
def _instr(call: Call, x: Any, wanted: Any) -> Any:
    texts = text_rows(x, rows_of(x, wanted))
    return _found_at(texts, wanted)


@strict("locate")
def _locate(call: Call, wanted: Any, x: Any, start: Any = None) -> Any:
    if start is None:
        return _found_at(text_rows(x, rows_of(x, wanted)), wanted)
    texts = text_rows(x, rows_of(x, wanted, start))
    skipped = np.maximum(start.astype(np.int64) - 1, 0)
    chars = Characters(texts)
    found = _found_at(chars.slice(skipped, _ENDLESS), wanted)
    empty = whole(pc.utf8_length(text_rows(wanted, len(texts)))) == 0
    placed = np.where(empty, 1, np.where(found > 0, found + skipped, 0))
    return np.where(start > 0, placed, 0).astype(np.int32)


def _found_at(texts: pa.Array, wanted: Any) -> Any:
    """The position of the first occurrence, 0 if there is none."""

    def find(rows: pa.Array, pattern: str) -> Any:
        at = whole(pc.find_substring(rows, pattern))
        return np.where(at < 0, 0, Characters(rows).position(np.maximum(at, 0)) + 1)

    empty = np.zeros(len(texts), np.int64)
    return per_distinct(find, texts, (wanted,), empty).astype(np.int32)


@strict("split_part")
def _split_part(call: Call, x: Any, separator: Any, part: Any) -> Any:
    texts = text_rows(x, rows_of(x, separator, part))
    parameters = (separator, part)
    errors = failing(np.broadcast_to(part == 0, len(texts)), BAD_INDEX)
    return Outcome(per_distinct(_part, texts, parameters, texts), errors)


def _part(texts: pa.Array, separator: str, part: int) -> pa.Array:
    if not separator:
        return texts if part in (1, -1) else pa.repeat("", len(texts))
    lists = pc.split_pattern(texts, separator)
    sizes = whole(pc.list_value_length(lists), np.int64)
    index = part - 1 if part > 0 else sizes + part
    inside = (index >= 0) & (index < sizes)
    begin = np.asarray(lists.offsets)[:-1]
    chosen = lists.values.take(pa.array(np.where(inside, begin + index, 0)))
    return pc.if_else(pa.array(np.broadcast_to(inside, len(texts))), chosen, "")
