"""What a service saved, named by a file among a training's states and checkpoints.

The weights are the service's; the file has their paths. Imports no torch.
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
    """Weights that Tinker keeps."""

    weights: str
    """Path of adapter and optimiser, `tinker://RUN/weights/NAME`."""
    version: int
    """Updates that the weights had."""
    base_model: str
    sampler_weights: str | None = None
    """Path of the same weights for sampling; None: a resume state, which is not sampled from."""


def write_remote(folder: Path, checkpoint: RemoteCheckpoint) -> str:
    """Write the file, durably, into an existing folder; its sha256, hex."""
    text = json.dumps(asdict(checkpoint), indent=2) + "\n"
    write_durably(folder / REMOTE, text)
    return sha256(text.encode()).hexdigest()


def read_remote(folder: Path) -> RemoteCheckpoint | None:
    """What the folder names; None: its weights are its own files."""
    path = folder / REMOTE
    if not path.is_file():
        return None
    return RemoteCheckpoint(**json.loads(path.read_text(encoding="utf-8")))
