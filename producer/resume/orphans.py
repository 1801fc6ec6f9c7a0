"""Ends the streams that a killed process left open, each in a new epoch.

A rollout is cancelled and its environment terminated, or leaked if it is a real device. Warm-ups
and evaluations by hand, which no command continues, are cancelled as a whole; the next process of
the same home does that.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, claim
from producer.errors import MismatchError, UnreachableError
from producer.log.stream_history import StreamHistory
from producer.resume.open_stream_markers import OpenStreamMarker, markers_of_dead_processes
from producer.resume.training_history import TrainingHistory
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import TOPICS, stream, stream_kind, stream_owner
from schemas.environment import (
    EnvironmentLeaked,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)
from schemas.evaluation import EvaluationCancelled, EvaluationCreated
from schemas.group import GroupFailed
from schemas.installation import Installation
from schemas.rollout import RolloutCancelled, RolloutCreated
from schemas.status import MACHINES
from schemas.training import TrainingCancelled, TrainingCreated
from schemas.wire import (
    InvalidPayloadError,
    UnknownSchemaError,
    UnreadableError,
    read_envelope,
    read_payload,
)

logger = logging.getLogger(__name__)

TIMEOUT_S = 10.0
SILENT = timedelta(hours=1)
"""An evaluation's own stream is silent for as long as its slowest rollouts take, half an hour by
default."""
DEAD_PROCESS = "its process ended before it did"


def close_orphans(
    history: TrainingHistory,
    emitter: Emitter,
    training_id: UUID | None,
    clock: Callable[[], datetime],
) -> int:
    """End every rollout and environment that is still open; how many rollouts that were."""
    num_rollouts = 0
    for subject, stream_history in history.streams.items():
        kind = stream_kind(subject)
        if kind not in {"rollout", "environment"}:
            continue
        status = stream_history.statuses.get((kind, stream_owner(subject)))
        is_over = status is None or status in MACHINES[kind].ends
        if is_over or stream_history.is_abandoned:
            continue
        now = clock()
        writer = emitter.stream(subject, stream_history, training_id=training_id)
        if kind == "rollout":
            num_rollouts += 1
            writer.emit(RolloutCancelled(reason=DEAD_PROCESS, ended_at=now))
        else:
            writer.emit(_end_of_device(stream_history, now))
        writer.close()
    return num_rollouts


def _end_of_device(history: StreamHistory, now: datetime) -> Payload:
    """A simulated device ended with its process; a real one may still run."""
    payloads = [event.payload for event in history.events]
    is_simulated = all(
        payload.config.get("is_simulated", True)
        for payload in payloads
        if isinstance(payload, EnvironmentRequested)
    )
    if is_simulated:
        return EnvironmentTerminated(terminated_at=now, status_message=DEAD_PROCESS)
    names = [payload.gbox_id for payload in payloads if isinstance(payload, EnvironmentStarted)]
    logger.warning(
        "device %s was not released, because %s; it may still run. Release it at its provider",
        names[0] if names else f"of {history.subject}, which has no id yet,",
        DEAD_PROCESS,
    )
    return EnvironmentLeaked(error_message=DEAD_PROCESS, leaked_at=now)


def end_abandoned(
    installation: Installation,
    emitter: Emitter,
    clock: Callable[[], datetime],
    stop: threading.Event | None = None,
) -> int:
    """End the marked streams of dead processes; how many were ended.

    What cannot be ended now (the log is away, another process was first, one of the stream's
    records cannot be read, the owner may live elsewhere) is left to the next one.
    StopRequestedError once `stop` is set while it waits for the log.
    """
    num_ended = 0
    with contextlib.suppress(UnreachableError):
        log_id = emitter.log.log_id(TIMEOUT_S, stop)
        for marker in markers_of_dead_processes(installation.open_dir, log_id):
            emitter.log.wait_shipped(TIMEOUT_S, stop)
            try:
                if marker.is_copied and _may_live(marker, emitter, clock()):
                    continue
                num_ended += _end(marker, emitter, clock)
            except MismatchError as error:
                # This stream's trouble alone: the process that starts here writes another one.
                logger.warning("a stream that a killed process left open stays so: %s", error)
            except ClaimLostError:
                pass
            else:
                marker.remove()
    return num_ended


def _may_live(marker: OpenStreamMarker, emitter: Emitter, now: datetime) -> bool:
    """Whether the owner may write on from the home that this one is a copy of."""
    if not emitter.log.is_shared:
        return False  # it writes to the log of that home
    history = emitter.log.read_back(marker.subject, marker.since, timeout_s=TIMEOUT_S)
    last = max((event.envelope.time for event in history.events), default=now)
    return now - last < SILENT


def _end(marker: OpenStreamMarker, emitter: Emitter, clock: Callable[[], datetime]) -> bool:
    history = emitter.log.read_back(marker.subject, marker.since, timeout_s=TIMEOUT_S)
    kinds = (TrainingCreated, EvaluationCreated)
    created = next((event for event in history.events if isinstance(event.payload, kinds)), None)
    if created is None:
        return False  # killed before its first event, or an operator gave that up
    training_id = created.envelope.training_id
    rollouts = TrainingHistory()
    if stream_kind(marker.subject) == "evaluation":
        rollouts = _rollouts_of(stream_owner(marker.subject), emitter, marker)
    # Of a stream whose rest an operator gave up only what lies in other streams is ended.
    closing = () if history.is_abandoned else closing_events(history, rollouts, clock())
    if closing:
        stream, _ = claim(
            emitter,
            closing[0],
            history,
            marker.since,
            training_id=training_id,
            timeout_s=TIMEOUT_S,
        )
        for payload in closing[1:]:
            stream.emit(payload)
        stream.close()
    close_orphans(rollouts, emitter, training_id, clock)
    emitter.flush()
    return bool(closing)


def closing_events(
    history: StreamHistory, rollouts: TrainingHistory, now: datetime
) -> Sequence[Payload]:
    """Events that end everything still open in the stream, its groups first."""
    closing: list[Payload] = []
    scored = rollouts.num_scored_by_group()
    groups_first = sorted(history.statuses.items(), key=lambda item: item[0][0] != "group")
    for (kind, owner), status in groups_first:
        if status in MACHINES[kind].ends:
            continue
        if kind == "group":
            closing.append(
                GroupFailed(
                    group_id=owner,
                    completed_rollouts=scored[owner],
                    error_message=DEAD_PROCESS,
                    ended_at=now,
                )
            )
        elif kind == "training":
            closing.append(TrainingCancelled(status_message=DEAD_PROCESS, ended_at=now))
        else:
            created = next(
                event.payload
                for event in history.events
                if isinstance(event.payload, EvaluationCreated)
            )
            reason = DEAD_PROCESS
            closing.append(EvaluationCancelled(kind=created.kind, reason=reason, ended_at=now))
    return closing


def _rollouts_of(
    evaluation_id: UUID, emitter: Emitter, marker: OpenStreamMarker
) -> TrainingHistory:
    """Rollouts of an evaluation and their environments."""
    needle = str(evaluation_id).encode()
    found = set()
    for key, value in emitter.log.read_topic(TOPICS["rollout"], marker.since):
        if needle in value:
            with contextlib.suppress(UnreadableError, UnknownSchemaError, InvalidPayloadError):
                payload = read_payload(read_envelope(value))
                if isinstance(payload, RolloutCreated) and payload.source_id == evaluation_id:
                    found.add(key)
    environments = {
        stream("environment", ids.environment_id(stream_owner(rollout))) for rollout in found
    }
    histories = emitter.log.read_back_many(found | environments, marker.since)
    return TrainingHistory(
        {subject: history for subject, history in histories.items() if history.exists}
    )
