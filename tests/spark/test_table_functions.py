"""Table functions without Spark: what a call reads, the rows of its partitions, and every wrong call an error that says how to call."""

from __future__ import annotations

import datetime as dt
import importlib
import inspect
import itertools
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from enough import Enough
from pyspark.sql import Column
from pyspark.sql import types as spark_types
from sql_cases import VALUES

import cepheid
from cepheid.spark.any_query import RowReader, rows_of
from cepheid.spark.calls import plan_of, reading_of
from cepheid.spark.columns import spark_type
from cepheid.spark.recognition import on
from cepheid.spark.tasks import tables
from cepheid.spark.tasks.row_values import from_arrow, to_arrow
from cepheid.spark.tasks.tables import CallPartition, TaskReader, is_between, is_cut
from cepheid.spark.translation import cepheid_error
from cepheid.testing.differential import fits, matches_up_to
from cepheid.testing.fragments import fragments
from cepheid.testing.generators import SCHEMA, random_query, random_stream


def reading(query, schema, name="fire", **options):
    fields = spark_types.StructType([spark_types.StructField(field.name, spark_type(field.type)) for field in schema])
    plan = plan_of(query, on(query, **options).options, fields, case_sensitive=True)
    return plan, reading_of(plan, name, option="cepheid.spark.register(.., {}={})", form="{}(TABLE(..) {})")


class Wrapper:
    """What Spark puts between a call with PARTITION BY and the function: an object per partition, the table in pieces."""

    _partition_child_indexes = (0,)

    def __init__(self, handler):
        self.handler = handler
        self.open = handler()

    def eval(self, pieces, *, first):
        if not first:
            yield from self.open.terminate()
            self.open = self.handler()
        for piece in pieces:
            yield from self.open.eval(piece)

    def terminate(self):
        yield from self.open.terminate()
        self.open.cleanup()


def called(read, table, keys, source):
    """The rows of a call over a table, whose rows are in order of keys and time, cut into random batches."""
    wrapper = Wrapper(type("fire", (CallPartition,), {"reading": read}))
    marks = [tuple(row.values()) for row in table.select(list(keys)).to_pylist()] if keys else [()] * len(table)
    # NaN is a partition of its own, as to Spark's wrapper.
    starts = [0, *(row for row in range(1, len(table)) if marks[row] != marks[row - 1]), len(table)]
    found = []
    for number, (start, stop) in enumerate(itertools.pairwise(starts)):
        cuts = sorted({start, stop, *(source.randint(start, stop) for _ in range(source.randint(0, 3)))})
        pieces = [
            table.slice(begin, end - begin).combine_chunks().to_batches()[0] for begin, end in itertools.pairwise(cuts) if end > begin
        ]
        found += wrapper.eval(pieces, first=number == 0)
    return found + list(wrapper.terminate())


def in_order(table, keys, source):
    """The rows brought together by key, in the order of time and row within each: the keys come in any order."""
    places = list(range(len(table)))
    source.shuffle(places)
    rows = table.to_pylist()
    rank = {}
    for place in places:
        rank.setdefault(repr([rows[place][key] for key in keys]), len(rank))
    # Equal to Python, and so to Spark, are also values of other types and signs.
    places.sort(key=lambda place: (rank[repr([rows[place][key] for key in keys])], rows[place]["ts"], rows[place]["row"]))
    return table.take(pa.array(places, pa.int64()))


MOST_MATCHES = 2000
"""Of a random case: each becomes a text."""

CONSTRUCT = importlib.import_module("cepheid.automata.construct")

FRAGMENTS = fragments()


def drawn(source, fragment):
    """A random query; of positions, where the fragment is about these."""
    while True:
        query = cepheid.query(random_query(source, fragment=fragment).replace("CONSUME BY ANY", "CONSUME BY PARTITION"))
        if fits(query, SCHEMA) and (not fragment.index or query.compiled(query.schema(SCHEMA)).positional):
            return query


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_random_queries_give_the_rows_of_run(fragment, cases, seed, monkeypatch):
    enough = Enough(cases // 5, matched=3)
    for number in enough:
        source = random.Random(seed * 10_000 + number)
        query = drawn(source, FRAGMENTS[fragment])
        table = pa.Table.from_pylist(random_stream(source, most=24), schema=SCHEMA)
        table = table.append_column("row", pa.array(range(len(table)), pa.int64()))
        until = source.choice(["end", source.randint(0, 20)] if "NOT FOLLOWED" in query.text else [None, "end", source.randint(0, 20)])
        monkeypatch.setattr(tables, "HELD_ROWS", source.choice([1, 5, 1000]))
        expected = matches_up_to(MOST_MATCHES, query, table, order="row", until=until)
        if expected is None:
            continue
        plan, read = reading(query, table.schema, order="row", type="type", time="ts", until=until)
        found = called(read, in_order(table, plan.compiled.keys, source), plan.compiled.keys, source)
        rows = [row for batch in found for row in batch.to_pylist()]
        assert sorted(map(repr, rows)) == sorted(map(repr, expected.to_arrow(events=True).to_pylist())), (query.text, table.to_pylist())
        enough.seen["matched"] += bool(rows)


@pytest.mark.parametrize("null_keys", ["drop", "group"])
def test_equalities_within_partitions_give_the_rows_of_run(null_keys, cases, seed):
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v PARTITION BY k")
    enough = Enough(cases // 4, matched=3)
    for number in enough:
        source = random.Random(seed * 10_000 + number)
        size = source.randint(2, 14)
        table = pa.table(
            {
                "type": source.choices("AB", k=size),
                "ts": pa.array(range(size), pa.int64()),
                "k": pa.array(source.choices([1, 2, None], k=size), pa.int64()),
                "v": pa.array(source.choices([0.0, 1.5, float("nan"), None], k=size)),
                "row": pa.array(range(size), pa.int64()),
            }
        )
        plan, read = reading(query, table.schema, null_keys=null_keys)
        assert plan.compiled.keys == ("k", "v")
        found = called(read, in_order(table, ("k", "v"), source), ("k", "v"), source)
        expected = query.run(table, null_keys=null_keys).to_arrow(events=True).to_pylist()
        assert sorted(repr(row) for batch in found for row in batch.to_pylist()) == sorted(map(repr, expected)), table.to_pylist()
        enough.seen["matched"] += bool(expected)


BURST = """
EVENT Burst(n) AS (SELECT MAX count(a) AS n WHERE A+ AS a PARTITION BY k WITHIN 4)
SELECT u.n AS n, b.row AS row WHERE Burst AS u ; B AS b PARTITION BY k WITHIN 6
"""


@pytest.mark.parametrize("null_keys", ["drop", "group"])
@pytest.mark.parametrize("text", [BURST, BURST.replace("PARTITION BY k ", "")])
def test_definitions_see_the_events_of_one_partition_of_the_call(text, null_keys, cases, seed, monkeypatch):
    """Several partitions of the call may have one key, or none, and are decided together."""
    query, enough = cepheid.query(text), Enough(cases // 20, matched=2)
    for number in enough:
        source = random.Random(seed * 10_000 + number)
        table = pa.Table.from_pylist(random_stream(source, most=24), schema=SCHEMA)
        parts = pa.array([source.choice("xyz") for _ in range(len(table))], pa.string())
        table = table.append_column("row", pa.array(range(len(table)), pa.int64())).append_column("part", parts)
        monkeypatch.setattr(tables, "HELD_ROWS", source.choice([1, 5, 1000]))
        plan, read = reading(query, table.schema, order="row", null_keys=null_keys)
        keys = (*plan.compiled.keys, "part")
        found = called(read, in_order(table, keys, source), keys, source)
        alone = [table.filter(pc.equal(table["part"], part)) for part in "xyz"]
        expected = [
            row
            for one in alone
            for row in query.run(one, order="row", null_keys=null_keys)
            .to_arrow()
            .drop_columns(["start_position", "end_position"])
            .to_pylist()
        ]
        rows = [row for batch in found for row in batch.to_pylist()]
        assert sorted(map(repr, rows)) == sorted(map(repr, expected)), table.to_pylist()
        enough.seen["matched"] += bool(rows)


TABLE = pa.table(
    {
        "ts": pa.array([1, 2, 3, 4, 5, 5], pa.int64()),
        "type": list("ABABAB"),
        "k": pa.array([1, 1, 1, 1, 2, 2], pa.int32()),
        "v": [1.0, 2.0, 3.0, float("nan"), 5.0, 6.0],
    }
)
PAIR = cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k")


def read_all(read, batches, kind=TaskReader):
    reader = kind(read)
    reader.open()
    found = [batch for rows in batches for batch in reader.push(rows, len(rows))]
    return [row for batch in [*found, *reader.flush()] for row in batch.to_pylist()]


def test_two_keys_in_one_partition_are_an_error():
    _, read = reading(PAIR, TABLE.schema, order="any")
    with pytest.raises(cepheid.InputError, match="events of k=1 and of k=2") as error:
        read_all(read, TABLE.to_batches())
    assert error.value.help == ("call fire(TABLE(..) PARTITION BY (k) ORDER BY (ts))",)
    one_by_one = [TABLE.slice(row, 1).to_batches()[0] for row in range(len(TABLE))]
    with pytest.raises(cepheid.InputError, match="events of k=1 and of k=2"):
        read_all(read, one_by_one)


def test_rows_out_of_order_are_an_error():
    _, read = reading(PAIR, TABLE.schema)
    with pytest.raises(cepheid.InputError, match="not in the order of `ts`: 2 comes after 3"):
        read_all(read, TABLE.take([0, 2, 1, 3]).to_batches())
    _, read = reading(PAIR, TABLE.schema, order="v")
    with pytest.raises(cepheid.InputError, match=r"in the order of `ts`, `v`: 5, 5\.0 comes after 5, 6\.0") as error:
        read_all(read, TABLE.take([5, 4]).to_batches())
    assert "ORDER BY (ts, v NULLS LAST)" in error.value.help[0]


def test_null_is_the_last_of_equal_times():
    table = pa.table({"ts": [1, 1, 1, 1], "type": list("AABB"), "k": [1, 1, 1, 1], "v": [1, 2, None, None], "w": [5, 5, 1, 2]})
    _, read = reading(PAIR, table.schema, order=["v", "w"])
    assert len(read_all(read, table.to_batches())) == 4
    with pytest.raises(cepheid.InputError, match="1, 2, 5 comes after 1, None, 2"):
        read_all(read, table.take([2, 3, 1]).to_batches())
    with pytest.raises(cepheid.InputError, match="1, None, 1 comes after 1, None, 2"):
        read_all(read, [table.slice(3, 1).to_batches()[0], table.slice(2, 1).to_batches()[0]])


def test_ties_and_null_times_name_the_options_of_register():
    _, read = reading(PAIR, TABLE.schema)
    with pytest.raises(cepheid.InputError, match="two events of k=2 have the same time 5") as error:
        read_all(read, TABLE.slice(4).to_batches())
    assert "cepheid.spark.register(.., order=[..])" in error.value.help[0]
    without = pa.table({"ts": [None, 2], "type": ["A", "B"], "k": [1, 1]}, schema=TABLE.schema.remove(3))
    _, read = reading(PAIR, without.schema)
    with pytest.raises(cepheid.InputError, match="`ts` is NULL") as error:
        read_all(read, without.to_batches())
    assert 'cepheid.spark.register(.., null_time="drop")' in error.value.help[0]
    _, read = reading(PAIR, without.schema, null_time="drop")
    assert read_all(read, without.to_batches()) == []


def test_times_outside_the_bounds_name_the_option_of_register():
    """Of any type; what comes after `until` is not read."""
    times = pa.array([0, 1, 2, 10**18], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "type": ["A", "B", "A", "Z"], "k": [1, 1, 1, 1]})
    _, read = reading(PAIR, table.schema)
    with pytest.raises(cepheid.InputError, match=r"an event of k=1 has the time 33658-09-27 01:46:40 in `ts`, which is outside") as error:
        read_all(read, table.to_batches())
    assert 'cepheid.spark.register(.., bad_time="drop")' in error.value.help[1]
    for options in ({"bad_time": "drop"}, {"until": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}):
        _, read = reading(PAIR, table.schema, **options)
        assert len(read_all(read, table.to_batches())) == 1
    nulls = pa.table({"ts": pa.array([None, 10**18], pa.int64()).cast(times.type), "type": ["A", "B"], "k": [1, 1]})
    _, read = reading(PAIR, table.schema, bad_time="drop", null_time="drop")
    assert read_all(read, nulls.to_batches()) == []
    _, read = reading(PAIR, table.schema, bad_time="drop")
    with pytest.raises(cepheid.InputError, match="`ts` is NULL"):
        read_all(read, nulls.to_batches())


def test_rows_of_another_schema_are_an_error():
    _, read = reading(PAIR, TABLE.schema)
    one = TABLE.slice(0, 2)
    with pytest.raises(cepheid.SchemaError, match="reads one column `v`, and the rows of the call have none"):
        read_all(read, one.drop_columns("v").to_batches())
    with pytest.raises(cepheid.SchemaError, match="reads the column `v` as double, and the rows of the call have int64"):
        read_all(read, one.set_column(3, "v", pa.array([1, 2])).to_batches())
    twice = one.append_column("v", one["v"])
    with pytest.raises(cepheid.SchemaError, match="have 2 of this name"):
        read_all(read, twice.to_batches())
    other = one.select(["k", "v", "ts", "type"]).append_column("more", pa.array([1, 2]))
    assert len(read_all(read, other.to_batches())) == 1


def test_partitions_are_read_by_themselves_whatever_their_keys():
    table = pa.table({"ts": [1, 5, 1, 5], "type": list("ABAB"), "k": [1, 1, 1, 1]})
    for text, positions in (("SELECT * WHERE A AS a ; B AS b", [0, 0]), ("SELECT * WHERE A AS a ; B AS b PARTITION BY k", [0, 0])):
        _, read = reading(cepheid.query(text), table.schema, positions=True)
        reader = TaskReader(read)
        for start in (0, 2):
            reader.open()
            assert list(reader.push(table.slice(start, 1).to_batches()[0], 1)) == []
            assert list(reader.push(table.slice(start + 1, 1).to_batches()[0], 1)) == []
        found = [row for batch in reader.flush() for row in batch.to_pylist()]
        assert [row["start_position"] for row in found] == positions
        assert [row["end_position"] for row in found] == [1, 1]


def test_only_a_known_caller_makes_rows_wait():
    class Other:
        def eval(self, function):
            return function()

    class Known(Other):
        _partition_child_indexes = (0,)

    def cut():
        return is_cut(inspect.currentframe())

    def between():
        return is_between(inspect.currentframe())

    assert (Other().eval(cut), Known().eval(cut)) == (False, True)
    assert (Other().eval(between), Known().eval(between)) == (False, True)
    assert not is_cut(None)


def test_a_call_without_partitions_is_an_error():
    _, read = reading(PAIR, TABLE.schema)
    reader = TaskReader(read)
    reader.check_whole(part=0, cut=False, streaming=False)
    reader.check_whole(part=3, cut=True, streaming=True)
    with pytest.raises(cepheid.InputError, match="fire reads whole partitions in order, and this call does not name them"):
        reader.check_whole(part=1, cut=False, streaming=False)
    with pytest.raises(cepheid.NotSupportedError, match="each micro-batch alone"):
        reader.check_whole(part=0, cut=False, streaming=True)


def test_what_no_call_can_do_right_is_refused():
    keyed = cepheid.query("SELECT * WHERE A : B PARTITION BY name")

    def table(kind, name="name"):
        return spark_types.StructType().add("ts", "long").add("type", "string").add(name, kind)

    collated, floating = table(spark_types.StringType("UTF8_LCASE")), table("double")
    with pytest.raises(cepheid.SchemaError, match="the key `name` has a collation"):
        plan_of(keyed, on(keyed).options, collated, case_sensitive=False)
    plan_of(keyed, on(keyed).options, floating, case_sensitive=False)
    with pytest.raises(cepheid.SchemaError, match="the key `name` is double, and Spark's PARTITION BY does not group NaN"):
        plan_of(keyed, on(keyed, null_keys="group").options, floating, case_sensitive=False)
    with pytest.raises(cepheid.InputError, match="a table function reads columns"):
        plan_of(keyed, on(keyed, type=object.__new__(Column)).options, floating, case_sensitive=False)
    with pytest.raises(cepheid.NotSupportedError, match="that merge combined"):
        plan_of(keyed, on(keyed).options, table("string", "$stream"), case_sensitive=False)
    absent = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 5 PARTITION BY name")
    with pytest.raises(cepheid.InputError, match="NOT FOLLOWED BY needs to know up to when") as error:
        plan_of(absent, on(absent).options, floating, case_sensitive=False)
    assert error.value.help[0].startswith('say until="end"')
    plan_of(absent, on(absent, until=7).options, floating, case_sensitive=False)
    with pytest.raises(cepheid.InputError, match="'soon' is not a time of the column `ts`"):
        reading(absent, pa.schema({"ts": pa.int64(), "type": pa.string(), "name": pa.string()}), until="soon")


def test_values_of_rows_come_and_go():
    for field in VALUES.schema:
        values = VALUES[field.name].to_pylist()
        there, back = to_arrow(field.type), from_arrow(field.type)
        spark = values if back is None else list(map(back, values))
        again = pa.array(spark if there is None else list(map(there, [as_row(value) for value in spark])), field.type)
        assert again.equals(VALUES[field.name].combine_chunks()), field


def as_row(value):
    """A value as Spark's rows have it: a struct is a Row."""
    if isinstance(value, dict) and set(value) == {"m", "n"}:
        return spark_types.Row(*value)(*value.values())
    return value


DECIDED_BY_PARTITIONS = [
    "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 5 PARTITION BY k",
    "EVENT X(n) AS (SELECT a.v AS n WHERE A AS a PARTITION BY k) SELECT x.n AS n WHERE X AS x PARTITION BY k",
]


@pytest.mark.parametrize("text", DECIDED_BY_PARTITIONS)
def test_what_is_decided_by_partitions(text):
    """Errors name the key alone, and no time is too late for the end."""
    _, read = reading(cepheid.query(text), TABLE.schema, until="end")
    reader = TaskReader(read)
    reader.open()
    assert list(reader.push(TABLE.slice(4).to_batches()[0], 2)) == []
    with pytest.raises(cepheid.InputError, match="two events of k=2 have the same time 5"):
        list(reader.close())
    last = TABLE.slice(0, 3).set_column(0, "ts", pa.array([1, 2**62 + 5, 2**62 + 9], pa.int64()))
    reader = TaskReader(read)
    reader.open()
    assert list(reader.push(last.to_batches()[0], 3)) == []
    assert sum(len(batch) for batch in reader.close()) == len(cepheid.query(text).run(last, until="end")) == 2


def test_attributes_that_only_an_absence_reads():
    """Single rows have the columns that are announced, and no others; where one is missing, or of another type, nothing is read."""
    query = cepheid.query("SELECT x.v AS m WHERE A AS x NOT FOLLOWED BY (B FILTER B.w > 1) FOR 4 PARTITION BY k")
    table = pa.table({"ts": [1, 2, 5, 20], "type": list("AABA"), "k": [1, 1, 1, 1], "v": [1, 2, 3, 4], "w": [0, 0, 2, 0]})
    _, read = reading(query, table.schema, until="end")
    reader = RowReader(read)
    reader.open()
    events = [spark_types.Row(*row)(*row.values()) for row in table.to_pylist()]
    found = [row for event in events for row in rows_of(reader.push(event, 1))] + list(rows_of(reader.close()))
    assert [row[-1] for row in found] == [row["m"] for row in query.run(table, until="end").to_arrow().to_pylist()] == [4]
    for other in (table.drop_columns(["w"]), table.set_column(4, "w", pa.array(["0", "0", "2", "0"]))):
        with pytest.raises(cepheid.SchemaError, match="`w`"):
            read_all(read, other.to_batches())


def test_single_rows_are_read_like_batches():
    _, read = reading(PAIR, TABLE.schema, order="any")
    rows = [spark_types.Row(*row)(*row.values()) for row in TABLE.slice(0, 4).to_pylist()]
    reader = RowReader(read)
    reader.open()
    found = [row for event in rows for row in rows_of(reader.push(event, 1))] + list(rows_of(reader.flush()))
    assert sorted(row[:3] for row in found) == [(1, 1, 2), (1, 1, 4), (1, 3, 4)]
    assert min(found)[3] == [{"ts": 1, "type": "A", "k": 1, "v": 1.0}]


def test_spark_s_words_come_back_as_ours():
    shown = (
        "[X] Failed: Traceback\ncepheid.errors.BindError: error: unknown attribute `w`\n"
        "  2 | WHERE A AS a FILTER a[w > 3]\n    |                       ^\nhelp: one\nhelp: two SQLSTATE: 38000; line 1 pos 14\n more"
    )
    error = cepheid_error(ValueError(shown))
    assert isinstance(error, cepheid.BindError)
    assert str(error).splitlines()[1:] == ["  2 | WHERE A AS a FILTER a[w > 3]", "    |                       ^", "help: one", "help: two"]
    assert cepheid_error(ValueError("Sorting is not supported on streaming DataFrames: Sort [ts]")) is None
    assert cepheid_error(ValueError("cepheid.errors.InputError: error: a fact SQLSTATE: 38000")).fact == "a fact"
    slow = cepheid_error(
        ValueError("[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST")
    )
    assert isinstance(slow, cepheid.SetupError)
    assert "did not start within the 10 seconds" in slow.fact
