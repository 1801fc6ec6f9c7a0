"""The real policy of the package index, where it can be fetched."""

from tests.support.pretrained_wheel import smollm2, smollm2_wheel

__all__ = ["smollm2", "smollm2_wheel"]
