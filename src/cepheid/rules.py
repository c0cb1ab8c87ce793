"""`Rules`: queries that begin, change and end while the stream runs, as data.

Comes in: rows, each of which says what the query of a rule is from a time on. Goes out: the matches of each version of each rule. A thousand rules
cost little more than a few, as with `cepheid.queries`; a rule that comes, changes or goes leaves the state of the others as it is.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.arguments import ENGINES, asked_of, check_engine, check_shown, columns_of
from cepheid.engine.evaluations.progress import telling
from cepheid.engine.input.columns import is_streams
from cepheid.engine.input.event_times import times_of
from cepheid.engine.input.rule_rows import has_queries, rows_in
from cepheid.engine.input.rule_versions import ALWAYS_WAS
from cepheid.engine.memory.process import CHOOSE, named_memory
from cepheid.engine.output.rule_table import check_fits
from cepheid.engine.plan.numbered import with_row
from cepheid.engine.run import definition
from cepheid.engine.run.allowance import Allowance, check_max_bytes
from cepheid.engine.run.batch import ordered
from cepheid.engine.run.batches import END, decided
from cepheid.engine.run.members import QueryMatches
from cepheid.engine.run.rules import MORE, FoundRules, RuleMatches, RuleQuery, RulesRecognizer, RuleVersion, Shape, begun_before, placed
from cepheid.errors import NotSupportedError, check_choice
from cepheid.language.words import write_name
from cepheid.query import Query, query
from cepheid.schema import with_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cepheid.arguments import CheckedArguments
    from cepheid.engine.evaluations.progress import Progress
    from cepheid.engine.input.rule_versions import Row, Version
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Matches
    from cepheid.engine.run.rules import RefusedRule
    from cepheid.schema import EventSchema


def any_event(keys: Sequence[str] = ()) -> Query:
    """A query over any events with these keys: it says which columns have their type and time. No key has the name of its variable."""
    partition = f" PARTITION BY {', '.join(map(write_name, keys))}" if keys else ""
    return query(f"SELECT * WHERE ANY AS {'x' * (1 + max(map(len, keys), default=0))}{partition}")


TEXTS = 1 << 10
"""Texts of queries that are remembered as they were read; each change may bring another one."""


def rules(given: Mapping[str, object] | Iterable[Mapping[str, object]] | object) -> Rules:
    """Rules as data: queries, each with the time from which on it acts.

    given: {name: query}, each a text or a `Query`, whose rules act on all events; or rows, as a list of dicts, a pyarrow.Table, a DataFrame, or a
    file that `Query.run` reads. A row has

    - ``name``: of the rule, text.
    - ``query``: the text of its query from then on.
    - ``args``: the query's arguments: a dict, or the same as JSON: texts (also durations), numbers (2.0 is 2), true, false, null, and lists. In a
      column of structs NULL is no argument. Optional.
    - ``from``: the time from which on the version acts, as the time column of the events has it. Optional: on all events.
    - ``until``: the time at which it ends. Optional: it ends when the next row of its rule begins.
    - ``deleted``: true: the rule ends at ``from``; a query is not read. Optional.
    - ``ends``: "finish" (default): the matches that begin before the end of the version may end after it. "stop": at its end they are given up. In a
      row with ``deleted`` it says so of all versions before it. Optional.

    Other columns are not read.

    The meaning: a version that acts from f until u has those matches of its query, over the events from f on alone, that begin before u; a strategy
    chooses before that. With "stop" it has those of the events from f on and before u, as far as they are decided at u. An event of the time u is the
    next version's. COUNT(*) has no beginning, and always stops. The rows are a set: their order, and when each comes, change nothing. Rows that are
    equal are one. A row that is wrong, or that contradicts another one of the same rule and time, is refused, and the version before goes on.

    Returns `Rules`. Raises InputError for what are no rows, and for a column whose name looks like one of these; and for {name: query} as
    `cepheid.query`, where rows are refused one by one, once the events are known.
    """
    if isinstance(given, Mapping) and has_queries(given):
        given = {name: each if isinstance(each, Query) else query(each) for name, each in given.items()}
    return Rules(rows_in(given))


class Rules:
    """Queries that begin, change and end while the stream runs. Make them with `cepheid.rules`, which says what they mean.

    It is immutable, and any number of threads may use it at the same time.
    """

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = list(rows)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, as dicts."""
        return [dict(row) for row in self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        names = list(dict.fromkeys(str(row.get("name")) for row in self._rows))
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        return f"<{len(self._rows)} {'row' if len(self._rows) == 1 else 'rows'} of rules: {shown or 'none'}>"

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
    ) -> RuleMatches:
        """The matches of each version over `events`; the events are read once.

        Takes the arguments of `Query.run`, except sample, and one table: several streams have to be merged before. max_bytes: for the matches of all
        versions together.

        Returns `RuleMatches`, whose `refused` has the rows that do not act. Raises as `Query.run`, for the events. Linear in events, in pairs of an
        event and a version that it can touch, and in matches.
        """
        allowance = Allowance(check_max_bytes(max_bytes), help=(CHOOSE, MORE))
        if is_streams(events):
            raise NotSupportedError(
                "rules read one table of events", help="merge the streams, with a column that says of which each event is"
            )
        options: dict[str, Any] = {"until": until, "engine": engine, "sort": sort, "null_keys": null_keys, "order": order}
        asked = asked_of(any_event().tree, events, type=type, time=time, **options)
        own = asked.source.schema
        schema = with_unreadable(pa.schema(list(own.attributes.items())), own.unreadable)
        recognizer = RulesRecognizer(
            with_row(own),
            RuleCompiler(schema, type=type, time=time, ahead=True),
            null_keys=asked.null_keys,
            variant=None if engine == "reference" else engine,
            ahead=True,
            numbered=True,
        )
        refused = recognizer.change(self._rows)
        if engine == "reference":
            return _by_definition(recognizer, asked, refused)
        with telling(progress, asked.rows) as told:
            found = [each.all(allowance) for each in given_by(recognizer, asked.pieces, asked.until, progress=told)]
        left = None
        if asked.until != END:
            with recognizer.waiting() as waiting:
                left = waiting.all(allowance)
        return RuleMatches.joined(recognizer.source, found, refused=refused, nulls=recognizer.null_keys, waiting=left)

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
    ) -> RulesRecognizer:
        """A recognizer of the rules: `push` events as they come, and `change` rules meanwhile.

        Takes the arguments of `Query.recognizer`. A snapshot has the rules that there were: these here are then further rows.

        Returns a `RulesRecognizer`. Raises as `Query.recognizer`, for the events; its `refused` has the rows that do not act.
        """
        check_engine(engine, ENGINES[:-1])
        check_choice("null_keys", null_keys, ("drop", "group"))
        own = any_event().schema(schema, type=type, time=time)
        recognizer = RulesRecognizer(
            own,
            RuleCompiler(schema, type=type, time=time, ahead=lateness is not None),
            lateness=lateness,
            order=columns_of("order", order),
            null_keys=null_keys,
            variant=engine,
            max_bytes=check_max_bytes(max_bytes),
            ahead=lateness is not None,
        )
        if snapshot is not None:
            recognizer.continued(snapshot)
        recognizer.change(self._rows)
        return recognizer


def given_by(
    recognizer: RulesRecognizer,
    pieces: Iterable[pa.Table | pa.RecordBatch],
    until: int | str | None,
    *,
    progress: Progress | None = None,
) -> Iterator[FoundRules]:
    """What of rules is decided by each piece, and at the end, each to be made before the next; until: as of `CheckedArguments`."""
    cuts = [version.until for version, _ in recognizer.to_come if version.until is not None]
    # Where nothing follows, all versions come to their ends.
    complete = max(cuts, default=None) if until == END else until
    parts = [decided(recognizer, pieces, until=complete, progress=progress)]
    if until == END:
        parts.append(decided(recognizer, (), until=END, progress=None))
    for found in itertools.chain.from_iterable(parts):
        assert isinstance(found, FoundRules)
        yield found


class RuleCompiler:
    """From a row to its query over a schema.

    ahead: whether the events of a time are read together, which THEN may ask for. fits: the schema and the keys of the table that its matches have to
    fit (`check_fits`), None: any do.
    """

    def __init__(self, schema: Any, *, ahead: bool, fits: tuple[pa.Schema, Sequence[str]] | None = None, **where: str | None) -> None:
        self._schema, self._ahead, self._fits, self._where = schema, ahead, fits, where
        self._parsed = functools.lru_cache(TEXTS)(query)  # a thousand rules may have one text

    def __call__(self, row: Row) -> RuleQuery:
        """The query of a row; raises CepheidError where it is wrong."""
        assert row.text is not None
        parsed = self._parsed(row.text)
        own = Query(parsed.tree, row.text, json.loads(row.arguments))
        schema = own.schema(self._schema, **self._where)
        compiled = own.compiled(schema)
        check_shown(own.tree, schema)
        if self._fits is not None:
            check_fits(compiled.layout, *self._fits)
        if compiled.looks_ahead and not self._ahead:
            raise NotSupportedError(
                "THEN looks at all events of a time together, and without lateness= the recognizer reads each as it comes",
                help="lateness=0 makes the events of the newest time wait",
            )
        return RuleQuery(row.member, compiled)


def _by_definition(recognizer: RulesRecognizer, asked: CheckedArguments, refused: tuple[RefusedRule, ...]) -> RuleMatches:
    """What `run` gives, version by version, by the definition of their queries."""
    table, schema, numbers = asked.source.events, asked.source.schema, asked.source.numbers
    assert isinstance(table, pa.Table)
    assert schema.time_column is not None
    numbers = np.arange(table.num_rows) if numbers is None else numbers
    _, order = ordered(schema, table, sort=asked.sort, order=asked.order)
    if order is not None:
        table, numbers = table.take(pa.array(order)), numbers[order]
    times = times_of(table, schema.time_column)
    complete = int(times.max(initial=ALWAYS_WAS)) if asked.until is None else asked.until
    found: dict[RuleVersion, Matches] = {}
    waiting: dict[RuleVersion, Matches] = {}
    for version, compiled in recognizer.to_come:
        cut = version.reads_before(counts=compiled.plan.count)
        read = times >= version.row.since
        until: int | str = complete
        if cut is not None:
            read &= times < cut
            until = cut - 1 if complete == END else min(cut - 1, int(complete))
        if not len(times) or not (times >= version.row.since).any():
            continue
        rows = np.flatnonzero(read)
        all_of_it = definition.run(compiled.plan, table.take(pa.array(rows)), until=until, null_keys=asked.null_keys)
        public = recognizer.public(version)
        found[public] = _begun(all_of_it, version, numbers[rows], layered=bool(compiled.layers))
        if until == complete:
            waiting[public] = _begun(all_of_it.undecided, version, numbers[rows], layered=bool(compiled.layers))
    shapes = {public: Shape(matches.layout) for public, matches in found.items()}
    left = {public: [QueryMatches(matches)] for public, matches in waiting.items() if len(matches)}
    parts = {public: [QueryMatches(matches)] for public, matches in found.items() if len(matches)}
    nulls = {public: matches.null_keys for public, matches in found.items()}
    shapes_left = shapes | {public: Shape(matches.layout) for public, matches in waiting.items()}
    return RuleMatches(recognizer.source, shapes, parts, refused, nulls, RuleMatches(recognizer.source, shapes_left, left))


def _begun(matches: Matches, version: Version, numbers: Array, *, layered: bool) -> Matches:
    """Those that begin before the end of their version, with the numbers of their events as positions."""
    matches = begun_before(matches, version.until)
    return matches if layered else placed(matches, numbers[matches.marks.rows])
