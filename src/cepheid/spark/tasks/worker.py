"""What runs inside a Spark task: sorted events come in as Arrow batches, matches go out.

Comes in: the batches of one partition of a DataFrame, sorted by key, time and tie-breakers, with the letters already computed. Goes out: one
row per match, exactly the columns that `batch` announced. A key is read through batch borders, and never has to fit in memory: of the open
key only the marked events are kept, and those of a window only while the window is open. This module imports no Spark.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.evaluations.events import Events
from cepheid.engine.input.lags import SortedLags
from cepheid.engine.letters.encoded import Texts
from cepheid.engine.letters.pooled import gathered
from cepheid.engine.letters.values import no_events, plain, raw
from cepheid.engine.output.identity import Repeats
from cepheid.engine.output.marks import Ragged
from cepheid.engine.output.matches import Matches, python_value
from cepheid.engine.output.measures import measured
from cepheid.engine.run.having import NOTHING, Having
from cepheid.errors import CepheidError, InputError, SetupError
from cepheid.language.syntax import Consumption
from cepheid.logical.canonical import canonical_text
from cepheid.query import query
from cepheid.records import names_of, record
from cepheid.schema import EventSchema
from cepheid.spark.tasks.bounds import no_time, out_of_bounds, outside, time_text
from cepheid.spark.tasks.letter_columns import letters_column, letters_of
from cepheid.spark.tasks.rows import View
from cepheid.spark.translation import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.engine.evaluations.base import Chunk
    from cepheid.engine.letters.predicates import Predicates
    from cepheid.engine.letters.words import LongPredicates
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.logical.plan import Expression

TIME, LETTER, VALUE = "$time", "$letter", "$value"
"""Columns that `batch` adds to what a task reads, and the position that it shows in events when asked.

The name of a value's column goes on behind VALUE (`value_column`).
"""

SLICE, OWN = "$slice", "$own"
"""Columns that `slices` adds: the number of the event's slice of time, and whether the event is in it, and not only in its overlap."""

PARTITION = "$partition"
"""The column that `tables` adds: the number of a table function's partition in its task."""

OPTION = "q.on(.., {}={})"
"""How an option is given, in messages: with its name and its value."""

COMPACT_ROWS = 1 << 14
"""Kept events of the open key are looked through for dead ones each time they have doubled, but not below this."""


@record
class Task:
    """Everything that a task has to know, in plain values: it travels in a closure, and is compiled once per worker process.

    text, args, schema: the query, and the arguments of its `EventSchema` (attributes as (name, serialized Arrow type)). fingerprint: of the
    driver's program; letters mean the same here and there. keys: input columns of the key, by position of PARTITION BY. payload: (attribute,
    input column), the events' attributes that the output needs. shown: what the events of the output have, in order. ties: input columns that
    order equal times, None: they are in any order; tie_names: the attributes that were asked for. index: whether positions are shown.
    sliced: whether the events, of each key, come in slices of time, of which each gives the matches that end in it (`slices`). option:
    how one is given, for messages. values: for each program (`Compiled.programs`) the columns of the values that its guards read, where these travel.
    reads: (attribute, input column), what letters and values are made of here, see `Plan.read_behind`. match_id: the column of identities, if the
    output has one. name: of the query among several.
    """

    text: str
    args: tuple[tuple[str, Any], ...]
    schema: tuple[Any, ...]
    fingerprint: bytes
    keys: tuple[str, ...]
    key_names: tuple[str, ...]
    payload: tuple[tuple[str, str], ...]
    shown: tuple[str, ...]
    ties: tuple[str, ...] | None
    tie_names: tuple[str, ...]
    index: bool
    time_name: str
    sliced: bool = False
    option: str = OPTION
    values: tuple[tuple[str, ...], ...] = ()
    reads: tuple[tuple[str, str], ...] = ()
    match_id: str | None = None
    name: str | None = None

    def read(self, events: pa.RecordBatch | pa.Table) -> pa.Table:
        """The attributes of `reads`."""
        table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
        return table.select([column for _, column in self.reads]).rename_columns([name for name, _ in self.reads])

    @property
    def plain(self) -> dict[str, Any]:
        """The task as it travels: its arguments by name."""
        return {name: getattr(self, name) for name in names_of(self.__class__)}

    def view(self, compiled: Compiled, schema: pa.Schema) -> View:
        """How it shows its matches; schema: of the columns that travelled."""
        identified = None if self.match_id is None else (self.match_id, self.name)
        return View.of(
            compiled, schema, payload=self.payload, shown=self.shown, index=self.index, time=self.time_name, identified=identified
        )


def pack_schema(schema: EventSchema) -> tuple[Any, ...]:
    """An event schema as plain values."""
    attributes = pa.schema(list(schema.attributes.items())).serialize().to_pybytes()
    types = None if schema.types is None else tuple((name, tuple(sorted(of))) for name, of in sorted(schema.types.items()))
    return attributes, schema.type_column, schema.stream, types, schema.time_column


def unpack_schema(packed: tuple[Any, ...]) -> EventSchema:
    """The event schema of `pack_schema`."""
    attributes, type_column, stream, types, time_column = packed
    arrow = pa.ipc.read_schema(pa.py_buffer(attributes))
    known = None if types is None else {name: frozenset(of) for name, of in types}
    return EventSchema(dict(zip(arrow.names, arrow.types, strict=True)), type_column, stream, known, time_column)


_COMPILED: dict[tuple[str, str, tuple[Any, ...]], Compiled] = {}
_COMPILING = threading.Lock()  # held around _COMPILED: Spark may run the functions of one worker in threads
COMPILED_QUERIES = 1024
"""Compiled queries that a worker process remembers."""


def compiled_here(task: Mapping[str, Any]) -> Compiled:
    """The task's query, compiled at most once in this process."""
    key = (task["text"], repr(task["args"]), task["schema"])
    with _COMPILING:
        known = _COMPILED.get(key)
        if known is None:
            known = query(task["text"], args=dict(task["args"])).compiled(unpack_schema(task["schema"]))
            if len(_COMPILED) >= COMPILED_QUERIES:
                _COMPILED.pop(next(iter(_COMPILED)))
            _COMPILED[key] = known
    if known.program.fingerprint != task["fingerprint"]:
        raise SetupError(
            "the driver and this worker compile the query differently",
            help="install the same version of cepheid on the driver and all workers",
        )
    return known


def reporting(
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], output: bytes, name: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function that mapInArrow calls: what `work` gives of the batches, and an error of ours that it raises as a row, for Spark to raise.

    output: serialized Arrow schema of what `work` gives. name: of the column behind these that has the error's text (see `error_rows.map_in_arrow`).
    """
    try:
        for rows in work(batches):
            yield rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    except CepheidError as error:
        schema = pa.ipc.read_schema(pa.py_buffer(output))
        nothing = [pa.nulls(1, kind) for kind in schema.types]
        yield pa.record_batch([*nothing, pa.array([text_of(error)])], names=[*schema.names, name])


Letters = tuple["Sequence[str]", "Sequence[Sequence[int]] | None"]
"""Of a query: the columns that its letters come from, and for each of its programs where its predicates stand in them (`own_letters`)."""


def run_task(task: Mapping[str, Any], batches: Iterator[pa.RecordBatch], *, letters: Letters | None = None) -> Iterator[pa.RecordBatch]:
    """The matches of one partition's events, as mapInArrow hands them out; letters: None where LETTER has them.

    Raises InputError for times that are NULL or out of bounds, and for events of one key and time that nothing orders. Linear in events and output.
    """
    run: TaskRun | None = None
    for batch in map(with_letter, batches):
        if not batch.num_rows:
            continue
        if run is None:
            run = TaskRun(Task(**task), compiled_here(task), batch.schema)
        yield from run.read(batch if letters is None else _with_letters(batch, letters, run.alphabets))
    if run is not None:
        yield from run.end()


def run_tasks(
    tasks: Sequence[Mapping[str, Any]],
    letters: Sequence[Letters],
    names: Sequence[str],
    output: bytes,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The same for several queries over the same events: the rows of all, with the name of the query in front.

    letters: of each query. output: serialized Arrow schema of a row. Raises as `run_task`.
    """
    schema = pa.ipc.read_schema(pa.py_buffer(output))
    runs: list[TaskRun] = []
    for batch in map(with_letter, batches):
        if not batch.num_rows:
            continue
        runs = runs or [TaskRun(Task(**task), compiled_here(task), batch.schema) for task in tasks]
        for run, own, name in zip(runs, letters, names, strict=True):
            yield from _named(run.read(_with_letters(batch, own, run.alphabets)), name, schema)
    for run, name in zip(runs, names, strict=False):  # none without events
        yield from _named(run.end(), name, schema)


def _named(found: Iterator[pa.RecordBatch], name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows with the name of their query in front."""
    return (aligned(rows.add_column(0, "query", pa.repeat(name, rows.num_rows)), schema) for rows in found)


def with_letter(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with LETTER, which does not travel where queries ask nothing of a single event: it is 0 then."""
    if batch.schema.get_field_index(LETTER) >= 0:
        return batch
    return batch.append_column(LETTER, pa.array(np.zeros(batch.num_rows, np.int32)))


def _with_letters(batch: pa.RecordBatch, letters: Letters, alphabets: Sequence[Predicates | LongPredicates]) -> pa.RecordBatch:
    """A batch with the letters of a query's program in LETTER, where letters travel."""
    columns, places = letters
    if not columns:
        return batch
    own = letters_column(own_letters([batch.column(column) for column in columns], places, alphabets)[0])
    return batch.set_column(batch.schema.get_field_index(LETTER), LETTER, own)


def value_column(value: Expression) -> str:
    """The column of a value that guards read: the same for the same value, in every query and after every restart."""
    return f"{VALUE} {hashlib.sha256(canonical_text((value,)).encode()).hexdigest()[:32]}"


def own_letters(
    columns: Sequence[pa.Array], places: Sequence[Sequence[int]] | None, alphabets: Sequence[Predicates | LongPredicates]
) -> list[Array]:
    """The letters of a query's programs, whose alphabets these are, from what travels for all queries: unsigned integers, or spellings.

    columns: POOLED_BITS predicates each. places: for each program, for each of its predicates, the number of the bit in them that says whether it
    holds; None where column k has the letters of program k, whatever their bits mean.
    """
    pooled = [letters_of(column) for column in columns]
    if places is None:
        return pooled
    return [gathered(pooled, own, alphabet) for own, alphabet in zip(places, alphabets, strict=True)]


def aligned(rows: pa.RecordBatch | pa.Table, schema: pa.Schema) -> Any:
    """Rows with all columns of an output: NULL in those that theirs has not."""
    names = set(rows.schema.names)
    columns = [rows.column(field.name) if field.name in names else pa.nulls(rows.num_rows, field.type) for field in schema]
    return type(rows).from_arrays(columns, schema=schema)


class TaskRun:
    """One task's pass over its sorted events.

    partition: the columns in which the events of one partition agree (default: the key, and the slice).
    """

    def __init__(self, task: Task, compiled: Compiled, schema: pa.Schema, *, partition: tuple[str, ...] | None = None) -> None:
        assert not compiled.absences, "matches with absences are decided later than they end: `buckets` reads them"
        self.task = task
        self.alphabets = compiled.alphabets
        self.valued = compiled.valued
        self.positional = compiled.positional
        self.texts = Texts()
        (self.reader,) = compiled.readers(self.texts)
        self.evaluation = compiled.evaluation(texts=self.texts, judge=self._left)
        self.shown: Callable[[Chunk], Matches] | None = None  # the matches of the batch that is being read
        reads = pa.schema([(name, schema.field(column).type) for name, column in task.reads])
        self.lags = SortedLags(compiled.lags, reads) if compiled.lags else None
        self.window = compiled.window
        self.count_window = compiled.count_window
        self.view = task.view(compiled, schema)
        self.layout = self.view.layout
        self.repeats = Repeats()
        self.incoming = Incoming(task, partition or ((*task.keys, SLICE) if task.sliced else task.keys))
        self.kept = Kept(self.layout.events)
        self.base = 0
        self.having = Having(compiled, self.layout.time) if compiled.plan.having is not None else None
        self.consumes = (self.having is None or compiled.restarts) and compiled.consume is not Consumption.NONE
        self.fresh = 0  # least position of the open key that no match has used up
        self.ahead = compiled.looks_ahead
        self.held: list[pa.RecordBatch] = []

    def read(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The matches that end in a batch; where a query looks ahead, the events with its last time wait for the batch behind it."""
        if not self.ahead:
            return self._read(batch)
        times = raw(plain(batch.column(TIME)))
        last = 1 + int(np.flatnonzero(times != times[-1]).max(initial=-1))
        if last:
            ready = self._together(batch.slice(0, last))
            self.held = [batch.slice(last)]
            return self._read(ready)
        self.held.append(batch)
        return iter(())

    def end(self) -> Iterator[pa.RecordBatch]:
        """The matches that end in what waits; no event follows."""
        if self.held:
            yield from self._read(self._together())

    def _together(self, *more: pa.RecordBatch) -> pa.RecordBatch:
        """What waits, and more, as one batch; then nothing waits."""
        held, self.held = [*self.held, *more], []
        return held[0] if len(held) == 1 else pa.Table.from_batches(held).combine_chunks().to_batches()[0]

    def _read(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        times, changed = self.incoming.read(batch)
        cuts = np.flatnonzero(changed)
        continued = not changed[0]
        if continued:
            cuts = np.concatenate([np.zeros(1, np.int64), cuts])
        # The position of row i in its partition is i - origins[its segment].
        origins = cuts.copy()
        origins[0] -= self.base if continued else 0
        own = own_rows(batch) if self.task.sliced else None
        if self.valued:
            self.texts.collect(lambda: [self.evaluation.texts_in(self.evaluation.dump())])

        def positions() -> Array:
            return np.arange(batch.num_rows) - np.repeat(origins, np.diff(cuts, append=batch.num_rows))

        letters = self._said(batch, positions, cuts, continued=continued)
        events = self._events(batch, positions)
        last: Chunk | None = None
        self.shown = lambda chunk: self._matches(chunk, batch, events, origins)
        worth = None if self.having is None else self.having.heed(self.evaluation, letters, events.column)
        read = Events(letters, times, cuts, continued=continued, worth=worth)
        chunks = self.evaluation.chunks(read)
        if own is not None:
            chunks = (ending_in(chunk, own, origins) for chunk in chunks)
        if self.having is not None:
            if not continued:
                self.having.moved_on(NOTHING)
            chunks = self.having.judged(chunks, self.shown, spans)
        for found in chunks:
            yield from self._output(self._matches(found, batch, events, origins))
            last = found if len(found) else last
        if self.having is not None:
            self.having.moved_on(len(cuts) - 1)
        self._keep(events, times, origins, cuts, last, continued=continued)
        self.base = batch.num_rows - int(origins[-1])

    def _left(self, chunks: Iterator[Chunk], segments: Array) -> Iterator[Chunk]:
        """Of the matches in what is being read those that meet the condition of HAVING: the judge of `Consuming`."""
        assert self.having is not None
        assert self.shown is not None
        return self.having.left(chunks, segments, self.shown)

    def _said(self, batch: pa.RecordBatch, positions: Callable[[], Array], cuts: Array, *, continued: bool) -> Array:
        """What the events say: their letters, and the values that guards read."""
        if self.lags is not None:
            return self.reader.read(self.lags.read(self.task.read(batch), cuts, continued=continued), positions=positions)
        letters = letters_of(batch.column(LETTER))
        if self.positional or (self.valued and not self.task.values):
            return self.reader.read(self.task.read(batch), positions=positions, letters=letters)
        return self.reader.of_columns(letters, [batch.column(name) for name in self.task.values[0]]) if self.valued else letters

    # ---------------------------------------------------------------------------------------------------------------- what is kept

    def _events(self, batch: pa.RecordBatch, positions: Callable[[], Array]) -> pa.Table:
        """The batch's events as the output shows them."""
        arrays = [batch.column(column) for _, column in self.task.payload]
        if self.task.index:
            arrays.append(pa.array(positions()))
        return pa.Table.from_arrays(arrays, schema=self.layout.events)

    def _keep(self, events: pa.Table, times: Array, origins: Array, cuts: Array, found: Chunk | None, *, continued: bool) -> None:
        """Keep the marked events of the key that is still open, for matches that end in later batches; `found` are this batch's last ones."""
        if not (continued and len(cuts) == 1):
            self.kept.clear()
            self.fresh = 0
        if self.consumes and found is not None and found.segments[-1] == len(cuts) - 1:
            self.fresh = int(found.positions[-1]) + 1
        start = int(cuts[-1])
        rows = start + np.flatnonzero(self.evaluation.marked[start:])
        if len(rows):
            self.kept.add(rows - origins[-1], times[rows], events.take(pa.array(rows)))
        if self.kept.is_due():
            position = len(times) - 1 - int(origins[-1])
            self.kept.drop(
                time=None if self.window is None else int(times[-1]) - self.window,
                position=max(self.fresh, 0 if self.count_window is None else position - self.count_window + 1),
            )

    # ------------------------------------------------------------------------------------------------------------------ what goes out

    def _output(self, matches: Matches) -> Iterator[pa.RecordBatch]:
        # Equal rows end at one time of one key.
        for rows in self.view.pieces(measured(self.view.measures, matches), self.repeats, last=True):
            yield from rows.to_batches()

    def _matches(self, chunk: Chunk, batch: pa.RecordBatch, events: pa.Table, origins: Array) -> Matches:
        """The matches of a chunk, without measures."""
        rows = chunk.positions + np.repeat(origins[chunk.segments], np.diff(chunk.offsets))
        before = rows < 0
        if before.any():
            kept, positions = self.kept.table(), self.kept.positions()
            rows = np.where(before, np.searchsorted(positions, chunk.positions), rows + len(positions))
            events = pa.concat_tables([kept, events]).combine_chunks()
        partitions = keys = None
        if self.layout.keys:
            first = np.maximum(origins, 0)
            named = dict(zip(self.task.key_names, self.task.keys, strict=True))
            keys = pa.table([batch.column(named[name]).take(pa.array(first)) for name in self.layout.keys], list(self.layout.keys))
            partitions = chunk.segments.astype(np.int64)
        marks = Ragged(chunk.offsets, chunk.positions, chunk.labels, rows)
        return Matches(self.layout, marks, events, partitions, keys, counts=chunk.counts)


def spans(chunk: Chunk) -> tuple[Array, Array, Array]:
    """What CONSUME BY looks at: the partition of each match and its positions there; each key has a task, or a task has one partition."""
    return chunk.segments.astype(np.int64), chunk.starts, chunk.ends


class Incoming:
    """What one task reads: sorted events, whose order must be defined.

    keys: the columns in which neighbours of one partition agree.
    """

    def __init__(self, task: Task, keys: tuple[str, ...]) -> None:
        self.task = task
        self.keys = keys
        self.last: pa.RecordBatch | None = None

    def read(self, batch: pa.RecordBatch) -> tuple[Array, Array]:
        """The times of a batch (int64), and for each row whether its partition differs from that of the row before (bool).

        Raises InputError for times that are NULL or out of bounds, and for neighbours that nothing orders.
        """
        times, changed = self._times(batch), self._key_changes(batch)
        if self.task.ties is not None:
            self._check_ties(batch, times, changed)
        self.last = batch.slice(batch.num_rows - 1)
        return times, changed

    def _times(self, batch: pa.RecordBatch) -> Array:
        column, task = batch.column(TIME), self.task
        if column.null_count:
            row = pc.index(pc.is_null(column), pa.scalar(True)).as_py()
            raise no_time(task.time_name, of=self._of_key(batch, row), option=task.option)
        times: Array = raw(plain(column)).astype(np.int64, copy=False)
        wrong = outside(times, column.type)
        if wrong is not None:
            row = int(np.argmax(wrong))
            instead = task.option.format("bad_time", '"drop"')
            raise out_of_bounds(task.time_name, time_text(int(times[row]), column.type), of=self._of_key(batch, row), instead=instead)
        return times

    def _key_changes(self, batch: pa.RecordBatch) -> Array:
        """For each row whether its key differs from the row before it (the batch before, for the first): bool."""
        changed = np.zeros(batch.num_rows, np.bool_)
        changed[0] = self.last is None
        for name in self.keys:
            column = batch.column(name)
            changed[1:] |= different(column)
            if self.last is not None:
                changed[0] |= not same_value(self.last.column(name), column.slice(0, 1))
        return changed

    def _check_ties(self, batch: pa.RecordBatch, times: Array, changed: Array) -> None:
        """Raise InputError for neighbours of one key with the same time and the same tie-breakers; each slice of time looks at its own."""
        assert self.task.ties is not None
        own = own_rows(batch) if self.task.sliced else None
        tied = ~changed if own is None else own & ~changed
        tied[1:] &= times[1:] == times[:-1]
        tied[0] = tied[0] and self.last is not None and same_value(self.last.column(TIME), batch.column(TIME).slice(0, 1))
        if not tied.any():
            return
        for name in self.task.ties:
            column = batch.column(name)
            tied[1:] &= ~different(column)
            tied[0] = tied[0] and self.last is not None and same_value(self.last.column(name), column.slice(0, 1))
        if tied.any():
            row = int(np.argmax(tied))
            time = batch.column(TIME)[row].as_py()
            how = f" and the same {', '.join(f'`{name}`' for name in self.task.tie_names)}" if self.task.tie_names else ""
            raise InputError(
                f"two events{self._of_key(batch, row)} have the same time {time}{how}, and nothing says which comes first",
                help=(
                    "name the columns that decide: " + self.task.option.format("order", "[..]"),
                    "or say that any order will do: " + self.task.option.format("order", '"any"'),
                ),
            )

    def _of_key(self, batch: pa.RecordBatch, row: int) -> str:
        named = zip(self.task.key_names, self.task.keys, strict=True)
        values = [f"{name}={python_value(batch.column(column)[row])!r}" for name, column in named if name != PARTITION]
        return f" of {', '.join(values)}" if values else ""


def own_rows(batch: pa.RecordBatch) -> Array:
    """For each row whether it is in its slice of time, and not only in the overlap (bool)."""
    own: Array = batch.column(OWN).to_numpy(zero_copy_only=False)
    return own


def ending_in(chunk: Chunk, rows: Array, origins: Array) -> Chunk:
    """The matches whose last event is in one of the rows: bool per row of the batch; origins: row of position 0, per segment."""
    given = rows[chunk.ends + origins[chunk.segments]]
    return chunk if given.all() else chunk.take(np.flatnonzero(given))


class Kept:
    """The marked events of the key that is open: position in the partition, time, attributes."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.pieces: list[tuple[Array, Array, pa.Table]] = []
        self.rows = 0
        self.due = COMPACT_ROWS

    def clear(self) -> None:
        """Another key begins."""
        self.pieces, self.rows, self.due = [], 0, COMPACT_ROWS

    def add(self, positions: Array, times: Array, events: pa.Table) -> None:
        """Events behind those that are kept."""
        self.pieces.append((positions, times, events))
        self.rows += len(positions)

    def is_due(self) -> bool:
        """Whether so much has come that looking for dead events pays."""
        return self.rows >= self.due

    def drop(self, *, time: int | None, position: int | None) -> None:
        """Forget events that are earlier than both bounds allow; None is no bound."""
        positions, times, events = self.positions(), np.concatenate([piece[1] for piece in self.pieces]), self.table()
        alive = np.ones(len(positions), np.bool_)
        if time is not None:
            alive &= times >= time
        if position is not None:
            alive &= positions >= position
        first = int(np.argmax(alive)) if alive.any() else len(alive)
        rows = np.arange(first, len(alive))
        self.clear()
        if len(rows):
            self.add(positions[first:], times[first:], events.take(pa.array(rows)).combine_chunks())
        self.due = max(COMPACT_ROWS, 2 * self.rows)

    def positions(self) -> Array:
        """Their positions, ascending."""
        return np.concatenate([piece[0] for piece in self.pieces]) if self.pieces else np.zeros(0, np.int64)

    def table(self) -> pa.Table:
        """Their attributes, in the order of `positions`."""
        return pa.concat_tables([piece[2] for piece in self.pieces]) if self.pieces else no_events(self.schema)


def different(column: pa.Array) -> Array:
    """For each row but the first whether its value differs from the one before; NULL is a value (bool, n - 1)."""
    if pa.types.is_null(column.type):  # Arrow compares none
        return np.zeros(len(column) - 1, np.bool_)
    before, after = column.slice(0, len(column) - 1), column.slice(1)
    unequal = pc.not_equal(before, after)
    if column.null_count:
        null = pc.not_equal(pc.is_null(before), pc.is_null(after))
        unequal = pc.or_(pc.fill_null(unequal, False), null)
    changed: Array = unequal.to_numpy(zero_copy_only=False)
    return changed


def same_value(first: pa.Array, second: pa.Array) -> bool:
    """Whether two arrays of one value hold the same one, NULL counted as a value."""
    return bool(first.equals(second))
