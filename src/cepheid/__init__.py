"""Complex event recognition with a written meaning and a stated cost, on Arrow data and on Apache Spark.

    q = cepheid.query("SELECT * WHERE (T AS x ; H AS y) FILTER x[temp > :limit] AND y[humidity < 25] WITHIN 5s", args={"limit": 40})
    q.explain()                                 # what it means, how it is evaluated, what that costs
    matches = q.run(events, time="ts")          # a pyarrow.Table, a DataFrame, a list of dicts, ..
    matches.to_arrow()                          # one row per match
    df.transform(q.on(time="ts"))               # the same on a Spark DataFrame

Everything else hangs on these: `help(cepheid.query)`, `help(cepheid.Query)`.
"""

from __future__ import annotations

from importlib.util import find_spec
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

if TYPE_CHECKING or find_spec("pyarrow") is not None:
    from cepheid.engine.output.matches import Match, Matches
    from cepheid.engine.run.batches import Batches
    from cepheid.engine.run.queries import ByName, QueriesRecognizer
    from cepheid.engine.run.recognizer import Recognizer
    from cepheid.language.builder import any_event, attr, event, param
    from cepheid.queries import Queries, queries
    from cepheid.query import Query, query
else:  # a small device: the detectors of `cepheid.algebra` and `cepheid.succession` need Python alone

    def __getattr__(name: str) -> object:
        if name in __all__:
            raise SetupError(f"cepheid.{name} needs pyarrow, which is not installed", help="pip install cepheid, with what it depends on")
        raise AttributeError(name)


__version__ = "0.2.0"

__all__ = [
    "Batches",
    "BindError",
    "ByName",
    "CepheidError",
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
    "Recognizer",
    "SchemaError",
    "SetupError",
    "SnapshotError",
    "any_event",
    "attr",
    "errors",
    "event",
    "param",
    "queries",
    "query",
]
