"""MATCH_RECOGNIZE bound to the columns of a table: every name, type and number of a clause resolved.

Comes in: a clause as parsed, and the columns. Goes out: a `rows.RowPlan`. Expressions are bound as those of queries (`ExpressionBinder`), but for
names, navigations and aggregates, and for NULL: SQL's conditions are TRUE, FALSE or unknown. So each is bound by what is asked: `condition` gives
what holds where it is TRUE, `contrary` where it is FALSE, both of comparisons that are false on NULL. NOT exchanges the two; nothing else knows of a
third value. A condition whose value is asked for is TRUE where the one holds, FALSE where the other does, else NULL.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import quoted
from cepheid.language import rows_syntax as written
from cepheid.language import syntax
from cepheid.language.rows_printer import name_text, variable_text
from cepheid.language.syntax import NO_SPAN
from cepheid.logical import functions, parameters, times, types
from cepheid.logical.context import Context, suggestion
from cepheid.logical.expressions import ExpressionBinder
from cepheid.logical.folding import fold
from cepheid.logical.plan import Apply, Expression, Field, Literal
from cepheid.logical.rows import AGGREGATES, Aggregate, Classifier, MatchNumber, Navigate, OrderKey, RowMeasure, RowPlan
from cepheid.logical.scopes import attribute
from cepheid.logical.types import BOOL, DOUBLE, INT64, NULL, TEXT, Mismatch, canonical, describe, type_of
from cepheid.records import record
from cepheid.schema import EventSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from cepheid.errors import BindError, Span
    from cepheid.logical.rows import Owner

MAX_OFFSET = 1_000_000
"""The greatest number of rows that PREV, NEXT, FIRST and LAST can step."""

SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in AGGREGATES},
        "any_value": "arbitrary",
        "collect_list": "array_agg",
        "every": "bool_and",
        "stddev_samp": "stddev",
    }
)
"""Every spelling of an aggregate, in small letters."""

NAVIGATIONS = ("first", "last", "prev", "next")

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "lag": "write PREV(x), or PREV(x, 2)",
        "lead": "write NEXT(x), or NEXT(x, 2)",
        "first_value": "write FIRST(A.x)",
        "last_value": "write LAST(A.x)",
        "nth_value": "write FIRST(A.x, 2), which is the third",
        "match_sequence_number": "number the rows of the result: with ALL ROWS PER MATCH, COUNT(*) counts them",
        "match_rowtime": "write LAST(ts), of the column of times",
        "match_proctime": "there is no processing time: write LAST(ts), of the column of times",
        "listagg": "write ARRAY_AGG(A.x)",
        "string_agg": "write ARRAY_AGG(A.x)",
        "count_if": "write COUNT(*) FILTER (WHERE ..)",
        "sum_if": "write SUM(A.x) FILTER (WHERE ..)",
    }
)
"""Functions of other systems, in small letters, and what is written here."""

RESERVED = frozenset({"AND", "OR", "NOT", "AS", "THEN"})
"""Words that are no variables without quotes: they were meant otherwise."""


def bind_rows(clause: written.RowClause, columns: pa.Schema, *, args: Mapping[str, object] | None = None, text: str = "") -> RowPlan:
    """A clause over the columns of a table.

    args: the values of parameters. text: the clause, for messages.

    Raises BindError for what does not fit, LimitError past a limit of names and numbers. Linear in the clause.
    """
    context = Context(_schema(clause, columns), {} if args is None else args, text)
    names = _Names(context, clause, {name for name in columns.names if columns.names.count(name) > 1})
    measures = tuple(_measure(context, names, each) for each in clause.measures)
    conditions = {each.variable: RowBinder(context, names, define=True).condition(each.condition) for each in clause.defines}
    plan = RowPlan(
        columns=tuple((each.name, each.type) for each in columns),
        partition_by=names.keys(clause.partition_by),
        order_by=tuple(_order(names, each) for each in clause.order_by),
        measures=measures,
        shown=clause.shown,
        skip=clause.after.skip,
        resume=names.resume(clause.after),
        pattern=_pattern(context, clause.pattern),
        within=None if clause.within is None else _within(context, clause, clause.within),
        variables=names.variables,
        unions=MappingProxyType(names.unions),
        conditions=MappingProxyType(conditions),
        text=text,
    )
    _check_output(context, clause, plan)
    return plan


def _schema(clause: written.RowClause, columns: pa.Schema) -> EventSchema:
    """The columns as attributes; the first of ORDER BY is the time, for WITHIN."""
    first = clause.order_by[0].column.text if clause.order_by else None
    known = {name.lower(): name for name in columns.names}
    time = None if first is None else first if first in columns.names else known.get(first.lower())
    kind = None if time is None else columns.field(time).type
    is_time = kind is not None and (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind))
    return EventSchema({each.name: each.type for each in columns}, stream="rows", time_column=time if is_time else None)


def _order(names: _Names, order: written.Order) -> OrderKey:
    nulls_first = not order.descending if order.nulls_first is None else order.nulls_first
    return OrderKey(names.compared(order.column, "ORDER BY"), order.descending, nulls_first)


def _measure(context: Context, names: _Names, measure: written.Measure) -> RowMeasure:
    bound = RowBinder(context, names).value(measure.expression)
    kind = type_of(bound)
    if kind == NULL:
        bound, kind = types.convert(bound, INT64), INT64
    return RowMeasure(measure.name.text, bound, kind)


def _within(context: Context, clause: written.RowClause, length: syntax.Duration | syntax.Parameter) -> int:
    """The bound of WITHIN: what is less than it fits."""
    if clause.order_by and clause.order_by[0].descending:
        raise context.error("WITHIN bounds how much later a row is, and ORDER BY goes back in time", length.span, "order by it ascending")
    if context.schema.time_column is None:
        raise context.error(
            "WITHIN bounds the first column of ORDER BY, which is no column of times or whole numbers",
            length.span,
            "write ORDER BY with a timestamp, a date or an integer first",
        )
    steps = times.steps(context, length, what="WITHIN")
    assert steps is not None, "parameters have values here"
    if steps <= 0:
        raise context.error("no row is less than 0 from the first one", length.span, "give WITHIN a length above 0")
    return math.ceil(steps)


def _check_output(context: Context, clause: written.RowClause, plan: RowPlan) -> None:
    """The result has columns, no two of one name, and every row if it is to have those without a match."""
    excluded = next((each for each in _parts(clause.pattern) if isinstance(each, written.Exclusion)), None)
    if excluded is not None and plan.shown is written.Shown.UNMATCHED:
        raise context.error(
            "rows are left out by {- -}, and WITH UNMATCHED ROWS shows all", excluded.span, "leave {- -} out, or WITH UNMATCHED ROWS"
        )
    if not plan.output:
        raise context.error(
            "the result has no columns", clause.place("pattern"), "name one in MEASURES, or write ALL ROWS PER MATCH for those of the rows"
        )
    seen: set[str] = set()
    places = {measure.name.text: measure.name.span for measure in clause.measures}
    for name in plan.output:
        if name in seen:
            there = "a column of the rows has it, too" if name in dict(plan.columns) else "two measures have it"
            raise context.error(
                f"two columns of the result are called `{name}`: {there}", places.get(name), "give the measure another name"
            )
        seen.add(name)


# ----------------------------------------------------------------------------------------------------------------- names, pattern


class _Names:
    """What the names of a clause are: columns, variables and unions of these."""

    def __init__(self, context: Context, clause: written.RowClause, repeated: Collection[str]) -> None:
        self.context = context
        self.repeated = repeated
        self.variables = tuple(dict.fromkeys(each.name for each in _variables(clause.pattern)))
        self.unions: dict[str, frozenset[str]] = {}
        for each in _variables(clause.pattern):
            if each.name in RESERVED and context.text[each.span.start : each.span.end].upper() == each.name:
                help_ = (
                    "an alternative is written `|`: PATTERN (A | B)"
                    if each.name == "OR"
                    else f'a variable of this name is written "{each.name}"'
                )
                raise context.error(f"`{each.name}` is no variable", each.span, help_)
        for subset in clause.subsets:
            self._add(subset)
        defined: set[str] = set()
        for define in clause.defines:
            name, place = define.variable, define.place("variable")
            if name in defined:
                raise context.error(f"`{name}` is defined twice", place, "join the two conditions with AND, or with OR")
            defined.add(name)
            if name in self.unions:
                raise context.error(f"`{name}` is a SUBSET: its rows are those of its variables", place, "define these instead")
            if name not in self.variables:
                raise self.unknown(name, place, "the pattern has")

    def _add(self, subset: written.Subset) -> None:
        name, place = subset.name, subset.place("name")
        if name in self.variables or name in self.unions:
            what = "a variable of the pattern" if name in self.variables else "a SUBSET already"
            raise self.context.error(f"`{name}` is {what}", place, "give the SUBSET another name")
        for number, variable in enumerate(subset.variables):
            place = subset.place("variables", number)
            if variable in self.unions:
                raise self.context.error(f"`{variable}` is a SUBSET, and a SUBSET has variables of the pattern alone", place, "list these")
            if variable not in self.variables:
                raise self.unknown(variable, place, "the pattern has")
        self.unions[name] = frozenset(subset.variables)

    def unknown(self, name: str, place: Span, what: str) -> BindError:
        """The error for a variable that there is not."""
        return self.context.error(
            f"`{variable_text(name)}` is no variable of the pattern", place, *suggestion(name, self.variables, what=what)
        )

    def owner(self, name: written.Name) -> Owner:
        """The variables of a name, None where it is none."""
        folded = name.text if name.quoted else name.text.upper()
        return self.unions.get(folded) or (frozenset({folded}) if folded in self.variables else None)

    def resume(self, after: written.After) -> frozenset[str]:
        """The variables of AFTER MATCH SKIP TO."""
        if after.variable is None:
            return frozenset()
        found = self.owner(written.Name(after.variable, quoted=True))
        if found is None:
            raise self.unknown(after.variable, after.place("variable"), "the pattern has")
        return found

    def keys(self, names: Sequence[written.Name]) -> tuple[str, ...]:
        """The columns of PARTITION BY, each once."""
        found: list[str] = []
        for name in names:
            column = self.compared(name, "PARTITION BY")
            if column in found:
                raise self.context.error(f"`{column}` is named twice in PARTITION BY", name.span, "name it once")
            found.append(column)
        return tuple(found)

    def compared(self, name: written.Name, what: str) -> str:
        """A column whose values are compared; raises BindError for lists, structs and other nested types."""
        column = self.column(name)
        kind = self.context.schema.attributes[column]
        if canonical(kind) is None:
            raise self.context.error(f"{what} compares values, and `{column}` is {kind}", name.span, "add a column of what is compared")
        return column

    def column(self, name: written.Name) -> str:
        """The column of a name: this one, else the only one that is the same without regard to case, unless it is quoted."""
        columns = self.context.schema.attributes
        if name.text in self.repeated:
            raise self.context.error(f"several columns are called `{name.text}`", name.span, "rename them in the input")
        if name.text in columns:
            return name.text
        alike = [] if name.quoted else [column for column in columns if column.lower() == name.text.lower()]
        if len(alike) == 1:
            return alike[0]
        if alike:
            raise self.context.error(
                f"`{name.text}` may be one of several columns: {quoted(alike)}",
                name.span,
                f'write the one that you mean in quotes: "{alike[0]}"',
            )
        if name.text.upper() in {"CLASSIFIER", "MATCH_NUMBER"} and not name.quoted:
            raise self.context.error(f"`{name.text}` is a function", name.span, f"write {name.text.upper()}()")
        help_ = suggestion(name.text, columns, what="the columns are")
        raise self.context.error(f"there is no column `{name.text}`", name.span, *help_)


def _parts(pattern: written.RowPattern) -> Iterator[written.RowPattern]:
    """A pattern and all below it, in the order in which they are written."""
    yield pattern
    for child in pattern.children():
        if isinstance(child, written.RowPattern):
            yield from _parts(child)


def _variables(pattern: written.RowPattern) -> Iterator[written.Variable]:
    """The variables of a pattern, where they stand."""
    return (part for part in _parts(pattern) if isinstance(part, written.Variable))


def _pattern(context: Context, pattern: written.RowPattern) -> written.RowPattern:
    """The pattern with numbers as its bounds; raises BindError for bounds that nothing meets."""
    match pattern:
        case written.Quantified():
            minimum = parameters.count(context, pattern.minimum, otherwise=1)
            maximum = None if pattern.maximum is None else parameters.count(context, pattern.maximum, otherwise=1)
            place = pattern.place("minimum")
            if maximum == 0:
                raise context.error("a part that comes at most 0 times is none", place, "leave the part out")
            if maximum is not None and maximum < minimum:
                raise context.error(f"no number is at least {minimum} and at most {maximum}", place, f"write {{{maximum},{minimum}}}")
            return dataclasses.replace(pattern, pattern=_pattern(context, pattern.pattern), minimum=minimum, maximum=maximum)
        case written.Exclusion():
            return dataclasses.replace(pattern, pattern=_pattern(context, pattern.pattern))
        case written.Concatenation():
            return dataclasses.replace(pattern, items=tuple(_pattern(context, each) for each in pattern.items))
        case written.Alternation() | written.Permutation():
            return dataclasses.replace(pattern, operands=tuple(_pattern(context, each) for each in pattern.operands))
        case _:
            return pattern


# -------------------------------------------------------------------------------------------------------------------- expressions


@dataclass
class _Inside:
    """A navigation or an aggregate whose arguments are bound: its name, where it is, and whose rows they read so far."""

    name: str
    span: Span
    owners: list[tuple[Owner, Span]] = field(default_factory=list)


@record
class _Inner:
    """The row that PREV and NEXT step from."""

    first: bool
    offset: int
    semantics: written.Semantics | None
    argument: syntax.Expression


class RowBinder(ExpressionBinder):
    """Binds the expressions of a clause; define: of DEFINE, where a match is not known to its end."""

    def __init__(self, context: Context, names: _Names, *, define: bool = False) -> None:
        super().__init__(context, None)  # type: ignore[arg-type]  # names are looked up in the clause, not in a scope of a query's pattern
        self.names = names
        self.define = define
        self.inside: _Inside | None = None

    # ------------------------------------------------------------------------------------------------- conditions of three values

    def value(self, node: syntax.Expression) -> Expression:
        """An expression of any type; of a condition its value, which may be NULL."""
        if isinstance(node, CONDITIONS):
            return self._three_valued(node)
        handler = ROW_HANDLERS.get(type(node))
        if handler is None:
            return super().value(node)
        return self._placed(handler, node)

    def _placed(self, handler: Callable[[RowBinder, Any], Expression], node: syntax.Expression) -> Expression:
        """What a handler makes of a node, with its place."""
        try:
            bound = fold(handler(self, node))
        except Mismatch as found:
            raise self.error(found.fact, node.span, *found.help) from None
        return bound if bound.span != NO_SPAN else dataclasses.replace(bound, span=node.span)

    def _three_valued(self, node: syntax.Expression) -> Expression:
        holds, true = self.condition(node), Literal(True, BOOL)
        if isinstance(node, syntax.IsNull) or holds == true:
            return holds
        return Apply("case", (holds, true, self.contrary(node), Literal(False, BOOL), Literal(None, BOOL)), BOOL, span=node.span)

    def condition(self, node: syntax.Expression) -> Expression:
        """What holds where a condition is TRUE; raises BindError for what is none."""
        match node:
            case syntax.Not(operand):
                return self.contrary(operand)
            case syntax.BooleanAnd(operands) | syntax.BooleanOr(operands):
                operator = "and" if isinstance(node, syntax.BooleanAnd) else "or"
                return fold(Apply(operator, tuple(map(self.condition, operands)), BOOL, span=node.span))
            case syntax.In(negated=True) | syntax.Between(negated=True) | syntax.Like(negated=True):
                return self.contrary(dataclasses.replace(node, negated=False))
            case syntax.Compare():
                return self._placed(lambda binder, each: binder.compared(each, each.operator), node)
            case syntax.In() | syntax.Between() | syntax.Like() | syntax.IsNull():
                return super().value(node)
        return self._truth(node)

    def _truth(self, node: syntax.Expression) -> Expression:
        """A value that is a condition, with the type bool."""
        bound = self.value(node)
        if type_of(bound) not in {BOOL, NULL}:
            raise self.error(f"a condition is TRUE or FALSE, this is {describe(type_of(bound))}", node.span, "compare it with something")
        return types.convert(bound, BOOL)

    def contrary(self, node: syntax.Expression) -> Expression:
        """What holds where a condition is FALSE."""
        match node:
            case syntax.Not(operand):
                return self.condition(operand)
            case syntax.BooleanAnd(operands) | syntax.BooleanOr(operands):
                operator = "or" if isinstance(node, syntax.BooleanAnd) else "and"
                return fold(Apply(operator, tuple(map(self.contrary, operands)), BOOL, span=node.span))
            case syntax.In(negated=True) | syntax.Between(negated=True) | syntax.Like(negated=True) | syntax.IsNull(negated=True):
                return self.condition(dataclasses.replace(node, negated=False))
            case syntax.IsNull():
                return self.condition(dataclasses.replace(node, negated=True))
            case syntax.Compare():
                return self._placed(lambda binder, each: binder.compared(each, types.NEGATED[each.operator]), node)
            case syntax.Between(operand, low, high):
                sides = (syntax.Compare("<", operand, low, span=node.span), syntax.Compare(">", operand, high, span=node.span))
                return self.condition(syntax.BooleanOr(sides, span=node.span))
            case syntax.In():
                return self._placed(lambda binder, each: binder.differs_from_all(each), node)
            case syntax.Like(operand):
                likes = super().value(node)
                is_null = fold(Apply("is_null", (self.value(operand),), BOOL))
                return fold(Apply("not", (fold(Apply("or", (likes, is_null), BOOL)),), BOOL))
        return fold(types.compare("=", self._truth(node), Literal(False, BOOL)))

    def differs_from_all(self, node: syntax.In) -> Expression:
        """`e NOT IN (..)` as the standard has it: it never holds beside a NULL in the list."""
        operand = self.value(node.operand)
        return Apply("and", tuple(fold(self._comparison("!=", operand, option)) for option in self.options(node.options)), BOOL)

    def compared(self, node: syntax.Compare, operator: str) -> Expression:
        """A comparison by some operator, its own or the contrary one."""
        return self._comparison(operator, self.value(node.left), self.value(node.right))

    def _comparison(self, operator: str, left: Expression, right: Expression) -> Expression:
        kinds = type_of(left), type_of(right)
        if not any(pa.types.is_list(kind) for kind in kinds):
            return types.compare(operator, left, right)
        if operator not in {"=", "!="} or not all(pa.types.is_list(kind) for kind in kinds) or kinds[0] != kinds[1]:
            raise Mismatch(
                f"{describe(kinds[0])} cannot be compared with {describe(kinds[1])} by `{operator}`", "lists of one type are = or <>"
            )
        return Apply("same_list" if operator == "=" else "other_list", (left, right), BOOL)

    # ------------------------------------------------------------------------------------------------------------------ references

    def reference(self, node: written.Reference) -> Expression:
        """A column: of the row that a navigation or an aggregate looks at, else of the last row of its variable."""
        owner, path = None, node.names
        if len(node.names) > 1:
            owner = self.names.owner(node.names[0])
            path = node.names if owner is None else node.names[1:]
        elif (found := self.names.owner(node.names[0])) is not None and not self._is_column(node.names[0]):
            only = next(iter(sorted(found)))
            raise self.error(
                f"`{only}` is a variable, not a value", node.span, f"write a column of its rows, as in {variable_text(only)}.x"
            )
        if owner is None and len(node.names) > 1 and not self._is_column(node.names[0]):
            raise self._no_owner(node.names[0])
        column = self.names.column(path[0])
        kind, source = attribute(
            self.context, {None}, "the rows", (column, *(each.text for each in path[1:])), [each.span for each in path]
        )
        leaf = Field("", (column, *(each.text for each in path[1:])), source if kind is None else kind, source, span=node.span)
        return self._read(owner, leaf, node.span)

    def _is_column(self, name: written.Name) -> bool:
        columns = self.context.schema.attributes
        return name.text in columns or (not name.quoted and any(column.lower() == name.text.lower() for column in columns))

    def _no_owner(self, name: written.Name) -> BindError:
        help_ = suggestion(name.text.upper(), [*self.names.variables, *self.names.unions], what="the variables are")
        return self.error(f"`{name_text(name)}` is neither a variable of the pattern nor a column", name.span, *help_)

    def _read(self, owner: Owner, leaf: Expression, span: Span) -> Expression:
        """A leaf that some rows have: inside a navigation or an aggregate that of its row, elsewhere that of the last one."""
        if self.inside is None:
            return Navigate(owner, first=False, logical=0, physical=0, final=False, argument=leaf, type=type_of(leaf), span=span)
        self.inside.owners.append((owner, span))
        return leaf

    # ----------------------------------------------------------------------------------------------------------------------- calls

    def row_call(self, node: written.RowCall) -> Expression:
        """A navigation, an aggregate, or a function."""
        name = node.name.lower()
        if name in SPELLINGS:
            return self._aggregate(SPELLINGS[name], node)
        refused = next(
            (
                word
                for word, there in (("FILTER", node.where), ("DISTINCT", node.distinct), ("`*`", node.star))
                if there not in (None, False)
            ),
            None,
        )
        if refused is not None:
            raise self.error(
                f"{refused} has no meaning in {node.name.upper()}", node.span, "it is said of aggregates, as in COUNT(*) and SUM(A.x)"
            )
        if name in {"first", "last"}:
            return self._logical(node)
        if node.semantics is not None:
            word = node.semantics.value
            raise self.error(f"{word} is said of FIRST, LAST and aggregates", node.span, f"leave {word} out")
        if name in {"prev", "next"}:
            return self._physical(node)
        if name == "classifier":
            return self._classifier(node)
        if name == "match_number":
            self._arguments(node, 0, 0, "MATCH_NUMBER()")
            return MatchNumber()
        if name == "mod":
            self._arguments(node, 2, 2, "MOD(a, b), which is a % b")
            return types.arithmetic("%", *map(self.value, node.arguments))
        if name in {"array_max", "array_min", "cardinality"}:
            return self._of_list(name, node)
        if name == "concat":
            return functions.call(name, tuple(self._as_text(self.value(each)) for each in node.arguments))
        if name not in functions.FUNCTIONS:
            known = functions.unknown(name, functions=(*NAVIGATIONS, "classifier", "match_number"), measures=SPELLINGS)
            help_ = (ELSEWHERE[name],) if name in ELSEWHERE else known
            raise self.error(f"unknown function `{node.name}`", node.place("name"), *help_)
        return self.function(name, node)  # type: ignore[arg-type]  # it has the arguments, which is all that is read

    def _arguments(self, node: written.RowCall, least: int, most: int, form: str) -> None:
        if not least <= len(node.arguments) <= most:
            wanted = f"{least}" if least == most else f"{least} or {most}"
            raise self.error(f"{node.name.upper()} takes {wanted} arguments, here are {len(node.arguments)}", node.span, f"write {form}")

    def _enter(self, node: written.RowCall, name: str) -> _Inside:
        """Begin the arguments of a navigation or an aggregate."""
        if self.inside is not None:
            raise self.error(
                f"{name} is inside {self.inside.name}",
                node.span,
                "only FIRST and LAST can be inside PREV and NEXT: compute with both outside",
            )
        if self.define and node.semantics is written.Semantics.FINAL:
            raise self.error(
                "FINAL is in DEFINE, where the end of the match is not known", node.span, "leave FINAL out, or use it in MEASURES"
            )
        self.inside = _Inside(name, node.span)
        return self.inside

    def _owner_of(self, inside: _Inside) -> Owner:
        """Whose rows the arguments have read; raises BindError for several."""
        owners = [owner for owner, _ in inside.owners]
        for owner, span in inside.owners:
            if owner != owners[0]:
                said = " and ".join(sorted({_owner_text(each) for each in owners}))
                raise self.error(
                    f"{inside.name} reads the rows of one variable, this one reads {said}",
                    span,
                    "write the variable before each column, or a SUBSET",
                )
        return owners[0] if owners else None

    def _inner(self, node: written.RowCall) -> _Inner:
        """FIRST or LAST: which row they name, and the expression of it."""
        self._arguments(node, 1, 2, f"{node.name.upper()}(A.x), or {node.name.upper()}(A.x, 1)")
        return _Inner(node.name.lower() == "first", self._offset(node, 0), node.semantics, node.arguments[0])

    def _offset(self, node: written.RowCall, otherwise: int) -> int:
        if len(node.arguments) < 2:
            return otherwise
        given = node.arguments[1]
        place, help_ = given.span, f"write {node.name.upper()}(A.x, 2)"
        if isinstance(given, syntax.Number):
            value: object = int(given.text) if given.text.isdigit() else None
        else:
            value = parameters.value_of(self.context, given) if isinstance(given, syntax.Parameter) else None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.error("how many rows it steps is a whole number, 0 or more", place, help_)
        if value > MAX_OFFSET:
            raise self.error(
                f"it steps {value:,} rows; the limit is {MAX_OFFSET:,} (MAX_OFFSET)", place, "a partition that long is read in parts"
            )
        return value

    def _logical(self, node: written.RowCall) -> Expression:
        return self._navigate(node, self._inner(node), 0)

    def _physical(self, node: written.RowCall) -> Expression:
        name = node.name.upper()
        self._arguments(node, 1, 2, f"{name}(x), or {name}(x, 2)")
        steps = self._offset(node, 1)
        inner, argument = _Inner(False, 0, None, node.arguments[0]), node.arguments[0]
        if isinstance(argument, written.RowCall) and argument.name.lower() in {"first", "last"}:
            if argument.where is not None or argument.distinct or argument.star:
                return self.row_call(argument)
            inner = self._inner(argument)
        return self._navigate(node, inner, steps if name == "NEXT" else -steps)

    def _navigate(self, node: written.RowCall, inner: _Inner, physical: int) -> Expression:
        final = inner.semantics is written.Semantics.FINAL
        inside = self._enter(dataclasses.replace(node, semantics=inner.semantics), node.name.upper())
        argument = self.value(inner.argument)
        self.inside = None
        return Navigate(self._owner_of(inside), inner.first, inner.offset, physical, final, argument, type_of(argument))

    def _classifier(self, node: written.RowCall) -> Expression:
        self._arguments(node, 0, 1, "CLASSIFIER(), or CLASSIFIER(A)")
        owner = None
        for argument in node.arguments:
            name = argument.names[0] if isinstance(argument, written.Reference) and len(argument.names) == 1 else None
            owner = None if name is None else self.names.owner(name)
            if owner is None:
                raise self.error("CLASSIFIER takes a variable of the pattern", argument.span, "write CLASSIFIER(), or CLASSIFIER(A)")
        return self._read(owner, Classifier(), node.span)

    def _aggregate(self, name: str, node: written.RowCall) -> Expression:
        said = node.name.upper()
        if node.star and name != "count":
            raise self.error(f"{said}(*) has no meaning", node.span, f"only COUNT(*) counts rows: write {said}(A.x)")
        inside = self._enter(node, said)
        if len(node.arguments) == 1 and isinstance(node.arguments[0], written.RowsOf):
            arguments = self._rows_of(name, node.arguments[0], inside, distinct=node.distinct)
        else:
            if node.arguments or name != "count":  # COUNT() is COUNT(*)
                two = name in {"max_by", "min_by"}
                self._arguments(node, 1 + two, 1 + two, f"{said}(A.x, A.y)" if two else f"{said}(A.x)")
            arguments = tuple(map(self.value, node.arguments))
        where = None if node.where is None else self.condition(node.where)
        self.inside = None
        arguments, kind = _typed(name, said, arguments)
        if node.distinct and types.family(type_of(arguments[0])) == "nested":
            raise Mismatch(f"DISTINCT compares values, and this is {describe(type_of(arguments[0]))}", "take a field or an element of it")
        return Aggregate(
            name, self._owner_of(inside), arguments, node.distinct, where, node.semantics is written.Semantics.FINAL, kind, span=node.span
        )

    def _rows_of(self, name: str, node: written.RowsOf, inside: _Inside, *, distinct: bool) -> tuple[Expression, ...]:
        """`A.*`: all rows of a variable."""
        owner = self.names.owner(node.variable)
        if owner is None:
            raise self._no_owner(node.variable)
        if name != "count" or distinct:
            what = "DISTINCT" if distinct else inside.name
            raise self.error(f"{what} takes a value, not whole rows", node.span, "COUNT(A.*) counts rows, and COUNT(DISTINCT A.x) values")
        inside.owners.append((owner, node.span))
        return ()

    def rows_of(self, node: written.RowsOf) -> Expression:
        """`A.*` anywhere else."""
        raise self.error("whole rows are no value", node.span, "only COUNT(A.*) counts rows: write a column, as in A.x")

    # ------------------------------------------------------------------------------------------------------------- lists and casts

    def array(self, node: written.Array) -> Expression:
        """`ARRAY[a, b]`."""
        items = tuple(map(self.value, node.items))
        kind = types.common_type(items)
        if kind is None:
            kinds = ", ".join(dict.fromkeys(describe(type_of(item)) for item in items))
            raise Mismatch(f"the items of an ARRAY have one type, these are {kinds}", functions.CAST)
        kind = INT64 if kind == NULL else kind
        return Apply("array", types.unify(items, kind), pa.list_(kind))

    def _of_list(self, name: str, node: written.RowCall) -> Expression:
        self._arguments(node, 1, 1, f"{name.upper()}(ARRAY_AGG(A.x))")
        operand = self.value(node.arguments[0])
        kind = type_of(operand)
        if not pa.types.is_list(kind):
            raise Mismatch(f"{name.upper()} takes a list, this is {describe(kind)}", "ARRAY_AGG(A.x) and ARRAY[..] are lists")
        return Apply(name, (operand,), INT64 if name == "cardinality" else kind.value_type)

    def cast(self, node: written.Cast) -> Expression:
        """`CAST(e AS type)`."""
        operand, target = self.value(node.operand), _named_type(node.type)
        if target is None:
            raise self.error(f"unknown type `{node.type}`", node.place("type"), f"the types are {', '.join(CAST_TYPES)} and decimal(10,2)")
        kind = type_of(operand)
        if kind in {NULL, target}:
            return types.convert(operand, target)
        numbers = types.is_number(kind) and types.is_number(target)
        if not numbers and not (target == TEXT and kind in {INT64, BOOL}):
            raise Mismatch(f"{describe(kind)} cannot be cast to {describe(target)} here", "cast the column in the input")
        return Apply("convert", (operand,), target)

    def _as_text(self, operand: Expression) -> Expression:
        """An operand of `||`: whole numbers are texts there."""
        return Apply("convert", (operand,), TEXT, span=operand.span) if type_of(operand) in {INT64, BOOL} else operand


def _owner_text(owner: Owner) -> str:
    return "all rows" if owner is None else f"those of {' and '.join(sorted(owner))}"


CAST_TYPES: Mapping[str, pa.DataType] = MappingProxyType(
    {
        **dict.fromkeys(("bigint", "int", "integer", "long", "smallint", "tinyint"), INT64),
        **dict.fromkeys(("double", "float", "real"), DOUBLE),
        **dict.fromkeys(("string", "varchar", "text"), TEXT),
        "boolean": BOOL,
    }
)
"""The types of CAST by their names, beside decimal(p, s)."""


def _named_type(name: str) -> pa.DataType | None:
    base, _, numbers = name.rstrip(")").partition("(")
    if base not in {"decimal", "numeric"}:
        return CAST_TYPES.get(base)
    digits = [int(number) for number in numbers.split(",") if number.isdigit()] or [types.DECIMAL_DIGITS]
    precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
    return pa.decimal128(precision, scale) if 1 <= precision <= types.DECIMAL_DIGITS and scale <= precision else None


def _typed(name: str, said: str, arguments: Sequence[Expression]) -> tuple[tuple[Expression, ...], pa.DataType]:
    """The arguments of an aggregate, and the type of its value; raises Mismatch."""
    given = tuple(types.convert(each, INT64) if type_of(each) == NULL else each for each in arguments)
    if name == "count":
        return given, INT64
    kind, ordered = type_of(given[0]), type_of(given[-1])
    if name == "array_agg":
        return given, pa.list_(kind)
    if name in {"min", "max", "min_by", "max_by"} and (types.family(ordered) in {"nested", "NULL"} or ordered == BOOL):
        raise Mismatch(f"{said} does not take {describe(ordered)}", "it takes numbers, texts and times")
    if name in {"sum", "avg", "stddev"} and not types.is_number(kind):
        raise Mismatch(f"{said} does not take {describe(kind)}", "it takes numbers")
    if name in {"bool_and", "bool_or"} and kind != BOOL:
        raise Mismatch(f"{said} does not take {describe(kind)}", "it takes conditions")
    if name in {"avg", "stddev"}:
        return given, DOUBLE
    return given, pa.decimal128(types.DECIMAL_DIGITS, kind.scale) if name == "sum" and pa.types.is_decimal(kind) else kind


CONDITIONS = (
    *(syntax.Compare, syntax.In, syntax.Between, syntax.Like, syntax.IsNull),
    *(syntax.Not, syntax.BooleanAnd, syntax.BooleanOr),
)
"""What is TRUE, FALSE or unknown."""

ROW_HANDLERS: Mapping[type[syntax.Expression], Callable[[RowBinder, Any], Expression]] = MappingProxyType(
    {
        written.Reference: lambda binder, node: binder.reference(node),
        written.RowCall: lambda binder, node: binder.row_call(node),
        written.RowsOf: lambda binder, node: binder.rows_of(node),
        written.Array: lambda binder, node: binder.array(node),
        written.Cast: lambda binder, node: binder.cast(node),
    }
)
"""One method per class of the syntax tree that queries do not have."""
