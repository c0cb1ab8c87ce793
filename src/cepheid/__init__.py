"""Complex event recognition with a written meaning and a stated cost, on Arrow data and on Apache Spark.

    q = cepheid.query("SELECT * WHERE (T AS x ; H AS y) FILTER x[temp > :limit] AND y[humidity < 25] WITHIN 5s", args={"limit": 40})
    q.explain()                                 # what it means, how it is evaluated, what that costs
    matches = q.run(events, time="ts")          # a pyarrow.Table, a DataFrame, a list of dicts, ..
    matches.to_arrow()                          # one row per match
    df.transform(q.on(time="ts"))               # the same on a Spark DataFrame

Everything else hangs on these: `help(cepheid.query)`, `help(cepheid.Query)`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from cepheid import errors
from cepheid.errors import (
    BindError,
    CepheidError,
    InputError,
    InUseError,
    LimitError,
    NotSupportedError,
    QueryError,
    QuerySyntaxError,
    SchemaError,
    SetupError,
    SnapshotError,
)

if TYPE_CHECKING:
    from cepheid.engine.output.matches import Match, Matches
    from cepheid.engine.run.batches import Batches
    from cepheid.engine.run.queries import ByName, QueriesRecognizer
    from cepheid.engine.run.recognizer import Recognizer
    from cepheid.engine.run.rules import RefusedRule, RuleMatches, RulesRecognizer, RuleVersion
    from cepheid.language.builder import any_event, attr, event, param
    from cepheid.queries import Queries, queries
    from cepheid.query import Query, query
    from cepheid.reasons import EventsFound, Reason, Way, WhyNot, why_not
    from cepheid.rules import Rules, rules

__version__ = "0.2.0"

__all__ = [
    "Batches",
    "BindError",
    "ByName",
    "CepheidError",
    "EventsFound",
    "InUseError",
    "InputError",
    "LimitError",
    "Match",
    "Matches",
    "NotSupportedError",
    "Queries",
    "QueriesRecognizer",
    "Query",
    "QueryError",
    "QuerySyntaxError",
    "Reason",
    "Recognizer",
    "RefusedRule",
    "RuleMatches",
    "RuleVersion",
    "Rules",
    "RulesRecognizer",
    "SchemaError",
    "SetupError",
    "SnapshotError",
    "Way",
    "WhyNot",
    "any_event",
    "attr",
    "errors",
    "event",
    "param",
    "queries",
    "query",
    "rules",
    "why_not",
]

LOADED_LATER = {
    "Batches": "engine.run.batches",
    "ByName": "engine.run.queries",
    "EventsFound": "reasons",
    "Match": "engine.output.matches",
    "Matches": "engine.output.matches",
    "Queries": "queries",
    "QueriesRecognizer": "engine.run.queries",
    "Query": "query",
    "Reason": "reasons",
    "Recognizer": "engine.run.recognizer",
    "RefusedRule": "engine.run.rules",
    "RuleMatches": "engine.run.rules",
    "RuleVersion": "engine.run.rules",
    "Rules": "rules",
    "RulesRecognizer": "engine.run.rules",
    "Way": "reasons",
    "WhyNot": "reasons",
    "any_event": "language.builder",
    "attr": "language.builder",
    "event": "language.builder",
    "param": "language.builder",
    "queries": "queries",
    "query": "query",
    "rules": "rules",
    "why_not": "reasons",
}
"""Where the names are that are loaded when they are first asked for: a command that shows its help needs none of them."""


def __getattr__(name: str) -> object:
    """A public name that was not asked for before."""
    if name not in LOADED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("pyarrow") is None:  # a small device: the detectors of `cepheid.algebra` and `cepheid.succession` need Python alone
        raise SetupError(f"cepheid.{name} needs pyarrow, which is not installed", help="pip install cepheid, with what it depends on")
    found: object = getattr(import_module(f"{__name__}.{LOADED_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """`cepheid.query` is the function, also once Python has loaded the module of this name, which it would put in the function's place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in LOADED_LATER and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
