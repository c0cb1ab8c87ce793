"""Checks of stored state: what is asked of the numbers of its sections before anything is allocated, indexed or followed by them.

Anybody can forge a state and seal it. What a check finds is a ValueError; `fitting`, which is around every load, makes a SnapshotError of it.
"""

from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.memory.container import damaged
from cepheid.engine.memory.pools import NUMBER_LIMIT
from cepheid.errors import CepheidError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

ROW_LIMIT = 1 << 31
"""Rows are numbered by 31 bits."""


@contextlib.contextmanager
def fitting(what: str = "its sections do not fit together") -> Iterator[None]:
    """Around a load: what nonsense in the sections raises becomes a SnapshotError that says `what`."""
    try:
        yield
    except CepheidError:
        raise
    except (LookupError, TypeError, ValueError, struct.error) as error:
        raise damaged(what) from error


def numbers(sections: Mapping[str, Any], name: str, kind: str = "<i8", *, width: int = 0) -> Array:
    """The numbers of a section, which are not to be written; width: in rows of so many. Raises KeyError or ValueError where that cannot be."""
    found = np.frombuffer(sections[name], kind)
    return found.reshape(-1, width) if width else found


def demand(*conditions: Array | bool) -> None:
    """Raise ValueError unless each of these holds, arrays everywhere."""
    if not all(np.all(condition) for condition in conditions):
        raise ValueError("its numbers are out of range")


def inside(values: Array, least: Array | int, below: Array | int) -> Array:
    """For each of these numbers whether it is in a range: bool."""
    found: Array = (values >= least) & (values < below)
    return found


def ascending(values: Array, owner: Array, *, strictly: bool = False) -> Array:
    """For each of these numbers but the first whether it is not less (strictly: greater) than that before it, of the same owner: bool."""
    right = values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]
    found: Array = right | (owner[1:] != owner[:-1])
    return found


def owners(counts: Array, *columns: Array) -> Array:
    """The owner of each entry of some columns, owner k having counts[k] (int64); raises ValueError unless the counts add up to each column."""
    total = len(columns[0])
    demand(inside(counts, 0, total + 1))  # first of all: sums of greater ones wrap around, and numpy repeats whatever they say
    demand(counts.sum() == total, all(len(column) == total for column in columns))
    return np.repeat(np.arange(len(counts)), counts)


def rows_of(slots: Array, positions: Array, stored: Stored | None) -> Array:
    """The rows here of the partitions that a section names by their slots, given the position of each one's next event (int64).

    stored: the partitions of the snapshot, which must be these; None: they stay where they are. A row is a slot + 1.
    Raises ValueError where they cannot be.
    """
    demand(inside(slots, -1, ROW_LIMIT - 1), inside(positions, 0, NUMBER_LIMIT))
    # PERF: most dumps have them in order, and numpy's unique takes most of the time of a load of many keys.
    demand(bool((slots[1:] > slots[:-1]).all()) or len(np.unique(slots)) == len(slots))
    return 1 + (slots if stored is None else stored.every(slots, positions))
