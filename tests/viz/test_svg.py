"""What both kinds of drawings keep to, so that every reader of SVG shows them: browsers, and those that know attributes and little CSS."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import cepheid
from cepheid.viz import svg, timeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
QUERY = cepheid.query("SELECT * WHERE (A+ AS x ; B AS y FILTER y[v > 3 OR w LIKE 'abc%' AND u BETWEEN 4 AND 17 AND t < 12])+ ; C")
EVENTS = [{"type": name, "ts": time} for time, name in enumerate("ABAB")]
MATCHES = cepheid.query("SELECT * WHERE A AS x ; B AS y").run(EVENTS)
COUNTED = cepheid.query("SELECT * WHERE A{5} AS x ; " + " ; ".join(f"B{number} AS y{number}" for number in range(12)) + " WITHIN 5m")
DRAWINGS = {
    "automaton": QUERY.draw(),
    "counted and wrapped": COUNTED.draw(),
    "timeline": timeline(MATCHES),
    "from the start": timeline(MATCHES, align="start"),
    "no matches": timeline(MATCHES[:0]),
}
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
        if element.tag in {f"{SVG}text", f"{SVG}circle", f"{SVG}path", f"{SVG}rect"}:
            assert set(paints) - {"none"}, "an element without a colour of its own has none"


@EVERY_DRAWING
def test_no_text_needs_the_width_of_the_text_before_it(drawing: str) -> None:
    assert not list(ET.fromstring(drawing).iter(f"{SVG}tspan"))
    assert all({"x", "y", "text-anchor"} <= set(text.attrib) for text in ET.fromstring(drawing).iter(f"{SVG}text"))


def luminance(colour: str) -> float:
    """The relative luminance of #rrggbb (WCAG 2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    dark, light = sorted(map(luminance, (first, second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("page", ["#ffffff", "#1e1e1e"], ids=["light", "dark"])
def test_texts_are_readable_on_light_and_on_dark_pages(page: str) -> None:
    assert contrast(svg.INK, page) > 3.9
    assert contrast(svg.ACCENT, page) > 3.9
    assert all(contrast(colour, page) >= 3 for colour in svg.COLOURS)


@EVERY_DRAWING
def test_texts_are_not_pale(drawing: str) -> None:
    assert not any("opacity" in text.attrib for text in ET.fromstring(drawing).iter(f"{SVG}text"))


# ------------------------------------------------------------------------------------------------------------- programs that show SVG


def pixels(png: bytes) -> tuple[int, int, int]:
    """Width, height, and how many different bytes the picture's data has: a blank picture has a few."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(png[place : place + 4], "big") for place in (16, 20))
    data, place = b"", 8
    while place < len(png):
        length = int.from_bytes(png[place : place + 4], "big")
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += 12 + length
    return width, height, len(set(zlib.decompress(data)))


def chromium(source: Path, target: Path) -> None:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={target.parent / 'profile'}"]
    subprocess.run(
        [program, *flags, "--window-size=1000,600", f"--screenshot={target}", source.as_uri()], check=True, capture_output=True, timeout=120
    )


def librsvg(source: Path, target: Path) -> None:
    program = shutil.which("rsvg-convert")
    if program is None:
        pytest.skip("there is no rsvg-convert (librsvg) on this machine")
    subprocess.run([program, "--output", str(target), str(source)], check=True, capture_output=True, timeout=60)


def cairo(source: Path, target: Path) -> None:
    cairosvg = pytest.importorskip("cairosvg", reason="cairosvg is not installed")
    cairosvg.svg2png(url=str(source), write_to=str(target))


@pytest.mark.parametrize("program", [chromium, librsvg, cairo], ids=["Chromium", "librsvg", "cairosvg"])
@pytest.mark.parametrize("name", ["counted and wrapped", "from the start"])
def test_programs_show_it(name: str, program: Callable[[Path, Path], None], tmp_path: Path) -> None:
    source, target = tmp_path / "drawing.svg", tmp_path / "drawing.png"
    source.write_text(DRAWINGS[name], encoding="utf-8")
    program(source, target)
    width, height, different = pixels(target.read_bytes())
    assert different > 60, "what it shows is blank"
    if program is not chromium:
        *_, drawn_width, drawn_height = map(float, ET.fromstring(DRAWINGS[name]).attrib["viewBox"].split())
        assert (width, height) == (pytest.approx(drawn_width, abs=1), pytest.approx(drawn_height, abs=1))


# --------------------------------------------------------------------------------------------------------------------------- files


def test_a_drawing_is_saved_as_it_is(tmp_path: Path) -> None:
    for drawing, name in ((DRAWINGS["timeline"], "a.svg"), (QUERY.draw("dot"), "a.dot")):
        drawing.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").rstrip("\n") == drawing.rstrip("\n")


def test_a_png_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(cepheid.SetupError, match="a PNG needs vl-convert-python") as error:
        DRAWINGS["timeline"].save(tmp_path / "a.png")
    assert error.value.help[0] == 'pip install "cepheid[png]"'
    with pytest.raises(cepheid.InputError, match="only an SVG can be a PNG"):
        QUERY.draw("dot").save(tmp_path / "a.PNG")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["counted and wrapped", "timeline"])
def test_a_png_is_the_picture(name: str, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed (the extra `png`)")
    DRAWINGS[name].save(tmp_path / "a.png", scale=1)
    width, height, different = pixels((tmp_path / "a.png").read_bytes())
    *_, drawn_width, drawn_height = map(float, ET.fromstring(DRAWINGS[name]).attrib["viewBox"].split())
    assert (width, height) == (pytest.approx(drawn_width, abs=1), pytest.approx(drawn_height, abs=1))
    assert different > 60
