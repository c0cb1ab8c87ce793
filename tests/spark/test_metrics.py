"""Figures of micro-batches as Prometheus reads them: as text, in a file, at a port; and the alerts of the examples ask for what there is."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from cepheid.errors import InputError
from cepheid.spark import Listener, Metrics
from cepheid.spark.metrics import COUNTERS, GAUGES, TYPE

ROOT = Path(__file__).resolve().parents[2]
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
QUIET = {
    "query": "pairs",
    "id": "0f15693c-3db8-4238-b71e-39998d7b531b",
    "batch": 0,
    "time": NOON,
    "events": 10,
    "relevant": 7,
    "late": 0,
    "matches": 2,
    "null_keys": 0,
    "null_times": 0,
    "bad_times": 0,
    "ahead": 0,
    "waiting": 3,
    "keys": 2,
    "state_bytes": 1000,
    "watermark": NOON,
    "greatest": NOON + dt.timedelta(seconds=1.5),
    "seconds": 0.5,
    "behind": False,
    "known": None,
    "partitions": None,
}


def values(text):
    """Each sample of a text by its name and labels; every line is a sample or says what one is."""
    samples = {}
    for row in text.splitlines():
        if row.startswith("#"):
            assert re.fullmatch(r"# (HELP cepheid_\w+ .+|TYPE cepheid_\w+ (counter|gauge))", row)
            continue
        found = re.fullmatch(r'(cepheid_\w+\{(?:\w+="(?:[^"\\]|\\.)*",?)+\}) (\S+)', row)
        assert found, row
        assert found[1] not in samples
        samples[found[1]] = float(found[2])
    return samples


def test_counts_add_up_and_what_is_not_said_stays():
    metrics = Metrics()
    metrics(QUIET)
    metrics(
        QUIET | {"late": 1, "ahead": 4, "waiting": None, "keys": None, "state_bytes": None, "watermark": NOON + dt.timedelta(seconds=9)}
    )
    found = values(metrics.text())
    assert found['cepheid_batches_total{query="pairs"}'] == 2
    assert found['cepheid_batch_seconds_total{query="pairs"}'] == 1
    assert found['cepheid_events_total{query="pairs"}'] == 20
    assert found['cepheid_relevant_events_total{query="pairs"}'] == 14
    assert found['cepheid_late_events_total{query="pairs"}'] == 1
    assert found['cepheid_matches_total{query="pairs"}'] == 4
    assert found['cepheid_dropped_events_total{query="pairs",reason="ahead"}'] == 4
    assert found['cepheid_dropped_events_total{query="pairs",reason="null_key"}'] == 0
    assert [found[f'cepheid_{name}{{query="pairs"}}'] for name in ("waiting_events", "keys", "state_bytes")] == [3, 2, 1000]
    assert found['cepheid_known_timestamp_seconds{query="pairs"}'] == NOON.timestamp() + 9
    assert found['cepheid_greatest_timestamp_seconds{query="pairs"}'] == NOON.timestamp() + 1.5
    assert found['cepheid_source_behind{query="pairs"}'] == 0
    assert len(found) == len(COUNTERS) + 3 + len(GAUGES)


def test_each_query_has_its_own_and_any_name():
    metrics = Metrics()
    for name in ("a", 'of "b"\\\n'):
        metrics(QUIET | {"query": name, "watermark": None})
    found = values(metrics.text())
    assert found['cepheid_matches_total{query="a"}'] == 2
    assert found['cepheid_matches_total{query="of \\"b\\"\\\\\\n"}'] == 2
    assert not any("known" in name for name in found), "there is no watermark yet"


def test_partitions_say_what_is_known():
    """Where no bucket was visited nobody says so, and the watermark is ahead of the slowest partition."""
    metrics = Metrics()
    metrics(QUIET | {"partitions": 2, "known": NOON - dt.timedelta(seconds=60)})
    metrics(QUIET)
    assert values(metrics.text())['cepheid_known_timestamp_seconds{query="pairs"}'] == NOON.timestamp() - 60


def test_a_file_that_is_replaced_as_a_whole(tmp_path):
    file = tmp_path / "cepheid.prom"
    metrics = Metrics(file=file)
    for _ in range(2):
        metrics(QUIET)
        assert file.read_text() == metrics.text()
    assert [path.name for path in tmp_path.iterdir()] == ["cepheid.prom"]


def test_at_a_port():
    metrics = Metrics()
    metrics(QUIET)
    server = metrics.serve(0)
    try:
        with urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            assert answer.headers["Content-Type"] == TYPE
            assert answer.read().decode() == metrics.text()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://127.0.0.1:{server.server_port}/other")
        with pytest.raises(InputError, match=f"the metrics cannot be at 127.0.0.1:{server.server_port}: "):
            metrics.serve(server.server_port)
    finally:
        server.shutdown()
        server.server_close()


def test_a_listener_goes_on_where_the_file_cannot_be_written(tmp_path, caplog):
    listener = Listener(to=Metrics(file=tmp_path / "missing" / "cepheid.prom"))
    listener.onQueryProgress(type("Event", (), {"progress": {"observedMetrics": {"cepheid": {}}, "id": "1", "batchId": 0}})())
    assert len(listener.recent) == 1
    assert "the progress of a micro-batch cannot be reported" in caplog.text


def test_the_alerts_ask_for_what_there_is():
    alerts = (ROOT / "examples/alerts.yml").read_text()
    asked = set(re.findall(r"cepheid_\w+", alerts))
    assert len(asked) >= 6
    assert asked <= {*COUNTERS, *GAUGES}
    assert alerts in (ROOT / "docs/operations.md").read_text(), "the page shows the example"


def test_the_page_has_all_of_them():
    page = (ROOT / "docs/streaming.md").read_text()
    assert set(re.findall(r"`(cepheid_\w+)`", page)) == {*COUNTERS, *GAUGES}
