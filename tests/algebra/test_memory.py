"""What `memory` states, against what the detectors have: the one in Python, the kernel, and the files that are generated."""

from __future__ import annotations

import random
import re

import pytest
from random_expressions import ENOUGH, random_expression, random_length, random_stream

from cepheid.algebra import Detector, Primitive, Rate, Restriction, generate_c, generate_python, memory, transform
from cepheid.algebra.generate import unrolled
from cepheid.algebra.generate_c_steps import INSTANCE_BYTES, MARK_BYTES
from cepheid.engine.evaluations.choosing import restricted as engine
from cepheid.errors import LimitError

A, B, C, D = map(Primitive, "ABCD")


def below_zero(rng):
    """Now and then a bound that nothing is short enough for."""
    return random_length(rng, range(-2, 5), range(-2, 4))


@pytest.mark.parametrize(
    ("expression", "instances"),
    [
        ((A >> B).within(events=-3), 2),
        ((A >> (B + C)).within(events=-1), 4),
        ((A >> (B + C)).within(time=-1), 4),
        ((A >> (B + C)).within(time=-5, events=7), 4),
        ((A >> (B + C)).within(time=0, events=-1), 4),
    ],
)
def test_where_nothing_is_so_short_the_last_instance_is_held(expression, instances) -> None:
    """At the event at which it ends: a later one finds out. No rate is needed for that, and none is promised."""
    assert memory(expression).instances == memory(expression, rate=Rate(1)).instances == instances
    detector = Detector(expression)
    for time in range(3):
        detector.push(time, time, "A")
        assert detector.rings == [1]
    assert "RateError" not in generate_python(expression, rate=Rate(1))
    assert "RATE_BROKEN;" not in re.sub(r"/\*.*?\*/", "", generate_c(expression, rate=Rate(1)), flags=re.DOTALL)


def test_no_events_are_less_than_nothing_apart() -> None:
    assert [Rate(3, 2).most(length) for length in (-9, -2, -1, 0, 1, 2)] == [0, 0, 0, 3, 3, 6]


def test_rings_hold_what_is_stated_also_with_bounds_below_zero(cases, seed) -> None:
    full = 0
    for number in range(max(cases, ENOUGH)):
        rng = random.Random(f"{seed} held {number}")
        expression = Restriction(random_expression(rng, 4, length=below_zero), below_zero(rng))
        most, detector = memory(expression, rate=Rate(1)), Detector(expression)
        for position, instant in enumerate(random_stream(rng, 20, steps=(1, 1, 2))):
            detector.push(position, instant.time, instant.occurring)
            for held, count in zip(most.sequences, detector.rings, strict=True):
                assert held.instances is None or count <= held.instances, (seed, number, str(expression))
                full += count == held.instances
    assert full > ENOUGH


def test_a_list_that_grows_lets_go_of_what_is_settled() -> None:
    namespace = {}
    exec(generate_python((A >> (B + C)).within(time=2)), namespace)
    detector = namespace["Detector"]()
    for time in (0, 0, 0, 1, 1, 9):
        detector.push(time, time, "A")
    (ring,) = (getattr(detector, name) for name in detector.__slots__ if name.startswith("ring"))
    assert [each and each[1] for each in ring] == [None] * 5 + [9]


def test_bytes_are_those_of_the_kernel(cases, seed) -> None:
    """Its tables say how many words each instance takes that a partition may hold."""
    several = 0
    for number in range(max(cases, ENOUGH)):
        rng = random.Random(f"{seed} words {number}")
        expression = Restriction(random_expression(rng, 4), random_length(rng))
        stated, tables = memory(expression, rate=Rate(2)), engine._Tables.of(transform(expression))
        if not stated.bounded:
            continue
        words = [engine.MARKS + marks for _, marks in tables.held]
        for held, marks in zip(stated.sequences, tables.rings, strict=True):
            words += [engine.MARKS + marks] * held.instances
        assert (stated.instances, stated.bytes) == (len(words), 8 * sum(words)), (seed, number, str(expression))
        several += len(set(words)) > 1
    assert several > ENOUGH / 10


def instances_in_c(text):
    """How many instances the state of a file in C has places for."""
    state = text.partition("typedef struct {\n    int64_t position, time;")[2].partition("} detector_t;")[0]
    assert state
    return sum(int(places or 1) for places in re.findall(r"detector_held_\d+_t \w+(?:\[(\d+)\])?;", state))


def test_c_holds_no_more_instances_than_stated(cases, seed) -> None:
    """As many, where no sub-expression stands twice. One takes more bytes there: a mark has a value and a time, and is one for each variable."""
    equal = larger = 0
    for number in range(max(cases, ENOUGH)):
        rng = random.Random(f"{seed} places {number}")
        primitives = [Primitive(f"p{n}", frozenset("xyz") if n % 4 == 0 else None) for n in range(40)]
        expression = Restriction(random_expression(rng, 4, primitives, length=below_zero), random_length(rng))
        stated = memory(expression, rate=Rate(2))
        try:
            text = generate_c(expression, rate=Rate(2))
        except LimitError:
            continue
        assert instances_in_c(text) <= stated.instances, (seed, number, str(expression))
        if len(unrolled(expression, Rate(2)).steps) == sum(1 for _ in stated.expression.walk()):
            assert instances_in_c(text) == stated.instances
            equal += stated.instances > 2
        size = int(re.search(r"sizeof\(\w+_t\) <= (\d+)", text)[1])
        of_one = [INSTANCE_BYTES + 8 + 3 * MARK_BYTES * marks for marks in stated.others]
        for held in stated.sequences:
            of_one += [INSTANCE_BYTES + 8 + 3 * MARK_BYTES * held.marks] * held.instances
        assert size <= 16 + sum(of_one) + 24 * sum(1 for _ in stated.expression.walk())
        larger += size > stated.bytes
    assert min(equal, larger) > ENOUGH / 20
