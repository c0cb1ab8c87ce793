"""pandas-match-recognize: MATCH_RECOGNIZE on a data frame. It has no WITHIN: the window is a condition of every step."""

from __future__ import annotations

from importlib.metadata import version

import pandas as pd
from measurement import Stopwatch, arguments, read, report
from pandas_match_recognize import match_recognize

MATCH = """
    SELECT * FROM events MATCH_RECOGNIZE (
        ORDER BY ts
        MEASURES A.ts AS a, B.ts AS b, C.ts AS c
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN ({pattern})
        DEFINE {define}
    )"""

QUERIES = {
    "strict": MATCH.format(pattern="A B C", define="A AS name = 'A', B AS name = 'B', C AS name = 'C'"),
    "next": MATCH.format(
        pattern="A X*? B Y*? C",
        define="A AS name = 'A', X AS ts - A.ts < 100, B AS name = 'B' AND ts - A.ts < 100, "
        "Y AS ts - A.ts < 100, C AS name = 'C' AND ts - A.ts < 100",
    ),
}


def main() -> None:
    """Warm up, run, report."""
    options, watch = arguments(), Stopwatch()
    events = pd.DataFrame(read(options.stream, options.events), columns=["name", "ts"])
    match_recognize(QUERIES[options.query], events.head(options.warm_up))
    start_up, watch = watch.read(), Stopwatch()
    found = match_recognize(QUERIES[options.query], events)
    run = watch.read()
    found.to_csv(options.matches, index=False, header=False, columns=["a", "b", "c"])
    report(version=version("pandas-match-recognize"), events=len(events), matches=len(found), run=run, start_up=start_up)


if __name__ == "__main__":
    main()
