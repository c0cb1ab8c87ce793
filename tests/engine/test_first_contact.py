"""What a new user tries first, and what must then happen: a useful answer, or an error of ours that says how to go on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import InputError, SchemaError

EVENTS = pa.table({"type": ["A", "B", "A", "B"], "ts": [1, 2, 3, 3], "v": [1, 2, 3, 4]})
QUERY = cepheid.query("SELECT * WHERE A AS x ; B AS y")


@pytest.mark.parametrize(
    "given", [EVENTS.schema, EVENTS, EVENTS.to_batches()[0], EVENTS.to_reader(), EVENTS.to_pandas()], ids=lambda given: type(given).__name__
)
def test_a_schema_may_be_what_has_one(given):
    assert QUERY.output_schema(given) == QUERY.output_schema(EVENTS.schema)
    assert len(QUERY.recognizer(EVENTS.schema).push(EVENTS)) == 3


@pytest.mark.parametrize("given", [None, 3, "events", [{"type": "A"}]])
def test_what_is_no_schema_is_said(given):
    with pytest.raises(InputError, match="a schema cannot be a"):
        QUERY.recognizer(given)


def test_a_series_and_a_name_that_is_no_text():
    with pytest.raises(InputError, match="events cannot be a Series"):
        QUERY.run(pd.Series(["A", "B"]))
    with pytest.raises(SchemaError, match="the attribute name 3 is not text"):
        QUERY.run([{"type": "A", "ts": 1, 3: 4}])


def test_matches_go_into_whatever_reads_arrow():
    matches = QUERY.run(EVENTS)
    assert pa.table(matches) == matches.to_arrow()


def test_a_match_is_a_container_of_its_variables():
    match = QUERY.run(EVENTS)[np.int64(0)]
    assert ("x" in match, "z" in match, 0 in match) == (True, False, False)
    assert {name: [event["v"] for event in match[name]] for name in match} == {"x": [1], "y": [2]}


@pytest.mark.parametrize("index", ["x", 1.0, None])
def test_an_index_is_an_integer(index):
    with pytest.raises(TypeError):
        QUERY.run(EVENTS)[index]


@pytest.mark.parametrize("column", ["start", "start_time", "$stream", "ключ", "a.b", "k\nl", "$time", "`q`", "n" * 300])
def test_column_names_of_any_kind(column):
    events = EVENTS.append_column(column, pa.array([1, 1, 2, 2]))
    name = "`" + column.replace("`", "``") + "`"
    assert [match["y"][0][column] for match in QUERY.run(events)] == [1, 2, 2]
    assert len(cepheid.query(f"SELECT * WHERE A AS x ; B AS y FILTER x[{name} = 2]").run(events)) == 1
    if column != "start_time":  # the output has such a column
        keyed = cepheid.query(f"SELECT * WHERE A AS x ; B AS y PARTITION BY {name}").run(events)
        assert [match.keys for match in keyed] == [{column: 1}, {column: 2}]


def test_order_by_dictionaries_and_by_what_has_no_order():
    events = EVENTS.append_column("d", pa.array(["d", "c", "b", "a"]).dictionary_encode()).append_column("l", pa.array([[1]] * 4))
    swapped = QUERY.run(events, order=["d"])
    assert [(match["x"][0]["v"], match["y"][0]["v"]) for match in swapped] == [(1, 2), (1, 4)]
    with pytest.raises(SchemaError, match="cannot be ordered by `l`"):
        QUERY.run(events, order=["l"])


def test_the_only_stream_is_a_type_or_its_type_column_is():
    events = [{"type": "Trade", "ts": 1}, {"type": "Halt", "ts": 2}]
    assert len(cepheid.query("SELECT * FROM Trade WHERE Trade").run(events)) == 2
    assert len(cepheid.query("SELECT * FROM Trade WHERE Trade").run(events, type="type")) == 1
    assert len(cepheid.query("SELECT * FROM Trade WHERE Trade ; Halt").run(events)) == 1
    for stream in (events, {"Trade": events}):
        with pytest.raises(cepheid.BindError, match="`Trade` is twice in FROM"):
            cepheid.query("SELECT * FROM Trade, Trade WHERE Trade").run(stream)
