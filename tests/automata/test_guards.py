"""Run bits of the alphabet: whatever reads transitions respects what a guard asks and what a transition writes, or refuses them by name.

Here they are put where the automaton of a pattern reads a condition or marks an event. What patterns make of time and of conditions between events
is in `test_guarded_patterns`.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import itertools
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough
from pattern_cases import CASES, CHOOSING, SEED, random_pattern

import cepheid
from cepheid.automata import (
    Automaton,
    Program,
    Transition,
    construct,
    determinize,
    end_program,
    hide,
    registers,
    trim,
)
from cepheid.automata.alphabet import Alphabet, Guard, Predicate, Scope
from cepheid.automata.negation import complement
from cepheid.automata.regions import Regions
from cepheid.automata.registers import Before, Compares, Elapsed, Now, Register, Store, Test
from cepheid.automata.strategies import select, unites
from cepheid.automata.supports import labelling
from cepheid.automata.transform import cubes, project, shows_labels, successors
from cepheid.automata.transition import BEGINS, ENDS, HIDDEN, SHOWN, order
from cepheid.automata.waiting import WaitingAutomaton, obstacle
from cepheid.engine.evaluations.choosing.consuming import beginning
from cepheid.engine.evaluations.choosing.labelling import Labelling
from cepheid.engine.letters.codes import having
from cepheid.engine.plan.explain import automaton_text, predicate_text
from cepheid.errors import NotSupportedError
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import (
    And,
    Begin,
    Derived,
    Event,
    Field,
    Filter,
    Interval,
    Iterate,
    Link,
    Literal,
    Named,
    Optional,
    Or,
    Pattern,
    Project,
    Select,
    Sequence,
)
from cepheid.play import steps
from cepheid.play.steps import steps_of
from cepheid.schema import EventSchema
from cepheid.testing import events, reference, runs
from cepheid.testing.harness import events_of
from cepheid.theory import (
    classify,
    concatenation,
    determinize_timed,
    determinize_windowed,
    formula,
    trim_timed,
    two_clocks,
    union,
    unroll,
)
from cepheid.theory.zones import clock_moves
from cepheid.viz import FORMATS, draw

construction = importlib.import_module("cepheid.automata.construct")
"""The module; the package has a function of that name."""

SCHEMA = EventSchema({"type": pa.string(), "v": pa.int64()}, type_column="type")
V = Field("", ("v",), pa.int64(), pa.int64())
SAME = Compares(Before(0), "=", V)
SAYS = "v = (v of x)"
WRITES = frozenset({Store(0, Now(V))})


def test_sums_that_decide_early_refuse_guards() -> None:
    """The letter of an event does not say whether it may be in a variable where a guard is asked, too."""
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("q", pa.int64())])
    for condition, count in (("", 1), ("FILTER b.q > a.q", 0)):
        query = cepheid.query(f"SELECT ANY sum(a.q) AS d WHERE A+ AS a ; B AS b {condition} WITHIN 20 HAVING d > 5 CONSUME BY PARTITION")
        compiled = query.compiled(query.schema(schema))
        assert bool(compiled.program.automaton.compares) is not bool(count)
        assert len(compiled.sums) == count
        assert (compiled.need is not None) is bool(count)


CONSUMERS = {
    "automata/alphabet.py Alphabet": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
    "automata/alphabet.py Tracker": "test_strategies_refuse_guards",
    "automata/automaton.py Automaton": "test_a_move_that_writes_is_no_waiting",
    "automata/construct.py chain": "test_constructions_carry_guards",
    "automata/construct.py _event": "test_constructions_carry_guards",
    "automata/construct.py _filter": "test_constructions_carry_guards",
    "automata/construct.py _marked": "test_constructions_carry_writes",
    "automata/construct.py plus": "test_constructions_carry_writes",
    "automata/construct.py _looped": "test_what_any_event_may_begin_is_asked",
    "automata/beginnings.py _telling_one": "test_what_any_event_may_begin_is_asked",
    "automata/beginnings.py _saying": "test_sides_of_a_conjunction_are_asked_where_they_begin",
    "automata/beginnings.py alike": "test_sides_of_a_conjunction_are_asked_where_they_begin",
    "automata/products.py staying": "test_sides_of_a_conjunction_are_asked_where_they_begin",
    "automata/transform.py spans": "test_a_negated_pattern_says_where_any_event_begins",
    "automata/products.py product": "test_both_sides_of_a_conjunction_write",
    "automata/construct.py _select": "test_strategies_refuse_guards",
    "automata/products.py hide_fragment": "test_hidden_events_are_written",
    "automata/construct.py strict": "test_constructions_carry_guards",
    "automata/construct.py Constructor": "test_parts_that_strategies_choose_carry_guards",
    "automata/construct.py _placed": "test_parts_that_strategies_choose_carry_guards",
    "automata/construct.py _refusing": "test_conjunction_and_negation_carry_guards",
    "automata/construct.py _unless": "test_conjunction_and_negation_carry_guards",
    "automata/construct.py _next": "test_conjunction_and_negation_carry_guards",
    "automata/succession.py apart": "test_conjunction_and_negation_carry_guards",
    "automata/succession.py following": "test_conjunction_and_negation_carry_guards",
    "automata/negation.py complement": "test_conjunction_and_negation_carry_guards",
    "automata/negation.py subsets": "test_conjunction_and_negation_carry_guards",
    "automata/construct.py _pointed": "test_then_under_point_keeps_guards",
    "automata/succession.py remaining": "test_beside_guards_an_evaluation_chooses_what_is_next",
    "automata/succession.py _First": "test_beside_guards_an_evaluation_chooses_what_is_next",
    "automata/succession.py first": "test_beside_guards_an_evaluation_chooses_what_is_next",
    "automata/construct.py _several": "test_beside_guards_an_evaluation_chooses_what_is_next",
    "automata/succession.py completing": "test_beside_guards_an_evaluation_chooses_what_is_next",
    "automata/succession.py pointed": "test_beside_guards_an_evaluation_chooses_what_is_next",
    "automata/products.py idle": "test_conjunction_and_negation_carry_guards",
    "automata/products.py shuffle": "test_conjunction_and_negation_carry_guards",
    "automata/regions.py _is_place": "test_conjunction_and_negation_carry_guards",
    "theory/closures.py _moves": "test_closures_carry_guards",
    "theory/closures.py _together": "test_closures_carry_guards",
    "theory/closures.py check_invariants": "test_closures_carry_guards",
    "automata/conditions.py _acting": "test_patterns_make_guards",
    "automata/conditions.py _actions": "test_patterns_make_guards",
    "automata/conditions.py _marking": "test_patterns_make_guards",
    "automata/conditions.py completed": "test_patterns_make_guards",
    "automata/construct.py _windowed": "test_patterns_make_guards",
    "automata/beginnings.py asking": "test_events_that_matches_make_have_guards",
    "automata/beginnings.py asking_last": "test_events_that_matches_make_have_guards",
    "automata/fragment.py Fragment": "test_patterns_make_guards",
    "automata/guards.py GuardBits": "test_closures_carry_guards",
    "automata/guards.py Guards": "test_patterns_make_guards",
    "automata/guards.py _parts": "test_patterns_make_guards",
    "automata/liveness.py _filled": "test_patterns_make_guards",
    "automata/liveness.py without_empty": "test_patterns_make_guards",
    "automata/liveness.py without_constants": "test_patterns_make_guards",
    "automata/liveness.py _certain": "test_patterns_make_guards",
    "automata/liveness.py without_sets_of_one": "test_patterns_make_guards",
    "automata/liveness.py GuardedMove": "test_patterns_make_guards",
    "automata/liveness.py live_registers": "test_patterns_make_guards",
    "automata/liveness.py without_unread": "test_patterns_make_guards",
    "automata/liveness.py asking_early": "test_patterns_make_guards",
    "automata/liveness.py _latest": "test_patterns_make_guards",
    "testing/runs.py _Step": "test_patterns_make_guards",
    "testing/runs.py only_run": "test_windows_carry_guards",
    "testing/runs.py _accepted": "test_parts_that_strategies_choose_carry_guards",
    "automata/program.py _written": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
    "automata/program.py Program": "test_programs_know_what_guards_may_change",
    "automata/program.py _values": "test_parts_that_strategies_choose_carry_guards",
    "automata/regions.py Regions": "test_macro_states_ask_guards",
    "automata/regions.py asked": "test_macro_states_ask_guards",
    "automata/regions.py _direct_tests": "test_macro_states_ask_guards",
    "automata/regions.py _is_clock": "test_macro_states_ask_guards",
    "automata/regions.py _is_nested": "test_macro_states_ask_guards",
    "engine/evaluations/guards/guarded_tables.py _steps": "test_methods_for_guards_take_what_asks_them",
    "engine/evaluations/guards/guarded_parts_run.py part_program": "test_methods_for_guards_take_what_asks_them",
    "engine/evaluations/guards/guarded_tables.py _has_others_between": "test_methods_for_guards_take_what_asks_them",
    "automata/strategies.py is_last": "test_methods_for_guards_take_what_asks_them",
    "automata/strategies.py unites": "test_chains_unite_whose_guard_is_a_longest_gap",
    "automata/strategies.py _Construction": "test_strategies_refuse_guards",
    "automata/strategies.py _Rivals": "test_strategies_refuse_guards",
    "automata/strategies.py _answers": "test_strategies_refuse_guards",
    "automata/strategies.py simulation": "test_strategies_refuse_guards",
    "automata/supports.py labelling": "test_labellings_refuse_guards",
    "automata/transform.py _cubes_by_effect": "test_strategies_refuse_guards",
    "automata/transform.py shows_labels": "test_labels_that_only_a_guard_tells_apart_are_not_shown",
    "automata/transform.py without_twins": "test_strategies_refuse_guards",
    "automata/transform.py _cubes": "test_eager_determinization_carries_guards",
    "automata/transform.py _joined": "test_eager_determinization_carries_writes_where_they_agree",
    "automata/transform.py coverage": "test_programs_know_what_guards_may_change",
    "automata/transform.py cubes": "test_cubes_decide_guards",
    "automata/transform.py determinize": "test_eager_determinization_carries_writes_where_they_agree",
    "automata/transform.py hide": "test_hidden_events_are_written",
    "automata/transform.py project": "test_constructions_carry_guards",
    "automata/transform.py successors": "test_determinization_refuses_guards",
    "automata/transform.py trim": "test_constructions_carry_guards",
    "theory/clocks.py _united": "test_clocks_refuse_other_guards",
    "theory/clocks.py determinize_timed": "test_clocks_refuse_other_guards",
    "theory/clocks.py trim_timed": "test_clocks_refuse_other_guards",
    "theory/zones.py ClockMove": "test_clocks_refuse_other_guards",
    "theory/zones.py assembled": "test_clocks_refuse_other_guards",
    "theory/zones.py clock_moves": "test_clocks_refuse_other_guards",
    "automata/transition.py Transition": "test_a_move_that_writes_is_no_waiting",
    "automata/transition.py _key": "test_constructions_carry_writes",
    "theory/unroll.py _Determinization": "test_windows_carry_guards",
    "theory/unroll.py _Windowed": "test_windows_carry_guards",
    "theory/unroll.py _least_events": "test_windows_carry_guards",
    "automata/waiting.py WaitingAutomaton": "test_waiting_automata_refuse_guards",
    "automata/waiting.py WaitingMove": "test_waiting_automata_refuse_guards",
    "automata/waiting.py _answers": "test_waiting_automata_refuse_guards",
    "automata/waiting.py _numbered": "test_waiting_automata_refuse_guards",
    "automata/waiting.py _simulation": "test_waiting_automata_refuse_guards",
    "automata/waiting.py _strongest": "test_waiting_automata_refuse_guards",
    "automata/waiting.py obstacle": "test_waiting_automata_refuse_guards",
    "engine/evaluations/choosing/domination.py _letters": "test_waiting_automata_refuse_guards",
    "engine/plan/explain.py _size": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
    "engine/plan/explain.py _transition": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
    "engine/plan/explain.py automaton_text": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
    "engine/evaluations/choosing/consuming.py beginning": "test_an_event_may_begin_a_match_whatever_guards_say",
    "engine/evaluations/choosing/labelling.py Labelling": "test_labellings_refuse_guards",
    "engine/evaluations/around/numbered.py Numbered": "test_determinization_refuses_guards",
    "engine/letters/words.py having_words": "test_tests_of_letters_refuse_guards",
    "engine/letters/codes.py having": "test_tests_of_letters_refuse_guards",
    "engine/evaluations/choosing/maximal.py _hides_inside": "test_waiting_automata_refuse_guards",
    "engine/evaluations/choosing/next.py NextTables": "test_waiting_automata_refuse_guards",
    "engine/evaluations/choosing/next.py _test": "test_waiting_automata_refuse_guards",
    "engine/evaluations/graph/per_end.py _Abilities": "test_strategies_refuse_guards",
    "engine/evaluations/choosing/restricted.py RestrictedProgram": "test_the_detector_of_the_algebra_refuses_guards",
    "play/stepping.py _with_finals": "test_stepping_asks_guards",
    "play/stepping.py _without_guards": "test_stepping_asks_guards",
    "engine/run/amounts.py Amounts": "test_sums_that_decide_early_refuse_guards",
    "engine/run/worth.py Worth": "test_sums_that_decide_early_refuse_guards",
    "viz/graph.py _sizes": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
    "viz/labels.py _done": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
    "viz/labels.py cube_of": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
    "viz/labels.py links": "test_guards_and_writes_are_printed_drawn_and_fingerprinted",
}
"""Who reads a transition or makes one, and the test that shows what becomes of a guard there."""

READ = {"requires", "forbids", "enabled", "writes", "stays", "transitions", "outgoing"}
"""Attributes by which a transition is read (`mark` and `waits` are names of drawings, too: whoever reads them here also reads one of these)."""


def test_everything_that_reads_transitions_is_in_the_table() -> None:
    root, found = Path(cepheid.__file__).parent, set()
    for path in sorted(root.rglob("*.py")):
        for part in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(part, ast.FunctionDef | ast.ClassDef):
                for node in ast.walk(part):
                    reads = isinstance(node, ast.Attribute) and node.attr in READ | ({"mark"} if path.parent.name != "viz" else set())
                    if reads or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Transition"):
                        found.add(f"{path.relative_to(root).as_posix()} {part.name}")
    assert found == set(CONSUMERS)
    assert set(CONSUMERS.values()) <= set(globals())


# ------------------------------------------------------------------------------------------------------------------------- helpers


def guarded(automaton: Automaton, bit: int) -> Automaton:
    """The same automaton, but that a guard says what a predicate did: its bit goes behind all others."""
    before, last = automaton.alphabet, automaton.alphabet.width - 1

    def moved(mask: int) -> int:
        low = mask & (1 << bit) - 1
        return low | mask >> bit + 1 << bit | (mask >> bit & 1) << last

    assert not before.trackers
    assert not before.flags
    alphabet = Alphabet(
        before.predicates[:bit] + before.predicates[bit + 1 :],
        guards=(Guard(last, SAME),),
        registers=(Register("v of x"),),
    )
    moves = (dataclasses.replace(t, requires=moved(t.requires), forbids=moved(t.forbids)) for t in automaton.transitions)
    return dataclasses.replace(automaton, transitions=order(moves), alphabet=alphabet)


def guarded_a(automaton: Automaton) -> Automaton | None:
    """The same automaton where a guard decides what the type A did, if it asks for that."""
    bits = [bit for bit, predicate in enumerate(automaton.predicates) if predicate.type == "A"]
    return guarded(automaton, bits[0]) if bits else None


def random_automata() -> list[tuple[Automaton, Automaton]]:
    """Automata of random patterns without strategies but STRICT, plain and guarded."""
    rng, found = random.Random(f"{SEED} guards"), []
    while len(found) < CASES:
        pattern = random_pattern(rng, rng.choice((1, 2)), strategies=0)
        if rng.random() < 0.2:
            pattern = Select(Strategy.STRICT, pattern)
        plain = construct(pattern, SCHEMA)
        other = guarded_a(plain)
        if other is not None:
            found.append((plain, other))
    return found


def sample() -> Automaton:
    """`A ; B` where A is written and B is compared with it."""
    plain = guarded_a(construct(sequence(Event("B"), Event("A")), SCHEMA))
    assert plain is not None
    moves = (dataclasses.replace(t, writes=WRITES) if t.source == plain.initial else t for t in plain.transitions)
    return dataclasses.replace(plain, transitions=order(moves))


def sequence(*items: Pattern) -> Pattern:
    return Sequence(items, (Link(";"),) * (len(items) - 1))


# ----------------------------------------------------------------------------------------------------------------------- carried


@pytest.mark.parametrize("variables", [("A", "x"), ()])
def test_constructions_carry_guards(variables: tuple[str, ...]) -> None:
    for plain, other in random_automata():
        for transform in (trim, hide, lambda automaton: hide(project(automaton, variables))):
            expected = guarded_a(transform(plain))
            found = transform(other)
            assert expected is None or (found.states, found.finals, found.transitions) == (
                expected.states,
                expected.finals,
                expected.transitions,
            )


def written(monkeypatch: pytest.MonkeyPatch, automaton_of: Pattern, instead: bool) -> Automaton:
    """The automaton of a pattern in which each event of type A is written; instead: it is put in the variable `written`, and writes nothing."""
    event = construction._event

    def writing(constructor, pattern, conditions=()):
        body = event(constructor, pattern, conditions)
        if pattern.type != "A":
            return body
        (move,) = body.moves
        done = dataclasses.replace(move, mark=move.mark | {"written"}) if instead else dataclasses.replace(move, writes=WRITES)
        return dataclasses.replace(body, moves=(done,))

    def project_but(constructor, pattern):
        return construction._project(constructor, Project(pattern.variables | {"written"}, pattern.pattern))

    def named_but(constructor, pattern):
        body = constructor.build(pattern.pattern)
        return construction._marked(body, lambda mark: mark | {pattern.variable} if mark and mark != {"written"} else mark)

    monkeypatch.setitem(construction.CONSTRUCTIONS, Event, writing)
    monkeypatch.setattr(construction, "_event", writing)
    if instead:
        monkeypatch.setitem(construction.CONSTRUCTIONS, Project, project_but)
        monkeypatch.setitem(construction.CONSTRUCTIONS, Named, named_but)
    try:
        return construct(automaton_of, SCHEMA)
    finally:
        monkeypatch.undo()


def test_constructions_carry_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"{SEED} writes")
    fixed = [
        Iterate(sequence(Event("A"), Event("B")), minimum=2, maximum=3),
        Sequence((Event("B"), Optional(Event("A")), Event("C")), (Link(";"), Link(":"))),
        Filter(Named(Event("A"), "x"), (Literal(True, pa.bool_()),)),
        Project(frozenset({"B"}), sequence(Event("A"), Event("B"), Event("A"))),
    ]
    patterns = (random_pattern(rng, rng.choice((1, 2)), strategies=0) for _ in itertools.count())
    drawn = Enough(CASES, itertools.chain(fixed, patterns), seen=10)
    for pattern in drawn:
        if any(isinstance(part, And) for part in parts(pattern)):  # its sides must have equal marks: see below
            continue
        found, expected = (written(monkeypatch, pattern, instead) for instead in (False, True))
        moves = {
            t
            if t.mark is None
            else dataclasses.replace(t, mark=t.mark - {"written"}, writes=WRITES if "written" in t.mark else frozenset())
            for t in expected.transitions
        }
        assert found.transitions == order(moves)
        drawn.seen["seen"] += any(t.writes for t in found.transitions)


def parts(pattern: Pattern) -> list[Pattern]:
    return [pattern, *(below for child in pattern.children() for below in parts(child))]


def test_both_sides_of_a_conjunction_write(monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(monkeypatch, And((Named(Event("A"), "A"), Or((Event("A"), Event("B"))))), instead=False)
    assert [t.writes for t in found.transitions] == [WRITES]
    constructor = construction.Constructor.over(Event("A"), SCHEMA)
    left, right = (
        dataclasses.replace(body, moves=tuple(dataclasses.replace(t, writes=frozenset({Store(number, Now(V))})) for t in body.moves))
        for number, body in enumerate(constructor.build(Event("A")) for _ in range(2))
    )
    assert [t.writes for t in construction.product(constructor, left, right).moves] == [frozenset({Store(0, Now(V)), Store(1, Now(V))})]


def test_closures_carry_guards() -> None:
    """What they do with them is in test_closures."""
    for made in (union(sample(), sample()), concatenation(sample(), sample())):
        assert [(guard.test, guard.bit) for guard in made.alphabet.guards] == [(SAME, 1), (Compares(Before(1), "=", V), 2)]
        assert {store for move in made.transitions for store in move.writes} == {Store(0, Now(V)), Store(1, Now(V))}
        assert {move.requires for move in made.transitions if move.target in made.finals} <= {0b10, 0b100}


def test_windows_carry_guards() -> None:
    """What they do with them is in test_unroll."""
    tree = unroll(sample(), 3)
    assert [(guard.test, guard.bit) for guard in tree.alphabet.guards] == [(SAME, 1)]
    assert [move.writes for move in tree.outgoing[tree.initial]] == [WRITES]
    found = determinize_windowed(sample(), 3).automaton
    assert [(guard.test, guard.bit) for guard in found.alphabet.guards] == [(SAME, 1), (Compares(Before(1), "=", V), 2)]
    assert {store for move in found.transitions for store in move.writes} == {Store(0, Now(V)), Store(1, Now(V)), Store(0, Before(1))}


def test_hidden_events_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = Project(frozenset({"B"}), sequence(Event("B"), Event("A"), Event("B")))
    found = hide(written(monkeypatch, pattern, instead=False))
    assert [(t.mark, t.writes) for t in found.transitions if t.writes] == [(None, WRITES)]
    inside = hide(written(monkeypatch, And((pattern, pattern)), instead=False))
    assert {(t.mark, t.writes) for t in inside.transitions if t.writes} == {(None, WRITES)}


def test_parts_that_strategies_choose_carry_guards() -> None:
    query = cepheid.query("SELECT * WHERE LAST(A AS x ; B AS y FILTER y.v > x.v) ; A AS z")
    pattern = query.bound(SCHEMA).pattern
    automaton = construct(pattern, SCHEMA)
    (part,) = automaton.parts
    for each in (automaton, part.automaton):
        asks = each.alphabet.mask(Scope.RUN)
        (move,) = [move for move in each.transitions if move.mark and "y" in move.mark]
        assert move.requires & asks
        assert [move for move in each.transitions if move.mark and "x" in move.mark and move.writes]
    assert {name for move in automaton.transitions for _, name in move.parts} == {BEGINS, SHOWN, ENDS}
    assert V in Program(automaton).values
    # The last A that is less than the B, not the last one.
    stream = events_of([{"type": kind, "v": v} for kind, v in (("A", 1), ("A", 2), ("A", 9), ("B", 5), ("A", 0))], SCHEMA)
    assert {match.start for match in runs.matches(automaton, stream)} == {1}


def test_labels_that_only_a_guard_tells_apart_are_not_shown() -> None:
    plain = construct(cepheid.query("SELECT * WHERE LAST(A AS x ; B AS y FILTER y.v > x.v) ; A AS z").bound(SCHEMA).pattern, SCHEMA)
    assert shows_labels(plain)
    asks = plain.alphabet.mask(Scope.RUN)
    (ending,) = [move for move in plain.transitions if any(name == ENDS for _, name in move.parts)]
    outside = dataclasses.replace(ending, requires=ending.requires & ~asks, forbids=ending.forbids | asks, parts=frozenset())
    assert not shows_labels(dataclasses.replace(plain, transitions=order([*plain.transitions, outside])))


def test_a_move_that_writes_is_no_waiting() -> None:
    loop = Transition(1, 1)
    assert loop.waits
    assert loop.stays
    writes = dataclasses.replace(loop, writes=WRITES)
    assert not writes.waits
    assert not writes.stays
    assert not dataclasses.replace(loop, requires=4).waits
    waiting = construct(sequence(Event("A"), Event("B")), SCHEMA)
    assert waiting.waiting
    moves = (dataclasses.replace(t, writes=WRITES) if t.waits else t for t in waiting.transitions)
    assert not dataclasses.replace(waiting, transitions=order(moves)).waiting


def test_cubes_decide_guards() -> None:
    for _, other in random_automata():
        for moves in other.outgoing:
            found = list(cubes(moves, other.alphabet))
            for mask in range(1 << other.alphabet.width):
                if (mask & other.alphabet.types).bit_count() > 1:
                    continue
                (cube,) = [cube for cube in found if mask & cube[0] == cube[0] and not mask & cube[1]]
                assert [move.enabled(mask) for move in moves] == [move.enabled(cube[0]) for move in moves]


def outcomes(automaton: Automaton, masks: list[int]) -> set[tuple[object, ...]]:
    """What the runs over all of some masks mark and write, and whether they are accepted: by the definition, with guards as the masks say."""
    found: set[tuple[int, tuple[object, ...]]] = {(automaton.initial, ())}
    for mask in masks:
        found = {
            (move.target, (*done, (move.mark, move.writes)))
            for state, done in found
            for move in automaton.outgoing[state]
            if move.enabled(mask)
        }
    return {done for state, done in found if state in automaton.finals}


def test_eager_determinization_carries_guards() -> None:
    rng, matched = random.Random(f"{SEED} determinize"), 0
    for _, other in random_automata():
        found = determinize(other)
        for _ in range(5):
            masks = [rng.choice([0, *(move.requires for move in other.transitions)]) for _ in range(rng.randint(1, 4))]
            masks = [mask for mask in masks if (mask & other.alphabet.types).bit_count() < 2]
            expected = outcomes(other, masks)
            assert outcomes(found, masks) == expected
            matched += bool(expected)
            for state, mask in itertools.product(range(found.states), masks):
                marks = [move.mark for move in found.outgoing[state] if move.enabled(mask)]
                assert len(marks) == len(set(marks))
    assert matched


def test_eager_determinization_carries_writes_where_they_agree() -> None:
    found = determinize(sample())
    assert {move.writes for move in found.transitions if move.source == found.initial} == {WRITES}
    (begins,) = (move for move in sample().transitions if move.source == sample().initial)
    both = dataclasses.replace(sample(), transitions=order([*sample().transitions, dataclasses.replace(begins, writes=frozenset())]))
    with pytest.raises(NotSupportedError, match="these store differently in `v of x`"):
        determinize(both)


def test_clocks_refuse_other_guards() -> None:
    """What reads transitions as those of clocks refuses guards that ask anything else; what it makes of clocks is in `test_clocks`."""
    for ask in (clock_moves, classify, determinize_timed, trim_timed, two_clocks, formula):
        with pytest.raises(NotSupportedError, match="is no timed complex event automaton"):
            ask(sample())


def test_programs_know_what_guards_may_change() -> None:
    """An event may be left out only if it changes nothing whatever the guards say."""
    for _, automaton in random_automata():
        program = Program(hide(automaton))
        run = program.automaton.alphabet.mask(Scope.RUN)
        types = program.automaton.alphabet.types
        for mask in range(1 << program.automaton.alphabet.width):
            if (mask & types).bit_count() > 1 or mask & run or not program.droppable or program.relevant(mask):
                continue
            for said in (0, run):
                for state in program.automaton.inner | {program.automaton.initial}:
                    enabled = [move for move in program.automaton.outgoing[state] if move.enabled(mask | said)]
                    assert all(move.stays for move in enabled)
                    assert enabled or state == program.automaton.initial
    writes = Program(sample())
    assert writes.relevant_masks == (0,), "the guard alone decides whether an event goes on"


def test_guards_and_writes_are_printed_drawn_and_fingerprinted() -> None:
    automaton = sample()
    assert automaton_text(automaton).splitlines() == [
        "3 states, 3 transitions; starts in 0, accepts in 2",
        "0 -> 1  type is B: mark B, v of x := v",
        "1 -> 1  any event: no mark",
        "1 -> 2  (v = (v of x)): mark A",
    ]
    for name in FORMATS:
        text = str(draw(automaton, format=name)).replace("#40;", "(").replace("#41;", ")")
        assert "v = x.v" in text
        assert ("stores v of x := v" in text) == (name == "svg")
    alphabet = automaton.alphabet
    (guard,) = alphabet.guards
    others = [
        dataclasses.replace(automaton, alphabet=dataclasses.replace(alphabet, guards=(dataclasses.replace(guard, **change),)))
        for change in ({"test": Compares(Before(0), "<", V)}, {"test": Compares(Before(1), "=", V)})
    ]
    others.append(dataclasses.replace(automaton, alphabet=dataclasses.replace(alphabet, registers=(Register("v of y"),))))
    others.append(
        dataclasses.replace(automaton, transitions=tuple(dataclasses.replace(t, writes=frozenset()) for t in automaton.transitions))
    )
    forbids = (dataclasses.replace(t, forbids=t.requires & guard.mask, requires=t.requires & ~guard.mask) for t in automaton.transitions)
    others.append(dataclasses.replace(automaton, transitions=order(forbids)))
    assert len({Program(each).fingerprint for each in [automaton, *others]}) == 6
    assert list(alphabet.beyond_the_event(others[-1].transitions[-1])) == ["not (v = (v of x))"]


def test_patterns_make_guards() -> None:
    """What every part of a construction adds, and nothing beyond what is read: printed, and run."""
    schema = EventSchema({"type": pa.string(), "v": pa.int64(), "ts": pa.int64()}, type_column="type", time_column="ts")
    query = cepheid.query(
        "SELECT * WHERE (((A AS x ;[<= 2] B AS y) WITHIN [3, 5]) : A+ AS z) FILTER x.v < z.v AND (x.v = y.v OR y.v = z.v)"
    )
    automaton = construct(query.bound(schema).pattern, schema)
    gap, window = "end of A AS x", "start of A AS x ;[<= 2] B AS y"
    asked = "(v > (v of x, 1)) and (x.v = y.v OR y.v = z.v)"
    begins = f"{gap} := $time, {window} := $time, v of x, 1 := v, v of x, 2 := v"
    follows = f"type is B and ($time - ({gap}) <= 2) and ($time - ({window}) in [3, 5])"
    assert automaton_text(automaton).splitlines() == [
        "5 states, 8 transitions; starts in 0, accepts in 4",
        f"0 -> 1  type is A: mark A, x, {begins}",
        "1 -> 1  any event: no mark",
        f"1 -> 2  {follows}: mark B, y, v of y := v",
        f"2 -> 3  type is A and {asked}: mark A, z",
        f"2 -> 4  type is A and {asked}: mark A, z",
        "3 -> 3  any event: no mark",
        f"3 -> 3  type is A and {asked}: mark A, z",
        f"3 -> 4  type is A and {asked}: mark A, z",
    ]
    found = runs.matches(automaton, events_of(events("A1(v=1) B2(v=1) A3(v=2) A4(v=2)"), schema))
    assert found == set(), "3 is out of both bounds"


@pytest.mark.parametrize(
    ("pattern", "asked"),
    [
        ("A ; P", {"begin place > (place of the end before A ; P)"}),
        ("A : P", {"begin place - (place of the end before A : P) in [1, 1]"}),
        ("A ;[<= 2] P", {"begin place > (place of the end before A ;[<= 2] P)", "begin time - (end of A) <= 2"}),
        ("P+", {"begin place > (place of the end of the P before)"}),
        ("P WITHIN [1, 2]", {"begin age >= 1", "begin age <= 2"}),
        ("P WITHIN 2 EVENTS", {"begin length <= 1"}),
        ("(A ALL P) WITHIN 2", {"begin age <= 2", "$time - (start of A ALL P) <= 2"}),
        ("P UNLESS (A ; B)", {"no A ; B since begin place"}),
        ("(P ; A) UNLESS P", {"no P since (start of P ; A)"}),
        ("A ; NOT P ; B", {"no P between (end of A) and this event"}),
        ("A ; NOT B ; P", {"begin place > (place of the end before A ; NOT B ; P)", "no B between (end of A) and where this event begins"}),
    ],
)
def test_events_that_matches_make_have_guards(pattern, asked) -> None:
    """Where they begin is a value of theirs; tests of the event alone are predicates."""
    schema = EventSchema({"type": pa.string(), "ts": pa.int64()}, type_column="type", time_column="ts")
    query = cepheid.query(f"EVENT P(n) AS (SELECT count(a) AS n WHERE A AS a) SELECT * WHERE {pattern}")
    alphabet = construct(query.bound(schema).pattern, query.bound(schema).schema).alphabet
    names = [register.name for register in alphabet.registers]
    found = {registers.test_text(guard.test, names) for guard in alphabet.guards}
    found |= {predicate_text(predicate) for predicate in alphabet.predicates if predicate.type is None}
    assert found == asked


NEGATING = {
    "(A ;[<= 2] B) ALL C": 0,
    "(A AS x ALL B AS y) FILTER x.v < y.v": 0,
    "(A ;[<= 2] B) UNLESS C": 0,
    "(A ;[<= 2] B) UNLESS (C ; C)": 1,
    "A ; NOT C ;[<= 2] B": 0,
    "A ; NOT (C ; C) ;[<= 2] B": 1,
    "A ; B UNLESS (C ;[<= 2] C)": 1,
    "A ; NOT (C ; NOT (A AS x ; B AS y FILTER x.v = y.v) ; C) ; B": 2,
    "A ; NOT LAST(C ;[<= 2] C) ; B": 1,
    "A THEN (B ;[<= 2] C)": 1,
    "A ;[<= 2] B THEN C": 1,
    "(A AS x THEN B AS y) FILTER x.v < y.v": 1,
    "A THEN (B AS x ; C AS y FILTER x.v <= y.v)": 1,
    "A THEN B THEN C ;[<= 2] A": 2,
    "(A ;[<= 2] B) UNLESS (B THEN C)": 2,
    "A THEN LAST(B ;[<= 2] C)": 1,
    "LAST(A ;[<= 3] B UNLESS (C AS x ; C AS y FILTER x.v = y.v)) ; A": 1,
}
"""Patterns, and of how many negated patterns guards ask when a match began."""


@pytest.mark.parametrize("pattern", NEGATING)
def test_conjunction_and_negation_carry_guards(pattern: str) -> None:
    schema = EventSchema({"type": pa.string(), "v": pa.int64(), "ts": pa.int64()}, type_column="type", time_column="ts")
    plan, rng, matched = cepheid.query(f"SELECT * WHERE {pattern}").bound(schema), random.Random(pattern), 0
    automaton = construct(plan.pattern, schema)
    assert automaton.compares
    assert len(automaton.negated) == NEGATING[pattern]
    for _ in range(40):
        given = events_of(events(" ".join(f"{rng.choice('ABC')}{time}(v={rng.randint(0, 1)})" for time in range(8))), schema)
        expected = set(reference.matches(plan, given))
        assert runs.matches(hide(project(automaton, plan.variables)), given) == expected
        matched += bool(expected)
    assert matched
    (asked, *_) = [each.automaton for each in automaton.negated] or [automaton]
    if asked.alphabet.guards:
        with pytest.raises(NotSupportedError, match="negation cannot ask what a partial match has stored"):
            complement(asked)


def test_letters_have_no_run_bits() -> None:
    alphabet = Alphabet((Predicate(None, "A"), Predicate(None, "B")), guards=(Guard(2, SAME),), registers=(Register("v of x"),))
    assert (alphabet.width, alphabet.bits, alphabet.mask(Scope.RUN), alphabet.mask_of(0b01)) == (3, 2, 0b100, 0b01)
    assert [alphabet.mask_of(letter) for letter in range(3)] == [0, 0b01, 0b10]


# ----------------------------------------------------------------------------------------------------------------------- refused

REFUSED = r"cannot ask what a partial match has stored: v = \(v of x\)"


def test_determinization_refuses_guards() -> None:
    for refuse in (lambda automaton: successors(automaton, 1, 1), lambda automaton: Program(automaton).successors(1, 1)):
        with pytest.raises(NotSupportedError, match=f"determinization by letters {REFUSED}") as error:
            refuse(sample())
        assert 'engine="reference"' in error.value.help[0]


@pytest.mark.parametrize("strategy", CHOOSING)
def test_strategies_refuse_guards(strategy: Strategy) -> None:
    with pytest.raises(NotSupportedError, match=f"the strategy {strategy.value} {REFUSED}"):
        select(sample(), strategy)
    with pytest.raises(NotSupportedError, match=REFUSED):
        end_program(Program(sample()), variables=None, strategy=strategy)


def test_labellings_refuse_guards() -> None:
    with pytest.raises(NotSupportedError, match=f"the labelling of supports {REFUSED}"):
        labelling(Program(sample()), ["A"])
    with pytest.raises(NotSupportedError, match=REFUSED):
        Labelling(Program(sample()))


def test_tests_of_letters_refuse_guards() -> None:
    automaton = sample()
    letters = np.zeros(1, np.uint32)
    with pytest.raises(NotSupportedError, match=f"a test of letters {REFUSED}"):
        having(letters, automaton.alphabet, [(move.requires, move.forbids) for move in automaton.transitions])
    assert having(letters, automaton.alphabet, [(0, 1)]).all()


def test_an_event_may_begin_a_match_whatever_guards_say() -> None:
    automaton = sample()
    begins = beginning(Program(automaton))
    letters = np.arange(1 << automaton.alphabet.bits, dtype=np.uint32)
    events, guards = (1 << len(automaton.predicates)) - 1, automaton.alphabet.mask(Scope.RUN)
    masks = [automaton.alphabet.mask_of(letter) & events for letter in letters.tolist()]
    moves = automaton.outgoing[automaton.initial]
    expected = [any(move.enabled(mask | guards) or move.enabled(mask) for move in moves) for mask in masks]
    assert begins(letters).tolist() == expected
    assert any(expected)


def test_waiting_automata_refuse_guards() -> None:
    assert obstacle(sample()) == "what a partial match can do depends on what it has stored"
    assert WaitingAutomaton.of(sample()) is None


def making_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a guard decide what the type A does in all patterns."""
    plain = construction.Constructor.over

    def guarding(
        pattern: Pattern, schema: EventSchema, *, more: tuple[Predicate, ...] = (), compares: bool = False
    ) -> construction.Constructor:
        before = plain(pattern, schema, more=more, compares=compares)
        alphabet = Alphabet(
            tuple(predicate for predicate in before.masks if predicate.type != "A"),
            guards=(Guard(len(before.masks) - 1, SAME),),
            registers=(Register("v of x"),),
        )
        masks = {predicate: 1 << bit for bit, predicate in enumerate(alphabet.predicates)} | {
            predicate: alphabet.guards[0].mask for predicate in before.masks if predicate.type == "A"
        }
        return construction.Constructor(schema, alphabet, masks, before.guards)

    monkeypatch.setattr(construction.Constructor, "over", guarding)


ASKED = ("*", "NXT *", "LAST *", "MAX *", "STRICT *", "ANY *", "COUNT(*)", "MAX COUNT(*)", "A")


def test_guards_that_an_operator_makes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No letter has a guard's bit: a path that took it for one would give nothing. What asks an empty register holds."""
    making_guards(monkeypatch)
    given = [{**event, "v": 1} for event in events("A1 B2 A3 B4")]
    texts = [f"SELECT {asked} WHERE B ; A{tail}" for asked in ASKED for tail in ("", " WITHIN 2", " CONSUME BY ANY")]
    assert [text for text in texts if not cepheid.query(text).run(given)] == []


def test_methods_for_guards_take_what_asks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for guards in (False, True):
        if guards:
            making_guards(monkeypatch)
        for asked in ASKED:
            compiled = cepheid.query(f"SELECT {asked} WHERE B ; A WITHIN 2 EVENTS").compiled(SCHEMA)
            assert compiled.method.name.startswith("guarded") == guards
            assert not guards or compiled.refusals
            assert all(guards == ("earlier ones" in reason or "has stored" in reason) for _, reason in compiled.refusals)


@pytest.mark.parametrize("pattern", ["A AS x ; B FILTER x.$index > 1", "A AS x ; B AS y FILTER y.v > x.v", "A ;[<= 5] B", "A : B"])
def test_the_detector_of_the_algebra_refuses_guards(pattern: str) -> None:
    method = cepheid.query("SELECT RESTRICTED * WHERE A ; B").compiled(SCHEMA).method
    assert method.name == "restricted"
    compiled = cepheid.query(f"SELECT RESTRICTED * WHERE {pattern}").compiled(dataclasses.replace(SCHEMA, time_column="v"))
    assert compiled.method.name in {"guarded", "match graph"}
    assert dict(compiled.refusals)["restricted"]


def test_chains_unite_whose_guard_is_a_longest_gap() -> None:
    (program,) = cepheid.query("SELECT * WHERE A+[<= 5] AS x").compiled(dataclasses.replace(SCHEMA, time_column="v")).programs
    chain = program.automaton
    (guard,) = chain.alphabet.guards
    assert unites(chain)

    def changed(test: Test | None = None, **fields: int | frozenset[Store]) -> Automaton:
        """With another test, or with other fields of the marked loop."""
        alphabet = dataclasses.replace(chain.alphabet, guards=(dataclasses.replace(guard, test=test or guard.test),))
        moves = [move if move.source != move.target or not move.mark else dataclasses.replace(move, **fields) for move in chain.transitions]
        return dataclasses.replace(chain, alphabet=alphabet, transitions=order(moves))

    assert isinstance(guard.test, Elapsed)
    assert unites(changed())
    for unlike in (
        changed(dataclasses.replace(guard.test, interval=Interval(1, 5))),
        changed(Compares(guard.test.before, "<", guard.test.now)),
        changed(requires=1),  # the loop does not ask
        changed(requires=guard.mask | 1 << 5),  # or wants another letter than the first event
        changed(requires=1, forbids=guard.mask),
        changed(writes=frozenset()),
    ):
        assert not unites(unlike)


def test_macro_states_ask_guards() -> None:
    found = Regions(sample())
    begun, _ = found.step(found.initial, 1).marked[0].targets[0]
    (region,) = found.step(begun, 0).marked
    assert (region.literals, region.final) == (((SAME, True),), True)


def test_stepping_asks_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v")
    table = pa.table({"type": ["A", "B", "B"], "ts": [1, 2, 3], "v": [5, 4, 6]})
    found = steps_of(query.compiled(query.schema(table.schema)), table)
    assert ([step.ends for step in found.steps], found.note) == ([False, False, True], "")
    # Past a limit the picture cannot know that the B with 4 is no match, and says so.
    monkeypatch.setattr(steps, "MAX_CONFIGURATIONS", 0)
    found = steps_of(query.compiled(query.schema(table.schema)), table)
    assert [step.ends for step in found.steps] == [False, True, True]
    assert found.note.startswith("Behind event 1 of 3 comparisons between events are not evaluated")
    (match,) = query.run(table)
    assert match.variables == {"x": (0,), "y": (2,)}


def test_then_under_point_keeps_guards() -> None:
    """A store at the end of the left side, which has one already, and guards on both sides."""
    table = pa.table({"type": list("ABACCBCAC"), "ts": [1, 2, 3, 3, 5, 6, 7, 7, 9], "v": [1, 5, 2, 4, 3, 3, 6, 1, 9]})
    for pattern in (
        "A AS x THEN (B ; C AS y) FILTER y.v > x.v",
        "(A ;[< 5] B) THEN (B ; C)",
        "A THEN (B ;[< 5] C)",
        "(A ; B) ;[< 3] (A THEN (B : C))",
    ):
        query = cepheid.query(f"SELECT * WHERE {pattern} TIME MODEL POINT")
        assert sorted(map(str, query.run(table))) == sorted(map(str, query.run(table, engine="reference"))) != [], pattern


@pytest.mark.parametrize("pattern", ["C :[<= 3] (P ALL A)", "(P ALL A)+"])
def test_what_any_event_may_begin_is_asked(pattern: str) -> None:
    query = cepheid.query(f"EVENT P(n) AS (SELECT count(a) AS n WHERE A AS a ; B) SELECT * WHERE {pattern}")
    schema = query.schema(pa.schema([("type", pa.string()), ("ts", pa.int64())]))
    automaton = query.compiled(schema).program.automaton
    behind = automaton.alphabet.mask(Scope.RUN)
    inner = [move for move in automaton.transitions if move.mark is not None and move.source not in (automaton.initial, 1)]
    assert inner
    assert any(move.requires & behind for move in inner)


def _over_made(pattern: str) -> Automaton:
    query = cepheid.query(f"EVENT P(n) AS (SELECT count(a) AS n WHERE A AS a ; B) SELECT * WHERE {pattern}")
    return query.compiled(query.schema(pa.schema([("type", pa.string()), ("ts", pa.int64())]))).program.automaton


def test_sides_of_a_conjunction_are_asked_where_they_begin() -> None:
    """A register for each side, empty at first; where any event may say it, one more for those that were read before."""
    for pattern, count in (
        ("(PROJECT C (P ; C)) AND (PROJECT C (A ; C))", 2),
        ("(PROJECT C (P ; C)) AND (PROJECT C ((P ALL A) ; C))", 3),
    ):
        automaton = _over_made(f"({pattern})+")
        alphabet = automaton.alphabet
        assert len([each for each in alphabet.registers if "begin of" in each.name]) == count
        begins = [guard for guard in alphabet.guards if "begin place" in alphabet.says(guard)]
        assert {guard.test.operator for guard in begins if isinstance(guard.test, Compares)} >= {"="}
        said = {store for move in automaton.transitions if move.source == automaton.initial for store in move.writes}
        assert Now(Begin.of("place")) in {store.term for store in said}
        # What one event of a side says is asked of the other side.
        asking = [move for move in automaton.transitions if move.requires & alphabet.mask(Scope.RUN)]
        assert asking
        assert all(move.source != automaton.initial for move in asking)
        stays = any(HIDDEN in parts for _, parts in automaton.labels)
        assert stays == ("ALL" in pattern)


def test_a_negated_pattern_says_where_any_event_begins() -> None:
    """Its events keep a mark, and no others; guards inside it stay."""
    for pattern, guards in (("P ALL C", False), ("(P ALL C) WITHIN 5", True)):
        (negated,) = _over_made(f"A ; NOT ({pattern}) ; B").negated
        assert negated.automaton.begins == Begin.of("place")
        assert negated.automaton.marks == (frozenset({"begin"}),)
        assert bool(negated.automaton.alphabet.guards) == guards
    (negated,) = _over_made("A THEN (P ALL C)").negated
    assert negated.automaton.begins == Derived("begin of time")
    assert set(negated.automaton.marks) == {frozenset(), frozenset({"begin"})}, "the event behind it says nothing"
    (negated,) = _over_made("A ; NOT P ; B").negated
    assert negated.automaton.begins is None


@pytest.mark.parametrize("model", ["ACTIVE_OFFICE", "COMPLETE_HISTORY"])
def test_beside_guards_an_evaluation_chooses_what_is_next(model: str) -> None:
    for pattern in ("A AS x THEN (B ; C AS y) FILTER y.v > x.v", "(A ;[< 5] B) THEN (B ; C)", "A THEN (B ;[< 5] C)"):
        query = cepheid.query(f"SELECT * WHERE {pattern} TIME MODEL {model}")
        compiled = query.compiled(query.schema(pa.schema([("type", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])))
        (part,) = compiled.program.automaton.parts
        assert (part.rule.value, part.is_next, compiled.looks_ahead) == (model, True, True)
        places = {name for _, parts in compiled.program.automaton.labels for _, name in parts}
        assert places == {"precedes", "begins", "shown", "ends"}
