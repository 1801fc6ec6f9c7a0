"""A group of rollouts of one task that are compared, and the base class of what has groups."""

import statistics
from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from pydantic import JsonValue

from producer.record.recording import Part, Recording, Source, error_message, read_task
from producer.record.rollout import FinishedRollout, Place, Rollout
from producer.record.values import OrderError, choice, count, finite
from producer.rollouts.plan import StatedTask
from producer.task import Task
from producer.tasks.custom import CustomTask
from schemas import ids
from schemas.base import Progress
from schemas.group import GroupCreated, GroupDropped, GroupFailed, GroupFinished, GroupStarted
from schemas.step import Sample

DropReason = Literal["zero_variance", "stale"]
GROUP_METRICS: Final = frozenset(
    {
        "rollout_errors/total",
        "rollout_errors/groups_skipped",
        "env/all/reward/total",
        "env/all/success",
        "env/all/turns_per_episode",
        "env/all/total_episodes",
        "env/all/total_turns",
        "env/all/total_ac_tokens",
    }
)
"""Metrics that a step or an evaluation computes from its groups."""


class Group(Part):
    """Created by `Step.group` and `Evaluation.group`; use it in a `with` block or call `close`.

    Its rollouts may run concurrently, in any threads.
    """

    def __init__(
        self,
        recording: Recording,
        source: Source,
        num: int,
        task: StatedTask,
        num_rollouts: int,
        on_rollout: Callable[[], None],
    ) -> None:
        """`on_rollout` is called before the first rollout. Call with the recording's lock held."""
        super().__init__(recording, source.stream, f"group {num} of {source.name}")
        self.id = ids.group_id(source.id, num)
        self.task = task
        self.num_rollouts = num_rollouts
        self.first_failure: str | None = None
        self.num_failed = 0
        """Number of failed attempts."""
        self._source = source
        self._num = num
        self._on_rollout = on_rollout
        self._places: list[Rollout] = []
        """The latest attempt at each place."""
        self._advantages: tuple[float | None, ...] | None = None
        self._drop_reason: DropReason | None = None
        self._is_trained = False
        self._emit(
            GroupCreated(
                group_id=self.id,
                source_type=source.type,
                source_id=source.id,
                group_num=num,
                batch=source.batch,
                num_rollouts=num_rollouts,
            )
        )

    def rollout(
        self,
        *,
        retry_of: Rollout | None = None,
        policy_version: int | None = None,
        temperature: float | None = None,
        seed: int = 0,
        started_at: datetime | None = None,
    ) -> Rollout:
        """Begin the next attempt at the task.

        `retry_of`: a failed rollout of this group, whose place the new one takes. `policy_version`:
        version of the policy that samples it, if older than the current one. `temperature`: its
        sampling temperature; None: the training's. `seed`: its environment's seed. `started_at`:
        when it began, if it is recorded afterwards. Raises OrderError, ValueError.
        """
        with self._changing():
            index, attempt = self._next_place(retry_of)
            # Validate the arguments before the first event is emitted.
            rollout = Rollout(
                self._recording,
                Place(self._source, self.id, self._num, index, attempt, self.task),
                self._rollout_ended,
                policy_version=policy_version,
                temperature=temperature,
                seed=seed,
                started_at=started_at,
            )
            if not self._places:
                self._on_rollout()
                self._emit(GroupStarted(group_id=self.id, started_at=self._now()))
            self._places[index : index + 1] = [rollout]
            return rollout

    def advantages(self, values: Sequence[float | None]) -> None:
        """Set the weights of the finished rollouts in the update: one value each, in their order.

        Call it after the group has ended and before the step's update.
        """
        with self._recording.changing():
            self._check_not_trained()
            if self.end is None:
                message = f"{self.title} is open; give its advantages once it has ended"
                raise OrderError(message)
            num = len(self.finished)
            if len(values) != num:
                message = f"{self.title} has {num} finished rollouts, and {len(values)} advantages"
                raise ValueError(message)
            self._advantages = tuple(
                None if value is None else finite(f"advantages[{place}]", value)
                for place, value in enumerate(values)
            )

    def drop(self, reason: DropReason = "zero_variance") -> None:
        """Exclude this group from the step's update."""
        with self._recording.changing():
            self._check_not_trained()
            self._drop_reason = choice("reason", reason, DropReason)

    def close(self) -> None:
        """End the group. Raises OrderError while a rollout is open."""
        with self._changing():
            for rollout in self._places:
                if rollout.end is None:
                    message = (
                        f"{self.title} cannot end: {rollout.title} is open; call"
                        " finish(reward=...) or fail(reason) of it"
                    )
                    raise OrderError(message)
            if self.finished:
                self._emit(self._finished())
                self.end = "finished"
            else:
                why = self.first_failure or "it has no rollout"
                self._fail(f"no rollout ended with a reward: {why}")

    def _leave(self) -> None:
        self.close()

    def _abort(self, error: BaseException) -> None:
        for rollout in tuple(self._places):
            rollout.abort(error)
        self._fail(error_message(error))

    @property
    def finished(self) -> list[FinishedRollout]:
        """Rollouts that ended with a reward, in the order of their places."""
        return [rollout.finished for rollout in self._places if rollout.finished is not None]

    def train(self, version: int) -> tuple[list[Sample], GroupDropped | None]:
        """Samples for the step's update, which begins; `version` is that before the update."""
        self._is_trained = True
        reason: str | None = "group_failed" if self.end == "failed" else self._drop_reason
        finished = self.finished
        advantages = self._advantages or (None,) * len(finished)
        samples = [
            Sample(
                rollout_id=one.id,
                group_id=self.id,
                advantage=advantage,
                reward=one.reward,
                policy_version=one.policy_version,
                staleness=version - one.policy_version,
                num_tokens=one.num_tokens,
                used=reason is None,
                drop_reason=reason,
            )
            for one, advantage in zip(finished, advantages, strict=True)
        ]
        if self.end == "failed" or self._drop_reason is None:
            return samples, None
        return samples, GroupDropped(group_id=self.id, reason=self._drop_reason)

    def _next_place(self, retry_of: Rollout | None) -> tuple[int, int]:
        """The (place in the group, attempt) of the next rollout."""
        if retry_of is None:
            index = len(self._places)
            if index >= self.num_rollouts:
                message = (
                    f"{self.title} was planned with {self.num_rollouts} rollouts; give"
                    " group(num_rollouts=...), or group_size to record.open"
                )
                raise OrderError(message)
            return index, 0
        if not isinstance(retry_of, Rollout):
            message = f"retry_of must be a rollout, not {retry_of!r}"
            raise TypeError(message)
        if retry_of not in self._places:
            message = f"{retry_of.title} is no last attempt of {self.title}"
            raise OrderError(message)
        if retry_of.end not in {"failed", "cancelled"}:
            message = f"{retry_of.title} has not failed; only then it can be tried again"
            raise OrderError(message)
        return retry_of.place.env_index, retry_of.place.attempt + 1

    def _check_not_trained(self) -> None:
        if self._source.type != "step":
            message = f"{self.title}: nothing is trained on an evaluation"
            raise OrderError(message)
        if self._is_trained:
            message = f"the update of {self._source.name} has begun; it knows its samples"
            raise OrderError(message)

    def _rollout_ended(self, rollout: Rollout) -> None:
        if rollout.end != "finished":
            self.num_failed += 1
            if self.first_failure is None:
                self.first_failure = f"{rollout.name} {rollout.end}"

    def _fail(self, reason: str) -> None:
        self._emit(
            GroupFailed(
                group_id=self.id,
                completed_rollouts=len(self.finished),
                error_message=reason,
                ended_at=self._now(),
            )
        )
        self.end = "failed"

    def _finished(self) -> GroupFinished:
        finished = self.finished
        rewards = [one.reward for one in finished]
        return GroupFinished(
            group_id=self.id,
            completed_rollouts=len(finished),
            reward_mean=statistics.fmean(rewards),
            reward_std=statistics.pstdev(rewards),
            success_count=sum(one.success for one in finished),
            rollout_ids=tuple(one.id for one in finished),
            ended_at=self._now(),
            progress=Progress(percent=100.0),
            metrics={
                "num_turns": sum(one.num_turns for one in finished),
                "num_tokens": sum(one.num_tokens for one in finished),
            },
        )


class PartWithGroups(Part):
    """A step or an evaluation; use it in a `with` block or call `close`."""

    def __init__(self, recording: Recording, source: Source) -> None:
        """Call with the recording's lock held."""
        super().__init__(recording, source.stream, source.name)
        self.id: UUID = source.id
        self._source = source
        self._groups: list[Group] = []
        self._has_rollouts = False
        self._began_at = recording.now()

    @abstractmethod
    def close(self) -> None:
        """End it, durably on return. Raises OrderError while a group is open."""

    @abstractmethod
    def _check_takes(self, num_rollouts: int) -> None:
        """Raises OrderError if a group of this size cannot be added now."""

    @abstractmethod
    def _rollouts_begin(self) -> None:
        """Called once, before the first rollout."""

    def _groups_begin(self) -> None:
        """Called once, before the first group."""

    def group(self, task: "str | CustomTask | Task", *, num_rollouts: int | None = None) -> Group:
        """Begin the next group: rollouts of one task.

        `task`: its instruction, or a `record.Task`. `num_rollouts`: planned number; None: the
        training's group_size. Several groups may be open at once. Raises OrderError once a step's
        update has begun, and if an evaluation would exceed its planned rollouts.
        """
        recording = self._recording
        with self._changing():
            # Validate before the first event, so that a refused call leaves nothing behind.
            planned = recording.settings.group_size
            if num_rollouts is not None:
                planned = count("num_rollouts", num_rollouts, 1)
            plain = read_task(task, recording.settings.max_turns)
            self._check_takes(planned)
            num = len(self._groups)
            if num == 0:
                self._groups_begin()
            stated = recording.stated(plain)
            group = Group(recording, self._source, num, stated, planned, self._on_rollout)
            self._groups.append(group)
            return group

    def _leave(self) -> None:
        self.close()

    def _on_rollout(self) -> None:
        if not self._has_rollouts:
            self._has_rollouts = True
            self._rollouts_begin()

    def _check_ended(self) -> None:
        """Raises OrderError while a group is open."""
        for group in self._groups:
            if group.end is None:
                message = f"{self.title} cannot go on: {group.title} is open; close() it"
                raise OrderError(message)

    def _abort_groups(self, error: BaseException) -> None:
        for group in self._groups:
            group.abort(error)

    @property
    def _finished_rollouts(self) -> list[FinishedRollout]:
        """All rollouts that ended with a reward."""
        return [rollout for group in self._groups for rollout in group.finished]

    def _group_metrics(self) -> dict[str, JsonValue]:
        """Metrics with tinker-cookbook's names, as in our own trainer; empty without groups."""
        if not self._groups:
            return {}
        finished = self._finished_rollouts
        found: dict[str, JsonValue] = {
            "rollout_errors/total": sum(group.num_failed for group in self._groups),
            "rollout_errors/groups_skipped": sum(group.end == "failed" for group in self._groups),
        }
        if not finished:
            return found
        turns = sum(one.num_turns for one in finished)
        return {
            **found,
            "env/all/reward/total": statistics.fmean(one.reward for one in finished),
            "env/all/success": statistics.fmean(float(one.success) for one in finished),
            "env/all/turns_per_episode": turns / len(finished),
            "env/all/total_episodes": len(finished),
            "env/all/total_turns": turns,
            "env/all/total_ac_tokens": sum(one.num_tokens for one in finished),
        }
