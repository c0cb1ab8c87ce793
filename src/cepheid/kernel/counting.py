# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The counting kernel: letters in, the exact number of matches per trigger out, without enumerating them; one source as `match`.

Determinized with respect to labels, every match has one run, so counting matches is counting paths. An event with letter a is a matrix over
the macro states: N_a[X][Y] = the number of labels that lead from X to Y, plus 1 if Y is X's successor without a mark. The initial macro
state 0 waits before the match: N_a[0][0] = 1. With e the unit row of 0 and f[X] = the number of labels on which X accepts the event at `end`:

    count(end) = e . N[oldest] .. N[end - 1] . f[end]          the product over a sliding window: two stacks

FRONT: for each older event p a row e . N[p] .. N[middle - 1]. BACK: the newer events with their letters, and one matrix N[middle] .. N[end - 1],
of which only the rows that the oldest front row needs are kept up to date (rows of newer events need fewer). An event multiplies the matrix
from the right; the window's move drops a front row; when it reaches the back, the back is turned over: suffix products from the right. A
trigger costs row . (matrix . f). Events that change nothing for what is alive are not stored. Without a window there is one row, and no stack.

Numbers are exact: `size` limbs of 64 bits, least first. Before one could overflow `run` returns "wide", and all are made twice as wide: no
number of a finished step has its top limb above `most`, and one step adds up fewer terms than that leaves room for. The rows of a turn need no
look: they count a part of what row 0 of the matrix has counted (rows of macro states that only expired starts reach may overflow: they are not
read).

A BLOCK (see `cepheid.engine.memory.count_blocks`) is one partition: HEADER, one word per macro state (1: alive, used from 62 on), the matrix
(`rows` x width numbers), and a ring with an entry per stored event: position, time, letter code, the macro states alive before it
(as bits, 62 stands for all from 62 on), and, once it is in the front, its row (width numbers). `pool` and `limbs` are the same memory, once signed
and once not.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._numbers import add, is_zero

COMPILED = cython.compiled

# Exit codes of `run`, in the order of their numbers.
EXITS = ("done", "letter", "transition", "output", "room", "wide", "pause")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "record",  # place in `offsets` of the block being read, -1 none
    "window",  # ! time window
    "timed",  # ! 1 with a time window
    "count_window",  # ! position window, 0 none
    "consume",  # ! 0 nothing, 1 the partition's starts, 2 the starts of all partitions
    "epoch",  # triggers so far, with consume 2
    "codes",  # ! letter codes per row of the transition table
    "letter_mask",  # !
    "macros",  # ! macro states in the table
    "width",  # ! macro states that fit in a row
    "rows",  # ! rows of the matrix: width, or 1 without a window
    "size",  # ! limbs of a number
    "most",  # ! greatest top limb of a number
    "too_wide",  # 1: some number is above it
    "buffered",  # triggers in the output
    "argument",  # of the exit code
    "triggers",  # events that ended a match
    "skipped",  # events passed by the skip loop
    "continued",  # ! 1: the first segment goes on with block 0
    "replay",  # ! 1: restore a state from its stored events: positions are given, nothing is counted
    "budget",  # ! what may be done before the kernel returns, so that whoever waits can break in
)

# The first words of a block.
HEADER = (
    "position",  # of the partition's next event
    "low",  # least position that consumption lets a match start at
    "epoch",  # that the block was last read in
    "middle",  # first entry of the back
    "live",  # macro states as bits, 62 stands for all from 62 on
    "plain",  # 1: the matrix is the identity (and not written)
    "head",  # oldest entry; entries are numbered for ever, their place is number & mask
    "tail",  # next entry
    "mask",  # places of the ring - 1
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, B_ a word of a
# block (behind the header one per macro state), E_ a word of an entry (then its row).
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_TRANSITION, EXIT_OUTPUT, EXIT_ROOM, EXIT_WIDE, EXIT_PAUSE = range(7)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_RECORD, S_WINDOW, S_TIMED, S_COUNT_WINDOW, S_CONSUME, S_EPOCH, S_CODES = range(10)
    S_LETTER_MASK, S_MACROS, S_WIDTH, S_ROWS, S_SIZE, S_MOST, S_TOO_WIDE, S_BUFFERED, S_ARGUMENT, S_TRIGGERS = range(10, 20)
    S_SKIPPED, S_CONTINUED, S_REPLAY, S_BUDGET = range(20, 24)
    B_POSITION, B_LOW, B_EPOCH, B_MIDDLE, B_LIVE, B_PLAIN, B_HEAD, B_TAIL, B_MASK = range(9)
    B_ALIVE = 9
    E_POSITION, E_TIME, E_CODE, E_BEFORE, E_ROW = range(5)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def is_alive(pool: cython.longlong[::1], alive: cython.Py_ssize_t, live: cython.longlong, x: cython.Py_ssize_t) -> cython.int:
    """Whether a macro state is among `live`; alive: where the words of those stand that share the last bit."""
    if x < 62:
        return (live >> x) & 1
    return (live >> 62) & 1 and pool[alive + x] != 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def forget(pool: cython.longlong[::1], alive: cython.Py_ssize_t, live: cython.longlong, macros: cython.Py_ssize_t) -> cython.int:
    """No macro state that shares the last bit is alive any more."""
    x: cython.Py_ssize_t = 0
    if (live >> 62) != 0:
        for x in range(62, macros):
            pool[alive + x] = 0
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def turn_over(
    S: cython.longlong[::1],
    marked_of: cython.int[::1],
    unmarked_of: cython.int[::1],
    moves: cython.int[::1],
    pool: cython.longlong[::1],
    limbs: cython.ulonglong[::1],
    work: cython.ulonglong[::1],
    matrix: cython.Py_ssize_t,
    ring: cython.Py_ssize_t,
    head: cython.longlong,
    tail: cython.longlong,
    mask: cython.longlong,
) -> cython.int:
    """Give each entry from `head` to `tail` its row: suffix products, from the right, in the matrix."""
    codes: cython.Py_ssize_t = S[S_CODES]
    macros: cython.Py_ssize_t = S[S_MACROS]
    width: cython.Py_ssize_t = S[S_WIDTH]
    size: cython.Py_ssize_t = S[S_SIZE]
    row: cython.Py_ssize_t = width * size
    used: cython.Py_ssize_t = macros * size
    stride: cython.Py_ssize_t = E_ROW + row
    listed: cython.Py_ssize_t = width * row + size
    turn: cython.longlong = tail
    before: cython.longlong = 0
    c: cython.int = 0
    mt: cython.int = 0
    un: cython.int = 0
    t: cython.int = 0
    x: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = 0
    e: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    d: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    for r in range(macros):
        m = matrix + r * row
        for k in range(row):
            limbs[m + k] = 0
        limbs[m + r * size] = 1
    while turn > head:
        turn -= 1
        e = ring + (turn & mask) * stride
        c = pool[e + E_CODE]
        before = pool[e + E_BEFORE]
        n = 0
        for x in range(macros):
            if ((before >> (x if x < 62 else 62)) & 1) == 0:
                continue
            mt = marked_of[x * codes + c]
            if mt == -2:  # one of the macro states that share a bit, and not alive then
                continue
            un = unmarked_of[x * codes + c]
            if un == x:
                while mt >= 0 and moves[mt] < 0:
                    mt = moves[mt + 2]
                if mt < 0:
                    continue
            d = n * row
            if un >= 0:
                s = matrix + un * row
                for k in range(used):
                    work[d + k] = limbs[s + k]
            else:
                for k in range(used):
                    work[d + k] = 0
            while mt >= 0:
                t = moves[mt]
                if t >= 0:
                    for j in range(macros):
                        add(work, d + j * size, limbs, matrix + t * row + j * size, size)
                mt = moves[mt + 2]
            work[listed + n] = x
            n += 1
        for j in range(n):
            d = j * row
            r = work[listed + j]
            m = matrix + r * row
            for k in range(used):
                limbs[m + k] = work[d + k]
        for k in range(row):
            limbs[e + E_ROW + k] = limbs[matrix + k]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def alive_in(
    pool: cython.longlong[::1],
    limbs: cython.ulonglong[::1],
    alive: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    macros: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.longlong:
    """The macro states that a row says are alive, as bits; those that share the last one in their words."""
    live: cython.longlong = 1
    one: cython.longlong = 1
    x: cython.Py_ssize_t = 0
    some: cython.int = 0
    for x in range(1, macros):
        some = is_zero(limbs, at + x * size, size) == 0
        if x >= 62:
            pool[alive + x] = some
        if some != 0:
            live |= one << (x if x < 62 else 62)
    return live


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def alive_after(
    S: cython.longlong[::1],
    marked_of: cython.int[::1],
    unmarked_of: cython.int[::1],
    moves: cython.int[::1],
    pool: cython.longlong[::1],
    alive: cython.Py_ssize_t,
    before: cython.longlong,
    c: cython.int,
) -> cython.longlong:
    """The macro states that are alive after an event, as bits; those that share the last one in their words."""
    codes: cython.Py_ssize_t = S[S_CODES]
    macros: cython.Py_ssize_t = S[S_MACROS]
    live: cython.longlong = 1
    one: cython.longlong = 1
    mt: cython.int = 0
    t: cython.int = 0
    x: cython.Py_ssize_t = 0
    for x in range(macros):
        if ((before >> (x if x < 62 else 62)) & 1) == 0 or (x >= 62 and (pool[alive + x] & 1) == 0):
            continue
        mt = marked_of[x * codes + c]
        t = unmarked_of[x * codes + c]
        while True:
            if t >= 0:
                live |= one << (t if t < 62 else 62)
                if t >= 62:
                    pool[alive + t] |= 2
            if mt < 0:
                break
            t = moves[mt]
            mt = moves[mt + 2]
    if ((before | live) >> 62) != 0:
        for x in range(62, macros):
            pool[alive + x] >>= 1
    return live


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def add_product(
    numbers: cython.ulonglong[::1],
    to: cython.Py_ssize_t,
    first: cython.ulonglong[::1],
    s: cython.Py_ssize_t,
    second: cython.ulonglong[::1],
    g: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.int:
    """Add the product of two numbers, digit by digit, in halves of 32 bits: there is no wider type everywhere."""
    # The uncompiled kernel has no word size: sums and shifts are cut to 64 bits (which costs nothing compiled).
    full: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    half: cython.ulonglong = 0xFFFFFFFF
    length: cython.Py_ssize_t = size
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    a: cython.ulonglong = 0
    low_a: cython.ulonglong = 0
    high_a: cython.ulonglong = 0
    low_b: cython.ulonglong = 0
    high_b: cython.ulonglong = 0
    cross: cython.ulonglong = 0
    other: cython.ulonglong = 0
    mid: cython.ulonglong = 0
    carry: cython.ulonglong = 0
    total: cython.ulonglong = 0
    while length > 0 and second[g + length - 1] == 0:
        length -= 1
    if length == 0:
        return 0
    for j in range(size):
        a = first[s + j]
        if a == 0:
            continue
        low_a = a & half
        high_a = a >> 32
        carry = 0
        for k in range(length):
            low_b = second[g + k] & half
            high_b = second[g + k] >> 32
            cross = low_a * high_b
            other = high_a * low_b
            total = low_a * low_b
            mid = (total >> 32) + (cross & half) + (other & half)
            total = (total & half) | ((mid << 32) & full)
            mid = high_a * high_b + (cross >> 32) + (other >> 32) + (mid >> 32)
            total = (total + carry) & full
            mid += total < carry
            a = numbers[to + j + k]
            total = (total + a) & full
            mid += total < a
            numbers[to + j + k] = total
            carry = mid
        k = to + j + length
        while carry != 0:
            a = numbers[k]
            total = (a + carry) & full
            numbers[k] = total
            carry = total < a
            k += 1
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def count_ends(
    S: cython.longlong[::1],
    marked_of: cython.int[::1],
    moves: cython.int[::1],
    pool: cython.longlong[::1],
    limbs: cython.ulonglong[::1],
    work: cython.ulonglong[::1],
    out_counts: cython.ulonglong[::1],
    o: cython.Py_ssize_t,
    alive: cython.Py_ssize_t,
    matrix: cython.Py_ssize_t,
    e: cython.Py_ssize_t,
    live: cython.longlong,
    plain: cython.int,
    c: cython.int,
) -> cython.int:
    """Put at `o` how many matches the event ends: the oldest row, at `e` (-1: the unit row of 0), times the matrix times f. Whether there are any."""
    codes: cython.Py_ssize_t = S[S_CODES]
    macros: cython.Py_ssize_t = S[S_MACROS]
    width: cython.Py_ssize_t = S[S_WIDTH]
    size: cython.Py_ssize_t = S[S_SIZE]
    row: cython.Py_ssize_t = width * size
    g: cython.Py_ssize_t = width * row  # in `work`, behind the rows
    mt: cython.int = 0
    x: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    for k in range(2 * size):
        out_counts[o + k] = 0
    for r in range(macros):
        if e < 0:
            if r != 0:
                break
        elif is_zero(limbs, e + r * size, size) != 0:
            continue
        # g = (row r of the matrix) . f
        for k in range(size):
            work[g + k] = 0
        if plain != 0:
            mt = marked_of[r * codes + c]
            while mt >= 0:
                if moves[mt + 3] != 0:
                    work[g] += 1
                mt = moves[mt + 2]
        else:
            for x in range(macros):
                if is_alive(pool, alive, live, x) == 0:
                    continue
                mt = marked_of[x * codes + c]
                while mt >= 0:
                    if moves[mt + 3] != 0:
                        add(work, g, limbs, matrix + r * row + x * size, size)
                    mt = moves[mt + 2]
        if e < 0:
            for k in range(size):
                out_counts[o + k] = work[g + k]
            break
        add_product(out_counts, o, limbs, e + r * size, work, g, size)
    return is_zero(out_counts, o, 2 * size) == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def multiply(
    S: cython.longlong[::1],
    marked_of: cython.int[::1],
    unmarked_of: cython.int[::1],
    moves: cython.int[::1],
    pool: cython.longlong[::1],
    limbs: cython.ulonglong[::1],
    work: cython.ulonglong[::1],
    alive: cython.Py_ssize_t,
    matrix: cython.Py_ssize_t,
    e: cython.Py_ssize_t,
    live: cython.longlong,
    plain: cython.int,
    c: cython.int,
) -> cython.int:
    """Multiply the matrix by the event's, in the rows that the oldest row, at `e` (-1: the unit row of 0), needs; 1 if a number is too wide."""
    codes: cython.Py_ssize_t = S[S_CODES]
    macros: cython.Py_ssize_t = S[S_MACROS]
    size: cython.Py_ssize_t = S[S_SIZE]
    row: cython.Py_ssize_t = S[S_WIDTH] * size
    used: cython.Py_ssize_t = macros * size
    most: cython.ulonglong = S[S_MOST]
    wide: cython.int = 0
    mt: cython.int = 0
    un: cython.int = 0
    t: cython.int = 0
    x: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    for r in range(macros):
        if e < 0:
            if r != 0:
                break
        elif is_zero(limbs, e + r * size, size) != 0:
            continue
        m = matrix + r * row
        if plain != 0:
            for k in range(row):
                limbs[m + k] = 0
            limbs[m + r * size] = 1
        for k in range(used):
            work[k] = limbs[m + k]
        for x in range(macros):
            if is_alive(pool, alive, live, x) != 0 and unmarked_of[x * codes + c] != x:
                for k in range(size):
                    limbs[m + x * size + k] = 0
        for x in range(macros):
            if is_alive(pool, alive, live, x) == 0 or is_zero(work, x * size, size) != 0:
                continue
            mt = marked_of[x * codes + c]
            un = unmarked_of[x * codes + c]
            t = un
            if un == x:
                t = -1
            while True:
                if t >= 0:
                    add(limbs, m + t * size, work, x * size, size)
                    if limbs[m + t * size + size - 1] > most:
                        wide = 1
                if mt < 0:
                    break
                t = moves[mt]
                mt = moves[mt + 2]
    return wide


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    slots: cython.const[cython.int][::1],
    vetoed: cython.const[cython.uchar][::1],
    positions: cython.const[cython.longlong][::1],
    lut: cython.int[::1],
    marked_of: cython.int[::1],
    unmarked_of: cython.int[::1],
    known: cython.longlong[::1],
    stirs: cython.longlong[::1],
    moves: cython.int[::1],
    offsets: cython.const[cython.longlong][::1],
    pool: cython.longlong[::1],
    limbs: cython.ulonglong[::1],
    work: cython.ulonglong[::1],
    out_positions: cython.longlong[::1],
    out_segments: cython.int[::1],
    out_counts: cython.ulonglong[::1],
    marked: cython.uchar[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters (index into lut), times (non-decreasing in a segment), cuts (row where each segment starts), slots (place in `offsets` of the
    block that holds the segment's partition, or -1: block 0, begun anew), vetoed (of which rows no matches are given; empty: of none), positions
    (of the rows, for replay only).
    TABLES: as in the match kernel: lut, marked_of, unmarked_of, known, stirs, moves.
    STATE: offsets (where each block starts), pool, limbs; work is for `width` rows, one number and `width` words.
    OUT: per trigger out_positions, out_segments and 2 * size limbs in out_counts; marked[row] = 1 where one was.
    """
    rows: cython.Py_ssize_t = letters.shape[0]
    segments: cython.Py_ssize_t = cuts.shape[0]
    i: cython.Py_ssize_t = S[S_ROW]
    segment: cython.Py_ssize_t = S[S_SEGMENT]
    end: cython.Py_ssize_t = S[S_SEGMENT_END]
    record: cython.Py_ssize_t = S[S_RECORD]
    window: cython.ulonglong = S[S_WINDOW]
    timed: cython.int = S[S_TIMED]
    count_window: cython.longlong = S[S_COUNT_WINDOW]
    consume: cython.int = S[S_CONSUME]
    epoch: cython.longlong = S[S_EPOCH]
    codes: cython.Py_ssize_t = S[S_CODES]
    letter_mask: cython.uint = S[S_LETTER_MASK]
    macros: cython.Py_ssize_t = S[S_MACROS]
    width: cython.Py_ssize_t = S[S_WIDTH]
    size: cython.Py_ssize_t = S[S_SIZE]
    wide: cython.int = S[S_TOO_WIDE]
    buffered: cython.Py_ssize_t = S[S_BUFFERED]
    argument: cython.longlong = 0
    triggers: cython.longlong = S[S_TRIGGERS]
    skipped: cython.longlong = S[S_SKIPPED]
    replay: cython.int = S[S_REPLAY]
    out_room: cython.Py_ssize_t = out_segments.shape[0]
    stride: cython.Py_ssize_t = E_ROW + width * size
    row: cython.Py_ssize_t = width * size  # limbs of a row, with room
    bounded: cython.int = timed != 0 or count_window != 0
    b: cython.Py_ssize_t = 0
    alive: cython.Py_ssize_t = 0
    matrix: cython.Py_ssize_t = 0
    ring: cython.Py_ssize_t = 0
    shift: cython.longlong = 0
    low: cython.longlong = 0
    head: cython.longlong = 0
    middle: cython.longlong = 0
    tail: cython.longlong = 0
    mask: cython.longlong = -1
    live: cython.longlong = 1
    plain: cython.int = 1
    rc: cython.int = 0
    budget: cython.longlong = S[S_BUDGET]
    c: cython.int = 0
    p: cython.longlong = 0
    lo: cython.longlong = 0
    now: cython.ulonglong = 0
    then: cython.ulonglong = 0
    changes: cython.int = 0
    ends: cython.int = 0
    mt: cython.int = 0
    x: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = 0
    e: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0

    with cython.nogil:
        if record >= 0:
            b = offsets[record]
            shift = pool[b + B_POSITION] - i
            low = pool[b + B_LOW]
            middle = pool[b + B_MIDDLE]
            live = pool[b + B_LIVE]
            plain = pool[b + B_PLAIN]
            head = pool[b + B_HEAD]
            tail = pool[b + B_TAIL]
            mask = pool[b + B_MASK]
            alive = b + B_ALIVE
            matrix = alive + width
            ring = matrix + S[S_ROWS] * row
        while True:
            # ------------------------------------------------------------------------------------------------ skip
            c = 0
            while i < end:
                c = lut[letters[i] & letter_mask]
                if c < 0:
                    break
                if (stirs[c] & live) != 0:
                    break
                i += 1
                skipped += 1
            # ------------------------------------------------------------------------------------------------ segments
            if i >= end:
                if record >= 0:
                    pool[b + B_POSITION] = shift + i
                    pool[b + B_LOW] = low
                    pool[b + B_EPOCH] = epoch
                    pool[b + B_MIDDLE] = middle
                    pool[b + B_LIVE] = live
                    pool[b + B_PLAIN] = plain
                    pool[b + B_HEAD] = head
                    pool[b + B_TAIL] = tail
                    record = -1
                segment += 1
                if segment == segments:
                    break
                end = rows
                if segment + 1 < segments:
                    end = cuts[segment + 1]
                record = slots[segment]
                if record < 0:
                    record = 0
                b = offsets[record]
                shift = pool[b + B_POSITION] - i
                low = pool[b + B_LOW]
                middle = pool[b + B_MIDDLE]
                live = pool[b + B_LIVE]
                plain = pool[b + B_PLAIN]
                head = pool[b + B_HEAD]
                tail = pool[b + B_TAIL]
                mask = pool[b + B_MASK]
                alive = b + B_ALIVE
                matrix = alive + width
                ring = matrix + S[S_ROWS] * row
                n = 0
                if slots[segment] < 0 and not (segment == 0 and S[S_CONTINUED] != 0):  # a partition that begins here
                    shift = -i
                    low = 0
                    n = 1
                elif pool[b + B_EPOCH] != epoch:  # a trigger elsewhere has consumed what was before it
                    low = shift + i
                    n = 1
                if n != 0:
                    head = tail
                    middle = tail
                    plain = 1
                    forget(pool, alive, live, macros)
                    live = 1
                continue
            if c < 0:
                rc = EXIT_LETTER
                break
            if budget < 0:
                rc = EXIT_PAUSE
                break
            budget -= 1 + macros * macros * size
            if wide != 0:
                rc = EXIT_WIDE
                break
            p = shift + i
            if replay != 0:
                p = positions[i]
            # ------------------------------------------------------------------------------------------------ window
            if bounded != 0 and head != tail:
                lo = low
                if count_window != 0 and p - count_window >= lo:
                    lo = p - count_window + 1
                now = times[i]
                while head != tail:
                    e = ring + (head & mask) * stride
                    if pool[e + E_POSITION] >= lo:
                        if timed == 0:
                            break
                        then = pool[e + E_TIME]  # unsigned: the difference of two int64 times cannot overflow
                        if now - then <= window:
                            break
                    head += 1
                if head == tail:  # nothing is open
                    middle = tail
                    plain = 1
                    forget(pool, alive, live, macros)
                    if live != 1:
                        live = 1
                        continue
                if head > middle:  # the window has reached the back: turn it over
                    turn_over(S, marked_of, unmarked_of, moves, pool, limbs, work, matrix, ring, head, tail, mask)
                    # What is alive now: the oldest row says it.
                    middle = tail
                    plain = 1
                    live = alive_in(pool, limbs, alive, ring + (head & mask) * stride + E_ROW, macros, size)
                    continue
            # ------------------------------------------------------------------------------------------------ transitions and room
            if (live & ~known[c]) != 0:
                argument = c
                rc = EXIT_TRANSITION
                break
            if (live >> 62) != 0:
                for x in range(62, macros):
                    if pool[alive + x] != 0 and marked_of[x * codes + c] == -2:
                        argument = c
                        rc = EXIT_TRANSITION
                        break
                if rc != 0:
                    break
            changes = 0
            ends = 0
            for x in range(macros):
                if is_alive(pool, alive, live, x) == 0:
                    continue
                mt = marked_of[x * codes + c]
                if unmarked_of[x * codes + c] != x:
                    changes = 1
                while mt >= 0:
                    if moves[mt] >= 0:
                        changes = 1
                    if moves[mt + 3] != 0:
                        ends = 1
                    mt = moves[mt + 2]
            if ends != 0 and buffered == out_room:
                rc = EXIT_OUTPUT
                break
            if changes != 0 and bounded != 0 and tail - head > mask:
                rc = EXIT_ROOM
                break
            # ------------------------------------------------------------------------------------------------ count
            e = -1
            if head != middle:
                e = ring + (head & mask) * stride + E_ROW
            if ends != 0 and replay == 0:
                o = buffered * 2 * size
                if count_ends(S, marked_of, moves, pool, limbs, work, out_counts, o, alive, matrix, e, live, plain, c) != 0:
                    if vetoed.shape[0] == 0 or vetoed[i] == 0:
                        out_positions[buffered] = p
                        out_segments[buffered] = segment
                        marked[i] = 1
                        buffered += 1
                    triggers += 1
                    if consume != 0:
                        low = p + 1
                        if consume == 2:
                            epoch += 1
                        head = tail
                        middle = tail
                        plain = 1
                        forget(pool, alive, live, macros)
                        live = 1
                        i += 1
                        continue
            if changes == 0:
                i += 1
                continue
            # ------------------------------------------------------------------------------------------------ matrix . N
            if multiply(S, marked_of, unmarked_of, moves, pool, limbs, work, alive, matrix, e, live, plain, c) != 0:
                wide = 1
            plain = 0
            if bounded != 0:
                e = ring + (tail & mask) * stride
                pool[e + E_POSITION] = p
                pool[e + E_TIME] = times[i]
                pool[e + E_CODE] = c
                pool[e + E_BEFORE] = live
                tail += 1
            live = alive_after(S, marked_of, unmarked_of, moves, pool, alive, live, c)
            if live == 1:  # nothing is open
                head = tail
                middle = tail
                plain = 1
            i += 1
        if record >= 0:
            pool[b + B_POSITION] = shift + i
            pool[b + B_LOW] = low
            pool[b + B_EPOCH] = epoch
            pool[b + B_MIDDLE] = middle
            pool[b + B_LIVE] = live
            pool[b + B_PLAIN] = plain
            pool[b + B_HEAD] = head
            pool[b + B_TAIL] = tail

    S[S_ROW] = i
    S[S_SEGMENT] = segment
    S[S_SEGMENT_END] = end
    S[S_RECORD] = record
    S[S_EPOCH] = epoch
    S[S_TOO_WIDE] = wide
    S[S_BUFFERED] = buffered
    S[S_ARGUMENT] = argument
    S[S_TRIGGERS] = triggers
    S[S_SKIPPED] = skipped
    return rc
