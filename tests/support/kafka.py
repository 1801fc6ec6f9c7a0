"""A real Apache Kafka for tests: one KRaft node from its jars, without Docker.

It can be stopped, killed and restarted on the same port and data. What all of them share is made
once, into CUA_TEST_CACHE: Maven downloads the jars, and a first broker leaves its formatted folder
and an archive of the classes that it loaded.
"""

import base64
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from filelock import FileLock
from kafka.net.inet import KafkaNetSocket

from tests.support.ports import free_port


class KafkaSocket(socket.socket):
    """A socket of kafka-python, by whose name the warning that it was not closed is ignored."""


KafkaNetSocket.socket = lambda _self, *arguments: KafkaSocket(*arguments)

KAFKA_VERSION = "4.1.1"
START_TIMEOUT_S = 60.0
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A broker of the tests lives for seconds, in which the optimising compiler earns nothing."""
ARCHIVE = "classes.jsa"
"""Spares a broker's start most of its class loading. A JVM of another version ignores it."""

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>cua.train</groupId><artifactId>kafka-for-tests</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
"""

PROPERTIES = """process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
default.replication.factor=1
min.insync.replicas=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=5000
broker.heartbeat.interval.ms=1000
auto.create.topics.enable=true
num.partitions=1
"""
# auto.create with one partition is a broker's default; our topics must be right all the same.
# A broker that was killed may come back once its last session is over: after 9 s by default.


def _cache() -> Path:
    folder = Path(os.environ.get("CUA_TEST_CACHE") or Path.home() / ".cache" / "cua-train-tests")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kafka_jars() -> Path:
    """The folder of Kafka's jars; downloaded by Maven on first use (40 s, 43 MB)."""
    jars = _cache() / f"kafka-{KAFKA_VERSION}"
    with FileLock(jars.with_name(f"{jars.name}.lock")):
        if not jars.is_dir():
            with tempfile.TemporaryDirectory(dir=jars.parent) as work:
                (Path(work) / "pom.xml").write_text(POM)
                subprocess.run(
                    ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"],
                    cwd=work,
                    check=True,
                    stdin=subprocess.DEVNULL,
                )
                # Atomic: an interrupted download must not look complete.
                (Path(work) / "jars").rename(jars)
    return jars


def _first_broker() -> Path:
    """The folder of `data`, formatted and not used, and `classes.jsa`; made on first use (8 s)."""
    jars = kafka_jars()
    made = jars.with_name(f"{jars.name}-first")
    with FileLock(made.with_name(f"{made.name}.lock")):
        if not made.is_dir():
            with tempfile.TemporaryDirectory(dir=made.parent) as work:
                folder = Path(work) / made.name
                folder.mkdir()
                port, data = free_port(), Path(work) / "data"
                properties = Path(work) / "server.properties"
                properties.write_text(
                    PROPERTIES.format(port=port, controller_port=free_port(), data=data)
                )
                java = ["java", *JVM, "-cp", f"{jars}/*"]
                tool = ("kafka.tools.StorageTool", "format", "-t", "c" * 22, "-c", properties)
                subprocess.run([*java, *tool], check=True, capture_output=True)
                shutil.copytree(data, folder / "data")
                java[1:1] = [f"-XX:ArchiveClassesAtExit={folder / ARCHIVE}"]
                broker = _start([*java, "kafka.Kafka", str(properties)], Path(work))
                try:
                    _wait_until_open(broker, port, Path(work))
                finally:
                    broker.terminate()
                    broker.wait(START_TIMEOUT_S)
                folder.rename(made)
    return made


def _start(command: Sequence[str], folder: Path) -> "subprocess.Popen[bytes]":
    """A broker whose output is in `folder`."""
    with (folder / "kafka.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
        )


def _wait_until_open(broker: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    """Until it takes connections. RuntimeError."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and broker.poll() is None:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=1),
        ):
            return
        time.sleep(0.1)
    tail = (folder / "kafka.log").read_text(errors="replace")[-2000:]
    message = f"Kafka did not start within {START_TIMEOUT_S} s:\n{tail}"
    raise RuntimeError(message)


class KafkaService:
    """One broker in a temporary folder, as a context manager."""

    def __init__(self, properties: str = PROPERTIES) -> None:
        """`properties`: with {port}, {controller_port} and {data} to be filled in."""
        first = _first_broker()
        self._folder = Path(tempfile.mkdtemp(prefix="cua-kafka-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        """The same after a restart."""
        data = self._folder / "data"
        self._properties = self._folder / "server.properties"
        self._properties.write_text(
            properties.format(port=self.port, controller_port=free_port(), data=data)
        )
        shutil.copytree(first / "data", data)
        # Unique, so that no two services' logs have one id.
        cluster_id = base64.urlsafe_b64encode(uuid4().bytes).decode()[:22]
        meta = data / "meta.properties"
        meta.write_text(re.sub("(?m)^cluster.id=.*$", f"cluster.id={cluster_id}", meta.read_text()))
        java = ("java", "-Xmx512m", f"-XX:SharedArchiveFile={first / ARCHIVE}", *JVM)
        self._command = [*java, "-cp", f"{kafka_jars()}/*", "kafka.Kafka", str(self._properties)]

    @property
    def bootstrap_servers(self) -> str:
        """For KAFKA_BOOTSTRAP_SERVERS."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start on the same data; returns once it takes connections."""
        self._process = _start(self._command, self._folder)
        _wait_until_open(self._process, self.port, self._folder)

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM."""
        self._end(signal.SIGTERM)

    def send_signal(self, number: signal.Signals) -> None:
        """SIGSTOP or SIGCONT; to nobody while it does not run."""
        if self._process is not None:
            self._process.send_signal(number)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(30)
            self._process = None

    def close(self) -> None:
        """Kill the process and remove the folder. Idempotent."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "KafkaService":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
