"""The events of one variable in each match, and exact sums and means of their values.

Comes in: values of these events, one match after the other. Goes out: one number per match. Sums of integers and decimals are exact: they are
added in digits of 32 bits. Those of doubles go from the first value to the last. Only means beyond 53 bits are computed one by one, in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import Column, validity

if TYPE_CHECKING:
    from cepheid.engine.letters.values import Mask
    from cepheid.engine.memory.pools import Array

WORD = 32
LOW = (1 << WORD) - 1
"""Sums are exact because they are added in digits of 32 bits."""

EXACT_DOUBLE = 2**53
"""Up to here every integer is a double."""


class VariableEvents:
    """The events of one variable in a block of matches.

    rows: where each event stands. offsets: int64, n + 1. counts: int64, n. single: whether every match has exactly one event in the variable.
    """

    def __init__(self, rows: Array, offsets: Array) -> None:
        self.rows = rows
        self.offsets = offsets
        self.counts = np.diff(offsets)
        self.single = len(rows) == len(self.counts) and bool((self.counts == 1).all())

    def total(self, values: Array) -> Array:
        """Sums per match of an integer array, modulo 2**64."""
        if len(values) == len(self.counts) and self.single:
            return values.astype(np.int64, copy=False)
        running = np.zeros(len(values) + 1, np.int64)
        np.cumsum(values, dtype=np.int64, out=running[1:])
        totals: Array = running[self.offsets[1:]] - running[self.offsets[:-1]]
        return totals

    def present(self, valid: Mask | None) -> Array:
        """How many values per match are not NULL."""
        return self.counts if valid is None else self.total(valid)

    def reduce(self, ufunc: Any, values: Array) -> tuple[Array, Mask]:
        """A ufunc over the values of each match, and which matches have any (the others hold zero)."""
        some = self.counts > 0
        result = np.zeros(len(self.counts), values.dtype)
        if len(values):
            result[some] = ufunc.reduceat(values, self.offsets[:-1][some])
        return result, some


# ----------------------------------------------------------------------------------------------------------------- integers, doubles


def integer_sum(marks: VariableEvents, value: Column) -> Column:
    """Sums of int64 per match; NULL for none, and on overflow."""
    low, high = _integer_sums(marks, _zero_for_null(value))
    some = marks.present(value.valid) > 0
    return Column(low, some if high is None else some & (high == low >> WORD))


def integer_mean(marks: VariableEvents, value: Column) -> Column:
    """Means of int64 per match, rounded once; NULL for none."""
    low, high = _integer_sums(marks, _zero_for_null(value))
    present = marks.present(value.valid)
    if high is None:
        high = low >> WORD
    means = low / present
    for row in np.flatnonzero((high != low >> WORD) | (low > EXACT_DOUBLE) | (low < -EXACT_DOUBLE)).tolist():
        # The quotient of two Python integers is rounded once.
        means[row] = ((int(high[row]) << WORD) | int(low[row]) & LOW) / int(present[row])
    return Column(np.where(present > 0, means, np.nan))


def _zero_for_null(value: Column) -> Array:
    values: Array = value.values.astype(np.int64, copy=False)
    return values if value.valid is None else np.where(value.valid, values, 0)


def _integer_sums(marks: VariableEvents, values: Array) -> tuple[Array, Array | None]:
    """Exact sums of int64 per match: modulo 2**64, and divided by 2**32 rounded down; None where all of them fit int64."""
    most = int(marks.counts.max(initial=0))
    largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    low = marks.total(values)
    if largest * most < 2**63:
        return low, None
    return low, marks.total(values >> WORD) + (marks.total(values & LOW) >> WORD)


def sum_of_doubles(marks: VariableEvents, values: Array) -> tuple[Array, Array]:
    """Sums of the values that are not NaN, and how many there are; NaN for none, overflow, and infinities that meet.

    Of a match on 0.0, from its first value to its last: no sum is -0.0.
    """
    null = np.isnan(values)
    present = marks.present(~null)
    if marks.single:
        return values + 0.0, present
    matches = np.repeat(np.arange(len(marks.counts)), marks.counts)
    # bincount adds one value after the other, where add.reduceat would add in pairs.
    totals = np.bincount(matches, weights=np.where(null, 0.0, values) if null.any() else values, minlength=len(marks.counts))
    wrong = present == 0
    infinite = np.isinf(totals)
    if infinite.any():
        wrong |= infinite & (marks.total(np.isinf(values)) == 0)
    return np.where(wrong, np.nan, totals), present


# ----------------------------------------------------------------------------------------------------------------------- decimals


def decimal_words(array: pa.Array) -> tuple[Array, Array, Mask | None]:
    """The low and the high word (uint64) of decimal128 values, 0 for NULL, and which are not NULL."""
    words = np.frombuffer(array.buffers()[1], np.uint64, count=2 * len(array), offset=16 * array.offset).reshape(-1, 2)
    low, high, valid = np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1]), validity(array)
    return (low, high, None) if valid is None else (np.where(valid, low, 0), np.where(valid, high, 0), valid)


def decimals(low: Array, high: Array, valid: Mask, kind: pa.DataType) -> pa.Array:
    """The decimals of these words, of type `kind`."""
    words = np.stack([low, high.view(np.uint64)], axis=1)
    return pa.Array.from_buffers(kind, len(words), [pa.array(valid).buffers()[1], pa.py_buffer(words.tobytes())])


def _digits(marks: VariableEvents, array: pa.Array) -> tuple[Array, Array, Array, Array, Array]:
    """Exact sums of decimal128 per match, unscaled, as four digits of 32 bits (the last one signed and unbounded), and how many there are."""
    low, high, valid = decimal_words(array)
    digits = (low & LOW, low >> WORD, high & LOW)
    first, second, third = (marks.total(digit.astype(np.int64)) for digit in digits)
    second = second + (first >> WORD)
    third = third + (second >> WORD)
    fourth = marks.total(high.view(np.int64) >> WORD) + (third >> WORD)
    return first & LOW, second & LOW, third & LOW, fourth, marks.present(valid)


def decimal_sum(marks: VariableEvents, array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Sums of decimal128 per match, in the type `kind`; NULL for none, and on overflow."""
    if not len(array):
        return pa.nulls(len(marks.counts), kind)
    first, second, third, fourth, present = _digits(marks, array)
    low = (second.astype(np.uint64) << np.uint64(WORD)) | first.astype(np.uint64)
    high = (fourth << WORD) | third
    bound = 10**kind.precision
    fits = (fourth >= -(2**31)) & (fourth < 2**31) & _less(high, low, bound) & ~_less(high, low, 1 - bound)
    return decimals(low, high, fits & (present > 0), kind)


def _less(high: Array, low: Array, bound: int) -> Mask:
    """Whether numbers of 128 bits (signed high word, unsigned low word) are less than a bound."""
    bound_high, bound_low = bound >> 64, np.uint64(bound & (2**64 - 1))
    result: Mask = (high < bound_high) | ((high == bound_high) & (low < bound_low))
    return result


def decimal_mean(marks: VariableEvents, array: pa.Array) -> Column:
    """Means of decimal128 per match, as doubles; NULL for none."""
    if not len(array):
        return Column(np.full(len(marks.counts), np.nan))
    first, second, third, fourth, present = _digits(marks, array)
    unit = 10**array.type.scale
    means = np.full(len(present), np.nan)
    low = (second << WORD) | first
    small = ((fourth << WORD) | third) == low >> 63
    small &= (low <= EXACT_DOUBLE) & (low >= -EXACT_DOUBLE) & (present > 0) & (present <= EXACT_DOUBLE // unit)
    means[small] = low[small] / (present[small] * unit if unit <= EXACT_DOUBLE else 1)
    for row in np.flatnonzero(~small & (present > 0)).tolist():
        total = sum(int(digit[row]) << place * WORD for place, digit in enumerate((first, second, third, fourth)))
        means[row] = total / (int(present[row]) * unit)
    return Column(means)
