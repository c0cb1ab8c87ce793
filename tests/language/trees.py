"""Hypothesis strategies: any tree of the language."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from cepheid.language import (
    syntax,
    to_text,
)
from cepheid.language.words import FORBIDDEN, KEYWORDS, STRATEGIES, UNITS

quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

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
        st.builds(lambda name, argument: syntax.Call(name, (argument,), distinct=True), functions, inner),
        st.builds(syntax.Case, st.lists(st.builds(syntax.When, inner, inner), min_size=1, max_size=2).map(tuple), st.none() | inner),
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
        having=draw(st.none() | expressions),
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
