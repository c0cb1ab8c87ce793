"""Gaps, windows inside patterns and conditions between events as automata with registers and guards, against the definition."""

from __future__ import annotations

import dataclasses
import os
import random
from typing import TYPE_CHECKING

import pytest
from enough import Enough

import cepheid
from cepheid.automata import Automaton, construct, determinize, hide, trim
from cepheid.automata.liveness import GuardedMove
from cepheid.automata.registers import Elapsed, reads
from cepheid.automata.transform import project
from cepheid.engine.plan.explain import automaton_text
from cepheid.errors import BindError, LimitError, NotSupportedError
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import Select
from cepheid.logical.rewrite import rewrite
from cepheid.testing import events as rows_of
from cepheid.testing import generators, reference, runs
from cepheid.testing.harness import events_of
from cepheid.theory import classify, unroll
from cepheid.viz import FORMATS, draw

if TYPE_CHECKING:
    from cepheid.logical.plan import QueryPlan
    from cepheid.testing.denotation import Match
    from cepheid.testing.evaluate import Event

CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", "7"))
MAX_MATCHES = 2_000
"""Most matches of a case's sub-patterns; one that has more is passed over, for the runs of an automaton are many more."""


def shown(matches: set[Match], variables: tuple[str, ...]) -> set[Match]:
    return {type(match)(match.start, match.end, tuple(each for each in match.mapping if each[0] in variables)) for match in matches}


def by_runs(automaton: Automaton, plan: QueryPlan, events: list[Event]) -> set[Match]:
    return runs.matches(hide(project(automaton, plan.variables)), events)


FRAGMENTS = {
    "timed": generators.TIMED,
    "correlated": generators.CORRELATED,
    "mixed": generators.GUARDED,
    "nested": dataclasses.replace(generators.GUARDED, operators=(*generators.GUARDED.operators, ("select", 4))),
    "negated": dataclasses.replace(
        generators.GUARDED, operators=(*generators.GUARDED.operators, ("conjunction", 3), ("unless", 4), ("without", 5))
    ),
}


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_random_patterns(fragment: str) -> None:
    rng = random.Random(f"{SEED} {fragment}")
    drawn = Enough(CASES // 2, asked=5, found=3, parts=fragment == "nested")
    for _ in drawn:
        text = generators.random_query(rng, fragment=FRAGMENTS[fragment])
        rows = generators.random_stream(rng, most=7)
        query = cepheid.query(text)
        schema = query.schema(generators.SCHEMA, type="type", time="ts")
        plan, events = query.bound(schema), events_of(rows, schema)
        try:
            expected = set(reference.matches(plan, events, max_matches=MAX_MATCHES))
            automaton = construct(plan.pattern, schema)
        except LimitError:
            continue
        assert by_runs(automaton, plan, events) == expected, (text, rows)
        rewritten = rewrite(plan)
        if not rewritten.derived_keys:
            assert by_runs(construct(rewritten.pattern, schema), plan, events) == expected, ("rewritten", text, rows)
        whole = runs.matches(hide(automaton), events)
        assert shown(whole, plan.variables) == expected, ("without SELECT's projection", text, rows)
        assert runs.matches(trim(automaton), events) == runs.matches(automaton, events), ("trimmed", text, rows)
        assert_nothing_unread(automaton, text)
        for part in automaton.parts:
            assert_nothing_unread(part.automaton, text)
        drawn.seen["parts"] += bool(automaton.parts)
        drawn.seen["asked"] += bool(automaton.alphabet.guards)
        drawn.seen["found"] += bool(expected) and bool(automaton.alphabet.guards)
    assert bool(drawn.seen["parts"]) == (fragment == "nested")


def assert_nothing_unread(automaton: Automaton, text: str) -> None:
    """Every guard is asked, every register is read and written; guards come behind all other bits."""
    alphabet, asked, read, written = automaton.alphabet, set(), set(), set()
    for move in automaton.transitions:
        tests = GuardedMove.of(move, alphabet).tests
        asked |= tests
        read |= set().union(*map(reads, tests), *(reads(store.term) for store in move.writes))
        written |= {store.register for store in move.writes}
    assert asked == {guard.test for guard in alphabet.guards}, text
    assert len(asked) == len(alphabet.guards), text
    assert read == written == set(range(len(alphabet.registers))), text
    assert [guard.bit for guard in alphabet.guards] == list(range(alphabet.width - len(alphabet.guards), alphabet.width)), text


# ------------------------------------------------------------------------------------------------------------------ one by one


def built(where: str) -> Automaton:
    query = cepheid.query(f"SELECT * WHERE {where}")
    schema = query.schema(generators.SCHEMA, type="type", time="ts")
    return construct(query.bound(schema).pattern, schema)


def ends(where: str, stream: str) -> set[tuple[int, ...]]:
    """The supports of the matches in a stream of events with `v`, by runs; the reference must have the same."""
    query = cepheid.query(f"SELECT * WHERE {where}")
    schema = query.schema(generators.SCHEMA, type="type", time="ts")
    plan = query.bound(schema)
    names = [name for name in generators.SCHEMA.names if name not in {"type", "ts"}]
    events = events_of([dict.fromkeys(names) | row for row in rows_of(stream, time="ts")], schema)
    found = by_runs(construct(plan.pattern, schema), plan, events)
    assert found == set(reference.matches(plan, events))
    return {match.support for match in found}


@pytest.mark.parametrize(
    ("where", "predicates", "transitions"),
    [
        ("(A AS x ; B) FILTER x.v <= A.w", 3, 3),  # a condition of the event alone
        ("(A AS x ; B) FILTER x.v < A.v", 2, 0),  # never
        ("(A AS x ; B) FILTER x.$time = A.$time", 2, 3),  # always
        ("(A WITHIN 5) ; B", 2, 3),  # age 0
        ("(A WITHIN [1, 5]) ; B", 2, 0),
        ("A ;[>= 0] B", 2, 3),
        ("(A AS x OR B AS y) FILTER x.v < y.v", 2, 2),  # never both
        ("(A AS x FILTER x.v < prev(x).v){1}", 1, 1),  # no iteration before
    ],
)
def test_what_needs_no_register_has_none(where: str, predicates: int, transitions: int) -> None:
    automaton = built(where)
    assert (automaton.alphabet.guards, automaton.alphabet.registers) == ((), ())
    assert (len(automaton.predicates), len(automaton.transitions)) == (predicates, transitions)


@pytest.mark.parametrize(
    ("where", "registers"),
    [
        ("(A AS x ; B AS y ; C) FILTER x.v < y.v", ["v of x"]),
        ("(A AS x ; B AS y ; C AS z) FILTER x.v < y.v AND y.v < z.v", ["v of x", "v of y"]),
        ("A ;[<= 2] B ;[<= 2] C", ["end of A", "end of B"]),
        ("A+[<= 2] ; B", ["end of the A before"]),
        ("(A AS x FILTER x.v > prev(x).v)+", ["v of x"]),
        ("(A ; B ; C) WITHIN 3 EVENTS", ["position of A ; B ; C"]),
        ("(A AS x ; B AS y) FILTER x.v * 2 + 1 <= y.k - 3", ["(v * 2) + 1 of x"]),
        ("(A AS x ; B AS y ; C AS z) FILTER x.v + y.v = z.v", ["v of x", "v of y"]),
        ("(A AS x ; B AS y ; C AS z) FILTER x.s LIKE 'a%' OR y.s = z.s", ["s LIKE 'a%' of x", "s of y"]),
        ("(A AS x ; B AS y ; C AS z) FILTER concat(x.s, y.s) = z.s", ["s of x", "s of y"]),
    ],
)
def test_a_register_belongs_to_what_reads_it(where: str, registers: list[str]) -> None:
    assert list(built(where).alphabet.names) == registers


@pytest.mark.parametrize(
    ("where", "asking"),
    [
        ("(A{3,} AS f WITHIN 5) ; B", 2 * 3 - 1),  # each A but the first one, also where it stays
        ("(A AS x ; B ; C AS z) FILTER z.$time - x.$time <= 5", 2),
        ("(A AS x ; B ; C AS z) FILTER z.$time - x.$time <= 5 OR z.v > x.v", 1),  # not on all ways
        ("(A AS x ; B ; C AS z) FILTER z.$time - x.$time >= 5", 1),
        ("(A : B : C) WITHIN 5", 1),  # nothing waits
        ("((A ; B+ ; C) WITHIN 9 EVENTS) ; D", 5),
    ],
)
def test_what_will_be_too_late_is_asked_where_partial_matches_wait(where: str, asking: int) -> None:
    automaton = built(where)
    aged = [guard.mask for guard in automaton.alphabet.guards if isinstance(guard.test, Elapsed)]
    assert sum(any(move.requires & mask for mask in aged) for move in automaton.transitions) == asking, automaton_text(automaton)


def test_the_first_iteration_has_nothing_before_it_so_its_values_may_differ() -> None:
    """Only where the other side comes for certain all values of a set must be equal at once."""
    stream = "A1(v=1) A2(v=2) A3(v=2)"
    assert ends("(A+ AS y FILTER prev(y).v = A.v):+", stream) == {(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)}
    assert ends("(A+ AS y : B FILTER y.v = B.v)+", "A1(v=1) A2(v=2) A3(v=2) B4(v=2)") == {(1, 3), (2, 3), (1, 2, 3)} - {(1, 3)}


def test_nothing_is_kept_for_choices_that_nothing_completes() -> None:
    names = built("(A AS x ; B AS y ; C+ AS z) FILTER concat(x.s, y.s) = 'ab' OR y.v = z.v").alphabet.names
    assert names == ("s of x", "s of y", "v of y"), "after y only z comes, which is asked and not kept"


@pytest.mark.parametrize("strategy", [Strategy.NXT, Strategy.LAST, Strategy.MAX])
def test_a_nested_strategy_around_guards_is_a_part(strategy: Strategy) -> None:
    automaton = built(f"{strategy.value}(A ;[<= 2] B) ; C")
    (part,) = automaton.parts
    assert (part.rule, part.window, part.count, part.text) == (strategy, 2, None, f"{strategy.value}(A ;[<= 2] B)")
    assert not automaton.trackers
    places = {tuple(sorted(mark)): sorted(name for _, name in parts) for mark, parts in automaton.labels}
    assert places == {("A",): ["begins", "shown"], ("B",): ["ends", "shown"], ("C",): []}
    for reader in (determinize, classify, lambda each: unroll(each, 3)):
        with pytest.raises(NotSupportedError, match=rf"cannot choose inside the pattern: {strategy.value}\(A") as error:
            reader(automaton)
        assert 'engine="reference"' in error.value.help[0]


def test_a_part_that_cannot_be_reached_is_none() -> None:
    assert not built("C ; (NXT(A ;[<= 2] B) AND C)").parts


@pytest.mark.parametrize("strategy", [Strategy.NXT, Strategy.LAST, Strategy.MAX])
def test_a_nested_strategy_beside_guards_is_in_the_automaton(strategy: Strategy) -> None:
    around = built(f"{strategy.value}(A ; B) ;[<= 2] C")
    assert around.alphabet.names == (f"end of {strategy.value}(A ; B)",)
    assert not around.parts
    assert_nothing_unread(around, "behind its tracker, where it needs one")


def test_strict_keeps_guards() -> None:
    assert ends("STRICT(A ;[<= 2] B) ; C", "A1 B2 C3 A4 C5 B6 C7") == {(0, 1, 2), (0, 1, 4), (0, 1, 6)}
    query = cepheid.query("SELECT * WHERE A ;[<= 2] B")
    schema = query.schema(generators.SCHEMA, type="type", time="ts")
    strict = construct(Select(Strategy.STRICT, query.bound(schema).pattern), schema)
    assert [guard.reads for guard in strict.alphabet.guards] == [frozenset({0})]


def test_a_condition_that_nothing_supplies_is_refused() -> None:
    query = cepheid.query("SELECT * WHERE (A FILTER x.v > A.v) ; B AS x")
    schema = query.schema(generators.SCHEMA, type="type", time="ts")
    pattern = query.bound(schema).pattern
    with pytest.raises(BindError, match="no enclosing pattern binds `x`"):
        construct(pattern.items[0], schema)  # type: ignore[attr-defined]  # a sequence


@pytest.mark.parametrize("name", FORMATS)
def test_guards_are_drawn(name: str) -> None:
    text = str(draw(built("(A AS x ;[<= 2] B AS y) FILTER x.v < y.v"), format=name))
    for sign, codes in ((">", ("&gt;", "#62;")), ("<", ("&lt;", "#60;"))):
        for code in codes:
            text = text.replace(code, sign)
    assert "v > x.v AND $time - (end of A AS x) <=" in text
    # What registers store is no part of the picture; where a picture has texts to hover over, it stands there.
    assert ("stores end of A AS x := $time, v of x := v" in text) == (name == "svg")
