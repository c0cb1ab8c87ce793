"""State as bytes: the container of all that is kept, of a recognizer or of a bucket of a stream.

`pack` and `unpack` put named sections, which each evaluation makes of its own state, into one container with magic, format version, fingerprint and
checksum. A section is bytes, a table, or an array of integers (n, or rows of n), which a compressed container keeps in as few bytes as they need.
Nothing is pickled. All numbers are little-endian.
"""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.memory.pools import NUMBER_LIMIT
from cepheid.errors import CepheidError, SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.engine.memory.pools import Array

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

# ---------------------------------------------------------------------------------------------------- container


def pack(sections: Mapping[str, bytes | Array | pa.Table], *, fingerprint: bytes, compress: bool = False) -> bytes:
    """One byte string of named sections, in the order given, that only `unpack` with the same fingerprint accepts.

    compress: for state that travels often: a fourth of the bytes, for 2 ms per MB.
    """
    parts: list[bytes] = []
    for name, content in sections.items():
        encoded = name.encode()
        content = table_bytes(content) if isinstance(content, pa.Table) else content  # noqa: PLW2901 - as it travels
        kind, body = _narrow(content) if compress else (_BYTES, bytes(content))
        parts += [_SECTION.pack(len(encoded), len(body)), kind, encoded, body]
    if compress:
        parts = [compressed(b"".join(parts))]
    head = _HEADER.pack(MAGIC, VERSION, len(fingerprint), len(sections), compress)
    parts = [head, fingerprint, *parts]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([*parts, struct.pack("<I", checksum)])


def unpack(
    data: bytes | memoryview,
    *,
    fingerprint: bytes,
    other: Callable[[bytes, dict[str, Any]], SnapshotError] | None = None,
    again: str = "start again without it",
) -> dict[str, Any]:
    """The sections of `pack`, arrays as such or as their bytes.

    other: the error for another fingerprint, which it gets with the sections: whoever makes them knows what differs. again: how to do without the
    bytes.
    Raises SnapshotError if the bytes are no snapshot, of another format version, of another query or schema (fingerprint), cut off or damaged.
    """
    try:
        data = memoryview(data).tobytes()
    except TypeError:
        data = b""
    if data[: len(MAGIC)] != MAGIC[: len(data)] or len(data) < len(MAGIC):
        raise SnapshotError("these bytes are not a snapshot of Cepheid", help="give the bytes that `snapshot()` returned, all of them")
    if len(data) < _HEADER.size + 4:
        raise damaged("it is cut off")
    _, version, fingerprint_length, count, shrunk = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(
            f"the snapshot has format version {version}, and this version of Cepheid reads version {VERSION}",
            help=(again, "or go on with the version of Cepheid that wrote it"),
        )
    if zlib.crc32(memoryview(data)[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise damaged("its checksum is wrong")
    at = _HEADER.size + fingerprint_length
    stored = data[_HEADER.size : at]
    if stored != fingerprint and other is None:
        raise SnapshotError("the snapshot is of something else", help=again)
    sections = _sections(decompressed(data[at:-4]) if shrunk else data[at:-4], count)
    if stored != fingerprint and other is not None:
        raise other(stored, sections)
    return sections


def compressed(content: bytes) -> bytes:
    """Fewer bytes, that begin with how many they were."""
    found: bytes = pa.Codec(CODEC, compression_level=1).compress(content, asbytes=True)
    return _LENGTH.pack(len(content)) + found


def decompressed(data: bytes) -> bytes:
    """The inverse of `compressed`; raises SnapshotError for what it has not given."""
    try:
        (size,) = _LENGTH.unpack_from(data)
    except struct.error:
        raise damaged("a section is cut off") from None
    if size > MOST_COMPRESSED * len(data):  # no memory is taken for what cannot be
        raise damaged(f"{len(data)} compressed bytes cannot become {size} bytes")
    try:
        content: bytes = pa.Codec(CODEC).decompress(data[_LENGTH.size :], size, asbytes=True)
    except (struct.error, ValueError, OverflowError, MemoryError, OSError, pa.ArrowException) as error:
        raise damaged(str(error)) from None
    return content


def _sections(body: bytes, count: int) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    at = 0
    for _ in range(count):
        if at + _SECTION.size > len(body):
            raise damaged("a section is missing")
        name_length, length = _SECTION.unpack_from(body, at)
        at += _SECTION.size
        kind = body[at : at + len(_BYTES)]
        at += len(_BYTES)
        name = body[at : at + name_length].decode(errors="replace")
        at += name_length
        content = body[at : at + length]
        at += length
        if at > len(body):
            raise damaged("a section is cut off")
        if name in sections:
            raise damaged(f"its section `{name}` is there twice")
        sections[name] = content if kind == _BYTES else _widened(content, kind)
    if at != len(body):
        raise damaged("it has bytes after its last section")
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
        raise damaged("a section is neither bytes nor numbers")
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
        raise damaged("the numbers of a section are cut off") from None
    return np.concatenate(rows) if rows else np.zeros(0, kind.decode())


def damaged(how: str) -> SnapshotError:
    """The error for bytes that no version of Cepheid has written; how: what is wrong with them."""
    return SnapshotError(f"the snapshot is damaged: {how}", help="use another snapshot, or start again without it")


def table_bytes(table: pa.Table) -> bytes:
    """A table as a section."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def table_of(section: bytes | pa.Table) -> pa.Table:
    """The table of `table_bytes`, or itself; raises pyarrow.ArrowInvalid where its offsets lead out of it."""
    if isinstance(section, pa.Table):
        return section
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
        raise damaged(error.fact) from None
    except KeyError as error:
        raise damaged(f"its section {error} is missing") from None
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(str(error)) from None
    except (ArithmeticError, MemoryError, struct.error, OSError, pa.ArrowException) as error:
        raise damaged(str(error)) from None


def numbers_of(section: bytes) -> dict[str, Any]:
    """The named numbers of a section; raises ValueError where it has no names."""
    numbers = json.loads(section)
    if not isinstance(numbers, dict):
        raise ValueError("a section of numbers is not a dict")  # noqa: TRY004 - of the bytes
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
        raise ValueError(f"its number `{name}` is not a valid integer")
    return value


def macro_bytes(macros: Sequence[int]) -> tuple[int, bytes]:
    """Macro states as bit masks of one width in bytes: the width, and the masks."""
    width = max(((mask.bit_length() + 7) // 8 for mask in macros), default=1)
    return width, b"".join(mask.to_bytes(width, "little") for mask in macros)


def macro_states(packed: bytes, width: int, *, states: int) -> list[int]:
    """The inverse of `macro_bytes`; raises ValueError for one that is empty, or has bits beyond those of states."""
    if width == 0 or len(packed) % width:
        raise ValueError("its macro states are out of range")
    macros = [int.from_bytes(packed[at : at + width], "little") for at in range(0, len(packed), width)]
    if not all(0 < macro < 1 << states for macro in macros):
        raise ValueError("its macro states are out of range")
    return macros
