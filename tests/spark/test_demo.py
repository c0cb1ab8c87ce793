"""The demo's numbers against an independent computation in pandas: embedded and on Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import flights as demo
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import cepheid

if TYPE_CHECKING:
    from pathlib import Path

HOUR = pd.Timedelta("1h")


@pytest.fixture(scope="module")
def tables() -> tuple[Any, Any]:
    return demo.tables()


@pytest.fixture(scope="module")
def flights(tables: tuple[Any, Any]) -> pd.DataFrame:
    return tables[0].to_pandas()


@pytest.fixture(scope="module")
def weather(tables: tuple[Any, Any]) -> pd.DataFrame:
    return tables[1].to_pandas()


def cascades(flights: pd.DataFrame) -> set[tuple[int, int, int]]:
    legs = flights.dropna(subset="tailnum").sort_values(["tailnum", "ts", "id"], kind="stable")
    by_aircraft = legs.groupby("tailnum")
    second, third = (by_aircraft[["id", "dep_delay", "ts"]].shift(-k) for k in (1, 2))
    chosen = (
        (legs.dep_delay <= 15)
        & (second.dep_delay > 15)
        & (second.dep_delay <= 60)
        & (third.dep_delay > 60)
        & (third.ts - legs.ts <= 24 * HOUR)
    )
    return set(zip(legs.id[chosen], second.id[chosen].astype(int), third.id[chosen].astype(int), strict=True))


def anyway(flights: pd.DataFrame) -> set[tuple[int, int]]:
    legs = flights.dropna(subset="tailnum").sort_values(["tailnum", "ts", "id"], kind="stable")
    following = legs.groupby("tailnum")[["id", "dep_time", "ts"]].shift(-1)
    chosen = legs.dep_time.isna() & following.dep_time.notna() & (following.ts - legs.ts <= 2 * HOUR)
    return set(zip(legs.id[chosen], following.id[chosen].astype(int), strict=True))


def storms(flights: pd.DataFrame, weather: pd.DataFrame) -> tuple[set[tuple[int, int]], set[int], set[int]]:
    """(stormy reading, flight that is a third or later cancellation after it), the last flights of triples, and the flights after a storm."""
    pairs, thirds, after = set(), set(), set()
    stormy = weather[(weather.wind_gust >= 40) | (weather.precip >= 0.3)]
    for origin, all_flights in flights.sort_values(["ts", "id"], kind="stable").groupby("origin"):
        cancelled = all_flights[all_flights.dep_time.isna()]
        for reading in stormy[stormy.origin == origin].itertuples():
            low, high = reading.ts, reading.ts + 4 * HOUR  # at equal times the weather comes first, so a flight at `low` is after it
            within = cancelled[(cancelled.ts >= low) & (cancelled.ts <= high)].id.tolist()
            pairs |= {(reading.id, flight) for flight in within[2:]}
            thirds |= set(within[2:])
            after |= set(all_flights[(all_flights.ts >= low) & (all_flights.ts <= high)].id)
    return pairs, thirds, after


def rows(arrow: Any, *variables: str) -> list[tuple[int, ...]]:
    """Per match the ids of the events of each variable, one after the other."""
    return [tuple(event["id"] for variable in variables for event in row[variable]) for row in arrow.select(variables).to_pylist()]


def test_cascades_embedded(tables: tuple[Any, Any], flights: pd.DataFrame) -> None:
    matches = cepheid.query(demo.CASCADE).run(tables[0], time="ts", sort=True, order=("id",))
    found = rows(matches.to_arrow(events=True), "ok", "late", "worse")
    expected = cascades(flights)
    assert len(expected) > 500
    assert set(found) == expected
    assert len(found) == len(expected)
    assert matches.null_keys == 2512


def test_flew_anyway_embedded(tables: tuple[Any, Any], flights: pd.DataFrame) -> None:
    found = rows(cepheid.query(demo.FLEW_ANYWAY).run(tables[0], time="ts", sort=True, order=("id",)).to_arrow(events=True), "c", "r")
    expected = anyway(flights)
    assert len(expected) > 100
    assert set(found) == expected
    assert len(found) == len(expected)


def test_storms_embedded(tables: tuple[Any, Any], flights: pd.DataFrame, weather: pd.DataFrame) -> None:
    streams = {"weather": tables[1], "flights": tables[0]}
    pairs, thirds, after = storms(flights, weather)
    assert len(thirds) > 100
    one_each = cepheid.query(demo.STORM).run(streams, time="ts", sort=True, order=("id",)).to_arrow(events=True).to_pylist()
    assert sorted(row["c"][-1]["id"] for row in one_each) == sorted(thirds)
    for row in one_each:
        reading, cancelled = row["w"][0], row["c"]
        assert (reading["id"], cancelled[2]["id"]) in pairs
        assert len({event["id"] for event in cancelled}) == 3
        assert all(event["dep_time"] is None and event["origin"] == reading["origin"] for event in cancelled)
        assert row["end_time"] - row["start_time"] <= 4 * HOUR
    readings = cepheid.query(demo.STORM_READINGS).run(streams, time="ts", sort=True, order=("id",)).to_arrow(events=True)
    assert len(readings) == len(pairs)
    assert {row["w"][0]["id"] for row in readings.to_pylist()} == {reading for reading, _ in pairs}
    followers = cepheid.query(demo.AFTER_STORM).run(streams, time="ts", sort=True, order=("id",)).to_arrow(events=True)
    assert sorted(i for (i,) in rows(followers, "f")) == sorted(after)


def test_the_traps_are_in_the_data(flights: pd.DataFrame, weather: pd.DataFrame) -> None:
    assert (len(flights), len(weather)) == (336_776, 26_115)
    assert int(flights.tailnum.isna().sum()) == 2512
    assert bool(flights.dep_time[flights.tailnum.isna()].isna().all())
    assert int(np.isnan(weather.wind_gust).sum()) == 20_778


@pytest.mark.timeout(900)  # five jobs over the whole year; a busy machine may need minutes
def test_the_demo_on_spark(
    generated: Any, tmp_path: Path, flights: pd.DataFrame, weather: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `make demo` writes and prints."""
    demo.report(generated, tmp_path)
    printed = capsys.readouterr().out

    def written(name: str) -> Any:
        return pq.read_table(tmp_path / name)

    assert sorted(rows(written("delay_cascade"), "ok", "late", "worse")) == sorted(cascades(flights))
    assert sorted(rows(written("flew_anyway"), "c", "r")) == sorted(anyway(flights))
    pairs, thirds, after = storms(flights, weather)
    assert sorted(row["c"][-1]["id"] for row in written("storm_cancellations").to_pylist()) == sorted(thirds)
    assert {row["w"][0]["id"] for row in written("storm_readings").to_pylist()} == {reading for reading, _ in pairs}
    assert sorted(i for (i,) in rows(written("flights_after_storm"), "f")) == sorted(after)
    elsewhere = flights.set_index("id").dest
    moved = sum(elsewhere[c] != elsewhere[r] for c, r in anyway(flights))
    stormy = int(((weather.wind_gust >= 40) | (weather.precip >= 0.3)).sum())
    cancelled = flights.set_index("id").dep_time.isna()
    in_storm = cancelled[cancelled.index.isin(after)]
    rest = cancelled[~cancelled.index.isin(after)]
    for line in (
        f"{len(cascades(flights)):,} delay cascades",
        f"{len({reading for reading, _ in pairs})} of {stormy} stormy readings",
        f"{in_storm.mean():.1%} of the {len(after):,} flights",
        f"{rest.mean():.1%} of the {len(rest):,} others",
        f"{len(anyway(flights))} cancelled flights whose aircraft flew anyway within 2 hours; {moved} of them",
    ):
        assert line in printed, printed
    times = re.findall(r"events\ntime +start ([\d.]+) s, work ([\d.]+) s \(([\d,]+) events/s\)\n", printed)
    assert len(times) == 5, printed
    assert all(float(start) > 0 and float(work) > 0 and float(speed.replace(",", "")) > 0 for start, work, speed in times)
