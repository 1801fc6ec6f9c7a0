"""Builds the event of a turn from what a loop passes. Emits nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from producer.bounded_text import cut
from producer.record.values import json_fields, logprobs, text, token_ids
from producer.rollouts.events import MAX_RESPONSE_CHARS, bounded_actions
from schemas.actions import Action
from schemas.arrays import encode_float32, encode_int32
from schemas.base import Value
from schemas.blobs import blob_ref
from schemas.turn import Sampling, TakenAction, TokenRecord

_ACTION: TypeAdapter[Action] = TypeAdapter(Action)
MAX_PROBLEM_CHARS = 300


class Picture(NamedTuple):
    """A PNG and its blob reference."""

    ref: str
    png: bytes
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """The whole sequence after a turn, which the next prompt may extend."""

    turn: int
    tokens: tuple[int, ...]
    """Tokens of the prompt and its completion."""
    images: tuple[str, ...]


class Tokens(NamedTuple):
    """The tokens of a turn."""

    record: TokenRecord
    after: Prompt
    num_prompt: int
    num_completion: int


def picture(name: str, png: object) -> Picture:
    """A PNG with its size. Raises ValueError for bytes that are not a PNG."""
    from PIL import Image  # takes a quarter of a second; needed only for screens

    if not isinstance(png, bytes | bytearray | memoryview):
        message = f"{name} must be the bytes of a PNG, not {type(png).__name__}"
        raise TypeError(message)
    content = bytes(png)
    try:
        with Image.open(BytesIO(content), formats=["PNG"]) as image:
            width_px, height_px = image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        message = f"{name} is no PNG: it begins with {content[:8]!r}"
        raise ValueError(message) from None
    return Picture(blob_ref(content), content, width_px, height_px)


def read_tokens(
    turn: int,
    before: Prompt | None,
    *,
    prompt_tokens: object,
    completion_tokens: object,
    completion_logprobs: object,
    images: Sequence[Picture] | None,
    screenshot: Picture | None,
    sampling: Sampling,
    stop_reason: Literal["stop", "length"],
) -> Tokens | None:
    """The record of a turn's tokens; None if none are given. Raises ValueError.

    A prompt that begins with the previous turn's sequence is recorded as its extension.
    """
    if completion_tokens is None:
        if prompt_tokens is not None or completion_logprobs is not None:
            message = "completion_tokens is missing; give it with prompt_tokens and the log-probs"
            raise ValueError(message)
        return None
    if prompt_tokens is None:
        message = "prompt_tokens is missing; completion_tokens mean nothing without their prompt"
        raise ValueError(message)
    prompt = token_ids("prompt_tokens", prompt_tokens)
    completion = token_ids("completion_tokens", completion_tokens)
    found = logprobs("completion_logprobs", completion_logprobs, len(completion))
    extends = before
    if before is not None and tuple(prompt[: len(before.tokens)]) != before.tokens:
        extends = None
    own = () if screenshot is None else (screenshot.ref,)
    if images is None:
        shown = (*extends.images, *own) if extends is not None else own
    else:
        shown = tuple(image.ref for image in images)
        if extends is not None and shown[: len(extends.images)] != extends.images:
            extends = None
    num_before = 0 if extends is None else len(extends.tokens)
    num_images = 0 if extends is None else len(extends.images)
    record = TokenRecord(
        prompt_extends=None if extends is None else extends.turn,
        prompt_tokens=encode_int32(prompt[num_before:]),
        prompt_images=shown[num_images:],
        completion_tokens=encode_int32(completion),
        completion_logprobs=_float32(found),
        sampling=sampling,
        stop_reason=stop_reason,
    )
    after = Prompt(turn, (*prompt, *completion), shown)
    return Tokens(record, after, len(prompt), len(completion))


def _float32(values: list[float]) -> str:
    try:
        return encode_float32(values)
    except OverflowError:
        message = "completion_logprobs has a number that is too large for a float32"
        raise ValueError(message) from None


def read_actions(actions: Sequence[object]) -> tuple[TakenAction, ...]:
    """The actions of a turn. Raises ValueError if one cannot be read.

    An action is one of ours (`{"type": "click", "x": 1, "y": 2}` or its class), a call of any other
    tool (`{"tool_name": ..., "tool_args": {...}}`), or a TakenAction.
    """
    if isinstance(actions, str | bytes | Mapping):
        message = f"actions must be a list of actions, not {type(actions).__name__}"
        raise TypeError(message)
    return bounded_actions([_action(place, action) for place, action in enumerate(actions)])


def _action(place: int, action: Any) -> TakenAction:  # noqa: ANN401  # checked here
    if isinstance(action, TakenAction):
        return action
    given = action.model_dump() if isinstance(action, Value) else action
    if not isinstance(given, Mapping):
        message = f"actions[{place}] must be a mapping, not {type(action).__name__}"
        raise TypeError(message)
    fields = json_fields(given)
    try:
        if "type" not in fields:
            return TakenAction.model_validate({"action": None, "tool_args": {}, **fields})
        parsed = _ACTION.validate_python(fields)
    except ValidationError as error:
        problem = "; ".join(
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}".lstrip(": ")
            for one in islice(error.errors(), 3)
        )
        message = (
            f"actions[{place}] is neither an action (type=...) nor a call of a tool (tool_name=...,"
            f" tool_args=...): {problem[:MAX_PROBLEM_CHARS]}"
        )
        raise ValueError(message) from None
    arguments = {name: value for name, value in fields.items() if name != "type"}
    return TakenAction(tool_name=str(fields["type"]), tool_args=arguments, action=parsed)


def response_text(completion: object) -> str:
    """The completion's text, possibly cut; the token record is complete."""
    return cut(text("completion", completion), MAX_RESPONSE_CHARS)
