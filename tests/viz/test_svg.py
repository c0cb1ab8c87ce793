"""What both kinds of drawings keep to, so that every reader of SVG shows them: browsers, and those that know attributes and little CSS."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

import cepheid
from cepheid.viz import timeline

SVG = "{http://www.w3.org/2000/svg}"
QUERY = cepheid.query("SELECT * WHERE (A+ AS x ; B AS y FILTER y[v > 3 OR w LIKE 'abc%' AND u BETWEEN 4 AND 17 AND t < 12])+ ; C")
EVENTS = [{"type": name, "ts": time} for time, name in enumerate("ABAB")]
MATCHES = cepheid.query("SELECT * WHERE A AS x ; B AS y").run(EVENTS)
DRAWINGS = {"automaton": QUERY.draw(), "timeline": timeline(MATCHES), "no matches": timeline(MATCHES[:0])}
EVERY_DRAWING = pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)


@EVERY_DRAWING
def test_the_size_is_in_numbers_and_no_style_undoes_it(drawing: str) -> None:
    root = ET.fromstring(drawing)
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert (left, top, width) == (0, 0, float(root.attrib["width"]))
    assert float(root.get("height", height)) == height > 0
    assert root.get("style") in {None, "max-width:100%"}
    assert not any("style" in element.attrib or element.tag == f"{SVG}style" for element in root.iter() if element is not root)


@EVERY_DRAWING
def test_colours_are_plain_and_in_attributes(drawing: str) -> None:
    for element in ET.fromstring(drawing).iter():
        paints = [element.attrib[name] for name in ("fill", "stroke") if name in element.attrib]
        assert all(re.fullmatch("none|#[0-9a-f]{6}", paint) for paint in paints)
        if element.tag in {f"{SVG}text", f"{SVG}circle", f"{SVG}path"}:
            assert set(paints) - {"none"}, "an element without a colour of its own has none"


@EVERY_DRAWING
def test_no_text_needs_the_width_of_the_text_before_it(drawing: str) -> None:
    assert not list(ET.fromstring(drawing).iter(f"{SVG}tspan"))
    assert all({"x", "y", "text-anchor"} <= set(text.attrib) for text in ET.fromstring(drawing).iter(f"{SVG}text"))
