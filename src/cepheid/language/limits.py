"""The limits on a query text and its tree, and the checks that enforce them.

With them no text, however hostile, takes seconds or much memory, and all later code can safely recurse over a tree: no
tree that parses is deeper than `MAX_NESTING` (parentheses that leave no node count too).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.errors import LimitError, Span

if TYPE_CHECKING:
    from cepheid.language.syntax import Node

MAX_TEXT = 1_000_000
"""Characters of a query text."""

MAX_SYMBOLS = 20_000
"""Words, numbers and signs of a query text."""

MAX_NODES = 10_000
"""Nodes of a syntax tree."""

MAX_NESTING = 100
"""Levels of a syntax tree, and of brackets in a text."""

MAX_DIGITS = 38
"""Digits of a number: those of the widest decimal type of Arrow and Spark."""

MAX_COUNT = 2**63 - 1
"""Largest number of events, repetitions or matches: 64 bits."""

MAX_LIST = 10_000
"""Values of a list that is given as a parameter: as many as a tree has nodes."""

FLATTER = (
    "join several FILTER conditions with AND, leave out parentheses that change nothing, and split long sums by parentheses in the middle"
)


def text_limit(length: int) -> LimitError:
    """The error for a text of `length` characters."""
    return LimitError(
        f"the query text has {length:,} characters; the limit is {MAX_TEXT:,} (MAX_TEXT)",
        help="put values into parameters (`:name`), and long lists into the data",
    )


def symbol_limit(span: Span) -> LimitError:
    """The error for a text with more than `MAX_SYMBOLS` words and signs, seen at `span`."""
    return LimitError(
        f"the query has more than {MAX_SYMBOLS:,} words and signs (MAX_SYMBOLS)",
        help="split the query into several, or move long lists into the data",
        span=span,
    )


def nesting_limit(span: Span) -> LimitError:
    """The error for a construct that lies deeper than `MAX_NESTING`, at `span`."""
    return LimitError(f"the query nests deeper than {MAX_NESTING} levels (MAX_NESTING)", help=FLATTER, span=span)


def check_size(tree: Node) -> None:
    """Check the number of nodes and the depth of `tree`.

    Raises:
        LimitError: more than `MAX_NODES` nodes, or one that lies deeper than `MAX_NESTING`.

    Takes time linear in the number of nodes, and does not recurse.
    """
    pending: list[tuple[Node, int]] = [(tree, 1)]
    count = 0
    while pending:
        node, depth = pending.pop()
        count += 1
        if depth > MAX_NESTING:
            raise nesting_limit(node.span)
        if count > MAX_NODES:
            raise LimitError(
                f"the query has more than {MAX_NODES:,} nodes (MAX_NODES)",
                help="split the query into several, or move long lists into the data",
                span=node.span,
            )
        pending += [(child, depth + 1) for child in node.children()]
