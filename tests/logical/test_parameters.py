"""Parameters mean what the constants would mean that stand for them: the same plan, the same matches, the same fingerprint."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import itertools
import pickle
import random
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.cli.queries import python_value
from cepheid.errors import BindError, LimitError, NotSupportedError, SnapshotError
from cepheid.language import any_event, attr, event, param, parse, syntax, to_text
from cepheid.language.limits import MAX_COUNT, MAX_LIST
from cepheid.logical.meaning import meaning
from cepheid.logical.parameters import parameters
from cepheid.logical.times import MAX_STEPS
from cepheid.testing import generators
from cepheid.testing.differential import answers
from cepheid.testing.generators import ABSENT, ENGINE, WIDE

US = pa.timestamp("us")
TABLES = {kind: pa.schema([("type", pa.string()), ("ts", kind), ("v", pa.int64()), ("s", pa.string())]) for kind in (pa.int64(), US)}


def plan_of(query, schema=TABLES[US]):
    """The plan without the text and what speaks of it."""
    return dataclasses.replace(query.bound(query.schema(schema)), text="", lints=())


def same(written, constant, *, time=US, **args):
    """Whether a query with parameters is bound to the plan of the query with constants."""
    schema = TABLES[time]
    return plan_of(cepheid.query(f"SELECT * WHERE {written}", args=args), schema) == plan_of(
        cepheid.query(f"SELECT * WHERE {constant}"), schema
    )


# ------------------------------------------------------------------------------------------------------- constants made parameters


class Replaced:
    """A tree with its constants replaced by parameters, the values of these, and the places where they stand."""

    def __init__(self, tree, draw):
        self.args = {}
        self.draw = draw
        self.places = set()
        self.tree = self.replaced(tree)

    def parameter(self, forms, place):
        name = f"p{len(self.args)}"
        self.args[name] = self.draw.choice(forms)
        self.places.add(place)
        return syntax.Parameter(name)

    def count(self, value, place):
        return self.parameter([value, np.int64(value), pa.scalar(value)], place)

    def duration(self, value, place):
        if value.unit is None:
            return self.parameter([to_text(value), value.value, float(value.value)], place)
        length = dt.timedelta(microseconds=int(value.value * value.unit.value / 1_000))
        return self.parameter([to_text(value), length, np.timedelta64(length), pa.scalar(length)], place)

    def replaced(self, node):
        if isinstance(node, syntax.Number | syntax.Text | syntax.DurationValue | syntax.Negative) and python_value(node) is not Ellipsis:
            return self.parameter([python_value(node)], "value")
        changes = {item.name: self.part(node, item.name) for item in dataclasses.fields(node) if item.name != "span"}
        if isinstance(node, syntax.Iterate) and node.minimum == node.maximum:
            changes["maximum"] = changes["minimum"]
        return dataclasses.replace(node, **changes)

    def part(self, node, name):
        value, place = getattr(node, name), f"{type(node).__name__}.{name}"
        match value:
            case syntax.Duration():
                return self.duration(value, place)
            case syntax.Node():
                return self.replaced(value)
            case tuple() if place == "In.options" and Ellipsis not in (values := [python_value(option) for option in value]):
                return self.parameter([values, tuple(values), np.array(values, object)], place)
            case tuple():
                return tuple(self.replaced(item) if isinstance(item, syntax.Node) else item for item in value)
            case int() if place == "Iterate.maximum" and value == node.minimum:
                return value  # `{2}` has one parameter, see `replaced`
            case int() if place in PLACES and (place == "Query.limit" or getattr(node, "braces", True)):
                return self.count(value, place)
        return value


PLACES = {
    *("Query.limit", "EventCount.count", "Iterate.minimum", "Iterate.maximum"),
    *("Interval.lower", "Interval.upper", "Absence.duration", "In.options", "value"),
}


def test_parameters_are_their_constants(cases, seed):
    """The plan is equal, so is the fingerprint, and for a part of the cases the matches by the definition."""
    seen = set()
    for number in itertools.count():
        if number >= cases and seen == PLACES:
            break
        draw = random.Random(f"{seed}/{number}")
        fragment, unit = (ENGINE, ABSENT, WIDE)[number % 3], "s" if number % 2 else ""
        text = generators.random_query(draw, fragment=dataclasses.replace(fragment, unit=unit, limit=0.3))
        events = generators.table(generators.random_stream(draw, most=6), timed=bool(unit))
        constant = cepheid.query(text)
        replaced = Replaced(constant.tree, draw)
        query = cepheid.query(replaced.tree, args=replaced.args)
        seen |= replaced.places
        assert parse(query.text) == replaced.tree
        assert plan_of(query, events.schema) == plan_of(constant, events.schema), (text, query)
        with contextlib.suppress(NotSupportedError, LimitError):
            assert query.compiled(query.schema(events)).fingerprint == constant.compiled(constant.schema(events)).fingerprint
        if number % 5 == 0:
            with contextlib.suppress(LimitError):  # more matches than the definition gives
                assert answers(query, events) == answers(constant, events)


def test_a_state_of_the_constants_is_one_of_the_parameters():
    schema, rows = TABLES[pa.int64()], [{"type": kind, "ts": time, "v": time, "s": ""} for time, kind in enumerate("AABAB")]
    constant = cepheid.query("SELECT * WHERE A{1,2} AS a ; B FILTER a.v IN (0, 1) WITHIN 3 LIMIT 2")
    written = "SELECT * WHERE A{:n,:m} AS a ; B FILTER a.v IN :ks WITHIN :w LIMIT :l"
    query = cepheid.query(written, args={"n": 1, "m": 2, "ks": [0, 1], "w": 3, "l": 2})
    recognizer = constant.recognizer(schema)
    first = len(recognizer.push(pa.Table.from_pylist(rows[:2], schema=schema)))
    restored = query.recognizer(schema, snapshot=recognizer.snapshot())
    rest = pa.Table.from_pylist(rows[2:], schema=schema)
    assert [match.variables for match in restored.push(rest)] == [match.variables for match in recognizer.push(rest)]
    assert first == 0
    for other in ({"w": 4}, {"m": 3}, {"ks": [0]}, {"l": 1}):
        with pytest.raises(SnapshotError):
            query.with_args(**other).recognizer(schema, snapshot=recognizer.snapshot())


# ------------------------------------------------------------------------------------------------------------------ written out


@pytest.mark.parametrize(
    ("value", "constant"),
    [
        ("5s", "5s"),
        ("0.5 seconds", "500ms"),
        (dt.timedelta(minutes=1.5), "90s"),
        (np.timedelta64(5, "s"), "5s"),
        (np.timedelta64(5_000_000_000, "ns"), "5s"),
        (pa.scalar(5, pa.duration("s")), "5s"),
        (dt.timedelta(), "0s"),
        (dt.timedelta(days=36_500, microseconds=1), "3153600000000001us"),
    ],
)
def test_durations(value, constant):
    assert same("A ; B WITHIN :w", f"A ; B WITHIN {constant}", w=value)
    assert same("A ;[> :w] B", f"A ;[> {constant}] B", w=value)
    assert same("A+[<= :w]", f"A+[<= {constant}]", w=value)
    assert same("A NOT FOLLOWED BY B FOR :w", f"A NOT FOLLOWED BY B FOR {constant}", w=value)


@pytest.mark.parametrize("value", [5, 5.0, Decimal(5), Decimal("5.00"), "5", np.int8(5), np.float32(5), pa.scalar(5), Decimal("0.5e1")])
def test_durations_of_numeric_times(value):
    assert same("A ; B WITHIN :w", "A ; B WITHIN 5", time=pa.int64(), w=value)
    assert same("A : B NOT FOLLOWED BY C FOR :w", "A : B NOT FOLLOWED BY C FOR 5", time=pa.int64(), w=value)


def test_nanoseconds_are_kept():
    schema = TABLES[US].set(1, pa.field("ts", pa.timestamp("ns")))
    plan = cepheid.query("SELECT * WHERE A ; B WITHIN :w", args={"w": np.timedelta64(1_001, "ns")}).bound(
        cepheid.query("SELECT * WHERE A").schema(schema)
    )
    assert plan.pattern.interval.upper == 1_001


@pytest.mark.parametrize(
    ("written", "constant", "args"),
    [
        ("A{:n}", "A{2}", {"n": 2}),
        ("A{:n,:m}", "A{2,3}", {"n": 2, "m": 3}),
        ("A:{:n,}[<= :g]", "A:{2,}[<= 1s]", {"n": 2, "g": "1s"}),
        ("A{1,:m}", "A{1,1}", {"m": 1}),
        ("A ; B WITHIN :n EVENTS", "A ; B WITHIN 9 EVENTS", {"n": 9}),
        ("A ; B WITHIN [:a, :b]", "A ; B WITHIN [1s, 2s]", {"a": "1s", "b": "2s"}),
        ("A ; B WITHIN [= :a]", "A ; B WITHIN [= 1s]", {"a": "1s"}),
        ("A :[> :a, < 3s] B", "A :[> 1s, < 3s] B", {"a": "1s"}),
        ("A ; B PARTITION BY s WITHIN :w", "A ; B PARTITION BY s WITHIN 1h", {"w": "1h"}),
        ("A LIMIT :n", "A LIMIT 3", {"n": np.uint8(3)}),
        ("A FILTER A.v IN :ks", "A FILTER A.v IN (3, 1, 2)", {"ks": [3, 1, 2]}),
        ("A FILTER A.v NOT IN :ks", "A FILTER A.v NOT IN (1)", {"ks": (1,)}),
        ("A FILTER A.v IN :ks", "A FILTER A.v IN (1, 2.5, 3)", {"ks": {3, Decimal("2.5"), 1}}),
        ("A FILTER A.v IN :ks", "A FILTER A.v IN (0, 1, 2)", {"ks": range(3)}),
        ("A FILTER A[s IN :ks]", "A FILTER A[s IN ('a', 'b')]", {"ks": pa.array(["a", "b"])}),
        ("A FILTER A.v IN :ks", "A FILTER A.v IN (1, NULL)", {"ks": [1, None]}),
        ("A FILTER A.v IN :ks", "A FILTER A.v IN (NULL)", {"ks": [None]}),
        ("A FILTER A.v IN (:a, :b, 3)", "A FILTER A.v IN (1, 2, 3)", {"a": 1, "b": 2}),
        ("A{:n} ; B{:n} WITHIN :n EVENTS LIMIT :n", "A{2} ; B{2} WITHIN 2 EVENTS LIMIT 2", {"n": 2}),
        ("A{:`a b`}", "A{2}", {"a b": 2}),
    ],
)
def test_places(written, constant, args):
    if "IN (1, 2.5" in constant:  # a set has an order of its own
        query = cepheid.query(f"SELECT * WHERE {written}", args=args)
        assert query.args["ks"] == [Decimal("2.5"), 1, 3]
        return
    assert same(written, constant, **args)


@pytest.mark.parametrize(
    ("written", "args", "error", "place"),
    [
        *(("A ; B WITHIN :w", {"w": value}, BindError, ":w") for value in (True, None, "x", "", ":w", "[<= 5s]", "5 EVENTS", b"5s", [1])),
        *(("A ; B WITHIN :w", {"w": value}, BindError, ":w") for value in (float("nan"), float("inf"), Decimal("nan"), object(), "-5s", 5)),
        ("A FILTER A.v IN :ks", {"ks": range(10**12)}, LimitError, ":ks"),
        ("A FILTER A.v = :k", {"k": np.timedelta64(5, "ns")}, BindError, "A.v = :k"),
        ("A FILTER A.v IN :ks", {"ks": np.array([5], "timedelta64[ns]")}, BindError, "A.v IN :ks"),
        ("A FILTER A.v IN :ks", {"ks": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)])}, BindError, "A.v IN :ks"),
        *(("A ; B WITHIN :w", {"w": value}, LimitError, ":w") for value in (10**5000, 1e300, 1e-300, Decimal("1e1000000"), "9" * 50 + "s")),
        ("A ; B WITHIN :w", {"w": "99999999999w"}, LimitError, ":w"),
        ("A ; B WITHIN :w", {"w": np.timedelta64("NaT")}, BindError, ":w"),
        ("A NOT FOLLOWED BY B FOR :d", {"d": dt.timedelta(-1)}, BindError, ":d"),
        ("A ;[> :a, < :b] B", {"a": "1s", "b": "1s"}, BindError, "[> :a, < :b]"),
        ("A ;[:a, 1s] B", {"a": "2s"}, BindError, "[:a, 1s]"),
        *(("A{:n}", {"n": value}, BindError, ":n") for value in (0, -1, 2.0, Decimal(2), True, None, "2", [2], float("nan"))),
        ("A{:n,:m}", {"n": 3, "m": 2}, BindError, ":n,:m"),
        ("A{0,:m}", {"m": 2}, BindError, ":m"),
        ("A{:n,}", {"n": MAX_COUNT + 1}, LimitError, ":n"),
        ("A{:n,}", {"n": -(10**5000)}, BindError, ":n"),
        ("A WITHIN :n EVENTS", {"n": 0}, BindError, ":n EVENTS"),
        ("A WITHIN :n EVENTS", {"n": MAX_STEPS + 1}, LimitError, ":n EVENTS"),
        *(("A LIMIT :n", {"n": value}, BindError, ":n") for value in (0, -1, 1.5, False)),
        *(
            ("A FILTER A.v IN :ks", {"ks": value}, BindError, ":ks")
            for value in ([], (), set(), 5, "abc", None, {"a": 1}, [[1]], [object()])
        ),
        ("A FILTER A.v IN :ks", {"ks": range(MAX_LIST + 1)}, LimitError, ":ks"),
        ("A FILTER A.v IN :ks", {"ks": [1, "a"]}, BindError, "A.v IN :ks"),
        ("A FILTER A.v IN (:k)", {"k": [1]}, BindError, ":k"),
        ("A FILTER A.v = :k", {"k": [1]}, BindError, ":k"),
        *((f"A{place}", {}, BindError, ":p") for place in ("{:p}", "{1,:p}", " WITHIN :p", " WITHIN :p EVENTS", " LIMIT :p", "+[>= :p]")),
        *((f"A{place}", {}, BindError, ":p") for place in (" NOT FOLLOWED BY B FOR :p", " FILTER A.v IN :p", " PARTITION BY s WITHIN :p")),
    ],
)
def test_wrong_values_are_errors_at_their_place(written, args, error, place):
    query = cepheid.query(f"SELECT * WHERE {written}", args=args)
    with pytest.raises(error) as caught:
        query.bound(query.schema(TABLES[US]))
    assert query.text[caught.value.span.start : caught.value.span.end] == place
    assert caught.value.help
    assert len(str(caught.value)) < 600


def test_the_longest_list():
    assert len(cepheid.query("SELECT * WHERE A FILTER A.v IN :ks", args={"ks": range(MAX_LIST)}).run([{"type": "A", "ts": 1, "v": 7}])) == 1


def test_a_query_keeps_its_values():
    values = [1, 2]
    query = cepheid.query("SELECT * WHERE A FILTER A.v IN :ks", args={"ks": values})
    values.append(3)
    assert query.args == {"ks": [1, 2]}
    assert query == query.with_args(ks=np.array([1, 2])) == pickle.loads(pickle.dumps(query))
    assert query.with_args(ks=[1]) != query
    assert cepheid.query("SELECT * WHERE A WITHIN :self", args={"self": 5}).with_args(self=6).args == {"self": 6}


def test_the_builder_takes_parameters():
    a, b, c = event("A"), event("B"), event("C")
    built = (
        a.repeat(minimum=param("n"), maximum=param("m"), gap=param("g"))
        .followed_by(b, gap="> :low")
        .directly_followed_by(c, gap=param("high"))
        .not_followed_by(any_event(), within=param("d"))
        .where(attr("A", "v").is_in(param("ks")) & attr("B", "v").is_in([param("k"), 1], negated=True))
        .within(param("w"))
        .within(events=param("e"))
    )
    query = built.select(limit=param("l"))
    assert to_text(query) == (
        "SELECT * WHERE A{:n,:m}[<= :g] ;[> :low] B :[<= :high] C NOT FOLLOWED BY ANY FOR :d "
        "FILTER A.v IN :ks AND B.v NOT IN (:k, 1) WITHIN :w WITHIN :e EVENTS LIMIT :l"
    )
    assert parse(to_text(query)) == query
    assert {node.name for node in parameters(query)} == {"n", "m", "g", "low", "high", "d", "ks", "k", "w", "e", "l"}
    assert str(a.repeat(minimum=param("n"))) == "A{:n,}"
    assert str(a.repeat(maximum=param("n"))) == "A{1,:n}"
    assert str(a.repeat(minimum=param("n"), maximum=param("n"))) == "A{:n}"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: event("A").within(attr("A", "v")),
        lambda: event("A").within(events=attr("A", "v")),
        lambda: event("A").repeat(minimum=param("n") + 1),
        lambda: event("A").not_followed_by("B", within=-param("d")),
        lambda: event("A").select(limit=attr("A", "v")),
        lambda: attr("A", "v").is_in(attr("A", "w")),
    ],
)
def test_no_other_expression_stands_there(wrong):
    with pytest.raises(BindError, match=r"cannot stand for a (duration|count|list)"):
        wrong()


# ------------------------------------------------------------------------------------------------------------- without values


@pytest.mark.parametrize(
    "written",
    [
        *("A{:n,:m} WITHIN 5s", "A{:n,2} WITHIN 5s", "A{2,:n} WITHIN 5s", "A{:n,} WITHIN 5s"),
        *("A ; B WITHIN :w", "A ; B WITHIN :n EVENTS", "A ; B WITHIN [5s, :w]", "A ; B WITHIN [> :w, < :w]"),
        *("A ;[:a, 5s] B WITHIN 1m", "A+[:a, :b] WITHIN 1m", "A NOT FOLLOWED BY B FOR :d"),
        *("A FILTER A.v > :p", "A FILTER :p", "A FILTER NOT :p AND A.v + :p = -:q", "A FILTER A[v IN :ks OR s NOT IN :ks]"),
        *("A FILTER coalesce(A.v, :p) BETWEEN :a AND :b", "A FILTER lower(:p) = A.s OR length(:q) % abs(:r) = 1", "A FILTER :a = :b"),
        *("A AS x FILTER x.v > lag(x.v, :n) AND x.v IN (:a, 2, NULL)", "A FILTER A.$time > :t AND hour(A.$time) < :h"),
        "A NOT FOLLOWED BY B FOR [< :d] FROM START",
    ],
)
def test_a_query_is_checked_without_values(written):
    """Names and places are checked, nothing that the values decide is warned of, and the sentences name each parameter."""
    query = cepheid.query(f"SELECT * WHERE {written}")
    schema = query.schema(TABLES[US])
    with pytest.raises(BindError, match="no value for parameter"):
        query.bound(schema)
    plan = query.bound(schema, partial=True)
    assert plan.lints == ()
    assert_named(query, meaning(plan))
    with pytest.raises(BindError, match="unknown variable `zz`"):
        cepheid.query(f"{query.text} FILTER zz.v > 3").bound(schema, partial=True)


def assert_named(query, sentences):
    assert not re.search("NULL|FALSE", sentences)
    assert set(re.findall(r":[a-z]\w*", sentences)) == {f":{each.name}" for each in parameters(query.tree)}


def test_sentences_name_parameters_behind_the_pattern():
    text = "SELECT first(A.v, :k) AS f, sum(A.v) * :q AS s WHERE A+ WITHIN 5s HAVING count(A) > :n AND f < :v LIMIT :l"
    query = cepheid.query(f"EVENT M(v) AS (SELECT max(A.v) * :p AS v WHERE A+ WITHIN :w) {text}")
    for schema in (None, TABLES[US]):
        assert_named(query, query.explain("meaning", schema=schema)["meaning"])
    with pytest.raises(BindError, match="unknown attribute"):
        cepheid.query("SELECT * WHERE A FILTER A.u > :p").explain("meaning", schema=TABLES[US])


def test_a_window_without_a_value_needs_a_time_column():
    schema = pa.schema([("type", pa.string()), ("v", pa.int64())])
    query = cepheid.query("SELECT * WHERE A ; B WITHIN :w")
    with pytest.raises(BindError, match="needs a time column"):
        query.bound(query.schema(schema), partial=True)


def test_the_type_of_time_is_guessed_from_the_values():
    explained = {value: str(cepheid.query("SELECT * WHERE A ; B WITHIN :w", args={"w": value}).explain("plan")) for value in (5, "5s")}
    assert "ts int64" in explained[5]
    assert "ts timestamp" in explained["5s"]
    listed = cepheid.query("SELECT * WHERE A FILTER A.s IN :ks", args={"ks": [None, "a"]}).explain()
    assert "s string" in listed["schema"]
    assert listed["text"].splitlines()[1:] == [":ks = a list of 2 values"]
    assert "no value for parameter `:w`" in str(cepheid.query("SELECT * WHERE A ; B WITHIN :w").explain())


def test_values_of_pandas():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    schema = TABLES[US].set(1, pa.field("ts", pa.timestamp("ns")))
    window = cepheid.query("SELECT * WHERE A ; B WITHIN :w", args={"w": pandas.Timedelta(1_001, "ns")})
    assert window.bound(window.schema(schema)).pattern.interval.upper == 1_001
    assert same("A FILTER A.v IN :ks", "A FILTER A.v IN (1, 2)", ks=pandas.Series([1, 2]))
    assert same(
        "A FILTER A.ts > :t",
        "A FILTER A.ts > TIMESTAMP '2026-01-01 00:00:00.000000001'",
        t=pandas.Timestamp("2026-01-01") + pandas.Timedelta(1, "ns"),
    )
    assert same("A FILTER A.ts = :t", "A FILTER A.ts = NULL", t=pandas.NaT)
    assert same(
        "A FILTER A.ts IN :ts",
        "A FILTER A.ts IN (TIMESTAMP '2026-01-01', NULL)",
        ts=pandas.Series(pandas.to_datetime(["2026-01-01", None])),
    )


def test_times_of_numpy_have_any_unit_that_arrow_or_python_has():
    for value in (np.datetime64("2026-01-01"), np.datetime64("2026-01"), np.datetime64("2026"), np.datetime64("2026-01-01T00", "W")):
        day = value.astype("datetime64[D]")
        assert same("A FILTER A.ts > :t", f"A FILTER A.ts > DATE '{day}'", t=value)
    assert same("A FILTER A.ts IN :ts", "A FILTER A.ts IN (DATE '2026-01-01', NULL)", ts=np.array(["2026-01-01", "NaT"], "datetime64[D]"))
    assert same("A FILTER A.ts > :t", "A FILTER A.ts > TIMESTAMP '2026-01-01 07:00:00'", t=np.datetime64("2026-01-01T07", "h"))
    for unit, text in (("W", "14 days"), ("D", "2 days"), ("h", "2 hours"), ("m", "2 minutes"), ("s", "2 seconds")):
        assert same("A ; B WITHIN :w", f"A ; B WITHIN {text}", w=np.timedelta64(2, unit))
    for value in (np.timedelta64(2, "M"), np.timedelta64(2), np.datetime64(2, "ps"), np.datetime64(10**9, "Y")):
        for pattern in ("A FILTER A.ts > :p", "A ; B WITHIN :p", "A FILTER A.ts IN :p"):
            query = cepheid.query(f"SELECT * WHERE {pattern}", args={"p": [value] if " IN " in pattern else value})
            with pytest.raises(cepheid.CepheidError):
                query.bound(query.schema(TABLES[US]))


def test_times_at_the_ends_of_what_python_has():
    """In UTC they lie outside the years 1 to 9999, and that is no matter."""
    for value, epoch in (
        (dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-14))), 253_402_300_799_999_999 + 14 * 3_600_000_000),
        (dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))), -62_135_596_800_000_000 - 14 * 3_600_000_000),
    ):
        query = cepheid.query("SELECT * WHERE A FILTER A.u > :t", args={"t": value})
        schema = TABLES[US].append(pa.field("u", pa.timestamp("us", "UTC")))
        (condition,) = query.bound(query.schema(schema)).pattern.conditions
        assert condition.arguments[1].value == epoch
    for values in (pa.array([2**63 - 1], pa.timestamp("s")), pa.array([2**62], pa.duration("s"))):
        for pattern in ("A FILTER A.ts IN :p", "A ; B WITHIN :p", "A FILTER A.v > :p"):
            query = cepheid.query(f"SELECT * WHERE {pattern}", args={"p": values})
            with pytest.raises(cepheid.CepheidError):
                query.bound(query.schema(TABLES[US]))
