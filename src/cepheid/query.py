"""`Query`: the main object of users. Text, file, tree or builder comes in; matches, recognizers, explanations and drawings go out.

A query is parsed at once, so errors in its text come early. It is bound and compiled for each schema, and keeps the results. It is immutable and
keeps nothing of the events it was run on: any number of threads may share it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.arguments import ENGINES, CheckedArguments, asked_of, check_engine, check_names, columns_of
from cepheid.engine.evaluations.progress import Progress, telling
from cepheid.engine.input.named_types import NamedTypes
from cepheid.engine.input.read import schema_in
from cepheid.engine.input.sources import used_types
from cepheid.engine.memory.process import named_memory
from cepheid.engine.output.origins import Origin
from cepheid.engine.plan.compiled import Compiled, layout_of
from cepheid.engine.plan.numbered import NumberedQuery, shown
from cepheid.engine.plan.planner import compile_plan
from cepheid.engine.run import batch, batches, definition, layers
from cepheid.engine.run.allowance import check_max_bytes
from cepheid.engine.run.batches import Batches, BatchesRest
from cepheid.engine.run.equal_times import EqualTimes, TiedRows
from cepheid.engine.run.recognizer import Recognizer
from cepheid.errors import CepheidError, InputError, check_choice, nearest
from cepheid.language import parse, read_query, syntax, to_text
from cepheid.logical.bind import bind, check_parameters
from cepheid.logical.constants import kept
from cepheid.schema import DEFAULT_TIME, EventSchema, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column

    from cepheid.engine.output.matches import Matches
    from cepheid.engine.plan.explain import Explanation
    from cepheid.logical.plan import QueryPlan
    from cepheid.notebook.widget import Explorer
    from cepheid.spark.recognition import Recognition

REMEMBERED = 16
"""Schemas whose compiled query a `Query` remembers."""


def query(source: str | Path | syntax.Query | Any, *, args: Mapping[str, object] | None = None) -> Query:
    """A query from its text, a file (`Path`), a syntax tree or a pattern of the builder.

    args: the value of each parameter `:name`: a value, a duration (a timedelta, a text such as "5s", or a number if event times are numbers), a
    count, or the list after IN.

    Returns a `Query`. Raises InputError if the file cannot be read (caused by the OSError), QuerySyntaxError if the text is not a query, LimitError
    if it exceeds a limit of the language, BindError if args names a parameter that the query does not have, and InputError if source or args has
    another type.
    """
    if isinstance(source, Path):
        source = text_in(source)
    if isinstance(source, str):
        return Query(parse(source), source, args or {})
    tree = source
    if not isinstance(tree, syntax.Query) and hasattr(tree, "select"):
        tree = tree.select()
    if not isinstance(tree, syntax.Query):
        raise InputError(
            f"a query cannot be a {type(source).__name__}", help="pass its text, a pathlib.Path to a file, or a pattern from the builder"
        )
    # Printing and parsing again gives every node its place in a text that errors can show.
    text = to_text(tree)
    return Query(parse(text), text, args or {})


def text_in(path: Path) -> str:
    """The text of a query file. Raises InputError if it cannot be read, and as `read_query`."""
    try:
        return read_query(path)
    except IsADirectoryError as error:
        raise InputError(f"{path} is a directory, not the file of a query") from error
    except CepheidError:
        raise
    except (OSError, ValueError) as error:  # a ValueError for a path with a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"the query file {path} cannot be read: {reason}", help=_missing(path) if isinstance(error, FileNotFoundError) else ()
        ) from error


def _missing(path: Path) -> str:
    """What to do about a file that is not there: the file beside it with the nearest name, or where it was looked for."""
    beside: list[Path] = []
    with contextlib.suppress(OSError):  # the folder is not there, either
        beside = [each for each in path.parent.iterdir() if each.is_file()]
    stem = nearest(path.stem, sorted({each.stem for each in beside}))  # all endings of queries are alike
    near = nearest(path.name, sorted(each.name for each in beside if each.stem == stem))
    return f"did you mean {path.with_name(near)}?" if near else f"it was looked for in {path.parent.resolve()}"


class Query:
    """A query. Make one with `cepheid.query`.

    A query is immutable, and any number of threads may use it at the same time. It is compiled once for each schema of events; it remembers the
    last 16 schemas. Two queries are equal if their syntax trees and their arguments are equal.
    """

    def __init__(self, tree: syntax.Query, text: str, args: Mapping[str, object]) -> None:
        self._tree = tree
        self._text = text
        self._args = MappingProxyType(_checked_args(args))
        check_parameters(tree, self._args)
        self._compiled: dict[object, Compiled] = {}
        self._compiling = threading.Lock()  # held around `_compiled`

    @property
    def text(self) -> str:
        """The text of the query, as it was given; for a syntax tree or a builder, the text that was printed from it."""
        return self._text

    @property
    def tree(self) -> syntax.Query:
        """The syntax tree of the text."""
        return self._tree

    @property
    def args(self) -> Mapping[str, object]:
        """The values of the parameters, by name, read-only."""
        return self._args

    def with_args(self, /, **args: object) -> Query:
        """The same query with new values for these parameters; the others keep theirs.

        Returns a new `Query`. Raises BindError for a parameter that the query does not have.
        """
        return Query(self._tree, self._text, {**self._args, **args})

    def __repr__(self) -> str:
        args = f", args={dict(self._args)!r}" if self._args else ""
        return f"cepheid.query({self._text!r}{args})"

    def _repr_html_(self) -> str:
        """The query in a notebook: its text, highlighted, and its drawing."""
        from cepheid.viz.notebook import to_html

        return to_html(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self._tree == other._tree and self._args == other._args

    def __hash__(self) -> int:
        return hash(self._tree)

    def __reduce__(self) -> tuple[object, ...]:
        return _from_text, (self._text, dict(self._args))

    # -------------------------------------------------------------------------------------------------------------- compiling

    def schema(self, schema: Any, *, type: str | None = None, time: str | None = None) -> EventSchema:  # noqa: A002
        """The schema of the events as the query reads it: their attributes, and which columns have the type and the time.

        schema: an Arrow schema, a table, DataFrame or file that has one, or a Spark DataFrame or its schema. type, time: as for `run`.

        Returns an `EventSchema`. Raises SchemaError if a column is missing or has a wrong type, and InputError for anything without a schema.
        """
        if isinstance(schema, EventSchema):
            return schema
        check_names(type=type, time=time)
        if schema.__class__.__module__.startswith("pyspark."):
            from cepheid.spark.source import event_schema

            return event_schema(schema, self._tree, type=type, time=time)
        return schema_of(schema_in(schema, time=time), type=type, time=time, streams=self._tree.streams, used=used_types(self._tree))

    def bound(self, schema: EventSchema, *, partial: bool = False) -> QueryPlan:
        """The logical plan of the query over a schema. partial: as for `bind`.

        Raises BindError for names, types or units that do not fit, with the place in the text.
        """
        try:
            return bind(self._tree, schema, args=self._args, text=self._text, partial=partial)
        except CepheidError as error:
            raise error.located(self._text) from None

    def compiled(self, schema: EventSchema) -> Compiled:
        """The compiled query over a schema: its automaton, and the method that evaluates it.

        Raises BindError, NotSupportedError and LimitError, with the place in the text.
        """
        key = (
            # Users' extension types have no hash.
            pa.schema(list(schema.attributes.items())).serialize().to_pybytes(),
            schema.type_column,
            schema.stream,
            None if schema.types is None else frozenset(schema.types.items()),
            schema.time_column,
        )
        with self._compiling:
            known = self._compiled.get(key)
            if known is None:
                known = compile_plan(self.bound(schema))
                if len(self._compiled) >= REMEMBERED:
                    self._compiled.pop(next(iter(self._compiled)))
                self._compiled[key] = known
        return known

    def output_schema(
        self,
        schema: pa.Schema | EventSchema,
        *,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
        events: bool = False,
    ) -> pa.Schema:
        """The Arrow schema of `Matches.to_arrow(events=events)`, without a run.

        schema, type, time: as for `schema`. Raises as `schema`, and BindError.
        """
        return layout_of(self.bound(self.schema(schema, type=type, time=time)), ()).schema(events=events)

    # ---------------------------------------------------------------------------------------------------------------- running

    @named_memory()
    def run(
        self,
        events: object,
        *,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
        order: Sequence[str] = (),
        sort: bool = False,
        null_keys: str = "drop",
        until: object = None,
        sample: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        max_bytes: int | None = None,
        engine: str | None = None,
    ) -> Matches:
        """The matches of the query over `events`.

        events: a pyarrow Table, RecordBatch or RecordBatchReader (read batch by batch), a DataFrame, anything with ``__arrow_c_stream__``, the path
        of a file (.parquet, .arrow, .feather, .ipc, .arrows, .csv, .tsv, .jsonl, .ndjson, .json; text may be .gz or .zst; wildcards stand for several
        files; read batch by batch), a list of dicts, a dict of lists or arrays (the columns), or {stream name: events} for several streams: a dict
        whose values are all tables, files or lists of dicts. Streams are merged by event time. Equal times are in the order of FROM, then of `order`.
        A DataFrame of Spark is collected; one of more than a million rows (`cepheid.spark.collecting.MAX_COLLECTED`) is a LimitError: use `on`.

        Which columns say what. type, time: the columns of the event type and of the event time (default: `type` and `ts`, if the input has them). ISO
        8601 texts in the time column are read as times: in UTC if all have an offset, without zone if none has one. A DatetimeIndex of a pandas
        DataFrame is the time column if time= names it; also if no column has the time's name, and the index has no name or time= is left out. Of
        other indexes the levels with a name are attributes. order: the columns that order events of equal time, before the order of the rows. sort:
        sort events that are not in the order of their times (stable), instead of raising an error. null_keys: "drop" events with a NULL in their
        PARTITION BY key (`Matches.null_keys` counts them), or "group" them as one key.

        Where the data ends. until: a time, in the form of the time column. Later events are not read, and the events count as complete up to this
        time (default: their greatest time; "end": no events follow). This matters only for NOT FOLLOWED BY: `Matches.undecided` has the matches that
        are not decided then.

        What comes out, and how. sample: give at most this many matches of each event that ends some, spread evenly over all of them (LIMIT gives
        those that are found first). NOT FOLLOWED BY .. FROM START leaves out some of those that were chosen, and no others come instead. progress: a
        function that is called with (rows read, rows in all); rows in all is 0 if the input does not know it. It is called a few times a second, also
        while one event takes long, then with the same numbers. max_bytes: how many bytes the matches may take: 18 per event of a match, and 24 per
        match (default: a quarter of the memory that the process may use). While the result is built, it takes about three times as many. `batches`
        gives any number of matches, in bounded memory. engine: None for the best one, or one of `ENGINES`.

        Returns `Matches`, in the order of the events that end them (NOT FOLLOWED BY .. FROM START over what is read batch by batch: of each batch
        those that it decides, in that order); `Matches.rows` says which rows of `events` they have. Raises BindError and
        NotSupportedError for the query, SchemaError and InputError for the events, LimitError for the query and for more matches than max_bytes
        allows, SetupError for an engine that is not installed. Linear in events and matches; `explain` has the exact costs.
        """
        asked = asked_of(
            self._tree, events, type=type, time=time, until=until, engine=engine, sort=sort, null_keys=null_keys, order=order, sample=sample
        )
        allowed = check_max_bytes(max_bytes)
        if asked.engine == "reference":
            return self._by_definition(asked)
        with telling(progress, asked.rows) as told:
            return self._run(asked, sample=sample, progress=told, max_bytes=allowed)

    def _run(self, asked: CheckedArguments, *, sample: int | None, progress: Progress | None, max_bytes: int | None) -> Matches:
        source, compiled = asked.source, self.compiled(asked.source.schema)
        options = {**asked.of_table, "sample": sample, "progress": progress, "max_bytes": max_bytes}
        rows = TiedRows() if source.streams is None and not asked.order else None
        if isinstance(source.events, pa.Table) and not compiled.layers:
            return batch.run(compiled, source.events, **options, ties=rows).with_origin(source.origin)
        numbered = NumberedQuery.of(compiled)
        if isinstance(source.events, pa.Table):
            types = NamedTypes(compiled.plan)
            types.see(source.events)
            found = layers.run(numbered, source.numbered, **options, ties=rows)
            warnings = (*types.warnings, *(() if rows is None else rows.warnings))
            return dataclasses.replace(shown(found, layout=compiled.layout, streams=source.streams), warnings=warnings)
        types = NamedTypes(compiled.plan, compiled.programs, group_nulls=asked.null_keys == "group")
        ties = EqualTimes(compiled)
        recognizer = Recognizer(numbered, null_keys=asked.null_keys, variant=asked.engine, sample=sample, types=types, ties=ties)
        found = batches.whole(recognizer, asked.pieces, until=asked.until, progress=progress, max_bytes=max_bytes)
        warnings = (*types.warnings, *ties.warnings)
        return dataclasses.replace(shown(found, layout=compiled.layout, streams=source.streams), warnings=warnings)

    def batches(
        self,
        events: object,
        *,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
        until: object = None,
        engine: str | None = None,
        sort: bool = False,
        null_keys: str = "drop",
        order: Sequence[str] = (),
        sample: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Batches:
        """The matches of `run`, in batches that are made when they are read: any number of matches, in bounded memory.

        Takes the arguments of `run`, except max_bytes: the result has no limit. Returns `Batches`. Raises as `run`; errors in the events of a reader
        are raised when these events are read.
        """
        asked = asked_of(
            self._tree, events, type=type, time=time, until=until, engine=engine, sort=sort, null_keys=null_keys, order=order, sample=sample
        )
        if asked.engine == "reference":
            matches = self._by_definition(asked)
            return Batches(matches.layout, iter([matches]), lambda: BatchesRest(matches.undecided, matches.null_keys, matches.warnings))
        compiled, streams = self.compiled(asked.source.schema), asked.source.streams
        types = NamedTypes(compiled.plan, compiled.programs, group_nulls=null_keys == "group")
        ties = EqualTimes(compiled) if streams is None and not asked.order else None
        recognizer = Recognizer(
            NumberedQuery.of(compiled), null_keys=null_keys, variant=engine, sample=sample, types=types, ties=ties, interleaved=True
        )
        told = None if progress is None else Progress(progress, asked.rows)
        own = functools.partial(shown, layout=compiled.layout, streams=streams)

        def warnings() -> tuple[str, ...]:
            return (*types.warnings, *(() if ties is None else ties.warnings))

        return Batches.of(recognizer, asked.pieces, warnings=warnings, layout=compiled.layout, shown=own, until=asked.until, progress=told)

    def _by_definition(self, asked: CheckedArguments) -> Matches:
        plan = self.bound(asked.source.schema)
        table = asked.source.events
        assert isinstance(table, pa.Table)
        numbers = asked.source.numbers
        if asked.sort or asked.order:
            _, rows = batch.ordered(plan.schema, table, sort=asked.sort, order=asked.order)
            if rows is not None:
                table, numbers = table.take(pa.array(rows)), rows if numbers is None else numbers[rows]
        found = definition.run(plan, table, until=asked.until, null_keys=asked.null_keys)
        return found if plan.definitions else found.with_origin(Origin(numbers, asked.source.streams))

    def recognizer(
        self,
        schema: pa.Schema | EventSchema,
        *,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
        lateness: object = None,
        order: str | Sequence[str] = (),
        null_keys: str = "drop",
        engine: str | None = None,
        snapshot: bytes | None = None,
        max_bytes: int | None = None,
    ) -> Recognizer:
        """A recognizer for a stream of events: `push` events as they come, and get the matches that end in them.

        schema: the schema of the events. type, time: as for `run`.
        lateness: how late an event may come: a text such as "10s", a timedelta, or a number of steps of the time column (None: events must come in
        the order of their times).
        order: the columns that order events of equal time, before the order of arrival; needs lateness.
        null_keys, engine: as for `run`. max_bytes: as for `run`, for the matches of each call.
        snapshot: the bytes of `Recognizer.snapshot`, to continue from there.

        Returns a `Recognizer`. Raises as `run`, and SnapshotError for a snapshot of another query, schema or lateness.
        """
        check_engine(engine, ENGINES[:-1])
        check_choice("null_keys", null_keys, ("drop", "group"))
        compiled = self.compiled(self.schema(schema, type=type, time=time))
        options: dict[str, Any] = {"null_keys": null_keys, "variant": engine, "max_bytes": check_max_bytes(max_bytes)}
        recognizer = Recognizer(compiled, lateness=lateness, order=columns_of("order", order), **options)
        if snapshot is not None:
            recognizer.continued(snapshot)
        return recognizer

    def on(
        self,
        *,
        type: str | Column | None = None,  # noqa: A002 - public word
        time: str = DEFAULT_TIME,
        order: str | Sequence[str] = (),
        null_keys: str = "drop",
        null_time: str = "error",
        bad_time: str = "error",
        max_ahead: object = None,
        lateness: object = None,
        partition: str | Sequence[str] = (),
        apart: object = "1 day",
        idle: object = "1 minute",
        until: object = None,
        since: object = None,
        positions: bool = False,
        columns: Sequence[str] | None = None,
        undecided: bool = False,
        late: bool = False,
        buckets: int | None = None,
        hot_keys: bool = False,
        max_bytes: int | None = None,
        match_id: str | None = None,
    ) -> Recognition:
        """A function from a Spark DataFrame of events to one of matches, for `DataFrame.transform`.

        The options, the output and the errors are those of `cepheid.spark.on`. Needs the extra `spark`.
        """
        from cepheid.spark.recognition import on

        return on(
            self,
            type=type,
            time=time,
            order=order,
            lateness=lateness,
            partition=partition,
            apart=apart,
            idle=idle,
            null_keys=null_keys,
            null_time=null_time,
            bad_time=bad_time,
            max_ahead=max_ahead,
            positions=positions,
            columns=columns,
            buckets=buckets,
            hot_keys=hot_keys,
            late=late,
            until=until,
            undecided=undecided,
            since=since,
            max_bytes=max_bytes,
            match_id=match_id,
        )

    # ---------------------------------------------------------------------------------------------------------------- showing

    def explain(
        self,
        stage: str | None = None,
        *,
        schema: pa.Schema | EventSchema | None = None,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
    ) -> Explanation:
        """What the query means and what it will cost: sentences, each stage from the text to the program, the costs, and the warnings.

        stage: one of `cepheid.engine.plan.explain.STAGES`, or None for all. "meaning" has sentences about the query as it was written: each one
        narrows what those before it leave, and what is more than an event is a numbered part with a line of its own. schema: the schema of the
        events; without it, types are guessed, and where that fails there are only the stages that need none: the others say why. Parameters need no
        values for the stages up to "tree": sentences name them. type, time: as for `run`.

        Returns an `Explanation`; print it. Raises InputError for an unknown stage, BindError where the schema does not fit or none would,
        and as `schema`.
        """
        from cepheid.engine.plan.explain import explain

        return explain(self, stage, None if schema is None else self.schema(schema, type=type, time=time))

    def draw(
        self,
        format: str = "svg",  # noqa: A002 - public word
        *,
        schema: pa.Schema | EventSchema | None = None,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
        title: str | None = None,
    ) -> Any:
        """The automaton as a drawing, one for each EVENT definition, too; what no automaton says stands below it: windows, keys, absences.

        format: "svg", "mermaid" or "dot". schema: the schema of the events; without it, attributes get the types that the query seems to want. type,
        time: as for `run`. title: a line above the drawing. Raises InputError for another format, and as `schema` and `compiled`.
        """
        from cepheid.engine.plan.likely_schema import likely_schema
        from cepheid.viz.graph import draw_panels
        from cepheid.viz.panels import panels

        compiled = self.compiled(likely_schema(self) if schema is None else self.schema(schema, type=type, time=time))
        return draw_panels(panels(compiled), format=format, title=title)

    def explore(
        self,
        events: object,
        *,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
        until: object = None,
        sort: bool = False,
        null_keys: str = "drop",
        order: Sequence[str] = (),
    ) -> Explorer:
        """The matches over time and the automaton that one steps through, as a widget of a notebook: Jupyter, marimo, VS Code.

        events, type, time, until, sort, null_keys, order: as for `run`; a reader is read as a whole.

        Returns an `Explorer`, an `anywidget.AnyWidget`. Its traits can be read, observed and set: `position`, how many events are read, and `match`,
        the index in `run(events)` of the chosen match, or None. Its properties `row` and `states` have the event that one has stepped to and the
        states that are live after it. What is shown is bounded by the limits of the workbench, and notes in the widget name those that it meets.

        Raises SetupError without the extra `notebook`, LimitError for more than 20,000 events (`cepheid.play.limits.MAX_EVENTS`), and as `run`, but
        not for many matches: of these the first are listed. O(events x transitions), and as `run`.
        """
        from cepheid.notebook.exploring import explore

        return explore(self, events, type=type, time=time, until=until, sort=sort, null_keys=null_keys, order=order)


def _from_text(text: str, args: Mapping[str, object]) -> Query:
    return query(text, args=args)


def _checked_args(args: object) -> dict[str, object]:
    """The values of parameters; raises InputError for what is no mapping of names."""
    try:
        found: dict[Any, object] = dict(args)  # type: ignore[call-overload]  # what is none raises
    except (TypeError, ValueError):
        raise InputError(f"args={args!r} is not a mapping of names to values", help="write args={'limit': 40}") from None
    for name in found:
        if not isinstance(name, str):
            raise InputError(f"args has the name {name!r}, which is not text", help="write args={'limit': 40}")
    return {name: kept(value) for name, value in found.items()}
