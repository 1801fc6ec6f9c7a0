"""Which tokens of a completion belong to which of its steps.

The steps' tokens make up the whole completion: what stands between two steps belongs to the first,
what stands before the first step or after the last to those. So a score for each step is a score
for each token.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from producer.process_rewards.cocte import Step


class TokenSpan(NamedTuple):
    """Tokens of a completion; empty for a step inside a token that the step before has."""

    first: int
    """Index of the first token."""
    last: int
    """Index after the last."""


def token_spans(steps: Sequence[Step], starts_T: Sequence[int]) -> tuple[TokenSpan, ...]:
    """The tokens of every step. ValueError without a step.

    `starts_T`: for every token the index of its first character in the completion, as a tokenizer's
    offsets have it. A token belongs to the step of its first character. Special tokens, for which
    tokenizers say 0, belong where the token before them does.
    """
    if not steps:
        message = "expected at least one step"
        raise ValueError(message)
    starts_T = list(accumulate(starts_T, max))
    bounds = [0, *(bisect_left(starts_T, step.start) for step in steps[1:]), len(starts_T)]
    return tuple(TokenSpan(*bound) for bound in pairwise(bounds))


def starts_of(texts_T: Sequence[str]) -> list[int]:
    """For every token the index of its first character, from the tokens' texts in order."""
    return [0, *accumulate(len(text) for text in texts_T)][: len(texts_T)]
