"""How a list of entries is read: what passes tests, the newest that does, all by falling keys. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_compute import all_hold
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_memo import is_unanswered
from cepheid.kernel._guards_sets import lacks


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def passes_one(
    words: cython.longlong[::1],
    w: cython.Py_ssize_t,
    values: cython.Py_ssize_t,
    test: cython.longlong,
    lower: cython.longlong,
    upper: cython.longlong,
) -> cython.int:
    """Whether the entry at w passes a test. values: where a cell has its values."""
    slot: cython.longlong = (test >> SLOT_BITS) & 255
    value: cython.longlong = 0
    inside: cython.int = 0
    if ((words[w + C_NULLS] >> slot) & 1) != 0:
        return (test & NULLS) != 0
    value = words[w + values + slot]
    inside = value >= lower and value <= upper
    return inside == ((test & OUTSIDE) == 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def may_pass_one(
    words: cython.longlong[::1], x: cython.Py_ssize_t, test: cython.longlong, lower: cython.longlong, upper: cython.longlong
) -> cython.int:
    """Whether some entry of the tree of the node at x may pass a test: exactly, where one of the bounds excludes nothing."""
    place: cython.longlong = (test >> PLACE_BITS) & PLACE_MASK
    y: cython.Py_ssize_t = x + N_ENDS + 2 * place
    if (test & NULLS) != 0 and ((words[x + N_FORM] >> (NULL_BITS + place)) & 1) != 0:
        return 1
    if (test & OUTSIDE) != 0:
        return words[y] < lower or words[y + 1] > upper
    return words[y] <= upper and words[y + 1] >= lower


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def passes_apart(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    values: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    test: cython.longlong,
    at: cython.Py_ssize_t,
) -> cython.int:
    """Whether the entry at w passes a test of which no tree knows: its bounds, at `at`, are the value of the event, and whether that is NULL.

    What asks a question without an answer does not pass: who asks finds out by `is_unanswered`, and asks again.
    """
    held: cython.int = 0
    if (test & BESIDE) != 0:
        return 1
    if (test & COMPUTED) != 0:
        held = all_hold(words, forms, values, w, forms.shape[0] - (test >> PLACE_BITS), at, test & AMONG)
        if held < 0:
            return 0
    elif words[at + 1] == 0:
        held = lacks(forms, words[w + values + ((test >> SLOT_BITS) & 255)], words[at])
    return held != ((test & OUTSIDE) != 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def passes(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    values: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.int:
    """Whether the entry at w passes the tests of the form at f, whose bounds are at `at`."""
    k: cython.Py_ssize_t = 0
    test: cython.longlong = 0
    for k in range(forms[f + F_COUNT]):
        test = forms[f + F_TESTS + k]
        if (test & APART) != 0:
            if passes_apart(words, forms, values, w, test, at + 2 * k) == 0:
                return 0
        elif passes_one(words, w, values, test, words[at + 2 * k], words[at + 2 * k + 1]) == 0:
            return 0
    return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def may_pass(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    x: cython.Py_ssize_t,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.int:
    """Whether some entry of the tree of the node at x may pass each of these tests."""
    k: cython.Py_ssize_t = 0
    test: cython.longlong = 0
    for k in range(forms[f + F_COUNT]):
        test = forms[f + F_TESTS + k]
        if (test & APART) == 0 and may_pass_one(words, x, test, words[at + 2 * k], words[at + 2 * k + 1]) == 0:
            return 0
    return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def all_pass(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    x: cython.Py_ssize_t,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.int:
    """Whether the node at x says that all entries of its tree pass each of these tests."""
    k: cython.Py_ssize_t = 0
    y: cython.Py_ssize_t = 0
    test: cython.longlong = 0
    place: cython.longlong = 0
    for k in range(forms[f + F_COUNT]):
        test = forms[f + F_TESTS + k]
        if (test & APART) != 0:
            return 0
        place = (test >> PLACE_BITS) & PLACE_MASK
        y = x + N_ENDS + 2 * place
        if (test & NULLS) == 0 and ((words[x + N_FORM] >> (NULL_BITS + place)) & 1) != 0:
            return 0
        if (test & OUTSIDE) == 0:
            if words[y] < words[at + 2 * k] or words[y + 1] > words[at + 2 * k + 1]:
                return 0
        elif words[y] <= words[at + 2 * k + 1] and words[y + 1] >= words[at + 2 * k]:
            return 0
    return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def has_live(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    x: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
) -> cython.int:
    """Whether an entry of the tree of the node at x lives."""
    best: cython.longlong = words[x + N_BEST]
    return best >= head and words[data + (best & mask) * width + C_START] >= low


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def newest_of_several(
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
) -> cython.longlong:
    """What `newest` finds by several tests: each leaves out trees. O(n) at worst."""
    w: cython.Py_ssize_t = 0
    while n >= head:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        if words[w + C_START] < low:
            break
        if passes(words, forms, values, w, f, at) != 0:
            return n
        if may_pass(words, forms, w + node, f, at) != 0:
            n = words[w + node + N_PREVIOUS]
        else:
            n = words[w + node + N_JUMP]
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def newest(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    values: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    tested: cython.longlong,
    test: cython.longlong,
    lower: cython.longlong,
    upper: cython.longlong,
) -> cython.longlong:
    """The newest entry from n on, of a list whose keys rise, that passes a test (tested 0: any); -1 if none does. O(log n)."""
    w: cython.Py_ssize_t = 0
    while n >= head:
        w = data + (n & mask) * width
        if words[w + C_START] < low:
            break
        if tested == 0 or passes_one(words, w, values, test, lower, upper) != 0:
            return n
        if may_pass_one(words, w + node, test, lower, upper) != 0:
            n = words[w + node + N_PREVIOUS]
        else:
            n = words[w + node + N_JUMP]
    return -1


# ------------------------------------------------------------------------------------------------ queues and levels


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def push(
    queue: cython.longlong[::1],
    base: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    start: cython.longlong,
    number: cython.longlong,
    what: cython.longlong,
) -> cython.Py_ssize_t:
    """Add a key, with what has it, to a binary heap of `size` from `base` on (stride 3); its size then."""
    k: cython.Py_ssize_t = size
    above: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    while k > 0:
        above = (k - 1) >> 1
        v = 3 * (base + above)
        if queue[v] > start or (queue[v] == start and queue[v + 1] >= number):
            break
        w = 3 * (base + k)
        queue[w] = queue[v]
        queue[w + 1] = queue[v + 1]
        queue[w + 2] = queue[v + 2]
        k = above
    w = 3 * (base + k)
    queue[w] = start
    queue[w + 1] = number
    queue[w + 2] = what
    return size + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def pop(queue: cython.longlong[::1], base: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Take the greatest key away; the size then."""
    last: cython.Py_ssize_t = 3 * (base + size - 1)
    start: cython.longlong = queue[last]
    number: cython.longlong = queue[last + 1]
    what: cython.longlong = queue[last + 2]
    k: cython.Py_ssize_t = 0
    below: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    size -= 1
    while 2 * k + 1 < size:
        below = 2 * k + 1
        v = 3 * (base + below)
        if below + 1 < size and (queue[v + 3] > queue[v] or (queue[v + 3] == queue[v] and queue[v + 4] > queue[v + 1])):
            below += 1
            v += 3
        if start > queue[v] or (start == queue[v] and number >= queue[v + 1]):
            break
        w = 3 * (base + k)
        queue[w] = queue[v]
        queue[w + 1] = queue[v + 1]
        queue[w + 2] = queue[v + 2]
        k = below
    w = 3 * (base + k)
    queue[w] = start
    queue[w + 1] = number
    queue[w + 2] = what
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def push_tree(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    queue: cython.longlong[::1],
    base: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    of: cython.longlong,
) -> cython.Py_ssize_t:
    """Push the tree of entry n, by its greatest key, if something in it lives and may pass the tests; the size then.

    of: -1, or the place of the unmarked cell whose tests these are: then both places stand in the queue.
    """
    x: cython.Py_ssize_t = data + (n & mask) * width + node
    best: cython.longlong = words[x + N_BEST]
    most: cython.longlong = 0
    if best >= head:
        most = words[data + (best & mask) * width + C_START]
        if most >= low and may_pass(words, forms, x, f, at) != 0:
            size = push(queue, base, size, most, best, n if of < 0 else CELL - 1 - (of << PLACE_OF | (n & mask)))
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def open_level(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    v: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
) -> cython.int:
    """Make the level at v ready to give the entries from n on that pass. Where keys rise, n passes; else it has its trees in a queue."""
    size: cython.Py_ssize_t = 0
    levels[v + L_BASE] = base
    levels[v + L_CURSOR] = -1
    levels[v + L_FRESH] = 1
    if n >= head and (words[data + (n & mask) * width + node + N_FORM] & RISING) != 0:
        levels[v + L_CURSOR] = n
    else:
        while n >= head:
            size = push_tree(words, forms, data, mask, width, node, head, low, n, f, at, queue, base, size, -1)
            n = words[data + (n & mask) * width + node + N_JUMP]
    levels[v + L_SIZE] = size
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def ask_all(
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
) -> cython.int:
    """Ask the tests of a form of all live entries from n on, so that all questions without an answer are known."""
    x: cython.Py_ssize_t = 0
    while n >= head:
        S[S_WALKED] += 1
        x = data + (n & mask) * width
        if has_live(words, data, mask, width, x + node, head, low) == 0 or may_pass(words, forms, x + node, f, at) == 0:
            n = words[x + node + N_JUMP]
            continue
        if words[x + C_START] >= low:
            passes(words, forms, values, x, f, at)
        n = words[x + node + N_PREVIOUS]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def next_cell(
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
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    v: cython.Py_ssize_t,
) -> cython.longlong:
    """The next cell of a level, by falling keys; -1 if there is none, -2 where the queue needs room first, -3 where a question has no answer yet."""
    base: cython.Py_ssize_t = levels[v + L_BASE]
    size: cython.Py_ssize_t = levels[v + L_SIZE]
    cursor: cython.longlong = levels[v + L_CURSOR]
    room: cython.Py_ssize_t = queue.shape[0] // 3 - 4 - base
    found: cython.longlong = -1
    what: cython.longlong = 0
    n: cython.longlong = 0
    start: cython.longlong = 0
    of: cython.longlong = -1
    _side: cython.int = 0
    w: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    g: cython.Py_ssize_t = 0
    bounds: cython.Py_ssize_t = 0
    if size > room:
        return -2
    if cursor >= 0 and levels[v + L_FRESH] == 0:
        w = data + (cursor & mask) * width
        cursor = words[w + node + N_PREVIOUS]
        if forms[f + F_COUNT] > 1 or (forms[f + F_COUNT] == 1 and (forms[f + F_TESTS] & APART) != 0):
            cursor = newest_of_several(S, words, forms, data, mask, width, values, node, head, low, cursor, f, at)
            if is_unanswered(forms) != 0:
                return -3
        else:  # without a test, its place says nothing
            n = forms[f + F_TESTS] if forms[f + F_COUNT] != 0 else 0
            cursor = newest(words, data, mask, width, values, node, head, low, cursor, forms[f + F_COUNT], n, words[at], words[at + 1])
        levels[v + L_FRESH] = 1
    while True:
        if cursor >= 0:
            start = words[data + (cursor & mask) * width + C_START]
            if size == 0 or start > queue[3 * base] or (start == queue[3 * base] and cursor > queue[3 * base + 1]):
                found = cursor
                levels[v + L_FRESH] = 0
                what = ENTRY
                break
        if size == 0:
            break
        start = queue[3 * base]
        found = queue[3 * base + 1]
        what = queue[3 * base + 2]
        size = pop(queue, base, size)
        if what < 0 and what >= CELL:
            break
        S[S_WALKED] += 1
        n = what
        of = -1
        g = f
        bounds = at
        x = node
        if what < 0:  # the tree of an unmarked cell
            n = CELL - 1 - what
            of = n >> PLACE_OF
            n = head + ((n - head) & mask)
            bounds = data + of * width
            g = S[S_FORM_WIDTH] * (words[bounds + C_KIND] >> FORM_BITS)
            bounds += C_BOUNDS
            x = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[g + F_SHAPE]
        w = data + (n & mask) * width
        if words[w + C_START] >= low:
            if passes(words, forms, values, w, g, bounds) != 0:
                size = push(queue, base, size, words[w + C_START], n, ENTRY)
            elif is_unanswered(forms) != 0:
                size = push(queue, base, size, start, found, what)
                ask_all(S, words, forms, data, mask, width, values, x, head, low, n, g, bounds)
                found = -3
                break
        found = -1
        if ((words[w + x + N_FORM] >> HEIGHT_BITS) & HEIGHT_MASK) > 0:
            n = words[w + x + N_PREVIOUS]
            for _side in range(2):  # the two trees below
                if n < head:
                    break
                size = push_tree(words, forms, data, mask, width, x, head, low, n, g, bounds, queue, base, size, of)
                n = words[data + (n & mask) * width + x + N_JUMP]
        if size > room:
            found = -2
            break
    if found >= 0 and what == ENTRY:
        n = words[data + (found & mask) * width + C_REST]
        if n >= head:
            start = words[data + (n & mask) * width + C_START]
            if start >= low:
                size = push(queue, base, size, start, n, ENTRY)
    levels[v + L_SIZE] = size
    levels[v + L_CURSOR] = cursor
    return found


# ------------------------------------------------------------------------------------------------ unmarked cells


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def next_marked(
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
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    v: cython.Py_ssize_t,
) -> cython.longlong:
    """As `next_cell`, but in the place of an unmarked cell what it goes on from: its trees join the queue of the level."""
    base: cython.Py_ssize_t = levels[v + L_BASE]
    size: cython.Py_ssize_t = 0
    found: cython.longlong = 0
    n: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    g: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    while True:
        found = next_cell(S, words, forms, data, mask, width, values, node, head, low, f, at, levels, queue, v)
        if found < 0:
            return found
        w = data + (found & mask) * width
        if (words[w + C_KIND] & LABELS) != UNMARKED:
            return found
        S[S_WALKED] += 1
        g = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
        x = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[g + F_SHAPE]
        size = levels[v + L_SIZE]
        n = words[w + C_CHILD]
        while n >= head:
            size = push_tree(words, forms, data, mask, width, x, head, low, n, g, w + C_BOUNDS, queue, base, size, found & mask)
            n = words[data + (n & mask) * width + x + N_JUMP]
        levels[v + L_SIZE] = size
        if base + size > queue.shape[0] // 3 - PUSHED:
            return -2


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def shorten(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    w: cython.Py_ssize_t,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    base: cython.Py_ssize_t,
) -> cython.int:
    """Where all that the unmarked cell at w goes on from is one such cell, let it go on from what that one does: else chains grow for ever."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    at: cython.Py_ssize_t = w + C_BOUNDS
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    only: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    open_level(words, forms, data, mask, width, node, head, low, words[w + C_CHILD], f, at, levels, queue, 0, base)
    only = next_cell(S, words, forms, data, mask, width, values, node, head, low, f, at, levels, queue, 0)
    if only < 0 or (words[data + (only & mask) * width + C_KIND] & LABELS) != UNMARKED:
        return 0
    if next_cell(S, words, forms, data, mask, width, values, node, head, low, f, at, levels, queue, 0) != -1:
        return 0
    node = data + (only & mask) * width
    words[w + C_CHILD] = words[node + C_CHILD]
    words[w + C_KIND] ^= (words[w + C_KIND] ^ words[node + C_KIND]) >> FORM_BITS << FORM_BITS
    for k in range(2 * S[S_TESTS]):
        words[at + k] = words[node + C_BOUNDS + k]
    return 0
