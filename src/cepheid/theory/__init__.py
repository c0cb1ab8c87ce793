"""What the theory of the papers says of automata and patterns, and no evaluation needs; `explain` asks for the class of an automaton with clocks.

Timed complex event automata (docs/theory/timed.md): `classes` says in which class an automaton or a pattern is, `clocks` has the transformations of
automata with clocks, `formulas` goes back to a pattern, `zones` is what they compute with.

Automata with registers (docs/theory/registers.md), also those written by hand: `closures` and `unroll` have union, concatenation, iteration and
intersection; and under a window of events a tree, and a deterministic automaton.

Patterns: `equivalence` is a bounded check that two queries have the same matches, `safe_form` the rewriting to patterns whose conditions are safe.
"""

from cepheid.theory.classes import (
    ClockClasses,
    classify,
    has_synchronous_resets,
    is_deterministic,
    is_simple,
    is_timed_cel,
    is_windowed,
    monotonic_in,
)
from cepheid.theory.clocks import determinize_timed, one_clock, trim_timed, two_clocks
from cepheid.theory.closures import concatenation, intersection, iteration, union
from cepheid.theory.equivalence import Counterexample, equivalent
from cepheid.theory.formulas import formula
from cepheid.theory.safe_form import safe_form
from cepheid.theory.unroll import UnionAutomaton, determinize_windowed, unroll

__all__ = [
    "ClockClasses",
    "Counterexample",
    "UnionAutomaton",
    "classify",
    "concatenation",
    "determinize_timed",
    "determinize_windowed",
    "equivalent",
    "formula",
    "has_synchronous_resets",
    "intersection",
    "is_deterministic",
    "is_simple",
    "is_timed_cel",
    "is_windowed",
    "iteration",
    "monotonic_in",
    "one_clock",
    "safe_form",
    "trim_timed",
    "two_clocks",
    "union",
    "unroll",
]
