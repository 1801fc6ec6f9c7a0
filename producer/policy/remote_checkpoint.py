"""Refers to weights stored at a service, by a file among a training's states and checkpoints.

The service keeps the weights; the file holds their paths. Imports no torch.
"""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from producer.durable import write_durably

REMOTE: Final = "tinker.json"
"""Name of the file."""
SCHEME: Final = "tinker://"


@dataclass(frozen=True, slots=True)
class RemoteCheckpoint:
    """Weights stored at Tinker."""

    weights: str
    """Path of the adapter and optimiser, `tinker://RUN/weights/NAME`."""
    version: int
    """Number of updates that the weights had received."""
    base_model: str
    sampler_weights: str | None = None
    """Path of the same weights for sampling; None for a resume state, which is never sampled."""


def write_remote(folder: Path, checkpoint: RemoteCheckpoint) -> str:
    """Write the file durably to an existing folder; returns its sha256, hex."""
    text = json.dumps(asdict(checkpoint), indent=2) + "\n"
    write_durably(folder / REMOTE, text)
    return sha256(text.encode()).hexdigest()


def read_remote(folder: Path) -> RemoteCheckpoint | None:
    """The checkpoint that the folder refers to; None if the folder holds its own weights."""
    path = folder / REMOTE
    if not path.is_file():
        return None
    return RemoteCheckpoint(**json.loads(path.read_text(encoding="utf-8")))
