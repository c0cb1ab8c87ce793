"""What an event goes on from: of one list, or of each group. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import has_live, newest, newest_of_several, next_cell, open_level, pop, push


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def greatest_of(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    values: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    base: cython.Py_ssize_t,
) -> cython.longlong:
    """Of the entries from n on that pass the tests of a form the one with the greatest key: -1 if none does, -2 where the queue needs room first.

    Where keys rise it is the newest of them. base: where the queue is free.
    """
    test: cython.longlong = 0
    if (words[data + (n & mask) * width + node + N_FORM] & RISING) != 0:
        if forms[f + F_COUNT] > 1:
            return newest_of_several(S, words, forms, data, mask, width, values, node, head, low, n, f, at)
        if forms[f + F_COUNT] != 0:
            test = forms[f + F_TESTS]
        return newest(words, data, mask, width, values, node, head, low, n, forms[f + F_COUNT], test, words[at], words[at + 1])
    open_level(words, forms, data, mask, width, node, head, low, n, f, at, levels, queue, 0, base)
    return next_cell(S, words, forms, data, mask, width, values, node, head, low, f, at, levels, queue, 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def is_over(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    lasting: cython.Py_ssize_t,
    since: cython.longlong,
) -> cython.int:
    """Whether nothing in the list from entry n on can go on: it has left the window, or word `lasting` of each node (0: none) is before `since`.

    O(log n).
    """
    x: cython.Py_ssize_t = 0
    while n >= head:
        x = data + (n & mask) * width + node
        if has_live(words, data, mask, width, x, head, low) != 0:
            if lasting == 0 or words[x + lasting] >= since:
                return 0
        elif (words[x + N_FORM] & RISING) != 0:
            break
        n = words[x + N_JUMP]
    return 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def find_groups(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    lasts: cython.longlong,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Put into the queue, by rising keys, what of each group passes a form's tests: (start, cell, entry to go on from). How many groups that are.

    -1 where the queue needs room first, -1 - the number of groups where it has no room for them. n: the newest entry of all groups; from one entry to
    the next leads the last word but one of a node. Entries that are no longer the newest of their list, and groups in which nothing lives, are taken
    out on the way: O(groups), amortized over the entries, and what `greatest_of` needs for each; where keys do not come in order times a logarithm.
    lasts: the number of a test (0: none) of the time since an event, so that a group in which all are too old for it is never asked again.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    older: cython.Py_ssize_t = node + S[S_NODE_WIDTH] - 2
    room: cython.Py_ssize_t = queue.shape[0] // 3 - PUSHED
    groups: cython.Py_ssize_t = 0
    found: cython.Py_ssize_t = 0
    kept: cython.Py_ssize_t = -1
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    child: cython.longlong = 0
    start: cython.longlong = 0
    number: cython.longlong = 0
    lasting: cython.Py_ssize_t = 0
    since: cython.longlong = 0
    greatest: cython.longlong = 0x7FFFFFFFFFFFFFFF
    full: cython.int = 0
    rises: cython.int = 0
    falls: cython.int = 0
    if lasts > 0 and words[at + 2 * lasts - 2] != greatest:  # else the bounds are past all values, and say nothing of later ones
        lasting = N_ENDS + 2 * (forms[f + F_TESTS + lasts - 1] >> PLACE_BITS) + 1
        since = words[at + 2 * lasts - 2]
    while n >= head:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        if words[w + older + 1] == SUPERSEDED or is_over(words, data, mask, width, node, head, low, n, lasting, since) != 0:
            if kept >= 0:
                words[kept] = words[w + older]
            else:
                kept = w + older
            n = words[w + older]
            continue
        kept = w + older
        groups += 1
        if found == room:
            full = 1
        else:
            child = greatest_of(S, words, forms, data, mask, width, values, node, head, low, n, f, at, levels, queue, found)
            if child == -2:
                return -1
            if child >= 0:
                start = words[data + (child & mask) * width + C_START]
                v = 3 * found
                if found > 0:
                    if start < queue[v - 3] or (start == queue[v - 3] and child < queue[v - 2]):
                        falls = 1
                    else:
                        rises = 1
                queue[v] = start
                queue[v + 1] = child
                queue[v + 2] = child if (words[w + node + N_FORM] & RISING) != 0 else n
                found += 1
        n = words[w + older]
    if full != 0:
        return -1 - groups
    if rises != 0 and falls != 0:
        for groups in range(found):
            v = 3 * groups
            push(queue, 0, groups, queue[v], queue[v + 1], queue[v + 2])
        for groups in range(found, 0, -1):
            start = queue[0]
            child = queue[1]
            number = queue[2]
            pop(queue, 0, groups)
            v = 3 * (groups - 1)
            queue[v] = start
            queue[v + 1] = child
            queue[v + 2] = number
    elif falls != 0:
        v = 0
        w = 3 * (found - 1)
        while v < w:
            for groups in range(3):
                start = queue[v + groups]
                queue[v + groups] = queue[w + groups]
                queue[w + groups] = start
            v += 3
            w -= 3
    return found
