"""Values that are kept over events which ask nothing of them: the kernel of guards makes the entries of a group when it is asked for."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from guard_cases import A, B, C, Row, W, X, Y, Z, automaton, guard, stores
from pattern_cases import SEED
from test_guarded_kernel import TINY, by_definition, forged, matches_of, whole_of

import cepheid
from cepheid.automata import Automaton, Program, Transition
from cepheid.automata.program import ChoiceProgram
from cepheid.automata.registers import Before, Compares, Now
from cepheid.engine.evaluations.guards.guarded_choice_run import GuardedChoiceRun
from cepheid.engine.evaluations.guards.guarded_run import GuardedRun, GuardSizes
from cepheid.engine.evaluations.guards.guarded_tables import GuardTables
from cepheid.engine.letters.encoded import Texts
from cepheid.errors import SnapshotError
from cepheid.kernel import available
from cepheid.language.syntax import Strategy
from cepheid.testing import generators

if TYPE_CHECKING:
    from collections.abc import Iterator

EQUAL = Compares(Before(0), "=", W)
BEGINS = Transition(0, 1, A, X, writes=stores(r0=Now(W)))


def waiting(*states: int) -> list[Transition]:
    return [Transition(state, state) for state in states]


CHAINS: dict[str, Automaton] = {
    "one event between": automaton([BEGINS, *waiting(1, 2), Transition(1, 2, B, Y), Transition(2, 3, C | guard(0), Z)], EQUAL),
    "two events between": automaton(
        [BEGINS, *waiting(1, 2, 3), Transition(1, 2, B, Y), Transition(2, 3, B, Y), Transition(3, 4, C | guard(0), Z)], EQUAL
    ),
    "any event between, and one behind": automaton(
        [BEGINS, *waiting(1, 2, 3), Transition(1, 2, mark=Y), Transition(2, 3, C | guard(0), Z), Transition(3, 4, B, X)], EQUAL
    ),
    "in two ways": automaton(
        [BEGINS, *waiting(1, 2), Transition(1, 2, B, Y), Transition(1, 2, B, X), Transition(2, 3, C | guard(0), Z)], EQUAL
    ),
}
"""`A AS x ; B ; C AS z FILTER z.w = x.w`, and what is like it."""


def rows_of(rng: random.Random, count: int, values: int) -> list[Row]:
    return [Row(rng.choice("AABBC"), moment, 0, rng.choice((*range(values), None))) for moment in range(count)]


def cells_of(evaluation: GuardedRun) -> int:
    """How many cells the partition of slot 0 has made."""
    return int(evaluation.store.lines(np.array([1]), 1)[0, 1])


@pytest.mark.parametrize("name", CHAINS)
def test_macro_states_are_entered_by_layers(name: str) -> None:
    assert len(GuardTables(Program(CHAINS[name])).layered) == 1 + (name == "two events between")


@pytest.mark.parametrize(
    ("pattern", "layered"),
    [
        ("A AS x ; C ; B AS y FILTER y.k = x.k", True),
        ("A AS x ; (C OR B) ; B AS y FILTER y.k = x.k AND y.v = x.v", True),
        ("A AS x ; C ; C ; B AS y FILTER y.k = x.k", True),
        ("A+ AS x ; C ; B AS y FILTER y.k = x.k", True),
        ("A AS x ; C ; (A AS u ; B AS y) FILTER u.k = x.k AND y.k = x.k", True),
        # An event between others is no layer where it goes on from those like it, is compared itself, or is kept.
        ("A AS x ; C+ ; B AS y FILTER y.k = x.k", False),
        ("A AS x ; C AS u ; B AS y FILTER u.v > x.v AND y.k = x.k", False),
        ("A AS x ; C AS u ; B AS y FILTER y.v = u.v AND y.k = x.k", False),
        # Not all values of a group are asked for, or not as equal ones.
        ("A AS x ; C ; B AS y FILTER y.k = x.k AND y.v > x.v", False),
        ("A AS x ; C ; B AS y FILTER y.v > x.v", False),
        # An event ends groups, or moves them without being marked.
        ("A AS x ; C : B AS y FILTER y.k = x.k", False),
        ("PROJECT x, y (A AS x ; C ; B AS y FILTER y.k = x.k)", False),
    ],
)
def test_where_an_event_is_a_layer(pattern: str, layered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    init = GuardTables.__init__
    monkeypatch.setattr(GuardTables, "__init__", lambda self, program: (init(self, program), found.append(bool(self.layered)))[0])
    query = cepheid.query(f"SELECT * WHERE {pattern} WITHIN 9 EVENTS")
    query.run(generators.table([]))
    assert found
    assert set(found) == {layered}
    explained = str(query.explain(schema=generators.SCHEMA))
    assert ("asks nothing of them" in explained) == layered


@pytest.mark.parametrize("strategy", [None, Strategy.NXT, Strategy.LAST])
def test_an_event_makes_one_cell_however_many_values_are_alive(strategy: Strategy | None) -> None:
    """300 values; of one that is asked for, each event between has a cell; where one match is chosen, one of them has."""
    texts, chain = Texts(), CHAINS["one event between"]
    rows = [Row("A", moment, 0, moment) for moment in range(300)] + [Row("B", 300 + place) for place in range(50)]
    for variant in available():
        evaluation = (
            GuardedRun(Program(chain), variant=variant)
            if strategy is None
            else GuardedChoiceRun(ChoiceProgram(chain, strategy, None), variant=variant)
        )
        assert matches_of(evaluation, rows, texts=texts) == []
        assert cells_of(evaluation) == 350
        found = matches_of(evaluation, [Row("C", 350, 0, 7)], texts=texts, first=350)
        assert [positions for positions, _ in found] == {
            None: [(7, 349 - place, 350) for place in range(50)],
            Strategy.NXT: [(7, 300, 350)],
            Strategy.LAST: [(7, 349, 350)],
        }[strategy]
        assert cells_of(evaluation) == 350 + len(found)
        matches_of(evaluation, [Row("C", 351, 0, 7), Row("C", 352, 0, 1_000)], texts=texts, first=351)
        assert cells_of(evaluation) == 350 + len(found)


def runs(chain: Automaton) -> Iterator[tuple[Program, type[GuardedRun]]]:
    """(program, its run) of all matches, and of those that are chosen."""
    yield Program(chain), GuardedRun
    for strategy in (Strategy.NXT, Strategy.LAST, Strategy.MAX):
        yield ChoiceProgram(chain, strategy, None), GuardedChoiceRun


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("values", [3, 40])
def test_long_streams_in_pieces_with_restarts(name: str, values: int) -> None:
    """The kernel returns in between, and has no room at first: what was made stays, and nothing is there twice."""
    rng = random.Random(f"{SEED} layers {name} {values}")
    for program, kind in runs(CHAINS[name]):
        window = 40 if name == "one event between" and not isinstance(program, ChoiceProgram) else 20
        rows, texts, bounds = rows_of(rng, 300, values), Texts(), {"window": window}
        whole = by_definition(program, rows, bounds, most=1 << 20)
        wanted = whole_of(program, rows, bounds, whole, texts=texts)
        assert values > 3 or len(wanted) > 20
        for variant, sizes in itertools.product(available(), (None, TINY)):
            evaluation, found = made(kind, program, variant, sizes, bounds), []
            cuts = sorted(rng.choices(range(len(rows)), k=6))
            for start, stop in itertools.pairwise([0, *cuts, len(rows)]):
                found += matches_of(evaluation, rows[start:stop], texts=texts, first=start)
                if rng.random() < 0.5:
                    sections, evaluation = evaluation.dump(), made(kind, program, variant, sizes, bounds)
                    evaluation.load(sections)
            assert found == wanted


def made(kind: type[GuardedRun], program: Any, variant: str, sizes: GuardSizes | None, bounds: dict[str, Any]) -> GuardedRun:
    """A run that returns often where its arrays are tiny."""
    evaluation = kind(program, sizes=sizes, variant=variant, **bounds)
    if sizes is not None:
        evaluation._set("budget", 3)
    return evaluation


@pytest.mark.skipif("checked" not in available(), reason="only the checked kernel says where it reads outside")
@pytest.mark.parametrize("name", CHAINS)
def test_forged_layers_are_refused_or_run(name: str) -> None:
    rng = random.Random(f"{SEED} forged layers {name}")
    for program, kind in runs(CHAINS[name]):
        refused = ran = 0
        for _ in range(60):
            rows, texts, bounds = rows_of(rng, 16, 3), Texts(), {"window": rng.choice((None, 8)), "limit": 20}
            if kind is GuardedChoiceRun:
                bounds["limit"] = None
            evaluation = kind(program, **bounds)
            matches_of(evaluation, rows[:10], texts=texts)
            sections = evaluation.dump()
            section = rng.choice([name for name, content in sections.items() if content and name != "guarded_macros"])
            sections[section] = forged(rng, sections[section])
            fresh = kind(program, variant="checked", **bounds)
            fresh.ensure_slots(1)
            try:
                fresh.load(sections)
            except SnapshotError:
                refused += 1
                continue
            matches_of(fresh, rows[10:], texts=texts, first=10)
            fresh.dump()
            ran += 1
        assert min(refused, ran) >= 3
