"""The grammar's tables, made before: `grammar.tables` beside grammar.lark.

To compile the grammar takes half a second, to read its tables a tenth of that. The tables are those of one grammar and of one version of the parser
library, which the first line of the file names. With others the grammar is compiled, as it is to make the file (`python scripts/tables.py`).
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from lark import Lark

STARTS = ("query_start", "pattern_start", "condition_start", "window_start", "target_start", "duration_start")

FILE = "grammar.tables"


def read_grammar() -> str:
    """The text of grammar.lark."""
    return resources.files("cepheid.language").joinpath("grammar.lark").read_text(encoding="utf-8")


def parser_of(transformer: object, postlex: object) -> Lark:
    """The parser of the language, from the tables if they fit. transformer, postlex: as `Lark` takes them."""
    from lark import Lark

    found = stored()
    if found is None:
        return compiled(transformer=transformer, postlex=postlex)
    # What the library's own generated parsers call; it has no types.
    parser: Lark = cast("Any", Lark)._load_from_dict(*found, transformer=transformer, postlex=postlex)  # noqa: SLF001
    return parser


def compiled(**options: object) -> Lark:
    """The same, compiled from grammar.lark."""
    from lark import Lark

    return Lark(
        read_grammar(),
        parser="lalr",
        lexer="contextual",
        start=list(STARTS),
        keep_all_tokens=True,
        maybe_placeholders=False,
        **cast("Any", options),
    )


def stored() -> tuple[Any, Any] | None:
    """The tables, if they are of this grammar and of this version of the library; else, or without the file, None."""
    try:
        name, content = resources.files("cepheid.language").joinpath(FILE).read_bytes().split(b"\n", 1)
    except FileNotFoundError:
        return None
    return pickle.loads(zlib.decompress(content)) if name.decode() == identity() else None  # noqa: S301 - a file of this package


def packed() -> bytes:
    """The content of the file: a line that says of what, and the tables, which are numbers, texts, lists and dicts."""
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    tables = compiled().memo_serialize([TerminalDef, Rule])
    return identity().encode() + b"\n" + zlib.compress(pickle.dumps(tables, 5), 9)


def identity() -> str:
    """Of what tables are: the version of the library, and the grammar."""
    import lark

    return f"lark {lark.__version__}, grammar {hashlib.sha256(read_grammar().encode()).hexdigest()}"
