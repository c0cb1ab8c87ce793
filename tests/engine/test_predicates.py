"""Predicates on Arrow data against the plain Python evaluator of cepheid.testing, on nasty values."""

import datetime as dt
import math
import operator
import random
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.predicates import of_type
from cepheid.engine.letters import predicates as module
from cepheid.engine.letters.predicates import Predicates
from cepheid.engine.letters.values import OPERATIONS, like_expression
from cepheid.logical import calendar
from cepheid.logical.plan import HALVES, OPERATORS, Apply, Field, Literal, localize
from cepheid.schema import schema_of
from cepheid.testing import evaluate as plain

BOOL, INT, DOUBLE, TEXT, DATE = pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.date32()
DECIMAL, STAMP, ZONED, SPAN = pa.decimal128(12, 2), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us")

TEXTS = ["", "a", "A", "ab", "a%b", "a_b", "a\\b", "%", "_", "é", "É", "ß", "日本", "\U0001f600", "z\n", "line\nbreak", "ab.", "(x)", None]
VALUES = {
    "i": (pa.int64(), INT, [0, 1, -1, 7, -7, 2**63 - 1, -(2**63), 2**62, 3_037_000_500, None]),
    "j": (pa.int16(), INT, [0, 1, -1, 32767, -32768, 100, None]),
    "u": (pa.uint64(), INT, [0, 1, 2**63, 2**64 - 1, 2**63 - 1, None]),
    "d": (pa.float64(), DOUBLE, [0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan, 1e308, -1e308, 0.1, None]),
    "f": (pa.float32(), DOUBLE, [0.0, 0.1, -1.5, math.nan, math.inf, 3.4e38, None]),
    "n": (
        DECIMAL,
        DECIMAL,
        [Decimal("0.00"), Decimal("1.25"), Decimal("-9999999999.99"), Decimal("9999999999.99"), Decimal("-0.01"), None],
    ),
    "s": (pa.string(), TEXT, TEXTS),
    "k": (pa.dictionary(pa.int8(), pa.string()), TEXT, TEXTS),
    "l": (pa.large_string(), TEXT, TEXTS),
    "b": (pa.bool_(), BOOL, [True, False, None]),
    "date": (pa.date32(), DATE, [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1970, 1, 1), None]),
    "stamp": (STAMP, STAMP, [dt.datetime(2024, 3, 31, 1, 30), dt.datetime(1969, 1, 1), dt.datetime(2024, 10, 27, 2, 30, 0, 1), None]),  # noqa: DTZ001 - times without zone
    "zoned": (ZONED, ZONED, [dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC), None]),
    "span": (SPAN, SPAN, [dt.timedelta(seconds=-1), dt.timedelta(0), dt.timedelta(days=100_000), None]),
}
FIELDS = {name: Field("", (name,), kind, source) for name, (source, kind, _) in VALUES.items()}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def type_alphabet(schema, *names):
    """The alphabet of these type tests."""
    return Alphabet(tuple(of_type(name, schema) for name in names))


def table(rng, size):
    columns = {}
    for name, (source, _, values) in VALUES.items():
        chosen = [rng.choice(values) for _ in range(size)]
        columns[name] = pa.array(chosen, pa.string()).dictionary_encode().cast(source) if name == "k" else pa.array(chosen, source)
    return pa.table(columns)


def literal(rng, kind):
    value = rng.choice(next(values for _, of, values in VALUES.values() if of == kind))
    if isinstance(value, float) and math.isnan(value):
        value = None
    if isinstance(value, dt.datetime):
        value = plain.steps_of(value, "us")
    if isinstance(value, dt.timedelta):
        value = value // dt.timedelta(microseconds=1)
    return Literal(value, kind)


def leaf(rng, kind):
    names = [name for name, (_, of, _) in VALUES.items() if of == kind]
    return literal(rng, kind) if rng.random() < 0.3 else FIELDS[rng.choice(names)]


def value(rng, kind, depth):
    """A random expression of a type."""
    if depth == 0 or rng.random() < 0.2:
        return leaf(rng, kind)
    sub = lambda of=kind: value(rng, of, depth - 1)  # noqa: E731
    if kind == BOOL:
        return condition(rng, depth)
    choices = [lambda: Apply("coalesce", (sub(), sub()), kind)]
    choices += [
        lambda: Apply("case", (*(part for _ in range(rng.randint(1, 2)) for part in (condition(rng, depth - 1), sub())), sub()), kind)
    ]
    if kind in (INT, DOUBLE, DECIMAL):
        names = ["+", "-", "*", "%"] + ["/"] * (kind != INT)
        choices += [lambda: Apply(rng.choice(names), (sub(), sub()), kind)] * 3
        choices += [lambda: Apply(rng.choice(["negate", "abs", "floor", "ceil"]), (sub(),), kind)]
    if kind in (DOUBLE, DECIMAL):
        choices += [lambda: Apply("cast", (sub(INT),), kind)]
    if kind == DOUBLE:
        choices += [lambda: Apply("cast", (sub(DECIMAL),), kind)]
    if kind == INT:
        choices += [lambda: Apply("length", (sub(TEXT),), INT)]
        choices += [lambda: Apply(rng.choice(calendar.PARTS), (sub(rng.choice([STAMP, ZONED])),), INT)]
        choices += [lambda: Apply(rng.choice(calendar.DATES), (sub(DATE),), INT)]
        zones = ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "-03:30"]
        choices += [
            lambda: Apply(
                rng.choice(calendar.PARTS),
                (Apply("local_time", (sub(ZONED), Literal(rng.choice(zones), TEXT)), pa.timestamp(ZONED.unit)),),
                INT,
            )
        ]
    if kind == TEXT:
        choices += [lambda: Apply(rng.choice(["lower", "upper"]), (sub(),), TEXT)]
        choices += [lambda: Apply("concat", tuple(sub() for _ in range(rng.randint(1, 3))), TEXT)]
    if kind == STAMP:
        choices += [lambda: Apply(rng.choice("+-"), (sub(), sub(SPAN)), STAMP), lambda: Apply("cast", (sub(DATE),), STAMP)]
    if kind == SPAN:
        choices += [lambda: Apply("-", (sub(STAMP), sub(STAMP)), SPAN), lambda: Apply(rng.choice("+-"), (sub(), sub()), SPAN)]
    return rng.choice(choices)()


def condition(rng, depth):
    if depth == 0:
        return FIELDS["b"]
    kinds = [INT, DOUBLE, TEXT, DECIMAL, BOOL, DATE, STAMP, ZONED, SPAN]
    choice = rng.random()
    if choice < 0.3:
        name = rng.choice(["and", "or", "not"])
        return Apply(name, tuple(condition(rng, depth - 1) for _ in range(1 if name == "not" else rng.randint(2, 3))), BOOL)
    kind = rng.choice(kinds)
    if choice < 0.4:
        return Apply("is_null", (value(rng, kind, depth - 1),), BOOL)
    if choice < 0.5:
        options = tuple(literal(rng, kind) for _ in range(rng.choice([1, 3, 10])))
        return Apply("in", (value(rng, kind, depth - 1), *options), BOOL)
    if choice < 0.6:
        pattern = Literal("".join(rng.choice("ab%_\\.é(") for _ in range(rng.randint(0, 4))), TEXT)
        return Apply("like", (value(rng, TEXT, depth - 1), pattern), BOOL)
    return Apply(rng.choice(COMPARISONS), (value(rng, kind, depth - 1), value(rng, kind, depth - 1)), BOOL)


def expected(conditions, events):
    rows = [SimpleNamespace(attributes=row, time=None) for row in events.to_pylist()]
    return [sum(1 << i for i, c in enumerate(conditions) if plain.holds(c, [row], {("", False): 0})) for row in rows]


def letters(conditions, events):
    schema = schema_of(events.schema)
    return Predicates(Alphabet(tuple(map(Predicate, conditions))), schema).letters(events)


def test_every_operator_has_an_implementation():
    assert set(OPERATIONS) == {*OPERATORS, *HALVES}


@pytest.mark.parametrize("seed", range(80))
def test_random_conditions_hold_where_the_definition_says(seed, monkeypatch):
    monkeypatch.setattr(module, "SLICE", 17)
    rng = random.Random(seed)
    events = table(rng, 90)
    conditions = [condition(rng, 3) for _ in range(rng.choice([4, 12, 24, 50]))]
    if rng.random() < 0.5:
        events = pa.concat_tables([events.slice(0, 11), events.slice(11, 40), events.slice(51)])
    got = letters(conditions, events).tolist()
    for row, (one, other) in enumerate(zip(got, expected(conditions, events), strict=True)):
        wrong = [c for i, c in enumerate(conditions) if (one ^ other) >> i & 1]
        assert not wrong, (wrong[0], events.slice(row, 1).to_pylist())


WIDE = pa.decimal128(38, 0)
BEYOND = [2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 2**64, 10**30, 10**38 - 1]
NUMBERS = {
    "b": (pa.int8(), [0, -128, 127, None]),
    "i": (pa.int64(), [0, 2**63 - 1, -(2**63), None]),
    "u": (pa.uint64(), [0, 2**63, 2**64 - 2, 2**64 - 1, None]),
    "n": (DECIMAL, [Decimal("9999999999.99"), Decimal("-0.01"), None]),
    "w": (WIDE, [*map(Decimal, (2**63, 2**64, 10**30, 10**38 - 1, 1 - 10**38)), None]),
    "v": (pa.decimal128(38, 38), [Decimal("0." + "9" * 38), Decimal("-0.5"), None]),
}
PYTHON = dict(zip(COMPARISONS, (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge), strict=True))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_of_up_to_38_digits_compare_exactly(name, sign):
    kind, values = NUMBERS[name]
    events = pa.table({"type": ["A"] * len(values), name: pa.array(values, kind)})
    exact = [None if value is None else Fraction(value) for value in values]
    for constant in BEYOND:
        number = int(f"{sign}{constant}")
        ways = {f"x.{name} {sign_} {number}": PYTHON[sign_] for sign_ in COMPARISONS}
        ways |= {f"{number} {sign_} x.{name}": lambda value, number, of=PYTHON[sign_]: of(number, value) for sign_ in COMPARISONS}
        ways[f"x.{name} <= :p"] = operator.le
        ways[f"x.{name} IN (7, {number}, 0.5)"] = operator.eq
        ways[f"x.{name} BETWEEN {-(10**38) + 1} AND {number}"] = operator.le
        text = f"SELECT * WHERE A AS x FILTER {' AND '.join(ways)}"
        found = cepheid.query(text, args={"p": number}).bound(schema_of(events.schema)).pattern.conditions
        assert len(found) == len(ways)
        bits = [sum(1 << i for i, of in enumerate(ways.values()) if value is not None and of(value, number)) for value in exact]
        assert letters(list(map(localize, found)), events).tolist() == bits == expected(list(map(localize, found)), events)


@pytest.mark.parametrize("text", TEXTS[:-1])
@pytest.mark.parametrize(
    "pattern", ["", "%", "_", "a%", "%b", "%a%", "a_b", "a\\b", "a%b", "__", "%\n%", "ab.", "(x)", "%é", "É%", "%_%", "%%"]
)
def test_like_has_no_escapes(text, pattern):
    events = pa.table({"s": [text]})
    like = Apply("like", (Field("", ("s",), TEXT, TEXT), Literal(pattern, TEXT)), BOOL)
    assert letters([like], events).tolist() == [int(plain.like(text, pattern))], like_expression(pattern)


def test_types_become_bits_whatever_their_encoding():
    wanted = [1, 2, 0, 1, 0]
    plain_types = pa.array(["A", "B", "C", "A", None])
    encodings = [
        plain_types,
        plain_types.cast(pa.large_string()),
        plain_types.cast(pa.string_view()),
        plain_types.dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 3, 1, 2], pa.int8()), pa.array(["B", "A", None, "C"])),
        pa.array(["x", *plain_types.to_pylist()]).slice(1),
    ]
    for types in encodings:
        events = pa.table({"type": types, "ts": range(5)})
        schema = schema_of(events.schema)
        predicates = Predicates(type_alphabet(schema, "A", "B"), schema)
        assert predicates.letters(events).tolist() == wanted
        assert predicates.letters(events).dtype == np.uint32


def test_a_stream_without_a_type_column_has_its_name_as_type():
    events = pa.table({"v": [1, 2]})
    schema = schema_of(events.schema, streams=("flights",), used=frozenset({"flights"}))
    assert Predicates(type_alphabet(schema, "flights", "other"), schema).letters(events).tolist() == [1, 1]


def test_many_dictionary_values_that_matter():
    rng = random.Random(5)
    names = [f"T{i}" for i in range(40)]
    events = pa.table({"type": pa.array([rng.choice(names) for _ in range(500)]).dictionary_encode()})
    schema = schema_of(events.schema)
    got = Predicates(type_alphabet(schema, *names), schema).letters(events)
    assert got.dtype == np.uint32
    assert got.tolist() == [1 + names.index(name) for name in events["type"].to_pylist()]


def test_a_shared_dictionary_is_evaluated_once():
    dictionary = pa.array(["A", "B"])
    schema = schema_of(pa.schema([("type", pa.dictionary(pa.int32(), pa.string()))]))
    predicates = Predicates(type_alphabet(schema, "B"), schema)
    first = pa.record_batch({"type": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), dictionary)})
    second = pa.record_batch({"type": pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int32()), dictionary)})
    reader = predicates.reader()
    assert reader.read(first).tolist() == [0, 1]
    known = reader._dictionaries["type",].values
    assert reader.read(second).tolist() == [1, 1]
    assert reader._dictionaries["type",].values is known


def test_what_texts_add_to_letters_is_remembered(monkeypatch):
    """From batch to batch, of a bounded number of texts, also of such as are no UTF-8."""
    asked = []
    evaluate = module.evaluate
    monkeypatch.setattr(module, "evaluate", lambda expression, rows: (asked.append(expression), evaluate(expression, rows))[1])
    schema = schema_of(pa.schema([("type", pa.string())]))
    predicates = Predicates(type_alphabet(schema, "A", "B"), schema)
    reader = predicates.reader()

    def letters(*types):
        return reader.read(pa.table({"type": pa.array(types, pa.string())})).tolist()

    assert letters("A", None, "B", "C") == [1, 0, 2, 0]
    assert len(asked) == 2
    assert [letters("B"), letters("C", "A", "A"), letters(None), letters()] == [[2], [0, 1, 1], [0], []]
    assert len(asked) == 2
    assert letters("D", "B") == [0, 2]
    assert len(asked) == 4
    broken = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 2, 3], np.int32)), pa.py_buffer(b"\xff\xfeA")])
    for _ in range(2):
        assert reader.read(pa.table({"type": broken})).tolist() == [0, 1]
    monkeypatch.setattr(module, "MOST_KNOWN", 3)
    for number in range(20):
        assert letters(f"T{number}", "A") == [0, 1]
        assert len(reader._known["type",]) <= 6
    many = [f"T{number}" for number in range(module.KNOWN_AT_ONCE + 1)]
    assert letters(*many, "B") == [0] * len(many) + [2]


def test_readers_of_one_program_know_nothing_of_each_other():
    schema = schema_of(pa.schema([("type", pa.string())]))
    predicates = Predicates(type_alphabet(schema, "B"), schema)
    before = dict(vars(predicates))
    readers = [predicates.reader() for _ in range(2)]
    assert readers[0].read(pa.table({"type": ["B", "A"]})).tolist() == [1, 0]
    assert readers[1]._dictionaries == {}
    assert vars(predicates) == before


def test_nested_fields_and_null_structs():
    events = pa.table({"x": pa.array([{"a": {"b": 1}}, {"a": None}, None, {"a": {"b": 5}}])})
    field = Field("", ("x", "a", "b"), INT, INT)
    above = Apply(">", (field, Literal(0, INT)), BOOL)
    missing = Apply("is_null", (field,), BOOL)
    assert letters([above, missing], events).tolist() == [1, 2, 2, 1]


def test_empty_input():
    events = pa.table({"i": pa.array([], INT)})
    above = Apply(">", (Field("", ("i",), INT, INT), Literal(0, INT)), BOOL)
    assert letters([above], events).tolist() == []


def test_half_floats_and_float32_compare_as_double():
    events = pa.table({"f": pa.array([0.1, 0.5], pa.float32())})
    field = Field("", ("f",), DOUBLE, pa.float32())
    equal = [Apply("=", (field, Literal(value, DOUBLE)), BOOL) for value in (0.1, 0.5, float(np.float32(0.1)))]
    assert letters(equal, events).tolist() == [4, 2]


def test_event_times_of_date64_are_instants_and_its_attributes_dates():
    days = pa.array([18_262, 18_263], pa.int32()).cast(pa.date32()).cast(pa.date64())
    query = cepheid.query("SELECT * WHERE A : A FILTER A.$time >= TIMESTAMP '2020-01-01 00:00:00' AND A.ts >= DATE '2020-01-01'")
    events = pa.table({"type": ["A", "A"], "ts": days})
    assert len(query.run(events)) == len(query.run(events, engine="reference")) == 1
