"""What a query means, with every name, type and unit resolved, before any automaton.

Comes in: a syntax tree and an event schema. Goes out: a `QueryPlan`, bound (`bind`), then rewritten (`rewrite`) to the form from which automata are
built. `variables` has the papers' sets of variables, `describe` the readable text of a pattern. The names of
`cepheid.theory` that were here are found here, too.
"""

from __future__ import annotations

from importlib import import_module

from cepheid.logical.describe import describe
from cepheid.logical.rewrite import RULES, rewrite, rewrite_steps
from cepheid.logical.variables import bound, bounded, defined, safe, well_formed

__all__ = [
    "RULES",
    "bound",
    "bounded",
    "defined",
    "describe",
    "rewrite",
    "rewrite_steps",
    "safe",
    "well_formed",
]


def __getattr__(name: str) -> object:
    """A name of `cepheid.theory` that was here."""
    theory = import_module("cepheid.theory")
    if name not in theory.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(theory, name)
