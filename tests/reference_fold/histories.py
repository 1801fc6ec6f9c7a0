"""Generated histories of trainings for tests and benchmarks, as the bytes that writers would log.

A seed decides everything. Nothing here knows how events are projected.
"""

from collections.abc import Iterator
from random import Random
from uuid import UUID

from pydantic import JsonValue

from schemas import ids
from schemas.annotation import TrainingAnnotated
from schemas.checkpoint import CheckpointSaved
from schemas.evaluation import (
    EvaluationCancelled,
    EvaluationCreated,
    EvaluationFailed,
    EvaluationFinished,
    EvaluationProgressed,
    EvaluationStarted,
    EvaluationSuperseded,
    Kind,
)
from schemas.group import GroupDropped, SourceType
from schemas.step import (
    Sample,
    SamplesChosen,
    StepCollectionStarted,
    StepCreated,
    StepFailed,
    StepFinished,
    StepProgressed,
    StepRolloutsStarted,
    StepTrainingStarted,
)
from schemas.task import TaskStated, ValidatorStated
from schemas.training import (
    HeartbeatSent,
    Phase,
    Recipe,
    StepSuperseded,
    TrainingCancelled,
    TrainingCompleted,
    TrainingCreated,
    TrainingFailed,
    TrainingInitializing,
    TrainingPaused,
    TrainingProgressed,
    TrainingResumed,
    TrainingStarted,
)
from tests.reference_fold.rare_events import score_rollouts, tell_rare
from tests.reference_fold.rollout_history import RolloutHistory
from tests.reference_fold.sql_history import tell_sql
from tests.reference_fold.writers import LoggedEvent, Shape

__all__ = ["LoggedEvent", "Shape", "history", "interleaved"]


class History(RolloutHistory):
    """A training from its creation to its end."""

    def run(self) -> "History":
        """All of it."""
        self._begin()
        self.has_trouble &= not self.shape.tells_everything  # One step goes its whole way.
        self._evaluate("baseline", 0)
        step = 1
        while step <= self.shape.steps:
            finished = self._step(step)
            self.has_trouble = self.shape.has_trouble
            if self.happens(0.15):
                self._resume(step)
            if finished:
                self._evaluate("scheduled", step)
            step += 1
        if self.shape.tells_everything:
            tell_rare(self, self._recipe())
        self._annotate()
        score_rollouts(self)
        tell_sql(self)
        self.trainer.emit(
            TrainingCompleted(
                current_step=self.shape.steps,
                progress=self.progress(100.0),
                ended_at=self.now,
                status_message="done",
            )
        )
        return self

    def _annotate(self) -> None:
        """Two people rename and tag the training, one after the other; it draws nothing."""
        state = self.random.getstate()
        writer = self.writer("annotation", self.training)
        for number in range(3):
            if number == 2:  # the second person
                writer.take_over()
            writer.emit(
                TrainingAnnotated(
                    training_id=self.training,
                    display_name=f"attempt {number}",
                    tags=("baseline", f"v{number}"),
                    note=None,
                    hidden=number == 1,
                )
            )
        self.random.setstate(state)

    def _recipe(self) -> Recipe:
        return Recipe(
            log_path=None,
            model_name="tiny",
            lora_rank=16,
            learning_rate=1e-3,
            batch_size=self.shape.groups * self.shape.group_size,
            group_size=self.shape.group_size,
            groups_per_batch=self.shape.groups,
            max_tokens=64,
            temperature=1.0,
            kl_penalty_coef=0.0,
            num_substeps=1,
            max_turns=self.shape.turns,
            seed=7,
            box_type="android",
        )

    def _begin(self) -> None:
        emit = self.trainer.emit
        config = {"tasks": [{"source_type": "demo_training"}], "odd": "tab\there\\ nul\x00 ü€😀"}
        emit(
            TrainingCreated(
                run_name=self.run_name,
                recipe=self._recipe(),
                total_steps=self.shape.steps,
                config=config,
            )
        )
        if self.shape.tells_everything:
            self._progress("training", 0)
        emit(TrainingInitializing(status_message="loading"))
        for number in range(2):
            self._state_task(number)
        emit(TrainingStarted(current_step=0))
        emit(HeartbeatSent())

    def _progress(self, phase: Phase, step: int) -> None:
        progress = self.progress(10.0)
        self.trainer.emit(
            TrainingProgressed(current_phase=phase, current_step=step, progress=progress)
        )

    def _state_task(self, number: int) -> None:
        """A task and its validator."""
        stated: dict[str, JsonValue] = {
            "task_id": f"task_{number}",
            "name": f"task_{number}",
            "description": f"Turn\non {number}",
            "difficulty": "easy",
            "category": "settings",
            "max_steps": 5,
            "validation_query": "wifi_enabled",
            "expected_result": "True",
            "tags": ["a", "b"],
            "app_name": None,
            "source_type": "demo_training",
        }
        definition = stated | {"setup": ["settings put global wifi_on 0"], "split": "train"}
        digest = ids.content_hash(definition)
        task = ids.task_row_id(f"task_{number}", digest)
        self.tasks.append(task)
        whole = TaskStated.model_validate(
            stated
            | {
                "id": task,
                "definition_hash": digest,
                "validation_type": "shell",
                "definition": definition,
            }
        )
        self.trainer.emit(whole)
        config: dict[str, JsonValue] = {"setup": ["settings put global wifi_on 0"]}
        content = [str(task), "shell", "wifi_enabled", "equals", config]
        validator = ids.validator_row_id(content)
        self.validators.append(validator)
        self.trainer.emit(
            ValidatorStated(
                id=validator,
                task_id=task,
                validator_type="shell",
                validation_query="wifi_enabled",
                validation_method="equals",
                config=config,
            )
        )

    def _resume(self, step: int) -> None:
        """Stopped or killed, and continued; sometimes from an older state."""
        if self.random.random() < 0.5:
            self.trainer.emit(TrainingCancelled(status_message="Ctrl-C", ended_at=self.now))
        elif self.ends_badly(0.5):
            self.trainer.emit(TrainingFailed(error_message="disk full", ended_at=self.now))
        self.trainer.take_over()
        again = self.random.random() < 0.5
        old = self.generation
        self.generation += again
        self.trainer.emit(
            TrainingResumed(
                generation=self.generation,
                current_step=step,
                total_steps=self.shape.steps,
                recipe=self._recipe(),
                config={"resumed": True},
            )
        )
        if again:
            source = ids.step_id(self.training, old, step)
            groups = tuple(ids.group_id(source, number) for number in range(self.shape.groups))
            self.trainer.emit(StepSuperseded(step_id=source, group_ids=groups))
        self.trainer.emit(TrainingStarted(current_step=step, status_message="resumed"))

    def _step(self, number: int) -> bool:
        emit = self.trainer.emit
        step = ids.step_id(self.training, self.generation, number)
        emit(
            StepCreated(
                step_id=step,
                generation=self.generation,
                step=number,
                batch=number - 1,
                learning_rate=1e-3,
                model_path=f"v{self.version}",
            )
        )
        emit(StepCollectionStarted(step_id=step))
        groups = [
            self.create_group(self.trainer, "step", step, group)
            for group in range(self.shape.groups)
        ]
        emit(StepRolloutsStarted(step_id=step, rollout_started_at=self.now))
        self._progress("rollout", number - 1)
        scored = []
        for index, group in enumerate(groups):
            scored.append(
                (group, self.run_group(self.trainer, "step", step, group, index, f"step-{number}"))
            )
            percent = 50.0 * (index + 1) / len(groups)
            progressed = StepProgressed(
                step_id=step,
                current_phase="rollout_execution",
                rollout_progress=percent * 2,
                training_progress=0.0,
                progress=self.progress(percent),
            )
            emit(progressed)
        if self.happens(0.1):
            emit(StepFailed(step_id=step, error_message="no group was left", ended_at=self.now))
            return False
        if self.happens(0.1):
            emit(TrainingPaused(status_message="waiting for disk"))
            emit(TrainingStarted(current_step=number - 1))
        emit(
            StepTrainingStarted(
                step_id=step, rollout_ended_at=self.now, training_started_at=self.now
            )
        )
        if self.shape.tells_everything:
            emit(progressed)
        for group, rollouts in scored:
            self._choose(step, group, rollouts)
        self.version += 1
        rewards = [reward for _, rollouts in scored for _, reward in rollouts] or [0.0]
        mean = sum(rewards) / len(rewards)
        emit(
            StepFinished(
                step_id=step,
                training_ended_at=self.now,
                loss=self.random.gauss(0, 1),
                kl_divergence=self.random.random() / 100,
                policy_gradient_norm=self.random.random(),
                reward_mean=mean,
                reward_std=0.25,
                num_trajectories=len(rewards),
                num_tokens=12 * len(rewards),
                policy_version=self.version,
                progress=self.progress(100.0),
                metrics={"optim/lr": 1e-3, "env/all/reward/total": mean, "odd": float("nan")},
            )
        )
        if self.random.random() < 0.5:
            saved = CheckpointSaved(
                step_id=step,
                generation=self.generation,
                step=number,
                path=f"/runs/{number}",
                policy_version=self.version,
                adapter_sha256="a" * 64,
            )
            emit(saved)
        return True

    def _choose(self, step: UUID, group: UUID, rollouts: list[tuple[UUID, float]]) -> None:
        if not rollouts:
            return
        rewards = [reward for _, reward in rollouts]
        mean = sum(rewards) / len(rewards)
        same = len(set(rewards)) == 1
        if same:
            self.trainer.emit(GroupDropped(group_id=group, reason="zero_variance"))
        samples = tuple(
            Sample(
                rollout_id=rollout,
                group_id=group,
                advantage=None if same else reward - mean,
                reward=reward,
                policy_version=self.version,
                staleness=0,
                num_tokens=12,
                used=not same,
                drop_reason="zero_variance" if same else None,
            )
            for rollout, reward in rollouts
        )
        self.trainer.emit(SamplesChosen(step_id=step, samples=samples))

    def _evaluate(self, kind: Kind, step: int) -> None:
        temperature = (None, 0.0, 1.0)[(self.training.int + step) % 3]
        owner = ids.point_id(self.training, self.generation, step, temperature)
        table: SourceType = "eval" if step else "baseline"
        evaluator = self.writer("evaluation", owner)
        evaluator.emit(
            EvaluationCreated(
                kind=kind,
                training_id=self.training,
                generation=self.generation,
                step=step,
                model_path="m",
                total_tasks=1,
                temperature=temperature,
                split=None if temperature is None else "held_out",
                num_tasks=step,
                task_source="demo_eval",
            )
        )
        group = self.create_group(evaluator, table, owner, 0)
        evaluator.emit(EvaluationStarted(kind=kind, started_at=self.now))
        rollouts = self.run_group(evaluator, table, owner, group, 0, f"{table}-{step}")
        evaluator.emit(
            EvaluationProgressed(
                kind=kind,
                current_phase="rollout",
                current_task_index=1,
                completed_tasks=len(rollouts),
                progress=self.progress(50.0),
            )
        )
        if self.ends_badly(0.05):
            failed = EvaluationFailed(kind=kind, error_message="no device", ended_at=self.now)
            evaluator.emit(failed)
            return
        if self.ends_badly(0.05):
            evaluator.emit(EvaluationCancelled(kind=kind, reason="Ctrl-C", ended_at=self.now))
            return
        evaluator.emit(
            EvaluationFinished(
                kind=kind,
                completed_tasks=len(rollouts),
                eval_time_s=3.25,
                success_rate=0.5,
                standard_error=None if temperature is None else 0.125,
                avg_reward=0.5,
                avg_turns=2.0,
                successful_tasks=1,
                ended_at=self.now,
                progress=self.progress(100.0),
                metrics={"standard_error": 0.1},
            )
        )
        if self.happens(0.1):
            evaluator.emit(EvaluationSuperseded(kind=kind, group_ids=(group,)))


def history(run_name: str, seed: int, shape: Shape | None = None) -> list[LoggedEvent]:
    """One training's events, in the order in which its writers append them."""
    return History(run_name, Random(seed), shape or Shape()).run().events


def interleaved(histories: list[list[LoggedEvent]], random: Random) -> Iterator[LoggedEvent]:
    """Several trainings at once; each stream keeps its order, streams do not."""
    streams: dict[str, list[LoggedEvent]] = {}
    for events in histories:
        for event in events:
            streams.setdefault(event.subject, []).append(event)
    queues = [list(reversed(queue)) for queue in streams.values()]
    while queues:
        index = random.randrange(min(len(queues), 6))
        yield queues[index].pop()
        if not queues[index]:
            queues.pop(index)
