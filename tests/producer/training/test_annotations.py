"""What people say of a training goes to the log beside it, whoever trains it meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from producer.emit import Emitter
from producer.errors import CuaTrainError, NotFoundError
from producer.log.local import LocalLog
from producer.log.writer import Record
from producer.training.kept_trainings import annotate, list_kept, read_annotations
from producer.training.run import run
from schemas import ids
from schemas.annotation import TrainingAnnotated
from schemas.catalogue import stream, topic_of
from schemas.installation import Installation, read_installation
from tests.support.kafka import KafkaService
from tests.support.reading import ReadLog
from tests.support.small_run import small, watching


def tagged(tag: str) -> Callable[[TrainingAnnotated], TrainingAnnotated]:
    return lambda old: old.model_copy(update={"tags": (*old.tags, tag)})


def renamed(name: str) -> Callable[[TrainingAnnotated], TrainingAnnotated]:
    return lambda old: old.model_copy(update={"display_name": name})


def annotations(read_log: ReadLog) -> list[dict[str, Any]]:
    return [event for event in read_log() if event["type"] == "cua.annotation.recorded"]


def test_each_annotation_keeps_what_was_said_before_in_an_epoch_of_its_own(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(num_steps=0), installation=installation)
    annotate(installation, "small", renamed("A small one"))
    annotate(installation, "small", tagged("x"))
    last = annotate(installation, "small", tagged("y"))
    assert (last.annotation.display_name, last.annotation.tags) == ("A small one", ("x", "y"))
    events = annotations(read_log)
    assert [(event["epoch"], event["sequence"], event.get("continues")) for event in events] == [
        (1, 1, None),
        (2, 1, "1/1"),
        (3, 1, "2/1"),
    ]
    assert {event["subject"] for event in events} == {f"annotation/{events[0]['trainingid']}"}


def test_saying_the_same_again_records_nothing(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(num_steps=0), installation=installation)
    assert annotate(installation, "small", renamed("A")).changed
    assert not annotate(installation, "small", renamed("A")).changed
    assert len(annotations(read_log)) == 1


def test_a_training_is_renamed_while_it_trains(
    installation: Installation, read_log: ReadLog
) -> None:
    done: list[bool] = []

    def rename(line: str) -> None:
        if line.startswith("step 1/") and not done:
            done.append(annotate(installation, "small", renamed("now")).changed)

    with watching(rename):
        summary = run(small(), installation=installation)
    assert (done, summary.status, summary.steps) == ([True], "completed", 3)
    assert len(annotations(read_log)) == 1


def test_of_two_people_at_once_the_second_is_asked_to_say_it_again(
    installation: Installation,
) -> None:
    run(small(num_steps=0), installation=installation)

    def too_late(old: TrainingAnnotated) -> TrainingAnnotated:
        annotate(installation, "small", tagged("first"))
        return tagged("second")(old)

    with pytest.raises(CuaTrainError, match="another process annotated training 'small' meanwhile"):
        annotate(installation, "small", too_late)
    assert read_annotations(installation, ["small"])["small"].tags == ("first",)


def test_an_unknown_training_is_not_found_and_nothing_is_made(
    installation: Installation, read_log: ReadLog
) -> None:
    with pytest.raises(NotFoundError, match="has no log yet"):
        annotate(installation, "small", renamed("A"))
    assert not installation.home.exists()
    run(small(num_steps=0), installation=installation)
    with pytest.raises(NotFoundError, match=r"no training 'smal'\. Did you mean 'small'\?"):
        annotate(installation, "smal", renamed("A"))
    assert annotations(read_log) == []


def test_the_trainings_of_a_home_are_listed_with_what_was_said(
    installation: Installation,
) -> None:
    assert list_kept(installation) == []
    summary = run(small(num_steps=1), installation=installation)
    annotate(installation, "small", tagged("x"))
    (installation.runs_dir / "no run").mkdir()
    (kept,) = list_kept(installation)
    assert (kept.training_name, kept.tags, kept.step, kept.total_steps) == ("small", ("x",), 1, 1)
    assert (kept.success, kept.status) == (summary.success_after, "completed")


class KilledError(Exception):
    """In place of a kill."""


@pytest.mark.parametrize(
    ("age", "status"), [(timedelta(0), "initializing"), (timedelta(hours=2), "interrupted")]
)
def test_a_training_that_has_not_ended_and_is_long_silent_is_listed_as_interrupted(
    installation: Installation, age: timedelta, status: str
) -> None:
    def killed(_name: str, _folder: Path) -> None:
        raise KilledError

    run(small(num_steps=0), installation=installation)
    with pytest.raises(KilledError):
        run(
            small(num_steps=1),
            installation=installation,
            clock=lambda: datetime.now(UTC) - age,
            on_open=killed,
        )
    (kept,) = list_kept(installation)
    assert kept.status == status


def test_a_record_that_cannot_be_read_hides_the_status_of_its_training_alone(
    installation: Installation,
) -> None:
    for name in ("small", "other"):
        run(small(num_steps=0, training_name=name), installation=installation)
    key = stream("training", ids.training_id("other"))
    log = LocalLog(installation.local_log_path)
    log.append([Record(topic_of(key, installation.topic_prefix), key, b"{}")])
    log.close()
    assert {item.training_name: item.status for item in list_kept(installation)} == {
        "small": "completed",
        "other": None,
    }


def test_a_continued_training_reads_its_log_with_annotations_in_it(
    installation: Installation,
) -> None:
    run(small(num_steps=1), installation=installation)
    for name in ("a", "b"):
        annotate(installation, "small", renamed(name))
    summary = run(small(num_steps=2), installation=installation)
    assert (summary.steps, summary.generation) == (2, 0)
    with Emitter.open(installation) as emitter:
        assert emitter.log.num_unshipped() == 0


def test_on_kafka_each_home_says_its_part(kafka: KafkaService, tmp_path: Path) -> None:
    homes = [
        read_installation(
            {
                "CUA_HOME": str(tmp_path / name),
                "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
                "CUA_TOPIC_PREFIX": f"{tmp_path.name}.",
            }
        )
        for name in ("a", "b")
    ]
    run(small(num_steps=0), installation=homes[0])
    annotate(homes[1], "small", tagged("x"))
    annotate(homes[0], "small", tagged("y"))
    assert read_annotations(homes[1], ["small"])["small"].tags == ("x", "y")
    with pytest.raises(NotFoundError, match="the log has no training 'other'"):
        annotate(homes[1], "other", tagged("x"))
    # A home that has seen nothing yet.
    fresh = replace(homes[1], home=tmp_path / "c")
    assert annotate(fresh, "small", tagged("z")).annotation.tags == ("x", "y", "z")
