"""Recognition on Apache Spark: the same query over a DataFrame, with the same answer as embedded.

Comes in: a `Query` and a DataFrame. Goes out: a DataFrame with one row per match. The predicates run in Spark as columns (`columns`), the
events travel to Python sorted by key and time, and there the engine of `cepheid.engine` does what it does embedded (`batch`); Spark adds
one call around it, never a second engine. Only the public DataFrame interface is used, so classic sessions and Spark Connect are one path.
"""

from __future__ import annotations
