"""The training loop: baseline, steps, evaluations, checkpoints.

Knows neither how big the policy is nor what kind of device it drives.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from uuid import UUID

from pydantic import JsonValue

from producer.policy.learner import Learner
from producer.resume import resume_state
from producer.resume.resume_state import EvaluationSummary, Manifest
from producer.rollouts.plan import StatedTask
from producer.training.evaluation import EvaluationPlan, run_evaluation
from producer.training.progress import Unit
from producer.training.session import Session
from producer.training.step import run_step
from schemas import ids
from schemas.base import Payload
from schemas.checkpoint import CheckpointSaved
from schemas.step import StepFinished


@dataclass(slots=True)
class TrainingLoop:
    """One process's share of a training."""

    session: Session
    run_folder: Path
    tasks: Sequence[StatedTask]
    eval_tasks: Sequence[StatedTask]
    manifest: Manifest
    """Where the training stands; replaced after every step."""

    def run(self) -> tuple[EvaluationSummary, ...]:
        """Bring the training to its end; every evaluation of this generation, oldest first."""
        session, config = self.session, self.session.config
        baseline, steps, evaluations = self._units()
        if baseline is not None:
            plan = EvaluationPlan(
                "baseline", ids.baseline_id(self._training_id, session.generation), "baseline", 0
            )
            self._evaluate(plan, baseline)
        if config.baseline_only:
            return self.manifest.evaluations
        if self.manifest.step in evaluations:
            # A process that died between a step and the end of its evaluation left that to do.
            self._evaluate_step(self.manifest.step, evaluations[self.manifest.step])
        for step in range(self.manifest.step + 1, config.num_steps + 1):
            session.check_stop()
            begun_s = monotonic()
            finished = run_step(session, step, self.tasks, steps[step], self._save)
            session.current_step = step
            session.state_progress()
            session.report(_line(step, config.num_steps, finished, monotonic() - begun_s))
            if step in evaluations:
                self._evaluate_step(step, evaluations[step])
        return self.manifest.evaluations

    @property
    def _training_id(self) -> UUID:
        if self.session.training_id is None:
            message = "a training loop needs a training"
            raise ValueError(message)
        return self.session.training_id

    def _units(self) -> tuple[Unit | None, dict[int, Unit], dict[int, Unit]]:
        """Every unit of the generation in the tracker: what is done counts as done."""
        config, tracker, done = self.session.config, self.session.tracker, self.manifest.step
        max_turns = min(
            config.max_turns, max(one.task.max_steps for one in (*self.tasks, *self.eval_tasks))
        )
        baseline = (
            None if config.skip_baseline else Unit(config.eval_episodes, max_turns, is_step=False)
        )
        if baseline is not None:
            tracker.units.append(baseline)
        steps, evaluations = {}, {}
        for step in range(1, config.num_steps + 1):
            steps[step] = Unit(config.batch_size, max_turns, is_step=True)
            tracker.units.append(steps[step])
            if step == config.num_steps or (config.eval_every and step % config.eval_every == 0):
                evaluations[step] = Unit(config.eval_episodes, max_turns, is_step=False)
                tracker.units.append(evaluations[step])
            if step <= done:
                for unit in (steps[step], evaluations.get(step)):
                    if unit is not None:
                        unit.finished_rollouts, unit.finished_turns, unit.is_trained = (
                            unit.num_rollouts,
                            unit.expected_turns,
                            True,
                        )
        return baseline, steps, evaluations

    def _evaluate_step(self, step: int, unit: Unit) -> None:
        plan = EvaluationPlan(
            "scheduled",
            ids.eval_id(self._training_id, self.session.generation, step),
            f"eval-{step}",
            step,
        )
        self._evaluate(plan, unit)

    def _evaluate(self, plan: EvaluationPlan, unit: Unit) -> None:
        if any(summary.label == plan.label for summary in self.manifest.evaluations):
            return
        summary = run_evaluation(self.session, plan, self.eval_tasks, unit)
        self.manifest = replace(self.manifest, evaluations=(*self.manifest.evaluations, summary))
        self.session.report(
            f"{plan.label}: success {summary.success:.3f} ± {summary.standard_error:.3f} over"
            f" {summary.episodes} episodes on unseen seeds"
        )

    def _save(self, finished: StepFinished) -> None:
        """State on disk, manifest last, and only then the facts that say so."""
        session, config = self.session, self.session.config
        step = self.manifest.step + 1
        folder = resume_state.begin_state(self.run_folder, session.generation, step)
        session.learner.save_state(folder)
        pending: list[Payload] = []
        if step == config.num_steps or (config.save_every and step % config.save_every == 0):
            pending.append(
                save_checkpoint(
                    self.run_folder, session.learner, session.generation, step, finished.step_id
                )
            )
        pending.append(finished)
        self.manifest = replace(
            self.manifest,
            step=step,
            policy_version=session.learner.version,
            log_id=session.emitter.log.log_id,
            since=resume_state.bounds_to_json(session.emitter.lower_bounds()),
            pending=tuple(_to_json(payload) for payload in pending),
        )
        resume_state.commit_state(folder, self.manifest)
        for payload in pending:
            session.speaker.say(payload)
        session.emitter.flush()
        resume_state.drop_old_states(self.run_folder, session.generation, step)


def save_checkpoint(
    run_folder: Path, learner: Learner, generation: int, step: int, step_id: UUID | None
) -> CheckpointSaved:
    """Write the adapter where checkpoints are kept; the fact that says so."""
    folder = run_folder / "checkpoints" / f"generation-{generation}" / f"step-{step:06d}"
    digest = learner.save_checkpoint(folder)
    return CheckpointSaved(
        step_id=step_id,
        generation=generation,
        step=step,
        path=str(folder),
        policy_version=learner.version,
        adapter_sha256=digest,
    )


def _to_json(payload: Payload) -> dict[str, JsonValue]:
    return {
        "type": payload.TYPE,
        "version": payload.VERSION,
        "data": payload.model_dump(mode="json"),
    }


def success_before_and_after(
    evaluations: Sequence[EvaluationSummary],
) -> Mapping[str, float | int | None]:
    """The summary's figures: the baseline (or first) evaluation, and the last."""
    before = next((one for one in evaluations if one.step == 0), None)
    after = max(evaluations, key=lambda one: one.step, default=None)
    if after is before:
        after = None
    return {
        "success_before": before.success if before else None,
        "success_after": after.success if after else None,
        "standard_error_before": before.standard_error if before else None,
        "standard_error_after": after.standard_error if after else None,
        "episodes": (after or before).episodes if (after or before) else 0,  # type: ignore[union-attr]  # one of them is there
    }


def _line(step: int, num_steps: int, finished: StepFinished, seconds: float) -> str:
    success = finished.metrics["env/all/success"]
    return (
        f"step {step}/{num_steps}: reward {finished.reward_mean:.3f}, success {success:.3f}, loss"
        f" {finished.loss:.4f}, kl {finished.kl_divergence:.5f}, gradient"
        f" {finished.policy_gradient_norm:.3f}, {seconds:.1f} s"
    )
