"""The driver reads by grammar.tables what lark reads by grammar.lark: the same symbols, trees and errors."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from lark.exceptions import UnexpectedInput
from loaded_scripts import script

from cepheid.errors import CepheidError, SetupError
from cepheid.language import diagnose, parse, parser, syntax, tables
from cepheid.language.actions import Actions
from cepheid.language.driver import END, Driver, UnexpectedError, small
from cepheid.language.limits import MAX_TEXT
from cepheid.language.tables import QUERIES, ROWS, Grammar

ROOT = Path(__file__).parents[2]

MAKER = script("tables")
"""What compiles grammar.lark with lark."""

WRITTEN = re.compile(r"""^((?:EVENT|SELECT)\b.*(?:\n(?!```).+)*)|["'`]((?:EVENT|SELECT)\b[^"\n]*?)["'`]""", re.MULTILINE)
"""A query from the beginning of a line to an empty one, or in quotes."""

BEHIND = {
    "query_start": re.compile(r"\A"),
    "pattern_start": re.compile(r"\bWHERE\b"),
    "condition_start": re.compile(r"\bFILTER\b|\bHAVING\b|\["),
    "window_start": re.compile(r"\bWITHIN\b"),
    "target_start": re.compile(r"\bSELECT\b"),
    "duration_start": re.compile(r"\bWITHIN\b|<=?"),
}
"""Behind what the texts of a start stand in a query."""

MIXED = [
    *(
        "",
        " ",
        "\t",
        "\xa0",
        "\u2003",
        "\n",
        "--",
        "-- c\n",
        "/*",
        "/* c */",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        ":+",
        ": {",
        ";",
        ",",
        ".",
    ),
    *(
        "+",
        "?",
        "'",
        "''",
        "`",
        "``",
        "$time",
        "$",
        "5",
        "5.5",
        "1e3",
        "5e",
        "5 s",
        "5s",
        "5 secondsx",
        "<",
        "<=",
        "<>",
        "==",
        "=",
        "!",
        "%",
    ),
    *("*", "/", "-", "NOT", "not followed by", "NOT FOLLOWED", "all", "any", "next", "NXT", "max (", "max/**/(", "date '", "date'2020'"),
    *("time", "distinct", "x", "_", "in5", "5in", "order", "\0", "a\u017f", "\u017felect", "l\u0131ke", "L\u0130KE", "li\u0307ke"),
    *("\u212aey", "\ufb01lter", "\xb2", "\u0663"),
]
"""What is put into texts: words and signs whose reading depends on where they stand, and letters that look like others to `re.IGNORECASE`."""


def collected() -> list[str]:
    """Every query text of the tests, the documentation and the examples."""
    paths = [path for place in ("tests", "docs", "examples") for path in sorted((ROOT / place).rglob("*")) if path.is_file()]
    texts: dict[str, None] = {}
    for path in [ROOT / "README.md", *paths]:
        if path.suffix in {".md", ".toml", ".py", ".txt", ".ceql", ".json"}:
            content = re.sub(r"^[+-] ", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            texts.update(dict.fromkeys(whole or quoted for whole, quoted in WRITTEN.findall(content)))
    return [text for text in texts if len(text) < 2000]


TEXTS = collected()


def mutated(text: str, draws: random.Random) -> str:
    """The text with characters or words deleted, doubled, swapped or put in."""
    parts = list(text) if draws.random() < 0.5 else re.findall(r"\w+|\s+|.", text)
    for _ in range(draws.choice([1, 1, 1, 2, 4])):
        place, other = (draws.randrange(len(parts) + 1) for _ in range(2))
        match draws.choice(["delete", "double", "swap", "put in", "cut"]):
            case "delete":
                parts[place : place + 1] = []
            case "double":
                parts[place:place] = parts[place : place + 1]
            case "swap":
                parts[place : place + 1], parts[other : other + 1] = parts[other : other + 1], parts[place : place + 1]
            case "put in":
                parts[place:place] = [draws.choice(MIXED)]
            case "cut" if draws.random() < 0.3:
                del parts[place:]
    return "".join(parts)


class Seen:
    """Lark's hook between its lexer and its parser, for what the driver calls with every symbol."""

    always_accept = ()

    def __init__(self) -> None:
        self.symbols: list[tuple[str, str, int, int]] = []

    def process(self, stream):
        self.symbols = []
        watch = parser.Watch()
        for symbol in stream:
            self.add(symbol)
            watch.see(symbol)
            yield symbol

    def add(self, symbol) -> None:
        self.symbols.append((symbol.type, str(symbol), symbol.start_pos, symbol.end_pos))


def placed(value: object) -> object:
    """A tree in values that compare whole, places included."""
    if isinstance(value, syntax.Node):
        return type(value), [(item.name, placed(getattr(value, item.name))) for item in dataclasses.fields(value)]
    if isinstance(value, tuple):
        return type(value), list(map(placed, value))
    return type(value), value


class ByLark:
    """What lark reads."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.lark = MAKER.compiled(transformer=Actions(), postlex=self.seen)

    def read(self, text: str, start: str) -> tuple[object, ...]:
        try:
            return "tree", placed(self.lark.parse(text, start=start)), self.seen.symbols
        except CepheidError as error:
            return type(error), str(error), error.span, self.seen.symbols
        except UnexpectedInput as error:
            ended = getattr(getattr(error, "token", None), "type", None) == END
            place = len(text) if ended else error.pos_in_stream
            return "unexpected", place, frozenset(error.interactive_parser.accepts()), self.seen.symbols


class ByDriver:
    """What the driver reads."""

    def __init__(self) -> None:
        self.driver = Driver(tables.stored(), Actions())

    def read(self, text: str, start: str) -> tuple[object, ...]:
        seen, watch = Seen(), parser.Watch()

        def see(symbol) -> None:
            seen.add(symbol)
            watch.see(symbol)

        try:
            return "tree", placed(self.driver.parse(text, start, see)), seen.symbols
        except CepheidError as error:
            return type(error), str(error), error.span, seen.symbols
        except UnexpectedError as error:
            return "unexpected", error.position, error.accepted, seen.symbols


@pytest.fixture(scope="module")
def by_lark() -> ByLark:
    return ByLark()


@pytest.fixture(scope="module")
def by_driver() -> ByDriver:
    return ByDriver()


# ----------------------------------------------------------------------------------------------------------------- as lark reads


def test_every_text_of_the_repository(by_lark, by_driver):
    outcomes = set()
    for text in TEXTS:
        for start in QUERIES.starts:
            for found in list(BEHIND[start].finditer(text))[:3]:
                part = text[found.end() :]
                outcome = by_driver.read(part, start)
                assert outcome == by_lark.read(part, start), (start, part)
                outcomes.add((start, outcome[0]))
    assert len(TEXTS) > 1000
    assert {(start, kind) for start in QUERIES.starts for kind in ("tree", "unexpected")} <= outcomes


def test_mutations_of_the_texts(by_lark, by_driver, seed, cases):
    draws = random.Random(seed)
    kinds = []
    for _ in range(15 * cases):
        text = mutated(draws.choice(TEXTS), draws)
        start = draws.choice(["query_start", *QUERIES.starts])
        places = [found.end() for found in BEHIND[start].finditer(text)]
        text = text[draws.choice(places) :] if places else text
        outcome = by_driver.read(text, start)
        assert outcome == by_lark.read(text, start), (start, text)
        kinds.append(outcome[0])
    assert kinds.count("tree") > len(kinds) / 20
    assert kinds.count("unexpected") > len(kinds) / 20


def test_words_and_signs_everywhere(by_lark, by_driver, seed, cases):
    """In a query that has all clauses: what could stand behind a symbol is told from what could not, and in the same way."""
    query = (
        "EVENT E(n, `m`) AS (SELECT * WHERE A) SELECT MAX x AS y, count(DISTINCT z.a) FROM s, t "
        "WHERE (A AS x ; NOT B ;[<= 5s] PROJECT x (C{2,} ALL LAST(D+)) THEN F :+ : G?) "
        "FILTER x.a IN (1, :p) AND NOT y[v BETWEEN -1 AND 2] OR prev(z).$time LIKE 'a' UNLESS H NOT FOLLOWED BY I FOR [> 1 m] FROM START "
        "WITHIN 5 EVENTS PARTITION BY [k], l WITHIN 1h HAVING CASE WHEN a IS NOT NULL THEN 1 ELSE date '2020-01-01' END > 1 "
        "CONSUME BY ANY TIME MODEL ODE LIMIT 3"
    )
    outcome = by_driver.read(query, "query_start")
    assert outcome[0] == "tree"
    draws = random.Random(seed)
    for _ in range(5 * cases):
        end = draws.choice(outcome[-1])[-1]
        text = query[:end] + draws.choice(["", " "]) + draws.choice(MIXED) + query[end:]
        assert by_driver.read(text, "query_start") == by_lark.read(text, "query_start"), text


def test_letters_that_ignore_case():
    """Keywords are compared as `re.IGNORECASE` does, over all of Unicode."""
    characters = "".join(map(chr, range(sys.maxunicode + 1)))
    letters = dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "")
    for character in characters:
        if small(character) in letters:
            letters[small(character)] += character
    for letter, alike in letters.items():
        assert re.findall(f"(?i:{letter})", characters) == list(alike)
    assert small("L\u0130KE") == small("l\u0131ke") == "like"
    assert small("LI\u0307KE") != "like"


def test_the_message_is_that_of_the_place_and_of_what_was_expected(by_driver):
    _, place, accepted, _ = by_driver.read("SELECT * WHERE A ; ;", "query_start")
    assert str(diagnose.syntax_error("SELECT * WHERE A ; ;", UnexpectedError(place, accepted))).startswith("error: expected a pattern")


# -------------------------------------------------------------------------------------------------------------------- the tables


@pytest.mark.parametrize("grammar", [QUERIES, ROWS], ids=lambda grammar: grammar.name)
def test_the_tables_are_of_this_grammar(grammar: Grammar):
    """Else run `make tables`."""
    stored = (Path(tables.__file__).with_name(grammar.file)).read_text(encoding="utf-8")
    assert stored == MAKER.written(MAKER.compiled(grammar), grammar)


@pytest.mark.parametrize("grammar", [QUERIES, ROWS], ids=lambda grammar: grammar.name)
def test_a_grammar_has_one_text_of_tables(grammar: Grammar):
    """Whatever the order of the sets of lark: lines that come and go would hide what a change does."""
    which = f"tables.{'QUERIES' if grammar is QUERIES else 'ROWS'}"
    code = f"import sys; sys.path.insert(0, 'scripts'); import tables; sys.stdout.write(tables.written(tables.compiled({which}), {which}))"
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == MAKER.written(MAKER.compiled(grammar), grammar)


def refused() -> str:
    with pytest.raises(SetupError) as caught:
        tables.stored()
    return str(caught.value)


def test_tables_of_another_grammar_are_not_read(monkeypatch):
    assert tables.stored().grammar == tables.identity()
    with monkeypatch.context() as patch:
        patch.setattr(tables, "read_grammar", lambda _: "query_start: pattern")
        message = refused()
    assert message == (
        "error: cepheid/language/grammar.tables has not the tables of the grammar.lark beside it\n"
        "help: run `make tables` in a checkout of the sources; install cepheid again otherwise"
    )
    with monkeypatch.context() as patch:
        patch.setattr(tables, "_read", lambda name: (_ for _ in ()).throw(FileNotFoundError(name)))
        assert "grammar.tables" in refused()
    whole = tables._read(QUERIES.file)
    for damaged in (whole[:1000], "", "{}", whole.replace('"rules"', '"laws"')):
        with monkeypatch.context() as patch:
            patch.setattr(tables, "_read", lambda name, damaged=damaged: damaged if name == QUERIES.file else "")
            assert refused() == message


@pytest.mark.parametrize(
    ("grammar", "what"),
    [
        ('start: A | "bc"\nA: /[a-z]+/', "a callback of lark"),
        ('start: A | ";;"\nA: /:/', "a terminal behind signs"),
        ("start: A?\nA: /a/", "an empty rule"),
        ("?start: _a\n_a: A A\nA: /a/", "a list of others alone"),
    ],
)
def test_a_grammar_that_the_driver_does_not_know_is_refused(monkeypatch, grammar, what):
    own = Grammar("own", ("start",))
    monkeypatch.setattr(MAKER, "read_grammar", lambda _: grammar)
    with pytest.raises(NotImplementedError, match=what):
        MAKER.written(MAKER.compiled(own), own)


def test_every_line_of_the_tables_is_read(by_driver):
    """Most states are met by no query of a test: their numbers and names are right all the same."""
    driver, found = by_driver.driver, tables.stored()
    states = [driver._states[number] for number in range(len(found.states))]
    rules = [driver._rules[number] for number in range(len(found.rules))]
    assert {step for state in states for step in state.steps.values()} >= set(range(-len(rules), 0))
    reached = {step for state in states for step in (*state.steps.values(), *state.gotos.values()) if step >= 0}
    assert reached | {first for first, _ in found.starts.values()} == set(range(len(states)))
    assert set(found.patterns) | set(found.words) | set(found.signs) == {name for line in found.sets for name in line.split()} - {END}


def test_the_file_is_plain_text():
    content = json.loads(Path(tables.__file__).with_name(QUERIES.file).read_text(encoding="ascii"))
    assert list(content) == list(tables.Tables._fields)


# -------------------------------------------------------------------------------------------------------- depth, length, speed


def unlimited(_: object) -> None:
    """What sees the symbols, without limits: what the driver itself bears is tested."""


def read(text: str, start: str) -> object:
    return Driver(tables.stored(), Actions()).parse(text, start, unlimited)


def test_no_depth_is_too_deep():
    depth = 50_000
    assert read("(" * depth + "A" + ")" * depth, "pattern_start") == read("A", "pattern_start")
    with pytest.raises(UnexpectedError) as caught:
        read("(" * depth + "A" + ")" * (depth - 1), "pattern_start")
    assert caught.value.position == 2 * depth
    assert {"RPAR", "WITHIN"} <= caught.value.accepted
    assert END not in caught.value.accepted


def test_the_longest_text():
    text = "A /* " + "*" * (MAX_TEXT - 20) + "*/ ; B"
    assert read(text, "pattern_start").items[1].span.end == len(text)


@pytest.mark.parametrize(
    "row",
    [
        lambda count: ("pattern_start", " ; ".join(["A"] * count)),
        lambda count: ("condition_start", "x IN (" + ",".join(["1"] * count) + ")"),
        lambda count: ("condition_start", "+".join(["1"] * count)),
        lambda count: ("pattern_start", "A" + " AS x" * count),
    ],
)
def test_a_row_takes_linear_time(row):
    def seconds(count: int) -> float:
        start, text = row(count)
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            read(text, start)
            best = min(best, time.process_time() - begin)
        return best / count

    gc.disable()  # the collector would walk over what other tests left
    try:
        assert seconds(16_000) < 4 * seconds(1_000)
    finally:
        gc.enable()


def test_it_is_faster_than_lark():
    text = "SELECT * FROM S WHERE A AS a ; B+ AS b FILTER b[v > 3 AND w = 'x'] WITHIN 5 EVENTS PARTITION BY k LIMIT 3"
    lark, driver = MAKER.compiled(transformer=Actions()), Driver(tables.stored(), Actions())
    ways = {"lark": lambda: lark.parse(text, start="query_start"), "driver": lambda: driver.parse(text, "query_start", unlimited)}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(9):
        for name, way in ways.items():
            begin = time.process_time()
            for _ in range(20):
                way()
            taken[name].append(time.process_time() - begin)
    assert statistics.median(taken["driver"]) < statistics.median(taken["lark"])


def test_threads_share_a_driver():
    """They fill what it remembers at the same time."""
    shared = Driver(tables.stored(), Actions())
    texts = TEXTS[:200]
    found: list[list[object]] = [[] for _ in range(4)]

    def run(outcomes: list[object]) -> None:
        for text in texts:
            try:
                outcomes.append(shared.parse(text, "query_start", unlimited))
            except (CepheidError, UnexpectedError) as error:
                outcomes.append(type(error))

    threads = [threading.Thread(target=run, args=(outcomes,)) for outcomes in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found[0]) == len(texts)
    assert found == [found[0]] * 4


def test_a_query_is_read_without_lark():
    code = "import sys; sys.modules['lark'] = None; import cepheid; print(cepheid.query('SELECT * WHERE A ; B').text)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "SELECT * WHERE A ; B"
    assert parse("SELECT * WHERE A ; B").pattern.items[1].name == "B"
