# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of NXT: letters in, winning supports out; one source that Cython compiles and CPython also runs as it is.

What it computes and why that is right is written in `evaluations.choosing.next`. `run` is one loop without allocation and without Python
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
EXITS = ("done", "letter", "pool", "limit", "output", "pause")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "window",  # ! time window
    "timed",  # ! 1 with a time window
    "count_window",  # ! position window, 0 none
    "limit",  # ! 0 = count the triggers only
    "consume",  # ! 0 none, 1 partition, 2 any
    "epoch",  # triggers so far that consumed all partitions
    "letter_mask",  # !
    "continued",  # ! 1: the first segment goes on with block 0
    "states",  # ! initial state (0) and waiting states
    "rings",  # ! rings of a block
    "directory",  # ! word of a block where the directory of its rings starts
    "buffered_matches",  # supports in the output buffers
    "buffered_positions",
    "argument",  # of the exit code: words that the pool lacks, or the full ring
    "triggers",  # events that ended a match
    "skipped",  # events that changed nothing
    "block_limit",  # ! words that a block may have
    "budget",  # ! what may be done before the kernel returns, so that whoever waits can break in
)

# What an event's letter does: a record of these numbers in `actions`, followed by the lists they count, in this order.
ACTION = (
    "code",
    "flags",  # LEAVES, ENDS: a transition that is not final, a final one leaves the initial state; HELD: merges read what others write
    "sources",  # words: greatest start of each state that a transition leaves (none where one leaves the initial state)
    "finals",  # words: greatest start of each state that a final transition leaves
    "deadlines",  # (state, word): a greatest first mark of a run from the state that can end now
    "ending",  # states that a final transition leaves, without the initial one
    "rings",  # words of the directory: the lines of the rings that take the event
    "merges",  # (word, word): the first becomes the greater of both
    "puts",  # words that become the event's position
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, B_ a word of a
# block, D_ one of a ring's line in its directory, A_ a number of a record in `actions`.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_POOL, EXIT_LIMIT, EXIT_OUTPUT, EXIT_PAUSE = range(6)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_WINDOW, S_TIMED, S_COUNT_WINDOW, S_LIMIT, S_CONSUME, S_EPOCH, S_LETTER_MASK = range(10)
    S_CONTINUED, S_STATES, S_RINGS, S_DIRECTORY, S_BUFFERED_MATCHES, S_BUFFERED_POSITIONS, S_ARGUMENT, S_TRIGGERS = range(10, 18)
    S_SKIPPED, S_BLOCK_LIMIT, S_BUDGET = range(18, 21)
    A_CODE, A_FLAGS, A_SOURCES, A_FINALS, A_DEADLINES, A_ENDING, A_RINGS, A_MERGES, A_PUTS = range(9)
    ACTION_WIDTH = 9
    LEAVES, ENDS, HELD = 1, 2, 4


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def entry_above(
    blocks: cython.longlong[::1],
    entry: cython.Py_ssize_t,
    head: cython.longlong,
    tail: cython.longlong,
    mask: cython.longlong,
    hint: cython.longlong,
    reached: cython.longlong,
) -> cython.longlong:
    """The number of the least entry of a ring above `reached`, or its tail: gallop from where the last search in this ring ended, then halve."""
    above: cython.longlong = hint
    below: cython.longlong = 0
    middle: cython.longlong = 0
    step: cython.longlong = 1
    if above < head:
        above = head
    if above >= tail or blocks[entry + 2 * (above & mask)] > reached:
        if above > tail:
            above = tail
        below = above - 1
        while below >= head and blocks[entry + 2 * (below & mask)] > reached:
            above = below
            step += step
            below -= step
        if below < head:
            below = head - 1
    else:
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
    return above


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def walk_forward(
    blocks: cython.longlong[::1],
    letter_of: cython.longlong[::1],
    actions: cython.int[::1],
    move_start: cython.int[::1],
    moves: cython.int[::1],
    deadline: cython.longlong[::1],
    sets: cython.int[::1],
    out_positions: cython.longlong[::1],
    out_letters: cython.longlong[::1],
    states: cython.int,
    a: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    t: cython.Py_ssize_t,
    p: cython.longlong,
    low: cython.longlong,
    w: cython.longlong,
) -> cython.longlong:
    """The greedy walk from the least start to the event at p: its positions and letters from place w on.

    a, t: the record of the event's letter in `actions`, and where its list of deadlines is. `sets` holds the states reached, those reached next, and
    when each was last put there. Returns the place behind the support, or -1 without room.
    """
    position_room: cython.longlong = out_positions.shape[0]
    here: cython.int = 0
    there: cython.int = states
    stamp: cython.int = 0
    count: cython.int = 1
    entered: cython.int = 0
    state: cython.int = 0
    target: cython.int = 0
    side: cython.int = 0
    k: cython.Py_ssize_t = 0
    d: cython.Py_ssize_t = 0
    g: cython.Py_ssize_t = 0
    entry: cython.Py_ssize_t = 0
    tail: cython.longlong = 0
    mask: cython.longlong = 0
    above: cython.longlong = 0
    reached: cython.longlong = low - 1
    best: cython.longlong = 0
    mark: cython.longlong = 0
    letter: cython.longlong = 0
    for k in range(states):
        deadline[k] = -1
        sets[2 * states + k] = 0
    for k in range(actions[a + A_DEADLINES]):
        state = actions[t + 2 * k]
        mark = blocks[b + actions[t + 2 * k + 1]]
        if mark > deadline[state]:
            deadline[state] = mark
    t += 2 * actions[a + A_DEADLINES]
    for k in range(actions[a + A_ENDING]):
        deadline[actions[t + k]] = p
    sets[here] = 0
    while True:
        best = p
        entered = 0
        for side in range(count):
            state = sets[here + side]
            for k in range(move_start[state], move_start[state + 1], 3):
                target = moves[k + 2]
                if deadline[target] <= reached + 1:
                    continue
                d = b + moves[k]
                tail = blocks[d + D_TAIL]
                entry = b + blocks[d + D_DATA]
                mask = blocks[d + D_MASK]
                above = entry_above(blocks, entry, blocks[d + D_HEAD], tail, mask, blocks[b + moves[k + 1]], reached)
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
            return -1
        out_positions[w] = best
        if entered == 0:
            out_letters[w] = letter_of[actions[a + A_CODE]]
            return w + 1
        out_letters[w] = letter
        w += 1
        count = entered
        here = there
        there = states - there
        reached = best


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    numbers: cython.const[cython.int][::1],
    vetoed: cython.const[cython.uchar][::1],
    lut: cython.int[::1],
    letter_of: cython.longlong[::1],
    blocks: cython.longlong[::1],
    offsets: cython.longlong[::1],
    template: cython.const[cython.longlong][::1],
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
    holds the segment's partition; 0: nothing is kept after the segment, block 0 is its workplace), vetoed (of which rows no matches are given;
    empty: of none).
    TABLES: lut (letter -> code, -1 unknown), letter_of, template (a new block), place_of (code -> place of its record in `actions`, 0 if it does
    nothing), actions (see ACTION), move_start (by state, place in `moves`), moves (of the transitions that are not final; stride 3: word of
    the ring's line in the directory, word of its hint, target).
    STATE: blocks, offsets, sizes, pool (see `cepheid.engine.memory.blocks.Blocks`). WORK: held (as long as the longest list of merges),
    deadline (states), sets (3 * states).
    OUT: out_offsets[0..supports], out_positions, out_letters, out_segments; marked[row] = 1 where the event may be part of a match.
    """
    rows: cython.Py_ssize_t = letters.shape[0]
    segments: cython.Py_ssize_t = cuts.shape[0]
    i: cython.Py_ssize_t = S[S_ROW]
    segment: cython.Py_ssize_t = S[S_SEGMENT]
    end: cython.Py_ssize_t = S[S_SEGMENT_END]
    window: cython.ulonglong = S[S_WINDOW]
    timed: cython.int = S[S_TIMED]
    count_window: cython.longlong = S[S_COUNT_WINDOW]
    limit: cython.longlong = S[S_LIMIT]
    consume: cython.int = S[S_CONSUME]
    epoch: cython.longlong = S[S_EPOCH]
    letter_mask: cython.uint = S[S_LETTER_MASK]
    states: cython.int = S[S_STATES]
    rings: cython.int = S[S_RINGS]
    directory: cython.Py_ssize_t = S[S_DIRECTORY]
    nm: cython.longlong = S[S_BUFFERED_MATCHES]
    npos: cython.longlong = S[S_BUFFERED_POSITIONS]
    argument: cython.longlong = 0
    full: cython.int = -1
    block_limit: cython.longlong = S[S_BLOCK_LIMIT]
    triggers: cython.longlong = S[S_TRIGGERS]
    skipped: cython.longlong = S[S_SKIPPED]
    match_room: cython.longlong = out_segments.shape[0]
    b: cython.Py_ssize_t = 0
    shift: cython.longlong = 0
    low: cython.longlong = 0
    rc: cython.int = 0
    budget: cython.longlong = S[S_BUDGET]
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
    letter: cython.longlong = 0
    w: cython.longlong = 0

    with cython.nogil:
        if segment >= 0:
            b = offsets[numbers[segment]]
            shift = blocks[b + B_POSITION] - i
            low = blocks[b + B_LOW]
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
                    blocks[b + B_POSITION] = shift + i
                    blocks[b + B_LOW] = low
                    if i > cuts[segment]:
                        blocks[b + B_LAST_TIME] = times[i - 1]
                segment += 1
                if segment == segments:
                    break
                end = rows
                if segment + 1 < segments:
                    end = cuts[segment + 1]
                b = offsets[numbers[segment]]
                # Not continued: forget what the workplace holds.
                begin_block(blocks, template, b, directory, rings, epoch, numbers[segment] == 0 and (segment != 0 or S[S_CONTINUED] == 0))
                low = blocks[b + B_LOW]
                shift = blocks[b + B_POSITION] - i
                continue
            if c < 0:
                rc = EXIT_LETTER
                break
            if budget < 0:
                rc = EXIT_PAUSE
                break
            budget -= 1 + states
            # ------------------------------------------------------------------------------------------------ the least start
            p = shift + i
            if count_window != 0 and p - low >= count_window:
                low = p - count_window + 1
            if timed != 0:
                w = first_open(blocks, b, b + directory, low, p, times[i], window)
                if w > low:
                    low = w
            # ------------------------------------------------------------------------------------------------ is the event of use?
            flags = actions[a + A_FLAGS]
            t = a + ACTION_WIDTH
            live = flags & (LEAVES | ENDS)
            if live == 0:
                for k in range(actions[a + A_SOURCES]):
                    if blocks[b + actions[t + k]] >= low:
                        live = 1
                        break
                if live == 0:
                    i += 1
                    skipped += 1
                    continue
            t += actions[a + A_SOURCES]
            # ------------------------------------------------------------------------------------------------ room in its rings
            full = -1
            if timed != 0 and (flags & LEAVES) != 0:
                d = b + directory
                if blocks[d + D_TAIL] - blocks[d + D_HEAD] > blocks[d + D_MASK]:
                    full = 0
            g = t + actions[a + A_FINALS] + 2 * actions[a + A_DEADLINES] + actions[a + A_ENDING]
            for k in range(actions[a + A_RINGS]):
                d = b + actions[g + k]
                head = blocks[d + D_HEAD]
                if blocks[d + D_TAIL] - head > blocks[d + D_MASK]:
                    tail = blocks[d + D_TAIL]
                    entry = b + blocks[d + D_DATA]
                    mask = blocks[d + D_MASK]
                    while head != tail and blocks[entry + 2 * (head & mask)] < low:
                        head += 1
                    if head == blocks[d + D_HEAD]:
                        full = (actions[g + k] - directory) >> 2
                        break
                    blocks[d + D_HEAD] = head
            if full >= 0:  # make room, and look at the event again
                argument = grow(blocks, offsets, sizes, pool, numbers[segment], directory, rings, 2, 0, full, block_limit)
                b = offsets[numbers[segment]]
                if argument == 0:
                    continue
                rc = EXIT_POOL
                if argument < 0:
                    argument = full
                    rc = EXIT_LIMIT
                break
            # ------------------------------------------------------------------------------------------------ does a match end here?
            live = (flags & ENDS) != 0
            for k in range(actions[a + A_FINALS]):
                if blocks[b + actions[t + k]] >= low:
                    live = 1
            if live != 0:
                if limit != 0 and (vetoed.shape[0] == 0 or vetoed[i] == 0):
                    if nm == match_room:
                        rc = EXIT_OUTPUT
                        break
                    t += actions[a + A_FINALS]
                    w = walk_forward(
                        blocks,
                        letter_of,
                        actions,
                        move_start,
                        moves,
                        deadline,
                        sets,
                        out_positions,
                        out_letters,
                        states,
                        a,
                        b,
                        t,
                        p,
                        low,
                        npos,
                    )
                    if w < 0:
                        rc = EXIT_OUTPUT
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
                        blocks[b + B_EPOCH] = epoch
                    i += 1
                    continue
                t = a + ACTION_WIDTH + actions[a + A_SOURCES]
            # ------------------------------------------------------------------------------------------------ what it leaves behind
            t += actions[a + A_FINALS] + 2 * actions[a + A_DEADLINES] + actions[a + A_ENDING]
            letter = letter_of[actions[a + A_CODE]]
            if (flags & LEAVES) != 0:
                blocks[b + B_NEWEST_START] = p
                blocks[b + B_NEWEST_TIME] = times[i]
                if timed != 0:
                    d = b + directory
                    tail = blocks[d + D_TAIL]
                    g = b + blocks[d + D_DATA] + 2 * (tail & blocks[d + D_MASK])
                    blocks[g] = p
                    blocks[g + 1] = times[i]
                    blocks[d + D_TAIL] = tail + 1
            for k in range(actions[a + A_RINGS]):
                d = b + actions[t + k]
                tail = blocks[d + D_TAIL]
                g = b + blocks[d + D_DATA] + 2 * (tail & blocks[d + D_MASK])
                blocks[g] = p
                blocks[g + 1] = letter
                blocks[d + D_TAIL] = tail + 1
                marked[i] = 1
            t += actions[a + A_RINGS]
            if (flags & HELD) == 0:
                for k in range(actions[a + A_MERGES]):
                    w = blocks[b + actions[t + 2 * k + 1]]
                    d = b + actions[t + 2 * k]
                    if w > blocks[d]:
                        blocks[d] = w
            else:  # a mark must not extend itself
                for k in range(actions[a + A_MERGES]):
                    held[k] = blocks[b + actions[t + 2 * k + 1]]
                for k in range(actions[a + A_MERGES]):
                    d = b + actions[t + 2 * k]
                    if held[k] > blocks[d]:
                        blocks[d] = held[k]
            t += 2 * actions[a + A_MERGES]
            for k in range(actions[a + A_PUTS]):
                blocks[b + actions[t + k]] = p
            i += 1
        if rc != 0:
            blocks[b + B_POSITION] = shift + i
            blocks[b + B_LOW] = low

    S[S_ROW] = i
    S[S_SEGMENT] = segment
    S[S_SEGMENT_END] = end
    S[S_EPOCH] = epoch
    S[S_BUFFERED_MATCHES] = nm
    S[S_BUFFERED_POSITIONS] = npos
    S[S_ARGUMENT] = argument
    S[S_TRIGGERS] = triggers
    S[S_SKIPPED] = skipped
    return rc
