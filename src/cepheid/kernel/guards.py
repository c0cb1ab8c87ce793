# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of automata with guards: letters and values of events in, matches out, over groups of partial matches that nobody visits one by one.

One source that Cython compiles and CPython also runs as it is; `cepheid.engine.evaluations.guards.guarded_run` drives it (exit codes as in
`cepheid.kernel.match`). docs/theory/guards-kernel.md says how it works, with an example; docs/decisions/0004-guards.md says why.

Its rooms, by the life of an event: `run` here skips, and makes room, also by `_guards_free`; `_guards_ask` finds what an event goes on from, in
lists (`_guards_lists`) that are found by equal values (`_guards_hash`), and made before where they come from layers (`_guards_layers`);
`_guards_compute` and `_guards_memo` have the tests that compute; `_guards_enter` puts its cells there; `_guards_give` gives matches, counted or
compared by `_guards_count`, or found by `_guards_maximal`. `_guards_parts` is for what is chosen inside the pattern, by the copies of `_guards_walk`;
`_guards_next` finds what is next. `_guards_layout` names all words.
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
from cepheid.kernel._guards_ask import ask
from cepheid.kernel._guards_enter import enter_all, keep_values, sets_of
from cepheid.kernel._guards_free import free_cells
from cepheid.kernel._guards_give import begin_giving, give
from cepheid.kernel._guards_hash import make_table
from cepheid.kernel._guards_layers import make_groups
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_lists import shorten
from cepheid.kernel._guards_memo import is_unanswered
from cepheid.kernel._guards_parts import end_parts, next_of_parts

__all__ = ["COMPILED", "EXITS", "FIELDS", "run"]

COMPILED = cython.compiled


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def full_ring(
    words: cython.longlong[::1],
    b: cython.Py_ssize_t,
    directory: cython.Py_ssize_t,
    line: cython.Py_ssize_t,
    width: cython.Py_ssize_t,
    oldest: cython.longlong,
    since: cython.longlong,
    wanted: cython.longlong,
    timed: cython.int,
) -> cython.int:
    """The ring of the block at b that has no room for an event that makes so many cells: 1 that of cells, 0 that of starts; -1: both have.

    Where cells need room, those before number `since` are freed, and those before position `oldest`. O(cells that are freed).
    """
    head: cython.longlong = words[line + D_HEAD]
    tail: cython.longlong = words[line + D_TAIL]
    mask: cython.longlong = words[line + D_MASK]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    if tail - head + wanted > mask + 1:
        if since > head:
            head = since if since < tail else tail
        while head != tail and words[data + (head & mask) * width + C_POSITION] < oldest:
            head += 1
        words[line + D_HEAD] = head
        if tail - head + wanted > mask + 1:
            return 1
    if timed != 0 and words[directory + D_TAIL] - words[directory + D_HEAD] > words[directory + D_MASK]:
        return 0
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def behind_closed(
    words: cython.longlong[::1],
    b: cython.Py_ssize_t,
    line: cython.Py_ssize_t,
    low: cython.longlong,
    time: cython.longlong,
    window: cython.ulonglong,
) -> cython.longlong:
    """As `first_open` where a match may begin before its first event: the position behind the newest start that has left the window."""
    head: cython.longlong = words[line + D_HEAD]
    now: cython.ulonglong = time
    then: cython.ulonglong = 0
    w: cython.Py_ssize_t = 0
    while head != words[line + D_TAIL]:
        w = b + words[line + D_DATA] + 2 * (head & words[line + D_MASK])
        then = words[w + 1]
        if now - then <= window:
            break
        if words[w] >= low:
            low = words[w] + 1
        head += 1
    words[line + D_HEAD] = head
    words[b + B_LOW] = low
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def begin_cells(
    words: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    width: cython.Py_ssize_t,
    columns: cython.Py_ssize_t,
    first: cython.longlong,
    stop: cython.longlong,
    begin: cython.longlong,
    q: cython.Py_ssize_t,
) -> cython.int:
    """Let new cells begin no later than their event does, if its label says so; q: the macro state that they go on from. columns: of `places`."""
    n: cython.longlong = 0
    w: cython.Py_ssize_t = 0
    label: cython.longlong = 0
    for n in range(first, stop):
        w = data + (n & mask) * width
        label = words[w + C_KIND] & LABELS
        if words[w + C_START] > begin and label != UNMARKED and (q == 0 or (places[label * columns] & SAYS) != 0):
            words[w + C_START] = begin
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def drop_rest(
    words: cython.longlong[::1],
    drops: cython.const[cython.longlong][::1],
    b: cython.Py_ssize_t,
    codes: cython.Py_ssize_t,
    c: cython.Py_ssize_t,
    macros: cython.Py_ssize_t,
    tail: cython.longlong,
    oldest: cython.longlong,
) -> cython.longlong:
    """Drop the groups of the macro states without a bit of their own that a letter ends; 1 where one of the others lives."""
    live: cython.longlong = 0
    q: cython.Py_ssize_t = 0
    for q in range(REST, macros):
        if ((drops[((q - REST >> REST_BITS) + 1) * codes + c] >> (q - REST & REST_MASK)) & 1) != 0:
            words[b + B_GREATEST + q] = -1
            words[b + B_GREATEST + macros + q] = tail
        if words[b + B_GREATEST + q] >= oldest:
            live = 1
    return live


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.uint][::1],
    times: cython.const[cython.longlong][::1],
    cuts: cython.const[cython.longlong][::1],
    rows: cython.const[cython.int][::1],
    vetoed: cython.const[cython.uchar][::1],
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
    layered: cython.const[cython.int][::1],
    forms: cython.const[cython.longlong][::1],
    sets: cython.longlong[::1],
    buckets: cython.longlong[::1],
    key: cython.longlong[::1],
    order: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    known: cython.longlong[::1],
    supports: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    chosen: cython.longlong[::1],
    firsts: cython.const[cython.longlong][::1],
    out_offsets: cython.longlong[::1],
    out_positions: cython.longlong[::1],
    out_labels: cython.ushort[::1],
    out_segments: cython.int[::1],
    out_counts: cython.ulonglong[::1],
    marked: cython.uchar[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters (index into lut), times, cuts, rows (of each segment's block, 0: the workplace, reset first), values (the words of each event's
    values), columns (stride 3: where the word of a value stands, the word with its NULL bit, that bit), vetoed (of which rows no matches are given or
    counted; empty: of none).
    TABLES: lut (letter -> code, -1 unknown); of a code first_of[macro state * codes + code] (first region, -1 none), drops and stirs (macro states as
    bits: whose groups end, whose groups do something; 1 is the initial one, 1 << REST is any from there on, and more rows of drops say which of these
    end), cells_of (how many cells it makes at most). regions: by columns R_; from R_TESTS on, per test of its form, the number of a value in
    `columns`, and what this value is to be more or less to be its two bounds.
    operands: lists of values, by number in `columns`: those that are asked to be equal, and a number and as many that become slots.
    operands that are less than 0: -1 - what is made of a slot that is carried: its number, how (MADE_), and the number of the value of the event.
    shapes: (macro state * shapes + index) * shape_width: by columns I_: how many slots are tested, how many are the key (-1: no such index), how many
    of these, the last, are carried (-1: it has layers), the index by the others alone, then the key, then those tested.
    layered: by columns Y_ (stride Y_SLOTS + slots), see `_guards_layers`; the event of a region without a list of equal values (-1) is a layer.
    forms: by columns F_ (form * form_width): index, number of tests, and for each whether it wants values OUTSIDE of its bounds, and NULLS, its slot,
    and the place of this slot among those that the index has tested. Behind them stand sets of values, then programs; sets: the same array.
    buckets: the last set that was made, by hash.
    BLOCKS: words, offsets, template, sizes, pool, widths (see `cepheid.engine.memory.blocks.Blocks`).
    SCRATCH: key, order, levels, queue; counts (keys per place, then two numbers: of all matches of an event, and how many are still passed), known
    (stride 2: a tag, and the least start; of a support, its start), supports (with a strategy that chooses alone; stride 3, by place: columns LINK_;
    with MAX what `_guards_maximal` works with).
    PARTS: places (of each label a word of bits: whether its events say where a match begins, where any may, end a part, begin one of what is next;
    then one for each part: whether they begin it, end it, and are in its supports), chosen (see `_guards_parts`). firsts: of each row the first
    position of its time, where what is next is chosen or found.
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
    budget: cython.longlong = S[S_BUDGET]
    codes: cython.Py_ssize_t = S[S_CODES]
    macros: cython.Py_ssize_t = S[S_MACROS]
    slots: cython.Py_ssize_t = S[S_SLOTS]
    parts: cython.Py_ssize_t = S[S_PARTS]
    says: cython.Py_ssize_t = S[S_SAYS]
    life: cython.longlong = S[S_LIFE]
    now: cython.ulonglong = 0
    then: cython.ulonglong = 0
    floor: cython.Py_ssize_t = S[S_FLOOR]
    timely: cython.int = firsts.shape[0] != 0
    dated: cython.int = S[S_BEGINS] >= 0  # cells know where their event begins
    together: cython.int = S[S_COUNTING] == NEXT  # positions are those of the first event of the time
    width: cython.Py_ssize_t = S[S_WIDTH]
    event_words: cython.Py_ssize_t = S[S_EVENT_WORDS]
    form_width: cython.Py_ssize_t = S[S_FORM_WIDTH]
    tests: cython.Py_ssize_t = S[S_TESTS]
    kept_at: cython.Py_ssize_t = C_BOUNDS + 2 * tests
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
    event: cython.Py_ssize_t = 0
    made: cython.Py_ssize_t = 0
    outputs: cython.Py_ssize_t = 0
    kept: cython.Py_ssize_t = 0
    begins: cython.int = 0
    seen: cython.int = 0  # some cell is a marked event
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
    more: cython.longlong = 0  # room that the groups of the event at `i` need beside `cells_of`
    lacking: cython.longlong = 0  # room that the groups need that it asks for, and that are not made yet
    groups: cython.Py_ssize_t = 0
    group: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    granted: cython.longlong = 0
    ends: cython.int = 0  # the region's event ends a part
    one: cython.longlong = 1

    with cython.nogil:
        if segment >= 0:
            b = offsets[rows[segment]]
            directory = b + plain
            line = directory + 4
            live = words[b + B_LIVE]
        while True:
            # ------------------------------------------------------------------------------------------------ give
            if S[S_ENUMERATING] != 0:
                rc = give(
                    S,
                    words,
                    forms,
                    places,
                    levels,
                    queue,
                    counts,
                    known,
                    supports,
                    out_offsets,
                    out_positions,
                    out_labels,
                    out_segments,
                    out_counts,
                    line,
                    b,
                    rows[segment],
                    segment,
                    shift + i,
                )
                if rc != 0:
                    if S[S_ENUMERATING] == COUNT:
                        argument = (1 + S[S_SHAPES]) * (words[line + D_MASK] + 1)
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
            if budget < 0 and more == 0 and lacking == 0:
                rc = EXIT_PAUSE
                break
            budget -= 2 + S[S_WALKED]
            S[S_WALKED] = 0
            # ------------------------------------------------------------------------------------------------ window
            p = firsts[i] if together != 0 else shift + i
            if life >= 0 and live > 1:
                now = times[i]
                then = words[b + B_NEWEST_TIME]
                if now - then > life:  # nothing that is there can go on: as if it had been consumed
                    words[b + B_LOW] = p
                    live = 1
            oldest = words[b + B_LOW]
            if count_window != 0 and oldest <= p - count_window:
                oldest = p - count_window + 1
            if timed != 0 and says < 0:
                oldest = first_open(words, b, directory, oldest, p, times[i], window)
            elif timed != 0:
                oldest = behind_closed(words, b, directory, oldest, times[i], window)
            if floor >= 0 and values[i * event_words + columns[3 * floor]] >= oldest:
                oldest = values[i * event_words + columns[3 * floor]] + 1
            # ------------------------------------------------------------------------------------------------ room
            tail = words[line + D_TAIL]
            mask = words[line + D_MASK]
            data = b + words[line + D_DATA]
            full = full_ring(words, b, directory, line, width, oldest, words[b + B_GREATEST + macros], cells_of[c] + more + lacking, timed)
            head = words[line + D_HEAD]
            if full == 1 and S[S_PASSES] != 0:
                if order.shape[0] <= mask:
                    rc = EXIT_STACK
                    argument = mask >> 2
                    break
                if free_cells(S, words, forms, order, line, b, live, cells_of[c] + more) != 0:
                    continue
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
            if room < cells_of[c] + more + lacking:
                rc = EXIT_STACK
                argument = cells_of[c] + more + lacking
                break
            if beside != 0 and words[b + B_TABLED] != mask:
                make_table(S, words, shapes, key, line, b)
            event = i * event_words
            # ------------------------------------------------------------------------------------------------ layers
            if S[S_LAYERS] != 0:
                lacking = make_groups(
                    S,
                    words,
                    values,
                    columns,
                    first_of,
                    regions,
                    operands,
                    shapes,
                    forms,
                    layered,
                    key,
                    order,
                    levels,
                    queue,
                    line,
                    b,
                    c,
                    event,
                    oldest,
                    cells_of[c] + more,
                )
                tail = words[line + D_TAIL]
                if lacking < 0:
                    rc = EXIT_PAUSE if lacking == -1 else EXIT_STACK
                    S[S_WALKED] = 0
                    break
                if lacking > 0:
                    continue
            # ------------------------------------------------------------------------------------------------ ask
            made = 0
            outputs = 0
            kept = 0
            begins = 0
            seen = 0
            linked = 0
            granted = more
            more = 0
            left = live & stirs[c]
            q = 0
            while left != 0:
                if (left & 1) == 0:
                    left >>= 1
                    q += 1
                    continue
                left >>= 1
                if q >= REST and q < macros - 1:
                    left = 1
                if q != 0 and words[b + B_GREATEST + q] < oldest:
                    if q < REST:
                        live &= ~(one << q)
                    q += 1
                    continue
                r = first_of[q * codes + c]
                while r >= 0:
                    w = data + ((tail + made) & mask) * width
                    at = w + C_BOUNDS
                    child = -1
                    start = p
                    groups = 1
                    ends = 0
                    if parts != 0 and (regions[r + R_KIND] & LABELS) != UNMARKED:
                        ends = places[(regions[r + R_KIND] & LABELS) * (1 + parts)] & ENDS_PARTS
                        if ends != 0:
                            k = next_of_parts(S, chosen, places, regions[r + R_KIND], segment, shift + i, firsts[i] if timely != 0 else 0)
                            if k >= 0:
                                rc = EXIT_PART
                                argument = k
                                break
                            if k == -2:
                                r = regions[r + R_NEXT]
                                continue
                    if q == 0:
                        begins = 1
                    elif regions[r + R_EQUALS] < 0:
                        queue[0] = words[b + B_GREATEST + q]
                        queue[2] = -1
                    else:
                        groups = ask(
                            S,
                            words,
                            values,
                            columns,
                            regions,
                            operands,
                            shapes,
                            forms,
                            key,
                            levels,
                            queue,
                            b,
                            data,
                            mask,
                            head,
                            oldest,
                            event,
                            q,
                            r,
                            at,
                        )
                        if groups == -1:
                            rc = EXIT_STACK
                            break
                        # One group has the room of its region.
                        k = made + groups + cells_of[c]
                        if groups < 0 or (groups > 1 and (k > room or tail - head + k > mask + 1)):
                            more = made + (groups if groups >= 0 else -1 - groups)
                            break
                    if ends != 0 and groups > 0:
                        n = room if room < mask + 1 - tail + head else mask + 1 - tail + head
                        groups = end_parts(
                            S,
                            words,
                            values,
                            columns,
                            forms,
                            shapes,
                            chosen,
                            places,
                            levels,
                            queue,
                            data,
                            mask,
                            head,
                            oldest,
                            event,
                            regions[r + R_KIND],
                            groups,
                            p,
                            firsts[i] if timely != 0 else 0,
                            tail + made,
                            tail + n - cells_of[c],
                        )
                        if groups == -2:
                            rc = EXIT_STACK
                            argument = 2 * order_room
                            break
                        if groups < 0:
                            more = 2 * (granted + made + cells_of[c])
                            break
                        for n in range(tail + made, tail + made + S[S_COPIED]):
                            words[data + (n & mask) * width + kept_at + slots - 2] = shift + i
                        if S[S_COPIED] != 0 and timely != 0:
                            words[w + kept_at + slots - 3] = shift + i if together != 0 else firsts[i]
                            if dated != 0:
                                words[w + kept_at + slots - 4] = 0
                        made += S[S_COPIED]
                        ends = S[S_COPIED] != 0
                    for group in range(groups):
                        n = tail + made
                        w = data + (n & mask) * width
                        if q != 0:
                            start = queue[3 * group]
                            child = queue[3 * group + 2]
                        if group != 0 or ends != 0:
                            for k in range(2 * forms[form_width * regions[r + R_FORM] + F_COUNT]):
                                words[w + C_BOUNDS + k] = words[at + k]
                        made += 1
                        words[w + C_POSITION] = p
                        words[w + C_START] = start
                        words[w + C_CHILD] = child
                        words[w + C_REST] = -1
                        words[w + C_KIND] = regions[r + R_KIND]
                        # It goes on from copies alone; what begins there may still be chosen by what they end.
                        if ends != 0 and (places[(regions[r + R_KIND] & LABELS) * (1 + parts)] & BEGINS_NEXT) == 0:
                            words[w + C_KIND] &= (one << FORM_BITS) - 1
                        if regions[r + R_FINAL] != 0:
                            order[order_room + outputs] = n
                            outputs += 1
                        if regions[r + R_TARGET] >= 0:
                            kept = made
                            if child >= 0:
                                linked = 1
                            s = w
                            if child >= 0:  # a copy may come from another macro state, and keep other values
                                s = data + ((child if ends == 0 else queue[3 * group + 1]) & mask) * width
                            if (
                                keep_values(
                                    S, words, values, columns, operands, sets, buckets, event, regions[r + R_MADE], kept_at, slots, w, s
                                )
                                < 0
                            ):
                                rc = EXIT_SETS
                                break
                            if regions[r + R_EQUALS] < 0:  # a layer has no values
                                words[w + C_NULLS] = -1
                    if rc != 0:
                        break
                    if parts != 0 or timely != 0:
                        for group in range(groups):
                            w = data + ((tail + made - groups + group) & mask) * width
                            if timely != 0:
                                words[w + kept_at + slots - 3] = shift + i if together != 0 else firsts[i]
                            if dated != 0:
                                words[w + kept_at + slots - 4] = values[event + columns[3 * S[S_BEGINS]]]
                            words[w + kept_at + slots - 2] = shift + i
                            words[w + kept_at + slots - 1] = 0
                    if says >= 0:
                        begin_cells(
                            words,
                            places,
                            data,
                            mask,
                            width,
                            1 + parts,
                            tail + made - groups,
                            tail + made,
                            values[event + columns[3 * says]],
                            q,
                        )
                    if regions[r + R_SETS] != 0 and groups > S[S_SETS_LIMIT]:
                        n = tail + made - groups
                        # PERF: two calls, as in `gather`.
                        if sets_of(S, words, forms, key, order, line, b, n, groups, regions[r + R_SETS]) > S[S_SETS_LIMIT]:
                            argument = sets_of(S, words, forms, key, order, line, b, n, groups, regions[r + R_SETS])
                            rc = EXIT_GROUPS
                            break
                    if (regions[r + R_KIND] & LABELS) != UNMARKED:
                        seen |= groups != 0
                    else:
                        for group in range(groups):
                            w = data + ((tail + made - groups + group) & mask) * width
                            shorten(S, words, forms, data, mask, head, oldest, w, levels, queue, groups)
                    r = regions[r + R_NEXT]
                if rc != 0 or more != 0:
                    break
                q += 1
            if is_unanswered(forms) != 0:
                rc = EXIT_ASKED
            if rc != 0:
                break
            if more != 0:  # look at the event again, with room for a cell of each group
                continue
            # ------------------------------------------------------------------------------------------------ enter
            left = live & drops[c]
            live &= ~left
            if left >> REST != 0:
                live |= drop_rest(words, drops, b, codes, c, macros, tail, oldest) << REST
                left &= (one << REST) - 1
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
            if seen != 0:
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
                    kept = 0
                    if consume == 2:
                        epoch += 1
                        words[b + B_EPOCH] = epoch
            # PERF: the cells behind the last that something can go on from are there until the matches are given; the next event has their places.
            words[line + D_TAIL] = tail + kept
            if kept != 0:
                words[b + B_LIVE] = live
                if life >= 0:
                    words[b + B_NEWEST_TIME] = times[i]
                enter_all(S, words, shapes, key, order, queue, line, b, tail, made, oldest)
                live = words[b + B_LIVE]
            if outputs != 0 and limit != 0 and (vetoed.shape[0] == 0 or vetoed[i] == 0):
                begin_giving(S, words, order, levels, queue, data, mask, outputs, oldest)
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
