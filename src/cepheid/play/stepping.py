"""The states in which partial matches wait, after each event: what people see who step through a query.

Comes in: events, as every evaluation reads them. Goes out: no matches, but the live states after each event. Each configuration goes its own way
through the regions of the automaton (`automata.regions`): a macro state has one here, so nothing is determinized, and what a guard asks is evaluated
in plain Python (`guards`). Of partial matches with one configuration and equal values the latest start counts, for it outlives the others in every
window.

Not done here: the choices of strategies inside the pattern (`Automaton.parts`): all matches of a part go on, as if each were chosen.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from cepheid.automata.alphabet import Scope
from cepheid.automata.program import Program
from cepheid.automata.regions import Regions
from cepheid.automata.transition import Transition
from cepheid.engine.evaluations.base import Feeding
from cepheid.play.guards import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Unpack

    from cepheid.automata.automaton import Automaton
    from cepheid.automata.regions import Macro, Step
    from cepheid.automata.registers import Test
    from cepheid.engine.evaluations.base import Bounds, Chunk
    from cepheid.engine.evaluations.events import Events
    from cepheid.play.guards import Value

Values: TypeAlias = "tuple[Value, ...]"
"""What a partial match keeps, by the slots of its macro state."""

Start: TypeAlias = tuple[int, int]
"""The time and the position of the event with which a partial match begins."""

Group: TypeAlias = "dict[Values, Start]"
"""The partial matches of one configuration: by the values that they keep the latest start."""


@dataclass
class _Partition:
    """Of one partition: the regions by which it goes on, how many events it has had, and its partial matches by configuration."""

    regions: Regions
    position: int = 0
    live: dict[Macro, Group] = field(default_factory=dict)


class Live(Feeding):
    """The live states of any program, over partitions that are not kept.

    configurations: how many may be live in one partition at a time, those with other values apart. tests: how many may be asked in all. found: of
    each event that was read the live states, ascending, the final ones among them. crowded, costly: the places in `found` behind which guards are not
    asked any more in the event's partition, because of the one limit or the other: then a state is live if it could be with some values. Per event
    O(configurations), each with the tests of its moves.
    """

    def __init__(self, program: Program, *, configurations: int, tests: int, **bounds: Unpack[Bounds]) -> None:
        self.window, self.count_window = bounds.get("window"), bounds.get("count_window")
        self.program = Program(_with_finals(program.automaton))
        self.regions = Regions(self.program.automaton)
        self.found: list[tuple[int, ...]] = []
        self.crowded: list[int] = []
        self.costly: list[int] = []
        self._most, self._tests = configurations, tests
        self._unasked = Regions(_without_guards(self.program.automaton))
        self._alone: dict[Macro, list[tuple[Macro, tuple[int, ...]]]] = {}
        self._partition = _Partition(self.regions)

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch; there are no matches in what it gives."""
        alphabet = self.program.automaton.alphabet
        self._reader = Reader(self.program.asked, alphabet, events)
        letters, times = events.letters.tolist(), events.times.tolist()
        stops = [*events.cuts.tolist(), len(events)][1:]
        for segment, (start, stop) in enumerate(zip(events.cuts.tolist(), stops, strict=True)):
            if segment or not events.continued:
                self._partition = _Partition(self.regions)
            for place in range(start, stop):
                self._reader.row = place
                self._read(self._partition, alphabet.mask_of(letters[place]), times[place])
        yield from ()

    def _read(self, partition: _Partition, mask: int, time: int) -> None:
        regions, here = partition.regions, (time, partition.position)
        after: dict[Macro, Group] = {}
        for macro, group in [*self._in_windows(partition.live, here), (regions.initial, {(): here})]:
            step = regions.step(macro, mask)
            if step.unmarked is None:
                _join(after, macro, group)
            for target, values, start in self._following(regions, step, group):
                _join(after, target, {values: start})
        after = {macro: kept for macro, group in after.items() if (kept := _lasting(macro, group, time))}
        partition.position += 1
        partition.live = {macro: group for macro, group in after.items() if _state(macro) not in self.program.automaton.finals}
        if regions is self.regions:
            limits = (self.crowded, sum(map(len, partition.live.values())) > self._most), (self.costly, self._tests < 0)
            for passed in [passed for passed, is_passed in limits if is_passed][:1]:
                passed.append(len(self.found))
                self._ask_no_more(partition)
        self.found.append(tuple(sorted({_state(macro) for macro in after})))

    def _in_windows(self, live: dict[Macro, Group], here: Start) -> Iterable[tuple[Macro, Group]]:
        """What is young enough to go on at an event."""
        if self.window is None and self.count_window is None:
            return live.items()
        window, count, (time, position) = self.window, self.count_window, here
        young: dict[Macro, Group] = {}
        for macro, group in live.items():
            young[macro] = {
                values: start
                for values, start in group.items()
                if (window is None or time - start[0] <= window) and (count is None or position - start[1] < count)
            }
        return young.items()

    def _following(self, regions: Regions, step: Step, group: Group) -> Iterator[tuple[Macro, Values, Start]]:
        """Where the partial matches of one configuration go with an event."""
        listed = list(group)
        answers: dict[Test, Sequence[bool]] = {}
        for region in (*step.marked, *(step.unmarked or ())):
            passing = listed
            if region.literals:
                for test, _ in region.literals:
                    if test not in answers:
                        answers[test] = self._answers(test, listed)
                said = zip(*(answers[test] for test, _ in region.literals), strict=True)
                wanted = tuple(truth for _, truth in region.literals)
                passing = [values for values, answer in zip(listed, said, strict=True) if answer == wanted]
            targets = [(target, slots, places) for macro, places in region.targets for target, slots in self._apart(regions, macro)]
            for values in passing:
                made = [self._reader.value(term, values) for term in region.made]
                for target, slots, places in targets:
                    yield target, tuple(made[places[slot]] for slot in slots), group[values]

    def _answers(self, test: Test, listed: Sequence[Values]) -> list[bool]:
        """Whether a test holds, for each of some partial matches."""
        self._tests -= len(listed)
        return [self._reader.holds(test, values) for values in listed]

    def _apart(self, regions: Regions, macro: Macro) -> list[tuple[Macro, tuple[int, ...]]]:
        """A macro state with each configuration for itself, and the slots of these; slots stay in their order, which says their age."""
        found = self._alone.get(macro)
        if found is None:
            found = self._alone[macro] = []
            for state, held in macro.configurations:
                slots = sorted({slot for _, slot in held})
                alone = (state, tuple((register, slots.index(slot)) for register, slot in held))
                found.append((regions.macro((alone,)), tuple(slots)))
        return found

    def _ask_no_more(self, partition: _Partition) -> None:
        """Let a partition go on without guards, and without values for them."""
        live: dict[Macro, Group] = {}
        for macro, group in partition.live.items():
            _join(live, self._unasked.macro(((_state(macro), ()),)), {(): max(group.values())})
        partition.regions, partition.live = self._unasked, live


def _state(macro: Macro) -> int:
    ((state, _),) = macro.configurations
    return state


def _join(groups: dict[Macro, Group], macro: Macro, more: Group) -> None:
    """Add partial matches to those of their configuration."""
    group = groups.get(macro)
    if group is None:
        groups[macro] = dict(more)
        return
    for values, start in more.items():
        group[values] = max(group.get(values, start), start)


def _lasting(macro: Macro, group: Group, time: int) -> Group:
    """Those that some event at a time, or later, may take on; see `Macro.lifetime`."""
    if not all(macro.lifetime) or not macro.lifetime:
        return group
    return {
        values: start
        for values, start in group.items()
        if any(all(values[slot] is not None and time - values[slot] <= most for slot, most in way) for way in macro.lifetime)
    }


def _with_finals(automaton: Automaton) -> Automaton:
    """With a move of each final state that no event takes: regions leave out what leads nowhere, and here it is to be seen."""
    never = 1 << automaton.alphabet.width
    finals = tuple(Transition(state, state, never) for state in sorted(automaton.finals))
    return dataclasses.replace(automaton, transitions=automaton.transitions + finals)


def _without_guards(automaton: Automaton) -> Automaton:
    """With moves that ask letters alone, and store nothing."""
    guards = automaton.alphabet.mask(Scope.RUN)
    moves = (
        dataclasses.replace(move, requires=move.requires & ~guards, forbids=move.forbids & ~guards, writes=frozenset())
        for move in automaton.transitions
    )
    return dataclasses.replace(automaton, transitions=tuple(dict.fromkeys(moves)))
