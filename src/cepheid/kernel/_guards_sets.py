"""Sets of values that partial matches keep: each once, behind the forms, so that equal sets have one number. A room of `guards`.

The number of a set is its place. Its words: V_. Its hash is the sum of those of its values, so that of a set with one more is known at once; a table
of places (`buckets`) leads to the last set made with the hash, and a set to the one before.
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
    bucket: cython.Py_ssize_t = 0
    found: cython.Py_ssize_t = 0
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
    bucket = hashed & (buckets.shape[0] - 1)
    found = buckets[bucket]
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
