"""The Pygments lexer: every query of the list without an error, and nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String

from cepheid.language.highlight import CeqlLexer

QUERIES = [line[2:] for line in Path(__file__).with_name("ceql-queries.txt").read_text(encoding="utf-8").splitlines() if line[0] == "+"]
MORE = [
    "SELECT * WHERE `a``b` /* c ; d */ : C FILTER x.path.to.field > :limit AND prev(x).$time < 5.5 ms -- end",
    "SELECT * WHERE ANY AS Größe FILTER x.a % 2 = 1e-3",
]


@pytest.mark.parametrize("query", QUERIES + MORE)
def test_no_errors_and_nothing_lost(query):
    found = list(CeqlLexer().get_tokens(query))
    assert [text for kind, text in found if kind is Error] == []
    assert "".join(text for _, text in found).strip() == query.strip()


def test_kinds():
    query = "select max x, count(y) where T as filter ; H AS y FILTER x.limit > 'a' within 5 minutes -- it"
    kinds = {text: kind for kind, text in CeqlLexer().get_tokens(query) if text.strip()}
    assert kinds["select"] is Keyword
    assert kinds["max"] is Keyword
    assert kinds["count"] is Name.Function
    assert kinds["filter"] is Name.Variable
    assert kinds["FILTER"] is Keyword
    assert kinds["limit"] is Name.Attribute
    assert kinds["'a'"] is String.Single
    assert kinds["5"] is Number
    assert kinds["minutes"] is Keyword.Type
    assert kinds[">"] is Operator
    assert kinds["-- it"] is Comment.Single


def test_parameters_wherever_they_stand():
    query = "SELECT * WHERE A{:n,:m} ;[<= :g] B :{:n} WITHIN :w UNLESS C WITHIN :e EVENTS FILTER x.k IN :ks LIMIT :`a b`"
    kinds = [(text, kind) for kind, text in CeqlLexer().get_tokens(query) if text.startswith(":")]
    assert [text for text, kind in kinds if kind is Name.Variable.Global] == [":n", ":m", ":g", ":n", ":w", ":e", ":ks", ":`a b`"]
    assert [text for text, kind in kinds if kind is Operator] == [":"]


def test_pygments_finds_it():
    assert isinstance(get_lexer_by_name("ceql"), CeqlLexer)
