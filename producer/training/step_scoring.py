"""Opens the process reward model that scores the steps of every completion."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from producer.agents.text_to_sql.data.databases import data_folders, find_database
from producer.config import RunConfig
from producer.environments.environment import EnvironmentFailedError
from producer.policy.policy import Completion
from producer.process_rewards.step_and_outcome import score_completion
from producer.process_rewards.step_results import with_results
from producer.rollouts.rubric import StepScores
from producer.sql_execution import DatabaseFailedError
from producer.task import Task
from schemas.completion import StepScore


class Scorer(NamedTuple):
    """A process reward model."""

    name: str
    score_steps: Callable[[str, Sequence[str]], list[float]]


def load_step_scorer(config: RunConfig) -> Scorer | None:
    """The configured process reward model; None: there is none. NotFoundError, UsageError."""
    folder = config.process_reward_model
    if folder is None:
        return None
    from producer.supervised.step_scorer import StepScorer

    return Scorer(f"prm:{folder.name}", StepScorer.load(folder, config.device).score_steps)


ScoreSteps = Callable[[Task, Completion], StepScores | None]
"""Scores a completion's steps; None: it has no tokens."""
ShowSteps = Callable[[Task, Sequence[str]], Sequence[str]]
"""(task, steps) -> what the reward model reads in their place."""


def as_written(_task: Task, steps: Sequence[str]) -> Sequence[str]:
    """The steps alone: a `ShowSteps`."""
    return steps


def showing_results(*sources: JsonValue) -> ShowSteps:
    """The steps with their results, from the databases of these task sources.

    What it returns raises EnvironmentFailedError when the database fails or is gone.
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
    scorer: Scorer | None, policy: object, config: RunConfig | None = None
) -> ScoreSteps | None:
    """What scores the completions of this policy; None: there is no scorer, or it has no tokens.

    With `reward_model_sees_results` of `config` the scorer reads each step with its result.
    """
    token_starts = getattr(policy, "token_starts", None)
    if scorer is None or token_starts is None:
        return None
    # One at a time, so that a score does not depend on who is scored beside it.
    lock = threading.Lock()
    show: ShowSteps = as_written
    if config is not None and config.reward_model_sees_results:
        show = showing_results(config.tasks, config.eval_tasks)

    def score(task: Task, completion: Completion) -> StepScores | None:
        tokens = completion.tokens
        if tokens is None or not tokens.completion_tokens:
            return None
        starts = token_starts(tokens.completion_tokens)

        def score_steps(prompt: str, steps: Sequence[str]) -> list[float]:
            read = show(task, steps)
            with lock:
                return scorer.score_steps(prompt, read)

        scored = score_completion(task.description, completion.text, starts, score_steps)
        return StepScores(
            scorer.name,
            tuple(
                StepScore(
                    index=index,
                    text=text,
                    first_token=span.first,
                    last_token=span.last,
                    score=value,
                )
                for index, (text, span, value) in enumerate(zip(*scored, strict=True))
            ),
        )

    return score
