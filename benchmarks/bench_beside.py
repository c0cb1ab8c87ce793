"""An old commit beside this one: any benchmark, run by each checkout in turns, and the ratio of every figure.

    python benchmarks/bench_beside.py OLD BENCHMARK [--turns N] [-- ARGUMENTS]

OLD is another checkout of this project in which `make setup` was run; BENCHMARK is the name of one of these files without `bench_` (kernel, run,
strategies, ..), and ARGUMENTS are what it takes (few events and `--repeat 1`: the turns repeat it). Each checkout runs its own file with its own
Python and writes its own record, which is put back as it was. A figure is a number of the record that is not the same in every turn; the ratio is
the median of new / old over the turns, so that what else the machine does meets both. A machine is busy for seconds: the quartiles of the ratio say
how much it says.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import circumstances

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW = Path(__file__).resolve().parent.parent


def figures(node: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a record by where it stands; a row of a list is named by its texts, so that rows may be added."""
    if isinstance(node, dict):
        names = [str(value) for value in node.values() if isinstance(value, str)]
        here = " ".join([path, *names]).strip()
        for key, value in node.items():
            if key not in ("circumstances", "bars"):
                yield from figures(value, f"{here} {key}".strip())
    elif isinstance(node, list):
        for index, value in enumerate(node):
            named = isinstance(value, dict) and any(isinstance(text, str) for text in value.values())
            parameters = " ".join(str(value[key]) for key in ("window", "keys") if key in value) if named else str(index)
            yield from figures(value, f"{path} {parameters}".strip())
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield path, float(node)


def run(checkout: Path, benchmark: str, arguments: list[str]) -> dict[str, float]:
    """The figures of one run of a checkout's benchmark."""
    folder = checkout / "benchmarks" / "record"
    before = {path: path.read_bytes() for path in folder.glob("*.json")}
    command = [str(checkout / ".venv" / "bin" / "python"), f"benchmarks/bench_{benchmark}.py", *arguments]
    subprocess.run(command, cwd=checkout, check=True, stdout=subprocess.DEVNULL)
    written = [path for path in folder.glob("*.json") if before.get(path) != path.read_bytes()]
    (record,) = written
    try:
        return dict(figures(json.loads(record.read_text(encoding="utf-8"))))
    finally:
        if record in before:
            record.write_bytes(before[record])
        else:
            record.unlink()


def commit(checkout: Path) -> str:
    """The commit that a checkout is at."""
    done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def compare(old: list[dict[str, float]], new: list[dict[str, float]]) -> list[dict[str, Any]]:
    """The medians and the ratio of every figure that both have."""
    rows = []
    for name in new[0]:
        if not all(name in one for one in [*old, *new]):
            continue
        pairs = [(o[name], n[name]) for o, n in zip(old, new, strict=True)]
        if len({value for pair in pairs for value in pair}) == 1:
            continue  # a parameter, not a figure
        ratios = sorted(n / o for o, n in pairs if o)
        if not ratios:
            continue
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
        medians = [round(statistics.median(side), 4) for side in zip(*pairs, strict=True)]
        rows.append(
            {"figure": name, "old": medians[0], "new": medians[1], "ratio": round(statistics.median(ratios), 3)}
            | {"quartiles": [round(quartiles[0], 3), round(quartiles[2], 3)]}
        )
    return rows


def main() -> None:
    """Run both in turns, print, record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("old", type=Path)
    parser.add_argument("benchmark")
    parser.add_argument("--turns", type=int, default=7)
    options, arguments = parser.parse_known_args()
    arguments = [argument for argument in arguments if argument != "--"]
    old: list[dict[str, float]] = []
    new: list[dict[str, float]] = []
    for turn in range(options.turns):
        sides = [(options.old.resolve(), old), (NEW, new)]
        for checkout, found in sides if turn % 2 == 0 else reversed(sides):
            found.append(run(checkout, options.benchmark, arguments))
        print(f"turn {turn + 1} of {options.turns}")
    record = {"old": commit(options.old), "turns": options.turns, "arguments": arguments, "figures": compare(old, new)}
    path = circumstances.FOLDER / "beside.json"
    kept = json.loads(path.read_text(encoding="utf-8"))["benchmarks"] if path.exists() else {}
    circumstances.write("beside", {"benchmarks": kept | {options.benchmark: record}})


if __name__ == "__main__":
    main()
