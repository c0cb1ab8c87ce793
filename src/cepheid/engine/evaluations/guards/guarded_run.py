"""All matches of a program with guards, a sample of them, or their number, by the kernel of guards: its state, in blocks, and its driver.

Comes in: letters, and the words of the values that guards read. Goes out: matches, by their ends, and of an event the one
that begins last first. docs/theory/guards-kernel.md says what a block holds.

When to use this: whatever compares events, has gaps, or windows inside. A pattern without such guards takes 1.3 to 1.9 times as long here as in the
match graph of letters (`match`).
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.automata.transition import HIDDEN
from cepheid.engine.evaluations.base import ALL, Chunk, by_trigger
from cepheid.engine.evaluations.block_run import HEADER, KEPT, LAST_TIME, NEWEST_TIME, POSITION, STARTS, BlockRun
from cepheid.engine.evaluations.counts.counting import wider
from cepheid.engine.evaluations.graph.match import CHUNK_MATCHES, CHUNK_POSITIONS, FIRST_CHUNK
from cepheid.engine.evaluations.guards import guarded_sets
from cepheid.engine.evaluations.guards.guarded_cells import check
from cepheid.engine.evaluations.guards.guarded_distinct import Distinct
from cepheid.engine.evaluations.guards.guarded_memo import Memo
from cepheid.engine.evaluations.guards.guarded_ranks import Ranks, numbers_in
from cepheid.engine.evaluations.guards.guarded_sets import FIRST_ROOM, Sets, stride_of, values_of
from cepheid.engine.evaluations.guards.guarded_tables import (
    APART,
    BEGIN,
    CELL,
    EVERY,
    FORM_BITS,
    MACRO_BITS,
    MACROS_MASK,
    NODE,
    RANKED,
    REST,
    GuardTables,
    RepeatsError,
)
from cepheid.engine.evaluations.spread import spread
from cepheid.engine.input.order import NEVER
from cepheid.engine.letters.codes import LetterCodes
from cepheid.engine.letters.encoded import is_interned
from cepheid.engine.memory import blocks
from cepheid.engine.memory.blocks import BlockLayout, Ring
from cepheid.engine.memory.checks import demand, inside
from cepheid.engine.memory.pools import offsets_of, power_of_two
from cepheid.engine.output.exact_counts import from_integers, to_integer
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Bounds, HasBytes
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.guards.guarded_ranks import Words
    from cepheid.engine.evaluations.guards.guarded_tables import Fields
    from cepheid.engine.letters.encoded import Texts, Values
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored
    from cepheid.logical.plan import Expression

CODE_LIMIT = 1 << 16
"""Different letters that the tables hold; past it they are forgotten and learned anew."""

LIVE = len(HEADER)
"""The word of a block that has its live macro states as bits; 1 is the initial one."""

TABLED, GREATEST = LIVE + 1, LIVE + 2
"""The places of the ring that its table was made for, less 1 (-1: it is to be made); then per macro state the greatest start, the first cell that
counts (of the initial one: the first that anything leads to), and per index the newest entry."""

LEVEL = ("base", "size", "cursor", "fresh", "cell")
"""The kernel's `levels`, per event of a match."""

LINK = ("before", "length", "jump")
"""The kernel's `supports`, per cell whose best support is compared."""

PUSHED = 80
"""Places of the queue that the kernel wants free before it looks at anything."""

NUMBER, CHOICE, CHOSEN, MAXIMAL, BEGUN, NEXT = 1, 2, 3, 4, 5, 6
"""What the kernel does with the matches of a trigger, if not to give them: their number, a sample, what NXT or LAST chooses, or what MAX does; or it
gives where the one begins that begins last, or what may be next."""


@record
class GuardSizes:
    """First sizes of the growing arrays; tests make them tiny. places: entries of a new ring. levels: events of a match. sets: words for these."""

    places: int = 4
    chunk: int = FIRST_CHUNK
    most_chunk: int = CHUNK_MATCHES
    chunk_positions: int = 8 * FIRST_CHUNK
    levels: int = 16
    queue: int = 2 * PUSHED
    sets: int = FIRST_ROOM
    codes: int = CODE_LIMIT


class GuardedRun(BlockRun):
    """The run state of all matches of a program with guards, over any number of partitions; the interface is that of `Evaluation`.

    Update per live macro state and region: O(1), with a hash; a test of one value O(log n); this for each group of equal values that are carried to a
    later event, and times O(log g) for g groups that do not come in the order of their starts. Where starts come out of order, and where several
    values are tested, O(n) at worst. Delay: output-linear times O(log n), where several values are tested O(n) at worst. sample: of an ending event
    with more matches only so many, spread evenly over them; then all are counted first, as `GuardedCountRun` does. Where a match may be found in
    several ways, those of a trigger are told apart here. Raises LimitError as `GuardTables`, and past BLOCK_LIMIT,
    COUNT_LIMBS and DISTINCT_LIMIT.
    """

    kind: ClassVar[type[np.generic]] = np.uint16
    counters: ClassVar[tuple[str, ...]] = ("events", "triggers", "matches", "skipped", "epoch")

    _counting = 0

    def __init__(self, program: Program, *, sample: int | None = None, sizes: GuardSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self.sizes = sizes = sizes or GuardSizes()
        self.program = program
        self.sample = sample
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
        self._life = tables.life if self.window is None else None
        self.codes = LetterCodes(tables.facts.letter_bits)
        self.mends |= {
            "letter": "_mend_letter",
            "stack": "_mend_stack",
            "counts": "_mend_counts",
            "wide": "_mend_wide",
            "choose": "_mend_choose",
            "sets": "_mend_sets",
            "groups": "_mend_groups",
            "asked": "_mend_asked",
        }
        self._flatten()
        self._shapes = tables.shape_table
        self._places_of = tables.places.reshape(-1)
        self._layered = tables.layer_table(EVERY)
        self._memo = Memo(tables.questions, tables.program_table)
        self._sets = Sets(tables.form_table, self._memo.words(), room=sizes.sets if any(tables.sets) else 0)
        self._ranks = Ranks([value for value in program.asked if is_interned(value)] if tables.ranked else [])
        self._lacked = (0, 0)
        self._asked: tuple[int, ...] = ()
        self._known_by: tuple[Texts, int, int] | None = None
        # Behind what it is made in: the values of a group, and of those that it goes on from.
        self._key: Array = np.zeros(1 + max(tables.shape_width, tables.slots) + (1 + len(tables.layered)) * tables.slots, np.int64)
        self._order: Array = np.zeros(4, np.int64)
        self._levels: Array = np.zeros(len(LEVEL) * sizes.levels, np.int64)
        self._queue: Array = np.zeros(3 * sizes.queue, np.int64)
        self._values: Array = np.zeros(1, np.int64)
        self._columns: Array = np.zeros(3, np.int64)
        self._chosen: Array = np.zeros(0, np.int64)
        self._firsts: Array = np.zeros(0, np.int64)
        self._places: Iterator[int] = iter(())
        self._place = 0
        self._labels: Array = np.array(program.shown, np.uint16)
        # Of matches that are told apart: events inside that SELECT hides are not in them, unless they may say where one begins.
        labels = zip(program.shown, program.automaton.labels, strict=True)
        self._shown: Array = np.array([bool(program.label_sets[shown]) or HIDDEN in places for shown, (_, places) in labels], np.bool_)
        self._merges = self._is_shown_twice()
        self._told = self.limit if sample is None else None
        if self._merges:
            if self._counting == NUMBER:
                raise RepeatsError
            if self._told != 1:
                self._set("limit", ALL if self.limit != 0 else 0)  # of different ones, as `_told_apart` counts them
        self._set("size", 1)
        self._numbers(0)
        self._make_out_counts()
        hidden = sum(not mark for mark, _ in program.automaton.labels)  # they come first
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
            "passes": tables.passes,
            "carries": tables.carries,
            "parts": len(program.automaton.parts),
            "hidden": hidden,
            "several": len(program.automaton.parts) > 0 or hidden > 0 or len(tables.layered) > 0,
            "layers": len(tables.layered),
            "life": -1 if self._life is None else self._life,
            "floor": -1,
            "says": -1 if program.automaton.begins is None else tables.columns[program.automaton.begins],
            "begins": tables.columns[BEGIN] if tables.earlier else -1,
            "counting": self._counting if sample is None or self._merges else CHOICE,
            "sample": sample or 0,
            "fresh": self._sets.fresh,
            "sets_end": self._sets.end,
            "sets_limit": guarded_sets.SETS_LIMIT,
        }
        for name, value in fields.items():
            self._set(name, value)

    def _layout(self) -> BlockLayout:
        macros, shapes = len(self.tables.macros), self.tables.most_shapes
        width = self.tables.first_node + self.tables.node_width * shapes
        words = (*HEADER, 1, -1, *(-1,) * macros, *(0,) * macros, *(-1,) * (macros * shapes))
        # Copies, and what is made of layers, are of earlier events than the cells around them.
        dated = not (self.program.automaton.parts or self.tables.layered)
        cells = Ring(width, dated=dated, beside=int(self.tables.hashed))
        return BlockLayout(words, (STARTS, cells), kept=KEPT)

    # ------------------------------------------------------------------------------------------------ what users of it see

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots, see `Keeping.release`."""
        self._set("counted", 0)
        super().release(slots)

    def restart(self, slots: Array) -> None:
        """Forget the partitions in these slots, see `Keeping.restart`."""
        self._set("counted", 0)
        super().restart(slots)

    def expire(self, time: int) -> Array:
        """Free the memory of partitions in which no match can go on, see `KernelEvaluation.expire`."""
        self._set("counted", 0)
        return super().expire(time)

    def _idle(self, time: int) -> Array:
        """Where partial matches live so long at most (`GuardTables.life`) the last that one was entered stands in the place of the last start."""
        idle = super()._idle(time)
        if self._life is not None:
            held = self.store.held_rows
            idle[held] |= self.store.plain(held)[:, NEWEST_TIME] < max(time - self._life, NEVER)
        return idle

    def _begin(self, events: Events) -> Array:
        self._trigger: tuple[int, int] | None = None
        wanted, values = self.tables.asked, events.values
        if wanted:
            if values is None or any(value not in values.layout.places for value in wanted):
                self.program.automaton.alphabet.refuse_guards("events without values")
            assert values is not None
            made = self._made(values) if self.tables.ranked else {}
            words = np.column_stack([values.words.view(np.int64), *made.values()]).view(np.uint64) if made else values.words
            self._values, apart, beside = _flat(words)
            self._set("event_words", apart)
            behind = {value: values.words.shape[1] + number for number, value in enumerate(made)}
            columns = []
            for value in self.tables.columns:
                place = behind.get(value, values.layout.places[value].start)
                null, bit = values.layout.null_bits[value] if values.nullable else (0, 0)
                columns.append((place * beside, null * beside, int(bit)))
            self._columns = np.array(columns, np.uint64).view(np.int64).reshape(-1)
            if self._memo:
                self._forget_answers(values.texts)
            facts = self.tables.facts
            if facts:
                if facts.full:
                    facts.forget()
                    self._forget_letters()
                joined = facts.joined(events.letters, values, lambda value: made[value] if value in made else values.encoded(value))
                return self.codes.begin(joined)
        return self.codes.begin(events.letters)

    def _made(self, values: Values) -> dict[Expression, Array]:
        """Of texts, and of decimals of two words, the words in their order; by these what is kept goes on."""
        made = self._ranks.read(values)
        moved = self._ranks.moved(lambda: self._kept_words(self._entries(super(GuardedRun, self).dump())[1]))
        if moved is not None:
            self._move(moved)
        return made

    @property
    def matches(self) -> int:
        """Matches given."""
        return self._get("matches")

    def _parts(self) -> Iterable[Array | HasBytes]:
        tables = self.tables
        flat = (
            tables.first_of,
            tables.drops,
            tables.stirs,
            tables.cells_of,
            tables.rows,
            tables.operands,
            self._shapes,
            self._layered,
            self._sets.words,
            self._sets.buckets,
        )
        counts = (self._counts, self._known, self._supports, self._out_counts)
        return (self._vector, self.codes, *flat, self._key, self._order, self._levels, self._queue, *counts, *self._buffers)

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
            self._drops,
            tables.stirs,
            tables.cells_of,
            self._rows,
            tables.operands,
            self._shapes,
            self._layered,
            self._sets.words,
            self._sets.words,
            self._sets.buckets,
            self._key,
            self._order,
            self._levels,
            self._queue,
            self._counts,
            self._known,
            self._supports,
            self._places_of,
            self._chosen,
            self._firsts,
            *self._buffers,
            self._out_counts,
            self.marked,
        )

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, and give the matches that end in it as they are made, see `KernelEvaluation.chunks`."""
        found = super().chunks(events)
        return found if self.sample is None or not self._merges else self._sampled(found, self.sample)

    def _taken(self) -> list[Chunk]:
        found = self._buffered()
        if found is None:
            return []
        offsets, positions, labels, segments = found
        if self._merges:
            return [self._told_apart(Chunk(offsets, positions, labels, segments))]
        return [Chunk(offsets, positions, self._labels[labels], segments)]

    # ------------------------------------------------------------------------------------------------ what is found in several ways

    def _is_shown_twice(self) -> bool:
        """Whether SELECT may show two matches as one."""
        return self.tables.repeats

    _shows_first = True

    def _told_apart(self, chunk: Chunk) -> Chunk:
        """The matches of a chunk, labels of the automaton, as SELECT shows them, without events that it hides, each once; as many as the limit."""
        shown = self._shown[chunk.labels]
        shown[chunk.offsets[1:] - 1] = True
        if self._shows_first:
            shown[chunk.offsets[:-1]] = True
        lengths = np.add.reduceat(shown, chunk.offsets[:-1], dtype=np.int64)
        found = Chunk(offsets_of(lengths), chunk.positions[shown], self._labels[chunk.labels[shown]], chunk.segments)
        new = [number for number in range(len(found)) if self._is_new(found, number)]
        self._set("matches", self._get("matches") - len(found) + len(new))
        if self._get("enumerating") and self._get("given") and len(self._seen) == self._told:
            # Nothing more of this event is wanted.
            self._set("matches", self._get("matches") + self._get("given"))
            self._set("enumerating", 0)
            self._set("row", self._get("row") + 1)
            self._set("counted", 0)
        return found.take(np.array(new, np.int64))

    def _is_new(self, found: Chunk, number: int) -> bool:
        """Whether a match is wanted, and was not given before; the matches of a trigger may come in several chunks."""
        start, stop = found.offsets[number : number + 2].tolist()
        positions = tuple(found.positions[start:stop].tolist())
        trigger = int(found.segments[number]), positions[-1]
        if trigger != self._trigger:
            self._trigger, self._seen = trigger, Distinct()
        return len(self._seen) != self._told and self._seen.add((positions, tuple(found.labels[start:stop].tolist())))

    def _sampled(self, chunks: Iterable[Chunk], sample: int) -> Iterator[Chunk]:
        """A sample of the matches of each trigger, once all of them are listed."""
        for found in by_trigger(chunks):
            counts = np.diff(found.triggers, append=len(found))
            kept = [
                first + place
                for first, count, end in zip(found.triggers.tolist(), counts.tolist(), found.ends[found.triggers].tolist(), strict=True)
                for place in itertools.islice(spread(count, sample, end) if count > sample else range(count), self.limit)
            ]
            self._set("matches", self._get("matches") - len(found) + len(kept))
            yield found.take(np.array(kept, np.int64))

    # ------------------------------------------------------------------------------------------------ state

    def dump(self) -> dict[str, bytes]:
        """The live state of all partitions as named sections, little-endian; the evaluation is unchanged. Linear in the blocks."""
        sections = {**super().dump(), "guarded_macros": self._macros}
        cells = self._entries(sections)[1]
        if self.tables.ranked:
            sections["guarded_ranks"] = self._ranks.dump(self._kept_words(cells))
        if any(self.tables.sets):
            words = [cells[chosen, self.tables.values_at + slot] for _, slot, chosen in self._keeping(cells, self.tables.sets)]
            sections["guarded_sets"] = self._sets.dump(np.unique(np.concatenate(words)))
        return sections

    @property
    def _macros(self) -> bytes:
        """What the numbers of macro states, slots, indexes and forms in a state mean."""
        return json.dumps(
            [
                [[macro.configurations, shapes] for macro, shapes in zip(self.tables.macros, self.tables.shapes, strict=True)],
                self.tables.forms,
                *([[*self.tables.programs]] if self.tables.programs else ()),
            ]
        ).encode()

    def _restore(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        demand(bytes(sections["guarded_macros"]) == self._macros)
        super()._restore(sections, stored)
        held, macros = self.store.held_rows, len(self.tables.macros)
        if self._life is not None:
            # States of earlier builds have the last start there, which may be older than the last partial match: see `_idle`.
            self.store.words[self.store.offsets[held] + NEWEST_TIME] = self.store.plain(held)[:, LAST_TIME]
        self.store.words[self.store.offsets[held] + TABLED] = -1
        if any(self.tables.sets):
            numbers = self._sets.load(sections["guarded_sets"])
            for number, slot, places in self._set_places():
                self._renumber(places, *numbers)
                demand(self._sets.strides(self.store.words[places]) == stride_of(len(self.tables.fields[self.tables.macros[number], slot])))
        owner, places = self.store.places(held, 1)
        cells = self.store.words[places[:, None] + np.arange(self.store.layout.rings[1].width)]
        newest = self.store.plain(held)[:, GREATEST + 2 * macros :]
        check(cells, owner, self.store.lines(held, 1)[:, :2], newest, self.tables)
        if self.tables.ranked:
            self._ranks.load(sections["guarded_ranks"], self._kept_words(cells))

    def _check(self, words: Array, entries: list[Array]) -> None:
        del entries  # they are looked at in `_restore`
        macros = len(self.tables.macros)
        live, greatest = words[:, LIVE], words[:, GREATEST : GREATEST + macros]
        demand(inside(live, 1, 1 << min(macros, REST + 1)), live & 1 == 1, inside(greatest, -1, np.maximum(words[:, [POSITION]], 1)))

    def texts_in(self, sections: Mapping[str, Any]) -> Array:
        """The numbers of texts that what `dump` gave speaks of, in any order (int64)."""
        cells, found = self._entries(sections)[1], [np.zeros(0, np.int64)]
        ranked = self.tables.ranked
        for number, slot, chosen in self._keeping(cells, self.tables.interned) if not ranked else ():
            own = cells[chosen & (cells[:, CELL.index("nulls")] >> slot & 1 == 0), self.tables.values_at + slot]
            fields = self.tables.interned[number][slot]
            found.append(values_of(sections["guarded_sets"], own, fields) if slot in self.tables.sets[number] else own)
        return np.unique(np.concatenate([*found, *([numbers_in(sections["guarded_ranks"])] if ranked else [])]))

    # ------------------------------------------------------------------------------------------------ texts in their order

    def _kept_words(self, cells: Array) -> Array:
        """What cells have in the slots of texts, and of decimals of two words; and what they compute with."""
        form = cells[:, CELL.index("kind")] >> FORM_BITS
        computed = [
            cells[form == number, CELL.index("bounds") + 2 * place]
            for number, (_, tests) in enumerate(self.tables.forms)
            for place, test in enumerate(tests)
            if test & RANKED and test & APART
        ]
        for number, slot, chosen in self._keeping(cells, self.tables.interned):
            own = cells[chosen, self.tables.values_at + slot]
            fields = self.tables.interned[number][slot]
            computed.append(self._sets.values(np.unique(own), fields) if slot in self.tables.sets[number] else own)
        return np.concatenate([np.zeros(0, np.int64), *computed])

    def _move(self, words: Words) -> None:
        """Write what cells and sets keep, the ends of trees and bounds anew, as the texts have got other ranks. O(cells, and words of sets)."""
        tables, held = self.tables, self.store.held_rows
        places = self.store.places(held, 1)[1]
        at = places[:, None] + np.arange(self.store.layout.rings[1].width)
        cells = self.store.words[at]
        ends: list[tuple[Array, int]] = []
        for number, slot, chosen in self._keeping(cells, tables.interned):
            if slot in tables.sets[number]:
                continue
            value = tables.values_at + slot
            cells[chosen, value] = words.least(cells[chosen, value])
            for place, shape in enumerate(tables.shapes[number]):
                if slot in shape.slots:
                    first = tables.first_node + tables.node_width * place + NODE.index("ends")
                    ends.append((chosen, first + 2 * shape.slots.index(slot)))
        form = cells[:, CELL.index("kind")] >> FORM_BITS
        for number, (_, tests) in enumerate(tables.forms):
            ends += [(form == number, CELL.index("bounds") + 2 * place) for place, test in enumerate(tests) if test & RANKED]
        for chosen, place in ends:
            cells[chosen, place] = words.least(cells[chosen, place])
            cells[chosen, place + 1] = words.greatest(cells[chosen, place + 1])
        self.store.words[at] = cells
        if any(tables.sets):
            self._change_sets(words)
        self.store.words[self.store.offsets[held] + TABLED] = -1  # lists are found by these words, too

    # ------------------------------------------------------------------------------------------------ sets of values

    def _keeping(self, cells: Array, slots: Sequence[Iterable[int]]) -> Iterator[tuple[int, int, Array]]:
        """(macro state, slot, which cells keep it) of these slots of each macro state."""
        macro = (cells[:, CELL.index("kind")] >> MACRO_BITS & MACROS_MASK) - 1
        return ((number, slot, macro == number) for number, own in enumerate(slots) for slot in own)

    def _keep_sets(self, *, room: int = 0) -> None:
        """Forget the sets that no cell has; room: words that there are to be at least, twice as many as are kept. O(cells)."""
        places = np.concatenate([np.zeros(0, np.int64), *(own for _, _, own in self._set_places())])
        numbers = np.unique(self.store.words[places])
        self._renumber(places, numbers, self._sets.keep(numbers, room=max(room, len(places))))
        # Lists are found by the numbers of sets, too.
        self.store.words[self.store.offsets[self.store.held_rows] + TABLED] = -1

    def _change_sets(self, words: Words) -> None:
        """Write the texts in sets anew, by the fields that have such."""
        kinds: dict[Fields, list[Array]] = {}
        for number, slot, places in self._set_places():
            kinds.setdefault(self.tables.fields[self.tables.macros[number], slot], []).append(places)
        joined = {fields: np.concatenate(places) for fields, places in kinds.items()}
        numbers = [np.unique(self.store.words[places]) for places in joined.values()]
        made = self._sets.change(list(zip(numbers, joined, strict=True)), words.least)
        for places, old, new in zip(joined.values(), numbers, made, strict=True):
            self._renumber(places, old, new)

    def _set_places(self) -> list[tuple[int, int, Array]]:
        """(macro state, slot, where cells have the sets of this slot in the words of the store)."""
        places = self.store.places(self.store.held_rows, 1)[1]
        cells = self.store.words[places[:, None] + np.arange(self.tables.values_at)]
        keeping = self._keeping(cells, self.tables.sets)
        return [(number, slot, places[chosen] + self.tables.values_at + slot) for number, slot, chosen in keeping]

    def _renumber(self, places: Array, old: Array, new: Array) -> None:
        """Give the sets at these places their new numbers; raises ValueError for one that is not among the old ones, ascending."""
        where = np.searchsorted(old, self.store.words[places])
        demand(np.append(old, -1)[where] == self.store.words[places])
        self.store.words[places] = new[where]
        self._set("fresh", self._sets.fresh)
        self._set("sets_end", self._sets.end)

    def _mend_sets(self) -> None:
        """There is no room for one more: without those that no cell has, or, where that was not enough for this event, in more."""
        here = self.events, self._get("row")
        self._keep_sets(room=2 * len(self._sets.buckets) if here == self._lacked else 0)
        self._lacked = here

    def _mend_groups(self) -> None:
        """An event makes `argument` groups with different sets."""
        raise guarded_sets.too_many_sets(self._get("argument"))

    # ------------------------------------------------------------------------------------------------ questions

    def _forget_answers(self, texts: Texts) -> None:
        """Forget all answers where words mean others than before: numbers of texts that were forgotten are given again, and ranks change."""
        known_by = texts, texts.spreads, texts.forgotten
        if known_by != self._known_by:
            self._memo.forget(self._sets)
            self._known_by = known_by

    def _mend_asked(self) -> None:
        """Something was asked that is not known. What has gone on since it was asked before needs none of the answers that it had."""
        here = self.events, *map(self._get, ("row", "given", "depth"))
        assert self._known_by is not None
        numbers = self._ranks.numbers if self.tables.ranked else None
        self._memo.answer(self._sets, self._known_by[0], numbers, again=here == self._asked)
        self._asked = here

    # ------------------------------------------------------------------------------------------------ what the kernel lacks

    def _mend_letter(self) -> None:
        if len(self.codes.letters) >= self.sizes.codes:
            self._forget_letters()
        code = self.codes.learn(int(self._batch[0][self._get("row")]) & self.codes.letter_mask)
        letter, facts = self.tables.facts.apart(self.codes.letters[code])
        self.tables.learn(code, self.program.automaton.alphabet.mask_of(letter), facts)
        self._flatten()

    def _forget_letters(self) -> None:
        self.codes.forget()
        self.tables.forget()

    def _flatten(self) -> None:
        self._first_of, self._drops, self._rows = (
            table.reshape(-1) for table in (self.tables.first_of, self.tables.drops, self.tables.rows)
        )

    def _mend_stack(self) -> None:
        """An event makes `argument` cells, a match has more events than there are levels, or a queue is full: more room for all."""
        wanted = power_of_two(self._get("argument") + PUSHED)
        self._order = np.zeros(max(4 * wanted, len(self._order)), np.int64)
        for name in ("_levels", "_queue"):
            old = getattr(self, name)
            larger: Array = np.zeros(max(2 * len(old), 3 * wanted), np.int64)
            larger[: len(old)] = old
            setattr(self, name, larger)

    # ------------------------------------------------------------------------------------------------ numbers of matches

    def _numbers(self, keys: int) -> None:
        """Room for so many numbers, of which none is known, and for two more; for as many supports as cells, where they are compared."""
        self._counts: Array = np.zeros((keys + 2) * self._get("size"), np.uint64)
        self._known: Array = np.full(2 * keys, -1, np.int64)
        cells = keys // (1 + self.tables.most_shapes) if self._counting == CHOSEN else 0
        self._supports: Array = np.zeros(len(LINK) * cells, np.int64)

    def _make_buffers(self, lists: int, marks: int) -> None:
        super()._make_buffers(lists, marks)
        self._make_out_counts()

    def _make_out_counts(self) -> None:
        """Of as many triggers as there is room for, where they are counted."""
        room = len(self._buffers[3]) if self._counting == NUMBER else 0
        self._out_counts: Array = np.zeros(room * self._get("size"), np.uint64)

    def _mend_counts(self) -> None:
        """The ring of a partition has more places than there are numbers for: `argument` of them."""
        self._numbers(self._get("argument"))

    def _mend_wide(self) -> Iterable[Chunk]:
        """Some number could overflow: all of them become twice as wide."""
        found = self._taken()
        self._set("size", wider(self._get("size")))
        self._numbers(len(self._known) // 2)
        self._make_out_counts()
        return found

    def _mend_choose(self) -> None:
        """An event has more matches than a sample, or one of them has been given: how many are passed before the next."""
        assert self.sample is not None
        size = self._get("size")
        if not self._get("spread"):
            total = to_integer(self._counts[-2 * size : -size])
            self._places, self._place = spread(total, self.sample, self._get("shift") + self._get("row")), -1
        following = next(self._places, None)
        self._set("spread", 2 if following is None else 1)
        if following is not None:
            self._counts[-size:] = from_integers([following - self._place - 1], limbs=size)[0]
            self._place = following


class GuardedBeginsRun(GuardedRun):
    """The run state of a program in which any event of a match may say where it begins, by the kernel; the interface is that of `Evaluation`.

    A trigger gives one match: from where the last one begins; labels say nothing. Only one that begins later matters from then on. Costs what
    `GuardedRun` does, and O(1) per trigger. Raises what that does.
    """

    _counting = BEGUN

    def _is_shown_twice(self) -> bool:
        return False


class GuardedCountRun(GuardedRun):
    """The run state of COUNT(*) with guards by the kernel; the interface is that of `Evaluation`. Chunks are as those of `Counting`.

    Per trigger O(log n) where the entries that it asks for lie in the order of what is tested (no test, or times), else O(n), n: entries. The same
    for each cell that it reaches and that was not counted before, or whose matches have lost a start to the window since then. Numbers of K limbs:
    times K. Memory: for the partition being read, a number per cell and index. Raises what `GuardedRun` does.
    """

    _counting = NUMBER

    def _taken(self) -> list[Chunk]:
        size, counts = self._get("size"), self._out_counts
        found = self._buffered()
        if found is None:
            return []
        offsets, positions, labels, segments = found
        limbs = counts[: len(segments) * size].reshape(-1, size)
        return [Chunk(offsets, positions, labels, segments, np.pad(limbs, ((0, 0), (0, max(0, 2 - size)))))]


def _flat(words: Array) -> tuple[Array, int, int]:
    """Rows of words (uint64, (n, width)) as one array (int64), and how far apart rows are in it, and the words of a row; mostly without a copy."""
    size = words.itemsize
    if not len(words) or any(stride < size for stride in words.strides):
        return np.ascontiguousarray(words).view(np.int64).reshape(-1), words.shape[1], 1
    apart, beside = (stride // size for stride in words.strides)
    length = (len(words) - 1) * apart + (words.shape[1] - 1) * beside + 1
    # PERF: the letter stands before the values of each row, or each value in a column: to copy them would cost more than to step over the rest.
    flat = np.lib.stride_tricks.as_strided(words, (length,), (size,), writeable=False)
    return flat.view(np.int64), apart, beside
