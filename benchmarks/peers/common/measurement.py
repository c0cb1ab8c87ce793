"""What every runner shares: reading a stream of events, the CPU time of a process with its children, the line of figures.

Only the standard library: each runner lives in an environment of its own. CPU time is read from /proc (Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")


def arguments() -> argparse.Namespace:
    """The command line of every runner: --query NAME --stream FILE --events N --matches FILE --warm-up N --window MILLISECONDS."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--query", required=True, help="its name: strict, next, all, gaps ..")
    parser.add_argument("--stream", type=Path, required=True, help="a CSV file without header: type, time, and for some price, id")
    parser.add_argument("--events", type=int, required=True, help="how many events of the stream are read")
    parser.add_argument("--matches", type=Path, required=True, help="where the matches go: one line per match, the times of its events")
    parser.add_argument("--warm-up", type=int, default=20_000, help="events of a first run that does not count")
    parser.add_argument("--window", type=int, default=99, help="most milliseconds that a match of a query that compares lasts")
    return parser.parse_args()


def read(stream: Path, events: int) -> list[tuple[str, int]]:
    """The first events of the stream: (type, time)."""
    rows = []
    with stream.open(encoding="ascii") as lines:
        for line in lines:
            name, _, at = line.partition(",")
            rows.append((name, int(at)))
            if len(rows) == events:
                break
    return rows


def prefix(stream: Path, events: int, target: Path) -> Path:
    """A file with the first events of the stream, for peers that read files themselves."""
    with stream.open(encoding="ascii") as source, target.open("w", encoding="ascii") as sink:
        sink.writelines(line for line, _ in zip(source, range(events), strict=False))
    return target


def cpu_seconds() -> float:
    """User and system seconds of this process, all threads, and of its living descendants (a JVM is a child; those to 10 ms)."""
    parents, seconds = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        parents[int(entry.name)] = int(fields[1])
        seconds[int(entry.name)] = (int(fields[11]) + int(fields[12])) / TICKS
    total, pending = time.process_time(), [os.getpid()]
    while pending:
        one = pending.pop()
        children = [child for child, parent in parents.items() if parent == one]
        total += sum(seconds[child] for child in children)
        pending += children
    return total


class Stopwatch:
    """Wall and CPU seconds since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), cpu_seconds()

    def read(self) -> dict[str, float]:
        """The seconds so far."""
        return {"wall_seconds": round(time.perf_counter() - self.wall, 4), "cpu_seconds": round(cpu_seconds() - self.cpu, 4)}


def report(*, version: str, events: int, matches: int, run: dict[str, float], start_up: dict[str, float], **more: Any) -> None:
    """Print the figures of a run as the last line of the output: `run` is the query alone, `start_up` all that comes before it."""
    figures = {"version": version, "events": events, "matches": matches, **run, **more}
    figures |= {f"start_up_{name}": value for name, value in start_up.items()}
    sys.stdout.flush()
    print(json.dumps(figures), flush=True)
