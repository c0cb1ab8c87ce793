"""`differ` against the definition: known laws and non-laws, all small streams one by one, and that its few times and positions stand for all others."""

from __future__ import annotations

import itertools
import random

import pytest
from random_expressions import ENOUGH, random_expression, random_length

from cepheid.algebra.equivalence import MAX_INSTANTS, MAX_STREAMS, Counterexample, _Scale, differ, equivalent
from cepheid.algebra.expression import Length, Primitive
from cepheid.algebra.laws import LAWS
from cepheid.algebra.laws import A as METAVARIABLE
from cepheid.algebra.meaning import Instant, instances
from cepheid.algebra.transform import transform
from cepheid.errors import InputError, LimitError

A, B, C, D, E = map(Primitive, "ABCDE")
THREE = Length(time=3)


def small_expression(rng, depth, names="AB"):
    """With bounds so small that streams of three instants go beyond them."""
    return random_expression(rng, depth, names, length=lambda rng: random_length(rng, range(3), range(3)))


def assert_real(found, left, right):
    """That the expressions do differ on the stream of a counterexample, and so."""
    one, other = instances(left, found.stream), instances(right, found.stream)
    assert one != other
    assert (found.only_left, found.only_right) == (one - other, other - one)


def occupied(stream):
    return sum(bool(instant.occurring) for instant in stream)


# ------------------------------------------------------------------------------------------------------------------- laws, and non-laws


@pytest.mark.parametrize(
    ("left", "right", "instants"),
    [
        (A, B, 1),
        (A, A >> A, 1),
        (A + B, A >> B, 1),
        (A + A, A, 2),
        (A >> B, B >> A, 2),
        ((A - B) >> C, (A >> C) - B, 2),
        (A - (B >> C), A - (B >> C).within(time=3), None),
        ((A >> A) - (B >> C), (A >> A) - (B >> C).within(time=3), 2),
        ((A >> B) - C, (A - C) >> (B - C), 3),
        ((A + B) - C, (A - C) + (B - C), 3),
        (A >> (B >> C), (A >> B) + (B >> C), 2),
        (B >> (A >> C), (B + A) >> C, 2),
        ((A >> B).within(time=3), (A >> B).within(time=4), 2),
        ((A >> B).within(events=3), (A >> B).within(events=4), 2),
        ((A >> B).within(time=3), (A >> B).within(events=3), 2),
        ((A >> B).within(time=3), A.within(time=3) >> B.within(time=3), 2),
        ((A >> A >> A).within(time=3), ((A >> A).within(time=2) >> A).within(time=3), 3),
        (A.within(time=-1), A, 1),
        (A.within(events=-1), A.within(time=-1), None),
        (A - A, B - B, None),
        ((A >> B).within(events=0), A - A, None),
        (Primitive("A", frozenset("x")), A, None),
        ((A >> B).within(events=1000), A >> B, 2),
        ((A >> B).within(time=10**15), A >> B, 2),
    ],
)
def test_differences_are_found_on_the_shortest_stream(left, right, instants) -> None:
    found, mirrored = differ(left, right), differ(right, left)
    if instants is None:
        assert found is mirrored is None
        return
    assert_real(found, left, right)
    assert occupied(found.stream) == instants
    assert mirrored == Counterexample(found.stream, found.only_right, found.only_left)
    assert instants == 1 or equivalent(left, right, instants=instants - 1)
    assert not equivalent(left, right, instants=instants)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws_have_no_counterexample(law) -> None:
    left, right = law.sides({"A": A, "B": B, "C": C, "t": THREE, "t'": Length(events=2)})
    assert equivalent(left, right, instants=3)


@pytest.mark.parametrize("law", [law for law in LAWS if law.number > 23], ids=str)
def test_laws_of_restriction_do_not_hold_for_any_other_time(law) -> None:
    """Another time on the right is noticed: the search has streams enough to tell 3 from 4."""
    left, _ = law.sides({"A": A >> A, "B": B + C, "t": THREE, "t'": Length(time=5)})
    _, right = law.sides({"A": A >> A, "B": B + C, "t": Length(time=4), "t'": Length(time=6)})
    assert_real(differ(left, right, instants=3), left, right)


def test_transform_has_no_counterexample(cases, seed) -> None:
    for number in range(cases // 10):
        rng = random.Random(f"{seed} transform {number}")
        expression = small_expression(rng, 3, "ABC").within(time=2)
        assert equivalent(transform(expression), expression, instants=3), (seed, number, expression.formula)


# ---------------------------------------------------------------------------------------------------------- against the definition alone


def all_streams(instants, latest):
    """All streams of so many instants, of A and B, with steps of time up to `latest`; instants with nothing among them."""
    sets = [frozenset(some) for some in ("", "A", "B", "AB")]
    for size in range(1, instants + 1):
        for steps in itertools.product(range(latest + 1), repeat=size - 1):
            times = list(itertools.accumulate(steps, initial=0))
            for chosen in itertools.product(sets, repeat=size):
                yield [Instant(time, some) for time, some in zip(times, chosen, strict=True)]


def test_no_stream_of_up_to_three_instants_is_missed(cases, seed) -> None:
    streams = list(all_streams(3, 3))
    tries = max(cases, ENOUGH)
    different = equal = 0
    for number in range(tries // 4):
        rng = random.Random(f"{seed} all {number}")
        left = small_expression(rng, rng.randrange(1, 4))
        right = small_expression(rng, 2)
        if rng.random() < 0.7:
            right = rng.choice([rewritten for law in LAWS for rewritten in law.rewrites(left)])
            right = right.over(*(rng.choice((each, each.within(time=1), each.within(events=1), each | A)) for each in right.operands))
        found = differ(left, right, instants=3)
        missed = next((stream for stream in streams if instances(left, stream) != instances(right, stream)), None)
        if found is None:
            assert missed is None, (seed, number, left.formula, right.formula)
            equal += 1
        else:
            assert_real(found, left, right)
            assert missed is None or occupied(found.stream) <= occupied(missed)
            assert missed is not None or len(found.stream) > 3
            different += 1
    assert min(different, equal) > tries / 50


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("bounds", [(), (0,), (1,), (2,), (0, 1), (1, 2), (0, 2, 3), (1, 4)])
def test_few_values_stand_for_all(bounds, step) -> None:
    """The rows that `_Scale` gives are those of all values, and its least values have them."""
    scale, size = _Scale(bounds, step), 4

    def rows_of(values):
        return tuple(tuple(sum(bound < values[j] - values[i] for bound in bounds) for i in range(j + 1)) for j in range(size))

    steps = range(step, max(bounds, default=0) + 2)
    least = {}
    for advances in itertools.product(steps or (step,), repeat=size - 1):
        values = list(itertools.accumulate(advances, initial=0))
        rows = rows_of(values)
        least[rows] = list(map(min, least.get(rows, values), values))
    found = [()]
    for _ in range(size):
        found = [(*before, row) for before in found for row in scale.rows(before)]
    assert sorted(found) == sorted(least)
    for rows in found:
        assert scale.least(rows) == least[rows]
        assert rows_of(scale.least(rows)) == rows


def test_one_bound_tells_apart_the_numbers_of_catalan() -> None:
    found, numbers = [()], []
    for _ in range(5):
        found = [(*before, row) for before in found for row in _Scale((7,), 0).rows(before)]
        numbers.append(len(found))
    assert numbers == [1, 2, 5, 14, 42]


# ------------------------------------------------------------------------------------------------------------------------ text and limits


def test_text_of_a_counterexample() -> None:
    assert str(differ((A >> B).within(time=3), (A >> B).within(events=3))) == (
        "stream:\n  0: A at time 0\n  1: B at time 4\nonly right:\n  [0, 1] A@0 B@1"
    )
    assert str(differ((A >> B).within(events=3) - C, A >> B | C)) == "stream:\n  0: C at time 0\nonly right:\n  [0, 0] C@0"
    assert str(differ((A >> B).within(events=3), A >> B)) == (
        "stream:\n  0: A at time 0\n  (3 where nothing occurs)\n  4: B at time 0\nonly right:\n  [0, 4] A@0 B@4"
    )
    assert str(differ(A + B, B >> A)) == "stream:\n  0: A B at time 0\nonly left:\n  [0, 0] A@0 B@0"


def test_number_of_streams_is_limited() -> None:
    five = A + B + C + D + E
    with pytest.raises(LimitError) as caught:
        differ(five.within(time=2), five)
    assert str(caught.value) == (
        "error: there are at least 1997950 streams to try (primitives: 5, bounds: 1), and the limit is 1000000 (max_streams)\n"
        "help: lower instants= (it is 4), or raise max_streams=\n"
        "help: fewer primitives and fewer different bounds make fewer streams"
    )
    assert MAX_STREAMS == 1_000_000
    assert not equivalent(five.within(time=2), five, instants=2)
    with pytest.raises(LimitError):
        differ(A, B, max_streams=2)
    assert differ(A, B, max_streams=3, instants=1) is not None


def test_length_of_streams_is_limited() -> None:
    with pytest.raises(LimitError) as caught:
        differ((A >> B).within(events=10**9), A >> B)
    assert str(caught.value) == (
        "error: the bounds in events need streams of 3000000004 instants, and the limit is 100000 (MAX_POSITIONS)\n"
        "help: lower these bounds in both expressions: only the order of their sums and differences matters"
    )


def test_number_of_instants_is_limited() -> None:
    with pytest.raises(InputError):
        differ(A, B, instants=0)
    with pytest.raises(LimitError) as caught:
        differ(A, A, instants=MAX_INSTANTS + 1)
    assert str(caught.value) == "error: instants=21 is above the limit of 20 (MAX_INSTANTS)\nhelp: lower instants="
    assert differ(A, A, instants=MAX_INSTANTS) is None


def test_metavariables_have_no_instances() -> None:
    with pytest.raises(TypeError):
        differ(METAVARIABLE | A, A)
