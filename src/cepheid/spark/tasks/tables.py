"""What runs inside a table function of SQL: the rows of one partition of a call come in, its matches go out.

Comes in: what `sql` decided, as plain values, and rows as Spark has them, sorted by the call. Goes out: the rows of `worker.Run`. Spark makes one
object per partition of the call; all partitions of a task share one `TaskReader`, because an evaluation learns its tables while it runs. What a
DataFrame's plan does before the shuffle happens here: letters, NULL keys, events that can change nothing. Queries with absences or EVENT definitions
are decided when partitions are whole (`absences`), many of them together: how far they are complete is said by the call. Imports no session of Spark.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.keys import group, key_codes, normalized
from cepheid.engine.letters.codes import having
from cepheid.engine.letters.encoded import Texts
from cepheid.engine.letters.values import one_chunk, plain, raw
from cepheid.engine.output.matches import python_value
from cepheid.errors import InputError, NotSupportedError, SchemaError, did_you_mean, quoted
from cepheid.records import record
from cepheid.schema import is_text
from cepheid.spark.tasks.absences import FOREVER, run_absences
from cepheid.spark.tasks.bounds import outside
from cepheid.spark.tasks.letter_columns import letters_column, letters_of
from cepheid.spark.tasks.unit import Unit
from cepheid.spark.tasks.worker import LETTER, PARTITION, TIME, Task, TaskRun, compiled_here, different

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from cepheid.engine.memory.pools import Array


ROWS_PER_BATCH = 1 << 14
"""Rows are collected to so many before the engine reads them."""

HELD_ROWS = 1 << 18
"""So many events of whole partitions are held, where matches are decided by partitions: a call of the engine has its price here too."""


@record
class CallReading:
    """How the rows of a call become what `worker.Run` reads, in plain values.

    function: its name; call: how it is called, for messages. task: the fields of the worker's `Task`. input: the columns
    of the rows that are read, as a serialized Arrow schema. columns: (column of the task, attribute, whether its values are normalized).
    relevant: an event matters whose letter, of one of the query's programs, has all bits of one of its masks; None: every event does. until: events
    after this time (in steps of its column) are not read, and all up to it are known; FOREVER: all are read, and no others follow; None: nothing is
    said of that. null_keys: see `Unit`. drop_null_keys: the columns of the key that leave an event out where they are NULL, else that is a key of its
    own. drop_null_times, drop_bad_times: or else a time that is NULL, or out of bounds, is an error.
    output: serialized Arrow schema of a row.
    """

    function: str
    call: str
    task: Mapping[str, Any]
    input: bytes
    columns: tuple[tuple[str, str, bool], ...]
    relevant: tuple[tuple[int, ...], ...] | None
    until: int | None
    null_keys: str
    drop_null_keys: tuple[str, ...]
    drop_null_times: bool
    drop_bad_times: bool
    output: bytes


class TaskReader:
    """One task's pass over its partitions, one after the other: rows are collected over partitions, because a call of the engine has its price."""

    def __init__(self, reading: Mapping[str, Any]) -> None:
        self.given = reading
        self.reading = CallReading(**reading)
        self.task = Task(**self.reading.task)
        self.compiled = compiled_here(self.reading.task)
        self.input: pa.Schema = pa.ipc.read_schema(pa.py_buffer(self.reading.input))
        self.run: TaskRun | None = None
        self.checked: pa.Schema | None = None
        self.last: pa.RecordBatch | None = None
        self.partition = 0
        self.pieces: list[Any] = []
        self.owners: list[int] = []
        self.lengths: list[int] = []
        self.waiting = 0
        alphabets = () if self.compiled.lags or self.compiled.layers else self.compiled.alphabets
        self.readers = {f"{LETTER}{number or ''}": alphabet.reader() for number, alphabet in enumerate(alphabets)}
        self.values = self.compiled.readers(Texts())
        self.whole: list[pa.RecordBatch] = []  # events of whole partitions, and of the one that was open last, until they are decided
        self.open_: list[pa.RecordBatch] = []
        self.opened = 0

    def open(self) -> None:
        """Another partition begins, whatever its key."""
        self.partition += 1

    def push(self, piece: Any, rows: int) -> Iterator[pa.RecordBatch]:
        """So many rows of the open partition come in, in the form that `together` takes; matches that are ready go out. Raises as `flush`."""
        self.pieces.append(piece)
        self.owners.append(self.partition)
        self.lengths.append(rows)
        self.waiting += rows
        return self.flush() if self.waiting >= ROWS_PER_BATCH else iter(())

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The matches that end in what has come in; with absences or EVENT definitions those of partitions that are whole.

        Raises SchemaError for columns that are not those that were announced, and InputError for partitions that are not one key's events in
        the order of their times. Linear in events and output.
        """
        pieces, owners, lengths = self.pieces, self.owners, self.lengths
        self.pieces, self.owners, self.lengths, self.waiting = [], [], [], 0
        if sum(lengths):
            yield from self._read(self.together(pieces), np.repeat(np.array(owners, np.int64), lengths))

    def close(self) -> Iterator[pa.RecordBatch]:
        """The matches that the end of the open partition leaves to give. Raises as `flush`."""
        yield from self.flush()
        if self.run is not None:
            yield from self.run.end()
        yield from self._decide(self.whole + self.open_)
        self.whole, self.open_ = [], []

    def together(self, pieces: list[Any]) -> pa.RecordBatch:
        """Arrow batches as one."""
        return pieces[0] if len(pieces) == 1 else pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]

    def _read(self, events: pa.RecordBatch, partitions: Array) -> Iterator[pa.RecordBatch]:
        batch = self._without_dropped(self._prepared(events, partitions))
        if not batch.num_rows:
            return
        self._check(batch)
        self.last = batch.slice(batch.num_rows - 1)
        batch = self._relevant(batch)
        if not batch.num_rows:
            return
        if self.compiled.absences or self.compiled.layers:
            yield from self._hold(batch)
            return
        if self.run is None:
            self.run = TaskRun(self.task, self.compiled, batch.schema, partition=(PARTITION,))
        yield from self.run.read(batch)

    # ------------------------------------------------------------------------------------------------------- absences and definitions

    def _hold(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Keep events until their partition is whole; the matches of those that are, where they are many."""
        if self.opened != self.partition:
            self.whole, self.open_, self.opened = self.whole + self.open_, [], self.partition
        count = int(np.count_nonzero(raw(batch.column(PARTITION)) < self.partition))  # the open one comes last
        self.whole.append(batch.slice(0, count))
        self.open_.append(batch.slice(count))
        if sum(held.num_rows for held in self.whole) >= HELD_ROWS:
            yield from self._decide(self.whole)
            self.whole = []

    def _decide(self, held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches of whole partitions that are decided. O(n log n)."""
        if not any(batch.num_rows for batch in held):
            return
        events = pa.Table.from_batches(held).combine_chunks()
        turns = self._turns(events)
        # Time passes for all partitions of a turn at once. What is in a partition is in order, and stays so.
        order = np.lexsort((raw(plain(events[TIME].chunk(0))), turns))
        events = events.take(pa.array(order))
        keys, names = (PARTITION, *self.task.keys), (PARTITION, *self.task.key_names)
        unit = Unit(
            tasks=({**self.reading.task, "keys": keys, "key_names": names},),
            letters=((tuple(self.readers), None if self.readers else ()),),
            ties=self.task.ties or (),
            queries=None,
            late=None,
            output=self.reading.output,
            schema=events.schema.serialize().to_pybytes(),
            null_keys=self.reading.null_keys,
        )
        # Where the call does not say it, nothing waits for a time.
        until = FOREVER if self.reading.until is None else self.reading.until
        cuts = np.flatnonzero(np.diff(turns[order], prepend=-1, append=-1))
        for start, stop in itertools.pairwise(cuts.tolist()):
            batches = iter(events.slice(start, stop - start).to_batches(max_chunksize=ROWS_PER_BATCH))
            yield from run_absences(dataclasses.asdict(unit), until, batches)

    def _turns(self, events: pa.Table) -> Array:
        """For each event which state its partition goes to, one after the other (int64).

        Definitions partition events by their keys, so that of the partitions of one key each needs a state of its own.
        """
        if not self.compiled.layers:
            return np.zeros(events.num_rows, np.int64)
        starts = np.flatnonzero(np.diff(raw(one_chunk(events[PARTITION])), prepend=-1))
        codes, count = key_codes(events.take(pa.array(starts)), self.task.keys, grouped=self.task.keys)
        return np.repeat(group(codes, count).positions(len(starts)), np.diff(starts, append=events.num_rows))

    # ------------------------------------------------------------------------------------------------------------------ what comes in

    def _prepared(self, events: pa.RecordBatch, partitions: Array) -> pa.RecordBatch:
        """The columns that the worker reads."""
        if events.schema != self.checked:
            self._check_schema(events.schema)
            self.checked = events.schema
        columns: dict[str, pa.Array] = {PARTITION: pa.array(partitions), TIME: events.column(self.task.time_name)}
        columns |= {letter: letters_column(reader.read(events)) for letter, reader in self.readers.items()}
        for names, values in zip(self.task.values, self.values, strict=False):
            columns |= dict(zip(names, values.as_columns(events), strict=True))
        for column, attribute, normalize in self.reading.columns:
            values = events.column(attribute)
            columns[column] = plain(normalized(values)) if normalize else values
        return pa.record_batch(columns)

    def check_names(self, names: list[str]) -> None:
        """Raise SchemaError unless each column that is read is there once."""
        for column in self.input:
            if names.count(column.name) != 1:
                count = f"{names.count(column.name)} of this name" if column.name in names else "none"
                raise SchemaError(
                    f"{self.reading.function} reads one column `{column.name}`, and the rows of the call have {count}",
                    help=[*did_you_mean(column.name, names), f"the rows have {quoted(names)}"],
                )

    def wrong_type(self, column: pa.Field, found: str) -> SchemaError:
        """The error for a column of another type than was announced."""
        return SchemaError(
            f"{self.reading.function} reads the column `{column.name}` as {column.type}, and the rows of the call have {found}",
            help="cast it in the call, or register the function again with the table as schema=",
        )

    def _check_schema(self, found: pa.Schema) -> None:
        self.check_names(found.names)
        for column in self.input:
            kind = found.field(column.name).type
            if not _alike(kind, column.type):
                raise self.wrong_type(column, str(kind))

    def _without_dropped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = [*self.reading.drop_null_keys, *([TIME] if self.reading.drop_null_times else ())]
        for name in names:
            if batch.column(name).null_count:
                batch = batch.filter(pc.is_valid(batch.column(name)))
        wrong = self._outside(batch) if self.reading.drop_bad_times else None
        return batch if wrong is None else batch.filter(pa.array(~wrong))

    def _outside(self, batch: pa.RecordBatch) -> Array | None:
        """Of events whether their time is out of bounds (bool); None where none is."""
        column = batch.column(TIME)
        found = outside(raw(plain(column)), column.type)
        if found is not None and column.null_count:
            found &= pc.is_valid(column).to_numpy(zero_copy_only=False)
        return found

    def _relevant(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Without the events that can change nothing, or come after `until`; one whose time is an error stays."""
        kept = np.ones(batch.num_rows, np.bool_)
        if self.reading.relevant is not None:
            kept[:] = False
            for name, program, masks in zip(self.readers, self.compiled.programs, self.reading.relevant, strict=True):
                kept |= having(letters_of(batch.column(name)), program.automaton.alphabet, [(mask, 0) for mask in masks])
            wrong = self._outside(batch)
            if wrong is not None:
                kept |= wrong
        if self.reading.until not in (None, FOREVER):
            kept &= raw(plain(batch.column(TIME))) <= self.reading.until
        if batch.column(TIME).null_count:
            kept |= pc.is_null(batch.column(TIME)).to_numpy(zero_copy_only=False)
        return batch if kept.all() else batch.filter(pa.array(kept))

    # ------------------------------------------------------------------------------------------------------------------ what is checked

    def _check(self, batch: pa.RecordBatch) -> None:
        """Raise InputError where a partition has events of two keys, or events out of order."""
        if self.last is not None:
            names = [PARTITION, *self.task.keys, TIME, *(self.task.ties or ())]
            batch = pa.Table.from_batches([self.last.select(names), batch.select(names)]).combine_chunks().to_batches()[0]
        together = ~different(batch.column(PARTITION))
        self._check_keys(batch, together)
        if not batch.column(TIME).null_count:  # the worker says which is NULL
            self._check_order(batch, together)

    def _check_keys(self, batch: pa.RecordBatch, together: Array) -> None:
        """Raise InputError where a partition has two keys: their events may be anywhere. together: bool, of neighbours in one partition."""
        for name in self.task.keys:
            wrong = together & different(batch.column(name))
            if not wrong.any():
                continue
            row = int(np.argmax(wrong))
            named = list(zip(self.task.key_names, self.task.keys, strict=True))
            first, second = (
                ", ".join(f"{key}={python_value(batch.column(column)[at])!r}" for key, column in named) for at in (row, row + 1)
            )
            raise InputError(
                f"one partition of the call has events of {first} and of {second}, and each partition must have one key",
                help=self.reading.call,
            )

    def _check_order(self, batch: pa.RecordBatch, together: Array) -> None:
        """Raise InputError for an event that is earlier than the one before it, or comes before it by the columns of order=."""
        times = raw(plain(batch.column(TIME)))
        ties = [batch.column(name) for name in self.task.ties or ()]
        wrong, names = together & (times[1:] < times[:-1]), [self.task.time_name]
        if ties and not wrong.any():
            rows = np.flatnonzero(together & (times[1:] == times[:-1]))
            wrong[rows[_descending(ties, rows)]] = True
            names += self.task.tie_names
        if wrong.any():
            row = int(np.argmax(wrong))
            columns = [batch.column(TIME), *ties][: len(names)]
            first, second = (", ".join(str(python_value(column[at])) for column in columns) for at in (row, row + 1))
            raise InputError(
                f"the rows of the call are not in the order of {quoted(names)}: {second} comes after {first}", help=self.reading.call
            )

    def check_whole(self, *, part: int, cut: bool, streaming: bool) -> None:
        """Raise InputError where the call hands out the rows as they happen to lie in the table, and NotSupportedError for those of a stream.

        part: the number of this task's part of the rows. cut: whether the call has PARTITION BY; rows of one single partition are part 0, and
        Spark itself refuses to cut a stream.
        """
        if streaming and not cut:
            raise NotSupportedError(
                f"{self.reading.function} reads batch tables; on a stream it would read each micro-batch alone",
                help="use stream.transform(q.on(..)), or df.transform(q.on(..)) in foreachBatch, on one micro-batch at a time",
            )
        if part and not cut:
            raise InputError(
                f"{self.reading.function} reads whole partitions in order, and this call does not name them: each task got a part of the table",
                help=self.reading.call,
            )


def _descending(columns: list[pa.Array], rows: Array) -> Array:
    """Of rows whether each is greater than the next one by these columns, the first that differ deciding; NULL is greatest (bool)."""
    greater = np.zeros(len(rows), np.bool_)
    open_ = np.ones(len(rows), np.bool_)
    for column in columns:
        before, after = column.take(pa.array(rows)), column.take(pa.array(rows + 1))
        nulls = [pc.is_null(side).to_numpy(zero_copy_only=False) for side in (before, after)]
        more, less = (pc.fill_null(compare(before, after), False).to_numpy(zero_copy_only=False) for compare in (pc.greater, pc.less))
        greater |= open_ & (more | (nulls[0] & ~nulls[1]))
        open_ &= ~(more | less | (nulls[0] != nulls[1]))
    return greater


def _alike(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether a column has the type that was announced, but for a time zone, the width of offsets and the names inside nested types."""
    if is_text(expected):
        return is_text(found)
    if pa.types.is_timestamp(expected):
        return bool(pa.types.is_timestamp(found) and found.unit == expected.unit and (found.tz is None) == (expected.tz is None))
    if pa.types.is_nested(expected) or pa.types.is_binary(expected):
        return bool(found.id == expected.id or pa.types.is_large_binary(found))
    return bool(found == expected)


# ------------------------------------------------------------------------------------------------------------------- what Spark makes


STREAM_PROPERTY = "sql.streaming.queryId"
"""What Spark says in the tasks of a streaming query."""

_OPEN: dict[int, TaskReader] = {}
"""The reader of the task that runs in this process, by the number of its attempt."""


def reader_of_task(kind: type[TaskReader], reading: Mapping[str, Any], frame: FrameType | None) -> TaskReader:
    """The reader of the running task, with a new partition open; kind: its class. frame: of the method that Spark called.

    Raises InputError where the call has no partitions.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt, part = (0, 0) if context is None else (context.taskAttemptId(), context.partitionId())
    streaming = context is not None and context.getLocalProperty(STREAM_PROPERTY) is not None
    reader = _OPEN.get(attempt)
    if reader is None or reader.given is not reading:
        _OPEN.clear()
        reader = _OPEN[attempt] = kind(reading)
    reader.check_whole(part=part, cut=is_cut(frame), streaming=streaming)
    reader.open()
    return reader


def is_cut(frame: FrameType | None) -> bool:
    """Whether the call has PARTITION BY, which Spark tells a function nowhere: then it reads through an object that has this attribute.

    Should that change, right calls are errors; no wrong call gives a part of the matches.
    """
    caller = frame.f_back if frame is not None else None
    return caller is not None and hasattr(caller.f_locals.get("self"), "_partition_child_indexes")


def forget_readers() -> None:
    """The task has ended, and its reader with it."""
    _OPEN.clear()


def is_between(frame: FrameType | None) -> bool:
    """Whether a partition ends because another one begins, so that what waits may wait for more; False where that is not known.

    Spark tells the last end of a partition from the others by who calls, and by nothing else.
    """
    caller = frame.f_back if frame is not None else None
    return caller is not None and is_cut(frame) and caller.f_code.co_name in ("eval", "_process_arrow_batch_by_partitions")


class CallPartition:
    """One partition of a call of a registered query, in Arrow batches. Subclasses say what is read."""

    reading: ClassVar[Mapping[str, Any]]

    def __init__(self) -> None:
        self._reader: TaskReader | None = None

    def eval(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Events of the partition come in; matches that are ready go out."""
        if self._reader is None:
            self._reader = reader_of_task(TaskReader, self.reading, inspect.currentframe())
        return self._reader.push(events, events.num_rows)

    def terminate(self) -> Iterator[pa.RecordBatch]:
        """The partition ends."""
        return iter(()) if self._reader is None or is_between(inspect.currentframe()) else self._reader.close()

    def cleanup(self) -> None:
        """The task ends."""
        forget_readers()
