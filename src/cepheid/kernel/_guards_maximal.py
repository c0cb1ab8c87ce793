"""MAX: which matches of an event are not part of a larger one, without a list of all its matches. A room of `guards`.

The rules, and why they hold, are in docs/decisions/0004-guards.md. The cells that the trigger reaches get ranks, by position, and the
trigger itself the last one; of each, a row of bits says which it goes on from. Where nothing is tested, a row takes from an earlier one what both
have in common. A STATE is a cell, and which cells of its event may be in a match with the same events so far, and which in one with more. All are
found from the last cell to the first, each once; then, from the first to the last, those from which no maximal match goes on are left out. What is
left is a graph, whose paths are the matches.

All stands in one array, `work`: what `W_` names, numbers of rows by index and entry, bits and ranks by number, cells by rank, rows, then the states
and their edges, as they are found; at its end a table of states by hash. A row has 32 bits in a word.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._blocks import D_DATA, D_HEAD, D_MASK
from cepheid.kernel._guards_count import is_shown
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import has_live, may_pass, passes
from cepheid.kernel._guards_memo import is_unanswered


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def highest(work: cython.longlong[::1], row: cython.Py_ssize_t, n: cython.longlong) -> cython.longlong:
    """The greatest bit of a row that is set and at most n; -1 if there is none."""
    bits: cython.longlong = 2
    k: cython.int = 0
    place: cython.int = 16
    step: cython.int = 0
    if n < 0:
        return -1
    bits = work[row + (n >> 5)] & ((bits << (n & 31)) - 1)
    n >>= 5
    while bits == 0:
        n -= 1
        if n < 0:
            return -1
        bits = work[row + n]
    while place > 0:  # PERF: without a branch, for nobody can guess it
        step = (bits >> place != 0) * place
        bits >>= step
        k += step
        place >>= 1
    return (n << 5) + k


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def has_bit(work: cython.longlong[::1], row: cython.Py_ssize_t, n: cython.longlong) -> cython.longlong:
    """Whether a bit of a row is set."""
    return (work[row + (n >> 5)] >> (n & 31)) & 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def set_bit(work: cython.longlong[::1], row: cython.Py_ssize_t, n: cython.longlong) -> cython.int:
    """Set a bit of a row."""
    one: cython.longlong = 1
    work[row + (n >> 5)] |= one << (n & 31)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def clear(work: cython.longlong[::1], row: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
    """Set words to 0."""
    k: cython.Py_ssize_t = 0
    for k in range(count):
        work[row + k] = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def unite(work: cython.longlong[::1], row: cython.Py_ssize_t, other: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.int:
    """Add the bits of another row."""
    k: cython.Py_ssize_t = 0
    for k in range(count):
        work[row + k] |= work[other + k]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def mark_below(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    work: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    n: cython.longlong,
    row: cython.Py_ssize_t,
    span: cython.longlong,
    known: cython.Py_ssize_t,
    leave: cython.longlong,
) -> cython.longlong:
    """Set in a row the bits of the live cells that the cell n goes on from: their numbers less `head`.

    known: where each entry has a number for each index, `span` entries for one: where nothing is tested, what comes from an entry on is known if its
    number is not 0. Returns the place of the number for which it stops, else -1. leave: the number of the first entry; less than 0: of all.
    """
    width: cython.Py_ssize_t = S[S_WIDTH]
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    low: cython.longlong = S[S_LOW]
    w: cython.Py_ssize_t = data + (n & mask) * width
    at: cython.Py_ssize_t = w + C_BOUNDS
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (words[w + C_KIND] >> FORM_BITS)
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    x: cython.Py_ssize_t = 0
    m: cython.longlong = 0
    free: cython.int = forms[f + F_COUNT] == 0
    known += forms[f + F_SHAPE] * span - head
    n = words[w + C_CHILD]
    while n >= head:
        if free != 0:
            if work[known + n] != 0:
                return known + n
            if leave != 0:
                work[known + n] = leave
            if leave > 0:
                leave = 0
        S[S_WALKED] += 1
        w = data + (n & mask) * width
        x = w + node
        if has_live(words, data, mask, width, x, head, low) == 0:
            if (words[x + N_FORM] & RISING) != 0:
                break  # older ones began earlier
            n = words[x + N_JUMP]
        elif may_pass(words, forms, x, f, at) == 0:
            n = words[x + N_JUMP]
        else:
            if passes(words, forms, values, w, f, at) != 0:
                m = n
                while m >= head:
                    w = data + (m & mask) * width
                    if words[w + C_START] < low:
                        break
                    set_bit(work, row, m - head)
                    m = words[w + C_REST]
            n = words[x + N_PREVIOUS]
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def rank_cells(
    words: cython.longlong[::1],
    work: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    head: cython.longlong,
    ranks: cython.Py_ssize_t,
    cells: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
) -> cython.int:
    """Put cells in the order of their positions, those of one event in that of their numbers: copies have greater numbers than the cells around."""
    gap: cython.Py_ssize_t = 1
    k: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    m: cython.longlong = 0
    position: cython.longlong = 0
    while 3 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:  # D. L. Shell's sort: most are in order
        for k in range(gap, count):
            n = work[cells + k]
            position = words[data + (n & mask) * width + C_POSITION]
            j = k
            while j >= gap:
                m = work[cells + j - gap]
                if words[data + (m & mask) * width + C_POSITION] < position or (
                    words[data + (m & mask) * width + C_POSITION] == position and m < n
                ):
                    break
                work[cells + j] = m
                j -= gap
            work[cells + j] = n
        gap //= 3
    for k in range(count):
        work[ranks + work[cells + k] - head] = k
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def find_rows(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    work: cython.longlong[::1],
    queue: cython.longlong[::1],
    outputs: cython.Py_ssize_t,
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
) -> cython.int:
    """Find the cells that those in the queue go on from, and their rows; put the first state, that of the trigger. -1 where `work` has no room.

    An unmarked cell has a row, too, but is in none: what it goes on from is.
    """
    head: cython.longlong = words[line + D_HEAD]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    room: cython.Py_ssize_t = work.shape[0]
    known: cython.Py_ssize_t = W_HEADER
    reached: cython.Py_ssize_t = 0
    below: cython.Py_ssize_t = 0
    ranks: cython.Py_ssize_t = 0
    cells: cython.Py_ssize_t = 0
    firsts: cython.Py_ssize_t = 0
    lengths: cython.Py_ssize_t = 0
    rows: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    span: cython.longlong = 0
    n: cython.longlong = 0
    m: cython.longlong = 0
    rank: cython.longlong = 0
    position: cython.longlong = -1
    most: cython.longlong = 1
    for k in range(outputs):
        if queue[3 * k + 1] - head >= span:
            span = queue[3 * k + 1] - head + 1
    size = (span >> 5) + 1
    reached = known + S[S_SHAPES] * span
    below = reached + size
    ranks = below + size
    cells = ranks + span
    if cells > room:
        return -1
    clear(work, known, S[S_SHAPES] * span)
    clear(work, reached, size)
    for k in range(outputs):
        set_bit(work, reached, queue[3 * k + 1] - head)
    n = highest(work, reached, span - 1)
    while n >= 0:
        count += 1
        mark_below(S, words, forms, work, data, mask, head, head + n, reached, span, known, -1)
        n = highest(work, reached, n - 1)
    firsts = cells + count + 1
    lengths = firsts + count + 1
    rows = lengths + count + 1
    if rows > room:
        return -1
    rank = count
    n = highest(work, reached, span - 1)
    while n >= 0:
        rank -= 1
        work[ranks + n] = rank
        work[cells + rank] = head + n
        n = highest(work, reached, n - 1)
    if S[S_PARTS] != 0 or S[S_LAYERS] != 0:
        rank_cells(words, work, data, mask, width, head, ranks, cells, count)
    size = (count >> 5) + 1
    row = rows + (count + 1) * size  # four rows more, to work with, one of the cells that supports have, and a first state of each cell
    if row + 5 * size + count + 1 > room:
        return -1
    clear(work, known, S[S_SHAPES] * span)
    clear(work, row + 4 * size, size)
    for k in range(count):
        n = work[cells + k]
        if is_shown(words[data + (n & mask) * width + C_KIND], S[S_HIDDEN]) != 0:
            set_bit(work, rows + (count + 5) * size, k)
        work[firsts + k] = k
        if words[data + (n & mask) * width + C_POSITION] == position:
            work[firsts + k] = work[firsts + k - 1]
            if k - work[firsts + k] + 1 > most:
                most = k - work[firsts + k] + 1
        position = words[data + (n & mask) * width + C_POSITION]
        clear(work, below, ((n - head) >> 5) + 1)
        m = mark_below(S, words, forms, work, data, mask, head, n, below, span, known, k + 1)
        row = rows + k * size
        clear(work, row, (k >> 5) + 1)
        if m >= 0:
            rank = work[m] - 1
            unite(work, row, rows + rank * size, work[lengths + rank])
        m = highest(work, below, n - head)
        while m >= 0:
            rank = work[ranks + m]
            if (words[data + ((head + m) & mask) * width + C_KIND] & LABELS) == UNMARKED:
                unite(work, row, rows + rank * size, work[lengths + rank])
            else:
                set_bit(work, row, rank)
            m = highest(work, below, m - 1)
        work[lengths + k] = (highest(work, row, k) + 32) >> 5
    work[cells + count] = -1
    work[firsts + count] = count
    work[lengths + count] = size
    row = rows + count * size
    clear(work, row, size)
    for k in range(outputs):
        set_bit(work, row, work[ranks + queue[3 * k + 1] - head])
    work[W_COUNT] = count
    work[W_SIZE] = size
    work[W_SETS] = ((most - 1) >> 5) + 1
    work[W_CELLS] = cells
    work[W_FIRSTS] = firsts
    work[W_LENGTHS] = lengths
    work[W_ROWS] = rows
    work[W_STATES] = rows + (count + 6) * size
    clear(work, work[W_STATES], count + 1)
    work[W_FREE] = work[W_STATES] + count + 1
    work[W_FOUND] = 0
    work[W_PLACES] = 0
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def state_hash(work: cython.longlong[::1], s: cython.Py_ssize_t) -> cython.longlong:
    """A hash of the state at s."""
    value: cython.longlong = work[s + M_CELL] + 31 * work[s + M_BASE]
    k: cython.Py_ssize_t = 0
    for k in range(2 * work[W_SETS]):
        value = (1000003 * value + work[s + M_SETS + k]) & 0x3FFFFFFF
    return value ^ (value >> 15)


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def make_places(work: cython.longlong[::1]) -> cython.int:
    """Make the table of states anew, at the end of `work`, twice as large. -1 where there is no room."""
    places: cython.longlong = 2 * work[W_PLACES]
    table: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    if places == 0:
        places = 16
    table = work.shape[0] - places
    if work[W_FREE] > table:
        return -1
    clear(work, table, places)
    work[W_PLACES] = places
    for k in range(work[W_COUNT] + 1):
        s = work[work[W_STATES] + k]
        while s != 0:
            at = table + (state_hash(work, s) & (places - 1))
            work[s + M_CHAIN] = work[at]
            work[at] = s
            s = work[s + M_NEXT]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def state_of(
    work: cython.longlong[::1], cell: cython.longlong, equal: cython.Py_ssize_t, more: cython.Py_ssize_t, before: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """The state of a cell, given the rows of where other matches may be; of one that supports have not, with the sets of the state before.

    -1 where there is no room for it.
    """
    shown: cython.Py_ssize_t = work[W_ROWS] + (work[W_COUNT] + 5) * work[W_SIZE]
    sets: cython.Py_ssize_t = work[W_SETS]
    s: cython.Py_ssize_t = work[W_FREE]
    first: cython.longlong = work[work[W_FIRSTS] + cell]
    n: cython.longlong = first
    found: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    if work[W_FOUND] >= work[W_PLACES] and make_places(work) < 0:
        return -1
    if s + M_SETS + 2 * sets > work.shape[0] - work[W_PLACES]:
        return -1
    work[s + M_CELL] = cell
    work[s + M_BASE] = first
    clear(work, s + M_SETS, 2 * sets)
    if before != 0 and has_bit(work, shown, cell) == 0:
        work[s + M_BASE] = work[before + M_BASE]
        unite(work, s + M_SETS, before + M_SETS, 2 * sets)
        n = work[W_COUNT] + 1
    while n <= work[W_COUNT] and work[work[W_FIRSTS] + n] == first:
        if before != 0 and has_bit(work, shown, n) == 0:
            n += 1
            continue
        if has_bit(work, more, n) != 0:
            set_bit(work, s + M_SETS + sets, n - first)
        elif has_bit(work, equal, n) != 0:
            set_bit(work, s + M_SETS, n - first)
        n += 1
    at = work.shape[0] - work[W_PLACES] + (state_hash(work, s) & (work[W_PLACES] - 1))
    found = work[at]
    while found != 0:
        k = 0
        if work[found + M_CELL] == cell and work[found + M_BASE] == work[s + M_BASE]:
            while k < 2 * sets and work[found + M_SETS + k] == work[s + M_SETS + k]:
                k += 1
            if k == 2 * sets:
                return found
        found = work[found + M_CHAIN]
    work[s + M_CHAIN] = work[at]
    work[at] = s
    work[s + M_EDGES] = 0
    work[s + M_NEXT] = work[work[W_STATES] + cell]
    work[work[W_STATES] + cell] = s
    work[W_FREE] = s + M_SETS + 2 * sets
    work[W_FOUND] += 1
    return s


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def unite_set(work: cython.longlong[::1], row: cython.Py_ssize_t, s: cython.Py_ssize_t, bits: cython.Py_ssize_t) -> cython.longlong:
    """Add to a row what the cells of a set of the state at s go on from; bits: where the set is. How many words that may have changed."""
    first: cython.longlong = work[s + M_BASE]
    n: cython.longlong = highest(work, bits, 32 * work[W_SETS] - 1)
    longest: cython.longlong = 0
    while n >= 0:
        unite(work, row, work[W_ROWS] + (first + n) * work[W_SIZE], work[work[W_LENGTHS] + first + n])
        if work[work[W_LENGTHS] + first + n] > longest:
            longest = work[work[W_LENGTHS] + first + n]
        n = highest(work, bits, n - 1)
    return longest


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def go_on(S: cython.longlong[::1], work: cython.longlong[::1], s: cython.Py_ssize_t) -> cython.int:
    """Find the states to which the one at s goes on, but for those in whose cell is a match with one event more. -1 where there is no room."""
    size: cython.Py_ssize_t = (work[s + M_BASE] >> 5) + 1  # more bits are not set
    length: cython.Py_ssize_t = work[work[W_LENGTHS] + work[s + M_CELL]]
    equal: cython.Py_ssize_t = work[W_ROWS] + (work[W_COUNT] + 1) * work[W_SIZE]
    more: cython.Py_ssize_t = equal + work[W_SIZE]
    waiting: cython.Py_ssize_t = more + work[W_SIZE]
    wanted: cython.Py_ssize_t = waiting + work[W_SIZE]
    shown: cython.Py_ssize_t = wanted + work[W_SIZE]
    row: cython.Py_ssize_t = work[W_ROWS] + work[s + M_CELL] * work[W_SIZE]
    edge: cython.Py_ssize_t = 0
    found: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    one: cython.longlong = 1
    cell: cython.longlong = 32 * size - 1
    following: cython.longlong = 0
    first: cython.longlong = 0
    lost: cython.int = 0
    if length == 0:
        return 0
    clear(work, equal, size)
    clear(work, more, size)
    unite_set(work, equal, s, s + M_SETS)
    unite_set(work, more, s, s + M_SETS + work[W_SETS])
    for k in range(size):
        work[waiting + k] = work[equal + k] | work[more + k]
    for k in range(length):
        work[wanted + k] = work[row + k] & ~work[more + k]
    following = highest(work, wanted, 32 * length - 1)
    while following >= 0:
        S[S_STEPS] += 1
        first = work[work[W_FIRSTS] + following]
        lost = 0
        cell = highest(work, waiting, cell)  # whatever is in a larger match before the next position
        while cell > following and work[work[W_FIRSTS] + cell] > first:
            S[S_STEPS] += 1
            row = work[W_ROWS] + cell * work[W_SIZE]
            length = work[work[W_LENGTHS] + cell]
            work[waiting + (cell >> 5)] &= ~(one << (cell & 31))
            unite(work, waiting, row, length)
            if has_bit(work, shown, cell) == 0 and has_bit(work, more, cell) == 0:
                unite(work, equal, row, length)
                cell = highest(work, waiting, cell)
                continue
            unite(work, more, row, length)
            for k in range(min(length, (following >> 5) + 1)):
                work[wanted + k] &= ~work[more + k]
            cell = highest(work, waiting, cell)
            if has_bit(work, more, following) != 0:
                lost = 1
                break
        if lost == 0:
            found = state_of(work, following, equal, more, s)
            edge = work[W_FREE]
            if found < 0 or edge + 2 > work.shape[0] - work[W_PLACES]:
                return -1
            work[edge + E_STATE] = found
            work[edge + E_NEXT] = work[s + M_EDGES]
            work[s + M_EDGES] = edge
            work[W_FREE] = edge + 2
        following = highest(work, wanted, following - 1)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def is_maximal(work: cython.longlong[::1], s: cython.Py_ssize_t) -> cython.int:
    """Whether the matches that begin in the cell of the state at s are part of no larger one."""
    k: cython.Py_ssize_t = 0
    waiting: cython.Py_ssize_t = work[W_ROWS] + (work[W_COUNT] + 1) * work[W_SIZE]
    shown: cython.Py_ssize_t = waiting + 4 * work[W_SIZE]
    cell: cython.longlong = work[s + M_BASE]
    one: cython.longlong = 1
    for k in range(work[W_SETS]):
        if work[s + M_SETS + work[W_SETS] + k] != 0:
            return 0
    clear(work, waiting, work[W_SIZE])
    unite_set(work, waiting, s, s + M_SETS)
    cell = highest(work, waiting, cell)
    while cell >= 0 and has_bit(work, shown, cell) == 0:
        work[waiting + (cell >> 5)] &= ~(one << (cell & 31))
        unite(work, waiting, work[W_ROWS] + cell * work[W_SIZE], work[work[W_LENGTHS] + cell])
        cell = highest(work, waiting, cell)
    return cell < 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def keep_edges(
    work: cython.longlong[::1],
    words: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    s: cython.Py_ssize_t,
) -> cython.int:
    """Keep of the edges of the state at s those to states that are kept, by falling keys of their cells; they come with rising ranks."""
    edge: cython.Py_ssize_t = work[s + M_EDGES]
    following: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    m: cython.longlong = 0
    start: cython.longlong = 0
    other: cython.longlong = 0
    work[s + M_EDGES] = 0
    while edge != 0:
        following = work[edge + E_NEXT]
        if work[work[edge + E_STATE] + M_EDGES] != DROPPED:
            n = work[work[W_CELLS] + work[work[edge + E_STATE] + M_CELL]]
            start = words[data + (n & mask) * width + C_START]
            place = s + M_EDGES - E_NEXT
            while work[place + E_NEXT] != 0:
                m = work[work[W_CELLS] + work[work[work[place + E_NEXT] + E_STATE] + M_CELL]]
                other = words[data + (m & mask) * width + C_START]
                if start > other or (start == other and n > m):
                    break
                place = work[place + E_NEXT]
            work[edge + E_NEXT] = work[place + E_NEXT]
            work[place + E_NEXT] = edge
        edge = following
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def find_maximal(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    work: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
) -> cython.int:
    """Find the maximal matches that end in the cells of the queue: an exit, or 0. The first level then is at the first of them."""
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    width: cython.Py_ssize_t = S[S_WIDTH]
    n: cython.longlong = 0
    rank: cython.longlong = 0
    k: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    if work.shape[0] <= W_HEADER or find_rows(S, words, forms, work, queue, levels[L_SIZE], line, b) < 0:
        return EXIT_COUNTS
    if is_unanswered(forms) != 0:
        return EXIT_ASKED
    rank = work[W_COUNT]
    S[S_STEPS] = 0
    # The trigger's own set is its own bit, in the first of the rows to work with.
    k = work[W_ROWS] + (rank + 1) * work[W_SIZE]
    clear(work, k, 2 * work[W_SIZE])
    set_bit(work, k, rank)
    if state_of(work, rank, k, k + work[W_SIZE], 0) < 0:
        return EXIT_COUNTS
    while rank >= 0:
        s = work[work[W_STATES] + rank]
        while s != 0:
            if go_on(S, work, s) < 0:
                return EXIT_COUNTS
            if S[S_STEPS] > S[S_MOST_STEPS]:
                return EXIT_STEPS
            s = work[s + M_NEXT]
        rank -= 1
    for k in range(work[W_COUNT] + 1):
        s = work[work[W_STATES] + k]
        while s != 0:
            keep_edges(work, words, data, mask, width, s)
            n = work[work[W_CELLS] + k]
            if work[s + M_EDGES] == 0 and (n < 0 or words[data + (n & mask) * width + C_CHILD] >= 0 or is_maximal(work, s) == 0):
                work[s + M_EDGES] = DROPPED
            s = work[s + M_NEXT]
    levels[L_CURSOR] = work[work[work[W_STATES] + work[W_COUNT]] + M_EDGES]
    S[S_WALKED] += S[S_STEPS]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def enumerate_maximal(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    work: cython.longlong[::1],
    levels: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    line: cython.Py_ssize_t,
    b: cython.Py_ssize_t,
    segment: cython.int,
) -> cython.int:
    """Give the maximal matches of a trigger, from where `levels` and S say: an exit, or 0 when all are given."""
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    d: cython.Py_ssize_t = S[S_DEPTH]
    nm: cython.longlong = S[S_BUFFERED_MATCHES]
    npos: cython.longlong = S[S_BUFFERED_POSITIONS]
    v: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    s: cython.Py_ssize_t = 0
    rc: cython.int = 0
    while True:
        v = d * LEVEL_WIDTH
        if nm >= out_segments.shape[0] or npos + d + 1 > out_positions.shape[0]:
            rc = EXIT_OUTPUT
            break
        if d + 2 > levels.shape[0] // LEVEL_WIDTH:
            rc = EXIT_STACK
            break
        if S[S_WALKED] > S[S_BUDGET]:
            S[S_WALKED] = 0
            rc = EXIT_PAUSE
            break
        if levels[v + L_CURSOR] <= 0:
            if d == 0:
                break
            d -= 1
            v -= LEVEL_WIDTH
            levels[v + L_CURSOR] = work[levels[v + L_CURSOR] + E_NEXT]
            continue
        S[S_WALKED] += 1
        s = work[levels[v + L_CURSOR] + E_STATE]
        levels[v + L_CELL] = work[work[W_CELLS] + work[s + M_CELL]]
        if work[s + M_EDGES] != 0:
            d += 1
            levels[v + LEVEL_WIDTH + L_CURSOR] = work[s + M_EDGES]
            continue
        for k in range(d, -1, -1):
            w = data + (levels[k * LEVEL_WIDTH + L_CELL] & mask) * S[S_WIDTH]
            out_positions[npos] = words[w + C_POSITION]
            out_labels[npos] = words[w + C_KIND] & LABELS
            npos += 1
        out_segments[nm] = segment
        nm += 1
        out_offsets[nm] = npos
        S[S_GIVEN] += 1
        levels[v + L_CURSOR] = work[levels[v + L_CURSOR] + E_NEXT]
        if S[S_GIVEN] == S[S_LIMIT]:
            break
    S[S_DEPTH] = d
    S[S_BUFFERED_MATCHES] = nm
    S[S_BUFFERED_POSITIONS] = npos
    if rc == 0:
        S[S_MATCHES] += S[S_GIVEN]
        S[S_ENUMERATING] = 0
    return rc
