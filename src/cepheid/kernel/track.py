# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The tracker kernel: one deterministic automaton per partition along the stream, whose states become bits of the letters.

`run` is one loop without allocation and without Python objects; at a letter or a transition that it does not know it returns an exit code,
`evaluations.around.trackers` mends it and calls again. Per event: one load of the letter's code, one of the next state, one of the state's
bits.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython

COMPILED = cython.compiled

# Exit codes of `run`, in the order of their numbers.
EXITS = ("done", "letter", "transition")

# What each place of the vector `S` holds; "!" marks what the kernel reads and never writes.
FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "state",  # of the segment's partition
    "continued",  # ! 1: the first segment goes on with record 0
    "codes",  # ! letter codes per row of the table
    "letter_mask",  # !
)

# Constants of C where the kernel is compiled (see `setup.py`): EXIT_ an exit, S_ a place of the vector `S`.
if not cython.compiled:
    EXIT_DONE, EXIT_LETTER, EXIT_TRANSITION = range(3)
    S_ROW, S_SEGMENT, S_SEGMENT_END, S_STATE, S_CONTINUED, S_CODES, S_LETTER_MASK = range(7)


def run(
    S: cython.longlong[::1],
    letters: cython.const[cython.ulonglong][::1],
    indices: cython.const[cython.uint][::1],
    cuts: cython.const[cython.longlong][::1],
    slots: cython.const[cython.int][::1],
    lut: cython.int[::1],
    table: cython.int[::1],
    bits: cython.ulonglong[::1],
    records: cython.int[::1],
    out: cython.ulonglong[::1],
):
    """Read the batch from row S[row] on, until it is done (0) or something must be mended first (the index of its name in `EXITS`).

    IN: letters, indices (of lut), cuts (row where each segment starts), slots (record of the segment's partition, or -1: nothing is kept, record 0
    is its workplace). TABLES: lut (letter -> code, -1 unknown), table[state * codes + code] (next state, -1 unknown), bits (of each state).
    STATE: records (state of each partition). OUT: out, the letters with the bits of the state before each event.
    """
    rows: cython.Py_ssize_t = letters.shape[0]
    segments: cython.Py_ssize_t = cuts.shape[0]
    i: cython.Py_ssize_t = S[S_ROW]
    segment: cython.Py_ssize_t = S[S_SEGMENT]
    end: cython.Py_ssize_t = S[S_SEGMENT_END]
    state: cython.int = S[S_STATE]
    codes: cython.Py_ssize_t = S[S_CODES]
    letter_mask: cython.uint = S[S_LETTER_MASK]
    rc: cython.int = 0
    c: cython.int = 0
    following: cython.int = 0
    with cython.nogil:
        while True:
            while i < end:
                c = lut[indices[i] & letter_mask]
                if c < 0:
                    rc = EXIT_LETTER
                    break
                following = table[state * codes + c]
                if following < 0:
                    rc = EXIT_TRANSITION
                    break
                out[i] = letters[i] | bits[state]
                state = following
                i += 1
            if rc != 0:
                break
            if segment >= 0:
                records[slots[segment] if slots[segment] >= 0 else 0] = state
            segment += 1
            if segment == segments:
                break
            end = rows
            if segment + 1 < segments:
                end = cuts[segment + 1]
            if slots[segment] >= 0:
                state = records[slots[segment]]
            elif segment == 0 and S[S_CONTINUED] != 0:
                state = records[0]
            else:
                state = 0
    S[S_ROW] = i
    S[S_SEGMENT] = segment
    S[S_SEGMENT_END] = end
    S[S_STATE] = state
    return rc
