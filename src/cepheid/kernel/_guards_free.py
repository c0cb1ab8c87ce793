"""How a full ring is made ready for more cells without growing, where unmarked events leave cells that nothing leads to. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import D_DATA, D_HEAD, D_MASK, D_TAIL
from cepheid.kernel._guards_layout import *


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def keep_entry(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    order: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    n: cython.longlong,
) -> cython.int:
    """Note that the cells of the entry n are kept, and the lists that they go on from: a bit for each index, and the first for the cell itself."""
    w: cython.Py_ssize_t = 0
    child: cython.longlong = 0
    one: cython.longlong = 1
    while n >= head:
        w = data + (n & mask) * S[S_WIDTH]
        order[n & mask] |= 1
        child = words[w + C_CHILD]
        if child >= head:
            order[child & mask] |= one << (1 + forms[S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS) + F_SHAPE])
        n = words[w + C_REST]
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def moved(order: cython.longlong[::1], mask: cython.longlong, head: cython.longlong, n: cython.longlong) -> cython.longlong:
    """The new number of a cell: -1 where it is not kept; one that was freed before stays as it is."""
    if n < head:
        return n
    return order[n & mask] if order[n & mask] >= 0 else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def free_cells(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    order: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    live: cython.longlong,
    wanted: cython.longlong,
) -> cython.int:
    """Free the cells to which nothing leads, if at least half of the ring is such: 1 if so. The others get new numbers, in their order.

    order: scratch, a word for each place of the ring. Entries that count are kept, and what they go on from: of a list all that is before. The
    numbers of matches are forgotten, and the table of equal values. O(cells).
    """
    head: cython.longlong = words[line + D_HEAD]
    tail: cython.longlong = words[line + D_TAIL]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    macros: cython.Py_ssize_t = S[S_MACROS]
    shapes: cython.Py_ssize_t = S[S_SHAPES]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    first_node: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS]
    since: cython.Py_ssize_t = b + B_GREATEST + macros
    n: cython.longlong = 0
    m: cython.longlong = 0
    macro: cython.longlong = 0
    next_: cython.longlong = 0
    count: cython.longlong = 0
    one: cython.longlong = 1
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    if shapes > 61:
        return 0
    for n in range(head, tail):
        order[n & mask] = 0
    for n in range(tail - 1, head - 1, -1):
        w = data + (n & mask) * width
        macro = ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) - 1
        if macro >= 0 and ((live >> (macro if macro < REST else REST)) & 1) != 0 and n >= words[since + macro]:
            order[n & mask] |= (one << (1 + shapes)) - 1
        if order[n & mask] == 0:
            continue
        keep_entry(S, words, forms, order, data, mask, head, n)
        for k in range(shapes):
            v = first_node + node_width * k
            if ((order[n & mask] >> (1 + k)) & 1) == 0 or words[w + v + N_FORM] < 0:
                continue
            m = words[w + v + N_PREVIOUS]
            while m >= head and ((order[m & mask] >> (1 + k)) & 1) == 0:
                order[m & mask] |= one << (1 + k)
                if m < n:
                    break
                keep_entry(S, words, forms, order, data, mask, head, m)  # of the same event, and passed already
                m = words[data + (m & mask) * width + v + N_PREVIOUS]
    for n in range(head, tail):
        count += order[n & mask] & 1
    if 2 * (tail - head - count) <= mask or count + wanted > mask + 1:
        return 0
    next_ = tail - count
    for n in range(head, tail):
        if (order[n & mask] & 1) != 0:
            order[n & mask] = next_
            next_ += 1
        else:
            order[n & mask] = -2 - next_  # what is the first behind it
    for n in range(tail - 1, head - 1, -1):
        if order[n & mask] < 0:
            continue
        w = data + (n & mask) * width
        words[w + C_CHILD] = moved(order, mask, head, words[w + C_CHILD])
        words[w + C_REST] = moved(order, mask, head, words[w + C_REST])
        for k in range(shapes):
            v = w + first_node + node_width * k
            if words[v + N_FORM] >= 0:
                words[v + N_PREVIOUS] = moved(order, mask, head, words[v + N_PREVIOUS])
                words[v + N_JUMP] = moved(order, mask, head, words[v + N_JUMP])
                words[v + N_BEST] = moved(order, mask, head, words[v + N_BEST])
                if S[S_CARRIES] != 0:
                    words[v + node_width - 2] = moved(order, mask, head, words[v + node_width - 2])
        v = data + (order[n & mask] & mask) * width
        if v != w:
            for k in range(width):
                words[v + k] = words[w + k]
    for k in range(macros):
        n = words[since + k]
        if n >= head and n < tail:
            n = order[n & mask]
            words[since + k] = n if n >= 0 else -2 - n
    for k in range(macros * shapes):
        words[since + macros + k] = moved(order, mask, head, words[since + macros + k])
    words[line + D_HEAD] = tail - count
    words[b + B_TABLED] = -1
    S[S_COUNTED] = 0
    return 1
