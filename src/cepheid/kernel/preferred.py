# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of row patterns whose conditions look at no match: letters in, the preferred match of each start out. Two passes, linear.

One source that Cython compiles and CPython also runs as it is; `evaluations.preferred` drives it, and fills the tables where an entry is missing.

1. Backward: for each row the set of places that can take it and still reach the end of the pattern (`viable`). It is a function of the set of the
   row behind and of the letter, so a deterministic automaton, read from the end: one look-up per row.
2. Forward: from each start the first way, in preferment order, that is viable; one look-up per row, never back.

So a match takes time for its length, whatever the pattern: `(A+)+ B` costs what `A+ B` costs (Grathwohl, Henglein, Nielsen, Rasmussen: "Two-pass
greedy regular expression parsing", CIAA 2013, for regular expressions on words). SKIP PAST LAST ROW is O(rows) in all, SKIP TO NEXT ROW the sum of
the lengths.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython

COMPILED = cython.compiled

# Exit codes of `run`, in the order of their numbers.
EXITS = ("done", "entry", "output", "absent", "first")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "forward",  # 1 in the second pass
    "segment",  # the partition that is being read
    "row",  # where it goes on: backward the row behind which all is done, forward the start that is tried
    "state",  # backward the set of the row behind, forward that of the entry that is missing
    "origin",  # forward the place, or start, of the entry that is missing
    "matches",  # given so far in the buffers
    "marks",  # rows in them
    "codes",  # ! letters that `back` tells apart
    "states",  # ! sets that `choice` has room for
    "start",  # ! the origin of a match at the first row of a partition; the next number is that of any other
    "skip",  # ! where the next match may start: by `SKIPS`
)

SKIPS = ("PAST_LAST_ROW", "TO_NEXT_ROW", "TO_FIRST", "TO_LAST")

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, SKIP_ one of `SKIPS`; entries of tables
# that are no set and no place: UNKNOWN is to be found, NONE says that no way can succeed, ACCEPT that the match ends.
if not cython.compiled:
    EXIT_DONE, EXIT_ENTRY, EXIT_OUTPUT, EXIT_ABSENT, EXIT_FIRST = range(5)
    S_FORWARD, S_SEGMENT, S_ROW, S_STATE, S_ORIGIN, S_MATCHES, S_MARKS, S_CODES, S_STATES, S_START, S_SKIP = range(11)
    SKIP_PAST, SKIP_NEXT, SKIP_FIRST = range(3)
    UNKNOWN, NONE, ACCEPT = range(-3, 0)


def run(
    S: cython.longlong[::1],
    codes: cython.const[cython.int][::1],
    cuts: cython.const[cython.longlong][::1],
    back: cython.const[cython.int][::1],
    last: cython.const[cython.int][::1],
    choice: cython.const[cython.int][::1],
    ends: cython.const[cython.uchar][::1],
    resumes: cython.const[cython.uchar][::1],
    viable: cython.int[::1],
    out_starts: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_places: cython.int[::1],
):
    """Go on until all matches are given (0) or something must be mended first (the index of its name in `EXITS`).

    IN: codes (of each row's letter), cuts (where each partition starts, and behind them where the last one ends). TABLES: back[state * codes + code]
    (the set of a row before one with the set `state`), last[code] (of the last row of a partition), choice[origin * states + set] (the first way
    from a place, or from a start, that is in the set), ends[place] (whether a match may end behind it where no row comes), resumes[place] (with SKIP
    TO: whether the next match may start at its row). BETWEEN: viable (of each row, and one number more).
    OUT: of each match the row where it starts, and its places, in out_places[out_offsets[k]:out_offsets[k + 1]].
    "absent": no row of the match that was given last is one to go on from. "first": it is its first.
    """
    segments: cython.Py_ssize_t = cuts.shape[0] - 1
    room: cython.Py_ssize_t = out_places.shape[0]
    most: cython.Py_ssize_t = out_starts.shape[0]
    count: cython.Py_ssize_t = S[S_CODES]
    states: cython.Py_ssize_t = S[S_STATES]
    begin: cython.Py_ssize_t = S[S_START]
    skip: cython.longlong = S[S_SKIP]
    segment: cython.Py_ssize_t = S[S_SEGMENT]
    start: cython.Py_ssize_t = S[S_ROW]
    state: cython.Py_ssize_t = S[S_STATE]
    matches: cython.Py_ssize_t = S[S_MATCHES]
    marks: cython.Py_ssize_t = S[S_MARKS]
    forward: cython.longlong = S[S_FORWARD]
    origin: cython.Py_ssize_t = S[S_ORIGIN]
    row: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = 0
    mark: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t = 0
    resumed: cython.Py_ssize_t = 0
    found: cython.int = 0
    rc: cython.int = EXIT_DONE
    with cython.nogil:
        if forward == 0:
            while segment >= 0:
                end = cuts[segment]
                found = 0
                if start > end and start == cuts[segment + 1]:
                    found = last[codes[start - 1]]
                    if found >= 0:
                        state = found
                        start -= 1
                        viable[start] = found
                while start > end and found >= 0:
                    found = back[state * count + codes[start - 1]]
                    if found >= 0:
                        state = found
                        start -= 1
                        viable[start] = found
                if found < 0:
                    rc = EXIT_ENTRY
                    break
                segment -= 1
            if rc == EXIT_DONE:
                forward = 1
                segment = 0
                start = 0
        if forward == 1 and rc == EXIT_DONE:
            while segment < segments:
                end = cuts[segment + 1]
                while start < end:
                    row = start
                    mark = marks
                    origin = begin if start == cuts[segment] else begin + 1
                    while True:
                        if row == end:
                            place = ACCEPT if ends[origin] else NONE
                            break
                        place = choice[origin * states + viable[row]]
                        if place < 0:
                            break
                        if mark == room:
                            rc = EXIT_OUTPUT
                            break
                        out_places[mark] = place
                        mark += 1
                        row += 1
                        origin = place
                    if place == UNKNOWN:
                        state = viable[row]
                        rc = EXIT_ENTRY
                    elif matches == most and place == ACCEPT:
                        rc = EXIT_OUTPUT
                    if rc != EXIT_DONE:
                        break
                    if place == NONE:
                        start += 1
                        continue
                    out_starts[matches] = start
                    matches += 1
                    out_offsets[matches] = mark
                    if row == start or skip == SKIP_NEXT:
                        resumed = start + 1
                    elif skip == SKIP_PAST:
                        resumed = row
                    else:
                        resumed = -1
                        for place in range(marks, mark):
                            if resumes[out_places[place]]:
                                resumed = start + place - marks
                                if skip == SKIP_FIRST:
                                    break
                    marks = mark
                    if resumed < 0:
                        rc = EXIT_ABSENT
                        break
                    if resumed == start:
                        rc = EXIT_FIRST
                        break
                    start = resumed
                if rc != EXIT_DONE:
                    break
                segment += 1
                start = end
    S[S_FORWARD] = forward
    S[S_SEGMENT] = segment
    S[S_ROW] = start
    S[S_STATE] = state
    S[S_ORIGIN] = origin
    S[S_MATCHES] = matches
    S[S_MARKS] = marks
    return rc
