"""`tail --follow` does not wait in silence while Kafka is away."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import IO
from uuid import uuid4

import pytest

from producer.emit import Emitter
from schemas.environment import EnvironmentRequested
from schemas.installation import read_installation
from tests.support.kafka import KafkaService

pytestmark = [
    pytest.mark.services,
    pytest.mark.slow,
]

DEADLINE_S = 60


def emit_one() -> None:
    with Emitter.open(read_installation(os.environ)) as emitter:
        emitter.log.connect(30)
        stream = emitter.stream(f"environment/{uuid4()}")
        stream.emit(EnvironmentRequested(env_type="a", box_type="b", config={}))
        emitter.flush(30)
        emitter.close(30)


def put_lines(stream: IO[str], lines: "Queue[str]") -> None:
    """Every line until the stream ends; then it is closed."""
    with stream:
        for line in stream:
            lines.put(line)


def test_an_outage_of_kafka_is_said_once_and_its_end_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with KafkaService() as service:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", service.bootstrap_servers)
        emit_one()
        words = [sys.executable, "-m", "consumers", "tail", "-f", "--offset", "start"]
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
        )
        said: Queue[str] = Queue()
        printed: Queue[str] = Queue()
        threads = []
        for stream, lines in ((process.stderr, said), (process.stdout, printed)):
            assert stream is not None
            threads.append(threading.Thread(target=put_lines, args=(stream, lines)))
            threads[-1].start()
        try:
            assert "environment.requested" in printed.get(timeout=DEADLINE_S)
            service.kill()
            assert "Still waiting" in said.get(timeout=DEADLINE_S)
            service.start()
            emit_one()
            assert "environment.requested" in printed.get(timeout=DEADLINE_S)
            assert said.get(timeout=DEADLINE_S) == "warning: the log answers again\n"
            assert said.empty()
        finally:
            process.kill()
            process.wait()
            for thread in threads:
                thread.join()
