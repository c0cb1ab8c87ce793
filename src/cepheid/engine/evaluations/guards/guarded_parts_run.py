"""Patterns of whose parts NXT, LAST or MAX choose some matches, or THEN what is next, by the kernel of guards: all matches, or their number.

Comes in: what `GuardedRun` reads. Goes out: the matches, in the order of the events that end them. Each part has a run of its own,
which reads the events first, as far as they are asked for. The supports that it gives go to the kernel, which leaves no other way through the part
(`_guards_parts`), and to the runs of parts around it.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.program import ChoiceProgram, NextProgram
from cepheid.automata.transition import order
from cepheid.engine.evaluations.base import Chunk, collect
from cepheid.engine.evaluations.guards.guarded_choice_run import GuardedChoiceRun
from cepheid.engine.evaluations.guards.guarded_next_run import NextRun, by_partition, by_time, firsts_of
from cepheid.engine.evaluations.guards.guarded_run import GuardedBeginsRun, GuardedCountRun, GuardedRun
from cepheid.engine.memory.pools import ragged
from cepheid.language.syntax import Strategy, TimeModel
from cepheid.logical.plan import Derived

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cepheid.automata.automaton import Part
    from cepheid.automata.program import Program
    from cepheid.automata.transition import Transition
    from cepheid.engine.evaluations.base import HasBytes
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.guards.guarded_run import GuardSizes
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

HEAD = ("at", "end", "done", "rule", "floor", "loose")
"""The words that stand first of each part in what is chosen: see `cepheid.kernel._guards_parts`."""

EVENT = frozenset({""})
"""How a part marks its events: what is compared has no variables."""


class ToldRun(GuardedRun):
    """The run state of a program with parts, or without any, that is told what is chosen of them."""

    def __init__(self, program: Program, *, sizes: GuardSizes | None = None, **options: Any) -> None:
        super().__init__(program, sizes=sizes, **options)
        self._feeds: Sequence[Iterator[Chunk]] = ()
        rules = [self._rule(part) for part in program.automaton.parts]
        self._rules = np.column_stack([np.array(rules, np.int64).reshape(-1, 2), self.tables.loose])
        self.mends |= {"part": "_mend_part"}

    def _rule(self, part: Part) -> tuple[int, int]:
        """How the kernel reads what is chosen, and the number of the value of an event that is the floor of what is next."""
        if part.ended is None:
            return 0, 0
        return 1 + (part.everywhere or part.rule is TimeModel.COMPLETE_HISTORY), self.tables.columns[part.ended]

    def tell(self, feeds: Sequence[Iterator[Chunk]], firsts: Array) -> None:
        """What is chosen of each part at the events that are read next, see `supports`; firsts: what `firsts_of` says of these events."""
        self._feeds = feeds
        self._chosen = _joined([np.zeros(0, np.int64)] * len(feeds), [False] * len(feeds), self._rules[: len(feeds)])
        self._firsts = firsts if self.tables.timely else np.zeros(0, np.int64)

    def _mend_part(self) -> None:
        """More of what is chosen of part `argument`: the kernel has come to its end."""
        part = self._get("argument")
        heads = self._chosen[: len(HEAD) * len(self._feeds)].reshape(-1, len(HEAD))
        left = [self._chosen[start:stop] for start, stop in heads[:, :2].tolist()]
        known = [bool(done) for done in heads[:, 2].tolist()]
        chunk = next(self._feeds[part], None)
        if chunk is None:
            known[part] = True
        else:
            left[part] = np.concatenate([left[part], _supports_of(chunk)])
        self._chosen = _joined(left, known, self._rules)

    def _parts(self) -> Iterable[Array | HasBytes]:
        return (*super()._parts(), self._chosen)


class PartChoiceRun(ToldRun, GuardedChoiceRun):
    """The run state of NXT, LAST or MAX in a part of a pattern."""

    _shows_first = False  # supports are told apart, wherever their matches begin

    def __init__(self, program: ChoiceProgram, **options: Any) -> None:
        # Of NXT and LAST all that are chosen have the same support.
        super().__init__(program, **options, limit=None if program.strategy is Strategy.MAX else 1)


class PartNextRun(ToldRun, NextRun):
    """The run state of what may be next, in a part of a pattern."""


class PartsRun(ToldRun):
    """The run state of all matches of a program with parts that are chosen from; the interface is that of `Evaluation`.

    Update: as `GuardedRun`, and as `GuardedChoiceRun` for each part; at an event that ends one O(log n) for each event of what is chosen, and a cell.
    Where other events may stand between these, and where PROJECT hides events, it is all cells that are reached between them. The matches of a part
    are those of the whole stream, whatever bounds the pattern. Raises what these do.
    """

    def __init__(self, program: Program, *, sizes: GuardSizes | None = None, **options: Any) -> None:
        super().__init__(program, sizes=sizes, **options)
        self._runs = [self._run_of(number) for number in range(len(program.automaton.parts))]

    def _run_of(self, number: int) -> PartChoiceRun | PartNextRun:
        """What finds what may be chosen of a part, without any state.

        What begins before the pattern does is not next, so the window of the pattern bounds such a part, too.
        """
        parts = self.program.automaton.parts
        part, program = parts[number], part_program(parts, number)
        if isinstance(program, ChoiceProgram):
            return PartChoiceRun(program, sizes=self.sizes, window=part.window, count_window=part.count, variant=self.variant)
        around = None if self.program.automaton.compares_all else self.window
        window = min((each for each in (part.window, around) if each is not None), default=None)
        return PartNextRun(program, sizes=self.sizes, window=window, variant=self.variant)

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, and give the matches that end in it as they are made, see `KernelEvaluation.chunks`."""
        looks_ahead = any(part.is_next for part in self.program.automaton.parts)
        firsts = firsts_of(events) if looks_ahead else np.zeros(0, np.int64)
        read = dataclasses.replace(events, vetoed=None)
        rows = by_partition(events) if looks_ahead else None
        if rows is None:
            feeds: Sequence[Iterator[Chunk]] = self._chosen_of(read, firsts)
        else:
            # A partition may be read in several segments, and all of them have what is next at a time of theirs.
            owners = np.repeat(events.slots, np.diff(events.cuts, append=len(events)))[rows]
            cuts = np.flatnonzero(np.diff(owners, prepend=-1))
            found = [collect(list(feed)) for feed in self._chosen_of(read.of(rows, cuts=cuts, slots=owners[cuts]), firsts[rows])]
            ends = [firsts if part.is_next else _places(events) for part in self.program.automaton.parts]
            feeds = [iter([_by_segment(*each, owners[cuts], events)]) for each in zip(found, ends, strict=True)]
        self.tell(feeds, firsts)
        yield from super().chunks(events)
        for feed in feeds:
            for _ in feed:
                pass  # what ends no part around
        for run in (self, *self._runs):
            run.tell((), np.zeros(0, np.int64))

    def _chosen_of(self, events: Events, firsts: Array) -> list[Iterator[Chunk]]:
        """What is chosen of each part, for the pattern; for those around it, too, the runs are told."""
        taps: list[list[Iterator[Chunk]]] = []
        for number, run in enumerate(self._runs):
            run.tell([taps[inner].pop() for inner in range(len(run.program.automaton.parts))], firsts)
            around = sum(len(other.program.automaton.parts) > number for other in self._runs)
            taps.append(list(itertools.tee(supports(run, events), 1 + around)))
        return [each.pop() for each in taps]

    # ------------------------------------------------------------------------------------------------ partitions, state

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots, see `Keeping.release`."""
        for run in self._runs:
            run.release(slots)
        super().release(slots)

    def restart(self, slots: Array) -> None:
        """Forget the partitions in these slots, see `Keeping.restart`."""
        for run in self._runs:
            run.restart(slots)
        super().restart(slots)

    def expire(self, time: int) -> Array:
        """Free the memory of partitions in which no match can go on, see `KernelEvaluation.expire`: of the pattern, and of its parts."""
        idle = super().expire(time)
        for run in self._runs:
            idle = np.intersect1d(idle, run.expire(time))
        return idle

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        for run in self._runs:
            run.ensure_slots(count)
        super().ensure_slots(count)

    @property
    def wasteful(self) -> bool:
        """Whether a fresh instance with the same state would need much less memory."""
        return super().wasteful or any(run.wasteful for run in self._runs)

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        return super().memory_usage() + sum(run.memory_usage() for run in self._runs)

    def dump(self) -> dict[str, Any]:
        """The live state as named sections, those of the parts with their numbers."""
        sections: dict[str, Any] = dict(super().dump())
        for number, run in enumerate(self._runs):
            sections |= {f"guarded_part{number}/{name}": section for name, section in run.dump().items()}
        return sections

    def load(self, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; raises SnapshotError where that does not fit."""
        super().load(sections, stored)
        for number, run in enumerate(self._runs):
            run.load(_of_part(sections, number), stored)

    def texts_in(self, sections: Mapping[str, Any]) -> Array:
        """The numbers of texts that what `dump` gave speaks of, in any order (int64)."""
        return np.concatenate(
            [super().texts_in(sections), *(run.texts_in(_of_part(sections, number)) for number, run in enumerate(self._runs))]
        )


class PartsCountRun(PartsRun, GuardedCountRun):
    """The run state of COUNT(*) of such a program; chunks are as those of `GuardedCountRun`."""


class PartsChoiceRun(PartsRun, GuardedChoiceRun):
    """The run state of NXT, LAST or MAX of such a program. A comparison of supports is O(their length), but for LAST as in `GuardedChoiceRun`."""


class PartsBeginsRun(PartsRun, GuardedBeginsRun):
    """The run state of such a program in which any event of a match may say where it begins."""


def part_program(parts: Sequence[Part], number: int) -> ChoiceProgram | NextProgram:
    """What finds what is chosen of a part; it may have those before it inside."""
    part = parts[number]
    automaton = part.automaton
    known: ChoiceProgram | NextProgram | None = automaton.derived.get((part_program, part.rule, part.ended))
    if known is not None:
        return known

    def counts(move: Transition) -> bool:
        """Whether what is compared has the event of a move: of what is next also the first and the last one, if PROJECT hides them.

        That is where they begin at their own time.
        """
        outer = move.source == automaton.initial or move.target in automaton.finals
        return bool(move.mark) or (part.is_next and move.mark is not None and outer and not part.earlier)

    moves = order(dataclasses.replace(move, mark=EVENT) if counts(move) else move for move in automaton.transitions)
    inner = tuple(parts[:number]) if any(move.parts for move in moves) else ()
    own, found = dataclasses.replace(automaton, transitions=moves, parts=inner), part.ended
    if isinstance(part.rule, Strategy):
        known = ChoiceProgram(own, part.rule, None)
    else:
        assert found is not None
        known = NextProgram(own, part.rule is TimeModel.COMPLETE_HISTORY, found, part.earlier, part.everywhere)
    automaton.derived[part_program, part.rule, part.ended] = known
    return known


def supports(run: PartChoiceRun | PartNextRun, events: Events) -> Iterator[Chunk]:
    """What is chosen of a part in a batch, each support once, with the event that ends it; labels say whether that is not in it (1).

    Of what is next they are fronts, in which the first places of times stand for events.
    """
    if isinstance(run, NextRun):
        yield from by_time(run, run.chunks(events))
        return
    hidden = np.array([not mark for mark in run.program.label_sets], np.uint16)
    for chunk in run.chunks(events):
        yield dataclasses.replace(chunk, labels=hidden[chunk.labels])


def _places(events: Events) -> Array:
    """Of each event its place in its partition (int64)."""
    assert events.values is not None
    found: Array = events.values.words[:, events.values.layout.places[Derived("place")].start].view(np.int64)
    return found


def _by_segment(found: Chunk, ends: Array, slots: Array, events: Events) -> Chunk:
    """What is chosen of partitions, in the segments of events that these are read in. slots: of the partitions. ends: what each event may end."""
    numbers: dict[tuple[int, int], list[int]] = {}
    for number, key in enumerate(zip(slots[found.segments].tolist(), found.ends.tolist(), strict=True)):
        numbers.setdefault(key, []).append(number)
    segments = np.repeat(np.arange(len(events.cuts)), np.diff(events.cuts, append=len(events)))
    keys = np.unique(np.column_stack([segments, ends]), axis=0)
    each = [numbers.get((slot, end), []) for slot, end in zip(events.slots[keys[:, 0]].tolist(), keys[:, 1].tolist(), strict=True)]
    chosen = found.take(np.array([number for own in each for number in own], np.int64))
    chosen.segments[:] = np.repeat(keys[:, 0], [len(own) for own in each])
    return chosen


def _supports_of(chunk: Chunk) -> Array:
    """Supports as the kernel reads them: of each the segment, how many positions it has, that of the event that ends it, and these."""
    lengths = np.diff(chunk.offsets)
    own = lengths - chunk.labels[chunk.offsets[1:] - 1]
    firsts = chunk.offsets[:-1] + 3 * np.arange(len(lengths))
    found: Array = np.empty(3 * len(lengths) + len(chunk.positions), np.int64)
    found[firsts] = chunk.segments
    found[firsts + 1] = own
    found[firsts + 2] = chunk.ends
    found[ragged(firsts + 3, lengths)[1]] = chunk.positions
    # What is not in its support stands behind it.
    kept = np.ones(len(found), np.bool_)
    kept[(firsts + 3 + own)[own < lengths]] = False
    return found[kept]


def _joined(supports: list[Array], known: list[bool], rules: Array) -> Array:
    """What is chosen of all parts, behind where that of each stands, whether nothing follows, and the rules by which it is chosen."""
    stops = len(HEAD) * len(supports) + np.cumsum([len(each) for each in supports])
    heads = np.column_stack([stops - [len(each) for each in supports], stops, known, rules])
    return np.concatenate([heads.reshape(-1), *supports]).astype(np.int64)


def _of_part(sections: Mapping[str, Any], number: int) -> dict[str, Any]:
    prefix = f"guarded_part{number}/"
    return {name.removeprefix(prefix): section for name, section in sections.items() if name.startswith(prefix)}
