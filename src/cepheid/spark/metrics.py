"""What streams do, for Prometheus: `Metrics` adds up the figures of micro-batches, and gives them as text, in a file, or at a port.

Comes in: the figures that a `Listener` passes on (`observation.figures`). Goes out: the text format 0.0.4, which every version of Prometheus reads,
and so do the collectors of files. It is some lines of text for each query, so no library writes it.
"""

from __future__ import annotations

import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.errors import InputError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

    from cepheid.spark.observation import Figures

TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""What the text is, as HTTP says it."""

REASONS = {"null_key": "null_keys", "null_time": "null_times", "bad_time": "bad_times", "ahead": "ahead"}
"""Labels of why events were left out, with their figures."""

COUNTERS: dict[str, tuple[str, Callable[[Figures], dict[str, float]]]] = {
    "cepheid_batches_total": ("Micro-batches.", lambda batch: {"": 1}),  # noqa: ARG005 - each counts as one
    "cepheid_batch_seconds_total": ("Seconds that micro-batches took.", lambda batch: {"": batch["seconds"]}),
    "cepheid_events_total": ("Events that the source gave.", lambda batch: {"": batch["events"]}),
    "cepheid_relevant_events_total": ("Events that can change the result, and came to the state.", lambda batch: {"": batch["relevant"]}),
    "cepheid_late_events_total": ("Relevant events that were too late.", lambda batch: {"": batch["late"]}),
    "cepheid_dropped_events_total": (
        "Events of any type that were left out: for a NULL in their key or time, a time outside the years 1 to 9999, or one after max_ahead.",
        lambda batch: {f',reason="{reason}"': batch[name] for reason, name in REASONS.items()},
    ),
    "cepheid_matches_total": ("Matches that came out.", lambda batch: {"": batch["matches"]}),
}
"""What is added up since this process began: the help, and what a micro-batch adds, by further labels."""

KNOWN = "cepheid_known_timestamp_seconds"

GAUGES: dict[str, tuple[str, Callable[[Figures], Any]]] = {
    "cepheid_waiting_events": ("Events that wait for the watermark, in the buckets visited last.", lambda batch: batch["waiting"]),
    "cepheid_keys": ("Keys with state, in the buckets visited last.", lambda batch: batch["keys"]),
    "cepheid_state_bytes": ("Bytes of state, in the buckets visited last.", lambda batch: batch["state_bytes"]),
    KNOWN: (
        "The event time up to which all is known: the watermark, or with partition= that of the slowest partition.",
        lambda batch: _seconds(batch["watermark"] if batch["known"] is None else batch["known"]),
    ),
    "cepheid_greatest_timestamp_seconds": ("The greatest event time of the last events.", lambda batch: _seconds(batch["greatest"])),
    "cepheid_batch_timestamp_seconds": ("When the last micro-batch began.", lambda batch: _seconds(batch["time"])),
    "cepheid_source_behind": ("1 if the source has said that it has more than was read, else 0.", lambda batch: int(batch["behind"])),
}
"""What is the case now: the help, and what a micro-batch says; None leaves it as it was."""


def _seconds(moment: dt.datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


class Metrics:
    """The figures of all streams of a session, for Prometheus: `spark.streams.addListener(Listener(to=metrics))`.

    file: where the text is written after each micro-batch, for a collector of files (node_exporter wants a name that ends in .prom). It is replaced
    as a whole, so that nobody reads half of it. `serve` gives the text at a port, `text` to whoever asks. The label `query` is the query's name, or
    its id where it has none. Counts begin at 0 with this object; a micro-batch that runs again after a failure counts again. Threads may share it.
    """

    def __init__(self, *, file: str | Path | None = None) -> None:
        self._file = None if file is None else Path(file)
        self._values: dict[str, dict[str, float]] = {name: {} for name in (*COUNTERS, *GAUGES)}
        self._parted: set[str] = set()  # queries that wait for partitions
        self._lock = threading.Lock()

    def __call__(self, batch: Figures) -> None:
        """Take the figures of a micro-batch; a `Listener` does this. Raises OSError where the file cannot be written."""
        query = f'query="{_escaped(str(batch["query"]))}"'
        with self._lock:
            for name, (_, added) in COUNTERS.items():
                for labels, value in added(batch).items():
                    self._values[name][query + labels] = self._values[name].get(query + labels, 0) + value
            if batch["known"] is not None:
                self._parted.add(query)
            for name, (_, said) in GAUGES.items():
                if name == KNOWN and query in self._parted and batch["known"] is None:
                    continue  # no bucket was visited; the watermark is ahead of the slowest partition
                if (value := said(batch)) is not None:
                    self._values[name][query] = value
            if self._file is not None:
                self._write(self._file)

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        with self._lock:
            return "".join(self._lines())

    def serve(self, port: int, host: str = "127.0.0.1") -> ThreadingHTTPServer:
        """Give the text at http://host:port/metrics, from a thread that ends with this process; `shutdown()` of the result ends it before.

        port: 0 takes any; the result's `server_port` says which. host: "0.0.0.0" lets other machines read it. Raises InputError where the
        address cannot be had.
        """
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.partition("?")[0] in {"/", "/metrics"}
                body = metrics.text().encode() if found else b"the metrics are at /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                """Nobody wants a line for each time it is read."""

        try:
            server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise InputError(f"the metrics cannot be at {host}:{port}: {error}", help="give another port, or 0 for any") from error
        threading.Thread(target=server.serve_forever, name="cepheid-metrics", daemon=True).start()
        return server

    def _lines(self) -> Iterator[str]:
        for kind, described in (("counter", COUNTERS), ("gauge", GAUGES)):
            for name, (help_, _) in described.items():
                yield f"# HELP {name} {help_}\n# TYPE {name} {kind}\n"
                yield from (f"{name}{{{labels}}} {value}\n" for labels, value in self._values[name].items())

    def _write(self, file: Path) -> None:
        part = file.with_name(f"{file.name}.{uuid.uuid4().hex}.part")
        try:
            part.write_text("".join(self._lines()), encoding="utf-8")
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)


def _escaped(label: str) -> str:
    """The value of a label as it stands between quotes."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
