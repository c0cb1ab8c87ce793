"""Write docs/limits.md: every limit that the source names, with its value and what it is about.

A limit is a constant of a module whose name begins with MAX_ or MOST_, or ends in _LIMIT; what it is about is the first sentence of the docstring
below it. A test compares the page with the source, and asks that docs/operations.md says of each limit that an error names what to do.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/cepheid"
PAGE = ROOT / "docs/limits.md"
NAME = re.compile(r"(MAX|MOST)_[A-Z_]+|[A-Z_]+_LIMIT")
ROUND = 1 << 14
"""From here on a power of two is written as one."""

HEAD = """# Every limit in the source

A pattern can ask for more than any machine has. So each limit has a name, and nothing is cut off in
silence. [Operations](operations.md#limits) says what to do at those that an error names, and how to
raise them. The others bound what the code does inside, such as how much it reads at once.
`scripts/limits.py` makes this page from the source.
"""


@dataclass(frozen=True)
class Limit:
    """A named limit: its module and name, its value as code, and what it is about."""

    module: str
    name: str
    value: ast.expr
    about: str


def limits() -> list[Limit]:
    """All limits of the source, in the order of their modules."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for node, after in zip(body, [*body[1:], None], strict=True):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and NAME.fullmatch(target.id) and node.value is not None:
                found.append(Limit(module, target.id, node.value, _sentence(after)))
    return found


def named_in_errors() -> set[str]:
    """The names of the limits that messages give, in parentheses or with their module."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    return {limit.name for limit in limits() if f"({limit.name})" in text or f".{limit.name} is the limit" in text}


def _sentence(node: ast.stmt | None) -> str:
    """The first sentence of a docstring, on one line."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
        return ""
    text = " ".join(node.value.value.split()).replace("|", "\\|")
    return re.split(r"(?<=[.:;]) ", text)[0].rstrip(".:;")


def shown(value: ast.expr) -> str:
    """A value as readers know it: 20,000, or 2^30; as code where it hangs on others."""
    try:
        number = eval(compile(ast.Expression(value), "<limit>", "eval"), {"__builtins__": {}})  # noqa: S307 - a constant of our own source
    except NameError:
        return f"`{ast.unparse(value)}`"
    for power, suffix in ((number, ""), (number + 1, " - 1")):
        if isinstance(power, int) and power >= ROUND and power & (power - 1) == 0:
            return f"2^{power.bit_length() - 1}{suffix}"
    return f"{number:,}"


def page() -> str:
    """The text of the page: first the limits that an error names, then the others."""
    named = named_in_errors()
    parts = [HEAD]
    for title, is_named in (("Those that an error names", True), ("Those that no error names", False)):
        parts.append(f"\n## {title}\n\n| limit | value | of what |\n|---|---|---|\n")
        chosen = (limit for limit in limits() if (limit.name in named) == is_named)
        parts += [f"| `{limit.module}.{limit.name}` | {shown(limit.value)} | {limit.about} |\n" for limit in chosen]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"limits: {len(limits())} in {PAGE}\n")
