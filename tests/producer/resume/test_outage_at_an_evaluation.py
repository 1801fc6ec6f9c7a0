"""A continued training claims its evaluations; a Kafka that is away then is waited for."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from producer.emit import Emitter, ownership
from producer.emit.ownership import claim
from producer.errors import StopRequestedError, UnreachableError
from producer.log.stream_history import StreamHistory
from producer.training import evaluation
from producer.training.run import run
from schemas.environment import EnvironmentRequested
from tests.support.kafka import KafkaService
from tests.support.reading import installation_on
from tests.support.small_run import small, watching

pytestmark = [
    pytest.mark.services,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REQUESTED = EnvironmentRequested(env_type="a", box_type="b", config={})
SUBJECT = "environment/6f1d7f0a-6b0c-5d0e-9d57-3c1f0a2e4b61"


@pytest.fixture(autouse=True)
def _collect_sockets() -> Iterator[None]:
    # kafka-python leaves the socket of a connection that was refused to the garbage collector.
    yield
    gc.collect()


@pytest.fixture
def service() -> Iterator[KafkaService]:
    """A broker of its own, because it is stopped."""
    with KafkaService() as service:
        yield service


def test_a_continued_training_waits_at_its_evaluation_until_kafka_is_back(
    service: KafkaService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(ownership, "SILENT_WAIT_S", 0.2)
    claimed_with: list[float] = []
    real_claim = claim

    def noting(*args: object, timeout_s: float = 60.0, **options: object) -> object:
        claimed_with.append(timeout_s)
        return real_claim(*args, timeout_s=timeout_s, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(evaluation, "claim", noting)
    installation = installation_on(service.bootstrap_servers, tmp_path)
    run(small(num_steps=1, eval_every=1), installation=installation)

    def stop_kafka(line: str) -> None:
        if line.startswith("step 2/"):
            service.kill()
        # On a busy machine the training's own claim may be waited for too, before the outage.
        if line.startswith("waiting until the log confirms that evaluation/"):
            threading.Thread(target=service.start).start()

    with watching(stop_kafka):
        summary = run(small(num_steps=2, eval_every=1), installation=installation)
    assert (summary.status, summary.steps) == ("completed", 2)
    assert summary.success_after is not None
    assert claimed_with == [float("inf")]
    assert "waiting until the log confirms that evaluation/" in caplog.text


def test_a_stop_ends_the_wait(service: KafkaService, tmp_path: Path) -> None:
    stop = threading.Event()
    with Emitter.open(installation_on(service.bootstrap_servers, tmp_path), stop=stop) as emitter:
        emitter.log.connect(30)
        service.kill()
        with pytest.raises(UnreachableError, match=r"could not be sent to Kafka within 0\.3 s"):
            claim(emitter, REQUESTED, StreamHistory(SUBJECT), {}, timeout_s=0.3)
        threading.Timer(1.0, stop.set).start()
        with pytest.raises(StopRequestedError):
            claim(
                emitter,
                REQUESTED,
                StreamHistory(SUBJECT.replace("6f1d", "7f1d")),
                {},
                timeout_s=float("inf"),
                stop=stop,
            )
