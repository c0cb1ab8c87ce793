"""Cepheid, embedded: from the same CSV file to a CSV file of matches.

`wall_seconds` and `cpu_seconds` are the query alone, from an Arrow table to an Arrow table; `from_file_..` also has the two files.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from measurement import Stopwatch, arguments, prefix, report
from pyarrow import csv

import cepheid

QUERIES = {
    "strict": "SELECT * WHERE A : B : C",
    "next": "SELECT NXT * WHERE A ; B ; C WITHIN [< 100] CONSUME BY ANY",
    "all": "SELECT * WHERE A ; B ; C WITHIN [< 100]",
    "any": "SELECT ANY * WHERE A ; B ; C WITHIN [< 100] CONSUME BY ANY LIMIT 1",
}


def read(stream: str) -> pa.Table:
    """The events as a table: a dictionary column of types, a column of times."""
    types = {"type": pa.dictionary(pa.int32(), pa.string()), "ts": pa.int64()}
    return csv.read_csv(
        stream,
        read_options=csv.ReadOptions(column_names=list(types)),
        convert_options=csv.ConvertOptions(column_types=types),
    )


def write(found: pa.Table, target: str) -> None:
    """One line per match: the times of its events, which are their positions."""
    columns = [found[name].combine_chunks().flatten() for name in "ABC"]
    csv.write_csv(pa.table(columns, names=list("abc")), target, csv.WriteOptions(include_header=False))


def main() -> None:
    """Warm up, run, report."""
    options, watch = arguments(), Stopwatch()
    query = cepheid.query(QUERIES[options.query])
    with tempfile.TemporaryDirectory() as folder:
        stream = prefix(options.stream, options.events, Path(folder) / "stream.csv")
        write(query.run(read(str(stream)).slice(0, options.warm_up)).to_arrow(), str(options.matches))
        start_up, watch = watch.read(), Stopwatch()
        events = read(str(stream))
        whole, watch = watch.read(), Stopwatch()
        found = query.run(events).to_arrow()
        run, watch = watch.read(), Stopwatch()
        write(found, str(options.matches))
        end = watch.read()
    from_file = {f"from_file_{name}": round(whole[name] + run[name] + end[name], 4) for name in run}
    report(version=cepheid.__version__, events=len(events), matches=len(found), run=run, start_up=start_up, **from_file)


if __name__ == "__main__":
    main()
