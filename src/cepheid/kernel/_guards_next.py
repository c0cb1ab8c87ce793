"""What is next inside the pattern: which matches of a part come first, and partial matches that go on from these alone. A room of `guards`.

A match of q is next after one of p that ends at a, if q begins at a later time, none that begins behind a has ended at an earlier time (a FLOOR, a
value of the event: the greatest start of those that have), and none that begins behind a and ends at the same time comes first: under ACTIVE_OFFICE
it begins first; under COMPLETE_HISTORY the last time that one of both has and the other one has not is the other one's. So what is next is found
from the front: of all matches that end at a time, the one that comes first of all; then the first one of those that begin later; and so on. Each of
them is next for the ends of p from where the one before begins to where it begins itself, and not for others. This is a FRONT: its times, of which
the first says where it begins; under ACTIVE_OFFICE its first and last one alone.

A run of q by itself gives the fronts (`give_next`). It counts with the first place of each time in the place of positions, so times are equal where
they are. What begins at the floor or before it is gone: so each start is given at the ends of one time alone, and a partition keeps what is behind
the floor. Under ACTIVE_OFFICE all cells that a trigger reaches are visited once, and where they begin is sorted: O(r log r). Under COMPLETE_HISTORY
times are chosen from the last to the first, each the least one at which there is a cell from which a match goes on that begins behind the front
before: O(r) for each time of each front.

The run around goes back from an event that ends q to those that begin it, and reads what the fronts say (`end_next`): under ACTIVE_OFFICE any cells,
under COMPLETE_HISTORY those of the next time, or of the same one. Where q begins, the test of the guard that leaves out what p cannot go on with gets
narrower bounds: the interval of the front. Then, from the first to the last, these cells are copied, each to go on from copies. Copies that go on
from the same are shared: those of one cell are a chain, by rising keys, and the next cell may go on from the same chain, or from a longer one.
A node is a cell and, under COMPLETE_HISTORY, how many times of the front are still to be read. O(e log e), e = pairs of cells one of which goes on
from the other one; and as many cells as there are different chains.

Nodes stand in `levels` from the second on, of NEXT_WIDTH words each; the first place is what `greatest_of` works with. Edges as in `_guards_parts`.
A cell has three more values: the first place of its time, the position at which it was made, and the number of its node while it is visited.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import D_DATA, D_HEAD, D_MASK
from cepheid.kernel._guards_ask import greatest_of
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import may_pass, passes, pop, push
from cepheid.kernel._guards_memo import is_unanswered
from cepheid.kernel._guards_parts import copy_cell

# ------------------------------------------------------------------------------------------------ what comes first


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def reach(
    words: cython.longlong[::1],
    levels: cython.longlong[::1],
    node: cython.Py_ssize_t,
    n: cython.longlong,
    count: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Put the cell n behind those that have been reached, unless it is one of them: how many they are then; -1 without room.

    node: where the cell has the number of its node.
    """
    k: cython.longlong = words[node]
    if k >= 0 and k < count and levels[2 * k] == n:
        return count
    if 2 * count + 2 > levels.shape[0]:
        return -1
    words[node] = count
    levels[2 * count] = n
    levels[2 * count + 1] = 0
    return count + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def reach_below(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    n: cython.longlong,
    count: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Reach what the cell n goes on from: how many cells have been reached then; -1 without room.

    Where nothing is tested, all before an entry have been reached when that one was reached so: a bit for each index says that.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    own: cython.Py_ssize_t = values + S[S_SLOTS] - 1
    low: cython.longlong = S[S_LOW]
    w: cython.Py_ssize_t = data + (n & mask) * width
    at: cython.Py_ssize_t = w + C_BOUNDS
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    shape: cython.longlong = forms[f + F_SHAPE]
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * shape
    free: cython.int = forms[f + F_COUNT] == 0 and shape < 62
    v: cython.Py_ssize_t = 0
    k: cython.longlong = 0
    m: cython.longlong = 0
    one: cython.longlong = 1
    n = words[w + C_CHILD]
    while n >= head:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        if words[w + C_POSITION] < low:
            break
        if may_pass(words, forms, w + node, f, at) == 0:
            n = words[w + node + N_JUMP]
            continue
        if passes(words, forms, values, w, f, at) != 0:
            m = n
            while m >= head:
                v = data + (m & mask) * width
                if words[v + C_START] < low:
                    break
                count = reach(words, levels, v + own, m, count)
                if count < 0:
                    return -1
                m = words[v + C_REST]
            k = words[w + own]
            if free != 0 and k >= 0 and k < count and levels[2 * k] == n:
                if ((levels[2 * k + 1] >> shape) & 1) != 0:
                    break
                levels[2 * k + 1] |= one << shape
        n = words[w + node + N_PREVIOUS]
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def find_starts(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    outputs: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Put into the queue, behind the cells that end them, where matches begin, the first one first: how many cells begin one; -1 without room."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    own: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 1
    count: cython.Py_ssize_t = 0
    found: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    for k in range(outputs):
        n = queue[3 * k + 1]
        w = data + (n & mask) * width
        if words[w + C_START] >= S[S_LOW]:
            count = reach(words, levels, w + own, n, count)
            if count < 0:
                return -1
    k = 0
    while k < count:
        n = levels[2 * k]
        w = data + (n & mask) * width
        if words[w + C_CHILD] >= 0:
            count = reach_below(S, words, forms, levels, data, mask, head, n, count)
            if count < 0:
                return -1
        else:
            if outputs + found > queue.shape[0] // 3 - PUSHED:
                return -1
            found = push(queue, outputs, found, -words[w + C_POSITION], n, CELL)
        k += 1
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def least_below(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    n: cython.longlong,
    time: cython.longlong,
    least: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Reach what the cell n goes on from at the same time, or unmarked: how many cells have been reached then; -1 without room.

    Of the others those of the least time stand at `least` of the queue, up to `most`: the time, how many they are, and these.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    own: cython.Py_ssize_t = values + S[S_SLOTS] - 1
    low: cython.longlong = S[S_LOW]
    w: cython.Py_ssize_t = data + (n & mask) * width
    at: cython.Py_ssize_t = w + C_BOUNDS
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    v: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    n = words[w + C_CHILD]
    while n >= head:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        if words[w + C_POSITION] < low:
            break
        if may_pass(words, forms, w + node, f, at) == 0:
            n = words[w + node + N_JUMP]
            continue
        m = n if passes(words, forms, values, w, f, at) != 0 else -1
        while m >= head:
            v = data + (m & mask) * width
            if words[v + C_START] < low:
                break
            if words[v + C_POSITION] == time or (words[v + C_KIND] & LABELS) == UNMARKED:
                count = reach(words, levels, v + own, m, count)
                if count < 0:
                    return -1
            else:
                if words[v + C_POSITION] < queue[least]:
                    queue[least] = words[v + C_POSITION]
                    queue[least + 1] = 0
                if words[v + C_POSITION] == queue[least]:
                    if least + 2 + queue[least + 1] >= most:
                        return -1
                    queue[least + 2 + queue[least + 1]] = m
                    queue[least + 1] += 1
            m = words[v + C_REST]
        n = words[w + node + N_PREVIOUS]
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def least_history(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    outputs: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Put to the end of the queue the times of the least history that is live: how many they are, 0 where there is none; -1 without room."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    own: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 1
    least: cython.Py_ssize_t = 3 * outputs
    last: cython.Py_ssize_t = queue.shape[0]
    length: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    time: cython.longlong = 0
    for k in range(outputs):
        n = queue[3 * k + 1]
        w = data + (n & mask) * width
        if words[w + C_START] >= S[S_LOW]:
            time = words[w + C_POSITION]
            count = reach(words, levels, w + own, n, count)
            if count < 0:
                return -1
    while count > 0:
        length += 1
        if least + 2 >= last - length:
            return -1
        queue[last - length] = time
        queue[least] = time
        queue[least + 1] = 0
        k = 0
        while k < count:
            n = levels[2 * k]
            if words[data + (n & mask) * width + C_CHILD] < 0:
                return length
            count = least_below(S, words, forms, levels, queue, data, mask, head, n, time, least, last - length, count)
            if count < 0:
                return -1
            k += 1
        time = queue[least]
        count = 0
        for k in range(queue[least + 1]):
            n = queue[least + 2 + k]
            count = reach(words, levels, data + (n & mask) * width + own, n, count)
            if count < 0:
                return -1
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def give_next(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    segment: cython.int,
    position: cython.longlong,
) -> cython.int:
    """Give the fronts of the trigger at `position`, from the first one that begins at S[low] or later on: an exit, or 0 when all are given.

    A label says whether another event of the time may have given some.
    """
    head: cython.longlong = words[line + D_HEAD]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    outputs: cython.Py_ssize_t = S[S_DEPTH]
    at: cython.longlong = S[S_BUFFERED_POSITIONS]
    time: cython.longlong = words[data + (queue[1] & mask) * S[S_WIDTH] + C_POSITION]
    length: cython.Py_ssize_t = 2
    last: cython.Py_ssize_t = queue.shape[0]
    left: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    start: cython.longlong = 0
    if S[S_HISTORIES] == 0:
        left = find_starts(S, words, forms, levels, queue, data, mask, head, outputs)
        if is_unanswered(forms) != 0:
            return EXIT_ASKED
        if left < 0:
            return EXIT_STACK
    while True:
        if S[S_HISTORIES] != 0:
            length = least_history(S, words, forms, levels, queue, data, mask, head, outputs)
            if is_unanswered(forms) != 0:
                return EXIT_ASKED
            if length < 0:
                return EXIT_STACK
            if length == 0:
                break
            start = queue[last - length]
        else:
            if left == 0:
                break
            start = -queue[3 * outputs]
            if start < S[S_LOW]:
                left = pop(queue, outputs, left)
                continue
        if S[S_BUFFERED_MATCHES] >= out_segments.shape[0] or at + length > out_positions.shape[0]:
            return EXIT_OUTPUT
        for k in range(length):
            out_positions[at + k] = queue[last - length + k] if S[S_HISTORIES] != 0 else start if k == 0 else time
            out_labels[at + k] = position != time
        at += length
        out_segments[S[S_BUFFERED_MATCHES]] = segment
        S[S_BUFFERED_MATCHES] += 1
        out_offsets[S[S_BUFFERED_MATCHES]] = at
        S[S_BUFFERED_POSITIONS] = at
        S[S_MATCHES] += 1
        S[S_LOW] = start + 1
        if S[S_HISTORIES] != 0 and S[S_WALKED] > S[S_BUDGET]:
            S[S_WALKED] = 0
            return EXIT_PAUSE
    S[S_ENUMERATING] = 0
    return 0


# ------------------------------------------------------------------------------------------------ what goes on from it


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
    """Let an edge lead to the node of the cell m, if it may be read: how many nodes there are then; -1 without room.

    times: where the times of the front stand, -1: any may be read; left: how many have not been read, less the last one that has. A new node is put
    into the queue, at base; waiting: how many are there.
    """
    w: cython.Py_ssize_t = data + (m & mask) * S[S_WIDTH]
    own: cython.Py_ssize_t = w + C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 1
    top: cython.Py_ssize_t = nodes[nodes.shape[0] - 2]
    label: cython.longlong = 0
    k: cython.longlong = words[own]
    older: cython.longlong = 0
    if (words[w + C_KIND] & LABELS) != UNMARKED:
        label = places[words[w + C_KIND] & LABELS]
    if label >> PART_BITS == part + 1 and times >= 0:
        if words[own - 2] != chosen[times + left]:
            if left == 0 or words[own - 2] != chosen[times + left - 1]:
                return count
            left -= 1
        if (label & PART_BEGINS) != 0 and left != 0:
            return count
    if k > 0 and k < count and nodes[NEXT_WIDTH * k + P_CELL] == m:
        older = k
        while k != 0 and nodes[NEXT_WIDTH * k + P_LEFT] != left:
            k = nodes[NEXT_WIDTH * k + P_SAME]
    else:
        k = 0
    if NEXT_WIDTH * (count + 2) > top - 4 or base + 2 * count + 4 > queue.shape[0] // 3 - PUSHED:
        return -1
    if k == 0:
        k = count
        count += 1
        nodes[NEXT_WIDTH * k + P_CELL] = m
        nodes[NEXT_WIDTH * k + P_EDGES] = 0
        nodes[NEXT_WIDTH * k + P_START] = -1
        nodes[NEXT_WIDTH * k + P_LEFT] = left
        nodes[NEXT_WIDTH * k + P_SAME] = older
        words[own] = k
        push(queue, base, waiting, words[w + C_POSITION], k, CELL)
    top -= 2
    nodes[top] = k
    nodes[top + 1] = nodes[edge]
    nodes[edge] = top
    nodes[nodes.shape[0] - 2] = top
    return count


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
    """Find the cells from position `since` on, among those from n on that pass a form's tests; an edge leads to each. As `add_node`.

    popped: how many nodes have left the queue.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    while n >= head:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        if may_pass(words, forms, w + node, f, at) == 0:
            n = words[w + node + N_JUMP]
            continue
        m = n if passes(words, forms, values, w, f, at) != 0 else -1
        while m >= head:  # copies in a chain may be of different events
            v = data + (m & mask) * width
            if words[v + C_START] < low:
                break
            if words[v + C_POSITION] >= since:
                count = add_node(
                    S, words, chosen, places, nodes, queue, data, mask, m, part, times, left, count, base, count - 1 - popped, edge
                )
                if count < 0:
                    return -1
            m = words[v + C_REST]
        if words[w + C_POSITION] < since:
            break
        n = words[w + node + N_PREVIOUS]
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def narrow(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    lower: cython.longlong,
    upper: cython.longlong,
) -> cython.int:
    """Let the tests of a form that ask where the pattern before has ended pass nothing outside of these bounds, too."""
    k: cython.Py_ssize_t = 0
    for k in range(forms[f + F_COUNT]):
        if (forms[f + F_TESTS + k] & ENDED) != 0:
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
    support: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    times: cython.Py_ssize_t,
    before: cython.longlong,
    floor: cython.longlong,
    base: cython.Py_ssize_t,
) -> cython.int:
    """Find what the node at x goes on from, which begins the part: it has a start then, if there is something. -1 where the queue has no room.

    before: where the front before begins; where it has times alone (-1), this is looked for among fronts of two times, from `support` to `stop`.
    """
    n: cython.longlong = nodes[x + P_CELL]
    w: cython.Py_ssize_t = data + (n & mask) * S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    first: cython.longlong = words[w + values + S[S_SLOTS] - 3]
    least: cython.longlong = 0
    most: cython.longlong = (stop - support) // 4
    middle: cython.longlong = 0
    found: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    if times < 0:
        while least < most:
            middle = (least + most) // 2
            if chosen[support + 4 * middle + 2] < first:
                least = middle + 1
            else:
                most = middle
        if support + 4 * least >= stop or chosen[support + 4 * least + 2] != first:
            return 0
        before = chosen[support + 4 * least - 2] if least > 0 else -1
    nodes[x + P_LOWER] = before if before > floor else floor
    nodes[x + P_UPPER] = first - 1
    if words[w + C_CHILD] < head:
        return 0
    # The bounds of the cell, narrowed while it is asked.
    for k in range(2 * forms[f + F_COUNT]):
        nodes[k + LEVEL_WIDTH] = words[w + C_BOUNDS + k]
    narrow(words, forms, f, w + C_BOUNDS, nodes[x + P_LOWER], nodes[x + P_UPPER])
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
        words[w + C_CHILD],
        f,
        w + C_BOUNDS,
        nodes,
        queue,
        base,
    )
    for k in range(2 * forms[f + F_COUNT]):
        words[w + C_BOUNDS + k] = nodes[k + LEVEL_WIDTH]
    if found == -2:
        return -1
    if found >= 0:
        nodes[x + P_START] = words[data + (found & mask) * S[S_WIDTH] + C_START]
        nodes[x + P_CHILD] = words[w + C_CHILD]
        if (words[data + (words[w + C_CHILD] & mask) * S[S_WIDTH] + node + N_FORM] & RISING) != 0:
            nodes[x + P_CHILD] = found
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def copy_chain(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    shapes: cython.const[cython.int][::1],
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
    label: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    while e != 0:
        x = NEXT_WIDTH * nodes[e]
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
        x = NEXT_WIDTH * k
        w = data + (m & mask) * width
        label = 0
        if (words[data + (nodes[x + P_CELL] & mask) * width + C_KIND] & LABELS) != UNMARKED:
            label = places[words[data + (nodes[x + P_CELL] & mask) * width + C_KIND] & LABELS]
        if label >> PART_BITS != part + 1:
            label = 0
        copy_cell(S, words, shapes, data, mask, nodes[x + P_CELL], m, nodes[x + P_CHILD], nodes[x + P_START], label & PART_BEGINS)
        if (label & PART_BEGINS) != 0:
            narrow(
                words,
                forms,
                S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS),
                w + C_BOUNDS,
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
def restrict_next(
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
    times: cython.Py_ssize_t,
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
    """Copy what goes on from the entries from n on by the fronts from `support` to `stop`, from number m on.

    times: where those of the one front stand whose histories these are, -1: under ACTIVE_OFFICE. before: as for `begin_next`. The number behind the
    last copy, -1 where cells have no room up to `most`, -2 where nodes have none. In S the copy to go on from, -1 where nothing does.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    root: cython.Py_ssize_t = nodes.shape[0] - 1
    since: cython.longlong = chosen[support + 2]
    left: cython.longlong = chosen[support + 1] - 1 if times >= 0 else 0
    count: cython.Py_ssize_t = 1 + (LEVEL_WIDTH + 2 * S[S_TESTS]) // NEXT_WIDTH
    popped: cython.Py_ssize_t = count - 1
    before_last: cython.longlong = 0
    chain: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    k: cython.longlong = 0
    label: cython.longlong = 0
    if NEXT_WIDTH * (count + 1) > root - 4:
        return -2
    nodes[root - 1] = root - 1
    nodes[root] = 0
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
        root,
    )
    while count > 0 and count - 1 > popped:
        k = queue[3 * base + 1]
        pop(queue, base, count - 1 - popped)
        popped += 1
        x = NEXT_WIDTH * k
        nodes[x + P_BEFORE] = before_last
        nodes[x + P_RANK] = popped
        before_last = k
        w = data + (nodes[x + P_CELL] & mask) * width
        label = 0
        if (words[w + C_KIND] & LABELS) != UNMARKED:
            label = places[words[w + C_KIND] & LABELS]
        if label >> PART_BITS == part + 1 and (label & PART_BEGINS) != 0:
            if (
                begin_next(
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
                    support,
                    stop,
                    times,
                    before,
                    floor,
                    base + count - popped,
                )
                < 0
            ):
                return -2
        else:
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
                words[w + C_CHILD],
                S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS),
                w + C_BOUNDS,
                part,
                times,
                nodes[x + P_LEFT],
                count,
                base,
                popped,
                x + P_EDGES,
            )
    if count < 0:
        return -2
    chain = 3 * (base + count + 1)
    queue[chain] = 0
    k = before_last
    while k != 0:
        x = NEXT_WIDTH * k
        if nodes[x + P_EDGES] != 0:
            m = copy_chain(S, words, forms, shapes, places, nodes, queue, data, mask, x + P_EDGES, part, base, chain, m, most)
            if m < 0:
                return -1
            if queue[chain + 1] >= 0:
                nodes[x + P_CHILD] = queue[chain + 1]
                nodes[x + P_START] = words[data + (queue[chain + 1] & mask) * width + C_START]
        k = nodes[x + P_BEFORE]
    m = copy_chain(S, words, forms, shapes, places, nodes, queue, data, mask, root, part, base, chain, m, most)
    S[S_COPIED] = queue[chain + 1]
    return m


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def begin_at_end(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    chosen: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    kind: cython.longlong,
    support: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    groups: cython.Py_ssize_t,
    time: cython.longlong,
    floor: cython.longlong,
    bounds: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """As `end_next`, where the event begins the part, too: its own tests get narrower bounds, and nothing is copied."""
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (kind >> FORM_BITS)
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    before: cython.longlong = -1
    found: cython.longlong = 0
    n: cython.longlong = 0
    left: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    while support < stop and chosen[support + 2] != time:
        before = chosen[support + 2]
        support += 2 + chosen[support + 1]
    if support >= stop:
        return 0
    narrow(words, forms, f, bounds, before if before > floor else floor, time - 1)
    for k in range(groups):
        n = queue[3 * k + 2]
        found = greatest_of(S, words, forms, data, mask, S[S_WIDTH], values, node, head, low, n, f, bounds, levels, queue, groups + 1)
        if found == -2:
            return -2
        if found >= 0:
            queue[3 * left] = words[data + (found & mask) * S[S_WIDTH] + C_START]
            queue[3 * left + 1] = queue[3 * k + 1]
            queue[3 * left + 2] = found if (words[data + (n & mask) * S[S_WIDTH] + node + N_FORM] & RISING) != 0 else n
            left += 1
    return left


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def end_next(
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
    position: cython.longlong,
    time: cython.longlong,
    floor: cython.longlong,
    m: cython.longlong,
    most: cython.longlong,
) -> cython.Py_ssize_t:
    """Restrict the groups of the queue, that end a part at an event, to what is next there: how many there are then. As `end_part`.

    support: the first front of this time. time: its first place. floor: nothing that is next goes on from a place before.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    label: cython.longlong = places[kind & LABELS]
    part: cython.longlong = (label >> PART_BITS) - 1
    segment: cython.longlong = chosen[support]
    stop: cython.Py_ssize_t = support
    following: cython.Py_ssize_t = 0
    histories: cython.int = chosen[HEAD_WIDTH * part + H_RULE] == 2
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (kind >> FORM_BITS)
    w: cython.Py_ssize_t = data + (m & mask) * width
    room: cython.Py_ssize_t = queue.shape[0] // 3 - PUSHED
    found: cython.Py_ssize_t = groups
    k: cython.Py_ssize_t = 0
    first: cython.longlong = m
    before: cython.longlong = -1
    while stop < chosen[HEAD_WIDTH * part + H_END] and chosen[stop] == segment and chosen[stop + 1 + chosen[stop + 1]] == time:
        stop += 2 + chosen[stop + 1]
    S[S_COPIED] = 0
    if (label & PART_BEGINS) != 0:
        return begin_at_end(
            S, words, forms, chosen, nodes, queue, data, mask, head, low, kind, support, stop, groups, time, floor, w + C_BOUNDS
        )
    m += 1
    words[w + C_POSITION] = position
    words[w + C_START] = position
    words[w + C_CHILD] = -1
    words[w + C_REST] = -1
    words[w + C_KIND] = 0
    words[w + C_NULLS] = 0
    while support < stop:
        following = support + 2 + chosen[support + 1] if histories != 0 else stop
        for k in range(groups):
            if found >= room:
                return -2
            m = restrict_next(
                S,
                words,
                forms,
                shapes,
                chosen,
                places,
                nodes,
                queue,
                data,
                mask,
                head,
                low,
                support,
                following,
                support + 2 if histories != 0 else -1,
                before,
                floor,
                queue[3 * k + 2],
                f,
                w + C_BOUNDS,
                part,
                found + 1,
                m,
                most - 1 - found + groups,
            )
            if m < 0:
                S[S_COPIED] = 0
                return m
            if S[S_COPIED] >= 0:
                queue[3 * found] = words[data + (S[S_COPIED] & mask) * width + C_START]
                queue[3 * found + 1] = queue[3 * k + 1]
                queue[3 * found + 2] = S[S_COPIED]
                found += 1
        before = chosen[support + 2]
        support = following
    for k in range(3 * (found - groups)):
        queue[k] = queue[3 * groups + k]
    S[S_COPIED] = m - first if found > groups else 0
    return found - groups
