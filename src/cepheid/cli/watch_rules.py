"""Rules over events that arrive: `cepheid watch --rules FOLDER`.

Comes in: files with rows of rules, which are read again when they change, and events as for `watch`. Goes out: each match as a line of JSON, with the
name of its rule. What is in the files when a line is read is known for the events on it.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow.compute as pc

import cepheid
from cepheid.cli import lined
from cepheid.cli.failures import complain
from cepheid.cli.results import rows_of
from cepheid.cli.watch import TICK, Run, Watcher, ordering
from cepheid.engine.input.files.formats import FORMATS
from cepheid.engine.input.files.streams import unreadable
from cepheid.engine.input.files.texts import ending_of
from cepheid.engine.input.rule_rows import rows_in
from cepheid.engine.plan.likely_schema import likely_schema
from cepheid.engine.run.rules import RulesRecognizer
from cepheid.errors import CepheidError, InputError, NotSupportedError, SchemaError, counted, quoted
from cepheid.rules import RuleCompiler, any_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from cepheid.cli.arriving import Arriving
    from cepheid.cli.settings import Watching
    from cepheid.engine.input.rule_versions import Row
    from cepheid.engine.run.rules import RuleMatches, RuleQuery

OWN = ("rule", "since")
"""What a match has beside what its query shows."""


def watch_rules(path: Path, arriving: Arriving, settings: Watching, schema: pa.Schema | None, out: TextIO) -> None:
    """Print the matches of rules in what arrives, until it ends. path: of a file with rows of rules, or a folder of such files.

    schema: of a file of such events, or None. Raises as `watch.watch`, and InputError for files of rules that cannot be read at the start.
    """
    RuleWatcher(RuleFiles(path), settings, schema, out).watch(arriving)


class RuleFiles:
    """The files with rows of rules: a file, or all in a folder whose names end as those of files of events do, but hidden ones."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir() and not path.is_file():
            raise InputError(
                f"there is no file and no folder {path}", help="--rules takes a file with rows of rules, or a folder of such files"
            )
        self._path = path
        self._known: dict[Path, tuple[int, ...]] = {}
        self._closed = False

    def __str__(self) -> str:
        return str(self._path)

    def changed(self, *, first: bool = False) -> Iterator[dict[str, Any]]:
        """The rows of the files that have come or changed since the last call; a file that is gone, or the folder, changes nothing.

        A file that cannot be read is a note, and read again when it changes; first: then it raises InputError.
        """
        try:
            paths, self._closed = self._files(), False
        except OSError as error:
            if first:
                raise unreadable(self._path, error) from None
            if not self._closed:
                complain(f"note: {unreadable(self._path, error).fact}")
            self._closed = True
            return
        for path in paths:
            try:
                about = path.stat()
            except FileNotFoundError:
                continue
            form = (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)
            if self._known.get(path) == form:
                continue
            self._known[path] = form
            try:
                yield from rows_in(path) if about.st_size else ()
            except InputError as error:
                if first:
                    raise
                complain(f"note: {path} is not read until it changes: {error}")

    def _files(self) -> list[Path]:
        if not self._path.is_dir():
            return [self._path]
        return sorted(
            path for path in self._path.iterdir() if not path.name.startswith(".") and ending_of(path) in FORMATS and path.is_file()
        )


class RuleWatcher(Watcher):
    """Rules at the lines."""

    def __init__(self, files: RuleFiles, settings: Watching, schema: pa.Schema | None, out: TextIO) -> None:
        super().__init__(settings, lambda first: RuleRun.made(self._rows, first, settings, schema, out))
        self._files = files
        self._rows = list(files.changed(first=True))
        if not self._rows:
            complain(f"note: {files} has no rows of rules so far")

    @property
    def _patience(self) -> float:
        return TICK

    def take(self, data: bytes) -> None:
        """Look for rules, and read some more bytes."""
        self._look()
        super().take(data)

    def end(self) -> None:
        """Nothing follows."""
        self._look()
        super().end()
        if self._run is None and self._rows:
            complain(f"note: no event came, so nobody has looked at {counted(len(self._rows), 'row')} of rules")

    def _look(self) -> None:
        rows = list(self._files.changed())
        if isinstance(self._run, RuleRun):
            self._run.change(rows)
        else:
            self._rows += rows


@dataclass
class RuleRun(Run):
    """The recognizer of rules, and what goes in and comes out of it. reads: as of `_Fitting`. refused: the rows that were told not to act."""

    reads: dict[str, frozenset[str]] = field(default_factory=dict)
    refused: set[tuple[str | None, str, str]] = field(default_factory=set)

    @classmethod
    def made(cls, rows: Iterable[dict[str, Any]], first: lined.Line, settings: Watching, schema: pa.Schema | None, out: TextIO) -> RuleRun:
        """For events like the first; raises the errors of what is no such event."""
        rows = list(rows)
        attributes = lined.attributes_of_rules(_queries(rows), first, schema, settings)
        source = any_event().schema(attributes.schema, type=attributes.type, time=attributes.time)
        ahead = settings.lateness is not None
        compiler = RuleCompiler(attributes.schema, type=attributes.type, time=attributes.time, ahead=ahead)
        fitting = _Fitting(compiler, attributes)
        recognizer = RulesRecognizer(source, fitting, null_keys=settings.null_keys, ahead=ahead)
        order = ordering(attributes, source, settings)
        run = cls(attributes, source, recognizer, order, out, unseen=set(attributes.kinds), reads=fitting.reads)
        run.change(rows)
        return run

    def change(self, rows: list[dict[str, Any]]) -> None:
        """Take rows of rules, and say which are refused, each once."""
        for refused in self.recognizer.change(rows) if rows else ():
            # Late ones say what has been read meanwhile.
            told = refused.name, str(refused.since), "" if refused.late else str(refused.error)
            if told not in self.refused:
                self.refused.add(told)
                complain(f"note: {refused}")
        if rows and self.attributes.loose:
            read = {name for version, _ in self.recognizer.to_come for name in self.reads[version.row.member]}
            self.attributes = dataclasses.replace(self.attributes, loose=self.attributes.loose - read)

    def _rows(self, found: RuleMatches) -> Iterator[dict[str, Any]]:
        for version, matches in found.found.items():
            own = dict(zip(OWN, version, strict=True))
            table = matches.to_arrow(events=True)
            yield from (own | row for row in rows_of(table.take(pc.sort_indices(table["end_time"]))))

    def _dropped(self) -> list[str]:
        counts = [count for count in self.recognizer.null_keys.values() if count]
        if not counts:
            return []
        least = f"{counted(len(counts), 'version')} of rules {'leaves' if len(counts) == 1 else 'leave'} out events without a key"
        return [f"{least}, {counted(max(counts), 'event')} at most (--null-keys group makes them a partition)"]

    def _undecided(self) -> int:
        with self.recognizer.waiting() as found:
            return sum(len(matches) for piece in found.pieces() for matches in piece.found.values())

    def notes(self, *, complete: bool) -> list[str]:
        """What the user must know of in the end."""
        told = super().notes(complete=complete)
        return [*told, f"{counted(len(self.refused), 'row')} of rules refused"] if self.refused else told


class _Fitting:
    """Compiles rows whose matches can be printed beside `OWN`. reads: the attributes that each of them reads, by its name among the members."""

    def __init__(self, compiler: RuleCompiler, attributes: lined.Attributes) -> None:
        self._compiler, self._attributes = compiler, attributes
        self.reads: dict[str, frozenset[str]] = {}

    def __call__(self, row: Row) -> RuleQuery:
        reads = frozenset(likely_schema(cepheid.query(row.text or "", args=json.loads(row.arguments))).attributes)
        for name in sorted(reads & self._attributes.unfit):
            raise SchemaError(
                f"`{name}` is {self._attributes.kinds[name]}, and events that have been read had other values", help=lined.SCHEMA
            )
        self.reads[row.member] = reads
        query = self._compiler(row)
        layout = query.own.layout
        if taken := [name for name in (*layout.keys, *layout.variables, *(measure.name for measure in layout.measures)) if name in OWN]:
            raise NotSupportedError(f"a match would have two {quoted(taken)}", help="give another name in the query: AS")
        return query


def _queries(rows: Iterable[dict[str, Any]]) -> Iterator[cepheid.Query]:
    """The queries of rows; wrong ones are told elsewhere."""
    for row in rows:
        args = row.get("args")
        try:
            query = cepheid.query(str(row.get("query")), args=json.loads(args) if isinstance(args, str) else args or {})
            likely_schema(query)
        except (CepheidError, TypeError, ValueError):
            continue
        yield query
