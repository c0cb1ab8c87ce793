"""Types that a query names and no event has: said by the matches, whatever way the events came."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.input import named_types
from cepheid.engine.input.named_types import NamedTypes

TYPES = ["Temperature", "Humidity", "Temperature", None, "Humidity"]
EVENTS = pa.table({"type": TYPES, "ts": range(5), "v": [1, 2, 3, 4, 5]})
ENCODED = {
    "strings": EVENTS,
    "dictionary": EVENTS.set_column(0, "type", EVENTS["type"].dictionary_encode()),
    "views": EVENTS.set_column(0, "type", EVENTS["type"].cast(pa.string_view())),
    "chunks": pa.concat_tables([EVENTS[:2], EVENTS[2:2], EVENTS[2:]]),
}
NEAR = "no event has the type `Temprature`: did you mean `Temperature`?"
FAR = "no event has the type `Smoke`"


def ways(events: pa.Table) -> dict[str, object]:
    """Each way to give events to `Query.run`."""
    return {"table": events, "reader": events.to_reader(max_chunksize=2), "list": events.to_pylist(), "stream": {"readings": events}}


@pytest.mark.parametrize("events", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize(
    ("pattern", "warnings"),
    [
        ("Temprature AS t ; Humidity", (NEAR,)),
        ("Temperature AS t ; (Humidity OR Smoke)", (FAR,)),
        ("Smoke ; Temprature", (FAR, NEAR)),
        ("Humidity NOT FOLLOWED BY Temprature FOR 3", (NEAR,)),
        ("(Temperature AS t FILTER t[v > 100]) ; Humidity", ()),
        ("Humidity ; ANY", ()),
    ],
)
def test_a_type_that_no_event_has_is_a_warning(events: pa.Table, pattern: str, warnings: tuple[str, ...]) -> None:
    query = cepheid.query(f"SELECT * WHERE {pattern}")
    for way, given in ways(events).items():
        assert query.run(given).warnings == warnings, way
    assert cepheid.query("SELECT * WHERE Temprature").run(events, engine="reference").warnings == (NEAR,)


def test_what_is_shown_says_it() -> None:
    nothing = cepheid.query("SELECT * WHERE Temprature AS t").run(EVENTS)
    assert repr(nothing).splitlines() == ["0 matches", f"warning: {NEAR}"]
    some = cepheid.query("SELECT * WHERE Humidity OR `<b>`").run(EVENTS)
    assert repr(some).splitlines()[:2] == ["2 matches", "warning: no event has the type `<b>`"]
    assert some[:1].warnings == some.take(np.array([1])).warnings == some.warnings
    assert "2 matches<br>warning: no event has the type `&lt;b&gt;`" in some._repr_html_()


def test_without_events_nothing_is_said() -> None:
    assert cepheid.query("SELECT * WHERE Temprature AS t").run(EVENTS[:0]).warnings == ()
    assert cepheid.query("SELECT * WHERE Smoke AS t").run(EVENTS[3:4]).warnings == (FAR,)


def test_a_type_that_is_the_name_of_a_stream_is_met_where_the_stream_has_events() -> None:
    query = cepheid.query("SELECT * WHERE a AS x ; Humidity")
    plain = EVENTS.drop_columns(["type"])
    assert query.run({"a": plain, "readings": EVENTS}).warnings == ()
    assert query.run({"a": plain[:0], "readings": EVENTS}).warnings == ("no event has the type `a`",)


def test_a_recognizer_has_not_seen_all() -> None:
    query = cepheid.query("SELECT * WHERE Temprature AS t")
    assert query.recognizer(EVENTS.schema).push(EVENTS).warnings == ()


def test_the_types_are_looked_at_only_where_the_letters_miss_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    met = NamedTypes.met
    monkeypatch.setattr(NamedTypes, "met", lambda self, types: (looked.append(types), met(self, types))[1])
    for way, given in ways(EVENTS.sort_by([("type", "ascending")]).drop_columns(["ts"])).items():
        if way != "stream":
            cepheid.query("SELECT * WHERE (Temperature ; Humidity) OR (Humidity ; Temperature)").run(given)
            assert len(looked) == (1 if way == "reader" else 0), "only the first batch of the reader has one type of them"
            looked.clear()


def test_a_name_is_not_sought_among_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_types, "MANY_TYPES", 1)
    assert cepheid.query("SELECT * WHERE Temprature AS t").run(EVENTS).warnings == ("no event has the type `Temprature`",)


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()], ids=str)
def test_a_type_that_differs_in_case_or_spaces_is_counted(kind: pa.DataType) -> None:
    names = ["Signup", "SIGNUP", "Signup ", "Buy", None, "SIGNUP", "other"]
    events = pa.table({"type": pa.array(names).cast(kind), "ts": range(7)})
    query = cepheid.query("SELECT * WHERE Signup ; Buy")
    tail = "which is not `Signup` but for case or spaces: write the types alike before, or ask for both"
    said = (f"2 events have the type `SIGNUP`, {tail}", f"1 event has the type `Signup `, {tail}")
    for way, given in ways(events).items():
        assert query.run(given).warnings == said, way
    assert query.run(events, engine="reference").warnings == said
    assert cepheid.queries({"own": query}).run(events)["own"].warnings == said
    assert cepheid.query("SELECT * WHERE (Signup OR SIGNUP OR `Signup `) ; Buy").run(events).warnings == ()
    # A dictionary may have values that no event has.
    assert query.run(pa.concat_tables([events[:1], events[3:4]])).warnings == ()


def test_types_without_a_key_are_a_warning() -> None:
    events = pa.table({"type": ["A", "B", "A", "B"], "ts": range(4), "user": ["u", None, None, None]})
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY user")
    said = ("no event of the type `B` has a `user`, which PARTITION BY asks for: none is in a match",)
    for way, given in ways(events).items():
        if way != "stream":
            assert query.run(given).warnings == said, way
            assert query.run(given, null_keys="group").warnings == (), way
    assert query.run(events, engine="reference").warnings == said
    assert cepheid.queries({"own": query}).run(events)["own"].warnings == said
    streams = {"A": events[:1].drop_columns(["type"]), "B": events[1:2].drop_columns(["type"])}
    assert query.run(streams).warnings == said
    assert query.run(events.set_column(2, "user", pa.array(["u", None, None, "u"]))).warnings == ()


DEFINED = "EVENT Hot(peak) AS (SELECT x.v AS peak WHERE Temperature AS x FILTER x.v > 2) SELECT h.peak AS peak WHERE Hot AS h ; Humidity"
TAKEN = "events that come in have the type `Hot`, as those of its EVENT definition: rename one"


@pytest.mark.parametrize("events", ENCODED.values(), ids=ENCODED)
def test_a_definition_with_the_name_of_a_type_that_comes_in_is_a_warning(events: pa.Table) -> None:
    query = cepheid.query(DEFINED)
    both = events.set_column(0, "type", pa.array(["Temperature", "Humidity", "Temperature", "Hot", "Humidity"]).cast(events["type"].type))
    for way, given in ways(events).items():
        assert query.run(given).warnings == (), way
    for way, given in ways(both).items():
        found = query.run(given)
        assert found.warnings == (TAKEN,), way
        assert [match.measures["peak"] for match in found] == [None, 3]
    assert query.run(events, engine="reference").warnings == ()
    assert query.run(both, engine="reference").warnings == (TAKEN,)
    batches = query.batches(both)
    assert sum(map(len, batches)) == 2
    assert batches.warnings == (TAKEN,)
    together = cepheid.queries({"own": query, "other": "SELECT * WHERE Hot"}).run(both)
    assert (together["own"].warnings, together["other"].warnings) == ((TAKEN,), ())


RISES = "SELECT a.amount AS was WHERE Pay AS a ; Pay AS b FILTER b.amount > a.amount"
PAID = pa.table({"type": ["Pay"] * 1200, "ts": range(1200), "amount": [str(number % 90) for number in range(1200)]})
AS_TEXT = "it is compared as text, where '10' comes before '9'; make it a column of numbers before"


@pytest.mark.parametrize("query", [RISES, "SELECT MAX max(a.amount) AS top WHERE Pay+ AS a WITHIN 3", RISES + " AND b.amount > '5'"])
@pytest.mark.parametrize("odd", [None, 3, 1150])
def test_numbers_that_are_compared_as_texts(query, odd):
    amounts = PAID["amount"].to_pylist()
    if odd is not None:
        amounts[odd : odd + 2] = ["n/a (EUR)", None]
    why = "though its values are numbers" if odd is None else "for not all of its values are numbers, such as 'n/a (EUR)'"
    for events in ways(PAID.set_column(2, "amount", pa.array(amounts))).values():
        limited = cepheid.query(f"{query} LIMIT 1")
        assert limited.run(events).warnings == (f"`amount` is text, {why}: {AS_TEXT}",)


@pytest.mark.parametrize(
    ("query", "amounts"),
    [
        (RISES.replace(">", "="), ["1", "2", "n/a"]),
        (RISES.replace("amount", "ts"), ["1", "2", "n/a"]),
        (RISES, ["A1", "A2", "3"]),
        (RISES, [None, None, None]),
        (RISES, [1, 2, 3]),
    ],
)
def test_texts_that_are_no_numbers_or_not_compared(query, amounts):
    events = pa.table({"type": ["Pay"] * 3, "ts": range(3), "amount": pa.array(amounts, None if any(amounts) else pa.string())})
    assert [cepheid.query(query).run(events).warnings for events in ways(events).values()] == [()] * 4


@pytest.mark.parametrize(
    ("query", "options", "warns"),
    [
        ("SELECT * WHERE Pay ; Pay", {}, True),
        ("SELECT * WHERE Pay+ WITHIN 3 EVENTS", {}, True),
        ("SELECT * WHERE Pay ; Pay", {"time": "at"}, False),
        ("SELECT * WHERE Pay AS a FILTER a[v > 1]", {}, False),
    ],
)
def test_a_column_of_times_that_nobody_names(query, options, warns):
    at = pa.array([1, 2, 3], pa.timestamp("us"))
    events = pa.table({"type": ["Pay"] * 3, "at": at, "v": [1, 2, 3]})
    fact = "no column of the events is their time, so the rows are taken in their order; `at` has times: time= (--time) names it"
    for given in (events, events.to_reader(max_chunksize=2), events.to_pylist()):
        assert cepheid.query(query).run(given, **options).warnings == ((fact,) if warns else ())
    assert cepheid.query(query).run(events.drop(["at"])).warnings == (), "no times, no question"
