"""Brings the groups of one source (a step or an evaluation) to their end.

Which attempts run, which are tried again, what is said of each.

Facts of groups go to the source's stream. What an earlier process has already brought in
(`Recalled`) is kept; only what is missing runs.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from producer.errors import CuaTrainError
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.plan import (
    GroupOutcome,
    GroupPlan,
    Recalled,
    RolloutPlan,
    RolloutResult,
    RolloutSource,
)
from producer.seeds import derived_seed
from producer.training.progress import ProgressTracker, Unit
from schemas import ids
from schemas.base import Payload
from schemas.group import GroupCreated, GroupFailed, GroupFinished, GroupProgressed, GroupStarted

PROGRESS_EVERY_S = 1.0
"""A group or its source states progress at most so often."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The part of the configuration that this needs."""

    run_name: str
    seed: int
    max_turns: int
    temperature: float
    failure_policy: str
    max_attempts: int
    min_group_size: int


class GroupRunner:
    """Runs the groups of one source; used once."""

    def __init__(
        self,
        source: RolloutSource,
        groups: Sequence[GroupPlan],
        *,
        settings: GroupSettings,
        recalled: Recalled,
        say: Callable[[Payload], None],
        make_engine: Callable[[Callable[[RolloutPlan], None]], RolloutEngine],
        tracker: ProgressTracker,
        unit: Unit,
        on_progress: Callable[[], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._source = source
        self._groups = {group.num: group for group in groups}
        self._settings = settings
        self._recalled = recalled
        self._say = say
        self._engine = make_engine(self._on_begin)
        self._tracker = tracker
        self._unit = unit
        self._on_progress = on_progress
        self._clock = clock
        self._results: dict[int, dict[int, RolloutResult | None]] = defaultdict(dict)
        """group -> place -> its scored rollout, None when it was given up."""
        self._statuses = dict(recalled.statuses)
        self._progressed_at: dict[int, datetime] = {}
        self._outcomes: dict[int, GroupOutcome] = {}

    def run(self) -> list[GroupOutcome]:
        """Outcomes in the groups' order. CuaTrainError under the policy fail_fast."""
        for group in self._groups.values():
            if group.id not in self._statuses:
                self._transition(
                    group,
                    GroupCreated(
                        group_id=group.id,
                        source_type=self._source.type,
                        source_id=self._source.id,
                        group_num=group.num,
                        batch=self._source.batch,
                        num_rollouts=len(group.seeds),
                    ),
                )
        for group in self._groups.values():
            for index in range(len(group.seeds)):
                recalled = self._recalled.results.get((group.num, index))
                if recalled is not None:
                    self._count(recalled)
                    self._settle(group, index, recalled)
                else:
                    self._engine.submit(
                        self._plan(
                            group, index, self._recalled.next_attempt.get((group.num, index), 0)
                        )
                    )
        results = self._engine.run()
        try:
            for result in results:
                self._take(result)
        finally:
            results.close()
        return [self._outcomes[num] for num in self._groups]

    def give_up(self, reason: str) -> None:
        """Fail every group that has not ended; for a source that nobody will continue."""
        for group in self._groups.values():
            if self._statuses.get(group.id) in {"pending", "running"}:
                scored = sum(result is not None for result in self._results[group.num].values())
                self._transition(
                    group,
                    GroupFailed(
                        group_id=group.id,
                        completed_rollouts=scored,
                        error_message=reason,
                        ended_at=self._clock(),
                    ),
                )

    def _take(self, result: RolloutResult) -> None:
        plan, settings = result.plan, self._settings
        group = self._groups[plan.group_num]
        if result.is_scored:
            self._count(result)
            self._settle(group, plan.env_index, result)
        elif settings.failure_policy == "fail_fast":
            message = (
                f"rollout {plan.name} failed ({result.error_type}): {result.error_message}; the"
                " failure policy is fail_fast"
            )
            raise CuaTrainError(message)
        elif (
            settings.failure_policy == "retry" and self._attempts_here(plan) < settings.max_attempts
        ):
            self._engine.submit(self._plan(group, plan.env_index, plan.attempt + 1), first=True)
        else:
            self._settle(group, plan.env_index, None)
        self._on_progress()

    def _attempts_here(self, plan: RolloutPlan) -> int:
        """Attempts of this process: what a dead process cut off is not the device's failure."""
        return (
            plan.attempt - self._recalled.next_attempt.get((plan.group_num, plan.env_index), 0) + 1
        )

    def _count(self, result: RolloutResult) -> None:
        self._tracker.turn_taken(result.turn_seconds, result.num_turns)
        self._unit.finished_rollouts += 1
        self._unit.finished_turns += result.num_turns

    def _plan(self, group: GroupPlan, index: int, attempt: int) -> RolloutPlan:
        source, settings, stated = self._source, self._settings, group.stated
        name = ids.rollout_name(
            settings.run_name, source.generation, source.label, group.num, index, attempt
        )
        return RolloutPlan(
            name=name,
            id=ids.rollout_id(name),
            source=source,
            group_id=group.id,
            group_num=group.num,
            env_index=index,
            attempt=attempt,
            task=stated.task,
            task_row_id=stated.row_id,
            validator_row_id=stated.validator_row_id,
            max_turns=min(settings.max_turns, stated.task.max_steps),
            temperature=settings.temperature,
            seed=group.seeds[index],
            sampling_seed=self._sampling_seed(group, index, attempt),
        )

    def _sampling_seed(self, group: GroupPlan, index: int, attempt: int) -> int:
        """The training's name is no part of it: the same configuration draws the same numbers.

        An episode of an evaluation draws the same in all of them, so that what two evaluations
        differ by is what the policy learnt.
        """
        source, seed = self._source, self._settings.seed
        if source.type == "step":
            return derived_seed(
                seed, "sampling", source.generation, source.label, group.num, index, attempt
            )
        return derived_seed(seed, "evaluation-sampling", group.seeds[index])

    def _on_begin(self, plan: RolloutPlan) -> None:
        group = self._groups[plan.group_num]
        if self._statuses.get(group.id) == "pending":
            self._transition(group, GroupStarted(group_id=group.id, started_at=self._clock()))

    def _settle(self, group: GroupPlan, index: int, result: RolloutResult | None) -> None:
        places = self._results[group.num]
        places[index] = result
        if len(places) < len(group.seeds):
            self._state_progress(group)
            return
        scored = tuple(result for _, result in sorted(places.items()) if result is not None)
        is_failed = len(scored) < min(self._settings.min_group_size, len(group.seeds))
        if self._statuses.get(group.id) not in {"completed", "failed"}:
            if is_failed:
                self._transition(
                    group,
                    GroupFailed(
                        group_id=group.id,
                        completed_rollouts=len(scored),
                        error_message=(
                            f"only {len(scored)} of {len(group.seeds)} rollouts could be brought to"
                            " their end"
                        ),
                        ended_at=self._clock(),
                    ),
                )
            else:
                self._transition(group, self._finished(group, scored))
        self._outcomes[group.num] = GroupOutcome(group, scored, is_failed)

    def _finished(self, group: GroupPlan, scored: Sequence[RolloutResult]) -> GroupFinished:
        rewards = [result.reward for result in scored]
        return GroupFinished(
            group_id=group.id,
            completed_rollouts=len(scored),
            reward_mean=statistics.fmean(rewards),
            reward_std=statistics.pstdev(rewards),
            success_count=sum(result.success for result in scored),
            rollout_ids=tuple(result.plan.id for result in scored),
            ended_at=self._clock(),
            progress=self._tracker.finished(),
            metrics={
                "num_turns": sum(result.num_turns for result in scored),
                "num_tokens": sum(result.num_tokens for result in scored),
            },
        )

    def _state_progress(self, group: GroupPlan) -> None:
        now = self._clock()
        last = self._progressed_at.get(group.num)
        if self._statuses.get(group.id) != "running" or (
            last is not None and (now - last).total_seconds() < PROGRESS_EVERY_S
        ):
            return
        self._progressed_at[group.num] = now
        places = self._results[group.num]
        scored = sum(result is not None for result in places.values())
        unit = Unit(num_rollouts=len(group.seeds), max_turns=self._unit.max_turns, is_step=False)
        unit.finished_rollouts = len(places)
        unit.finished_turns = sum(
            result.num_turns for result in places.values() if result is not None
        )
        self._say(
            GroupProgressed(
                group_id=group.id, completed_rollouts=scored, progress=self._tracker.of(unit)
            )
        )

    def _transition(self, group: GroupPlan, payload: Payload) -> None:
        self._say(payload)
        if payload.STATUS is not None:
            self._statuses[group.id] = payload.STATUS
