"""The methods of evaluation, and the choice of one for a query.

Comes in: a `Task`. Goes out: the method, its program, and why each faster method does not fit, for `explain()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.engine.evaluations.choosing.last import LastMethod
from cepheid.engine.evaluations.choosing.maximal import MaximalMethod
from cepheid.engine.evaluations.choosing.next import NextMethod
from cepheid.engine.evaluations.choosing.restricted import RestrictedMethod
from cepheid.engine.evaluations.counts.counting import CountMethod
from cepheid.engine.evaluations.graph.match import MatchGraphMethod
from cepheid.engine.evaluations.graph.per_end import PerEndMethod
from cepheid.engine.evaluations.guards.guarded_methods import GuardedChoiceMethod, GuardedCountMethod, GuardedMethod

if TYPE_CHECKING:
    from cepheid.automata import Program
    from cepheid.engine.evaluations.method import Method, Task

METHODS: tuple[Method, ...] = (
    RestrictedMethod(),
    NextMethod(),
    LastMethod(),
    MaximalMethod(),
    CountMethod(),
    MatchGraphMethod(),
    PerEndMethod(),
    GuardedMethod(),
    GuardedCountMethod(),
    GuardedChoiceMethod(),
)
"""Of those that serve a task, the first that fits takes it. Faster methods stand first, as `benchmarks/bench_methods.py` measures them. But
RESTRICTED, which the match graph may give faster, stands before it: its memory needs no window."""


def choose(task: Task) -> tuple[Method, Program, tuple[tuple[str, str], ...]]:
    """The method for a task, its program, and (name, reason) of each faster method that serves such tasks but does not fit. Raises as `construct`."""
    refusals: list[tuple[str, str]] = []
    for method in METHODS:
        if not method.serves(task):
            continue
        reason = method.fits(task)
        if reason is None:
            return method, method.program(task), tuple(refusals)
        refusals.append((method.name, reason))
    raise AssertionError("some method fits every task")
