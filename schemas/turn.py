"""A turn of a rollout, with everything a trainer would need to train on it again."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from schemas.actions import Action
from schemas.arrays import Float32Array, Int32Array
from schemas.base import Count, Items, Payload, Percent, UtcTime, Value
from schemas.blobs import BlobRef


class Sampling(Value):
    """How the completion was drawn."""

    temperature: Annotated[float, Field(ge=0)]
    """0: greedy; log-probs are then those of the untempered distribution."""
    max_tokens: Count
    """Limit of the completion, tokens."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Probability mass of the tokens that may be drawn; 1: all of them."""
    seed: int | None = None
    """Seed of this completion; None in events of older writers."""


class TokenRecord(Value):
    """The tokens of one sampling call."""

    prompt_extends: Count | None = None
    """None: `prompt_tokens` and `prompt_images` are the whole prompt. A turn number n: they follow
    turn n's prompt and completion."""
    prompt_tokens: Int32Array
    """Tokens of the prompt, or only those that it adds to the prompt it extends."""
    prompt_images: Items[BlobRef]
    """In the order of their placeholders in `prompt_tokens`."""
    completion_tokens: Int32Array
    """What the policy sampled."""
    completion_logprobs: Float32Array
    """Log-prob of each completion token under the sampling policy (temperature applied), nats."""
    sampling: Sampling
    """How it was drawn."""
    stop_reason: Literal["stop", "length"]
    """Whether the policy ended the completion or the limit did."""


class TakenAction(Value):
    """One parsed action."""

    tool_name: str
    """Name of the tool as the policy wrote it."""
    tool_args: dict[str, JsonValue]
    """Arguments as the policy wrote them, before coordinates were converted to pixels."""
    action: Action | None
    """None when the call could not be parsed."""
    error_type: Literal["parse", "tool_name", "tool_arg", "runtime"] | None = None
    """What was wrong with the action; None: nothing."""
    error_message: str | None = None
    """The error for people; None: there was none."""


class TurnTaken(Payload):
    """One turn of a rollout: what the policy observed, a completion, its actions.

    Version 1 repeated the whole prompt's images in every turn and had no size of the screenshot.
    """

    TYPE: ClassVar[str] = "cua.rollout.turn_taken"
    VERSION: ClassVar[int] = 2
    ENTITY: ClassVar[str | None] = "rollout"

    turn: Annotated[int, Field(ge=1)]
    """From 1."""
    started_at: UtcTime
    """When its completion was asked for."""
    ended_at: UtcTime
    """When its actions had been executed."""
    policy_version: Count
    """Version of the policy that sampled it."""
    screenshot_before: BlobRef | None
    """What the policy saw; None: the environment has no screen."""
    screenshot_after: BlobRef | None
    """None when the environment has no screen, or died of the action."""
    screenshot_width_px: Count | None = None
    """Of `screenshot_before`; None without one, and in events of version 1."""
    screenshot_height_px: Count | None = None
    """Of `screenshot_before`; None without one, and in events of version 1."""
    text: str | None
    """Text observed: on turn 1 the instruction, and the environment's text."""
    model_response: str
    """The completion as text."""
    tokens: TokenRecord | None
    """None for a scripted policy, which has none."""
    actions: Items[TakenAction]
    """In the order of their execution."""
    reward: float
    """Reward of this turn."""
    episode_done: bool
    """Whether the episode ended with this turn."""
    progress_percent: Percent
    """The rollout's progress after this turn."""
    metrics: dict[str, JsonValue] = {}
    """Timings: `sample_s` (the batch's sampling call), `environment_s` (the turn's actions).
    `replayed`: true for a turn that an earlier process sampled, played again."""
