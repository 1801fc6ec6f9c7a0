"""What the update of a step reads: trajectories and settings, live or from the log.

With `stream_minibatch` the update begins while the rollouts still run. Minibatches are the plan's
groups in the plan's order, whichever ends first: the same configuration and the same groups give
the same minibatches, live, continued, and trained again.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from math import cos, pi
from uuid import UUID

from producer.algorithms.advantages import ADVANTAGES
from producer.algorithms.settings import UpdateSettings, settings_of
from producer.config import RunConfig
from producer.policy.learner import (
    RolloutOutcome,
    StreamedUpdate,
    StreamingLearner,
    TokenNumbers,
    Trajectory,
    UpdateResult,
)
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutResult
from producer.seeds import derived_seed
from producer.training.samples import (
    SelectedSample,
    by_turn,
    measured_samples,
    rewards_of_tokens,
    select_samples,
)


def trajectories_of(config: RunConfig, samples: Sequence[SelectedSample]) -> list[Trajectory]:
    """Of a step's samples that the update reads, in their order."""
    return [
        trajectory(
            config,
            sample.result,
            advantage=sample.advantage,
            is_trained=sample.drop_reason is None,
            token_advantages=sample.token_advantages,
        )
        for sample in measured_samples(samples)
    ]


def trajectory(
    config: RunConfig,
    result: RolloutResult,
    *,
    advantage: float | None,
    is_trained: bool,
    token_advantages: TokenNumbers | None = None,
) -> Trajectory:
    """The rollout with its advantage or its tokens', and its outcome."""
    return Trajectory(
        result.plan.task,
        result.turns,
        advantage=token_advantages or advantage or 0.0,
        outcome=RolloutOutcome(
            result.plan.group_num,
            result.reward,
            is_right=result.success,
            token_rewards=(
                by_turn(result, rewards_of_tokens(config, result))
                if config.agent.answers_in_steps
                else None
            ),
        ),
        is_trained=is_trained,
    )


def update_settings(config: RunConfig, *, generation: int, step: int) -> UpdateSettings:
    """Of step `step`, from 1."""
    learned = ADVANTAGES[config.advantage].learned
    return settings_of(
        config,
        UpdateSettings,
        learning_rate=learning_rate_of(config, step),
        seed=derived_seed(config.seed, "update", generation, step),
        learned_advantage=None if learned is None else settings_of(config, learned.settings),
    )


def learning_rate_of(config: RunConfig, step: int) -> float:
    """Of step `step`, from 1: a function of its number, so a resumed run needs no state.

    The cosine is verl's `get_cosine_schedule_with_warmup`, whose steps count from 0; its warm-up
    begins at 0, ours at the first share.
    """
    warmup = config.learning_rate_warmup_steps
    if step < warmup:
        return config.learning_rate * step / warmup
    if config.learning_rate_schedule == "constant":
        return config.learning_rate
    done = max(0, step - 1 - warmup) / max(1, config.num_steps - warmup)
    lowest = config.min_learning_rate_ratio
    return config.learning_rate * (lowest + (1 - lowest) * 0.5 * (1 + cos(pi * done)))


def minibatches_of(config: RunConfig) -> list[range]:
    """Places of groups in the plan, per minibatch; of the optimiser steps one after the other.

    Equal shares: an optimiser step's of the plan, a minibatch's of its optimiser step. Sizes differ
    by at most one.
    """
    found = []
    for step in _shares(range(config.groups_per_batch), config.num_substeps):
        found += _shares(step, num_minibatches(config))
    return found


def num_minibatches(config: RunConfig) -> int:
    """Of each optimiser step, at most; unless it is given, one for every group."""
    largest = -(-config.groups_per_batch // config.num_substeps)
    return config.num_minibatches or largest


class StreamedStep:
    """The minibatches of one step; for the thread that collects it."""

    def __init__(
        self,
        config: RunConfig,
        update: StreamedUpdate,
        groups: Sequence[GroupPlan],
        *,
        version: int,
    ) -> None:
        """`groups`: of the plan, in its order. `version`: of the policy, which samples them."""
        self._config, self._update, self._version = config, update, version
        self._waiting = deque(
            [groups[place].id for place in places] for places in minibatches_of(config)
        )
        self._outcomes: dict[UUID, GroupOutcome] = {}

    def group_ended(self, outcome: GroupOutcome) -> None:
        """Pass on every minibatch whose groups, and those before it, have ended."""
        self._outcomes[outcome.plan.id] = outcome
        while self._waiting and all(item in self._outcomes for item in self._waiting[0]):
            outcomes = [self._outcomes[item] for item in self._waiting.popleft()]
            selected = select_samples(self._config, outcomes, version=self._version)
            self._update.add(
                trajectories_of(self._config, [item for group in selected for item in group])
            )

    def work(self) -> bool:
        """As `StreamedUpdate.work`."""
        return self._update.work()

    def finish(self) -> UpdateResult:
        """As `StreamedUpdate.finish`, after the last group."""
        return self._update.finish()


def begin_streamed(
    config: RunConfig,
    learner: object,
    groups: Sequence[GroupPlan],
    *,
    generation: int,
    step: int,
    version: int,
) -> StreamedStep | None:
    """None without the setting, and for a policy that learns nothing."""
    if not config.stream_minibatch or not isinstance(learner, StreamingLearner):
        return None
    settings = update_settings(config, generation=generation, step=step)
    update = learner.begin_update(settings, num_minibatches(config))
    return StreamedStep(config, update, groups, version=version)


def update_in_minibatches(
    config: RunConfig,
    learner: StreamingLearner,
    trajectories: Sequence[tuple[int, Trajectory]],
    *,
    generation: int,
    step: int,
) -> UpdateResult:
    """The same update of a step that has ended; each trajectory with its group's place."""
    settings = update_settings(config, generation=generation, step=step)
    update = learner.begin_update(settings, num_minibatches(config))
    for places in minibatches_of(config):
        update.add([one for place, one in trajectories if place in places])
    return update.finish()


def _shares(items: range, number: int) -> list[range]:
    bounds = [len(items) * part // number for part in range(number + 1)]
    return [items[start:end] for start, end in pairwise(bounds)]
