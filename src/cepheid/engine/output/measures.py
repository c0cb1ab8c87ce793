"""The measures of SELECT, in columns: from the marks of the matches to one row per match.

Comes in: bound measures and `Matches`, of which rows, labels and events are read. Goes out: a table with one column per measure, of
the type that binding gave it. An aggregate becomes a leaf column (gathered from the events, then reduced per match), what is computed from
aggregates is `values`' business; nothing here is Python per match, but for decimals in arithmetic and averages beyond 53 bits.

The values are those of the definition: a NULL (and NaN) is left out of min, max, sum and avg, which are NULL where nothing is left; first,
last and only give what stands there, NULL of an empty variable; a sum is exact and NULL where it overflows its type; sums of doubles go from
the first position to the last, one addition after the other, so that they do not depend on how the input was cut.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.values import OPERATIONS, Column, evaluate, in_arrow, plain, raw, read, validity
from cepheid.engine.output import sums
from cepheid.engine.output.gather import Picked, gather, numbers_of
from cepheid.engine.output.marks import Even, Ragged
from cepheid.engine.output.sums import VariableEvents
from cepheid.logical.plan import AGGREGATES, Apply, Field, Literal, Measure, Time, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cepheid.engine.letters.values import Value
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.marks import Marks
    from cepheid.engine.output.matches import Matches
    from cepheid.logical.plan import Expression

BLOCK_MARKS = 1 << 18
"""Marks that are worked on at once: their columns stay in the cache, and fit Arrow's 32-bit offsets."""

FEW = 16
"""Where there are fewer matches than one for so many events, what would look at all of a column does not pay."""

SPARSE = 16
"""Where the matches show fewer events than one in so many of a table in several pieces, these are taken out before anything is put together."""

SOON_JOINED = 1 << 14
"""Events of which it does not pay to take some out."""

DENSE = 8
"""Places for each value up to which values are told apart by a place for each, and not by their order."""


def measured(measures: Sequence[Measure], matches: Matches) -> Matches:
    """The matches with the measures of their query; as they are where it has none."""
    if not measures:
        return matches
    found = compute(measures, matches)
    return dataclasses.replace(matches, measures=found, times=_times(measures, matches, found))


def _times(measures: Sequence[Measure], matches: Matches, found: pa.Table) -> tuple[pa.ChunkedArray | None, pa.ChunkedArray | None]:
    """The measures that are the times of the first and of the last event of each match; None: none is."""
    time, even = matches.layout.time, matches.marks.even
    if time is None or even is None:
        return None, None
    at: dict[int, pa.ChunkedArray] = {}
    for measure, column in zip(measures, found.columns, strict=True):
        leaf = _value_of_one(measure)
        if leaf is not None and (isinstance(leaf, Time) or leaf.path == (time,)) and column.type == matches.source.schema.field(time).type:
            places = even.places(matches.layout.visible(leaf.variable))
            at |= {places[0]: column} if len(places) == 1 else {}
    return at.get(0), at.get(len(even.alike) - 1)


def attributes_of(measures: Iterable[Measure], time: str | None) -> frozenset[str]:
    """The input columns that measures read; time: the time column."""
    names: set[str] = set()
    for node in (node for measure in measures for node in walk(measure.expression)):
        if isinstance(node, Field) and node.path:
            names.add(node.path[0])
        elif (isinstance(node, Time) or (isinstance(node, Apply) and node.operator in TIMES)) and time is not None:
            names.add(time)
    return frozenset(names)


def compute(measures: Sequence[Measure], matches: Matches) -> pa.Table:
    """As `Computation`, once."""
    return Computation(measures, matches.layout.time)(matches)


class Computation:
    """Measures, ready to be computed for one result after the other. time: the time column."""

    def __init__(self, measures: Sequence[Measure], time: str | None) -> None:
        self._measures = tuple(measures)
        self._time = time
        self._schema = pa.schema([pa.field(measure.name, measure.type) for measure in measures])
        self._attributes = attributes_of(measures, time)
        self._leaves = [_value_of_one(measure) for measure in measures]

    def __call__(self, matches: Matches) -> pa.Table:
        """The measures of all matches: one row per match, one column per measure, named and typed as bound.

        matches.events has the columns of `attributes_of`. Never raises for what the rows hold. Linear in the marks (text and decimals under min
        and max: sorting the distinct values of a block), plus putting the columns together where the events lie in several pieces.
        """
        events, marks = _dense(matches, self._attributes)
        source, visible = _Source(events, self._time), matches.layout.visible
        chunks: list[list[pa.Array]] = []
        others: list[tuple[list[pa.Array], Measure, Field | Time | None]] = []
        for measure, leaf in zip(self._measures, self._leaves, strict=True):
            taken = None if leaf is None else _gathered(measure, leaf, source, marks, visible)
            chunks.append([] if taken is None else [taken])
            if taken is None:
                others.append((chunks[-1], measure, leaf))
        for block in _blocks(source, marks, visible) if others else ():
            with np.errstate(all="ignore"):
                for column, measure, leaf in others:
                    taken = None if leaf is None else block.taken(measure, leaf)
                    column.append(array_of(evaluate(measure.expression, block), measure.type, block.count) if taken is None else taken)
        columns = [
            column[0] if len(column) == 1 else pa.chunked_array(column, field.type)
            for column, field in zip(chunks, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)


def _gathered(measure: Measure, leaf: Field | Time, source: _Source, marks: Marks, visible: Callable[[str], Array]) -> pa.Array | None:
    """A measure that is a value of the one event that every match has in a variable, in one go; None: it is another one.

    PERF: most measures are such, and need neither sets nor offsets.
    """
    if not isinstance(marks, Even) or len(marks) * FEW < source.rows:
        return None
    places = marks.places(visible(leaf.variable))
    if len(places) != 1:
        return None
    some = source.picked(leaf, marks.row_blocks[0][places[0]])
    if some is not None:
        return some if some.type == measure.type and not (pa.types.is_floating(some.type) and numbers_of(some) is None) else None
    array = source.array(leaf)
    values = numbers_of(array) if array.type == measure.type else None
    return None if values is None else gather(values, (rows[places[0]] for _, _, rows, _ in marks.slices()), len(marks), measure.type)


def _value_of_one(measure: Measure) -> Field | Time | None:
    """The leaf of a measure that is the value of one event, of which nothing is made."""
    node = measure.expression
    if isinstance(node, Apply) and node.operator in ("only", "first", "last") and len(node.arguments) == 1:
        return _argument(node)
    return None


def _blocks(source: _Source, marks: Marks, visible: Callable[[str], Array]) -> Iterator[_Block]:
    """The matches, some at a time."""
    if isinstance(marks, Even):
        for _, _, rows, _ in marks.slices():
            yield _EvenBlock(source, visible, marks, rows)
    else:
        offsets = marks.offsets
        for start, stop in _ranges(offsets):
            piece = slice(int(offsets[start]), int(offsets[stop]))
            yield _RaggedBlock(source, visible, offsets[start : stop + 1] - piece.start, marks.rows[piece], marks.labels[piece])


def _ranges(offsets: Array) -> Iterator[tuple[int, int]]:
    """Ranges of matches with at most `BLOCK_MARKS` marks, or one match."""
    start, count = 0, len(offsets) - 1
    while start < count:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + BLOCK_MARKS, "right")) - 1)
        yield start, stop
        start = stop


def _dense(matches: Matches, names: frozenset[str]) -> tuple[pa.Table | Picked, Marks]:
    """The columns that are read, and the marks with their rows in them."""
    marks: Marks = matches.marks if matches.marks.even is None else matches.marks.even
    if isinstance(matches.source, Picked):
        return matches.source, marks
    events = matches.events.select([name for name in matches.events.column_names if name in names])
    pieces = max((column.num_chunks for column in events.columns), default=1)
    if pieces <= 1 or not len(marks):
        return events, marks
    # PERF: matches of a stream show its newest events.
    first, last = marks.row_range
    events = events.slice(first, last - first + 1)
    if max(marks.size * SPARSE, SOON_JOINED) >= events.num_rows:
        return events, marks.with_rows(lambda rows: rows - first)
    used = np.unique(marks.rows)
    events = pa.table([_picked(column, used - first) for column in events.columns], events.column_names)
    return events, marks.with_rows(lambda rows: np.searchsorted(used, rows))


def _picked(column: pa.ChunkedArray, rows: Array) -> pa.ChunkedArray:
    """Some rows (ascending) of a column; O(pieces + rows), where Arrow's own take would put the whole column together."""
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    cuts = [0, *np.searchsorted(rows, ends).tolist()]
    pieces = [
        chunk.take(pa.array(rows[start:stop] - (end - len(chunk))))
        for chunk, end, start, stop in zip(column.chunks, ends.tolist(), cuts[:-1], cuts[1:], strict=True)
        if start < stop
    ]
    return pa.chunked_array(pieces, column.type)


# ------------------------------------------------------------------------------------------------------------------- what is read


class _Source:
    """The columns of the events, each as one array, put together when first asked for."""

    def __init__(self, events: pa.Table | Picked, time: str | None) -> None:
        self._events = events
        self._time = time
        self._arrays: dict[tuple[str, ...], pa.Array] = {}

    @property
    def rows(self) -> int:
        """How many events there are."""
        return int(self._events.num_rows)

    def array(self, leaf: Field | Time) -> pa.Array:
        """The values of a leaf, for all events; a NULL struct has NULL fields."""
        return self._at(self._path(leaf))

    def picked(self, leaf: Field | Time, rows: Array) -> pa.Array | None:
        """The values of a leaf for some events, where they need not be made for all."""
        path = self._path(leaf)
        return self._events.values(path[0], rows.tolist()) if len(path) == 1 and isinstance(self._events, Picked) else None

    def _path(self, leaf: Field | Time) -> tuple[str, ...]:
        return leaf.path if isinstance(leaf, Field) else self._time_path

    def times(self, rows: Array) -> Array:
        """The times of some events, int64."""
        values: Array = raw(plain(self._at(self._time_path)))[rows].astype(np.int64, copy=False)
        return values

    @property
    def time_type(self) -> pa.DataType:
        """The type of the time column."""
        return self._at(self._time_path).type

    @property
    def _time_path(self) -> tuple[str, ...]:
        assert self._time is not None, "binding refuses times where there is no time column"
        return (self._time,)

    def _at(self, path: tuple[str, ...]) -> pa.Array:
        known = self._arrays.get(path)
        if known is None:
            chunks = self._events.column(path[0]).chunks
            for name in path[1:]:
                chunks = [pc.struct_field(plain(chunk), name) for chunk in chunks]
            known = self._arrays[path] = chunks[0] if len(chunks) == 1 else _joined(chunks)
        return known


def _joined(chunks: list[pa.Array]) -> pa.Array:
    """Several pieces of a column as one array; text and binaries in 64-bit offsets, for there may be much of them."""
    if pa.types.is_dictionary(chunks[0].type):
        chunks = [plain(chunk) for chunk in chunks]
    large = LARGE.get(chunks[0].type)
    return pa.concat_arrays(chunks if large is None else [chunk.cast(large) for chunk in chunks])


LARGE: Mapping[pa.DataType, pa.DataType] = MappingProxyType({pa.string(): pa.large_string(), pa.binary(): pa.large_binary()})


class _Block(ABC):
    """Some matches, as a source of columns for `values.evaluate`: aggregates are its leaves, computed once each.

    count: of the matches. start_rows, end_rows: where the first and last event of each stand.
    """

    def __init__(self, source: _Source, visible: Callable[[str], Array], count: int, start_rows: Array, end_rows: Array) -> None:
        self.source = source
        self.count = count
        self.start_rows = start_rows
        self.end_rows = end_rows
        self._visible = visible
        self._marks: dict[str, VariableEvents] = {}
        self._gathered: dict[Expression, Value] = {}
        self._aggregates: dict[Expression, Value] = {}

    @abstractmethod
    def _of(self, variable: str) -> VariableEvents:
        """The events of a variable."""

    def known(self, expression: Expression) -> Value | None:
        """The value of an aggregate; None for every other operator."""
        if not isinstance(expression, Apply) or expression.operator not in AGGREGATES:
            return None
        value = self._aggregates.get(expression)
        if value is None:
            value = self._aggregates[expression] = AGGREGATIONS[expression.operator](self, expression)
        return value

    def field(self, field: Field) -> Value:
        """Attributes stand below aggregates alone."""
        raise KeyError(field)

    def time(self, time: Time) -> Value:
        """Times stand below aggregates alone."""
        raise KeyError(time)

    def marks(self, variable: str) -> VariableEvents:
        """The events of a variable."""
        known = self._marks.get(variable)
        if known is None:
            known = self._marks[variable] = self._of(variable)
        return known

    def taken(self, measure: Measure, leaf: Field | Time) -> pa.Array | None:
        """A measure that is the value of one event, where nothing is to be made of it; None: it is another one."""
        marks, array = self.marks(leaf.variable), self.source.array(leaf)
        same = marks.single and array.type == measure.type and not pa.types.is_floating(array.type)
        return array.take(pa.array(marks.rows)) if same else None

    def gathered(self, leaf: Field | Time) -> Value:
        """The values of all events of a variable, in its canonical type."""
        value = self._gathered.get(leaf)
        if value is None:
            rows = self.marks(leaf.variable).rows
            value = self._gathered[leaf] = canonical_values(self.source.array(leaf).take(pa.array(rows)), leaf)
        return value


class _RaggedBlock(_Block):
    """Some matches of any shape; labels, rows: of their marks."""

    def __init__(self, source: _Source, visible: Callable[[str], Array], offsets: Array, rows: Array, labels: Array) -> None:
        super().__init__(source, visible, len(offsets) - 1, rows[offsets[:-1]], rows[offsets[1:] - 1])
        self._ragged = Ragged(offsets, rows, labels, rows)

    def _of(self, variable: str) -> VariableEvents:
        offsets, rows = self._ragged.chosen(self._visible(variable), self._ragged.rows)
        return VariableEvents(rows, offsets)


class _EvenBlock(_Block):
    """Some matches that all have the same labels; rows: (marks of each match, matches)."""

    def __init__(self, source: _Source, visible: Callable[[str], Array], marks: Even, rows: Array) -> None:
        super().__init__(source, visible, rows.shape[1], rows[0], rows[-1])
        self._even = marks
        self._rows = rows

    def _of(self, variable: str) -> VariableEvents:
        places = self._even.places(self._visible(variable))
        rows = self._rows[places[0]] if len(places) == 1 else self._rows[places].T.reshape(-1)
        return VariableEvents(rows, np.arange(self.count + 1) * len(places))


def canonical_values(array: pa.Array, leaf: Field | Time) -> Value:
    """Values of a leaf as `values.evaluate` wants them; of a type without arithmetic they stay as they are."""
    if pa.types.is_null(array.type):
        array = pa.nulls(len(array), leaf.type)
    if isinstance(leaf, Time):
        array = plain(array)
        return Column(raw(array).astype(np.int64, copy=False), validity(array))
    if in_arrow(leaf.type) or _is_flat(leaf.type):
        value = read(array, leaf.type)
        if isinstance(value, Column) and value.values.dtype.kind == "f":
            return Column(value.values.astype(np.float64, copy=False))
        return value
    return array


def _is_flat(kind: pa.DataType) -> bool:
    """Whether values of a type are computed with as numbers: not times of day, of which only first and last can be asked."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(number or pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def array_of(value: Value, kind: pa.DataType, length: int) -> pa.Array:
    """A value of `values.evaluate` as an Arrow array of `length` rows; constants are repeated."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value.cast(kind), length)
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    if not isinstance(value, Column):
        return value if value.type == kind else value.cast(kind)
    values = np.ascontiguousarray(np.broadcast_to(value.values, length))
    null = np.isnan(values) if values.dtype.kind == "f" else None if value.valid is None else ~np.broadcast_to(value.valid, length)
    mask = None if null is None or not null.any() else null
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return pa.array(values, kind, mask=mask)
    if pa.types.is_date32(kind):
        return pa.array(values.astype(np.int32, copy=False), pa.int32(), mask=mask).view(kind)
    array = pa.array(values.astype(np.int64, copy=False), pa.int64(), mask=mask)
    return array if kind == pa.int64() else array.cast(kind) if pa.types.is_null(kind) else array.view(kind)


# --------------------------------------------------------------------------------------------------------------------- aggregates


def _argument(node: Apply) -> Field | Time:
    argument = node.arguments[0]
    assert isinstance(argument, Field | Time)
    return argument


def _count(block: _Block, node: Apply) -> Value:
    return Column(block.marks(_argument(node).variable).counts)


def _at(place: Callable[[Array, int], Array], *, only: bool = False) -> Callable[[_Block, Apply], Value]:
    """The value at the n-th event of the variable: its place from offsets and n; NULL where there are fewer (only: or several)."""

    def aggregate(block: _Block, node: Apply) -> Value:
        leaf, number = _argument(node), _number(node)
        marks, array = block.marks(leaf.variable), block.source.array(leaf)
        if marks.single and number == 1:
            return canonical_values(array.take(pa.array(marks.rows)), leaf)
        missing = marks.counts != 1 if only else marks.counts < number
        if not len(marks.rows):
            return canonical_values(pa.nulls(len(missing), plain_type(array.type)), leaf)
        rows = marks.rows[np.where(missing, 0, place(marks.offsets, number))]
        return canonical_values(array.take(pa.array(rows, mask=missing if missing.any() else None)), leaf)

    return aggregate


def _number(node: Apply) -> int:
    """The n of `first(x.a, n)` and `last(x.a, n)`; 1 without it."""
    number = node.arguments[1].value if len(node.arguments) > 1 and isinstance(node.arguments[1], Literal) else 1
    assert isinstance(number, int)
    return number


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that `values.plain` gives arrays of this one."""
    return plain(pa.nulls(0, kind)).type


def _extreme(ufunc: Any, of_doubles: Any, worst: Callable[[Any], int]) -> Callable[[_Block, Apply], Value]:
    """min or max: of numbers by a ufunc, with `worst` of the dtype in the place of NULL; of text and decimals by the ranks of their values."""

    def aggregate(block: _Block, node: Apply) -> Value:
        leaf = _argument(node)
        marks, value = block.marks(leaf.variable), block.gathered(leaf)
        if not isinstance(value, Column):
            return _ranked(ufunc, worst, marks, value)
        if marks.single:
            return value
        if value.values.dtype.kind == "f":
            result, some = marks.reduce(of_doubles, value.values)
            return Column(np.where(some, result, np.nan))
        values = value.values if value.valid is None else np.where(value.valid, value.values, worst(value.values.dtype))
        result, _ = marks.reduce(ufunc, values)
        return Column(result, marks.present(value.valid) > 0)

    return aggregate


def _ranked(ufunc: Any, worst: Callable[[Any], int], marks: VariableEvents, array: pa.Array) -> pa.Array:
    """The least or greatest of each match's values, by their ranks among the distinct ones; Arrow orders text by its UTF-8 bytes."""
    if marks.single or not len(array):
        return array if marks.single else pa.nulls(len(marks.counts), array.type)
    if pa.types.is_decimal(array.type):
        low, high, valid = sums.decimal_words(array)
        unscaled = low.view(np.int64)
        if (high.view(np.int64) == unscaled >> 63).all():
            best, _ = marks.reduce(ufunc, unscaled if valid is None else np.where(valid, unscaled, worst(unscaled.dtype)))
            return sums.decimals(best.view(np.uint64), best >> 63, marks.present(valid) > 0, array.type)
    encoded = array.dictionary_encode()
    distinct, codes, valid = encoded.dictionary, raw(encoded.indices), validity(encoded.indices)
    order = pc.sort_indices(distinct).to_numpy().astype(np.int64)
    if not len(order):
        return pa.nulls(len(marks.counts), array.type)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ranks = rank[codes] if valid is None else np.where(valid, rank[np.where(valid, codes, 0)], worst(rank.dtype))
    best, _ = marks.reduce(ufunc, ranks)
    some = marks.present(valid) > 0
    return distinct.take(pa.array(order[np.where(some, best, 0)], mask=~some))


def _sum(block: _Block, node: Apply) -> Value:
    leaf = _argument(node)
    marks, value = block.marks(leaf.variable), block.gathered(leaf)
    if not isinstance(value, Column):
        return sums.decimal_sum(marks, value, node.type)
    if value.values.dtype.kind == "f":
        return Column(sums.sum_of_doubles(marks, value.values)[0])
    return sums.integer_sum(marks, value)


def _avg(block: _Block, node: Apply) -> Value:
    leaf = _argument(node)
    marks, value = block.marks(leaf.variable), block.gathered(leaf)
    if not isinstance(value, Column):
        return sums.decimal_mean(marks, value)
    if value.values.dtype.kind == "f":
        totals, present = sums.sum_of_doubles(marks, value.values)
        return Column(totals / present)
    return sums.integer_mean(marks, value)


def _stddev(block: _Block, node: Apply) -> Value:
    """The root of the mean square distance from the mean, over n - 1; doubles, added from the first value to the last. NULL if not finite."""
    leaf = _argument(node)
    marks = block.marks(leaf.variable)
    doubles = OPERATIONS["cast"]([block.gathered(leaf)], Apply("cast", (leaf,), node.type))
    totals, present = sums.sum_of_doubles(marks, doubles.values)
    distances = doubles.values - np.repeat(totals / present, marks.counts)
    squares, _ = sums.sum_of_doubles(marks, distances * distances)
    found = np.sqrt(squares / (present - 1))
    return Column(np.where((present > 1) & np.isfinite(found), found, np.nan))


def _count_distinct(block: _Block, node: Apply) -> Value:
    leaf = _argument(node)
    marks, value = block.marks(leaf.variable), block.gathered(leaf)
    if isinstance(value, Column):
        null, codes = value.null(), _codes(value.values)
    else:
        indices = value.dictionary_encode().indices
        valid = validity(indices)
        null = np.zeros(len(indices), np.bool_) if valid is None else ~valid
        codes = np.where(null, 0, raw(indices))
    owners = np.repeat(np.arange(len(marks.counts)), marks.counts)[~null]
    codes = codes.reshape(-1)[~null].astype(np.int64)
    size = int(codes.max(initial=0)) + 1
    pairs = owners * size + codes
    if len(marks.counts) * size <= DENSE * len(pairs):  # PERF: a place for each pair, where there are few places
        found = np.zeros(len(marks.counts) * size, np.bool_)
        found[pairs] = True
        return Column(np.count_nonzero(found.reshape(-1, size), axis=1))
    pairs.sort()
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return Column(np.bincount(pairs // size, minlength=len(marks.counts)))


def _codes(values: Array) -> Array:
    """Numbers from 0 on, the same for equal values."""
    codes: Array
    if values.dtype.kind == "i" and len(values) and int(values.max()) - int(values.min()) < DENSE * len(values):
        codes = values.astype(np.int64) - int(values.min())  # PERF: most numbers of which distinct ones are counted are near each other
    else:
        codes = np.unique(values, return_inverse=True)[1]
    return codes


def _collect(block: _Block, node: Apply) -> Value:
    leaf = _argument(node)
    marks = block.marks(leaf.variable)
    values = array_of(block.gathered(leaf), leaf.type, len(marks.rows))
    return pa.ListArray.from_arrays(pa.array(marks.offsets.astype(np.int32)), values.cast(node.type.value_type))


# -------------------------------------------------------------------------------------------------------------------------- times


def _start_time(block: _Block, _: Apply) -> Value:
    return Column(block.source.times(block.start_rows))


def _end_time(block: _Block, _: Apply) -> Value:
    return Column(block.source.times(block.end_rows))


def _duration(block: _Block, node: Apply) -> Value:
    start, end = _start_time(block, node).values, _end_time(block, node).values
    # Times ascend, so that a difference below zero has overflowed.
    steps = end - start
    fits = steps >= 0
    if pa.types.is_date32(block.source.time_type):
        steps = steps * DAY
    return Column(steps, None if fits.all() else fits)


def _deadline_time(block: _Block, node: Apply) -> Value:
    """In steps of the time column, which a sum may leave: NULL then."""
    found, fits = np.full(block.count, np.iinfo(np.int64).min), np.ones(block.count, np.bool_)
    for steps, rows in zip(node.arguments, (block.end_rows, block.start_rows), strict=True):
        assert isinstance(steps, Literal)
        assert isinstance(steps.value, int)
        if steps.value >= 0:
            times = block.source.times(rows)
            later = times + steps.value
            fits &= later >= times
            found = np.maximum(found, later)
    if pa.types.is_date32(node.type):
        fits &= found <= np.iinfo(np.int32).max
    return Column(found, None if fits.all() else fits)


DAY = 86_400
"""Seconds in a step of a date column, whose durations are in seconds."""

TIMES: frozenset[str] = frozenset({"start_time", "end_time", "duration", "deadline_time"})

AGGREGATIONS: Mapping[str, Callable[[_Block, Apply], Value]] = MappingProxyType(
    {
        "count": _count,
        "count_distinct": _count_distinct,
        "first": _at(lambda offsets, number: offsets[:-1] + (number - 1)),
        "last": _at(lambda offsets, number: offsets[1:] - number),
        "only": _at(lambda offsets, _: offsets[:-1], only=True),
        "min": _extreme(np.minimum, np.fmin, lambda dtype: np.iinfo(dtype).max),
        "max": _extreme(np.maximum, np.fmax, lambda dtype: np.iinfo(dtype).min),
        "sum": _sum,
        "avg": _avg,
        "stddev": _stddev,
        "collect": _collect,
        "start_time": _start_time,
        "end_time": _end_time,
        "duration": _duration,
        "deadline_time": _deadline_time,
    }
)
"""One function per key of `plan.AGGREGATES`: from a block of matches and the node to a value per match."""
