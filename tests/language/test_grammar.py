"""The grammar itself: no conflicts, no word that two terminals claim, a method for every rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import GrammarError, LexError
from lark.parsers.lalr_analysis import LALR_Analyzer
from loaded_scripts import script

from cepheid.errors import QuerySyntaxError
from cepheid.language import parse
from cepheid.language.actions import Actions
from cepheid.language.diagnose import END, PHRASES
from cepheid.language.words import KEYWORDS, STRATEGIES, UNITS

MAKER = script("tables")
"""What compiles grammar.lark with lark."""

QUERIES = [(line[0], line[2:]) for line in Path(__file__).with_name("ceql-queries.txt").read_text(encoding="utf-8").splitlines()]

ACCEPTED_ALL_THE_SAME = {
    "SELECT * FROM S WHERE A ; B PARTITION BY [id], [name] WITHIN 5 seconds": "the reference accepts CORE's brackets around keys",
    "SELECT * WHERE A ; B WITHIN 5 seconds": "the reference lets FROM be left out",
    "SELECT * FROM S WHERE A /* note */ ; B": "the reference has comments of this form",
}
"""Lines that the list refuses and the words of the language reference accept: the words win over the list."""

SAMPLES = [
    *KEYWORDS,
    *STRATEGIES,
    *UNITS,
    *("x", "temp", "Order", "nothing", "`a b`", "'text'", "5", "5.5", "1e3", "5s", "5 seconds", "--", "- ", "/", "*"),
    *("$time", "$index", ":limit", ":", ":+", ":{", ": {", ";", "+", "?", "{", "}", "(", ")", "[", "]", ",", ".", "%"),
    *("<", "<=", "<>", ">", ">=", "=", "==", "!=", "max(", "last (", "strict(", "date '", "timestamp'", "not followed by"),
    *("-- a comment", "/* a comment */", " ", "\n", "not(", "any(", "true(", "orders", "android", "asx", "in(", "nextx"),
]


@pytest.fixture(scope="module")
def lark() -> Lark:
    return MAKER.compiled()


def analyse(parser: Lark) -> None:
    # The part of lark's strict mode that needs no further package: shift/reduce conflicts are errors as well.
    LALR_Analyzer(parser.parser.parser_conf, strict=True).compute_lalr()


def test_the_grammar_has_no_conflict(lark):
    analyse(lark)


def test_the_grammar_is_strict(lark):
    """lark's strict mode: no conflicts, and no two terminals of one parser state that match the same text."""
    strict = MAKER.compiled(strict=True)
    assert {rule.origin for rule in strict.rules} == {rule.origin for rule in lark.rules}


def test_a_collision_would_be_seen():
    with pytest.raises(LexError, match="Collision"):
        Lark("start: A | B\nA: /ab?/\nB: /ac?/", parser="lalr", lexer="contextual", strict=True)


def test_a_conflict_would_be_seen():
    ambiguous = Lark('start: start "+" start | "a"', parser="lalr")
    with pytest.raises(GrammarError, match="Shift/Reduce"):
        analyse(ambiguous)


def test_no_word_is_claimed_by_two_terminals(lark):
    """In every state of the parser, at most one of the terminals of the highest priority takes a sample."""
    seen = 0
    for lexer in set(lark.parser.lexer.lexers.values()):
        for sample in SAMPLES:
            matches = {}
            for terminal in lexer.terminals:
                found = lexer.re.match(terminal.pattern.to_regexp(), sample, lexer.g_regex_flags)
                if found:
                    matches[terminal.name] = (terminal.priority, found.end())
            best = [name for name, match in matches.items() if match == max(matches.values(), default=None)]
            assert len(best) <= 1, (sample, matches)
            seen += len(best)
    assert seen > 1000


def test_every_rule_has_a_method(lark):
    helpers = {rule.origin.name for rule in lark.rules if rule.origin.name.startswith("_")}
    names = {rule.alias or rule.options.template_source or rule.origin.name for rule in lark.rules} - helpers
    missing = {str(name) for name in names if not hasattr(Actions, str(name))}
    inlined = {rule.origin.name for rule in lark.rules if rule.options.expand1 and rule.alias is None and len(rule.expansion) == 1}
    assert missing - inlined == set()
    public = {name for name in vars(Actions) | {k: 0 for base in Actions.__mro__ for k in vars(base)} if not name.startswith("_")}
    assert public - {str(name) for name in names} == set(), "a method without a rule is dead code"


def test_every_terminal_has_words(lark):
    spoken = {terminal for _, needed, besides in PHRASES for terminal in f"{needed} {besides}".split()}
    assert {terminal.name for terminal in lark.terminals} - {"SKIPPED"} == spoken - {END}


def test_no_anonymous_terminals(lark):
    assert [terminal.name for terminal in lark.terminals if terminal.name.startswith("__")] == []


@pytest.mark.parametrize(("sign", "query"), QUERIES)
def test_the_list_of_queries(sign, query):
    if sign == "+" or query in ACCEPTED_ALL_THE_SAME:
        parse(query)
    else:
        with pytest.raises(QuerySyntaxError):
            parse(query)


def test_the_exceptions_are_in_the_list():
    assert {query for sign, query in QUERIES if sign == "-"} >= set(ACCEPTED_ALL_THE_SAME)
