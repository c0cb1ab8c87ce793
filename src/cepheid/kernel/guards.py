# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of automata with guards: letters and values of events in, matches out, over groups of partial matches that nobody visits one by one.

One source that Cython compiles and CPython also runs as it is; `cepheid.engine.evaluations.guarded_run` drives it (exit codes as in
`cepheid.kernel.match`). docs/decisions/0004-guards.md, "The kernel", has the design.

A CELL is a marked event at the end of some partial matches: `width` words in ring 1 of its partition's block, with a number that grows for ever.
A link is the number of a cell; one before the ring's head is freed, which means that all below it has expired. [C_POSITION, C_START] position of the
event, and the greatest start of a match below. [C_CHILD] what it goes on from: the entries of a list from the child on that pass some tests (-1: the
match starts here). [C_REST] the next cell of the same entry. [C_KIND] its label, the macro state that it enters (+ 1; 0: none), and the number of its
FORM, which says what list and what tests. [C_BOUNDS ..] two bounds per test of its form. Then the values of the slots of its macro state; [C_NULLS]
says which of them are NULL. A key is (start, number); keys of cells are all different.

An ENTRY is what one event puts into one group: a cell, and by falling keys those behind its C_REST. It stands in one LIST for each index of its
macro state: all entries, or those with equal values in some slots. A list goes from its newest entry backwards, and is never changed. So a child is
one number, whatever comes later. A NODE, `node_width` words of the cell per index, links it: to the entry before, and over a whole TREE of 2^k - 1
entries that begins with the node itself (skew-binary jumps, E. W. Myers 1983: the trees of a list are perfect, in preorder). Of its tree a node knows
which entry has the greatest key, and per tested slot the least and the greatest value. So the newest entry that passes a test is found in O(log n);
of several tests each leaves out trees, which is O(n) at worst. Where keys do not rise along the list (its node says so), entries come by falling keys
out of a queue of trees.

HASH: beside a ring of c cells stands a table of c lists: the newest entry (number and index) of a list whose key has this hash; the last word
of its node leads to the entry of the next list, and says of an entry that is not the newest that it is none (SUPERSEDED). Chains go from newer to
older numbers: they end where cells are freed. The table is made anew when the ring has grown.
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
EXITS = ("done", "letter", "pool", "limit", "output", "stack", "pause")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "window",  # ! time window
    "timed",  # ! 1 with a time window
    "count_window",  # ! position window, 0 none
    "consume",  # ! 0 no, 1 in the partition, 2 in all
    "limit",  # ! matches per trigger, 0 = count the triggers only
    "continued",  # ! 1: the first segment goes on with row 0
    "letter_mask",  # !
    "epoch",  # triggers that consumed all partitions
    "argument",  # of the exit code
    "buffered_matches",
    "buffered_positions",
    "triggers",  # events that ended a match
    "matches",  # matches given
    "skipped",  # events passed by the skip loop
    "shift",  # position of an event = shift + row
    "plain",  # ! plain words of a block: where its directory starts
    "block_limit",  # ! words that a block may have
    "budget",  # ! what may be done before the kernel returns, so that whoever waits can break in
    "codes",  # ! letter codes per row of the table
    "macros",  # ! macro states
    "shapes",  # ! indexes that a macro state has at most
    "shape_width",  # ! numbers of an index in `shapes`
    "form_width",  # ! numbers of a form in `forms`
    "tests",  # ! tests that a cell has room for
    "slots",  # ! values that a cell has room for
    "node_width",  # ! words of a node
    "width",  # ! words of a cell
    "hashed",  # ! 1: some index asks for equal values
    "event_words",  # ! words of an event's values
    "enumerating",  # 1: the matches of the event at `row` are being given
    "low",  # least start of these
    "depth",  # level that is looked at next
    "given",  # matches given at this trigger
    "walked",  # entries that were looked at, and are to be taken from the budget
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, B_ a word of a block, C_ of a cell, N_ of
# a node, R_ a column of `regions`, F_ of `forms`, L_ of `levels`; what bits of a cell's kind, a test and N_FORM say; what stands in a queue in the
# place of a tree; entries of a queue that an event may need beside those of its matches.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_POOL, EXIT_LIMIT, EXIT_OUTPUT, EXIT_STACK, EXIT_PAUSE = range(7)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_WINDOW, S_TIMED, S_COUNT_WINDOW, S_CONSUME, S_LIMIT, S_CONTINUED, S_LETTER_MASK = range(10)
    S_EPOCH, S_ARGUMENT, S_BUFFERED_MATCHES, S_BUFFERED_POSITIONS, S_TRIGGERS, S_MATCHES, S_SKIPPED, S_SHIFT, S_PLAIN = range(10, 19)
    S_BLOCK_LIMIT, S_BUDGET, S_CODES, S_MACROS, S_SHAPES, S_SHAPE_WIDTH, S_FORM_WIDTH, S_TESTS, S_SLOTS, S_NODE_WIDTH, S_WIDTH = range(
        19, 30
    )
    S_HASHED, S_EVENT_WORDS, S_ENUMERATING, S_LOW, S_DEPTH, S_GIVEN, S_WALKED = range(30, 37)
    B_LIVE, B_TABLED, B_GREATEST = range(6, 9)
    C_POSITION, C_START, C_CHILD, C_REST, C_KIND, C_NULLS, C_BOUNDS = range(7)
    N_PREVIOUS, N_JUMP, N_BEST, N_FORM, N_ENDS = range(5)
    R_NEXT, R_KIND, R_TARGET, R_FINAL, R_FORM, R_EQUALS, R_MADE, R_TESTS = range(8)
    F_SHAPE, F_COUNT, F_TESTS = range(3)
    L_BASE, L_SIZE, L_CURSOR, L_FRESH, L_CELL = range(5)
    LEVEL_WIDTH = 5
    LABELS, MACRO_BITS, MACROS_MASK, FORM_BITS = 0xFFFF, 16, 0xFF, 24
    OUTSIDE, NULLS, SLOT_BITS, PLACE_BITS = 1, 2, 8, 16
    RISING, HEIGHT_BITS, HEIGHT_MASK, NULL_BITS = 1, 1, 63, 8
    SHAPE_BITS, SHAPES_MASK, SUPERSEDED = 16, 0xFFFF, -2
    ENTRY, CELL = -1, -2
    PUSHED = 80


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def passes_one(
    words: cython.longlong[::1],
    w: cython.Py_ssize_t,
    values: cython.Py_ssize_t,
    test: cython.longlong,
    lower: cython.longlong,
    upper: cython.longlong,
) -> cython.int:
    """Whether the entry at w passes a test. values: where a cell has its values."""
    slot: cython.longlong = (test >> SLOT_BITS) & 255
    value: cython.longlong = 0
    inside: cython.int = 0
    if ((words[w + C_NULLS] >> slot) & 1) != 0:
        return (test & NULLS) != 0
    value = words[w + values + slot]
    inside = value >= lower and value <= upper
    return inside == ((test & OUTSIDE) == 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def may_pass_one(
    words: cython.longlong[::1], x: cython.Py_ssize_t, test: cython.longlong, lower: cython.longlong, upper: cython.longlong
) -> cython.int:
    """Whether some entry of the tree of the node at x may pass a test: exactly, where one of the bounds excludes nothing."""
    y: cython.Py_ssize_t = x + N_ENDS + 2 * (test >> PLACE_BITS)
    if (test & NULLS) != 0 and ((words[x + N_FORM] >> (NULL_BITS + (test >> PLACE_BITS))) & 1) != 0:
        return 1
    if (test & OUTSIDE) != 0:
        return words[y] < lower or words[y + 1] > upper
    return words[y] <= upper and words[y + 1] >= lower


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def passes(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    values: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.int:
    """Whether the entry at w passes the tests of the form at f, whose bounds are at `at`."""
    k: cython.Py_ssize_t = 0
    for k in range(forms[f + F_COUNT]):
        if passes_one(words, w, values, forms[f + F_TESTS + k], words[at + 2 * k], words[at + 2 * k + 1]) == 0:
            return 0
    return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def may_pass(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    x: cython.Py_ssize_t,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.int:
    """Whether some entry of the tree of the node at x may pass each of these tests."""
    k: cython.Py_ssize_t = 0
    for k in range(forms[f + F_COUNT]):
        if may_pass_one(words, x, forms[f + F_TESTS + k], words[at + 2 * k], words[at + 2 * k + 1]) == 0:
            return 0
    return 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def newest_of_several(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    values: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.longlong:
    """What `newest` finds by several tests: each leaves out trees. O(n) at worst."""
    w: cython.Py_ssize_t = 0
    while n >= head:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        if words[w + C_START] < low:
            break
        if passes(words, forms, values, w, f, at) != 0:
            return n
        if may_pass(words, forms, w + node, f, at) != 0:
            n = words[w + node + N_PREVIOUS]
        else:
            n = words[w + node + N_JUMP]
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def newest(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    values: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    tested: cython.longlong,
    test: cython.longlong,
    lower: cython.longlong,
    upper: cython.longlong,
) -> cython.longlong:
    """The newest entry from n on, of a list whose keys rise, that passes a test (tested 0: any); -1 if none does. O(log n)."""
    w: cython.Py_ssize_t = 0
    while n >= head:
        w = data + (n & mask) * width
        if words[w + C_START] < low:
            break
        if tested == 0 or passes_one(words, w, values, test, lower, upper) != 0:
            return n
        if may_pass_one(words, w + node, test, lower, upper) != 0:
            n = words[w + node + N_PREVIOUS]
        else:
            n = words[w + node + N_JUMP]
    return -1


# ------------------------------------------------------------------------------------------------ queues and levels


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def push(
    queue: cython.longlong[::1],
    base: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    start: cython.longlong,
    number: cython.longlong,
    what: cython.longlong,
) -> cython.Py_ssize_t:
    """Add a key, with what has it, to a binary heap of `size` from `base` on (stride 3); its size then."""
    k: cython.Py_ssize_t = size
    above: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    while k > 0:
        above = (k - 1) >> 1
        v = 3 * (base + above)
        if queue[v] > start or (queue[v] == start and queue[v + 1] >= number):
            break
        w = 3 * (base + k)
        queue[w] = queue[v]
        queue[w + 1] = queue[v + 1]
        queue[w + 2] = queue[v + 2]
        k = above
    w = 3 * (base + k)
    queue[w] = start
    queue[w + 1] = number
    queue[w + 2] = what
    return size + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def pop(queue: cython.longlong[::1], base: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Take the greatest key away; the size then."""
    last: cython.Py_ssize_t = 3 * (base + size - 1)
    start: cython.longlong = queue[last]
    number: cython.longlong = queue[last + 1]
    what: cython.longlong = queue[last + 2]
    k: cython.Py_ssize_t = 0
    below: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    size -= 1
    while 2 * k + 1 < size:
        below = 2 * k + 1
        v = 3 * (base + below)
        if below + 1 < size and (queue[v + 3] > queue[v] or (queue[v + 3] == queue[v] and queue[v + 4] > queue[v + 1])):
            below += 1
            v += 3
        if start > queue[v] or (start == queue[v] and number >= queue[v + 1]):
            break
        w = 3 * (base + k)
        queue[w] = queue[v]
        queue[w + 1] = queue[v + 1]
        queue[w + 2] = queue[v + 2]
        k = below
    w = 3 * (base + k)
    queue[w] = start
    queue[w + 1] = number
    queue[w + 2] = what
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def push_tree(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    queue: cython.longlong[::1],
    base: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Push the tree of entry n, by its greatest key, if something in it lives and may pass the tests; the size then."""
    x: cython.Py_ssize_t = data + (n & mask) * width + node
    best: cython.longlong = words[x + N_BEST]
    most: cython.longlong = 0
    if best >= head:
        most = words[data + (best & mask) * width + C_START]
        if most >= low and may_pass(words, forms, x, f, at) != 0:
            size = push(queue, base, size, most, best, n)
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def open_level(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    v: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
) -> cython.int:
    """Make the level at v ready to give the entries from n on that pass. Where keys rise, n passes; else it has its trees in a queue."""
    size: cython.Py_ssize_t = 0
    levels[v + L_BASE] = base
    levels[v + L_CURSOR] = -1
    levels[v + L_FRESH] = 1
    if n >= head and (words[data + (n & mask) * width + node + N_FORM] & RISING) != 0:
        levels[v + L_CURSOR] = n
    else:
        while n >= head:
            size = push_tree(words, forms, data, mask, width, node, head, low, n, f, at, queue, base, size)
            n = words[data + (n & mask) * width + node + N_JUMP]
    levels[v + L_SIZE] = size
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def next_cell(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    values: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    v: cython.Py_ssize_t,
) -> cython.longlong:
    """The next cell of a level, by falling keys; -1 if there is none, -2 where the queue needs room first."""
    base: cython.Py_ssize_t = levels[v + L_BASE]
    size: cython.Py_ssize_t = levels[v + L_SIZE]
    cursor: cython.longlong = levels[v + L_CURSOR]
    room: cython.Py_ssize_t = queue.shape[0] // 3 - 4 - base
    found: cython.longlong = -1
    what: cython.longlong = 0
    n: cython.longlong = 0
    start: cython.longlong = 0
    _side: cython.int = 0
    w: cython.Py_ssize_t = 0
    if size > room:
        return -2
    if cursor >= 0 and levels[v + L_FRESH] == 0:
        w = data + (cursor & mask) * width
        cursor = words[w + node + N_PREVIOUS]
        if forms[f + F_COUNT] > 1:
            cursor = newest_of_several(S, words, forms, data, mask, width, values, node, head, low, cursor, f, at)
        else:  # without a test, its place says nothing
            n = forms[f + F_TESTS] if forms[f + F_COUNT] != 0 else 0
            cursor = newest(words, data, mask, width, values, node, head, low, cursor, forms[f + F_COUNT], n, words[at], words[at + 1])
        levels[v + L_FRESH] = 1
    while True:
        if cursor >= 0:
            start = words[data + (cursor & mask) * width + C_START]
            if size == 0 or start > queue[3 * base] or (start == queue[3 * base] and cursor > queue[3 * base + 1]):
                found = cursor
                levels[v + L_FRESH] = 0
                what = ENTRY
                break
        if size == 0:
            break
        found = queue[3 * base + 1]
        what = queue[3 * base + 2]
        size = pop(queue, base, size)
        if what < 0:
            break
        S[S_WALKED] += 1
        n = what
        found = -1
        w = data + (n & mask) * width
        if words[w + C_START] >= low and passes(words, forms, values, w, f, at) != 0:
            size = push(queue, base, size, words[w + C_START], n, ENTRY)
        if ((words[w + node + N_FORM] >> HEIGHT_BITS) & HEIGHT_MASK) > 0:
            n = words[w + node + N_PREVIOUS]
            for _side in range(2):  # the two trees below
                if n < head:
                    break
                size = push_tree(words, forms, data, mask, width, node, head, low, n, f, at, queue, base, size)
                n = words[data + (n & mask) * width + node + N_JUMP]
        if size > room:
            found = -2
            break
    if found >= 0 and what == ENTRY:
        n = words[data + (found & mask) * width + C_REST]
        if n >= head:
            start = words[data + (n & mask) * width + C_START]
            if start >= low:
                size = push(queue, base, size, start, n, ENTRY)
    levels[v + L_SIZE] = size
    levels[v + L_CURSOR] = cursor
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def enumerate_matches(
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
    rc: cython.int = 0
    while True:
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
                open_level(words, forms, data, mask, width, node, head, low, words[w + C_CHILD], f, at, levels, queue, v, base)
        moved = 0
        if levels[v + L_BASE] + levels[v + L_SIZE] > queue_room:
            rc = EXIT_STACK
            break
        n = next_cell(S, words, forms, data, mask, width, values, node, head, low, f, at, levels, queue, v)
        if n == -2:
            rc = EXIT_STACK
            break
        if n < 0:
            if d == 0:
                break
            d -= 1
            moved = 1
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
    S[S_DEPTH] = d
    S[S_GIVEN] = given
    S[S_BUFFERED_MATCHES] = nm
    S[S_BUFFERED_POSITIONS] = npos
    if rc == 0:
        S[S_MATCHES] += given
        S[S_ENUMERATING] = 0
    return rc


# ------------------------------------------------------------------------------------------------ lists


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def hash_of(key: cython.longlong[::1], count: cython.Py_ssize_t, index: cython.longlong) -> cython.longlong:
    """A hash of the values in `key`, for an index: 44 bits."""
    found: cython.ulonglong = index + 1
    k: cython.Py_ssize_t = 0
    value: cython.ulonglong = 0
    factor: cython.ulonglong = 0x9E3779B97F4A7C15
    word: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    for k in range(count):
        value = key[k] & word
        found = ((found ^ value) * factor) & word
        found ^= found >> 29
    return (found * factor & word) >> 20


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def listed(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    macro: cython.longlong,
    shape: cython.longlong,
    s: cython.Py_ssize_t,
    place: cython.longlong,
) -> cython.longlong:
    """The newest entry of a macro state whose values are those in `key`, in the slots that the index at s of `shapes` names; -1 if there is none."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    chained: cython.Py_ssize_t = values + S[S_SLOTS] + node_width - 1
    e: cython.longlong = words[data + (mask + 1) * width + (place & mask)]
    count: cython.Py_ssize_t = shapes[s + 1]
    n: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    while e >= 0:
        n = e >> SHAPE_BITS
        if n < head:
            break
        w = data + (n & mask) * width
        if (e & SHAPES_MASK) == shape and ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) == macro + 1:
            k = 0
            while k < count and words[w + values + shapes[s + 2 + k]] == key[k]:
                k += 1
            if k == count:
                return n
        e = words[w + chained + node_width * (e & SHAPES_MASK)]
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def chain(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    shape: cython.longlong,
    n: cython.longlong,
    previous: cython.longlong,
    place: cython.longlong,
) -> cython.int:
    """Put entry n first into its chain; `previous`, the entry before it in its list, leaves it (-1: there is none)."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    chained: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS] + S[S_SLOTS] + node_width - 1
    first: cython.Py_ssize_t = data + (mask + 1) * width + (place & mask)
    at: cython.Py_ssize_t = data + (n & mask) * width + chained + node_width * shape
    gone: cython.longlong = previous << SHAPE_BITS | shape
    e: cython.longlong = words[first]
    words[at] = e
    words[first] = n << SHAPE_BITS | shape
    if previous >= 0:
        while e >= 0:
            n = e >> SHAPE_BITS
            if n < head:
                words[at] = -1
                break
            first = data + (n & mask) * width + chained + node_width * (e & SHAPES_MASK)
            if e == gone:
                words[at] = words[first]
                words[first] = SUPERSEDED
                break
            at = first
            e = words[at]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def key_of(
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    values: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    s: cython.Py_ssize_t,
) -> cython.int:
    """Put into `key` the values of the cell at w that an index asks to be equal; 0 where one of them is NULL."""
    k: cython.Py_ssize_t = 0
    slot: cython.int = 0
    for k in range(shapes[s + 1]):
        slot = shapes[s + 2 + k]
        if ((words[w + C_NULLS] >> slot) & 1) != 0:
            return 0
        key[k] = words[w + values + slot]
    return 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def make_table(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
) -> cython.int:
    """Make the table anew, for a ring of this size, of the newest entry of each list. O(cells)."""
    head: cython.longlong = words[line + D_HEAD]
    tail: cython.longlong = words[line + D_TAIL]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    most_shapes: cython.longlong = S[S_SHAPES]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    first_node: cython.Py_ssize_t = values + S[S_SLOTS]
    n: cython.longlong = 0
    macro: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    for n in range(mask + 1):
        words[data + (mask + 1) * width + n] = -1
    for n in range(head, tail):
        w = data + (n & mask) * width
        macro = ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) - 1
        if macro < 0:
            continue
        for k in range(most_shapes):
            s = (macro * most_shapes + k) * S[S_SHAPE_WIDTH]
            x = w + first_node + node_width * k
            if shapes[s + 1] <= 0 or words[x + N_FORM] < 0 or words[x + node_width - 1] == SUPERSEDED:
                continue
            key_of(words, shapes, key, values, w, s)
            chain(S, words, data, mask, head, k, n, -1, hash_of(key, shapes[s + 1], macro * most_shapes + k))
    words[b + B_TABLED] = mask
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def enter(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    n: cython.longlong,
    low: cython.longlong,
) -> cython.int:
    """Put the entry n into the lists of its macro state. O(1), and the length of a chain."""
    head: cython.longlong = words[line + D_HEAD]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    macros: cython.Py_ssize_t = S[S_MACROS]
    most_shapes: cython.Py_ssize_t = S[S_SHAPES]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    first_node: cython.Py_ssize_t = values + S[S_SLOTS]
    w: cython.Py_ssize_t = data + (n & mask) * width
    macro: cython.longlong = ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) - 1
    start: cython.longlong = words[w + C_START]
    since: cython.longlong = words[b + B_GREATEST + macros + macro]
    first: cython.Py_ssize_t = b + B_GREATEST + 2 * macros + macro * most_shapes
    previous: cython.longlong = 0
    found: cython.longlong = 0
    place: cython.longlong = 0
    below: cython.longlong = 0
    form: cython.longlong = 0
    height: cython.longlong = 0
    least: cython.longlong = 0
    greatest: cython.longlong = 0
    most: cython.longlong = 0
    best: cython.longlong = 0
    slot: cython.int = 0
    count: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    y: cython.Py_ssize_t = 0
    z: cython.Py_ssize_t = 0
    over: cython.int = 0
    side: cython.int = 0
    one: cython.longlong = 1
    for k in range(most_shapes):
        s = (macro * most_shapes + k) * S[S_SHAPE_WIDTH]
        v = first_node + node_width * k
        x = w + v
        words[x + N_FORM] = -1
        words[x + N_PREVIOUS] = -1
        words[x + N_JUMP] = -1
        if shapes[s + 1] < 0:
            continue
        if shapes[s + 1] == 0:
            found = words[first + k]
            words[first + k] = n
        else:
            if key_of(words, shapes, key, values, w, s) == 0:
                continue  # NULL = anything does not hold
            place = hash_of(key, shapes[s + 1], macro * most_shapes + k)
            found = listed(S, words, shapes, key, data, mask, head, macro, k, s, place)
            chain(S, words, data, mask, head, k, n, found, place)
        previous = -1
        if found >= since and found >= head and words[data + (found & mask) * width + C_POSITION] >= low:
            previous = found
        form = RISING
        best = n
        over = 0
        words[x + N_PREVIOUS] = previous
        words[x + N_JUMP] = previous
        if previous >= 0:
            y = data + (previous & mask) * width
            if (words[y + v + N_FORM] & RISING) == 0 or words[y + C_START] > start or (words[y + C_START] == start and previous > n):
                form = 0
            y += v
            below = words[y + N_JUMP]
            if below >= head:
                z = data + (below & mask) * width + v
                height = (words[y + N_FORM] >> HEIGHT_BITS) & HEIGHT_MASK
                if ((words[z + N_FORM] >> HEIGHT_BITS) & HEIGHT_MASK) == height:  # the node is over these two trees
                    over = 1
                    words[x + N_JUMP] = words[z + N_JUMP]
                    form |= (height + 1) << HEIGHT_BITS | (words[y + N_FORM] | words[z + N_FORM]) >> NULL_BITS << NULL_BITS
                    if (form & RISING) == 0:
                        most = start
                        for side in range(2):
                            place = words[(y if side == 0 else z) + N_BEST]
                            if place >= head:
                                found = words[data + (place & mask) * width + C_START]
                                if found > most or (found == most and place > best):
                                    most = found
                                    best = place
        count = shapes[s]
        s += 2 + shapes[s + 1]
        for j in range(count):
            least = 0x7FFFFFFFFFFFFFFF
            greatest = -least - 1
            slot = shapes[s + j]
            if ((words[w + C_NULLS] >> slot) & 1) != 0:
                form |= one << (NULL_BITS + j)
            else:
                least = words[w + values + slot]
                greatest = least
            if over != 0:
                if words[y + N_ENDS + 2 * j] < least:
                    least = words[y + N_ENDS + 2 * j]
                if words[y + N_ENDS + 2 * j + 1] > greatest:
                    greatest = words[y + N_ENDS + 2 * j + 1]
                if words[z + N_ENDS + 2 * j] < least:
                    least = words[z + N_ENDS + 2 * j]
                if words[z + N_ENDS + 2 * j + 1] > greatest:
                    greatest = words[z + N_ENDS + 2 * j + 1]
            words[x + N_ENDS + 2 * j] = least
            words[x + N_ENDS + 2 * j + 1] = greatest
        words[x + N_BEST] = best
        words[x + N_FORM] = form
    if start > words[b + B_GREATEST + macro]:
        words[b + B_GREATEST + macro] = start
    words[b + B_LIVE] |= one << macro
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def enter_all(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    first: cython.longlong,
    made: cython.Py_ssize_t,
    low: cython.longlong,
) -> cython.int:
    """Enter the cells of one event, from number `first` on: those of one group are one entry; the greatest key comes last. O(made^2)."""
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    slots: cython.Py_ssize_t = S[S_SLOTS]
    most_shapes: cython.Py_ssize_t = S[S_SHAPES]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    count: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    e: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    for j in range(made):
        w = data + ((first + j) & mask) * width
        if ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) == 0:
            continue
        k = count
        while k > 0 and words[data + (order[k - 1] & mask) * width + C_START] > words[w + C_START]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = first + j
        count += 1
    for j in range(count - 2, -1, -1):
        w = data + (order[j] & mask) * width
        for k in range(count - 1, j, -1):
            if order[k] < 0:
                continue
            v = data + (order[k] & mask) * width
            if (((words[v + C_KIND] ^ words[w + C_KIND]) >> MACRO_BITS) & MACROS_MASK) != 0 or words[v + C_NULLS] != words[w + C_NULLS]:
                continue
            e = 0
            while e < slots and words[v + values + e] == words[w + values + e]:
                e += 1
            if e < slots:
                continue
            while words[v + C_REST] >= 0:
                v = data + (words[v + C_REST] & mask) * width
            words[v + C_REST] = order[j]
            order[j] = -1
            for e in range(most_shapes):
                words[w + values + slots + node_width * e + N_FORM] = -1
            break
    for j in range(count):
        if order[j] >= 0:
            enter(S, words, shapes, key, line, b, order[j], low)
    return 0


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    rows: cython.const[cython.int][::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    lut: cython.const[cython.int][::1],
    words: cython.longlong[::1],
    offsets: cython.longlong[::1],
    template: cython.const[cython.longlong][::1],
    sizes: cython.longlong[::1],
    pool: cython.longlong[::1],
    widths: cython.const[cython.longlong][::1],
    first_of: cython.const[cython.int][::1],
    drops: cython.const[cython.longlong][::1],
    stirs: cython.const[cython.longlong][::1],
    cells_of: cython.const[cython.int][::1],
    regions: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    shapes: cython.const[cython.int][::1],
    forms: cython.const[cython.longlong][::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    marked: cython.uchar[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters (index into lut), times, cuts, rows (of each segment's block, 0: the workplace, reset first), values (the words of each event's
    values), columns (stride 3: where the word of a value stands, the word with its NULL bit, that bit).
    TABLES: lut (letter -> code, -1 unknown); of a code first_of[macro state * codes + code] (first region, -1 none), drops and stirs (macro states as
    bits: whose groups end, whose groups do something; 1 is the initial one), cells_of (how many cells it makes at most). regions: by columns R_; from
    R_TESTS on, per test of its form, the number of a value in `columns`, and what this value is to be more or less to be its two bounds.
    operands: lists of values, by number in `columns`: those that are asked to be equal, and a number and as many that become slots.
    shapes: (macro state * shapes + index) * shape_width: number of slots tested, number of slots asked to be equal (-1: no such index), these, those.
    forms: by columns F_ (form * form_width): index, number of tests, and for each whether it wants values OUTSIDE of its bounds, and NULLS, its slot,
    and the place of this slot among those that the index has tested.
    BLOCKS: words, offsets, template, sizes, pool, widths (see `cepheid.engine.memory.blocks.Blocks`).
    SCRATCH: key, order, levels, queue. OUT: out_*; marked[row] = 1 where a cell was made.
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
    skipped: cython.longlong = S[S_SKIPPED]
    shift: cython.longlong = S[S_SHIFT]
    plain: cython.Py_ssize_t = S[S_PLAIN]
    most: cython.longlong = S[S_BLOCK_LIMIT]
    greatest: cython.longlong = 0x7FFFFFFFFFFFFFFF  # these bounds exclude nothing
    least: cython.longlong = -greatest - 1
    budget: cython.longlong = S[S_BUDGET]
    codes: cython.Py_ssize_t = S[S_CODES]
    macros: cython.Py_ssize_t = S[S_MACROS]
    most_shapes: cython.longlong = S[S_SHAPES]
    slots: cython.Py_ssize_t = S[S_SLOTS]
    width: cython.Py_ssize_t = S[S_WIDTH]
    event_words: cython.Py_ssize_t = S[S_EVENT_WORDS]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    form_width: cython.Py_ssize_t = S[S_FORM_WIDTH]
    tests: cython.Py_ssize_t = S[S_TESTS]
    kept_at: cython.Py_ssize_t = C_BOUNDS + 2 * tests
    first_node: cython.Py_ssize_t = kept_at + slots
    beside: cython.Py_ssize_t = S[S_HASHED]
    rings: cython.Py_ssize_t = widths.shape[0]
    order_room: cython.Py_ssize_t = order.shape[0] // 2
    rc: cython.int = 0
    full: cython.int = 0
    c: cython.int = 0
    q: cython.Py_ssize_t = 0
    b: cython.Py_ssize_t = 0  # where the block starts
    directory: cython.Py_ssize_t = 0
    line: cython.Py_ssize_t = 0  # of the cells' ring
    data: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0
    event: cython.Py_ssize_t = 0
    node: cython.Py_ssize_t = 0
    made: cython.Py_ssize_t = 0
    count_of: cython.Py_ssize_t = 0
    outputs: cython.Py_ssize_t = 0
    entering: cython.int = 0
    kept: cython.Py_ssize_t = 0
    begins: cython.int = 0
    p: cython.longlong = 0
    n: cython.longlong = 0
    head: cython.longlong = 0
    tail: cython.longlong = 0
    mask: cython.longlong = 0
    oldest: cython.longlong = 0
    live: cython.longlong = 0
    left: cython.longlong = 0
    child: cython.longlong = 0
    start: cython.longlong = 0
    test: cython.longlong = 0
    now: cython.longlong = 0
    f: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    lower: cython.longlong = 0
    upper: cython.longlong = 0
    nulls: cython.longlong = 0
    one: cython.longlong = 1

    with cython.nogil:
        if segment >= 0:
            b = offsets[rows[segment]]
            directory = b + plain
            line = directory + 4
            live = words[b + B_LIVE]
        while True:
            # ------------------------------------------------------------------------------------------------ enumeration
            if S[S_ENUMERATING] != 0:
                rc = enumerate_matches(
                    S, words, forms, levels, queue, out_offsets, out_positions, out_labels, out_segments, line, b, segment
                )
                if rc != 0:
                    break
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
                line = directory + 4
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
            budget -= 2 + S[S_WALKED]
            S[S_WALKED] = 0
            # ------------------------------------------------------------------------------------------------ window
            p = shift + i
            oldest = words[b + B_LOW]
            if count_window != 0 and oldest <= p - count_window:
                oldest = p - count_window + 1
            if timed != 0:
                oldest = first_open(words, b, directory, oldest, p, times[i], window)
            # ------------------------------------------------------------------------------------------------ room
            head = words[line + D_HEAD]
            tail = words[line + D_TAIL]
            mask = words[line + D_MASK]
            data = b + words[line + D_DATA]
            full = -1
            if tail - head + cells_of[c] > mask + 1:
                while head != tail and words[data + (head & mask) * width + C_POSITION] < oldest:
                    head += 1
                words[line + D_HEAD] = head
                if tail - head + cells_of[c] > mask + 1:
                    full = 1
            if full < 0 and timed != 0 and words[directory + D_TAIL] - words[directory + D_HEAD] > words[directory + D_MASK]:
                full = 0
            if full >= 0:  # make room, and look at the event again
                argument = grow(words, offsets, sizes, pool, rows[segment], plain, rings, width, beside, full, most)
                if argument != 0:
                    rc = EXIT_POOL if argument > 0 else EXIT_LIMIT
                    break
                b = offsets[rows[segment]]
                directory = b + plain
                line = directory + 4
                words[b + B_TABLED] = -1
                continue
            if queue.shape[0] < 3 * (cells_of[c] + PUSHED) or order_room < cells_of[c]:
                rc = EXIT_STACK
                argument = cells_of[c]
                break
            if beside != 0 and words[b + B_TABLED] != mask:
                make_table(S, words, shapes, key, line, b)
            # ------------------------------------------------------------------------------------------------ ask
            made = 0
            outputs = 0
            entering = 0
            kept = 0
            begins = 0
            event = i * event_words
            left = live & stirs[c]
            q = 0
            while left != 0:
                if (left & 1) == 0:
                    left >>= 1
                    q += 1
                    continue
                left >>= 1
                if q != 0 and words[b + B_GREATEST + q] < oldest:
                    live &= ~(one << q)
                    q += 1
                    continue
                r = first_of[q * codes + c]
                while r >= 0:
                    child = -1
                    start = p
                    w = data + ((tail + made) & mask) * width
                    at = w + C_BOUNDS
                    count_of = 0
                    if q != 0:
                        f = form_width * regions[r + R_FORM]
                        o = forms[f + F_SHAPE]
                        count_of = forms[f + F_COUNT]
                        node = first_node + node_width * o
                        s = (q * most_shapes + o) * S[S_SHAPE_WIDTH]
                        n = -1
                        if shapes[s + 1] == 0:
                            n = words[b + B_GREATEST + 2 * macros + q * most_shapes + o]
                        else:
                            for k in range(shapes[s + 1]):
                                o = 3 * operands[regions[r + R_EQUALS] + k]
                                if (values[event + columns[o + 1]] & columns[o + 2]) != 0:
                                    break
                                key[k] = values[event + columns[o]]
                            else:
                                o = forms[f + F_SHAPE]
                                n = hash_of(key, shapes[s + 1], q * most_shapes + o)
                                n = listed(S, words, shapes, key, data, mask, head, q, o, s, n)
                        if n < head or n < words[b + B_GREATEST + macros + q]:
                            n = -1
                        for k in range(count_of):
                            test = forms[f + F_TESTS + k]
                            o = 3 * regions[r + R_TESTS + 3 * k]
                            lower = regions[r + R_TESTS + 3 * k + 1]
                            upper = regions[r + R_TESTS + 3 * k + 2]
                            now = values[event + columns[o]]
                            if (values[event + columns[o + 1]] & columns[o + 2]) != 0:
                                # No comparison holds: whoever asks for that gets all.
                                if (test & NULLS) == 0:
                                    n = -1
                                lower = greatest if (test & OUTSIDE) != 0 else least
                                upper = least if (test & OUTSIDE) != 0 else greatest
                            elif (lower > 0 and now > greatest - lower) or (upper < 0 and now < least - upper):
                                lower = greatest  # a bound is past all values
                                upper = least
                            else:
                                if lower != least:
                                    lower = least if lower < 0 and now < least - lower else now + lower
                                if upper != greatest:
                                    upper = greatest if upper > 0 and now > greatest - upper else now + upper
                            words[at + 2 * k] = lower
                            words[at + 2 * k + 1] = upper
                        if n >= 0:
                            if (words[data + (n & mask) * width + node + N_FORM] & RISING) != 0:
                                if count_of > 1:
                                    n = newest_of_several(S, words, forms, data, mask, width, kept_at, node, head, oldest, n, f, at)
                                else:
                                    n = newest(words, data, mask, width, kept_at, node, head, oldest, n, count_of, test, lower, upper)
                                if n >= 0:
                                    start = words[data + (n & mask) * width + C_START]
                            else:
                                open_level(words, forms, data, mask, width, node, head, oldest, n, f, at, levels, queue, 0, 0)
                                child = next_cell(S, words, forms, data, mask, width, kept_at, node, head, oldest, f, at, levels, queue, 0)
                                if child == -2:
                                    rc = EXIT_STACK
                                    break
                                if child < 0:
                                    n = -1
                                else:
                                    start = words[data + (child & mask) * width + C_START]
                        child = n
                        if n < 0:
                            r = regions[r + R_NEXT]
                            continue
                    else:
                        begins = 1
                    n = tail + made
                    made += 1
                    words[w + C_POSITION] = p
                    words[w + C_START] = start
                    words[w + C_CHILD] = child
                    words[w + C_REST] = -1
                    words[w + C_KIND] = regions[r + R_KIND]
                    if regions[r + R_FINAL] != 0:
                        order[order_room + outputs] = n
                        outputs += 1
                    if regions[r + R_TARGET] >= 0:
                        entering = 1
                        kept = made
                        nulls = 0
                        s = regions[r + R_MADE]
                        for k in range(operands[s]):
                            o = 3 * operands[s + 1 + k]
                            words[w + kept_at + k] = values[event + columns[o]]
                            if (values[event + columns[o + 1]] & columns[o + 2]) != 0:
                                nulls |= one << k
                        for k in range(operands[s], slots):
                            words[w + kept_at + k] = 0
                        words[w + C_NULLS] = nulls
                    r = regions[r + R_NEXT]
                if rc != 0:
                    break
                q += 1
            if rc != 0:
                break
            # ------------------------------------------------------------------------------------------------ enter
            left = live & drops[c]
            live &= ~left
            q = 0
            while left != 0:
                if (left & 1) != 0:
                    words[b + B_GREATEST + q] = -1
                    words[b + B_GREATEST + macros + q] = tail
                left >>= 1
                q += 1
            if made == 0:
                i += 1
                continue
            marked[i] = 1
            if begins != 0:
                words[b + B_NEWEST_START] = p
                words[b + B_NEWEST_TIME] = times[i]
                if timed != 0:
                    n = words[directory + D_TAIL]
                    words[directory + D_TAIL] = n + 1
                    w = b + words[directory + D_DATA] + 2 * (n & words[directory + D_MASK])
                    words[w] = p
                    words[w + 1] = times[i]
            if outputs != 0:
                S[S_TRIGGERS] += 1
                if consume != 0:  # later matches start after this event
                    words[b + B_LOW] = p + 1
                    live = 1
                    entering = 0
                    kept = 0
                    if consume == 2:
                        epoch += 1
                        words[b + B_EPOCH] = epoch
            # PERF: the cells behind the last that something can go on from are there until the matches are given; the next event has their places.
            words[line + D_TAIL] = tail + kept
            if entering != 0:
                words[b + B_LIVE] = live
                enter_all(S, words, shapes, key, order, line, b, tail, made, oldest)
                live = words[b + B_LIVE]
            if outputs != 0 and limit != 0:
                k = 0
                for q in range(outputs):
                    n = order[order_room + q]
                    k = push(queue, 0, k, words[data + (n & mask) * width + C_START], n, CELL)
                levels[L_BASE] = 0
                levels[L_SIZE] = k
                levels[L_CURSOR] = -1
                S[S_ENUMERATING] = 1
                S[S_LOW] = oldest
                S[S_DEPTH] = 0
                S[S_GIVEN] = 0
                continue
            i += 1
        if segment >= 0 and segment < segments:
            words[b + B_LIVE] = live

    S[S_ROW] = i
    S[S_SEGMENT] = segment
    S[S_SEGMENT_END] = end
    S[S_EPOCH] = epoch
    S[S_ARGUMENT] = argument
    S[S_SKIPPED] = skipped
    S[S_SHIFT] = shift
    return rc
