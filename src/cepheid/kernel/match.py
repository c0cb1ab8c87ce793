# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The match kernel: letters in, matches out, over flat arrays; one source that Cython compiles and CPython also runs as it is.

`run` is one loop without allocation and without Python objects. Whatever is rare (an unknown letter or transition, a full arena, full
output buffers) makes it return an exit code; `evaluations.graph.match` mends it and calls again: every piece of the loop can be resumed,
also in the middle of an enumeration. Macro states are the states of the I/O-determinized automaton; the match graph is the tECS of
"foundations-cel" (CORE), its nodes fused into cells.

A CELL is four int32 in `cells`, its label is in `cell_labels` at the same place:
    [0] position of the marked event, or ~position for a pure union (then it is no output itself). Cells are made in stream order.
    [1] child: the cell of what was marked before (0: the match starts here); of a union: its left side (max start >= the right one's)
    [2] rest:  "or else", a cell with a smaller or equal max start (0: nothing); of a union: its right side
    [3] max start: the greatest first position of a match below
A cell has an id that grows for ever in its partition; its place is `offset + (id & mask)` in the partition's ring. An id below `head` is freed,
which means expired: links are never cleaned, they go stale and are recognized.

A LIST (name in paper: union list) belongs to one live macro state: entry 0 is never a pure union and has the greatest max start, the max starts of
the others strictly decrease (each was a list's when entry 0's match started, so there are at most as many as lists then). Lists are processed
in descending max start, so most joins are one link at the end of a cell made just now.
Unions nest at most three deep before an output, whatever the number of labels: all cells of one event and one source have one max start and
are chained by `rest`; only unmarked moves make unions, and the left side of each union that heads an entry is no union.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython

COMPILED = cython.compiled

# Exit codes of `run`, in the order of their numbers.
EXITS = ("done", "letter", "transition", "cells", "starts", "output", "stack", "lists", "packed", "rebase", "pause")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "record",  # row of `records` loaded in the fields below, -1 none
    "window",  # ! time window
    "timed",  # ! 1 with a time window
    "count_window",  # ! position window, 0 none
    "limit",  # ! matches per trigger, 0 = count the triggers only
    "shift",  # relative position of an event = shift + row
    "base",  # position of an event = base + relative position
    "head",  # least cell id that is not freed
    "next",  # next cell id
    "cells_offset",
    "cells_mask",  # size of the ring - 1, -1 without a ring
    "starts_head",
    "starts_tail",
    "starts_offset",
    "starts_mask",
    "parity",  # which half of the list arrays is current
    "lists",  # number of live lists
    "live",  # their macro states as bits, 62 stands for all from 62 on
    "entries",  # sum of the lengths of the live lists
    "longest",  # length of the longest
    "low",  # least relative position a match may start at
    "codes",  # ! letter codes per row of the transition table
    "list_count",  # ! lists that fit
    "list_length",  # ! entries per list that fit
    "fanout",  # ! greatest number of marked successors of one (macro state, letter)
    "letter_mask",  # !
    "outputs",  # cells that end a match at this event
    "output",  # next of them to enumerate
    "enumerating",  # 0 no, else take the next output, visit `cell`, write the path, count the matches, choose the next one
    "stack",  # height of the enumeration stack
    "cell",
    "depth",
    "given",  # matches given at this trigger
    "buffered_matches",
    "buffered_positions",
    "argument",  # of the exit code
    "triggers",  # events that ended a match
    "matches",  # matches given
    "skipped",  # events passed by the skip loop
    "unions",  # pure unions made
    "continued",  # ! 1: the first segment goes on with record 0
    "consume",  # ! 0 no; a trigger drops what is open 1 in its partition, 2 in all
    "epoch",  # triggers that dropped what is open in all partitions
    "sample",  # ! matches per trigger to choose evenly from all of them, 0: no choice
    "spread",  # 1: the trigger being enumerated has more than `sample` matches
    "budget",  # ! what may be done before the kernel returns, so that whoever waits can break in
)

# What `pools` holds for each of the pools of cells, starts and packed lists: 35 numbers. A slab is `least << class` places; a free one holds the
# offset of the next free one of its class in its first place (of `cells`, `start_positions`, `packed`), -1 ends the chain.
POOL = (*(f"free slab of class {k}" for k in range(32)), "top", "capacity", "least")

# The state of a partition between its segments: one row of `records`.
RECORD = (
    "head",
    "next",
    "cells_offset",
    "cells_mask",
    "starts_head",
    "starts_tail",
    "starts_offset",
    "starts_mask",
    "packed_offset",
    "packed_size",  # capacity
    "lists",
    "position",  # relative position of the partition's next event
    "base",
    "last_time",  # of its last event
    "epoch",  # when it was last read: what is open in it is older than a later one
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`,
# R_ a column of `records`; then the pools in `pools`, the numbers behind the chains of each, limits, the numbers of a cell, and what
# S[S_ENUMERATING] says is to be done next.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_TRANSITION, EXIT_CELLS, EXIT_STARTS, EXIT_OUTPUT, EXIT_STACK, EXIT_LISTS, EXIT_PACKED = range(9)
    EXIT_REBASE, EXIT_PAUSE = range(9, 11)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_RECORD, S_WINDOW, S_TIMED, S_COUNT_WINDOW, S_LIMIT, S_SHIFT, S_BASE = range(10)
    S_HEAD, S_NEXT, S_CELLS_OFFSET, S_CELLS_MASK, S_STARTS_HEAD, S_STARTS_TAIL, S_STARTS_OFFSET, S_STARTS_MASK, S_PARITY = range(10, 19)
    S_LISTS, S_LIVE, S_ENTRIES, S_LONGEST, S_LOW, S_CODES, S_LIST_COUNT, S_LIST_LENGTH, S_FANOUT, S_LETTER_MASK = range(19, 29)
    S_OUTPUTS, S_OUTPUT, S_ENUMERATING, S_STACK, S_CELL, S_DEPTH, S_GIVEN, S_BUFFERED_MATCHES, S_BUFFERED_POSITIONS = range(29, 38)
    S_ARGUMENT, S_TRIGGERS, S_MATCHES, S_SKIPPED, S_UNIONS, S_CONTINUED, S_CONSUME, S_EPOCH, S_SAMPLE, S_SPREAD = range(38, 48)
    S_BUDGET = 48
    R_HEAD, R_NEXT, R_CELLS_OFFSET, R_CELLS_MASK, R_STARTS_HEAD, R_STARTS_TAIL, R_STARTS_OFFSET, R_STARTS_MASK = range(8)
    R_PACKED_OFFSET, R_PACKED_SIZE, R_LISTS, R_POSITION, R_BASE, R_LAST_TIME, R_EPOCH = range(8, 15)
    RECORD_WIDTH = 15
    CELLS, STARTS, PACKED = range(0, 105, 35)
    TOP, CAPACITY, LEAST = range(32, 35)
    ID_LIMIT, CELL_LIMIT = 1 << 30, 1 << 28
    CHILD, REST, MAX_START = range(1, 4)
    NEXT_OUTPUT, VISIT, WRITE, COUNT, CHOOSE = range(1, 6)


@cython.cfunc
@cython.nogil
def take_slab(
    pools: cython.longlong[::1],
    first: cython.int[::1],
    pool: cython.Py_ssize_t,
    width: cython.Py_ssize_t,
    klass: cython.int,
) -> cython.longlong:
    """The offset of a slab of `least << klass` places: a free one, a fresh one, a part of a larger free one; -1 if the pool is full."""
    k: cython.int = klass
    w: cython.longlong = pools[pool + klass]
    part: cython.longlong = pools[pool + LEAST] << klass
    if w >= 0:
        pools[pool + klass] = first[w * width]
        return w
    if pools[pool + TOP] + part <= pools[pool + CAPACITY]:
        w = pools[pool + TOP]
        pools[pool + TOP] += part
        return w
    while k < TOP and pools[pool + k] < 0:
        k += 1
    if k == TOP:
        return -1
    w = pools[pool + k]
    pools[pool + k] = first[w * width]
    while k > klass:  # of the rest, one slab of each size between
        k -= 1
        part = w + (pools[pool + LEAST] << k)
        first[part * width] = pools[pool + k]
        pools[pool + k] = part
    return w


@cython.cfunc
@cython.nogil
def free_slab(
    pools: cython.longlong[::1],
    first: cython.int[::1],
    pool: cython.Py_ssize_t,
    width: cython.Py_ssize_t,
    offset: cython.longlong,
    size: cython.longlong,
) -> cython.int:
    """Give a slab back."""
    klass: cython.int = 0
    while (pools[pool + LEAST] << klass) < size:
        klass += 1
    first[offset * width] = pools[pool + klass]
    pools[pool + klass] = offset
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def store_lists(
    S: cython.longlong[::1],
    records: cython.longlong[::1],
    packed: cython.int[::1],
    pools: cython.longlong[::1],
    macro_of: cython.int[::1],
    length_of: cython.int[::1],
    max_of: cython.int[::1],
    entry: cython.int[::1],
    s: cython.Py_ssize_t,
    nl: cython.int,
    entries: cython.int,
    cu: cython.Py_ssize_t,
) -> cython.int:
    """Pack the lists from `cu` on for the record at `s`, in columns: macros, max starts, lengths, entries. An exit, or 0."""
    list_length: cython.Py_ssize_t = S[S_LIST_LENGTH]
    size: cython.longlong = 3 * nl + entries
    klass: cython.int = 0
    k: cython.int = 0
    j: cython.int = 0
    ln: cython.int = 0
    w: cython.longlong = records[s + R_PACKED_OFFSET]
    to: cython.Py_ssize_t = 0
    if nl != 0 and size > records[s + R_PACKED_SIZE]:
        while (pools[PACKED + LEAST] << klass) < size:
            klass += 1
        w = take_slab(pools, packed, PACKED, 1, klass)
        if w < 0:
            S[S_ARGUMENT] = pools[PACKED + LEAST] << klass
            return EXIT_PACKED
        if records[s + R_PACKED_SIZE] != 0:
            free_slab(pools, packed, PACKED, 1, records[s + R_PACKED_OFFSET], records[s + R_PACKED_SIZE])
        records[s + R_PACKED_OFFSET] = w
        records[s + R_PACKED_SIZE] = pools[PACKED + LEAST] << klass
    to = w + 3 * nl
    for k in range(nl):
        ln = length_of[cu + k]
        packed[w + k] = macro_of[cu + k]
        packed[w + nl + k] = max_of[cu + k]
        packed[w + 2 * nl + k] = ln
        for j in range(ln):
            packed[to] = entry[(cu + k) * list_length + j]
            to += 1
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def load_lists(
    S: cython.longlong[::1],
    packed: cython.int[::1],
    macro_of: cython.int[::1],
    length_of: cython.int[::1],
    max_of: cython.int[::1],
    entry: cython.int[::1],
    w: cython.Py_ssize_t,
    nl: cython.int,
    cu: cython.Py_ssize_t,
) -> cython.int:
    """Unpack `nl` lists from `w` on; how many entries they have."""
    list_length: cython.Py_ssize_t = S[S_LIST_LENGTH]
    total: cython.int = 0
    k: cython.int = 0
    j: cython.int = 0
    ln: cython.int = 0
    s: cython.Py_ssize_t = w + 3 * nl
    for k in range(nl):
        ln = packed[w + 2 * nl + k]
        macro_of[cu + k] = packed[w + k]
        max_of[cu + k] = packed[w + nl + k]
        length_of[cu + k] = ln
        total += ln
        for j in range(ln):
            entry[(cu + k) * list_length + j] = packed[s]
            s += 1
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def grow_starts(
    S: cython.longlong[::1],
    pools: cython.longlong[::1],
    start_positions: cython.int[::1],
    start_times: cython.longlong[::1],
    head: cython.longlong,
    tail: cython.longlong,
    offset: cython.Py_ssize_t,
    mask: cython.longlong,
) -> cython.int:
    """Move the starts to a ring of twice the size, or give them the first one: S[S_STARTS_OFFSET], S[S_STARTS_MASK]; an exit, or 0."""
    room: cython.longlong = 2 * (mask + 1)
    klass: cython.int = 0
    w: cython.longlong = 0
    s: cython.Py_ssize_t = 0
    s2: cython.Py_ssize_t = 0
    k: cython.longlong = head
    if mask < 0:
        room = pools[STARTS + LEAST]
    while (pools[STARTS + LEAST] << klass) < room:
        klass += 1
    w = take_slab(pools, start_positions, STARTS, 1, klass)
    if w < 0:
        S[S_ARGUMENT] = room
        return EXIT_STARTS
    if mask >= 0:
        while k < tail:
            s = offset + (k & mask)
            s2 = w + (k & (room - 1))
            start_positions[s2] = start_positions[s]
            start_times[s2] = start_times[s]
            k += 1
        free_slab(pools, start_positions, STARTS, 1, offset, mask + 1)
    S[S_STARTS_OFFSET] = w
    S[S_STARTS_MASK] = room - 1
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def grow_cells(
    S: cython.longlong[::1],
    pools: cython.longlong[::1],
    cells: cython.int[::1],
    cell_labels: cython.ushort[::1],
    head: cython.int,
    nx: cython.int,
    need: cython.int,
) -> cython.int:
    """Move the cells from `head` to `nx` to a ring with room for `need` more: S[S_CELLS_OFFSET], S[S_CELLS_MASK]; an exit, or 0."""
    ao: cython.Py_ssize_t = S[S_CELLS_OFFSET]
    am: cython.int = S[S_CELLS_MASK]
    room: cython.longlong = am + 1
    klass: cython.int = 0
    w: cython.Py_ssize_t = ao
    s: cython.Py_ssize_t = 0
    s2: cython.Py_ssize_t = 0
    e: cython.int = 0
    mask: cython.int = 0
    if am < 0:
        room = pools[CELLS + LEAST]
    while room <= nx - head + need:
        room <<= 1
    S[S_ARGUMENT] = room
    if room > CELL_LIMIT:
        return EXIT_CELLS
    if am >= 0 and ao + am + 1 == pools[CELLS + TOP]:  # the last slab grows where it is: one partition alone leaves no holes
        if ao + room > pools[CELLS + CAPACITY]:
            return EXIT_CELLS
        pools[CELLS + TOP] = ao + room
    else:
        while (pools[CELLS + LEAST] << klass) < room:
            klass += 1
        w = take_slab(pools, cells, CELLS, 4, klass)
        if w < 0:
            return EXIT_CELLS
    mask = room - 1
    for e in range(head, nx):
        s = ao + (e & am)
        s2 = w + (e & mask)
        if s != s2:
            cell_labels[s2] = cell_labels[s]
            cells[s2 * 4] = cells[s * 4]
            cells[s2 * 4 + CHILD] = cells[s * 4 + CHILD]
            cells[s2 * 4 + REST] = cells[s * 4 + REST]
            cells[s2 * 4 + MAX_START] = cells[s * 4 + MAX_START]
    if am >= 0 and w != ao:
        free_slab(pools, cells, CELLS, 4, ao, am + 1)
    S[S_CELLS_OFFSET] = w
    S[S_CELLS_MASK] = mask
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def count_matches(
    S: cython.longlong[::1],
    cells: cython.int[::1],
    outputs: cython.int[::1],
    stack: cython.int[::1],
    weights: cython.double[::1],
    stamps: cython.longlong[::1],
) -> cython.int:
    """Count the matches below each cell that the outputs reach, children and alternatives first; an exit, or 0."""
    head: cython.int = S[S_HEAD]
    lo: cython.int = S[S_LOW]
    ao: cython.Py_ssize_t = S[S_CELLS_OFFSET]
    am: cython.int = S[S_CELLS_MASK]
    nout: cython.int = S[S_OUTPUTS]
    stamp: cython.longlong = S[S_TRIGGERS]
    stack_room: cython.int = stack.shape[0] - 4
    sp: cython.int = 0
    k: cython.int = 0
    e: cython.int = 0
    ready: cython.int = 0
    w: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    s2: cython.Py_ssize_t = 0
    total: cython.double = 0
    share: cython.double = 0
    for k in range(nout):
        e = cells[((ao + (outputs[k] & am)) << 2) + CHILD]
        sp = 0
        if e != 0:
            stack[0] = e
            sp = 1
        while sp > 0:
            w = ao + (stack[sp - 1] & am)
            s = w << 2
            if stamps[w] == stamp:
                sp -= 1
                continue
            if sp >= stack_room:
                return EXIT_STACK
            e = cells[s + CHILD]
            share = 1
            ready = 1
            if e != 0:
                s2 = ao + (e & am)
                share = weights[s2]
                if stamps[s2] != stamp:
                    stack[sp] = e
                    sp += 1
                    ready = 0
            e = cells[s + REST]
            s2 = ao + (e & am)
            if e >= head and cells[s2 * 4 + MAX_START] >= lo:
                share += weights[s2]
                if stamps[s2] != stamp:
                    stack[sp] = e
                    sp += 1
                    ready = 0
            if ready != 0:
                weights[w] = share
                stamps[w] = stamp
                sp -= 1
    for k in range(nout):
        e = cells[((ao + (outputs[k] & am)) << 2) + CHILD]
        total += weights[ao + (e & am)] if e != 0 else 1
    weights[weights.shape[0] - 1] = total
    S[S_SPREAD] = 1 if total > S[S_SAMPLE] else 0
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def choose_match(
    S: cython.longlong[::1],
    cells: cython.int[::1],
    cell_labels: cython.ushort[::1],
    outputs: cython.int[::1],
    path: cython.int[::1],
    path_labels: cython.ushort[::1],
    weights: cython.double[::1],
    given: cython.longlong,
) -> cython.int:
    """Put the next match of a sample into the path, S[S_DEPTH] its last place; an exit, or 0.

    One of each part of equal size, from its middle half: no two are the same. Drawn by position, not by chance.
    """
    head: cython.int = S[S_HEAD]
    lo: cython.int = S[S_LOW]
    ao: cython.Py_ssize_t = S[S_CELLS_OFFSET]
    am: cython.int = S[S_CELLS_MASK]
    nout: cython.int = S[S_OUTPUTS]
    sample: cython.longlong = S[S_SAMPLE]
    path_room: cython.int = path.shape[0] - 1
    d: cython.int = 0
    k: cython.int = 0
    x: cython.int = 0
    h: cython.int = 0
    e: cython.int = 0
    cur: cython.int = 0
    w: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    rank: cython.double = 0
    share: cython.double = 0
    drawn: cython.double = weights[weights.shape[0] - 1]
    number: cython.ulonglong = given
    seed: cython.ulonglong = S[S_BASE] + S[S_SHIFT] + S[S_ROW] + 1
    word: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    factor: cython.ulonglong = 0x5851F42D4C957F2D
    summand: cython.ulonglong = 0x14057B7EF767814F
    fraction: cython.double = 1.0 / 9007199254740992.0
    exact: cython.double = 4503599627370496.0  # a double counts one by one up to here, and twice as far
    seed = (seed * factor + number) & word
    seed = ((seed ^ (seed >> 31)) * factor + summand) & word
    rank = (given + 0.25 + (seed >> 11) * 0.5 * fraction) * drawn / sample
    if drawn < exact:
        rank = given * drawn / sample
    while True:
        w = ao + (outputs[k] & am)
        cur = cells[(w << 2) + CHILD]
        share = weights[ao + (cur & am)] if cur != 0 else 1
        if rank < share or k == nout - 1:
            break
        rank -= share
        k += 1
    path[0] = cells[w << 2]
    path_labels[0] = cell_labels[w]
    while cur != 0:
        w = ao + (cur & am)
        s = w << 2
        x = cells[s]
        h = cells[s + CHILD]
        e = cells[s + REST]
        share = weights[w]
        if share * 1073741824.0 < drawn and drawn >= exact:  # a double has no more digits: draw the next ones
            seed = (seed * factor + summand) & word
            rank = (seed >> 11) * fraction * share
            drawn = share
        share = weights[ao + (h & am)] if h != 0 else 1
        if rank >= share and e >= head and cells[(ao + (e & am)) * 4 + MAX_START] >= lo:
            rank -= share
            cur = e
            continue
        cur = h
        if x >= 0:
            d += 1
            if d >= path_room:
                return EXIT_STACK
            path[d] = x
            path_labels[d] = cell_labels[w]
    S[S_DEPTH] = d
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def enumerate_matches(
    S: cython.longlong[::1],
    cells: cython.int[::1],
    cell_labels: cython.ushort[::1],
    outputs: cython.int[::1],
    stack: cython.int[::1],
    path: cython.int[::1],
    path_labels: cython.ushort[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    weights: cython.double[::1],
    stamps: cython.longlong[::1],
    head: cython.int,
    lo: cython.int,
    nout: cython.int,
    segment: cython.int,
    limit: cython.longlong,
    begun: cython.int,
) -> cython.int:
    """Give the matches that end at the event, if `begun` from where S says; an exit, or 0 when all are given.

    PERF: what `run` has at hand is passed on, and S has the rest only where it is left on the way: with LIMIT 1 a match takes some ten loads.
    """
    base: cython.longlong = S[S_BASE]
    ao: cython.Py_ssize_t = S[S_CELLS_OFFSET]
    am: cython.int = S[S_CELLS_MASK]
    nm: cython.longlong = S[S_BUFFERED_MATCHES]
    npos: cython.longlong = S[S_BUFFERED_POSITIONS]
    sample: cython.longlong = S[S_SAMPLE]
    enumerating: cython.int = NEXT_OUTPUT if sample == 0 else COUNT
    spread: cython.int = 0
    oc: cython.int = 0
    sp: cython.int = 0
    cur: cython.int = 0
    d: cython.int = 0
    given: cython.longlong = 0
    match_room: cython.longlong = out_segments.shape[0]
    position_room: cython.longlong = out_positions.shape[0]
    stack_room: cython.int = stack.shape[0] - 4
    path_room: cython.int = path.shape[0] - 1
    rc: cython.int = 0
    k: cython.int = 0
    e: cython.int = 0
    x: cython.int = 0
    w: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    if begun != 0:
        enumerating = S[S_ENUMERATING]
        spread = S[S_SPREAD]
        oc = S[S_OUTPUT]
        sp = S[S_STACK]
        cur = S[S_CELL]
        d = S[S_DEPTH]
        given = S[S_GIVEN]
    if sample != 0:
        S[S_HEAD] = head
        S[S_LOW] = lo
        S[S_OUTPUTS] = nout
    while True:
        if enumerating == COUNT:
            rc = count_matches(S, cells, outputs, stack, weights, stamps)
            if rc != 0:
                break
            spread = S[S_SPREAD]
            enumerating = CHOOSE if spread != 0 else NEXT_OUTPUT
            sp = 0
        if enumerating == CHOOSE:
            if given == sample:
                enumerating = 0
                break
            rc = choose_match(S, cells, cell_labels, outputs, path, path_labels, weights, given)
            if rc != 0:
                break
            d = S[S_DEPTH]
            sp = 0
            enumerating = WRITE
        if enumerating == VISIT:
            if sp >= stack_room or d >= path_room:
                rc = EXIT_STACK
                break
            w = ao + (cur & am)
            s = w << 2
            x = cells[s]
            e = cells[s + REST]
            if e >= head and cells[(ao + (e & am)) * 4 + MAX_START] >= lo:
                stack[sp] = e
                stack[sp + 1] = d
                sp += 2
            cur = cells[s + CHILD]
            if x < 0:  # a union: its right side later, its left side now
                continue
            path[d] = x
            path_labels[d] = cell_labels[w]
            if cur != 0:
                d += 1
                continue
            enumerating = WRITE
        if enumerating == WRITE:
            if nm >= match_room or npos + d + 1 > position_room:
                rc = EXIT_OUTPUT
                break
            w = npos
            k = d
            while k >= 0:
                out_positions[w] = base + path[k]
                out_labels[w] = path_labels[k]
                w += 1
                k -= 1
            npos = w
            out_segments[nm] = segment
            nm += 1
            out_offsets[nm] = w
            given += 1
            if given == limit:
                enumerating = 0
                break
            if spread != 0:
                enumerating = CHOOSE
                continue
            if sp > 0:
                sp -= 2
                cur = stack[sp]
                d = stack[sp + 1]
                enumerating = VISIT
                continue
            enumerating = NEXT_OUTPUT
        if oc == nout:
            enumerating = 0
            break
        w = ao + (outputs[oc] & am)
        oc += 1
        path[0] = cells[w << 2]
        path_labels[0] = cell_labels[w]
        d = 0
        cur = cells[(w << 2) + CHILD]
        if cur == 0:
            enumerating = WRITE
        else:
            d = 1
            enumerating = VISIT
    S[S_ENUMERATING] = enumerating
    S[S_BUFFERED_MATCHES] = nm
    S[S_BUFFERED_POSITIONS] = npos
    if rc == 0:
        S[S_MATCHES] += given
        return 0
    S[S_SPREAD] = spread
    S[S_OUTPUT] = oc
    S[S_STACK] = sp
    S[S_CELL] = cur
    S[S_DEPTH] = d
    S[S_GIVEN] = given
    return rc


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    slots: cython.const[cython.int][::1],
    vetoed: cython.const[cython.uchar][::1],
    lut: cython.int[::1],
    marked_of: cython.int[::1],
    unmarked_of: cython.int[::1],
    known: cython.longlong[::1],
    stirs: cython.longlong[::1],
    moves: cython.int[::1],
    records: cython.longlong[::1],
    cells: cython.int[::1],
    cell_labels: cython.ushort[::1],
    start_positions: cython.int[::1],
    start_times: cython.longlong[::1],
    packed: cython.int[::1],
    pools: cython.longlong[::1],
    macro_of: cython.int[::1],
    length_of: cython.int[::1],
    max_of: cython.int[::1],
    entry: cython.int[::1],
    tail: cython.int[::1],
    list_of: cython.int[::1],
    outputs: cython.int[::1],
    stack: cython.int[::1],
    path: cython.int[::1],
    path_labels: cython.ushort[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    marked: cython.uchar[::1],
    weights: cython.double[::1],
    stamps: cython.longlong[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters (index into lut), times (non-decreasing in a segment), cuts (row where each segment starts), slots (row of `records`
    that holds the segment's partition, or -1: nothing is kept after the segment, record 0 is its workplace), vetoed (of which rows no matches
    are given; empty: of none).
    TABLES: lut (letter -> code, -1 unknown), marked_of[macro * codes + code] (first of a chain in `moves`, -1 none, -2 unknown),
    unmarked_of (macro state, -1 none), known[code] and stirs[code] (macro states as bits: transition known; does more than stay as it is),
    moves (stride 4: target or -1 if nothing leaves it, label, next of the chain or -1, 1 if the target is final).
    STATE: records; the pools cells, cell_labels, start_positions, start_times, packed, and `pools` (see POOL);
    macro_of, length_of, max_of, entry (two halves: the lists before and after an event), tail, list_of (macro -> list after the event).
    SAMPLE: weights (per place of `cells` how many matches begin the way to it; last of all the trigger's), stamps (the trigger it was counted for).
    OUT: out_offsets[0..matches], out_positions, out_labels, out_segments; marked[row] = 1 where a cell was made.
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
    limit: cython.longlong = S[S_LIMIT]
    shift: cython.longlong = S[S_SHIFT]
    base: cython.longlong = S[S_BASE]
    head: cython.int = S[S_HEAD]
    nx: cython.int = S[S_NEXT]
    ao: cython.Py_ssize_t = S[S_CELLS_OFFSET]
    am: cython.int = S[S_CELLS_MASK]
    sh: cython.longlong = S[S_STARTS_HEAD]
    st: cython.longlong = S[S_STARTS_TAIL]
    so: cython.Py_ssize_t = S[S_STARTS_OFFSET]
    sm: cython.longlong = S[S_STARTS_MASK]
    parity: cython.int = S[S_PARITY]
    nl: cython.int = S[S_LISTS]
    live: cython.longlong = S[S_LIVE]
    entries: cython.int = S[S_ENTRIES]
    longest: cython.int = S[S_LONGEST]
    lo: cython.int = S[S_LOW]
    codes: cython.Py_ssize_t = S[S_CODES]
    list_count: cython.Py_ssize_t = S[S_LIST_COUNT]
    list_length: cython.Py_ssize_t = S[S_LIST_LENGTH]
    fanout: cython.int = S[S_FANOUT]
    letter_mask: cython.uint = S[S_LETTER_MASK]
    nout: cython.int = S[S_OUTPUTS]
    enumerating: cython.int = S[S_ENUMERATING] != 0
    begun: cython.int = enumerating
    skipped: cython.longlong = S[S_SKIPPED]
    unions: cython.longlong = S[S_UNIONS]
    consume: cython.int = S[S_CONSUME]
    epoch: cython.longlong = S[S_EPOCH]
    most_lists: cython.longlong = (list_count - fanout) // (fanout + 1)
    rc: cython.int = 0
    budget: cython.longlong = S[S_BUDGET]
    p: cython.int = 0
    c: cython.int = 0
    k: cython.int = 0
    j: cython.int = 0
    q: cython.int = 0
    ln: cython.int = 0
    mt: cython.int = 0
    mk: cython.int = 0
    un: cython.int = 0
    h: cython.int = 0
    e: cython.int = 0
    r1: cython.int = 0
    r2: cython.int = 0
    m: cython.int = 0
    me: cython.int = 0
    x: cython.int = 0
    y: cython.int = 0
    nn: cython.int = 0
    need: cython.int = 0
    s: cython.Py_ssize_t = 0
    s2: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    cu: cython.Py_ssize_t = 0
    nu: cython.Py_ssize_t = 0
    now: cython.ulonglong = 0
    then: cython.ulonglong = 0
    one: cython.longlong = 1

    with cython.nogil:
        while True:
            # ------------------------------------------------------------------------------------------------ enumeration
            if enumerating != 0:
                S[S_ROW] = i
                rc = enumerate_matches(
                    S,
                    cells,
                    cell_labels,
                    outputs,
                    stack,
                    path,
                    path_labels,
                    out_offsets,
                    out_positions,
                    out_labels,
                    out_segments,
                    weights,
                    stamps,
                    head,
                    lo,
                    nout,
                    segment,
                    limit,
                    begun,
                )
                if rc != 0:
                    break
                enumerating = 0
                begun = 0
                if consume != 0:
                    head = nx
                i += 1
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
                    if record != 0 or segment + 1 == segments or slots[segment + 1] >= 0:
                        s = record * RECORD_WIDTH
                        cu = parity * list_count
                        rc = store_lists(S, records, packed, pools, macro_of, length_of, max_of, entry, s, nl, entries, cu)
                        if rc != 0:
                            break
                        records[s + R_HEAD] = head
                        records[s + R_NEXT] = nx
                        records[s + R_CELLS_OFFSET] = ao
                        records[s + R_CELLS_MASK] = am
                        records[s + R_STARTS_HEAD] = sh
                        records[s + R_STARTS_TAIL] = st
                        records[s + R_STARTS_OFFSET] = so
                        records[s + R_STARTS_MASK] = sm
                        records[s + R_LISTS] = nl
                        records[s + R_POSITION] = shift + end
                        records[s + R_BASE] = base
                        records[s + R_EPOCH] = epoch
                        if end > cuts[segment]:
                            records[s + R_LAST_TIME] = times[end - 1]
                        record = -1
                segment += 1
                S[S_SEGMENT] = segment
                if segment == segments:
                    break
                end = rows
                if segment + 1 < segments:
                    end = cuts[segment + 1]
                if slots[segment] >= 0 or record < 0:
                    # Load the partition that starts here.
                    record = slots[segment]
                    if record < 0:
                        record = 0
                    s = record * RECORD_WIDTH
                    head = records[s + R_HEAD]
                    nx = records[s + R_NEXT]
                    ao = records[s + R_CELLS_OFFSET]
                    am = records[s + R_CELLS_MASK]
                    sh = records[s + R_STARTS_HEAD]
                    st = records[s + R_STARTS_TAIL]
                    so = records[s + R_STARTS_OFFSET]
                    sm = records[s + R_STARTS_MASK]
                    nl = records[s + R_LISTS]
                    records[s + R_LISTS] = 0
                    if records[s + R_EPOCH] != epoch:
                        nl = 0
                        head = nx
                        sh = st
                    shift = records[s + R_POSITION] - i
                    base = records[s + R_BASE]
                    S[S_SHIFT] = shift
                    S[S_BASE] = base
                    S[S_CELLS_OFFSET] = ao
                    S[S_CELLS_MASK] = am
                    live = 1
                    longest = 1
                    cu = parity * list_count
                    entries = load_lists(S, packed, macro_of, length_of, max_of, entry, records[s + R_PACKED_OFFSET], nl, cu)
                    for k in range(nl):
                        q = macro_of[cu + k]
                        live |= one << (q if q < 62 else 62)
                        if length_of[cu + k] > longest:
                            longest = length_of[cu + k]
                    if shift + i > ID_LIMIT and end > i and slots[segment] >= 0:
                        rc = EXIT_REBASE
                        break
                if slots[segment] < 0:
                    if segment == 0 and S[S_CONTINUED] != 0:
                        if shift + i > ID_LIMIT and end > i:
                            rc = EXIT_REBASE
                            break
                    else:  # forget: the ring is empty and ids start again
                        head = 1
                        nx = 1
                        sh = 0
                        st = 0
                        nl = 0
                        live = 1
                        entries = 0
                        longest = 1
                        shift = -i
                        base = 0
                        S[S_SHIFT] = shift
                        S[S_BASE] = 0
                continue
            if c < 0:
                rc = EXIT_LETTER
                break
            if budget < 0:
                rc = EXIT_PAUSE
                break
            budget -= 1 + nl
            if (live & ~known[c]) != 0:
                S[S_ARGUMENT] = c
                rc = EXIT_TRANSITION
                break
            cu = parity * list_count
            if (live >> 62) != 0:
                for k in range(nl):
                    if marked_of[macro_of[cu + k] * codes + c] == -2:
                        S[S_ARGUMENT] = c
                        rc = EXIT_TRANSITION
                        break
                if rc != 0:
                    break
            # ------------------------------------------------------------------------------------------------ window and room
            p = shift + i
            if timed != 0:
                now = times[i]
                while sh != st:
                    w = so + (sh & sm)
                    then = start_times[w]  # unsigned: the difference of two int64 times cannot overflow
                    if now - then <= window and (count_window == 0 or p - start_positions[w] < count_window):
                        break
                    sh += 1
                lo = p
                if sh != st:
                    lo = start_positions[so + (sh & sm)]
                if st - sh > sm:
                    rc = grow_starts(S, pools, start_positions, start_times, sh, st, so, sm)
                    if rc != 0:
                        break
                    so = S[S_STARTS_OFFSET]
                    sm = S[S_STARTS_MASK]
            else:
                lo = 0
                if count_window != 0 and p >= count_window:
                    lo = p - count_window + 1
            # Cells of the worst step: merge every list, mark from every list and from the start, three unions per join of two lists.
            need = entries - nl + (nl + 1) * fanout
            if nl > 1:
                need += 3 * (nl - 1)
            if nx - head + need > am:
                while head < nx:
                    x = cells[(ao + (head & am)) << 2]
                    if x < 0:
                        x = ~x
                    if x >= lo:
                        break
                    head += 1
                if nx > ID_LIMIT:
                    rc = EXIT_REBASE
                    break
                if nx - head + need > am:
                    rc = grow_cells(S, pools, cells, cell_labels, head, nx, need)
                    if rc != 0:
                        break
                    ao = S[S_CELLS_OFFSET]
                    am = S[S_CELLS_MASK]
            if nl > most_lists or longest + nl >= list_length:
                rc = EXIT_LISTS
                break
            # ------------------------------------------------------------------------------------------------ step
            parity = 1 - parity
            nu = parity * list_count
            nn = 0
            nout = 0
            mt = marked_of[c]
            if mt >= 0:  # a match may start here
                marked[i] = 1
                if timed != 0:
                    start_positions[so + (st & sm)] = p
                    start_times[so + (st & sm)] = times[i]
                    st += 1
                while mt >= 0:
                    mk = moves[mt]
                    w = ao + (nx & am)
                    cell_labels[w] = moves[mt + 1]
                    s = w << 2
                    cells[s] = p
                    cells[s + 1] = 0
                    cells[s + 2] = 0
                    cells[s + 3] = p
                    if moves[mt + 3] != 0:
                        outputs[nout] = nx
                        nout += 1
                    y = -2 if mk < 0 else list_of[mk]
                    if y == -2:  # a match ends here and none goes on: the cell is in no list
                        pass
                    elif y < 0:
                        list_of[mk] = nn
                        macro_of[nu + nn] = mk
                        length_of[nu + nn] = 1
                        max_of[nu + nn] = p
                        entry[(nu + nn) * list_length] = nx
                        tail[nn] = nx
                        nn += 1
                    else:
                        cells[((ao + (tail[y] & am)) << 2) + 2] = nx
                        tail[y] = nx
                    nx += 1
                    mt = moves[mt + 2]
            for k in range(nl):
                m = max_of[cu + k]
                if m < lo:
                    break  # sorted: the rest is expired too
                q = macro_of[cu + k]
                ln = length_of[cu + k]
                w = (cu + k) * list_length
                while ln > 1:
                    e = entry[w + ln - 1]
                    if e >= head and cells[((ao + (e & am)) << 2) + 3] >= lo:
                        break
                    ln -= 1
                mt = marked_of[q * codes + c]
                un = unmarked_of[q * codes + c]
                h = entry[w + ln - 1]
                if ln > 1 and (mt >= 0 or (un >= 0 and list_of[un] >= 0)):
                    for j in range(ln - 2, -1, -1):  # merge the list into one cell
                        e = entry[w + j]
                        s = (ao + (nx & am)) << 2
                        cells[s] = ~p
                        cells[s + 1] = e
                        cells[s + 2] = h
                        cells[s + 3] = cells[((ao + (e & am)) << 2) + 3]
                        h = nx
                        nx += 1
                        unions += 1
                if mt >= 0:
                    marked[i] = 1
                while mt >= 0:
                    mk = moves[mt]
                    s = ao + (nx & am)
                    cell_labels[s] = moves[mt + 1]
                    s = s << 2
                    cells[s] = p
                    cells[s + 1] = h
                    cells[s + 2] = 0
                    cells[s + 3] = m
                    if moves[mt + 3] != 0:
                        outputs[nout] = nx
                        nout += 1
                    y = -2 if mk < 0 else list_of[mk]
                    if y == -2:  # a match ends here and none goes on: the cell is in no list
                        pass
                    elif y < 0:
                        list_of[mk] = nn
                        macro_of[nu + nn] = mk
                        length_of[nu + nn] = 1
                        max_of[nu + nn] = m
                        entry[(nu + nn) * list_length] = nx
                        tail[nn] = nx
                        nn += 1
                    elif tail[y] != 0:  # chain after a cell made just now
                        cells[((ao + (tail[y] & am)) << 2) + 2] = nx
                        tail[y] = nx
                    else:
                        s2 = (nu + y) * list_length
                        if max_of[nu + y] == m:  # on top of the first entry
                            cells[s + 2] = entry[s2]
                            entry[s2] = nx
                        else:
                            j = 1
                            x = length_of[nu + y]
                            me = -1
                            while j < x:
                                me = cells[((ao + (entry[s2 + j] & am)) << 2) + 3]
                                if me <= m:
                                    break
                                j += 1
                            if j < x and me == m:
                                cells[s + 2] = entry[s2 + j]
                                entry[s2 + j] = nx
                            else:
                                while x > j:
                                    entry[s2 + x] = entry[s2 + x - 1]
                                    x -= 1
                                entry[s2 + j] = nx
                                length_of[nu + y] += 1
                    nx += 1
                    mt = moves[mt + 2]
                if un < 0:
                    continue
                y = list_of[un]
                if y < 0:  # the list just moves
                    s2 = (nu + nn) * list_length
                    for j in range(ln):
                        entry[s2 + j] = entry[w + j]
                    list_of[un] = nn
                    macro_of[nu + nn] = un
                    length_of[nu + nn] = ln
                    max_of[nu + nn] = m
                    tail[nn] = 0
                    nn += 1
                elif tail[y] != 0:
                    cells[((ao + (tail[y] & am)) << 2) + 2] = h
                    tail[y] = 0
                else:
                    s2 = (nu + y) * list_length
                    j = 1
                    x = length_of[nu + y]
                    me = -1
                    while j < x:
                        me = cells[((ao + (entry[s2 + j] & am)) << 2) + 3]
                        if me <= m:
                            break
                        j += 1
                    if j == x or me != m:
                        while x > j:
                            entry[s2 + x] = entry[s2 + x - 1]
                            x -= 1
                        entry[s2 + j] = h
                        length_of[nu + y] += 1
                        continue
                    # Two entries with one max start: a union that keeps every output near (name in paper: the gadget of `union`).
                    e = entry[s2 + j]
                    if cells[(ao + (e & am)) << 2] < 0:
                        e = h
                        h = entry[s2 + j]
                    if cells[(ao + (e & am)) << 2] >= 0:  # one of them, now e, is no union: it is the left side
                        s = (ao + (nx & am)) << 2
                        cells[s] = ~p
                        cells[s + 1] = e
                        cells[s + 2] = h
                        cells[s + 3] = m
                        entry[s2 + j] = nx
                        nx += 1
                        unions += 1
                        continue
                    r1 = cells[((ao + (e & am)) << 2) + 2]
                    r2 = cells[((ao + (h & am)) << 2) + 2]
                    if not (r2 >= head and cells[((ao + (r2 & am)) << 2) + 3] >= lo):
                        r2 = r1
                    elif r1 >= head and cells[((ao + (r1 & am)) << 2) + 3] >= lo:
                        if cells[((ao + (r1 & am)) << 2) + 3] < cells[((ao + (r2 & am)) << 2) + 3]:
                            x = r1
                            r1 = r2
                            r2 = x
                        s = (ao + (nx & am)) << 2
                        cells[s] = ~p
                        cells[s + 1] = r1
                        cells[s + 2] = r2
                        cells[s + 3] = cells[((ao + (r1 & am)) << 2) + 3]
                        r2 = nx
                        nx += 1
                        unions += 1
                    s = (ao + (nx & am)) << 2
                    cells[s] = ~p
                    cells[s + 1] = cells[((ao + (h & am)) << 2) + 1]
                    cells[s + 2] = r2
                    cells[s + 3] = m
                    nx += 1
                    s = (ao + (nx & am)) << 2
                    cells[s] = ~p
                    cells[s + 1] = cells[((ao + (e & am)) << 2) + 1]
                    cells[s + 2] = nx - 1
                    cells[s + 3] = m
                    entry[s2 + j] = nx
                    nx += 1
                    unions += 2
            nl = nn
            live = 1
            entries = 0
            longest = 1
            for k in range(nn):
                x = macro_of[nu + k]
                list_of[x] = -1
                live |= one << (x if x < 62 else 62)
                ln = length_of[nu + k]
                entries += ln
                if ln > longest:
                    longest = ln
            if nout != 0:
                S[S_TRIGGERS] += 1
                if consume != 0:  # later matches start after this event: nothing stays open, but the cells until they are enumerated
                    nl = 0
                    live = 1
                    entries = 0
                    longest = 1
                    sh = st
                    if consume == 2:
                        epoch += 1
                if limit != 0 and (vetoed.shape[0] == 0 or vetoed[i] == 0):
                    enumerating = 1
                    continue
                if consume != 0:
                    head = nx
            i += 1

    S[S_ROW] = i
    S[S_SEGMENT_END] = end
    S[S_RECORD] = record
    S[S_HEAD] = head
    S[S_NEXT] = nx
    S[S_STARTS_HEAD] = sh
    S[S_STARTS_TAIL] = st
    S[S_STARTS_OFFSET] = so
    S[S_STARTS_MASK] = sm
    S[S_PARITY] = parity
    S[S_LISTS] = nl
    S[S_LIVE] = live
    S[S_ENTRIES] = entries
    S[S_LONGEST] = longest
    S[S_LOW] = lo
    S[S_OUTPUTS] = nout
    S[S_SKIPPED] = skipped
    S[S_UNIONS] = unions
    S[S_EPOCH] = epoch
    return rc


def reach(
    records: cython.const[cython.longlong][::1],
    lows: cython.const[cython.longlong][::1],
    cells: cython.const[cython.int][::1],
    packed: cython.const[cython.int][::1],
    stack: cython.int[::1],
    seen: cython.uchar[::1],
):
    """Set seen[place] = 1 for every cell that a live list of a stored partition reaches and whose max start is at least lows[record].

    `stack` must hold as many ids as the largest ring has cells. Linear in the cells reached.
    """
    count: cython.Py_ssize_t = lows.shape[0]
    r: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0
    height: cython.Py_ssize_t = 0
    k: cython.longlong = 0
    nl: cython.longlong = 0
    total: cython.longlong = 0
    low: cython.longlong = 0
    head: cython.int = 0
    mask: cython.int = 0
    ao: cython.Py_ssize_t = 0
    e: cython.int = 0
    side: cython.int = 0
    with cython.nogil:
        for r in range(count):
            s = r * RECORD_WIDTH
            nl = records[s + R_LISTS]
            if nl == 0:
                continue
            head = records[s + R_HEAD]
            ao = records[s + R_CELLS_OFFSET]
            mask = records[s + R_CELLS_MASK]
            low = lows[r]
            w = records[s + R_PACKED_OFFSET]
            total = 0
            for k in range(nl):
                if packed[w + nl + k] < low:
                    break
                total += packed[w + 2 * nl + k]
            for k in range(total):
                e = packed[w + 3 * nl + k]
                height = 0
                if e >= head:
                    o = ao + (e & mask)
                    if seen[o] == 0 and cells[4 * o + 3] >= low:
                        seen[o] = 1
                        stack[0] = e
                        height = 1
                while height > 0:
                    height -= 1
                    o = ao + (stack[height] & mask)
                    for side in range(1, 3):
                        e = cells[4 * o + side]
                        if e >= head:
                            w = ao + (e & mask)
                            if seen[w] == 0 and cells[4 * w + 3] >= low:
                                seen[w] = 1
                                stack[height] = e
                                height += 1
                w = records[s + R_PACKED_OFFSET]


def acyclic(links: cython.const[cython.int][::1], degree: cython.int[::1], stack: cython.int[::1]):
    """Whether no chain of links comes back to where it was: links of two per cell (places, -1 none). degree: zeros, stack: room for all cells.

    Linear (Kahn's algorithm): cells without a link to them are taken away, until there are none.
    """
    count: cython.Py_ssize_t = degree.shape[0]
    height: cython.Py_ssize_t = 0
    taken: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    cell: cython.Py_ssize_t = 0
    with cython.nogil:
        for k in range(2 * count):
            if links[k] >= 0:
                degree[links[k]] += 1
        for k in range(count):
            if degree[k] == 0:
                stack[height] = k
                height += 1
        while height > 0:
            height -= 1
            cell = stack[height]
            taken += 1
            for k in range(2 * cell, 2 * cell + 2):
                if links[k] >= 0:
                    degree[links[k]] -= 1
                    if degree[links[k]] == 0:
                        stack[height] = links[k]
                        height += 1
    return taken == count
