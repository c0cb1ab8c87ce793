"""The reference against a second definition: core CEL by valuations, as "Foundations of Complex Event Processing" (section 3) writes it.

There a valuation gives one position to every variable, and `p+` may change those of its body in each round; here a match carries sets of
positions, and conditions that wait. On well-formed formulas that use a variable once along a sequence both must find the same complex events.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest

from cepheid.language import parse
from cepheid.logical.bind import bind
from cepheid.schema import schema_of
from cepheid.testing.generators import SCHEMA, random_stream
from cepheid.testing.harness import events_of
from cepheid.testing.reference import matches

EVENTS = schema_of(SCHEMA)
OPERATORS = {"=": lambda a, b: a == b, "<": lambda a, b: a < b, "!=": lambda a, b: a != b}


@dataclass(frozen=True)
class Atom:
    type: str
    variable: str


@dataclass(frozen=True)
class Filter:
    """left.v operator right.v"""

    formula: object
    left: str
    operator: str
    right: str


@dataclass(frozen=True)
class Or:
    left: object
    right: object


@dataclass(frozen=True)
class Then:
    left: object
    right: object


@dataclass(frozen=True)
class Plus:
    body: object


def text(formula):
    match formula:
        case Atom(kind, variable):
            return f"{kind} AS {variable}"
        case Filter(inner, left, operator, right):
            return f"(({text(inner)}) FILTER {left}.v {operator} {right}.v)"
        case Or(left, right):
            return f"(({text(left)}) OR ({text(right)}))"
        case Then(left, right):
            return f"(({text(left)}) ; ({text(right)}))"
        case Plus(body):
            return f"({text(body)})+"
    raise TypeError(formula)


def defined(formula, *, outside=False):
    """vdef, or with `outside` vdef+: the variables defined outside every iteration."""
    match formula:
        case Atom(_, variable):
            return {variable}
        case Filter(inner):
            return defined(inner, outside=outside)
        case Or(left, right) | Then(left, right):
            return defined(left, outside=outside) | defined(right, outside=outside)
        case Plus(body):
            return set() if outside else defined(body)
    raise TypeError(formula)


def bound(formula):
    match formula:
        case Atom(_, variable):
            return {variable}
        case Filter(inner):
            return bound(inner)
        case Or(left, right):
            return bound(left) & bound(right)
        case Then(left, right):
            return bound(left) | bound(right)
    return set()


def valuations(variables, count):
    names = sorted(variables)
    for places in itertools.product(range(count), repeat=len(names)):
        yield dict(zip(names, places, strict=True))


def complex_events(formula, events, valuation):
    """The complex events of a formula under a valuation, by the paper's five cases."""
    match formula:
        case Atom(kind, variable):
            place = valuation[variable]
            return {frozenset({place})} if events[place].type == kind else set()
        case Filter(inner, left, operator, right):
            first, second = (events[valuation[name]].attributes["v"] for name in (left, right))
            true = first is not None and second is not None and OPERATORS[operator](first, second)
            return complex_events(inner, events, valuation) if true else set()
        case Or(left, right):
            return complex_events(left, events, valuation) | complex_events(right, events, valuation)
        case Then(left, right):
            return concatenated(complex_events(left, events, valuation), complex_events(right, events, valuation))
        case Plus(body):
            own = valuations(defined(body, outside=True), len(events))
            rounds = set().union(*(complex_events(body, events, valuation | changed) for changed in own))
            found, longest = set(rounds), rounds
            while longest:
                longest = concatenated(longest, rounds) - found
                found |= longest
            return found
    raise TypeError(formula)


def concatenated(first, second):
    return {left | right for left in first for right in second if max(left) < min(right)}


class Formulas:
    """Random well-formed formulas; operands of OR may define the same variable, nothing else does."""

    def __init__(self, rng):
        self.rng = rng
        self.count = 0

    def formula(self, depth, outer):
        kind = self.rng.choice(["then", "then", "or", "plus", "filter", "filter"]) if depth > 0 else "atom"
        if kind == "then":
            return self.sequence(depth - 1, outer)
        if kind == "or":
            left = self.formula(depth - 1, outer)
            if isinstance(left, Atom) and self.rng.random() < 0.6:
                return Or(left, Atom(self.rng.choice("ABC"), left.variable))
            return Or(left, self.formula(depth - 1, outer))
        if kind == "plus":
            return Plus(self.formula(depth - 1, outer))
        if kind == "filter":
            inner = self.formula(depth - 1, outer)
            names = sorted(bound(inner) | (outer - defined(inner)))
            return Filter(inner, self.rng.choice(names), self.rng.choice(list(OPERATORS)), self.rng.choice(names)) if names else inner
        self.count += 1
        return Atom(self.rng.choice("AAB"), f"x{self.count}")

    def sequence(self, depth, outer):
        """One operand is made first; what it binds, the other one may speak of, whichever comes first."""
        first = self.formula(depth, outer)
        second = self.formula(depth, outer | bound(first))
        return Then(first, second) if self.rng.random() < 0.6 else Then(second, first)


@pytest.mark.parametrize("block", range(8))
def test_complex_events_are_those_of_the_paper(block):
    compared = found = 0
    for number in range(40):
        rng = random.Random(f"{block} {number}")
        formulas = Formulas(rng)
        formula = formulas.formula(3, set())
        rows = random_stream(rng, most=5)
        if formulas.count > 5 or not rows:
            continue
        events = events_of(rows, EVENTS)
        free = defined(formula, outside=True)
        expected = set().union(*(complex_events(formula, events, valuation) for valuation in valuations(free, len(events))))
        query = f"SELECT * WHERE {text(formula)}"
        answer = {frozenset(match.support) for match in matches(bind(parse(query), EVENTS, text=query), events)}
        assert answer == expected, query
        compared += 1
        found += bool(expected)
    assert compared > 15
    assert found > 5
