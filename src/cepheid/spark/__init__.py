"""Recognition on Apache Spark: the same query over a DataFrame, with the same result as embedded.

Comes in: a `Query` and a DataFrame. Goes out: a DataFrame with one row per match. The predicates run in Spark as columns (`columns`). The events go
to Python sorted by key and time, and there the engine of `cepheid.engine` works as it does embedded (`batch`): Spark adds one call around it, never a
second engine. Only the public DataFrame interface is used, so classic sessions and Spark Connect use the same code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.spark.metrics import Metrics
    from cepheid.spark.observation import Listener, why
    from cepheid.spark.recognition import Recognition, on
    from cepheid.spark.rules import RuleRecognition, on_rules
    from cepheid.spark.session import find_java, local_session
    from cepheid.spark.source import merge
    from cepheid.spark.sources.kafka import kafka_source
    from cepheid.spark.sources.replay import replay
    from cepheid.spark.sql import register
    from cepheid.spark.stream import split
    from cepheid.spark.translation import translated

__all__ = [
    "Listener",
    "Metrics",
    "Recognition",
    "RuleRecognition",
    "find_java",
    "kafka_source",
    "local_session",
    "merge",
    "on",
    "on_rules",
    "register",
    "replay",
    "split",
    "translated",
    "why",
]

_HOMES = {
    "Listener": "observation",
    "Metrics": "metrics",
    "why": "observation",
    "Recognition": "recognition",
    "on": "recognition",
    "RuleRecognition": "rules",
    "on_rules": "rules",
    "translated": "translation",
    "find_java": "session",
    "local_session": "session",
    "merge": "source",
    "register": "sql",
    "split": "stream",
    "kafka_source": "sources.kafka",
    "replay": "sources.replay",
}


_SINCE = {"kafka_source": "4.0", "register": "4.0", "replay": "4.0"}
"""From which Spark on there is what they need; all others work on every Spark that `versions` lets in."""

try:
    import_module("cepheid.spark.versions")  # raises SetupError for an older Spark
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise


def __getattr__(name: str) -> object:
    # Late: finding a Java, and a task on a worker, need neither pyspark's sessions nor each other.
    if name not in _HOMES:
        raise AttributeError(f"module 'cepheid.spark' has no attribute {name!r}")
    try:
        return getattr(import_module(f"cepheid.spark.{_HOMES[name]}"), name)
    except ImportError as error:
        if name not in _SINCE or not (error.name or "").startswith("pyspark."):
            raise
        missing = import_module("cepheid.spark.versions").missing
        raise missing(f"cepheid.spark.{name}", _SINCE[name]) from None
