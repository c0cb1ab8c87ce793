"""The few elements of an SVG that drawings here are made of, their colours and how wide a text is.

Colours are middle tones, readable on a light and on a dark background: a drawing does not know its page, and has no background of its own. Texts use
the reader's monospaced font, so their widths are known without a font.
"""

from __future__ import annotations

import unicodedata
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.errors import InputError, SetupError

if TYPE_CHECKING:
    import os

INK = "#787f89"
ACCENT = "#3d7fc4"
COLOURS = (ACCENT, "#c46a1b", "#2e8b57", "#b0578d", "#8a7a1f", "#7a6fc9", "#c4504b", "#1f8a99")
"""For what has to be told apart, in order; contrast with white and with black is at least 3."""

TITLE_SIZE, TITLE_HEIGHT, TITLE_BASELINE = 14.0, 24.0, 12.0
"""Of the line above a drawing: its letters, what it takes, and where they stand in that."""

FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
ADVANCE = 0.61
"""Width of a character of a monospaced font, in font sizes; of the usual ones none is wider."""


class Drawing(str):
    """The text of a drawing; a notebook shows an SVG as the picture that it is."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        return str(self) if self.startswith("<svg") else None

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> None:
        """Write the drawing to a file: as a picture where its name ends in `.png`, else as its text, in UTF-8.

        scale: pixels of a PNG for each of the SVG. Its background is transparent. Raises SetupError for a PNG without the extra `png`, InputError for
        a PNG of what is no SVG.
        """
        place = Path(path)
        if place.suffix.lower() == ".png":
            place.write_bytes(self._png(scale))
        else:
            place.write_text(self.rstrip("\n") + "\n", encoding="utf-8")

    def _png(self, scale: float) -> bytes:
        """The drawing as PNG."""
        if self._repr_svg_() is None:
            raise InputError("only an SVG can be a PNG, and this drawing is none", help='draw("svg") is one')
        try:
            from vl_convert import svg_to_png
        except ImportError:
            raise SetupError(
                "a PNG needs vl-convert-python, which is not installed",
                help=('pip install "cepheid[png]"', "or save it as .svg, which needs nothing"),
            ) from None
        png: bytes = svg_to_png(str(self), scale=scale)
        return png


def text_width(text: str, size: float) -> float:
    """Width of one line in pixels at a font size; East Asian wide characters count twice, combining ones not at all."""
    cells = sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return cells * ADVANCE * size


def printable(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return "".join(c if c.isprintable() else " " for c in text)


def escaped(text: str) -> str:
    """The text as XML."""
    return escape(printable(text))


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def element(name: str, content: str = "", **attributes: object) -> str:
    """One element; underscores in attribute names are hyphens, numbers are rounded, content is XML already."""
    parts = [name]
    for key, value in attributes.items():
        shown = number(value) if isinstance(value, int | float) and "opacity" not in key else str(value)
        parts.append(f'{key.rstrip("_").replace("_", "-")}="{escape(shown)}"')
    opened = " ".join(parts)
    return f"<{opened}>{content}</{name}>" if content else f"<{opened}/>"


def title(text: str) -> str:
    """What a pointer on an element, and a screen reader, say."""
    return element("title", escaped(text))


def words(x: float, y: float, content: str, *, size: float, anchor: str = "middle", fill: str = INK, **more: object) -> str:
    """One line of text with its baseline at y."""
    return element("text", escaped(content), x=x, y=y, font_size=size, text_anchor=anchor, fill=fill, **more)


class Heading:
    """A line above a drawing, or none. height: what it takes; width: of its text."""

    def __init__(self, text: str | None) -> None:
        self._text = text or ""
        self.height, self.width = (TITLE_HEIGHT, text_width(text, TITLE_SIZE)) if text else (0.0, 0.0)

    def body(self, margin: float) -> list[str]:
        """Its elements; margin: of the drawing."""
        if not self._text:
            return []
        return [words(margin, margin + TITLE_BASELINE, self._text, size=TITLE_SIZE, anchor="start", font_weight="bold")]


def document(width: float, height: float, *, name: str, description: str, body: list[str]) -> Drawing:
    """A whole SVG: as wide as it is, never wider than its page, with a name and a description for who cannot see it.

    Its height follows from the view box, also where it is made narrower. `height: auto` would say the same to a browser, and nothing to readers
    that take numbers alone.
    """
    inside = [title(name), element("desc", escaped(description)), *body]
    whole = element(
        "svg",
        "\n" + "\n".join(inside) + "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        style="max-width:100%",
        role="img",
        aria_label=printable(name),
        font_family=FONT,
        fill="none",
        stroke_linecap="round",
    )
    return Drawing(whole)
