"""The texts of a drawing of an automaton: transitions between the same two states as one edge, conditions and marks as text.

Comes in: an `Automaton`. Goes out: `Link`s. A condition is written as in the language, `T[temp > 40]`. After the slash come the variables that get
the event; `(hidden)` if it is marked but no variable shows it; `-` if it is not marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.logical.describe import describe_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.automata.automaton import Automaton
    from cepheid.automata.transition import Mark, Transition

NOT_MARKED = "-"
HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Label:
    """One transition: its condition and its mark as text."""

    condition: str
    mark: str

    def __str__(self) -> str:
        return f"{self.condition} / {self.mark}"


@dataclass(frozen=True, slots=True)
class Link:
    """All transitions from one state to another, but for the waiting loop, which is a link of its own."""

    source: int
    target: int
    labels: tuple[Label, ...]
    waits: bool = False

    @property
    def text(self) -> str:
        """The link in one line."""
        return f"{self.source} -> {self.target}: " + ("any event, not marked" if self.waits else "; ".join(map(str, self.labels)))


def links(automaton: Automaton) -> list[Link]:
    """The links of an automaton, by source, then target."""
    grouped: dict[tuple[int, int], dict[tuple[bool, str], list[Cube]]] = {}
    for move in automaton.transitions:
        marks = grouped.setdefault((move.source, move.target), {})
        done = move.stays, mark_text(move.mark) + automaton.alphabet.written(move)
        marks.setdefault(done, []).append(cube_of(automaton, move))
    found = []
    for (source, target), marks in grouped.items():
        labels = []
        for (stays, text), cubes in marks.items():
            united = unite(cubes)
            if stays and Cube() in united:
                found.append(Link(source, target, (), waits=True))
            else:
                labels += [Label(condition(automaton, cube), text) for cube in united]
        if labels:
            found.append(Link(source, target, tuple(labels)))
    return sorted(found, key=lambda link: (link.source, link.target, link.waits))


@dataclass(frozen=True, slots=True)
class Cube:
    """A condition on letters: one of all types but `others`, or the types `types`; what holds, what fails, by its bits; what no predicate says."""

    types: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()
    holds: frozenset[int] = frozenset()
    fails: frozenset[int] = frozenset()
    beyond: tuple[str, ...] = ()


def cube_of(automaton: Automaton, move: Transition) -> Cube:
    """The condition of a transition; a type forbidden beside another one required says nothing."""
    kinds = frozenset(bit for bit, predicate in enumerate(automaton.predicates) if predicate.type is not None)
    required = frozenset(bit for bit in range(len(automaton.predicates)) if move.requires >> bit & 1)
    forbidden = frozenset(bit for bit in range(len(automaton.predicates)) if move.forbids >> bit & 1)
    types = required & kinds
    others = frozenset() if types else forbidden & kinds
    return Cube(types, others, required - kinds, forbidden - kinds, tuple(automaton.alphabet.beyond_the_event(move)))


def unite(cubes: Sequence[Cube]) -> list[Cube]:
    """The same letters in fewer cubes, where two of them are one: determinizing takes conditions apart. Quadratic; left as they are past `MOST`."""
    rest = list(dict.fromkeys(cubes))
    if len(rest) > MOST:
        return rest
    done: list[Cube] = []
    while rest:
        cube = rest.pop(0)
        for other in [*rest, *done]:
            both = _united(cube, other)
            if both is not None:
                (rest if other in rest else done).remove(other)
                rest.insert(0, both)
                break
        else:
            done.append(cube)
    return done


MOST = 64
"""Transitions between two states whose conditions are united."""


def _united(first: Cube, second: Cube) -> Cube | None:
    """One cube for two, if there is one."""
    if first.beyond != second.beyond:
        return None
    if first.types == second.types and first.others == second.others:
        bits = first.holds ^ second.holds
        if len(bits) <= 1 and bits == first.fails ^ second.fails:
            return Cube(first.types, first.others, first.holds - bits, first.fails - bits, first.beyond)
    for one, rest in ((first, second), (second, first)):
        if len(one.types) == 1 and not rest.types and one.types <= rest.others and (one.holds, one.fails) == (rest.holds, rest.fails):
            return Cube(frozenset(), rest.others - one.types, one.holds, one.fails, one.beyond)
    return None


def mark_text(mark: Mark | None) -> str:
    """A mark as text."""
    return NOT_MARKED if mark is None else ", ".join(sorted(mark)) or HIDDEN


def condition(automaton: Automaton, cube: Cube) -> str:
    """The events that a cube takes, as text: `T[temp > 40]`, `ANY but A, B`."""
    text = " and ".join(_type(automaton, bit) for bit in sorted(cube.types)) or "ANY"
    if cube.others:
        text += f" but {', '.join(_type(automaton, bit) for bit in sorted(cube.others))}"
    conditions = [_test(automaton, bit) for bit in sorted(cube.holds)]
    conditions = [_operand(each) if len(conditions) > 1 else each for each in conditions]
    conditions += [f"NOT ({_test(automaton, bit)})" for bit in sorted(cube.fails)]
    conditions += cube.beyond
    return f"{text}[{' AND '.join(conditions)}]" if conditions else text


def _type(automaton: Automaton, bit: int) -> str:
    return automaton.predicates[bit].type or ""


def _test(automaton: Automaton, bit: int) -> str:
    return describe_expression(automaton.predicates[bit].condition)


def _operand(text: str) -> str:
    return f"({text})" if " OR " in text else text
