"""Reads a text by the tables of the grammar: an LALR(1) automaton with a stack, and a lexer that knows the state of it.

In each state the text is matched against the terminals that the state takes, in the order of the tables, so a word is a keyword only where the
grammar can use it. White space and comments are passed over. A method of the actions makes one value of the children of a rule. Nothing recurses, and
the time is linear in the length of the text. What a state needs, regular expressions above all, is made when a text first comes there: most
queries need a tenth of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.language.tables import Rule, Tables

    Lexer: TypeAlias = Callable[[str, int], tuple[str, int] | None]
    """From a text and a position in it to the terminal that stands there, and the position behind it."""

    Match: TypeAlias = Callable[[str, int], re.Match[str] | None]

    Make: TypeAlias = Callable[[list[Any]], Any]

Key = TypeVar("Key")
Value = TypeVar("Value")

END = "$END"
"""The terminal behind the last symbol."""

WORD = re.compile(r"[^\W\d]\w*")
"""What is compared with keywords, as a whole."""

SMALL = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
"""The letters outside of ASCII that a regular expression which ignores case takes for one of ASCII."""


class Symbol(str):
    """A word, number or sign of the text: a string with its terminal and its place, in code points."""

    __slots__ = ("end_pos", "start_pos", "type")

    type: str
    start_pos: int
    end_pos: int


class UnexpectedError(Exception):
    """What stands at `position` (at the length of the text: its end) is none of the terminals that could: `accepted`."""

    def __init__(self, position: int, accepted: frozenset[str]) -> None:
        self.position = position
        self.accepted = accepted
        super().__init__(position, accepted)


class _State(NamedTuple):
    lexer: Lexer
    steps: dict[str, int]
    """What is done for a terminal, in the numbers of `tables.ParserState`."""
    gotos: dict[str, int]


class _Made(dict[Key, Value]):
    """What was made of the tables for a key, made when it is first looked up."""

    def __init__(self, make: Callable[[Key], Value]) -> None:
        self._make = make

    def __missing__(self, key: Key) -> Value:
        value = self[key] = self._make(key)
        return value


class Driver:
    """The parser of one grammar.

    It changes only by remembering what it has made of the tables, so several threads can use it.
    """

    def __init__(self, tables: Tables, actions: object) -> None:
        self._tables = tables
        self._actions = actions
        self._ignored = frozenset(tables.ignored)
        self._states = _Made(self._state)
        self._lexers = _Made(self._lexer)
        self._matches = _Made(self._match)
        self._rules = _Made(self._rule)

    def parse(self, text: str, start: str, see: Callable[[Symbol], None]) -> Any:
        """What the actions make of the whole text.

        Args:
            text: a text.
            start: what it is, one of `Tables.starts`.
            see: called with every symbol as soon as it is read.

        Raises:
            UnexpectedError: the text is something else.

        Errors of `see` and of the actions come through. Takes time linear in the length of the text.
        """
        first, last = self._tables.starts[start]
        stack = [self._states[first]]
        values: list[Any] = []
        end = 0
        while True:
            terminal, position, end = self._next(text, end, stack, last)
            symbol = Symbol(text[position:end])
            symbol.type, symbol.start_pos, symbol.end_pos = terminal, position, end
            if terminal != END:
                see(symbol)
            state = self._reduce(stack, values, terminal, last)
            if state is None:
                raise UnexpectedError(position, self._accepted(stack, last))
            if state == last:
                return values[-1]
            stack.append(self._states[state])
            values.append(symbol)

    def _next(self, text: str, end: int, stack: list[_State], last: int) -> tuple[str, int, int]:
        """The terminal behind `end`, where it begins, and where it ends."""
        lexer = stack[-1].lexer
        while end < len(text):
            found = lexer(text, end)
            if found is None:
                raise UnexpectedError(end, self._accepted(stack, last))
            position, (terminal, end) = end, found
            if terminal not in self._ignored:
                return terminal, position, end
        return END, end, end

    def _reduce(self, stack: list[_State], values: list[Any] | None, terminal: str, last: int) -> int | None:
        """Reduce all that ends before `terminal`, without making anything if there are no `values`.

        Returns:
            The state behind the terminal, `last` behind the whole text; None, if the terminal cannot stand here.
        """
        while True:
            step = stack[-1].steps.get(terminal)
            if step is None or step >= 0:
                return step
            nonterminal, size, make = self._rules[~step]
            if make is not None and values is not None:
                children = values[-size:]
                del values[-size:]
                values.append(make(children))
            del stack[-size:]
            goto = stack[-1].gotos[nonterminal]
            if goto == last:  # only the end of the text leads there
                return last
            stack.append(self._states[goto])

    def _accepted(self, stack: list[_State], last: int) -> frozenset[str]:
        """The terminals that can stand next. Those that the state takes are more: behind some of them a reduction finds that they cannot."""
        return frozenset(terminal for terminal in stack[-1].steps if self._reduce(stack.copy(), None, terminal, last) is not None)

    # ------------------------------------------------------------------------------------------------ what is made of the tables

    def _state(self, number: int) -> _State:
        state = self._tables.state(number)
        terminals = self._tables.terminals(state.terminals)
        steps = dict.fromkeys(terminals, state.steps[0]) if len(state.steps) == 1 else dict(zip(terminals, state.steps, strict=True))
        return _State(self._lexers[state.terminals], steps, state.gotos)

    def _rule(self, number: int) -> tuple[str, int, Make | None]:
        rule = self._tables.rule(number)
        return rule.nonterminal, rule.size, _make(self._actions, rule)

    def _match(self, terminal: str) -> Match:
        return re.compile(self._tables.patterns[terminal]).match

    def _lexer(self, chosen: int) -> Lexer:
        """The lexer of a set of terminals: regular expressions and groups of keywords in their order, then the signs."""
        tables = self._tables
        steps: list[tuple[Match, str | dict[str, str]]] = []
        words: dict[str, str] = {}
        signs: dict[str, list[tuple[str, str]]] = {}
        for terminal in tables.sets[chosen].split():
            if terminal in tables.words:
                if not steps or steps[-1][1] is not words:
                    words = {}
                    steps.append((WORD.match, words))
                for word in tables.words[terminal].split():
                    words.setdefault(word, terminal)
            elif terminal in tables.patterns:
                steps.append((self._matches[terminal], terminal))
            elif terminal in tables.signs:
                sign = tables.signs[terminal]
                signs.setdefault(sign[0], []).append((sign, terminal))
        return _lexer(steps, signs)


def _lexer(steps: list[tuple[Match, str | dict[str, str]]], signs: dict[str, list[tuple[str, str]]]) -> Lexer:
    """A lexer of expressions, each with its terminal or with those of the words that it finds, and of signs by their first character."""

    def lexer(text: str, position: int) -> tuple[str, int] | None:
        for match, known in steps:
            found = match(text, position)
            if found is not None:
                terminal = known if isinstance(known, str) else known.get(small(found[0]))
                if terminal is not None:
                    return terminal, found.end()
        for sign, terminal in signs.get(text[position], ()):
            if text.startswith(sign, position):
                return terminal, position + len(sign)
        return None

    return lexer


def small(word: str) -> str:
    """The word in small letters, as far as regular expressions that ignore case do not tell it from one of ASCII letters."""
    return word.lower() if word.isascii() else word.translate(SMALL).lower()


def _make(actions: object, rule: Rule) -> Make | None:
    """What makes one value of the children of a rule; None, if it has a single child that stays as it is."""
    make: Make | None = getattr(actions, rule.method) if rule.method else _children if rule.nonterminal.startswith("_") else None
    if make is None or not rule.spread:
        return make
    spreading = make

    def spread_out(children: list[Any]) -> Any:
        flat: list[Any] = []
        for place, child in enumerate(children):
            if place not in rule.spread:
                flat.append(child)
            elif flat:
                flat += child
            else:
                flat = child  # a list that only the stack had: so a row of n takes n steps, not n squared
        return spreading(flat)

    return spread_out


def _children(children: list[Any]) -> list[Any]:
    return children
