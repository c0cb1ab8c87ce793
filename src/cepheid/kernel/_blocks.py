"""What the kernels over blocks share (`cepheid.engine.memory.blocks`): the words of a block, its beginning, its window, its growth.

No kernel of its own. Uncompiled, a kernel imports these functions; the build puts their source into each kernel that does (see `setup.py`), so
that the compiler has them at hand, and that the checked kernels check them too.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython

# B_ a word of a block, D_ one of a ring's line in its directory; FRESH is the place of `pool` with the first word never used.
if not cython.compiled:
    B_POSITION, B_LOW, B_EPOCH, B_LAST_TIME, B_NEWEST_START, B_NEWEST_TIME = range(6)
    D_HEAD, D_TAIL, D_DATA, D_MASK = range(4)
    FRESH = 128


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def begin_block(
    words: cython.longlong[::1],
    template: cython.const[cython.longlong][::1],
    b: cython.Py_ssize_t,
    plain: cython.Py_ssize_t,
    rings: cython.Py_ssize_t,
    epoch: cython.longlong,
    anew: cython.int,
) -> cython.int:
    """Make the block at b ready for a segment: empty if `anew`, and without what a match of another partition has consumed."""
    k: cython.Py_ssize_t = 0
    if anew != 0:
        for k in range(plain):
            words[b + k] = template[k]
        words[b + B_EPOCH] = epoch
        for k in range(b + plain, b + plain + 4 * rings, 4):
            words[k + D_HEAD] = 0
            words[k + D_TAIL] = 0
    if words[b + B_EPOCH] != epoch:
        words[b + B_EPOCH] = epoch
        words[b + B_LOW] = words[b + B_POSITION]
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def first_open(
    words: cython.longlong[::1],
    b: cython.Py_ssize_t,
    line: cython.Py_ssize_t,
    low: cython.longlong,
    p: cython.longlong,
    time: cython.longlong,
    window: cython.ulonglong,
) -> cython.longlong:
    """The position of the oldest start in the time window of an event and at `low` or later, p if there is none; older ones leave the ring."""
    head: cython.longlong = words[line + D_HEAD]
    tail: cython.longlong = words[line + D_TAIL]
    data: cython.Py_ssize_t = b + words[line + D_DATA]
    mask: cython.longlong = words[line + D_MASK]
    now: cython.ulonglong = time
    then: cython.ulonglong = 0
    w: cython.Py_ssize_t = 0
    first: cython.longlong = p
    while head != tail:
        w = data + 2 * (head & mask)
        then = words[w + 1]  # unsigned: the difference of two int64 times cannot overflow
        if now - then <= window and words[w] >= low:
            first = words[w]
            break
        head += 1
    words[line + D_HEAD] = head
    return first


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def grow(
    words: cython.longlong[::1],
    offsets: cython.longlong[::1],
    sizes: cython.longlong[::1],
    pool: cython.longlong[::1],
    row: cython.Py_ssize_t,
    plain: cython.Py_ssize_t,
    rings: cython.Py_ssize_t,
    width: cython.Py_ssize_t,
    beside: cython.Py_ssize_t,
    ring: cython.Py_ssize_t,
    most: cython.longlong,
) -> cython.longlong:
    """Double a ring of a row's block, and those more than half full, as `cepheid.engine.memory.blocks.Blocks.grow` does.

    Entries have 2 words in ring 0, `width` in the others, which have `beside` words per place behind their entries. Returns 0, or how many words the
    pool lacks, or -1 where the block would have more than `most` words. Linear in the entries that move: where nothing lies behind the block it
    grows where it is, and half of a ring's entries stay.
    """
    old: cython.Py_ssize_t = offsets[row]
    new: cython.Py_ssize_t = old
    to: cython.Py_ssize_t = plain + 4 * rings
    total: cython.longlong = to
    size: cython.longlong = 4
    part: cython.longlong = 1
    klass: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t = 0
    d: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    v: cython.Py_ssize_t = 0
    w: cython.Py_ssize_t = 0
    entry: cython.Py_ssize_t = 0
    k: cython.longlong = 0
    head: cython.longlong = 0
    tail: cython.longlong = 0
    wrapped: cython.longlong = 0
    mask: cython.longlong = 0
    places: cython.longlong = 0
    for r in range(rings):
        d = old + plain + 4 * r
        places = words[d + D_MASK] + 1
        if r == ring or 2 * (words[d + D_TAIL] - words[d + D_HEAD]) > places:
            places += places
        total += places * (2 if r == 0 else width + beside)
    if total > most:
        return -1
    while size < total:  # classes: 4, 5, 6, 7 times a power of two
        size += part
        klass += 1
        if size == 8 * part:
            part += part
    if old + sizes[row] == pool[FRESH]:
        if old + size > words.shape[0]:
            return size - sizes[row]
        pool[FRESH] = old + size
    else:
        new = pool[klass]
        if new >= 0:
            pool[klass] = words[new]
        else:
            new = pool[FRESH]
            if new + size > words.shape[0]:
                return size
            pool[FRESH] = new + size
    to = total
    # Where the block stays, entries move to higher words or not at all: so the last ones go first.
    for r in range(rings - 1, -1, -1):
        entry = 2 if r == 0 else width
        d = old + plain + 4 * r
        head = words[d + D_HEAD]
        tail = words[d + D_TAIL]
        mask = words[d + D_MASK]
        places = mask + 1
        if r == ring or 2 * (tail - head) > places:
            places += places
        to -= places * (entry if r == 0 else entry + beside)
        wrapped = head + mask + 1 - (head & mask)
        if wrapped > tail:
            wrapped = tail
        for j in range(2):
            k = wrapped if j == 0 else tail
            while k > (head if j == 0 else wrapped):
                k -= 1
                v = old + words[d + D_DATA] + (k & mask) * entry + entry
                w = new + to + (k & (places - 1)) * entry + entry
                if v == w:
                    continue
                while w > new + to + (k & (places - 1)) * entry:
                    v -= 1
                    w -= 1
                    words[w] = words[v]
        w = new + plain + 4 * r
        words[w + D_HEAD] = head
        words[w + D_TAIL] = tail
        words[w + D_DATA] = to
        words[w + D_MASK] = places - 1
    if new != old:
        for j in range(plain):
            words[new + j] = words[old + j]
        klass = 0
        total = 4
        part = 1
        while total < sizes[row]:
            total += part
            klass += 1
            if total == 8 * part:
                part += part
        words[old] = pool[klass]
        pool[klass] = old
    offsets[row] = new
    sizes[row] = size
    return 0
