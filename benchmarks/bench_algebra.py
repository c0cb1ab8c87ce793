"""Speed of the detectors of the event algebra: the detector itself, the generated Python, the generated C, SELECT RESTRICTED; each beside its bar.

    python benchmarks/bench_algebra.py [--events N] [--many M] [--repeat R]

Events of five types, uniform, one per unit of time, so that Rate(1) holds. N events for what runs in Python, M for what is compiled; all forms read
the same stream from its beginning. Every figure is the median of R runs, in turns over all forms and expressions. An operator is a sub-expression
that is no primitive, of the expression as it is detected (transformed). Of C, the time is what a program of one file, compiled with -O2, takes for
events that are in memory when it begins; of SELECT RESTRICTED what `run` takes for a table. Forms that read the same stream must find as many
matches. Beside it, the bytes of a recognizer's state as events come.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import cepheid
import circumstances
from cepheid.algebra import Detector, Expression, Primitive, Rate, transform
from cepheid.algebra.generate_c import generate_c
from cepheid.algebra.generate_python import generate_python

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES = "ABCPT"
RATE = Rate(1)

A, B, C, P, T = map(Primitive, TYPES)

INTRODUCTORY = "introductory"

EXPRESSIONS: dict[str, Expression] = {
    INTRODUCTORY: (B >> B).within(time=2) - (P | T),  # event-algebra, Example 1.2
    "negated sequence": (B >> B).within(time=2) - (P >> (P + T)),  # Example 6.1
    "long right sides": (A >> (B + C)).within(time=100) - (P >> T).within(time=10),
    "many operators": ((A >> (B | C)) + (P >> (A - T))).within(time=50) | ((A + B) >> ((C >> P).within(time=9) - T)).within(events=30),
}

MICROSECONDS = "us_per_event_and_operator"
PER_SECOND = "events_per_second"


@dataclass(frozen=True)
class Stream:
    """types: of each event, a number. The event at position n has the time n."""

    types: np.ndarray

    @property
    def rows(self) -> list[tuple[int, int, frozenset[str]]]:
        """(event, time, names of what occurs) of each event."""
        names = [frozenset(name) for name in TYPES]
        return [(n, n, names[kind]) for n, kind in enumerate(self.types.tolist())]


@dataclass(frozen=True)
class Form:
    """One way to detect. many: whether it reads the long stream. bars: (expression or "" for all, figure, bar)."""

    prepare: Callable[[Expression, Stream, Path], Callable[[], tuple[float, int]]]
    many: bool
    bars: tuple[tuple[str, str, float], ...]


def pushed(make: Callable[[], Detector[int]], stream: Stream) -> Callable[[], tuple[float, int]]:
    """Events pushed one by one into a new detector."""
    rows = stream.rows

    def run() -> tuple[float, int]:
        push = make().push
        matches = 0
        begin = time.process_time()
        for event, at, names in rows:
            if push(event, at, names) is not None:
                matches += 1
        return time.process_time() - begin, matches

    return run


def generic(expression: Expression, stream: Stream, _: Path) -> Callable[[], tuple[float, int]]:
    """`cepheid.algebra.Detector`."""
    return pushed(lambda: Detector(expression), stream)


def generated_python(expression: Expression, stream: Stream, _: Path) -> Callable[[], tuple[float, int]]:
    """The file that `generate_python` writes."""
    namespace: dict[str, type[Detector[int]]] = {}
    exec(generate_python(expression, rate=RATE), namespace)  # noqa: S102
    return pushed(namespace["Detector"], stream)


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "detector.c"

int main(int count, char **names)
{
    static detector_t detector;
    detector_match_t match;
    int64_t matches = 0;
    const long events = strtol(names[1], NULL, 10);
    int64_t *const times = malloc((size_t)events * sizeof *times);
    uint64_t *const occurring = malloc((size_t)events * sizeof *occurring);
    FILE *const file = count == 3 ? fopen(names[2], "rb") : NULL;
    if (times == NULL || occurring == NULL || file == NULL
        || fread(times, sizeof *times, (size_t)events, file) != (size_t)events
        || fread(occurring, sizeof *occurring, (size_t)events, file) != (size_t)events) {
        return 1;
    }
    detector_init(&detector);
    const clock_t begin = clock();
    for (long n = 0; n < events; n++) {
        const int status = detector_push(&detector, times[n], occurring[n], (int64_t)n, &match);
        if (status < 0) {
            return 2;
        }
        matches += status;
    }
    printf("%.9f %lld\\n", (double)(clock() - begin) / CLOCKS_PER_SEC, (long long)matches);
    return 0;
}
"""


def generated_c(expression: Expression, stream: Stream, folder: Path) -> Callable[[], tuple[float, int]]:
    """The file that `generate_c` writes, in a program that has all events in memory before it begins."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("no C compiler: neither cc nor gcc is on the path")
    names = sorted({node.name for node in expression.walk() if isinstance(node, Primitive)})
    bits = np.array([1 << names.index(name) if name in names else 0 for name in TYPES], np.uint64)
    (folder / "detector.c").write_text(generate_c(expression, rate=RATE), encoding="ascii")
    (folder / "main.c").write_text(PROGRAM, encoding="ascii")
    with (folder / "events").open("wb") as file:
        np.arange(len(stream.types), dtype=np.int64).tofile(file)
        bits[stream.types].tofile(file)
    subprocess.run([compiler, "-std=c99", "-O2", "-o", "program", "main.c"], check=True, cwd=folder)

    def run() -> tuple[float, int]:
        command = [str(folder / "program"), str(len(stream.types)), str(folder / "events")]
        seconds, matches = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return float(seconds), int(matches)

    return run


def table_of(stream: Stream) -> pa.Table:
    """The stream as columns."""
    kinds = pa.DictionaryArray.from_arrays(pa.array(stream.types.astype(np.int32)), pa.array(list(TYPES)))
    return pa.table({"type": kinds, "ts": np.arange(len(stream.types), dtype=np.int64)})


def restricted(expression: Expression, stream: Stream, _: Path) -> Callable[[], tuple[float, int]]:
    """SELECT RESTRICTED over a table."""
    events, query = table_of(stream), cepheid.query(f"SELECT RESTRICTED * WHERE {expression}")

    def run() -> tuple[float, int]:
        begin = time.process_time()
        matches = len(query.run(events))
        return time.process_time() - begin, matches

    return run


STATE_PARTS = 10
"""How often the state is looked at."""


def state_bytes(expression: Expression, stream: Stream) -> list[int]:
    """The bytes of a recognizer of SELECT RESTRICTED, after each tenth of the stream."""
    events = table_of(stream)
    recognizer = cepheid.query(f"SELECT RESTRICTED * WHERE {expression}").recognizer(events.schema)
    part, sizes = len(events) // STATE_PARTS, []
    for number in range(STATE_PARTS):
        recognizer.push(events.slice(number * part, part))
        sizes.append(recognizer.memory_usage())
    return sizes


FORMS: dict[str, Form] = {
    "detector": Form(generic, many=False, bars=(("", MICROSECONDS, 2.0),)),
    "generated Python": Form(generated_python, many=False, bars=(("", MICROSECONDS, 2.0),)),
    "generated C": Form(generated_c, many=True, bars=((INTRODUCTORY, PER_SECOND, 20e6),)),
    "SELECT RESTRICTED": Form(restricted, many=True, bars=((INTRODUCTORY, PER_SECOND, 5e6),)),
}


def figure(form: str, name: str, events: int, taken: list[float], matches: int) -> dict[str, object]:
    """One row: the median of the runs, with the bars that it has."""
    operators = sum(bool(node.operands) for node in transform(EXPRESSIONS[name]).walk())
    seconds = statistics.median(taken)
    figures = {MICROSECONDS: round(seconds * 1e6 / events / operators, 4), PER_SECOND: round(events / seconds)}
    bars = {unit: bar for of, unit, bar in FORMS[form].bars if of in ("", name)}
    return {"form": form, "expression": name, "operators": operators, "events": events, "matches": matches, **figures, "bar": bars}


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--many", type=int, default=20_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    types = np.random.default_rng(7).integers(0, len(TYPES), max(options.many, options.events), dtype=np.int8)
    events = {form: options.many if FORMS[form].many else options.events for form in FORMS}
    with tempfile.TemporaryDirectory() as place:
        runs = {}
        for form, each in FORMS.items():
            for name, expression in EXPRESSIONS.items():
                folder = Path(place) / f"{form} {name}"
                folder.mkdir()
                runs[form, name] = each.prepare(expression, Stream(types[: events[form]]), folder)
        taken: dict[tuple[str, str], list[float]] = {key: [] for key in runs}
        matches: dict[tuple[str, str], int] = {}
        for _ in range(options.repeat):
            for key, run in runs.items():
                seconds, matches[key] = run()
                taken[key].append(seconds)
    for (form, name), found in matches.items():
        if {found} != {matches[other, name] for other in FORMS if FORMS[other].many == FORMS[form].many}:
            raise SystemExit(f"{form} of {name} found {found} matches, another form others")
    states = {name: state_bytes(expression, Stream(types[: options.many])) for name, expression in EXPRESSIONS.items()}
    figures = [figure(form, name, events[form], taken[form, name], matches[form, name]) for form, name in runs]
    circumstances.write("algebra", {"rate": str(RATE), "repeat": options.repeat, "figures": figures, "state_bytes_by_tenth": states})


if __name__ == "__main__":
    main()
