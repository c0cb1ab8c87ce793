"""A query over a batch DataFrame: what runs where.

Comes in: a `Query`, options and a DataFrame. Goes out: a DataFrame, lazily: predicates as columns, what can change nothing left out
before the shuffle, events brought to their keys and sorted, `worker.run_task` over the sorted batches. Query, schema and types are checked
here, before any job; what only the data can tell (NULL times, ties) a task raises, and `translation.translated` gives that its class back.
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.engine.input.event_times import time_number
from cepheid.engine.input.named_types import MANY_TYPES, NamedTypes
from cepheid.engine.letters.encoded import travelling
from cepheid.engine.letters.pooled import POOLED_BITS
from cepheid.engine.output.measures import attributes_of
from cepheid.engine.plan.explain import keys_text, meaning_text, refusals_text, rows_text
from cepheid.engine.run.batches import END
from cepheid.errors import InputError, NotSupportedError, SchemaError, did_you_mean, quoted
from cepheid.language.syntax import Consumption
from cepheid.logical.measures import POSITION_COLUMNS
from cepheid.logical.plan import Field, Time
from cepheid.records import record
from cepheid.schema import STREAM_COLUMN
from cepheid.spark.columns import ColumnPrinter, balanced, binary_text, column_named, is_binary_text, spark_type
from cepheid.spark.error_rows import map_in_arrow
from cepheid.spark.hot_keys import hot_slices, spread
from cepheid.spark.slices import refusal, slice_count, sliced, slices
from cepheid.spark.source import arrow_schema, source_of
from cepheid.spark.tasks.absences import UNTIL
from cepheid.spark.tasks.rows import INDEX, stored_type
from cepheid.spark.tasks.worker import LETTER, SLICE, TIME, Task, pack_schema, run_task, value_column
from cepheid.spark.times import above_watermark, count_of, outside, time_column
from cepheid.spark.versions import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from cepheid.engine.plan.compiled import Compiled
    from cepheid.logical.plan import Expression
    from cepheid.query import Query
    from cepheid.spark.options import Options
    from cepheid.spark.source import SparkSource

PLACE = "$place"
"""Where an event stands in the input: copies of events that come in any order come in one and the same."""

SHUFFLE_TASKS, DEFAULT_TASKS = "spark.sql.shuffle.partitions", 200
"""Where the session says how many tasks a shuffle has, and Spark's own number where it says none."""

INT_BITS = 31
"""Letters of so many bits travel as Spark's int, longer ones as long."""


@record(slots=False)
class Plan:
    """One query over one DataFrame: everything decided, nothing run."""

    query: Query
    options: Options
    source: SparkSource
    compiled: Compiled
    case_sensitive: bool
    tasks: int = 1

    @classmethod
    def of(cls, query: Query, options: Options, frame: DataFrame) -> Plan:
        """Bind and compile the query for the frame, and check the options against its columns."""
        source = source_of(frame, query.tree, type=options.type, time=options.time)
        compiled = query.compiled(source.schema)
        case_sensitive = str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
        plan = cls(query, options, source, compiled, case_sensitive, options.buckets or shuffle_tasks(frame.sparkSession))
        plan.check()
        return plan

    def check(self) -> None:
        """Raise SchemaError for options that name no column, keys that cannot be shuffled by, and output columns of one name."""
        self._check_readable()
        self.check_named("order", self.options.order)
        self.check_named("columns", self.options.columns or (), *self.attributes)
        for name in self.options.order:
            kind = self.source.fields[name]
            if isinstance(kind, spark_types.ArrayType | spark_types.MapType | spark_types.StructType | spark_types.NullType):
                raise SchemaError(
                    f"events of equal time cannot be ordered by `{name}`: {kind.simpleString()}", help="order by numbers, text or times"
                )
        for name in self.compiled.keys:
            kind = self.source.fields[name]
            if isinstance(kind, spark_types.ArrayType | spark_types.MapType | spark_types.StructType):
                fact = f"`{name}` is {kind.simpleString()}, and a PARTITION BY attribute holds one value"
                raise SchemaError(fact, help="partition by one of its fields")
        if self.options.positions and self.compiled.derived:
            counted = f"the partition of {quoted(self.compiled.written)}" if self.compiled.written else "the whole stream"
            raise NotSupportedError(
                f"positions=True asks for positions in {counted}, and its events are spread over the keys of the query's equalities",
                help=f"write PARTITION BY {', '.join(self.compiled.keys)} to have positions in the partition",
            )
        if self.compiled.consume is Consumption.ANY:
            raise _consumes_all("CONSUME BY ANY")
        self._check_definitions()
        self._check_hot_keys()
        if self.options.columns is not None and self.compiled.layout.measures:
            what = "COUNT(*)" if self.compiled.plan.count else "measures"
            raise InputError(
                f"columns= names the attributes of shown events, and this query shows {what} instead",
                help="leave columns= out: only what is read is sent",
            )
        self._check_names()

    def check_named(self, option: str, names: Iterable[str], *others: str) -> None:
        """Raise SchemaError where an option names what is no column of the input, and none of others."""
        known = (*self.source.names, *others)
        for name in names:
            if name not in known:
                raise SchemaError(
                    f"the input has no column `{name}`, which {option}= names",
                    help=[*did_you_mean(name, known), f"the input has {quoted(self.attributes)}"],
                )

    def _check_readable(self) -> None:
        """Raise SchemaError for a column that Arrow cannot show, and that an option names or the output would have."""
        schema = self.source.schema
        schema.check_readable((*self.options.order, *(self.options.columns or ())))
        if self.options.columns is None and not self.compiled.layout.measures:
            schema.check_readable(
                schema.unreadable, "or name the attributes that the events of the output are to have: columns=[..]", "or df.drop(..) before"
            )
        if self.options.late:
            schema.check_readable(schema.unreadable, "late=True gives whole events: or df.drop(..) before")

    def _check_definitions(self) -> None:
        """Raise NotSupportedError for a definition of which a match depends on events of other keys of the query, where the query sees it."""
        for definition, layer in zip(self.compiled.plan.definitions, self.compiled.layers, strict=True):
            if self.compiled.keys and layer.consume is Consumption.ANY:
                raise _consumes_all(f"CONSUME BY ANY in the definition of `{definition.name}`")
        for definition in self.compiled.plan.definitions if self.options.null_keys == "group" else ():
            missing = [name for name in self.compiled.written if name not in definition.keys]
            if missing:
                raise NotSupportedError(
                    f'{quoted(missing)} is NULL in the events of `{definition.name}`, which null_keys="group" makes events of one key,'
                    " and Spark reads each key in a task of its own",
                    help=(
                        f"write PARTITION BY {', '.join(self.compiled.written)} in the definition of `{definition.name}` too",
                        'or null_keys="drop"; q.run(..) has null_keys="group" here, for events that fit on one machine',
                    ),
                )

    def _check_hot_keys(self) -> None:
        """Raise NotSupportedError where events of one key cannot be spread, and somebody asks for it."""
        if not self.options.hot_keys or self.tasks == 1:
            return
        if not self.compiled.keys:
            raise NotSupportedError(
                "hot_keys=True spreads the events of a key, and the query has no PARTITION BY", help="leave it out: time is cut without it"
            )
        if self._uncut is not None:
            raise NotSupportedError(
                f"hot_keys=True cuts the time of a key into slices, and {self._uncut}",
                help="leave hot_keys= out: each key is in one task",
            )

    def _check_names(self) -> None:
        if self.options.positions and INDEX in self.shown:
            raise SchemaError(
                f"the events of the output would have two attributes named `{INDEX}`: positions=True adds one of that name",
                help="rename the column, or name the attributes to show: columns=[..]",
            )
        seen: dict[str, str] = {}
        for field in self.output().fields:
            name = field.name if self.case_sensitive else field.name.lower()
            if name in seen:
                identity = self.options.match_id in {seen[name], field.name}
                raise SchemaError(
                    f"the output would have two columns named `{seen[name]}` and `{field.name}`, which are the same to Spark",
                    help=f"give another name in the query: `AS {field.name}_`{', or another one to match_id=' * identity}",
                )
            seen[name] = field.name

    # ---------------------------------------------------------------------------------------------------------------- what is decided

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that events of the output may have: the input columns, and those that EVENT definitions add."""
        return tuple(name for name in self.compiled.schema.attributes if name != STREAM_COLUMN)

    @property
    def incoming(self) -> tuple[str, ...]:
        """The attributes of the events that come in, without those of EVENT definitions."""
        return tuple(name for name in self.source.schema.attributes if name != STREAM_COLUMN)

    @property
    def fields(self) -> dict[str, spark_types.DataType]:
        """The type of each attribute, in Spark's types; integers are wider where events of EVENT definitions have them too."""
        known, own = self.source.fields, self.source.schema.attributes
        made = {name: kind for name, kind in self.compiled.schema.attributes.items() if name not in known or own.get(name) != kind}
        return {**known, **{name: spark_type(stored_type(kind)) for name, kind in made.items()}}

    @property
    def shown(self) -> tuple[str, ...]:
        """The attributes that events of the output have: none where it has measures."""
        if self.compiled.layout.measures:
            return ()
        return self.attributes if self.options.columns is None else tuple(dict.fromkeys(self.options.columns))

    @property
    def dropping(self) -> bool:
        """Whether events that can change nothing are left out before the shuffle."""
        if self.compiled.layers:
            return False
        every = any(0 in program.relevant_masks for program in self.compiled.programs)
        return self.compiled.droppable and not self.compiled.positional and not self.options.positions and not every

    @property
    def one_task(self) -> str | None:
        """Why one task reads all events; None where keys or slices of time spread them."""
        return None if self.compiled.keys else self._uncut

    @property
    def _uncut(self) -> str | None:
        """Why time is not cut into slices; None where it can be."""
        if self.compiled.layers:
            return "EVENT definitions make events of any length"
        return refusal(self.compiled, positions=self.options.positions, tasks=self.tasks)

    @property
    def sliced(self) -> bool:
        """Whether slices of time stand in for keys, or cut those with many events."""
        return self._uncut is None and (not self.compiled.keys or self.options.hot_keys)

    def drops_null(self, key: str) -> bool:
        """Whether events with a NULL in this key are left out; where the key comes from equalities of the query, they match nothing."""
        return key in self.compiled.derived or self.options.null_keys == "drop"

    def output(self) -> spark_types.StructType:
        """The columns of the output, in Spark's types."""
        fields, layout = self.fields, self.compiled.layout
        time = fields[layout.time or ""]
        event = [spark_types.StructField(name, fields[name]) for name in self.shown]
        columns = [(name, fields[name]) for name in layout.keys]
        if self.options.positions:
            event.append(spark_types.StructField(INDEX, spark_types.LongType()))
        columns += [("start_time", time), ("end_time", time)]
        if self.options.positions:
            columns += [(name, spark_types.LongType()) for name in POSITION_COLUMNS]
        columns += self._measure_columns()
        columns += [(variable, spark_types.ArrayType(spark_types.StructType(event))) for variable in layout.variables]
        if self.options.match_id is not None:
            columns.insert(0, (self.options.match_id, spark_types.StringType()))
        return spark_types.StructType([spark_types.StructField(name, kind) for name, kind in columns])

    def _measure_columns(self) -> list[tuple[str, spark_types.DataType]]:
        """The measures, or COUNT(*)."""
        return [(field.name, spark_type(stored_type(field.type))) for field in self.compiled.layout.measure_columns]

    # ---------------------------------------------------------------------------------------------------------------- what is run

    def run(self) -> tuple[DataFrame, Observation | None]:
        """The DataFrame of matches, and where the dropped events are counted."""
        prepared, observation = self.prepared()
        task = self.task().plain | {"sliced": self.sliced}
        (letters,) = letters_of([self])
        work = functools.partial(run_task, task, letters=None if has_own_letters([self]) else letters)
        matches = map_in_arrow(self.distributed(prepared), work, self.output())
        return matches, observation

    def with_greatest_time(self, prepared: DataFrame) -> DataFrame:
        """The events with the greatest time of the table in the column UNTIL."""
        frame, outside_ = self.source.frame, self.outside
        greatest = (frame if outside_ is None else frame.where(~outside_)).agg(F.max(self.time).alias(UNTIL))
        return prepared.crossJoin(F.broadcast(greatest))

    def task(self) -> Task:
        """What the tasks have to know."""
        return Task(
            text=self.query.text,
            args=tuple(self.query.args.items()),
            schema=pack_schema(self.source.schema),
            fingerprint=self.compiled.program.fingerprint,
            keys=self.key_names,
            key_names=self.compiled.keys,
            payload=tuple((name, self.payload_column(name)) for name in self.needed()),
            shown=(*self.shown, INDEX) if self.options.positions else self.shown,
            ties=None if self.options.any_order else self.tie_names,
            tie_names=self.options.order,
            index=self.options.positions,
            time_name=self.compiled.layout.time or "",
            values=tuple(tuple(map(value_column, travelling(program.values))) for program in self.compiled.programs)
            if self.values_travel
            else (),
            reads=tuple((name, self.payload_column(name)) for name in self.read_behind),
            match_id=self.options.match_id,
        )

    @property
    def values_travel(self) -> bool:
        """Whether the values that guards read travel; with lag and with positions they are made behind the shuffle."""
        compiled = self.compiled
        return compiled.valued and not (compiled.lags or compiled.positional or compiled.layers or self.values_shown)

    @property
    def values_shown(self) -> bool:
        """Whether the values that guards read are attributes that travel for the output, too: then tasks take them from there."""
        compiled = self.compiled
        if not compiled.valued or compiled.layers or not self.source.lean:
            return False
        plain = all(isinstance(value, Field | Time) for program in compiled.programs for value in program.values)
        return plain and {*compiled.read_for_values} <= {*self.needed()}

    @property
    def read_behind(self) -> tuple[str, ...]:
        """The attributes of which the tasks make letters and values, with EVENT definitions all that come in; see `Compiled.read_in_order`."""
        if self.compiled.layers:
            return tuple(self.source.schema.attributes)
        return self.compiled.read_for_values if self.values_shown and not self.compiled.lags else self.compiled.read_in_order

    def needed(self) -> tuple[str, ...]:
        """The attributes that the output needs: those shown or read by measures and HAVING, the keys and the time; for identities all keys."""
        if self.compiled.layers:
            return ()
        layout = self.compiled.layout
        measured = sorted(attributes_of(self.compiled.plan.computed, layout.time))
        told = layout.derived if self.options.match_id is not None else ()
        return tuple(dict.fromkeys([*self.shown, *measured, *layout.keys, layout.time or "", *told]))

    def payload_column(self, name: str) -> str:
        """The column of the prepared frame that holds an attribute: that of the key or time, where it has the same values: nothing travels twice."""
        if name == self.compiled.layout.time and self.source.lean:
            return TIME
        shared = name in self.compiled.layout.keys and self.is_comparable(name)
        return f"k{self.compiled.keys.index(name)}" if shared else self.source.names[name]

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns of `key_columns`."""
        return tuple(f"k{index}" for index in range(len(self.compiled.keys)))

    def key_columns(self) -> dict[str, Column]:
        """The key, as values that are equal exactly where the keys are: no NaN, no -0.0, no collation."""
        return {column: self._comparable(name) for column, name in zip(self.key_names, self.compiled.keys, strict=True)}

    def is_comparable(self, name: str) -> bool:
        """Whether Spark compares an attribute's values as the language does."""
        kind = self.source.fields[name]
        return is_binary_text(kind) and not isinstance(kind, spark_types.FloatType | spark_types.DoubleType)

    def _comparable(self, name: str) -> Column:
        """An attribute as values that Spark compares as the language does."""
        kind, column = self.source.fields[name], column_named(self.source.names[name])
        if isinstance(kind, spark_types.FloatType | spark_types.DoubleType):
            return F.when(~F.isnan(column), column + F.lit(0.0).cast(kind))
        return binary_text(column, kind)

    @property
    def tie_names(self) -> tuple[str, ...]:
        """The columns of `tie_columns`: of a name of its own where it differs from the attribute, which may be shown too."""
        ranks = () if self.source.rank is None else (self.source.rank,)
        names = (self.source.names[name] if self.is_comparable(name) else f"o{index}" for index, name in enumerate(self.options.order))
        return (*ranks, *names)

    def tie_columns(self) -> dict[str, Column]:
        """What orders events of one key and time."""
        ranks = [] if self.source.rank is None else [column_named(self.source.rank)]
        return dict(zip(self.tie_names, [*ranks, *map(self._comparable, self.options.order)], strict=True))

    @property
    def tie_order(self) -> list[Column]:
        """What events of one key and time are sorted by."""
        return [column_named(name).asc_nulls_last() for name in self.tie_names]

    def letter(self, printer: ColumnPrinter, parts: Sequence[tuple[Expression, int]]) -> Column:
        """A letter: what the predicates that hold add to it."""
        wide = max((value for _, value in parts), default=0) >> INT_BITS > 0
        bits = [F.lit(0).cast("long") if wide else F.lit(0)]
        for condition, number in parts:
            value = number if number < 1 << LONG_SIGN else -number
            bit = F.lit(value).cast("long") if wide else F.lit(value)
            bits.append(F.when(printer.condition(condition), bit).otherwise(bit.bitwiseXOR(bit)))
        return balanced(lambda one, other: one.bitwiseOR(other), bits)

    def relevant(self, printer: ColumnPrinter) -> Column:
        """Where an event can change anything: the letter has all bits of one of a program's masks; sources understand this form."""
        cubes = [
            balanced(operator.and_, [printer.condition(each) for bit, each in enumerate(alphabet.conditions) if mask >> bit & 1])
            for program, alphabet in zip(self.compiled.programs, self.compiled.alphabets, strict=True)
            for mask in program.relevant_masks
        ]
        # A pattern that nothing can match has no cubes.
        return balanced(operator.or_, cubes) if cubes else F.lit(False)

    @property
    def time(self) -> Column:
        """Event time."""
        return column_named(self.source.names[self.compiled.layout.time or ""])

    def printer(self) -> ColumnPrinter:
        """Prints the predicates as columns of the source."""
        return ColumnPrinter(self.source.frame.schema, names=self.source.names, time=self.compiled.layout.time)

    def prepared(self) -> tuple[DataFrame, Observation | None]:
        """The events as they travel, and where those are counted that are dropped."""
        observation = Observation() if self.dropped else None
        return prepare([self], observed=observation), observation

    def without_dropped(self, frame: DataFrame, *, observed: Observation | str | None) -> DataFrame:
        """The events without those that are dropped, which are counted on the way.

        Where the key comes from equalities, a NULL in it is no dropped event: it is one that no match can have.
        """
        staying = self.staying
        frame = self.counting_dropped(frame, observed)
        return frame if staying is None else self.passing(frame, staying)

    def counting_dropped(self, frame: DataFrame, observed: Observation | str | None) -> DataFrame:
        """The events, of which those are counted that are dropped."""
        return frame.observe(observed, *self.drop_counts()) if self.dropped and observed is not None else frame

    @property
    def staying(self) -> Column | None:
        """Whether an event is not dropped; None where all stay. Never NULL."""
        reasons = self.dropped
        if self.compiled.derived:
            reasons["derived"] = self._null_in(self.compiled.derived)
        return ~functools.reduce(operator.or_, reasons.values()) if reasons else None

    def drop_counts(self) -> list[Column]:
        """How many events are dropped, by reason, as aggregates of the events."""
        return [count_of(reason).alias(name) for name, reason in self.dropped.items()]

    def named_types(self) -> NamedTypes:
        """What is known of the types that the query names: a job that counts the events of each type, and those of them with each key.

        Of many different types it takes the most frequent, and before these all that are like named ones.
        """
        types = NamedTypes(self.compiled.plan, group_nulls=self.options.null_keys == "group")
        if types.column is None:
            return types
        kind = column_named(self.source.names[types.column]).cast("string")
        events = self.source.frame if self.until is None else self.source.frame.where(self.time <= self.until_column)
        keys = {f"k{number}": key for number, key in enumerate(types.keyless)}
        with_keys = (F.count(self._comparable(key)).alias(name) for name, key in keys.items())
        counted = events.groupBy(kind.alias("values")).agg(F.count("*").alias("counts"), *with_keys)
        like = F.lower(F.trim("values")).isin([name.strip().lower() for name in types.named])
        first = counted.orderBy(like.desc_nulls_last(), F.desc("counts")).limit(MANY_TYPES)
        found = to_arrow(first, arrow_schema(first.schema)).combine_chunks()
        types.see_counts(found.select(["values", "counts"]).to_struct_array().chunks)
        for name, key in keys.items():
            types.keyless[key].difference_update(found.filter(pc.greater(found[name], 0))["values"].to_pylist())
        return types

    def passing(self, frame: DataFrame, condition: Column) -> DataFrame:
        """The events where a condition holds; of a table also those whose time is an error: a task raises it, whatever else they are.

        On a stream such events have been found before (`watermark.refusing`).
        """
        if frame.isStreaming:
            return frame.where(above_watermark(condition, self.time))
        return frame.where(condition if self.refused is None else condition | self.refused)

    @property
    def outside(self) -> Column | None:
        """Whether an event's time is outside the bounds of times; None where none can be."""
        return outside(self.time, self.source.fields[self.compiled.layout.time or ""])

    @property
    def refused(self) -> Column | None:
        """Whether an event's time is an error; None where none can be. Never NULL."""
        found = [self.time.isNull()] if self.options.null_time == "error" else []
        if self.options.bad_time == "error" and self.outside is not None:
            found.append(self.outside)
        return functools.reduce(operator.or_, found) if found else None

    @property
    def until(self) -> int | None:
        """The time up to which events are read, in steps of the time column; None for all of them."""
        given = self.options.until
        return None if given is None or self.ends else time_number(given, self.source.schema, argument="until")

    @property
    def ends(self) -> bool:
        """Whether nothing will follow the events."""
        return isinstance(self.options.until, str) and self.options.until == END

    @property
    def until_column(self) -> Column:
        """The same as a column."""
        return time_column(self.until or 0, self.source.fields[self.compiled.layout.time or ""])

    @property
    def since(self) -> Column | None:
        """The time after which a stream gives matches."""
        given = self.options.since
        kind = self.source.fields[self.compiled.layout.time or ""]
        return None if given is None else time_column(time_number(given, self.source.schema, argument="since"), kind)

    @property
    def dropped(self) -> dict[str, Column]:
        """Which events are dropped and counted: by the name of its count, whether an event is. Never NULL."""
        reasons: dict[str, Column] = {}
        if self.options.null_keys == "drop" and any(self._nullable(name) for name in self.compiled.written):
            reasons["null_keys"] = self._null_in(self.compiled.written)
        if self.options.null_time == "drop" and self._nullable(self.compiled.layout.time or ""):
            reasons["null_times"] = self.time.isNull()
        # On a stream they are left out before: they would move the watermark.
        if self.options.bad_time == "drop" and self.outside is not None and not self.source.frame.isStreaming:
            reasons["bad_times"] = self.outside
        return reasons

    def _null_in(self, keys: Iterable[str]) -> Column:
        return functools.reduce(operator.or_, (self._comparable(name).isNull() for name in keys))

    def _nullable(self, name: str) -> bool:
        """Whether an attribute may be NULL (or NaN, which is)."""
        field = self.source.frame.schema[self.source.names[name]]
        return field.nullable or isinstance(field.dataType, spark_types.FloatType | spark_types.DoubleType)

    def distributed(self, frame: DataFrame) -> DataFrame:
        """Every key, or slice of time, in one task, its events in order."""
        keys, ties = list(self.key_names), self.tie_order
        if not self.sliced:
            return self.by_key(frame).sortWithinPartitions(*map(column_named, [*keys, TIME]), *ties)
        assert self.compiled.window is not None
        if self.options.any_order:
            frame = frame.withColumn(PLACE, F.monotonically_increasing_id())
            ties.append(column_named(PLACE))
        known = kept([self]).select(*(column.alias(name) for name, column in self.key_columns().items()), self.time.alias(TIME))
        if keys:
            frame = spread(frame, hot_slices(known, keys, self.compiled.window, self.tasks), keys, self.options.buckets)
        else:
            table = slices(known, self.compiled.window, self.tasks)
            frame = sliced(frame, table, self.tasks, exactly=self.options.buckets is not None)
        keys.append(SLICE)
        return frame.sortWithinPartitions(*map(column_named, [*keys, TIME]), *ties)

    def by_key(self, frame: DataFrame) -> DataFrame:
        """Every key in one task; all events in one where there are no keys."""
        if not self.key_names:
            return frame.repartition(1)
        numbers: list[Any] = [] if self.options.buckets is None else [self.options.buckets]
        return frame.repartition(*numbers, *map(column_named, self.key_names))

    # ---------------------------------------------------------------------------------------------------------------- what is said

    def describe(self) -> str:
        """The plan as text."""
        compiled, options = self.compiled, self.options
        dropped = "events that cannot change the result, before the shuffle" if self.dropping else f"none ({self._why_all()})"
        ties = [*(["the stream's place in FROM"] if self.source.rank else []), *(f"`{name}`" for name in options.order)]
        rest = (
            "then in any order, so the result may differ between runs"
            if options.any_order
            else "events that are then still equal are an error"
        )
        guarantee = compiled.guarantee
        made = ", ".join(definition.name for definition in compiled.plan.definitions)
        lines = {
            "meaning": meaning_text(compiled.plan),
            "evaluation": f"{guarantee.evaluation}, in mapInArrow over sorted events",
            "events": f"{made} are made in the tasks, behind the shuffle" if made else "",
            "not used": refusals_text(compiled),
            "tasks": self._where(),
            "left out": dropped,
            "letters": f"{len(compiled.program.predicates)} predicates, "
            + (
                "behind the shuffle: EVENT definitions add events"
                if compiled.layers
                else f"behind the shuffle: {compiled.looks_back} looks at the events before"
                if compiled.lags
                else "as columns of Spark"
            )
            + ("; positions are counted behind the shuffle" if compiled.positional else ""),
            "order": ", ".join(["time", *ties, rest]),
            "update": guarantee.update,
            "state": guarantee.state,
            "delay": guarantee.delay,
            "output": self._columns(),
        }
        return rows_text(lines)

    def _where(self) -> str:
        """Which task reads what."""
        compiled = self.compiled
        if compiled.keys:
            where = f"one key in one task: PARTITION BY {keys_text(compiled)}; a key with many events"
            if self.sliced:
                return f"{where} in several, by slices of time; which these are says a separate pass over a sample of the events"
            return f"{where}, too" + (": hot_keys=True spreads it" if self._uncut is None else f", for {self._uncut}")
        if self.one_task is not None:
            return f"one task reads all events: the query has no PARTITION BY, and {self.one_task}"
        return (
            f"up to {slice_count(self.tasks)} slices of time in {self.tasks} tasks, each with the events of one window before it; cut at the"
            " quantiles of time, by a separate pass over the events that are not left out, when the result is computed"
        )

    def _columns(self) -> str:
        """The output in one line: a variable's events all have the same attributes."""
        variables = self.compiled.layout.variables
        plain = [f"{field.name} {field.dataType.simpleString()}" for field in self.output() if field.name not in variables]
        if not variables:
            return ", ".join(plain)
        shown = len(self.shown) + self.options.positions
        return f"{', '.join(plain)}; {', '.join(variables)}: arrays of events of {shown} attributes"

    def _why_all(self) -> str:
        if self.options.positions:
            return "positions=True counts every event"
        if self.compiled.layers:
            return "EVENT definitions may ask for every event"
        if self.compiled.lags:
            return "lag looks at every event"
        if self.compiled.positional:
            return f"{'$index' if self.compiled.indexed else 'a window inside the pattern'} counts every event"
        if self.compiled.count_window is not None and not self.compiled.from_adjacency:
            return "the window counts every event"
        return "the pattern looks at the very next event" if not self.compiled.program.droppable else "every event may matter"


def _consumes_all(clause: str) -> NotSupportedError:
    return NotSupportedError(
        f"{clause} lets a match of one key consume the events of all keys, and Spark reads each key in a task of its own",
        help=("write CONSUME BY PARTITION", "q.run(..) has CONSUME BY ANY over keys, for events that fit on one machine"),
    )


def shuffle_tasks(session: SparkSession) -> int:
    """How many tasks a shuffle has in the session."""
    said = str(session.conf.get(SHUFFLE_TASKS, str(DEFAULT_TASKS)))  # Spark checks the default too
    return int(said) if said.isdecimal() and int(said) > 0 else DEFAULT_TASKS


# ------------------------------------------------------------------------------------------------------------------- what travels


def has_own_letters(plans: Sequence[Plan]) -> bool:
    """Whether what travels are the letters of a program, as there is one alone, and they fit; else for each predicate of all whether it holds.

    Nothing travels of queries with lag: their letters are made behind the shuffle, of the columns that they read (`Task.reads`).
    """
    programs = [program for plan in plans if not plan.compiled.lags for program in plan.compiled.programs]
    return len(programs) == 1 and not programs[0].automaton.alphabet.number_bits


def letters_of(plans: Sequence[Plan]) -> tuple[Letters, ...]:
    """Where each query's letters come from."""
    columns = letter_columns(plans)
    own_letters = has_own_letters(plans)
    place = {condition: number for number, (condition, _) in enumerate(itertools.chain(*columns.values()))}

    def letters(plan: Plan) -> Letters:
        if plan.compiled.lags or plan.compiled.layers:
            return (), ()
        every = [alphabet.conditions for alphabet in plan.compiled.alphabets]
        return tuple(columns), None if own_letters else tuple(tuple(place[each] for each in own) for own in every)

    return tuple(map(letters, plans))


def letter_columns(plans: Sequence[Plan]) -> dict[str, list[tuple[Expression, int]]]:
    """Names of the letter columns, and of each the predicates with what they add to its numbers; those of several queries each once."""
    alphabets = [alphabet for plan in plans if not (plan.compiled.lags or plan.compiled.layers) for alphabet in plan.compiled.alphabets]
    if not alphabets:
        return {}
    if has_own_letters(plans):
        (alphabet,) = alphabets
        return {LETTER: list(zip(alphabet.conditions, alphabet.values, strict=True))}
    pool = list(dict.fromkeys(condition for alphabet in alphabets for condition in alphabet.conditions))
    parts = [pool[start : start + POOLED_BITS] for start in range(0, max(len(pool), 1), POOLED_BITS)]
    return {f"{LETTER}{number or ''}": [(each, 1 << bit) for bit, each in enumerate(part)] for number, part in enumerate(parts)}


def kept(plans: Sequence[Plan]) -> DataFrame:
    """The events of the source of several queries, without those that can change nothing in any of them.

    Those that are dropped and counted are still there: the counts are of events of any type, as they are embedded. A filter behind the count would
    not reach the source; this one does.
    """
    first = plans[0]
    frame = first.source.frame
    if first.until is not None:
        early = first.time <= first.until_column
        frame = frame.where(early | first.time.isNull() if first.options.null_time == "error" else early)
    relevance = relevant(plans)
    return frame if relevance is None else first.passing(frame, balanced(operator.or_, [relevance, *first.dropped.values()]))


def relevant(plans: Sequence[Plan]) -> Column | None:
    """Whether an event can change anything in one of several queries; None where all can. NULL: it cannot."""
    if not all(plan.dropping for plan in plans):
        return None
    printer = plans[0].printer()
    return balanced(operator.or_, [plan.relevant(printer) for plan in plans])


def prepare(
    plans: Sequence[Plan],
    *,
    observed: Observation | str | None,
    first: Mapping[str, Column] | None = None,
    last: Iterable[str] = (),
    marked: str | None = None,
) -> DataFrame:
    """The events of queries over one source as they travel: keys, time, letters, tie-breakers, payload; without those that can change nothing.

    first: columns in front. last: the source's that travel besides, behind all others. observed: where the events are counted that are dropped
    for their key or time. marked: the column of `first` that is NULL for the events that would be left out otherwise, and that travel, too.
    """
    plan = plans[0]
    printer = plan.printer()
    columns = {**(first or {}), **plan.key_columns(), TIME: plan.time}
    if marked is None:
        frame = plan.without_dropped(kept(plans), observed=observed)
    else:
        frame = plan.counting_dropped(plan.source.frame, observed)
        conditions = [condition for condition in (relevant(plans), plan.staying) if condition is not None]
        if conditions:
            columns[marked] = F.when(functools.reduce(operator.and_, conditions), columns[marked])
    columns |= {name: plan.letter(printer, parts) for name, parts in letter_columns(plans).items() if parts or not plan.source.lean}
    columns |= {
        value_column(value): printer.value(value)
        for each in plans
        if each.values_travel
        for program in each.compiled.programs
        for value in travelling(program.values)
    }
    columns |= plan.tie_columns()
    read = [each.payload_column(name) for each in plans for name in (*each.needed(), *each.read_behind)]
    for name in [*read, *last]:
        columns.setdefault(name, column_named(name))
    selected: DataFrame = frame.select(*(column.alias(name) for name, column in columns.items()))
    return selected


LONG_SIGN = 63

Letters = tuple[tuple[str, ...], tuple[tuple[int, ...], ...] | None]
"""The letter columns, and for each program of a query (`Compiled.programs`) the number of each predicate's bit in them; None: there is one program,
and the column has its letters. A query with lag or EVENT definitions has no columns, and makes its letters itself."""
