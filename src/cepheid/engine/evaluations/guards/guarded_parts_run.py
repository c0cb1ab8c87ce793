"""Patterns in whose parts NXT, LAST or MAX choose, or THEN what is next, by the kernel of guards: all matches, or their number.

Comes in: what `GuardedRun` reads. Goes out: the matches, in the order of the events that end them. `guarded.Guarded` does the same in plain Python
for all programs. Each part has a run of its own, which reads the events first, as far as they are asked for. The supports that it gives go to the
kernel, which leaves no other way through the part (`_guards_parts`; of THEN `_guards_next`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.program import ChoiceProgram, NextProgram
from cepheid.automata.transition import order
from cepheid.engine.evaluations.guards.guarded_choice_run import GuardedChoiceRun
from cepheid.engine.evaluations.guards.guarded_next_run import EVENT, NextRun, firsts_of, fronts, next_program
from cepheid.engine.evaluations.guards.guarded_run import GuardedCountRun, GuardedRun
from cepheid.engine.evaluations.guards.guarded_tables import UnknownError
from cepheid.engine.memory.pools import ragged
from cepheid.language.syntax import Strategy, TimeModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cepheid.automata.automaton import Part
    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Chunk, HasBytes
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.guards.guarded_run import GuardSizes
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

HEAD = ("at", "end", "done", "rule", "floor")
"""The words that stand first of each part in what is chosen: see `cepheid.kernel._guards_parts`."""


class PartsRun(GuardedRun):
    """The run state of all matches of a program with parts that are chosen from; the interface is that of `Evaluation`.

    Update: as `GuardedRun`, and as `GuardedChoiceRun` for each part; at an event that ends one O(log n) for each event of what is chosen, and a cell.
    The matches of a part are those of the whole stream, whatever bounds the pattern. Raises what these do.
    """

    def __init__(self, program: Program, *, sizes: GuardSizes | None = None, **options: Any) -> None:
        super().__init__(program, sizes=sizes, **options)
        self._runs = [self._run_of(part) for part in program.automaton.parts]
        self._rules = np.array([self._rule(part) for part in program.automaton.parts], np.int64)
        self.mends |= {"part": "_mend_part"}

    def _run_of(self, part: Part) -> GuardedRun:
        """What finds what may be chosen of a part, without any state.

        What begins before the pattern does is not next, so the window of the pattern bounds such a part, too.
        """
        program = part_program(part)
        if isinstance(program, ChoiceProgram):
            return GuardedChoiceRun(program, sizes=self.sizes, window=part.window, count_window=part.count, variant=self.variant)
        around = None if self.program.automaton.compares_all else self.window
        window = min((each for each in (part.window, around) if each is not None), default=None)
        return NextRun(program, sizes=self.sizes, window=window, variant=self.variant)

    def _rule(self, part: Part) -> tuple[int, int]:
        """Which rule chooses, and the number of the value of an event that is the floor of what is next."""
        if part.ended is None:
            return 0, 0
        return 1 + (part.rule is TimeModel.COMPLETE_HISTORY), self.tables.columns[part.ended]

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, and give the matches that end in it as they are made, see `KernelEvaluation.chunks`."""
        unvetoed = dataclasses.replace(events, vetoed=None)
        self._feeds = [fronts(run, unvetoed) if isinstance(run, NextRun) else run.chunks(unvetoed) for run in self._runs]
        self._chosen = _joined([np.zeros(0, np.int64)] * len(self._runs), [False] * len(self._runs), self._rules)
        if self.tables.timely:
            self._firsts = firsts_of(events)
        yield from super().chunks(events)
        for feed in self._feeds:
            for _ in feed:
                pass  # what ends no part around
        self._feeds = []

    def _mend_part(self) -> None:
        """More of what is chosen of part `argument`: the kernel has come to its end."""
        part = self._get("argument")
        heads = self._chosen[: len(HEAD) * len(self._runs)].reshape(-1, len(HEAD))
        left = [self._chosen[start:stop] for start, stop in heads[:, :2].tolist()]
        known = [bool(done) for done in heads[:, 2].tolist()]
        chunk = next(self._feeds[part], None)
        if chunk is None:
            known[part] = True
        else:
            left[part] = np.concatenate([left[part], _supports_of(chunk)])
        self._chosen = _joined(left, known, self._rules)

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

    def _parts(self) -> Iterable[Array | HasBytes]:
        return (*super()._parts(), self._chosen)

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


def part_program(part: Part) -> ChoiceProgram | NextProgram:
    """What finds what is chosen of a part; raises UnknownError where the kernel of guards does not do it."""
    if part.is_next:
        return next_program(part)
    assert isinstance(part.rule, Strategy)
    known: ChoiceProgram | None = part.automaton.derived.get((part_program, part.rule))
    if known is not None:
        return known
    if any(parts for _, parts in part.automaton.labels):
        raise UnknownError("a strategy chooses inside a part in which another one does")
    if not all(mark for mark, _ in part.automaton.labels):
        raise UnknownError("PROJECT hides events of a part of the pattern in which a strategy chooses")
    moves = (dataclasses.replace(move, mark=EVENT) if move.mark is not None else move for move in part.automaton.transitions)
    found = ChoiceProgram(dataclasses.replace(part.automaton, transitions=order(moves)), part.rule, None)
    part.automaton.derived[part_program, part.rule] = found
    return found


def _supports_of(chunk: Chunk) -> Array:
    """Supports as the kernel reads them: of each the segment, how many positions it has, and these."""
    lengths = np.diff(chunk.offsets)
    found: Array = np.empty(2 * len(lengths) + len(chunk.positions), np.int64)
    firsts = chunk.offsets[:-1] + 2 * np.arange(len(lengths))
    found[firsts] = chunk.segments
    found[firsts + 1] = lengths
    found[ragged(firsts + 2, lengths)[1]] = chunk.positions
    return found


def _joined(supports: list[Array], known: list[bool], rules: Array) -> Array:
    """What is chosen of all parts, behind where that of each stands, whether nothing follows, and the rules by which it is chosen."""
    stops = len(HEAD) * len(supports) + np.cumsum([len(each) for each in supports])
    heads = np.column_stack([stops - [len(each) for each in supports], stops, known, rules])
    return np.concatenate([heads.reshape(-1), *supports]).astype(np.int64)


def _of_part(sections: Mapping[str, Any], number: int) -> dict[str, Any]:
    prefix = f"guarded_part{number}/"
    return {name.removeprefix(prefix): section for name, section in sections.items() if name.startswith(prefix)}
