"""The exact text of every syntax error: tests/errors/syntax.toml holds the queries and their messages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from cepheid.errors import LimitError, QuerySyntaxError
from cepheid.language import parse
from cepheid.language.diagnose import FOUND, PHRASES, UNCLOSED
from cepheid.language.hints import GENERAL_HINTS, HINTS

CASES = tomllib.loads((Path(__file__).parents[1] / "errors" / "syntax.toml").read_text(encoding="utf-8"))["error"]
MESSAGES = "\n".join(case["message"] for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_message(case):
    with pytest.raises(LimitError if case.get("limit") else QuerySyntaxError) as caught:
        parse(case["query"])
    assert str(caught.value) == case["message"]
    assert caught.value.span is not None


def test_names_are_unique():
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("hint", [*HINTS, *GENERAL_HINTS], ids=lambda hint: hint.help[:40])
def test_every_hint_has_a_case(hint):
    # What a place has matched stands in a help for its `<name>`.
    parts = map(re.escape, re.split(r"<\w+>", hint.help))
    assert re.search("help: " + ".+?".join(parts), MESSAGES)


@pytest.mark.parametrize("phrase", sorted({phrase for phrase, _, _ in PHRASES}))
def test_every_phrase_has_a_case(phrase):
    assert phrase in MESSAGES


@pytest.mark.parametrize("fact", [fact for _, _, fact, _ in UNCLOSED])
def test_everything_unclosed_has_a_case(fact):
    assert f"error: {fact}\n" in MESSAGES


def test_no_message_speaks_the_parsers_language():
    """Terminals are said in words: no name of theirs with an underscore, no dollar sign but $time and $index."""
    spoken = MESSAGES.replace("$time", "").replace("$index", "").replace("$tim", "").replace("MAX_", "")
    for terminal in ("LPAR", "RSQB", "SEMICOLON", "QMARK", "NOT_FOLLOWED", "ALL_INFIX", "SELECTOR", "$END", "CONSUME_", "DATED"):
        assert terminal not in spoken


def test_a_found_word_is_never_empty():
    for character in map(chr, range(1, 0x250)):
        assert FOUND.match(character)[0]
