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
from cepheid.viz.fold import Diagram, diagram
from cepheid.viz.graph import LINES_SHOWN, MAX_DRAWN_STATES, PAGE_WIDTH, Box, Scene, scene
from cepheid.viz.labels import links
from cepheid.viz.markup import MERMAID_CODES
from cepheid.viz.panels import panels
from cepheid.viz.rounds import Subgraph, runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.viz.labels import Label
    from cepheid.viz.rounds import Run

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
    "SELECT * WHERE (A ; B){5}",
    "SELECT * WHERE D? ; (A{3} ; B?){2,4} ; ((A ; B){2} ; C){3,} ; D",
    "SELECT * WHERE (LOGIN AS a ; SEARCH AS b ; DETAIL AS c ; BASKET AS d ; (ADDRESS AS e ; PAYMENT AS f){2} ; ORDER AS g){3} ; LOGOUT",
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
    items = [group for group in root.iter(SVG + "g") if "item" in group.get("class", "").split()]
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
    for laid in scenes(scene(diagram(automaton))):
        check_places(laid)


def scenes(laid: Scene) -> Iterator[Scene]:
    """A scene and those of the rounds in it."""
    yield laid
    for inside in laid.rounds:
        if inside is not None:
            yield from scenes(inside)


def circles(laid: Scene) -> list[Box]:
    """The boxes of the states, and of the points where a round begins and ends."""
    found = []
    for number, (x, y) in enumerate(laid.placed.states):
        radius = laid.radius(number)
        found.append(Box(x - radius, y - radius, x + radius, y + radius))
    return found


def check_places(laid: Scene) -> None:
    boxes = [*(box for box in laid.boxes if box is not None), *circles(laid)]
    overlapping = [(first, second) for first, second in itertools.combinations(boxes, 2) if first.overlaps(second)]
    assert not overlapping
    assert laid.placed.width <= PAGE_WIDTH
    tolerance = 0.01
    for box in boxes:
        assert box.left > -tolerance
        assert box.top > -tolerance
        assert box.right < laid.placed.width + tolerance
        assert box.bottom < laid.placed.height + tolerance
    for box, inside in zip(laid.boxes, laid.rounds, strict=True):
        if box is not None and inside is not None:
            assert inside.placed.width < box.right - box.left
            assert inside.placed.height < box.bottom - box.top


@pytest.mark.parametrize("automaton", ALL)
def test_no_edge_runs_through_a_label_or_a_state(automaton: Automaton) -> None:
    """Within the columns edges are horizontal: none of these stretches meets a label or a state of the column."""
    for laid in scenes(scene(diagram(automaton))):
        check_edges(laid)


def check_edges(laid: Scene) -> None:
    labels = [box for box in laid.boxes if box is not None]
    states = circles(laid)
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
    moves = tuple(Transition(state, state + 1, 1, frozenset({f"x{state}"})) for state in range(states - 1))
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


def test_a_title_stands_above() -> None:
    """In all formats, above all panels; it is the name of the drawing too."""
    for text in ("SELECT * WHERE A AS x WITHIN 5s", "EVENT E(n) AS (SELECT count(A) WHERE A ; A) SELECT * WHERE E ; B"):
        query = cepheid.query(text)
        root = ET.fromstring(query.draw(title='Pairs & "more"'))
        first, *others = root.iter(SVG + "text")
        assert first.text == root.get("aria-label") == 'Pairs & "more"'
        plain = ET.fromstring(query.draw())
        heights = [float(each.attrib["viewBox"].split()[3]) for each in (root, plain)]
        assert heights[0] > heights[1]
        assert [each.text for each in others] == [each.text for each in plain.iter(SVG + "text")]
        assert query.draw("mermaid", title='Pairs & "more"').splitlines()[:4] == [
            "---",
            'title: "Pairs & \\"more\\""',
            "---",
            "flowchart LR",
        ]
        assert query.draw("dot", title='Pairs & "more"').splitlines()[4:7] == [
            '  label="Pairs & \\"more\\""',
            "  labelloc=t",
            "  subgraph cluster_1 {",
        ]


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


GROUPS = [
    ("(A ; B){5}", ["0 -> 10: \u00d75: (begin -> 1: A; 1 -> end: B)"]),
    ("(A ; B){20} ; C", ["0 -> 40: \u00d720: (begin -> 1: A; 1 -> end: B)", "40 -> 41: C"]),
    ("(A ; B ; C){2,4} ; D", ["0 -> 12: \u00d72 to 4: (begin -> 1: A; 1 -> 2: B; 2 -> end: C)", "12 -> 13: D"]),
    ("(A ; B+ ; C){2,4}", ["0 -> 16: \u00d72 to 4: (begin -> 1: A; 1 -> 3: \u00d71 or more: B; 3 -> end: C)"]),
    ("(A ; B){2,} ; C", ["0 -> 5: \u00d72 or more: (begin -> 1: A; 1 -> end: B)", "5 -> 6: C"]),
    ("C ; (A ; B){1,3}", ["0 -> 1: C", "1 -> 7: \u00d71 to 3: (begin -> 2: A; 2 -> end: B)"]),
    ("D ; (A ; B){0,3} ; C", ["0 -> 1: D", "1 -> 7: \u00d71 to 3: (begin -> 2: A; 2 -> end: B)", "1 -> 8: C", "7 -> 8: C"]),
    ("(A{3} ; B){5}", ["0 -> 20: \u00d75: (begin -> 3: \u00d73: A; 3 -> end: B)"]),
    ("A{3} ; B ; A{3} ; B", ["0 -> 8: \u00d72: (begin -> 3: \u00d73: A; 3 -> end: B)"]),
    ("((A ; B){2} ; C){3}", ["0 -> 15: \u00d73: (begin -> 4: \u00d72: (begin -> 1: A; 1 -> end: B); 4 -> end: C)"]),
    ("(A ; B?){3} ; C", ["0 -> 6: \u00d73: (begin -> 1: A; begin -> end: A; 1 -> end: B)", "6 -> 7: C"]),
    ("(A ; B?){1,3} ; C", ["0 -> 6: \u00d71 to 3: (begin -> 1: A; begin -> end: A; 1 -> end: B)", "6 -> 7: C"]),
    ("(A ; (B OR C) AS x ; D){2}", ["0 -> 6: \u00d72: (begin -> 1: A; 1 -> 2: B or C / x; 2 -> end: D)"]),
    ("(A ;[<= 3] B){2}", ["0 -> 4: \u00d72: (begin -> 1: A (stores end of A := $time); 1 -> end: B[$time - A.end <= 3])"]),
    (
        "((A ; B) WITHIN 5){2} ; C",
        ["0 -> 4: \u00d72: (begin -> 1: A (stores start of A ; B := $time); 1 -> end: B[$time - (start of A ; B) <= 5])", "4 -> 5: C"],
    ),
    # What would be too late is asked from the first B on: the rounds that are alike begin there.
    (
        "((A ; B){3} WITHIN 5) ; C",
        [
            "0 -> 1: A (stores start of (A ; B){3} := $time)",
            "1 -> 5: \u00d72: (begin -> 2: B[$time - (start of (A ; B){3}) <= 5]; 2 -> end: A[$time - (start of (A ; B){3}) <= 5])",
            "5 -> 6: B[$time - (start of (A ; B){3}) <= 5]",
            "6 -> 7: C",
        ],
    ),
    # The first round is entered from two states.
    ("D? ; (A ; B){3}", ["0 -> 1: D", "0 -> 2: A", "1 -> 2: A", "2 -> 6: \u00d72: (begin -> 3: B; 3 -> end: A)", "6 -> 7: B"]),
    # nothing is a group here
    ("(A ; B)+ ; C", ["0 -> 1: A", "1 -> 2: B", "1 -> 3: B", "2 -> 1: A", "3 -> 4: C"]),
    ("A AS x ; B ; A AS y ; B", ["0 -> 1: A / x", "1 -> 2: B", "2 -> 3: A / y", "3 -> 4: B"]),
    ("A ; B ; A : B", ["0 -> 1: A", "1 -> 2: B", "2 -> 3: A", "3 -> 4: B"]),
]


@pytest.mark.parametrize(("pattern", "expected"), GROUPS)
def test_groups(pattern: str, expected: list[str]) -> None:
    drawn = diagram(automaton_of(f"SELECT * WHERE {pattern}"))
    waiting = "; {0} -> {0}: any event, not marked"
    said = [drawn.text(arc) for arc in drawn.arcs if not arc.waits]
    for state in map(str, range(50)):
        said = [text.replace(waiting.format(state), "") for text in said]
    assert said == expected


def test_rounds_of_nested_groups_are_said() -> None:
    said = dict(diagram(automaton_of("SELECT * WHERE ((A ; B{2} ; C){2} ; D){2,3}")).said_rounds())
    assert {state: said[state] for state in (1, 2, 4, 9, 10)} == {
        1: "round 1 of 2 in round 1 of up to 3",
        2: "round 1 of 2 in round 1 of up to 3",
        4: "after round 1 of 2 in round 1 of up to 3",
        9: "after round 1 of up to 3",
        10: "round 1 of 2 in round 2 of up to 3",
    }


def test_mermaid_and_dot_say_what_a_round_is() -> None:
    query = cepheid.query("SELECT * WHERE (A ; B){5}")
    assert query.draw("dot").splitlines()[7:] == [
        "  subgraph cluster_item1 {",
        '    label="\u00d75" style=rounded',
        "    item1_begin [shape=point]",
        "    item1_end [shape=point]",
        '    item1_begin -> 1 [label="A"]',
        '    1 -> 1 [style=dashed color=gray label=""]',
        '    1 -> item1_end [label="B"]',
        "  }",
        "  0 -> item1_begin",
        "  item1_end -> 10",
        '  item1_end -> item1_end [style=dashed color=gray label=""]',
        "}",
    ]
    assert query.draw("mermaid").splitlines()[6:] == [
        '  subgraph item1["\u00d75"]',
        "    item1_begin(( ))",
        "    s1((1))",
        "    item1_end(( ))",
        '    item1_begin -- "A" --> s1',
        "    s1 -.-> s1",
        '    s1 -- "B" --> item1_end',
        "  end",
        "  s0 --> item1_begin",
        "  item1_end --> s10",
        "  item1_end -.-> item1_end",
    ]


# ------------------------------------------------------------------------------------- a drawing has the words of its automaton

Step = tuple[object, object, str]

LETTERS = [word for length in (1, 2, 3, 5) for word in itertools.product("AB", repeat=length)]


def random_items(chance: random.Random) -> tuple[int, set[Step]]:
    """How many states there are, and links forward and to the same state that are A or B."""
    states = chance.randint(2, 7)
    steps: set[Step] = {(state, state + 1, chance.choice("AB")) for state in range(states - 1)}
    for _ in range(chance.randint(0, 4)):
        source = chance.randrange(states - 1)
        steps.add((source, chance.randint(max(source, 1), states - 1), chance.choice("AB")))
    return states, steps


def random_rounds(chance: random.Random) -> tuple[int, set[Step]]:
    """The same with a group in it: rounds of random links, which may be left early or entered again; w: the waiting loop of a state."""
    inner, count, before = chance.randint(1, 3), chance.randint(2, 4), chance.randint(0, 1)
    least = chance.randint(1, count)
    endless, skips = chance.random() < 0.3, chance.random() < 0.3
    size = inner + 1
    end = before + count * size + endless
    like = [(place, place + 1, chance.choice("ABC")) for place in range(size)]
    like += [(chance.randint(1, inner), chance.randint(1, inner), chance.choice("ABC")) for _ in range(chance.randint(0, 2))]
    like += [(0, size, chance.choice("ABC"))] * skips
    like += [(place, place, "w") for place in range(1, size + 1) if chance.random() < 0.7]
    steps: set[Step] = {(0, 1, "C")} if before else set()
    for number in range(count):
        begins = [before + number * size] + [before + count * size] * (endless and number == count - 1)
        last = number == count - 1 and not endless
        for source, target, letter in like:
            for begin in begins:
                own = begin if source == 0 else before + number * size + source
                ends = [] if target == size and last else [before + number * size + target]
                if letter == "w" and not ends:
                    continue
                exits = [end] * (target == size and letter != "w" and number + 1 >= least)
                steps.update((own, place, letter) for place in (*ends, *exits))
    states = end + 1
    if chance.random() < 0.7:
        steps |= {(end, end + 1, chance.choice("ABC")), *[(end, end, "w")] * (chance.random() < 0.5)}
        states += 1
    return states, steps


def automaton_with(states: int, steps: set[Step]) -> Automaton:
    """The automaton with such steps, from the first state to the last."""
    moves = [
        Transition(source, target) if letter == "w" else Transition(source, target, 1 << "ABC".index(letter), frozenset({"x"}))
        for source, target, letter in steps
    ]
    return Automaton(states, 0, frozenset({states - 1}), order(moves), Alphabet(tuple(Predicate(None, name) for name in "ABC")))


def written_out(drawn: Diagram, places: Sequence[set[object]], path: tuple[int, ...] = ()) -> Iterator[Step]:
    """The steps of a drawing with its counts written out. places: what each node stands for; inside a count there are places of its own."""
    for index, arc in enumerate(drawn.arcs):
        letters = ["w"] if arc.waits else [letter[0] for label in arc.labels for letter in label.condition.split(" or ")]
        count, sources, targets = arc.count, places[arc.source], places[arc.target]
        if count is None:
            yield from itertools.product(sources, targets, letters)
            continue
        last = count.most or count.least + 1
        for number in range(1, last + 1):
            own = (*path, index, number)
            begin: set[object] = {(*path, index, number - 1)} if number > 1 else sources
            end: set[object] = {own} if number < last or count.most is None else set()
            if number == last and count.most is None:
                begin = begin | {own}
            if number >= count.least:
                end = end | targets
            if count.round is None:
                yield from itertools.product(begin, end, letters)
            else:
                inside = [begin if node.initial else end if node.final else {(*own, place)} for place, node in enumerate(count.round.nodes)]
                yield from written_out(count.round, inside, own)
            if count.waits:
                yield own, own, "w"


def accepts(steps: set[Step], final: object, word: Sequence[str]) -> bool:
    front: set[object] = {0}
    for letter in word:
        front = {target for source, target, read in steps for state in front if source == state and read == letter}
    return final in front


def words(chance: random.Random, steps: set[Step], final: object) -> Iterator[tuple[str, ...]]:
    """Random words of an automaton, and such words with one letter changed."""
    for _ in range(60):
        state, word = 0, []
        while state != final and len(word) < 40:
            following = sorted((step for step in steps if step[0] == state), key=str)
            if not following:
                break
            _, state, letter = chance.choice(following)
            word.append(letter)
        yield tuple(word)
        if word:
            word[chance.randrange(len(word))] = chance.choice("ABCw")
            yield tuple(word)


@pytest.mark.parametrize("seed", range(300))
def test_a_drawing_has_the_words_of_its_automaton(seed: int) -> None:
    """On random automata, with counted items or groups, and nearly so: the same words lead from the start to the end, counts written out."""
    chance = random.Random(seed)
    states, steps = random_items(chance) if seed % 5 == 0 else random_rounds(chance)
    if seed % 5 > 2:
        source = chance.randrange(states - 1)
        steps.add((source, chance.randrange(1, states), chance.choice("ABC")))
    if seed % 5 == 4:
        steps.remove(chance.choice(sorted(steps, key=str)))
    drawn = diagram(automaton_with(states, steps))
    folded = set(written_out(drawn, [{node.states[0]} for node in drawn.nodes]))
    for word in [*LETTERS, *words(chance, steps, states - 1), *words(chance, folded, states - 1)]:
        assert accepts(steps, states - 1, word) == accepts(folded, states - 1, word), word


def test_most_random_groups_are_folded() -> None:
    """Else the test above would say little. The others begin with what precedes them, or are counted items."""
    found = [diagram(automaton_with(*random_rounds(random.Random(seed)))).rounds for seed in range(300)]
    assert sum(map(bool, found)) > 250


@pytest.mark.parametrize("seed", range(100))
def test_a_run_has_the_links_of_its_states(seed: int) -> None:
    """No link is lost or invented: a run written out with the states of its rounds has the links that its states have."""
    chance = random.Random(seed)
    states, steps = random_rounds(chance)
    if seed % 2:
        steps.add((chance.randrange(states - 1), chance.randrange(1, states), chance.choice("ABC")))
    found = tuple(links(automaton_with(states, steps)))
    part = Subgraph(tuple(range(states)), found, 0, frozenset({states - 1}))
    for run in runs(part):
        there = {(each.source, each.target, label) for each in found for label in each.shown}
        lasting = {(run.source, run.end, label) for each in run.links if each.source == run.source for label in each.shown}
        wanted = {step for step in there if run.states.intersection(step[:2]) or (run.least == 1 and step in lasting)}
        assert set(of_run(run)) == wanted
        assert run.states.isdisjoint({0, states - 1, run.source, run.end})


def of_run(run: Run) -> Iterator[tuple[int, int, Label]]:
    """The links of a run, but for waiting loops."""
    behind = run.between[0]
    for number, images in enumerate(run.rounds, 1):
        begins = {run.source if number == 1 else run.between[number - 2]}
        after = set(run.between[number - 1 : number])
        if number == len(run.rounds) and run.most is None:
            begins |= after
        ends = after | ({run.end} if number >= run.least else set())
        for link in run.links:
            sources = begins if link.source == run.source else {images[link.source]}
            targets = ends if link.target == behind else {images[link.target]}
            yield from itertools.product(sources, targets, link.shown)


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
    assert [str(label) for label in last.labels] == ["SELL[price > a.price AND $time - a.$time <= 30s] / b"]


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
