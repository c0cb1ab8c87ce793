"""The state of a bucket without Spark: micro-batches, watermarks, disorder and restarts are made here, and the answer is that of `Query.run`."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cepheid
from cepheid.engine.keys import key_table
from cepheid.spark.packing import BLOB, BUCKET, pack, unpack
from cepheid.spark.stateful import Bucket, Unit
from cepheid.spark.worker import LETTER, TIME, Task, pack_schema
from cepheid.testing.generators import ENGINE, NESTED, SCHEMA, WAITING, random_query, random_stream

FRAGMENTS = {
    "engine": dataclasses.replace(ENGINE, unit="s"),
    "strategies": dataclasses.replace(WAITING, strategies=("NXT", "LAST", "MAX"), unit="s"),
    "any pattern": dataclasses.replace(ENGINE, strategies=("NXT", "LAST", "MAX", "STRICT", "ANY"), consume=0.3, unit="s"),
    "nested": dataclasses.replace(NESTED, unit="s"),
    "counts": dataclasses.replace(ENGINE, strategies=("", "ALL"), count=1.0, unit="s"),
}
START, SECOND = 1_700_000_000_000_000, 1_000_000
TIMED = SCHEMA.set(1, pa.field("ts", pa.timestamp("us", tz="UTC"))).append(pa.field("row", pa.int64()))


def timed(rows):
    """The rows of a random stream, a second for each step of time, numbered in their order."""
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    times = pa.array(table["ts"].to_numpy() * SECOND + START, pa.timestamp("us", tz="UTC"))
    return table.set_column(1, "ts", times).append_column("row", pa.array(range(len(table)), pa.int64())).cast(TIMED)


def task_of(query, *, index=False):
    """The task that `q.on` would make, with columns under their own names."""
    compiled = query.compiled(query.schema(TIMED))
    shown = () if compiled.layout.measures else ("row",)
    named = {field.name: getattr(Task, field.name, None) for field in dataclasses.fields(Task)}
    return named | {
        "text": query.text,
        "args": (),
        "schema": pack_schema(query.schema(TIMED)),
        "fingerprint": compiled.program.fingerprint,
        "keys": tuple(f"k{place}" for place in range(len(compiled.keys))),
        "key_names": compiled.keys,
        "payload": tuple((name, name) for name in TIMED.names if name not in compiled.keys)
        + tuple((name, f"k{place}") for place, name in enumerate(compiled.keys)),
        "shown": (*shown, "$index") if index else shown,
        "ties": ("row",),
        "tie_names": ("row",),
        "index": index,
        "time_name": "ts",
    }


def output_of(queries, tasks):
    """The columns of the rows."""
    fields = [] if len(queries) == 1 else [pa.field("query", pa.string())]
    for query, task in zip(queries, tasks, strict=True):
        layout = query.compiled(query.schema(TIMED)).layout
        event = pa.struct([pa.field("row", pa.int64()), *([pa.field("$index", pa.int64())] if task["index"] else [])])
        fields += [TIMED.field(name) for name in layout.keys]
        fields += [pa.field("start", pa.int64()), pa.field("end", pa.int64())] if task["index"] else []
        fields += [pa.field("start_time", TIMED.field("ts").type), pa.field("end_time", TIMED.field("ts").type), *layout.measure_columns]
        fields += [pa.field(name, pa.list_(event)) for name in layout.variables]
    return pa.schema(list({field.name: field for field in fields}.values()))


def travelling(queries, table):
    """The events as they travel, and each query's letters among those of all: what `batch.prepare` does with columns."""
    compiled = [query.compiled(query.schema(TIMED)) for query in queries]
    pool = list(dict.fromkeys(condition for each in compiled for condition in each.predicates.conditions))
    keys = key_table(table, compiled[0].keys) if compiled[0].keys else None
    columns = {f"k{place}": column for place, column in enumerate(keys.columns if keys is not None else [])}
    columns |= {TIME: table["ts"], **{name: table[name] for name in table.column_names}}
    width = max(1, -(-len(pool) // 64))
    bits = np.zeros((width, len(table)), np.uint64)
    for each in compiled:
        letters = each.predicates.letters(table).astype(np.uint64)
        for bit, condition in enumerate(each.predicates.conditions):
            place = pool.index(condition)
            bits[place // 64] |= (letters >> np.uint64(bit) & np.uint64(1)) << np.uint64(place % 64)
    names = [f"{LETTER}{number or ''}" for number in range(width)]
    columns |= dict(zip(names, map(pa.array, bits.view(np.int64)), strict=True))
    events = pa.table(columns)
    places = [(tuple(names), tuple(pool.index(condition) for condition in each.predicates.conditions)) for each in compiled]
    for place in range(len(compiled[0].keys)):
        events = events.filter(pc.is_valid(events[f"k{place}"]))
    return events, tuple(places)


def unit_of(queries, table, *, index=False, late=None):
    events, letters = travelling(queries, table)
    tasks = [task_of(query, index=index) for query in queries]
    output = output_of(queries, tasks)
    names = None if len(queries) == 1 else tuple(f"q{number}" for number in range(len(queries)))
    unit = Unit(tuple(tasks), letters, names, late, output.serialize().to_pybytes(), events.schema.serialize().to_pybytes())
    return unit, events, output


def buckets_of(events, count):
    """The bucket of each event: all events of a key in one."""
    keys = [name for name in events.column_names if name.startswith("k") and name[1:].isdigit()]
    rows = list(zip(*(events[name].to_pylist() for name in keys), strict=True)) if keys else [()] * len(events)
    return np.array([hash(row) % count for row in rows], np.int32)


def arrivals(chance, events, lateness):
    """Micro-batches of the events in a random order of arrival, none later than the watermark of its batch, and each batch's watermark.

    The watermark is that of Spark: the greatest time of earlier batches, minus the lateness.
    """
    times = events["ts"].cast(pa.int64()).to_numpy() // 1000
    arrival = times + np.array([chance.uniform(0, lateness) for _ in times]) if len(times) else times
    order = np.argsort(arrival, kind="stable")
    cuts = sorted(chance.randint(0, len(order)) for _ in range(chance.randint(0, 5)))
    watermark = greatest = 0
    for begin, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
        rows = order[begin:end]
        yield events.take(pa.array(rows)), watermark
        greatest = max([greatest, *(times[rows] - lateness - 1).tolist()])
        watermark = greatest
    yield events.slice(0, 0), 4_000_000_000_000


def streamed(unit, events, output, chance, *, count=1, lateness=3000, restart=0.5):
    """The rows that a stream over the events gives: every batch is packed, read by its bucket, and often goes through bytes."""
    states, rows, decided_until = {}, [], 0
    number = buckets_of(events, count)
    events = events.append_column(BUCKET, pa.array(number))
    for batch, watermark in arrivals(chance, events, lateness):
        blobs = {}
        for piece in pack("ts", iter(batch.to_batches(max_chunksize=5))):
            for bucket, blob in zip(piece[BUCKET].to_pylist(), piece[BLOB].to_pylist(), strict=True):
                blobs.setdefault(bucket, []).append(pa.ipc.open_stream(blob).read_all())
        for bucket in {*blobs, *states}:
            deadline, state = states.get(bucket, (None, None))
            if bucket not in blobs and (deadline is None or deadline > watermark):
                continue
            held = state if isinstance(state, Bucket) else Bucket(unit) if state is None else Bucket(unit).load(state)
            step = held.step(blobs.get(bucket, []), watermark)
            assert step.counts["late"] == 0
            for decided, blob in step.rows:
                assert decided_until < decided <= watermark * 1000, "a row at or below the watermark before fails the stream"
                rows += unpack(output, pa.array([blob], pa.binary())).to_pylist()[0]
            states[bucket] = (step.deadline, None if held.empty else held.dump() if chance.random() < restart else held)
        decided_until = watermark * 1000
    return rows, states


def shown(row):
    """A row as a value, with events by their numbers; a number that differs in its sign of zero or is NaN is one."""
    return repr(
        {
            name: [tuple(event.values()) for event in value] if isinstance(value, list) else value
            for name, value in row.items()
            if value is not None
        }
    )


def expected(query, table):
    """The rows of the whole table, events by their numbers."""
    rows = query.run(table, order="row").to_arrow(events=True).to_pylist()
    for row in rows:
        for name, value in row.items():
            if isinstance(value, list):
                row[name] = [{"row": event["row"]} for event in value]
    return rows


MOST_MATCHES = 1000


def random_case(seed, fragment):
    chance = random.Random(seed)
    while True:
        query = cepheid.query(random_query(chance, fragment=fragment).replace("CONSUME BY ANY", "CONSUME BY PARTITION"))
        table = timed(random_stream(chance, most=16))
        if len(query.run(table, order="row")) <= MOST_MATCHES:
            return query, table, chance


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_stream_gives_what_the_table_gives(fragment, cases, seed):
    matched = 0
    for number in range(max(cases // 4, 10)):
        query, table, chance = random_case(f"{seed}/{fragment}/{number}", FRAGMENTS[fragment])
        unit, events, output = unit_of([query], table)
        found, states = streamed(unit, events, output, chance, count=chance.choice([1, 2, 3]))
        wanted = expected(query, table)
        assert sorted(map(shown, found)) == sorted(map(shown, wanted)), (seed, number, query.text, table.to_pylist())
        compiled = query.compiled(query.schema(TIMED))
        if compiled.window is not None and not compiled.program.trackers:  # a nested strategy looks back for ever
            assert not [state for _, state in states.values() if state is not None], (query.text, "state of idle keys")
        matched += bool(found)
    assert matched > cases // 20
