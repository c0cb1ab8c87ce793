"""Table functions over rows, inside Spark's tasks.

`cepheid_match` is one, for Arrow has no functions whose columns depend on the call; so is every other where Spark has none over Arrow batches.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql.udtf import AnalyzeResult

from cepheid.spark.tasks.row_values import from_arrow, to_arrow
from cepheid.spark.tasks.tables import TaskReader, forget_readers, is_between, reader_of_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Row
    from pyspark.sql.udtf import AnalyzeArgument


@dataclass
class Analyzed(AnalyzeResult):
    """What Spark keeps between the analysis of a call of `cepheid_match` and its run: `Reading` as plain values."""

    reading: dict[str, Any] = field(default_factory=dict)


class CallRows:
    """One partition of a call of a registered query, row by row. Subclasses say what is read."""

    reading: ClassVar[Mapping[str, Any]]

    def __init__(self) -> None:
        self._reading = self.reading
        self._reader: TaskReader | None = None

    def eval(self, events: Row, *_arguments: object, **_options: object) -> Iterator[tuple[Any, ...]]:
        """An event of the partition comes in; matches that are ready go out."""
        if self._reader is None:
            self._reader = reader_of_task(RowReader, self._reading, inspect.currentframe())
        return rows_of(self._reader.push(events, 1))

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """The partition ends."""
        return iter(()) if self._reader is None or is_between(inspect.currentframe()) else rows_of(self._reader.close())

    def cleanup(self) -> None:
        """The task ends."""
        forget_readers()


class AnyQuery(CallRows):
    """One partition of a call of `cepheid_match`."""

    def __init__(self, analyzed: Analyzed) -> None:
        self._reading = analyzed.reading
        self._reader: TaskReader | None = None

    @staticmethod
    def analyze(events: AnalyzeArgument, query: AnalyzeArgument, **options: AnalyzeArgument) -> Analyzed:
        """The columns of a call; raises what binding the query to the events' columns raises."""
        from cepheid.spark.calls import analyzed  # workers need nothing of it

        columns, reading = analyzed(events, query, options)
        return Analyzed(columns, reading=reading)


class RowReader(TaskReader):
    """A reader of single rows."""

    def together(self, pieces: list[Row]) -> pa.RecordBatch:
        """Rows as one Arrow batch of the columns that are read."""
        names = list(pieces[0].__fields__)
        self.check_names(names)
        columns = dict(zip(names, zip(*pieces, strict=True), strict=True))
        arrays = []
        for column in self.input:
            convert = to_arrow(column.type)
            values = columns[column.name]
            try:
                arrays.append(pa.array(values if convert is None else list(map(convert, values)), column.type))
            except (pa.ArrowInvalid, TypeError, AttributeError) as error:
                kind = next((type(value).__name__ for value in values if value is not None), "NULL")
                raise self.wrong_type(column, f"values of Python's type {kind}") from error
        return pa.record_batch(arrays, schema=self.input)


def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Arrow batches as rows of the values that Spark takes."""
    for batch in batches:
        columns = []
        for column in batch.columns:
            convert = from_arrow(column.type)
            values = column.to_pylist()
            columns.append(values if convert is None else map(convert, values))
        yield from zip(*columns, strict=True)
