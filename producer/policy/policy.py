"""The interface Policy: screens in, completions out.

This file imports no torch; rollouts know nothing else of a policy.

Implementations: `oracle.NoisyOracle` (scripted, no tokens) and `in_process.InProcessPolicy`
(transformers).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from producer.environments.environment import Screenshot
from producer.task import Task
from schemas.turn import TakenAction


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """The tokens of one completion, as the log records them."""

    prompt_extends: int | None
    """Turn whose prompt + completion these prompt tokens extend; None: `prompt_tokens` is the whole
    prompt."""
    prompt_tokens: tuple[int, ...]
    num_prompt_images: int
    """How many of the episode's most recent screenshots the whole prompt holds, this turn's
    included."""
    completion_tokens: tuple[int, ...]
    completion_logprobs: tuple[float, ...]
    stop_reason: Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class PastTurn:
    """One earlier turn of the episode."""

    screenshot: Screenshot
    completion_text: str
    tokens: SampledTokens | None


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One turn that is to be sampled."""

    episode: UUID
    """The rollout; a policy may keep state (KV cache) by it until `forget`."""
    task: Task
    history: tuple[PastTurn, ...]
    """Earlier turns, oldest first."""
    screenshot: Screenshot
    temperature: float
    """0: greedy."""
    max_tokens: int
    seed: int
    """Same request, same seed, same policy: same completion, whatever else is in the batch."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the policy said."""

    text: str
    actions: tuple[TakenAction, ...]
    """Parsed by the policy's codec; coordinates in the screenshot's pixels."""
    tokens: SampledTokens | None
    """None for a scripted policy."""


class Policy(Protocol):
    """Samples turns. Called from one thread."""

    @property
    def name(self) -> str:
        """Model path for rows: a hub id, a folder, `oracle`."""
        ...

    @property
    def version(self) -> int:
        """Raised by every update of the weights; 0 at first."""
        ...

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One completion per request, in order, decoded as one batch."""
        ...

    def forget(self, episode: UUID) -> None:
        """The episode is over: free what was kept for it. Unknown episodes are fine."""
        ...
