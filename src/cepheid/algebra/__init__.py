"""The event detection algebra (event-algebra): its expressions, laws and equivalences, its transform, and its detector with a stated memory."""

from __future__ import annotations

from cepheid.algebra.detector import Detected, Detector
from cepheid.algebra.equivalence import Counterexample, differ, equivalent
from cepheid.algebra.expression import (
    Conjunction,
    Disjunction,
    Expression,
    Length,
    Negation,
    Primitive,
    Restriction,
    Sequence,
)
from cepheid.algebra.generate_c import generate_c
from cepheid.algebra.generate_python import generate_python
from cepheid.algebra.laws import LAWS, Law
from cepheid.algebra.meaning import Instance, Instant, instances, is_restriction
from cepheid.algebra.memory import Held, Memory, Rate, memory
from cepheid.algebra.standalone import EventDetector, detector, parse
from cepheid.algebra.transform import transform

__all__ = [
    "LAWS",
    "Conjunction",
    "Counterexample",
    "Detected",
    "Detector",
    "Disjunction",
    "EventDetector",
    "Expression",
    "Held",
    "Instance",
    "Instant",
    "Law",
    "Length",
    "Memory",
    "Negation",
    "Primitive",
    "Rate",
    "Restriction",
    "Sequence",
    "detector",
    "differ",
    "equivalent",
    "generate_c",
    "generate_python",
    "instances",
    "is_restriction",
    "memory",
    "parse",
    "transform",
]
