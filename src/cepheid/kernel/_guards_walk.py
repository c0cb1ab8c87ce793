"""What leads to the end of a part, restricted to one support: a walk back to the event that begins the part, and copies. A room of `guards`.

What an event that ends a part would go on from comes in, and one support. The walk reads back to the event that begins the part, along the support:
cells of its next position, and on the way any that are no events of the part, or that no support has. Then, from the first to the last, they are
copied: a copy goes on from copies alone, and one of an event that begins the part from what its cell does. So what comes later can reach nothing of
the part but what is chosen. Copies stand in no list; of each cell behind them they are an entry.

Copies that go on from the same are shared: those of one cell are a chain, by rising keys, and the next cell may go on from the same chain, or from a
longer one. A node is a cell, and how many positions of the support are still to be read. O(e log e), e = pairs of cells one of which goes on from the
other one; and as many cells as there are different chains. Where nothing can stand between the events of a support, the entry of a position is found
by jumps; else each entry behind it is looked at.

Nodes stand in `levels` from the second on, of P_ words each; the first place is what `greatest_of` works with, and bounds that are put aside. Edges
stand there from the back: a node that a cell goes on from, and the next edge. Behind all edges are the first one of the event itself, and where the
last one stands. A cell has two more values: the position at which it was made, and the number of its node while it is visited; and where what is next
is chosen or found before these the first place of its time, or its position where the first place stands for that (see `position_of`); and in front
of that, where events may begin earlier, the first place of the time at which its event begins.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_ask import greatest_of
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import may_pass, passes, pop, push


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def position_of(S: cython.longlong[::1], words: cython.longlong[::1], w: cython.Py_ssize_t) -> cython.longlong:
    """The position of the event of the cell at w."""
    return words[w if S[S_COUNTING] != NEXT else w + C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 3]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def time_of(S: cython.longlong[::1], words: cython.longlong[::1], w: cython.Py_ssize_t) -> cython.longlong:
    """The first place of the time of the cell at w, where what is next is chosen or found."""
    return words[w if S[S_COUNTING] == NEXT else w + C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 3]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def begin_of(S: cython.longlong[::1], words: cython.longlong[::1], w: cython.Py_ssize_t) -> cython.longlong:
    """The first place of the time at which the event of the cell at w begins, where what is next is chosen or found."""
    return time_of(S, words, w) if S[S_BEGINS] < 0 else words[w + C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 4]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def said_of(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    w: cython.Py_ssize_t,
    column: cython.longlong,
) -> cython.longlong:
    """What a column of `places` says of the cell at w: the place of its event in a part, or 0: what it is to all. Nothing of unmarked cells."""
    if (words[w + C_KIND] & LABELS) == UNMARKED:
        return 0
    return places[(words[w + C_KIND] & LABELS) * (1 + S[S_PARTS]) + column]


# ------------------------------------------------------------------------------------------------ copies


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
    tested: cython.int,
) -> cython.int:
    """Make the cell m a copy of n, that goes on from something else; tested: as far as that passes the tests of n, else from all of it."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    w: cython.Py_ssize_t = data + (m & mask) * width
    v: cython.Py_ssize_t = data + (n & mask) * width
    x: cython.Py_ssize_t = w + values + S[S_SLOTS]
    s: cython.Py_ssize_t = (((words[v + C_KIND] >> MACRO_BITS) & MACROS_MASK) - 1) * S[S_SHAPES] * S[S_SHAPE_WIDTH]
    slot: cython.Py_ssize_t = 0
    one: cython.longlong = 1
    least: cython.longlong = 0x7FFFFFFFFFFFFFFF
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    _shape: cython.Py_ssize_t = 0
    for k in range(width):
        words[w + k] = words[v + k]
    words[w + C_CHILD] = child
    words[w + C_START] = start
    words[w + C_REST] = -1
    if tested == 0:
        words[w + C_KIND] &= (one << FORM_BITS) - 1  # the first form has no tests
    for _shape in range(S[S_SHAPES]):
        words[x + N_PREVIOUS] = -1
        words[x + N_JUMP] = -1
        words[x + N_BEST] = m
        words[x + N_FORM] = -1
        if shapes[s + I_KEY] >= 0:
            words[x + N_FORM] = RISING
            for j in range(shapes[s + I_TESTED]):  # a tree of one entry: what goes on from it may still test it
                slot = shapes[s + I_SLOTS + shapes[s + I_KEY] + j]
                words[x + N_ENDS + 2 * j] = words[w + values + slot]
                words[x + N_ENDS + 2 * j + 1] = words[w + values + slot]
                if ((words[w + C_NULLS] >> slot) & 1) != 0:
                    words[x + N_FORM] |= one << (NULL_BITS + j)
                    words[x + N_ENDS + 2 * j] = least
                    words[x + N_ENDS + 2 * j + 1] = -least - 1
        if S[S_CARRIES] != 0:
            words[x + node_width - 2] = -1
        if S[S_HASHED] != 0:
            words[x + node_width - 1] = SUPERSEDED
        x += node_width
        s += S[S_SHAPE_WIDTH]
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def is_copy(S: cython.longlong[::1], words: cython.longlong[::1], w: cython.Py_ssize_t) -> cython.int:
    """Whether the cell at w is a copy: it was made at a later event than its own."""
    return words[w + C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 2] != position_of(S, words, w)


# ------------------------------------------------------------------------------------------------ the walk back


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def put_node(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    nodes: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    m: cython.longlong,
    left: cython.longlong,
    count: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    waiting: cython.Py_ssize_t,
    edge: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Let an edge lead to the node of the cell m: how many nodes there are then; -1 without room.

    left: see `add_node`; -1: the cell is before the part, and stays as it is. A new node is put into the queue, at base;
    waiting: how many are there.
    """
    w: cython.Py_ssize_t = data + (m & mask) * S[S_WIDTH]
    own: cython.Py_ssize_t = w + C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 1
    top: cython.Py_ssize_t = nodes[nodes.shape[0] - 2]
    k: cython.longlong = words[own]
    older: cython.longlong = 0
    if k > 0 and k < count and nodes[PART_WIDTH * k + P_CELL] == m:
        older = k
        while k != 0 and nodes[PART_WIDTH * k + P_LEFT] != left:
            k = nodes[PART_WIDTH * k + P_SAME]
    else:
        k = 0
    if PART_WIDTH * (count + 2) > top - 4 or base + 2 * count + 4 > queue.shape[0] // 3 - PUSHED:
        return -1
    if k == 0:
        k = count
        count += 1
        nodes[PART_WIDTH * k + P_CELL] = m
        nodes[PART_WIDTH * k + P_EDGES] = 0
        nodes[PART_WIDTH * k + P_CHILD] = words[w + C_CHILD]
        nodes[PART_WIDTH * k + P_START] = words[w + C_START] if left < 0 else -1
        nodes[PART_WIDTH * k + P_LEFT] = left
        nodes[PART_WIDTH * k + P_SAME] = older
        words[own] = k
        push(queue, base, waiting, position_of(S, words, w), k, CELL)
    top -= 2
    nodes[top] = k
    nodes[top + 1] = nodes[edge]
    nodes[edge] = top
    nodes[nodes.shape[0] - 2] = top
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def add_node(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    chosen: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    nodes: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    m: cython.longlong,
    part: cython.longlong,
    times: cython.Py_ssize_t,
    left: cython.longlong,
    count: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    waiting: cython.Py_ssize_t,
    edge: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Let an edge lead to the node of the cell m, if it may be read, as `put_node`.

    times: where the positions of the support stand, -1: any cell may be read; left: twice how many have not been read, and of what is next 1 where an
    event has begun at the first one: where the part begins one has to, and where no event that is read is, that position need not be read.
    """
    w: cython.Py_ssize_t = data + (m & mask) * S[S_WIDTH]
    rule: cython.longlong = chosen[HEAD_WIDTH * part + H_RULE]
    label: cython.longlong = said_of(S, words, places, w, 1 + part)
    position: cython.longlong = 0
    begun: cython.longlong = left & 1
    left >>= 1
    if times >= 0:
        position = position_of(S, words, w) if rule == 0 else time_of(S, words, w)
        if (label & PART_SHOWN) != 0:
            if rule == 0 or position != chosen[times + left]:  # of a time several events may be read
                if left == 0 or position != chosen[times + left - 1]:
                    return count
                left -= 1
        elif left > 0 and (position < chosen[times + left - 1] or (rule == 0 and position == chosen[times + left - 1])):
            return count  # it comes in the place of the next position, or before it
        if rule != 0 and (label & (PART_SAYS | PART_BEGINS)) != 0:
            if begin_of(S, words, w) < chosen[times]:
                return count
            begun |= begin_of(S, words, w) == chosen[times]
        if (label & PART_BEGINS) != 0 and (left > 1 or (left == 1 and rule == 0) or (rule != 0 and begun == 0)):
            return count
        if left == 0 and (label & PART_BEGINS) == 0 and rule == 0 and (chosen[HEAD_WIDTH * part + H_LOOSE] & LOOSE_BEGIN) == 0:
            return count
    return put_node(S, words, nodes, queue, data, mask, m, 2 * left + begun, count, base, waiting, edge)


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def find_nodes(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    chosen: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    nodes: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    since: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    part: cython.longlong,
    times: cython.Py_ssize_t,
    left: cython.longlong,
    count: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    popped: cython.Py_ssize_t,
    edge: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Find the cells that may be read, among those from n on that pass a form's tests; an edge leads to each. As `add_node`.

    since: no cell before this position is read. popped: how many nodes have left the queue.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    direct: cython.int = 0  # nothing behind the next position is read
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    if times >= 0 and left > 1:
        since = chosen[times + (left >> 1) - 1]
        direct = S[S_PASSES] == 0 and chosen[HEAD_WIDTH * part + H_RULE] == 0 and (chosen[HEAD_WIDTH * part + H_LOOSE] & LOOSE_BETWEEN) == 0
    while n >= head:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        if words[w + C_POSITION] < low:
            break
        if direct != 0 and words[w + node + N_PREVIOUS] >= head and position_of(S, words, w) > since:
            m = words[w + node + N_JUMP]
            if m >= head and position_of(S, words, data + (m & mask) * width) > since:  # an event may have several entries
                n = m
            else:
                n = words[w + node + N_PREVIOUS]
            continue
        if may_pass(words, forms, w + node, f, at) == 0:
            n = words[w + node + N_JUMP]
            continue
        m = n if passes(words, forms, values, w, f, at) != 0 else -1
        while m >= head:  # copies in a chain may be of different events
            v = data + (m & mask) * width
            if words[v + C_START] < low:
                break
            if position_of(S, words, v) >= since:
                count = add_node(
                    S, words, chosen, places, nodes, queue, data, mask, m, part, times, left, count, base, count - 1 - popped, edge
                )
                if count < 0:
                    return -1
            m = words[v + C_REST]
        if position_of(S, words, w) < since:
            break
        n = words[w + node + N_PREVIOUS]
    return count


# ------------------------------------------------------------------------------------------------ where what is next begins


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def narrow(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    part: cython.longlong,
    lower: cython.longlong,
    upper: cython.longlong,
) -> cython.int:
    """Let the tests of a form that ask where the pattern before a part has ended pass nothing outside of these bounds, too."""
    test: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    for k in range(forms[f + F_COUNT]):
        test = forms[f + F_TESTS + k]
        if (test & APART) == 0 and ((test >> (ENDED_BITS + part)) & 1) != 0:
            if words[at + 2 * k] < lower:
                words[at + 2 * k] = lower
            if words[at + 2 * k + 1] > upper:
                words[at + 2 * k + 1] = upper
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def begin_next(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    chosen: cython.longlong[::1],
    nodes: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    x: cython.Py_ssize_t,
    part: cython.longlong,
    support: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    times: cython.Py_ssize_t,
    before: cython.longlong,
    floor: cython.longlong,
    count: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    popped: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Find what the node at x goes on from, which begins a part of what is next: as `find_nodes`, where that is copies; else it gets a start.

    before: where the front before begins; where they say where they begin alone (times: -1), this is looked for from `support` to `stop`.
    """
    n: cython.longlong = nodes[x + P_CELL]
    w: cython.Py_ssize_t = data + (n & mask) * S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    first: cython.longlong = begin_of(S, words, w) if times < 0 else chosen[times]
    least: cython.longlong = 0
    most: cython.longlong = (stop - support) // 5
    middle: cython.longlong = 0
    found: cython.longlong = -1
    v: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    if times < 0:
        while least < most:
            middle = (least + most) // 2
            if chosen[support + 5 * middle + 3] < first:
                least = middle + 1
            else:
                most = middle
        if support + 5 * least >= stop or chosen[support + 5 * least + 3] != first:
            return count
        before = chosen[support + 5 * least - 2] if least > 0 else -1
    nodes[x + P_LOWER] = before if before > floor else floor
    nodes[x + P_UPPER] = first - 1
    n = words[w + C_CHILD]
    if n < head:
        return count
    # The bounds of the cell, narrowed while it is asked.
    for k in range(2 * forms[f + F_COUNT]):
        nodes[k + LEVEL_WIDTH] = words[w + C_BOUNDS + k]
    narrow(words, forms, f, w + C_BOUNDS, part, nodes[x + P_LOWER], nodes[x + P_UPPER])
    if is_copy(S, words, data + (n & mask) * S[S_WIDTH]) != 0:
        while n >= head and count >= 0:
            v = data + (n & mask) * S[S_WIDTH]
            if words[v + C_START] < low:
                break
            if passes(words, forms, values, v, f, w + C_BOUNDS) != 0:
                count = put_node(S, words, nodes, queue, data, mask, n, -1, count, base, count - 1 - popped, x + P_EDGES)
            n = words[v + C_REST]
    else:
        found = greatest_of(
            S,
            words,
            forms,
            data,
            mask,
            S[S_WIDTH],
            values,
            node,
            head,
            low,
            n,
            f,
            w + C_BOUNDS,
            nodes,
            queue,
            base + count - popped,
        )
    for k in range(2 * forms[f + F_COUNT]):
        words[w + C_BOUNDS + k] = nodes[k + LEVEL_WIDTH]
    if found == -2:
        return -1
    if found >= 0:
        nodes[x + P_START] = words[data + (found & mask) * S[S_WIDTH] + C_START]
        if nodes[x + P_START] > words[w + C_START]:
            nodes[x + P_START] = words[w + C_START]
        if (words[data + (n & mask) * S[S_WIDTH] + node + N_FORM] & RISING) != 0:
            nodes[x + P_CHILD] = found
    return count


# ------------------------------------------------------------------------------------------------ restricted to one support


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def copy_chain(
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
    edge: cython.Py_ssize_t,
    part: cython.longlong,
    base: cython.Py_ssize_t,
    chain: cython.Py_ssize_t,
    m: cython.longlong,
    most: cython.longlong,
) -> cython.longlong:
    """Copy the cells to which edges lead, as far as something goes on from them, from number m on: the number behind the last; -1 past `most`.

    chain: where the length of the last chain stands, then its nodes and copies: what both begin with is one. The first word of the queue behind it
    gets the last copy of this one, -1 without any.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    e: cython.Py_ssize_t = nodes[edge]
    size: cython.Py_ssize_t = 0
    length: cython.longlong = 0
    same: cython.int = 1
    x: cython.Py_ssize_t = 0
    k: cython.longlong = 0
    last: cython.longlong = -1
    begins: cython.longlong = 0
    tested: cython.longlong = 0
    v: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    while e != 0:
        x = PART_WIDTH * nodes[e]
        if nodes[x + P_START] >= 0:
            size = push(queue, base, size, -nodes[x + P_START], nodes[x + P_RANK], nodes[e])
        e = nodes[e + 1]
    while size > 0:
        k = queue[3 * base + 2]
        size = pop(queue, base, size)
        if same != 0 and length < queue[chain] and queue[chain + 2 + 2 * length] == k:
            last = queue[chain + 3 + 2 * length]
            length += 1
            continue
        same = 0
        if m >= most:
            return -1
        x = PART_WIDTH * k
        v = data + (nodes[x + P_CELL] & mask) * width
        w = data + (m & mask) * width
        begins = 0
        tested = 1
        if nodes[x + P_LEFT] >= 0:
            begins = said_of(S, words, places, v, 1 + part) & PART_BEGINS
            tested = begins != 0 or (said_of(S, words, places, v, 0) & BEGINS_NEXT) != 0
        copy_cell(S, words, shapes, data, mask, nodes[x + P_CELL], m, nodes[x + P_CHILD], nodes[x + P_START], tested)
        if begins != 0 and chosen[HEAD_WIDTH * part + H_RULE] != 0:
            narrow(
                words,
                forms,
                S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS),
                w + C_BOUNDS,
                part,
                nodes[x + P_LOWER],
                nodes[x + P_UPPER],
            )
        words[w + C_REST] = last
        last = m
        queue[chain + 2 + 2 * length] = k
        queue[chain + 3 + 2 * length] = m
        length += 1
        m += 1
    if same == 0:
        queue[chain] = length
    queue[chain + 1] = last
    return m


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
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    support: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    left: cython.longlong,
    before: cython.longlong,
    floor: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    bounds: cython.Py_ssize_t,
    part: cython.longlong,
    base: cython.Py_ssize_t,
    m: cython.longlong,
    most: cython.longlong,
) -> cython.longlong:
    """Copy what goes on from the entries from n on by a support of a part, or under ACTIVE_OFFICE by the fronts up to `stop`, from number m on.

    left: see `add_node`. before, floor: as for `begin_next`. The number behind the last copy, -1 where cells have no room up
    to `most`, -2 where nodes have none. The last word of `nodes` gets the copy to go on from, -1 where nothing does.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    root: cython.Py_ssize_t = nodes.shape[0] - 1
    rule: cython.longlong = chosen[HEAD_WIDTH * part + H_RULE]
    times: cython.Py_ssize_t = support + 3 if rule != 1 else -1
    since: cython.longlong = chosen[support + 3] if rule != 0 else 0
    reads: cython.int = 1
    edge: cython.Py_ssize_t = root
    count: cython.Py_ssize_t = 1 + (LEVEL_WIDTH + 2 * S[S_TESTS]) // PART_WIDTH
    popped: cython.Py_ssize_t = count - 1
    last: cython.longlong = 0
    chain: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    k: cython.longlong = 0
    if PART_WIDTH * (count + 1) > root - 4:
        return -2
    nodes[root - 1] = root - 1
    nodes[root] = 0
    while True:
        # PERF: one call, so that the compiler puts the function here: an array costs as much as 26 numbers to pass.
        if reads != 0:
            count = find_nodes(
                S,
                words,
                forms,
                chosen,
                places,
                nodes,
                queue,
                data,
                mask,
                head,
                low,
                since,
                n,
                f,
                bounds,
                part,
                times,
                left,
                count,
                base,
                popped,
                edge,
            )
        if count < 0:
            return -2
        if count - 1 == popped:
            break
        k = queue[3 * base + 1]
        pop(queue, base, count - 1 - popped)
        popped += 1
        x = PART_WIDTH * k
        nodes[x + P_BEFORE] = last
        nodes[x + P_RANK] = popped
        last = k
        reads = 0
        if nodes[x + P_LEFT] < 0:
            continue
        w = data + (nodes[x + P_CELL] & mask) * width
        if (said_of(S, words, places, w, 1 + part) & PART_BEGINS) == 0:
            reads = 1
            n = words[w + C_CHILD]
            f = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
            bounds = w + C_BOUNDS
            left = nodes[x + P_LEFT]
            edge = x + P_EDGES
        elif rule == 0:
            nodes[x + P_START] = words[w + C_START]
        else:
            count = begin_next(
                S,
                words,
                forms,
                chosen,
                nodes,
                queue,
                data,
                mask,
                head,
                low,
                x,
                part,
                support,
                stop,
                times,
                before,
                floor,
                count,
                base,
                popped,
            )
    chain = 3 * (base + count + 1)
    queue[chain] = 0
    k = last
    while True:
        x = PART_WIDTH * k
        edge = x + P_EDGES if k != 0 else root
        if k == 0 or nodes[edge] != 0:
            m = copy_chain(S, words, forms, shapes, chosen, places, nodes, queue, data, mask, edge, part, base, chain, m, most)
            if m < 0:
                return -1
        if k == 0:
            break
        if nodes[edge] != 0 and queue[chain + 1] >= 0:
            w = data + (nodes[x + P_CELL] & mask) * width
            nodes[x + P_CHILD] = queue[chain + 1]
            nodes[x + P_START] = words[data + (queue[chain + 1] & mask) * width + C_START]
            if nodes[x + P_START] > words[w + C_START]:  # any of the events may say where it begins
                nodes[x + P_START] = words[w + C_START]
        k = nodes[x + P_BEFORE]
    nodes[root] = queue[chain + 1]
    return m
