"""How many matches end in a cell, or which of them is the best: numbers of cells and trees. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import D_DATA, D_HEAD, D_MASK, D_TAIL
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import all_pass, has_live, may_pass, passes
from cepheid.kernel._guards_memo import is_unanswered
from cepheid.kernel._numbers import add

# ------------------------------------------------------------------------------------------------ supports

# A support is 1 + the number of a cell that has it as its best one (0: there is none, or no event is in it). Of each such cell `supports` says the
# support before its event, how many events there are, and a support further down, so that any is O(log n) steps away (as `Supports` in Python).


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def part_of(supports: cython.longlong[::1], mask: cython.longlong, support: cython.longlong, part: cython.Py_ssize_t) -> cython.longlong:
    """What is said of a support: 0 of the empty one."""
    if support == 0:
        return 0
    return supports[3 * ((support - 1) & mask) + part]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def last_of(
    words: cython.longlong[::1], data: cython.Py_ssize_t, mask: cython.longlong, width: cython.Py_ssize_t, support: cython.longlong
) -> cython.longlong:
    """The last position of a support, -1 of the empty one."""
    if support == 0:
        return -1
    return words[data + ((support - 1) & mask) * width + C_POSITION]


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def is_better(
    words: cython.longlong[::1],
    supports: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    first: cython.longlong,
    several: cython.longlong,
    one: cython.longlong,
    other: cython.longlong,
) -> cython.int:
    """Whether the first position in which two supports differ (first 1: NXT), or the last (LAST), is in the one; any is better than none.

    NXT: O(log of their length). LAST: O(their length), but O(1) where they end in different ones. several: equal supports may have several names,
    and NXT takes O(their length), too.
    """
    jump: cython.longlong = 0
    position: cython.longlong = 0
    swapped: cython.int = 0
    if one == 0:
        return 0
    if other == 0:
        return 1
    if first == 0:
        while one != other:
            if last_of(words, data, mask, width, one) != last_of(words, data, mask, width, other):
                return last_of(words, data, mask, width, one) > last_of(words, data, mask, width, other)
            one = part_of(supports, mask, one, LINK_BEFORE)
            other = part_of(supports, mask, other, LINK_BEFORE)
        return 0
    if several != 0:
        while one != other:
            position = last_of(words, data, mask, width, one)
            jump = last_of(words, data, mask, width, other)
            if position >= jump:
                one = part_of(supports, mask, one, LINK_BEFORE)
            if jump >= position:
                other = part_of(supports, mask, other, LINK_BEFORE)
            if position != jump:
                swapped = position > jump
        return swapped
    if part_of(supports, mask, one, LINK_LENGTH) > part_of(supports, mask, other, LINK_LENGTH):
        jump = one
        one = other
        other = jump
        swapped = 1
    while part_of(supports, mask, other, LINK_LENGTH) > part_of(supports, mask, one, LINK_LENGTH):
        jump = part_of(supports, mask, other, LINK_JUMP)
        if part_of(supports, mask, jump, LINK_LENGTH) >= part_of(supports, mask, one, LINK_LENGTH):
            other = jump
        else:
            other = part_of(supports, mask, other, LINK_BEFORE)
    if one == other:
        return swapped  # the longer one goes on
    while part_of(supports, mask, one, LINK_BEFORE) != part_of(supports, mask, other, LINK_BEFORE):
        if part_of(supports, mask, one, LINK_JUMP) != part_of(supports, mask, other, LINK_JUMP):
            one = part_of(supports, mask, one, LINK_JUMP)
            other = part_of(supports, mask, other, LINK_JUMP)
        else:
            one = part_of(supports, mask, one, LINK_BEFORE)
            other = part_of(supports, mask, other, LINK_BEFORE)
    return (last_of(words, data, mask, width, one) < last_of(words, data, mask, width, other)) != (swapped != 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def is_same(
    words: cython.longlong[::1],
    supports: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    several: cython.longlong,
    one: cython.longlong,
    other: cython.longlong,
) -> cython.int:
    """Whether two supports are equal; several: they may have different names, so O(their length)."""
    while one != other:
        if several == 0 or last_of(words, data, mask, width, one) != last_of(words, data, mask, width, other):
            return 0
        one = part_of(supports, mask, one, LINK_BEFORE)
        other = part_of(supports, mask, other, LINK_BEFORE)
    return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def is_later(
    words: cython.longlong[::1],
    supports: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    one: cython.longlong,
    start: cython.longlong,
    other: cython.longlong,
    since: cython.longlong,
) -> cython.int:
    """Whether two supports are equal, and the one begins later, or there is no other. Events that are hidden may begin it: so it may be empty."""
    none: cython.longlong = 0x7FFFFFFFFFFFFFFF
    if start == none or (since != none and start <= since):
        return 0
    return is_same(words, supports, data, mask, width, 1, one, other)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def is_shown(kind: cython.longlong, hidden: cython.longlong) -> cython.int:
    """Whether the event of a cell is in supports: it is marked, and not hidden."""
    return (kind & LABELS) != UNMARKED and (kind & LABELS) >= hidden


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def extended(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    keys: cython.longlong,
    n: cython.longlong,
    before: cython.longlong,
) -> cython.longlong:
    """The support `before` with the event of the cell n. Equal ones are one: that of another cell of the event, if one beside it has it.

    That one must not leave the window before it: where events are hidden, equal supports may begin at different ones. One whose best match has left
    the window may go on from a support that was written anew since, with another length. O(cells of the event).
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    position: cython.longlong = words[data + (n & mask) * width + C_POSITION]
    at: cython.Py_ssize_t = 3 * (n & mask)
    key: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    step: cython.longlong = 0
    jump: cython.longlong = 0
    above: cython.longlong = 0
    side: cython.int = 0
    for side in range(2):
        step = 1 if side == 0 else -1
        m = n + step
        while m >= 0 and n - m <= mask and m - n <= mask and words[data + (m & mask) * width + C_POSITION] == position:
            key = (m & mask) * keys
            if (
                known[2 * key] == S[S_TAG] + m
                and known[2 * key + 1] >= S[S_LOW]
                and known[2 * key + 1] >= known[2 * (n & mask) * keys + 1]
                and counts[key] == m + 1
                and supports[3 * (m & mask) + LINK_BEFORE] == before
            ):
                return m + 1
            m += step
    jump = part_of(supports, mask, before, LINK_JUMP)
    above = part_of(supports, mask, jump, LINK_JUMP)
    supports[at + LINK_BEFORE] = before
    supports[at + LINK_LENGTH] = part_of(supports, mask, before, LINK_LENGTH) + 1
    supports[at + LINK_JUMP] = before
    if 2 * part_of(supports, mask, jump, LINK_LENGTH) == part_of(supports, mask, before, LINK_LENGTH) + part_of(
        supports, mask, above, LINK_LENGTH
    ):
        supports[at + LINK_JUMP] = above
    return n + 1


# ------------------------------------------------------------------------------------------------ counts


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def add_known(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    keys: cython.longlong,
    to: cython.Py_ssize_t,
    n: cython.longlong,
    which: cython.longlong,
    top: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add number `which` of the cell n to the one with key `to`, or push it where it is not known. Of supports, keep the better one.

    The top of the stack then; -1 where it has no room, -2 where the sum could soon overflow.
    """
    key: cython.Py_ssize_t = (n & mask) * keys + which
    size: cython.Py_ssize_t = S[S_SIZE]
    most: cython.ulonglong = 0x4000000000000000
    if known[2 * key] == S[S_TAG] + n and known[2 * key + 1] >= S[S_LOW]:
        if S[S_COUNTING] == CHOSEN:
            if is_better(words, supports, data, mask, S[S_WIDTH], S[S_FIRST], S[S_SEVERAL], counts[key], counts[to]) != 0 or (
                S[S_HIDDEN] != 0
                and is_later(words, supports, data, mask, S[S_WIDTH], counts[key], known[2 * key + 1], counts[to], known[2 * to + 1]) != 0
            ):
                counts[to] = counts[key]
                known[2 * to + 1] = known[2 * key + 1]
            return top
        add(counts, to * size, counts, key * size, size)
        if counts[to * size + size - 1] > most:
            return -2
        if known[2 * key + 1] < known[2 * to + 1]:
            known[2 * to + 1] = known[2 * key + 1]
        return top
    if top >= queue.shape[0]:
        return -1
    queue[top] = n * keys + which
    return top + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def add_entry(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    keys: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    to: cython.Py_ssize_t,
    n: cython.longlong,
    top: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add the numbers of an entry's cells, as `add_known`."""
    w: cython.Py_ssize_t = 0
    while n >= head and top >= 0:
        w = data + (n & mask) * width
        if words[w + C_START] < low:
            break
        top = add_known(S, words, counts, known, supports, queue, data, mask, keys, to, n, 0, top)
        n = words[w + C_REST]
    return top


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def add_all(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    n: cython.longlong,
    which: cython.longlong,
    to: cython.Py_ssize_t,
    top: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add up what number `which` of the live cell n is the sum of, as `add_known`: of trees that pass as a whole the sum is one number."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    first_node: cython.Py_ssize_t = values + S[S_SLOTS]
    keys: cython.longlong = 1 + S[S_SHAPES]
    low: cython.longlong = S[S_LOW]
    w: cython.Py_ssize_t = data + (n & mask) * width
    x: cython.Py_ssize_t = 0
    f: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = w + C_BOUNDS
    node: cython.Py_ssize_t = 0
    _side: cython.int = 0
    if which != 0:  # a tree: its first entry, and the two trees below
        node = first_node + S[S_NODE_WIDTH] * (which - 1)
        top = add_entry(S, words, counts, known, supports, queue, data, mask, width, keys, head, low, to, n, top)
        if ((words[w + node + N_FORM] >> HEIGHT_BITS) & HEIGHT_MASK) > 0:
            n = words[w + node + N_PREVIOUS]
            for _side in range(2):
                if n < head or top < 0:
                    break
                x = data + (n & mask) * width + node
                if has_live(words, data, mask, width, x, head, low) != 0:
                    top = add_known(S, words, counts, known, supports, queue, data, mask, keys, to, n, which, top)
                n = words[x + N_JUMP]
        return top
    f = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    which = 1 + forms[f + F_SHAPE]
    node = first_node + S[S_NODE_WIDTH] * (which - 1)
    n = words[w + C_CHILD]
    while n >= head and top >= 0:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        x = w + node
        if has_live(words, data, mask, width, x, head, low) == 0:
            if (words[x + N_FORM] & RISING) != 0:
                break  # older ones began earlier
            n = words[x + N_JUMP]
        elif may_pass(words, forms, x, f, at) == 0:
            n = words[x + N_JUMP]
        elif all_pass(words, forms, x, f, at) != 0:
            top = add_known(S, words, counts, known, supports, queue, data, mask, keys, to, n, which, top)
            n = words[x + N_JUMP]
        else:
            if passes(words, forms, values, w, f, at) != 0:
                top = add_entry(S, words, counts, known, supports, queue, data, mask, width, keys, head, low, to, n, top)
            n = words[x + N_PREVIOUS]
    return top


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def count_matches(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    outputs: cython.Py_ssize_t,
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    row: cython.longlong,
) -> cython.int:
    """Count the matches that end in the cells of the queue, how many of them there are in all: the last number but one. An exit, or 0.

    Where a strategy chooses, a number is the best support of these matches (see `extended`), in the place of how many they are.
    The stack behind these cells has what is to be known first; where it is left on the way, what is known stays.
    """
    head: cython.longlong = words[line + D_HEAD]
    tail: cython.longlong = words[line + D_TAIL]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    keys: cython.longlong = 1 + S[S_SHAPES]
    size: cython.Py_ssize_t = S[S_SIZE]
    most: cython.ulonglong = 0x4000000000000000
    choosing: cython.int = S[S_COUNTING] == CHOSEN
    passing: cython.int = 0
    base: cython.Py_ssize_t = 3 * outputs
    top: cython.Py_ssize_t = 0
    above: cython.Py_ssize_t = 0
    key: cython.Py_ssize_t = 0
    total: cython.Py_ssize_t = counts.shape[0] - 2 * size
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    which: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    if known.shape[0] < 2 * keys * (mask + 1):
        return EXIT_COUNTS
    if S[S_COUNTED] != row + 1 or S[S_PLACES] != mask + 1:
        S[S_COUNTED] = row + 1
        S[S_PLACES] = mask + 1
        S[S_TAG] = S[S_TAGS] - head
    for k in range(outputs):
        n = queue[3 * k + 1]
        if n >= S[S_TAGS] - S[S_TAG]:
            S[S_TAGS] = S[S_TAG] + n + 1
    for j in range(size):
        counts[total + j] = 0
    for k in range(outputs):
        if base >= queue.shape[0]:
            return EXIT_STACK
        queue[base] = queue[3 * k + 1] * keys
        top = base + 1
        while top > base:
            n = queue[top - 1] // keys
            which = queue[top - 1] - n * keys
            key = (n & mask) * keys + which
            if known[2 * key] == S[S_TAG] + n and known[2 * key + 1] >= S[S_LOW]:
                top -= 1
                continue
            for j in range(size):
                counts[key * size + j] = 0
            known[2 * key] = -1
            known[2 * key + 1] = 0x7FFFFFFFFFFFFFFF
            above = top
            w = data + (n & mask) * S[S_WIDTH]
            if which == 0 and words[w + C_CHILD] < 0:
                counts[key * size] = choosing == 0  # the support before its event is empty
                known[2 * key + 1] = words[w + C_START]
            else:
                above = add_all(S, words, forms, counts, known, supports, queue, data, mask, head, n, which, key, top)
            if is_unanswered(forms) != 0:
                return EXIT_ASKED
            if above < 0:
                return EXIT_STACK if above == -1 else EXIT_WIDE
            if above > top:
                top = above
                continue
            if choosing != 0 and which == 0 and is_shown(words[w + C_KIND], S[S_HIDDEN]) != 0:
                counts[key] = extended(S, words, counts, known, supports, data, mask, keys, n, 0 if words[w + C_CHILD] < 0 else counts[key])
            known[2 * key] = S[S_TAG] + n
            top -= 1
            S[S_WALKED] += 1
            if S[S_WALKED] > S[S_BUDGET]:  # something is known that was not when the kernel was called
                S[S_WALKED] = 0
                return EXIT_PAUSE
        key = (queue[3 * k + 1] & mask) * keys
        if choosing == 0:
            add(counts, total, counts, key * size, size)
            if counts[total + size - 1] > most:
                return EXIT_WIDE
        elif is_better(words, supports, data, mask, S[S_WIDTH], S[S_FIRST], S[S_SEVERAL], counts[key], counts[total]) != 0:
            counts[total] = counts[key]
    S[S_PASSING] = -1
    for k in range(outputs):
        n = queue[3 * k + 1]
        passing |= n >= tail
        if n > S[S_PASSING]:
            S[S_PASSING] = n
    for k in range(outputs):
        n = queue[3 * k + 1]
        # The next event has its number; what has the same support may name it.
        if n >= tail or (passing != 0 and choosing != 0):
            known[2 * (n & mask) * keys] = -1
    if choosing == 0:
        forget_copies(S, known, line, words)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def forget_copies(S: cython.longlong[::1], known: cython.longlong[::1], line: cython.Py_ssize_t, words: cython.longlong[::1]) -> cython.int:
    """Forget the numbers of the copies that stay for the matches of this event alone: the next event has their numbers."""
    keys: cython.longlong = 1 + S[S_SHAPES]
    mask: cython.longlong = words[line + D_MASK]
    n: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    if S[S_PARTS] != 0:
        for n in range(words[line + D_TAIL], S[S_PASSING] + 1):
            for k in range(keys):
                known[2 * ((n & mask) * keys + k)] = -1
    return 0
