"""Rules inside a task: sorted events come in as Arrow batches, the rows of `RuleMatches.to_arrow` go out.

The engine is the embedded one, `RulesRecognizer`, with all keys of the task in it. Imports no Spark.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.output.rule_table import table_schema
from cepheid.engine.run.batches import END
from cepheid.engine.run.rules import RuleQuery, RulesRecognizer
from cepheid.rules import RuleCompiler, given_by
from cepheid.spark.tasks.absences import FOREVER, UNTIL
from cepheid.spark.tasks.packing import steps
from cepheid.spark.tasks.visits import RULE
from cepheid.spark.tasks.worker import Incoming, Task, unpack_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cepheid.engine.input.rule_versions import Row


COMPILED_RULES = 1 << 10
"""Rules that a worker process remembers as they were compiled, at least: all its tasks ask for the same, and each takes some milliseconds."""


class CompiledRules:
    """What compiles rows of rules, and remembers those that its latest recognizers asked for, however many these are. compiler: of one row.

    Recognizers ask for all their rules, in one order: a cache that forgets what was asked for longest ago would forget each before it is asked again.
    """

    def __init__(self, compiler: Callable[[Row], RuleQuery]) -> None:
        self._compiler = compiler
        self._now: dict[Row, RuleQuery] = {}
        self._before: dict[Row, RuleQuery] = {}

    def turn(self) -> None:
        """A recognizer begins to ask: what was not asked for since the last such turn is forgotten."""
        if len(self._now) > COMPILED_RULES:
            self._before, self._now = self._now, {}

    def __call__(self, row: Row) -> RuleQuery:
        """The query of a row; raises CepheidError for a wrong one."""
        found = self._now.get(row)
        if found is None:
            found = self._now[row] = self._before.get(row) or self._compiler(row)
        return found


@functools.lru_cache(2)
def compiler_of(schema: tuple[Any, ...], keys: tuple[str, ...]) -> CompiledRules:
    """What compiles the rows of rules whose matches fit one table; schema: as `pack_schema` has it."""
    events = unpack_schema(schema)
    assert events.time_column is not None
    arrow = pa.schema(list(events.attributes.items()))
    fits = table_schema(arrow, events.time_column, keys), keys
    return CompiledRules(RuleCompiler(events, ahead=True, fits=fits))


def recognizer_of(schema: tuple[Any, ...], *, keys: tuple[str, ...], null_keys: str) -> RulesRecognizer:
    """A recognizer of such rules; schema: of the events. keys: attributes that all rules have in PARTITION BY."""
    compiler = compiler_of(schema, keys)
    compiler.turn()
    return RulesRecognizer(unpack_schema(schema), compiler, null_keys=null_keys, ahead=True)


def rows_that_came(table: pa.Table) -> Any:
    """Rows of rules as they came on a stream, for `RulesRecognizer.change`: a table of them, or of those that the driver has."""
    return [pickle.loads(row) for row in table[RULE].to_pylist()] if table.column_names == [RULE] else table  # noqa: S301 - of our driver


def run_rules(
    task: Mapping[str, Any],
    rows: list[dict[str, Any]],
    options: Mapping[str, Any],
    until: int | None,
    output: bytes,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The function that mapInArrow calls: the matches in one partition's events that are decided by `until`.

    task: of a query over any events with these keys, which says where the attributes are. rows: of the rules. options: of `recognizer_of`. until: in
    steps of the time column, FOREVER where nothing will follow; None: it is in the column UNTIL. output: serialized Arrow schema of a row. Events are
    sorted by time, key and tie-breakers. Raises as `worker.run_task`.
    """
    own = Task(**task)
    schema = pa.ipc.read_schema(pa.py_buffer(output))
    recognizer = recognizer_of(own.schema, **options)
    recognizer.change(rows)
    given = (batch for batch in batches if batch.num_rows)
    first = next(given, None)
    if first is None:
        return
    complete = int(steps(pa.Table.from_batches([first])[UNTIL].slice(0, 1))[0]) if until is None else until
    incoming = Incoming(own, own.keys)

    def pieces() -> Iterator[pa.Table]:
        for batch in itertools.chain([first], given):
            incoming.read(batch)
            columns = [batch.column(column) for _, column in own.payload]
            yield pa.table(columns, names=[name for name, _ in own.payload])

    keys = options["keys"]
    fits = table_schema(*recognizer.source, keys)
    for found in given_by(recognizer, pieces(), END if complete == FOREVER else complete):
        for table, _ in found.tables(fits, keys):
            yield from table.append_column("error", pa.nulls(table.num_rows, pa.string())).cast(schema).to_batches()
