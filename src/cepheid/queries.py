"""`Queries`: several queries over the same events, read once.

Comes in: queries by name. Goes out: the matches of each, from one pass. Each condition is asked once, queries that differ in constants alone are
evaluated as one, and queries that an event cannot touch are not visited; so a thousand rules cost little more than a few. Every query keeps its
meaning: its matches are those of its own `run`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.arguments import ENGINES, asked_of, check_engine, check_shown, columns_of
from cepheid.engine.evaluations.progress import telling
from cepheid.engine.input.columns import is_streams
from cepheid.engine.input.named_types import NamedTypes, counts_of
from cepheid.engine.input.sources import used_types, whole
from cepheid.engine.memory.process import named_memory
from cepheid.engine.output.matches import Matches, concatenate
from cepheid.engine.plan.explain import Explanation, explain_queries
from cepheid.engine.plan.numbered import NumberedQuery, shown, with_row
from cepheid.engine.run.allowance import Allowance, check_max_bytes
from cepheid.engine.run.batches import END, decided
from cepheid.engine.run.members import QueryMatches
from cepheid.engine.run.queries import ByName, QueriesRecognizer
from cepheid.errors import CepheidError, InputError, check_choice
from cepheid.query import Query, query
from cepheid.schema import with_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from cepheid.arguments import CheckedArguments
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.language import syntax
    from cepheid.schema import EventSchema
    from cepheid.spark.recognition import Recognition


def queries(given: Mapping[str, Query | str | Path | syntax.Query | Any] | Sequence[Query | str | Path | syntax.Query | Any]) -> Queries:
    """Several queries over the same events.

    given: {name: query}, or a list of queries, which get the names "q1", "q2", .. Each is a `Query`, or what `cepheid.query` takes.

    Returns `Queries`. Raises InputError if there is no query or a name is not text, and as `cepheid.query`; the message names the query.
    """
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InputError(
            f"queries cannot be a {type(given).__name__}", help='give {name: query}: cepheid.queries({"high": "SELECT ..", ..})'
        )
    named = dict(given) if isinstance(given, Mapping) else {f"q{number}": each for number, each in enumerate(given, 1)}
    if not named:
        raise InputError("there is no query", help="give at least one")
    for name in named:
        if not isinstance(name, str):
            raise InputError(f"{name!r} is not the name of a query", help="give the name as a str")
        if not name.isprintable() and name.encode(errors="replace").decode() != name:
            raise InputError(
                f"{name!r} is not the name of a query: it has half a surrogate pair", help="give the name as a str of characters"
            )
    made = {}
    for name, each in named.items():
        with _named(name):
            made[name] = each if isinstance(each, Query) else query(each)
    return Queries(made)


class Queries(Mapping[str, Query]):
    """Several queries over the same events, by name. Make one with `cepheid.queries`.

    It is an immutable mapping from names to `Query` objects, and any number of threads may use it at the same time. The events are read once for all
    queries, and each query has the matches of its own `run`.
    """

    def __init__(self, named: Mapping[str, Query]) -> None:
        self._queries = dict(named)

    def __getitem__(self, name: str) -> Query:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    def __repr__(self) -> str:
        return f"cepheid.queries({self._queries!r})"

    # ---------------------------------------------------------------------------------------------------------------- running

    @named_memory()
    def run(
        self,
        events: object,
        *,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
        until: object = None,
        engine: str | None = None,
        sort: bool = False,
        null_keys: str = "drop",
        order: str | Sequence[str] = (),
        progress: Callable[[int, int], None] | None = None,
        max_bytes: int | None = None,
    ) -> ByName:
        """The matches of each query over `events`; the events are read once.

        Takes the arguments of `Query.run`, except sample. max_bytes: for the matches of all queries together.

        Returns `ByName`: for each name the `Matches` that `Query.run` gives. Raises as `Query.run`. Linear in events, in pairs of an event and a
        query that it can touch, and in matches; a query that is evaluated alone (see `explain`) reads every event.
        """
        allowance = Allowance(check_max_bytes(max_bytes))
        options: dict[str, Any] = {
            "type": type,
            "time": time,
            "until": until,
            "engine": engine,
            "sort": sort,
            "null_keys": null_keys,
            "order": order,
        }
        check_engine(engine, ENGINES)
        several = is_streams(events)
        if several:
            assert isinstance(events, Mapping)
            # Several queries read the same streams, each of which may be there to be read once.
            events = {name: whole(name, events[name], time=time) for name in self._streams(events)}
        elif engine == "reference":
            events = whole(None, events, time=time)
        if engine == "reference":
            found = {name: each.run(events, **options) for name, each in self._queries.items()}
        else:
            found = {}
            for names, asked in self._asked(events, **options):
                # Of one table each query says itself what the type of its events is; merged streams have a column for it.
                own = asked.source.schema
                schema = own if several else with_unreadable(pa.schema(list(own.attributes.items())), own.unreadable)
                found |= self._whole(self._compiled(schema, names, type=type, time=time), asked, allowance, progress)
        matches = {name: found[name] for name in self._queries}
        return ByName(matches, {name: [QueryMatches(own)] for name, own in matches.items() if len(own)})

    def _streams(self, events: Mapping[Any, object]) -> list[Any]:
        """The streams that some query reads, of those that there are."""
        named = [each.tree.streams for each in self._queries.values()]
        read = set(events) if () in named else {name for streams in named for name in streams}
        return [name for name in events if name in read]

    def _asked(self, events: object, **options: Any) -> Iterator[tuple[list[str], CheckedArguments]]:
        """The queries that read the same events, and these: of several streams those in FROM, merged as the query's types say."""
        groups: dict[object, list[str]] = {}
        for name, each in self._queries.items():
            same = (each.tree.streams, used_types(each.tree)) if is_streams(events) else None
            groups.setdefault(same, []).append(name)
        for names in groups.values():
            asked = asked_of(self._queries[names[0]].tree, events, **options)
            for name in names[1:]:
                with _named(name):
                    check_shown(self._queries[name].tree, asked.source.schema)
            yield names, asked

    def _whole(
        self, compiled: Mapping[str, Compiled], asked: CheckedArguments, allowance: Allowance, progress: Callable[[int, int], None] | None
    ) -> dict[str, Matches]:
        """The matches of the queries that read the same events."""
        own = {name: NumberedQuery.of(each) for name, each in compiled.items()}
        recognizer = QueriesRecognizer(own, with_row(asked.source.schema), null_keys=asked.null_keys, variant=asked.engine)
        types = {name: NamedTypes(each.plan, group_nulls=asked.null_keys == "group") for name, each in compiled.items()}
        with telling(progress, asked.rows) as told:
            pieces = _seen(asked.pieces, types)
            parts = [made.all(allowance) for made in decided(recognizer, pieces, until=asked.until, progress=told)]
        left = {} if asked.until == END else recognizer.undecided().found
        nulls = recognizer.null_keys
        found = {}
        for name, each in compiled.items():
            together = concatenate(own[name].layout, [part[name] for part in parts], null_keys=nulls[name])
            together = dataclasses.replace(together, waiting=left.get(name), warnings=types[name].warnings)
            found[name] = shown(together, layout=each.layout, streams=asked.source.streams)
        return found

    def _compiled(self, schema: Any, names: Iterable[str] = (), **where: str | None) -> dict[str, Compiled]:
        """The queries, or those of these names, over events of a schema; where: the columns of type and time. Each reads types as its FROM says."""
        found = {}
        for name in names or self._queries:
            each = self._queries[name]
            with _named(name):
                found[name] = each.compiled(each.schema(schema, **where))
        return found

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
    ) -> QueriesRecognizer:
        """A recognizer of all queries: `push` events as they come, and get for each name the matches that end in them.

        Takes the arguments of `Query.recognizer`. A snapshot must be of the same queries under the same names.

        Returns a `QueriesRecognizer`. Raises as `Query.recognizer`.
        """
        check_engine(engine, ENGINES[:-1])
        check_choice("null_keys", null_keys, ("drop", "group"))
        compiled = self._compiled(schema, type=type, time=time)
        options: dict[str, Any] = {"null_keys": null_keys, "variant": engine, "max_bytes": check_max_bytes(max_bytes)}
        first = next(iter(compiled.values())).source
        recognizer = QueriesRecognizer(compiled, first, lateness=lateness, order=columns_of("order", order), **options)
        if snapshot is not None:
            recognizer.continued(snapshot)
        return recognizer

    def on(self, **options: Any) -> Recognition:
        """A function from a Spark DataFrame of events to one of the matches of all queries, for `DataFrame.transform`.

        The options, the output and the errors are those of `cepheid.spark.on`. Needs the extra `spark`.
        """
        from cepheid.spark.recognition import on

        return on(self, **options)

    # ---------------------------------------------------------------------------------------------------------------- showing

    def explain(
        self,
        stage: str | None = None,
        *,
        schema: pa.Schema | EventSchema | None = None,
        type: str | None = None,  # noqa: A002 - public word
        time: str | None = None,
    ) -> Explanation:
        """What the queries mean, which are evaluated as one and which alone, which events go to them, and how each is evaluated.

        stage: "meaning" for the sentences alone, the title of another section, or None for all. Of queries that differ in constants alone the first
        one's sentences stand for all.
        schema: the schema of the events; it is needed. type, time: as for `run`. Returns an `Explanation`; print it. Raises InputError without a
        schema and for an unknown stage, and as `Query.explain`.
        """
        if schema is None:
            raise InputError("what queries share depends on the types of their attributes", help="explain(schema=..), of the events")
        compiled = self._compiled(schema, type=type, time=time)
        return explain_queries(compiled, stage)


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """An error inside says which query it is about."""
    try:
        yield
    except CepheidError as error:
        raise error.of_query(name) from None


def _seen(pieces: Iterable[pa.Table | pa.RecordBatch], types: Mapping[str, NamedTypes]) -> Iterator[pa.Table | pa.RecordBatch]:
    """The pieces; the types of their events are shown to each query, read once."""
    for piece in pieces:
        table = piece if isinstance(piece, pa.Table) else pa.Table.from_batches([piece])
        counts: dict[str, list[pa.StructArray]] = {}
        for own in types.values():
            if own.column is not None:
                if own.column not in counts:
                    counts[own.column] = counts_of(table[own.column])
                own.see_counts(counts[own.column])
                own.see_keys(table)
        yield piece
