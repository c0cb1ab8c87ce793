"""Sets of values that partial matches keep: each once, behind the forms, so that equal sets have one number. A room of `guards`.

The number of a set is its place. Its words: V_. Its hash is the sum of those of its values, so that of a set with one more is known at once; a table
of places (`buckets`) leads to the last set made with the hash, and a set to the one before. A set has values of one word, or choices of several
values: rows of as many words as its size says (its stride), ascending by their words.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_layout import *


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def place_in(forms: cython.const[cython.longlong][::1], s: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """How many values of the set at s are less than a value. O(log n)."""
    first: cython.Py_ssize_t = s + V_VALUES
    least: cython.Py_ssize_t = 0
    most: cython.Py_ssize_t = forms[s + V_SIZE] >> 1
    middle: cython.Py_ssize_t = 0
    while least < most:
        middle = (least + most) >> 1
        if forms[first + middle] < value:
            least = middle + 1
        else:
            most = middle
    return least


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def lacks(forms: cython.const[cython.longlong][::1], s: cython.Py_ssize_t, value: cython.longlong) -> cython.int:
    """Whether each value of the set at s differs from a value; NULL does not."""
    place: cython.Py_ssize_t = 0
    if (forms[s + V_SIZE] & 1) != 0:
        return 0
    place = place_in(forms, s, value)
    return place == forms[s + V_SIZE] >> 1 or forms[s + V_VALUES + place] != value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def hash_of_one(value: cython.longlong) -> cython.longlong:
    """A hash of a value: 44 bits, so that sums of them do not overflow."""
    factor: cython.ulonglong = 0x9E3779B97F4A7C15
    word: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    found: cython.ulonglong = value & word
    found = ((found ^ (found >> 32)) * factor) & word
    found = ((found ^ (found >> 29)) * factor) & word
    return found >> 20


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def found_set(
    S: cython.longlong[::1],
    sets: cython.longlong[::1],
    buckets: cython.longlong[::1],
    hashed: cython.longlong,
    size: cython.longlong,
    count: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The set of the words that stand behind all others, `count` of them: one that is there, else the new one."""
    made: cython.Py_ssize_t = S[S_FRESH]
    bucket: cython.Py_ssize_t = hashed & (buckets.shape[0] - 1)
    found: cython.Py_ssize_t = buckets[bucket]
    k: cython.Py_ssize_t = 0
    while found != 0:
        if sets[found + V_HASH] == hashed and sets[found + V_SIZE] == size:
            k = 0
            while k < count and sets[found + V_VALUES + k] == sets[made + V_VALUES + k]:
                k += 1
            if k == count:
                return found
        found = sets[found + V_BEFORE]
    sets[made + V_HASH] = hashed
    sets[made + V_BEFORE] = buckets[bucket]
    sets[made + V_SIZE] = size
    buckets[bucket] = made
    S[S_FRESH] = made + V_VALUES + count
    return made


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def set_with(
    S: cython.longlong[::1],
    sets: cython.longlong[::1],
    buckets: cython.longlong[::1],
    s: cython.Py_ssize_t,
    value: cython.longlong,
    null: cython.int,
) -> cython.Py_ssize_t:
    """The set of the values of the one at s (0: there is none) and of one more, or of NULL; -1 where there is no room for it. O(its values)."""
    size: cython.longlong = 0
    hashed: cython.longlong = 0
    place: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    made: cython.Py_ssize_t = S[S_FRESH]
    k: cython.Py_ssize_t = 0
    if s != 0:
        size = sets[s + V_SIZE]
        hashed = sets[s + V_HASH]
    count = size >> 1
    if null != 0:
        if (size & 1) != 0:
            return s
        place = count
        size += 1
        hashed += 1
    else:
        if s != 0:
            place = place_in(sets, s, value)
            if place < count and sets[s + V_VALUES + place] == value:
                return s
        size += 2
        hashed += hash_of_one(value)
    if made + V_VALUES + count + 1 > S[S_SETS_END]:
        return -1
    for k in range(place):
        sets[made + V_VALUES + k] = sets[s + V_VALUES + k]
    if null == 0:
        sets[made + V_VALUES + place] = value
        for k in range(place, count):
            sets[made + V_VALUES + k + 1] = sets[s + V_VALUES + k]
        count += 1
    return found_set(S, sets, buckets, hashed, size, count)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def words_of(forms: cython.const[cython.longlong][::1], s: cython.Py_ssize_t) -> cython.longlong:
    """How many words the values of the set at s have."""
    one: cython.longlong = 1
    return (forms[s + V_SIZE] & ((one << STRIDE_BITS) - 1)) >> 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def choices_of(forms: cython.const[cython.longlong][::1], s: cython.Py_ssize_t) -> cython.longlong:
    """How many choices the set at s has, NULL included."""
    size: cython.longlong = forms[s + V_SIZE]
    stride: cython.longlong = size >> STRIDE_BITS
    if stride == 0:
        return (size >> 1) + (size & 1)
    return words_of(forms, s) // stride


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def choice_at(forms: cython.const[cython.longlong][::1], s: cython.Py_ssize_t, number: cython.longlong) -> cython.Py_ssize_t:
    """Where a choice of the set at s stands; -1 for NULL."""
    size: cython.longlong = forms[s + V_SIZE]
    stride: cython.longlong = size >> STRIDE_BITS
    if stride == 0:
        return s + V_VALUES + number if number < size >> 1 else -1
    return s + V_VALUES + number * stride


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def hash_of_choice(words: cython.const[cython.longlong][::1], place: cython.Py_ssize_t, stride: cython.Py_ssize_t) -> cython.longlong:
    """A hash of the words of a choice."""
    found: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    for k in range(stride):
        found = hash_of_one(found ^ words[place + k])
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def put_choice(
    words: cython.const[cython.longlong][::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    sets: cython.longlong[::1],
    event: cython.Py_ssize_t,
    product: cython.Py_ssize_t,
    v: cython.Py_ssize_t,
    nulls_of: cython.Py_ssize_t,
    number: cython.longlong,
    place: cython.Py_ssize_t,
) -> cython.int:
    """Write a choice of the product at `product` of `operands` to `place` of `sets`: a word of bits for NULL, and its values; 0: there is none.

    v: where the entry has its values, nulls_of: and the bits of those that are NULL. number: of the choice.
    """
    one: cython.longlong = 1
    nulls: cython.longlong = 0
    width: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    count: cython.longlong = 0
    part: cython.int = 0
    for k in range(operands[product]):
        part = operands[product + 1 + k]
        if part >= 0:
            o = 3 * part
            sets[place + 1 + width] = values[event + columns[o]]
            if (values[event + columns[o + 1]] & columns[o + 2]) != 0:
                sets[place + 1 + width] = 0
                nulls |= one << width
            width += 1
            continue
        part = -1 - part
        s = v + (part & SLOTS_MASK)
        if part >> SLOT_BITS == 0:
            sets[place + 1 + width] = words[s]
            nulls |= ((words[nulls_of] >> (part & SLOTS_MASK)) & 1) << width
            width += 1
            continue
        s = words[s]
        count = choices_of(sets, s)
        o = choice_at(sets, s, number % count)
        number = number // count
        if part >> SLOT_BITS == 1:
            sets[place + 1 + width] = sets[o] if o >= 0 else 0
            if o < 0:
                nulls |= one << width
            width += 1
            continue
        nulls |= sets[o] << width
        for j in range(part >> SLOT_BITS):
            sets[place + 1 + width] = sets[o + 1 + j]
            width += 1
    sets[place] = nulls
    return number == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def compared(
    sets: cython.const[cython.longlong][::1], one: cython.Py_ssize_t, other: cython.Py_ssize_t, stride: cython.Py_ssize_t
) -> cython.int:
    """Whether the words at `one` come before those at `other` (-1), behind them (1), or are the same (0)."""
    k: cython.Py_ssize_t = 0
    for k in range(stride):
        if sets[one + k] != sets[other + k]:
            return -1 if sets[one + k] < sets[other + k] else 1
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def set_joined(
    S: cython.longlong[::1],
    words: cython.const[cython.longlong][::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    sets: cython.longlong[::1],
    buckets: cython.longlong[::1],
    event: cython.Py_ssize_t,
    join: cython.Py_ssize_t,
    v: cython.Py_ssize_t,
    nulls_of: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The set of the choices that `operands` has at `join` (`GuardTables._made`), for the entry whose values stand at v; -1 without room for it.

    O(n (m + log n)) words moved, n: choices that it has, m: that are made.
    """
    made: cython.Py_ssize_t = S[S_FRESH]
    first: cython.Py_ssize_t = made + V_VALUES
    end: cython.Py_ssize_t = first
    product: cython.Py_ssize_t = join + 3
    s: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t = 0
    width: cython.Py_ssize_t = operands[join + 1]
    stride: cython.longlong = 1 if width == 1 else width + 1
    null: cython.longlong = 0
    size: cython.longlong = 0
    hashed: cython.longlong = 0
    number: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    _k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    least: cython.Py_ssize_t = 0
    most: cython.Py_ssize_t = 0
    middle: cython.Py_ssize_t = 0
    if operands[join] >= 0:
        s = words[v + operands[join]]
        hashed = sets[s + V_HASH]
        null = sets[s + V_SIZE] & 1
        end = first + words_of(sets, s)
        if end > S[S_SETS_END]:
            return -1
        for k in range(end - first):
            sets[first + k] = sets[s + V_VALUES + k]
    for _k in range(operands[join + 2]):
        number = 0
        while True:
            # The row is written behind a place for it, so that it is not overwritten where it is put in.
            row = end + width + 1
            if row + width + 1 > S[S_SETS_END]:
                return -1
            if put_choice(words, values, columns, operands, sets, event, product, v, nulls_of, number, row) == 0:
                break
            number += 1
            if width == 1:
                if sets[row] != 0:
                    hashed += 1 - null
                    null = 1
                    continue
                row += 1
            least = 0
            most = (end - first) // stride
            while least < most:
                middle = (least + most) >> 1
                if compared(sets, first + middle * stride, row, stride) < 0:
                    least = middle + 1
                else:
                    most = middle
            least = first + least * stride
            if least < end and compared(sets, least, row, stride) == 0:
                continue
            hashed += hash_of_one(sets[row]) if stride == 1 else hash_of_choice(sets, row, stride)
            for j in range(end - 1, least - 1, -1):
                sets[j + stride] = sets[j]
            for j in range(stride):
                sets[least + j] = sets[row + j]
            end += stride
        product += 1 + operands[product]
    size = (end - first) * 2 + null
    if stride > 1:
        size |= stride << STRIDE_BITS
    return found_set(S, sets, buckets, hashed, size, end - first)
