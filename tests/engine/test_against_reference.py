"""Random queries over random streams: the automaton engine against the definition, whole, cut into batches, and restored from snapshots."""

from __future__ import annotations

import collections
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from enough import Enough

import cepheid
from cepheid.engine.run import definition
from cepheid.errors import LimitError
from cepheid.kernel import available
from cepheid.testing import reference
from cepheid.testing.generators import random_query, random_stream, table


def shape(match):
    return tuple(match.keys.values()), match.start, match.end, tuple((name, at) for name, at in match.variables.items() if at)


def check(matches, result):
    """Every trigger has as many different matches as it is to give, each of them a candidate."""
    given = collections.defaultdict(list)
    for match in matches:
        keys, start, end, variables = shape(match)
        given[keys, end].append((start, tuple(sorted(variables))))
    wanted = {
        (partition.key, group.end): ({(match.start, tuple(sorted(match.mapping))) for match in group.candidates}, group.choose)
        for partition in result.partitions
        for group in partition.groups
    }
    assert set(given) == set(wanted)
    for trigger, found in given.items():
        candidates, choose = wanted[trigger]
        assert len(found) == choose, trigger
        assert len(set(found)) == len(found), trigger
        assert set(found) <= candidates, trigger


def random_case(seed):
    rng = random.Random(seed)
    query = cepheid.query(random_query(rng))
    return query, table(random_stream(rng)), rng


def case(seed):
    query, events, _ = random_case(seed)
    plan = query.bound(query.schema(events.schema))
    try:
        return query, events, reference.run(plan, definition.rows_of(plan, events))
    except LimitError:
        return query, events, None


@pytest.mark.parametrize("variant", available())
def test_engine_is_the_reference(variant, seed, cases):
    drawn = Enough(cases, matched=5)
    for number in drawn:
        query, events, result = case(seed + number)
        if result is None:
            continue
        matches = query.run(events, engine=variant)
        try:
            check(matches, result)
            assert matches.null_keys == result.null_keys
        except AssertionError as error:
            raise AssertionError(f"seed {seed + number}: {query.text}") from error
        drawn.seen["matched"] += bool(matches)


def test_batches_and_snapshots_change_nothing(seed, cases):
    drawn = Enough(cases // 2, matched=5)
    for number in drawn:
        query, events, rng = random_case(seed + number)
        whole = query.run(events)
        found, start = [], 0
        recognizer = query.recognizer(events.schema)
        while start < events.num_rows:
            stop = start + rng.randint(1, 4)
            found += map(shape, recognizer.push(events.slice(start, stop - start)))
            start = stop
            if rng.random() < 0.5:
                recognizer = query.recognizer(events.schema, snapshot=recognizer.snapshot())
        found += map(shape, recognizer.flush())
        assert found == [shape(match) for match in whole], f"seed {seed + number}: {query.text}"
        assert recognizer.null_keys == whole.null_keys
        reader = pa.RecordBatchReader.from_batches(events.schema, events.to_batches(max_chunksize=3))
        assert [shape(match) for match in query.run(reader)] == found, f"seed {seed + number}: {query.text}"
        drawn.seen["matched"] += bool(found)


def test_late_events_are_sorted_within_their_lateness(seed, cases):
    drawn = Enough(cases // 2, matched=5)
    for number in drawn:
        query, events, rng = random_case(seed + number)
        lateness = rng.randint(0, 6)
        times = events["ts"].to_pylist()
        # An event may overtake others by at most the lateness.
        arrival = sorted(range(len(times)), key=lambda row: (times[row] + rng.uniform(0, lateness), row))
        recognizer = query.recognizer(events.schema, lateness=lateness)
        found = []
        for row in arrival:
            found += map(shape, recognizer.push(events.slice(row, 1)))
            if rng.random() < 0.2:
                recognizer.restore(recognizer.snapshot())
        found += map(shape, recognizer.flush())
        assert recognizer.late.num_rows == 0
        rank = pa.array([times[row] for row in arrival], pa.int64())
        ordered = events.take(pa.array(arrival, pa.int64())).take(pc.sort_indices(rank))
        assert found == [shape(match) for match in query.run(ordered)], f"seed {seed + number}: {query.text}"
        drawn.seen["matched"] += bool(found)
