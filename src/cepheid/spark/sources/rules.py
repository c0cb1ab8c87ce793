"""Rules that the driver has, as a stream: what `on_rules` makes of them beside a streaming DataFrame of events.

Comes in: rows of rules. Goes out: a streaming DataFrame with these rows, as they are, in the first micro-batch. An offset is a digest of all rows: a
query that starts again with the same rows, in whatever order, has nothing to read, and one with others reads all of them again, of which those that
are known change nothing. A micro-batch that was to read other rows than there are now, and has not ended, ends without rules; those of now come in
the next one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition

from cepheid.spark.sources.pages import PagedReader
from cepheid.spark.tasks.visits import RULE
from cepheid.spark.versions import until_all_is_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from cepheid.spark.sources.pages import Offset

FORMAT = "cepheid_rules"
"""The name of the source in `spark.readStream.format`."""

ROWS = "rows"
"""Its option, and what an offset is called."""


def rows_as_stream(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> DataFrame:
    """Rows of rules as a streaming DataFrame of pickled rows."""
    spark.dataSource.register(RuleRows)
    until_all_is_read(spark)
    packed = base64.b64encode(pickle.dumps(list(rows))).decode()
    return spark.readStream.format(FORMAT).schema(f"`{RULE}` binary").option(ROWS, packed).load()


class RuleRows(DataSource):
    """The source that `rows_as_stream` registers."""

    @classmethod
    def name(cls) -> str:
        """The name of the source in `spark.readStream.format`."""
        return FORMAT

    def streamReader(self, schema: StructType) -> RuleRowsReader:  # noqa: ARG002, N802 - Spark's name and argument
        """The reader of the rows."""
        return RuleRowsReader(pickle.loads(base64.b64decode(self.options[ROWS])))  # noqa: S301 - of this driver


@dataclass
class AllRows(InputPartition):
    """All rows: what one task reads."""

    rows: list[bytes]


class RuleRowsReader(PagedReader):
    """All rows, where they are others than those of the offset."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows
        said = sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)
        self._digest = hashlib.sha256(json.dumps(said).encode()).hexdigest() if rows else ""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """No rows."""
        return {ROWS: ""}

    def newest(self) -> Offset:
        """All rows."""
        return {ROWS: self._digest}

    def page(self, start: Offset, newest: Offset) -> Offset:  # noqa: ARG002 - as of any source
        """All rows."""
        return newest

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One task, with all rows; none where those of the offset are no more."""
        return [AllRows([pickle.dumps(row) for row in self._rows])] if start != end == self.newest() else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows."""
        assert isinstance(partition, AllRows)
        yield pa.record_batch([pa.array(partition.rows, pa.binary())], names=[RULE])
