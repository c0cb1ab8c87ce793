"""The words of the kernel of guards: what each number that it reads and writes stands for. A room of `guards`.

docs/theory/guards-kernel.md explains cells and nodes.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython

# Exit codes of `run`, in the order of their numbers.
EXITS = (
    *("done", "letter", "pool", "limit", "output", "stack", "pause"),
    *("counts", "wide", "choose", "steps", "sets", "groups", "part", "asked"),
)

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
    "counting",  # ! 0: give matches, 1: their number, 2: count before a sample is given, 3: choose, 4: the maximal ones, 5: a begin, 6: what is next
    "sample",  # ! matches per trigger that are given without choosing
    "spread",  # 1: of the matches of this event, as many are passed as the last number in `counts` says; 2: no more are given
    "size",  # ! limbs of a number
    "counted",  # the row, less -1, whose cells have numbers in `counts`; 0: none has
    "places",  # how many places its ring had
    "tag",  # the tag of a cell = its number and this
    "tags",  # no tag is as great
    "first",  # ! of supports, the first position in which they differ says which is better (NXT); 0: the last one does
    "passes",  # ! 1: unmarked moves make cells
    "carries",  # ! 1: some index has a list for each value that is carried
    "steps",  # of finding the maximal matches of a trigger
    "most_steps",  # ! as many of these at most
    "fresh",  # where the next set goes, among the forms
    "sets_end",  # ! where they end
    "sets_limit",  # ! groups with different sets that an event may make
    "parts",  # ! parts of the pattern of whose matches some are chosen
    "copied",  # cells made beside those of the groups that end a part
    "hidden",  # ! labels less than this are of events that a strategy does not compare
    "several",  # ! 1: equal supports may have several names
    "says",  # ! number of the value of an event that says where it begins; -1: a match begins at its first event
    "histories",  # ! 1: of what may be next the times of all events are compared, 0: where it begins
    "apart",  # ! 1: of what may be next each match that comes first is looked for by itself (see `_guards_next`); 0: all of a time at once
    "begins",  # ! number of the value of an event that says where it begins, as what is next compares that; -1: where its time does
    "floor",  # ! number of the value of an event up to which nothing begins that counts; -1: there is none
    "passing",  # the greatest number of a cell that ends a match of the event at `row`, where matches are counted or chosen
    "layers",  # ! macro states that are entered by layers
    "life",  # ! how long a group can go on at most, once it is entered; then NEWEST_TIME says when the last one was. -1: there is no such time
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, B_ a word of a block, C_ of a cell, N_ of
# a node, R_ a column of `regions`, F_ of `forms`, Y_ of `layered` (and which layers are wanted), V_ of a set (its size is twice the number of its
# values, and 1 where NULL is in it), L_ of `levels`; what bits of a cell's kind, a test, N_FORM and rows of `drops` say; what stands in a queue in
# the place of a tree, and below it the bits of what a tree of an unmarked cell has first (see `push_tree`); entries of a queue that an event may need
# beside those of its matches; what S[S_COUNTING] and S[S_ENUMERATING] say; LINK_ columns of `supports`. Of MAX: W_ a word of `work` (how many cells,
# words of a row and of a set; where the cells, the first ones of their events, the lengths of rows, the rows and the states of each cell stand; where
# it is free; how many states there are, and places of their table), M_ of a state (its cell, the next state of this cell and of its place, its edges,
# the cell that its sets are beside, these), E_ of an edge. PART_ bits of what `places` says of a label in a part, and of what its first column says,
# P_ a word of a node of `_guards_walk`, REACHED words of a cell that `_guards_next` reaches, H_ what stands first of each part in `chosen`, LOOSE_
# bits of H_LOOSE. Words and limbs of a wide number (`_guards_wide`). Of `_guards_memo`, Q_ where a number stands from the end of `forms` (whether
# something has no answer, where the next row goes, words of one, places of the table, how far from the end the rows end, and where the table begins),
# A_ a word of a row.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_POOL, EXIT_LIMIT, EXIT_OUTPUT, EXIT_STACK, EXIT_PAUSE = range(7)
    EXIT_COUNTS, EXIT_WIDE, EXIT_CHOOSE, EXIT_STEPS, EXIT_SETS, EXIT_GROUPS, EXIT_PART, EXIT_ASKED = range(7, 15)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_WINDOW, S_TIMED, S_COUNT_WINDOW, S_CONSUME, S_LIMIT, S_CONTINUED, S_LETTER_MASK = range(10)
    S_EPOCH, S_ARGUMENT, S_BUFFERED_MATCHES, S_BUFFERED_POSITIONS, S_TRIGGERS, S_MATCHES, S_SKIPPED, S_SHIFT, S_PLAIN = range(10, 19)
    S_BLOCK_LIMIT, S_BUDGET, S_CODES, S_MACROS, S_SHAPES, S_SHAPE_WIDTH, S_FORM_WIDTH, S_TESTS, S_SLOTS, S_NODE_WIDTH, S_WIDTH = range(
        19, 30
    )
    S_HASHED, S_EVENT_WORDS, S_ENUMERATING, S_LOW, S_DEPTH, S_GIVEN, S_WALKED = range(30, 37)
    S_COUNTING, S_SAMPLE, S_SPREAD, S_SIZE, S_COUNTED, S_PLACES, S_TAG, S_TAGS, S_FIRST, S_PASSES, S_CARRIES = range(37, 48)
    S_STEPS, S_MOST_STEPS, S_FRESH, S_SETS_END, S_SETS_LIMIT, S_PARTS, S_COPIED, S_HIDDEN, S_SEVERAL, S_SAYS = range(48, 58)
    S_HISTORIES, S_APART, S_BEGINS, S_FLOOR, S_PASSING, S_LAYERS, S_LIFE = range(58, 65)
    B_LIVE, B_TABLED, B_GREATEST = range(6, 9)
    C_POSITION, C_START, C_CHILD, C_REST, C_KIND, C_NULLS, C_BOUNDS = range(7)
    N_PREVIOUS, N_JUMP, N_BEST, N_FORM, N_ENDS = range(5)
    R_NEXT, R_KIND, R_TARGET, R_FINAL, R_FORM, R_EQUALS, R_MADE, R_LASTING, R_SETS, R_TESTS = range(10)
    F_SHAPE, F_COUNT, F_TESTS = range(3)
    Y_MACRO, Y_SOURCE, Y_BELOW, Y_WANTED, Y_FORM, Y_OWN, Y_LIST, Y_COUNT, Y_SLOTS = range(9)
    EARLIEST, LATEST = 1, 2
    I_TESTED, I_KEY, I_CARRIED, I_OUTER, I_SLOTS = range(5)
    L_BASE, L_SIZE, L_CURSOR, L_FRESH, L_CELL = range(5)
    LEVEL_WIDTH = 5
    LABELS, UNMARKED, MACRO_BITS, MACROS_MASK, FORM_BITS = 0xFFFF, 0xFFFF, 16, 0xFFF, 28
    REST, REST_BITS, REST_MASK = 61, 5, 31
    OUTSIDE, NULLS, COMPUTED, AMONG, BESIDE, APART, SLOT_BITS, PLACE_BITS, PLACE_MASK, ENDED_BITS = 1, 2, 4, 8, 16, 28, 8, 16, 0xFF, 32
    OPERATION_MASK, REAL, SOURCE_BITS, SOURCE_MASK, WIDE, DIGITS_BITS = 31, 32, 6, 7, 512, 10
    WIDE_WORDS, LIMBS = 6, 5
    FROM_NOTHING, FROM_PUSHED, FROM_MEMBER, FROM_SLOT, FROM_NOW = range(5)
    LOAD, PUSH, UNLESS, IF_TRUE, IF_KNOWN, JUMP, NOT, IS_NULL, FIT = range(9)
    EQUAL, DIFFERENT, LESS, AT_MOST, MORE = range(9, 14)
    ADD, SUBTRACT, SUBTRACT_FROM, MULTIPLY, DIVIDE = range(15, 20)
    REMAINDER, REMAINDER_OF, CAST, ABSOLUTE, NEGATE, FLOOR = range(21, 27)
    HIGH, WIDEN, NARROW, ASK = range(28, 32)
    SLOTS_MASK, HOW_BITS, HOW_MASK, COLUMN_BITS = 0xFF, 8, 7, 11
    MADE_MAX, MADE_MIN, MADE_SAME, MADE_SET, MADE_ONE, MADE_JOINED = 1, 2, 3, 4, 5, 6
    V_HASH, V_BEFORE, V_SIZE, V_VALUES = range(4)
    STRIDE_BITS, MEMBER_BITS, MEMBER_MASK = 48, 3, 7
    Q_UNANSWERED, Q_FRESH, Q_WIDTH, Q_PLACES, Q_BEHIND, Q_BASE = range(1, 7)
    A_BEFORE, A_ANSWER, A_QUESTION, A_VALUES = range(4)
    RISING, HEIGHT_BITS, HEIGHT_MASK, NULL_BITS = 1, 1, 63, 8
    SHAPE_BITS, SHAPES_MASK, SUPERSEDED = 16, 0xFFFF, -2
    ENTRY, CELL, PLACE_OF = -1, -2, 32
    PUSHED = 80
    NUMBER, COUNT, CHOSEN, MAXIMAL, BEGUN, NEXT = 1, 2, 3, 4, 5, 6
    LINK_BEFORE, LINK_LENGTH, LINK_JUMP = range(3)
    W_COUNT, W_SIZE, W_SETS, W_CELLS, W_FIRSTS, W_LENGTHS, W_ROWS, W_STATES, W_FREE, W_FOUND, W_PLACES, W_HEADER = range(12)
    M_CELL, M_NEXT, M_CHAIN, M_EDGES, M_BASE, M_SETS = range(6)
    E_STATE, E_NEXT, DROPPED = 0, 1, -1
    PART_BEGINS, PART_ENDS, PART_SHOWN, PART_SAYS = 1, 2, 4, 8
    SAYS, ENDS_PARTS, BEGINS_NEXT = 1, 2, 4
    REACHED = 4
    P_CELL, P_EDGES, P_CHILD, P_START, P_LEFT, P_SAME, P_BEFORE, P_RANK, P_LOWER, P_UPPER, PART_WIDTH = range(11)
    H_AT, H_END, H_DONE, H_RULE, H_FLOOR, H_LOOSE, HEAD_WIDTH = range(7)
    LOOSE_BETWEEN, LOOSE_BEGIN = 1, 2
