"""Rules as data: from the rows that say what a rule is, and from when on, to its versions and when each of them begins and ends.

Comes in: rows, in any order, also while the stream runs. Goes out: for each name the versions that they come to, as a set: they depend on which rows
there are, not on when each of them came. What they mean is in the docstring of `cepheid.rules`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

FINISH, STOP = ENDINGS = ("finish", "stop")
"""What becomes, when a version ends, of the matches that have begun: they may end, or they are given up."""

ALWAYS_WAS = -(1 << 63)
"""`since` of a version that acts on all events."""

GREATEST = (1 << 63) - 1
"""No event has a time after it."""


@record
class Row:
    """What one row says of a rule, in steps of the time column.

    name: of the rule. text, arguments: of its query from `since` on, the arguments as JSON; no text: the rule is deleted from then on. until: when
    the version ends, where the row says so itself. ends: how, one of ENDINGS; of a row that deletes, how those before it end, None: as they say.
    """

    name: str
    text: str | None
    arguments: str
    since: int
    until: int | None = None
    ends: str | None = None

    @property
    def member(self) -> str:
        """The name of its query among those that are run."""
        return f"{self.since} {self.name}"

    @property
    def place(self) -> tuple[int, bool]:
        """Where it stands among the rows of its rule: what is deleted may begin anew at that time."""
        return self.since, self.text is not None


def rule_of(member: str) -> str:
    """The rule whose version has this name among the queries that are run."""
    return member.partition(" ")[2]


@record
class Version:
    """A rule from one row to the next. until: its matches begin before that time. cut: it reads events before that time, None: all."""

    row: Row
    until: int | None
    cut: int | None

    def reads_before(self, *, counts: bool) -> int | None:
        """Before when it reads events. counts: whether its query counts: a count has no beginning, so nothing of it goes on after its end."""
        return self.until if counts else self.cut

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all others."""
        return self.row.name, self.row.since


def versions_of(rows: Mapping[tuple[int, bool], Row | None]) -> list[Version]:
    """The versions of one rule, in the order in which they begin. rows: of the rule, by their place; None: none that acts. O(rows log rows)."""
    ordered = [row for _, row in sorted(rows.items(), key=lambda item: item[0]) if row is not None]
    stops = [row.since for row in ordered if row.text is None and row.ends == STOP]
    found = []
    for row, after in itertools.zip_longest(ordered, ordered[1:]):
        if row.text is None:
            continue
        until, ends = row.until, row.ends
        if after is not None and (until is None or after.since <= until):
            until, ends = after.since, (after.ends if after.text is None else None) or row.ends
        cuts = [until] if until is not None and ends == STOP else []
        # A row that deletes a rule and stops it stops all that go on before it.
        cuts += [stop for stop in stops if until is not None and stop >= until][:1]
        found.append(Version(row, until, min(cuts, default=None)))
    return found
