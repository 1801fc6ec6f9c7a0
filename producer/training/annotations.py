"""What people say of a training: its display name, tags and note, and whether lists omit it.

On a stream of its own, so that a training may be renamed while another process trains it.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, claim
from producer.errors import NotFoundError, did_you_mean
from producer.log.reading_back import read_back
from producer.log.stream_history import StreamHistory
from producer.training.preflight import is_unused
from schemas import ids
from schemas.annotation import TrainingAnnotated
from schemas.catalogue import stream
from schemas.installation import Installation

logger = logging.getLogger(__name__)

LOG_TIMEOUT_S = 60.0
NUM_TRIES = 5
"""Of a claim that another person's came before."""

Change = Callable[[TrainingAnnotated], TrainingAnnotated]
"""The annotation before -> the one from now on."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """What came of a change."""

    annotation: TrainingAnnotated
    changed: bool
    """False: it was so before, and nothing was emitted."""


def annotate(installation: Installation, name: str, change: Change) -> Annotated:
    """Record a change of the training's annotation; returns once it is in the log.

    NotFoundError for an unknown training, UnreachableError when the log is away.
    """
    check_known(installation, name)
    training_id = ids.training_id(name)
    for tries_left in reversed(range(NUM_TRIES)):
        # A claim that lost stays refused: the next try has a source of its own.
        with Emitter.open(installation) as emitter:
            _check_recorded(emitter, installation, name, training_id)
            subject = stream("annotation", training_id)
            history = emitter.log.read_back(subject, {}, timeout_s=LOG_TIMEOUT_S)
            before = newest_annotation(history, training_id)
            after = change(before)
            if after == before:
                return Annotated(after, changed=False)
            try:
                claim(emitter, after, history, {}, training_id=training_id)
            except ClaimLostError:
                if not tries_left:
                    raise
                logger.info("another process annotates training %r; trying again", name)
                continue
            return Annotated(after, changed=True)
    raise AssertionError


def read_annotations(
    installation: Installation, names: Collection[str]
) -> dict[str, TrainingAnnotated]:
    """The newest annotation of each training. UnreachableError when the log is away."""
    if not names or is_unused(installation):
        return {}
    subjects = {name: stream("annotation", ids.training_id(name)) for name in names}
    histories = read_back(installation, list(subjects.values()), timeout_s=LOG_TIMEOUT_S)
    return {
        name: newest_annotation(histories[subject], ids.training_id(name))
        for name, subject in subjects.items()
    }


def newest_annotation(history: StreamHistory, training_id: UUID) -> TrainingAnnotated:
    """The last annotation of a stream; an empty one when it has none."""
    payloads = (event.payload for event in reversed(history.events))
    found = next((payload for payload in payloads if isinstance(payload, TrainingAnnotated)), None)
    return found or TrainingAnnotated(training_id=training_id)


def check_known(installation: Installation, name: str) -> None:
    """NotFoundError on a machine that has no log yet, before one is made."""
    if is_unused(installation) and installation.kafka_bootstrap_servers is None:
        message = f"there is no training {name!r}: {installation.home} has no log yet"
        raise NotFoundError(message)


def unknown_training(installation: Installation, name: str) -> NotFoundError:
    """The error for a training that the log does not have."""
    runs = installation.runs_dir
    known = [path.name for path in runs.iterdir()] if runs.is_dir() else []
    hint = did_you_mean(name, known) or " See `cua-train trainings list`"
    return NotFoundError(f"the log has no training {name!r}.{hint}")


def _check_recorded(
    emitter: Emitter, installation: Installation, name: str, training_id: UUID
) -> None:
    emitter.log.connect(LOG_TIMEOUT_S)
    emitter.log.wait_shipped(LOG_TIMEOUT_S)
    if any(True for _ in emitter.log.read_stream(stream("training", training_id), {})):
        return
    raise unknown_training(installation, name)
