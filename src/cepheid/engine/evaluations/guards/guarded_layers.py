"""Macro states whose groups are made when they are asked, by layers: for the kernel of guards (`cepheid.kernel.guards`).

In `A AS x ; D ; B AS y FILTER y.id = x.id` an event D moves all groups, one for each id alive, and asks nothing of them. It makes one cell, a
**layer**, and no group is visited. A B asks for one id: then the groups of this id alone are made, from the layers that came since it was asked last.
Here is decided for which macro states that is right, from the moves between all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cepheid.automata.regions import Macro


@record
class Move:
    """A region of a macro state: where it leads, and the slots that are equal to values of its event.

    kept: the slots whose values the target keeps, in its order, where nothing else is asked or kept; else None. carried: whether values are kept that
    nothing is equal to.
    """

    source: Macro
    targets: tuple[Macro, ...]
    equal: frozenset[int]
    kept: tuple[int, ...] | None
    carried: bool


@record
class Layered:
    """A macro state that is entered by layers alone: from which one, and the slot of that one for each of its own."""

    source: Macro
    slots: tuple[int, ...]


def layered(moves: Sequence[Move], ended: Collection[Macro]) -> dict[Macro, Layered]:
    """The macro states that are entered by layers alone; ended: those whose groups some event ends.

    Each is entered from one other macro state, by regions that keep some values of its groups and ask nothing, and no group of either ends. And each
    is asked for groups by the values of all its slots, or moves all of them by layers in its turn.
    """
    found: dict[Macro, Layered] = {}
    for target in {target for move in moves for target in move.targets} & {move.source for move in moves} - set(ended):
        into = {(move.source, move.kept) for move in moves if target in move.targets}
        source, kept = next(iter(into))
        if len(into) == 1 and kept and source is not target and source not in ended:
            found[target] = Layered(source, kept)
    while wrong := {move.source for move in moves if move.source in found and not _is_by_values(move, found)}:
        for macro in wrong:
            del found[macro]
    return found


def _is_by_values(move: Move, found: dict[Macro, Layered]) -> bool:
    """Whether a move from such a macro state asks for groups by all their values, or makes a layer that keeps all."""
    if move.equal.issuperset(range(move.source.slots)) and not move.carried:
        return True
    return any(target in found and len(found[target].slots) == move.source.slots for target in move.targets)
