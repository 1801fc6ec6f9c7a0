"""Conversations as tokens: the loss falls on what the assistant says."""

from typing import Any

import pytest

from producer.errors import UsageError
from producer.supervised.sequences import Message, encode_conversation
from producer.text_policy.build import build_tokenizer

TALK = (
    Message("system", "Write SQL"),
    Message("user", "How many?"),
    Message("assistant", "SELECT 1"),
    Message("user", "Which?"),
    Message("assistant", "SELECT 2"),
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer([item.content for item in TALK] * 5)


def learned(tokenizer: Any, tokens: tuple[int, ...], mask: tuple[bool, ...]) -> list[str]:
    """What the loss falls on, as texts."""
    texts: list[list[int]] = []
    for at, (token, is_target) in enumerate(zip(tokens, mask, strict=True)):
        if is_target:
            texts.append([token]) if not mask[at - 1] else texts[-1].append(token)
    return [tokenizer.decode(text) for text in texts]


def test_every_answer_and_its_end_is_learned_in_the_policys_template(tokenizer: Any) -> None:
    encoded = encode_conversation(tokenizer, TALK, use_chat_template=True)
    given = [item._asdict() for item in TALK]
    whole = tokenizer.apply_chat_template(given, tokenize=False)
    assert tokenizer.decode(encoded.tokens) + "\n" == whole
    assert learned(tokenizer, *encoded) == ["SELECT 1<|im_end|>", "SELECT 2<|im_end|>"]


def test_the_prompt_has_the_tokens_that_a_sampler_would_send(tokenizer: Any) -> None:
    encoded = encode_conversation(tokenizer, TALK[:3], use_chat_template=True)
    given = [item._asdict() for item in TALK[:2]]
    prompt = tokenizer.apply_chat_template(given, tokenize=False, add_generation_prompt=True)
    num_prompt = encoded.loss_mask.index(True)
    assert list(encoded.tokens[:num_prompt]) == tokenizer.encode(prompt, add_special_tokens=False)


def test_without_a_template_texts_follow_each_other(tokenizer: Any) -> None:
    encoded = encode_conversation(tokenizer, TALK[1:3], use_chat_template=False)
    assert tokenizer.decode(encoded.tokens) == "How many?\nSELECT 1<|im_end|>"
    assert learned(tokenizer, *encoded) == ["SELECT 1<|im_end|>"]


def test_a_policy_without_a_template_says_what_to_set() -> None:
    tokenizer = build_tokenizer(["a"])
    tokenizer.chat_template = None
    with pytest.raises(UsageError, match="no chat template; set use_chat_template to false"):
        encode_conversation(tokenizer, TALK, use_chat_template=True)
