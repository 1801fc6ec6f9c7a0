"""A kept state of the policy."""

from typing import ClassVar

from schemas.base import Count, Id, Payload


class CheckpointSaved(Payload):
    """A checkpoint lies on disk, complete (PEFT's layout)."""

    TYPE: ClassVar[str] = "cua.checkpoint.saved"

    step_id: Id | None
    """The step that made it; None: the state before the first step."""
    generation: Count
    step: Count
    path: str
    """Folder, absolute on the host that saved it."""
    policy_version: Count
    adapter_sha256: str
    """Of the adapter's weights file."""
