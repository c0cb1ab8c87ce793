"""HAVING: each match is judged by its measures, and what comes after that in a query is done here.

Comes in: chunks of all matches, as an evaluation makes them. Goes out: chunks of those that are given, or counted. What HAVING leaves out is no
match, so what an evaluation otherwise does by itself comes after it: CONSUME BY, LIMIT and ANY, COUNT(*), equal rows of SELECT. NXT, LAST and MAX
choose before HAVING, but among those that CONSUME BY leaves: with it they choose here too. So does RESTRICTED where matches may begin before the
event that is read first. Where the evaluation can start a partition anew (`evaluations.choosing.consuming`), it asks here which matches are left, and
CONSUME BY and the strategy are its own.

The cost is that of listing all matches, whatever LIMIT says; a trigger with more than `MAX_LISTED` is a LimitError. They are judged as they come, and
none is kept that is not given, but where a strategy chooses here, and what SELECT has shown of a trigger. All is done in columns, but for a step of
Python per trigger under CONSUME BY, and per match where a strategy chooses here.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.evaluations.base import collect
from cepheid.engine.evaluations.choosing.consuming import Consuming
from cepheid.engine.evaluations.choosing.guided import Guided
from cepheid.engine.evaluations.counts.chosen_count import counted
from cepheid.engine.evaluations.counts.listed import bounded, trigger_of
from cepheid.engine.output.measures import Computation
from cepheid.engine.run.amounts import Amounts
from cepheid.engine.run.worth import Worth
from cepheid.language.syntax import Consumption, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored
    from cepheid.engine.output.matches import Matches
    from cepheid.engine.plan.compiled import Compiled

    Spans = Callable[[Chunk], tuple[Array, Array, Array]]

NOTHING = -1
"""The place of the last trigger before there is one."""


class Having:
    """HAVING and what follows it, over the partitions of one stream; its state is the last trigger of each, under CONSUME BY.

    time: the time column. consumes: whether it has that state.
    """

    def __init__(self, compiled: Compiled, time: str | None) -> None:
        having = compiled.plan.having
        self.compiled = compiled
        self._compute = None if having is None else Computation([having], time)
        self._projection = None if compiled.plan.count or compiled.plan.measures else _projection(compiled)
        self.consumes = compiled.consume is not Consumption.NONE and not compiled.restarts
        self._last: Array = np.zeros(0, np.int64)
        self._amounts = Amounts(compiled) if compiled.sums else None
        self._worth: Worth | None = None

    def heed(self, evaluation: AnyEvaluation, letters: Array, column: Callable[[str], Any]) -> Array | None:
        """What the events are worth that an evaluation reads next (`Events.worth`), where it has to know. letters, column: see `Amounts.part`."""
        if self._amounts is not None and isinstance(evaluation, Guided) and evaluation.guide is not None:
            evaluation.add(self._amounts.part(letters, column))
        if not isinstance(evaluation, Consuming) or evaluation.bound is None:
            return None
        if self._worth is None:
            self._worth = Worth(evaluation.bound.needs, self.compiled.program.automaton)
        return self._worth.of(letters, column)

    def judged(self, chunks: Iterator[Chunk], shown: Callable[[Chunk], Matches], spans: Spans) -> Iterator[Chunk]:
        """What is given of the matches in some chunks, which hold whole triggers.

        shown: gives a chunk as matches, without measures. spans: (owner, start, end) of each match, int64: what CONSUME BY looks at, which is
        the partition and positions in it, or 0 and places in the stream. Raises LimitError past MAX_LISTED, and MAX_COMPARED.
        """
        if self.compiled.restarts:
            return _filled(self._after(_filled(chunks)))
        choose = self.compiled.chooses
        listed = self._bounded(chunks)
        if choose is Strategy.RESTRICTED:
            # CONSUME BY leaves it, if it leaves any match of the trigger.
            competing = self._competing(_filled(_last_starting(listed, spans)), shown, spans)
        elif choose is None:
            competing = self._competing(listed, shown, spans)
        else:
            competing = (found.take(self._chosen(found, self._holds(shown(found)), choose, spans)) for found in _whole_triggers(listed))
        return _filled(self._after(_filled(competing)))

    def left(self, chunks: Iterator[Chunk], segments: Array, shown: Callable[[Chunk], Matches]) -> Iterator[Chunk]:
        """Of some chunks the matches that meet the condition: what `Consuming` asks for. segments: see there. Raises LimitError past MAX_LISTED."""
        for chunk in self._bounded(chunks):
            matches = shown(dataclasses.replace(chunk, segments=segments[chunk.segments].astype(np.int32)))
            yield chunk.take(np.flatnonzero(self._holds(matches)))

    def _bounded(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The chunks that are not empty; raises LimitError for a trigger with more matches than are listed."""
        plan = self.compiled.plan
        span = plan.pattern.span if plan.having is None else plan.having.expression.span
        return bounded(chunks, (plan.text or None, span), compared=self.compiled.compares)

    def _holds(self, matches: Matches) -> Array:
        """Whether each match meets the condition (bool); NULL does not."""
        if self._compute is None:
            return np.ones(len(matches), np.bool_)
        column = self._compute(matches).column(0)
        holds: Array = column.combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
        return holds

    def _after(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """What is given of the matches that are left. Of a trigger that goes on in the next chunk a number is kept, or the rows that were shown."""
        if self.compiled.plan.count:
            return chunks if self.compiled.counts_later else _counts(chunks)
        if self._projection is not None:
            chunks = _filled(distinct(chunks, self._projection))
        return chunks if self.compiled.limit is None else _limited(chunks, self.compiled.limit)

    # ---------------------------------------------------------------------------------------------------------------- CONSUME BY

    def _competing(self, chunks: Iterator[Chunk], shown: Callable[[Chunk], Matches], spans: Spans) -> Iterator[Chunk]:
        """The matches that meet the condition and start after the last trigger that had such."""
        open_trigger, bound = None, NOTHING  # the last trigger, and what it started with
        for chunk in chunks:
            found = chunk.take(np.flatnonzero(self._holds(shown(chunk))))
            if not self.consumes or not len(found):
                yield found
                continue
            owners, starts, ends = spans(found)
            first = found.triggers
            last = self._fitted(owners)
            bounds = []
            for number, (owner, greatest, end) in enumerate(
                zip(owners[first].tolist(), np.maximum.reduceat(starts, first).tolist(), ends[first].tolist(), strict=True)
            ):
                if number or open_trigger != trigger_of(found, 0):
                    bound = int(last[owner])
                bounds.append(bound)
                if greatest > bound:
                    last[owner] = end
            open_trigger = trigger_of(found, -1)
            yield found.take(np.flatnonzero(starts > np.repeat(np.array(bounds, np.int64), np.diff(first, append=len(found)))))

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
            self._last = np.append(self._last, np.full(max(missing, len(self._last)), NOTHING, np.int64))
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
        if not self.consumes:
            return {}
        owners = np.flatnonzero(self._last != NOTHING)
        return {"having_last": np.stack([owners, self._last[owners]]).astype("<i8")}

    def load(self, sections: Mapping[str, Any], stored: Stored) -> None:
        """Go on, fresh, from what `dump` gave; raises ValueError for what it cannot have given."""
        if not self.consumes:
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


def _filled(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks that are not empty."""
    return (chunk for chunk in chunks if len(chunk))


def _whole_triggers(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same matches in chunks that have all those of each of their triggers; chunks: none is empty."""
    held: list[Chunk] = []
    for chunk in chunks:
        if held and trigger_of(held[-1], 0) != trigger_of(chunk, 0):
            yield collect(held)
            held = []
        last = int(chunk.triggers[-1])
        if last:
            yield collect([*held, chunk.take(np.arange(last))])
            held = [chunk.take(np.arange(last, len(chunk)))]
        else:
            held.append(chunk)
    if held:
        yield collect(held)


def _last_starting(chunks: Iterator[Chunk], spans: Spans) -> Iterator[Chunk]:
    """Of each trigger the first of the matches that start last, one chunk behind; chunks: none is empty. O(matches)."""
    held: list[Chunk] = []
    for chunk in chunks:
        found = collect([*held, chunk])
        starts, number = spans(found)[1], _numbers(found)
        last = np.flatnonzero(starts == np.maximum.reduceat(starts, found.triggers)[number])
        found = found.take(last[np.flatnonzero(np.diff(number[last], prepend=-1))])
        yield found.take(np.arange(len(found) - 1))
        held = [found.take(np.array([len(found) - 1]))]
    yield from held


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


def distinct(chunks: Iterator[Chunk], projection: Array) -> Iterator[Chunk]:
    """The matches, of those that show the same row of a trigger the first; what the last trigger of a chunk has shown is kept."""
    shown: Chunk | None = None
    for chunk in chunks:
        before = 0 if shown is None or trigger_of(shown, 0) != trigger_of(chunk, 0) else len(shown)
        found = collect([shown, chunk]) if shown is not None and before else chunk
        found = found.take(_first_of_each_row(found, projection))  # those that were shown stay in front
        yield found.take(np.arange(before, len(found)))
        shown = found.take(np.arange(int(found.triggers[-1]), len(found)))


def _first_of_each_row(found: Chunk, projection: Array) -> Array:
    """Numbers of the matches that no earlier one of the trigger looks like; O(marks log marks)."""
    labels = projection[found.labels]
    kept = np.flatnonzero(labels >= 0)
    owners = np.repeat(np.arange(len(found)), np.diff(found.offsets))[kept]
    lengths = np.bincount(owners, minlength=len(found))
    offsets = np.cumsum(lengths) - lengths
    positions, labels = found.positions[kept], labels[kept]
    triggers, starts = _numbers(found), found.starts
    chosen = []
    for length in np.unique(lengths).tolist():
        mine = np.flatnonzero(lengths == length)
        marks = offsets[mine][:, None] + np.arange(length)
        rows = np.hstack([triggers[mine][:, None], starts[mine][:, None], positions[marks], labels[marks]])
        chosen.append(mine[np.unique(rows, axis=0, return_index=True)[1]])
    return np.sort(np.concatenate(chosen))


def _numbers(found: Chunk) -> Array:
    """For each match the number of its trigger."""
    first = found.triggers
    return np.repeat(np.arange(len(first)), np.diff(first, append=len(found)))


def _limited(chunks: Iterator[Chunk], limit: int) -> Iterator[Chunk]:
    """The first matches of each trigger."""
    last, given = None, 0
    for chunk in chunks:
        first = chunk.triggers
        before = given if last == trigger_of(chunk, 0) else 0
        ranks = np.arange(len(chunk)) - first[_numbers(chunk)]
        ranks[: int(first[1]) if len(first) > 1 else len(chunk)] += before
        last, given = trigger_of(chunk, -1), int(ranks[-1]) + 1
        yield chunk.take(np.flatnonzero(ranks < limit))


def _counts(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The number of matches of each trigger."""
    held: Chunk | None = None
    for chunk in chunks:
        found = counted(chunk)
        if held is not None and trigger_of(held, 0) == trigger_of(found, 0):
            found = dataclasses.replace(found, counts=found.counts.copy() if found.counts is not None else None)
            assert found.counts is not None
            assert held.counts is not None
            found.counts[0] += held.counts[0]
        elif held is not None:
            yield held
        yield found.take(np.arange(len(found) - 1))
        held = found.take(np.array([len(found) - 1]))
    if held is not None:
        yield held


# --------------------------------------------------------------------------------------------------------------------- strategies


def _winners(strategy: Strategy, numbers: Sequence[int], supports: Sequence[tuple[int, ...]]) -> list[int]:
    """The numbers of the matches whose supports a strategy keeps (docs/strategies.md), in their order."""
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
