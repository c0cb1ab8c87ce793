"""The matches of a trigger that may be found in several ways, told apart as they come."""

from __future__ import annotations

from cepheid.errors import LimitError

DISTINCT_LIMIT = 1 << 20
"""Matches of one trigger that are kept to tell them apart, where one may be found in several ways."""

Found = tuple[tuple[int, ...], tuple[int, ...]]
"""A match: its positions, ascending, and their labels."""


class Distinct:
    """Matches of one trigger that have been given, where one may be found in several ways."""

    def __init__(self) -> None:
        self._seen: set[Found] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, match: Found) -> bool:
        """Whether a match was not given before; raises LimitError past DISTINCT_LIMIT."""
        if match in self._seen:
            return False
        if len(self._seen) == DISTINCT_LIMIT:
            raise LimitError(
                f"an event completes more than {DISTINCT_LIMIT} matches, each of which may be found in several ways (DISTINCT_LIMIT)",
                help="choose by LIMIT, NXT or LAST, or bound matches by a smaller window",
            )
        self._seen.add(match)
        return True
