"""Joins recorded turns into token sequences, for training and for rebuilding an episode's cache.

A turn whose prompt extends the turn before continues that turn's sequence; any other turn starts a
new sequence with its own screenshots.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from producer.environments.environment import Screenshot
from producer.policy.policy import SampledTokens


@dataclass(slots=True)
class TokenSequence:
    """Prompts and completions in order, with the recorded log-prob of each completion token."""

    tokens: list[int] = field(default_factory=list)
    screenshots: list[Screenshot] = field(default_factory=list)
    """In the order of their placeholders."""
    sampled_at: list[int] = field(default_factory=list)
    """Indices into `tokens` of the completion tokens; never 0."""
    sampled_logprobs: list[float] = field(default_factory=list)
    """Of those tokens, recorded when they were sampled, nats."""

    def append(self, turn: SampledTokens) -> None:
        """Add a turn's prompt tokens and completion."""
        self.tokens += turn.prompt_tokens
        self.sampled_at += range(len(self.tokens), len(self.tokens) + len(turn.completion_tokens))
        self.tokens += turn.completion_tokens
        self.sampled_logprobs += turn.completion_logprobs


def join_turns(
    turns: Iterable[tuple[Screenshot | None, SampledTokens]],
) -> list[TokenSequence]:
    """One sequence per chain of turns that extend each other, oldest first."""
    sequences: list[TokenSequence] = []
    screenshots: list[Screenshot] = []
    for screenshot, tokens in turns:
        shown = [] if screenshot is None else [screenshot]
        screenshots += shown
        if tokens.prompt_extends is None:
            first = len(screenshots) - tokens.num_prompt_images
            sequences.append(TokenSequence(screenshots=screenshots[first:]))
        else:
            sequences[-1].screenshots += shown
        sequences[-1].append(tokens)
    return sequences
