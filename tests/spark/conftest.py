"""One Spark session for all tests: classic, or a Connect server of this process where only tests marked `connect` run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import arrow_tables
import pytest

from cepheid.spark import versions
from cepheid.spark.session import SMALL_MACHINE, local_session, prepare_environment

# Spark 4.1 has given it a package.
CHECKPOINTING = "org.apache.spark.sql.execution.streaming" + (".checkpointing" if versions.arrow_udf else "")
TEST_SETTINGS = {
    # They are over before code that is compiled to the last pays. But what is compiled must fit: Java's 48 MB were full after a few minutes.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
    # Small jobs: the plans and their checks cost more than the rows, and so does the code that is generated for each plan.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The usual one asks `readlink`, a process, about each file of a checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "700",
    # Before Spark 4.2: as replay and kafka_source set it (docs/sources.md).
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
}


@pytest.fixture(autouse=True)
def forced_pages(monkeypatch):
    """With CEPHEID_TEST_PAGES=n all streams keep their keys in pages of n keys, whatever these cost."""
    if "CEPHEID_TEST_PAGES" in os.environ:
        monkeypatch.setattr("cepheid.spark.tasks.unit.FORCED", int(os.environ["CEPHEID_TEST_PAGES"]))


@pytest.fixture(scope="session")
def spark():
    if not versions.STREAMS:
        arrow_tables.lend()
    session = local_session(cores=2, memory="2g", app_name="cepheid-tests", settings=TEST_SETTINGS)
    yield session
    session.stop()


@pytest.fixture
def generated(spark):
    """The session, for many rows: with the code that Spark generates."""
    settings = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings:
        spark.conf.set(name, TEST_SETTINGS[name])


@pytest.fixture(scope="session")
def connect():
    """A session of Spark Connect, whose server runs in this process' JVM; it cannot live beside a classic session."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    prepare_environment()
    settings = {**SMALL_MACHINE, **TEST_SETTINGS, "spark.connect.grpc.binding.address": "127.0.0.1"}
    # Spark's own switch for a server on any free port: two test runs on one machine do not meet.
    os.environ["SPARK_TESTING"] = "1"
    # The server takes what is not of SQL on its command line only.
    fixed = [f"--conf {shlex.quote(f'{name}={value}')}" for name, value in settings.items() if not name.startswith("spark.sql.")]
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*fixed, "pyspark-shell"])
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote("local[2]").getOrCreate()
    for name, value in settings.items():
        if name.startswith("spark.sql."):
            session.conf.set(name, value)
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `connect` are run by a process of their own (`-m connect`); elsewhere they are deselected. What needs no session is marked `tasks`."""
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue
        if {"spark", "connect"} & set(item.fixturenames):
            # Spark's Python side now and then leaves a socket that the JVM has closed to the garbage collector, which may run in any test.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
        else:
            item.add_marker("tasks")
    if "connect" in (config.option.markexpr or ""):
        return
    apart = [item for item in items if item.get_closest_marker("connect")]
    if apart:
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if not item.get_closest_marker("connect")]
