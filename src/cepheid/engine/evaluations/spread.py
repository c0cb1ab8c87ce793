"""A sample of the matches of a trigger, spread evenly over all of them; these are counted, and not listed.

Which ones depends on the stream alone: on their number, and on the position of the trigger.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

EXACT = 1 << 52
"""Matches of a trigger from which on places are drawn: evenly spaced ones would all have the same late events."""


def spread(total: int, sample: int, position: int) -> Iterator[int]:
    """The places, ascending, of so many of `total` matches, more than the sample, in their order: one of each of as many parts of equal size.

    The first one of each part. From EXACT on one from its middle half, drawn by the position of the trigger, not by chance. O(digits) each.
    """
    for number in range(sample):
        if total < EXACT:
            yield number * total // sample
            continue
        size = total.bit_length() // 8 + 8
        drawn = int.from_bytes(hashlib.shake_256(f"{position} {number}".encode()).digest(size), "big")
        # (number + 1/4 + drawn/2) parts, drawn as a fraction of 1.
        yield total * ((4 * number + 1 << 8 * size) + 2 * drawn) // (4 * sample << 8 * size)
