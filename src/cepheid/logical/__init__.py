"""What a query means, with every name, type and unit resolved, before any automaton.

Comes in: a syntax tree and an event schema. Goes out: a `QueryPlan`, bound (`bind`), then rewritten (`rewrite`) to the form from which automata are
built. `variables` has the papers' sets of variables, `describe` the readable text of a pattern, `equivalence` a bounded check that two queries have
the same matches. Only this check looks at data.
"""

from __future__ import annotations

from cepheid.logical.describe import describe
from cepheid.logical.equivalence import Counterexample, equivalent
from cepheid.logical.rewrite import RULES, rewrite, rewrite_steps
from cepheid.logical.safe_form import safe_form
from cepheid.logical.variables import bound, bounded, defined, safe, well_formed

__all__ = [
    "RULES",
    "Counterexample",
    "bound",
    "bounded",
    "defined",
    "describe",
    "equivalent",
    "rewrite",
    "rewrite_steps",
    "safe",
    "safe_form",
    "well_formed",
]
