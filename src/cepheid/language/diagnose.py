"""From a failed parse to a message: what was expected in words, what was found, and a way out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cepheid.errors import QuerySyntaxError, Span

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput


def check_characters(text: str) -> None:
    """Refuse control characters and lone surrogates anywhere in the text.

    Raises:
        QuerySyntaxError: names the first of them.
    """
    found = re.search("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]", text)
    if found is not None:
        raise QuerySyntaxError(f"a query cannot hold the character U+{ord(found[0]):04X}", span=Span(*found.span()))


def syntax_error(text: str, error: UnexpectedInput) -> QuerySyntaxError:
    """The error of Cepheid for an error of the parser."""
    found: object = error.pos_in_stream
    position = found if isinstance(found, int) and found >= 0 else len(text)
    return QuerySyntaxError("the text does not parse", text=text, span=Span(position, position + 1))
