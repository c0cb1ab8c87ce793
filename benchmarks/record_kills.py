"""Kills of a stream's driver and of its Python workers, and what they cost: matches that were lost, matches that came twice.

    python benchmarks/record_kills.py [--kills N] [--seed S]

A stream of all queries of tests/spark/killed.py, one of each method of evaluation at least, from files to files; so many kills of the driver, at
random points of its micro-batches, then a stream anew with so many kills of workers that had a task. With CEPHEID_TEST_PARTITION=k the partitions of
the source count, with CEPHEID_TEST_PAGES=8 all keys are in pages: the record says so. The exit status says whether every match is
in the sink once. The kills of a run are repeated by its seed, which the record has, but for the time that a machine takes.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import circumstances

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/spark"))
from killed import QUERIES, Stream


def killed(what: str, kills: int, seed: int) -> dict[str, Any]:
    """A stream whose driver or workers are killed; how often, and what is in the sink in the end."""
    chance = random.Random(f"{seed}/{what}")
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        stream = Stream(Path(folder), chance, tuple(QUERIES))
        try:
            if what == "driver":
                figures = {"kills": kills, "inside_a_micro_batch": stream.kill_driver(kills, chance)}
            else:
                figures = {"kills": stream.kill_workers(kills, chance), "least_while_they_had_a_task": kills}
        finally:
            if stream.process is not None and stream.process.poll() is None:
                stream.kill()
        matches, lost, doubled = stream.differences()
    return figures | {"matches": matches, "lost": lost, "doubled": doubled, "seconds": round(time.perf_counter() - begin)}


def main() -> int:
    """Kill, compare, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    options = parser.parse_args()
    asked = {name: value for name, value in os.environ.items() if name.startswith("CEPHEID_TEST_")}
    runs = {what: killed(what, options.kills, options.seed) for what in ("driver", "workers")}
    circumstances.write("kills", {"queries": QUERIES, "seed": options.seed, "asked": asked, **runs})
    return int(any(run["lost"] or run["doubled"] for run in runs.values()))


if __name__ == "__main__":
    sys.exit(main())
