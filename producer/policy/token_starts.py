"""Where the tokens of a completion begin in its text."""

from collections.abc import Callable, Sequence

from producer.process_rewards.token_spans import starts_of

Decode = Callable[[Sequence[int]], str]
"""Tokens -> their text, without special tokens."""


def token_starts(tokens: Sequence[int], decode: Decode) -> list[int]:
    """For every token the index of its first character in the decoded text."""
    texts = [decode([token]) for token in tokens]
    if "".join(texts) == decode(tokens):
        return starts_of(texts)
    # A character of several tokens, or a tokenizer that writes spaces by the token before.
    return [len(decode(tokens[:at])) for at in range(len(tokens))]
