"""Strategies, consumption, limits and counts on inputs that are empty, unusual or large, and where they cannot be."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.testing import events
from cepheid.testing.differential import WAYS, Case, by_definition, check, whole

SELECTIONS = (
    "SELECT NXT * WHERE {p}",
    "SELECT LAST * WHERE {p}",
    "SELECT MAX * WHERE {p}",
    "SELECT STRICT * WHERE {p}",
    "SELECT ANY * WHERE {p}",
    "SELECT * WHERE {p} LIMIT 2",
    "SELECT COUNT(*) WHERE {p}",
    "SELECT NXT COUNT(*) WHERE {p}",
    "SELECT * WHERE {p} CONSUME BY ANY",
    "SELECT MAX * WHERE {p} CONSUME BY PARTITION LIMIT 1",
    "SELECT * WHERE NXT({p})",
    "SELECT * WHERE LAST(MAX({p}))",
)
"""Every strategy and clause around a pattern."""

SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.string()), ("v", pa.int64())])


def table(*rows: tuple[str, int] | tuple[str, int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(("type", "ts", "k"), row, strict=False)) for row in rows], schema=SCHEMA)


def check_every_way(text: str, stream: pa.Table, part: int | None = None) -> None:
    """Every way in which events can come, or the even ones or the odd ones alone."""
    query = cepheid.query(text)
    case = Case(0, 0, query, stream, by_definition(query, stream))
    found = whole(case, None)
    check(case, found)
    for number, (way, run) in enumerate(WAYS.items()):
        if part in (None, number % 2):
            assert run(case, "checked") == found, way


INPUTS = {
    "nothing": table(),
    "one event": table(("A", 5)),
    "one event that nobody asks for": table(("X", 5)),
    "nothing that anybody asks for": table(*(("X", time) for time in range(6))),
    "all at one time": table(*((kind, 7) for kind in "ABABCAB")),
    "all of one type": table(*(("A", time) for time in range(6))),
    "times at the ends of int64": table(("A", -(2**63)), ("B", -(2**63) + 1), ("A", 0), ("B", 2**63 - 1)),
    "only the last event": table(("B", 1), ("B", 2)),
}


@pytest.mark.parametrize("stream", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("text", SELECTIONS)
def test_unusual_streams(text: str, stream: pa.Table) -> None:
    for part, pattern in enumerate(("A ; B", "(A OR B)+ AS x ; ANY")):
        check_every_way(text.format(p=pattern), stream, part)


WINDOWS = ("WITHIN 0", "WITHIN 1 EVENTS", "WITHIN 0 WITHIN 1 EVENTS", f"WITHIN {2**62}", f"WITHIN {2**62} EVENTS")


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("text", [text for text in SELECTIONS if "({p})" not in text])
def test_the_least_and_the_greatest_windows(text: str, window: str) -> None:
    """They stand inside the strategy of the query; around a strategy in the pattern they would come after it."""
    for number, pattern in enumerate(("A ; B", "A+", "A+ ; (A OR B)")):
        check_every_way(text.format(p=f"{pattern} {window}"), INPUTS["all at one time"], number % 2)
        check_every_way(text.format(p=f"{pattern} {window}"), INPUTS["times at the ends of int64"], (number + 1) % 2)


KEYS = (None, "", "a", "a", None, "b")


@pytest.mark.parametrize("policy", ["NONE", "PARTITION", "ANY"])
@pytest.mark.parametrize("strategy", ["ALL", "NXT", "LAST", "MAX", "STRICT", "ANY"])
def test_null_keys_and_consumption(strategy: str, policy: str) -> None:
    """An event without a key belongs to no partition: it starts nothing, ends nothing, and consumes nothing."""
    stream = table(*(("AB"[number % 5 > 2], number // 3, key) for number, key in enumerate(KEYS * 4)))
    check_every_way(f"SELECT {strategy} * WHERE A+ ; B PARTITION BY k CONSUME BY {policy}", stream)
    query = cepheid.query(f"SELECT {strategy} * WHERE A+ ; B PARTITION BY k CONSUME BY {policy}")
    assert query.run(stream).null_keys == KEYS.count(None) * 4


@pytest.mark.parametrize("policy", ["NONE", "PARTITION", "ANY"])
def test_null_keys_as_a_partition_of_their_own(policy: str) -> None:
    stream = table(("A", 1, None), ("A", 2, "a"), ("B", 3, None), ("B", 4, "a"), ("A", 5, None), ("B", 6, None))
    query = cepheid.query(f"SELECT NXT * WHERE A ; B PARTITION BY k CONSUME BY {policy}")
    found = query.run(stream, null_keys="group")
    assert found == query.run(stream, null_keys="group", engine="reference")
    assert (found[0].keys["k"], found[0].start, found[0].end) == (None, 0, 1)


def test_consumption_across_keys_goes_by_the_order_of_the_stream() -> None:
    # Equal times everywhere: the order is that of the rows. The trigger of key a takes what key b has begun.
    stream = table(("A", 1, "a"), ("A", 1, "b"), ("B", 1, "a"), ("B", 1, "b"), ("A", 1, "b"), ("B", 1, "b"))
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k CONSUME BY ANY")
    assert [(match.keys["k"], match.start, match.end) for match in query.run(stream)] == [("a", 0, 1), ("b", 2, 3)]
    check_every_way(query.text, stream)


@pytest.mark.parametrize("text", SELECTIONS)
def test_a_disjunction_of_sixty_types(text: str) -> None:
    pattern = " OR ".join(f"T{number}" for number in range(60))
    stream = table(*((f"T{number * 7 % 62}", number) for number in range(9)), ("End", 9))
    check_every_way(text.format(p=f"({pattern}) AS x ; End"), stream)


@pytest.mark.parametrize("text", SELECTIONS)
def test_deep_nesting(text: str) -> None:
    pattern = "A"
    for depth in range(12):
        pattern = f"({pattern}) OR (B ; C)" if depth % 3 else f"({pattern} AS x{depth})"
    check_every_way(text.format(p=f"({pattern}) ; B"), table(*((kind, time) for time, kind in enumerate("ABCABCB"))))


@pytest.mark.parametrize("strategy", ["NXT", "LAST", "MAX"])
def test_all_labellings_of_a_winner(strategy: str) -> None:
    """Two to the power of eight matches share one support; LIMIT takes some of them."""
    stream = table(*(("A", time) for time in range(8)), ("B", 8))
    pattern = "(A AS x OR A AS y)+ ; B"
    query = cepheid.query(f"SELECT {strategy} * WHERE {pattern}")
    found = query.run(stream)
    assert len(found) == len({tuple(match.variables.items()) for match in found}) == 2**8
    assert len(cepheid.query(f"{query.text} LIMIT 5").run(stream)) == 5
    (count,) = cepheid.query(f"SELECT {strategy} COUNT(*) WHERE {pattern}").run(stream)
    assert count.measures["count"] == 2**8
    # Without x and y shown, they are one.
    assert len(cepheid.query(f"SELECT {strategy} B WHERE {pattern}").run(stream)) == 1


# ------------------------------------------------------------------------------------------------------------------- counts


def test_counts_beyond_every_integer() -> None:
    stream = table(*(("A", time) for time in range(200)), ("B", 200))
    found = cepheid.query("SELECT COUNT(*) WHERE A+ ; B").run(stream)
    assert [match.measures["count"] for match in found] == [2**200 - 1]
    (row,) = found.to_arrow().to_pylist()
    assert row["count"] is None
    assert row["count_overflow"] is True


def test_counts_within_the_column() -> None:
    stream = table(*(("A", time) for time in range(100)), ("B", 200))
    found = cepheid.query("SELECT COUNT(*) WHERE A+ ; B").run(stream)
    (row,) = found.to_arrow().to_pylist()
    assert int(row["count"]) == 2**100 - 1
    assert row["count_overflow"] is False


def test_more_conditions_than_a_word_has_bits() -> None:
    pattern = " OR ".join(f"(A FILTER A.ts > {number})" for number in range(70))
    for text in SELECTIONS:
        query = cepheid.query(text.format(p=f"({pattern}) ; A"))
        assert query.run(table(("A", 1), ("A", 70))) == query.run(table(("A", 1), ("A", 70)), engine="reference")


# ------------------------------------------------------------------------------------------------------------------- speed

FAST = (
    ("SELECT NXT * WHERE A ; B ; C WITHIN 1000 EVENTS", "uniform"),
    ("SELECT LAST * WHERE A ; B ; C WITHIN 1000 EVENTS", "uniform"),
    ("SELECT MAX * WHERE A ; B ; C WITHIN 1000 EVENTS LIMIT 1", "uniform"),
    ("SELECT ANY * WHERE A ; B ; C WITHIN 1000 EVENTS", "uniform"),
    ("SELECT STRICT * WHERE A ; B ; C WITHIN 1000 EVENTS", "uniform"),
    ("SELECT COUNT(*) WHERE A+ ; B+ ; C WITHIN 20 EVENTS", "uniform"),
    ("SELECT COUNT(*) WHERE A ; B ; C WITHIN 1000 EVENTS", "uniform"),
    ("SELECT * WHERE A ; B ; C WITHIN 1000 EVENTS CONSUME BY ANY LIMIT 3", "uniform"),
    ("SELECT NXT * WHERE A+ ; B+ ; C WITHIN 5 EVENTS", "uniform"),
    ("SELECT LAST * WHERE A+ ; B+ ; C WITHIN 20 EVENTS", "uniform"),
    ("SELECT NXT * WHERE A ; B ; C", "uniform"),
    ("SELECT LAST * WHERE A ; B ; C", "uniform"),
    ("SELECT NXT * WHERE A ; B", "all A, then all B"),
    ("SELECT LAST * WHERE A ; B", "all A, then all B"),
    ("SELECT MAX * WHERE A ; B LIMIT 1", "all A, then all B"),
    ("SELECT NXT * WHERE A ; C CONSUME BY ANY", "all A, then all B"),
    ("SELECT LAST * WHERE A ; B ; C WITHIN 1000 EVENTS", "C is rare"),
    ("SELECT MAX * WHERE A ; B ; C WITHIN 1000 EVENTS LIMIT 1", "C is rare"),
    ("SELECT NXT * WHERE A ; B ; C PARTITION BY k CONSUME BY ANY", "uniform"),
    ("SELECT * WHERE A ; LAST(B ; C) WITHIN 100 EVENTS LIMIT 1", "uniform"),
)
"""Queries, each with a stream that is hard for it."""

MANY = 200_000


def kinds_of(stream: str, count: int) -> np.ndarray:
    if stream == "all A, then all B":
        return np.repeat(np.array(["A", "B"]), count // 2)
    rng = np.random.default_rng(1)
    weights = [0.4, 0.4, 0.0005, 0.1, 0.0995] if stream == "C is rare" else [0.2] * 5
    return rng.choice(np.array(["A", "B", "C", "D", "E"]), count, p=weights)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "kinds"), FAST)
def test_no_query_is_quadratic(text: str, kinds: str) -> None:
    """200,000 events within a second of processor time, the best of three."""
    keys = pa.array(np.arange(MANY) % 10).cast(pa.string())
    stream = pa.table({"type": pa.array(kinds_of(kinds, MANY)).dictionary_encode(), "ts": pa.array(np.arange(MANY)), "k": keys})
    query = cepheid.query(text)
    query.run(stream.slice(0, 10))
    taken = []
    for _ in range(3):
        begin = time.process_time()
        query.run(stream)
        taken.append(time.process_time() - begin)
        if taken[-1] < 1:
            break
    assert min(taken) < 1, taken


def test_every_selection_of_this_file_has_matches() -> None:
    stream = pa.Table.from_pylist(events("A1 B2 C3 A4 B5"))
    for text, pattern in itertools.product(SELECTIONS, ("A ; B", "A+ ; B")):
        assert len(cepheid.query(text.format(p=pattern)).run(stream)) > 0
