"""One attempt at a task, from its plan to its end: which fact follows which.

Waits for nothing; the collector feeds it.

The attempt's environment runs on its own worker thread; each `on_…` takes what that thread or the
policy brought and submits the next job.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from queue import SimpleQueue
from time import monotonic
from typing import Literal
from uuid import UUID

from producer.emit import Emitter
from producer.environments.environment import ActionRefusedError, Environment, Screenshot
from producer.environments.worker import EnvironmentWorker, JobDone
from producer.policy.learner import TrainedTurn
from producer.policy.policy import Completion, PastTurn, SampleRequest
from producer.rewards import Outcome, binary_reward
from producer.rollouts.plan import RolloutPlan, RolloutResult
from producer.seeds import derived_seed
from producer.validators import Verdict, judge
from schemas import ids
from schemas.arrays import encode_float32, encode_int32
from schemas.catalogue import stream
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentFailed,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
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

Phase = Literal["opening", "deciding", "acting", "judging", "over"]


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """What all rollouts of a run share."""

    training_id: UUID | None
    max_tokens: int
    max_task_time_s: float
    max_turn_time_s: float
    turn_cost: float
    parse_error_cost: float


@dataclass(frozen=True, slots=True)
class _Acted:
    """What came of a turn's actions."""

    screenshot: Screenshot
    actions: tuple[TakenAction, ...]
    seconds: float


class Episode:
    """The attempt. Used from the collector's thread only."""

    def __init__(
        self,
        plan: RolloutPlan,
        environment: Environment,
        *,
        policy_name: str,
        policy_version: int,
        settings: EpisodeSettings,
        emitter: Emitter,
        clock: Callable[[], datetime],
        done: "SimpleQueue[JobDone[Episode]]",
    ) -> None:
        self.plan = plan
        self.phase: Phase = "opening"
        self.deadline_s = math.inf
        """Monotonic time at which the environment's running job counts as hung."""
        self.result: RolloutResult | None = None
        self._environment = environment
        self._settings = settings
        self._emitter = emitter
        self._clock = clock
        self._policy_name = policy_name
        self._policy_version = policy_version
        self._stream = emitter.stream(stream("rollout", plan.id), training_id=settings.training_id)
        self._environment_id = ids.environment_id(plan.id)
        self._environment_stream = emitter.stream(
            stream("environment", self._environment_id), training_id=settings.training_id
        )
        self._worker = EnvironmentWorker(self, done, name=plan.name)
        self._history: list[PastTurn] = []
        self._screenshot: Screenshot | None = None
        self._completion: Completion | None = None
        self._begun_s = self._task_begun_s = self._turn_begun_s = self._sampled_s = 0.0
        self._turn_started_at = clock()
        self._turn_seconds = 0.0
        self._taken: list[TakenAction] = []
        self._terminate: TakenAction | None = None

    def begin(self) -> None:
        """State the attempt and ask for its device."""
        plan = self.plan
        self._begun_s = monotonic()
        self._stream.emit(
            RolloutCreated(
                rollout_id=plan.name,
                source_type=plan.source.type,
                source_id=plan.source.id,
                group_id=plan.group_id,
                batch=plan.source.batch,
                group_num=plan.group_num,
                env_index=plan.env_index,
                attempt=plan.attempt,
                task_id=plan.task_row_id,
                model_path=self._policy_name,
                policy_version=self._policy_version,
                is_eval=plan.source.type != "step",
                max_turns=plan.max_turns,
                temperature=plan.temperature,
                seed=plan.seed,
            )
        )
        self._stream.emit(RolloutEnvironmentRequested(env_id=self._environment_id))
        environment = self._environment
        self._environment_stream.emit(
            EnvironmentRequested(
                env_type=environment.env_type,
                box_type=environment.box_type,
                config={"seed": plan.seed},
            )
        )
        self._environment_stream.emit(EnvironmentCreationStarted())
        self._submit(lambda: environment.open(plan.task, plan.seed))

    def request(self) -> SampleRequest:
        """What the policy is to complete; only in the phase `deciding`."""
        if self._screenshot is None:
            message = "a rollout asks for a completion before its environment is open"
            raise RuntimeError(message)
        self._turn_begun_s = monotonic()
        self._turn_started_at = self._clock()
        return SampleRequest(
            episode=self.plan.id,
            task=self.plan.task,
            history=tuple(self._history),
            screenshot=self._screenshot,
            temperature=self.plan.temperature,
            max_tokens=self._settings.max_tokens,
            seed=derived_seed(self.plan.sampling_seed, len(self._history) + 1),
        )

    def on_job(self, job: "JobDone[Episode]") -> None:
        """The environment's thread has brought something."""
        self.deadline_s = math.inf
        if job.error is not None:
            if not isinstance(job.error, Exception):
                raise job.error
            self.fail("environment", f"{type(job.error).__name__}: {job.error}")
        elif self.phase == "opening" and isinstance(job.value, Screenshot):
            self._on_open(job.value)
        elif self.phase == "acting" and isinstance(job.value, _Acted):
            self._on_acted(job.value)
        elif self.phase == "judging" and (job.value is None or isinstance(job.value, Verdict)):
            self._on_judged(job.value)
        else:
            self.fail("environment", f"expected a screenshot, found {type(job.value).__name__}")

    def _on_open(self, screenshot: Screenshot) -> None:
        now = self._clock()
        self._environment_stream.emit(
            EnvironmentStarted(gbox_id=self._environment.provider_id, started_at=now)
        )
        self._stream.emit(RolloutAgentInitialized(env_creation_time_s=monotonic() - self._begun_s))
        self._task_begun_s = monotonic()
        self._screenshot = screenshot
        self._stream.emit(
            RolloutStarted(agent_init_time_s=monotonic() - self._task_begun_s, task_started_at=now)
        )
        self.phase = "deciding"

    def on_completion(self, completion: Completion) -> None:
        """The policy has spoken: do what it says."""
        screenshot, environment = self._screenshot, self._environment
        if screenshot is None:
            message = "a rollout got a completion before its environment is open"
            raise RuntimeError(message)
        self._completion = completion
        self._sampled_s = monotonic()

        def act() -> _Acted:
            begun_s = monotonic()
            shown, taken = screenshot, []
            for call in completion.actions:
                action = call.action
                if action is not None and action.type not in {"terminate", "answer"}:
                    try:
                        shown = environment.act(action)
                    except ActionRefusedError as error:
                        taken.append(
                            call.model_copy(
                                update={"error_type": "runtime", "error_message": str(error)}
                            )
                        )
                        continue
                taken.append(call)
                if action is not None and action.type == "terminate":
                    break
            return _Acted(shown, tuple(taken), monotonic() - begun_s)

        self.phase = "acting"
        self._submit(act)

    def _on_acted(self, acted: _Acted) -> None:
        screenshot, completion = self._screenshot, self._completion
        if screenshot is None or completion is None:
            message = "a rollout acted before it decided"
            raise RuntimeError(message)
        turn = len(self._history) + 1
        self._taken.extend(acted.actions)
        terminate = next(
            (
                call
                for call in acted.actions
                if call.action is not None and call.action.type == "terminate"
            ),
            None,
        )
        self._terminate = terminate
        is_over = terminate is not None or turn >= self.plan.max_turns or self._is_out_of_time()
        seconds = monotonic() - self._turn_begun_s
        self._turn_seconds += seconds
        self._stream.emit(
            TurnTaken(
                turn=turn,
                started_at=self._turn_started_at,
                ended_at=self._clock(),
                policy_version=self._policy_version,
                screenshot_before=self._emitter.put_blob(screenshot.png),
                screenshot_after=self._emitter.put_blob(acted.screenshot.png),
                text=self.plan.task.description if turn == 1 else None,
                model_response=completion.text,
                tokens=self._token_record(completion, screenshot),
                actions=acted.actions,
                reward=0.0,
                episode_done=is_over,
                progress_percent=100.0 if is_over else 100.0 * turn / self.plan.max_turns,
                metrics={
                    "sample_s": round(self._sampled_s - self._turn_begun_s, 6),
                    "environment_s": round(acted.seconds, 6),
                },
            )
        )
        self._history.append(PastTurn(screenshot, completion.text, completion.tokens))
        self._screenshot = acted.screenshot
        if is_over:
            self._judge()
        else:
            self.phase = "deciding"

    def _judge(self) -> None:
        self.phase = "judging"
        self._stream.emit(RolloutPhaseEntered(current_phase="validation", progress_percent=100.0))
        task, environment = self.plan.task, self._environment

        def ask() -> Verdict | None:
            verdict = judge(task, environment.shell) if task.is_judged else None
            environment.close()
            return verdict

        self._sampled_s = monotonic()
        self._submit(ask)

    def _on_judged(self, verdict: Verdict | None) -> None:
        now, plan, settings = self._clock(), self.plan, self._settings
        validation_s = monotonic() - self._sampled_s
        if verdict is not None and plan.validator_row_id is not None:
            self._stream.emit(
                ValidationRecorded(
                    rollout_id=plan.id,
                    validator_id=plan.validator_row_id,
                    validated_at=now,
                    validation_query=verdict.query,
                    expected_result=verdict.expected,
                    actual_result=verdict.actual,
                    success=verdict.success,
                    execution_time_s=validation_s,
                    details=verdict.details,
                )
            )
        self._environment_stream.emit(EnvironmentTerminated(terminated_at=now))
        success = verdict is not None and verdict.success
        errors = {
            kind: sum(call.error_type == kind for call in self._taken)
            for kind in ("parse", "tool_name", "tool_arg", "runtime")
        }
        num_parse_errors = errors["parse"] + errors["tool_name"] + errors["tool_arg"]
        num_turns = len(self._history)
        reward = binary_reward(
            Outcome(success, num_turns, num_parse_errors),
            turn_cost=settings.turn_cost,
            parse_error_cost=settings.parse_error_cost,
        )
        num_tokens = sum(
            len(turn.tokens.completion_tokens) for turn in self._history if turn.tokens
        )
        reported = None if self._terminate is None else self._terminate.action.status == "success"  # type: ignore[union-attr]  # set with a terminate action only
        calls = [(call.tool_name, call.tool_args) for call in self._taken]
        self._stream.emit(
            RolloutFinished(
                task_ended_at=now,
                rollout_time_s=monotonic() - self._begun_s,
                validation_time_s=validation_s,
                task_completed=self._terminate is not None,
                task_success=success,
                agent_reported_success=reported,
                validation_passed=None if verdict is None else verdict.success,
                num_turns=num_turns,
                reward=reward,
                num_total_actions=len(calls),
                consecutive_repeated_actions=sum(one == other for one, other in pairwise(calls)),
                parse_errors=errors["parse"],
                tool_name_errors=errors["tool_name"],
                tool_arg_errors=errors["tool_arg"],
                runtime_errors=errors["runtime"],
                ran_out_of_turns=self._terminate is None and num_turns >= plan.max_turns,
                attempted_completion=self._terminate is not None,
                turn_first_success=None,
                turn_task_completed=num_turns if success and self._terminate is not None else None,
                num_tokens=num_tokens,
                errors=tuple(call.error_message for call in self._taken if call.error_message),
                summary={"task_id": plan.task.task_id, "seed": plan.seed},
            )
        )
        turns = tuple(
            TrainedTurn(turn.screenshot, turn.tokens) for turn in self._history if turn.tokens
        )
        self._end(
            RolloutResult(
                plan,
                "completed",
                success,
                reward,
                num_turns,
                num_tokens,
                self._policy_version,
                turns,
                num_parse_errors,
                self._turn_seconds,
            )
        )

    def fail(self, error_type: str, message: str) -> None:
        """The attempt cannot go on, by no fault of the agent."""
        now = self._clock()
        self._worker.submit(self._environment.close)
        self._environment_stream.emit(EnvironmentFailed(error_message=message, terminated_at=now))
        self._stream.emit(
            RolloutFailed(
                error_type=error_type,
                error_message=message,
                num_turns=len(self._history),
                ended_at=now,
            )
        )
        result = self._empty_result("failed")
        self._end(replace(result, error_type=error_type, error_message=message))

    def cancel(self, reason: str) -> None:
        """The run stops in order while the attempt is under way."""
        now = self._clock()
        self._worker.submit(self._environment.close)
        self._environment_stream.emit(
            EnvironmentTerminated(terminated_at=now, status_message=reason)
        )
        self._stream.emit(RolloutCancelled(reason=reason, ended_at=now))
        self._end(self._empty_result("cancelled"))

    def _empty_result(self, status: Literal["failed", "cancelled"]) -> RolloutResult:
        return RolloutResult(
            self.plan, status, success=False, reward=0.0, num_turns=len(self._history), num_tokens=0,
            policy_version=self._policy_version, turns=(), num_parse_errors=0, turn_seconds=self._turn_seconds,
        )  # fmt: skip

    def _end(self, result: RolloutResult) -> None:
        self.result = result
        self.phase = "over"
        self.deadline_s = math.inf
        # A worker that hangs must not bring an outcome later; one that is well still closes its
        # device first.
        (
            self._worker.abandon()
            if result.error_type == "environment_timeout"
            else self._worker.finish()
        )
        self._stream.close()
        self._environment_stream.close()

    def _is_out_of_time(self) -> bool:
        return monotonic() - self._task_begun_s > self._settings.max_task_time_s

    def _submit(self, job: Callable[[], object]) -> None:
        self.deadline_s = monotonic() + self._settings.max_turn_time_s
        self._worker.submit(job)

    def _token_record(self, completion: Completion, screenshot: Screenshot) -> TokenRecord | None:
        tokens = completion.tokens
        if tokens is None:
            return None
        shown = [*(turn.screenshot for turn in self._history), screenshot][
            -tokens.num_prompt_images :
        ]
        return TokenRecord(
            prompt_extends=tokens.prompt_extends,
            prompt_tokens=encode_int32(tokens.prompt_tokens),
            prompt_images=tuple(self._emitter.put_blob(image.png) for image in shown),
            completion_tokens=encode_int32(tokens.completion_tokens),
            completion_logprobs=encode_float32(tokens.completion_logprobs),
            sampling=Sampling(
                temperature=self.plan.temperature, max_tokens=self._settings.max_tokens
            ),
            stop_reason=tokens.stop_reason,
        )
