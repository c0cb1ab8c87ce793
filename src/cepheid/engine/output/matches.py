"""The result of a recognition: matches as flat buffers, shown as objects, Arrow tables or text only when asked.

Comes in: the marks that the kernel wrote (see `marks`), the events they point to and the keys of their partitions. Goes out:
`Matches`, a sequence of `Match`. Everything is columnar; only iteration makes one Python object per match.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import no_events, one_chunk, raw
from cepheid.engine.memory.process import named_memory
from cepheid.engine.output import exact_counts, shown
from cepheid.engine.output.dataclass_rows import dataclass_rows
from cepheid.engine.output.gather import Picked, array_from, gather, numbers_of
from cepheid.engine.output.identity import PIECE_MARKS, Repeats, identities
from cepheid.engine.output.marks import MarkColumns, Ragged
from cepheid.errors import InputError, SchemaError, counted, quoted
from cepheid.logical.measures import POSITION_COLUMNS
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cepheid.automata.transition import Mark
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.marks import Marks
    from cepheid.engine.output.origins import Origin

POSITION, POSITIONS = pa.int64(), pa.large_list(pa.int64())
"""Positions as columns."""

SHOWN = 10
"""Matches that a terminal or notebook shows."""


@record(slots=False)
class Layout:
    """What all matches of one query over one schema have in common.

    variables: in output order. labels: the variables of each label number. events: the schema of the events in the output, without
    dictionaries. keys: the attributes of PARTITION BY. time: the time column, or None. measures: the fields of SELECT's measures, if it names any.
    count: whether each match is a trigger with the number of its matches; measures are then `exact_counts.COUNT_FIELDS`. named: the attributes that
    the query speaks of, in its order. written: the variables of the pattern in its order, whatever SELECT shows. waits: how long what must not follow
    a match is waited for, in steps of time from its end, or (true) from its start. derived: the attributes by which equalities partition the stream
    further. said: what tells the query from others, for the identities of its matches.
    """

    variables: tuple[str, ...]
    labels: tuple[Mark, ...]
    events: pa.Schema
    keys: tuple[str, ...] = ()
    time: str | None = None
    measures: tuple[pa.Field, ...] = ()
    count: bool = False
    named: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    waits: tuple[tuple[int, bool], ...] = ()
    derived: tuple[str, ...] = ()
    said: str = ""

    @cached_property
    def has_steps(self) -> bool:
        """Whether the steps of a time, as int64, are what its column has."""
        kind = None if self.time is None else self.events.field(self.time).type
        return kind is not None and (pa.types.is_int64(kind) or pa.types.is_timestamp(kind))

    @cached_property
    def time_fields(self) -> list[pa.Field]:
        """`start_time` and `end_time`, with the type of the time column."""
        if self.time is None:
            return []
        kind = self.events.field(self.time).type
        return [pa.field("start_time", kind), pa.field("end_time", kind)]

    def schema(self, *, events: bool = False) -> pa.Schema:
        """The schema of `Matches.to_arrow`; binding has seen to it that no two columns have one name."""
        return self.no_rows(events=events).schema

    def no_rows(self, *, events: bool = False) -> pa.Table:
        """What `Matches.to_arrow` gives of no matches."""
        return self._no_events if events else self._no_positions

    def rows_schema(self, item: pa.DataType) -> pa.Schema:
        """The schema of `Matches.to_arrow(rows=True)`; item: the type of a row number."""
        columns = [self.events.field(key) for key in self.keys] + self.time_fields + self.measure_columns
        return pa.schema(columns + [pa.field(variable, pa.large_list(item)) for variable in self.variables])

    @cached_property
    def _no_events(self) -> pa.Table:
        return no_events(self._schema(events=True))

    @cached_property
    def _no_positions(self) -> pa.Table:
        return no_events(self._schema(events=False))

    def _schema(self, *, events: bool) -> pa.Schema:
        fields = [self.events.field(key) for key in self.keys]
        fields += self.time_fields
        if not events:
            fields += [pa.field(name, POSITION) for name in POSITION_COLUMNS]
        struct = pa.list_(pa.struct(list(self.events))) if events else POSITIONS
        shown = self.measure_columns or [pa.field(variable, struct) for variable in self.variables]
        return pa.schema(fields + shown)

    @cached_property
    def measure_columns(self) -> list[pa.Field]:
        """The measures that are columns of their own: start_time() under its own name is the column that every result has."""
        taken = {field.name for field in self.time_fields}
        return [field for field in self.measures if field.name not in taken]

    @property
    def no_measures(self) -> pa.Table | None:
        """The measures of no match; None where SELECT names none."""
        return no_events(pa.schema(list(self.measures))) if self.measures and not self.count else None

    def visible(self, variable: str) -> Array:
        """For each label number whether it puts its event in the variable: bool."""
        known = self._visible.get(variable)
        return np.zeros(len(self.labels), np.bool_) if known is None else known

    @cached_property
    def _visible(self) -> dict[str, Array]:
        """`visible` of every variable that a label has."""
        shown = frozenset().union(*self.labels)
        return {variable: np.array([variable in label for label in self.labels], np.bool_) for variable in shown}

    @cached_property
    def nothing(self) -> Matches:
        """No matches."""
        return Matches.none(self)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A column's type in the output: what a dictionary holds, and not its encoding."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def python_value(value: pa.Scalar) -> Any:
    """An Arrow scalar as a Python value.

    Nanoseconds that datetime cannot hold are cut off where pandas, which can, is not installed; a time that Python cannot hold at all (after the
    year 9999) is an int, in steps of its column. Containers go through value by value.
    """
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        kind = value.type
    if pa.types.is_struct(kind):
        return {name: python_value(part) for name, part in value.items()}
    if hasattr(value, "values"):
        return None if value.values is None else [python_value(part) for part in value.values]
    if kind in (pa.timestamp("ns", getattr(kind, "tz", None)), pa.duration("ns")):
        return value.cast(pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us"), safe=False).as_py()
    return value.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).as_py()


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """A column as Python values, see `python_value`."""
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        values = [python_value(value) for value in column]
    return values


class Match:
    """One match: its first and last event, and for each variable its events.

    A position is the number of an event in its partition, from 0; without PARTITION BY in the whole stream. ``match["x"]`` is the list of the events
    of the variable x, as dicts, in order; KeyError for a variable that the match does not show. Iteration gives the names of the variables. Two
    matches are equal if their positions, keys and measures are equal.
    """

    __slots__ = ("_index", "_matches")

    def __init__(self, matches: Matches, index: int) -> None:
        self._matches = matches
        self._index = index

    @property
    def start(self) -> int:
        """The position of the first event: int."""
        return int(self._marks[0][0])

    @property
    def end(self) -> int:
        """The position of the last event: int."""
        return int(self._marks[0][-1])

    @property
    def start_time(self) -> Any:
        """The time of the first event: a datetime (in the zone of the column), date or int; None without a time column."""
        return self._matches.time_of(int(self._marks[2][0]))

    @property
    def end_time(self) -> Any:
        """The time of the last event, as `start_time`."""
        return self._matches.time_of(int(self._marks[2][-1]))

    @property
    def keys(self) -> dict[str, Any]:
        """The values of the PARTITION BY attributes, by name; empty without PARTITION BY."""
        return self._matches.keys_of(self._index)

    @property
    def variables(self) -> dict[str, tuple[int, ...]]:
        """The positions of the events of each variable, by name, ascending."""
        positions, labels, _ = self._marks
        visible = self._matches.layout.visible
        return {name: tuple(positions[visible(name)[labels]].tolist()) for name in self._matches.layout.variables}

    @property
    def rows(self) -> dict[str, tuple[int | None, ...]]:
        """The rows of the events of each variable in the input, by name, parallel to `variables`; see `Matches.rows`.

        An event that an EVENT definition has made has None. Raises InputError as `Matches.rows`.
        """
        return self._of_origin("row")

    @property
    def streams(self) -> dict[str, tuple[str | None, ...]] | None:
        """The stream that each row of `rows` is a row of, by variable; None if the input was no dict of streams."""
        return None if self._matches.known_origin.streams is None else self._of_origin("stream")

    def _of_origin(self, part: str) -> dict[str, tuple[Any, ...]]:
        """The rows, or the names of their streams, of the events of each variable."""
        _, labels, rows = self._marks
        origin, layout = self._matches.known_origin, self._matches.layout
        values = origin.values(origin.numbers_of(rows)).to_pylist()
        if origin.streams is not None:
            values = [None if value is None else value[part] for value in values]
        chosen = {name: layout.visible(name)[labels] for name in layout.variables}
        return {name: tuple(value for value, own in zip(values, mask, strict=True) if own) for name, mask in chosen.items()}

    @property
    def measures(self) -> dict[str, Any]:
        """The values of SELECT's measures, by name; for COUNT(*) the exact number, however large. Empty without measures."""
        if self._matches.counts is not None:
            return {"count": exact_counts.to_integer(self._matches.counts[self._index])}
        table = self._matches.measures
        return {} if table is None else {name: python_value(table[name][self._index]) for name in table.column_names}

    def __getitem__(self, variable: str) -> list[dict[str, Any]]:
        if variable not in self._matches.layout.variables:
            raise KeyError(f"the match has no variable `{variable}`: it has {quoted(self._matches.layout.variables)}")
        _, labels, every = self._marks
        rows = every[self._matches.layout.visible(variable)[labels]]
        events = self._matches.events.take(pa.array(rows))
        columns = {name: python_values(events[name]) for name in events.column_names}
        return [{name: values[place] for name, values in columns.items()} for place in range(len(rows))]

    def __contains__(self, variable: object) -> bool:
        return variable in self._matches.layout.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self._matches.layout.variables)

    @property
    def _marks(self) -> tuple[Array, Array, Array]:
        """Positions, labels and rows of its events."""
        return self._matches.marks.match(self._index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Match) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.start, self.end, tuple(self.variables.items())))

    def _key(self) -> tuple[Any, ...]:
        return self.start, self.end, self.variables, self.keys, self.measures

    def __repr__(self) -> str:
        parts = {**self.keys, "start": self.start, "end": self.end, **(self.measures or self.variables)}
        return (
            f"Match({', '.join(f'{name}={shown.digits(value) if type(value) is int else repr(value)}' for name, value in parts.items())})"
        )


@record(slots=False, eq=False)
class Matches(Collection[Match]):
    """The matches of a query, in the order of the events that end them: an immutable sequence of `Match`.

    ``len``, indexes and slices work as for a list; a slice is again `Matches`. `to_arrow`, `to_pandas` and `to_pylist` give one row per match, and
    so do ``pandas.DataFrame(matches)``, ``polars.DataFrame(matches)`` and ``FROM matches`` of DuckDB.
    `null_keys` is the number of events that were dropped because of a NULL in their PARTITION BY key. `warnings` are lines of text about the events
    of `Query.run`: the event types that the query names and no event has. The data is stored in columns; a `Match` is made when it is looked at.

    layout: what all matches have in common. marks: the events of each match, as positions and rows of `events`, with their labels; `offsets`,
    `positions` and `labels` are the same as arrays, see `Ragged`. source: the events. partitions: for each match the row of `keys` with its
    key (integers); None without PARTITION BY. measures: a row per match. waiting: what `undecided` gives; None for no matches. counts: for COUNT(*),
    uint64, (n, limbs), least limb first: how many matches the one event of each "match" ends (see `engine.output.exact_counts`). times: the columns
    `start_time` and `end_time`, if they are known without the events. origin: where the rows of `events` come from, which `rows` says; None: unknown.
    name: of the query among several.
    """

    layout: Layout
    marks: Marks
    source: pa.Table | Picked = field(compare=False)
    partitions: Array | None = None
    keys: pa.Table | None = None
    measures: pa.Table | None = None
    null_keys: int = 0
    waiting: Matches | None = None
    counts: Array | None = None
    warnings: tuple[str, ...] = ()
    times: tuple[pa.ChunkedArray | pa.Array | None, pa.ChunkedArray | pa.Array | None] = (None, None)
    origin: Origin | None = field(default=None, compare=False)
    name: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Where nothing was counted, no one has said so."""
        if self.layout.count and self.counts is None:
            object.__setattr__(self, "counts", exact_counts.no_counts())

    @classmethod
    def none(cls, layout: Layout, events: pa.Table | None = None, *, null_keys: int = 0) -> Matches:
        """No matches."""
        nothing = np.zeros(0, np.int64)
        events = no_events(layout.events) if events is None else events
        keys = events.select(list(layout.keys)).slice(0, 0) if layout.keys else None
        partitions = nothing if layout.keys else None
        marks = Ragged(np.zeros(1, np.int64), nothing, nothing.astype(np.uint16), nothing)
        return cls(layout, marks, events, partitions, keys, layout.no_measures, null_keys)

    def __len__(self) -> int:
        return len(self.marks)

    @property
    def events(self) -> pa.Table:
        """The events that the rows of `marks` are rows of, and others."""
        return self.source.table if isinstance(self.source, Picked) else self.source

    @property
    def undecided(self) -> Matches:
        """The matches that are not decided: what NOT FOLLOWED BY forbids may still follow them. Without NOT FOLLOWED BY there are none."""
        return replace(Matches.none(self.layout, self.events), origin=self.origin) if self.waiting is None else self.waiting

    @overload
    def __getitem__(self, index: int) -> Match: ...

    @overload
    def __getitem__(self, index: slice) -> Matches: ...

    def __getitem__(self, index: int | slice) -> Match | Matches:
        if isinstance(index, slice):
            return self._sliced(index)
        if isinstance(index, str):
            raise TypeError(
                f"matches have numbers, and each has variables: matches[0][{index!r}], or matches.to_pandas()[{index!r}] for all"
            )
        position = operator.index(index)
        position += len(self) if position < 0 else 0
        if not 0 <= position < len(self):
            raise IndexError(f"there is no match {index}: there are {len(self)}")
        return Match(self, position)

    def _sliced(self, index: slice) -> Matches:
        start, stop, step = index.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        stop = max(start, stop)
        return replace(
            self,
            marks=self.marks.sliced(start, stop),
            times=(None, None),
            partitions=None if self.partitions is None else self.partitions[start:stop],
            measures=None if self.measures is None else self.measures.slice(start, stop - start),
            counts=None if self.counts is None else self.counts[start:stop],
        )

    def take(self, indices: Array) -> Matches:
        """The matches with these indexes (integers from 0), in this order."""
        return replace(
            self,
            marks=self.marks.take(indices),
            times=(None, None),
            partitions=None if self.partitions is None else self.partitions[indices],
            measures=None if self.measures is None else self.measures.take(pa.array(indices)),
            counts=None if self.counts is None else self.counts[indices],
        )

    def __iter__(self) -> Iterator[Match]:
        return (Match(self, index) for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matches) and len(self) == len(other) and all(map(Match.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]  # equality looks at every match

    # All that a Sequence has but its name: pandas and polars would take each match of a Sequence for a row of their own kind.
    __contains__ = Sequence.__contains__
    __reversed__ = Sequence.__reversed__
    index = Sequence.index
    count = Sequence.count

    # ------------------------------------------------------------------------------------------------------------------- columns

    @property
    def offsets(self) -> Array:
        """See `Ragged`."""
        return self.marks.offsets

    @property
    def positions(self) -> Array:
        """See `Ragged`."""
        return self.marks.positions

    @property
    def labels(self) -> Array:
        """See `Ragged`."""
        return self.marks.labels

    @property
    def rows(self) -> Array:
        """For each mark the row of its event in the input, from 0 (int64): as it was given, before it was sorted, merged or cut by `until`.

        Of {stream name: events} it is the row in the event's own stream, see `streams`. -1: an EVENT definition has made the event. Raises
        InputError where the input is not known as a whole: for matches that a recognizer gives.
        """
        origin = self.known_origin
        numbers = origin.numbers_of(self.marks.rows)
        return numbers if origin.streams is None else origin.streams.split(numbers)[1]

    @property
    def streams(self) -> pa.DictionaryArray | None:
        """For each mark the name of the stream that its event comes from (dictionary<int32, string>, NULL for events that definitions have made).

        None if the input was no dict of streams. Raises InputError as `rows`.
        """
        origin = self.known_origin
        if origin.streams is None:
            return None
        which, rows = origin.streams.split(origin.numbers_of(self.marks.rows))
        return pa.DictionaryArray.from_arrays(pa.array(which, mask=rows < 0), pa.array(origin.streams.names, pa.string()))

    @property
    def known_origin(self) -> Origin:
        """Where the events come from; raises InputError where it is not known."""
        if self.origin is None:
            raise InputError(
                "the rows of these events in the input are not known",
                help=(
                    "q.run and q.batches know them; a recognizer does not, nor engine='reference' of a query with EVENT definitions",
                    "give the events a column with a number of your own, and look at it: match['x'][0]['number']",
                ),
            )
        return self.origin

    def with_origin(self, origin: Origin) -> Matches:
        """The same, of events that come from there, with those that wait."""
        return replace(self, origin=origin, waiting=None if self.waiting is None else replace(self.waiting, origin=origin))

    @property
    def start_rows(self) -> Array:
        """For each match the row of `events` that starts it."""
        return self.marks.start_rows

    @property
    def end_rows(self) -> Array:
        """For each match the row of `events` that ends it."""
        return self.marks.end_rows

    def time_of(self, row: int) -> Any:
        """The time of an event as a Python value; None without a time column."""
        name = self.layout.time
        return None if name is None else python_value(self.source.column(name)[row])

    def keys_of(self, index: int) -> dict[str, Any]:
        """The key values of a match's partition."""
        if self.partitions is None or self.keys is None:
            return {}
        row = int(self.partitions[index])
        return {name: python_value(self.keys[name][row]) for name in self.keys.column_names}

    @named_memory()
    def to_arrow(self, *, events: bool = False, rows: bool = False, match_id: str | None = None) -> pa.Table:
        """The matches as a pyarrow.Table with one row per match.

        Its columns are the PARTITION BY attributes; `start_time` and `end_time` (type of the time column, if there is one); `start_position` and
        `end_position` (int64); and per variable the positions of its events (large_list<int64>). events: give per variable the events themselves
        (list of structs) instead of their positions, and no positions of the match; this is also what Spark gives. If SELECT has measures, they stand
        in place of the variables. COUNT(*) has one row per event that ends matches, with `count`, decimal128(38, 0), and `count_overflow`, bool: if
        it has more than 38 digits, `count` is NULL and `count_overflow` is true; `Match.measures` has the exact number.

        rows: give per variable the rows of its events in the input (large_list<int64>; of several streams large_list<struct<stream: string, row:
        int64>>; NULL in it for events that definitions have made), behind the measures, and no positions. Raises InputError as `rows`, and
        for events and rows at once.

        match_id: the name of a first column that has the identity of each match (string): the same as in a column of this name on Spark, in batch and
        in a stream, and after restarts. Of a recognizer all matches that end at one time should come together: give it a lateness= (0 is enough).
        Raises InputError without a time column, and SchemaError for columns that have no hash or this name already.

        Linear in the events that are shown; without a copy for a variable that has every event of every match.
        """
        if match_id is not None:
            return self.with_identities(self.to_arrow(events=events, rows=rows), match_id, Repeats())
        if rows:
            return self._with_rows(events=events)
        if not len(self):
            return self.layout.no_rows(events=events)
        shown = MarkColumns(self.marks)
        columns = self._keys() + self._times(shown)
        if not events:
            columns += [array_from(shown.start_positions, POSITION), array_from(shown.end_positions, POSITION)]
        if self.layout.measures:
            columns += self._measures()
        elif events:
            columns += [self._events_of(*shown.rows_of(self.layout.visible(name))) for name in self.layout.variables]
        else:
            found = [shown.positions_of(self.layout.visible(name)) for name in self.layout.variables]
            columns += [_lists_of(offsets, array_from(values, POSITION)) for offsets, values in found]
        return pa.table(columns, schema=self.layout.schema(events=events)) if columns else without_columns(len(self))

    def with_identities(self, table: pa.Table, name: str, repeats: Repeats) -> pa.Table:
        """Rows of these matches with a column of their identities in front; repeats: the matches that came before. Raises as `to_arrow`."""
        if self.layout.time is None:
            raise InputError("match_id= needs the times of the matches, and the events have no time column", help="name it with time=")
        if name in table.column_names:
            raise SchemaError(f"the output would have two columns named `{name}`", help="give another name: match_id=..")
        return table.add_column(0, pa.field(name, pa.string()), pa.chunked_array([*self.identities(repeats)], pa.string()))

    def identities(self, repeats: Repeats) -> Iterator[pa.Array]:
        """The identity of each match (string), in pieces; repeats: what came before, which is forgotten where nothing that comes can equal it."""
        start, offsets = 0, self.offsets
        in_order = not any(from_start for _, from_start in self.layout.waits)
        while start < len(self):
            stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + PIECE_MARKS, "right")) - 1)
            part = self[start:stop]
            table = part.to_arrow(events=True)
            yield part.identified(dict(zip(table.column_names, table.columns, strict=True)), repeats)
            if in_order:
                repeats.end(raw(_plain(one_chunk(table["end_time"]))))
            start = stop

    def identified(self, columns: Mapping[str, pa.ChunkedArray], repeats: Repeats) -> pa.Array:
        """The identities of these matches, given the columns of `to_arrow(events=True)`."""
        rows = pa.array(self.end_rows) if self.layout.derived else None
        # All events of a match agree in these.
        derived = {f"={name}": _plain(self.events.column(name)).take(rows) for name in self.layout.derived}
        return identities({**columns, **derived}, f"query {self.layout.said}" if self.name is None else f"name {self.name}", repeats)

    def _keys(self) -> list[Any]:
        """The columns of PARTITION BY, of at least one match."""
        if not self.layout.keys or self.keys is None or self.partitions is None:
            return []
        return [_plain(_taken(self.keys[key], [self.partitions], len(self))) for key in self.layout.keys]

    def _times(self, shown: MarkColumns) -> list[Any]:
        """The columns `start_time` and `end_time`."""
        if self.layout.time is None:
            return []
        start, end = self.times
        times = self.source.column(self.layout.time) if start is None or end is None else None
        return [
            _taken(times, shown.start_rows, len(self)) if start is None else start,
            _taken(times, shown.end_rows, len(self)) if end is None else end,
        ]

    def _measures(self) -> list[Any]:
        """The columns of SELECT's measures, or of COUNT(*)."""
        if self.counts is not None:
            return list(exact_counts.columns(self.counts))
        return [] if self.measures is None else [self.measures.column(field.name) for field in self.layout.measure_columns]

    def _with_rows(self, *, events: bool) -> pa.Table:
        """`to_arrow(rows=True)`."""
        if events:
            raise InputError("to_arrow gives the events, or their rows", help="leave out events=True or rows=True")
        origin = self.known_origin
        schema = self.layout.rows_schema(origin.item)
        if not len(self):
            return no_events(schema)
        shown = MarkColumns(self.marks)
        columns = [*self._keys(), *self._times(shown), *self._measures()]
        for variable in self.layout.variables:
            offsets, rows = shown.rows_of(self.layout.visible(variable))
            columns.append(_lists_of(offsets, origin.values(origin.numbers_of(rows))))
        return pa.table(columns, schema=schema) if columns else without_columns(len(self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:  # noqa: FBT001 - numpy's protocol
        """The rows of `to_arrow` as objects, see `dataclass_rows`: numpy has no other table of columns of many types."""
        if copy is False or dtype not in {None, np.dtype(object)}:
            raise ValueError("matches become an array of objects, which is made anew")
        table = self.to_arrow()
        return dataclass_rows(table.column_names, [python_values(column) for column in table.columns], len(self))

    def _events_of(self, offsets: Array, rows: Array) -> pa.ChunkedArray:
        """A list column of structs, in chunks that 32-bit offsets can address."""
        kind = pa.list_(pa.struct(list(self.layout.events)))
        chunks = []
        start = 0
        while start < len(self):
            stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + LIST_ROWS, "right")) - 1)
            taken = self.events.take(pa.array(rows[offsets[start] : offsets[stop]]))
            arrays = [one_chunk(_plain(taken[name])) for name in self.layout.events.names]
            struct = pa.Array.from_buffers(kind.value_type, int(offsets[stop] - offsets[start]), [None], children=arrays)
            lists = pa.array((offsets[start : stop + 1] - offsets[start]).astype(np.int32))
            chunks.append(pa.ListArray.from_arrays(lists, struct))
            start = stop
        return pa.chunked_array(chunks, kind)

    @named_memory()
    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows of `to_arrow` as a list of dicts."""
        table = self.to_arrow()
        columns = [python_values(column) for column in table.columns]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]

    @named_memory()
    def to_pandas(self, *, events: bool = False, rows: bool = False, match_id: str | None = None) -> Any:
        """The table of `to_arrow` as a pandas DataFrame; needs pandas. Takes what that takes; rows=True gives what `DataFrame.iloc` takes."""
        return self.to_arrow(events=events, rows=rows, match_id=match_id).to_pandas()

    # ------------------------------------------------------------------------------------------------------------------- showing

    def _listing(self) -> shown.Listing:
        """The first matches as a table: keys, times (without a time column: positions), and measures, or the events of each variable."""
        first = self[:SHOWN]
        matches = list(first)
        columns = {name: [shown.value_text(match.keys[name]) for match in matches] for name in self.layout.keys}
        fields = [*map(self.layout.events.field, self.layout.keys), *self.layout.measures]
        right = {field.name for field in fields if pa.types.is_primitive(field.type) and not pa.types.is_temporal(field.type)}
        whole = frozenset({"start_time", "end_time", *(field.name for field in fields if pa.types.is_temporal(field.type))})
        if self.layout.time is None:
            ends = [[str(match.start) for match in matches], [str(match.end) for match in matches]]
            columns |= dict(zip(POSITION_COLUMNS, ends, strict=True))
        else:
            times = shown.time_texts([match.start_time for match in matches] + [match.end_time for match in matches])
            columns |= {"start_time": times[: len(matches)], "end_time": times[len(matches) :]}
        if self.layout.measures:
            measures = [match.measures for match in matches]
            names = ["count"] if self.layout.count else [field.name for field in self.layout.measure_columns]
            columns |= {name: [shown.value_text(each[name]) for each in measures] for name in names}
        else:
            columns |= self._events_columns(len(matches))
        return shown.Listing(self._title(), columns, max(len(self) - SHOWN, 0), frozenset({*right, *POSITION_COLUMNS}), whole)

    def _events_columns(self, count: int) -> dict[str, list[str]]:
        """By variable the first and the last event of each of the first matches as text: the time, then the values."""
        rows = {name: [self._rows_of(number, name) for number in range(count)] for name in self.layout.variables}
        ends = dict.fromkeys(int(each[place]) for column in rows.values() for each in column if len(each) for place in (0, -1))
        times = ["" for _ in ends] if self.layout.time is None else shown.clock_texts([self.time_of(row) for row in ends])
        texts = {row: (time, self.event_of(row)) for row, time in zip(ends, times, strict=True)}

        def text(of: Array) -> str:
            return shown.events_text(*texts[int(of[0])], *texts[int(of[-1])], len(of)) if len(of) else shown.NO_EVENTS

        return {name: [text(of) for of in column] for name, column in rows.items()}

    def _rows_of(self, index: int, variable: str) -> Array:
        """The rows of the events of a variable in one match."""
        _, labels, every = self.marks.match(index)
        return every[self.layout.visible(variable)[labels]]

    def event_of(self, row: int) -> dict[str, Any]:
        """What a person reads of an event, by its row: the attributes that tell it from others (`shown.attributes_shown`), as Python values."""
        names = shown.attributes_shown(self.layout.events.names, self.layout.keys, self.layout.time, self.layout.named)
        return {name: python_value(self.events.column(name)[row]) for name in names}

    def _title(self) -> list[str]:
        """The lines before the matches."""
        count = counted(len(self), "match", "matches")
        dropped = f" (events without a key: {self.null_keys:,})" if self.null_keys else ""
        undecided = f" (undecided: {len(self.waiting):,})" if self.waiting else ""
        return [count + dropped + undecided, *(f"warning: {warning}" for warning in self.warnings)]

    def __repr__(self) -> str:
        return str(self._listing())

    def _repr_html_(self) -> str:
        return self._listing().to_html()


def without_columns(rows: int) -> pa.Table:
    """A table of so many rows, and no columns; `pa.table` of none has no rows."""
    nothing = pa.Array.from_buffers(pa.struct([]), rows, [None], children=[])
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(nothing)])


def _taken(column: pa.ChunkedArray, slices: Iterable[Array], count: int) -> pa.ChunkedArray | pa.Array:
    """The values of a column in some rows; slices: the rows, count of them."""
    if len(column) == count == 1:
        return column
    if column.num_chunks == 1 and (values := numbers_of(column.chunk(0))) is not None:
        return gather(values, slices, count, column.type)
    return column.take(pa.array(np.concatenate(list(slices))))


def _lists_of(offsets: Array, values: pa.Array) -> pa.Array:
    """Lists of 64-bit offsets, without a copy."""
    return pa.Array.from_buffers(pa.large_list(values.type), len(offsets) - 1, [None, pa.py_buffer(offsets)], children=[values])


LIST_ROWS = 2**31 - 1
"""Most events in one chunk of a list column."""


def concatenate(layout: Layout, parts: Sequence[Matches], *, null_keys: int = 0) -> Matches:
    """The matches of several results of one query as one; events that no match shows are left behind."""
    parts = [compact(part) for part in parts if len(part)]
    if not parts:
        return Matches.none(layout, null_keys=null_keys)
    shift = _shifts([len(part.marks.rows) for part in parts])
    event_shift = _shifts([part.events.num_rows for part in parts])
    key_shift = _shifts([0 if part.keys is None else part.keys.num_rows for part in parts])
    pairs = list(zip(parts, shift, strict=True))
    partitions: Array | None = None
    keys: pa.Table | None = None
    if layout.keys:
        partitions = np.concatenate(
            [part.partitions + step for part, step in zip(parts, key_shift, strict=True) if part.partitions is not None]
        )
        keys = pa.concat_tables([part.keys for part in parts if part.keys is not None])
    measures = [part.measures for part in parts if part.measures is not None]
    marks = Ragged(
        np.concatenate([np.zeros(1, np.int64), *(part.offsets[1:] + step for part, step in pairs)]),
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.marks.rows + step for part, step in zip(parts, event_shift, strict=True)]),
    )
    return Matches(
        layout,
        marks,
        pa.concat_tables([part.events for part in parts]),
        partitions,
        keys,
        pa.concat_tables(measures) if measures else None,
        null_keys,
        counts=exact_counts.joined([part.counts for part in parts if part.counts is not None]) if layout.count else None,
    )


def _shifts(sizes: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(sizes).tolist()][:-1]


def compact(part: Matches) -> Matches:
    """The same matches with only the events that they mark and the keys that they have."""
    used, rows = np.unique(part.marks.rows, return_inverse=True)
    partitions, keys = part.partitions, part.keys
    if partitions is not None and keys is not None:
        kept, partitions = np.unique(partitions, return_inverse=True)
        keys = keys.take(pa.array(kept))
    events = part.events.take(pa.array(used)).combine_chunks()
    marks = Ragged(part.offsets, part.positions, part.labels, rows.astype(np.int64, copy=False))
    return Matches(part.layout, marks, events, partitions, keys, part.measures, counts=part.counts)
