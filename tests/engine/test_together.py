"""Matches in several chunks: whether they are kept by place or one after the other, they are those of the definition, in the same order."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.evaluations.base import Chunk, collect
from cepheid.engine.evaluations.graph import match as evaluations
from cepheid.engine.output import marks
from cepheid.engine.output.marks import Even, Ragged
from cepheid.engine.run import batch, together
from cepheid.engine.run.together import EvenChunk
from cepheid.testing.measures import fault, random_case

SMALL = functools.partial(evaluations.Sizes, chunk=2, most_chunk=4, chunk_positions=12)
"""A few matches per chunk."""

QUERIES = (
    "SELECT * WHERE A ; B ; C",
    "SELECT a.ts AS first, b.s AS text, c.ts AS last, b.v AS v, c.w AS w WHERE A AS a ; B AS b ; C AS c",
    "SELECT count(x) AS n, sum(x.v) AS total, max(y.w) - first(x.v) AS d, duration() AS e, y.$time AS t WHERE A:{2} AS x ; B AS y",
    "SELECT * WHERE (A OR B) AS x ; C AS y",
    "SELECT y WHERE A AS x ; B AS y ; C WITHIN 12 EVENTS",
    "SELECT * WHERE A ; B+ ; C WITHIN 9 EVENTS",
    "SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.s = y.s AND y.s = z.s",
    "SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY C FOR 2 s",
    "SELECT * WHERE A AS x CONSUME BY ANY",
    "SELECT COUNT(*) WHERE A ; B ; C",
)

PARTITIONS = ("", " PARTITION BY k", " PARTITION BY k, s")


def events(count=36, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "type": rng.choice(list("ABCD"), count),
            "ts": pa.array(np.arange(count) * 10**6, pa.timestamp("us", "UTC")),
            "k": pa.array(rng.integers(0, 3, count), mask=rng.random(count) < 0.1),
            "s": rng.choice(["u", "v"], count),
            "v": rng.integers(-5, 5, count),
            "w": np.where(rng.random(count) < 0.1, np.nan, rng.random(count)),
        }
    )


def same(one, other):
    """Whether two tables are, with NaN in them."""
    return one.schema.equals(other.schema) and repr(one.to_pylist()) == repr(other.to_pylist())


def text(query, partition):
    clauses = ("NOT FOLLOWED", "WITHIN", "CONSUME")
    place = min((query.index(clause) for clause in clauses[1:] if clause in query), default=len(query))
    return f"{query[:place].rstrip()}{partition} {query[place:]}".rstrip()


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("query", QUERIES)
def test_chunks_change_nothing(query, partition, monkeypatch):
    query, table = cepheid.query(text(query, partition)), events()
    mixed = table.take(pa.array(np.random.default_rng(2).permutation(table.num_rows)))
    given = [
        (table, {}),
        (pa.concat_tables([table[:7], table[7:30], table[30:]]), {"null_keys": "group"} if partition else {}),
        (mixed, {"sort": True}),
    ]
    whole = [query.run(one, **options) for one, options in given]
    monkeypatch.setattr(evaluations, "Sizes", SMALL)
    monkeypatch.setattr(marks, "SLICE_MARKS", 7)
    monkeypatch.setattr(together, "SLICE_MARKS", 7)
    for (one, options), before in zip(given, whole, strict=True):
        found = query.run(one, **options)
        assert list(found) == list(before)
        assert found.undecided == before.undecided
        for shown in (False, True):
            table = found.to_arrow(events=shown)
            table.validate(full=True)
            assert same(table, before.to_arrow(events=shown))
        for piece in (slice(3, 11), slice(None, None, 3), slice(None, None, -1), slice(5, 5)):
            assert same(found[piece].to_arrow(), before[piece].to_arrow())
            assert [match.variables for match in found[piece]] == [match.variables for match in before][piece]
        for name in ("offsets", "positions", "labels", "rows", "start_rows", "end_rows"):
            assert getattr(found, name).tolist() == getattr(before, name).tolist()
            assert getattr(found, name).dtype == getattr(before, name).dtype or name.endswith("_rows")


@pytest.mark.parametrize("sparse", [together.SPARSE, 0], ids=["each looks up its place", "sorted"])
def test_the_definition_in_small_chunks(seed, cases, sparse, monkeypatch):
    monkeypatch.setattr(evaluations, "Sizes", SMALL)
    monkeypatch.setattr(marks, "SLICE_MARKS", 7)
    monkeypatch.setattr(together, "SLICE_MARKS", 7)
    monkeypatch.setattr(together, "SPARSE", sparse)
    ordered = set()
    for made in (together.even_in_stream_order, together.ragged_in_stream_order):
        monkeypatch.setattr(batch, made.__name__, lambda *given, made=made: ordered.add(made) or made(*given))
    by_place = number = 0
    while number < cases // 4 or not (by_place and len(ordered) == 2):
        case = random_case(f"{seed}/{number}/together")
        number += 1
        try:
            found = case.query.run(case.events)
            wrong = fault(case, found)
        except cepheid.LimitError:
            continue
        assert wrong is None, f"CEPHEID_SEED={seed} case {number}"
        by_place += isinstance(found.marks, Even)


def chunk(labels, positions, segments):
    offsets = np.cumsum([0, *map(len, positions)])
    flat = [position for match in positions for position in match]
    return Chunk(offsets, np.array(flat, np.int64), np.array(labels, np.uint16), np.array(segments, np.int32))


def test_only_matches_with_the_same_labels_are_kept_by_place():
    one = chunk([1, 2, 1, 2], [(0, 3), (1, 3)], [0, 0])
    two = chunk([1, 2], [(2**31 + 1, 2**31 + 5)], [4])
    found = together.together(iter([one, two, one]))
    assert isinstance(found, EvenChunk)
    assert [block.dtype for block in found.blocks] == [np.int32, np.int64, np.int32]
    for other in (chunk([2, 1], [(0, 3)], [0]), chunk([1], [(0,)], [0]), chunk([1, 2, 1], [(0, 3, 4)], [0])):
        mixed = together.together(iter([one, two, other, one]))
        wanted = collect([one, two, other, one])
        for name in ("offsets", "positions", "labels", "segments"):
            assert getattr(mixed, name).tolist() == getattr(wanted, name).tolist()
    assert together.together(iter([one])) is one
    assert len(together.together(iter([]))) == 0


def test_matches_of_one_shape_are_recognized():
    regular = Ragged(np.array([0, 2, 4]), np.arange(4), np.array([3, 1, 3, 1], np.uint16), np.arange(4))
    assert regular.even.alike.tolist() == [3, 1]
    assert Ragged(np.array([0, 2, 4]), np.arange(4), np.array([3, 1, 1, 3], np.uint16), np.arange(4)).even is None
    assert Ragged(np.array([0, 1, 4]), np.arange(4), np.array([3, 3, 3, 3], np.uint16), np.arange(4)).even is None
    assert Ragged(np.array([0]), np.arange(0), np.arange(0, dtype=np.uint16), np.arange(0)).even is None


def test_start_and_end_times_are_those_of_measures():
    query = cepheid.query("SELECT a.ts AS first, c.ts AS last, b.ts AS middle WHERE A AS a ; B AS b ; C AS c")
    found = query.run(events())
    shown = found.to_arrow()
    assert shown["start_time"].equals(shown["first"])
    assert shown["end_time"].equals(shown["last"])
    assert not shown["middle"].equals(shown["last"])
    part = found[3:9].to_arrow()
    assert part["start_time"].to_pylist() == part["first"].to_pylist() == shown["start_time"].to_pylist()[3:9]
