"""Arguments and events of a wrong kind: each is an `InputError` that names it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.input.column_types import MAX_LEVELS
from cepheid.errors import BindError, InputError, LimitError, SchemaError

QUERY = cepheid.query("SELECT * WHERE A ; B")
TABLE = pa.table({"type": ["A", "B", "A", "B"], "ts": [1, 2, 3, 4]})


def timed(kind):
    return TABLE.set_column(1, "ts", TABLE["ts"].cast(kind))


# --------------------------------------------------------------------------------------------------------------------------- until


KINDS = {
    pa.timestamp("us"): "a datetime without tzinfo (TIMESTAMP '2013-01-31 12:00:00')",
    pa.timestamp("ns", "UTC"): "a datetime with a tzinfo (TIMESTAMP '2013-01-31 12:00:00Z')",
    pa.int64(): "an integer",
    pa.date64(): "a date (DATE '2013-01-31')",
}
"""Types of time columns, and what a time of theirs is given as."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "until", ["2026-03-01 12:00:00Z", pd.NaT, np.datetime64("NaT"), pd.NA, float("nan"), True, np.array([1, 2]), pd.Series([1, 2])]
)
def test_until_that_is_no_time(kind, until):
    with pytest.raises(InputError, match="is not a time of the column `ts`") as error:
        QUERY.run(TABLE.set_column(1, "ts", pa.array([0] * 4, kind)), until=until)
    assert error.value.fact.startswith("until=")
    assert error.value.help == (f"give {KINDS[kind]}",)


def test_until_beyond_the_column():
    with pytest.raises(InputError, match=r"until=1180591620717411303424 is not a time") as error:
        QUERY.run(TABLE, until=2**70)
    assert error.value.help == ("it is beyond what the column can hold",)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_until_as_a_datetime64(unit):
    events = timed(pa.timestamp(unit))
    for until in (np.datetime64(2, unit), np.datetime64(2, unit).astype("datetime64[ns]")):
        assert len(QUERY.run(events, until=until)) == 1
    assert len(QUERY.run(events, until=np.datetime64("1971"))) == len(QUERY.run(events, until=np.datetime64("1970-01-02"))) == 3
    assert len(QUERY.run(events, until=np.datetime64("1969-12-31"))) == 0


@pytest.mark.parametrize("until", [np.datetime64(1, "ns"), np.datetime64(2**62, "D"), np.datetime64(-(2**60), "h")])
def test_a_datetime64_that_the_column_cannot_hold(until):
    with pytest.raises(InputError, match=r"is not a time of the column `ts` \(timestamp\[us\]\)") as error:
        QUERY.run(timed(pa.timestamp("us")), until=until)
    assert error.value.help == ("it is finer than the column, or beyond what the column can hold",)


def test_a_datetime64_has_no_zone():
    with pytest.raises(InputError) as error:
        QUERY.run(timed(pa.timestamp("us", "UTC")), until=np.datetime64("2020-01-01"))
    assert error.value.help == ("one of them has a time zone, the other none: give it a tzinfo, or remove it",)
    for kind in (pa.date32(), pa.int64()):
        with pytest.raises(InputError, match="is not a time of the column"):
            QUERY.run(TABLE.set_column(1, "ts", TABLE["ts"].cast(pa.int32()).cast(kind)), until=np.datetime64("2020-01-01"))


# ---------------------------------------------------------------------------------------------------------------- other arguments


@pytest.mark.parametrize("sample", [2**63, 2**70, True, 0, "1"])
def test_sample(sample):
    with pytest.raises(InputError, match=f"sample={sample!r} is not a number of matches"):
        QUERY.run(TABLE, sample=sample)


@pytest.mark.parametrize("name", [5, True, b"type", ["type"], {"a": 1}, pd.NA])
@pytest.mark.parametrize("argument", ["type", "time"])
def test_names_of_columns(argument, name):
    for call in (
        lambda: QUERY.run(TABLE, **{argument: name}),
        lambda: QUERY.run({"one": TABLE, "two": TABLE}, **{argument: name}),
        lambda: QUERY.recognizer(TABLE.schema, **{argument: name}),
        lambda: QUERY.schema(TABLE, **{argument: name}),
        lambda: QUERY.output_schema(TABLE.schema, **{argument: name}),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.fact == f"{argument}={name!r} is not the name of a column"


@pytest.mark.parametrize("order", [5, None, True, b"ts", [5], ["ts", None], pd.NA])
def test_order(order):
    with pytest.raises(InputError) as error:
        QUERY.run(TABLE, order=order)
    assert error.value.fact == f"order={order!r} is not the name of a column, or a list of names"


def test_order_of_any_iterable():
    for order in ("ts", ["ts"], ("type", "ts"), iter(["ts"]), np.array(["ts"])):
        assert len(QUERY.run(TABLE, order=order)) == 3


@pytest.mark.parametrize("args", [5, "x", [1], {1: 2}, {"x": 1, b"x": 2}, {None: 1}])
def test_args(args):
    with pytest.raises(InputError, match="args"):
        cepheid.query("SELECT * WHERE A FILTER A.ts > :x", args=args)


def test_args_that_are_no_parameters():
    """At once, and not when the query is run."""
    limited = cepheid.query("SELECT * WHERE (A FILTER A.ts > :limit) ; B")
    for call in (lambda: limited.with_args(limti=5), lambda: cepheid.query(limited.text, args={"limti": 5})):
        with pytest.raises(BindError) as error:
            call()
        assert str(error.value) == "error: the query has no parameter `:limti`\nhelp: did you mean `limit`? its parameters are: `limit`"
    assert len(limited.with_args(limit=1).run(TABLE)) == 1


# -------------------------------------------------------------------------------------------------------------------------- events


@pytest.mark.parametrize("events", [pa.array([1]), pa.chunked_array([[1]]), pa.array(["A"])])
def test_one_column_is_no_stream(events):
    for call in (QUERY.run, QUERY.recognizer(TABLE.schema).push):
        with pytest.raises(InputError, match=f"events cannot be a {type(events).__name__}") as error:
            call(events)
        assert error.value.help[0].startswith("pass a pyarrow.Table")


def test_a_schema_of_one_column():
    for given in (pa.chunked_array([[1]]), pa.int64()):
        with pytest.raises(InputError, match=f"a schema cannot be a {type(given).__name__}"):
            QUERY.schema(given)


def test_an_array_of_structs_is_a_stream():
    rows = pa.array(TABLE.to_pylist())
    assert len(QUERY.run(rows)) == len(QUERY.run(pa.chunked_array([rows]))) == 3


@pytest.mark.parametrize(
    "value",
    [
        *(2**64, -(2**63) - 1, [2**63], [{"a": 2**70}], Decimal("NaN"), Decimal("Infinity"), Decimal("1e99"), 1j, object()),
        *({1: 2}, [1, "a"], "\ud800", ["a\udfff"], {"\ud800": 1}, dt.timedelta.max, pd.NaT),
    ],
)
def test_values_that_arrow_cannot_hold(value):
    with pytest.raises(InputError, match="`v` of event 2 of the list is ") as error:
        QUERY.run([{"type": "A", "ts": 1}, {"type": "A", "ts": 1, "v": None}, {"type": "B", "ts": 2, "v": value}])
    assert ascii(value) in error.value.fact
    str(error.value).encode()


def test_long_values_are_cut():
    with pytest.raises(InputError) as error:
        QUERY.run([{"type": "A", "ts": 1, "v": "x" * 10**6 + "\ud800"}])
    assert len(error.value.fact) < 300


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, "a"], "'a' in event 1 of the list, 1 in event 0"),
        (["1", None, "2", 1.0, 2.0], "1.0 in event 3 of the list, '1' in event 0"),
        ([None, None, {"a": 1}, {"a": "x"}], "{'a': 'x'} in event 3 of the list, {'a': 1} in event 2"),
        ([1, 2**63, -1], "-1 in event 2 of the list, 9223372036854775808 in event 1"),
        ([-1, 0, 2**63], "9223372036854775808 in event 2 of the list, -1 in event 0"),
        ([1, 2**63, 0.5], "0.5 in event 2 of the list, 9223372036854775808 in event 1"),
    ],
)
def test_values_that_do_not_go_together(values, said):
    with pytest.raises(SchemaError) as error:
        QUERY.run([{"type": "A", "ts": 1, "v": value} for value in values])
    assert error.value.fact == f"the values of `v` are not of one type: {said}"


@pytest.mark.parametrize("values", [[2**63], [0, None, 2**64 - 1], [np.uint64(2**63), 2]])
def test_integers_that_need_the_sign_bit(values):
    matches = cepheid.query("SELECT * WHERE A AS x FILTER x.v > 9223372036854775807").run([{"type": "A", "v": value} for value in values])
    assert matches.to_arrow(events=True).schema.field("x").type.value_type.field("v").type == pa.uint64()
    assert [match["x"][0]["v"] for match in matches] == [value for value in values if value is not None and value >= 2**63]


def test_integers_of_no_common_type():
    with pytest.raises(SchemaError, match=r"no integer type holds both: give them as decimal.Decimal"):
        QUERY.run([{"type": "A", "ts": 1, "v": value} for value in (-1, 2**63)])
    assert len(QUERY.run([{"type": "A", "ts": 1, "v": Decimal(value)} for value in (-1, 2**63)])) == 0


def test_names_that_arrow_cannot_hold():
    with pytest.raises(SchemaError) as error:
        QUERY.run([{"type": "A", "ts": 1, "\ud800": 1}])
    assert error.value.fact == r"the attribute name '\ud800' has half of a surrogate pair"


@pytest.mark.parametrize("column", [["\ud800"], [2**70]])
def test_dataframes_that_arrow_cannot_hold(column):
    with pytest.raises(SchemaError, match="the DataFrame cannot be read as Arrow"):
        QUERY.run(pd.DataFrame({"type": ["A"], "ts": [1], "v": pd.Series(column, dtype=object)}))


def test_doubled_columns_of_a_stream():
    other = pa.table([["A"], [1], [2]], names=["type", "ts", "v"])
    for names in (["type", "ts", "ts"], ["ts", "b", "b"]):
        with pytest.raises(SchemaError, match="the stream `two` has more than one column named"):
            QUERY.run({"one": other, "two": other.rename_columns(names)})


def test_doubled_columns_of_a_dataframe():
    for schema in (QUERY.run, QUERY.schema):
        with pytest.raises(SchemaError) as error:
            schema(pd.DataFrame([["A", 1, 2]], columns=["type", "ts", "ts"]))
        assert str(error.value) == "error: the DataFrame has more than one column named `ts`\nhelp: rename all but one"


@pytest.mark.parametrize(
    "columns", [{"type": ["A"], "ts": [1]}, {"type": pa.array(["A"]), "ts": [1]}, {"type": np.array(["A"]), "ts": [1]}]
)
def test_a_dict_of_columns_beside_a_stream(columns):
    with pytest.raises(InputError, match="the stream `type`") as error:
        QUERY.run({**columns, "B": pa.table({"ts": [1]})})
    assert error.value.help[-1].startswith("a dict whose values are tables, files or lists of dicts is read as {stream name: events}")


def nested(levels, wrap):
    kind = pa.int64()
    for _ in range(levels):
        kind = wrap(kind)
    return pa.schema([*TABLE.schema, ("v", kind)])


@pytest.mark.parametrize("wrap", [pa.list_, lambda kind: pa.struct([("a", kind)])])
def test_nesting(wrap):
    schema = nested(MAX_LEVELS, wrap)
    rows = pa.Table.from_arrays([*TABLE.columns, pa.nulls(4, schema.field("v").type)], schema=schema)
    recognizer = QUERY.recognizer(schema)
    found = len(recognizer.push(rows.slice(0, 2)))
    again = QUERY.recognizer(schema, snapshot=recognizer.snapshot())
    matches = again.push(rows.slice(2))
    assert found + len(matches) == len(QUERY.run(rows)) == 3
    pa.RecordBatchReader.from_stream(matches.to_arrow(events=True))
    deeper = nested(MAX_LEVELS + 1, wrap)
    for call in (lambda: QUERY.run(deeper.empty_table()), lambda: QUERY.recognizer(deeper), lambda: QUERY.schema(nested(3000, wrap))):
        with pytest.raises(LimitError, match=r"`v` nests deeper than 60 levels \(MAX_LEVELS\)"):
            call()
