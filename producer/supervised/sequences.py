"""Examples as tokens: conversations, and steps with a marker after each. Imports no torch.

A conversation is rendered message by message with the policy's chat template, as in later use. The
loss covers the assistant's text and the token that ends it.

Each text between step markers is tokenised separately, so that a marker always has the same tokens
and a step's score does not depend on later steps.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from producer.errors import NotFoundError, UsageError

FILE: Final = "step_scorer.json"
BETWEEN_STEPS: Final = "\n\n"
"""A blank line, as in CoCTE."""


class Message(NamedTuple):
    """One message of a conversation."""

    role: str
    """system, user or assistant."""
    content: str


class Masked(NamedTuple):
    """Tokens, and which of them are targets."""

    tokens: tuple[int, ...]
    loss_mask: tuple[bool, ...]


def encode_conversation(
    tokenizer: Any,  # noqa: ANN401  # transformers
    messages: Sequence[Message],
    *,
    use_chat_template: bool,
) -> Masked:
    """Every assistant message is a target. Without a template, the texts are concatenated.

    Raises UsageError if there is no template, or if it rewrites earlier turns.
    """
    if use_chat_template and tokenizer.chat_template is None:
        text = "the policy has no chat template; set use_chat_template to false"
        raise UsageError(text)
    tokens: list[int] = []
    mask: list[bool] = []
    written = ""
    end = str(tokenizer.eos_token)
    for at, message in enumerate(messages):
        if message.role != "assistant":
            continue
        before = (
            _template(tokenizer, messages[:at]) if use_chat_template else _plain(messages[:at], end)
        )
        if not before.startswith(written):
            text = "the policy's chat template rewrites earlier turns; set use_chat_template false"
            raise UsageError(text)
        for text, is_target in (
            (before[len(written) :], False),
            (f"{message.content}{end}", True),
        ):
            ids = tokenizer.encode(text, add_special_tokens=False)
            tokens += ids
            mask += [is_target] * len(ids)
        written = f"{before}{message.content}{end}"
    return Masked(tuple(tokens), tuple(mask))


def _template(tokenizer: Any, messages: Sequence[Message]) -> str:  # noqa: ANN401
    given = [{"role": message.role, "content": message.content} for message in messages]
    text: str = tokenizer.apply_chat_template(given, tokenize=False, add_generation_prompt=True)
    return text


def _plain(messages: Sequence[Message], end: str) -> str:
    return "".join(
        message.content + (end if message.role == "assistant" else "\n") for message in messages
    )


@dataclass(frozen=True, slots=True)
class StepMarks:
    """The markers and labels that a process reward model was trained with."""

    placeholder_token: str
    reward_tokens: tuple[str, str]

    def write(self, folder: Path) -> None:
        """Write to the folder of the weights."""
        (folder / FILE).write_text(json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n")


def read_step_marks(folder: Path) -> StepMarks:
    """Read from a folder. Raises NotFoundError if it holds no process reward model."""
    try:
        stored = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return StepMarks(stored["placeholder_token"], tuple(stored["reward_tokens"]))
    except (OSError, ValueError, KeyError, TypeError):
        message = (
            f"{folder} holds no process reward model (it has no readable {FILE}); train one with"
            " `cua-train sql reward-model`"
        )
        raise NotFoundError(message) from None


def step_texts(prompt: str, steps: Sequence[str]) -> list[str]:
    """The text before each marker; the first one starts with the prompt."""
    first = f"{prompt}{BETWEEN_STEPS}" if prompt else ""
    return [f"{BETWEEN_STEPS if at else first}{step}" for at, step in enumerate(steps)]


class Marked(NamedTuple):
    """Tokens and the position of each marker's last token."""

    tokens: tuple[int, ...]
    markers: tuple[int, ...]


def mark_steps(tokenizer: Any, marks: StepMarks, texts: Iterable[str]) -> Marked:  # noqa: ANN401  # transformers
    """Tokens of the texts, each followed by the marker."""
    marker = tokenizer.encode(marks.placeholder_token, add_special_tokens=False)
    tokens: list[int] = []
    markers = []
    for text in texts:
        tokens += tokenizer.encode(text, add_special_tokens=False)
        tokens += marker
        markers.append(len(tokens) - 1)
    return Marked(tuple(tokens), tuple(markers))


def label_tokens(tokenizer: Any, marks: StepMarks) -> tuple[int, int]:  # noqa: ANN401
    """Ids of the two label tokens. Raises UsageError unless each is one token and they differ."""
    found = []
    for text in marks.reward_tokens:
        ids = tokenizer.encode(text, add_special_tokens=False)
        if len(ids) != 1:
            message = (
                f"reward_tokens: {text!r} is {len(ids)} tokens of this policy; choose texts that"
                " are one token each"
            )
            raise UsageError(message)
        found.append(int(ids[0]))
    if found[0] == found[1]:
        message = f"reward_tokens: {marks.reward_tokens} are the same token of this policy"
        raise UsageError(message)
    return found[0], found[1]
