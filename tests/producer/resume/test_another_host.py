"""A training on Kafka is continued in a home that has no offsets of it."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from producer.emit import Emitter
from producer.log.kafka import KafkaLog
from producer.resume.recorded_training import RecordedTraining, read_recorded_training
from producer.resume.resume_state import MANIFEST, find_states
from producer.training.run import run
from schemas import ids
from schemas.catalogue import TOPIC_NAMES
from schemas.event import StreamPoint
from schemas.installation import Installation
from tests.support.kafka import KafkaService
from tests.support.reading import installation_on
from tests.support.small_run import small

pytestmark = pytest.mark.services
TRAINING = str(ids.training_id("small"))
Points = dict[str, list[StreamPoint]]


def recorded(installation: Installation) -> RecordedTraining:
    with Emitter.open(installation) as emitter:
        return read_recorded_training(emitter, "small", installation.runs_dir / "small")


def points(found: RecordedTraining) -> Points:
    streams = found.history.streams
    return {key: [event.envelope.point for event in streams[key].events] for key in streams}


def everything(installation: Installation) -> Points:
    """Of the training's events in both topics, which are read whole."""
    found: Points = {}
    for event in events(installation):
        if event.get("trainingid") == TRAINING or event["subject"] == f"training/{TRAINING}":
            point = StreamPoint(event["epoch"], event["sequence"])
            found.setdefault(event["subject"], []).append(point)
    return found


def events(installation: Installation) -> Iterator[dict[str, Any]]:
    with closing(KafkaLog(installation)) as log:
        for name in TOPIC_NAMES:
            for _, value in log.read_topic(installation.topic_prefix + name, {}):
                yield json.loads(value)


def forget_offsets(installation: Installation) -> None:
    for state in find_states(installation.runs_dir / "small"):
        path = state.folder / MANIFEST
        manifest = json.loads(path.read_text())
        assert len(manifest["log_start"]) == len(manifest["since"]) == 24
        path.write_text(json.dumps({**manifest, "log_start": {}, "since": {}}))


def test_every_event_is_found_in_a_fresh_home_and_in_one_with_a_copy_of_the_state_alone(
    kafka: KafkaService, tmp_path: Path
) -> None:
    prefix = f"t{uuid4().hex}."
    own, fresh, copy = (
        installation_on(kafka.bootstrap_servers, tmp_path / name, prefix)
        for name in ("own", "fresh", "copy")
    )
    assert run(small(num_steps=1), installation=own).status == "completed"
    shutil.copytree(own.runs_dir / "small" / "state", copy.runs_dir / "small" / "state")
    forget_offsets(copy)
    expected = everything(own)
    kinds = {subject.partition("/")[0] for subject in expected}
    assert kinds >= {"training", "evaluation", "rollout", "environment"}

    assert points(recorded(fresh)) == expected
    assert points(recorded(copy)) == expected

    assert run(small(num_steps=2), installation=copy).steps == 2
    assert points(recorded(fresh)) == everything(own)
    assert run(small(num_steps=3), installation=own).steps == 3
