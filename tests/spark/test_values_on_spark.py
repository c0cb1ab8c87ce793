"""Values that guards read travel over Spark: a probe, in the workers too, compares each event with the last one of its key."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import sys
from decimal import Decimal

import probe
import pyarrow as pa
import pytest
from probe import probing
from pyspark import cloudpickle
from test_stream import BASE, Feed
from test_words_on_spark import either

import cepheid
from cepheid.engine.letters import encoded
from cepheid.errors import SnapshotError
from cepheid.logical.plan import Apply, Field, Index, Literal, Time
from cepheid.spark import batch, queries, stream
from cepheid.spark.calls import plan_of, reading_of
from cepheid.spark.source import arrow_schema
from cepheid.spark.tasks import absences, worker
from cepheid.spark.tasks.tables import TaskReader

EXACT = pa.decimal128(30, 2)
SCHEMA = pa.schema(
    [
        ("k", pa.int32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("type", pa.string()),
        ("v", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("e", EXACT),
        ("t", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("u", pa.timestamp("us", "UTC")),
    ]
)
DDL = "k int, ts timestamp, type string, v long, d double, f float, e decimal(30,2), t string, b boolean, day date, u timestamp"


def field(name, kind=None):
    source = SCHEMA.field(name).type
    return Field("", (name,), kind or source, source)


COMPARED = {
    "int64": (("<", field("v")),),
    "double": (("<", field("d")),),
    "float": (("=", field("f", pa.float64())),),
    "decimal": (("<", field("e")),),
    "texts": (("<", field("t")),),
    "days": (("<", field("day")),),
    "times": (("=", field("u")), ("=", field("b"))),
    "computed": (
        ("<", Apply("*", (field("v"), Literal(-1, pa.int64())), pa.int64())),
        ("=", Apply("upper", (field("t"),), pa.string())),
        ("=", Time("", pa.timestamp("us", "UTC"))),
    ),
    "positions": (("<", Index("")), ("!=", Apply("+", (Index(""), field("v")), pa.int64())), ("<", field("t"))),
}
ALL = (("=", field("v")), ("<", field("e")), ("=", field("t")), ("=", field("f", pa.float64())), ("=", field("day")))

PLAIN = "SELECT * WHERE A AS x PARTITION BY k"
ABSENT = "SELECT * WHERE A AS x NOT FOLLOWED BY C FOR 3 seconds PARTITION BY k"
LONG = f"SELECT * WHERE ({either(100, 'x', 'A')}) OR A AS x PARTITION BY k"


def events(seed, count=300):
    """Events in their order, and an order of arrival in which none is late."""
    chance = random.Random(seed)
    rows = [
        {
            "k": chance.randrange(4),
            "ts": BASE + dt.timedelta(seconds=second),
            "type": chance.choice("AAB") if second % 7 else "C",
            "v": chance.choice((None, chance.randint(-2, 2))),
            "d": chance.choice((None, 0.0, -0.0, float("nan"), float("inf"), 1.5)),
            "f": chance.choice((None, 0.0, -0.0, float("nan"), 0.1)),
            "e": chance.choice((None, Decimal("-1.50"), Decimal("12345678901234567890.25"), Decimal(0))),
            "t": chance.choice((None, "", "a", "B", "b", "ab", "é", f"text {second}")),
            "b": chance.choice((None, True, False)),
            "day": chance.choice((None, dt.date(1, 1, 1), dt.date(2026, 1, chance.randint(1, 3)))),
            "u": chance.choice((None, BASE, BASE + dt.timedelta(microseconds=1))),
        }
        for second in range(count)
    ]
    arrival = sorted(range(count), key=lambda row: row + chance.random() * 5)
    table = pa.Table.from_pylist(rows, SCHEMA)
    return table, table.take(pa.array(arrival))


def shown(rows):
    return sorted((row["k"], *(event["ts"].timestamp() for event in row["x"])) for row in rows)


def expected(text, table, **options):
    found = shown(cepheid.query(text).run(table, **options).to_arrow(events=True).to_pylist())
    assert len(found) > 5
    return found


# ------------------------------------------------------------------------------------------------------- the probe in the workers


@contextlib.contextmanager
def probing_here(compared):
    """In a worker, which remembers what it has compiled."""
    worker._COMPILED.clear()
    with probing(*compared):
        encoded.COLLECT_FROM = 8
        yield
    encoded.COLLECT_FROM = 1 << 16
    worker._COMPILED.clear()


def reading(work, compared):
    def read(*arguments, **options):
        with probing_here(compared):
            yield from work(*arguments, **options)

    return read


PROCESSOR = stream.BucketProcessor


def processor(compared):
    class Probing(PROCESSOR):
        def _step(self, *arguments, **options):
            with probing_here(compared):
                yield from super()._step(*arguments, **options)

        def _check_seal(self):
            with probing_here(compared):
                super()._check_seal()

    return Probing


@pytest.fixture
def travelling(monkeypatch):
    """Enters `probing` here and, with the same comparisons, in the workers."""
    for module in (probe, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)
    with contextlib.ExitStack() as stack:

        def enter(*compared):
            stack.enter_context(probing(*compared))
            monkeypatch.setattr(batch, "run_task", reading(worker.run_task, compared))
            monkeypatch.setattr(queries, "run_tasks", reading(worker.run_tasks, compared))
            monkeypatch.setattr(queries, "run_absences", reading(absences.run_absences, compared))
            monkeypatch.setattr(stream, "BucketProcessor", processor(compared))

        yield enter
    for module in (probe, sys.modules[__name__]):
        cloudpickle.unregister_pickle_by_value(module)


class Typed(Feed):
    """A feed of events of SCHEMA."""

    def close(self):
        self.put_table(pa.Table.from_pylist([{"ts": BASE + dt.timedelta(seconds=1_000_000), "type": "Z"}], SCHEMA))

    def stream(self):
        return self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "in"))


@pytest.fixture
def feed(spark, tmp_path):
    return Typed(spark, tmp_path)


def frame_of(spark, folder, table):
    feed = Typed(spark, folder)
    feed.put_table(table)
    return spark.read.schema(DDL).parquet(str(folder / "in"))


# --------------------------------------------------------------------------------------------------------------------------- batch


@pytest.mark.parametrize("kind", COMPARED)
def test_values_of_every_type_come_to_the_tasks(spark, tmp_path, travelling, kind, seed):
    travelling(*COMPARED[kind])
    table, arrival = events(seed)
    found = frame_of(spark, tmp_path, arrival).transform(cepheid.query(PLAIN).on())
    assert shown(row.asDict(recursive=True) for row in found.collect()) == expected(PLAIN, table)


@pytest.mark.parametrize("text", [ABSENT, LONG], ids=["absence", "spelled"])
def test_values_beside_spellings_and_where_events_wait(spark, tmp_path, travelling, text, seed):
    travelling(*ALL)
    table, arrival = events(seed)
    found = frame_of(spark, tmp_path, arrival).transform(cepheid.query(text).on())
    assert shown(row.asDict(recursive=True) for row in found.collect()) == expected(text, table)


def test_several_queries_share_values(spark, tmp_path, travelling, seed):
    travelling(*ALL)
    table, arrival = events(seed)
    other = "SELECT * WHERE A AS x FILTER x.v > 0 PARTITION BY k"
    found = frame_of(spark, tmp_path, arrival).transform(cepheid.spark.on([cepheid.query(PLAIN), cepheid.query(other)]))
    rows = [row.asDict(recursive=True) for row in found.collect()]
    for name, text in (("q1", PLAIN), ("q2", other)):
        assert shown(row for row in rows if row["query"] == name) == expected(text, table)


# -------------------------------------------------------------------------------------------------------------------------- stream


def test_values_on_a_stream_with_a_restart(feed, travelling, seed):
    travelling(*ALL, ("<", field("t")))
    table, arrival = events(seed)
    texts = {"plain": PLAIN, "absence": ABSENT, "spelled": LONG}
    feed.restarted(arrival, cepheid.spark.on(texts, lateness="6 seconds"))
    rows = feed.rows()
    for name, text in texts.items():
        assert shown(row for row in rows if row["query"] == name) == expected(text, table, until="end"), name


def test_a_checkpoint_of_other_comparisons_is_refused(feed, travelling, seed):
    travelling(*ALL)
    feed.put_table(events(seed)[1])
    feed.run(feed.stream().transform(cepheid.query(PLAIN).on(lateness="6 seconds")))
    travelling(*ALL[1:])
    feed.put_table(events(seed)[1])
    with pytest.raises(SnapshotError, match="the checkpoint was made by another query"):
        feed.run(feed.stream().transform(cepheid.query(PLAIN).on(lateness="6 seconds")))


# ----------------------------------------------------------------------------------------------------------------------------- SQL


@pytest.mark.parametrize("text", [PLAIN, ABSENT], ids=["plain", "absence"])
def test_values_in_table_functions(spark, tmp_path, text, seed):
    table, _ = events(seed)
    frame = frame_of(spark, tmp_path, table)
    with probing_here((*ALL, ("<", field("t")), *COMPARED["computed"], *COMPARED["times"])):
        on = cepheid.query(text).on(until="end")
        plan = plan_of(cepheid.query(text), on.options, frame.schema, case_sensitive=False)
        reader = TaskReader(reading_of(plan, "f", option="f(.., {}={})", form="{}(TABLE(..) {})"))
        kinds = arrow_schema(frame.schema)
        chance, rows = random.Random(seed), []
        for key in range(4):
            mine = table.filter(pa.compute.equal(table["k"], key)).cast(kinds).combine_chunks()
            start = 0
            while start < len(mine):
                size = chance.choice((1, 7, 30))
                for piece in mine.slice(start, size).select(reader.input.names).to_batches():
                    rows += reader.push(piece, piece.num_rows)
                if chance.random() < 0.5:
                    rows += reader.flush()
                start += size
            rows += reader.flush()
            reader.open()
        rows += reader.close()
        found = [row for batch_ in rows for row in batch_.to_pylist()]
        assert shown(found) == expected(text, table, until="end")
