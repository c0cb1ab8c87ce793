"""How the cells of an event are entered into lists. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import D_DATA, D_HEAD, D_MASK
from cepheid.kernel._guards_hash import chain, hash_of, key_of, listed
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import pop, push
from cepheid.kernel._guards_sets import choices_of, set_joined, set_with


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def gather(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    sets: cython.longlong[::1],
    buckets: cython.longlong[::1],
    event: cython.Py_ssize_t,
    made: cython.int,
    kept_at: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    v: cython.Py_ssize_t,
) -> cython.longlong:
    """Put to `at` what `made` says is made of a slot of the entry at v and a value of the event; 1 where that is NULL, -1 where a set has no room."""
    slot: cython.int = made & SLOTS_MASK
    how: cython.int = (made >> HOW_BITS) & HOW_MASK
    if how == MADE_JOINED:
        words[at] = set_joined(S, words, values, columns, operands, sets, buckets, event, made >> COLUMN_BITS, v + kept_at, v + C_NULLS)
        return -1 if words[at] < 0 else 0
    o: cython.Py_ssize_t = 3 * (made >> COLUMN_BITS)
    before: cython.longlong = words[v + kept_at + slot]
    now: cython.longlong = values[event + columns[o]]
    null: cython.int = (values[event + columns[o + 1]] & columns[o + 2]) != 0
    words[at] = 0
    # PERF: two calls, so that no compiler puts the function here.
    if how == MADE_SET:
        words[at] = set_with(S, sets, buckets, before, now, null)
        return -1 if words[at] < 0 else 0
    if how == MADE_ONE:
        words[at] = set_with(S, sets, buckets, 0, now, null)
        return -1 if words[at] < 0 else 0
    if ((words[v + C_NULLS] >> slot) & 1) != 0 or null != 0:
        return 1
    if how == MADE_SAME and now != before:
        return 1
    words[at] = now if (how == MADE_MAX and now > before) or (how == MADE_MIN and now < before) else before
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def keep_values(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    sets: cython.longlong[::1],
    buckets: cython.longlong[::1],
    event: cython.Py_ssize_t,
    made: cython.Py_ssize_t,
    kept_at: cython.Py_ssize_t,
    slots: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    v: cython.Py_ssize_t,
) -> cython.int:
    """Give the cell at w the values of its slots: those of the event, and those that it keeps of the entry at v, or makes of both.

    A value that is NULL is 0. Returns 0; -1 where a set has no room.
    """
    nulls: cython.longlong = 0
    null: cython.longlong = 0
    one: cython.longlong = 1
    slot: cython.int = 0
    k: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0
    for k in range(operands[made]):
        slot = operands[made + 1 + k]
        if slot < 0:
            slot = -1 - slot
            if slot > SLOTS_MASK:
                null = gather(S, words, values, columns, operands, sets, buckets, event, slot, kept_at, w + kept_at + k, v)
                if null < 0:
                    return -1
                nulls |= null << k
                continue
            words[w + kept_at + k] = words[v + kept_at + slot]
            if ((words[v + C_NULLS] >> slot) & 1) != 0:
                nulls |= one << k
            continue
        o = 3 * slot
        words[w + kept_at + k] = values[event + columns[o]]
        if (values[event + columns[o + 1]] & columns[o + 2]) != 0:
            words[w + kept_at + k] = 0
            nulls |= one << k
    for k in range(operands[made], slots):
        words[w + kept_at + k] = 0
    words[w + C_NULLS] = nulls
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def enter(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    n: cython.longlong,
    low: cython.longlong,
) -> cython.int:
    """Put the entry n into the lists of its macro state. O(1), and the length of a chain."""
    head: cython.longlong = words[line + D_HEAD]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    macros: cython.Py_ssize_t = S[S_MACROS]
    most_shapes: cython.Py_ssize_t = S[S_SHAPES]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    first_node: cython.Py_ssize_t = values + S[S_SLOTS]
    w: cython.Py_ssize_t = data + (n & mask) * width
    macro: cython.longlong = ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) - 1
    start: cython.longlong = words[w + C_START]
    since: cython.longlong = words[b + B_GREATEST + macros + macro]
    first: cython.Py_ssize_t = b + B_GREATEST + 2 * macros + macro * most_shapes
    previous: cython.longlong = 0
    found: cython.longlong = 0
    place: cython.longlong = 0
    below: cython.longlong = 0
    form: cython.longlong = 0
    height: cython.longlong = 0
    least: cython.longlong = 0
    greatest: cython.longlong = 0
    most: cython.longlong = 0
    best: cython.longlong = 0
    slot: cython.int = 0
    count: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    y: cython.Py_ssize_t = 0
    z: cython.Py_ssize_t = 0
    over: cython.int = 0
    side: cython.int = 0
    one: cython.longlong = 1
    for k in range(most_shapes):
        s = (macro * most_shapes + k) * S[S_SHAPE_WIDTH]
        v = first_node + node_width * k
        x = w + v
        words[x + N_FORM] = -1
        words[x + N_PREVIOUS] = -1
        words[x + N_JUMP] = -1
        if shapes[s + I_KEY] < 0:
            continue
        if shapes[s + I_CARRIED] < 0 and words[w + C_CHILD] >= 0:  # no layer; those have no values
            continue
        if shapes[s + I_KEY] == 0:
            found = words[first + k]
            words[first + k] = n
        else:
            count = key_of(words, shapes, key, values, w, s)
            if count == 0:
                continue  # NULL = anything does not hold
            place = hash_of(key, count, macro * most_shapes + k)
            found = listed(S, words, shapes, key, data, mask, head, macro, k, s, place)
            chain(S, words, data, mask, head, k, n, found, place)
        if shapes[s + I_CARRIED] > 0:  # the index by what is equal alone has been there before
            words[x + node_width - 2] = words[w + first_node + node_width * shapes[s + I_OUTER] + N_PREVIOUS]
        previous = -1
        if found >= since and found >= head and words[data + (found & mask) * width + C_POSITION] >= low:
            previous = found
        form = RISING
        best = n
        over = 0
        words[x + N_PREVIOUS] = previous
        words[x + N_JUMP] = previous
        if previous >= 0:
            y = data + (previous & mask) * width
            if (words[y + v + N_FORM] & RISING) == 0 or words[y + C_START] > start or (words[y + C_START] == start and previous > n):
                form = 0
            y += v
            below = words[y + N_JUMP]
            if below >= head:
                z = data + (below & mask) * width + v
                height = (words[y + N_FORM] >> HEIGHT_BITS) & HEIGHT_MASK
                if ((words[z + N_FORM] >> HEIGHT_BITS) & HEIGHT_MASK) == height:  # the node is over these two trees
                    over = 1
                    words[x + N_JUMP] = words[z + N_JUMP]
                    form |= (height + 1) << HEIGHT_BITS | (words[y + N_FORM] | words[z + N_FORM]) >> NULL_BITS << NULL_BITS
                    if (form & RISING) == 0:
                        most = start
                        for side in range(2):
                            place = words[(y if side == 0 else z) + N_BEST]
                            if place >= head:
                                found = words[data + (place & mask) * width + C_START]
                                if found > most or (found == most and place > best):
                                    most = found
                                    best = place
        count = shapes[s + I_TESTED]
        s += I_SLOTS + shapes[s + I_KEY]
        for j in range(count):
            least = 0x7FFFFFFFFFFFFFFF
            greatest = -least - 1
            slot = shapes[s + j]
            if ((words[w + C_NULLS] >> slot) & 1) != 0:
                form |= one << (NULL_BITS + j)
            else:
                least = words[w + values + slot]
                greatest = least
            if over != 0:
                if words[y + N_ENDS + 2 * j] < least:
                    least = words[y + N_ENDS + 2 * j]
                if words[y + N_ENDS + 2 * j + 1] > greatest:
                    greatest = words[y + N_ENDS + 2 * j + 1]
                if words[z + N_ENDS + 2 * j] < least:
                    least = words[z + N_ENDS + 2 * j]
                if words[z + N_ENDS + 2 * j + 1] > greatest:
                    greatest = words[z + N_ENDS + 2 * j + 1]
            words[x + N_ENDS + 2 * j] = least
            words[x + N_ENDS + 2 * j + 1] = greatest
        words[x + N_BEST] = best
        words[x + N_FORM] = form
    if start > words[b + B_GREATEST + macro]:
        words[b + B_GREATEST + macro] = start
    words[b + B_LIVE] |= one << (macro if macro < REST else REST)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def place_of(
    words: cython.longlong[::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    table: cython.Py_ssize_t,
    places: cython.longlong,
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    values: cython.Py_ssize_t,
    slots: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    hashed: cython.int,
) -> cython.Py_ssize_t:
    """The place in a hash, at `table` of `order`, of a cell of the group of the one at w; where it has none, a free one for it."""
    place: cython.longlong = 0
    e: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    if hashed != 0:
        for e in range(slots):
            key[e] = words[w + values + e]
        key[slots] = words[w + C_NULLS]
        place = hash_of(key, slots + 1, (words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) & (places - 1)
    while order[table + place] >= 0:
        v = data + (order[table + place] & mask) * width
        if (((words[v + C_KIND] ^ words[w + C_KIND]) >> MACRO_BITS) & MACROS_MASK) == 0 and words[v + C_NULLS] == words[w + C_NULLS]:
            e = 0
            while e < slots and words[v + values + e] == words[w + values + e]:
                e += 1
            if e == slots:
                break
        place = (place + 1) & (places - 1)
    return table + place


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def sets_of(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    first: cython.longlong,
    made: cython.Py_ssize_t,
    slots: cython.longlong,
) -> cython.longlong:
    """How many different groups the cells from number `first` on are; 0 where none has a set of several values.

    slots: those that have sets, a bit each. The second half of `order`: scratch.
    """
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    table: cython.Py_ssize_t = order.shape[0] // 2
    places: cython.longlong = 4
    found: cython.longlong = 0
    several: cython.int = 0
    place: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    while places < 2 * made:
        places += places
    for j in range(places):
        order[table + j] = -1
    for j in range(made):
        w = data + ((first + j) & mask) * S[S_WIDTH]
        for k in range(S[S_SLOTS]):
            if ((slots >> k) & 1) != 0:
                several |= choices_of(forms, words[w + values + k]) > 1
        place = place_of(words, key, order, table, places, data, mask, S[S_WIDTH], values, S[S_SLOTS], w, 1)
        if order[place] < 0:
            order[place] = first + j
            found += 1
    return found if several != 0 else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def join_groups(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    count: cython.Py_ssize_t,
) -> cython.int:
    """Make one entry of the cells of each group, by rising keys in `order`: that with the greatest stays there, -1 stands for the others."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    slots: cython.Py_ssize_t = S[S_SLOTS]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    table: cython.Py_ssize_t = order.shape[0] // 2
    places: cython.longlong = 4
    place: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    while places < 2 * count:
        places += places
    for j in range(places):
        order[table + j] = -1
    for j in range(count - 1, -1, -1):
        w = data + (order[j] & mask) * width
        # PERF: few are looked at one after the other, in the same places.
        place = place_of(words, key, order, table, places, data, mask, width, values, slots, w, count > 8)
        if order[place] < 0:
            order[place] = order[j]
            continue
        words[data + (order[place] & mask) * width + C_REST] = order[j]  # what has the least key of the entry so far
        for k in range(S[S_SHAPES]):
            words[w + values + slots + S[S_NODE_WIDTH] * k + N_FORM] = -1
        order[place] = order[j]
        order[j] = -1
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def enter_all(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    queue: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    first: cython.longlong,
    made: cython.Py_ssize_t,
    low: cython.longlong,
) -> cython.int:
    """Enter the cells of one event, from number `first` on: those of one group are one entry; the greatest key comes last.

    O(made), where starts do not come in order times a logarithm. queue, and the second half of `order`: scratch.
    """
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    count: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    falls: cython.int = 0
    one: cython.longlong = 1
    macro: cython.longlong = 0
    met: cython.longlong = 0  # bits of macro states
    twice: cython.longlong = 0
    at: cython.Py_ssize_t = C_POSITION if S[S_COUNTING] != NEXT else C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 3  # as `position_of`
    position: cython.longlong = words[data + ((first + made - 1) & mask) * width + at]
    for j in range(made):
        w = data + ((first + j) & mask) * width
        macro = (words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK
        if macro == 0 or words[w + at] != position:  # a copy is of an earlier event
            continue
        macro = one << (macro & 63)
        twice |= met & macro
        met |= macro
        order[count] = first + j
        count += 1
        if count > 1 and words[v + C_START] > words[w + C_START]:
            falls = 1
        v = w
    if falls != 0:
        for j in range(count):
            push(queue, 0, j, words[data + (order[j] & mask) * width + C_START], order[j], CELL)
        for j in range(count - 1, -1, -1):
            order[j] = queue[1]
            pop(queue, 0, j + 1)
    if twice != 0:  # PERF: cells of one group are of one macro state
        join_groups(S, words, key, order, data, mask, count)
    for j in range(count):
        if order[j] >= 0:
            enter(S, words, shapes, key, line, b, order[j], low)
    return 0
