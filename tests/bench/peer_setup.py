"""Sets up the sinks that ours is compared with, each below .services, from its registry.

Nothing of them is a dependency of the project. Which registry: what pip and Maven are configured
for.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.kafka import kafka_jars
from tests.support.paths import ROOT

DEBEZIUM_VERSION, CONNECT_VERSION = "3.6.0.Final", "4.4.0"
QUIXSTREAMS_VERSION = "3.28.1"
INSTALL_TIMEOUT_S = 600
SERVICES = ROOT / ".services"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>cua.train</groupId><artifactId>debezium-for-the-bench</artifactId><version>1</version>
<repositories><repository><id>confluent</id><url>file:///dev/null</url>
<releases><enabled>false</enabled></releases><snapshots><enabled>false</enabled></snapshots>
</repository></repositories><dependencies>
<dependency><groupId>io.debezium</groupId><artifactId>debezium-connector-jdbc</artifactId>
<version>{DEBEZIUM_VERSION}</version><exclusions><exclusion><groupId>org.hibernate</groupId>
<artifactId>hibernate-agroal</artifactId></exclusion></exclusions></dependency>
<dependency><groupId>org.hibernate.orm</groupId><artifactId>hibernate-agroal</artifactId>
<version>7.2.19.Final</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId>
<version>{CONNECT_VERSION}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>connect-json</artifactId>
<version>{CONNECT_VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId>
<version>1.7.36</version></dependency>
</dependencies></project>
"""
"""Debezium's parent names a repository that has none of these. Its release of Hibernate's pool is
not on Maven Central; a later one of the same series is."""


class PeerError(Exception):
    """A peer could not be set up or did not do its work; the message says what to do."""


def kafka_is_there() -> None:
    """Kafka's jars, downloaded on first use. PeerError."""
    if shutil.which("java") is None:
        message = "Kafka and Debezium need Java: install a runtime, version 17 or newer"
        raise PeerError(message)
    try:
        kafka_jars()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        message = f"Kafka could not be downloaded: install and configure Maven (mvn): {error}"
        raise PeerError(message) from None


def debezium_jars() -> Path:
    """The folder with Kafka Connect's and Debezium's jars: 80 MB, downloaded once."""
    folder = _debezium_folder()
    if not _is_complete(folder):
        with tempfile.TemporaryDirectory(dir=_services()) as work:
            (Path(work) / "pom.xml").write_text(POM)
            command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
            _install("Debezium's JDBC sink", command, Path(work))
            shutil.rmtree(folder, ignore_errors=True)
            (Path(work) / "jars").rename(folder)
        _complete(folder)
    return folder


def quixstreams_python() -> Path:
    """Python of an environment with quixstreams."""
    folder = _services() / f"quixstreams-{QUIXSTREAMS_VERSION}"
    python = folder / "bin" / "python"
    if not _is_complete(folder):
        uv = str(Path(sys.executable).with_name("uv"))
        make = [uv, "venv", "--quiet", "--clear", "-p", sys.executable, str(folder)]
        package = f"quixstreams[postgresql]=={QUIXSTREAMS_VERSION}"
        install = [uv, "pip", "install", "--quiet", "-p", str(python), package]
        for command in (make, install):
            _install("quixstreams", command, ROOT)
        _complete(folder)
    return python


def _services() -> Path:
    SERVICES.mkdir(exist_ok=True)
    return SERVICES


def _debezium_folder() -> Path:
    return _services() / f"debezium-{DEBEZIUM_VERSION}-connect-{CONNECT_VERSION}"


def _is_complete(folder: Path) -> bool:
    return (folder / ".installed").is_file()


def _complete(folder: Path) -> None:
    (folder / ".installed").touch()


def _install(what: str, command: Sequence[str], folder: Path) -> None:
    """PeerError with the last lines of its output."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_TIMEOUT_S,
        )
    except FileNotFoundError:
        message = f"{what} is installed by {command[0]}, which is not there"
        raise PeerError(message) from None
    except subprocess.TimeoutExpired:
        message = f"{what}: {command[0]} took more than {INSTALL_TIMEOUT_S} s"
        raise PeerError(message) from None
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-4:])
        message = (
            f"{what} could not be installed: is a package index configured and reachable?\n{said}"
        )
        raise PeerError(message)
