"""The training loop: baseline, steps, evaluations, checkpoints.

Independent of the size of the policy and of the kind of device it controls.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from uuid import UUID

from producer.config import RunConfig
from producer.policy.learner import Learner
from producer.policy.remote_checkpoint import read_remote
from producer.policy.serialised import SerialisedLearner
from producer.resume import resume_state
from producer.resume.resume_state import Manifest
from producer.rollouts.plan import GroupOutcome, StatedTask
from producer.training.ahead import CollectAhead, EitherStop
from producer.training.batches import evaluates_after
from producer.training.evaluation import (
    EvaluatedTasks,
    EvaluationPlan,
    plan_evaluations,
    run_evaluation,
    skills_measured,
)
from producer.training.lifecycle import OwnedTraining
from producer.training.progress import Unit
from producer.training.run_files import write_sessions, write_transcripts
from producer.training.session import Session
from producer.training.step import CollectedStep, collect_step, next_baseline, train_step
from producer.training.summary import success_text
from schemas.base import Payload
from schemas.checkpoint import CheckpointSaved
from schemas.step import StepFinished

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TrainingLoop:
    """The part of a training that one process runs."""

    owned: OwnedTraining[RunConfig]
    session: Session
    tasks: Sequence[StatedTask]
    evaluated: EvaluatedTasks
    _begun_since: dict[int, dict[str, int]] = field(default_factory=dict)
    """For each step collected ahead: log offsets before its first record."""

    @property
    def manifest(self) -> Manifest:
        """The state after the last step; replaced after every step and evaluation."""
        return self.owned.manifest

    def run(self) -> None:
        """Run the training to its end."""
        session, config = self.session, self.session.config
        steps, evaluations = self._plan_units()
        for step in sorted({0, self.manifest.step}):
            # An earlier process may have died after this step and before its evaluation.
            self._evaluate(evaluations.get(step, ()))
        if config.baseline_only:
            return
        if config.max_steps_off_policy is None:
            self._train(steps, evaluations, self._collecting(steps))
            return
        self.session = session = replace(session, learner=SerialisedLearner(session.learner))
        stop = EitherStop(session.stop)
        with CollectAhead(
            self._collecting(steps, replace(session, stop=stop)),
            range(self.manifest.step + 1, config.num_steps + 1),
            max_ahead=config.max_steps_off_policy,
            stop=stop,
            check_stop=session.check_stop,
        ) as ahead:
            self._train(steps, evaluations, ahead.take, ahead)

    def _train(
        self,
        steps: Mapping[int, Unit],
        evaluations: Mapping[int, Sequence[EvaluationPlan]],
        collect: Callable[[int], CollectedStep],
        ahead: CollectAhead | None = None,
    ) -> None:
        """Train the remaining steps and run evaluations; `collect` returns a step's rollouts."""
        session, num_steps = self.session, self.session.config.num_steps
        for step in range(self.manifest.step + 1, num_steps + 1):
            session.check_stop()
            begun_s = monotonic()
            finished = train_step(
                session, collect(step), steps[step], self._save, self._on_collected
            )
            self.session = session = replace(session, moving_baseline=self.manifest.moving_baseline)
            session.progress.current_step = step
            session.progress.emit()
            _log_step(step, num_steps, finished, seconds=monotonic() - begun_s)
            if ahead is not None:
                ahead.trained(step)
            if step in evaluations:
                # Evaluations need all devices, and the weights must sample nothing else meanwhile.
                paused: AbstractContextManager[None] = ahead.paused() if ahead else nullcontext()
                with paused:
                    self._evaluate(evaluations[step])

    def _collecting(
        self, steps: Mapping[int, Unit], ahead: Session | None = None
    ) -> Callable[[int], CollectedStep]:
        """Return a function that collects a step; `ahead` is the collecting thread's session."""

        def collect(step: int) -> CollectedStep:
            session = ahead or self.session
            if session.config.max_steps_off_policy is not None:
                bounds = session.emitter.log.lower_bounds()
                self._begun_since[step] = resume_state.bounds_to_json(bounds)
            return collect_step(session, step, self.tasks, steps[step])

        return collect

    def _since(self, step: int) -> dict[str, int]:
        """Offsets at or before any record of the rollouts of `step` and later ones."""
        session = self.session
        now = resume_state.bounds_to_json(session.emitter.log.lower_bounds())
        if step <= session.history.last_step(session.generation):
            # An earlier process collected this step ahead.
            return self.manifest.since
        # Read after `now`: a step that begins in between is found here or starts later than `now`.
        return self._begun_since.pop(step, now)

    def _plan_units(self) -> tuple[dict[int, Unit], dict[int, tuple[EvaluationPlan, ...]]]:
        """Add every unit of the generation to the tracker; finished units count as done.

        Returns the units of the steps (from 1), and the evaluations by the step they follow (0:
        before the first step).
        """
        config, tracker = self.session.config, self.session.progress.tracker
        max_steps = max(task.task.max_steps for task in (*self.tasks, *self.evaluated.tasks))
        max_turns = min(config.max_turns, max_steps)

        def planned(step: int) -> tuple[EvaluationPlan, ...]:
            return plan_evaluations(self.session, self.evaluated, step, max_turns)

        steps: dict[int, Unit] = {}
        evaluations = {} if config.skip_baseline else {0: planned(0)}
        tracker.units.extend(item.unit for item in evaluations.get(0, ()))
        for step in range(1, 1 if config.baseline_only else config.num_steps + 1):
            steps[step] = Unit(config.rollouts_per_step, max_turns, is_step=True)
            units = [steps[step]]
            is_scheduled = config.eval_every and step % config.eval_every == 0
            if step == config.num_steps or is_scheduled or evaluates_after(config, step):
                evaluations[step] = planned(step)
                units += [evaluation.unit for evaluation in evaluations[step]]
            tracker.units.extend(units)
            if step <= self.manifest.step:
                for unit in units:
                    unit.finish()
        return steps, evaluations

    def _evaluate(self, planned: Sequence[EvaluationPlan]) -> None:
        """Run evaluations without a result, the main one first; only that one measures skills."""
        for item in planned:
            if any(summary.label == item.label for summary in self.manifest.evaluations):
                item.unit.finish()
                continue
            summary = run_evaluation(self.session, item, self.evaluated.tasks)
            if item is planned[0]:
                measured = skills_measured(self.session, item, summary)
                if measured is not None:
                    self.session.stream.emit(measured)
            self.owned.keep_evaluation(summary)
            logger.info("%s: %s", summary.label, success_text(summary))

    def _on_collected(
        self, step: int, outcomes: Sequence[GroupOutcome], advantages: dict[str, float]
    ) -> None:
        config = self.session.config
        if config.agent.has_skills:
            write_sessions(self.owned.folder, self.session.generation, step, outcomes)
        logged = outcomes[: config.num_groups_to_log]
        if logged:
            write_transcripts(self.owned.folder, self.session.generation, step, logged, advantages)

    def _save(self, finished: StepFinished) -> None:
        """Save the state to disk, then emit the events that refer to it."""
        owned, learner, config = self.owned, self.session.learner, self.session.config
        step = self.manifest.step + 1
        payloads: list[Payload] = [finished]
        if step == config.num_steps or (config.save_every and step % config.save_every == 0):
            owned.lock.check()
            checkpoint = save_checkpoint(
                owned.folder, learner, owned.generation, step, finished.step_id
            )
            payloads = [checkpoint, finished]
        owned.save_step(
            learner,
            step,
            payloads,
            since=self._since(step + 1),
            moving_baseline=next_baseline(finished),
        )


def save_checkpoint(
    run_folder: Path, learner: Learner, generation: int, step: int, step_id: UUID | None
) -> CheckpointSaved:
    """Save the adapter as a kept checkpoint and return the event to emit."""
    folder = resume_state.checkpoint_folder(run_folder, generation, step)
    digest = learner.save_checkpoint(folder)
    remote = read_remote(folder)
    return CheckpointSaved(
        step_id=step_id,
        generation=generation,
        step=step,
        path=str(folder) if remote is None else remote.weights,
        policy_version=learner.version,
        adapter_sha256=digest,
    )


def _log_step(step: int, num_steps: int, finished: StepFinished, *, seconds: float) -> None:
    per_token = finished.metrics.get("optim/loss_per_token")
    norm = finished.policy_gradient_norm
    logger.info(
        "step %d/%d: reward %.3f, success %.3f, loss %.4f%s, kl %.5f, gradient %s, %.1f s",
        step,
        num_steps,
        finished.reward_mean,
        finished.metrics["env/all/success"],
        finished.loss,
        "" if per_token is None else f" ({per_token:.4f} per token)",
        finished.kl_divergence,
        "unknown" if norm is None else f"{norm:.3f}",
        seconds,
    )
