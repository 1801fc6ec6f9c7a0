"""Emitting: facts become events in a log, without waiting for any I/O."""

from producer.emit.emitter import Acknowledgement, Emitter

__all__ = ["Acknowledgement", "Emitter"]
