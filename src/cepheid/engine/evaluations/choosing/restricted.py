"""RESTRICTED by the event algebra's own detector: the driver of `cepheid.kernel.restricted`, where the algorithm is.

For patterns that are event expressions (`cepheid.algebra.patterns`), whatever windows they have inside: no automaton with registers, no partial
matches, no match graph. What is held of a partition is known before it runs (`cepheid.algebra.memory`). Other patterns under RESTRICTED are
evaluated as all their matches are, of which the first of each trigger has the greatest start.

When to use this: RESTRICTED, wherever the pattern allows it: no window is needed to bound the memory. In a window the match graph (`match`) takes 0.8
to 1.0 of its time, and memory that grows with the window.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cepheid.algebra.expression import Conjunction, Disjunction, Length, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.memory import memory
from cepheid.algebra.patterns import OutsideError, expression_of
from cepheid.algebra.transform import transform
from cepheid.automata.construct import construct
from cepheid.automata.program import Program
from cepheid.engine.evaluations.base import Chunk
from cepheid.engine.evaluations.block_run import HEADER, KEPT, POSITION, BlockRun
from cepheid.engine.evaluations.method import Guarantee, Method
from cepheid.engine.letters.codes import LetterCodes
from cepheid.engine.memory.blocks import BlockLayout, Ring
from cepheid.engine.memory.checks import demand, inside
from cepheid.engine.memory.pools import offsets_of
from cepheid.language.syntax import Strategy
from cepheid.logical.canonical import canonical_text
from cepheid.logical.plan import Named, Or
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Sequence as Listed
    from typing import Unpack

    from cepheid.algebra.expression import Expression
    from cepheid.automata.transition import Mark
    from cepheid.engine.evaluations.base import Bounds, HasBytes
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.method import Task, Terms
    from cepheid.engine.memory.pools import Array
    from cepheid.schema import EventSchema

LEAVES_LIMIT = 62
"""Different events that an expression may speak of: bits of a word."""

LABELS_LIMIT = 1 << 10
"""Sets of variables that one event of a match may be in."""

CODE_LIMIT = 1 << 18
"""Different letters that the table holds; past it they are forgotten and learned anew."""

MARKS = 5
"""Words of an instance before its marks."""

LEAF = "\0leaf "
"""Begins the variables that tell the events of an expression apart in the automaton that reads them; no query can name them."""

KINDS: dict[type[Expression], int] = {
    kind: number for number, kind in enumerate((Primitive, Disjunction, Conjunction, Negation, Restriction, Sequence))
}
"""The kinds of nodes, as the kernel has them."""

LEAF_BITS, LEAF_MASK = 6, 63
"""The bits of a mark that say which leaf its event is; the others are its position."""


@record(slots=False)
class RestrictedProgram(Program):
    """An event expression and the events that it speaks of.

    automaton: of matches of one event, each marked by what it is of these (LEAF). expression: not transformed. variables: those that the matches
    show, None: all.
    """

    expression: Expression
    variables: frozenset[str] | None

    @cached_property
    def leaves(self) -> tuple[Primitive, ...]:
        """The primitives, each once, by the number of their leaf."""
        return tuple(leaf_numbers(self.expression))

    def shown_by(self, leaves: Iterable[int]) -> Mark:
        """The variables that matches show an event in which is these leaves."""
        shown = frozenset().union(*(self.leaves[leaf].shown for leaf in leaves))
        return shown if self.variables is None else shown & self.variables

    @cached_property
    def label_sets(self) -> tuple[Mark, ...]:
        """The mark of each label number, as SELECT shows them."""
        return tuple(sorted({self.shown_by(leaves) for leaves in _together(self.expression, leaf_numbers(self.expression))}, key=sorted))

    @cached_property
    def tests(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each leaf the tests (requires, forbids) of which an event that is one passes one."""
        moves = [move for move in self.automaton.transitions if move.mark]
        return tuple(
            tuple((move.requires, move.forbids) for move in moves if f"{LEAF}{number}" in (move.mark or ()))
            for number in range(len(self.leaves))
        )

    @property
    def single(self) -> bool:
        """Whether every match is one event."""
        return isinstance(self.expression, Primitive)

    @cached_property
    def droppable(self) -> bool:
        """Whether events that are no leaf can be left out: where no position is counted."""
        counts = [node.length.events for node in self.expression.walk() if isinstance(node, Restriction)]
        return all(count is None for count in counts)

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ when the expression, its events or what is shown differ."""
        number = leaf_numbers(self.expression)
        nodes = [
            (
                KINDS[type(node)],
                number[node] if isinstance(node, Primitive) else tuple(node.length) if isinstance(node, Restriction) else (),
            )
            for node in self.expression.walk()
        ]
        text = canonical_text(
            (nodes, [sorted(leaf.shown) for leaf in self.leaves], None if self.variables is None else sorted(self.variables))
        )
        return hashlib.sha256(Program(self.automaton).fingerprint + text.encode()).digest()


def leaf_numbers(expression: Expression) -> dict[Primitive, int]:
    """The number of each primitive of an expression, in their order in it."""
    found = dict.fromkeys(node for node in expression.walk() if isinstance(node, Primitive))
    return {primitive: number for number, primitive in enumerate(found)}


def _together(expression: Expression, number: Mapping[Primitive, int]) -> frozenset[frozenset[int]]:
    """The sets of leaves that one event of an instance may be at once. Raises OutsideError past LABELS_LIMIT."""
    found: list[frozenset[frozenset[int]]] = []
    for node in expression.walk():
        below = [found.pop() for _ in node.operands][::-1]
        match node:
            case Primitive():
                sets = frozenset({frozenset({number[node]})})
            case Negation() | Restriction():
                sets = below[0]
            case Conjunction():
                if len(below[0]) * len(below[1]) > LABELS_LIMIT:
                    raise OutsideError(f"one event of a match may be in more than {LABELS_LIMIT} sets of variables")
                sets = below[0] | below[1] | {one | other for one, other in itertools.product(*below)}
            case _:
                sets = below[0] | below[1]
        found.append(sets)
    return found[0]


def restricted_program(task: Task, schema: EventSchema) -> RestrictedProgram:
    """The program of a pattern that is an event expression. Raises OutsideError where it is none, LimitError as `construct`."""
    expression = expression_of(task.pattern)
    number = leaf_numbers(expression)
    if len(number) > LEAVES_LIMIT:
        raise OutsideError(f"it speaks of more than {LEAVES_LIMIT} different events")
    _together(expression, number)
    events = tuple(
        Named(leaf.pattern, f"{LEAF}{place}", span=leaf.pattern.span) for leaf, place in number.items() if leaf.pattern is not None
    )
    automaton = construct(events[0] if len(events) == 1 else Or(events, span=task.pattern.span), schema)
    if automaton.compares or automaton.trackers:
        raise OutsideError("a condition is not about one event alone")
    return RestrictedProgram(automaton, expression, None if task.shown is None else frozenset(task.shown))


@record
class RestrictedSizes:
    """First sizes of the growing arrays; tests make them tiny. places: of a new ring. most_matches, most_positions: of one chunk."""

    places: int = 2
    matches: int = 1 << 10
    most_matches: int = 1 << 16
    positions: int = 1 << 13
    most_positions: int = 1 << 20
    codes: int = CODE_LIMIT


@record(slots=False)
class _Tables:
    """An expression as the kernel reads it.

    nodes: see `cepheid.kernel.restricted`. initial: what nodes hold of a new partition. held: (where, marks at most) of each instance in it. rings:
    marks at most of the instances in each ring. scratch: words for an instance of each node. marks: most of a match. positive: leaves that
    matches may show.
    """

    nodes: Array
    initial: Array
    held: tuple[tuple[int, int], ...]
    rings: tuple[int, ...]
    scratch: int
    marks: int
    positive: int

    @classmethod
    def of(cls, expression: Expression) -> _Tables:
        """Of a transformed expression."""
        number = leaf_numbers(expression)
        lines: list[list[int]] = []
        initial: list[int] = []
        held: list[tuple[int, int]] = []
        rings: list[int] = []
        pending: list[tuple[int, int, int]] = []  # line, marks at most, leaves that are shown
        scratch = 0

        def holds(marks: int) -> int:
            held.append((len(initial), marks))
            initial.extend([0] * (MARKS + marks))
            return held[-1][0]

        for node in expression.walk():
            below = [pending.pop() for _ in node.operands][::-1]
            left, right = [line for line, _, _ in below] + [-1] * (2 - len(below))
            sizes, place, other, ring, length = [marks for _, marks, _ in below], -1, -1, -1, Length()
            marks, shown = sum(sizes), functools.reduce(operator.or_, (bits for _, _, bits in below), 0)
            match node:
                case Primitive():
                    left, marks, shown = number[node], 1, 1 << number[node]
                case Disjunction():
                    marks = max(sizes)
                case Negation():
                    marks, shown, place = sizes[0], below[0][2], len(initial)
                    initial.append(-1)
                case Restriction(_, length):
                    pass
                case Conjunction():
                    place, other = holds(sizes[0]), holds(sizes[1])
                case Sequence(length=length):
                    place = len(initial)
                    initial.append(-1)
                    holds(sizes[0])
                    rings.append(sizes[0])
                    ring = len(rings)
            bounds = [-1 if bound is None else bound for bound in length]
            pending.append((len(lines), marks, shown))
            lines.append([KINDS[type(node)], left, right, scratch, place, other, ring, *bounds])
            scratch += MARKS + marks
        _, marks, positive = pending[0]
        return cls(
            np.array(lines, np.int64).reshape(-1), np.array(initial or [0], np.int64), tuple(held), tuple(rings), scratch, marks, positive
        )


class Restricted(BlockRun):
    """The run state of RESTRICTED over any number of partitions; the interface is that of `Evaluation`.

    Update O(m log n) per event that the expression speaks of, m operators, n instances in the longest ring; no more for a match. Memory: see
    `cepheid.algebra.memory`.
    """

    kind: ClassVar[type[np.generic]] = np.int64
    counters: ClassVar[tuple[str, ...]] = ("events", "matches", "triggers", "skipped", "epoch")

    def __init__(self, program: RestrictedProgram, *, sizes: RestrictedSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self.program = program
        self.sizes = sizes = sizes or RestrictedSizes()
        self.tables = _Tables.of(transform(bounded(program, bounds.get("window"), bounds.get("count_window"))))
        room = max(sizes.positions, self.tables.marks)
        super().__init__(
            "restricted",
            bounds,
            places=sizes.places // 2,
            lists=sizes.matches,
            marks=room,
            most_lists=sizes.most_matches,
            most_marks=max(sizes.most_positions, room),
        )
        self.matches = 0
        self.codes = LetterCodes(program.bits)
        self._leaves_of: Array = np.zeros(16, np.int64)
        self._scratch: Array = np.zeros(self.tables.scratch, np.int64)
        self._current: Array = np.zeros(len(self.tables.nodes) // len(self.kernel.NODE), np.int64)
        self._labels: dict[int, tuple[int, bool]] = {}
        self.mends["letter"] = "_mend_letter"
        for name, value in (
            ("letter_mask", self.codes.letter_mask),
            ("plain", self.store.layout.directory),
            ("marks", self.tables.marks),
            ("positive", self.tables.positive),
        ):
            self._set(name, value)

    def _layout(self) -> BlockLayout:
        held = Ring(len(self.tables.initial), dated=False)
        return BlockLayout(HEADER, (held, *(Ring(MARKS + marks, dated=False, times=2) for marks in self.tables.rings)), kept=KEPT)

    def _begin(self, events: Events) -> Array:
        return self.codes.begin(events.letters)

    def _arrays(self) -> tuple[Array, ...]:
        store, tables = self.store, self.tables
        blocks = (store.words, store.offsets, store.template, store.widths)
        return (
            *(self._vector, *self._batch, self.codes.lut, *blocks, self._leaves_of, tables.nodes, tables.initial),
            *(self._scratch, self._current, *self._buffers, self.marked),
        )

    def _parts(self) -> Iterable[Array | HasBytes]:
        return (
            self._vector,
            self.codes,
            self._leaves_of,
            self.tables.nodes,
            self.tables.initial,
            self._scratch,
            self._current,
            *self._buffers,
        )

    def _mend_letter(self) -> None:
        if len(self.codes.letters) >= self.sizes.codes:
            self.codes.forget()
        index = int(self._batch[0][self._get("row")]) & self.codes.letter_mask
        code = self.codes.learn(index)
        if code == len(self._leaves_of):
            self._leaves_of = np.concatenate([self._leaves_of, np.zeros_like(self._leaves_of)])
        mask = self.program.automaton.alphabet.mask_of(self.codes.letters[code])
        passed = (any(mask & requires == requires and not mask & forbids for requires, forbids in tests) for tests in self.program.tests)
        self._leaves_of[code] = sum(1 << leaf for leaf, passes in enumerate(passed) if passes)

    # ------------------------------------------------------------------------------------------------ output

    def _taken(self) -> Iterator[Chunk]:
        found = self._buffered()
        if found is None:
            return
        offsets, positions, leaves, segments = found
        sets, place = np.unique(leaves, return_inverse=True)
        labels = np.array([self.program.label_sets.index(self.program.shown_by(_bits(bits))) for bits in sets.tolist()], np.uint16)
        hidden = np.array([not mark for mark in self.program.label_sets], np.bool_)
        chunk = Chunk(offsets, positions, labels[place.reshape(-1)], segments)
        if hidden[labels].any():
            shown = ~hidden[chunk.labels]
            shown[offsets[:-1]] = shown[offsets[1:] - 1] = True
            lengths = np.add.reduceat(shown, offsets[:-1], dtype=np.int64)
            chunk = Chunk(offsets_of(lengths), positions[shown], chunk.labels[shown], segments)
        self.matches += len(chunk)
        yield chunk

    # ------------------------------------------------------------------------------------------------ state

    def held(self) -> tuple[Array, Array]:
        """(slot, position) of each event that a later match may show (int64): those of the instances that are held. Linear in these."""
        store, tables = self.store, self.tables
        rows = store.held_rows
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for ring, sizes in enumerate((tables.held, *(((0, marks),) for marks in tables.rings))):
            owner, places = store.places(rows, ring)
            for first, marks in sizes:
                instances = store.words[places[:, None] + np.arange(first, first + MARKS + marks)]
                there = np.arange(marks) < instances[:, [0]]
                mine = instances[:, MARKS:][there]
                shown = tables.positive >> (mine & LEAF_MASK) & 1 == 1
                found.append((np.repeat(rows[owner] - 1, there.sum(axis=1))[shown], mine[shown] >> LEAF_BITS))
        slots, positions = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return slots, positions

    def _oldest(self, rows: Array, words: Array) -> Array:  # noqa: ARG002 - nothing in a block has a date
        """The kernel itself takes away what is settled."""
        return np.zeros(len(rows), np.int64)

    def _check(self, words: Array, entries: list[Array]) -> None:
        held, tables = entries[0], self.tables
        positions = words[:, POSITION]
        demand(inside(positions, 0, 1 << 63 - LEAF_BITS))
        most = int(positions.max(initial=0))
        starts = np.ones(held.shape[1], np.bool_)
        for place, marks in tables.held:
            starts[place : place + MARKS + marks] = False
            self._check_instances(held[:, place : place + MARKS + marks], most, may_lack=True)
        demand(inside(held[:, starts], -1, most + 1))
        for ring in entries[1:]:
            self._check_instances(ring, most, may_lack=False)

    def _check_instances(self, instances: Array, most: int, *, may_lack: bool) -> None:
        """Raise ValueError where these are no instances: rows of words."""
        count, marks = instances[:, 0], instances[:, MARKS:]
        demand(inside(count, 0 if may_lack else 1, marks.shape[1] + 1))
        there = np.arange(marks.shape[1]) < count[:, None]
        owner = np.broadcast_to(np.arange(len(count))[:, None], marks.shape)[there]
        of_mark = marks[there] >> LEAF_BITS
        start, end = instances[owner, 1], instances[owner, 3]
        demand(
            inside(of_mark, 0, most),
            inside(of_mark, start, end + 1),
            inside(marks[there] & LEAF_MASK, 0, len(self.program.leaves)),
        )
        mine = np.flatnonzero(count > 0)
        firsts = np.full(len(count), most, np.int64)
        lasts = np.full(len(count), -1, np.int64)
        np.minimum.at(firsts, owner, of_mark)
        np.maximum.at(lasts, owner, of_mark)
        demand(bool((firsts[mine] == instances[mine, 1]).all()), bool((lasts[mine] == instances[mine, 3]).all()))


def bounded(program: RestrictedProgram, window: int | None, count_window: int | None) -> Expression:
    """The expression of a program within what bounds its matches."""
    length = Length(window, None if count_window is None else count_window - 1)
    return program.expression if length == Length() else Restriction(program.expression, length)


def _bits(word: int) -> Listed[int]:
    return [bit for bit in range(word.bit_length()) if word >> bit & 1]


class RestrictedMethod(Method):
    """RESTRICTED by the detector of the event algebra."""

    name = "restricted"
    evaluation = Restricted

    def serves(self, task: Task) -> bool:
        """RESTRICTED, unless it is around a strategy."""
        return task.strategy is Strategy.RESTRICTED

    def fits(self, task: Task) -> str | None:
        """The pattern must be an event expression."""
        try:
            restricted_program(task, task.plan.schema)
        except OutsideError as error:
            return str(error)
        return None

    def program(self, task: Task) -> RestrictedProgram:
        """The expression, and the events that it speaks of."""
        return restricted_program(task, task.plan.schema)

    def guarantee(self, terms: Terms) -> Guarantee:
        """As in `cepheid.algebra.memory`."""
        assert isinstance(terms.program, RestrictedProgram)
        held = memory(bounded(terms.program, terms.window, terms.count_window))
        return Guarantee(
            evaluation="the event algebra's detector: one match of greatest start per trigger; no automaton, no partial matches",
            update="O(operators), times O(log of the longest ring)",
            state=f"of each partition: {held}",
            delay="O(events of the match)",
        )
