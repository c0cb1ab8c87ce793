"""Draws the records of bench_paper.py, bench_peers.py and bench_queries.py: benchmarks/record/*.svg, from the JSON files alone.

benchmarks/peers/.venv-plots/bin/python benchmarks/peers/plots/draw.py [--png FOLDER]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import altair as alt

RECORD = Path(__file__).parents[2] / "record"
BLUE, ORANGE, GREEN, PINK, GREY, BLACK = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#8C8C8C", "#333333"
"""Okabe and Ito's colours: told apart with any colour vision."""
ENGINES = {"Cepheid": BLUE, "CEL (paper)": GREEN, "SASE (paper)": ORANGE, "EsperTech (paper)": PINK}
STRATEGIES = {"NXT": BLUE, "LAST": GREEN, "MAX": ORANGE, "ANY": PINK, "STRICT": GREY}
NAMES = {
    "cepheid": "Cepheid",
    "core": "CORE",
    "esper": "Esper",
    "siddhi": "Siddhi",
    "flink": "Flink SQL",
    "flink_tuned": "Flink SQL, tuned",
    "flink_cep": "Flink Java API",
    "pandas_match_recognize": "pandas-match-recognize",
}


def themed(chart: alt.TopLevelMixin) -> alt.TopLevelMixin:
    """One look for every plot: a white ground, light lines, one font."""
    return (
        chart.configure(font="Helvetica, Arial, sans-serif", background="white", padding=12)
        .configure_axis(
            labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridColor="#E6E6E6", domainColor=BLACK, tickColor=BLACK
        )
        .configure_legend(labelFontSize=11, title=None, orient="top", symbolSize=80)
        .configure_title(fontSize=14, anchor="start", subtitleFontSize=11, subtitleColor="#555555", offset=10)
        .configure_header(labelFontSize=12, titleFontSize=12)
        .configure_view(stroke="#CCCCCC")
    )


def consumption(record: dict[str, Any]) -> alt.TopLevelMixin:
    """Table 2 as dots on a logarithmic axis."""
    rows = [{"query": row["query"], "engine": "Cepheid", "seconds": row["seconds"]} for row in record["table_2"]]
    for engine, figures in record["paper"]["table_2_seconds"].items():
        rows += [{"query": query, "engine": f"{engine} (paper)", "seconds": seconds} for query, seconds in figures.items()]
    data = alt.Data(values=rows)
    dots = (
        alt.Chart(data)
        .mark_point(filled=True, size=110, opacity=1)
        .encode(
            alt.X("seconds:Q")
            .title("seconds, logarithmic")
            .scale(type="log", domain=[min(0.01, *(row["seconds"] for row in rows)), 5000])
            .axis(values=[0.01, 0.1, 1, 10, 100, 1000], format="~g"),
            alt.Y("query:N").title(None).axis(grid=True),
            alt.Color("engine:N").scale(domain=list(ENGINES), range=list(ENGINES.values())),
            alt.Shape("engine:N").scale(domain=list(ENGINES), range=["circle", "square", "diamond", "triangle-up"]),
        )
    )
    events = f"{record['events']:,} uniform events, partial matches dropped after every trigger, LIMIT 10"
    title = alt.Title(
        "Table 2: consumption", subtitle=[events, "3,600 s: stopped after an hour. The paper's machine is another (1.7 GHz)."]
    )
    return dots.properties(width=560, height=220, title=title)


def stress(record: dict[str, Any]) -> alt.TopLevelMixin:
    """Figure 4 in three panels."""
    rows = record["figure_4"]
    for row in rows:
        row |= {
            "processing": row["processing_seconds"] * 1e3,
            "enumeration": row["enumeration_seconds"] * 1e3,
            "memory": row["memory_bytes"] / 1e3,
        }
    panels = [
        ("processing", "milliseconds up to the last event"),
        ("enumeration", "milliseconds for the last event's matches"),
        ("memory", "kB before the last event"),
    ]
    charts = [
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=2)
        .encode(
            alt.X("length:Q").title("events of the stream").axis(values=[0, 500, 1000, 1500, 2000], format=",d"),
            alt.Y(f"{name}:Q").title(title).scale(zero=True),
            alt.Color("query:N").scale(domain=["Q1", "Q2"], range=[BLUE, ORANGE]),
        )
        .properties(width=230, height=210)
        for name, title in panels
    ]
    most = max(row["matches"] for row in rows)
    subtitle = (
        f"Only the last event completes matches: up to {most:,} of Q2. The paper's prototype took 5.2 s and 5 MB for 2,000 events of Q2."
    )
    return alt.hconcat(*charts).properties(title=alt.Title("Figure 4: stress", subtitle=subtitle))


def strategies(record: dict[str, Any]) -> alt.TopLevelMixin:
    """Figure 5: grouped bars, a panel per stream."""
    rows = [row | {"millions": row["events_per_second"] / 1e6} for row in record["figure_5"]]
    panels = []
    top = max(row["millions"] for row in rows) * 1.05
    for stream, title in (("S1", "S1: uniform types"), ("S2", "S2: A to E as 4:3:2:1:2")):
        values = [row for row in rows if row["stream"] == stream]
        panels.append(
            alt.Chart(alt.Data(values=values))
            .mark_bar()
            .encode(
                alt.X("query:N").title(None).axis(labelAngle=0),
                alt.XOffset("strategy:N").sort(list(STRATEGIES)),
                alt.Y("millions:Q").title("million events per second").scale(domain=[0, top]),
                alt.Color("strategy:N").scale(domain=list(STRATEGIES), range=list(STRATEGIES.values())).sort(list(STRATEGIES)),
            )
            .properties(width=400, height=220, title=alt.Title(title, fontSize=12, fontWeight="normal"))
        )
    subtitle = "From an Arrow table to an Arrow table of matches, WITHIN 100 events' time, one match per trigger."
    return alt.hconcat(*panels).properties(title=alt.Title("Figure 5: selection strategies", subtitle=subtitle))


def peers(record: dict[str, Any]) -> alt.TopLevelMixin:
    """Events per CPU-second of every engine, a panel per case."""
    subtitle = [
        "All threads of one process each, after a warm-up. Flink SQL: less a run that only reads its file.",
        "Where the matches differ, docs/benchmarks.md says how.",
    ]
    return peers_panels(record, alt.Title("A..B..C within 100 events", subtitle=subtitle))


def comparing(record: dict[str, Any]) -> alt.TopLevelMixin:
    """The same for queries that compare events."""
    subtitle = "All threads of one process each, after a warm-up. All give the same matches."
    return peers_panels(record, alt.Title("Queries that compare events", subtitle=subtitle))


def peers_panels(record: dict[str, Any], title: alt.Title) -> alt.TopLevelMixin:
    """A panel per case, under each other."""
    panels = [peers_panel(case, last=case is record["cases"][-1]) for case in record["cases"]]
    return alt.vconcat(*panels, spacing=4).resolve_scale(x="shared").properties(title=title)


def peers_panel(case: dict[str, Any], *, last: bool) -> alt.LayerChart:
    """One case: a dot per engine with its rate, and by how much Cepheid's is higher."""
    own = next(iter(case["cepheid"].values()))
    rows = [{"engine": "Cepheid", "rate": own["events_per_cpu_second"], "text": f"{own['events_per_cpu_second']:,}"}]
    for one in case["peers"]:
        if "events_per_cpu_second" in one:
            prefix = "without_reading_" if "without_reading_ratio" in one else ""
            rate, ratio = one[f"{prefix}events_per_cpu_second"], one[f"{prefix}ratio"]
            rows.append({"engine": NAMES[one["peer"]], "rate": rate, "text": f"{rate:,} (1 : {ratio:,.0f})"})
        elif "timed_out_after_seconds" in one:  # a rate below this
            rate = one["events"] / one["timed_out_after_seconds"]
            rows.append({"engine": NAMES[one["peer"]], "rate": rate, "text": f"below {rate:,.0f} (stopped)"})
    axis = alt.Axis(values=[10**exponent for exponent in range(1, 9)], format="~s", labels=last, ticks=last)
    base = alt.Chart(alt.Data(values=rows)).encode(
        alt.X("rate:Q").title("events per CPU-second, logarithmic" if last else None).scale(type="log", domain=[10, 1e10]).axis(axis),
        alt.Y("engine:N").title(None).sort(list(NAMES.values())).axis(grid=True),
    )
    colors = alt.Scale(domain=list(NAMES.values()), range=[BLUE] + [ORANGE] * (len(NAMES) - 1))
    dots = base.mark_point(filled=True, size=100, opacity=1).encode(alt.Color("engine:N").legend(None).scale(colors))
    texts = base.mark_text(align="left", dx=9, fontSize=11, color=BLACK).encode(alt.Text("text:N"))
    title = alt.Title(case["case"], fontSize=12, fontWeight="normal", frame="group")
    return (dots + texts).properties(width=520, height=22 * len(rows), title=title)


COMPARED = {
    "gaps": "gaps: A ;[<= 5/8 W] B ;[<= 5/8 W] C",
    "joined": "equality: A ; B ; C with B.id = A.id",
    "order": "order: A ; C with C.price > A.price",
    "climb": "prev: rising A's, then C",
}


def windows(record: dict[str, Any]) -> alt.TopLevelMixin:
    """Events per CPU-second over the window: Cepheid beside an engine that keeps every partial match, a panel per query."""
    panels = []
    for query, title in COMPARED.items():
        rows, ends = [], []
        for one in record["over_windows"]:
            for engine, figures in (("cepheid", one["cepheid"]), (one["peer"]["peer"], one["peer"])):
                if one["query"] == query and "events_per_cpu_second" in figures:
                    rows.append({"engine": NAMES[engine], "window": one["window"], "rate": figures["events_per_cpu_second"]})
                elif one["query"] == query and "timed_out_after_seconds" in figures:
                    rate = figures["events"] / figures["timed_out_after_seconds"]
                    ends.append({"engine": NAMES[engine], "window": one["window"], "rate": rate, "text": "did not end"})
        names = ["Cepheid", "Esper", "Flink Java API"]
        encoded = (
            alt.X("window:Q")
            .title("window W in events, logarithmic")
            .scale(type="log")
            .axis(values=[8, 32, 96, 320, 960, 3200], format="d"),
            alt.Y("rate:Q").title("events per CPU-second, logarithmic").scale(type="log", domain=[100, 1e8]).axis(format="~s"),
            alt.Color("engine:N").scale(domain=names, range=[BLUE, PINK, ORANGE]),
        )
        chart = alt.Chart(alt.Data(values=rows)).mark_line(point=True).encode(*encoded)
        if ends:
            chart += alt.Chart(alt.Data(values=ends)).mark_point(shape="cross", size=80, filled=True).encode(*encoded)
            chart += alt.Chart(alt.Data(values=ends)).mark_text(align="left", dx=8, fontSize=11).encode(*encoded[:2], alt.Text("text:N"))
        panels.append(chart.properties(width=300, height=220, title=alt.Title(title, fontSize=12, fontWeight="normal")))
    subtitle = [
        "C is 1 event in 10,000, so partial matches pile up; the others keep each of them. All matches are listed:",
        "with gaps and W = 3,200 these are half a million for each C, which is what takes our time there.",
    ]
    grid = alt.vconcat(alt.hconcat(*panels[:2]), alt.hconcat(*panels[2:]))
    return grid.properties(title=alt.Title("What a longer window costs", subtitle=subtitle))


KINDS = {"equal": BLUE, "between": GREEN, "thresholds": ORANGE, "shapes": PINK}


def queries(record: dict[str, Any]) -> alt.TopLevelMixin:
    """Microseconds per event over the number of queries, both logarithmic: pushed a thousand at a time, and in one run."""
    rows = [
        {"kind": kind, "queries": row["queries"], "microseconds": row[how], "how": text}
        for kind, own in record["microseconds_per_event"].items()
        for row in own
        for how, text in (("push", "pushed, 1,000 events at a time"), ("run", "one run"))
    ]
    panels = [
        alt.Chart(alt.Data(values=[row for row in rows if row["how"] == how]))
        .mark_line(point=True)
        .encode(
            alt.X("queries:Q").title("queries, logarithmic").scale(type="log").axis(values=[1, 10, 100, 1000], format="~g"),
            alt.Y("microseconds:Q").title("CPU microseconds per event, logarithmic").scale(type="log", domain=[0.03, 100]),
            alt.Color("kind:N").scale(domain=list(KINDS), range=list(KINDS.values())).sort(list(KINDS)),
        )
        .properties(width=320, height=240, title=alt.Title(how, fontSize=12, fontWeight="normal"))
        for how in dict.fromkeys(row["how"] for row in rows)
    ]
    subtitle = [
        "equal, between: an event touches one of the queries; thresholds: half of them.",
        "shapes: every query has a window of its own, so no two are evaluated as one.",
    ]
    return alt.hconcat(*panels).properties(title=alt.Title("Queries that differ in constants, together", subtitle=subtitle))


PLOTS = {
    "queries": ("queries", queries),
    "paper-consumption": ("paper", consumption),
    "paper-stress": ("paper", stress),
    "paper-strategies": ("paper", strategies),
    "peers": ("peers", peers),
    "peers-comparing": ("peers_comparing", comparing),
    "peers-windows": ("peers_comparing", windows),
}


def main() -> None:
    """Draw what has a record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--png", type=Path, help="also as PNG, into this folder")
    options = parser.parse_args()
    for name, (source, plot) in PLOTS.items():
        path = options.record / f"{source}.json"
        if not path.exists():
            continue
        chart = themed(plot(json.loads(path.read_text(encoding="utf-8"))))
        chart.save(options.record / f"{name}.svg")
        if options.png:
            chart.save(options.png / f"{name}.png", scale_factor=1.5)


if __name__ == "__main__":
    main()
