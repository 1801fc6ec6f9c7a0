"""Codecs: the formats in which families of policies write actions."""

from producer.codecs.anthropic import AnthropicCodec
from producer.codecs.codec import CannotEncodeError, Codec
from producer.codecs.compact import CompactCodec
from producer.codecs.openai import OpenAICodec
from producer.codecs.qwen import QwenCodec
from producer.codecs.qwen_tools import QwenToolCodec
from producer.codecs.recipe import RecipeCodec

CODECS: tuple[Codec, ...] = (
    CompactCodec(),
    QwenCodec(),
    QwenToolCodec("mobile_use"),
    QwenToolCodec("computer_use"),
    OpenAICodec(),
    AnthropicCodec(),
    RecipeCodec(),
)

__all__ = [
    "CODECS",
    "AnthropicCodec",
    "CannotEncodeError",
    "Codec",
    "CompactCodec",
    "OpenAICodec",
    "QwenCodec",
    "QwenToolCodec",
    "RecipeCodec",
]
