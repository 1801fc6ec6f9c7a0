"""The names of the trainings in the log, to suggest one when a user mistypes it."""

import unicodedata

from consumers.errors import NotFoundError, did_you_mean
from consumers.log.reader import LogReader
from consumers.tail.event_filter import decode
from consumers.tail.reading import read_bounded
from schemas.training import TrainingCreated


def normalize_name(name: str) -> str:
    """The name in the form in which trainings are recorded: Unicode's NFC."""
    return unicodedata.normalize("NFC", name)


def require_training(reader: LogReader, topic: str, name: str) -> None:
    """NotFoundError, with similar names, unless the log has a training called `name`.

    Reads the whole topic of trainings: only for a `tail` that has printed nothing.
    """
    partitions = [tp for tp in reader.partitions() if tp.topic == topic]
    created = TrainingCreated.TYPE.encode()
    names: set[str] = set()
    for record in read_bounded(
        reader, reader.beginning_offsets(partitions), reader.end_offsets(partitions)
    ):
        if created not in record.value:
            continue
        envelope = decode(record).envelope
        if envelope is not None and envelope.type == TrainingCreated.TYPE:
            names.add(str(envelope.data.get("run_name")))
    if name not in names:
        message = (
            f"there is no training {name!r} in the log.{did_you_mean(name, names)}".removesuffix(
                "."
            )
        )
        raise NotFoundError(message)
