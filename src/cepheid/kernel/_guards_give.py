"""How the matches of an event are given. A room of `guards`."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import B_LOW, D_DATA, D_HEAD, D_MASK
from cepheid.kernel._guards_count import count_matches, forget_copies, is_same, is_shown, part_of
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import all_pass, has_live, may_pass, next_cell, next_marked, open_level, passes, push
from cepheid.kernel._guards_maximal import enumerate_maximal, find_maximal
from cepheid.kernel._guards_memo import is_unanswered
from cepheid.kernel._guards_next import give_next
from cepheid.kernel._numbers import subtract


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def keep_chosen(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    outputs: cython.Py_ssize_t,
    data: cython.Py_ssize_t,
    mask: cython.longlong,
) -> cython.Py_ssize_t:
    """Keep of the cells in the queue those whose best support is that of all; how many they are."""
    keys: cython.longlong = 1 + S[S_SHAPES]
    total: cython.Py_ssize_t = counts.shape[0] - 2
    size: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    for k in range(outputs):
        n = queue[3 * k + 1]
        if is_same(words, supports, data, mask, S[S_WIDTH], S[S_SEVERAL], counts[(n & mask) * keys], counts[total]) != 0:
            size = push(queue, 0, size, queue[3 * k], queue[3 * k + 1], CELL)
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def open_chosen(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    v: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
) -> cython.int:
    """Make the level at v ready to give the cells with which the cell above goes on to its best support. -1 where the queue has no room.

    Trees that pass as a whole are left out where their best support is another one. In the place of unmarked cells is what they go on from; they wait
    at the end of the queue.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    keys: cython.longlong = 1 + S[S_SHAPES]
    low: cython.longlong = S[S_LOW]
    room: cython.Py_ssize_t = queue.shape[0] // 3 - 4 - base
    top: cython.Py_ssize_t = queue.shape[0] - 1
    n: cython.longlong = levels[v - LEVEL_WIDTH + L_CELL]
    w: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    f: cython.Py_ssize_t = 0
    which: cython.longlong = 0
    node: cython.Py_ssize_t = 0
    wanted: cython.ulonglong = counts[(n & mask) * keys]
    size: cython.Py_ssize_t = 0
    key: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    if is_shown(words[data + (n & mask) * width + C_KIND], S[S_HIDDEN]) != 0:
        wanted = part_of(supports, mask, wanted, LINK_BEFORE)
    while True:
        w = data + (n & mask) * width
        at = w + C_BOUNDS
        f = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
        which = 1 + forms[f + F_SHAPE]
        node = values + S[S_SLOTS] + S[S_NODE_WIDTH] * (which - 1)
        n = words[w + C_CHILD]
        while n >= head:
            S[S_WALKED] += 1
            w = data + (n & mask) * width
            x = w + node
            key = (n & mask) * keys + which
            if has_live(words, data, mask, width, x, head, low) == 0:
                if (words[x + N_FORM] & RISING) != 0:
                    break  # older ones began earlier
                n = words[x + N_JUMP]
            elif may_pass(words, forms, x, f, at) == 0:
                n = words[x + N_JUMP]
            elif all_pass(words, forms, x, f, at) != 0 and (
                known[2 * key] != S[S_TAG] + n
                or known[2 * key + 1] < low
                or is_same(words, supports, data, mask, width, S[S_SEVERAL], counts[key], wanted) == 0
            ):
                n = words[x + N_JUMP]
            else:
                if passes(words, forms, values, w, f, at) != 0:
                    m = n
                    while m >= head:
                        w = data + (m & mask) * width
                        if words[w + C_START] < low:
                            break
                        key = (m & mask) * keys
                        if (
                            known[2 * key] == S[S_TAG] + m
                            and known[2 * key + 1] >= low
                            and is_same(words, supports, data, mask, width, S[S_SEVERAL], counts[key], wanted) != 0
                        ):
                            if size > room:
                                return -1
                            if (words[w + C_KIND] & LABELS) == UNMARKED:
                                queue[top] = m
                                top -= 1
                                room = top // 3 - 4 - base
                            else:
                                size = push(queue, base, size, words[w + C_START], m, CELL)
                        m = words[w + C_REST]
                n = words[x + N_PREVIOUS]
        if top == queue.shape[0] - 1:
            break
        top += 1
        n = queue[top]
        room = top // 3 - 4 - base
    levels[v + L_BASE] = base
    levels[v + L_CURSOR] = -1
    levels[v + L_FRESH] = 1
    levels[v + L_SIZE] = size
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def enumerate_matches(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    segment: cython.int,
) -> cython.int:
    """Give the matches of a trigger, from where `levels` and S say: an exit, or 0 when all are given."""
    head: cython.longlong = words[line + D_HEAD]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    first_node: cython.Py_ssize_t = values + S[S_SLOTS]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    form_width: cython.Py_ssize_t = S[S_FORM_WIDTH]
    low: cython.longlong = S[S_LOW]
    d: cython.Py_ssize_t = S[S_DEPTH]
    given: cython.longlong = S[S_GIVEN]
    limit: cython.longlong = S[S_LIMIT]
    nm: cython.longlong = S[S_BUFFERED_MATCHES]
    npos: cython.longlong = S[S_BUFFERED_POSITIONS]
    match_room: cython.longlong = out_segments.shape[0]
    position_room: cython.longlong = out_positions.shape[0]
    level_room: cython.Py_ssize_t = levels.shape[0] // LEVEL_WIDTH - 1
    queue_room: cython.Py_ssize_t = queue.shape[0] // 3 - PUSHED
    n: cython.longlong = 0
    v: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    f: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    node: cython.Py_ssize_t = first_node
    k: cython.Py_ssize_t = 0
    base: cython.Py_ssize_t = 0
    moved: cython.int = 1  # the level is another one than before
    size: cython.Py_ssize_t = S[S_SIZE]
    passed: cython.Py_ssize_t = counts.shape[0] - size
    through: cython.int = S[S_PASSES] != 0 and S[S_COUNTING] != CHOSEN  # what is chosen is marked
    rc: cython.int = 0
    while S[S_SPREAD] != 2:
        v = d * LEVEL_WIDTH
        if nm >= match_room or npos + d + 1 > position_room:
            rc = EXIT_OUTPUT
            break
        if d >= level_room:
            rc = EXIT_STACK
            break
        if S[S_WALKED] > S[S_BUDGET]:
            S[S_WALKED] = 0
            rc = EXIT_PAUSE
            break
        if moved != 0 and d > 0:  # it gives what the cell of the level above goes on from
            w = data + (levels[v - LEVEL_WIDTH + L_CELL] & mask) * width
            f = form_width * (words[w + C_KIND] >> FORM_BITS)
            at = w + C_BOUNDS
            node = first_node + node_width * forms[f + F_SHAPE]
            if levels[v + L_SIZE] < 0:
                base = levels[v - LEVEL_WIDTH + L_BASE] + levels[v - LEVEL_WIDTH + L_SIZE]
                if base > queue_room:
                    rc = EXIT_STACK
                    break
                if S[S_COUNTING] != CHOSEN:
                    open_level(words, forms, data, mask, width, node, head, low, words[w + C_CHILD], f, at, levels, queue, v, base)
                elif open_chosen(S, words, forms, counts, known, supports, levels, queue, data, mask, head, v, base) < 0:
                    rc = EXIT_STACK
                    break
                if is_unanswered(forms) != 0:
                    levels[v + L_SIZE] = -1
                    rc = EXIT_ASKED
                    break
        moved = 0
        if levels[v + L_BASE] + levels[v + L_SIZE] > queue_room:
            rc = EXIT_STACK
            break
        if through != 0:
            n = next_marked(S, words, forms, data, mask, width, values, node, head, low, f, at, levels, queue, v)
        else:
            n = next_cell(S, words, forms, data, mask, width, values, node, head, low, f, at, levels, queue, v)
        if n < -1:
            rc = EXIT_STACK if n == -2 else EXIT_ASKED
            break
        if n < 0:
            if d == 0:
                break
            d -= 1
            moved = 1
            continue
        if S[S_SPREAD] == 1 and subtract(counts, passed, (n & mask) * (1 + S[S_SHAPES]) * size, size) != 0:
            S[S_WALKED] += 1
            continue
        levels[v + L_CELL] = n
        if words[data + (n & mask) * width + C_CHILD] >= 0:
            d += 1
            levels[v + LEVEL_WIDTH + L_SIZE] = -1  # it is opened once there is room
            moved = 1
            continue
        k = d
        while k >= 0:
            w = data + (levels[k * LEVEL_WIDTH + L_CELL] & mask) * width
            out_positions[npos] = words[w + C_POSITION]
            out_labels[npos] = words[w + C_KIND] & LABELS
            npos += 1
            k -= 1
        out_segments[nm] = segment
        nm += 1
        out_offsets[nm] = npos
        given += 1
        if given == limit:
            break
        if S[S_SPREAD] == 1:
            rc = EXIT_CHOOSE
            break
    S[S_DEPTH] = d
    S[S_GIVEN] = given
    S[S_BUFFERED_MATCHES] = nm
    S[S_BUFFERED_POSITIONS] = npos
    if rc == 0:
        S[S_MATCHES] += given
        S[S_ENUMERATING] = 0
    return rc


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def begin_giving(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    order: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    outputs: cython.Py_ssize_t,
    low: cython.longlong,
) -> cython.int:
    """Make `levels` and S ready to give the matches that end in these cells: their numbers are in the last quarters of `order`."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    first: cython.Py_ssize_t = order.shape[0] // 4
    n: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    for k in range(outputs):
        n = order[first + k]
        push(queue, 0, k, words[data + (n & mask) * width + C_START], n, CELL)
    levels[L_BASE] = 0
    levels[L_SIZE] = outputs
    levels[L_CURSOR] = -1
    S[S_ENUMERATING] = 1 if S[S_COUNTING] == 0 else COUNT
    S[S_SPREAD] = 0
    S[S_LOW] = low
    S[S_DEPTH] = outputs if S[S_COUNTING] == NEXT else 0
    S[S_GIVEN] = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def give(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    places: cython.const[cython.longlong][::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    out_counts: cython.ulonglong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    row: cython.longlong,
    segment: cython.int,
    position: cython.longlong,
) -> cython.int:
    """Give the matches of the trigger at `position`, or their number, counted first where that is asked for: an exit, or 0 when all are given."""
    w: cython.longlong = S[S_BUFFERED_MATCHES]
    at: cython.longlong = S[S_BUFFERED_POSITIONS]
    size: cython.Py_ssize_t = S[S_SIZE]
    total: cython.Py_ssize_t = counts.shape[0] - 2 * size
    most: cython.ulonglong = 0
    many: cython.int = 0
    k: cython.Py_ssize_t = 0
    rc: cython.int = 0
    if S[S_COUNTING] == NEXT:
        return give_next(
            S, words, forms, places, levels, queue, out_offsets, out_positions, out_labels, out_segments, line, b, segment, position
        )
    if S[S_ENUMERATING] == COUNT:
        if w >= out_segments.shape[0] or at >= out_positions.shape[0]:
            return EXIT_OUTPUT
        if S[S_COUNTING] == BEGUN:
            S[S_ENUMERATING] = 0
            if queue[0] < S[S_LOW]:
                return 0
            if at + 1 >= out_positions.shape[0]:
                S[S_ENUMERATING] = COUNT
                return EXIT_OUTPUT
            for k in range(2):
                out_positions[at + k] = position if k == 1 else queue[0]
                out_labels[at + k] = 0
            out_segments[w] = segment
            out_offsets[w + 1] = at + 2
            S[S_BUFFERED_MATCHES] = w + 1
            S[S_BUFFERED_POSITIONS] = at + 2
            S[S_MATCHES] += 1
            words[b + B_LOW] = queue[0] + 1  # only what begins later matters from now on
            return 0
        if S[S_COUNTING] == MAXIMAL:
            rc = find_maximal(S, words, forms, supports, levels, queue, line, b)
        else:
            rc = count_matches(S, words, forms, counts, known, supports, queue, levels[L_SIZE], line, b, row)
        if rc != 0:
            return rc
        S[S_ENUMERATING] = 1
        if S[S_COUNTING] == NUMBER:
            out_positions[at] = position
            out_labels[at] = 0
            out_segments[w] = segment
            out_offsets[w + 1] = at + 1
            for k in range(size):
                out_counts[w * size + k] = counts[total + k]
            S[S_BUFFERED_MATCHES] = w + 1
            S[S_BUFFERED_POSITIONS] = at + 1
            S[S_MATCHES] += 1
            S[S_ENUMERATING] = 0
            return 0
        if S[S_COUNTING] == CHOSEN:
            levels[L_SIZE] = keep_chosen(S, words, counts, supports, queue, levels[L_SIZE], b + words[line + D_DATA], words[line + D_MASK])
        elif S[S_COUNTING] != MAXIMAL:
            most = S[S_SAMPLE]
            many = counts[total] > most
            for k in range(1, size):
                many |= counts[total + k] != 0
            if many != 0:
                return EXIT_CHOOSE
    if S[S_COUNTING] == MAXIMAL:
        return enumerate_maximal(S, words, supports, levels, out_offsets, out_positions, out_labels, out_segments, line, b, segment)
    rc = enumerate_matches(
        S,
        words,
        forms,
        levels,
        queue,
        counts,
        known,
        supports,
        out_offsets,
        out_positions,
        out_labels,
        out_segments,
        line,
        b,
        segment,
    )
    if rc == 0 and S[S_COUNTING] == CHOSEN:
        forget_copies(S, known, line, words)
    return rc
