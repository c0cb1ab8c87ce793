"""What an event goes on from: of one list, or of each group. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_hash import hash_of, listed
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import has_live, newest, newest_of_several, next_cell, next_marked, open_level, pop, push


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
        if forms[f + F_COUNT] > 1 or (forms[f + F_COUNT] == 1 and (forms[f + F_TESTS] & APART) != 0):
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
    first: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    lasts: cython.longlong,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Put into the queue, by rising keys, what of each group passes a form's tests: (start, cell, entry to go on from). How many groups that are.

    -1 where the queue needs room first, -1 - the number of groups where it has no room for them. head: the first cell that counts; first: that is
    not freed. Keys are those of marked cells. n: the newest entry of all groups; from one entry to
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
    rising: cython.longlong = 0
    full: cython.int = 0
    rises: cython.int = 0
    falls: cython.int = 0
    if lasts > 0 and words[at + 2 * lasts - 2] != greatest:  # else the bounds are past all values, and say nothing of later ones
        lasting = N_ENDS + 2 * ((forms[f + F_TESTS + lasts - 1] >> PLACE_BITS) & PLACE_MASK) + 1
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
            rising = words[w + node + N_FORM] & RISING
            child = greatest_of(S, words, forms, data, mask, width, values, node, head, low, n, f, at, levels, queue, found)
            if child == -2:
                return -1
            if child >= 0:
                v = data + (child & mask) * width
                start = words[v + C_START]
                number = child
                if (words[v + C_KIND] & LABELS) == UNMARKED:
                    open_level(
                        words, forms, data, mask, width, node, first, low, child if rising != 0 else n, f, at, levels, queue, 0, found
                    )
                    number = next_marked(S, words, forms, data, mask, width, values, node, first, low, f, at, levels, queue, 0)
                    if number == -2:
                        return -1
                v = 3 * found
                if found > 0:
                    if start < queue[v - 3] or (start == queue[v - 3] and number < queue[v - 2]):
                        falls = 1
                    else:
                        rises = 1
                queue[v] = start
                queue[v + 1] = number
                queue[v + 2] = child if rising != 0 else n
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


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def asked_list(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    regions: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    b: cython.Py_ssize_t,
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    event: cython.Py_ssize_t,
    q: cython.longlong,
    r: cython.Py_ssize_t,
    shape: cython.longlong,
) -> cython.longlong:
    """The newest entry of the list, of an index of macro state q, that an event asks; -1 if there is none, or NULL is to be equal to something."""
    macros: cython.Py_ssize_t = S[S_MACROS]
    most_shapes: cython.longlong = S[S_SHAPES]
    s: cython.Py_ssize_t = (q * most_shapes + shape) * S[S_SHAPE_WIDTH]
    n: cython.longlong = 0
    o: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    if shapes[s + I_KEY] == 0:
        n = words[b + B_GREATEST + 2 * macros + q * most_shapes + shape]
    else:
        for k in range(shapes[s + I_KEY]):
            o = 3 * operands[regions[r + R_EQUALS] + k]
            if (values[event + columns[o + 1]] & columns[o + 2]) != 0:
                return -1
            key[k] = values[event + columns[o]]
        n = hash_of(key, shapes[s + I_KEY], q * most_shapes + shape)
        n = listed(S, words, shapes, key, data, mask, head, q, shape, s, n)
    if n < head or n < words[b + B_GREATEST + macros + q]:
        return -1
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def put_bounds(
    words: cython.longlong[::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    regions: cython.const[cython.longlong][::1],
    forms: cython.const[cython.longlong][::1],
    event: cython.Py_ssize_t,
    r: cython.Py_ssize_t,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.int:
    """Put the bounds of a region's tests, for this event, to `at`. 0 where nothing can pass: a value of the event is NULL."""
    greatest: cython.longlong = 0x7FFFFFFFFFFFFFFF  # these bounds exclude nothing
    least: cython.longlong = -greatest - 1
    test: cython.longlong = 0
    now: cython.longlong = 0
    lower: cython.longlong = 0
    upper: cython.longlong = 0
    o: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    for k in range(forms[f + F_COUNT]):
        test = forms[f + F_TESTS + k]
        o = 3 * regions[r + R_TESTS + 3 * k]
        lower = regions[r + R_TESTS + 3 * k + 1]
        upper = regions[r + R_TESTS + 3 * k + 2]
        now = values[event + columns[o]]
        if (test & APART) != 0:
            lower = now
            upper = (values[event + columns[o + 1]] & columns[o + 2]) != 0
        elif (values[event + columns[o + 1]] & columns[o + 2]) != 0:
            # No comparison holds: whoever asks for that gets all.
            if (test & NULLS) == 0:
                return 0
            lower = greatest if (test & OUTSIDE) != 0 else least
            upper = least if (test & OUTSIDE) != 0 else greatest
        elif (lower > 0 and now > greatest - lower) or (upper < 0 and now < least - upper):
            lower = greatest  # a bound is past all values
            upper = least
        else:
            if lower != least:
                lower = least if lower < 0 and now < least - lower else now + lower
            if upper != greatest:
                upper = greatest if upper > 0 and now > greatest - upper else now + upper
        words[at + 2 * k] = lower
        words[at + 2 * k + 1] = upper
    return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def ask(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    regions: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    shapes: cython.const[cython.int][::1],
    forms: cython.const[cython.longlong][::1],
    key: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    b: cython.Py_ssize_t,
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    event: cython.Py_ssize_t,
    q: cython.longlong,
    r: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Put into the queue what an event goes on from by region r of macro state q, and its bounds to `at`: how many groups, as `find_groups`.

    Where no value is carried, all is one group.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    kept_at: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * regions[r + R_FORM]
    shape: cython.longlong = forms[f + F_SHAPE]
    node: cython.Py_ssize_t = kept_at + S[S_SLOTS] + S[S_NODE_WIDTH] * shape
    s: cython.Py_ssize_t = (q * S[S_SHAPES] + shape) * S[S_SHAPE_WIDTH]
    carried: cython.int = shapes[s + I_CARRIED]
    since: cython.longlong = words[b + B_GREATEST + S[S_MACROS] + q]
    n: cython.longlong = 0
    child: cython.longlong = 0
    if carried != 0:
        shape = shapes[s + I_OUTER]
    n = asked_list(S, words, values, columns, regions, operands, shapes, key, b, data, mask, head, event, q, r, shape)
    if n < 0 or put_bounds(words, values, columns, regions, forms, event, r, f, at) == 0:
        return 0
    if carried != 0:
        if since < head:
            since = head
        return find_groups(S, words, forms, data, mask, node, since, head, low, n, f, at, regions[r + R_LASTING], levels, queue)
    child = greatest_of(S, words, forms, data, mask, width, kept_at, node, head, low, n, f, at, levels, queue, 0)
    if child < 0:
        return -1 if child == -2 else 0
    queue[0] = words[data + (child & mask) * width + C_START]
    queue[1] = child
    queue[2] = child if (words[data + (n & mask) * width + node + N_FORM] & RISING) != 0 else n
    return 1
