"""The definition of "right", and tools for testing patterns. They are in the package because users test their own patterns with them.

`reference` defines the meaning of every query, as slow, obvious code without automata; `denotation` and `evaluate` do the same for patterns and
conditions. `harness` makes event streams from one line of text and compares matches; `pipelines` compares those of one query embedded, on Spark and
on a stream; `columns` reads them as a table of text. `generators` makes random queries and streams for differential tests. `differential` has what
these tests share: cases with their answers, and every way to evaluate one.
"""

from __future__ import annotations

from cepheid.testing.columns import columns
from cepheid.testing.harness import assert_matches, events
from cepheid.testing.pipelines import assert_same

__all__ = ["assert_matches", "assert_same", "columns", "events"]
