"""Machines: a rewritten plan becomes a complex event automaton, and that the flat program of the kernel.

Comes in: a `QueryPlan` in LP-normal form (`logical.rewrite`). `construct` has one construction per operator, `transform` works on whole
automata (trim, hide, determinize), `program` is what the engine runs. Not done here: windows, partitions and limits (the engine's bounds).
"""

from cepheid.automata.automaton import Automaton, Predicate, Tracker, Transition
from cepheid.automata.construct import construct
from cepheid.automata.program import EndProgram, Program, end_program, program_of, span_program, strategy_program
from cepheid.automata.transform import determinize, hide, trim

__all__ = [
    "Automaton",
    "EndProgram",
    "Predicate",
    "Program",
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
