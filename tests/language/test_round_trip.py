"""Text to tree and back, for any tree: parse(to_text(tree)) == tree. And the builder makes what the parser makes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.errors import BindError, CepheidError, LimitError
from cepheid.language import (
    any_event,
    attr,
    call,
    definition,
    event,
    index_of,
    literal,
    local,
    param,
    parse,
    parse_condition,
    parse_pattern,
    parse_target,
    parse_window,
    previous,
    syntax,
    time_of,
    to_text,
    word,
)
from cepheid.language.actions import name_of
from cepheid.language.limits import MAX_NESTING
from cepheid.language.words import FORBIDDEN, KEYWORDS, STRATEGIES, UNITS

quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

# ------------------------------------------------------------------------------------------------------------------ strategies

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(lambda text: not FORBIDDEN.search(text))
words = [
    *KEYWORDS,
    *STRATEGIES,
    *UNITS,
    "prev",
    "time",
    "index",
    "x",
    "T",
    "temp",
    "\u017ftrict",
    "naïve",
    "not",
    "any",
    "a b",
    "it's",
    "`",
    "5s",
    "a-b",
    "--",
    "/*",
]
names = st.one_of(st.sampled_from(words), st.sampled_from(words).map(str.lower), texts.filter(bool))
functions = st.sampled_from(["abs", "max", "count", "prev", "last", "any", "strict", "true", "in", "date", "Länge"])
placeholders = st.builds(syntax.Parameter, names)
counts = st.integers(0, 2**63 - 1) | placeholders
numbers = st.one_of(
    st.integers(0, 10**20).map(str),
    st.decimals(0, 1000, places=3).map(str),
    st.floats(0, allow_infinity=False, allow_nan=False).map(lambda value: f"{value!r}" if "e" in repr(value) else f"{value!r}e0"),
)
durations = placeholders | st.builds(
    syntax.Duration, st.decimals(-(10**6), 10**6, places=4), st.one_of(st.none(), st.sampled_from(syntax.Unit))
)


@st.composite
def intervals(draw):
    lower, upper = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    return syntax.Interval(
        draw(durations) if lower else None,
        lower and draw(st.booleans()),
        draw(durations) if upper else None,
        upper and draw(st.booleans()),
    )


gaps = st.none() | intervals()
windows = st.one_of(intervals(), st.builds(syntax.EventCount, counts))


def several(elements, *, most=3):
    return st.lists(elements, min_size=2, max_size=most).map(tuple)


paths = st.lists(names, min_size=1, max_size=3).map(tuple)
leaves = st.one_of(
    st.builds(syntax.Number, numbers),
    st.builds(syntax.Text, texts),
    st.builds(syntax.Constant, st.sampled_from([True, False, None])),
    st.builds(syntax.Instant, st.sampled_from(["DATE", "TIMESTAMP"]), texts),
    st.builds(syntax.DurationValue, st.builds(syntax.Duration, st.decimals(0, 10**6, places=4), st.sampled_from(syntax.Unit))),
    st.builds(syntax.Parameter, names),
    st.builds(syntax.Word, names),
    st.builds(syntax.Attribute, names, paths, st.booleans()),
    st.builds(syntax.System, names, st.sampled_from(["time", "index"]), st.booleans()),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(syntax.Local, names, inner),
        st.builds(syntax.Call, functions, st.lists(inner, max_size=2).map(tuple)),
        st.builds(lambda name: syntax.Call(name, (), star=True), functions),
        st.builds(syntax.Negative, inner),
        st.builds(syntax.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        st.builds(syntax.Compare, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(syntax.IsNull, inner, st.booleans()),
        st.builds(syntax.In, inner, placeholders | st.lists(inner, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(syntax.Between, inner, inner, inner, st.booleans()),
        st.builds(syntax.Like, inner, texts, st.booleans()),
        st.builds(syntax.Not, inner),
        st.builds(syntax.BooleanAnd, several(inner)),
        st.builds(syntax.BooleanOr, several(inner)),
    ),
    max_leaves=12,
)


@st.composite
def sequences(draw, inner):
    items = draw(several(inner, most=4))
    link = st.one_of(
        st.builds(syntax.Link, st.sampled_from([";", ":"]), gaps),
        st.builds(lambda without: syntax.Link(";", None, without), inner),
        st.just(syntax.Link("THEN")),
    )
    return syntax.Sequence(items, tuple(draw(link) for _ in items[1:]))


@st.composite
def iterations(draw, inner):
    if draw(st.booleans()):
        return syntax.Iterate(draw(inner), draw(st.booleans()), draw(gaps))
    return syntax.Iterate(draw(inner), draw(st.booleans()), draw(gaps), draw(counts), draw(st.none() | counts), braces=True)


patterns = st.recursive(
    st.builds(syntax.Type, st.none() | names),
    lambda inner: st.one_of(
        sequences(inner),
        iterations(inner),
        st.builds(syntax.Named, inner, names),
        st.builds(syntax.Or, several(inner)),
        st.builds(syntax.And, several(inner)),
        st.builds(syntax.All, several(inner)),
        st.builds(syntax.Optional, inner),
        st.builds(syntax.Project, st.lists(names, max_size=3).map(tuple), inner),
        st.builds(syntax.Select, st.sampled_from([syntax.Strategy[name] for name in ("STRICT", "NXT", "LAST", "MAX")]), inner),
        st.builds(syntax.Filter, inner, expressions),
        st.builds(syntax.Within, inner, windows),
        st.builds(syntax.Unless, inner, inner),
        st.builds(syntax.Absence, inner, inner, durations),
    ),
    max_leaves=8,
)
targets = st.builds(syntax.Target, expressions, st.none() | names)


@st.composite
def queries(draw, definitions=()):
    keys = draw(st.lists(names, max_size=2).map(tuple))
    selected = draw(st.none() | st.lists(targets, min_size=1, max_size=3).map(tuple))
    # MAX (x.a) * 2 is the function max, and so with every strategy: such a tree has no text.
    open_first = selected is not None and to_text(selected[0]).startswith("(")
    return syntax.Query(
        draw(patterns),
        strategy=syntax.Strategy.ALL if open_first else draw(st.sampled_from(syntax.Strategy)),
        targets=selected,
        streams=draw(st.lists(names, max_size=2).map(tuple)),
        partition_by=keys,
        partition_within=draw(st.none() | windows) if keys else None,
        consume=draw(st.sampled_from(syntax.Consumption)),
        model=draw(st.none() | st.sampled_from(syntax.TimeModel)),
        limit=draw(st.none() | counts),
        definitions=definitions,
    )


@st.composite
def whole_queries(draw):
    inner = draw(queries())
    defined = syntax.Definition(draw(names), draw(paths), inner)
    nested = syntax.Definition(draw(names), draw(paths), draw(queries(definitions=(defined,))))
    return draw(queries(definitions=draw(st.sampled_from([(), (defined,), (defined, nested)]))))


# ------------------------------------------------------------------------------------------------------------------- round trips


@quick
@given(expressions)
def test_expressions(tree):
    assert parse_condition(to_text(tree)) == tree


@quick
@given(patterns)
def test_patterns(tree):
    assert parse_pattern(to_text(tree)) == tree


@settings(quick, max_examples=40)
@given(whole_queries())
def test_queries(tree):
    text = to_text(tree)
    assert parse(text) == tree
    assert to_text(parse(text)) == text


WORDS = {"consume": "CONSUME BY ", "model": "TIME MODEL ", "limit": "LIMIT "}
"""What the text of a clause that is no name begins with."""


@settings(quick, max_examples=40)
@given(whole_queries())
def test_places(tree):
    """Each name of a parsed query stands where its node says; a clause begins with its keyword."""
    text = to_text(tree)
    for node in nodes_of(parse(text)):
        assert node.span != syntax.NO_SPAN
        for name, places in node.places:
            value = getattr(node, name)
            written = [text[place.start : place.end] for place in places]
            if name == "targets":
                assert written == ["*"] if value is None else "".join(written).startswith(text[value[0].span.start : value[0].span.end])
            elif name == "strategy":
                assert written == [value.value]
            elif name in WORDS:
                assert written[0].startswith(WORDS[name])
            else:
                names = value if isinstance(value, tuple) else (value,)
                assert [name_of(word) for word in written] == list(names)


@settings(quick, max_examples=20)
@given(whole_queries(), st.integers(0, 4))
def test_queries_on_many_lines(tree, indent):
    assert parse(to_text(tree, indent=indent)) == tree


@quick
@given(targets)
def test_targets(tree):
    assert parse_target(to_text(tree)) == tree


@quick
@given(windows)
def test_windows(tree):
    written = to_text(tree)
    assert parse_window(written) == tree


def test_every_node_has_a_text():
    """The strategies above speak of every class of the syntax tree."""

    def subclasses(kind):
        return {kind, *(found for child in kind.__subclasses__() for found in subclasses(child))}

    bases = {syntax.Node, syntax.Pattern, syntax.Chain, syntax.Expression}
    source = Path(__file__).read_text(encoding="utf-8")
    missing = {kind.__name__ for kind in subclasses(syntax.Node) - bases if f"syntax.{kind.__name__}" not in source}
    assert missing == set()


QUERIES = [line[2:] for line in Path(__file__).with_name("ceql-queries.txt").read_text(encoding="utf-8").splitlines() if line[0] == "+"]


@pytest.mark.parametrize("query", QUERIES)
def test_the_list_of_queries(query):
    tree = parse(query)
    assert parse(to_text(tree)) == tree
    assert parse(to_text(tree, indent=2)) == tree


def nodes_of(node):
    yield node
    for child in node.children():
        yield from nodes_of(child)


@pytest.mark.parametrize("query", QUERIES)
def test_spans_lie_inside_each_other(query):
    """A node's place holds those of its children, and its text parses to the node where it is a pattern or expression."""
    for node in nodes_of(parse(query)):
        assert 0 <= node.span.start < node.span.end <= len(query)
        for child in node.children():
            assert node.span.start <= child.span.start
            assert child.span.end <= node.span.end
        written = query[node.span.start : node.span.end]
        if isinstance(node, syntax.Pattern):
            assert parse_pattern(written) == node
        if isinstance(node, syntax.Expression):
            assert parse_condition(written) == node


# ---------------------------------------------------------------------------------------------------------------------- printing


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("((A))", "A"),
        ("((A ; B) : C)", "A ; B : C"),
        ("A ; ((B : (C? ; A)))", "A ; B : C? ; A"),
        ("A ; (B ; NOT (C ; A) ; C) ; ((A))+", "A ; B ; NOT (C ; A) ; C ; A+"),
        ("(A ; (B ; C?) AS x) : B", "A ; (B ; C?) AS x : B"),
        ("(A ; B) THEN (B ; C)", "A ; B THEN (B ; C)"),
        ("A ; (B THEN C)", "A ; (B THEN C)"),
        ("A OR (B OR (C AND (A AND (B ALL (C ALL A)))))", "A OR B OR C AND A AND B ALL C ALL A"),
        ("A AS x ; (A AS x ; (B FILTER x.v = 1))", "A AS x ; (A AS x ; (B FILTER x.v = 1))"),
        ("A AS x ; (A AS y ; (B FILTER x.v = 1 AND y.v = 1))", "A AS x ; A AS y ; (B FILTER x.v = 1 AND y.v = 1)"),
        ("A AS x+", "(A AS x)+"),
        ("(A FILTER x.a == 1) UNLESS (B OR C)", "A FILTER x.a = 1 UNLESS B OR C"),
        ("A;B:C then D", "A ; B : C THEN D"),
        ("next(A+[>=1 second,<=3 second])", "NXT(A+[1s, 3s])"),
        ("A +[1s,1s]", "A+[= 1s]"),
        ("A:{ 2 , }", "A:{2,}"),
        ("A{2,2}", "A{2}"),
        ("A WITHIN [<=5 minutes]", "A WITHIN 5m"),
        ("A FILTER NOT(x.a<>1 AND(x.b is not null OR x.c))", "A FILTER NOT (x.a != 1 AND (x.b IS NOT NULL OR x.c))"),
        ("A FILTER - -x.a - (-1 - 2) > (3+4)*5", "A FILTER - -x.a - (-1 - 2) > (3 + 4) * 5"),
        ("`not` AS `any`; `T`", "`not` AS any ; T"),
        ("A FILTER `true`.b AND `date`.c", "A FILTER `true`.b AND date.c"),
        ("A FILTER PREV(x).a.b < x.$TIME", "A FILTER prev(x).a.b < x.$time"),
        ("A FILTER x.a > :`my limit`", "A FILTER x.a > :`my limit`"),
        ("A{ :n , :n } WITHIN[<=:w]WITHIN :n events", "A{:n} WITHIN :w WITHIN :n EVENTS"),
        ("A+[:`g`,:g]", "A+[= :g]"),
        ("A FILTER x.a in:ks OR x.a not in :ks", "A FILTER x.a IN :ks OR x.a NOT IN :ks"),
    ],
)
def test_canonical_text(written, canonical):
    assert to_text(parse_pattern(written)) == canonical


def test_many_lines():
    query = (
        "EVENT Hot(s) AS (SELECT x.s AS s WHERE T AS x FILTER x.t > 40) SELECT MAX x, count(y) AS n FROM Hot, S "
        "WHERE (Hot AS x ; H+ AS y) FILTER x.s = y.s WITHIN 5s PARTITION BY k CONSUME BY ANY TIME MODEL ODE LIMIT 3"
    )
    assert to_text(parse(query), indent=2) == (
        "EVENT Hot(s) AS (\n"
        "  SELECT x.s AS s\n"
        "  WHERE T AS x\n"
        "    FILTER x.t > 40)\n"
        "SELECT MAX x, count(y) AS n\n"
        "FROM Hot, S\n"
        "WHERE Hot AS x ; H+ AS y\n"
        "  FILTER x.s = y.s\n"
        "  WITHIN 5s\n"
        "PARTITION BY k\n"
        "CONSUME BY ANY\n"
        "TIME MODEL ODE\n"
        "LIMIT 3"
    )


def test_a_tree_too_deep_for_a_text():
    pattern = event("A")
    for _ in range(MAX_NESTING * 50):
        pattern = pattern.repeat()
    with pytest.raises(LimitError):
        str(pattern)
    with pytest.raises(LimitError):
        pattern.select()


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
        lambda: A.followed_by(B, gap="5s", without=C),
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
