"""Text of MATCH_RECOGNIZE to its syntax tree, as parser.py does it for queries: the same driver, with the tables of match_recognize.lark."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, cast

from cepheid.errors import CepheidError, NotSupportedError, Span
from cepheid.language import limits
from cepheid.language.diagnose import UNCLOSED, Wording, check_characters, syntax_error
from cepheid.language.driver import END, WORD, Driver, UnexpectedError
from cepheid.language.parser import Watch
from cepheid.language.rows_actions import RowActions
from cepheid.language.tables import ROWS, stored

if TYPE_CHECKING:
    from cepheid.language.diagnose import Phrases
    from cepheid.language.hints import Failure
    from cepheid.language.rows_syntax import RowClause, RowPattern
    from cepheid.language.syntax import Expression, Node

NEAR = 200
"""Characters before a failure that are looked at."""

VALUE = "IDENTIFIER QUOTED NUMBER STRING DURATION INTERVAL TRUE FALSE NULL DATED PARAMETER MINUS LPAR NOT CALL CASE CAST ARRAY RUNNING FINAL DISTINCT"

PHRASES: Phrases = (
    (
        "MATCH_RECOGNIZE or one of its parts (PATTERN, DEFINE, ..)",
        "MATCH_RECOGNIZE PATTERN",
        "PARTITION ORDER MEASURES ONE ALL AFTER WITHIN SUBSET DEFINE",
    ),
    ("a part of the clause (PATTERN, DEFINE, ..)", "PATTERN DEFINE", "PARTITION ORDER MEASURES ONE ALL AFTER WITHIN SUBSET"),
    ("a pattern", "VARIABLE CIRCUMFLEX EXCLUDED", "QUOTED LPAR PERMUTE DOLLAR"),
    ("`*` or a value", "STAR CALL", VALUE),
    ("a value", "CALL NUMBER", VALUE),
    ("a navigation or an aggregate, as in LAST(A.x)", "CALL", ""),
    ("a quantifier (`*`, `+`, `?`, `{n,m}`)", "STAR LBRACE", "PLUS QMARK"),
    ("`|`", "VBAR", ""),
    ("a duration", "DURATION NUMBER", "INTERVAL PARAMETER"),
    ("a comparison, IN, BETWEEN, LIKE, IS", "COMPARE IS", "EQUALS IN BETWEEN LIKE NOT"),
    ("a comparison", "COMPARE", "EQUALS"),
    ("`=`", "EQUALS", ""),
    ("an arithmetic sign", "MINUS PLUS STAR", "SLASH PERCENT CONCAT"),
    ("an arithmetic sign", "MINUS PLUS", "CONCAT"),
    ("FIRST or LAST", "FIRST LAST", ""),
    ("FIRST, LAST, NEXT ROW or a variable", "SKIP_FIRST NEXT", "SKIP_LAST VARIABLE QUOTED"),
    ("PAST LAST ROW or TO", "PAST TO", ""),
    ("SHOW, OMIT or WITH", "SHOW OMIT", "WITH"),
    ("ASC, DESC or NULLS", "ASC DESC", "NULLS"),
    ("a variable", "VARIABLE", "QUOTED"),
    ("a name", "IDENTIFIER", "QUOTED"),
    ("a text in single quotes", "STRING", ""),
    ("a whole number", "NUMBER", "PARAMETER"),
    ("WHEN, ELSE or END", "WHEN ELSE", "END"),
    ("a list in parentheses or as a parameter (`:name`)", "LPAR PARAMETER", ""),
    *(
        (f"`{sign}`", name, "")
        for sign, name in (("(", "LPAR"), (")", "RPAR"), ("[", "LSQB"), ("]", "RSQB"), ("{", "LBRACE"), ("}", "RBRACE"))
    ),
    *((f"`{sign}`", name, "") for sign, name in ((".", "DOT"), (",", "COMMA"), ("*", "STAR"), ("?", "QMARK"), ("-}", "EXCLUDED_END"))),
    *(
        (word, word, "")
        for word in ("AND", "OR", "AS", "BY", "PER", "MATCH", "MATCHES", "ROW", "ROWS", "EMPTY", "UNMATCHED", "SKIP", "NEXT", "LAST")
    ),
    *(
        (word, word, "")
        for word in ("NOT", "NULL", "NULLS", "IN", "BETWEEN", "LIKE", "WHEN", "THEN", "END", "FILTER", "WHERE", "PARTITION", "ORDER")
    ),
    *((word, word, "") for word in ("MEASURES", "ONE", "ALL", "AFTER", "PATTERN", "WITHIN", "SUBSET", "DEFINE", "TO")),
    ("the end of the clause", END, ""),
)


def _hints(failure: Failure) -> tuple[str, ...]:
    from cepheid.language.rows_hints import hint

    return hint(failure)


WORDING = Wording(
    "the clause",
    "the shortest clause is PATTERN (A) with ALL ROWS PER MATCH, or with MEASURES",
    PHRASES,
    (
        *UNCLOSED,
        (
            '"',
            re.compile(r'"(?:[^"]|"")++"'),
            "a name in double quotes is empty or not closed",
            "names in double quotes end with one, and one inside is doubled; a text stands in single quotes",
        ),
    ),
    _hints,
)


def parse_rows(text: str) -> RowClause:
    """Parse a clause, `MATCH_RECOGNIZE ( .. )` or what stands in its parentheses; its parts may come in any order.

    Returns:
        The syntax tree; the spans are code points of `text`.

    Raises:
        QuerySyntaxError: the text is no such clause; says where, and what was expected.
        LimitError: the text or its tree exceeds a limit of `cepheid.language.limits`.

    Takes time linear in the length of the text.
    """
    return cast("RowClause", _parse(text, "clause_start"))


def parse_row_pattern(text: str) -> RowPattern:
    """Parse what stands in the parentheses of PATTERN; otherwise as `parse_rows`."""
    return cast("RowPattern", _parse(text, "row_pattern_start"))


def parse_row_expression(text: str) -> Expression:
    """Parse a condition of DEFINE or a measure; otherwise as `parse_rows`."""
    return cast("Expression", _parse(text, "expression_start"))


def _parse(text: str, start: str) -> Node:
    if len(text) > limits.MAX_TEXT:
        raise limits.text_limit(len(text))
    try:
        check_characters(text)
        tree: Node = _driver().parse(text, start, Watch().see)
        limits.check_size(tree)
    except CepheidError as error:
        raise error.located(text) from None
    except UnexpectedError as error:
        raise _elsewhere(text, error.position) or syntax_error(text, error, WORDING) from None
    return tree


def _elsewhere(text: str, position: int) -> NotSupportedError | None:
    """The error for what SQL has and a clause has not, where the text fails at it or behind its first word."""
    before = text[max(0, position - NEAR) : position]
    query = re.search(r"\(\s*((?:SELECT|WITH)\b[^()]*)\Z", before, re.IGNORECASE) or re.search(r"\bEXISTS\s*()\Z", before, re.IGNORECASE)
    over = re.compile(r"OVER\b", re.IGNORECASE).match(text, position)
    if query is None and over is None:
        return None
    what, way_out = (
        ("subqueries are", "join before the clause, and use the column")
        if query is not None
        else ("window functions are", "PREV, NEXT, FIRST, LAST and aggregates read other rows")
    )
    start = position if query is None else position - len(query[1])
    word = WORD.match(text, start)
    return NotSupportedError(
        f"{what} not supported in a clause", help=way_out, text=text, span=Span(start, start + len(word[0]) if word else start + 1)
    )


@functools.cache
def _driver() -> Driver:
    return Driver(stored(ROWS), RowActions())
