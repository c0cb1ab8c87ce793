"""The definition of "right", and the kit for testing patterns: shipped, because users test their own patterns with it.

`reference` is the meaning of every query as slow, obvious code that knows no automata; `denotation` and `evaluate` are the same for patterns
and conditions. `harness` writes event streams in one line and compares matches; `generators` makes random queries and streams for differential
tests, `differential` holds what these tests share: cases with their answers, and every way to evaluate one.
"""

from __future__ import annotations

from cepheid.testing.harness import assert_matches, events

__all__ = ["assert_matches", "events"]
