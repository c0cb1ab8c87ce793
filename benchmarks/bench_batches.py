"""Many matches in little memory: a hundred million of them to Parquet, by `q.batches` and by the command line, and what resides meanwhile.

    python benchmarks/bench_batches.py [--matches N]

A ; B over alternating A and B, each B with the thousand A before it. Each way is a process of its own, whose greatest resident set counts, with
Python, Arrow and the file of events in it. `q.run` over the same events is asked too: it answers with the limit on an answer's memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import circumstances

BAR = 1024
"""MiB that may reside."""

PER_TRIGGER = 1_000
"""Matches that each B completes."""

QUERY = f"SELECT * WHERE A ; B WITHIN {2 * PER_TRIGGER} EVENTS"

BY_PYTHON = """
import sys
import pyarrow.parquet as pq
import cepheid
query, events, out = sys.argv[1:]
reader = cepheid.query(query).batches(pq.ParquetFile(events).read()).to_reader()
with pq.ParquetWriter(out, reader.schema) as writer:
    for batch in reader:
        writer.write_batch(batch)
"""

BY_RUN = """
import sys
import pyarrow.parquet as pq
import cepheid
query, events, out = sys.argv[1:]
try:
    cepheid.query(query).run(pq.ParquetFile(events).read(), max_bytes=1 << 30)
except cepheid.LimitError as error:
    print(error.fact)
"""


def measured(command: list[str]) -> dict[str, Any]:
    """Seconds and greatest resident set of a process."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.read().strip()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    figures = {"seconds": round(time.perf_counter() - begin, 1), "resident_mib": round(usage.ru_maxrss / 1024)}
    return figures | ({"said": said} if said else {})


def main() -> None:
    """Write the events, run each way, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=100_000_000)
    options = parser.parse_args()
    triggers = (options.matches - PER_TRIGGER * (PER_TRIGGER + 1) // 2) // PER_TRIGGER + PER_TRIGGER + 1
    count = 2 * triggers
    figures: dict[str, Any] = {"query": QUERY, "events": count, "bar_resident_mib": BAR}
    with tempfile.TemporaryDirectory() as folder:
        events, out = Path(folder, "events.parquet"), Path(folder, "out.parquet")
        pq.write_table(pa.table({"type": ["A", "B"] * triggers, "ts": range(count)}), events)
        ways = {
            "batches": [sys.executable, "-c", BY_PYTHON, QUERY, str(events), str(out)],
            "command_line": [sys.executable, "-m", "cepheid.cli", "run", "-e", QUERY, str(events), "-o", str(out), "--overwrite"],
            "run": [sys.executable, "-c", BY_RUN, QUERY, str(events), str(out)],
        }
        for name, command in ways.items():
            out.unlink(missing_ok=True)
            figures[name] = measured(command)
            if out.exists():
                figures[name] |= {"matches": pq.ParquetFile(out).metadata.num_rows, "bytes": out.stat().st_size}
    circumstances.write("batches", figures)


if __name__ == "__main__":
    main()
