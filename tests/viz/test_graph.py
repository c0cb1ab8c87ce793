"""Drawings of automata: what stands in them, and that nothing stands upon anything else."""

from __future__ import annotations

import html
import itertools
import random
from xml.etree import ElementTree as ET

import pytest

import cepheid
from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.transform import determinize
from cepheid.automata.transition import Transition, order
from cepheid.engine.plan.likely_schema import likely_schema
from cepheid.viz import FORMATS, draw
from cepheid.viz.graph import LINES_SHOWN, MAX_DRAWN_STATES, MERMAID_CODES, RADIUS, Box, scene
from cepheid.viz.labels import links

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
    assert {group.findtext(SVG + "text") for group in groups} == {str(state) for state in range(automaton.states)}
    circles = {group.findtext(SVG + "text"): len(group.findall(SVG + "circle")) for group in groups}
    assert {int(name) for name, count in circles.items() if name and count == 2} == automaton.finals
    written = " ".join("".join(text.itertext()) for text in root.iter(SVG + "text"))
    said = " ".join(title.text or "" for title in root.iter(SVG + "title"))
    for link in links(automaton):
        assert link.text in said
        for label in link.labels[: LINES_SHOWN // 3]:
            assert label.mark in written
            assert label.condition.split()[0] in written


@pytest.mark.parametrize("automaton", ALL)
def test_nothing_overlaps_and_nothing_stands_outside(automaton: Automaton) -> None:
    laid = scene(automaton, links(automaton))
    labels = [box for box in laid.boxes if box is not None]
    states = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in laid.placed.states]
    boxes = [*labels, *states]
    overlapping = [(first, second) for first, second in itertools.combinations(boxes, 2) if first.overlaps(second)]
    assert not overlapping
    tolerance = 0.01
    for box in boxes:
        assert box.left > -tolerance
        assert box.top > -tolerance
        assert box.right < laid.placed.width + tolerance
        assert box.bottom < laid.placed.height + tolerance


@pytest.mark.parametrize("automaton", ALL)
def test_no_edge_runs_through_a_label_or_a_state(automaton: Automaton) -> None:
    """Within the columns edges are horizontal: none of these stretches meets a label or a state of the column."""
    laid = scene(automaton, links(automaton))
    labels = [box for box in laid.boxes if box is not None]
    states = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in laid.placed.states]
    for route in laid.placed.routes:
        for bend in route:
            line = Box(bend.left, bend.y - 0.1, bend.right, bend.y + 0.1)
            assert not any(line.overlaps(box) for box in [*labels, *states])


def test_labels_take_what_determinizing_took_apart_together() -> None:
    automaton = determinize(automaton_of("SELECT * WHERE A AS x ; B AS y FILTER y[v > 3]"))
    assert [link.text for link in links(automaton)] == ["0 -> 1: A / x", "1 -> 1: any event, not marked", "1 -> 2: B[v > 3.0] / y"]


def test_long_conditions_are_wrapped_and_many_are_counted() -> None:
    moves = tuple(Transition(0, 1, 1 << bit, frozenset({"x"})) for bit in range(12))
    drawing = draw(Automaton(2, 0, frozenset({1}), moves, Alphabet(tuple(Predicate(None, f"T{bit}") for bit in range(12)))))
    assert f".. {12 - LINES_SHOWN + 1} lines more" in drawing
    assert "T11 / x" in drawing


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
    moves = tuple(Transition(state, state + 1, 1, frozenset({"x"})) for state in range(states - 1))
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
  1 -> 2 [label="B / y"]
  1 -> 3 [label="B / y"]
  2 -> 2 [label="B / y"]
  2 -> 2 [style=dashed color=gray label=""]
  2 -> 3 [label="B / y"]
}
"""

MERMAID = """\
flowchart LR
  accTitle: Automaton: 4 states, 7 transitions
  s0((0))
  s1((1))
  s2((2))
  s3(((3)))
  start[ ] --> s0
  style start fill:none,stroke:none
  s0 -- "A#91;v #62; 3.0 AND w LIKE #39;a%#39;#93; / x" --> s1
  s1 -.-> s1
  s1 -- "B / y" --> s2
  s1 -- "B / y" --> s3
  s2 -- "B / y" --> s2
  s2 -.-> s2
  s2 -- "B / y" --> s3
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
    assert drawn[0] == drawn[1]
    assert "leaf" not in drawn[1]
