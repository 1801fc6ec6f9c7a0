"""The interface Policy: observations in, completions out. Imports no torch.

Implementations: `scripted_learner.ScriptedLearner` (no tokens), `served.ServedPolicy` (a server, no
tokens), `torch_policy.in_process.InProcessPolicy` (transformers) and
`tinker_policy.policy.TinkerPolicy` (a service).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable
from uuid import UUID

from producer.codecs.codec import CONTEXT_FULL, parse_error
from producer.environments.environment import Observation, Screenshot, screenshot_of, text_of
from producer.task import Task
from schemas.turn import TakenAction


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """The tokens of one completion, as the log records them."""

    prompt_extends: int | None
    """The turn whose prompt and completion `prompt_tokens` extends; None if `prompt_tokens` is the
    whole prompt."""
    prompt_tokens: tuple[int, ...]
    num_prompt_images: int
    """Number of the episode's latest screenshots in the whole prompt, including this turn's."""
    completion_tokens: tuple[int, ...]
    completion_logprobs: tuple[float, ...]
    """Log-prob of each completion token under the distribution it was drawn from, nats."""
    stop_reason: Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled turn."""

    text: str
    actions: tuple[TakenAction, ...]
    """Actions parsed by the policy's codec; coordinates in pixels of the screenshot, if any."""
    tokens: SampledTokens | None
    """None if the policy records no tokens (scripted, or sampled by a server for evaluations)."""
    policy_version: int | None = None
    """Version of the weights that sampled it, if they can change within an episode; None means the
    weights at the start of the episode."""
    failure: str | None = None
    """Why the policy gave no completion, which fails the attempt and makes the other fields
    meaningless; None if there is a completion."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of an episode: what the policy observed and what it answered.

    Used by the episode, the policy, the update and resuming.
    """

    observation: Observation
    completion: Completion

    @property
    def screenshot(self) -> Screenshot | None:
        """The screenshot, or None if the environment has no screen."""
        return screenshot_of(self.observation)

    @property
    def screen(self) -> Screenshot:
        """The screenshot. Raises ValueError if the environment has no screen."""
        if self.screenshot is None:
            message = "an earlier turn has no screenshot"
            raise ValueError(message)
        return self.screenshot

    @property
    def tokens(self) -> SampledTokens:
        """The completion's tokens. Raises ValueError if the policy recorded none."""
        if self.completion.tokens is None:
            message = "another policy took an earlier turn and recorded no tokens"
            raise ValueError(message)
        return self.completion.tokens


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request to sample one turn."""

    episode: UUID
    """The rollout's id. A policy may keep state (KV cache) for it until `forget`."""
    task: Task
    history: tuple[Turn, ...]
    """Earlier turns, oldest first."""
    screenshot: Screenshot | None
    """None if the environment has no screen."""
    temperature: float
    """0 means greedy decoding."""
    max_tokens: int
    seed: int
    """Seeds all random numbers of this draw, >= 0; the log records it as `Sampling.seed`. The same
    policy, request and seed give the same completion; beside other requests up to rounding, which
    may change a token where two are nearly as likely."""
    text: str | None = None
    """The environment's text for this turn, such as a query's result; None if there is none. On the
    first turn it follows the task's description."""
    top_p: float = 1.0
    """Nucleus sampling: cumulative probability of the likeliest tokens that may be drawn. Log-probs
    remain those of the full distribution."""
    prefix: str = ""
    """Fixed start of the answer, which the policy continues. First turn only."""

    @property
    def screen(self) -> Screenshot:
        """The screenshot. Raises ValueError if the environment has no screen."""
        if self.screenshot is None:
            message = f"episode {self.episode} has no screenshot"
            raise ValueError(message)
        return self.screenshot

    @property
    def screen_px(self) -> tuple[int, int]:
        """Width and height of the screenshot; (0, 0) without one."""
        shot = self.screenshot
        return (0, 0) if shot is None else (shot.width_px, shot.height_px)

    def text_after_description(self, start: int) -> str | None:
        """Text after the task's description in a prompt that begins with turn `start` (from 0).

        It consists of the first turn's text, which may be the actual instruction, and turn
        `start`'s own. None if there is neither.
        """
        kept = [self.texts[0], self.texts[start] if start else None]
        return "\n\n".join(text for text in kept if text) or None

    @property
    def texts(self) -> list[str | None]:
        """The environment's text of each turn, this turn's last."""
        return [*(text_of(turn.observation) for turn in self.history), self.text]

    @property
    def num_screenshots(self) -> int:
        """Number of screenshots in the episode so far, including this turn's."""
        screenshots = [*(turn.screenshot for turn in self.history), self.screenshot]
        return sum(screenshot is not None for screenshot in screenshots)


def failed(message: str) -> Completion:
    """A completion that fails the attempt because of the policy; it is never scored."""
    return Completion("", (), None, failure=message)


def context_full(message: str) -> Completion:
    """The completion of a turn that does not fit into the policy's context."""
    return Completion("", (parse_error("parse", message, CONTEXT_FULL),), tokens=None)


class Policy(Protocol):
    """Samples turns. Must be called from one thread."""

    @property
    def name(self) -> str:
        """The policy's name in events: a hub id, a folder, or `oracle`."""
        ...

    @property
    def version(self) -> int:
        """Number of updates to the weights so far."""
        ...

    @property
    def repeats_batches(self) -> bool:
        """Whether a completion's bits depend on its batch and on nothing else.

        If so, a restarted process samples the same batches again to reproduce the bits. False if
        the bits depend on less (a scripted policy) or on more (an accelerator).
        """
        ...

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Return one completion per request, in order."""
        ...

    def forget(self, episode: UUID) -> None:
        """Free the state kept for a finished episode. Unknown episodes are ignored."""
        ...


@runtime_checkable
class TokenPolicy(Policy, Protocol):
    """A policy with tokens: it can continue an answer and locate tokens in its text."""

    @property
    def tokenizer(self) -> Any:  # noqa: ANN401  # transformers ships no types
        """The tokenizer of the base network."""
        ...

    def token_starts(self, tokens: Sequence[int]) -> list[int]:
        """Index of the first character of each completion token in the completion's text."""
        ...


@dataclass(frozen=True, slots=True)
class PublishedPolicy:
    """One version of a policy that one process trains and other processes sample."""

    urls: tuple[str, ...]
    """URLs of OpenAI-compatible servers that have the adapter."""
    model: str
    """The base policy's name on the servers."""
    adapter: str
    adapters_dir: str
    """Folder of the adapters, as seen by the servers."""
    codec: str
    """Name of the format of the policy's actions."""
    system_prompt: str | None
    end_tokens: tuple[int, ...]
    """Tokens that end a completion."""
