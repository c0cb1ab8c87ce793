"""Text to tree and back, for any tree: parse(to_text(tree)) == tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import (
    expressions,
    patterns,
    quick,
    targets,
    whole_queries,
    windows,
)

from cepheid.errors import LimitError
from cepheid.language import (
    event,
    parse,
    parse_condition,
    parse_pattern,
    parse_target,
    parse_window,
    syntax,
    to_text,
)
from cepheid.language.actions import name_of
from cepheid.language.limits import MAX_NESTING

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
    """The strategies speak of every class of the syntax tree."""

    def subclasses(kind):
        return {kind, *(found for child in kind.__subclasses__() for found in subclasses(child))}

    bases = {"Node", "Pattern", "Chain", "Expression"}
    source = Path(__file__).with_name("trees.py").read_text(encoding="utf-8")
    names = {kind.__name__ for kind in subclasses(syntax.Node) if kind.__module__ == syntax.__name__} - bases
    missing = {name for name in names if f"syntax.{name}" not in source}
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
        ("A ;[<= 5min] B FILTER min.v < 5 MIN WITHIN 1 min", "A ;[<= 5m] B FILTER min.v < 5m WITHIN 1m"),
        ("A FILTER NOT(x.a<>1 AND(x.b is not null OR x.c))", "A FILTER NOT (x.a != 1 AND (x.b IS NOT NULL OR x.c))"),
        ("A FILTER - -x.a - (-1 - 2) > (3+4)*5", "A FILTER - -x.a - (-1 - 2) > (3 + 4) * 5"),
        ("`not` AS `any`; `T`", "`not` AS any ; T"),
        ("A FILTER `true`.b AND `date`.c", "A FILTER `true`.b AND date.c"),
        ("A FILTER PREV(x).a.b < x.$TIME", "A FILTER prev(x).a.b < x.$time"),
        ("A FILTER x.a>lag( x.b.c , 2 )AND x[a > lag(a,:n)]", "A FILTER x.a > lag(x.b.c, 2) AND x[a > lag(a, :n)]"),
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
