"""What is read of the log to begin or continue a training."""

from collections.abc import Iterator, Mapping
from typing import cast
from uuid import UUID

import pytest

from producer.errors import MismatchError
from producer.log.event_log import EventLog
from producer.log.writer import TopicPartition
from producer.resume.training_history import TrainingHistory, read_training_history
from schemas import ids
from schemas.event import StreamPoint
from tests.reference_fold.histories import history
from tests.reference_fold.writers import LoggedEvent


class ScriptedLog:
    """What two trainings logged; remembers what was asked for."""

    def __init__(self, *names: str) -> None:
        self.events = [event for name in names for event in history(name, 1)]
        self.asked: list[str] = []

    def lower_bounds(self) -> dict[TopicPartition, int]:
        return {}

    def read_stream(
        self, subject: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        del since
        self.asked.append(subject)
        return (event for event in self.events if event.subject == subject)

    def read_training(
        self, name: str, training_id: UUID, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """More than asked for, as a log may."""
        del training_id, since
        self.asked.append(name)
        is_training_topic = name == "training"
        for event in self.events:
            if event.subject.startswith(("training", "evaluation")) == is_training_topic:
                yield event


def test_a_new_name_reads_its_own_stream_and_nothing_else() -> None:
    log = ScriptedLog("other")
    training_id = ids.training_id("new")
    found = read_training_history(cast("EventLog", log), training_id, start={}, since={})
    assert not found.streams
    assert log.asked == [f"training/{training_id}"]


def test_an_existing_training_reads_each_of_its_streams_once() -> None:
    log = ScriptedLog("other", "mine")
    training_id = ids.training_id("mine")
    found = read_training_history(cast("EventLog", log), training_id, start={}, since={})
    own = {event.subject for event in history("mine", 1)}
    assert set(found.streams) == own
    for subject, stream in found.streams.items():
        values = [event for event in log.events if event.subject == subject]
        assert len(stream.events) + len(stream.waiting) <= len(values)
        assert stream.events
    assert log.asked.count(f"training/{training_id}") == 1


NAME = "mine"
ID = ids.training_id(NAME)
OWN = f"training/{ID}"
ROLLOUT = next(event.subject for event in history(NAME, 1) if event.subject.startswith("rollout/"))
GARBLED = b"no event of " + str(ID).encode()


def with_record(key: str, value: bytes, at: int) -> ScriptedLog:
    """The training's log with a record of somebody else's."""
    log = ScriptedLog(NAME)
    log.events.insert(at, LoggedEvent(key, value))
    return log


def read(log: ScriptedLog) -> TrainingHistory:
    return read_training_history(cast("EventLog", log), ID, start={}, since={})


def points(found: TrainingHistory) -> dict[str, list[StreamPoint]]:
    return {
        name: [event.envelope.point for event in one.events] for name, one in found.streams.items()
    }


@pytest.mark.parametrize("key", ["", "/", "a/b", f"rollout/{UUID(int=1)}", "training/x"])
@pytest.mark.parametrize("value", [GARBLED, b"", b"{}"])
def test_what_somebody_left_under_a_key_that_is_not_the_trainings_stops_it_not(
    key: str, value: bytes
) -> None:
    found, expected = read(with_record(key, value, 3)), read(ScriptedLog(NAME))
    assert points(found) == points(expected)


@pytest.mark.parametrize("key", [OWN, ROLLOUT])
@pytest.mark.parametrize("value", [GARBLED, b"", b"\xff"])
def test_a_garbled_record_of_its_streams_is_refused_with_what_to_do(key: str, value: bytes) -> None:
    with pytest.raises(MismatchError, match=f"{key} cannot be read.*parked drop"):
        read(with_record(key, value, len(history(NAME, 1))))


def test_a_garbled_first_record_of_a_stream_is_refused() -> None:
    with pytest.raises(MismatchError, match=ROLLOUT):
        read(with_record(ROLLOUT, GARBLED, 0))


def test_a_name_that_only_a_garbled_record_has_is_not_taken_for_a_new_one() -> None:
    log = with_record(OWN, b"", 0)
    del log.events[1:]
    with pytest.raises(MismatchError, match=OWN):
        read(log)
