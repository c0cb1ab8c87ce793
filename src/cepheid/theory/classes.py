"""The classes of timed-cel: which automata with clocks are deterministic, monotonic or synchronous, which patterns are simple or windowed.

Comes in: any automaton, also one that is written by hand, or a pattern. Goes out: a verdict, by the definitions of the paper. Names in paper:
deterministic and synchronous resets (section 5), monotonic (section 6), simple and windowed formulas (before Theorem 5.5), C* (Theorem 6.1).

Two of these definitions speak of an automaton as it is written: `is_deterministic` and `monotonic_in` look at transitions alone, reachable or not.
`has_synchronous_resets` speaks of runs, accepting or not. So dead ends count: `trim` first, where they should not.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from cepheid.errors import LimitError
from cepheid.logical import plan
from cepheid.logical.tree import walk
from cepheid.logical.variables import operands
from cepheid.records import record
from cepheid.theory.zones import Zone, always_set, clock_moves, greatest_ages, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.automata.automaton import Automaton
    from cepheid.logical.plan import Pattern
    from cepheid.theory.zones import ClockMove

ZONE_LIMIT = 20_000
"""Combinations of states with a zone that an exploration of runs visits."""

AT_MOST, AT_LEAST = "<=", ">="
"""The comparisons of monotonic automata."""


@record
class ClockClasses:
    """The classes of an automaton: `classify` gives them.

    clocks: how many it has. deterministic: see `is_deterministic`. monotonic: see `monotonic_in`. synchronous: see `has_synchronous_resets`.
    """

    clocks: int
    deterministic: bool
    monotonic: frozenset[str]
    synchronous: bool

    @property
    def constant_update(self) -> bool:
        """Whether Theorem 6.1 applies: deterministic, monotonic, one clock at most. Then an event costs O(1) time, and the delay is output-linear."""
        return self.deterministic and bool(self.monotonic) and self.clocks <= 1

    def __str__(self) -> str:
        words = {
            f"{self.clocks} clock{'' if self.clocks == 1 else 's'}": True,
            "deterministic": self.deterministic,
            "monotonic": bool(self.monotonic),
            "synchronous resets": self.synchronous,
        }
        return ", ".join(
            word if holds else f"not {word}" if word != "synchronous resets" else f"no {word}" for word, holds in words.items()
        )


def classify(automaton: Automaton) -> ClockClasses:
    """The classes of an automaton with clocks; one without registers has no clock, and all conditions on clocks hold of it.

    Raises NotSupportedError where the classes are not defined: where a register holds anything but the time of one event, or where letters depend on
    more than the event. Raises LimitError, and costs, as `has_synchronous_resets`.
    """
    return ClockClasses(
        len(automaton.alphabet.registers), is_deterministic(automaton), monotonic_in(automaton), has_synchronous_resets(automaton)
    )


def is_deterministic(automaton: Automaton) -> bool:
    """Whether any two transitions of one state that one event may take together have different outputs (timed-cel, section 5).

    The output of an unmarked event is the empty one, as that of an event marked with no variable. Types exclude each other, and so do comparisons
    with constants; other conditions on events are taken as independent. Raises NotSupportedError as `classify`. O(transitions^2 x tests).
    """
    moves = clock_moves(automaton)
    set_at = always_set(moves, automaton)
    every = frozenset(range(len(automaton.alphabet.registers)))
    return not any(
        one.output == other.output
        and together(one.event, other.event, automaton.alphabet)
        and (one.condition & other.condition).is_satisfiable(every - set_at[one.source])
        for own in _outgoing(moves, automaton)
        for one, other in itertools.combinations(own, 2)
    )


def monotonic_in(automaton: Automaton) -> frozenset[str]:
    """The comparisons, `<=` or `>=`, by which alone the automaton asks its clocks; it is monotonic if there is one (timed-cel, section 6).

    Both where nothing is asked. A strict bound is a closed one here, since time is counted in steps. Raises NotSupportedError as `classify`. Linear.
    """
    found = {AT_MOST, AT_LEAST}
    for each in clock_moves(automaton):
        for ages in each.condition.ages.values():
            if len(ages) != 1 or ages[0][0] > 0:
                found.discard(AT_MOST)
            if len(ages) != 1 or ages[0][1] is not None:
                found.discard(AT_LEAST)
    return frozenset(found)


def has_synchronous_resets(automaton: Automaton) -> bool:
    """Whether any two runs over the same events with the same output reset the same clocks at each of them (timed-cel, Theorem 5.4).

    The runs begin at the same event, and need not be accepting. Two runs that reset the same clocks have the same valuation, so pairs of states
    with a zone are explored. The problem is PSPACE-complete: exponential in the clocks and in the digits of their bounds, at worst. Raises LimitError
    past ZONE_LIMIT, and NotSupportedError as `classify`.
    """
    moves = clock_moves(automaton)
    return _resets_follow_outputs(automaton, moves) or not _resets_differ(automaton, moves)


def _resets_follow_outputs(automaton: Automaton, moves: Sequence[ClockMove]) -> bool:
    """Whether what a transition resets depends on its output, and on whether it is the first of a run, alone: then resets are synchronous."""
    begins = all(each.target != automaton.initial for each in moves)
    found: dict[object, frozenset[int]] = {}
    return all(found.setdefault((each.output, begins and each.source == automaton.initial), each.resets) == each.resets for each in moves)


def _resets_differ(automaton: Automaton, moves: Sequence[ClockMove]) -> bool:
    """Whether two runs with one output may reset different clocks at one event, for the first time."""
    outgoing, greatest = _outgoing(moves, automaton), greatest_ages(moves)
    first = (automaton.initial, automaton.initial, Zone())
    seen, todo = {first}, [first]
    while todo:
        left, right, zone = todo.pop()
        for one, other in itertools.product(outgoing[left], outgoing[right]):
            if one.output != other.output or not together(one.event, other.event, automaton.alphabet):
                continue
            for after in zone.after(one.condition & other.condition, one.resets, greatest):
                if one.resets != other.resets:
                    return True
                pair = (min(one.target, other.target), max(one.target, other.target), after)
                if pair not in seen:
                    check_zones(len(seen))
                    seen.add(pair)
                    todo.append(pair)
    return False


def check_zones(count: int) -> None:
    """Raise LimitError where one more combination of states with a zone would be too many."""
    if count == ZONE_LIMIT:
        raise LimitError(
            f"the runs of the automaton reach more than {ZONE_LIMIT} combinations of states and zones of its clocks (ZONE_LIMIT)",
            help=(
                "use fewer clocks, or bounds that are multiples of a longer unit, or `trim` the automaton",
                "cepheid.theory.classes.ZONE_LIMIT is the limit",
            ),
        )


def _outgoing(moves: Sequence[ClockMove], automaton: Automaton) -> list[list[ClockMove]]:
    found = defaultdict(list)
    for each in moves:
        found[each.source].append(each)
    return [found[state] for state in range(automaton.states)]


# ------------------------------------------------------------------------------------------------------------------------- patterns

TIMED_CEL = (plan.Event, plan.Named, plan.Filter, plan.Or, plan.And, plan.Sequence, plan.Iterate, plan.Project, plan.Within)
"""The operators of timed CEL; counted iterations are short for sequences."""


def is_timed_cel(pattern: Pattern) -> bool:
    """Whether a pattern is a formula of timed CEL: no operators but those of `TIMED_CEL`, filters over one event each, no negation. Linear."""
    return all(isinstance(each, TIMED_CEL) and _is_of_the_paper(each) for each in walk(pattern))


def _is_of_the_paper(pattern: Pattern) -> bool:
    match pattern:
        case plan.Filter(conditions=conditions):
            return all(map(plan.is_local, conditions))
        case plan.Sequence(links=links):
            return all(link.operator in {";", ":"} and link.without is None for link in links)
    return True


def is_simple(pattern: Pattern) -> bool:
    """Whether a pattern is a simple formula of timed CEL: without PROJECT and without WITHIN (timed-cel, section 5). Linear."""
    return is_timed_cel(pattern) and not any(isinstance(each, plan.Project | plan.Within) for each in walk(pattern))


def is_windowed(pattern: Pattern) -> bool:
    """Whether a pattern is a windowed formula of timed CEL (timed-cel, section 5). O(nodes x depth).

    Below, simple formulas, and formulas without gaps and windows; around them AS, FILTER, OR, AND and WITHIN. Then `two_clocks` finds an automaton
    with two clocks, which `determinize_timed` determinizes (Theorem 5.5).
    """
    if is_simple(pattern) or (is_timed_cel(pattern) and not any(map(_is_timed, walk(pattern)))):
        return True
    if isinstance(pattern, plan.Named | plan.Filter | plan.Or | plan.And | plan.Within) and is_timed_cel(pattern):
        return all(map(is_windowed, operands(pattern)))
    return False


def _is_timed(pattern: Pattern) -> bool:
    match pattern:
        case plan.Within() | plan.Iterate(gap=plan.Interval()):
            return True
        case plan.Sequence(links=links):
            return any(link.gap is not None for link in links)
    return False
