"""The rubric of a run: labels of steps, scores by a reward model, a user's own rewards."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID, uuid5

from pydantic import JsonValue

from producer.agents.text_to_sql.data.databases import data_folders, find_database
from producer.config import RunConfig
from producer.environments.environment import Environment, EnvironmentFailedError
from producer.policy.policy import Completion, Policy, SampleRequest, TokenPolicy
from producer.process_rewards.step_and_outcome import score_completion
from producer.process_rewards.step_results import with_results
from producer.rewards import RewardError
from producer.rollouts.requests import CompletionReward, Grade, Rubric, StepScores
from producer.rollouts.step_labels import StepLabeller, label_steps
from producer.seeds import derived_seed
from producer.sql_execution import DatabaseFailedError
from producer.task import Task
from producer.training.own_rewards import rewarding_with
from producer.validators.verdict import Verdict


class Scorer(NamedTuple):
    """A process reward model."""

    name: str
    score_steps: Callable[[str, Sequence[str]], list[float]]


def load_step_scorer(config: RunConfig) -> Scorer | None:
    """The configured process reward model; None without one. Raises NotFoundError, UsageError."""
    folder = config.process_reward_model
    if folder is None:
        return None
    from producer.supervised.step_scorer import StepScorer

    return Scorer(f"prm:{folder.name}", StepScorer.load(folder, config.device).score_steps)


ScoreSteps = Callable[[Task, Completion], StepScores | None]
"""Scores a completion's steps; None if it has no tokens."""
ShowSteps = Callable[[Task, Sequence[str]], Sequence[str]]
"""(task, steps) -> the texts the reward model reads instead of the steps."""


def as_written(_task: Task, steps: Sequence[str]) -> Sequence[str]:
    """A `ShowSteps` that returns the steps unchanged."""
    return steps


def showing_results(*sources: JsonValue) -> ShowSteps:
    """Returns a `ShowSteps` that adds results from the databases of these task sources.

    It raises EnvironmentFailedError if the database fails or is gone.
    """
    folders = data_folders(*sources)

    def show(task: Task, steps: Sequence[str]) -> Sequence[str]:
        assert task.entry is not None  # noqa: S101  # tasks of this environment have one
        name = task.entry.database or ""
        path = find_database(folders, name, task.entry.database_sha256)
        if path is None:
            message = f"database {name!r} is gone, or is not as it was recorded"
            raise EnvironmentFailedError(message)
        try:
            return with_results(path, steps)
        except (DatabaseFailedError, OSError) as error:
            raise EnvironmentFailedError(str(error)) from error

    return show


def scoring_with(
    scorer: Scorer | None, policy: Policy, config: RunConfig | None = None
) -> ScoreSteps | None:
    """The function that scores this policy's completions; None without a scorer or tokens.

    With `reward_model_sees_results` in `config`, the scorer reads each step with its result.
    """
    if scorer is None or not isinstance(policy, TokenPolicy):
        return None
    # Score one completion at a time, so that a score does not depend on others.
    lock = threading.Lock()
    show: ShowSteps = as_written
    if config is not None and config.reward_model_sees_results:
        show = showing_results(config.tasks, config.eval_tasks)

    def score(task: Task, completion: Completion) -> StepScores | None:
        tokens = completion.tokens
        if tokens is None or not tokens.completion_tokens:
            return None
        starts = policy.token_starts(tokens.completion_tokens)

        def score_steps(prompt: str, steps: Sequence[str]) -> list[float]:
            read = show(task, steps)
            with lock:
                return scorer.score_steps(prompt, read)

        scored = score_completion(task.description, completion.text, starts, score_steps)
        return StepScores.of(scorer.name, zip(*scored, strict=True))

    return score


_SPACE = UUID("b6e0a7a0-7f4e-5c0e-9d2b-6a1f0c7c6f11")
"""Namespace for the ids of prefix completions, which are not in the log."""


def make_labeller(config: RunConfig, policy: Policy) -> StepLabeller | None:
    """Labels steps by `config.step_completions` completions of each prefix; None without them.

    A prefix has the same completions in every run with the same seed and weights, whenever it
    occurs.
    """
    if not config.step_completions:
        return None
    assert isinstance(policy, TokenPolicy)  # noqa: S101  # the configuration is checked

    def complete(task: Task, prefix: str) -> list[str]:
        requests = [
            SampleRequest(
                episode=uuid5(_SPACE, f"{task.task_id}/{number}/{prefix}"),
                task=task,
                history=(),
                screenshot=None,
                temperature=config.temperature,
                top_p=config.top_p,
                max_tokens=config.max_tokens,
                seed=derived_seed(config.seed, "step-completion", task.task_id, prefix, number),
                prefix=prefix,
            )
            for number in range(config.step_completions)
        ]
        completions = policy.sample(requests)
        for request in requests:
            policy.forget(request.episode)
        return [completion.text for completion in completions]

    return StepLabeller(complete, policy.token_starts)


def make_rubric(config: RunConfig, policy: Policy, scorer: Scorer | None) -> Rubric | None:
    """The configured rubric for completions of `policy`, or None. Raises UsageError."""
    labeller = make_labeller(config, policy)
    score = scoring_with(scorer, policy, config)
    reward = rewarding_with(config, policy)
    if labeller is None and score is None and reward is None:
        return None

    def rubric(
        environment: Environment, task: Task, completion: Completion, verdict: Verdict | None
    ) -> Grade:
        labels = scores = None
        if labeller is not None:
            labels = label_steps(labeller, environment, task, completion, verdict)
        if score is not None:
            scores = score(task, completion)
        rewarded: CompletionReward | RewardError | None = None
        if reward is not None:
            try:
                rewarded = reward(task, completion, scores)
            except RewardError as error:
                rewarded = error
        return Grade(labels, scores, rewarded)

    return rubric
