"""State shared by all parts of one training process. Frozen; makes no decisions."""

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from producer.algorithms.settings import settings_of
from producer.config import RunConfig
from producer.emit import Emitter, StreamWriter
from producer.errors import StopRequestedError
from producer.policy.learner import Learner, PublishingLearner
from producer.policy.policy import Turn
from producer.resume.recorded_rollouts import recall
from producer.resume.training_history import TrainingHistory
from producer.rewards import Reward
from producer.rollouts.devices import LeftDevices
from producer.rollouts.engine import EnvironmentFactory, RolloutEngine
from producer.rollouts.episode import EpisodeSettings
from producer.rollouts.plan import GroupPlan, Recalled, RolloutPlan, RolloutResult, RolloutSource
from producer.rollouts.requests import Rubric
from producer.training.progress import ProgressEvents
from producer.validators.judges import AskModel
from schemas.installation import Installation


class Engine(Protocol):
    """Runs plans: in this process (`RolloutEngine`), or on workers (`WorkerEngine`)."""

    def submit(self, plan: RolloutPlan, *, first: bool = False) -> None:
        """Queue a plan; `first` puts it ahead of the others."""

    def submit_finished(self, plan: RolloutPlan, turns: Sequence[Turn]) -> None:
        """Queue an episode that an earlier process finished; it yields no result."""

    def run(self) -> Generator[RolloutResult, None, None]:
        """Yield results as they arrive until no plan is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One process that trains or evaluates a policy."""

    config: RunConfig
    run_name: str
    training_id: UUID | None
    """None when evaluating a policy that no training produced."""
    generation: int
    emitter: Emitter
    stream: StreamWriter
    """The training's stream, or the evaluation's when it is run by hand."""
    learner: Learner
    make_environment: EnvironmentFactory
    ask_model: AskModel | None = None
    """Asks the endpoints that judge tasks; None if no task uses one."""
    history: TrainingHistory
    """What earlier processes recorded."""
    clock: Callable[[], datetime]
    stop: threading.Event
    read_blob: Callable[[str], bytes]
    """Returns the bytes of a blob by its ref. Raises NotFoundError."""
    progress: ProgressEvents
    left_devices: LeftDevices = field(default_factory=LeftDevices)
    """Devices of this process that outlived their rollouts."""
    installation: Installation
    reward: Reward
    """Computes an episode's reward from its outcome, before costs."""
    rubric: Rubric | None = None
    """Grades completions; None: the validators' verdicts are used alone."""
    moving_baseline: float = 0.0
    """Moving average of earlier steps' rewards; 0 if the configuration does not use it."""

    @property
    def own_training_id(self) -> UUID:
        """The training that owns the steps. Raises ValueError for an evaluation without one."""
        if self.training_id is None:
            message = "this session evaluates a policy that no training made"
            raise ValueError(message)
        return self.training_id

    @property
    def claim_epoch(self) -> int:
        """Epoch of the session's stream; above 1 if this process resumes a training."""
        return max(1, self.stream.point.epoch)

    def check_stop(self) -> None:
        """Raise StopRequestedError if a stop was requested."""
        if self.stop.is_set():
            raise StopRequestedError

    def recalled(self, source: RolloutSource, groups: Sequence[GroupPlan]) -> Recalled:
        """What earlier processes recorded of these groups, including the turns a replay needs."""
        with_turns = self.learner.repeats_batches
        return recall(self.history.streams, source, groups, self.read_blob, with_turns=with_turns)

    def make_engine(self, on_begin: Callable[[RolloutPlan], None]) -> Engine:
        """A rollout engine with the session's policy and environments."""
        config = self.config
        if config.rollouts_by == "workers":
            # Imported here because importing kafka takes a tenth of a second.
            from producer.workers.worker_engine import WorkerEngine

            learner = self.learner
            publish = learner.publish if isinstance(learner, PublishingLearner) else lambda: None
            return WorkerEngine(
                training_id=self.own_training_id,
                config=config.recorded(),
                policy=self.learner,
                publish=publish,
                max_under_way=config.concurrent_rollouts,
                emitter=self.emitter,
                installation=self.installation,
                read_blob=self.read_blob,
                on_begin=on_begin,
                check_stop=self.check_stop,
                clock=self.clock,
            )
        return RolloutEngine(
            policy=self.learner,
            make_environment=self.make_environment,
            settings=settings_of(
                config,
                EpisodeSettings,
                training_id=self.training_id,
                ask_model=self.ask_model,
                rubric=self.rubric,
                reward=self.reward,
            ),
            max_concurrent=config.concurrent_rollouts,
            emitter=self.emitter,
            clock=self.clock,
            on_begin=on_begin,
            check_stop=self.check_stop,
            left_devices=self.left_devices,
        )
