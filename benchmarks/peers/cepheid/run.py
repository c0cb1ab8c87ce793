"""Cepheid, embedded: from the same CSV file to a CSV file of matches.

`wall_seconds` and `cpu_seconds` are the query alone, from an Arrow table to an Arrow table; `from_file_..` also has the two files.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from measurement import Stopwatch, arguments, prefix, report
from pyarrow import csv

import cepheid

QUERIES = {
    "strict": "SELECT * WHERE A : B : C",
    "next": "SELECT NXT * WHERE A ; B ; C WITHIN [< 100] CONSUME BY ANY",
    "all": "SELECT * WHERE A ; B ; C WITHIN [< 100]",
    "any": "SELECT ANY * WHERE A ; B ; C WITHIN [< 100] CONSUME BY ANY LIMIT 1",
    "adjacent_rise": "SELECT * WHERE A AS a : A AS b FILTER b.price > a.price PARTITION BY id",
    "rising_run": "SELECT * WHERE (A AS r FILTER r.price > prev(r).price):{{3,}} PARTITION BY id",
    "gaps": "SELECT * WHERE A AS a ;[<= {gap}] B AS b ;[<= {gap}] C AS c WITHIN {window}",
    "equality": "SELECT * WHERE D AS a ; A AS b ; B AS c FILTER c.id = b.id WITHIN {window}",
    "joined": "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER b.id = a.id WITHIN {window}",
    "order": "SELECT * WHERE A AS a ; C AS b FILTER b.price > a.price WITHIN {window}",
    "climb": "SELECT * WHERE (A AS r FILTER r.price > prev(r).price)+ ; C AS c WITHIN {window} LIMIT 1",
}
"""The queries below `any` compare events: their streams have prices and ids.
`climb` has more matches than anyone can read, so we give one a trigger."""


def read(stream: Path) -> pa.Table:
    """The events as a table: a dictionary column of types, a column of times, and price and id where the file has them."""
    types = {"type": pa.dictionary(pa.int32(), pa.string()), "ts": pa.int64()}
    with stream.open(encoding="ascii") as lines:
        if lines.readline().count(",") > 1:
            types |= {"price": pa.float64(), "id": pa.int32()}
    return csv.read_csv(
        stream,
        read_options=csv.ReadOptions(column_names=list(types)),
        convert_options=csv.ConvertOptions(column_types=types),
    )


def write(found: pa.Table, target: str) -> None:
    """One line per match: the times of its first event, of its second, or the first of its second step, and of its last."""
    steps = [found[name].combine_chunks() for name in found.column_names if len(name) == 1]
    first, last = pc.list_element(steps[0], 0), found["end_time"]
    second = pc.list_element(steps[0], 1) if len(steps) == 1 else pc.list_element(steps[1], 0)
    csv.write_csv(pa.table([first, second, last], names=list("abc")), target, csv.WriteOptions(include_header=False))


def main() -> None:
    """Warm up, run, report."""
    options, watch = arguments(), Stopwatch()
    query = cepheid.query(QUERIES[options.query].format(window=options.window, gap=options.window * 5 // 8))
    with tempfile.TemporaryDirectory() as folder:
        stream = prefix(options.stream, options.events, Path(folder) / "stream.csv")
        write(query.run(read(stream).slice(0, options.warm_up)).to_arrow(), str(options.matches))
        start_up, watch = watch.read(), Stopwatch()
        events = read(stream)
        whole, watch = watch.read(), Stopwatch()
        found = query.run(events).to_arrow()
        run, watch = watch.read(), Stopwatch()
        write(found, str(options.matches))
        end = watch.read()
    from_file = {f"from_file_{name}": round(whole[name] + run[name] + end[name], 4) for name in run}
    report(version=cepheid.__version__, events=len(events), matches=len(found), run=run, start_up=start_up, **from_file)


if __name__ == "__main__":
    main()
