"""How families of policies write actions."""

from producer.agent.codecs.codec import CannotEncodeError, Codec
from producer.agent.codecs.compact import CompactCodec
from producer.agent.codecs.qwen import QwenCodec

CODECS: tuple[Codec, ...] = (CompactCodec(), QwenCodec())

__all__ = ["CODECS", "CannotEncodeError", "Codec", "CompactCodec", "QwenCodec"]
