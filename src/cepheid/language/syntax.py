"""The syntax tree: frozen dataclasses, each with its span, and with the places of those of its words that are not nodes.

One class per construct of the language; `;`, `:` and `THEN` chains are one n-ary `Sequence`, as are `OR`, `AND` and `ALL`. These are always flat: a
sequence directly in a sequence is the same sequence, so redundant parentheses leave no trace. Equality ignores spans, so ``parse(print(tree)) ==
tree``. Names are plain strings (backticks removed), keywords are enumerations.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from cepheid.errors import Span
from cepheid.records import names_of, record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

NO_SPAN = Span(0, 0)


class Strategy(Enum):
    """Selection strategies (foundations-cel, section 4; RESTRICTED: the event algebra's rem)."""

    ALL = "ALL"
    ANY = "ANY"
    NXT = "NXT"
    LAST = "LAST"
    MAX = "MAX"
    STRICT = "STRICT"
    RESTRICTED = "RESTRICTED"


class Consumption(Enum):
    """Consumption policies."""

    NONE = "NONE"
    PARTITION = "PARTITION"
    ANY = "ANY"


class TimeModel(Enum):
    """Temporal models of `THEN`."""

    CAYUGA = "CAYUGA"
    COMPLETE_HISTORY = "COMPLETE_HISTORY"
    SNOOPIB = "SNOOPIB"
    ODE = "ODE"
    ACTIVE_OFFICE = "ACTIVE_OFFICE"
    POINT = "POINT"


class Unit(Enum):
    """Time units; the value is the length in nanoseconds. A bare number has no unit."""

    US = 1_000
    MS = 1_000_000
    S = 1_000_000_000
    M = 60_000_000_000
    H = 3_600_000_000_000
    D = 86_400_000_000_000
    W = 604_800_000_000_000


@record
class Node:
    """Base of every node of the tree.

    span: from its first sign to its last. places: (field, where the text has it) for names and clauses that are no nodes; see `place`.
    """

    span: Span = field(default=NO_SPAN, compare=False, repr=False, kw_only=True)
    places: tuple[tuple[str, tuple[Span, ...]], ...] = field(default=(), compare=False, repr=False, kw_only=True)

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one, in the order written."""
        for name in names_of(self.__class__, compared=True):
            yield from _nodes(getattr(self, name))

    def place(self, name: str, number: int = 0) -> Span:
        """Where the text has what the field `name` holds, of a tuple the item `number`; the node's own place where that is not known."""
        found = dict(self.places).get(name, ())
        return found[number] if number < len(found) else self.span


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


# ---------------------------------------------------------------------------------------------------------------- durations, gaps


@record
class Duration(Node):
    """`5s`, `0.5 seconds`, or a bare number (`unit` is None: the unit of a numeric time column).

    Negative values parse; binding refuses them.
    """

    value: Decimal
    unit: Unit | None


@record
class Interval(Node):
    """`[<= 5s]`, `[1s, 3s]`, `[> 1s, <= :most]`, `[= 2s]`: a set of durations; None is unbounded (below: 0)."""

    lower: Duration | Parameter | None
    lower_strict: bool
    upper: Duration | Parameter | None
    upper_strict: bool


@record
class EventCount(Node):
    """`100 EVENTS` or `:n EVENTS` as a window."""

    count: int | Parameter


# ----------------------------------------------------------------------------------------------------------------------- patterns


@record
class Pattern(Node):
    """Base of the pattern nodes."""


@record
class Type(Pattern):
    """`T`: an event of type T. `ANY`: an event of any type (name is None)."""

    name: str | None


@record
class Named(Pattern):
    """`p AS x`."""

    pattern: Pattern
    variable: str


@record
class Link(Node):
    """What stands between two items of a `Sequence`.

    operator is ";", ":" or "THEN"; gap only with ";" and ":"; without (the n of `; NOT n ;`) only with ";".
    """

    operator: str
    gap: Interval | None = None
    without: Pattern | None = None


@record
class Sequence(Pattern):
    """`p ; q : r THEN s`, left-associative: len(links) == len(items) - 1 >= 1.

    Flat: items that are sequences themselves become their items. Parentheses stay where they are not redundant: behind and around THEN, and
    where they say which events a condition speaks of (`A AS x ; (A AS x ; (B FILTER x.v = 1))`: those of the inner x).
    """

    items: tuple[Pattern, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        """Take the items of inner sequences for these."""
        if not any(isinstance(item, Sequence) for item in self.items):
            return
        items: list[Pattern] = []
        links: list[Link] = []
        before: set[str] = set()
        for link, item in zip((None, *self.links), self.items, strict=True):
            links += () if link is None else (link,)
            if isinstance(item, Sequence) and (link is None or (_associates(link, item) and not _is_scope(item, before))):
                items += item.items
                links += item.links
            else:
                items.append(item)
            before.update(_variables(item))
        object.__setattr__(self, "items", tuple(items))
        object.__setattr__(self, "links", tuple(links))


def _associates(link: Link, inner: Sequence) -> bool:
    """Whether `p link (q ; r)` is `(p link q) ; r`: THEN looks at whole matches."""
    return not any(other.operator == "THEN" for other in (link, *inner.links))


def _is_scope(group: Pattern, before: set[str]) -> bool:
    """Whether a condition in a group looks for a variable outside its FILTER, and finds it in the group, but also before it."""
    asked = before.intersection(_reaching(group))
    return bool(asked) and not asked.isdisjoint(_variables(group))


def _shared(group: All) -> set[str]:
    """The variables of more than one operand: a condition before the group speaks of all their events, and not of the first operand's alone."""
    seen: set[str] = set()
    found: set[str] = set()
    for operand in group.operands:
        own = set(_variables(operand))
        found |= own & seen
        seen |= own
    return found


def _reaching(node: Node) -> Iterator[str]:
    """The variables that conditions look for outside their own FILTER."""
    if isinstance(node, Filter):
        below = frozenset(_variables(node.pattern))
        yield from (name for name in _spoken_of(node.condition) if name not in below)
        yield from _reaching(node.pattern)
    else:
        for child in node.children():
            yield from _reaching(child)


def _spoken_of(node: Node) -> Iterator[str]:
    if isinstance(node, Attribute | System | Local) and not getattr(node, "previous", False):
        yield node.variable
    for child in node.children():
        yield from _spoken_of(child)


def _variables(node: Node) -> Iterator[str]:
    """The variables that a pattern puts events in, by AS or as types; negated patterns put none."""
    if isinstance(node, Type):
        yield node.name or "ANY"
    elif isinstance(node, Named):
        yield node.variable
    children = (
        [node.pattern] if isinstance(node, Unless | Absence | Filter) else node.items if isinstance(node, Sequence) else node.children()
    )
    for child in children:
        yield from _variables(child)


@record
class Chain(Pattern):
    """Base of what has any number of operands, two or more; flat."""

    operands: tuple[Pattern, ...]

    def __post_init__(self) -> None:
        """Take the operands of inner ones of its kind for these; those of an ALL stay in parentheses that say what a condition speaks of."""
        if not any(isinstance(operand, type(self)) for operand in self.operands):
            return
        flat: list[Pattern] = []
        before: set[str] = set()
        reached: set[str] = set()
        for operand in self.operands:
            scope = isinstance(operand, All) and (_is_scope(operand, before) or not reached.isdisjoint(_shared(operand)))
            flat += operand.operands if isinstance(operand, type(self)) and not scope else (operand,)
            before.update(_variables(operand))
            reached.update(_reaching(operand))
        object.__setattr__(self, "operands", tuple(flat))


@record
class Or(Chain):
    """`p OR q OR ..`."""


@record
class And(Chain):
    """`p AND q AND ..`: the same complex event matches all."""


@record
class All(Chain):
    """`p ALL q ALL ..`: all happen, in any order."""


@record
class Iterate(Pattern):
    """`p+`, `p:+`, `p+[gap]`, and with braces `p{n}`, `p{n,m}`, `p{n,}`, `p:{n,m}`; `p?` is `Optional`.

    minimum 1 and maximum None is plain `+`. `braces` says that it was written with braces (so `{1,}` prints as it was written).
    """

    pattern: Pattern
    adjacent: bool = False
    gap: Interval | None = None
    minimum: int | Parameter = 1
    maximum: int | Parameter | None = None
    braces: bool = False


@record
class Optional(Pattern):
    """`p?`, only as an item of a sequence."""

    pattern: Pattern


@record
class Project(Pattern):
    """`PROJECT x, y (p)`; `PROJECT NONE (p)` has no variables."""

    variables: tuple[str, ...]
    pattern: Pattern


@record
class Select(Pattern):
    """`STRICT(p)`, `NXT(p)`, `LAST(p)`, `MAX(p)`."""

    strategy: Strategy
    pattern: Pattern


@record
class Filter(Pattern):
    """`p FILTER c`."""

    pattern: Pattern
    condition: Expression


@record
class Within(Pattern):
    """`p WITHIN w`; a single duration `5s` is the interval [<= 5s] (lower None)."""

    pattern: Pattern
    window: Interval | EventCount


@record
class Unless(Pattern):
    """`p UNLESS q`."""

    pattern: Pattern
    negated: Pattern


@record
class Absence(Pattern):
    """`p NOT FOLLOWED BY n FOR d`; d may be an upper bound, as in `FOR [< 10m]`. from_start: `FOR d FROM START`."""

    pattern: Pattern
    negated: Pattern
    duration: Duration | Parameter | Interval
    from_start: bool = False


# -------------------------------------------------------------------------------------------------------------------- expressions


@record
class Expression(Node):
    """Base of conditions and values; which is which is checked when binding."""


@record
class Number(Expression):
    """`1`, `2.5`, `1e3`: the text decides between integer (no point, no exponent), decimal (point) and double (exponent)."""

    text: str


@record
class Text(Expression):
    """`'it''s'`."""

    value: str


@record
class Constant(Expression):
    """`TRUE`, `FALSE`, `NULL` (None)."""

    value: bool | None


@record
class Instant(Expression):
    """`DATE '..'` or `TIMESTAMP '..'`; kind is "DATE" or "TIMESTAMP"."""

    kind: str
    value: str


@record
class DurationValue(Expression):
    """A duration as a value: `x.b - x.a < 5m`."""

    duration: Duration


@record
class Parameter(Expression):
    """`:limit`: a value, and also where a duration, a count or the list behind IN stands."""

    name: str


@record
class Word(Expression):
    """A name alone: an attribute inside `x[..]`, a variable in SELECT and in calls."""

    name: str


@record
class Attribute(Expression):
    """`x.a`, `x.path.to.field`; with `previous`, `prev(x).a`."""

    variable: str
    path: tuple[str, ...]
    previous: bool = False


@record
class System(Expression):
    """`x.$time`, `x.$index` (attribute is "time" or "index"); with `previous`, `prev(x).$time`."""

    variable: str
    attribute: str
    previous: bool = False


@record
class Local(Expression):
    """`x[condition over attributes alone]`."""

    variable: str
    condition: Expression


@record
class Call(Expression):
    """`f(a, b)`; `COUNT(*)` has `star`, `count(DISTINCT x.a)` has `distinct`. The name is kept as written."""

    name: str
    arguments: tuple[Expression, ...]
    star: bool = False
    distinct: bool = False


@record
class When(Node):
    """`WHEN condition THEN value`."""

    condition: Expression
    value: Expression


@record
class Case(Expression):
    """`CASE WHEN c THEN a [WHEN ..] [ELSE b] END`; without ELSE it is NULL where no condition holds."""

    branches: tuple[When, ...]
    otherwise: Expression | None = None


@record
class Negative(Expression):
    """`-e`."""

    operand: Expression


@record
class Arithmetic(Expression):
    """`a + b`; operator is one of ``+ - * / %``."""

    operator: str
    left: Expression
    right: Expression


@record
class Compare(Expression):
    """`a <= b`; operator is one of ``= != < <= > >=`` (`==` and `<>` are read as `=` and `!=`)."""

    operator: str
    left: Expression
    right: Expression


@record
class IsNull(Expression):
    """`e IS [NOT] NULL`."""

    operand: Expression
    negated: bool


@record
class In(Expression):
    """`e [NOT] IN (a, b)`; with `options` a parameter, `e [NOT] IN :list`."""

    operand: Expression
    options: tuple[Expression, ...] | Parameter
    negated: bool


@record
class Between(Expression):
    """`e [NOT] BETWEEN a AND b`."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool


@record
class Like(Expression):
    """`e [NOT] LIKE 'a%'`."""

    operand: Expression
    pattern: str
    negated: bool


@record
class Not(Expression):
    """`NOT c`."""

    operand: Expression


@record
class BooleanAnd(Expression):
    """`a AND b AND ..`, two or more operands."""

    operands: tuple[Expression, ...]


@record
class BooleanOr(Expression):
    """`a OR b OR ..`, two or more operands."""

    operands: tuple[Expression, ...]


# ------------------------------------------------------------------------------------------------------------------------ queries


@record
class Target(Node):
    """One target of SELECT: a variable (a Word without name) or a measure, `expression [AS name]`."""

    expression: Expression
    name: str | None = None


@record
class Definition(Node):
    """`EVENT name(attribute, ..) AS (query)`."""

    name: str
    attributes: tuple[str, ...]
    query: Query


@record
class Query(Node):
    """A whole query.

    targets is None for `*`; streams is empty where FROM is left out; `partition_within` is a WITHIN written behind PARTITION BY (the same
    meaning as straight after the pattern). having: the condition over measures that a match must meet.
    """

    pattern: Pattern
    strategy: Strategy = Strategy.ALL
    targets: tuple[Target, ...] | None = None
    streams: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    partition_within: Interval | EventCount | None = None
    having: Expression | None = None
    consume: Consumption = Consumption.NONE
    model: TimeModel | None = None
    limit: int | Parameter | None = None
    definitions: tuple[Definition, ...] = ()
