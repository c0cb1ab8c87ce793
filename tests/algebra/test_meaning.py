"""The declarative semantics: the paper's examples, a naive twin that asks of each set of marks whether it is an instance, and the restriction policy."""

from __future__ import annotations

import itertools
import random

import pytest
from random_expressions import ENOUGH, random_expression, random_length, random_stream

from cepheid.algebra.expression import UNBOUNDED, Conjunction, Disjunction, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.laws import A as METAVARIABLE
from cepheid.algebra.meaning import Instance, Instant, con, dis, instances, is_restriction, neg, restriction, seq, spans, tim
from cepheid.errors import InputError

A, B, C, P, T = map(Primitive, "ABCPT")


def stream_of(*instants):
    """`"AB"` at the times 0, 1, 2, ..; or (time, "AB")."""
    timed = [instant if isinstance(instant, tuple) else (time, instant) for time, instant in enumerate(instants)]
    return [Instant(time, frozenset(names)) for time, names in timed]


def shown(expression, *instants):
    return sorted(map(str, instances(expression, stream_of(*instants))))


# --------------------------------------------------------------------------------------------------------------------- the paper's examples


TEMPERATURE = ((2, "T"), (3, "T"), (4, "P"), (5, "T"))
"""Example 3.1, of event-algebra."""


def test_primitive_event_streams_of_example_3_1() -> None:
    assert shown(T, *TEMPERATURE) == ["[0, 0] T@0", "[1, 1] T@1", "[3, 3] T@3"]
    assert shown(P, *TEMPERATURE) == ["[2, 2] P@2"]
    assert {instance.start_time for instance in instances(T, stream_of(*TEMPERATURE))} == {2, 3, 5}


def test_instance_of_example_3_2_starts_at_2_and_ends_at_5() -> None:
    (found,) = (each for each in instances((T + P) + T, stream_of(*TEMPERATURE)) if each.marks == {("T", 0), ("P", 2), ("T", 3)})
    assert found == Instance(0, 3, 2, 5, frozenset({("T", 0), ("P", 2), ("T", 3)}))


def test_three_a_and_two_b_make_six_of_a_and_b() -> None:
    assert len(instances(A + B, stream_of("A", "A", "A", "B", "B"))) == 6


def test_a_then_b_then_c_is_no_b_then_a_then_c() -> None:
    """Section 2, of Galton and Augusto: it would be one where an instance is the instant of its end."""
    assert shown(B >> (A >> C), "A", "B", "C") == []
    assert shown(A >> (B >> C), "A", "B", "C") == ["[0, 2] A@0 B@1 C@2"]


@pytest.mark.parametrize(
    ("instants", "found"),
    [
        (((0, "B"), (2, "B")), ["[0, 1] B@0 B@1"]),
        (((0, "B"), (3, "B")), []),
        (((0, "B"), (1, "P"), (2, "B")), []),
        (((0, "B"), (1, "BT")), []),
        (((0, "T"), (1, "B"), (2, "B"), (2, "P")), ["[1, 2] B@1 B@2"]),
    ],
)
def test_button_of_example_1_2(instants, found) -> None:
    assert shown((B >> B).within(time=2) - (P | T), *instants) == found


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (A | B, ["[0, 0] A@0", "[1, 1] A@1", "[1, 1] B@1"]),
        (A + B, ["[0, 1] A@0 B@1", "[1, 1] A@1 B@1"]),
        (A + A, ["[0, 0] A@0", "[0, 1] A@0 A@1", "[1, 1] A@1"]),
        (A - B, ["[0, 0] A@0"]),
        (A >> B, ["[0, 1] A@0 B@1"]),
        (B >> A, []),
        ((A + B).within(time=2), ["[1, 1] A@1 B@1"]),
        ((A + B).within(time=3), ["[0, 1] A@0 B@1", "[1, 1] A@1 B@1"]),
        ((A + B).within(events=0), ["[1, 1] A@1 B@1"]),
        ((A + B).within(time=2, events=1), ["[1, 1] A@1 B@1"]),
        (Restriction(A + B, UNBOUNDED), ["[0, 1] A@0 B@1", "[1, 1] A@1 B@1"]),
        (A.within(time=-1), []),
    ],
)
def test_operators_on_a_then_a_with_b(expression, found) -> None:
    assert shown(expression, (4, "A"), (7, "AB")) == found


# ------------------------------------------------------------------------------------------------------------------------ the naive twin


def covers(marks):
    """All (s, t) with s | t == marks."""
    for sides in itertools.product((1, 2, 3), repeat=len(marks)):
        pairs = list(zip(sorted(marks), sides, strict=True))
        yield frozenset(mark for mark, side in pairs if side & 1), frozenset(mark for mark, side in pairs if side & 2)


def subsets(marks):
    return (frozenset(some) for size in range(1, len(marks) + 1) for some in itertools.combinations(sorted(marks), size))


class Twin:
    """Asks of one set of marks at a time whether it is an instance, with no sets of instances anywhere."""

    def __init__(self, stream):
        self.times = [instant.time for instant in stream]
        self.all = frozenset((name, position) for position, instant in enumerate(stream) for name in instant.occurring)
        self.known = {}

    def has(self, expression, marks):
        if (expression, marks) not in self.known:
            self.known[expression, marks] = bool(marks) and self._has(expression, marks)
        return self.known[expression, marks]

    def _has(self, expression, marks):
        positions = [position for _, position in marks]
        low, high = min(positions), max(positions)
        match expression:
            case Primitive(name):
                return marks == {(name, low)}
            case Disjunction(left, right):
                return self.has(left, marks) or self.has(right, marks)
            case Conjunction(left, right):
                return any(self.has(left, s) and self.has(right, t) for s, t in covers(marks))
            case Negation(left, right):
                during = subsets({mark for mark in self.all if low <= mark[1] <= high})
                return self.has(left, marks) and not any(self.has(right, some) for some in during)
            case Sequence(left, right):
                cuts = range(low, high)
                parts = [({m for m in marks if m[1] <= cut}, {m for m in marks if m[1] > cut}) for cut in cuts]
                return any(self.has(left, frozenset(s)) and self.has(right, frozenset(t)) for s, t in parts)
            case Restriction(operand, length):
                fits = self.times[high] - self.times[low], high - low
                return self.has(operand, marks) and all(bound is None or far <= bound for far, bound in zip(fits, length, strict=True))


def test_instances_are_those_of_the_naive_twin(cases, seed) -> None:
    tries = max(cases, ENOUGH)
    many = 0
    for number in range(tries):
        rng = random.Random(f"{seed} twin {number}")
        expression, stream = random_expression(rng, rng.randrange(1, 4), "AB"), random_stream(rng, rng.randrange(1, 5), "AB")
        twin = Twin(stream)
        if len(twin.all) > 6:
            continue
        expected = {marks for marks in subsets(twin.all) if twin.has(expression, marks)}
        found = instances(expression, stream)
        assert {instance.marks for instance in found} == expected, (seed, number, expression.formula)
        many += len(found) > 1
        for one in found:
            positions = [position for _, position in one.marks]
            assert (one.start, one.end) == (min(positions), max(positions))
            assert (one.start_time, one.end_time) == (stream[one.start].time, stream[one.end].time)
    assert many > tries / 50


def test_what_comes_later_or_before_changes_no_instance(cases, seed) -> None:
    """Instances of a part of a stream are those of the stream that lie in it: `differ` relies on this."""
    for number in range(cases // 2):
        rng = random.Random(f"{seed} part {number}")
        expression, stream = random_expression(rng, 3), random_stream(rng, 6)
        low, high = sorted(rng.sample(range(7), 2))
        part = {
            frozenset((name, position + low) for name, position in instance.marks) for instance in instances(expression, stream[low:high])
        }
        assert part == {instance.marks for instance in instances(expression, stream) if low <= instance.start and instance.end < high}


def test_time_that_descends_is_an_error() -> None:
    with pytest.raises(InputError) as caught:
        instances(A, stream_of((0, "A"), (5, "B"), (4, "A")))
    assert str(caught.value) == "error: time descends from 5 to 4 at position 2\nhelp: sort the instants by time"


def test_variables_are_no_part_of_an_instance() -> None:
    stream = stream_of("A", "AB")
    assert instances(Primitive("A", frozenset("xy")) >> B, stream) == instances(A >> B, stream)


def test_metavariables_have_no_instances() -> None:
    with pytest.raises(TypeError):
        instances(METAVARIABLE | A, stream_of("A"))


# ---------------------------------------------------------------------------------------------------------------- the restriction policy


def random_restriction(rng, whole):
    """Any of the valid ones."""
    greatest = {}
    for instance in sorted(whole, key=str):
        greatest.setdefault(instance.end, []).append(instance)
    kept = ([one for one in some if one.start == max(each.start for each in some)] for some in greatest.values())
    return frozenset(map(rng.choice, kept))


def random_instances(rng, stream):
    """Any set of instances (Definition 3.9), of no expression in particular."""
    found = set()
    for _ in range(rng.randrange(8)):
        low, high = sorted((rng.randrange(len(stream)), rng.randrange(len(stream))))
        marks = {(rng.choice("ABCD"), low), (rng.choice("ABCD"), high), (rng.choice("ABCD"), rng.randrange(low, high + 1))}
        found.add(Instance(low, high, stream[low].time, stream[high].time, frozenset(marks)))
    return frozenset(found)


def some_instances(rng, stream):
    return instances(random_expression(rng, rng.randrange(1, 4)), stream) if rng.random() < 0.6 else random_instances(rng, stream)


def all_sets(found):
    return (frozenset(some) for size in range(len(found) + 1) for some in itertools.combinations(found, size))


@pytest.mark.parametrize(
    ("part", "valid"),
    [
        (["[0, 2] A@0 B@2"], False),  # not of greatest start
        (["[1, 2] A@1 B@2"], True),
        (["[1, 2] A@1 C@2"], True),
        (["[1, 2] A@1 B@2", "[1, 2] A@1 C@2"], False),  # two of one end
        ([], False),  # none of an end
        (["[1, 2] A@1 B@2", "[0, 0] A@0"], False),  # not one of them
    ],
)
def test_definition_of_a_valid_restriction(part, valid) -> None:
    stream = stream_of("A", "A", "BC")
    whole = instances(A >> (B | C), stream)
    by_name = {str(each): each for each in whole | instances(A, stream)}
    assert is_restriction(whole, frozenset(by_name[name] for name in part)) is valid


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        ((A >> C) | (B >> A >> C), ["[0, 2] A@0 C@2"]),  # the only one of these starts
        ((B >> A >> C) | (A >> C), ["[0, 2] A@0 C@2"]),
        ((A >> B >> C) | (A >> C), ["[0, 2] A@0 B@1 C@2"]),  # the greatest position that only one has decides
        ((A >> P >> C) | (A >> B >> C), ["[0, 2] A@0 P@1 C@2"]),  # equal supports: the greatest marks
        ((A | B | C) + (A | B), ["[0, 0] A@0", "[1, 1] B@1", "[1, 2] B@1 C@2"]),
    ],
)
def test_one_restriction_is_always_the_same(expression, kept) -> None:
    whole = instances(expression, stream_of("A", "BP", "C"))
    assert sorted(map(str, restriction(whole))) == kept


def test_the_greatest_position_that_only_one_has_decides_before_names_do() -> None:
    whole = instances(A >> (B + C), stream_of("A", "B", "BC"))
    assert [str(each) for each in restriction(whole)] == ["[0, 2] A@0 B@1 C@2"]  # not B@2


def test_any_two_valid_restrictions_have_equal_spans(cases, seed) -> None:
    """Theorem 4.5; and `is_restriction` is Definition 3.12: on small sets, what it takes is what `random_restriction` can give."""
    tries = max(cases, ENOUGH)
    several = 0
    for number in range(tries):
        rng = random.Random(f"{seed} 4.5 {number}")
        whole = some_instances(rng, random_stream(rng, 6))
        one, other, ours = random_restriction(rng, whole), random_restriction(rng, whole), restriction(whole)
        assert all(is_restriction(whole, part) for part in (one, other, ours))
        assert spans(one) == spans(other) == spans(ours)
        several += one != other
        if len(whole) <= 7:
            valid = [part for part in all_sets(whole) if is_restriction(whole, part)]
            assert one in valid
            assert {spans(part) for part in valid} == {spans(one)}
    assert several > tries / 200


OPERATORS = {
    "dis": lambda left, right, _: dis(left, right),
    "con": lambda left, right, _: con(left, right),
    "neg": lambda left, right, _: neg(left, right),
    "seq": lambda left, right, _: seq(left, right),
    "tim": lambda left, _, length: tim(left, length),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operands_may_be_restricted_first(name, cases, seed) -> None:
    """Theorem 4.6."""
    tries = max(cases, ENOUGH)
    operator, changed = OPERATORS[name], 0
    for number in range(tries):
        rng = random.Random(f"{seed} 4.6 {name} {number}")
        stream, length = random_stream(rng, 6), random_length(rng)
        left, right = some_instances(rng, stream), some_instances(rng, stream)
        of_restricted = operator(random_restriction(rng, left), random_restriction(rng, right), length)
        whole = operator(left, right, length)
        assert is_restriction(whole, random_restriction(rng, of_restricted)), (seed, number)
        assert spans(restriction(of_restricted)) == spans(restriction(whole))
        changed += of_restricted != whole
    assert changed > tries / 50
