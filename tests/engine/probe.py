"""A method of evaluation that reads values, for tests of how they travel: `METHODS` has it only inside `probing`.

Each event that the pattern, one type, asks for is compared with the one before it in its partition; where one of the comparisons holds the event is
a match. So the state holds values of events that came long before, in other batches, micro-batches and snapshots.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cepheid.automata.alphabet import Guard
from cepheid.automata.program import Program
from cepheid.automata.registers import Before, Compares, Register
from cepheid.engine.evaluations.base import Chunk, Feeding
from cepheid.engine.evaluations.method import Guarantee, Method, Task, Terms
from cepheid.engine.plan import methods, planner
from cepheid.logical.types import type_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.letters.encoded import Texts
    from cepheid.logical.plan import Expression

Array = np.ndarray[Any, Any]

COMPARED = {"=": lambda before, now: before == now, "<": lambda before, now: before < now}


@dataclasses.dataclass
class Partition:
    """What came so far: how many events, and the values of the last that the pattern asks for (None before the first)."""

    seen: int = 0
    last: list[int | None] | None = None


class Probe(Feeding):
    """The run state, with the interface of every evaluation."""

    def __init__(self, program: Program, texts: Texts) -> None:
        self.program = program
        self.texts = texts
        self.compared = [(guard.test.operator, guard.test.now) for guard in program.automaton.alphabet.guards]
        self.partitions: dict[int, Partition] = {}
        self.marked: Array = np.zeros(0, np.uint8)
        self.triggers = self.matches = self.skipped = 0
        self.wasteful = False

    @property
    def reached(self) -> int:
        return len(self.marked)

    def chunks(self, events: Events) -> Iterator[Chunk]:
        assert events.values is not None
        assert events.values.texts is self.texts
        columns = [events.values.listed(value) for _, value in self.compared]
        self.marked = np.zeros(len(events), np.uint8)
        masks = [move.requires for move in self.program.automaton.transitions]
        found = []
        stops = [*events.cuts.tolist(), len(events)][1:]
        for segment, (slot, start, stop) in enumerate(
            zip(events.slots.tolist() or [-1] * len(stops), events.cuts.tolist(), stops, strict=True)
        ):
            if slot < 0 and not (segment == 0 and events.continued):
                self.partitions.pop(slot, None)
            partition = self.partitions.setdefault(slot, Partition())
            for row in range(start, stop):
                mask = self.program.automaton.alphabet.mask_of(int(events.letters[row]))
                if any(mask & asked == asked for asked in masks):
                    now = [column[row] for column in columns]
                    given = events.vetoed is None or not events.vetoed[row]
                    if given and partition.last is not None and any(map(self._holds, self.compared, partition.last, now)):
                        found.append((partition.seen, segment))
                        self.marked[row] = 1
                    partition.last = now
                partition.seen += 1
        self.matches += len(found)
        if found:
            positions, segments = np.array(found).T
            yield Chunk(np.arange(len(found) + 1), positions, np.zeros(len(found), np.uint16), segments.astype(np.int32))

    def _holds(self, compared: tuple[str, Expression], before: int | None, now: int | None) -> bool:
        operator, value = compared
        if before is None or now is None:
            return False
        if operator == "<" and str(type_of(value)) == "string":
            before, now = self.texts.ranks[[before, now]].tolist()
        return COMPARED[operator](before, now)

    def release(self, slots: Array) -> None:
        for slot in slots.tolist():
            self.partitions.pop(slot, None)

    def expire(self, time: int) -> Array:  # noqa: ARG002 - no partition is idle
        return np.zeros(0, np.int64)

    def ensure_slots(self, count: int) -> None:
        """Slots need nothing."""

    def memory_usage(self) -> int:
        return 100 * len(self.partitions)

    def trigger_matches(self) -> None:
        return None

    def letters_in(self, sections: Mapping[str, Any]) -> Array:  # noqa: ARG002 - it has none
        return np.zeros(0, np.int64)

    def texts_in(self, sections: Mapping[str, Any]) -> Array:
        last = [each for partition in _loaded(sections).values() if partition.last for each in self._texts(partition.last)]
        return np.array(last, np.int64)

    def _texts(self, last: Sequence[int | None]) -> list[int]:
        pairs = zip(self.compared, last, strict=True)
        return [each for (_, value), each in pairs if each is not None and str(type_of(value)) == "string"]

    def dump(self) -> Mapping[str, Any]:
        return {"probe": repr({slot: (partition.seen, partition.last) for slot, partition in self.partitions.items()}).encode()}

    def load(self, sections: Mapping[str, Any], stored: Any = None) -> None:
        self.partitions = _loaded(sections)
        if stored is not None and len(self.partitions):
            slots = stored.slots[stored.rows(np.array(list(self.partitions)))].tolist()
            self.partitions = dict(zip(slots, self.partitions.values(), strict=True))


def _loaded(sections: Mapping[str, Any]) -> dict[int, Partition]:
    # Our own text, in a test.
    return {slot: Partition(*state) for slot, state in eval(bytes(sections["probe"])).items()}


@dataclasses.dataclass(frozen=True, eq=False)
class ProbeMethod(Method):
    """The method. compared: (operator, value) of each comparison `before operator now`."""

    name = "probe"
    evaluation = Probe
    compared: tuple[tuple[str, Expression], ...]

    def serves(self, task: Task) -> bool:  # noqa: ARG002 - whatever it is
        return True

    def fits(self, task: Task) -> str | None:  # noqa: ARG002 - whatever it is
        return None

    def program(self, task: Task) -> Program:
        automaton = task.selected.automaton
        alphabet = automaton.alphabet
        guards = tuple(
            Guard(alphabet.width + number, Compares(Before(number), operator, value))
            for number, (operator, value) in enumerate(self.compared)
        )
        registers = tuple(Register(f"value {number}") for number in range(len(self.compared)))
        return Program(dataclasses.replace(automaton, alphabet=dataclasses.replace(alphabet, guards=guards, registers=registers).fitted()))

    def start(self, terms: Terms, **options: Any) -> Probe:  # noqa: ARG002 - it has no kernel
        assert terms.texts is not None
        return Probe(terms.program, terms.texts)

    def guarantee(self, terms: Terms) -> Guarantee:  # noqa: ARG002 - always the same
        return Guarantee("probe", "O(1)", "O(1)", "none")


@contextlib.contextmanager
def probing(*compared: tuple[str, Expression]) -> Iterator[None]:
    """Inside, every query is evaluated by the probe."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(methods, "METHODS", (ProbeMethod(compared),))
        assert planner.choose is methods.choose
        yield
