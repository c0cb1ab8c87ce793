"""The reference on whole queries: partitions, groups, absences, measures, limits and errors. The rows of the semantics are in tests/cases."""

from __future__ import annotations

import pytest

import cepheid
from cepheid.errors import InputError, LimitError
from cepheid.schema import schema_of
from cepheid.testing.cases import table_of
from cepheid.testing.harness import events_of
from cepheid.testing.reference import Event, Match, matches, run


def prepared(text, stream, **types):
    table = table_of(stream, {"v": "int", "k": "int", **types})
    query = cepheid.query(text)
    schema = schema_of(table.schema, streams=query.tree.streams)
    return query.bound(schema), events_of(table, schema)


def test_matches_come_by_trigger_then_by_start():
    found = matches(*prepared("SELECT * WHERE A+ ; B", "A1 A2 B3 B4"))
    assert [(match.end, match.start) for match in found] == [(2, 0), (2, 0), (2, 1), (3, 0), (3, 0), (3, 1)]


def test_a_match_knows_its_support():
    (match,) = matches(*prepared("SELECT * WHERE (A AS x ; B AS y) AS z", "A1 C2 B3"))
    assert match == Match(0, 2, (("x", (0,)), ("y", (2,)), ("z", (0, 2))))
    assert match.support == (0, 2)


def test_matches_takes_the_stream_for_one_partition():
    plan, events = prepared("SELECT * WHERE A ; B PARTITION BY k", "A1(k=1) B2(k=2)")
    assert [match.support for match in matches(plan, events)] == [(0, 1)]
    assert [partition.groups for partition in run(plan, events).partitions] == [(), ()]


def test_partitions_in_the_order_of_their_first_events():
    result = run(*prepared("SELECT * WHERE A ; B PARTITION BY k", "A1(k=2) A2(k=1) A3 B4(k=1) B5(k=2)"))
    assert [(partition.key, partition.positions) for partition in result.partitions] == [((2,), (0, 4)), ((1,), (1, 3))]
    assert result.null_keys == 1


def test_null_keys_as_a_partition():
    result = run(*prepared("SELECT * WHERE A ; B PARTITION BY k", "A1 A2(k=1) B3"), null_keys="group")
    assert [(partition.key, len(partition.candidates)) for partition in result.partitions] == [((None,), 1), ((1,), 0)]
    assert result.null_keys == 0


def test_nan_is_no_key():
    result = run(*prepared("SELECT * WHERE A PARTITION BY v", "A1(v=nan) A2(v=1.5)", v="double"))
    assert [partition.key for partition in result.partitions] == [(1.5,)]
    assert result.null_keys == 1


def test_groups_say_how_many_of_their_candidates_are_given():
    plan, events = prepared("SELECT * WHERE A ; B LIMIT 2", "A1 B2 A3 A4 B5")
    (partition,) = run(plan, events).partitions
    assert [(group.end, len(group.candidates), group.choose) for group in partition.groups] == [(1, 1, 1), (4, 3, 2)]


def test_any_and_limit_together_give_one():
    (partition,) = run(*prepared("SELECT ANY * WHERE A ; B LIMIT 2", "A1 A2 B3")).partitions
    assert [group.choose for group in partition.groups] == [1]


def test_count_is_before_projection():
    (partition,) = run(*prepared("SELECT COUNT(*) WHERE PROJECT y (A AS x ; B AS y)", "A1 A2 B3")).partitions
    assert [group.count for group in partition.groups] == [2]


def test_measures_stand_beside_their_matches():
    (partition,) = run(*prepared("SELECT x.v + 1 AS w, y.$time AS t WHERE A AS x ; B AS y", "A1(v=4) A2 B3")).partitions
    (group,) = partition.groups
    assert [match.start for match in group.candidates] == [0, 1]
    assert group.measures == ((5, 3), (None, 3))


@pytest.mark.parametrize(
    ("until", "given", "undecided"),
    [(None, [0], [3]), (13, [0], [3]), (14, [0, 3], []), ("end", [0, 3], [])],
)
def test_an_absence_is_given_once_the_input_is_complete_to_its_deadline(until, given, undecided):
    # Deadlines: 0 + 5, 2 + 5 (broken at 7), 9 + 5.
    plan, events = prepared("SELECT * WHERE A NOT FOLLOWED BY N FOR 5", "A0 A2 N7 A9 C13")
    (partition,) = run(plan, events, until=until).partitions
    assert [match.start for match in partition.candidates] == given
    assert [match.start for group in partition.undecided for match in group.candidates] == undecided


def test_absence_does_not_change_what_consumes():
    # The first trigger is broken by N, yet its match has consumed the second A.
    plan, events = prepared("SELECT * WHERE A ; B NOT FOLLOWED BY N FOR 2 CONSUME BY ANY", "A0 A1 B2 N3 B5 A6 B7 C20")
    assert [match.support for match in matches(plan, events)] == [(5, 6)]


def test_completeness_is_that_of_the_whole_input_not_of_the_partition():
    plan, events = prepared("SELECT * WHERE A NOT FOLLOWED BY N FOR 5 PARTITION BY k", "A0(k=1) C9(k=2)")
    assert [len(partition.candidates) for partition in run(plan, events).partitions] == [1, 0]


# ------------------------------------------------------------------------------------------------------------------------- refusals


def test_too_many_events():
    plan, _ = prepared("SELECT * WHERE A", "A1")
    with pytest.raises(LimitError, match="3 events are more than 2"):
        matches(plan, [Event("A", 1)] * 3, max_events=2)


@pytest.mark.parametrize("pattern", ["A ; A", "A ALL A", "A+"])
def test_too_many_matches(pattern):
    plan, events = prepared(f"SELECT * WHERE {pattern}", "A1 A2 A3 A4 A5 A6")
    with pytest.raises(LimitError, match="more than 10 matches"):
        matches(plan, events, max_matches=10)


def test_times_that_descend():
    plan, _ = prepared("SELECT * WHERE A", "A1")
    with pytest.raises(InputError, match="order of their times"):
        matches(plan, [Event("A", 2), Event("A", 1)])


def test_times_that_are_missing():
    plan, _ = prepared("SELECT * WHERE A ; A WITHIN 5", "A1")
    with pytest.raises(InputError, match="1 of 2 events have no time"):
        matches(plan, [Event("A", 2), Event("A")])
    with pytest.raises(InputError, match="need events with times"):
        matches(plan, [Event("A"), Event("A")])
