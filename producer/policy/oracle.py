"""`NoisyOracle`: a scripted policy that reads the simulated phone's true state.

It exercises the whole system without torch: it has no tokens and no weights, so it learns nothing.
"""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Literal
from uuid import UUID

from producer.codecs.compact import CompactCodec
from producer.environments.android_sim.device.sim import AndroidSim
from producer.environments.android_sim.oracle.oracles import (
    NoOracleError,
    oracle_action,
    random_action,
)
from producer.policy.learner import Trajectory, UpdateResult, UpdateSettings
from producer.policy.policy import Completion, SampleRequest
from schemas.actions import Terminate

STATE = "scripted.json"
"""Name of the file that a state and a checkpoint consist of."""
NUM_LOST_TURNS = 2
"""Random actions on a task whose goal is unknown, before the policy gives up."""


class NoisyOracle:
    """A `Learner` that takes the oracle's action, or with probability `noise` a random one.

    A task whose goal it does not know (without a device query, or with one that has no strategy) it
    cannot solve: it acts at random for two turns, then ends with a report drawn at random.
    A completion depends on (`seed`, request.seed) and the phone's state alone. Never blocks.
    """

    name = "oracle"
    repeats_batches = False

    def __init__(self, *, noise: float, seed: int) -> None:
        if not 0 <= noise <= 1:
            message = f"noise {noise} is not a probability; choose 0 to 1"
            raise ValueError(message)
        self._devices: dict[UUID, AndroidSim] = {}
        self._noise = noise
        self._seed = seed
        self._codec = CompactCodec()
        self._version = 0

    @property
    def version(self) -> int:
        """Updates so far."""
        return self._version

    def attach(self, episode: UUID, device: AndroidSim) -> None:
        """Let the oracle read this episode's phone until `forget`."""
        self._devices[episode] = device

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One action per request."""
        return [self._sample(request) for request in requests]

    def forget(self, episode: UUID) -> None:
        """Detach the episode's phone."""
        self._devices.pop(episode, None)

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

    def _sample(self, request: SampleRequest) -> Completion:
        sim = self._devices[request.episode]
        random = Random(f"{self._seed}/{request.seed}")  # noqa: S311  # noise, not secrets
        width, height = request.screen.width_px, request.screen.height_px
        if random.random() < self._noise:
            text = self._codec.encode(random_action(random, sim), width, height)
        else:
            text = self._best(request, sim, random)
        return Completion(text=text, actions=self._codec.parse(text, width, height), tokens=None)

    def _best(self, request: SampleRequest, sim: AndroidSim, random: Random) -> str:
        try:
            if request.task.validation_query is not None:
                return oracle_action(request.task, sim, self._codec)[0]
        except NoOracleError:
            pass
        width, height = request.screen.width_px, request.screen.height_px
        if len(request.history) < NUM_LOST_TURNS:
            return self._codec.encode(random_action(random, sim), width, height)
        status: Literal["success", "failure"] = random.choice(("success", "failure"))
        return self._codec.encode(Terminate(status=status), width, height)
