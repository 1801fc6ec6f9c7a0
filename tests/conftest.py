"""Fixtures that every test may ask for.

Servers, and an environment in which nothing of the developer's own is met.
"""

import logging
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

from tests.support.chromium import chromium
from tests.support.desktop import desktop_programs
from tests.support.kafka import KafkaService
from tests.support.mariadb import mariadb
from tests.support.postgres import database_url, migrated_template, migrated_url, postgres
from tests.support.profiles import LONG, is_long

__all__ = [
    "chromium",
    "database_url",
    "desktop_programs",
    "mariadb",
    "migrated_template",
    "migrated_url",
    "postgres",
]

# Commands buffer their output in the tests as they do for users: it hides nothing that they meet
# when they end.
os.environ.pop("PYTHONUNBUFFERED", None)

# A busy machine is no defect of what is tested. In CI Hypothesis brings more of its own (the same
# examples each time), which stays.
settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("unhurried"), max_examples=LONG)
settings.load_profile("long" if is_long() else "unhurried")

pytest_plugins = ["tests.support.internal_errors", "tests.support.running_tests"]

CONFIGURATION = ("DATABASE_URL", "POSTGRES_", "KAFKA_", "CUA_", "PG")
KEPT = ("CUA_TEST_",)
OURS = ("producer", "consumers", "schemas")
NEEDED_FOR_KAFKA = {
    "java": "a Java runtime, 17 or newer (Debian: default-jre-headless)",
    "mvn": "Maven (Debian: maven)",
}


MARKER_OF_FIXTURE = {
    "postgres": "services",
    "kafka": "services",
    "mariadb": "services",
    "policy_folder": "slow",
}


SLOW_FILES = frozenset(
    Path(__file__).parents[1] / name
    for name in Path(__file__).with_name("slow_files.txt").read_text().split()
)
"""Files most of whose tests take a second and more, or many seconds together: trainings in other
processes, kills, many policies. `make test-fast` leaves them out."""
MEMORY_OF_WORKER = 3 << 30
"""Bytes: torch twice, a PostgreSQL, a Kafka, and what a test starts beside them."""
MOST_WORKERS = 8


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Of `make test`: two for a core, as tests wait more than they compute."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    room = int(psutil.virtual_memory().available) // MEMORY_OF_WORKER
    return max(1, min(2 * cores, room, MOST_WORKERS))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark a test by the fixtures that it requests, directly or through others, and by its file."""
    for item in items:
        if item.path in SLOW_FILES:
            item.add_marker("slow")
        if isinstance(item, pytest.Function):
            for fixture in MARKER_OF_FIXTURE.keys() & set(item.fixturenames):
                item.add_marker(MARKER_OF_FIXTURE[fixture])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seed every global generator before a test and its fixtures, so that no test draws unseeded.

    tests/test_randomness.py refuses generators of a test's own without a seed.
    """
    random.seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _own_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test has its own CUA_HOME, and no configured log or database."""
    for name in tuple(os.environ):
        if name.startswith(CONFIGURATION) and not name.startswith(KEPT):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "cua-home"))


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """What a command line configures for its process does not reach the next test."""
    root = logging.getLogger()
    handlers, ours = list(root.handlers), [logging.getLogger(name) for name in OURS]
    yield
    root.handlers[:] = handlers
    for logger in ours:
        logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaService]:
    """The session's broker; topics of other tests lie in it too (choose a prefix).

    A test that kills a broker makes its own.
    """
    missing = [what for tool, what in NEEDED_FOR_KAFKA.items() if shutil.which(tool) is None]
    if missing:
        reason = f"Apache Kafka cannot be started: install {' and '.join(missing)}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with KafkaService() as service:
        yield service
