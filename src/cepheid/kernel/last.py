# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of LAST: letters in, the one support per trigger that wins every comparison by "the greatest position that differs is mine".

One source that Cython compiles and CPython also runs as it is; `evaluations.choosing.last` drives it (exit codes as in `cepheid.kernel.match`).

Compared from the end, the newer mark wins, and going on beats stopping (of two supports that agree so far the longer one has the greatest
position that differs). So the winner is found backwards and greedily: from the marks chosen so far go to the newest earlier mark that a start
inside the window can reach. Whether one can is a number, fixed when the event arrives: the GREATEST START of a partial match that takes
this move at this event. Along one move, from a waiting state to a waiting state, these numbers never decrease, for what rests in the source only
improves. So the newest occurrence of a move before a position also has the greatest start of all before it: if it is too old, all
older ones are. Hence per move (source, target) one ring of (position, letter, greatest start), and nothing else: no partial matches, no graph.

Update O(moves that fire). Output: O(moves into the states reached) per position, amortized, as each ring is walked backwards once
per trigger by a galloping search; only the first step into a ring costs O(log n).

A block holds HEADER (see `evaluations.choosing.supports`), then [6] live, the sources as bits that may have an open match (bit 0 the initial
state, bit 62 all from 62 on), then greatest[state], -1 without a partial match, then the directory of the rings: ring 0 the starts, then one
per move.
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
    first_open,
    grow,
)

COMPILED = cython.compiled

# Exit codes of `run`, in the order of their numbers.
EXITS = ("done", "letter", "pool", "output", "path", "limit", "pause")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "window",  # ! time window
    "timed",  # ! 1 with a time window
    "count_window",  # ! position window, 0 none
    "consume",  # ! 0 no, 1 in the partition, 2 in all
    "limit",  # ! 0 = count the triggers only
    "continued",  # ! 1: the first segment goes on with row 0
    "letter_mask",  # !
    "epoch",  # triggers that consumed all partitions
    "argument",  # of the exit code
    "buffered_matches",
    "buffered_positions",
    "triggers",  # events that ended a match
    "skipped",  # events passed by the skip loop
    "shift",  # position of an event = shift + row
    "live",  # of the partition being read
    "walk",  # number of the last walk and of the last choice in one: marks what is of it in `cursor_walk` and `seen`
    "plain",  # ! plain words of a block: where its directory starts
    "block_limit",  # ! words that a block may have
    "budget",  # ! what may be done before the kernel returns, so that whoever waits can break in
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, B_ a word of a
# block, D_ one of a ring's line in its directory.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_POOL, EXIT_OUTPUT, EXIT_PATH, EXIT_LIMIT, EXIT_PAUSE = range(7)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_WINDOW, S_TIMED, S_COUNT_WINDOW, S_CONSUME, S_LIMIT, S_CONTINUED, S_LETTER_MASK = range(10)
    S_EPOCH, S_ARGUMENT, S_BUFFERED_MATCHES, S_BUFFERED_POSITIONS, S_TRIGGERS, S_SKIPPED, S_SHIFT, S_LIVE, S_WALK, S_PLAIN = range(10, 20)
    S_BLOCK_LIMIT, S_BUDGET = range(20, 22)
    B_LIVE, B_GREATEST = range(6, 8)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def entry_before(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    head: cython.longlong,
    high: cython.longlong,
    mask: cython.longlong,
    mark: cython.longlong,
) -> cython.longlong:
    """The number of the newest entry of a ring before `mark`, below `high` (behind the head), or the one before the head: gallop, then halve."""
    low: cython.longlong = high - 1
    middle: cython.longlong = 0
    step: cython.longlong = 1
    if words[data + 3 * (low & mask)] < mark:
        return low
    # `low` is before `mark` or before the head, `high` is not.
    high = low
    while True:
        low = high - step
        if low < head:
            low = head - 1
            break
        if words[data + 3 * (low & mask)] < mark:
            break
        high = low
        step += step
    while high - low > 1:
        middle = low + (high - low) // 2
        if words[data + 3 * (middle & mask)] < mark:
            low = middle
        else:
            high = middle
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def walk_back(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    into_first: cython.const[cython.int][::1],
    into: cython.const[cython.int][::1],
    states: cython.int[::1],
    seen: cython.longlong[::1],
    cursors: cython.longlong[::1],
    cursor_walk: cython.longlong[::1],
    path: cython.longlong[::1],
    b: cython.Py_ssize_t,
    directory: cython.Py_ssize_t,
    oldest: cython.longlong,
    p: cython.longlong,
    letter: cython.longlong,
    accepting: cython.int,
) -> cython.Py_ssize_t:
    """The winning support that ends at p, from the first `accepting` of `states`: its marks in `path`, last one first, the letters in its upper half.

    Returns how many, or -1 without room.
    """
    path_room: cython.Py_ssize_t = path.shape[0] // 2
    half: cython.Py_ssize_t = states.shape[0] // 2
    walk: cython.longlong = S[S_WALK] + 1
    trip: cython.longlong = walk
    depth: cython.Py_ssize_t = 1
    here: cython.Py_ssize_t = 0  # which half of `states` is current
    height: cython.int = accepting
    more: cython.int = 0
    source: cython.int = 0
    target: cython.int = 0
    k: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    data: cython.Py_ssize_t = 0
    head: cython.longlong = 0
    mask: cython.longlong = 0
    low: cython.longlong = 0
    high: cython.longlong = 0
    mark: cython.longlong = p
    best: cython.longlong = 0
    path[0] = p
    path[path_room] = letter
    while True:
        best = -1
        more = 0
        for k in range(height):
            target = states[here + k]
            for m in range(into_first[target], into_first[target + 1]):
                r = into[2 * m]
                w = directory + 4 * r
                head = words[w + D_HEAD]
                data = b + words[w + D_DATA]
                mask = words[w + D_MASK]
                high = words[w + D_TAIL]
                if cursor_walk[r] == trip:
                    high = cursors[r]
                if high <= head:
                    continue
                low = entry_before(words, data, head, high, mask, mark)
                cursors[r] = low + 1
                cursor_walk[r] = trip
                if low < head:
                    continue
                w = data + 3 * (low & mask)
                if words[w] < best or words[w + 2] < oldest:
                    continue
                if words[w] > best:
                    best = words[w]
                    letter = words[w + 1]
                    more = 0
                    walk += 1
                source = into[2 * m + 1]
                if seen[source] != walk:
                    seen[source] = walk
                    states[half - here + more] = source
                    more += 1
        S[S_WALK] = walk
        if best < 0:
            return depth
        if depth == path_room:
            return -1
        path[depth] = best
        path[path_room + depth] = letter
        depth += 1
        mark = best
        here = half - here
        height = more


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    rows: cython.const[cython.int][::1],
    vetoed: cython.const[cython.uchar][::1],
    lut: cython.const[cython.int][::1],
    letter_of: cython.const[cython.longlong][::1],
    words: cython.longlong[::1],
    offsets: cython.longlong[::1],
    template: cython.const[cython.longlong][::1],
    sizes: cython.longlong[::1],
    pool: cython.longlong[::1],
    widths: cython.const[cython.longlong][::1],
    sources: cython.const[cython.longlong][::1],
    first_of: cython.const[cython.int][::1],
    moves: cython.const[cython.int][::1],
    into_first: cython.const[cython.int][::1],
    into: cython.const[cython.int][::1],
    starts: cython.longlong[::1],
    states: cython.int[::1],
    seen: cython.longlong[::1],
    cursors: cython.longlong[::1],
    cursor_walk: cython.longlong[::1],
    path: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_letters: cython.longlong[::1],
    out_segments: cython.int[::1],
    marked: cython.uchar[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters (index into lut), times, cuts, rows (of each segment's block, 0: the workplace, reset first), vetoed (of which rows no matches are
    given; empty: of none).
    TABLES: lut (letter -> code, -1 unknown), letter_of[code]; sources[code] (states, as bits, that a move leaves on it); moves (stride 3: source,
    target or -1 if final, ring), those of a code from first_of[code] to first_of[code + 1]; into (stride 2: ring, source), those of a target
    from into_first[target] on. BLOCKS: words, offsets, template, sizes, pool, widths (see `cepheid.engine.memory.blocks.Blocks`).
    SCRATCH: starts (as many as moves fire at once), states (two halves), seen (per state), cursors and cursor_walk (per ring), path (two
    halves). OUT: out_*; marked[row] = 1 where the event took a move.
    """
    count: cython.Py_ssize_t = letters.shape[0]
    segments: cython.Py_ssize_t = cuts.shape[0]
    i: cython.Py_ssize_t = S[S_ROW]
    segment: cython.Py_ssize_t = S[S_SEGMENT]
    end: cython.Py_ssize_t = S[S_SEGMENT_END]
    window: cython.ulonglong = S[S_WINDOW]
    timed: cython.int = S[S_TIMED]
    count_window: cython.longlong = S[S_COUNT_WINDOW]
    consume: cython.int = S[S_CONSUME]
    limit: cython.longlong = S[S_LIMIT]
    letter_mask: cython.uint = S[S_LETTER_MASK]
    epoch: cython.longlong = S[S_EPOCH]
    argument: cython.longlong = 0
    supports: cython.longlong = S[S_BUFFERED_MATCHES]
    marks: cython.longlong = S[S_BUFFERED_POSITIONS]
    skipped: cython.longlong = S[S_SKIPPED]
    shift: cython.longlong = S[S_SHIFT]
    live: cython.longlong = S[S_LIVE]
    plain: cython.Py_ssize_t = S[S_PLAIN]
    rings: cython.Py_ssize_t = widths.shape[0]
    room: cython.longlong = out_positions.shape[0]
    support_room: cython.longlong = out_segments.shape[0]
    path_room: cython.Py_ssize_t = path.shape[0] // 2
    rc: cython.int = 0
    budget: cython.longlong = S[S_BUDGET]
    c: cython.int = 0
    b: cython.Py_ssize_t = 0  # where the block starts
    directory: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t = 0
    data: cython.Py_ssize_t = 0
    source: cython.int = 0
    target: cython.int = 0
    fired: cython.int = 0
    accepting: cython.int = 0
    begins: cython.int = 0
    full: cython.int = -1
    most: cython.longlong = S[S_BLOCK_LIMIT]
    p: cython.longlong = 0
    oldest: cython.longlong = 0
    start: cython.longlong = 0
    head: cython.longlong = 0
    tail: cython.longlong = 0
    mask: cython.longlong = 0
    depth: cython.Py_ssize_t = 0
    letter: cython.longlong = 0
    one: cython.longlong = 1

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
                if (sources[c] & live) != 0:
                    break
                i += 1
                skipped += 1
            # ------------------------------------------------------------------------------------------------ segments
            if i >= end:
                if segment >= 0:
                    words[b + B_POSITION] = shift + end
                    words[b + B_LIVE] = live
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
                live = words[b + B_LIVE]
                continue
            if c < 0:
                rc = EXIT_LETTER
                break
            if budget < 0:
                rc = EXIT_PAUSE
                break
            budget -= 1 + rings
            # ------------------------------------------------------------------------------------------------ window
            p = shift + i
            oldest = words[b + B_LOW]
            if count_window != 0 and oldest <= p - count_window:
                oldest = p - count_window + 1
            if timed != 0:
                oldest = first_open(words, b, directory, oldest, p, times[i], window)
            # ------------------------------------------------------------------------------------------------ moves, room
            first = first_of[c]
            stop = first_of[c + 1]
            fired = 0
            accepting = 0
            begins = 0
            full = -1
            for k in range(first, stop):
                source = moves[3 * k]
                start = p
                if source != 0:
                    start = words[b + B_GREATEST + source]
                starts[k - first] = start
                if start < oldest:
                    if source < 62:
                        live &= ~(one << source)
                    continue
                if moves[3 * k + 1] < 0:
                    states[accepting] = source
                    accepting += 1
                    continue
                fired += 1
                if source == 0:
                    begins = 1
                r = moves[3 * k + 2]
                w = directory + 4 * r
                head = words[w + D_HEAD]
                if words[w + D_TAIL] - head > words[w + D_MASK]:  # full: its oldest entries may be dead
                    data = b + words[w + D_DATA]
                    mask = words[w + D_MASK]
                    while head != words[w + D_TAIL] and words[data + 3 * (head & mask) + 2] < oldest:
                        head += 1
                    words[w + D_HEAD] = head
                    if words[w + D_TAIL] - head > mask:
                        full = r
                        break
            if (
                full < 0
                and begins != 0
                and timed != 0
                and words[directory + D_TAIL] - words[directory + D_HEAD] > words[directory + D_MASK]
            ):
                full = 0
            if full >= 0:  # make room, and look at the event again
                argument = grow(words, offsets, sizes, pool, rows[segment], plain, rings, 3, 0, full, most)
                if argument != 0:
                    rc = EXIT_POOL if argument > 0 else EXIT_LIMIT
                    break
                b = offsets[rows[segment]]
                directory = b + plain
                continue
            if fired == 0 and accepting == 0:
                i += 1
                continue
            # ------------------------------------------------------------------------------------------------ walk back
            if accepting != 0:
                if limit != 0 and (vetoed.shape[0] == 0 or vetoed[i] == 0):
                    if supports == support_room:
                        rc = EXIT_OUTPUT
                        break
                    depth = walk_back(
                        S,
                        words,
                        into_first,
                        into,
                        states,
                        seen,
                        cursors,
                        cursor_walk,
                        path,
                        b,
                        directory,
                        oldest,
                        p,
                        letter_of[c],
                        accepting,
                    )
                    if depth < 0:
                        rc = EXIT_PATH
                        break
                    if marks + depth > room:
                        rc = EXIT_OUTPUT
                        break
                    for k in range(depth):
                        out_positions[marks + k] = path[depth - 1 - k]
                        out_letters[marks + k] = path[path_room + depth - 1 - k]
                    marks += depth
                    out_segments[supports] = segment
                    supports += 1
                    out_offsets[supports] = marks
                S[S_TRIGGERS] += 1
                marked[i] = 1
                if consume != 0:  # later matches start after this event
                    words[b + B_LOW] = p + 1
                    live = 1
                    if consume == 2:
                        epoch += 1
                        words[b + B_EPOCH] = epoch
                    i += 1
                    continue
            # ------------------------------------------------------------------------------------------------ take the moves
            if fired != 0:
                marked[i] = 1
                letter = letter_of[c]
                for k in range(first, stop):
                    start = starts[k - first]
                    target = moves[3 * k + 1]
                    if target < 0 or start < oldest:
                        continue
                    w = directory + 4 * moves[3 * k + 2]
                    tail = words[w + D_TAIL]
                    words[w + D_TAIL] = tail + 1
                    w = b + words[w + D_DATA] + 3 * (tail & words[w + D_MASK])
                    words[w] = p
                    words[w + 1] = letter
                    words[w + 2] = start
                    w = b + B_GREATEST + target
                    if start > words[w]:
                        words[w] = start
                    live |= one << (target if target < 62 else 62)
                if begins != 0:
                    words[b + B_NEWEST_START] = p
                    words[b + B_NEWEST_TIME] = times[i]
                    if timed != 0:
                        tail = words[directory + D_TAIL]
                        words[directory + D_TAIL] = tail + 1
                        w = b + words[directory + D_DATA] + 2 * (tail & words[directory + D_MASK])
                        words[w] = p
                        words[w + 1] = times[i]
            i += 1

    S[S_ROW] = i
    S[S_SEGMENT] = segment
    S[S_SEGMENT_END] = end
    S[S_EPOCH] = epoch
    S[S_ARGUMENT] = argument
    S[S_BUFFERED_MATCHES] = supports
    S[S_BUFFERED_POSITIONS] = marks
    S[S_SKIPPED] = skipped
    S[S_SHIFT] = shift
    S[S_LIVE] = live
    return rc
