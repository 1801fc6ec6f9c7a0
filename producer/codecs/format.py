"""How a policy is prompted, and how it writes actions."""

from typing import NamedTuple

from producer.codecs.codec import Codec


class Format(NamedTuple):
    """A codec, and the system prompt that explains it."""

    codec: Codec
    system_prompt: str | None
    """None for a policy that was trained to know its actions."""
