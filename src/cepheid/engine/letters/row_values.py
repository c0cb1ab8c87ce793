"""The values of one event as Python has them: generated lines that check them, and read those that conditions look at.

Comes in: the Arrow types of the attributes, and which of them are to be read as which canonical type. Goes out: lines of Python source that run in
a function with the values in local variables `v0`, `v1`, ..; a line that says `return None` gives the event to the path through Arrow. That is
done with every value but those that Arrow infers and casts to the attribute's type without an error; so what is an error there is one here. The
source has names of ours alone: types, names of attributes and helpers are constants that it is run with.

Values read: bool, int (int64; days, and steps of times and durations), float (None for NaN), Decimal, str; None is NULL. See `values.read`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import zoneinfo
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from cepheid.engine.letters.values import DECIMALS, EPOCH_DAY, INT64_MAX, INT64_MIN
from cepheid.logical.types import canonical, family
from cepheid.records import record
from cepheid.schema import NANOSECONDS, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
LOCAL_EPOCH = EPOCH.replace(tzinfo=None)
MINUTE = dt.timedelta(minutes=1)
WHOLE_DOUBLES, WHOLE_FLOATS, WHOLE_HALVES = 1 << 53, 1 << 24, 1 << 11
"""Up to so far from 0 Arrow casts integers to doubles, floats and half floats."""

DIGITS = 38
"""Decimals with more digits go through Arrow, which infers wider types for them."""

_FLOAT = struct.Struct("<f")


class ThroughArrow(Exception):  # noqa: N818 - no error: it says which way to go, and why
    """What a compiler of one row leaves to Arrow, with the reason."""


class SourceNames:
    """The constants of generated source by the names that it has for them, and names for its variables."""

    def __init__(self) -> None:
        self.constants: dict[str, object] = {}
        self._variables = 0

    def constant(self, value: object) -> str:
        """A name for a constant."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def helper(self, function: Callable[..., Any] | type) -> str:
        """The name of a function or class of ours, by which the source calls it."""
        self.constants[function.__name__] = function
        return function.__name__

    def variable(self) -> str:
        """A new variable."""
        self._variables += 1
        return f"t{self._variables}"


@dataclass
class RowAttribute:
    """One attribute, or a field inside it: its type, the variable that has its value, and the variables to read it into, by canonical type.

    fields: of a struct, by name. item: what a list has, of which nothing is read.
    """

    kind: pa.DataType
    variable: str
    fields: dict[str, RowAttribute] = field(default_factory=dict)
    item: RowAttribute | None = None
    wanted: dict[pa.DataType, str] = field(default_factory=dict)

    @property
    def parts(self) -> Iterator[RowAttribute]:
        """The attribute and the fields inside it."""
        yield self
        for part in self.fields.values():
            yield from part.parts


class RowAttributes:
    """The attributes of one event, in the order of the schema, and the lines that read them."""

    def __init__(self, kinds: Mapping[str, pa.DataType], names: SourceNames) -> None:
        self.names = names
        self.all = {name: _attribute(kind, f"v{number}") for number, (name, kind) in enumerate(kinds.items())}

    def read(self, path: tuple[str, ...], kind: pa.DataType) -> str | None:
        """The variable that will have an attribute as its canonical type, None where it is always NULL; raises ThroughArrow."""
        if path[0] not in self.all:
            raise ThroughArrow(f"no attribute {path[0]}")
        found = self.all[path[0]]
        for name in path[1:]:
            if name not in found.fields:
                raise ThroughArrow(f"fields of {found.kind}")
            found = found.fields[name]
        if pa.types.is_null(found.kind):
            return None
        if kind not in found.wanted:
            convert = conversion(found.kind, kind)
            found.wanted[kind] = found.variable if convert is None else f"{found.variable}_{len(found.wanted)}"
        return found.wanted[kind]

    def lines(self) -> list[str]:
        """The lines that check and read all attributes, with their values in the variables `v0`, `v1`, .."""
        return [line for attribute in self.all.values() for line in self._lines(attribute, nested=False)]

    def _lines(self, attribute: RowAttribute, *, nested: bool) -> list[str]:
        value, kind = attribute.variable, attribute.kind
        at = Place(kind, value, self.names, nested)
        if not _castable(None, kind):
            return ["return None"]
        ways = (
            self._struct(attribute) if attribute.fields else _ways(at) if attribute.item is None else self._list(attribute, attribute.item)
        )
        lines = [f"{target} = None" for part in attribute.parts for target in part.wanted.values() if target != part.variable]
        if attribute.fields:
            lines += [f"{part.variable} = None" for part in attribute.parts if part is not attribute]
        for number, (test, body) in enumerate(ways):
            reads = [
                line
                for wanted, target in attribute.wanted.items()
                if (convert := conversion(kind, wanted)) is not None
                for line in convert(at, target)
            ]
            lines += [f"{'elif' if number else 'if'} {test}:", *indented([*body, *reads] or ["pass"])]
        return [*lines, f"{'elif' if ways else 'if'} {value} is not None:", *indented(["return None"])]

    def _struct(self, attribute: RowAttribute) -> list[Way]:
        if not _castable(sample(attribute.kind), attribute.kind):
            return []
        keys = self.names.constant(tuple(attribute.fields))
        targets = ", ".join(part.variable for part in attribute.fields.values())
        body = [f"if tuple({attribute.variable}) != {keys}:", *indented(["return None"]), f"{targets}, = {attribute.variable}.values()"]
        for part in attribute.fields.values():
            body += self._lines(part, nested=True)
        return [(f"type({attribute.variable}) is dict", body)]

    def _list(self, attribute: RowAttribute, item: RowAttribute) -> list[Way]:
        if not all(_castable(values, attribute.kind) for values in ([], [None], [sample(item.kind)])):
            return []
        loop = [f"for {item.variable} in {attribute.variable}:", *indented(self._lines(item, nested=True))]
        return [(f"type({attribute.variable}) is list", loop)]


def _attribute(kind: pa.DataType, variable: str) -> RowAttribute:
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and kind.value_field.nullable:
        return RowAttribute(kind, variable, item=_attribute(kind.value_type, f"{variable}_item"))
    fields = {}
    names = [kind.field(number).name for number in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    if len(set(names)) == len(names) and all(kind.field(number).nullable for number in range(len(names))):
        fields = {name: _attribute(kind.field(number).type, f"{variable}_f{number}") for number, name in enumerate(names)}
    return RowAttribute(kind, variable, fields)


def indented(lines: list[str]) -> list[str]:
    """The lines one level deeper."""
    return [f" {line}" for line in lines]


@record
class Place:
    """Where a value of a type stands: its variable, and whether it is inside another value."""

    kind: pa.DataType
    value: str
    names: SourceNames
    nested: bool = False


Way = tuple[str, list[str]]
"""A test that a value passes, and the lines that are then run: they check more, or make the value another one that is equal for Arrow."""


# ------------------------------------------------------------------------------------------------------------------ checks, by type


def _ways(at: Place) -> list[Way]:
    """How values that are not NULL can come to an attribute of a type; empty for types whose values all go through Arrow."""
    make = next((make for test, make in CHECKS if test(at.kind)), None)
    return [] if make is None or not _castable(sample(at.kind), at.kind, nested=at.nested) else make(at)


def _refused(test: str) -> list[str]:
    return [f"if {test}:", *indented(["return None"])]


def _integer(at: Place) -> list[Way]:
    low, high = _range(at.kind)
    # Arrow infers int64 for integers inside others.
    return [(f"type({at.value}) is int", _refused(f"not {low} <= {at.value} <= {min(high, INT64_MAX) if at.nested else high}"))]


def _range(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    return (0, (1 << bits) - 1) if pa.types.is_unsigned_integer(kind) else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _floating(at: Place) -> list[Way]:
    whole = {16: WHOLE_HALVES, 32: WHOLE_FLOATS, 64: WHOLE_DOUBLES}[at.kind.bit_width]
    integer = [*_refused(f"not -{whole} <= {at.value} <= {whole}"), f"{at.value} = float({at.value})"]
    return [(f"type({at.value}) is float", []), (f"type({at.value}) is int", integer)]


def _text(at: Place) -> list[Way]:
    return [(f"type({at.value}) is str", _refused(f"not {at.value}.isascii() and not {at.names.helper(is_unicode)}({at.value})"))]


def _boolean(at: Place) -> list[Way]:
    return [(f"type({at.value}) is bool", [])]


def _date(at: Place) -> list[Way]:
    return [(f"type({at.value}) is {at.names.helper(dt.date)}", [])]


def _timestamp(at: Place) -> list[Way]:
    zone = at.names.variable()
    body = [f"{zone} = {at.value}.tzinfo"]
    if at.kind.tz is None:
        body += _refused(f"{zone} is not None")
    else:
        body += _refused(f"{zone} is not {at.names.constant(dt.UTC)} and not {at.names.helper(is_zone)}({zone})")
    body += [f"{at.value} -= {at.names.constant(LOCAL_EPOCH if at.kind.tz is None else EPOCH)}", *_steps(at)]
    return [(f"type({at.value}) is {at.names.helper(dt.datetime)}", body)]


def _duration(at: Place) -> list[Way]:
    # Arrow infers microseconds in 64 bits, whatever the unit.
    fits = _refused(f"not -{MOST_DAYS} <= {at.value}.days <= {MOST_DAYS}")
    return [(f"type({at.value}) is {at.names.helper(dt.timedelta)}", fits + _steps(at))]


MOST_DAYS = INT64_MAX // 86_400_000_000 - 1


def _steps(at: Place) -> list[str]:
    """A timedelta in steps of a timestamp or duration."""
    lines = [f"{at.value} = ({at.value}.days * 86400 + {at.value}.seconds) * 1000000 + {at.value}.microseconds"]
    if at.kind.unit == "ns":
        return [*lines, f"{at.value} *= 1000", *_refused(f"not {INT64_MIN} <= {at.value} <= {INT64_MAX}")]
    coarser = NANOSECONDS[at.kind.unit] // NANOSECONDS["us"]
    return lines if coarser == 1 else [*lines, *_refused(f"{at.value} % {coarser}"), f"{at.value} //= {coarser}"]


def _time_of_day(at: Place) -> list[Way]:
    coarser = NANOSECONDS[at.kind.unit] // NANOSECONDS["us"]
    finer = f" or {at.value}.microsecond % {coarser}" if coarser > 1 else ""
    return [(f"type({at.value}) is {at.names.helper(dt.time)}", _refused(f"{at.value}.tzinfo is not None{finer}"))]


def _binary(at: Place) -> list[Way]:
    fixed = pa.types.is_fixed_size_binary(at.kind)
    return [(f"type({at.value}) is bytes", _refused(f"len({at.value}) != {at.kind.byte_width}") if fixed else [])]


def _decimal(at: Place) -> list[Way]:
    exact = at.names.constant(_exact(at.kind))
    body = [f"{at.value} = {exact}({at.value})", *_refused(f"{at.value} is None")]
    return [(f"type({at.value}) is {at.names.helper(decimal.Decimal)}", body)]


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


CHECKS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Place], list[Way]]], ...] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _floating),
    (is_text, _text),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_duration, _duration),
    (pa.types.is_time, _time_of_day),
    (_is_binary, _binary),
    (pa.types.is_decimal, _decimal),
)
"""Types whose values need not go through Arrow, besides structs and lists of them. Maps, lists of one size, intervals, unions, extension types and
dictionaries of anything but text do: nothing but IS NULL can be asked about most of them, and Arrow's casts between them have rules of their own."""


def sample(kind: pa.DataType) -> object:
    """A value that comes to an attribute of a type by its check; None for types that have none."""
    if pa.types.is_struct(kind):
        return {kind.field(number).name: sample(kind.field(number).type) for number in range(kind.num_fields)}
    if pa.types.is_fixed_size_binary(kind):
        return bytes(kind.byte_width)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [sample(kind.value_type)]
    if is_text(kind):
        return ""
    if pa.types.is_timestamp(kind):
        return LOCAL_EPOCH if kind.tz is None else EPOCH
    return next((value for test, value in _SAMPLES if test(kind)), None)


_SAMPLES: tuple[tuple[Callable[[pa.DataType], bool], object], ...] = (
    (pa.types.is_integer, 0),
    (pa.types.is_floating, 0.0),
    (pa.types.is_boolean, False),
    (pa.types.is_date, EPOCH.date()),
    (pa.types.is_duration, dt.timedelta(0)),
    (pa.types.is_time, dt.time()),
    (pa.types.is_decimal, decimal.Decimal(0)),
    (_is_binary, b""),
)


def _castable(value: object, kind: pa.DataType, *, nested: bool = False) -> bool:
    """Whether a recognizer casts what Arrow infers for a value to a type: Arrow can, and the two are of one family."""
    try:
        inferred = pa.array([value])
        inferred.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    families = [family(canonical(one) or one) for one in (inferred.type, kind)]
    return nested or families[0] in (families[1], "NULL")


# ---------------------------------------------------------------------------------------------------------------- helpers that run


def is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_zone(zone: dt.tzinfo | None) -> bool:
    """Whether a time zone is one that Arrow takes, and reads as its own offsets say."""
    if type(zone) is zoneinfo.ZoneInfo:
        return bool(zone.key)
    return type(zone) is dt.timezone and not zone.utcoffset(None) % MINUTE


def _exact(kind: pa.DataType) -> Callable[[decimal.Decimal], decimal.Decimal | None]:
    """The function that gives a Decimal in the digits of a decimal type, None where it does not fit exactly or goes through Arrow."""
    unit, limit = decimal.Decimal(1).scaleb(-kind.scale), decimal.Decimal(1).scaleb(kind.precision - kind.scale, DECIMALS)

    def exact(value: decimal.Decimal) -> decimal.Decimal | None:
        exponent, digits = value.as_tuple().exponent, len(value.as_tuple().digits)
        if not isinstance(exponent, int) or not -DIGITS <= exponent <= DIGITS - digits:
            return None
        found = DECIMALS.quantize(value, unit)
        return found if found == value and found.copy_abs() < limit else None

    return exact


def single(value: float) -> float:
    """A double as the nearest float; raises OverflowError for what Arrow makes infinite."""
    found: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    return found


# ---------------------------------------------------------------------------------------------- what was checked, as canonical types

Conversion: TypeAlias = "Callable[[Place, str], list[str]] | None"


def conversion(kind: pa.DataType, read_as: pa.DataType) -> Conversion:
    """Lines that make a value of a checked one, in another variable; None where it is the same. Raises ThroughArrow for other types."""
    for of, to, make in CONVERSIONS:
        if of(kind) and to(read_as):
            return make
    if any(test(kind) for test, _ in CHECKS):
        raise ThroughArrow(f"{kind} read as {read_as}")
    return None


def _is(kind: pa.DataType) -> Callable[[pa.DataType], bool]:
    return lambda other: bool(other == kind)


def _half(_: Place, __: str) -> list[str]:
    return ["return None"]


def _single(at: Place, target: str) -> list[str]:
    return [f"if {at.value} == {at.value}:", *indented([f"{target} = {at.names.helper(single)}({at.value})"])]


def _double(at: Place, target: str) -> list[str]:
    return [f"if {at.value} == {at.value}:", *indented([f"{target} = {at.value}"])]


def _days(at: Place, target: str) -> list[str]:
    return [f"{target} = {at.value}.toordinal() - {EPOCH_DAY}"]


def _milliseconds(at: Place, target: str) -> list[str]:
    return [f"{target} = ({at.value}.toordinal() - {EPOCH_DAY}) * 86400000"]


def _unsigned(at: Place, target: str) -> list[str]:
    return [f"{target} = {at.names.helper(decimal.Decimal)}({at.value})"]


def _signed(at: Place, target: str) -> list[str]:
    return [f"if {at.value} <= {INT64_MAX}:", *indented([f"{target} = {at.value}"])]


CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bool], Conversion], ...] = (
    (_is(pa.uint64()), _is(pa.decimal128(20, 0)), _unsigned),
    (_is(pa.uint64()), _is(pa.int64()), _signed),
    (pa.types.is_integer, _is(pa.int64()), None),
    (pa.types.is_float16, _is(pa.float64()), _half),
    (pa.types.is_float32, _is(pa.float64()), _single),
    (pa.types.is_float64, _is(pa.float64()), _double),
    (is_text, is_text, None),
    (pa.types.is_boolean, pa.types.is_boolean, None),
    (pa.types.is_date, _is(pa.date32()), _days),
    (pa.types.is_date64, _is(pa.timestamp("ms")), _milliseconds),
    (pa.types.is_timestamp, pa.types.is_timestamp, None),
    (pa.types.is_duration, pa.types.is_duration, None),
    (pa.types.is_decimal, pa.types.is_decimal, None),
    (pa.types.is_time, pa.types.is_time, None),
    (_is_binary, _is_binary, None),
)
"""From the type of an attribute to the canonical type that conditions read it as (or its own, for IS NULL): how the value is made."""
