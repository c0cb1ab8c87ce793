"""What a condition computes with the values of an entry and of an event: a program of steps over one result. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_memo import answer
from cepheid.kernel._guards_sets import choice_at, choices_of
from cepheid.kernel._guards_wide import copied, narrowed, ordered, real_from, wide_step, widen

if cython.compiled:
    from cython.cimports.libc.math import ceil, floor, fmod
    from cython.cimports.libc.string import memcpy
else:
    import struct
    from math import ceil, floor, fmod


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
    at: cython.Py_ssize_t,
    choices: cython.p_longlong,
) -> cython.int:
    """Whether the result of the program at `program` of `forms` is true, for the entry at w and an event; -1: a question has no answer yet.

    at: where the event's values stand, each with whether it is NULL. choices: where in `forms` that of each set stands, -1 for NULL. A result is
    whole, real or wide, as a step says; a condition is whole, and 0 where it is not true. A result that overflows is NULL, and so is that of a
    division by zero, and what is computed with NULL. Of wide numbers (`_guards_wide`) the upper word comes one step before the lower one; it is the
    sign where none has come. Their array has the result, the operand, room to compute, and what is pushed.
    """
    wide: cython.ulonglong[72]
    upper: cython.longlong = 0
    uppers: cython.int = 0
    most: cython.longlong = 0x7FFFFFFFFFFFFFFF
    least: cython.longlong = -most - 1
    pushed: cython.longlong[8]
    pushed_reals: cython.double[8]
    pushed_nulls: cython.longlong = 0
    depth: cython.Py_ssize_t = 0
    whole: cython.longlong = 0
    real: cython.double = 0.0
    null: cython.int = 1
    other: cython.longlong = 0
    operand: cython.double = 0.0
    lacking: cython.int = 0
    result: cython.double = 0.0
    k: cython.Py_ssize_t = program + 1
    end: cython.Py_ssize_t = k + 2 * forms[program]
    step: cython.longlong = 0
    number: cython.longlong = 0
    source: cython.longlong = 0
    operation: cython.longlong = 0
    asked: cython.longlong[62]
    asked_nulls: cython.longlong = 0
    count: cython.Py_ssize_t = 0
    one: cython.longlong = 1
    unknown: cython.int = 0
    if not cython.compiled:
        pushed, pushed_reals, wide, asked = [0] * 8, [0.0] * 8, [0] * 72, [0] * 62
    while k < end:
        step = forms[k]
        number = forms[k + 1]
        k += 2
        source = (step >> SOURCE_BITS) & SOURCE_MASK
        operation = step & OPERATION_MASK
        lacking = 0
        if source == FROM_SLOT:
            other = words[w + values + number]
            lacking = (words[w + C_NULLS] >> number) & 1
        elif source == FROM_NOW:
            other = words[at + 2 * number]
            lacking = words[at + 2 * number + 1] != 0
        elif source == FROM_PUSHED:
            depth -= 1
            other = pushed[depth]
            lacking = (pushed_nulls >> depth) & 1
        elif source == FROM_MEMBER:
            other = choices[number & MEMBER_MASK]
            number >>= MEMBER_BITS
            if other < 0:
                lacking = 1
                other = 0
            else:
                if number > 0:
                    lacking = (forms[other] >> (number - 1)) & 1
                other = forms[other + number]
        elif source == FROM_NOTHING:
            lacking = 1
        else:
            other = number
        if (step & WIDE) != 0:
            if operation == HIGH:
                upper = other
                uppers = 1
                continue
            if source == FROM_PUSHED:
                copied(wide, WIDE_WORDS, (4 + depth) * WIDE_WORDS)
            elif uppers != 0:
                widen(wide, WIDE_WORDS, upper, other)
            else:
                widen(wide, WIDE_WORDS, -1 if other < 0 else 0, other)
            uppers = 0
            if operation == LOAD:
                copied(wide, 0, WIDE_WORDS)
                null = lacking
            elif operation == PUSH:
                copied(wide, (4 + depth) * WIDE_WORDS, 0)
                pushed_nulls &= ~(1 << depth)
                pushed_nulls |= null << depth
                depth += 1
            elif operation == WIDEN:
                widen(wide, 0, -1 if whole < 0 else 0, whole)
            elif operation == NARROW:
                whole = narrowed(wide, 0)
            elif EQUAL <= operation and operation < ADD:  # noqa: PLR1716 - as C has it
                if null != 0 or lacking != 0:
                    whole = 0
                else:
                    whole = ordered(wide, 0, WIDE_WORDS)
                    if operation == EQUAL:
                        whole = whole == 0
                    elif operation == DIFFERENT:
                        whole = whole != 0
                    elif operation == LESS:
                        whole = whole < 0
                    elif operation == AT_MOST:
                        whole = whole <= 0
                    elif operation == MORE:
                        whole = whole > 0
                    else:
                        whole = whole >= 0
                null = 0
            elif null != 0 or (lacking != 0 and operation >= ADD and operation < CAST):
                null = 1
            elif operation == CAST:
                real = real_from(wide, step >> DIGITS_BITS)
            else:
                null = wide_step(wide, operation, step >> DIGITS_BITS)
            continue
        if (step & REAL) != 0:
            operand = pushed_reals[depth] if source == FROM_PUSHED else real_of(other)
        if operation == LOAD:
            whole = other
            real = operand
            null = lacking
        elif operation < EQUAL:
            if operation == PUSH:
                pushed[depth] = whole
                pushed_reals[depth] = real
                pushed_nulls &= ~(1 << depth)
                pushed_nulls |= null << depth
                depth += 1
            elif operation == UNLESS or operation == IF_TRUE:  # noqa: PLR1714 - C has no `in`
                if null != 0:
                    whole = 0
                    null = 0
                if (whole != 0) == (operation == IF_TRUE):
                    k += 2 * number
            elif operation == IF_KNOWN:
                if null == 0:
                    k += 2 * number
            elif operation == JUMP:
                k += 2 * number
            elif operation == NOT:
                whole = null != 0 or whole == 0
                null = 0
            elif operation == IS_NULL:
                whole = null
                null = 0
            elif whole >= number or whole <= -number:
                null = 1
        elif operation < ADD:
            if null != 0 or lacking != 0:
                whole = 0
            elif (step & REAL) != 0:
                if operation == EQUAL:
                    whole = real == operand
                elif operation == DIFFERENT:
                    whole = real != operand
                elif operation == LESS:
                    whole = real < operand
                elif operation == AT_MOST:
                    whole = real <= operand
                elif operation == MORE:
                    whole = real > operand
                else:
                    whole = real >= operand
            elif operation == EQUAL:
                whole = whole == other
            elif operation == DIFFERENT:
                whole = whole != other
            elif operation == LESS:
                whole = whole < other
            elif operation == AT_MOST:
                whole = whole <= other
            elif operation == MORE:
                whole = whole > other
            else:
                whole = whole >= other
            null = 0
        elif operation == ASK:
            if source != FROM_NOTHING:
                asked[count] = 0 if lacking != 0 else other
                if lacking != 0:
                    asked_nulls |= one << count
                count += 1
            else:
                whole = answer(forms, number, asked_nulls, asked, count)
                unknown |= whole < 0
                null = whole != 0 and whole != 1  # noqa: PLR1714 - C has no `in`
                asked_nulls = 0
                count = 0
        elif null != 0 or (lacking != 0 and operation < CAST):
            null = 1
        elif (step & REAL) != 0:
            if operation == CAST:
                real = whole * 1.0
            elif operation == ABSOLUTE:
                if real < 0:
                    real = -real
            elif operation == NEGATE:
                real = -real
            elif operation > NEGATE:
                if is_finite(real) != 0:
                    real = (floor(real) if operation == FLOOR else ceil(real)) * 1.0
            else:
                if operation == ADD:
                    result = real + operand
                elif operation == SUBTRACT:
                    result = real - operand
                elif operation == SUBTRACT_FROM:
                    result = operand - real
                elif operation == MULTIPLY:
                    result = real * operand
                else:
                    if operation == DIVIDE or operation == REMAINDER:  # noqa: PLR1714 - C has no `in`
                        result = real
                        real = operand
                        operand = result
                    # Now the operand is divided.
                    if real == 0 or (operation >= REMAINDER and is_finite(operand) == 0):
                        null = 1
                        continue
                    result = fmod(operand, real) if operation >= REMAINDER else operand / real
                # NaN is NULL, and so is an infinite number that comes from finite ones.
                if is_finite(result) == 0:
                    null = (is_finite(real) != 0 and is_finite(operand) != 0) or not (result > 0 or result < 0)
                real = result
        elif operation == ABSOLUTE or operation == NEGATE:  # noqa: PLR1714 - C has no `in`
            null = whole == least
            if null == 0 and (whole < 0 or operation == NEGATE):
                whole = -whole
        elif operation == ADD:
            null = (other > 0 and whole > most - other) or (other < 0 and whole < least - other)
            if null == 0:
                whole += other
        elif operation == SUBTRACT:
            null = (other < 0 and whole > most + other) or (other > 0 and whole < least + other)
            if null == 0:
                whole -= other
        elif operation == SUBTRACT_FROM:
            null = (whole < 0 and other > most + whole) or (whole > 0 and other < least + whole)
            if null == 0:
                whole = other - whole
        elif operation == MULTIPLY:
            null = overflows(whole, other)
            if null == 0:
                whole *= other
        else:
            if operation == REMAINDER_OF:
                number = whole
                whole = other
                other = number
            null = other == 0
            if null == 0:
                whole = remainder(whole, other)
    if unknown != 0:
        return -1
    return null == 0 and whole != 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def all_hold(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    values: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    program: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    among: cython.int,
) -> cython.int:
    """Whether a program holds, as above; among: for each choice of the sets that stand behind it, in all ways.

    What has no answer is asked of all choices, up to the first that does not hold.
    """
    choices: cython.longlong[8]
    numbers: cython.longlong[8]
    sets: cython.Py_ssize_t = program + 1 + 2 * forms[program]
    s: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    held: cython.int = 0
    found: cython.int = 1
    if not cython.compiled:
        choices, numbers = [0] * 8, [0] * 8
    if among == 0:
        return holds(words, forms, values, w, program, at, choices)
    for j in range(forms[sets]):
        numbers[j] = 0
        choices[j] = choice_at(forms, words[w + values + forms[sets + 1 + j]], 0)
    while True:
        held = holds(words, forms, values, w, program, at, choices)
        if held == 0:
            return 0
        if held < 0:
            found = -1
        j = forms[sets] - 1
        while j >= 0:
            s = words[w + values + forms[sets + 1 + j]]
            numbers[j] += 1
            if numbers[j] < choices_of(forms, s):
                choices[j] = choice_at(forms, s, numbers[j])
                break
            numbers[j] = 0
            choices[j] = choice_at(forms, s, 0)
            j -= 1
        if j < 0:
            return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def remainder(left: cython.longlong, right: cython.longlong) -> cython.longlong:
    """The remainder of a division, with the sign of what is divided."""
    a: cython.ulonglong = magnitude(left)
    found: cython.longlong = a % magnitude(right)
    return -found if left < 0 else found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def magnitude(value: cython.longlong) -> cython.ulonglong:
    """The absolute value: that of the least number has no 63 bits."""
    found: cython.ulonglong = value if value >= 0 else -(value + 1)
    if value < 0:
        found += 1
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def overflows(left: cython.longlong, right: cython.longlong) -> cython.int:
    """Whether a product has no 64 bits."""
    one: cython.ulonglong = 1
    limit: cython.ulonglong = (one << 63) - 1
    a: cython.ulonglong = magnitude(left)
    b: cython.ulonglong = magnitude(right)
    if (left < 0) != (right < 0):
        limit += 1
    return b != 0 and a > limit // b
