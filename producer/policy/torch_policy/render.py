"""Renders episodes as tokens with the policy's own chat template, and computes rope positions.

Turn 1 renders as the instruction and the first screen; a later turn as what the template puts
between two answers, with a new screen. Turns are appended to the sampled tokens and never rendered
again, so every prompt extends the previous turn token by token. Knows no weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from producer.errors import UsageError

_SENTINEL = "answer"
Positions = NDArray[np.int64]
"""Axes [3, T]: temporal, height and width index of each token for Qwen3-VL's rotary embedding."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Image tokens of one screen."""

    rows: int
    columns: int

    @property
    def num_tokens(self) -> int:
        """Number of placeholders for the screen in a prompt."""
        return self.rows * self.columns


class Renderer:
    """Renders turns as token ids; caches by instruction. Not thread-safe."""

    def __init__(
        self, processor: Any, image_token: int | None, system_prompt: str | None = None
    ) -> None:
        """`processor` is a processor, or a tokenizer if there is no `image_token`.

        Raises UsageError if its chat template does not append.
        """
        self._processor = processor
        self._tokenizer = processor if image_token is None else processor.tokenizer
        self._image_token = image_token
        self._system = (
            [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
        )
        self._first_turns: dict[str, list[int]] = {}
        self._end = str(self._tokenizer.eos_token)
        has_screen = image_token is not None
        between = self._text_between_answers(
            None if has_screen else _SENTINEL, has_screen=has_screen
        )
        self._after_stop = self.tokens(between.removeprefix(self._end))
        self._after_length = self.tokens(between)

    def first_turn(self, instruction: str, grid: Grid | None, text: str | None = None) -> list[int]:
        """The whole prompt of turn 1: the instruction, the environment's text, its screen.

        Raises UsageError if a text contains the image placeholder.
        """
        said = instruction if text is None else f"{instruction}\n\n{text}"
        if text is not None or grid is None:
            return self._expand_image(self._first_tokens(said, has_screen=grid is not None), grid)
        if instruction not in self._first_turns:
            self._first_turns[instruction] = self._first_tokens(said, has_screen=True)
        return self._expand_image(self._first_turns[instruction], grid)

    def next_turn(self, grid: Grid | None, *, stopped: bool, text: str | None = None) -> list[int]:
        """The tokens between an answer and the next one, with the environment's text and screen.

        They begin with the end token unless the answer has `stopped` with one already. Raises
        UsageError if the text contains the image placeholder.
        """
        if text is None and grid is not None:
            return self._expand_image(self._after_stop if stopped else self._after_length, grid)
        between = self._text_between_answers(text or "", has_screen=grid is not None)
        return self._expand_image(
            self.tokens(between.removeprefix(self._end) if stopped else between), grid
        )

    def dialogue(self, messages: Sequence[dict[str, Any]], grids: Sequence[Grid]) -> list[int]:
        """The prompt of a whole dialogue after `system_prompt`; `grids` of its images, in order.

        Raises UsageError if the number of images in the messages differs.
        """
        tokens = self.tokens(self._text([*messages]))
        num_images = 0 if self._image_token is None else tokens.count(self._image_token)
        if num_images != len(grids):
            message = f"the prompt has {num_images} image placeholders for {len(grids)} images"
            raise UsageError(message)
        left = iter(grids)
        return [
            token
            for single in tokens
            for token in (
                [single] * next(left).num_tokens if single == self._image_token else [single]
            )
        ]

    def _first_tokens(self, said: str, *, has_screen: bool) -> list[int]:
        return self.tokens(self._text([self._user(said, has_screen=has_screen)]))

    def _user(self, said: str | None, *, has_screen: bool) -> dict[str, Any]:
        if self._image_token is None:
            return {"role": "user", "content": said or ""}
        text = [] if said is None else [{"type": "text", "text": said}]
        image = [{"type": "image"}] if has_screen else []
        return {"role": "user", "content": [*text, *image]}

    def _text(self, messages: list[dict[str, Any]]) -> str:
        text: str = self._processor.apply_chat_template(
            [*self._system, *messages], tokenize=False, add_generation_prompt=True
        )
        return text

    def _text_between_answers(self, said: str | None, *, has_screen: bool) -> str:
        opening = [self._user(_SENTINEL, has_screen=has_screen)]
        before = self._text(opening) + _SENTINEL
        after = self._text(
            [
                *opening,
                {"role": "assistant", "content": _SENTINEL},
                self._user(said, has_screen=has_screen),
            ]
        )
        if not after.startswith(before):
            message = (
                "this policy cannot be used: its chat template rewrites earlier turns"
                f" ({before!r} became {after!r}), so a turn's prompt would not extend the turn"
                " before"
            )
            raise UsageError(message)
        between = after.removeprefix(before)
        if not between.startswith(self._end):
            message = (
                f"this policy cannot be used: its chat template ends an answer with {between!r}"
                f" instead of the tokenizer's end token {self._end!r}"
            )
            raise UsageError(message)
        return between

    def tokens(self, text: str) -> list[int]:
        """Tokens of the text, without a template."""
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _expand_image(self, tokens: list[int], grid: Grid | None) -> list[int]:
        num_images = 0 if self._image_token is None else tokens.count(self._image_token)
        if num_images != (grid is not None):
            message = (
                f"a prompt has {num_images} image placeholders for {int(grid is not None)} screens;"
                " take the placeholder out of the task's text"
            )
            raise UsageError(message)
        if grid is None or self._image_token is None:
            return tokens
        at = tokens.index(self._image_token)
        return [*tokens[:at], *[self._image_token] * grid.num_tokens, *tokens[at + 1 :]]


def rope_positions(
    tokens: list[int], *, image_token: int | None, grids: list[Grid], start: int = 0
) -> tuple[Positions, int]:
    """Positions of `tokens` from `start` on, and the position of the token after them.

    Text positions count up by one. An image's tokens are at (start, start + row, start + column),
    and the count then advances by max(rows, columns).
    """
    parts: list[Positions] = []
    remaining = iter(grids)
    at = 0
    while at < len(tokens):
        if tokens[at] == image_token:
            grid = next(remaining)
            rows, columns = np.divmod(np.arange(grid.num_tokens), grid.columns)
            parts.append(start + np.stack([np.zeros_like(rows), rows, columns]))
            start += max(grid.rows, grid.columns)
            at += grid.num_tokens
            continue
        end = next(
            (index for index in range(at, len(tokens)) if tokens[index] == image_token), len(tokens)
        )
        parts.append(np.broadcast_to(np.arange(start, start + end - at), (3, end - at)))
        start += end - at
        at = end
    return np.concatenate(parts, axis=1), start
