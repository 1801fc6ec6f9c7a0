"""Ends the streams that a killed process left open, each in a new epoch.

A rollout is cancelled and its environment terminated, or recorded as leaked if it is a real device
that cannot be released. Warm-ups and manual evaluations, which no command resumes, are cancelled as
a whole. A marker names each of them, and its lock is free once the owner is dead; the next process
of the same home ends the stream.

    <home>/open/<id>.open   subject and lower bounds, as JSON
    <home>/open/<id>.lock   held by the owner while it lives
"""

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from filelock import FileLock, Timeout

from producer.agents import AGENTS
from producer.durable import write_durably
from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, claim
from producer.environments.environment import EnvironmentFailedError
from producer.errors import CuaTrainError, LogBrokenError, MismatchError, UnreachableError
from producer.log.stream_history import StreamHistory
from producer.log.writer import TopicPartition
from producer.resume.resume_state import bounds_from_json, bounds_to_json
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

SUFFIX = ".open"


@dataclass(frozen=True, slots=True)
class OpenStreamMarker:
    """A stream whose owner died before ending it."""

    subject: str
    since: Mapping[TopicPartition, int]
    """Offsets at or before every record of the stream and of its rollouts."""
    path: Path

    def remove(self) -> None:
        """Remove the marker, after the stream was ended."""
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(".lock").unlink(missing_ok=True)


@contextmanager
def mark_open(folder: Path, subject: str, emitter: Emitter) -> Iterator[None]:
    """Mark the stream as owned by this process inside the context.

    Enter before its first event and leave after its last. If the log breaks, the marker stays, so
    that the next process ends the stream.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stream_owner(subject)}{SUFFIX}"
    since = bounds_to_json(emitter.log.lower_bounds())
    content = {"subject": subject, "log_id": emitter.log.log_id(), "since": since}
    marker = OpenStreamMarker(subject, {}, path)
    with FileLock(path.with_suffix(".lock")):
        write_durably(path, json.dumps(content))
        try:
            yield
        except LogBrokenError:
            raise
        except Exception:
            marker.remove()
            raise
        emitter.flush()
        marker.remove()


def markers_of_dead_processes(folder: Path, log_id: str) -> Iterator[OpenStreamMarker]:
    """Yield each marker whose lock is free; the lock is held while the caller ends the stream.

    Its owner is dead. The caller then removes the marker.
    """
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        lock = FileLock(path.with_suffix(".lock"))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        except OSError as error:
            # It belongs to another user, whose next process ends the stream.
            logger.warning("leaving %s to its owner: %s", path, error.strerror)
            continue
        try:
            if not path.exists():
                # Its owner removed it between our listing and our lock.
                path.with_suffix(".lock").unlink(missing_ok=True)
                continue
            marker = _read(path, log_id)
            if marker is not None:
                yield marker
        finally:
            lock.release()


def _read(path: Path, log_id: str) -> OpenStreamMarker | None:
    """The marker; None, with a warning, for a file that is not a marker."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        subject = content["subject"]
        stream_owner(subject)
        # Offsets of another log are meaningless in this one.
        since = bounds_from_json(content["since"]) if content["log_id"] == log_id else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("ignoring %s, which is no marker of an open stream (%s)", path, error)
        return None
    return OpenStreamMarker(subject, since, path)


TIMEOUT_S = 10.0
DEAD_PROCESS = "its process ended before it did"


def close_orphans(
    history: TrainingHistory,
    emitter: Emitter,
    training_id: UUID | None,
    clock: Callable[[], datetime],
) -> int:
    """End every rollout and environment that is still open; returns the number of rollouts."""
    num_rollouts = 0
    for subject, stream_history in history.streams.items():
        kind = stream_kind(subject)
        if kind not in {"rollout", "environment"}:
            continue
        status = stream_history.statuses.get((kind, stream_owner(subject)))
        is_over = status is None or status in MACHINES[kind].ends
        if is_over or stream_history.is_dropped:
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
    """Event of the device's end: a simulated one is gone, a real one is released or leaked."""
    payloads = [event.payload for event in history.events]
    requests = [payload for payload in payloads if isinstance(payload, EnvironmentRequested)]
    names = [payload.gbox_id for payload in payloads if isinstance(payload, EnvironmentStarted)]
    name = names[0] if names else None
    is_simulated = all(payload.config.get("is_simulated", True) for payload in requests)
    if is_simulated or _release(requests[0].env_type, name):
        return EnvironmentTerminated(terminated_at=now, status_message=DEAD_PROCESS)
    logger.warning(
        "device %s was not released, because %s; it may still run. Release it at its provider",
        name or f"of {history.subject}, which has no id yet,",
        DEAD_PROCESS,
    )
    return EnvironmentLeaked(error_message=DEAD_PROCESS, leaked_at=now)


def _release(env_type: str, device_id: str | None) -> bool:
    """Release the device; returns whether it has certainly ended."""
    agent = AGENTS.get(env_type)
    if agent is None:
        return False
    try:
        return agent.release(device_id)
    except (EnvironmentFailedError, CuaTrainError) as error:
        logger.warning("%s", error)
        return False


def end_abandoned(
    installation: Installation,
    emitter: Emitter,
    clock: Callable[[], datetime],
    stop: threading.Event | None = None,
) -> int:
    """End the marked streams of dead processes; returns their number.

    Streams that cannot be ended now (the log cannot be reached, another process was first, or a
    record is unreadable) are left to the next process. Raises StopRequestedError if `stop` is set
    while it waits for the log.
    """
    num_ended = 0
    with contextlib.suppress(UnreachableError):
        log_id = emitter.log.log_id(TIMEOUT_S, stop)
        for marker in markers_of_dead_processes(installation.open_dir, log_id):
            emitter.log.wait_shipped(TIMEOUT_S, stop)
            try:
                num_ended += _end(marker, emitter, clock)
            except MismatchError as error:
                # The problem affects only this stream; the process that starts here writes another
                # one.
                logger.warning("a stream that a killed process left open stays so: %s", error)
            except ClaimLostError:
                pass
            else:
                marker.remove()
    return num_ended


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
    # If an operator gave up the rest of a stream, end only its parts in other streams.
    closing = () if history.is_dropped else closing_events(history, rollouts, clock())
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
    """The events that end everything still open in the stream, groups first."""
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
