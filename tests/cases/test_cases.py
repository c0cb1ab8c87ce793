"""Every case of the TOML files beside this one, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

import cepheid
from cepheid.errors import NotSupportedError
from cepheid.testing.cases import ENGINES, GivenMatch, load
from cepheid.testing.harness import events_of
from cepheid.testing.reference import run

FILES = sorted(Path(__file__).parent.glob("*.toml"))
CASES = [pytest.param(case, id=f"{path.stem}: {case.name}") for path in FILES for case in load(path)]


def given(match):
    return GivenMatch(match.start, match.end, dict(match.mapping))


def bound(case):
    query = cepheid.query(case.query, args=case.args)
    return query.bound(query.schema(case.table.schema))


@pytest.mark.parametrize("case", CASES)
def test_on_the_reference(case):
    plan = bound(case)
    result = run(plan, events_of(case.table, plan.schema), until=case.until)
    answer = {partition.key: [given(match) for group in partition.groups for match in group.candidates] for partition in result.partitions}
    if case.choose is None:
        # A case of COUNT(*) need not list what it counts.
        listed = case.counts is None or any(case.matches.values())
        assert not listed or case.fault(answer) is None
    else:
        candidates = [match for partition in result.partitions for group in partition.groups for match in group.candidates]
        assert all(group.choose == min(case.choose, len(group.candidates)) for partition in result.partitions for group in partition.groups)
        assert len(candidates) == sum(len(matches) for matches in case.matches.values())
    assert (
        case.undecided_fault(
            [given(match) for partition in result.partitions for group in partition.undecided for match in group.candidates]
        )
        is None
    )
    assert result.null_keys == case.null_keys
    if case.rows is not None:
        assert sorted(map(str, case.rows)) == sorted(
            str(list(row)) for p in result.partitions for group in p.groups for row in group.measures
        )
    if case.counts is not None:
        assert [[group.end, group.count] for partition in result.partitions for group in partition.groups] == case.counts


def answer_of(case, engine):
    query = cepheid.query(case.query, args=case.args)
    found = query.run(case.table, engine=engine, **({} if case.until is None else {"until": case.until}))
    answer = {}
    for match in found:
        answer.setdefault(tuple(match.keys.values()), []).append(GivenMatch(match.start, match.end, match.variables))
    return found, answer


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_on_engine(case, engine):
    reason = case.skip.get("automata") if engine != "reference" else None
    if reason is not None:
        # Not a plain skip: when the engine learns it, the case must say so.
        with pytest.raises(NotSupportedError):
            answer_of(case, engine)
        pytest.skip(reason)
    found, answer = answer_of(case, engine)
    if case.rows is None and case.counts is None:
        assert case.fault(answer) is None
    if case.rows is not None:
        assert sorted(map(str, case.rows)) == sorted(str(list(match.measures.values())) for match in found)
    if case.counts is not None:
        assert [[match.end, match.measures["count"]] for match in found] == case.counts
    assert case.undecided_fault([GivenMatch(match.start, match.end, match.variables) for match in found.undecided]) is None
    assert found.null_keys == case.null_keys
