# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The kernel of row patterns whose conditions look at no match: letters in, the preferred match of each start out. Two passes, linear.

One source that Cython compiles and CPython also runs as it is; `evaluations.preferred` drives it, and fills the tables where an entry is missing.

1. `backward`: for each row the set of places that can take it and still reach the end of the pattern (VIABLE). It is a function of the set of the
   row behind and of the letter, so a deterministic automaton, read from the end: one look-up per row.
2. `forward`: from each start the first way, in preferment order, that is viable; one look-up per row, never back.

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

# Exit codes of both passes, in the order of their numbers.
EXITS = ("done", "entry", "output", "absent", "first")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "segment",  # the partition that is being read
    "row",  # where it goes on: backward the row behind which all is done, forward the start that is tried
    "state",  # backward: the set of the row behind; forward: of the entry that is missing
    "origin",  # forward: the place, or START, of the entry that is missing
    "matches",  # given so far in the buffers
    "marks",  # rows in them
    "codes",  # ! letters that are told apart
    "states",  # ! columns of `choice`
    "start",  # ! the origin of a match at the first row of a partition; behind it that of any other
    "skip",  # ! where the next match may start: by `SKIPS`
)

SKIPS = ("PAST_LAST_ROW", "TO_NEXT_ROW", "TO_FIRST", "TO_LAST")

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`, SKIP_ one of `SKIPS`; entries of tables
# that are no set and no place: UNKNOWN is to be found, NONE says that no way can succeed, ACCEPT that the match ends.
if not cython.compiled:
    EXIT_DONE, EXIT_ENTRY, EXIT_OUTPUT, EXIT_ABSENT, EXIT_FIRST = range(5)
    S_SEGMENT, S_ROW, S_STATE, S_ORIGIN, S_MATCHES, S_MARKS, S_CODES, S_STATES, S_START, S_SKIP = range(10)
    SKIP_PAST, SKIP_NEXT, SKIP_FIRST, SKIP_LAST = range(4)
    UNKNOWN, NONE, ACCEPT = range(-3, 0)


def backward(
    S: cython.longlong[::1],
    codes: cython.const[cython.int][::1],
    cuts: cython.const[cython.longlong][::1],
    back: cython.const[cython.int][::1],
    last: cython.const[cython.int][::1],
    viable: cython.int[::1],
):
    """Find the viable places of each row, from the last partition's last row on, until all are found (0) or an entry is missing (1).

    IN: codes (of each row's letter), cuts (where each partition starts, and behind them where the last one ends). TABLES: back[state * codes + code]
    (the set of a row before one with the set `state`), last[code] (of the last row of a partition). OUT: viable.
    """
    count: cython.longlong = S[S_CODES]
    segment: cython.longlong = S[S_SEGMENT]
    row: cython.longlong = S[S_ROW]
    state: cython.longlong = S[S_STATE]
    first: cython.longlong = 0
    found: cython.longlong = 0
    with cython.nogil:
        while segment >= 0:
            first = cuts[segment]
            if row == cuts[segment + 1] and row > first:
                found = last[codes[row - 1]]
                if found < 0:
                    break
                state = found
                row -= 1
                viable[row] = state
            while row > first:
                found = back[state * count + codes[row - 1]]
                if found < 0:
                    break
                state = found
                row -= 1
                viable[row] = state
            if row > first:
                break
            segment -= 1
    S[S_SEGMENT] = segment
    S[S_ROW] = row
    S[S_STATE] = state
    return EXIT_DONE if segment < 0 else EXIT_ENTRY


def forward(
    S: cython.longlong[::1],
    cuts: cython.const[cython.longlong][::1],
    viable: cython.const[cython.int][::1],
    choice: cython.const[cython.int][::1],
    ends: cython.const[cython.uchar][::1],
    resumes: cython.const[cython.uchar][::1],
    out_starts: cython.longlong[::1],
    out_offsets: cython.longlong[::1],
    out_places: cython.int[::1],
):
    """Give the matches, until all are given (0) or something must be mended first (the index of its name in `EXITS`).

    IN: cuts, viable (of `backward`). TABLES: choice[origin * states + set] (the first way from a place, or from a start, that is in the set),
    ends[place] (whether a match may end behind it where no row comes), resumes[place] (with SKIP TO: whether the next match may start at its row).
    OUT: of each match the row where it starts, and where its places stand: out_places[out_offsets[k]:out_offsets[k + 1]]. EXIT_ABSENT: no row of the
    match that was given last is one to go on from; EXIT_FIRST: it is its first.
    """
    states: cython.longlong = S[S_STATES]
    start_origin: cython.longlong = S[S_START]
    skip: cython.longlong = S[S_SKIP]
    segment: cython.longlong = S[S_SEGMENT]
    start: cython.longlong = S[S_ROW]
    matches: cython.longlong = S[S_MATCHES]
    marks: cython.longlong = S[S_MARKS]
    segments: cython.longlong = cuts.shape[0] - 1
    room: cython.longlong = out_places.shape[0]
    most: cython.longlong = out_starts.shape[0]
    row: cython.longlong = 0
    end: cython.longlong = 0
    mark: cython.longlong = 0
    place: cython.longlong = 0
    origin: cython.longlong = 0
    resumed: cython.longlong = 0
    code: cython.longlong = EXIT_DONE
    with cython.nogil:
        while segment < segments:
            end = cuts[segment + 1]
            while start < end:
                row = start
                mark = marks
                origin = start_origin if start == cuts[segment] else start_origin + 1
                while True:
                    if row == end:
                        place = ACCEPT if ends[origin] else NONE
                        break
                    place = choice[origin * states + viable[row]]
                    if place < 0:
                        break
                    if mark == room:
                        code = EXIT_OUTPUT
                        break
                    out_places[mark] = place
                    mark += 1
                    row += 1
                    origin = place
                if code != EXIT_DONE:
                    break
                if place == UNKNOWN:
                    code = EXIT_ENTRY
                    break
                if place == NONE:
                    start += 1
                    continue
                if matches == most:
                    code = EXIT_OUTPUT
                    break
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
                    code = EXIT_ABSENT
                    break
                if resumed == start:
                    code = EXIT_FIRST
                    break
                start = resumed
            if code != EXIT_DONE:
                break
            segment += 1
            start = end
    S[S_SEGMENT] = segment
    S[S_ROW] = start
    S[S_ORIGIN] = origin
    S[S_STATE] = viable[row] if code == EXIT_ENTRY else 0
    S[S_MATCHES] = matches
    S[S_MARKS] = marks
    return code
