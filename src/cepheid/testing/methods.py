"""Every method that can evaluate a query, not only the one that the planner takes: all must give the same matches.

The planner asks the methods in one order, and the first that fits takes a query (`engine.plan.methods`). A wrong answer of another one would show
only on the day on which the order, or what fits, changes. So tests switch the methods off in turn: `alternatives` has the other ways to evaluate a
query.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

import cepheid
from cepheid.engine.plan import methods, planner
from cepheid.errors import LimitError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.evaluations.method import Method, Task
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.query import Query
    from cepheid.schema import EventSchema


@record
class By:
    """A way to evaluate queries: method: the one that is asked first."""

    method: Method

    def __str__(self) -> str:
        return self.method.name

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Queries that are compiled inside, and evaluated inside, go this way as far as they can, with their EVENT definitions."""
        first = (self.method, *(other for other in methods.METHODS if other != self.method))
        with mock.patch.object(methods, "METHODS", first):
            yield


def anew(query: Query) -> Query:
    """The same query, not compiled yet."""
    return cepheid.query(query.text, args=query.args)


def alternatives(query: Query, schema: EventSchema) -> list[By]:
    """The ways in which the query, or one of its EVENT definitions, can be evaluated, without the one that is taken.

    A method whose automaton passes a limit cannot do it. Raises as `Query.compiled`.
    """
    tasks: list[Task] = []

    def choose(task: Task) -> object:
        tasks.append(task)
        return methods.choose(task)

    with mock.patch.object(planner, "choose", choose):
        seen = {_used(anew(query), schema)}
    able = [method for method in methods.METHODS if any(_can(method, task) for task in tasks)]
    found = []
    for way in map(By, able):
        try:
            with way():
                used = _used(anew(query), schema)
        except LimitError:
            continue
        if used not in seen:
            seen.add(used)
            found.append(way)
    return found


def _can(method: Method, task: Task) -> bool:
    try:
        return method.serves(task) and method.fits(task) is None
    except LimitError:
        return False


def _used(query: Query, schema: EventSchema) -> tuple[str, ...]:
    """The method of each layer."""
    return tuple(each.method.name for each in layers_of(query.compiled(schema)))


def layers_of(compiled: Compiled) -> Iterator[Compiled]:
    """What each of a query's EVENT definitions is compiled to, and last what the query is."""
    for layer in compiled.layers:
        yield from layers_of(layer)
    yield compiled
