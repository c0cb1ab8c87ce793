"""The texts of a drawing of an automaton: transitions between the same two states as one edge, conditions and marks as text.

Comes in: an `Automaton`. Goes out: `Link`s. A condition is written as in the language, `T[temp > 40]`, with the guards among its conditions. After
the slash come the variables that get the event. Without a slash, that is the variable with the name of the type; `(hidden)` if it is marked but no
variable shows it; `-` if it is not marked. What registers store is no part of a label: the guards that read it say the same.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from cepheid.logical.describe import describe_expression
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.automata.automaton import Automaton
    from cepheid.automata.transition import Mark, Transition

NOT_MARKED = "-"
HIDDEN = "(hidden)"


@record
class Label:
    """Transitions that mark their events alike: the condition and the mark as text.

    mark: "" for the variable of the type's name. stores: what registers hold afterwards, as text.
    """

    condition: str
    mark: str
    stores: str = ""

    def __str__(self) -> str:
        return f"{self.condition} / {self.mark}" if self.mark else self.condition

    @property
    def text(self) -> str:
        """The label with what is stored."""
        return f"{self} (stores {self.stores})" if self.stores else str(self)


@record
class Link:
    """All transitions from one state to another, but for the waiting loop, which is a link of its own."""

    source: int
    target: int
    labels: tuple[Label, ...]
    waits: bool = False

    @property
    def said(self) -> str:
        """What the link asks for, in one line."""
        return "any event, not marked" if self.waits else "; ".join(label.text for label in self.labels)

    @property
    def text(self) -> str:
        """The link in one line."""
        return f"{self.source} -> {self.target}: {self.said}"

    @property
    def shown(self) -> tuple[Label, ...]:
        """The labels without what is stored; those that are alike then, once."""
        return tuple(dict.fromkeys(dataclasses.replace(label, stores="") for label in self.labels))


def links(automaton: Automaton) -> list[Link]:
    """The links of an automaton, by source, then target."""
    grouped: dict[tuple[int, int], dict[_Done, list[Cube]]] = {}
    for move in automaton.transitions:
        grouped.setdefault((move.source, move.target), {}).setdefault(_done(automaton, move), []).append(cube_of(automaton, move))
    found = []
    for (source, target), marks in grouped.items():
        conditions: dict[_Done, list[str]] = {}
        for done, cubes in marks.items():
            united = unite(cubes)
            if done.stays and Cube() in united:
                found.append(Link(source, target, (), waits=True))
            else:
                own = dataclasses.replace(done, types=frozenset())
                conditions.setdefault(own, []).extend(condition(automaton, cube) for cube in united)
        if conditions:
            labels = tuple(Label(" or ".join(texts), done.mark, done.stores) for done, texts in conditions.items())
            found.append(Link(source, target, labels))
    return sorted(found, key=lambda link: (link.source, link.target, link.waits))


@record
class _Done:
    """What a transition does with an event. types: those that it asks for, where its mark leaves out their variable."""

    stays: bool
    mark: str
    stores: str
    types: frozenset[str] = frozenset()


def _done(automaton: Automaton, move: Transition) -> _Done:
    types = {predicate.type for bit, predicate in enumerate(automaton.predicates) if move.requires >> bit & 1} - {None}
    own = move.mark is not None and len(types) == 1 and types <= move.mark
    mark = ", ".join(sorted((move.mark or frozenset()) - types)) if own else mark_text(move.mark)
    places = automaton.alphabet.written(dataclasses.replace(move, writes=frozenset()))
    stores = automaton.alphabet.written(dataclasses.replace(move, parts=frozenset())).removeprefix(", ")
    return _Done(move.stays, (mark + places).removeprefix(", "), stores, frozenset(filter(None, types)) if own else frozenset())


@record
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
    conditions = [*(_test(automaton, bit) for bit in sorted(cube.holds)), *map(_guard, cube.beyond)]
    conditions = [_operand(each) if len(conditions) + len(cube.fails) > 1 else each for each in conditions]
    conditions += [f"NOT ({_test(automaton, bit)})" for bit in sorted(cube.fails)]
    return f"{text}[{' AND '.join(conditions)}]" if conditions else text


def _type(automaton: Automaton, bit: int) -> str:
    return automaton.predicates[bit].type or ""


def _test(automaton: Automaton, bit: int) -> str:
    return describe_expression(automaton.predicates[bit].condition)


STORED = re.compile(r"\((?!(?:start|position|place|events) )(\$?\w+) of (\w+)\)")
"""A register with an attribute of one variable, as guards write it."""


def _guard(text: str) -> str:
    """A guard as the language writes it: `v = x.v` for `(v = (v of x))`."""
    text = STORED.sub(r"\2.\1", text)
    return text[1:-1] if text.startswith("(") and _closes(text) == len(text) - 1 else text


def _closes(text: str) -> int:
    """Where the parenthesis that a text begins with is closed; those in quotes are none."""
    depth, quoted = 0, False
    for place, character in enumerate(text):
        quoted ^= character == "'"
        depth += 0 if quoted else (character == "(") - (character == ")")
        if depth == 0:
            return place
    return -1


def _operand(text: str) -> str:
    return f"({text})" if " OR " in text else text
