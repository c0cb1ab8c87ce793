# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""Exact numbers of any length, as the kernels that count have them: so many limbs of 64 bits, least first, in one array.

No kernel of its own, as `_blocks`.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def is_zero(numbers: cython.ulonglong[::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
    """Whether the number there is 0."""
    k: cython.Py_ssize_t = 0
    while k < size and numbers[at + k] == 0:
        k += 1
    return k == size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def add(
    numbers: cython.ulonglong[::1],
    to: cython.Py_ssize_t,
    summands: cython.ulonglong[::1],
    at: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.int:
    """Add one number to another."""
    # The uncompiled kernel has no word size: sums are cut to 64 bits (which costs nothing compiled).
    full: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    carry: cython.ulonglong = 0
    a: cython.ulonglong = 0
    total: cython.ulonglong = 0
    other: cython.ulonglong = 0
    k: cython.Py_ssize_t = 0
    for k in range(size):
        a = numbers[to + k]
        total = (a + summands[at + k]) & full
        other = (total + carry) & full
        carry = (total < a) | (other < total)
        numbers[to + k] = other
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def subtract(numbers: cython.ulonglong[::1], to: cython.Py_ssize_t, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
    """Take one number from another that is not less, and return 1; or 0 where it is less: then nothing changes."""
    # The uncompiled kernel has no word size: differences are cut to 64 bits (which costs nothing compiled).
    full: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    borrow: cython.ulonglong = 0
    a: cython.ulonglong = 0
    total: cython.ulonglong = 0
    k: cython.Py_ssize_t = size - 1
    while k > 0 and numbers[to + k] == numbers[at + k]:
        k -= 1
    if numbers[to + k] < numbers[at + k]:
        return 0
    for k in range(size):
        a = numbers[to + k]
        total = (a - numbers[at + k] - borrow) & full
        borrow = (a < numbers[at + k]) | ((a == numbers[at + k]) & borrow)
        numbers[to + k] = total
    return 1
