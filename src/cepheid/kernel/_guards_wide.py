"""Exact arithmetic of decimals that one word does not hold: of up to 38 digits, in units of their scale. A room of `guards`.

A number is its sign (1: negative) and then its magnitude in LIMBS words of 32 bits, the lowest first; a limb and what carries into it have 64 bits,
so the same source computes the same in Python. Numbers stand one behind the other in one array, at `r`, `a`, `b`. A result with more than 160 bits is
NULL: no decimal has so many.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_layout import *

if cython.compiled:
    from cython.cimports.libc.math import ldexp
else:
    from math import ldexp


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def widen(n: cython.p_ulonglong, r: cython.Py_ssize_t, upper: cython.longlong, lower: cython.longlong) -> cython.void:
    """The number of 128 bits, as two words."""
    full: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    half: cython.ulonglong = 0xFFFFFFFF
    low: cython.ulonglong = cython.cast(cython.ulonglong, lower) & full
    high: cython.ulonglong = cython.cast(cython.ulonglong, upper) & full
    n[r] = upper < 0
    if upper < 0:
        low = (full - low + 1) & full
        high = (full - high + (low == 0)) & full
    n[r + 1] = low & half
    n[r + 2] = low >> 32
    n[r + 3] = high & half
    n[r + 4] = high >> 32
    n[r + 5] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def narrowed(n: cython.p_ulonglong, r: cython.Py_ssize_t) -> cython.longlong:
    """A number that one word holds, as that."""
    most: cython.ulonglong = 0x7FFFFFFF
    found: cython.longlong = n[r + 1] | ((n[r + 2] & most) << 32)
    return -found if n[r] != 0 else found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def copied(n: cython.p_ulonglong, r: cython.Py_ssize_t, a: cython.Py_ssize_t) -> cython.void:
    """A number is put into the place of another one."""
    k: cython.Py_ssize_t = 0
    for k in range(WIDE_WORDS):
        n[r + k] = n[a + k]


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def magnitudes(n: cython.p_ulonglong, a: cython.Py_ssize_t, b: cython.Py_ssize_t) -> cython.int:
    """Which magnitude is greater: 1 that of a, -1 that of b, 0 neither."""
    k: cython.Py_ssize_t = LIMBS
    while k > 0:
        if n[a + k] != n[b + k]:
            return 1 if n[a + k] > n[b + k] else -1
        k -= 1
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def ordered(n: cython.p_ulonglong, a: cython.Py_ssize_t, b: cython.Py_ssize_t) -> cython.int:
    """Which number is greater, as above."""
    found: cython.int = magnitudes(n, a, b)
    if n[a] == n[b]:
        return -found if n[a] != 0 else found
    k: cython.Py_ssize_t = 0
    rest: cython.ulonglong = 0
    for k in range(1, WIDE_WORDS):
        rest |= n[a + k] | n[b + k]
    if rest == 0:  # 0 with a sign
        return 0
    return -1 if n[a] != 0 else 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def times_and(n: cython.p_ulonglong, r: cython.Py_ssize_t, times: cython.ulonglong, more: cython.ulonglong) -> cython.int:
    """A magnitude times a number of 32 bits, and one more; whether that is too much."""
    half: cython.ulonglong = 0xFFFFFFFF
    k: cython.Py_ssize_t = 0
    for k in range(1, WIDE_WORDS):
        more += n[r + k] * times
        n[r + k] = more & half
        more >>= 32
    return more != 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def taken_from(n: cython.p_ulonglong, r: cython.Py_ssize_t, a: cython.Py_ssize_t, b: cython.Py_ssize_t) -> cython.int:
    """The magnitude of a, less that of b, which is not greater, becomes that of r."""
    half: cython.ulonglong = 0xFFFFFFFF
    borrowed: cython.ulonglong = 0
    least: cython.ulonglong = 0
    k: cython.Py_ssize_t = 0
    for k in range(1, WIDE_WORDS):
        least = n[b + k] + borrowed
        borrowed = n[a + k] < least
        n[r + k] = (n[a + k] + (borrowed << 32) - least) & half
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def added(n: cython.p_ulonglong, r: cython.Py_ssize_t, b: cython.Py_ssize_t) -> cython.int:
    """r + b becomes r; whether that is too much."""
    half: cython.ulonglong = 0xFFFFFFFF
    more: cython.ulonglong = 0
    k: cython.Py_ssize_t = 0
    if n[r] == n[b]:
        for k in range(1, WIDE_WORDS):
            more += n[r + k] + n[b + k]
            n[r + k] = more & half
            more >>= 32
        return more != 0
    if magnitudes(n, r, b) >= 0:
        return taken_from(n, r, r, b)
    n[r] = n[b]
    return taken_from(n, r, b, r)


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def multiplied(n: cython.p_ulonglong, r: cython.Py_ssize_t, b: cython.Py_ssize_t, t: cython.Py_ssize_t) -> cython.int:
    """r * b becomes r, where that is not too much; whether it is. t: room for two numbers."""
    half: cython.ulonglong = 0xFFFFFFFF
    more: cython.ulonglong = 0
    j: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    for k in range(2 * LIMBS):
        n[t + k] = 0
    for j in range(LIMBS):
        more = 0
        for k in range(LIMBS):
            more += n[t + j + k] + n[r + 1 + j] * n[b + 1 + k]
            n[t + j + k] = more & half
            more >>= 32
        n[t + j + LIMBS] = more
    for k in range(LIMBS):
        if n[t + LIMBS + k] != 0:
            return 1
    for k in range(LIMBS):
        n[r + 1 + k] = n[t + k]
    n[r] ^= n[b]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def with_rest(n: cython.p_ulonglong, r: cython.Py_ssize_t, b: cython.Py_ssize_t, t: cython.Py_ssize_t) -> cython.int:
    """The magnitude of r / b becomes that of r, and the rest is put at t; whether b is 0. Bit by bit."""
    k: cython.Py_ssize_t = 0
    bit: cython.Py_ssize_t = 0
    limb: cython.ulonglong = 0
    one: cython.ulonglong = 1
    for k in range(WIDE_WORDS):
        n[t + k] = 0
    if magnitudes(n, b, t) == 0:
        return 1
    k = LIMBS
    while k > 1 and n[r + k] == 0:
        k -= 1
    while k > 0:
        limb = n[r + k]
        n[r + k] = 0
        bit = 31
        while bit >= 0:
            times_and(n, t, 2, (limb >> bit) & 1)
            if magnitudes(n, t, b) >= 0:
                taken_from(n, t, t, b)
                n[r + k] |= one << bit
            bit -= 1
        k -= 1
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def without_digits(n: cython.p_ulonglong, digits: cython.Py_ssize_t) -> cython.void:
    """The number at 0 loses so many digits, which then stand at 2 * WIDE_WORDS; what it was divided by stands before them."""
    _k: cython.Py_ssize_t = 0
    widen(n, WIDE_WORDS, 0, 1)
    for _k in range(digits):
        times_and(n, WIDE_WORDS, 10, 0)
    with_rest(n, 0, WIDE_WORDS, 2 * WIDE_WORDS)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def real_from(n: cython.p_ulonglong, scale: cython.Py_ssize_t) -> cython.double:
    """The double next to the number at 0 with so many digits behind the point; of two the even one.

    Of the quotient by a power of ten 54 bits are found, and whether more follow.
    """
    found: cython.ulonglong = 0
    full: cython.ulonglong = 1
    limb: cython.Py_ssize_t = LIMBS
    bit: cython.Py_ssize_t = 0
    exponent: cython.Py_ssize_t = 0
    more: cython.int = 0
    full <<= 53
    without_digits(n, scale)
    while limb > 0:
        bit = 31
        while bit >= 0:
            if found < full:
                found = 2 * found + ((n[limb] >> bit) & 1)
            else:
                more |= (n[limb] >> bit) & 1
                exponent += 1
            bit -= 1
        limb -= 1
    widen(n, 3 * WIDE_WORDS, 0, 0)
    if magnitudes(n, 2 * WIDE_WORDS, 3 * WIDE_WORDS) != 0:
        while found < full:
            times_and(n, 2 * WIDE_WORDS, 2, 0)
            found *= 2
            exponent -= 1
            if magnitudes(n, 2 * WIDE_WORDS, WIDE_WORDS) >= 0:
                taken_from(n, 2 * WIDE_WORDS, 2 * WIDE_WORDS, WIDE_WORDS)
                found += 1
        more |= magnitudes(n, 2 * WIDE_WORDS, 3 * WIDE_WORDS) != 0
    if found >= full:
        # The last bit says which double is nearer.
        if (found & 1) != 0 and (more != 0 or (found & 2) != 0):
            found += 1
        found -= found & 1
    return ldexp(found * 1.0, cython.cast(cython.int, exponent)) * (-1.0 if n[0] != 0 else 1.0)


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def divided(
    n: cython.p_ulonglong, r: cython.Py_ssize_t, b: cython.Py_ssize_t, t: cython.Py_ssize_t, digits: cython.Py_ssize_t
) -> cython.int:
    """r / b with so many digits behind the point, rounded half up, becomes r; at t the rest stands. digits: -1: the rest becomes r.

    Whether it is too much, or b is 0. Digits of magnitudes in base 2, and those behind the point in base 10.
    """
    k: cython.Py_ssize_t = 0
    _k: cython.Py_ssize_t = 0
    digit: cython.ulonglong = 0
    if with_rest(n, r, b, t) != 0:
        return 1
    if digits < 0:
        for k in range(1, WIDE_WORDS):
            n[r + k] = n[t + k]
        return 0
    for _k in range(digits):
        times_and(n, t, 10, 0)
        digit = 0
        while magnitudes(n, t, b) >= 0:
            taken_from(n, t, t, b)
            digit += 1
        if times_and(n, r, 10, digit) != 0:
            return 1
    times_and(n, t, 2, 0)
    n[r] ^= n[b]
    return times_and(n, r, 1, 1) if magnitudes(n, t, b) >= 0 else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def wide_step(n: cython.p_ulonglong, operation: cython.longlong, digits: cython.Py_ssize_t) -> cython.int:
    """The number at 0 becomes what an operation makes of it and of the one at WIDE_WORDS; whether that is NULL. digits: see `computing.Step`."""
    if operation == ADD:
        return added(n, 0, WIDE_WORDS)
    if operation == SUBTRACT:
        n[WIDE_WORDS] ^= 1
        return added(n, 0, WIDE_WORDS)
    if operation == SUBTRACT_FROM:
        n[0] ^= 1
        return added(n, 0, WIDE_WORDS)
    if operation == MULTIPLY:
        return multiplied(n, 0, WIDE_WORDS, 2 * WIDE_WORDS)
    if operation == ABSOLUTE:
        n[0] = 0
        return 0
    if operation == NEGATE:
        n[0] ^= 1
        return 0
    if operation == FIT:
        return magnitudes(n, 0, WIDE_WORDS) >= 0
    if operation == DIVIDE or operation == REMAINDER:  # noqa: PLR1714 - C has no `in`
        return divided(n, 0, WIDE_WORDS, 2 * WIDE_WORDS, digits - 1)
    if operation >= FLOOR:
        without_digits(n, digits)
        widen(n, 3 * WIDE_WORDS, 0, 0)
        if magnitudes(n, 2 * WIDE_WORDS, 3 * WIDE_WORDS) != 0 and (n[0] != 0) == (operation == FLOOR):
            times_and(n, 0, 1, 1)
        return 0
    copied(n, 3 * WIDE_WORDS, 0)
    copied(n, 0, WIDE_WORDS)
    return divided(n, 0, 3 * WIDE_WORDS, 2 * WIDE_WORDS, digits - 1)
