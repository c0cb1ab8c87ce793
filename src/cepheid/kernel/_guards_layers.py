"""Groups that are made when they are asked for, from the layers of a macro state. A room of `guards`.

An event that moves all groups of a macro state, and asks nothing of them, makes one cell: a layer. A group gets its entries for the layers so far
when an event asks for its values. `engine/evaluations/guards/guarded_layers.py` says where that is right; docs/theory/guards-kernel.md, how.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import D_DATA, D_HEAD, D_MASK, D_TAIL
from cepheid.kernel._guards_ask import greatest_of
from cepheid.kernel._guards_enter import enter_all
from cepheid.kernel._guards_hash import hash_of, listed
from cepheid.kernel._guards_layout import *


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def newest_before(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    n: cython.longlong,
    position: cython.longlong,
) -> cython.longlong:
    """Of a list from entry n on the newest entry of an event before `position`; less than head if there is none. O(log n)."""
    jump: cython.longlong = 0
    while n >= head and words[data + (n & mask) * width + C_POSITION] >= position:
        jump = words[data + (n & mask) * width + node + N_JUMP]
        if jump < head or words[data + (jump & mask) * width + C_POSITION] < position:
            jump = words[data + (n & mask) * width + node + N_PREVIOUS]
        n = jump
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def oldest_from(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    n: cython.longlong,
    position: cython.longlong,
) -> cython.longlong:
    """Of a list from entry n on the oldest entry of an event at `position` or later; -1 if there is none. O(log n)."""
    found: cython.longlong = -1
    jump: cython.longlong = 0
    while n >= head and words[data + (n & mask) * width + C_POSITION] >= position:
        found = n
        jump = words[data + (n & mask) * width + node + N_JUMP]
        if jump < head or words[data + (jump & mask) * width + C_POSITION] < position:
            jump = words[data + (n & mask) * width + node + N_PREVIOUS]
        n = jump
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def make_entry(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    layered: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    queue: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    layer: cython.longlong,
    child: cython.longlong,
    start: cython.longlong,
    low: cython.longlong,
    kept: cython.longlong,
) -> cython.longlong:
    """Make the entry of a group for a layer: 0; how many cells it has where there is no room for them, and for `kept` more.

    row: of `layered`. The values of the group are in `key` from `at` on. An event that moves groups in several ways has a cell for each.
    """
    tail: cython.longlong = words[line + D_TAIL]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    count: cython.longlong = 0
    n: cython.longlong = layer
    m: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    form: cython.longlong = layered[row + Y_FORM]
    while n >= words[line + D_HEAD]:
        count += 1
        n = words[data + (n & mask) * width + C_REST]
    if tail - words[line + D_HEAD] + count + kept > mask + 1 or count > order.shape[0] // 4:
        return count
    n = layer
    for m in range(tail + count - 1, tail - 1, -1):
        v = data + (n & mask) * width
        w = data + (m & mask) * width
        words[w + C_POSITION] = words[v + C_POSITION]
        words[w + C_START] = start
        words[w + C_CHILD] = child
        words[w + C_REST] = -1
        words[w + C_KIND] = (words[v + C_KIND] & LABELS) | (layered[row + Y_MACRO] + 1) << MACRO_BITS | form << FORM_BITS
        words[w + C_NULLS] = 0
        for k in range(S[S_SLOTS]):
            words[w + values + k] = key[at + k] if k < layered[row + Y_COUNT] else 0
        n = words[v + C_REST]
    words[line + D_TAIL] = tail + count
    enter_all(S, words, shapes, key, order, queue, line, b, tail, count, low)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def make_group(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    forms: cython.const[cython.longlong][::1],
    layered: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    low: cython.longlong,
    kept: cython.longlong,
) -> cython.longlong:
    """Make what a group lacks for the layers so far: 0; as `make_entry`; -1 where others are to break in first, -2 where the queue needs room first.

    What is made stays. row: of `layered`; of its source this is done first. The values of the group are in `key` from `at` on. O(log n) for each
    entry that it makes, and for each of the source that came since it was asked for last.
    """
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    head: cython.longlong = words[line + D_HEAD]
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    first_node: cython.Py_ssize_t = values + S[S_SLOTS]
    macro: cython.longlong = layered[row + Y_MACRO]
    source: cython.longlong = layered[row + Y_SOURCE]
    wanted: cython.int = layered[row + Y_WANTED]
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * layered[row + Y_FORM]
    shape: cython.longlong = forms[f + F_SHAPE]
    node: cython.Py_ssize_t = first_node + S[S_NODE_WIDTH] * shape  # of the source
    link: cython.Py_ssize_t = first_node + S[S_NODE_WIDTH] * layered[row + Y_LIST]  # of a layer
    s: cython.Py_ssize_t = (source * S[S_SHAPES] + shape) * S[S_SHAPE_WIDTH]
    count: cython.Py_ssize_t = layered[row + Y_COUNT]
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    done: cython.longlong = low - 1  # layers of events up to it are not looked at
    newest: cython.longlong = words[b + B_GREATEST + 2 * S[S_MACROS] + macro * S[S_SHAPES] + layered[row + Y_LIST]]
    found: cython.longlong = 0
    layer: cython.longlong = 0
    child: cython.longlong = 0
    following: cython.longlong = -1
    n: cython.longlong = 0
    until: cython.longlong = 0
    if newest < head or words[data + (newest & mask) * width + C_POSITION] < low:
        return 0
    if layered[row + Y_BELOW] >= 0:
        for k in range(count):
            key[at + S[S_SLOTS] + layered[row + Y_SLOTS + k]] = key[at + k]
        k = (Y_SLOTS + S[S_SLOTS]) * layered[row + Y_BELOW]
        n = make_group(S, words, shapes, forms, layered, key, order, levels, queue, line, b, k, at + S[S_SLOTS], low, kept)
        if n != 0:
            return n
    for k in range(shapes[s + I_KEY]):
        for j in range(count):
            if layered[row + Y_SLOTS + j] == shapes[s + I_SLOTS + k]:
                key[k] = key[at + j]
    n = hash_of(key, shapes[s + I_KEY], source * S[S_SHAPES] + shape)
    found = listed(S, words, shapes, key, data, mask, head, source, shape, s, n)
    if found < head:
        return 0
    for k in range(count):
        key[k] = key[at + k]
    shape = layered[row + Y_OWN]
    s = (macro * S[S_SHAPES] + shape) * S[S_SHAPE_WIDTH]
    n = hash_of(key, count, macro * S[S_SHAPES] + shape)
    n = listed(S, words, shapes, key, data, mask, head, macro, shape, s, n)
    if n >= head and words[data + (n & mask) * width + C_POSITION] > done:
        done = words[data + (n & mask) * width + C_POSITION]
        if wanted == EARLIEST:  # what it goes on from has its first layer
            following = oldest_from(words, data, mask, width, node, head, found, done)
            if following < 0:
                return 0
            done = words[data + (following & mask) * width + C_POSITION]
            following = -1
    until = -1
    while True:
        S[S_WALKED] += 1
        layer = newest if wanted == LATEST else oldest_from(words, data, mask, width, link, head, newest, done + 1)
        if layer < 0 or words[data + (layer & mask) * width + C_POSITION] <= done:
            return 0
        done = words[data + (layer & mask) * width + C_POSITION]
        if done > until:  # other entries of the source are before it
            n = newest_before(words, data, mask, width, node, head, found, done)
            following = oldest_from(words, data, mask, width, node, head, found, done)
            until = words[data + (following & mask) * width + C_POSITION] if following >= 0 else 0x7FFFFFFFFFFFFFFF
            child = -1
            if n >= head:
                child = greatest_of(S, words, forms, data, mask, width, values, node, head, low, n, f, 0, levels, queue, 0)
                if child == -2:
                    return -2
            if child >= 0 and (words[data + (n & mask) * width + node + N_FORM] & RISING) != 0:
                n = child
        if child >= 0:
            j = make_entry(
                S,
                words,
                shapes,
                layered,
                key,
                order,
                queue,
                line,
                b,
                row,
                at,
                layer,
                n,
                words[data + (child & mask) * width + C_START],
                low,
                kept,
            )
            if j != 0:
                return j
        if wanted == LATEST:
            return 0
        if child < 0 or wanted == EARLIEST:
            if following < 0:
                return 0
            done = until
            until = -1
        if child >= 0 and S[S_WALKED] > S[S_BUDGET]:
            return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def make_groups(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    first_of: cython.const[cython.int][::1],
    regions: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    shapes: cython.const[cython.int][::1],
    forms: cython.const[cython.longlong][::1],
    layered: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    c: cython.Py_ssize_t,
    event: cython.Py_ssize_t,
    low: cython.longlong,
    kept: cython.longlong,
) -> cython.longlong:
    """Make what the groups lack that an event with code c asks for; as `make_group`."""
    at: cython.Py_ssize_t = key.shape[0] - (1 + S[S_LAYERS]) * S[S_SLOTS]
    row: cython.Py_ssize_t = 0
    number: cython.Py_ssize_t = 0
    macro: cython.longlong = 0
    r: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    rc: cython.longlong = 0
    known: cython.int = 0
    for number in range(S[S_LAYERS]):
        row = (Y_SLOTS + S[S_SLOTS]) * number
        macro = layered[row + Y_MACRO]
        if words[b + B_GREATEST + macro] < low:
            continue
        r = first_of[macro * S[S_CODES] + c]
        while r >= 0:
            known = regions[r + R_EQUALS] >= 0
            if known != 0:
                for k in range(layered[row + Y_COUNT]):
                    o = 3 * operands[regions[r + R_EQUALS] + k]
                    known &= (values[event + columns[o + 1]] & columns[o + 2]) == 0
                    key[at + k] = values[event + columns[o]]
            if known != 0:
                rc = make_group(S, words, shapes, forms, layered, key, order, levels, queue, line, b, row, at, low, kept)
                if rc != 0:
                    return rc
            r = regions[r + R_NEXT]
    return 0
