"""Rules in a bucket of keys of a stream: an embedded `RulesRecognizer`, whose state is written where it has changed.

Comes in: events in order, as they travel, and tables with rows of rules. Goes out: rows of matches, as `RuleMatches.to_arrow` has them, with the
times at which they are decided; the state as bytes. Each query or family has a page of its own, and the rows of rules have one: a rule that comes
does not rewrite what the others know. Imports no Spark.
"""

from __future__ import annotations

import functools
import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.absences.absence import decided_at
from cepheid.engine.memory import container
from cepheid.engine.memory.checks import demand
from cepheid.engine.output.rule_table import table_schema
from cepheid.errors import LimitError
from cepheid.spark.tasks.buckets import Bucket
from cepheid.spark.tasks.packing import steps
from cepheid.spark.tasks.pages import PAGE_LIMIT
from cepheid.spark.tasks.rules import recognizer_of, rows_that_came
from cepheid.spark.tasks.worker import aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.run.allowance import Allowance
    from cepheid.engine.run.layered import Layered
    from cepheid.engine.run.member import Member
    from cepheid.spark.tasks.store import Store
    from cepheid.spark.tasks.unit import Unit

    Found = Callable[[Allowance | None], Iterator[tuple[pa.Table, Array]]]

RULES_PAGE = 0
"""The page of what the rules are; those of the queries and families have the numbers from 1 on."""

BEGINNING = 1
"""The least time of an event (microseconds) where Spark's watermark is 0, as it is before the first event: nothing is known, and no rule is late."""

PREFIX = "rules/"
"""What the names of the sections begin with."""

REFUSED = pa.schema([("rule", pa.string()), ("error", pa.string())])


class RuleStates:
    """The part of a `Bucket` that has the rules. unit: of a query over any event, which says how events travel. store: of the pages."""

    forgets = True
    empty = False  # what the rules are is never forgotten

    def __init__(self, unit: Unit, store: Store) -> None:
        self._fingerprint, self._store = unit.fingerprint, store
        task = unit.unpacked[0]
        self._columns, self._keys = dict(task.payload), unit.compiled[0].written
        self.recognizer = recognizer_of(task.schema, keys=self._keys, null_keys=unit.null_keys)
        self._places: dict[Member | Layered, int] = {}
        self._written: dict[int, tuple[bytes, int]] = {}  # of each page what it was made of, as a hash, and its bytes

    # ------------------------------------------------------------------------------------------------------------------- running

    def read(self, events: pa.Table, times: Array, *, first: int, now: int) -> Found:  # noqa: ARG002 - as of the other parts
        """What events in order decide, where no event before `now` comes any more."""
        schema = self.recognizer.schema
        table = pa.table([events[self._columns[field.name]].cast(field.type) for field in schema], schema=schema)
        return functools.partial(self._rows, self.recognizer.passing(now, (table, times)))

    def advance(self, now: int) -> Found:
        """What it decides that no event before `now` comes any more."""
        return functools.partial(self._rows, self.recognizer.passing(now))

    def _rows(self, opened: AbstractContextManager[Any], allowance: Allowance | None) -> Iterator[tuple[pa.Table, Array]]:
        """The rows of the matches that this decides, and when each was; to be read to the end."""
        schema = table_schema(*self.recognizer.source, self._keys)
        with opened as found:
            for rows, query in found.tables(schema, self._keys, allowance):
                if allowance is not None:
                    allowance.used += rows.nbytes
                yield rows, decided_at(query.absences, steps(rows["start_time"]), steps(rows["end_time"])) + query.settled

    def change(self, rows: pa.Table) -> pa.Table:
        """Take rows of rules; a row of the output for each that is refused."""
        refused = self.recognizer.change(rows_that_came(rows))
        return pa.table([[each.name for each in refused], [str(each.error) for each in refused]], schema=REFUSED)

    # ---------------------------------------------------------------------------------------------------------------- giving back

    def expire(self, now: int) -> None:
        """Nothing: the recognizer has done it when time passed."""

    @property
    def keys(self) -> int:
        """As of the recognizer."""
        return self.recognizer.keys

    @property
    def deadlines(self) -> list[int]:
        """As of the recognizer."""
        return self.recognizer.deadlines

    @property
    def horizon(self) -> int | None:
        """As of the recognizer."""
        return self.recognizer.horizon

    # ------------------------------------------------------------------------------------------------------------- state as bytes

    def dump(self, *, latest: int) -> dict[str, Any]:  # noqa: ARG002 - as of the other parts
        """The sections that are no page; what has changed of the pages is written. O(state)."""
        sections = self.recognizer.dump()
        members = self.recognizer.members
        kept = {member: self._places[member] for member in members if member in self._places}
        free = iter(sorted({*range(1, len(members) + 1)} - {*kept.values()}))
        self._places = {member: kept.get(member) or next(free) for member in members}
        pages: dict[int, dict[str, Any]] = {place: {} for place in self._places.values()}
        pages[RULES_PAGE] = {"rules": sections.pop("rules")}
        for name in [name for name in sections if "/" in name]:
            number, _, own = name.partition("/")
            pages[self._places[members[int(number)]]][own] = sections.pop(name)
        for place in self._written.keys() - pages.keys():
            self._store.remove(place)
            del self._written[place]
        for place, content in pages.items():
            self._write(place, content)
        # Each page by what is in it, too: a page of another bucket, or of another time, is none of these.
        digests = {place: self._written[place][0].hex() for place in (RULES_PAGE, *self._places.values())}
        sections["places"] = json.dumps({"places": list(digests.items())}).encode()
        return {PREFIX + name: content for name, content in sections.items()}

    def _write(self, place: int, content: dict[str, Any]) -> None:
        digest = _digest(content)
        if place in self._written and self._written[place][0] == digest:
            return
        page = container.pack(content, fingerprint=self._mark(place), compress=True)
        if len(page) > PAGE_LIMIT:
            raise LimitError(
                f"in one bucket the state of a rule, or of rules that differ in constants alone, has {len(page)} bytes, and the limit is"
                f" {PAGE_LIMIT} (PAGE_LIMIT)",
                help=(
                    "spread the keys over more buckets: on_rules(.., buckets=..), in a new checkpoint",
                    "or make the window smaller: then less is kept",
                ),
            )
        self._store.put(place, page)
        self._written[place] = digest, len(page)

    def load(self, sections: Mapping[str, Any], *, latest: int, events: int) -> None:  # noqa: ARG002 - as of the other parts
        """Go on, fresh, from what `dump` gave; raises what nonsense in it raises."""
        whole = {name.removeprefix(PREFIX): content for name, content in sections.items() if name.startswith(PREFIX)}
        places = container.numbers_of(whole.pop("places"))["places"]
        digests = {container.integer(place, "place", least=0): digest for place, digest in places}
        pages = {place: self._page(place) for place in digests}
        demand(*(self._written[place][0].hex() == digest for place, digest in digests.items()))
        whole |= pages.pop(RULES_PAGE)
        for number, content in enumerate(pages.values()):
            whole |= {f"{number}/{name}": own for name, own in content.items()}
        self.recognizer.load(whole)
        self._places = dict(zip(self.recognizer.members, pages, strict=True))

    def _page(self, place: int) -> dict[str, Any]:
        page = self._store.get(place)
        if page is None:
            raise ValueError("a page is missing")
        content = container.unpack(page, fingerprint=self._mark(place))
        self._written[place] = _digest(content), len(page)
        return content

    def _mark(self, place: int) -> bytes:
        """The fingerprint of a page: it is of this stream, and of this place."""
        return hashlib.sha256(self._fingerprint + str(place).encode()).digest()

    def check(self, pending: pa.Table) -> None:
        """Events that wait have no letters that could be wrong."""

    @property
    def size(self) -> int:
        """Bytes of the pages."""
        return sum(size for _, size in self._written.values())


def _digest(content: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(container.pack(dict(sorted(content.items())), fingerprint=b"")).digest()


class RuleBucket(Bucket):
    """A bucket with rules. told: rows of rules that have come, in tables, and of each whether this is the bucket that says which are refused."""

    def __init__(self, unit: Unit, store: Store, told: Sequence[tuple[pa.Table, bool]] = ()) -> None:
        self.rules = RuleStates(unit, store)
        self.told = told
        self.refused: list[pa.Table] = []
        super().__init__(unit, store)

    def _made(self) -> list[Any]:
        return [self.rules]

    def _decided(self, now: int, allowance: Allowance | None = None) -> Iterator[tuple[pa.Table, Array]]:
        # A rule is late, in whatever bucket, if an event of its time would have been late before this micro-batch.
        if self.told and self.order.watermark > BEGINNING:
            yield from super()._decided(self.order.watermark, allowance)
        for table, says in self.told:
            refused = self.rules.change(table)
            self.refused += [refused] if says and len(refused) else []
        if now > BEGINNING:
            yield from super()._decided(now, allowance)

    def _rows(self, parts: Iterable[tuple[Any, Any]], allowance: Allowance | None = None) -> Iterator[tuple[pa.Table, Array]]:
        for _, found in parts:
            for rows, times in found(allowance):
                kinds = pa.schema([self.output.field(name) for name in rows.column_names])
                yield aligned(rows.cast(kinds), self.output), times

    def _refused(self, now: int) -> Iterable[tuple[pa.Table, Array]]:
        times = [np.full(len(each), now) for each in self.refused]
        return ((self._dated(aligned(each, self.output), own), own) for each, own in zip(self.refused, times, strict=True))

    @property
    def size(self) -> int:
        """Bytes of the pages."""
        return self.rules.size
