"""Polynomials in time, many at a time: row i of an array holds the coefficients of one, ascending.

The variable is seconds since the reference instant of the polynomial (µs since 1970), so that no
large number is ever raised to a power. Shorter polynomials are padded with zeros.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from thalweg.instants import Ints

Floats = npt.NDArray[np.float64]
SECOND = 1_000_000
MOST_DEGREE = 8
"""Of polynomials in a query; powers and products beyond are refused."""


def value(coefficients: Floats, seconds: Floats) -> Floats:
    """The values at some offsets, one for each polynomial, by Horner's rule."""
    found = np.zeros(len(coefficients)) + coefficients[:, -1]
    for i in range(coefficients.shape[1] - 2, -1, -1):
        found = found * seconds + coefficients[:, i]
    return found


def value_at(coefficients: Floats, reference: Ints, instants: Ints) -> Floats:
    """The values at some instants, one for each polynomial."""
    return value(coefficients, offset(reference, instants))


def offset(reference: Ints, instants: Ints) -> Floats:
    """Seconds from the reference to the instant."""
    return (instants - reference) / SECOND


def aligned(coefficients: Floats, reference: Ints, to: Ints) -> Floats:
    """The same functions as polynomials about other reference instants (Taylor's shift).

    >>> aligned(np.array([[1.0, 2.0, 3.0]]), np.array([0]), np.array([2 * SECOND]))
    array([[17., 14.,  3.]])
    """
    shift = offset(reference, to)
    if not shift.any():
        return coefficients
    n = coefficients.shape[1]
    found = np.zeros_like(coefficients)
    for j in range(n):
        term = np.zeros(len(coefficients))
        for i in range(n - 1, j - 1, -1):
            term = term * shift + comb(i, j) * coefficients[:, i]
        found[:, j] = term
    still = shift == 0
    found[still] = coefficients[still]
    return found


def padded(coefficients: Floats, width: int) -> Floats:
    """With zeros up to a number of coefficients."""
    missing = width - coefficients.shape[1]
    return np.pad(coefficients, ((0, 0), (0, missing))) if missing > 0 else coefficients


def added(left: Floats, right: Floats) -> Floats:
    width = max(left.shape[1], right.shape[1])
    return padded(left, width) + padded(right, width)


def multiplied(left: Floats, right: Floats) -> Floats:
    """The products, row by row."""
    found = np.zeros((len(left), left.shape[1] + right.shape[1] - 1))
    for i in range(left.shape[1]):
        for j in range(right.shape[1]):
            found[:, i + j] += left[:, i] * right[:, j]
    return found


def derivative(coefficients: Floats) -> Floats:
    """The derivatives by seconds."""
    if coefficients.shape[1] == 1:
        return np.zeros_like(coefficients)
    return coefficients[:, 1:] * np.arange(1, coefficients.shape[1])


def antiderivative(coefficients: Floats) -> Floats:
    """The integrals from the reference instant on."""
    powers = np.arange(1, coefficients.shape[1] + 1)
    return np.concatenate([np.zeros((len(coefficients), 1)), coefficients / powers], axis=1)
