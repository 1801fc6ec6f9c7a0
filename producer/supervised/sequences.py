"""Conversations as tokens, in the policy's own chat template. Imports no torch.

Text is written message by message, as the policy will be asked and has answered; the loss falls on
the assistant's text and on the token that ends it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from producer.errors import UsageError


class Message(NamedTuple):
    """One message of a conversation."""

    role: str
    """system, user or assistant."""
    content: str


class Masked(NamedTuple):
    """Tokens, and which of them are to be learned."""

    tokens: tuple[int, ...]
    loss_mask: tuple[bool, ...]


def encode_conversation(
    tokenizer: Any,  # noqa: ANN401  # transformers
    messages: Sequence[Message],
    *,
    use_chat_template: bool,
) -> Masked:
    """Every assistant message is learned. Without a template: the texts one after the other.

    UsageError when there is no template, or it rewrites earlier turns.
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


def prompt_and_answer(tokenizer: Any, prompt: str, answer: str) -> tuple[int, ...]:  # noqa: ANN401
    """As a pairwise reward model reads them."""
    messages = (Message("user", prompt), Message("assistant", answer))
    use_template = tokenizer.chat_template is not None
    return encode_conversation(tokenizer, messages, use_chat_template=use_template).tokens


def _template(tokenizer: Any, messages: Sequence[Message]) -> str:  # noqa: ANN401
    given = [{"role": message.role, "content": message.content} for message in messages]
    text: str = tokenizer.apply_chat_template(given, tokenize=False, add_generation_prompt=True)
    return text


def _plain(messages: Sequence[Message], end: str) -> str:
    return "".join(
        message.content + (end if message.role == "assistant" else "\n") for message in messages
    )
