"""Every case of the TOML files beside this one, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from cepheid.language import parse
from cepheid.logical.bind import bind
from cepheid.schema import schema_of
from cepheid.testing.cases import Given, load
from cepheid.testing.harness import events_of
from cepheid.testing.reference import run

FILES = sorted(Path(__file__).parent.glob("*.toml"))
CASES = [pytest.param(case, id=f"{path.stem}: {case.name}") for path in FILES for case in load(path)]


def given(match):
    return Given(match.start, match.end, dict(match.mapping))


def bound(case):
    query = parse(case.query)
    types = {item.name for item in walk(query.pattern) if type(item).__name__ == "Type" and item.name}
    schema = schema_of(case.table.schema, streams=query.streams, used=frozenset(types))
    return bind(query, schema, args=case.args, text=case.query)


def walk(node):
    yield node
    for child in node.children():
        yield from walk(child)


@pytest.mark.parametrize("case", CASES)
def test_on_the_reference(case):
    plan = bound(case)
    result = run(plan, events_of(case.table, plan.schema), until=case.until)
    answer = {partition.key: [given(match) for group in partition.groups for match in group.candidates] for partition in result.partitions}
    if case.choose is None:
        assert case.fault(answer) is None
    else:
        candidates = [match for partition in result.partitions for group in partition.groups for match in group.candidates]
        assert all(group.choose == min(case.choose, len(group.candidates)) for partition in result.partitions for group in partition.groups)
        assert len(candidates) == sum(len(matches) for matches in case.matches.values())
    assert case.undecided_fault([given(match) for partition in result.partitions for match in partition.undecided]) is None
    assert result.null_keys == case.null_keys
    if case.rows is not None:
        assert sorted(map(str, case.rows)) == sorted(
            str(list(row)) for p in result.partitions for group in p.groups for row in group.measures
        )
    if case.counts is not None:
        assert [[group.end, group.count] for partition in result.partitions for group in partition.groups] == case.counts
