"""One hash of normalised key values.

Equal keys hash alike whatever their width: INT and BIGINT of one value, FLOAT and DOUBLE, -0.0 and
0.0, all NaNs. The top bits of a hash are its bucket. Keys of one integer-like column hash
injectively, so a match needs no second look; wider keys must be verified.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.plan.values import ESCAPE
from thalweg.store import native

Hashes = npt.NDArray[np.uint64]
NULL_HASH = np.uint64(0x5851F42D4C957F2D)


def hash_columns(columns: Sequence[pa.Array | pa.ChunkedArray], length: int) -> Hashes:
    """Hash per row over the given columns, in order; no columns hash to zero."""
    found: Hashes | None = None
    for column in columns:
        one = hash_column(column)
        found = one if found is None else native.combine(found, one)
    return np.zeros(length, np.uint64) if found is None else found


def hash_column(column: pa.Array | pa.ChunkedArray) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    hashes: Hashes = _hash_values(column)
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = NULL_HASH
    return hashes


def is_injective(types: Sequence[pa.DataType]) -> bool:
    """Whether equal hashes imply equal (non-null) keys."""
    return len(types) == 1 and (
        pa.types.is_integer(types[0])
        or pa.types.is_timestamp(types[0])
        or pa.types.is_date32(types[0])
        or pa.types.is_boolean(types[0])
    )


def _hash_values(array: pa.Array) -> Hashes:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _hash_values(array.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hash_text(array)
    if pa.types.is_decimal(kind):
        return _hash_decimal(array)
    if pa.types.is_nested(kind):
        return _hash_text(nested_texts(array))
    if pa.types.is_floating(kind):
        return native.mix(_float_bits(array))  # type: ignore[no-any-return]
    if pa.types.is_null(kind):
        return np.full(len(array), NULL_HASH, np.uint64)
    integers = array.cast(pa.int32()) if pa.types.is_date32(kind) else array
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        integers = array.cast(pa.int64())
    if array.null_count:
        integers = pc.fill_null(integers, False if pa.types.is_boolean(kind) else 0)
    values = integers.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return native.mix(values.view(np.uint64))  # type: ignore[no-any-return]


def _float_bits(array: pa.Array) -> Hashes:
    filled = pc.fill_null(array, 0.0) if array.null_count else array
    values = filled.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    bits: Hashes = values.view(np.uint64)
    return bits


def _hash_text(array: pa.Array) -> Hashes:
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.empty(0, np.uint8)
    return native.hash_bytes(offsets, data)  # type: ignore[no-any-return]


def _hash_decimal(array: pa.Array) -> Hashes:
    text = pc.cast(pc.fill_null(array, 0) if array.null_count else array, pa.string())
    return _hash_text(text)


def nested_texts(array: pa.Array) -> pa.Array:
    """A text for each list or struct, equal for equal ones only; NULL stays NULL."""
    texts = _struct_texts(array) if pa.types.is_struct(array.type) else _list_texts(array)
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))


def _struct_texts(array: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*(_escaped(part) for part in array.flatten()), ",")


def _list_texts(array: pa.Array) -> pa.Array:
    texts = _escaped(array.flatten())
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy())]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), ",")
    return pc.binary_join_element_wise(lengths.cast(pa.string()), joined, ":")


def _escaped(items: pa.Array) -> pa.Array:
    """Texts of values without commas; NULL has one of its own."""
    if pa.types.is_nested(items.type):
        items = nested_texts(items)
    if pa.types.is_floating(items.type):
        items = pc.add(items, pa.scalar(0.0, items.type))  # one zero
    texts = pc.replace_substring(items.cast(pa.string()), ESCAPE, ESCAPE + "e")
    return pc.fill_null(pc.replace_substring(texts, ",", ESCAPE + "c"), ESCAPE + "n")


def second_hash(columns: Sequence[pa.Array | pa.ChunkedArray], length: int) -> Hashes:
    """A hash independent of the first: together they tell keys apart with sufficient certainty."""
    found = np.full(length, 0x2545F4914F6CDD1D, np.uint64)
    for column in columns:
        one = _second(column)
        found = native.combine(one, found)
    return found


def _second(column: pa.Array | pa.ChunkedArray) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_nested(column.type):
        column = nested_texts(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        _, offsets_buffer, data_buffer = column.buffers()
        window = slice(column.offset, column.offset + len(column) + 1)
        offsets = np.frombuffer(offsets_buffer, np.int32)[window]
        data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.empty(0, np.uint8)
        hashes: Hashes = native.hash_bytes_again(offsets, data)
    else:
        hashes = native.mix(hash_column(column) ^ np.uint64(0xA0761D6478BD642F))
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = np.uint64(0xE7037ED1A0B428DB)
    return hashes
