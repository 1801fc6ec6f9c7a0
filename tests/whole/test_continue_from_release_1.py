"""What release 1 left on a disk is read and continued by today's code.

`tests/data/release_1/home` is a CUA_HOME that release 1 wrote (projection version 1, TurnTaken
version 1): a training killed with SIGKILL in its second step, after 2 of 3 rollouts, and a killed
evaluation by hand. `rollout.jsonl` is one rollout of a policy with tokens.
Never edit these files: a change that cannot read them breaks every existing installation.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from consumers.database.connection import connected
from consumers.errors import MismatchError
from consumers.log.local import LocalLogReader
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from consumers.status import read_status
from producer.config import read_config
from producer.log.stream_history import StreamHistory
from producer.resume.recorded_rollouts import recorded_plan, recorded_result
from producer.resume.resume_state import find_states
from producer.rollouts.plan import GroupPlan, RolloutPlan, RolloutSource, StatedTask
from producer.training.run import run
from schemas.installation import Installation, read_installation
from schemas.rollout import RolloutCreated, RolloutFinished
from schemas.wire import read_envelope
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.reference import fold
from tests.support.invariants import violations
from tests.support.reading import read_all
from tests.support.releases import RELEASE_1_ROLLOUT
from tests.support.scripted import WIFI, picture

TRAINING = "b06f1f91-4a61-5759-95ea-e0a480e6025f"
EVALUATION = "evaluation/1607a14a-ac04-589e-96af-99553bcee56a"
NUM_EVENTS = 231
STATED = StatedTask(WIFI, uuid4(), None)


@pytest.fixture
def installation(release_1_home: Path) -> Installation:
    return read_installation({"CUA_HOME": str(release_1_home)})


@contextlib.contextmanager
def open_reader(installation: Installation) -> Iterator[LocalLogReader]:
    reader = LocalLogReader(installation.local_log_path, topic_prefix=installation.topic_prefix)
    try:
        yield reader
    finally:
        reader.close()


def read_events(installation: Installation) -> list[dict[str, Any]]:
    return [
        {
            **json.loads(record.value),
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
        }
        for record in read_all(installation)
    ]


@pytest.mark.services
def test_its_log_gives_the_tables_of_the_reference_fold(
    installation: Installation, migrated_url: str
) -> None:
    with open_reader(installation) as reader:
        assert ProjectionLoop(reader, migrated_url).run_once().events == NUM_EVENTS
        status = read_status(reader, migrated_url)
    assert (status.held.parked, status.held.fenced, status.held.gaps) == (0, 0, 0)
    reference = fold((record.key, record.value) for record in read_all(installation))
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []


@pytest.mark.services
def test_its_tables_are_refused_with_the_command_that_rebuilds_them(
    installation: Installation, migrated_url: str
) -> None:
    with open_reader(installation) as reader:
        ProjectionLoop(reader, migrated_url).run_once()
        with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE cua.projection SET version = 1")
            connection.commit()

        assert read_status(reader, migrated_url).needs_rebuild
        with pytest.raises(MismatchError, match="cua-project rebuild"):
            ProjectionLoop(reader, migrated_url).run_once()
        with pytest.raises(MismatchError, match="cua-project rebuild"):
            verify(reader, migrated_url)

        rebuild(reader, migrated_url)
        assert not read_status(reader, migrated_url).needs_rebuild
        assert verify(reader, migrated_url).equal


def test_its_killed_training_continues_with_its_finished_rollouts(
    installation: Installation,
) -> None:
    before = [event for event in read_events(installation) if event.get("trainingid") == TRAINING]
    config = read_config({"training_name": "killed"})
    summary = run(config, installation=installation)

    assert (summary.status, summary.steps, summary.generation) == ("completed", 3, 0)
    after = [event for event in read_events(installation) if event.get("trainingid") == TRAINING]
    assert violations(after, num_steps=3, groups=2, group_size=2) == []
    finished = {e["subject"] for e in before if e["type"] == "cua.rollout.finished"}
    written = {e["subject"] for e in after[len(before) :]}
    assert finished.isdisjoint(written)
    cancelled = [e["subject"] for e in after if e["type"] == "cua.rollout.cancelled"]
    assert len(cancelled) == 1


def test_its_killed_evaluation_by_hand_is_cancelled_by_the_next_command(
    installation: Installation,
) -> None:
    (marker,) = installation.open_dir.glob("*.open")
    run(read_config({"training_name": "killed"}), installation=installation)
    last = [event for event in read_events(installation) if event["subject"] == EVALUATION][-1]
    assert (last["type"], last["epoch"]) == ("cua.evaluation.cancelled", 2)
    assert not marker.exists()


def test_its_states_are_found(release_1_home: Path) -> None:
    states = find_states(release_1_home / "runs" / "killed")
    assert [(state.manifest.generation, state.manifest.step) for state in states] == [
        (0, 1),
        (0, 0),
    ]
    (baseline,) = states[0].manifest.evaluations
    assert (baseline.label, baseline.episodes) == ("baseline", 2)


def test_its_turns_are_trained_on_with_the_images_of_their_whole_prompts() -> None:
    records = RELEASE_1_ROLLOUT.read_bytes().splitlines()
    envelopes = [read_envelope(record) for record in records]
    history = StreamHistory(envelopes[0].subject)
    for envelope in envelopes:
        history.read(envelope)
    created, finished = history.events[0].payload, history.events[-1].payload
    assert isinstance(created, RolloutCreated)
    assert isinstance(finished, RolloutFinished)

    result = recorded_result(plan_of(created), history, finished, lambda _ref: picture(1).png)

    assert result is not None
    stored = [json.loads(record)["data"].get("tokens") for record in records]
    whole_prompts = [len(tokens["prompt_images"]) for tokens in stored if tokens]
    assert whole_prompts == [1, 2, 3, 4, 5, 6]
    assert [turn.tokens.num_prompt_images for turn in result.turns] == whole_prompts
    screens = [turn.screenshot for turn in result.turns if turn.screenshot]
    assert len(screens) == len(result.turns)
    assert {(screen.width_px, screen.height_px) for screen in screens} == {
        (picture(1).width_px, picture(1).height_px)
    }
    assert sum(len(turn.tokens.completion_tokens) for turn in result.turns) == finished.num_tokens


def plan_of(created: RolloutCreated) -> RolloutPlan:
    source = RolloutSource("step", created.source_id, "step-2", 0, 1, f"training/{TRAINING}")
    return recorded_plan(created, GroupPlan(7, created.group_id, STATED, (created.seed,)), source)
