"""What `Choices` keeps and asks, as terms over registers, is what `Correlation.after` says of events: for any levels, and whatever an event does."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pattern_cases import CASES, SEED

from cepheid.automata import registers
from cepheid.automata.choices import Choices
from cepheid.automata.correlation import BEGIN, KEEP, MARK, MATCH, NEXT, Correlation, KeptEvents
from cepheid.automata.guards import Guards
from cepheid.automata.registers import Before, Computes, combinations, substituted
from cepheid.engine.evaluations.uncompiled.guarded_values import Evaluator
from cepheid.logical.plan import Apply, Field
from cepheid.schema import EventSchema

if TYPE_CHECKING:
    from cepheid.automata.correlation import Action, Variable
    from cepheid.logical.plan import Expression

LEVELS: dict[str, tuple[tuple[Variable, ...], ...]] = {
    "one level": ((("x", False), ("y", False), ("z", False)),),
    "two levels": ((("x", False),), (("y", False),)),
    "around": ((), (("x", False), ("y", False))),
    "before": ((), (("x", True), ("y", True))),
    "before its own": ((("x", False),), (("x", True), ("y", True))),
    "three levels": ((("x", False), ("y", False)), (("z", False),), (("u", False),)),
    "around two": ((), (("x", False),), (("y", False), ("z", False))),
    "before, and around": ((("x", False),), (("y", True),), (("z", False), ("u", False))),
}


def leaf(variable: Variable, attribute: str) -> Field:
    return Field(variable[0], (attribute,), pa.int64(), pa.int64(), previous=variable[1])


def correlation(levels: tuple[tuple[Variable, ...], ...]) -> Correlation:
    """One that reads an attribute of each variable, and two of the last one; all its comparisons are of two variables."""
    *others, last = itertools.chain(*levels)
    leaves = [leaf(last, "v"), *(leaf(each, "v") for each in others), leaf(last, "k"), leaf(others[0], "v")]
    pairs = [Apply("<", pair, pa.bool_()) for pair in itertools.pairwise(leaves)]
    return Correlation(Apply("or", tuple(pairs), pa.bool_()), levels)


def actions(rng: random.Random, found: Correlation) -> frozenset[Action]:
    """What an event does: any part of what it may."""
    names = {name: level for level, variables in enumerate(found.levels) for name, previous in variables if not previous}
    before = {name: level for level, variables in enumerate(found.levels) for name, previous in variables if previous}
    some: list[Action] = [(MARK, name) for name in names if rng.random() < 0.4]
    some += [(KEEP, name) for name in before if rng.random() < 0.5]
    some += [
        (NEXT if level in before.values() and rng.random() < 0.7 else BEGIN, level) for level in range(found.top + 1) if rng.random() < 0.15
    ]
    some += [(MATCH, 0)] if not found.levels[0] and rng.random() < 0.3 else []
    return frozenset(some)


@pytest.mark.parametrize("name", LEVELS)
def test_choices_are_those_of_the_correlation(name: str) -> None:
    rng, found = random.Random(f"{SEED} choices {name}"), correlation(LEVELS[name])
    choices = Choices.of(Guards(EventSchema({}), 0), found)
    assert choices is not None
    evaluator, complete = Evaluator(()), 0
    for _ in range(CASES):
        kept: KeptEvents | None = None
        held: dict[int, Any] = {}
        for _ in range(rng.randint(1, 12)):
            now = {"v": rng.randrange(3), "k": rng.choice([None, 0, 1])}
            does = actions(rng, found)
            evaluator.now = lambda value, now=now: now[value.path[0]] if isinstance(value, Field) else value.value  # type: ignore[misc]
            wanted, kept = found.after(None if (BEGIN, found.top) in does else kept, does, evaluator.now)
            tests, stores = choices.program(does, frozenset())

            def filled(register: int, held: dict[int, Any] = held) -> Before | None:
                return Before(register) if register in held else None

            asked = [test for each in tests if (test := registers.test_after(each, filled)) is not None]
            given = [rows(test, evaluator, held) for test in asked if isinstance(test, Computes)]
            assert {frozenset(row.items()) for each in given for row in each} == {frozenset(row.items()) for row in wanted}
            complete += len(wanted) > 1
            after = {store.register: substituted(store.term, filled) for store in stores}
            made = {register: evaluator.value(term, held) for register, term in after.items() if term is not None}
            held = {register: value for register, value in held.items() if register not in after} | made
    assert complete > 2


def rows(test: Computes, evaluator: Evaluator, held: dict[int, Any]) -> list[dict[Expression, Any]]:
    """The choices of a test, without the constants that it names."""
    found = combinations(test.operands, lambda term: evaluator.rows(term, held))
    return [{value: own for value, own in row.items() if isinstance(value, Field)} for row in found]
