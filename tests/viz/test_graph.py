"""Drawings of automata: what stands in them, and that nothing stands upon anything else."""

from __future__ import annotations

import html
import itertools
import random
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import cepheid
from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.transform import determinize
from cepheid.automata.transition import Transition, order
from cepheid.engine.plan.likely_schema import likely_schema
from cepheid.viz import FORMATS, draw
from cepheid.viz.fold import Arc, Diagram, diagram
from cepheid.viz.graph import LINES_SHOWN, MAX_DRAWN_STATES, PAGE_WIDTH, RADIUS, Box, Scene, scene
from cepheid.viz.labels import links
from cepheid.viz.markup import MERMAID_CODES
from cepheid.viz.panels import panels

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERIES = [
    "SELECT * WHERE A AS x",
    "SELECT * WHERE A AS x ; B AS y FILTER x[v > 3]",
    "SELECT * WHERE A ; (B OR C)+ ; D",
    "SELECT STRICT * WHERE A ; (B OR C)+ ; D",
    "SELECT * WHERE A ; B{3,5} AS b ; C? ; D",
    "SELECT * WHERE PROJECT x (A AS x : B AS y :+ : C AS x)",
    "SELECT * WHERE (A+ AS x ; B AS y FILTER y[v>3 OR w LIKE 'abc%' AND temperature BETWEEN 4 AND 17 AND humidity < 12])+ ; C",
    "SELECT * WHERE ((A OR B OR C) AS x : D :+)+ : (E OR F) FILTER x[v > 100]",
    "SELECT * WHERE A ; B ; C ; D ; E",
]
SVG = "{http://www.w3.org/2000/svg}"


def automaton_of(text: str) -> Automaton:
    query = cepheid.query(text)
    return query.compiled(likely_schema(query)).program.automaton


def automata() -> list[Automaton]:
    plain = [automaton_of(text) for text in QUERIES]
    return [*plain, *(each for each in map(determinize, plain) if each.states <= 15)]


def random_automaton(seed: int) -> Automaton:
    """Up to 15 states with edges in all directions, loops and all kinds of marks."""
    chance = random.Random(seed)
    states = chance.randint(2, 15)
    names = ["A", "LongerTypeName", "B"]
    marks = [None, frozenset(), frozenset({"x"}), frozenset({"x", "a_longer_variable"})]
    moves = [Transition(state, state + 1, 1, frozenset({"x"})) for state in range(states - 1)]
    moves += [
        Transition(chance.randrange(states), chance.randrange(states), 1 << chance.randrange(3), chance.choice(marks))
        for _ in range(chance.randint(0, 2 * states))
    ]
    moves += [Transition(state, state) for state in range(1, states) if chance.random() < 0.5]
    return Automaton(states, 0, frozenset({states - 1}), order(moves), Alphabet(tuple(Predicate(None, name) for name in names)))


ALL = [*automata(), *map(random_automaton, range(40))]


@pytest.mark.parametrize("automaton", ALL)
def test_svg_is_xml_with_every_state_and_label(automaton: Automaton) -> None:
    drawing = draw(automaton)
    root = ET.fromstring(drawing)
    assert root.tag == SVG + "svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.findtext(SVG + "title")
    groups = root.findall(f".//{SVG}g[@class='state']")
    items = root.findall(f".//{SVG}g[@class='item']")
    shown = [int(state) for group in [*groups, *items] for state in group.attrib["data-states"].split()]
    assert sorted(shown) == list(range(automaton.states))
    doubled = [group.attrib["data-states"].split() for group in groups if len(group.findall(SVG + "circle")) == 2]
    assert {int(state) for states in doubled for state in states} == automaton.finals
    written = " ".join("".join(text.itertext()) for text in root.iter(SVG + "text"))
    said = " ".join(title.text or "" for title in root.iter(SVG + "title"))
    for arc in diagram(automaton).arcs:
        assert diagram(automaton).text(arc) in said
        for label in arc.labels[: LINES_SHOWN // 3]:
            assert label.mark in written
            assert label.condition.split()[0] in written


@pytest.mark.parametrize("automaton", ALL)
def test_nothing_overlaps_and_nothing_stands_outside(automaton: Automaton) -> None:
    laid = scene(diagram(automaton))
    labels = [box for box in laid.boxes if box is not None]
    states = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in laid.placed.states]
    boxes = [*labels, *states]
    overlapping = [(first, second) for first, second in itertools.combinations(boxes, 2) if first.overlaps(second)]
    assert not overlapping
    assert laid.placed.width <= PAGE_WIDTH
    tolerance = 0.01
    for box in boxes:
        assert box.left > -tolerance
        assert box.top > -tolerance
        assert box.right < laid.placed.width + tolerance
        assert box.bottom < laid.placed.height + tolerance


@pytest.mark.parametrize("automaton", ALL)
def test_no_edge_runs_through_a_label_or_a_state(automaton: Automaton) -> None:
    """Within the columns edges are horizontal: none of these stretches meets a label or a state of the column."""
    laid = scene(diagram(automaton))
    labels = [box for box in laid.boxes if box is not None]
    states = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in laid.placed.states]
    for number, route in enumerate(laid.placed.routes):
        for place, bend in enumerate(route):
            own = item_of(laid, number) if place == laid.placed.labels[number] else None
            line = Box(bend.left, bend.y - 0.1, bend.right, bend.y + 0.1)
            assert not any(line.overlaps(box) for box in [*labels, *states] if box is not own)
    for (_, band), carry in laid.placed.carries.items():
        line = Box(carry.left, carry.gutter - 0.1, carry.right, carry.gutter + 0.1)
        assert not any(line.overlaps(box) for box in [*labels, *states]), band


def item_of(laid: Scene, number: int) -> Box | None:
    """The box of the counted item that an edge leads through: its line ends there."""
    index = [index for index, arc in enumerate(laid.arcs) if not arc.loops][number]
    return laid.boxes[index] if laid.arcs[index].count is not None else None


def test_labels_take_what_determinizing_took_apart_together() -> None:
    automaton = determinize(automaton_of("SELECT * WHERE A AS x ; B AS y FILTER y[v > 3]"))
    assert [link.text for link in links(automaton)] == ["0 -> 1: A / x", "1 -> 1: any event, not marked", "1 -> 2: B[v > 3.0] / y"]


def test_long_conditions_are_wrapped_and_many_are_counted() -> None:
    moves = tuple(Transition(0, 1, 1 << bit, frozenset({f"x{bit}"})) for bit in range(12))
    drawing = draw(Automaton(2, 0, frozenset({1}), moves, Alphabet(tuple(Predicate(None, f"T{bit}") for bit in range(12)))))
    assert f".. {12 - LINES_SHOWN + 1} lines more" in drawing
    assert "T11 / x11" in drawing


def test_what_marks_alike_is_one_label() -> None:
    automaton = automaton_of("SELECT * WHERE (A OR B) AS x ; (C OR D) ; E")
    assert [link.text for link in links(automaton) if not link.waits] == ["0 -> 1: A or B / x", "1 -> 2: C or D", "2 -> 3: E"]


def test_names_cannot_break_a_drawing() -> None:
    text = "SELECT * WHERE `<b>\"&amp;]]>\\` AS `x y` FILTER `x y`[v = '<script>\"`|#\n']"
    automaton = automaton_of(text)
    root = ET.fromstring(draw(automaton))
    assert any("<script>" in "".join(text.itertext()) for text in root.iter(SVG + "text"))
    mermaid = draw(automaton, format="mermaid")
    assert "<script" not in mermaid
    assert mermaid.count('"') == 2
    dot = draw(automaton, format="dot")
    assert dot.count('"') - dot.count('\\"') == 4


def test_equal_automata_give_equal_drawings() -> None:
    text = QUERIES[2]
    for format_ in FORMATS:
        assert draw(automaton_of(text), format=format_) == draw(automaton_of(text), format=format_)


def test_notebooks_show_an_svg_and_nothing_else() -> None:
    automaton = automaton_of(QUERIES[0])
    assert draw(automaton)._repr_svg_() == draw(automaton)
    assert draw(automaton, format="dot")._repr_svg_() is None


def test_unknown_format() -> None:
    with pytest.raises(cepheid.InputError) as raised:
        draw(automaton_of(QUERIES[0]), format="svgz")
    assert str(raised.value) == (
        "error: there is no drawing format 'svgz'\nhelp: did you mean 'svg'?\nhelp: the formats are 'svg', 'mermaid', 'dot'"
    )


def test_svg_of_a_large_automaton_is_refused_and_dot_is_not() -> None:
    states = MAX_DRAWN_STATES + 1
    moves = tuple(Transition(state, state + 1, 1, frozenset({f"x{state % 2}"})) for state in range(states - 1))
    automaton = Automaton(states, 0, frozenset({states - 1}), moves, Alphabet((Predicate(None, "A"),)))
    with pytest.raises(cepheid.LimitError, match="101 states; an SVG shows at most 100"):
        draw(automaton)
    assert f"{states - 2} -> {states - 1}" in draw(automaton, format="dot")


DOT = """\
digraph cepheid {
  rankdir=LR
  tooltip="Automaton: 4 states, 7 transitions"
  node [shape=circle]
  start [shape=point]
  3 [shape=doublecircle]
  start -> 0
  0 -> 1 [label="A[v > 3.0 AND w LIKE 'a%'] / x"]
  1 -> 1 [style=dashed color=gray label=""]
  item3 [shape=box style=rounded label="B / y\\n\u00d71 or more"]
  1 -> item3 -> 3
  item3 -> item3 [style=dashed color=gray label=""]
}
"""

MERMAID = """\
flowchart LR
  accTitle: Automaton: 4 states, 7 transitions
  s0((0))
  s1((1))
  s3(((3)))
  start[ ] --> s0
  style start fill:none,stroke:none
  s0 -- "A#91;v #62; 3.0 AND w LIKE #39;a%#39;#93; / x" --> s1
  s1 -.-> s1
  item3(["B / y<br/>\u00d71 or more"])
  s1 --> item3 --> s3
  item3 -.-> item3
"""


@pytest.mark.parametrize(("format_", "expected"), [("dot", DOT), ("mermaid", MERMAID)])
def test_dot_and_mermaid(format_: str, expected: str) -> None:
    query = cepheid.query("SELECT * WHERE A AS x ; B+ AS y FILTER x[v > 3 AND w LIKE 'a%']")
    assert query.draw(format_) == expected


def test_hidden_marks_and_no_marks_are_told_apart() -> None:
    automaton = Automaton(
        3,
        0,
        frozenset({2}),
        order([Transition(0, 1, 1, frozenset()), Transition(1, 2, 1, frozenset({"x"})), Transition(1, 1, 1)]),
        Alphabet((Predicate(None, "A"),)),
    )
    assert [link.text for link in links(automaton)] == ["0 -> 1: A / (hidden)", "1 -> 1: A / -", "1 -> 2: A / x"]
    assert "-: not marked" in draw(automaton)


def test_what_must_not_follow_stands_beside_the_automaton() -> None:
    plain = cepheid.query("SELECT * WHERE A AS o")
    waiting = cepheid.query("SELECT * WHERE A AS o NOT FOLLOWED BY (B FILTER B[v > 1]) FOR 30 m")
    said = "a match is given once there was no B[v > 1.0] for 30m"
    for format_ in ("svg", "mermaid", "dot"):
        drawn = html.unescape(str(waiting.draw(format_))).replace("\\n", " ")
        for character, code in MERMAID_CODES.items() if format_ == "mermaid" else ():
            drawn = drawn.replace(code, character)
        assert said in drawn
        assert "given once" not in str(plain.draw(format_))
    assert "2 -> note" not in str(waiting.draw("dot"))
    assert "1 -> note" in str(waiting.draw("dot"))
    height = [float(ET.fromstring(str(query.draw())).attrib["viewBox"].split()[3]) for query in (plain, waiting)]
    assert height[0] < height[1]


def test_a_detector_is_drawn_as_the_automaton_of_its_pattern() -> None:
    """RESTRICTED runs no automaton; the drawing is that of all matches, without the marks that tell the detector's events apart."""
    drawn = [
        str(cepheid.query(f"SELECT {strategy} * WHERE (B ; B) UNLESS (P OR T) WITHIN 2s").draw(format="mermaid"))
        for strategy in ("ALL", "RESTRICTED")
    ]
    assert drawn[0] == drawn[1].replace("SELECT RESTRICTED \u00b7 ", "")
    assert "leaf" not in drawn[1]


def items(text: str) -> list[tuple[str, tuple[int, ...], bool]]:
    """How often each counted item of a query's drawing is taken, the states inside, and whether other events may come between."""
    counts = [arc.count for arc in diagram(automaton_of(text)).arcs]
    return [(str(count), count.states, count.waits) for count in counts if count is not None]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A{5} ; B", [("\u00d75", (1, 2, 3, 4), True)]),
        ("A{5} : B", [("\u00d75", (1, 2, 3, 4), True)]),
        ("A{3}", [("\u00d73", (1, 2), True)]),
        ("A ; A ; A", [("\u00d73", (1, 2), True)]),
        ("A+ ; B", [("\u00d71 or more", (1,), True)]),
        ("A{3,} ; B", [("\u00d73 or more", (1, 2, 3), True)]),
        ("A{2,4} ; B", [("\u00d72 to 4", (1, 2, 3), True)]),
        ("(A{3} OR B) ; C", [("\u00d73", (1, 2), True)]),
        ("(A{3} OR B{2}) ; C", [("\u00d73", (1, 2), True), ("\u00d72", (4,), True)]),
        ("(A+ OR B) ; C", [("\u00d72 or more", (1,), True)]),
        ("A ; (B OR C){4} ; D", [("\u00d74", (2, 3, 4), True)]),
        ("A{2} AS x ; A{2} AS y", [("\u00d72", (1,), True), ("\u00d72", (3,), True)]),
        # nothing is counted here
        ("A ; B", []),
        ("(A ; B)+ ; C", []),
        ("A AS x ; A AS y", []),
    ],
)
def test_counted_items(pattern: str, expected: list[tuple[str, tuple[int, ...], bool]]) -> None:
    found = items(f"SELECT * WHERE {pattern}")
    assert [(times, len(states), waits) for times, states, waits in found] == [
        (times, len(states), waits) for times, states, waits in expected
    ]


def test_strict_items_do_not_wait() -> None:
    assert items("SELECT STRICT * WHERE A ; B{3} ; C") == [("\u00d73", (3, 4), False)]


LETTERS = [
    *itertools.product("AB", repeat=1),
    *itertools.product("AB", repeat=2),
    *itertools.product("AB", repeat=3),
    *itertools.product("AB", repeat=5),
]


@pytest.mark.parametrize("seed", range(60))
def test_a_counted_item_has_the_steps_of_its_states(seed: int) -> None:
    """On random automata whose edges are A or B: the words that lead from the start to the end are those of the drawing, counts written out."""
    chance = random.Random(seed)
    states = chance.randint(2, 7)
    moves = {Transition(state, state + 1, 1 << chance.randrange(2), frozenset({"x"})) for state in range(states - 1)}
    for _ in range(chance.randint(0, 4)):
        source = chance.randrange(states - 1)
        moves.add(Transition(source, chance.randint(max(source, 1), states - 1), 1 << chance.randrange(2), frozenset({"x"})))
    automaton = Automaton(states, 0, frozenset({states - 1}), order(moves), Alphabet((Predicate(None, "A"), Predicate(None, "B"))))
    drawn = diagram(automaton)
    plain = {(move.source, move.target, "AB"[move.requires >> 1]) for move in automaton.transitions}
    folded = {step for arc in drawn.arcs for step in written_out(drawn, arc)}
    for word in LETTERS:
        assert accepts(plain, {states - 1}, word) == accepts(folded, {drawn.nodes[-1].states[0]}, word), word


def written_out(drawn: Diagram, arc: Arc) -> Iterator[tuple[object, object, str]]:
    """The steps of an arc between the first states of nodes; between the events of a counted one are places of their own."""
    source, target = drawn.nodes[arc.source].states[0], drawn.nodes[arc.target].states[0]
    letters = [letter for label in arc.labels for letter in label.condition.split(" or ")]
    least, most = (1, 1) if arc.count is None else (arc.count.least, arc.count.most)
    longest = most or least + 1
    for letter in letters:
        places = [source, *((source, target, letters[0], number) for number in range(1, longest))]
        yield from ((before, after, letter) for before, after in itertools.pairwise(places))
        yield from ((places[number - 1], target, letter) for number in range(least, longest + 1))
        if most is None:
            yield places[-1], places[-1], letter


def accepts(steps: set[tuple[object, object, str]], finals: set[int], word: tuple[str, ...]) -> bool:
    front: set[object] = {0}
    for letter in word:
        front = {target for source, target, read in steps for state in front if source == state and read == letter}
    return bool(front & finals)


def test_a_long_sequence_goes_on_below() -> None:
    query = cepheid.query("SELECT * WHERE " + " ; ".join(f"STEP{number} AS s{number}" for number in range(1, 25)))
    root = ET.fromstring(query.draw())
    assert float(root.attrib["width"]) <= PAGE_WIDTH
    laid = scene(diagram(automaton_of(query.text)))
    assert len({round(y) for _, y in laid.placed.states}) > 2
    assert len(laid.placed.carries) == len({round(y) for _, y in laid.placed.states}) - 1
    # As one reads: from left to right, then from top to bottom.
    lines = [(round(y), x) for x, y in laid.placed.states]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * WHERE A ; B", ""),
        ("SELECT * WHERE A ; B WITHIN 5 minutes PARTITION BY user", "WITHIN 5m \u00b7 PARTITION BY user"),
        ("SELECT MAX * WHERE A ; B WITHIN 100 EVENTS LIMIT 3", "SELECT MAX \u00b7 WITHIN 100 EVENTS \u00b7 LIMIT 3"),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.id = y.id", "PARTITION BY id (from equalities)"),
        ("SELECT count(a) AS n WHERE A+ AS a ; B HAVING n > 2 CONSUME BY ANY", "HAVING count(a) > 2 \u00b7 CONSUME BY ANY"),
    ],
)
def test_the_caption_says_what_the_automaton_does_not(text: str, expected: str) -> None:
    query = cepheid.query(text)
    (panel,) = panels(query.compiled(likely_schema(query)))
    assert panel.caption == expected
    for format_ in FORMATS:
        assert expected.partition(" > ")[0] in html.unescape(query.draw(format_))


def test_guards_stand_on_the_edges_as_the_language_writes_them() -> None:
    text = "SELECT * WHERE BUY AS a ; SELL AS b FILTER a.price < b.price AND b.$time - a.$time <= 30s"
    first, last = (arc for arc in diagram(automaton_of(text)).arcs if not arc.waits)
    assert [str(label) for label in first.labels] == ["BUY / a"]
    assert "stores price of a := price" in diagram(automaton_of(text)).text(first)
    assert [str(label) for label in last.labels] == ["SELL[price > a.price AND (b.$time - a.$time) <= 30s] / b"]


def test_event_definitions_are_drawn_with_the_query() -> None:
    query = cepheid.query(
        "EVENT Burst(failures) AS (SELECT MAX count(f) WHERE Fail+ AS f PARTITION BY user WITHIN 5 HAVING count(f) >= 2)"
        " SELECT * WHERE Burst AS b ; Ok AS k PARTITION BY user WITHIN 10"
    )
    for format_ in FORMATS:
        drawn = query.draw(format_)
        assert "EVENT Burst" in drawn
        assert drawn.index("Fail") < drawn.index("Ok")
    assert ET.fromstring(query.draw()).get("aria-label") == "Automata: 3 states, 5 transitions; 3 states, 3 transitions"


def test_a_query_that_matches_nothing_says_so() -> None:
    assert "no state accepts" in cepheid.query("SELECT * WHERE A AS a AND B AS b").draw()
