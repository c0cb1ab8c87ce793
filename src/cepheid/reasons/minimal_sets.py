"""The minimal sets that have a monotone property, found with few questions.

Reiter's tree of hitting sets (A theory of diagnosis from first principles, 1987): a node is a set of elements that are left out. Where what is left
has the property, it has a minimal set; each other minimal set lacks one of its elements, so each of them is a branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Known:
    """A monotone property of sets, asked once where what is known does not answer: a set with a part that has it has it, too."""

    def __init__(self, asked: Callable[[frozenset[Any]], bool]) -> None:
        self.asked = asked
        self.true: list[frozenset[Any]] = []
        self.false: list[frozenset[Any]] = []

    def __call__(self, elements: frozenset[Any]) -> bool:
        """Whether a set has the property."""
        if any(known <= elements for known in self.true):
            return True
        if any(elements <= known for known in self.false):
            return False
        answer = self.asked(elements)
        (self.true if answer else self.false).append(elements)
        return answer


def minimal_sets(elements: Sequence[Any], holds: Callable[[frozenset[Any]], bool]) -> Iterator[frozenset[Any]]:
    """The minimal sets of elements with a monotone property, each once, as they are found; the last elements are left out first."""
    known = holds if isinstance(holds, Known) else Known(holds)
    found: list[frozenset[Any]] = []
    todo: list[frozenset[Any]] = [frozenset()]
    seen = set(todo)
    while todo:
        left_out = todo.pop(0)
        minimal = next((own for own in found if own.isdisjoint(left_out)), None)
        if minimal is None:
            rest = frozenset(elements) - left_out
            if not known(rest):
                continue
            minimal = _shrunk(elements, rest, known)
            found.append(minimal)
            yield minimal
        for element in elements:
            more = left_out | {element}
            if element in minimal and more not in seen:
                seen.add(more)
                todo.append(more)


def _shrunk(elements: Sequence[Any], rest: frozenset[Any], known: Callable[[frozenset[Any]], bool]) -> frozenset[Any]:
    for element in reversed(elements):
        if element in rest and known(rest - {element}):
            rest -= {element}
    return rest
