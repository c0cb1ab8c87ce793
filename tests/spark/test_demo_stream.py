"""What `make demo-stream` prints and writes, on some days of the data: the same matches as embedded, and a difference is said."""

from __future__ import annotations

import datetime as dt
import importlib.util
import re
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

import cepheid
from cepheid.spark.sources import pages as paging

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [
    pytest.mark.skipif(not paging.PAGES, reason="Spark 4.1 does not tell a Python source where a micro-batch starts"),
    pytest.mark.slow,
    pytest.mark.timeout(600),  # two streaming jobs of some micro-batches each; a busy machine may need minutes
]


@pytest.fixture
def demo(monkeypatch):
    """The example, reading nine days of February 2013, when there was a storm, in few micro-batches."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location("flights_stream_demo", EXAMPLES / "flights_stream.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    begin, end = (dt.datetime(2013, 2, day, tzinfo=dt.UTC) for day in (4, 13))
    some = [table.filter((pc.field("ts") >= begin) & (pc.field("ts") < end)) for table in module.demo.tables()]
    monkeypatch.setattr(module.demo, "tables", lambda: some)
    monkeypatch.setattr(module, "MICRO_BATCHES", 3)
    return module


def test_the_demo_as_a_stream(spark, demo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "MICRO_BATCHES", 2)
    assert demo.report(spark, tmp_path / "out")
    printed = capsys.readouterr().out
    flights, weather = demo.demo.tables()
    for name, text in {**demo.BY_AIRCRAFT, **demo.BY_AIRPORT}.items():
        query = cepheid.query(text)
        events = flights if name in demo.BY_AIRCRAFT else {"weather": weather, "flights": flights}
        expected = len(query.run(events, time="ts", sort=True, order=("id",)))
        assert expected > 10
        assert f"  {name}: {expected:,} matches" in printed
    assert printed.count("the same as in batch") == 2
    lines = re.findall(r"micro-batch +(\d+): +([\d,]+) events, watermark (\S+ \S+), +([\d,]+) matches so far", printed)
    assert {watermark for number, _, watermark, _ in lines if number == "0"} == {"none yet"}
    read = sum(int(events.replace(",", "")) for _, events, _, _ in lines)
    assert read == 2 * (len(flights) + 1) + len(weather) + 1
    assert max(watermark for number, _, watermark, _ in lines if number != "0") >= "2013-02-14"


def test_events_that_come_too_late_show(spark, demo, tmp_path, monkeypatch, capsys):
    """The comparison can fail: a watermark that does not wait for the latest loses matches, and the demo says so; one stream is enough for that."""
    compared = demo.compared
    monkeypatch.setattr(demo, "compared", lambda name, *rest: name != "by aircraft" or compared(name, *rest))
    monkeypatch.setattr(demo, "DISORDER", "6 hours")
    monkeypatch.setattr(demo, "LATENESS", "1 second")
    assert not demo.report(spark, tmp_path / "out")
    printed = capsys.readouterr().out
    assert "NOT as in batch" in printed
    assert "events too late" in printed
