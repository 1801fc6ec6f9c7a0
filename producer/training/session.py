"""What every part of one training process shares: who we are, where facts go, how far we are.

No decisions are made here.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from uuid import UUID

from producer.config import RunConfig
from producer.emit import Emitter
from producer.emit.speaker import StreamSpeaker
from producer.errors import StopRequestedError
from producer.policy.learner import Learner
from producer.resume.training_history import TrainingHistory
from producer.rollouts.engine import EnvironmentFactory, RolloutEngine
from producer.rollouts.episode import EpisodeSettings
from producer.rollouts.plan import RolloutPlan
from producer.training.groups import GroupSettings
from producer.training.progress import ProgressTracker
from schemas.catalogue import stream_kind
from schemas.training import Phase, TrainingProgressed

PROGRESS_EVERY_S = 1.0


@dataclass(slots=True)
class Session:
    """One process that trains or evaluates."""

    config: RunConfig
    run_name: str
    training_id: UUID | None
    """None: an evaluation of a policy that no training made."""
    generation: int
    emitter: Emitter
    learner: Learner
    make_environment: EnvironmentFactory
    training_history: TrainingHistory
    speaker: StreamSpeaker
    """Of the training's stream."""
    clock: Callable[[], datetime]
    stop: threading.Event
    read_blob: Callable[[str], bytes]
    """Bytes of a blob by its ref; NotFoundError."""
    report: Callable[[str], None]
    """A line for the person who watches."""
    tracker: ProgressTracker
    current_step: int = 0
    phase: Phase = "initialization"
    begun_s: float = field(default_factory=monotonic)
    _progressed_s: float = 0.0

    def check_stop(self) -> None:
        """StopRequestedError when somebody asked for it."""
        if self.stop.is_set():
            raise StopRequestedError

    def make_engine(self, on_begin: Callable[[RolloutPlan], None]) -> RolloutEngine:
        """A rollout engine with the session's policy and devices."""
        config = self.config
        return RolloutEngine(
            policy=self.learner,
            make_environment=self.make_environment,
            settings=EpisodeSettings(
                training_id=self.training_id,
                max_tokens=config.max_tokens,
                max_task_time_s=config.max_task_time_seconds,
                max_turn_time_s=config.max_turn_time_seconds,
                turn_cost=config.turn_cost,
                parse_error_cost=config.parse_error_cost,
            ),
            max_concurrent=config.max_concurrent_rollouts,
            emitter=self.emitter,
            clock=self.clock,
            on_begin=on_begin,
            check_stop=self.check_stop,
        )

    def group_settings(self, *, is_eval: bool) -> GroupSettings:
        """How groups are run here."""
        config = self.config
        return GroupSettings(
            run_name=self.run_name,
            seed=config.seed,
            max_turns=config.max_turns,
            temperature=config.eval_temperature if is_eval else config.temperature,
            failure_policy=config.failure_policy,
            max_attempts=config.max_attempts,
            min_group_size=1 if is_eval else config.min_group_size,
        )

    def progressed(self, state_unit: Callable[[], None]) -> None:
        """State progress of the unit and of the training, at most once a second."""
        self.check_stop()
        now_s = monotonic()
        if now_s - self._progressed_s < PROGRESS_EVERY_S:
            return
        self._progressed_s = now_s
        self.tracker.elapsed_s = now_s - self.begun_s
        state_unit()
        self.state_progress()

    def state_progress(self) -> None:
        """State how far the training is.

        Nothing from an evaluation by hand, which speaks on its own stream alone.
        """
        if stream_kind(self.speaker.subject) == "training":
            self.speaker.say(
                TrainingProgressed(
                    current_phase=self.phase,
                    current_step=self.current_step,
                    progress=self.tracker.of_all(),
                )
            )
