"""Automata: a rewritten plan becomes a complex event automaton, and this becomes the flat program of the kernel.

Comes in: a `QueryPlan` in LP-normal form (`logical.rewrite`). `construct` has one construction per operator, `transform` works on whole
automata (trim, hide, determinize), `program` is what the engine runs. Not done here: windows, partitions and limits (the engine's bounds).
"""

from cepheid.automata.alphabet import Alphabet, Flag, Predicate, Scope, Tracker
from cepheid.automata.automaton import Automaton
from cepheid.automata.construct import construct
from cepheid.automata.program import ChoiceProgram, EndProgram, Program, end_program, program_of, span_program, strategy_program
from cepheid.automata.transform import determinize, hide, trim
from cepheid.automata.transition import Transition

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
    "construct",
    "determinize",
    "end_program",
    "hide",
    "program_of",
    "span_program",
    "strategy_program",
    "trim",
]
