"""The names of the trainings in the log, to suggest one when a user mistypes it."""

import time
import unicodedata

from consumers.errors import NotFoundError
from consumers.log.reader import LogReader
from consumers.tail.event_filter import decode
from consumers.tail.reading import read_bounded
from schemas.advice import did_you_mean
from schemas.local_index import places_of_beginnings
from schemas.training import TrainingCreated


def normalize_name(name: str) -> str:
    """The name in the form in which trainings are recorded: Unicode's NFC."""
    return unicodedata.normalize("NFC", name)


def require_training(reader: LogReader, topic: str, name: str) -> None:
    """NotFoundError, with similar names, unless the log has a training called `name`."""
    message = unknown_training_message(reader, topic, name)
    if message is not None:
        raise NotFoundError(message)


def unknown_training_message(
    reader: LogReader, topic: str, name: str, limit_s: float = float("inf")
) -> str | None:
    """Names the trainings that are similar unless the log has one called `name`; None if it has.

    Reads where trainings begin, on a log without an index the whole topic of trainings: for a
    `tail` that has printed nothing, or for `limit_s`; None if that is not enough.
    """
    partitions = [tp for tp in reader.partitions() if tp.topic == topic]
    created = TrainingCreated.TYPE.encode()
    names: set[str] = set()
    deadline = time.monotonic() + limit_s
    for record in read_bounded(
        reader,
        reader.beginning_offsets(partitions),
        reader.end_offsets(partitions),
        places_of_beginnings("training"),
    ):
        if time.monotonic() > deadline:
            return None
        if created not in record.value:
            continue
        envelope = decode(record).envelope
        if envelope is not None and envelope.type == TrainingCreated.TYPE:
            names.add(str(envelope.data.get("run_name")))
            if name in names:
                return None
    return f"there is no training {name!r} in the log.{did_you_mean(name, names)}".removesuffix(".")
