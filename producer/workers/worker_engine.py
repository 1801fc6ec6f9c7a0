"""Runs rollouts on workers: assigns plans to them, and reads the results from the log.

Replaces `RolloutEngine`, with the same interface. A worker counts as alive while it is a member of
the consumer group; Kafka drops a member that has been silent for ten seconds.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from time import monotonic, sleep
from typing import Final, Protocol, TypeVar
from uuid import UUID

from pydantic import JsonValue

from producer.emit import Emitter
from producer.errors import MismatchError, UnreachableError
from producer.log.kafka_client import KafkaClients
from producer.log.kafka_queue import FollowedTopic, WorkSender, member_names
from producer.log.stream_history import StreamHistory
from producer.log.writer import TopicPartition
from producer.policy.policy import PublishedPolicy, Turn
from producer.resume.orphans import close_orphans
from producer.resume.recorded_rollouts import recorded_result, turn_seconds, turns_taken
from producer.resume.resume_state import bounds_to_json
from producer.resume.training_history import TrainingHistory
from producer.rollouts.plan import LOST, RolloutPlan, RolloutResult
from producer.workers.assignment import (
    GROUP,
    NUM_PARTITIONS,
    TOPIC,
    Assignment,
    without_turns,
)
from schemas import ids
from schemas.catalogue import stream, stream_owner, topic_of
from schemas.installation import Installation, without_secrets
from schemas.rollout import RolloutCancelled, RolloutFailed, RolloutFinished
from schemas.wire import InvalidPayloadError, UnknownSchemaError, UnreadableError

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
CHECK_S: Final = 3.0
READ_BACK_S: Final = 60.0


class LostWorkers:
    """Detects dead workers among those that run one trainer's rollouts. Not thread-safe."""

    def __init__(
        self,
        clients: KafkaClients,
        group: str,
        emitter: Emitter,
        training_id: UUID,
        clock: Callable[[], datetime],
    ) -> None:
        self._clients = clients
        self._group = group
        self._emitter = emitter
        self._training_id = training_id
        self._clock = clock
        self._checked_s = monotonic()
        self._missed: set[str] = set()
        """Workers missing from the group at the last check; they may have been rejoining."""

    def cancel_theirs(self, begun: Mapping[str, str], since: Mapping[TopicPartition, int]) -> None:
        """Cancel the rollouts of dead workers; checks at most every `CHECK_S`.

        `begun`: stream of each unfinished rollout -> the source of its events. `since`: offsets at
        or before their first records.
        """
        if monotonic() - self._checked_s < CHECK_S:
            return
        self._checked_s = monotonic()
        try:
            alive = member_names(self._clients, self._group)
            missed = {source for source in begun.values() if source not in alive}
            dead, self._missed = missed & self._missed, missed
            lost = [subject for subject, source in begun.items() if source in dead]
            if lost:
                self._cancel(lost, since)
        except UnreachableError as error:
            logger.warning("%s", error)

    def _cancel(self, lost: list[str], since: Mapping[TopicPartition, int]) -> None:
        environments = [
            stream("environment", ids.environment_id(stream_owner(subject))) for subject in lost
        ]
        histories = self._emitter.log.read_back_many(
            [*lost, *environments], since, timeout_s=READ_BACK_S
        )
        begun = {subject: history for subject, history in histories.items() if history.exists}
        number = close_orphans(
            TrainingHistory(begun), self._emitter, self._training_id, self._clock
        )
        logger.warning("cancelled %d rollouts of dead workers; running them again", number)


POLL_S: Final = 0.2
RETRY_S: Final = 1.0
GOLDEN_RATIO: Final = 0.6180339887
"""Its multiples modulo 1 are evenly spread, however many there are."""
SILENT_S: Final = 30.0
"""After this time without an event of any rollout, warn that no worker may be running."""


class SampledPolicy(Protocol):
    """The properties of the policy that workers need."""

    @property
    def name(self) -> str:
        """The policy's name in events."""

    @property
    def version(self) -> int:
        """Number of updates so far."""


@dataclass(frozen=True, slots=True)
class _Assigned:
    """A rollout assigned to a worker that has it or will get it."""

    plan: RolloutPlan
    history: StreamHistory
    partition: int


class WorkerEngine:
    """Assigns at most `max_under_way` rollouts at once; every plan yields one result.

    A rollout whose worker dies is recorded as cancelled, and its result has the error `LOST`. When
    `run` is closed, workers go on with their assigned rollouts, and the process that resumes the
    training reads the results. Not thread-safe.
    """

    def __init__(
        self,
        *,
        training_id: UUID,
        config: dict[str, JsonValue],
        policy: SampledPolicy,
        publish: Callable[[], PublishedPolicy | None],
        max_under_way: int,
        emitter: Emitter,
        installation: Installation,
        read_blob: Callable[[str], bytes],
        on_begin: Callable[[RolloutPlan], None],
        check_stop: Callable[[], None],
        clock: Callable[[], datetime],
    ) -> None:
        """`publish` loads the policy's version into the servers that workers sample from."""
        self._training_id = training_id
        self._config = config
        self._policy = policy
        self._publish = publish
        self._max_under_way = max_under_way
        self._emitter = emitter
        self._installation = installation
        self._read_blob = read_blob
        self._on_begin = on_begin
        self._check_stop = check_stop
        self._clock = clock
        self._pending: deque[RolloutPlan] = deque()
        self._under_way: dict[str, _Assigned] = {}
        """Assigned rollouts by stream."""
        self._unconfirmed: _Assigned | None = None
        """The last assignment, if Kafka has not confirmed it."""
        self._num_sent = 0

    def submit(self, plan: RolloutPlan, *, first: bool = False) -> None:
        """See `RolloutEngine.submit`."""
        self._pending.appendleft(plan) if first else self._pending.append(plan)

    def submit_finished(self, plan: RolloutPlan, turns: Sequence[Turn]) -> None:
        """No-op: workers sample from servers, whose batches are not repeated."""

    def run(self) -> Generator[RolloutResult, None, None]:
        """See `RolloutEngine.run`."""
        if not self._pending:
            return
        log = self._emitter.log
        clients = KafkaClients(self._installation)
        rollouts = topic_of(stream("rollout", self._training_id), log.topic_prefix)
        all_ends = self._reach(log.ends)
        ends = {at: end for at, end in all_ends.items() if at.topic == rollouts}
        published, since = self._publish(), bounds_to_json(ends)
        topic, group = log.topic_prefix + TOPIC, log.topic_prefix + GROUP
        lost = LostWorkers(clients, group, self._emitter, self._training_id, self._clock)
        with (
            closing(self._reach(partial(WorkSender, clients, topic, NUM_PARTITIONS))) as sender,
            closing(FollowedTopic(clients, ends)) as followed,
        ):
            heard_s = monotonic()
            while self._pending or self._under_way:
                self._check_stop()
                self._hand_out(sender, published, since)
                if self._read(followed):
                    heard_s = monotonic()
                elif monotonic() - heard_s > SILENT_S:
                    logger.warning(
                        "no events for %.0f s from any of %d rollouts; check that `cua-train"
                        " worker` is running, with the same Kafka and CUA_TOPIC_PREFIX",
                        *(SILENT_S, len(self._under_way)),
                    )
                    heard_s = monotonic()
                yield from self._ended()
                lost.cancel_theirs(self._sources(), ends)

    def _reach(self, ask: Callable[[], Answer]) -> Answer:
        """Retry until Kafka answers. Raises StopRequestedError."""
        while True:
            self._check_stop()
            try:
                return ask()
            except UnreachableError as error:
                logger.warning("retrying: %s", error)
                sleep(RETRY_S)

    def _sources(self) -> dict[str, str]:
        """Stream -> event source of each rollout that a worker has begun."""
        return {
            subject: assigned.history.events[0].envelope.source
            for subject, assigned in self._under_way.items()
            if assigned.history.events
        }

    def _hand_out(
        self, sender: WorkSender, published: PublishedPolicy | None, since: dict[str, int]
    ) -> None:
        unconfirmed = self._unconfirmed
        if unconfirmed is not None:
            is_known = bool(unconfirmed.history.events)
            if not is_known and not self._send(sender, unconfirmed, published, since):
                return
            self._unconfirmed = None
        while self._pending and len(self._under_way) < self._max_under_way:
            plan = self._pending.popleft()
            subject = stream("rollout", plan.id)
            partition = self._emptiest(sender.num_partitions)
            assigned = _Assigned(plan, StreamHistory(subject), partition)
            self._on_begin(plan)
            # Follow it even if unconfirmed, because a worker may have it.
            self._under_way[subject] = assigned
            if not self._send(sender, assigned, published, since):
                self._unconfirmed = assigned
                return

    def _send(
        self,
        sender: WorkSender,
        assigned: _Assigned,
        published: PublishedPolicy | None,
        since: dict[str, int],
    ) -> bool:
        """Whether Kafka confirmed it. A copy uses the same partition, so one worker gets both."""
        assignment = Assignment(
            training_id=self._training_id,
            config=self._config,
            plan=without_turns(assigned.plan),
            policy_name=self._policy.name,
            policy_version=self._policy.version,
            published=published,
            since=since,
            blobs=without_secrets(self._installation.blobs_url),
            may_be_copy=assigned is self._unconfirmed,
        )
        try:
            sender.send(assigned.partition, assigned.plan.name, assignment.value)
        except UnreachableError as error:
            logger.warning("retrying: %s", error)
            return False
        return True

    def _emptiest(self, num_partitions: int) -> int:
        """A partition with the fewest assigned rollouts.

        Adjacent partitions often belong to one worker, so consecutive rollouts go to distant ones.
        """
        counts = Counter(assigned.partition for assigned in self._under_way.values())
        self._num_sent += 1
        start = int(self._num_sent * GOLDEN_RATIO % 1 * num_partitions)
        return min(
            range(num_partitions),
            key=lambda number: (counts[number], (number - start) % num_partitions),
        )

    def _read(self, followed: FollowedTopic) -> bool:
        """Read new records of the log; returns whether any belongs to these rollouts."""
        try:
            records = followed.poll(POLL_S)
        except UnreachableError as error:
            logger.warning("waiting for Kafka: %s", error)
            return True
        is_any = False
        for key, value in records:
            if (assigned := self._under_way.get(key)) is None:
                continue
            is_any = True
            try:
                assigned.history.read_value(value)
            except (UnreadableError, UnknownSchemaError, InvalidPayloadError) as error:
                message = f"cannot read a worker's record of {key}: {error}"
                raise MismatchError(message) from None
        return is_any

    def _ended(self) -> Iterator[RolloutResult]:
        for subject, assigned in list(self._under_way.items()):
            result = self._result(assigned)
            if result is not None:
                del self._under_way[subject]
                yield result

    def _result(self, assigned: _Assigned) -> RolloutResult | None:
        plan, events = assigned.plan, assigned.history.events
        end = events[-1].payload if events else None
        if isinstance(end, RolloutFinished):
            result = recorded_result(plan, assigned.history, end, self._read_blob)
            message = "its screenshots are missing from the blob store"
            return result or self._failed(assigned, "environment", message, end.task_ended_at)
        if isinstance(end, RolloutFailed):
            return self._failed(assigned, end.error_type, end.error_message, end.ended_at)
        if isinstance(end, RolloutCancelled):
            return self._failed(assigned, LOST, end.reason, end.ended_at)
        return None

    def _failed(
        self, assigned: _Assigned, error_type: str, message: str, ended_at: datetime
    ) -> RolloutResult:
        taken = turns_taken(assigned.history)
        return RolloutResult(
            assigned.plan,
            RolloutFailed(
                error_type=error_type,
                error_message=message,
                num_turns=len(taken),
                ended_at=ended_at,
            ),
            policy_version=taken[0].policy_version if taken else self._policy.version,
            turn_seconds=turn_seconds(taken),
        )
