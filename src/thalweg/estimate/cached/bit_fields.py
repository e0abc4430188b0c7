"""Rows of small unsigned numbers, each of a fixed number of bits, packed into whole bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_WORD = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field is: which word of a row, how far from its low end, how many bits."""

    word: int
    shift: int
    bits: int


def places(bits: Sequence[int]) -> tuple[list[Place], list[int]]:
    """A place for each field, none across two words; and the bytes that each word needs."""
    used: list[int] = [0]
    found = []
    for width in bits:
        fits = [i for i, u in enumerate(used) if u + width <= _WORD]
        if not fits:
            used.append(0)
            fits = [len(used) - 1]
        found.append(Place(fits[0], used[fits[0]], width))
        used[fits[0]] += width
    return found, [-(-u // 8) for u in used]


def pack(fields: Sequence[Array], found: Sequence[Place], words: int, length: int) -> list[Array]:
    """The words of all rows."""
    packed = [np.zeros(length, np.uint64) for _ in range(words)]
    for values, place in zip(fields, found, strict=True):
        packed[place.word] |= values.astype(np.uint64) << np.uint64(place.shift)
    return packed


def unpack(word: Array, place: Place) -> Array:
    """One field of all rows."""
    mask = np.uint64((1 << place.bits) - 1)
    return ((word >> np.uint64(place.shift)) & mask).astype(np.int64)


def planes(word: Array, width: int) -> list[Array]:
    """A word as arrays of 4, 2 and 1 bytes that take exactly `width` bytes a row."""
    found = []
    at = 0
    for size in (4, 4, 2, 1):
        if width - at >= size:
            part = (word >> np.uint64(8 * at)) & np.uint64(2 ** (8 * size) - 1)
            found.append(part.astype(f"u{size}"))
            at += size
    return found


def join_planes(parts: Sequence[Array], length: int) -> Array:
    """The word that `planes` has taken apart."""
    word = np.zeros(length, np.uint64)
    at = 0
    for part in parts:
        word |= part.astype(np.uint64) << np.uint64(8 * at)
        at += part.dtype.itemsize
    return word


def read(words: Sequence[Sequence[Array]], place: Place, length: int) -> Array:
    """One field of all rows, from the planes of their words.

    A field within one plane is read from it alone.
    """
    if place.bits == 0:
        return np.zeros(length, np.uint8)
    at = 0
    for part in words[place.word]:
        size = 8 * part.dtype.itemsize
        shift = place.shift - at
        if shift >= 0 and shift + place.bits <= size:
            mask = part.dtype.type(2**place.bits - 1)
            return (part >> part.dtype.type(shift)) & mask  # type: ignore[no-any-return]
        at += size
    return unpack(join_planes(words[place.word], length), place)
