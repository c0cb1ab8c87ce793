"""What is next under ACTIVE_OFFICE and COMPLETE_HISTORY: among the matches of a part that end at one time, by what they go on from.

Comes in: the match graph of the right side of THEN, with all its matches that end at one time, and partial matches of the pattern around it that end
this part then. Goes out: those partial matches in which the part begins after the end of what is before THEN, and no other match of the part that
does comes first. None of these may have ended at an earlier time: the greatest start of those that have is known (`Derived`).

A match has a KEY: under COMPLETE_HISTORY its times, from the last to the first, without the time at which all end; under ACTIVE_OFFICE the time at
which it begins. What has the least key comes first (`succession.models`). So of the matches that begin after a time, the one with the least key is
next; as that time falls, it changes where a match begins that has a lesser key. Hence for each match that is next after some time there is a LEAST
time: that of the next one. It is next if the end of what is before is not before that time.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from cepheid.automata.transform import members
from cepheid.engine.evaluations.uncompiled.guarded_choice import Fold
from cepheid.engine.evaluations.uncompiled.guarded_parts import Restriction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cepheid.engine.evaluations.uncompiled.guarded_graph import Cell, Node, Steps, Times
    from cepheid.engine.evaluations.uncompiled.guarded_parts import Places

BEGINNING = -1 << 63
"""No event is before this time."""

Key = tuple[int, ...]
"""What says which of two matches comes first."""

Foremost = tuple[tuple[int, Key], ...]
"""(start, times) of some matches, by falling starts and keys: of those that start at one time or later, the one with the least key.

times: those of the key, without the start if no event that counts has it. For an event that follows may begin still earlier, where any may say where
a match begins; that changes the order of no two that are compared here, if they go on with the same events.
"""


def _whole(match: tuple[int, Key]) -> Key:
    """The key of a match."""
    start, times = match
    return times if times and times[-1] == start else (*times, start)


def _foremost(matches: Iterable[tuple[int, Key]], whole: Callable[[tuple[int, Key]], Key] = _whole) -> Foremost:
    found: list[tuple[int, Key]] = []
    least: Key | None = None
    for _, key, match in sorted((-match[0], whole(match), match) for match in matches):
        if least is None or key < least:
            least = key
            found.append(match)
    return tuple(found)


class Front(NamedTuple):
    """The foremost of the matches that end in some cells. last: the greatest time in a key. having, others: of those that have it, and the others.

    An event of that time, which may follow, is no news to `having`: so these cannot be compared with the others yet.
    """

    last: int
    having: Foremost
    others: Foremost

    @property
    def all(self) -> Foremost:
        """Both."""
        return _foremost(self.having + self.others)


NOTHING = Front(BEGINNING, (), ())


class Fronts(Fold[Front]):
    """The foremost matches that end in each cell. end: the time at which all of them end. counts: by label, whether its event is in a history.

    counts: None under ACTIVE_OFFICE. everywhere: as for `Nexts`. O(s) per cell and heap node, s = starts of matches there, for keys as long as they
    are.
    """

    def __init__(self, root: Node, low: int, steps: Steps, *, end: int, counts: Sequence[bool] | None, everywhere: bool) -> None:
        self._end = end
        self._counts = counts
        self._everywhere = everywhere
        super().__init__(root, low, steps)

    @property
    def nothing(self) -> Front:
        """No match."""
        return NOTHING

    def extended(self, cell: Cell, below: Front | None) -> Front:
        """With the cell's event."""
        time, begins, _ = cell.times
        time = time if self._counts is not None and self._counts[cell.label] else BEGINNING
        if below is None:
            key = _with((), time, self._end)
            return Front(key[0] if key else BEGINNING, ((begins, key),), ())
        if self._everywhere:
            below = Front(below.last, _lowered(below.having, begins), _lowered(below.others, begins))
        if time in {self._end, BEGINNING}:
            return below
        having = below.having if below.last == time else _later(below.having, time)
        return Front(time, _foremost(having + _later(below.others, time)), ())

    def added(self, one: Front, other: Front) -> Front:
        """The foremost of both."""
        return self.united((one, other))

    def united(self, values: Sequence[Front]) -> Front:
        """The foremost of all."""
        last = max((each.last for each in values), default=BEGINNING)
        having = [each.having for each in values if each.last == last]
        others = [each.others if each.last == last else each.having + each.others for each in values]
        return Front(last, *(_foremost(itertools.chain.from_iterable(some)) for some in (having, others)))


def _lowered(matches: Foremost, begins: int) -> Foremost:
    """With an event that begins at a time."""
    return _foremost((min(start, begins), times) for start, times in matches) if matches and begins < matches[0][0] else matches


def _later(matches: Foremost, time: int) -> Foremost:
    return tuple((start, (time, *key)) for start, key in matches)


def _with(key: Key, time: int, end: int) -> Key:
    """A key with an earlier time, which it may have; without the time at which all end."""
    return key if time in {end, BEGINNING} or (key and key[-1] == time) else (*key, time)


class Begun(NamedTuple):
    """The part has been read, and begins at a time: what is before it must end before that, but not before the least time."""

    least: int
    begins: int


class Reading(NamedTuple):
    """What has been read of a part, from its end on: times of a key; and the least time at which one of the events begins, where any may say it."""

    times: Key
    begins: int


State = Reading | Begun


class Nexts:
    """The matches of a part that end at one time, and are next after something.

    matches: the foremost. histories: whether these are compared. everywhere: whether any event may say where a match begins, else the first one does.
    """

    def __init__(self, matches: Foremost, end: int, *, histories: bool, everywhere: bool) -> None:
        self._end = end
        self._histories = histories
        self._everywhere = everywhere
        self.start = Reading((), end)
        foremost = _foremost(matches, self._key)
        starts = [start for start, _ in foremost[1:]]
        self._least = {self._key(match): least for match, least in zip(foremost, [*starts, BEGINNING], strict=True)}
        self._prefixes = {key[:length] for key in self._least for length in range(len(key) + 1)}

    def _key(self, match: tuple[int, Key]) -> Key:
        return () if self._histories and match[0] == self._end else _whole(match)

    def after(self, state: Reading, times: Times, places: Places, label: int) -> State | None:
        """The state behind an event with a label; None where no match that is next goes on so. Events beside the part change nothing."""
        read = _with(state.times, times[0], self._end) if self._histories and places.shows[label] else state.times
        begins = places.begins[label]
        start = min(state.begins, times[1]) if begins or (self._everywhere and places.has[label]) else state.begins
        if not begins:
            return Reading(read, start) if read in self._prefixes else None
        least = self._least.get(self._key((start, read)))
        return None if least is None else Begun(least, start)


class Following(Restriction[State]):
    """Restricted to matches of a part that are next after what is before them. ended: the place before which that must not end."""

    def __init__(
        self,
        nexts: Nexts,
        places: Places,
        ended: int,
        children: Sequence[Node],
        low: int,
        steps: Steps,
        *,
        copied: Callable[[Cell, Node], Cell],
    ) -> None:
        super().__init__(children, places.precedes, low, steps, copied=copied)
        self._nexts = nexts
        self._places = places
        self._positions = [cell.position for cell in self._reached.cells]  # ascending, and so are their times
        self._ended = bisect_left(self._positions, ended)

    def _ways(self, cells: int, state: State) -> list[tuple[int, State]]:
        if isinstance(state, Begun):
            first = max(self._ended, bisect_left(self._reached.cells, state.least, key=_time))
            return [(number, state) for number in members(cells >> first << first)]
        found = []
        for number in members(cells):
            cell = self._reached.cells[number]
            after = self._nexts.after(state, cell.times, self._places, cell.label)
            if after is not None:
                found.append((number, after))
        return found

    def _stays(self, cell: Cell, state: State) -> bool:
        return isinstance(state, Begun) and cell.times[0] < state.begins


def _time(cell: Cell) -> int:
    return cell.times[0]
