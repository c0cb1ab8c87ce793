"""The keys of a bucket in pages of a few keys each, so that a visit reads and writes what has events, and not all.

Comes in: events that a bucket is about to read, and a store of pages (Spark's MapState, or a dict). Goes out: the bucket's run state with the keys of
the pages that these events touch, and after the visit those pages written again. Imports no Spark.

Which form a bucket has is what costs less: pages where few of many keys have events, one whole value where there are few keys, or most are active.
What the other form would have cost less is added up, visit by visit, and the form changes once that is as much as the change costs: so no sequence of
events costs more than about twice what the better form would have. The number of pages follows the number of keys by linear hashing: a visit splits,
or puts together, at most as many pages as it touches.

A page in which no key can go on is removed when it is touched, or when the hand comes by: it goes round once in the time that an event can matter,
so that it reads at most about as many pages as events do. Where something waits for its time (NOT FOLLOWED BY), a visit also touches the pages in
which that time has passed, and no others (`deadlines`).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.absences.absence import ALWAYS
from cepheid.engine.input.keys import key_table
from cepheid.engine.input.order import NEVER
from cepheid.engine.input.payload import decoded
from cepheid.engine.letters.values import decimal_halves, one_chunk
from cepheid.engine.memory import container
from cepheid.engine.run.parts import TEXTS, header, obstacle
from cepheid.errors import LimitError
from cepheid.spark.tasks.deadlines import MOST_PAGES, Deadlines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.parts import Form
    from cepheid.spark.tasks.states import QueryStates
    from cepheid.spark.tasks.store import Store

PAGE_KEYS = 8
"""Keys of a page, about. Fewer would be mostly header; with more, more is written that has not changed."""

KEY_COST, PAGE_COST, CHANGE_COST = 8, 400, 350
"""Microseconds of a core that a visit of a whole bucket takes for each key, that it takes for each page it touches, and that a page takes when the
form changes, in Python and the JVM: as `bench_spark_state.py` measures them, from the times of micro-batches that differ in one of these numbers
alone (8 to 15, 380, 350; of a page, 160 are the write and 450 the read where the machine is busy)."""

EVENT_BYTES, KEY_BYTES = 300, 20
"""What goes into the checkpoint for each event of a bucket in pages, and for each key of one that is whole, as `bench_spark_state.py` records it for
events of four columns."""

FEW_KEYS = 100
"""Keys up to which nobody asks: the whole costs about two pages."""

MOST_TEXTS = 1 << 16
"""Bytes of the texts that queries compare, with their numbers, up to which a bucket is in pages: they are of no page, and each visit writes them. An
eighth of it up to which it turns to pages."""

MOST_WHOLE = 1 << 28
"""Most bytes of pages that are put together to one value again, which is shorter than they are: far fewer than one value may have."""

PAGE_LIMIT = 1 << 30
"""Most bytes of a page: Spark keeps it as one value, and cannot hold 2**31 bytes in one."""

SWEPT = 64
"""Pages that the hand looks at in a visit at most, beside twice those that are touched."""


class Pages:
    """The pages of a bucket. part: the run state of its keys, all of them or those of the pages that are being visited. form: how that is cut.

    on: whether there are pages; else all is in `part`. count: pages, empty ones among them. keys, size: of the pages that are not in `part`, and
    their bytes. hand, swept: the page that is looked at next, and the time when some were. regret: what the other form would have cost less, in
    microseconds. due: when which of them are to be looked at. forced: as `unit.FORCED`.
    """

    def __init__(self, part: QueryStates, form: Form, store: Store, *, forced: int | None = None) -> None:
        self.part = part
        self.form = form
        self.store = store
        self.forced = forced
        self.on = False
        self.count, self.keys, self.size, self.hand, self.regret = 1, 0, 0, 0, 0
        self.swept = NEVER
        self._common: dict[str, Any] = {}
        self._fetched: dict[int, bytes | None] = {}
        self.read = self.stale = False
        self.due = Deadlines(store)
        self._page_cost = 2 * PAGE_COST if form.waits else PAGE_COST  # a page is touched again when its time has passed

    # ------------------------------------------------------------------------------------------------------------------- a visit

    def fetch(self, events: pa.Table, *, before: int, latest: int, events_before: int, start: int, now: int) -> None:
        """Let `part`, which is fresh, have the keys that some events are of, and those of which something is decided now, with those beside them.

        before, latest: the greatest time before these events, and with them. events_before: how many events came before. start: the time of the
        first of these. now: the least time that a later event may have. Raises SnapshotError where a page is damaged, or has keys of another one.
        """
        horizon = self.part.horizon if self.part.forgets else None
        due = self.due.take(now) if self.form.waits else np.zeros(0, np.int64)
        if horizon is not None and before + horizon < min(start, now):
            # All is idle but for what is decided now: that is one whole value from now on.
            self._get({*due.tolist()}, self.count, latest=latest, events=events_before)
            self.clear()
            return
        numbers = self._touched(events)
        wanted = (self.forced is None and self.regret > CHANGE_COST * self.count) or _texts(self._common) > MOST_TEXTS
        if wanted and self.size <= MOST_WHOLE:
            self._fetch_all(latest=latest, events=events_before)
            return
        old, touched = self.count, {*numbers.tolist(), *due.tolist()}
        touched |= self._resize(len(touched)) if touched else set()
        self._get(touched, old, latest=latest, events=events_before)
        if horizon is not None:
            self._sweep(touched, now=now, horizon=horizon)
        if self.forced is None:
            cost = PAGE_COST * len(touched)
            self.regret = max(0, self.regret + cost - KEY_COST * (self.keys + self.part.keys))

    def _touched(self, events: pa.Table) -> Array:
        """The numbers of the pages that events are of."""
        if not events.num_rows:
            return np.zeros(0, np.int64)
        return np.unique(page_of(key_hashes(self.part.keys_of(events)), self.count))

    def _get(self, touched: set[int], count: int, *, latest: int, events: int) -> None:
        """Let `part` have the keys of some pages; count: see `_load`."""
        if touched:
            self._fetched = {number: self.store.get(number) for number in sorted(touched)}
            found = {number: page for number, page in self._fetched.items() if page is not None}
            self._load(found, count, latest=latest, events=events)

    def _load(self, found: Mapping[int, bytes], count: int, *, latest: int, events: int) -> None:
        """Let `part` have the keys of some pages; count: how many pages there were when they were written."""
        with container.reading():
            heads = [header(page) for page in found.values()]
            self.keys -= sum(head.keys for head in heads)
            self.size -= sum(map(len, found.values()))
            sections, keys, places = self.form.join(list(found.values()))
            if self.keys < 0 or self.size < 0 or (page_of(key_hashes(keys), count) != np.array(list(found), np.int64)[places]).any():
                raise ValueError("a page has keys of another one")
            self.part.keep_texts(True)
            self.part.load(sections | self._common, latest=latest, events=events)
        self.read = True

    def _fetch_all(self, *, latest: int, events: int) -> None:
        """One whole value from now on."""
        self._load({number: page for number, page in self.store.all() if number >= 0}, self.count, latest=latest, events=events)
        if self.keys or self.size:
            raise container.damaged("pages are missing")
        self.clear()

    def _resize(self, most: int) -> set[int]:
        """Let the number of pages follow the number of keys, by at most so many; the pages whose keys move."""
        wanted = min(MOST_PAGES, -(-self.keys // (self.forced or PAGE_KEYS)))
        moved: set[int] = set()
        for _ in range(most):
            if self.count < wanted:
                moved.add(self.count - (1 << self.count.bit_length() - 1))
                self.count += 1
            elif self.count > 4 * max(1, wanted):
                self.count -= 1
                moved |= {self.count, self.count - (1 << self.count.bit_length() - 1)}
            else:
                break
        self.hand %= self.count
        return moved

    def _sweep(self, touched: set[int], *, now: int, horizon: int) -> None:
        """Remove pages of which no key can go on, at the hand."""
        if self.swept == NEVER:
            self.swept = now
        due = min((now - self.swept) * self.count // max(1, horizon), self.count, SWEPT + 2 * len(touched))
        if not due:
            return
        for number in ((self.hand + step) % self.count for step in range(due)):
            page = None if number in touched else self.store.get(number)
            if page is not None and (head := header(page)).latest + horizon < now:
                self.store.remove(number)
                self.keys, self.size = self.keys - head.keys, self.size - len(page)
        # What was due and is too much for one visit stays due.
        self.hand, self.swept = (self.hand + due) % self.count, max(self.swept + due * horizon // self.count, now - horizon)

    def write(self, *, latest: int) -> None:
        """Write the pages that were fetched, with what `part` has by now; it is used up. Raises LimitError past PAGE_LIMIT."""
        if not self.read:
            return
        sections = self.part.dump(latest=latest)
        self._common = {name: sections[name] for name in self.form.common}
        self._cut(sections, latest=latest)
        self.read = False

    def _cut(self, sections: Mapping[str, Any], *, latest: int) -> None:
        gone = {number for number, page in self._fetched.items() if page is not None}
        for number, page in self.form.cut(sections, lambda keys: page_of(key_hashes(keys), self.count), latest=latest, told=self._told):
            if len(page) > PAGE_LIMIT:
                raise LimitError(
                    f"the state of a few keys, a page of a bucket, has {len(page)} bytes, and the limit is {PAGE_LIMIT} (PAGE_LIMIT)",
                    help=(
                        "one key has most of it: divide it by a further key in PARTITION BY, in a new checkpoint",
                        "or make the window or the lateness smaller: then less is kept",
                    ),
                )
            self.store.put(number, page)
            self.size += len(page)
            gone.discard(number)
        for number in gone:
            self.store.remove(number)
        self.keys += self.part.keys
        self._fetched, self.stale = {}, True

    def _told(self, numbers: Array, deadlines: Array) -> Array:
        """When pages are looked at at the latest, given when the first of what waits in each is decided: as they were told before, or then."""
        pages = (self._fetched.get(number) for number in numbers.tolist())
        known: Array = np.array([ALWAYS if page is None else header(page).due for page in pages], np.int64)
        known[known < self.due.looked] = ALWAYS
        new = deadlines < known
        self.due.add(numbers[new], deadlines[new])
        return np.where(new, deadlines, known)

    @property
    def all_keys(self) -> int:
        """How many keys there are."""
        return self.keys + (0 if self.stale else self.part.keys)

    # ------------------------------------------------------------------------------------------------------------------- the form

    def visited(self, events: pa.Table) -> None:
        """Of a whole bucket: it has read some events."""
        keys = self.part.keys
        if keys <= FEW_KEYS or self.forced is not None:
            self.regret = 0
            return
        cost, most = KEY_COST * keys, self._page_cost * events.num_rows
        if most > cost:
            most = self._page_cost * len(np.unique(key_hashes(self.part.keys_of(events))))
        self.regret = max(0, self.regret + cost - most)

    def turn(self, sections: Mapping[str, Any], *, latest: int, now: int) -> bool:
        """Of a whole bucket: turn to pages, if it is time; returns whether. sections: the state of all keys."""
        pages = max(1, self.part.keys // (self.forced or PAGE_KEYS))
        if (self.forced is None and self.regret <= CHANGE_COST * pages) or 8 * _texts(sections) > MOST_TEXTS:
            return False
        self.on, self.count, self.regret, self.hand, self.swept = True, min(pages, MOST_PAGES), 0, 0, now
        self.keys = self.size = 0
        self.due.looked = now
        self._common = {name: sections[name] for name in self.form.common}
        self._cut(sections, latest=latest)
        return True

    def renewed(self) -> QueryStates:
        """A fresh `part`, in the place of one that is stale."""
        self.part, self.stale = self.part.fresh(), False
        return self.part

    def clear(self) -> None:
        """There are no pages any more."""
        self.store.clear()
        self.due.clear()
        self.part.keep_texts(False)
        self.on, self.count, self.keys, self.size, self.hand, self.regret, self.swept = False, 1, 0, 0, 0, 0, NEVER
        self._fetched, self.read = {}, False

    # ------------------------------------------------------------------------------------------------------------------- as bytes

    def dump(self) -> tuple[dict[str, int], dict[str, Any]]:
        """What a bucket has to know of its pages: numbers, and the sections that are of no key."""
        numbers = {name: getattr(self, name) for name in ("count", "keys", "size", "hand", "swept", "regret")}
        if not self.form.waits:
            return numbers, self._common
        return numbers | {"looked": self.due.looked, "runs": self.due.size}, self._common | self.due.dump()

    def load(self, numbers: Mapping[str, Any], sections: Mapping[str, Any]) -> None:
        """Go on, fresh, from what `dump` gave; raises KeyError or ValueError where that cannot be."""
        self.on = True
        self.count = container.number_in(numbers, "count", least=1, most=MOST_PAGES)
        self.keys, self.size, self.regret = (container.number_in(numbers, name) for name in ("keys", "size", "regret"))
        self.hand = container.number_in(numbers, "hand", most=MOST_PAGES) % self.count  # an older state has a hand past pages that are gone
        self.swept = container.time_in(numbers, "swept")
        self._common = {name: sections[name] for name in self.form.common}
        if self.form.waits:
            self.due.load(sections, container.time_in(numbers, "looked"), container.number_in({"runs": 0} | dict(numbers), "runs"))


def _texts(sections: Mapping[str, Any]) -> int:
    """Bytes of the texts that queries compare."""
    return sum(len(bytes(section)) for name, section in sections.items() if name.rpartition("/")[2] in TEXTS)


def whole(compiled: Iterable[Compiled]) -> str | None:
    """What keeps the state of some queries from being in pages, None: nothing."""
    return next((found for each in compiled if (found := obstacle(each)) is not None), None)


# ------------------------------------------------------------------------------------------------------------------------ hashes

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0x9E3779B97F4A7C15)


def page_of(hashes: Array, count: int) -> Array:
    """The page of each of some keys, by their hashes (uint64), where there are so many pages: int64. By linear hashing (Litwin 1980)."""
    level = np.uint64(1 << count.bit_length() - 1)
    wide, narrow = hashes & (level * np.uint64(2) - np.uint64(1)), hashes & (level - np.uint64(1))
    pages: Array = np.where(wide < np.uint64(count), wide, narrow).astype(np.int64)
    return pages


def key_hashes(keys: pa.Table) -> Array:
    """A hash of each key (uint64): the same for equal keys, in all versions. Linear."""
    keys = decoded(key_table(keys, keys.column_names))
    hashes: Array = np.zeros(len(keys), np.uint64)
    for column in map(one_chunk, keys.columns):
        numbers = np.where(np.asarray(column.is_valid()), _numbers(column), _NULL) if column.null_count else _numbers(column)
        hashes = (hashes ^ numbers) * _FIRST
        hashes = (hashes ^ hashes >> np.uint64(27)) * _SECOND
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _numbers(column: pa.Array) -> Array:
    """A number for each value of a column (uint64), any for NULL."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    if pa.types.is_floating(kind):
        # One spelling of 0, and one of NaN.
        reals = column.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0
        return np.where(np.isnan(reals), np.nan, reals).view(np.uint64)
    if pa.types.is_decimal(kind) and kind.bit_width <= 128:
        lower, upper = decimal_halves(column.cast(pa.decimal128(kind.precision, kind.scale)))
        return lower.view(np.uint64) ^ upper.view(np.uint64) * _NULL
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        found: Array = column.cast(pa.int8() if pa.types.is_boolean(column.type) else column.type).fill_null(0).to_numpy().astype(np.int64)
        return found.view(np.uint64)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.large_binary())
    return np.fromiter(map(zlib.crc32, _spelled(column)), np.uint64, len(column))


def _spelled(column: pa.Array) -> Iterator[bytes]:
    for value in column.to_pylist():
        yield value if isinstance(value, bytes) else repr(value).encode()
