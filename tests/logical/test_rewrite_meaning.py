"""Every rule keeps the set of matches: random plans of the whole language, random streams, judged by the reference."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pyarrow as pa
import pytest
from enough import Enough

from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy
from cepheid.logical.describe import describe
from cepheid.logical.normal_form import is_normal
from cepheid.logical.plan import (
    Absence,
    All,
    And,
    Apply,
    Event,
    Field,
    Filter,
    Index,
    Interval,
    Iterate,
    Link,
    Literal,
    Named,
    Optional,
    Or,
    Pattern,
    Project,
    QueryPlan,
    Select,
    Sequence,
    Unless,
    Within,
    WithinEvents,
)
from cepheid.logical.rewrite import RULES, rewrite
from cepheid.logical.simplify import reaching_out
from cepheid.logical.tree import walk
from cepheid.logical.variables import defined, safe, well_formed
from cepheid.schema import EventSchema
from cepheid.testing import reference
from cepheid.theory.safe_form import safe_form

SCHEMA = EventSchema({"type": pa.string(), "ts": pa.int64(), "v": pa.int64(), "id": pa.int64()}, type_column="type", time_column="ts")
TYPES = ("A", "B", "C")
NAMES = ("x", "y", "z")
INT, BOOL = pa.int64(), pa.bool_()


def field(variable: str, attribute: str = "v", *, previous: bool = False) -> Field:
    return Field(variable, (attribute,), INT, INT, previous)


def compare(operator: str, left: object, right: object) -> Apply:
    sides = [Literal(side, INT) if isinstance(side, int) else side for side in (left, right)]
    return Apply(operator, tuple(sides), BOOL)


class RandomPlans:
    """Patterns over three types and three names; conditions reach out of their FILTER now and then."""

    def __init__(self, rng: random.Random, *, reach: float = 0.3, local: bool = False) -> None:
        self.rng = rng
        self.reach = reach
        self.only_local = local

    def well_formed(self, depth: int) -> Pattern:
        while True:
            pattern = self.pattern(depth)
            if well_formed(pattern):
                return pattern

    def pattern(self, depth: int) -> Pattern:
        if depth == 0:
            return self.atom()
        makers = {
            self.atom: 2, self.sequence: 8, self.disjunction: 4, self.iteration: 3, self.named: 3, self.filtered: 9, self.conjunction: 1,
            self.all: 1, self.projected: 2, self.selected: 1, self.window: 1, self.unless: 1,
        }  # fmt: skip
        return self.rng.choices(list(makers), list(makers.values()))[0](depth - 1)

    def atom(self, _: int = 0) -> Pattern:
        event = Event(self.rng.choice((*TYPES, None)) if self.rng.random() < 0.2 else self.rng.choice(TYPES))
        return Named(event, self.rng.choice(NAMES)) if self.rng.random() < 0.7 else event

    def sequence(self, depth: int) -> Pattern:
        items = [self.pattern(depth) for _ in range(self.rng.choice((2, 2, 3, 3, 4)))]
        free = [self.rng.random() < 0.15 for _ in items]
        if all(free):
            free[0] = False
        items = [Optional(item) if optional else item for item, optional in zip(items, free, strict=True)]
        links = [self.link(plain=free[i] or free[i + 1]) for i in range(len(items) - 1)]
        return Sequence(tuple(items), tuple(links))

    def link(self, *, plain: bool) -> Link:
        chance = self.rng.random()
        if plain or chance < 0.85:
            return Link(self.rng.choice(";;;:"))
        if chance < 0.95:
            return Link(self.rng.choice(";:"), self.interval())
        return Link(";", None, self.closed(1))

    def closed(self, depth: int) -> Pattern:
        return self.well_formed(depth)

    def interval(self) -> Interval:
        return self.rng.choice((Interval(0, 1), Interval(1, None), Interval(0, 3), Interval(1, 2)))

    def disjunction(self, depth: int) -> Pattern:
        return Or(tuple(self.pattern(depth) for _ in range(self.rng.choice((2, 2, 3)))))

    def iteration(self, depth: int) -> Pattern:
        gap = self.interval() if self.rng.random() < 0.1 else None
        adjacent = self.rng.random() < 0.3
        minimum, maximum = self.rng.choice(((1, None), (1, None), (1, None), (2, 2), (1, 2), (2, None), (1, 3), (1, 1), (2, 4)))
        return Iterate(self.pattern(depth), adjacent=adjacent, gap=gap, minimum=minimum, maximum=maximum)

    def named(self, depth: int) -> Pattern:
        return Named(self.pattern(depth), self.rng.choice(NAMES))

    def filtered(self, depth: int) -> Pattern:
        pattern = self.pattern(depth)
        return Filter(pattern, tuple(self.condition(pattern) for _ in range(self.rng.choice((1, 1, 2)))))

    def variable(self, pattern: Pattern) -> str:
        return self.rng.choice(sorted(defined(pattern)) or ["x"]) if self.rng.random() > self.reach else self.rng.choice(NAMES)

    def condition(self, pattern: Pattern) -> Apply | Literal:
        chance = self.rng.random()
        variable = self.variable(pattern)
        if chance < 0.6 or self.only_local:
            return self.local(variable)
        if chance < 0.75:
            return self.mixed(pattern, 2)
        if chance < 0.85:
            return compare(self.rng.choice(("=", "<")), field(variable), field(self.variable(pattern)))
        if chance < 0.9:
            return compare("<", field(self.variable(pattern), previous=True), field(variable))
        if chance < 0.95:
            return compare("<", Index(variable), 3)
        return Literal(self.rng.choice((True, False, None)), BOOL)

    def local(self, variable: str) -> Apply:
        condition = compare(self.rng.choice(("=", "<", ">", "!=")), field(variable), self.rng.choice((1, 2)))
        return Apply("not", (condition,), BOOL) if self.rng.random() < 0.2 else condition

    def mixed(self, pattern: Pattern, depth: int) -> Apply:
        if depth == 0:
            return self.local(self.variable(pattern))
        operator = self.rng.choice(("and", "or", "or", "not"))
        count = 1 if operator == "not" else 2
        return Apply(operator, tuple(self.mixed(pattern, depth - 1) for _ in range(count)), BOOL)

    def conjunction(self, depth: int) -> Pattern:
        left = self.pattern(depth)
        right = Filter(left, (self.condition(left),)) if self.rng.random() < 0.6 else self.pattern(depth)
        return And((left, right))

    def all(self, depth: int) -> Pattern:
        return All((self.pattern(depth), self.pattern(depth)))

    def projected(self, depth: int) -> Pattern:
        pattern = self.pattern(depth)
        shown = sorted(defined(pattern))
        return Project(frozenset(self.rng.sample(shown, self.rng.randint(0, len(shown)))), pattern)

    def selected(self, depth: int) -> Pattern:
        return Select(self.rng.choice((Strategy.STRICT, Strategy.STRICT, Strategy.NXT, Strategy.LAST, Strategy.MAX)), self.closed(depth))

    def window(self, depth: int) -> Pattern:
        pattern = self.pattern(depth)
        return Within(pattern, self.interval()) if self.rng.random() < 0.5 else WithinEvents(pattern, self.rng.choice((1, 2, 3)))

    def unless(self, depth: int) -> Pattern:
        return Unless(self.pattern(depth), self.closed(1))

    def query(self, depth: int) -> QueryPlan:
        pattern = self.well_formed(depth)
        while self.rng.random() < 0.1:
            pattern = Absence(pattern, self.closed(1), self.rng.choice((0, 1, 2)))
            variables = sorted(defined(pattern))
            if self.rng.random() < 0.3 and variables:
                pattern = Filter(pattern, (self.local(self.rng.choice(variables)),))
            if self.rng.random() < 0.3:
                pattern = Within(pattern, self.interval())
        return QueryPlan(pattern, SCHEMA, tuple(sorted(defined(pattern))))

    def keyed_query(self, depth: int) -> QueryPlan:
        """A query whose FILTER compares the ids of some, often of all, variables."""
        pattern = Named(self.well_formed(depth), "z")
        variables = sorted(defined(pattern))
        self.rng.shuffle(variables)
        used = variables[: self.rng.choice((2, 3, len(variables)))]
        pairs = list(itertools.pairwise(used))
        conditions = [compare("=", field(left, "id"), field(right, "id")) for left, right in pairs]
        conditions += [self.local(self.rng.choice(variables))]
        keyed: Pattern = Filter(pattern, tuple(conditions))
        if self.rng.random() < 0.3:
            keyed = Within(keyed, self.interval())
        return QueryPlan(keyed, SCHEMA, tuple(sorted(defined(keyed))))

    def stream(self, length: int) -> list[reference.Event]:
        events, time = [], 0
        for _ in range(length):
            time += self.rng.choice((0, 1, 1, 2))
            attributes = {"v": self.rng.choice((1, 2, 3, None)), "id": self.rng.choice((1, 1, 2, None))}
            events.append(reference.Event(self.rng.choice(TYPES), time, attributes))
        return events


def meaning(plan: QueryPlan, events: list[reference.Event]) -> set[reference.Match]:
    """The matches, with positions in the whole stream; NULL in PARTITION BY is a key like any other."""
    found = set()
    for partition in reference.run(plan, events, null_keys="group").partitions:
        found |= {moved(match, list(partition.positions)) for match in partition.candidates}
    return found


def moved(match: reference.Match, places: list[int]) -> reference.Match:
    mapping = tuple((name, tuple(places[position] for position in positions)) for name, positions in match.mapping)
    return reference.Match(places[match.start], places[match.end], mapping)


def check(plan: QueryPlan, rewritten: QueryPlan, plans: RandomPlans) -> int:
    found = 0
    for _ in range(4):
        events = plans.stream(plans.rng.randint(1, 6))
        try:
            expected = meaning(plan, events)
        except LimitError:
            continue
        got = meaning(rewritten, events)
        found += len(expected)
        assert got == expected, f"{describe(plan.pattern)}\n{describe(rewritten.pattern)}\n{events}\n{plan!r}"
    return found


WRITTEN = {"partition": ((), (), ("v",)), "one_key": (("id",), ("id",), ("v",), ("v", "id"))}
"""What queries have in PARTITION BY where that matters to a rule."""


@pytest.mark.parametrize("name", [name for name, _ in RULES])
def test_a_rule_alone_keeps_the_matches(name: str, cases: int, seed: int) -> None:
    change = dict(RULES)[name]
    outer = name == "normal_form"
    plans = RandomPlans(random.Random(f"{name} {seed}"), reach=0.8 if outer else 0.3, local=outer)
    drawn = Enough(cases, found=3, changed=1)
    for _ in drawn:
        depth = plans.rng.choice((2, 3))
        plan = plans.keyed_query(depth) if name in {"partition", "one_key"} and plans.rng.random() < 0.7 else plans.query(depth)
        if name in {"partition", "one_key"}:
            plan = dataclasses.replace(plan, partition_by=plans.rng.choice(WRITTEN[name]))
        rewritten = change(plan)
        drawn.seen["changed"] += rewritten is not plan
        drawn.seen["found"] += check(plan, rewritten, plans)


def test_all_rules_keep_the_matches(cases: int, seed: int) -> None:
    plans = RandomPlans(random.Random(seed))
    for _ in range(cases):
        plan = plans.query(plans.rng.choice((2, 3)))
        if plans.rng.random() < 0.2:
            plan = dataclasses.replace(plan, partition_by=plans.rng.choice((("id",), ("v",))))
        rewritten = rewrite(plan)
        check(plan, rewritten, plans)
        check(plan, rewrite(rewritten), plans)


def test_local_conditions_end_on_their_events(cases: int, seed: int) -> None:
    plans = RandomPlans(random.Random(seed), reach=0.5, local=True)
    drawn = Enough(cases, checked=5)
    for _ in drawn:
        pattern = plans.query(3).pattern
        if any(isinstance(node, Select) and node.strategy is not Strategy.STRICT for node in walk(pattern)):
            continue
        rewritten = rewrite(QueryPlan(pattern, SCHEMA, ())).pattern
        assert is_normal(rewritten), describe(rewritten)
        drawn.seen["checked"] += 1


def test_safe_form_is_safe_and_keeps_the_matches(cases: int, seed: int) -> None:
    plans = RandomPlans(random.Random(seed), reach=0.05)
    drawn = Enough(cases, renamed=3)
    for _ in drawn:
        plan = plans.query(plans.rng.choice((2, 3)))
        pattern, renaming = safe_form(plan.pattern)
        drawn.seen["renamed"] += bool(renaming)
        form = dataclasses.replace(plan, pattern=pattern, variables=tuple(sorted(defined(pattern))))
        for _ in range(3):
            events = plans.stream(plans.rng.randint(1, 6))
            got = {unnamed(match, renaming) for match in meaning(form, events)}
            assert got == meaning(plan, events), f"{describe(plan.pattern)}\n{describe(pattern)}\n{events}"
        if not reaching_out(plan.pattern) and not any(isinstance(node, And) for node in walk(plan.pattern)):
            assert safe(pattern), describe(pattern)


def unnamed(match: reference.Match, renaming: dict[str, str]) -> reference.Match:
    positions: dict[str, set[int]] = {}
    for name, places in match.mapping:
        positions.setdefault(renaming.get(name, name), set()).update(places)
    return reference.Match(match.start, match.end, tuple((name, tuple(sorted(places))) for name, places in sorted(positions.items())))
