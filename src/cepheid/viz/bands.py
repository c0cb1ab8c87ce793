"""Where a drawing that is too wide goes on below: its columns in bands, one below the other, like the lines of a text.

Comes in: where each column stands, and how many edges cross each gap between two of them. Goes out: the bands. An edge that crosses a cut leaves its
band on the right, runs through the gutter between the two bands, each edge in a lane of its own, and enters the next band on the left. Lanes are
nested, so edges that keep their order do not cross there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

LANE = 7.0
"""Between two lanes."""

ASIDE = 12.0
"""Between a band and the first lane beside it."""

GUTTER = 14.0
"""Between a band and the lanes above or below it."""

BAND_COST, CROSSING_COST, OFF_STATE_COST, FILL_COST = 100.0, 40.0, 25.0, 30.0
"""What is weighed: a further band, an edge that crosses a cut, a cut that does not follow a column of states, an empty part of a band."""


@record
class Band:
    """The columns from `first` up to `stop`; entering, leaving: how many edges cross the cuts before and after it."""

    first: int
    stop: int
    entering: int
    leaving: int


def side(edges: int) -> float:
    """The space beside a band for the lanes of so many edges."""
    return ASIDE + LANE * edges if edges else 0.0


def gutter(edges: int) -> float:
    """The height of a gutter for so many edges."""
    return 2 * GUTTER + LANE * max(edges - 1, 0)


def bands(columns: Sequence[tuple[float, float]], crossing: Sequence[int], limit: float) -> list[Band]:
    """The columns in bands of at most `limit` pixels, where columns and lanes allow it.

    columns: the left and right of each. crossing: for each gap between two columns how many edges cross it. Few bands, cut where few edges cross,
    best behind a column of states (these have even numbers). Quadratic in the columns.
    """
    count = len(columns)
    if columns[-1][1] - columns[0][0] <= limit:
        return [Band(0, count, 0, 0)]
    best = [0.0, *([math.inf] * count)]
    before = [0] * (count + 1)
    for stop in range(1, count + 1):
        leaving = crossing[stop - 1] if stop < count else 0
        for first in range(stop - 1, -1, -1):
            entering = crossing[first - 1] if first else 0
            width = columns[stop - 1][1] - columns[first][0] + side(entering) + side(leaving)
            if width > limit and first < stop - 1:
                break
            cost = best[first] + BAND_COST
            if stop < count:
                cost += CROSSING_COST * leaving + OFF_STATE_COST * ((stop - 1) % 2) + FILL_COST * max(0.0, 1 - width / limit)
            if cost < best[stop]:
                best[stop], before[stop] = cost, first
    found: list[Band] = []
    stop = count
    while stop:
        first = before[stop]
        found.append(Band(first, stop, crossing[first - 1] if first else 0, crossing[stop - 1] if stop < count else 0))
        stop = first
    return found[::-1]
