"""Opens the process reward model that scores the steps of every completion."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from producer.config import RunConfig
from producer.policy.policy import Completion
from producer.process_rewards.step_and_outcome import score_completion
from producer.process_rewards.token_spans import starts_of
from producer.rollouts.requests import ScoreSteps, StepScores
from producer.task import Task
from schemas.completion import StepScore

Decode = Callable[[Sequence[int]], str]
"""Completion tokens -> their text, without special tokens."""


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
    decode = getattr(policy, "decode", None)
    if scorer is None or decode is None:
        return None
    # One at a time, so that a score does not depend on who is scored beside it.
    lock = threading.Lock()

    def score(task: Task, completion: Completion) -> StepScores | None:
        tokens = completion.tokens
        if tokens is None or not tokens.completion_tokens:
            return None
        starts = token_starts(tokens.completion_tokens, completion.text, decode)
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


def token_starts(tokens: Sequence[int], text: str, decode: Decode) -> list[int]:
    """For every token the index of its first character in `text`, which is the tokens decoded."""
    texts = [decode([token]) for token in tokens]
    if "".join(texts) == text:
        return starts_of(texts)
    # A character of several tokens, or a tokenizer that writes spaces by the token before.
    return [len(decode(tokens[:at])) for at in range(len(tokens))]
