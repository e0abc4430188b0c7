"""Hashes of numbers and of bytes."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def mix(values):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit integers that scatters neighbours (splitmix64's finaliser)."""
    out = np.empty(values.size, np.uint64)
    for i in range(values.size):
        x = np.uint64(values[i])
        x ^= x >> np.uint64(30)
        x *= np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(27)
        x *= np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        out[i] = x
    return out


@njit(cache=True, nogil=True)
def hash_bytes(offsets, data):  # type: ignore[no-untyped-def]
    """64-bit hash of each slice data[offsets[i]:offsets[i+1]]."""
    n = offsets.size - 1
    out = np.empty(n, np.uint64)
    prime = np.uint64(0x100000001B3)
    for i in range(n):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * prime
        h ^= h >> np.uint64(32)
        h *= np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
        out[i] = h
    return out


@njit(cache=True, nogil=True)
def combine(left, right):  # type: ignore[no-untyped-def]
    """Order-sensitive combination of two hash columns."""
    out = np.empty(left.size, np.uint64)
    for i in range(left.size):
        x = left[i] * np.uint64(0x9E3779B97F4A7C15) + right[i]
        x ^= x >> np.uint64(32)
        x *= np.uint64(0xD6E8FEB86659FD93)
        x ^= x >> np.uint64(32)
        out[i] = x
    return out


@njit(cache=True, nogil=True)
def hash_bytes_again(offsets, data):  # type: ignore[no-untyped-def]
    """A second hash of each slice, of another family than `hash_bytes`."""
    n = offsets.size - 1
    out = np.empty(n, np.uint64)
    for i in range(n):
        h = np.uint64(0x9E3779B97F4A7C15)
        for j in range(offsets[i], offsets[i + 1]):
            h += np.uint64(data[j]) + np.uint64(1)
            h ^= h >> np.uint64(29)
            h *= np.uint64(0xFF51AFD7ED558CCD)
            h = (h << np.uint64(23)) | (h >> np.uint64(41))
        h ^= h >> np.uint64(33)
        out[i] = h * np.uint64(0xC4CEB9FE1A85EC53)
    return out
