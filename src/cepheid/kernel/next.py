# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of NXT: letters in, winning supports out; one source that Cython compiles and CPython also runs as it is.

What it computes and why that is right is written in `cepheid.engine.evaluations.next`. `run` is one loop without allocation and without Python
objects. Whatever is rare (an unknown letter, a full ring, full output buffers) makes it return an exit code before it has changed anything
for the event at hand; the driver mends and calls again.

The state of a partition is one BLOCK of int64 (see `cepheid.engine.memory.blocks`), worked on in place. Its words:
    [0] position of the partition's next event
    [1] low: least position that a match may start at (consumption, and the windows as of the last event that was looked at)
    [2] epoch in which `low` was last right (CONSUME BY ANY)
    [3] time of its last event
    [4] position and [5] time of the last event that may start a match
    then one hint per ring (where the last search in it ended), then the greatest first marks, -1 for never.
    Then the directory of the rings: head, tail (numbers of the first and the next entry, which grow for ever), offset of the entries in the
    block, mask (places - 1). Ring 0 holds (position, time) of the starts, each other one (position, letter) of the events that satisfy one predicate.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython

COMPILED = cython.compiled

# Exit codes of `run`, in the order of their numbers.
EXITS = ("done", "letter", "pool", "limit", "output", "pause")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # 0 next row of the batch
    "segment",  # 1 index of the segment being read, -1 before the first
    "segment_end",  # 2 row where it ends
    "window",  # 3 ! time window
    "timed",  # 4 ! 1 with a time window
    "count_window",  # 5 ! position window, 0 none
    "limit",  # 6 ! 0 = count the triggers only
    "consume",  # 7 ! 0 none, 1 partition, 2 any
    "epoch",  # 8 triggers so far that consumed all partitions
    "letter_mask",  # 9 !
    "continued",  # 10 ! 1: the first segment goes on with block 0
    "states",  # 11 ! initial state (0) and waiting states
    "rings",  # 12 ! rings of a block
    "directory",  # 13 ! word of a block where the directory of its rings starts
    "buffered_matches",  # 14 supports in the output buffers
    "buffered_positions",  # 15
    "argument",  # 16 of the exit code: words that the pool lacks, or the full ring
    "triggers",  # 17 events that ended a match
    "skipped",  # 18 events that changed nothing
    "block_limit",  # 19 ! words that a block may have
    "budget",  # 20 ! what may be done before the kernel returns, so that whoever waits can break in
)

# What an event's letter does: a record of these numbers in `actions`, followed by the lists they count, in this order.
ACTION = (
    "code",  # 0
    "flags",  # 1 STARTS, ENDS, HELD
    "sources",  # 2 words: greatest start of each state that a transition leaves (none where one leaves the initial state)
    "finals",  # 3 words: greatest start of each state that a final transition leaves
    "deadlines",  # 4 (state, word): a greatest first mark of a run from the state that can end now
    "ending",  # 5 states that a final transition leaves, without the initial one
    "rings",  # 6 words of the directory: the lines of the rings that take the event
    "merges",  # 7 (word, word): the first becomes the greater of both
    "puts",  # 8 words that become the event's position
)

STARTS, ENDS, HELD = 1, 2, 4
"""Flags: a transition that is not final, a final one leaves the initial state; merges read what other merges write."""


@cython.cfunc  # type: ignore[untyped-decorator]
@cython.nogil  # type: ignore[untyped-decorator]
def grow(
    blocks: cython.longlong[::1],
    offsets: cython.longlong[::1],
    sizes: cython.longlong[::1],
    pool: cython.longlong[::1],
    number: cython.Py_ssize_t,
    directory: cython.Py_ssize_t,
    rings: cython.Py_ssize_t,
    ring: cython.Py_ssize_t,
    most: cython.longlong,
) -> cython.longlong:
    """Double a ring of a block, and those more than half full, in a larger block (`cepheid.engine.memory.blocks.Blocks.grow`; entries of two words).

    Returns 0, or how many words the pool lacks, or -1 where the block would have more than `most` words.
    """
    old: cython.Py_ssize_t = offsets[number]
    new: cython.Py_ssize_t = 0
    total: cython.longlong = directory + 4 * rings
    size: cython.longlong = 4
    part: cython.longlong = 1
    klass: cython.Py_ssize_t = 0
    data: cython.Py_ssize_t = total
    r: cython.Py_ssize_t = 0
    d: cython.Py_ssize_t = 0
    e: cython.Py_ssize_t = 0
    k: cython.longlong = 0
    places: cython.longlong = 0
    for r in range(rings):
        d = old + directory + 4 * r
        places = blocks[d + 3] + 1
        if r == ring or 2 * (blocks[d + 1] - blocks[d]) > places:
            places += places
        total += 2 * places
    if total > most:
        return -1
    while size < total:  # classes: 4, 5, 6, 7 times a power of two
        size += part
        klass += 1
        if size == 8 * part:
            part += part
    new = pool[klass]
    if new >= 0:
        pool[klass] = blocks[new]
    else:
        new = pool[128]
        if new + size > blocks.shape[0]:
            return size
        pool[128] = new + size
    for r in range(directory):
        blocks[new + r] = blocks[old + r]
    for r in range(rings):
        d = old + directory + 4 * r
        e = new + directory + 4 * r
        places = blocks[d + 3] + 1
        if r == ring or 2 * (blocks[d + 1] - blocks[d]) > places:
            places += places
        blocks[e] = blocks[d]
        blocks[e + 1] = blocks[d + 1]
        blocks[e + 2] = data
        blocks[e + 3] = places - 1
        for k in range(blocks[d], blocks[d + 1]):
            blocks[new + data + 2 * (k & (places - 1))] = blocks[old + blocks[d + 2] + 2 * (k & blocks[d + 3])]
            blocks[new + data + 2 * (k & (places - 1)) + 1] = blocks[old + blocks[d + 2] + 2 * (k & blocks[d + 3]) + 1]
        data += 2 * places
    klass = 0
    total = 4
    part = 1
    while total < sizes[number]:
        total += part
        klass += 1
        if total == 8 * part:
            part += part
    blocks[old] = pool[klass]
    pool[klass] = old
    offsets[number] = new
    sizes[number] = size
    return 0


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    numbers: cython.const[cython.int][::1],
    lut: cython.int[::1],
    letter_of: cython.longlong[::1],
    blocks: cython.longlong[::1],
    offsets: cython.longlong[::1],
    template: cython.longlong[::1],
    sizes: cython.longlong[::1],
    pool: cython.longlong[::1],
    place_of: cython.int[::1],
    actions: cython.int[::1],
    move_start: cython.int[::1],
    moves: cython.int[::1],
    held: cython.longlong[::1],
    deadline: cython.longlong[::1],
    sets: cython.int[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_letters: cython.longlong[::1],
    out_segments: cython.int[::1],
    marked: cython.uchar[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters (index into lut), times (non-decreasing in a segment), cuts (row where each segment starts), numbers (of the block that
    holds the segment's partition; 0: nothing is kept after the segment, block 0 is its workplace).
    TABLES: lut (letter -> code, -1 unknown), letter_of, template (a new block), place_of (code -> place of its record in `actions`, 0 if it does
    nothing), actions (see ACTION), move_start (by state, place in `moves`), moves (of the transitions that are not final; stride 3: word of
    the ring's line in the directory, word of its hint, target).
    STATE: blocks, offsets, sizes, pool (see `cepheid.engine.memory.blocks.Blocks`). WORK: held (as long as the longest list of merges),
    deadline (states), sets (3 * states).
    OUT: out_offsets[0..supports], out_positions, out_letters, out_segments; marked[row] = 1 where the event may be part of a match.
    """
    rows: cython.Py_ssize_t = letters.shape[0]
    segments: cython.Py_ssize_t = cuts.shape[0]
    i: cython.Py_ssize_t = S[0]  # row
    segment: cython.Py_ssize_t = S[1]  # segment
    end: cython.Py_ssize_t = S[2]  # segment_end
    window: cython.ulonglong = S[3]  # window
    timed: cython.int = S[4]  # timed
    count_window: cython.longlong = S[5]  # count_window
    limit: cython.longlong = S[6]  # limit
    consume: cython.int = S[7]  # consume
    epoch: cython.longlong = S[8]  # epoch
    letter_mask: cython.uint = S[9]  # letter_mask
    states: cython.int = S[11]  # states
    rings: cython.int = S[12]  # rings
    directory: cython.Py_ssize_t = S[13]  # directory
    nm: cython.longlong = S[14]  # buffered_matches
    npos: cython.longlong = S[15]  # buffered_positions
    argument: cython.longlong = 0
    full: cython.int = -1
    block_limit: cython.longlong = S[19]  # block_limit
    triggers: cython.longlong = S[17]  # triggers
    skipped: cython.longlong = S[18]  # skipped
    match_room: cython.longlong = out_segments.shape[0]
    position_room: cython.longlong = out_positions.shape[0]
    b: cython.Py_ssize_t = 0
    shift: cython.longlong = 0
    low: cython.longlong = 0
    rc: cython.int = 0
    budget: cython.longlong = S[20]  # budget
    a: cython.Py_ssize_t = 0
    t: cython.Py_ssize_t = 0
    g: cython.Py_ssize_t = 0
    d: cython.Py_ssize_t = 0
    entry: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    c: cython.int = 0
    flags: cython.int = 0
    live: cython.int = 0
    p: cython.longlong = 0
    head: cython.longlong = 0
    tail: cython.longlong = 0
    mask: cython.longlong = 0
    below: cython.longlong = 0
    above: cython.longlong = 0
    middle: cython.longlong = 0
    step: cython.longlong = 0
    reached: cython.longlong = 0
    best: cython.longlong = 0
    mark: cython.longlong = 0
    letter: cython.longlong = 0
    w: cython.longlong = 0
    now: cython.ulonglong = 0
    then: cython.ulonglong = 0
    here: cython.int = 0
    there: cython.int = states
    stamp: cython.int = 0
    count: cython.int = 0
    entered: cython.int = 0
    state: cython.int = 0
    target: cython.int = 0
    side: cython.int = 0

    with cython.nogil:
        for side in range(2 * states, 3 * states):
            sets[side] = 0
        if segment >= 0:
            b = offsets[numbers[segment]]
            shift = blocks[b] - i
            low = blocks[b + 1]
        while True:
            # ------------------------------------------------------------------------------------------------ skip
            c = 0
            k = i
            while i < end:
                c = lut[letters[i] & letter_mask]
                if c < 0:
                    break
                a = place_of[c]
                if a != 0:
                    break
                i += 1
            skipped += i - k
            # ------------------------------------------------------------------------------------------------ segments
            if i >= end:
                if segment >= 0:
                    blocks[b] = shift + i
                    blocks[b + 1] = low
                    if i > cuts[segment]:
                        blocks[b + 3] = times[i - 1]
                segment += 1
                if segment == segments:
                    break
                end = rows
                if segment + 1 < segments:
                    end = cuts[segment + 1]
                b = offsets[numbers[segment]]
                if numbers[segment] == 0 and (segment != 0 or S[10] == 0):  # not continued: forget what the workplace holds
                    for k in range(directory):
                        blocks[b + k] = template[k]
                    blocks[b + 2] = epoch
                    d = b + directory
                    for k in range(rings):
                        blocks[d + 4 * k] = 0
                        blocks[d + 4 * k + 1] = 0
                low = blocks[b + 1]
                if blocks[b + 2] != epoch:  # a match of another partition has consumed what came before
                    blocks[b + 2] = epoch
                    low = blocks[b]
                shift = blocks[b] - i
                continue
            if c < 0:
                rc = 1
                break
            if budget < 0:
                rc = 5
                break
            budget -= 1 + states
            # ------------------------------------------------------------------------------------------------ the least start
            p = shift + i
            if count_window != 0 and p - low >= count_window:
                low = p - count_window + 1
            if timed != 0:
                now = times[i]
                d = b + directory
                head = blocks[d]
                tail = blocks[d + 1]
                entry = b + blocks[d + 2]
                mask = blocks[d + 3]
                w = p
                while head != tail:
                    g = entry + 2 * (head & mask)
                    then = blocks[g + 1]  # unsigned: the difference of two int64 times cannot overflow
                    if now - then <= window and blocks[g] >= low:
                        w = blocks[g]
                        break
                    head += 1
                blocks[d] = head
                if w > low:
                    low = w
            # ------------------------------------------------------------------------------------------------ is the event of use?
            flags = actions[a + 1]
            t = a + 9
            live = flags & 3
            if live == 0:
                for k in range(actions[a + 2]):
                    if blocks[b + actions[t + k]] >= low:
                        live = 1
                        break
                if live == 0:
                    i += 1
                    skipped += 1
                    continue
            t += actions[a + 2]
            # ------------------------------------------------------------------------------------------------ room in its rings
            full = -1
            if timed != 0 and (flags & 1) != 0:
                d = b + directory
                if blocks[d + 1] - blocks[d] > blocks[d + 3]:
                    full = 0
            g = t + actions[a + 3] + 2 * actions[a + 4] + actions[a + 5]
            for k in range(actions[a + 6]):
                d = b + actions[g + k]
                head = blocks[d]
                if blocks[d + 1] - head > blocks[d + 3]:
                    tail = blocks[d + 1]
                    entry = b + blocks[d + 2]
                    mask = blocks[d + 3]
                    while head != tail and blocks[entry + 2 * (head & mask)] < low:
                        head += 1
                    if head == blocks[d]:
                        full = (actions[g + k] - directory) >> 2
                        break
                    blocks[d] = head
            if full >= 0:  # make room, and look at the event again
                argument = grow(blocks, offsets, sizes, pool, numbers[segment], directory, rings, full, block_limit)
                b = offsets[numbers[segment]]
                if argument == 0:
                    continue
                rc = 2
                if argument < 0:
                    argument = full
                    rc = 3
                break
            # ------------------------------------------------------------------------------------------------ does a match end here?
            live = (flags >> 1) & 1
            for k in range(actions[a + 3]):
                if blocks[b + actions[t + k]] >= low:
                    live = 1
            if live != 0:
                letter = letter_of[actions[a]]
                if limit != 0:
                    if nm == match_room:
                        rc = 4
                        break
                    t += actions[a + 3]
                    for k in range(states):
                        deadline[k] = -1
                    for k in range(actions[a + 4]):
                        state = actions[t + 2 * k]
                        w = blocks[b + actions[t + 2 * k + 1]]
                        if w > deadline[state]:
                            deadline[state] = w
                    t += 2 * actions[a + 4]
                    for k in range(actions[a + 5]):
                        deadline[actions[t + k]] = p
                    # The greedy walk; `sets` holds the states reached, those reached next, and when each was last put there.
                    w = npos
                    reached = low - 1
                    sets[here] = 0
                    count = 1
                    while True:
                        best = p
                        entered = 0
                        for side in range(count):
                            state = sets[here + side]
                            for k in range(move_start[state], move_start[state + 1], 3):
                                target = moves[k + 2]
                                if deadline[target] <= reached + 1:
                                    continue
                                # The least entry above `reached`: gallop from where the last search in this ring ended.
                                d = b + moves[k]
                                head = blocks[d]
                                tail = blocks[d + 1]
                                entry = b + blocks[d + 2]
                                mask = blocks[d + 3]
                                above = blocks[b + moves[k + 1]]
                                if above < head:
                                    above = head
                                if above >= tail or blocks[entry + 2 * (above & mask)] > reached:
                                    if above > tail:
                                        above = tail
                                    step = 1
                                    below = above - 1
                                    while below >= head and blocks[entry + 2 * (below & mask)] > reached:
                                        above = below
                                        step += step
                                        below -= step
                                    if below < head:
                                        below = head - 1
                                else:
                                    step = 1
                                    below = above
                                    above += 1
                                    while above < tail and blocks[entry + 2 * (above & mask)] <= reached:
                                        below = above
                                        step += step
                                        above += step
                                    if above > tail:
                                        above = tail
                                while above - below > 1:
                                    middle = (above + below) >> 1
                                    if blocks[entry + 2 * (middle & mask)] > reached:
                                        above = middle
                                    else:
                                        below = middle
                                blocks[b + moves[k + 1]] = above
                                if above == tail:
                                    continue
                                g = entry + 2 * (above & mask)
                                mark = blocks[g]
                                if mark > best or mark >= deadline[target]:
                                    continue
                                if mark < best:
                                    best = mark
                                    letter = blocks[g + 1]
                                    entered = 0
                                    stamp += 1
                                if sets[2 * states + target] != stamp:
                                    sets[2 * states + target] = stamp
                                    sets[there + entered] = target
                                    entered += 1
                        if w == position_room:
                            rc = 4
                            break
                        out_positions[w] = best
                        if entered == 0:
                            out_letters[w] = letter_of[actions[a]]
                            w += 1
                            break
                        out_letters[w] = letter
                        w += 1
                        count = entered
                        here = there
                        there = states - there
                        reached = best
                    if rc != 0:
                        break
                    npos = w
                    out_segments[nm] = segment
                    nm += 1
                    out_offsets[nm] = w
                triggers += 1
                marked[i] = 1
                if consume != 0:
                    low = p + 1
                    if consume == 2:
                        epoch += 1
                        blocks[b + 2] = epoch
                    i += 1
                    continue
                t = a + 9 + actions[a + 2]
            # ------------------------------------------------------------------------------------------------ what it leaves behind
            t += actions[a + 3] + 2 * actions[a + 4] + actions[a + 5]
            letter = letter_of[actions[a]]
            if (flags & 1) != 0:
                blocks[b + 4] = p
                blocks[b + 5] = times[i]
                if timed != 0:
                    d = b + directory
                    tail = blocks[d + 1]
                    g = b + blocks[d + 2] + 2 * (tail & blocks[d + 3])
                    blocks[g] = p
                    blocks[g + 1] = times[i]
                    blocks[d + 1] = tail + 1
            for k in range(actions[a + 6]):
                d = b + actions[t + k]
                tail = blocks[d + 1]
                g = b + blocks[d + 2] + 2 * (tail & blocks[d + 3])
                blocks[g] = p
                blocks[g + 1] = letter
                blocks[d + 1] = tail + 1
                marked[i] = 1
            t += actions[a + 6]
            if (flags & 4) == 0:
                for k in range(actions[a + 7]):
                    w = blocks[b + actions[t + 2 * k + 1]]
                    d = b + actions[t + 2 * k]
                    if w > blocks[d]:
                        blocks[d] = w
            else:  # a mark must not extend itself
                for k in range(actions[a + 7]):
                    held[k] = blocks[b + actions[t + 2 * k + 1]]
                for k in range(actions[a + 7]):
                    d = b + actions[t + 2 * k]
                    if held[k] > blocks[d]:
                        blocks[d] = held[k]
            t += 2 * actions[a + 7]
            for k in range(actions[a + 8]):
                blocks[b + actions[t + k]] = p
            i += 1
        if rc != 0:
            blocks[b] = shift + i
            blocks[b + 1] = low

    S[0] = i  # row
    S[1] = segment  # segment
    S[2] = end  # segment_end
    S[8] = epoch  # epoch
    S[14] = nm  # buffered_matches
    S[15] = npos  # buffered_positions
    S[16] = argument  # argument
    S[17] = triggers  # triggers
    S[18] = skipped  # skipped
    return rc
