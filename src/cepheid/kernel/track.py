# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, infer_types=False
"""The tracker kernel: one deterministic automaton per partition along the stream, whose states become bits of the letters.

`run` is one loop without allocation and without Python objects; at a letter or a transition that it does not know it returns an exit code,
`cepheid.engine.evaluations.trackers` mends it and calls again. Per event: one load of the letter's code, one of the next state, one of the state's
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
    "row",  # 0 next row of the batch
    "segment",  # 1 index of the segment being read, -1 before the first
    "segment_end",  # 2 row where it ends
    "state",  # 3 of the segment's partition
    "continued",  # 4 ! 1: the first segment goes on with record 0
    "codes",  # 5 ! letter codes per row of the table
    "letter_mask",  # 6 !
)


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
    i: cython.Py_ssize_t = S[0]  # row
    segment: cython.Py_ssize_t = S[1]  # segment
    end: cython.Py_ssize_t = S[2]  # segment_end
    state: cython.int = S[3]  # state
    codes: cython.Py_ssize_t = S[5]  # codes
    letter_mask: cython.uint = S[6]  # letter_mask
    rc: cython.int = 0
    c: cython.int = 0
    following: cython.int = 0
    with cython.nogil:
        while True:
            while i < end:
                c = lut[indices[i] & letter_mask]
                if c < 0:
                    rc = 1
                    break
                following = table[state * codes + c]
                if following < 0:
                    rc = 2
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
            elif segment == 0 and S[4] != 0:  # continued
                state = records[0]
            else:
                state = 0
    S[0] = i
    S[1] = segment
    S[2] = end
    S[3] = state
    return rc
