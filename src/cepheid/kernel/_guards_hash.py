"""How a list is found by the values of its entries. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import D_DATA, D_HEAD, D_MASK, D_TAIL
from cepheid.kernel._guards_layout import *


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def hash_of(key: cython.longlong[::1], count: cython.Py_ssize_t, index: cython.longlong) -> cython.longlong:
    """A hash of the values in `key`, for an index: 44 bits."""
    found: cython.ulonglong = index + 1
    k: cython.Py_ssize_t = 0
    value: cython.ulonglong = 0
    factor: cython.ulonglong = 0x9E3779B97F4A7C15
    word: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    for k in range(count):
        value = key[k] & word
        found = ((found ^ value) * factor) & word
        found ^= found >> 29
    return (found * factor & word) >> 20


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def nulls_of(
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    w: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.longlong:
    """Which of the slots in shapes[first:stop] are NULL in the cell at w: a bit each."""
    found: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    for k in range(first, stop):
        found = found << 1 | ((words[w + C_NULLS] >> shapes[k]) & 1)
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def key_of(
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    values: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    s: cython.Py_ssize_t,
) -> cython.int:
    """Put into `key` the values of the cell at w that are its key in an index, how many words; 0 where NULL is to be equal to something.

    Where values are carried, NULL is one of them: the last word says which are.
    """
    count: cython.Py_ssize_t = shapes[s + I_KEY]
    equals: cython.Py_ssize_t = count - shapes[s + I_CARRIED]
    k: cython.Py_ssize_t = 0
    slot: cython.int = 0
    for k in range(count):
        slot = shapes[s + I_SLOTS + k]
        if k < equals and ((words[w + C_NULLS] >> slot) & 1) != 0:
            return 0
        key[k] = words[w + values + slot]
    if equals == count:
        return count
    key[count] = nulls_of(words, shapes, w, s + I_SLOTS + equals, s + I_SLOTS + count)
    return count + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def listed(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    macro: cython.longlong,
    shape: cython.longlong,
    s: cython.Py_ssize_t,
    place: cython.longlong,
) -> cython.longlong:
    """The newest entry of a macro state whose values are those in `key`, in the slots that the index at s of `shapes` names; -1 if there is none."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    chained: cython.Py_ssize_t = values + S[S_SLOTS] + node_width - 1
    e: cython.longlong = words[data + (mask + 1) * width + (place & mask)]
    count: cython.Py_ssize_t = shapes[s + I_KEY]
    carried: cython.Py_ssize_t = count - shapes[s + I_CARRIED]
    n: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    while e >= 0:
        n = e >> SHAPE_BITS
        if n < head:
            break
        w = data + (n & mask) * width
        if (e & SHAPES_MASK) == shape and ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) == macro + 1:
            k = 0
            while k < count and words[w + values + shapes[s + I_SLOTS + k]] == key[k]:
                k += 1
            if k == count and (carried == count or nulls_of(words, shapes, w, s + I_SLOTS + carried, s + I_SLOTS + count) == key[count]):
                return n
        e = words[w + chained + node_width * (e & SHAPES_MASK)]
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def chain(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    shape: cython.longlong,
    n: cython.longlong,
    previous: cython.longlong,
    place: cython.longlong,
) -> cython.int:
    """Put entry n first into its chain; `previous`, the entry before it in its list, leaves it (-1: there is none)."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    chained: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] + node_width - 1
    first: cython.Py_ssize_t = data + (mask + 1) * width + (place & mask)
    at: cython.Py_ssize_t = data + (n & mask) * width + chained + node_width * shape
    gone: cython.longlong = previous << SHAPE_BITS | shape
    e: cython.longlong = words[first]
    words[at] = e
    words[first] = n << SHAPE_BITS | shape
    if previous >= 0:
        while e >= 0:
            n = e >> SHAPE_BITS
            if n < head:
                words[at] = -1
                break
            first = data + (n & mask) * width + chained + node_width * (e & SHAPES_MASK)
            if e == gone:
                words[at] = words[first]
                words[first] = SUPERSEDED
                break
            at = first
            e = words[at]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def make_table(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
) -> cython.int:
    """Make the table anew, for a ring of this size, of the newest entry of each list. O(cells)."""
    head: cython.longlong = words[line + D_HEAD]
    tail: cython.longlong = words[line + D_TAIL]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    most_shapes: cython.longlong = S[S_SHAPES]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    first_node: cython.Py_ssize_t = values + S[S_SLOTS]
    n: cython.longlong = 0
    macro: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    for n in range(mask + 1):
        words[data + (mask + 1) * width + n] = -1
    for n in range(head, tail):
        w = data + (n & mask) * width
        macro = ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) - 1
        if macro < 0:
            continue
        for k in range(most_shapes):
            s = (macro * most_shapes + k) * S[S_SHAPE_WIDTH]
            x = w + first_node + node_width * k
            if shapes[s + I_KEY] <= 0 or words[x + N_FORM] < 0 or words[x + node_width - 1] == SUPERSEDED:
                continue
            count = key_of(words, shapes, key, values, w, s)
            chain(S, words, data, mask, head, k, n, -1, hash_of(key, count, macro * most_shapes + k))
    words[b + B_TABLED] = mask
    return 0
