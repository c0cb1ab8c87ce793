"""COUNT(*) in matches: columns of numbers of any width."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.evaluations.counts import listed
from cepheid.engine.output import exact_counts
from cepheid.engine.output.matches import concatenate
from cepheid.errors import BindError, LimitError

# ------------------------------------------------------------------------------------------------------------------------- columns


def test_columns_of_counts():
    values = [0, 1, 2**64 - 1, 2**64, 2**127, 10**38 - 1, 10**38, 10**38 + 1, 2**128 - 1, 2**128, 10**60]
    column = exact_counts.from_integers(values)
    assert (column.dtype, column.shape) == ("uint64", (len(values), 4))
    assert [exact_counts.to_integer(count) for count in column] == values
    count, overflow = exact_counts.columns(column)
    assert (count.type, overflow.type) == (pa.decimal128(38, 0), pa.bool_())
    assert overflow.to_pylist() == [value >= 10**38 for value in values]
    assert [None if value is None else int(value) for value in count.to_pylist()] == [v if v < 10**38 else None for v in values]
    assert count.null_count == overflow.true_count
    count.validate(full=True)
    assert exact_counts.columns(exact_counts.no_counts())[0].to_pylist() == []
    joined = exact_counts.joined([exact_counts.from_integers([7]), exact_counts.no_counts(), column])
    assert [exact_counts.to_integer(count) for count in joined] == [7, *values]
    assert exact_counts.joined([]).shape == (0, 2)


def counted_by_definition():
    events = [{"type": kind, "ts": time, "k": time // 5} for time, kind in enumerate("AABCCABBC")]
    return cepheid.query("SELECT COUNT(*) WHERE A+ ; B ; C PARTITION BY k").run(events, engine="reference")


def test_counts_in_matches():
    matches = counted_by_definition()
    values = [match.measures["count"] for match in matches]
    assert values == [3, 3, 2]
    table = matches.to_arrow()
    assert table.column_names == ["k", "start_time", "end_time", "start_position", "end_position", "count", "count_overflow"]
    assert [int(value) for value in table["count"].to_pylist()] == values
    assert table["count_overflow"].to_pylist() == [False] * len(values)
    assert matches.to_arrow(events=True).column_names == ["k", "start_time", "end_time", "count", "count_overflow"]
    assert table.schema.field("count").type == pa.decimal128(38, 0)
    assert [match.start == match.end for match in matches] == [True] * len(values)
    assert [match.measures["count"] for match in matches[1:]] == values[1:]
    assert [match.measures["count"] for match in matches[::-1]] == values[::-1]
    twice = concatenate(matches.layout, [matches, matches[:0], matches[1:]])
    assert [match.measures["count"] for match in twice] == values + values[1:]
    nothing = concatenate(matches.layout, [])
    assert nothing.to_arrow().schema == table.schema
    assert "count=" in repr(matches[0])


def test_a_count_of_many_digits_is_shown_by_their_number():
    events = [{"type": "A", "ts": time} for time in range(4)]
    matches = cepheid.query("SELECT COUNT(*) WHERE A+").run(events, engine="reference")
    huge = dataclasses.replace(matches, counts=exact_counts.from_integers([10**5_000] * len(matches)))
    assert huge[0].measures == {"count": 10**5_000}
    assert "count=<5001 digits>" in repr(huge[0])
    assert "<5001 digits>" in repr(huge)


@pytest.mark.parametrize("behind", ["", " CONSUME BY PARTITION", " WITHIN 50"])
def test_a_strategy_chooses_more_than_are_looked_at(behind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "MAX_LISTED", 1 << 10)
    query = cepheid.query(f"SELECT MAX COUNT(*) WHERE (A AS x OR A AS y)+ ; B{behind}")
    events = pa.table({"type": [*"AAB", *"A" * 10, "B"], "ts": [0, 1, 2, *range(100, 111)]})
    fewer = query.run(events.slice(0, 13)), query.run(events.slice(3)), query.run(events.slice(4))
    assert [[match.measures["count"] for match in found] for found in fewer] == [[4], [1 << 10], [1 << 9]]
    more = pa.concat_tables([events.slice(0, 4), events.slice(3)])
    with pytest.raises(LimitError, match=r"the event at position 14 .* 1,024 matches, .* \(MAX_LISTED\)"):
        query.run(more)


def test_nothing_to_count():
    query = cepheid.query("SELECT COUNT(*) WHERE A ; B")
    events = [{"type": "A", "ts": 1}]
    nothing = query.run(events)
    assert nothing.to_arrow().equals(query.run(events, engine="reference").to_arrow())
    assert nothing.to_arrow().column_names[-2:] == ["count", "count_overflow"]


@pytest.mark.parametrize("name", ["count", "count_overflow"])
def test_names_that_are_taken(name):
    with pytest.raises(BindError, match=f"two columns named `{name}`"):
        cepheid.query(f"SELECT COUNT(*) WHERE A PARTITION BY {name}").run([{"type": "A", "ts": 1, name: 1}], engine="reference")
