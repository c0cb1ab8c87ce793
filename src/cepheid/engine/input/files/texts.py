"""Files of text: opened, decompressed where their name says that they are compressed, and checked to be UTF-8."""

from __future__ import annotations

import codecs
import io
import re
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from cepheid.errors import InputError
from cepheid.records import record

CODECS = {".gz": "gzip", ".zst": "zstd"}
"""The endings of compressed files, and what Arrow calls the way in which they are."""


def ending_of(path: Path) -> str:
    """What a file's name says of its content: its ending, of a compressed file the one before."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() in CODECS else path.suffix.lower()


def opened(path: Path) -> IO[bytes]:
    """The content of a file, decompressed; to be closed. Reading raises OSError where a compressed file is damaged or ends too early."""
    codec = CODECS.get(path.suffix.lower())
    return path.open("rb") if codec is None else cast("IO[bytes]", io.BufferedReader(pa.input_stream(str(path), compression=codec)))


def in_memory(piece: bytes) -> pa.BufferReader:
    """A piece for Arrow's readers, in memory that is Arrow's own.

    Their threads may let go of it last. If that needed Python and Python was at its end by then, the process would abort.
    """
    buffer = pa.allocate_buffer(len(piece))
    memoryview(buffer).cast("B")[:] = piece
    return pa.BufferReader(buffer)


@record
class Kind:
    """A kind of file: how its content begins, what that looks like, how its name has to end, and whether it is text."""

    begins: re.Pattern[bytes]
    what: str
    ending: str
    is_text: bool

    @property
    def help(self) -> str:
        """What to do about a file of this kind that is read as another."""
        return f"it looks like {self.what}: its name has to end in {self.ending}"


KINDS = (
    Kind(re.compile(rb"PAR1"), "Parquet", ".parquet", is_text=False),
    Kind(re.compile(rb"ARROW1"), "Arrow", ".arrow", is_text=False),
    Kind(re.compile(rb"\x1f\x8b"), "a compressed file", ".gz", is_text=False),
    Kind(re.compile(rb"\(\xb5/\xfd"), "a compressed file", ".zst", is_text=False),
    Kind(re.compile(rb"(?:\xef\xbb\xbf)?\s*\[?\s*\{\s*[\"}]"), "JSON lines", ".jsonl", is_text=True),
    Kind(re.compile(rb"[^\0\r\n]*[,;\t|][^\0]*\Z"), "CSV", ".csv", is_text=True),
)


def kind_of(path: Path) -> Kind | None:
    """The kind of file that a content looks like; None where it looks like none of `KINDS`."""
    with opened(path) as file:
        begin = file.read(1 << 10)
    return next((kind for kind in KINDS if kind.begins.match(begin)), None)


def check_text(path: Path) -> None:
    """Raise InputError where a file is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    with opened(path) as file:
        while chunk := file.read(1 << 20):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                # `object` starts with what the chunk before left over; a character that is cut there has no line end in it.
                line += error.object[: error.start].count(b"\n")
                wrong = error.object[error.start]
                kind = kind_of(path)
                if kind is not None and not kind.is_text:
                    raise InputError(f"{path} is no text", help=kind.help) from None
                raise InputError(f"{path}, line {line}: byte 0x{wrong:02x} is not UTF-8", help="save the file as UTF-8") from None
            line += chunk.count(b"\n")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {line}: the file ends within a UTF-8 character", help="save the file as UTF-8") from None
