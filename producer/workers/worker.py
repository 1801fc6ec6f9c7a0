"""A worker: a member of the consumer group that runs rollouts of trainings on other hosts.

An assignment gives the same episode as in the trainer's process.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Final
from uuid import UUID

from pydantic import ValidationError

from producer.algorithms.settings import settings_of
from producer.bounded_text import cut
from producer.codecs.codec import Codec
from producer.config import RunConfig
from producer.config.run_config import read_continued
from producer.emit import Emitter
from producer.endpoint_url import KEY_VARIABLE
from producer.environments.environment import Environment
from producer.environments.wrapper import BlankedEnvironment
from producer.errors import (
    CuaTrainError,
    MismatchError,
    StopRequestedError,
    UnreachableError,
    UsageError,
)
from producer.log.kafka_client import KafkaClients
from producer.log.kafka_queue import Work, WorkMember
from producer.policy.policy import Completion, Policy, SampleRequest
from producer.resume.resume_state import bounds_from_json
from producer.rollouts.devices import LeftDevices
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.episode import EpisodeSettings
from producer.rollouts.events import rollout_created
from producer.rollouts.plan import RolloutPlan
from producer.workers.assignment import GROUP, NUM_PARTITIONS, TOPIC, Assignment
from producer.workers.token_served import TokenServedPolicy
from schemas.catalogue import stream
from schemas.installation import Installation, without_secrets
from schemas.rollout import RolloutFailed

logger = logging.getLogger(__name__)

POLL_S: Final = 0.1
SHIP_S: Final = 30.0
"""Time limit for the events of finished rollouts to arrive in Kafka."""


@dataclass(slots=True)
class _Job:
    """A rollout run by one of the threads."""

    work: Work
    assignment: Assignment | None
    """None: the record is not an assignment, or is a copy of one that is running here."""
    ended: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class Worker:
    """Runs at most `max_rollouts` at once, each on its own thread. Call `run` once."""

    def __init__(
        self,
        emitter: Emitter,
        installation: Installation,
        clock: Callable[[], datetime],
        *,
        max_rollouts: int,
        stop: threading.Event,
    ) -> None:
        """Once `stop` is set it takes no new rollouts, and returns when the running ones end."""
        self._emitter = emitter
        self._installation = installation
        self._max_rollouts = max_rollouts
        self._stop = stop
        self._give_up = threading.Event()
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._jobs: list[_Job] = []
        self._make_runner = partial(
            AssignmentRunner, emitter, installation.blobs_url, clock, self._give_up
        )
        self.num_ended = 0

    def run(self, on_ready: Callable[[], None]) -> None:
        """Run until `stop` is set. `on_ready` is called once the group has this member.

        Raises UnreachableError, UsageError, and whatever a rollout's code raises.
        """
        prefix = self._emitter.log.topic_prefix
        clients = KafkaClients(self._installation, self._stop)
        threads = [
            threading.Thread(target=self._work, name=f"rollout-{number}", daemon=True)
            for number in range(self._max_rollouts)
        ]
        member = WorkMember(
            *(clients, prefix + TOPIC, prefix + GROUP, NUM_PARTITIONS), self._emitter.source
        )
        with closing(member):
            for thread in threads:
                thread.start()
            try:
                self._take_until_stopped(member, on_ready)
            finally:
                self._give_up.set()
                for _ in threads:
                    self._queue.put(None)

    def _take_until_stopped(self, member: WorkMember, on_ready: Callable[[], None]) -> None:
        is_ready = False
        while not self._stop.is_set() or self._jobs:
            free = 0 if self._stop.is_set() else self._max_rollouts - len(self._jobs)
            try:
                taken = member.poll(free, POLL_S)
            except UnreachableError as error:
                logger.warning("waiting for Kafka: %s", error)
                self._stop.wait(1.0)
                continue
            if not is_ready and member.partitions:
                is_ready = True
                on_ready()
            for work in taken:
                self._begin(work)
            self._settle(member)

    def _begin(self, work: Work) -> None:
        assignment = read_assignment(work.value)
        if assignment is not None and assignment.plan.id in {
            job.assignment.plan.id for job in self._jobs if job.assignment is not None
        }:
            assignment = None
        job = _Job(work, assignment)
        self._jobs.append(job)
        self._queue.put(job)

    def _settle(self, member: WorkMember) -> None:
        """Commit the finished rollouts once their events are in Kafka."""
        ended = [job for job in self._jobs if job.ended.is_set()]
        for job in ended:
            if job.error is not None:
                raise job.error
        if not ended:
            return
        try:
            self._emitter.flush(SHIP_S)
            self._emitter.log.wait_shipped(SHIP_S)
            for job in ended:
                member.ended(job.work)
            member.commit()
        except UnreachableError as error:
            # They are committed with the next ones; if this worker dies first, its successor checks
            # them.
            logger.warning("%s", error)
            return
        self._jobs = [job for job in self._jobs if job not in ended]
        self.num_ended += len(ended)

    def _work(self) -> None:
        runner = self._make_runner()
        while (job := self._queue.get()) is not None:
            try:
                if job.assignment is not None:
                    may_have_begun = job.work.may_have_begun or job.assignment.may_be_copy
                    runner.run(job.assignment, may_have_begun=may_have_begun)
            except StopRequestedError:
                logger.debug("a rollout was stopped")
            except BaseException as error:  # noqa: BLE001  # raised by the main thread
                job.error = error
            job.ended.set()


def read_assignment(value: bytes) -> Assignment | None:
    """The assignment in a record; None if the record is not an assignment.

    Raises MismatchError for one of another release; a worker that can read it gets it next.
    """
    try:
        return Assignment.model_validate_json(value)
    except ValidationError:
        if b'"training_id"' not in value:
            logger.warning("skipped a record of the %s topic that is not an assignment", TOPIC)
            return None
        message = (
            "cannot read an assignment: its trainer runs another release of cua-train; install"
            " that release on this worker"
        )
        raise MismatchError(message) from None


READ_BACK_S = 60.0


class AtVersion:
    """A scripted policy with the name and version that its trainer gives it."""

    repeats_batches = False

    def __init__(self, inner: Policy, name: str, version: int) -> None:
        self._inner = inner
        self.name = name
        self.version = version

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """See `Policy.sample`."""
        return self._inner.sample(requests)

    def forget(self, episode: UUID) -> None:
        """See `Policy.forget`."""
        self._inner.forget(episode)


class AssignmentRunner:
    """Runs assignments one after another; each thread of a worker has its own."""

    def __init__(
        self,
        emitter: Emitter,
        blobs_url: str,
        clock: Callable[[], datetime],
        stop: threading.Event,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Once `stop` is set, a running rollout is recorded as cancelled."""
        self._emitter = emitter
        self._blobs = without_secrets(blobs_url)
        self._clock = clock
        self._stop = stop
        self._environ = environ
        self._left_devices = LeftDevices()

    def run(self, assignment: Assignment, *, may_have_begun: bool) -> None:
        """Run the rollout to its end. Its events are then recorded but not yet shipped.

        It is recorded as failed if this host lacks something for it (a package, a reward function's
        file). `may_have_begun`: another worker may have begun the rollout; if so it is left alone,
        because the trainer watches that worker. Raises UsageError if the trainer uses another blob
        store, and StopRequestedError.
        """
        if self._blobs != assignment.blobs:
            message = (
                f"CUA_BLOBS: this worker stores screenshots in {self._blobs}, but the trainer"
                f" reads them from {assignment.blobs}; set the same store on both"
            )
            raise UsageError(message)
        if may_have_begun and self._has_begun(assignment):
            return
        try:
            engine = self._engine(assignment)
        except (CuaTrainError, ValueError) as error:
            self._record_failure(assignment, str(error))
            return
        engine.submit(assignment.plan)
        for result in engine.run():
            logger.debug("rollout %s: %s", result.plan.name, result.end.TYPE)

    def _record_failure(self, assignment: Assignment, reason: str) -> None:
        plan = assignment.plan
        message = cut(f"worker {self._emitter.source} cannot run it: {reason}")
        logger.warning("rollout %s failed: %s", plan.name, message)
        writer = self._emitter.stream(
            stream("rollout", plan.id), training_id=assignment.training_id
        )
        writer.emit(rollout_created(plan, assignment.policy_name, assignment.policy_version))
        writer.emit(
            RolloutFailed(
                error_type="environment",
                error_message=message,
                num_turns=0,
                ended_at=self._clock(),
            )
        )
        writer.close()

    def _has_begun(self, assignment: Assignment) -> bool:
        rollout = stream("rollout", assignment.plan.id)
        since = bounds_from_json(assignment.since)
        while True:
            self._check_stop()
            try:
                return self._emitter.log.read_back(rollout, since, timeout_s=READ_BACK_S).exists
            except UnreachableError as error:
                logger.warning("retrying: %s", error)

    def _engine(self, assignment: Assignment) -> RolloutEngine:
        config = read_continued({}, assignment.config, overwrite=False)
        policy, make_environment = self._open(assignment, config)
        return RolloutEngine(
            policy=policy,
            make_environment=make_environment,
            settings=self._settings(assignment, config),
            max_concurrent=1,
            emitter=self._emitter,
            clock=self._clock,
            on_begin=lambda _plan: None,
            check_stop=self._check_stop,
            left_devices=self._left_devices,
        )

    def _settings(self, assignment: Assignment, config: RunConfig) -> EpisodeSettings:
        ask_model = None
        if assignment.plan.task.validation_type == "model":
            # Imported here because importing it takes a third of a second.
            from producer.validators.model_judge import open_judge

            ask_model = open_judge(self._environ, config.max_turn_time_seconds)
        return settings_of(
            config,
            EpisodeSettings,
            training_id=assignment.training_id,
            ask_model=ask_model,
            reward=config.make_reward(),
        )

    def _open(
        self, assignment: Assignment, config: RunConfig
    ) -> tuple[Policy, Callable[[RolloutPlan], Environment]]:
        name, version = assignment.policy_name, assignment.policy_version
        published = assignment.published
        if published is None:
            oracle, make_environment = config.agent.open_oracle(config)
            return AtVersion(oracle, name, version), lambda plan: make_environment(plan.id)
        policy = TokenServedPolicy(
            published,
            named_codec(config, published.codec),
            self._environ.get(KEY_VARIABLE) or None,
            name=name,
            version=version,
            timeout_s=config.max_turn_time_seconds,
            max_recent_turns=config.max_recent_turns,
        )

        def make(_plan: RolloutPlan) -> Environment:
            environment = config.agent.make_environment(config)
            is_blanked = config.ablate == "blank-screenshots"
            return BlankedEnvironment(environment) if is_blanked else environment

        return policy, make

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise StopRequestedError


def named_codec(config: RunConfig, name: str) -> Codec:
    """The codec with this name for the configuration's agent. Raises CuaTrainError without one."""
    from producer.policy.served import FORMATS

    own = config.agent.text_format(config)
    if own is not None and own.codec.name == name:
        return own.codec
    if name not in FORMATS:
        message = f"no format {name!r} in this release; run the trainer's release on workers too"
        raise CuaTrainError(message)
    return FORMATS[name].codec
