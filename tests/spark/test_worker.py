"""The function inside a task, without Spark: sorted batches cut anywhere give the matches of `q.run`."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pyarrow as pa
import pytest
from value_columns import columns_of, names_of

import cepheid
from cepheid.spark.tasks import worker
from cepheid.spark.tasks.rows import INDEX
from cepheid.testing.differential import matches_up_to
from cepheid.testing.generators import ENGINE, LAGGED, POSITIONAL, WAITING, random_query, random_stream, table

KEY = pa.int64()


def task_of(query, schema, *, index=False, ties=("row",), shown=None):
    compiled = query.compiled(query.schema(schema))
    keys = tuple(f"k{number}" for number in range(len(compiled.keys)))
    named = dict(zip(compiled.keys, keys, strict=True)) if compiled.layout.keys else {}
    shown = tuple(shown or schema.names)
    return compiled, {
        "text": query.text,
        "args": tuple(query.args.items()),
        "schema": worker.pack_schema(compiled.schema),
        "fingerprint": compiled.program.fingerprint,
        "keys": keys,
        "key_names": compiled.keys,
        "payload": tuple((name, named.get(name, name)) for name in dict.fromkeys([*shown, *compiled.layout.keys, "ts"])),
        "shown": (*shown, INDEX) if index else shown,
        "ties": ties,
        "tie_names": ties or (),
        "index": index,
        "time_name": "ts",
        "values": names_of(compiled),
        "reads": tuple((name, name) for name in compiled.read_in_order),
    }


def prepared(compiled, events):
    """What Spark would hand to a task: letters, keys without NULL, everything sorted."""
    columns = {f"k{number}": events[name] for number, name in enumerate(compiled.keys)}
    columns |= {worker.TIME: events["ts"]}
    if not compiled.lags:
        columns |= {worker.LETTER: pa.array(compiled.predicates.letters(events).astype(np.int32))}
    columns |= {name: events[name] for name in events.column_names} | columns_of(compiled, events)
    whole = pa.table(columns)
    for number in range(len(compiled.keys)):
        whole = whole.filter(whole[f"k{number}"].is_valid())
    return whole.sort_by(
        [(f"k{number}", "ascending") for number in range(len(compiled.keys))] + [(worker.TIME, "ascending"), ("row", "ascending")]
    )


def cut(whole, source):
    whole = whole.combine_chunks()
    start, batches = 0, []
    while start < len(whole):
        size = source.choice([1, 2, 5, 30])
        batches += whole.slice(start, size).to_batches()
        start += size
    return batches


def rows(found):
    return sorted(repr(row) for part in found for row in part.to_pylist())


CONSUMING = dataclasses.replace(WAITING, strategies=("", "ANY", "NXT", "LAST", "MAX"), consume=1.0)

LAGGING, PLACED = (dataclasses.replace(fragment, absence=0.0, count=0.0) for fragment in (LAGGED, POSITIONAL))

MOST_MATCHES = 2000
"""Of a random case: one in some thousands has millions, and here a match may be a batch of its own."""


@pytest.mark.parametrize("compact", [2, worker.COMPACT_ROWS])
def test_batches_cut_anywhere(cases, seed, compact, monkeypatch):
    monkeypatch.setattr(worker, "COMPACT_ROWS", compact)
    monkeypatch.setattr("cepheid.spark.tasks.rows.ROWS_PER_PIECE", 7)
    for number in range(cases):
        source = random.Random(seed * 10_000 + number)
        # With keys, CONSUME BY ANY needs the order of the whole stream, which no task sees.
        text = random_query(source, fragment=(ENGINE, CONSUMING, LAGGING, PLACED)[number % 4]).replace(
            "CONSUME BY ANY", "CONSUME BY PARTITION"
        )
        query = cepheid.query(text)
        events = table(random_stream(source, most=14))
        events = events.append_column("row", pa.array(range(len(events)), pa.int64()))
        expected = matches_up_to(MOST_MATCHES, query, events)
        if expected is None:
            continue
        compiled, task = task_of(query, events.schema)
        found = list(worker.run_task(task, iter(cut(prepared(compiled, events), source)), letters=((), ()) if compiled.lags else None))
        assert rows(found) == rows([expected.to_arrow(events=True)]), (query.text, events.to_pylist())


@pytest.mark.parametrize("key", ["", "PARTITION BY k"])
def test_a_sum_grows_until_something_is_negative(key, cases, seed):
    """In a batch of any key, and in the first or a later one of a key."""
    for number in range(cases // 2):
        source = random.Random(f"{seed}/{key}/{number}")
        pattern, window = source.choice(["A+ AS x", "A ; (A OR B)+ AS x ; C", "(A OR B):+ AS x ; C"]), source.choice(["", "WITHIN 9"])
        select, least = source.choice(["*", "ANY *", "COUNT(*)"]), source.randint(0, 6)
        query = cepheid.query(f"SELECT {select} WHERE {pattern} {key} {window} HAVING sum(x.v) > {least} CONSUME BY PARTITION")
        made = random_stream(source, most=14)
        for row in made[source.randint(0, len(made)) :]:
            row["v"] = row["v"] if source.random() < 0.6 else -source.randint(1, 3)
        events = table(made)
        events = events.append_column("row", pa.array(range(len(events)), pa.int64()))
        every = cepheid.query(query.text.replace("ANY ", "")).run(events, engine="reference").to_arrow(events=True).to_pylist()
        compiled, task = task_of(query, events.schema)
        batches = cut(prepared(compiled, events), source)
        found = [row for part in worker.run_task(task, iter(batches)) for row in part.to_pylist()]
        if "ANY" in select:  # one for each event that completes any
            ends = {max(event["row"] for value in row.values() if isinstance(value, list) for event in value) for row in every}
            assert len(found) == len(ends), (query.text, made)
            assert set(map(repr, found)) <= set(map(repr, every)), (query.text, made)
        else:
            assert sorted(map(repr, found)) == sorted(map(repr, every)), (query.text, made)


def test_positions_and_fewer_columns():
    query = cepheid.query("SELECT * WHERE A AS x ; C AS z PARTITION BY k")
    events = pa.table({"ts": [1, 2, 3, 4], "type": ["B", "A", "C", "C"], "k": [1, 1, 1, 1], "row": range(4)})
    compiled, task = task_of(query, events.schema, index=True, shown=["row"])
    batches = [prepared(compiled, events).slice(start, 1).to_batches()[0] for start in range(4)]
    found = [row for part in worker.run_task(task, iter(batches)) for row in part.to_pylist()]
    assert found == [
        {
            "k": 1,
            "start_time": 2,
            "end_time": end + 1,
            "start_position": 1,
            "end_position": end,
            "x": [{"row": 1, "$index": 1}],
            "z": [{"row": end, "$index": end}],
        }
        for end in (2, 3)
    ]


@pytest.mark.parametrize("sizes", [(4,), (2, 2), (1, 1, 1, 1)])
def test_ties_are_found_across_batches(sizes):
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k")
    events = pa.table({"ts": [1, 2, 2, 3], "type": ["A", "A", "B", "B"], "k": [1, 1, 1, 1], "row": [0, 1, 1, 2]})
    compiled, task = task_of(query, events.schema)
    whole, starts = prepared(compiled, events), np.cumsum([0, *sizes])
    batches = [whole.slice(start, size).to_batches()[0] for start, size in zip(starts, sizes, strict=False)]
    with pytest.raises(cepheid.InputError, match="two events of k=1 have the same time 2 and the same `row`"):
        list(worker.run_task(task, iter(batches)))
    _, calm = task_of(query, events.schema, ties=None)
    assert sum(part.num_rows for part in worker.run_task(calm, iter(batches))) == 4


def test_matches_come_as_they_are_made():
    """Of 2**40 matches the first are there at once, and what has been given is not kept."""
    query = cepheid.query("SELECT * WHERE A+ ; B")
    events = pa.table({"ts": range(41), "type": ["A"] * 40 + ["B"], "row": range(41)})
    _, task = task_of(query, events.schema)
    compiled = query.compiled(query.schema(events.schema))
    found = worker.run_task(task, iter(prepared(compiled, events).to_batches()))
    assert next(found).num_rows
    before = pa.total_allocated_bytes()
    for _ in range(20):
        assert next(found).num_rows
    assert pa.total_allocated_bytes() - before < 32 << 20
    found.close()


def test_no_batches_and_empty_batches_give_nothing():
    query = cepheid.query("SELECT * WHERE A ; B")
    events = pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string()), "row": pa.array([], pa.int64())})
    compiled, task = task_of(query, events.schema)
    empty = pa.RecordBatch.from_pylist([], schema=prepared(compiled, events).schema)
    assert list(worker.run_task(task, iter([]))) == []
    assert list(worker.run_task(task, iter([empty, empty]))) == []


@pytest.mark.parametrize("bound", ["WITHIN 10", "WITHIN 10 EVENTS", "CONSUME BY ANY"])
def test_what_is_kept_of_an_open_key_is_bounded(bound):
    query = cepheid.query(f"SELECT ANY * WHERE A AS x ; B AS y {bound}")
    size = 20_000
    events = pa.table({"ts": range(size), "type": ["A", "B"] * (size // 2), "row": range(size)})
    compiled, task = task_of(query, events.schema)
    whole = prepared(compiled, events)
    run = worker.TaskRun(worker.Task(**task), compiled, whole.schema)
    matches = sum(
        part.num_rows for start in range(0, size, 500) for part in run.read(whole.slice(start, 500).combine_chunks().to_batches()[0])
    )
    assert matches == size // 2
    assert run.kept.rows <= worker.COMPACT_ROWS


def test_a_null_key_is_a_value_between_neighbours():
    column = pa.array([None, None, 1, 1, None, 2])
    assert worker.different(column).tolist() == [False, True, False, True, True]
    assert worker.different(pa.array([None], KEY)).tolist() == []
    assert worker.same_value(pa.array([None], KEY), pa.array([None], KEY))


def test_schemas_travel_as_plain_values():
    query = cepheid.query("SELECT * FROM s WHERE s AS x")
    schema = query.schema(pa.schema([("ts", pa.timestamp("us", "UTC")), ("d", pa.decimal128(9, 2))]))
    assert worker.unpack_schema(worker.pack_schema(schema)) == schema


def test_a_worker_that_compiles_otherwise_says_so():
    _, task = task_of(cepheid.query("SELECT * WHERE A AS x ; B AS y"), pa.schema([("ts", pa.int64()), ("type", pa.string())]))
    assert worker.compiled_here(task).fingerprint
    with pytest.raises(cepheid.SetupError, match="install the same version of cepheid on the driver and all workers"):
        worker.compiled_here({**task, "fingerprint": "0" * 16})
