"""The letters of one event from its values: the predicates of one program or more as one Python function, compiled once.

Comes in: `Predicates` over one schema, and the values that guards read. Goes out: a function from a dict, or a tuple of the values in the order of
the schema, to the event's time, its letters and these values, the same as Arrow gives for a table of this one event; or to None, which says: go
through Arrow, it decides or has the error.
`row_values` has the lines that check and read the values, here are the operators. The function is generated source. All that a query or a schema
says, and all constants, are objects that it is run with: no text of a user becomes source.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import math
import operator
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from cepheid.engine.letters.row_values import RowAttributes, SourceNames, ThroughArrow, indented, is_unicode
from cepheid.engine.letters.values import DECIMALS, EPOCH_DAY, INT64_MAX, INT64_MIN, to_scale
from cepheid.logical import calendar, time_zones
from cepheid.logical.folding import ASCII_LOWER, ASCII_UPPER
from cepheid.logical.plan import Apply, Field, Literal, Time
from cepheid.logical.types import time_value_type
from cepheid.records import record
from cepheid.schema import NANOSECONDS, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cepheid.engine.letters.predicates import Predicates
    from cepheid.logical.plan import Expression

DEEP = 12
"""Operators in one expression of Python: deeper ones get lines of their own, for Python's parser allows few parentheses in each other."""

Read = tuple[Any, ...]
"""The time of an event, in steps of the time column (0 without one), its letter in each program, and where there are any, a tuple of its values."""


class RowLetters:
    """The predicates of programs over one schema, for one event at a time; immutable, so that any number of threads may share them.

    read: from a dict of exactly the schema's attributes, or a tuple of their values in the order of the schema, to the event's time in steps of
    the time column (0 without one), its letter in each program, and the tuple of its values if any were asked for (None for NULL; times as steps,
    dates as days); None where the event has to go through Arrow. It never raises for what a dict or tuple holds. O(attributes + nodes). source: of
    that function, to look at.
    """

    __slots__ = ("read", "source")

    def __init__(self, source: str, constants: Mapping[str, object]) -> None:
        space: dict[str, Any] = {**constants, "__builtins__": dict(BUILTINS)}
        exec(compile(source, "<row letters>", "exec"), space)  # noqa: S102 - our own source, see above
        self.source = source
        self.read: Callable[[object], Read | None] = space["read"]

    @classmethod
    def of(cls, *programs: Predicates, values: Sequence[Expression] = ()) -> RowLetters | None:
        """The function of programs over the same schema; None where their conditions or values have to go through Arrow, see `why_arrow`."""
        try:
            return cls(*_source(programs, values))
        except (ThroughArrow, RecursionError, MemoryError, SyntaxError):
            return None

    def letter(self, row: object) -> int | None:
        """The letter of one event in the first program, None where it has to go through Arrow."""
        found = self.read(row)
        return None if found is None else found[1]


BUILTINS = MappingProxyType(
    {kind.__name__: kind for kind in (ArithmeticError, KeyError, abs, bool, bytes, dict, float, int, len, list, str, tuple, type)}
)
"""All that the source may call besides its constants."""


def why_arrow(*programs: Predicates, values: Sequence[Expression] = ()) -> str | None:
    """Why programs have no `RowLetters`, None where they have them."""
    try:
        RowLetters(*_source(programs, values))
    except ThroughArrow as reason:
        return str(reason)
    except (RecursionError, MemoryError, SyntaxError):
        return "conditions nest too deep"
    return None


def _source(programs: Sequence[Predicates], values: Sequence[Expression]) -> tuple[str, dict[str, object]]:
    """The source of a function `read`, and its constants."""
    schema = programs[0].schema
    names = SourceNames()
    attributes = RowAttributes(schema.attributes, names)
    time = attributes.read((schema.time_column,), time_value_type(schema.time_type)) if schema.time_column is not None else None
    bodies = [_Letter(program, attributes, names).lines(f"letter{number}") for number, program in enumerate(programs)]
    results = [time or "0", *(f"letter{number}" for number in range(len(programs)))]
    if values:
        reader = _Letter(programs[0], attributes, names)
        results.append(f"({', '.join(nullable(reader.value(value)) for value in values)},)")
        bodies.append(reader.before)
    variables = [attribute.variable for attribute in attributes.all.values()]
    body = [
        "if type(row) is dict:",
        *indented([f"if len(row) != {len(variables)}:", *indented(["return None"])]),
        *indented([f"{attribute.variable} = row[{names.constant(name)}]" for name, attribute in attributes.all.items()]),
        f"elif type(row) is tuple and len(row) == {len(variables)}:",
        *indented([f"{', '.join(variables)}, = row"] if variables else ["pass"]),
        "else:",
        *indented(["return None"]),
        *attributes.lines(),
    ]
    if time is not None:
        body += [f"if {time} is None:", *indented(["return None"])]
    body += [line for lines in bodies for line in lines]
    body += [f"return ({', '.join(results)},)"]
    # A column of the schema that the dict lacks, and numbers that Python refuses: half a million digits, a float that is infinite as a single.
    lines = ["def read(row):", " try:", *indented(indented(body)), " except (KeyError, ArithmeticError):", "  return None"]
    return "\n".join(lines), names.constants


# ---------------------------------------------------------------------------------------------------------------------- conditions


@record
class Value:
    """A value in Python source. It is NULL where one of the guards, tried in order, does not hold; then `code` is not run. depth: of operators."""

    code: str
    guards: tuple[str, ...] = ()
    depth: int = 0

    @property
    def atom(self) -> bool:
        """Whether the code is a name, which may be written more than once."""
        return self.code.isidentifier()


NULL = Value("None", ("False",))


class _Letter:
    """The lines that give the letter of one program."""

    def __init__(self, predicates: Predicates, attributes: RowAttributes, names: SourceNames) -> None:
        self.predicates = predicates
        self.attributes = attributes
        self.names = names
        self.before: list[str] = []

    def lines(self, letter: str) -> list[str]:
        """The lines that set the variable `letter`; raises ThroughArrow."""
        tables: dict[str, dict[object, int]] = {}
        parts = []
        for value, condition in zip(self.predicates.values, self.predicates.conditions, strict=True):
            looked_up = self._looked_up(condition)
            if looked_up is None:
                parts.append(f"({value} if {self.truth(condition)} else 0)")
                continue
            variable, options = looked_up
            table = tables.setdefault(variable, {})
            for option in options:
                table[option] = table.get(option, 0) | value
        lookups = [f"{self.names.constant(table.get)}({variable}, 0)" for variable, table in tables.items()]
        return [*self.before, f"{letter} = {' | '.join([*lookups, *parts]) or '0'}"]

    def _looked_up(self, condition: Expression) -> tuple[str, list[object]] | None:
        """For an attribute that equals one of some constants: its variable and these; conditions about one variable are one look."""
        if not isinstance(condition, Apply) or condition.operator not in ("=", "in") or not isinstance(condition.arguments[0], Field):
            return None
        options = [constant(option) for option in condition.arguments[1:] if isinstance(option, Literal)]
        variable = self.attributes.read(condition.arguments[0].path, condition.arguments[0].type)
        if variable is None or len(options) < len(condition.arguments) - 1:
            return None
        return variable, [option for option in options if option is not None]

    # ------------------------------------------------------------------------------------------------------------------- values

    def value(self, node: Expression) -> Value:
        """An expression of any type; raises ThroughArrow."""
        if isinstance(node, Literal):
            found = constant(node)
            return NULL if found is None else Value(self.names.constant(found))
        if isinstance(node, Field):
            return self._read(node.path, node.type)
        if isinstance(node, Time):
            return self._read((self.predicates.schema.time_column or "",), node.type)
        if not isinstance(node, Apply) or node.operator not in OPERATORS:
            raise ThroughArrow(f"{getattr(node, 'operator', type(node).__name__)} has no function of one row")
        found = OPERATORS[node.operator](self, node)
        return self._line(found) if found.depth > DEEP else found

    def _read(self, path: tuple[str, ...], kind: pa.DataType) -> Value:
        variable = self.attributes.read(path, kind)
        return NULL if variable is None else Value(variable, (f"{variable} is not None",))

    def _line(self, value: Value) -> Value:
        """The value in a variable, set in a line before."""
        variable = self.names.variable()
        self.before.append(f"{variable} = {nullable(value)}")
        return Value(variable, (f"{variable} is not None",)) if value.guards else Value(variable)

    def truth(self, node: Expression) -> str:
        """A condition, or a bool, of which NULL is false."""
        return _all(self.value(node))

    def named(self, value: Value) -> Value:
        """The value with a name for it, which may be written more than once."""
        if value.atom:
            return value
        variable = self.names.variable()
        return Value(variable, (*value.guards, f"({variable} := {value.code}) is not None"), value.depth)

    def kept(self, code: str, guards: tuple[str, ...], depth: int) -> Value:
        """A value that is NULL where `code`, run once, gives None."""
        variable = self.names.variable()
        return Value(variable, (*guards, f"({variable} := {code}) is not None"), depth)

    def within(self, code: str, low: str, high: str, guards: tuple[str, ...], depth: int, *, otherwise: str = "") -> Value:
        """A value that is NULL outside bounds; otherwise: what may hold beyond them, with {} for the value."""
        variable = self.names.variable()
        test = f"{low} <= ({variable} := {code}) <= {high}"
        return Value(variable, (*guards, f"({test} or {otherwise.format(variable)})" if otherwise else test), depth)


def nullable(value: Value) -> str:
    """The value as one expression, None for NULL."""
    return f"({value.code} if {' and '.join(value.guards)} else None)" if value.guards else value.code


def _all(value: Value) -> str:
    """A bool as a condition."""
    return f"({' and '.join([*value.guards, value.code])})"


def constant(literal: Literal) -> object:
    """A constant as the values that are read: days for dates; None for NULL, and NaN."""
    value, kind = literal.value, literal.type
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return None if math.isnan(number := float(value)) else number  # type: ignore[arg-type]  # of a double it is a number
    if isinstance(value, dt.date):
        return value.toordinal() - EPOCH_DAY
    if isinstance(value, str) and not is_unicode(value):
        raise ThroughArrow("a constant with half of a surrogate pair")
    make = next(make for test, make in _CONSTANTS if test(kind))
    return make(value)


_CONSTANTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], object]], ...] = (
    (is_text, str),
    (pa.types.is_boolean, bool),
    (pa.types.is_decimal, decimal.Decimal),
    (lambda _: True, int),
)


# ----------------------------------------------------------------------------------------------------------------------- operators


def _arguments(of: _Letter, node: Apply) -> tuple[list[Value], tuple[str, ...], int]:
    """The arguments, the guards of all of them, and how deep the operator is."""
    values = [of.value(argument) for argument in node.arguments]
    return values, tuple(guard for value in values for guard in value.guards), 1 + max(value.depth for value in values)


def _connect(word: str) -> Callable[[_Letter, Apply], Value]:
    def connect(of: _Letter, node: Apply) -> Value:
        values, _, depth = _arguments(of, node)
        return Value(f"({word.join(map(_all, values))})", (), depth)

    return connect


def _not(of: _Letter, node: Apply) -> Value:
    values, _, depth = _arguments(of, node)
    return Value(f"(not {_all(values[0])})", (), depth)


def _is_null(of: _Letter, node: Apply) -> Value:
    _, guards, depth = _arguments(of, node)
    return Value(f"(not ({' and '.join(guards)}))" if guards else "False", (), depth)


def _compare(sign: str) -> Callable[[_Letter, Apply], Value]:
    def compare(of: _Letter, node: Apply) -> Value:
        (left, right), guards, depth = _arguments(of, node)
        return Value(f"({' and '.join([*guards, f'{left.code} {sign} {right.code}'])})", (), depth)

    return compare


def _in(of: _Letter, node: Apply) -> Value:
    value, options = of.value(node.arguments[0]), [constant(option) for option in node.arguments[1:] if isinstance(option, Literal)]
    if len(options) < len(node.arguments) - 1:
        raise ThroughArrow("IN with options that are no constants")
    wanted = of.names.constant(frozenset(options) - {None})
    return Value(f"({' and '.join([*value.guards, f'{value.code} in {wanted}'])})", (), value.depth + 1)


def _like(of: _Letter, node: Apply) -> Value:
    value, pattern = of.value(node.arguments[0]), node.arguments[1]
    if not isinstance(pattern, Literal):
        raise ThroughArrow("LIKE with a pattern that is no constant")
    if pattern.value is None:
        return Value("False")
    matches = f"{of.names.constant(_matcher(str(constant(pattern))))}({value.code})"
    return Value(f"({' and '.join([*value.guards, f'bool({matches})'])})", (), value.depth + 1)


def _matcher(pattern: str) -> Callable[[str], object]:
    """What is true of the texts that match a LIKE pattern. Linear: after a `%` the first place where the next part fits is as good as any."""
    bare = pattern.strip("%")
    if bare and not set(bare) & set("%_") and bare != pattern:
        function = {(False, True): "startswith", (True, False): "endswith", (True, True): "__contains__"}
        return operator.methodcaller(function[pattern[0] == "%", pattern[-1] == "%"], bare)
    first, *rest = (re.escape(part).replace("_", ".") for part in pattern.split("%"))
    if not rest:
        return re.compile(first, re.DOTALL).fullmatch
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL).fullmatch


def _arithmetic(sign: str) -> Callable[[_Letter, Apply], Value]:
    def compute(of: _Letter, node: Apply) -> Value:
        if pa.types.is_decimal(node.type):
            return _exact(sign, of, node)
        (left, right), _, depth = _arguments(of, node)
        if pa.types.is_floating(node.type):
            return _double(sign, of, of.named(left), of.named(right), depth)
        if sign == "%":
            return _remainder(of.named(left), of.named(right), depth)
        if sign == "/":
            raise ThroughArrow(f"/ of {node.type}")
        return of.within(f"{left.code} {sign} {right.code}", str(INT64_MIN), str(INT64_MAX), (*left.guards, *right.guards), depth)

    return compute


def _double(sign: str, of: _Letter, left: Value, right: Value, depth: int) -> Value:
    guards = (*left.guards, *right.guards, *([f"{right.code} != 0.0"] if sign in "/%" else []))
    if sign == "%":
        # The remainder of an infinite number is NaN, which math.fmod raises.
        finite = f"{_LEAST} <= {left.code} <= {_GREATEST}"
        return Value(f"{of.names.helper(math.fmod)}({left.code}, {right.code})", (*guards, finite), depth)
    infinite = f"{of.names.helper(from_infinite)}({{}}, {left.code}, {right.code})"
    return of.within(f"{left.code} {sign} {right.code}", _LEAST, _GREATEST, guards, depth, otherwise=infinite)


_GREATEST, _LEAST = "1.7976931348623157e308", "-1.7976931348623157e308"
"""The finite doubles."""


def from_infinite(result: float, left: float, right: float) -> bool:
    """Whether a result that is not finite is no overflow and not NaN: an infinite operand makes it so."""
    return not math.isnan(result) and (math.isinf(left) or math.isinf(right))


def _remainder(left: Value, right: Value, depth: int) -> Value:
    """With the sign of the dividend."""
    a, b = left.code, right.code
    code = f"({a} % abs({b}) if {a} >= 0 else -(-{a} % abs({b})))"
    return Value(code, (*left.guards, *right.guards, f"{b} != 0"), depth)


def _exact(sign: str, of: _Letter, node: Apply) -> Value:
    """Decimals, as `values` computes them."""
    (left, right), guards, depth = _arguments(of, node)
    operation = {"+": DECIMALS.add, "-": DECIMALS.subtract, "*": DECIMALS.multiply, "/": DECIMALS.divide, "%": DECIMALS.remainder}[sign]
    if sign in "/%":
        right = of.named(right)
        guards = (*left.guards, *right.guards, f"{right.code} != 0")
    fit = of.names.constant(_fitting(node.type))
    return of.kept(f"{fit}({of.names.constant(operation)}({left.code}, {right.code}))", guards, depth)


def _fitting(kind: pa.DataType) -> Callable[[decimal.Decimal], decimal.Decimal | None]:
    return lambda value: to_scale(value, kind)


def _sign_changed(function: str, method: str) -> Callable[[_Letter, Apply], Value]:
    """`-` or `abs`, of which the least integer has none."""

    def change(of: _Letter, node: Apply) -> Value:
        (value,), guards, depth = _arguments(of, node)
        if pa.types.is_decimal(node.type):
            return Value(f"{value.code}.{method}()", guards, depth)
        if not pa.types.is_floating(node.type):
            value = of.named(value)
            guards = (*value.guards, f"{value.code} != {INT64_MIN}")
        return Value(f"{function}({value.code})", guards, depth)

    return change


def _rounding(towards: Callable[[float], int], mode: str) -> Callable[[_Letter, Apply], Value]:
    def whole(value: float) -> float:
        return float(towards(value)) if math.isfinite(value) else value

    def compute(of: _Letter, node: Apply) -> Value:
        (value,), guards, depth = _arguments(of, node)
        if pa.types.is_decimal(node.type):
            unit, fit = decimal.Decimal(1), _fitting(node.type)
            rounded = of.names.constant(lambda number: fit(number.quantize(unit, mode, DECIMALS)))
            return of.kept(f"{rounded}({value.code})", guards, depth)
        if pa.types.is_floating(node.type):
            return Value(f"{of.names.constant(whole)}({value.code})", guards, depth)
        return value

    return compute


def _cast(of: _Letter, node: Apply) -> Value:
    (value,), guards, depth = _arguments(of, node)
    source, target = node.arguments[0].type, node.type  # type: ignore[attr-defined]  # every expression class has a type
    if source == target:
        return value
    if pa.types.is_floating(target):
        return Value(f"float({value.code})", guards, depth)
    if pa.types.is_decimal(target):
        number = value.code if pa.types.is_decimal(source) else f"{of.names.helper(decimal.Decimal)}({value.code})"
        return of.kept(f"{of.names.constant(_fitting(target))}({number})", guards, depth)
    if not (pa.types.is_timestamp(target) or pa.types.is_duration(target)):
        raise ThroughArrow(f"a cast from {source} to {target}")
    factor = _step(source) // _step(target)
    return of.within(f"{value.code} * {factor}", str(INT64_MIN), str(INT64_MAX), guards, depth)


def _step(kind: pa.DataType) -> int:
    """Nanoseconds in one step of a date, timestamp or duration."""
    return 86_400 * NANOSECONDS["s"] if pa.types.is_date(kind) else NANOSECONDS[kind.unit]


def _coalesce(of: _Letter, node: Apply) -> Value:
    values, _, depth = _arguments(of, node)
    found = functools.reduce(
        lambda rest, value: f"({value.code} if {' and '.join(value.guards)} else {rest})" if value.guards else value.code,
        reversed(values[:-1]),
        nullable(values[-1]),
    )
    return of.kept(found, (), depth + len(values))


def _case(of: _Letter, node: Apply) -> Value:
    *pairs, last = (of.value(argument) for argument in node.arguments)
    found = nullable(last)
    for holds, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        found = f"({nullable(value)} if {_all(holds)} else {found})"
    return of.kept(found, (), sum(value.depth for value in (*pairs, last)) + len(node.arguments))


def _concat(of: _Letter, node: Apply) -> Value:
    values, guards, depth = _arguments(of, node)
    return Value(f"({' + '.join(value.code for value in values)})", guards, depth)


def _part(name: str) -> Callable[[_Letter, Apply], Value]:
    def of_steps(of: _Letter, node: Apply) -> Value:
        (value,), guards, depth = _arguments(of, node)
        per_day = calendar.steps_per_day(node.arguments[0].type)  # type: ignore[attr-defined]  # every expression class has a type
        part = of.names.constant(lambda steps: calendar.part(name, steps, per_day))
        return Value(f"{part}({value.code})", guards, depth)

    return of_steps


def _local_time(of: _Letter, node: Apply) -> Value:
    (value, *_), guards, depth = _arguments(of, node)
    zone, per_second = str(cast("Literal", node.arguments[1]).value), calendar.steps_per_second(node.type)
    local = of.names.constant(lambda steps: time_zones.local(zone, steps, per_second))
    return of.within(f"{local}({value.code})", str(INT64_MIN), str(INT64_MAX), guards, depth)


def _text(name: str, function: Callable[[str], object]) -> Callable[[_Letter, Apply], Value]:
    def apply(of: _Letter, node: Apply) -> Value:
        (value,), guards, depth = _arguments(of, node)
        of.names.constants[name] = function
        return Value(f"{name}({value.code})", guards, depth)

    return apply


OPERATORS: Mapping[str, Callable[[_Letter, Apply], Value]] = MappingProxyType(
    {
        "and": _connect(" and "),
        "or": _connect(" or "),
        "not": _not,
        **{name: _compare({"=": "=="}.get(name, name)) for name in ("=", "!=", "<", "<=", ">", ">=")},
        "in": _in,
        "like": _like,
        "is_null": _is_null,
        "cast": _cast,
        **{name: _arithmetic(name) for name in ("+", "-", "*", "/", "%")},
        "negate": _sign_changed("-", "copy_negate"),
        "abs": _sign_changed("abs", "copy_abs"),
        "floor": _rounding(math.floor, "ROUND_FLOOR"),
        "ceil": _rounding(math.ceil, "ROUND_CEILING"),
        "case": _case,
        "coalesce": _coalesce,
        "length": _text("length", len),
        "lower": _text("lower", lambda text: text.translate(ASCII_LOWER)),
        "upper": _text("upper", lambda text: text.translate(ASCII_UPPER)),
        "concat": _concat,
        "local_time": _local_time,
        **{name: _part(name) for name in calendar.PARTS},
    }
)
"""One function per key of `plan.OPERATORS`: from the node to its Python source."""
