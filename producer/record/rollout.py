"""A rollout: one attempt at a task, recorded turn by turn on its own stream."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

from producer.record import values
from producer.record.recording import (
    MAX_MESSAGE_CHARS,
    Part,
    Recording,
    Source,
    error_message,
)
from producer.record.turn import Prompt, picture, read_actions, read_tokens, response_text
from producer.record.values import OrderError, at_least, choice, count, json_fields, utc
from producer.rollouts.action_counts import count_actions
from producer.rollouts.plan import StatedTask
from schemas import ids
from schemas.actions import Terminate
from schemas.catalogue import stream
from schemas.rollout import (
    RolloutCancelled,
    RolloutCreated,
    RolloutFailed,
    RolloutFinished,
    RolloutStarted,
)
from schemas.turn import Sampling, TakenAction, TurnTaken

Boundary = Literal["environment", "environment_timeout", "policy", "validator", "reward", "loop"]
"""The part that failed; `loop` means an exception in the loop's own code."""
StopReason = Literal["stop", "length"]
LONGEST = timedelta(days=365)
"""Longest time between the beginning of a rollout and its recording."""
OWN_METRICS: Final = frozenset({"task_id", "num_prompt_tokens"})
"""Metrics that a finished rollout has without being given them."""


class Place(NamedTuple):
    """The place of a rollout in its group."""

    source: Source
    group_id: UUID
    group_num: int
    env_index: int
    attempt: int
    task: StatedTask


@dataclass(frozen=True, slots=True)
class FinishedRollout:
    """The data that its group and its step need from it."""

    id: UUID
    reward: float
    success: bool
    num_turns: int
    num_tokens: int
    policy_version: int


class Rollout(Part):
    """An attempt, created by `Group.rollout`; use a `with` block or call `finish` or `fail`."""

    def __init__(
        self,
        recording: Recording,
        place: Place,
        on_end: Callable[["Rollout"], None],
        *,
        policy_version: int | None,
        temperature: float | None,
        seed: int,
        started_at: datetime | None,
    ) -> None:
        """See `Group.rollout` for the arguments. Call with the recording's lock held."""
        source, settings, owned = place.source, recording.settings, recording.owned
        started = now = recording.now()
        if started_at is not None:
            started = utc("started_at", started_at, now - LONGEST, now)
        version = source.policy_version
        if policy_version is not None:
            version = count("policy_version", policy_version)
            if version > source.policy_version:
                message = (
                    f"policy_version {version} does not exist yet; {source.name} has version"
                    f" {source.policy_version}"
                )
                raise OrderError(message)
        sampled = source.temperature
        if temperature is not None:
            sampled = at_least("temperature", temperature, 0)
        self.name = ids.rollout_name(
            owned.name,
            owned.generation,
            source.label,
            place.group_num,
            place.env_index,
            place.attempt,
            recording.claim_epoch,
        )
        """The rollout's text id in tables and exports."""
        self.id = ids.rollout_id(self.name)
        self.place = place
        self.finished: FinishedRollout | None = None
        self.max_turns = min(settings.max_turns, place.task.task.max_steps)
        self._on_end = on_end
        self._temperature = sampled
        self._policy_version = version
        self._started_at = self._turn_began_at = started
        self._num_turns = self._num_tokens = self._num_prompt_tokens = 0
        self._actions: list[TakenAction] = []
        self._prompt: Prompt | None = None
        self._is_done = False
        created = RolloutCreated(
            rollout_id=self.name,
            source_type=source.type,
            source_id=source.id,
            group_id=place.group_id,
            batch=source.batch,
            group_num=place.group_num,
            env_index=place.env_index,
            attempt=place.attempt,
            task_id=place.task.row_id,
            model_path=settings.policy,
            policy_version=version,
            is_eval=source.type != "step",
            max_turns=self.max_turns,
            temperature=sampled,
            seed=count("seed", seed, maximum=values.MAX_SEED),
        )
        training_id = recording.stream.training_id
        own = recording.emitter.stream(stream("rollout", self.id), training_id=training_id)
        super().__init__(recording, own, f"rollout {self.name}")
        self._emit(created)
        self._emit(RolloutStarted(agent_init_time_s=0.0, task_started_at=started))

    def turn(
        self,
        *,
        completion: str,
        text: str | None = None,
        screenshot: bytes | None = None,
        screenshot_after: bytes | None = None,
        prompt_tokens: object = None,
        completion_tokens: object = None,
        completion_logprobs: object = None,
        prompt_images: Sequence[bytes] | None = None,
        actions: Sequence[object] = (),
        reward: float = 0.0,
        done: bool = False,
        stop_reason: StopReason = "stop",
        metrics: dict[str, object] | None = None,
    ) -> None:
        """Record a turn: what the policy saw, its completion, its actions.

        `completion`: the policy's text. `text`: the environment's text; None on turn 1: the task's
        instruction. `screenshot` and `screenshot_after`: what the policy saw before and after its
        actions, as the bytes of a PNG. `prompt_tokens`: tokens of the whole prompt, given together
        with `completion_tokens`. `completion_logprobs`: one per token, nats; None if not known.
        `prompt_images`: the images of the whole prompt in order; None: those of the prompt that it
        extends, then this turn's screenshot. `actions`: see `docs/recording.md`. `done`: the
        episode ends with this turn. After an OrderError, ValueError or TypeError nothing was
        recorded.
        """
        with self._changing():
            self._check_takes_turns()
            number, now = self._num_turns + 1, self._now()
            screen = None if screenshot is None else picture("screenshot", screenshot)
            after = None
            if screenshot_after is not None:
                after = picture("screenshot_after", screenshot_after)
            images = None
            if prompt_images is not None:
                images = [
                    picture(f"prompt_images[{i}]", png) for i, png in enumerate(prompt_images)
                ]
            limit = self._recording.settings.max_tokens
            tokens = read_tokens(
                number,
                self._prompt,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                completion_logprobs=completion_logprobs,
                images=images,
                screenshot=screen,
                sampling=Sampling(temperature=self._temperature, max_tokens=limit),
                stop_reason=choice("stop_reason", stop_reason, StopReason),
            )
            taken = read_actions(actions)
            is_last = values.flag("done", done)
            is_over = is_last or number >= self.max_turns
            payload = TurnTaken(
                turn=number,
                started_at=self._turn_began_at,
                ended_at=now,
                policy_version=self._policy_version,
                screenshot_before=None if screen is None else screen.ref,
                screenshot_after=None if after is None else after.ref,
                screenshot_width_px=None if screen is None else screen.width_px,
                screenshot_height_px=None if screen is None else screen.height_px,
                text=self._observed(text),
                model_response=response_text(completion),
                tokens=None if tokens is None else tokens.record,
                actions=taken,
                reward=values.reward("reward", reward),
                episode_done=is_over,
                progress_percent=100.0 if is_over else 100.0 * number / self.max_turns,
                metrics=json_fields(metrics or {}),
            )
            for image in (screen, after, *(images or ())):
                if image is not None:
                    self._recording.emitter.put_blob(image.png, image.ref)
            self._emit(payload)
            self._num_turns, self._turn_began_at, self._is_done = number, now, is_last
            self._actions.extend(taken)
            if tokens is not None:
                self._prompt = tokens.after
                self._num_tokens += tokens.num_completion
                self._num_prompt_tokens += tokens.num_prompt

    def finish(
        self,
        *,
        reward: float,
        success: bool | None = None,
        metrics: dict[str, object] | None = None,
    ) -> None:
        """End the episode with a reward. `success` None: a reward above 0 counts as solved.

        `metrics`: anything else to know of it, under any names but those in `OWN_METRICS`.
        """
        with self._changing():
            value = values.reward("reward", reward)
            is_solved = value > 0 if success is None else values.flag("success", success)
            self._emit(self._finished(value, metrics or {}, success=is_solved))
            self.finished = FinishedRollout(
                self.id,
                value,
                is_solved,
                self._num_turns,
                self._num_tokens,
                self._policy_version,
            )
            self._ended("finished")

    def fail(self, reason: str, boundary: Boundary = "environment") -> None:
        """End the attempt as failed through no fault of the agent; it is never scored.

        `Group.rollout(retry_of=...)` makes another attempt at the same place.
        """
        with self._changing():
            known = choice("boundary", boundary, Boundary)
            self._fail(values.text("reason", reason)[:MAX_MESSAGE_CHARS], known)

    def _leave(self) -> None:
        message = (
            f"{self.title} left its block without an end; call finish(reward=...) or fail(reason)"
        )
        raise OrderError(message)

    def _abort(self, error: BaseException) -> None:
        reason = error_message(error)
        if isinstance(error, Exception):
            self._fail(reason, "loop")
            return
        self._emit(RolloutCancelled(reason=reason, ended_at=self._now()))
        self._ended("cancelled")

    def _check_takes_turns(self) -> None:
        if self._is_done:
            message = f"{self.title} had its last turn (done=True); call finish or fail"
            raise OrderError(message)
        if self._num_turns >= self.max_turns:
            message = (
                f"{self.title} has had its {self.max_turns} turns; raise max_turns of"
                " record.open, or max_steps of the task"
            )
            raise OrderError(message)

    def _observed(self, given: str | None) -> str | None:
        if given is not None:
            return values.text("text", given)
        return self.place.task.task.description if self._num_turns == 0 else None

    def _fail(self, reason: str, boundary: Boundary) -> None:
        self._emit(
            RolloutFailed(
                error_type=boundary,
                error_message=reason,
                num_turns=self._num_turns,
                ended_at=self._now(),
            )
        )
        self._ended("failed")

    def _ended(self, how: str) -> None:
        self.end = how
        self._stream.close()
        self._prompt = None
        self._on_end(self)

    def _finished(
        self, reward: float, metrics: dict[str, object], *, success: bool
    ) -> RolloutFinished:
        now = self._now()
        ended = next((c.action for c in self._actions if isinstance(c.action, Terminate)), None)
        is_ended = ended is not None or self._is_done
        others = json_fields(metrics)
        for name in others:
            values.refuse_own(name, OWN_METRICS)
        return RolloutFinished(
            task_ended_at=now,
            rollout_time_s=max(0.0, (now - self._started_at).total_seconds()),
            validation_time_s=0.0,
            task_completed=is_ended,
            task_success=success,
            agent_reported_success=None if ended is None else ended.status == "success",
            validation_passed=None,
            num_turns=self._num_turns,
            reward=reward,
            **count_actions(self._actions),
            ran_out_of_turns=not is_ended and self._num_turns >= self.max_turns,
            attempted_completion=is_ended,
            turn_first_success=None,
            turn_task_completed=self._num_turns if success and is_ended else None,
            num_tokens=self._num_tokens,
            summary={
                "task_id": self.place.task.task.task_id,
                "num_prompt_tokens": self._num_prompt_tokens,
                **others,
            },
        )
