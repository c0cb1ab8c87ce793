"""The grammar itself: no conflicts, no word that two terminals claim, a method for every rule."""

from __future__ import annotations

import pickletools
import random
import zlib
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import GrammarError, LexError, UnexpectedInput
from lark.parsers.lalr_analysis import LALR_Analyzer

from cepheid.errors import QuerySyntaxError
from cepheid.language import parse, tables
from cepheid.language.actions import Actions
from cepheid.language.diagnose import END, PHRASES
from cepheid.language.tables import STARTS, read_grammar
from cepheid.language.words import KEYWORDS, STRATEGIES, UNITS

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
    return tables.compiled()


def analyse(parser: Lark) -> None:
    # The part of lark's strict mode that needs no further package: shift/reduce conflicts are errors as well.
    LALR_Analyzer(parser.parser.parser_conf, strict=True).compute_lalr()


def test_the_grammar_has_no_conflict(lark):
    analyse(lark)


def test_the_grammar_is_strict(lark):
    """lark's strict mode: no conflicts, and no two terminals of one parser state that match the same text."""
    strict = Lark(
        read_grammar(), parser="lalr", lexer="contextual", start=list(STARTS), keep_all_tokens=True, maybe_placeholders=False, strict=True
    )
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


@pytest.fixture(scope="module")
def parsers():
    return [make(transformer=Actions(), postlex=None) for make in (tables.parser_of, tables.compiled)]


def test_the_tables_are_of_this_grammar():
    """Else run `make tables`; it runs all the same, half a second later."""
    assert tables.stored() is not None


def outcome(parser, query):
    try:
        return parser.parse(query, start="query_start")
    except UnexpectedInput as error:
        return type(error).__name__, error.pos_in_stream, sorted(getattr(error, "accepts", None) or getattr(error, "allowed", None) or ())


def test_the_tables_read_as_the_grammar_does(parsers, seed):
    draws = random.Random(seed)
    texts = [query for _, query in QUERIES]
    for text in list(texts):
        place = draws.randrange(len(text))
        texts.append(text[:place] + draws.choice(SAMPLES) + text[place:])
    for text in texts:
        assert outcome(parsers[0], text) == outcome(parsers[1], text), text


def test_tables_of_another_grammar_or_library_are_not_read(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(tables, "identity", lambda: "lark 0.9, grammar 00")
        assert tables.stored() is None
    with monkeypatch.context() as patch:
        patch.setattr(tables, "FILE", "missing.tables")
        assert tables.stored() is None
        query = "SELECT * WHERE A ; B"
        assert outcome(tables.parser_of(Actions(), None), query) == outcome(tables.compiled(transformer=Actions()), query)


def test_the_tables_are_plain_values():
    """No object of the library or of ours, so that reading them runs nothing."""
    content = Path(tables.__file__).with_name(tables.FILE).read_bytes().split(b"\n", 1)[1]
    assert not {step.name for step, _, _ in pickletools.genops(zlib.decompress(content))} & {
        "GLOBAL",
        "STACK_GLOBAL",
        "REDUCE",
        "BUILD",
        "NEWOBJ",
    }
