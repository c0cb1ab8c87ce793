"""Parts inside a pattern of whose matches some are chosen: at an event that ends one, partial matches go on from these. A room of `guards`.

The chosen supports come in, by the events that end them: another run has found them (`guarded_parts_run`). What an event that ends a part would go on
from is restricted to one of them after the other (`_guards_walk`); where the event begins the part, too, nothing is before it, and nothing is copied.
Where an event ends several parts they are restricted to one after the other: the walk of the next one meets copies, too.

Of THEN the fronts of what is next stand in the place of supports, see `_guards_next`; under ACTIVE_OFFICE they say where a match begins alone.

In `chosen` a support is the number of its segment, how many positions it has, the one of the event that ends it, and these. First there, for each
part, what H_ names: where the next support is, where there are no more, and whether none will come; of what is next, whether fronts are read all at
once (1) or apart (2), and the number of the value of an event that is the floor then; and bits that say what may stand beside a support (see LOOSE_).
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_ask import greatest_of
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_walk import narrow, restrict

# ------------------------------------------------------------------------------------------------ what is chosen


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def next_chosen(
    chosen: cython.longlong[::1], part: cython.Py_ssize_t, segment: cython.longlong, position: cython.longlong
) -> cython.Py_ssize_t:
    """Where the first chosen support of a part stands that ends at an event; -1: there is none, -2: that is not known yet."""
    at: cython.Py_ssize_t = chosen[HEAD_WIDTH * part + H_AT]
    end: cython.Py_ssize_t = chosen[HEAD_WIDTH * part + H_END]
    found: cython.Py_ssize_t = 0
    while at < end and (chosen[at] < segment or (chosen[at] == segment and chosen[at + 2] < position)):
        at += 3 + chosen[at + 1]
    chosen[HEAD_WIDTH * part + H_AT] = at
    found = at
    while at < end and chosen[at] == segment and chosen[at + 2] == position:
        at += 3 + chosen[at + 1]
    if at == end and chosen[HEAD_WIDTH * part + H_DONE] == 0:
        return -2  # more may follow
    return found if at > found else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def next_of_parts(
    S: cython.longlong[::1],
    chosen: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    kind: cython.longlong,
    segment: cython.longlong,
    position: cython.longlong,
    time: cython.longlong,
) -> cython.Py_ssize_t:
    """Go to what is chosen of the parts that an event ends: -1 once that is done, -2 where nothing is; or the part of which it is not known yet.

    time: the first place of the event's time.
    """
    at: cython.Py_ssize_t = (kind & LABELS) * (1 + S[S_PARTS]) + 1
    part: cython.Py_ssize_t = 0
    found: cython.Py_ssize_t = 0
    for part in range(S[S_PARTS]):
        if (places[at + part] & PART_ENDS) != 0:
            found = next_chosen(chosen, part, segment, position if chosen[HEAD_WIDTH * part + H_RULE] == 0 else time)
            if found < 0:
                return part if found == -2 else -2
    return -1


# ------------------------------------------------------------------------------------------------ an event that ends parts


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def end_of_time(chosen: cython.longlong[::1], part: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the supports of a part end that end at the event, or at its time."""
    at: cython.Py_ssize_t = chosen[HEAD_WIDTH * part + H_AT]
    segment: cython.longlong = chosen[at]
    position: cython.longlong = chosen[at + 2]
    while at < chosen[HEAD_WIDTH * part + H_END] and chosen[at] == segment and chosen[at + 2] == position:
        at += 3 + chosen[at + 1]
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def begin_at_end(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    chosen: cython.longlong[::1],
    levels: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    part: cython.Py_ssize_t,
    place: cython.longlong,
    f: cython.Py_ssize_t,
    bounds: cython.Py_ssize_t,
    groups: cython.Py_ssize_t,
    begin: cython.longlong,
    floor: cython.longlong,
) -> cython.Py_ssize_t:
    """As `end_part`, where the event begins the part, too: nothing is copied. place: of the event in the part.

    Where what is next is chosen its own tests get narrower bounds.
    """
    values: cython.Py_ssize_t = C_BOUNDS + 2 * S[S_TESTS]
    node: cython.Py_ssize_t = values + S[S_SLOTS] + S[S_NODE_WIDTH] * forms[f + F_SHAPE]
    support: cython.Py_ssize_t = chosen[HEAD_WIDTH * part + H_AT]
    stop: cython.Py_ssize_t = end_of_time(chosen, part)
    before: cython.longlong = -1
    found: cython.longlong = 0
    n: cython.longlong = 0
    left: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    if chosen[HEAD_WIDTH * part + H_RULE] == 0:
        while support < stop:
            if chosen[support + 1] == ((place & PART_SHOWN) != 0) and (
                chosen[support + 1] == 0 or chosen[support + 3] == chosen[support + 2]
            ):
                return groups
            support += 3 + chosen[support + 1]
        return 0
    while support < stop and chosen[support + 3] != begin:
        before = chosen[support + 3]
        support += 3 + chosen[support + 1]
    if support >= stop:
        return 0
    narrow(words, forms, f, bounds, part, before if before > floor else floor, begin - 1)
    for k in range(groups):
        n = queue[3 * k + 2]
        found = greatest_of(S, words, forms, data, mask, S[S_WIDTH], values, node, head, low, n, f, bounds, levels, queue, groups + 1)
        if found == -2:
            return -2
        if found >= 0:
            queue[3 * left] = words[data + (found & mask) * S[S_WIDTH] + C_START]
            queue[3 * left + 1] = queue[3 * k + 1]
            queue[3 * left + 2] = found if (words[data + (n & mask) * S[S_WIDTH] + node + N_FORM] & RISING) != 0 else n
            left += 1
    return left


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def end_part(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    forms: cython.const[cython.longlong][::1],
    shapes: cython.const[cython.int][::1],
    chosen: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    nodes: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    part: cython.Py_ssize_t,
    place: cython.longlong,
    f: cython.Py_ssize_t,
    bounds: cython.Py_ssize_t,
    groups: cython.Py_ssize_t,
    begin: cython.longlong,
    floor: cython.longlong,
    m: cython.longlong,
    most: cython.longlong,
) -> cython.Py_ssize_t:
    """Restrict the groups of the queue, that end a part at an event, to what is chosen there: how many there are then.

    place: of the event in the part. begin: the first place of the time at which it begins, where what is next is chosen. The copies have
    the numbers from m on, up to `most`, less a cell for each group; S has how many they are. -1 where cells have no room, -2 where nodes or the queue
    have none.
    """
    support: cython.Py_ssize_t = chosen[HEAD_WIDTH * part + H_AT]
    stop: cython.Py_ssize_t = end_of_time(chosen, part)
    following: cython.Py_ssize_t = 0
    rule: cython.longlong = chosen[HEAD_WIDTH * part + H_RULE]
    room: cython.Py_ssize_t = queue.shape[0] // 3 - PUSHED
    found: cython.Py_ssize_t = groups
    k: cython.Py_ssize_t = 0
    n: cython.longlong = 0
    left: cython.longlong = 0
    goes: cython.int = 0
    before: cython.longlong = -1
    first: cython.longlong = m
    while support < stop:
        following = support + 3 + chosen[support + 1] if rule != 1 else stop
        left = 0
        if rule != 1:
            left = chosen[support + 1] - ((place & PART_SHOWN) != 0)
        # A support has this event, or not; a front begins no later than that.
        goes = left >= 0 and ((place & PART_SHOWN) == 0 or chosen[support + 3 + left] == chosen[support + 2]) if rule == 0 else 1
        left *= 2
        if rule != 0 and (place & PART_SAYS) != 0:
            goes = begin >= chosen[support + 3]
            left += begin == chosen[support + 3]
        if goes != 0:
            for k in range(groups):
                if found >= room:
                    return -2
                m = restrict(
                    S,
                    words,
                    forms,
                    shapes,
                    chosen,
                    places,
                    nodes,
                    queue,
                    data,
                    mask,
                    head,
                    low,
                    support,
                    following,
                    left,
                    before,
                    floor,
                    queue[3 * k + 2],
                    f,
                    bounds,
                    part,
                    found + 1,
                    m,
                    most - 1 - found + groups,
                )
                if m < 0:
                    return m
                n = nodes[nodes.shape[0] - 1]
                if n >= 0:
                    queue[3 * found] = words[data + (n & mask) * S[S_WIDTH] + C_START]
                    queue[3 * found + 1] = queue[3 * k + 1]
                    queue[3 * found + 2] = n
                    found += 1
        if rule != 0:
            before = chosen[support + 3]
        support = following
    for k in range(3 * (found - groups)):
        queue[k] = queue[3 * groups + k]
    S[S_COPIED] += m - first
    return found - groups


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def end_parts(
    S: cython.longlong[::1],
    words: cython.longlong[::1],
    values: cython.const[cython.longlong][::1],
    columns: cython.const[cython.longlong][::1],
    forms: cython.const[cython.longlong][::1],
    shapes: cython.const[cython.int][::1],
    chosen: cython.longlong[::1],
    places: cython.const[cython.longlong][::1],
    nodes: cython.longlong[::1],
    queue: cython.longlong[::1],
    data: cython.Py_ssize_t,
    mask: cython.longlong,
    head: cython.longlong,
    low: cython.longlong,
    event: cython.Py_ssize_t,
    kind: cython.longlong,
    groups: cython.Py_ssize_t,
    position: cython.longlong,
    time: cython.longlong,
    m: cython.longlong,
    most: cython.longlong,
) -> cython.Py_ssize_t:
    """Restrict the groups of the queue, that end parts at an event, to what is chosen there: how many there are then. As `end_part`.

    The bounds of the event's tests are in cell m; where something is copied this counts for nothing, and the copies come behind it. In the place of a
    number each group then has an entry of its group before. position: that of the event's cells. time: its first place.
    """
    w: cython.Py_ssize_t = data + (m & mask) * S[S_WIDTH]
    at: cython.Py_ssize_t = (kind & LABELS) * (1 + S[S_PARTS]) + 1
    f: cython.Py_ssize_t = S[S_FORM_WIDTH] * (kind >> FORM_BITS)
    both: cython.longlong = PART_BEGINS | PART_ENDS
    begin: cython.longlong = time if S[S_BEGINS] < 0 else values[event + columns[3 * S[S_BEGINS]]]
    floor: cython.longlong = 0
    part: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    S[S_COPIED] = 0
    for part in range(S[S_PARTS]):  # their tests are asked before copies take the place of what they test
        if (places[at + part] & both) == both and groups > 0:
            k = HEAD_WIDTH * part
            floor = values[event + columns[3 * chosen[k + H_FLOOR]]] if chosen[k + H_RULE] != 0 else 0
            groups = begin_at_end(
                S,
                words,
                forms,
                chosen,
                nodes,
                queue,
                data,
                mask,
                head,
                low,
                part,
                places[at + part],
                f,
                w + C_BOUNDS,
                groups,
                begin,
                floor,
            )
    for part in range(S[S_PARTS]):
        if (places[at + part] & both) == PART_ENDS and groups > 0:
            if S[S_COPIED] == 0:
                S[S_COPIED] = 1
                words[w + C_POSITION] = position
                words[w + C_START] = position
                words[w + C_CHILD] = -1
                words[w + C_REST] = -1
                words[w + C_KIND] = 0
                words[w + C_NULLS] = 0
                for k in range(groups):
                    queue[3 * k + 1] = queue[3 * k + 2]
            k = HEAD_WIDTH * part
            floor = values[event + columns[3 * chosen[k + H_FLOOR]]] if chosen[k + H_RULE] != 0 else 0
            groups = end_part(
                S,
                words,
                forms,
                shapes,
                chosen,
                places,
                nodes,
                queue,
                data,
                mask,
                head,
                low,
                part,
                places[at + part],
                f,
                w + C_BOUNDS,
                groups,
                begin,
                floor,
                m + S[S_COPIED],
                most,
            )
            f = 0  # copies have no tests
    if groups <= 0:
        S[S_COPIED] = 0
    return groups
