"""Measures in columns against the definition: random measures of every aggregate and type, and what is special about each of them."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.engine.output import measures
from cepheid.errors import LimitError, SnapshotError
from cepheid.kernel import available
from cepheid.logical.plan import AGGREGATES
from cepheid.testing import events
from cepheid.testing.measures import TIMES, fault, random_case, rows_of


@pytest.mark.parametrize("time", TIMES)
def test_random_measures_are_those_of_the_definition(time, seed, cases, monkeypatch):
    variants = available()
    drawn = Enough(cases // 8, matched=1)
    for number in drawn:
        case = random_case(f"{seed}/{number}", time=time)
        # Most cases in blocks of a match or two.
        monkeypatch.setattr(measures, "BLOCK_MARKS", 3 if number % 3 else 1 << 18)
        monkeypatch.setattr(measures, "SPARSE", 0 if number % 2 else 16)
        matches = case.query.run(case.events, engine=variants[number % len(variants)])
        try:
            assert fault(case, matches) is None, f"CEPHEID_SEED={seed} case {number}"
        except LimitError:
            continue
        schema = case.events.schema
        assert matches.to_arrow().schema == case.query.output_schema(schema)
        assert matches.to_arrow(events=True).schema == case.query.output_schema(schema, events=True)
        matches.measures.validate(full=True)
        drawn.seen["matched"] += bool(matches)


def test_batches_and_snapshots_change_nothing(seed, cases):
    drawn = Enough(cases // 4, matched=3)
    for number in drawn:
        case = random_case(f"{seed}/{number}/pushed")
        query, table, rng = case.query, case.events, random.Random(number)
        whole = query.run(table).to_arrow()
        recognizer = query.recognizer(table.schema)
        parts, start = [recognizer.flush().to_arrow()], 0
        while start < table.num_rows:
            stop = start + rng.randint(1, 4)
            parts.append(recognizer.push(table.slice(start, stop - start)).to_arrow())
            start = stop
            if rng.random() < 0.5:
                recognizer = query.recognizer(table.schema, snapshot=recognizer.snapshot())
        if recognizer.latest is not None:  # a table counts as complete up to its greatest time: absences are decided there
            parts.append(recognizer.advance(recognizer.latest + 1).to_arrow())
        assert pa.concat_tables(parts).equals(whole), f"CEPHEID_SEED={seed} case {number}: {query.text}"
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3))
        assert query.run(reader).to_arrow().equals(whole), f"CEPHEID_SEED={seed} case {number}: {query.text}"
        drawn.seen["matched"] += bool(len(whole))


def test_every_aggregate_is_implemented():
    assert set(measures.AGGREGATIONS) == set(AGGREGATES)


# ------------------------------------------------------------------------------------------------------------- one thing at a time


def measured(text, table, **options):
    """The rows of measures, the same by the definition."""
    query = cepheid.query(text)
    found = query.run(table, **options)
    expected = query.run(table, engine="reference")
    assert found.to_arrow().schema == expected.to_arrow().schema
    assert sorted(rows_of(found.measures), key=repr) == sorted(rows_of(expected.measures), key=repr)
    return rows_of(found.measures)


def run_of(kind, *values):
    """One A for each value, and a B."""
    count = len(values)
    return pa.table(
        {
            "type": ["A"] * count + ["B"],
            "ts": range(count + 1),
            "v": pa.array([*values, None], kind),
        }
    )


ALL = "WHERE A:{%d} AS x : B"


@pytest.mark.parametrize(
    ("kind", "values", "total"),
    [
        (pa.int64(), [2**62, 2**62, -1], 2**63 - 1),
        (pa.int64(), [2**62, 2**62], None),
        (pa.int64(), [2**63 - 1, 2**63 - 1, -(2**63), -(2**63) + 2], 0),
        (pa.int64(), [-(2**63), -1], None),
        (pa.int64(), [-(2**63)], -(2**63)),
        (pa.int64(), [None, None], None),
        (pa.int64(), [None, 3], 3),
        (pa.int8(), [127, 127, 127], 381),
        (pa.uint64(), [2**64 - 1, 2**64 - 1], Decimal(2**65 - 2)),
        (pa.float64(), [1e308, 1e308], None),
        (pa.float64(), [float("inf"), 1.0], float("inf")),
        (pa.float64(), [float("inf"), float("-inf")], None),
        (pa.float64(), [1e16, 1.0, 1.0, -1e16], 0.0),
        (pa.float64(), [0.1] * 11, 1.0999999999999999),
        (pa.float64(), [float("nan"), None, 2.0], 2.0),
        (pa.float32(), [0.5, 0.25], 0.75),
        (pa.decimal128(38, 2), [Decimal("9" * 36 + ".99"), Decimal("0.01")], None),
        (pa.decimal128(38, 2), [Decimal("-" + "9" * 36 + ".99"), Decimal("-0.01")], None),
        (pa.decimal128(38, 2), [Decimal("9" * 36 + ".99"), Decimal("-0.01")], Decimal("9" * 36 + ".98")),
        (pa.decimal128(38, 2), [Decimal("9" * 36 + ".99")] * 3 + [Decimal("-" + "9" * 36 + ".99")] * 2, Decimal("9" * 36 + ".99")),
        (pa.decimal128(5, 2), [Decimal("999.99"), None, Decimal("-999.98")], Decimal("0.01")),
    ],
)
def test_sums_are_exact_and_null_where_they_overflow(kind, values, total):
    assert measured(f"SELECT sum(x.v) AS m {ALL % len(values)}", run_of(kind, *values)) == [(total,)]


@pytest.mark.parametrize(
    ("kind", "values", "mean"),
    [
        (pa.int64(), [2**63 - 1, 2**63 - 1], 2.0**63),
        (pa.int64(), [2**53 + 1, 0, 0], (2**53 + 1) / 3),
        (pa.int64(), [1, 2], 1.5),
        (pa.int64(), [None], None),
        (pa.float64(), [1e308, 1e308], None),
        (pa.float64(), [0.1, 0.2, 0.3], 0.20000000000000004),
        (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("9" * 38)], 1e38),
        (pa.decimal128(10, 2), [Decimal("0.01"), Decimal("0.02"), None], 0.015),
    ],
)
def test_means_are_rounded_once(kind, values, mean):
    assert measured(f"SELECT avg(x.v) AS m {ALL % len(values)}", run_of(kind, *values)) == [(mean,)]


@pytest.mark.parametrize(
    ("kind", "values", "least", "greatest"),
    [
        (pa.int64(), [None, None], None, None),
        (pa.int64(), [None, 2**63 - 1, -(2**63)], -(2**63), 2**63 - 1),
        (pa.uint64(), [2**64 - 1, 1], Decimal(1), Decimal(2**64 - 1)),
        (pa.float64(), [float("nan"), None], None, None),
        (pa.float64(), [float("nan"), 1.0, float("-inf")], float("-inf"), 1.0),
        (pa.decimal128(38, 0), [Decimal(2**64), Decimal(1), Decimal(-(2**70)), None], Decimal(-(2**70)), Decimal(2**64)),
        (pa.decimal128(5, 1), [Decimal("-0.5"), Decimal("0.5"), None], Decimal("-0.5"), Decimal("0.5")),
        (pa.decimal128(5, 1), [None, None], None, None),
        (pa.duration("s"), [None, None, -3], -3, -3),
    ],
)
def test_least_and_greatest(kind, values, least, greatest):
    found = measured(f"SELECT min(x.v) AS a, max(x.v) AS b {ALL % len(values)}", run_of(kind, *values))
    assert found == [(least, greatest)]


def test_empty_variables_are_null_and_count_zero():
    text = "SELECT count(x) AS n, first(x.v) AS f, last(x.v) AS l, min(x.v) AS a, max(x.s) AS b, sum(x.v) AS s, avg(x.v) AS m WHERE A AS x OR B"
    table = pa.table({"type": ["A", "B"], "ts": [1, 2], "v": [5, 6], "s": ["a", "b"]})
    assert measured(text, table) == [(1, 5, 5, 5, "a", 5, 5.0), (0, *[None] * 6)]
    assert measured(text, table.slice(1)) == [(0, *[None] * 6)]


def test_text_is_ordered_by_its_bytes():
    table = run_of(pa.string(), "b", "\uffff", "\U0001f600", "Z")
    assert measured("SELECT min(x.v) AS a, max(x.v) AS b WHERE A:{4} AS x : B", table) == [("Z", "\U0001f600")]
    assert measured("SELECT max(x.v) AS b WHERE A:{2} AS x : B", run_of(pa.string(), None, None)) == [(None,)]


def test_one_row_for_each_full_mapping():
    table = pa.table({"type": ["A", "A", "B"], "ts": [1, 2, 3], "v": [1, 1, 7]})
    assert measured("SELECT y.v AS v WHERE A AS x ; B AS y", table) == [(7,), (7,)]
    # An event that is A, and one that is ANY, are different mappings of one support.
    assert measured("SELECT count(x) AS n WHERE (A OR ANY) AS x : B", table) == [(1,), (1,)]


def test_the_times_of_a_result_are_one_column_each():
    query = cepheid.query("SELECT start_time(), duration(), end_time() WHERE A ; B PARTITION BY k")
    table = pa.table({"type": ["A", "B"], "ts": [3, 8], "k": ["u", "u"]})
    matches = query.run(table)
    assert matches.to_arrow().to_pylist() == [
        {"k": "u", "start_time": 3, "end_time": 8, "start_position": 0, "end_position": 1, "duration": 5}
    ]
    assert matches.to_arrow().schema == query.output_schema(table.schema)
    assert matches[0].measures == {"start_time": 3, "duration": 5, "end_time": 8}


def test_durations_of_dates_are_in_seconds():
    table = pa.table({"type": ["A", "B"], "ts": pa.array([18_262, 18_264], pa.date32())})
    assert measured("SELECT duration() AS d, start_time() AS s, last(B.$time) - first(A.$time) AS e WHERE A ; B", table)[0][0] == 172_800


def test_a_duration_that_overflows_is_null():
    table = pa.table({"type": ["A", "B"], "ts": [-(2**62) - 5, 2**62]})
    assert measured("SELECT duration() AS d WHERE A ; B", table) == [(None,)]


def test_dictionaries_in_several_pieces():
    def piece(*values):
        return pa.table({"type": ["A"] * len(values), "ts": range(len(values)), "s": pa.array(values).dictionary_encode()})

    first, second = piece("b", "a", None), piece("c", "b")
    second = second.set_column(1, "ts", pa.array([3, 4]))
    text = "SELECT min(x.s) AS a, max(x.s) AS b, first(x.s) AS c WHERE A:{3} AS x"
    assert measured(text, pa.concat_tables([first, second])) == [("a", "b", "b"), ("a", "c", "a"), ("b", "c", None)]
    reader = pa.RecordBatchReader.from_batches(first.schema, [*first.to_batches(), *second.to_batches()])
    assert rows_of(cepheid.query(text).run(reader).measures) == [("a", "b", "b"), ("a", "c", "a"), ("b", "c", None)]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"x", None]),
        pa.array([b"x", b"y"]).dictionary_encode(),
        pa.array([{"a": 1}, None]),
        pa.array([[1], []]),
        pa.array([[(1, "a")], []], pa.map_(pa.int64(), pa.string())),
        pa.array([1.5, None], pa.float16()),
        pa.array(["x", "y"], pa.string_view()),
        pa.array(["x", "y"], pa.large_string()),
        pa.array([Decimal("1.5"), None], pa.decimal256(20, 3)),
        pa.array([Decimal("1.5"), None], pa.decimal256(60, 3)),
        pa.array([3000, None], pa.time64("ns")),
    ],
    ids=lambda array: str(array.type),
)
def test_first_and_last_take_every_type(array):
    table = pa.table({"type": ["A", "B"], "ts": [1, 2], "v": array})
    query = cepheid.query("SELECT first(x.v) AS a, last(x.v) AS b, x.v AS c WHERE ANY AS x : ANY")
    matches = query.run(table)
    assert matches.to_arrow().schema == query.output_schema(table.schema)
    assert matches.to_arrow().to_pylist() == query.run(table, engine="reference").to_arrow().to_pylist()


def test_constants_and_no_matches():
    table = pa.table({"type": ["A", "B"], "ts": [1, 2]})
    assert measured("SELECT 1 + 1 AS a, 'text' AS b, 1 / 0 AS c, 2.50 AS d, NULL AS e WHERE A ; B", table) == [
        (2, "text", None, Decimal("2.50"), None)
    ]
    for matches in (
        cepheid.query("SELECT count(A) AS n WHERE A ; B").run(table.slice(1)),
        cepheid.query("SELECT count(A) AS n WHERE A : A").run(table),
    ):
        assert matches.to_arrow().column_names == ["start_time", "end_time", "start_position", "end_position", "n"]
        assert matches.to_arrow(events=True).column_names == ["start_time", "end_time", "n"]
        assert (len(matches), repr(matches).splitlines()[0]) == (0, "0 matches")


# ----------------------------------------------------------------------------------------------------------------------- the result


STREAM = "A1(v=3,s=x) A2(v=4,s=y) B5(v=7,s=z)"
QUERY = cepheid.query("SELECT x.v AS first, sum(y.v) / count(y) AS mean WHERE A AS x ; B+ AS y")


def test_matches_show_their_measures():
    matches = QUERY.run(events(STREAM))
    assert [match.measures for match in matches] == [{"first": 4, "mean": 7.0}, {"first": 3, "mean": 7.0}]
    assert repr(matches[0]) == "Match(start=1, end=2, first=4, mean=7.0)"
    assert repr(matches).splitlines()[1].split() == ["start_time", "end_time", "first", "mean"]
    assert "<th>mean</th>" in matches._repr_html_()
    assert matches.to_pandas()["first"].tolist() == [4, 3]
    assert [match.measures["first"] for match in matches[::-1]] == [3, 4]
    assert matches[1:].to_arrow()["first"].to_pylist() == [3]
    assert matches.to_pylist()[1] == {"start_time": 1, "end_time": 5, "start_position": 0, "end_position": 2, "first": 3, "mean": 7.0}


def test_only_the_attributes_that_measures_read_are_kept():
    table = pa.Table.from_pylist(events(STREAM))
    recognizer = QUERY.recognizer(table.schema)
    recognizer.push(table.slice(0, 2))
    assert recognizer.push(table.slice(2)).to_arrow().equals(QUERY.run(table).to_arrow())
    assert QUERY.compiled(QUERY.schema(table.schema)).layout.events.names == ["ts", "v"]
    derived = cepheid.query("SELECT x.v AS v WHERE A AS x ; B AS y FILTER x.s = y.s")
    assert set(derived.compiled(derived.schema(table.schema)).layout.events.names) == {"ts", "v", "s"}


def test_a_snapshot_belongs_to_its_measures():
    table = pa.Table.from_pylist(events(STREAM))
    recognizer = QUERY.recognizer(table.schema)
    recognizer.push(table.slice(0, 2))
    other = cepheid.query("SELECT x.s AS first, sum(y.v) / count(y) AS mean WHERE A AS x ; B+ AS y")
    with pytest.raises(SnapshotError):
        other.recognizer(table.schema, snapshot=recognizer.snapshot())


def test_many_matches_in_many_blocks():
    count = 200_000
    rng = np.random.default_rng(5)
    values = rng.integers(-(2**40), 2**40, count)
    table = pa.table({"type": ["A"] * count, "ts": np.arange(count), "v": values})
    matches = cepheid.query("SELECT sum(x.v) AS s, min(x.v) AS a, avg(x.v) AS m, count(x) AS n WHERE A:{3} AS x").run(table)
    windows = np.lib.stride_tricks.sliding_window_view(values, 3)
    assert matches.measures.num_rows == count - 2
    assert (matches.measures["s"].to_numpy() == windows.sum(axis=1)).all()
    assert (matches.measures["a"].to_numpy() == windows.min(axis=1)).all()
    assert (matches.measures["m"].to_numpy() == windows.sum(axis=1) / 3).all()
    assert (matches.measures["n"].to_numpy() == 3).all()


def test_instants_keep_the_zone_of_their_column():
    berlin, york = pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ms", "America/New_York")
    table = pa.table(
        {"type": ["p"], "ts": pa.array([10**15], berlin), "u": pa.array([10**12], york), "n": pa.array([5], pa.timestamp("s"))}
    )
    query = cepheid.query(
        "SELECT max(x.ts) AS a, start_time() AS b, last(x.$time) AS c, first(x.u) AS d, first(x.n) AS e, coalesce(x.u, x.ts) AS f WHERE p AS x"
    )
    kinds = [berlin, berlin, berlin, york, pa.timestamp("s"), pa.timestamp("us", "UTC")]
    assert query.output_schema(table.schema).types[-6:] == kinds
    for engine in (None, "reference"):
        found = query.run(table, engine=engine).to_arrow()
        assert found.schema.equals(query.output_schema(table.schema))
        assert [column.cast("int64").to_pylist() for column in found.columns[-6:]] == [[10**15]] * 3 + [[10**12], [5], [10**15]]
