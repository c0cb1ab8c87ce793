"""Random queries on random streams, many patterns in one Spark job: the same matches as `q.run`.

The pattern's number is a key column in front of the query's own; letters, filter and tasks are those that `q.on` would use, and the sorted
events go through the worker's own code. Rows come in any partitioning, in batches of a few hundred.
"""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough
from pyspark.sql import functions as F

import cepheid
from cepheid.engine.letters.encoded import travelling
from cepheid.spark.batch import Plan, letter_columns
from cepheid.spark.columns import ColumnPrinter, column_named
from cepheid.spark.recognition import on
from cepheid.spark.source import source_of
from cepheid.spark.tasks.worker import LETTER, TIME, Task, TaskRun, compiled_here, value_column
from cepheid.testing.differential import fits, matches_up_to
from cepheid.testing.fragments import fragments
from cepheid.testing.generators import SCHEMA, random_query, random_stream

PATTERN = "pattern"


def evaluate_many(spark, cases):
    """The matches of many (query, table) in one job per tuple of key attributes: for each case a sorted list of rows as text.

    All tables have one schema, with a column `row` that orders equal times.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    frame = spark.createDataFrame(stacked([table for _, table in cases]))
    source = source_of(frame.drop(PATTERN), cases[0][0].tree, type="type", time="ts")
    # Output names that differ in case alone (`b` and `B`) matter to writers, not to this test.
    plans = [Plan(query, on(query, order="row").options, source, query.compiled(source.schema), case_sensitive=True) for query, _ in cases]
    for number, plan in enumerate(plans):
        groups.setdefault(plan.compiled.keys, []).append(number)
    found = [[] for _ in cases]
    for members in groups.values():
        for number, text in one_job(frame, {number: plans[number] for number in members}):
            found[number].append(text)
    return [sorted(rows) for rows in found]


def stacked(tables):
    """All tables as one, with the number of each as a column, in random order."""
    whole = pa.concat_tables(
        [table.append_column(PATTERN, pa.array([number] * len(table), pa.int32())) for number, table in enumerate(tables)]
    )
    return whole.take(pa.array(np.random.default_rng(len(whole)).permutation(len(whole))))


def one_job(frame, plans):
    first = next(iter(plans.values()))
    names = first.source.names
    frame = frame.where(column_named(PATTERN).isin(list(plans))).toDF(*names.values(), PATTERN)
    printer = ColumnPrinter(frame.schema, names=names, time="ts")
    pattern = column_named(PATTERN)
    relevant = [(number, plan.relevant(printer) if plan.dropping else F.lit(True)) for number, plan in plans.items()]
    # Letters of queries with lag are made in the tasks.
    letters = [(number, plan.letter(printer, letter_columns([plan]).get(LETTER, [])).cast("int")) for number, plan in plans.items()]
    frame = frame.where(one_of(pattern, relevant))
    frame = first.without_dropped(frame, observed=None)
    columns = {PATTERN: pattern, **first.key_columns(), TIME: column_named(names["ts"]), "$letter": one_of(pattern, letters)}
    columns |= {name: column_named(name) for name in names.values()}
    comparing = [plan.compiled.program for plan in plans.values() if plan.values_travel]
    columns |= {value_column(value): printer.value(value) for program in comparing for value in travelling(program.values)}
    keys = [PATTERN, *first.key_columns()]
    prepared = frame.select(*(column.alias(name) for name, column in columns.items()))
    sorted_ = prepared.repartition(3, *keys).sortWithinPartitions(*(column_named(name) for name in [*keys, TIME, *first.tie_columns()]))
    tasks = {number: {name: getattr(plan.task(), name) for name in Task.__slots__} for number, plan in plans.items()}
    return [(row.pattern, row.match) for row in sorted_.mapInArrow(runner(tasks), "pattern int, match string").collect()]


def one_of(pattern, branches):
    """The column that belongs to each row's pattern."""
    number, column = branches[0]
    chosen = F.when(pattern == number, column)
    for number, column in branches[1:]:
        chosen = chosen.when(pattern == number, column)
    return chosen


def runner(tasks):
    # Nested, so that it travels by value: workers cannot import a test module.
    def recognize_many(batches):
        run, current = None, None
        for batch in batches:
            numbers = batch.column("pattern").to_numpy()
            starts = np.flatnonzero(np.diff(numbers, prepend=-1))
            for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
                number = int(numbers[start])
                if number != current:
                    yield from ended(run, current)
                    run, current = TaskRun(Task(**tasks[number]), compiled_here(tasks[number]), batch.schema), number
                yield from told(run.read(batch.slice(start, stop - start)), number)
        yield from ended(run, current)

    def ended(run, number):
        return iter(()) if run is None else told(run.end(), number)

    def told(found, number):
        for output in found:
            texts = [shown(row) for row in output.to_pylist()]
            yield pa.record_batch([pa.array([number] * len(texts), pa.int32()), pa.array(texts)], ["pattern", "match"])

    def shown(row):
        return repr({name: [event["row"] for event in value] if isinstance(value, list) else value for name, value in row.items()})

    return recognize_many


def expected(query, table):
    rows = query.run(table, order="row").to_arrow(events=True).to_pylist()
    return sorted(
        repr({name: [event["row"] for event in value] if isinstance(value, list) else value for name, value in row.items()}) for row in rows
    )


MOST_MATCHES = 2000
"""Of a random case: one in some thousands has millions, and here each becomes a text."""


FRAGMENTS = fragments("absence", "absence from the start", "definitions", absence=0.0)
"""What waits for events that do not come, and definitions, are tried by `test_table_functions` and `test_definitions`."""


def random_case(seed, fragment):
    source = random.Random(seed)
    while True:
        # Spark reads each key in a task of its own: one key's match cannot consume what others have begun.
        query = cepheid.query(random_query(source, fragment=fragment).replace("CONSUME BY ANY", "CONSUME BY PARTITION"))
        table = pa.Table.from_pylist(random_stream(source, most=14), schema=SCHEMA)
        table = table.append_column("row", pa.array(range(len(table)), pa.int64()))
        if not fits(query, table.schema) or (fragment.index and not query.compiled(query.schema(table)).positional):
            continue
        if matches_up_to(MOST_MATCHES, query, table, order="row") is not None:
            return query, table


@pytest.mark.slow
@pytest.mark.timeout(1800)  # with CEPHEID_CASES=2000; a test that is cut off inside a call of Spark breaks those after it
def test_many_patterns_in_one_job(spark, cases, seed):
    """Of every fragment so many; a job has patterns of several, for it costs more than they do."""
    made = []
    for name, fragment in FRAGMENTS.items():
        enough = Enough(cases // (2 if name == "any pattern" else 4 if fragment.index else 8), matched=2)
        for number in enough:
            query, table = random_case(seed * 10_000 + number, fragment)
            made.append((name, query, table, expected(query, table)))
            enough.seen["matched"] += bool(made[-1][-1])
    for position in range(0, len(made), 100):
        piece = made[position : position + 100]
        answers = evaluate_many(spark, [(query, table) for _, query, table, _ in piece])
        for (name, query, table, truth), found in zip(piece, answers, strict=True):
            assert found == truth, (name, query.text, table.to_pylist())
