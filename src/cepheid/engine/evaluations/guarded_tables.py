"""The regions of a program as flat tables for the kernel of guards (`cepheid.kernel.guards`), where it knows all that they ask.

Comes in: a program with guards. Goes out: its macro states by number, the indexes of each (`Shape` here: slots that are equal, and one slot that is
tested), and per letter the rows of its regions. All macro states are found before an event is read: what the kernel does not know is known by then.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.automata.alphabet import Scope
from cepheid.automata.regions import Regions
from cepheid.automata.registers import Now
from cepheid.automata.transform import cubes
from cepheid.engine.evaluations.guarded_indexes import AGE, ALL, GROUPS, Question
from cepheid.engine.evaluations.guarded_values import NEGATED
from cepheid.engine.evaluations.transitions import LABEL_LIMIT
from cepheid.logical.types import type_of
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.automata.program import Program
    from cepheid.automata.regions import Macro, Region
    from cepheid.logical.plan import Expression, Interval

Array = np.ndarray[Any, Any]

MACROS = 62
"""Macro states that the kernel has bits for."""

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The kernel's bounds that exclude nothing."""

TESTED, OUTSIDE, NULLS = 1, 2, 4
"""What a test is: there is one; values outside of the bounds pass it; NULL passes it."""

SLOT_BITS, SHAPE_BITS = 8, 16
"""Where a test has its slot and its index, in bits."""

OFFSETS: dict[str, tuple[int | None, int | None]] = {"<": (None, -1), "<=": (None, 0), ">": (1, None), ">=": (0, None), "!=": (0, 0)}
"""`before operator now`: the least and the greatest value before, less the value now; of `!=` what is excluded."""

ROW = ("next", "label", "target", "final", "form", "now", "lower", "upper", "equals", "made")
"""The columns of a region's row."""


class Shape(NamedTuple):
    """An index of a macro state: entries that are equal in some slots, ascending, asked by a test of one slot (-1: none)."""

    equals: tuple[int, ...]
    slot: int


@dataclass(frozen=True, slots=True)
class Ask:
    """What a region asks of a macro state's index. form: see TESTED. lower, upper: bounds less the value now. equals: values of the event."""

    shape: Shape
    form: int = 0
    now: Expression | None = None
    lower: int = LEAST
    upper: int = MOST
    equals: tuple[Expression, ...] = ()


class UnknownError(Exception):
    """A program asks what the kernel does not know; its text says what."""


def regions_of(regions: Regions, macro: Macro) -> Iterator[Region]:
    """The regions of a macro state at all letters, but for those of groups that stay as they are."""
    run = regions.automaton.alphabet.mask(Scope.RUN)
    moves = [
        dataclasses.replace(move, requires=move.requires & ~run, forbids=move.forbids & ~run)
        for state, _ in macro.configurations
        for move in regions.automaton.outgoing[state]
    ]
    for requires, _ in cubes(moves, regions.automaton.alphabet):
        step = regions.step(macro, requires)
        yield from step.marked
        yield from step.unmarked or ()


class GuardTables:
    """The tables of one program. Raises UnknownError where the kernel does not know what it asks, LimitError as `Regions`.

    macros: by number; 0 is the initial one, the others are in the order of their configurations, which is that in which they are asked.
    shapes: of each macro state. slots: the values that each keeps. columns: number of each value of an event.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.regions = Regions(program.automaton)
        self.columns: Mapping[Expression, int] = {value: number for number, value in enumerate(program.values)}
        asked: dict[Macro, dict[Ask, None]] = {}
        written: dict[Macro, dict[int, set[Expression]]] = {}
        todo = [self.regions.initial]
        while todo:
            macro = todo.pop()
            if macro in asked:
                continue
            asked[macro] = {}
            if len(asked) > MACROS:
                raise UnknownError(f"it has more than {MACROS} macro states")
            for region in regions_of(self.regions, macro):
                for ask in self._asks(macro, region):
                    asked[macro].setdefault(ask)
                for target, places in region.targets:
                    for slot, place in enumerate(places):
                        written.setdefault(target, {}).setdefault(slot, set()).add(_value(region, place))
                    todo.append(target)
        if self.regions.ambiguous:
            raise UnknownError("a match may be found in several ways")
        self.macros = [self.regions.initial, *sorted(asked.keys() - {self.regions.initial}, key=lambda macro: macro.configurations)]
        self.number = {macro: number for number, macro in enumerate(self.macros)}
        self.shapes = [_shapes(asked[macro]) for macro in self.macros]
        self.slots = max(macro.slots for macro in self.macros)
        self.most_shapes = max(1, *map(len, self.shapes))
        self.texts = [
            [slot for slot, values in written.get(macro, {}).items() if any(is_text(type_of(value)) for value in values)]
            for macro in self.macros
        ]
        self.shape_width = 2 + max((len(shape.equals) for shapes in self.shapes for shape in shapes), default=0)
        self.forget()

    @property
    def hashed(self) -> bool:
        """Whether some index asks for equal values."""
        return self.shape_width > 2

    def _asks(self, macro: Macro, region: Region) -> list[Ask]:
        """What a region asks; nothing at the initial macro state, or where no time can be such."""
        if region.label is None:
            raise UnknownError("events that are not marked move partial matches")
        if region.label >= LABEL_LIMIT:
            raise UnknownError("it has too many labels")
        for place in range(len(region.made)):
            _value(region, place)
        if macro is self.regions.initial:
            if region.literals:
                raise UnknownError("an event is compared with itself")
            return []
        question = Question(region, plural=self.regions.plural(macro))
        if question.local:
            raise UnknownError("an event is compared with itself")
        shape = question.shape
        if shape.kind == GROUPS:
            raise UnknownError("several comparisons are asked at one event")
        equals = tuple(map(_word, question.equal))
        if shape.kind == ALL:
            return [Ask(Shape(shape.equals, -1), equals=equals)]
        assert question.now is not None
        now = _word(question.now)
        index = Shape(shape.equals, shape.slot)
        if shape.kind == AGE:
            ages = _ages(shape.ages)
            return [] if ages is None else [Ask(index, TESTED | ages[0], now, ages[1], ages[2], equals)]
        operator = question.operator if question.truth else NEGATED[question.operator]
        if is_text(type_of(now)) and operator != "!=":
            raise UnknownError("the order of texts is asked")
        lower, upper = OFFSETS[operator]
        form = TESTED | (OUTSIDE if operator == "!=" else 0) | (0 if question.truth else NULLS)
        return [Ask(index, form, now, LEAST if lower is None else lower, MOST if upper is None else upper, equals)]

    # ------------------------------------------------------------------------------------------------ letters

    def forget(self) -> None:
        """Forget all letters."""
        self.codes = 4
        self.first_of: Array = np.full((len(self.macros), self.codes), -1, np.int32)
        self.drops: Array = np.zeros(self.codes, np.int64)
        self.stirs: Array = np.zeros(self.codes, np.int64)
        self.cells_of: Array = np.zeros(self.codes, np.int32)
        self.rows: Array = np.zeros((16, len(ROW)), np.int64)
        self.operands: Array = np.zeros(16, np.int32)
        self._row_count = 0
        self._operand_of: dict[tuple[int, ...], int] = {}
        self._operand_count = 0

    def learn(self, code: int, mask: int) -> None:
        """Extend the tables by the code of a new letter with this mask; codes come in the order of their numbers."""
        if code == self.codes:
            self._more_codes()
        if self.program.droppable and not self.program.relevant(mask):
            return
        for number, macro in enumerate(self.macros):
            step = self.regions.step(macro, mask)
            rows = [row for region in step.marked if (row := self._row(macro, region)) is not None]
            self.first_of[number, code] = self._chained(rows)
            self.cells_of[code] += len(rows)
            ends = number > 0 and step.unmarked is not None
            self.drops[code] |= ends << number
            self.stirs[code] |= (ends or bool(rows)) << number

    def _more_codes(self) -> None:
        self.codes *= 2
        self.first_of = np.concatenate([self.first_of, np.full_like(self.first_of, -1)], axis=1)
        for name in ("drops", "stirs", "cells_of"):
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros_like(getattr(self, name))]))

    def _row(self, macro: Macro, region: Region) -> tuple[int, ...] | None:
        """A region's row but for the next one's place; None where no group can be in it."""
        assert region.label is not None
        target = -1
        made: tuple[int, ...] = ()
        for each, places in region.targets:
            target = self.number[each]
            made = tuple(self.columns[_value(region, place)] for place in places)
        end = (self._operands((len(made), *made)),)
        if macro is self.regions.initial:
            return (region.label, target, region.final, 0, -1, LEAST, MOST, 0, *end)
        for ask in self._asks(macro, region):
            shapes = self.shapes[self.number[macro]]
            place = _place(shapes, ask.shape)
            form = ask.form | max(ask.shape.slot, 0) << SLOT_BITS | place << SHAPE_BITS
            now = -1 if ask.now is None else self.columns[ask.now]
            equals = self._operands(tuple(self.columns[value] for value in ask.equals))
            return (region.label, target, region.final, form, now, ask.lower, ask.upper, equals, *end)
        return None

    def _chained(self, rows: Sequence[tuple[int, ...]]) -> int:
        """Put rows into the table, one leading to the next; the place of the first, -1 without any."""
        first = self._row_count
        while first + len(rows) > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        for number, row in enumerate(rows):
            following = (first + number + 1) * len(ROW) if number + 1 < len(rows) else -1
            self.rows[first + number] = (following, *row)
        self._row_count += len(rows)
        return first * len(ROW) if rows else -1

    def _operands(self, numbers: tuple[int, ...]) -> int:
        """The place of a list of numbers."""
        place = self._operand_of.setdefault(numbers, self._operand_count)
        if place == self._operand_count:
            self._operand_count += len(numbers)
            while self._operand_count > len(self.operands):
                self.operands = np.concatenate([self.operands, np.zeros_like(self.operands)])
            self.operands[place : self._operand_count] = numbers
        return place

    @property
    def shape_table(self) -> Array:
        """The indexes of each macro state, as the kernel reads them (int32)."""
        table: Array = np.full((len(self.macros), self.most_shapes, self.shape_width), -1, np.int32)
        for number, shapes in enumerate(self.shapes):
            for place, shape in enumerate(shapes):
                table[number, place, : 2 + len(shape.equals)] = (shape.slot, len(shape.equals), *shape.equals)
        return table.reshape(-1)


def _value(region: Region, place: int) -> Expression:
    """The value of the event that a term of a region is."""
    term = region.made[place]
    if not isinstance(term, Now):
        raise UnknownError("a value is kept over several events")
    return _word(term.value)


def _word(value: Expression) -> Expression:
    """A value that is one word."""
    if pa.types.is_decimal(type_of(value)):
        raise UnknownError("decimals are compared")
    return value


def _shapes(asks: Mapping[Ask, None]) -> list[Shape]:
    """The indexes that answer all these: what is not tested finds all entries in any index with its equalities."""
    tested = {ask.shape for ask in asks if ask.shape.slot >= 0}
    return sorted(tested | {ask.shape for ask in asks if all(shape.equals != ask.shape.equals for shape in tested)})


def _place(shapes: Sequence[Shape], wanted: Shape) -> int:
    """The index that answers a question about this one."""
    return next(place for place, shape in enumerate(shapes) if shape == wanted or (wanted.slot < 0 and shape.equals == wanted.equals))


def _ages(ages: Sequence[tuple[Interval, bool]]) -> tuple[int, int, int] | None:
    """(OUTSIDE or 0, least, greatest time before less the time now) of the ages in some intervals and not in others; None: there are none."""
    ends = {0}
    for interval, _ in ages:
        ends |= {max(0, interval.lower)} | ({max(0, interval.upper + 1)} if interval.upper is not None else set())
    ordered = sorted(ends)
    wanted = [all((end in interval) == truth for interval, truth in ages) for end in ordered]
    for form, truth in ((0, True), (OUTSIDE, False)):
        places = [place for place, each in enumerate(wanted) if each == truth]
        if not places and truth:
            return None
        if places and places[-1] - places[0] == len(places) - 1:
            after = places[-1] + 1
            return form, LEAST if after == len(ordered) else 1 - ordered[after], -ordered[places[0]]
    raise UnknownError("ages in several intervals are asked")
