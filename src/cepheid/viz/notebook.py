"""A query as a notebook shows it: its text with colours, and its drawing.

Comes in: a `Query`. Goes out: HTML. The words are told apart by the lexer of `language.highlight`; without Pygments only keywords, texts and comments
are. Colours are those of the drawings, readable on a light and on a dark page.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from cepheid.errors import CepheidError
from cepheid.language.words import KEYWORDS
from cepheid.viz import svg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.query import Query

STYLES = {
    "Keyword": f"color:{svg.ACCENT};font-weight:bold",
    "Keyword.Type": f"color:{svg.COLOURS[2]}",
    "Literal.Number": f"color:{svg.COLOURS[2]}",
    "Literal.String": f"color:{svg.COLOURS[1]}",
    "Comment": f"color:{svg.INK};font-style:italic",
    "Name.Variable": f"color:{svg.COLOURS[3]}",
    "Name.Function": f"color:{svg.COLOURS[5]}",
    "Name.Builtin": f"color:{svg.COLOURS[5]}",
}
"""How the kinds of words look, by the names that Pygments has for them; a kind without a look has that of the kind around it."""

WORDS = re.compile(
    rf"(?P<Comment>--[^\n]*|/\*.*?\*/)|(?P<String>'(?:[^']|'')*')|`(?:[^`]|``)*`|\$\w+|(?P<Keyword>\b(?:{'|'.join(KEYWORDS)})\b)",
    re.IGNORECASE | re.DOTALL,
)
"""What is told apart without Pygments."""


def to_html(query: Query) -> str:
    """The query with its drawing; in its place why there is none, where it cannot be drawn."""
    try:
        picture = str(query.draw())
    except CepheidError as error:
        picture = f"<pre style='white-space:pre-wrap'>no drawing: {escape(str(error))}</pre>"
    args = f"<p>{escape(', '.join(f'{name} = {value!r}' for name, value in query.args.items()))}</p>" if query.args else ""
    return f"<div>{text_html(query.text)}{args}{picture}</div>"


def text_html(text: str) -> str:
    """The text of a query, highlighted."""
    spans = (f'<span style="{style}">{escape(word)}</span>' if style else escape(word) for style, word in _styled(text))
    return f"<pre style='white-space:pre-wrap'>{''.join(spans)}</pre>"


def _styled(text: str) -> Iterator[tuple[str, str]]:
    """Pieces of the text with their styles."""
    try:
        from cepheid.language.highlight import CeqlLexer
    except ImportError:
        yield from _plainly(text)
        return
    for _, kind, word in CeqlLexer().get_tokens_unprocessed(text):
        yield _style(str(kind).removeprefix("Token.")), word


def _style(kind: str) -> str:
    while kind not in STYLES and "." in kind:
        kind = kind.rpartition(".")[0]
    return STYLES.get(kind, "")


def _plainly(text: str) -> Iterator[tuple[str, str]]:
    """The same without Pygments."""
    end = 0
    for found in WORDS.finditer(text):
        yield "", text[end : found.start()]
        kind = found.lastgroup or ""
        yield _style("Literal.String" if kind == "String" else kind), found.group()
        end = found.end()
    yield "", text[end:]
