"""Temporal models: what "the next match" means in `p THEN q`, and which laws it obeys (what-is-next).

A model gives the stamp of an event at a time, an order of stamps, the successors of a stamp among candidates, and the stamp of two in sequence.
`MODELS` has the six that a query can name. `then` is the meaning of `THEN` under a model, straight from the paper's equation (4).

The laws are axioms about all stamps and all candidate sets. They are checked here in finite universes: `verdicts` says which hold there, and gives a
smallest counterexample of each that does not; `associative` says whether `THEN` may be re-associated; `THEOREMS` searches for what would contradict
the paper's theorems, and `ERRATA` has what the paper gets wrong, with evidence.

Not done here: no query is parsed and no stream is read. Everything is by definition and exhaustive; nothing is meant for more than a few stamps.

    >>> from cepheid.succession import ACTIVE_OFFICE, CAYUGA, SNOOPIB, Interval, check, BY_NUMBER
    >>> candidates = {Interval(1, 2), Interval(2, 2), Interval(1, 3)}
    >>> [len(model.successors(Interval(0, 0), candidates)) for model in (ACTIVE_OFFICE, CAYUGA, SNOOPIB)]
    [1, 2, 3]
    >>> print(check(SNOOPIB, BY_NUMBER["12"]))
    12 STRONG THICKENING: s = [0, 0], A = {[1, 1]}, u = [1, 1], v = [2, 2]: SUCC(s, A) = {[1, 1]}, SUCC(s, A + u * v) = {[1, 1], [1, 2]}
"""

from __future__ import annotations

from cepheid.succession.associativity import Associativity, Counterexample, Match, associative, compared, events, then
from cepheid.succession.axioms import AXIOMS, BY_NUMBER, Axiom, Violation
from cepheid.succession.errata import ERRATA, Erratum
from cepheid.succession.model import BlockingModel, TemporalModel
from cepheid.succession.models import ACTIVE_OFFICE, CAYUGA, COMPLETE_HISTORY, MODELS, ODE, POINT, SNOOPIB, History, Interval
from cepheid.succession.theorems import THEOREMS, Theorem
from cepheid.succession.universe import Universe, universe
from cepheid.succession.verdicts import Verdict, check, table, verdicts

__all__ = [
    "ACTIVE_OFFICE",
    "AXIOMS",
    "BY_NUMBER",
    "CAYUGA",
    "COMPLETE_HISTORY",
    "ERRATA",
    "MODELS",
    "ODE",
    "POINT",
    "SNOOPIB",
    "THEOREMS",
    "Associativity",
    "Axiom",
    "BlockingModel",
    "Counterexample",
    "Erratum",
    "History",
    "Interval",
    "Match",
    "TemporalModel",
    "Theorem",
    "Universe",
    "Verdict",
    "Violation",
    "associative",
    "check",
    "compared",
    "events",
    "table",
    "then",
    "universe",
    "verdicts",
]
