"""A table as a stream: `replay(spark, table, ..)`, for tests, demos and trials of a query before it sees a live source.

Comes in: a table with a time column. Goes out: a streaming DataFrame with its rows, each exactly once, in the order in which they arrive: that
of event time plus a random delay (`arrival`). The table is written once, in that order, to an Arrow file (`Prepared`), and `Replay` reads pieces
of this file; an offset is a row number there, together with the fingerprint of the file, so that a checkpoint is never continued with other
data. Nothing is read row by row.
"""

from __future__ import annotations

import atexit
import hashlib
import itertools
import shutil
import tempfile
import time as clock
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from pyarrow import fs
from pyspark.sql.datasource import DataSource, InputPartition

from cepheid.errors import InputError, QueryError, SchemaError, did_you_mean, quoted
from cepheid.records import record
from cepheid.schema import check_doubles, time_casts
from cepheid.spark.sources.pages import PagedReader, check_pages
from cepheid.spark.versions import until_all_is_read

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from cepheid.engine.memory.pools import Array
    from cepheid.spark.sources.pages import Offset

FORMAT = "cepheid_replay"
"""The name of the source in `spark.readStream.format`."""

MICRO_BATCHES = 10
"""Where the caller says nothing, a table comes in so many micro-batches: each costs Spark seconds, whatever is in it."""

ROWS_PER_BATCH = 10_000, 200_000
"""Then a micro-batch has at most so many rows: the first number for small tables, the second for large ones."""

BLOCK_ROWS = 4096
"""Rows of a block of the prepared file: what a task reads at a time."""

ARRIVAL = "$arrival"
"""The column of the prepared file that says when a row arrives; it is no column of the stream."""


def replay(
    spark: SparkSession,
    table: object,
    *,
    time: str = "ts",
    speed: float | None = None,
    disorder: dt.timedelta | str | None = None,
    seed: int = 0,
    rows_per_batch: int | None = None,
    partitions: int = 2,
    close: dt.timedelta | str | None = None,
    folder: str | Path | None = None,
) -> DataFrame:
    """A table as a streaming DataFrame: its rows, each exactly once, in the order in which they arrive.

    table: a Parquet file or folder (anything that `pyarrow.parquet.read_table` takes), a DataFrame of this session, or anything that `q.run` takes;
    it must fit in the memory of this process once. time: its column of event time, a timestamp without NULL. disorder: how late rows arrive: each row
    is delayed by a random time of at least zero and less than this, so with ``lateness=disorder`` no row is too late. seed: the same seed gives the
    same delays. speed: seconds of event time per second of the clock; None: as fast as micro-batches go. rows_per_batch: the most rows of a
    micro-batch (default: a tenth of all rows, 10,000 at least, 200,000 at most). partitions: the most tasks that read one micro-batch. close: adds
    one last row, this long after the greatest time, with NULL in every other column. It moves the watermark, which a stream that only ends does not.
    folder: where the prepared copy is written, a path or an address that Arrow knows and all workers can read (default: a directory of this machine
    that is deleted when this process ends).

    Offsets are exact: a query that starts again from its checkpoint continues with the next row, and a micro-batch that runs again has the same rows.
    For this, call `replay` with the same table and options. Rows that arrive at the same time come in the order of the table. With the trigger
    availableNow the whole table is read, in micro-batches of rows_per_batch, without waiting for speed. Raises SchemaError for a column or type that
    cannot be used, InputError for NULL times and wrong options, NotSupportedError for speed and rows_per_batch before Spark 4.2. O(n log n).
    """
    _check(speed, rows_per_batch, partitions)
    rows = in_spark_types(_table(table))
    kinds = spark_schema(rows.schema)
    rows, arrivals = arranged(rows, time, disorder=microseconds("disorder", disorder), seed=seed, close=microseconds("close", close))
    target = _temporary() if folder is None else str(folder)
    prepared = write(rows, arrivals, target)
    options = {"path": prepared.path, "fingerprint": prepared.fingerprint, "rows": str(prepared.rows), "partitions": str(partitions)}
    options["rows_per_batch"] = str(rows_per_batch or default_rows(prepared.rows))
    if speed is not None:
        options["speed"] = repr(float(speed))
    spark.dataSource.register(Replay)
    until_all_is_read(spark)
    return spark.readStream.format(FORMAT).schema(kinds).options(**options).load()


def default_rows(rows: int) -> int:
    """The most rows of a micro-batch for a table of so many rows, where the caller says nothing."""
    least, most = ROWS_PER_BATCH
    return min(max(least, -(-rows // MICRO_BATCHES)), most)


def _check(speed: float | None, rows_per_batch: int | None, partitions: int) -> None:
    if speed is not None:
        check_pages("speed=")
        if not 0 < speed < float("inf"):
            raise InputError(
                f"speed={speed} is not a number of seconds of event time per second", help="give a number above zero, or leave it out"
            )
    if rows_per_batch is not None:
        check_pages("rows_per_batch=")
        if rows_per_batch < 1:
            raise InputError(f"rows_per_batch={rows_per_batch} is not a number of rows", help="give a number, 1 or more, or leave it out")
    if partitions < 1:
        raise InputError(f"partitions={partitions} is not a number of tasks", help="give a number, 1 or more")


def microseconds(option: str, value: dt.timedelta | str | None) -> int | None:
    """A duration of an option in microseconds; None stays. Raises InputError for what is no duration, or not above zero."""
    if value is None:
        return None
    from cepheid.engine.run.intake import nanoseconds_of

    try:
        steps = nanoseconds_of(value) // 1_000
    except (InputError, QueryError):
        steps = 0
    if steps <= 0:
        raise InputError(f"{option}={value!r} is not a duration above zero", help='write it like "10 minutes", or as a timedelta')
    return steps


# ------------------------------------------------------------------------------------------------------------------------ the table


def _table(table: object) -> pa.Table:
    if isinstance(table, str | Path):
        import pyarrow.parquet as pq

        return pq.read_table(table)
    if hasattr(table, "isStreaming") and hasattr(table, "toArrow"):
        return table.toArrow()
    from cepheid.engine.input.read import table_of

    events = table_of(table)
    return events if isinstance(events, pa.Table) else events.read_all()


def in_spark_types(table: pa.Table) -> pa.Table:
    """The table in the types that Spark holds its values in; raises SchemaError where a value does not fit without loss."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        target = _spark_kind(field.type)
        try:
            columns.append(column if column.type == target else column.cast(target))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            fact = f"the column `{field.name}` is {field.type}, which Spark holds as {target}: {error}"
            raise SchemaError(fact, help="cast it before, in the way that you want") from error
    return pa.table(columns, names=table.column_names)


def _spark_kind(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark holds values of a type."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _spark_kind(kind.value_type)
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_struct(kind):
        return pa.struct([(field.name, _spark_kind(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_spark_kind(kind.key_type), _spark_kind(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_spark_kind(kind.value_type))
    if types.is_duration(kind):
        return pa.duration("us")
    return next((target for test, target in _WIDER if test(kind)), kind)


_WIDER = (
    (lambda kind: pa.types.is_large_string(kind) or pa.types.is_string_view(kind), pa.string()),
    (lambda kind: pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind), pa.binary()),
    (pa.types.is_uint8, pa.int16()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_date64, pa.date32()),
)
"""What Spark has no type for, and the next wider one that it has."""


def spark_schema(schema: pa.Schema) -> StructType:
    """The schema of the stream; raises SchemaError for types that Spark has not."""
    from pyspark.sql import types as spark_types

    from cepheid.spark.columns import arrow_type, spark_type

    known = {}
    for field in schema:
        try:
            kind = spark_type(field.type)
        except StopIteration:
            kind = None
        if kind is None or arrow_type(kind) != field.type:
            raise SchemaError(f"the column `{field.name}` is {field.type}, which Spark has no type for", help="cast it, or drop it before")
        known[field.name] = kind
    check_doubles("the table", schema.names)
    return spark_types.StructType([spark_types.StructField(name, kind) for name, kind in known.items()])


def arranged(table: pa.Table, time: str, *, disorder: int | None, seed: int, close: int | None) -> tuple[pa.Table, Array]:
    """The rows in the order in which they arrive, and when each does, in microseconds of event time, ascending.

    disorder, close: microseconds. Raises SchemaError for a column that is no timestamp, InputError for NULL in it.
    """
    if time not in table.column_names:
        raise SchemaError(
            f"the table has no time column `{time}`",
            help=[*did_you_mean(time, table.column_names), f"it has {quoted(table.column_names)}"],
        )
    column = table[time]
    if not pa.types.is_timestamp(column.type):
        raise SchemaError(f"the time column `{time}` is {column.type}, not a timestamp", help=time_casts(time))
    if column.null_count:
        raise InputError(f"`{time}` is NULL in {column.null_count:,} rows, which therefore never arrive", help="drop these rows before")
    times = column.cast(pa.int64()).to_numpy()
    order, arrivals = arrival(times, disorder=disorder or 0, seed=seed)
    rows = table.take(pa.array(order))
    if close is None or not len(times):
        return rows, arrivals
    last = {name: pa.nulls(1, kind) for name, kind in zip(rows.column_names, rows.schema.types, strict=True)}
    last[time] = pa.array([int(times.max()) + close], pa.int64()).cast(column.type)
    return pa.concat_tables([rows, pa.table(last)]), np.append(arrivals, arrivals[-1])


def arrival(times: Array, *, disorder: int, seed: int) -> tuple[Array, Array]:
    """The order in which events arrive, as indexes, and when they do, ascending: event time plus a delay in [0, disorder).

    times: int64. Equal arrivals keep their order. A delay depends on the seed and the event's index only, for ever: it comes from raw bits
    of PCG64, which NumPy does not change. When an event arrives, no event that has arrived is `disorder` or more ahead of it. O(n log n).
    """
    delays = (np.random.PCG64(seed).random_raw(len(times)) % np.uint64(disorder)).astype(np.int64) if disorder else np.zeros_like(times)
    arrivals = times + delays
    order = np.argsort(arrivals, kind="stable")
    return order, arrivals[order]


# ------------------------------------------------------------------------------------------------------------------ the prepared file


@record(slots=False)
class Prepared:
    """The file that is replayed: where it is, its number of rows, and a fingerprint of its content."""

    path: str
    rows: int
    fingerprint: str


def write(table: pa.Table, arrivals: Array, folder: str) -> Prepared:
    """Write rows, with their arrivals, to a file in a folder; the file is named by its content, so that the same content is one file."""
    filesystem, place = _located(folder)
    filesystem.create_dir(place, recursive=True)
    written = f"{place}/{uuid.uuid4().hex}.part"
    stored = table.append_column(ARRIVAL, pa.array(arrivals, pa.int64())).combine_chunks()
    with filesystem.open_output_stream(written) as sink, pa.ipc.new_file(sink, stored.schema) as writer:
        for first in range(0, len(stored), BLOCK_ROWS):
            (batch,) = stored.slice(first, BLOCK_ROWS).combine_chunks().to_batches()
            writer.write_batch(batch)
    digest = hashlib.blake2b(digest_size=16)
    with filesystem.open_input_stream(written) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    name = f"replay-{digest.hexdigest()}.arrow"
    filesystem.move(written, f"{place}/{name}")
    return Prepared(f"{folder.rstrip('/')}/{name}", len(table), digest.hexdigest())


def _located(path: str) -> tuple[fs.FileSystem, str]:
    """A file system, and the path in it."""
    if "://" in path:
        return fs.FileSystem.from_uri(path)  # type: ignore[no-any-return]
    return fs.LocalFileSystem(), str(Path(path).resolve())


def _temporary() -> str:
    folder = tempfile.mkdtemp(prefix="cepheid-replay-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _opened(path: str, columns: list[int] | None = None) -> pa.ipc.RecordBatchFileReader:
    """The prepared file, with all or some of its columns; a local one is not read before it is used."""
    filesystem, place = _located(path)
    try:
        source = pa.memory_map(place) if isinstance(filesystem, fs.LocalFileSystem) else filesystem.open_input_file(place)
    except FileNotFoundError as error:
        raise InputError(
            f"the prepared copy of the replayed table is gone, or cannot be seen from here: {path}",
            help="pass folder= with a place that all workers see and that stays as long as the query",
        ) from error
    return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=columns))


# ------------------------------------------------------------------------------------------------------------------------ the source


class Replay(DataSource):
    """The source that `replay` registers; its options are what `replay` has prepared."""

    @classmethod
    def name(cls) -> str:
        """The name of the source in `spark.readStream.format`."""
        return FORMAT

    def streamReader(self, schema: StructType) -> ReplayReader:  # noqa: ARG002, N802 - Spark's name and argument
        """The reader of the prepared file."""
        speed = self.options.get("speed")
        prepared = Prepared(self.options["path"], int(self.options["rows"]), self.options["fingerprint"])
        rows, tasks = int(self.options["rows_per_batch"]), int(self.options["partitions"])
        return ReplayReader(prepared, rows_per_batch=rows, tasks=tasks, speed=None if speed is None else float(speed))


@dataclass
class ReplayRows(InputPartition):
    """Rows of the prepared file, from the first to before the last: what one task reads."""

    first: int
    last: int


class ReplayReader(PagedReader):
    """Offsets, tasks and rows of a prepared file. An offset is how many rows have been read."""

    def __init__(self, prepared: Prepared, *, rows_per_batch: int, tasks: int, speed: float | None) -> None:
        self.prepared = prepared
        self.rows_per_batch = rows_per_batch
        self.tasks = tasks
        self.speed = speed
        self._began: tuple[int, float] | None = None
        self._arrivals: Array | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Before the first row."""
        return self._offset(0)

    def newest(self) -> Offset:
        """Behind the last row."""
        return self._offset(self.prepared.rows)

    def page(self, start: Offset, newest: Offset) -> Offset:
        """At most `rows_per_batch` rows on; with a speed, at most to the row that arrives now."""
        first, last = self._row(start), self._row(newest)
        # The trigger availableNow reads the whole table: there is no clock to wait for.
        if self.speed is not None and not self.available_now:
            last = min(last, self._arrived(first, clock.monotonic()))
        return self._offset(min(last, first + cast("int", self.rows_per_batch)))

    def _arrived(self, first: int, now: float) -> int:
        """How many rows have arrived by the clock; the row that the query started with arrived when it started."""
        if self._arrivals is None:
            column = _opened(self.prepared.path).schema.get_field_index(ARRIVAL)
            self._arrivals = _opened(self.prepared.path, [column]).read_all()[ARRIVAL].to_numpy()
        if first >= len(self._arrivals):
            return first
        if self._began is None:
            self._began = int(self._arrivals[first]), now
        origin, began = self._began
        reached = origin + (now - began) * cast("float", self.speed) * 1e6
        return max(first, int(np.searchsorted(self._arrivals, reached, side="right")))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The rows between two offsets in up to `tasks` runs of about the same length."""
        return [ReplayRows(first, last) for first, last in runs(self._row(start), self._row(end), self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        rows = cast("ReplayRows", partition)
        batches = _opened(self.prepared.path)
        columns = [name for name in batches.schema.names if name != ARRIVAL]
        for block, begin, end in pieces(rows.first, rows.last):
            yield batches.get_batch(block).slice(begin, end - begin).select(columns)

    def _offset(self, row: int) -> Offset:
        return {"replay": self.prepared.fingerprint, "row": row}

    def _row(self, offset: Offset) -> int:
        if offset["replay"] != self.prepared.fingerprint:
            raise InputError(
                "the checkpoint is of a replay of other data: the table, or time=, disorder=, seed= or close= has changed",
                help="start with a new checkpoint, or pass what was passed before (with the pyarrow that was used before, which wrote the rows)",
            )
        return int(offset["row"])


def runs(first: int, last: int, most: int) -> list[tuple[int, int]]:
    """The range [first, last) cut into up to `most` ranges that are not empty and differ in length by at most one."""
    number = min(most, last - first)
    cuts = [first + (last - first) * index // number for index in range(number + 1)] if number > 0 else []
    return list(itertools.pairwise(cuts))


def pieces(first: int, last: int) -> list[tuple[int, int, int]]:
    """The range [first, last) of rows as (block, begin, end) with rows counted in the block."""
    blocks = range(first // BLOCK_ROWS, -(-last // BLOCK_ROWS) if last > first else first // BLOCK_ROWS)
    return [(block, max(first - block * BLOCK_ROWS, 0), min(last - block * BLOCK_ROWS, BLOCK_ROWS)) for block in blocks]
