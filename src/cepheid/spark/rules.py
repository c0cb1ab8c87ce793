"""`on_rules(rules, ..)`: rules as data over a DataFrame, batch or streaming.

Comes in: rows of rules, options and a DataFrame of events. Goes out: a DataFrame with one row per match, with the same columns whatever each rule
shows, and a row for each rule that is refused. The events come to their keys as those of one query over any events, and there the embedded
`RulesRecognizer` reads them. On a stream the rows of rules are a stream, too, and go to all buckets of keys: so they belong to a micro-batch as
events do, and one that is repeated knows the same rules.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark_types

from cepheid.engine.output.rule_table import OWN
from cepheid.errors import CepheidError, InputError, SchemaError, did_you_mean, quoted
from cepheid.rules import Rules, any_event
from cepheid.rules import rules as rules_of
from cepheid.schema import DEFAULT_TIME
from cepheid.spark.batch import Plan
from cepheid.spark.collecting import collected
from cepheid.spark.columns import column_named
from cepheid.spark.error_rows import map_in_arrow
from cepheid.spark.options import APART, IDLE
from cepheid.spark.queries import QueryPlans
from cepheid.spark.recognition import on
from cepheid.spark.source import arrow_bytes
from cepheid.spark.tasks.absences import FOREVER
from cepheid.spark.tasks.buckets import DECIDED
from cepheid.spark.tasks.rules import recognizer_of, run_rules
from cepheid.spark.tasks.worker import TIME, pack_schema
from cepheid.spark.versions import STREAMS, missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from cepheid.engine.run.rules import RefusedRule
    from cepheid.query import Query
    from cepheid.spark.options import Options
    from cepheid.spark.rule_stream import RuleStream

ERROR = "error"
"""The column that says why a rule is refused; NULL in matches."""

MOST_RULES = 100_000
"""Most rows of a DataFrame of rules: they are collected to the driver, and sent to every task."""


def on_rules(
    rules: object,
    *,
    keys: str | Sequence[str] = (),
    type: str | Column | None = None,  # noqa: A002 - public word
    time: str = DEFAULT_TIME,
    order: str | Sequence[str] = (),
    null_keys: str = "drop",
    null_time: str = "error",
    bad_time: str = "error",
    max_ahead: object = None,
    lateness: object = None,
    partition: str | Sequence[str] = (),
    apart: object = APART,
    idle: object = IDLE,
    until: object = None,
    buckets: int | None = None,
    max_bytes: int | None = None,
) -> RuleRecognition:
    """A function for `DataFrame.transform` that returns one row per match of rules that begin, change and end at their times.

    rules: what `cepheid.rules` takes, or its result, or a DataFrame of Spark with such rows, which is collected when the function is called.
    Where the events are a stream, the rules may be one, too: a topic, a folder, a table that grows.
    keys: the attributes by which the events are distributed: all rules have them, or more, in PARTITION BY; without any one task reads all events.
    buckets: as of `on`; on a stream by default one for each shuffle partition, for each has all rules. The other options are those of `on`.

    The output has the columns `rule`, `since` (from when on its version acts), the keys, `start_time`, `end_time`, `events` (map<string,
    array<struct>>: the events of each variable), `measures` (map<string, string>), and `error`: NULL, or why a rule is refused; such a row has its
    name alone. These are the rows of ``cepheid.rules(..).run(..).to_arrow(keys=..)``, with times in microseconds.

    On a stream there is `decided_time`, too, as of `on`, and a row of a rule is late if an event of its time would be: it is refused, with a row that
    says so, whose `decided_time` is the watermark. Rules that are no stream are those of the start; a query that starts again from its checkpoint
    with more of them takes these as further rows.

    Raises InputError for what are no rows and for unknown option values. The function raises SchemaError and SetupError for columns and sessions that
    cannot be used, and NotSupportedError for a stream on Spark below 4.0.
    """
    given = (keys,) if isinstance(keys, str) else tuple(keys)
    recognition = on(
        any_event(given),
        type=type,
        time=time,
        order=order,
        null_keys=null_keys,
        null_time=null_time,
        bad_time=bad_time,
        max_ahead=max_ahead,
        lateness=lateness,
        partition=partition,
        apart=apart,
        idle=idle,
        until=until,
        buckets=buckets,
        max_bytes=max_bytes,
    )
    known = rules if isinstance(rules, Rules) or hasattr(rules, "isStreaming") else rules_of(rules)
    return RuleRecognition(known, given, recognition.queries[0], recognition.options)


class RuleRecognition:
    """The result of `on_rules`: call it with a DataFrame, or pass it to `DataFrame.transform`."""

    def __init__(self, rules: Any, keys: tuple[str, ...], carrier: Query, options: Options) -> None:
        self.rules, self.keys, self.options = rules, keys, options
        self._carrier = carrier
        self._options: dict[str, Any] = {"keys": keys, "null_keys": options.null_keys}

    def __call__(self, frame: DataFrame) -> DataFrame:
        """The matches in a DataFrame of events, lazily, and the rules that are refused."""
        if not hasattr(frame, "isStreaming"):
            raise InputError("on_rules takes a DataFrame of Spark", help="cepheid.rules(..).run(..) takes other events")
        if frame.isStreaming:
            return self._stream(frame).run()
        plan = self._plan(frame)
        output = self._output(plan)
        rows = self._rows()
        prepared, _ = plan.prepared()
        until = FOREVER if plan.ends else plan.until
        if until is None:
            prepared = plan.with_greatest_time(prepared)
        events = plan.by_key(prepared).sortWithinPartitions(*map(column_named, [TIME, *plan.key_names]), *plan.tie_order)
        work = functools.partial(run_rules, plan.task().plain, rows, self._options, until, arrow_bytes(output))
        matches = map_in_arrow(events, work, output)
        refused = recognizer_of(pack_schema(plan.source.schema), **self._options).change(rows)
        if not refused:
            return matches
        told = [
            tuple(str(each.error) if name == ERROR else each.name if name == "rule" else None for name in output.names) for each in refused
        ]
        return matches.union(frame.sparkSession.createDataFrame(told, output))

    def _stream(self, frame: DataFrame) -> RuleStream:
        if not STREAMS:
            raise missing("rules over a stream", "4.0", "or recognize batches, with until=, on what is there so far")
        from cepheid.spark.rule_stream import RuleStream, selected
        from cepheid.spark.sources.rules import rows_as_stream

        self._check_keys(frame)
        with _said_of_rules(self._carrier.text):
            several = QueryPlans.of((self._carrier,), None, self.options, frame)
        come = not isinstance(self.rules, Rules) and self.rules.isStreaming
        rules = selected(self.rules) if come else rows_as_stream(frame.sparkSession, self._rows())
        return RuleStream(several, rules=rules, columns=self._output(several.first))

    def refused(self, frame: DataFrame) -> tuple[RefusedRule, ...]:
        """The rules that do not act on the events of a DataFrame, and why; runs nothing but the reading of rules from a DataFrame."""
        plan = self._plan(frame)
        return recognizer_of(pack_schema(plan.source.schema), **self._options).change(self._rows())

    def _plan(self, frame: DataFrame) -> Plan:
        """How the events come to their keys: the plan of a query over any of them."""
        self._check_keys(frame)
        with _said_of_rules(self._carrier.text):
            return Plan.of(self._carrier, self.options, frame)

    def _check_keys(self, frame: DataFrame) -> None:
        for key in self.keys:
            if key not in frame.columns:
                help_ = [*did_you_mean(key, frame.columns), f"the input has {quoted(frame.columns)}"]
                raise SchemaError(f"the input has no column `{key}`, which keys= names", help=help_)

    def _rows(self) -> list[dict[str, Any]]:
        if not isinstance(self.rules, Rules) and self.rules.isStreaming:
            raise InputError(
                "the rules are a stream, and the events are not",
                help="give them as a table, or from a file: spark.read in place of readStream",
            )
        return self.rules.rows if isinstance(self.rules, Rules) else rules_of(collected(self.rules, most=MOST_RULES)).rows

    def _output(self, plan: Plan) -> spark_types.StructType:
        """The columns of the output."""
        fields = plan.fields
        own = (*OWN, ERROR, *((DECIDED,) if plan.source.frame.isStreaming else ()))
        taken = [key for key in self.keys if (key if plan.case_sensitive else key.lower()) in own]
        if taken:
            raise InputError(f"the output would have two columns {quoted(taken)}", help="rename the column of the events")
        time = fields[plan.compiled.layout.time or ""]
        event = spark_types.StructType([spark_types.StructField(name, fields[name]) for name in plan.attributes])
        text = spark_types.StringType()
        columns: list[tuple[str, spark_types.DataType]] = [("rule", text), ("since", time), *((key, fields[key]) for key in self.keys)]
        columns += [("start_time", time), ("end_time", time), ("events", spark_types.MapType(text, spark_types.ArrayType(event)))]
        columns += [("measures", spark_types.MapType(text, text)), (ERROR, text)]
        return spark_types.StructType([spark_types.StructField(name, kind) for name, kind in columns])

    def __repr__(self) -> str:
        return f"cepheid.spark.on_rules({self.rules!r}, keys={self.keys!r})"


@contextmanager
def _said_of_rules(carrier: str) -> Iterator[None]:
    """Errors about the options of `on` as those of `on_rules`: the query that carries the events is none that a user wrote. carrier: its text."""
    try:
        yield
    except CepheidError as error:
        if error.text == carrier:
            error.text, error.span = None, None
            error.help = (*error.help, "keys= names the attributes by which all rules are partitioned")
        # There is no columns=: rules show whole events.
        error.help = tuple(line.replace("q.on(", "on_rules(") for line in error.help if "columns=[..]" not in line)
        raise
