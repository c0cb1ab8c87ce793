"""A readable one-line text of a pattern or an expression of the logical plan, for `explain()` and for tests.

The text follows the query language where the language has the construct. Local conditions are in brackets after their event type, as in
`T[temp > 40]`; times are in steps of the time column, or in units when the length of a step is given.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.language.syntax import TimeModel
from cepheid.logical import plan, tree
from cepheid.logical.folding import INT64_MAX
from cepheid.logical.plan import Apply, Expression, Field, Interval, Pattern
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

UNITS = ((86_400_000_000_000, "d"), (3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))


def describe(pattern: Pattern, *, unit: int | None = None, keys: Sequence[str] = ()) -> str:
    """The text of a pattern on one line, with PARTITION BY, and with TIME MODEL where THEN has another than the default.

    unit: nanoseconds in a step of the time column (`EventSchema.unit`), None for bare numbers. Linear in the pattern.
    """
    by = [f"PARTITION BY {', '.join(map(_name, keys))}"] if keys else []
    models = {link.model for part in tree.walk(pattern) if isinstance(part, plan.Sequence) for link in part.links} - {
        None,
        TimeModel.CAYUGA,
    }
    return " ".join([_Description(unit).pattern(pattern), *by, *(f"TIME MODEL {model.value}" for model in models if model)])


def describe_expression(expression: Expression) -> str:
    """The text of an expression, without casts, which binding adds."""
    return _expression(expression, inside=False)


def describe_longest(steps: int, unit: int | None, *, below: int | None = None) -> str:
    """How long at most, as people write it: `5s` for <= 5s, `< 5s`. unit: see `describe`; below: what it is less than, where the caller knows it."""
    found = _Description(unit)
    return found.upper(steps).removeprefix("<= ") if below is None else f"< {found.steps(below)}"


def written_upper(interval: Interval, unit: int | None) -> int | None:
    """The upper bound as it was probably written: one step more where that was a strict one."""
    upper = interval.upper
    return upper + 1 if upper is not None and _Description(unit).rounder(upper + 1, upper) else upper


def written_lower(interval: Interval, unit: int | None) -> int:
    """The lower bound as it was probably written: one step less where that was a strict one."""
    lower = interval.lower
    return lower - 1 if _Description(unit).rounder(lower - 1, lower) else lower


def describe_shortest(steps: int, unit: int | None, *, above: int) -> str:
    """How long at least: `5s`, or `more than 5s`. unit: see `describe`; above: what it is at least, or more than, as it was written."""
    return f"more than {_Description(unit).steps(above)}" if above < steps else f"{_Description(unit).steps(steps)} or more"


def describe_bounds(interval: Interval, unit: int | None) -> str:
    """What a difference of times has to be: `<= 5s`, `>= 1s`, `in [1s, 5s]`. unit: see `describe`.

    A bound is not written where each difference that does not overflow meets it (`automata.comparisons`).
    """
    text = _Description(unit).interval(interval)
    return text[1:-1] if "," not in text else f"in {text}"


class _Description:
    def __init__(self, unit: int | None) -> None:
        self.unit = unit

    def pattern(self, pattern: Pattern) -> str:
        return PRINTERS[type(pattern)](self, pattern)

    def tight(self, pattern: Pattern) -> str:
        """The text as an operand: in parentheses, unless it holds together by itself."""
        text = self.pattern(pattern)
        closed = isinstance(pattern, plan.Event | plan.Named | plan.Iterate | plan.Optional | plan.Project | plan.Select) or own_conditions(
            pattern
        )
        return text if closed else f"({text})"

    def steps(self, steps: int) -> str:
        if self.unit is None or isinstance(steps, plan.OpenNumber):
            return str(steps)
        return duration_text(steps * self.unit)

    def lower(self, steps: int) -> str:
        return f"> {self.steps(steps - 1)}" if self.rounder(steps - 1, steps) else f">= {self.steps(steps)}"

    def upper(self, steps: int) -> str:
        return f"< {self.steps(steps + 1)}" if self.rounder(steps + 1, steps) else f"<= {self.steps(steps)}"

    def rounder(self, beside: int, steps: int) -> bool:
        """Whether a strict bound is probably what was written: 4,999,999 us is `< 5s`, and 1 us `> 0s`."""
        if isinstance(steps, plan.OpenNumber):
            return steps.strict
        return self.unit is not None and self.unit < NANOSECONDS["s"] and beside >= 0 and beside % 1_000 == 0 and steps % 1_000 != 0

    def interval(self, interval: Interval) -> str:
        if interval.upper in (None, INT64_MAX):
            return f"[{self.lower(interval.lower)}]"
        if interval.lower in (0, -INT64_MAX):
            return f"[{self.upper(interval.upper)}]"
        bounds = self.lower(interval.lower), self.upper(interval.upper)
        if all(bound[:2] in (">=", "<=") for bound in bounds):
            bounds = self.steps(interval.lower), self.steps(interval.upper)
        return f"[{', '.join(bounds)}]"


def duration_text(nanoseconds: int) -> str:
    """A duration in the coarsest unit that holds it: 5s, 1500ms."""
    for length, name in UNITS:
        if nanoseconds % length == 0 and (nanoseconds or name == "s"):
            return f"{nanoseconds // length}{name}"
    return f"{nanoseconds}ns"


def own_conditions(pattern: Pattern) -> bool:
    """Whether a pattern is an event with local conditions on it: the LP-normal form of a local FILTER."""
    return (
        isinstance(pattern, plan.Filter)
        and isinstance(pattern.pattern, plan.Event)
        and all(plan.is_local(condition) and plan.variables_of(condition) <= {pattern.pattern.variable} for condition in pattern.conditions)
    )


def _event(_: _Description, pattern: plan.Event) -> str:
    return "ANY" if pattern.type is None else _name(pattern.type)


def _named(description: _Description, pattern: plan.Named) -> str:
    return f"{description.tight(pattern.pattern)} AS {_name(pattern.variable)}"


def _sequence(description: _Description, pattern: plan.Sequence) -> str:
    parts = [description.tight(pattern.items[0])]
    for link, item in zip(pattern.links, pattern.items[1:], strict=True):
        if link.without is not None:
            parts += [";", "NOT", description.tight(link.without)]
        parts += [link.operator + ("" if link.gap is None else description.interval(link.gap)), description.tight(item)]
    return " ".join(parts)


def _operands(word: str) -> Callable[[_Description, plan.Chain], str]:
    return lambda description, pattern: f" {word} ".join(description.tight(operand) for operand in pattern.operands)


def _iterate(description: _Description, pattern: plan.Iterate) -> str:
    gap = "" if pattern.gap is None else description.interval(pattern.gap)
    count = "+"
    if pattern.maximum is not None:
        many = pattern.minimum == pattern.maximum
        count = f"{{{pattern.minimum}}}" if many else f"{{{pattern.minimum},{pattern.maximum}}}"
    elif pattern.minimum != 1:
        count = f"{{{pattern.minimum},}}"
    body = description.tight(pattern.pattern)
    body = f"({body})" if isinstance(pattern.pattern, plan.Named) else body
    return f"{body}{':' if pattern.adjacent else ''}{count}{gap}"


def _optional(description: _Description, pattern: plan.Optional) -> str:
    body = description.tight(pattern.pattern)
    return f"({body})?" if isinstance(pattern.pattern, plan.Named) else f"{body}?"


def _project(description: _Description, pattern: plan.Project) -> str:
    names = ", ".join(_name(name) for name in sorted(pattern.variables)) or "NONE"
    return f"PROJECT {names} ({description.pattern(pattern.pattern)})"


def _select(description: _Description, pattern: plan.Select) -> str:
    return f"{pattern.strategy.value}({description.pattern(pattern.pattern)})"


def _filter(description: _Description, pattern: plan.Filter) -> str:
    if isinstance(pattern.pattern, plan.Event) and own_conditions(pattern):
        conditions = " AND ".join(_expression(condition, inside=True, bare=True) for condition in pattern.conditions)
        return f"{_event(description, pattern.pattern)}[{conditions}]"
    conditions = " AND ".join(_expression(condition, inside=True) for condition in pattern.conditions)
    return f"{description.tight(pattern.pattern)} FILTER {conditions}"


def _within(description: _Description, pattern: plan.Within) -> str:
    return f"{description.tight(pattern.pattern)} WITHIN {description.interval(pattern.interval)}"


def _within_events(description: _Description, pattern: plan.WithinEvents) -> str:
    return f"{description.tight(pattern.pattern)} WITHIN {pattern.count} EVENTS"


def _unless(description: _Description, pattern: plan.Unless) -> str:
    return f"{description.tight(pattern.pattern)} UNLESS {description.tight(pattern.negated)}"


def _absence(description: _Description, pattern: plan.Absence) -> str:
    negated = description.tight(pattern.negated)
    start = " FROM START" if pattern.from_start else ""
    return f"{description.tight(pattern.pattern)} NOT FOLLOWED BY {negated} FOR {description.steps(pattern.duration)}{start}"


PRINTERS: dict[type[Pattern], Callable[..., str]] = {
    plan.Event: _event,
    plan.Named: _named,
    plan.Sequence: _sequence,
    plan.Or: _operands("OR"),
    plan.And: _operands("AND"),
    plan.All: _operands("ALL"),
    plan.Iterate: _iterate,
    plan.Optional: _optional,
    plan.Project: _project,
    plan.Select: _select,
    plan.Filter: _filter,
    plan.Within: _within,
    plan.WithinEvents: _within_events,
    plan.Unless: _unless,
    plan.Absence: _absence,
}


# -------------------------------------------------------------------------------------------------------------------- expressions

INFIX = frozenset({"=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"})


def _expression(expression: Expression, *, inside: bool, bare: bool = False) -> str:
    """inside: parentheses around an infix AND, OR or arithmetic; bare: attributes without their variable."""
    if isinstance(expression, Field | plan.Time | plan.Index):
        return _leaf(expression, bare=bare)
    if isinstance(expression, plan.Literal):
        return _literal(expression)
    if isinstance(expression, plan.Derived):
        return expression.text
    assert isinstance(expression, Apply)
    operator = expression.operator
    if operator == "cast":
        return _expression(expression.arguments[0], inside=inside, bare=bare)
    arguments = [_expression(argument, inside=True, bare=bare) for argument in expression.arguments]
    if operator in ("and", "or"):
        text = f" {operator.upper()} ".join(arguments)
        return f"({text})" if inside else text
    if operator in INFIX:
        text = f"{arguments[0]} {operator} {arguments[1]}"
        nested = inside and operator in "+-*/%"
        return f"({text})" if nested else text
    return _prefixed(operator, arguments)


def _prefixed(operator: str, arguments: list[str]) -> str:
    if operator == "not":
        return f"NOT ({arguments[0].removeprefix('(').removesuffix(')') if _wrapped(arguments[0]) else arguments[0]})"
    if operator == "is_null":
        return f"{arguments[0]} IS NULL"
    if operator == "in":
        return f"{arguments[0]} IN ({', '.join(arguments[1:])})"
    if operator == "like":
        return f"{arguments[0]} LIKE {arguments[1]}"
    if operator == "case":
        *pairs, last = arguments
        written = " ".join(f"WHEN {holds} THEN {value}" for holds, value in zip(pairs[::2], pairs[1::2], strict=True))
        return f"CASE {written} ELSE {last} END"
    if operator == "negate":
        return f"-{arguments[0]}"
    if operator == "count_distinct":
        return f"count(DISTINCT {arguments[0]})"
    if operator in ("only", *plan.HALVES):
        return arguments[0]
    if operator == "local_time":  # the first argument of a part of it
        return ", ".join(arguments)
    return f"{operator}({', '.join(arguments)})"


def _wrapped(text: str) -> bool:
    """Whether the first parenthesis closes at the very end."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text.startswith("(") and index == len(text) - 1
    return False


def _leaf(leaf: Field | plan.Time | plan.Index, *, bare: bool) -> str:
    if isinstance(leaf, plan.Begin):
        return " ".join(leaf.origin)
    system = "$time" if isinstance(leaf, plan.Time) else "$index"
    path = ".".join(_name(part) for part in leaf.origin) if isinstance(leaf, Field) else system
    if (bare and isinstance(leaf, Field)) or not leaf.variable:
        text = path
    elif not path:  # the events themselves
        text = _name(leaf.variable)
    else:
        text = f"prev({_name(leaf.variable)}).{path}" if leaf.previous else f"{_name(leaf.variable)}.{path}"
    if isinstance(leaf, plan.Lag):
        return f"lag({text})" if leaf.steps == 1 else f"lag({text}, {leaf.steps})"
    return text


def _literal(literal: plan.Literal) -> str:
    value = literal.value
    if isinstance(value, plan.Open):
        return str(value)
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if pa.types.is_duration(literal.type) and isinstance(value, int):
        return duration_text(value * NANOSECONDS[literal.type.unit])
    if pa.types.is_timestamp(literal.type):
        return f"TIMESTAMP '{instant_text(literal)}'"
    return str(value)


def instant_text(literal: plan.Literal) -> str:
    """A constant of a timestamp type, as people write it: `2026-01-01 10:00:00Z`, with as many digits of a second as it has."""
    text = str(pa.scalar(literal.value, literal.type).cast(pa.string()))
    return re.sub(r"\.(\d*?)0*(?=[Z+-]|$)", lambda found: f".{found[1]}" if found[1] else "", text)


def _name(name: str) -> str:
    return name if name.replace("#", "").isidentifier() else "`" + name.replace("`", "``") + "`"
