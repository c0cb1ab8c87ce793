"""The regions of a program as flat tables for the kernel of guards (`cepheid.kernel.guards`), where it knows all that they ask.

Comes in: a program with guards. Goes out: its macro states by number, the indexes of each (`Shape` here: slots that are equal, and slots that are
tested), and per letter the rows of its regions. All macro states are found before an event is read: what the kernel does not know is known by then.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cepheid.automata.alphabet import Scope
from cepheid.automata.computing import steps
from cepheid.automata.program import NextProgram
from cepheid.automata.regions import Regions
from cepheid.automata.registers import Before, Compares, Computes, Each, Elapsed, Element, Gathered, Joined, Now, reads
from cepheid.automata.transform import cubes
from cepheid.automata.transition import BEGINS, ENDS, PRECEDES, SHOWN
from cepheid.engine.evaluations.guards.guarded_facts import Facts
from cepheid.engine.evaluations.guards.guarded_layers import Move, layered
from cepheid.engine.evaluations.guards.guarded_memo import MEMO
from cepheid.engine.letters.encoded import is_interned, ordered_bits
from cepheid.engine.letters.values import plain_constant
from cepheid.errors import LimitError
from cepheid.language.syntax import TimeModel
from cepheid.logical.plan import Apply, Derived, Index, Literal, Time, walk
from cepheid.logical.types import FLIPPED, NEGATED, is_two_words, type_of
from cepheid.records import record
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cepheid.automata.automaton import Automaton, Part
    from cepheid.automata.program import Program
    from cepheid.automata.regions import Literal as Condition
    from cepheid.automata.regions import Macro, Region, Step
    from cepheid.automata.registers import Term
    from cepheid.automata.transition import Parts
    from cepheid.engine.evaluations.guards.guarded_layers import Layered
    from cepheid.logical.plan import Expression, Interval

Array = np.ndarray[Any, Any]

MACROS = (1 << 12) - 2
"""Macro states that a cell has room for."""

REST, REST_BITS, REST_MASK = 61, 5, 31
"""Macro states from this one on share a bit of the live ones; where the rows of `drops` behind the first have which of them it is, in bits."""

MOST_REGIONS = 400
"""Regions of a program in which a match is found in several ways: past it fewer configurations share a macro state."""

MOST_COMBINED = 1 << 10
"""Combinations of conditions that are looked at for one macro state: those that let a partial match go on in different ways. Past it, and past
MACROS, none share one."""

SHARED = (None, 2, 1, 0)
"""How many may share one, see `Regions`: one after the other until the tables are small enough."""

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The kernel's bounds that exclude nothing."""

CELL = ("position", "start", "child", "rest", "kind", "nulls", "bounds")
"""The words of a cell but for what a program says: two bounds for each of its tests, its values, and per index a node."""

NODE = ("previous", "jump", "best", "form", "ends")
"""The words that link a cell in a list; the ends are the least and the greatest value of each slot tested. Then, of a program that carries values,
the group before (`older` of the kernel); last, of a program with a hash, its place there."""

LABELS, MACRO_BITS, MACROS_MASK, FORM_BITS = (1 << 16) - 1, 16, (1 << 12) - 1, 28
"""Where the kind of a cell has its label, macro state + 1, and form, in bits."""

UNMARKED = LABELS
"""In the place of a label: the cell is no event of a match; what it goes on from has been moved by an event that is not marked."""

OUTSIDE, NULLS, COMPUTED, AMONG, BESIDE, RANKED = 1, 2, 4, 8, 16, 32
"""What a test wants: values outside of its bounds pass it; NULL passes it. Or it computes: its program stands where it has a place, from the end of
the words that begin with the forms. Or the slot has a set, and the value of the event is to differ from all its values; or what is computed is to
hold for all choices of some sets. Of these OUTSIDE passes what does not hold. Or it wants nothing, and is there for another value of the event that
the test before it computes with. RANKED: its bounds, or the value, are words that `Ranks` makes; that is nothing to the kernel."""

APART = COMPUTED | AMONG | BESIDE
"""Tests of which no tree over the values of a slot knows anything."""

OPERATIONS = (
    *("load", "push", "unless", "if", "if known", "jump", "not", "is_null", "fit"),
    *("=", "!=", "<", "<=", ">", ">="),
    *("+", "-", "reversed -", "*", "/", "reversed /", "%", "reversed %", "cast", "abs", "negate", "floor", "ceil"),
    *("high", "widen", "narrow", "ask"),
)
"""What a step of a program does, see `computing.Step`."""

REAL, SOURCE_BITS, SOURCE_MASK, WIDE, DIGITS_BITS = 32, 6, 7, 512, 10
"""Of a step the bit that says that numbers are doubles; where it has its source, one of SOURCES, in bits; the bit that says that numbers are wide;
and where it has the digits of a quotient, in bits."""

SOURCES = ("nothing", "pushed", "member", "slot", "now", "constant")
"""What a step computes with: the number behind it is a slot, how many of the event's values come before this one, or a constant. Nothing is NULL.
Of a member the number says the set, of those that stand behind the steps of the program, and in the higher bits which word of a choice. Of a
question, which has nothing, it is its own."""

MEMBER_BITS = 3
"""Where that is, in bits."""

MOST_VALUES = 62
"""Values of a choice that is kept."""

MOST_SETS = 1 << 3
"""Sets whose choices one condition asks in all ways."""

SLOT_BITS, PLACE_BITS, PLACE_MASK, ENDED_BITS = 8, 16, 255, 32
"""Where a test has its slot, and the place of this slot among those that its index has tested, in bits; and from where on a bit for each part of what
is next that begins with the event, if it asks where the pattern before has ended."""

MOST_PARTS = 31
"""Parts of a pattern of whose matches some are chosen."""

HOW_BITS, COLUMN_BITS = 8, 11
"""Where what is made of a slot has how it is made, see MADE, and the number of the value of the event, in bits."""

MADE = {"max": 1, "min": 2, "same": 3, "set": 4, "one": 5, "joined": 6}
"""What is made of a slot and a value of the event, see `Gathered`; "one": a set of the value alone. 0: the value of the slot is kept. "joined": what
stands in the place of the value says how, see `GuardTables._made`."""

SHAPE_BITS = 16
"""Of a list in the kernel's hash, the bits that say its index."""

NULL_BITS, TESTED = 8, 48
"""Where a node says of each slot tested whether NULL is in its tree, in bits; and how many slots an index may have tested."""

OFFSETS: dict[str, tuple[int, int]] = {
    "=": (0, 0),
    "!=": (0, 0),
    "<": (LEAST, -1),
    "<=": (LEAST, 0),
    ">": (1, MOST),
    ">=": (0, MOST),
}
"""`before operator now`: the least and the greatest value before, less the value now; of `!=` what is excluded."""

SAYS, ENDS_PARTS, BEGINS_NEXT = 1, 2, 4
PART_BEGINS, PART_ENDS, PART_SHOWN, PART_SAYS = 1, 2, 4, 8
"""What is said of a label where strategies choose inside the pattern: whether its event may say where a match begins, whether it ends some part, and
whether it begins one of what is next; of each part whether it begins it, ends it, is in its supports, and of what is next whether it may say where
the part begins, though it is not the first one."""

LOOSE_BETWEEN, LOOSE_BEGIN = 1, 2
"""What may stand beside a support: other marked events between its own, and an event that begins the part and that no support has."""

STAMPS, TIMED_STAMPS = 2, 3
"""Values that a cell has behind those of its slots, where there are parts, and where what is next is chosen or found: see
`cepheid.kernel._guards_walk`. One more in front of these where what is next may begin before the event that is read first."""

BEGIN = Derived("begin of time")
"""The value of an event that says where it begins, as what is next compares that."""

ROW = ("next", "kind", "target", "final", "form", "equals", "made", "lasting", "sets")
"""The columns of a region's row; then come three for each test. lasting: see `GuardTables.lasting`. sets: a bit for each slot that becomes a set."""

FORM = ("shape", "count", "tests")
"""The columns of a form: its index, the number of its tests, and these."""

INDEX = ("tested", "key", "carried", "outer", "slots")
"""The columns of an index: how many slots are tested; how many are its key (-1: there is no such index), and how many of these, the last ones, are
carried (-1: it has layers); the index by the others alone; then the slots of the key, and those that are tested."""

LAYERED = ("macro", "source", "below", "wanted", "form", "own", "list", "count", "slots")
"""The columns of a macro state with layers (see `guarded_layers`): its number, that of its source, the row of this one here (-1: it has none); which
layers are wanted; the form of what its entries go on from, its index by equal values, and that of its layers; how many slots it has, and of each the
slot of the source."""

EVERY, EARLIEST, LATEST = range(3)
"""Which layers a group wants: each; of those with the same entries of the source before them the first, or of all the last."""


class Shape(NamedTuple):
    """An index of a macro state: entries that are equal in some slots, and in those that are carried, asked by tests of others; all ascending.

    carried: all values of these slots are asked at once, and each has a list of its own.
    """

    equals: tuple[int, ...]
    slots: tuple[int, ...]
    carried: tuple[int, ...] = ()


class Test(NamedTuple):
    """What is asked of the value of a slot: flags: see OUTSIDE. lower, upper: bounds less the value now.

    program: of one that computes; more: with values of the event beside `now`. ended: a bit for each part of which it says what has ended before.
    """

    slot: int
    flags: int
    now: Expression
    lower: int
    upper: int
    program: tuple[int, ...] = ()
    more: tuple[Expression, ...] = ()
    ended: int = 0

    @property
    def apart(self) -> bool:
        """Whether no tree knows anything of it."""
        return bool(self.flags & APART)


LAYERS = Shape((), ())
"""The index of the layers of a macro state that is entered by them, which has no other without a key."""


@record
class Ask:
    """What a region asks of a macro state's entries: equal: the slots that are equal to these values of the event. tests: of others.

    carried: the slots that entries of the region keep. layered: the event is a layer, see `guarded_layers`.
    """

    equal: tuple[tuple[int, Expression], ...]
    tests: tuple[Test, ...]
    carried: tuple[int, ...] = ()
    layered: bool = False

    @property
    def shape(self) -> Shape:
        """The index that answers."""
        if self.layered:
            return Shape(self.carried, ())
        return Shape(
            tuple(slot for slot, _ in self.equal), tuple(sorted({test.slot for test in self.tests if not test.apart})), self.carried
        )


@record
class Union:
    """A set that is made of that of a slot (-1: none) and of products.

    Their parts are values of the event, or (slot, how many values a choice of its set has; 0: the slot has one value).
    """

    before: int
    products: tuple[tuple[Expression | tuple[int, int], ...], ...]


Value: TypeAlias = "Expression | int | tuple[str, int, Expression] | Union"
"""A value that is kept: one of the event, that of a slot, or what is made of both: how, the slot, and the value of the event."""


@record
class Put:
    """What is put into a set: the sources of the values of a choice."""

    parts: tuple[Expression | tuple[Macro, int], ...]


Source: TypeAlias = "Expression | tuple[Macro, int] | Put"
"""What a slot is written from: a value of the event, a slot of a macro state, or of a set what is put into it."""

Fields = tuple[bool, ...]
"""Of each value of a choice whether it is a text, or a decimal of two words; of what is no set, of its one value."""

Form = tuple[int, tuple[int, ...]]
"""The number of an index of a macro state, and tests as the kernel reads them."""


class RepeatsError(Exception):
    """Matches are not to be counted as they stand, for one may be found in several ways."""


class _TooMuchError(Exception):
    """Fewer configurations are to share a macro state."""


def _too_large(fact: str) -> LimitError:
    """The error of a program that passes a limit of the kernel."""
    return LimitError(
        fact,
        help="write smaller counts, as {5}, or fewer variables and conditions between them; what they come to may be an attribute of the events",
    )


def regions_of(regions: Regions, macro: Macro) -> Iterator[Region]:
    """The regions of a macro state at all letters, but for those of groups that stay as they are. Raises _TooMuchError past MOST_COMBINED."""
    for step in _steps(regions, macro):
        yield from step.marked
        yield from step.unmarked or ()


def _steps(regions: Regions, macro: Macro) -> Iterator[Step]:
    """What the groups of a macro state do at all letters, or, where nothing is shared, at one for each move; those of the initial one never end."""
    run = regions.automaton.alphabet.mask(Scope.RUN)
    moves = [move for state, _ in macro.configurations for move in regions.automaton.outgoing[state]]
    effects = [(move.source, move.target, move.label, move.writes, move.requires & run, move.forbids & run) for move in moves]
    asking = [dataclasses.replace(move, requires=move.requires & ~run, forbids=move.forbids & ~run) for move in moves]
    letters = (requires for requires, _ in cubes(asking, regions.automaton.alphabet, effects=effects))
    # PERF: a letter is much cheaper than what is done at it.
    combined = list(itertools.islice(letters, MOST_COMBINED + 1)) if regions.shared else []
    if len(combined) > MOST_COMBINED:
        raise _TooMuchError
    for requires in combined or dict.fromkeys(move.requires for move in asking):
        step = regions.step(macro, requires)
        yield step if macro is not regions.initial else dataclasses.replace(step, unmarked=None)


class GuardTables:
    """The tables of one program. Raises LimitError past the limits of this file, and as `Regions`.

    What does not depend on letters is made once for an automaton, and kept with it (`Automaton.derived`).

    macros: by number; 0 is the initial one, the others are in the order of their configurations, which is that in which they are asked.
    shapes: of each macro state. forms: what is asked of entries, but for the values. slots: the values that a cell keeps. tests: those that one
    region asks at most. columns: number of each value of an event. values_at, first_node: where a cell has its values and its first node. passes:
    whether unmarked moves make cells. places: of each label, see PART_BEGINS, a column for each part behind one of its own. loose: of each part what
    may stand beside its supports, see LOOSE_BETWEEN. repeats: whether a match may be found in several ways. ranked: whether `Ranks` makes words for
    texts and decimals of two words. sets: of each macro state the slots that hold sets. interned: of each those that hold texts or decimals of two
    words, with which values of a choice these are. asked: the values of an event that are read. timely: whether cells know the first place of their
    time. earlier: whether they know where their event begins. layered: see `guarded_layers`. life: how long a group can go on once it is entered,
    where gaps say that. questions: by number, each with its values (see `guarded_memo`).
    """

    passes: bool
    layered: Mapping[Macro, Layered]
    regions: Regions
    facts: Facts
    questions: dict[Expression, tuple[Expression, ...]]

    def __init__(self, program: Program) -> None:
        derived = program.automaton.derived
        if GuardTables not in derived:
            self._make(program)
            derived[GuardTables] = {**vars(self)}
        vars(self).update(derived[GuardTables])
        self.program = program
        self.facts = self.facts.fresh()
        self.repeats = self.regions.ambiguous or program.repeats
        self.forget()

    def _make(self, program: Program) -> None:
        """All but the letters."""
        self.places, self.loose = _places(program)
        begins = program.automaton.begins
        more = [begins] if begins is not None else [program.ended] if isinstance(program, NextProgram) else []
        more += [part.ended for part in program.automaton.parts if part.ended is not None]
        self.timely = isinstance(program, NextProgram) or any(part.is_next for part in program.automaton.parts)
        self.earlier = (isinstance(program, NextProgram) and program.earlier) or any(part.earlier for part in program.automaton.parts)
        self.asked = tuple(dict.fromkeys([*program.asked, *more, *([BEGIN] if self.earlier else [])]))
        self.program = program
        self.ranked = _is_ranked(program)
        self.columns: Mapping[Expression, int] = {value: number for number, value in enumerate(self.asked)}
        asked, written = self._looked()
        self._asks = asked
        self.macros = [self.regions.initial, *sorted(asked.keys() - {self.regions.initial}, key=lambda macro: macro.configurations)]
        self.number = {macro: number for number, macro in enumerate(self.macros)}
        # What an event says of where it begins may be before all that is there; what is next reads what has ended.
        self.life = None if self.timely or begins is not None else _life(self.macros[1:])
        self.shapes = [_shapes(asked[macro]) for macro in self.macros]
        stamps = TIMED_STAMPS if self.timely else STAMPS if program.automaton.parts else 0
        self.slots = max(macro.slots for macro in self.macros) + stamps + self.earlier
        self.most_shapes = max(1, *map(len, self.shapes))
        programs = sorted({test.program for asks in asked.values() for ask in asks for test in ask.tests if test.program})
        lengths = itertools.accumulate(map(len, programs), initial=len(MEMO))
        self.programs = dict(zip(programs, itertools.islice(lengths, 1, None), strict=True))
        self.forms: list[Form] = sorted({(0, ()), *(self._form(macro, ask) for macro, asks in asked.items() for ask in asks)})
        self.tests = max(len(tests) for _, tests in self.forms)
        self.sets = _sets(written, self.macros, self.regions)
        self.fields = _fields(written)
        self.interned = [
            {slot: fields for slot in range(macro.slots) if any(fields := self.fields.get((macro, slot), ()))} for macro in self.macros
        ]
        every = [shape for shapes in self.shapes for shape in shapes]
        tested = max((len(shape.slots) for shape in every), default=0)
        if tested > TESTED:
            raise _too_large(f"more than {TESTED} values are compared at one event (TESTED)")
        if len(self.macros) * self.most_shapes > 1 << SHAPE_BITS:
            raise _too_large(f"the pattern needs more than 2^{SHAPE_BITS} indexes of its partial matches (SHAPE_BITS)")
        self.hashed = any(shape.equals or shape.carried for shape in every)
        self.carries = any(shape.carried for shape in every)
        self.shape_width = len(INDEX) - 1 + max((sum(map(len, shape)) for shape in every), default=0)
        self.form_width = len(FORM) - 1 + self.tests
        self.values_at = len(CELL) - 1 + 2 * self.tests
        self.first_node = self.values_at + self.slots
        self.node_width = len(NODE) - 1 + 2 * tested + self.carries + self.hashed

    def _looked(self) -> tuple[dict[Macro, set[Ask]], dict[tuple[Macro, int], set[Source]]]:
        """What each macro state asks, and what its slots are written from, where as many share one as may."""
        for shared in SHARED[:-1]:
            with contextlib.suppress(LimitError, _TooMuchError):
                return self._looked_at(shared)
            if not self.regions.ambiguous:
                break  # fewer would be the same
        return self._looked_at(SHARED[-1])

    def _looked_at(self, shared: int | None) -> tuple[dict[Macro, set[Ask]], dict[tuple[Macro, int], set[Source]]]:
        """The same for one of SHARED. Raises LimitError or _TooMuchError where there is too much."""
        self.regions = Regions(self.program.automaton, shared)
        self.facts = Facts(self.program.bits)
        self.questions = {}
        self.passes, looked_at = False, 0
        looked: dict[Macro, list[tuple[Move, Ask]]] = {}
        written: dict[tuple[Macro, int], set[Source]] = {}
        ended: set[Macro] = set()
        todo = [self.regions.initial]
        while todo:
            macro = todo.pop()
            if macro in looked:
                continue
            looked[macro] = []
            for step in _steps(self.regions, macro):
                ended |= {macro} if step.unmarked is not None else set()
                for region in (*step.marked, *(step.unmarked or ())):
                    looked_at += 1
                    if looked_at > MOST_REGIONS and self.regions.ambiguous and self.regions.shared > 1:
                        raise _TooMuchError
                    ask = self._ask(macro, region)
                    if ask is not None:
                        looked[macro].append((self._move(macro, region, ask), ask))
                    self.passes |= region.label is None and ask is not None and bool(region.targets)
                    for target, places in region.targets:
                        for slot, value in enumerate(_values(region, places, ask, self.regions.several(macro))):
                            written.setdefault((target, slot), set()).update(_sources(macro, value))
                        todo.append(target)
            if len(looked) > MACROS:
                raise _too_large(f"the pattern has more than {MACROS:,} macro states (MACROS)")
        simple = self.regions.shared and not (
            self.passes or self.timely or self.program.automaton.parts or self.program.automaton.begins is not None
        )
        self.layered = layered([move for own in looked.values() for move, _ in own] if simple else [], ended)
        asked = {macro: {self._as_layer(ask, move.targets) for move, ask in own} for macro, own in looked.items()}
        for macro in self.layered:
            asked[macro].add(Ask((), ()))  # the list of its layers
        return asked, written

    def _move(self, macro: Macro, region: Region, ask: Ask) -> Move:
        """What decides whether the event of a region is a layer."""
        several, kept = self.regions.several(macro), None
        if region.label is not None and not (region.final or ask.equal or ask.tests) and len(region.targets) == 1 and macro.slots:
            values = tuple(_values(region, region.targets[0][1], ask, several))
            if all(isinstance(value, int) and value not in several for value in values):
                kept = tuple(value for value in values if isinstance(value, int))
        return Move(macro, tuple(target for target, _ in region.targets), frozenset(dict(ask.equal)), kept, bool(ask.carried))

    def _as_layer(self, ask: Ask, targets: Iterable[Macro]) -> Ask:
        """What a region with these targets asks, where its event is a layer if they are entered so."""
        return dataclasses.replace(ask, layered=True) if any(target in self.layered for target in targets) else ask

    def _ask(self, macro: Macro, region: Region) -> Ask | None:
        """What a region asks; None where nothing can be such."""
        if region.label is not None and region.label >= UNMARKED:
            raise _too_large(f"the events of the pattern have more than {UNMARKED:,} labels (UNMARKED)")
        self.facts.know(region)
        several = self.regions.several(macro)
        equal, others = equalities(region, several)
        tests = _tests(others, several, self.regions.plural(macro), self.questions)
        if tests is None:
            return None
        tests = self._ended(region, tests)
        carried = {slot for term in region.made for slot in reads(term)} - equal.keys()
        return Ask(tuple(sorted(equal.items(), key=itemgetter(0))), tests, tuple(sorted(carried)))

    def _ended(self, region: Region, tests: tuple[Test, ...]) -> tuple[Test, ...]:
        """Tests, of which those are told that ask where the pattern before THEN has ended, if the region's event begins a part that is chosen."""
        parts = self.program.automaton.parts
        for number, part in enumerate(parts if region.label is not None else ()):
            if part.is_next and self.places[region.label, 1 + number] & PART_BEGINS:
                told = tuple(
                    test._replace(ended=test.ended | 1 << number) if (test.now, test.flags, test.lower) == (part.ended, 0, 0) else test
                    for test in tests
                )
                assert told != tests  # `construct` asks it of whatever begins such a part
                tests = told
        return tests

    def lasting(self, macro: Macro, ask: Ask) -> int:
        """The number of a test, from 1 on: groups all of whose entries are too old for it are not asked again, by nobody; 0: there is none."""
        for number, test in enumerate(ask.tests, 1):
            # Time and positions only grow: what is before the least bound stays there. So do the starts of what has ended.
            rises = test.now.rises if isinstance(test.now, Derived) else isinstance(test.now, Time | Index)
            if rises and not test.flags and test.lower != LEAST:
                bounds = [
                    [own.lower for own in other.tests if (own.slot, own.now, own.flags) == (test.slot, test.now, 0)]
                    for other in self._asks[macro]
                    if (other.shape.equals, other.carried) == (ask.shape.equals, ask.carried)
                ]
                if all(max(lowers, default=LEAST) >= test.lower for lowers in bounds):
                    return number
        return 0

    def _form(self, macro: Macro, ask: Ask) -> Form:
        shapes = self.shapes[self.number[macro]]
        place = next(place for place, shape in enumerate(shapes) if _answers(shape, ask.shape))
        slots = shapes[place].slots
        places = (slots.index(test.slot) if not test.apart else self.programs.get(test.program, 0) for test in ask.tests)
        flags = (test.flags | RANKED * (self.ranked and is_interned(test.now)) for test in ask.tests)
        tests = zip(flags, ask.tests, places, strict=True)
        return place, tuple(flag | test.slot << SLOT_BITS | at << PLACE_BITS | test.ended << ENDED_BITS for flag, test, at in tests)

    # ------------------------------------------------------------------------------------------------ letters

    def forget(self) -> None:
        """Forget all letters."""
        self.codes = 4
        self.first_of: Array = np.full((len(self.macros), self.codes), -1, np.int32)
        self.drops: Array = np.zeros((1 + (max(0, len(self.macros) - REST) + REST_MASK >> REST_BITS), self.codes), np.int64)
        self.stirs: Array = np.zeros(self.codes, np.int64)
        self.cells_of: Array = np.zeros(self.codes, np.int32)
        self.rows: Array = np.zeros((16, len(ROW) + 3 * self.tests), np.int64)
        self.operands: Array = np.zeros(16, np.int32)
        self._row_count = 0
        self._operand_of: dict[tuple[int, ...], int] = {}
        self._operand_count = 0

    def learn(self, code: int, mask: int, facts: int) -> None:
        """Extend the tables by the code of a new letter with this mask and these bits of `facts`; codes come in the order of their numbers."""
        if code == self.codes:
            self._more_codes()
        if self.program.droppable and not self.program.relevant(mask):
            return
        for number, macro in enumerate(self.macros):
            step = self.regions.step(macro, mask)
            ends = number > 0 and step.unmarked is not None
            moves = (region for region in (*step.marked, *(step.unmarked or () if ends else ())) if self.facts.agree(region, facts))
            rows = [row for region in moves for row in self._rows_of(macro, region)]
            self.first_of[number, code] = self._chained(rows)
            self.cells_of[code] += len(rows)
            self.drops[0, code] |= ends << min(number, REST)
            if number >= REST:
                self.drops[(number - REST >> REST_BITS) + 1, code] |= ends << (number - REST & REST_MASK)
            self.stirs[code] |= (ends or bool(rows)) << min(number, REST)

    def _more_codes(self) -> None:
        self.codes *= 2
        self.first_of = np.concatenate([self.first_of, np.full_like(self.first_of, -1)], axis=1)
        for name in ("drops", "stirs", "cells_of"):
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros_like(getattr(self, name))], axis=-1))

    def _rows_of(self, macro: Macro, region: Region) -> Iterator[tuple[int, ...]]:
        """The rows of a region, one for each macro state that it leads to, but for the next one's place; none where no group can be in it."""
        ask = self._ask(macro, region)
        if ask is None:
            return
        ask = self._as_layer(ask, (target for target, _ in region.targets))
        if macro is self.regions.initial:
            form, equals = 0, 0
        elif ask.layered:
            form, equals = self.forms.index(self._form(macro, ask)), -1
        else:
            form = self.forms.index(self._form(macro, ask))
            equals = self._operands(tuple(self.columns[value] for _, value in ask.equal))
        tests = [number for test in ask.tests for number in (self.columns[test.now], test.lower, test.upper)]
        tests += [0] * (3 * self.tests - len(tests))
        lasting = self.lasting(macro, ask)
        final = region.final and region.label is not None
        if region.label is not None and region.final and not region.targets:
            yield region.label | form << FORM_BITS, -1, True, form, equals, self._operands((0,)), lasting, 0, *tests
        for each, places in region.targets:
            target = self.number[each]
            made = () if ask.layered else tuple(map(self._made, _values(region, places, ask, self.regions.several(macro))))
            sets = int(np.bitwise_or.reduce(np.int64(1) << np.array(self.sets[target], np.int64)))
            kind = (UNMARKED if region.label is None else region.label) | target + 1 << MACRO_BITS
            yield kind | form << FORM_BITS, target, final, form, equals, self._operands((len(made), *made)), lasting, sets, *tests
            final = False  # of the cells of one match, the first ends it

    def _made(self, value: Value) -> int:
        """A value that is kept, as the kernel reads it."""
        match value:
            case int() as slot:
                return -1 - slot
            case (how, slot, own):
                return -1 - (slot | MADE[how] << HOW_BITS | self.columns[own] << COLUMN_BITS)
            case Union(before=before, products=products):
                # The slot, the values of a choice, the number of products, and of each that of its parts: a value of the event, or
                # a slot and the values of its choices.
                numbers = [before, _width(products[0]), len(products)]
                for product in products:
                    numbers += [
                        len(product),
                        *(-1 - (part[0] | part[1] << SLOT_BITS) if isinstance(part, tuple) else self.columns[part] for part in product),
                    ]
                return -1 - (MADE["joined"] << HOW_BITS | self._operands(tuple(numbers)) << COLUMN_BITS)
        return self.columns[value]

    def _chained(self, rows: Sequence[tuple[int, ...]]) -> int:
        """Put rows into the table, one leading to the next; the place of the first, -1 without any."""
        first = self._row_count
        while first + len(rows) > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        for number, row in enumerate(rows):
            following = (first + number + 1) * self.rows.shape[1] if number + 1 < len(rows) else -1
            self.rows[first + number] = (following, *row)
        self._row_count += len(rows)
        return first * self.rows.shape[1] if rows else -1

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
    def outer(self) -> Array:
        """Of each index of each macro state that carries values the place of the one by what is equal alone, -1 of others (int64)."""
        table: Array = np.full((len(self.macros), self.most_shapes), -1, np.int64)
        for number, shapes in enumerate(self.shapes):
            for place, shape in enumerate(shapes):
                if shape.carried:
                    table[number, place] = next(at for at, other in enumerate(shapes) if _answers(other, Shape(shape.equals, ())))
        return table

    @property
    def shape_table(self) -> Array:
        """The indexes of each macro state, as the kernel reads them (int32)."""
        table: Array = np.full((len(self.macros), self.most_shapes, self.shape_width), -1, np.int32)
        outer = self.outer
        for number, shapes in enumerate(self.shapes):
            for place, shape in enumerate(shapes):
                key = (*shape.equals, *shape.carried)
                carried = -1 if shape == LAYERS and self.macros[number] in self.layered else len(shape.carried)
                line = (len(shape.slots), len(key), carried, outer[number, place], *key, *shape.slots)
                table[number, place, : len(line)] = line
        return table.reshape(-1)

    def layer_table(self, wanted: int) -> Array:
        """The macro states with layers, as the kernel reads them (int32). wanted: which layers."""
        table: Array = np.full((len(self.layered), len(LAYERED) - 1 + self.slots), -1, np.int32)
        ordered = [macro for macro in self.macros if macro in self.layered]
        sources = {own.source for own in self.layered.values()}
        for row, macro in enumerate(ordered):
            number, source, slots = self.number[macro], self.layered[macro].source, self.layered[macro].slots
            shapes, every = self.shapes[number], tuple(range(macro.slots))
            below = ordered.index(source) if source in self.layered else -1
            form = self.forms.index(self._form(source, Ask((), (), tuple(sorted(slots)), layered=True)))
            own = next(place for place, shape in enumerate(shapes) if shape.equals == every)
            # What goes on from it may want one that was the last before others came.
            own_wanted = EVERY if wanted == LATEST and macro in sources else wanted
            line = (number, self.number[source], below, own_wanted, form, own, shapes.index(LAYERS), len(slots), *slots)
            table[row, : len(line)] = line
        return table.reshape(-1)

    @property
    def form_table(self) -> Array:
        """The forms, as the kernel reads them (int64)."""
        table: Array = np.zeros((len(self.forms), self.form_width), np.int64)
        for number, (place, tests) in enumerate(self.forms):
            line = (place, len(tests), *tests)
            table[number, : len(line)] = line
        return table.reshape(-1)

    @property
    def program_table(self) -> Array:
        """The programs, from the last one on (int64), which MEMO follows."""
        return np.array([number for program in reversed(self.programs) for number in program], np.int64)


def _life(macros: Iterable[Macro]) -> int | None:
    """The greatest time for which a group can go on once it is entered; None: for ever."""
    longest = 0
    for way in itertools.chain.from_iterable(macro.lifetime for macro in macros):
        if not way:
            return None
        longest = max(longest, min(most for _, most in way))
    return longest


def _places(program: Program) -> tuple[Array, Array]:
    """What is said of labels (see PART_BEGINS; int64, (labels, 1 + parts)), and what may stand beside the supports of each part (int64).

    Raises LimitError past MOST_PARTS.
    """
    automaton, parts = program.automaton, program.automaton.parts
    says = automaton.begins is not None
    everywhere = isinstance(program, NextProgram) and program.everywhere
    if len(parts) > MOST_PARTS:
        raise _too_large(f"strategies choose in more than {MOST_PARTS} parts of the pattern (MOST_PARTS)")
    found: Array = np.zeros((len(automaton.labels), 1 + len(parts)), np.int64)
    for number, (mark, places) in enumerate(automaton.labels):
        found[number, 0] = SAYS * (everywhere or bool(mark and says))
        for part in _inside(places):
            begins, ends = ((part, name) in places for name in (BEGINS, ENDS))
            shown = ends or _counts(parts[part], places, part) if parts[part].is_next else (part, SHOWN) in places
            found[number, 1 + part] = PART_BEGINS * begins | PART_ENDS * ends | PART_SHOWN * shown | PART_SAYS * parts[part].everywhere
            found[number, 0] |= ENDS_PARTS * ends | BEGINS_NEXT * (begins and parts[part].is_next)
    hidden = (found[:, 1:] & PART_BEGINS != 0) & (found[:, 1:] & PART_SHOWN == 0)
    between = np.array([_has_others_between(automaton, part) for part in range(len(parts))], np.bool_)
    return found, LOOSE_BETWEEN * between | LOOSE_BEGIN * hidden.any(axis=0)


def _counts(part: Part, places: Parts, number: int) -> bool:
    """Whether the time of an event with these places is in a history of what is next, the part with this number."""
    if not part.earlier:
        return True
    return part.rule is TimeModel.COMPLETE_HISTORY and (number, SHOWN) in places


def _has_others_between(automaton: Automaton, part: int) -> bool:
    """Whether marked events that are not in a part may come between those that are."""
    todo = {move.target for move in automaton.transitions if part in _inside(move.parts) and (part, ENDS) not in move.parts}
    within = set(todo)
    while todo:
        for move in automaton.outgoing[todo.pop()]:
            if move.mark is not None and part not in _inside(move.parts):
                return True
            if (part, ENDS) not in move.parts and move.target not in within:
                within.add(move.target)
                todo.add(move.target)
    return False


def _inside(parts: Parts) -> set[int]:
    """The parts in which an event has a place."""
    return {part for part, place in parts if part >= 0 and place != PRECEDES}


def _values(region: Region, places: tuple[int, ...], ask: Ask | None, several: frozenset[int]) -> Iterator[Value]:
    """The values that these terms of a region are; what is equal to a value of the event is one. several: the slots with sets."""
    equal = dict(() if ask is None else ask.equal)
    for place in places:
        match region.made[place]:
            case Now(value=value):
                yield value
            case Before(register=slot):
                yield equal.get(slot, slot)
            case Gathered(how=how, before=Before(register=slot), value=value) if how in MADE:
                yield how, slot, value
            case Gathered(how="set", before=None, value=value):
                yield "one", 0, value
            case Joined(before=None | Before() as before, products=products):
                parts = [
                    [_part(part, equal, several) for part in product if not isinstance(part, Each) or part.width] for product in products
                ]
                if _width(parts[0]) > MOST_VALUES:
                    raise LimitError(
                        f"a condition needs {_width(parts[0])} values of events that are kept together, and the limit is {MOST_VALUES} (MOST_VALUES)",
                        help="compute parts of it that speak of one event in columns of the events",
                    )
                yield Union(before.register if isinstance(before, Before) else -1, tuple(map(tuple, parts)))
            case term:  # an event puts one value at most into what `comparisons` and `choices` gather, so that is of earlier ones
                raise TypeError(term)


def _part(part: Term, equal: Mapping[int, Expression], several: frozenset[int]) -> Expression | tuple[int, int]:
    """A part of a product that has a value."""
    match part:
        case Now(value=value):
            return value
        case Each(before=Before(register=slot), width=width):
            return equal.get(slot, (slot, width if slot in several else 0))
    raise TypeError(part)


def _width(parts: Iterable[Expression | tuple[int, int]]) -> int:
    """How many values a choice of a product has."""
    return sum(max(part[1], 1) if isinstance(part, tuple) else 1 for part in parts)


def _sources(macro: Macro, value: Value) -> Iterator[Source]:
    """What a slot is written from that becomes this value of a macro state; a set of which one is made, too."""
    match value:
        case int() as slot:
            yield macro, slot
        case Union(before=before, products=products):
            yield from (Put(tuple((macro, part[0]) if isinstance(part, tuple) else part for part in product)) for product in products)
            if before >= 0:
                yield macro, before
        case (("set" | "one") as how, slot, own):
            yield Put((own,))
            if how == "set":
                yield macro, slot
        case (_, _, own):
            yield own
        case _:
            yield value


def _reached(
    written: Mapping[tuple[Macro, int], set[Source]], macros: Sequence[Macro], wanted: Callable[[Source], bool]
) -> list[list[int]]:
    """The slots of each macro state that are written from a source of a kind, or from such slots; written: what each slot is written from."""
    found: set[tuple[Macro, int]] = set()
    while more := {place for place, sources in written.items() if any(source in found or wanted(source) for source in sources)} - found:
        found |= more
    return [sorted(slot for other, slot in found if other is macro) for macro in macros]


def _sets(written: Mapping[tuple[Macro, int], set[Source]], macros: Sequence[Macro], regions: Regions) -> list[list[int]]:
    """The slots of each macro state that hold sets."""
    sets = _reached(written, macros, lambda source: isinstance(source, Put))
    values = _reached(written, macros, lambda source: not isinstance(source, Put | tuple))
    # A register is written by sets alone, or by none (`liveness.without_sets_of_one`), or it is a copy of one; and what is written alike is one slot.
    assert sets == [sorted(regions.several(macro)) for macro in macros]
    assert not any(map(set.intersection, map(set, sets), map(set, values)))
    return sets


def _fields(written: Mapping[tuple[Macro, int], set[Source]]) -> dict[tuple[Macro, int], Fields]:
    """What each slot that is written holds."""
    found: dict[tuple[Macro, int], Fields] = {}

    def of(source: Source) -> Fields | None:
        if isinstance(source, Put):
            parts = [of(part) for part in source.parts]
            return None if None in parts else tuple(itertools.chain(*filter(None, parts)))
        return found.get(source) if isinstance(source, tuple) else (is_interned(source),)

    more = True
    while more:
        more = False
        for place, sources in written.items():
            known = [fields for source in sources if (fields := of(source))]
            together = tuple(map(any, zip(*known, strict=True)))
            if known and found.get(place) != together:
                found[place], more = together, True
    return found


def _is_ranked(program: Program) -> bool:
    """Whether a program compares decimals of two words, or asks for the order of texts."""
    ordered: list[Expression] = []
    for test in (guard.test for guard in program.automaton.alphabet.guards):
        match test:
            case Compares(operator=operator, now=now) if operator not in {"=", "!="}:
                ordered.append(now)
            case Computes(condition=condition):
                parts = (part for part in walk(condition) if isinstance(part, Apply) and part.operator in FLIPPED.keys() - {"=", "!="})
                ordered += [part.arguments[0] for part in parts if is_text(type_of(part.arguments[0]))]
    return any(map(is_two_words, program.asked)) or any(map(is_interned, ordered))


def _shapes(asks: Iterable[Ask]) -> list[Shape]:
    """The indexes that answer all these, and for each that carries values one by what is equal; these come first."""
    wanted = {ask.shape for ask in asks}
    wanted |= {Shape(shape.equals, ()) for shape in wanted}
    kept = (shape for shape in wanted if not any(_answers(other, shape) for other in wanted if other != shape))
    return sorted(kept, key=lambda shape: (shape.carried, shape))


def _answers(shape: Shape, wanted: Shape) -> bool:
    """Whether an index answers what is asked of another one: what is not tested there finds all entries."""
    return (shape.equals, shape.carried) == (wanted.equals, wanted.carried) and set(shape.slots) >= set(wanted.slots)


def equalities(region: Region, several: frozenset[int]) -> tuple[dict[int, Expression], list[Condition]]:
    """The slots that are equal to a value of the event, with that value, and what else is asked of slots; several: those with sets."""
    equal: dict[int, Expression] = {}
    others: list[Condition] = []
    for literal in region.literals:
        match literal:
            case Compares(before=Before(register=slot), operator="=", now=now), True if slot not in several and slot not in equal:
                equal[slot] = now
            case test, _ if reads(test):
                others.append(literal)
    return equal, others


def _tests(
    literals: Iterable[Condition],
    several: frozenset[int],
    plural: frozenset[int],
    questions: dict[Expression, tuple[Expression, ...]],
) -> tuple[Test, ...] | None:
    """What is asked beside equalities, by slot; None where nothing can be such. several, plural: slots, see `Regions`.

    questions: see `GuardTables`; new ones join them.
    """
    ages: dict[tuple[int, Expression], list[tuple[Interval, bool]]] = {}
    found: list[Test] = []
    for literal in literals:
        match literal:
            case Compares(before=Before(register=slot), operator=operator, now=now), truth if slot not in several:
                found.append(_comparison(slot, operator, now, truth))
            case Elapsed(before=Before(register=slot), now=now, interval=interval), truth if slot not in several:
                ages.setdefault((slot, now), []).append((interval, truth))
            case Compares(before=Before(register=slot), operator="!=", now=now), truth:
                found.append(Test(slot, AMONG | (0 if truth else OUTSIDE), now, 0, 0))
            case Computes(condition=condition, operands=operands), truth:
                found.append(_computed(condition, dict(operands), several, questions, truth=truth))
            case other:  # a set is gathered for != alone (`comparisons.GATHERED`), or for what computes
                raise TypeError(other)
    for (slot, now), intervals in ages.items():
        # What begins earlier may begin before what is kept.
        spans = _ages(intervals, 0 if isinstance(now, Time | Index) else -MOST)
        nulls = NULLS if slot in plural and not any(truth for _, truth in intervals) else 0
        if spans is None and not nulls:
            return None
        # Where no age is such, NULL alone passes.
        found += [Test(slot, flags | nulls, now, lower, upper) for flags, lower, upper in spans or [(0, MOST, LEAST)]]
    found.sort(key=lambda test: (test.slot, test.flags, test.lower, test.upper, test.program))
    return tuple(part for test in found for part in (test, *(Test(0, BESIDE, value, 0, 0) for value in test.more)))


def _comparison(slot: int, operator: str, now: Expression, truth: bool) -> Test:  # noqa: FBT001
    operator = operator if truth else NEGATED[operator]
    return Test(slot, (OUTSIDE if operator == "!=" else 0) | (0 if truth else NULLS), now, *OFFSETS[operator])


def _computed(
    condition: Expression,
    operands: Mapping[Expression, Term],
    several: frozenset[int],
    questions: dict[Expression, tuple[Expression, ...]],
    *,
    truth: bool,
) -> Test:
    """A test that computes; several: the slots with sets. questions: see `_tests`."""
    sets: dict[object, tuple[int, int]] = {}  # by what is chosen together: number, slot
    own = list(dict.fromkeys(term.value for term in operands.values() if isinstance(term, Now)))
    found = steps(condition)
    asked: list[Expression] = []
    program: list[int] = [len(found)]
    for step in found:
        source, number = ("pushed" if step.popped else "nothing"), step.ahead
        if step.question is not None:
            number = [*questions].index(step.question) if step.question in questions else len(questions)
            questions.setdefault(step.question, tuple(asked))
            asked.clear()
        elif step.operator == "ask" and step.value is not None:
            asked.append(step.value)
        match operands.get(step.value, step.value) if step.value is not None else None:
            case Before(register=slot) | Element(before=Before(register=slot)) as term if slot in several:
                part, place = (term.part, term.number + (term.width > 1)) if isinstance(term, Element) else (term, 0)
                source, number = "member", sets.setdefault(part, (len(sets), slot))[0] | place << MEMBER_BITS
            case Before(register=slot) | Element(before=Before(register=slot)):
                source, number = "slot", slot
            case Now(value=value):
                source, number = "now", own.index(value)
            case Literal() as constant if constant.value is not None:
                source, number = "constant", _constant(constant)
        flags = REAL * step.real | WIDE * step.wide | step.digits << DIGITS_BITS
        program += [OPERATIONS.index(step.operator) | flags | SOURCES.index(source) << SOURCE_BITS, number]
    now, *more = own
    if len(sets) > MOST_SETS:
        raise LimitError(
            f"a condition speaks of {len(sets)} variables that have several events each, and the limit is {MOST_SETS} (MOST_SETS)",
            help="split it into conditions over fewer variables, joined by AND, or let patterns have one event of each",
        )
    flags = COMPUTED | (AMONG if sets else 0) | (0 if truth else OUTSIDE)
    behind = (len(sets), *(slot for _, slot in sets.values())) if sets else ()
    return Test(0, flags, now, 0, 0, (*program, *behind), tuple(more))


def _constant(constant: Literal) -> int:
    """The word of a constant that is no text."""
    match plain_constant(constant.value):
        case float() as real:
            return int(ordered_bits(np.array([real]))[0])
        case Decimal() as decimal:
            return int(decimal.scaleb(type_of(constant).scale))
        case int() as whole:
            return int(whole)
    raise TypeError(constant)


def _ages(ages: Sequence[tuple[Interval, bool]], least: int) -> list[tuple[int, int, int]] | None:
    """[(OUTSIDE or 0, least, greatest time before less the time now)] of the ages in some intervals and not in others; None: there are none.

    least: no age is less.
    """
    ends = {least}
    for interval, _ in ages:
        ends |= {max(least, interval.lower)} | ({max(least, interval.upper + 1)} if interval.upper is not None else set())
    ordered = sorted(ends)
    wanted = [all((end in interval) == truth for interval, truth in ages) for end in ordered]
    if not any(wanted):
        return None
    bounds = [LEAST if after == len(ordered) else 1 - ordered[after] for after in range(1, len(ordered) + 1)]

    def spans(truth: bool) -> list[tuple[int, int]]:  # noqa: FBT001
        """The stretches of ages that are wanted, or not."""
        return [
            (bounds[places[-1]], -ordered[places[0]])
            for each, group in itertools.groupby(range(len(ordered)), key=wanted.__getitem__)
            if each == truth and (places := list(group))
        ]

    inside = spans(True)
    return [(0, *inside[0])] if len(inside) == 1 else [(OUTSIDE, *span) for span in spans(False)]
