"""A scrape and /healthz beside a server that takes connections and answers nothing."""

import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest

from consumers.database.silence import SilenceWatch
from consumers.metrics.pages import MetricsPages
from consumers.metrics.probe import FOR_POSITIONS, WAIT_S, Probe
from consumers.projection.activity import Activity
from schemas.installation import read_installation
from tests.consumers.metrics.test_metrics import samples
from tests.reference_fold.histories import Shape
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events, write_local_log

SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A listener whose backlog takes connections; nobody accepts them."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


def scrape(probe: Probe, limit_s: float = WAIT_S) -> dict[str, float]:
    """`limit_s`: of the probe. A server that is silent would be waited for 10 s at least."""
    began = time.monotonic()
    found = samples(MetricsPages(probe, Activity()).answer("/metrics").content.decode())
    assert time.monotonic() - began < limit_s + 4
    return found


def test_a_silent_database_does_not_make_the_log_look_away(silent_port: int) -> None:
    installation = read_installation(os.environ)
    events = logged_events("a", shape=SMALL)
    write_local_log(installation.local_log_path, events)
    limit_s = 5.5
    probe = Probe(installation, lambda: f"postgresql://me@127.0.0.1:{silent_port}/runs", limit_s)
    for _ in range(2):  # the second while the first look at the database is still under way
        found = scrape(probe, limit_s)
        assert (found["cua_database_up"], found["cua_log_up"]) == (0, 1)
        assert found["cua_log_end_offset"] == len(events)
        assert "cua_lag_events" not in found


@pytest.mark.services
def test_positions_that_come_late_give_neither_a_lag_nor_records_that_are_gone(
    migrated_url: str,
) -> None:
    """Measured from the beginning, all that retention has ever deleted would be an alert."""
    installation = read_installation(os.environ)
    events = logged_events("a", shape=SMALL)
    write_local_log(installation.local_log_path, events)
    limit_s = 8.0
    delays_s = [FOR_POSITIONS * limit_s + 0.5]

    def slow_url() -> str:
        time.sleep(delays_s.pop() if delays_s else 0)
        return migrated_url

    probe = Probe(installation, slow_url, limit_s)
    found = scrape(probe, limit_s)
    probe.close()
    assert (found["cua_database_up"], found["cua_log_up"]) == (1, 1)
    assert found["cua_log_end_offset"] == len(events)
    assert not {"cua_lag_events", "cua_lag_seconds", "cua_gone_events"} & found.keys()


@pytest.mark.services
def test_a_silent_kafka_does_not_make_the_database_look_away(
    migrated_url: str, kafka: KafkaService
) -> None:
    settings = {"KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
    probe = Probe(read_installation({**os.environ, **settings}), lambda: migrated_url)
    found = scrape(probe)
    assert (found["cua_database_up"], found["cua_log_up"]) == (1, 1)
    kafka.send_signal(signal.SIGSTOP)
    try:
        found = scrape(probe)
    finally:
        kafka.send_signal(signal.SIGCONT)
    assert (found["cua_database_up"], found["cua_log_up"]) == (1, 0)
    assert found["cua_parked"] == 0
    assert "cua_log_end_offset" not in found
    probe.close()


def test_a_projector_that_waits_for_an_answer_is_failing_and_the_server_is_named(
    silent_port: int,
) -> None:
    now = [100.0]
    watch = SilenceWatch(clock=lambda: now[0])
    activity = Activity(lambda: now[0], watch.named)
    activity.worked(3, has_committed=True)
    assert watch.named() is None
    url = f"postgresql://me:secret@127.0.0.1:{silent_port}/runs"
    with watch.opening(url, lambda _: "postgresql://me:***@db/runs"):
        for _ in range(2):
            watch.look_at_all(is_asked_to_stop=False)
            now[0] += 31
    said = "PostgreSQL at postgresql://me:***@db/runs takes connections but does not answer"
    assert watch.named() == said
    assert activity.state == "failing"
    pages = MetricsPages(Probe(read_installation(os.environ), str), activity)
    answer = pages.answer("/healthz")
    assert (answer.code, answer.content.decode()) == (503, f"no progress for 62 s: {said}\n")
