"""The state of many keys cut into parts by key, and parts joined to a state again, so that a few keys can be read and written alone.

Comes in: the sections of the states of some queries over the same partitions (`spark.tasks.states.QueryStates.dump`), and the number of the part of
each key. Goes out: bytes of each part; and sections, as `dump` gives them, of the keys of some parts. Nothing is evaluated: the sections are tables
of numbers with an owner each, and a part has the rows of its keys. What is of no key (`Form.common`) is in no part.

A part is a header, deflated numbers, texts and record batches, and a checksum. Its numbers are the columns of all groups (`packed`), so that many
parts are cut and joined by a few operations on arrays. What stands in a part is checked as far as it is followed here; all else is checked where the
joined sections are loaded.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.absences.absence import ALWAYS
from cepheid.engine.evaluations.choosing.consuming import HAD, Consuming
from cepheid.engine.evaluations.choosing.consuming import SECTION as CONSUMING
from cepheid.engine.evaluations.choosing.guided import Guided
from cepheid.engine.letters.encoded import Texts, is_interned
from cepheid.engine.memory.blocks import Blocks
from cepheid.engine.memory.checks import demand, inside, numbers
from cepheid.engine.memory.container import damaged, macro_bytes, macro_states, table_of
from cepheid.engine.memory.pools import ragged
from cepheid.engine.memory.stored import Stored
from cepheid.engine.run.flat_columns import FlatColumns
from cepheid.engine.run.packed import packed, unpacked
from cepheid.language.syntax import Consumption
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.automata import Program
    from cepheid.engine.evaluations.absences.absence import AbsenceState
    from cepheid.engine.evaluations.absences.waiting_matches import WaitingMatches
    from cepheid.engine.evaluations.base import AnyEvaluation
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.query_state import QueryState

VERSION, WAITING = 4, 5
"""The format of a part, and of one in which something may wait; those before were of no release."""

_TIME = struct.Struct("<q")
_CHECKSUM = struct.Struct("<I")
_BATCH = struct.Struct("<I")  # bytes of a record batch

LEVEL, WINDOW, MEMORY = 6, 12, 5
"""How numbers are deflated: a part is short, so a small window and few tables, which are cheap to make. A fourth less than Arrow's codecs give."""

MOST_INFLATED, MOST_NUMBERS = 1 << 11, 1 << 15
"""So many bytes at most become one when they are deflated; and so many numbers at most are in one byte of a part, in columns of one number."""

GRAPH = (
    "counters",
    "slots",
    "starts_position",
    "starts_time",
    "list_macro",
    "list_max",
    "list_length",
    "list_entries",
    "macros",
    "cells",
    "labels",
)
"""The sections of a match graph."""

BLOCKS = ("counters", "rows", "words", "rings", "entries")
"""The sections of evaluations whose blocks say all."""

COUNTED = ("counters", "slots", "positions", "times", "letters")
"""The sections of an evaluation that counts within a window: it reads the events of the window again."""

CONSTANT = ("guarded_macros",)
"""Sections that each state of a query has alike."""

TEXTS = ("text_numbers", "texts")
"""Sections of the texts that a query compares: the numbers of all of them, which are of no key."""

KEYS = "keys"


@record(slots=False)
class Group:
    """A table of numbers that a part has. width: columns, with the one that `refers` adds.

    refers: the group whose rows the first column speaks of, by their numbers inside the part; None: there is no such column. table: the schema of
    values that stand beside the numbers, a row each.
    """

    width: int
    refers: str | None = None
    table: pa.Schema | None = None


@record(slots=False)
class Rows:
    """The rows of a group. owners: int64, the key of each. columns: int64, without the one that refers. refers: int64, to rows of all keys."""

    owners: Array
    columns: tuple[Array, ...]
    refers: Array | None = None
    table: pa.Table | None = None


@record(slots=False)
class Header:
    """What a part says without being read: how many keys it has, and the greatest time of their events.

    size: bytes of its content, which begin at `start`. due: when somebody has been told to look at it, ALWAYS: never.
    """

    keys: int
    size: int
    latest: int
    due: int
    start: int

    @classmethod
    def bytes(cls, keys: int, size: int, latest: int, due: int | None) -> bytes:
        """A header; due: None where nothing can wait."""
        head = bytearray([VERSION if due is None else WAITING])
        for number in (keys, size):
            while number >> 7:
                head.append(number & 0x7F | 0x80)
                number >>= 7  # noqa: PLW2901 - the digits of base 128
            head.append(number)
        return bytes(head) + b"".join(map(_TIME.pack, (latest,) if due is None else (latest, due)))


def header(data: bytes) -> Header:
    """The header of a part; raises SnapshotError where it is none, cut off or damaged. O(n)."""
    if len(data) <= _CHECKSUM.size:
        raise damaged("a page is cut off")
    if data[0] not in {VERSION, WAITING}:
        raise damaged(f"a page has format {data[0]}, and this version of Cepheid reads {VERSION} and {WAITING}")
    if zlib.crc32(memoryview(data)[: -_CHECKSUM.size]) != _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0]:
        raise damaged("the checksum of a page is wrong")
    at, found = 1, []
    try:
        for _ in range(2):
            number = shift = 0
            while data[at] >> 7 and shift < 63:
                number |= (data[at] & 0x7F) << shift
                at, shift = at + 1, shift + 7
            found.append(number | (data[at] & 0x7F) << shift)
            at += 1
        (latest,) = _TIME.unpack_from(data, at)
        (due,) = (ALWAYS,) if data[0] == VERSION else _TIME.unpack_from(data, at + _TIME.size)
    except (IndexError, struct.error):
        raise damaged("a page is cut off") from None
    keys, size = found
    return Header(keys, size, latest, due, at + _TIME.size * (1 if data[0] == VERSION else 2))


def deflated(content: bytes) -> bytes:
    """Fewer bytes."""
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -WINDOW, MEMORY)
    return deflate.compress(content) + deflate.flush()


def inflated(data: bytes, size: int) -> bytes:
    """The inverse of `deflated`; size: bytes. Raises SnapshotError for what it has not given."""
    if size > MOST_INFLATED * len(data):  # no memory is taken for what cannot be
        raise damaged(f"{len(data)} compressed bytes cannot become {size} bytes")
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflate.decompress(data, size + 1)
    except zlib.error as error:
        raise damaged(str(error)) from None
    if len(content) != size or not inflate.eof or inflate.unused_data:
        raise damaged("the numbers of a page are cut off")
    return content


class Form:
    """What the state of some queries over the same partitions consists of, key by key.

    keys: schema of the keys. states: of the queries, fresh or not. tables: the queries that share a table of events, table by table. lagged: schema
    of lagged events, None without. common: the names of the sections that are of no key. waits: whether something of a key may wait for a time.
    """

    def __init__(self, keys: pa.Schema, states: Sequence[QueryState], tables: Sequence[Sequence[int]], lagged: pa.Schema | None) -> None:
        self.groups: dict[str, Group] = {}
        self._flat: dict[str, FlatColumns] = {}
        self._add(KEYS, Group(1), keys)
        self.common: list[str] = []
        self._parts: list[_Part] = []
        for number, state in enumerate(states):
            prefix = f"{number}/"
            self._take(_part(prefix, state.evaluation, state.compiled.program))
            if isinstance(state.evaluation, Consuming):
                self._take(_Table(prefix, CONSUMING, 3))
                if state.evaluation.bound is not None:
                    self._take(_Beside(prefix, HAD, CONSUMING, len(state.evaluation.bound.needs)))
            if state.remembers_triggers:
                self._take(_Table(prefix, "having_last", 2, tall=False))
            self.common += [f"{prefix}{name}" for name in TEXTS if state.compiled.valued]
            if state.absences is not None:
                self._take(waits := _Absences(prefix, state.absences, state.waiting))
                if waits.schema.names:
                    self._add(f"{prefix}held_events", Group(1, refers=f"{prefix}held"), waits.schema)
                for place, (absence, run) in enumerate(zip(state.absences.absences, state.absences.runs, strict=True)):
                    self._take(_part(f"{prefix}absence{place}/", run, absence.program))
        self.waits = any(state.absences is not None for state in states)
        self._tables = tables
        for table, queries in enumerate(tables):
            self._add(f"places {table}", Group(4, refers=KEYS), states[queries[0]].payload.schema)
            if len(queries) > 1:
                self.groups |= {f"{query}/payload_rows": Group(1, refers=f"places {table}") for query in queries}
        self._lagged = lagged
        if lagged is not None:
            self._add("lag_places", Group(2, refers=KEYS), lagged)
        self._widths = np.array([group.width for group in self.groups.values()], np.int64)
        self._schemas = {name: group.table for name, group in self.groups.items() if group.table is not None}
        self._empty = [
            (f"events {table}", states[queries[0]].payload.schema)
            for table, queries in enumerate(tables)
            if not states[queries[0]].payload.schema.names
        ]

    def _take(self, part: _Part) -> None:
        self._parts.append(part)
        self.groups |= part.groups
        self.common += [part.prefix + name for name in part.common]

    def _add(self, name: str, group: Group, schema: pa.Schema) -> None:
        """A group with a table: its flat columns are among the numbers, and each has a group of the rows that are NULL."""
        if not schema.names:
            self.groups[name] = group
            return
        flat = self._flat[name] = FlatColumns(schema)
        width = group.width + len(flat.flat)
        self.groups[name] = Group(width, refers=group.refers, table=flat.others if flat.others.names else None)
        self.groups |= {_nulls(name, place): Group(1, refers=name) for place in range(len(flat.flat))}

    # ------------------------------------------------------------------------------------------------ sections -> rows -> sections

    def _rows(self, sections: Mapping[str, Any]) -> tuple[dict[str, Rows], pa.Table]:
        """The rows of each group, and the keys."""
        keys = table_of(sections["keys"])
        named, seen = numbers(sections, "seen").reshape(2, -1)
        every = np.arange(len(named))
        stored = Stored(named, every, seen)
        rows = {KEYS: Rows(every, (seen,), table=keys)}
        for part in self._parts:
            rows |= part.rows(sections, stored)
        for table, queries in enumerate(self._tables):
            slots, *columns = numbers(sections, f"places {table}").reshape(4, -1)
            owners = stored.rows(slots)
            events = table_of(sections[f"events {table}"]) if f"places {table}" in self._flat else None
            rows[f"places {table}"] = Rows(owners, tuple(columns), owners, events)
            for query in queries if len(queries) > 1 else ():
                own = numbers(sections, f"{query}/payload_rows", "<i4").astype(np.int64)
                rows[f"{query}/payload_rows"] = Rows(owners[own], (), own)
        if self._lagged is not None:
            slots, positions = numbers(sections, "lag_places").reshape(2, -1)
            owners = stored.rows(slots)
            rows["lag_places"] = Rows(owners, (positions,), owners, table_of(sections["lag_events"]))
        for name, flat in self._flat.items():
            plain = rows[name]
            assert plain.table is not None
            whole = plain.table.combine_chunks()
            rows[name] = Rows(plain.owners, plain.columns + flat.numbers(whole), plain.refers, whole)
            for place, empty in enumerate(flat.nulls(whole)):
                rows[_nulls(name, place)] = Rows(plain.owners[empty], (), empty)
        return rows, keys

    def _sections(self, columns: Mapping[str, list[Array]], tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        (seen,) = columns[KEYS]
        sections: dict[str, Any] = {"keys": tables[KEYS], "seen": np.stack([np.arange(len(seen)), seen]).astype("<i8")}
        for part in self._parts:
            sections |= part.sections(columns, tables)
        for table, queries in enumerate(self._tables):
            name = f"places {table}"
            sections[name] = np.stack(columns[name]).astype("<i8")
            if name in tables:
                sections[f"events {table}"] = tables[name]
            for query in queries if len(queries) > 1 else ():
                sections[f"{query}/payload_rows"] = columns[f"{query}/payload_rows"][0].astype("<i4")
        sections |= {name: schema.empty_table() for name, schema in self._empty}
        if self._lagged is not None:
            sections["lag_places"] = np.stack(columns["lag_places"]).astype("<i8")
            sections["lag_events"] = tables["lag_places"]
        return sections

    # ------------------------------------------------------------------------------------------------ cutting

    def cut(
        self,
        sections: Mapping[str, Any],
        part_of: Callable[[pa.Table], Array],
        *,
        latest: int,
        told: Callable[[Array, Array], Array] = lambda numbers, deadlines: deadlines,  # noqa: ARG005 - its parameters are said
    ) -> Iterator[tuple[int, bytes]]:
        """The parts of a state that have keys, ascending, as bytes.

        sections: as `dump` gives them. part_of: the number of the part of each of some keys (int64). latest: the greatest time so far. told: where
        something `waits`: it is given the numbers of the parts, and when the first of what waits in each is decided (ALWAYS: nothing waits), and says
        what stands in them as `due`. Linear, and some 50 us for each part.
        """
        rows, keys = self._rows(sections)
        used, part = np.unique(part_of(keys), return_inverse=True)
        due: list[int] = told(used, self._deadlines(rows, part, len(used))).tolist() if self.waits else []
        counts: Array = np.zeros((len(used), len(self.groups)), np.int64)
        nothing: Array = np.zeros(0, np.int64)
        places: dict[str, tuple[Array, Array]] = {}  # of each group: the order of its rows, and their numbers in their parts
        for number, name in enumerate(self.groups):
            owner = part[rows[name].owners]
            if not len(owner):  # PERF: few values are NULL
                places[name] = nothing, nothing
                continue
            order = np.argsort(owner, kind="stable")
            count = np.bincount(owner, minlength=len(used))
            inside_part: Array = np.empty(len(order), np.int64)
            inside_part[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
            places[name] = order, inside_part
            counts[:, number] = count
        every: list[Array] = []
        for name, group in self.groups.items():
            own, (order, _) = rows[name], places[name]
            columns = own.columns
            if group.refers is not None:
                assert own.refers is not None
                columns = (places[group.refers][1][own.refers], *columns)
            assert len(columns) == group.width
            every += [column[order] for column in columns]
        words = np.concatenate([nothing, *every])
        words[self._by_column(counts)] = words.copy()
        tables, texts = [], []
        for number, name in enumerate(self.groups):
            if name in self._flat and (self._flat[name].texts or name in self._schemas):
                table = rows[name].table
                assert table is not None
                taken = table.take(pa.array(places[name][0])).combine_chunks()
                stops = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[:, number])])
                texts += [(offsets[stops].tolist(), data) for offsets, data in self._flat[name].bytes_of(taken)]
                if name in self._schemas:
                    tables.append((taken.select(self._schemas[name].names), stops.tolist()))
        for place, (number, content) in enumerate(zip(used.tolist(), packed(counts, words, self._widths), strict=True)):
            pieces = [content, *(bytes(data[offsets[place] : offsets[place + 1]]) for offsets, data in texts)]
            for table, stops in tables:
                batch = _batch(table.slice(stops[place], stops[place + 1] - stops[place]))
                pieces += [_BATCH.pack(len(batch)), batch]
            body = b"".join(pieces)
            data = Header.bytes(int(counts[place, 0]), len(body), latest, due[place] if self.waits else None) + deflated(body)
            yield number, data + _CHECKSUM.pack(zlib.crc32(data))

    def _by_column(self, counts: Array) -> Array:
        """Where each number of each column, of each part, stands among the columns of each part (int64); counts: the rows of each part's groups."""
        lengths = np.repeat(counts, self._widths, axis=1)
        starts = np.cumsum(lengths).reshape(lengths.shape) - lengths
        return ragged(starts.T.ravel(), lengths.T.ravel())[1]

    def _deadlines(self, rows: Mapping[str, Rows], part: Array, count: int) -> Array:
        """When the first of what waits in each part is decided (int64), ALWAYS where nothing does. part: of each key."""
        least: Array = np.full(count, ALWAYS, np.int64)
        for each in self._parts:
            if isinstance(each, _Absences):
                for owners, deadlines in each.deadlines(rows):
                    np.minimum.at(least, part[owners], deadlines)
        return least

    # ------------------------------------------------------------------------------------------------ joining

    def join(self, parts: Sequence[bytes]) -> tuple[dict[str, Any], pa.Table, Array]:
        """The state of the keys of some parts, and which part each key is of: sections but for those of `common`, keys, places in `parts` (int64).

        Raises SnapshotError where a part is damaged, and ValueError and what Arrow raises where it does not fit. Linear.
        """
        heads = [header(data) for data in parts]
        bodies = [inflated(data[head.start : -_CHECKSUM.size], head.size) for data, head in zip(parts, heads, strict=True)]
        counts, words, sizes = unpacked(bodies, self._widths, np.array([MOST_NUMBERS * len(data) for data in parts], np.int64))
        demand(counts[:, 0] == np.array([head.keys for head in heads], np.int64))
        words = words[self._by_column(counts)]
        columns: dict[str, list[Array]] = {}
        firsts, rows = np.cumsum(counts, axis=0) - counts, counts.sum(axis=0).tolist()
        numbered = {name: number for number, name in enumerate(self.groups)}
        at = 0
        for number, (name, group) in enumerate(self.groups.items()):
            found = [words[at + place * rows[number] : at + (place + 1) * rows[number]] for place in range(group.width)]
            at += group.width * rows[number]
            if group.refers is not None and rows[number]:
                target = numbered[group.refers]
                owner = np.repeat(np.arange(len(parts)), counts[:, number])
                demand(inside(found[0], 0, counts[owner, target]))
                found[0] = found[0] + firsts[owner, target]
            columns[name] = found
        behind = [body[size:] for body, size in zip(bodies, sizes, strict=True)]
        tables = self._tables_of(behind, columns, {name: counts[:, numbered[name]] for name in self._flat})
        return self._sections(columns, tables), tables[KEYS], np.repeat(np.arange(len(parts)), counts[:, 0])

    def _tables_of(self, bodies: Sequence[bytes], columns: dict[str, list[Array]], counts: Mapping[str, Array]) -> dict[str, pa.Table]:
        """The tables of some parts, whose numbers are taken out of `columns`; counts: of the rows of each part."""
        at: Array = np.zeros(len(bodies), np.int64)
        texts: dict[str, list[bytes]] = {}
        for name, flat in self._flat.items():
            found = []
            for lengths in columns[name][len(columns[name]) - flat.texts :] if flat.texts else ():
                demand(inside(lengths, 0, 1 + max(map(len, bodies), default=0)))
                each = np.bincount(np.repeat(np.arange(len(bodies)), counts[name]), lengths, minlength=len(bodies)).astype(np.int64)
                stops = (at + each).tolist()
                found.append(b"".join(body[start:stop] for body, start, stop in zip(bodies, at.tolist(), stops, strict=True)))
                at = at + each
            texts[name] = found
        batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in self._schemas}
        for body, start in zip(bodies, at.tolist(), strict=True):
            place = start
            for name, schema in self._schemas.items():
                (size,) = _BATCH.unpack_from(body, place)
                batches[name].append(_batch_of(body[place + _BATCH.size : place + _BATCH.size + size], schema))
                place += _BATCH.size + size
            if place != len(body):
                raise damaged("a page has other bytes after its numbers")
        tables = {}
        for name, flat in self._flat.items():
            others = None
            if name in self._schemas:
                demand(counts[name] == np.array([batch.num_rows for batch in batches[name]], np.int64))
                others = pa.Table.from_batches(batches[name], schema=self._schemas[name]).combine_chunks()
            width = len(flat.flat)
            own, numbers_of = columns[name], columns[name][len(columns[name]) - width :] if width else []
            columns[name] = own[: len(own) - width]
            nulls = [columns[_nulls(name, place)][0] for place in range(width)]
            tables[name] = flat.table(numbers_of, nulls, texts[name], others)
        return tables


def _nulls(name: str, place: int) -> str:
    return f"{name} NULL {place}"


def _batch(table: pa.Table) -> bytes:
    found = table.to_batches()
    batch = found[0] if found else pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in table.schema.types], schema=table.schema)
    return bytes(batch.serialize().to_pybytes())


def _batch_of(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return pa.ipc.read_record_batch(pa.py_buffer(data), schema)
    except EOFError:
        raise damaged("a table of a page is cut off") from None


# ---------------------------------------------------------------------------------------------------- evaluations


def obstacle(compiled: Compiled) -> str | None:
    """What of a query keeps its state from being cut by keys; None: nothing."""
    if not compiled.keys:
        return "no PARTITION BY"
    if compiled.layers:
        return "EVENT definitions"
    if compiled.consume is Consumption.ANY:
        return "CONSUME BY ANY"
    evaluation = compiled.evaluation(texts=Texts(), judge=lambda chunks, _: chunks)
    if isinstance(evaluation, Guided) and evaluation.guide is not None:
        return "CONSUME BY with HAVING and a sum"
    others = [absence.evaluation(texts=Texts()) for absence in compiled.absences]
    if all(map(_cuts, (evaluation, *others))):
        return None
    if any(map(is_interned, (value for program in compiled.programs for value in program.values))):
        return "the order of texts, or sets of them"
    return "the evaluation of NOT FOLLOWED BY" if _cuts(evaluation) else f"its evaluation ({compiled.method.name})"


def _cuts(evaluation: AnyEvaluation) -> bool:
    """Whether the sections of an evaluation are known here."""
    if isinstance(evaluation, Consuming):
        return _cuts(evaluation.evaluation)
    return {*evaluation.dump()} - {*CONSTANT} in ({*GRAPH}, {*BLOCKS}, {*COUNTED})


def _part(prefix: str, evaluation: AnyEvaluation, program: Program) -> _Part:
    """The sections of an evaluation, but for what `Consuming` has beside that inside."""
    if isinstance(evaluation, Consuming):
        return _part(prefix, evaluation.evaluation, program)
    sections = evaluation.dump()
    if "cells" in sections:
        return _Graph(prefix, program)
    return _Counted(prefix) if "slots" in sections else _Blocks(prefix, evaluation)


class _Part(Protocol):
    """Some sections of a query, whose names begin with `prefix`. groups: the tables that they are. common: those of no key, without the prefix."""

    prefix: str
    groups: dict[str, Group]
    common: tuple[str, ...]

    def rows(self, sections: Mapping[str, Any], stored: Stored) -> dict[str, Rows]:
        """The rows of each group; stored: the keys, by their numbers."""

    def sections(self, columns: Mapping[str, list[Array]], tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        """The sections of these columns, and of the tables beside them; raises ValueError where they do not fit."""


class _Graph:
    """The sections of a match graph."""

    def __init__(self, prefix: str, program: Program) -> None:
        self.prefix = prefix
        self.states = program.states
        self.words = -(-self.states // 64)
        widths = {"slots": 7, "starts": 2, "lists": self.words + 2, "entries": 1, "cells": 5}
        self.groups = {prefix + name: Group(width, refers=KEYS if name == "slots" else None) for name, width in widths.items()}
        self.common: tuple[str, ...] = ("counters",)

    def rows(self, sections: Mapping[str, Any], stored: Stored) -> dict[str, Rows]:
        """The rows of each group."""

        def section(name: str, kind: str) -> Array:
            return numbers(sections, self.prefix + name, kind).astype(np.int64)

        named, *slots = section("slots", "<i8").reshape(-1, 7).T
        owners = stored.rows(named)
        starts, lists, cells = slots[3:]
        of_list = np.repeat(owners, lists)
        lengths = section("list_length", "<i4")
        masks = sections[self.prefix + "macros"]
        macros = macro_states(bytes(masks[4:]), *struct.unpack_from("<I", masks), states=self.states)
        spelled = np.frombuffer(b"".join(macro.to_bytes(8 * self.words, "little") for macro in macros), "<i8").reshape(-1, self.words)
        found = {
            "slots": Rows(owners, tuple(slots), owners),
            "starts": Rows(np.repeat(owners, starts), (section("starts_position", "<i4"), section("starts_time", "<i8"))),
            "lists": Rows(of_list, (*spelled[section("list_macro", "<i4")].T, section("list_max", "<i4"), lengths)),
            "entries": Rows(np.repeat(of_list, lengths), (section("list_entries", "<i4"),)),
            "cells": Rows(np.repeat(owners, cells), (*section("cells", "<i4").reshape(4, -1), section("labels", "<u2"))),
        }
        return {self.prefix + name: rows for name, rows in found.items()}

    def sections(self, columns: Mapping[str, list[Array]], tables: Mapping[str, pa.Table]) -> dict[str, Any]:  # noqa: ARG002 - as `_Part`
        """The sections of these columns; raises ValueError for macro states that there are not."""
        slots, starts, lists, entries, cells = (columns[self.prefix + name] for name in ("slots", "starts", "lists", "entries", "cells"))
        *spelled, most, lengths = lists
        masks, numbered = np.unique(np.stack(spelled, axis=1), axis=0, return_inverse=True)
        macros = [int.from_bytes(mask.astype("<i8").tobytes(), "little") for mask in masks]
        width, packed = macro_bytes(macros)
        macro_states(packed, width, states=self.states)
        for narrow, below in ((starts[0], 31), (most, 31), (lengths, 31), (entries[0], 31), (cells[4], 16)):
            demand(inside(narrow, 0, 1 << below))
        demand(inside(np.stack(cells[:4]), -(1 << 31), 1 << 31))
        found = {
            "slots": np.stack(slots, axis=1).astype("<i8"),
            "starts_position": starts[0].astype("<i4"),
            "starts_time": starts[1].astype("<i8"),
            "list_macro": numbered.reshape(-1).astype("<i4"),
            "list_max": most.astype("<i4"),
            "list_length": lengths.astype("<i4"),
            "list_entries": entries[0].astype("<i4"),
            "macros": struct.pack("<I", width) + packed,
            "cells": np.stack(cells[:4]).astype("<i4"),
            "labels": cells[4].astype("<u2"),
        }
        return {self.prefix + name: section for name, section in found.items()}


class _Counted:
    """The sections of an evaluation that counts."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.groups = {prefix + "slots": Group(4, refers=KEYS), prefix + "events": Group(3)}
        self.common: tuple[str, ...] = ("counters",)

    def rows(self, sections: Mapping[str, Any], stored: Stored) -> dict[str, Rows]:
        """The rows of each group."""
        named, *columns = numbers(sections, self.prefix + "slots", width=4).T
        owners = stored.rows(named)
        events = tuple(numbers(sections, self.prefix + name) for name in ("positions", "times", "letters"))
        return {
            self.prefix + "slots": Rows(owners, tuple(columns), owners),
            self.prefix + "events": Rows(np.repeat(owners, columns[2]), events),
        }

    def sections(self, columns: Mapping[str, list[Array]], tables: Mapping[str, pa.Table]) -> dict[str, Any]:  # noqa: ARG002 - as `_Part`
        """The sections of these columns."""
        slots = np.stack(columns[self.prefix + "slots"], axis=1).astype("<i8").tobytes()
        events = zip(("positions", "times", "letters"), columns[self.prefix + "events"], strict=True)
        return {self.prefix + "slots": slots} | {self.prefix + name: column.astype("<i8").tobytes() for name, column in events}


class _Blocks:
    """The sections of blocks."""

    def __init__(self, prefix: str, evaluation: AnyEvaluation) -> None:
        self.prefix = prefix
        layout = _store(evaluation).layout
        self.directory, self.rings = layout.directory, layout.rings
        self.groups = {prefix + "blocks": Group(1 + self.directory + 2 * len(self.rings), refers=KEYS)}
        self.groups |= {f"{prefix}ring {number}": Group(ring.width) for number, ring in enumerate(self.rings)}
        self.common: tuple[str, ...] = ("counters", *(name for name in CONSTANT if name in evaluation.dump()))

    def rows(self, sections: Mapping[str, Any], stored: Stored) -> dict[str, Rows]:
        """The rows of each group."""
        owners = stored.rows(numbers(sections, self.prefix + "rows") - 1)
        words = numbers(sections, self.prefix + "words").reshape(len(owners), self.directory)
        rings = numbers(sections, self.prefix + "rings").reshape(len(owners), 2 * len(self.rings))
        found = {"blocks": Rows(owners, (*words.T, *rings.T), owners)}
        entries = numbers(sections, self.prefix + "entries")
        at = 0
        for number, ring in enumerate(self.rings):
            counts = rings[:, 2 * number + 1] - rings[:, 2 * number]
            stop = at + int(counts.sum()) * ring.width
            found[f"ring {number}"] = Rows(np.repeat(owners, counts), tuple(entries[at:stop].reshape(-1, ring.width).T))
            at = stop
        return {self.prefix + name: rows for name, rows in found.items()}

    def sections(self, columns: Mapping[str, list[Array]], tables: Mapping[str, pa.Table]) -> dict[str, Any]:  # noqa: ARG002 - as `_Part`
        """The sections of these columns."""
        owners, *own = columns[self.prefix + "blocks"]
        words, rings = own[: self.directory], own[self.directory :]
        entries = [np.stack(columns[f"{self.prefix}ring {number}"], axis=1).ravel() for number in range(len(self.rings))]
        found = {
            "rows": owners + 1,
            "words": np.stack(words, axis=1),
            "rings": np.stack(rings, axis=1) if rings else np.zeros(0, np.int64),
            "entries": np.concatenate([np.zeros(0, np.int64), *entries]),
        }
        return {self.prefix + name: section.astype("<i8").tobytes() for name, section in found.items()}


class _Table:
    """A section of integers in lines, of which the first of each is a key. width: numbers of a line. tall: whether it is stored line by line."""

    def __init__(self, prefix: str, name: str, width: int, *, tall: bool = True) -> None:
        self.prefix, self.name = prefix, prefix + name
        self.width, self.tall = width, tall
        self.groups = {self.name: Group(width, refers=KEYS)}
        self.common: tuple[str, ...] = ()

    def rows(self, sections: Mapping[str, Any], stored: Stored) -> dict[str, Rows]:
        """The rows of the one group."""
        section = numbers(sections, self.name)
        slots, *columns = section.reshape(-1, self.width).T if self.tall else section.reshape(self.width, -1)
        owners = stored.rows(slots)
        return {self.name: Rows(owners, tuple(columns), owners)}

    def sections(self, columns: Mapping[str, list[Array]], tables: Mapping[str, pa.Table]) -> dict[str, Any]:  # noqa: ARG002 - as `_Part`
        """The section of these columns."""
        return {self.name: np.stack(columns[self.name], axis=1 if self.tall else 0).astype("<i8").tobytes()}


class _Beside:
    """A section of doubles, so many for each line of another one."""

    def __init__(self, prefix: str, name: str, lines: str, width: int) -> None:
        self.prefix, self.name, self.lines = prefix, prefix + name, prefix + lines
        self.width = width
        self.groups = {self.name: Group(1 + width, refers=self.lines)}
        self.common: tuple[str, ...] = ()

    def rows(self, sections: Mapping[str, Any], stored: Stored) -> dict[str, Rows]:
        """The rows of the one group: their bits."""
        lines = numbers(sections, self.lines, width=3)
        # An older state has none, as in `Consuming.load`.
        bits = numbers(sections, self.name, width=self.width) if self.name in sections else np.ones((len(lines), self.width)).view(np.int64)
        return {self.name: Rows(stored.rows(lines[:, 0]), tuple(bits.T), np.arange(len(lines)))}

    def sections(self, columns: Mapping[str, list[Array]], tables: Mapping[str, pa.Table]) -> dict[str, Any]:  # noqa: ARG002 - as `_Part`
        """The section of these columns."""
        of, *bits = columns[self.name]
        demand(of == np.arange(len(columns[self.lines][0])))
        return {self.name: np.stack(bits, axis=1).astype("<i8").tobytes()}


class _Absences:
    """The sections of absences, and of matches that wait for them."""

    def __init__(self, prefix: str, absences: AbsenceState, waiting: WaitingMatches | None) -> None:
        self.prefix = prefix
        self.schema, self.delay, self.words = absences.schema, absences.delay, absences.words
        self.waiting = waiting
        self.ends = [f"absence{number}" for number in range(len(absences.absences))]
        self.groups = {prefix + "held": Group(3 + self.words, refers=KEYS)}
        self.groups |= {prefix + name: Group(3, refers=KEYS) for name in self.ends}
        self.begun = absences.begins_earlier
        if self.begun:
            self.groups[prefix + "absence_begun"] = Group(4, refers=KEYS)
        if waiting is not None:
            self.groups |= {prefix + "waiting": Group(5, refers=KEYS), prefix + "waiting_marks": Group(2)}
        self.common: tuple[str, ...] = ("released",)

    def rows(self, sections: Mapping[str, Any], stored: Stored) -> dict[str, Rows]:
        """The rows of each group."""

        def section(name: str, width: int) -> Array:
            return numbers(sections, self.prefix + name).reshape(width, -1)

        *words, times, slots, shown = section("held", 3 + self.words)
        owners = stored.rows(slots)
        found = {"held": Rows(owners, (*words, times, shown), owners)}
        if self.schema.names:
            known = np.flatnonzero(shown)
            found["held_events"] = Rows(owners[known], (), known, table_of(sections[f"{self.prefix}held_events"]))
        for name in self.ends:
            slots, *columns = section(name, 3)
            owners = stored.rows(slots)
            found[name] = Rows(owners, tuple(columns), owners)
        if self.begun:
            slots, *columns = numbers(sections, f"{self.prefix}absence_begun", width=4).T
            owners = stored.rows(slots)
            found["absence_begun"] = Rows(owners, tuple(columns), owners)
        if self.waiting is not None:
            slots, *columns = section("waiting", 5)
            owners = stored.rows(slots)
            found["waiting"] = Rows(owners, tuple(columns), owners)
            found["waiting_marks"] = Rows(np.repeat(owners, columns[0]), tuple(section("waiting_marks", 2)))
        return {self.prefix + name: rows for name, rows in found.items()}

    def sections(self, columns: Mapping[str, list[Array]], tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        """The sections of these columns. Events wait in the order of their times, those of a key in their own."""
        owners, *words, times, shown = columns[self.prefix + "held"]
        order = np.argsort(times, kind="stable")
        found: dict[str, Any] = {"held": np.stack([*words, times, owners, shown])[:, order]}
        events = self.schema.empty_table()
        if self.schema.names:
            rows = columns[self.prefix + "held_events"][0]
            demand(inside(shown, 0, 2), len(rows) == np.count_nonzero(shown), shown[rows] == 1)
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            events = tables[self.prefix + "held_events"].take(pa.array(np.argsort(place[rows], kind="stable")))
        found |= {name: np.stack(columns[self.prefix + name]) for name in self.ends}
        if self.begun:
            found["absence_begun"] = np.stack(columns[f"{self.prefix}absence_begun"], axis=1)
        if self.waiting is not None:
            found |= {name: np.stack(columns[self.prefix + name]) for name in ("waiting", "waiting_marks")}
        return {self.prefix + name: section.astype("<i8").tobytes() for name, section in found.items()} | {
            f"{self.prefix}held_events": events
        }

    def deadlines(self, rows: Mapping[str, Rows]) -> Iterator[tuple[Array, Array]]:
        """When what waits is decided, with the keys that it is of."""
        held = rows[self.prefix + "held"]
        yield held.owners, held.columns[self.words] + self.delay
        if self.waiting is not None:
            waiting = rows[self.prefix + "waiting"]
            _, starts, ends, _ = waiting.columns
            yield waiting.owners, self.waiting.deadlines(starts, ends)


def _store(evaluation: Any) -> Blocks:
    """The blocks of an evaluation, below what wraps it."""
    while not isinstance(getattr(evaluation, "store", None), Blocks):
        evaluation = evaluation.evaluation
    store: Blocks = evaluation.store
    return store
