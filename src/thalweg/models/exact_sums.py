"""Exact sums of polynomials in time, by groups: compiled loops.

A polynomial of degree n, in seconds since s, becomes one with whole coefficients in microseconds:
coefficient i is multiplied by 10^(6(n-i)), so that moving it to another instant takes products with
whole numbers only. Coefficients are laid out on limbs of 32 bits as in `numeric.exact`, here as
two's complement. So polynomials about any instants add up exactly, in any order, and one that is
taken away leaves nothing behind; what is shown of a sum is its correctly rounded coefficients.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from thalweg.instants import Ints
from thalweg.models.polynomials import Floats
from thalweg.numeric.exact import ORIGIN, _rounded

Digits = npt.NDArray[np.uint64]
"""By group, coefficient and limb."""
_MASK = 0xFFFFFFFF
_MILLION = 1_000_000
_MILLION_BITS = 20


def limb_range(coefficients: Floats, shifts: Ints) -> tuple[int, int]:
    """The lowest limb that polynomials touch, and the highest once they have been moved so far;
    (0, -1) if they are all zero."""
    _, exponents = np.frexp(coefficients[coefficients != 0.0])
    if not len(exponents):
        return 0, -1
    degree = coefficients.shape[1] - 1
    furthest = int(np.abs(shifts).max(initial=0)).bit_length()
    most = int(exponents.max()) + degree * (max(_MILLION_BITS, furthest) + 1)
    return (max(int(exponents.min()) - 53, -1074) + ORIGIN) // 32, (most + ORIGIN) // 32 + 1


def headroom(degree: int, moved: int) -> int:
    """How many limbs more a sum may take when it is moved so far: carries and the sign as well."""
    return 3 + degree * (moved.bit_length() + 1) // 32


@njit(cache=True, nogil=True)
def to_digits(limbs):  # type: ignore[no-untyped-def]
    """Signed limbs as two's complement."""
    found = np.empty(limbs.shape, np.uint64)
    for g in range(limbs.shape[0]):
        for j in range(limbs.shape[1]):
            carry = np.int64(0)
            for k in range(limbs.shape[2]):
                v = limbs[g, j, k] + carry
                found[g, j, k] = np.uint64(v & _MASK)
                carry = v >> 32
    return found


@njit(cache=True, nogil=True)
def to_limbs(digits):  # type: ignore[no-untyped-def]
    """Two's complement as limbs that all have the sign of the number."""
    found = np.empty(digits.shape, np.int64)
    scratch = np.empty(digits.shape[2], np.uint64)
    for g in range(digits.shape[0]):
        for j in range(digits.shape[1]):
            sign = _magnitude(digits[g, j], scratch)
            for k in range(digits.shape[2]):
                found[g, j, k] = sign * np.int64(scratch[k])
    return found


@njit(cache=True, nogil=True)
def _magnitude(digits, out):  # type: ignore[no-untyped-def]
    """The number without its sign, which is returned."""
    size = digits.size
    if digits[size - 1] >> np.uint64(31) == 0:
        for k in range(size):
            out[k] = digits[k]
        return 1
    for k in range(size):
        out[k] = digits[k]
    _negate(out)
    return -1


@njit(cache=True, nogil=True)
def _negate(digits):  # type: ignore[no-untyped-def]
    mask = np.uint64(_MASK)
    carry = np.uint64(1)
    for k in range(digits.size):
        v = (digits[k] ^ mask) + carry
        digits[k] = v & mask
        carry = v >> np.uint64(32)


@njit(cache=True, nogil=True)
def _plus_product(to, one, factor):  # type: ignore[no-untyped-def]
    """to += one * factor, which is not negative."""
    mask, half = np.uint64(_MASK), np.uint64(32)
    low, high = np.uint64(factor) & mask, np.uint64(factor) >> half
    carry = np.uint64(0)
    for k in range(to.size):
        v = one[k] * low + to[k] + carry
        to[k] = v & mask
        carry = v >> half
    if high:
        carry = np.uint64(0)
        for k in range(to.size - 1):
            v = one[k] * high + to[k + 1] + carry
            to[k + 1] = v & mask
            carry = v >> half


@njit(cache=True, nogil=True)
def _times_million(digits):  # type: ignore[no-untyped-def]
    mask, half = np.uint64(_MASK), np.uint64(32)
    carry = np.uint64(0)
    for k in range(digits.size):
        v = digits[k] * np.uint64(_MILLION) + carry
        digits[k] = v & mask
        carry = v >> half


@njit(cache=True, nogil=True)
def _move(polynomial, by):  # type: ignore[no-untyped-def]
    """The polynomial about an instant that is `by` microseconds later (Taylor's shift)."""
    if by == 0:
        return
    degree = polynomial.shape[0] - 1
    if by < 0:  # of -t
        _mirror(polynomial)
    for i in range(degree):
        for j in range(degree - 1, i - 1, -1):
            _plus_product(polynomial[j], polynomial[j + 1], abs(by))
    if by < 0:
        _mirror(polynomial)


@njit(cache=True, nogil=True)
def _mirror(polynomial):  # type: ignore[no-untyped-def]
    for j in range(1, polynomial.shape[0], 2):
        _negate(polynomial[j])


@njit(cache=True, nogil=True)
def _lay_out(bits, negative, low, millions, out):  # type: ignore[no-untyped-def]
    """A double, times so many millions."""
    out[:] = 0
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent > 0:
        mantissa |= 1 << 52
    if mantissa == 0:
        return
    shift = max(exponent, 1) - 1075 + ORIGIN
    at, by = shift // 32 - low, shift % 32
    a = (mantissa & _MASK) << by
    c = ((a >> 32) & _MASK) + ((mantissa >> 32) << by)
    digits = (a & _MASK, c & _MASK, c >> 32)
    for k in range(3):  # what lies below the lowest limb is zero
        if 0 <= at + k < out.size:
            out[at + k] = np.uint64(digits[k])
    for _ in range(millions):
        _times_million(out)
    if negative:
        _negate(out)


@njit(cache=True, nogil=True)
def _add(to, one, weight):  # type: ignore[no-untyped-def]
    """to += one * weight."""
    if weight >= 0:
        _plus_product(to, one, weight)
    else:
        _negate(to)
        _plus_product(to, one, -weight)
        _negate(to)


@njit(cache=True, nogil=True)
def running_sums(  # type: ignore[no-untyped-def]
    coefficients, shift, constants, order, weight, run, group_of_run, instants, digits, about, low,
    out,
):  # fmt: skip
    """The rounded sum of each group after each run, as a polynomial about the run's instant.

    Change i adds its polynomial, moved by `shift`, so often as `weight` (which is in `order`) says;
    without `constants` it is zero at the instant. `digits` are the groups' sums about the instants
    `about`; both are advanced.
    """
    bits = coefficients.view(np.int64)
    degree = coefficients.shape[1] - 1
    own = np.empty((degree + 1, digits.shape[2]), np.uint64)
    last = -1
    n = order.size
    for i in range(n):
        r = run[i]
        g = group_of_run[r]
        if r != last:
            _move(digits[g], instants[r] - about[g])
            about[g] = instants[r]
            last = r
        row = order[i]
        if weight[i] != 0:
            for j in range(degree + 1):
                _lay_out(bits[row, j], bits[row, j] < 0, low, degree - j, own[j])
            _move(own, shift[row])
            for j in range(0 if constants else 1, degree + 1):
                _add(digits[g, j], own[j], np.int64(weight[i]))
        if i + 1 == n or run[i + 1] != r:
            _round(digits[g], low, out[r])


@njit(cache=True, nogil=True)
def rounded(digits, low, out):  # type: ignore[no-untyped-def]
    for g in range(digits.shape[0]):
        _round(digits[g], low, out[g])


@njit(cache=True, nogil=True)
def _round(polynomial, low, out):  # type: ignore[no-untyped-def]
    """The coefficients, per second, each rounded once."""
    size, degree = polynomial.shape[1], polynomial.shape[0] - 1
    below = (_MILLION_BITS * degree + 31) // 32 + 3
    whole = np.zeros((1, size + below), np.int64)
    magnitude = np.empty(size, np.uint64)
    scratch = np.empty(size + below + 2, np.int64)
    for j in range(degree + 1):
        sign = _magnitude(polynomial[j], magnitude)
        whole[:] = 0
        some = False
        for k in range(size):
            whole[0, below + k] = np.int64(magnitude[k])
            some |= magnitude[k] != 0
        if not some:
            out[j] = 0.0
            continue
        left = False
        for _ in range(degree - j):
            rest = np.int64(0)
            for k in range(size + below - 1, -1, -1):
                v = (rest << 32) | whole[0, k]
                whole[0, k] = v // _MILLION
                rest = v % _MILLION
            left |= rest != 0
        if left:
            whole[0, 0] |= 1
        out[j] = sign * _rounded(whole, 0, low - below, scratch)
