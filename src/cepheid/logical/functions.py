"""The closed table of functions: how many arguments each takes, of which types, and the type of its value.

Their meaning is one line each in `plan.OPERATORS`, under the same name.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.errors import nearest, quoted
from cepheid.logical import calendar, time_zones
from cepheid.logical.folding import fold
from cepheid.logical.plan import Apply, Expression, Literal, Open
from cepheid.logical.types import INT64, NULL, TEXT, Mismatch, common_type, convert, describe, family, is_number, type_of, unify
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


CAST = "there is no implicit cast: write a constant in that type, or cast the column in the input"
"""The help where an argument has another type."""


@record
class Function:
    """least, most: number of arguments (most None: any number). apply: name and arguments -> typed Apply; raises Mismatch."""

    least: int
    most: int | None
    apply: Callable[[str, tuple[Expression, ...]], Expression]


def call(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """A call of the function `name`, a key of `FUNCTIONS`; raises Mismatch for a wrong number or type of arguments."""
    function = FUNCTIONS[name]
    if len(arguments) < function.least or (function.most is not None and len(arguments) > function.most):
        most = "" if function.most == function.least else f" or {'more' if function.most is None else function.most}"
        wanted = f"{function.least}{most} argument{'s' * bool(most)}"
        raise Mismatch(f"`{name}` takes {wanted}, here are {len(arguments)}", f"write {name}(x.a{', ..' if function.most is None else ''})")
    return function.apply(name, arguments)


def _of_number(name: str, arguments: tuple[Expression, ...]) -> Expression:
    (argument,) = arguments
    if type_of(argument) == NULL:
        argument = convert(argument, INT64)
    if not is_number(type_of(argument)):
        help_ = ("for a duration between two bounds write `d BETWEEN -5s AND 5s`",) if family(type_of(argument)) == "duration" else ()
        raise Mismatch(f"`{name}` takes a number, this is {describe(type_of(argument))}", *help_)
    return Apply(name, (argument,), type_of(argument))


def _of_text(result: pa.DataType) -> Callable[[str, tuple[Expression, ...]], Expression]:
    def apply(name: str, arguments: tuple[Expression, ...]) -> Expression:
        (argument,) = arguments
        if type_of(argument) == NULL:
            argument = convert(argument, TEXT)
        if type_of(argument) != TEXT:
            raise Mismatch(f"`{name}` takes a text, this is {describe(type_of(argument))}", CAST)
        return Apply(name, (argument,), result)

    return apply


def _coalesce(name: str, arguments: tuple[Expression, ...]) -> Expression:
    kind = common_type(arguments)
    if kind is None:
        kinds = ", ".join(describe(type_of(argument)) for argument in arguments)
        raise Mismatch(f"`{name}` takes values of one type, these are {kinds}", CAST)
    kind = INT64 if kind == NULL else kind
    return Apply(name, unify(arguments, kind), kind)


def _concat(name: str, arguments: tuple[Expression, ...]) -> Expression:
    texts = tuple(convert(argument, TEXT) if type_of(argument) == NULL else argument for argument in arguments)
    for text in texts:
        if type_of(text) != TEXT:
            raise Mismatch(f"`{name}` takes texts, this is {describe(type_of(text))}", CAST)
    return Apply(name, texts, TEXT)


def _part(name: str, arguments: tuple[Expression, ...]) -> Expression:
    argument, *zone = arguments
    if zone:
        argument = _local_time(name, argument, *zone)
    kind = type_of(argument)
    if kind == NULL:
        return convert(argument, INT64)
    if not (pa.types.is_timestamp(kind) or (pa.types.is_date32(kind) and name in calendar.DATES)):
        takes = "a timestamp or a date" if name in calendar.DATES else "a timestamp"
        date = ("a date has no time of day",) if pa.types.is_date32(kind) else (CAST,)
        help_ = ("a number has no calendar: use a time column of timestamps",) if is_number(kind) else date
        raise Mismatch(f"`{name}` takes {takes}, this is {describe(kind)}", *help_)
    return Apply(name, (argument,), INT64)


def _local_time(name: str, argument: Expression, zone: Expression) -> Expression:
    """What the clocks of a zone show at an instant."""
    if not isinstance(zone, Literal) or type_of(zone) not in (TEXT, NULL):
        raise Mismatch(f"the second argument of `{name}` is a time zone", f"write {name}(x.$time, 'Europe/Berlin'), or give a parameter")
    kind = type_of(argument)
    if kind == NULL or zone.value is None:
        return Literal(None, NULL)
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        stands = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        help_ = f"without a zone it is taken as it stands: write {name}(x.a), or give the column its zone in the input" if stands else CAST
        raise Mismatch(f"`{name}` in a time zone takes a timestamp with a zone, this is {describe(kind)}", help_)
    name_of_zone = str(zone.value)
    if not isinstance(zone.value, Open) and time_zones.zone_of(name_of_zone) is None:
        raise Mismatch(f"there is no time zone '{name_of_zone}'", *time_zones.unknown_zone(name_of_zone))
    return fold(Apply("local_time", (argument, zone), pa.timestamp(kind.unit)))


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "abs": Function(1, 1, _of_number),
        "floor": Function(1, 1, _of_number),
        "ceil": Function(1, 1, _of_number),
        "coalesce": Function(1, None, _coalesce),
        "length": Function(1, 1, _of_text(INT64)),
        "lower": Function(1, 1, _of_text(TEXT)),
        "upper": Function(1, 1, _of_text(TEXT)),
        "concat": Function(1, None, _concat),
        **dict.fromkeys(calendar.PARTS, Function(1, 2, _part)),
    }
)
"""Name (in lower case; a query may write it in any) -> function."""

CLOCK = ("now", "current_timestamp", "current_date", "current_time", "getdate", "today")
"""Names of what a query does not have: the time of the evaluation."""

NO_CLOCK = "a query has no clock: give it the time as a parameter, x.$time > :now"

INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(CLOCK, NO_CLOCK),
        **dict.fromkeys(("mean", "average"), "write avg(x.a), in SELECT or HAVING"),
        **dict.fromkeys(
            ("std", "stdev", "stddev_samp", "variance", "var_samp"), "write stddev(x.a), in SELECT or HAVING; it is of a sample"
        ),
        **dict.fromkeys(
            ("median", "percentile", "quantile", "mode"),
            "collect(x.a) in SELECT gives the values of a match, to compute it from the result",
        ),
        **dict.fromkeys(("array_agg", "collect_list", "list", "group_concat", "string_agg"), "write collect(x.a), in SELECT"),
        **dict.fromkeys(("first_value", "last_value", "nth_value"), "write first(x.a), last(x.a) or first(x.a, 2), in SELECT or HAVING"),
        **dict.fromkeys(("count_distinct", "nunique", "approx_count_distinct"), "write count(DISTINCT x.a), in SELECT or HAVING"),
        **dict.fromkeys(("lead", "next"), "write the next event in the pattern: A AS a : ANY AS b FILTER b.v > a.v"),
        **dict.fromkeys(("shift", "diff"), "lag(x.a) in a FILTER is the attribute of the event before"),
        **dict.fromkeys(("row_number", "rank", "match_number"), "matches have no numbers: number the rows of the result"),
        "round": "write floor(x.a + 0.5), or round the column of the result",
        "mod": "write x.a % 2",
        **dict.fromkeys(("power", "pow", "square"), "write x.a * x.a"),
        "len": "write length(x.a)",
        **dict.fromkeys(("nvl", "ifnull"), "write coalesce(x.a, 0)"),
        "isnull": "write x.a IS NULL",
        **dict.fromkeys(("if", "iif", "nullif", "greatest", "least"), "write CASE WHEN x.a > x.b THEN x.a ELSE x.b END"),
        **dict.fromkeys(
            ("date_trunc", "date_part", "extract", "date_format"),
            f"write parts of a time, as in hour(x.$time): {', '.join(calendar.PARTS)}",
        ),
        **dict.fromkeys(("weekday", "dow"), "write day_of_week(x.$time), where Monday is 1"),
        **dict.fromkeys(("datediff", "date_diff", "timestampdiff"), "write the difference of two times: y.$time - x.$time > 5m"),
        **dict.fromkeys(("startswith", "starts_with", "endswith", "contains", "regexp_like"), "write LIKE: x.a LIKE 'begin%'"),
    }
)
"""Functions of other systems (in lower case) that are written otherwise here, and how."""

LIKENESS = 0.7
"""How like a name another must be: `lenght` is 0.83 like length, and `median` 0.67 like min."""


def unknown(name: str, *, functions: Iterable[str] = (), measures: Iterable[str] = ()) -> tuple[str, ...]:
    """The help for a call of what there is not. functions, measures: what else there is in its place than `FUNCTIONS`."""
    if name in INSTEAD:
        return (INSTEAD[name],)
    known = {"measures": sorted(measures), "functions": sorted({*FUNCTIONS, *functions})}
    near = nearest(name, [each for names in known.values() for each in names], likeness=LIKENESS)
    lists = (f"{what} are: {quoted(names, most=len(names))}" for what, names in known.items() if names)
    return (
        *([] if near is None else [f"did you mean `{near}`?"]),
        *lists,
        "compute other values in a column of the events, or from the result",
    )
