"""The builder makes the trees that the parser makes, and refuses what has no text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import names, quick, texts

from cepheid.errors import BindError, CepheidError
from cepheid.language import (
    any_event,
    attr,
    call,
    case,
    definition,
    event,
    index_of,
    lag,
    literal,
    local,
    param,
    parse,
    parse_condition,
    parse_pattern,
    previous,
    time_of,
    to_text,
    word,
)

# ----------------------------------------------------------------------------------------------------------------------- builder

A, B, C = event("A"), event("B"), event("C")

BUILT = [
    (any_event().as_("any"), "ANY AS any"),
    (event("T").as_("x").followed_by(event("H").as_("y")), "T AS x ; H AS y"),
    (A.followed_by(B, gap="<= 5s"), "A ;[<= 5s] B"),
    (A.followed_by(B, gap=dt.timedelta(milliseconds=1500)), "A ;[<= 1500ms] B"),
    (A.followed_by(B, gap="1s, 3s"), "A ;[1s, 3s] B"),
    (A.followed_by(B, gap="5s"), "A ;[<= 5s] B"),
    (A.followed_by("B ; C"), "A ; B ; C"),
    (A.directly_followed_by(B.followed_by(C.optional())).directly_followed_by(A), "A : B ; C? : A"),
    (A.then(B.followed_by(C)), "A THEN (B ; C)"),
    (A.followed_by(B).followed_by(C), "A ; B ; C"),
    (A.followed_by(C, without=B), "A ; NOT B ; C"),
    (A.followed_by(C, without=B, gap="<= 5s"), "A ; NOT B ;[<= 5s] C"),
    (A.followed_by(C, without="B FILTER B[v > 1]"), "A ; NOT (B FILTER B[v > 1]) ; C"),
    (A.directly_followed_by(B, gap="= 2s").then(C), "A :[= 2s] B THEN C"),
    (A | B | C, "A OR B OR C"),
    (A | (B | C), "A OR B OR C"),
    (A & B, "A AND B"),
    (A.all_with(B).all_with(C), "A ALL B ALL C"),
    ((A & B) | C.all_with(A), "A AND B OR C ALL A"),
    (A.repeat(), "A+"),
    (A.repeat(adjacent=True, gap="<= 1m"), "A:+[<= 1m]"),
    (A.repeat(minimum=2), "A{2,}"),
    (A.repeat(minimum=2, maximum=3, adjacent=True), "A:{2,3}"),
    (A.repeat(maximum=2), "A{1,2}"),
    (A.as_("x").repeat(minimum=3, maximum=3), "(A AS x){3}"),
    (A.optional().followed_by(B), "A? ; B"),
    (A.as_("x").where("x.temp > :limit"), "A AS x FILTER x.temp > :limit"),
    (A.as_("x").where(attr("x", "temp") > param("limit")), "A AS x FILTER x.temp > :limit"),
    (A.within("5 seconds"), "A WITHIN 5s"),
    (A.within(dt.timedelta(minutes=90)), "A WITHIN 90m"),
    (A.within(dt.timedelta(0)), "A WITHIN 0s"),
    (A.within(dt.timedelta(days=-14)), "A WITHIN -2w"),
    (A.within("[> 1s, < 3s]"), "A WITHIN [> 1s, < 3s]"),
    (A.within("< 3s"), "A WITHIN [< 3s]"),
    (A.within("5"), "A WITHIN 5"),
    (A.within(events=100), "A WITHIN 100 EVENTS"),
    (A.within("100 EVENTS"), "A WITHIN 100 EVENTS"),
    (A.unless(B | C), "A UNLESS B OR C"),
    (A.not_followed_by(B, within="10m"), "A NOT FOLLOWED BY B FOR 10m"),
    (A.not_followed_by("B OR C", within=dt.timedelta(days=1)), "A NOT FOLLOWED BY B OR C FOR 1d"),
    (A.project("x", "none"), "PROJECT x, `none` (A)"),
    (A.project(), "PROJECT NONE (A)"),
    (A.strict().followed_by(B.nxt()).followed_by(C.last()).followed_by(A.max()), "STRICT(A) ; NXT(B) ; LAST(C) ; MAX(A)"),
    (A.where("a.v = 1").followed_by(B), "(A FILTER a.v = 1) ; B"),
    (A.followed_by(B).where("a.v = 1").unless(C).within("5s"), "A ; B FILTER a.v = 1 UNLESS C WITHIN 5s"),
    (A.followed_by(B).within("5s").followed_by(C), "(A ; B WITHIN 5s) ; C"),
]


@pytest.mark.parametrize(("built", "text"), BUILT, ids=[text for _, text in BUILT])
def test_built_patterns(built, text):
    assert str(built) == text
    assert parse_pattern(text) == built.node


x = attr("x", "a")
BUILT_EXPRESSIONS = [
    (attr("x", "path", "to", "field") == "text", "x.path.to.field = 'text'"),
    (x != None, "x.a != NULL"),  # noqa: E711 - a comparison of the language
    ((x > 1) & (x >= 2) & (x < 3), "x.a > 1 AND x.a >= 2 AND x.a < 3"),
    ((x <= 1) & ((x == 2) | (x == 3)), "x.a <= 1 AND (x.a = 2 OR x.a = 3)"),
    (~((x > 1) | "x.b IS NULL"), "NOT (x.a > 1 OR x.b IS NULL)"),
    (x + 1 - 2 * x, "x.a + 1 - 2 * x.a"),
    (1 + x / 2 % 3, "1 + x.a / 2 % 3"),
    ((1 - x) / (2 % x), "(1 - x.a) / (2 % x.a)"),
    (1 / -x, "1 / -x.a"),
    (-(x + 1), "-(x.a + 1)"),
    (x.is_null(), "x.a IS NULL"),
    (x.is_null(negated=True), "x.a IS NOT NULL"),
    (x.is_in([1, "a", None]), "x.a IN (1, 'a', NULL)"),
    (x.is_in((True,), negated=True), "x.a NOT IN (TRUE)"),
    (x.between(-1, attr("x", "b") + 2), "x.a BETWEEN -1 AND x.b + 2"),
    (x.between(1, 2, negated=True), "x.a NOT BETWEEN 1 AND 2"),
    (x.like("a%'_"), "x.a LIKE 'a%''_'"),
    (x.like("b", negated=True), "x.a NOT LIKE 'b'"),
    (previous("x", "a") < x, "prev(x).a < x.a"),
    (x > lag("x", "a"), "x.a > lag(x.a)"),
    (lag("x", "place", "city", steps=2) == "B", "lag(x.place.city, 2) = 'B'"),
    (x > lag("x", "a", steps=param("n")), "x.a > lag(x.a, :n)"),
    (time_of("y") - time_of("x") < dt.timedelta(minutes=5), "y.$time - x.$time < 5m"),
    (time_of("y") - time_of("x") > dt.timedelta(seconds=-0.5), "y.$time - x.$time > -500ms"),
    (index_of("y") == 0, "y.$index = 0"),
    (local("x", (word("temp") > 40) & word("active")), "x[temp > 40 AND active]"),
    (local("x", "temp > 40"), "x[temp > 40]"),
    (call("abs", x - 1) > 2.5, "abs(x.a - 1) > 2.5e0"),
    (call("count", "*"), "count(*)"),
    (call("start_time"), "start_time()"),
    (literal(Decimal("2.50")), "2.50"),
    (literal(Decimal(5)), "5.0"),
    (literal(-3), "-3"),
    (literal(1e300), "1e+300"),
    (literal(-0.0), "-0.0e0"),
    (literal(True), "TRUE"),
    (literal(dt.date(2013, 1, 2)), "DATE '2013-01-02'"),
    (literal(dt.datetime(2013, 1, 2, 3, 4, 5)), "TIMESTAMP '2013-01-02 03:04:05'"),  # noqa: DTZ001 - without a zone on purpose
    (literal(dt.datetime(2013, 1, 2, tzinfo=dt.UTC)), "TIMESTAMP '2013-01-02 00:00:00+00:00'"),
]


@pytest.mark.parametrize(("built", "text"), BUILT_EXPRESSIONS, ids=[text for _, text in BUILT_EXPRESSIONS])
def test_built_expressions(built, text):
    assert str(built) == text
    assert parse_condition(text) == built.node


def test_built_query():
    hot = definition("Hot", ["s"], event("T").as_("x").select("x.s AS s"))
    built = (
        event("Hot")
        .as_("x")
        .then(event("H").as_("last"))
        .select(
            "x",
            word("last"),
            call("max", attr("last", "t")).as_("peak"),
            strategy="next",
            from_=["Hot", "S"],
            partition_by="k",
            consume="any",
            model="cayuga",
            limit=3,
            definitions=[hot],
        )
    )
    text = (
        "EVENT Hot(s) AS (SELECT x.s AS s WHERE T AS x) SELECT NXT x, `last`, max(`last`.t) AS peak FROM Hot, S "
        "WHERE Hot AS x THEN H AS last PARTITION BY k CONSUME BY ANY TIME MODEL CAYUGA LIMIT 3"
    )
    assert to_text(built) == text
    assert parse(text) == built


builders = st.recursive(
    st.one_of(names.map(event), st.just(any_event())),
    lambda inner: st.one_of(
        st.tuples(inner, names).map(lambda pair: pair[0].as_(pair[1])),
        st.tuples(inner, inner).map(lambda pair: pair[0].followed_by(pair[1])),
        st.tuples(inner, inner, inner).map(lambda three: three[0].followed_by(three[1], without=three[2])),
        st.tuples(inner, inner).map(lambda pair: pair[0].directly_followed_by(pair[1], gap="< 5s")),
        st.tuples(inner, inner).map(lambda pair: pair[0].then(pair[1])),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0].all_with(pair[1])),
        st.tuples(inner, inner).map(lambda pair: pair[0].unless(pair[1])),
        st.tuples(inner, inner).map(lambda pair: pair[0].not_followed_by(pair[1], within="1h")),
        st.tuples(inner, st.booleans()).map(lambda pair: pair[0].repeat(adjacent=pair[1])),
        inner.map(lambda built: built.optional()),
        inner.map(lambda built: built.where((attr("x", "a") > 1.5) | ~(word("b") == "c"))),
        st.tuples(inner, st.timedeltas()).map(lambda pair: pair[0].within(pair[1])),
        st.tuples(inner, names).map(lambda pair: pair[0].project(pair[1])),
        inner.map(lambda built: built.max()),
    ),
    max_leaves=10,
)


@quick
@given(builders)
def test_what_is_built_is_what_is_parsed(built):
    assert parse_pattern(str(built)) == built.node


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**37), 10**37),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**9), 10**9, places=5),
    texts,
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
)


@quick
@given(values)
def test_literals(value):
    built = literal(value)
    assert parse_condition(str(built)) == built.node


@quick
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_exact_doubles(value):
    text = str(literal(value))
    assert "e" in text
    assert float(text) == value


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: event(""),
        lambda: event("a\0"),
        lambda: A.as_("\ud800"),
        A.within,
        lambda: A.within("5s", events=3),
        lambda: A.within(events=-1),
        lambda: A.followed_by(B, gap="100 EVENTS"),
        lambda: A.not_followed_by(B, within="[1s, 3s]"),
        lambda: A.not_followed_by(B, within="5 EVENTS"),
        lambda: A.repeat(minimum=-1),
        lambda: A.select(strategy="newest"),
        lambda: A.select(model="cayga"),
        lambda: A.select(consume="all"),
        lambda: A.select(limit=-1),
        lambda: A.select((x + 1) * 2, strategy="max"),
        lambda: attr("x"),
        lambda: previous("x"),
        lambda: lag("x"),
        lambda: lag("x", "a", steps=0),
        lambda: call("my function"),
        lambda: call("not", x),
        lambda: x.is_in([]),
        lambda: literal("\0"),
        lambda: literal(float("nan")),
        lambda: literal(Decimal("-Infinity")),
        lambda: literal(10**5000),
        lambda: literal(Decimal("1E+5000")),
        lambda: literal(Decimal("1E-1000000")),
        lambda: literal([1]),
        lambda: x > object(),
        lambda: A.where("x.a >"),
        lambda: A.followed_by("B ;"),
        lambda: A.within("soon"),
    ],
)
def test_what_cannot_be_built(wrong):
    with pytest.raises(CepheidError) as caught:
        wrong()
    assert caught.value.help or "expected" in str(caught.value)


def test_an_unknown_strategy_names_the_nearest():
    with pytest.raises(BindError) as caught:
        A.select(strategy="strct")
    assert "did you mean STRICT?" in str(caught.value)


def test_a_condition_has_no_truth():
    with pytest.raises(TypeError, match="use & for AND"):
        bool(1 < x < 3)
    with pytest.raises(TypeError):
        hash(x)


def test_builders_are_immutable():
    first = event("A")
    first.as_("x")
    first.followed_by(B)
    assert str(first) == "A"
    with pytest.raises(AttributeError):
        first.node = None


@pytest.mark.parametrize("value", [2, 2.5, object()])
def test_what_is_no_duration(value):
    with pytest.raises(BindError, match="is no duration"):
        event("A").followed_by("B").within(value)
    with pytest.raises(BindError, match="is no duration"):
        event("A").followed_by("B", gap=value)


def test_a_branch_of_a_case_has_two_parts() -> None:
    for wrong in (attr("x", "a") > 1, (attr("x", "a") > 1,), [attr("x", "a") > 1, 2]):
        with pytest.raises(BindError, match="a branch of a CASE is a condition and a value"):
            case(wrong)
    assert str(case((attr("x", "a") > 1, 2))) == "CASE WHEN x.a > 1 THEN 2 END"
