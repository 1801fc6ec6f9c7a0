"""Codecs: the formats in which families of policies write actions."""

from producer.codecs.codec import CannotEncodeError, Codec
from producer.codecs.compact import CompactCodec
from producer.codecs.qwen import QwenCodec

CODECS: tuple[Codec, ...] = (CompactCodec(), QwenCodec())

__all__ = ["CODECS", "CannotEncodeError", "Codec", "CompactCodec", "QwenCodec"]
