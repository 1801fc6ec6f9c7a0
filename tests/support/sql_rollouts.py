"""What each hand-written training of an SQL agent logs: tasks, entries, rollouts of words."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from schemas import ids
from schemas.actions import Action, Answer, ExecuteSql, Terminate
from schemas.arrays import encode_float32, encode_int32
from schemas.entry import EntryContent, EntryStated, entry_hash
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)
from schemas.group import GroupCreated, GroupFinished, GroupStarted
from schemas.rollout import (
    RolloutAgentInitialized,
    RolloutCreated,
    RolloutEnvironmentRequested,
    RolloutFinished,
    RolloutStarted,
)
from schemas.task import TaskStated
from schemas.training import Recipe, TrainingCreated, TrainingInitializing, TrainingStarted
from schemas.turn import Sampling, TakenAction, TokenRecord, TurnTaken
from tests.reference_fold.writers import StreamWriter, Writers
from tests.support.defined_task import defined

SourceType = Literal["step", "eval", "baseline"]


class Said(NamedTuple):
    """One turn: what the agent observed and wrote, and what came of it."""

    text: str
    response: str
    actions: tuple[TakenAction, ...]


class Done(NamedTuple):
    """A rollout that has ended."""

    rollout: UUID
    reward: float


class SqlRun(Writers):
    """One training's writers, and what both kinds of it have in common."""

    def begin(self, environment: str, entries: Sequence[EntryContent]) -> None:
        """The training, its tasks and entries."""
        emit = self.trainer.emit
        recipe = Recipe(
            model_name="policies/qwen2-small",
            learning_rate=1e-5,
            batch_size=4,
            group_size=1 if environment == "dbbench" else 2,
            groups_per_batch=2,
            max_tokens=128,
            temperature=1.0,
            kl_penalty_coef=0.0,
            num_substeps=1,
            max_turns=3,
            seed=0,
            box_type="android",
        )
        config = {"environment": environment}
        emit(TrainingCreated(run_name=self.run_name, recipe=recipe, total_steps=3, config=config))
        emit(TrainingInitializing())
        self.entries: list[UUID] = []
        for content in entries:
            digest = entry_hash(content)
            stated = defined(
                TaskStated(
                    id=self.training,
                    task_id=content.entry_id,
                    definition_hash=digest,
                    name=" ".join(content.skills) or "question",
                    description=content.instruction,
                    difficulty=None,
                    category=None,
                    max_steps=3,
                    validation_type=None,
                    validation_query=None,
                    expected_result=None,
                    source_type=environment,
                )
            )
            emit(stated)
            task = stated.id
            entry = ids.entry_row_id(task, digest)
            emit(EntryStated(id=entry, task_id=task, content_hash=digest, content=content))
            self.tasks.append(task)
            self.entries.append(entry)
        emit(TrainingStarted(current_step=0))

    def group(
        self, writer: StreamWriter, kind: SourceType, source: UUID, number: int, size: int
    ) -> UUID:
        """A new group that has begun."""
        group = ids.group_id(source, number)
        created = GroupCreated(
            group_id=group,
            source_type=kind,
            source_id=source,
            group_num=number,
            batch=0,
            num_rollouts=size,
        )
        writer.emit(created)
        writer.emit(GroupStarted(group_id=group, started_at=self.now))
        return group

    def open_rollout(
        self, kind: SourceType, source: UUID, number: int, index: int, task: int, label: str
    ) -> StreamWriter:
        """A running rollout."""
        name = ids.rollout_name(self.run_name, 0, label, number, index, 0)
        owner = ids.rollout_id(name)
        device = ids.environment_id(owner)
        writer, maker = self.writer("rollout", owner), self.writer("environment", device)
        writer.emit(
            RolloutCreated(
                rollout_id=name,
                source_type=kind,
                source_id=source,
                group_id=ids.group_id(source, number),
                batch=0,
                group_num=number,
                env_index=index,
                attempt=0,
                task_id=self.tasks[task],
                model_path=None,
                policy_version=self.version,
                is_eval=kind != "step",
                max_turns=3,
                temperature=1.0,
                seed=number,
            )
        )
        maker.emit(EnvironmentRequested(env_type="sqlite", box_type="android", config={}))
        maker.emit(EnvironmentCreationStarted())
        maker.emit(EnvironmentStarted(gbox_id=f"sqlite-{number}", started_at=self.now))
        writer.emit(RolloutEnvironmentRequested(env_id=device))
        writer.emit(RolloutAgentInitialized(env_creation_time_s=0.002))
        writer.emit(RolloutStarted(agent_init_time_s=0.0, task_started_at=self.now))
        maker.emit(EnvironmentTerminated(terminated_at=self.now))
        return writer

    def say(self, writer: StreamWriter, turns: Sequence[Said]) -> None:
        """The turns, none of which has a screen."""
        for number, said in enumerate(turns, start=1):
            began = self.now
            tokens = TokenRecord(
                prompt_extends=number - 1 or None,
                prompt_tokens=encode_int32(range(12)),
                prompt_images=(),
                completion_tokens=encode_int32(range(9)),
                completion_logprobs=encode_float32([-0.5] * 9),
                sampling=Sampling(temperature=1.0, max_tokens=128, seed=number),
                stop_reason="stop",
            )
            writer.emit(
                TurnTaken(
                    turn=number,
                    started_at=began,
                    ended_at=began + timedelta(milliseconds=40),
                    policy_version=self.version,
                    screenshot_before=None,
                    screenshot_after=None,
                    text=said.text,
                    model_response=said.response,
                    tokens=tokens,
                    actions=said.actions,
                    reward=0.0,
                    episode_done=number == len(turns),
                    progress_percent=100.0 * number / len(turns),
                    metrics={"sample_s": 0.02},
                )
            )

    def finish(self, writer: StreamWriter, turns: int, reward: float, *, solved: bool) -> Done:
        """The rollout's end."""
        writer.emit(
            RolloutFinished(
                task_ended_at=self.now,
                rollout_time_s=0.2,
                validation_time_s=0.001,
                task_completed=solved,
                task_success=solved,
                agent_reported_success=None,
                validation_passed=solved,
                num_turns=turns,
                reward=reward,
                num_total_actions=turns,
                consecutive_repeated_actions=0,
                parse_errors=0,
                tool_name_errors=0,
                tool_arg_errors=0,
                runtime_errors=0,
                ran_out_of_turns=False,
                attempted_completion=True,
                turn_first_success=None,
                turn_task_completed=None,
                num_tokens=9 * turns,
            )
        )
        return Done(UUID(writer.subject.partition("/")[2]), reward)

    def end_group(self, writer: StreamWriter, group: UUID, done: Sequence[Done]) -> None:
        """All of its rollouts have ended."""
        rewards = [item.reward for item in done]
        mean = sum(rewards) / len(rewards)
        writer.emit(
            GroupFinished(
                group_id=group,
                completed_rollouts=len(rewards),
                reward_mean=mean,
                reward_std=0.0,
                success_count=sum(reward > 0 for reward in rewards),
                rollout_ids=tuple(item.rollout for item in done),
                ended_at=self.now,
                progress=self.progress(100.0),
                metrics={},
            )
        )


def executed(sql: str, error: str | None = None) -> TakenAction:
    return TakenAction(
        tool_name="Operation",
        tool_args={"sql": sql},
        action=ExecuteSql(sql=sql),
        error_type="runtime" if error else None,
        error_message=error,
    )


def answered(text: str) -> tuple[TakenAction, ...]:
    actions: tuple[Action, ...] = (Answer(text=text), Terminate())
    return tuple(
        TakenAction(tool_name="Answer", tool_args={"text": text}, action=action)
        for action in actions
    )
