"""The tables that texts are read by: `grammar.tables` beside grammar.lark, `match_recognize.tables` beside match_recognize.lark.

scripts/tables.py computes them from the grammars.

They are LALR(1) tables and, for every set of terminals that a state takes, the order in which these are tried. The file is JSON: nothing runs when it
is read, and its differences can be read. States, sets and rules are a line of text each, which is taken apart when a text first needs it. So the file
takes 0.1 ms (1.1 with lists in place of the lines, and a pickle of these 0.8), and makes no objects that the garbage collector would go through. It
names the grammar that it was computed from; no other is read by it.
"""

from __future__ import annotations

import hashlib
import json
import pkgutil
from typing import NamedTuple

from cepheid.errors import SetupError


class Grammar(NamedTuple):
    """A grammar of this package; its tables are beside it, under the same name."""

    name: str
    starts: tuple[str, ...]

    @property
    def file(self) -> str:
        """The file of the tables."""
        return f"{self.name}.tables"


QUERIES = Grammar("grammar", ("query_start", "pattern_start", "condition_start", "window_start", "target_start", "duration_start"))

ROWS = Grammar("match_recognize", ("clause_start", "row_pattern_start", "expression_start"))


class Rule(NamedTuple):
    """A rule of the grammar."""

    nonterminal: str
    size: int
    """How many children it has."""
    method: str
    """The method of the actions that makes one value of the children. Without one, children of a nonterminal that begins with `_` become a list,
    and another rule has a single child, which stays as it is."""
    spread: tuple[int, ...]
    """The places of children that are such lists; what is in them stands among the other children."""


class ParserState(NamedTuple):
    """A state of the parser."""

    terminals: int
    """The number of the set of terminals that it takes."""
    steps: tuple[int, ...]
    """What is done for each of them, or for any of them: `n` is to take it and go to the state n, `~n` to reduce by the rule n."""
    gotos: dict[str, int]
    """The next state behind each nonterminal."""


class Tables(NamedTuple):
    """What the file says. A rule, a state and a set of terminals is named by its number, the place in its list."""

    grammar: str
    """SHA-256 of the grammar, in hexadecimal digits."""
    starts: dict[str, list[int]]
    """The first and the last state of each start."""
    ignored: list[str]
    """The terminals between symbols: white space and comments."""
    patterns: dict[str, str]
    """The regular expressions of terminals."""
    words: dict[str, str]
    """The terminals that are keywords: their spellings, in small letters, with spaces between."""
    signs: dict[str, str]
    """The terminals that are always the same characters, no letters."""
    sets: list[str]
    """Terminals, in the order in which they are tried and with the signs last; behind all `$END`, the end of the text."""
    rules: list[str]
    """The fields of `Rule`, with `|` between."""
    states: list[str]
    """The fields of `ParserState`, with `|` between."""

    def terminals(self, number: int) -> list[str]:
        """The terminals of a set that are symbols or the end of the text, in order."""
        return [terminal for terminal in self.sets[number].split() if terminal not in self.ignored]

    def rule(self, number: int) -> Rule:
        """The rule of a number."""
        nonterminal, size, method, spread = self.rules[number].split("|")
        return Rule(nonterminal, int(size), method, tuple(map(int, spread.split())))

    def state(self, number: int) -> ParserState:
        """The state of a number."""
        terminals, steps, gotos = self.states[number].split("|")
        words = gotos.split()
        return ParserState(int(terminals), tuple(map(int, steps.split())), dict(zip(words[::2], map(int, words[1::2]), strict=True)))


def read_grammar(grammar: Grammar = QUERIES) -> str:
    """The text of a grammar."""
    return _read(f"{grammar.name}.lark")


def identity(grammar: Grammar = QUERIES) -> str:
    """What the tables of a grammar name it."""
    return hashlib.sha256(read_grammar(grammar).encode()).hexdigest()


def stored(grammar: Grammar = QUERIES) -> Tables:
    """The tables of the file.

    Raises:
        SetupError: there is none, or it is of another grammar: something is wrong with the package, not with a query.
    """
    try:
        found = Tables(**json.loads(_read(grammar.file)))
        fits = found.grammar == identity(grammar)
    except (OSError, ValueError, TypeError):  # not there, cut off, or with other fields
        fits = False
    if not fits:
        raise SetupError(
            f"cepheid/language/{grammar.file} has not the tables of the {grammar.name}.lark beside it",
            help="run `make tables` in a checkout of the sources; install cepheid again otherwise",
        )
    return found


def _read(name: str) -> str:
    """A file of this package, whatever ends its lines."""
    content = pkgutil.get_data("cepheid.language", name)
    if content is None:  # where the importer has no files
        raise FileNotFoundError(name)
    return content.decode().replace("\r\n", "\n")
