"""Automata with guards: gaps, windows on parts, and conditions between events, by groups of partial matches.

Comes in: letters, and the values of events that guards read. Goes out: matches, what a strategy chooses of them, or their number. Per event, macro
state and region (`automata.regions`) an index gives the union of the region's groups (`guarded_indexes`), which becomes one cell of the match graph
(`guarded_graph`); the cell then is an entry of the region's macro state. What an event asks is asked before anything is entered. Groups that wait are
not touched.

When to use this: only where the kernel (`guarded_run`) does not know what a program asks; `explain` says what that is. It is plain Python, 35 to 240
times slower, and answers everything. Its state and its sections are its own: the kernel has others, and neither reads those of the other.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cepheid.automata.program import Program
from cepheid.automata.regions import Regions
from cepheid.engine.evaluations.around.trackers import backward
from cepheid.engine.evaluations.base import ALL, Keeping
from cepheid.engine.evaluations.progress import beat
from cepheid.engine.evaluations.spread import spread
from cepheid.engine.evaluations.uncompiled import guarded_state
from cepheid.engine.evaluations.uncompiled.guarded_choice import Count
from cepheid.engine.evaluations.uncompiled.guarded_graph import Cell, Node, Steps, Times, meld, united, walk
from cepheid.engine.evaluations.uncompiled.guarded_indexes import Question
from cepheid.engine.evaluations.uncompiled.guarded_next import Following, Fronts, Nexts
from cepheid.engine.evaluations.uncompiled.guarded_output import Distinct, Output, Shown, chosen_paths, sampled
from cepheid.engine.evaluations.uncompiled.guarded_parts import Chosen, Places, Restriction, S, Supported, chosen
from cepheid.engine.evaluations.uncompiled.guarded_state import Partitions
from cepheid.engine.evaluations.uncompiled.guarded_values import Evaluator, Reader, is_several, stored
from cepheid.engine.memory.checks import demand, fitting, inside, numbers
from cepheid.engine.memory.pools import NUMBER_LIMIT
from cepheid.errors import LimitError
from cepheid.language.syntax import Consumption, Strategy, TimeModel
from cepheid.logical.plan import Begin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    from cepheid.automata.automaton import Automaton, Part
    from cepheid.automata.program import ChoiceProgram
    from cepheid.automata.regions import Macro, Region, Step
    from cepheid.engine.evaluations.base import Bounds, Chunk, HasBytes
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.uncompiled.guarded_indexes import Bank
    from cepheid.engine.evaluations.uncompiled.guarded_output import Found
    from cepheid.engine.evaluations.uncompiled.guarded_state import Partition
    from cepheid.engine.evaluations.uncompiled.guarded_values import Value
    from cepheid.engine.memory.stored import Stored
    from cepheid.logical.plan import Expression

Array = np.ndarray[Any, Any]

SETS_LIMIT = 1 << 14
"""Different sets of values that one event may make, where partial matches keep sets: each is a group, and n values have 2^n sets."""

Group: TypeAlias = "tuple[tuple[Value, ...], Node | None]"
"""The values of a group's slots, and what it goes on from; None where a match begins."""

Copied: TypeAlias = Callable[[Cell, Node], Cell]
"""What makes a cell like another one, that goes on from something else."""

BEGIN_TIME = Begin.of("time")
"""When an event begins, where a definition made it."""


def too_many_sets(groups: int) -> LimitError:
    """An event makes so many groups."""
    return LimitError(
        f"an event leads to {groups} groups of partial matches that keep different sets of values, and the limit is {SETS_LIMIT} (SETS_LIMIT)",
        help="a condition between an iteration and a later variable keeps all values of each choice of events: let the events follow"
        " each other directly (`:+`, `:{5}`), compare with prev, or bound the iteration by a smaller window",
    )


class Guarded(Keeping):
    """The run state of all matches of a program with guards, over any number of partitions; the interface is that of `Evaluation`.

    Update: as `guarded_indexes` says, per live macro state and region. Delay: output-linear times
    the logarithm of what is waiting; where the program is ambiguous, up to all ways in which a match is found. sample: of an ending event with more
    matches only so many, spread evenly over them; then each trigger costs O(cells and heap nodes that it reaches), as `sampled`, also those whose
    matches are given whole. parts: of the pattern, which are chosen from; each reads an event before the whole does. Raises LimitError past
    the limits of `automata.regions`, and past DISTINCT_LIMIT, SETS_LIMIT and PART_LIMIT.
    """

    def __init__(self, program: Program, *, sample: int | None = None, **bounds: Unpack[Bounds]) -> None:
        super().__init__(bounds)
        self.program = program
        self.sample = sample
        self.regions = Regions(program.automaton)
        self.steps = Steps()
        self.store: Partitions = Partitions()
        self.evaluator = Evaluator()
        self._questions: dict[Region, Question] = {}
        self._masks: dict[int, int | None] = {}
        self.parts = parts_of(program.automaton, self.window)
        self._looks_ahead = any(part.is_next for part in program.automaton.parts)
        self._earlier = any(part.earlier for part in program.automaton.parts)
        self._since: Expression | None = None
        self._begins = program.automaton.begins
        self._times = (0, 0, 0)
        self._choices = [(part, Places(program.automaton, number)) for number, part in enumerate(self.parts)]
        self._match = Shown(program).match
        self._epoch = 0
        self._row = 0
        self._reading = False
        self._trigger: tuple[Node, int] | None = None
        self._triggers = self._matches = self._skipped = 0

    # ------------------------------------------------------------------------------------------------ what users of it see

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, and give the matches that end in it as they are made, in the order of the events that end them."""
        rows = events.records(workplace=0)
        for part in self.parts:
            part.begin(events, rows)
        self.begin(events, rows)
        together = _together(events) if self._looks_ahead else None
        letters, times = events.letters.tolist(), events.times.tolist()
        vetoed = None if events.vetoed is None else events.vetoed.tolist()
        stops = [*events.cuts.tolist(), len(events)][1:]
        output = Output(counts=self._counting)
        for segment, (row, start, stop) in enumerate(zip(rows.tolist(), events.cuts.tolist(), stops, strict=True)):
            if row == 0 and not (segment == 0 and events.continued):
                for each in (*self.parts, self):
                    each.store.release(np.zeros(1, np.int64))
            partition = self.store.of(row, self._epoch)
            for place in range(start, stop):
                self._row = place
                self._reading = True
                beat()
                places = [place] if together is None else together.get(place, [])
                for part in self.parts if places else ():
                    part.read(row, places, letters, times)
                root = self._event(partition, letters[place], times[place], place)
                if root is not None and not (vetoed and vetoed[place]):
                    for match, count in self._given(root, partition.position - 1):
                        if output.is_full:
                            yield output.taken()
                        output.add(match, segment, count)
                        self._matches += 1
                        beat()
                    self._trigger = None
        if output.segments:
            yield output.taken()
        self._row = len(events)
        self._reading = False
        self.events += len(events)

    def begin(self, events: Events, rows: Array) -> None:
        """Make ready for a batch; rows: of the store, for each segment."""
        self.store.open(rows.astype(np.int64))
        self.marked = np.zeros(len(events), np.uint8)
        begins = [] if self._begins is None else [self._begins]
        asked = {*self.program.asked, *([BEGIN_TIME] if self._earlier else []), *([] if self._since is None else [self._since]), *begins}
        self._reader = self.evaluator.now = Reader(tuple(asked), self.program.automaton.alphabet, events)

    @property
    def reached(self) -> int:
        """How many rows of the last batch the matches given so far may show; the last of them may still become marked."""
        return min(self._row + 1, len(self.marked))

    @property
    def passed(self) -> int:
        """How many rows of the batch that is being read have been read to their end."""
        return self._row if self._reading else 0

    @property
    def triggers(self) -> int:
        """Events that ended at least one match."""
        return self._triggers

    @property
    def matches(self) -> int:
        """Matches given."""
        return self._matches

    @property
    def skipped(self) -> int:
        """Events that could change nothing and were passed without a step."""
        return self._skipped

    @property
    def wasteful(self) -> bool:
        """Never: what is closed is given back at once."""
        return False

    def trigger_matches(self) -> float | None:
        """How many matches the trigger has that is being enumerated; None where there is none. O(cells that it reaches)."""
        if self._trigger is None or self._repeats:
            return None
        count = Count(*self._trigger, self.steps).total
        return float(min(count, ALL if self.limit is None else self.limit))

    def _parts(self) -> Iterable[Array | HasBytes]:
        return ()

    @property
    def _bounded(self) -> bool:
        """Whether events leave the window; otherwise only what a trigger consumes goes, and that as a whole."""
        return self.window is not None or self.count_window is not None

    # ------------------------------------------------------------------------------------------------ one event

    def _mask(self, letter: int) -> int | None:
        """The mask of a letter, None for one that can change nothing."""
        if letter not in self._masks:
            mask = self.program.automaton.alphabet.mask_of(letter)
            self._masks[letter] = mask if not self.program.droppable or self.program.relevant(mask) else None
        return self._masks[letter]

    def _event(self, partition: Partition, letter: int, time: int, place: int) -> Node | None:
        """Read one event; the matches that end there, if there are any."""
        position = partition.position
        partition.position += 1
        self._reader.row = place
        mask = self._mask(letter)
        if mask is None:
            self._skipped += 1
            return None
        self._expire(partition, position, time)
        begins = self._reader(BEGIN_TIME) if self._earlier else time
        self._times = (time, begins, 0 if self._begins is None else self._reader(self._begins))
        low = partition.low
        made: list[tuple[Region, tuple[Value, ...], Node]] = []
        for region in self.regions.step(self.regions.initial, mask).marked:
            question = self._question(region, self.regions.initial)
            if all(self.evaluator.holds(test, ()) == truth for test, truth in question.literals) and self._kept(
                partition, region, [((), None)]
            ):
                made.append(self._made(partition, region, tuple(self.evaluator.value(term, ()) for term in region.made), None))
        if made and self.window is not None:
            partition.starts.append((position, time))
        steps: list[tuple[Bank, Step]] = [(bank, self.regions.step(bank.macro, mask)) for bank in partition.live(time)]
        for bank, step in steps:
            for region in step.marked:
                for values, child in self._kept(partition, region, self._asked(bank, region, low)):
                    beat()
                    made.append(self._made(partition, region, values, child))
        entered: list[tuple[Macro, tuple[Value, ...], Node]] = []
        for bank, step in steps:
            if step.unmarked is not None:
                entered += self._moved(bank, step.unmarked, low)
                partition.drop(bank.macro)
        self._enter(partition, entered, made, time)
        if made:
            self.marked[place] = 1
        root = united((node for region, _, node in made if region.final), self.steps)
        return self._triggered(partition, root)

    def _expire(self, partition: Partition, position: int, time: int) -> None:
        """Raise the least start that counts, to what the bounds of an event allow."""
        if partition.epoch != self._epoch:
            partition.epoch = self._epoch
            partition.close()
            partition.low = position
        low = partition.low
        if self.window is not None:
            starts = partition.starts
            while starts and time - starts[0][1] > self.window:
                low = max(low, starts.popleft()[0] + 1)
        if self.count_window is not None:
            low = max(low, position - self.count_window + 1)
        if low > partition.low:
            partition.rise(low)

    def _question(self, region: Region, macro: Macro) -> Question:
        found = self._questions.get(region)
        if found is None:
            found = self._questions[region] = Question(region, plural=self.regions.plural(macro))
        return found

    def _made(
        self, partition: Partition, region: Region, values: tuple[Value, ...], child: Node | None
    ) -> tuple[Region, tuple[Value, ...], Node]:
        """A new cell, with the values of its region."""
        assert region.label is not None
        cell = self._cell(partition, partition.position - 1, region.label, child, self._times)
        return region, values, Node(cell.key, cell)

    def _cell(self, partition: Partition, position: int, label: int, child: Node | None, times: Times) -> Cell:
        cell = Cell(partition.serial, position, label, child, times)
        partition.serial += 1
        if self._bounded:
            partition.cells.append(cell)
        return cell

    def _asked(self, bank: Bank, region: Region, low: int) -> list[tuple[tuple[Value, ...], Node]]:
        """What a region's groups come to, in an order that depends on the stream alone."""
        found = bank.ask(self._question(region, bank.macro), self.evaluator, low)
        if (
            len(found) > SETS_LIMIT
            and len(groups := {values for values, _ in found}) > SETS_LIMIT
            and any(is_several(value) for values in groups for value in values)
        ):
            raise too_many_sets(len(groups))
        # The keys differ, but where one match is in several groups.
        return sorted(found, key=lambda item: (item[1].key, json.dumps(stored(item[0])) if self.regions.ambiguous else ""))

    def _kept(self, partition: Partition, region: Region, found: Sequence[Group]) -> Sequence[Group]:
        """Groups that go on with a region at this event, restricted to what is chosen of the parts that end there."""
        if not self._choices:
            return found
        assert region.label is not None

        def copied(cell: Cell, child: Node) -> Cell:
            return self._cell(partition, cell.position, cell.label, child, cell.times)

        for part, places in self._choices:
            if region.label in places.ends and found:
                found = part.kept(self._row, places, region.label, found, partition.low, self.steps, copied=copied)
        return found

    def _moved(self, bank: Bank, regions: tuple[Region, ...], low: int) -> list[tuple[Macro, tuple[Value, ...], Node]]:
        """Where the groups of a macro state go that an event changes without marking it."""
        moved = []
        for values, node in bank.groups(low):
            beat()
            for region in regions:
                if all(self.evaluator.holds(test, values) == truth for test, truth in region.literals):
                    new = tuple(self.evaluator.value(term, values) for term in region.made)
                    moved += [(macro, tuple(new[place] for place in places), node) for macro, places in region.targets]
                    break
        return moved

    def _enter(
        self,
        partition: Partition,
        entered: list[tuple[Macro, tuple[Value, ...], Node]],
        made: list[tuple[Region, tuple[Value, ...], Node]],
        time: int,
    ) -> None:
        """Enter what has moved, and the cells of one event: those of one group are one entry. The greatest key comes last."""
        groups: dict[tuple[Macro, tuple[Value, ...]], Node] = {}
        for macro, values, node in entered + [
            (macro, tuple(values[place] for place in places), node) for region, values, node in made for macro, places in region.targets
        ]:
            union = meld(groups.get((macro, values)), node, self.steps)
            assert union is not None
            groups[macro, values] = union
        for (macro, values), node in sorted(groups.items(), key=lambda item: item[1].key):
            beat()
            partition.bank(macro, self.steps).insert(values, node, partition.low, now=time)

    # ------------------------------------------------------------------------------------------------ what a trigger gives

    def _triggered(self, partition: Partition, root: Node | None) -> Node | None:
        if root is None or root.key[0] < partition.low:
            return None
        self._triggers += 1
        self._trigger = root, partition.low
        if self.consume is not Consumption.NONE:
            partition.close()
            if self.consume is Consumption.ANY:
                self._epoch += 1
                partition.epoch = self._epoch
        return None if self.limit == 0 else root

    _counting = False

    def _given(self, root: Node, position: int) -> Iterator[tuple[Found, int]]:
        """What a trigger at a position gives: different matches, as many as the limit and the sample allow, each with the number 1."""
        assert self._trigger is not None
        limit = ALL if self.limit is None else self.limit
        found = self._found(root, self._trigger[1]) if self.sample is None else self._sampled(root, self._trigger[1], position, self.sample)
        for number, match in enumerate(self._different(found), 1):
            yield match, 1
            if number == limit:
                return

    def _sampled(self, root: Node, low: int, position: int, sample: int) -> Iterator[Found]:
        """A sample of the different matches of a trigger, in their order."""
        if self._repeats:
            every = list(self._different(self._found(root, low)))
            return iter(every) if len(every) <= sample else (every[place] for place in spread(len(every), sample, position))
        return map(self._match, sampled(root, low, self.steps, sample=sample, position=position))

    def _found(self, root: Node, low: int) -> Iterator[Found]:
        return map(self._match, walk(root, low, self.steps))

    @property
    def _repeats(self) -> bool:
        """Whether `_found` may give a match twice."""
        return self.regions.ambiguous or self.program.repeats

    def _different(self, matches: Iterator[Found]) -> Iterator[Found]:
        if not self._repeats:
            yield from matches
            return
        yield from filter(Distinct().add, matches)

    # ------------------------------------------------------------------------------------------------ partitions, state

    def expire(self, time: int) -> Array:
        """Free what no match can go on with at `time` or later; returns all slots that now hold no open match (int64). O(open partitions)."""
        self.store.empty(np.array([row for row, each in self.store.opened.items() if row and not self._is_open(each, time)], np.int64))
        rows = np.ones(len(self.store), np.bool_)
        rows[[0, *self.store.opened]] = False
        for part in self.parts:
            part.expire(time)
            rows[list(part.store.opened)] = False
        return np.flatnonzero(rows) - 1

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        for part in self.parts:
            part.ensure_slots(count)
        super().ensure_slots(count)

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots."""
        for part in self.parts:
            part.release(slots)
        super().release(slots)

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        return super().memory_usage() + sum(part.memory_usage() for part in self.parts)

    def _is_open(self, partition: Partition, time: int | None = None) -> bool:
        """Whether a match can go on: at `time` or later, if it is given."""
        if partition.epoch != self._epoch:
            return False
        low = partition.low
        if self.window is not None and time is not None:
            low = next((start for start, begun in partition.starts if time - begun <= self.window), partition.position)
        return any(bank.greatest >= max(low, partition.low) and (time is None or bank.until >= time) for bank in partition.banks.values())

    def dump(self) -> dict[str, Any]:
        """The live state of all partitions as named sections, see `guarded_state`."""
        counters = [self.events, self._triggers, self._matches, self._skipped, self.regions.ambiguous]
        sections = {"counters": np.array(counters, "<i8"), **guarded_state.dump(self.store, self._is_open)}
        for number, part in enumerate(self.parts):
            sections |= {f"guarded_part{number}/{name}": section for name, section in part.dump().items()}
        return sections

    def load(self, sections: Mapping[str, Any], partitions: Stored | None = None) -> None:
        """Go on, in a fresh evaluation of the same program and bounds, from what `dump` gave; raises SnapshotError where that does not fit."""
        with fitting():
            counters = numbers(sections, "counters")
            demand(inside(counters, 0, NUMBER_LIMIT), len(counters) == 5)
            self.events, self._triggers, self._matches, self._skipped, ambiguous = counters.tolist()
            self.regions.ambiguous |= bool(ambiguous)
            guarded_state.load(self.store, sections, partitions, self.regions, self.steps, epoch=self._epoch, bounded=self._bounded)
            for number, part in enumerate(self.parts):
                prefix = f"guarded_part{number}/"
                part.load({name.removeprefix(prefix): each for name, each in sections.items() if name.startswith(prefix)}, partitions)

    def letters_in(self, sections: Mapping[str, Any]) -> Array:  # noqa: ARG002 - others have some
        """The letters of events that what `dump` gave speaks of, in any order: none."""
        return np.zeros(0, np.int64)


class GuardedCounts(Guarded):
    """The run state of COUNT(*) with guards: one number per trigger, nothing is enumerated unless a match may be found in several ways.

    O(cells and heap nodes that the trigger reaches, times a logarithm) per trigger. limit is not looked at: a trigger has one count.
    """

    _counting = True

    def _given(self, root: Node, position: int) -> Iterator[tuple[Found, int]]:
        """The trigger's event, and the number of its matches."""
        assert self._trigger is not None
        low = self._trigger[1]
        count = sum(1 for _ in self._different(self._found(root, low))) if self._repeats else Count(root, low, self.steps).total
        yield ((position,), (0,)), count


class GuardedChoice(Guarded):
    """The run state of NXT, LAST or MAX with guards; the interface is that of `Evaluation`.

    Per trigger O(cells and heap nodes that it reaches, times a logarithm), MAX: as `Maximal`; then output-linear for those that are chosen, which are
    told apart as SELECT shows them.
    """

    program: ChoiceProgram

    @property
    def _repeats(self) -> bool:
        return True

    def _found(self, root: Node, low: int) -> Iterator[Found]:
        return map(self._match, chosen_paths(self.program, root, low, self.steps))


class Ended(NamedTuple):
    """The matches of a part that end at an event.

    low: the least start that counts. position, times: of the event, see `Cell`. since: its `Part.ended`.
    """

    root: Node
    low: int
    position: int
    times: Times
    since: int


@dataclass
class Together:
    """Events of a partition that a part has read together, by their places in the batch: what ends at each, and what has been chosen of it."""

    ended: dict[int, Ended] = field(default_factory=dict)
    chosen: dict[int, Chosen[Any]] = field(default_factory=dict)
    nexts: Nexts | None = None


class Choosing(Guarded):
    """The run state of one part of a pattern, whose matches are chosen; `Guarded` around it drives it.

    before: the parts that this one may have inside. Where a part of the pattern looks ahead, all events of a time are read before the pattern around
    reads the first of them. Meanwhile nothing expires, for the matches that end at each of them may be looked at.
    """

    def __init__(self, part: Part, before: Sequence[Choosing], *, earlier: bool, **bounds: Unpack[Bounds]) -> None:
        super().__init__(Program(part.automaton), **bounds)
        self._choices = [(other, Places(part.automaton, number)) for number, other in enumerate(before)]
        self._earlier, self._since = earlier, part.ended
        self._shown = [bool(mark) for mark, _ in part.automaton.labels]
        self._read: dict[int, Together] = {}
        self._expired = False

    def read(self, row: int, places: Sequence[int], letters: Sequence[int], times: Sequence[int]) -> None:
        """Read events of a partition, by their places in the batch: one, or all of a time."""
        # Events of other partitions may come between those of a time.
        self._read = {place: other for place, other in self._read.items() if place > places[0]}
        self._expired, together = False, Together()
        partition = self.store.of(row, self._epoch)
        for place in places:
            self._row, position, self._trigger = place, partition.position, None
            self._event(partition, letters[place], times[place], place)
            if self._trigger is not None:
                since = -1 if self._since is None else self._reader(self._since)
                together.ended[place] = Ended(*self._trigger, position, self._times, since)
                self._read[place] = together

    def _expire(self, partition: Partition, position: int, time: int) -> None:
        if not self._expired:
            super()._expire(partition, position, time)
            self._expired = True

    @abstractmethod
    def kept(
        self, place: int, places: Places, label: int, found: Sequence[Group], low: int, steps: Steps, *, copied: Copied
    ) -> Sequence[Group]:
        """Groups around the part that end it at an event with a label, restricted to what is chosen; those are left out in which nothing stays."""


class Strategic(Choosing):
    """What NXT, LAST or MAX keep of the matches of a part at one event. Its matches are those of the whole stream, whatever bounds the pattern."""

    def __init__(self, part: Part, before: Sequence[Choosing], *, earlier: bool) -> None:
        super().__init__(part, before, earlier=earlier, window=part.window, count_window=part.count)
        assert isinstance(part.rule, Strategy)
        self._strategy = part.rule
        self._leads = part.leads

    def kept(
        self, place: int, places: Places, label: int, found: Sequence[Group], low: int, steps: Steps, *, copied: Copied
    ) -> Sequence[Group]:
        """Those whose events in the part are a support that the strategy keeps."""
        together = self._read.get(place)
        if together is None:
            return []
        ended = together.ended[place]
        if place not in together.chosen:
            together.chosen[place] = chosen(ended.root, ended.low, self.steps, strategy=self._strategy, shown=self._shown)
        kept = together.chosen[place]
        state = kept.start
        if places.shows[label]:
            if ended.position not in kept.positions(state):
                return []
            state = kept.after(state, ended.position)
        if places.begins[label]:
            return found if kept.ends(state) else []
        cut = self._leads and ended.low > low
        low = ended.low if cut else low
        return _restricted(Supported(kept, places, _children(found), low, steps, copied=copied, cut=cut), found, state)


class Next(Choosing):
    """What is next under ACTIVE_OFFICE or COMPLETE_HISTORY: it looks at all matches of a part that end at one time.

    window: of the pattern around. What begins before the pattern does is not next, so it bounds the part too. No number of events does: positions of
    one time are read together.
    """

    def __init__(self, part: Part, before: Sequence[Choosing], window: int | None, *, earlier: bool) -> None:
        least = min((each for each in (part.window, window) if each is not None), default=None)
        super().__init__(part, before, earlier=earlier, window=least)
        self._histories = part.rule is TimeModel.COMPLETE_HISTORY
        self._everywhere = part.everywhere

    def kept(
        self, place: int, places: Places, label: int, found: Sequence[Group], low: int, steps: Steps, *, copied: Copied
    ) -> Sequence[Group]:
        """Those before which no other match of the part comes first."""
        together = self._read.get(place)
        if together is None:
            return []
        ended = together.ended[place]
        if together.nexts is None:
            end, counts = ended.times[0], self._shown if self._histories else None
            root = united((each.root for each in together.ended.values()), self.steps)
            assert root is not None
            fronts = Fronts(root, ended.low, self.steps, end=end, counts=counts, everywhere=self._everywhere)
            together.nexts = Nexts(fronts.total.all, end, histories=self._histories, everywhere=self._everywhere)
        state = together.nexts.after(together.nexts.start, ended.times, places, label)
        if state is None:
            return []
        return _restricted(Following(together.nexts, places, ended.since, _children(found), low, steps, copied=copied), found, state)


def _children(found: Sequence[Group]) -> list[Node]:
    """What groups go on from: they all do, where they have begun."""
    return [child for _, child in found if child is not None]


def _restricted(restriction: Restriction[S], found: Sequence[Group], state: S) -> list[Group]:
    """Groups with only those paths that go on from a state."""
    return [(values, below) for values, child in found if child is not None and (below := restriction.below(child, state)) is not None]


def parts_of(automaton: Automaton, window: int | None) -> tuple[Choosing, ...]:
    """The parts of an automaton, without any state; window: of its matches."""
    found: list[Choosing] = []
    around, earlier = None if automaton.compares_all else window, any(part.earlier for part in automaton.parts)
    for part in automaton.parts:
        found.append(Next(part, found, around, earlier=earlier) if part.is_next else Strategic(part, found, earlier=earlier))
    return tuple(found)


def _together(events: Events) -> dict[int, list[int]]:
    """The places of the events of one partition and time, by the first of them."""
    order, cuts = backward(events)
    # From the last to the first.
    begins = np.zeros(len(order), np.bool_)
    begins[cuts] = True
    begins[1:] |= np.diff(events.times[order]) != 0
    return {group[-1]: group[::-1] for group in (each.tolist() for each in np.split(order, np.flatnonzero(begins)[1:])) if group}
