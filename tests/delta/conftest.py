"""A session of Spark with Delta Lake, for `make delta-test`, which brings the jars."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

JARS = os.environ.get("CEPHEID_DELTA")
"""The folder with the jars."""


def pytest_collection_modifyitems(items):
    if JARS is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="needs Delta Lake: make delta-test"))


@pytest.fixture(scope="session")
def spark():
    from cepheid.spark import local_session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.jars": ",".join(map(str, sorted(Path(str(JARS)).glob("*.jar")))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
    }
    made = local_session(cores=2, memory="2g", app_name="cepheid-delta", settings=settings)
    yield made
    made.stop()
