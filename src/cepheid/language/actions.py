"""From grammar rules to nodes: one method per rule of grammar.lark, called by the parser as it reduces.

Every method takes the children of its rule, including all symbols, and returns a node, or a `Piece` for a part that is
not a node. A symbol is a string with a type and a place (`driver.Symbol`).
"""

# ruff: noqa: D102 - what a method stands for is written in grammar.lark, under the same name

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cepheid.errors import LimitError, QuerySyntaxError, Span, did_you_mean, quoted
from cepheid.language import syntax
from cepheid.language.limits import MAX_COUNT, MAX_DIGITS
from cepheid.language.words import COMPARISONS, STRATEGIES, UNITS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Piece(NamedTuple):
    """A value that is no node, with its place; parts: the places of its items, where it is a tuple."""

    value: Any
    span: Span
    parts: tuple[Span, ...] = ()

    @property
    def places(self) -> tuple[Span, ...]:
        """Where its items are, or the whole."""
        return self.parts or (self.span,)


NodeType = TypeVar("NodeType", bound=syntax.Node)


def span_of(child: Any) -> Span:
    """The place of a node, a piece or a symbol."""
    if isinstance(child, (syntax.Node, Piece)):
        return child.span
    return Span(child.start_pos, child.end_pos)


def whole(children: Sequence[Any]) -> Span:
    """The place from the first to the last of the children."""
    return Span(span_of(children[0]).start, span_of(children[-1]).end)


def nodes(children: Sequence[Any], kind: type[NodeType]) -> tuple[NodeType, ...]:
    """The children that are nodes of `kind`."""
    return tuple(child for child in children if isinstance(child, kind))


def pieces(children: Sequence[Any]) -> tuple[Any, ...]:
    """The values of the children that are pieces."""
    return tuple(child.value for child in children if isinstance(child, Piece))


def listed(children: Sequence[Any]) -> Piece:
    """The pieces among the children as one: a tuple."""
    found = [child for child in children if isinstance(child, Piece)]
    return Piece(tuple(piece.value for piece in found), whole(children), tuple(piece.span for piece in found))


def has(children: Sequence[Any], terminal: str) -> bool:
    """Whether a symbol of this terminal is among the children."""
    return any(getattr(child, "type", None) == terminal for child in children)


def unquote(written: str) -> str:
    """The name or text between the quotes, doubled quotes made single."""
    quote = written[0]
    return written[1:-1].replace(quote * 2, quote)


def name_of(written: str) -> str:
    """The name that is written plainly or in backticks."""
    return unquote(written) if written.startswith("`") else str(written)


def parameter_of(written: Any) -> syntax.Parameter:
    """`:name` as a node."""
    return syntax.Parameter(name_of(written[1:]), span=span_of(written))


def taking(node: Callable[..., syntax.Node], *places: int) -> Callable[[Any, list[Any]], syntax.Node]:
    """The method of a rule whose node has the children at these places."""
    return lambda _, children: node(*(children[place] for place in places), span=whole(children))


def chain(node: Callable[..., syntax.Node]) -> Callable[[Any, list[Any]], syntax.Node]:
    """The method of a rule whose node has any number of operands, with a word between two."""
    return lambda _, children: node(tuple(children[::2]), span=whole(children))


def time_model(written: Any) -> syntax.TimeModel:
    """The time model of a name; raises QuerySyntaxError for other names."""
    known = syntax.TimeModel.__members__
    found = known.get(written.upper())
    if found is None:
        help_lines = [*did_you_mean(written.upper(), known, quote=""), f"the time models are {quoted(known)}"]
        raise QuerySyntaxError(f"unknown time model `{written}`", help=help_lines, span=span_of(written))
    return found


class QueryActions:
    """The rules of the queries."""

    def query_start(self, children: list[Any]) -> Any:
        return children[0]

    pattern_start = query_start
    condition_start = query_start
    window_start = query_start
    target_start = query_start
    duration_start = query_start

    def query(self, children: list[Any]) -> syntax.Query:
        given: dict[str, Any] = {}
        places: list[tuple[str, tuple[Span, ...]]] = []
        for clause in (child for child in children if isinstance(child, Piece)):
            given.update(clause.value)
            places += [(name, clause.places) for name, item in clause.value.items() if not isinstance(item, syntax.Node)]
        (pattern,) = nodes(children, syntax.Pattern)
        definitions = nodes(children, syntax.Definition)
        return syntax.Query(pattern, definitions=definitions, span=whole(children), places=tuple(places), **given)

    def definition(self, children: list[Any]) -> syntax.Definition:
        name, attributes = (child for child in children if isinstance(child, Piece))
        (query,) = nodes(children, syntax.Query)
        places = (("name", name.places), ("attributes", attributes.places))
        return syntax.Definition(name.value, attributes.value, query, span=whole(children), places=places)

    def strategy(self, children: list[Any]) -> Piece:
        return Piece({"strategy": STRATEGIES[children[0].upper()]}, whole(children))

    def everything(self, children: list[Any]) -> Piece:
        return Piece({"targets": None}, whole(children))

    def targets(self, children: list[Any]) -> Piece:
        return Piece({"targets": nodes(children, syntax.Target)}, whole(children))

    def target(self, children: list[Any]) -> syntax.Target:
        name = children[2:]  # behind AS
        places = tuple(("name", piece.places) for piece in name)
        return syntax.Target(children[0], *pieces(name), span=whole(children), places=places)

    def streams(self, children: list[Any]) -> Piece:
        return Piece({"streams": children[1].value}, whole(children), children[1].parts)

    def partition(self, children: list[Any]) -> Piece:
        keys = listed(children)
        value: dict[str, Any] = {"partition_by": keys.value}
        for window in nodes(children, syntax.Node):
            value["partition_within"] = window
        return Piece(value, whole(children), keys.parts)

    def key(self, children: list[Any]) -> Piece:
        (name,) = (child for child in children if isinstance(child, Piece))
        return name

    def having(self, children: list[Any]) -> Piece:
        return Piece({"having": children[1]}, whole(children))

    def consume(self, children: list[Any]) -> Piece:
        return Piece({"consume": syntax.Consumption[children[2].upper()]}, whole(children))

    def model(self, children: list[Any]) -> Piece:
        return Piece({"model": time_model(children[2])}, whole(children))

    def limit(self, children: list[Any]) -> Piece:
        return Piece({"limit": children[1].value}, whole(children))

    def names(self, children: list[Any]) -> Piece:
        return listed(children)

    def within(self, children: list[Any]) -> syntax.Node:
        window: syntax.Node = children[1]
        return window

    def name(self, children: list[Any]) -> Piece:
        return Piece(name_of(children[0]), span_of(children[0]))

    def integer(self, children: list[Any]) -> Piece:
        (written,) = children
        check_digits(written)
        if not written.isdigit():
            raise QuerySyntaxError(f"expected a whole number, found `{written}`", span=span_of(written))
        value = int(written)
        if value > MAX_COUNT:
            raise LimitError(
                f"the count {written} is too large; the limit is {MAX_COUNT} (MAX_COUNT)",
                help="leave the count out for no limit",
                span=span_of(written),
            )
        return Piece(value, span_of(written))

    def count_parameter(self, children: list[Any]) -> Piece:
        return Piece(parameter_of(children[0]), whole(children))


class DurationActions:
    """The rules of durations, intervals and windows."""

    def gap(self, children: list[Any]) -> syntax.Interval:
        return syntax.Interval(*children[1].value, span=whole(children))

    def window_up_to(self, children: list[Any]) -> syntax.Interval:
        return syntax.Interval(None, False, children[0], False, span=whole(children))

    def window_events(self, children: list[Any]) -> syntax.EventCount:
        return syntax.EventCount(children[0].value, span=whole(children))

    def ends(self, children: list[Any]) -> Piece:
        lower, upper = nodes(children, syntax.Node)
        return Piece((lower, False, upper, False), whole(children))

    def bounds(self, children: list[Any]) -> Piece:
        bounds = [child for child in children if isinstance(child, Piece)]
        if len(bounds) == 1 and bounds[0].value[0] == "=":
            both = bounds[0].value[1]
            return Piece((both, False, both, False), whole(children))
        sides: dict[str, tuple[syntax.Duration | syntax.Parameter, bool]] = {}
        for bound in bounds:
            operator, duration = bound.value
            side = operator[0]
            if operator in {"=", "!="} or side in sides:
                raise QuerySyntaxError(
                    "an interval has one lower bound (`>`, `>=`), one upper bound (`<`, `<=`), or both",
                    help="write [<= 5s], [>= 1s], [= 2s], [1s, 3s] or [> 1s, <= 3s]",
                    span=bound.span,
                )
            sides[side] = (duration, operator == side)
        return Piece((*sides.get(">", (None, False)), *sides.get("<", (None, False))), whole(children))

    def bound(self, children: list[Any]) -> Piece:
        return Piece((COMPARISONS[children[0]], children[1]), whole(children))

    def duration(self, children: list[Any]) -> syntax.Duration:
        written = children[-1]
        found = read_duration(written)
        value = -found.value if len(children) == 2 else found.value
        return syntax.Duration(value, found.unit, span=whole(children))


def read_duration(written: Any) -> syntax.Duration:
    """`5s`, `0.5 seconds` or a bare number as a duration."""
    number = written.rstrip(LETTERS_AND_SPACE) if written.type == "DURATION" else str(written)
    unit = UNITS[written[len(number) :].strip(SPACE).lower()] if written.type == "DURATION" else None
    check_digits(written)
    if "e" in number.lower():
        raise QuerySyntaxError(
            f"the duration `{written}` has an exponent",
            help="durations are exact: write all digits, or use another unit",
            span=span_of(written),
        )
    return syntax.Duration(Decimal(number), unit, span=span_of(written))


SPACE = " \t\r\n\f\v\xa0"
LETTERS_AND_SPACE = SPACE + "".join(sorted({letter for word in UNITS for letter in word + word.upper()}))


def check_digits(written: Any) -> None:
    """Check that a number has at most `MAX_DIGITS` digits and is no larger than a double.

    Raises:
        LimitError: otherwise.
    """
    digits = sum(character.isdigit() for character in written)
    if digits > MAX_DIGITS:
        raise LimitError(
            f"a number has {digits} digits; the limit is {MAX_DIGITS} (MAX_DIGITS)",
            help="round it, or write it with an exponent: 1.5e300",
            span=span_of(written),
        )
    if written.type == "NUMBER" and math.isinf(float(written)):
        raise LimitError(
            f"the number `{written}` is larger than a double can hold; the limit is about 1.8e308",
            help="leave the comparison out: no value is larger",
            span=span_of(written),
        )


class PatternActions:
    """The rules of the patterns."""

    optional = taking(syntax.Optional, 0)
    filtered = taking(syntax.Filter, 0, 2)
    windowed = taking(syntax.Within, 0, 1)
    unless = taking(syntax.Unless, 0, 2)
    every, both, either = chain(syntax.All), chain(syntax.And), chain(syntax.Or)

    def absence(self, children: list[Any]) -> syntax.Absence:
        return syntax.Absence(children[0], children[2], children[4], has(children, "START"), span=whole(children))

    def type(self, children: list[Any]) -> syntax.Type:
        return syntax.Type(name_of(children[0]), span=whole(children))

    def any_event(self, children: list[Any]) -> syntax.Type:
        return syntax.Type(None, span=whole(children))

    def parenthesized(self, children: list[Any]) -> syntax.Node:
        # The place of what is in parentheses includes them, so that the places of larger nodes are balanced.
        node: syntax.Node = dataclasses.replace(children[1], span=whole(children))
        return node

    def select(self, children: list[Any]) -> syntax.Select:
        return syntax.Select(STRATEGIES[children[0].upper()], children[2], span=whole(children))

    def project(self, children: list[Any]) -> syntax.Project:
        names = children[1]
        variables, places = (names.value, (("variables", names.parts),)) if isinstance(names, Piece) else ((), ())
        return syntax.Project(variables, children[3], span=whole(children), places=places)

    def named(self, children: list[Any]) -> syntax.Named:
        return syntax.Named(children[0], children[2].value, span=whole(children), places=(("variable", children[2].places),))

    def iterate(self, children: list[Any]) -> syntax.Iterate:
        gap = children[2] if len(children) == 3 else None
        return syntax.Iterate(children[0], adjacent=children[1] == ":+", gap=gap, span=whole(children))

    def times(self, children: list[Any]) -> syntax.Iterate:
        minimum, maximum = children[2].value
        return syntax.Iterate(
            children[0],
            adjacent=has(children, "ADJACENT_BRACE"),
            gap=children[4] if len(children) == 5 else None,
            minimum=minimum,
            maximum=maximum,
            braces=True,
            span=whole(children),
        )

    def counts(self, children: list[Any]) -> Piece:
        bounds = pieces(children)
        minimum = bounds[0]
        if len(children) == 1:
            return Piece((minimum, minimum), whole(children))
        return Piece((minimum, bounds[1] if len(bounds) == 2 else None), whole(children))

    def sequence(self, children: list[Any]) -> syntax.Sequence:
        return syntax.Sequence(tuple(children[::2]), tuple(children[1::2]), span=whole(children))

    def followed(self, children: list[Any]) -> syntax.Link:
        gap = children[1] if len(children) == 2 else None
        return syntax.Link(str(children[0]), gap, span=whole(children))

    adjacent = followed

    def followed_without(self, children: list[Any]) -> syntax.Link:
        gap = children[4] if len(children) == 5 else None
        return syntax.Link(";", gap, children[2], span=whole(children))

    def then(self, children: list[Any]) -> syntax.Link:
        return syntax.Link("THEN", span=whole(children))


class ExpressionActions:
    """The rules of conditions and values."""

    condition, conjunction = chain(syntax.BooleanOr), chain(syntax.BooleanAnd)
    negated, negative = taking(syntax.Not, 1), taking(syntax.Negative, 1)

    def compare(self, children: list[Any]) -> syntax.Compare:
        left, operator, right = children
        return syntax.Compare(COMPARISONS[operator], left, right, span=whole(children))

    def in_list(self, children: list[Any]) -> syntax.In:
        operand, *options = nodes(children, syntax.Expression)
        return syntax.In(operand, tuple(options), has(children, "NOT"), span=whole(children))

    def in_parameter(self, children: list[Any]) -> syntax.In:
        return syntax.In(children[0], parameter_of(children[-1]), has(children, "NOT"), span=whole(children))

    def between(self, children: list[Any]) -> syntax.Between:
        operand, low, high = nodes(children, syntax.Expression)
        return syntax.Between(operand, low, high, has(children, "NOT"), span=whole(children))

    def like(self, children: list[Any]) -> syntax.Like:
        return syntax.Like(children[0], unquote(children[-1]), has(children, "NOT"), span=whole(children))

    def is_null(self, children: list[Any]) -> syntax.IsNull:
        return syntax.IsNull(children[0], has(children, "NOT"), span=whole(children))

    def arithmetic(self, children: list[Any]) -> syntax.Arithmetic:
        left, operator, right = children
        return syntax.Arithmetic(str(operator), left, right, span=whole(children))

    def number(self, children: list[Any]) -> syntax.Number:
        check_digits(children[0])
        return syntax.Number(str(children[0]), span=whole(children))

    def text(self, children: list[Any]) -> syntax.Text:
        return syntax.Text(unquote(children[0]), span=whole(children))

    def duration_value(self, children: list[Any]) -> syntax.DurationValue:
        return syntax.DurationValue(read_duration(children[0]), span=whole(children))

    def constant(self, children: list[Any]) -> syntax.Constant:
        return syntax.Constant({"TRUE": True, "FALSE": False, "NULL": None}[children[0].type], span=whole(children))

    def instant(self, children: list[Any]) -> syntax.Instant:
        return syntax.Instant(children[0].upper(), unquote(children[1]), span=whole(children))

    def parameter(self, children: list[Any]) -> syntax.Parameter:
        return parameter_of(children[0])

    def word(self, children: list[Any]) -> syntax.Word:
        return syntax.Word(children[0].value, span=whole(children))

    def path(self, children: list[Any]) -> Piece:
        return listed(children)

    def attribute(self, children: list[Any]) -> syntax.Attribute:
        variable, path = children
        places = (("variable", variable.places), ("path", path.parts))
        return syntax.Attribute(variable.value, path.value, span=whole(children), places=places)

    def system(self, children: list[Any]) -> syntax.System:
        places = (("variable", children[0].places),)
        return syntax.System(children[0].value, children[2][1:].lower(), span=whole(children), places=places)

    def local(self, children: list[Any]) -> syntax.Local:
        return syntax.Local(children[0].value, children[2], span=whole(children), places=(("variable", children[0].places),))

    def when(self, children: list[Any]) -> syntax.When:
        return syntax.When(*nodes(children, syntax.Expression), span=whole(children))

    def case(self, children: list[Any]) -> syntax.Case:
        return syntax.Case(nodes(children, syntax.When), *nodes(children, syntax.Expression), span=whole(children))

    def call(self, children: list[Any]) -> syntax.Call:
        arguments = nodes(children, syntax.Expression)
        star = len(children) == 4 and not arguments
        return syntax.Call(
            str(children[0]), arguments, star, has(children, "DISTINCT"), span=whole(children), places=(("name", (span_of(children[0]),)),)
        )

    def call_attribute(self, children: list[Any]) -> syntax.Attribute:
        variable, path = previous_variable(children[0]), children[1]
        places = (("variable", (variable.span,)), ("path", path.parts))
        return syntax.Attribute(variable.name, path.value, previous=True, span=whole(children), places=places)

    def call_system(self, children: list[Any]) -> syntax.System:
        variable = previous_variable(children[0])
        places = (("variable", (variable.span,)),)
        return syntax.System(variable.name, children[2][1:].lower(), previous=True, span=whole(children), places=places)


def previous_variable(call: syntax.Call) -> syntax.Word:
    """The x of `prev(x)`, the only call that has attributes.

    Raises:
        QuerySyntaxError: for any other call.
    """
    if call.name.lower() == "prev" and len(call.arguments) == 1 and isinstance(call.arguments[0], syntax.Word):
        return call.arguments[0]
    raise QuerySyntaxError(
        "only `prev(x)`, of one variable, has attributes",
        help="write prev(x).a for the event of x in the previous iteration, or x.a",
        span=call.span,
    )


class Actions(QueryActions, DurationActions, PatternActions, ExpressionActions):
    """A method for every rule of the grammar."""
