"""All matches of a program with guards by the kernel of guards: its state, in blocks, and its driver. `guarded` picks it where it knows enough.

Comes in: letters, and the words of the values that guards read. Goes out: matches, in the order of `guarded.Guarded`, which does the same in plain
Python for every program. The kernel's docstring says what a block holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.engine.evaluations.base import Chunk
from cepheid.engine.evaluations.block_run import HEADER, KEPT, POSITION, STARTS, BlockRun
from cepheid.engine.evaluations.guarded import Guarded
from cepheid.engine.evaluations.guarded_cells import check
from cepheid.engine.evaluations.guarded_tables import CELL, MACRO_BITS, MACROS_MASK, GuardTables, UnknownError
from cepheid.engine.evaluations.match import CHUNK_MATCHES, CHUNK_POSITIONS, FIRST_CHUNK
from cepheid.engine.letters.codes import LetterCodes
from cepheid.engine.memory import blocks
from cepheid.engine.memory.blocks import BlockLayout, Ring
from cepheid.engine.memory.checks import demand, inside
from cepheid.engine.memory.pools import power_of_two

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Unpack

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Bounds, HasBytes
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

CODE_LIMIT = 1 << 16
"""Different letters that the tables hold; past it they are forgotten and learned anew."""

LIVE = len(HEADER)
"""The word of a block that has its live macro states as bits; 1 is the initial one."""

TABLED, GREATEST = LIVE + 1, LIVE + 2
"""The places of the ring that its table was made for, less 1 (-1: it is to be made); then per macro state the greatest start, the first cell that
counts, and per index the newest entry."""

LEVEL = ("base", "size", "cursor", "fresh", "cell")
"""The kernel's `levels`, per event of a match."""

PUSHED = 80
"""Places of the queue that the kernel wants free before it looks at anything."""


@dataclass(frozen=True, slots=True)
class GuardSizes:
    """First sizes of the growing arrays; tests make them tiny. places: entries of a new ring. levels: events of a match."""

    places: int = 4
    chunk: int = FIRST_CHUNK
    most_chunk: int = CHUNK_MATCHES
    chunk_positions: int = 8 * FIRST_CHUNK
    levels: int = 16
    queue: int = 2 * PUSHED
    codes: int = CODE_LIMIT


class GuardedRun(BlockRun):
    """The run state of all matches of a program with guards, over any number of partitions; the interface is that of `Evaluation`.

    Update per live macro state and region: O(1), with a hash; a test of one value O(log n). Where starts come out of order, and where several values
    are tested, O(n) at worst. Delay: output-linear times O(log n), where several values are tested O(n) at worst. Raises UnknownError where the
    kernel does not know what the program asks, LimitError past BLOCK_LIMIT.
    """

    kind: ClassVar[type[np.generic]] = np.uint16
    counters: ClassVar[tuple[str, ...]] = ("events", "triggers", "matches", "skipped", "epoch")

    def __init__(self, program: Program, *, sizes: GuardSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self.sizes = sizes = sizes or GuardSizes()
        self.program = program
        self.tables = GuardTables(program)
        super().__init__(
            "guards",
            bounds,
            places=sizes.places,
            lists=sizes.chunk,
            marks=sizes.chunk_positions,
            most_lists=sizes.most_chunk,
            most_marks=CHUNK_POSITIONS,
        )
        tables = self.tables
        self.codes = LetterCodes(program.bits)
        self.mends |= {"letter": self._mend_letter, "stack": self._mend_stack}
        self._flatten()
        self._shapes, self._forms = tables.shape_table, tables.form_table
        self._key: Array = np.zeros(max(1, tables.shape_width), np.int64)
        self._order: Array = np.zeros(2, np.int64)
        self._levels: Array = np.zeros(len(LEVEL) * sizes.levels, np.int64)
        self._queue: Array = np.zeros(3 * sizes.queue, np.int64)
        self._values: Array = np.zeros(1, np.int64)
        self._columns: Array = np.zeros(3, np.int64)
        fields = {
            "letter_mask": self.codes.letter_mask,
            "plain": self.store.layout.directory,
            "block_limit": blocks.BLOCK_LIMIT,
            "macros": len(tables.macros),
            "shapes": tables.most_shapes,
            "shape_width": tables.shape_width,
            "form_width": tables.form_width,
            "tests": tables.tests,
            "slots": tables.slots,
            "node_width": tables.node_width,
            "width": self.store.layout.rings[1].width,
            "hashed": tables.hashed,
        }
        for name, value in fields.items():
            self._set(name, value)

    def _layout(self) -> BlockLayout:
        macros, shapes = len(self.tables.macros), self.tables.most_shapes
        width = self.tables.first_node + self.tables.node_width * shapes
        words = (*HEADER, 1, -1, *(-1,) * macros, *(0,) * macros, *(-1,) * (macros * shapes))
        return BlockLayout(words, (STARTS, Ring(width, beside=int(self.tables.hashed))), kept=KEPT)

    # ------------------------------------------------------------------------------------------------ what users of it see

    def _begin(self, events: Events) -> Array:
        wanted, values = self.program.values, events.values
        if wanted:
            if values is None or any(value not in values.layout.places for value in wanted):
                self.program.automaton.alphabet.refuse_guards("events without values")
            assert values is not None
            self._values, apart = _flat(values.words)
            self._set("event_words", apart)
            columns = [(values.layout.places[value].start, *values.layout.null_bits[value]) for value in wanted]
            self._columns = np.array([(word, null, int(bit)) for word, null, bit in columns], np.uint64).view(np.int64).reshape(-1)
        return self.codes.begin(events.letters)

    @property
    def matches(self) -> int:
        """Matches given."""
        return self._get("matches")

    def _parts(self) -> Iterable[Array | HasBytes]:
        tables = self.tables
        flat = (tables.first_of, tables.drops, tables.stirs, tables.cells_of, tables.rows, tables.operands, self._shapes, self._forms)
        return (self._vector, self.codes, *flat, self._key, self._order, self._levels, self._queue, *self._buffers)

    def _arrays(self) -> tuple[Array, ...]:
        store, tables = self.store, self.tables
        self._set("codes", tables.codes)
        return (
            self._vector,
            *self._batch,
            self._values,
            self._columns,
            self.codes.lut,
            store.words,
            store.offsets,
            store.template,
            store.sizes,
            store.pool,
            store.widths,
            self._first_of,
            tables.drops,
            tables.stirs,
            tables.cells_of,
            self._rows,
            tables.operands,
            self._shapes,
            self._forms,
            self._key,
            self._order,
            self._levels,
            self._queue,
            *self._buffers,
            self.marked,
        )

    def _taken(self) -> list[Chunk]:
        found = self._buffered()
        return [] if found is None else [Chunk(*found)]

    # ------------------------------------------------------------------------------------------------ state

    def dump(self) -> dict[str, bytes]:
        """The live state of all partitions as named sections, little-endian; the evaluation is unchanged. Linear in the blocks."""
        return {**super().dump(), "guarded_macros": self._macros}

    @property
    def _macros(self) -> bytes:
        """What the numbers of macro states, slots, indexes and forms in a state mean."""
        return json.dumps(
            [
                [[macro.configurations, shapes] for macro, shapes in zip(self.tables.macros, self.tables.shapes, strict=True)],
                self.tables.forms,
            ]
        ).encode()

    def _restore(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        demand(bytes(sections["guarded_macros"]) == self._macros)
        super()._restore(sections, stored)
        held, macros = self.store.held_rows, len(self.tables.macros)
        self.store.words[self.store.offsets[held] + TABLED] = -1
        owner, places = self.store.places(held, 1)
        cells = self.store.words[places[:, None] + np.arange(self.store.layout.rings[1].width)]
        newest = self.store.plain(held)[:, GREATEST + 2 * macros :]
        check(cells, owner, self.store.lines(held, 1)[:, :2], newest, self.tables)

    def _check(self, words: Array, entries: list[Array]) -> None:
        del entries  # they are looked at in `_restore`
        macros = len(self.tables.macros)
        live, greatest = words[:, LIVE], words[:, GREATEST : GREATEST + macros]
        demand(inside(live, 1, 1 << macros), live & 1 == 1, inside(greatest, -1, np.maximum(words[:, [POSITION]], 1)))

    def texts_in(self, sections: Mapping[str, Any]) -> Array:
        """The numbers of texts that what `dump` gave speaks of, in any order (int64)."""
        cells = self._entries(sections)[1]
        macro, nulls = (cells[:, CELL.index("kind")] >> MACRO_BITS & MACROS_MASK) - 1, cells[:, CELL.index("nulls")]
        found = [
            cells[(macro == number) & (nulls >> slot & 1 == 0), self.tables.values_at + slot]
            for number, slots in enumerate(self.tables.texts)
            for slot in slots
        ]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))

    # ------------------------------------------------------------------------------------------------ what the kernel lacks

    def _mend_letter(self) -> None:
        if len(self.codes.letters) >= self.sizes.codes:
            self.codes.forget()
            self.tables.forget()
        code = self.codes.learn(int(self._batch[0][self._get("row")]) & self.codes.letter_mask)
        self.tables.learn(code, self.program.automaton.alphabet.mask_of(self.codes.letters[code]))
        self._flatten()

    def _flatten(self) -> None:
        self._first_of, self._rows = self.tables.first_of.reshape(-1), self.tables.rows.reshape(-1)

    def _mend_stack(self) -> None:
        """An event makes `argument` cells, a match has more events than there are levels, or a queue is full: more room for all."""
        wanted = power_of_two(self._get("argument") + PUSHED)
        self._order = np.zeros(2 * max(wanted, len(self._order)), np.int64)
        for name in ("_levels", "_queue"):
            old = getattr(self, name)
            larger: Array = np.zeros(max(2 * len(old), 3 * wanted), np.int64)
            larger[: len(old)] = old
            setattr(self, name, larger)


def guarded(program: Program, **bounds: Unpack[Bounds]) -> Guarded | GuardedRun:
    """An evaluation of all matches of a program with guards, without any state: by the kernel where it knows what the program asks."""
    try:
        return GuardedRun(program, **bounds)
    except UnknownError:
        return Guarded(program, **bounds)


def _flat(words: Array) -> tuple[Array, int]:
    """Rows of words (uint64, (n, width)) as one array (int64), and how far apart the rows are in it; without a copy where they lie so."""
    if not len(words) or words.strides[1] != words.itemsize or words.strides[0] < words.shape[1] * words.itemsize:
        return np.ascontiguousarray(words).view(np.int64).reshape(-1), words.shape[1]
    apart = words.strides[0] // words.itemsize
    # PERF: the letter stands before the values of each row, and to copy these would cost more than to step over it.
    flat = np.lib.stride_tricks.as_strided(words, ((len(words) - 1) * apart + words.shape[1],), (words.itemsize,), writeable=False)
    return flat.view(np.int64), apart
