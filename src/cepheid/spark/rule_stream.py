"""Rules over a streaming DataFrame, whose rows are a stream, too: what `on_rules` does there.

Comes in: the plan of a query over any event, and a streaming DataFrame of rules. Goes out: a DataFrame of matches, as of any stream. The rows of
rules go to all buckets of keys, and belong to their micro-batch as events do: one that is repeated knows the same rules.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

from cepheid.engine.input.rule_rows import COLUMNS, check_columns
from cepheid.records import record
from cepheid.spark.batch import shuffle_tasks
from cepheid.spark.columns import column_named
from cepheid.spark.shipping import shipped
from cepheid.spark.stream import PACKED, StreamPlan
from cepheid.spark.tasks.packing import pack_rules
from cepheid.spark.tasks.visits import RULE

if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import DataFrame
    from pyspark.sql import types as spark_types

    from cepheid.spark.tasks.unit import Unit


@record(slots=False)
class RuleStream(StreamPlan):
    """Rules over one streaming DataFrame. rules: a streaming one, too, with the columns of rules or of `rows_as_stream`. columns: of a match."""

    rules: Any = None
    columns: spark_types.StructType | None = None

    def matches(self) -> spark_types.StructType:
        """As of a batch."""
        assert self.columns is not None
        return self.columns

    def unit(self, prepared: DataFrame) -> Unit:
        """As of any stream."""
        return dataclasses.replace(super().unit(prepared), ruled=True)

    @property
    def buckets(self) -> int:
        """As of any stream, but for the default: each has all rules."""
        given = self.options.buckets is not None or not self.first.compiled.keys
        return super().buckets if given else shuffle_tasks(self.first.source.frame.sparkSession)

    def packed(self, events: DataFrame) -> DataFrame:
        """The events, and for each bucket the rules."""
        rules = self.rules
        if rules.columns != [RULE]:
            check_columns(rules.columns)
            rules = rules.select(*(column_named(name) for name in COLUMNS if name in rules.columns))
        return events.union(rules.mapInArrow(shipped(functools.partial(pack_rules, buckets=self.buckets)), PACKED))
