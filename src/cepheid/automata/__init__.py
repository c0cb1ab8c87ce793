"""Machines: a rewritten plan becomes a complex event automaton, and that the flat program of the kernel.

Comes in: a `QueryPlan` in LP-normal form (`logical.rewrite`). `construct` has one construction per operator, `transform` works on whole
automata (trim, hide, determinize), `program` is what the engine runs. Not done here: windows, partitions and limits (the engine's bounds).
"""

from cepheid.automata.automaton import Automaton, Predicate, Transition
from cepheid.automata.construct import construct
from cepheid.automata.program import Program, program_of
from cepheid.automata.transform import determinize, hide, trim

__all__ = ["Automaton", "Predicate", "Program", "Transition", "construct", "determinize", "hide", "program_of", "trim"]
