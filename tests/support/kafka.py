"""A real Apache Kafka for tests: one KRaft node from its jars, without Docker.

It can be stopped, killed and restarted on the same port and data. Maven downloads the jars once,
into CUA_TEST_CACHE.
"""

import base64
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from kafka.net.inet import KafkaNetSocket

from tests.support.ports import free_port


class KafkaSocket(socket.socket):
    """A socket of kafka-python, by whose name the warning that it was not closed is ignored."""


KafkaNetSocket.socket = lambda _self, *arguments: KafkaSocket(*arguments)

KAFKA_VERSION = "4.1.1"
START_TIMEOUT_S = 60.0
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A broker of the tests lives for seconds, in which the optimising compiler earns nothing."""

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
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
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


def kafka_jars() -> Path:
    """The folder of Kafka's jars; downloaded by Maven on first use (40 s, 43 MB)."""
    cache = Path(os.environ.get("CUA_TEST_CACHE") or Path.home() / ".cache" / "cua-train-tests")
    jars = cache / f"kafka-{KAFKA_VERSION}"
    if jars.is_dir():
        return jars
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        (Path(work) / "pom.xml").write_text(POM)
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"],
            cwd=work,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        # Atomic: an interrupted download must not look complete. Another process may be first.
        with contextlib.suppress(OSError):
            (Path(work) / "jars").rename(jars)
    return jars


class KafkaService:
    """One broker in a temporary folder, as a context manager."""

    def __init__(self, properties: str = PROPERTIES) -> None:
        """`properties`: with {port}, {controller_port} and {data} to be filled in."""
        self._folder = Path(tempfile.mkdtemp(prefix="cua-kafka-"))
        self._classpath = f"{kafka_jars()}/*"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        """The same after a restart."""
        filled = properties.format(
            port=self.port, controller_port=free_port(), data=self._folder / "data"
        )
        self._properties = self._folder / "server.properties"
        self._properties.write_text(filled)
        has_voters = "controller.quorum.voters" in filled
        # Unique, so that no two services' logs have one id; a leading dash would be an option.
        cluster_id = "c" + base64.urlsafe_b64encode(uuid4().bytes).decode()[1:22]
        self._java(
            "kafka.tools.StorageTool",
            "format",
            *([] if has_voters else ["--standalone"]),
            "-t",
            cluster_id,
            "-c",
            str(self._properties),
        )

    @property
    def bootstrap_servers(self) -> str:
        """For KAFKA_BOOTSTRAP_SERVERS."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start on the same data; returns once it takes connections."""
        with (self._folder / "kafka.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "java",
                    "-Xmx512m",
                    *JVM,
                    "-cp",
                    self._classpath,
                    "kafka.Kafka",
                    str(self._properties),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), timeout=1),
            ):
                return
            time.sleep(0.1)
        tail = (self._folder / "kafka.log").read_text(errors="replace")[-2000:]
        message = f"Kafka did not start within {START_TIMEOUT_S} s:\n{tail}"
        raise RuntimeError(message)

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

    def _java(self, *arguments: str) -> None:
        done = subprocess.run(
            ["java", *JVM, "-cp", self._classpath, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self._folder,
            check=False,
        )
        if done.returncode:
            message = f"{arguments[0]} failed: {done.stderr.decode(errors='replace')[-2000:]}"
            raise RuntimeError(message)

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
