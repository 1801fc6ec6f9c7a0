"""Episodes as tokens: the policy's own chat template, one piece per turn, image placeholders spread, rope positions.

The first piece is instruction and first screen; each later one is whatever the template puts between an answer and the next, with a new
screen. Pieces are appended to what was sampled, never rendered again, so a turn's prompt extends the turn before token by token.
It knows no weights.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from producer.errors import UsageError

_SENTINEL = "answer"
Positions = NDArray[np.int64]
"""Axes [3, T]: temporal, height, width index of each token for Qwen3-VL's rotary embedding."""


class ChatProcessor(Protocol):
    """What is used of a processor."""

    tokenizer: Any

    def apply_chat_template(self, conversation: list[dict[str, Any]], **options: Any) -> str:
        """The dialogue as text."""
        ...


@dataclass(frozen=True, slots=True)
class Grid:
    """Image tokens of one screen."""

    rows: int
    columns: int

    @property
    def num_tokens(self) -> int:
        """Placeholders it takes."""
        return self.rows * self.columns


class Renderer:
    """Turns of a dialogue as token ids; keeps what it rendered before. Not thread-safe."""

    def __init__(
        self, processor: ChatProcessor, image_token: int, system_prompt: str | None = None
    ) -> None:
        self._processor = processor
        self._image_token = image_token
        self._system = (
            [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
        )
        self._first: dict[str, list[int]] = {}
        end = str(processor.tokenizer.eos_token)
        between = self._text_between_answers()
        if not between.startswith(end):
            message = (
                f"expected a chat template that ends an answer with {end!r}, found {between!r}"
                " after it; this policy cannot be used"
            )
            raise UsageError(message)
        self._after_stop = self._tokens(between.removeprefix(end))
        self._after_length = self._tokens(between)

    def first_turn(self, instruction: str, grid: Grid) -> list[int]:
        """The whole prompt of turn 1."""
        if instruction not in self._first:
            self._first[instruction] = self._tokens(self._text([self._user(instruction)]))
        return self._spread(self._first[instruction], grid)

    def next_turn(self, grid: Grid, *, stopped: bool) -> list[int]:
        """What follows an answer: its end mark if it has none yet (`stopped` false.

        It ran out of tokens), then the next screen.
        """
        return self._spread(self._after_stop if stopped else self._after_length, grid)

    def _user(self, instruction: str | None) -> dict[str, Any]:
        text = [] if instruction is None else [{"type": "text", "text": instruction}]
        return {"role": "user", "content": [*text, {"type": "image"}]}

    def _text(self, messages: list[dict[str, Any]]) -> str:
        return self._processor.apply_chat_template(
            [*self._system, *messages], tokenize=False, add_generation_prompt=True
        )

    def _text_between_answers(self) -> str:
        opening = [self._user(_SENTINEL)]
        before = self._text(opening) + _SENTINEL
        after = self._text(
            [*opening, {"role": "assistant", "content": _SENTINEL}, self._user(None)]
        )
        if not after.startswith(before):
            message = (
                f"expected a chat template that only appends, found {after!r} after {before!r};"
                " turns could not extend each other"
            )
            raise UsageError(message)
        return after.removeprefix(before)

    def _tokens(self, text: str) -> list[int]:
        return list(self._processor.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _spread(self, tokens: list[int], grid: Grid) -> list[int]:
        at = tokens.index(self._image_token)
        return [*tokens[:at], *[self._image_token] * grid.num_tokens, *tokens[at + 1 :]]


def rope_positions(
    tokens: list[int], image_token: int, grids: list[Grid], start: int
) -> tuple[Positions, int]:
    """Positions of `tokens` that begin at `start`, and where the next token begins.

    Text counts up by one. An image's tokens stand at (start, start + row, start + column), and take
    max(rows, columns) of the count.
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
