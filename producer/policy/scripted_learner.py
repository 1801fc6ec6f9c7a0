"""What scripted policies share: they are updated, saved and restored, and learn nothing."""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from producer.algorithms.settings import UpdateSettings
from producer.policy.learner import Trajectory, UpdateResult

STATE = "scripted.json"
"""Name of the file that a state and a checkpoint consist of."""


class ScriptedLearner:
    """A `Learner` without weights; a subclass samples. It exercises the system without torch."""

    name = "oracle"
    repeats_batches = False

    def __init__(self, *, noise: float, seed: int) -> None:
        """`noise`: probability of something else than the best; ValueError if it is none."""
        if not 0 <= noise <= 1:
            message = f"noise {noise} is not a probability; choose 0 to 1"
            raise ValueError(message)
        self._noise = noise
        self._seed = seed
        self._version = 0

    @property
    def version(self) -> int:
        """Updates so far."""
        return self._version

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:  # noqa: ARG002  # the interface's
        """Increment `version`; a loss of 0 over no tokens."""
        self._version += 1
        return UpdateResult(
            loss=0.0,
            kl_sample_train_v1=0.0,
            kl_sample_train_v2=0.0,
            entropy=0.0,
            gradient_norm=0.0,
            num_tokens=0,
            seconds=0.0,
        )

    def save_state(self, folder: Path) -> None:
        """Write the version into an existing folder, synced."""
        with (folder / STATE).open("w") as file:
            json.dump({"version": self._version}, file)
            file.flush()
            os.fsync(file.fileno())

    def load_state(self, folder: Path) -> None:
        """Restore the version."""
        self._version = int(json.loads((folder / STATE).read_text())["version"])

    def save_checkpoint(self, folder: Path) -> str:
        """Write the state (there are no weights); returns the sha256 of its file."""
        folder.mkdir(parents=True, exist_ok=True)
        self.save_state(folder)
        return sha256((folder / STATE).read_bytes()).hexdigest()
