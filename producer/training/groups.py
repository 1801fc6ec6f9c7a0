"""Runs the groups of one source (a step or an evaluation) to their end.

Decides which attempts run and which are retried, and emits the groups' events on the source's
stream. Results of an earlier process are kept; only missing ones are run.
"""

import logging
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime

from producer.console import ProgressBar, progress_bar
from producer.emit import StreamWriter
from producer.errors import CuaTrainError
from producer.rollouts.plan import (
    LOST,
    GroupOutcome,
    GroupPlace,
    GroupPlan,
    Recalled,
    RolloutPlan,
    RolloutResult,
    RolloutSource,
)
from producer.seeds import derived_seed
from producer.training.progress import Unit
from producer.training.session import Session
from schemas import ids
from schemas.group import GroupCreated, GroupFailed, GroupFinished, GroupProgressed, GroupStarted
from schemas.rollout import RolloutFailed

logger = logging.getLogger(__name__)

PROGRESS_EVERY_S = 1.0
"""Minimum interval between two GroupProgressed events of a group."""


class GroupRunner:
    """Runs the groups of one source. Use once, from one thread."""

    def __init__(
        self,
        session: Session,
        source: RolloutSource,
        groups: Sequence[GroupPlan],
        *,
        stream: StreamWriter,
        unit: Unit,
        temperature: float,
        top_p: float = 1.0,
        min_group_size: int = 1,
        on_progress: Callable[[], None],
        recalled: Recalled,
    ) -> None:
        """`stream` is the source's. `recalled`: what earlier processes recorded of the groups."""
        self._session, self._config, self._tracker = (
            session,
            session.config,
            session.progress.tracker,
        )
        self._source, self._stream, self._unit = source, stream, unit
        self._groups = {group.num: group for group in groups}
        self._temperature, self._top_p = temperature, top_p
        self._min_group_size = min_group_size
        self._recalled, self._on_progress = recalled, on_progress
        self._engine = session.make_engine(self._on_begin)
        self._results: dict[int, dict[int, RolloutResult | None]] = defaultdict(dict)
        """Group -> place -> its scored rollout; None if given up."""
        self._errors: dict[int, list[str]] = defaultdict(list)
        """Group -> `error_type` of its failed attempts."""
        self._lost: Counter[GroupPlace] = Counter()
        """Attempts that ended because their worker died."""
        self._first_failed: str | None = None
        """Name and error of the first failed attempt."""
        self._progressed_at: dict[int, datetime] = {}
        self._outcomes: dict[int, GroupOutcome] = {}
        self._bar = ProgressBar()

    def run(self) -> list[GroupOutcome]:
        """Run all groups; returns outcomes in order. Raises CuaTrainError under fail_fast."""
        for group in self._groups.values():
            if self._status(group) is None:
                self._stream.emit(self._created(group))
        num_rollouts = sum(len(group.seeds) for group in self._groups.values())
        with progress_bar(self._source.label, num_rollouts) as self._bar:
            for group in self._groups.values():
                self._submit_missing(group)
            with closing(self._engine.run()) as results:
                for result in results:
                    self._take(result)
        return [self._outcomes[num] for num in self._groups]

    def give_up(self, reason: str) -> None:
        """Fail every unfinished group of a source that will not be continued."""
        for group in self._groups.values():
            if self._status(group) in {"pending", "running"}:
                self._stream.emit(self._failed(group, reason))

    def first_failure(self) -> str:
        """Why the first attempt failed, for the message that no group succeeded."""
        if self._first_failed is None:
            return "see error_message of its rollouts"
        return f"first failure: {self._first_failed}"

    def _status(self, group: GroupPlan) -> str | None:
        return self._stream.status(("group", group.id))

    def _submit_missing(self, group: GroupPlan) -> None:
        """Reuse finished results and submit the missing ones; a failed group stays failed."""
        has_failed = self._status(group) == "failed"
        for index in range(len(group.seeds)):
            place = (group.num, index)
            recalled = self._recalled.results.get(place)
            attempt = self._recalled.next_attempt.get(place, 0)
            turns = self._recalled.turns.get(place, ())
            if recalled is not None:
                self._count(recalled)
                self._settle(group, index, recalled, is_recalled=True)
                self._engine.submit_finished(self._plan(group, index, attempt), turns)
            elif has_failed:
                self._settle(group, index, None, is_recalled=True)
            else:
                plan = self._plan(group, index, attempt)
                self._engine.submit(replace(plan, recorded=turns))

    def _take(self, result: RolloutResult) -> None:
        if result.failure is None:
            self._count(result)
            self._settle(self._groups[result.plan.group_num], result.plan.env_index, result)
        else:
            self._take_failed(result.plan, result.failure)
        self._on_progress()

    def _take_failed(self, plan: RolloutPlan, failure: RolloutFailed) -> None:
        config, group = self._config, self._groups[plan.group_num]
        self._errors[group.num].append(failure.error_type)
        if self._first_failed is None:
            self._first_failed = f"{plan.name} ({failure.error_type}): {failure.error_message}"
            if failure.error_type == "reward":
                # An error in the user's code is unlikely to go away.
                logger.warning("rollout %s failed: %s", plan.name, failure.error_message)
        if failure.error_type == LOST:
            self._lost[plan.group_num, plan.env_index] += 1
            self._engine.submit(self._plan(group, plan.env_index, plan.attempt + 1), first=True)
        elif config.failure_policy == "fail_fast":
            message = (
                f"rollout {plan.name} failed ({failure.error_type}): {failure.error_message}; the"
                " failure policy is fail_fast"
            )
            raise CuaTrainError(message)
        elif config.failure_policy == "retry" and self._attempts_here(plan) < config.max_attempts:
            self._engine.submit(self._plan(group, plan.env_index, plan.attempt + 1), first=True)
        else:
            self._settle(group, plan.env_index, None)

    def _attempts_here(self, plan: RolloutPlan) -> int:
        """Attempts of this process; a dead process's were not the environment's failures."""
        place = (plan.group_num, plan.env_index)
        first = self._recalled.next_attempt.get(place, 0)
        return plan.attempt - first + 1 - self._lost[place]

    def _count(self, result: RolloutResult) -> None:
        self._tracker.turn_taken(result.turn_seconds, result.num_turns)
        self._unit.finished_rollouts += 1
        self._unit.finished_turns += result.num_turns

    def _plan(self, group: GroupPlan, index: int, attempt: int) -> RolloutPlan:
        source, session = self._source, self._session
        name = ids.rollout_name(
            session.run_name,
            source.generation,
            source.label,
            group.num,
            index,
            attempt,
            session.claim_epoch,
        )
        return RolloutPlan(
            name=name,
            id=ids.rollout_id(name),
            source=source,
            group_id=group.id,
            group_num=group.num,
            env_index=index,
            attempt=attempt,
            stated=group.stated,
            max_turns=min(self._config.max_turns, group.stated.task.max_steps),
            temperature=0.0 if index == group.baseline_index else self._temperature,
            top_p=self._top_p,
            seed=group.seeds[index],
            sampling_seed=self._sampling_seed(group, index, attempt),
        )

    def _sampling_seed(self, group: GroupPlan, index: int, attempt: int) -> int:
        """The seed, independent of the training's name: equal configurations draw equal numbers.

        An attempt after a killed process reuses the lost one's seed; otherwise each kill would keep
        short episodes and draw the long ones again. An episode has the same seed in every
        evaluation, so that evaluations differ only by what the policy learned.
        """
        source, seed = self._source, self._config.seed
        if source.type == "step":
            place = (group.num, index)
            num_here = attempt - self._recalled.next_attempt.get(place, 0) - self._lost[place]
            num_failed = self._recalled.num_failed.get(place, 0) + num_here
            return derived_seed(
                seed, "sampling", source.generation, source.label, *place, num_failed
            )
        return derived_seed(seed, "evaluation-sampling", group.seeds[index])

    def _on_begin(self, plan: RolloutPlan) -> None:
        group = self._groups[plan.group_num]
        if self._status(group) == "pending":
            self._stream.emit(GroupStarted(group_id=group.id, started_at=self._session.clock()))

    def _settle(
        self,
        group: GroupPlan,
        index: int,
        result: RolloutResult | None,
        *,
        is_recalled: bool = False,
    ) -> None:
        """Record that a place of the group has ended, and the group with its last place."""
        places = self._results[group.num]
        places[index] = result
        self._bar.advance(note=group.stated.task.name)
        if result is None:
            self._unit.given_up_rollouts += 1
        if len(places) < len(group.seeds):
            if not is_recalled:
                # Otherwise the first of many events would report almost no progress.
                self._emit_progress(group)
            return
        scored = tuple(self._compared(group))
        problem = self._problem(group, len(scored))
        if self._status(group) in {"pending", "running"}:
            self._stream.emit(
                self._finished(group, scored) if problem is None else self._failed(group, problem)
            )
        is_failed = self._status(group) == "failed"
        errors = (*self._recalled.errors.get(group.num, ()), *self._errors[group.num])
        self._outcomes[group.num] = GroupOutcome(
            group, scored, is_failed, errors, self._baseline(group)
        )

    def _compared(self, group: GroupPlan) -> list[RolloutResult]:
        """Results scored so far, by place, without the baseline."""
        places = sorted(self._results[group.num].items())
        return [one for at, one in places if one is not None and at != group.baseline_index]

    def _baseline(self, group: GroupPlan) -> RolloutResult | None:
        at = group.baseline_index
        return None if at is None else self._results[group.num].get(at)

    def _problem(self, group: GroupPlan, num_scored: int) -> str | None:
        """Why a group whose places have all ended is unusable; None if it is usable."""
        if num_scored < min(self._min_group_size, group.num_compared):
            return f"only {num_scored} of {group.num_compared} rollouts ended"
        if group.has_baseline and self._baseline(group) is None:
            return "its greedy rollout, which the others are compared with, did not end"
        return None

    def _created(self, group: GroupPlan) -> GroupCreated:
        return GroupCreated(
            group_id=group.id,
            source_type=self._source.type,
            source_id=self._source.id,
            group_num=group.num,
            batch=self._source.batch,
            num_rollouts=group.num_compared,
        )

    def _failed(self, group: GroupPlan, reason: str) -> GroupFailed:
        return GroupFailed(
            group_id=group.id,
            completed_rollouts=len(self._compared(group)),
            error_message=reason,
            ended_at=self._session.clock(),
        )

    def _finished(self, group: GroupPlan, scored: Sequence[RolloutResult]) -> GroupFinished:
        rewards = [result.reward for result in scored]
        return GroupFinished(
            group_id=group.id,
            completed_rollouts=len(scored),
            reward_mean=statistics.fmean(rewards),
            reward_std=statistics.pstdev(rewards),
            success_count=sum(result.success for result in scored),
            rollout_ids=tuple(result.plan.id for result in scored),
            ended_at=self._session.clock(),
            progress=self._tracker.finished(),
            metrics={
                "num_turns": sum(result.num_turns for result in scored),
                "num_tokens": sum(result.num_tokens for result in scored),
            },
        )

    def _emit_progress(self, group: GroupPlan) -> None:
        now, last = self._session.clock(), self._progressed_at.get(group.num)
        is_recent = last is not None and (now - last).total_seconds() < PROGRESS_EVERY_S
        if is_recent or self._status(group) != "running":
            return
        self._progressed_at[group.num] = now
        places = self._results[group.num].values()
        taken = [result for result in places if result is not None]
        unit = Unit(num_rollouts=len(group.seeds), max_turns=self._unit.max_turns, is_step=False)
        unit.finished_rollouts = len(places)
        unit.finished_turns = sum(result.num_turns for result in taken)
        self._stream.emit(
            GroupProgressed(
                group_id=group.id,
                completed_rollouts=len(self._compared(group)),
                progress=self._tracker.of(unit),
            )
        )
