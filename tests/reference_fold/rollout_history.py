"""Events of groups and rollouts: environments, turns, validations, ends of every kind."""

from datetime import timedelta
from uuid import UUID

from schemas import ids
from schemas.actions import Click, Terminate
from schemas.arrays import encode_float32, encode_int32
from schemas.blobs import blob_ref
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentFailed,
    EnvironmentLeaked,
    EnvironmentReleased,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)
from schemas.group import (
    GroupCreated,
    GroupFailed,
    GroupFinished,
    GroupProgressed,
    GroupStarted,
    SourceType,
)
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
from schemas.turn import Sampling, TakenAction, TokenRecord, TurnTaken
from schemas.validation import ValidationRecorded
from tests.reference_fold.writers import StreamWriter, Writers


class RolloutHistory(Writers):
    """Groups with their rollouts."""

    def create_group(
        self, writer: StreamWriter, source_type: SourceType, source: UUID, number: int
    ) -> UUID:
        """A new group."""
        group = ids.group_id(source, number)
        writer.emit(
            GroupCreated(
                group_id=group,
                source_type=source_type,
                source_id=source,
                group_num=number,
                batch=0,
                num_rollouts=self.shape.group_size,
            )
        )
        return group

    def run_group(
        self,
        writer: StreamWriter,
        source_type: SourceType,
        source: UUID,
        group: UUID,
        number: int,
        label: str,
    ) -> list[tuple[UUID, float]]:
        """From its first rollout to its end; the rollouts that were scored."""
        writer.emit(GroupStarted(group_id=group, started_at=self.now))
        done: list[tuple[UUID, float]] = []
        for index in range(self.shape.group_size):
            attempt = 0
            while (
                reward := self._rollout(source_type, source, group, number, index, attempt, label)
            ) is None and attempt < 2:
                attempt += 1
            if reward is not None:
                name = ids.rollout_name(
                    self.run_name, self.generation, label, number, index, attempt
                )
                done.append((ids.rollout_id(name), reward))
            writer.emit(
                GroupProgressed(
                    group_id=group,
                    completed_rollouts=len(done),
                    progress=self.progress(10.0 * index),
                )
            )
        if not done or self.ends_badly(0.05):
            writer.emit(
                GroupFailed(
                    group_id=group,
                    completed_rollouts=len(done),
                    error_message="too few rollouts ended with a reward",
                    ended_at=self.now,
                )
            )
            return []
        rewards = [reward for _, reward in done]
        writer.emit(
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
        self,
        source_type: SourceType,
        source: UUID,
        group: UUID,
        number: int,
        index: int,
        attempt: int,
        label: str,
    ) -> float | None:
        name = ids.rollout_name(self.run_name, self.generation, label, number, index, attempt)
        owner = ids.rollout_id(name)
        device = ids.environment_id(owner)
        writer, maker = self.writer("rollout", owner), self.writer("environment", device)
        task = number % len(self.tasks)
        writer.emit(
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
        maker.emit(
            EnvironmentRequested(env_type="android_sim", box_type="android", config={"seed": index})
        )
        writer.emit(RolloutEnvironmentRequested(env_id=device))
        maker.emit(EnvironmentCreationStarted())
        if self.happens(0.08):
            if index % 2:
                maker.emit(EnvironmentLeaked(error_message="it hangs", leaked_at=self.now))
                maker.emit(EnvironmentReleased(released_at=self.now))
            else:
                maker.emit(EnvironmentFailed(error_message="no device", terminated_at=self.now))
            writer.emit(
                RolloutFailed(
                    error_type="environment",
                    error_message="no device",
                    num_turns=0,
                    ended_at=self.now,
                )
            )
            return None
        maker.emit(EnvironmentStarted(gbox_id=f"sim-{index}", started_at=self.now))
        writer.emit(RolloutAgentInitialized(env_creation_time_s=0.125))
        writer.emit(RolloutStarted(agent_init_time_s=0.25, task_started_at=self.now))
        killed_at = self.random.randrange(self.shape.turns) if self.happens(0.08) else None
        for turn in range(1, self.shape.turns + 1):
            if killed_at == turn:
                # Its process died; the resuming one closes it.
                for stream_writer in (writer, maker):
                    stream_writer.take_over()
                writer.emit(RolloutCancelled(reason="its process died", ended_at=self.now))
                maker.emit(
                    EnvironmentTerminated(terminated_at=self.now, status_message="its process died")
                )
                return None
            writer.emit(self._turn(turn))
        reward = float(self.random.random() < 0.5)
        writer.emit(RolloutPhaseEntered(current_phase="validation", progress_percent=95.0))
        writer.emit(
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
        writer.emit(self._finished(reward))
        maker.emit(EnvironmentTerminated(terminated_at=self.now))
        return reward

    def _turn(self, number: int) -> TurnTaken:
        shape = self.shape
        done = number == shape.turns
        picture = blob_ref(f"{self.run_name}{number}{self.random.random()}".encode())
        response = f'<tool_call>{{"name": "tap", "x": {number}}}\\n</tool_call>'.ljust(
            shape.response_chars, "x"
        )
        tokens = TokenRecord(
            prompt_extends=None if number == 1 else number - 1,
            prompt_tokens=encode_int32(range(shape.prompt_tokens)),
            prompt_images=(picture,),
            completion_tokens=encode_int32(range(shape.completion_tokens)),
            completion_logprobs=encode_float32([-0.5] * shape.completion_tokens),
            sampling=Sampling(temperature=1.0, max_tokens=64, seed=number),
            stop_reason="stop",
        )
        action = Terminate() if done else Click(x=10 * number, y=20)
        actions = [TakenAction(tool_name="tap", tool_args={"x": number, "y": 20.5}, action=action)]
        if self.random.random() < 0.1:
            actions.append(
                TakenAction(
                    tool_name="fly",
                    tool_args={},
                    action=None,
                    error_type="tool_name",
                    error_message="no such tool",
                )
            )
        began = self.now
        return TurnTaken(
            turn=number,
            started_at=began,
            ended_at=began + timedelta(milliseconds=250),
            policy_version=self.version,
            screenshot_before=picture,
            screenshot_after=picture if not done else None,
            screenshot_width_px=1080,
            screenshot_height_px=2400,
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
