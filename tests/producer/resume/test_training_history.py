"""What is read of the log to begin or continue a training."""

from collections.abc import Collection, Iterator, Mapping
from typing import cast
from uuid import UUID

from producer.log.event_log import EventLog
from producer.log.stream_history import StreamHistory
from producer.log.writer import TopicPartition
from producer.resume.training_history import read_training_history
from schemas import ids
from schemas.operator_drops import Drops
from tests.reference_fold.histories import history


class ScriptedLog:
    """What two trainings logged; remembers what was asked for."""

    def __init__(self, *names: str) -> None:
        self.events = [event for name in names for event in history(name, 1)]
        self.asked: list[str] = []
        self.num_hidden = 0
        """Readings of a training's own stream that find nothing: the tables were wrong."""

    def agrees(self, history: StreamHistory) -> bool:
        if history.exists or not self.num_hidden:
            return True
        self.num_hidden -= 1
        return False

    def lower_bounds(self) -> dict[TopicPartition, int]:
        return {}

    def operator_drops(self) -> Drops:
        return Drops()

    def check_whole(self, subjects: Collection[str]) -> None:
        del subjects

    def read_stream(
        self, subject: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        del since
        self.asked.append(subject)
        if self.num_hidden:
            return iter([])
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
        values = [one for one in log.events if one.subject == subject]
        assert len(stream.events) + len(stream.waiting) <= len(values)
        assert stream.events
    assert log.asked.count(f"training/{training_id}") == 1


def test_a_training_that_the_tables_hid_is_not_taken_for_a_new_name() -> None:
    log = ScriptedLog("mine")
    log.num_hidden = 1
    training_id = ids.training_id("mine")
    found = read_training_history(cast("EventLog", log), training_id, start={}, since={})
    assert set(found.streams) == {event.subject for event in history("mine", 1)}
    assert log.asked.count(f"training/{training_id}") == 2
