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
    """The turn whose prompt + completion `prompt_tokens` extends; None: `prompt_tokens` is the
    whole prompt."""
    prompt_tokens: tuple[int, ...]
    num_prompt_images: int
    """Number of the episode's most recent screenshots in the whole prompt, this turn's included."""
    completion_tokens: tuple[int, ...]
    completion_logprobs: tuple[float, ...]
    """Of each completion token under the distribution it was drawn from, nats."""
    stop_reason: Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled turn."""

    text: str
    actions: tuple[TakenAction, ...]
    """Parsed by the policy's codec; coordinates in the screenshot's pixels, if there is one."""
    tokens: SampledTokens | None
    """None for a scripted policy."""
    policy_version: int | None = None
    """Of the weights that sampled it, where they may change within an episode; None: those that the
    episode began with."""
    failure: str | None = None
    """Why there is no completion: the attempt failed at the policy, and nothing else is read of
    this; None: there is one."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of an episode: what the policy observed, and what it answered.

    The episode, the policy, the update and a resume share it.
    """

    observation: Observation
    completion: Completion

    @property
    def screenshot(self) -> Screenshot | None:
        """None: the environment has no screen."""
        return screenshot_of(self.observation)

    @property
    def screen(self) -> Screenshot:
        """The screenshot. ValueError if the environment has no screen."""
        if self.screenshot is None:
            message = "an earlier turn has no screenshot"
            raise ValueError(message)
        return self.screenshot

    @property
    def tokens(self) -> SampledTokens:
        """The completion's tokens. ValueError if a scripted policy took the turn."""
        if self.completion.tokens is None:
            message = "another policy took an earlier turn and recorded no tokens"
            raise ValueError(message)
        return self.completion.tokens


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One turn to sample."""

    episode: UUID
    """The rollout. A policy may keep state (KV cache) under this id until `forget`."""
    task: Task
    history: tuple[Turn, ...]
    """Earlier turns, oldest first."""
    screenshot: Screenshot | None
    """None: the environment has no screen."""
    temperature: float
    """0: greedy."""
    max_tokens: int
    seed: int
    """Seeds every random number of this draw; the log records it as `Sampling.seed`. The same
    policy, request and seed give the same completion, whatever else is in the batch. Not negative.
    """
    text: str | None = None
    """The environment's text of this turn, such as the result of a query; None: there is none.
    On the first turn it follows the task's description."""
    top_p: float = 1.0
    """Probability of the tokens that may be drawn, likeliest first; log-probs are those of all."""
    prefix: str = ""
    """What the answer begins with, given: the policy continues it. Only on the first turn."""

    @property
    def screen(self) -> Screenshot:
        """The screenshot. ValueError if the environment has no screen."""
        if self.screenshot is None:
            message = f"episode {self.episode} has no screenshot"
            raise ValueError(message)
        return self.screenshot

    @property
    def screen_px(self) -> tuple[int, int]:
        """Width and height of the screenshot; 0, 0 without one."""
        shot = self.screenshot
        return (0, 0) if shot is None else (shot.width_px, shot.height_px)

    def text_after_description(self, start: int) -> str | None:
        """What follows the description in a prompt that begins with turn `start` (from 0).

        The first turn's text, which may be the instruction proper, and that turn's own. None: there
        is neither.
        """
        kept = [self.texts[0], self.texts[start] if start else None]
        return "\n\n".join(text for text in kept if text) or None

    @property
    def texts(self) -> list[str | None]:
        """The environment's text of each turn, this one's last."""
        return [*(text_of(turn.observation) for turn in self.history), self.text]

    @property
    def num_screenshots(self) -> int:
        """Of the whole episode so far, this turn's included."""
        screenshots = [*(turn.screenshot for turn in self.history), self.screenshot]
        return sum(screenshot is not None for screenshot in screenshots)


def failed(message: str) -> Completion:
    """No completion: the attempt fails at the policy, and is never scored."""
    return Completion("", (), None, failure=message)


def context_full(message: str) -> Completion:
    """The completion of a turn that the policy's context has no room for."""
    return Completion("", (parse_error("parse", message, CONTEXT_FULL),), tokens=None)


class Policy(Protocol):
    """Samples turns. Called from one thread."""

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
        """Whether a completion's bits depend on the batch that it is sampled in, and on no more.

        A restarted process then samples the same batches again, to have the same bits. False: they
        depend on less (a scripted policy), or on more (an accelerator).
        """
        ...

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One completion per request, in order."""
        ...

    def forget(self, episode: UUID) -> None:
        """Free the state kept for a finished episode. Unknown episodes are ignored."""
        ...


@runtime_checkable
class TokenPolicy(Policy, Protocol):
    """A policy of tokens: it continues an answer, and knows its tokens' characters."""

    @property
    def tokenizer(self) -> Any:  # noqa: ANN401  # transformers ships no types
        """Of the base network."""
        ...

    def token_starts(self, tokens: Sequence[int]) -> list[int]:
        """For each token of a completion the index of its first character in its text."""
        ...


@dataclass(frozen=True, slots=True)
class PublishedPolicy:
    """One version of a policy that learns in one process and is sampled by others."""

    urls: tuple[str, ...]
    """Of OpenAI-compatible servers that have the adapter."""
    model: str
    """The base policy's name on them."""
    adapter: str
    adapters_dir: str
    """Folder of the adapters, as the servers see it."""
    codec: str
    """Name of the format of its actions."""
    system_prompt: str | None
    end_tokens: tuple[int, ...]
    """Tokens that end a completion."""
