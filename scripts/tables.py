"""Write the tables of src/cepheid/language anew, after a change of one of its grammars: its LALR(1) tables, as lark computes them.

lark is a tool of development. At run time `cepheid.language.driver` reads queries by these tables, which say what lark would do: which terminals a
state takes, in which order they are tried, and what is done for each. Sets, rules and states are numbered as a walk from the starts meets them, so
there is one text for a grammar.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lark import Lark
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Shift

from cepheid.language.driver import END
from cepheid.language.tables import QUERIES, ROWS, Grammar, ParserState, Rule, Tables, identity, read_grammar

if TYPE_CHECKING:
    from lark.grammar import Rule as LarkRule
    from lark.lexer import TerminalDef

KEYWORD = re.compile(r"((?:[a-z]\??)+)\\b")
"""The regular expression of one keyword, in one or two spellings: `within\\b`, `ne?xt\\b`."""


def compiled(grammar: Grammar = QUERIES, **options: Any) -> Lark:
    """The parser of a grammar, by lark itself; options: more for `Lark`."""
    return Lark(
        read_grammar(grammar),
        parser="lalr",
        lexer="contextual",
        start=list(grammar.starts),
        keep_all_tokens=True,
        maybe_placeholders=False,
        **options,
    )


def written(lark: Lark, grammar: Grammar = QUERIES) -> str:
    """The text of the tables: the fields of `cepheid.language.tables.Tables` as JSON, one item to a line."""
    found = Walk(lark, grammar).tables()._asdict()
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {_lines(value)}" for name, value in found.items()) + "\n}\n"


def _lines(value: Any) -> str:
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(_line, value)) + "\n]"
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{_line(key)}: {_line(item)}" for key, item in value.items()) + "\n}"
    return _line(value)


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class Walk:
    """A walk over the states of lark's parser, from the starts.

    Raises:
        NotImplementedError: the grammar has something that the driver does not know.
    """

    def __init__(self, lark: Lark, grammar: Grammar = QUERIES) -> None:
        self.grammar = grammar
        frontend: Any = lark.parser
        self.table = frontend.parser._parse_table  # noqa: SLF001 - lark has no other way to them
        self.lexers = frontend.lexer.lexers
        self.terminals = {terminal.name: terminal for terminal in lark.terminals}
        self.ignored = list(lark.ignore_tokens)
        _refuse("flags or callbacks of the lexer", lark.options.g_regex_flags or lark.options.lexer_callbacks)
        self.states = dict.fromkeys(self.table.start_states[start] for start in grammar.starts)
        self.sets: dict[tuple[str, ...], int] = {}
        self.rules: dict[Rule, int] = {}

    def tables(self) -> Tables:
        """All of the tables."""
        numbers: dict[int, int] = {}
        pending = list(self.states)
        for state in pending:  # grows on the way
            numbers[state] = len(numbers)
            for target in self._targets(state):
                if target not in self.states:
                    self.states[target] = None
                    pending.append(target)
        states = [self._state(state, numbers) for state in pending]
        return Tables(
            grammar=identity(self.grammar),
            ignored=self.ignored,
            patterns={name: item.pattern.to_regexp() for name, item in self._kind("pattern")},
            words={name: " ".join(_spellings(item)) for name, item in self._kind("word")},
            signs={name: item.pattern.value for name, item in self._kind("sign")},
            sets=list(map(" ".join, self.sets)),
            rules=list(map(_rule_line, self.rules)),
            states=list(map(_state_line, states)),
            starts={
                start: [numbers[self.table.start_states[start]], numbers[self.table.end_states[start]]] for start in self.grammar.starts
            },
        )

    def _kind(self, kind: str) -> list[tuple[str, TerminalDef]]:
        return [(name, item) for name, item in sorted(self.terminals.items()) if _kind_of(item) == kind]

    def _order(self, state: int) -> tuple[str, ...]:
        """The terminals of a state as lark's lexer tries them."""
        lexer = self.lexers[state]
        scanner = lexer.scanner
        _refuse("a word that is told from a name by a callback of lark", lexer.callback)
        order = [terminal.name for terminal in scanner.terminals]
        kinds = [_kind_of(self.terminals[name]) for name in order]
        _refuse("a terminal behind signs", "sign" in kinds and set(kinds[kinds.index("sign") :]) != {"sign"})
        return (*order, *((END,) if END in self.table.states[state] else ()))

    def _row(self, state: int) -> dict[str, tuple[Any, Any]]:
        """What lark does in a state: first for terminals, in the order of the lexer, then for nonterminals, by name."""
        row = self.table.states[state]
        terminals = [name for name in self._order(state) if name in row]
        return {name: row[name] for name in (*terminals, *sorted(row.keys() - set(terminals)))}

    def _targets(self, state: int) -> list[int]:
        return [target for action, target in self._row(state).values() if action is Shift]

    def _state(self, state: int, numbers: dict[int, int]) -> ParserState:
        order, row = self._order(state), self._row(state)
        terminals = [name for name in order if name not in self.ignored]
        steps = [numbers[to] if action is Shift else ~self._rule(to) for action, to in (row[name] for name in terminals)]
        gotos = {name: numbers[to] for name, (_, to) in row.items() if name not in terminals}
        chosen = self.sets.setdefault(order, len(self.sets))
        return ParserState(chosen, tuple(steps[:1] if len(set(steps)) == 1 else steps), gotos)

    def _rule(self, rule: LarkRule) -> int:
        name = str(rule.origin.name)
        helper = name.startswith("_")
        spread = tuple(place for place, part in enumerate(rule.expansion) if not part.is_term and part.name.startswith("_"))
        alone = rule.options.expand1 and not rule.alias and len(rule.expansion) == 1
        _refuse("an empty rule", not rule.expansion)
        _refuse("a rule that is a list of others alone", alone and spread)
        _refuse("placeholders or templates", rule.options.template_source)
        method = "" if helper or alone else str(rule.alias or name)
        return self.rules.setdefault(Rule(name, len(rule.expansion), method, spread), len(self.rules))


def _rule_line(rule: Rule) -> str:
    return f"{rule.nonterminal}|{rule.size}|{rule.method}|{' '.join(map(str, rule.spread))}"


def _state_line(state: ParserState) -> str:
    gotos = " ".join(f"{nonterminal} {number}" for nonterminal, number in state.gotos.items())
    return f"{state.terminals}|{' '.join(map(str, state.steps))}|{gotos}"


def _kind_of(terminal: TerminalDef) -> str:
    pattern = terminal.pattern
    if isinstance(pattern, PatternStr) and not pattern.flags and not any(map(str.isalnum, pattern.value)):
        return "sign"
    return "word" if KEYWORD.fullmatch(pattern.value) and pattern.flags == {"i"} else "pattern"


def _spellings(keyword: TerminalDef) -> list[str]:
    """The two of `ne?xt`: `next` and `nxt`."""
    spellings = [""]
    found = KEYWORD.fullmatch(keyword.pattern.value)
    for letter, optional in re.findall(r"([a-z])(\??)", found[1] if found else ""):
        spellings = [spelling + more for spelling in spellings for more in ([letter, ""] if optional else [letter])]
    return spellings


def _refuse(what: str, found: object) -> None:
    if found:
        raise NotImplementedError(f"the grammar has {what}, which cepheid.language.driver does not know")


if __name__ == "__main__":
    for each in (QUERIES, ROWS):
        path = Path(__file__).parents[1] / "src/cepheid/language" / each.file
        path.write_text(written(compiled(each), each), encoding="utf-8", newline="\n")
