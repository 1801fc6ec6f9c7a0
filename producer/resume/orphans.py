"""Ends what killed processes of this home left open and nobody will continue.

Warm-ups and evaluations by hand.

Each stream gets a new epoch that says so; a rollout is cancelled and its environment terminated, as
for a training that is continued.
"""

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, claim
from producer.errors import UnreachableError
from producer.log.stream_history import StreamHistory, read_back_many
from producer.resume.open_stream_markers import OpenStreamMarker, markers_of_dead_processes
from producer.resume.training_history import DEAD_PROCESS, TrainingHistory
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import TOPICS, stream, stream_kind, stream_owner
from schemas.evaluation import EvaluationCancelled, EvaluationCreated
from schemas.event import Fact
from schemas.group import GroupFailed
from schemas.installation import Installation
from schemas.rollout import RolloutCreated
from schemas.status import MACHINES
from schemas.training import TrainingCancelled
from schemas.wire import (
    InvalidPayloadError,
    UnknownSchemaError,
    UnreadableError,
    read_envelope,
    read_payload,
)

TIMEOUT_S = 10.0


def end_abandoned(
    installation: Installation, emitter: Emitter, clock: Callable[[], datetime]
) -> int:
    """How many streams were ended.

    What cannot be ended now (no log, another process was first) stays for the next process.
    """
    num_ended = 0
    with contextlib.suppress(UnreachableError):
        for marker in markers_of_dead_processes(
            installation.open_dir, emitter.open_log(TIMEOUT_S).log_id
        ):
            emitter.wait_shipped(TIMEOUT_S)
            with contextlib.suppress(ClaimLostError):
                num_ended += _end(marker, emitter, installation.topic_prefix, clock)
                marker.path.unlink(missing_ok=True)
    return num_ended


def _end(
    marker: OpenStreamMarker, emitter: Emitter, topic_prefix: str, clock: Callable[[], datetime]
) -> bool:
    history = emitter.read_back(marker.subject, marker.since, timeout_s=TIMEOUT_S)
    if not history.events:
        return False  # killed before it said anything
    training_id = history.events[0].envelope.training_id
    rollouts = TrainingHistory()
    if stream_kind(marker.subject) == "evaluation":
        rollouts = _rollouts_of(stream_owner(marker.subject), emitter, marker, topic_prefix)
    last_words = _last_words(history, rollouts, clock())
    if last_words:
        claim(
            emitter,
            Fact(marker.subject, last_words[0], training_id),
            history,
            marker.since,
            timeout_s=TIMEOUT_S,
        )
        for payload in last_words[1:]:
            emitter.emit(Fact(marker.subject, payload, training_id))
        emitter.forget_stream(marker.subject)
    rollouts.close_orphans(emitter, training_id, clock)
    emitter.flush()
    return bool(last_words)


def _last_words(
    history: StreamHistory, rollouts: TrainingHistory, now: datetime
) -> Sequence[Payload]:
    """What ends everything of the stream that is open, groups before the whole."""
    words: list[Payload] = []
    scored = rollouts.num_scored_by_group()
    for (kind, owner), status in sorted(
        history.statuses.items(), key=lambda item: item[0][0] != "group"
    ):
        if status in MACHINES[kind].ends:
            continue
        if kind == "group":
            words.append(
                GroupFailed(
                    group_id=owner,
                    completed_rollouts=scored[owner],
                    error_message=DEAD_PROCESS,
                    ended_at=now,
                )
            )
        elif kind == "training":
            words.append(TrainingCancelled(status_message=DEAD_PROCESS, ended_at=now))
        else:
            created = next(
                event.payload
                for event in history.events
                if isinstance(event.payload, EvaluationCreated)
            )
            words.append(EvaluationCancelled(kind=created.kind, reason=DEAD_PROCESS, ended_at=now))
    return words


def _rollouts_of(
    evaluation_id: UUID, emitter: Emitter, marker: OpenStreamMarker, topic_prefix: str
) -> TrainingHistory:
    """Rollouts of an evaluation and their environments."""
    needle = str(evaluation_id).encode()
    found = set()
    for key, value in emitter.log.read_topic(topic_prefix + TOPICS["rollout"], marker.since):
        if needle in value:
            with contextlib.suppress(UnreadableError, UnknownSchemaError, InvalidPayloadError):
                payload = read_payload(read_envelope(value))
                if isinstance(payload, RolloutCreated) and payload.source_id == evaluation_id:
                    found.add(key)
    environments = {
        stream("environment", ids.environment_id(stream_owner(rollout))) for rollout in found
    }
    histories = read_back_many(
        emitter.log, found | environments, marker.since, topic_prefix=topic_prefix
    )
    return TrainingHistory(
        {subject: history for subject, history in histories.items() if history.exists}
    )
