"""The event detection algebra (event-algebra): its expressions, laws and equivalences, its transform, and its detector with a stated memory."""

from __future__ import annotations

from cepheid.algebra.detector import Detected, Detector
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
from cepheid.algebra.memory import Held, Memory, Rate, memory
from cepheid.algebra.standalone import EventDetector, detector, parse
from cepheid.algebra.transform import transform

__all__ = [
    "Conjunction",
    "Detected",
    "Detector",
    "Disjunction",
    "EventDetector",
    "Expression",
    "Held",
    "Length",
    "Memory",
    "Negation",
    "Primitive",
    "Rate",
    "Restriction",
    "Sequence",
    "detector",
    "memory",
    "parse",
    "transform",
]
