"""Random MATCH_RECOGNIZE clauses and rows for them.

A generator must have all of the pattern: alternation, groups, every quantifier, greedy and reluctant, around parts that may be empty and inside each
other, anchors anywhere, PERMUTE, exclusion, SUBSET, every SKIP. Conditions are columns of the rows, TRUE, FALSE or NULL; some variables have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.language import rows_syntax as rows
from cepheid.language.rows_syntax import Shown, Skip

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

VARIABLES = ("A", "B", "C", "D")

BOUNDS: tuple[tuple[int, int | None], ...] = ((0, None), (1, None), (0, 1), (2, 2), (1, 2), (0, 2), (2, None), (1, 3), (3, 3))


def some_pattern(dice: random.Random, depth: int) -> rows.RowPattern:
    """Any pattern, so deep at most."""
    if not depth or dice.random() < 0.2:
        if dice.random() < 0.85:
            return rows.Variable(dice.choice(VARIABLES))
        return dice.choices((rows.Empty(), rows.PartitionStart(), rows.PartitionEnd()), (2, 1, 1))[0]

    def inner() -> rows.RowPattern:
        return some_pattern(dice, depth - 1)

    kinds: dict[str, Callable[[], rows.RowPattern]] = {
        "concatenation": lambda: rows.Concatenation(tuple(inner() for _ in range(dice.randint(2, 3)))),
        "alternation": lambda: rows.Alternation(tuple(inner() for _ in range(dice.randint(2, 3)))),
        "quantified": lambda: rows.Quantified(inner(), *dice.choice(BOUNDS), reluctant=dice.random() < 0.4),
        "permutation": lambda: rows.Permutation(tuple(inner() for _ in range(dice.randint(2, 3)))),
        "variables": lambda: rows.Permutation(tuple(rows.Variable(dice.choice(VARIABLES)) for _ in range(dice.randint(2, 4)))),
        "exclusion": lambda: rows.Exclusion(inner()),
    }
    return kinds[dice.choices(list(kinds), (6, 4, 6, 1, 1, 1))[0]]()


def some_clause(dice: random.Random, *, depth: int = 3) -> rows.RowClause:
    """Any clause over the columns of `some_rows`: its matches are shown whole, by the number of each row."""
    pattern = some_pattern(dice, depth)
    used = sorted({part.name for part in _parts(pattern) if isinstance(part, rows.Variable)})
    subsets: tuple[rows.Subset, ...] = ()
    if used and dice.random() < 0.3:
        subsets = (rows.Subset("U", tuple(dice.sample(used, dice.randint(1, len(used))))),)
    named = [*used, *(subset.name for subset in subsets)]
    skip = dice.choice(list(Skip)) if named else dice.choice((Skip.PAST_LAST_ROW, Skip.TO_NEXT_ROW))
    variable = dice.choice(named) if skip in {Skip.TO_FIRST, Skip.TO_LAST} else None
    return rows.RowClause(
        pattern,
        partition_by=(rows.Name("k"),) * dice.choice((0, 1)),
        order_by=(rows.Order(rows.Name("t")),),
        measures=(
            rows.Measure(rows.RowCall("MATCH_NUMBER"), rows.Name("number")),
            rows.Measure(rows.RowCall("CLASSIFIER"), rows.Name("label")),
        ),
        shown=dice.choice((Shown.ONE_ROW, Shown.SHOW_EMPTY, Shown.OMIT_EMPTY)),
        after=rows.After(skip, variable),
        subsets=subsets,
        defines=tuple(rows.Define(name, rows.Reference((rows.Name(name.lower(), quoted=True),))) for name in used if dice.random() < 0.9),
    )


def _parts(pattern: rows.RowPattern) -> list[rows.RowPattern]:
    return [pattern, *(part for child in pattern.children() if isinstance(child, rows.RowPattern) for part in _parts(child))]


def some_rows(dice: random.Random, *, longest: int = 9) -> pa.Table:
    """Rows of two partitions, one with the key NULL, with a column for each variable."""
    count = dice.randint(0, longest)
    likely = dice.choice((0.3, 0.6, 0.9))
    chances = (likely, 0.9 - 0.9 * likely, 0.1 - 0.1 * likely)
    columns = {name.lower(): dice.choices((True, False, None), chances, k=count) for name in VARIABLES}
    kinds = {"k": pa.int64(), "t": pa.int64(), **dict.fromkeys(columns, pa.bool_())}
    values = {"k": [dice.choice((1, None)) for _ in range(count)], "t": [dice.randint(0, 3) for _ in range(count)], **columns}
    return pa.table({name: pa.array(values[name], kind) for name, kind in kinds.items()})
