"""Exact sums: integers on a fixed exponent grid, rounded once.

A number is laid out on limbs of 32 bits; limb i weighs 2^(32·i - 1088), which reaches below the
smallest double. Limbs are kept in int64, so billions of additions and removals commute and cancel
exactly, in any order. Integers start at limb 34 (weight 1), so one code sums both.
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
def _exponents(values, order, weight):  # type: ignore[no-untyped-def]
    """The least and the largest power of two of a mantissa's last bit among the weighed finite
    doubles; (0, -1) if there is none but zero."""
    bits = values.view(np.int64)
    least = 0x7FF
    most = 0
    for i in range(order.size):
        b = bits[order[i]]
        exponent = (b >> 52) & 0x7FF
        if weight[i] == 0 or b << 1 == 0 or exponent == 0x7FF:
            continue
        least = min(least, exponent)
        most = max(most, max(exponent, 1))
    if most == 0:
        return 0, -1
    return max(least, 1) - 1075, most - 1075


@njit(cache=True, nogil=True)
def double_limb_range(values, order, weight):  # type: ignore[no-untyped-def]
    """Lowest and highest limb that the weighed finite doubles touch; (0, -1) if none."""
    least, most = _exponents(values, order, weight)
    if most < least:
        return 0, -1
    return (least + ORIGIN) // 32, (most + ORIGIN) // 32 + 2


@njit(cache=True, nogil=True)
def running_doubles(values, order, weight, run, group_of_run, limbs, special, low, totals):  # type: ignore[no-untyped-def]
    """Running exact sums of doubles: totals[r] is the group's sum, rounded, after run r.

    `values` are in input order, the rest is in `order`. `limbs` and `special` (counts of NaN, +inf,
    -inf) hold the groups' states and are advanced.
    """
    bits = values.view(np.int64)
    scratch = np.zeros(limbs.shape[1] + 2, np.int64)
    n = order.size
    for i in range(n):
        r = run[i]
        g = group_of_run[r]
        w = weight[i]
        b = bits[order[i]]
        exponent = (b >> 52) & 0x7FF
        if w != 0:
            if exponent == 0x7FF:
                special[g, _special_kind(b)] += w
            elif b << 1 != 0:
                _add_double(limbs, g, b, exponent, w, low)
        if i + 1 == n or run[i + 1] != r:
            totals[r] = _rounded(limbs, g, low, scratch)
            if special[g, 0] + special[g, 1] + special[g, 2] > 0:
                totals[r] = _special(special, g)


@njit(cache=True, nogil=True)
def _special_kind(bits):  # type: ignore[no-untyped-def]
    """0 for NaN, 1 for infinity, 2 for minus infinity."""
    if bits & 0xFFFFFFFFFFFFF:
        return 0
    return 1 if bits > 0 else 2


@njit(cache=True, nogil=True)
def _add_double(limbs, g, bits, exponent, w, low):  # type: ignore[no-untyped-def]
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent > 0:
        mantissa |= 1 << 52
    shift = max(exponent, 1) - 1075 + ORIGIN
    at = shift // 32 - low
    by = shift % 32
    a = (mantissa & _MASK) << by
    c = ((a >> 32) & _MASK) + ((mantissa >> 32) << by)
    sign = -w if bits < 0 else w
    limbs[g, at] += sign * (a & _MASK)
    limbs[g, at + 1] += sign * (c & _MASK)
    limbs[g, at + 2] += sign * (c >> 32)


# -- sums of squares, for the variance ---------------------------------------------------------


@njit(cache=True, nogil=True)
def square_limb_range(values, order, weight):  # type: ignore[no-untyped-def]
    """Lowest and highest limb that the squares of the weighed doubles touch; (0, -1) if none.

    Squares reach below the smallest double, so limbs may have negative numbers."""
    least, most = _exponents(values, order, weight)
    if most < least:
        return 0, -1
    return (2 * least + ORIGIN) // 32, (2 * most + ORIGIN) // 32 + 4


@njit(cache=True, nogil=True)
def _add_square(limbs, g, bits, exponent, w, low):  # type: ignore[no-untyped-def]
    mantissa = np.uint64(bits & 0xFFFFFFFFFFFFF)
    if exponent > 0:
        mantissa |= np.uint64(1) << np.uint64(52)
    mask, half = np.uint64(_MASK), np.uint64(32)
    a, b = mantissa & mask, mantissa >> half
    cross = a * b  # below 2^53, so twice it fits as well
    d0 = a * a
    d1 = (d0 >> half) + ((cross & (mask >> np.uint64(1))) << np.uint64(1))
    d2 = (d1 >> half) + (cross >> np.uint64(31)) + b * b
    shift = 2 * (max(exponent, 1) - 1075) + ORIGIN
    at = shift // 32 - low
    by = np.uint64(shift % 32)
    digits = (d0 & mask, d1 & mask, d2 & mask, d2 >> half)
    carry = np.uint64(0)
    for j in range(4):
        v = (digits[j] << by) | carry
        limbs[g, at + j] += w * np.int64(v & mask)
        carry = v >> half
    limbs[g, at + 4] += w * np.int64(carry)


@njit(cache=True, nogil=True)
def running_spreads(values, order, weight, run, group_of_run, sums, squares, lows, counts, out):  # type: ignore[no-untyped-def]
    """n·Σx² - (Σx)² of every version (the groups' stored states, then the runs), exact and rounded
    once. `sums` and `squares` hold the groups' limbs, from limbs `lows` on, and are advanced."""
    bits = values.view(np.int64)
    low, square_low = lows
    groups = sums.shape[0]
    d = np.zeros(sums.shape[1] + 2, np.int64)
    e = np.zeros(squares.shape[1] + 2, np.int64)
    # a product of limbs i and j weighs as much as limb i + j - INTEGER_LIMB
    product_low = 2 * low - INTEGER_LIMB
    base = min(square_low, product_low)
    top = max(square_low + e.size, product_low + 2 * d.size) + 1
    difference = np.zeros((1, top - base), np.int64)
    scratch = np.zeros(top - base + 2, np.int64)
    for g in range(groups):
        _spread(
            sums, squares, g, counts[g], square_low - base, product_low - base, d, e, difference
        )
        out[g] = _rounded(difference, 0, base, scratch)
    n = order.size
    for i in range(n):
        r = run[i]
        g = group_of_run[r]
        w = np.int64(weight[i])
        b = bits[order[i]]
        exponent = (b >> 52) & 0x7FF
        if w != 0 and exponent != 0x7FF and b << 1 != 0:
            _add_double(sums, g, b, exponent, w, low)
            _add_square(squares, g, b, exponent, w, square_low)
        if i + 1 == n or run[i + 1] != r:
            count = counts[groups + r]
            _spread(
                sums, squares, g, count, square_low - base, product_low - base, d, e, difference
            )
            out[groups + r] = _rounded(difference, 0, base, scratch)


@njit(cache=True, nogil=True)
def _spread(sums, squares, row, count, square_at, product_at, d, e, out):  # type: ignore[no-untyped-def]
    """n·Σx² - (Σx)² of one row of limbs into `out`; `d` and `e` are scratch for their digits."""
    _digits(sums, row, d)
    _digits(squares, row, e)
    out[:] = 0
    for j in range(e.size):
        v = e[j] * count
        out[0, square_at + j] += v & _MASK
        out[0, square_at + j + 1] += v >> 32
    for i in range(d.size):
        if d[i] == 0:
            continue
        for j in range(d.size):
            p = np.uint64(d[i]) * np.uint64(d[j])
            out[0, product_at + i + j] -= np.int64(p & np.uint64(_MASK))
            out[0, product_at + i + j + 1] -= np.int64(p >> np.uint64(32))


@njit(cache=True, nogil=True)
def _special(special, g):  # type: ignore[no-untyped-def]
    if special[g, 0] > 0 or (special[g, 1] > 0 and special[g, 2] > 0):
        return np.nan
    return np.inf if special[g, 1] > 0 else -np.inf


# -- the common case: everything within 192 bits -----------------------------------------------

MOST_LIMBS = 6


@njit(cache=True, nogil=True)
def _plus(w0, w1, w2, a0, a1, a2, carry):  # type: ignore[no-untyped-def]
    """192-bit addition, words from low to high, with a carry in."""
    s0 = w0 + a0
    c0 = np.uint64(s0 < a0)
    s0 += carry
    c0 |= np.uint64(s0 < carry)
    s1 = w1 + a1
    c1 = np.uint64(s1 < a1)
    s1 += c0
    c1 |= np.uint64(s1 < c0)
    return s0, s1, w2 + a2 + c1


@njit(cache=True, nogil=True)
def _minus(w0, w1, w2):  # type: ignore[no-untyped-def]
    zero = np.uint64(0)
    return _plus(~w0, ~w1, ~w2, zero, zero, zero, np.uint64(1))


@njit(cache=True, nogil=True)
def _words(limbs, g):  # type: ignore[no-untyped-def]
    """A group's limbs as one 192-bit integer (two's complement)."""
    zero = np.uint64(0)
    w0, w1, w2 = zero, zero, zero
    for j in range(limbs.shape[1] - 1, -1, -1):
        # multiply by 2^32, then add the signed limb
        w2 = (w2 << np.uint64(32)) | (w1 >> np.uint64(32))
        w1 = (w1 << np.uint64(32)) | (w0 >> np.uint64(32))
        w0 = w0 << np.uint64(32)
        limb = limbs[g, j]
        fill = ~zero if limb < 0 else zero
        w0, w1, w2 = _plus(w0, w1, w2, np.uint64(limb), fill, fill, zero)
    return w0, w1, w2


@njit(cache=True, nogil=True)
def _store(limbs, g, w0, w1, w2):  # type: ignore[no-untyped-def]
    """The integer as limbs again; the top one takes the sign."""
    k = limbs.shape[1]
    words = (w0, w1, w2)
    for j in range(k):
        word = words[j // 2]
        half = word >> np.uint64(32) if j % 2 else word & np.uint64(_MASK)
        limbs[g, j] = np.int64(half)
    top = limbs[g, k - 1]
    if top >= 1 << 31:
        limbs[g, k - 1] = top - (1 << 32)


@njit(cache=True, nogil=True)
def _round_words(w0, w1, w2, low, peek):  # type: ignore[no-untyped-def]
    """The bits of the double nearest to the integer; `peek` is one double of scratch."""
    zero = np.uint64(0)
    sign = np.int64(w2) >> 63
    if sign:
        w0, w1, w2 = _minus(w0, w1, w2)
    scale = 32 * low - ORIGIN + 128
    if w2 == zero:
        w2, w1, w0 = w1, w0, zero
        scale -= 64
        if w2 == zero:
            w2, w1 = w1, zero
            scale -= 64
            if w2 == zero:
                return np.int64(0)
    lead = _leading_zeros(w2, peek)
    x = w2 << lead
    rest = w1
    if lead > zero:
        x |= w1 >> (np.uint64(64) - lead)
        rest = w1 << lead
    mantissa = np.int64(x >> np.uint64(11))
    tail = x & np.uint64(0x7FF)
    half = np.uint64(0x400)
    if tail > half or (tail == half and ((rest | w0) != zero or mantissa & 1)):
        mantissa += 1
    power = scale - np.int64(lead) + 11
    exponent = power + 1075
    if 1 <= exponent <= 2045:
        # the leading bit of the mantissa, or a carry beyond it, counts the exponent up
        return (sign << 63) | (((exponent - 1) << 52) + mantissa)
    peek[0] = math.ldexp(float(mantissa), power)
    return (sign << 63) | peek.view(np.int64)[0]


@njit(cache=True, nogil=True)
def _leading_zeros(x, peek):  # type: ignore[no-untyped-def]
    """The leading zeros of a word that is not zero, from the exponent of a double that holds it
    exactly."""
    top = np.int64(x >> np.uint64(11))
    if top:
        peek[0] = float(top)
        return np.uint64(52 + 1023 - (peek.view(np.int64)[0] >> 52))
    peek[0] = float(np.int64(x))
    return np.uint64(63 + 1023 - (peek.view(np.int64)[0] >> 52))


@njit(cache=True, nogil=True)
def running_doubles_short(values, order, weight, run, group_of_run, limbs, special, low, totals):  # type: ignore[no-untyped-def]
    """`running_doubles` for at most MOST_LIMBS limbs; weights are -1, 0 or 1.

    Whether a row is added or removed is unpredictable for the processor, so signs are applied by
    masks, without branches.
    """
    bits = values.view(np.int64)
    out = totals.view(np.int64)
    peek = np.zeros(1, np.float64)
    zero = np.uint64(0)
    w0, w1, w2 = zero, zero, zero
    last = -1
    n = order.size
    for i in range(n):
        r = run[i]
        g = group_of_run[r]
        if g != last:
            if last >= 0:
                _store(limbs, last, w0, w1, w2)
            w0, w1, w2 = _words(limbs, g)
            last = g
        w = np.int64(weight[i])
        bit = bits[order[i]]
        exponent = (bit >> 52) & 0x7FF
        if exponent == 0x7FF:
            special[g, _special_kind(bit)] += w
        elif w != 0:
            mantissa = np.uint64(bit & 0xFFFFFFFFFFFFF)
            if exponent > 0:
                mantissa |= np.uint64(1) << np.uint64(52)
            shift = max(exponent, 1) - 1075 + ORIGIN - 32 * low
            by = np.uint64(shift & 63)
            a = mantissa << by
            b = (mantissa >> np.uint64(1)) >> (np.uint64(63) - by)
            a0, a1, a2 = a, b, zero
            if shift >= 128:
                a0, a1, a2 = zero, zero, a
            elif shift >= 64:
                a0, a1, a2 = zero, a, b
            flip = np.uint64((bit ^ w) >> 63)  # all ones to subtract, else zero
            carry = flip & np.uint64(1)
            w0, w1, w2 = _plus(w0, w1, w2, a0 ^ flip, a1 ^ flip, a2 ^ flip, carry)
        if i + 1 == n or run[i + 1] != r:
            out[r] = _round_words(w0, w1, w2, low, peek)
            if special[g, 0] + special[g, 1] + special[g, 2] > 0:
                totals[r] = _special(special, g)
    if last >= 0:
        _store(limbs, last, w0, w1, w2)


@njit(cache=True, nogil=True)
def running_integers(values, order, weight, run, group_of_run, limbs, out):  # type: ignore[no-untyped-def]
    """Running exact sums of int64, low and high 32 bits apart; `limbs` holds the groups' states
    and is advanced."""
    for i in range(order.size):
        r = run[i]
        g = group_of_run[r]
        value = values[order[i]]
        limbs[g, 0] += weight[i] * (value & _MASK)
        limbs[g, 1] += weight[i] * (value >> 32)
        out[r, 0] = limbs[g, 0]
        out[r, 1] = limbs[g, 1]


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
def _rounded(limbs, row, low, d):  # type: ignore[no-untyped-def]
    """One row of limbs rounded once, to nearest even; `d` is scratch for its digits."""
    sign = _digits(limbs, row, d)
    top = d.size - 1
    while top >= 0 and d[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    second = d[top - 1] if top >= 1 else 0
    third = d[top - 2] if top >= 2 else 0
    x = (np.uint64(d[top]) << np.uint64(32)) | np.uint64(second)
    lead = 0
    for by in (16, 8, 4, 2, 1):
        if x >> np.uint64(64 - by) == 0:
            x <<= np.uint64(by)
            lead += by
    sticky = third != 0
    if lead > 0:
        x |= np.uint64(third) >> np.uint64(32 - lead)
        sticky = (third & ((1 << (32 - lead)) - 1)) != 0
    for j in range(top - 2):
        if d[j] != 0:
            sticky = True
    mantissa = x >> np.uint64(11)
    rest = x & np.uint64(0x7FF)
    if rest > 0x400 or (rest == 0x400 and (sticky or (mantissa & np.uint64(1)) == 1)):
        mantissa += np.uint64(1)
    scale = 32 * (low + top - 1) - ORIGIN - lead + 11
    return sign * math.ldexp(float(mantissa), scale)


@njit(cache=True, nogil=True)
def to_doubles(limbs, special, low):  # type: ignore[no-untyped-def]
    """Each row of limbs rounded once, specials respected."""
    n = limbs.shape[0]
    out = np.zeros(n, np.float64)
    scratch = np.zeros(limbs.shape[1] + 2, np.int64)
    for row in range(n):
        out[row] = _rounded(limbs, row, low, scratch)
        if special[row, 0] + special[row, 1] + special[row, 2] > 0:
            out[row] = _special(special, row)
    return out


@njit(cache=True, nogil=True)
def to_integers(limbs):  # type: ignore[no-untyped-def]
    """Two-limb integer sums as int64 (wrapped around where they do not fit), and where that is."""
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


def normalized(limbs: Limbs) -> Limbs:
    """Carries propagated into the top limb, so that stored limbs stay small. The sign of a negative
    number is taken down to its highest limb again, or it would need one more limb each time."""
    out = limbs.copy()
    top = out.shape[1] - 1
    for j in range(top):
        out[:, j + 1] += out[:, j] >> 32
        out[:, j] &= _MASK
    for j in range(top, 0, -1):
        minus = out[:, j] == -1
        if not minus.any():
            break
        out[minus, j] = 0
        out[minus, j - 1] -= 1 << 32
    return out
