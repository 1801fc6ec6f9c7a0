"""A process of `make chaos` notices what another one did to the training that it emits."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.chaos.acknowledged import Reports
from tests.chaos.emitting import AGAIN, DONE
from tests.chaos.installation import Stage
from tests.chaos.processes import Life, start

SEED = 1
EMITTER = 0
EVENTS = 300
"""Fewer than a training has: a process ends after its first."""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, None, "postgresql://nobody@127.0.0.1:1/none")
    for folder in (made.home, made.reports, made.logs):
        folder.mkdir()
    return made


@pytest.fixture
def started() -> Iterator[list[Life]]:
    lives: list[Life] = []
    yield lives
    for life in lives:
        with suppress(ProcessLookupError):
            life.process.kill()
        life.process.wait()


def emit(stage: Stage, life: int, limit: int) -> Life:
    """A process that may go on until it has `limit` events behind it."""
    (stage.folder / f"gate-{life}").write_text(str(limit))
    arguments = ["-m", "tests.chaos.emitting", "--seed", str(SEED), "--emitter", str(EMITTER)]
    arguments += ["--events", str(EVENTS), "--gate", str(stage.folder / f"gate-{life}")]
    arguments += ["--report", str(stage.reports / f"{EMITTER}-{life}.jsonl")]
    # Never: it has to notice by what the log has.
    arguments += ["--watch-every", "3600"]
    return start(stage, f"emitter-{life}", arguments)


def wait_until(stage: Stage, life: int, at: int) -> None:
    """Until the process has acknowledged so many events."""
    deadline = time.monotonic() + 60
    only = stage.folder / f"only-{life}"
    only.mkdir(exist_ok=True)
    source = stage.reports / f"{EMITTER}-{life}.jsonl"
    while time.monotonic() < deadline:
        if source.exists():
            (only / source.name).write_bytes(source.read_bytes())
            if Reports(only).read() >= at:
                return
        time.sleep(0.05)
    pytest.fail(f"process {life} did not reach {at} events")


def test_a_process_whose_streams_another_one_continued_asks_to_be_started_again(
    stage: Stage, started: list[Life]
) -> None:
    started.append(emit(stage, 1, 250))
    wait_until(stage, 1, 300)
    # Reads back what the first one emitted, opens its streams in a later epoch, and dies.
    started.append(emit(stage, 2, 350))
    wait_until(stage, 2, 400)
    started[1].process.kill()
    started[1].process.wait()

    (stage.folder / "gate-1").write_text("1000000")
    assert started[0].process.wait(60) == AGAIN, started[0].last_words()

    started.append(emit(stage, 3, 1_000_000))
    assert started[2].process.wait(60) == DONE, started[2].last_words()
