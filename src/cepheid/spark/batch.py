"""A query over a batch DataFrame: what runs where.

Comes in: a `Query`, options and a DataFrame. Goes out: a DataFrame, lazily: predicates as columns, what can change nothing left out
before the shuffle, events brought to their keys and sorted, `worker.recognize` over the sorted batches. Query, schema and types are checked
here, before any job; what only the data can tell (NULL times, ties) a task raises, and `translation.translated` gives that its class back.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.engine.inputs import STREAM_COLUMN
from cepheid.engine.measures import attributes_of
from cepheid.errors import InputError, NotSupportedError, SchemaError, nearest, quoted
from cepheid.language.syntax import Consumption
from cepheid.spark.columns import ColumnPrinter, binary_text, column_named, is_binary_text, spark_type
from cepheid.spark.source import source_of
from cepheid.spark.worker import INDEX, LETTER, TIME, Task, pack_schema, recognize, stored_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cepheid.engine.planner import Compiled
    from cepheid.query import Query
    from cepheid.spark.recognition import Options
    from cepheid.spark.source import Source

INT_BITS = 31
"""Letters of so many bits travel as Spark's int, longer ones as long."""


@dataclass(frozen=True)
class Plan:
    """One query over one DataFrame: everything decided, nothing run."""

    query: Query
    options: Options
    source: Source
    compiled: Compiled
    case_sensitive: bool

    @classmethod
    def of(cls, query: Query, options: Options, frame: DataFrame) -> Plan:
        """Bind and compile the query for the frame, and check the options against its columns."""
        source = source_of(frame, query.tree, type=options.type, time=options.time)
        compiled = query.compiled(source.schema)
        case_sensitive = str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
        plan = cls(query, options, source, compiled, case_sensitive)
        plan.check()
        return plan

    def check(self) -> None:
        """Raise SchemaError for options that name no column, keys that cannot be shuffled by, and output columns of one name."""
        for option, names in (("order", self.options.order), ("columns", self.options.columns or ())):
            for name in names:
                if name not in self.source.names:
                    near = nearest(name, self.source.names)
                    raise SchemaError(
                        f"the input has no column `{name}`, which {option}= names",
                        help=([f"did you mean `{near}`?"] if near else []) + [f"the input has {quoted(self.attributes)}"],
                    )
        for name in self.compiled.keys:
            kind = self.source.fields[name]
            if isinstance(kind, spark_types.ArrayType | spark_types.MapType | spark_types.StructType):
                fact = f"`{name}` is {kind.simpleString()}, and a PARTITION BY attribute holds one value"
                raise SchemaError(fact, help="partition by one of its fields")
        if self.options.positions and self.compiled.derived:
            raise NotSupportedError(
                "positions=True asks for positions in the whole stream, and its events are spread over the keys of the query's equalities",
                help=f"write PARTITION BY {', '.join(self.compiled.keys)} to have positions in the partition",
            )
        if self.compiled.consume is Consumption.ANY:
            raise NotSupportedError(
                "CONSUME BY ANY lets a match of one key consume the events of all keys, and Spark reads each key in a task of its own",
                help=("write CONSUME BY PARTITION", "q.run(..) has CONSUME BY ANY over keys, for events that fit on one machine"),
            )
        if self.options.columns is not None and self.compiled.layout.measures:
            what = "COUNT(*)" if self.compiled.plan.count else "measures"
            raise InputError(
                f"columns= names the attributes of shown events, and this query shows {what} instead",
                help="leave columns= out: only what is read is sent",
            )
        self._check_names()

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for field in self.output().fields:
            name = field.name if self.case_sensitive else field.name.lower()
            if name in seen:
                raise SchemaError(
                    f"the output would have two columns named `{seen[name]}` and `{field.name}`, which are one to Spark",
                    help=f"give another name in the query: `AS {field.name}_`",
                )
            seen[name] = field.name

    # ---------------------------------------------------------------------------------------------------------------- what is decided

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that events of the output may have: the input columns."""
        return tuple(name for name in self.source.schema.attributes if name != STREAM_COLUMN)

    @property
    def shown(self) -> tuple[str, ...]:
        """The attributes that events of the output have: none where it has measures."""
        if self.compiled.layout.measures:
            return ()
        return self.attributes if self.options.columns is None else tuple(dict.fromkeys(self.options.columns))

    @property
    def dropping(self) -> bool:
        """Whether events that can change nothing are left out before the shuffle."""
        program = self.compiled.program
        positions_matter = self.options.positions or self.compiled.count_window is not None
        return program.droppable and not positions_matter and 0 not in program.relevant_masks

    @property
    def null_keys(self) -> str:
        """What happens to NULL keys; keys from equalities of the query match nothing when they are NULL."""
        return "drop" if self.compiled.derived else self.options.null_keys

    def output(self) -> spark_types.StructType:
        """The columns of the output, in Spark's types."""
        fields, layout = self.source.fields, self.compiled.layout
        time = fields[layout.time or ""]
        event = [spark_types.StructField(name, fields[name]) for name in self.shown]
        columns = [(name, fields[name]) for name in layout.keys]
        if self.options.positions:
            event.append(spark_types.StructField(INDEX, spark_types.LongType()))
            columns += [("start", spark_types.LongType()), ("end", spark_types.LongType())]
        columns += [("start_time", time), ("end_time", time)]
        columns += self._measure_columns()
        columns += [(variable, spark_types.ArrayType(spark_types.StructType(event))) for variable in layout.variables]
        return spark_types.StructType([spark_types.StructField(name, kind) for name, kind in columns])

    def _measure_columns(self) -> list[tuple[str, spark_types.DataType]]:
        """The measures, or COUNT(*)."""
        return [(field.name, spark_type(stored_type(field.type))) for field in self.compiled.layout.measure_columns]

    # ---------------------------------------------------------------------------------------------------------------- what is run

    def run(self) -> tuple[DataFrame, Observation | None]:
        """The DataFrame of matches, and where the dropped events are counted."""
        prepared, observation = self.prepared()
        task = {name: getattr(self.task(), name) for name in Task.__slots__}
        matches = self.distributed(prepared).mapInArrow(functools.partial(recognize, task), self.output())
        return matches, observation

    def task(self) -> Task:
        """What the tasks have to know."""
        keys = tuple(self.key_columns())
        return Task(
            text=self.query.text,
            args=tuple(self.query.args.items()),
            schema=pack_schema(self.source.schema),
            fingerprint=self.compiled.program.fingerprint,
            keys=keys,
            key_names=self.compiled.keys,
            payload=tuple((name, self.payload_column(name)) for name in self.needed()),
            shown=(*self.shown, INDEX) if self.options.positions else self.shown,
            ties=None if self.options.any_order else tuple(self.tie_columns()),
            tie_names=self.options.order,
            index=self.options.positions,
            time_name=self.compiled.layout.time or "",
        )

    def needed(self) -> tuple[str, ...]:
        """The attributes that the output needs: those shown or read by measures, the keys and the time."""
        layout = self.compiled.layout
        measured = sorted(attributes_of(self.compiled.plan.measures, layout.time))
        return tuple(dict.fromkeys([*self.shown, *measured, *layout.keys, layout.time or ""]))

    def payload_column(self, name: str) -> str:
        """The column of the prepared frame that holds an attribute: for a key the one that was normalized, so that nothing travels twice."""
        return f"k{self.compiled.keys.index(name)}" if name in self.compiled.layout.keys else self.source.names[name]

    def key_columns(self) -> dict[str, Column]:
        """The key, as values that are equal exactly where the keys are: no NaN, no -0.0, no collation."""
        columns = {}
        for index, name in enumerate(self.compiled.keys):
            comparable = self._comparable(name)
            columns[f"k{index}"] = column_named(self.source.names[name]) if comparable is None else comparable
        return columns

    def _comparable(self, name: str) -> Column | None:
        """An attribute as values that Spark compares as the language does, None where the attribute's own are."""
        kind, column = self.source.fields[name], column_named(self.source.names[name])
        if isinstance(kind, spark_types.FloatType | spark_types.DoubleType):
            return F.when(~F.isnan(column), column + F.lit(0.0).cast(kind))
        return None if is_binary_text(kind) else binary_text(column, kind)

    def tie_columns(self) -> dict[str, Column]:
        """What orders events of one key and time."""
        columns = {} if self.source.rank is None else {self.source.rank: column_named(self.source.rank)}
        for index, name in enumerate(self.options.order):
            column = self.source.names[name]
            comparable = self._comparable(name)
            # Under a name of its own where it differs from the attribute, which may be shown too.
            columns[column if comparable is None else f"o{index}"] = column_named(column) if comparable is None else comparable
        return columns

    def letter(self, printer: ColumnPrinter) -> Column:
        """The letter: bit i is predicate i."""
        conditions = self.compiled.predicates.conditions
        wide = len(conditions) > INT_BITS
        letter = F.lit(0).cast("long") if wide else F.lit(0)
        for index, condition in enumerate(conditions):
            value = 1 << index if index < LONG_SIGN else -(1 << index)
            bit = F.lit(value).cast("long") if wide else F.lit(value)
            letter = letter.bitwiseOR(F.when(printer.condition(condition), bit).otherwise(bit.bitwiseXOR(bit)))
        return letter

    def relevant(self, printer: ColumnPrinter) -> Column:
        """Where an event can change anything: the letter has all bits of one of the program's masks; sources understand this form."""
        conditions = self.compiled.predicates.conditions
        cubes = [
            functools.reduce(operator.and_, [printer.condition(each) for bit, each in enumerate(conditions) if mask >> bit & 1])
            for mask in self.compiled.program.relevant_masks
        ]
        # A pattern that nothing can match has no cubes.
        return functools.reduce(operator.or_, cubes) if cubes else F.lit(False)

    def prepared(self) -> tuple[DataFrame, Observation | None]:
        """The events as they travel: keys, time, letter, tie-breakers, payload; without those that can change nothing."""
        source, frame = self.source, self.source.frame
        time = column_named(source.names[self.compiled.layout.time or ""])
        printer = ColumnPrinter(frame.schema, names=source.names, time=self.compiled.layout.time)
        if self.dropping:
            kept = self.relevant(printer)
            frame = frame.where(kept | time.isNull() if self.options.null_time == "error" else kept)
        frame, observation = self._without_nulls(frame, time)
        columns = self.key_columns()
        columns[TIME] = time
        columns[LETTER] = self.letter(printer)
        columns |= self.tie_columns()
        for name in self.needed():
            column = self.payload_column(name)
            columns.setdefault(column, column_named(column))
        return frame.select(*(column.alias(name) for name, column in columns.items())), observation

    def _without_nulls(self, frame: DataFrame, time: Column) -> tuple[DataFrame, Observation | None]:
        """The events that have a key and a time, where the others are dropped, and counted on the way.

        Where the key comes from equalities, a NULL in it is no dropped event: it is one that no match can have.
        """
        counted: dict[str, Column] = {}
        if self.null_keys == "drop" and self.compiled.keys:
            null = functools.reduce(operator.or_, (column.isNull() for column in self.key_columns().values()))
            if self.compiled.derived:
                frame = frame.where(~null)
            elif any(self._nullable(name) for name in self.compiled.keys):
                counted["null_keys"] = null
        if self.options.null_time == "drop" and self._nullable(self.compiled.layout.time or ""):
            counted["null_times"] = time.isNull()
        if not counted:
            return frame, None
        observation = Observation()
        frame = frame.observe(observation, *(F.count(F.when(null, 1)).alias(name) for name, null in counted.items()))
        return frame.where(~functools.reduce(operator.or_, counted.values())), observation

    def _nullable(self, name: str) -> bool:
        """Whether an attribute may be NULL (or NaN, which is)."""
        field = self.source.frame.schema[self.source.names[name]]
        return field.nullable or isinstance(field.dataType, spark_types.FloatType | spark_types.DoubleType)

    def distributed(self, frame: DataFrame) -> DataFrame:
        """Every key in one task, its events in order."""
        keys = list(self.key_columns())
        if keys:
            numbers: list[Any] = [] if self.options.buckets is None else [self.options.buckets]
            frame = frame.repartition(*numbers, *map(column_named, keys))
        else:
            frame = frame.repartition(1)
        ties = [column_named(name).asc_nulls_last() for name in self.tie_columns()]
        return frame.sortWithinPartitions(*map(column_named, [*keys, TIME]), *ties)

    # ---------------------------------------------------------------------------------------------------------------- what is said

    def describe(self) -> str:
        """The plan as text."""
        compiled, options = self.compiled, self.options
        if compiled.keys:
            where = "one key in one task: PARTITION BY " + ", ".join(compiled.keys) + (" (from equalities)" if compiled.derived else "")
        else:
            where = "one task reads all events: the query has no PARTITION BY"
        dropped = "events that can change nothing, before the shuffle" if self.dropping else f"none ({self._why_all()})"
        ties = [*(["the stream's place in FROM"] if self.source.rank else []), *(f"`{name}`" for name in options.order)]
        rest = "then in any order, so that the answer may differ between runs" if options.any_order else "what is equal then is an error"
        guarantee = compiled.guarantee
        lines = {
            "evaluation": f"{guarantee.evaluation}, in mapInArrow over sorted events",
            "tasks": where,
            "left out": dropped,
            "letters": f"{len(compiled.program.predicates)} predicates, by Spark's columns",
            "order": ", ".join(["time", *ties, rest]),
            "update": guarantee.update,
            "state": guarantee.state,
            "delay": guarantee.delay,
            "output": self._columns(),
        }
        width = max(map(len, lines))
        return "\n".join(f"{name.ljust(width)}  {text}" for name, text in lines.items())

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
        if self.compiled.count_window is not None:
            return "the window counts every event"
        return "the pattern looks at the very next event" if not self.compiled.program.droppable else "every event may matter"


LONG_SIGN = 63
