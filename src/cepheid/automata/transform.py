"""Automaton to automaton: trim, hide, I/O-determinize."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from typing import TYPE_CHECKING, TypeVar

from cepheid.automata.alphabet import Scope
from cepheid.automata.registers import by_register
from cepheid.automata.transition import Transition, order
from cepheid.errors import LimitError, NotSupportedError, quoted
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from cepheid.automata.alphabet import Alphabet, Tracker
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.registers import Store
    from cepheid.automata.transition import Mark
    from cepheid.logical.plan import Expression

T = TypeVar("T", bound="Hashable")

MAX_DETERMINISTIC_STATES = 5_000
"""Macro states that an eager determinization may make; evaluation determinizes lazily and has no such bound."""


def trim(automaton: Automaton) -> Automaton:
    """Only the states that lie on a way from the initial to a final state, renumbered from 0 = initial; linear."""
    keep = between(automaton, automaton.transitions) | {automaton.initial}
    ordered = sorted(keep, key=lambda state: (state != automaton.initial, state in automaton.finals, state))
    number = {state: index for index, state in enumerate(ordered)}
    moves = (
        dataclasses.replace(t, source=number[t.source], target=number[t.target])
        for t in automaton.transitions
        if t.source in keep and t.target in keep
    )
    finals = frozenset(number[s] for s in automaton.finals & keep)
    return dataclasses.replace(automaton, states=len(ordered), initial=0, finals=finals, transitions=order(moves))


def between(automaton: Automaton, moves: Iterable[Transition]) -> set[int]:
    """The states on a way from the initial to a final state by some of the transitions; linear."""
    edges = [(move.source, move.target) for move in moves]
    return reached({automaton.initial}, edges) & reached(automaton.finals, ((target, source) for source, target in edges))


def reached(start: Iterable[T], edges: Iterable[tuple[T, T]]) -> set[T]:
    """The states that one gets to from some states by edges (from, to), themselves included; linear."""
    following: dict[T, list[T]] = {}
    for source, target in edges:
        following.setdefault(source, []).append(target)
    seen = set(start)
    todo = list(seen)
    while todo:
        for target in following.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def without_twins(automaton: Automaton) -> Automaton:
    """The same matches, with states from which the same can follow as one (bisimulation). O(transitions) per round, few rounds."""
    classes = [int(state == automaton.initial) + 2 * (state in automaton.finals) for state in range(automaton.states)]
    while True:
        numbers: dict[object, int] = {}
        ways = [
            frozenset((move.requires, move.forbids, move.label, move.writes, classes[move.target]) for move in automaton.outgoing[state])
            for state in range(automaton.states)
        ]
        refined = [numbers.setdefault((classes[state], ways[state]), len(numbers)) for state in range(automaton.states)]
        if len(numbers) == len(set(classes)):
            break
        classes = refined
    moves = (dataclasses.replace(move, source=refined[move.source], target=refined[move.target]) for move in automaton.transitions)
    finals = frozenset(refined[state] for state in automaton.finals)
    return trim(
        dataclasses.replace(automaton, states=len(numbers), initial=refined[automaton.initial], finals=finals, transitions=order(moves))
    )


def project(automaton: Automaton, variables: Iterable[str]) -> Automaton:
    """Every mark restricted to `variables` (PROJECT on the whole automaton); events shown in none of them keep an empty mark."""
    shown = frozenset(variables)
    moves = (t if t.mark is None else dataclasses.replace(t, mark=t.mark & shown) for t in automaton.transitions)
    return dataclasses.replace(automaton, transitions=order(moves))


def hide(automaton: Automaton) -> Automaton:
    """Empty marks inside a match become no marks; the first and the last event keep theirs, for they are its interval; so do places in parts.

    After it, without parts, a run's marks and its complex event (interval and mapping) determine each other, so determinization leaves no duplicates.
    """
    moves = (
        dataclasses.replace(t, mark=None)
        if t.mark is not None and not t.mark and not t.parts and t.source != automaton.initial and t.target not in automaton.finals
        else t
        for t in automaton.transitions
    )
    return trim(dataclasses.replace(automaton, transitions=order(moves)))


def spans(automaton: Automaton, begins: Expression | None = None, *, inside: bool = False) -> Automaton:
    """The intervals of an automaton's matches, whatever these mark.

    begins: as `Automaton.begins`, None where the event that is read first says where a match begins. inside: whether the last event never does.
    """
    if begins is None:
        return hide(project(automaton, ()))
    says, last = frozenset({"begin"}), automaton.finals if inside else frozenset[int]()
    moves = (t if t.mark is None else dataclasses.replace(t, mark=frozenset() if t.target in last else says) for t in automaton.transitions)
    return dataclasses.replace(automaton, transitions=order(moves), begins=begins)


def shows_labels(automaton: Automaton) -> bool:
    """Whether what a match shows says where its parts are: then different labels are different matches.

    True only if no two runs over the same letters can show the same and differ in a label, whatever their guards say. O(pairs of transitions); False
    past MOST_PAIRS pairs of states.
    """
    letters = automaton.alphabet.mask(Scope.EVENT) | automaton.alphabet.mask(Scope.PARTITION)
    start = (automaton.initial, automaton.initial, False)
    found, todo = {start}, [start]
    edges: list[tuple[_Pair, _Pair]] = []
    while todo:
        pair = todo.pop()
        for one, other in itertools.product(automaton.outgoing[pair[0]], automaton.outgoing[pair[1]]):
            if (one.mark or None) != (other.mark or None):
                continue
            if automaton.alphabet.asked((one.requires | other.requires) & letters, (one.forbids | other.forbids) & letters) is None:
                continue
            after = one.target, other.target, pair[2] or one.label != other.label
            edges.append((pair, after))
            if after not in found:
                found.add(after)
                todo.append(after)
        if len(found) > MOST_PAIRS:
            return False
    return start not in reached(
        [pair for pair in found if pair[2] and {pair[0], pair[1]} <= automaton.finals], ((after, pair) for pair, after in edges)
    )


MOST_PAIRS = 10_000
"""Pairs of states that `shows_labels` looks at."""

_Pair = tuple[int, int, bool]
"""Two states of runs that show the same, and whether their labels differ somewhere."""


# ----------------------------------------------------------------------------------------------------------------- determinization


@record(slots=False)
class Successors:
    """Where a macro state goes on one letter: at most one macro state per mark, and one without a mark (0: nowhere)."""

    marked: tuple[tuple[Mark, int], ...]
    unmarked: int


def successors(automaton: Automaton, macro: int, letter: int) -> Successors:
    """One step of the subset construction with respect to marks (foundations-cel, Proposition 1).

    macro: a set of states as a bit mask. O(transitions that leave the macro state).
    """
    automaton.alphabet.refuse_guards("determinization by letters")
    automaton.refuse_parts("determinization by letters")
    marked: dict[Mark, int] = {}
    unmarked = 0
    for state in members(macro):
        for move in automaton.outgoing[state]:
            if not move.enabled(letter):
                continue
            if move.mark is None:
                unmarked |= 1 << move.target
            else:
                marked[move.mark] = marked.get(move.mark, 0) | 1 << move.target
    return Successors(tuple(sorted(marked.items(), key=lambda item: sorted(item[0]))), unmarked)


def members(macro: int) -> Iterator[int]:
    """The states of a macro state, ascending."""
    while macro:
        low = macro & -macro
        yield low.bit_length() - 1
        macro ^= low


def determinize(automaton: Automaton, *, synchronous: bool = False) -> Automaton:
    """An I/O-deterministic automaton with the same complex events: two transitions of one state exclude each other or differ in their mark.

    The states of a macro state share what registers hold, so moves that one event takes with one mark must store the same (timed-cel, Theorem 5.3).
    Raises NotSupportedError where they do not. synchronous: whether resets are known to be synchronous (`classes.has_synchronous_resets`); then
    no run comes where they do not, and these moves are left out. `clocks.determinize_timed` asks.

    Exponential in the worst case (Proposition 1); raises LimitError past `MAX_DETERMINISTIC_STATES`. Evaluation uses `successors` lazily;
    this is for people who look at the automaton, and for proofs by test. A macro state that holds a final state is final, and may go on.
    """
    automaton.refuse_parts("determinization")
    numbers = {1 << automaton.initial: 0}
    todo = [1 << automaton.initial]
    moves = []
    finals = sum(1 << state for state in automaton.finals)

    def number(macro: int) -> int:
        if macro not in numbers:
            if len(numbers) == MAX_DETERMINISTIC_STATES:
                raise LimitError(
                    f"determinizing needs more than {MAX_DETERMINISTIC_STATES} states (MAX_DETERMINISTIC_STATES)",
                    help="evaluation determinizes lazily and does not need this",
                )
            numbers[macro] = len(numbers)
            todo.append(macro)
        return numbers[macro]

    while todo:
        macro = todo.pop()
        for requires, forbids in _cubes(automaton, macro):
            for mark, (target, stores) in _joined(automaton, macro, requires).items():
                if len(stores) == 1:
                    moves.append(Transition(numbers[macro], number(target), requires, mark, forbids, frozenset().union(*stores)))
                elif not synchronous:
                    raise _stores_differ(automaton, stores)
    accepting = frozenset(n for macro, n in numbers.items() if macro & finals)
    return trim(dataclasses.replace(automaton, states=len(numbers), initial=0, finals=accepting, transitions=order(moves)))


def _joined(automaton: Automaton, macro: int, mask: int) -> dict[Mark | None, tuple[int, set[frozenset[Store]]]]:
    """For each mark, sorted, None at the end: the macro state that the enabled moves lead to, and what each of them stores."""
    found: dict[Mark | None, tuple[int, set[frozenset[Store]]]] = {}
    enabled = (move for state in members(macro) for move in automaton.outgoing[state] if move.enabled(mask))
    for move in sorted(enabled, key=lambda move: (move.mark is None, sorted(move.mark or ()))):
        target, stores = found.get(move.mark, (0, set()))
        found[move.mark] = target | 1 << move.target, stores | {move.writes}
    return found


def _stores_differ(automaton: Automaton, stores: Iterable[frozenset[Store]]) -> NotSupportedError:
    names = [automaton.alphabet.names[store.register] for store in sorted(frozenset().union(*stores), key=by_register)]
    return NotSupportedError(
        f"determinization needs moves with one output to store the same, and these store differently in {quoted(dict.fromkeys(names))}",
        help="reset the same clocks wherever the output is the same, or mark the events that tell the moves apart",
    )


def _cubes(automaton: Automaton, macro: int) -> Iterator[tuple[int, int]]:
    """Exclusive and exhaustive (requires, forbids) masks that decide every transition of a macro state."""
    return cubes([move for state in members(macro) for move in automaton.outgoing[state]], automaton.alphabet)


def cubes(moves: Sequence[Transition], alphabet: Alphabet, *, effects: Sequence[object] | None = None) -> Iterator[tuple[int, int]]:
    """Exclusive and exhaustive (requires, forbids) masks over letters, each of which enables all of a move or nothing of it.

    An event has one type, so a cube that requires a type forbids every other type; trackers have no states but theirs. Exponential in the
    number of bits that the moves look at, if they all do. effects: of each move; then a cube need only decide which effects there are.
    """
    types = alphabet.types
    needed = 0
    for move in moves:
        needed |= move.requires | move.forbids
    tests = list(dict.fromkeys((move.requires, move.forbids) for move in moves if move.requires or move.forbids))
    trackers = [tracker for tracker in alphabet.trackers if needed & tracker.mask]
    bits = sorted((1 << index for index in members(needed)), key=lambda bit: (not bit & types, bit))
    if not needed & ~types and not any(forbids or requires & (requires - 1) for requires, forbids in tests):
        # PERF: types alone, as in most patterns: what is below would find the same.
        yield from ((bit, types & ~bit) for bit in bits)
        yield 0, needed
        return
    if effects is not None or alphabet.is_long:
        yield from _cubes_by_effect(
            moves, effects or [(move.source, move.target, move.mark, move.writes) for move in moves], trackers, types
        )
        return
    todo: list[tuple[int, int, int]] = [(0, 0, 0)]
    while todo:
        depth, requires, forbids = todo.pop()
        if trackers and not all(tracker.possible(requires, forbids) for tracker in trackers):
            continue
        if depth == len(bits) or not _open(tests, requires, forbids):
            yield requires, forbids
            continue
        while depth < len(bits) and bits[depth] & (requires | forbids):
            depth += 1
        if depth == len(bits):
            yield requires, forbids
            continue
        bit = bits[depth]
        todo.append((depth + 1, requires, forbids | bit))
        todo.append((depth + 1, requires | bit, forbids | (types & ~bit if bit & types else 0)))


def _cubes_by_effect(
    moves: Sequence[Transition], effects: Sequence[object], trackers: Sequence[Tracker], types: int
) -> Iterator[tuple[int, int]]:
    """The same for hundreds of conditions: of moves with the same effect a cube enables one or none.

    So 200 alternatives that lead to one state have 201 cubes, and not one for each subset.
    """
    groups: dict[object, list[tuple[int, int]]] = {}
    for move, effect in zip(moves, effects, strict=True):
        groups.setdefault(effect, []).append((move.requires, move.forbids))
    todo = [(0, 0)]
    while todo:
        requires, forbids = todo.pop()
        if not all(tracker.possible(requires, forbids) for tracker in trackers):
            continue
        undecided = 0
        for tests in groups.values():
            missing = [
                required & ~requires | forbidden & ~forbids
                for required, forbidden in tests
                if not (required & forbids or forbidden & requires)
            ]
            if all(missing):
                undecided = functools.reduce(operator.or_, missing, undecided)
        if not undecided:
            yield requires, forbids
            continue
        bit = undecided & types or undecided
        bit &= -bit
        todo.append((requires, forbids | bit))
        todo.append((requires | bit, forbids | (types & ~bit if bit & types else 0)))


def _open(tests: Iterable[tuple[int, int]], requires: int, forbids: int) -> bool:
    """Whether some test (requires and forbids of a move) neither holds for all nor for none of the letters of the cube."""
    for required, forbidden in tests:
        excluded = required & forbids or forbidden & requires
        if not excluded and (required & ~requires or forbidden & ~forbids):
            return True
    return False


def united(cubes: Iterable[tuple[int, int]], types: int) -> tuple[tuple[int, int], ...]:
    """The same letters in fewer (requires, forbids) masks, sorted; a type forbidden beside another one required says nothing.

    types: the bits of which a letter has one at most. Not always the fewest. O(cubes x bits) sets per round, few rounds.
    """
    # Per conditions (masks without types) the types that go with them; `other` stands for an event of none of them.
    other = 1 << types.bit_length()
    kinds: dict[tuple[int, int], int] = {}
    for requires, forbids in cubes:
        required = requires & types
        allowed = (required or types | other) & ~(forbids & types)
        if not required & (required - 1):
            conditions = requires & ~types, forbids & ~types
            kinds[conditions] = kinds.get(conditions, 0) | allowed
    while True:
        fewer: dict[tuple[int, int], int] = {}
        for allowed in dict.fromkeys(kinds.values()):
            for conditions in _united_conditions({each for each, own in kinds.items() if own == allowed}):
                fewer[conditions] = fewer.get(conditions, 0) | allowed
        if len(fewer) == len(kinds):
            break
        kinds = fewer
    found = []
    for (requires, forbids), allowed in kinds.items():
        if allowed & other:
            found.append((requires, forbids | types & ~allowed))
        else:
            found += [(requires | 1 << index, forbids) for index in members(allowed)]
    return tuple(sorted(found))


def _united_conditions(cubes: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Two cubes that differ in one bit, which one requires and the other forbids, are one without it."""
    todo = sorted(cubes)
    while todo:
        requires, forbids = cube = todo.pop()
        for index in members(requires | forbids) if cube in cubes else ():
            bit = 1 << index
            other = (requires ^ bit, forbids ^ bit)
            if other in cubes:
                cubes -= {cube, other}
                todo.append((requires & ~bit, forbids & ~bit))
                cubes.add(todo[-1])
                break
    return cubes


def coverage(moves: Sequence[Transition], masks: Iterable[int]) -> bool:
    """Whether every letter that has all bits of none of the masks enables one of the moves; False also where that takes too long to find out."""
    masks = tuple(masks)
    todo, steps = [(0, 0)], 0
    while todo:
        requires, forbids = todo.pop()
        steps += 1
        if any(not mask & ~requires for mask in masks):
            continue
        possible = [move for move in moves if not move.requires & forbids and not move.forbids & requires]
        if any(not move.requires & ~requires and not move.forbids & ~forbids for move in possible):
            continue
        undecided = [(move.requires & ~requires) | (move.forbids & ~forbids) for move in possible]
        if not undecided or steps > COVERAGE_STEPS:
            return False
        bit = undecided[0] & -undecided[0]
        todo += [(requires | bit, forbids), (requires, forbids | bit)]
    return True


COVERAGE_STEPS = 10_000
"""Cases that `coverage` tells apart."""
