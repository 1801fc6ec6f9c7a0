"""Histories of trainings for tests and benchmarks: what writers would say, stream by stream, as the bytes of the log.

A seed decides everything. Nothing here knows what a projector does with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple
from uuid import UUID

from schemas import ids
from schemas.actions import Click, Terminate
from schemas.arrays import encode_float32, encode_int32
from schemas.base import Payload, Progress
from schemas.blobs import blob_ref
from schemas.catalogue import stream
from schemas.checkpoint import CheckpointSaved
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentFailed,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)
from schemas.evaluation import EvaluationCreated, EvaluationFinished, EvaluationProgressed, EvaluationStarted, EvaluationSuperseded
from schemas.event import StreamPoint
from schemas.group import GroupCreated, GroupDropped, GroupFailed, GroupFinished, GroupProgressed, GroupStarted, SourceType
from schemas.rollout import (
    RolloutAgentInitialized,
    RolloutCancelled,
    RolloutCreated,
    RolloutEnvironmentRequested,
    RolloutFailed,
    RolloutFinished,
    RolloutPhaseEntered,
    RolloutStarted,
)
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
    Recipe,
    StepSuperseded,
    TrainingCancelled,
    TrainingCompleted,
    TrainingCreated,
    TrainingInitializing,
    TrainingPaused,
    TrainingProgressed,
    TrainingResumed,
    TrainingStarted,
)
from schemas.turn import Sampling, TakenAction, TokenRecord, TurnTaken
from schemas.validation import ValidationRecorded
from schemas.wire import encode

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Said(NamedTuple):
    """One event as a writer hands it to the log."""

    subject: str
    value: bytes


@dataclass
class StreamWriter:
    """One stream's sequence numbers."""

    history: "History"
    subject: str
    epoch: int = 1
    sequence: int = 0
    continues: StreamPoint | None = None

    def say(self, payload: Payload) -> None:
        """The next event of the stream."""
        self.sequence += 1
        history = self.history
        value = encode(
            payload,
            id=ids.uuid7(history.now),
            source=f"//host/{self.epoch}",
            time=history.tick(),
            subject=self.subject,
            epoch=self.epoch,
            sequence=self.sequence,
            training_id=history.training,
            continues=self.continues,
        )
        self.continues = None
        history.said.append(Said(self.subject, value))

    def take_over(self) -> None:
        """A new writer goes on."""
        self.continues = StreamPoint(self.epoch, self.sequence)
        self.epoch, self.sequence = self.epoch + 1, 0


@dataclass
class Shape:
    """How large a history is, and how long its texts."""

    steps: int = 2
    groups: int = 2
    group_size: int = 2
    turns: int = 3
    response_chars: int = 20
    prompt_tokens: int = 12
    completion_tokens: int = 4
    has_trouble: bool = True
    """Failed and cancelled rollouts, failed groups and steps, pauses, resumes, older generations."""


@dataclass
class History:
    """A training from its creation to its end."""

    run_name: str
    random: Random
    shape: Shape = field(default_factory=Shape)
    said: list[Said] = field(default_factory=list)
    now: datetime = BEGAN

    def __post_init__(self) -> None:
        """The training's own stream."""
        self.training = ids.training_id(self.run_name)
        self.trainer = self.writer("training", self.training)
        self.tasks: list[UUID] = []
        self.validators: list[UUID] = []
        self.generation = 0
        self.version = 0

    def tick(self) -> datetime:
        """A little later."""
        self.now += timedelta(microseconds=self.random.randrange(1, 400_000))
        return self.now

    def writer(self, kind: str, owner: UUID) -> StreamWriter:
        """The writer of a new stream."""
        return StreamWriter(self, stream(kind, owner))

    def happens(self, probability: float) -> bool:
        """Whether some trouble strikes."""
        return self.shape.has_trouble and self.random.random() < probability

    def progress(self, percent: float) -> Progress:
        """As the trainer states it."""
        if self.random.random() < 0.2:
            return Progress(percent=percent)
        left = self.random.random() * 100
        return Progress(percent=percent, avg_turn_time_s=0.5, estimated_total_time_s=left + 10, estimated_remaining_time_s=left)

    def run(self) -> "History":
        """Everything."""
        self._begin()
        self._evaluate("baseline", 0)
        step = 1
        while step <= self.shape.steps:
            finished = self._step(step)
            if self.happens(0.15):
                self._resume(step)
            if finished:
                self._evaluate("scheduled", step)
            step += 1
        self.trainer.say(
            TrainingCompleted(current_step=self.shape.steps, progress=self.progress(100.0), ended_at=self.now, status_message="done")
        )
        return self

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
        say = self.trainer.say
        config = {"tasks": [{"source_type": "demo_training"}], "odd": "tab\there\\ nul\x00 ü€😀"}
        say(TrainingCreated(run_name=self.run_name, recipe=self._recipe(), total_steps=self.shape.steps, config=config))
        say(TrainingInitializing(status_message="loading"))
        for number in range(2):
            name, text = f"task_{number}", f"Turn\non {number}"
            definition = ids.content_hash([name, text])
            task = ids.task_row_id(name, definition)
            self.tasks.append(task)
            say(
                TaskStated(
                    id=task,
                    task_id=name,
                    definition_hash=definition,
                    name=name,
                    description=text,
                    difficulty="easy",
                    category="settings",
                    max_steps=5,
                    validation_type="shell",
                    validation_query="wifi_enabled",
                    expected_result="True",
                    tags=("a", "b"),
                    source_type="demo_training",
                )
            )
            content = [str(task), "shell", "wifi_enabled", "equals", {}]
            validator = ids.validator_row_id(content)
            self.validators.append(validator)
            say(
                ValidatorStated(
                    id=validator,
                    task_id=task,
                    validator_type="shell",
                    validation_query="wifi_enabled",
                    validation_method="equals",
                    config={},
                )
            )
        say(TrainingStarted(current_step=0))
        say(HeartbeatSent())

    def _resume(self, step: int) -> None:
        """Stopped or killed, and continued; sometimes from an older state."""
        if self.random.random() < 0.5:
            self.trainer.say(TrainingCancelled(status_message="Ctrl-C", ended_at=self.now))
        self.trainer.take_over()
        again = self.random.random() < 0.5
        old = self.generation
        self.generation += again
        self.trainer.say(
            TrainingResumed(
                generation=self.generation, current_step=step, total_steps=self.shape.steps, recipe=self._recipe(), config={"resumed": True}
            )
        )
        if again:
            source = ids.step_id(self.training, old, step)
            groups = tuple(ids.group_id(source, number) for number in range(self.shape.groups))
            self.trainer.say(StepSuperseded(step_id=source, group_ids=groups))
        self.trainer.say(TrainingStarted(current_step=step, status_message="resumed"))

    def _step(self, number: int) -> bool:
        say = self.trainer.say
        step = ids.step_id(self.training, self.generation, number)
        say(
            StepCreated(
                step_id=step, generation=self.generation, step=number, batch=number - 1, learning_rate=1e-3, model_path=f"v{self.version}"
            )
        )
        say(StepCollectionStarted(step_id=step))
        groups = [self._group_created(self.trainer, "step", step, group) for group in range(self.shape.groups)]
        say(StepRolloutsStarted(step_id=step, rollout_started_at=self.now))
        say(TrainingProgressed(current_phase="rollout", current_step=number - 1, progress=self.progress(10.0)))
        scored = []
        for index, group in enumerate(groups):
            scored.append((group, self._group(self.trainer, "step", step, group, index, f"step-{number}")))
            percent = 50.0 * (index + 1) / len(groups)
            progressed = StepProgressed(
                step_id=step,
                current_phase="rollout_execution",
                rollout_progress=percent * 2,
                training_progress=0.0,
                progress=self.progress(percent),
            )
            say(progressed)
        if self.happens(0.1):
            say(StepFailed(step_id=step, error_message="no group was left", ended_at=self.now))
            return False
        if self.happens(0.1):
            say(TrainingPaused(status_message="waiting for disk"))
            say(TrainingStarted(current_step=number - 1))
        say(StepTrainingStarted(step_id=step, rollout_ended_at=self.now, training_started_at=self.now))
        for group, rollouts in scored:
            self._choose(step, group, rollouts)
        self.version += 1
        rewards = [reward for _, rollouts in scored for _, reward in rollouts] or [0.0]
        mean = sum(rewards) / len(rewards)
        say(
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
            say(saved)
        return True

    def _choose(self, step: UUID, group: UUID, rollouts: list[tuple[UUID, float]]) -> None:
        if not rollouts:
            return
        rewards = [reward for _, reward in rollouts]
        mean = sum(rewards) / len(rewards)
        same = len(set(rewards)) == 1
        if same:
            self.trainer.say(GroupDropped(group_id=group, reason="zero_variance"))
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
        self.trainer.say(SamplesChosen(step_id=step, samples=samples))

    def _evaluate(self, kind: str, step: int) -> None:
        if kind == "baseline":
            owner = ids.baseline_id(self.training, self.generation)
        else:
            owner = ids.eval_id(self.training, self.generation, step)
        is_baseline = kind == "baseline"
        table: SourceType = "baseline" if is_baseline else "eval"
        evaluator = self.writer("evaluation", owner)
        about = {"kind": "baseline" if is_baseline else "scheduled"}
        evaluator.say(
            EvaluationCreated(
                **about, training_id=self.training, generation=self.generation, step=step, model_path="m", total_tasks=self.shape.group_size
            )
        )
        group = self._group_created(evaluator, table, owner, 0)
        evaluator.say(EvaluationStarted(**about, started_at=self.now))
        rollouts = self._group(evaluator, table, owner, group, 0, f"{table}-{step}")
        evaluator.say(
            EvaluationProgressed(
                **about, current_phase="rollout", current_task_index=1, completed_tasks=len(rollouts), progress=self.progress(50.0)
            )
        )
        evaluator.say(
            EvaluationFinished(
                **about,
                completed_tasks=len(rollouts),
                eval_time_s=3.25,
                success_rate=0.5,
                avg_reward=0.5,
                avg_turns=2.0,
                successful_tasks=1,
                ended_at=self.now,
                progress=self.progress(100.0),
                metrics={"standard_error": 0.1},
            )
        )
        if self.happens(0.1):
            evaluator.say(EvaluationSuperseded(**about, group_ids=(group,)))

    def _group_created(self, writer: StreamWriter, source_type: SourceType, source: UUID, number: int) -> UUID:
        group = ids.group_id(source, number)
        writer.say(
            GroupCreated(
                group_id=group, source_type=source_type, source_id=source, group_num=number, batch=0, num_rollouts=self.shape.group_size
            )
        )
        return group

    def _group(
        self, writer: StreamWriter, source_type: SourceType, source: UUID, group: UUID, number: int, label: str
    ) -> list[tuple[UUID, float]]:
        writer.say(GroupStarted(group_id=group, started_at=self.now))
        done: list[tuple[UUID, float]] = []
        for index in range(self.shape.group_size):
            attempt = 0
            while (reward := self._rollout(source_type, source, group, number, index, attempt, label)) is None and attempt < 2:
                attempt += 1
            if reward is not None:
                name = ids.rollout_name(self.run_name, self.generation, label, number, index, attempt)
                done.append((ids.rollout_id(name), reward))
            writer.say(GroupProgressed(group_id=group, completed_rollouts=len(done), progress=self.progress(10.0 * index)))
        if not done:
            writer.say(GroupFailed(group_id=group, completed_rollouts=0, error_message="no rollout ended", ended_at=self.now))
            return done
        rewards = [reward for _, reward in done]
        writer.say(
            GroupFinished(
                group_id=group,
                completed_rollouts=len(done),
                reward_mean=sum(rewards) / len(rewards),
                reward_std=0.5,
                success_count=int(sum(rewards)),
                rollout_ids=tuple(rollout for rollout, _ in done),
                ended_at=self.now,
                progress=self.progress(100.0),
                metrics={},
            )
        )
        return done

    def _rollout(
        self, source_type: SourceType, source: UUID, group: UUID, number: int, index: int, attempt: int, label: str
    ) -> float | None:
        name = ids.rollout_name(self.run_name, self.generation, label, number, index, attempt)
        owner = ids.rollout_id(name)
        device = ids.environment_id(owner)
        writer, maker = self.writer("rollout", owner), self.writer("environment", device)
        task = number % len(self.tasks)
        writer.say(
            RolloutCreated(
                rollout_id=name,
                source_type=source_type,
                source_id=source,
                group_id=group,
                batch=0,
                group_num=number,
                env_index=index,
                attempt=attempt,
                task_id=self.tasks[task],
                model_path=None,
                policy_version=self.version,
                is_eval=source_type != "step",
                max_turns=self.shape.turns,
                temperature=1.0,
                seed=self.random.randrange(2**53),
            )
        )
        maker.say(EnvironmentRequested(env_type="android_sim", box_type="android", config={"seed": index}))
        writer.say(RolloutEnvironmentRequested(env_id=device))
        maker.say(EnvironmentCreationStarted())
        if self.happens(0.08):
            maker.say(EnvironmentFailed(error_message="no device", terminated_at=self.now))
            writer.say(RolloutFailed(error_type="environment", error_message="no device", num_turns=0, ended_at=self.now))
            return None
        maker.say(EnvironmentStarted(gbox_id=f"sim-{index}", started_at=self.now))
        writer.say(RolloutAgentInitialized(env_creation_time_s=0.125))
        writer.say(RolloutStarted(agent_init_time_s=0.25, task_started_at=self.now))
        killed_at = self.random.randrange(self.shape.turns) if self.happens(0.08) else None
        for turn in range(1, self.shape.turns + 1):
            if killed_at == turn:
                # Its process died; whoever resumed closes it.
                for stream_writer in (writer, maker):
                    stream_writer.take_over()
                writer.say(RolloutCancelled(reason="its process died", ended_at=self.now))
                maker.say(EnvironmentTerminated(terminated_at=self.now, status_message="its process died"))
                return None
            writer.say(self._turn(turn))
        reward = float(self.random.random() < 0.5)
        writer.say(RolloutPhaseEntered(current_phase="validation", progress_percent=95.0))
        writer.say(
            ValidationRecorded(
                rollout_id=owner,
                validator_id=self.validators[task],
                validated_at=self.now,
                validation_query="wifi_enabled",
                expected_result="True",
                actual_result=str(bool(reward)),
                success=bool(reward),
                execution_time_s=0.0625,
                details={"shell": "settings get global wifi_on\n1"},
            )
        )
        writer.say(self._finished(reward))
        maker.say(EnvironmentTerminated(terminated_at=self.now))
        return reward

    def _turn(self, number: int) -> TurnTaken:
        shape = self.shape
        done = number == shape.turns
        picture = blob_ref(f"{self.run_name}{number}{self.random.random()}".encode())
        response = f'<tool_call>{{"name": "tap", "x": {number}}}\\n</tool_call>'.ljust(shape.response_chars, "x")
        tokens = TokenRecord(
            prompt_extends=None if number == 1 else number - 1,
            prompt_tokens=encode_int32(range(shape.prompt_tokens)),
            prompt_images=(picture,),
            completion_tokens=encode_int32(range(shape.completion_tokens)),
            completion_logprobs=encode_float32([-0.5] * shape.completion_tokens),
            sampling=Sampling(temperature=1.0, max_tokens=64),
            stop_reason="stop",
        )
        action = Terminate() if done else Click(x=10 * number, y=20)
        actions = [TakenAction(tool_name="tap", tool_args={"x": number, "y": 20.5}, action=action)]
        if self.random.random() < 0.1:
            actions.append(TakenAction(tool_name="fly", tool_args={}, action=None, error_type="tool_name", error_message="no such tool"))
        began = self.now
        return TurnTaken(
            turn=number,
            started_at=began,
            ended_at=began + timedelta(milliseconds=250),
            policy_version=self.version,
            screenshot_before=picture,
            screenshot_after=picture if not done else None,
            text="Turn\ton wifi \x00" if number == 1 else None,
            model_response=response,
            tokens=tokens if self.random.random() < 0.9 else None,
            actions=tuple(actions),
            reward=0.0,
            episode_done=done,
            progress_percent=90.0 * number / shape.turns,
            metrics={"sample_s": 0.1},
        )

    def _finished(self, reward: float) -> RolloutFinished:
        return RolloutFinished(
            task_ended_at=self.now,
            rollout_time_s=1.5,
            validation_time_s=0.0625,
            task_completed=True,
            task_success=bool(reward),
            agent_reported_success=True,
            validation_passed=bool(reward),
            num_turns=self.shape.turns,
            reward=reward,
            num_total_actions=self.shape.turns,
            consecutive_repeated_actions=0,
            parse_errors=0,
            tool_name_errors=0,
            tool_arg_errors=0,
            runtime_errors=0,
            ran_out_of_turns=False,
            attempted_completion=True,
            turn_first_success=None,
            turn_task_completed=self.shape.turns,
            num_tokens=self.shape.turns * self.shape.completion_tokens,
            errors=("one",) if self.random.random() < 0.2 else (),
            summary={"nan": float("inf")},
        )


def history(run_name: str, seed: int, shape: Shape | None = None) -> list[Said]:
    """One training, as its writers said it, in the order of saying."""
    return History(run_name, Random(seed), shape or Shape()).run().said


def interleaved(histories: list[list[Said]], random: Random) -> Iterator[Said]:
    """Several trainings at once; each stream keeps its order, streams do not."""
    streams: dict[str, list[Said]] = {}
    for said in histories:
        for one in said:
            streams.setdefault(one.subject, []).append(one)
    queues = [list(reversed(queue)) for queue in streams.values()]
    while queues:
        index = random.randrange(min(len(queues), 6))
        yield queues[index].pop()
        if not queues[index]:
            queues.pop(index)
