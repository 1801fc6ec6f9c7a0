"""Opens the process reward model that scores the steps of every completion."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from producer.config import RunConfig
from producer.policy.policy import Completion
from producer.process_rewards.step_and_outcome import score_completion
from producer.rollouts.requests import ScoreSteps, StepScores
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


def scoring_with(scorer: Scorer | None, policy: object) -> ScoreSteps | None:
    """What scores the completions of this policy; None: nobody does, or it has no tokens."""
    token_starts = getattr(policy, "token_starts", None)
    if scorer is None or token_starts is None:
        return None
    # One at a time, so that a score does not depend on who is scored beside it.
    lock = threading.Lock()

    def score(task: Task, completion: Completion) -> StepScores | None:
        tokens = completion.tokens
        if tokens is None or not tokens.completion_tokens:
            return None
        starts = token_starts(tokens.completion_tokens)
        with lock:
            scored = score_completion(task.description, completion.text, starts, scorer.score_steps)
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
