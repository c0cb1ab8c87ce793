"""Parts inside a pattern in which a strategy chooses: at an event that ends one, partial matches go on from what is chosen. A room of `guards`.

The chosen supports come in, by the events that end them: another run has found them (`guarded_parts_run`). What an event that ends a part would go on
from is read back to the event that begins it, along one support: at each of its positions the cells are found that the cells behind go on from. Then,
from the first to the last, they are copied: a copy goes on from copies alone, and one of an event that begins the part from what its cell does. So
what comes later can reach nothing of the part but what is chosen. Copies stand in no list; of each cell behind them they are an entry. Unmarked
cells on the way are gone through: they are not copied.

A support stands in `chosen` as the number of its segment, how many positions it has, and these. First there, for each part, what H_ names: where the
next support is, where there are no more, and whether none will come; whether ACTIVE_OFFICE (1) or COMPLETE_HISTORY (2) chooses, and the number of the
value of an event that is the floor then (see `_guards_next`).

In `levels` stand nodes, of P_ words each, from the front: a cell, its edges, and once it is copied what it goes on from, and its start (-1: nothing
goes on); and edges from the back: a node that a cell goes on from, and the next edge. Behind all edges are the first one of the event itself, and
where the last one stands.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import passes


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def next_chosen(
    chosen: cython.longlong[::1], part: cython.Py_ssize_t, segment: cython.longlong, position: cython.longlong
) -> cython.Py_ssize_t:
    """Where the first chosen support of a part stands that ends at an event; -1: there is none, -2: that is not known yet."""
    at: cython.Py_ssize_t = chosen[HEAD_WIDTH * part + H_AT]
    end: cython.Py_ssize_t = chosen[HEAD_WIDTH * part + H_END]
    found: cython.Py_ssize_t = 0
    while at < end and (chosen[at] < segment or (chosen[at] == segment and chosen[at + 1 + chosen[at + 1]] < position)):
        at += 2 + chosen[at + 1]
    chosen[HEAD_WIDTH * part + H_AT] = at
    found = at
    while at < end and chosen[at] == segment and chosen[at + 1 + chosen[at + 1]] == position:
        at += 2 + chosen[at + 1]
    if at == end and chosen[HEAD_WIDTH * part + H_DONE] == 0:
        return -2  # more may follow
    return found if at > found else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def find_below(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    places: cython.const[cython.longlong][::1],
    nodes: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    position: cython.longlong,
    part: cython.longlong,
    first: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    edge: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Find the cells of a position among those from n on that pass a form's tests: nodes, from `first` on, of which there are `count` in all.

    Also those that unmarked cells behind that position go on from. Each has an edge; the first of these is put to `edge`. How many nodes there are
    then; -1 where they have no room.
    """
    top: cython.Py_ssize_t = nodes[nodes.shape[0] - 2]
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    unmarked: cython.Py_ssize_t = 0  # the cells that are still to be gone through, as edges are
    w: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    nodes[edge] = 0
    while True:
        while n >= head:
            S[S_WALKED] += 1
            w = data + (n & mask) * width
            if words[w + C_POSITION] < position:
                break
            if words[w + C_POSITION] > position and S[S_PASSES] == 0:
                m = words[w + node + N_JUMP]
                if m >= head and words[data + (m & mask) * width + C_POSITION] > position:  # an event may have several entries
                    n = m
                else:
                    n = words[w + node + N_PREVIOUS]
                continue
            m = n if passes(words, forms, values, w, f, at) != 0 else -1
            n = words[w + node + N_PREVIOUS]
            while m >= head:
                w = data + (m & mask) * width
                if words[w + C_START] < low:
                    break
                if PART_WIDTH * (count + 1) > top - 2:
                    return -1
                if (words[w + C_KIND] & LABELS) == UNMARKED:
                    if words[w + C_POSITION] > position:
                        top -= 2
                        nodes[top] = m
                        nodes[top + 1] = unmarked
                        unmarked = top
                elif words[w + C_POSITION] == position and places[words[w + C_KIND] & LABELS] >> PART_BITS == part + 1:
                    k = first
                    while k < count and nodes[PART_WIDTH * k + P_CELL] != m:
                        k += 1
                    if k == count:
                        count += 1
                        nodes[PART_WIDTH * k + P_CELL] = m
                    top -= 2
                    nodes[top] = k
                    nodes[top + 1] = nodes[edge]
                    nodes[edge] = top
                m = words[w + C_REST]
        if unmarked == 0:
            break
        w = data + (nodes[unmarked] & mask) * width
        unmarked = nodes[unmarked + 1]
        n = words[w + C_CHILD]
        f = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
        at = w + C_BOUNDS
        node = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    nodes[nodes.shape[0] - 2] = top
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def copy_cell(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    n: cython.longlong,
    m: cython.longlong,
    child: cython.longlong,
    start: cython.longlong,
    begins: cython.int,
) -> cython.int:
    """Make the cell m a copy of n, that goes on from something else, all of it; begins: from what n does, by its tests."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    w: cython.Py_ssize_t = data + (m & mask) * width
    v: cython.Py_ssize_t = data + (n & mask) * width
    x: cython.Py_ssize_t = w + C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS]
    s: cython.Py_ssize_t = (((words[v + C_KIND] >> MACRO_BITS) & MACROS_MASK) - 1) * S[S_SHAPES] * S[S_SHAPE_WIDTH]
    one: cython.longlong = 1
    k: cython.Py_ssize_t = 0
    for k in range(width):
        words[w + k] = words[v + k]
    words[w + C_CHILD] = child
    words[w + C_START] = start
    words[w + C_REST] = -1
    if begins == 0:
        words[w + C_KIND] &= (one << FORM_BITS) - 1  # the first form has no tests
    for k in range(S[S_SHAPES]):
        words[x + N_PREVIOUS] = -1
        words[x + N_JUMP] = -1
        words[x + N_BEST] = m
        words[x + N_FORM] = -1 if shapes[s + k * S[S_SHAPE_WIDTH] + I_KEY] < 0 else RISING
        if S[S_CARRIES] != 0:
            words[x + node_width - 2] = -1
        if S[S_HASHED] != 0:
            words[x + node_width - 1] = SUPERSEDED
        x += node_width
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def copy_below(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    nodes: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    edge: cython.Py_ssize_t,
    beginning: cython.Py_ssize_t,
    m: cython.longlong,
    most: cython.longlong,
) -> cython.longlong:
    """Copy the cells to which edges lead, by rising keys, from number m on: the number behind the last; -1 where there is no room up to `most`.

    beginning: the first of the nodes that begin the part. Those from which nothing goes on are left out.
    """
    e: cython.Py_ssize_t = 0
    best: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    first: cython.longlong = m
    while True:
        best = 0
        e = nodes[edge]
        while e != 0:
            if nodes[e] >= 0:
                at = PART_WIDTH * nodes[e]
                if nodes[at + P_START] >= 0 and (best == 0 or nodes[at + P_START] < nodes[PART_WIDTH * nodes[best] + P_START]):
                    best = e
            e = nodes[e + 1]
        if best == 0:
            return m
        if m >= most:
            return -1
        at = PART_WIDTH * nodes[best]
        copy_cell(S, words, shapes, data, mask, nodes[at + P_CELL], m, nodes[at + P_CHILD], nodes[at + P_START], nodes[best] >= beginning)
        if m > first:
            words[data + (m & mask) * S[S_WIDTH] + C_REST] = m - 1
        nodes[best] = -1 - nodes[best]
        m += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def restrict(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    shapes: cython.const[cython.int][::1],
    chosen: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    nodes: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    support: cython.Py_ssize_t,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    bounds: cython.Py_ssize_t,
    part: cython.longlong,
    m: cython.longlong,
    most: cython.longlong,
) -> cython.longlong:
    """Copy what goes on from the entries from n on by a support of a part, from number m on; the last copy is where to go on from.

    The number behind it, m where nothing goes on so; -1 where cells have no room up to `most`, -2 where nodes have none.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    place: cython.Py_ssize_t = chosen[support + 1] - 2
    root: cython.Py_ssize_t = nodes.shape[0] - 1
    above: cython.Py_ssize_t = 0
    below: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    position: cython.longlong = 0
    last: cython.longlong = m
    if place < 0:
        return m
    nodes[root - 1] = root - 1
    position = chosen[support + 2 + place]
    count = find_below(S, words, forms, places, nodes, data, mask, head, low, n, f, bounds, position, part, 0, 0, root)
    while place > 0 and count > below:
        place -= 1
        position = chosen[support + 2 + place]
        above = below
        below = count
        for k in range(above, below):
            w = data + (nodes[PART_WIDTH * k + P_CELL] & mask) * width
            x = PART_WIDTH * k + P_EDGES
            nodes[x] = 0
            if (places[words[w + C_KIND] & LABELS] & PART_BEGINS) == 0:
                n = words[w + C_CHILD]
                f = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
                count = find_below(
                    S, words, forms, places, nodes, data, mask, head, low, n, f, w + C_BOUNDS, position, part, below, count, x
                )
                if count < 0:
                    return -2
    if count < 0:
        return -2
    for k in range(count - 1, -1, -1):
        w = data + (nodes[PART_WIDTH * k + P_CELL] & mask) * width
        x = PART_WIDTH * k
        nodes[x + P_START] = -1
        if k < below:
            last = m
            m = copy_below(S, words, shapes, nodes, data, mask, x + P_EDGES, below, m, most)
            if m < 0:
                return -1
            if m > last:
                nodes[x + P_CHILD] = m - 1
                nodes[x + P_START] = words[data + ((m - 1) & mask) * width + C_START]
        elif (places[words[w + C_KIND] & LABELS] & PART_BEGINS) != 0:
            nodes[x + P_CHILD] = words[w + C_CHILD]
            nodes[x + P_START] = words[w + C_START]
    last = m
    m = copy_below(S, words, shapes, nodes, data, mask, root, below, m, most)
    return last if m == last else m


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def end_part(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    shapes: cython.const[cython.int][::1],
    chosen: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    nodes: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    kind: cython.longlong,
    support: cython.Py_ssize_t,
    groups: cython.Py_ssize_t,
    m: cython.longlong,
    most: cython.longlong,
) -> cython.Py_ssize_t:
    """Restrict the groups of the queue, that end a part at an event, to what is chosen there: how many there are then.

    The bounds of the event's tests are in cell m, which then counts for nothing, and the copies behind it: up to `most`, less a cell for each group.
    S has how many cells that are. In the place of a number each has an entry of its group before. support: the first one. -1 where cells have no
    room, -2 where nodes or the queue have none.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    label: cython.longlong = places[kind & LABELS]
    part: cython.longlong = (label >> PART_BITS) - 1
    segment: cython.longlong = chosen[support]
    position: cython.longlong = chosen[support + 1 + chosen[support + 1]]
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (kind >> FORM_BITS)
    bounds: cython.Py_ssize_t = data + (m & mask) * width + C_BOUNDS
    room: cython.Py_ssize_t = queue.shape[0] // 3 - PUSHED
    alone: cython.int = 0
    found: cython.Py_ssize_t = groups
    k: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    first: cython.longlong = m
    last: cython.longlong = m
    S[S_COPIED] = 0
    if (label & PART_BEGINS) == 0:
        m += 1
        words[bounds - C_BOUNDS + C_POSITION] = position
        words[bounds - C_BOUNDS + C_START] = position
        words[bounds - C_BOUNDS + C_CHILD] = -1
        words[bounds - C_BOUNDS + C_REST] = -1
        words[bounds - C_BOUNDS + C_KIND] = 0
        words[bounds - C_BOUNDS + C_NULLS] = 0
    while (
        support < chosen[HEAD_WIDTH * part + H_END] and chosen[support] == segment and chosen[support + 1 + chosen[support + 1]] == position
    ):
        if (label & PART_BEGINS) != 0:
            alone |= chosen[support + 1] == 1
        else:
            for k in range(groups):
                last = m
                m = restrict(
                    S,
                    words,
                    forms,
                    shapes,
                    chosen,
                    places,
                    nodes,
                    data,
                    mask,
                    head,
                    low,
                    support,
                    queue[3 * k + 2],
                    f,
                    bounds,
                    part,
                    last,
                    most - 1 - found + groups,
                )
                if m < 0:
                    return m
                if m > last:
                    if found >= room:
                        return -2
                    v = 3 * found
                    queue[v] = words[data + ((m - 1) & mask) * width + C_START]
                    queue[v + 1] = queue[3 * k + 2]
                    queue[v + 2] = m - 1
                    found += 1
        support += 2 + chosen[support + 1]
    if (label & PART_BEGINS) != 0:
        return groups if alone != 0 else 0
    for k in range(3 * (found - groups)):
        queue[k] = queue[3 * groups + k]
    S[S_COPIED] = m - first if found > groups else 0
    return found - groups
