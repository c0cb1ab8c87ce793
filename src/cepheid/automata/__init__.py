"""Automata: a rewritten plan becomes a complex event automaton, and this becomes the flat program of the kernel.

Comes in: a `QueryPlan` in LP-normal form (`logical.rewrite`). `construct` has one construction per operator, `transform` works on whole
automata (trim, hide, determinize), `program` is what the engine runs. Not done here: windows, partitions and limits (the engine's bounds).

What theory says beyond that of automata with clocks and registers is in `cepheid.theory`; its names are found here, too, as they were.
"""

from importlib import import_module

from cepheid.automata.alphabet import Alphabet, Flag, Guard, Predicate, Scope, Tracker
from cepheid.automata.automaton import Automaton
from cepheid.automata.construct import construct
from cepheid.automata.program import ChoiceProgram, EndProgram, Program, end_program, program_of, span_program, strategy_program
from cepheid.automata.registers import Before, Elapsed, Now, Register, Store
from cepheid.automata.transform import determinize, hide, project, trim
from cepheid.automata.transition import Transition

__all__ = [
    "Alphabet",
    "Automaton",
    "Before",
    "ChoiceProgram",
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
    "construct",
    "determinize",
    "end_program",
    "hide",
    "program_of",
    "project",
    "span_program",
    "strategy_program",
    "trim",
]


def __getattr__(name: str) -> object:
    """A name of `cepheid.theory` that was here."""
    theory = import_module("cepheid.theory")
    if name not in theory.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(theory, name)
