"""Total order of values as integers: NULL first, NaN above all numbers, text by its bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.vector import Vector, concat
from thalweg.instants import Ints
from thalweg.store import native
from thalweg.store.hashing import nested_texts

_TOP = np.int64(2**63 - 1)


def order_codes(vectors: list[Vector]) -> list[Ints]:
    """One int64 code per value, comparable across all the given vectors of one type."""
    name = vectors[0].type.name
    if name in ("FLOAT", "DOUBLE"):
        return [_float_codes(np.asarray(v.data)) for v in vectors]
    if name in ("STRING", "BINARY", "DECIMAL", "ARRAY", "STRUCT"):
        return _ranked(vectors)
    return [np.asarray(v.data).astype(np.int64) for v in vectors]


def _float_codes(values: np.ndarray) -> Ints:
    wide = values.astype(np.float64) + 0.0
    bits = wide.view(np.int64).copy()
    negative = bits < 0
    bits[negative] = np.int64(-(2**63)) - bits[negative] - 1
    bits[np.isnan(wide)] = _TOP
    return bits


def decode_floats(codes: Ints) -> np.ndarray:
    """The doubles that float codes stand for."""
    bits = codes.copy()
    negative = bits < 0
    bits[negative] = np.int64(-(2**63)) - bits[negative] - 1
    values = bits.view(np.float64).copy()
    values[codes == _TOP] = np.nan
    return values


def _ranked(vectors: list[Vector]) -> list[Ints]:
    whole = concat(vectors).data
    ranks = _ranks(whole)
    cuts = np.cumsum([len(v) for v in vectors])[:-1]
    return list(np.split(ranks, cuts))


def _ranks(array: pa.Array) -> Ints:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_nested(array.type):
        array = nested_texts(array)
    encoded = array.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    if not len(order):
        return np.zeros(len(array), np.int64)
    codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    ranks: Ints = rank[codes]
    return ranks


def numbered_rows(columns: list[Vector], length: int) -> tuple[Ints, Ints]:
    """Numbers for rows, equal for equal rows (NULL equals NULL, NaN equals NaN, -0.0 equals 0.0),
    in the order in which these first occur; and the first row of each number."""
    codes: list[Ints] = []
    for column in columns:
        found = _equality_codes(column)
        if column.valid is not None:
            codes.append(column.valid.astype(np.int64))
            found = np.where(column.valid, found, 0)
        codes.append(found)
    if not codes:
        return np.zeros(length, np.int64), np.zeros(min(length, 1), np.int64)
    return native.number_rows(np.stack(codes, axis=1))  # type: ignore[no-any-return]


def row_codes(columns: list[Vector], length: int) -> Ints:
    """Equal codes for equal rows."""
    return numbered_rows(columns, length)[0]


def _equality_codes(vector: Vector) -> Ints:
    """One code for equal values of a column; that of NULL means nothing."""
    if isinstance(vector.data, np.ndarray):
        return order_codes([vector])[0]
    array = vector.data
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_nested(array.type):
        array = nested_texts(array)
    indices = pc.fill_null(array.dictionary_encode().indices, 0)
    return indices.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def lexical_order(columns: list[Vector], first: list[Ints]) -> Ints:
    """Permutation by the given integer keys, then by the columns' values, NULL first."""
    return np.lexsort(list(reversed(first + _sort_keys(columns))))


def _sort_keys(columns: list[Vector]) -> list[Ints]:
    keys: list[Ints] = []
    for column in columns:
        codes = order_codes([column])[0]
        if column.valid is not None:
            keys.append(column.valid.astype(np.int64))
            codes = np.where(column.valid, codes, 0)
        keys.append(codes)
    return keys


def dense_ranks(columns: list[Vector], length: int) -> tuple[Ints, Ints]:
    """The rank of each row among all different ones (NULL first), and a row of each rank."""
    keys = _sort_keys(columns)
    order = np.lexsort(keys[::-1])
    fresh = np.zeros(length, np.bool_)
    fresh[:1] = True
    for key in keys:
        fresh[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(length, np.int64)
    ranks[order] = np.cumsum(fresh) - 1
    return ranks, order[fresh].astype(np.int64)
