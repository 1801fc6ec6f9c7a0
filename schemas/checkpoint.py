"""The event of a saved checkpoint; stream of its training."""

from typing import ClassVar

from schemas.base import Count, Id, Payload


class CheckpointSaved(Payload):
    """A checkpoint is complete on disk: an adapter in PEFT's layout, or all weights, the hub's."""

    TYPE: ClassVar[str] = "cua.checkpoint.saved"

    step_id: Id | None
    """The step that produced it; None: the state before the first step."""
    generation: Count
    """Generation of the training."""
    step: Count
    """Steps the policy has been trained for."""
    path: str
    """Folder, absolute on the host that saved it; `tinker://...` of weights that Tinker keeps."""
    policy_version: Count
    """Version of the saved policy."""
    adapter_sha256: str
    """Hex sha256 of the weights file: the adapter's, that of all weights, or the one in the run's
    folder that names what Tinker keeps."""
