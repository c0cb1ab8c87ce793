"""Fluent Python to syntax tree: the same tree as the parser makes from the text of the pattern.

    event("T").as_("x").followed_by(event("H").as_("y"), gap="<= 5s").where(attr("x", "temp") > param("limit"))

A `PatternBuilder` and an `ExpressionBuilder` are immutable: each method returns a new one. Wherever a pattern is
expected, you can pass its text or a tree (`followed_by("H AS y")`), and the same for conditions
(`where("x.temp > 40")`).

| text                       | builder                                                           |
|----------------------------|-------------------------------------------------------------------|
| `T`, `ANY`                 | `event("T")`, `any_event()`                                       |
| `p AS x`                   | `p.as_("x")`                                                      |
| `p ; q`, `p ;[gap] q`      | `p.followed_by(q)`, `p.followed_by(q, gap="<= 5s")`               |
| `p ; NOT n ; q`            | `p.followed_by(q, without=n)`                                     |
| `p ; NOT n ;[I] q`         | `p.followed_by(q, without=n, gap="<= 5s")`                        |
| `p : q`, `p :[gap] q`      | `p.directly_followed_by(q)`, with `gap` too                       |
| `p THEN q`                 | `p.then(q)`                                                       |
| `p OR q`, `p AND q`        | `p | q`, `p & q`                                                  |
| `p ALL q`                  | `p.all_with(q)`                                                   |
| `p+`, `p:+`, `p{2,3}`      | `p.repeat()`, `p.repeat(adjacent=True)`, `p.repeat(minimum=2, maximum=3)` |
| `p?`                       | `p.optional()`                                                    |
| `p FILTER c`               | `p.where(c)`                                                      |
| `p WITHIN w`               | `p.within("5s")`, `p.within(events=100)`                          |
| `p UNLESS q`               | `p.unless(q)`                                                     |
| `p NOT FOLLOWED BY n FOR d`| `p.not_followed_by(n, within="10m")`                              |
| `PROJECT x, y (p)`         | `p.project("x", "y")`, `p.project()` for NONE                     |
| `STRICT(p)` ...            | `p.strict()`, `p.nxt()`, `p.last()`, `p.max()`                    |
| `SELECT .. WHERE p ..`     | `p.select(..)`                                                    |

In place of a value, a duration, a count or the list of IN, you can pass `param("name")`: `p.within(param("w"))`,
`p.repeat(minimum=param("n"))`, `attr("x", "k").is_in(param("ks"))`.
"""

from __future__ import annotations

import datetime as dt
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from cepheid.errors import BindError, nearest, quoted
from cepheid.language import syntax
from cepheid.language.parser import parse_condition, parse_pattern, parse_target, parse_window
from cepheid.language.printer import to_text
from cepheid.language.syntax import Consumption, Strategy, TimeModel
from cepheid.language.values import duration_of, expression_of
from cepheid.language.words import STRATEGIES, check_name, check_text, is_plain
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from decimal import Decimal

EnumType = TypeVar("EnumType", bound=Enum)

PatternLike: TypeAlias = "PatternBuilder | syntax.Pattern | str"
ConditionLike: TypeAlias = "ExpressionBuilder | syntax.Expression | str"
ValueLike: TypeAlias = "ExpressionBuilder | syntax.Expression | bool | int | float | Decimal | str | dt.date | dt.timedelta | None"
DurationLike: TypeAlias = "ExpressionBuilder | syntax.Duration | syntax.Parameter | dt.timedelta | str"
IntervalLike: TypeAlias = "ExpressionBuilder | syntax.Interval | syntax.Parameter | dt.timedelta | str"
CountLike: TypeAlias = "ExpressionBuilder | syntax.Parameter | int"


def event(name: str) -> PatternBuilder:
    """A pattern that matches one event of the type `name`.

    name: any text that is not empty, also with spaces or quotes. Returns a `PatternBuilder`, whose methods make larger patterns. Raises BindError for
    a name that no query can have.
    """
    return PatternBuilder(syntax.Type(check_name(name)))


def any_event() -> PatternBuilder:
    """A pattern that matches one event of any type: `ANY`. Returns a `PatternBuilder`."""
    return PatternBuilder(syntax.Type(None))


@record
class PatternBuilder:
    """A pattern under construction; `node` is its tree, `str()` its text."""

    node: syntax.Pattern

    def __str__(self) -> str:
        return to_text(self.node)

    def as_(self, variable: str) -> PatternBuilder:
        """`p AS variable`."""
        return PatternBuilder(syntax.Named(self.node, check_name(variable)))

    def followed_by(self, other: PatternLike, *, gap: IntervalLike | None = None, without: PatternLike | None = None) -> PatternBuilder:
        """`p ; other`: later, with anything between.

        Args:
            other: what follows.
            gap: bounds of the time between, as text (`"<= 5s"`, `"1s, 3s"`, `"> :least"`), or a timedelta or `param` (at most so long).
            without: a pattern of which no match lies between (`p ; NOT n ; q`; with a gap `p ; NOT n ;[I] q`).
        """
        negated = None if without is None else _pattern(without)
        return self._linked(syntax.Link(";", _interval(gap), negated), other)

    def directly_followed_by(self, other: PatternLike, *, gap: IntervalLike | None = None) -> PatternBuilder:
        """`p : other`: starting at the very next event."""
        return self._linked(syntax.Link(":", _interval(gap)), other)

    def then(self, other: PatternLike) -> PatternBuilder:
        """`p THEN other`: the next one in the sense of the query's time model."""
        return self._linked(syntax.Link("THEN"), other)

    def _linked(self, link: syntax.Link, other: PatternLike) -> PatternBuilder:
        return PatternBuilder(syntax.Sequence((self.node, _pattern(other)), (link,)))

    def __or__(self, other: PatternLike) -> PatternBuilder:
        """`p OR other`."""
        return PatternBuilder(syntax.Or(_operands(self.node, other, syntax.Or)))

    def __and__(self, other: PatternLike) -> PatternBuilder:
        """`p AND other`: the same complex event matches both."""
        return PatternBuilder(syntax.And(_operands(self.node, other, syntax.And)))

    def all_with(self, other: PatternLike) -> PatternBuilder:
        """`p ALL other`: both happen, in any order."""
        return PatternBuilder(syntax.All(_operands(self.node, other, syntax.All)))

    def repeat(
        self,
        *,
        minimum: CountLike = 1,
        maximum: CountLike | None = None,
        adjacent: bool = False,
        gap: IntervalLike | None = None,
    ) -> PatternBuilder:
        """`p+`, or `p{minimum,maximum}` where one of them is given.

        Args:
            minimum: how often at least; a number or a `param`.
            maximum: how often at most; None for any number.
            adjacent: back to back, `p:+`.
            gap: bounds of the time between two iterations, as in `followed_by`.
        """
        least, most = _count(minimum, repeated=True), None if maximum is None else _count(maximum, repeated=True)
        braces = least != 1 or most is not None
        return PatternBuilder(syntax.Iterate(self.node, adjacent, _interval(gap), least, most, braces))

    def optional(self) -> PatternBuilder:
        """`p?`, as an item of a sequence."""
        return PatternBuilder(syntax.Optional(self.node))

    def where(self, condition: ConditionLike) -> PatternBuilder:
        """`p FILTER condition`; the condition is a text, or built from `attr` and similar functions."""
        return PatternBuilder(syntax.Filter(self.node, _condition(condition)))

    def within(self, duration: IntervalLike | None = None, *, events: CountLike | None = None) -> PatternBuilder:
        """`p WITHIN duration` or `p WITHIN events EVENTS`.

        Args:
            duration: a timedelta, a `param`, or text: `"5s"`, `"[1s, 3s]"`, `"[< 5s]"`.
            events: a number of events, or a `param`; exactly one of the two is given.
        """
        if duration is not None and events is None:
            return PatternBuilder(syntax.Within(self.node, _window(duration)))
        if duration is None and events is not None:
            return PatternBuilder(syntax.Within(self.node, syntax.EventCount(_count(events))))
        raise BindError("a window is either a duration or a number of events", help='write within("5s") or within(events=100)')

    def unless(self, other: PatternLike) -> PatternBuilder:
        """`p UNLESS other`: no match of other inside p's interval."""
        return PatternBuilder(syntax.Unless(self.node, _pattern(other)))

    def not_followed_by(self, other: PatternLike, *, within: DurationLike, from_start: bool = False) -> PatternBuilder:
        """`p NOT FOLLOWED BY other FOR within`: absence.

        Args:
            other: what must not follow.
            within: for how long, as text (`"10m"`, `"< 10m"`), a timedelta, a number (in the unit of a numeric time column) or a `param`.
            from_start: counted from the start of the match, not from its end (`FOR within FROM START`).
        """
        bound = isinstance(within, str) and within.lstrip().startswith("<")
        length = _interval(within) if isinstance(within, str) and bound else _duration(within)
        assert length is not None
        return PatternBuilder(syntax.Absence(self.node, _pattern(other), length, from_start))

    def project(self, *variables: str) -> PatternBuilder:
        """`PROJECT variables (p)`; `PROJECT NONE (p)` without any."""
        return PatternBuilder(syntax.Project(tuple(map(check_name, variables)), self.node))

    def strict(self) -> PatternBuilder:
        """`STRICT(p)`."""
        return self._selected(Strategy.STRICT)

    def nxt(self) -> PatternBuilder:
        """`NXT(p)`."""
        return self._selected(Strategy.NXT)

    def last(self) -> PatternBuilder:
        """`LAST(p)`."""
        return self._selected(Strategy.LAST)

    def max(self) -> PatternBuilder:
        """`MAX(p)`."""
        return self._selected(Strategy.MAX)

    def _selected(self, strategy: Strategy) -> PatternBuilder:
        return PatternBuilder(syntax.Select(strategy, self.node))

    def select(
        self,
        *targets: str | ExpressionBuilder | syntax.Target,
        strategy: Strategy | str = Strategy.ALL,
        from_: str | Sequence[str] = (),
        partition_by: str | Sequence[str] = (),
        having: ConditionLike | None = None,
        consume: Consumption | str = Consumption.NONE,
        model: TimeModel | str | None = None,
        limit: CountLike | None = None,
        definitions: Sequence[syntax.Definition] = (),
    ) -> syntax.Query:
        """The query `SELECT targets .. WHERE p ..`.

        Args:
            targets: variables and measures, as text (`"x"`, `"max(y.temp) AS peak"`) or built; none for `*`.
            strategy: the selection strategy, or its name.
            from_: the streams, in the order that decides ties.
            partition_by: the attributes of the key.
            having: the condition over measures that a match must meet, as text (`"count(f) >= 5"`) or built.
            consume: the consumption policy, or its name.
            model: the time model of THEN, or its name.
            limit: how many matches per trigger at most; a number or a `param`.
            definitions: EVENT definitions (see `definition`).

        Raises:
            BindError: an unknown strategy, policy or model; a first target that has no text behind its strategy.
            LimitError: the query is larger or deeper than a text may be.
        """
        query = syntax.Query(
            self.node,
            strategy=_member(Strategy, strategy),
            targets=tuple(map(_target, targets)) or None,
            streams=_names(from_),
            partition_by=_names(partition_by),
            having=None if having is None else _condition(having),
            consume=_member(Consumption, consume),
            model=None if model is None else _member(TimeModel, model),
            limit=None if limit is None else _count(limit),
            definitions=tuple(definitions),
        )
        # What is built has a text: error messages, explain and stored queries show it.
        to_text(query)
        return query


def definition(name: str, attributes: Sequence[str], query: syntax.Query) -> syntax.Definition:
    """`EVENT name(attributes) AS (query)`, for `select(definitions=[..])`."""
    return syntax.Definition(check_name(name), _names(attributes), query)


# -------------------------------------------------------------------------------------------------------------------- expressions


def attr(variable: str, *path: str) -> ExpressionBuilder:
    """An attribute of the events of a variable: `variable.path`.

    path: the name of the attribute, then, inside structs, the names of fields. Returns an `ExpressionBuilder`, for `PatternBuilder.where` and
    measures. Raises BindError without a path.
    """
    if not path:
        raise BindError(f"attr(`{variable}`) names no attribute", help='write attr("x", "temp")')
    return ExpressionBuilder(syntax.Attribute(check_name(variable), tuple(map(check_name, path))))


def previous(variable: str, *path: str) -> ExpressionBuilder:
    """`prev(variable).path`: the attribute in the previous iteration."""
    if not path:
        raise BindError(f"previous(`{variable}`) names no attribute", help='write previous("x", "temp")')
    return ExpressionBuilder(syntax.Attribute(check_name(variable), tuple(map(check_name, path)), previous=True))


def lag(variable: str, *path: str, steps: int | ExpressionBuilder | syntax.Parameter = 1) -> ExpressionBuilder:
    """`lag(variable.path, steps)`: the attribute of the event so many positions before, in the partition.

    steps: 1 or more, or a `param`. Raises BindError without a path, and for fewer steps.
    """
    count = _count(steps)
    if not path:
        raise BindError(f"lag(`{variable}`) names no attribute", help='write lag("x", "temp")')
    if isinstance(count, int) and count < 1:
        raise BindError(f"lag of {count} steps looks at no event before", help="give a whole number, 1 or more")
    more = () if count == 1 else (count if isinstance(count, syntax.Parameter) else syntax.Number(str(count)),)
    return ExpressionBuilder(syntax.Call("lag", (attr(variable, *path).node, *more)))


def time_of(variable: str) -> ExpressionBuilder:
    """`variable.$time`."""
    return ExpressionBuilder(syntax.System(check_name(variable), "time"))


def index_of(variable: str) -> ExpressionBuilder:
    """`variable.$index`."""
    return ExpressionBuilder(syntax.System(check_name(variable), "index"))


def word(name: str) -> ExpressionBuilder:
    """A single name: an attribute inside `local`, a variable in targets and measures."""
    return ExpressionBuilder(syntax.Word(check_name(name)))


def local(variable: str, condition: ConditionLike) -> ExpressionBuilder:
    """`variable[condition]`: a condition over the attributes of one variable."""
    return ExpressionBuilder(syntax.Local(check_name(variable), _condition(condition)))


def param(name: str) -> ExpressionBuilder:
    """The parameter `:name`, whose value `cepheid.query(.., args=..)` or `Query.with_args` gives.

    It may stand for a value, a duration, a count, or the list of `is_in`. Returns an `ExpressionBuilder`.
    """
    return ExpressionBuilder(syntax.Parameter(check_name(name)))


def literal(value: ValueLike) -> ExpressionBuilder:
    """A value: None, bool, int, float, Decimal, str, date, datetime (with or without zone) or timedelta.

    Raises:
        BindError: the value has no text: an infinite or undefined number, or another type.
    """
    return ExpressionBuilder(expression_of(value))


def case(*branches: tuple[ConditionLike, ValueLike], otherwise: ValueLike = None) -> ExpressionBuilder:
    """`CASE WHEN condition THEN value .. ELSE otherwise END`.

    branches: (condition, value) of each WHEN. otherwise: the value where no condition holds, None for NULL. Raises BindError without a branch.
    """
    if not branches:
        raise BindError("a CASE has no WHEN", help="give case((condition, value), ..), and otherwise= for ELSE")
    given: tuple[object, ...] = branches
    for branch in given:
        if not isinstance(branch, tuple) or len(branch) != 2:
            raise BindError(f"a branch of a CASE is a condition and a value, not {branch!r}", help="give case((condition, value), ..)")
    written = tuple(syntax.When(_condition(condition), _value(value)) for condition, value in branches)
    return ExpressionBuilder(syntax.Case(written, None if otherwise is None else _value(otherwise)))


def call(function: str, *arguments: ValueLike, distinct: bool = False) -> ExpressionBuilder:
    """`function(arguments)`: a function or a measure; `call("count", "*")` is `count(*)`. distinct: `count(DISTINCT x.a)`."""
    if not is_plain(function) or function.lower() in {"not", "distinct"}:
        raise BindError(f"`{function}` cannot be the name of a function", help="the name of a function is a plain word")
    if len(arguments) == 1 and isinstance(arguments[0], str) and arguments[0] == "*":
        return ExpressionBuilder(syntax.Call(function, (), star=True))
    return ExpressionBuilder(syntax.Call(function, tuple(map(_value, arguments)), distinct=distinct))


@record(eq=False)
class ExpressionBuilder:
    """A condition or a value under construction; `node` is its tree, `str()` its text.

    Comparisons and arithmetic build trees; `&`, `|` and `~` are AND, OR and NOT. Python binds `&` tighter than `>`:
    write `(attr("x", "a") > 1) & (attr("x", "b") < 2)`.
    """

    node: syntax.Expression

    __hash__ = None  # type: ignore[assignment] # `==` builds a comparison

    def __str__(self) -> str:
        return to_text(self.node)

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition of a query has no truth value in Python: use & for AND, | for OR, ~ for NOT, and do not chain comparisons"
        )

    def __eq__(self, other: object) -> ExpressionBuilder:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> ExpressionBuilder:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: ValueLike) -> ExpressionBuilder:
        return self._compared("<", other)

    def __le__(self, other: ValueLike) -> ExpressionBuilder:
        return self._compared("<=", other)

    def __gt__(self, other: ValueLike) -> ExpressionBuilder:
        return self._compared(">", other)

    def __ge__(self, other: ValueLike) -> ExpressionBuilder:
        return self._compared(">=", other)

    def _compared(self, operator: str, other: object) -> ExpressionBuilder:
        return ExpressionBuilder(syntax.Compare(operator, self.node, _value(other)))

    def __add__(self, other: ValueLike) -> ExpressionBuilder:
        return self._computed("+", other)

    def __sub__(self, other: ValueLike) -> ExpressionBuilder:
        return self._computed("-", other)

    def __mul__(self, other: ValueLike) -> ExpressionBuilder:
        return self._computed("*", other)

    def __truediv__(self, other: ValueLike) -> ExpressionBuilder:
        return self._computed("/", other)

    def __mod__(self, other: ValueLike) -> ExpressionBuilder:
        return self._computed("%", other)

    def _computed(self, operator: str, other: ValueLike) -> ExpressionBuilder:
        return ExpressionBuilder(syntax.Arithmetic(operator, self.node, _value(other)))

    def __radd__(self, other: ValueLike) -> ExpressionBuilder:
        return literal(other) + self

    def __rsub__(self, other: ValueLike) -> ExpressionBuilder:
        return literal(other) - self

    def __rmul__(self, other: ValueLike) -> ExpressionBuilder:
        return literal(other) * self

    def __rtruediv__(self, other: ValueLike) -> ExpressionBuilder:
        return literal(other) / self

    def __rmod__(self, other: ValueLike) -> ExpressionBuilder:
        return literal(other) % self

    def __neg__(self) -> ExpressionBuilder:
        return ExpressionBuilder(syntax.Negative(self.node))

    def __and__(self, other: ConditionLike) -> ExpressionBuilder:
        return ExpressionBuilder(syntax.BooleanAnd(_operands(self.node, other, syntax.BooleanAnd)))

    def __or__(self, other: ConditionLike) -> ExpressionBuilder:
        return ExpressionBuilder(syntax.BooleanOr(_operands(self.node, other, syntax.BooleanOr)))

    def __invert__(self) -> ExpressionBuilder:
        return ExpressionBuilder(syntax.Not(self.node))

    def is_null(self, *, negated: bool = False) -> ExpressionBuilder:
        """`e IS NULL`, or `e IS NOT NULL`."""
        return ExpressionBuilder(syntax.IsNull(self.node, negated))

    def is_in(self, options: Iterable[ValueLike] | ExpressionBuilder, *, negated: bool = False) -> ExpressionBuilder:
        """`e IN (options)`, or `e NOT IN (options)`; at least one option, or a `param` for the whole list."""
        if isinstance(options, ExpressionBuilder | syntax.Expression):
            return ExpressionBuilder(syntax.In(self.node, _parameter(options, "a list"), negated))
        values = tuple(map(_value, options))
        if not values:
            raise BindError("IN needs at least one value", help="an empty list holds no value: use literal(False)")
        return ExpressionBuilder(syntax.In(self.node, values, negated))

    def between(self, low: ValueLike, high: ValueLike, *, negated: bool = False) -> ExpressionBuilder:
        """`e BETWEEN low AND high`, both included."""
        return ExpressionBuilder(syntax.Between(self.node, _value(low), _value(high), negated))

    def like(self, pattern: str, *, negated: bool = False) -> ExpressionBuilder:
        """`e LIKE pattern`."""
        return ExpressionBuilder(syntax.Like(self.node, check_text(pattern), negated))

    def as_(self, name: str) -> syntax.Target:
        """`e AS name`, a target of `select`."""
        return syntax.Target(self.node, check_name(name))


# -------------------------------------------------------------------------------------------------------- what Python values stand for


def _pattern(value: PatternLike) -> syntax.Pattern:
    if isinstance(value, PatternBuilder):
        return value.node
    return parse_pattern(value) if isinstance(value, str) else value


def _condition(value: ConditionLike) -> syntax.Expression:
    if isinstance(value, ExpressionBuilder):
        return value.node
    return parse_condition(value) if isinstance(value, str) else value


def _value(value: object) -> syntax.Expression:
    return value.node if isinstance(value, ExpressionBuilder) else expression_of(value)


def _target(value: str | ExpressionBuilder | syntax.Target) -> syntax.Target:
    if isinstance(value, ExpressionBuilder):
        return syntax.Target(value.node)
    return parse_target(value) if isinstance(value, str) else value


def _operands(first: Any, other: Any, kind: type[syntax.Or | syntax.And | syntax.All | syntax.BooleanAnd | syntax.BooleanOr]) -> Any:
    """The operands of a chain: what was written without parentheses on the left is one chain."""
    convert = _pattern if isinstance(first, syntax.Pattern) else _condition
    left = first.operands if isinstance(first, kind) else (first,)
    return (*left, convert(other))


def _window(value: IntervalLike) -> syntax.Interval | syntax.EventCount:
    if isinstance(value, str):
        bare = value.strip()
        return parse_window(f"[{bare}]" if bare[:1] in {"<", ">", "="} or ("," in bare and bare[0] != "[") else bare)
    if isinstance(value, dt.timedelta):
        return syntax.Interval(None, False, duration_of(value), False)
    if isinstance(value, ExpressionBuilder | syntax.Parameter):
        return syntax.Interval(None, False, _parameter(value, "a duration"), False)
    if not isinstance(value, syntax.Interval | syntax.EventCount):
        help_ = f'write it as text: "{value}s", or "{value}" in the unit of a numeric time column; a number of events is events={value}'
        raise BindError(f"{value!r} is no duration", help=help_ if isinstance(value, int | float) else 'write "10s", or give a timedelta')
    return value


def _parameter(value: ExpressionBuilder | syntax.Expression, what: str) -> syntax.Parameter:
    """The parameter that stands for a duration, a count or a list; no other expression does."""
    node = value.node if isinstance(value, ExpressionBuilder) else value
    if not isinstance(node, syntax.Parameter):
        raise BindError(f"`{to_text(node)}` cannot stand for {what}", help=f'write {what} itself, or param("name")')
    return node


def _interval(value: IntervalLike | None) -> syntax.Interval | None:
    if value is None:
        return None
    window = _window(value)
    if isinstance(window, syntax.EventCount):
        raise BindError("a gap is a time, not a number of events", help='write gap="<= 5s"; a window has events: within(events=100)')
    return window


def _duration(value: DurationLike) -> syntax.Duration | syntax.Parameter:
    if isinstance(value, syntax.Duration):
        return value
    if isinstance(value, dt.timedelta):
        return duration_of(value)
    window = _window(value)
    if isinstance(window, syntax.EventCount) or window.lower is not None or window.upper is None or window.upper_strict:
        raise BindError(f"`{value}` is not one duration", help='write "10m" or give a timedelta')
    return window.upper


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(map(check_name, (names,) if isinstance(names, str) else names))


def _count(number: CountLike, *, repeated: bool = False) -> int | syntax.Parameter:
    if isinstance(number, ExpressionBuilder | syntax.Expression):
        return _parameter(number, "a count")
    if number < 0 and repeated:
        raise BindError("a pattern cannot be repeated a negative number of times", help="use minimum=1 or more")
    if number < 0:
        raise BindError(f"{number} is not a number of events or matches", help="give a whole number, 1 or more")
    return number


def _member(kind: type[EnumType], value: EnumType | str) -> EnumType:
    if isinstance(value, kind):
        return value
    known = STRATEGIES if kind is Strategy else kind.__members__
    found = known.get(str(value).upper())
    if not isinstance(found, kind):
        near = nearest(str(value).upper(), known)
        guess = f"did you mean {near}? " if near else ""
        raise BindError(f"unknown {WORDS[kind]} `{value}`", help=f"{guess}It is one of {quoted(kind.__members__)}")
    return found


WORDS: dict[type[Enum], str] = {Strategy: "strategy", Consumption: "consumption policy", TimeModel: "time model"}
