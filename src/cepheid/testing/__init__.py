"""The definition of "right", and the kit for testing patterns: shipped, because users test their own patterns with it.

`reference` is the meaning of every query as slow, obvious code that knows no automata; `evaluate` is the same for conditions. `harness`
writes event streams in one line and compares matches; `generators` makes random queries and streams for differential tests.
"""
