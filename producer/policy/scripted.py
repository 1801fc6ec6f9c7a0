"""The scripted policy as a learner: it acts by an oracle with noise and learns nothing.

For runs of the whole system without torch.
"""

import json
import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from producer.policy.learner import Trajectory, UpdateResult, UpdateSettings
from producer.policy.policy import Completion, Policy, SampleRequest


class ScriptedLearner:
    """Wraps a policy that has no weights; `update` only counts."""

    def __init__(self, policy: Policy, on_forget: Callable[[UUID], object]) -> None:
        """`on_forget` hears of every episode that is over."""
        self._on_forget = on_forget
        self._policy = policy
        self._version = 0

    @property
    def name(self) -> str:
        """The policy's."""
        return self._policy.name

    @property
    def version(self) -> int:
        """Updates so far."""
        return self._version

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """The policy's completions."""
        return self._policy.sample(requests)

    def forget(self, episode: UUID) -> None:
        """The episode is over."""
        self._policy.forget(episode)
        self._on_forget(episode)

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:  # noqa: ARG002  # the interface's
        """Nothing is learnt: a loss of 0 over no tokens."""
        self._version += 1
        return UpdateResult(0.0, 0.0, 0.0, 0.0, 0.0, num_tokens=0, seconds=0.0)

    def save_state(self, folder: Path) -> None:
        """The version is all there is."""
        with (folder / "scripted.json").open("w") as file:
            json.dump({"version": self._version}, file)
            file.flush()
            os.fsync(file.fileno())

    def load_state(self, folder: Path) -> None:
        """The inverse."""
        self._version = int(json.loads((folder / "scripted.json").read_text())["version"])

    def save_checkpoint(self, folder: Path) -> str:
        """As the state: there are no weights."""
        folder.mkdir(parents=True, exist_ok=True)
        self.save_state(folder)
        return sha256((folder / "scripted.json").read_bytes()).hexdigest()
