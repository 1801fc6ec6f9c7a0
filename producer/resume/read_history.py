"""Reads what the log holds of a training: once, before anything is emitted.

What cannot be read refuses its training as it parks it in the tables; what others left in the log
stops nobody.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from producer.errors import MismatchError
from producer.log.event_log import EventLog
from producer.log.writer import TopicPartition
from producer.resume.training_history import TrainingHistory
from schemas.catalogue import TOPIC_NAMES, TOPICS, stream
from schemas.event import Envelope
from schemas.training import TrainingCreated
from schemas.wire import InvalidPayloadError, UnknownSchemaError, UnreadableError, read_envelope


def read_training_history(
    log: EventLog,
    training_id: UUID,
    *,
    start: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
) -> TrainingHistory:
    """The training's own stream from `start`, its other streams from `since`.

    MismatchError for a record that cannot be read.
    """
    history = _read_history(log, training_id, start, since)
    while not log.agrees(history.training_stream(training_id)):
        history = _read_history(log, training_id, start, since)
    return history


def _read_history(
    log: EventLog,
    training_id: UUID,
    start: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
) -> TrainingHistory:
    history = read_own_stream(log, training_id, start)
    own = stream("training", training_id)
    topic = TOPICS["training"]
    if own not in history.streams:
        # Nothing of a training is emitted before its claim was read back: it is new.
        log.check_whole([own])
        return history
    for name in TOPIC_NAMES:
        records = log.read_training(name, training_id, start if name == topic else since)
        _read_into(history, training_id, ((key, value) for key, value in records if key != own))
    log.check_whole(history.streams)
    return history


def read_own_stream(
    log: EventLog, training_id: UUID, start: Mapping[TopicPartition, int]
) -> TrainingHistory:
    """The training's own stream alone.

    MismatchError for a record that cannot be read, and for a training whose creation an operator
    gave up.
    """
    history = TrainingHistory(ends=log.lower_bounds(), drops=log.operator_drops())
    subject = stream("training", training_id)
    _read_into(history, training_id, log.read_stream(subject, start))
    own = history.of(subject)
    if own.exists and not any(isinstance(event.payload, TrainingCreated) for event in own.events):
        message = (
            f"{subject} cannot be continued: an operator gave up the record that creates it"
            " (cua-project parked drop), so the tables take nothing more of it"
        )
        ways = ("take the drop back, then rebuild", "choose another --training-name")
        raise MismatchError(message, ways=ways)
    return history


def _read_into(
    history: TrainingHistory, training_id: UUID, records: Iterable[tuple[str, bytes]]
) -> None:
    """Take the records of the training's streams.

    MismatchError for one that cannot be read, as the tables park its stream. What others left under
    keys that are no stream of this training is no error.
    """
    own = stream("training", training_id)
    needle = str(training_id).encode()
    unreadable: dict[str, UnreadableError] = {}
    for key, value in records:
        # Whatever has the key of its stream counts for the tables, if only as what parks it.
        is_of_training = key == own or key in history.streams
        # Most records of a shared log belong to other trainings: filter before parsing.
        if not is_of_training and needle not in value:
            continue
        try:
            envelope = _envelope(value)
            if envelope is None or envelope.subject != key:
                history.read_unreadable(key, value)
            elif is_of_training or envelope.training_id == training_id:
                history.read(envelope, value)
        except UnreadableError as error:
            unreadable.setdefault(key, error)
        except (UnknownSchemaError, InvalidPayloadError) as error:
            raise _cannot_continue(key, error) from error
    for key, reason in unreadable.items():
        if key == own or key in history.streams:
            raise _cannot_continue(key, reason) from reason


def _cannot_continue(key: str, error: Exception) -> MismatchError:
    message = (
        f"the training cannot be continued: a record of {key} cannot be read ({error}). Continue"
        " with the cua-train version that wrote it, or give the record up (`cua-project parked"
        " list` names it, `cua-project parked drop` gives it up)"
    )
    return MismatchError(message)


def _envelope(value: bytes) -> Envelope | None:
    try:
        return read_envelope(value)
    except UnreadableError:
        return None
