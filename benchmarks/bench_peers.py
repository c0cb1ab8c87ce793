"""Cepheid beside what users would pick, on the same events, in one run on one machine.

    make bench-peers            (makes the peers' environments first)
    python benchmarks/bench_peers.py [--only PEER ...] [--part PART] [--timeout SECONDS] [--repeat R] [--scale X]

Streams of one event per millisecond: `uniform` (types A to E) and `rare` (C, the last step, is 0.05 %); for queries that compare events `priced`
(types A to D, with prices and ids), `ticks` (type A alone) and `priced_rare` (C is 0.01 %). Each peer reads as long a prefix as it
manages in about a minute; the same program of ours runs on the same stream. Rates are events per CPU-second (all threads, the peer's JVM
included), after a first run that does not count. The matches of both are compared on the peer's prefix, triple by triple.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import csv

import circumstances

FOLDER = Path(__file__).with_name("peers")
DATA = FOLDER / ".data"
EVENTS = 5_000_000
"""Events of either stream; the next figures are those of the experiments, for Cepheid and for the others."""
BAR = 300
"""How many times Flink SQL's events per CPU-second `next` shall reach: the query alone, reading taken off on both sides."""


@dataclass(frozen=True)
class Case:
    """One query over one stream: our query's name and size, and what each peer is asked for: (query, events, warm-up)."""

    name: str
    stream: str
    query: str
    events: int
    peers: dict[str, tuple[str, int, int]]
    window: int = 99


FLINK, TUNED, FLINK_CEP = "flink", "flink_tuned", "flink_cep"
PANDAS, SIDDHI, CORE, ESPER = "pandas_match_recognize", "siddhi", "core", "esper"
FOLDERS = {TUNED: FLINK}
ENVIRONMENTS = {TUNED: FLINK, FLINK_CEP: FLINK}
"""Whose program and environment a peer uses, where it has none of its own."""

CASES = (
    Case(
        "A, B, C in a row",
        "uniform",
        "strict",
        EVENTS,
        {
            FLINK: ("strict", 1_000_000, 50_000),
            TUNED: ("strict_tuned", 1_000_000, 50_000),
            FLINK_CEP: ("strict", 200_000, 20_000),
            PANDAS: ("strict", 1_000_000, 1_000),
            SIDDHI: ("strict", 2_000_000, 200_000),
            CORE: ("strict", 2_000_000, 20_000),
        },
    ),
    Case(
        "one A..B..C per trigger, then anew",
        "uniform",
        "next",
        EVENTS,
        {
            FLINK: ("next", 1_000_000, 50_000),
            TUNED: ("next_tuned", 1_000_000, 50_000),
            FLINK_CEP: ("next", 1_000_000, 50_000),
            PANDAS: ("next", 20_000, 1_000),
            SIDDHI: ("next", 2_000_000, 200_000),
            CORE: ("any", 2_000_000, 20_000),
        },
    ),
    Case(
        "one A..B..C per trigger, then anew; C is rare",
        "rare",
        "next",
        EVENTS,
        {
            FLINK: ("next", 5_000, 1_000),
            TUNED: ("next_tuned", 5_000, 1_000),
            FLINK_CEP: ("next", 100_000, 10_000),
            PANDAS: ("next", 1_000, 500),
            SIDDHI: ("next", 2_000_000, 200_000),
            CORE: ("any", 2_000_000, 20_000),
        },
    ),
    Case(
        "all combinations A..B..C",
        "uniform",
        "all",
        200_000,
        {
            FLINK_CEP: ("all", 100_000, 10_000),
            SIDDHI: ("all", 200_000, 20_000),
            CORE: ("all", 200_000, 20_000),
        },
    ),
    Case(
        "all combinations A..B..C; C is rare",
        "rare",
        "all",
        EVENTS,
        {
            FLINK_CEP: ("all", 20_000, 5_000),
            SIDDHI: ("all", 200_000, 20_000),
            CORE: ("all", 2_000_000, 20_000),
        },
    ),
)

COMPARING = (
    Case(
        "adjacent rise of price, per id",
        "ticks",
        "adjacent_rise",
        EVENTS,
        {ESPER: ("adjacent_rise", 2_000_000, 200_000), FLINK_CEP: ("adjacent_rise", 1_000_000, 50_000)},
    ),
    Case(
        "rising runs of at least three, per id",
        "ticks",
        "rising_run",
        EVENTS,
        {ESPER: ("rising_run", 1_000_000, 100_000), FLINK_CEP: ("rising_run", 500_000, 50_000)},
    ),
    Case(
        "gaps of at most 5 ms, all combinations",
        "priced",
        "gaps",
        EVENTS,
        {ESPER: ("gaps", 1_000_000, 100_000), FLINK_CEP: ("gaps", 500_000, 50_000)},
        window=8,
    ),
    Case(
        "D, then A and B of one id, all combinations",
        "priced",
        "equality",
        EVENTS,
        {ESPER: ("equality", 500_000, 50_000), FLINK_CEP: ("equality", 50_000, 10_000)},
    ),
)

OVER_WINDOWS = {"gaps": ESPER, "joined": ESPER, "order": ESPER, "climb": FLINK_CEP}
"""Queries that compare events, and which peer shows what partial matches cost as the window grows; Esper has no word for `climb`."""

WINDOWS = (8, 16, 32, 96, 320, 960, 3200)
"""Milliseconds, thus events."""

PEER_EVENTS = 50_000


def stream(name: str) -> Path:
    """The CSV file of a stream, made when it is not there."""
    shares = {
        "uniform": (0.2, 0.2, 0.2, 0.2, 0.2),
        "rare": (0.249875, 0.249875, 0.0005, 0.249875, 0.249875),
        "ticks": (1, 0, 0, 0, 0),
        "priced": (0.25, 0.25, 0.25, 0.25, 0),
        "priced_rare": (0.3333, 0.3333, 0.0001, 0.3333, 0),
    }
    path = DATA / f"{name}.csv"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        generator = np.random.default_rng(8)
        types = generator.choice(list("ABCDE"), EVENTS, p=shares[name])
        if name in {"uniform", "rare"}:
            rest = [""] * EVENTS
        else:
            prices, ids = np.round(generator.random(EVENTS) * 1000, 2), generator.integers(0, 100, EVENTS)
            rest = [f",{price},{one}" for price, one in zip(prices.tolist(), ids.tolist(), strict=True)]
        with path.open("w", encoding="ascii") as sink:
            sink.writelines(f"{one},{time}{more}\n" for (time, one), more in zip(enumerate(types), rest, strict=True))
    return path


def interpreter(peer: str) -> Path:
    """The Python of a peer's environment, or our own; Esper has jars alone."""
    return Path(sys.executable) if peer in {"cepheid", ESPER} else FOLDER / f".venv-{ENVIRONMENTS.get(peer, peer)}" / "bin" / "python"


def run(peer: str, query: str, path: Path, events: int, warm_up: int, *, timeout: float, window: int = 99) -> dict[str, Any]:
    """The figures of one run of a peer, or why there are none."""
    python = interpreter(peer)
    if not python.exists() or (peer == ESPER and not (FOLDER / ".venv-esper" / "jars").exists()):
        return {"absent": "its environment is not installed"}
    numbers = ["--events", str(events), "--warm-up", str(warm_up), "--window", str(window)]
    command = [
        str(python),
        str(FOLDER / FOLDERS.get(peer, peer) / "run.py"),
        "--query",
        query,
        "--stream",
        str(path),
        *numbers,
        "--matches",
        str(output(peer, query)),
    ]
    output(peer, query).unlink(missing_ok=True)
    process = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": str(FOLDER / "common")},
        cwd=DATA,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that a time-out ends the JVM too
    )
    try:
        out, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return {"timed_out_after_seconds": timeout, "events": events}
    if process.returncode:
        return {"failed": (errors.strip().splitlines() or ["no message"])[-1][:300]}
    figures: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    figures["events_per_cpu_second"] = round(figures["events"] / max(figures["cpu_seconds"], 1e-3))
    return figures


def output(peer: str, query: str) -> Path:
    """Where the matches of a peer's query go."""
    return DATA / f"matches-{peer}-{query}.csv"


def ours(case: Case, query: str, path: Path, repeat: int) -> dict[str, Any]:
    """Our figures: the run of median CPU time."""
    runs = [run("cepheid", query, path, case.events, 100_000, timeout=600, window=case.window) for _ in range(repeat)]
    if "cpu_seconds" not in runs[0]:
        return runs[0]
    figures = sorted(runs, key=lambda one: one["cpu_seconds"])[len(runs) // 2]
    figures["from_file_events_per_cpu_second"] = round(figures["events"] / statistics.median(one["from_file_cpu_seconds"] for one in runs))
    return figures


def compare(peer: str, query: str, own_query: str, events: int) -> dict[str, Any]:
    """How many matches within the peer's prefix both have, as triples, by start and end, by end alone."""
    found = {}
    for name, path in ((peer, output(peer, query)), ("cepheid", output("cepheid", own_query))):
        names = ["a", "b", "c"]
        table = csv.read_csv(path, csv.ReadOptions(column_names=names)) if path.stat().st_size else None
        first, second, last = (table[column].to_numpy() if table else np.zeros(0, np.int64) for column in names)
        kept = last < events
        first, second, last = first[kept], second[kept], last[kept]
        back = np.minimum(last - first, 4095), np.minimum(last - second, 4095)
        found[name] = [np.unique(key) for key in ((last << 24) + (back[0] << 12) + back[1], (last << 12) + back[0], last)]
        found[name].append(len(last))
    theirs, own = found[peer], found["cepheid"]
    return {
        "matches": {"theirs": theirs[3], "ours": own[3]},
        "equal": all(np.array_equal(one, other) for one, other in zip(theirs, own, strict=True)),
        **{
            name: len(np.intersect1d(theirs[index], own[index], assume_unique=True))
            for index, name in enumerate(("common_matches", "common_starts_and_ends", "common_ends"))
        },
        "distinct_ends": {"theirs": len(theirs[2]), "ours": len(own[2])},
    }


def scaled(case: Case, scale: float) -> Case:
    """The case with its numbers of events times `scale`."""
    peers = {peer: (query, int(events * scale), int(warm_up * scale)) for peer, (query, events, warm_up) in case.peers.items()}
    return replace(case, events=int(case.events * scale), peers=peers)


def measure(case: Case, only: list[str] | None, *, timeout: float, repeat: int) -> dict[str, Any]:
    """All peers on one case, each compared with ours."""
    path = stream(case.stream)
    own: dict[str, dict[str, Any]] = {}
    peers = []
    for peer, (query, events, warm_up) in case.peers.items():
        if only and peer not in only:
            continue
        own_query = query if query == "any" else case.query  # what CORE can be asked for is a query of its own
        if own_query not in own:
            own[own_query] = ours(case, own_query, path, repeat)
        print(f"{case.name}: {peer}, {events:,} events", file=sys.stderr)
        figures = {"peer": peer, "query": query, **run(peer, query, path, events, warm_up, timeout=timeout, window=case.window)}
        if "cpu_seconds" in figures and "cpu_seconds" in own[own_query]:
            mine = "from_file_events_per_cpu_second" if peer in {FLINK, TUNED} else "events_per_cpu_second"
            figures["ratio"] = round(own[own_query][mine] / figures["events_per_cpu_second"], 1)
            figures["comparison"] = compare(peer, query, own_query, events)
            if peer in {FLINK, TUNED}:
                figures |= without_reading(peer, figures, own[own_query], path, warm_up, timeout=timeout)
        peers.append(figures)
    return {"case": case.name, "stream": case.stream, "cepheid": own, "peers": peers}


def without_reading(peer: str, figures: dict[str, Any], own: dict[str, Any], path: Path, warm_up: int, *, timeout: float) -> dict[str, Any]:
    """Flink's figures less those of a run that reads the same events and drops them, against our query from memory."""
    reading = run(peer, "read_tuned" if peer == TUNED else "read", path, figures["events"], warm_up, timeout=timeout)
    cpu = figures["cpu_seconds"] - reading["cpu_seconds"]
    if cpu <= 0:  # a few thousand events: less than the clock's noise
        return {"reading_cpu_seconds": reading["cpu_seconds"]}
    rate = round(figures["events"] / cpu)
    ratio = round(own["events_per_cpu_second"] / rate, 1)
    return {"reading_cpu_seconds": reading["cpu_seconds"], "without_reading_events_per_cpu_second": rate, "without_reading_ratio": ratio}


def over_windows(*, timeout: float, scale: float) -> list[dict[str, Any]]:
    """Queries that compare events, ours and a peer's that keeps every partial match, while the window grows: C, the last step, is rare."""
    rows = []
    path = stream("priced_rare")
    for query, peer in OVER_WINDOWS.items():
        ended = False
        for window in WINDOWS:
            events = int(PEER_EVENTS * scale)
            own = run("cepheid", query, path, events * 10, 10_000, timeout=timeout, window=window)
            theirs = (
                {"left_out": "a smaller window did not end"}
                if ended
                else run(peer, query, path, events, 5_000, timeout=timeout, window=window)
            )
            ended = ended or "cpu_seconds" not in theirs
            rows.append({"query": query, "window": window, "cepheid": own, "peer": {"peer": peer, **theirs}})
            print(f"{query}, window {window}: {own}\n    {theirs}", file=sys.stderr)
    return rows


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[FLINK, TUNED, FLINK_CEP, PANDAS, SIDDHI, CORE, ESPER])
    parser.add_argument(
        "--part", choices=["letters", "comparing", "all"], default="all", help="queries that compare events, the others, or all"
    )
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--repeat", type=int, default=3, help="runs of ours; a peer runs once")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of events: less for a trial")
    options = parser.parse_args()
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    about = {"java": java[:1], "cpu_seconds": "all threads of the process and its children"}

    def measured(cases: tuple[Case, ...]) -> list[dict[str, Any]]:
        return [measure(scaled(case, options.scale), options.only, timeout=options.timeout, repeat=options.repeat) for case in cases]

    if options.part in {"letters", "all"}:
        circumstances.write("peers", {"bar_ratio": BAR, **about, "cases": measured(CASES)})
    if options.part in {"comparing", "all"}:
        windows = over_windows(timeout=min(options.timeout, 60), scale=options.scale)
        circumstances.write("peers_comparing", {**about, "cases": measured(COMPARING), "over_windows": windows})


if __name__ == "__main__":
    main()
