"""What differs between the versions of Spark that Cepheid runs on, from 3.5 to the newest: everything that asks for a version is here.

Comes in: what the rest of the package wants of Spark, in the form that its newest version has. Goes out: that, by the means of the Spark that is
there; or an error that says from which version on there is a way. What is there is found by looking for it, not by numbers: platforms that are
built from Spark call their versions as they like. Imports neither pandas nor pyarrow: the driver's helper of a stream loads it (see `operator`).

| what | newest | before |
|---|---|---|
| a function of Arrow arrays as a column | `arrow_udf` (4.1) | `pandas_udf`, whose result is an Arrow array inside (`arrow_column`) |
| the stateful operator | `transformWithState` over rows (4.1) | 4.0: `transformWithStateInPandas`, in classic sessions; 3.5: none |
| a table function over Arrow batches | `arrow_udtf` (4.1) | 4.0: `udtf` over rows; 3.5: none, it has no PARTITION BY in a call |
| rows to the task of a number | `repartitionById` (4.1) | by numbers with the right hash (`dealt`) |
| a source in Python is told where a micro-batch starts | 4.2 | it gives all there is; 3.5: no sources in Python |
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import pyspark
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql.types import DecimalType

from cepheid.errors import NotSupportedError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, GroupedData, Row, SparkSession
    from pyspark.sql import types as spark_types
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
    from pyspark.sql.udtf import UserDefinedTableFunction

try:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
except ImportError:  # Spark 3.5
    STREAMS = False
    StatefulProcessor = object  # type: ignore[assignment,misc]
else:
    STREAMS = True
    """Whether Spark has the stateful operator that streams need."""

try:
    from pyspark.sql.pandas.functions import arrow_udf
except ImportError:  # Spark 4.0
    arrow_udf = None  # type: ignore[assignment]

try:
    from pyspark.sql.functions import arrow_udtf
except ImportError:  # Spark 4.0
    arrow_udtf = None  # type: ignore[assignment]

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1
    PAGES = False
    ReadAllAvailable = ReadLimit = ReadMaxRows = SupportsTriggerAvailableNow = object  # type: ignore[assignment,misc]
else:
    PAGES = True
    """Whether a source in Python is told where a micro-batch starts, so that it can limit it."""

__all__ = [
    "PAGES",
    "STREAMS",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "StatefulProcessor",
    "SupportsTriggerAvailableNow",
    "arrow_column",
    "check_dropping",
    "check_protobuf",
    "check_version",
    "dealt",
    "missing",
    "table_function",
    "to_arrow",
    "transform_with_state",
    "try_cast",
    "try_mod",
    "until_all_is_read",
]


OLDEST = 3, 5
"""The first Spark that Cepheid runs on."""


def check_version(version: str) -> None:
    """Raise SetupError for a version of Spark before the oldest."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        raise SetupError(
            f"Cepheid needs Spark 3.5 or later, and this is Spark {version}",
            help=("Spark 4.0 or later has everything", "Spark 3.5 has batch DataFrames, and no streams and no functions in SQL"),
        )


check_version(pyspark.__version__)


def missing(what: str, since: str, *instead: str) -> NotSupportedError:
    """The error for something that this Spark has not; since: the first version that has it. instead: other ways out."""
    return NotSupportedError(
        f"{what} needs Spark {since} or later, and this is Spark {pyspark.__version__}", help=(f"use Spark {since} or later", *instead)
    )


# ------------------------------------------------------------------------------------------------------------------------- columns


def arrow_column(function: Callable[..., pa.Array], returns: spark_types.DataType, *arguments: tuple[Column | str, pa.DataType]) -> Column:
    """A column of what a function of Arrow arrays gives; arguments: columns, and the types of their arrays. The function travels to the workers."""
    columns = [column for column, _ in arguments]
    if arrow_udf is not None:
        return cast("Column", arrow_udf(returns)(function)(*columns))  # type: ignore[call-overload]  # annotations say which kind it is
    import pandas as pd
    from pyspark.sql.pandas.functions import pandas_udf

    kinds = [kind for _, kind in arguments]

    def of_series(*series: pd.Series) -> pd.Series:
        import pyarrow as pa

        return arrow_series(function(*(pa.Array.from_pandas(each, type=kind) for each, kind in zip(series, kinds, strict=True))))

    of_series.__annotations__ = {"series": pd.Series, "return": pd.Series}  # Spark reads classes
    return cast("Column", pandas_udf(of_series, returns)(*columns))


def arrow_series(values: pa.Array) -> Any:
    """An Arrow array as a Series of pandas that Spark's worker sends on as it is.

    The worker first maps each value of a nested type to Python's with `apply`, which would lose what Python has not; then it asks the Series for its
    Arrow array, and this one has it.
    """
    import pandas as pd

    class ArrowSeries(pd.Series):  # type: ignore[misc]
        def apply(self, *_arguments: object, **_options: object) -> ArrowSeries:
            return self

    return ArrowSeries(pd.arrays.ArrowExtensionArray(values))


def try_cast(column: Column, source: spark_types.DataType, target: spark_types.DecimalType) -> Column:
    """A decimal or a long as a decimal, rounded half up, NULL where it does not fit; source: the type of the column in Spark."""
    if hasattr(type(column), "try_cast"):
        return column.try_cast(target)
    # A cast alone is an error in ANSI mode. What fits is told by a comparison that no type of Spark's is too small for.
    integers, scale = target.precision - target.scale, min(getattr(source, "scale", 0), target.scale)
    bound = F.lit(f"{'9' * integers}.{'9' * scale}0").cast(DecimalType(max(integers + scale, 1), scale))
    rounded = F.round(column, scale) if isinstance(source, DecimalType) else column
    return F.when(rounded.between(-bound, bound), column).cast(target)


def try_mod(left: Column, right: Column) -> Column:
    """The remainder, NULL where the divisor is 0."""
    return F.try_mod(left, right) if hasattr(F, "try_mod") else F.when(right != 0, left % right)


# -------------------------------------------------------------------------------------------------------------------------- frames


def to_arrow(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """The rows of a DataFrame, in their order, all in this process; schema: its own in Arrow's terms, with times in UTC."""
    return frame.toArrow() if hasattr(type(frame), "toArrow") else by_batches(frame, schema)


def by_batches(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """The same where Spark has no `toArrow`."""
    import pyarrow as pa

    plain = frame.toDF(*(f"c{number}" for number in range(len(schema))))  # mapInArrow reads names with dots and backticks as paths
    rows = plain.mapInArrow(as_bytes, "batch binary").collect()
    # As they come, times have the session's zone.
    tables = [pa.ipc.open_stream(row[0]).read_all().rename_columns(schema.names).cast(schema) for row in rows]
    return pa.concat_tables([schema.empty_table(), *tables])


def as_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each Arrow batch as a row with its bytes."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["batch"])


def dealt(frame: DataFrame, tasks: int, number: Column) -> DataFrame:
    """The rows in so many tasks, a row in that of its number (an int, 0 or more) modulo `tasks`."""
    if hasattr(type(frame), "repartitionById"):
        return frame.repartitionById(tasks, number)
    known = F.array(*map(F.lit, marks(tasks)))
    return frame.repartition(tasks, F.get(known, F.pmod(number, F.lit(tasks))))


def marks(tasks: int) -> list[int]:
    """For each task the least int that Spark's hash sends there."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < tasks:
        found.setdefault(_hash(number) % tasks, number)
        number += 1
    return [found[task] for task in range(tasks)]


def _hash(value: int) -> int:
    """Spark's hash of an int, with sign: Murmur3 (x86, 32 bits) of its four bytes with the seed 42, which a shuffle uses."""
    mask = (1 << 32) - 1
    mixed = value * 0xCC9E2D51 & mask
    mixed = (mixed << 15 | mixed >> 17) * 0x1B873593 & mask
    hashed = 42 ^ mixed
    hashed = ((hashed << 13 | hashed >> 19) * 5 & mask) + 0xE6546B64 & mask
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & mask
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & mask
    hashed ^= hashed >> 16
    return hashed - (hashed >> 31 << 32)


# ----------------------------------------------------------------------------------------------------------------------- functions


def check_dropping(bad_time: str) -> None:
    """Raise NotSupportedError for a table function that is to drop bad times, where Spark has none over Arrow batches: it makes Python's of all."""
    if bad_time == "drop" and arrow_udtf is None:
        raise missing('bad_time="drop" of a table function', "4.1", "or leave such rows out in the call: TABLE(SELECT .. WHERE ..)")


def table_function(by_batches: type, by_rows: type, returns: spark_types.StructType) -> UserDefinedTableFunction:
    """A table function by its class over Arrow batches, or that over rows, which is slower, where Spark has no others."""
    if arrow_udtf is not None:
        return cast("UserDefinedTableFunction", arrow_udtf(by_batches, returnType=returns))
    from pyspark.sql.functions import udtf

    return cast("UserDefinedTableFunction", udtf(by_rows, returnType=returns, useArrow=False))


# ------------------------------------------------------------------------------------------------------------------------- streams


def transform_with_state(
    groups: GroupedData, processor: StatefulProcessor, output: spark_types.StructType, *, schema: pa.Schema, time: str
) -> DataFrame:
    """The stateful operator over rows, in append mode and event time; schema: of the output in Arrow. time: the column of it that has the time."""
    if hasattr(type(groups), "transformWithState"):
        return groups.transformWithState(processor, output, "append", "EventTime", eventTimeColumnName=time)
    if not hasattr(type(groups), "transformWithStateInPandas"):
        raise missing("a query over a stream of Spark Connect", "4.1", "or run it in a classic session, which can on Spark 4.0 too")
    of_frames = FrameProcessor(processor, schema)
    return groups.transformWithStateInPandas(of_frames, output, "append", "EventTime", eventTimeColumnName=time)


STATE_MESSAGES = "pyspark.sql.streaming.proto.StateMessage_pb2"
"""Spark's module of what the stateful operator and its state say to each other, generated by some protobuf, which an older one refuses to load."""


def check_protobuf() -> None:
    """Raise SetupError for a protobuf that is missing, or too old for the stateful operators of this Spark."""
    try:
        from google import protobuf  # Spark says only that a worker crashed
    except ImportError:
        raise SetupError(
            "Spark's stateful operators need protobuf, which is not installed",
            help="pip install 'cepheid[spark]', or 'cepheid[spark-cluster]' where Spark is there already",
        ) from None
    try:
        import_module(STATE_MESSAGES)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("pyspark"):
            raise
        # another Spark, which may have it elsewhere
    except Exception as error:  # of which class depends on the protobuf
        found = re.search(r"gencode (\d+(?:\.\d+)*)", str(error))
        wanted = f"protobuf>={found[1]}" if found else "protobuf"
        raise SetupError(
            f"Spark {pyspark.__version__}'s stateful operators do not work with protobuf {protobuf.__version__}",
            help=f"on the driver and all workers: pip install --upgrade '{wanted}'",
        ) from error


class FrameProcessor(StatefulProcessor):
    """A processor of rows for `transformWithStateInPandas`. Rows come in as dicts; each row that goes out is a DataFrame of Arrow columns.

    Arrow columns, because those of pandas have no integers with NULL, and no times before 1677.
    """

    def __init__(self, processor: StatefulProcessor, schema: pa.Schema) -> None:
        self.processor = processor
        self.schema = schema

    def init(self, handle: StatefulProcessorHandle) -> None:
        """As for rows."""
        self.processor.init(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 - Spark's names
        """The rows of a key."""
        records = (record for frame in rows for record in frame.to_dict("records"))
        yield from self._frames(self.processor.handleInputRows(key, records, timerValues))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803 - Spark's names
        """A timer of a key."""
        yield from self._frames(self.processor.handleExpiredTimer(key, timerValues, expiredTimerInfo))

    def close(self) -> None:
        """As for rows."""
        self.processor.close()

    def _frames(self, rows: Iterator[Row]) -> Iterator[Any]:
        import pandas as pd
        import pyarrow as pa

        for row in rows:
            yield pa.Table.from_pylist([row.asDict()], self.schema).to_pandas(types_mapper=pd.ArrowDtype)


AVAILABLE_NOW = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def until_all_is_read(spark: SparkSession) -> None:
    """Let the trigger availableNow read a source in Python to its end, and decide what is then known.

    Spark ends such a query before its first rows, or before their watermark takes effect, where the source does not know of the trigger; with this
    setting it puts a source around it that does.
    """
    if not PAGES:
        spark.conf.set(AVAILABLE_NOW, "true")
