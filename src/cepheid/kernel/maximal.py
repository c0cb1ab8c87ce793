# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of SELECT MAX: groups of starts that share a configuration, over flat tables and one block of int64 per partition.

What a configuration is and where it goes on a letter is in `evaluations.choosing.domination`; here it is a number. From the moment when two
starts have the same configuration they make the same moves for ever: they are MERGED into one group, and each later event makes one cell
for the group, not one per start. Only below the merge do their runs differ: there a fork says which side a start takes. Forks follow a
binary trie on the start's position (Patricia; Okasaki and Gill's mergeable maps), not the order of the merges: a path through forks has
O(log window) steps however many groups have been merged, and all merges together cost O(log window) per start and macro state.

A NODE is four int64 in the ring of its partition. Nodes are immutable and made in stream order; an id grows for ever, its place is id &
mask, 0 is none.
    [0] cell, both: position of its event; starts, fork: the newest start it speaks of. What is older than `oldest` is dead.
    [1] tag: a bit's exponent (fork, inner starts), -1 (both, one start), -2 (cell)
    [2] cell: the runs it extends, 0 where the match starts here; fork, inner starts: side of the starts without the bit; both: one list;
        one start: number of its row
    [3] cell: letter of its event; fork, inner starts: side with the bit; both: the other list
Dead nodes are never followed: a live start's way meets nodes at its own position or later only. So freeing is moving the ring's head.

A ROW belongs to a live start: position, time, first node made at it (older ones are dead once the start is the oldest), and per waiting
state the greatest start of a partial match in it just before (its thresholds).
A GROUP is configuration, starts, row of the newest start, and the runs of each macro state of the configuration.

A step is a transaction: it makes nodes and new groups beside what there is, and commits at its end. Whatever is missing on the way (a
program, room) makes it return an exit code and leave nothing; the driver mends it, and the event is read anew.
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
EXITS = (
    "done",
    "letter",
    "order",
    "order_expiry",
    "program",
    "expiry",
    "nodes",
    "scratch",
    "output",
    "stack",
    "damaged",
    "rows",
    "groups",
    "pause",
)

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "window",  # ! time window
    "timed",  # ! 1 with a time window
    "count_window",  # ! position window, 0 none
    "limit",  # ! supports per trigger, 0 = count the triggers only
    "consume",  # ! 0 none, 1 partition, 2 any
    "epoch",  # triggers so far that consumed all partitions
    "letter_mask",  # !
    "continued",  # ! 1: the first segment goes on with block 0
    "codes",  # ! letter codes per row of the tables
    "states",  # ! waiting states
    "half",  # ! size of half the array `values`
    "enumerating",  # 0 no, else next entry of `ends`, next start, visit `node`, write the path
    "oldest",  # of the trigger being enumerated
    "ends",  # entries of `ends`
    "end",  # next of them
    "starts",  # height of the stack of starts
    "label",  # of the entry
    "cell",  # of the entry
    "start",  # being enumerated
    "node",
    "depth",
    "stack",  # height of the stack of runs
    "given",  # supports given at this trigger
    "buffered_matches",  # supports in the output buffers
    "buffered_positions",
    "argument",  # of the exit code
    "detail",  # of the exit code
    "triggers",  # events that ended a match
    "supports",  # supports given
    "skipped",  # events passed by the skip loop
    "most_groups",  # most groups of a partition so far
    "budget",  # ! what may be done before the kernel returns, so that whoever waits can break in
)

# The plain words of a block; then one number per waiting state (greatest start of a partial match in it), then the rings' directory.
HEADER = (
    "position",  # of the partition's next event
    "low",  # least start that consumption allows
    "epoch",  # in which `low` was last right (CONSUME BY ANY)
    "last_time",  # time of its last event
    "newest_start",  # position of the last event that starts a match, -1 none
    "newest_time",  # its time
    "order",  # in which the numbers stand
    "groups",
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, B_ a word of a
# block (behind the header the greatest start per waiting state, then the directory: D_ one of a ring's line; the lines of the rings: rows, nodes,
# the words of the groups, from its first place on); and what S[S_ENUMERATING] says is to be done next.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_ORDER, EXIT_ORDER_EXPIRY, EXIT_PROGRAM, EXIT_EXPIRY, EXIT_NODES, EXIT_SCRATCH, EXIT_OUTPUT = range(9)
    EXIT_STACK, EXIT_DAMAGED, EXIT_ROWS, EXIT_GROUPS, EXIT_PAUSE = range(9, 14)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_WINDOW, S_TIMED, S_COUNT_WINDOW, S_LIMIT, S_CONSUME, S_EPOCH, S_LETTER_MASK = range(10)
    S_CONTINUED, S_CODES, S_STATES, S_HALF, S_ENUMERATING, S_OLDEST, S_ENDS, S_END, S_STARTS, S_LABEL = range(10, 20)
    S_CELL, S_START, S_NODE, S_DEPTH, S_STACK, S_GIVEN, S_BUFFERED_MATCHES, S_BUFFERED_POSITIONS, S_ARGUMENT, S_DETAIL = range(20, 30)
    S_TRIGGERS, S_SUPPORTS, S_SKIPPED, S_MOST_GROUPS, S_BUDGET = range(30, 35)
    B_ORDER, B_GROUPS = 6, 7
    B_NUMBERS = 8
    ROWS, NODES, GROUPS = range(0, 12, 4)
    NEXT_END, NEXT_START, VISIT, WRITE = range(1, 5)


@cython.cfunc
@cython.nogil
def merge(
    words: cython.longlong[::1],
    work: cython.longlong[::1],
    nodes: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    room: cython.longlong,
    oldest: cython.longlong,
    a: cython.longlong,
    b: cython.longlong,
    ra: cython.longlong,
    rb: cython.longlong,
) -> cython.longlong:
    """The union of two disjoint sets of starts a, b (ra = 0), or the runs ra of a and rb of b as one; -1 without room, -2 if they are no such sets.

    work[0] is the next node's id, room the first that does not fit; then 64 frames of 8: bit, newest, high sides of a, b, ra, rb, low result, state.
    Dead parts that are met are left out. What is dead and ought to be alive is not followed: in a damaged state it could lead round. Visits what
    both sets have in common and one way down.
    """
    nx: cython.longlong = work[0]
    runs: cython.int = ra != 0
    calling: cython.int = 1
    f: cython.Py_ssize_t = 1  # next frame
    value: cython.longlong = 0
    x: cython.longlong = 0
    y: cython.longlong = 0
    e: cython.longlong = 0
    bit: cython.longlong = 0
    la: cython.longlong = 0
    lb: cython.longlong = 0
    ha: cython.longlong = 0
    hb: cython.longlong = 0
    rah: cython.longlong = 0
    rbh: cython.longlong = 0
    na: cython.longlong = 0
    nb: cython.longlong = 0
    s: cython.Py_ssize_t = 0
    s2: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0

    while True:
        if calling != 0:
            if f > 505:
                return -2
            while True:  # cut dead low sides
                if a < head:
                    return -2
                s = nodes + ((a & mask) << 2)
                x = words[s + 1]
                if x < 0:
                    break
                e = words[s + 2]
                if e >= head and words[nodes + ((e & mask) << 2)] >= oldest:
                    break
                a = words[s + 3]
            while True:
                if b < head:
                    return -2
                s2 = nodes + ((b & mask) << 2)
                y = words[s2 + 1]
                if y < 0:
                    break
                e = words[s2 + 2]
                if e >= head and words[nodes + ((e & mask) << 2)] >= oldest:
                    break
                b = words[s2 + 3]
            na = words[s]
            nb = words[s2]
            bit = x if x > y else y
            e = (na ^ nb) >> (bit + 1)
            while e > 0:
                bit += 1
                e >>= 1
            if bit < 0:
                return -2
            la = lb = ha = hb = 0
            if x == bit:
                la = words[s + 2]
                ha = words[s + 3]
            elif (na >> bit) & 1:
                ha = a
            else:
                la = a
            if y == bit:
                lb = words[s2 + 2]
                hb = words[s2 + 3]
            elif (nb >> bit) & 1:
                hb = b
            else:
                lb = b
            if runs != 0:
                # Forks above the sets: their other sides are not in them.
                w = nodes + ((ra & mask) << 2)
                while words[w + 1] > x:
                    ra = words[w + 3] if (na >> words[w + 1]) & 1 else words[w + 2]
                    if ra < head:
                        return -2
                    w = nodes + ((ra & mask) << 2)
                rah = ra
                if words[w + 1] == bit:
                    ra = words[w + 2]
                    rah = words[w + 3]
                w = nodes + ((rb & mask) << 2)
                while words[w + 1] > y:
                    rb = words[w + 3] if (nb >> words[w + 1]) & 1 else words[w + 2]
                    if rb < head:
                        return -2
                    w = nodes + ((rb & mask) << 2)
                rbh = rb
                if words[w + 1] == bit:
                    rb = words[w + 2]
                    rbh = words[w + 3]
            work[f] = bit
            work[f + 1] = na if na > nb else nb
            work[f + 2] = ha
            work[f + 3] = hb
            work[f + 4] = rah
            work[f + 5] = rbh
            work[f + 7] = 0
            f += 8
            if la != 0 and lb != 0:
                a = la
                b = lb
                continue
            # One side only: it stays as it is.
            value = la + lb
            if runs != 0:
                w = nodes + ((value & mask) << 2)
                x = words[w + 1]
                y = words[w]
                value = ra if la != 0 else rb
                w = nodes + ((value & mask) << 2)
                while words[w + 1] > x:
                    value = words[w + 3] if (y >> words[w + 1]) & 1 else words[w + 2]
                    if value < head:
                        return -2
                    w = nodes + ((value & mask) << 2)
            calling = 0
        # A side is done: take the next one, or put both together.
        if f == 1:
            work[0] = nx
            return value
        f -= 8
        if work[f + 7] == 0:
            work[f + 6] = value
            work[f + 7] = 1
            ha = work[f + 2]
            hb = work[f + 3]
            if ha != 0 and hb != 0:
                a = ha
                b = hb
                ra = work[f + 4]
                rb = work[f + 5]
                f += 8
                calling = 1
                continue
            value = ha + hb
            if runs != 0:
                w = nodes + ((value & mask) << 2)
                x = words[w + 1]
                y = words[w]
                value = work[f + 4] if ha != 0 else work[f + 5]
                w = nodes + ((value & mask) << 2)
                while words[w + 1] > x:
                    value = words[w + 3] if (y >> words[w + 1]) & 1 else words[w + 2]
                    if value < head:
                        return -2
                    w = nodes + ((value & mask) << 2)
        if nx == room:
            return -1
        w = nodes + ((nx & mask) << 2)
        words[w] = work[f + 1]
        words[w + 1] = work[f]
        words[w + 2] = work[f + 6]
        words[w + 3] = value
        value = nx
        nx += 1


@cython.cfunc
@cython.nogil
def gather(
    words: cython.longlong[::1],
    programs: cython.int[::1],
    values: cython.longlong[::1],
    half: cython.Py_ssize_t,
    program: cython.Py_ssize_t,
    nodes: cython.Py_ssize_t,
    mask: cython.longlong,
    nx: cython.longlong,
    room: cython.longlong,
    position: cython.longlong,
) -> cython.longlong:
    """values[half..] = the runs of each macro state after a program, from values[..half]; returns the next node's id, -1 without room."""
    at: cython.Py_ssize_t = program + 5 + programs[program + 2] + 2 * programs[program + 3]
    targets: cython.int = programs[program + 4]
    k: cython.int = 0
    j: cython.int = 0
    n: cython.int = 0
    whole: cython.longlong = 0
    part: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    for k in range(targets):
        n = programs[at]
        whole = values[programs[at + 1]]
        for j in range(1, n):
            part = values[programs[at + 1 + j]]
            if nx == room:
                return -1
            # What begins with a cell comes first: then an output is near.
            w = nodes + ((nx & mask) << 2)
            words[w] = position
            words[w + 1] = -1
            if words[nodes + ((part & mask) << 2) + 1] != -2 and words[nodes + ((whole & mask) << 2) + 1] == -2:
                words[w + 2] = whole
                words[w + 3] = part
            else:
                words[w + 2] = part
                words[w + 3] = whole
            whole = nx
            nx += 1
        values[half + k] = whole
        at += n + 1
    return nx


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def enumerate_supports(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    ends: cython.longlong[::1],
    starts_stack: cython.longlong[::1],
    stack: cython.longlong[::1],
    path: cython.longlong[::1],
    path_letters: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_letters: cython.longlong[::1],
    out_segments: cython.int[::1],
    block: cython.Py_ssize_t,
    segment: cython.Py_ssize_t,
    oldest: cython.longlong,
    nends: cython.Py_ssize_t,
) -> cython.int:
    """Give the supports that end at the event, from where S says; an exit, or 0 when all are given."""
    states: cython.Py_ssize_t = S[S_STATES]
    directory: cython.Py_ssize_t = B_NUMBERS + states
    stride: cython.Py_ssize_t = 3 + states
    limit: cython.longlong = S[S_LIMIT]
    enumerating: cython.int = S[S_ENUMERATING]
    ec: cython.Py_ssize_t = S[S_END]
    tp: cython.Py_ssize_t = S[S_STARTS]
    label: cython.longlong = S[S_LABEL]
    cell: cython.longlong = S[S_CELL]
    start: cython.longlong = S[S_START]
    node: cython.longlong = S[S_NODE]
    d: cython.Py_ssize_t = S[S_DEPTH]
    sp: cython.Py_ssize_t = S[S_STACK]
    given: cython.longlong = S[S_GIVEN]
    ns: cython.longlong = S[S_BUFFERED_MATCHES]
    npos: cython.longlong = S[S_BUFFERED_POSITIONS]
    support_room: cython.longlong = out_segments.shape[0]
    position_room: cython.longlong = out_positions.shape[0]
    stack_room: cython.Py_ssize_t = stack.shape[0] - 2
    path_room: cython.Py_ssize_t = path.shape[0]
    rc: cython.int = 0
    x: cython.longlong = 0
    e: cython.longlong = 0
    w: cython.Py_ssize_t = block + directory + NODES
    s: cython.Py_ssize_t = 0
    head: cython.longlong = words[w + D_HEAD]
    nodes: cython.Py_ssize_t = block + words[w + D_DATA]
    mask: cython.longlong = words[w + D_MASK]
    while True:
        if enumerating == VISIT:
            if sp >= stack_room or d >= path_room:
                rc = EXIT_STACK
                break
            if node < head:  # a run of a live start is alive, each link leads to an earlier node: so every walk ends
                rc = EXIT_DAMAGED
                break
            w = nodes + ((node & mask) << 2)
            x = words[w + 1]
            if x == -2:
                path[d] = words[w]
                path_letters[d] = words[w + 3]
                d += 1
                node = words[w + 2]
                if node != 0:
                    continue
                enumerating = WRITE
            elif x == -1:
                stack[sp] = words[w + 3]
                stack[sp + 1] = d
                sp += 2
                node = words[w + 2]
                continue
            else:
                node = words[w + 3] if (start >> x) & 1 else words[w + 2]
                continue
        if enumerating == WRITE:
            if ns >= support_room or npos + d > position_room:
                rc = EXIT_OUTPUT
                break
            w = npos
            s = d - 1
            while s >= 0:
                out_positions[w] = path[s]
                out_letters[w] = path_letters[s]
                w += 1
                s -= 1
            npos = w
            out_segments[ns] = segment
            ns += 1
            out_offsets[ns] = w
            given += 1
            if given == limit:
                enumerating = 0
                break
            if sp > 0:
                sp -= 2
                node = stack[sp]
                d = stack[sp + 1]
                enumerating = VISIT
                continue
            enumerating = NEXT_START
        if enumerating == NEXT_START:
            # The next live start of the set, oldest first, up to the first one that is still beaten.
            enumerating = NEXT_END
            while tp > 0:
                tp -= 1
                e = starts_stack[tp]
                w = nodes + ((e & mask) << 2)
                if e < head or words[w] < oldest:
                    continue
                x = words[w + 1]
                if x >= 0:
                    if tp > 126:
                        rc = EXIT_DAMAGED
                        break
                    starts_stack[tp] = words[w + 3]
                    starts_stack[tp + 1] = words[w + 2]
                    tp += 2
                    continue
                if label >= 0:
                    x = words[w + 2] & words[block + directory + ROWS + D_MASK]
                    if words[block + words[block + directory + ROWS + D_DATA] + x * stride + 3 + label] >= oldest:
                        tp = 0
                        break
                start = words[w]
                node = cell
                d = 0
                enumerating = VISIT
                break
            if rc != 0:
                break
            if enumerating == VISIT:
                continue
        if ec == nends:
            enumerating = 0
            break
        starts_stack[0] = ends[ec]
        label = ends[ec + 1]
        cell = ends[ec + 2]
        tp = 1
        ec += 3
        enumerating = NEXT_START
    if rc == 0:
        S[S_SUPPORTS] += given
        sp = 0
        tp = 0
    S[S_ENUMERATING] = enumerating
    S[S_END] = ec
    S[S_STARTS] = tp
    S[S_LABEL] = label
    S[S_CELL] = cell
    S[S_START] = start
    S[S_NODE] = node
    S[S_DEPTH] = d
    S[S_STACK] = sp
    S[S_GIVEN] = given
    S[S_BUFFERED_MATCHES] = ns
    S[S_BUFFERED_POSITIONS] = npos
    return rc


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def put_group(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    group_of: cython.int[::1],
    scratch: cython.longlong[::1],
    values: cython.longlong[::1],
    work: cython.longlong[::1],
    nodes: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    room: cython.longlong,
    oldest: cython.longlong,
    configuration: cython.Py_ssize_t,
    starts: cython.longlong,
    newest: cython.longlong,
    runs: cython.int,
    used: cython.longlong,
    spare: cython.int,
) -> cython.longlong:
    """Put the runs in the upper half of `values` under their configuration: a new group behind the `used` words of `scratch`, or merged into one.

    Returns the words used after it, or -exit. work[0] is the next node's id; a new group leaves room for `spare` words.
    """
    half: cython.Py_ssize_t = S[S_HALF]
    w: cython.Py_ssize_t = group_of[configuration]
    k: cython.int = 0
    y: cython.longlong = 0
    e: cython.longlong = 0
    if w < 0:
        if used + 3 + runs + spare > scratch.shape[0]:
            S[S_ARGUMENT] = used + 3 + runs + spare
            return -EXIT_SCRATCH
        group_of[configuration] = used
        scratch[used] = configuration
        scratch[used + 1] = starts
        scratch[used + 2] = newest
        for k in range(runs):
            scratch[used + 3 + k] = values[half + k]
        return used + 3 + runs
    y = scratch[w + 1]
    for k in range(runs):
        e = merge(words, work, nodes, mask, head, room, oldest, y, starts, scratch[w + 3 + k], values[half + k])
        if e < 0:
            break
        scratch[w + 3 + k] = e
    if e >= 0:
        e = merge(words, work, nodes, mask, head, room, oldest, y, starts, 0, 0)
    if e < 0:
        return -EXIT_NODES if e == -1 else -EXIT_DAMAGED
    scratch[w + 1] = e
    if newest > scratch[w + 2]:
        scratch[w + 2] = newest
    return used


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    numbers: cython.const[cython.int][::1],
    vetoed: cython.const[cython.uchar][::1],
    lut: cython.int[::1],
    letter_of: cython.longlong[::1],
    words: cython.longlong[::1],
    offsets: cython.longlong[::1],
    template: cython.const[cython.longlong][::1],
    stirs: cython.uchar[::1],
    moves_of: cython.int[::1],
    moves: cython.int[::1],
    shapes: cython.int[::1],
    program_of: cython.int[::1],
    programs: cython.int[::1],
    expiries: cython.int[::1],
    start_of: cython.int[::1],
    next_of: cython.int[::1],
    order_after: cython.int[::1],
    order_lowest: cython.int[::1],
    group_of: cython.int[::1],
    scratch: cython.longlong[::1],
    values: cython.longlong[::1],
    work: cython.longlong[::1],
    ends: cython.longlong[::1],
    starts_stack: cython.longlong[::1],
    stack: cython.longlong[::1],
    path: cython.longlong[::1],
    path_letters: cython.longlong[::1],
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
    TABLES: lut (letter -> code, -1 unknown), letter_of[code], template (a new block), and those of
    `evaluations.choosing.domination.DominationTable`.
    STATE: words, offsets (where each block starts).
    SCRATCH: group_of (configuration -> place of its new group in `scratch`, -1), scratch (new groups), values (runs of one group, two
    halves), work (of `merge`), ends (stride 3: starts, label, cell), starts_stack, stack (stride 2: node, depth), path, path_letters.
    OUT: out_offsets[0..supports], out_positions, out_letters, out_segments; marked[row] = 1 where a cell was made.
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
    codes: cython.Py_ssize_t = S[S_CODES]
    states: cython.Py_ssize_t = S[S_STATES]
    half: cython.Py_ssize_t = S[S_HALF]
    enumerating: cython.int = S[S_ENUMERATING]
    oldest: cython.longlong = S[S_OLDEST]
    nends: cython.Py_ssize_t = S[S_ENDS]
    cell: cython.longlong = 0
    triggers: cython.longlong = S[S_TRIGGERS]
    skipped: cython.longlong = S[S_SKIPPED]
    most_groups: cython.longlong = S[S_MOST_GROUPS]
    block: cython.Py_ssize_t = 0
    shift: cython.longlong = 0
    directory: cython.Py_ssize_t = B_NUMBERS + states
    ends_room: cython.Py_ssize_t = ends.shape[0]
    stride: cython.Py_ssize_t = 3 + states
    rc: cython.int = 0
    budget: cython.longlong = S[S_BUDGET]
    c: cython.int = 0
    k: cython.int = 0
    n: cython.int = 0
    nn: cython.int = 0
    started: cython.int = 0
    touched: cython.int = 0
    y: cython.longlong = 0
    e: cython.longlong = 0
    p: cython.longlong = 0
    letter: cython.longlong = 0
    order: cython.Py_ssize_t = 0
    configuration: cython.Py_ssize_t = 0
    following: cython.Py_ssize_t = 0
    program: cython.Py_ssize_t = 0
    starts: cython.longlong = 0
    newest: cython.longlong = 0
    head: cython.longlong = 0
    nx: cython.longlong = 0
    first: cython.longlong = 0
    room: cython.longlong = 0
    mask: cython.longlong = 0
    rh: cython.longlong = 0
    rt: cython.longlong = 0
    rm: cython.longlong = 0
    runs: cython.int = 0
    gone: cython.int = 0
    used: cython.longlong = 0
    groups: cython.longlong = 0
    nodes: cython.Py_ssize_t = 0
    ro: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    gp: cython.Py_ssize_t = 0
    now: cython.ulonglong = 0
    then: cython.ulonglong = 0

    with cython.nogil:
        if segment >= 0:
            block = offsets[numbers[segment]]
            shift = words[block + B_POSITION] - i
        while True:
            # ------------------------------------------------------------------------------------------------ enumeration
            if enumerating != 0:
                rc = enumerate_supports(
                    S,
                    words,
                    ends,
                    starts_stack,
                    stack,
                    path,
                    path_letters,
                    out_offsets,
                    out_positions,
                    out_letters,
                    out_segments,
                    block,
                    segment,
                    oldest,
                    nends,
                )
                if rc != 0:
                    break
                enumerating = 0
                triggers += 1
                if consume != 0:
                    words[block + B_LOW] = shift + i + 1
                    if consume == 2:
                        epoch += 1
                        words[block + B_EPOCH] = epoch
                i += 1
            # ------------------------------------------------------------------------------------------------ skip
            c = 0
            while i < end:
                c = lut[letters[i] & letter_mask]
                if c < 0:
                    break
                if stirs[c] != 0:
                    break
                i += 1
                skipped += 1
            # ------------------------------------------------------------------------------------------------ segments
            if i >= end:
                if segment >= 0:
                    words[block + B_POSITION] = shift + i
                    if i > cuts[segment]:
                        words[block + B_LAST_TIME] = times[i - 1]
                segment += 1
                if segment == segments:
                    break
                end = rows
                if segment + 1 < segments:
                    end = cuts[segment + 1]
                block = offsets[numbers[segment]]
                # Not continued: forget what the workplace holds.
                begin_block(words, template, block, directory, 3, epoch, numbers[segment] == 0 and (segment != 0 or S[S_CONTINUED] == 0))
                shift = words[block + B_POSITION] - i
                continue
            if c < 0:
                rc = EXIT_LETTER
                break
            if budget < 0:
                rc = EXIT_PAUSE
                break
            budget -= 1 + words[block + directory + GROUPS + D_TAIL]  # the words of the groups
            # ------------------------------------------------------------------------------------------------ window
            p = shift + i
            letter = letter_of[c]
            w = block + directory + ROWS
            rh = words[w + D_HEAD]
            rt = words[w + D_TAIL]
            ro = block + words[w + D_DATA]
            rm = words[w + D_MASK]
            oldest = words[block + B_LOW]
            if count_window != 0 and p - count_window + 1 > oldest:
                oldest = p - count_window + 1
            now = times[i]
            while rh != rt:
                w = ro + (rh & rm) * stride
                if words[w] >= oldest:
                    if timed == 0:
                        break
                    then = words[w + 1]  # unsigned: the difference of two int64 times cannot overflow
                    if now - then <= window:
                        break
                rh += 1
            oldest = p
            if rh != rt:
                oldest = words[w]
            words[block + directory + ROWS + D_HEAD] = rh
            order = words[block + B_ORDER]
            while order_lowest[order] >= 0 and words[block + B_NUMBERS + order_lowest[order]] < oldest:
                if order_after[order] < 0:
                    S[S_ARGUMENT] = order
                    rc = EXIT_ORDER_EXPIRY
                    break
                order = order_after[order]
            if rc != 0:
                break
            started = start_of[order * codes + c]
            if started < 0:
                S[S_ARGUMENT] = order
                S[S_DETAIL] = c
                rc = EXIT_ORDER
                break
            # ------------------------------------------------------------------------------------------------ room
            w = block + directory + NODES
            head = words[w + D_HEAD]
            nx = words[w + D_TAIL]
            nodes = block + words[w + D_DATA]
            mask = words[w + D_MASK]
            if nx == 0:  # no node has the number 0
                head = nx = 1
                words[w + D_HEAD] = words[w + D_TAIL] = 1
            first = nx
            # PERF: one load, of a row that has just been read; where the ring is too small for an event, the dead are gone already.
            head = nx
            if rh != rt:
                head = words[ro + (rh & rm) * stride + 2]
            words[w + D_HEAD] = head
            room = head + mask + 1
            # ------------------------------------------------------------------------------------------------ groups
            nn = 0
            used = 0
            nends = 0
            touched = 0
            gp = block + words[block + directory + GROUPS + D_DATA]
            groups = words[block + B_GROUPS]
            while groups > 0:
                groups -= 1
                configuration = words[gp]
                starts = words[gp + 1]
                newest = words[gp + 2]
                runs = shapes[4 * configuration]
                s = gp + 3
                gp = s + runs
                if newest < rh:
                    continue
                for k in range(runs):
                    values[k] = words[s + k]
                n = shapes[4 * configuration + 1]
                if n != 0:
                    # Labels that have expired for the newest start have expired for all.
                    w = ro + (newest & rm) * stride + 3
                    s = shapes[4 * configuration + 2]
                    gone = 0
                    while gone < n and words[w + programs[s + gone]] < oldest:
                        gone += 1
                    if gone != 0:
                        program = expiries[shapes[4 * configuration + 3] + gone]
                        if program < 0:
                            S[S_ARGUMENT] = configuration
                            S[S_DETAIL] = gone
                            rc = EXIT_EXPIRY
                            break
                        e = gather(words, programs, values, half, program, nodes, mask, nx, room, p)
                        if e < 0:
                            rc = EXIT_NODES
                            break
                        nx = e
                        configuration = programs[program]
                        runs = programs[program + 4]
                        for k in range(runs):
                            values[k] = values[half + k]
                program = program_of[configuration * codes + c]
                if program < 0:
                    S[S_ARGUMENT] = configuration
                    S[S_DETAIL] = c
                    rc = EXIT_PROGRAM
                    break
                following = configuration
                if programs[program + 1] != 0:
                    for k in range(runs):
                        values[half + k] = values[k]
                else:
                    n = programs[program + 2]
                    if nx + n > room:
                        rc = EXIT_NODES
                        break
                    s = program + 5
                    for k in range(n):
                        w = nodes + ((nx & mask) << 2)
                        words[w] = p
                        words[w + 1] = -2
                        words[w + 2] = values[programs[s + k]]
                        words[w + 3] = letter
                        values[runs + k] = nx
                        nx += 1
                        touched = 1
                    s += n
                    n = programs[program + 3]
                    if nends + 3 * n + 3 > ends_room:
                        S[S_ARGUMENT] = nends + 3 * n + 3
                        rc = EXIT_SCRATCH
                        break
                    for k in range(n):
                        ends[nends] = starts
                        ends[nends + 1] = programs[s + 2 * k + 1]
                        ends[nends + 2] = values[runs + programs[s + 2 * k]]
                        nends += 3
                    following = programs[program]
                    if following < 0:
                        continue
                    runs = programs[program + 4]
                    e = gather(words, programs, values, half, program, nodes, mask, nx, room, p)
                    if e < 0:
                        rc = EXIT_NODES
                        break
                    nx = e
                work[0] = nx
                y = put_group(
                    S, words, group_of, scratch, values, work, nodes, mask, head, room, oldest, following, starts, newest, runs, used, 4
                )
                if y < 0:
                    rc = -y
                    break
                nn += y > used
                used = y
                nx = work[0]
            # ------------------------------------------------------------------------------------------------ start
            while rc == 0 and moves_of[3 * c] != 0:
                if nx + 2 > room:
                    rc = EXIT_NODES
                    break
                following = (started >> 1) - 1
                if following >= 0 and rt - rh > rm:
                    rc = EXIT_ROWS
                    break
                w = nodes + ((nx & mask) << 2)
                words[w] = p
                words[w + 1] = -2
                words[w + 2] = 0
                words[w + 3] = letter
                w = nodes + (((nx + 1) & mask) << 2)
                words[w] = p
                words[w + 1] = -1
                words[w + 2] = rt
                words[w + 3] = 0
                cell = nx
                starts = nx + 1
                nx += 2
                if (started & 1) != 0:  # there is room for one end more
                    touched = 1
                    ends[nends] = starts
                    ends[nends + 1] = -1
                    ends[nends + 2] = cell
                    nends += 3
                if following < 0:
                    break
                touched = 1
                w = ro + (rt & rm) * stride
                words[w] = p
                words[w + 1] = times[i]
                words[w + 2] = first
                for s in range(states):
                    words[w + 3 + s] = words[block + B_NUMBERS + s]
                values[half] = cell
                work[0] = nx
                y = put_group(S, words, group_of, scratch, values, work, nodes, mask, head, room, oldest, following, starts, rt, 1, used, 0)
                if y < 0:
                    rc = -y
                    break
                nn += y > used
                used = y
                nx = work[0]
                rt += 1
                break
            if rc == 0 and used > words[block + directory + GROUPS + D_MASK] + 1:
                S[S_ARGUMENT] = used
                rc = EXIT_GROUPS
            # ------------------------------------------------------------------------------------------------ commit, or nothing
            w = 0
            while w < used:
                group_of[scratch[w]] = -1
                w += 3 + shapes[4 * scratch[w]]
            if rc != 0:
                nends = 0
                break
            s = block + words[block + directory + GROUPS + D_DATA]
            for w in range(used):
                words[s + w] = scratch[w]
            words[block + B_ORDER] = next_of[order * codes + c]
            words[block + B_GROUPS] = nn
            w = block + directory + ROWS
            if rt != words[w + D_TAIL]:
                words[block + B_NEWEST_START] = p
                words[block + B_NEWEST_TIME] = times[i]
            words[w + D_TAIL] = rt
            words[w + NODES + D_TAIL] = nx
            words[w + GROUPS + D_TAIL] = used
            if nn > most_groups:
                most_groups = nn
            s = moves_of[3 * c + 1]
            n = moves_of[3 * c + 2]
            for k in range(n):
                values[k] = p
                if moves[s + 2 * k] >= 0:
                    values[k] = words[block + B_NUMBERS + moves[s + 2 * k]]
            for k in range(n):
                w = block + B_NUMBERS + moves[s + 2 * k + 1]
                if values[k] > words[w]:
                    words[w] = values[k]
            if touched != 0:
                marked[i] = 1
            if nends == 0:
                i += 1
                continue
            S[S_GIVEN] = 0
            S[S_END] = 0
            S[S_STARTS] = 0
            S[S_STACK] = 0
            if limit != 0 and (vetoed.shape[0] == 0 or vetoed[i] == 0):
                enumerating = NEXT_END
                S[S_ENUMERATING] = NEXT_END
            else:
                triggers += 1
                if consume != 0:
                    words[block + B_LOW] = p + 1
                    if consume == 2:
                        epoch += 1
                        words[block + B_EPOCH] = epoch
                i += 1

    if segment >= 0 and segment < segments:
        words[block + B_POSITION] = shift + i
    S[S_ROW] = i
    S[S_SEGMENT] = segment
    S[S_SEGMENT_END] = end
    S[S_EPOCH] = epoch
    S[S_OLDEST] = oldest
    S[S_ENDS] = nends
    S[S_TRIGGERS] = triggers
    S[S_SKIPPED] = skipped
    S[S_MOST_GROUPS] = most_groups
    return rc
