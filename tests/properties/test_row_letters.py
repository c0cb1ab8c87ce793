"""Letters of one event by compiled Python: for random conditions over random schemas and nasty values the same as Arrow's, or left to Arrow."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import math
import random
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from row_letter_cases import (
    BOOL,
    DATE,
    DOUBLE,
    INT,
    KINDS,
    ROWS,
    TEXT,
    TEXTS,
    TIMES,
    Conditions,
    check,
    events_of,
    fields_of,
    program_of,
    random_schema,
    utc,
    values_of,
)

import cepheid
from cepheid.engine.letters.encoded import Texts, ValueLayout, ValueReader
from cepheid.engine.letters.predicates import Predicates
from cepheid.engine.letters.row_letters import OPERATORS, RowLetters, why_arrow
from cepheid.engine.letters.row_values import CHECKS
from cepheid.engine.letters.values import OPERATIONS
from cepheid.engine.run.singles import column_type
from cepheid.logical import plan
from cepheid.logical.folding import like
from cepheid.logical.plan import Apply, Expression, Field, Index, Literal, Time
from cepheid.logical.types import time_value_type
from cepheid.schema import EventSchema
from cepheid.testing.differential import fits
from cepheid.testing.generators import ENGINE, NESTED, SCHEMA, TIMED_SCHEMA, random_query, random_stream


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


@pytest.mark.parametrize("mode", ["ordinary", "nasty"])
def test_random_values_have_the_words_that_arrow_gives(mode: str, cases: int, seed: int) -> None:
    """What guards read of an event."""
    rng = random.Random(f"{seed} {mode}")
    compared = 0
    for _ in range(cases):
        schema = random_schema(rng)
        conditions = Conditions(rng, schema)
        program = program_of([conditions.condition(1)], schema)
        values = tuple(dict.fromkeys(conditions.value(rng.choice(conditions.kinds), rng.randint(0, 3)) for _ in range(rng.randint(1, 4))))
        letters, texts = RowLetters.of(program, values=values), Texts()
        assert letters is not None, why_arrow(program, values=values)
        reader = ValueReader(ValueLayout(values), schema, texts)
        for _ in range(ROWS):
            row = values_of(rng, schema, mode)
            found = letters.read(row)
            if found is None:
                continue
            columns = [pa.array([each], column_type(value)) for each, value in zip(found[-1], values, strict=True)]
            wanted = reader.read(events_of(schema, row), None)
            assert np.array_equal(reader.of_columns(columns), wanted), (row, values, found[-1])
            compared += 1
    assert compared > ROWS * cases // 4


@pytest.mark.parametrize("schema", [SCHEMA, TIMED_SCHEMA], ids=["numbers", "timestamps"])
def test_queries_have_the_letters_that_arrow_gives(schema: pa.Schema, cases: int, seed: int) -> None:
    rng = random.Random(f"{seed} {schema}")
    ways = collections.Counter[bool | None]()
    for number in range(cases // 4):
        fragment = dataclasses.replace((ENGINE, NESTED)[number % 2], unit="s" if schema is TIMED_SCHEMA else "")
        query = cepheid.query(random_query(rng, fragment=fragment))
        while not fits(query, schema):
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
