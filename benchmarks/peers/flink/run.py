"""Apache Flink: MATCH_RECOGNIZE through the Table API, from a CSV file to a CSV file, in a JVM of its own with parallelism 1.

The first, small run warms the JVM up and does not count. The query `read` only reads the events and drops them: what the source costs.
`strict_tuned`, `next_tuned`, `read_tuned` are the same with other settings than the defaults.
"""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path

from measurement import Stopwatch, arguments, prefix, report
from pyflink.table import EnvironmentSettings, TableEnvironment

READ = "INSERT INTO {target} SELECT name, ts FROM {source}"

MATCH = """
    INSERT INTO {target} SELECT a, b, c FROM {source} MATCH_RECOGNIZE (
        ORDER BY rowtime
        MEASURES A.ts AS a, B.ts AS b, C.ts AS c
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN ({pattern}) {within}
        DEFINE A AS name = 'A', B AS name = 'B', C AS name = 'C'
    )"""

TUNED = {"pipeline.object-reuse": "true", "pipeline.auto-watermark-interval": "10 ms"}
"""Not the defaults. Between two watermarks events pile up in front of the matcher; with the default of 200 ms that costs more."""

PATTERNS = {
    "strict": ("A B C", ""),
    "next": ("A X*? B Y*? C", "WITHIN INTERVAL '0.100' SECOND"),  # one event per millisecond: 100 events
}


def environment(*, tuned: bool) -> TableEnvironment:
    """A local streaming environment, with Flink's defaults or with what makes this query faster."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in {"parallelism.default": "1", **(TUNED if tuned else {})}.items():
        tables.get_config().set(name, value)
    return tables


def run(tables: TableEnvironment, query: str, stream: Path, matches: Path, name: str) -> None:
    """One query from file to file."""
    source, target = f"{name}_events", f"{name}_matches"
    tables.execute_sql(f"""
        CREATE TABLE {source} (name STRING, ts BIGINT, rowtime AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR rowtime AS rowtime)
        WITH ('connector' = 'filesystem', 'path' = '{stream}', 'format' = 'csv')""")
    if query == "read":
        tables.execute_sql(f"CREATE TABLE {target} (name STRING, ts BIGINT) WITH ('connector' = 'blackhole')")
        tables.execute_sql(READ.format(source=source, target=target)).wait()
        return
    tables.execute_sql(f"""
        CREATE TABLE {target} (a BIGINT, b BIGINT, c BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '{matches}', 'format' = 'csv')""")
    pattern, within = PATTERNS[query]
    tables.execute_sql(MATCH.format(source=source, target=target, pattern=pattern, within=within)).wait()


def main() -> None:
    """Warm up, run, report."""
    options, watch = arguments(), Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        stream = prefix(options.stream, options.events, scratch / "stream.csv")
        query = options.query.removesuffix("_tuned")
        tables = environment(tuned=query != options.query)
        run(tables, query, prefix(options.stream, options.warm_up, scratch / "first.csv"), scratch / "first", "first")
        start_up, watch = watch.read(), Stopwatch()
        run(tables, query, stream, scratch / "matches", "second")
        seconds = watch.read()
        count = 0
        with options.matches.open("w", encoding="ascii") as sink:
            for part in sorted(path for path in scratch.glob("matches/*") if not path.name.startswith(".")):
                lines = part.read_text(encoding="ascii").splitlines(keepends=True)
                count += len(lines)
                sink.writelines(lines)
    report(version=version("apache-flink"), events=options.events, matches=count, run=seconds, start_up=start_up)


if __name__ == "__main__":
    main()
