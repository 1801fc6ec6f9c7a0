"""Examples as token items of their objective, without those that are too long. Imports no torch.

The items' classes need torch's modules; this one only says what they hold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from producer.errors import UsageError
from producer.fine_tuning.examples import Conversation, Example, LabelledSteps, Pair
from producer.fine_tuning.settings import FineTuningConfig
from producer.supervised.sequences import Masked, encode_conversation
from producer.supervised.step_marks import Marked, StepMarks, mark_steps


@dataclass(frozen=True, slots=True)
class LabelledMarks:
    """Marked steps with their labels."""

    marked: Marked
    labels: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Two sequences."""

    chosen: tuple[int, ...]
    rejected: tuple[int, ...]


Encoded = Masked | LabelledMarks | EncodedPair


def encode(
    tokenizer: Any,  # noqa: ANN401  # transformers
    config: FineTuningConfig,
    examples: Sequence[Example],
    max_length: int,
) -> list[Encoded | None]:
    """One item per example; None: it has more than `max_length` tokens."""
    return [_checked(_encode(tokenizer, config, example), max_length) for example in examples]


def without_long(items: Sequence[Encoded | None]) -> list[Encoded]:
    """The items that are kept. UsageError when none is."""
    kept = [item for item in items if item is not None]
    if items and not kept:
        message = f"max_length: all {len(items)} examples are longer; raise it"
        raise UsageError(message)
    return kept


def marks_of(config: FineTuningConfig) -> StepMarks:
    """The markers and label tokens of a process reward model."""
    right, wrong = config.reward_tokens
    return StepMarks(config.placeholder_token, (right, wrong))


def _encode(tokenizer: Any, config: FineTuningConfig, example: Example) -> Encoded:  # noqa: ANN401
    conversation: Callable[[Conversation], Masked] = lambda item: encode_conversation(  # noqa: E731
        tokenizer, item.messages, use_chat_template=config.use_chat_template
    )
    match example:
        case Conversation():
            return conversation(example)
        case LabelledSteps():
            return LabelledMarks(
                mark_steps(tokenizer, marks_of(config), example.texts), example.labels
            )
        case Pair():
            chosen, rejected = (
                tuple(tokenizer.encode(f"{item}{tokenizer.eos_token}", add_special_tokens=False))
                if isinstance(item, str)
                else conversation(item).tokens
                for item in (example.chosen, example.rejected)
            )
            return EncodedPair(chosen, rejected)


def _checked(encoded: Encoded, max_length: int) -> Encoded | None:
    match encoded:
        case Masked():
            length = len(encoded.tokens)
        case LabelledMarks():
            length = len(encoded.marked.tokens)
        case EncodedPair():
            length = max(len(encoded.chosen), len(encoded.rejected))
    return encoded if length <= max_length else None
