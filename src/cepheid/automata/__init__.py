"""Automata: a rewritten plan becomes a complex event automaton, and this becomes the flat program of the kernel.

Comes in: a `QueryPlan` in LP-normal form (`logical.rewrite`). `construct` has one construction per operator, `transform` works on whole
automata (trim, hide, determinize), `program` is what the engine runs. Not done here: windows, partitions and limits (the engine's bounds).

For automata with registers, also those written by hand, `closures` and `unroll` have what theory says of them: union, concatenation, iteration and
intersection; and under a window of events a tree, and a deterministic automaton. The engine needs none of these.
"""

from cepheid.automata.alphabet import Alphabet, Flag, Predicate, Scope, Tracker
from cepheid.automata.automaton import Automaton
from cepheid.automata.closures import concatenation, intersection, iteration, union
from cepheid.automata.construct import construct
from cepheid.automata.program import ChoiceProgram, EndProgram, Program, end_program, program_of, span_program, strategy_program
from cepheid.automata.transform import determinize, hide, trim
from cepheid.automata.transition import Transition
from cepheid.automata.unroll import UnionAutomaton, determinize_windowed, unroll

__all__ = [
    "Alphabet",
    "Automaton",
    "ChoiceProgram",
    "EndProgram",
    "Flag",
    "Predicate",
    "Program",
    "Scope",
    "Tracker",
    "Transition",
    "UnionAutomaton",
    "concatenation",
    "construct",
    "determinize",
    "determinize_windowed",
    "end_program",
    "hide",
    "intersection",
    "iteration",
    "program_of",
    "span_program",
    "strategy_program",
    "trim",
    "union",
    "unroll",
]
