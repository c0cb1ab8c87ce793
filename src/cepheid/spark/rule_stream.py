"""Rules over a streaming DataFrame, whose rows are a stream, too: what `on_rules` does there.

Comes in: the plan of a query over any event, and a streaming DataFrame of rules. Goes out: a DataFrame of matches, as of any stream. The rows of
rules go to all buckets of keys, and belong to their micro-batch as events do: one that is repeated knows the same rules.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from cepheid.engine.input.rule_rows import COLUMNS, check_columns
from cepheid.records import record
from cepheid.spark.columns import column_named
from cepheid.spark.shipping import shipped
from cepheid.spark.stream import PACKED, StreamPlan
from cepheid.spark.tasks.packing import pack_rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as spark_types

    from cepheid.spark.tasks.unit import Unit


@record(slots=False)
class RuleStream(StreamPlan):
    """Rules over one streaming DataFrame. rules: a streaming one, too, of `selected` or `rows_as_stream`. columns: of a match.

    By default there is one bucket for each shuffle partition, for each has all rules.
    """

    rules: Any = None
    columns: spark_types.StructType | None = None
    per_partition: ClassVar[int] = 1

    def matches(self) -> spark_types.StructType:
        """As of a batch."""
        assert self.columns is not None
        return self.columns

    def unit(self, prepared: DataFrame) -> Unit:
        """As of any stream; but no bucket goes ahead of the watermark, by which late rules are the same in all."""
        return dataclasses.replace(super().unit(prepared), ruled=True, lateness=None)

    def packed(self, events: DataFrame) -> DataFrame:
        """The events, and for each bucket the rules."""
        return events.union(self.rules.mapInArrow(shipped(functools.partial(pack_rules, buckets=self.buckets)), PACKED))


def selected(rules: DataFrame) -> DataFrame:
    """The columns of rules that are read; raises InputError for others that look like one of them, and where there is no name."""
    check_columns(rules.columns)
    return rules.select(*(column_named(name) for name in COLUMNS if name in rules.columns))
