"""The logical plan: what a query means, with every name, type and unit resolved.

`bind` makes it, `rewrite` rewrites it, and the reference and `automata.construct` read it. Patterns mirror the syntax tree, but times are exact
integers in the unit of the time column, conditions are typed, and the top-level conjuncts of a FILTER are separate conditions.

Expressions have four leaves (`Field`, of which `Lag` is a kind, `Time`, `Index`, `Literal`) and one inner node (`Apply`), whose operator is a key of
`OPERATORS`: one table that every printer (Arrow compute, Spark columns) and the reference implement, and that tests iterate over.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from cepheid.language.syntax import NO_SPAN, Consumption, Strategy, TimeModel
from cepheid.logical import calendar
from cepheid.records import names_of, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cepheid.errors import Span
    from cepheid.schema import EventSchema

ANY_VARIABLE = "ANY"
"""The variable that the pattern ANY puts its event in."""


# -------------------------------------------------------------------------------------------------------------------- expressions


@record
class Expression:
    """Base of the typed expressions.

    `type` is one of the canonical types: bool, int64, double, decimal128, utf8, date32, timestamp, duration.
    """

    span: Span = dataclasses.field(default=NO_SPAN, compare=False, repr=False, kw_only=True)


@record
class Field(Expression):
    """The attribute of an event of `variable`: `x.a`, `x.path.to.field`; `previous`: of x in the previous iteration (`prev(x).a`).

    type is the canonical type; `source` the input column's own type (integers of any width read as int64, but uint64 as decimal128(20, 0);
    floats as double, with NaN as NULL). After `localize` the variable is "" (the one event that is looked at). Users' extension types have no hash.
    """

    variable: str
    path: tuple[str, ...]
    type: pa.DataType = dataclasses.field(hash=False)
    source: pa.DataType = dataclasses.field(hash=False)
    previous: bool = False

    @property
    def origin(self) -> tuple[str, ...]:
        """The path in the events as they come."""
        return self.path


LAG = "\0lag "
"""What the names of the columns of lagged attributes begin with; no name in a query has a NUL."""


def lag_column(attribute: str, steps: int) -> str:
    """The name of the column with the attribute of the event so many positions before each one in its partition."""
    return f"{LAG}{steps} {attribute}"


@record
class Lag(Field):
    """`lag(x.a, n)`: a field whose path begins with the column `lag_column(attribute, steps)`.

    Who reads events fills that column before anything else reads them (`engine.input.lags`): so all that reads fields reads it too.
    """

    attribute: str = ""
    steps: int = 1

    @property
    def origin(self) -> tuple[str, ...]:
        """The path in the event that is looked at."""
        return (self.attribute, *self.path[1:])


BEGIN = "\0begin "
"""What the names of the columns begin with that say where events begin (`Begin`)."""


@record
class Begin(Field):
    """Where an event begins: of an event that comes in its own place, of one that a match makes that of the match. All are int64, without NULL.

    kind: "place": the position in the partition. "time": the time, in steps of the time column. "length": how many positions before its own it
    begins. "age": how much time before its own. Who runs a query with such events fills these columns (`engine.run.layers`).
    """

    kind: str = "place"

    @classmethod
    def of(cls, kind: str) -> Self:
        """The value of one event."""
        return cls("", (BEGIN + kind,), pa.int64(), pa.int64(), kind=kind)

    @property
    def origin(self) -> tuple[str, ...]:
        """As people read it."""
        return (f"begin {self.kind}",)


@record
class Time(Expression):
    """`x.$time`: the event's time, of the time column's type (int64 for a numeric one)."""

    variable: str
    type: pa.DataType
    previous: bool = False


@record
class Index(Expression):
    """`x.$index`: the event's position in its partition, int64."""

    variable: str
    type: pa.DataType = pa.int64()
    previous: bool = False


@record
class Derived(Expression):
    """A value of an event that no column has: an evaluation makes it, of the events that it has read of the partition (int64).

    `engine.evaluations.around.negating` makes them all, `testing.runs` by their definition. What asks for them is in `automata.construct`:

    | kind | the value | asked by |
    |---|---|---|
    | place | how many events came before | whatever stores where something may begin from |
    | begin of time | the first place of the time at which this event begins | a negated THEN over events that matches have made |
    | ended | the start of the last match of the negated pattern that has ended, this event included | UNLESS; THEN |
    | ended before | the same without this event | NOT between two patterns |
    | ended before begin | the same before the place at which this event begins | NOT between patterns, of events that matches have made |
    | ended by begin | the same with the first event of the time at which this event begins | THEN, of events that matches have made |
    | ended earlier | the first place of the last time before this one at which a match ended | THEN under POINT |

    The start of the last: the greatest place at which a match of the negated pattern began; -1 without one. number, negated: of that pattern, and its
    text.
    """

    kind: str
    number: int = -1
    negated: str = dataclasses.field(default="", compare=False)
    type: pa.DataType = pa.int64()

    @property
    def rises(self) -> bool:
        """Whether it never falls from one event of a partition to the next."""
        return self.kind not in {"begin of time", "ended before begin", "ended by begin"}

    @property
    def text(self) -> str:
        """As people read it."""
        if self.kind == "ended earlier":
            return f"last time before this one at which {self.negated} has ended"
        return f"start of the last {self.negated} that has {self.kind}" if self.number >= 0 else self.kind


class Open(str):
    """In the place of a constant, a parameter without a value, as sentences write it: `:limit`, `one of :names`."""

    __slots__ = ()


class OpenNumber(int):
    """A parameter without a value in the place of a number of steps, events or repetitions: a number that is written as the parameter.

    text: `:gap`. strict: whether it is no part of the interval that it bounds.
    """

    text: str
    strict: bool

    def __new__(cls, value: int, text: str, *, strict: bool = False) -> Self:
        """`value` is what others compute with."""
        made = super().__new__(cls, value)
        made.text, made.strict = text, strict
        return made

    def __add__(self, other: int) -> Self:
        return type(self)(int(self) + other, self.text, strict=self.strict)

    def __sub__(self, other: int) -> Self:
        return self + -other

    def __str__(self) -> str:
        return self.text


@record
class Literal(Expression):
    """A constant of a canonical type.

    value is None (NULL), bool, int, float, Decimal, str, datetime.date, int (timestamp, duration: steps of the type's unit). parameter: its name,
    where it was given as one, for messages.
    """

    value: object
    type: pa.DataType
    parameter: str = dataclasses.field(default="", compare=False, repr=False, kw_only=True)

    @property
    def known(self) -> bool:
        """Whether it is a value: not NULL, and no parameter without one."""
        return self.value is not None and not isinstance(self.value, Open)


@record
class Apply(Expression):
    """An operator on arguments; see `OPERATORS`."""

    operator: str
    arguments: tuple[Expression, ...]
    type: pa.DataType = dataclasses.field(hash=False)


OPERATORS: dict[str, str] = {
    "and": "all arguments true (bool, bool.. -> bool)",
    "or": "any argument true (bool, bool.. -> bool)",
    "not": "complement (bool -> bool)",
    "=": "equal, false on NULL (t, t -> bool)",
    "!=": "different, false on NULL (t, t -> bool)",
    "<": "less, false on NULL (t, t -> bool)",
    "<=": "less or equal, false on NULL (t, t -> bool)",
    ">": "greater, false on NULL (t, t -> bool)",
    ">=": "greater or equal, false on NULL (t, t -> bool)",
    "in": "equal to one of the literals, false on NULL (t, t.. -> bool)",
    "like": "LIKE with % and _, no escape, false on NULL (utf8, utf8 literal -> bool)",
    "is_null": "is NULL (t -> bool)",
    "cast": "to the Apply's type, by binding's promotion only: int64 -> double | decimal128, decimal128 -> wider decimal128 | double, "
    "timestamp -> finer unit, duration -> finer unit, date32 -> timestamp without zone",
    "+": "sum, NULL on overflow (t, t -> t for int64, double, decimal128; "
    "timestamp, duration -> timestamp; duration, duration -> duration)",
    "-": "difference, NULL on overflow (as +; timestamp, timestamp -> duration)",
    "*": "product, NULL on overflow (t, t -> t; two decimal128 of any scales -> decimal128)",
    "/": "quotient: double, double -> double; two decimal128 of any scales -> decimal128, rounded half up to its scale; "
    "NULL on division by zero and overflow",
    "%": "remainder with the sign of the dividend, NULL on zero (t, t -> t)",
    "negate": "-x, NULL on overflow (t -> t)",
    "abs": "absolute value, NULL on overflow (t -> t)",
    "floor": "greatest integer not above (double -> double, decimal128 -> decimal128, int64 -> int64)",
    "ceil": "least integer not below (double -> double, decimal128 -> decimal128, int64 -> int64)",
    "case": "the value behind the first condition that is true, else the last argument (bool, t, bool, t.., t -> t)",
    "coalesce": "the first argument that is not NULL (t.. -> t)",
    "length": "number of code points (utf8 -> int64)",
    "lower": "ASCII letters in lower case (utf8 -> utf8)",
    "upper": "ASCII letters in upper case (utf8 -> utf8)",
    "concat": "the texts one behind the other, NULL if one is (utf8.. -> utf8)",
    "local_time": "what the clocks of a zone show, NULL on overflow (timestamp with zone, utf8 literal -> timestamp without zone)",
    **{
        name: f"{name} as it stands, in UTC where there is a zone (timestamp{' | date32' * (name in calendar.DATES)} -> int64)"
        for name in calendar.PARTS
    },
}
"""Every operator and function: the meaning and the types. A bool that is NULL counts as false wherever a condition is asked for."""

HALVES = ("upper_half", "lower_half")
"""Operators that no query has: the words of a decimal in units of its scale (decimal128 -> int64). What needs two is kept as these."""


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, arguments after their operator."""
    todo = [expression]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, Apply):
            todo.extend(reversed(node.arguments))


def leaves(expression: Expression) -> tuple[Field | Time | Index, ...]:
    """What an expression reads of events, in its order."""
    return tuple(node for node in walk(expression) if isinstance(node, Field | Time | Index))


def variables_of(expression: Expression) -> frozenset[str]:
    """The variables that an expression speaks of (also through prev)."""
    return frozenset(leaf.variable for leaf in leaves(expression))


def is_local(expression: Expression) -> bool:
    """Whether an expression looks at one event alone, at its attributes (lagged ones too) and its time: one variable, no prev and no $index."""
    read = leaves(expression)
    return len({leaf.variable for leaf in read}) <= 1 and all(isinstance(leaf, Field | Time) and not leaf.previous for leaf in read)


def lags_in(expressions: Iterable[Expression]) -> tuple[Lag, ...]:
    """The lagged attributes that expressions read, each column once."""
    found = (node for expression in expressions for node in walk(expression) if isinstance(node, Lag))
    return tuple({node.path[0]: node for node in found}.values())


def transform(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to every node, arguments first."""
    if isinstance(expression, Apply):
        expression = dataclasses.replace(expression, arguments=tuple(transform(argument, change) for argument in expression.arguments))
    return change(expression)


def localize(expression: Expression) -> Expression:
    """An expression over one variable, about one unnamed event: equal for what is equal but for the variable (also for `prev` of it)."""
    return transform(
        expression, lambda node: dataclasses.replace(node, variable="", previous=False) if isinstance(node, Field | Time | Index) else node
    )


# ----------------------------------------------------------------------------------------------------------------------- patterns


@record
class Interval:
    """A closed interval of time differences, in steps of the time column; upper None is unbounded, upper < lower is empty."""

    lower: int = 0
    upper: int | None = None
    span: Span = dataclasses.field(default=NO_SPAN, compare=False, repr=False, kw_only=True)

    def __contains__(self, difference: int) -> bool:
        return self.lower <= difference and (self.upper is None or difference <= self.upper)


@record
class Pattern:
    """Base of the pattern operators."""

    span: Span = dataclasses.field(default=NO_SPAN, compare=False, repr=False, kw_only=True)

    def children(self) -> Iterator[Pattern]:
        """The patterns directly below, in the order written (negated ones too)."""
        for name in names_of(self.__class__, compared=True):
            yield from _patterns(getattr(self, name))


def _patterns(value: object) -> Iterator[Pattern]:
    if isinstance(value, Pattern):
        yield value
    elif isinstance(value, Link):
        yield from _patterns(value.without)
    elif isinstance(value, tuple):
        for item in value:
            yield from _patterns(item)


@record
class Event(Pattern):
    """`T` (an event of type T, in variable T) or `ANY` (type None, in variable ANY).

    spans: whether a match may have made such an event, which then begins before its own position.
    """

    type: str | None
    spans: bool = dataclasses.field(default=False, kw_only=True)

    @property
    def variable(self) -> str:
        """The variable that the event is put in."""
        return ANY_VARIABLE if self.type is None else self.type


@record
class Named(Pattern):
    """`p AS x`: the support of p is added to x. place: of x."""

    pattern: Pattern
    variable: str
    place: Span = dataclasses.field(default=NO_SPAN, compare=False, repr=False, kw_only=True)


@record
class Link:
    """Between two items of a Sequence: operator ";", ":" or "THEN"; gap, or the pattern that must not lie between; model: of THEN."""

    operator: str
    gap: Interval | None = None
    without: Pattern | None = None
    model: TimeModel | None = None
    span: Span = dataclasses.field(default=NO_SPAN, compare=False, repr=False, kw_only=True)


@record
class Sequence(Pattern):
    """`p ; q : r`: left-associative; len(links) == len(items) - 1 >= 1. A condition sees the variables of its prefixes.

    A sequence that is an item here is a pattern of its own: those that are the same sequence were joined in the syntax tree.
    """

    items: tuple[Pattern, ...]
    links: tuple[Link, ...]


@record
class Chain(Pattern):
    """Base of what has any number of operands, two or more."""

    operands: tuple[Pattern, ...]


@record
class Or(Chain):
    """Union."""


@record
class And(Chain):
    """Intersection: same interval, same mapping."""


@record
class All(Chain):
    """Conjunction: unions of one match of each, in any order."""


@record
class Iterate(Pattern):
    """`p+`, `p:+`, `p+[I]`, and counted: `p{n,m}` (minimum >= 1; maximum None is unbounded)."""

    pattern: Pattern
    adjacent: bool = False
    gap: Interval | None = None
    minimum: int = 1
    maximum: int | None = None


@record
class Optional(Pattern):
    """`p?` as an item of a Sequence: the sequence with p or without it.

    Without it, its two links become one, which is ":" only if both are ":"; so a run of absent items leaves the loosest of its links. At an end
    of the sequence the link goes too. Binding refuses gaps, NOT and THEN beside an optional item.
    """

    pattern: Pattern


@record
class Project(Pattern):
    """`PROJECT L (p)`: the mapping restricted to L, the interval stays."""

    variables: frozenset[str]
    pattern: Pattern


@record
class Select(Pattern):
    """A selection strategy on a sub-pattern."""

    strategy: Strategy
    pattern: Pattern


@record
class Filter(Pattern):
    """`p FILTER c1 AND c2 ..`: each of `conditions` (type bool) is a filter of its own, over its own variables."""

    pattern: Pattern
    conditions: tuple[Expression, ...]


@record
class Within(Pattern):
    """`p WITHIN I`: time(end) - time(start) in the interval."""

    pattern: Pattern
    interval: Interval


@record
class WithinEvents(Pattern):
    """`p WITHIN n EVENTS`: end - start < n in positions of the partition."""

    pattern: Pattern
    count: int


@record
class Unless(Pattern):
    """`p UNLESS q`."""

    pattern: Pattern
    negated: Pattern


@record
class Absence(Pattern):
    """`p NOT FOLLOWED BY n FOR d`; duration in steps of the time column. from_start: d counts from the start of the match, not from its end.

    deadline: the d that was written, where that is an open bound one step above; `deadline_time()` says it. Default: the duration.
    """

    pattern: Pattern
    negated: Pattern
    duration: int
    from_start: bool = False
    deadline: int | None = dataclasses.field(default=None, compare=False, repr=False, kw_only=True)


# ------------------------------------------------------------------------------------------------------------------------ queries


@record
class Measure:
    """One output column that is computed: its name, expression and type (the expression's, but instants in the zone of what they come from).

    In the expression, aggregates are `Apply` nodes with an operator of `AGGREGATES`; their argument is a `Field` (or a `Time`), for count
    the `Field` may have an empty path (the events themselves).
    """

    name: str
    expression: Expression
    type: pa.DataType


AGGREGATES: dict[str, str] = {
    "count": "number of events of the variable (-> int64)",
    "count_distinct": "number of different values that are not NULL (t -> int64)",
    "first": "value at the first position, or at the n-th (t, int64 literal -> t)",
    "last": "value at the last position, or at the n-th from there (t, int64 literal -> t)",
    "only": "value at the only position (t -> t)",
    "min": "least value that is not NULL (t -> t)",
    "max": "greatest value that is not NULL (t -> t)",
    "sum": "sum of the values that are not NULL (int64 -> int64, double -> double, decimal128 -> decimal128)",
    "avg": "mean of the values that are not NULL (-> double)",
    "stddev": "standard deviation of a sample: of the values that are not NULL, two at least (-> double)",
    "collect": "all values in the order of their positions, with NULL (t -> list of t)",
    "start_time": "time of the match's first event",
    "end_time": "time of the match's last event",
    "duration": "end_time - start_time",
    "deadline_time": "the later of end_time and the first argument, start_time and the second; steps of the time column, below 0 for none",
}


@record(slots=False)
class EventDefinition:
    """`EVENT name(attributes) AS (query)`: each match of `plan` is an event. attributes: the names of its measures, in their order."""

    name: str
    attributes: tuple[str, ...]
    plan: QueryPlan

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its partitions that its events have as attributes: of the same value, for no measure has such a name."""
        return tuple(name for name in self.plan.partition_by if name not in self.attributes)


NOTE = "note"
"""The word at the beginning of a lint that is no warning."""


@record(slots=False)
class QueryPlan:
    """A bound query.

    variables: what each match shows, in output order (the targets of SELECT, or `*`: the variables named by AS and the types that stand
    somewhere without AS). Matches that agree on interval and variables are one. measures: the computed columns instead; then one row per
    match, no deduplication. having: the condition that a match must meet (bool). count: SELECT COUNT(*). pattern holds every WITHIN.
    lints: warnings and notes, as printable texts that begin with the word.
    derived_keys: attributes of which equalities say that all events of a match have one, not NULL: they partition the stream further. Positions in
    the result stay those in the partition of partition_by, and events with a NULL in them match nothing, without being counted.
    definitions: of the events that it reads beside those of the schema's stream, in the order in which they are made.
    said: the query and its arguments as text that is the same however it is written (spaces, comments, cases of words).
    """

    pattern: Pattern
    schema: EventSchema
    variables: tuple[str, ...]
    measures: tuple[Measure, ...] = ()
    having: Measure | None = None
    count: bool = False
    strategy: Strategy = Strategy.ALL
    streams: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    consume: Consumption = Consumption.NONE
    model: TimeModel | None = None
    limit: int | None = None
    text: str = ""
    lints: tuple[str, ...] = ()
    strategy_span: Span = dataclasses.field(default=NO_SPAN, compare=False, repr=False, kw_only=True)
    derived_keys: tuple[str, ...] = ()
    definitions: tuple[EventDefinition, ...] = ()
    said: str = dataclasses.field(default="", compare=False, repr=False, kw_only=True)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The lints about what is probably a mistake: all but the notes."""
        return tuple(lint for lint in self.lints if not lint.startswith(f"{NOTE}:"))

    @property
    def notes(self) -> tuple[str, ...]:
        """The lints about what means something else elsewhere."""
        return tuple(lint for lint in self.lints if lint.startswith(f"{NOTE}:"))

    @property
    def computed(self) -> tuple[Measure, ...]:
        """What is computed of each match: the measures that are shown, and HAVING."""
        return self.measures if self.having is None else (*self.measures, self.having)

    @property
    def keys(self) -> tuple[str, ...]:
        """All attributes that partition the stream: those written, then those derived."""
        return self.partition_by + self.derived_keys
