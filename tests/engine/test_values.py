"""Values of events as words: the order and the equality of the words are those of the values, for every type."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from decimal import Decimal
from functools import cmp_to_key

import numpy as np
import pyarrow as pa
import pytest

from cepheid.automata.alphabet import Alphabet, Guard, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.program import Program
from cepheid.automata.registers import Before, Compares, Gathered, Now, Register, Store
from cepheid.automata.transition import Transition
from cepheid.engine.letters import encoded
from cepheid.engine.letters.encoded import EventForm, EventReader, Texts, ValueLayout, ValueReader
from cepheid.engine.letters.words import predicates_of
from cepheid.errors import LimitError
from cepheid.logical.plan import Apply, Expression, Field, Index, Literal, Time
from cepheid.schema import EventSchema
from cepheid.testing import evaluate as definition

INT64 = (-(2**63), 2**63 - 1)
DOUBLES = (0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan, 1.0, -1.0)
LONG = Decimal(99999999999999999999999999999999999999)
TEXTS = ("", "a", "ab", "b", "\0", "\uffff", "\U0001f600", "é", "z" * 40)


def whole(rng: random.Random, low: int, high: int) -> int:
    return rng.choice((low, high, 0, rng.randint(low, high), rng.randint(-3, 3) if low < -3 else rng.randint(0, 3)))


def double(rng: random.Random) -> float:
    return rng.choice((*DOUBLES, rng.uniform(-2, 2), np.frombuffer(rng.randbytes(8), np.float64).item()))


def number(rng: random.Random, kind: pa.DataType) -> Decimal:
    most = int(LONG) if kind.precision == 38 else 10**kind.precision - 1
    return Decimal(whole(rng, -most, most)).scaleb(-kind.scale, decimal.Context(prec=60))


KINDS = {
    "bool": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "int64": (pa.int64(), lambda rng: whole(rng, *INT64)),
    "int8": (pa.int8(), lambda rng: whole(rng, -128, 127)),
    "uint32": (pa.uint32(), lambda rng: whole(rng, 0, 2**32 - 1)),
    "uint64": (pa.uint64(), lambda rng: whole(rng, 0, 2**64 - 1)),
    "double": (pa.float64(), double),
    "float": (pa.float32(), lambda rng: float(np.float32(rng.choice((0.0, -0.0, math.inf, math.nan, rng.uniform(-2, 2)))))),
    "decimal": (pa.decimal128(38, 10), lambda rng: number(rng, pa.decimal128(38, 10))),
    "short decimal": (pa.decimal128(5, 2), lambda rng: number(rng, pa.decimal128(5, 2))),
    "text": (pa.string(), lambda rng: rng.choice((*TEXTS, "".join(rng.choice("ab\uffff") for _ in range(rng.randint(0, 4)))))),
    "large text": (pa.large_string(), lambda rng: rng.choice(TEXTS)),
    "encoded text": (pa.dictionary(pa.int8(), pa.string()), lambda rng: rng.choice(TEXTS)),
    "date": (pa.date32(), lambda rng: dt.date.fromordinal(rng.choice((1, 3652059, rng.randint(1, 3652059))))),
    "timestamp": (pa.timestamp("us", "UTC"), lambda rng: whole(rng, *INT64)),
    "duration": (pa.duration("ns"), lambda rng: whole(rng, *INT64)),
}
"""The type of the column, and random values that it has."""

CANONICAL = {
    "int8": pa.int64(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "float": pa.float64(),
    "large text": pa.string(),
    "encoded text": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def drawn(name: str, rng: random.Random, count: int) -> list:
    make = KINDS[name][1]
    return [None if rng.random() < 0.15 else make(rng) for _ in range(count)]


def column(values: list, kind: pa.DataType) -> pa.Array:
    stepped = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
    return pa.array(values, pa.int64()).cast(kind) if stepped else pa.array(values, kind)


def canonical(values: list) -> list:
    """The values as the language has them: NaN is NULL."""
    return [None if isinstance(value, float) and math.isnan(value) else value for value in values]


def schema(**kinds: pa.DataType) -> EventSchema:
    return EventSchema({"type": pa.string(), **kinds}, type_column="type")


def reader(of: EventSchema, *values: Expression, texts: Texts | None = None) -> ValueReader:
    return ValueReader(ValueLayout(values), of, Texts() if texts is None else texts)


def found(read: ValueReader, words: np.ndarray, value: Expression) -> list:
    """A value of each event as something that Python compares: texts by their ranks."""
    values = encoded.Values(read.layout, words, read.texts)
    listed = values.listed(value)
    if pa.types.is_string(value.type):
        ranks = read.texts.ranks
        return [None if each is None else ranks[each].item() for each in listed]
    return listed


def order(first, second) -> int:
    if isinstance(first, str):
        first, second = first.encode(), second.encode()
    return (first > second) - (first < second)


# ---------------------------------------------------------------------------------------------------------------------- exactness


@pytest.mark.parametrize("name", KINDS)
def test_words_have_the_order_and_equality_of_the_values(name: str, cases: int, seed: int) -> None:
    rng = random.Random(f"{seed} {name}")
    kind = KINDS[name][0]
    field = Field("", ("v",), CANONICAL.get(name, kind), kind)
    read = reader(schema(v=kind), field)
    for _ in range(max(cases // 20, 5)):
        given = [drawn(name, rng, rng.randint(0, 30)) for _ in range(2)]
        chunks = [column(values, kind) for values in given]
        table = pa.table({"type": pa.array(["A"] * sum(map(len, given))), "v": pa.chunked_array(chunks, kind)})
        cut = rng.randint(0, len(table))
        words = np.concatenate([read.read(table.slice(0, cut), None), read.read(table.slice(cut), None)])
        values, listed = canonical([*given[0], *given[1]]), found(read, words, field)
        assert [value is None for value in values] == [each is None for each in listed]
        assert_alike(values, listed)
        plain = [
            kind_of(value) for value in canonical(pa.chunked_array(chunks, kind).cast(pa.int64()).to_pylist() if name in STEPS else values)
        ]
        assert encoded.Values(read.layout, words, read.texts).decoded(field) == plain


STEPS = {"timestamp", "duration"}


def kind_of(value):
    """A value as `decoded` has it: dates as days, whole numbers of decimal columns as Decimal."""
    return value.toordinal() - dt.date(1970, 1, 1).toordinal() if isinstance(value, dt.date) else value


def test_an_unsigned_integer_that_is_read_as_int64_is_null_beyond_its_limits() -> None:
    field = Field("", ("v",), pa.int64(), pa.uint64())
    read = reader(schema(v=pa.uint64()), field)
    words = read.read(pa.table({"type": ["A"] * 3, "v": pa.array([2**63, 2**63 - 1, None], pa.uint64())}), None)
    assert found(read, words, field) == [None, 2**63 - 1, None]


def test_computed_values_are_those_of_the_definition(cases: int, seed: int) -> None:
    """Arithmetic, casts, functions, constants, the time and the position; NULL by overflow too."""
    rng = random.Random(f"{seed} computed")
    i, d, t = (Field("", (name,), kind, kind) for name, kind in (("i", pa.int64()), ("d", pa.float64()), ("t", pa.string())))
    time, index = Time("", pa.int64()), Index("")
    exact = pa.decimal128(38, 2)
    values = [
        Apply("+", (i, Literal(1, pa.int64())), pa.int64()),
        Apply("*", (Apply("cast", (i,), pa.float64()), d), pa.float64()),
        Apply("cast", (i,), exact),
        Apply("lower", (t,), pa.string()),
        Apply("length", (t,), pa.int64()),
        Apply(">", (d, Literal(0.0, pa.float64())), pa.bool_()),
        Apply("coalesce", (t, Literal("none", pa.string())), pa.string()),
        time,
        Apply("-", (index, Literal(1, pa.int64())), pa.int64()),
        Literal(Decimal("1.50"), exact),
        Literal("A", pa.string()),
        Literal(7, pa.int64()),
    ]
    given = EventSchema(
        {"type": pa.string(), "ts": pa.int64(), "i": pa.int64(), "d": pa.float64(), "t": pa.string()}, "type", time_column="ts"
    )
    read = reader(given, *values)
    for _ in range(max(cases // 20, 5)):
        count = rng.randint(0, 40)
        columns = {name: drawn(kind, rng, count) for name, kind in (("i", "int64"), ("d", "double"), ("t", "text"))}
        times = [rng.randint(-5, 5) for _ in range(count)]
        table = pa.table(
            {
                "type": pa.array(["A"] * count, pa.string()),
                "ts": pa.array(times, pa.int64()),
                "i": pa.array(columns["i"], pa.int64()),
                "d": pa.array(columns["d"], pa.float64()),
                "t": pa.array(columns["t"], pa.string()),
            }
        )
        words = read.read(table, np.arange(count) + 3)
        rows = [definition.Event("A", each, row) for each, row in zip(times, table.to_pylist(), strict=True)]
        for value in values:
            expected = [
                place + 2 if value == values[8] else definition.evaluate(value, rows, {("", False): place}) for place in range(count)
            ]
            assert_alike(expected, found(read, words, value))


def assert_alike(expected: list, listed: list) -> None:
    assert [value is None for value in expected] == [each is None for each in listed]
    pairs = [(value, each) for value, each in zip(expected, listed, strict=True) if value is not None]
    for first, one in pairs:
        for second, other in pairs:
            assert order(first, second) == (one > other) - (one < other), (first, second)


def test_times_and_whole_numbers_are_as_they_are() -> None:
    field = Field("", ("v",), pa.timestamp("ms"), pa.timestamp("ms"))
    read = reader(schema(v=pa.timestamp("ms")), field)
    words = read.read(pa.table({"type": ["A"] * 2, "v": pa.array([-5, 7]).cast(pa.timestamp("ms"))}), None)
    assert encoded.Values(read.layout, words, read.texts).encoded(field).tolist() == [-5, 7]


def test_more_values_than_a_word_has_bits() -> None:
    fields = [Field("", (f"v{number}",), pa.int64(), pa.int64()) for number in range(70)]
    read = reader(schema(**{f"v{number}": pa.int64() for number in range(70)}), *fields)
    table = pa.table(
        {"type": ["A", "A"], **{f"v{number}": pa.array([number, None] if number % 2 else [None, number]) for number in range(70)}}
    )
    words = read.read(table, None)
    assert words.shape == (2, 72)
    for number, field in enumerate(fields):
        assert found(read, words, field) == ([number, None] if number % 2 else [None, number])
    assert read.layout.fits(words, read.texts)
    words[0, 71] |= np.uint64(1 << 6)
    assert not read.layout.fits(words, read.texts), "a NULL bit of no value"


# -------------------------------------------------------------------------------------------------------------------------- texts


def test_ranks_have_the_order_of_the_texts_however_they_come(cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "RANK_STEP", 4)
    rng = random.Random(f"{seed} ranks")
    for _ in range(max(cases // 20, 5)):
        monkeypatch.setattr(encoded, "RANK_BITS", rng.choice([11, 13, 62]))
        texts, known = Texts(), {}
        before: tuple[int, dict[str, int]] = (0, {})
        for _ in range(rng.randint(1, 30)):
            new = ["".join(rng.choice("ab") for _ in range(rng.randint(0, 7))) for _ in range(rng.choice((1, 1, 1, 40)))]
            numbers, valid = texts.read(pa.array(new))
            assert valid is None
            for text, given in zip(new, numbers.tolist(), strict=True):
                assert known.setdefault(text, given) == given, "a number never changes"
            if rng.random() < 0.6:
                ranks = texts.ranks
                assert sorted(known) == sorted(known, key=lambda text: ranks[known[text]])
                assert len({ranks[each].item() for each in known.values()}) == len(known)
                if before[0] == texts.spreads:
                    assert all(ranks[known[text]] == rank for text, rank in before[1].items()), "a rank stays"
                if rng.random() < 0.3:
                    known = {text: known[text] for text in rng.sample(sorted(known), len(known) // 2)}
                    texts.keep([np.array([*known.values()], np.int64)])
                before = texts.spreads, {text: ranks[number].item() for text, number in known.items()}


def test_ascending_texts_find_room_behind_the_last() -> None:
    texts, numbers = Texts(), []
    for number in range(300):
        numbers.append(texts.read(pa.array([f"{number:04}"]))[0].item())
        ranks = texts.ranks
        assert (np.diff(ranks[numbers]) > 0).all()


@pytest.mark.parametrize("step", [1, -1])
def test_texts_that_rise_or_fall_between_two_others_seldom_move_all(step: int) -> None:
    texts, numbers = Texts(), []
    texts.read(pa.array(["a", "z"]))
    assert texts.ranks.any()
    for number in range(5_000, 5_000 + 3_000 * step, step):
        numbers.append(texts.read(pa.array([f"m{number}"]))[0].item())
        assert texts.ranks[numbers[-1]] > 0
    assert (step * np.diff(texts.ranks[numbers]) > 0).all()
    assert texts.spreads <= 2


def test_texts_that_nobody_has_are_forgotten_and_their_numbers_given_again() -> None:
    texts = Texts()
    numbers, _ = texts.read(pa.array(["a", "b", "c", "d"]))
    assert texts.ranks[numbers].tolist() == sorted(texts.ranks[numbers].tolist())
    texts.keep([numbers[1:2], numbers[3:]])
    assert len(texts) == 2
    assert [texts.text(number) for number in (1, 3)] == [b"b", b"d"]
    again, _ = texts.read(pa.array(["e", "b", "a"]))
    assert again.tolist() == [0, 1, 2]
    ranks = texts.ranks
    assert ranks[2] < ranks[1] < ranks[3] < ranks[0]
    before = texts.nbytes
    texts.keep([])
    assert texts.nbytes < before


def test_many_texts_are_looked_through_and_few_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "COLLECT_FROM", 4)
    texts, asked = Texts(), 0

    def live() -> list[np.ndarray]:
        nonlocal asked
        asked += 1
        return [np.array([0, 1, 2])]

    for number in range(1000):
        texts.read(pa.array([f"text {number}"]))
        texts.collect(live)
        assert len(texts) <= 7
    assert 300 > asked > 100


def test_too_many_texts_are_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "MOST_TEXTS", 2)
    with pytest.raises(LimitError, match=r"2 different texts that the query compares, and the limit is 2 \(MOST_TEXTS\)"):
        Texts().read(pa.array(["a", "b", "c"]))


def test_stored_texts_are_those_that_are_asked_for() -> None:
    texts = Texts()
    numbers, valid = texts.read(pa.array(["a", "", None, "é", "b"]))
    assert valid.tolist() == [True, True, False, True, True]
    sections = {name: bytes(content) for name, content in texts.dump([numbers[[1, 3]]]).items()}
    other = Texts()
    other.load(sections)
    assert len(other) == 2
    assert [other.text(number) for number in numbers[[1, 3]].tolist()] == [b"", "é".encode()]
    assert other.knows(numbers[[1, 3]])
    assert not other.knows(numbers[:1])
    assert Texts().dump([])["texts"] == b""


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([[0, 0], [1, 1]], b"ab"),
        ([[0, 1], [1, 1]], b"aa"),
        ([[0], [2]], b"a"),
        ([[0], [0]], b"a"),
        ([[0, 1], [2, -1]], b"a"),
        ([[-1], [1]], b"a"),
        ([[1 << 60], [1]], b"a"),
    ],
)
def test_forged_texts_are_refused(numbers: list, texts: bytes) -> None:
    with pytest.raises(ValueError, match="numbers of texts"):
        Texts().load({"text_numbers": np.array(numbers, "<i8").tobytes(), "texts": texts})


# ------------------------------------------------------------------------------------------------------------------ whole events


V = Field("", ("v",), pa.int64(), pa.int64())
NAME = Field("", ("name",), pa.string(), pa.string())


def program(conditions: int = 1, *, guards: bool = True) -> Program:
    predicates = (Predicate(Apply("=", (Field("", ("type",), pa.string(), pa.string()), Literal("A", pa.string())), pa.bool_()), "A"),)
    predicates += tuple(Predicate(Apply(">", (V, Literal(each, pa.int64())), pa.bool_())) for each in range(conditions))
    width = len(predicates)
    asked = (Guard(width, Compares(Before(0), "<", V)), Guard(width + 1, Compares(Before(1), "=", NAME))) if guards else ()
    writes = frozenset({Store(1, Now(NAME)), Store(0, Gathered("min", None, Apply("negate", (V,), pa.int64())))})
    move = Transition(0, 1, 1, 0, frozenset({"x"}), writes)
    alphabet = Alphabet(predicates, guards=asked, registers=(Register("v"), Register("name"))).fitted()
    return Program(Automaton(2, 0, frozenset({1}), (move,), alphabet))


def test_a_program_lists_what_its_guards_and_stores_read() -> None:
    assert program().values == (V, NAME, Apply("negate", (V,), pa.int64()))
    assert program(guards=False).values == ()


@pytest.mark.parametrize("conditions", [1, 40, 200])
def test_words_are_taken_apart_as_they_were_put_together(conditions: int) -> None:
    given, made = schema(v=pa.int64(), name=pa.string()), program(conditions)
    alphabet, texts = made.automaton.alphabet, Texts()
    table = pa.table({"type": ["A", "B", "A"], "v": pa.array([5, None, -1]), "name": ["p", "q", None]})
    read = EventReader(made, predicates_of(alphabet, given), texts)
    words = read.read(table)
    form = EventForm.of(made)
    assert words.shape == (3, form.words)
    assert form.none().shape == (0, form.words)
    plain = predicates_of(alphabet, given).letters(table)
    letters = form.letters(words)
    assert letters.dtype == plain.dtype
    assert letters.tolist() == plain.tolist()
    values = form.values(words, texts)
    assert values.listed(V) == [5, None, -1]
    assert [None if each is None else texts.text(each) for each in values.listed(NAME)] == [b"p", b"q", None]
    assert values.of(np.array([2, 0])).listed(V) == [-1, 5]
    assert form.fits(words, texts)
    assert not form.fits(words, Texts()), "texts that nobody knows"
    assert form.text_numbers(words).tolist() == [0, 1]
    assert read.read(table, letters=plain).tolist() == words.tolist()
    assert read.columns == ("type", "v", "name")


@pytest.mark.parametrize("conditions", [1, 200])
def test_without_guards_letters_are_all(conditions: int) -> None:
    given, made = schema(v=pa.int64(), name=pa.string()), program(conditions, guards=False)
    table = pa.table({"type": ["A", "B", "A"], "v": pa.array([5, None, -1]), "name": ["p", "q", None]})
    predicates, form = predicates_of(made.automaton.alphabet, given), EventForm.of(made)
    read = EventReader(made, predicates, Texts())
    letters = read.read(table)
    assert letters.tolist() == predicates.letters(table).tolist()
    assert form.letters(letters) is letters
    assert form.words == (None if conditions == 1 else letters.shape[1])
    assert "name" not in read.columns


def test_values_in_columns_are_the_same(seed: int) -> None:
    """As Spark computes them: times and durations as integers, NaN already NULL."""
    rng = random.Random(f"{seed} columns")
    names = [name for name in KINDS if name not in {"int8", "uint32", "uint64", "float", "large text", "encoded text"}]
    kinds = {name: KINDS[name][0] for name in names}
    fields = [Field("", (name,), kind, kind) for name, kind in kinds.items()]
    table = pa.table({"type": ["A"] * 40, **{name: column(drawn(name, rng, 40), kind) for name, kind in kinds.items()}})
    read = reader(EventSchema({"type": pa.string(), **kinds}, type_column="type"), *fields)
    columns = [
        table[name].combine_chunks().cast(pa.int64()) if name in {"timestamp", "duration"} else table[name].combine_chunks()
        for name in names
    ]
    assert read.of_columns(columns).tolist() == read.read(table, None).tolist()


def test_sorting_by_words_is_sorting_by_values(seed: int) -> None:
    rng = random.Random(f"{seed} sort")
    field = Field("", ("v",), pa.decimal128(38, 10), pa.decimal128(38, 10))
    read = reader(schema(v=field.type), field)
    given = [number(rng, field.type) for _ in range(200)]
    words = read.read(pa.table({"type": ["A"] * 200, "v": pa.array(given, field.type)}), None)
    halves = encoded.Values(read.layout, words, read.texts).encoded(field)
    assert [given[row] for row in np.lexsort((halves[:, 1], halves[:, 0]))] == sorted(given, key=cmp_to_key(order))
