"""The 36 laws against the declarative semantics, with random expressions in place of metavariables; rewriting; and the transform that the laws prove."""

from __future__ import annotations

import random
from itertools import chain

import pytest
from random_expressions import ENOUGH, random_expression, random_length, random_stream

from cepheid.algebra import laws
from cepheid.algebra.expression import INSTANT, UNBOUNDED, Length, Primitive, Restriction, Sequence
from cepheid.algebra.laws import GREATEST, LAWS, LEAST, Bounded, Law, T, U
from cepheid.algebra.meaning import instances, tim
from cepheid.algebra.transform import transform
from cepheid.errors import InputError

A, B, C, D = map(Primitive, "ABCD")
THREE, FIVE = Length(time=3), Length(time=5)

PAPER = """
1. A v A == A
2. A v B == B v A
3. A + B == B + A
4. A v (B v C) == (A v B) v C
5. A + (B + C) == (A + B) + C
6. A ; (B ; C) == (A ; B) ; C
7. (A v B) + C == (A + C) v (B + C)
8. (A v B) ; C == (A ; C) v (B ; C)
9. A ; (B v C) == (A ; B) v (A ; C)
10. A + (B v C) == (A + B) v (A + C)
11. (A - B) - C == A - (B v C)
12. A - (B - B) == A
13. (A v B) - C == (A - C) v (B - C)
14. (A + B) - C == ((A - C) + B) - C
15. (A ; B) - C == ((A - C) ; B) - C
16. (A ; B) - C == (A ; (B - C)) - C
17. (A - B) - B == A - B
18. (A - B) - C == (A - C) - B
19. (A v B) - C == ((A - C) v B) - C
20. (A v B) - C == (A v (B - C)) - C
21. (A + B) - C == (A + (B - C)) - C
22. (A - B) - C == ((A - C) - B) - C
23. A == A_t if A is primitive
24. (A_t)_t' == A_min(t, t')
25. (A v B)_t == A_t v B_t
26. (A + B)_t == (A_t + B)_t
27. (A - B)_t == A_t - B
28. (A - B)_t == (A - B_t)_t
29. (A ; B)_t == (A_t ; B)_t
30. (A ; B)_t == (A ; B_t)_t
31. (A_t)_t' == (A_t')_t
32. (A v B)_t == (A_t v B)_t
33. (A v B)_t == (A v B_t)_t
34. A_t v B_t' == (A_t v B_t')_max(t, t')
35. (A + B)_t == (A + B_t)_t
36. (A - B)_t == A_t - B_t
"""
"""As event-algebra prints them, but for law 28."""


def random_binding(rng, law):
    least = 0 if law.condition else rng.choice((0, 1, 1, 2, 3))
    values = {name: random_expression(rng, min(least, rng.randrange(4)), "ABC") for name in "ABC"}
    return values | {"t": random_length(rng), "t'": random_length(rng)}


# -------------------------------------------------------------------------------------------------------------------------- the 36 laws


def test_laws_are_those_of_the_paper() -> None:
    assert "\n".join(map(str, LAWS)) == PAPER.strip()
    assert [law.number for law in LAWS] == list(range(1, 37))


@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        ("Theorem 4.2", range(1, 10)),
        ("Corollary 4.1", range(10, 11)),
        ("Theorem 4.3", range(11, 17)),
        ("Corollary 4.2", range(17, 23)),
        ("Theorem 4.4", range(23, 31)),
        ("Corollary 4.3", range(31, 37)),
    ],
)
def test_laws_name_their_theorem(source, numbers) -> None:
    assert [law.number for law in LAWS if law.source == source] == list(numbers)


def counterexample(law, tries, seed):
    """A case in which the sides of a law have different instances; and in how many before it they had any."""
    with_some = 0
    for number in range(tries):
        rng = random.Random(f"{seed} {law} {number}")
        left, right = law.sides(random_binding(rng, law))
        stream = random_stream(rng, 7, "ABC")
        found = instances(left, stream)
        if found != instances(right, stream):
            return (number, left.formula, right.formula, stream), with_some
        with_some += bool(found)
    return None, with_some


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_sides_of_a_law_have_equal_instances(law, cases, seed) -> None:
    tries = max(cases, ENOUGH)
    found, with_some = counterexample(law, tries, seed)
    assert found is None, (seed, found)
    assert with_some > tries / 40


V, W = laws.A, laws.B
WRONG = [
    Law(1, V + V, V, "of one event only"),
    Law(3, V >> W, W >> V, "no commutativity"),
    Law(8, (V - W) >> laws.C, (V >> laws.C) - W, "of another span"),
    Law(11, V - (W | laws.C), (V - W) | (V - laws.C), "either of the two is enough"),
    Law(12, V - (W - W), V - W, "B - B is nothing"),
    Law(14, (V + W) - laws.C, (V - laws.C) + (W - laws.C), "what lies between"),
    Law(16, (V >> W) - laws.C, (V - laws.C) >> (W - laws.C), "what lies between"),
    Law(23, V, Bounded(V, T), "not of primitives only"),
    Law(24, Bounded(Bounded(V, T), U), Bounded(V, GREATEST), "the least"),
    Law(26, Bounded(V + W, T), Bounded(V, T) + Bounded(W, T), "both fit, not their union"),
    Law(27, Bounded(V - W, T), V - Bounded(W, T), "the left is not bounded"),
    Law(28, V - W, V - Bounded(W, T), "longer ones count"),
    Law(29, Bounded(V >> W, T), Bounded(V, T) >> Bounded(W, T), "both fit, not their union"),
    Law(34, Bounded(V, T) | Bounded(W, U), Bounded(Bounded(V, T) | Bounded(W, U), LEAST), "the greatest"),
]


@pytest.mark.parametrize("law", WRONG, ids=str)
def test_what_is_no_law_is_found_out(law, seed) -> None:
    found, _ = counterexample(law, 20 * ENOUGH, seed)
    assert found is not None


def test_law_28_as_printed_changes_nothing() -> None:
    law, printed = LAWS[27], Law(28, Bounded(V - W, T), Bounded(V - W, T), "Theorem 4.4, misprinted")
    assert printed.left == printed.right == law.left
    assert law.rewrite((A - (B >> C)).within(time=3)) == (A - (B >> C).within(time=3)).within(time=3)


@pytest.mark.parametrize(
    ("one", "other", "greatest"),
    [
        (Length(3, None), Length(None, 1), Length(None, None)),
        (Length(3, 1), Length(2, 4), Length(3, 4)),
        (Length(3, 1), Length(4, None), Length(4, None)),
    ],
)
def test_greatest_of_two_pairs_of_bounds_leaves_out_nothing_of_either(one, other, greatest) -> None:
    binding = {"A": A >> B, "B": A + C, "t": one, "t'": other}
    left, right = LAWS[33].sides(binding)
    assert right == Restriction(left, greatest)
    assert LAWS[33].rewrite(left) == right
    assert LAWS[33].rewrite(right, reverse=True) == left


# ----------------------------------------------------------------------------------------------------------------------------- rewriting


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_each_side_is_rewritten_to_the_other(law, cases, seed) -> None:
    for number in range(cases // 4):
        rng = random.Random(f"{seed} rewrite {law} {number}")
        binding = random_binding(rng, law)
        for reverse in (False, True):
            read, written = law.sides(binding)[:: -1 if reverse else 1]
            needed = law.free(reverse=reverse) or ({"t", "t'"} if (law.number, reverse) == (24, True) else ())
            found = law.rewrite(read, reverse=reverse, binding={name: binding[name] for name in needed})
            assert found == written, (seed, number, read.formula)
            assert law.rewrite(read, reverse=reverse, binding=binding) == written


def test_rewriting_anywhere_keeps_the_instances(cases, seed) -> None:
    """Theorem 4.1."""
    total = dict.fromkeys(LAWS, 0)
    for number in range(max(cases // 2, len(LAWS))):
        rng = random.Random(f"{seed} 4.1 {number}")
        # Most laws apply to few random expressions: one side of one of them is inside.
        planted = LAWS[number % len(LAWS)]
        inner = rng.choice(planted.sides(random_binding(rng, planted)))
        expression = rng.choice(
            (inner, inner.within(time=4), inner - random_expression(rng, 1, "ABC"), random_expression(rng, 1, "ABC") >> inner)
        )
        stream = random_stream(rng, 5, "ABC")
        expected = instances(expression, stream)
        for law in LAWS:
            binding = {name: random_binding(rng, law)[name] for name in law.free() | law.free(reverse=True)}
            for found in law.rewrites(expression, binding=binding):
                assert instances(found, stream) == expected, (seed, number, str(law), expression.formula, found.formula)
                total[law] += 1
    assert all(total.values())


def test_lengths_of_sequences_stay_right_around_a_rewrite(cases, seed) -> None:
    for number in range(cases // 4):
        rng = random.Random(f"{seed} labels {number}")
        expression, stream = transform(random_expression(rng, 3, "ABC")), random_stream(rng, 5, "ABC")
        for law in LAWS:
            for found in law.rewrites(expression):
                assert_lengths_hold(found, stream)


@pytest.mark.parametrize(
    ("number", "expression", "found"),
    [
        (1, A, ["(A v A)"]),
        (1, A | A, ["A", "((A v A) v (A v A))", "((A v A) v A)", "(A v (A v A))"]),
        (2, (A | B) >> (C | D), ["((B v A) ; (C v D))", "((A v B) ; (D v C))"]),
        (2, A >> B, []),
        (6, A >> (B >> (C >> D)), ["((A ; B) ; (C ; D))", "(A ; ((B ; C) ; D))"]),
        (12, A - (B - B), ["A"]),
        (17, A - B, ["((A - B) - B)"]),
        (17, (A - B) - B, ["(A - B)", "(((A - B) - B) - B)"]),
        (23, A.within(time=3), ["A"]),
        (23, (A + A).within(time=3), []),
        (23, A.within(time=-1), []),
        (24, A.within(time=3).within(events=2), ["A_3,#2", "((A_3)_#2)_#2", "((A_3)_3)_#2"]),
        (34, A.within(time=3) | B.within(time=5), ["(A_3 v B_5)_5"]),
    ],
)
def test_all_rewrites_at_all_places(number, expression, found) -> None:
    assert sorted(each.formula for each in LAWS[number - 1].rewrites(expression)) == sorted(found)


@pytest.mark.parametrize(
    ("number", "expression", "reverse", "binding", "found"),
    [
        (1, A | B, False, {}, None),
        (3, A + B, False, {"A": A}, B + A),
        (3, A + B, False, {"A": B}, None),
        (12, A, True, {"B": B >> C}, A - ((B >> C) - (B >> C))),
        (23, A, False, {"t": THREE}, Restriction(A, THREE)),
        (23, A, False, {"t": Length(time=-1)}, None),
        (23, A + A, False, {"t": THREE}, None),
        (24, Restriction(A, THREE), True, {}, Restriction(Restriction(A, THREE), THREE)),
        (24, Restriction(A, THREE), True, {"t'": FIVE}, Restriction(Restriction(A, THREE), FIVE)),
        (24, Restriction(A, THREE), True, {"t": FIVE}, Restriction(Restriction(A, FIVE), THREE)),
        (24, Restriction(A, THREE), True, {"t": FIVE, "t'": FIVE}, None),
        (24, Restriction(A, FIVE), True, {"t": THREE}, None),
        (
            24,
            Restriction(A, Length(3, 5)),
            True,
            {"t": Length(3, 9), "t'": Length(4, 5)},
            Restriction(Restriction(A, Length(3, 9)), Length(4, 5)),
        ),
        (26, Restriction(Restriction(A, THREE) + B, FIVE), True, {}, None),
        (34, Restriction(Restriction(A, THREE) | Restriction(B, FIVE), FIVE), True, {}, Restriction(A, THREE) | Restriction(B, FIVE)),
        (34, Restriction(Restriction(A, THREE) | Restriction(B, FIVE), THREE), True, {}, None),
        (34, Restriction(Restriction(A, THREE) | Restriction(B, FIVE), UNBOUNDED), True, {}, None),
    ],
)
def test_rewrites_of_the_whole(number, expression, reverse, binding, found) -> None:
    assert LAWS[number - 1].rewrite(expression, reverse=reverse, binding=binding) == found


def test_free_names() -> None:
    assert {law.number: set(law.free()) for law in LAWS if law.free()} == {23: {"t"}}
    assert {law.number: set(law.free(reverse=True)) for law in LAWS if law.free(reverse=True)} == {12: {"B"}}
    assert list(LAWS[11].rewrites(A)) == []
    assert list(LAWS[11].rewrites(A, binding={"B": B})) == [A - (B - B)]


@pytest.mark.parametrize(
    ("number", "reverse", "binding", "message"),
    [
        (12, True, {}, "error: law 12 from right to left needs a value of B\nhelp: give binding={'B': ..}: 12. A - (B - B) == A"),
        (23, False, {}, "error: law 23 needs a value of t\nhelp: give binding={'t': ..}: 23. A == A_t if A is primitive"),
        (
            12,
            True,
            {"B": THREE},
            "error: B stands for an event expression, not for Length(time=3, events=None)\nhelp: bind 'B' to an Expression",
        ),
        (23, False, {"t": 3}, "error: t stands for a length, not for 3\nhelp: bind 't' to a Length"),
    ],
)
def test_free_names_need_values_of_their_kind(number, reverse, binding, message) -> None:
    with pytest.raises(InputError) as caught:
        LAWS[number - 1].rewrite(A, reverse=reverse, binding=binding)
    assert str(caught.value) == message


DERIVATIONS = {10: (3, 7), 17: (1, 11), 18: (2, 11), 19: (13, 17), 20: (2, 19), 21: (3, 14), 22: (17, 18), 32: (24, 25), 33: (2, 32), 35: (3, 26), 36: (27, 28)}  # fmt: skip
"""The laws that corollaries follow from. For law 17 event-algebra says 1 and 13, and means 1 and 11; for law 20 it says 2 and 13."""


@pytest.mark.parametrize("number", DERIVATIONS)
def test_corollaries_follow_from_the_laws_before_them(number) -> None:
    left, right = LAWS[number - 1].sides({"A": A, "B": B, "C": C, "t": THREE})
    reached = [{left}, {right}]
    for step in range(4):
        side = step % 2
        reached[side] |= {new for old in reached[side] for by in DERIVATIONS[number] for new in LAWS[by - 1].rewrites(old)}
    assert reached[0] & reached[1]


# --------------------------------------------------------------------------------------------------------------------------- the transform


def assert_lengths_hold(expression, stream):
    for node in expression.walk():
        if isinstance(node, Sequence):
            right = instances(node.right, stream)
            assert tim(right, node.length) == right, node.formula


def test_transform_keeps_the_instances_and_says_how_long_right_sides_are(cases, seed) -> None:
    """Theorem 6.1."""
    tries = max(cases, ENOUGH)
    changed = bounded = 0
    for number in range(2 * tries):
        rng = random.Random(f"{seed} 6.1 {number}")
        expression, stream = random_expression(rng, rng.randrange(1, 5), "ABC"), random_stream(rng, 6, "ABC")
        for _ in range(rng.randrange(3)):  # bounds around bounds, where most of the transform's work is
            expression = rng.choice(
                (expression - random_expression(rng, 1, "ABC"), random_expression(rng, 1, "ABC") | expression, expression)
            )
            expression = Restriction(expression, random_length(rng))
        transformed = transform(expression)
        assert instances(transformed, stream) == instances(expression, stream), (seed, number, expression.formula)
        assert_lengths_hold(transformed, stream)
        changed += transformed != expression
        bounded += any(isinstance(node, Sequence) and node.length != UNBOUNDED for node in transformed.walk())
    assert min(changed, bounded) > tries / 5


def test_transform_of_example_6_1() -> None:
    P, T = map(Primitive, "PT")
    transformed = transform((B >> B).within(time=2) - (P >> (P + T)))
    assert transformed.formula == "((B ; B)_2 - (P ; (P + T)_2))"
    lengths = [(node.left.formula, node.length) for node in transformed.walk() if isinstance(node, Sequence)]
    assert lengths == [("B", Length(0, 0)), ("P", Length(2))]


@pytest.mark.parametrize(
    ("expression", "formula"),
    [
        (A.within(time=0), "A"),
        (A.within(time=-1), "A_-1"),
        ((A + B).within(time=5).within(time=2), "(A + B)_2"),
        ((A + B).within(time=2).within(time=5), "(A + B)_2"),
        ((A + B).within(time=5).within(events=2), "(A + B)_5,#2"),
        (((A + B).within(time=5) | C).within(time=2), "((A + B)_2 v C)"),
        (((A + B).within(time=5) | C).within(time=7), "((A + B)_5 v C)"),
        (((A + B) | C).within(time=2), "((A + B) v C)_2"),
        ((A + (B >> (C + D)).within(time=5)).within(time=2), "(A + (B ; (C + D)_2)_2)_2"),
        ((A >> (B + C).within(time=5)).within(time=2), "(A ; (B + C)_2)_2"),
        ((A >> (B + C).within(time=2)).within(time=5, events=1), "(A ; (B + C)_2,#1)_5,#1"),
        ((A + B) - (C >> (C + D)), "((A + B) - (C ; (C + D)))"),
        ((A + B).within(time=3) - (C >> (C + D)), "((A + B)_3 - (C ; (C + D)_3))"),
        (((A + B).within(time=3) - (C >> (C + D))).within(time=2), "((A + B)_2 - (C ; (C + D)_2))"),
    ],
)
def test_transform_of_each_operator(expression, formula) -> None:
    """The cases of Figure 5."""
    assert transform(expression).formula == formula


@pytest.mark.parametrize(
    ("right", "length"),
    [
        (A, INSTANT),
        (A.within(time=5), INSTANT),
        (A | C, INSTANT),
        ((A + C).within(time=5).within(events=2), Length(5, 2)),
        (A | (A + C).within(time=3), Length(3)),
        ((A + B) | (A + C).within(time=3), UNBOUNDED),
        ((A + C).within(time=3) - (B >> C), Length(3)),
        (A >> C, UNBOUNDED),
        ((A >> C).within(events=4), Length(events=4)),
    ],
)
def test_length_of_a_right_side(right, length) -> None:
    """The second of what Figure 5 returns: as short as it says, not just right."""
    (*_, sequence) = transform(B >> right).walk()
    assert sequence.length == length


def test_transform_is_found_by_rewriting() -> None:
    """The proof of Lemma 6.1 goes by the laws."""
    expression = ((A + A) - (B >> (C + D))).within(time=2)
    reached = {expression}
    for _ in range(3):
        reached |= set(chain.from_iterable(LAWS[number - 1].rewrites(old) for old in reached for number in (28, 30)))
    assert transform(expression) in reached
    assert transform(expression) != expression
