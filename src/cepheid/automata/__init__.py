"""Automata: a rewritten plan becomes a complex event automaton, and this becomes the flat program of the kernel.

Comes in: a `QueryPlan` in LP-normal form (`logical.rewrite`). `construct` has one construction per operator, `transform` works on whole
automata (trim, hide, determinize), `program` is what the engine runs. Not done here: windows, partitions and limits (the engine's bounds).

Beside this way, the theory of timed complex event automata (docs/theory/timed.md): `classes` says in which class an automaton or a pattern is,
`clocks` has the transformations of automata with clocks, `formulas` goes back to a pattern.

For automata with registers, also those written by hand, `closures` and `unroll` have what theory says of them: union, concatenation, iteration and
intersection; and under a window of events a tree, and a deterministic automaton. The engine needs none of these.
"""

from cepheid.automata.alphabet import Alphabet, Flag, Guard, Predicate, Scope, Tracker
from cepheid.automata.automaton import Automaton
from cepheid.automata.classes import (
    ClockClasses,
    classify,
    has_synchronous_resets,
    is_deterministic,
    is_simple,
    is_timed_cel,
    is_windowed,
    monotonic_in,
)
from cepheid.automata.clocks import determinize_timed, one_clock, trim_timed, two_clocks
from cepheid.automata.closures import concatenation, intersection, iteration, union
from cepheid.automata.construct import construct
from cepheid.automata.formulas import formula
from cepheid.automata.program import ChoiceProgram, EndProgram, Program, end_program, program_of, span_program, strategy_program
from cepheid.automata.registers import Before, Elapsed, Now, Register, Store
from cepheid.automata.transform import determinize, hide, project, trim
from cepheid.automata.transition import Transition
from cepheid.automata.unroll import UnionAutomaton, determinize_windowed, unroll

__all__ = [
    "Alphabet",
    "Automaton",
    "Before",
    "ChoiceProgram",
    "ClockClasses",
    "Elapsed",
    "EndProgram",
    "Flag",
    "Guard",
    "Now",
    "Predicate",
    "Program",
    "Register",
    "Scope",
    "Store",
    "Tracker",
    "Transition",
    "UnionAutomaton",
    "classify",
    "concatenation",
    "construct",
    "determinize",
    "determinize_timed",
    "determinize_windowed",
    "end_program",
    "formula",
    "has_synchronous_resets",
    "hide",
    "intersection",
    "is_deterministic",
    "is_simple",
    "is_timed_cel",
    "is_windowed",
    "iteration",
    "monotonic_in",
    "one_clock",
    "program_of",
    "project",
    "span_program",
    "strategy_program",
    "trim",
    "trim_timed",
    "two_clocks",
    "union",
    "unroll",
]
