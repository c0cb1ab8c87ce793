"""The state of an evaluation as bytes: what is alive, and nothing else.

Two levels. `dump` and `load` turn an `Evaluation` into named sections and back: macro states as sets of automaton states (the tables are
rebuilt lazily), live lists, the FIFO of starts, and the live cells with dense ids, for all partitions. `pack` and `unpack` put any named sections
into one container with magic, format version, fingerprint and checksum. A section is bytes, or an array of integers (n, or rows of n), which a
compressed container keeps in as few bytes as they need. Nothing is pickled. All numbers are little-endian.
"""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.blocks import NUMBER_LIMIT
from cepheid.engine.order import earlier
from cepheid.engine.pools import Pool, first_from, ragged
from cepheid.errors import CepheidError, SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cepheid.engine.evaluation import Evaluation
    from cepheid.engine.partitions import Stored

Array = np.ndarray[Any, Any]

MAGIC = b"CEPHEID\0"
VERSION = 4
"""The format of the container, read as long as tests/upgrade has bytes of it; those before were of no release."""

_HEADER = struct.Struct("<8sHHIB")  # magic, version, length of the fingerprint, number of sections, whether they are compressed
_SECTION = struct.Struct("<HQ")  # length of the name, length of the content
_ROW = struct.Struct("<QqB")  # how many numbers, the least of them, bytes of each
_LENGTH = struct.Struct("<Q")  # of all sections before they are compressed

MOST_COMPRESSED = 1 << 15
"""So many bytes at most become one when they are compressed: the format has blocks of up to 128 kB, of four bytes at least."""

CODEC = "zstd"
"""How sections are compressed: by Arrow, whose packages have it."""

_BYTES, *_NUMBERS = bytes(3), b"<i8", b"<i4", b"<u2"
"""What a section holds, after its lengths: bytes, or narrow numbers of a type."""

POSITION_LIMIT = 1 << 31
"""Positions relative to a partition's base are below it: the kernel has 32 bits for them."""

_COUNTERS = ("triggers", "matches", "skipped", "unions")
_SLOT_COLUMNS = ("slot", "base", "position", "last_time", "starts", "lists", "cells")


# ---------------------------------------------------------------------------------------------------- container


def pack(sections: Mapping[str, bytes | Array], *, fingerprint: bytes, compress: bool = False) -> bytes:
    """One byte string of named sections, in the order given, that only `unpack` with the same fingerprint accepts.

    compress: for state that travels often: a fourth of the bytes, for 2 ms per MB.
    """
    parts: list[bytes] = []
    for name, content in sections.items():
        encoded = name.encode()
        kind, body = _narrow(content) if compress else (_BYTES, bytes(content))
        parts += [_SECTION.pack(len(encoded), len(body)), kind, encoded, body]
    if compress:
        joined = b"".join(parts)
        parts = [_LENGTH.pack(len(joined)), pa.Codec(CODEC, compression_level=1).compress(joined, asbytes=True)]
    head = _HEADER.pack(MAGIC, VERSION, len(fingerprint), len(sections), compress)
    parts = [head, fingerprint, *parts]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([*parts, struct.pack("<I", checksum)])


def unpack(data: bytes | memoryview, *, fingerprint: bytes, other: SnapshotError | None = None) -> dict[str, Any]:
    """The sections of `pack`, arrays as such or as their bytes.

    other: the error for another fingerprint, where these bytes are no snapshot to the user.
    Raises SnapshotError if the bytes are no snapshot, of another format version, of another query or schema (fingerprint), cut off or damaged.
    """
    try:
        data = memoryview(data).tobytes()
    except TypeError:
        data = b""
    if data[: len(MAGIC)] != MAGIC[: len(data)] or len(data) < len(MAGIC):
        raise SnapshotError("these bytes are no snapshot of Cepheid", help="give the bytes that `snapshot()` returned, all of them")
    if len(data) < _HEADER.size + 4:
        raise _damaged("it is cut off")
    _, version, fingerprint_length, count, compressed = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(
            f"the snapshot has format version {version}, and this version of Cepheid reads version {VERSION}",
            help=(
                "start again without it, a stream with a new checkpointLocation: until= and since= hand over without a gap (docs/streaming.md)",
                "or restore it with the version of Cepheid that wrote it",
            ),
        )
    if zlib.crc32(memoryview(data)[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise _damaged("its checksum is wrong")
    at = _HEADER.size + fingerprint_length
    if data[_HEADER.size : at] != fingerprint:
        raise other or SnapshotError(
            "the snapshot was made by another query, or over another schema, or with other options",
            help=(
                "restore it with the same query, arguments, schema and options (of a recognizer: lateness, order, null_keys)",
                "or start again without it",
            ),
        )
    return _sections(_decompressed(data[at:-4]) if compressed else data[at:-4], count)


def _decompressed(data: bytes) -> bytes:
    try:
        (size,) = _LENGTH.unpack_from(data)
    except struct.error:
        raise _damaged("a section is cut off") from None
    if size > MOST_COMPRESSED * len(data):  # no memory is taken for what cannot be
        raise _damaged(f"{len(data)} bytes cannot be {size} compressed ones")
    try:
        content: bytes = pa.Codec(CODEC).decompress(data[_LENGTH.size :], size, asbytes=True)
    except (struct.error, ValueError, OverflowError, MemoryError, OSError, pa.ArrowException) as error:
        raise _damaged(str(error)) from None
    return content


def _sections(body: bytes, count: int) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    at = 0
    for _ in range(count):
        if at + _SECTION.size > len(body):
            raise _damaged("a section is missing")
        name_length, length = _SECTION.unpack_from(body, at)
        at += _SECTION.size
        kind = body[at : at + len(_BYTES)]
        at += len(_BYTES)
        name = body[at : at + name_length].decode(errors="replace")
        at += name_length
        content = body[at : at + length]
        at += length
        if at > len(body):
            raise _damaged("a section is cut off")
        if name in sections:
            raise _damaged(f"its section `{name}` is there twice")
        sections[name] = content if kind == _BYTES else _widened(content, kind)
    if at != len(body):
        raise _damaged("it has bytes after its last section")
    return sections


def _narrow(content: bytes | Array) -> tuple[bytes, bytes]:
    """(type, content) of a section: numbers as what each row of them is above its least one, in as few bytes as the greatest of these needs.

    Columns stand in for rows where these are shorter; the first byte says so.
    """
    if isinstance(content, bytes):
        return _BYTES, content
    kind = content.dtype.str.encode()
    assert kind in _NUMBERS, kind
    rows = np.atleast_2d(content)
    tall = rows.shape[0] > rows.shape[1]
    parts = [bytes([tall])]
    for row in rows.T if tall else rows:
        least, most = (int(row.min()), int(row.max())) if len(row) else (0, 0)
        width = next(width for width in (1, 2, 4, 8) if most - least < 1 << 8 * width)
        # Differences that int64 does not hold wrap around, and back when they are read.
        above = row.astype(np.int64) - np.int64(least)
        parts += [_ROW.pack(len(row), least, width), above.astype(f"<u{width}").tobytes()]
    return kind, b"".join(parts)


def _widened(content: bytes, kind: bytes) -> Array:
    """The numbers of a section, row after row, in their type; the inverse of `_narrow`."""
    if kind not in _NUMBERS:
        raise _damaged("a section is neither bytes nor numbers")
    rows: list[Array] = []
    at = 1
    try:
        while at < len(content):
            count, least, width = _ROW.unpack_from(content, at)
            above = np.frombuffer(content, f"<u{width}", count=count, offset=at + _ROW.size)
            rows.append((above.astype(np.int64) + np.int64(least)).astype(kind.decode()))
            at += _ROW.size + above.nbytes
        if content[0] and rows:
            return np.stack(rows, axis=1).ravel()
    except (struct.error, LookupError, ValueError, TypeError, OverflowError):
        raise _damaged("the numbers of a section are cut off") from None
    return np.concatenate(rows) if rows else np.zeros(0, kind.decode())


def _damaged(how: str) -> SnapshotError:
    return SnapshotError(f"the snapshot is damaged: {how}", help="use another snapshot, or start again without it")


def table_bytes(table: pa.Table) -> bytes:
    """A table as a section."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def table_of(section: bytes) -> pa.Table:
    """The table of `table_bytes`; raises pyarrow.ArrowInvalid where its offsets lead out of it."""
    with pa.ipc.open_stream(section) as reader:
        table = reader.read_all()
    table.validate(full=True)
    return table


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Around the reading of sections: what nonsense in them raises becomes a SnapshotError."""
    try:
        yield
    except SnapshotError:
        raise
    except CepheidError as error:
        raise _damaged(error.fact) from None
    except KeyError as error:
        raise _damaged(f"its section {error} is missing") from None
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(str(error)) from None
    except (ArithmeticError, MemoryError, struct.error, OSError, pa.ArrowException) as error:
        raise _damaged(str(error)) from None


def numbers_of(section: bytes) -> dict[str, Any]:
    """The named numbers of a section; raises ValueError where it has no names."""
    numbers = json.loads(section)
    if not isinstance(numbers, dict):
        raise ValueError("a section of numbers has no names")  # noqa: TRY004 - of the bytes
    return numbers


def number_in(numbers: Mapping[str, Any], name: str, *, least: int = 0, most: int = NUMBER_LIMIT - 1) -> int:
    """One of them; raises ValueError where it is not there, or no integer in this range."""
    return integer(numbers.get(name), name, least=least, most=most)


def time_in(numbers: Mapping[str, Any], name: str) -> int:
    """One of them that is a time: any int64."""
    return number_in(numbers, name, least=-(1 << 63), most=(1 << 63) - 1)


def integer(value: object, name: str, *, least: int = 0, most: int = NUMBER_LIMIT - 1) -> int:
    """The value if it is an integer in this range; raises ValueError, which names it, else."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"its number `{name}` is no such number")
    return value


# ---------------------------------------------------------------------------------------------------- evaluation -> sections


def dump(evaluation: Evaluation) -> dict[str, Any]:
    """The live state of all partitions as named sections; the evaluation is unchanged.

    Linear in the rings of the partitions that have open matches. Sections: counters; slots (int64, one row of `_SLOT_COLUMNS` per partition that
    has seen an event); starts_position, starts_time; list_macro, list_max, list_length, list_entries; macros; cells (int32, columns); labels.
    """
    column, record = evaluation.column, evaluation.records
    used = np.flatnonzero((record[:, column["position"]] > 0) | (record[:, column["base"]] > 0))
    record, slots = record[used], used - 1
    consumed = evaluation.consumed(record)
    for name, value in (("lists", 0), ("head", record[:, column["next"]]), ("starts_head", record[:, column["starts_tail"]])):
        record[:, column[name]] = np.where(consumed, value, record[:, column[name]])
    starts_owner, starts_position, starts_time = _live_starts(evaluation, record)
    lows = _lows(evaluation, record, starts_owner, starts_position)
    cells, labels, cell_owner, dense = _live_cells(evaluation, record, lows)
    lists = _live_lists(evaluation, record, lows, dense)
    table = np.stack(
        [
            slots,
            record[:, column["base"]] + lows,
            record[:, column["position"]] - lows,
            record[:, column["last_time"]],
            np.bincount(starts_owner, minlength=len(slots)),
            np.bincount(lists["owner"], minlength=len(slots)),
            np.bincount(cell_owner, minlength=len(slots)),
        ],
        axis=1,
    )
    macros, numbers = np.unique(lists["macro"], return_inverse=True)
    counters = [evaluation.events, *(getattr(evaluation, name) for name in _COUNTERS)]
    return {
        "counters": np.array(counters, "<i8"),
        "slots": table.astype("<i8"),
        "starts_position": (starts_position - lows[starts_owner]).astype("<i4"),
        "starts_time": starts_time.astype("<i8"),
        "list_macro": numbers.astype("<i4"),
        "list_max": lists["max"].astype("<i4"),
        "list_length": lists["length"].astype("<i4"),
        "list_entries": lists["entries"].astype("<i4"),
        "macros": _macro_bytes([evaluation.table.macros[int(q)] for q in macros]),
        "cells": np.ascontiguousarray(cells.T, "<i4"),
        "labels": labels.astype("<u2"),
    }


def live_cells(evaluation: Evaluation) -> int:
    """How many cells of all partitions are not before the least start that an open match may have. O(partitions x log cells)."""
    column = evaluation.column
    record = evaluation.records[evaluation.records[:, column["cells_mask"]] >= 0]
    offset, mask, head, following = (record[:, column[name]] for name in ("cells_offset", "cells_mask", "head", "next"))
    made = evaluation.cells.arrays[0][::4]

    def position(cell: Array) -> Array:
        found = made[offset + (cell & mask)].astype(np.int64)
        return np.asarray(np.where(found < 0, ~found, found))

    first = first_from(position, head, following, _lows(evaluation, record, *_first_starts(evaluation, record)))
    return int((following - first)[~evaluation.consumed(record)].sum())


def _first_starts(evaluation: Evaluation, record: Array) -> tuple[Array, Array]:
    """(owner, relative position) of the oldest start of each partition that a match may still begin with."""
    column = evaluation.column
    record, owner = record[(timed := record[:, column["starts_mask"]] >= 0)], np.flatnonzero(timed)
    offset, mask, head, tail = (record[:, column[f"starts_{name}"]] for name in ("offset", "mask", "head", "tail"))
    positions, times = evaluation.starts.arrays
    if evaluation.window is not None:
        oldest = earlier(record[:, column["last_time"]], evaluation.window)
        head = first_from(lambda start: times[offset + (start & mask)], head, tail, oldest)
    if evaluation.count_window is not None:
        oldest = record[:, column["position"]] - evaluation.count_window + 1
        head = first_from(lambda start: positions[offset + (start & mask)], head, tail, oldest)
    open_ = head < tail
    return owner[open_], positions[(offset + (head & mask))[open_]].astype(np.int64)


def _macro_bytes(macros: list[int]) -> bytes:
    """Macro states as bit masks of one width: the width (4 bytes), then each mask."""
    width = max(((mask.bit_length() + 7) // 8 for mask in macros), default=1)
    return struct.pack("<I", width) + b"".join(mask.to_bytes(width, "little") for mask in macros)


def _live_starts(evaluation: Evaluation, record: Array) -> tuple[Array, Array, Array]:
    """(owner, relative position, time) of the starts that a match may still begin with, as of each partition's last event."""
    column = evaluation.column
    head = record[:, column["starts_head"]]
    owner, number = ragged(head, record[:, column["starts_tail"]] - head)
    place = record[owner, column["starts_offset"]] + (number & record[owner, column["starts_mask"]])
    position, time = evaluation.starts.arrays[0][place].astype(np.int64), evaluation.starts.arrays[1][place]
    kept = np.ones(len(owner), bool)
    if evaluation.window is not None:
        kept = time >= earlier(record[owner, column["last_time"]], evaluation.window)
    if evaluation.count_window is not None:
        kept &= position > record[owner, column["position"]] - evaluation.count_window
    return owner[kept], position[kept], time[kept]


def _lows(evaluation: Evaluation, record: Array, starts_owner: Array, starts_position: Array) -> Array:
    """Per partition, the least relative position that an open match starts at (or its next position)."""
    position: Array = record[:, evaluation.column["position"]]
    if evaluation.window is None:
        if evaluation.count_window is None:
            return np.zeros_like(position)
        return np.asarray(np.maximum(0, position - evaluation.count_window + 1))
    lows = position.copy()
    first = np.flatnonzero(np.diff(starts_owner, prepend=-1))
    lows[starts_owner[first]] = starts_position[first]
    return lows


def _live_cells(evaluation: Evaluation, record: Array, lows: Array) -> tuple[Array, Array, Array, Array]:
    """(cells with relative positions and dense ids, labels, owner, dense id by place in the pool)."""
    column = evaluation.column
    pool, pool_labels = evaluation.cells.arrays[0].reshape(-1, 4), evaluation.cells.arrays[1]
    seen = np.zeros(len(pool), np.uint8)
    largest = int(record[:, column["cells_mask"]].max(initial=0)) + 1
    arrays = (
        np.ascontiguousarray(record).reshape(-1),
        lows,
        evaluation.cells.arrays[0],
        evaluation.packed.arrays[0],
        np.zeros(largest, np.int32),
        seen,
    )
    evaluation.kernel.reach(*arrays if evaluation.kernel.COMPILED else (array.data for array in arrays))
    head = record[:, column["head"]]
    owner, number = ragged(head, record[:, column["next"]] - head)
    place = record[owner, column["cells_offset"]] + (number & record[owner, column["cells_mask"]])
    kept = seen[place] == 1
    owner, place = owner[kept], place[kept]
    counts = np.bincount(owner, minlength=len(record))
    dense = np.zeros(len(pool), np.int32)
    dense[place] = np.arange(len(place)) - (np.cumsum(counts) - counts)[owner] + 1
    cells = pool[place].astype(np.int64)
    low = lows[owner]
    for side in (1, 2):
        cells[:, side] = _dense_link(evaluation, record, (owner, cells[:, side], low), dense)
    cells[:, 0] += np.where(cells[:, 0] < 0, low, -low)
    cells[:, 3] -= low
    return cells, pool_labels[place], owner, dense


def _dense_link(evaluation: Evaluation, record: Array, links: tuple[Array, Array, Array], dense: Array) -> Array:
    """Dense ids of links (owner, id, low); 0 where there is none or it is expired."""
    owner, cell, low = links
    column = evaluation.column
    place = record[owner, column["cells_offset"]] + (cell & record[owner, column["cells_mask"]])
    place = np.where(cell >= record[owner, column["head"]], place, 0)
    alive = (cell >= record[owner, column["head"]]) & (evaluation.cells.arrays[0].reshape(-1, 4)[place, 3] >= low)
    return np.where(alive, dense[place], 0)


def _live_lists(evaluation: Evaluation, record: Array, lows: Array, dense: Array) -> dict[str, Array]:
    """The live lists of all partitions, without their expired entries: owner, macro, max, length per list, and the entries."""
    column, packed = evaluation.column, evaluation.packed.arrays[0]
    offset, count = record[:, column["packed_offset"]], record[:, column["lists"]]
    owner, place = ragged(offset, count)
    largest = packed[place + count[owner]].astype(np.int64)
    length = packed[place + 2 * count[owner]].astype(np.int64)
    totals = np.bincount(owner, length, minlength=len(record)).astype(np.int64)
    _, entry_place = ragged(offset + 3 * count, totals)
    of_list = np.repeat(np.arange(len(owner)), length)
    entries = _dense_link(evaluation, record, (owner[of_list], packed[entry_place].astype(np.int64), lows[owner[of_list]]), dense)
    live = largest >= lows[owner]
    kept = (entries > 0) & live[of_list]
    length = np.bincount(of_list[kept], minlength=len(owner))
    return {
        "owner": owner[live],
        "macro": packed[place][live],
        "max": (largest - lows[owner])[live],
        "length": length[live],
        "entries": entries[kept],
    }


# ---------------------------------------------------------------------------------------------------- sections -> evaluation


def load(run: Evaluation, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
    """Bring a fresh evaluation, of the same program and bounds, into the state of `dump`.

    stored: the partitions that it is to be of. Raises SnapshotError if the sections do not fit together. Linear in the sections.
    """
    try:
        parts = {name: np.frombuffer(sections[name], kind) for name, kind in _KINDS.items()}
        slots = np.ascontiguousarray(parts["slots"].reshape(-1, len(_SLOT_COLUMNS)).T)
        cells = parts["cells"].reshape(4, -1).T
        macros = macro_states(sections["macros"][4:], *struct.unpack_from("<I", sections["macros"]), states=run.program.states)
        _check(run, parts, slots, cells, macros)
        if stored is not None:
            slots = np.stack([stored.every(slots[0], slots[1] + slots[2]), *slots[1:]])
    except (KeyError, TypeError, ValueError, struct.error) as error:
        raise _damaged("its sections do not fit together") from error
    counters = parts["counters"].tolist()
    run.restore_counters(counters[0], dict(zip(_COUNTERS, counters[1:], strict=True)))
    if slots.size:
        _restore(run, parts, slots, cells, macros)


_KINDS = {
    "counters": "<i8",
    "slots": "<i8",
    "starts_position": "<i4",
    "starts_time": "<i8",
    "list_macro": "<i4",
    "list_max": "<i4",
    "list_length": "<i4",
    "list_entries": "<i4",
    "cells": "<i4",
    "labels": "<u2",
}


def macro_states(packed: bytes, width: int, *, states: int) -> list[int]:
    """Macro states as bit masks, from masks of so many bytes each; raises ValueError for one that is empty, or has bits beyond those of states."""
    if width == 0 or len(packed) % width:
        raise ValueError("macro states of a snapshot")
    macros = [int.from_bytes(packed[at : at + width], "little") for at in range(0, len(packed), width)]
    if not all(0 < macro < 1 << states for macro in macros):
        raise ValueError("macro states of a snapshot")
    return macros


def _check(run: Evaluation, parts: Mapping[str, Array], slots: Array, cells: Array, macros: list[int]) -> None:
    """ValueError unless every index of the sections stays inside, and all that the kernel follows comes to an end: it does not look."""
    slot, base, position, _, starts, lists, cell_counts = slots
    # First of all: sums of greater ones wrap around, and numpy repeats whatever they say.
    if not bool(((slots[4:] >= 0) & (slots[4:] <= max(map(len, parts.values())))).all()):
        raise ValueError("counts of a snapshot")
    counters = parts["counters"]
    right = (
        len(counters) == 1 + len(_COUNTERS)
        and bool(((counters >= 0) & (counters < NUMBER_LIMIT)).all())
        and bool(((slot >= -1) & (position >= 0) & (position < POSITION_LIMIT)).all())
        and bool(((base >= -position) & (base < NUMBER_LIMIT)).all())
        and bool((slot[1:] > slot[:-1]).all())
        and len(parts["starts_position"]) == len(parts["starts_time"]) == starts.sum()
        and len(parts["list_macro"]) == len(parts["list_max"]) == len(parts["list_length"]) == lists.sum()
        and bool((parts["list_length"] >= 1).all())
        and len(parts["list_entries"]) == sum(parts["list_length"].tolist())
        and len(cells) == len(parts["labels"]) == cell_counts.sum()
        and bool((parts["labels"] < run.program.labels).all())
        and bool((parts["list_macro"] >= 0).all())
        and int(parts["list_macro"].max(initial=-1)) + 1 == len(macros)
        and (run.window is not None or not len(parts["starts_time"]))
        and _right_starts(parts["starts_position"], np.repeat(np.arange(len(slot)), starts), position)
        and _right_cells(run, cells, cell_counts, position)
        and _right_lists(parts, lists, cells, cell_counts)
    )
    if not right:
        raise ValueError("sections of a snapshot")


def _right_starts(positions: Array, owner: Array, following: Array) -> bool:
    """Whether each partition's starts ascend, and lie before its next event."""
    ascends = (np.diff(positions) > 0) | (np.diff(owner) != 0)
    return bool((ascends.all()) and ((positions >= 0) & (positions < following[owner])).all())


def _right_cells(run: Evaluation, cells: Array, counts: Array, following: Array) -> bool:
    """Whether the cells of each partition are in the order of the stream, their links lead to others that live as long, and never round.

    A cell lives until its position is no longer inside, and is followed as long as its max start is.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    first = (np.cumsum(counts) - counts)[owner]
    made, child, rest, most = cells.T
    union = made < 0
    made = np.where(union, ~made, made)
    number = np.arange(len(cells)) - first + 1
    if not (
        bool(((most >= 0) & (most <= made) & (made < following[owner])).all())
        and bool(((np.diff(made) >= 0) | (np.diff(owner) != 0)).all())
        and bool(((child >= union) & (child < number) & (rest >= 0) & (rest <= counts[owner])).all())
    ):
        return False
    has_child, has_rest = np.flatnonzero(child), np.flatnonzero(rest)
    below, beside = (first + child - 1)[has_child], (first + rest - 1)[has_rest]
    if (most[below] < most[has_child]).any() or (most[beside] > most[has_rest]).any():
        return False
    if (rest < number).all():
        return True
    links: Array = np.full((len(cells), 2), -1, np.int32)
    links[has_child, 0], links[has_rest, 1] = below, beside
    arrays = (links.reshape(-1), np.zeros(len(cells), np.int32), np.zeros(len(cells), np.int32))
    return bool(run.kernel.acyclic(*arrays if run.kernel.COMPILED else (array.data for array in arrays)))


def _right_lists(parts: Mapping[str, Array], lists: Array, cells: Array, counts: Array) -> bool:
    """Whether each partition's lists have descending max starts, and the first entry of each has the list's, the others no greater ones."""
    owner = np.repeat(np.arange(len(counts)), lists)
    of_list = np.repeat(np.arange(len(owner)), parts["list_length"])
    entries, most = parts["list_entries"], parts["list_max"]
    if not bool(((entries >= 1) & (entries <= counts[owner[of_list]])).all()):
        return False
    largest = cells[(np.cumsum(counts) - counts)[owner[of_list]] + entries - 1, 3]
    begins = np.diff(of_list, prepend=-1) != 0
    return bool(
        (largest[begins] == most).all()
        and (begins[1:] | (np.diff(largest) <= 0)).all()
        and ((np.diff(most) <= 0) | (np.diff(owner) != 0)).all()
    )


def _slabs(pool: Pool, counts: Array) -> tuple[Array, Array]:
    """(offset, size) of a slab for each count > 0; size 0 where the count is 0."""
    exponents = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    sizes = np.where(counts > 0, np.maximum(pool.least, np.int64(1) << exponents), 0)
    return pool.take(sizes), sizes


def _restore(run: Evaluation, parts: Mapping[str, Array], slots: Array, cells: Array, macros: list[int]) -> None:
    column = run.column
    slot, base, position, last_time, starts, lists, cell_counts = slots
    rows = slot + 1
    run.ensure_slots(int(rows[-1]))
    list_owner = np.repeat(np.arange(len(slot)), lists)
    entry_counts = np.bincount(list_owner, parts["list_length"], minlength=len(slot)).astype(np.int64)
    # Ids start at 1, and one place is for the cell that is made next.
    cell_offset, cell_size = _slabs(run.cells, np.where(cell_counts > 0, cell_counts + 1, 0))
    start_offset, start_size = _slabs(run.starts, starts)
    packed_offset, packed_size = _slabs(run.packed, 3 * lists + entry_counts)
    values = {
        "next": cell_counts + 1,
        "cells_offset": cell_offset,
        "cells_mask": cell_size - 1,
        "starts_tail": starts,
        "starts_offset": start_offset,
        "starts_mask": start_size - 1,
        "packed_offset": packed_offset,
        "packed_size": packed_size,
        "lists": lists,
        "base": base,
        "position": position,
        "last_time": last_time,
    }
    for name, value in values.items():
        run.records[rows, column[name]] = value
    _, place = ragged(cell_offset + 1, cell_counts)
    run.cells.arrays[0].reshape(-1, 4)[place] = cells
    run.cells.arrays[1][place] = parts["labels"]
    _, place = ragged(start_offset, starts)
    run.starts.arrays[0][place], run.starts.arrays[1][place] = parts["starts_position"], parts["starts_time"]
    numbers = run.adopt_macros(macros)
    packed = run.packed.arrays[0]
    owner, place = ragged(packed_offset, lists)
    packed[place] = numbers[parts["list_macro"]]
    packed[place + lists[owner]] = parts["list_max"]
    packed[place + 2 * lists[owner]] = parts["list_length"]
    _, place = ragged(packed_offset + 3 * lists, entry_counts)
    packed[place] = parts["list_entries"]
    run.fit_lists(int(lists.max()), int(parts["list_length"].max(initial=1)))
