"""What is next inside the pattern: which matches of a part come first. A room of `guards`.

A match of q is next after one of p that ends at a, if q begins at a later time, none that begins behind a has ended at an earlier time (a FLOOR, a
value of the event: the greatest start of those that have), and none that begins behind a and ends at the same time comes first: under ACTIVE_OFFICE
it begins first; under COMPLETE_HISTORY the last time that one of both has and the other one has not is the other one's. So what is next is found
from the front: of all matches that end at a time, the one that comes first of all; then the first one of those that begin later; and so on. Each of
them is next for the ends of p from where the one before begins to where it begins itself, and not for others. This is a FRONT: its times, of which
the first says where it begins; under ACTIVE_OFFICE its first and last one alone.

A run of q by itself gives the fronts (`give_next`). It counts with the first place of each time in the place of positions, so times are equal where
they are. What begins at the floor or before it is gone: so each start is given at the ends of one time alone, and a partition keeps what is behind
the floor. Under ACTIVE_OFFICE all cells that a trigger reaches are visited once, and where they begin is sorted: O(r log r). Under COMPLETE_HISTORY
fronts are looked for APART: times are chosen from the last to the first, each the least one at which there is a cell from which a match goes on that
begins behind the front before: O(r) for each time of each front.

The run around goes back from an event that ends q to those that begin it, and reads what the fronts say (`_guards_parts`): under ACTIVE_OFFICE any
cells, under COMPLETE_HISTORY those of the next time, or of the same one. Where q begins, the test of the guard that leaves out what p cannot go on
with gets narrower bounds: the interval of the front. Where the cells that it tests are copies, these are gone through.

Where q begins at the event that is read first, which a match has made, it begins at the time at which that one does: this is one more time of its
history. That each event of q begins behind p then says that p has ended before q is read. Where any event of q may say where it begins, it begins at
the least of these times, which is known once all are read. So fronts are looked for and read apart: of each cell that is reached we know the least
and the greatest of the times at which matches may begin that go on from it (all between say nothing more), and a node of the walk back has whether
one of its events has begun where the front does. Under ACTIVE_OFFICE no time counts but that one.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import D_DATA, D_HEAD, D_MASK
from cepheid.kernel._guards_count import is_shown
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import may_pass, passes, pop, push
from cepheid.kernel._guards_memo import is_unanswered
from cepheid.kernel._guards_walk import begin_of, said_of


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
    if k >= 0 and k < count and levels[REACHED * k] == n:
        return count
    if REACHED * (count + 1) > levels.shape[0]:
        return -1
    words[node] = count
    levels[REACHED * count] = n
    levels[REACHED * count + 1] = 0
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
            if free != 0 and k >= 0 and k < count and levels[REACHED * k] == n:
                if ((levels[REACHED * k + 1] >> shape) & 1) != 0:
                    break
                levels[REACHED * k + 1] |= one << shape
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
        n = levels[REACHED * k]
        w = data + (n & mask) * width
        if words[w + C_CHILD] >= 0:
            count = reach_below(S, words, forms, levels, data, mask, head, n, count)
            if count < 0:
                return -1
        else:
            if outputs + found > queue.shape[0] // 3 - PUSHED:
                return -1
            found = push(queue, outputs, found, -begin_of(S, words, w), n, CELL)
        k += 1
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def reach_by(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    w: cython.Py_ssize_t,
    n: cython.longlong,
    least: cython.longlong,
    most: cython.longlong,
    count: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """As `reach`, of the cell n, whose words begin at w, with where matches may begin that go on from it: the least and the greatest place so far.

    It is reached again where that is news.
    """
    own: cython.Py_ssize_t = w + C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] - 1
    begin: cython.longlong = 0
    k: cython.longlong = words[own]
    if S[S_BEGINS] >= 0:
        if words[w + C_CHILD] < 0 or (said_of(S, words, places, w, 0) & SAYS) != 0:
            begin = words[own - 3]
            if begin < S[S_LOW]:
                return count
            least = min(least, begin)
            most = min(most, begin)
    elif words[w + C_CHILD] < 0:
        least = words[w + C_POSITION]
        most = least
    if k >= 0 and k < count and levels[REACHED * k] == n:
        if levels[REACHED * k + 2] <= least and levels[REACHED * k + 3] >= most:
            return count
        least = min(least, levels[REACHED * k + 2])
        most = max(most, levels[REACHED * k + 3])
    if REACHED * (count + 1) > levels.shape[0]:
        return -1
    words[own] = count
    levels[REACHED * count] = n
    levels[REACHED * count + 2] = least
    levels[REACHED * count + 3] = most
    return count + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def least_below(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    places: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    k: cython.Py_ssize_t,
    time: cython.longlong,
    least: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Reach what the cell at place k goes on from at the same time, or where no time counts: how many cells have been reached then; -1 without room.

    Of the others those of the least time stand at `least` of the queue, up to `most`: the time, how many they are, and these, each with where matches
    may begin that go on from it.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    low: cython.longlong = S[S_LOW]
    w: cython.Py_ssize_t = data + (levels[REACHED * k] & mask) * width
    at: cython.Py_ssize_t = w + C_BOUNDS
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    v: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    x: cython.Py_ssize_t = 0
    n: cython.longlong = words[w + C_CHILD]
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
            if words[v + C_POSITION] == time or S[S_HISTORIES] == 0 or is_shown(words[v + C_KIND], S[S_HIDDEN]) == 0:
                count = reach_by(S, words, places, levels, v, m, levels[REACHED * k + 2], levels[REACHED * k + 3], count)
                if count < 0:
                    return -1
            else:
                if words[v + C_POSITION] < queue[least]:
                    queue[least] = words[v + C_POSITION]
                    queue[least + 1] = 0
                if words[v + C_POSITION] == queue[least]:
                    x = least + 2 + 3 * queue[least + 1]
                    if x + 3 > most:
                        return -1
                    queue[x] = m
                    queue[x + 1] = levels[REACHED * k + 2]
                    queue[x + 2] = levels[REACHED * k + 3]
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
    places: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    outputs: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Put to the end of the queue the times of the match that comes first of those that begin at S[low] or later: how many; -1 without room.

    0 where there is none. Under ACTIVE_OFFICE they are two: where it begins, and the last one.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    least: cython.Py_ssize_t = 3 * outputs
    last: cython.Py_ssize_t = queue.shape[0]
    length: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    time: cython.longlong = 0
    begin: cython.longlong = 0
    for k in range(outputs):
        n = queue[3 * k + 1]
        w = data + (n & mask) * width
        if words[w + C_START] >= S[S_LOW]:
            time = words[w + C_POSITION]
            count = reach_by(S, words, places, levels, w, n, time, time, count)
            if count < 0:
                return -1
    while count > 0:
        length += 1
        if least + 2 >= last - length - 1:
            return -1
        queue[last - length] = time
        queue[least] = time
        queue[least + 1] = 0
        begin = time + 1
        k = 0
        while k < count:
            n = levels[REACHED * k]
            if words[data + (n & mask) * width + C_CHILD] < 0:
                if levels[REACHED * k + 3] == time and S[S_HISTORIES] != 0:
                    return length
                begin = min(begin, levels[REACHED * k + 2])
            else:
                count = least_below(S, words, forms, places, levels, queue, data, mask, head, k, time, least, last - length - 1, count)
                if count < 0:
                    return -1
            k += 1
        time = queue[least]
        if begin <= time:  # nothing that goes on comes first
            queue[last - length - 1] = begin
            return length + 1
        count = 0
        for k in range(queue[least + 1]):
            n = queue[least + 2 + 3 * k]
            w = data + (n & mask) * width
            count = reach_by(S, words, places, levels, w, n, queue[least + 3 + 3 * k], queue[least + 4 + 3 * k], count)
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
    places: cython.const[cython.longlong][::1],
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
    if S[S_APART] == 0:
        left = find_starts(S, words, forms, levels, queue, data, mask, head, outputs)
        if is_unanswered(forms) != 0:
            return EXIT_ASKED
        if left < 0:
            return EXIT_STACK
    while True:
        if S[S_APART] != 0:
            length = least_history(S, words, forms, places, levels, queue, data, mask, head, outputs)
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
            out_positions[at + k] = queue[last - length + k] if S[S_APART] != 0 else start if k == 0 else time
            out_labels[at + k] = position != time
        at += length
        out_segments[S[S_BUFFERED_MATCHES]] = segment
        S[S_BUFFERED_MATCHES] += 1
        out_offsets[S[S_BUFFERED_MATCHES]] = at
        S[S_BUFFERED_POSITIONS] = at
        S[S_MATCHES] += 1
        S[S_LOW] = start + 1
        if S[S_APART] != 0 and S[S_WALKED] > S[S_BUDGET]:
            S[S_WALKED] = 0
            return EXIT_PAUSE
    S[S_ENUMERATING] = 0
    return 0
