# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of automata with guards: letters and values of events in, matches out, over groups of partial matches that nobody visits one by one.

One source that Cython compiles and CPython also runs as it is; `cepheid.engine.evaluations.guarded_run` drives it (exit codes as in
`cepheid.kernel.match`). docs/decisions/0004-guards.md, "The kernel", has the design.

A CELL is a marked event at the end of some partial matches: `width` words in ring 1 of its partition's block, with a number that grows for ever.
A link is the number of a cell; one before the ring's head is freed, which means that all below it has expired, or that no match can go on from it.
[C_POSITION, C_START] position of the event, and the greatest start of a match below. [C_CHILD] what it goes on from: the entries of a list from the
child on that pass some tests (-1: the match starts here). [C_REST] the next cell of the same entry. [C_KIND] its label, the macro state that it
enters (+ 1; 0: none), and the number of its FORM, which says what list and what tests. [C_BOUNDS ..] two bounds per test of its form. Then the values
of the slots of its macro state; [C_NULLS] says which of them are NULL. A key is (start, number); keys of cells are all different.

An ENTRY is what one event puts into one group: a cell, and by falling keys those behind its C_REST. It stands in one LIST for each index of its
macro state: all entries, or those with equal values in some slots. A list goes from its newest entry backwards, and is never changed. So a child is
one number, whatever comes later. A NODE, `node_width` words of the cell per index, links it: to the entry before, and over a whole TREE of 2^k - 1
entries that begins with the node itself (skew-binary jumps, E. W. Myers 1983: the trees of a list are perfect, in preorder). Of its tree a node knows
which entry has the greatest key, and per tested slot the least and the greatest value. So the newest entry that passes a test is found in O(log n);
of several tests each leaves out trees, which is O(n) at worst. Where keys do not rise along the list (its node says so), entries come by falling keys
out of a queue of trees.

GROUPS: where an event keeps values that partial matches have kept so far (they are CARRIED), it makes a cell for each group of equal values, and an
index has a list for each. The last word but one of a node leads to the entry that came before it in the list by what else is equal. So that leads
from the newest entry to all groups; entries that are no longer the newest of their group are left out by whoever walks there (`find_groups`).

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
from cepheid.kernel._numbers import add, subtract

COMPILED = cython.compiled

# Exit codes of `run`, in the order of their numbers.
EXITS = ("done", "letter", "pool", "limit", "output", "stack", "pause", "counts", "wide", "choose")

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
    "enumerating",  # 1: the matches of the event at `row` are being given; 2: they are being counted first
    "low",  # least start of these
    "depth",  # level that is looked at next
    "given",  # matches given at this trigger
    "walked",  # entries that were looked at, and are to be taken from the budget
    "counting",  # ! 0: give matches, 1: give their number, 2: count them before a sample of them is given, 3: choose
    "sample",  # ! matches per trigger that are given without choosing
    "spread",  # 1: of the matches of this event, as many are passed as the last number in `counts` says; 2: no more are given
    "size",  # ! limbs of a number
    "counted",  # the row, less -1, whose cells have numbers in `counts`; 0: none has
    "places",  # how many places its ring had
    "tag",  # the tag of a cell = its number and this
    "tags",  # no tag is as great
    "first",  # ! of supports, the first position in which they differ says which is better (NXT); 0: the last one does
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, B_ a word of a block, C_ of a cell, N_ of
# a node, R_ a column of `regions`, F_ of `forms`, L_ of `levels`; what bits of a cell's kind, a test and N_FORM say; what stands in a queue in the
# place of a tree; entries of a queue that an event may need beside those of its matches; what S[S_COUNTING] and S[S_ENUMERATING] say.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_POOL, EXIT_LIMIT, EXIT_OUTPUT, EXIT_STACK, EXIT_PAUSE, EXIT_COUNTS, EXIT_WIDE, EXIT_CHOOSE = range(10)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_WINDOW, S_TIMED, S_COUNT_WINDOW, S_CONSUME, S_LIMIT, S_CONTINUED, S_LETTER_MASK = range(10)
    S_EPOCH, S_ARGUMENT, S_BUFFERED_MATCHES, S_BUFFERED_POSITIONS, S_TRIGGERS, S_MATCHES, S_SKIPPED, S_SHIFT, S_PLAIN = range(10, 19)
    S_BLOCK_LIMIT, S_BUDGET, S_CODES, S_MACROS, S_SHAPES, S_SHAPE_WIDTH, S_FORM_WIDTH, S_TESTS, S_SLOTS, S_NODE_WIDTH, S_WIDTH = range(
        19, 30
    )
    S_HASHED, S_EVENT_WORDS, S_ENUMERATING, S_LOW, S_DEPTH, S_GIVEN, S_WALKED = range(30, 37)
    S_COUNTING, S_SAMPLE, S_SPREAD, S_SIZE, S_COUNTED, S_PLACES, S_TAG, S_TAGS, S_FIRST = range(37, 46)
    B_LIVE, B_TABLED, B_GREATEST = range(6, 9)
    C_POSITION, C_START, C_CHILD, C_REST, C_KIND, C_NULLS, C_BOUNDS = range(7)
    N_PREVIOUS, N_JUMP, N_BEST, N_FORM, N_ENDS = range(5)
    R_NEXT, R_KIND, R_TARGET, R_FINAL, R_FORM, R_EQUALS, R_MADE, R_LASTING, R_TESTS = range(9)
    F_SHAPE, F_COUNT, F_TESTS = range(3)
    I_TESTED, I_KEY, I_CARRIED, I_OUTER, I_SLOTS = range(5)
    L_BASE, L_SIZE, L_CURSOR, L_FRESH, L_CELL = range(5)
    LEVEL_WIDTH = 5
    LABELS, MACRO_BITS, MACROS_MASK, FORM_BITS = 0xFFFF, 16, 0xFF, 24
    OUTSIDE, NULLS, SLOT_BITS, PLACE_BITS = 1, 2, 8, 16
    RISING, HEIGHT_BITS, HEIGHT_MASK, NULL_BITS = 1, 1, 63, 8
    SHAPE_BITS, SHAPES_MASK, SUPERSEDED = 16, 0xFFFF, -2
    ENTRY, CELL = -1, -2
    PUSHED = 80
    NUMBER, COUNT, CHOSEN = 1, 2, 3
    LINK_BEFORE, LINK_LENGTH, LINK_JUMP = range(3)


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


# ------------------------------------------------------------------------------------------------ supports

# A support is 1 + the number of a cell that has it as its best one (0: there is none, or no event is in it). Of each such cell `supports` says the
# support before its event, how many events there are, and a support further down, so that any is O(log n) steps away (as `Supports` in Python).


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def part_of(supports: cython.longlong[::1], mask: cython.longlong, support: cython.longlong, part: cython.Py_ssize_t) -> cython.longlong:
    """What is said of a support: 0 of the empty one."""
    if support == 0:
        return 0
    return supports[3 * ((support - 1) & mask) + part]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def last_of(
    words: cython.longlong[::1], data: cython.Py_ssize_t, mask: cython.longlong, width: cython.Py_ssize_t, support: cython.longlong
) -> cython.longlong:
    """The last position of a support, -1 of the empty one."""
    if support == 0:
        return -1
    return words[data + ((support - 1) & mask) * width + C_POSITION]


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def is_better(
    words: cython.longlong[::1],
    supports: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    first: cython.longlong,
    one: cython.longlong,
    other: cython.longlong,
) -> cython.int:
    """Whether the first position in which two supports differ (first 1: NXT), or the last (LAST), is in the one; any is better than none.

    NXT: O(log of their length). LAST: O(their length), but O(1) where they end in different ones.
    """
    jump: cython.longlong = 0
    swapped: cython.int = 0
    if one == 0:
        return 0
    if other == 0:
        return 1
    if first == 0:
        while one != other:
            if last_of(words, data, mask, width, one) != last_of(words, data, mask, width, other):
                return last_of(words, data, mask, width, one) > last_of(words, data, mask, width, other)
            one = part_of(supports, mask, one, LINK_BEFORE)
            other = part_of(supports, mask, other, LINK_BEFORE)
        return 0
    if part_of(supports, mask, one, LINK_LENGTH) > part_of(supports, mask, other, LINK_LENGTH):
        jump = one
        one = other
        other = jump
        swapped = 1
    while part_of(supports, mask, other, LINK_LENGTH) > part_of(supports, mask, one, LINK_LENGTH):
        jump = part_of(supports, mask, other, LINK_JUMP)
        if part_of(supports, mask, jump, LINK_LENGTH) >= part_of(supports, mask, one, LINK_LENGTH):
            other = jump
        else:
            other = part_of(supports, mask, other, LINK_BEFORE)
    if one == other:
        return swapped  # the longer one goes on
    while part_of(supports, mask, one, LINK_BEFORE) != part_of(supports, mask, other, LINK_BEFORE):
        if part_of(supports, mask, one, LINK_JUMP) != part_of(supports, mask, other, LINK_JUMP):
            one = part_of(supports, mask, one, LINK_JUMP)
            other = part_of(supports, mask, other, LINK_JUMP)
        else:
            one = part_of(supports, mask, one, LINK_BEFORE)
            other = part_of(supports, mask, other, LINK_BEFORE)
    return (last_of(words, data, mask, width, one) < last_of(words, data, mask, width, other)) != (swapped != 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def extended(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    keys: cython.longlong,
    n: cython.longlong,
    before: cython.longlong,
) -> cython.longlong:
    """The support `before` with the event of the cell n. Equal ones are one: that of another cell of the event, if one has it.

    One whose best match has left the window may go on from a support that was written anew since, with another length. O(cells of the event).
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    position: cython.longlong = words[data + (n & mask) * width + C_POSITION]
    at: cython.Py_ssize_t = 3 * (n & mask)
    key: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    step: cython.longlong = 0
    jump: cython.longlong = 0
    above: cython.longlong = 0
    side: cython.int = 0
    for side in range(2):
        step = 1 if side == 0 else -1
        m = n + step
        while m >= 0 and n - m <= mask and m - n <= mask and words[data + (m & mask) * width + C_POSITION] == position:
            key = (m & mask) * keys
            if (
                known[2 * key] == S[S_TAG] + m
                and known[2 * key + 1] >= S[S_LOW]
                and counts[key] == m + 1
                and supports[3 * (m & mask) + LINK_BEFORE] == before
            ):
                return m + 1
            m += step
    jump = part_of(supports, mask, before, LINK_JUMP)
    above = part_of(supports, mask, jump, LINK_JUMP)
    supports[at + LINK_BEFORE] = before
    supports[at + LINK_LENGTH] = part_of(supports, mask, before, LINK_LENGTH) + 1
    supports[at + LINK_JUMP] = before
    if 2 * part_of(supports, mask, jump, LINK_LENGTH) == part_of(supports, mask, before, LINK_LENGTH) + part_of(
        supports, mask, above, LINK_LENGTH
    ):
        supports[at + LINK_JUMP] = above
    return n + 1


# ------------------------------------------------------------------------------------------------ counts


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def all_pass(
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    x: cython.Py_ssize_t,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
) -> cython.int:
    """Whether the node at x says that all entries of its tree pass each of these tests."""
    k: cython.Py_ssize_t = 0
    y: cython.Py_ssize_t = 0
    test: cython.longlong = 0
    for k in range(forms[f + F_COUNT]):
        test = forms[f + F_TESTS + k]
        y = x + N_ENDS + 2 * (test >> PLACE_BITS)
        if (test & NULLS) == 0 and ((words[x + N_FORM] >> (NULL_BITS + (test >> PLACE_BITS))) & 1) != 0:
            return 0
        if (test & OUTSIDE) == 0:
            if words[y] < words[at + 2 * k] or words[y + 1] > words[at + 2 * k + 1]:
                return 0
        elif words[y] <= words[at + 2 * k + 1] and words[y + 1] >= words[at + 2 * k]:
            return 0
    return 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def add_known(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    keys: cython.longlong,
    to: cython.Py_ssize_t,
    n: cython.longlong,
    which: cython.longlong,
    top: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add number `which` of the cell n to the one with key `to`, or push it where it is not known. Of supports, keep the better one.

    The top of the stack then; -1 where it has no room, -2 where the sum could soon overflow.
    """
    key: cython.Py_ssize_t = (n & mask) * keys + which
    size: cython.Py_ssize_t = S[S_SIZE]
    most: cython.ulonglong = 0x4000000000000000
    if known[2 * key] == S[S_TAG] + n and known[2 * key + 1] >= S[S_LOW]:
        if S[S_COUNTING] == CHOSEN:
            if is_better(words, supports, data, mask, S[S_WIDTH], S[S_FIRST], counts[key], counts[to]) != 0:
                counts[to] = counts[key]
                known[2 * to + 1] = known[2 * key + 1]
            return top
        add(counts, to * size, counts, key * size, size)
        if counts[to * size + size - 1] > most:
            return -2
        if known[2 * key + 1] < known[2 * to + 1]:
            known[2 * to + 1] = known[2 * key + 1]
        return top
    if top >= queue.shape[0]:
        return -1
    queue[top] = n * keys + which
    return top + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def add_entry(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    keys: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    to: cython.Py_ssize_t,
    n: cython.longlong,
    top: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add the numbers of an entry's cells, as `add_known`."""
    w: cython.Py_ssize_t = 0
    while n >= head and top >= 0:
        w = data + (n & mask) * width
        if words[w + C_START] < low:
            break
        top = add_known(S, words, counts, known, supports, queue, data, mask, keys, to, n, 0, top)
        n = words[w + C_REST]
    return top


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def has_live(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    x: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
) -> cython.int:
    """Whether an entry of the tree of the node at x lives."""
    best: cython.longlong = words[x + N_BEST]
    return best >= head and words[data + (best & mask) * width + C_START] >= low


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def add_all(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    n: cython.longlong,
    which: cython.longlong,
    to: cython.Py_ssize_t,
    top: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add up what number `which` of the live cell n is the sum of, as `add_known`: of trees that pass as a whole the sum is one number."""
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    first_node: cython.Py_ssize_t = values + S[S_SLOTS]
    keys: cython.longlong = 1 + S[S_SHAPES]
    low: cython.longlong = S[S_LOW]
    w: cython.Py_ssize_t = data + (n & mask) * width
    x: cython.Py_ssize_t = 0
    f: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = w + C_BOUNDS
    node: cython.Py_ssize_t = 0
    _side: cython.int = 0
    if which != 0:  # a tree: its first entry, and the two trees below
        node = first_node + S[S_NODE_WIDTH] * (which - 1)
        top = add_entry(S, words, counts, known, supports, queue, data, mask, width, keys, head, low, to, n, top)
        if ((words[w + node + N_FORM] >> HEIGHT_BITS) & HEIGHT_MASK) > 0:
            n = words[w + node + N_PREVIOUS]
            for _side in range(2):
                if n < head or top < 0:
                    break
                x = data + (n & mask) * width + node
                if has_live(words, data, mask, width, x, head, low) != 0:
                    top = add_known(S, words, counts, known, supports, queue, data, mask, keys, to, n, which, top)
                n = words[x + N_JUMP]
        return top
    f = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    which = 1 + forms[f + F_SHAPE]
    node = first_node + S[S_NODE_WIDTH] * (which - 1)
    n = words[w + C_CHILD]
    while n >= head and top >= 0:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        x = w + node
        if has_live(words, data, mask, width, x, head, low) == 0:
            if (words[x + N_FORM] & RISING) != 0:
                break  # older ones began earlier
            n = words[x + N_JUMP]
        elif may_pass(words, forms, x, f, at) == 0:
            n = words[x + N_JUMP]
        elif all_pass(words, forms, x, f, at) != 0:
            top = add_known(S, words, counts, known, supports, queue, data, mask, keys, to, n, which, top)
            n = words[x + N_JUMP]
        else:
            if passes(words, forms, values, w, f, at) != 0:
                top = add_entry(S, words, counts, known, supports, queue, data, mask, width, keys, head, low, to, n, top)
            n = words[x + N_PREVIOUS]
    return top


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def count_matches(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    queue: cython.longlong[::1],
    outputs: cython.Py_ssize_t,
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    row: cython.longlong,
) -> cython.int:
    """Count the matches that end in the cells of the queue, how many of them there are in all: the last number but one. An exit, or 0.

    Where a strategy chooses, a number is the best support of these matches (see `extended`), in the place of how many they are.
    The stack behind these cells has what is to be known first; where it is left on the way, what is known stays.
    """
    head: cython.longlong = words[line + D_HEAD]
    tail: cython.longlong = words[line + D_TAIL]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    keys: cython.longlong = 1 + S[S_SHAPES]
    size: cython.Py_ssize_t = S[S_SIZE]
    most: cython.ulonglong = 0x4000000000000000
    choosing: cython.int = S[S_COUNTING] == CHOSEN
    passing: cython.int = 0
    base: cython.Py_ssize_t = 3 * outputs
    top: cython.Py_ssize_t = 0
    above: cython.Py_ssize_t = 0
    key: cython.Py_ssize_t = 0
    total: cython.Py_ssize_t = counts.shape[0] - 2 * size
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    which: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    if known.shape[0] < 2 * keys * (mask + 1):
        return EXIT_COUNTS
    if S[S_COUNTED] != row + 1 or S[S_PLACES] != mask + 1:
        S[S_COUNTED] = row + 1
        S[S_PLACES] = mask + 1
        S[S_TAG] = S[S_TAGS] - head
    for k in range(outputs):
        n = queue[3 * k + 1]
        if n >= S[S_TAGS] - S[S_TAG]:
            S[S_TAGS] = S[S_TAG] + n + 1
    for j in range(size):
        counts[total + j] = 0
    for k in range(outputs):
        if base >= queue.shape[0]:
            return EXIT_STACK
        queue[base] = queue[3 * k + 1] * keys
        top = base + 1
        while top > base:
            n = queue[top - 1] // keys
            which = queue[top - 1] - n * keys
            key = (n & mask) * keys + which
            if known[2 * key] == S[S_TAG] + n and known[2 * key + 1] >= S[S_LOW]:
                top -= 1
                continue
            for j in range(size):
                counts[key * size + j] = 0
            known[2 * key] = -1
            known[2 * key + 1] = 0x7FFFFFFFFFFFFFFF
            above = top
            w = data + (n & mask) * S[S_WIDTH]
            if which == 0 and words[w + C_CHILD] < 0:
                counts[key * size] = 1
                known[2 * key + 1] = words[w + C_START]
            else:
                above = add_all(S, words, forms, counts, known, supports, queue, data, mask, head, n, which, key, top)
            if above < 0:
                return EXIT_STACK if above == -1 else EXIT_WIDE
            if above > top:
                top = above
                continue
            if choosing != 0 and which == 0:
                counts[key] = extended(S, words, counts, known, supports, data, mask, keys, n, 0 if words[w + C_CHILD] < 0 else counts[key])
            known[2 * key] = S[S_TAG] + n
            top -= 1
            S[S_WALKED] += 1
            if S[S_WALKED] > S[S_BUDGET]:  # something is known that was not when the kernel was called
                S[S_WALKED] = 0
                return EXIT_PAUSE
        key = (queue[3 * k + 1] & mask) * keys
        if choosing == 0:
            add(counts, total, counts, key * size, size)
            if counts[total + size - 1] > most:
                return EXIT_WIDE
        elif is_better(words, supports, data, mask, S[S_WIDTH], S[S_FIRST], counts[key], counts[total]) != 0:
            counts[total] = counts[key]
    for k in range(outputs):
        passing |= queue[3 * k + 1] >= tail
    for k in range(outputs):
        n = queue[3 * k + 1]
        # The next event has its number; what has the same support may name it.
        if n >= tail or (passing != 0 and choosing != 0):
            known[2 * (n & mask) * keys] = -1
    return 0


# ------------------------------------------------------------------------------------------------ choices


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def keep_chosen(
    S: cython.longlong[::1], counts: cython.ulonglong[::1], queue: cython.longlong[::1], outputs: cython.Py_ssize_t, mask: cython.longlong
) -> cython.Py_ssize_t:
    """Keep of the cells in the queue those whose best support is that of all; how many they are."""
    keys: cython.longlong = 1 + S[S_SHAPES]
    total: cython.Py_ssize_t = counts.shape[0] - 2
    size: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    for k in range(outputs):
        if counts[(queue[3 * k + 1] & mask) * keys] == counts[total]:
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

    Trees that pass as a whole are left out where their best support is another one.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    keys: cython.longlong = 1 + S[S_SHAPES]
    low: cython.longlong = S[S_LOW]
    room: cython.Py_ssize_t = queue.shape[0] // 3 - 4 - base
    n: cython.longlong = levels[v - LEVEL_WIDTH + L_CELL]
    w: cython.Py_ssize_t = data + (n & mask) * width
    at: cython.Py_ssize_t = w + C_BOUNDS
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    which: cython.longlong = 1 + forms[f + F_SHAPE]
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * (which - 1)
    wanted: cython.ulonglong = part_of(supports, mask, counts[(n & mask) * keys], LINK_BEFORE)
    size: cython.Py_ssize_t = 0
    key: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    m: cython.longlong = 0
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
            known[2 * key] != S[S_TAG] + n or known[2 * key + 1] < low or counts[key] != wanted
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
                    if known[2 * key] == S[S_TAG] + m and known[2 * key + 1] >= low and counts[key] == wanted:
                        if size > room:
                            return -1
                        size = push(queue, base, size, words[w + C_START], m, CELL)
                    m = words[w + C_REST]
            n = words[x + N_PREVIOUS]
    levels[v + L_BASE] = base
    levels[v + L_CURSOR] = -1
    levels[v + L_FRESH] = 1
    levels[v + L_SIZE] = size
    return 0


# ------------------------------------------------------------------------------------------------ matches


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
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def nulls_of(
    words: cython.longlong[::1],
    shapes: cython.const[cython.int][::1],
    w: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.longlong:
    """Which of the slots in shapes[first:stop] are NULL in the cell at w: a bit each."""
    found: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    for k in range(first, stop):
        found = found << 1 | ((words[w + C_NULLS] >> shapes[k]) & 1)
    return found


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
    count: cython.Py_ssize_t = shapes[s + I_KEY]
    carried: cython.Py_ssize_t = count - shapes[s + I_CARRIED]
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
            while k < count and words[w + values + shapes[s + I_SLOTS + k]] == key[k]:
                k += 1
            if k == count and (carried == count or nulls_of(words, shapes, w, s + I_SLOTS + carried, s + I_SLOTS + count) == key[count]):
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
    """Put into `key` the values of the cell at w that are its key in an index, how many words; 0 where NULL is to be equal to something.

    Where values are carried, NULL is one of them: the last word says which are.
    """
    count: cython.Py_ssize_t = shapes[s + I_KEY]
    equals: cython.Py_ssize_t = count - shapes[s + I_CARRIED]
    k: cython.Py_ssize_t = 0
    slot: cython.int = 0
    for k in range(count):
        slot = shapes[s + I_SLOTS + k]
        if k < equals and ((words[w + C_NULLS] >> slot) & 1) != 0:
            return 0
        key[k] = words[w + values + slot]
    if equals == count:
        return count
    key[count] = nulls_of(words, shapes, w, s + I_SLOTS + equals, s + I_SLOTS + count)
    return count + 1


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
    count: cython.Py_ssize_t = 0
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
            if shapes[s + I_KEY] <= 0 or words[x + N_FORM] < 0 or words[x + node_width - 1] == SUPERSEDED:
                continue
            count = key_of(words, shapes, key, values, w, s)
            chain(S, words, data, mask, head, k, n, -1, hash_of(key, count, macro * most_shapes + k))
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
        if shapes[s + I_KEY] < 0:
            continue
        if shapes[s + I_KEY] == 0:
            found = words[first + k]
            words[first + k] = n
        else:
            count = key_of(words, shapes, key, values, w, s)
            if count == 0:
                continue  # NULL = anything does not hold
            place = hash_of(key, count, macro * most_shapes + k)
            found = listed(S, words, shapes, key, data, mask, head, macro, k, s, place)
            chain(S, words, data, mask, head, k, n, found, place)
        if shapes[s + I_CARRIED] > 0:  # the index by what is equal alone has been there before
            words[x + node_width - 2] = words[w + first_node + node_width * shapes[s + I_OUTER] + N_PREVIOUS]
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
        count = shapes[s + I_TESTED]
        s += I_SLOTS + shapes[s + I_KEY]
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
    queue: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    first: cython.longlong,
    made: cython.Py_ssize_t,
    low: cython.longlong,
) -> cython.int:
    """Enter the cells of one event, from number `first` on: those of one group are one entry; the greatest key comes last.

    O(made), where starts do not come in order times a logarithm. queue, and the second half of `order`: scratch.
    """
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    slots: cython.Py_ssize_t = S[S_SLOTS]
    most_shapes: cython.Py_ssize_t = S[S_SHAPES]
    node_width: cython.Py_ssize_t = S[S_NODE_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    table: cython.Py_ssize_t = order.shape[0] // 2
    places: cython.longlong = 4
    place: cython.longlong = 0
    count: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    e: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    falls: cython.int = 0
    for j in range(made):
        w = data + ((first + j) & mask) * width
        if ((words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) == 0:
            continue
        order[count] = first + j
        count += 1
        if count > 1 and words[v + C_START] > words[w + C_START]:
            falls = 1
        v = w
    if falls != 0:
        for j in range(count):
            push(queue, 0, j, words[data + (order[j] & mask) * width + C_START], order[j], CELL)
        for j in range(count - 1, -1, -1):
            order[j] = queue[1]
            pop(queue, 0, j + 1)
    if count > 1:
        while places < 2 * count:
            places += places
        for j in range(places):
            order[table + j] = -1
    for j in range(count - 1 if count > 1 else -1, -1, -1):
        w = data + (order[j] & mask) * width
        place = 0
        if count > 8:  # PERF: few are looked at one after the other, in the same places
            for e in range(slots):
                key[e] = words[w + values + e]
            key[slots] = words[w + C_NULLS]
            place = hash_of(key, slots + 1, (words[w + C_KIND] >> MACRO_BITS) & MACROS_MASK) & (places - 1)
        while order[table + place] >= 0:
            v = data + (order[table + place] & mask) * width
            e = 0
            if (((words[v + C_KIND] ^ words[w + C_KIND]) >> MACRO_BITS) & MACROS_MASK) == 0 and words[v + C_NULLS] == words[w + C_NULLS]:
                while e < slots and words[v + values + e] == words[w + values + e]:
                    e += 1
                if e == slots:  # it has the least key of the entry so far
                    words[v + C_REST] = order[j]
                    for e in range(most_shapes):
                        words[w + values + slots + node_width * e + N_FORM] = -1
                    order[table + place] = order[j]
                    order[j] = -1
                    break
            place = (place + 1) & (places - 1)
        else:
            order[table + place] = order[j]
    for j in range(count):
        if order[j] >= 0:
            enter(S, words, shapes, key, line, b, order[j], low)
    return 0


# ------------------------------------------------------------------------------------------------ groups


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def greatest_of(
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
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    base: cython.Py_ssize_t,
) -> cython.longlong:
    """Of the entries from n on that pass the tests of a form the one with the greatest key: -1 if none does, -2 where the queue needs room first.

    Where keys rise it is the newest of them. base: where the queue is free.
    """
    test: cython.longlong = 0
    if (words[data + (n & mask) * width + node + N_FORM] & RISING) != 0:
        if forms[f + F_COUNT] > 1:
            return newest_of_several(S, words, forms, data, mask, width, values, node, head, low, n, f, at)
        if forms[f + F_COUNT] != 0:
            test = forms[f + F_TESTS]
        return newest(words, data, mask, width, values, node, head, low, n, forms[f + F_COUNT], test, words[at], words[at + 1])
    open_level(words, forms, data, mask, width, node, head, low, n, f, at, levels, queue, 0, base)
    return next_cell(S, words, forms, data, mask, width, values, node, head, low, f, at, levels, queue, 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def is_over(
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    lasting: cython.Py_ssize_t,
    since: cython.longlong,
) -> cython.int:
    """Whether nothing in the list from entry n on can go on: it has left the window, or word `lasting` of each node (0: none) is before `since`.

    O(log n).
    """
    x: cython.Py_ssize_t = 0
    while n >= head:
        x = data + (n & mask) * width + node
        if has_live(words, data, mask, width, x, head, low) != 0:
            if lasting == 0 or words[x + lasting] >= since:
                return 0
        elif (words[x + N_FORM] & RISING) != 0:
            break
        n = words[x + N_JUMP]
    return 1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def find_groups(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    node: cython.Py_ssize_t,
    head: cython.longlong,
    low: cython.longlong,
    n: cython.longlong,
    f: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
    lasts: cython.longlong,
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Put into the queue, by rising keys, what of each group passes a form's tests: (start, cell, entry to go on from). How many groups that are.

    -1 where the queue needs room first, -1 - the number of groups where it has no room for them. n: the newest entry of all groups; from one entry to
    the next leads the last word but one of a node. Entries that are no longer the newest of their list, and groups in which nothing lives, are taken
    out on the way: O(groups), amortized over the entries, and what `greatest_of` needs for each; where keys do not come in order times a logarithm.
    lasts: the number of a test (0: none) of the time since an event, so that a group in which all are too old for it is never asked again.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    older: cython.Py_ssize_t = node + S[S_NODE_WIDTH] - 2
    room: cython.Py_ssize_t = queue.shape[0] // 3 - PUSHED
    groups: cython.Py_ssize_t = 0
    found: cython.Py_ssize_t = 0
    kept: cython.Py_ssize_t = -1
    w: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    child: cython.longlong = 0
    start: cython.longlong = 0
    number: cython.longlong = 0
    lasting: cython.Py_ssize_t = 0
    since: cython.longlong = 0
    greatest: cython.longlong = 0x7FFFFFFFFFFFFFFF
    full: cython.int = 0
    rises: cython.int = 0
    falls: cython.int = 0
    if lasts > 0 and words[at + 2 * lasts - 2] != greatest:  # else the bounds are past all values, and say nothing of later ones
        lasting = N_ENDS + 2 * (forms[f + F_TESTS + lasts - 1] >> PLACE_BITS) + 1
        since = words[at + 2 * lasts - 2]
    while n >= head:
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        if words[w + older + 1] == SUPERSEDED or is_over(words, data, mask, width, node, head, low, n, lasting, since) != 0:
            if kept >= 0:
                words[kept] = words[w + older]
            else:
                kept = w + older
            n = words[w + older]
            continue
        kept = w + older
        groups += 1
        if found == room:
            full = 1
        else:
            child = greatest_of(S, words, forms, data, mask, width, values, node, head, low, n, f, at, levels, queue, found)
            if child == -2:
                return -1
            if child >= 0:
                start = words[data + (child & mask) * width + C_START]
                v = 3 * found
                if found > 0:
                    if start < queue[v - 3] or (start == queue[v - 3] and child < queue[v - 2]):
                        falls = 1
                    else:
                        rises = 1
                queue[v] = start
                queue[v + 1] = child
                queue[v + 2] = child if (words[w + node + N_FORM] & RISING) != 0 else n
                found += 1
        n = words[w + older]
    if full != 0:
        return -1 - groups
    if rises != 0 and falls != 0:
        for groups in range(found):
            v = 3 * groups
            push(queue, 0, groups, queue[v], queue[v + 1], queue[v + 2])
        for groups in range(found, 0, -1):
            start = queue[0]
            child = queue[1]
            number = queue[2]
            pop(queue, 0, groups)
            v = 3 * (groups - 1)
            queue[v] = start
            queue[v + 1] = child
            queue[v + 2] = number
    elif falls != 0:
        v = 0
        w = 3 * (found - 1)
        while v < w:
            for groups in range(3):
                start = queue[v + groups]
                queue[v + groups] = queue[w + groups]
                queue[w + groups] = start
            v += 3
            w -= 3
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def keep_values(
    words: cython.longlong[::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    operands: cython.const[cython.int][::1],
    event: cython.Py_ssize_t,
    made: cython.Py_ssize_t,
    kept_at: cython.Py_ssize_t,
    slots: cython.Py_ssize_t,
    w: cython.Py_ssize_t,
    v: cython.Py_ssize_t,
) -> cython.int:
    """Give the cell at w the values of its slots: those of the event, and those that it keeps of the entry at v. A value that is NULL is 0."""
    nulls: cython.longlong = 0
    one: cython.longlong = 1
    slot: cython.int = 0
    k: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0
    for k in range(operands[made]):
        slot = operands[made + 1 + k]
        if slot < 0:
            slot = -1 - slot
            words[w + kept_at + k] = words[v + kept_at + slot]
            if ((words[v + C_NULLS] >> slot) & 1) != 0:
                nulls |= one << k
            continue
        o = 3 * slot
        words[w + kept_at + k] = values[event + columns[o]]
        if (values[event + columns[o + 1]] & columns[o + 2]) != 0:
            words[w + kept_at + k] = 0
            nulls |= one << k
    for k in range(operands[made], slots):
        words[w + kept_at + k] = 0
    words[w + C_NULLS] = nulls
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
    vetoed: cython.const[cython.uchar][::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    out_counts: cython.ulonglong[::1],
    marked: cython.uchar[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters (index into lut), times, cuts, rows (of each segment's block, 0: the workplace, reset first), values (the words of each event's
    values), columns (stride 3: where the word of a value stands, the word with its NULL bit, that bit).
    TABLES: lut (letter -> code, -1 unknown); of a code first_of[macro state * codes + code] (first region, -1 none), drops and stirs (macro states as
    bits: whose groups end, whose groups do something; 1 is the initial one), cells_of (how many cells it makes at most). regions: by columns R_; from
    R_TESTS on, per test of its form, the number of a value in `columns`, and what this value is to be more or less to be its two bounds.
    operands: lists of values, by number in `columns`: those that are asked to be equal, and a number and as many that become slots.
    operands that are less than 0: -1 - a slot that is carried.
    shapes: (macro state * shapes + index) * shape_width: by columns I_: how many slots are tested, how many are the key (-1: no such index), how many
    of these, the last, are carried, the index by the others alone, then the key, then those tested.
    forms: by columns F_ (form * form_width): index, number of tests, and for each whether it wants values OUTSIDE of its bounds, and NULLS, its slot,
    and the place of this slot among those that the index has tested.
    BLOCKS: words, offsets, template, sizes, pool, widths (see `cepheid.engine.memory.blocks.Blocks`).
    vetoed: of which rows no matches are given or counted; empty: of none.
    SCRATCH: key, order, levels, queue; counts (keys per place, then two numbers: of all matches of an event, and how many are still passed), known
    (stride 2: a tag, and the least start; of a support, its start), supports (with a strategy that chooses alone; stride 3, by place: columns LINK_).
    OUT: out_*, out_counts with COUNT(*) alone; marked[row] = 1 where a cell was made.
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
    order_room: cython.Py_ssize_t = order.shape[0] // 4
    room: cython.Py_ssize_t = min(order_room, queue.shape[0] // 3 - PUSHED)  # for the cells of an event
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
    linked: cython.int = 0  # something goes on from cells of other events
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
    since: cython.longlong = 0
    test: cython.longlong = 0
    now: cython.longlong = 0
    more: cython.longlong = 0  # room that the groups of the event at `i` need beside `cells_of`
    groups: cython.Py_ssize_t = 0
    group: cython.Py_ssize_t = 0
    carried: cython.int = 0
    f: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    lower: cython.longlong = 0
    upper: cython.longlong = 0
    one: cython.longlong = 1
    most_left: cython.ulonglong = 0

    with cython.nogil:
        if segment >= 0:
            b = offsets[rows[segment]]
            directory = b + plain
            line = directory + 4
            live = words[b + B_LIVE]
        while True:
            # ------------------------------------------------------------------------------------------------ enumeration
            if S[S_ENUMERATING] == COUNT:
                w = S[S_BUFFERED_MATCHES]
                at = S[S_BUFFERED_POSITIONS]
                if w >= out_segments.shape[0] or at >= out_positions.shape[0]:
                    rc = EXIT_OUTPUT
                    break
                rc = count_matches(S, words, forms, counts, known, supports, queue, levels[L_SIZE], line, b, rows[segment])
                if rc != 0:
                    argument = (1 + S[S_SHAPES]) * (words[line + D_MASK] + 1)
                    break
                S[S_ENUMERATING] = 1
                s = counts.shape[0] - 2 * S[S_SIZE]
                if S[S_COUNTING] == NUMBER:
                    out_positions[at] = shift + i
                    out_labels[at] = 0
                    out_segments[w] = segment
                    out_offsets[w + 1] = at + 1
                    for k in range(S[S_SIZE]):
                        out_counts[w * S[S_SIZE] + k] = counts[s + k]
                    S[S_BUFFERED_MATCHES] = w + 1
                    S[S_BUFFERED_POSITIONS] = at + 1
                    S[S_MATCHES] += 1
                    S[S_ENUMERATING] = 0
                    i += 1
                elif S[S_COUNTING] == CHOSEN:
                    levels[L_SIZE] = keep_chosen(S, counts, queue, levels[L_SIZE], words[line + D_MASK])
                else:
                    most_left = S[S_SAMPLE]
                    f = counts[s] > most_left
                    for k in range(1, S[S_SIZE]):
                        f |= counts[s + k] != 0
                    if f != 0:
                        rc = EXIT_CHOOSE
                        break
            if S[S_ENUMERATING] != 0:
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
                k = rows[segment] == 0 and (segment != 0 or S[S_CONTINUED] == 0)
                begin_block(words, template, b, plain, rings, epoch, k)
                if k != 0:
                    S[S_COUNTED] = 0
                shift = words[b + B_POSITION] - i
                live = words[b + B_LIVE]
                continue
            if c < 0:
                rc = EXIT_LETTER
                break
            if budget < 0 and more == 0:
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
            if tail - head + cells_of[c] + more > mask + 1:
                n = words[b + B_GREATEST + macros]
                if n > head:
                    head = n if n < tail else tail
                while head != tail and words[data + (head & mask) * width + C_POSITION] < oldest:
                    head += 1
                words[line + D_HEAD] = head
                if tail - head + cells_of[c] + more > mask + 1:
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
            if room < cells_of[c] + more:
                rc = EXIT_STACK
                argument = cells_of[c] + more
                break
            if beside != 0 and words[b + B_TABLED] != mask:
                make_table(S, words, shapes, key, line, b)
            # ------------------------------------------------------------------------------------------------ ask
            made = 0
            outputs = 0
            entering = 0
            kept = 0
            begins = 0
            linked = 0
            more = 0
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
                    groups = 1
                    carried = 0
                    if q != 0:
                        f = form_width * regions[r + R_FORM]
                        o = forms[f + F_SHAPE]
                        count_of = forms[f + F_COUNT]
                        node = first_node + node_width * o
                        s = (q * most_shapes + o) * S[S_SHAPE_WIDTH]
                        carried = shapes[s + I_CARRIED]
                        if carried != 0:
                            o = shapes[s + I_OUTER]
                            s = (q * most_shapes + o) * S[S_SHAPE_WIDTH]
                        n = -1
                        if shapes[s + I_KEY] == 0:
                            n = words[b + B_GREATEST + 2 * macros + q * most_shapes + o]
                        else:
                            for k in range(shapes[s + I_KEY]):
                                at = 3 * operands[regions[r + R_EQUALS] + k]
                                if (values[event + columns[at + 1]] & columns[at + 2]) != 0:
                                    break
                                key[k] = values[event + columns[at]]
                            else:
                                n = hash_of(key, shapes[s + I_KEY], q * most_shapes + o)
                                n = listed(S, words, shapes, key, data, mask, head, q, o, s, n)
                            at = w + C_BOUNDS
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
                        if n >= 0 and carried != 0:
                            since = words[b + B_GREATEST + macros + q]
                            groups = find_groups(
                                S,
                                words,
                                forms,
                                data,
                                mask,
                                node,
                                since if since > head else head,
                                oldest,
                                n,
                                f,
                                at,
                                regions[r + R_LASTING],
                                levels,
                                queue,
                            )
                            if groups == -1:
                                rc = EXIT_STACK
                                break
                            if groups < 0 or made + groups + cells_of[c] > room or tail - head + made + groups + cells_of[c] > mask + 1:
                                more = made + (groups if groups >= 0 else -1 - groups)
                                break
                            if groups == 0:
                                n = -1
                        elif n >= 0:
                            child = greatest_of(S, words, forms, data, mask, width, kept_at, node, head, oldest, n, f, at, levels, queue, 0)
                            if child == -2:
                                rc = EXIT_STACK
                                break
                            if child < 0:
                                n = -1
                            else:
                                start = words[data + (child & mask) * width + C_START]
                                if (words[data + (n & mask) * width + node + N_FORM] & RISING) != 0:
                                    n = child
                        child = n
                        if n < 0:
                            r = regions[r + R_NEXT]
                            continue
                    else:
                        begins = 1
                    for group in range(groups):
                        n = tail + made
                        w = data + (n & mask) * width
                        if carried != 0:
                            start = queue[3 * group]
                            child = queue[3 * group + 2]
                            if group != 0:
                                for k in range(2 * count_of):
                                    words[w + C_BOUNDS + k] = words[at + k]
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
                            if child >= 0:
                                linked = 1
                            s = data + (child & mask) * width if child >= 0 else w
                            keep_values(words, values, columns, operands, event, regions[r + R_MADE], kept_at, slots, w, s)
                    r = regions[r + R_NEXT]
                if rc != 0 or more != 0:
                    break
                q += 1
            if rc != 0:
                break
            if more != 0:  # look at the event again, with room for a cell of each group
                continue
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
            # PERF: where nothing goes on from the cells before this event, they are freed: without a window their ring would leave the cache.
            if live <= 1 and linked == 0:
                words[b + B_GREATEST + macros] = tail
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
                enter_all(S, words, shapes, key, order, queue, line, b, tail, made, oldest)
                live = words[b + B_LIVE]
            if outputs != 0 and limit != 0 and (vetoed.shape[0] == 0 or vetoed[i] == 0):
                k = 0
                for q in range(outputs):
                    n = order[order_room + q]
                    k = push(queue, 0, k, words[data + (n & mask) * width + C_START], n, CELL)
                levels[L_BASE] = 0
                levels[L_SIZE] = k
                levels[L_CURSOR] = -1
                S[S_ENUMERATING] = 1 if S[S_COUNTING] == 0 else COUNT
                S[S_SPREAD] = 0
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
