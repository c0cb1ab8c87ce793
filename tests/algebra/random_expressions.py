"""Random expressions of the algebra, and random streams for them: what all tests of this directory draw from."""

from __future__ import annotations

from cepheid.algebra.expression import Conjunction, Disjunction, Length, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.meaning import Instant

BINARY = (Disjunction, Conjunction, Negation, Sequence)
OPERATORS = (*BINARY, Restriction)

ENOUGH = 200
"""Cases below which it could be chance that none of them shows anything."""


def random_length(rng, times=range(6), events=range(4)):
    """A bound in time, in positions, or in both."""
    kind = rng.randrange(3)
    return Length(None if kind == 0 else rng.choice(times), None if kind == 1 else rng.choice(events))


def random_expression(rng, depth, primitives="ABCD", *, length=random_length, repeated=0.0):
    """All operators. primitives: names, or primitives themselves. repeated: how often a part is one that stands elsewhere already."""
    leaves = [each if isinstance(each, Primitive) else Primitive(each) for each in primitives]
    made = []

    def grown(depth):
        if made and rng.random() < repeated:
            return rng.choice(made)
        if depth == 0 or rng.random() < 0.15:
            return rng.choice(leaves)
        operator = rng.choice(OPERATORS)
        left = grown(depth - 1)
        made.append(operator(left, length(rng) if operator is Restriction else grown(depth - 1)))
        return made[-1]

    return grown(depth)


def random_stream(rng, length, names="ABCD", *, steps=(0, 0, 1, 1, 2, 4)):
    """Instants; steps: what time advances by from one to the next."""
    share, time, found = rng.choice((0.2, 0.35, 0.5)), rng.randrange(-3, 3), []
    for _ in range(length):
        found.append(Instant(time, frozenset(name for name in names if rng.random() < share)))
        time += rng.choice(steps)
    return found
