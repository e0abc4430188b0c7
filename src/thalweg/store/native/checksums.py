"""A checksum at the speed of memory."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def checksum(words, rest, size):  # type: ignore[no-untyped-def]
    """64 bits over 64-bit words, the bytes after the last whole word as one more, and the size.

    Each step is a bijection of its lane for any word, so a change within one word is always seen.
    Eight lanes keep the multiplier busy.
    """
    prime = np.uint64(0x9E3779B97F4A7C15)
    left, right = np.uint64(31), np.uint64(33)
    a = np.uint64(1)
    b = np.uint64(2)
    c = np.uint64(3)
    d = np.uint64(4)
    e = np.uint64(5)
    f = np.uint64(6)
    g = np.uint64(7)
    h = np.uint64(8)
    whole = words.size - words.size % 8
    for i in range(0, whole, 8):
        a ^= words[i]
        b ^= words[i + 1]
        c ^= words[i + 2]
        d ^= words[i + 3]
        e ^= words[i + 4]
        f ^= words[i + 5]
        g ^= words[i + 6]
        h ^= words[i + 7]
        a = ((a << left) | (a >> right)) * prime
        b = ((b << left) | (b >> right)) * prime
        c = ((c << left) | (c >> right)) * prime
        d = ((d << left) | (d >> right)) * prime
        e = ((e << left) | (e >> right)) * prime
        f = ((f << left) | (f >> right)) * prime
        g = ((g << left) | (g >> right)) * prime
        h = ((h << left) | (h >> right)) * prime
    for i in range(whole, words.size):
        a ^= words[i]
        a = ((a << left) | (a >> right)) * prime
    for word in (b, c, d, e, f, g, h, rest, size):
        a ^= word
        a = ((a << left) | (a >> right)) * prime
    return a ^ (a >> np.uint64(32))
