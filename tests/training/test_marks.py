"""Streams whose owner was killed are ended by whoever comes next; those of the living are left alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from producer.config import read_config
from producer.emit import Emitter
from producer.training.marks import end_abandoned, mark
from producer.training.opening import recipe
from schemas import ids
from schemas.catalogue import stream
from schemas.event import Fact
from schemas.installation import Installation
from schemas.training import TrainingCancelled, TrainingCreated

ReadLog = Callable[[], list[dict[str, Any]]]
SUBJECT = stream("training", ids.training_id("marked"))
CREATED = TrainingCreated(run_name="marked", kind="sft", recipe=recipe(read_config({}), Path()), total_steps=1, config={})
OWNER = """
import sys, time
from pathlib import Path
from producer.emit import Emitter
from producer.training.marks import mark
from tests.training.test_marks import CREATED, SUBJECT
from schemas.catalogue import stream_owner
from schemas.event import Fact
with Emitter.open() as emitter, mark(Path(sys.argv[1]), SUBJECT, emitter):
    emitter.emit(Fact(SUBJECT, CREATED, stream_owner(SUBJECT)))
    emitter.flush()
    print("marked", flush=True)
    time.sleep(60)
"""


def end() -> TrainingCancelled:
    return TrainingCancelled(status_message="its process ended before it did", ended_at=datetime(2026, 1, 1, tzinfo=UTC))


def own_statuses(events: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(event["type"], event["epoch"], event["sequence"]) for event in events if event["subject"] == SUBJECT]


def test_the_stream_of_a_living_owner_is_left_and_that_of_a_killed_one_ended_once(
    installation: Installation, read_log: ReadLog, tmp_path: Path
) -> None:
    environ = {**os.environ, "CUA_HOME": str(installation.home)}
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path / "marks")], env=environ, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"marked\n"
        with Emitter.open(installation) as emitter:
            assert end_abandoned(tmp_path / "marks", emitter, end) == 0
        owner.send_signal(signal.SIGKILL)
    assert own_statuses(read_log()) == [("cua.training.created", 1, 1)]
    for num_ended in (1, 0):
        with Emitter.open(installation) as emitter:
            assert end_abandoned(tmp_path / "marks", emitter, end) == num_ended
    assert own_statuses(read_log()) == [("cua.training.created", 1, 1), ("cua.training.cancelled", 2, 1)]
    assert list((tmp_path / "marks").iterdir()) == []


def test_an_owner_that_ends_in_order_leaves_no_mark(installation: Installation, tmp_path: Path) -> None:
    with Emitter.open(installation) as emitter:
        with mark(tmp_path / "marks", SUBJECT, emitter):
            emitter.emit(Fact(SUBJECT, CREATED, ids.training_id("marked")))
            assert [path.suffix for path in (tmp_path / "marks").iterdir()] == [".open"]
        assert list((tmp_path / "marks").iterdir()) == []
