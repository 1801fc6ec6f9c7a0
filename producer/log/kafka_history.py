"""Finds a training's records in Kafka without reading the whole log.

Kafka has no index of trainings. But nothing of a training is emitted before the first record of its
own stream has been read back, so nothing was appended long before that record. Reading begins at
the offsets recorded in a state on this host. Without them, the partition of the training's own
stream is read completely, and all others from an hour before that record on.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from producer.log.writer import TopicPartition
from schemas.catalogue import stream
from schemas.event import StreamPoint
from schemas.kafka_log import TIMES_SETTING, TOPIC_SETTINGS
from schemas.wire import UnreadableError, read_envelope

if TYPE_CHECKING:
    from producer.log.kafka import KafkaLog

logger = logging.getLogger(__name__)

MARGIN_MS = 3_600_000
"""Allowed difference between clocks: those of the brokers, and of a trainer whose log was
copied."""
FIRST = StreamPoint(1, 1)


class KafkaHistory:
    """Reads trainings from Kafka. Every method raises UnreachableError and MismatchError."""

    def __init__(self) -> None:
        self._began_ms: dict[str, int] = {}
        """Maps a training's stream to when the training began, ms since 1970."""

    def read_own(
        self, log: "KafkaLog", topic: str, subject: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a training's own records, from one partition; none for a new name.

        Remembers when the training began, for `read_training`.
        """
        for number, (value, appended_ms) in enumerate(log.read_stream(topic, subject, since)):
            if number == 0:
                self._note_beginning(subject, value, appended_ms)
            yield subject, value

    def _note_beginning(self, subject: str, value: bytes, appended_ms: int) -> None:
        self._began_ms.pop(subject, None)
        try:
            envelope = read_envelope(value)
        except UnreadableError:
            return
        # The first record differs if retention deleted records, or if the stream is split.
        if envelope.point == FIRST:
            # A copied topic has the copy's append times, and this record may have been copied last.
            made_ms = int(envelope.time.timestamp() * 1000)
            self._began_ms[subject] = min(appended_ms, made_ms)

    def read_training(
        self,
        log: "KafkaLog",
        topic: str,
        own_topic: str,
        training_id: UUID,
        since: Mapping[TopicPartition, int],
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of at least every record of a topic that names the training.

        `own_topic` is the topic of the training's own stream, which was read with `read_own`.
        `since` holds offsets at or before the training's records, for the partitions where the
        caller knows them.
        """
        if not since.keys() >= {*log.places(topic)}:
            since = {**self._offsets(log, topic, own_topic, training_id), **since}
        yield from log.read_topic(topic, since)

    def _offsets(
        self, log: "KafkaLog", topic: str, own_topic: str, training_id: UUID
    ) -> dict[TopicPartition, int]:
        began_ms = self._began_ms.get(stream("training", training_id))
        # A producer's clock does not tell when a record was appended.
        unstamped = [name for name in (topic, own_topic) if not log.has_append_times(name)]
        if began_ms is not None and not unstamped:
            return log.offsets_since(topic, max(0, began_ms - MARGIN_MS))
        reason = (
            f"the {TIMES_SETTING} of {unstamped[0]} is not {TOPIC_SETTINGS[TIMES_SETTING]}, or this"
            " user has no right to read that setting"
            if unstamped
            else f"the beginning of training {training_id} is missing: retention deleted it,"
            " or another writer used its stream"
        )
        logger.info("reading %s from its beginning: %s", topic, reason)
        return {}
