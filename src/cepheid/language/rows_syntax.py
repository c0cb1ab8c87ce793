"""The syntax tree of MATCH_RECOGNIZE: one class per construct of the clause. Constants and operators are those of `syntax`.

Names of pattern variables are as the standard folds them: in capitals unless they are written in quotes. A name in an expression may be that of a
variable or of a column, which is known when it is bound; so it keeps its spelling (`Name`). Equality ignores spans, so
``parse_rows(rows_text(tree)) == tree``.
"""

from __future__ import annotations

from enum import Enum

from cepheid.language.syntax import Duration, Expression, Node, Parameter
from cepheid.records import record


class Shown(Enum):
    """The rows of the result; the value is how the clause says it."""

    ONE_ROW = "ONE ROW PER MATCH"
    SHOW_EMPTY = "ALL ROWS PER MATCH"
    OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"


class Skip(Enum):
    """Where the next match may start; FIRST and LAST name a variable."""

    PAST_LAST_ROW = "PAST LAST ROW"
    TO_NEXT_ROW = "TO NEXT ROW"
    TO_FIRST = "TO FIRST"
    TO_LAST = "TO LAST"


class Semantics(Enum):
    """What a navigation or an aggregate sees: the match up to the current row, or all of it."""

    RUNNING = "RUNNING"
    FINAL = "FINAL"


@record
class Name(Node):
    """A name in an expression, as written; quoted: `"a b"` or a name in backticks, which is taken as it stands."""

    text: str
    quoted: bool = False


# ----------------------------------------------------------------------------------------------------------------------- patterns


@record
class RowPattern(Node):
    """Base of the nodes of PATTERN."""


@record
class Variable(RowPattern):
    """`A`: a row that is an A."""

    name: str


@record
class Concatenation(RowPattern):
    """`p q ..`, two or more."""

    items: tuple[RowPattern, ...]


@record
class Alternation(RowPattern):
    """`p | q | ..`, two or more, the preferred first."""

    operands: tuple[RowPattern, ...]


@record
class Quantified(RowPattern):
    """`p*`, `p+`, `p?`, `p{n,m}`; reluctant: with a `?` behind. maximum None: any number."""

    pattern: RowPattern
    minimum: int | Parameter
    maximum: int | Parameter | None
    reluctant: bool = False


@record
class Permutation(RowPattern):
    """`PERMUTE(p, q, ..)`: all of them in any order, the one that is written preferred."""

    operands: tuple[RowPattern, ...]


@record
class Exclusion(RowPattern):
    """`{- p -}`: its rows are left out of ALL ROWS PER MATCH."""

    pattern: RowPattern


@record
class Empty(RowPattern):
    """`()`."""


@record
class PartitionStart(RowPattern):
    """`^`: before the first row of the partition."""


@record
class PartitionEnd(RowPattern):
    """`$`: behind the last row of the partition."""


# -------------------------------------------------------------------------------------------------------------------- expressions


@record
class Reference(Expression):
    """`x`, `A.x`, `A.x.field`: a column, of the rows of a variable, a field inside it; which is which is known when it is bound."""

    names: tuple[Name, ...]


@record
class RowsOf(Expression):
    """`A.*` in `COUNT(A.*)`: the rows of a variable."""

    variable: Name


@record
class RowCall(Expression):
    """A function, a navigation or an aggregate: `PREV(A.x, 2)`, `FINAL SUM(DISTINCT A.x) FILTER (WHERE A.y > 1)`, `COUNT(*)`.

    The name is kept as written. semantics: None where neither RUNNING nor FINAL is written. where: the condition of FILTER.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    star: bool = False
    distinct: bool = False
    semantics: Semantics | None = None
    where: Expression | None = None


@record
class Array(Expression):
    """`ARRAY[a, b]`."""

    items: tuple[Expression, ...]


@record
class Cast(Expression):
    """`CAST(e AS type)`; type: a name in small letters, with the numbers of a decimal: `decimal(10,2)`."""

    operand: Expression
    type: str


# ------------------------------------------------------------------------------------------------------------------------- clause


@record
class Order(Node):
    """`column [ASC | DESC] [NULLS FIRST | NULLS LAST]`; nulls_first None: not said."""

    column: Name
    descending: bool = False
    nulls_first: bool | None = None


@record
class Measure(Node):
    """`expression AS name`."""

    expression: Expression
    name: Name


@record
class After(Node):
    """`AFTER MATCH SKIP ..`."""

    skip: Skip
    variable: str | None = None


@record
class Subset(Node):
    """`U = (A, B)`."""

    name: str
    variables: tuple[str, ...]


@record
class Define(Node):
    """`A AS condition`."""

    variable: str
    condition: Expression


@record
class RowClause(Node):
    """A whole clause. within: Flink's bound on the length of a match, in the order of the rows."""

    pattern: RowPattern
    partition_by: tuple[Name, ...] = ()
    order_by: tuple[Order, ...] = ()
    measures: tuple[Measure, ...] = ()
    shown: Shown = Shown.ONE_ROW
    after: After = After(Skip.PAST_LAST_ROW)
    within: Duration | Parameter | None = None
    subsets: tuple[Subset, ...] = ()
    defines: tuple[Define, ...] = ()
