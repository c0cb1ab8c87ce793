"""Several queries over one DataFrame: they share the scan, the predicates, the shuffle, and on a stream the state value.

Comes in: queries with names, options, a DataFrame. Goes out: their plans, the columns of their common output, and the DataFrame of a batch. One query
is the case of one, without the column `query`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import types as spark_types

from cepheid.engine.plan.explain import keys_text
from cepheid.errors import InputError, NotSupportedError, SchemaError
from cepheid.records import record
from cepheid.spark.batch import Letters, Plan, kept, letter_columns, letters_of, prepare
from cepheid.spark.columns import column_named
from cepheid.spark.error_rows import map_in_arrow
from cepheid.spark.source import arrow_bytes
from cepheid.spark.tasks import unit
from cepheid.spark.tasks.absences import FOREVER, UNDECIDED, run_absences
from cepheid.spark.tasks.unit import Unit
from cepheid.spark.tasks.visits import BUCKET, MOMENT_READ, SOURCE
from cepheid.spark.tasks.worker import TIME, run_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from cepheid.query import Query
    from cepheid.spark.options import Options

QUERY = "query"
"""The column of the output that has the name of the query."""


@record(slots=False)
class QueryPlans:
    """The plans of some queries over one source; names: theirs, None for a single query without the column `query`."""

    plans: tuple[Plan, ...]
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, queries: Sequence[Query], names: Sequence[str] | None, options: Options, frame: DataFrame) -> QueryPlans:
        """Bind and compile the queries for the frame; raises InputError for queries that cannot share a shuffle, and as `Plan.of`."""
        plans = tuple(Plan.of(query, options, frame) for query in queries)
        first = plans[0]
        for name, plan in zip(names or (), plans, strict=bool(names)):
            if (plan.compiled.written, plan.compiled.derived) != (first.compiled.written, first.compiled.derived):
                raise InputError(
                    f"the query `{name}` is partitioned by {keys_text(plan.compiled) or 'nothing'}, and `{(names or ('',))[0]}` by"
                    f" {keys_text(first.compiled) or 'nothing'}: several queries share one shuffle",
                    help="call cepheid.spark.on for each group of queries with the same PARTITION BY",
                )
            if plan.source.names != first.source.names or plan.source.rank != first.source.rank:
                raise NotSupportedError(
                    f"the query `{name}` reads other streams than `{(names or ('',))[0]}`",
                    help="name the same streams in FROM, in the same order",
                )
        several = cls(plans, None if names is None else tuple(names))
        several.output()
        return several

    @property
    def first(self) -> Plan:
        """The plan that stands for all where they agree: source, keys, ties, options."""
        return self.plans[0]

    @property
    def letters(self) -> tuple[Letters, ...]:
        """Where each query's letters come from."""
        return letters_of(self.plans)

    # ---------------------------------------------------------------------------------------------------------------- what comes out

    def output(self) -> spark_types.StructType:
        """The columns of the output, in Spark's types: those of all queries; raises SchemaError where two mean different things by one name."""
        fields: dict[str, spark_types.StructField] = {}
        if self.names is not None:
            fields[QUERY] = spark_types.StructField(QUERY, spark_types.StringType())
        for plan in self.plans:
            for field in plan.output():
                name = field.name if plan.case_sensitive else field.name.lower()
                other = fields.setdefault(name, field)
                if self.names is not None and name == QUERY:
                    raise SchemaError(
                        f"the output would have two columns named `{QUERY}`: one names the query of a match",
                        help=f"give another name in the queries, `AS {QUERY}_`, or rename the column of the events",
                    )
                if (other.name, other.dataType) != (field.name, field.dataType):
                    raise SchemaError(
                        f"the output would have a column `{other.name}` ({other.dataType.simpleString()}) of one query and"
                        f" `{field.name}` ({field.dataType.simpleString()}) of another",
                        help=f"give it another name in one of them: `AS {field.name}_`",
                    )
        if self.first.options.undecided:
            other = fields.setdefault(UNDECIDED, spark_types.StructField(UNDECIDED, spark_types.BooleanType()))
            if other.name != UNDECIDED or other.dataType != spark_types.BooleanType():
                raise SchemaError(
                    f"the output would have two columns named `{UNDECIDED}`: undecided=True adds one of that name",
                    help=f"give the other one another name in the query: `AS {UNDECIDED}_`",
                )
        return spark_types.StructType(list(fields.values()))

    # ---------------------------------------------------------------------------------------------------------------- what is run

    def run(self) -> tuple[DataFrame, Observation | None]:
        """The DataFrame of matches of a batch, and where the dropped events are counted."""
        delayed = self.first.options.undecided or any(plan.compiled.absences or plan.compiled.layers for plan in self.plans)
        if self.names is None and not delayed:
            return self.first.run()
        observation = Observation() if self.first.dropped else None
        prepared = prepare(self.plans, observed=observation)
        if delayed:
            return self._decided(prepared), observation
        lead = self._lead()
        packed = [task | {"sliced": lead.sliced} for task in self._tasks()]
        output = self.output()
        work = functools.partial(run_tasks, packed, self.letters, self.names or (), arrow_bytes(output))
        return map_in_arrow(lead.distributed(prepared), work, output), observation

    def drop_counts(self) -> dict[str, int]:
        """How many events of a batch are dropped, by reason: a job of its own, which reads the events."""
        row = kept(self.plans).agg(*self.first.drop_counts()).first()
        return {} if row is None else row.asDict()

    def warnings(self) -> tuple[str, ...]:
        """What is doubtful in the types of a batch's events, see `NamedTypes`: a job for each query."""
        names = ("",) if self.names is None else tuple(f"{name}: " for name in self.names)
        return tuple(f"{name}{line}" for name, plan in zip(names, self.plans, strict=True) for line in plan.named_types().warnings)

    def _decided(self, prepared: DataFrame) -> DataFrame:
        """The matches that are decided by `until`, of queries with absences or definitions among them: a task runs the state of a stream."""
        first = self.first
        unit, until = self.unit(prepared, output=self.output()), first.until
        ends = first.ends or not any(plan.compiled.decides_later for plan in self.plans)
        if until is None and not ends:
            prepared = first.with_greatest_time(prepared)
        frame = first.by_key(prepared).sortWithinPartitions(*map(column_named, [TIME, *first.key_names]), *first.tie_order)
        complete = FOREVER if ends else until
        return map_in_arrow(frame, functools.partial(run_absences, dataclasses.asdict(unit), complete), self.output())

    def unit(self, prepared: DataFrame, *, output: spark_types.StructType, late: bool = False) -> Unit:
        """What the state of a stream has to know; prepared: the events as they travel."""
        fields = [field for field in prepared.schema if field.name not in {BUCKET, SOURCE, MOMENT_READ}]
        # A letter that is always 0 does not travel on the way to `run_absences` (`worker.with_letter`).
        fields += [
            spark_types.StructField(name, spark_types.IntegerType()) for name in letter_columns(self.plans) if name not in prepared.columns
        ]
        return Unit(
            tasks=tuple(self._tasks()),
            letters=self.letters,
            ties=self.first.tie_names,
            queries=self.names,
            late=tuple((name, self.first.payload_column(name)) for name in self.first.incoming) if late else None,
            output=arrow_bytes(output),
            schema=arrow_bytes(spark_types.StructType(fields)),
            max_bytes=self.first.options.max_bytes,
            null_keys=self.first.options.null_keys,
            page_keys=unit.FORCED,
        )

    def _tasks(self) -> list[dict[str, Any]]:
        """What the tasks have to know of each query."""
        return [plan.task().plain | {"name": name} for plan, name in zip(self.plans, self.names or [None], strict=True)]

    def _lead(self) -> Plan:
        """The plan by which events are distributed: slices must be long enough for the longest window, and right for every query."""
        unsliced = [plan for plan in self.plans if not plan.sliced]
        return unsliced[0] if unsliced else max(self.plans, key=lambda plan: plan.compiled.window or 0)

    def describe(self) -> str:
        """The plans as text."""
        if self.names is None:
            return self.first.describe()
        predicates = sum(map(len, letter_columns(self.plans).values()))
        shared = f"{len(self.plans)} queries share one scan, one shuffle and {predicates} predicates"
        return "\n\n".join([shared, *(f"{name}\n{plan.describe()}" for name, plan in zip(self.names, self.plans, strict=True))])
