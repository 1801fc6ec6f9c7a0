"""Emitting: payloads become events in a log, without waiting for any I/O."""

from producer.emit.emitter import Emitter
from producer.emit.stream import Acknowledgement, StreamWriter

__all__ = ["Acknowledgement", "Emitter", "StreamWriter"]
