"""HAVING: each match is judged by its measures, and what comes after that in a query is done here.

Comes in: chunks of all matches, as an evaluation makes them. Goes out: chunks of those that are given, or counted. What HAVING leaves out is no
match, so what an evaluation otherwise does by itself comes after it: CONSUME BY, LIMIT and ANY, COUNT(*), equal rows of SELECT. NXT, LAST and MAX
choose before HAVING, but among those that CONSUME BY leaves: with it they choose here too.

The cost is that of listing all matches, whatever LIMIT says; a trigger with more than `MAX_LISTED` is a LimitError. All is done in columns, but for a
step of Python per trigger under CONSUME BY, and per match where a strategy chooses here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.evaluations.base import collect
from cepheid.engine.evaluations.chosen_count import counted
from cepheid.engine.output.measures import Computation
from cepheid.engine.plan.compiled import MAX_COMPARED, MAX_LISTED
from cepheid.errors import LimitError
from cepheid.language.syntax import Consumption, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.engine.evaluations.base import Chunk
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored
    from cepheid.engine.output.matches import Matches
    from cepheid.engine.plan.compiled import Compiled

    Spans = Callable[[Chunk], tuple[Array, Array, Array]]

NOTHING = -1
"""The place of the last trigger before there is one."""


class Having:
    """HAVING and what follows it, over the partitions of one stream; its state is the last trigger of each, under CONSUME BY.

    time: the time column.
    """

    def __init__(self, compiled: Compiled, time: str | None) -> None:
        assert compiled.plan.having is not None
        self.compiled = compiled
        self._compute = Computation([compiled.plan.having], time)
        self._projection = None if compiled.plan.count or compiled.plan.measures else _projection(compiled)
        self._consumes = compiled.consume is not Consumption.NONE
        self._whole = self._consumes or compiled.limit is not None or compiled.plan.count or self._projection is not None
        self._last: Array = np.zeros(0, np.int64)

    def judged(self, chunks: Iterator[Chunk], shown: Callable[[Chunk], Matches], spans: Spans) -> Iterator[Chunk]:
        """What is given of the matches in some chunks, which hold whole triggers.

        shown: gives a chunk as matches, without measures. spans: (owner, start, end) of each match, int64: what CONSUME BY looks at, which is
        the partition and positions in it, or 0 and places in the stream. Raises LimitError past MAX_LISTED, and MAX_COMPARED.
        """
        choose = self.compiled.chooses
        listed = self._bounded(chunks, MAX_LISTED if choose is None else MAX_COMPARED)
        if choose is not None:
            for found in _whole_triggers(listed):
                yield from self._after(found.take(self._chosen(found, self._holds(shown(found)), choose, spans)))
            return
        held = (chunk.take(np.flatnonzero(self._holds(shown(chunk)))) for chunk in listed)
        for found in _whole_triggers(held) if self._whole else held:
            yield from self._after(found.take(self._competing(found, spans)) if self._consumes else found)

    def _bounded(self, chunks: Iterator[Chunk], most: int) -> Iterator[Chunk]:
        """The chunks that are not empty; raises LimitError for a trigger with more matches than `most`."""
        last, own = None, 0
        for chunk in chunks:
            if not len(chunk):
                continue
            first = chunk.triggers
            trigger = _trigger(chunk, -1)
            own = (own if last == _trigger(chunk, 0) else 0) + len(chunk) if len(first) == 1 else len(chunk) - int(first[-1])
            last = trigger
            if max(own, int(np.diff(first).max(initial=0))) > most:
                name = "MAX_LISTED" if most == MAX_LISTED else "MAX_COMPARED"
                raise LimitError(
                    f"the event at position {trigger[1]} completes more than {most:,} matches, the limit of those that HAVING judges ({name})",
                    help=(
                        "make them fewer: a shorter WITHIN, conditions on events in FILTER, SELECT MAX, NXT or LAST",
                        f"cepheid.engine.plan.compiled.{name} is the limit",
                    ),
                )
            yield chunk

    def _holds(self, matches: Matches) -> Array:
        """Whether each match meets the condition (bool); NULL does not."""
        column = self._compute(matches).column(0)
        holds: Array = column.combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
        return holds

    def _after(self, found: Chunk) -> Iterator[Chunk]:
        """What is given of whole triggers' matches that are left."""
        if not len(found):
            return
        if self.compiled.plan.count:
            yield counted(found)
            return
        if self._projection is not None:
            found = found.take(_distinct(found, self._projection))
        if self.compiled.limit is not None:
            first = found.triggers
            ranks = np.arange(len(found)) - np.repeat(first, np.diff(first, append=len(found)))
            found = found.take(np.flatnonzero(ranks < self.compiled.limit))
        yield found

    # ---------------------------------------------------------------------------------------------------------------- CONSUME BY

    def _competing(self, found: Chunk, spans: Spans) -> Array:
        """Numbers of the matches that start after the last trigger; their triggers are the last ones now."""
        owners, starts, ends = spans(found)
        first = found.triggers
        bounds = []
        last = self._fitted(owners)
        rows = (
            zip(owners[first].tolist(), np.maximum.reduceat(starts, first).tolist(), ends[first].tolist(), strict=True)
            if len(first)
            else ()
        )
        for owner, greatest, end in rows:
            bounds.append(int(last[owner]))
            if greatest > last[owner]:
                last[owner] = end
        return np.flatnonzero(starts > np.repeat(np.array(bounds, np.int64), np.diff(first, append=len(found))))

    def _chosen(self, found: Chunk, holds: Array, strategy: Strategy, spans: Spans) -> Array:
        """The same of those that a strategy chooses among the ones that compete."""
        owners, starts, ends = spans(found)
        first = found.triggers.tolist()
        last = self._fitted(owners)
        chosen: list[int] = []
        for start, stop in zip(first, [*first[1:], len(found)], strict=True):
            owner = owners[start]
            competing = start + np.flatnonzero(starts[start:stop] > last[owner])
            won = [number for number in _winners(strategy, competing.tolist(), self._supports(found, competing)) if holds[number]]
            if won:
                chosen += won
                last[owner] = ends[start]
        return np.array(chosen, np.int64)

    def _supports(self, found: Chunk, numbers: Array) -> list[tuple[int, ...]]:
        """The positions in some variable, of some matches, ascending."""
        supports = []
        for number in numbers.tolist():
            marks = slice(int(found.offsets[number]), int(found.offsets[number + 1]))
            positions = found.positions[marks][self._marking[found.labels[marks]]]
            supports.append(tuple(positions.tolist()))
        return supports

    @property
    def _marking(self) -> Array:
        """For each label whether it has a variable (bool)."""
        return np.array([bool(label) for label in self.compiled.layout.labels], np.bool_)

    def _fitted(self, owners: Array) -> Array:
        """The last triggers, with room for these owners."""
        missing = int(owners.max(initial=-1)) + 1 - len(self._last)
        if missing > 0:
            self._last = np.append(self._last, np.full(missing, NOTHING, np.int64))
        return self._last

    def moved_on(self, owner: int) -> None:
        """Owners are numbered anew: one goes on as number 0, the others are done; NOTHING: all are."""
        kept = self._last[owner : owner + 1] if 0 <= owner < len(self._last) else self._last[:0]
        self._last = kept.copy()

    def release(self, slots: Array) -> None:
        """Forget these partitions."""
        if self.compiled.consume is not Consumption.ANY:
            self._last[slots[slots < len(self._last)]] = NOTHING

    @property
    def nbytes(self) -> int:
        """Bytes of the last triggers."""
        return int(self._last.nbytes)

    def dump(self) -> dict[str, Any]:
        """The last triggers, as a section: (owners, places)."""
        if not self._consumes:
            return {}
        owners = np.flatnonzero(self._last != NOTHING)
        return {"having_last": np.stack([owners, self._last[owners]]).astype("<i8")}

    def load(self, sections: Mapping[str, Any], stored: Stored) -> None:
        """Go on, fresh, from what `dump` gave; raises ValueError for what it cannot have given."""
        if not self._consumes:
            return
        owners, places = np.frombuffer(sections["having_last"], "<i8").reshape(2, -1).astype(np.int64)
        if (places < 0).any() or len(np.unique(owners)) < len(owners):
            raise ValueError("its last triggers do not fit together")
        if self.compiled.consume is Consumption.ANY:
            if (owners != 0).any():
                raise ValueError("its last triggers do not fit together")
        else:
            owners = stored.those(owners, places).astype(np.int64)
        self._fitted(owners)[owners] = places


def _trigger(chunk: Chunk, number: int) -> tuple[int, int]:
    """(segment, position) of the event that ends a match."""
    return int(chunk.segments[number]), int(chunk.ends[number])


def _whole_triggers(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same matches in chunks that have all those of each of their triggers."""
    held: list[Chunk] = []
    for chunk in chunks:
        if not len(chunk):
            continue
        last = int(chunk.triggers[-1])
        if held and (last or _trigger(held[-1], 0) != _trigger(chunk, 0)):
            goes_on = _trigger(held[-1], 0) == _trigger(chunk, 0)
            if not goes_on:
                yield collect(held)
                held = []
        if last:
            yield collect([*held, chunk.take(np.arange(last))])
            held = [chunk.take(np.arange(last, len(chunk)))]
        else:
            held.append(chunk)
    if held:
        yield collect(held)


# ------------------------------------------------------------------------------------------------------------ what SELECT shows


def _projection(compiled: Compiled) -> Array | None:
    """For each label number that of what SELECT shows of it, -1 for nothing; None where different matches show different rows."""
    shown = frozenset(compiled.plan.variables)
    labels = compiled.layout.labels
    parts = [label & shown for label in labels]
    if len(set(parts)) == len(parts) and all(part or not label for part, label in zip(parts, labels, strict=True)):
        return None
    numbers = {part: number for number, part in enumerate(dict.fromkeys(part for part in parts if part))}
    return np.array([numbers.get(part, -1) for part in parts], np.int64)


def _distinct(found: Chunk, projection: Array) -> Array:
    """Numbers of the matches, the first of those that show the same row of a trigger; O(marks log marks)."""
    labels = projection[found.labels]
    kept = np.flatnonzero(labels >= 0)
    owners = np.repeat(np.arange(len(found)), np.diff(found.offsets))[kept]
    lengths = np.bincount(owners, minlength=len(found))
    offsets = np.cumsum(lengths) - lengths
    positions, labels = found.positions[kept], labels[kept]
    first = found.triggers
    triggers = np.repeat(np.arange(len(first)), np.diff(first, append=len(found)))
    chosen = []
    for length in np.unique(lengths).tolist():
        mine = np.flatnonzero(lengths == length)
        marks = offsets[mine][:, None] + np.arange(length)
        rows = np.hstack([triggers[mine][:, None], found.starts[mine][:, None], positions[marks], labels[marks]])
        chosen.append(mine[np.unique(rows, axis=0, return_index=True)[1]])
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)


# --------------------------------------------------------------------------------------------------------------------- strategies


def _winners(strategy: Strategy, numbers: Sequence[int], supports: Sequence[tuple[int, ...]]) -> list[int]:
    """The numbers of the matches whose supports a strategy keeps (semantics.md, section 3), in their order."""
    if not supports:
        return []
    if strategy is Strategy.MAX:
        kept: list[frozenset[int]] = []
        for support in sorted({frozenset(each) for each in supports}, key=len, reverse=True):
            if not any(support < other for other in kept):
                kept.append(support)
        winning = set(kept)
        return [number for number, support in zip(numbers, supports, strict=True) if frozenset(support) in winning]
    # The least position of the difference decides NXT, the greatest LAST; a longer support has what a part of it lacks.
    order = (lambda support: tuple(-place for place in support)) if strategy is Strategy.NXT else (lambda support: support[::-1])
    best = max(map(order, supports))
    return [number for number, support in zip(numbers, supports, strict=True) if order(support) == best]
