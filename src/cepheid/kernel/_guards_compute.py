"""What a comparison computes with the values of an entry and of an event: a program of steps over one number. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_layout import *

if cython.compiled:
    from cython.cimports.libc.string import memcpy
else:
    import struct


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def real_of(word: cython.longlong) -> cython.double:
    """The double of a word that has the order of doubles."""
    most: cython.longlong = 0x7FFFFFFFFFFFFFFF
    bits: cython.longlong = word if word >= 0 else word ^ most
    found: cython.double = 0.0
    if cython.compiled:
        memcpy(cython.address(found), cython.address(bits), 8)
    else:
        (found,) = struct.unpack("d", struct.pack("q", bits))
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def is_finite(value: cython.double) -> cython.int:
    """Whether a double is neither infinite nor NaN."""
    return value - value == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def holds(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    values: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    program: cython.Py_ssize_t,
    now: cython.longlong,
) -> cython.int:
    """Whether the program at `program` of `forms` ends in a comparison that holds, for the entry at w and the value `now` of an event.

    A number is whole or real, as a step says. NULL, a result that overflows, and a division by zero end it: nothing holds.
    """
    most: cython.longlong = 0x7FFFFFFFFFFFFFFF
    least: cython.longlong = -most - 1
    whole: cython.longlong = 0
    saved: cython.longlong = 0
    other: cython.longlong = 0
    real: cython.double = 0.0
    kept: cython.double = 0.0
    operand: cython.double = 0.0
    result: cython.double = 0.0
    _k: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = program + 1
    step: cython.longlong = 0
    source: cython.longlong = 0
    operation: cython.longlong = 0
    for _k in range(forms[program]):
        step = forms[at]
        source = (step >> SOURCE_BITS) & SOURCE_MASK
        operation = step & OPERATION_MASK
        if source == FROM_SLOT:
            if ((words[w + C_NULLS] >> forms[at + 1]) & 1) != 0:
                return 0
            other = words[w + values + forms[at + 1]]
        elif source == FROM_NOW:
            other = now
        else:
            other = forms[at + 1]
        at += 2
        if (step & REAL) != 0:
            if operation >= EQUAL:
                if operation == EQUAL:
                    return kept == real
                if operation == DIFFERENT:
                    return kept != real
                if operation == LESS:
                    return kept < real
                if operation == AT_MOST:
                    return kept <= real
                if operation == MORE:
                    return kept > real
                return kept >= real
            if source != FROM_NOTHING:
                operand = real_of(other)
            if operation == LOAD:
                real = operand
                continue
            if operation == SAVE:
                kept = real
                continue
            if operation == CAST:
                real = whole * 1.0
                continue
            if operation == ABSOLUTE:
                if real < 0:
                    real = -real
                continue
            if operation == NEGATE:
                real = -real
                continue
            if operation == ADD:
                result = real + operand
            elif operation == SUBTRACT:
                result = real - operand
            elif operation == SUBTRACT_FROM:
                result = operand - real
            elif operation == MULTIPLY:
                result = real * operand
            elif operation == DIVIDE:
                if operand == 0:
                    return 0
                result = real / operand
            else:
                if real == 0:
                    return 0
                result = operand / real
            # NaN is NULL, and so is an infinite number that comes from finite ones.
            if is_finite(result) == 0 and ((is_finite(real) != 0 and is_finite(operand) != 0) or not (result > 0 or result < 0)):
                return 0
            real = result
            continue
        if operation >= EQUAL:
            if operation == EQUAL:
                return saved == whole
            if operation == DIFFERENT:
                return saved != whole
            if operation == LESS:
                return saved < whole
            if operation == AT_MOST:
                return saved <= whole
            if operation == MORE:
                return saved > whole
            return saved >= whole
        if operation == LOAD:
            whole = other
        elif operation == SAVE:
            saved = whole
        elif operation == ABSOLUTE or operation == NEGATE:  # noqa: PLR1714 - C has no `in`
            if whole == least:
                return 0
            if whole < 0 or operation == NEGATE:
                whole = -whole
        elif operation == ADD:
            if (other > 0 and whole > most - other) or (other < 0 and whole < least - other):
                return 0
            whole += other
        elif operation == SUBTRACT:
            if (other < 0 and whole > most + other) or (other > 0 and whole < least + other):
                return 0
            whole -= other
        elif operation == SUBTRACT_FROM:
            if (whole < 0 and other > most + whole) or (whole > 0 and other < least + whole):
                return 0
            whole = other - whole
        else:
            if overflows(whole, other) != 0:
                return 0
            whole *= other
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def overflows(left: cython.longlong, right: cython.longlong) -> cython.int:
    """Whether a product has no 64 bits."""
    one: cython.ulonglong = 1
    limit: cython.ulonglong = (one << 63) - 1
    # The uncompiled kernel has no word size: the magnitude of the least number is cut to it.
    a: cython.ulonglong = left if left >= 0 else -(left + 1)
    b: cython.ulonglong = right if right >= 0 else -(right + 1)
    if left < 0:
        a += 1
    if right < 0:
        b += 1
    if (left < 0) != (right < 0):
        limit += 1
    return b != 0 and a > limit // b
