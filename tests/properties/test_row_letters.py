"""Letters of one event by compiled Python: for random conditions over random schemas and nasty values the same as Arrow's, or left to Arrow."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import math
import random
import time
import zoneinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.engine.input.payload import Payload
from cepheid.engine.input.read import table_of, times_of, without_views
from cepheid.engine.letters.predicates import Predicates
from cepheid.engine.letters.row_letters import OPERATORS, RowLetters, why_arrow
from cepheid.engine.letters.row_values import CHECKS
from cepheid.engine.letters.values import OPERATIONS
from cepheid.engine.run.intake import _cast
from cepheid.engine.run.query_state import OneRow
from cepheid.errors import CepheidError
from cepheid.logical import plan
from cepheid.logical.folding import like
from cepheid.logical.plan import Apply, Expression, Field, Index, Literal, Time
from cepheid.logical.types import canonical, time_value_type
from cepheid.schema import EventSchema
from cepheid.testing.generators import ENGINE, NESTED, SCHEMA, TIMED_SCHEMA, random_query, random_stream

if TYPE_CHECKING:
    from collections.abc import Callable

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
    "n50": Kind(pa.decimal256(50, 2), [Decimal("1.25")], [None], [*NOT_DECIMALS, Decimal(10**40)]),
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
            ways += [lambda: Apply("length", (sub(TEXT),), INT)]
        if kind == TEXT:
            ways += [lambda: Apply(rng.choice(["lower", "upper"]), (sub(),), TEXT)]
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


def by_arrow(schema: EventSchema, programs: tuple[Predicates, ...], row: dict[str, Any], *, fits: bool) -> tuple[int, ...] | None:
    """Time and letters as a recognizer has them of a list with this one row; None where that is an error. fits: so Python says, and makes its table."""
    try:
        table = without_views(table_of([row]))
        columns = [_cast(table[name], pa.field(name, kind)) for name, kind in schema.attributes.items()]
        events = pa.table(columns, list(schema.attributes))
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


@pytest.mark.parametrize("mode", ["ordinary", "nasty", "others"])
def test_random_conditions_have_the_letters_that_arrow_gives(mode: str, cases: int, seed: int) -> None:
    rng = random.Random(f"{seed} {mode}")
    ways = collections.Counter[bool | None]()
    for _ in range(cases):
        schema = random_schema(rng)
        conditions = Conditions(rng, schema)
        programs = tuple(
            program_of([conditions.condition(rng.randint(1, 4)) for _ in range(rng.randint(1, 5))], schema)
            for _ in range(rng.choice([1, 1, 2]))
        )
        letters = RowLetters.of(*programs)
        assert letters is not None, why_arrow(*programs)
        for _ in range(ROWS):
            ways[check(letters, schema, programs, values_of(rng, schema, mode))] += 1
    accepted = ways[True] + ways[False]
    assert ways.total() == ROWS * cases
    least = {"ordinary": 1.0, "nasty": 1.0, "others": 0.4}[mode] * accepted
    assert ways[True] >= least > 0, f"of {accepted} rows that Arrow takes {ways[True]} by Python"


@pytest.mark.parametrize("schema", [SCHEMA, TIMED_SCHEMA], ids=["numbers", "timestamps"])
def test_queries_have_the_letters_that_arrow_gives(schema: pa.Schema, cases: int, seed: int) -> None:
    rng = random.Random(f"{seed} {schema}")
    ways = collections.Counter[bool | None]()
    for number in range(cases // 4):
        fragment = dataclasses.replace((ENGINE, NESTED)[number % 2], unit="s" if schema is TIMED_SCHEMA else "")
        query = cepheid.query(random_query(rng, fragment=fragment))
        compiled = query.compiled(query.schema(schema))
        letters = RowLetters.of(*compiled.alphabets)
        assert letters is not None
        for row in random_stream(rng):
            event = {**row, "ts": utc(1970, 1, 1) + dt.timedelta(seconds=row["ts"])} if schema is TIMED_SCHEMA else row
            ways[check(letters, compiled.schema, compiled.alphabets, event)] += 1
    assert ways[True] == ways.total() > cases


# ------------------------------------------------------------------------------------------------------------------ table by table


def test_every_operator_has_a_function_of_one_row() -> None:
    """None goes through Arrow."""
    assert list(OPERATORS) == [name for name in OPERATIONS if name in OPERATORS]
    assert set(OPERATORS) == set(plan.OPERATORS)


def test_random_conditions_have_every_operator(seed: int) -> None:
    rng = random.Random(seed)
    met: set[str] = set()
    while met < set(plan.OPERATORS):
        condition = Conditions(rng, random_schema(rng)).condition(4)
        met |= {node.operator for node in plan.walk(condition) if isinstance(node, Apply)}


THROUGH_ARROW = {
    "h": "Arrow's own rounding to half floats",
    "ki": "a recognizer casts no integers to dictionaries",
    "n50": "a recognizer takes no list of decimals for more than 38 digits",
    "null": "only NULL goes with it",
    "ls2": "nothing but IS NULL can be asked",
    "map": "nothing but IS NULL can be asked",
    "uuid": "nothing but IS NULL can be asked",
    "every": "nothing but IS NULL can be asked",
}
"""Kinds of which no value but NULL is read by Python (half floats: where a condition reads them)."""


@pytest.mark.parametrize("name", KINDS)
def test_values_of_every_type(name: str) -> None:
    """One attribute, read and not read: each value has the letters that Arrow gives, ordinary and nasty ones by Python."""
    kind = KINDS[name]
    schema = EventSchema({"x": kind.type})
    fields = fields_of("x", kind.type)
    read = program_of([Apply("is_null", (field,), BOOL) for field in fields], schema)
    ignored = program_of([Literal(True, BOOL)], schema)
    for program in (read, ignored):
        letters = RowLetters.of(program)
        assert letters is not None
        for value in [*kind.ordinary, *kind.nasty, *kind.others]:
            way = check(letters, schema, (program,), {"x": value})
            if name not in THROUGH_ARROW and not any(value is other for other in kind.others):
                assert way, value
            if name in THROUGH_ARROW and value is not None and (name != "h" or program is read):
                assert not way, value


def test_every_check_is_tried() -> None:
    for test, _ in CHECKS:
        assert any(test(kind.type) for name, kind in KINDS.items() if name not in THROUGH_ARROW)


@pytest.mark.parametrize("name", TIMES)
def test_times_of_every_type(name: str) -> None:
    schema = EventSchema({"ts_": KINDS[name].type}, time_column="ts_")
    time_type = time_value_type(schema.time_type)
    program = program_of(
        [Apply(sign, (Time("", time_type), Literal(steps, time_type)), BOOL) for sign in ("<", "=") for steps in (0,)], schema
    )
    if time_type == DATE:
        program = program_of([Apply("<", (Time("", DATE), Literal(dt.date(1970, 1, 2), DATE)), BOOL)], schema)
    letters = RowLetters.of(program)
    assert letters is not None
    for value in [*KINDS[name].ordinary, *KINDS[name].nasty, *KINDS[name].others]:
        assert check(letters, schema, (program,), {"ts_": value}) or value is None or any(value is other for other in KINDS[name].others)
    assert letters.read({"ts_": None}) is None


# ------------------------------------------------------------------------------------------------------------------------ the edges

EDGES: dict[pa.DataType, list[Any]] = {
    INT: [0, 1, -1, 2, -2, 7, 2**63 - 1, -(2**63), 2**62, 2**63 - 2, None],
    DOUBLE: [0.0, -0.0, 1.0, -1.0, 0.1, 1e308, -1e308, 1.7976931348623157e308, 5e-324, math.inf, -math.inf, math.nan, None],
    TEXT: [*TEXTS, "ÀÉ", "àé", "I\u0130", None],
}


@pytest.mark.parametrize("kind", EDGES, ids=str)
def test_operators_at_the_edges(kind: pa.DataType) -> None:
    """Each operator on all pairs of values: whether its result is NULL, and how it compares with both."""
    schema = EventSchema({"a": kind, "b": kind})
    a, b = (Field("", (name,), kind, kind) for name in "ab")
    results: list[Expression] = [Apply("coalesce", (a, b), kind)]
    if kind == TEXT:
        results += [Apply(name, (a,), TEXT) for name in ("lower", "upper")]
    else:
        results += [Apply(sign, (a, b), kind) for sign in ["+", "-", "*", "%"] + ["/"] * (kind == DOUBLE)]
        results += [Apply(name, (a,), kind) for name in ("negate", "abs", "floor", "ceil")]
    for result in results:
        tests = [
            Apply("is_null", (result,), BOOL),
            *(Apply(sign, (result, other), BOOL) for sign in ("=", "!=", "<", ">") for other in (a, b)),
        ]
        program = program_of(list(tests), schema)
        letters = RowLetters.of(program)
        assert letters is not None
        rows = [{"a": left, "b": right} for left in EDGES[kind] for right in EDGES[kind]]
        table = pa.table({name: pa.array([row[name] for row in rows], kind) for name in "ab"})
        assert [letters.letter(row) for row in rows] == program.letters(table).tolist(), result


TWO = EventSchema({"a": INT, "b": TEXT})
ABOVE = Apply(">", (Field("", ("a",), INT, INT), Literal(1, INT)), BOOL)


@pytest.mark.parametrize(
    "row",
    [
        {}, {"a": 2}, {"a": 2, "c": "x"}, {"a": 2, "b": "x", "c": 1}, {"a": 2, "b": "x", 3: None}, {"b": "x", None: 2}, (), (2,), (2, "x", 1), [2, "x"], None, 5,
        "ax", collections.defaultdict(int, {"a": 2}), collections.OrderedDict(a=2, b="x"), {1: 2, 2: 3},
    ],
)  # fmt: skip
def test_what_is_no_row_goes_through_arrow(row: Any) -> None:
    letters = RowLetters.of(program_of([ABOVE], TWO))
    assert letters is not None
    before = repr(row)
    assert letters.read(row) is None
    assert letters.letter(row) is None
    assert repr(row) == before


def test_attributes_in_another_order_are_the_same_row() -> None:
    letters = RowLetters.of(program_of([ABOVE], TWO))
    assert letters is not None
    assert letters.read({"b": "x", "a": 2}) == letters.read((2, "x")) == (0, 1)


def test_names_and_constants_are_no_source() -> None:
    name, text = "a\n]) or __import__('os').abort() #", "'); raise SystemExit #\n"
    schema = EventSchema({name: TEXT, "s": pa.struct([(text, INT)])})
    field = Field("", (name,), TEXT, TEXT)
    conditions: list[Expression] = [
        Apply("=", (field, Literal(text, TEXT)), BOOL),
        Apply("like", (field, Literal(text + "%_", TEXT)), BOOL),
        Apply(">", (Apply("lower", (field,), TEXT), Literal(text, TEXT)), BOOL),
        Apply("is_null", (Field("", ("s", text), INT, INT),), BOOL),
    ]
    program = program_of(conditions, schema)
    letters = RowLetters.of(program)
    assert letters is not None
    assert "abort" not in letters.source
    assert "SystemExit" not in letters.source
    assert [
        check(letters, schema, (program,), {name: value, "s": {text: number}}) for value, number in ((text, 1), (text + "x", None))
    ] == [True] * 2


def test_conditions_that_nest_deep_and_many_of_them() -> None:
    deep: Expression = Field("", ("a",), INT, INT)
    for number in range(60):
        deep = Apply("coalesce" if number % 3 else "+", (deep, Literal(1, INT)), INT)
    either: Expression = Apply("or", tuple(Apply("<", (deep, Literal(number, INT)), BOOL) for number in range(20)), BOOL)
    for _ in range(20):
        either = Apply("not", (either,), BOOL)
    program = program_of([either, ABOVE], TWO)
    letters = RowLetters.of(program)
    assert letters is not None
    assert all(check(letters, TWO, (program,), {"a": value, "b": None}) for value in (0, 5, -50, None, 2**63 - 1))
    for _ in range(2000):
        deep = Apply("+", (deep, Literal(1, INT)), INT)
    too_deep = unread(Apply("<", (deep, Literal(1, INT)), BOOL))
    assert RowLetters.of(too_deep) is None
    assert why_arrow(too_deep) == "conditions nest too deep"


def unread(condition: Expression) -> Predicates:
    """A program that no reader could read."""
    program = Predicates.__new__(Predicates)
    program.schema, program.values, program.conditions = TWO, (1,), (condition,)
    return program


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (Apply("=", (Index(""), Literal(1, INT)), BOOL), "Index has no function of one row"),
        (Apply("=", (Field("", ("b", "c"), INT, INT), Literal(1, INT)), BOOL), "fields of string"),
        (Apply("=", (Field("", ("c",), INT, INT), Literal(1, INT)), BOOL), "no attribute c"),
        (Apply("=", (Field("", ("a",), DOUBLE, INT), Literal(1.0, DOUBLE)), BOOL), "int64 read as double"),
        (Apply("=", (Field("", ("b",), TEXT, TEXT), Literal("\ud800", TEXT)), BOOL), "a constant with half of a surrogate pair"),
        (Apply("=", (Time("", INT), Literal(1, INT)), BOOL), "no attribute "),
    ],
)
def test_what_no_program_says_goes_through_arrow(condition: Expression, why: str) -> None:
    program = unread(condition)
    assert RowLetters.of(program) is None
    assert why_arrow(program) == why
    assert why_arrow(program_of([ABOVE], TWO)) is None


@pytest.mark.parametrize(
    "pattern",
    ["", "%", "_", "%%", "a%", "%b", "%a%", "a%b", "a_b", "%a_b%", "_%_", "a%b%a", "%ab%ba%", "__%", "a\\b", "%.%", "a%%b", "%_b"],
)
def test_like_is_the_definition(pattern: str, seed: int) -> None:
    rng = random.Random(seed)
    condition = Apply("like", (Field("", ("b",), TEXT, TEXT), Literal(pattern, TEXT)), BOOL)
    letters = RowLetters.of(program_of([condition], TWO))
    assert letters is not None
    for _ in range(200):
        text = "".join(rng.choice("aaabb.\n\\é\U0001f600") for _ in range(rng.randint(0, 6)))
        assert letters.letter((1, text)) == like(text, pattern), text


def test_like_takes_linear_time() -> None:
    condition = Apply("like", (Field("", ("b",), TEXT, TEXT), Literal("%a_a%" * 12 + "b", TEXT)), BOOL)
    letters = RowLetters.of(program_of([condition], TWO))
    assert letters is not None
    begin = time.process_time()
    assert letters.letter((1, "a" * 20_000)) == 0
    assert time.process_time() - begin < 1


def test_letters_are_cheap() -> None:
    """A few microseconds in any state of the machine; what it is in a quiet one says the benchmark."""
    schema = pa.schema([("type", TEXT), ("ts", INT), ("price", DOUBLE), ("symbol", TEXT), ("volume", INT)])
    query = cepheid.query(
        "SELECT * WHERE A AS a ; B AS b ; A AS c FILTER a.price > 40 AND b.volume * 2 > 100 AND b.symbol LIKE 'I%' AND c.price < 10"
    )
    letters = RowLetters.of(*query.compiled(query.schema(schema)).alphabets)
    assert letters is not None
    row = {"type": "A", "ts": 123_456_789_012, "price": 45.5, "symbol": "IBM", "volume": 1000}
    costs = []
    for _ in range(20):
        begin = time.process_time_ns()
        for _ in range(1000):
            letters.read(row)
        costs.append((time.process_time_ns() - begin) / 1000)
    assert min(costs) < 10_000
