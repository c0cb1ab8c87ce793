"""Syntax tree to text, so that parsing the text gives the same tree.

Parentheses are only where the tree needs them, names are in backticks only where the grammar needs them, and every
construct has one spelling. A tree that the parser cannot produce (a `Number` with a sign, a control character in a
name) has no text that parses to it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from cepheid.errors import BindError
from cepheid.language import syntax
from cepheid.language.limits import check_size
from cepheid.language.syntax import Consumption, Strategy
from cepheid.language.words import (
    RESERVED_AS_TARGET,
    RESERVED_AS_TYPE,
    RESERVED_IN_EXPRESSIONS,
    RESERVED_IN_PROJECT,
    UNIT_SYMBOLS,
    write_name,
)

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable


class Level(IntEnum):
    """How tightly a construct binds; an operand below the level of its place is put into parentheses."""

    CLAUSE = 0
    OR = 1
    AND = 2
    ALL = 3
    SEQUENCE = 4
    ITEM = 5
    NOT = 6
    PREDICATE = 7
    SUM = 8
    PRODUCT = 9
    UNARY = 10
    PRIMARY = 11


LEVELS: dict[type[syntax.Node], Level] = {
    syntax.Filter: Level.CLAUSE,
    syntax.Within: Level.CLAUSE,
    syntax.Unless: Level.CLAUSE,
    syntax.Absence: Level.CLAUSE,
    syntax.Or: Level.OR,
    syntax.And: Level.AND,
    syntax.All: Level.ALL,
    syntax.Sequence: Level.SEQUENCE,
    syntax.BooleanOr: Level.OR,
    syntax.BooleanAnd: Level.AND,
    syntax.Not: Level.NOT,
    syntax.Compare: Level.PREDICATE,
    syntax.IsNull: Level.PREDICATE,
    syntax.In: Level.PREDICATE,
    syntax.Between: Level.PREDICATE,
    syntax.Like: Level.PREDICATE,
    syntax.Negative: Level.UNARY,
}
"""The level of each construct; patterns that are not here are items, expressions primaries."""

ARITHMETIC_LEVELS = {"+": Level.SUM, "-": Level.SUM, "*": Level.PRODUCT, "/": Level.PRODUCT, "%": Level.PRODUCT}


def to_text(node: syntax.Node, *, indent: int | None = None) -> str:
    """The canonical text of a query, a pattern, an expression, an interval or a duration.

    Args:
        node: the tree. `parse(to_text(query)) == query`, and so with `parse_pattern` and `parse_condition`.
        indent: None for one line; otherwise every clause stands on a line of its own, and the clauses of the pattern
            (FILTER, WITHIN, UNLESS, NOT FOLLOWED BY) and nested queries are moved right by so many spaces.

    Raises:
        LimitError: the tree is larger or deeper than a text may be.
        BindError: the first target begins with a parenthesis and stands behind a strategy, `SELECT MAX (x.a) * 2`.

    Takes time linear in the length of the text.
    """
    check_size(node)
    if isinstance(node, syntax.Query):
        return _query(node, indent, 0)
    if isinstance(node, syntax.Pattern):
        return _pattern(node)
    if isinstance(node, syntax.Expression):
        return Expressions().write(node)
    return PARTS[type(node)](node)


# ------------------------------------------------------------------------------------------------------------------------ queries


def _query(query: syntax.Query, indent: int | None, depth: int) -> str:
    lines = [_definition(definition, indent, depth) for definition in query.definitions]
    strategy = "" if query.strategy is Strategy.ALL else f"{query.strategy.value} "
    targets = "*" if query.targets is None else ", ".join(_target(target) for target in query.targets)
    if strategy and targets.startswith("("):
        raise BindError(
            f"a first target in parentheses cannot be written after {query.strategy.value}: it would be read as a function's arguments",
            help="put another target first, or write the measure so that it does not begin with a parenthesis",
        )
    lines.append(f"SELECT {strategy}{targets}")
    if query.streams:
        lines.append(f"FROM {_names(query.streams)}")
    base, clauses = _clauses(query.pattern)
    lines.append(f"WHERE {_pattern(base, Level.OR if clauses else Level.CLAUSE)}")
    lines += [" " * (indent or 0) + clause for clause in clauses]
    if query.partition_by:
        window = "" if query.partition_within is None else f" WITHIN {_window(query.partition_within)}"
        lines.append(f"PARTITION BY {_names(query.partition_by)}{window}")
    if query.having is not None:
        lines.append(f"HAVING {Expressions().write(query.having)}")
    if query.consume is not Consumption.NONE:
        lines.append(f"CONSUME BY {query.consume.value}")
    if query.model is not None:
        lines.append(f"TIME MODEL {query.model.value}")
    if query.limit is not None:
        lines.append(f"LIMIT {count_text(query.limit)}")
    return " ".join(lines) if indent is None else ("\n" + " " * (indent * depth)).join(lines)


def _definition(definition: syntax.Definition, indent: int | None, depth: int) -> str:
    head = f"EVENT {write_name(definition.name)}({_names(definition.attributes)}) AS ("
    query = _query(definition.query, indent, depth + 1)
    if indent is None:
        return f"{head}{query})"
    return f"{head}\n{' ' * indent * (depth + 1)}{query})"


def _target(target: syntax.Target) -> str:
    # A WITHIN or FROM cannot be mistaken here: a target is a sum, and what is looser stands in parentheses.
    written = Expressions(RESERVED_AS_TARGET).write(target.expression, Level.SUM)
    return written if target.name is None else f"{written} AS {write_name(target.name)}"


def _names(names: Iterable[str], reserved: re.Pattern[str] | None = None) -> str:
    return ", ".join(write_name(name, reserved=reserved) for name in names)


# ------------------------------------------------------------------------------------------------------------- durations and gaps


def count_text(count: int | syntax.Parameter) -> str:
    """A number of events or repetitions."""
    return parameter_text(count) if isinstance(count, syntax.Parameter) else str(count)


def parameter_text(parameter: syntax.Parameter) -> str:
    """`:name`."""
    return f":{write_name(parameter.name)}"


def duration_text(duration: syntax.Duration | syntax.Parameter) -> str:
    """A duration with its unit."""
    if isinstance(duration, syntax.Parameter):
        return parameter_text(duration)
    return f"{duration.value:f}{'' if duration.unit is None else UNIT_SYMBOLS[duration.unit]}"


def _interval(interval: syntax.Interval) -> str:
    lower, upper = interval.lower, interval.upper
    strict = interval.lower_strict or interval.upper_strict
    if lower is not None and upper is not None and not strict:
        return f"[= {duration_text(lower)}]" if lower == upper else f"[{duration_text(lower)}, {duration_text(upper)}]"
    bounds = []
    if lower is not None:
        bounds.append(f"{'>' if interval.lower_strict else '>='} {duration_text(lower)}")
    if upper is not None:
        bounds.append(f"{'<' if interval.upper_strict else '<='} {duration_text(upper)}")
    return f"[{', '.join(bounds)}]"


def _window(window: syntax.Interval | syntax.EventCount) -> str:
    if isinstance(window, syntax.EventCount):
        return f"{count_text(window.count)} EVENTS"
    if window.lower is None and window.upper is not None and not window.upper_strict:
        return duration_text(window.upper)
    return _interval(window)


def _gap(gap: syntax.Interval | None) -> str:
    return "" if gap is None else _interval(gap)


# ----------------------------------------------------------------------------------------------------------------------- patterns


def _level(node: syntax.Node) -> Level:
    if isinstance(node, syntax.Arithmetic):
        return ARITHMETIC_LEVELS[node.operator]
    return LEVELS.get(type(node), Level.ITEM if isinstance(node, syntax.Pattern) else Level.PRIMARY)


def _pattern(pattern: syntax.Pattern, place: Level = Level.CLAUSE) -> str:
    written = PATTERNS[type(pattern)](pattern)
    return written if _level(pattern) >= place else f"({written})"


def _clauses(pattern: syntax.Pattern) -> tuple[syntax.Pattern, list[str]]:
    """The pattern below its postfix clauses, and the clauses in the order written."""
    clauses = []
    while True:
        match pattern:
            case syntax.Filter(inner, condition):
                clauses.append(f"FILTER {Expressions().write(condition)}")
            case syntax.Within(inner, window):
                clauses.append(f"WITHIN {_window(window)}")
            case syntax.Unless(inner, negated):
                clauses.append(f"UNLESS {_pattern(negated, Level.OR)}")
            case syntax.Absence(inner, negated, duration, from_start):
                length = _gap(duration) if isinstance(duration, syntax.Interval) else duration_text(duration)
                start = " FROM START" if from_start else ""
                clauses.append(f"NOT FOLLOWED BY {_pattern(negated, Level.OR)} FOR {length}{start}")
            case _:
                return pattern, clauses[::-1]
        pattern = inner


def _with_clauses(pattern: syntax.Pattern) -> str:
    base, clauses = _clauses(pattern)
    return " ".join([_pattern(base, Level.OR), *clauses])


def _type(pattern: syntax.Type) -> str:
    return "ANY" if pattern.name is None else write_name(pattern.name, reserved=RESERVED_AS_TYPE)


def _link(link: syntax.Link) -> str:
    if link.without is not None:
        return f"; NOT {_pattern(link.without, Level.ITEM)} ;{_gap(link.gap)}"
    return f"{link.operator}{_gap(link.gap)}"


def _sequence(pattern: syntax.Sequence) -> str:
    written = [_pattern(pattern.items[0], Level.ITEM)]
    for link, item in zip(pattern.links, pattern.items[1:], strict=True):
        written += [_link(link), _pattern(item, Level.ITEM)]
    return " ".join(written)


def _iterate(pattern: syntax.Iterate) -> str:
    sign = ":" if pattern.adjacent else ""
    if not pattern.braces:
        counts = "+"
    elif pattern.maximum == pattern.minimum:
        counts = f"{{{count_text(pattern.minimum)}}}"
    else:
        counts = f"{{{count_text(pattern.minimum)},{'' if pattern.maximum is None else count_text(pattern.maximum)}}}"
    return f"{_operand(pattern.pattern)}{sign}{counts}{_gap(pattern.gap)}"


def _operand(pattern: syntax.Pattern) -> str:
    # The grammar needs no parentheses in `A AS x+`, but the reader does.
    return f"({_pattern(pattern)})" if isinstance(pattern, syntax.Named) else _pattern(pattern, Level.ITEM)


def _chain(word: str, place: Level) -> Callable[[Any], str]:
    return lambda pattern: f" {word} ".join(_pattern(operand, place) for operand in pattern.operands)


def _project(pattern: syntax.Project) -> str:
    variables = _names(pattern.variables, RESERVED_IN_PROJECT) or "NONE"
    return f"PROJECT {variables} ({_pattern(pattern.pattern)})"


Writer: TypeAlias = Callable[[Any], str]

PATTERNS: dict[type[syntax.Node], Writer] = {
    syntax.Type: _type,
    syntax.Named: lambda named: f"{_pattern(named.pattern, Level.ITEM)} AS {write_name(named.variable)}",
    syntax.Sequence: _sequence,
    syntax.Or: _chain("OR", Level.AND),
    syntax.And: _chain("AND", Level.ALL),
    syntax.All: _chain("ALL", Level.SEQUENCE),
    syntax.Iterate: _iterate,
    syntax.Optional: lambda optional: f"{_operand(optional.pattern)}?",
    syntax.Project: _project,
    syntax.Select: lambda select: f"{select.strategy.value}({_pattern(select.pattern)})",
    **dict.fromkeys((syntax.Filter, syntax.Within, syntax.Unless, syntax.Absence), _with_clauses),
}

PARTS: dict[type[syntax.Node], Writer] = {
    syntax.When: lambda node: Expressions().when(node),
    syntax.Duration: duration_text,
    syntax.Interval: _interval,
    syntax.EventCount: _window,
    syntax.Link: _link,
    syntax.Target: _target,
    syntax.Definition: lambda definition: _definition(definition, None, 0),
}
"""What is no query, pattern or expression."""


# -------------------------------------------------------------------------------------------------------------------- expressions


def quoted_text(value: str) -> str:
    """A text in single quotes."""
    return "'" + value.replace("'", "''") + "'"


class Expressions:
    """Writes expressions, each node by `plainly`; `reserved` are the names that need backticks as a first word."""

    def __init__(self, reserved: re.Pattern[str] = RESERVED_IN_EXPRESSIONS) -> None:
        self.reserved = reserved

    def write(self, expression: syntax.Expression, place: Level = Level.CLAUSE) -> str:
        """An expression, in parentheses where its place needs them."""
        written = self.plainly(expression)
        return written if _level(expression) >= place else f"({written})"

    def name(self, name: str) -> str:
        """A name that may be a first word."""
        return write_name(name, reserved=self.reserved)

    def variable(self, reference: syntax.Attribute | syntax.System) -> str:
        """The variable of an attribute, with its prev."""
        return f"prev({self.name(reference.variable)})" if reference.previous else self.name(reference.variable)

    def listed(self, expressions: Iterable[syntax.Expression]) -> str:
        """Expressions with commas between."""
        return ", ".join(self.write(expression) for expression in expressions)

    def when(self, branch: syntax.When) -> str:
        """A branch of CASE."""
        return f"WHEN {self.write(branch.condition)} THEN {self.write(branch.value)}"

    def plainly(self, expression: syntax.Expression) -> str:
        """The text of a node without parentheses around it."""
        match expression:
            case syntax.Number(text):
                return text
            case syntax.Text(value):
                return quoted_text(value)
            case syntax.Constant(value):
                return "NULL" if value is None else str(value).upper()
            case syntax.Instant(kind, value):
                return f"{kind} {quoted_text(value)}"
            case syntax.DurationValue(duration):
                return duration_text(duration)
            case syntax.Parameter():
                return parameter_text(expression)
            case syntax.Word(name):
                return self.name(name)
            case syntax.Attribute(_, path):
                return ".".join([self.variable(expression), *map(write_name, path)])
            case syntax.System(_, attribute):
                return f"{self.variable(expression)}.${attribute}"
            case syntax.Local(variable, condition):
                return f"{self.name(variable)}[{self.write(condition)}]"
            case syntax.Case(branches, otherwise):
                rest = [] if otherwise is None else [f"ELSE {self.write(otherwise)}"]
                return " ".join(["CASE", *map(self.when, branches), *rest, "END"])
            case syntax.Call(name, arguments, star, distinct):
                return f"{name}({'DISTINCT ' * distinct}{'*' if star else self.listed(arguments)})"
            case _:
                return self._operator(expression)

    def _operator(self, expression: syntax.Expression) -> str:
        match expression:
            case syntax.Negative(operand):
                written = self.write(operand, Level.UNARY)
                # Two signs in a row would start a comment.
                return f"- {written}" if written.startswith("-") else f"-{written}"
            case syntax.Arithmetic(operator, left, right):
                level = ARITHMETIC_LEVELS[operator]
                return f"{self.write(left, level)} {operator} {self.write(right, Level(level + 1))}"
            case syntax.Compare(operator, left, right):
                return f"{self.write(left, Level.SUM)} {operator} {self.write(right, Level.SUM)}"
            case syntax.Not(operand):
                return f"NOT {self.write(operand, Level.NOT)}"
            case syntax.BooleanAnd(operands):
                return " AND ".join(self.write(operand, Level.NOT) for operand in operands)
            case syntax.BooleanOr(operands):
                return " OR ".join(self.write(operand, Level.AND) for operand in operands)
            case _:
                return self._test(expression)

    def _test(self, expression: syntax.Expression) -> str:
        match expression:
            case syntax.IsNull(operand, negated):
                return f"{self.write(operand, Level.SUM)} IS {_not(negated)}NULL"
            case syntax.In(operand, options, negated):
                written = parameter_text(options) if isinstance(options, syntax.Parameter) else f"({self.listed(options)})"
                return f"{self.write(operand, Level.SUM)} {_not(negated)}IN {written}"
            case syntax.Between(operand, low, high, negated):
                ends = f"{self.write(low, Level.SUM)} AND {self.write(high, Level.SUM)}"
                return f"{self.write(operand, Level.SUM)} {_not(negated)}BETWEEN {ends}"
            case syntax.Like(operand, pattern, negated):
                return f"{self.write(operand, Level.SUM)} {_not(negated)}LIKE {quoted_text(pattern)}"
            case _:
                raise TypeError(f"{type(expression).__name__} is not an expression of the language")


def _not(negated: bool) -> str:  # noqa: FBT001 - the value is the node's field
    return "NOT " if negated else ""
