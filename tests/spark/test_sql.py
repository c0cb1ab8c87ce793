"""Table functions of SQL: the same rows as `q.on` on random queries and data, and every wrong call an error that says how to call."""

from __future__ import annotations

import datetime as dt
import decimal
import importlib
import inspect
import itertools
import random
import time

import pyarrow as pa
import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

import cepheid
from cepheid.spark import register, translated
from cepheid.spark.any_query import RowReader, rows_of
from cepheid.spark.calls import plan_of, reading_of
from cepheid.spark.columns import spark_type
from cepheid.spark.recognition import on
from cepheid.spark.tasks import tables
from cepheid.spark.tasks.row_values import from_arrow, to_arrow
from cepheid.spark.tasks.tables import Partition, Reader, is_between, is_cut
from cepheid.spark.translation import cepheid_error
from cepheid.testing.differential import matches_up_to
from cepheid.testing.generators import ABSENT, ENGINE, NESTED, SCHEMA, WAITING, random_query, random_stream

# ---------------------------------------------------------------------------------------------------------------- without Spark


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
    wrapper = Wrapper(type("fire", (Partition,), {"reading": read}))
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

FRAGMENTS = {"engine": ENGINE, "NXT, LAST, MAX": WAITING, "nested": NESTED, "absence": ABSENT}


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_random_queries_give_the_rows_of_run(fragment, cases, seed, monkeypatch):
    matched = 0
    for number in range(cases // 2):
        source = random.Random(seed * 10_000 + number)
        query = cepheid.query(random_query(source, fragment=FRAGMENTS[fragment]).replace("CONSUME BY ANY", "CONSUME BY PARTITION"))
        table = pa.Table.from_pylist(random_stream(source, most=14), schema=SCHEMA)
        table = table.append_column("row", pa.array(range(len(table)), pa.int64()))
        until = source.choice(["end", source.randint(0, 20)] if "NOT FOLLOWED" in query.text else [None, "end", source.randint(0, 20)])
        monkeypatch.setattr(tables, "HELD_ROWS", source.choice([1, 5, 1000]))
        try:
            expected = matches_up_to(MOST_MATCHES, query, table, order="row", until=until)
        except cepheid.LimitError:
            continue
        if expected is None:
            continue
        plan, read = reading(query, table.schema, order="row", type="type", time="ts", until=until)
        found = called(read, in_order(table, plan.compiled.keys, source), plan.compiled.keys, source)
        rows = [row for batch in found for row in batch.to_pylist()]
        assert sorted(map(repr, rows)) == sorted(map(repr, expected.to_arrow(events=True).to_pylist())), (query.text, table.to_pylist())
        matched += bool(rows)
    assert matched >= cases // 10


@pytest.mark.parametrize("null_keys", ["drop", "group"])
def test_equalities_within_partitions_give_the_rows_of_run(null_keys, cases, seed):
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v PARTITION BY k")
    matched = 0
    for number in range(cases // 4):
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
        matched += bool(expected)
    assert matched > cases // 100


TABLE = pa.table(
    {
        "ts": pa.array([1, 2, 3, 4, 5, 5], pa.int64()),
        "type": list("ABABAB"),
        "k": pa.array([1, 1, 1, 1, 2, 2], pa.int32()),
        "v": [1.0, 2.0, 3.0, float("nan"), 5.0, 6.0],
    }
)
PAIR = cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k")


def read_all(read, batches, kind=Reader):
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
        reader = Reader(read)
        for start in (0, 2):
            reader.open()
            assert list(reader.push(table.slice(start, 1).to_batches()[0], 1)) == []
            assert list(reader.push(table.slice(start + 1, 1).to_batches()[0], 1)) == []
        found = [row for batch in reader.flush() for row in batch.to_pylist()]
        assert [row["start"] for row in found] == positions
        assert [row["end"] for row in found] == [1, 1]


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
    reader = Reader(read)
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


VALUES = pa.table(
    {
        "ts": pa.array(
            [dt.datetime(2026, 10, 25, 0, 30, 0, 5, dt.UTC), dt.datetime(2026, 10, 25, 1, 30, 0, 5, dt.UTC)], pa.timestamp("us", "UTC")
        ),
        "type": ["A", "B"],
        "local": pa.array([dt.datetime(2026, 1, 1, 1, tzinfo=dt.UTC), None], pa.timestamp("us")),
        "day": [dt.date(2026, 1, 1), None],
        "exact": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)),
        "bytes": [b"ab", None],
        "took": pa.array([dt.timedelta(hours=1, microseconds=1), None], pa.duration("us")),
        "list": pa.array([[1, None], None], pa.list_(pa.int64())),
        "times": pa.array([[dt.datetime(2026, 7, 1, tzinfo=dt.UTC), None], None], pa.list_(pa.timestamp("us", "UTC"))),
        "map": pa.array(
            [[("x", dt.datetime(2026, 7, 1, tzinfo=dt.UTC)), ("y", None)], None], pa.map_(pa.string(), pa.timestamp("us", "UTC"))
        ),
        "inner": pa.array([{"m": [("x", 1)], "n": 2}, None], pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("n", pa.int32())])),
    }
)


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


# ------------------------------------------------------------------------------------------------------------------- with Spark


START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
MIDDLE = START + dt.timedelta(seconds=200)


def stream(size, seed=5):
    source = random.Random(seed)
    return pa.table(
        {
            "id": pa.array(range(size), pa.int64()),
            "ts": pa.array(
                [START + dt.timedelta(seconds=source.randrange(size // 2)) for _ in range(size)],
                pa.timestamp("us", "UTC"),
            ),
            "type": [source.choice("ABCD") for _ in range(size)],
            "k": pa.array([source.choice([1, 2, 3, None]) for _ in range(size)], pa.int32()),
            "b": [source.choice(["x", "y"]) for _ in range(size)],
            "v": pa.array([source.choice([0.5, 2.5, float("nan"), None]) for _ in range(size)]),
        }
    )


@pytest.fixture(scope="module")
def events(spark):
    frame = spark.createDataFrame(stream(1500)).repartition(3)
    frame.createOrReplaceTempView("events")
    register(spark)
    return frame


def rows(frame):
    return sorted(map(repr, frame.collect()))


CALLS = {
    "SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x[v >= 1] PARTITION BY k WITHIN 10 seconds": ("k", {}),
    "SELECT ANY * WHERE A AS one ; B AS two PARTITION BY k, b WITHIN 30 seconds": ("k, b", {"positions": True}),
    "SELECT a.v AS v, duration() AS took WHERE A AS a ; B AS z PARTITION BY k WITHIN 9 seconds": ("k", {}),
    "SELECT COUNT(*) WHERE A ; B ; C PARTITION BY k WITHIN 40 seconds": ("k", {}),
    "SELECT MAX * WHERE A AS a ; D+ AS d WITHIN 10 seconds": ("", {"columns": ["id"]}),
    "SELECT * WHERE A AS a ; C AS c FILTER a.k = c.k WITHIN 5 seconds": ("k", {"columns": ["id", "v"]}),
    "SELECT * WHERE A AS a : B AS z PARTITION BY v CONSUME BY PARTITION": ("v", {"columns": ["id", "v"]}),
    "SELECT * WHERE (A AS a ; B AS z) NOT FOLLOWED BY C FOR 2 seconds PARTITION BY k WITHIN 3 seconds": ("k", {"until": "end"}),
    "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 2 seconds": ("", {"until": MIDDLE, "columns": ["id"]}),
    "SELECT NXT * WHERE A AS a ; B AS z PARTITION BY k WITHIN 4 seconds": ("k", {"until": MIDDLE}),
}
"""Queries, what a call's PARTITION BY says, and options."""


def clause(keys):
    return f"PARTITION BY ({keys})" if keys else "WITH SINGLE PARTITION"


@pytest.mark.parametrize("text", CALLS)
def test_a_registered_query_gives_the_rows_of_on(spark, events, text):
    keys, options = CALLS[text]
    query = cepheid.query(text)
    register(spark, "found", query, schema="events", order="id", **options)
    expected = events.transform(query.on(order="id", **options))
    result = spark.sql(f"SELECT * FROM found(TABLE(events) {clause(keys)} ORDER BY (ts, id NULLS LAST))")
    assert result.schema == expected.schema
    assert rows(result) == rows(expected)
    assert expected.count() > 3


def test_any_query_in_the_call(spark, events):
    for text, (keys, options) in list(CALLS.items())[1:4]:
        query = cepheid.query(text)
        expected = events.transform(query.on(order="id", **options))
        said = "".join(f", {name} => {str(value).lower()}" for name, value in options.items() if name == "positions")
        result = spark.sql(
            f"SELECT * FROM cepheid_match(events => TABLE(events) {clause(keys)} ORDER BY (ts, id), query => '{text}', order => 'id'{said})"
        )
        assert result.schema == expected.schema
        assert rows(result) == rows(expected)


def test_any_query_takes_parameters_and_options(spark, events):
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b FILTER a[v > :least] PARTITION BY k WITHIN 3 seconds", args={"least": 1.5})
    expected = events.transform(query.on(order=["id"], null_keys="group", columns=["id", "k"]))
    result = spark.sql(
        f"SELECT * FROM cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts, id), '{query.text}', args => named_struct('least', 1.5D),"
        " order => array('id'), null_keys => 'group', columns => array('id', 'k'), time => 'ts', type => 'type')"
    )
    assert rows(result) == rows(expected)
    assert any("k=None" in row for row in rows(result))


PARAMETRISED = (
    "SELECT * WHERE A AS a ; B{:n,:m} AS b FILTER a[v IN :vs] AND b.v NOT IN :none PARTITION BY k WITHIN :w LIMIT :most",
    {"n": 1, "m": 2, "vs": [0.5, 2.5], "none": [decimal.Decimal("7.5"), None], "w": dt.timedelta(seconds=3), "most": 4},
)


def test_parameters_stand_wherever_a_constant_does(spark, events):
    text, args = PARAMETRISED
    constant = (
        "SELECT * WHERE A AS a ; B{1,2} AS b FILTER a[v IN (0.5e0, 2.5e0)] AND b.v NOT IN (7.5, NULL) PARTITION BY k WITHIN 3s LIMIT 4"
    )
    expected = rows(events.transform(cepheid.query(constant).on(order=["id"])))
    query = cepheid.query(text, args=args)
    assert rows(events.transform(query.on(order=["id"]))) == expected
    register(spark, "parametrised", query, schema=events, order=["id"])
    assert rows(spark.sql("SELECT * FROM parametrised(TABLE(events) PARTITION BY k ORDER BY (ts, id))")) == expected
    for window in ("INTERVAL '3' SECOND", "'3 seconds'"):
        given = f"named_struct('n', 1, 'm', 2Y, 'vs', array(0.5D, 2.5D), 'none', array(7.5, NULL), 'w', {window}, 'most', 4L)"
        call = f"cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts, id), '{text}', args => {given}, order => 'id')"
        assert rows(spark.sql(f"SELECT * FROM {call}")) == expected
    assert expected


@pytest.mark.parametrize(("until", "said"), [("end", "'end'"), (MIDDLE, "TIMESTAMP '2026-01-01 01:03:20+01:00'")])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_any_query_is_told_up_to_when_the_events_are_complete(spark, events, until, said, zone):
    query = cepheid.query("SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 5 seconds PARTITION BY k")
    expected = rows(events.transform(query.on(order="id", until=until)))
    call = "cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts, id), '{}', order => 'id', until => {})"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert rows(spark.sql(f"SELECT * FROM {call.format(query.text, said)}")) == expected != []
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_every_type_goes_through_single_rows(spark, events):
    frame = spark.createDataFrame(VALUES).withColumn("local", F.col("local").cast("timestamp_ntz"))
    frame.createOrReplaceTempView("things")
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b")
    result = spark.sql("SELECT * FROM cepheid_match(TABLE(things) WITH SINGLE PARTITION ORDER BY (ts), 'SELECT * WHERE A AS a ; B AS b')")
    register(spark, "pairs", query, schema=VALUES.schema)
    batches = spark.sql("SELECT * FROM pairs(TABLE(things) WITH SINGLE PARTITION ORDER BY ts)")
    expected = frame.transform(query.on())
    assert result.schema == batches.schema == expected.schema
    assert rows(result) == rows(batches) == rows(expected) != []


def test_the_session_s_time_zone_changes_nothing(spark, events):
    query = "SELECT * WHERE A AS a : B AS b PARTITION BY k WITHIN 5 seconds"
    expected = rows(events.transform(cepheid.query(query).on(order="id")))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        register(spark, "found", query, schema=events, order="id")
        for call in ("found(TABLE(events) PARTITION BY k ORDER BY (ts, id))", MATCHED.format(query)):
            assert rows(spark.sql(f"SELECT * FROM {call}")) == expected != []
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


MATCHED = "cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts, id), '{}', order => 'id')"


def test_dataframes_and_schemas_of_all_kinds(spark, events):
    query = "SELECT * WHERE A AS a : B AS b PARTITION BY k"
    expected = rows(events.transform(cepheid.query(query).on(order="id")))
    for schema in (events, "events", events.schema, stream(10).schema):
        found = register(spark, "found", query, schema=schema, order="id")
        assert rows(found(events.asTable().partitionBy("k").orderBy("ts", "id"))) == expected
    # The rows of the call may have more columns, in another order.
    wider = "SELECT 1 AS more, v, b, k, type, ts, id FROM events"
    assert rows(spark.sql(f"SELECT * FROM found(TABLE({wider}) PARTITION BY k ORDER BY (ts, id))")) == expected


@pytest.mark.parametrize(
    ("call", "kind", "fact"),
    [
        ("TABLE(events)", cepheid.InputError, "whole partitions in order, and this call does not name them|events of k="),
        ("TABLE(events) WITH SINGLE PARTITION ORDER BY (ts, id)", cepheid.InputError, "one partition of the call has events of k="),
        ("TABLE(events) PARTITION BY k", cepheid.InputError, "not in the order of"),
        ("TABLE(events) PARTITION BY k ORDER BY ts DESC", cepheid.InputError, "not in the order of `ts`"),
        ("TABLE(events) PARTITION BY k ORDER BY (ts, id DESC)", cepheid.InputError, "not in the order of `ts`, `id`"),
        ("TABLE(SELECT ts, type, k, id, b FROM events) PARTITION BY k ORDER BY (ts, id)", cepheid.SchemaError, "reads one column `v`"),
    ],
)
def test_wrong_calls(spark, events, call, kind, fact):
    register(spark, "fire", "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 3 seconds", schema=events, order="id")
    with pytest.raises(kind, match=fact), translated():
        spark.sql(f"SELECT * FROM fire({call})").collect()


def test_a_table_in_pieces_is_no_partition(spark, events):
    spark.range(0, 40, 1, 4).selectExpr("id AS ts", "'A' AS type").createOrReplaceTempView("pieces")
    register(spark, "runs", "SELECT * WHERE A AS a : A AS b : A AS c", schema="pieces")
    assert spark.sql("SELECT * FROM runs(TABLE(pieces) WITH SINGLE PARTITION ORDER BY ts)").count() == 38
    for function, more in (("runs", ""), ("cepheid_match", ", 'SELECT * WHERE A AS a : A AS b : A AS c'")):
        with pytest.raises(cepheid.InputError, match="each task got a part of the table"), translated():
            spark.sql(f"SELECT * FROM {function}(TABLE(pieces){more})").collect()


@pytest.mark.parametrize(
    ("arguments", "kind", "fact"),
    [
        ("'SELECT * WHERE A ;; B'", cepheid.QuerySyntaxError, "expected a pattern"),
        ("'SELECT * WHERE A AS a FILTER a[w > 3]'", cepheid.BindError, "unknown attribute `w`"),
        ("'SELECT * WHERE A ; B WITHIN :w', args => named_struct('w', TRUE)", cepheid.BindError, "`:w` is True, which is not a duration"),
        ("'SELECT * WHERE A ; B WITHIN :w', args => named_struct('w', 5)", cepheid.BindError, "a duration without a unit"),
        ("'SELECT * WHERE A ; B WITHIN :w'", cepheid.BindError, "no value for parameter `:w`"),
        ("'SELECT * WHERE A LIMIT :n', args => named_struct('n', 2.0)", cepheid.BindError, "`:n` is 2.0, which is not a whole number"),
        ("'SELECT * WHERE A FILTER A.v IN :ks', args => named_struct('ks', 1)", cepheid.BindError, "`:ks` is 1, but a list is needed here"),
        ("'SELECT * WHERE A AS a', ordr => 'id'", cepheid.InputError, "cepheid_match has no argument `ordr`"),
        ("'SELECT * WHERE A AS a', order => 'idd'", cepheid.SchemaError, "no column `idd`, which order= names"),
        ("'SELECT * WHERE A AS a', null_keys => 'x'", cepheid.InputError, "null_keys='x' is not known"),
        ("'SELECT * WHERE A NOT FOLLOWED BY B FOR 5 s', until => NULL", cepheid.InputError, "NOT FOLLOWED BY needs to know"),
        ("'SELECT * WHERE A NOT FOLLOWED BY B FOR 5 s', until => 5", cepheid.InputError, "5 is not a time of the column `ts`"),
        ("query => concat('a', rand())", cepheid.InputError, "query is not a constant"),
        ("3", cepheid.InputError, "query is a int"),
    ],
)
def test_errors_of_a_query_show_when_the_call_is_analysed(spark, events, arguments, kind, fact):
    with pytest.raises(kind, match=fact) as error, translated():
        spark.sql(f"SELECT * FROM cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts), {arguments})")
    assert fact in str(error.value.__cause__)
    if kind in (cepheid.QuerySyntaxError, cepheid.BindError):
        assert "^" in str(error.value)
        assert "^" in str(error.value.__cause__)


def test_errors_of_registration(spark, events):
    query = "SELECT * WHERE A AS a ; B AS b PARTITION BY k"
    with pytest.raises(cepheid.InputError, match="there is no query to register as 'fire'"):
        register(spark, "fire")
    with pytest.raises(cepheid.InputError, match="schema= cannot be a NoneType"):
        register(spark, "fire", query)
    with pytest.raises(cepheid.QuerySyntaxError):
        register(spark, "fire", "SELECT", schema="events")
    with pytest.raises(cepheid.BindError, match="unknown attribute `w`"):
        register(spark, "fire", "SELECT * WHERE A AS a FILTER a[w > 3]", schema="events")
    with pytest.raises(cepheid.SchemaError, match="no time column `tts`"):
        register(spark, "fire", query, schema="events", time="tts")
    with pytest.raises(cepheid.SchemaError, match="`ts` is timestamp\\[ns\\], which no column of Spark can hold"):
        register(spark, "fire", query, schema=pa.schema({"ts": pa.timestamp("ns"), "type": pa.string(), "k": pa.int32()}))
    with pytest.raises(cepheid.InputError, match="events is not a table"), translated():
        spark.sql("SELECT * FROM cepheid_match(1, 'SELECT * WHERE A')")


def test_streams_are_refused(spark, events):
    streaming = spark.readStream.format("rate").option("numPartitions", 1).load()
    streaming = streaming.selectExpr("timestamp AS ts", "'A' AS type", "cast(value AS int) AS k", "value AS id")
    streaming.createOrReplaceTempView("flow")
    query = "SELECT * WHERE A AS a ; A AS b PARTITION BY k"
    with pytest.raises(cepheid.NotSupportedError, match="this one is streaming"):
        register(spark, "fire", query, schema=streaming)
    register(spark, "fire", query, schema=streaming.schema)
    for call in ("fire(TABLE(flow) PARTITION BY k ORDER BY ts)", f"cepheid_match(TABLE(flow) PARTITION BY k ORDER BY (ts), '{query}')"):
        with pytest.raises(cepheid.NotSupportedError, match="a table function reads batch tables") as error, translated():
            start(spark.sql(f"SELECT * FROM {call}"))
        assert "q.on" in error.value.help[0]
    register(spark, "single", "SELECT * WHERE A AS a ; A AS b", schema=streaming.schema)
    for clauses in ("", " WITH SINGLE PARTITION"):
        with pytest.raises(cepheid.NotSupportedError, match="each micro-batch alone"), translated():
            start(spark.sql(f"SELECT * FROM single(TABLE(flow){clauses})"))


def start(frame):
    running = frame.writeStream.format("memory").queryName(f"q{time.time_ns()}").start()
    try:
        running.awaitTermination(60)
    finally:
        running.stop()


def test_micro_batches_are_tables(spark, events, tmp_path):
    events.write.parquet(str(tmp_path / "in"))
    query = "SELECT * WHERE A AS a : B AS b PARTITION BY k"
    register(spark, "pairs", query, schema=events, order="id")
    seen = []

    def each(frame, _number):
        frame.createOrReplaceTempView("micro")
        found = frame.sparkSession.sql("SELECT * FROM pairs(TABLE(micro) PARTITION BY k ORDER BY (ts, id))")
        seen.extend(rows(found))

    streaming = spark.readStream.schema(events.schema).parquet(str(tmp_path / "in"))
    running = streaming.writeStream.foreachBatch(each).trigger(availableNow=True).start()
    running.awaitTermination(120)
    assert sorted(seen) == rows(events.transform(cepheid.query(query).on(order="id"))) != []


def test_many_partitions_and_a_limit(spark):
    frame = spark.range(30_000).selectExpr("cast(id % 7000 AS int) AS k", "id AS ts", "CASE WHEN id % 3 = 0 THEN 'A' ELSE 'B' END AS type")
    frame.createOrReplaceTempView("many")
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k")
    register(spark, "found", query, schema="many")
    call = "SELECT * FROM found(TABLE(many) PARTITION BY k ORDER BY ts)"
    expected = frame.transform(query.on())
    assert rows(spark.sql(call)) == rows(expected)
    assert spark.sql(f"{call} LIMIT 5").count() == 5
    assert spark.sql(f"SELECT /*+ COALESCE(1) */ * FROM ({call})").count() == expected.count()


# ----------------------------------------------------------------------------------------------------------------------- Connect


@pytest.mark.connect
def test_both_functions_through_connect(connect):
    frame = connect.createDataFrame(stream(900))
    frame.createOrReplaceTempView("events")
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 9 seconds")
    expected = rows(frame.transform(query.on(order="id")))
    function = register(connect, "fire", query, schema="events", order="id")
    register(connect)
    call = "PARTITION BY k ORDER BY (ts, id)"
    assert rows(connect.sql(f"SELECT * FROM fire(TABLE(events) {call})")) == expected != []
    assert rows(connect.sql(f"SELECT * FROM cepheid_match(TABLE(events) {call}, '{query.text}', order => 'id')")) == expected
    assert rows(function(frame.asTable().partitionBy("k").orderBy(F.col("ts"), F.col("id")))) == expected


@pytest.mark.connect
def test_errors_through_connect(connect):
    frame = connect.createDataFrame(stream(90))
    frame.createOrReplaceTempView("events")
    register(connect, "fire", "SELECT * WHERE A AS a ; B AS b PARTITION BY k", schema=frame, order="id")
    register(connect)
    with pytest.raises(cepheid.InputError, match="not in the order of `ts`"), translated():
        connect.sql("SELECT * FROM fire(TABLE(events) PARTITION BY k ORDER BY ts DESC)").collect()
    with pytest.raises(cepheid.BindError, match="unknown attribute `w`"), translated():
        connect.sql(
            "SELECT * FROM cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts), 'SELECT * WHERE A AS a FILTER a[w > 3]')"
        ).collect()
