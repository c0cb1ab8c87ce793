"""The classes of random queries that tests and records try: one table, so that a new class is tried wherever one is.

A test says which classes it cannot try, and what it changes in all of them: `fragments("definitions", unit="s")`.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cepheid.testing import generators
from cepheid.testing.generators import CHOOSING, COMPARING, ENGINE, POSITIONAL, WAITING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.testing.generators import QueryFragment

CHOICES = ("NXT", "LAST", "MAX")

FRAGMENTS: Mapping[str, QueryFragment] = MappingProxyType(
    {
        "any pattern": ENGINE,
        "any pattern, chosen": dataclasses.replace(ENGINE, strategies=CHOICES, consume=0.2),
        "any pattern, counted": dataclasses.replace(ENGINE, strategies=("", "ALL", "STRICT"), count=1.0, consume=0.2),
        "patterns that wait": WAITING,
        "patterns that wait, counted": dataclasses.replace(WAITING, count=1.0),
        "nested strategies": generators.NESTED,
        "absence": generators.ABSENT,
        "absence from the start": generators.STARTING,
        "negation": generators.NEGATING,
        "THEN": generators.SUCCEEDING,
        "HAVING": generators.JUDGING,
        "RESTRICTED": generators.RESTRICTING,
        "lag": generators.LAGGED,
        "guards": COMPARING,
        "computed conditions": generators.COMPUTING,
        "conditions that are asked": generators.ASKING,
        "lag and guards": dataclasses.replace(COMPARING, lag=True),
        "values carried over events": generators.CARRYING,
        "order of texts and long decimals": generators.ORDERED,
        "strategies around guards": CHOOSING,
        "strategies inside each other": generators.CHOOSING_INSIDE,
        "negation around guards": generators.CONTRADICTING,
        "THEN around guards": generators.SUCCEEDING_GUARDED,
        "HAVING around guards": generators.JUDGING_GUARDED,
        "positions": POSITIONAL,
        "strategies around positions": dataclasses.replace(POSITIONAL, operators=(*POSITIONAL.operators, ("select", 6))),
        "definitions": generators.LAYERED,
    }
)
"""Whole queries, with all clauses that fit the class."""


def fragments(*without: str, **changes: Any) -> dict[str, QueryFragment]:
    """All classes but those named, each with these fields changed. Raises KeyError for a name that is none."""
    found = dict(FRAGMENTS)
    for name in without:
        del found[name]
    return {name: dataclasses.replace(fragment, **changes) for name, fragment in found.items()}
