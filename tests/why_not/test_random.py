"""Answers of why_not about random queries, judged by the definition: what is said to be a reason is one, and no part of it is enough.

The reference evaluates the relaxed queries, from their text; why_not asks the engine.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import TYPE_CHECKING

import pytest

import cepheid
from cepheid.errors import BindError, LimitError
from cepheid.language import parse, syntax, to_text
from cepheid.reasons import why_not
from cepheid.reasons.relaxations import Relaxation, relaxations, relaxed
from cepheid.testing import generators, reference
from cepheid.testing.harness import events_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from cepheid.reasons import Way, WhyNot

EXACT = {"limit": 0.0, "strategies": ("", "", "", "STRICT", "NXT", "LAST", "MAX")}
"""Where the language leaves no choice open, the reference has one answer."""

FRAGMENTS = {
    name: dataclasses.replace(getattr(generators, name), items=3, depth=2, **EXACT)
    for name in ("GUARDED", "NEGATING", "CHOOSING", "ABSENT", "JUDGING", "SUCCEEDING", "STARTING")
}


def matches_by_definition(query: syntax.Query, table: pa.Table, rows: frozenset[int], *, only: bool) -> bool:
    """Whether a query has a match with some rows (only: and with no others), by the reference; False for a query that is not well-formed."""
    query = dataclasses.replace(query, targets=None)
    asked = cepheid.query(to_text(query))
    try:
        plan = asked.bound(asked.schema(table))
    except BindError:
        return False
    result = reference.run(plan, events_of(table, plan.schema))
    for partition in result.partitions:
        for match in partition.candidates:
            variables = [{partition.positions[place] for place in own} for _, own in match.mapping]
            has = {partition.positions[match.start], partition.positions[match.end]}.union(*variables)
            if rows == has or (rows <= has and not only):
                return True
    return False


def chosen_in(way: Way, known: Iterable[Relaxation]) -> list[Relaxation]:
    """The relaxations behind the reasons of a way."""
    found = [[each for each in known if (each.kind, each.span) == (reason.kind, reason.span)] for reason in way.reasons]
    assert all(found)
    # one span may have several, as the conditions of one parameter: which of them is told by the text of the query
    for some in itertools.product(*found):
        if len(set(some)) == len(some):
            return list(some)
    raise AssertionError(found)


def check(answer: WhyNot, tree: syntax.Query, table: pa.Table, rows: frozenset[int], *, only: bool) -> None:
    """Fail unless an answer is true."""
    assert answer.matched == matches_by_definition(tree, table, rows, only=only)
    assert answer.matched or answer.ways or answer.misfits or answer.notes
    assert str(answer)
    known = relaxations(tree)
    for way in answer.ways:
        chosen = chosen_in(way, known)
        assert relaxed(tree, chosen) == parse(way.query)
        assert matches_by_definition(parse(way.query), table, rows, only=only), way.query
        assert rows <= set(way.match.rows)
        if answer.notes:
            continue  # which events may be others was bounded: a smaller set may do
        for size in range(len(chosen)):
            for less in itertools.combinations(chosen, size):
                assert not matches_by_definition(relaxed(tree, less), table, rows, only=only), (way.query, less)
    sets = [frozenset((reason.kind, reason.span.start, reason.span.end) for reason in way.reasons) for way in answer.ways]
    assert not any(one < other for one in sets for other in sets)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_reasons_are_reasons(fragment: str, cases: int, seed: int) -> None:
    explained = 0
    least = max(4, cases // 10)
    for case in range(20 * least):
        if case >= least and explained:
            break
        source = random.Random(f"why not {fragment} {seed} {case}")
        text = generators.random_query(source, fragment=FRAGMENTS[fragment])
        rows = generators.random_stream(source, most=7)
        if not rows:
            continue
        table = generators.table(rows)
        picks = frozenset(source.sample(range(len(rows)), min(len(rows), source.choice([1, 2, 2, 3]))))
        only = source.random() < 0.3
        place = f"CEPHEID_SEED={seed} fragment={fragment} case={case}: {text} {sorted(picks)}{' only' * only}"
        tree = parse(text)
        try:
            answer = why_not(text, table, picks, only=only)
            check(answer, tree, table, picks, only=only)
        except LimitError:
            continue
        except Exception as error:
            error.add_note(place)
            raise
        explained += bool(answer.ways)
    assert explained
