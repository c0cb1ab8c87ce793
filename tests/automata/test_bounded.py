"""Bounded expressions become automata with registers (register-match-automata, Theorem 9), and what other well-formed expressions need.

`by_valuations` is the paper's Definition 2. Random expressions have the same matches there, in the reference, and by their automata.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from enough import Enough
from pattern_cases import CASES, SEED

import cepheid
from cepheid.automata import Automaton, Transition, construct, hide
from cepheid.automata.alphabet import Alphabet, Guard
from cepheid.automata.comparisons import alternatives
from cepheid.automata.computing import operands
from cepheid.automata.correlation import Correlation
from cepheid.automata.predicates import of_type
from cepheid.automata.regions import Regions
from cepheid.automata.registers import Before, Compares, Gathered, Now, Register, Store, terms
from cepheid.automata.transform import project
from cepheid.automata.transition import order
from cepheid.logical import plan as logical
from cepheid.logical.rewrite import rewrite
from cepheid.logical.variables import bounded, defined, named_outside_iterations, safe, scoped_conditions, well_formed
from cepheid.testing import events as rows_of
from cepheid.testing import generators, reference, runs
from cepheid.testing.evaluate import holds
from cepheid.testing.harness import events_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cepheid.logical.plan import Pattern, QueryPlan
    from cepheid.testing.denotation import Match
    from cepheid.testing.evaluate import Event

SCHEMA = cepheid.query("SELECT * WHERE A").schema(generators.SCHEMA, type="type", time="ts")
V = logical.Field("", ("v",), pa.int64(), pa.int64())
MOST_VARIABLES = 4
"""Most variables of an expression: the valuations of Definition 2 are (events) ^ (variables)."""


# --------------------------------------------------------------------------------------------------------- random expressions


@dataclass(frozen=True)
class Drawn:
    """An expression as text, the AS variables that it binds, and how many of its parts count for its size."""

    text: str
    binds: tuple[str, ...]
    atoms: int = 1
    choices: int = 0
    iterations: int = 0

    def over(self, text: str, *, binds: tuple[str, ...] = (), choices: int = 0, iterations: int = 0) -> Drawn:
        return Drawn(text, binds, self.atoms, self.choices + choices, self.iterations + iterations)


def together(text: str, parts: list[Drawn], binds: tuple[str, ...], choices: int = 0) -> Drawn:
    sizes = (sum(getattr(part, name) for part in parts) for name in ("atoms", "choices", "iterations"))
    atoms, inner, iterations = sizes
    return Drawn(text, binds, atoms, inner + choices, iterations)


def atom(rng: random.Random, name: str) -> str:
    return f"{rng.choice('AABC')} AS {name}"


def drawn(rng: random.Random, depth: int, fresh: Iterator[str], outer: tuple[str, ...]) -> Drawn:
    """A core expression with AS variables that are all different, but those of two alternatives. outer: what conditions may speak of besides."""
    operator = rng.choice(["atom", "either", "alternatives", "sequence", "sequence", "iterate", "filter", "filter"]) if depth else "atom"
    match operator:
        case "atom":
            name = next(fresh)
            return Drawn(f"({atom(rng, name)})", (name,))
        case "either":
            names = (next(fresh), next(fresh))
            orders = (rng.sample(names, 2) for _ in range(2))
            text = " OR ".join("(" + " ; ".join(atom(rng, name) for name in order) + ")" for order in orders)
            return Drawn(f"({text})", names, atoms=4, choices=1)
        case "alternatives":
            parts = [drawn(rng, depth - 1, fresh, outer) for _ in range(2)]
            return together(f"({parts[0].text} OR {parts[1].text})", parts, (), choices=1)
        case "sequence":
            count = rng.choice((2, 2, 3))
            place = rng.randrange(count)
            anchor = drawn(rng, depth - 1, fresh, outer)
            seen = outer + anchor.binds if outer is not BOUNDED else outer
            parts = [anchor if number == place else drawn(rng, depth - 1, fresh, seen) for number in range(count)]
            return together(
                "(" + " ; ".join(part.text for part in parts) + ")", parts, tuple(name for part in parts for name in part.binds)
            )
        case "iterate":
            body = drawn(rng, depth - 1, fresh, outer)
            asked = f" FILTER {condition(rng, body.binds[:1], outer)}" if outer is not BOUNDED and outer else ""
            return body.over(f"({body.text}{asked})+", iterations=1)
    body = drawn(rng, depth - 1, fresh, outer)
    conditions = " AND ".join(condition(rng, body.binds, outer) for _ in range(rng.choice((1, 1, 2))))
    return body.over(f"({body.text} FILTER {conditions})", binds=body.binds)


BOUNDED = ("",)
"""For `outer`: conditions speak of what their own pattern binds alone."""


def condition(rng: random.Random, binds: tuple[str, ...], outer: tuple[str, ...]) -> str:
    names = [*binds, *(name for name in outer if name)]
    if not names:
        return "1 = 1"
    x, y, z = (rng.choice(names) for _ in range(3))
    operator = rng.choice(["=", "!=", "<", "<=", ">"])
    return rng.choice(
        [
            f"{x}.v {operator} {y}.v",
            f"{x}.v {operator} {y}.v",
            f"{x}.v {operator} {y}.k",
            f"{x}.v + {y}.v {operator} {z}.k",
            f"({x}.v {operator} {y}.v OR {z}.b)",
        ]
    )


def random_expression(rng: random.Random, outer: tuple[str, ...]) -> tuple[Drawn, QueryPlan]:
    while True:
        try:
            found = drawn(rng, 3, iter("xyzu"[:MOST_VARIABLES]), outer)
        except (StopIteration, RuntimeError):
            continue
        return found, plan_of(found.text)


def plan_of(where: str) -> QueryPlan:
    return cepheid.query(f"SELECT * WHERE {where}").bound(SCHEMA)


# -------------------------------------------------------------------------------------------------------------- Definition 2


def by_valuations(pattern: Pattern, events: list[Event]) -> set[tuple[int, ...]]:
    """The matches of a core expression by Definition 2: sets of positions that are a match under some valuation of its variables."""
    names = sorted(variables(pattern))
    memo: Memo = {}
    found: set[tuple[int, ...]] = set()
    for places in itertools.product(range(len(events)), repeat=len(names)):
        found |= under(pattern, events, dict(zip(names, places, strict=True)), memo)
    return found


Memo = dict[tuple[int, tuple[tuple[str, int], ...]], set[tuple[int, ...]]]
"""What an iteration has under the valuation of the variables that it does not choose itself."""


def variables(pattern: Pattern) -> frozenset[str]:
    own = frozenset({pattern.variable}) if isinstance(pattern, logical.Named) else frozenset()
    return own.union(*map(variables, pattern.children()))


def under(pattern: Pattern, events: list[Event], valuation: Mapping[str, int], memo: Memo) -> set[tuple[int, ...]]:
    match pattern:
        case logical.Named(pattern=logical.Event(type=kind), variable=name):
            return {(valuation[name],)} if events[valuation[name]].type == kind else set()
        case logical.Filter(pattern=inner, conditions=conditions):
            choice = {(name, False): place for name, place in valuation.items()}
            return under(inner, events, valuation, memo) if all(holds(each, events, choice) for each in conditions) else set()
        case logical.Or(operands=operands):
            return set().union(*(under(operand, events, valuation, memo) for operand in operands))
        case logical.Sequence(items=items):
            found = under(items[0], events, valuation, memo)
            for item in items[1:]:
                found = linked(found, under(item, events, valuation, memo))
            return found
        case logical.Iterate(pattern=body):
            free = sorted(named_outside_iterations(body))
            fixed = tuple(sorted((name, place) for name, place in valuation.items() if name not in free))
            if (id(pattern), fixed) not in memo:
                once: set[tuple[int, ...]] = set()
                for places in itertools.product(range(len(events)), repeat=len(free)):
                    once |= under(body, events, {**valuation, **dict(zip(free, places, strict=True))}, memo)
                memo[id(pattern), fixed] = closed(once)
            return memo[id(pattern), fixed]
    raise TypeError(pattern)


def closed(once: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    found, longer = set(once), set(once)
    while longer:
        longer = linked(longer, once) - found
        found |= longer
    return found


def linked(left: set[tuple[int, ...]], right: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {one + other for one in left for other in right if one[-1] < other[0]}


# ------------------------------------------------------------------------------------------------------------------ Theorem 9


def stored(automaton: Automaton) -> list[object]:
    return [term for move in automaton.transitions for each in move.writes for term in terms(each.term)]


def most_registers(pattern: Pattern) -> int:
    """Two for each comparison of a condition, one for each operand of what it computes, one for another condition over several variables."""
    found = 0
    for scoped in scoped_conditions(pattern):
        names = logical.variables_of(scoped.condition)
        whole = Correlation(scoped.condition, (tuple(sorted((name, False) for name in names)),))
        compared = {each for option in alternatives(whole) or () for each in option}
        kept = sum(len(operands(each)) if isinstance(each, logical.Apply) else 2 for each in compared)
        found += 0 if len(names) < 2 else kept or 1
    return found


def by_runs(automaton: Automaton, plan: QueryPlan, events: list[Event]) -> set[Match]:
    return runs.matches(hide(project(automaton, plan.variables)), events)


def assert_same_matches(plan: QueryPlan, automaton: Automaton, events: list[Event]) -> bool:
    found = set(reference.matches(plan, events))
    assert {match.support for match in found} == by_valuations(plan.pattern, events), (plan.text, events)
    assert by_runs(automaton, plan, events) == found, (plan.text, events)
    return bool(found)


def random_events(rng: random.Random) -> list[Event]:
    rows = generators.random_stream(rng, most=5)
    return events_of([{**row, "type": rng.choice("AABC")} for row in rows], SCHEMA)


def test_bounded_expressions_become_automata_of_the_size_that_the_paper_bounds() -> None:
    """States: two for each event and two for each OR in the paper, with empty moves; ours has one for an OR, one for an iteration, and no empty moves.

    Registers: each holds values of ONE event, as in the paper. There is at most one for each side of each comparison, and for each operand of what is
    computed; the paper has one for each variable of a condition over several.
    """
    rng = random.Random(f"{SEED} bounded")
    drawn = Enough(CASES, asked=5, matched=3, fewer=5)
    for _ in drawn:
        expression, plan = random_expression(rng, BOUNDED)
        assert bounded(plan.pattern), expression.text
        automaton = construct(plan.pattern, SCHEMA)
        in_the_paper = 2 * expression.atoms + 2 * expression.choices
        assert automaton.states <= 2 * expression.atoms + expression.choices + expression.iterations <= in_the_paper + expression.iterations
        drawn.seen["fewer"] += automaton.states < in_the_paper
        registers = len(automaton.alphabet.registers)
        assert registers <= most_registers(plan.pattern), expression.text
        assert all(isinstance(term, Now | Before) for term in stored(automaton)), expression.text
        found = assert_same_matches(plan, automaton, random_events(rng))
        drawn.seen["asked"] += bool(registers)
        drawn.seen["matched"] += found and bool(registers)


def test_well_formed_expressions_have_the_matches_of_the_paper() -> None:
    """Also where a condition speaks of variables around it, before or after: Definition 2 and ours are one."""
    rng = random.Random(f"{SEED} well-formed")
    drawn = Enough(CASES, unbounded=3, matched=3)
    for _ in drawn:
        expression, plan = random_expression(rng, ())
        assert well_formed(plan.pattern), expression.text
        assert safe(plan.pattern)
        found = assert_same_matches(plan, construct(plan.pattern, SCHEMA), random_events(rng))
        drawn.seen["unbounded"] += not bounded(plan.pattern)
        drawn.seen["matched"] += found and not bounded(plan.pattern)


def test_the_definition_of_bounded_is_that_of_the_paper() -> None:
    """Definition 3 on its own examples: (1) and (5) are bounded; (3) is well-formed alone; (2) is not well-formed, and here it means (3)."""
    one = plan_of("(A AS x ; B AS y) FILTER x.v = y.v").pattern
    five = plan_of("(((A AS x FILTER x.w < 1) OR (A AS x FILTER x.w > 2)) ; A AS y) FILTER y.v = x.v").pattern
    three = plan_of(THREE).pattern
    assert (bounded(one), bounded(five), bounded(three), well_formed(three)) == (True, True, False, True)
    assert defined(five) >= {"x", "y"}


TWO, THREE = "((A AS x)+ ; B AS y) FILTER x.v = y.v", "(A AS x FILTER x.v = y.v)+ ; B AS y"


def test_expression_2_of_the_paper_is_not_expression_3_by_its_definition() -> None:
    """No valuation of the outer x is bound by the iteration: any event of the stream does. In our semantics x has all events, so (2) is (3)."""
    events = events_of([dict.fromkeys(generators.SCHEMA.names) | row for row in rows_of("A1(v=2) B2(v=1) A3(v=1)")], SCHEMA)
    two, three = plan_of(TWO), plan_of(THREE)
    assert by_valuations(two.pattern, events) == {(0, 1)}
    assert by_valuations(three.pattern, events) == set()
    assert reference.matches(two, events) == reference.matches(three, events) == []
    rng, matched = random.Random(f"{SEED} two"), 0
    while matched < 10:
        events = random_events(rng)
        assert reference.matches(two, events) == reference.matches(three, events)
        assert by_runs(construct(two.pattern, SCHEMA), two, events) == set(reference.matches(two, events))
        matched += bool(reference.matches(two, events))


def test_algorithm_3_by_the_letter_never_adds_the_condition() -> None:
    """Line 5 asks that ALL variables of the condition appear before the transition, its own too. Algorithm 1 says: all others."""
    automaton = construct(plan_of("A AS x ; B AS y").pattern, SCHEMA)
    before: dict[int, list[frozenset[str]]] = {automaton.initial: [frozenset()]}

    def walk(state: int, seen: frozenset[int], names: frozenset[str]) -> None:
        for move in automaton.outgoing[state]:
            if move.target not in seen:
                before.setdefault(move.target, []).append(names | (move.mark or frozenset()))
                walk(move.target, seen | {move.target}, before[move.target][-1])

    walk(automaton.initial, frozenset({automaton.initial}), frozenset())
    asked = frozenset("xy")
    marking = [(move, asked & move.mark, frozenset.intersection(*before[move.source])) for move in automaton.transitions if move.mark]
    assert [move.target for move, own, names in marking if asked <= names] == []
    assert [move.target in automaton.finals for move, own, names in marking if asked - own <= names] == [True]


def test_a_register_of_ours_belongs_to_a_condition_and_slots_are_shared() -> None:
    """The paper stores the event of x once. We store its value for each condition; the macro states find that it is one value."""
    plan = plan_of("(A AS x ; B AS y ; C AS z) FILTER x.v < y.v AND x.v < z.v")
    automaton = construct(plan.pattern, SCHEMA)
    assert automaton.alphabet.names == ("v of x, 1", "v of x, 2")
    regions = Regions(automaton)
    regions.step(regions.initial, 1)
    assert max(macro.slots for macro in regions.macros.values()) == 1


# ------------------------------------------------------------------------------------- well-formed, and not bounded

UNEQUAL = "(A AS x FILTER x.v != y.v)+ ; B AS y"
VALUES, SETS = "some values", "all values of a set"


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        (THREE, VALUES),
        ("(A AS x FILTER x.v < y.v)+ ; B AS y", VALUES),
        ("(A AS x FILTER x.v >= y.v)+ ; B AS y", VALUES),
        (UNEQUAL, SETS),
        ("(A AS x FILTER x.v + y.v > 2)+ ; B AS y", SETS),
        ("(A AS x FILTER x.v > y.v OR y.b)+ ; B AS y", SETS),
        ("B AS y ; (A AS x FILTER x.v != y.v)+", VALUES),
        ("B AS y ; (A AS x FILTER x.v + y.v > 2)+", VALUES),
        ("(A AS x FILTER x.v > prev(x).v)+", VALUES),
        ("(A AS x)+ ; (B AS y)+ FILTER x.v < y.v", VALUES),
        ("((A AS x ; (C AS z FILTER z.v != x.v)+ ; B AS y) FILTER x.v < y.v)+", VALUES),
    ],
)
def test_what_is_kept_where_an_expression_is_not_bounded(where: str, keeps: str) -> None:
    """For comparisons but `!=` one value for each side is enough, whatever the order: registers serve more than bounded expressions."""
    plan = plan_of(where)
    assert not bounded(plan.pattern)
    rng, matched = random.Random(f"{SEED} {where}"), 0
    automaton = construct(plan.pattern, SCHEMA)
    assert (SETS if any(grows(automaton)) else VALUES) == keeps
    rewritten = construct(rewrite(plan).pattern, SCHEMA) if not rewrite(plan).derived_keys else automaton
    for case in itertools.count():
        if case >= CASES // 10 and matched >= 3:
            break
        events = random_events(rng)
        expected = set(reference.matches(plan, events))
        assert by_runs(automaton, plan, events) == expected == by_runs(rewritten, plan, events)
        matched += bool(expected)


def grows(automaton: Automaton) -> Iterator[bool]:
    """Whether a register may get larger from event to event: it adds a value to a set."""
    for move in automaton.transitions:
        for each in move.writes:
            match each.term:
                case Gathered(how="set", before=before):
                    yield before is not None


GUESSING = (
    Transition(0, 1, 1, frozenset("x"), writes=frozenset({Store(0, Now(V))})),
    Transition(0, 1, 1, frozenset("x"), writes=frozenset({Store(1, Now(V))})),
    Transition(1, 1),
    Transition(1, 1, 1, frozenset("x"), writes=frozenset({Store(0, Gathered("max", Before(0), V))})),
    Transition(1, 1, 1, frozenset("x"), writes=frozenset({Store(1, Gathered("min", Before(1), V))})),
    Transition(1, 2, 2 | 4 | 8, frozenset("y")),
)
"""`(A AS x FILTER x.v != y.v)+ ; B AS y`: each run guesses of each value whether it is less than that of y or greater."""


def test_unequal_needs_two_values_where_runs_may_guess() -> None:
    """So sets are our choice, and no need: an output then has one run for each place between the values."""
    guards = tuple(Guard(2 + place, Compares(Before(place), operator, V)) for place, operator in enumerate("<>"))
    alphabet = Alphabet(tuple(of_type(kind, SCHEMA) for kind in "AB"), guards=guards, registers=(Register("less"), Register("greater")))
    guessing = Automaton(3, 0, frozenset({2}), order(GUESSING), alphabet)
    rng, plan, matched = random.Random(f"{SEED} guessing"), plan_of(UNEQUAL), 0
    for case in itertools.count():
        if case >= CASES and matched >= 10:
            break
        events = random_events(rng)
        expected = set(reference.matches(plan, events))
        assert runs.matches(guessing, events) == expected
        matched += bool(expected)


def test_one_run_for_each_output_must_keep_a_set_for_unequal() -> None:
    """After events A with different values exactly the other values may follow: each set of values has other futures."""
    plan = plan_of(UNEQUAL)
    automaton, ids = construct(plan.pattern, SCHEMA), range(4)
    for size in range(1, len(ids) + 1):
        for some in itertools.combinations(ids, size):
            whole = tuple(range(size + 1))
            following = set()
            for number in ids:
                word = [*(f"A{place}(v={value})" for place, value in enumerate(some)), f"B{size}(v={number})"]
                rows = [dict.fromkeys(generators.SCHEMA.names) | row for row in rows_of(" ".join(word), time="ts")]
                if whole in {match.support for match in runs.matches(automaton, events_of(rows, SCHEMA))}:
                    following.add(number)
            assert following == set(ids) - set(some)
