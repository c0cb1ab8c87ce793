"""What a drawing says of an automaton: transitions between the same two states as one edge, conditions and marks as text.

Comes in: an `Automaton`. Goes out: `Link`s. A condition is written as in the language, `T[temp > 40]`; behind the slash stand the variables
that the event is put in, `(hidden)` where it is marked and shown in none, `-` where it is not marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.logical.describe import describe_expression

if TYPE_CHECKING:
    from cepheid.automata.automaton import Automaton, Mark, Predicate, Transition

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
    grouped: dict[tuple[int, int], list[Label]] = {}
    found = []
    for move in automaton.transitions:
        if move.waits:
            found.append(Link(move.source, move.target, (), waits=True))
        else:
            grouped.setdefault((move.source, move.target), []).append(Label(condition(automaton, move), mark_text(move.mark)))
    found += [Link(*ends, tuple(dict.fromkeys(labels))) for ends, labels in grouped.items()]
    return sorted(found, key=lambda link: (link.source, link.target, link.waits))


def mark_text(mark: Mark | None) -> str:
    """A mark as text."""
    return NOT_MARKED if mark is None else ", ".join(sorted(mark)) or HIDDEN


def condition(automaton: Automaton, move: Transition) -> str:
    """The events that a transition takes: `T[temp > 40]`, `ANY but A, B`; a type forbidden beside another one required is left out."""
    required = _chosen(automaton, move.requires)
    forbidden = _chosen(automaton, move.forbids)
    types = [predicate.type for predicate in required if predicate.type is not None]
    text = " and ".join(types) or "ANY"
    others = [predicate.type for predicate in forbidden if predicate.type is not None]
    if others and not types:
        text += f" but {', '.join(others)}"
    conditions = [describe_expression(each.condition) for each in required if each.condition is not None]
    conditions = [_operand(each) if len(conditions) > 1 else each for each in conditions]
    conditions += [f"NOT ({describe_expression(each.condition)})" for each in forbidden if each.condition is not None]
    return f"{text}[{' AND '.join(conditions)}]" if conditions else text


def _chosen(automaton: Automaton, bits: int) -> list[Predicate]:
    return [predicate for bit, predicate in enumerate(automaton.predicates) if bits >> bit & 1]


def _operand(text: str) -> str:
    return f"({text})" if " OR " in text else text
