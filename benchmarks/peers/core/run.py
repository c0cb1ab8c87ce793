"""CORE, by its Python package pycer: CEQL in a C++ engine in this process. The events are its objects before the clock starts.

Its strategies are parsed and ignored (0.1.6), so `any` asks for one match per trigger; its WITHIN leaves the bound itself out.
"""

from __future__ import annotations

import re
from importlib.metadata import version

import pycer
from measurement import Stopwatch, arguments, read, report

STREAM = "CREATE STREAM S { " + ", ".join(f"EVENT {name} {{ ts:int }}" for name in "ABCDE") + " }"

QUERIES = {
    "strict": "SELECT * FROM S WHERE A : B : C WITHIN 10 EVENTS",  # without a window it keeps everything
    "any": "SELECT * FROM S WHERE A ; B ; C WITHIN 100 [ts] CONSUME BY ANY LIMIT 1",
    "all": "SELECT * FROM S WHERE A ; B ; C WITHIN 100 [ts]",
}


def run(query: str, rows: list[tuple[str, int]]) -> tuple[str, dict[str, float]]:
    """The matches as CORE prints them, and the seconds they took."""
    server = pycer.PyOfflineServer()
    numbers = {event.name: event.id for event in server.declare_stream(STREAM).events_info}
    server.add_query(query)
    events = [pycer.PyEvent(numbers[name], [pycer.PyIntValue(at)]) for name, at in rows]
    watch = Stopwatch()
    server.send_events(events)
    return server.get_output(), watch.read()


def main() -> None:
    """Warm up, run, report."""
    options, watch = arguments(), Stopwatch()
    rows = read(options.stream, options.events)
    run(QUERIES[options.query], rows[: options.warm_up])
    start_up = watch.read()
    output, seconds = run(QUERIES[options.query], rows)
    count = 0
    with options.matches.open("w", encoding="ascii") as sink:
        for line in output.splitlines():
            if line.startswith("["):
                sink.write(",".join(re.findall(r"attributes: \[(\d+)", line)) + "\n")
                count += 1
    report(version=version("pycer"), events=len(rows), matches=count, run=seconds, start_up=start_up)


if __name__ == "__main__":
    main()
