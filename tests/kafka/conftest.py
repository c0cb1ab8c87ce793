"""A Kafka broker of its own and a session of Spark with the connector, for `make kafka-test`, which brings the jars of both."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

JARS = os.environ.get("CEPHEID_KAFKA")
"""The folder with the jars, in `broker` and `connector`."""

ROLES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/logs
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def pytest_collection_modifyitems(items):
    if JARS is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="needs a broker: make kafka-test"))


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextlib.contextmanager
def broker(folder):
    """A broker, while what is inside runs: its address. folder: where it keeps its files."""
    port, controller = free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(ROLES.format(port=port, controller=controller, folder=folder))
    java = ["java", "-Xmx512m", "-cp", f"{JARS}/broker/*"]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", properties, "--standalone"],
        check=True,
        capture_output=True,
    )
    with (folder / "broker.log").open("w") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", properties], stdout=log, stderr=log)
        try:
            wait_for(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """The address of a broker."""
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


def wait_for(port, broker, seconds=120):
    """Until something listens there."""
    end = time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert broker.poll() is None, "the broker has ended"
        assert time.monotonic() < end, "the broker does not answer"
        time.sleep(0.2)


def session(**more):
    """A session of Spark with the connector; more: settings."""
    from cepheid.spark import local_session

    jars = ",".join(map(str, sorted(Path(str(JARS), "connector").glob("*.jar"))))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.jars": jars, "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2", **more}
    return local_session(cores=2, memory="2g", app_name="cepheid-kafka", settings=settings)


@pytest.fixture(scope="session")
def spark():
    made = session()
    yield made
    made.stop()
