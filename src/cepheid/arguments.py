"""The arguments of `run` and its kin, checked: of one query and of several alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.input.columns import is_streams
from cepheid.engine.input.event_times import time_number
from cepheid.engine.input.sources import numbered, source_of, up_to
from cepheid.engine.run.batch import ordered
from cepheid.engine.run.batches import END, pieces_of
from cepheid.errors import InputError, NotSupportedError, SetupError, check_choice
from cepheid.kernel import VARIANTS, available
from cepheid.language import syntax
from cepheid.language.limits import MAX_COUNT
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.engine.input.sources import Source
    from cepheid.engine.memory.pools import Array
    from cepheid.schema import EventSchema

ENGINES = ("compiled", "python", "checked", "reference")
"""What `engine=` may be: variants of the kernel (see `cepheid.kernel.VARIANTS`), or the definition itself."""


@record
class CheckedArguments:
    """The checked arguments of `Query.run`; the events are a reader only where they are read piece by piece."""

    source: Source
    until: int | str | None
    engine: str | None
    sort: bool
    null_keys: str
    order: Sequence[str]

    @property
    def of_table(self) -> dict[str, Any]:
        """Those of a run over a whole table, `engine.run.batch.run`."""
        return {"sort": self.sort, "order": self.order, "null_keys": self.null_keys, "until": self.until, "variant": self.engine}

    @property
    def rows(self) -> int:
        """How many events there are, 0 where that is not known."""
        return self.source.events.num_rows if isinstance(self.source.events, pa.Table) else 0

    @property
    def pieces(self) -> Iterable[pa.Table | pa.RecordBatch]:
        """The events piece by piece, in their order and with their numbers (`ROW`)."""
        events: pa.Table | Iterable[pa.RecordBatch] = self.source.events
        if not isinstance(events, pa.Table):
            return events
        _, rows = ordered(self.source.schema, events, sort=self.sort, order=self.order)
        return self._numbered(pieces_of(events, rows), rows)

    def _numbered(self, pieces: Iterable[pa.Table], rows: Array | None) -> Iterator[pa.Table]:
        """Pieces of a table with the numbers of their events; rows: of the table, as they come, None: as they are."""
        start, numbers = 0, self.source.numbers
        for piece in pieces:
            stop = start + piece.num_rows
            own = np.arange(start, stop) if rows is None else rows[start:stop]
            yield numbered(piece, own if numbers is None else numbers[own])
            start = stop


def asked_of(
    tree: syntax.Query,
    events: object,
    *,
    type: str | None,  # noqa: A002 - public word
    time: str | None,
    until: object,
    engine: str | None,
    sort: bool,
    null_keys: str,
    order: Sequence[str],
    sample: int | None = None,
) -> CheckedArguments:
    """The arguments of `run` and `batches`; tree: of the query. Raises InputError, NotSupportedError, SetupError and SchemaError as they do."""
    check_engine(engine, ENGINES)
    check_choice("null_keys", null_keys, ("drop", "group"))
    check_names(type=type, time=time)
    check_sort(sort)
    order = columns_of("order", order)
    check_sample(sample)
    if engine == "reference" and sample is not None:
        raise NotSupportedError("the reference gives all matches, it has no sample=", help="leave engine= or sample= out")
    at_once = sort or bool(order) or engine == "reference"
    source = source_of(events, tree, type=type, time=time, sort=sort, order=order, at_once=at_once)
    check_shown(tree, source.schema)
    if is_streams(events):
        order = ()  # the streams are merged in that order
    if until is None or (isinstance(until, str) and until == END):
        complete: int | str | None = until
    else:
        complete = time_number(until, source.schema, argument="until")
    if isinstance(complete, int):
        source = up_to(source, complete)
    return CheckedArguments(source, complete, engine, sort, null_keys, order)


def check_shown(tree: syntax.Query, schema: EventSchema) -> None:
    """Raise SchemaError for a query that shows whole events, of which a column cannot be read."""
    if tree.targets is None or all(isinstance(target.expression, syntax.Word) for target in tree.targets):
        schema.check_readable(schema.unreadable, "SELECT shows whole events: df.drop(..) leaves out what nobody needs, or name measures")


def check_names(**names: object) -> None:
    """Raise InputError for the name of a column that is no text."""
    for argument, name in names.items():
        if not (name is None or isinstance(name, str)):
            raise InputError(f"{argument}={name!r} is not the name of a column", help="give the name as a str, or leave it out")


def check_sort(sort: object) -> None:
    """Raise InputError for what does not say whether to sort: the name of a column would do so unheard."""
    if not isinstance(sort, bool | np.bool_):
        raise InputError(
            f"sort={sort!r} is not True or False", help="sort=True sorts by the time column, and order= decides between equal times"
        )


def columns_of(argument: str, given: object) -> tuple[str, ...]:
    """One name of a column, or several; raises InputError for anything else."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise InputError(f"{argument}={given!r} is not the name of a column, or a list of names", help="give a str, or a list of str")
    return names


def check_sample(sample: object) -> None:
    """Raise InputError for what is not a number of matches."""
    if sample is not None and not (isinstance(sample, int) and not isinstance(sample, bool) and 1 <= sample <= MAX_COUNT):
        raise InputError(
            f"sample={sample!r} is not a number of matches", help="give a number, 1 or more, of at most 64 bits, or leave it out"
        )


def check_engine(engine: str | None, known: Sequence[str]) -> None:
    """Raise InputError for an engine that there is not, and SetupError for one that this installation lacks."""
    if engine is not None:
        check_choice("engine", engine, known)
    if engine in VARIANTS and engine not in available():
        raise SetupError(
            f"engine={engine!r} is not in this installation",
            help=f"it has {', '.join(map(repr, available()))} and 'reference'; leave engine= out for the best one",
        )
