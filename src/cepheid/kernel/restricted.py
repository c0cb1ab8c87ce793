# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of RESTRICTED: letters in, at each event at most one match, of greatest start; the event algebra's own detector.

One source that Cython compiles and CPython also runs as it is; `cepheid.engine.evaluations.choosing.restricted` drives it (exit codes as in
`cepheid.kernel.match`). The algorithm is Figure 2 of event-algebra, with Figure 4 for sequences, whose instances lie in a ring that is searched
by halving (section 5.3): see `cepheid.algebra.detector`, which is the same in plain Python.

An instance is [how many marks (0: there is none), start, time of start, end, time of end, marks ..]; a mark is position << LEAF_BITS, and a leaf.
A node's instance that ends now is a place in `scratch`. Ring 0 of a block has one entry once there was an event that is some leaf: what the
nodes hold (`place` in it). Ring k has the instances of the left side of the k-th sequence that may still be needed: starts and ends ascend.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import (
    B_EPOCH,
    B_LAST_TIME,
    B_LOW,
    B_NEWEST_START,
    B_NEWEST_TIME,
    B_POSITION,
    D_DATA,
    D_HEAD,
    D_MASK,
    D_TAIL,
    begin_block,
)

COMPILED = cython.compiled

# Exit codes of `run`, in the order of their numbers.
EXITS = ("done", "letter", "ring", "output", "pause")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "consume",  # ! 0 no, 1 in the partition, 2 in all
    "limit",  # ! 0 = count the triggers only
    "continued",  # ! 1: the first segment goes on with row 0
    "letter_mask",  # !
    "epoch",  # triggers that consumed all partitions
    "argument",  # of the exit code
    "buffered_matches",
    "buffered_positions",
    "triggers",  # events that ended a match
    "skipped",  # events that are no leaf
    "budget",  # ! what may be done before the kernel returns, so that whoever waits can break in
    "shift",  # position of an event = shift + row
    "plain",  # ! plain words of a block: where its directory starts
    "marks",  # ! most marks of a match
    "positive",  # ! leaves that a match may show, as bits
)

# What a node holds; the bounds are -1 where there is none.
NODE = (
    "kind",
    "left",  # number of the node, of a primitive its leaf
    "right",
    "scratch",  # where its own instance that ends now is made
    "place",  # in the entry of ring 0: greatest start so far (negation, sequence; behind it what is settled), or instance of the left (conjunction)
    "other",  # there: instance of the right
    "ring",
    "time",
    "events",
)

INSTANCE = ("count", "start", "start_time", "end", "end_time", "marks")

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, B_ a word of a block, D_ one of a ring's
# line in its directory, N_ a number of a node, I_ a word of an instance; K_ a kind of node.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_RING, EXIT_OUTPUT, EXIT_PAUSE = range(5)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_CONSUME, S_LIMIT, S_CONTINUED, S_LETTER_MASK, S_EPOCH, S_ARGUMENT = range(9)
    S_BUFFERED_MATCHES, S_BUFFERED_POSITIONS, S_TRIGGERS, S_SKIPPED, S_BUDGET, S_SHIFT, S_PLAIN, S_MARKS, S_POSITIVE = range(9, 18)
    N_KIND, N_LEFT, N_RIGHT, N_SCRATCH, N_PLACE, N_OTHER, N_RING, N_TIME, N_EVENTS = range(9)
    NODE_WIDTH = 9
    I_COUNT, I_START, I_START_TIME, I_END, I_END_TIME, I_MARKS = range(6)
    K_PRIMITIVE, K_DISJUNCTION, K_CONJUNCTION, K_NEGATION, K_RESTRICTION = range(5)
    LEAF_BITS, LEAF_MASK = 6, 63


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def copied(to: cython.longlong[::1], t: cython.Py_ssize_t, source: cython.longlong[::1], s: cython.Py_ssize_t) -> cython.int:
    """Copy an instance."""
    k: cython.Py_ssize_t = 0
    for k in range(I_MARKS + source[s + I_COUNT]):
        to[t + k] = source[s + k]
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def united(
    to: cython.longlong[::1], t: cython.Py_ssize_t, source: cython.longlong[::1], s: cython.Py_ssize_t, other: cython.Py_ssize_t
) -> cython.int:
    """The union of an instance and another one, in `to`, that ends now, as it does."""
    k: cython.Py_ssize_t = 0
    count: cython.longlong = source[s + I_COUNT]
    more: cython.longlong = to[other + I_COUNT]
    to[t + I_COUNT] = count + more
    to[t + I_START] = source[s + I_START]
    to[t + I_START_TIME] = source[s + I_START_TIME]
    if to[other + I_START] < source[s + I_START]:
        to[t + I_START] = to[other + I_START]
        to[t + I_START_TIME] = to[other + I_START_TIME]
    to[t + I_END] = to[other + I_END]
    to[t + I_END_TIME] = to[other + I_END_TIME]
    for k in range(count):
        to[t + I_MARKS + k] = source[s + I_MARKS + k]
    for k in range(more):
        to[t + I_MARKS + count + k] = to[other + I_MARKS + k]
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def last_before(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    width: cython.Py_ssize_t,
    head: cython.longlong,
    tail: cython.longlong,
    mask: cython.longlong,
    start: cython.longlong,
) -> cython.longlong:
    """The number of the newest entry of a ring that ends before `start`, or the one before the head."""
    low: cython.longlong = head - 1
    middle: cython.longlong = 0
    while tail - low > 1:
        middle = low + (tail - low) // 2
        if words[data + (middle & mask) * width + I_END] < start:
            low = middle
        else:
            tail = middle
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def make_room(
    words: cython.longlong[::1],
    nodes: cython.const[cython.longlong][::1],
    widths: cython.const[cython.longlong][::1],
    b: cython.Py_ssize_t,
    directory: cython.Py_ssize_t,
    state: cython.Py_ssize_t,
    p: cython.longlong,
    time: cython.longlong,
) -> cython.Py_ssize_t:
    """Take from each ring what is settled (Figure 4); the number of a ring that is full still, 0 if none is."""
    number: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = 0
    d: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    full: cython.Py_ssize_t = 0
    width: cython.Py_ssize_t = 0
    head: cython.longlong = 0
    tail: cython.longlong = 0
    now: cython.ulonglong = time
    then: cython.ulonglong = 0
    bound: cython.ulonglong = 0
    for number in range(nodes.shape[0] // NODE_WIDTH):
        n = number * NODE_WIDTH
        if nodes[n + N_RING] < 0:
            continue
        d = directory + 4 * nodes[n + N_RING]
        width = widths[nodes[n + N_RING]]
        head = words[d + D_HEAD]
        tail = words[d + D_TAIL]
        bound = nodes[n + N_TIME] if nodes[n + N_TIME] >= 0 else 0
        while head < tail:
            w = b + words[d + D_DATA] + (head & words[d + D_MASK]) * width
            then = words[w + I_END_TIME]  # unsigned: the difference of two int64 times cannot overflow
            if (nodes[n + N_TIME] < 0 or now - then <= bound) and (nodes[n + N_EVENTS] < 0 or p - words[w + I_END] <= nodes[n + N_EVENTS]):
                break
            copied(words, state + nodes[n + N_PLACE] + 1, words, w)
            head += 1
        words[d + D_HEAD] = head
        if tail - head > words[d + D_MASK]:
            full = nodes[n + N_RING]
    return full


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def detect(
    words: cython.longlong[::1],
    nodes: cython.const[cython.longlong][::1],
    widths: cython.const[cython.longlong][::1],
    scratch: cython.longlong[::1],
    current: cython.longlong[::1],
    b: cython.Py_ssize_t,
    directory: cython.Py_ssize_t,
    state: cython.Py_ssize_t,
    leaves: cython.longlong,
    p: cython.longlong,
    time: cython.longlong,
) -> cython.longlong:
    """Figure 2, for one event: the place in `scratch` of the instance that ends at it, -1 if there is none."""
    n: cython.Py_ssize_t = 0
    number: cython.Py_ssize_t = 0
    d: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    data: cython.Py_ssize_t = 0
    own: cython.Py_ssize_t = 0
    kind: cython.longlong = 0
    left: cython.longlong = -1
    right: cython.longlong = -1
    found: cython.longlong = -1
    low: cython.longlong = 0
    one: cython.longlong = 1
    now: cython.ulonglong = time
    then: cython.ulonglong = 0
    bound: cython.ulonglong = 0
    for number in range(current.shape[0]):
        n = number * NODE_WIDTH
        kind = nodes[n + N_KIND]
        own = nodes[n + N_SCRATCH]
        found = -1
        if kind == K_PRIMITIVE:
            if leaves & (one << nodes[n + N_LEFT]):
                found = own
                scratch[own + I_COUNT] = 1
                scratch[own + I_START] = p
                scratch[own + I_START_TIME] = time
                scratch[own + I_END] = p
                scratch[own + I_END_TIME] = time
                scratch[own + I_MARKS] = (p << LEAF_BITS) + nodes[n + N_LEFT]
            current[number] = found
            continue
        left = current[nodes[n + N_LEFT]]
        if kind == K_RESTRICTION:
            if left >= 0:
                then = scratch[left + I_START_TIME]
                bound = nodes[n + N_TIME] if nodes[n + N_TIME] >= 0 else 0
                if (nodes[n + N_TIME] < 0 or now - then <= bound) and (
                    nodes[n + N_EVENTS] < 0 or p - scratch[left + I_START] <= nodes[n + N_EVENTS]
                ):
                    found = left
            current[number] = found
            continue
        right = current[nodes[n + N_RIGHT]]
        w = state + nodes[n + N_PLACE]
        if kind == K_DISJUNCTION:
            found = left
            if left < 0 or (right >= 0 and scratch[left + I_START] <= scratch[right + I_START]):
                found = right
        elif kind == K_NEGATION:
            if right >= 0 and words[w] < scratch[right + I_START]:
                words[w] = scratch[right + I_START]
            if left >= 0 and words[w] < scratch[left + I_START]:
                found = left
        elif kind == K_CONJUNCTION:
            data = state + nodes[n + N_OTHER]
            if left >= 0 and (words[w + I_COUNT] == 0 or words[w + I_START] < scratch[left + I_START]):
                copied(words, w, scratch, left)
            if right >= 0 and (words[data + I_COUNT] == 0 or words[data + I_START] < scratch[right + I_START]):
                copied(words, data, scratch, right)
            if words[w + I_COUNT] != 0 and words[data + I_COUNT] != 0 and (left >= 0 or right >= 0):
                found = own
                if right < 0 or (left >= 0 and scratch[right + I_START] <= scratch[left + I_START]):
                    united(scratch, own, words, data, left)
                else:
                    united(scratch, own, words, w, right)
        else:
            d = directory + 4 * nodes[n + N_RING]
            data = b + words[d + D_DATA]
            if right >= 0:
                low = last_before(
                    words,
                    data,
                    widths[nodes[n + N_RING]],
                    words[d + D_HEAD],
                    words[d + D_TAIL],
                    words[d + D_MASK],
                    scratch[right + I_START],
                )
                if low >= words[d + D_HEAD]:
                    found = own
                    united(scratch, own, words, data + (low & words[d + D_MASK]) * widths[nodes[n + N_RING]], right)
                elif words[w + 1 + I_COUNT] != 0:
                    found = own
                    united(scratch, own, words, w + 1, right)
            if left >= 0 and words[w] < scratch[left + I_START]:
                words[w] = scratch[left + I_START]
                copied(words, data + (words[d + D_TAIL] & words[d + D_MASK]) * widths[nodes[n + N_RING]], scratch, left)
                words[d + D_TAIL] += 1
        current[number] = found
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def written(
    out_positions: cython.longlong[::1],
    out_leaves: cython.longlong[::1],
    to: cython.longlong,
    scratch: cython.longlong[::1],
    found: cython.longlong,
) -> cython.longlong:
    """Write the events of an instance from place `to` on, by position, with their leaves as bits; the place behind them."""
    count: cython.Py_ssize_t = scratch[found + I_COUNT]
    first: cython.Py_ssize_t = found + I_MARKS
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    mark: cython.longlong = 0
    one: cython.longlong = 1
    last: cython.longlong = -1
    for k in range(1, count):  # they are few, and mostly in order
        mark = scratch[first + k]
        j = k
        while j > 0 and scratch[first + j - 1] > mark:
            scratch[first + j] = scratch[first + j - 1]
            j -= 1
        scratch[first + j] = mark
    for k in range(count):
        mark = scratch[first + k]
        if mark >> LEAF_BITS != last:
            last = mark >> LEAF_BITS
            out_positions[to] = last
            out_leaves[to] = 0
            to += 1
        out_leaves[to - 1] |= one << (mark & LEAF_MASK)
    return to


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    rows: cython.const[cython.int][::1],
    vetoed: cython.const[cython.uchar][::1],
    lut: cython.const[cython.int][::1],
    words: cython.longlong[::1],
    offsets: cython.const[cython.longlong][::1],
    template: cython.const[cython.longlong][::1],
    widths: cython.const[cython.longlong][::1],
    leaves_of: cython.const[cython.longlong][::1],
    nodes: cython.const[cython.longlong][::1],
    initial: cython.const[cython.longlong][::1],
    scratch: cython.longlong[::1],
    current: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_leaves: cython.longlong[::1],
    out_segments: cython.int[::1],
    marked: cython.uchar[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters (index into lut), times, cuts, rows (of each segment's block, 0: the workplace, reset first), vetoed (of which rows no matches are
    given; empty: of none).
    TABLES: lut (letter -> code, -1 unknown), leaves_of[code] (as bits); nodes (NODE_WIDTH numbers each, bottom-up), initial (the entry of ring 0
    of a new partition). BLOCKS: words, offsets, template, widths of entries (see `cepheid.engine.memory.blocks.Blocks`).
    SCRATCH: scratch (an instance per node), current (per node). OUT: out_*; marked[row] = 1 where a match may show the event.
    """
    count: cython.Py_ssize_t = letters.shape[0]
    segments: cython.Py_ssize_t = cuts.shape[0]
    i: cython.Py_ssize_t = S[S_ROW]
    segment: cython.Py_ssize_t = S[S_SEGMENT]
    end: cython.Py_ssize_t = S[S_SEGMENT_END]
    consume: cython.int = S[S_CONSUME]
    limit: cython.longlong = S[S_LIMIT]
    letter_mask: cython.uint = S[S_LETTER_MASK]
    epoch: cython.longlong = S[S_EPOCH]
    argument: cython.longlong = 0
    matches: cython.longlong = S[S_BUFFERED_MATCHES]
    marks: cython.longlong = S[S_BUFFERED_POSITIONS]
    skipped: cython.longlong = S[S_SKIPPED]
    shift: cython.longlong = S[S_SHIFT]
    plain: cython.Py_ssize_t = S[S_PLAIN]
    most: cython.longlong = S[S_MARKS]
    positive: cython.longlong = S[S_POSITIVE]
    budget: cython.longlong = S[S_BUDGET]
    rings: cython.Py_ssize_t = widths.shape[0]
    room: cython.longlong = out_positions.shape[0]
    match_room: cython.longlong = out_segments.shape[0]
    cost: cython.Py_ssize_t = current.shape[0]
    rc: cython.int = 0
    c: cython.int = 0
    b: cython.Py_ssize_t = 0  # where the block starts
    directory: cython.Py_ssize_t = 0
    state: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    p: cython.longlong = 0
    found: cython.longlong = 0

    with cython.nogil:
        if segment >= 0:
            b = offsets[rows[segment]]
            directory = b + plain
        while True:
            # ------------------------------------------------------------------------------------------------ skip
            c = 0
            while i < end:
                c = lut[letters[i] & letter_mask]
                if c < 0:
                    break
                if leaves_of[c] != 0:
                    break
                i += 1
                skipped += 1
            # ------------------------------------------------------------------------------------------------ segments
            if i >= end:
                if segment >= 0:
                    words[b + B_POSITION] = shift + end
                    if end > cuts[segment]:
                        words[b + B_LAST_TIME] = times[end - 1]
                segment += 1
                if segment == segments:
                    break
                end = count
                if segment + 1 < segments:
                    end = cuts[segment + 1]
                b = offsets[rows[segment]]
                directory = b + plain
                # Not continued: forget what the workplace holds.
                begin_block(words, template, b, plain, rings, epoch, rows[segment] == 0 and (segment != 0 or S[S_CONTINUED] == 0))
                shift = words[b + B_POSITION] - i
                continue
            if c < 0:
                rc = EXIT_LETTER
                break
            if budget < 0:
                rc = EXIT_PAUSE
                break
            budget -= cost
            # ------------------------------------------------------------------------------------------------ room
            p = shift + i
            if matches == match_room or marks + most > room:
                rc = EXIT_OUTPUT
                break
            state = b + words[directory + D_DATA]
            if words[directory + D_TAIL] == words[directory + D_HEAD]:
                words[directory + D_HEAD] = 0
                words[directory + D_TAIL] = 1
                for k in range(initial.shape[0]):
                    words[state + k] = initial[k]
            argument = make_room(words, nodes, widths, b, directory, state, p, times[i])
            if argument != 0:
                rc = EXIT_RING
                break
            # ------------------------------------------------------------------------------------------------ detect
            words[b + B_NEWEST_START] = p
            words[b + B_NEWEST_TIME] = times[i]
            if leaves_of[c] & positive:
                marked[i] = 1
            found = detect(words, nodes, widths, scratch, current, b, directory, state, leaves_of[c], p, times[i])
            if found >= 0 and scratch[found + I_START] >= words[b + B_LOW]:
                S[S_TRIGGERS] += 1
                if limit != 0 and (vetoed.shape[0] == 0 or vetoed[i] == 0):
                    marks = written(out_positions, out_leaves, marks, scratch, found)
                    out_segments[matches] = segment
                    matches += 1
                    out_offsets[matches] = marks
                if consume != 0:  # later matches start after this event
                    words[b + B_LOW] = p + 1
                    if consume == 2:
                        epoch += 1
                        words[b + B_EPOCH] = epoch
            i += 1

    S[S_ROW] = i
    S[S_SEGMENT] = segment
    S[S_SEGMENT_END] = end
    S[S_EPOCH] = epoch
    S[S_ARGUMENT] = argument
    S[S_BUFFERED_MATCHES] = matches
    S[S_BUFFERED_POSITIONS] = marks
    S[S_SKIPPED] = skipped
    S[S_SHIFT] = shift
    return rc
