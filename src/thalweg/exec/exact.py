"""Exact sums: integers on a fixed exponent grid, rounded once.

A number is laid out on limbs of 32 bits; limb i weighs 2^(32·i - 1088), which reaches below the
smallest double. Limbs are kept in int64, so billions of additions and removals commute and cancel
without a trace of their order. Integers start at limb 34 (weight 1), so one code sums both.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

ORIGIN = 1088
INTEGER_LIMB = ORIGIN // 32
_MASK = 0xFFFFFFFF

Limbs = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def double_limb_range(values, use):  # type: ignore[no-untyped-def]
    """Lowest and highest limb that the used finite doubles touch; (0, -1) if none."""
    bits = values.view(np.int64)
    low = 10_000
    high = -1
    for i in range(values.size):
        if not use[i] or bits[i] << 1 == 0:
            continue
        exponent = (bits[i] >> 52) & 0x7FF
        if exponent == 0x7FF:
            continue
        shift = max(exponent, 1) - 1075 + ORIGIN
        low = min(low, shift // 32)
        high = max(high, shift // 32 + 2)
    if high < 0:
        return 0, -1
    return low, high


@njit(cache=True, nogil=True)
def running_doubles(values, weight, run, group_of_run, init, low, out):  # type: ignore[no-untyped-def]
    """Running exact sums of doubles: out[r] is the group's sum after run r."""
    bits = values.view(np.int64)
    k = init.shape[1]
    acc = np.zeros(k, np.int64)
    last = -1
    for i in range(values.size):
        r = run[i]
        g = group_of_run[r]
        if g != last:
            acc[:] = init[g]
            last = g
        w = weight[i]
        exponent = (bits[i] >> 52) & 0x7FF
        if w != 0 and exponent != 0x7FF and bits[i] << 1 != 0:
            mantissa = bits[i] & 0xFFFFFFFFFFFFF
            if exponent > 0:
                mantissa |= 1 << 52
            shift = max(exponent, 1) - 1075 + ORIGIN
            at = shift // 32 - low
            by = shift % 32
            a = (mantissa & _MASK) << by
            c = ((a >> 32) & _MASK) + ((mantissa >> 32) << by)
            sign = -w if bits[i] < 0 else w
            acc[at] += sign * (a & _MASK)
            acc[at + 1] += sign * (c & _MASK)
            acc[at + 2] += sign * (c >> 32)
        for j in range(k):
            out[r, j] = acc[j]


@njit(cache=True, nogil=True)
def running_integers(values, weight, run, group_of_run, init, out):  # type: ignore[no-untyped-def]
    """Running exact sums of int64: low and high 32 bits apart."""
    low = np.int64(0)
    high = np.int64(0)
    last = -1
    for i in range(values.size):
        r = run[i]
        g = group_of_run[r]
        if g != last:
            low, high = init[g, 0], init[g, 1]
            last = g
        low += weight[i] * (values[i] & _MASK)
        high += weight[i] * (values[i] >> 32)
        out[r, 0] = low
        out[r, 1] = high


@njit(cache=True, nogil=True)
def running_counts(weight, run, group_of_run, init, out):  # type: ignore[no-untyped-def]
    """Running totals of plain weights."""
    acc = np.int64(0)
    last = -1
    for i in range(weight.size):
        r = run[i]
        g = group_of_run[r]
        if g != last:
            acc = init[g]
            last = g
        acc += weight[i]
        out[r] = acc


@njit(cache=True, nogil=True)
def _digits(limbs, row, scratch):  # type: ignore[no-untyped-def]
    """Magnitude in base 2^32 into `scratch`; returns the sign."""
    k = limbs.shape[1]
    carry = np.int64(0)
    for j in range(scratch.size):
        v = carry
        if j < k:
            v += limbs[row, j]
        scratch[j] = v & _MASK
        carry = v >> 32
    if carry >= 0:
        return 1
    borrow = 1
    for j in range(scratch.size):
        v = (scratch[j] ^ _MASK) + borrow
        scratch[j] = v & _MASK
        borrow = v >> 32
    return -1


@njit(cache=True, nogil=True)
def to_doubles(limbs, low):  # type: ignore[no-untyped-def]
    """Each row of limbs rounded once, to nearest even."""
    n = limbs.shape[0]
    out = np.zeros(n, np.float64)
    d = np.zeros(limbs.shape[1] + 4, np.int64)
    for row in range(n):
        sign = _digits(limbs, row, d)
        top = d.size - 1
        while top >= 0 and d[top] == 0:
            top -= 1
        if top < 0:
            continue
        second = d[top - 1] if top >= 1 else 0
        third = d[top - 2] if top >= 2 else 0
        x = (np.uint64(d[top]) << np.uint64(32)) | np.uint64(second)
        lead = 0
        for by in (16, 8, 4, 2, 1):
            if x >> np.uint64(64 - by) == 0:
                x <<= np.uint64(by)
                lead += by
        sticky = False
        if lead > 0:
            x |= np.uint64(third) >> np.uint64(32 - lead)
            sticky = (third & ((1 << (32 - lead)) - 1)) != 0
        else:
            sticky = third != 0
        for j in range(top - 2):
            if d[j] != 0:
                sticky = True
        mantissa = x >> np.uint64(11)
        rest = x & np.uint64(0x7FF)
        if rest > 0x400 or (rest == 0x400 and (sticky or (mantissa & np.uint64(1)) == 1)):
            mantissa += np.uint64(1)
        scale = 32 * (low + top - 1) - ORIGIN - lead + 11
        out[row] = sign * math.ldexp(float(mantissa), scale)
    return out


@njit(cache=True, nogil=True)
def to_integers(limbs):  # type: ignore[no-untyped-def]
    """Two-limb integer sums as int64 (wrapped around where they do not fit), and where."""
    n = limbs.shape[0]
    out = np.zeros(n, np.int64)
    overflow = np.zeros(n, np.bool_)
    for row in range(n):
        high = limbs[row, 1] + (limbs[row, 0] >> 32)
        low = limbs[row, 0] & _MASK
        if high < -(1 << 31) or high >= (1 << 31):
            overflow[row] = True
        out[row] = (high << 32) | low
    return out, overflow


def aligned(limbs: Limbs, low: int, new_low: int, width: int) -> Limbs:
    """The same numbers on a wider stretch of the grid."""
    if low == new_low and limbs.shape[1] == width:
        return limbs
    out = np.zeros((len(limbs), width), np.int64)
    at = low - new_low
    out[:, at : at + limbs.shape[1]] = limbs
    return out


def normalized(limbs: Limbs) -> Limbs:
    """Carries propagated into the top limb, so that stored limbs stay small."""
    out = limbs.copy()
    for j in range(out.shape[1] - 1):
        out[:, j + 1] += out[:, j] >> 32
        out[:, j] &= _MASK
    return out
