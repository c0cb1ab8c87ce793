"""Random conditions over random schemas and nasty values, and the letters that Arrow gives them."""

from __future__ import annotations

import collections
import datetime as dt
import math
import zoneinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.engine.input.column_types import without_views
from cepheid.engine.input.event_times import times_of
from cepheid.engine.input.payload import Payload
from cepheid.engine.input.read import table_of
from cepheid.engine.letters.predicates import Predicates
from cepheid.engine.run.intake import _cast
from cepheid.engine.run.query_state import OneRow
from cepheid.errors import CepheidError
from cepheid.logical import calendar
from cepheid.logical.plan import Apply, Expression, Field, Literal, Time
from cepheid.logical.types import canonical, time_value_type
from cepheid.schema import EventSchema

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from cepheid.engine.letters.row_letters import RowLetters

BOOL, INT, DOUBLE, TEXT, DATE = pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.date32()
BERLIN, PLUS_TWO = zoneinfo.ZoneInfo("Europe/Berlin"), dt.timezone(dt.timedelta(hours=2))

ROWS = 5
"""Rows per random schema and program."""


class Text(str):
    """No str for us, and one for Arrow."""

    __slots__ = ()


class Kind(NamedTuple):
    """An Arrow type with ordinary values, nasty ones that Python reads, and those that may or have to go through Arrow."""

    type: pa.DataType
    ordinary: list[Any]
    nasty: list[Any]
    others: list[Any]


def utc(*when: int) -> dt.datetime:
    return dt.datetime(*when, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]


def local(*when: int) -> dt.datetime:
    return dt.datetime(*when)  # type: ignore[arg-type]  # noqa: DTZ001 - times without zone


def integers(low: int, high: int) -> list[Any]:
    return [low, high, low + 1, high - 1]


NOT_INTEGERS = [True, 1.0, 1.5, "1", Decimal(1), np.int64(3), np.float64(2.0), 2**63, -(2**63) - 1, 2**64, b"1", 1 << 200]
NOT_TEXT = [1, b"a", Text("a"), "\ud800", "a\udfffb", True, ["a"], np.str_("a")]
NOT_TIMES = [
    0, "2024-01-01", pd.Timestamp(2024, 1, 1), pd.Timestamp(0, unit="ns", tz="UTC"), pd.NaT, np.datetime64("2024-01-01"), dt.date(2024, 1, 1),
    local(2024, 1, 1, 0, 0, 0, 1), utc(2024, 1, 1, 0, 0, 0, 1), local(3000, 1, 1), utc(1, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=30))),
]  # fmt: skip
NOT_SPANS = [0, 1.5, pd.Timedelta(1, "ns"), np.timedelta64(1, "s"), dt.timedelta(microseconds=1), dt.timedelta.max, dt.timedelta.min, dt.timedelta(days=110_000)]  # fmt: skip
TEXTS = [
    "a",
    "A",
    "ab",
    "b",
    "",
    "a%b",
    "a_b",
    "a\\b",
    "%",
    "_",
    "é",
    "É",
    "ß",
    "日本",
    "\U0001f600",
    "z\n",
    "line\nbreak",
    "ab.",
    "(x)",
    "\0",
]
DECIMALS = [Decimal("1.25"), Decimal("0.00"), Decimal("1.5"), Decimal(7), Decimal("-0.01")]
NOT_DECIMALS = [1, 1.5, "1", Decimal("NaN"), Decimal("Infinity"), Decimal("1.255"), Decimal("1E+60"), Decimal("1E-60"), Decimal("0E-60"), Decimal(10**37), True]  # fmt: skip

KINDS: dict[str, Kind] = {
    "i": Kind(INT, [0, 1, -1, 7, -7, 3], [*integers(-(2**63), 2**63 - 1), 2**62, 3_037_000_500, 2**53 + 1, None], NOT_INTEGERS),
    "i8": Kind(pa.int8(), [0, 1, 100], [*integers(-128, 127), None], [*NOT_INTEGERS, 128, -129, 1000]),
    "i16": Kind(pa.int16(), [0, 1, 100], [*integers(-32768, 32767), None], [*NOT_INTEGERS, 40_000]),
    "i32": Kind(pa.int32(), [0, 1, 100], [*integers(-(2**31), 2**31 - 1), None], [*NOT_INTEGERS, 2**31]),
    "u8": Kind(pa.uint8(), [0, 1, 100], [*integers(0, 255), None], [*NOT_INTEGERS, 256, -1]),
    "u16": Kind(pa.uint16(), [0, 1, 100], [*integers(0, 65535), None], [*NOT_INTEGERS, -1]),
    "u32": Kind(pa.uint32(), [0, 1, 100], [*integers(0, 2**32 - 1), None], [*NOT_INTEGERS, 2**32, -1]),
    "u64": Kind(pa.uint64(), [0, 1, 100], [*integers(0, 2**64 - 1), 2**63, None], [*NOT_INTEGERS, -1]),
    "d": Kind(
        DOUBLE,
        [0.0, 1.5, -2.5, 0.1, 3, -7],
        [-0.0, math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, 2**53, -(2**53), None],
        [2**53 + 1, -(2**53) - 1, 2**54, 1 << 70, True, "1.5", Decimal("1.5"), np.float64(0.1), np.float32(0.1), np.int64(2)],
    ),
    "f": Kind(
        pa.float32(),
        [0.0, 1.5, -2.5, 0.1, 3],
        [-0.0, math.inf, -math.inf, math.nan, 3.4e38, 1e-46, 2**24, -(2**24), None],
        [1e300, -1e300, 3.5e38, 2**24 + 1, True, "1", np.float32(0.1)],
    ),
    "h": Kind(pa.float16(), [None], [None], [0.1, 1.5, 70000.0, math.nan, 3, 2049]),
    "s": Kind(TEXT, TEXTS[:5], [*TEXTS, None], NOT_TEXT),
    "l": Kind(pa.large_string(), TEXTS[:5], [*TEXTS, None], NOT_TEXT),
    "w": Kind(pa.string_view(), TEXTS[:5], [*TEXTS, None], NOT_TEXT),
    "k": Kind(pa.dictionary(pa.int8(), pa.string()), TEXTS[:5], [*TEXTS, None], NOT_TEXT),
    "kl": Kind(pa.dictionary(pa.int32(), pa.large_string()), TEXTS[:5], [*TEXTS, None], NOT_TEXT),
    "ki": Kind(pa.dictionary(pa.int32(), pa.int64()), [None], [None], [1, "a"]),
    "b": Kind(BOOL, [True, False], [None], [0, 1, "true", np.bool_(True)]),
    "date": Kind(DATE, [dt.date(2024, 2, 29), dt.date(1970, 1, 1)], [dt.date.min, dt.date.max, dt.date(1969, 12, 31), None], [0, local(2024, 1, 1), "x"]),
    "date64": Kind(pa.date64(), [dt.date(2024, 2, 29), dt.date(1970, 1, 1)], [dt.date.min, dt.date.max, None], [0, local(2024, 1, 1), pd.Timestamp(0)]),
    **{
        f"t{unit}": Kind(
            pa.timestamp(unit),
            [local(2024, 3, 31, 1, 30), local(1970, 1, 1)],
            [*([] if unit == "ns" else [local(1, 1, 1), local(9999, 12, 31)]), local(1969, 12, 31, 23, 59, 59), None],
            [*NOT_TIMES, local(9999, 12, 31, 23, 59, 59, 999_999), utc(2024, 3, 31)],
        )
        for unit in ("s", "ms", "us", "ns")
    },
    **{
        f"z{unit}{'' if zone == 'UTC' else 'z'}": Kind(
            pa.timestamp(unit, zone),
            [utc(2024, 3, 31, 1, 30), utc(1970, 1, 1)],
            [
                *([] if unit == "ns" else [utc(1, 1, 1), utc(9999, 12, 31), dt.datetime(1, 1, 1, tzinfo=PLUS_TWO)]),
                dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
                dt.datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN), dt.datetime(1800, 1, 1, tzinfo=BERLIN), dt.datetime(2024, 1, 1, tzinfo=PLUS_TWO), None,
            ],
            [*NOT_TIMES, local(2024, 3, 31)],
        )
        for unit, zone in (("s", "UTC"), ("ms", "Europe/Berlin"), ("us", "UTC"), ("us", "America/New_York"), ("ns", "UTC"))
    },
    **{
        f"p{unit}": Kind(
            pa.duration(unit),
            [dt.timedelta(seconds=5), dt.timedelta(0)],
            [dt.timedelta(seconds=-1), dt.timedelta(days=100_000), dt.timedelta(days=-100_000), None],
            NOT_SPANS,
        )
        for unit in ("s", "ms", "us", "ns")
    },
    **{
        f"o{kind.unit}": Kind(kind, [dt.time(1, 2, 3)], [dt.time.min, None], [0, dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 4000), dt.time(1, tzinfo=dt.UTC), dt.time.max])
        for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
    },
    "n": Kind(pa.decimal128(12, 2), DECIMALS, [Decimal("-9999999999.99"), Decimal("9999999999.99"), Decimal("-0.0"), Decimal("1E+3"), Decimal("1.2500"), None], NOT_DECIMALS),
    "n32": Kind(pa.decimal32(5, 1), [Decimal("1.5"), Decimal(2)], [Decimal("9999.9"), None], [*NOT_DECIMALS, Decimal(10000)]),
    "n38": Kind(pa.decimal128(38, 6), DECIMALS, [Decimal("9" * 32 + ".999999"), Decimal("-0.000001"), None], NOT_DECIMALS),
    "n0": Kind(pa.decimal128(38, 0), [Decimal(1), Decimal(2**64)], [Decimal(10**38 - 1), Decimal(1 - 10**38), None], [*NOT_DECIMALS, Decimal(10**38)]),
    "nn": Kind(pa.decimal128(6, -3), [Decimal(1000), Decimal(5000)], [Decimal("1E+3"), Decimal(0), None], [*NOT_DECIMALS, Decimal(10**9), Decimal(10)]),
    "n50": Kind(pa.decimal256(50, 2), [None], [None], [Decimal("1.25"), *NOT_DECIMALS, Decimal(10**40)]),
    "x": Kind(pa.binary(), [b"a", b""], [b"\xff", None], ["a", bytearray(b"a"), 1]),
    "x4": Kind(pa.binary(4), [b"abcd"], [None], ["abcd", b"abc", 1]),
    "null": Kind(pa.null(), [None], [None], [1, "a", math.nan]),
    "list": Kind(pa.list_(pa.int64()), [[1], [1, 2]], [[], [None], [1, None], [2**63 - 1], None], [[1.0], [1, 2.0], [2**63], ["a"], [True], [1, "a"], (1,), {1}, 1, "a"]),
    "ld": Kind(pa.large_list(DOUBLE), [[0.5, 1], [2]], [[math.nan, None], [], [2**53, 0.5]], [[2**53 + 1, 0.5], [2**53 + 1], [0.5, "1"], [True, 0.5]]),
    "lf": Kind(pa.list_(pa.float32()), [[0.1, 1]], [[2**24, None]], [[2**24 + 1], [2**24 + 1, 0.5], [1e300]]),
    "ls": Kind(pa.list_(pa.large_string()), [["a", "é"]], [[None, ""]], [["\ud800"], ["a", 1], ["a", b"a"], [["a"]]]),
    "lz": Kind(pa.list_(pa.timestamp("ms", "UTC")), [[utc(2024, 1, 1)]], [[utc(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=BERLIN), None], [dt.datetime(2024, 1, 1, tzinfo=PLUS_TWO), utc(1, 1, 1)]], [[utc(2024, 1, 1), local(2024, 1, 1)], [local(2024, 1, 1)], *([time] for time in NOT_TIMES)]),
    "ln": Kind(pa.list_(pa.decimal128(12, 2)), [[Decimal("1.5"), Decimal("1.25")]], [[Decimal("1E+3"), None]], [[1, Decimal("1.5")], *([number] for number in NOT_DECIMALS)]),
    "ll": Kind(pa.list_(pa.list_(pa.int8())), [[[1], [2, 3]], []], [[[], None, [None]]], [[[1], 2], [[300]], [1], [[1.0]]]),
    "lst": Kind(
        pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.date32()))])),
        [[{"a": 1, "b": [dt.date(2024, 1, 1)]}, {"a": None, "b": []}]],
        [[None, {"a": None, "b": None}], [{"a": 1, "b": [None]}]],
        [[{"a": 1}], [{"b": [], "a": 1}], [{"a": 1, "b": [1]}], [{"a": 1, "b": []}, {"a": 1.5, "b": []}], [{"a": 1, "b": [local(2024, 1, 1)]}]],
    ),
    "ls2": Kind(pa.list_(pa.int64(), 2), [None], [None], [[1, 2], [1], [None, 1]]),
    "lk": Kind(pa.list_(pa.dictionary(pa.int8(), pa.string())), [None], [None], [["a"], []]),
    "sl": Kind(pa.struct([("l", pa.list_(pa.string()))]), [{"l": ["a"]}], [{"l": None}, {"l": [None]}], [{"l": [1]}, {"l": "a"}]),
    "map": Kind(pa.map_(pa.string(), pa.int64()), [None], [None], [[("a", 1)], {"a": 1}]),
    "uuid": Kind(pa.uuid(), [None], [None], [b"0" * 16, 1]),
    "every": Kind(pa.month_day_nano_interval(), [None], [None], [pa.MonthDayNano([1, 2, 3]), dt.timedelta(1)]),
    "st": Kind(
        pa.struct([("a", pa.int64()), ("b", pa.float64()), ("c", pa.struct([("s", pa.string()), ("t", pa.timestamp("us", "UTC"))]))]),
        [{"a": 1, "b": 0.5, "c": {"s": "a", "t": utc(2024, 1, 1)}}, {"a": -7, "b": 3, "c": None}],
        [None, {"a": None, "b": math.nan, "c": {"s": None, "t": None}}, {"a": 2**63 - 1, "b": -0.0, "c": {"s": "é", "t": utc(1, 1, 1)}}],
        [
            {"a": 1}, {"a": 1, "b": 2.0}, {"b": 0.5, "a": 1, "c": None}, {"a": "1", "b": 0.5, "c": None}, {"a": 1, "b": 0.5, "c": None, "d": 1}, {}, 1,
            {"a": 1, "b": 0.5, "c": {}}, {"a": 1, "b": 0.5, "c": {"s": 5, "t": None}}, {"a": 2**63, "b": 0.5, "c": None}, {"a": 1.5, "b": 0.5, "c": None},
            {"a": 1, "b": 0.5, "c": {"s": "a", "t": local(2024, 1, 1)}}, {"a": 1, "b": 0.5, "c": {"s": "\ud800", "t": None}},
        ],
    ),
    "su": Kind(
        pa.struct([("u", pa.uint64()), ("n", pa.decimal128(12, 2)), ("f", pa.float32()), ("k", pa.large_string())]),
        [{"u": 5, "n": Decimal("1.25"), "f": 0.1, "k": "a"}],
        [None, {"u": 2**63 - 1, "n": None, "f": math.inf, "k": None}],
        [{"u": 2**63, "n": None, "f": 0.1, "k": "a"}, {"u": -1, "n": None, "f": 0.1, "k": "a"}, {"u": 1, "n": 1, "f": 1e300, "k": "a"}],
    ),
}  # fmt: skip
TIMES = ("i", "i8", "i32", "u32", "date", "date64", "ts", "tms", "tus", "tns", "zs", "zmsz", "zus", "zns")
"""The kinds that can be event time."""


def fields_of(name: str, kind: pa.DataType, path: tuple[str, ...] = ()) -> list[Field]:
    """The attribute and the fields inside it, as conditions see them."""
    path = (*path, name)
    inner = [kind.field(number) for number in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    own = canonical(kind)
    return [
        Field("", path, kind if own is None else own, kind),
        *(field for part in inner for field in fields_of(part.name, part.type, path)),
    ]


class Conditions:
    """Random conditions about some attributes, with the operators of `plan.OPERATORS`; the types fit as binding makes them fit."""

    def __init__(self, rng: random.Random, schema: EventSchema) -> None:
        self.rng = rng
        self.fields: dict[pa.DataType, list[Expression]] = collections.defaultdict(list)
        self.nested: list[Expression] = []
        for name, kind in schema.attributes.items():
            for field in fields_of(name, kind):
                (self.fields[field.type] if canonical(field.source) is not None else self.nested).append(field)
        if schema.time_column is not None:
            time_type = time_value_type(schema.time_type)
            self.fields[time_type].append(Time("", time_type))
        # A column of NULLs is of any type.
        for field in self.fields.pop(pa.null(), []):
            for kind in list(self.fields):
                self.fields[kind].append(Field("", field.path, kind, pa.null()))  # type: ignore[attr-defined]
        self.kinds = list(self.fields) or [INT]

    def literal(self, kind: pa.DataType) -> Literal:
        if self.rng.random() < 0.1:
            return Literal(None, kind)
        if pa.types.is_decimal(kind):
            whole = 10 ** (kind.precision - kind.scale) - 1
            return Literal(Decimal(self.rng.choice([0, 1, 1, -1, whole, -whole])), kind)
        steps = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
        values: list[Any] = (
            [True, False] if kind == BOOL else
            [0.0, 1.5, -2.5, 0.1, 1e308, math.inf, float(np.float32(0.1))] if kind == DOUBLE else
            TEXTS if kind == TEXT else
            [dt.date(2024, 2, 29), dt.date(1970, 1, 1), dt.date.min] if kind == DATE else
            [0, 1, -1, 1_711_848_600, 1_711_848_600_000, 1_711_848_600_000_000, 2**63 - 1] if steps else
            [0, 1, -1, 2, 7, 100, 2**62, 2**63 - 1, -(2**63)]
        )  # fmt: skip
        return Literal(self.rng.choice(values), kind)

    def value(self, kind: pa.DataType, depth: int) -> Expression:
        """A random expression of a type."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.3:
            fields = self.fields.get(kind)
            return rng.choice(fields) if fields and rng.random() < 0.8 else self.literal(kind)
        return rng.choice(list(self._ways(kind, depth - 1)))()

    def _ways(self, kind: pa.DataType, depth: int) -> list[Callable[[], Expression]]:
        rng = self.rng
        sub = lambda of=kind: self.value(of, depth)  # noqa: E731 - the same as in the other generators
        ways: list[Callable[[], Expression]] = [lambda: Apply("coalesce", tuple(sub() for _ in range(rng.randint(1, 3))), kind)]
        ways += [lambda: Apply("case", (self.condition(depth), sub(), self.condition(depth), sub(), sub()), kind)]
        if kind == BOOL:
            ways += [lambda: self.condition(depth)] * 3
        if kind in (INT, DOUBLE) or pa.types.is_decimal(kind):
            signs = ["+", "-", "*", "%"] + ["/"] * (kind != INT)
            ways += [lambda: Apply(rng.choice(signs), (sub(), sub()), kind)] * 3
            ways += [lambda: Apply(rng.choice(["negate", "abs", "floor", "ceil"]), (sub(),), kind)]
        if kind == DOUBLE or pa.types.is_decimal(kind):
            others = [INT] + [other for other in self.kinds if pa.types.is_decimal(other)]
            ways += [lambda: Apply("cast", (sub(rng.choice(others)),), kind)]
        if kind == INT:
            ways += [lambda: Apply("length", (sub(TEXT),), INT), lambda: Apply(rng.choice(calendar.DATES), (sub(DATE),), INT)]
            stamps = [other for other in self.kinds if pa.types.is_timestamp(other)]
            ways += [lambda: Apply(rng.choice(calendar.PARTS), (sub(rng.choice(stamps)),), INT)] if stamps else []
            zoned = [other for other in stamps if other.tz is not None]
            ways += [lambda: Apply(rng.choice(calendar.PARTS), (self._local(rng.choice(zoned), depth),), INT)] if zoned else []
        if kind == TEXT:
            ways += [lambda: Apply(rng.choice(["lower", "upper"]), (sub(),), TEXT), lambda: Apply("concat", (sub(), sub()), TEXT)]
        if pa.types.is_timestamp(kind):
            span = pa.duration(kind.unit)
            ways += [lambda: Apply(rng.choice("+-"), (sub(), sub(span)), kind)]
            coarser = [other for other in self.kinds if pa.types.is_timestamp(other) and other.tz == kind.tz and coarse(other, kind)]
            coarser += [DATE] if kind.tz is None else []
            ways += [lambda: Apply("cast", (sub(rng.choice(coarser)),), kind)] if coarser else []
        if pa.types.is_duration(kind):
            ways += [lambda: Apply(rng.choice("+-"), (sub(), sub()), kind), lambda: Apply("negate", (sub(),), kind)]
            zones = [other for other in self.kinds if pa.types.is_timestamp(other) and other.unit == kind.unit]
            ways += [lambda: Apply("-", (sub(zones[0]), sub(zones[0])), kind)] if zones else []
            coarser = [other for other in self.kinds if pa.types.is_duration(other) and coarse(other, kind)]
            ways += [lambda: Apply("cast", (sub(rng.choice(coarser)),), kind)] if coarser else []
        return ways

    def _local(self, kind: pa.DataType, depth: int) -> Expression:
        zone = self.rng.choice(["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "-03:30"])
        return Apply("local_time", (self.value(kind, depth), Literal(zone, TEXT)), pa.timestamp(kind.unit))

    def condition(self, depth: int) -> Expression:
        rng = self.rng
        kind = rng.choice(self.kinds)
        choice = rng.random()
        if choice < 0.3 and depth > 0:
            name = rng.choice(["and", "or", "not"])
            return Apply(name, tuple(self.condition(depth - 1) for _ in range(1 if name == "not" else rng.randint(2, 3))), BOOL)
        if choice < 0.4:
            return Apply("is_null", (rng.choice(self.nested) if self.nested and rng.random() < 0.5 else self.value(kind, depth - 1),), BOOL)
        if choice < 0.5:
            options = tuple(self.literal(kind) for _ in range(rng.choice([1, 3, 10])))
            return Apply("in", (self.value(kind, depth - 1), *options), BOOL)
        if choice < 0.6:
            pattern = "".join(rng.choice("ab%_%\\.é(") for _ in range(rng.randint(0, 6)))
            return Apply("like", (self.value(TEXT, depth - 1), Literal(pattern, TEXT)), BOOL)
        if choice < 0.65:
            return self.value(BOOL, depth - 1)
        signs = ["=", "!="] if kind == BOOL else ["=", "!=", "<", "<=", ">", ">="]
        return Apply(rng.choice(signs), (self.value(kind, depth - 1), self.value(kind, depth - 1)), BOOL)


STEP = {"s": 3, "ms": 2, "us": 1, "ns": 0}


def coarse(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether a unit is coarser than another."""
    return STEP[one.unit] > STEP[other.unit]


def random_schema(rng: random.Random) -> EventSchema:
    names = rng.sample(list(KINDS), rng.randint(1, 6))
    clock = rng.choice([None, *TIMES])
    attributes = {name: KINDS[name].type for name in names}
    if clock is not None:
        attributes["ts_"] = KINDS[clock].type
    return EventSchema(attributes, time_column=None if clock is None else "ts_")


def values_of(rng: random.Random, schema: EventSchema, mode: str) -> dict[str, Any]:
    """A row of ordinary values, or with nasty ones, or with some that do not fit."""
    row = {}
    for name, kind in schema.attributes.items():
        values = KINDS.get(name) or next(KINDS[clock] for clock in TIMES if KINDS[clock].type == kind)
        choice = values.ordinary
        if mode != "ordinary" and rng.random() < 0.6:
            choice = values.nasty if mode == "nasty" or rng.random() < 0.5 else values.others
        row[name] = rng.choice(choice)
    return row


def events_of(schema: EventSchema, row: dict[str, Any]) -> pa.Table:
    """The table that a recognizer makes of a list with this one row; raises CepheidError or KeyError."""
    table = without_views(table_of([row]))
    columns = [_cast(table[name], pa.field(name, kind)) for name, kind in schema.attributes.items()]
    return pa.table(columns, list(schema.attributes))


def by_arrow(schema: EventSchema, programs: tuple[Predicates, ...], row: dict[str, Any], *, fits: bool) -> tuple[int, ...] | None:
    """Time and letters as a recognizer has them of a list with this one row; None where that is an error. fits: so Python says, and makes its table."""
    try:
        events = events_of(schema, row)
        clock = 0 if schema.time_column is None else int(times_of(events, schema.time_column)[0])
    except (CepheidError, KeyError):
        return None
    if fits:
        payload, at = Payload(events.schema), np.zeros(1, np.int64)
        payload.append(OneRow(tuple(row.values()), events.schema).values(events.column_names), at, at, at, at)
        alone, made = payload.shown(at)[0], payload.events
        assert made.schema == events.schema
        assert all(str(alone.column(name)) == str(made[name]) for name in made.column_names)
        # NaN is not equal to NaN.
        assert all(one == other or str(one) == str(other) for one, other in zip(made.columns, events.columns, strict=True)), row
    return (clock, *(int(program.reader().read(events)[0]) for program in programs))


def check(letters: RowLetters, schema: EventSchema, programs: tuple[Predicates, ...], row: dict[str, Any]) -> bool | None:
    """Assert that one row has the letters that Arrow gives, and say whether Python gave them; None where it is an error."""
    found = letters.read(row)
    wanted = by_arrow(schema, programs, row, fits=found is not None)
    if found is None:
        return None if wanted is None else False
    if found != wanted:
        wrong = [
            condition
            for program, one, other in zip(programs, found[1:], (wanted or [0] * len(found))[1:], strict=False)
            for value, condition in zip(program.values, program.conditions, strict=True)
            if (one ^ other) & value
        ]
        pytest.fail(f"{found} is not {wanted}: {row} {schema.attributes}\n{wrong[:1]}")
    assert letters.read(tuple(row.values())) == found
    assert letters.letter(row) == found[1]
    return True


def program_of(conditions: list[Expression], schema: EventSchema) -> Predicates:
    return Predicates(Alphabet(tuple(map(Predicate, conditions))), schema)
