"""Whatever the text, a tree or an error, soon: no crash, no hang, no RecursionError, and no tree that later code chokes on."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slowness import within

from cepheid.errors import CepheidError, LimitError, QuerySyntaxError
from cepheid.language import parse, parse_condition, parse_pattern, read_query, to_text
from cepheid.language.limits import MAX_DIGITS, MAX_NESTING, MAX_NODES, MAX_SYMBOLS, MAX_TEXT
from cepheid.language.words import KEYWORDS

SECONDS = 2.0
START = "SELECT * FROM S WHERE "
FILTER = START + "A FILTER "


def fill(text: str) -> str:
    """A text of just the longest length that is looked at, made by repeating."""
    return (text * MAX_TEXT)[:MAX_TEXT]


def behind(start: str, text: str) -> str:
    return (start + text * ((MAX_TEXT - len(start)) // len(text)))[:MAX_TEXT]


LIMITED = {
    "open parentheses": behind(START, "("),
    "open brackets of locals": behind(FILTER, "x["),
    "NOT NOT NOT": behind(FILTER, "NOT "),
    "minus signs": behind(FILTER, "- "),
    "calls": behind(FILTER, "abs("),
    "definitions": fill("EVENT a(b) AS ("),
    "strategies": behind(START, "MAX("),
    "projections": behind(START, "PROJECT x ("),
    "a chain of `;`": START + " ; ".join("A" * 100_000),
    "a chain of `:`": START + " : ".join("A" * 100_000),
    "a chain of OR": START + " OR ".join("A" * 100_000),
    "a chain of gaps": START + " ;[<= 5s] ".join("A" * 50_000),
    "a row of `+`": START + "A" + "+" * 100_000,
    "a row of `?`": START + "A" + "?" * 100_000,
    "a row of AS": START + "A" + " AS x" * 100_000,
    "a row of FILTER": START + "A" + " FILTER x.a" * 50_000,
    "a row of UNLESS": START + "A" + " UNLESS B" * 50_000,
    "a sum": FILTER + "+".join("1" * 100_000),
    "a conjunction": FILTER + " AND ".join("x" * 100_000),
    "an IN list": FILTER + "x.a IN (" + ",".join("1" * 400_000),
    "a path": FILTER + "x" + ".a" * 400_000,
    "targets": "SELECT " + ",".join("a" * 400_000),
    "streams": "SELECT * FROM " + ",".join("a" * 400_000),
    "5,000 digits": FILTER + "x.a > " + "9" * 5000,
    "a million digits": FILTER + "x.a > " + "1" * 900_000,
    "5,000 decimals": START + "A WITHIN 0." + "1" * 5000 + "s",
    "a long count": START + "A LIMIT " + "1" * 5000,
    "a count beyond 64 bits": START + "A WITHIN 9223372036854775808 EVENTS",
    "a huge exponent": FILTER + "x.a > 1e999999999",
    "a longer text": " " * (MAX_TEXT + 1),
}

WRONG = {
    "nothing": "",
    "a million spaces": " " * MAX_TEXT,
    "only parentheses": fill("("),
    "only closing": fill(")"),
    "one word": fill("S"),
    "words": fill("SELECT "),
    "open braces": behind(START + "A", "{"),
    "quotes": FILTER + "x.a = " + "'" * 900_001,
    "doubled quotes": FILTER + "x.a = '" + "''" * 450_000,
    "backticks": "SELECT " + "`" * 900_001,
    "line comments": "SELECT " + "--\n" * 300_000,
    "comments": "SELECT a " + "/**/" * 200_000 + " FROM",
    "an open comment": "SELECT /*" + "*" * 900_000,
    "comment signs": "SELECT /*" + "/*" * 450_000,
    "comments between words": behind("SELECT ", "a /**/ "),
    "numbers": behind(FILTER + "x.a > ", "5 "),
    "spaces before no unit": FILTER + "x.a > 5" + " " * 900_000 + "q",
    "spaces before no parenthesis": FILTER + "abs" + " " * 900_000 + "q",
    "NOT far from FOLLOWED": START + "A NOT" + " " * 900_000 + "FOLLOWED",
    "NUL": START + "A\0",
    "NUL in a text": FILTER + "x.a = '\0'",
    "NUL in a name": START + "`\0`",
    "control characters": START + "A \x1b[31m",
    "a lone surrogate": START + "\ud800",
    "a lone surrogate in a text": FILTER + "x.a = '\udfff'",
    "a byte order mark inside": START + "A \ufeff B",
    "digits of another script": FILTER + "x.a > \u0663",
    "emoji": START + "\U0001f4a5",
    "right to left": START + "\u202eA",
}


def outcome(text: str) -> CepheidError:
    with within(SECONDS):
        with pytest.raises(CepheidError) as caught:
            parse(text)
        message = str(caught.value)
    assert len(message) < 1500
    message.encode("utf-8")
    return caught.value


@pytest.mark.parametrize("name", LIMITED)
def test_beyond_a_limit(name):
    assert isinstance(outcome(LIMITED[name]), LimitError)


@pytest.mark.parametrize("name", WRONG)
def test_no_query(name):
    assert isinstance(outcome(WRONG[name]), QuerySyntaxError)


NESTED = {
    "parentheses": (parse_pattern, "(", "A", ")"),
    "strategies": (parse_pattern, "MAX(", "A", ")"),
    "sequences to the right": (parse_pattern, "A ; (", "A", ")"),
    "sequences to the left": (parse_pattern, "(", "A", ") ; A"),
    "rows of signs": (parse_pattern, "", "A", "+"),
    "rows of clauses": (parse_pattern, "", "A", " FILTER x"),
    "negation": (parse_condition, "NOT ", "x", ""),
    "signs": (parse_condition, "- ", "x", ""),
    "parentheses of values": (parse_condition, "(", "x", ")"),
    "locals": (parse_condition, "x[", "y", "]"),
    "calls": (parse_condition, "f(", "x", ")"),
    "sums to the left": (parse_condition, "", "x", " + x"),
    "sums to the right": (parse_condition, "x + (", "x", ")"),
}


@pytest.mark.parametrize("name", NESTED)
def test_the_deepest_tree_is_shallow_enough_for_recursive_code(name):
    """Just below the limit everything recursive works, from inside a deep stack; at the limit there is an error."""
    read, before, inner, after = NESTED[name]

    def nested(count: int) -> str:
        return before * count + inner + after * count

    with pytest.raises(LimitError, match=str(MAX_NESTING)):
        read(nested(MAX_NESTING + 1))
    # Parentheses leave no node, everything else at most two for each turn (a sequence and its item).
    tree = read(nested(MAX_NESTING - 2))

    def use(depth: int) -> None:
        if depth:
            use(depth - 1)
            return
        assert read(to_text(tree)) == tree
        assert hash(tree) == hash(copy.deepcopy(tree))
        assert pickle.loads(pickle.dumps(tree)) == tree
        assert repr(tree)

    use(100)


def test_long_chains_within_the_limits():
    items = MAX_NODES // 2 - 10
    tree = parse_pattern(" ; ".join(["A"] * items))
    assert len(tree.items) == items
    assert parse_pattern(to_text(tree)) == tree


def test_the_limits_are_named():
    with pytest.raises(LimitError, match=f"{MAX_NODES:,} nodes"):
        parse_pattern(" ; ".join("A" * MAX_NODES))
    with pytest.raises(LimitError, match=f"{MAX_SYMBOLS:,} words"):
        parse_pattern(" ; ".join("A" * MAX_SYMBOLS))
    with pytest.raises(LimitError, match=f"limit is {MAX_DIGITS}"):
        parse_condition("1" * (MAX_DIGITS + 1))
    assert parse_condition("1" * MAX_DIGITS)


pieces = st.one_of(
    st.sampled_from(
        [
            *KEYWORDS,
            *"()[]{};:+?,.*=<>-/%'`",
            "A",
            "x",
            "x.a",
            "5s",
            "5",
            "'t'",
            ":p",
            "SELECT * WHERE A",
            "NOT FOLLOWED BY",
            "--",
            "/*",
            "*/",
            "\n",
        ]
    ),
    st.text(max_size=3),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(pieces, max_size=30).map(" ".join))
def test_any_words(text):
    for read in (parse, parse_pattern, parse_condition):
        try:
            tree = read(text)
        except CepheidError as error:
            assert str(error)  # noqa: PT017 - either outcome is right
        else:
            assert read(to_text(tree)) == tree


QUERY = "SELECT MAX x, count(y) AS n FROM a, b WHERE (T AS x ;[<= 5s] H+ AS y) FILTER x[t > 1.5 AND s = 'it''s'] UNLESS D WITHIN 5 m PARTITION BY `k` LIMIT 3"


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(QUERY)), st.integers(0, 5), pieces)
def test_a_damaged_query(position, removed, inserted):
    try:
        tree = parse(QUERY[:position] + inserted + QUERY[position + removed :])
    except CepheidError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
    else:
        assert parse(to_text(tree)) == tree


# -------------------------------------------------------------------------------------------------------------------------- files


def test_read_query(tmp_path):
    path = tmp_path / "query.ceql"
    path.write_bytes(b"\xef\xbb\xbfSELECT *\r\nWHERE `\xc3\xa4`\r\n")
    text = read_query(path)
    assert text == "SELECT *\nWHERE `ä`\n"
    assert parse(text) == parse("SELECT * WHERE ä")
    assert read_query(str(path)) == text


def test_a_file_that_is_not_utf8(tmp_path):
    path = tmp_path / "query.ceql"
    path.write_bytes(b"SELECT * WHERE `\xe4`")
    with pytest.raises(QuerySyntaxError, match="byte 0xe4 at offset 16"):
        read_query(path)


def test_offsets_count_the_byte_order_mark(tmp_path):
    path = tmp_path / "query.ceql"
    path.write_bytes(b"\xef\xbb\xbfSELECT \xff")
    with pytest.raises(QuerySyntaxError, match="byte 0xff at offset 10"):
        read_query(path)


@pytest.mark.parametrize("unit", ["a", "ä", "\U0001f4a5"])
def test_a_file_that_is_too_long(tmp_path, unit):
    path = tmp_path / "query.ceql"
    path.write_text(unit * (MAX_TEXT + 5), encoding="utf-8")
    with pytest.raises(LimitError, match="MAX_TEXT"):
        read_query(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_query(tmp_path / "none.ceql")


# ---------------------------------------------------------------------------------------------------------------------- imports


def test_importing_the_language_loads_neither_parser_nor_highlighter():
    code = "import sys, cepheid.language; print(*sorted({'lark', 'pygments'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_a_usual_query_parses_quickly():
    parse(QUERY)
    with within(20 * 0.05):  # ten times what it takes on an idle machine
        for _ in range(20):
            parse(QUERY)


def test_groups_with_conditions_are_joined_in_linear_time():
    text = " ; ".join(f"(A AS x{number} ; (B FILTER x{number}.v = 1))" for number in range(900))
    with within(3):
        assert len(parse_pattern(text).items) == 1800
